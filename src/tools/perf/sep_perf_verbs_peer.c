/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_verbs.h>
#include <tools/perf/sep_perf_measure.h>
#include <tools/plan/uars.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Receives that a queue pair of the peer has: the sender has at most so many
 * outstanding, and those that have come are given back at once */
#define SEP_PERF_PEER_RECVS(_hello) ((_hello)->depth + 64)

/* Reads and atomics that a queue pair has under way: what adapters do */
#define SEP_PERF_READS  16


/** The peer's objects. */
typedef struct sep_perf_server {
    const sep_perf_hello_t *hello;
    struct ibv_device      **devices;
    struct ibv_context     *context;
    struct ibv_pd          *pd;
    struct ibv_mr          *mr;
    struct ibv_cq          *cq;
    struct ibv_qp          **qps;
    uint8_t                *memory;
    uint64_t               received; /* Messages */
    sep_perf_port_t        port;
} sep_perf_server_t;


struct ibv_device *sep_perf_device_find(const char *name,
                                        struct ibv_device ***list_p)
{
    struct ibv_device **list;
    int i, count = 0;

    list = ibv_get_device_list(&count);
    for (i = 0; (list != NULL) && (i < count); ++i) {
        if (mlx5dv_is_supported(list[i]) &&
            ((name == NULL) ||
             (strcmp(name, ibv_get_device_name(list[i])) == 0))) {
            *list_p = list;
            return list[i];
        }
    }

    fprintf(stderr, "sep_perf: there is no mlx5 device%s%s: neither an adapter "
            "nor the software device (mlx5sim-run sep_perf)\n",
            (name != NULL) ? " " : "", (name != NULL) ? name : "");
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    return NULL;
}

int sep_perf_probe(const sep_perf_options_t *options, sep_perf_result_t *result,
                   unsigned *part_id_p)
{
    struct ibv_device **devices;
    struct ibv_context *context;
    struct ibv_device_attr attr;
    struct ibv_device *device;
    sep_perf_port_t port;
    int ret;

    device = sep_perf_device_find(options->device, &devices);
    if (device == NULL) {
        return -1;
    }
    context = ibv_open_device(device);
    if (context == NULL) {
        fprintf(stderr, "sep_perf: %s cannot be opened: %s\n",
                ibv_get_device_name(device), strerror(errno));
        ibv_free_device_list(devices);
        return -1;
    }

    *part_id_p     = (ibv_query_device(context, &attr) == 0) ?
                     attr.vendor_part_id : 0;
    ret            = sep_perf_port_query(context, options, &port);
    result->regime = sep_uars_find_regime(context);
    snprintf(result->device, sizeof(result->device), "%.31s",
             ibv_get_device_name(device));
    ibv_close_device(context);
    ibv_free_device_list(devices);
    return ret;
}

/* The last address of RoCE v2: those of IPv4 come behind */
static int sep_perf_port_find_gid(struct ibv_context *context, unsigned port)
{
    struct ibv_gid_entry entry;
    int i, found = 0;

    for (i = 0; ibv_query_gid_ex(context, port, i, &entry, 0) == 0; ++i) {
        if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) {
            found = i;
        }
    }
    return found;
}

int sep_perf_port_query(struct ibv_context *context,
                        const sep_perf_options_t *options,
                        sep_perf_port_t *port_p)
{
    const char *name = ibv_get_device_name(context->device);

    memset(port_p, 0, sizeof(*port_p));
    port_p->number = options->port;
    if (ibv_query_port(context, options->port, &port_p->attr) != 0) {
        fprintf(stderr, "sep_perf: %s has no port %u\n", name, options->port);
        return -1;
    }
    if (port_p->attr.state != IBV_PORT_ACTIVE) {
        fprintf(stderr, "sep_perf: port %u of %s is not active: %s\n",
                options->port, name, ibv_port_state_str(port_p->attr.state));
        return -1;
    }
    if (port_p->attr.link_layer != IBV_LINK_LAYER_ETHERNET) {
        return 0;
    }

    port_p->gid_index = (options->gid_index >= 0) ? options->gid_index :
                        sep_perf_port_find_gid(context, options->port);
    if (ibv_query_gid(context, options->port, port_p->gid_index,
                      &port_p->gid) != 0) {
        fprintf(stderr, "sep_perf: port %u of %s has no address %d: --gid\n",
                options->port, name, port_p->gid_index);
        return -1;
    }
    return 0;
}

void sep_perf_qp_address(const struct ibv_qp *qp, const sep_perf_port_t *port,
                         sep_perf_qp_addr_t *addr_p)
{
    memset(addr_p, 0, sizeof(*addr_p));
    addr_p->qpn     = qp->qp_num;
    addr_p->lid     = port->attr.lid;
    addr_p->mtu     = port->attr.active_mtu;
    addr_p->has_gid = (port->attr.link_layer == IBV_LINK_LAYER_ETHERNET);
    memcpy(addr_p->gid, &port->gid, sizeof(addr_p->gid));
}

