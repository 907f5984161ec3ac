/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file test_insn_encode.h
 *
 * Everything the interpreter claims to know, written down a second time from
 * the manual, and an assembler that makes random instructions of it.
 */

#ifndef TEST_INSN_ENCODE_H_
#define TEST_INSN_ENCODE_H_

#include <sim/test_insn_native.h>

#include <random>
#include <vector>

namespace insn_native {

enum { LEG, VEX, EVEX };
enum { NP, P66, PF3, PF2 };

/* Operands and sizes of a template */
enum {
    BYTE  = 1 << 0,  /* 8-bit operands */
    SIZES = 1 << 1,  /* 16, 32, 64 bits by 66 and W */
    SZ32  = 1 << 2,  /* ... but not 16 */
    MOD   = 1 << 3,  /* ModRM */
    RM_R  = 1 << 4,  /* rm may be a register */
    RM_M  = 1 << 5,  /* rm may be memory */
    IMM8  = 1 << 6,
    IMMZ  = 1 << 7,
    IMMV  = 1 << 8,
    OPREG = 1 << 9,  /* register in the opcode */
    W0    = 1 << 10,
    W1    = 1 << 11,
    NDS   = 1 << 12, /* vvvv is an operand */
    L0    = 1 << 13, /* vector lengths that exist */
    L1    = 1 << 14,
    L2    = 1 << 15,
    ALIGN = 1 << 16, /* memory must be aligned to the vector */
    REP   = 1 << 17, /* may have F3 or F2 in front */
    STR   = 1 << 18, /* string: rsi, rdi, rcx */
    DIRF  = 1 << 19, /* direction flag is of interest */
    BRN   = 1 << 20, /* near target */
    MAYBE = 1 << 21, /* may be refused, depending on values */
    VREG  = 1 << 22, /* registers are vector registers: up to 31 with EVEX */
    IMM16 = 1 << 23,
    MASK  = 1 << 24, /* EVEX: may have an opmask */
    KREG  = 1 << 25, /* ModRM.reg is an opmask register */
    KRM   = 1 << 26, /* ModRM.rm is one */
    B0    = 1 << 27  /* REX.B is clear */
};

constexpr unsigned RM   = MOD | RM_R | RM_M;
constexpr unsigned RR   = MOD | RM_R;
constexpr unsigned MM   = MOD | RM_M;
constexpr unsigned LALL = L0 | L1 | L2;
constexpr unsigned LVEX = L0 | L1;
constexpr unsigned WANY = W0 | W1;

/* EVEX displacement scale: 0 is the vector length, BY_W 8 or 4 */
enum { FULL = 0, BY_W = -1 };

struct template_t {
    const char *name;
    int         enc;
    int         map;
    int         opcode;
    int         last;   /* last opcode of a range */
    int         pp;
    int         group;  /* ModRM.reg, or -1 for any */
    unsigned    flags;
    int         tuple;
};

#define AL_GROUP(_op, _fl) \
    {"alu group " #_op, LEG, 0, _op, _op, NP, -1, (_fl), 0}
#define ONE(_name, _enc, _map, _op, _pp, _fl, _tuple) \
    {_name, _enc, _map, _op, _op, _pp, -1, (_fl), _tuple}
#define GRP(_name, _map, _op, _reg, _fl) \
    {_name, LEG, _map, _op, _op, NP, _reg, (_fl), 0}
/* An instruction that has all three encodings */
#define VEC3(_name, _map, _op, _pp, _w, _fl, _tuple) \
    {_name, LEG, _map, _op, _op, _pp, -1, VREG | ((_fl) & ~NDS), 0}, \
    {"v" _name, VEX, _map, _op, _op, _pp, -1, VREG | LVEX | WANY | (_fl), 0}, \
    {"v" _name " evex", EVEX, _map, _op, _op, _pp, -1, VREG | LALL | (_w) | \
     (_fl), _tuple}
/* ... with 128 bits only */
#define VEC3_128(_name, _map, _op, _pp, _w, _fl, _tuple) \
    {_name, LEG, _map, _op, _op, _pp, -1, VREG | ((_fl) & ~NDS), 0}, \
    {"v" _name, VEX, _map, _op, _op, _pp, -1, VREG | L0 | WANY | (_fl), 0}, \
    {"v" _name " evex", EVEX, _map, _op, _op, _pp, -1, VREG | L0 | (_w) | \
     (_fl), _tuple}
/* Legacy 16-byte memory operands are aligned, VEX and EVEX ones are not */
#define BIN3(_name, _map, _op, _pp, _w, _imm) \
    {_name, LEG, _map, _op, _op, _pp, -1, VREG | RM | ALIGN | (_imm), 0}, \
    {"v" _name, VEX, _map, _op, _op, _pp, -1, \
     VREG | LVEX | WANY | RM | NDS | (_imm), 0}, \
    {"v" _name " evex", EVEX, _map, _op, _op, _pp, -1, \
     VREG | LALL | (_w) | RM | NDS | (_imm), FULL}

inline const template_t TEMPLATES[] = {
    {"alu rm8", LEG, 0, 0x00, 0x00, NP, -1, BYTE | RM, 0},
#define ALU6(_base) \
    ONE("alu rm8, r8", LEG, 0, _base, NP, BYTE | RM, 0), \
    ONE("alu rm, r", LEG, 0, _base + 1, NP, SIZES | RM, 0), \
    ONE("alu r8, rm8", LEG, 0, _base + 2, NP, BYTE | RM, 0), \
    ONE("alu r, rm", LEG, 0, _base + 3, NP, SIZES | RM, 0), \
    ONE("alu al, imm", LEG, 0, _base + 4, NP, BYTE | IMM8, 0), \
    ONE("alu rax, imm", LEG, 0, _base + 5, NP, SIZES | IMMZ, 0)
    ALU6(0x00), ALU6(0x08), ALU6(0x10), ALU6(0x18),
    ALU6(0x20), ALU6(0x28), ALU6(0x30), ALU6(0x38),
    AL_GROUP(0x80, BYTE | RM | IMM8),
    AL_GROUP(0x81, SIZES | RM | IMMZ),
    AL_GROUP(0x83, SIZES | RM | IMM8),
    {"push r", LEG, 0, 0x50, 0x57, NP, -1, OPREG, 0},
    {"pop r", LEG, 0, 0x58, 0x5f, NP, -1, OPREG, 0},
    ONE("push imm32", LEG, 0, 0x68, NP, IMMZ, 0),
    ONE("push imm8", LEG, 0, 0x6a, NP, IMM8, 0),
    ONE("movsxd", LEG, 0, 0x63, NP, SZ32 | RM, 0),
    ONE("imul r, rm, imm", LEG, 0, 0x69, NP, SIZES | RM | IMMZ, 0),
    ONE("imul r, rm, imm8", LEG, 0, 0x6b, NP, SIZES | RM | IMM8, 0),
    {"jcc rel8", LEG, 0, 0x70, 0x7f, NP, -1, IMM8 | BRN, 0},
    ONE("test rm8", LEG, 0, 0x84, NP, BYTE | RM, 0),
    ONE("test rm", LEG, 0, 0x85, NP, SIZES | RM, 0),
    ONE("xchg r8", LEG, 0, 0x86, NP, BYTE | RR, 0),
    ONE("xchg r", LEG, 0, 0x87, NP, SIZES | RR, 0),
    ONE("mov rm8, r8", LEG, 0, 0x88, NP, BYTE | RM, 0),
    ONE("mov rm, r", LEG, 0, 0x89, NP, SIZES | RM, 0),
    ONE("mov r8, rm8", LEG, 0, 0x8a, NP, BYTE | RM, 0),
    ONE("mov r, rm", LEG, 0, 0x8b, NP, SIZES | RM, 0),
    ONE("lea", LEG, 0, 0x8d, NP, SIZES | MM, 0),
    {"xchg rax, r", LEG, 0, 0x90, 0x97, NP, -1, SIZES | OPREG, 0},
    ONE("pause", LEG, 0, 0x90, PF3, B0, 0),
    /* pause or xchg, by vendor: see test_insn_vendor.cc */
    ONE("f3 rex 90", LEG, 0, 0x90, PF3, MAYBE, 0),
    {"cbw, cwd", LEG, 0, 0x98, 0x99, NP, -1, SIZES, 0},
    ONE("movsb", LEG, 0, 0xa4, NP, BYTE | STR | REP | DIRF, 0),
    ONE("movs", LEG, 0, 0xa5, NP, SIZES | STR | REP | DIRF, 0),
    ONE("test al, imm", LEG, 0, 0xa8, NP, BYTE | IMM8, 0),
    ONE("test rax, imm", LEG, 0, 0xa9, NP, SIZES | IMMZ, 0),
    ONE("stosb", LEG, 0, 0xaa, NP, BYTE | STR | REP | DIRF, 0),
    ONE("stos", LEG, 0, 0xab, NP, SIZES | STR | REP | DIRF, 0),
    {"mov r8, imm", LEG, 0, 0xb0, 0xb7, NP, -1, BYTE | OPREG | IMM8, 0},
    {"mov r, imm", LEG, 0, 0xb8, 0xbf, NP, -1, SIZES | OPREG | IMMV, 0},
    ONE("shift rm8, imm", LEG, 0, 0xc0, NP, BYTE | RM | IMM8 | MAYBE, 0),
    ONE("shift rm, imm", LEG, 0, 0xc1, NP, SIZES | RM | IMM8 | MAYBE, 0),
    ONE("ret imm", LEG, 0, 0xc2, NP, IMM16 | MAYBE, 0),
    ONE("ret", LEG, 0, 0xc3, NP, REP | MAYBE, 0),
    GRP("mov rm8, imm", 0, 0xc6, 0, BYTE | RM | IMM8),
    GRP("mov rm, imm", 0, 0xc7, 0, SIZES | RM | IMMZ),
    ONE("leave", LEG, 0, 0xc9, NP, STR, 0),
    ONE("shift rm8, 1", LEG, 0, 0xd0, NP, BYTE | RM | MAYBE, 0),
    ONE("shift rm, 1", LEG, 0, 0xd1, NP, SIZES | RM | MAYBE, 0),
    ONE("shift rm8, cl", LEG, 0, 0xd2, NP, BYTE | RM | MAYBE, 0),
    ONE("shift rm, cl", LEG, 0, 0xd3, NP, SIZES | RM | MAYBE, 0),
    {"loop, jrcxz", LEG, 0, 0xe0, 0xe3, NP, -1, IMM8 | BRN | STR, 0},
    ONE("call rel", LEG, 0, 0xe8, NP, IMMZ | BRN, 0),
    ONE("jmp rel", LEG, 0, 0xe9, NP, IMMZ | BRN, 0),
    ONE("jmp rel8", LEG, 0, 0xeb, NP, IMM8 | BRN, 0),
    ONE("cmc", LEG, 0, 0xf5, NP, 0, 0),
    GRP("test rm8, imm", 0, 0xf6, 0, BYTE | RM | IMM8),
    GRP("test rm, imm", 0, 0xf7, 0, SIZES | RM | IMMZ),
    GRP("test rm, imm", 0, 0xf7, 1, SIZES | RM | IMMZ),
    GRP("not rm8", 0, 0xf6, 2, BYTE | RM),
    GRP("not rm", 0, 0xf7, 2, SIZES | RM),
    GRP("neg rm8", 0, 0xf6, 3, BYTE | RM),
    GRP("neg rm", 0, 0xf7, 3, SIZES | RM),
    GRP("mul rm8", 0, 0xf6, 4, BYTE | RM),
    GRP("mul rm", 0, 0xf7, 4, SIZES | RM),
    GRP("imul rm8", 0, 0xf6, 5, BYTE | RM),
    GRP("imul rm", 0, 0xf7, 5, SIZES | RM),
    {"clc, stc", LEG, 0, 0xf8, 0xf9, NP, -1, 0, 0},
    {"cld, std", LEG, 0, 0xfc, 0xfd, NP, -1, DIRF, 0},
    GRP("inc rm8", 0, 0xfe, 0, BYTE | RM),
    GRP("dec rm8", 0, 0xfe, 1, BYTE | RM),
    GRP("inc rm", 0, 0xff, 0, SIZES | RM),
    GRP("dec rm", 0, 0xff, 1, SIZES | RM),
    GRP("call rm", 0, 0xff, 2, RM | ALIGN | MAYBE),
    GRP("jmp rm", 0, 0xff, 4, RM | ALIGN | MAYBE),
    GRP("push rm", 0, 0xff, 6, RM),

    ONE("prefetchw", LEG, 1, 0x0d, NP, MM, 0),
    ONE("prefetch", LEG, 1, 0x18, NP, MM, 0),
    ONE("nop rm", LEG, 1, 0x1f, NP, SIZES | RM, 0),
    {"cmovcc", LEG, 1, 0x40, 0x4f, NP, -1, SIZES | RM, 0},
    {"jcc rel32", LEG, 1, 0x80, 0x8f, NP, -1, IMMZ | BRN, 0},
    {"setcc", LEG, 1, 0x90, 0x9f, NP, -1, BYTE | RM, 0},
    ONE("bt", LEG, 1, 0xa3, NP, SIZES | RR, 0),
    ONE("bts", LEG, 1, 0xab, NP, SIZES | RR, 0),
    ONE("btr", LEG, 1, 0xb3, NP, SIZES | RR, 0),
    ONE("btc", LEG, 1, 0xbb, NP, SIZES | RR, 0),
    GRP("bt imm", 1, 0xba, 4, SIZES | RM | IMM8),
    GRP("bts imm", 1, 0xba, 5, SIZES | RM | IMM8),
    GRP("btr imm", 1, 0xba, 6, SIZES | RM | IMM8),
    GRP("btc imm", 1, 0xba, 7, SIZES | RM | IMM8),
    ONE("shld imm", LEG, 1, 0xa4, NP, SIZES | RM | IMM8 | MAYBE, 0),
    ONE("shld cl", LEG, 1, 0xa5, NP, SIZES | RM | MAYBE, 0),
    ONE("shrd imm", LEG, 1, 0xac, NP, SIZES | RM | IMM8 | MAYBE, 0),
    ONE("shrd cl", LEG, 1, 0xad, NP, SIZES | RM | MAYBE, 0),
    GRP("lfence", 1, 0xae, 5, RR),
    GRP("mfence", 1, 0xae, 6, RR),
    GRP("sfence", 1, 0xae, 7, RR),
    ONE("imul r, rm", LEG, 1, 0xaf, NP, SIZES | RM, 0),
    ONE("movzx 8", LEG, 1, 0xb6, NP, SIZES | RM, 0),
    ONE("movzx 16", LEG, 1, 0xb7, NP, SIZES | RM, 0),
    ONE("movsx 8", LEG, 1, 0xbe, NP, SIZES | RM, 0),
    ONE("movsx 16", LEG, 1, 0xbf, NP, SIZES | RM, 0),
    ONE("popcnt", LEG, 1, 0xb8, PF3, SIZES | RM, 0),
    {"bsf, bsr", LEG, 1, 0xbc, 0xbd, NP, -1, SIZES | RM | MAYBE, 0},
    ONE("movnti", LEG, 1, 0xc3, NP, SZ32 | MM, 0),
    {"bswap", LEG, 1, 0xc8, 0xcf, NP, -1, SZ32 | OPREG, 0},
    {"movbe", LEG, 2, 0xf0, 0xf1, NP, -1, SIZES | MM, 0},
    ONE("kmov k, km", VEX, 1, 0x90, NP, L0 | WANY | RM | KREG | KRM, 0),
    ONE("kmov k, km", VEX, 1, 0x90, P66, L0 | WANY | RM | KREG | KRM, 0),
    ONE("kmov m, k", VEX, 1, 0x91, NP, L0 | WANY | MM | KREG, 0),
    ONE("kmov m, k", VEX, 1, 0x91, P66, L0 | WANY | MM | KREG, 0),
    ONE("kmov k, r", VEX, 1, 0x92, NP, L0 | W0 | RR | KREG, 0),
    ONE("kmov k, r", VEX, 1, 0x92, P66, L0 | W0 | RR | KREG, 0),
    ONE("kmov k, r", VEX, 1, 0x92, PF2, L0 | WANY | RR | KREG, 0),
    ONE("kmov r, k", VEX, 1, 0x93, NP, L0 | W0 | RR | KRM, 0),
    ONE("kmov r, k", VEX, 1, 0x93, P66, L0 | W0 | RR | KRM, 0),
    ONE("kmov r, k", VEX, 1, 0x93, PF2, L0 | WANY | RR | KRM, 0),
    ONE("bzhi", VEX, 2, 0xf5, NP, L0 | WANY | RM | NDS, 0),
    ONE("andn", VEX, 2, 0xf2, NP, L0 | WANY | RM | NDS, 0),
    ONE("shlx", VEX, 2, 0xf7, P66, L0 | WANY | RM | NDS, 0),
    ONE("sarx", VEX, 2, 0xf7, PF3, L0 | WANY | RM | NDS, 0),
    ONE("shrx", VEX, 2, 0xf7, PF2, L0 | WANY | RM | NDS, 0),
    ONE("rorx", VEX, 3, 0xf0, PF2, L0 | WANY | RM | IMM8, 0),

    VEC3("movups", 1, 0x10, NP, W0, RM | MASK, FULL),
    VEC3("movups st", 1, 0x11, NP, W0, RM | MASK, FULL),
    VEC3("movupd", 1, 0x10, P66, W1, RM | MASK, FULL),
    VEC3("movupd st", 1, 0x11, P66, W1, RM | MASK, FULL),
    VEC3("movaps", 1, 0x28, NP, W0, RM | MASK | ALIGN, FULL),
    VEC3("movaps st", 1, 0x29, NP, W0, RM | MASK | ALIGN, FULL),
    VEC3("movapd", 1, 0x28, P66, W1, RM | MASK | ALIGN, FULL),
    VEC3("movapd st", 1, 0x29, P66, W1, RM | MASK | ALIGN, FULL),
    VEC3("movntps", 1, 0x2b, NP, W0, MM | ALIGN, FULL),
    VEC3("movntpd", 1, 0x2b, P66, W1, MM | ALIGN, FULL),
    VEC3("movdqa", 1, 0x6f, P66, WANY, RM | MASK | ALIGN, FULL),
    VEC3("movdqa st", 1, 0x7f, P66, WANY, RM | MASK | ALIGN, FULL),
    VEC3("movdqu", 1, 0x6f, PF3, WANY, RM | MASK, FULL),
    VEC3("movdqu st", 1, 0x7f, PF3, WANY, RM | MASK, FULL),
    ONE("vmovdqu8/16", EVEX, 1, 0x6f, PF2,
        VREG | LALL | WANY | RM | MASK, FULL),
    ONE("vmovdqu8/16 st", EVEX, 1, 0x7f, PF2,
        VREG | LALL | WANY | RM | MASK, FULL),
    VEC3("movntdq", 1, 0xe7, P66, W0, MM | ALIGN, FULL),
    VEC3("movntdqa", 2, 0x2a, P66, W0, MM | ALIGN, FULL),
    ONE("lddqu", LEG, 1, 0xf0, PF2, VREG | MM, 0),
    ONE("vlddqu", VEX, 1, 0xf0, PF2, VREG | LVEX | WANY | MM, 0),
    VEC3("movss", 1, 0x10, PF3, W0, MM, 4),
    VEC3("movss st", 1, 0x11, PF3, W0, MM, 4),
    VEC3("movsd", 1, 0x10, PF2, W1, MM, 8),
    VEC3("movsd st", 1, 0x11, PF2, W1, MM, 8),
    VEC3("movss r", 1, 0x10, PF3, W0, RR | NDS, 0),
    VEC3("movss r st", 1, 0x11, PF3, W0, RR | NDS, 0),
    VEC3("movsd r", 1, 0x10, PF2, W1, RR | NDS, 0),
    VEC3("movsd r st", 1, 0x11, PF2, W1, RR | NDS, 0),
    VEC3_128("movlps", 1, 0x12, NP, W0, RM | NDS, 8),
    VEC3_128("movlpd", 1, 0x12, P66, W1, MM | NDS, 8),
    VEC3_128("movhps", 1, 0x16, NP, W0, RM | NDS, 8),
    VEC3_128("movhpd", 1, 0x16, P66, W1, MM | NDS, 8),
    VEC3_128("movlps st", 1, 0x13, NP, W0, MM, 8),
    VEC3_128("movlpd st", 1, 0x13, P66, W1, MM, 8),
    VEC3_128("movhps st", 1, 0x17, NP, W0, MM, 8),
    VEC3_128("movhpd st", 1, 0x17, P66, W1, MM, 8),
    VEC3_128("movd", 1, 0x6e, P66, WANY, RM, BY_W),
    VEC3_128("movd st", 1, 0x7e, P66, WANY, RM, BY_W),
    VEC3_128("movq", 1, 0x7e, PF3, W1, RM, 8),
    VEC3_128("movq st", 1, 0xd6, P66, W1, RM, 8),
    ONE("vzeroupper", VEX, 1, 0x77, NP, L0 | WANY, 0),
    ONE("vzeroall", VEX, 1, 0x77, NP, L1 | WANY, 0),

    BIN3("pand", 1, 0xdb, P66, WANY, 0), BIN3("pandn", 1, 0xdf, P66, WANY, 0),
    BIN3("por", 1, 0xeb, P66, WANY, 0), BIN3("pxor", 1, 0xef, P66, WANY, 0),
    BIN3("andps", 1, 0x54, NP, W0, 0), BIN3("andpd", 1, 0x54, P66, W1, 0),
    BIN3("andnps", 1, 0x55, NP, W0, 0), BIN3("andnpd", 1, 0x55, P66, W1, 0),
    BIN3("orps", 1, 0x56, NP, W0, 0), BIN3("orpd", 1, 0x56, P66, W1, 0),
    BIN3("xorps", 1, 0x57, NP, W0, 0), BIN3("xorpd", 1, 0x57, P66, W1, 0),
    BIN3("paddb", 1, 0xfc, P66, WANY, 0), BIN3("paddw", 1, 0xfd, P66, WANY, 0),
    BIN3("paddd", 1, 0xfe, P66, W0, 0), BIN3("paddq", 1, 0xd4, P66, W1, 0),
    BIN3("psubb", 1, 0xf8, P66, WANY, 0), BIN3("psubw", 1, 0xf9, P66, WANY, 0),
    BIN3("psubd", 1, 0xfa, P66, W0, 0), BIN3("psubq", 1, 0xfb, P66, W1, 0),
    {"pcmpeq", LEG, 1, 0x74, 0x76, P66, -1, VREG | RM | ALIGN, 0},
    {"vpcmpeq", VEX, 1, 0x74, 0x76, P66, -1, VREG | LVEX | WANY | RM | NDS, 0},
    BIN3("punpcklbw", 1, 0x60, P66, WANY, 0),
    BIN3("punpcklwd", 1, 0x61, P66, WANY, 0),
    BIN3("punpckldq", 1, 0x62, P66, W0, 0),
    BIN3("punpcklqdq", 1, 0x6c, P66, W1, 0),
    BIN3("punpckhbw", 1, 0x68, P66, WANY, 0),
    BIN3("punpckhwd", 1, 0x69, P66, WANY, 0),
    BIN3("punpckhdq", 1, 0x6a, P66, W0, 0),
    BIN3("punpckhqdq", 1, 0x6d, P66, W1, 0),
    BIN3("unpcklps", 1, 0x14, NP, W0, 0), BIN3("unpcklpd", 1, 0x14, P66, W1, 0),
    BIN3("unpckhps", 1, 0x15, NP, W0, 0), BIN3("unpckhpd", 1, 0x15, P66, W1, 0),
    BIN3("pshufb", 2, 0x00, P66, WANY, 0),
    BIN3("shufps", 1, 0xc6, NP, W0, IMM8),
    BIN3("shufpd", 1, 0xc6, P66, W1, IMM8),
    BIN3("palignr", 3, 0x0f, P66, WANY, IMM8),
    ONE("pshufd", LEG, 1, 0x70, P66, VREG | RM | IMM8 | ALIGN, 0),
    ONE("vpshufd", VEX, 1, 0x70, P66, VREG | LVEX | WANY | RM | IMM8, 0),
    ONE("vpshufd evex", EVEX, 1, 0x70, P66, VREG | LALL | W0 | RM | IMM8, FULL),
    ONE("vpternlogd", EVEX, 3, 0x25, P66,
        VREG | LALL | WANY | RM | NDS | IMM8, FULL),
    VEC3_128("pinsrb", 3, 0x20, P66, WANY, RM | NDS | IMM8 | MAYBE, 1),
    VEC3_128("pinsrw", 1, 0xc4, P66, WANY, RM | NDS | IMM8 | MAYBE, 2),
    VEC3_128("pinsrd/q", 3, 0x22, P66, WANY, RM | NDS | IMM8, BY_W),
    VEC3_128("pextrb", 3, 0x14, P66, WANY, RM | IMM8 | MAYBE, 1),
    VEC3_128("pextrw", 3, 0x15, P66, WANY, RM | IMM8 | MAYBE, 2),
    VEC3_128("pextrd/q", 3, 0x16, P66, WANY, RM | IMM8, BY_W),
#define BCAST(_name, _op, _vl, _el, _ew, _rm, _tuple) \
    ONE(_name, VEX, 2, _op, P66, VREG | (_vl) | W0 | (_rm), 0), \
    ONE(_name " evex", EVEX, 2, _op, P66, VREG | (_el) | (_ew) | (_rm), _tuple)
    BCAST("vbroadcastss", 0x18, LVEX, LALL, W0, RM, 4),
    BCAST("vbroadcastsd", 0x19, L1, L1 | L2, W1, RM, 8),
    BCAST("vbroadcastf128", 0x1a, L1, L1 | L2, WANY, MM, 16),
    BCAST("vpbroadcastd", 0x58, LVEX, LALL, W0, RM, 4),
    BCAST("vpbroadcastq", 0x59, LVEX, LALL, W1, RM, 8),
    BCAST("vbroadcasti128", 0x5a, L1, L1 | L2, WANY, MM, 16),
    BCAST("vpbroadcastb", 0x78, LVEX, LALL, W0, RM, 1),
    BCAST("vpbroadcastw", 0x79, LVEX, LALL, W0, RM, 2),
    ONE("vbroadcastf32x8", EVEX, 2, 0x1b, P66, VREG | L2 | WANY | MM, 32),
    ONE("vbroadcasti32x8", EVEX, 2, 0x5b, P66, VREG | L2 | WANY | MM, 32),
    {"vpbroadcast r", EVEX, 2, 0x7a, 0x7b, P66, -1, VREG | LALL | W0 | RR, 0},
    ONE("vpbroadcastd r", EVEX, 2, 0x7c, P66, VREG | LALL | WANY | RR, 0),
#define INSEX(_op, _l, _nds, _tuple) \
    ONE("vinsert/extract", EVEX, 3, _op, P66, \
        VREG | (_l) | WANY | RM | IMM8 | (_nds), _tuple)
    ONE("vinsertf128", VEX, 3, 0x18, P66, VREG | L1 | W0 | RM | NDS | IMM8, 0),
    ONE("vinserti128", VEX, 3, 0x38, P66, VREG | L1 | W0 | RM | NDS | IMM8, 0),
    ONE("vextractf128", VEX, 3, 0x19, P66, VREG | L1 | W0 | RM | IMM8, 0),
    ONE("vextracti128", VEX, 3, 0x39, P66, VREG | L1 | W0 | RM | IMM8, 0),
    INSEX(0x18, L1 | L2, NDS, 16), INSEX(0x38, L1 | L2, NDS, 16),
    INSEX(0x1a, L2, NDS, 32), INSEX(0x3a, L2, NDS, 32),
    INSEX(0x19, L1 | L2, 0, 16), INSEX(0x39, L1 | L2, 0, 16),
    INSEX(0x1b, L2, 0, 32), INSEX(0x3b, L2, 0, 32),
};
constexpr size_t NUM_TEMPLATES = sizeof(TEMPLATES) / sizeof(TEMPLATES[0]);

class generator_t {
public:
    explicit generator_t(uint64_t seed) : m_rng(seed) {}

    uint64_t rnd() { return m_rng(); }
    uint64_t rnd(uint64_t n) { return m_rng() % n; }
    bool one_in(uint64_t n) { return rnd(n) == 0; }

    /* Values with a taste for edges */
    uint64_t value()
    {
        switch (rnd(8)) {
        case 0:
            return 0;
        case 1:
            return ~0ul;
        case 2:
            return 1ul << rnd(64);
        case 3:
            return (1ul << rnd(64)) - 1;
        case 4:
            return rnd(256);
        case 5:
            return one_in(2) ? rnd() << 32 : CODE_BASE + rnd(CODE_SIZE);
        default:
            return rnd();
        }
    }

    void random_state(state_t *s)
    {
        for (auto &r : s->gpr) {
            r = value();
        }
        for (auto &v : s->vec) {
            for (unsigned i = 0; i < 64; i += 8) {
                uint64_t q = rnd();
                memcpy(v + i, &q, 8);
            }
        }
        for (auto &k : s->k) {
            k = value();
        }
        s->rflags  = 0x202 | (rnd() & STATUS);
        s->gpr[4]  = data_address(8);
    }

    /* An address with room on both sides */
    uint64_t data_address(unsigned align)
    {
        return (DATA_BASE + 512 + rnd(DATA_SIZE - 1024)) & ~(align - 1ul);
    }

    /* Encode a template with random operands; choose where it lies, and prepare
     * the registers so that its memory operand is in the data area. False if
     * this choice has no encoding. */
    bool encode(const template_t &t, state_t *s, std::vector<uint8_t> *code,
                bool *repeated);

    /* Where the memory operand of the last encoding lies */
    uint64_t last_target() const { return m_target; }

    /* From now on, use registers only where a template leaves the choice */
    void avoid_memory() { m_no_memory = true; }

private:
    struct operand_t {
        bool     mem = false;
        unsigned reg = 0;
        int      base = -1;
        int      index = -1;
        unsigned scale = 0;
        bool     rip = false;
        bool     addr32 = false;
        int      disp_size = 0;
        int64_t  disp = 0; /* as encoded */
        int64_t  disp_value = 0; /* as added */
        uint64_t target = 0;
    };

    bool memory(operand_t *o, state_t *s, unsigned disp8_scale, unsigned align);

    void put(std::vector<uint8_t> *code, uint64_t value, unsigned size)
    {
        for (unsigned i = 0; i < size; ++i) {
            code->push_back(value >> (8 * i));
        }
    }

    std::mt19937_64 m_rng;
    uint64_t        m_target    = 0;
    bool            m_no_memory = false;
};

inline bool generator_t::memory(operand_t *o, state_t *s, unsigned disp8_scale,
                                unsigned align)
{
    uint64_t target = data_address(align);
    uint64_t want;

    o->mem    = true;
    o->addr32 = one_in(8);
    if (o->addr32) {
        target -= DATA_BASE - LOW_BASE;
    }
    o->target = target;
    m_target  = target;
    if (one_in(10) && !o->addr32) { /* rip-relative, resolved by the caller */
        o->rip       = true;
        o->disp_size = 4;
        return true;
    }
    o->base = one_in(10) ? -1 : static_cast<int>(rnd(16));
    if ((o->base < 0) || one_in(2)) {
        o->index = rnd(16);
        o->scale = rnd(4);
        if ((o->index == 4) || (o->index == o->base)) {
            o->index = -1;
        }
    }
    o->disp_size = (o->base < 0) ? 4 : (rnd(3) == 0) ? 0 : one_in(2) ? 1 : 4;
    if ((o->disp_size == 0) && ((o->base & 7) == 5)) {
        o->disp_size = 1;
    }
    if (o->disp_size == 1) {
        o->disp       = static_cast<int8_t>(rnd());
        o->disp_value = o->disp * static_cast<int64_t>(disp8_scale);
    } else if (o->disp_size == 4) {
        o->disp       = static_cast<int32_t>(rnd());
        o->disp_value = o->disp;
    }
    if (o->base < 0) {
        /* All of the address in the displacement and a scaled index */
        if (o->index < 0) {
            o->target     = target = LOW_BASE + 512 + (align * rnd(8));
            o->disp       = static_cast<int32_t>(target);
            o->disp_value = o->disp;
            return true;
        }
        uint64_t step = 1ul << o->scale;
        o->disp      &= ~(step - 1);
        o->disp      |= target & (step - 1);
        o->disp_value = o->disp;
        want          = target - o->disp_value;
        s->gpr[o->index] = want >> o->scale;
        if (o->addr32) {
            want = (s->gpr[o->index] << o->scale) + o->disp_value;
            return static_cast<uint32_t>(want) == target;
        }
        return (s->gpr[o->index] << o->scale) + o->disp_value == target;
    }
    want = target - o->disp_value;
    if (o->index >= 0) {
        want -= s->gpr[o->index] << o->scale;
    }
    if (o->addr32) {
        want = static_cast<uint32_t>(want) | (rnd() << 32);
    }
    s->gpr[o->base] = want;
    return true;
}

inline bool generator_t::encode(const template_t &t, state_t *s,
                                std::vector<uint8_t> *code, bool *repeated)
{
    unsigned opcode = t.opcode + rnd(t.last - t.opcode + 1);
    unsigned vl = 16, vl_code = 0, num_regs;
    bool w = false, opsize = false, rep = false;
    unsigned reg, vvvv = 0, ext;
    operand_t o;

    if ((t.flags & (KREG | KRM)) && (level() < LEVEL_AVX512)) {
        return false;
    }
    if ((t.enc == VEX) && (level() < LEVEL_AVX)) {
        return false;
    }
    if ((t.enc == EVEX) && (level() < LEVEL_AVX512)) {
        return false;
    }
    num_regs = ((t.enc == EVEX) && (t.flags & VREG)) ? 32 : 16;

    if (t.enc == LEG) {
        if (t.flags & BYTE) {
            w = one_in(4);
        } else if (t.flags & (SIZES | SZ32)) {
            unsigned which = rnd((t.flags & SIZES) ? 3 : 2);
            w      = (which == 1);
            opsize = (which == 2);
        } else {
            w = (t.flags & VREG) && one_in(3);
        }
    } else {
        vl_code = rnd(3);
        if (!(t.flags & (L0 << vl_code))) {
            return false;
        }
        vl = 16 << vl_code;
        w  = (t.flags & W1) && (!(t.flags & W0) || one_in(2));
    }

    /* Operands. A target for near branches; words and stacks where needed. */
    reg = (t.group >= 0) ? t.group : rnd(num_regs);
    if (t.flags & KREG) {
        reg = rnd(8);
    }
    if (t.flags & NDS) {
        vvvv = rnd(num_regs);
    }
    if (t.flags & STR) {
        unsigned count = one_in(5) ? 0 : rnd(40);
        s->gpr[6] = data_address(1);
        s->gpr[7] = data_address(1);
        s->gpr[1] = count;
        s->gpr[5] = data_address(8);
    }
    if (t.flags & DIRF) {
        s->rflags |= one_in(3) ? DIR_FLAG : 0;
    }
    if (t.flags & REP) {
        rep = one_in(2);
        *repeated = rep && (t.flags & STR); /* not ret */
    }
    bool mem = (t.flags & RM_M) &&
               (!(t.flags & RM_R) || (!m_no_memory && one_in(2)));
    if (mem) {
        unsigned scale = (t.enc != EVEX)    ? 1 :
                         (t.tuple == FULL)  ? vl :
                         (t.tuple == BY_W)  ? (w ? 8 : 4) : t.tuple;
        unsigned align = (t.flags & ALIGN) && !one_in(20) ? vl : 1;
        if (!memory(&o, s, scale, align)) {
            return false;
        }
    } else {
        o.reg = rnd((t.flags & VREG) ? num_regs : (t.flags & KRM) ? 8 : 16);
    }

    /* Prefixes */
    code->clear();
    if (t.enc == LEG) {
        if (one_in(16)) {
            code->push_back(one_in(2) ? 0x3e : 0x2e);
        }
        if (o.addr32) {
            code->push_back(0x67);
        }
        if (opsize || (t.pp == P66)) {
            code->push_back(0x66);
        }
        if ((t.pp == PF3) || (rep && (t.pp == NP))) {
            code->push_back((rep && one_in(2)) ? 0xf2 : 0xf3);
        } else if (t.pp == PF2) {
            code->push_back(0xf2);
        }
    } else if (o.addr32) {
        code->push_back(0x67);
    }

    unsigned rm_b = mem ? ((o.base >= 0) ? o.base >> 3 : 0) : (o.reg >> 3) & 1;
    unsigned rm_x = mem ? ((o.index >= 0) ? o.index >> 3 : 0) : o.reg >> 4;
    if ((t.flags & OPREG)) {
        rm_b = one_in(2);
    }
    if (t.flags & B0) {
        rm_b = 0;
    }
    ext = (t.group >= 0) ? 0 : (reg >> 3) & 1;
    if (t.enc == LEG) {
        uint8_t rex = 0x40 | (w << 3) | (ext << 2) | ((rm_x & 1) << 1) | rm_b;
        if ((rex != 0x40) || one_in(4)) {
            code->push_back(rex);
        }
        if (t.map > 0) {
            code->push_back(0x0f);
        }
        if (t.map > 1) {
            code->push_back((t.map == 2) ? 0x38 : 0x3a);
        }
    } else if (t.enc == VEX) {
        bool can_c5 = (t.map == 1) && !w && !rm_b && !(rm_x & 1);
        uint8_t low = ((~vvvv & 15) << 3) | (vl_code << 2) | t.pp;
        if (vl_code > 1) {
            return false;
        }
        if (can_c5 && one_in(2)) {
            code->push_back(0xc5);
            code->push_back((!ext << 7) | low);
        } else {
            code->push_back(0xc4);
            code->push_back((!ext << 7) | (!(rm_x & 1) << 6) | (!rm_b << 5) |
                            t.map);
            code->push_back((w << 7) | low);
        }
    } else {
        code->push_back(0x62);
        code->push_back((!ext << 7) | (!(rm_x & 1) << 6) | (!rm_b << 5) |
                        (!(reg >> 4) << 4) | t.map);
        code->push_back((w << 7) | ((~vvvv & 15) << 3) | 4 | t.pp);
        unsigned mask = (t.flags & MASK) && one_in(2) ? rnd(8) : 0;
        bool store    = (opcode & 1) && (opcode != 0x6f);
        bool zeroing  = mask && !(mem && store) && one_in(2);
        code->push_back((zeroing << 7) | (vl_code << 5) |
                        (!(vvvv >> 4) << 3) | mask);
    }
    code->push_back((t.flags & OPREG) ? opcode & ~7u : opcode);
    if (t.flags & OPREG) {
        code->back() |= rnd(8);
    }

    /* ModRM, SIB, displacement */
    size_t disp_at = 0;
    if (t.flags & MOD) {
        unsigned r = (reg & 7) << 3;
        if (!mem) {
            code->push_back(0xc0 | r | (o.reg & 7));
        } else if (o.rip) {
            code->push_back(r | 5);
        } else {
            unsigned mod = (o.base < 0)         ? 0 :
                           (o.disp_size == 0)   ? 0 :
                           (o.disp_size == 1)   ? 1 : 2;
            if ((o.index >= 0) || (o.base < 0) || ((o.base & 7) == 4)) {
                code->push_back((mod << 6) | r | 4);
                code->push_back((o.scale << 6) |
                                (((o.index < 0) ? 4 : o.index & 7) << 3) |
                                ((o.base < 0) ? 5 : o.base & 7));
            } else {
                code->push_back((mod << 6) | r | (o.base & 7));
            }
        }
        disp_at = code->size();
        if (mem) {
            put(code, o.disp, o.disp_size);
        }
    }

    /* Immediate */
    if (t.flags & IMM8) {
        put(code, value(), 1);
    }
    if (t.flags & IMM16) {
        put(code, rnd(256), 2);
    }
    if (t.flags & IMMZ) {
        put(code, (t.flags & BRN) ? rnd(512) : value(), opsize ? 2 : 4);
    }
    if (t.flags & IMMV) {
        put(code, value(), w ? 8 : opsize ? 2 : 4);
    }
    /* Often at the end of the mapping: nothing beyond may be fetched */
    s->rip = CODE_BASE + 1024;
    if (!(t.flags & BRN) && one_in(2)) {
        s->rip = CODE_BASE + CODE_SIZE - code->size();
    }
    if (o.rip) {
        uint64_t disp = o.target - (s->rip + code->size());
        memcpy(code->data() + disp_at, &disp, 4);
    }
    return code->size() <= 15;
}

} // namespace insn_native

#endif
