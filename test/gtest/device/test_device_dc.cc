/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The dynamically connected transport: initiators (DCI), which name the target
 * (DCT) in each work request, and targets, which any initiator with their key
 * reaches.
 */

#include <device/device.h>

#include <common/seed.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <infiniband/mlx5dv.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

const uint64_t key = 0x1122334455667788ul;

/* Where initiators find a target */
struct target_address {
    uint32_t dctn;
    uint16_t lid;
    ibv_gid  gid;
    uint32_t rkey;
    uint64_t addr;
};

ibv_qp *make_dc(context &c, ibv_cq *scq, ibv_cq *rcq, ibv_srq *srq,
                mlx5dv_dc_type type, unsigned recv_wr = 0,
                uint64_t flags = IBV_QP_EX_WITH_SEND |
                                 IBV_QP_EX_WITH_SEND_WITH_IMM |
                                 IBV_QP_EX_WITH_RDMA_WRITE |
                                 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                 IBV_QP_EX_WITH_RDMA_READ |
                                 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
                const mlx5dv_dci_streams *streams = nullptr)
{
    ibv_qp_init_attr_ex attr = {};
    mlx5dv_qp_init_attr dv   = {};

    attr.send_cq   = scq;
    attr.recv_cq   = rcq;
    attr.srq       = srq;
    attr.qp_type   = IBV_QPT_DRIVER;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.pd        = c.pd;
    if (type == MLX5DV_DCTYPE_DCI) {
        attr.cap.max_send_wr     = 64;
        attr.cap.max_send_sge    = 2;
        attr.cap.max_inline_data = 64;
        attr.cap.max_recv_wr     = recv_wr;
        attr.cap.max_recv_sge    = recv_wr > 0;
        attr.comp_mask          |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.send_ops_flags      = flags;
    }
    dv.comp_mask                   = MLX5DV_QP_INIT_ATTR_MASK_DC;
    dv.dc_init_attr.dc_type        = type;
    dv.dc_init_attr.dct_access_key = (type == MLX5DV_DCTYPE_DCT) ? key : 0;
    if (streams != nullptr) {
        dv.comp_mask               |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
        dv.dc_init_attr.dci_streams = *streams;
    }
    return mlx5dv_create_qp(c.ctx, &attr, &dv);
}

/* A target with its memory and receives */
struct target {
    target(context &c, unsigned receives = 32, size_t size = 65536,
           unsigned access = all_access & ~IBV_ACCESS_LOCAL_WRITE) :
        c(c), mem(c, size), recvs(c, 65536), s(c, 64), rcq(c, 256)
    {
        ibv_qp_attr attr = {};

        memset(mem.data, 0x77, size);
        v = make_dc(c, rcq.v, rcq.v, s.v, MLX5DV_DCTYPE_DCT);
        REQUIRE(v != nullptr);
        attr.qp_state        = IBV_QPS_INIT;
        attr.port_num        = 1;
        attr.qp_access_flags = access;
        REQUIRE_EQ(0, ibv_modify_qp(v, &attr, init_mask));
        attr.qp_state          = IBV_QPS_RTR;
        attr.min_rnr_timer     = 1;
        attr.path_mtu          = IBV_MTU_1024;
        attr.ah_attr.port_num  = 1;
        attr.ah_attr.is_global = 1;
        REQUIRE_EQ(0, ibv_modify_qp(v, &attr, rtr_mask));
        for (unsigned i = 0; i < receives; ++i) {
            recv(i);
        }
    }

    ~target()
    {
        REQUIRE_EQ(0, ibv_destroy_qp(v));
    }

    void recv(unsigned i)
    {
        s.recv(i, recvs.sge(i * 1024, 1024));
    }

    target_address addr() const
    {
        target_address a = {};
        ibv_port_attr port;

        REQUIRE_EQ(0, ibv_query_port(c.ctx, 1, &port));
        REQUIRE_EQ(0, ibv_query_gid(c.ctx, 1, 0, &a.gid));
        a.dctn = v->qp_num;
        a.lid  = port.lid;
        a.rkey = mem.mr->rkey;
        a.addr = mem.addr();
        return a;
    }

