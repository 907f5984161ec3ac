/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/store.h>
#include <sim/rdmacm/attr.h>
#include <sim/rdmacm/cmd.h>
#include <sim/rdmacm/conn.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/event.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/rdmacm.h>
#include <sim/rdmacm/watch.h>
#include <sim/uverbs/fd.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <fcntl.h>
#include <string.h>

/* Longest value of an option: ucma.c, KMALLOC_MAX_SIZE */
#define MLX5SIM_CM_OPTION_MAX (4u << 20)


/* ucma_get_qp_type(). @return -1 if there is no such port space */
static int mlx5sim_cm_qp_type(const struct rdma_ucm_create_id *in)
{
    switch (in->ps) {
    case RDMA_PS_TCP:
        return IBV_QPT_RC;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
        return IBV_QPT_UD;
    case RDMA_PS_IB:
        return in->qp_type;
    default:
        return -1;
    }
}

int mlx5sim_cm_cmd_create_id(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_create_id *in = &cmd->in.create_id;
    struct rdma_ucm_create_id_resp out  = {};
    int qp_type                         = mlx5sim_cm_qp_type(in);
    mlx5sim_cm_id_t *id;
    int ret;

    if (qp_type < 0) {
        return -EINVAL;
    }

    id = mlx5sim_cm_id_new(cmd->chan, in->ps, qp_type);
    if (id == NULL) {
        return -errno;
    }

    id->o.user_handle = in->uid;
    out.id            = mlx5sim_cm_id_ref(id).index;
    ret               = mlx5sim_cm_reply(cmd, in->response, &out, sizeof(out));
    if (ret != 0) {
        mlx5sim_cm_id_free(id);
    }
    return ret;
}

int mlx5sim_cm_cmd_destroy_id(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_destroy_id *in = &cmd->in.destroy_id;
    struct rdma_ucm_destroy_id_resp out  = {};
    mlx5sim_cm_id_t *id;
    int ret;

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    if (id == NULL) {
        return ret;
    }

    out.events_reported = id->reported;
    mlx5sim_cm_leave(id);
    return mlx5sim_cm_reply(cmd, in->response, &out, sizeof(out));
}

int mlx5sim_cm_cmd_migrate_id(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_migrate_id *in = &cmd->in.migrate_id;
    struct rdma_ucm_migrate_resp out     = {};
    uint32_t from                        = mlx5sim_fd_chan(in->fd);
    uint32_t to = mlx5sim_obj_index(MLX5SIM_OBJ_CHAN, cmd->chan);
    mlx5sim_cm_cmd_t of_id = {};
    mlx5sim_cm_id_t *id, *request;
    mlx5sim_cm_ref_t ref;
    uint32_t index;
    int ret;

    if (fcntl(in->fd, F_GETFD) < 0) {
        return -ENOENT; /* not -EBADF: ucma_migrate_id() */
    }

    if (!mlx5sim_rdmacm_is_same(in->fd)) {
        return -EINVAL;
    }

    /* the id moves to the channel of the command from the one that it names */
    of_id.chan = mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, from);

    id = mlx5sim_cm_cmd_id(&of_id, in->id, &ret);
    if (id == NULL) {
        return ret;
    }

    if (from != to) {
        (void)mlx5sim_cm_event_remove(id, cmd->chan, NULL);
        ref = mlx5sim_cm_id_ref(id);
        /* with the requests that it has not read */
        for (index = 0; (request = mlx5sim_cm_id_next(index,
                                                      mlx5sim_self_tag)) !=
                        NULL; index = mlx5sim_cm_id_ref(request).index) {
            if ((request == id) || ((request->listener.index == ref.index) &&
                                    (request->listener.gen == ref.gen) &&
                                    !request->is_read)) {
                request->chan     = to;
                request->chan_gen = cmd->chan->o.gen;
            }
        }
    }

    out.events_reported = id->reported;
    return mlx5sim_cm_reply(cmd, in->response, &out, sizeof(out));
}

/* ucma_set_option_id() */
static int mlx5sim_cm_set_id_option(mlx5sim_cm_id_t *id, uint32_t name,
                                    const void *value, size_t length)
{
    uint8_t byte  = *(const uint8_t*)value;
    int is_number = length == sizeof(int);
    int is_set;

    memcpy(&is_set, value, sizeof(is_set));
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        if (length != sizeof(byte)) {
            return -EINVAL;
        }
        id->tos = byte;
        return 0;
    case RDMA_OPTION_ID_REUSEADDR:
        /* rdma_set_reuseaddr(): it can be taken back only before bind */
        if (!is_number || (!is_set && (id->state != MLX5SIM_CM_IDLE)) ||
            (id->state == MLX5SIM_CM_LISTEN)) {
            return -EINVAL;
        }
        id->reuse_addr = !!is_set;
        return 0;
    case RDMA_OPTION_ID_AFONLY:
        if (!is_number || (id->state > MLX5SIM_CM_BOUND)) {
            return -EINVAL;
        }
        id->af_only     = !!is_set;
        id->has_af_only = 1;
        return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        /* rdma_set_ack_timeout(): five bits, of connections */
        if ((length != sizeof(byte)) || (byte > 31) ||
            (id->qp_type != IBV_QPT_RC)) {
            return -EINVAL;
        }
        id->timeout = byte;
        return 0;
    default:
        return -ENOSYS;
    }
}

/* ucma_set_ib_path(): the first path that is for all counts. What it says is
 * known: there is no other one. */
