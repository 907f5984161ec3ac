/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * In which order RDMA writes reach memory: that of the packets of a queue pair
 * (QPC field data_in_order, adaptive routing), and that of pieces of 256 bytes
 * on PCIe (relaxed ordering).
 *
 * Chance decides what happens in one run, so tests that wait for a thing to be
 * seen try until it is; what must not be seen is tried a number of times.
 */

#include <device/device.h>

#include <algorithm>
#include <cstring>

using namespace device;

namespace {

const size_t   size  = 16384;
const size_t   half  = size / 2;
const unsigned tries = 200;

const unsigned relaxed_access = all_access | IBV_ACCESS_RELAXED_ORDERING;

class test_device_order : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_EXEC", "deferred");
    }
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

/* Repeat what must not be seen */
void never_seen(const std::function<bool()> &attempt)
{
    for (unsigned i = 0; i < tries; ++i) {
        if (attempt()) {
            fail(__FILE__, __LINE__, "was seen at attempt %u", i);
        }
    }
}

/* Two QPs connected to each other, and a region at the responder */
struct pair : public loop {
    explicit pair(const qp_options &options = qp_options(),
                  unsigned access = all_access) :
        loop(options), remote(c, size, access)
    {
        to       = to_b;
        to.rkey  = remote.mr->rkey;
        to.addr  = remote.addr();
    }

    void write(size_t from, size_t at, size_t length, unsigned flags = 0)
    {
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(from, length)},
                   IBV_SEND_SIGNALED | flags);
        a.send(wr.to(to, at));
    }

    /* Write @a length bytes, and watch: is the last one there while one of the
     * first @a step bytes is not? */
    bool tail_comes_first(size_t length, size_t step)
    {
        volatile uint8_t *data = remote.data;
        bool is_seen           = false;
        ibv_wc wc;

        memset(remote.data, 0, length);
        memset(mem.data, 1, length);
        write(0, 0, length);
        for (;;) {
            bool is_done = scq.poll(&wc);

            if (data[length - 1] != 0) {
                __sync_synchronize();
                is_seen |= (data[0] == 0) || (data[step - 1] == 0);
            }
            if (is_done) {
                REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
                break;
            }
        }
        REQUIRE_EQ(length, std::count(remote.data, remote.data + length, 1));
        return is_seen;
    }

    /* Write two values to one address. @return the one that stays */
    uint64_t write_twice(unsigned flags = 0)
    {
        const uint64_t values[] = {1, 2};

        memcpy(mem.data, values, sizeof(values));
        memset(remote.data, 0, 8);
        write(0, 0, 8);
        write(8, 0, 8, flags);
        scq.good();
        scq.good();
        return value();
    }

    /* Take completions up to that of request @a id. @return true */
    bool finish(uint64_t id)
    {
        while (scq.good().wr_id != id) {
        }
        return true;
    }

    uint64_t value() const
    {
        uint64_t value;

        memcpy(&value, remote.data, sizeof(value));
        return value;
    }

    memory  remote;
    address to;
};

qp_options small_packets()
{
    return {.mtu = IBV_MTU_256};
}

qp_options on_sl(uint8_t sl)
{
    qp_options options;

    options.path.sl = sl;
    return options;
}

} // namespace


TEST_F(test_device_order, writes_come_in_order_unless_told_otherwise)
{
    run(1, [](rank&) {
        pair p(small_packets());

        never_seen([&]() { return p.tail_comes_first(size, 256); });
        never_seen([&]() { return p.write_twice() != 2; });
    });
}

TEST_F(test_device_order, packets_of_a_write_come_in_any_order)
{
    set_env("MLX5SIM_DATA_IN_ORDER", "n");
    run(1, [](rank&) {
        pair p(small_packets());

        until_seen([&]() { return p.tail_comes_first(size, 256); });
        /* a packet is not cut */
        pair whole;
        never_seen([&]() { return whole.tail_comes_first(4096, 256); });
    });
}

/* The write that was posted first is the last one, whatever a fence says */
TEST_F(test_device_order, writes_to_one_address_swap)
{
    set_env("MLX5SIM_DATA_IN_ORDER", "n");
    run(1, [](rank&) {
        pair p;

        until_seen([&]() { return p.write_twice() == 1; });
        until_seen([&]() { return p.write_twice(IBV_SEND_FENCE) == 1; });
    });
}

/* Firmware that can't tell is no network that mixes packets */
TEST_F(test_device_order, unknown_is_in_order)
{
    set_env("MLX5SIM_DATA_IN_ORDER", "unknown");
    run(1, [](rank&) {
        pair p;

        never_seen([&]() { return p.write_twice() != 2; });
    });
}

