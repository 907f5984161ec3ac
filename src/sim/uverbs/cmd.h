/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CMD_H_
#define MLX5SIM_CMD_H_

#include <sim/config/fault.h>
#include <sim/objs/store.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Commands are rows of tables (number, name, minimum sizes, handler); those
 * without a row are refused by number.
 */

/** One command: input and output areas of the ABI, all may be absent. */
typedef struct mlx5sim_cmd {
    mlx5sim_ctx_t *ctx;      /* NULL until GET_CONTEXT succeeded */
    int            fd;
    int            is_devx;  /* from a command of DEVX: names UARs itself, and
                              * what other ones have made */
    const void    *in;       /* core input */
    size_t         in_size;
    const void    *uin;      /* provider input (UHW) */
    size_t         uin_size;
    void          *out;
    size_t         out_size;
    void          *uout;
    size_t         uout_size;
} mlx5sim_cmd_t;

/** Index of the context a command is for. */
static inline uint32_t mlx5sim_cmd_ctx_index(const mlx5sim_cmd_t *cmd)
{
    return mlx5sim_obj_index(MLX5SIM_OBJ_CTX, cmd->ctx);
}

/** An object that a command names. What firmware commands have made is no
 *  object of verbs (kernel, uverbs_get_uobject_from_file(): its uobject has
 *  another type), so commands of verbs do not find it.
 *  @return NULL: there is none */
static inline void *mlx5sim_cmd_obj(const mlx5sim_cmd_t *cmd,
                                    mlx5sim_obj_kind_t kind, uint32_t handle)
{
    mlx5sim_obj_t *obj = mlx5sim_obj_mine(kind, handle,
                                          mlx5sim_cmd_ctx_index(cmd));

    return ((obj != NULL) && obj->devx.is_made && !cmd->is_devx) ? NULL : obj;
}

/** A row of the command tables. */
typedef struct mlx5sim_cmd_desc {
    uint32_t     number;     /* IB_USER_VERBS_CMD_*, 0x80000000 for extended */
    const char  *name;
    uint16_t     in_size;    /* minimum sizes, checked before the call */
    uint16_t     uin_size;
    uint16_t     out_size;
    uint16_t     uout_size;
    int        (*handler)(mlx5sim_cmd_t *cmd);  /* 0 or -errno */
    mlx5sim_fault_object_t fault; /* what MLX5SIM_FAIL calls it */
} mlx5sim_cmd_desc_t;

/** Rows of each file; ends with a NULL handler. */
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_device[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_mr[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_mw[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_cq[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_srq[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_qp[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_xrc[];


/** Copy a reply, truncated to the caller's room. */
void mlx5sim_cmd_reply(void *out, size_t out_size, const void *reply,
                       size_t size);

/** Completion vectors of each device (ib_uverbs_get_context_resp). */
#define MLX5SIM_COMP_VECTORS 4

/** mlx5sim_ctx_t.fault of a descriptor that was never asked for its context. */
#define MLX5SIM_CONTEXT_NEW 1

#endif