    static const int init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                 IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    static const int rtr_mask  = IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER |
                                 IBV_QP_AV | IBV_QP_PATH_MTU;

    context &c;
    memory  mem;
    memory  recvs;
    srq     s;
    cq      rcq;
    ibv_qp  *v;
};

/* An initiator with its memory */
struct initiator {
    explicit initiator(context &c, unsigned timeout = 18, unsigned retries = 7,
                       unsigned rnr_retries = 7,
                       const mlx5dv_dci_streams *streams = nullptr) :
        c(c), mem(c, 65536), scq(c, 256), timeout(timeout), retries(retries),
        rnr_retries(rnr_retries)
    {
        v = make_dc(c, scq.v, scq.v, nullptr, MLX5DV_DCTYPE_DCI, 0,
                    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                    IBV_QP_EX_WITH_RDMA_WRITE |
                    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                    IBV_QP_EX_WITH_RDMA_READ |
                    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, streams);
        REQUIRE(v != nullptr);
        ex  = ibv_qp_to_qp_ex(v);
        dv  = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
        connect();
    }

    ~initiator()
    {
        if (ah != nullptr) {
            ibv_destroy_ah(ah);
        }
        REQUIRE_EQ(0, ibv_destroy_qp(v));
    }

    void modify(ibv_qp_state state, int mask)
    {
        ibv_qp_attr attr = {};

        attr.qp_state      = state;
        attr.port_num      = 1;
        attr.path_mtu      = IBV_MTU_1024;
        attr.timeout       = timeout;
        attr.retry_cnt     = retries;
        attr.rnr_retry     = rnr_retries;
        attr.max_rd_atomic = 16;
        REQUIRE_EQ(0, ibv_modify_qp(v, &attr, IBV_QP_STATE | mask));
    }

    void connect()
    {
        modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT);
        modify(IBV_QPS_RTR, IBV_QP_PATH_MTU);
        modify(IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
                            IBV_QP_SQ_PSN);
    }

    /* As UCX does behind an error */
    void restart()
    {
        modify(IBV_QPS_RESET, 0);
        connect();
    }

    ibv_qp_state state()
    {
        ibv_qp_init_attr init;
        ibv_qp_attr attr;

        REQUIRE_EQ(0, ibv_query_qp(v, &attr, IBV_QP_STATE, &init));
        return attr.qp_state;
    }

    /* Begin a work request; its operation and address follow */
    void begin(uint64_t id, const target_address &to)
    {
        ibv_ah_attr attr = {};

        attr.port_num      = 1;
        attr.dlid          = to.lid;
        attr.is_global     = 1;
        attr.grh.dgid      = to.gid;
        attr.grh.hop_limit = 64;
        if (ah != nullptr) {
            ibv_destroy_ah(ah);
        }
        ah = ibv_create_ah(c.pd, &attr);
        REQUIRE(ah != nullptr);
        ibv_wr_start(ex);
        ex->wr_id    = id;
        ex->wr_flags = IBV_SEND_SIGNALED;
    }

    void end(const target_address &to, size_t offset, size_t length,
             uint64_t dc_key = key, uint32_t lkey_diff = 0)
    {
        mlx5dv_wr_set_dc_addr(dv, ah, to.dctn, dc_key);
        ibv_wr_set_sge(ex, mem.mr->lkey + lkey_diff, mem.addr(offset), length);
        REQUIRE_EQ(0, ibv_wr_complete(ex));
    }

    void write(uint64_t id, const target_address &to, size_t offset,
               size_t length, uint64_t dc_key = key)
    {
        begin(id, to);
        ibv_wr_rdma_write(ex, to.rkey, to.addr + offset);
        end(to, offset, length, dc_key);
    }

    void send(uint64_t id, const target_address &to, size_t length,
              uint64_t dc_key = key)
    {
        begin(id, to);
        ibv_wr_send_imm(ex, htobe32(id));
        end(to, 0, length, dc_key);
    }

    /* 8 bytes on a stream; one that fails has a wrong remote key */
    void stream(uint64_t id, const target_address &to, uint16_t stream,
                int fails = 0)
    {
        begin(id, to);
        ibv_wr_rdma_write(ex, to.rkey + fails, to.addr);
        mlx5dv_wr_set_dc_addr_stream(dv, ah, to.dctn, key, stream);
        ibv_wr_set_sge(ex, mem.mr->lkey, mem.addr(), 8);
        REQUIRE_EQ(0, ibv_wr_complete(ex));
    }

    void expect(uint64_t id, ibv_wc_status status)
    {
        ibv_wc wc = scq.next();

        REQUIRE_EQ(id, wc.wr_id);
        REQUIRE_EQ(status, wc.status);
    }

    context       &c;
    memory        mem;
    cq            scq;
    unsigned      timeout, retries, rnr_retries;
    ibv_ah        *ah = nullptr;
    ibv_qp        *v;
    ibv_qp_ex     *ex;
    mlx5dv_qp_ex  *dv;
};


