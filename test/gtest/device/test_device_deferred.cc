/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Deferred execution: work requests are fetched, their payload read, packets
 * delivered and completions written later than the doorbell, and packets get
 * lost. What is ordered stays so, and what is not is seen in any order.
 *
 * Chance decides what happens in one run, so tests that wait for a thing to be
 * seen try until it is.
 */

#include <device/device_wqe.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

    /* One of two processes ends while a message is under way */
    void kill_in_the_middle(int victim);
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

/* Processes that use up the processor of their parent */
class busy_loops {
public:
    busy_loops(unsigned count) : m_pids(count)
    {
        cpu_set_t cpus;
        int cpu = 0;

        REQUIRE_EQ(0, sched_getaffinity(0, sizeof(cpus), &cpus));
        while (!CPU_ISSET(cpu, &cpus)) {
            ++cpu;
        }
        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        REQUIRE_EQ(0, sched_setaffinity(0, sizeof(cpus), &cpus));
        for (pid_t &pid : m_pids) {
            pid = fork();
            if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (volatile bool is_busy = true; is_busy;) {
                }
            }
        }
    }

    ~busy_loops()
    {
        for (pid_t pid : m_pids) {
            ::kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
    }

private:
    std::vector<pid_t> m_pids;
};

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
    /* So long that who waits for the first completion looks for the second one
     * in time, whatever else the processor has to do */
    set_env("MLX5SIM_DELAY", "1000");
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
        qp_options options = {.mtu = IBV_MTU_256};
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
        loop l({.mtu = IBV_MTU_256});

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
        qp_options options = {.mtu = IBV_MTU_256, .max_rd = 2,
                              .max_dest_rd = 2};
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
            loop l({.max_rd = 16, .max_dest_rd = 1});
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
    qp_options options = {.timeout = 20, .mtu = IBV_MTU_256};

    for (const char *loss : {"10", "50", "100"}) {
        set_env("MLX5SIM_LOSS", loss);
        exchange(options, 60);
    }
}

TEST_F(test_device_deferred, all_lost_ends_in_retry_exceeded)
{
    set_env("MLX5SIM_LOSS", "1000");
    run(1, [](rank&) {
        loop l({.retry_cnt = 3});

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
    run(1, [this](rank&) {
        qp_options options = {.type = IBV_QPT_UD};
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
        /* Once each: a datagram was counted when it arrived, too */
        REQUIRE_EQ(60 * 100, stat_total("bytes"));
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

    /* The device may have come to the first block only after it was used again,
     * and then it complains of what it found there as well */
    std::vector<std::string> lines = take_violations();
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                            [](const std::string &line) {
        return line.find("sq_reused") == 0;
    })) << (lines.empty() ? "nothing was told" : lines[0]);
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

TEST_F(test_device_deferred, fences_wait_for_reads)
{
    run(1, [](rank&) {
        const size_t length = 4000;
        loop l({.mtu = IBV_MTU_256});

        auto overtaken = [&](unsigned flags) {
            memset(l.peer_mem.data, 'a', length);
            memset(l.mem.data, 'b', length);
            send_wr read(IBV_WR_RDMA_READ, 1, {l.mem.sge(8192, length)});
            send_wr write(IBV_WR_RDMA_WRITE, 2, {l.mem.sge(0, length)},
                          IBV_SEND_SIGNALED | flags);
            read.next = &write.to(l.to_b);
            l.a.send(read.to(l.to_b));
            REQUIRE_EQ(1, l.scq.good().wr_id);
            REQUIRE_EQ(2, l.scq.good().wr_id);
            return memchr(l.mem.data + 8192, 'b', length) != nullptr;
        };

        /* IBTA "Work request operation ordering": a read and a later write */
        for (unsigned i = 0; i < 100; ++i) {
            REQUIRE(!overtaken(IBV_SEND_FENCE));
        }
        until_seen([&]() {
            return overtaken(0);
        });
    });
}

/* Packets of 256 bytes are there or are not */
static void check_packets(const uint8_t *data, size_t length)
{
    for (size_t i = 0; i < length; i += 256) {
        REQUIRE_EQ(256, std::count(data + i, data + i + 256, data[i]));
    }
}

TEST_F(test_device_deferred, what_is_under_way_ends_between_packets)
{
    run(1, [](rank&) {
        const size_t length = 65536;
        qp_options options = {.mtu = IBV_MTU_256};

        until_seen([&]() {
            loop l(options, length);
            bool flushed = false;

            memset(l.mem.data, 'b', length);
            for (unsigned i = 0; i < 20; ++i) {
                send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, length)});
                l.a.send(wr.to(l.to_b));
            }
            l.a.to_state(IBV_QPS_ERR);
            std::vector<uint8_t> before(l.peer_mem.data,
                                        l.peer_mem.data + length);
            for (unsigned i = 0; i < 20; ++i) {
                ibv_wc wc = l.scq.next();

                REQUIRE_EQ(i, wc.wr_id);
                REQUIRE_EQ(flushed || (wc.status != IBV_WC_SUCCESS) ?
                           IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS, wc.status);
                flushed = wc.status != IBV_WC_SUCCESS;
            }
            REQUIRE_EQ(IBV_QPS_ERR, l.a.state());
            REQUIRE_EQ(IBV_QPS_RTS, l.b.state());
            check_packets(l.peer_mem.data, length);
            REQUIRE_EQ(0, memcmp(before.data(), l.peer_mem.data, length));
            /* seen when a message stopped in the middle */
            return (l.peer_mem.data[0] == 'b') &&
                   (l.peer_mem.data[length - 1] != 'b');
        });
    });
}

