/* SPDX-License-Identifier: BSD-3-Clause */

/* Branches, stack, conditions, fences and hints */

#include <sim/insn/insn_int.h>


int insn_cond(uint64_t rflags, unsigned cc)
{
    int cf = !!(rflags & INSN_CF);
    int zf = !!(rflags & INSN_ZF);
    int sf = !!(rflags & INSN_SF);
    int of = !!(rflags & INSN_OF);
    int result;

    switch ((cc >> 1) & 7) {
    case 0:
        result = of;
        break;
    case 1:
        result = cf;
        break;
    case 2:
        result = zf;
        break;
    case 3:
        result = cf | zf;
        break;
    case 4:
        result = sf;
        break;
    case 5:
        result = !!(rflags & INSN_PF);
        break;
    case 6:
        result = sf ^ of;
        break;
    default:
        result = zf | (sf ^ of);
        break;
    }
    return result ^ (cc & 1);
}


/* With no shadow stack rdsspq does nothing (SDM 1, 17) */
int mlx5sim_insn_has_shadow_stack(void)
{
    uint64_t ssp = 0;

    __asm__ volatile("rdsspq %0" : "+r"(ssp));
    return ssp != 0;
}


/* A user-mode shadow stack would have to follow calls and returns; it can't be
 * written from here. Valgrind has none and may not know rdsspq. */
static int insn_has_shadow_stack(const insn_exec_t *x)
{
    return x->run->vec_valid && mlx5sim_insn_has_shadow_stack();
}


/* A branch to anywhere else faults: on Intel before it is taken (SDM 2, JMP),
 * on AMD when the target is fetched */
static int insn_is_user_address(uint64_t target)
{
    return (target >> 47) == 0;
}


static insn_step_t insn_jump(insn_exec_t *x, uint64_t target)
{
    if (!insn_is_user_address(target)) {
        return INSN_STEP_REFUSED;
    }
    x->next_rip = target;
    return INSN_STEP_DONE;
}


static insn_step_t insn_push(insn_exec_t *x, uint64_t value)
{
    uint64_t rsp     = x->cpu->gpr[INSN_RSP] - sizeof(value);
    insn_step_t step = insn_store(x, rsp, &value, sizeof(value));

    if (step == INSN_STEP_DONE) {
        x->cpu->gpr[INSN_RSP] = rsp;
    }
    return step;
}


insn_step_t insn_do_nop(insn_exec_t *x, const insn_t *in)
{
    return INSN_STEP_DONE;
}


/* 0F 0D prefetchw, 0F 18 prefetch, 0F 1E, 0F 1F nop: no memory access */
insn_step_t insn_do_hint(insn_exec_t *x, const insn_t *in)
{
    if ((in->opcode == 0x0d) && !in->is_mem) {
        return INSN_STEP_REFUSED;
    }
    /* F3 0F 1E: endbr64, endbr32 do nothing here, but rdssp may write */
    if ((in->opcode == 0x1e) && (in->pp >= INSN_PP_F3) &&
        (in->is_mem || (in->mod_reg != 7) || (in->rm < 2) || (in->rm > 3))) {
        return INSN_STEP_REFUSED;
    }
    return INSN_STEP_DONE;
}


/* 0F AE /5 lfence, /6 mfence, /7 sfence. The interpreter's own stores are
 * ordinary ones in program order, so only mfence has anything to add. */
insn_step_t insn_do_fence(insn_exec_t *x, const insn_t *in)
{
    if (in->is_mem || (in->mod_reg < 5) || (in->pp != INSN_PP_NONE)) {
        return INSN_STEP_REFUSED;
    }
    if (in->mod_reg == 6) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } else {
        __asm__ volatile("" ::: "memory");
    }
    return INSN_STEP_DONE;
}


/* F5 cmc, F8 clc, F9 stc, FC cld, FD std */
insn_step_t insn_do_flag(insn_exec_t *x, const insn_t *in)
{
    uint64_t *rflags = &x->cpu->rflags;

    switch (in->opcode) {
    case 0xf5:
        *rflags ^= INSN_CF;
        break;
    case 0xf8:
        *rflags &= ~INSN_CF;
        break;
    case 0xf9:
        *rflags |= INSN_CF;
        break;
    case 0xfc:
        *rflags &= ~INSN_DF;
        break;
    default:
        *rflags |= INSN_DF;
        break;
    }
    return INSN_STEP_DONE;
}


/* 50-57, 68, 6A */
insn_step_t insn_do_push(insn_exec_t *x, const insn_t *in)
{
    if (in->op->flags & (INSN_F_IMM8 | INSN_F_IMMZ)) {
        return insn_push(x, in->imm);
    }
    return insn_push(x, x->cpu->gpr[in->rm]);
}


