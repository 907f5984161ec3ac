/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_BF_COPY_H
#define SEP_BF_COPY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The copy of a work request in one store, in code that the compiler keeps in
 * all registers of AVX-512: as in a build with -march=native.
 */

/** More values than there are registers below zmm16. */
#define SEP_BF_COPY_NUM_VALUES 28

/** A value, aligned to its size. */
typedef struct {
    uint8_t bytes[64];
} __attribute__((aligned(64))) sep_bf_copy_value_t;

/**
 * Copy a BB while values are in registers.
 *
 * @param [out] dst     Of the copy.
 * @param [in]  values  SEP_BF_COPY_NUM_VALUES.
 * @param [out] after   What is in the registers behind the copy.
 *
 * @return 0, or -1 if the compiler or the processor does not have them.
 */
int sep_bf_copy_with_values(sep_bf_copy_value_t *dst,
                            const sep_bf_copy_value_t *src,
                            const sep_bf_copy_value_t *values,
                            sep_bf_copy_value_t *after);

#ifdef __cplusplus
}
#endif

#endif
