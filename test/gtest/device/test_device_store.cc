/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Stores to registers: processors combine them before the device sees anything,
 * whatever their width and order, so a copy may be made of bytes, and from its
 * end to its beginning, as the memmove() of AddressSanitizer does it.
 */

#include <device/device_wqe.h>

#include <algorithm>
#include <tuple>

using namespace device;

/* Nothing between two stores but what is said */
#define PLAIN \
    __attribute__((no_sanitize("address", "thread", "undefined"), noinline, \
                   optimize("O2")))

namespace {

/* In which order a copy is made */
enum order {
    UP,
    DOWN,
    BLOCKS_DOWN     /* one block after the other, each from its end */
};

/* Longer than what the device takes for a part of a loop that copies */
PLAIN void pause_a_while()
{
    for (volatile int i = 0; i < 100; i = i + 1) {
    }
}

template<typename T>
PLAIN void store_up(volatile T *to, const T *from, unsigned num, bool apart)
{
    for (unsigned i = 0; i < num; ++i) {
        to[i] = from[i];
        if (apart) {
            pause_a_while();
        }
    }
}

template<typename T>
PLAIN void store_down(volatile T *to, const T *from, unsigned num, bool apart)
{
    while (num > 0) {
        --num;
        to[num] = from[num];
        if (apart) {
            pause_a_while();
        }
    }
}

template<typename T>
void store_as(void *to, const void *from, unsigned length, order how,
              bool apart)
{
    unsigned piece = (how == BLOCKS_DOWN) ? std::min(length, 64u) : length;

    for (unsigned at = 0; at < length; at += piece) {
        volatile T *dest = (volatile T*)((uint8_t*)to + at);
        const T *src     = (const T*)((const uint8_t*)from + at);

        if (how == UP) {
            store_up(dest, src, piece / sizeof(T), apart);
        } else {
            store_down(dest, src, piece / sizeof(T), apart);
        }
    }
}

/* Order, bytes of each store, and whether they are apart from each other */
typedef std::tuple<order, unsigned, bool> way;

void store(void *to, const void *from, unsigned length, const way &how)
{
    order dir  = std::get<0>(how);
    bool apart = std::get<2>(how);

    switch (std::get<1>(how)) {
    case 1:
        return store_as<uint8_t>(to, from, length, dir, apart);
    case 2:
        return store_as<uint16_t>(to, from, length, dir, apart);
    case 4:
        return store_as<uint32_t>(to, from, length, dir, apart);
    default:
        return store_as<uint64_t>(to, from, length, dir, apart);
    }
}

std::string way_name(const way &how)
{
    static const char *const names[] = {"up", "down", "blocks_down"};

    return names[std::get<0>(how)] + ("_" + std::to_string(std::get<1>(how))) +
           (std::get<2>(how) ? "_apart" : "");
}

class test_device_store : public device::test,
                          public ::testing::WithParamInterface<way> {
protected:
    /* Whether the device has the first 8 bytes before it has others */
    static bool begins_with_head(const way &how)
    {
        return (std::get<0>(how) == UP) && std::get<2>(how);
    }
};

/* Those in which the first 8 bytes come last */
class test_device_store_head : public test_device_store {
};

} // namespace


TEST_P(test_device_store, blueflame)
{
    const way how = GetParam();

    run(1, [&](rank&) {
        loop l;
        raw_sq sq(l.a.v);

        /* one to four blocks, several laps */
        for (unsigned i = 0; i < 150; ++i) {
            uint8_t data[200];
            unsigned size = (i * 7) % 200;

            pattern::fill(data, size, i);
            raw_wqe w(sq, MLX5_OPCODE_RDMA_WRITE);
            w.raddr(l.to_b.addr + 8 * i, l.to_b.rkey).inl(data, size);
            w.write();
            sq.record(sq.pi);
            store(sq.next_register(), w.bytes, 64 * w.num_bb(), how);
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
            REQUIRE_EQ(size, pattern::check(l.peer_mem.data + 8 * i, size, i));
        }
        l.scq.empty();
    });
}

