/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Deferred execution: work requests are fetched, their payload read, packets
 * delivered and completions written later than the doorbell, and packets get
 * lost. What is ordered stays so, and what is not is seen in any order.
 *
 * Chance decides what happens in one run, so tests that wait for a thing to be
 * seen try until it is.
 */

#include "device_wqe.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

using namespace device;

namespace {

class test_device_deferred : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_EXEC", "deferred");
    }

    /* Messages of all kinds on a network that loses packets */
    void exchange(const qp_options &options, unsigned count);
};

/* Repeat until it is seen */
void until_seen(const std::function<bool()> &attempt)
{
    uint64_t end = now_ms() + patience_ms;

    while (!attempt()) {
        check_abort();
        if (now_ms() > end) {
            fail(__FILE__, __LINE__, "was not seen");
        }
    }
}

} // namespace

TEST_F(test_device_deferred, payload_is_read_late)
{
    run(1, [](rank&) {
        loop l(qp_options(), 1 << 18);

        until_seen([&]() {
            memset(l.mem.data, 'a', 1 << 18);
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 1 << 18)});
            l.a.send(wr.to(l.to_b));
            memset(l.mem.data, 'b', 1 << 18);
            l.scq.good();
            return memchr(l.peer_mem.data, 'b', 1 << 18) != nullptr;
        });
    });
}

TEST_F(test_device_deferred, completion_comes_after_the_data)
{
    run(1, [](rank&) {
        loop l;

        for (unsigned i = 1; i < 50; ++i) {
            pattern::fill(l.mem.data, 20000, i);
            send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 20000)});
            l.a.send(wr.to(l.to_b));
            REQUIRE_EQ(i, l.scq.good().wr_id);
            REQUIRE_EQ(20000, pattern::check(l.peer_mem.data, 20000, i));

            l.b.recv(i, l.peer_mem.sge(32768, 20000));
            send_wr msg(IBV_WR_SEND, i, {l.mem.sge(0, 20000)});
            l.a.send(msg);
            REQUIRE_EQ(i, l.peer_cq.good().wr_id);
            REQUIRE_EQ(20000, pattern::check(l.peer_mem.data + 32768, 20000,
                                             i));
            l.scq.good();
        }
    });
}

TEST_F(test_device_deferred, receiver_knows_before_the_sender)
{
    run(1, [](rank&) {
        loop l;
        ibv_wc wc;

        until_seen([&]() {
            l.b.recv(1, l.peer_mem.sge(0, 100));
            send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 100)});
            l.a.send(wr);
            l.peer_cq.good();
            bool is_late = !l.scq.poll(&wc);
            if (is_late) {
                l.scq.good();
            }
            return is_late;
        });
    });
}

TEST_F(test_device_deferred, queue_pairs_overtake_each_other)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        cq scq(c, 64), rcq(c, 64);
        qp a(c, scq, scq), b(c, scq, scq), to_a(c, rcq, rcq), to_b(c, rcq, rcq);

        a.connect(to_a.addr());
        to_a.connect(a.addr());
        b.connect(to_b.addr());
        to_b.connect(b.addr());
        until_seen([&]() {
            send_wr first(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)});
            send_wr second(IBV_WR_RDMA_WRITE, 2, {mem.sge(0, 8)});
            address to = to_a.addr(&mem);

            a.send(first.to(to));
            b.send(second.to(to));
            uint64_t id = scq.good().wr_id;
            scq.good();
            return id == 2;
        });
    });
}

TEST_F(test_device_deferred, messages_mix_packet_by_packet)
{
    run(1, [](rank&) {
        const size_t length = 1 << 18, mtu = 256;
        qp_options options;
        options.mtu = IBV_MTU_256;
        context c;
        memory from_a(c, length), from_b(c, length), target(c, length);
        cq scq(c, 64), rcq(c, 64);
        qp a(c, scq, scq, options), b(c, scq, scq, options);
        qp to_a(c, rcq, rcq, options), to_b(c, rcq, rcq, options);

        memset(from_a.data, 'a', length);
        memset(from_b.data, 'b', length);
        a.connect(to_a.addr());
        to_a.connect(a.addr());
        b.connect(to_b.addr());
        to_b.connect(b.addr());
        until_seen([&]() {
            send_wr first(IBV_WR_RDMA_WRITE, 1, {from_a.sge(0, length)});
            send_wr second(IBV_WR_RDMA_WRITE, 2, {from_b.sge(0, length)});
            address to      = to_a.addr(&target);
            unsigned from[] = {0, 0};

            a.send(first.to(to));
            b.send(second.to(to));
            scq.good();
            scq.good();
            /* a packet is of one of them */
            for (size_t i = 0; i < length; i += mtu) {
                uint8_t byte = target.data[i];

                REQUIRE((byte == 'a') || (byte == 'b'));
                REQUIRE_EQ(mtu, std::count(target.data + i,
                                           target.data + i + mtu, byte));
                ++from[byte - 'a'];
            }
            return (from[0] > 0) && (from[1] > 0);
        });
    });
}