class test_device_dc : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DC", "y");
    }

    /* All operations, from rank 0 to a target of rank 1 */
    void operations()
    {
        run(2, [](rank &r) {
            context c;

            if (r.index == 1) {
                target t(c);

                r.publish(t.addr());
                ibv_wc wc = t.rcq.good();
                REQUIRE_EQ(IBV_WC_RECV, wc.opcode);
                REQUIRE_EQ(600, wc.byte_len);
                REQUIRE_EQ(600, pattern::check(t.recvs.data + wc.wr_id * 1024,
                                               600, 1));
                wc = t.rcq.good();
                REQUIRE_EQ(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
                REQUIRE_EQ(htobe32(42), wc.imm_data);
                r.barrier();
                REQUIRE_EQ(5000, pattern::check(t.mem.data + 1000, 5000, 2));
                REQUIRE_EQ(0x77, t.mem.data[999]);
                REQUIRE_EQ(0x77, t.mem.data[6000]);
                REQUIRE_EQ(112, *(uint64_t*)(t.mem.data + 8192));
                return;
            }

            initiator i(c);
            target_address to = r.lookup<target_address>(1);

            pattern::fill(i.mem.data, 600, 1);
            i.send(1, to, 600);
            i.expect(1, IBV_WC_SUCCESS);

            pattern::fill(i.mem.data + 1000, 5000, 2);
            i.begin(2, to);
            ibv_wr_rdma_write_imm(i.ex, to.rkey, to.addr + 1000, htobe32(42));
            i.end(to, 1000, 5000);
            i.expect(2, IBV_WC_SUCCESS);

            i.begin(3, to);
            ibv_wr_rdma_read(i.ex, to.rkey, to.addr + 1000);
            i.end(to, 20000, 5000);
            i.expect(3, IBV_WC_SUCCESS);
            REQUIRE_EQ(5000, pattern::check(i.mem.data + 20000, 5000, 2));

            *(uint64_t*)i.mem.data = 100;
            i.begin(4, to);
            ibv_wr_rdma_write(i.ex, to.rkey, to.addr + 8192);
            i.end(to, 0, 8);
            i.begin(5, to);
            ibv_wr_atomic_fetch_add(i.ex, to.rkey, to.addr + 8192, 11);
            i.end(to, 8, 8);
            i.begin(6, to);
            ibv_wr_atomic_cmp_swp(i.ex, to.rkey, to.addr + 8192, 111, 112);
            i.end(to, 16, 8);
            for (uint64_t id = 4; id <= 6; ++id) {
                i.expect(id, IBV_WC_SUCCESS);
            }
            REQUIRE_EQ(100, *(uint64_t*)(i.mem.data + 8));
            REQUIRE_EQ(111, *(uint64_t*)(i.mem.data + 16));
            r.barrier();
        });
    }

    /* A request of an initiator fails, what is behind it is flushed, and the
     * target serves the next one, also of the same initiator */
    void failure(ibv_wc_status status,
                 const std::function<void(initiator&, target&)> &post,
                 unsigned receives = 8, unsigned rnr_retries = 7,
                 unsigned access = all_access & ~IBV_ACCESS_LOCAL_WRITE)
    {
        run(1, [&](rank&) {
            context c;
            target t(c, receives, 65536, access), other(c);
            initiator i(c, 8, 1, rnr_retries);

            post(i, t);
            i.write(2, other.addr(), 0, 8);
            i.expect(1, status);
            i.expect(2, IBV_WC_WR_FLUSH_ERR);
            REQUIRE_EQ(IBV_QPS_ERR, i.state());
            REQUIRE_EQ(0x77, other.mem.data[0]);
            REQUIRE_EQ(0x77, t.mem.data[0]);

            i.restart();
            t.recv(31);
            i.send(3, t.addr(), 16);
            i.expect(3, IBV_WC_SUCCESS);
        });
    }
};

} // namespace


