/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/net/net.h>
#include <sim/config/identity.h>
#include <sim/engine/mlx5_def.h>
#include <sim/engine/packet.h>
#include <sim/exec/fabric.h>
#include <sim/exec/responder.h>
#include <sim/exec/wqe.h>
#include <sim/instance/instance.h>
#include <sim/net/frame.h>
#include <sim/objs/pcie.h>
#include <sim/objs/proc.h>
#include <sim/objs/raw.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Longest time that a doorbell waits for mlx5sim-wire to take a datagram, which
 * is lost then */
#define MLX5SIM_NET_PATIENCE_US 100000

/* Open once per process; 0: not yet, as that is never one of ours */
static _Atomic int mlx5sim_net_rung_fd;
static _Atomic int mlx5sim_net_socket_fd;


/* Whether an address is that of a port of another node. As in switches, the LID
 * decides on InfiniBand. */
static int mlx5sim_net_is_remote(const mlx5sim_qp_obj_t *qp, int has_grh,
                                 uint16_t dlid, const uint8_t *dgid)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    unsigned dev, port;

    if (!mlx5sim_config_has_wire(config)) {
        return 0;
    }

    if (!qp->qp.is_roce) {
        return (dlid != 0) && (dlid <= MLX5SIM_LID_MAX) &&
               !mlx5sim_lid_find(config, dlid, &dev, &port);
    }

    return has_grh && !mlx5sim_gid_find(config, dgid, &dev, &port);
}

/* Keep a descriptor that others may have opened at the same time */
static int mlx5sim_net_keep(_Atomic int *fd_p, int fd)
{
    int none = 0;

    if (!atomic_compare_exchange_strong(fd_p, &none, fd)) {
        mlx5sim_raw_close(fd);
        fd = none;
    }
    return fd;
}

/* Open for reading, too: there is always a reader then, and no SIGPIPE */
static int mlx5sim_net_open_rung(void)
{
    int fd = atomic_load(&mlx5sim_net_rung_fd);
    char path[PATH_MAX];

    if (fd != 0) {
        return fd;
    }

    snprintf(path, sizeof(path), "%s/%s", mlx5sim_instance_dir(),
             MLX5SIM_NET_RUNG);
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    return (fd < 0) ? -1 : mlx5sim_net_keep(&mlx5sim_net_rung_fd, fd);
}

static int mlx5sim_net_connect_socket(int fd)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s",
                 mlx5sim_instance_dir(), MLX5SIM_NET_SOCKET) >=
        (int)sizeof(addr.sun_path)) {
        return -1;
    }

    return connect(fd, (struct sockaddr*)&addr, sizeof(addr));
}

static int mlx5sim_net_open_socket(void)
{
    int fd                  = atomic_load(&mlx5sim_net_socket_fd);
    struct timeval patience = {0, MLX5SIM_NET_PATIENCE_US};

    if (fd != 0) {
        return fd;
    }

    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }

    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (mlx5sim_net_connect_socket(fd) != 0) {
        close(fd);
        return -1;
    }

    return mlx5sim_net_keep(&mlx5sim_net_socket_fd, fd);
}

/* Hand a datagram over. If mlx5sim-wire was killed, there may be another one by
 * now. */
static void mlx5sim_net_send(int fd, const uint8_t *frame, unsigned length)
{
    if ((send(fd, frame, length, MSG_NOSIGNAL) < 0) &&
        ((errno == ECONNREFUSED) || (errno == ENOTCONN)) &&
        (mlx5sim_net_connect_socket(fd) == 0)) {
        (void)!send(fd, frame, length, MSG_NOSIGNAL);
    }
}

uint32_t mlx5sim_net_server(void)
{
    uint32_t tag               = atomic_load(&mlx5sim_store->wire_tag);
    const mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(tag);

    return ((proc != NULL) && !mlx5sim_proc_is_gone(proc)) ? tag : 0;
}

int mlx5sim_net_connect(mlx5sim_qp_obj_t *qp)
{
    qp->is_remote = mlx5sim_net_is_remote(qp, qp->qp.has_grh, qp->qp.dlid,
                                          qp->qp.dgid);
    if (!qp->is_remote) {
        return 0;
    }

    if (qp->qp.is_roce &&
        !mlx5sim_gid_is_roce_v2(mlx5sim_instance_config(), qp->sgid_index)) {
        fprintf(stderr, "mlx5sim: QP 0x%x: the peer is on another node, which "
                "is reached by RoCE v2 only; GID %u is of RoCE v1, take the "
                "one behind it\n", qp->qp.qpn, qp->sgid_index);
        return -EPROTONOSUPPORT;
    }

    if ((mlx5sim_net_server() == 0) || (mlx5sim_net_open_rung() < 0)) {
        fprintf(stderr, "mlx5sim: QP 0x%x: the peer is on another node, and no "
                "mlx5sim-wire runs here; start it with MLX5SIM_DIR=%s\n",
                qp->qp.qpn, mlx5sim_instance_dir());
        return -ENETUNREACH;
    }

    return 0;
}

void mlx5sim_net_ring(mlx5sim_qp_obj_t *qp)
{
    uint32_t qpn = qp->qp.qpn;
    int fd       = atomic_load(&mlx5sim_net_rung_fd);

    /* one entry per QP: the FIFO has room for all */
    if ((fd > 0) && !atomic_exchange(&qp->is_told, 1)) {
        (void)!write(fd, &qpn, sizeof(qpn));
    }
}

void mlx5sim_net_ring_cm(void)
{
    const uint32_t qpn = MLX5SIM_NET_CM;
    int fd             = mlx5sim_net_open_rung();

    if ((fd > 0) && !atomic_exchange(&mlx5sim_store->cm_is_told, 1)) {
        (void)mlx5sim_raw_write(fd, &qpn, sizeof(qpn));
    }
}

int mlx5sim_net_is_datagram(const mlx5sim_qp_obj_t *qp,
                            const mlx5sim_wqe_t *wqe)
{
    return (qp->qp.type == MLX5SIM_QPT_UD) && wqe->has_av &&
           mlx5sim_net_is_remote(qp, wqe->av.has_grh, wqe->av.dlid,
                                 wqe->av.dgid);
}

void mlx5sim_net_datagram(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                          mlx5sim_plan_t *plan_p)
{
    uint8_t payload[MLX5SIM_MAX_MTU], frame[MLX5SIM_ROCE_MAX];
    mlx5sim_roce_path_t path;
    mlx5sim_roce_t packet;
    unsigned length;
    int fd;

    mlx5sim_wqe_lose(qp, wqe, plan_p);
    if (plan_p->req_error || mlx5sim_qp_is_cut_off(qp) ||
        mlx5sim_fabric_is_too_long(qp, wqe)) {
        return;
    }

    if (mlx5sim_frame_gather(qp, wqe, 0, wqe->length, payload) != 0) {
        mlx5sim_plan_fail_local(&qp->qp, wqe, MLX5SIM_SYNDROME_LOCAL_PROT,
                                plan_p);
        return;
    }

    mlx5sim_frame_datagram(qp, wqe, qp->qp.psn, &path, &packet);
    qp->qp.psn = mlx5sim_psn_add(qp->qp.psn, 1);
    mlx5sim_pcie_read(mlx5sim_proc_self(), wqe->num_segs);
    fd = (path.is_ib || path.route.is_udp) ? mlx5sim_net_open_socket() : -1;
    if (fd >= 0) {
        length = mlx5sim_roce_encode_net(&path, &packet, payload, wqe->length,
                                        frame);
        mlx5sim_net_send(fd, frame, length);
    }
}