TEST_F(test_device_deferred, order_in_a_queue_pair_is_kept)
{
    run(1, [](rank&) {
        qp_options options;
        options.mtu = IBV_MTU_256;
        loop l(options);

        /* of two writes to the same place the second one stays; a message that
         * follows tells of both; the read sees them */
        for (unsigned i = 0; i < 100; ++i) {
            memset(l.mem.data, 'x', 3000);
            memset(l.mem.data + 4096, i, 3000);
            l.b.recv(i, l.peer_mem.sge(8192, 100));
            send_wr first(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 3000)}, 0);
            send_wr second(IBV_WR_RDMA_WRITE, 2, {l.mem.sge(4096, 3000)}, 0);
            send_wr read(IBV_WR_RDMA_READ, 3, {l.mem.sge(16384, 3000)}, 0);
            send_wr msg(IBV_WR_SEND, 4, {l.mem.sge(0, 100)});
            first.next  = &second.to(l.to_b);
            second.next = &read.to(l.to_b);
            read.next   = &msg;
            l.a.send(first.to(l.to_b));
            REQUIRE_EQ(i, l.peer_cq.good().wr_id);
            for (unsigned k = 0; k < 3000; ++k) {
                REQUIRE_EQ((uint8_t)i, l.peer_mem.data[k]);
            }
            REQUIRE_EQ(4, l.scq.good().wr_id);
            for (unsigned k = 0; k < 3000; ++k) {
                REQUIRE_EQ((uint8_t)i, l.mem.data[16384 + k]);
            }
        }
    });
}

TEST_F(test_device_deferred, requests_are_as_many_as_allowed)
{
    run(1, [](rank&) {
        qp_options options;
        options.max_rd      = 2;
        options.max_dest_rd = 2;
        options.mtu         = IBV_MTU_256;
        loop l(options);

        for (unsigned i = 0; i < 300; ++i) {
            send_wr read(IBV_WR_RDMA_READ, i, {l.mem.sge(0, 600)});
            send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, i, {l.mem.sge(1024, 8)});

            if (i >= 60) {
                l.scq.good();
            }
            l.a.send((i & 1) ? read.to(l.to_b) :
                               add.atomic(l.to_b, 8192, 1));
        }
        for (unsigned i = 0; i < 60; ++i) {
            l.scq.good();
        }
        REQUIRE_EQ(150, *(uint64_t*)(l.peer_mem.data + 8192));
    });
}

TEST_F(test_device_deferred, requests_beyond_the_peers_limit_are_refused)
{
    run(1, [](rank&) {
        until_seen([]() {
            qp_options options;
            options.max_rd      = 16;
            options.max_dest_rd = 1;
            loop l(options);
            ibv_wc wc;

            for (unsigned i = 0; i < 40; ++i) {
                send_wr read(IBV_WR_RDMA_READ, i, {l.mem.sge(0, 600)});
                l.a.send(read.to(l.to_b));
            }
            for (unsigned i = 0; i < 40; ++i) {
                wc = l.scq.next();
                REQUIRE_EQ(i, wc.wr_id);
                if (wc.status == IBV_WC_REM_INV_REQ_ERR) {
                    REQUIRE_EQ(IBV_QPS_ERR, l.a.state());
                    REQUIRE_EQ(IBV_QPS_ERR, l.b.state());
                    return true;
                }
                REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
            }
            return false;
        });
    });
}

void test_device_deferred::exchange(const qp_options &options, unsigned count)
{
    run(2, [=](rank &r) {
        const size_t length = 3000, slots = 16;
        side s(r, options);
        uint64_t *counter = (uint64_t*)(s.mem.data + (1 << 19));

        if (r.index == 1) {
            for (size_t i = 0; i < slots; ++i) {
                s.q.recv(i, s.mem.sge(i * 4096, 4096));
            }
            r.barrier();
            /* each message once, in order and complete */
            for (unsigned i = 0; i < count; ++i) {
                ibv_wc wc = s.rcq.good();

                REQUIRE_EQ(i % slots, wc.wr_id);
                REQUIRE_EQ(length, wc.byte_len);
                REQUIRE_EQ(length, pattern::check(s.mem.data + wc.wr_id * 4096,
                                                  length, i));
                s.q.recv(wc.wr_id, s.mem.sge(wc.wr_id * 4096, 4096));
            }
            r.barrier();
            REQUIRE_EQ(count, *counter);
            s.rcq.empty();
            return;
        }

        r.barrier();
        for (unsigned i = 0; i < count; ++i) {
            uint64_t *old = (uint64_t*)(s.mem.data + 65536);

            pattern::fill(s.mem.data, length, i);
            send_wr msg(IBV_WR_SEND, 1, {s.mem.sge(0, length)}, 0);
            send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, {s.mem.sge(65536, 8)},
                        0);
            send_wr write(IBV_WR_RDMA_WRITE, 3, {s.mem.sge(0, length)}, 0);
            send_wr read(IBV_WR_RDMA_READ, 4, {s.mem.sge(131072, length)});
            msg.next   = &add.atomic(s.peer, 1 << 19, 1);
            add.next   = &write.to(s.peer, (1 << 19) + 4096);
            write.next = &read.to(s.peer, (1 << 19) + 4096);
            s.q.send(msg);
            REQUIRE_EQ(4, s.scq.good().wr_id);
            REQUIRE_EQ(i, *old);
            REQUIRE_EQ(length, pattern::check(s.mem.data + 131072, length, i));
        }
        r.barrier();
    });
}