TEST_F(test_device_order, service_levels_with_adaptive_routing)
{
    set_env("MLX5SIM_OOO_SL_MASK", "0x12");
    run(1, [](rank&) {
        pair sl0(on_sl(0)), sl1(on_sl(1)), sl3(on_sl(3)), sl4(on_sl(4));

        until_seen([&]() { return sl1.write_twice() == 1; });
        until_seen([&]() { return sl4.write_twice() == 1; });
        never_seen([&]() { return sl0.write_twice() != 2; });
        never_seen([&]() { return sl3.write_twice() != 2; });
    });
}

/* What is no write finds all writes before it in memory, and is passed by none
 * of those behind it */
TEST_F(test_device_order, other_requests_wait_for_writes)
{
    set_env("MLX5SIM_DATA_IN_ORDER", "n");
    for (const char *loss : {"0", "50"}) {
        set_env("MLX5SIM_LOSS", loss);
        run(1, [](rank&) {
            pair p(small_packets());

            for (unsigned i = 0; i < tries / 2; ++i) {
                bool is_finished = false;

                pattern::fill(p.mem.data, size, i);
                memset(p.remote.data, 0xee, size);
                for (size_t part = 0; part < 4; ++part) {
                    p.write(part * size / 4, part * size / 4, size / 4);
                }

                switch (i % 4) {
                case 0: {
                    p.b.recv(1, p.peer_mem.sge(0, 8));
                    send_wr wr(IBV_WR_SEND, 2, {p.mem.sge(0, 8)});
                    p.a.send(wr);
                    p.peer_cq.good();
                    break;
                }
                case 1: {
                    p.b.recv(1, p.peer_mem.sge(0, 8));
                    send_wr wr(IBV_WR_RDMA_WRITE_WITH_IMM, 2,
                               {p.mem.sge(0, 8)});
                    p.a.send(wr.to(p.to));
                    p.peer_cq.good();
                    break;
                }
                case 2: {
                    /* adds nothing, and returns what was written */
                    send_wr wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 2,
                               {p.mem.sge(size, 8)});
                    p.a.send(wr.atomic(p.to, size - 8, 0));
                    is_finished = p.finish(2);
                    REQUIRE_EQ(0, memcmp(p.mem.data + size,
                                         p.mem.data + size - 8, 8));
                    break;
                }
                default: {
                    send_wr wr(IBV_WR_RDMA_READ, 2, {p.mem.sge(size, size)});
                    p.a.send(wr.to(p.to));
                    is_finished = p.finish(2);
                    REQUIRE_EQ(size, pattern::check(p.mem.data + size, size,
                                                    i));
                    break;
                }
                }
                REQUIRE_EQ(size, pattern::check(p.remote.data, size, i));
                if (!is_finished) {
                    p.finish(2);
                }
            }

            /* a send between two writes keeps them apart */
            for (unsigned i = 0; i < tries / 2; ++i) {
                const uint64_t values[] = {1, 2};

                memcpy(p.mem.data, values, sizeof(values));
                p.b.recv(1, p.peer_mem.sge(0, 8));
                send_wr wr(IBV_WR_SEND, 2, {p.mem.sge(0, 8)});
                p.write(0, 0, 8);
                p.a.send(wr);
                p.write(8, 0, 8);
                p.peer_cq.good();
                p.scq.good();
                p.scq.good();
                p.scq.good();
                REQUIRE_EQ(2, p.value());
            }
        });
    }
}

/* A completion tells that all up to it is in memory; they come in order. Lost
 * packets are sent again, and what is there already is not written twice. */
TEST_F(test_device_order, completions_keep_their_order)
{
    set_env("MLX5SIM_DATA_IN_ORDER", "n");
    set_env("MLX5SIM_LOSS", "30");
    run(1, [](rank&) {
        pair p(small_packets());
        pattern random(5);

        for (unsigned round = 0; round < 40; ++round) {
            size_t at[9] = {0};

            pattern::fill(p.mem.data, size, round);
            memset(p.remote.data, 0xee, size);
            for (unsigned i = 0; i < 8; ++i) {
                at[i + 1] = at[i] + random.below(size / 8);
                send_wr wr(IBV_WR_RDMA_WRITE, i,
                           {p.mem.sge(at[i], at[i + 1] - at[i])});
                p.a.send(wr.to(p.to, at[i]));
            }
            for (unsigned i = 0; i < 8; ++i) {
                REQUIRE_EQ(i, p.scq.good().wr_id);
                REQUIRE_EQ(at[i + 1],
                           std::min(at[i + 1],
                                    pattern::check(p.remote.data, size,
                                                   round)));
            }
        }
    });
}

