/* SPDX-License-Identifier: BSD-3-Clause */

/* Instructions that are replaced by a jump, and what stood there */

#include <sim/insn/insn_int.h>

#define INSN_JMP_REL32 0xe9
#define INSN_INT3      0xcc

static struct {
    _Atomic(const uint8_t*) addr; /* NULL: free; once set, it stays */
    uint8_t                 original[INSN_MAX_LENGTH];
    uint8_t                 length;
    uint8_t                 jump[MLX5SIM_INSN_JUMP];
} insn_moved[MLX5SIM_INSN_MAX_MOVED];


unsigned mlx5sim_insn_movable_store(const void *code)
{
    insn_t in;

    return ((insn_decode(code, INSN_MAX_LENGTH, &in) == 0) &&
            insn_is_store(&in) && !in.rip_rel) ? in.length : 0;
}


uintptr_t mlx5sim_insn_store_address(const void *addr, const uint64_t gpr[16])
{
    mlx5sim_insn_cpu_t cpu = {};
    insn_exec_t x          = {.cpu = &cpu};
    insn_t in;

    memcpy(cpu.gpr, gpr, sizeof(cpu.gpr));
    return (insn_decode_at((uintptr_t)addr, &in) == 0) ? insn_ea(&x, &in) : 0;
}


int mlx5sim_insn_set_moved(const void *addr, unsigned length,
                           const uint8_t jump[MLX5SIM_INSN_JUMP])
{
    const uint8_t *old;
    unsigned i;

    for (i = 0; i < MLX5SIM_INSN_MAX_MOVED; ++i) {
        old = atomic_load(&insn_moved[i].addr);
        if ((old == NULL) || (old == addr)) {
            memcpy(insn_moved[i].original, addr, length);
            memcpy(insn_moved[i].jump, jump, MLX5SIM_INSN_JUMP);
            insn_moved[i].length = length;
            atomic_store(&insn_moved[i].addr, addr);
            return 0;
        }
    }
    return -1;
}


/* It is a breakpoint while it is being replaced. Another library may have come
 * to its address since. */
const uint8_t *insn_original(const uint8_t *code)
{
    uint8_t first = *(const volatile uint8_t*)code;
    const uint8_t *addr;
    unsigned i;

    if (INSN_LIKELY((first != INSN_JMP_REL32) && (first != INSN_INT3))) {
        return code;
    }

    for (i = 0; i < MLX5SIM_INSN_MAX_MOVED; ++i) {
        addr = atomic_load(&insn_moved[i].addr);
        if (addr == NULL) {
            break;
        }
        if ((addr == code) &&
            ((first == INSN_INT3) ||
             (memcmp(code, insn_moved[i].jump, MLX5SIM_INSN_JUMP) == 0))) {
            return insn_moved[i].original;
        }
    }
    return code;
}