TEST_F(test_device_deferred, destroying_ends_what_is_under_way)
{
    run(1, [](rank&) {
        context c;
        const size_t length = 65536;
        memory mem(c, length), peer_mem(c, length);
        cq scq(c, 256), rcq(c, 256);

        for (unsigned i = 0; i < 50; ++i) {
            qp a(c, scq, scq), b(c, rcq, rcq);

            a.connect(b.addr(&peer_mem));
            b.connect(a.addr(&mem));
            memset(mem.data, i, length);
            for (unsigned k = 0; k < 20; ++k) {
                send_wr wr(IBV_WR_RDMA_WRITE, k, {mem.sge(0, length)}, 0);
                a.send(wr.to(b.addr(&peer_mem)));
            }
            if (i & 1) {
                sched_yield();
            }
            /* the one or the other side */
            ((i & 2) ? a : b).destroy();
            std::vector<uint8_t> before(peer_mem.data, peer_mem.data + length);
            ((i & 2) ? b : a).destroy();
            REQUIRE_EQ(0, memcmp(before.data(), peer_mem.data, length));
        }
    });
}

TEST_F(test_device_deferred, nothing_is_written_once_a_region_is_gone)
{
    run(1, [](rank&) {
        const size_t length = 1 << 18;

        until_seen([&]() {
            loop l(qp_options(), length);
            std::vector<uint8_t> target(length);
            ibv_mr *mr = ibv_reg_mr(l.c.pd, target.data(), length, all_access);

            REQUIRE(mr != nullptr);
            memset(l.mem.data, 'b', length);
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, length)});
            wr.wr.rdma.remote_addr = (uintptr_t)target.data();
            wr.wr.rdma.rkey        = mr->rkey;
            l.a.send(wr);
            REQUIRE_EQ(0, ibv_dereg_mr(mr));
            std::fill(target.begin(), target.end(), 'c');
            ibv_wc wc = l.scq.next();
            if (wc.status == IBV_WC_SUCCESS) {
                return false;
            }
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, wc.status);
            REQUIRE_EQ((long)length,
                       std::count(target.begin(), target.end(), 'c'));
            return true;
        });

        /* one's own */
        until_seen([&]() {
            loop l(qp_options(), length);
            std::vector<uint8_t> source(length);
            ibv_mr *mr = ibv_reg_mr(l.c.pd, source.data(), length, all_access);

            REQUIRE(mr != nullptr);
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, length)});
            wr.elements[0].addr = (uintptr_t)source.data();
            wr.elements[0].lkey = mr->lkey;
            l.a.send(wr.to(l.to_b));
            REQUIRE_EQ(0, ibv_dereg_mr(mr));
            std::fill(source.begin(), source.end(), 'c');
            ibv_wc wc = l.scq.next();
            REQUIRE(memchr(l.peer_mem.data, 'c', length) == nullptr);
            return wc.status == IBV_WC_LOC_PROT_ERR;
        });
    });
}

/* A message stops in the middle; then the receiver's QP fails. @return whether
 * it did stop there */
