/* SPDX-License-Identifier: BSD-3-Clause */

/* The way from ucontext_t to the interpreter, and back */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/insn/insn_int.h>

#include <signal.h>

/* XSAVE area: 512 bytes as of FXSAVE with xmm0 at 160, then the header, whose
 * first word is XSTATE_BV (SDM 1, 13.4) */
#define INSN_FXSAVE_XMM    160
#define INSN_FXSAVE_SW     464 /* struct _fpx_sw_bytes, written by the kernel */
#define INSN_XSTATE_HEADER 512
#define INSN_XSTATE_MIN    576

/* The handler and its callbacks live this far below the point where the
 * interpreter was entered, at most */
#define INSN_GUARD_DEPTH (1ul << 20)

/* Below rsp, and left alone by signal delivery (psABI) */
#define INSN_RED_ZONE 128

/* In the order of @ref mlx5sim_insn_cpu_t.gpr */
static const uint8_t insn_gregs[16] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15
};


/* @param bv    Components that were saved
 * @param size  Bytes of the area */
static uint8_t *insn_component(uint8_t *area, uint64_t bv, size_t size,
                               unsigned number, uint64_t *avail_p)
{
    const insn_component_t *c = insn_cpu_component(number);

    if (!(bv & (1ul << number)) || (c->offset == 0) ||
        ((c->offset + c->size) > size)) {
        return NULL;
    }
    *avail_p |= 1ul << number;
    return area + c->offset;
}


static void insn_xsave_find(uint8_t *area, uint64_t bv, size_t size,
                            mlx5sim_insn_vecs_t *vecs)
{
    vecs->in_use = (uint64_t*)(area + INSN_XSTATE_HEADER);
    vecs->ymm_hi = insn_component(area, bv, size, 2, &vecs->avail);
    vecs->opmask = (uint64_t*)insn_component(area, bv, size, 5, &vecs->avail);
    vecs->zmm_hi = insn_component(area, bv, size, 6, &vecs->avail);
    vecs->hi16   = insn_component(area, bv, size, 7, &vecs->avail);
}


void mlx5sim_insn_xsave_find(void *area, uint64_t mask,
                             mlx5sim_insn_vecs_t *vecs_p)
{
    vecs_p->avail = MLX5SIM_INSN_XSTATE_SSE;
    vecs_p->xmm   = (uint8_t*)area + INSN_FXSAVE_XMM;
    insn_xsave_find(area, mask, MLX5SIM_INSN_XSAVE_MAX, vecs_p);
}


uint64_t mlx5sim_insn_xsave_mask(void)
{
    uint64_t mask = insn_cpu_xcr0() &
                    (MLX5SIM_INSN_XSTATE_SSE | MLX5SIM_INSN_XSTATE_YMM |
                     MLX5SIM_INSN_XSTATE_OPMASK | MLX5SIM_INSN_XSTATE_ZMM |
                     MLX5SIM_INSN_XSTATE_HI16);
    const insn_component_t *c;
    unsigned i;

    for (i = 2; i < 8; ++i) {
        c = insn_cpu_component(i);
        if ((mask & (1ul << i)) &&
            ((c->offset + c->size) > MLX5SIM_INSN_XSAVE_MAX)) {
            return 0;
        }
    }
    return mask;
}


/* fxsave_in_use stands for XSTATE_BV where the frame has none */
static void insn_vecs_find(const ucontext_t *uc, mlx5sim_insn_vecs_t *vecs,
                           uint64_t *fxsave_in_use)
{
    uint8_t *area = (uint8_t*)uc->uc_mcontext.fpregs;
    const struct _fpx_sw_bytes *sw;

    memset(vecs, 0, sizeof(*vecs));
    vecs->in_use = fxsave_in_use;
    if (area == NULL) {
        return;
    }
    vecs->avail = MLX5SIM_INSN_XSTATE_SSE;
    vecs->xmm   = area + INSN_FXSAVE_XMM;

    sw = (const struct _fpx_sw_bytes*)(area + INSN_FXSAVE_SW);
    if ((sw->magic1 == FP_XSTATE_MAGIC1) &&
        (sw->xstate_size >= INSN_XSTATE_MIN)) {
        insn_xsave_find(area, sw->xstate_bv, sw->xstate_size, vecs);
    }
}


/* Which memory holds the frame, the handler and what it will call. On the
 * interrupted stack that is all that lies below its red zone. */
static void insn_guard_find(const ucontext_t *uc, mlx5sim_insn_window_t *guard)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t rsp  = uc->uc_mcontext.gregs[REG_RSP];
    uintptr_t alt  = (uintptr_t)uc->uc_stack.ss_sp;

    if (!(uc->uc_stack.ss_flags & SS_DISABLE) && (here >= alt) &&
        ((here - alt) < uc->uc_stack.ss_size) &&
        !((rsp > alt) && ((rsp - alt) <= uc->uc_stack.ss_size))) {
        guard->lo = alt;
        guard->hi = alt + uc->uc_stack.ss_size;
    } else {
        guard->lo = (here > INSN_GUARD_DEPTH) ? here - INSN_GUARD_DEPTH : 0;
        guard->hi = rsp - INSN_RED_ZONE;
    }
}


mlx5sim_insn_status_t
mlx5sim_insn_run(ucontext_t *uc, mlx5sim_insn_run_t *run)
{
    greg_t *gregs          = uc->uc_mcontext.gregs;
    uint64_t fxsave_in_use = MLX5SIM_INSN_XSTATE_SSE;
    mlx5sim_insn_cpu_t cpu;
    mlx5sim_insn_status_t status;
    unsigned i;

    for (i = 0; i < 16; ++i) {
        cpu.gpr[i] = gregs[insn_gregs[i]];
    }
    cpu.rip    = gregs[REG_RIP];
    cpu.rflags = gregs[REG_EFL];
    insn_vecs_find(uc, &cpu.vecs, &fxsave_in_use);
    insn_guard_find(uc, &cpu.guard);

    status = mlx5sim_insn_cpu_run(&cpu, run);
    if (status == MLX5SIM_INSN_OK) {
        for (i = 0; i < 16; ++i) {
            gregs[insn_gregs[i]] = cpu.gpr[i];
        }
        gregs[REG_RIP] = cpu.rip;
        gregs[REG_EFL] = cpu.rflags;
    }
    return status;
}
