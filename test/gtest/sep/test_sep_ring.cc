/* SPDX-License-Identifier: BSD-3-Clause */

#include <uct/ib/sep/ring/sep_ring.h>
#include <uct/ib/sep/ring/sep_ring_poll.h>
#include <uct/ib/sep/ring/sep_ring_set.h>
#include <uct/ib/sep/ring/sep_ring_state.h>

#include <common/seed.h>

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace {

/*
 * Slots, tails and credits: two ends on the same memory. What the adapter does
 * is done here, byte by byte.
 */

class test_sep_ring : public ::testing::Test {
protected:
    void make(unsigned slots, uint32_t slot_size, int fill = 0)
    {
        m_memory.assign(slots * slot_size / sizeof(m_memory[0]),
                        0x0101010101010101ull * fill);
        uct_sep_ring_tx_set_other(&m_tx, nullptr);
        uct_sep_ring_rx_init(&m_rx, m_memory.data(), slots, slot_size,
                             &m_unused);

        uct_sep_ring_offer_t offer = {};
        offer.address   = (uintptr_t)m_memory.data();
        offer.rkey      = 0x1234;
        offer.slot_size = slot_size;
        offer.slots     = slots;
        m_returned      = 0;
        uct_sep_ring_tx_close(&m_tx);
        ASSERT_EQ(UCS_OK, uct_sep_ring_tx_open(&m_tx, &offer, SIZE_MAX,
                                               &m_returned));
    }

    /* A message as it is on its way: where it goes, and its bytes */
    struct write {
        uint8_t              *to;
        std::vector<uint8_t> data;
    };

    write post(const std::vector<uint8_t> &payload)
    {
        uint32_t room = uct_sep_ring_room(payload.size());
        auto tail     = uct_sep_ring_tx_tail(&m_tx, m_am_id, payload.size());
        write w;

        EXPECT_GE(m_tx.left, 0);
        w.to = (uint8_t*)m_tx.slot_end - room;
        w.data.assign(room, 0xee);
        std::copy(payload.begin(), payload.end(), w.data.begin());
        memcpy(&w.data[room - sizeof(tail)], &tail, sizeof(tail));
        uct_sep_ring_tx_advance(&m_tx);
        return w;
    }

    static void land(const write &w)
    {
        memcpy(w.to, w.data.data(), w.data.size());
    }

    bool is_there()
    {
        return uct_sep_ring_rx_is_next(&m_rx, *uct_sep_ring_rx_next(&m_rx));
    }

    /* What a handler would see; end() has to follow */
    std::vector<uint8_t> begin(uint8_t *credits_p = nullptr)
    {
        uct_sep_ring_word_t *place = uct_sep_ring_rx_next(&m_rx);
        uint32_t rest              = uct_sep_ring_word_rest(*place);
        uint32_t length            = UCT_SEP_RING_REST_LENGTH(rest);
        auto *payload = (const uint8_t*)uct_sep_ring_payload(place, length);
        std::vector<uint8_t> data(payload, payload + length);

        EXPECT_LE(rest, m_rx.max_rest);
        EXPECT_EQ(m_am_id, UCT_SEP_RING_REST_AM_ID(rest));
        if (credits_p != nullptr) {
            *credits_p = UCT_SEP_RING_REST_CREDITS(rest);
        }
        if (m_rx.busy) {
            *place = 0;
            uct_sep_ring_rx_count_ahead(&m_rx);
        } else {
            uct_sep_ring_rx_begin(&m_rx, place);
        }
        return data;
    }

    void end()
    {
        if (!uct_sep_ring_rx_end(&m_rx)) {
            uct_sep_ring_rx_stop(&m_rx);
        }
    }

    std::vector<uint8_t> take(uint8_t *credits_p = nullptr)
    {
        auto data = begin(credits_p);

        end();
        return data;
    }

    /* Slots come back with a message */
    void give_back(unsigned count = 1)
    {
        m_tx.credits += count;
        ASSERT_TRUE(uct_sep_ring_tx_is_sane(&m_tx));
        ASSERT_TRUE(uct_sep_ring_tx_refresh(&m_tx));
    }

    static std::vector<uint8_t> pattern(size_t length, unsigned seed)
    {
        std::mt19937 random(seed);
        std::vector<uint8_t> data(length);

        for (auto &byte : data) {
            byte = random();
        }
        return data;
    }

    std::vector<uint64_t> m_memory;
    uct_sep_ring_rx_t     m_rx;
    uct_sep_ring_tx_t     m_tx = {};
    uint32_t              m_returned;
    uint32_t              m_unused;
    uint8_t               m_am_id = 3;
};

TEST_F(test_sep_ring, every_length_arrives_as_it_was_sent)
{
    make(3, 128);
    ASSERT_EQ(120u, m_tx.max_length);
    for (unsigned i = 0; i < 1000; ++i) {
        auto data = pattern(i % 121, i);

        ASSERT_FALSE(is_there());
        land(post(data));
        ASSERT_TRUE(is_there());
        ASSERT_EQ(data, take());
        give_back();
    }
    EXPECT_EQ(1000u, uct_sep_ring_rx_count(&m_rx));
}

TEST_F(test_sep_ring, payloads_are_aligned_and_stay_inside_of_their_slot)
{
    make(4, 64);
    for (unsigned length = 0; length <= m_tx.max_length; ++length) {
        auto *end = (uint8_t*)m_tx.slot_end;
        auto w    = post(pattern(length, length));

        EXPECT_EQ(0u, (uintptr_t)w.to % UCT_SEP_RING_ALIGN);
        EXPECT_GE(w.to, end - 64);
        EXPECT_EQ(end, w.to + w.data.size());
        land(w);
        take();
        give_back();
    }
}

/* Bytes land in order of their addresses: nothing is taken for a message before
 * the last one, whatever the payload looks like, and whatever was in the slot
 * before: messages of the same and of other lengths, payload that looks like a
 * tail, more laps than the number has bits */
TEST_F(test_sep_ring, no_stale_byte_is_taken_for_a_random_message)
{
    for (unsigned slots : {1u, 2u, 3u, 128u}) {
        std::mt19937 random(seed::get(slots));

        make(slots, 64, random());
        for (unsigned i = 0; i < 200000 / (slots == 1 ? 1 : 10); ++i) {
            std::vector<uint8_t> data;
            uint64_t likely = m_rx.key |
                              ((uint64_t)UCT_SEP_RING_TAIL_REST(0, 3, 56)
                               << 32);

            switch (random() % 3) {
            case 0: /* All of it looks like the tail that is waited for */
                data.resize(56);
                for (unsigned j = 0; j < 56; j += 8) {
                    memcpy(&data[j], &likely, 8);
                }
                break;
            case 1:
                data.assign(56, random());
                break;
            default:
                data.assign(random() % 57, random());
                break;
            }

            auto w = post(data);
            if ((i % 16) == 0) {
                for (size_t j = 0; j < w.data.size(); ++j) {
                    ASSERT_FALSE(is_there()) << "after " << j << " bytes";
                    w.to[j] = w.data[j];
                    if ((j + 1) == (w.data.size() - 7)) {
                        /* The tail is one write: it is aligned */
                        break;
                    }
                }
            }
            land(w);
            ASSERT_TRUE(is_there());
            ASSERT_EQ(data, take());
            give_back();
        }
    }
}

/* The software device's tails are copied by the kernel: receivers have seen one
 * byte of one */
TEST_F(test_sep_ring, half_a_tail_is_not_a_message_and_no_mistake)
{
    make(2, 64);
    for (unsigned i = 0; i < 5; ++i) { /* Message 5, of 40 bytes */
        land(post(pattern(i * 10, i)));
        ASSERT_TRUE(is_there());
        take();
        give_back();
    }

    auto w      = post(pattern(40, 7));
    size_t room = w.data.size();
    for (size_t n = 0; n < sizeof(uct_sep_ring_tail_t); ++n) {
        memcpy(w.to, w.data.data(), room - sizeof(uct_sep_ring_tail_t) + n);
        EXPECT_FALSE(uct_sep_ring_word_is_whole(*m_rx.tail)) << n;
        EXPECT_FALSE(is_there()) << n;
        EXPECT_TRUE(uct_sep_ring_rx_may_wait(&m_rx, *m_rx.tail)) << n;
    }
    land(w);
    EXPECT_TRUE(uct_sep_ring_word_is_whole(*m_rx.tail));
    EXPECT_TRUE(is_there());
}

TEST_F(test_sep_ring, a_full_ring_has_no_slot_until_one_comes_back)
{
    make(5, 64);
    for (int left = 4; left >= 0; --left) {
        ASSERT_EQ(left, m_tx.left);
        land(post({1}));
    }
    EXPECT_EQ(-1, m_tx.left);
    EXPECT_FALSE(uct_sep_ring_tx_refresh(&m_tx));

    m_returned = 2;
    EXPECT_TRUE(uct_sep_ring_tx_refresh(&m_tx));
    EXPECT_EQ(1, m_tx.left);
    EXPECT_FALSE(uct_sep_ring_tx_refresh(&m_tx));
    m_tx.credits = 2;
    m_returned   = 3;
    EXPECT_TRUE(uct_sep_ring_tx_refresh(&m_tx));
    EXPECT_EQ(4, m_tx.left);
}

TEST_F(test_sep_ring, more_slots_than_were_used_can_not_come_back)
{
    make(5, 64);
    post({1});
    for (uint32_t bad : {2u, 200u, UINT32_MAX}) {
        m_tx.credits = bad;
        EXPECT_FALSE(uct_sep_ring_tx_is_sane(&m_tx));
        EXPECT_FALSE(uct_sep_ring_tx_refresh(&m_tx));
        EXPECT_EQ(3, m_tx.left);
        m_tx.credits = 0;
        m_returned   = bad;
        EXPECT_FALSE(uct_sep_ring_tx_refresh(&m_tx));
        EXPECT_EQ(3, m_tx.left);
        m_returned = 0;
    }
    give_back();
    EXPECT_EQ(4, m_tx.left);
}

/* Two writes of the counter may be placed in either order */
TEST_F(test_sep_ring, a_number_of_returned_slots_that_is_older_is_passed_over)
{
    make(8, 64);
    for (uint32_t start : {0u, UINT32_MAX - 5}) {
        m_returned = start;
        m_tx.seen  = start;
        for (unsigned i = 0; i < 8; ++i) {
            post({1});
        }
        m_returned = start + 6;
        ASSERT_TRUE(uct_sep_ring_tx_refresh(&m_tx));
        ASSERT_EQ(5, m_tx.left);
        m_returned = start + 4;
        EXPECT_FALSE(uct_sep_ring_tx_refresh(&m_tx));
        EXPECT_EQ(5, m_tx.left);

        /* What comes with messages counts all the same, and so does a later
         * number */
        m_tx.credits = 1;
        EXPECT_TRUE(uct_sep_ring_tx_refresh(&m_tx));
        EXPECT_EQ(6, m_tx.left);
        m_returned = start + 7;
        EXPECT_TRUE(uct_sep_ring_tx_refresh(&m_tx));
        EXPECT_EQ(7, m_tx.left);
    }
}

TEST_F(test_sep_ring, what_comes_first_behind_a_fence_is_sent)
{
    make(8, 64);
    uct_sep_ring_tx_fence(&m_tx);
    m_returned = 0;
    EXPECT_LT(m_tx.left, 0);
    EXPECT_FALSE(uct_sep_ring_tx_refresh(&m_tx));
    EXPECT_TRUE(uct_sep_ring_tx_is_sane(&m_tx));

    /* What follows that waits for it */
    EXPECT_EQ(1, UCT_SEP_RING_IMM_SEQ(uct_sep_ring_tx_take_send(&m_tx, 0)));
    ASSERT_TRUE(uct_sep_ring_tx_refresh(&m_tx));
    EXPECT_EQ(7, m_tx.left);
    land(post({1}));
    EXPECT_FALSE(is_there());
    EXPECT_TRUE(uct_sep_ring_rx_may_wait(&m_rx, *m_rx.tail));
    uct_sep_ring_rx_count_send(&m_rx);
    EXPECT_TRUE(is_there());

    /* A fence before a ring is opened, or after it was closed, is none of its
     * business */
    uct_sep_ring_tx_close(&m_tx);
    uct_sep_ring_tx_fence(&m_tx);
    make(8, 64);
    EXPECT_EQ(7, m_tx.left);
    EXPECT_FALSE(m_tx.is_fenced);
}

TEST_F(test_sep_ring, a_slot_has_one_packet_unless_data_are_in_order)
{
    EXPECT_EQ(1024u, uct_sep_ring_slot_size(1088, 1024, 0));
    EXPECT_EQ(1088u, uct_sep_ring_slot_size(1088, 4096, 0));
    EXPECT_EQ(1088u, uct_sep_ring_slot_size(1088, 1024, 1));
    for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
        EXPECT_TRUE(uct_sep_ring_is_slot_size(
                uct_sep_ring_slot_size(UCT_SEP_RING_MAX_SLOT, mtu, 0)));
    }
}

