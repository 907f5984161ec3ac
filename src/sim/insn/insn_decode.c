/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/insn/insn_int.h>

/** Prefixes and extension bits met before the opcode. */
typedef struct {
    const uint8_t *code;
    unsigned       pos;
    unsigned       max;
    uint8_t        opsize; /* 66 */
    uint8_t        rep;    /* F2 or F3 */
    uint8_t        refuse; /* fs, gs, lock, or both of F2 and F3 */
    uint8_t        r;      /* Extensions, already shifted into place */
    uint8_t        x;
    uint8_t        b;
    uint8_t        r_hi;   /* EVEX.R' */
    uint8_t        x_hi;   /* EVEX.X as bit 4 of a register operand */
    uint8_t        map;
} insn_prefix_t;


static inline int insn_fetch(insn_prefix_t *p, uint8_t *byte_p)
{
    if (INSN_UNLIKELY(p->pos >= p->max)) {
        return -1;
    }
    *byte_p = p->code[p->pos++];
    return 0;
}


/* Little-endian, sign-extended; each byte is read only if it is there. */
static int insn_fetch_int(insn_prefix_t *p, unsigned length, int64_t *value_p)
{
    const uint8_t *src = p->code + p->pos;

    if (INSN_UNLIKELY((p->max - p->pos) < length)) {
        return -1;
    }
    p->pos += length;
    switch (length) {
    case 1:
        *value_p = (int8_t)*src;
        return 0;
    case 2: {
        int16_t v;

        memcpy(&v, src, sizeof(v));
        *value_p = v;
        return 0;
    }
    case 4: {
        int32_t v;

        memcpy(&v, src, sizeof(v));
        *value_p = v;
        return 0;
    }
    default:
        memcpy(value_p, src, sizeof(*value_p));
        return 0;
    }
}


/* Legacy prefixes and REX, up to and including the first opcode byte. A REX
 * that is not the last prefix has no effect (SDM 2, 2.2.1). */
static int insn_decode_prefixes(insn_prefix_t *p, insn_t *in, uint8_t *byte_p)
{
    uint8_t rex = 0;
    uint8_t byte;

    for (;;) {
        if (insn_fetch(p, &byte) != 0) {
            return -1;
        }
        if ((byte & 0xf0) == 0x40) {
            rex = byte;
            continue;
        }
        switch (byte) {
        case 0x66:
            p->opsize = 1;
            break;
        case 0x67:
            in->addr32 = 1;
            break;
        case 0xf2:
        case 0xf3:
            /* Which of two different ones counts is not defined (SDM 2, 2.1.1;
             * APM 3, 1.2.1) */
            p->refuse |= (p->rep != 0) && (p->rep != byte);
            p->rep     = byte;
            break;
        case 0x26: /* es, cs, ss, ds: no effect in 64-bit mode */
        case 0x2e:
        case 0x36:
        case 0x3e:
            break;
        case 0x64: /* fs, gs */
        case 0x65:
        case 0xf0: /* lock */
            p->refuse = 1;
            break;
        default:
            in->has_rex = (rex != 0);
            in->w       = (rex >> 3) & 1;
            p->r        = (rex & 4) << 1;
            p->x        = (rex & 2) << 2;
            p->b        = (rex & 1) << 3;
            in->pp      = (p->rep == 0xf3) ? INSN_PP_F3 :
                          (p->rep == 0xf2) ? INSN_PP_F2 :
                          p->opsize        ? INSN_PP_66 : INSN_PP_NONE;
            *byte_p     = byte;
            return 0;
        }
        rex = 0;
    }
}


/* C5 and C4 (SDM 2, 2.3.5); the extension bits are stored inverted. */
static int insn_decode_vex(insn_prefix_t *p, insn_t *in, uint8_t first)
{
    uint8_t b1, b2;

    if (insn_fetch(p, &b1) != 0) {
        return -1;
    }
    p->r = (~b1 & 0x80) >> 4;
    if (first == 0xc5) {
        b2     = b1 & 0x7f;
        p->map = 1;
    } else {
        p->x   = (~b1 & 0x40) >> 3;
        p->b   = (~b1 & 0x20) >> 2;
        p->map = b1 & 0x1f;
        if (insn_fetch(p, &b2) != 0) {
            return -1;
        }
        in->w = b2 >> 7;
    }
    in->enc  = INSN_ENC_VEX;
    in->vvvv = (~b2 >> 3) & 0xf;
    in->vl   = (b2 & 4) ? 32 : 16;
    in->pp   = b2 & 3;
    return 0;
}