TEST_F(test_device_dc, is_refused_unless_it_is_switched_on)
{
    set_env("MLX5SIM_DC", "n");
    run(1, [](rank&) {
        context c;
        cq q(c, 16);
        srq s(c, 16);

        errno = 0;
        REQUIRE(make_dc(c, q.v, q.v, s.v, MLX5DV_DCTYPE_DCT) == nullptr);
        REQUIRE_EQ(EOPNOTSUPP, errno);
    });
}

TEST_F(test_device_dc, objects_are_made_as_the_kernel_does)
{
    run(1, [](rank&) {
        ibv_qp_init_attr init;
        ibv_qp_attr attr = {};
        context c;
        cq q(c, 16);
        srq s(c, 16);

        /* a target needs an SRQ, an initiator has no receives */
        REQUIRE(make_dc(c, q.v, q.v, nullptr, MLX5DV_DCTYPE_DCT) == nullptr);
        REQUIRE(make_dc(c, q.v, q.v, nullptr, MLX5DV_DCTYPE_DCI, 8) == nullptr);

        ibv_qp *dct = make_dc(c, q.v, q.v, s.v, MLX5DV_DCTYPE_DCT);
        REQUIRE(dct != nullptr);
        REQUIRE_EQ(0, dct->qp_num);
        REQUIRE_EQ(EBUSY, ibv_destroy_srq(s.v));
        attr.qp_state        = IBV_QPS_INIT;
        attr.port_num        = 1;
        attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
        REQUIRE_EQ(EINVAL, ibv_modify_qp(dct, &attr, target::init_mask &
                                                     ~IBV_QP_ACCESS_FLAGS));
        REQUIRE_EQ(EINVAL, ibv_modify_qp(dct, &attr, target::init_mask &
                                                     ~IBV_QP_STATE));
        REQUIRE_EQ(0, ibv_modify_qp(dct, &attr, target::init_mask));
        /* only in RTR there is something to query */
        REQUIRE_EQ(EINVAL, ibv_query_qp(dct, &attr, IBV_QP_STATE, &init));
        attr.qp_state              = IBV_QPS_RTR;
        attr.min_rnr_timer         = 5;
        attr.path_mtu              = IBV_MTU_2048;
        attr.ah_attr.port_num      = 1;
        attr.ah_attr.is_global     = 1;
        attr.ah_attr.grh.hop_limit = 7;
        REQUIRE_EQ(0, ibv_modify_qp(dct, &attr, target::rtr_mask));
        REQUIRE(dct->qp_num != 0);
        memset(&attr, 0, sizeof(attr));
        REQUIRE_EQ(0, ibv_query_qp(dct, &attr, IBV_QP_STATE |
                                   IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
                                   IBV_QP_AV | IBV_QP_PATH_MTU, &init));
        REQUIRE_EQ(IBV_QPS_RTR, attr.qp_state);
        REQUIRE_EQ(IBV_ACCESS_REMOTE_READ, attr.qp_access_flags);
        REQUIRE_EQ(5, attr.min_rnr_timer);
        REQUIRE_EQ(IBV_MTU_2048, attr.path_mtu);
        REQUIRE_EQ(7, attr.ah_attr.grh.hop_limit);
        REQUIRE_EQ(EINVAL, ibv_query_qp(dct, &attr, IBV_QP_TIMEOUT, &init));
        /* and nowhere to go */
        for (int state : {IBV_QPS_RESET, IBV_QPS_RTS, IBV_QPS_ERR}) {
            attr.qp_state = (ibv_qp_state)state;
            REQUIRE_EQ(EINVAL, ibv_modify_qp(dct, &attr, IBV_QP_STATE));
        }
        REQUIRE_EQ(0, ibv_destroy_qp(dct));

        ibv_qp *dci = make_dc(c, q.v, q.v, nullptr, MLX5DV_DCTYPE_DCI);
        REQUIRE(dci != nullptr);
        REQUIRE(dci->qp_num != 0);
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        /* an initiator does not say what others may do */
        REQUIRE_EQ(EINVAL, ibv_modify_qp(dci, &attr, target::init_mask));
        REQUIRE_EQ(0, ibv_modify_qp(dci, &attr, IBV_QP_STATE |
                                    IBV_QP_PKEY_INDEX | IBV_QP_PORT));
        attr.qp_state = IBV_QPS_RTR;
        REQUIRE_EQ(EINVAL, ibv_modify_qp(dci, &attr, IBV_QP_STATE));
        REQUIRE_EQ(0, ibv_destroy_qp(dci));
    });
    /* transitions that the device reports, too */
    EXPECT_FALSE(take_violations().empty());
}

