/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_OPCODE_H_
#define MLX5SIM_OPCODE_H_

#include <sim/engine/engine.h>
#include <sim/engine/mlx5_def.h>

#define MLX5SIM_OPCODE_COUNT 64

/** Properties of a send opcode; no property: not supported. */
enum {
    MLX5SIM_OP_RC      = 1 << 0,  /* allowed on RC; bits in the order of the */
    MLX5SIM_OP_UC      = 1 << 1,  /* QP types, see mlx5sim_opcode_allowed() */
    MLX5SIM_OP_UD      = 1 << 2,
    MLX5SIM_OP_RADDR   = 1 << 3,  /* has a remote address segment */
    MLX5SIM_OP_ATOMIC  = 1 << 4,
    MLX5SIM_OP_SCATTER = 1 << 5,  /* data segments are written, not read */
    MLX5SIM_OP_SEND    = 1 << 6,  /* data goes to a receive WQE */
    MLX5SIM_OP_RECV    = 1 << 7   /* consumes a receive WQE */
};


extern const uint8_t mlx5sim_opcode_table[MLX5SIM_OPCODE_COUNT];


static inline unsigned mlx5sim_opcode_flags(unsigned opcode)
{
    return (opcode < MLX5SIM_OPCODE_COUNT) ? mlx5sim_opcode_table[opcode] : 0;
}


/** Whether a work request concerns its own side only: nothing is sent. */
static inline int mlx5sim_opcode_is_local(unsigned opcode)
{
    return (opcode == MLX5SIM_OPCODE_NOP) || (opcode == MLX5SIM_OPCODE_UMR) ||
           (opcode == MLX5SIM_OPCODE_SET_PSV);
}


/** A DC initiator has the operations of RC. */
static inline int mlx5sim_opcode_allowed(unsigned flags, unsigned qp_type)
{
    if (qp_type == MLX5SIM_QPT_DCI) {
        return flags & MLX5SIM_OP_RC;
    }

    return (qp_type >= MLX5SIM_QPT_RC) && (qp_type <= MLX5SIM_QPT_UD) &&
           ((flags >> (qp_type - MLX5SIM_QPT_RC)) & 1);
}

#endif
