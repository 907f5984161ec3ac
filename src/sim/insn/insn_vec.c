/* SPDX-License-Identifier: BSD-3-Clause */

/* Moves of vector registers */

#include <sim/insn/insn_int.h>


/* No opmask, no broadcast and, with two operands, no vvvv */
static int insn_vec_is_plain(const insn_t *in, int two_operands)
{
    return !in->mask && !in->zeroing && !in->bcast &&
           !(two_operands && in->vvvv);
}


/* EVEX.W must agree with the prefix for the packed and scalar float moves:
 * single precision (none, F3) has 0, double (66, F2) has 1 */
static int insn_vec_float_w(const insn_t *in)
{
    return (in->enc != INSN_ENC_EVEX) || (in->w == (in->pp & 1));
}


static insn_step_t insn_vec_to_mem(insn_exec_t *x, const insn_t *in,
                                   unsigned offset, unsigned length)
{
    uint64_t addr = insn_ea(x, in);
    insn_vec_t value;

    if (!x->run->vec_valid) {
        return insn_store(x, addr, NULL, length);
    }
    if (!insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_read(x->cpu, in->reg, in->vl, &value);
    return insn_store(x, addr, value.b + offset, length);
}


static void insn_vec_set(insn_exec_t *x, const insn_t *in, unsigned reg,
                         unsigned length, const insn_vec_t *value)
{
    insn_vec_write(x->cpu, reg, length, value, in->enc != INSN_ENC_LEGACY);
}


/* Scalar float moves between registers merge: the low element from rm, the rest
 * from vvvv (VEX, EVEX) or from the destination (legacy). */
static insn_step_t insn_vec_merge_scalar(insn_exec_t *x, const insn_t *in,
                                         unsigned dest, unsigned source,
                                         unsigned size)
{
    unsigned upper = (in->enc == INSN_ENC_LEGACY) ? dest : in->vvvv;
    insn_vec_t value, low;

    if (!insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_read(x->cpu, upper, 16, &value);
    insn_vec_read(x->cpu, source, 16, &low);
    memcpy(value.b, low.b, size);
    insn_vec_set(x, in, dest, 16, &value);
    return INSN_STEP_DONE;
}


/* What a full move does with its prefix and W: 0 if it does not exist, else the
 * bytes moved; *align_p is the alignment memory must have. */
static unsigned insn_vec_move_kind(const insn_t *in, unsigned *align_p)
{
    int evex = (in->enc == INSN_ENC_EVEX);

    *align_p = 1;
    switch (in->opcode) {
    case 0x10: /* movups, movupd, movss, movsd */
    case 0x11:
        if (!insn_vec_float_w(in)) {
            return 0;
        }
        return (in->pp == INSN_PP_F3) ? 4 : (in->pp == INSN_PP_F2) ? 8 : in->vl;
    case 0x2b: /* movntps, movntpd, and AMD's movntss, movntsd */
        if ((in->pp >= INSN_PP_F3) && (in->enc == INSN_ENC_LEGACY)) {
            return !insn_cpu_has(INSN_CPU_SSE4A) ? 0 :
                   (in->pp == INSN_PP_F3)        ? 4 : 8;
        }
        /* Fall through */
    case 0x28: /* movaps, movapd */
    case 0x29:
        *align_p = in->vl;
        return ((in->pp < INSN_PP_F3) && insn_vec_float_w(in)) ? in->vl : 0;
    case 0x6f: /* movdqa, movdqu, vmovdqu8/16 */
    case 0x7f:
        if (in->pp == INSN_PP_66) {
            *align_p = in->vl;
            return in->vl;
        }
        return ((in->pp == INSN_PP_F3) || (evex && (in->pp == INSN_PP_F2))) ?
               in->vl : 0;
    case 0xe7: /* movntdq */
    case 0x2a: /* movntdqa, in 0F38 */
        *align_p = in->vl;
        return ((in->pp == INSN_PP_66) && !(evex && in->w)) ? in->vl : 0;
    default: /* F0 lddqu */
        return (in->pp == INSN_PP_F2) ? in->vl : 0;
    }
}


static int insn_vec_is_mem_only(const insn_t *in)
{
    return (in->opcode == 0x2b) || (in->opcode == 0xe7) ||
           (in->opcode == 0x2a) || (in->opcode == 0xf0);
}


/* 0F 10, 28, 6F, F0 and 0F38 2A */
insn_step_t insn_do_vload(insn_exec_t *x, const insn_t *in)
{
    unsigned align;
    unsigned length = insn_vec_move_kind(in, &align);
    int scalar      = (in->opcode == 0x10) && (in->pp >= INSN_PP_F3);
    insn_vec_t value;
    uint64_t addr;
    insn_step_t step;

    if (length == 0) {
        return INSN_STEP_REFUSED;
    }
    if (in->mask) {
        return insn_vec_masked(x, in, align);
    }
    if (!insn_vec_is_plain(in, in->is_mem || !scalar)) {
        return INSN_STEP_REFUSED;
    }
    if (!in->is_mem) {
        if (insn_vec_is_mem_only(in)) {
            return INSN_STEP_REFUSED;
        }
        if (scalar) {
            return insn_vec_merge_scalar(x, in, in->reg, in->rm_vec, length);
        }
        if (!insn_vec_usable(x, in)) {
            return INSN_STEP_REFUSED;
        }
        insn_vec_read(x->cpu, in->rm_vec, length, &value);
        insn_vec_set(x, in, in->reg, length, &value);
        return INSN_STEP_DONE;
    }

    addr = insn_ea(x, in);
    if ((addr % align) || !insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    memset(value.b, 0, 16); /* what a scalar load clears */
    step = insn_load(x, addr, &value, length);
    if (step == INSN_STEP_DONE) {
        insn_vec_set(x, in, in->reg, scalar ? 16 : length, &value);
    }
    return step;
}


/* 0F 11, 29, 2B, 7F, E7 */
insn_step_t insn_do_vstore(insn_exec_t *x, const insn_t *in)
{
    unsigned align;
    unsigned length = insn_vec_move_kind(in, &align);
    int scalar      = (in->opcode == 0x11) && (in->pp >= INSN_PP_F3);
    insn_vec_t value;

    if (length == 0) {
        return INSN_STEP_REFUSED;
    }
    if (in->mask) {
        return insn_vec_masked(x, in, align);
    }
    if (!insn_vec_is_plain(in, in->is_mem || !scalar)) {
        return INSN_STEP_REFUSED;
    }
    if (in->is_mem) {
        if (insn_ea(x, in) % align) {
            return INSN_STEP_REFUSED;
        }
        return insn_vec_to_mem(x, in, 0, length);
    }
    if (insn_vec_is_mem_only(in)) {
        return INSN_STEP_REFUSED;
    }
    if (scalar) {
        return insn_vec_merge_scalar(x, in, in->rm_vec, in->reg, length);
    }
    if (!insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_read(x->cpu, in->reg, length, &value);
    insn_vec_set(x, in, in->rm_vec, length, &value);
    return INSN_STEP_DONE;
}


/* 0F 12 movlps, movlpd, movhlps; 16 movhps, movhpd, movlhps */
insn_step_t insn_do_vload_half(insn_exec_t *x, const insn_t *in)
{
    int high       = (in->opcode == 0x16);
    unsigned upper = (in->enc == INSN_ENC_LEGACY) ? in->reg : in->vvvv;
    insn_vec_t value, source;
    insn_step_t step;

    /* F3 and F2 are moves that duplicate elements */
    if ((in->pp >= INSN_PP_F3) || (in->vl != 16) ||
        !insn_vec_float_w(in) || !insn_vec_is_plain(in, 0) ||
        !insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_read(x->cpu, upper, 16, &value);
    if (in->is_mem) {
        step = insn_load(x, insn_ea(x, in), &source.q[0], 8);
        if (step != INSN_STEP_DONE) {
            return step;
        }
        value.q[high] = source.q[0];
    } else {
        if (in->pp != INSN_PP_NONE) {
            return INSN_STEP_REFUSED;
        }
        insn_vec_read(x->cpu, in->rm_vec, 16, &source);
        value.q[high] = source.q[!high];
    }
    insn_vec_set(x, in, in->reg, 16, &value);
    return INSN_STEP_DONE;
}


/* 0F 13 movlps, movlpd; 17 movhps, movhpd */
insn_step_t insn_do_vstore_half(insn_exec_t *x, const insn_t *in)
{
    if ((in->pp >= INSN_PP_F3) || !in->is_mem || (in->vl != 16) ||
        !insn_vec_float_w(in) || !insn_vec_is_plain(in, 1)) {
        return INSN_STEP_REFUSED;
    }
    return insn_vec_to_mem(x, in, (in->opcode == 0x17) ? 8 : 0, 8);
}


/* 66 0F 6E movd, movq from a general register or memory */
insn_step_t insn_do_movd_load(insn_exec_t *x, const insn_t *in)
{
    insn_vec_t value;
    insn_step_t step;

    if ((in->pp != INSN_PP_66) || (in->vl != 16) ||
        !insn_vec_is_plain(in, 1) || !insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    memset(value.b, 0, 16);
    step = insn_rm_read(x, in, in->size, &value.q[0]);
    if (step == INSN_STEP_DONE) {
        insn_vec_set(x, in, in->reg, 16, &value);
    }
    return step;
}


/* Low quadword from rm to reg, or reg to rm, clearing the rest */
static insn_step_t insn_movq_reg(insn_exec_t *x, const insn_t *in,
                                 unsigned dest, unsigned source)
{
    insn_vec_t value;

    if (!insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_read(x->cpu, source, 16, &value);
    value.q[1] = 0;
    insn_vec_set(x, in, dest, 16, &value);
    return INSN_STEP_DONE;
}


/* 66 0F 7E movd, movq to a general register or memory; F3 0F 7E is the load
 * movq xmm, xmm/m64 */
insn_step_t insn_do_movd_store(insn_exec_t *x, const insn_t *in)
{
    insn_vec_t value;
    insn_step_t step;

    if ((in->vl != 16) || !insn_vec_is_plain(in, 1)) {
        return INSN_STEP_REFUSED;
    }
    if (in->pp == INSN_PP_F3) {
        if ((in->enc == INSN_ENC_EVEX) && !in->w) {
            return INSN_STEP_REFUSED;
        }
        if (!in->is_mem) {
            return insn_movq_reg(x, in, in->reg, in->rm_vec);
        }
        if (!insn_vec_usable(x, in)) {
            return INSN_STEP_REFUSED;
        }
        value.q[1] = 0;
        step       = insn_load(x, insn_ea(x, in), &value.q[0], 8);
        if (step == INSN_STEP_DONE) {
            insn_vec_set(x, in, in->reg, 16, &value);
        }
        return step;
    }
    if (in->pp != INSN_PP_66) {
        return INSN_STEP_REFUSED;
    }
    if (in->is_mem) {
        return insn_vec_to_mem(x, in, 0, in->size);
    }
    if (!insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_read(x->cpu, in->reg, 16, &value);
    insn_gpr_write(x, in, in->rm, in->size, value.q[0]);
    return INSN_STEP_DONE;
}


/* 66 0F D6 movq xmm/m64, xmm */
insn_step_t insn_do_movq_store(insn_exec_t *x, const insn_t *in)
{
    if ((in->pp != INSN_PP_66) || (in->vl != 16) ||
        ((in->enc == INSN_ENC_EVEX) && !in->w) || !insn_vec_is_plain(in, 1)) {
        return INSN_STEP_REFUSED;
    }
    if (in->is_mem) {
        return insn_vec_to_mem(x, in, 0, 8);
    }
    return insn_movq_reg(x, in, in->rm_vec, in->reg);
}


/* VEX 0F 77 vzeroupper, vzeroall; without VEX it is emms */
insn_step_t insn_do_vzero(insn_exec_t *x, const insn_t *in)
{
    if ((in->pp != INSN_PP_NONE) || in->vvvv ||
        !insn_vec_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_zero(x->cpu, in->vl == 32);
    return INSN_STEP_DONE;
}