TEST_F(test_sep_ring, slots_of_the_other_ring_go_back_with_a_message)
{
    uct_sep_ring_rx_t other = {};
    uint8_t credits;

    make(4, 64);
    other.key = UCT_SEP_RING_KEY(9, 250);
    uct_sep_ring_tx_set_other(&m_tx, &other);
    EXPECT_EQ(0u, uct_sep_ring_tx_owed(&m_tx));
    other.key += 7;
    EXPECT_EQ(7u, uct_sep_ring_tx_owed(&m_tx));
    land(post({1}));
    take(&credits);
    EXPECT_EQ(7, credits);
    EXPECT_EQ(0u, uct_sep_ring_tx_owed(&m_tx));

    /* A ring of the other direction goes on if this one ends */
    other.key += 5;
    uct_sep_ring_tx_close(&m_tx);
    EXPECT_EQ(UCT_SEP_RING_IMM(0x20, 5, 0),
              uct_sep_ring_tx_take_send(&m_tx, 0x20));
    EXPECT_EQ(0u, uct_sep_ring_tx_owed(&m_tx));
    other.key += 3;
    uct_sep_ring_tx_set_other(&m_tx, nullptr);
    EXPECT_EQ(0u, uct_sep_ring_tx_owed(&m_tx));
}

/* Slots are free in order: not before a handler has finished with them, and
 * those before it */
