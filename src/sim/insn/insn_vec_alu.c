/* SPDX-License-Identifier: BSD-3-Clause */

/* The vector operations that compilers put between the stores of a WQE: logic,
 * additions, unpacking, shuffles, broadcasts, insertion and extraction */

#include <sim/insn/insn_int.h>

#define INSN_LANE 16 /* most operations stay inside 128-bit lanes */

/* What W must be in an EVEX encoding; VEX ignores it for all of these */
enum {
    INSN_W_ANY,
    INSN_W_0,
    INSN_W_1,
    INSN_W_FLOAT /* 0 without prefix, 1 with 66 */
};

typedef void (*insn_vec_kernel_t)(insn_vec_t *d, const insn_vec_t *a,
                                  const insn_vec_t *b, unsigned vl,
                                  unsigned param);

/** One operation d = a op b; a is the destination (legacy) or vvvv. */
typedef struct {
    insn_vec_kernel_t kernel;
    uint8_t           param;  /**< Element size, mostly */
    uint8_t           w;      /**< INSN_W_xx */
    uint8_t           is_flt; /**< Prefix none or 66, instead of 66 */
} insn_vec_binary_t;


static void insn_k_and(insn_vec_t *d, const insn_vec_t *a, const insn_vec_t *b,
                       unsigned vl, unsigned param)
{
    unsigned i;

    for (i = 0; i < (vl / 8); ++i) {
        d->q[i] = a->q[i] & b->q[i];
    }
}


static void insn_k_andn(insn_vec_t *d, const insn_vec_t *a, const insn_vec_t *b,
                        unsigned vl, unsigned param)
{
    unsigned i;

    for (i = 0; i < (vl / 8); ++i) {
        d->q[i] = ~a->q[i] & b->q[i];
    }
}


static void insn_k_or(insn_vec_t *d, const insn_vec_t *a, const insn_vec_t *b,
                      unsigned vl, unsigned param)
{
    unsigned i;

    for (i = 0; i < (vl / 8); ++i) {
        d->q[i] = a->q[i] | b->q[i];
    }
}


static void insn_k_xor(insn_vec_t *d, const insn_vec_t *a, const insn_vec_t *b,
                       unsigned vl, unsigned param)
{
    unsigned i;

    for (i = 0; i < (vl / 8); ++i) {
        d->q[i] = a->q[i] ^ b->q[i];
    }
}


static uint64_t insn_vec_get(const insn_vec_t *v, unsigned index, unsigned size)
{
    uint64_t element = 0;

    memcpy(&element, v->b + (index * size), size);
    return element;
}


static void insn_vec_put(insn_vec_t *v, unsigned index, unsigned size,
                         uint64_t element)
{
    memcpy(v->b + (index * size), &element, size);
}


static void insn_k_add(insn_vec_t *d, const insn_vec_t *a, const insn_vec_t *b,
                       unsigned vl, unsigned size)
{
    unsigned i;

    for (i = 0; i < (vl / size); ++i) {
        insn_vec_put(d, i, size,
                     insn_vec_get(a, i, size) + insn_vec_get(b, i, size));
    }
}


static void insn_k_sub(insn_vec_t *d, const insn_vec_t *a, const insn_vec_t *b,
                       unsigned vl, unsigned size)
{
    unsigned i;

    for (i = 0; i < (vl / size); ++i) {
        insn_vec_put(d, i, size,
                     insn_vec_get(a, i, size) - insn_vec_get(b, i, size));
    }
}


static void insn_k_cmpeq(insn_vec_t *d, const insn_vec_t *a,
                         const insn_vec_t *b, unsigned vl, unsigned size)
{
    unsigned i;

    for (i = 0; i < (vl / size); ++i) {
        insn_vec_put(d, i, size,
                     (insn_vec_get(a, i, size) == insn_vec_get(b, i, size)) ?
                     ~0ul : 0);
    }
}


/* Interleave the low halves of each lane, or with bit 7 of param the high */
static void insn_k_unpack(insn_vec_t *d, const insn_vec_t *a,
                          const insn_vec_t *b, unsigned vl, unsigned param)
{
    unsigned size = param & 0x7f;
    unsigned per  = INSN_LANE / size;
    unsigned half = (param & 0x80) ? per / 2 : 0;
    unsigned lane, i, from, to;

    for (lane = 0; lane < (vl / INSN_LANE); ++lane) {
        for (i = 0; i < (per / 2); ++i) {
            from = (lane * per) + half + i;
            to   = (lane * per) + (2 * i);
            insn_vec_put(d, to, size, insn_vec_get(a, from, size));
            insn_vec_put(d, to + 1, size, insn_vec_get(b, from, size));
        }
    }
}


