/* SPDX-License-Identifier: BSD-3-Clause */

/* The interpreter's loop */

#include <sim/insn/insn_int.h>

/* Instructions that a thread has decoded: a doorbell has some thirty, which are
 * the same each time. What is decoded follows from the bytes, so these are
 * compared, and it does not matter if a signal handler that rings as well comes
 * between the lines below. */
#define INSN_CACHE_SIZE 256

static __thread struct {
    uint64_t rip;
    uint8_t  code[INSN_MAX_LENGTH];
    insn_t   in;
} insn_cache[INSN_CACHE_SIZE];


int insn_decode_at(uint64_t rip, insn_t *in)
{
    const uint8_t *code = (const uint8_t*)rip;
    unsigned i          = rip % INSN_CACHE_SIZE;
    const uint8_t *original;
    int ret;

    if ((insn_cache[i].rip == rip) &&
        (memcmp(code, insn_cache[i].code, insn_cache[i].in.length) == 0)) {
        *in = insn_cache[i].in;
        atomic_signal_fence(memory_order_seq_cst);
        if (insn_cache[i].rip == rip) {
            return 0;
        }
    }

    /* Another thread may be replacing it. It begins with the first byte, and
     * has announced it before. */
    do {
        original = insn_original(code);
        ret      = insn_decode(original, INSN_MAX_LENGTH, in);
        atomic_signal_fence(memory_order_seq_cst);
    } while (original != insn_original(code));
    if (ret != 0) {
        return -1;
    }
    in->orders         = mlx5sim_insn_orders_stores(original);
    in->may_move_stack = insn_may_move_stack(in);

    insn_cache[i].rip = 0;
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(insn_cache[i].code, code, in->length);
    atomic_signal_fence(memory_order_seq_cst);
    insn_cache[i].in  = *in;
    atomic_signal_fence(memory_order_seq_cst);
    insn_cache[i].rip = rip;
    return 0;
}


/* Whether the instruction at rip does nothing but store into the window */
static int insn_is_window_store(insn_exec_t *x)
{
    insn_t in;

    if (insn_decode_at(x->cpu->rip, &in) != 0) {
        return 0;
    }
    x->next_rip = x->cpu->rip + in.length;
    return insn_is_store(&in) && insn_in_window(x, insn_ea(x, &in), 1);
}


/* Whether the run may end here. Valgrind continues with the flags of the access
 * that trapped, so they must be unchanged, or the next instruction must set all
 * of them: otherwise a branch behind an interpreted comparison goes astray. */
static int insn_may_end(const insn_exec_t *x, uint64_t rflags)
{
    insn_t in;

    if (x->run->vec_valid ||
        !((x->cpu->rflags ^ rflags) & INSN_STATUS_FLAGS) ||
        (insn_decode_at(x->cpu->rip, &in) != 0)) {
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
    insn_exec_t x      = {.cpu = cpu, .run = run};
    uint64_t rflags    = cpu->rflags;
    uint64_t start     = cpu->rflags;
    uint64_t gpr[16];
    insn_step_t step;
    insn_t in;

    run->num_insns  = 0;
    run->num_stores = 0;
    run->num_loads  = 0;
    for (;;) {
        if ((insn_decode_at(cpu->rip, &in) != 0) ||
            (in.orders && run->stop_at_order && (run->num_insns > 0))) {
            run->end = MLX5SIM_INSN_END_UNKNOWN;
            break;
        }
        if (INSN_UNLIKELY(!run->vec_valid || in.may_move_stack)) {
            memcpy(gpr, cpu->gpr, sizeof(gpr));
            rflags = cpu->rflags;
        }
        x.next_rip = cpu->rip + in.length;
        step       = in.op->handler(&x, &in);
        if (INSN_UNLIKELY(!run->vec_valid ?
                          (cpu->gpr[INSN_RSP] != gpr[INSN_RSP]) :
                          (in.may_move_stack &&
                           (cpu->gpr[INSN_RSP] < run->stack_min)))) {
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
