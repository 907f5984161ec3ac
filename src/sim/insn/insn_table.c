/* SPDX-License-Identifier: BSD-3-Clause */

/* Opcode tables (SDM 2, appendix A). An entry that is not here is unknown. */

#include <sim/insn/insn_int.h>

#define M INSN_F_MODRM

#define OP(_handler, _flags) \
    { .handler = insn_do_##_handler, .flags = (_flags) }
#define OPA(_handler, _flags, _arg) \
    { .handler = insn_do_##_handler, .flags = (_flags), .arg = (_arg) }
#define OPAT(_handler, _flags, _arg, _tuple) \
    { .handler = insn_do_##_handler, .flags = (_flags), .arg = (_arg), \
      .tuple = INSN_TUPLE_##_tuple }
#define OPT(_handler, _flags, _tuple) \
    { .handler = insn_do_##_handler, .flags = (_flags), \
      .tuple = INSN_TUPLE_##_tuple }

/* The six operand forms of an arithmetic operation */
#define ALU(_first, _arg) \
    [_first]     = OPA(alu, M | INSN_F_BYTE, _arg), \
    [_first + 1] = OPA(alu, M, _arg), \
    [_first + 2] = OPA(alu, M | INSN_F_BYTE, _arg), \
    [_first + 3] = OPA(alu, M, _arg), \
    [_first + 4] = OPA(alu, INSN_F_BYTE | INSN_F_IMM8, _arg), \
    [_first + 5] = OPA(alu, INSN_F_IMMZ, _arg)

/* Operations that exist as legacy, VEX and EVEX (or not EVEX) alike; the EVEX
 * displacement is scaled by the vector length */
#define VB(_flags, _arg) \
    { .handler = insn_do_vbinary, .flags = (_flags), .arg = INSN_VB_##_arg }
#define VECTOR_BINARY(_flags, _vex_only) \
    [0x54] = VB(_flags, ANDPS), \
    [0x55] = VB(_flags, ANDNPS), \
    [0x56] = VB(_flags, ORPS), \
    [0x57] = VB(_flags, XORPS), \
    [0x60] = VB(_flags, PUNPCKLBW), \
    [0x61] = VB(_flags, PUNPCKLWD), \
    [0x62] = VB(_flags, PUNPCKLDQ), \
    [0x68] = VB(_flags, PUNPCKHBW), \
    [0x69] = VB(_flags, PUNPCKHWD), \
    [0x6a] = VB(_flags, PUNPCKHDQ), \
    [0x6c] = VB(_flags, PUNPCKLQDQ), \
    [0x6d] = VB(_flags, PUNPCKHQDQ), \
    [0x74] = VB(_vex_only, PCMPEQB), \
    [0x75] = VB(_vex_only, PCMPEQW), \
    [0x76] = VB(_vex_only, PCMPEQD), \
    [0xd4] = VB(_flags, PADDQ), \
    [0xdb] = VB(_flags, PAND), \
    [0xdf] = VB(_flags, PANDN), \
    [0xeb] = VB(_flags, POR), \
    [0xef] = VB(_flags, PXOR), \
    [0xf8] = VB(_flags, PSUBB), \
    [0xf9] = VB(_flags, PSUBW), \
    [0xfa] = VB(_flags, PSUBD), \
    [0xfb] = VB(_flags, PSUBQ), \
    [0xfc] = VB(_flags, PADDB), \
    [0xfd] = VB(_flags, PADDW), \
    [0xfe] = VB(_flags, PADDD)

#define VECTOR (M | INSN_F_PP)
#define VEX    (M | INSN_F_PP | INSN_F_VEX)
#define EVEX   (M | INSN_F_PP | INSN_F_EVEX)
#define BOTH   (VEX | INSN_F_EVEX)
#define BRANCH (INSN_F_D64 | INSN_F_REP)


const insn_op_t insn_legacy_ops[4][256] = {
    [0] = {
        ALU(0x00, 0), ALU(0x08, 1), ALU(0x10, 2), ALU(0x18, 3),
        ALU(0x20, 4), ALU(0x28, 5), ALU(0x30, 6), ALU(0x38, 7),
        [0x50 ... 0x57] = OP(push, INSN_F_D64),
        [0x58 ... 0x5f] = OP(pop, INSN_F_D64),
        [0x63] = OPA(movx, M, 16 | 4),
        [0x68] = OP(push, INSN_F_D64 | INSN_F_IMMZ),
        [0x69] = OP(imul, M | INSN_F_IMMZ),
        [0x6a] = OP(push, INSN_F_D64 | INSN_F_IMM8),
        [0x6b] = OP(imul, M | INSN_F_IMM8),
        [0x70 ... 0x7f] = OP(jcc, BRANCH | INSN_F_IMM8),
        [0x80] = OP(alu_group, M | INSN_F_BYTE | INSN_F_IMM8),
        [0x81] = OP(alu_group, M | INSN_F_IMMZ),
        [0x83] = OP(alu_group, M | INSN_F_IMM8),
        [0x84] = OP(test, M | INSN_F_BYTE),
        [0x85] = OP(test, M),
        [0x86] = OP(xchg, M | INSN_F_BYTE),
        [0x87] = OP(xchg, M),
        [0x88] = OP(mov, M | INSN_F_BYTE),
        [0x89] = OP(mov, M),
        [0x8a] = OP(mov, M | INSN_F_BYTE),
        [0x8b] = OP(mov, M),
        [0x8d] = OP(lea, M),
        [0x90] = OP(xchg, INSN_F_REP), /* nop, pause */
        [0x91 ... 0x97] = OP(xchg, 0),
        [0x98 ... 0x99] = OP(convert, 0),
        [0xa4] = OP(movs, INSN_F_BYTE | INSN_F_REP),
        [0xa5] = OP(movs, INSN_F_REP),
        [0xa8] = OP(test, INSN_F_BYTE | INSN_F_IMM8),
        [0xa9] = OP(test, INSN_F_IMMZ),
        [0xaa] = OP(stos, INSN_F_BYTE | INSN_F_REP),
        [0xab] = OP(stos, INSN_F_REP),
        [0xb0 ... 0xb7] = OP(mov_imm, INSN_F_BYTE | INSN_F_IMM8),
        [0xb8 ... 0xbf] = OP(mov_imm, INSN_F_IMMV),
        [0xc0] = OP(shift, M | INSN_F_BYTE | INSN_F_IMM8),
        [0xc1] = OP(shift, M | INSN_F_IMM8),
        [0xc2] = OP(ret, BRANCH | INSN_F_IMM16),
        [0xc3] = OP(ret, BRANCH),
        [0xc6] = OP(mov_imm, M | INSN_F_BYTE | INSN_F_IMM8),
        [0xc7] = OP(mov_imm, M | INSN_F_IMMZ),
        [0xc9] = OP(leave, INSN_F_D64),
        [0xd0] = OP(shift, M | INSN_F_BYTE),
        [0xd1] = OP(shift, M),
        [0xd2] = OP(shift, M | INSN_F_BYTE),
        [0xd3] = OP(shift, M),
        [0xe0 ... 0xe3] = OP(loop, INSN_F_D64 | INSN_F_IMM8),
        [0xe8] = OP(call, BRANCH | INSN_F_IMMZ),
        [0xe9] = OP(jmp, BRANCH | INSN_F_IMMZ),
        [0xeb] = OP(jmp, BRANCH | INSN_F_IMM8),
        [0xf5] = OP(flag, 0),
        [0xf6] = OP(unary_group, M | INSN_F_BYTE | INSN_F_TEST),
        [0xf7] = OP(unary_group, M | INSN_F_TEST),
        [0xf8 ... 0xf9] = OP(flag, 0),
        [0xfc ... 0xfd] = OP(flag, 0),
        [0xfe] = OP(incdec_group, M | INSN_F_BYTE),
        [0xff] = OP(call_group, M | INSN_F_REP),
    },
    [1] = {
        VECTOR_BINARY(VECTOR, VECTOR),
        [0x0d] = OP(hint, M),
        [0x10] = OP(vload, VECTOR),
        [0x11] = OP(vstore, VECTOR),
        [0x12] = OP(vload_half, VECTOR),
        [0x13] = OP(vstore_half, VECTOR),
        [0x14 ... 0x15] = OP(vunpack_float, VECTOR),
        [0x16] = OP(vload_half, VECTOR),
        [0x17] = OP(vstore_half, VECTOR),
        [0x18] = OP(hint, M),
        [0x1e] = OP(hint, VECTOR),
        [0x1f] = OP(hint, M),
        [0x28] = OP(vload, VECTOR),
        [0x29] = OP(vstore, VECTOR),
        [0x2b] = OP(vstore, VECTOR),
        [0x40 ... 0x4f] = OP(cmov, M),
        [0x6e] = OP(movd_load, VECTOR),
        [0x6f] = OP(vload, VECTOR),
        [0x70] = OP(pshufd, VECTOR | INSN_F_IMM8),
        [0x7e] = OP(movd_store, VECTOR),
        [0x7f] = OP(vstore, VECTOR),
        [0x80 ... 0x8f] = OP(jcc, BRANCH | INSN_F_IMMZ),
        [0x90 ... 0x9f] = OP(setcc, M | INSN_F_BYTE),
        [0xa3] = OP(bt, M),
        [0xa4] = OP(shift_double, M | INSN_F_IMM8),
        [0xa5] = OP(shift_double, M),
        [0xab] = OP(bt, M),
        [0xac] = OP(shift_double, M | INSN_F_IMM8),
        [0xad] = OP(shift_double, M),
        [0xae] = OP(fence, VECTOR),
        [0xaf] = OP(imul, M),
        [0xb3] = OP(bt, M),
        [0xb6] = OPA(movx, M, 1),
        [0xb7] = OPA(movx, M, 2),
        [0xb8] = OP(popcnt, M | INSN_F_REP),
        [0xba] = OP(bt, M | INSN_F_IMM8),
        [0xbb] = OP(bt, M),
        [0xbc ... 0xbd] = OP(scan, M | INSN_F_REP),
        [0xbe] = OPA(movx, M, 16 | 1),
        [0xbf] = OPA(movx, M, 16 | 2),
        [0xc3] = OP(movnti, VECTOR),
        [0xc4] = OPA(pinsr, VECTOR | INSN_F_IMM8, 2),
        [0xc6] = OP(vshuffle, VECTOR | INSN_F_IMM8),
        [0xc8 ... 0xcf] = OP(bswap, 0),
        [0xd6] = OP(movq_store, VECTOR),
        [0xe7] = OP(vstore, VECTOR),
        [0xf0] = OP(vload, VECTOR),
    },
    [2] = {
        [0x00] = VB(VECTOR, PSHUFB),
        [0x2a] = OP(vload, VECTOR),
        [0xf0 ... 0xf1] = OP(movbe, M),
        [0xf8] = OP(movdir64b, VECTOR),
        [0xf9] = OP(movnti, VECTOR),
    },
    [3] = {
        [0x0f] = OP(vshuffle, VECTOR | INSN_F_IMM8),
        [0x14] = OPA(pextr, VECTOR | INSN_F_IMM8, 1),
        [0x15] = OPA(pextr, VECTOR | INSN_F_IMM8, 2),
        [0x16] = OP(pextr, VECTOR | INSN_F_IMM8),
        [0x20] = OPA(pinsr, VECTOR | INSN_F_IMM8, 1),
        [0x22] = OP(pinsr, VECTOR | INSN_F_IMM8),
    },
};


const insn_op_t insn_vex_ops[4][256] = {
    [1] = {
        VECTOR_BINARY(BOTH, VEX),
        [0x10] = OPT(vload, BOTH, PP),
        [0x11] = OPT(vstore, BOTH, PP),
        [0x12] = OPT(vload_half, BOTH, 8),
        [0x13] = OPT(vstore_half, BOTH, 8),
        [0x14 ... 0x15] = OPT(vunpack_float, BOTH, VL),
        [0x16] = OPT(vload_half, BOTH, 8),
        [0x17] = OPT(vstore_half, BOTH, 8),
        [0x28] = OPT(vload, BOTH, VL),
        [0x29] = OPT(vstore, BOTH, VL),
        [0x2b] = OPT(vstore, BOTH, VL),
        [0x6e] = OPT(movd_load, BOTH, W),
        [0x6f] = OPT(vload, BOTH, VL),
        [0x70] = OPT(pshufd, BOTH | INSN_F_IMM8, VL),
        [0x77] = OP(vzero, INSN_F_PP | INSN_F_VEX),
        [0x7e] = OPT(movd_store, BOTH, W),
        [0x7f] = OPT(vstore, BOTH, VL),
        [0x90 ... 0x93] = OP(kmov, VEX),
        [0xc4] = OPAT(pinsr, BOTH | INSN_F_IMM8, 2, 2),
        [0xc6] = OPT(vshuffle, BOTH | INSN_F_IMM8, VL),
        [0xd6] = OPT(movq_store, BOTH, W),
        [0xe7] = OPT(vstore, BOTH, VL),
        [0xf0] = OPT(vload, VEX, VL),
    },
    [2] = {
        [0x00] = VB(BOTH, PSHUFB),
        [0x18] = OPAT(vbroadcast, BOTH, 4, W),
        [0x19] = OPAT(vbroadcast, BOTH, 8, W),
        [0x1a] = OPAT(vbroadcast, BOTH, 16, 16),
        [0x1b] = OPAT(vbroadcast, EVEX, 32, 32),
        [0x2a] = OPT(vload, BOTH, VL),
        [0x58] = OPAT(vbroadcast, BOTH, 4, W),
        [0x59] = OPAT(vbroadcast, BOTH, 8, W),
        [0x5a] = OPAT(vbroadcast, BOTH, 16, 16),
        [0x5b] = OPAT(vbroadcast, EVEX, 32, 32),
        [0x78] = OPAT(vbroadcast, BOTH, 1, 1),
        [0x79] = OPAT(vbroadcast, BOTH, 2, 2),
        [0x7a] = OPA(vbroadcast_gpr, EVEX, 1),
        [0x7b] = OPA(vbroadcast_gpr, EVEX, 2),
        [0x7c] = OP(vbroadcast_gpr, EVEX),
        [0xf2] = OP(andn, VEX),
        [0xf5] = OP(bzhi, VEX),
        [0xf7] = OP(shiftx, VEX),
    },
    [3] = {
        [0x0f] = OPT(vshuffle, BOTH | INSN_F_IMM8, VL),
        [0x14] = OPAT(pextr, BOTH | INSN_F_IMM8, 1, 1),
        [0x15] = OPAT(pextr, BOTH | INSN_F_IMM8, 2, 2),
        [0x16] = OPT(pextr, BOTH | INSN_F_IMM8, W),
        [0x18] = OPAT(vinsert, BOTH | INSN_F_IMM8, 16, 16),
        [0x19] = OPAT(vextract, BOTH | INSN_F_IMM8, 16, 16),
        [0x1a] = OPAT(vinsert, EVEX | INSN_F_IMM8, 32, 32),
        [0x1b] = OPAT(vextract, EVEX | INSN_F_IMM8, 32, 32),
        [0x20] = OPAT(pinsr, BOTH | INSN_F_IMM8, 1, 1),
        [0x22] = OPT(pinsr, BOTH | INSN_F_IMM8, W),
        [0x25] = OPT(vpternlog, EVEX | INSN_F_IMM8, VL),
        [0x38] = OPAT(vinsert, BOTH | INSN_F_IMM8, 16, 16),
        [0x39] = OPAT(vextract, BOTH | INSN_F_IMM8, 16, 16),
        [0x3a] = OPAT(vinsert, EVEX | INSN_F_IMM8, 32, 32),
        [0x3b] = OPAT(vextract, EVEX | INSN_F_IMM8, 32, 32),
        [0xf0] = OP(rorx, VEX | INSN_F_IMM8),
    },
};