TEST_F(test_sep_ring, handlers_may_take_messages_while_others_run)
{
    for (unsigned slots : {2u, 3u, 7u, 128u}) {
        make(slots, 64);
        uct_sep_ring_tx_t other = {};
        uct_sep_ring_tx_close(&other);
        uct_sep_ring_tx_set_other(&other, &m_rx);

        for (unsigned i = 0; i < 20 * slots; ++i) {
            unsigned inner = i % slots;

            for (unsigned j = 0; j <= inner; ++j) {
                land(post({(uint8_t)(i + j)}));
            }
            ASSERT_EQ((uint8_t)i, begin()[0]);
            for (unsigned j = 1; j <= inner; ++j) {
                ASSERT_TRUE(is_there());
                ASSERT_EQ((uint8_t)(i + j), begin()[0]);
                ASSERT_EQ(0u, uct_sep_ring_tx_owed(&other));
            }
            ASSERT_FALSE(is_there());
            end();
            ASSERT_EQ(inner + 1, uct_sep_ring_tx_take_owed(&other));
            give_back(inner + 1);
            ASSERT_EQ((int)slots - 1, m_tx.left);
        }
        EXPECT_EQ(uct_sep_ring_rx_count(&m_rx) % 65536,
                  uct_sep_ring_rx_seq(&m_rx) - 1u);
    }
}