static void insn_k_pshufb(insn_vec_t *d, const insn_vec_t *a,
                          const insn_vec_t *b, unsigned vl, unsigned param)
{
    unsigned i;

    for (i = 0; i < vl; ++i) {
        d->b[i] = (b->b[i] & 0x80) ? 0 :
                  a->b[(i & ~(INSN_LANE - 1)) + (b->b[i] & 15)];
    }
}


#define INSN_HIGH 0x80

/* Numbered by insn_op_t.arg; see insn_table.c */
static const insn_vec_binary_t insn_vec_binary[] = {
    [INSN_VB_PAND]       = {insn_k_and, 0, INSN_W_ANY, 0},
    [INSN_VB_PANDN]      = {insn_k_andn, 0, INSN_W_ANY, 0},
    [INSN_VB_POR]        = {insn_k_or, 0, INSN_W_ANY, 0},
    [INSN_VB_PXOR]       = {insn_k_xor, 0, INSN_W_ANY, 0},
    [INSN_VB_ANDPS]      = {insn_k_and, 0, INSN_W_FLOAT, 1},
    [INSN_VB_ANDNPS]     = {insn_k_andn, 0, INSN_W_FLOAT, 1},
    [INSN_VB_ORPS]       = {insn_k_or, 0, INSN_W_FLOAT, 1},
    [INSN_VB_XORPS]      = {insn_k_xor, 0, INSN_W_FLOAT, 1},
    [INSN_VB_PADDB]      = {insn_k_add, 1, INSN_W_ANY, 0},
    [INSN_VB_PADDW]      = {insn_k_add, 2, INSN_W_ANY, 0},
    [INSN_VB_PADDD]      = {insn_k_add, 4, INSN_W_0, 0},
    [INSN_VB_PADDQ]      = {insn_k_add, 8, INSN_W_1, 0},
    [INSN_VB_PSUBB]      = {insn_k_sub, 1, INSN_W_ANY, 0},
    [INSN_VB_PSUBW]      = {insn_k_sub, 2, INSN_W_ANY, 0},
    [INSN_VB_PSUBD]      = {insn_k_sub, 4, INSN_W_0, 0},
    [INSN_VB_PSUBQ]      = {insn_k_sub, 8, INSN_W_1, 0},
    [INSN_VB_PCMPEQB]    = {insn_k_cmpeq, 1, INSN_W_ANY, 0},
    [INSN_VB_PCMPEQW]    = {insn_k_cmpeq, 2, INSN_W_ANY, 0},
    [INSN_VB_PCMPEQD]    = {insn_k_cmpeq, 4, INSN_W_ANY, 0},
    [INSN_VB_PUNPCKLBW]  = {insn_k_unpack, 1, INSN_W_ANY, 0},
    [INSN_VB_PUNPCKLWD]  = {insn_k_unpack, 2, INSN_W_ANY, 0},
    [INSN_VB_PUNPCKLDQ]  = {insn_k_unpack, 4, INSN_W_0, 0},
    [INSN_VB_PUNPCKLQDQ] = {insn_k_unpack, 8, INSN_W_1, 0},
    [INSN_VB_PUNPCKHBW]  = {insn_k_unpack, INSN_HIGH | 1, INSN_W_ANY, 0},
    [INSN_VB_PUNPCKHWD]  = {insn_k_unpack, INSN_HIGH | 2, INSN_W_ANY, 0},
    [INSN_VB_PUNPCKHDQ]  = {insn_k_unpack, INSN_HIGH | 4, INSN_W_0, 0},
    [INSN_VB_PUNPCKHQDQ] = {insn_k_unpack, INSN_HIGH | 8, INSN_W_1, 0},
    [INSN_VB_PSHUFB]     = {insn_k_pshufb, 0, INSN_W_ANY, 0},
};


static int insn_valu_usable(const insn_exec_t *x, const insn_t *in)
{
    return insn_vec_usable(x, in) && !in->mask && !in->zeroing && !in->bcast;
}


