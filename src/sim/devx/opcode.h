/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_DEVX_OPCODE_H_
#define MLX5SIM_DEVX_OPCODE_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The table of firmware commands (MLX5_CMD_OP_* of the kernel's mlx5_ifc.h).
 */

/** Opcodes of commands that are carried out. */
enum {
    MLX5SIM_FW_QUERY_HCA_CAP           = 0x100,
    MLX5SIM_FW_CREATE_MKEY             = 0x200,
    MLX5SIM_FW_QUERY_MKEY              = 0x201,
    MLX5SIM_FW_CREATE_CQ               = 0x400,
    MLX5SIM_FW_QUERY_CQ                = 0x402,
    MLX5SIM_FW_CREATE_QP               = 0x500,
    MLX5SIM_FW_RST2INIT_QP             = 0x502,
    MLX5SIM_FW_INIT2RTR_QP             = 0x503,
    MLX5SIM_FW_RTR2RTS_QP              = 0x504,
    MLX5SIM_FW_RTS2RTS_QP              = 0x505,
    MLX5SIM_FW_2ERR_QP                 = 0x507,
    MLX5SIM_FW_2RST_QP                 = 0x50a,
    MLX5SIM_FW_QUERY_QP                = 0x50b,
    MLX5SIM_FW_INIT2INIT_QP            = 0x50e,
    MLX5SIM_FW_CREATE_PSV              = 0x600,
    MLX5SIM_FW_QUERY_XRC_SRQ           = 0x707,
    MLX5SIM_FW_ARM_XRC_SRQ             = 0x708,
    MLX5SIM_FW_CREATE_DCT              = 0x710,
    MLX5SIM_FW_DRAIN_DCT               = 0x712,
    MLX5SIM_FW_QUERY_DCT               = 0x713,
    MLX5SIM_FW_QUERY_ROCE_ADDRESS      = 0x760,
    MLX5SIM_FW_QUERY_HCA_VPORT_CONTEXT = 0x762,
    MLX5SIM_FW_ALLOC_PD                = 0x800,
    MLX5SIM_FW_NOP                     = 0x80d,
    MLX5SIM_FW_QUERY_LAG               = 0x842,
    MLX5SIM_FW_CREATE_RMP              = 0x90c,
    MLX5SIM_FW_MODIFY_RMP              = 0x90d,
    MLX5SIM_FW_QUERY_RMP               = 0x90f,
    MLX5SIM_FW_CREATE_GENERAL_OBJECT   = 0xa00,
    MLX5SIM_FW_MODIFY_GENERAL_OBJECT   = 0xa01,
    MLX5SIM_FW_QUERY_GENERAL_OBJECT    = 0xa02
};

/** By which method of the kernel a command comes, as devx_is_general_cmd(),
 *  devx_is_obj_create_cmd(), devx_is_obj_modify_cmd() and
 *  devx_is_obj_query_cmd() of its mlx5_ib say. */
typedef enum {
    MLX5SIM_FW_GENERAL,
    MLX5SIM_FW_CREATE,
    MLX5SIM_FW_MODIFY,
    MLX5SIM_FW_QUERY
} mlx5sim_fw_method_t;

/** What a command is on, as devx_get_obj_id() of the kernel says. A command to
 *  modify or query what is on nothing is on objects that nobody can have here:
 *  the kernel finds that the object that was given is another one
 *  (devx_is_valid_obj_id()). SRQs of verbs are RMPs for it, if they are not of
 *  XRC, and memory regions of verbs no mkeys. */
typedef enum {
    MLX5SIM_FW_ON_NOTHING,
    MLX5SIM_FW_ON_PD,
    MLX5SIM_FW_ON_MKEY,
    MLX5SIM_FW_ON_CQ,
    MLX5SIM_FW_ON_RMP,
    MLX5SIM_FW_ON_XRC_SRQ,
    MLX5SIM_FW_ON_QP,
    MLX5SIM_FW_ON_DCT,
    MLX5SIM_FW_ON_PSV,
    MLX5SIM_FW_ON_GENERAL
} mlx5sim_fw_on_t;

/** A row of the table. */
typedef struct mlx5sim_fw_opcode {
    uint16_t            opcode;
    const char          *name;
    mlx5sim_fw_method_t method;
    mlx5sim_fw_on_t     on;
    uint16_t            in_size;  /**< shortest command and reply, bytes; */
    uint16_t            out_size; /**< 0: refused as a bad operation, if there
                                       is an object for it */
    const char          *layout;  /**< structures of mlx5_ifc.h, without
                                       mlx5_ifc_ and _bits; NULL: the name in
                                       lower case and _in */
    const char          *giver;   /**< where it was seen what the command is
                                       given for; NULL: nowhere */
} mlx5sim_fw_opcode_t;

/** Row of a command, NULL if the kernel does not let it pass by @a method.
 *  Opcodes of MLX5_CMD_OP_GENERAL_START to _END, which are newer than the
 *  kernel's list, pass and have one row for all. */
const mlx5sim_fw_opcode_t *mlx5sim_fw_opcode_find(mlx5sim_fw_method_t method,
                                                  uint16_t opcode);

/** Print the table as one in Markdown. */
void mlx5sim_fw_opcodes_print(FILE *stream);

#endif