/* One comparison is all that is looked at in a usual message */
TEST_F(test_sep_ring, only_lengths_that_fit_are_below_the_limit)
{
    for (uint32_t size : {64u, 1088u, UCT_SEP_RING_MAX_SLOT}) {
        make(1, size);
        for (unsigned length = 0; length < (1u << 18); ++length) {
            for (uint32_t other : {0u, 0x1fffu}) {
                uint64_t word = (uint64_t)(((length << 13) | other) ^
                                           UCT_SEP_RING_TAIL_VALID) << 32;
                ASSERT_EQ(length <= m_tx.max_length,
                          uct_sep_ring_word_rest(word) <= m_rx.max_rest)
                        << length;
            }
        }
    }
}

TEST_F(test_sep_ring, every_handler_and_number_of_credits_arrives)
{
    make(1, 64);
    for (unsigned i = 0; i < UCT_SEP_RING_HANDLERS * 256; ++i) {
        uint8_t taken = i / UCT_SEP_RING_HANDLERS, told = m_tx.told, credits;

        m_am_id    = i % UCT_SEP_RING_HANDLERS;
        m_tx.taken = &taken;
        land(post(pattern(i % 57, i)));
        ASSERT_TRUE(is_there());
        EXPECT_EQ(i % 57, take(&credits).size());
        EXPECT_EQ((uint8_t)(taken - told), credits);
        give_back();
    }
}

