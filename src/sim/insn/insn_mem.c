/* SPDX-License-Identifier: BSD-3-Clause */

/* Access to memory: to the window it is reported, elsewhere performed */

#include <sim/insn/insn_int.h>

#include <emmintrin.h>


static inline int
insn_overlaps(const mlx5sim_insn_window_t *w, uint64_t addr, unsigned length)
{
    /* Written so that neither end can wrap */
    return (addr < w->hi) && ((addr >= w->lo) || ((w->lo - addr) < length)) &&
           (w->lo < w->hi);
}


static int
insn_is_avoided(const insn_exec_t *x, uint64_t addr, unsigned length)
{
    const mlx5sim_insn_run_t *run = x->run;
    unsigned i;

    for (i = 0; i < run->num_avoid; ++i) {
        if (insn_overlaps(&run->avoid[i], addr, length)) {
            return 1;
        }
    }
    return 0;
}


/* One access of the operand's width, as the instruction would have done: other
 * threads must not see it torn. Wider than 8 bytes has no such promise, except
 * in practice 16. Opaque to the compiler, in program order; not checked by
 * sanitizers: the addresses are the program's, and so would be the errors. */
__attribute__((no_sanitize("address", "undefined", "thread"))) static void
insn_raw_copy(void *dst, const void *src, unsigned length)
{
    switch (length) {
    case 1:
        *(volatile uint8_t*)dst = *(const volatile uint8_t*)src;
        break;
    case 2: {
        typedef uint16_t __attribute__((aligned(1), may_alias)) word_t;

        *(volatile word_t*)dst = *(const volatile word_t*)src;
        break;
    }
    case 4: {
        typedef uint32_t __attribute__((aligned(1), may_alias)) dword_t;

        *(volatile dword_t*)dst = *(const volatile dword_t*)src;
        break;
    }
    case 8: {
        typedef uint64_t __attribute__((aligned(1), may_alias)) qword_t;

        *(volatile qword_t*)dst = *(const volatile qword_t*)src;
        break;
    }
    case 16:
    case 32:
    case 64: {
        const __m128i *s = src;
        __m128i *d       = dst;
        unsigned i;

        for (i = 0; i < (length / 16); ++i) {
            _mm_storeu_si128(d + i, _mm_loadu_si128(s + i));
        }
        __asm__ volatile("" ::: "memory");
        break;
    }
    default: {
        volatile uint8_t *d       = dst;
        const volatile uint8_t *s = src;
        unsigned i;

        for (i = 0; i < length; ++i) {
            d[i] = s[i];
        }
        break;
    }
    }
}


static void
insn_load_report(insn_exec_t *x, uint64_t addr, void *data, unsigned length)
{
    ++x->run->num_loads;
    if (x->run->load_cb != NULL) {
        x->run->load_cb(x->run->arg, addr, data, length);
    }
}


static void insn_store_report(insn_exec_t *x, uint64_t addr, const void *data,
                              unsigned length)
{
    ++x->run->num_stores;
    x->run->store_cb(x->run->arg, addr, data, length);
}


/* Split [addr, addr + length) at the window's edges: bytes before it, inside
 * it, after it. */
static void insn_split(const mlx5sim_insn_window_t *w, uint64_t addr,
                       unsigned length, unsigned *before_p, unsigned *inside_p)
{
    unsigned before = (addr < w->lo) ? (unsigned)(w->lo - addr) : 0;
    uint64_t room   = w->hi - (addr + before);

    *before_p = before;
    *inside_p = (room < (length - before)) ? (unsigned)room : length - before;
}


insn_step_t
insn_load(insn_exec_t *x, uint64_t addr, void *data, unsigned length)
{
    const mlx5sim_insn_window_t *w = &x->run->window;
    unsigned before, inside;

    if (INSN_UNLIKELY(insn_is_avoided(x, addr, length))) {
        return INSN_STEP_REFUSED;
    }
    if (INSN_LIKELY(!insn_overlaps(w, addr, length))) {
        insn_raw_copy(data, (const void*)addr, length);
        return INSN_STEP_DONE;
    }

    insn_split(w, addr, length, &before, &inside);
    insn_raw_copy(data, (const void*)addr, before);
    memset((char*)data + before, 0, inside);
    insn_raw_copy((char*)data + before + inside,
                  (const void*)(addr + before + inside),
                  length - before - inside);
    insn_load_report(x, addr + before, (char*)data + before, inside);
    return INSN_STEP_DONE;
}


int insn_store_allowed(const insn_exec_t *x, uint64_t addr, unsigned length)
{
    return insn_in_window(x, addr, length) ||
           (!insn_is_avoided(x, addr, length) &&
            !insn_overlaps(&x->cpu->guard, addr, length));
}


insn_step_t
insn_store(insn_exec_t *x, uint64_t addr, const void *data, unsigned length)
{
    const mlx5sim_insn_window_t *w = &x->run->window;
    unsigned before, inside;

    if (insn_in_window(x, addr, length)) {
        insn_store_report(x, addr, data, length);
        return INSN_STEP_DONE;
    }
    if ((data == NULL) || !insn_store_allowed(x, addr, length)) {
        return INSN_STEP_REFUSED;
    }
    if (INSN_LIKELY(!insn_overlaps(w, addr, length))) {
        insn_raw_copy((void*)addr, data, length);
        return INSN_STEP_DONE;
    }

    insn_split(w, addr, length, &before, &inside);
    insn_raw_copy((void*)addr, data, before);
    insn_raw_copy((void*)(addr + before + inside),
                  (const char*)data + before + inside,
                  length - before - inside);
    insn_store_report(x, addr + before, (const char*)data + before, inside);
    return INSN_STEP_DONE;
}
