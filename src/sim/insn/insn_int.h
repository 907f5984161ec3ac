/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file insn_int.h
 *
 * What the parts of the instruction interpreter share: the decoded form, the
 * opcode tables, memory and register access. Only insn*.c include this.
 */

#ifndef MLX5SIM_INSN_INT_H_
#define MLX5SIM_INSN_INT_H_

#include <sim/insn/insn.h>

#include <stdatomic.h>
#include <string.h>

/** Longest instruction (SDM 2, 2.3.11). */
#define INSN_MAX_LENGTH 15

#define INSN_LIKELY(_cond)   __builtin_expect(!!(_cond), 1)
#define INSN_UNLIKELY(_cond) __builtin_expect(!!(_cond), 0)

/* RFLAGS bits */
#define INSN_CF (1ul << 0)
#define INSN_PF (1ul << 2)
#define INSN_AF (1ul << 4)
#define INSN_ZF (1ul << 6)
#define INSN_SF (1ul << 7)
#define INSN_DF (1ul << 10)
#define INSN_OF (1ul << 11)
#define INSN_STATUS_FLAGS \
    (INSN_CF | INSN_PF | INSN_AF | INSN_ZF | INSN_SF | INSN_OF)

/* General purpose registers by encoding */
enum {
    INSN_RAX = 0,
    INSN_RCX = 1,
    INSN_RDX = 2,
    INSN_RSP = 4,
    INSN_RBP = 5,
    INSN_RSI = 6,
    INSN_RDI = 7,
    INSN_NO_REG = 0xff
};

/** How an instruction is encoded. */
typedef enum {
    INSN_ENC_LEGACY,
    INSN_ENC_VEX,
    INSN_ENC_EVEX
} insn_enc_t;

/** Mandatory prefix, numbered as in the pp field of VEX and EVEX. */
typedef enum {
    INSN_PP_NONE,
    INSN_PP_66,
    INSN_PP_F3,
    INSN_PP_F2
} insn_pp_t;

/** Outcome of executing one instruction. */
typedef enum {
    INSN_STEP_DONE,    /**< Executed; rip moves to @ref insn_exec_t.next_rip */
    INSN_STEP_REFUSED, /**< Not modelled; nothing changed */
    INSN_STEP_PARTIAL  /**< A repeated string instruction, interrupted between
                            two elements; rip stays */
} insn_step_t;

/* Attributes of an opcode */
#define INSN_F_MODRM 0x0001 /**< ModRM follows */
#define INSN_F_IMM8  0x0002 /**< Sign-extended 8-bit immediate */
#define INSN_F_IMM16 0x0004 /**< 16-bit immediate */
#define INSN_F_IMMZ  0x0008 /**< 16 or sign-extended 32 bits, by size */
#define INSN_F_IMMV  0x0010 /**< As wide as the operand */
#define INSN_F_BYTE  0x0020 /**< Operand size 1 */
#define INSN_F_D64   0x0040 /**< Operand size 8 whatever REX.W; 0x66 refused */
#define INSN_F_PP    0x0080 /**< 66, F3, F2 select the instruction */
#define INSN_F_REP   0x0100 /**< F3 and F2 are allowed (hint or repeat) */
#define INSN_F_TEST  0x0200 /**< Groups F6, F7: an immediate if reg is 0, 1 */
#define INSN_F_VEX   0x0400 /**< Has a VEX form */
#define INSN_F_EVEX  0x0800 /**< Has an EVEX form */

/** What EVEX multiplies an 8-bit displacement by (SDM 2, 2.7.5). */
typedef enum {
    INSN_TUPLE_VL,    /**< Vector length */
    INSN_TUPLE_W,     /**< 8 with W, else 4 */
    INSN_TUPLE_PP,    /**< Scalar moves: vector length without F2/F3, else 8
                           with W, else 4 */
    INSN_TUPLE_1,
    INSN_TUPLE_2,
    INSN_TUPLE_8,
    INSN_TUPLE_16,
    INSN_TUPLE_32
} insn_tuple_t;

struct insn;
struct insn_exec;

typedef insn_step_t (*insn_handler_t)(struct insn_exec *x,
                                      const struct insn *in);

/** Entry of an opcode table; an empty one is an unknown instruction. */
typedef struct {
    insn_handler_t handler;
    uint16_t       flags; /**< INSN_F_xx */
    uint8_t        arg;   /**< For the handler: which of a family it is */
    uint8_t        tuple; /**< insn_tuple_t */
} insn_op_t;

/** Opcode maps: one-byte, 0F, 0F38, 0F3A; the second table is for VEX and EVEX
 *  (whose map 0 is empty). */
