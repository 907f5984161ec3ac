/* SPDX-License-Identifier: BSD-3-Clause */

/* The interpreter's loop, and its access to memory */

#include "sim/insn/insn_int.h"

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
 * in practice 16. Opaque to the compiler, in program order; not to be checked
 * by sanitizers: the addresses are the program's and so would be the errors. */
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


static void insn_load_report(insn_exec_t *x, uint64_t addr, unsigned length)
{
    ++x->run->num_loads;
    if (x->run->load_cb != NULL) {
        x->run->load_cb(x->run->arg, addr, length);
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
    insn_load_report(x, addr + before, inside);
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


/* Whether the instruction at rip does nothing but store into the window */
static int insn_is_window_store(insn_exec_t *x)
{
    insn_t in;

    if (insn_decode((const uint8_t*)x->cpu->rip, INSN_MAX_LENGTH, &in) != 0) {
        return 0;
    }
    x->next_rip = x->cpu->rip + in.length;
    return in.is_mem && insn_in_window(x, insn_ea(x, &in), 1) &&
           ((in.op->handler == insn_do_vstore) ||
            (in.op->handler == insn_do_movnti) ||
            ((in.op->handler == insn_do_mov) && !(in.opcode & 2)));
}


/* Whether the run may end here. Valgrind goes on with the flags of the access
 * that trapped, so they must be the same, or the next instruction must set all
 * of them: or a branch behind a comparison that was interpreted goes astray. */
static int insn_may_end(const insn_exec_t *x, uint64_t rflags)
{
    insn_t in;

    if (x->run->vec_valid ||
        !((x->cpu->rflags ^ rflags) & INSN_STATUS_FLAGS) ||
        (insn_decode((const uint8_t*)x->cpu->rip, INSN_MAX_LENGTH, &in) != 0)) {
        return 1;
    }

    /* not adc and sbb, which are 2 and 3 */
    return (in.op->handler == insn_do_test) ||
           ((in.op->handler == insn_do_alu) && ((in.op->arg & 6) != 2)) ||
           ((in.op->handler == insn_do_alu_group) && ((in.mod_reg & 6) != 2));
}


mlx5sim_insn_status_t
mlx5sim_insn_cpu_run(mlx5sim_insn_cpu_t *cpu, mlx5sim_insn_run_t *run)
{
    unsigned max_insns = (run->max_insns != 0) ? run->max_insns :
                                                 MLX5SIM_INSN_DEFAULT_MAX_INSNS;
    unsigned max_gap   = (run->max_gap != 0) ? run->max_gap :
                                               MLX5SIM_INSN_DEFAULT_MAX_GAP;
    unsigned gap       = 0;
    unsigned accesses  = 0;
    insn_exec_t x      = { .cpu = cpu, .run = run };
    uint64_t rflags    = cpu->rflags;
    uint64_t start     = cpu->rflags;
    uint64_t gpr[16];
    insn_step_t step;
    insn_t in;

    run->num_insns  = 0;
    run->num_stores = 0;
    run->num_loads  = 0;
    for (;;) {
        if (insn_decode((const uint8_t*)cpu->rip, INSN_MAX_LENGTH, &in) != 0) {
            run->end = MLX5SIM_INSN_END_UNKNOWN;
            break;
        }
        if (INSN_UNLIKELY(!run->vec_valid)) {
            memcpy(gpr, cpu->gpr, sizeof(gpr));
            rflags = cpu->rflags;
        }
        x.next_rip = cpu->rip + in.length;
        step       = in.op->handler(&x, &in);
        if (INSN_UNLIKELY(!run->vec_valid) &&
            (cpu->gpr[INSN_RSP] != gpr[INSN_RSP])) {
            /* Valgrind wants to see the stack move. What a push has stored, it
             * will store again. */
            memcpy(cpu->gpr, gpr, sizeof(gpr));
            cpu->rflags = rflags;
            step        = INSN_STEP_REFUSED;
        }
        if (step == INSN_STEP_REFUSED) {
            run->end = MLX5SIM_INSN_END_UNKNOWN;
            break;
        }
        if (step == INSN_STEP_DONE) {
            cpu->rip = x.next_rip;
        }
        ++run->num_insns;
        if (INSN_UNLIKELY(run->stop) &&
            ((run->stop == MLX5SIM_INSN_STOP_NOW) ||
             (!insn_is_window_store(&x) && insn_may_end(&x, start)))) {
            run->end = MLX5SIM_INSN_END_STOP;
            break;
        }
        if (run->num_insns >= max_insns) {
            run->end = MLX5SIM_INSN_END_LIMIT;
            break;
        }
        if ((run->num_stores + run->num_loads) != accesses) {
            accesses = run->num_stores + run->num_loads;
            gap      = 0;
        } else if ((++gap >= max_gap) && insn_may_end(&x, start)) {
            run->end = MLX5SIM_INSN_END_GAP;
            break;
        }
    }
    return (run->num_insns > 0) ? MLX5SIM_INSN_OK : MLX5SIM_INSN_UNKNOWN;
}
