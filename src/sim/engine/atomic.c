/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/engine.h>

#include <endian.h>
#include <string.h>

/*
 * Endianness. Operands are big endian in the WQE and the responder's memory is
 * used as host order integers. An old value of 8 bytes returns in host order:
 * that is what a device promises that reports IBV_ATOMIC_HCA (PRM
 * atomic_req_8B_endianness_mode 1). There is no such mode for extended atomics
 * of 4 bytes, whose old value is big endian.
 *
 * The mode is about memory: what a CQE carries is big endian (UCX,
 * rc_mlx5_iface.c and uct_rc_mlx5_common_atomic64_le_handler()). libmlx5, which
 * copies it from there, does not turn it round.
 */


uint64_t mlx5sim_atomic_compute(const mlx5sim_wqe_t *wqe, uint64_t old)
{
    uint64_t operand = wqe->atomic.swap_add;
    uint64_t mask    = wqe->atomic.compare_mask;
    uint64_t result;

    if (wqe->atomic.is_cas) {
        if ((old ^ wqe->atomic.compare) & mask) {
            return old;
        }

        result = (old & ~wqe->atomic.swap_mask) |
                 (operand & wqe->atomic.swap_mask);
    } else {
        /* The top bit of each field is summed without its carry out. */
        result = ((old & ~mask) + (operand & ~mask)) ^ ((old ^ operand) & mask);
    }

    return (wqe->atomic_size == sizeof(uint32_t)) ? (uint32_t)result : result;
}


void mlx5sim_atomic_result(const mlx5sim_wqe_t *wqe, uint64_t old,
                           int is_in_cqe, void *out_p)
{
    uint32_t old32 = htobe32(old);
    uint64_t old64 = is_in_cqe ? htobe64(old) : old;

    if (wqe->atomic_size == sizeof(old32)) {
        memcpy(out_p, &old32, sizeof(old32));
    } else {
        memcpy(out_p, &old64, sizeof(old64));
    }
}
