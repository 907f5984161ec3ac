/* SPDX-License-Identifier: BSD-3-Clause */

/* Vector registers in saved state, and the way from ucontext_t and back */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "sim/insn/insn_int.h"

#include <cpuid.h>
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

/** Extended components found by number: 2, 5, 6, 7 */
typedef struct {
    uint32_t offset; /* In the standard format; 0 if the processor lacks it */
    uint32_t size;
} insn_component_t;

static insn_component_t insn_components[8];
static unsigned         insn_cpu_features;
static int              insn_cpuid_known;

/* In the order of @ref mlx5sim_insn_cpu_t.gpr */
static const uint8_t insn_gregs[16] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15
};


static void insn_components_init(void)
{
    unsigned max = (__get_cpuid_max(0, NULL) < 0xd) ? 0 : 8;
    unsigned eax, ebx, ecx, edx, i;

    for (i = 2; i < max; ++i) {
        __cpuid_count(0xd, i, eax, ebx, ecx, edx);
        /* Bit 0 of ecx: a supervisor component, never in a signal frame */
        if ((eax != 0) && !(ecx & 1)) {
            insn_components[i].offset = ebx;
            insn_components[i].size   = eax;
        }
    }
}


static void insn_cpu_features_init(void)
{
    unsigned eax, ebx, ecx, edx;
    unsigned features = 0;

    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        features |= ((ecx >> 27) & 1) ? INSN_CPU_MOVDIRI : 0;
        features |= ((ecx >> 28) & 1) ? INSN_CPU_MOVDIR64B : 0;
    }
    if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) {
        features |= ((ecx >> 6) & 1) ? INSN_CPU_SSE4A : 0;
    }
    insn_cpu_features = features;
}


/* CPUID may trap to a hypervisor, so not at every signal. Threads that get here
 * together write the same values. */
static inline void insn_cpuid_init(void)
{
    if (INSN_UNLIKELY(!__atomic_load_n(&insn_cpuid_known, __ATOMIC_ACQUIRE))) {
        insn_components_init();
        insn_cpu_features_init();
        __atomic_store_n(&insn_cpuid_known, 1, __ATOMIC_RELEASE);
    }
}


int insn_cpu_has(unsigned feature)
{
    insn_cpuid_init();
    return (insn_cpu_features & feature) != 0;
}


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


static uint8_t *insn_component(const struct _fpx_sw_bytes *sw, uint8_t *area,
                               unsigned number, uint64_t *avail_p)
{
    const insn_component_t *c = &insn_components[number];

    if (!(sw->xstate_bv & (1ul << number)) || (c->offset == 0) ||
        ((c->offset + c->size) > sw->xstate_size)) {
        return NULL;
    }
    *avail_p |= 1ul << number;
    return area + c->offset;
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
    if ((sw->magic1 != FP_XSTATE_MAGIC1) ||
        (sw->xstate_size < INSN_XSTATE_MIN)) {
        return;
    }
    insn_cpuid_init();
    vecs->in_use = (uint64_t*)(area + INSN_XSTATE_HEADER);
    vecs->ymm_hi = insn_component(sw, area, 2, &vecs->avail);
    vecs->opmask = (uint64_t*)insn_component(sw, area, 5, &vecs->avail);
    vecs->zmm_hi = insn_component(sw, area, 6, &vecs->avail);
    vecs->hi16   = insn_component(sw, area, 7, &vecs->avail);
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
