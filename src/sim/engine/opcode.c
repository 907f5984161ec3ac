/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/opcode.h>

#define MLX5SIM_OP_CONNECTED (MLX5SIM_OP_RC | MLX5SIM_OP_UC)


/* Transport services and their operations: IBTA volume 1, table "Work request
 * operation types" */
const uint8_t mlx5sim_opcode_table[MLX5SIM_OPCODE_COUNT] = {
    [MLX5SIM_OPCODE_NOP]              = MLX5SIM_OP_CONNECTED | MLX5SIM_OP_UD,
    [MLX5SIM_OPCODE_SEND]             = MLX5SIM_OP_CONNECTED | MLX5SIM_OP_UD |
                                        MLX5SIM_OP_SEND | MLX5SIM_OP_RECV,
    [MLX5SIM_OPCODE_SEND_IMM]         = MLX5SIM_OP_CONNECTED | MLX5SIM_OP_UD |
                                        MLX5SIM_OP_SEND | MLX5SIM_OP_RECV,
    [MLX5SIM_OPCODE_SEND_INVAL]       = MLX5SIM_OP_RC | MLX5SIM_OP_SEND |
                                        MLX5SIM_OP_RECV,
    [MLX5SIM_OPCODE_RDMA_WRITE]       = MLX5SIM_OP_CONNECTED | MLX5SIM_OP_RADDR,
    [MLX5SIM_OPCODE_RDMA_WRITE_IMM]   = MLX5SIM_OP_CONNECTED |
                                        MLX5SIM_OP_RADDR | MLX5SIM_OP_RECV,
    [MLX5SIM_OPCODE_RDMA_READ]        = MLX5SIM_OP_RC | MLX5SIM_OP_RADDR |
                                        MLX5SIM_OP_SCATTER,
    [MLX5SIM_OPCODE_ATOMIC_CS]        = MLX5SIM_OP_RC | MLX5SIM_OP_RADDR |
                                        MLX5SIM_OP_ATOMIC | MLX5SIM_OP_SCATTER,
    [MLX5SIM_OPCODE_ATOMIC_FA]        = MLX5SIM_OP_RC | MLX5SIM_OP_RADDR |
                                        MLX5SIM_OP_ATOMIC | MLX5SIM_OP_SCATTER,
    [MLX5SIM_OPCODE_ATOMIC_MASKED_CS] = MLX5SIM_OP_RC | MLX5SIM_OP_RADDR |
                                        MLX5SIM_OP_ATOMIC | MLX5SIM_OP_SCATTER,
    [MLX5SIM_OPCODE_ATOMIC_MASKED_FA] = MLX5SIM_OP_RC | MLX5SIM_OP_RADDR |
                                        MLX5SIM_OP_ATOMIC | MLX5SIM_OP_SCATTER,
    [MLX5SIM_OPCODE_UMR]              = MLX5SIM_OP_CONNECTED,
    [MLX5SIM_OPCODE_SET_PSV]          = MLX5SIM_OP_CONNECTED
};


const char *mlx5sim_opcode_name(unsigned opcode)
{
    switch (opcode) {
    case MLX5SIM_OPCODE_NOP:
        return "NOP";
    case MLX5SIM_OPCODE_SEND_INVAL:
        return "SEND_INVAL";
    case MLX5SIM_OPCODE_RDMA_WRITE:
        return "RDMA_WRITE";
    case MLX5SIM_OPCODE_RDMA_WRITE_IMM:
        return "RDMA_WRITE_IMM";
    case MLX5SIM_OPCODE_SEND:
        return "SEND";
    case MLX5SIM_OPCODE_SEND_IMM:
        return "SEND_IMM";
    case MLX5SIM_OPCODE_TSO:
        return "TSO";
    case MLX5SIM_OPCODE_RDMA_READ:
        return "RDMA_READ";
    case MLX5SIM_OPCODE_ATOMIC_CS:
        return "ATOMIC_CS";
    case MLX5SIM_OPCODE_ATOMIC_FA:
        return "ATOMIC_FA";
    case MLX5SIM_OPCODE_ATOMIC_MASKED_CS:
        return "ATOMIC_MASKED_CS";
    case MLX5SIM_OPCODE_ATOMIC_MASKED_FA:
        return "ATOMIC_MASKED_FA";
    case MLX5SIM_OPCODE_FMR:
        return "FMR";
    case MLX5SIM_OPCODE_LOCAL_INVAL:
        return "LOCAL_INVAL";
    case MLX5SIM_OPCODE_CONFIG_CMD:
        return "CONFIG_CMD";
    case MLX5SIM_OPCODE_SET_PSV:
        return "SET_PSV";
    case MLX5SIM_OPCODE_UMR:
        return "UMR";
    case MLX5SIM_OPCODE_TAG_MATCHING:
        return "TAG_MATCHING";
    case MLX5SIM_OPCODE_FLOW_TBL_ACCESS:
        return "FLOW_TBL_ACCESS";
    case MLX5SIM_OPCODE_MMO:
        return "MMO";
    default:
        return "unknown";
    }
}