TEST_F(test_sep_ring, a_message_waits_for_those_by_send_receive_before_it)
{
    make(4, 64);
    land(post({1}));
    uint32_t imm = uct_sep_ring_tx_take_send(&m_tx, 0);
    EXPECT_EQ(2, UCT_SEP_RING_IMM_SEQ(imm));
    uct_sep_ring_tx_take_send(&m_tx, 0);
    land(post({2}));

    ASSERT_TRUE(is_there());
    take();
    EXPECT_FALSE(is_there());
    EXPECT_TRUE(uct_sep_ring_rx_may_wait(&m_rx, *m_rx.tail));
    uct_sep_ring_rx_count_send(&m_rx);
    EXPECT_FALSE(is_there());
    uct_sep_ring_rx_count_send(&m_rx);
    EXPECT_TRUE(is_there());
}

TEST_F(test_sep_ring, numbers_wrap)
{
    make(7, 64);
    for (unsigned i = 0; i < 3 * 65536; ++i) {
        if ((i % 3) == 0) {
            uct_sep_ring_tx_take_send(&m_tx, 0);
            uct_sep_ring_rx_count_send(&m_rx);
        }
        land(post({(uint8_t)i}));
        ASSERT_TRUE(is_there()) << i;
        ASSERT_EQ((uint8_t)i, take()[0]);
        give_back();
    }
}

TEST_F(test_sep_ring, a_wrong_number_is_not_waited_for)
{
    make(4, 64);
    *m_rx.tail = (m_rx.key + 1) | ((uint64_t)UCT_SEP_RING_TAIL_VALID << 32);
    EXPECT_FALSE(is_there());
    EXPECT_FALSE(uct_sep_ring_rx_may_wait(&m_rx, *m_rx.tail));
    *m_rx.tail = 0;
    EXPECT_TRUE(uct_sep_ring_rx_may_wait(&m_rx, *m_rx.tail));
}