TEST_F(test_device_dc, operations_on_roce)
{
    set_env("MLX5SIM_LINK", "roce");
    operations();
}

TEST_F(test_device_dc, operations_on_infiniband)
{
    set_env("MLX5SIM_LINK", "ib");
    operations();
}

TEST_F(test_device_dc, are_named_in_the_statistics)
{
    start(0, 2, [](rank &r) {
        context c;
        target t(c);
        initiator i(c);

        r.barrier();
        r.wait_word(0, 1);
    });
    start(1, 2, [&](rank &r) {
        std::string json;

        r.barrier();
        json = stat_json();
        REQUIRE(json.find("\"DCI\"") != std::string::npos);
        REQUIRE(json.find("\"DCT\"") != std::string::npos);
        r.word(0) = 1;
    });
    finish_all();
}

TEST_F(test_device_dc, one_initiator_reaches_many_targets)
{
    const int ranks = 5;

    run(ranks, [](rank &r) {
        context c;
        target t(c);
        initiator i(c);
        std::vector<target_address> to;

        r.publish(t.addr());
        r.barrier();
        for (int k = 0; k < r.count; ++k) {
            to.push_back(r.lookup<target_address>(k));
        }
        for (int n = 0; n < 4; ++n) {
            for (int k = 0; k < r.count; ++k) {
                *(uint32_t*)(i.mem.data + 1024 * r.index) = r.index;
                i.write(n * r.count + k, to[k], 1024 * r.index, 1024);
                i.send(1000, to[k], 8);
            }
            for (int k = 0; k < r.count; ++k) {
                i.expect(n * r.count + k, IBV_WC_SUCCESS);
                i.expect(1000, IBV_WC_SUCCESS);
            }
        }
        for (int k = 0; k < 4 * r.count; ++k) {
            ibv_wc wc = t.rcq.good();
            t.recv(wc.wr_id);
        }
        t.rcq.empty();
        r.barrier();
        for (int k = 0; k < r.count; ++k) {
            REQUIRE_EQ(k, *(uint32_t*)(t.mem.data + 1024 * k));
        }
        r.barrier();
    });
}

TEST_F(test_device_dc, wrong_access_key_is_not_answered)
{
    failure(IBV_WC_RETRY_EXC_ERR, [](initiator &i, target &t) {
        i.write(1, t.addr(), 0, 8, key ^ (1ul << 63));
    });
}

TEST_F(test_device_dc, wrong_access_key_delivers_no_message)
{
    failure(IBV_WC_RETRY_EXC_ERR, [](initiator &i, target &t) {
        i.send(1, t.addr(), 8, key + 1);
        usleep(20000);
        t.rcq.empty();
    });
}

