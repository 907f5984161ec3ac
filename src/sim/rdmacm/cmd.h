/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_CMD_H_
#define MLX5SIM_RDMACM_CMD_H_

#include <sim/objs/cm.h>

#include <rdma/rdma_user_cm.h>
#include <stddef.h>

/*
 * Commands of the device: RDMA_USER_CM_CMD_* of rdma/rdma_user_cm.h, one
 * function each, with what the kernel's drivers/infiniband/core/ucma.c has
 * under that name. They are called under the CM lock.
 */

/** Longest command. */
#define MLX5SIM_CM_CMD_MAX 512

typedef struct mlx5sim_cm_cmd {
    mlx5sim_chan_t *chan;     /**< channel of the descriptor */
    int            fd;
    size_t         out_size;  /**< room for the answer */
    union {
        char                             bytes[MLX5SIM_CM_CMD_MAX];
        struct rdma_ucm_create_id        create_id;
        struct rdma_ucm_destroy_id       destroy_id;
        struct rdma_ucm_bind_ip          bind_ip;
        struct rdma_ucm_bind             bind;
        struct rdma_ucm_resolve_ip       resolve_ip;
        struct rdma_ucm_resolve_addr     resolve_addr;
        struct rdma_ucm_resolve_route    resolve_route;
        struct rdma_ucm_query            query;
        struct rdma_ucm_connect          connect;
        struct rdma_ucm_listen           listen;
        struct rdma_ucm_accept           accept;
        struct rdma_ucm_reject           reject;
        struct rdma_ucm_disconnect       disconnect;
        struct rdma_ucm_init_qp_attr     init_qp_attr;
        struct rdma_ucm_get_event        get_event;
        struct rdma_ucm_set_option       set_option;
        struct rdma_ucm_notify           notify;
        struct rdma_ucm_migrate_id       migrate_id;
    } in;                     /**< the command, with zeros behind it */
} mlx5sim_cm_cmd_t;

/** Read memory of this process. @return 0 or -EFAULT. */
int mlx5sim_cm_copy_in(void *to, uint64_t from, size_t size);

/** Write the answer, or as much of it as there is room for.
 *  @return 0 or -EFAULT. */
int mlx5sim_cm_reply(const mlx5sim_cm_cmd_t *cmd, uint64_t response,
                     const void *answer, size_t size);

/** Id of the channel of a command. @return NULL, and *@a ret_p is -ENOENT, or
 *  -EINVAL if it is of another channel. */
mlx5sim_cm_id_t *mlx5sim_cm_cmd_id(const mlx5sim_cm_cmd_t *cmd, uint32_t index,
                                   int *ret_p);

/* cmd_id.c */
int mlx5sim_cm_cmd_create_id(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_destroy_id(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_migrate_id(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_set_option(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_get_event(mlx5sim_cm_cmd_t *cmd);

/* cmd_addr.c */
int mlx5sim_cm_cmd_bind_ip(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_bind(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_resolve_ip(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_resolve_addr(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_resolve_route(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_query_route(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_query(mlx5sim_cm_cmd_t *cmd);

/* cmd_conn.c */
int mlx5sim_cm_cmd_connect(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_listen(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_accept(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_reject(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_disconnect(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_init_qp_attr(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_notify(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_join(mlx5sim_cm_cmd_t *cmd);
int mlx5sim_cm_cmd_leave(mlx5sim_cm_cmd_t *cmd);

#endif