TEST_F(test_sep_ring, impossible_rings_are_refused)
{
    static const struct {
        uint64_t address;
        uint32_t slot_size;
        uint16_t slots;
    } bad[] = {
        {4096, 0, 4}, {4096, 32, 4}, {4096, 100, 4}, {4096, 65536, 4},
        {4096, 0xffffffc0, 4}, {4096, 64, 0}, {4096, 64, 129}, {4097, 64, 4}
    };

    for (auto &row : bad) {
        uct_sep_ring_tx_t tx = {};
        uct_sep_ring_offer_t offer = {};

        offer.address   = row.address;
        offer.slot_size = row.slot_size;
        offer.slots     = row.slots;
        uct_sep_ring_tx_close(&tx);
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_sep_ring_tx_open(&tx, &offer, SIZE_MAX, &m_returned));
        EXPECT_FALSE(uct_sep_ring_tx_is_open(&tx));
        EXPECT_LT(tx.left, 0);
    }
}

TEST_F(test_sep_ring, polling_looks_at_open_rings_only)
{
    static uct_sep_ring_word_t words[20] = {};
    uct_sep_ring_poll_t poll;

    ASSERT_EQ(UCS_OK, uct_sep_ring_poll_init(&poll, 18));
    EXPECT_EQ(0u, poll.count);
    EXPECT_EQ(0u, poll.max % UCT_SEP_RING_POLL_TAIL);

    uct_sep_ring_poll_set(&poll, 17, &words[17]);
    EXPECT_EQ(20u, poll.count);
    EXPECT_FALSE(uct_sep_ring_poll_any(poll.places, 20));
    words[17] = 1ull << 63;
    EXPECT_TRUE(uct_sep_ring_poll_any(poll.places, 20));
    EXPECT_FALSE(uct_sep_ring_poll_any(poll.places, 16));

    uct_sep_ring_poll_set(&poll, 2, &words[2]);
    uct_sep_ring_poll_clear(&poll, 17);
    EXPECT_EQ(4u, poll.count);
    EXPECT_FALSE(uct_sep_ring_poll_any(poll.places, 20));
    uct_sep_ring_poll_clear(&poll, 2);
    EXPECT_EQ(0u, poll.count);
    uct_sep_ring_poll_cleanup(&poll);
}

/*
 * Who owns a ring: all schedules of two sides and a wire that keeps the order.
 * Each side may offer, revoke, and post what is due, at any time.
 */

class test_sep_ring_state : public ::testing::Test {
protected:
    struct side {
        uct_sep_ring_state_t state  = {};
        bool                 writes = false; /* As writer, into the other's */
        bool                 lent   = false; /* As owner */
    };

    struct world {
        side                sides[2];
        std::deque<uint8_t> wires[2]; /* To each side */

        std::tuple<std::vector<uint8_t>, std::deque<uint8_t>,
                   std::deque<uint8_t>> key() const
        {
            std::vector<uint8_t> bytes;

            for (auto &s : sides) {
                auto *b = (const uint8_t*)&s.state;
                bytes.insert(bytes.end(), b, b + sizeof(s.state));
                bytes.push_back(s.writes);
                bytes.push_back(s.lent);
            }
            return {bytes, wires[0], wires[1]};
        }
    };

    static void check(const world &w)
    {
        for (int i = 0; i < 2; ++i) {
            /* Nobody writes into memory that is free */
            if (w.sides[1 - i].writes) {
                ASSERT_TRUE(w.sides[i].lent);
            }
            ASSERT_EQ(w.sides[i].state.rx != UCT_SEP_RING_NONE,
                      w.sides[i].lent);
            ASSERT_EQ(w.sides[i].state.tx == UCT_SEP_RING_OPEN,
                      w.sides[i].writes);
            ASSERT_LE(w.wires[i].size(), 8u);
        }
    }

