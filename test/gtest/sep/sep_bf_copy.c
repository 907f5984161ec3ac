/* SPDX-License-Identifier: BSD-3-Clause */

/* Before any other: of all that is in this file */
#if defined(__x86_64__) && !defined(__clang__)
#  pragma GCC optimize("O2")
#  pragma GCC target("avx512f")
#  define SEP_BF_COPY_HAVE_AVX512 1
#endif

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <sep/sep_bf_copy.h>

#include <uct/ib/sep/post/sep_post.inl>

#ifdef SEP_BF_COPY_HAVE_AVX512
#  include <immintrin.h>

/* All values are alive at the copy: the compiler can neither read them again
 * behind it, nor know what they are */
static __attribute__((noinline)) void
sep_bf_copy_do(void *dst, const void *src, const __m512i *values,
               __m512i *after)
{
    __m512i v[SEP_BF_COPY_NUM_VALUES];
    unsigned i;

#  pragma GCC unroll 28
    for (i = 0; i < SEP_BF_COPY_NUM_VALUES; ++i) {
        v[i] = _mm512_load_si512(&values[i]);
        asm volatile("" : "+v"(v[i]));
    }

    uct_sep_bf_copy_bb(dst, src, UCT_SEP_TX_POST_BF64);

#  pragma GCC unroll 28
    for (i = 0; i < SEP_BF_COPY_NUM_VALUES; ++i) {
        asm volatile("" : "+v"(v[i]));
        _mm512_store_si512(&after[i], v[i]);
    }
}

int sep_bf_copy_with_values(sep_bf_copy_value_t *dst,
                            const sep_bf_copy_value_t *src,
                            const sep_bf_copy_value_t *values,
                            sep_bf_copy_value_t *after)
{
    if (!__builtin_cpu_supports("avx512f")) {
        return -1;
    }

    sep_bf_copy_do(dst, src, (const __m512i*)values, (__m512i*)after);
    return 0;
}
#else
int sep_bf_copy_with_values(sep_bf_copy_value_t *dst,
                            const sep_bf_copy_value_t *src,
                            const sep_bf_copy_value_t *values,
                            sep_bf_copy_value_t *after)
{
    return -1;
}
#endif
