/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What both ends of a connection have to agree on: packet sequence numbers and
 * the path MTU. Whether they do is found out by the first packets that differ,
 * however work requests are executed.
 */

#include <device/device.h>

using namespace device;

namespace {

class test_device_psn : public device::test,
                        public ::testing::WithParamInterface<const char*> {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_EXEC", GetParam());
    }
};

/* Two QPs of one process, with options of their own */
struct pair {
    pair(const qp_options &a_options, const qp_options &b_options) :
        mem(c, 65536), peer_mem(c, 65536), scq(c, 256), peer_cq(c, 256),
        a(c, scq, scq, a_options), b(c, peer_cq, peer_cq, b_options),
        to_b(b.addr(&peer_mem))
    {
        address to_a = a.addr(&mem);

        a.to_init();
        b.to_init();
        a.to_rtr(to_b);
        b.to_rtr(to_a);
        a.to_rts();
        b.to_rts();
    }

    /* Status of one request of @a length bytes */
    ibv_wc_status one(ibv_wr_opcode op, uint32_t length)
    {
        send_wr wr(op, 1, {mem.sge(0, length)});

        a.send(wr.to(to_b));
        return scq.next().status;
    }

    context c;
    memory  mem, peer_mem;
    cq      scq, peer_cq;
    qp      a, b;
    address to_b;
};

qp_options impatient()
{
    qp_options options;

    options.timeout   = 8;  /* 1 ms */
    options.retry_cnt = 1;
    return options;
}

} // namespace

TEST_P(test_device_psn, any_first_number_will_do)
{
    run(1, [](rank&) {
        for (uint32_t psn : {0u, 1u, 0x7fffffu, 0x800000u, 0xffffffu}) {
            qp_options a, b;

            a.sq_psn = b.rq_psn = psn;
            b.sq_psn = a.rq_psn = psn ^ 0x123456;
            a.mtu    = b.mtu    = IBV_MTU_256;
            pair p(a, b);
            pattern::fill(p.mem.data, 2000, psn);
            /* across the end of the numbers, whatever kind of packet */
            for (unsigned i = 0; i < 3; ++i) {
                REQUIRE_EQ(IBV_WC_SUCCESS, p.one(IBV_WR_RDMA_WRITE, 2000));
                REQUIRE_EQ(2000, pattern::check(p.peer_mem.data, 2000, psn));
                REQUIRE_EQ(IBV_WC_SUCCESS, p.one(IBV_WR_RDMA_READ, 2000));
                p.b.recv(7, p.peer_mem.sge(4096, 2000));
                REQUIRE_EQ(IBV_WC_SUCCESS, p.one(IBV_WR_SEND, 2000));
                REQUIRE_EQ(7, p.peer_cq.good().wr_id);
            }
        }
    });
}

TEST_P(test_device_psn, those_that_differ_are_not_answered)
{
    run(1, [](rank&) {
        for (uint32_t psn : {1u, 0x7fffffu, 0x800001u, 0xffffffu}) {
            for (auto op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
                qp_options a = impatient(), b;

                a.sq_psn = 0x100;
                b.rq_psn = (a.sq_psn + psn) & 0xffffff;
                pair p(a, b);
                p.b.recv(7, p.peer_mem.sge(4096, 2000));
                p.peer_mem.data[0] = 0x55;
                REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, p.one(op, 100));
                REQUIRE_EQ(0x55, p.peer_mem.data[0]);
                REQUIRE_EQ(IBV_QPS_ERR, p.a.state());
                REQUIRE_EQ(IBV_QPS_RTS, p.b.state());
                p.peer_cq.empty();
            }
        }
    });
}

TEST_P(test_device_psn, a_peer_that_starts_anew_is_another_one)
{
    run(1, [](rank&) {
        qp_options options = impatient();
        pair p(options, options);

        REQUIRE_EQ(IBV_WC_SUCCESS, p.one(IBV_WR_RDMA_WRITE, 100));
        p.b.to_state(IBV_QPS_RESET);
        p.b.connect(p.a.addr());
        /* it expects number 0 again, and not 1 */
        REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, p.one(IBV_WR_RDMA_WRITE, 100));
    });
}

TEST_P(test_device_psn, mtus_that_differ_show_in_long_messages)
{
    run(1, [](rank&) {
        for (bool larger : {false, true}) {
            for (auto op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
                qp_options a, b;

                a.mtu = larger ? IBV_MTU_1024 : IBV_MTU_256;
                b.mtu = larger ? IBV_MTU_256 : IBV_MTU_1024;
                pair p(a, b);
                p.b.recv(7, p.peer_mem.sge(4096, 4096));
                p.b.recv(8, p.peer_mem.sge(4096, 4096));
                REQUIRE_EQ(IBV_WC_SUCCESS, p.one(op, 256));
                REQUIRE_EQ((op == IBV_WR_RDMA_READ) ? IBV_WC_BAD_RESP_ERR :
                                                      IBV_WC_REM_INV_REQ_ERR,
                           p.one(op, 257));
                REQUIRE_EQ(IBV_QPS_ERR, p.a.state());
                REQUIRE_EQ((op == IBV_WR_RDMA_READ) ? IBV_QPS_RTS : IBV_QPS_ERR,
                           p.b.state());
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(exec, test_device_psn,
                         ::testing::Values("sync", "deferred"),
                         [](const ::testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });
