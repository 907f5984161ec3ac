/* SPDX-License-Identifier: BSD-3-Clause */

/* Shifts, rotations, bit tests and scans */

#include <sim/insn/insn_int.h>

enum {
    INSN_SHIFT_ROL = 0,
    INSN_SHIFT_ROR = 1,
    INSN_SHIFT_RCL = 2,
    INSN_SHIFT_RCR = 3,
    INSN_SHIFT_SHL = 4,
    INSN_SHIFT_SHR = 5,
    INSN_SHIFT_SAL = 6, /* Undocumented alias of 4 */
    INSN_SHIFT_SAR = 7
};


/* C0, C1, D0-D3. OF is defined for a count of one only; it is computed the same
 * way for all. The count is not 0 when the flags change. */
insn_step_t insn_do_shift(insn_exec_t *x, const insn_t *in)
{
    unsigned size  = in->size;
    unsigned bits  = 8 * size;
    unsigned limit = (size == 8) ? 0x3f : 0x1f;
    uint64_t mask  = insn_mask(size);
    uint64_t a, result;
    unsigned count, turn, cf, of, top;
    insn_step_t step;

    if ((in->mod_reg == INSN_SHIFT_RCL) || (in->mod_reg == INSN_SHIFT_RCR)) {
        return INSN_STEP_REFUSED;
    }
    if (in->op->flags & INSN_F_IMM8) {
        count = in->imm & limit;
    } else if (in->opcode & 2) {
        count = x->cpu->gpr[INSN_RCX] & limit;
    } else {
        count = 1;
    }
    step = insn_rm_read(x, in, size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    if (count == 0) {
        /* Written back all the same: a 32-bit register is zero-extended */
        return insn_rm_write(x, in, size, a);
    }

    turn = count % bits;
    switch (in->mod_reg) {
    case INSN_SHIFT_ROL:
        result = turn ? (((a << turn) | (a >> (bits - turn))) & mask) : a;
        cf     = result & 1;
        break;
    case INSN_SHIFT_ROR:
        result = turn ? (((a >> turn) | (a << (bits - turn))) & mask) : a;
        cf     = (result >> (bits - 1)) & 1;
        break;
    case INSN_SHIFT_SHL:
    case INSN_SHIFT_SAL:
        result = (a << count) & mask;
        cf     = (count <= bits) ? (a >> (bits - count)) & 1 : 0;
        break;
    case INSN_SHIFT_SHR:
        result = a >> count;
        cf     = (a >> (count - 1)) & 1;
        break;
    default:
        result = (uint64_t)(insn_sext(a, size) >> count) & mask;
        cf     = (insn_sext(a, size) >> (count - 1)) & 1;
        break;
    }

    top = (result >> (bits - 1)) & 1;
    switch (in->mod_reg) {
    case INSN_SHIFT_ROR:
        of = top ^ ((result >> (bits - 2)) & 1);
        break;
    case INSN_SHIFT_SHR:
        of = (a >> (bits - 1)) & 1;
        break;
    case INSN_SHIFT_SAR:
        of = 0;
        break;
    default:
        of = top ^ cf;
        break;
    }

    step = insn_rm_write(x, in, size, result);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    insn_flags_set(x, INSN_CF | INSN_OF,
                   (cf ? INSN_CF : 0) | (of ? INSN_OF : 0));
    if (in->mod_reg >= INSN_SHIFT_SHL) {
        insn_flags_set(x, INSN_ZF | INSN_SF | INSN_PF,
                       insn_flags_result(result, size));
    }
    return INSN_STEP_DONE;
}


/* 0F A4/A5 shld, AC/AD shrd */
insn_step_t insn_do_shift_double(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->size;
    unsigned bits = 8 * size;
    int right     = (in->opcode >= 0xa8);
    uint64_t a, b, result, cf, of;
    unsigned count;
    insn_step_t step;

    count  = (in->op->flags & INSN_F_IMM8) ? (unsigned)in->imm :
                                             (unsigned)x->cpu->gpr[INSN_RCX];
    count &= (size == 8) ? 0x3f : 0x1f;
    if (count > bits) {
        return INSN_STEP_REFUSED; /* undefined result */
    }
    step = insn_rm_read(x, in, size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    if (count == 0) {
        return insn_rm_write(x, in, size, a);
    }
    b = insn_gpr_read(x, in, in->reg, size);
    if (count == bits) { /* 16 bits by 16 */
        result = b;
        cf     = right ? a >> (bits - 1) : a;
    } else if (right) {
        result = (a >> count) | (b << (bits - count));
        cf     = a >> (count - 1);
    } else {
        result = (a << count) | (b >> (bits - count));
        cf     = a >> (bits - count);
    }
    result &= insn_mask(size);
    of      = (a ^ result) >> (bits - 1);
    step    = insn_rm_write(x, in, size, result);
    if (step == INSN_STEP_DONE) {
        insn_flags_set(x, INSN_STATUS_FLAGS & ~INSN_AF,
                       ((cf & 1) ? INSN_CF : 0) | ((of & 1) ? INSN_OF : 0) |
                       insn_flags_result(result, size));
    }
    return step;
}


/* 0F A3 bt, AB bts, B3 btr, BB btc, and group 0F BA /4 to /7. With a register
 * index and memory, the access may be far from the operand: refused. */
insn_step_t insn_do_bt(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->size;
    unsigned which;
    uint64_t a, bit;
    insn_step_t step;

    if (in->opcode == 0xba) {
        if (in->mod_reg < 4) {
            return INSN_STEP_REFUSED;
        }
        which = in->mod_reg & 3;
        bit   = in->imm;
    } else {
        if (in->is_mem) {
            return INSN_STEP_REFUSED;
        }
        which = (in->opcode >> 3) & 3;
        bit   = x->cpu->gpr[in->reg];
    }
    bit  = 1ul << (bit & ((8 * size) - 1));
    step = insn_rm_read(x, in, size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    if (which != 0) {
        step = insn_rm_write(x, in, size,
                             (which == 1) ? a | bit :
                             (which == 2) ? a & ~bit : a ^ bit);
        if (step != INSN_STEP_DONE) {
            return step;
        }
    }
    insn_flags_set(x, INSN_CF, (a & bit) ? INSN_CF : 0);
    return INSN_STEP_DONE;
}


/* 0F BC bsf, BD bsr. With F3 they are tzcnt and lzcnt, or the same as without
 * on a processor that lacks those: refused for F3 unless both agree, which is
 * never so for bsr and never for the flags. */
insn_step_t insn_do_scan(insn_exec_t *x, const insn_t *in)
{
    uint64_t a;
    insn_step_t step;

    if (in->pp >= INSN_PP_F3) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, in->size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    if (a == 0) {
        return INSN_STEP_REFUSED; /* undefined result */
    }
    insn_gpr_write(x, in, in->reg, in->size,
                   (in->opcode & 1) ? 63 - __builtin_clzl(a) :
                                      __builtin_ctzl(a));
    insn_flags_set(x, INSN_ZF, 0);
    return INSN_STEP_DONE;
}


/* F3 0F B8 */
insn_step_t insn_do_popcnt(insn_exec_t *x, const insn_t *in)
{
    uint64_t a;
    insn_step_t step;

    if (in->pp != INSN_PP_F3) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, in->size, &a);
    if (step == INSN_STEP_DONE) {
        insn_gpr_write(x, in, in->reg, in->size, __builtin_popcountl(a));
        insn_flags_set(x, INSN_STATUS_FLAGS, (a == 0) ? INSN_ZF : 0);
    }
    return step;
}


/* VEX 0F38 F2 */
insn_step_t insn_do_andn(insn_exec_t *x, const insn_t *in)
{
    uint64_t a, result;
    insn_step_t step;

    if ((in->pp != INSN_PP_NONE) || (in->vl != 16)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, in->size, &a);
    if (step == INSN_STEP_DONE) {
        result = a & ~x->cpu->gpr[in->vvvv] & insn_mask(in->size);
        insn_gpr_write(x, in, in->reg, in->size, result);
        insn_flags_set(x, INSN_CF | INSN_OF | INSN_ZF | INSN_SF,
                       insn_flags_result(result, in->size) & ~INSN_PF);
    }
    return step;
}


/* VEX 0F38 F5: clear the bits from an index on */
insn_step_t insn_do_bzhi(insn_exec_t *x, const insn_t *in)
{
    unsigned index = x->cpu->gpr[in->vvvv] & 0xff;
    int keep       = index >= (8u * in->size);
    uint64_t a;
    insn_step_t step;

    if ((in->pp != INSN_PP_NONE) || (in->vl != 16)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, in->size, &a);
    if (step == INSN_STEP_DONE) {
        if (!keep) {
            a &= (1ul << index) - 1;
        }
        insn_gpr_write(x, in, in->reg, in->size, a);
        insn_flags_set(x, INSN_CF | INSN_OF | INSN_ZF | INSN_SF,
                       (insn_flags_result(a, in->size) & ~INSN_PF) |
                       (keep ? INSN_CF : 0));
    }
    return step;
}


/* VEX 0F38 F7: 66 shlx, F3 sarx, F2 shrx */
insn_step_t insn_do_shiftx(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->size;
    unsigned count;
    uint64_t a;
    insn_step_t step;

    if ((in->pp == INSN_PP_NONE) || (in->vl != 16)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    count = x->cpu->gpr[in->vvvv] & ((8 * size) - 1);
    if (in->pp == INSN_PP_66) {
        a <<= count;
    } else if (in->pp == INSN_PP_F2) {
        a >>= count;
    } else {
        a = insn_sext(a, size) >> count;
    }
    insn_gpr_write(x, in, in->reg, size, a);
    return INSN_STEP_DONE;
}


/* VEX F2 0F3A F0 */
insn_step_t insn_do_rorx(insn_exec_t *x, const insn_t *in)
{
    unsigned bits = 8 * in->size;
    unsigned turn = in->imm & (bits - 1);
    uint64_t a;
    insn_step_t step;

    if ((in->pp != INSN_PP_F2) || (in->vl != 16) || (in->vvvv != 0)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, in->size, &a);
    if (step == INSN_STEP_DONE) {
        if (turn != 0) {
            a = (a >> turn) | (a << (bits - turn));
        }
        insn_gpr_write(x, in, in->reg, in->size, a);
    }
    return step;
}
