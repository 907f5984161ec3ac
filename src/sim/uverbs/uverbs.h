/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_H_
#define MLX5SIM_UVERBS_H_

#include "sim/objs/store.h"
#include "sim/config/config.h"
#include "sim/config/fault.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The uverbs character device as libibverbs and libmlx5 use it: every command
 * is an ioctl, verbs proper are INVOKE_WRITE. Commands are rows of tables
 * (number, name, least sizes, handler); what has no row is refused by number.
 */

/** RDMA_VERBS_IOCTL of rdma/rdma_user_ioctl.h. */
#define MLX5SIM_VERBS_IOCTL 0xc0181b01ul

/** One command: input and output areas of the ABI, all may be absent. */
typedef struct mlx5sim_cmd {
    mlx5sim_ctx_t *ctx;      /* NULL until GET_CONTEXT succeeded */
    int            fd;
    const void    *in;       /* core input */
    size_t         in_size;
    const void    *uin;      /* provider input (UHW) */
    size_t         uin_size;
    void          *out;
    size_t         out_size;
    void          *uout;
    size_t         uout_size;
} mlx5sim_cmd_t;

/** Index of the context a command is given to. */
static inline uint32_t mlx5sim_cmd_ctx_index(const mlx5sim_cmd_t *cmd)
{
    return mlx5sim_obj_index(MLX5SIM_OBJ_CTX, cmd->ctx);
}

/** A row of the command tables. */
typedef struct mlx5sim_cmd_desc {
    uint32_t     number;     /* IB_USER_VERBS_CMD_*, 0x80000000 for extended */
    const char  *name;
    uint16_t     in_size;    /* least sizes, checked before the call */
    uint16_t     uin_size;
    uint16_t     out_size;
    uint16_t     uout_size;
    int        (*handler)(mlx5sim_cmd_t *cmd);  /* 0 or -errno */
    mlx5sim_fault_object_t fault; /* what MLX5SIM_FAIL calls it */
} mlx5sim_cmd_desc_t;

/** Rows of each file; ends with a NULL handler. */
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_device[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_mr[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_cq[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_srq[];
extern const mlx5sim_cmd_desc_t mlx5sim_cmds_qp[];


/**
 * Open device uverbs@a index.
 *
 * @param flags  As of open(2).
 * @return A descriptor whose mmap(2) gives UAR pages, or -1 with errno.
 */
int mlx5sim_uverbs_open(unsigned index, int flags);

/** Device index behind a descriptor of ours, -1 if it is not one. */
int mlx5sim_uverbs_fd_device(int fd);

/** The ioctl(2) of a descriptor of ours. @return 0, or -1 with errno. */
int mlx5sim_uverbs_ioctl(int fd, void *arg);

/**
 * The application maps a page of @a fd.
 *
 * @param uar_p  UAR that this allocated, 0 if none.
 * @return 0 if it may, also if @a fd is not ours, or -errno.
 */
int mlx5sim_uverbs_map(int fd, size_t length, uint64_t offset, uint32_t *uar_p);

/** It could not after all: undo what mlx5sim_uverbs_map() allocated. */
void mlx5sim_uverbs_map_failed(int fd, uint64_t offset);

/** Carry out one ioctl. @return 0 or -errno. */
int mlx5sim_uverbs_dispatch(mlx5sim_ctx_t *ctx, int fd, void *arg);

/** The application closes @a fd, which may be a device or a channel. */
void mlx5sim_uverbs_close(int fd);

/** Instance-wide and process-wide settings, valid once a device is open. */
const mlx5sim_config_t *mlx5sim_uverbs_config(void);

/** Copy a reply, cut to what the caller has room for. */
void mlx5sim_cmd_reply(void *out, size_t out_size, const void *reply,
                       size_t size);

/** Create a channel (completion or async) and open its FIFO for the
 *  application. @return descriptor or -errno. */
int mlx5sim_uverbs_chan_create(uint32_t ctx, int is_async,
                               uint32_t *chan_p);

/** Channel index behind a descriptor, 0 if none. */
uint32_t mlx5sim_uverbs_fd_chan(int fd);

/** mlx5sim_ctx_t.fault of a descriptor that was never asked for its context. */
#define MLX5SIM_CONTEXT_NEW 1

/** Page offset (in pages of 4 KB) of UAR object @a index in the descriptor of
 *  its context; far beyond the legacy mmap commands. */
#define MLX5SIM_UAR_PAGE_BASE 0x100000ul

#endif
