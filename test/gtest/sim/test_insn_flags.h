/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file test_insn_flags.h
 *
 * Which flags of an instruction nobody has defined.
 */

#ifndef TEST_INSN_FLAGS_H_
#define TEST_INSN_FLAGS_H_

#include <sim/test_insn_native.h>

namespace insn_native {

/* Status flags that the manual leaves undefined, or that are only defined for
 * some counts. From the opcode itself, so that it serves random bytes too. */
inline uint64_t undefined_flags(const uint8_t *code, const state_t &s)
{
    constexpr uint64_t CF = 1, PF = 4, AF = 0x10, ZF = 0x40, SF = 0x80,
                       OF = 0x800;
    bool w = false, opsize = false;
    unsigned i = 0;

    for (;; ++i) {
        if ((code[i] & 0xf0) == 0x40) {
            w = code[i] & 8;
        } else if ((code[i] == 0x66) || (code[i] == 0x67) ||
                   (code[i] == 0xf2) || (code[i] == 0xf3) ||
                   (code[i] == 0x2e) || (code[i] == 0x36) ||
                   (code[i] == 0x3e) || (code[i] == 0x26)) {
            opsize |= code[i] == 0x66;
            w       = false;
        } else {
            break;
        }
    }
    uint8_t op    = code[i];
    uint8_t modrm = code[i + 1];
    uint8_t group = (modrm >> 3) & 7;
    if (op == 0xc4) { /* andn */
        return AF | PF;
    }
    if (op == 0x0f) {
        op = code[i + 1];
        switch (op) {
        case 0xa3:
        case 0xab:
        case 0xb3:
        case 0xbb:
        case 0xba:
            return OF | SF | AF | PF;
        case 0xa4:
        case 0xa5:
        case 0xac:
        case 0xad:
            return AF | OF;
        case 0xaf:
            return SF | ZF | AF | PF;
        case 0xbc:
        case 0xbd:
            return CF | OF | SF | AF | PF;
        default:
            return 0;
        }
    }
    if (op < 0x40) {
        unsigned alu = op >> 3;
        return ((alu == 1) || (alu == 4) || (alu == 6)) ? AF : 0;
    }
    switch (op) {
    case 0x80:
    case 0x81:
    case 0x83:
        return ((group == 1) || (group == 4) || (group == 6)) ? AF : 0;
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9:
        return AF;
    case 0xf6:
    case 0xf7:
        return (group < 2) ? AF : (group >= 4) ? SF | ZF | AF | PF : 0;
    case 0x69:
    case 0x6b:
        return SF | ZF | AF | PF;
    case 0xc0:
    case 0xc1:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
        unsigned bits  = !(op & 1) ? 8 : w ? 64 : opsize ? 16 : 32;
        uint64_t flags = AF | OF;
        if ((op == 0xd0) || (op == 0xd1)) {
            flags = AF; /* by one: OF is defined */
        } else if ((op >= 0xd2) && ((s.gpr[1] & (w ? 63 : 31)) == 1)) {
            flags = AF;
        }
        /* CF after shifting out more than there is, not known here */
        if ((bits < 32) && (group >= 4) && (group != 7)) {
            flags |= (op < 0xd0) || ((s.gpr[1] & 31) >= bits) ? CF : 0;
        }
        if (group < 4) {
            flags &= ~AF; /* rotations keep the others */
        }
        return flags;
    }
    default:
        return 0;
    }
}

} // namespace insn_native

#endif