    static bool post(world &w, int i)
    {
        side &s   = w.sides[i];
        auto type = uct_sep_ring_state_due(&s.state);

        if (type == UCT_SEP_RING_MSG_LAST) {
            return false;
        }
        uct_sep_ring_state_sent(&s.state, type);
        s.writes = (s.state.tx == UCT_SEP_RING_OPEN);
        w.wires[1 - i].push_back(type);
        return true;
    }

    static bool receive(world &w, int i, bool accepts)
    {
        side &s = w.sides[i];

        if (w.wires[i].empty()) {
            return false;
        }
        auto type = (uct_sep_ring_msg_type_t)w.wires[i].front();
        w.wires[i].pop_front();
        switch (uct_sep_ring_state_receive(&s.state, type)) {
        case UCT_SEP_RING_ACT_DECIDE:
            uct_sep_ring_state_answer(&s.state, accepts);
            break;
        case UCT_SEP_RING_ACT_FREED:
            s.lent = false;
            break;
        case UCT_SEP_RING_ACT_BAD:
            ADD_FAILURE() << "message " << (int)type << " can't come now";
            break;
        default:
            break;
        }
        return true;
    }

    /* What can happen next, by number; returns whether it can */
    static bool step(world &w, unsigned event)
    {
        int i   = event & 1;
        side &s = w.sides[i];

        switch (event / 2) {
        case 0:
            if (s.state.rx != UCT_SEP_RING_NONE) {
                return false;
            }
            uct_sep_ring_state_offer(&s.state);
            s.lent = true;
            return true;
        case 1:
            if ((s.state.rx == UCT_SEP_RING_NONE) || s.state.is_revoked) {
                return false;
            }
            if (uct_sep_ring_state_revoke(&s.state)) {
                s.lent = false;
            }
            return true;
        case 2:
            return post(w, i);
        case 3:
            return receive(w, i, true);
        default:
            return receive(w, i, false);
        }
    }

    static constexpr unsigned NUM_EVENTS = 10;
};

TEST_F(test_sep_ring_state, memory_is_lent_as_long_as_anybody_writes_into_it)
{
    std::set<decltype(world().key())> seen;
    std::deque<world> queue(1);

    while (!queue.empty() && !HasFailure()) {
        world from = queue.front();
        queue.pop_front();
        for (unsigned event = 0; event < NUM_EVENTS; ++event) {
            world w = from;

            if (!step(w, event)) {
                continue;
            }
            check(w);
            if (HasFatalFailure()) {
                return;
            }
            if (seen.insert(w.key()).second) {
                queue.push_back(w);
            }
        }
    }

    /* All of them, and each side has been everywhere */
    EXPECT_GT(seen.size(), 500u);
    RecordProperty("states", std::to_string(seen.size()));
}

/* From any state, once both only answer: rings that were revoked are free, the
 * others open */
TEST_F(test_sep_ring_state, everything_settles_from_random_states)
{
    for (unsigned run = 0; run < 3000; ++run) {
        std::mt19937 random(seed::get(run));
        world w;

        for (unsigned i = 0; i < 30; ++i) {
            step(w, random() % NUM_EVENTS);
        }
        for (unsigned i = 0; i < 100; ++i) {
            for (int side = 0; side < 2; ++side) {
                post(w, side);
                receive(w, side, true);
            }
        }
        check(w);
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ(0, w.sides[i].state.due);
            ASSERT_TRUE(w.wires[i].empty());
            ASSERT_EQ(w.sides[i].lent, w.sides[1 - i].writes);
            ASSERT_FALSE(w.sides[i].lent && w.sides[i].state.is_revoked);
        }
    }
}