extern const insn_op_t insn_legacy_ops[4][256];
extern const insn_op_t insn_vex_ops[4][256];

/** A decoded instruction. */
typedef struct insn {
    const insn_op_t *op;
    int64_t          imm;
    int64_t          disp;
    uint8_t          length;
    uint8_t          enc;      /**< insn_enc_t */
    uint8_t          opcode;
    uint8_t          pp;       /**< insn_pp_t */
    uint8_t          size;     /**< Integer operand size: 1, 2, 4, 8 */
    uint8_t          has_rex;  /**< sil, not dh */
    uint8_t          w;        /**< REX.W, VEX.W, EVEX.W */
    uint8_t          is_mem;   /**< ModRM names memory */
    uint8_t          rip_rel;
    uint8_t          addr32;   /**< Prefix 67 */
    uint8_t          mod_reg;  /**< ModRM.reg without extension: group index */
    uint8_t          reg;      /**< ModRM.reg, extended */
    uint8_t          rm;       /**< ModRM.rm as general register, or opcode's
                                    low bits for instructions without ModRM */
    uint8_t          rm_vec;   /**< ModRM.rm as vector register */
    uint8_t          base;     /**< General register or INSN_NO_REG */
    uint8_t          index;    /**< General register or INSN_NO_REG */
    uint8_t          scale;    /**< Shift */
    uint8_t          vvvv;     /**< VEX, EVEX second source */
    uint8_t          vl;       /**< Vector length in bytes */
    uint8_t          mask;     /**< EVEX.aaa */
    uint8_t          zeroing;  /**< EVEX.z */
    uint8_t          bcast;    /**< EVEX.b */
    /* set by insn_decode_at() only */
    uint8_t          orders;   /**< @ref mlx5sim_insn_orders_stores */
    uint8_t          may_move_stack; /**< May change rsp */
} insn_t;

/** A vector register's value. */
typedef union {
    uint8_t  b[64];
    uint16_t w[32];
    uint32_t d[16];
    uint64_t q[8];
} insn_vec_t;

/** What a handler works on. */
typedef struct insn_exec {
    mlx5sim_insn_cpu_t *cpu;
    mlx5sim_insn_run_t *run;
    uint64_t            next_rip; /**< A branch overwrites it */
} insn_exec_t;


/**
 * Decode one instruction.
 *
 * @param code  Bytes; read one after the other and not beyond the end.
 * @param max   Limit on what may be read.
 * @param in    Filled in; undefined on failure.
 *
 * @return 0, or -1 if unknown or longer than @a max.
 */
int insn_decode(const uint8_t *code, unsigned max, insn_t *in);


/** Decode the instruction at @a rip, or what a jump of ours has replaced there.
 *  @return 0, or -1: it is not known. */
int insn_decode_at(uint64_t rip, insn_t *in);


/** What is to be decoded in place of @a code: that, unless it is a jump of
 *  ours. */
const uint8_t *insn_original(const uint8_t *code);


/**
 * Read memory: the window as zeros, reported; the rest directly, as one access
 * of that width up to 8 bytes.
 */
insn_step_t
insn_load(insn_exec_t *x, uint64_t addr, void *data, unsigned length);


/**
 * Write memory: the window through the callback, the rest directly. Refused,
 * with nothing written, if the address must not be touched.
 *
 * @param data  NULL if the bytes are not known: allowed in the window only.
 */
insn_step_t
insn_store(insn_exec_t *x, uint64_t addr, const void *data, unsigned length);


/** Whether @ref insn_store would take these (known) bytes. */
int insn_store_allowed(const insn_exec_t *x, uint64_t addr, unsigned length);


/** Whether all of an access lies in the window. */
static inline int
insn_in_window(const insn_exec_t *x, uint64_t addr, unsigned length)
{
    const mlx5sim_insn_window_t *w = &x->run->window;

    return (addr >= w->lo) && (addr < w->hi) && ((w->hi - addr) >= length);
}


/** Effective address of the memory operand. */
static inline uint64_t insn_ea(const insn_exec_t *x, const insn_t *in)
{
    const mlx5sim_insn_cpu_t *cpu = x->cpu;
    uint64_t ea                   = in->disp;

    if (in->base != INSN_NO_REG) {
        ea += cpu->gpr[in->base];
    } else if (in->rip_rel) {
        ea += x->next_rip;
    }
    if (in->index != INSN_NO_REG) {
        ea += cpu->gpr[in->index] << in->scale;
    }
    return in->addr32 ? (uint32_t)ea : ea;
}