TEST_F(test_device_dc, initiator_is_no_target)
{
    failure(IBV_WC_RETRY_EXC_ERR, [](initiator &i, target &t) {
        target_address to = t.addr();

        to.dctn = i.v->qp_num;
        i.write(1, to, 0, 8, 0);
    });
}

TEST_F(test_device_dc, rc_queue_pair_is_no_target)
{
    run(1, [](rank&) {
        loop l;
        target t(l.c);
        initiator i(l.c, 8, 1);
        target_address to = t.addr();

        memset(l.peer_mem.data, 0x77, 64);
        to.dctn = l.b.v->qp_num;
        to.rkey = l.to_b.rkey;
        to.addr = l.to_b.addr;
        i.write(1, to, 0, 8);
        i.expect(1, IBV_WC_RETRY_EXC_ERR);
        REQUIRE_EQ(0x77, l.peer_mem.data[0]);
        REQUIRE_EQ(IBV_QPS_RTS, l.b.state());
    });
}

TEST_F(test_device_dc, remote_key_is_checked)
{
    failure(IBV_WC_REM_ACCESS_ERR, [](initiator &i, target &t) {
        target_address to = t.addr();

        to.rkey += 1;
        i.write(1, to, 0, 8);
    });
}

TEST_F(test_device_dc, access_of_the_target_is_checked)
{
    failure(IBV_WC_REM_INV_REQ_ERR, [](initiator &i, target &t) {
        i.write(1, t.addr(), 0, 8);
    }, 8, 7, IBV_ACCESS_REMOTE_READ);
}

TEST_F(test_device_dc, local_key_is_checked)
{
    failure(IBV_WC_LOC_PROT_ERR, [](initiator &i, target &t) {
        i.begin(1, t.addr());
        ibv_wr_rdma_write(i.ex, t.addr().rkey, t.addr().addr);
        i.end(t.addr(), 0, 8, key, 1);
    });
}

TEST_F(test_device_dc, target_without_receives_is_retried)
{
    failure(IBV_WC_RNR_RETRY_EXC_ERR, [](initiator &i, target &t) {
        i.send(1, t.addr(), 8);
    }, 0, 2);
}

TEST_F(test_device_dc, long_message_fails_on_both_sides)
{
    failure(IBV_WC_REM_INV_REQ_ERR, [](initiator &i, target &t) {
        i.send(1, t.addr(), 2000);
        REQUIRE_EQ(IBV_WC_LOC_LEN_ERR, t.rcq.next().status);
    });
}

TEST_F(test_device_dc, killed_target_is_retried_as_long_as_the_values_say)
{
    set_env("MLX5SIM_GONE_AFTER", "60000");
    start(0, 2, [](rank &r) {
        context c;
        initiator i(c, 14, 2); /* 67 ms, times 3 */
        target_address to = r.lookup<target_address>(1);

        r.barrier();
        r.word(1) = 1;
        r.wait_word(0, 1);
        uint64_t begin = now_ms();
        i.write(1, to, 0, 8);
        i.expect(1, IBV_WC_RETRY_EXC_ERR);
        REQUIRE(now_ms() - begin >= 150);
        REQUIRE_EQ(IBV_QPS_ERR, i.state());
        i.restart();
        target t(c);
        i.write(2, t.addr(), 0, 8);
        i.expect(2, IBV_WC_SUCCESS);
    });
    start(1, 2, [](rank &r) {
        context c;
        target t(c);

        r.publish(t.addr());
        r.barrier();
        pause();
    });
    while (word(1) == 0) {
        usleep(1000);
    }
    kill(1);
    EXPECT_EQ(SIGKILL, finish(1));
    word(0) = 1;
    EXPECT_EQ(0, finish(0));
}

TEST_F(test_device_dc, capabilities_tell_of_streams)
{
    for (const char *dc : {"n", "y"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + dc);
        set_env("MLX5SIM_DC", dc);
        run(1, [=](rank&) {
            mlx5dv_context attr = {};
            unsigned has        = *dc == 'y';
            context c;

            attr.comp_mask = MLX5DV_CONTEXT_MASK_DCI_STREAMS;
            REQUIRE_EQ(0, mlx5dv_query_device(c.ctx, &attr));
            REQUIRE_EQ(8 * has, attr.dci_streams_caps.max_log_num_concurent);
            REQUIRE_EQ(4 * has, attr.dci_streams_caps.max_log_num_errored);
        });
    }
}

