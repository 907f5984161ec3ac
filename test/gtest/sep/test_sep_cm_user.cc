/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_cm_user.h>
#include <sep/count_handlers.h>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

namespace sep_cm_test {

/* The first of InfiniBand, one of RoCE v2 on Ethernet */
void device::find_gid(device &dev, unsigned count)
{
    struct ibv_gid_entry entry;

    for (unsigned i = 0; i < count; ++i) {
        if ((ibv_query_gid_ex(dev.context, 1, i, &entry, 0) == 0) &&
            (!dev.port.is_roce || (entry.gid_type == IBV_GID_TYPE_ROCE_V2))) {
            dev.port.is_roce_v2 = dev.port.is_roce;
            dev.port.gid_index  = i;
            dev.port.gid        = entry.gid;
            return;
        }
    }
    ADD_FAILURE() << dev.name << " has no usable GID";
}

device *device::get()
{
    static std::unique_ptr<device> dev;
    struct ibv_port_attr port_attr;
    struct ibv_device **list;
    uint16_t pkey;
    int i, count;

    if (dev) {
        return dev.get();
    }

    list = ibv_get_device_list(&count);
    for (i = 0; i < count; ++i) {
        if (strncmp(ibv_get_device_name(list[i]), "mlx5_", 5) != 0) {
            continue;
        }

        std::unique_ptr<device> d(new device());
        d->name    = ibv_get_device_name(list[i]);
        d->context = ibv_open_device(list[i]);
        if (d->context == nullptr) {
            continue;
        }

        d->pd = ibv_alloc_pd(d->context);
        EXPECT_NE(nullptr, d->pd);
        EXPECT_EQ(0, ibv_query_port(d->context, 1, &port_attr));
        memset(&d->port, 0, sizeof(d->port));
        d->port.port_num     = 1;
        d->port.is_roce      = port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
        d->port.force_global = !!(port_attr.flags & IBV_QPF_GRH_REQUIRED);
        d->port.lid          = d->port.is_roce ? 0 : port_attr.lid;
        d->port.lmc          = d->port.is_roce ? 0 : port_attr.lmc;
        d->port.hop_limit    = 64;
        find_gid(*d, port_attr.gid_tbl_len);
        EXPECT_EQ(0, ibv_query_pkey(d->context, 1, 0, &pkey));
        d->port.pkey         = ntohs(pkey);
        d->mtu               = port_attr.active_mtu;
        dev                  = std::move(d);
        break;
    }
    if (list != nullptr) {
        ibv_free_device_list(list);
    }
    return dev.get();
}

device::~device()
{
    if (pd != nullptr) {
        EXPECT_EQ(0, ibv_dealloc_pd(pd)) << "objects left behind";
    }
    if (context != nullptr) {
        ibv_close_device(context);
    }
}

const uct_sep_cm_ops_t cm_user::ops = {
    cm_user::conn_alloc, cm_user::conn_free,  cm_user::qp_create,
    cm_user::qp_connect, cm_user::qp_destroy, cm_user::established,
    cm_user::failed,     cm_user::let_go,     cm_user::unused,
    cm_user::asked
};

cm_user::cm_user(const options &opts) :
    m_dev(*device::get()), m_opts(opts), m_rng(opts.seed)
{
    uct_sep_cm_params_t params = {};
    ucs_status_t status;

    status = ucs_async_context_create(opts.mode, &async);
    EXPECT_EQ(UCS_OK, status);

    m_cq = ibv_create_cq(m_dev.context, 1024, nullptr, nullptr, 0);
    EXPECT_NE(nullptr, m_cq);

    params.ibv_context   = m_dev.context;
    params.pd            = m_dev.pd;
    params.port          = m_dev.port;
    params.async         = async;
    params.ops           = &ops;
    params.arg           = this;
    params.timeout       = opts.timeout;
    params.retry_count   = opts.retry_count;
    params.rx_queue_len  = opts.rx_len;
    params.max_half_open = opts.max_pending;
    params.keepalive     = opts.keepalive;
    params.name          = m_dev.name.c_str();
    params.tx_filter     = tx_filter;
    params.tx_filter_arg = this;
    status               = uct_sep_cm_init(&params, &cm);
    EXPECT_EQ(UCS_OK, status);

    uct_sep_cm_get_device_address(cm, &addr.dev);
    uct_sep_cm_get_address(cm, &addr.iface);
}

cm_user::~cm_user()
{
    destroy_cm();
    EXPECT_EQ(0u, m_live_qps);
    EXPECT_EQ(0u, m_live_conns);
    EXPECT_EQ(0u, count_handlers(async));
    EXPECT_EQ(0, ibv_destroy_cq(m_cq));
    ucs_async_context_destroy(async);
}

void cm_user::destroy_cm()
{
    if (cm != nullptr) {
        uct_sep_cm_cleanup(cm);
        cm = nullptr;
    }
}

unsigned cm_user::tx_filter(void *arg, const uct_sep_conn_msg_t *msg)
{
    cm_user *self     = static_cast<cm_user*>(arg);
    unsigned chance = self->m_rng() % 100;

    (void)msg;
    if (self->on_send) {
        self->on_send();
    }
    if (chance < self->m_opts.loss) {
        return 0;
    }
    return (chance < self->m_opts.loss + self->m_opts.duplicates) ? 2 : 1;
}

ucs_status_t cm_user::conn_alloc(void *arg, uct_sep_conn_t **conn_p)
{
    cm_user *self = static_cast<cm_user*>(arg);

    if (self->alloc_failures > 0) {
        --self->alloc_failures;
        return UCS_ERR_NO_MEMORY;
    }

    conn *c = new conn();

    c->owner = self;
    ++self->m_live_conns;
    *conn_p = &c->super;
    return UCS_OK;
}

void cm_user::conn_free(void *arg, uct_sep_conn_t *sep_conn)
{
    cm_user *self = static_cast<cm_user*>(arg);
    conn *c     = reinterpret_cast<conn*>(sep_conn);

    EXPECT_EQ(nullptr, c->qp);
    --self->m_live_conns;
    delete c;
}

ucs_status_t cm_user::qp_create(void *arg, uct_sep_conn_t *sep_conn,
                              uct_sep_conn_qp_info_t *local_p)
{
    cm_user *self                  = static_cast<cm_user*>(arg);
    conn *c                      = reinterpret_cast<conn*>(sep_conn);
    struct ibv_qp_init_attr init = {};
    struct ibv_qp_attr attr      = {};
    struct ibv_recv_wr wr = {}, *bad_wr;
    struct ibv_sge sge;

    EXPECT_EQ(nullptr, c->qp) << "second QP for a connection";
    if (self->create_failures > 0) {
        --self->create_failures;
        return UCS_ERR_NO_MEMORY;
    }

    init.send_cq             = self->m_cq;
    init.recv_cq             = self->m_cq;
    init.qp_type             = IBV_QPT_RC;
    init.cap.max_send_wr     = 4;
    init.cap.max_recv_wr     = 4;
    init.cap.max_send_sge    = 1;
    init.cap.max_recv_sge    = 1;
    init.cap.max_inline_data = 8;
    c->qp                    = ibv_create_qp(self->m_dev.pd, &init);
    if (c->qp == nullptr) {
        return UCS_ERR_IO_ERROR;
    }

    attr.qp_state   = IBV_QPS_INIT;
    attr.port_num   = 1;
    EXPECT_EQ(0, ibv_modify_qp(c->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                             IBV_QP_PORT |
                                             IBV_QP_ACCESS_FLAGS));

    c->rx = 0;
    c->mr = ibv_reg_mr(self->m_dev.pd, &c->rx, sizeof(c->rx),
                       IBV_ACCESS_LOCAL_WRITE);
    EXPECT_NE(nullptr, c->mr);
    sge.addr   = reinterpret_cast<uintptr_t>(&c->rx);
    sge.length = sizeof(c->rx);
    sge.lkey   = c->mr->lkey;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    EXPECT_EQ(0, ibv_post_recv(c->qp, &wr, &bad_wr));

    ++c->qps_created;
    ++self->m_live_qps;
    local_p->qpn                = c->qp->qp_num;
    local_p->psn                = self->m_rng() & UCT_SEP_ADDR_MAX_24BIT;
    local_p->path_mtu           = self->m_dev.mtu;
    local_p->max_rd_atomic      = 1;
    local_p->max_dest_rd_atomic = 1;
    return UCS_OK;
}

ucs_status_t cm_user::qp_connect(void *arg, uct_sep_conn_t *sep_conn,
                               const uct_sep_conn_qp_info_t *remote,
                               const struct ibv_ah_attr *ah_attr)
{
    cm_user *self             = static_cast<cm_user*>(arg);
    conn *c                 = reinterpret_cast<conn*>(sep_conn);
    struct ibv_qp_attr attr = {};

    if (self->connect_failures > 0) {
        --self->connect_failures;
        return UCS_ERR_IO_ERROR;
    }

    attr.qp_state           = IBV_QPS_RTR;
    attr.ah_attr            = *ah_attr;
    attr.path_mtu           = static_cast<enum ibv_mtu>(remote->path_mtu);
    attr.dest_qp_num        = remote->qpn;
    attr.rq_psn             = remote->psn;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer      = 12;
    if (ibv_modify_qp(c->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
        return UCS_ERR_IO_ERROR;
    }

    attr.qp_state      = IBV_QPS_RTS;
    attr.sq_psn        = sep_conn->local.psn;
    attr.timeout       = 14;
    attr.retry_cnt     = 7;
    attr.rnr_retry     = 7;
    attr.max_rd_atomic = 1;
    if (ibv_modify_qp(c->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
                      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
        return UCS_ERR_IO_ERROR;
    }

    c->remote = *remote;
    return UCS_OK;
}

void cm_user::qp_destroy(void *arg, uct_sep_conn_t *sep_conn)
{
    cm_user *self = static_cast<cm_user*>(arg);
    conn *c     = reinterpret_cast<conn*>(sep_conn);

    /* Right here: this user polls its CQ with the context blocked as well */
    EXPECT_NE(nullptr, c->qp);
    EXPECT_EQ(0, ibv_destroy_qp(c->qp));
    EXPECT_EQ(0, ibv_dereg_mr(c->mr));
    c->qp = nullptr;
    --self->m_live_qps;
}

void cm_user::established(void *arg, uct_sep_conn_t *sep_conn)
{
    conn *c = reinterpret_cast<conn*>(sep_conn);

    (void)arg;
    ++c->established;
}

void cm_user::failed(void *arg, uct_sep_conn_t *sep_conn, ucs_status_t status)
{
    cm_user *self = static_cast<cm_user*>(arg);
    conn *c     = reinterpret_cast<conn*>(sep_conn);

    ++c->failed;
    c->status = status;
    if (self->on_failed) {
        self->on_failed(c);
    }
}

int cm_user::let_go(void *arg, uct_sep_conn_t *sep_conn)
{
    cm_user *self = static_cast<cm_user*>(arg);

    (void)sep_conn;
    return self->lets_go;
}

void cm_user::unused(void *arg, uct_sep_conn_t *sep_conn)
{
    conn *c = reinterpret_cast<conn*>(sep_conn);

    (void)arg;
    ++c->unused;
}

void cm_user::asked(void *arg, uct_sep_conn_t *sep_conn)
{
    cm_user *self = static_cast<cm_user*>(arg);
    conn *c       = reinterpret_cast<conn*>(sep_conn);

    uct_sep_cm_conn_answer_asked(self->cm, sep_conn, c->sleeps);
}

conn *cm_user::get(const uct_sep_peer_addr_t &peer, unsigned path)
{
    uct_sep_peer_addr_t known;
    uct_sep_conn_t *c = nullptr;

    EXPECT_EQ(UCS_OK, uct_sep_cm_peer_add(
                              cm, (const uct_device_addr_t*)&peer.dev,
                              (const uct_iface_addr_t*)&peer.iface, path,
                              &known, &c));
    if (c == nullptr) {
        EXPECT_EQ(UCS_OK, uct_sep_cm_peer_get_conn(cm, &known, &c));
    }
    return reinterpret_cast<conn*>(c);
}

void cm_user::put(conn *c)
{
    uct_sep_cm_conn_put(cm, &c->super);
}

ucs_status_t cm_user::start(conn *c)
{
    return uct_sep_cm_conn_start(cm, &c->super);
}

void cm_user::error(conn *c)
{
    uct_sep_cm_conn_error(cm, &c->super);
}

void cm_user::progress()
{
    if (m_opts.mode == UCS_ASYNC_MODE_POLL) {
        ucs_async_poll(async);
    }
}

bool cm_user::wait(const std::function<bool()> &done, unsigned seconds)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    bool is_done;

    do {
        UCS_ASYNC_BLOCK(async);
        is_done = done();
        UCS_ASYNC_UNBLOCK(async);
        if (is_done) {
            return true;
        }

        progress();
        usleep(200);
    } while (std::chrono::steady_clock::now() < end);

    return false;
}

bool cm_user::wait_established(conn *c, unsigned times)
{
    return wait([=]() { return c->established >= times; });
}

bool cm_user::wait_failed(conn *c)
{
    return wait([=]() { return c->failed > 0; });
}

void cm_user::poll()
{
    struct ibv_wc wcs[16];
    int i, count;

    while ((count = ibv_poll_cq(m_cq, 16, wcs)) > 0) {
        for (i = 0; i < count; ++i) {
            if (wcs[i].status != IBV_WC_SUCCESS) {
                ++m_errors;
                ADD_FAILURE() << "qp " << wcs[i].qp_num << ": "
                              << ibv_wc_status_str(wcs[i].status);
            } else if (wcs[i].opcode == IBV_WC_SEND) {
                ++m_sent;
            }
        }
    }
}

bool cm_user::send(conn *c, uint64_t value)
{
    struct ibv_send_wr wr = {}, *bad_wr;
    struct ibv_sge sge    = {};
    unsigned expected     = m_sent + 1;

    sge.addr      = reinterpret_cast<uintptr_t>(&value);
    sge.length    = sizeof(value);
    wr.sg_list    = &sge;
    wr.num_sge    = 1;
    wr.opcode     = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    EXPECT_EQ(0, ibv_post_send(c->qp, &wr, &bad_wr));

    return wait([=]() { poll(); return m_sent >= expected || m_errors; }) &&
           (m_errors == 0);
}

bool cm_user::receive(conn *c, uint64_t value)
{
    return wait([=]() { poll(); return c->rx == value || m_errors; }) &&
           (m_errors == 0);
}

unsigned cm_user::live_qps()
{
    unsigned count;

    UCS_ASYNC_BLOCK(async);
    count = m_live_qps;
    UCS_ASYNC_UNBLOCK(async);
    return count;
}

unsigned cm_user::live_conns()
{
    unsigned count;

    UCS_ASYNC_BLOCK(async);
    count = m_live_conns;
    UCS_ASYNC_UNBLOCK(async);
    return count;
}

uct_sep_cm_stats_t cm_user::stats()
{
    uct_sep_cm_stats_t stats;

    uct_sep_cm_get_stats(cm, &stats);
    return stats;
}

} // namespace sep_cm_test
