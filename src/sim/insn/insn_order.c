/* SPDX-License-Identifier: BSD-3-Clause */

/* Which instructions order stores to write-combining memory */

#include <sim/insn/insn_int.h>

#define INSN_PREFIX_LOCK 0xf0


static int insn_order_is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26: /* segments */
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66: /* sizes */
    case 0x67:
    case 0xf2: /* repetition */
    case 0xf3:
        return 1;
    default:
        return (byte & 0xf0) == 0x40; /* REX */
    }
}


/* Behind 0F */
static int insn_order_two_bytes(const uint8_t *code)
{
    switch (code[0]) {
    case 0x01: /* serialize */
        return code[1] == 0xe8;
    case 0x05: /* syscall */
    case 0x34: /* sysenter */
    case 0xa2: /* cpuid */
        return 1;
    case 0xae: /* mfence F0-F7, sfence F8-FF; below C0 another instruction */
        return code[1] >= 0xf0;
    default:
        return 0;
    }
}


int mlx5sim_insn_orders_stores(const void *addr)
{
    const uint8_t *code = addr;
    unsigned i;

    for (i = 0; i < INSN_MAX_LENGTH; ++i) {
        if (code[i] == INSN_PREFIX_LOCK) {
            return 1;
        }
        if (!insn_order_is_prefix(code[i])) {
            break;
        }
    }

    switch (code[i]) {
    case 0x0f:
        return insn_order_two_bytes(code + i + 1);
    case 0x86: /* xchg; with memory it is locked, with a register it is not */
    case 0x87:
        return code[i + 1] < 0xc0;
    case 0x9c: /* pushf, popf */
    case 0x9d:
    case 0xcc: /* int3, int, iret */
    case 0xcd:
    case 0xcf:
    case 0xf1: /* int1 */
        return 1;
    default:
        return 0;
    }
}
