/* SPDX-License-Identifier: BSD-3-Clause */

/* Moves and arithmetic on general registers */

#include <sim/insn/insn_int.h>

enum {
    INSN_ALU_ADD,
    INSN_ALU_OR,
    INSN_ALU_ADC,
    INSN_ALU_SBB,
    INSN_ALU_AND,
    INSN_ALU_SUB,
    INSN_ALU_XOR,
    INSN_ALU_CMP
};


/* a and b are zero-extended operands; the result is too. The status flags go to
 * *flags_p. AF, which the logical operations leave undefined, is cleared. */
static uint64_t insn_alu(unsigned op, uint64_t a, uint64_t b, unsigned size,
                         uint64_t rflags, uint64_t *flags_p)
{
    uint64_t mask  = insn_mask(size);
    unsigned top   = (8 * size) - 1;
    uint64_t carry = 0;
    uint64_t result, flags, out;

    switch (op) {
    case INSN_ALU_ADC:
        carry = rflags & INSN_CF;
        /* Fall through */
    case INSN_ALU_ADD:
        result = (a + b + carry) & mask;
        out    = (a & b) | ((a | b) & ~result);
        flags  = ((out >> top) & 1) ? INSN_CF : 0;
        if (((a ^ result) & (b ^ result)) >> top & 1) {
            flags |= INSN_OF;
        }
        flags |= (a ^ b ^ result) & INSN_AF;
        break;
    case INSN_ALU_SBB:
        carry = rflags & INSN_CF;
        /* Fall through */
    case INSN_ALU_SUB:
    case INSN_ALU_CMP:
        result = (a - b - carry) & mask;
        out    = (~a & b) | ((~a | b) & result);
        flags  = ((out >> top) & 1) ? INSN_CF : 0;
        if (((a ^ b) & (a ^ result)) >> top & 1) {
            flags |= INSN_OF;
        }
        flags |= (a ^ b ^ result) & INSN_AF;
        break;
    case INSN_ALU_OR:
        result = a | b;
        flags  = 0;
        break;
    case INSN_ALU_AND:
        result = a & b;
        flags  = 0;
        break;
    default:
        result = a ^ b;
        flags  = 0;
        break;
    }
    *flags_p = flags | insn_flags_result(result, size);
    return result;
}


/* 00-3F: the low three bits of the opcode give the operands */
insn_step_t insn_do_alu(insn_exec_t *x, const insn_t *in)
{
    unsigned op   = in->op->arg;
    unsigned size = in->size;
    uint64_t a, b, result, flags;
    insn_step_t step;

    switch (in->opcode & 7) {
    case 0:
    case 1: /* rm, reg */
        step = insn_rm_read(x, in, size, &a);
        if (step != INSN_STEP_DONE) {
            return step;
        }
        b      = insn_gpr_read(x, in, in->reg, size);
        result = insn_alu(op, a, b, size, x->cpu->rflags, &flags);
        if (op != INSN_ALU_CMP) {
            step = insn_rm_write(x, in, size, result);
            if (step != INSN_STEP_DONE) {
                return step;
            }
        }
        break;
    case 2:
    case 3: /* reg, rm */
        step = insn_rm_read(x, in, size, &b);
        if (step != INSN_STEP_DONE) {
            return step;
        }
        a      = insn_gpr_read(x, in, in->reg, size);
        result = insn_alu(op, a, b, size, x->cpu->rflags, &flags);
        if (op != INSN_ALU_CMP) {
            insn_gpr_write(x, in, in->reg, size, result);
        }
        break;
    default: /* al/ax/eax/rax, immediate */
        a      = x->cpu->gpr[INSN_RAX] & insn_mask(size);
        b      = in->imm & insn_mask(size);
        result = insn_alu(op, a, b, size, x->cpu->rflags, &flags);
        if (op != INSN_ALU_CMP) {
            insn_gpr_write(x, in, INSN_RAX, size, result);
        }
        break;
    }
    insn_flags_set(x, INSN_STATUS_FLAGS, flags);
    return INSN_STEP_DONE;
}


