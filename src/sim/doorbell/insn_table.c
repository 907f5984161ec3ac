/* SPDX-License-Identifier: BSD-3-Clause */

/* Opcode tables (SDM 2, appendix A). An entry that is not here is unknown. */

#include "sim/doorbell/insn_int.h"

#define M INSN_F_MODRM

#define OP(_handler, _flags) \
    { .handler = insn_do_##_handler, .flags = (_flags) }
#define OPA(_handler, _flags, _arg) \
    { .handler = insn_do_##_handler, .flags = (_flags), .arg = (_arg) }
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
        [0x0d] = OP(hint, M),
        [0x10] = OP(vload, VECTOR),
        [0x11] = OP(vstore, VECTOR),
        [0x12] = OP(vload_half, VECTOR),
        [0x13] = OP(vstore_half, VECTOR),
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
        [0xc8 ... 0xcf] = OP(bswap, 0),
        [0xd6] = OP(movq_store, VECTOR),
        [0xe7] = OP(vstore, VECTOR),
        [0xf0] = OP(vload, VECTOR),
    },
    [2] = {
        [0x2a] = OP(vload, VECTOR),
        [0xf0 ... 0xf1] = OP(movbe, M),
        [0xf8] = OP(movdir64b, VECTOR),
        [0xf9] = OP(movnti, VECTOR),
    },
};


const insn_op_t insn_vex_ops[4][256] = {
    [1] = {
        [0x10] = OPT(vload, BOTH, PP),
        [0x11] = OPT(vstore, BOTH, PP),
        [0x12] = OPT(vload_half, BOTH, 8),
        [0x13] = OPT(vstore_half, BOTH, 8),
        [0x16] = OPT(vload_half, BOTH, 8),
        [0x17] = OPT(vstore_half, BOTH, 8),
        [0x28] = OPT(vload, BOTH, VL),
        [0x29] = OPT(vstore, BOTH, VL),
        [0x2b] = OPT(vstore, BOTH, VL),
        [0x6e] = OPT(movd_load, BOTH, W),
        [0x6f] = OPT(vload, BOTH, VL),
        [0x77] = OP(vzero, INSN_F_PP | INSN_F_VEX),
        [0x7e] = OPT(movd_store, BOTH, W),
        [0x7f] = OPT(vstore, BOTH, VL),
        [0xd6] = OPT(movq_store, BOTH, W),
        [0xe7] = OPT(vstore, BOTH, VL),
        [0xf0] = OPT(vload, VEX, VL),
    },
    [2] = {
        [0x2a] = OPT(vload, BOTH, VL),
        [0xf2] = OP(andn, VEX),
        [0xf7] = OP(shiftx, VEX),
    },
    [3] = {
        [0xf0] = OP(rorx, VEX | INSN_F_IMM8),
    },
};