/* Only the requests of the stream in error are flushed, until it is reset or
 * too many streams are in error */
TEST_F(test_device_dc, error_of_a_stream_concerns_it_alone)
{
    set_env("MLX5SIM_DEVX", "y");
    run(1, [](rank&) {
        const mlx5dv_dci_streams streams = {1, 2};
        context c;
        target t(c);
        initiator i(c, 18, 7, 7, &streams);
        target_address to = t.addr();

        REQUIRE(mlx5dv_dci_stream_id_reset(i.v, 1) != 0); /* is not in error */
        i.stream(1, to, 1);
        i.stream(2, to, 1, 1);
        i.stream(3, to, 65535);
        i.stream(4, to, 1);
        i.stream(5, to, 65535);
        i.expect(1, IBV_WC_SUCCESS);
        i.expect(2, IBV_WC_REM_ACCESS_ERR);
        i.expect(3, IBV_WC_SUCCESS);
        i.expect(4, IBV_WC_WR_FLUSH_ERR);
        i.expect(5, IBV_WC_SUCCESS);
        REQUIRE_EQ(IBV_QPS_RTS, i.state());

        /* two more */
        i.stream(6, to, 2, 1);
        i.stream(7, to, 65535, 1);
        i.stream(8, to, 2, 1);
        i.stream(9, to, 0);
        i.expect(6, IBV_WC_REM_ACCESS_ERR);
        i.expect(7, IBV_WC_REM_ACCESS_ERR);
        i.expect(8, IBV_WC_WR_FLUSH_ERR);
        i.expect(9, IBV_WC_SUCCESS);

        /* and one is well again, once */
        REQUIRE_EQ(0, mlx5dv_dci_stream_id_reset(i.v, 2));
        REQUIRE(mlx5dv_dci_stream_id_reset(i.v, 2) != 0);
        i.stream(10, to, 2);
        i.stream(11, to, 1);
        i.expect(10, IBV_WC_SUCCESS);
        i.expect(11, IBV_WC_WR_FLUSH_ERR);

        /* the third, and the fourth, which is one too many */
        i.stream(12, to, 3, 1);
        i.stream(13, to, 4);
        i.stream(14, to, 4, 1);
        i.stream(15, to, 5);
        i.expect(12, IBV_WC_REM_ACCESS_ERR);
        i.expect(13, IBV_WC_SUCCESS);
        i.expect(14, IBV_WC_REM_ACCESS_ERR);
        i.expect(15, IBV_WC_WR_FLUSH_ERR);
        REQUIRE_EQ(IBV_QPS_ERR, i.state());

        /* nothing of it is left */
        i.restart();
        for (unsigned s = 0; s < 5; ++s) {
            i.stream(20 + s, to, s);
            i.expect(20 + s, IBV_WC_SUCCESS);
        }
    });
}

TEST_F(test_device_dc, stream_whose_target_is_not_there_lets_others_go_on)
{
    for (const char *seed : {"1", "2", "3", ""}) {
        set_env("MLX5SIM_DIR", dir() + "/s" + seed);
        set_env("MLX5SIM_GONE_AFTER", "10");
        if (*seed != '\0') {
            set_env("MLX5SIM_EXEC", "deferred");
            set_env("MLX5SIM_SEED", seed);
        } else {
            set_env("MLX5SIM_EXEC", "sync");
        }
        run(1, [](rank&) {
            const mlx5dv_dci_streams streams = {3, 3};
            context c;
            target t(c, 0);
            initiator i(c, 8, 1, 0, &streams);
            target_address to = t.addr(), nobody = to;

            nobody.dctn = i.v->qp_num;
            for (unsigned round = 0; round < 6; ++round) {
                i.stream(0, nobody, round);
                i.stream(1, to, 100);
                i.stream(2, to, round);
                i.stream(3, to, 100);
                i.expect(0, IBV_WC_RETRY_EXC_ERR);
                i.expect(1, IBV_WC_SUCCESS);
                i.expect(2, IBV_WC_WR_FLUSH_ERR);
                i.expect(3, IBV_WC_SUCCESS);
            }
            i.send(4, to, 8); /* stream 0 is in error */
            i.expect(4, IBV_WC_WR_FLUSH_ERR);
            REQUIRE_EQ(IBV_QPS_RTS, i.state());
        });
    }
}