static int sep_perf_qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr,
                              int mask, const char *state)
{
    int ret = ibv_modify_qp(qp, attr, mask);

    if (ret != 0) {
        fprintf(stderr, "sep_perf: a queue pair can't be made %s: %s\n", state,
                strerror(ret));
        return -1;
    }
    return 0;
}

int sep_perf_qp_connect(struct ibv_qp *qp, const sep_perf_port_t *port,
                        const sep_perf_qp_addr_t *remote)
{
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .port_num        = port->number,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC
    };

    if (sep_perf_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                           IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT") != 0) {
        return -1;
    }

    memset(&attr, 0, sizeof(attr));
    attr.qp_state              = IBV_QPS_RTR;
    attr.path_mtu              = (remote->mtu < port->attr.active_mtu) ?
                                 remote->mtu : port->attr.active_mtu;
    attr.dest_qp_num           = remote->qpn;
    attr.max_dest_rd_atomic    = SEP_PERF_READS;
    attr.min_rnr_timer         = 1; /* 0.01 ms */
    attr.ah_attr.dlid          = remote->lid;
    attr.ah_attr.port_num      = port->number;
    attr.ah_attr.is_global     = remote->has_gid;
    attr.ah_attr.grh.hop_limit = 64;
    attr.ah_attr.grh.sgid_index = port->gid_index;
    memcpy(&attr.ah_attr.grh.dgid, remote->gid, sizeof(remote->gid));
    if (sep_perf_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
                           IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                           "RTR") != 0) {
        return -1;
    }

    memset(&attr, 0, sizeof(attr));
    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = 18; /* 1 s */
    attr.retry_cnt     = 7;
    attr.rnr_retry     = 7;  /* Without end */
    attr.max_rd_atomic = SEP_PERF_READS;
    return sep_perf_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
                              IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, "RTS");
}

static int sep_perf_server_fail(const char *what)
{
    fprintf(stderr, "sep_perf: the peer can't make %s: %s\n", what,
            strerror(errno));
    return -1;
}

static int sep_perf_server_recv(sep_perf_server_t *server, unsigned qp)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)server->memory +
                  (qp * sep_perf_slot_size(server->hello->bytes)),
        .length = server->hello->bytes,
        .lkey   = server->mr->lkey
    };
    struct ibv_recv_wr wr = {.wr_id = qp, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    return ibv_post_recv(server->qps[qp], &wr, &bad);
}

static int sep_perf_server_make_qp(sep_perf_server_t *server, unsigned i)
{
    const sep_perf_hello_t *hello = server->hello;
    int is_send                   = (hello->op == SEP_MODEL_SEND);
    struct ibv_qp_init_attr attr  = {
        .qp_type = IBV_QPT_RC,
        .send_cq = server->cq,
        .recv_cq = server->cq,
        .cap     = {
            .max_send_wr  = 1,
            .max_send_sge = 1,
            .max_recv_wr  = is_send ? SEP_PERF_PEER_RECVS(hello) : 1,
            .max_recv_sge = 1
        }
    };

    server->qps[i] = ibv_create_qp(server->pd, &attr);
    return (server->qps[i] == NULL) ? sep_perf_server_fail("a queue pair") : 0;
}