/** Bits of an operand of @a size bytes. */
static inline uint64_t insn_mask(unsigned size)
{
    return ~0ul >> (64 - (8 * size));
}


/** Sign-extend an operand of @a size bytes. */
static inline int64_t insn_sext(uint64_t value, unsigned size)
{
    unsigned shift = 64 - (8 * size);

    return (int64_t)(value << shift) >> shift;
}


/** ZF, SF and PF of a zero-extended result of @a size bytes. */
static inline uint64_t insn_flags_result(uint64_t result, unsigned size)
{
    return ((result == 0) ? INSN_ZF : 0) |
           (((result >> ((8 * size) - 1)) & 1) ? INSN_SF : 0) |
           (__builtin_parity(result & 0xff) ? 0 : INSN_PF);
}


/** Replace the flags in @a mask. */
static inline void insn_flags_set(insn_exec_t *x, uint64_t mask, uint64_t flags)
{
    x->cpu->rflags = (x->cpu->rflags & ~mask) | flags;
}


/** General register, zero-extended; without REX, 4-7 of size 1 are ah-bh. */
static inline uint64_t
insn_gpr_read(const insn_exec_t *x, const insn_t *in, unsigned reg,
              unsigned size)
{
    if ((size == 1) && !in->has_rex && (reg >= 4) && (reg < 8)) {
        return (x->cpu->gpr[reg - 4] >> 8) & 0xff;
    }
    return x->cpu->gpr[reg] & insn_mask(size);
}


/** Write a general register: 4 bytes clear the upper half, less keep it. */
static inline void
insn_gpr_write(insn_exec_t *x, const insn_t *in, unsigned reg, unsigned size,
               uint64_t value)
{
    uint64_t *gpr = x->cpu->gpr;
    uint64_t mask;

    if (size == 8) {
        gpr[reg] = value;
    } else if (size == 4) {
        gpr[reg] = (uint32_t)value;
    } else if ((size == 1) && !in->has_rex && (reg >= 4) && (reg < 8)) {
        gpr[reg - 4] = (gpr[reg - 4] & ~0xff00ul) | ((value & 0xff) << 8);
    } else {
        mask     = insn_mask(size);
        gpr[reg] = (gpr[reg] & ~mask) | (value & mask);
    }
}


/** Read the ModRM.rm operand of an integer instruction, zero-extended. */
static inline insn_step_t
insn_rm_read(insn_exec_t *x, const insn_t *in, unsigned size, uint64_t *value_p)
{
    if (!in->is_mem) {
        *value_p = insn_gpr_read(x, in, in->rm, size);
        return INSN_STEP_DONE;
    }
    *value_p = 0;
    return insn_load(x, insn_ea(x, in), value_p, size);
}


/** Write the ModRM.rm operand of an integer instruction. */
static inline insn_step_t
insn_rm_write(insn_exec_t *x, const insn_t *in, unsigned size, uint64_t value)
{
    if (!in->is_mem) {
        insn_gpr_write(x, in, in->rm, size, value);
        return INSN_STEP_DONE;
    }
    return insn_store(x, insn_ea(x, in), &value, size);
}


/** Instructions that not every processor with AVX2 has, see
 *  @ref insn_cpu_has. */
enum {
    INSN_CPU_MOVDIRI   = 1 << 0, /**< Intel, and AMD from Zen 5 on */
    INSN_CPU_MOVDIR64B = 1 << 1, /**< Intel, and AMD from Zen 5 on */
    INSN_CPU_SSE4A     = 1 << 2  /**< AMD only */
};

/** Whether the processor has INSN_CPU_xx: where it does not, the instruction
 *  must be left to it, for it to raise the signal. */
int insn_cpu_has(unsigned feature);

/** Where an extended component is in an XSAVE area: 2, 5, 6 or 7. */
typedef struct {
    uint32_t offset; /**< In the standard format; 0 if the processor lacks it */
    uint32_t size;
} insn_component_t;

/** Components of XCR0, as XGETBV has them; 0 without XSAVE. */
uint64_t insn_cpu_xcr0(void);

/** Extended component @a number of the processor. */
const insn_component_t *insn_cpu_component(unsigned number);


/** Evaluate condition code @a cc (low opcode bits of jcc, setcc, cmovcc). */
int insn_cond(uint64_t rflags, unsigned cc);


/** Vector register to value; the bytes after @a length are zero. */
void insn_vec_read(const mlx5sim_insn_cpu_t *cpu, unsigned reg, unsigned length,
                   insn_vec_t *value);