/* 58-5F; pop rsp leaves the popped value in rsp */
insn_step_t insn_do_pop(insn_exec_t *x, const insn_t *in)
{
    uint64_t rsp = x->cpu->gpr[INSN_RSP];
    uint64_t value;
    insn_step_t step;

    step = insn_load(x, rsp, &value, sizeof(value));
    if (step == INSN_STEP_DONE) {
        x->cpu->gpr[INSN_RSP] = rsp + sizeof(value);
        x->cpu->gpr[in->rm]   = value;
    }
    return step;
}


/* C9 */
insn_step_t insn_do_leave(insn_exec_t *x, const insn_t *in)
{
    uint64_t rbp = x->cpu->gpr[INSN_RBP];
    uint64_t value;
    insn_step_t step;

    step = insn_load(x, rbp, &value, sizeof(value));
    if (step == INSN_STEP_DONE) {
        x->cpu->gpr[INSN_RSP] = rbp + sizeof(value);
        x->cpu->gpr[INSN_RBP] = value;
    }
    return step;
}


/* 70-7F, 0F 80-8F */
insn_step_t insn_do_jcc(insn_exec_t *x, const insn_t *in)
{
    if (!insn_cond(x->cpu->rflags, in->opcode)) {
        return INSN_STEP_DONE;
    }
    return insn_jump(x, x->next_rip + in->imm);
}


/* E9, EB */
insn_step_t insn_do_jmp(insn_exec_t *x, const insn_t *in)
{
    return insn_jump(x, x->next_rip + in->imm);
}


/* E0 loopne, E1 loope, E2 loop, E3 jrcxz; flags are kept */
insn_step_t insn_do_loop(insn_exec_t *x, const insn_t *in)
{
    uint64_t rcx = x->cpu->gpr[INSN_RCX];
    int zf       = !!(x->cpu->rflags & INSN_ZF);
    int taken;

    if (in->addr32) {
        return INSN_STEP_REFUSED;
    }
    if (in->opcode == 0xe3) {
        taken = (rcx == 0);
    } else {
        --rcx;
        taken = (rcx != 0);
        if (in->opcode != 0xe2) {
            taken &= (zf == (in->opcode & 1));
        }
    }
    if (taken && (insn_jump(x, x->next_rip + in->imm) != INSN_STEP_DONE)) {
        return INSN_STEP_REFUSED;
    }
    x->cpu->gpr[INSN_RCX] = rcx;
    return INSN_STEP_DONE;
}


static insn_step_t insn_call(insn_exec_t *x, uint64_t target)
{
    insn_step_t step;

    if (insn_has_shadow_stack(x) || !insn_is_user_address(target)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_push(x, x->next_rip);
    if (step == INSN_STEP_DONE) {
        x->next_rip = target;
    }
    return step;
}


/* E8 */
insn_step_t insn_do_call(insn_exec_t *x, const insn_t *in)
{
    return insn_call(x, x->next_rip + in->imm);
}


/* C3, C2 */
insn_step_t insn_do_ret(insn_exec_t *x, const insn_t *in)
{
    uint64_t rsp = x->cpu->gpr[INSN_RSP];
    uint64_t target;
    insn_step_t step;

    if (insn_has_shadow_stack(x)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_load(x, rsp, &target, sizeof(target));
    if (step != INSN_STEP_DONE) {
        return step;
    }
    if (!insn_is_user_address(target)) {
        return INSN_STEP_REFUSED;
    }
    x->cpu->gpr[INSN_RSP] = rsp + sizeof(target) + (uint16_t)in->imm;
    x->next_rip           = target;
    return INSN_STEP_DONE;
}


/* FF /2 call, /4 jmp, /6 push with a 64-bit operand; /0 and /1 are inc, dec */
insn_step_t insn_do_call_group(insn_exec_t *x, const insn_t *in)
{
    uint64_t value;
    insn_step_t step;

    if (in->mod_reg < 2) {
        return insn_do_incdec_group(x, in);
    }
    /* 16-bit forms differ by vendor; 3, 5 are far branches */
    if ((in->mod_reg & 1) || (in->size == 2)) {
        return INSN_STEP_REFUSED;
    }
    if ((in->mod_reg == 2) && insn_has_shadow_stack(x)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, sizeof(value), &value);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    switch (in->mod_reg) {
    case 2:
        return insn_call(x, value);
    case 4:
        return insn_jump(x, value);
    default:
        return insn_push(x, value);
    }
}


/* 0F 90-9F */
insn_step_t insn_do_setcc(insn_exec_t *x, const insn_t *in)
{
    return insn_rm_write(x, in, 1, insn_cond(x->cpu->rflags, in->opcode));
}


/* 0F 40-4F: the source is read, and a 32-bit destination zero-extended, whether
 * or not the condition holds */
insn_step_t insn_do_cmov(insn_exec_t *x, const insn_t *in)
{
    uint64_t value;
    insn_step_t step;

    step = insn_rm_read(x, in, in->size, &value);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    if (!insn_cond(x->cpu->rflags, in->opcode)) {
        value = x->cpu->gpr[in->reg];
    }
    insn_gpr_write(x, in, in->reg, in->size, value);
    return INSN_STEP_DONE;
}