static bool half_a_message(bool with_srq)
{
    const size_t length = 65536;
    context c;
    memory mem(c, length), peer_mem(c, length);
    cq scq(c, 16), rcq(c, 16);
    srq shared(c, 8);
    qp_options options, peer_options;
    unsigned received = 0;
    ibv_async_event event;
    ibv_wc wc;

    options.mtu = peer_options.mtu = IBV_MTU_256;
    if (with_srq) {
        peer_options.srq = shared.v;
    }
    qp a(c, scq, scq, options), b(c, rcq, rcq, peer_options);
    a.connect(b.addr());
    b.connect(a.addr());
    memset(mem.data, 'b', length);
    for (unsigned i = 0; i < 3; ++i) {
        if (with_srq) {
            shared.recv(i, peer_mem.sge(0, length));
        } else {
            b.recv(i, peer_mem.sge(0, length));
        }
    }
    send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, length)});
    a.send(wr);
    /* not before it has begun */
    REQUIRE(patience::until([&]() {
        return *(volatile uint8_t*)peer_mem.data == 'b';
    }));
    a.to_state(IBV_QPS_ERR);
    scq.next();
    check_packets(peer_mem.data, length);
    bool is_half = peer_mem.data[length - 1] != 'b';
    if (is_half) {
        rcq.empty();
    }
    b.to_state(IBV_QPS_ERR);

    /* each receive completes once, the one of the message first */
    for (unsigned i = 0; i < (with_srq ? 1 : 3); ++i) {
        wc = rcq.next();
        REQUIRE_EQ(i, wc.wr_id);
        received += wc.status == IBV_WC_SUCCESS;
        REQUIRE((wc.status == IBV_WC_WR_FLUSH_ERR) || !is_half);
    }
    REQUIRE_EQ(is_half ? 0 : 1, received);
    if (with_srq) {
        REQUIRE_EQ(0, ibv_get_async_event(c.ctx, &event));
        REQUIRE_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
        ibv_ack_async_event(&event);
        rcq.empty();
    }
    return is_half;
}

TEST_F(test_device_deferred, half_a_message_keeps_its_receive)
{
    for (bool with_srq : {false, true}) {
        run(1, [=](rank&) {
            until_seen([=]() {
                return half_a_message(with_srq);
            });
        });
    }
}

TEST_F(test_device_deferred, unreliable_messages_arrive_whole_or_not_at_all)
{
    set_env("MLX5SIM_LOSS", "50");
    run(1, [](rank&) {
        const size_t length = 3000;
        unsigned received = 0;
        qp_options options = {.type = IBV_QPT_UC, .mtu = IBV_MTU_256};
        context c;
        memory mem(c, 65536), peer_mem(c, 65536);
        cq scq(c, 256), rcq(c, 256);
        qp a(c, scq, scq, options), b(c, rcq, rcq, options);
        ibv_wc wc;

        a.connect(b.addr());
        b.connect(a.addr());
        for (unsigned i = 0; i < 16; ++i) {
            b.recv(i, peer_mem.sge(i * 4096, 4096));
        }
        for (unsigned i = 0; i < 200; ++i) {
            pattern::fill(mem.data, length, i);
            send_wr wr(IBV_WR_SEND, i, {mem.sge(0, length)});
            a.send(wr);
            REQUIRE_EQ(i, scq.good().wr_id);
            while (rcq.poll(&wc)) {
                REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
                REQUIRE_EQ(received % 16, wc.wr_id);
                REQUIRE_EQ(length, pattern::check(peer_mem.data +
                                                  wc.wr_id * 4096, length, i));
                b.recv(wc.wr_id, peer_mem.sge(wc.wr_id * 4096, 4096));
                ++received;
            }
        }
        REQUIRE((received > 20) && (received < 180));
    });
}