/* By the key of all memory, of which some comes later and goes again */
TEST_F(test_device_dc, on_demand_paging)
{
    set_env("MLX5SIM_DEVX", "y");
    set_env("MLX5SIM_ODP", "y");
    run(1, [](rank&) {
        const size_t size   = 16384;
        mlx5dv_context attr = {};
        context c;
        target t(c, 0);
        initiator i(c);

        attr.comp_mask = MLX5DV_CONTEXT_MASK_DC_ODP_CAPS;
        REQUIRE_EQ(0, mlx5dv_query_device(c.ctx, &attr));
        REQUIRE_EQ(0x3d, attr.dc_odp_caps);

        ibv_mr *all = ibv_reg_mr(c.pd, nullptr, SIZE_MAX,
                                 all_access | IBV_ACCESS_ON_DEMAND);
        REQUIRE(all != nullptr);
        auto *later = (uint8_t*)mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(later != MAP_FAILED);
        target_address to = t.addr();
        to.rkey           = all->rkey;
        to.addr           = (uintptr_t)later;
        unsigned diff     = all->lkey - i.mem.mr->lkey;

        pattern::fill(i.mem.data, 5000, 1);
        i.begin(1, to);
        ibv_wr_rdma_write(i.ex, to.rkey, to.addr);
        i.end(to, 0, 5000, key, diff);
        i.expect(1, IBV_WC_SUCCESS);
        REQUIRE_EQ(5000, pattern::check(later, 5000, 1));

        t.s.recv(0, {(uintptr_t)later + 8192, 1024, all->lkey});
        i.begin(2, to);
        ibv_wr_send(i.ex);
        i.end(to, 0, 600, key, diff);
        i.expect(2, IBV_WC_SUCCESS);
        (void)t.rcq.good();
        REQUIRE_EQ(600, pattern::check(later + 8192, 600, 1));

        REQUIRE_EQ(0, munmap(later, size));
        i.begin(3, to);
        ibv_wr_rdma_read(i.ex, to.rkey, to.addr);
        i.end(to, 0, 8);
        i.expect(3, IBV_WC_REM_ACCESS_ERR);
        REQUIRE_EQ(0, ibv_dereg_mr(all));
    });
}

TEST_F(test_device_dc, fuzz_of_numbers_and_keys)
{
    run(1, [](rank&) {
        pattern random(seed::get());
        context c;
        target t(c);
        initiator i(c, 1, 0, 0); /* 8 us */
        target_address right = t.addr();

        for (unsigned n = 0; n < seed::cases(300); ++n) {
            target_address to = right;
            uint64_t with     = key;
            bool is_right     = false;

            switch (random.below(5)) {
            case 0:
                with ^= 1ul << random.below(64);
                break;
            case 1:
                to.dctn ^= 1u << random.below(24);
                break;
            case 2:
                with    = random.next();
                to.dctn = random.below(1 << 24);
                break;
            case 3:
                to.gid.raw[random.below(16)] ^= 1 + random.below(255);
                to.lid = 0;
                break;
            default:
                is_right = true;
                break;
            }
            if ((random.below(2) != 0) && !is_right) {
                i.send(n, to, random.below(900), with);
            } else {
                i.mem.data[64] = n;
                i.write(n, to, 64, 1 + random.below(900), with);
            }
            i.expect(n, is_right ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
            if (is_right) {
                REQUIRE_EQ((uint8_t)n, t.mem.data[64]);
                t.mem.data[64] = 0x77;
            } else {
                i.restart();
            }
            REQUIRE_EQ(is_right ? 0x77 : t.mem.data[64], t.mem.data[64]);
        }
        t.rcq.empty();
    });
}
