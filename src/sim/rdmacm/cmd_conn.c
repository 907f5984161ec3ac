/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/attr.h>
#include <sim/rdmacm/cmd.h>
#include <sim/rdmacm/conn.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/watch.h>
#include <sim/uverbs/refuse.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>


/* ucma_copy_conn_param() */
static void mlx5sim_cm_param_read(const struct rdma_ucm_conn_param *from,
                                  mlx5sim_cm_param_t *param_p)
{
    memset(param_p, 0, sizeof(*param_p));
    param_p->qp_num              = from->qp_num & 0xffffff;
    /* who has an address of IP has no say in it: cma_send_sidr_rep() */
    param_p->qkey                = MLX5SIM_CM_QKEY;
    param_p->responder_resources = from->responder_resources;
    param_p->initiator_depth     = from->initiator_depth;
    param_p->flow_control        = from->flow_control;
    /* fields of three bits */
    param_p->retry_count         = (from->retry_count < 7) ?
                                   from->retry_count : 7;
    param_p->rnr_retry_count     = (from->rnr_retry_count < 7) ?
                                   from->rnr_retry_count : 7;
    param_p->srq                 = !!from->srq;
    param_p->length              = from->private_data_len;
    memcpy(param_p->data, from->private_data, param_p->length);
}

int mlx5sim_cm_cmd_connect(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_connect *in = &cmd->in.connect;
    mlx5sim_cm_param_t param;
    mlx5sim_cm_id_t *id;
    int ret;

    if (!in->conn_param.valid) {
        return -EINVAL;
    }

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    if (id == NULL) {
        return ret;
    }

    mlx5sim_cm_param_read(&in->conn_param, &param);
    ret = mlx5sim_cm_connect(id, &param);
    mlx5sim_cm_watch_wake();
    return ret;
}

/* rdma_listen() */
int mlx5sim_cm_cmd_listen(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_listen *in = &cmd->in.listen;
    mlx5sim_cm_id_t *id;
    int ret;

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    if (id == NULL) {
        return ret;
    }

    if (id->state == MLX5SIM_CM_IDLE) {
        id->src.sa.sa_family = AF_INET;
        id->af_only          = 1;
        ret                  = mlx5sim_cm_port_bind(id);
        if (ret != 0) {
            return ret;
        }
        id->state = MLX5SIM_CM_BOUND;
    }

    if (id->state != MLX5SIM_CM_BOUND) {
        return -EINVAL;
    }

    /* ports are shared by those who do not listen */
    ret = mlx5sim_cm_port_check(id, 0);
    if (ret != 0) {
        return ret;
    }

    mlx5sim_cm_listen(id, in->backlog);
    return 0;
}

int mlx5sim_cm_cmd_accept(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_accept *in = &cmd->in.accept;
    mlx5sim_cm_param_t param;
    mlx5sim_cm_id_t *id;
    int ret;

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    if (id == NULL) {
        return ret;
    }

    if (!in->conn_param.valid) {
        return mlx5sim_cm_establish(id);
    }

    mlx5sim_cm_param_read(&in->conn_param, &param);
    ret = mlx5sim_cm_accept(id, &param);
    if (ret == 0) {
        id->o.user_handle = in->uid;
    }
    mlx5sim_cm_watch_wake();
    return ret;
}

int mlx5sim_cm_cmd_reject(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_reject *in = &cmd->in.reject;
    uint8_t reason                   = in->reason;
    mlx5sim_cm_id_t *id;
    int ret;

    if (reason == 0) {
        reason = MLX5SIM_CM_REJ_CONSUMER_DEFINED;
    } else if ((reason != MLX5SIM_CM_REJ_CONSUMER_DEFINED) &&
               (reason != MLX5SIM_CM_REJ_VENDOR_NOT_SUPPORTED)) {
        return -EINVAL;
    }

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    return (id == NULL) ? ret :
           mlx5sim_cm_reject(id, reason, in->private_data,
                             in->private_data_len);
}

int mlx5sim_cm_cmd_disconnect(mlx5sim_cm_cmd_t *cmd)
{
    mlx5sim_cm_id_t *id;
    int ret;

    id = mlx5sim_cm_cmd_id(cmd, cmd->in.disconnect.id, &ret);
    if (id == NULL) {
        return ret;
    }

    ret = mlx5sim_cm_disconnect(id);
    mlx5sim_cm_watch_wake();
    return ret;
}

int mlx5sim_cm_cmd_init_qp_attr(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_init_qp_attr *in = &cmd->in.init_qp_attr;
    struct ib_uverbs_qp_attr out;
    mlx5sim_cm_id_t *id;
    int ret;

    if (in->qp_state > IBV_QPS_ERR) {
        return -EINVAL;
    }

    id  = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    ret = (id == NULL) ? ret : mlx5sim_cm_attr_init_qp(id, in->qp_state, &out);
    return (ret != 0) ? ret :
           mlx5sim_cm_reply(cmd, in->response, &out, sizeof(out));
}

int mlx5sim_cm_cmd_notify(mlx5sim_cm_cmd_t *cmd)
{
    mlx5sim_cm_id_t *id;
    int ret;

    id = mlx5sim_cm_cmd_id(cmd, cmd->in.notify.id, &ret);
    if (id == NULL) {
        return ret;
    }

    return (cmd->in.notify.event == IBV_EVENT_COMM_EST) ?
           mlx5sim_cm_notify(id) : -EINVAL;
}

int mlx5sim_cm_cmd_join(mlx5sim_cm_cmd_t *cmd)
{
    (void)cmd;
    return mlx5sim_refuse(MLX5SIM_MISSING_MCAST);
}

/* No group was ever joined */
int mlx5sim_cm_cmd_leave(mlx5sim_cm_cmd_t *cmd)
{
    (void)cmd;
    return -ENOENT;
}
