/* SPDX-License-Identifier: BSD-3-Clause */

#include <device/device.h>

#include <cerrno>
#include <cstring>

#include <sched.h>
#include <sys/mman.h>

namespace device {

context::context(unsigned device, unsigned port_num) : port(port_num)
{
    ibv_device **list = ibv_get_device_list(nullptr);
    ibv_port_attr attr;
    int num_devices = 0;

    while ((list != nullptr) && (list[num_devices] != nullptr)) {
        ++num_devices;
    }
    REQUIRE((list != nullptr) && (device < (unsigned)num_devices));
    ctx = ibv_open_device(list[device]);
    REQUIRE(ctx != nullptr);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(ctx);
    REQUIRE(pd != nullptr);
    REQUIRE_EQ(0, ibv_query_port(ctx, port, &attr));
    REQUIRE_EQ(0, ibv_query_gid(ctx, port, 0, &gid));
    lid     = attr.lid;
    is_roce = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

ibv_td *context::new_domain()
{
    ibv_td_init_attr attr = {};

    return ibv_alloc_td(ctx, &attr);
}

context::~context()
{
    REQUIRE_EQ(0, ibv_dealloc_pd(pd));
    REQUIRE_EQ(0, ibv_close_device(ctx));
}


domain::domain(context &c)
{
    ibv_parent_domain_init_attr attr = {};

    td      = c.new_domain();
    attr.pd = c.pd;
    attr.td = td;
    pd      = ibv_alloc_parent_domain(c.ctx, &attr);
    REQUIRE((td != nullptr) && (pd != nullptr));
}

domain::~domain()
{
    REQUIRE_EQ(0, ibv_dealloc_pd(pd));
    REQUIRE_EQ(0, ibv_dealloc_td(td));
}


memory::memory(context &c, size_t size, unsigned access, ibv_pd *pd) :
    size(size)
{
    data = (uint8_t*)mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(data != MAP_FAILED);
    mr = ibv_reg_mr((pd != nullptr) ? pd : c.pd, data, size, access);
    REQUIRE(mr != nullptr);
}

memory::~memory()
{
    REQUIRE_EQ(0, ibv_dereg_mr(mr));
    munmap(data, size);
}

ibv_sge memory::sge(size_t offset, size_t length) const
{
    return {addr(offset), (uint32_t)length, mr->lkey};
}


cq::cq(context &c, int num, ibv_comp_channel *channel)
{
    v = ibv_create_cq(c.ctx, num, nullptr, channel, 0);
    REQUIRE(v != nullptr);
}

static mlx5dv_cq_init_attr dv_cqe_size(unsigned cqe_size)
{
    mlx5dv_cq_init_attr dv = {};

    dv.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
    dv.cqe_size  = cqe_size;
    return dv;
}

cq::cq(context &c, int num, unsigned cqe_size) :
    cq(c, num, dv_cqe_size(cqe_size))
{
}

cq::cq(context &c, int num, mlx5dv_cq_init_attr dv, ibv_comp_channel *channel)
{
    ibv_cq_init_attr_ex attr = {};

    attr.cqe     = num;
    attr.channel = channel;
    v = ibv_cq_ex_to_cq(mlx5dv_create_cq(c.ctx, &attr, &dv));
    REQUIRE(v != nullptr);
}

cq::cq(context &c, int num, ibv_create_cq_attr_flags flags)
{
    ibv_cq_init_attr_ex attr = {};

    attr.cqe       = num;
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags     = flags;
    v              = ibv_cq_ex_to_cq(ibv_create_cq_ex(c.ctx, &attr));
    REQUIRE(v != nullptr);
}

cq::~cq()
{
    REQUIRE_EQ(0, ibv_destroy_cq(v));
}

bool cq::poll(ibv_wc *wc_p)
{
    int ret = ibv_poll_cq(v, 1, wc_p);

    REQUIRE(ret >= 0);
    return ret == 1;
}

ibv_wc cq::next()
{
    uint64_t end = 0;
    ibv_wc wc;

    for (unsigned i = 0; !poll(&wc); ++i) {
        patience::pause();
        if ((i % 1024) == 0) {
            if (end == 0) {
                end = now_ms() + patience_ms;
            }
            check_abort();
            if (now_ms() > end) {
                fail(__FILE__, __LINE__, "no completion");
            }
        }
    }
    return wc;
}

ibv_wc cq::good()
{
    ibv_wc wc = next();

    if (wc.status != IBV_WC_SUCCESS) {
        fail(__FILE__, __LINE__, "wr_id 0x%lx of QP 0x%x: %s (vendor 0x%x)",
             (unsigned long)wc.wr_id, wc.qp_num, ibv_wc_status_str(wc.status),
             wc.vendor_err);
    }
    return wc;
}

void cq::empty()
{
    ibv_wc wc;

    if (poll(&wc)) {
        fail(__FILE__, __LINE__, "completion of wr_id 0x%lx, status %s",
             (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
    }
}

mlx5dv_cq cq::direct() const
{
    mlx5dv_cq dv   = {};
    mlx5dv_obj obj = {};

    obj.cq.in  = v;
    obj.cq.out = &dv;
    REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
    return dv;
}


qp::qp(context &c, cq &send_cq, cq &recv_cq, const qp_options &options) :
    c(c), options(options)
{
    ibv_qp_init_attr_ex attr = {};

    attr.comp_mask           = IBV_QP_INIT_ATTR_PD;
    attr.pd                  = (options.pd != nullptr) ? options.pd : c.pd;
    attr.send_cq             = send_cq.v;
    attr.recv_cq             = recv_cq.v;
    attr.srq                 = options.srq;
    attr.qp_type             = options.type;
    attr.sq_sig_all          = options.sig_all;
    attr.cap.max_send_wr     = options.send_wr;
    attr.cap.max_recv_wr     = (options.srq != nullptr) ? 0 : options.recv_wr;
    attr.cap.max_send_sge    = options.send_sge;
    attr.cap.max_recv_sge    = options.recv_sge;
    attr.cap.max_inline_data = options.inline_len;
    if (options.dv_ops != 0) {
        mlx5dv_qp_init_attr dv = {};

        attr.comp_mask     |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
        dv.comp_mask        = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
                              MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
        dv.send_ops_flags   = options.dv_ops;
        dv.create_flags     = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
                              options.dv_flags;
        v = mlx5dv_create_qp(c.ctx, &attr, &dv);
    } else {
        v = ibv_create_qp_ex(c.ctx, &attr);
    }
    REQUIRE(v != nullptr);
}

qp::~qp()
{
    destroy();
}

void qp::destroy()
{
    if (v != nullptr) {
        REQUIRE_EQ(0, ibv_destroy_qp(v));
        v = nullptr;
    }
}

address qp::addr(const memory *mem) const
{
    address a = {};

    a.qpn = v->qp_num;
    a.lid = c.lid;
    a.gid = c.gid;
    if (mem != nullptr) {
        a.rkey = mem->mr->rkey;
        a.addr = mem->addr();
    }
    return a;
}

void qp::to_init()
{
    ibv_qp_attr attr = {};
    int mask         = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    attr.qp_state        = IBV_QPS_INIT;
    attr.port_num        = c.port;
    attr.qkey            = default_qkey;
    attr.qp_access_flags = options.access;
    mask |= (options.type == IBV_QPT_UD) ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    REQUIRE_EQ(0, ibv_modify_qp(v, &attr, mask));
}

void qp::to_rtr(const address &peer)
{
    ibv_qp_attr attr = {};
    int mask         = IBV_QP_STATE;

    attr.qp_state           = IBV_QPS_RTR;
    attr.path_mtu           = options.mtu;
    attr.dest_qp_num        = peer.qpn;
    attr.rq_psn             = options.rq_psn;
    attr.max_dest_rd_atomic = options.max_dest_rd;
    attr.min_rnr_timer      = options.rnr_timer;
    attr.ah_attr            = options.path;
    attr.ah_attr.port_num   = c.port;
    attr.ah_attr.dlid       = peer.lid;
    if (c.is_roce) {
        attr.ah_attr.is_global     = 1;
        attr.ah_attr.grh.dgid      = peer.gid;
        if (options.path.grh.hop_limit == 0) {
            attr.ah_attr.grh.hop_limit = 64;
        }
    }
    if (options.type != IBV_QPT_UD) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (options.type == IBV_QPT_RC) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    REQUIRE_EQ(0, ibv_modify_qp(v, &attr, mask));
}

void qp::to_rts()
{
    ibv_qp_attr attr = {};
    int mask         = IBV_QP_STATE | IBV_QP_SQ_PSN;

    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = options.timeout;
    attr.retry_cnt     = options.retry_cnt;
    attr.rnr_retry     = options.rnr_retry;
    attr.sq_psn        = options.sq_psn;
    attr.max_rd_atomic = options.max_rd;
    if (options.type == IBV_QPT_RC) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
    }
    REQUIRE_EQ(0, ibv_modify_qp(v, &attr, mask));
}

void qp::connect(const address &peer)
{
    to_init();
    to_rtr(peer);
    to_rts();
}

void qp::to_state(ibv_qp_state state)
{
    ibv_qp_attr attr = {};

    attr.qp_state = state;
    REQUIRE_EQ(0, ibv_modify_qp(v, &attr, IBV_QP_STATE));
}

ibv_qp_state qp::state() const
{
    ibv_qp_init_attr init;
    ibv_qp_attr attr;

    REQUIRE_EQ(0, ibv_query_qp(v, &attr, IBV_QP_STATE, &init));
    return attr.qp_state;
}

int qp::try_send(ibv_send_wr &wr)
{
    ibv_send_wr *bad;

    return ibv_post_send(v, &wr, &bad);
}

void qp::send(ibv_send_wr &wr)
{
    REQUIRE_EQ(0, try_send(wr));
}

void qp::recv(uint64_t wr_id, const ibv_sge *sge, int num_sge)
{
    ibv_recv_wr wr = {}, *bad;

    wr.wr_id   = wr_id;
    wr.sg_list = (ibv_sge*)sge;
    wr.num_sge = num_sge;
    REQUIRE_EQ(0, ibv_post_recv(v, &wr, &bad));
}


send_wr::send_wr(ibv_wr_opcode op, uint64_t id,
                 const std::vector<ibv_sge> &list, unsigned flags) :
    ibv_send_wr(), elements(list)
{
    wr_id      = id;
    sg_list    = elements.data();
    num_sge    = elements.size();
    opcode     = op;
    send_flags = flags;
}

send_wr::send_wr(const send_wr &other) :
    ibv_send_wr(other), elements(other.elements)
{
    sg_list = elements.data();
}


srq::srq(context &c, unsigned num, unsigned sge, ibv_pd *pd)
{
    ibv_srq_init_attr attr = {};

    attr.attr.max_wr  = num;
    attr.attr.max_sge = sge;
    v = ibv_create_srq((pd != nullptr) ? pd : c.pd, &attr);
    REQUIRE(v != nullptr);
}

srq::~srq()
{
    REQUIRE_EQ(0, ibv_destroy_srq(v));
}

void srq::recv(uint64_t wr_id, const ibv_sge &sge)
{
    ibv_recv_wr wr = {}, *bad;

    wr.wr_id   = wr_id;
    wr.sg_list = (ibv_sge*)&sge;
    wr.num_sge = 1;
    REQUIRE_EQ(0, ibv_post_srq_recv(v, &wr, &bad));
}


void pattern::fill(void *buf, size_t length, uint64_t seed)
{
    uint8_t *bytes = (uint8_t*)buf;
    pattern p(seed);
    uint64_t value;
    size_t i;

    for (i = 0; i + 8 <= length; i += 8) {
        value = p.next();
        memcpy(bytes + i, &value, 8);
    }
    value = p.next();
    memcpy(bytes + i, &value, length - i);
}

size_t pattern::check(const void *buf, size_t length, uint64_t seed)
{
    const uint8_t *bytes = (const uint8_t*)buf;
    pattern p(seed);
    uint64_t value;
    size_t i, part, j;

    for (i = 0; i < length; i += part) {
        part  = (length - i < 8) ? length - i : 8;
        value = p.next();
        if (memcmp(bytes + i, &value, part) != 0) {
            for (j = 0; (j < part) && (bytes[i + j] ==
                                       ((uint8_t*)&value)[j]); ++j) {
            }
            if (j < part) {
                return i + j;
            } /* else it has just arrived */
        }
    }
    return length;
}


loop::loop(const qp_options &options, size_t mem_size, int cq_size) :
    mem(c, mem_size), peer_mem(c, mem_size), scq(c, cq_size), rcq(c, cq_size),
    peer_cq(c, cq_size), a(c, scq, rcq, options),
    b(c, peer_cq, peer_cq, options), to_b(b.addr(&peer_mem)), to_a(a.addr(&mem))
{
    a.to_init();
    b.to_init();
    a.to_rtr(to_b);
    b.to_rtr(to_a);
    a.to_rts();
    b.to_rts();
}

} // namespace device