/* Resources that the process has go when it ends */
static int sep_perf_server_open(sep_perf_server_t *server,
                                const sep_perf_options_t *options)
{
    const sep_perf_hello_t *hello = server->hello;
    size_t size                   = hello->threads *
                                    sep_perf_slot_size(hello->bytes);
    struct ibv_device *device;
    unsigned i, cqes;

    device = sep_perf_device_find(options->device, &server->devices);
    if (device == NULL) {
        return -1;
    }
    server->context = ibv_open_device(device);
    if (server->context == NULL) {
        return sep_perf_server_fail("a device context");
    }
    if (sep_perf_port_query(server->context, options, &server->port) != 0) {
        return -1;
    }
    server->pd = ibv_alloc_pd(server->context);
    if (server->pd == NULL) {
        return sep_perf_server_fail("a protection domain");
    }
    cqes = (hello->op == SEP_MODEL_SEND) ?
           (hello->qps * SEP_PERF_PEER_RECVS(hello)) : 1;
    server->cq = ibv_create_cq(server->context, cqes, NULL, NULL, 0);
    if (server->cq == NULL) {
        return sep_perf_server_fail("a completion queue");
    }

    server->memory = aligned_alloc(4096, (size + 4095) & ~4095ul);
    server->qps    = calloc(hello->qps, sizeof(*server->qps));
    if ((server->memory == NULL) || (server->qps == NULL)) {
        return sep_perf_server_fail("memory");
    }
    memset(server->memory, 0, size);
    for (i = 0; (hello->op == SEP_MODEL_READ) && (i < hello->threads); ++i) {
        sep_perf_pattern_fill(server->memory +
                              (i * sep_perf_slot_size(hello->bytes)),
                              hello->bytes, 0);
    }
    server->mr = ibv_reg_mr(server->pd, server->memory, size,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    if (server->mr == NULL) {
        return sep_perf_server_fail("a memory region");
    }
    for (i = 0; i < hello->qps; ++i) {
        if (sep_perf_server_make_qp(server, i) != 0) {
            return -1;
        }
    }
    return 0;
}

static int sep_perf_server_connect(sep_perf_server_t *server, int fd)
{
    unsigned num_qps         = server->hello->qps;
    sep_perf_target_t target = {
        .address = (uintptr_t)server->memory,
        .rkey    = server->mr->rkey
    };
    sep_perf_qp_addr_t *addrs = calloc(num_qps, sizeof(*addrs));
    unsigned i, j;
    int ret = -1;

    if ((addrs == NULL) ||
        (sep_perf_wire_read(fd, addrs, num_qps * sizeof(*addrs)) != 0)) {
        goto out;
    }
    for (i = 0; i < num_qps; ++i) {
        if (sep_perf_qp_connect(server->qps[i], &server->port,
                                &addrs[i]) != 0) {
            goto out;
        }
        for (j = 0; (server->hello->op == SEP_MODEL_SEND) &&
                    (j < SEP_PERF_PEER_RECVS(server->hello)); ++j) {
            if (sep_perf_server_recv(server, i) != 0) {
                sep_perf_server_fail("receives");
                goto out;
            }
        }
        sep_perf_qp_address(server->qps[i], &server->port, &addrs[i]);
    }
    ret = (sep_perf_wire_write(fd, &target, sizeof(target)) == 0) ?
          sep_perf_wire_write(fd, addrs, num_qps * sizeof(*addrs)) : -1;
out:
    free(addrs);
    return ret;
}

/* Take what has come. @return Number of messages, or -1 after a message */
static int sep_perf_server_poll(sep_perf_server_t *server)
{
    struct ibv_wc wc[16];
    int i, count;

    count = ibv_poll_cq(server->cq, 16, wc);
    for (i = 0; i < count; ++i) {
        if (wc[i].status != IBV_WC_SUCCESS) {
            fprintf(stderr, "sep_perf: the peer could not receive: %s\n",
                    ibv_wc_status_str(wc[i].status));
            return -1;
        }
        if (sep_perf_server_recv(server, wc[i].wr_id) != 0) {
            return sep_perf_server_fail("a receive");
        }
        ++server->received;
    }
    return count;
}

static int sep_perf_server_check(sep_perf_server_t *server, int fd)
{
    const sep_perf_hello_t *hello = server->hello;
    size_t slot                   = sep_perf_slot_size(hello->bytes);
    uint64_t value;
    unsigned i;

    while ((hello->op == SEP_MODEL_SEND) &&
           (sep_perf_server_poll(server) > 0)) {
    }
    for (i = 0; i < hello->threads; ++i) {
        switch (hello->op) {
        case SEP_MODEL_SEND:
            value = server->received;
            break;
        case SEP_MODEL_ATOMIC:
            memcpy(&value, server->memory + (i * slot), sizeof(value));
            break;
        default:
            value = sep_perf_sum(server->memory + (i * slot), hello->bytes);
            break;
        }
        if (sep_perf_wire_write(fd, &value, sizeof(value)) != 0) {
            return -1;
        }
    }
    return 0;
}

int sep_perf_verbs_serve(int fd, const sep_perf_hello_t *hello,
                         const sep_perf_options_t *options)
{
    int is_send              = (hello->op == SEP_MODEL_SEND);
    sep_perf_server_t server = {.hello = hello};
    sep_perf_target_t none   = {.failed = 1};
    int command;

    if (sep_perf_server_open(&server, options) != 0) {
        sep_perf_wire_write(fd, &none, sizeof(none));
        return -1;
    }
    if (sep_perf_server_connect(&server, fd) != 0) {
        return -1;
    }

    for (;;) {
        command = sep_perf_wire_command(fd, !is_send);
        if (command == SEP_PERF_COMMAND_CHECK) {
            if (sep_perf_server_check(&server, fd) != 0) {
                return -1;
            }
        } else if (command != 0) {
            return (command == SEP_PERF_COMMAND_QUIT) ? 0 : -1;
        }
        if (is_send && (sep_perf_server_poll(&server) < 0)) {
            return -1;
        }
    }
}