TEST_F(test_device_deferred, what_is_lost_comes_again_and_takes_effect_once)
{
    qp_options options;

    options.mtu     = IBV_MTU_256;
    options.timeout = 20;
    for (const char *loss : {"10", "50", "100"}) {
        set_env("MLX5SIM_LOSS", loss);
        exchange(options, 60);
    }
}

TEST_F(test_device_deferred, all_lost_ends_in_retry_exceeded)
{
    set_env("MLX5SIM_LOSS", "1000");
    run(1, [](rank&) {
        qp_options options;
        options.retry_cnt = 3;
        loop l(options);

        for (unsigned i = 0; i < 3; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 10000)});
            l.a.send(wr.to(l.to_b));
        }
        REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, l.scq.next().status);
        REQUIRE_EQ(IBV_WC_WR_FLUSH_ERR, l.scq.next().status);
        REQUIRE_EQ(IBV_WC_WR_FLUSH_ERR, l.scq.next().status);
        REQUIRE_EQ(IBV_QPS_ERR, l.a.state());
        REQUIRE_EQ(IBV_QPS_RTS, l.b.state());
    });
}

TEST_F(test_device_deferred, datagrams_that_are_lost_complete)
{
    set_env("MLX5SIM_LOSS", "500");
    run(1, [](rank&) {
        qp_options options;
        options.type = IBV_QPT_UD;
        context c;
        memory mem(c, 65536);
        cq scq(c, 256), rcq(c, 256);
        qp a(c, scq, scq, options), b(c, rcq, rcq, options);
        unsigned count = 0;
        ibv_ah_attr path = {};
        ibv_wc wc;

        a.connect(b.addr());
        b.connect(a.addr());
        path.port_num = 1;
        path.dlid     = c.lid;
        ibv_ah *ah    = ibv_create_ah(c.pd, &path);
        REQUIRE(ah != nullptr);
        for (unsigned i = 0; i < 64; ++i) {
            b.recv(i, mem.sge(i * 256, 256));
        }
        for (unsigned i = 0; i < 60; ++i) {
            send_wr wr(IBV_WR_SEND, i, {mem.sge(32768, 100)});

            wr.wr.ud.ah          = ah;
            wr.wr.ud.remote_qpn  = b.v->qp_num;
            wr.wr.ud.remote_qkey = default_qkey;
            a.send(wr);
            REQUIRE_EQ(i, scq.good().wr_id);
        }
        while (rcq.poll(&wc)) {
            ++count;
        }
        REQUIRE((count > 5) && (count < 55));
        REQUIRE_EQ(0, ibv_destroy_ah(ah));
    });
}

TEST_F(test_device_deferred, blocks_used_again_without_a_completion_are_told_of)
{
    catch_errors();
    run(1, [](rank&) {
        loop l;
        raw_sq sq(l.a.v);

        /* nobody has said that any of them is finished */
        for (unsigned i = 0; i <= sq.dv.sq.wqe_cnt; ++i) {
            raw_wqe nop(sq, MLX5_OPCODE_NOP);

            if (i < sq.dv.sq.wqe_cnt) {
                nop.ctrl()->fm_ce_se = 0;
            }
            nop.post();
        }
    });

    std::vector<std::string> lines = take_violations();
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(0u, lines[0].find("sq_reused")) << lines[0];
}

TEST_F(test_device_deferred, work_requests_that_change_under_way_are_told_of)
{
    catch_errors();
    start(0, 1, [](rank &r) {
        qp_options options;
        options.rnr_timer = 14; /* 10 ms */
        loop l(options);
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_SEND);

        w.inl("first", 6);
        w.post();
        r.word(1) = 1;
        /* there is no receive: the request was fetched and has to wait */
        r.wait_word(0, 1);
        memcpy(sq.block(0) + 20, "other", 5);
        l.b.recv(1, l.peer_mem.sge(0, 100));
        l.peer_cq.good();
        REQUIRE_EQ(0, memcmp(l.peer_mem.data, "other", 6));
        l.scq.good();
    });
    for (uint64_t end = now_ms() + patience_ms;
         ((word(1) == 0) || (stat_total("rnr_waits") == 0)) &&
         (now_ms() < end);) {
        usleep(1000);
    }
    word(0) = 1;
    finish_all();

    std::vector<std::string> lines = take_violations();
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(0u, lines[0].find("sq_reused")) << lines[0];
}