/* 80, 81, 83: ModRM.reg selects the operation */
insn_step_t insn_do_alu_group(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->size;
    uint64_t a, result, flags;
    insn_step_t step;

    step = insn_rm_read(x, in, size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    result = insn_alu(in->mod_reg, a, in->imm & insn_mask(size), size,
                      x->cpu->rflags, &flags);
    if (in->mod_reg != INSN_ALU_CMP) {
        step = insn_rm_write(x, in, size, result);
        if (step != INSN_STEP_DONE) {
            return step;
        }
    }
    insn_flags_set(x, INSN_STATUS_FLAGS, flags);
    return INSN_STEP_DONE;
}


/* 84, 85, A8, A9 */
insn_step_t insn_do_test(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->size;
    uint64_t a, b, flags;
    insn_step_t step;

    if (in->op->flags & INSN_F_MODRM) {
        step = insn_rm_read(x, in, size, &a);
        if (step != INSN_STEP_DONE) {
            return step;
        }
        b = insn_gpr_read(x, in, in->reg, size);
    } else {
        a = x->cpu->gpr[INSN_RAX];
        b = in->imm & insn_mask(size);
    }
    insn_alu(INSN_ALU_AND, a, b, size, 0, &flags);
    insn_flags_set(x, INSN_STATUS_FLAGS, flags);
    return INSN_STEP_DONE;
}


/* 88-8B */
insn_step_t insn_do_mov(insn_exec_t *x, const insn_t *in)
{
    uint64_t value;
    insn_step_t step;

    if (in->opcode & 2) {
        step = insn_rm_read(x, in, in->size, &value);
        if (step == INSN_STEP_DONE) {
            insn_gpr_write(x, in, in->reg, in->size, value);
        }
        return step;
    }
    return insn_rm_write(x, in, in->size,
                         insn_gpr_read(x, in, in->reg, in->size));
}


/* B0-BF, C6 /0, C7 /0 */
insn_step_t insn_do_mov_imm(insn_exec_t *x, const insn_t *in)
{
    if (!(in->op->flags & INSN_F_MODRM)) {
        insn_gpr_write(x, in, in->rm, in->size, in->imm);
        return INSN_STEP_DONE;
    }
    if (in->mod_reg != 0) {
        return INSN_STEP_REFUSED;
    }
    return insn_rm_write(x, in, in->size, in->imm);
}


/* 63, 0F B6/B7/BE/BF; arg is the source size, plus 16 to sign-extend */
insn_step_t insn_do_movx(insn_exec_t *x, const insn_t *in)
{
    unsigned source = in->op->arg & 15;
    uint64_t value;
    insn_step_t step;

    if (source > in->size) {
        return INSN_STEP_REFUSED; /* movsxd with a 16-bit destination */
    }
    step = insn_rm_read(x, in, source, &value);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    if (in->op->arg & 16) {
        value = insn_sext(value, source);
    }
    insn_gpr_write(x, in, in->reg, in->size, value);
    return INSN_STEP_DONE;
}


static uint64_t insn_swap(uint64_t value, unsigned size)
{
    return __builtin_bswap64(value) >> (64 - (8 * size));
}


/* 0F38 F0/F1; with F2 they are crc32. Both use 66 for the operand size. */
insn_step_t insn_do_movbe(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->size;
    uint64_t value;
    insn_step_t step;

    if (!in->is_mem || (in->pp >= INSN_PP_F3)) {
        return INSN_STEP_REFUSED;
    }
    if (in->opcode & 1) {
        value = insn_gpr_read(x, in, in->reg, size);
        return insn_rm_write(x, in, size, insn_swap(value, size));
    }
    step = insn_rm_read(x, in, size, &value);
    if (step == INSN_STEP_DONE) {
        insn_gpr_write(x, in, in->reg, size, insn_swap(value, size));
    }
    return step;
}


/* 0F C3 movnti, 0F38 F9 movdiri */
insn_step_t insn_do_movnti(insn_exec_t *x, const insn_t *in)
{
    if (!in->is_mem || (in->pp != INSN_PP_NONE) ||
        ((in->opcode == 0xf9) && !insn_cpu_has(INSN_CPU_MOVDIRI))) {
        return INSN_STEP_REFUSED;
    }
    return insn_rm_write(x, in, in->size,
                         insn_gpr_read(x, in, in->reg, in->size));
}


/* 66 0F38 F8: 64 bytes from ModRM.rm to the address in ModRM.reg */
insn_step_t insn_do_movdir64b(insn_exec_t *x, const insn_t *in)
{
    uint64_t dest = x->cpu->gpr[in->reg];
    insn_vec_t value;
    insn_step_t step;

    if (in->addr32) {
        dest = (uint32_t)dest;
    }
    if (!in->is_mem || (in->pp != INSN_PP_66) || (dest % sizeof(value)) ||
        !insn_cpu_has(INSN_CPU_MOVDIR64B)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_load(x, insn_ea(x, in), &value, sizeof(value));
    if (step != INSN_STEP_DONE) {
        return step;
    }
    return insn_store(x, dest, &value, sizeof(value));
}


/* 8D */
insn_step_t insn_do_lea(insn_exec_t *x, const insn_t *in)
{
    if (!in->is_mem) {
        return INSN_STEP_REFUSED;
    }
    insn_gpr_write(x, in, in->reg, in->size, insn_ea(x, in));
    return INSN_STEP_DONE;
}


/* 86, 87, 90-97. With memory it is a locked operation: refused. */
insn_step_t insn_do_xchg(insn_exec_t *x, const insn_t *in)
{
    unsigned reg = (in->op->flags & INSN_F_MODRM) ? in->reg : INSN_RAX;
    uint64_t a, b;

    if (in->is_mem) {
        return INSN_STEP_REFUSED;
    }
    if (in->opcode == 0x90) {
        if (in->rm == INSN_RAX) {
            return INSN_STEP_DONE; /* nop and pause, not xchg eax, eax */
        }
        /* The manuals define F3 90, without REX.B (SDM 2 and APM 3, PAUSE).
         * With it, processors of Intel pause all the same, and those of AMD
         * exchange r8 and rax as if there were no F3. Nor is F2 defined for an
         * exchange. */
        if (in->pp >= INSN_PP_F3) {
            return INSN_STEP_REFUSED;
        }
    }
    a = insn_gpr_read(x, in, reg, in->size);
    b = insn_gpr_read(x, in, in->rm, in->size);
    insn_gpr_write(x, in, reg, in->size, b);
    insn_gpr_write(x, in, in->rm, in->size, a);
    return INSN_STEP_DONE;
}


/* 0F C8-CF; undefined for 16 bits */
insn_step_t insn_do_bswap(insn_exec_t *x, const insn_t *in)
{
    if (in->size < 4) {
        return INSN_STEP_REFUSED;
    }
    insn_gpr_write(x, in, in->rm, in->size,
                   insn_swap(insn_gpr_read(x, in, in->rm, in->size), in->size));
    return INSN_STEP_DONE;
}


/* 98: sign-extend half of rax into all of it; 99: rax's sign into rdx */
insn_step_t insn_do_convert(insn_exec_t *x, const insn_t *in)
{
    uint64_t rax = x->cpu->gpr[INSN_RAX];

    if (in->opcode == 0x98) {
        insn_gpr_write(x, in, INSN_RAX, in->size,
                       insn_sext(rax, in->size / 2));
    } else {
        insn_gpr_write(x, in, INSN_RDX, in->size,
                       insn_sext(rax, in->size) >> 63);
    }
    return INSN_STEP_DONE;
}


/* Full product of two sign-extended operands: low part, and whether the high
 * part is more than its sign */
static uint64_t insn_imul(int64_t a, int64_t b, unsigned size, uint64_t *high_p,
                          int *overflow_p)
{
    __int128 product = (__int128)a * b;
    uint64_t low     = (uint64_t)product & insn_mask(size);

    *high_p     = (uint64_t)(product >> (8 * size)) & insn_mask(size);
    *overflow_p = (product != insn_sext(low, size));
    return low;
}


/* CF and OF together; SF, ZF, AF and PF are undefined and kept */
static void insn_flags_multiply(insn_exec_t *x, int overflow)
{
    insn_flags_set(x, INSN_CF | INSN_OF, overflow ? (INSN_CF | INSN_OF) : 0);
}


/* 0F AF, 69, 6B */
insn_step_t insn_do_imul(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->size;
    uint64_t a, b, high, low;
    int overflow;
    insn_step_t step;

    step = insn_rm_read(x, in, size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    if (in->op->flags & (INSN_F_IMM8 | INSN_F_IMMZ)) {
        b = in->imm;
    } else {
        b = insn_gpr_read(x, in, in->reg, size);
    }
    low = insn_imul(insn_sext(a, size), insn_sext(b, size), size, &high,
                    &overflow);
    insn_gpr_write(x, in, in->reg, size, low);
    insn_flags_multiply(x, overflow);
    return INSN_STEP_DONE;
}


/* rdx:rax, or ax for bytes */
static void insn_write_product(insn_exec_t *x, const insn_t *in, uint64_t low,
                               uint64_t high)
{
    if (in->size == 1) {
        insn_gpr_write(x, in, INSN_RAX, 2, low | (high << 8));
    } else {
        insn_gpr_write(x, in, INSN_RAX, in->size, low);
        insn_gpr_write(x, in, INSN_RDX, in->size, high);
    }
}


/* F6, F7: test, not, neg, mul, imul; division is refused, it may fault */
insn_step_t insn_do_unary_group(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->size;
    uint64_t mask = insn_mask(size);
    uint64_t a, rax, low, high, result, flags;
    unsigned __int128 product;
    int overflow;
    insn_step_t step;

    if (in->mod_reg > 5) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    rax = x->cpu->gpr[INSN_RAX] & mask;
    switch (in->mod_reg) {
    case 0:
    case 1: /* test */
        insn_alu(INSN_ALU_AND, a, in->imm & mask, size, 0, &flags);
        insn_flags_set(x, INSN_STATUS_FLAGS, flags);
        return INSN_STEP_DONE;
    case 2: /* not */
        return insn_rm_write(x, in, size, ~a & mask);
    case 3: /* neg */
        result = insn_alu(INSN_ALU_SUB, 0, a, size, 0, &flags);
        step   = insn_rm_write(x, in, size, result);
        if (step == INSN_STEP_DONE) {
            insn_flags_set(x, INSN_STATUS_FLAGS, flags);
        }
        return step;
    case 4: /* mul */
        product  = (unsigned __int128)rax * a;
        low      = (uint64_t)product & mask;
        high     = (uint64_t)(product >> (8 * size)) & mask;
        overflow = (high != 0);
        break;
    default: /* imul */
        low = insn_imul(insn_sext(rax, size), insn_sext(a, size), size, &high,
                        &overflow);
        break;
    }
    insn_write_product(x, in, low, high);
    insn_flags_multiply(x, overflow);
    return INSN_STEP_DONE;
}


/* FE /0 /1 and FF /0 /1: CF is kept */
insn_step_t insn_do_incdec_group(insn_exec_t *x, const insn_t *in)
{
    uint64_t a, result, flags;
    insn_step_t step;

    if (in->mod_reg > 1) {
        return INSN_STEP_REFUSED;
    }
    step = insn_rm_read(x, in, in->size, &a);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    result = insn_alu((in->mod_reg == 0) ? INSN_ALU_ADD : INSN_ALU_SUB, a, 1,
                      in->size, 0, &flags);
    step   = insn_rm_write(x, in, in->size, result);
    if (step == INSN_STEP_DONE) {
        insn_flags_set(x, INSN_STATUS_FLAGS & ~INSN_CF, flags & ~INSN_CF);
    }
    return step;
}