/* The first write is refused; data of those behind it may be there, and no
 * completion says so. Without the mode they never are. */
TEST_F(test_device_order, what_comes_behind_a_refused_write_may_be_there)
{
    for (const char *in_order : {"y", "n"}) {
        bool is_mixed   = in_order[0] == 'n';
        std::string dir = this->dir() + "/" + in_order;

        set_env("MLX5SIM_DIR", dir);
        set_env("MLX5SIM_DATA_IN_ORDER", in_order);
        run(1, [=](rank&) {
            auto attempt = [&]() {
                pair p(small_packets());

                memset(p.remote.data, 0, size);
                memset(p.mem.data, 1, size);
                /* While it is sent, those behind it may come */
                send_wr first(IBV_WR_RDMA_WRITE, 0, {p.mem.sge(0, half)});
                send_wr bad(IBV_WR_RDMA_WRITE, 1, {p.mem.sge(0, half)});
                bad.to(p.to);
                bad.wr.rdma.rkey = 0x123456;
                send_wr good(IBV_WR_RDMA_WRITE, 2, {p.mem.sge(0, half)});
                p.a.send(first.to(p.to, half));
                p.a.send(bad);
                p.a.send(good.to(p.to));
                REQUIRE_EQ(IBV_WC_SUCCESS, p.scq.next().status);
                REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, p.scq.next().status);
                REQUIRE_EQ(IBV_WC_WR_FLUSH_ERR, p.scq.next().status);
                return memchr(p.remote.data, 1, half) != nullptr;
            };

            if (is_mixed) {
                until_seen(attempt);
            } else {
                for (unsigned i = 0; i < 20; ++i) {
                    REQUIRE(!attempt());
                }
            }
        });
    }
}

/* PCIe: writes with relaxed ordering pass each other, others don't, and pass
 * none. A flag in another region is written behind the data. */
TEST_F(test_device_order, keys_with_relaxed_ordering_are_written_in_pieces)
{
    run(1, [](rank&) {
        pair strict, relaxed(qp_options(), relaxed_access);
        memory flags(relaxed.c, 64);

        never_seen([&]() { return strict.tail_comes_first(4096, 256); });
        until_seen([&]() { return relaxed.tail_comes_first(4096, 256); });
        until_seen([&]() { return relaxed.write_twice() == 1; });

        address to_flag          = relaxed.to;
        volatile uint64_t *flag  = (uint64_t*)flags.data;

        to_flag.rkey = flags.mr->rkey;
        to_flag.addr = flags.addr();
        for (uint64_t i = 1; i < tries; ++i) {
            memset(relaxed.remote.data, 0, size);
            memset(relaxed.mem.data, 1, size);
            memcpy(relaxed.mem.data + size, &i, sizeof(i));
            relaxed.write(0, 0, size);
            send_wr wr(IBV_WR_RDMA_WRITE, 2, {relaxed.mem.sge(size, 8)});
            relaxed.a.send(wr.to(to_flag));
            while (*flag != i) {
                check_abort();
            }
            REQUIRE_EQ(size, std::count(relaxed.remote.data,
                                        relaxed.remote.data + size, 1));
            relaxed.scq.good();
            relaxed.scq.good();
        }
    });
}

/* PCI_WR_ORDERING=force_relax of mlxconfig */
TEST_F(test_device_order, all_keys_can_be_relaxed)
{
    set_env("MLX5SIM_PCI_WR_ORDERING", "force_relax");
    run(1, [](rank&) {
        pair strict;

        until_seen([&]() { return strict.tail_comes_first(4096, 256); });
    });
}

/* Wherever the write begins, all of it arrives, and nothing around it */
TEST_F(test_device_order, pieces_make_up_the_whole)
{
    set_env("MLX5SIM_PCI_WR_ORDERING", "force_relax");
    set_env("MLX5SIM_DATA_IN_ORDER", "n");
    set_env("MLX5SIM_LOSS", "20");
    for (ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_1024, IBV_MTU_4096}) {
        run(1, [=](rank&) {
            pair p({.mtu = mtu});
            pattern random(3);

            for (unsigned i = 1; i < tries; ++i) {
                size_t first = random.below(1000), length = random.below(9000);

                pattern::fill(p.mem.data, length, i);
                memset(p.remote.data, 0xee, size);
                p.write(0, first, length);
                p.scq.good();
                REQUIRE_EQ(length, pattern::check(p.remote.data + first, length,
                                                  i));
                REQUIRE_EQ(first, std::count(p.remote.data,
                                             p.remote.data + first, 0xee));
                REQUIRE_EQ(size - first - length,
                           std::count(p.remote.data + first + length,
                                      p.remote.data + size, 0xee));
            }
        });
    }
}
