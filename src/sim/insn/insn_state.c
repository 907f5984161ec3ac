/* SPDX-License-Identifier: BSD-3-Clause */

/* Vector registers in saved state */

#include <sim/insn/insn_int.h>


int insn_vec_usable(const insn_exec_t *x, const insn_t *in)
{
    uint64_t need = MLX5SIM_INSN_XSTATE_SSE;

    if (in->enc != INSN_ENC_LEGACY) {
        need |= MLX5SIM_INSN_XSTATE_YMM;
    }
    if (in->enc == INSN_ENC_EVEX) {
        need |= MLX5SIM_INSN_XSTATE_ZMM | MLX5SIM_INSN_XSTATE_HI16;
    }
    return x->run->vec_valid && ((x->cpu->vecs.avail & need) == need);
}


/* A component in initial state has garbage in memory: clear it before the first
 * write, and mark it used */
static inline void
insn_vec_wake(const mlx5sim_insn_vecs_t *vecs, uint64_t component, void *area,
              size_t size)
{
    if (INSN_UNLIKELY(!(*vecs->in_use & component))) {
        memset(area, 0, size);
        *vecs->in_use |= component;
    }
}


static inline void
insn_vec_part_read(const mlx5sim_insn_vecs_t *vecs, uint64_t component,
                   void *dst, const void *src, size_t length)
{
    if (*vecs->in_use & component) {
        memcpy(dst, src, length);
    } else {
        memset(dst, 0, length);
    }
}


void insn_vec_read(const mlx5sim_insn_cpu_t *cpu, unsigned reg, unsigned length,
                   insn_vec_t *value)
{
    const mlx5sim_insn_vecs_t *vecs = &cpu->vecs;

    if (reg >= 16) {
        insn_vec_part_read(vecs, MLX5SIM_INSN_XSTATE_HI16, value->b,
                           vecs->hi16 + (64 * (reg - 16)), 64);
        memset(value->b + length, 0, 64 - length);
        return;
    }
    insn_vec_part_read(vecs, MLX5SIM_INSN_XSTATE_SSE, value->b,
                       vecs->xmm + (16 * reg), 16);
    if (length > 16) {
        insn_vec_part_read(vecs, MLX5SIM_INSN_XSTATE_YMM, value->b + 16,
                           vecs->ymm_hi + (16 * reg), 16);
    } else {
        memset(value->b + 16, 0, 16);
    }
    if (length > 32) {
        insn_vec_part_read(vecs, MLX5SIM_INSN_XSTATE_ZMM, value->b + 32,
                           vecs->zmm_hi + (32 * reg), 32);
    } else {
        memset(value->b + 32, 0, 32);
    }
}


void insn_vec_write(mlx5sim_insn_cpu_t *cpu, unsigned reg, unsigned length,
                    const insn_vec_t *value, int zero_up)
{
    const mlx5sim_insn_vecs_t *vecs = &cpu->vecs;
    uint8_t *dst;

    if (reg >= 16) {
        /* Only EVEX gets here, which always clears above */
        insn_vec_wake(vecs, MLX5SIM_INSN_XSTATE_HI16, vecs->hi16, 16 * 64);
        dst = vecs->hi16 + (64 * (reg - 16));
        memcpy(dst, value->b, length);
        memset(dst + length, 0, 64 - length);
        return;
    }

    insn_vec_wake(vecs, MLX5SIM_INSN_XSTATE_SSE, vecs->xmm, 16 * 16);
    memcpy(vecs->xmm + (16 * reg), value->b, 16);
    if (length > 16) {
        insn_vec_wake(vecs, MLX5SIM_INSN_XSTATE_YMM, vecs->ymm_hi, 16 * 16);
        memcpy(vecs->ymm_hi + (16 * reg), value->b + 16, 16);
    } else if (zero_up && (*vecs->in_use & MLX5SIM_INSN_XSTATE_YMM)) {
        memset(vecs->ymm_hi + (16 * reg), 0, 16);
    }
    if (length > 32) {
        insn_vec_wake(vecs, MLX5SIM_INSN_XSTATE_ZMM, vecs->zmm_hi, 16 * 32);
        memcpy(vecs->zmm_hi + (32 * reg), value->b + 32, 32);
    } else if (zero_up && (*vecs->in_use & MLX5SIM_INSN_XSTATE_ZMM)) {
        memset(vecs->zmm_hi + (32 * reg), 0, 32);
    }
}


void insn_vec_zero(mlx5sim_insn_cpu_t *cpu, int all)
{
    /* Initial state is zero */
    *cpu->vecs.in_use &= ~(MLX5SIM_INSN_XSTATE_YMM | MLX5SIM_INSN_XSTATE_ZMM |
                           (all ? MLX5SIM_INSN_XSTATE_SSE : 0));
}