static int insn_valu_w(const insn_t *in, unsigned rule)
{
    if (in->enc != INSN_ENC_EVEX) {
        return 1;
    }
    switch (rule) {
    case INSN_W_0:
        return !in->w;
    case INSN_W_1:
        return in->w;
    case INSN_W_FLOAT:
        return in->w == (in->pp & 1);
    default:
        return 1;
    }
}


/* The rm operand as a vector of @a length bytes. Legacy instructions want their
 * 16-byte memory operand aligned. */
static insn_step_t insn_valu_rm(insn_exec_t *x, const insn_t *in,
                                unsigned length, insn_vec_t *value)
{
    uint64_t addr;

    if (!in->is_mem) {
        insn_vec_read(x->cpu, in->rm_vec, in->vl, value);
        return INSN_STEP_DONE;
    }
    addr = insn_ea(x, in);
    if ((in->enc == INSN_ENC_LEGACY) && (addr % length)) {
        return INSN_STEP_REFUSED;
    }
    return insn_load(x, addr, value, length);
}


insn_step_t insn_do_vbinary(insn_exec_t *x, const insn_t *in)
{
    const insn_vec_binary_t *op = &insn_vec_binary[in->op->arg];
    unsigned first              = (in->enc == INSN_ENC_LEGACY) ? in->reg :
                                                                 in->vvvv;
    insn_vec_t a, b, d;
    insn_step_t step;

    if (!((in->pp == INSN_PP_66) || (op->is_flt && (in->pp == INSN_PP_NONE))) ||
        !insn_valu_w(in, op->w) ||
        !insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_valu_rm(x, in, in->vl, &b);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    insn_vec_read(x->cpu, first, in->vl, &a);
    op->kernel(&d, &a, &b, in->vl, op->param);
    insn_vec_write(x->cpu, in->reg, in->vl, &d, in->enc != INSN_ENC_LEGACY);
    return INSN_STEP_DONE;
}


/* 0F 14, 15: unpcklps, unpckhps without prefix, ..pd with 66 */
insn_step_t insn_do_vunpack_float(insn_exec_t *x, const insn_t *in)
{
    unsigned first = (in->enc == INSN_ENC_LEGACY) ? in->reg : in->vvvv;
    unsigned param = ((in->pp == INSN_PP_66) ? 8 : 4) |
                     ((in->opcode & 1) ? INSN_HIGH : 0);
    insn_vec_t a, b, d;
    insn_step_t step;

    if ((in->pp >= INSN_PP_F3) || !insn_valu_w(in, INSN_W_FLOAT) ||
        !insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_valu_rm(x, in, in->vl, &b);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    insn_vec_read(x->cpu, first, in->vl, &a);
    insn_k_unpack(&d, &a, &b, in->vl, param);
    insn_vec_write(x->cpu, in->reg, in->vl, &d, in->enc != INSN_ENC_LEGACY);
    return INSN_STEP_DONE;
}


/* 66 0F 70 pshufd: one source; the others of that opcode are refused */
insn_step_t insn_do_pshufd(insn_exec_t *x, const insn_t *in)
{
    insn_vec_t source, d;
    unsigned i;
    insn_step_t step;

    if ((in->pp != INSN_PP_66) || in->vvvv || !insn_valu_w(in, INSN_W_0) ||
        !insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_valu_rm(x, in, in->vl, &source);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    for (i = 0; i < (in->vl / 4u); ++i) {
        d.d[i] = source.d[(i & ~3u) + ((in->imm >> (2 * (i & 3))) & 3)];
    }
    insn_vec_write(x->cpu, in->reg, in->vl, &d, in->enc != INSN_ENC_LEGACY);
    return INSN_STEP_DONE;
}


/* 0F C6 shufps, shufpd; 0F3A 0F palignr */
insn_step_t insn_do_vshuffle(insn_exec_t *x, const insn_t *in)
{
    unsigned first = (in->enc == INSN_ENC_LEGACY) ? in->reg : in->vvvv;
    unsigned imm   = in->imm & 0xff;
    int is_palignr = (in->opcode == 0x0f);
    insn_vec_t a, b, d;
    const insn_vec_t *src;
    unsigned i, lane, at;
    insn_step_t step;

    if (is_palignr ? (in->pp != INSN_PP_66) :
                     ((in->pp >= INSN_PP_F3) ||
                      !insn_valu_w(in, INSN_W_FLOAT))) {
        return INSN_STEP_REFUSED;
    }
    if (!insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_valu_rm(x, in, in->vl, &b);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    insn_vec_read(x->cpu, first, in->vl, &a);
    if (is_palignr) {
        for (i = 0; i < in->vl; ++i) {
            lane = i & ~(INSN_LANE - 1u);
            at   = (i - lane) + imm;
            d.b[i] = (at < INSN_LANE)     ? b.b[lane + at] :
                     (at < 2 * INSN_LANE) ? a.b[lane + at - INSN_LANE] : 0;
        }
    } else if (in->pp == INSN_PP_NONE) {
        for (i = 0; i < (in->vl / 4u); ++i) {
            src    = (i & 2) ? &b : &a;
            d.d[i] = src->d[(i & ~3u) + ((imm >> (2 * (i & 3))) & 3)];
        }
    } else {
        for (i = 0; i < (in->vl / 8u); ++i) {
            src    = (i & 1) ? &b : &a;
            d.q[i] = src->q[(i & ~1u) + ((imm >> i) & 1)];
        }
    }
    insn_vec_write(x->cpu, in->reg, in->vl, &d, in->enc != INSN_ENC_LEGACY);
    return INSN_STEP_DONE;
}


/* EVEX 66 0F3A 25 vpternlog: any function of three bits */
insn_step_t insn_do_vpternlog(insn_exec_t *x, const insn_t *in)
{
    unsigned imm = in->imm & 0xff;
    insn_vec_t a, b, c, d;
    unsigned i, term;
    uint64_t result;
    insn_step_t step;

    if ((in->pp != INSN_PP_66) || !insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_valu_rm(x, in, in->vl, &c);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    insn_vec_read(x->cpu, in->reg, in->vl, &a);
    insn_vec_read(x->cpu, in->vvvv, in->vl, &b);
    for (i = 0; i < (in->vl / 8u); ++i) {
        result = 0;
        for (term = 0; term < 8; ++term) {
            if (imm & (1u << term)) {
                result |= ((term & 4) ? a.q[i] : ~a.q[i]) &
                          ((term & 2) ? b.q[i] : ~b.q[i]) &
                          ((term & 1) ? c.q[i] : ~c.q[i]);
            }
        }
        d.q[i] = result;
    }
    insn_vec_write(x->cpu, in->reg, in->vl, &d, 1);
    return INSN_STEP_DONE;
}


/* What a broadcast, insertion or extraction of a 128- or 256-bit part needs of
 * W and the vector length; VEX forms have W 0 and 256 bits. */
static int insn_vec_part_ok(const insn_t *in, unsigned part)
{
    if (in->enc == INSN_ENC_VEX) {
        return !in->w && (in->vl == 32);
    }
    return in->vl > part;
}


/* 66 0F38 18, 19, 1A, 1B, 58, 59, 5A, 5B, 78, 79; arg is the element's size */
insn_step_t insn_do_vbroadcast(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->op->arg;
    int evex      = (in->enc == INSN_ENC_EVEX);
    insn_vec_t d;
    unsigned i;
    insn_step_t step;

    if ((in->pp != INSN_PP_66) || in->vvvv ||
        !insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    if (size >= 16) {
        if (!in->is_mem || !insn_vec_part_ok(in, size)) {
            return INSN_STEP_REFUSED;
        }
    } else if ((in->w != (evex && (size == 8))) ||
               ((in->opcode == 0x19) && (in->vl == 16))) {
        return INSN_STEP_REFUSED;
    }
    if (in->is_mem) {
        step = insn_load(x, insn_ea(x, in), &d, size);
        if (step != INSN_STEP_DONE) {
            return step;
        }
    } else {
        insn_vec_read(x->cpu, in->rm_vec, 16, &d);
    }
    for (i = size; i < in->vl; i += size) {
        memcpy(d.b + i, d.b, size);
    }
    insn_vec_write(x->cpu, in->reg, in->vl, &d, 1);
    return INSN_STEP_DONE;
}


/* EVEX 66 0F38 7A, 7B, 7C: from a general register; arg is the size, 0 by W */
insn_step_t insn_do_vbroadcast_gpr(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->op->arg;
    insn_vec_t d;
    unsigned i;

    if ((in->pp != INSN_PP_66) || in->vvvv || in->is_mem || (size && in->w) ||
        !insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    if (size == 0) {
        size = in->size;
    }
    for (i = 0; i < in->vl; i += size) {
        memcpy(d.b + i, &x->cpu->gpr[in->rm], size);
    }
    insn_vec_write(x->cpu, in->reg, in->vl, &d, 1);
    return INSN_STEP_DONE;
}


/* 66 0F3A 18, 38 vinsert 128 bits; 1A, 3A 256 bits; arg is the part's size */
insn_step_t insn_do_vinsert(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->op->arg;
    insn_vec_t value, part;
    insn_step_t step;

    if ((in->pp != INSN_PP_66) || !insn_vec_part_ok(in, size) ||
        !insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    step = insn_valu_rm(x, in, size, &part);
    if (step != INSN_STEP_DONE) {
        return step;
    }
    insn_vec_read(x->cpu, in->vvvv, in->vl, &value);
    memcpy(value.b + (size * (in->imm & ((in->vl / size) - 1))), part.b, size);
    insn_vec_write(x->cpu, in->reg, in->vl, &value, 1);
    return INSN_STEP_DONE;
}


/* 66 0F3A 19, 39 vextract 128 bits; 1B, 3B 256 bits */
insn_step_t insn_do_vextract(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->op->arg;
    insn_vec_t value, part;

    if ((in->pp != INSN_PP_66) || in->vvvv || in->mask || in->zeroing ||
        in->bcast || !insn_vec_part_ok(in, size)) {
        return INSN_STEP_REFUSED;
    }
    if (!x->run->vec_valid) {
        return in->is_mem ? insn_store(x, insn_ea(x, in), NULL, size) :
                            INSN_STEP_REFUSED;
    }
    if (!insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_read(x->cpu, in->reg, in->vl, &value);
    memcpy(part.b, value.b + (size * (in->imm & ((in->vl / size) - 1))), size);
    if (in->is_mem) {
        return insn_store(x, insn_ea(x, in), part.b, size);
    }
    insn_vec_write(x->cpu, in->rm_vec, size, &part, 1);
    return INSN_STEP_DONE;
}


/* 66 0F C4 pinsrw, 0F3A 20 pinsrb, 22 pinsrd/q; arg is the size, 0 by W */
insn_step_t insn_do_pinsr(insn_exec_t *x, const insn_t *in)
{
    unsigned size  = in->op->arg ? in->op->arg : in->size;
    unsigned first = (in->enc == INSN_ENC_LEGACY) ? in->reg : in->vvvv;
    uint64_t element;
    insn_vec_t value;
    insn_step_t step;

    if ((in->pp != INSN_PP_66) || (in->vl != 16) ||
        !insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    if (in->is_mem) {
        step = insn_load(x, insn_ea(x, in), &element, size);
        if (step != INSN_STEP_DONE) {
            return step;
        }
    } else {
        element = x->cpu->gpr[in->rm];
    }
    insn_vec_read(x->cpu, first, 16, &value);
    insn_vec_put(&value, in->imm & ((16 / size) - 1), size, element);
    insn_vec_write(x->cpu, in->reg, 16, &value, in->enc != INSN_ENC_LEGACY);
    return INSN_STEP_DONE;
}


/* 66 0F3A 14 pextrb, 15 pextrw, 16 pextrd/q: to memory or, zero-extended, to a
 * general register; arg is the size, 0 by W */
insn_step_t insn_do_pextr(insn_exec_t *x, const insn_t *in)
{
    unsigned size = in->op->arg ? in->op->arg : in->size;
    insn_vec_t value;
    uint64_t element;

    if ((in->pp != INSN_PP_66) || (in->vl != 16) || in->vvvv || in->mask ||
        in->zeroing || in->bcast) {
        return INSN_STEP_REFUSED;
    }
    if (!x->run->vec_valid) {
        return in->is_mem ? insn_store(x, insn_ea(x, in), NULL, size) :
                            INSN_STEP_REFUSED;
    }
    if (!insn_valu_usable(x, in)) {
        return INSN_STEP_REFUSED;
    }
    insn_vec_read(x->cpu, in->reg, 16, &value);
    element = insn_vec_get(&value, in->imm & ((16 / size) - 1), size);
    if (in->is_mem) {
        return insn_store(x, insn_ea(x, in), &element, size);
    }
    x->cpu->gpr[in->rm] = element;
    return INSN_STEP_DONE;
}