TEST_P(test_device_store, every_byte_of_a_copy_counts)
{
    /* the first 8 name the queue pair and its work request */
    const unsigned head = 8;
    const way how       = GetParam();

    catch_errors();
    run(1, [&](rank&) {
        loop l;
        raw_sq sq(l.a.v);

        for (unsigned byte = head; byte < 64; ++byte) {
            raw_wqe w(sq, MLX5_OPCODE_RDMA_WRITE);
            uint8_t data[28] = {};

            w.raddr(l.to_b.addr, l.to_b.rkey).inl(data, sizeof(data));
            w.write();
            sq.record(sq.pi);
            w.bytes[byte] ^= 1;
            store(sq.next_register(), w.bytes, 64, how);
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        }
    });

    std::vector<std::string> lines = take_violations();
    if (begins_with_head(how)) {
        /* The device does not wait for others: it reads the queue */
        EXPECT_EQ(0u, lines.size());
        return;
    }

    ASSERT_EQ(64u - head, lines.size());
    for (unsigned i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(0u, lines[i].find("bf_mismatch ")) << lines[i];
        EXPECT_NE(std::string::npos,
                  lines[i].find("byte " + std::to_string(head + i) + " is"))
                << lines[i];
    }
}

TEST_P(test_device_store_head, nothing_is_executed_before_the_head_is_there)
{
    const way how        = GetParam();
    const unsigned width = std::get<1>(how);

    run(1, [&](rank&) {
        loop l;
        raw_sq sq(l.a.v);

        for (unsigned i = 0; i < 4; ++i) {
            raw_wqe w(sq, MLX5_OPCODE_NOP);
            uint8_t *reg = (uint8_t*)sq.next_register();

            w.write();
            sq.record(sq.pi);
            store(reg + width, w.bytes + width, 64 - width,
                  way(DOWN, width, std::get<2>(how)));
            l.scq.empty();
            store(reg, w.bytes, width, way(DOWN, width, false));
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        }
    });
}

TEST_P(test_device_store, doorbell)
{
    const way how = GetParam();

    run(1, [&](rank&) {
        loop l;
        raw_sq sq(l.a.v);

        for (unsigned i = 0; i < 20; ++i) {
            raw_wqe w(sq, MLX5_OPCODE_NOP);
            uint64_t head = w.head();

            w.write();
            sq.record(sq.pi);
            store(sq.next_register(), &head, sizeof(head),
                  way((std::get<0>(how) == UP) ? UP : DOWN, std::get<1>(how),
                      std::get<2>(how)));
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        }
        l.scq.empty();
    });
}

TEST_P(test_device_store, arm)
{
    const way how = GetParam();

    catch_errors();
    run(1, [&](rank&) {
        context c;
        ibv_comp_channel *channel = ibv_create_comp_channel(c.ctx);
        {
            cq q(c, 16, channel);
            mlx5dv_cq dv = q.direct();
            uint64_t value;

            /* wrong on purpose: a report says that it was rung, and how */
            value = htobe64((50ul << 32) | dv.cqn);
            dv.dbrec[1] = htobe32(50);
            store((char*)dv.cq_uar + 0x20, &value, sizeof(value),
                  way((std::get<0>(how) == UP) ? UP : DOWN, std::get<1>(how),
                      std::get<2>(how)));
        }
        ibv_destroy_comp_channel(channel);
    });

    std::vector<std::string> lines = take_violations();
    ASSERT_EQ(1u, lines.size());
    EXPECT_EQ(0u, lines[0].find("cq_arm ")) << lines[0];
    EXPECT_NE(std::string::npos, lines[0].find("consumer index 0x32"))
            << lines[0];
}

TEST_P(test_device_store, what_is_never_finished_is_not_in_the_way)
{
    const way how        = GetParam();
    const unsigned width = std::get<1>(how);

    run(1, [&](rank&) {
        loop l;
        raw_sq sq(l.a.v);
        uint64_t garbage[8];

        memset(garbage, 0xa5, sizeof(garbage));
        for (unsigned i = 0; i < 20; ++i) {
            raw_wqe w(sq, MLX5_OPCODE_NOP);
            uint8_t *reg = (uint8_t*)sq.dv.bf.reg;

            store(reg + 32, garbage, 2 * width, how);
            w.post(i & 1);
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        }
        l.scq.empty();
    });
}

INSTANTIATE_TEST_SUITE_P(
        way, test_device_store,
        ::testing::Combine(::testing::Values(UP, DOWN, BLOCKS_DOWN),
                           ::testing::Values(1u, 2u, 4u, 8u),
                           ::testing::Bool()),
        [](const auto &info) {
            return way_name(info.param);
        });

INSTANTIATE_TEST_SUITE_P(
        way, test_device_store_head,
        ::testing::Combine(::testing::Values(DOWN),
                           ::testing::Values(1u, 2u, 4u, 8u),
                           ::testing::Bool()),
        [](const auto &info) {
            return way_name(info.param);
        });