/* 62 (SDM 2, 2.7.1) */
static int insn_decode_evex(insn_prefix_t *p, insn_t *in)
{
    uint8_t p0, p1, p2;

    if ((insn_fetch(p, &p0) != 0) || (insn_fetch(p, &p1) != 0) ||
        (insn_fetch(p, &p2) != 0)) {
        return -1;
    }
    if ((p0 & 0x08) || !(p1 & 0x04) || ((p2 & 0x60) == 0x60)) {
        return -1;
    }
    p->r         = (~p0 & 0x80) >> 4;
    p->x         = (~p0 & 0x40) >> 3;
    p->x_hi      = (~p0 & 0x40) >> 2;
    p->b         = (~p0 & 0x20) >> 2;
    p->r_hi      = (~p0 & 0x10);
    p->map       = p0 & 7;
    in->enc      = INSN_ENC_EVEX;
    in->w        = p1 >> 7;
    in->vvvv     = ((~p1 >> 3) & 0xf) | ((~p2 & 8) << 1);
    in->pp       = p1 & 3;
    in->zeroing  = p2 >> 7;
    in->vl       = 16 << ((p2 >> 5) & 3);
    in->bcast    = (p2 >> 4) & 1;
    in->mask     = p2 & 7;
    return 0;
}


/* The factor of an EVEX 8-bit displacement */
static unsigned insn_disp8_scale(const insn_t *in)
{
    unsigned element = in->w ? 8 : 4;

    switch ((insn_tuple_t)in->op->tuple) {
    case INSN_TUPLE_VL:
        return in->bcast ? element : in->vl;
    case INSN_TUPLE_W:
        return element;
    case INSN_TUPLE_PP:
        return (in->pp < INSN_PP_F3) ? in->vl : element;
    case INSN_TUPLE_1:
        return 1;
    case INSN_TUPLE_2:
        return 2;
    case INSN_TUPLE_8:
        return 8;
    case INSN_TUPLE_16:
        return 16;
    case INSN_TUPLE_32:
        return 32;
    }
    return 1;
}


static int insn_decode_modrm(insn_prefix_t *p, insn_t *in)
{
    unsigned disp_length = 0;
    uint8_t modrm, mod, rm, sib;

    if (insn_fetch(p, &modrm) != 0) {
        return -1;
    }
    mod         = modrm >> 6;
    rm          = modrm & 7;
    in->mod_reg = (modrm >> 3) & 7;
    in->reg     = in->mod_reg | p->r | p->r_hi;
    in->rm      = rm | p->b;
    in->rm_vec  = in->rm | p->x_hi;
    if (mod == 3) {
        return 0;
    }

    in->is_mem = 1;
    in->base   = in->rm;
    if (rm == 4) {
        if (insn_fetch(p, &sib) != 0) {
            return -1;
        }
        in->base  = (sib & 7) | p->b;
        in->index = ((sib >> 3) & 7) | p->x;
        in->scale = sib >> 6;
        if (in->index == INSN_RSP) {
            in->index = INSN_NO_REG;
        }
        if (((sib & 7) == INSN_RBP) && (mod == 0)) {
            in->base    = INSN_NO_REG;
            disp_length = 4;
        }
    } else if ((rm == INSN_RBP) && (mod == 0)) {
        in->base    = INSN_NO_REG;
        in->rip_rel = 1;
        disp_length = 4;
    }
    if (mod == 1) {
        disp_length = 1;
    } else if (mod == 2) {
        disp_length = 4;
    }
    if (disp_length == 0) {
        return 0;
    }
    if (insn_fetch_int(p, disp_length, &in->disp) != 0) {
        return -1;
    }
    if ((disp_length == 1) && (in->enc == INSN_ENC_EVEX)) {
        in->disp *= insn_disp8_scale(in);
    }
    return 0;
}