static int mlx5sim_cm_set_path(mlx5sim_cm_id_t *id, uint64_t paths,
                               size_t length)
{
    const uint32_t wanted        = IB_PATH_GMP | IB_PATH_PRIMARY |
                                   IB_PATH_BIDIRECTIONAL;
    struct ib_path_rec_data path = {};
    size_t offset;
    int ret;

    if (length % sizeof(path) != 0) {
        return -EINVAL;
    }

    for (offset = 0; (offset < length) && (path.flags != wanted);
         offset += sizeof(path)) {
        ret = mlx5sim_cm_copy_in(&path, paths + offset, sizeof(path));
        if (ret != 0) {
            return ret;
        }
    }

    if ((path.flags != wanted) || (id->state != MLX5SIM_CM_ADDR)) {
        return -EINVAL;
    }

    id->state = MLX5SIM_CM_ROUTE;
    return mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_ROUTE_RESOLVED, 0);
}

int mlx5sim_cm_cmd_set_option(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_set_option *in = &cmd->in.set_option;
    int value                            = 0;
    mlx5sim_cm_id_t *id;
    int ret;

    if (in->optlen > MLX5SIM_CM_OPTION_MAX) {
        return -EINVAL;
    }

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    if (id == NULL) {
        return ret;
    }

    ret = mlx5sim_cm_copy_in(&value, in->optval, (in->optlen < sizeof(value)) ?
                                                 in->optlen : sizeof(value));
    if (ret != 0) {
        return ret;
    }

    if (in->level == RDMA_OPTION_ID) {
        return mlx5sim_cm_set_id_option(id, in->optname, &value, in->optlen);
    } else if ((in->level == RDMA_OPTION_IB) &&
               (in->optname == RDMA_OPTION_IB_PATH)) {
        return mlx5sim_cm_set_path(id, in->optval, in->optlen);
    }
    return -ENOSYS;
}

/* ucma_copy_conn_event(), ucma_copy_ud_event() */
static void mlx5sim_cm_event_param(const mlx5sim_cm_id_t *id, unsigned event,
                                   struct rdma_ucm_event_resp *out_p)
{
    const mlx5sim_cm_param_t *from   =
            ((event == MLX5SIM_CM_EVENT_REJECTED) ||
             (event == MLX5SIM_CM_EVENT_UNREACHABLE)) ? &id->refusal :
                                                        &id->theirs;
    struct rdma_ucm_conn_param *conn = &out_p->param.conn;
    struct rdma_ucm_ud_param *ud     = &out_p->param.ud;

    if (id->qp_type == IBV_QPT_UD) {
        ud->private_data_len = from->length;
        memcpy(ud->private_data, from->data, from->length);
        if (event == MLX5SIM_CM_EVENT_ESTABLISHED) {
            ud->qp_num = from->qp_num;
            ud->qkey   = from->qkey;
            mlx5sim_cm_attr_ah(id, &ud->ah_attr);
        }
        return;
    }

    conn->private_data_len = from->length;
    memcpy(conn->private_data, from->data, from->length);
    if (event == MLX5SIM_CM_EVENT_REJECTED) {
        return;
    }

    /* the other way round, rdma_get_cm_event(3) */
    conn->responder_resources = from->initiator_depth;
    conn->initiator_depth     = from->responder_resources;
    conn->flow_control        = from->flow_control;
    /* REP does not have it: cma_set_rep_event_data() */
    conn->retry_count         = (event == MLX5SIM_CM_EVENT_CONNECT_REQUEST) ?
                                from->retry_count : 0;
    conn->rnr_retry_count     = from->rnr_retry_count;
    conn->srq                 = from->srq;
    conn->qp_num              = from->qp_num;
}

/* Whether an event comes with what the other side has sent */
static int mlx5sim_cm_event_has_param(const mlx5sim_cm_id_t *id, unsigned event)
{
    switch (event) {
    case MLX5SIM_CM_EVENT_CONNECT_REQUEST:
    case MLX5SIM_CM_EVENT_CONNECT_RESPONSE:
    case MLX5SIM_CM_EVENT_REJECTED:
        return 1;
    case MLX5SIM_CM_EVENT_ESTABLISHED:
    case MLX5SIM_CM_EVENT_UNREACHABLE:
        return id->qp_type == IBV_QPT_UD;
    default:
        return 0;
    }
}

int mlx5sim_cm_cmd_get_event(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_get_event *in = &cmd->in.get_event;
    struct rdma_ucm_event_resp out      = {};
    mlx5sim_cm_id_t *id, *owner;
    mlx5sim_cm_event_t event;
    int ret;

    /* before an event is taken that could not be told */
    ret = mlx5sim_cm_reply(cmd, in->response, &out, sizeof(out));
    if (ret != 0) {
        return ret;
    }

    if (!mlx5sim_cm_event_take(cmd->fd, &event, &id)) {
        return -EAGAIN;
    }

    owner = id;
    if (event.event == MLX5SIM_CM_EVENT_CONNECT_REQUEST) {
        owner       = mlx5sim_cm_id_get(id->listener);
        id->is_read = 1;
        mlx5sim_cm_request_read(id);
        mlx5sim_cm_watch_wake();
    }

    out.uid    = owner->o.user_handle;
    out.id     = mlx5sim_cm_id_ref(id).index;
    out.event  = event.event;
    out.status = event.status;
    if (mlx5sim_cm_event_has_param(id, event.event)) {
        mlx5sim_cm_event_param(id, event.event, &out);
    }
    return mlx5sim_cm_reply(cmd, in->response, &out, sizeof(out));
}