void test_device_deferred::kill_in_the_middle(int victim)
{
    const size_t length = 1 << 20;

    for (int i = 0; i < 2; ++i) {
        start(i, 2, [=](rank &r) {
            side s(r, {.mtu = IBV_MTU_256});
            ibv_wc wc;

            if (r.index == 1) {
                for (unsigned k = 0; k < 3; ++k) {
                    s.q.recv(k, s.mem.sge(0, length));
                }
                r.barrier();
                REQUIRE(patience::until([&]() {
                    return *(volatile uint8_t*)s.mem.data != 0;
                }));
                r.word(0) = 1; /* it has begun */
                if (victim == 1) {
                    pause();
                }
                r.wait_word(1, 1);
                s.q.to_state(IBV_QPS_ERR);
                for (unsigned k = 0; k < 3; ++k) {
                    REQUIRE_EQ(k, s.rcq.next().wr_id);
                }
                return;
            }

            memset(s.mem.data, 1, length);
            r.barrier();
            for (unsigned k = 0; k < 3; ++k) {
                send_wr wr(IBV_WR_SEND, k, {s.mem.sge(0, length)});
                s.q.send(wr);
            }
            if (victim == 0) {
                pause();
            }
            /* all may have arrived before */
            r.wait_word(1, 1);
            send_wr wr(IBV_WR_RDMA_WRITE, 3, {s.mem.sge(0, 8)});
            s.q.send(wr.to(s.peer));
            do {
                wc = s.scq.next();
            } while (wc.status == IBV_WC_SUCCESS);
            REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, wc.status);
        });
    }
    for (uint64_t end = now_ms() + patience_ms;
         (word(0) == 0) && (now_ms() < end);) {
        usleep(50);
    }
    kill(victim);
    EXPECT_TRUE(WIFSIGNALED(finish(victim)));
    word(1) = 1;
    finish_all();
}

TEST_F(test_device_deferred, a_sender_is_killed_in_the_middle)
{
    kill_in_the_middle(0);
}

TEST_F(test_device_deferred, a_receiver_is_killed_in_the_middle)
{
    kill_in_the_middle(1);
}

TEST_F(test_device_deferred, the_seed_is_said_once)
{
    catch_errors();
    set_env("MLX5SIM_SEED", "4711");
    run(1, [](rank&) {
        context c, d;
    });

    std::string text = errors();
    size_t at        = text.find("MLX5SIM_SEED=4711");
    EXPECT_NE(std::string::npos, at) << text;
    EXPECT_EQ(std::string::npos, text.find("MLX5SIM_SEED", at + 1)) << text;
}

TEST_F(test_device_deferred, values_that_are_none_are_refused)
{
    static const struct {
        const char *name, *value, *allowed;
    } cases[] = {{"MLX5SIM_EXEC", "later", "sync, deferred, stepped"},
                 {"MLX5SIM_DELAY", "1001", "0 to 1000"},
                 {"MLX5SIM_LOSS", "-1", "0 to 1000"},
                 {"MLX5SIM_SEED", "often", "random"}};

    catch_errors();
    for (auto &one : cases) {
        set_env("MLX5SIM_EXEC", "deferred");
        set_env(one.name, one.value);
        run(1, [](rank&) {
            int count          = 0;
            ibv_device **list = ibv_get_device_list(&count);

            REQUIRE((list == nullptr) || (count == 0));
            if (list != nullptr) {
                ibv_free_device_list(list);
            }
        });
        set_env(one.name, !strcmp(one.name, "MLX5SIM_EXEC") ? "deferred" : "1");
        EXPECT_NE(std::string::npos, errors().find(one.name)) << errors();
        EXPECT_NE(std::string::npos, errors().find(one.allowed)) << errors();
    }
}

/* Of one processor, the device's thread has what is left by others that never
 * sleep: test_pace has how it makes use of that */
TEST_F(test_device_deferred, who_polls_beside_busy_loops_makes_progress)
{
    run(1, [](rank&) {
        busy_loops others(3);
        loop l;
        ibv_wc wc;

        for (unsigned i = 0; i < 40; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 20000)});
            l.a.send(wr.to(l.to_b));
            while (!l.scq.poll(&wc)) {
            }
            REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
        }
    });
}

TEST_F(test_device_deferred, a_seed_does_the_same_again)
{
    std::vector<uint64_t> lost;

    set_env("MLX5SIM_LOSS", "300");
    for (const char *seed : {"11", "11", "12"}) {
        std::string own = dir() + ".replay";

        /* numbers of queue pairs begin anew in a new instance */
        set_env("MLX5SIM_SEED", seed);
        set_env("MLX5SIM_DIR", own);
        run(1, [](rank &r) {
            loop l({.type = IBV_QPT_UC});

            for (unsigned i = 0; i < 60; ++i) {
                l.peer_mem.data[0] = 0;
                l.mem.data[0]      = 1;
                send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 8)});
                l.a.send(wr.to(l.to_b));
                l.scq.good();
                r.word(0) = (r.word(0) << 1) | (l.peer_mem.data[0] == 0);
            }
        });
        std::filesystem::remove_all(own);
        lost.push_back(word(0));
        word(0) = 0;
    }
    EXPECT_EQ(lost[0], lost[1]);
    EXPECT_NE(lost[0], lost[2]);
    EXPECT_NE(0u, lost[0]);
}