/* Find the opcode's table entry; *p has the map. */
static int insn_decode_opcode(insn_prefix_t *p, insn_t *in, uint8_t byte)
{
    if ((byte == 0xc4) || (byte == 0xc5) || (byte == 0x62)) {
        if (p->opsize || p->rep || in->has_rex || p->refuse) {
            return -1;
        }
        if (((byte == 0x62) ? insn_decode_evex(p, in) :
                              insn_decode_vex(p, in, byte)) != 0) {
            return -1;
        }
        if ((p->map < 1) || (p->map > 3) ||
            (insn_fetch(p, &in->opcode) != 0)) {
            return -1;
        }
        in->op = &insn_vex_ops[p->map][in->opcode];
        if (!(in->op->flags & ((in->enc == INSN_ENC_VEX) ? INSN_F_VEX :
                                                           INSN_F_EVEX))) {
            return -1;
        }
        return 0;
    }

    if (byte == 0x0f) {
        p->map = 1;
        if (insn_fetch(p, &byte) != 0) {
            return -1;
        }
        if ((byte == 0x38) || (byte == 0x3a)) {
            p->map = (byte == 0x38) ? 2 : 3;
            if (insn_fetch(p, &byte) != 0) {
                return -1;
            }
        }
    }
    in->opcode = byte;
    in->vl     = 16;
    in->op     = &insn_legacy_ops[p->map][byte];
    if (p->refuse || (p->rep && !(in->op->flags & (INSN_F_REP | INSN_F_PP)))) {
        return -1;
    }
    return 0;
}


static int insn_decode_size(const insn_prefix_t *p, insn_t *in)
{
    unsigned flags = in->op->flags;

    if (flags & INSN_F_BYTE) {
        in->size = 1;
    } else if (flags & INSN_F_D64) {
        if (p->opsize) {
            return -1; /* 16-bit stack and branch forms differ by vendor */
        }
        in->size = 8;
    } else if (in->w) {
        in->size = 8;
    } else if (p->opsize && !(flags & INSN_F_PP)) {
        in->size = 2;
    } else {
        in->size = 4;
    }
    return 0;
}


static int insn_decode_imm(insn_prefix_t *p, insn_t *in)
{
    unsigned flags = in->op->flags;

    if ((flags & INSN_F_TEST) && (in->mod_reg < 2)) {
        flags |= (in->size == 1) ? INSN_F_IMM8 : INSN_F_IMMZ;
    }
    if (flags & INSN_F_IMM8) {
        return insn_fetch_int(p, 1, &in->imm);
    }
    if (flags & INSN_F_IMMZ) {
        return insn_fetch_int(p, (in->size == 2) ? 2 : 4, &in->imm);
    }
    if (flags & INSN_F_IMMV) {
        return insn_fetch_int(p, in->size, &in->imm);
    }
    if (flags & INSN_F_IMM16) {
        return insn_fetch_int(p, 2, &in->imm);
    }
    return 0;
}


int insn_decode(const uint8_t *code, unsigned max, insn_t *in)
{
    insn_prefix_t p;
    uint8_t byte;

    memset(&p, 0, sizeof(p));
    memset(in, 0, sizeof(*in));
    p.code    = code;
    p.max     = (max < INSN_MAX_LENGTH) ? max : INSN_MAX_LENGTH;
    in->base  = INSN_NO_REG;
    in->index = INSN_NO_REG;

    if (insn_decode_prefixes(&p, in, &byte) != 0) {
        return -1;
    }
    if (insn_decode_opcode(&p, in, byte) != 0) {
        return -1;
    }
    if ((in->op->handler == NULL) || (insn_decode_size(&p, in) != 0)) {
        return -1;
    }
    if (in->op->flags & INSN_F_MODRM) {
        if (insn_decode_modrm(&p, in) != 0) {
            return -1;
        }
    } else {
        in->rm = (in->opcode & 7) | p.b;
    }
    if (insn_decode_imm(&p, in) != 0) {
        return -1;
    }
    in->length = p.pos;
    return 0;
}


unsigned mlx5sim_insn_length(const void *code, size_t max)
{
    insn_t in;

    if (insn_decode(code, (max < INSN_MAX_LENGTH) ? max : INSN_MAX_LENGTH,
                    &in) != 0) {
        return 0;
    }
    return in.length;
}