TEST_F(test_sep_ring_state, messages_out_of_turn_are_bad)
{
    uct_sep_ring_state_t none = {};

    for (auto type : {UCT_SEP_RING_MSG_ACCEPT, UCT_SEP_RING_MSG_DECLINE,
                      UCT_SEP_RING_MSG_RELEASE, UCT_SEP_RING_MSG_LAST}) {
        uct_sep_ring_state_t state = none;
        EXPECT_EQ(UCT_SEP_RING_ACT_BAD,
                  uct_sep_ring_state_receive(&state, type)) << type;
    }

    /* Offered, but the peer can't know that yet */
    uct_sep_ring_state_t state = none;
    uct_sep_ring_state_offer(&state);
    EXPECT_EQ(UCT_SEP_RING_ACT_BAD,
              uct_sep_ring_state_receive(&state, UCT_SEP_RING_MSG_ACCEPT));
    uct_sep_ring_state_sent(&state, UCT_SEP_RING_MSG_OFFER);
    EXPECT_EQ(UCT_SEP_RING_ACT_OPENED,
              uct_sep_ring_state_receive(&state, UCT_SEP_RING_MSG_ACCEPT));
    EXPECT_EQ(UCT_SEP_RING_ACT_BAD,
              uct_sep_ring_state_receive(&state, UCT_SEP_RING_MSG_ACCEPT));
    EXPECT_EQ(UCT_SEP_RING_ACT_BAD,
              uct_sep_ring_state_receive(&state, UCT_SEP_RING_MSG_RELEASE))
            << "nobody asked for it";
}

/*
 * Who gets a ring
 */

TEST(test_sep_ring_set, who_sends_far_more_replaces_who_sends_least)
{
    EXPECT_FALSE(uct_sep_ring_set_replaces(100, 0)) << "a few are not enough";
    EXPECT_TRUE(uct_sep_ring_set_replaces(1000, 0));
    EXPECT_FALSE(uct_sep_ring_set_replaces(1000, 1000));
    EXPECT_FALSE(uct_sep_ring_set_replaces(1999, 1000));
    EXPECT_TRUE(uct_sep_ring_set_replaces(2300, 1000));
    EXPECT_FALSE(uct_sep_ring_set_replaces(UINT32_MAX, UINT32_MAX));
}

/* Two that send alike don't take the ring from each other again and again */
TEST(test_sep_ring_set, equals_do_not_replace_each_other)
{
    uct_sep_ring_set_t set;
    uct_sep_ring_score_t scores[2] = {};
    unsigned owner = 0, changes = 0;

    uct_sep_ring_set_init(&set, 1);
    for (unsigned i = 0; i < 10000; ++i) {
        uct_sep_ring_score_add(&scores[owner], &set, 256);
        uct_sep_ring_set_report(&set, &scores[1 - owner], 256);
        if (uct_sep_ring_set_replaces(
                    uct_sep_ring_score_get(&scores[1 - owner], &set),
                    uct_sep_ring_score_get(&scores[owner], &set))) {
            owner = 1 - owner;
            ++changes;
        }
    }
    EXPECT_LE(changes, 1u);
}

TEST(test_sep_ring_set, the_past_is_forgotten)
{
    uct_sep_ring_set_t set;
    uct_sep_ring_score_t was_busy = {}, is_busy = {};
    unsigned reports = 0;

    uct_sep_ring_set_init(&set, 16);
    uct_sep_ring_score_add(&was_busy, &set, 10000000);
    while (!uct_sep_ring_set_replaces(
                   uct_sep_ring_score_get(&is_busy, &set),
                   uct_sep_ring_score_get(&was_busy, &set))) {
        uct_sep_ring_set_report(&set, &is_busy, 256);
        ASSERT_LT(++reports, 10000u);
    }
    EXPECT_GT(reports, 100u);
}

TEST(test_sep_ring_set, scores_do_not_overflow)
{
    uct_sep_ring_set_t set;
    uct_sep_ring_score_t score = {};

    uct_sep_ring_set_init(&set, 1);
    uct_sep_ring_score_add(&score, &set, UINT64_C(1) << 60);
    EXPECT_EQ(UINT32_MAX, uct_sep_ring_score_get(&score, &set));
    set.epoch += 1000;
    EXPECT_EQ(0u, uct_sep_ring_score_get(&score, &set));
}

} /* namespace */