/**
 * Value to vector register.
 *
 * @param length   Bytes to write: 16, 32, 64.
 * @param zero_up  Clear the register above @a length, as VEX and EVEX do;
 *                 otherwise keep it, as legacy SSE does.
 */
void insn_vec_write(mlx5sim_insn_cpu_t *cpu, unsigned reg, unsigned length,
                    const insn_vec_t *value, int zero_up);


/** Clear the upper halves of registers 0-15, or all of them. */
void insn_vec_zero(mlx5sim_insn_cpu_t *cpu, int all);


/** Whether the vector registers may be used, and as many of them exist as the
 *  encoding can name, as wide as it clears them. */
int insn_vec_usable(const insn_exec_t *x, const insn_t *in);


/* Integer instructions: insn_exec.c, insn_flow.c, insn_bits.c, insn_string.c */
insn_step_t insn_do_alu(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_alu_group(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_test(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_mov(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_mov_imm(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_movx(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_movbe(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_movnti(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_movdir64b(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_lea(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_xchg(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_bswap(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_convert(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_imul(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_unary_group(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_incdec_group(insn_exec_t *x, const insn_t *in);

insn_step_t insn_do_nop(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_hint(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_fence(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_flag(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_push(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_pop(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_leave(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_jcc(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_jmp(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_loop(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_call(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_ret(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_call_group(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_setcc(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_cmov(insn_exec_t *x, const insn_t *in);

insn_step_t insn_do_shift(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_shift_double(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_bt(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_scan(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_popcnt(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_bzhi(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_andn(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_shiftx(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_rorx(insn_exec_t *x, const insn_t *in);

insn_step_t insn_do_movs(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_stos(insn_exec_t *x, const insn_t *in);

/** A full vector move with an opmask; @a align as its memory operand's. */
insn_step_t insn_vec_masked(insn_exec_t *x, const insn_t *in, unsigned align);


/* Vector instructions: insn_vec.c, insn_vec_mask.c, insn_vec_alu.c */
insn_step_t insn_do_kmov(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vload(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vstore(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vload_half(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vstore_half(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_movd_load(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_movd_store(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_movq_store(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vzero(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vbinary(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vunpack_float(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_pshufd(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vshuffle(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vpternlog(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vbroadcast(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vbroadcast_gpr(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vinsert(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_vextract(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_pinsr(insn_exec_t *x, const insn_t *in);
insn_step_t insn_do_pextr(insn_exec_t *x, const insn_t *in);

/** Whether an instruction does nothing but store a register. */
static inline int insn_is_store(const insn_t *in)
{
    return in->is_mem && ((in->op->handler == insn_do_vstore) ||
                          (in->op->handler == insn_do_movnti) ||
                          ((in->op->handler == insn_do_mov) &&
                           !(in->opcode & 2)));
}


/** Whether an instruction may change rsp; some that do not may, too, but not
 *  those that copies are made of. */
static inline int insn_may_move_stack(const insn_t *in)
{
    insn_handler_t handler = in->op->handler;

    if (insn_is_store(in) || (handler == insn_do_vload) ||
        (handler == insn_do_vstore)) {
        return 0;
    }
    return (handler == insn_do_push) || (handler == insn_do_pop) ||
           (handler == insn_do_leave) || (handler == insn_do_call) ||
           (handler == insn_do_ret) || (handler == insn_do_call_group) ||
           (in->reg == INSN_RSP) || (!in->is_mem && (in->rm == INSN_RSP));
}


/** Which operation of @ref insn_do_vbinary: insn_op_t.arg. */
enum {
    INSN_VB_PAND,
    INSN_VB_PANDN,
    INSN_VB_POR,
    INSN_VB_PXOR,
    INSN_VB_ANDPS,
    INSN_VB_ANDNPS,
    INSN_VB_ORPS,
    INSN_VB_XORPS,
    INSN_VB_PADDB,
    INSN_VB_PADDW,
    INSN_VB_PADDD,
    INSN_VB_PADDQ,
    INSN_VB_PSUBB,
    INSN_VB_PSUBW,
    INSN_VB_PSUBD,
    INSN_VB_PSUBQ,
    INSN_VB_PCMPEQB,
    INSN_VB_PCMPEQW,
    INSN_VB_PCMPEQD,
    INSN_VB_PUNPCKLBW,
    INSN_VB_PUNPCKLWD,
    INSN_VB_PUNPCKLDQ,
    INSN_VB_PUNPCKLQDQ,
    INSN_VB_PUNPCKHBW,
    INSN_VB_PUNPCKHWD,
    INSN_VB_PUNPCKHDQ,
    INSN_VB_PUNPCKHQDQ,
    INSN_VB_PSHUFB
};

#endif
