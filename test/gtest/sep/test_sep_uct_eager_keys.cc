/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_pair.h>

#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/recv/sep_srq.h>

#include <ucs/datastruct/mpool.inl>

using namespace sep_uct_test;

namespace {

/*
 * What a peer may do with our memory, if it knows where that is and guesses a
 * key: nothing with buffers of ours, and with the eager channel's nothing but
 * to write, as long as it has the ring. On mlx5, a key's number is the same for
 * local and remote access (PRM: mkey).
 */
class test_sep_uct_eager_keys : public eager_pair {
protected:
    static uct_rkey_t key_of(uint32_t key)
    {
        return uct_sep_rkey_make(key, key);
    }

    /* The peer's operation fails, and takes its connection with it */
    void expect_refused()
    {
        completion done;

        (void)uct_ep_flush(m_ep[0], 0, &done.comp);
        EXPECT_TRUE(wait([&]() {
            return !m_e[0]->failures.empty() || (done.calls > 0);
        }));
        progress();
        EXPECT_EQ(1u, m_e[0]->failures.size());
    }

    void expect_no_write(void *to, uint32_t key)
    {
        uint64_t value = 0x5a5a5a5a5a5a5a5aull, before;

        memcpy(&before, to, sizeof(before));
        ASSERT_EQ(UCS_OK, uct_ep_put_short(m_ep[0], &value, sizeof(value),
                                           (uintptr_t)to, key_of(key)));
        expect_refused();
        EXPECT_EQ(0, memcmp(&before, to, sizeof(before)));
    }

    void expect_no_read(const void *from, uint32_t key)
    {
        completion done;
        auto unpack = [](void*, const void*, size_t) {};

        ASSERT_EQ(UCS_INPROGRESS,
                  uct_ep_get_bcopy(m_ep[0], unpack, NULL, 8, (uintptr_t)from,
                                   key_of(key), &done.comp));
        expect_refused();
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, done.status);
    }

    void expect_no_atomic(void *to, uint32_t key)
    {
        uint64_t before;

        memcpy(&before, to, sizeof(before));
        ASSERT_EQ(UCS_OK, uct_ep_atomic64_post(m_ep[0], UCT_ATOMIC_OP_ADD, 1,
                                               (uintptr_t)to, key_of(key)));
        expect_refused();
        EXPECT_EQ(0, memcmp(&before, to, sizeof(before)));
    }

    void connect(settings changes = settings())
    {
        make(changes);
        ASSERT_NO_FATAL_FAILURE(must_send(0, pattern(16, 1)));
        ASSERT_TRUE(wait([&]() { return is_quiet(); }));
    }

    /* A receive of ours that is posted */
    uct_sep_rx_desc_t *receive()
    {
        uct_sep_srq_t &srq = sep(1)->srq;

        for (unsigned i = 0;; ++i) {
            if (srq.descs[i] != NULL) {
                return srq.descs[i];
            }
        }
    }
};

/* Or messages would be lost with the ring, and nobody would know */
TEST_F(test_sep_uct_eager_keys, a_ring_comes_back_with_all_its_messages)
{
    uct_sep_ring_body_t body = {};
    expect_errors errors;

    make();
    ASSERT_NO_FATAL_FAILURE(open_ring());
    for (int lack : {-1, 1, 0}) {
        body.release.seq = uct_sep_ring_rx_seq(&ring()->rx) + lack;
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_sep_eager_receive(
                          sep(1), txwq(1), UCT_SEP_RING_MSG_RELEASE, &body,
                          uct_sep_ring_body_size(UCT_SEP_RING_MSG_RELEASE)));
        EXPECT_EQ((lack != 0) ? 1u : 0u,
                  errors.count(UCS_LOG_LEVEL_ERROR,
                               "that lacks some of its messages"));
        EXPECT_EQ((lack != 0) ? 0u : 1u,
                  errors.count(UCS_LOG_LEVEL_ERROR, "out of turn"));
        errors.messages.clear();
    }

    /* It is there still */
    ASSERT_NO_FATAL_FAILURE(must_send(0, pattern(16, 7)));
    ASSERT_TRUE(wait([&]() { return is_quiet(); }));
}

/* What comes on it counts, but nothing can be sent */
TEST_F(test_sep_uct_eager_keys, a_failed_connection_is_not_answered)
{
    uct_sep_ring_body_t body = {};

    make();
    ASSERT_NO_FATAL_FAILURE(open_ring());
    uct_sep_txwq_t *failed = txwq(1);
    uct_sep_link_fail(sep(1), failed, UCS_ERR_CONNECTION_RESET);
    uint16_t posted = failed->sw_pi;

    body.offer.slot_size = UCT_SEP_RING_SLOT_ALIGN;
    body.offer.slots     = UCT_SEP_RING_MAX_SLOTS;
    EXPECT_EQ(UCS_OK,
              uct_sep_eager_receive(
                      sep(1), failed, UCT_SEP_RING_MSG_OFFER, &body,
                      uct_sep_ring_body_size(UCT_SEP_RING_MSG_OFFER)));
    EXPECT_EQ(posted, failed->sw_pi);
}

/* What is read of a body is what has come */
TEST_F(test_sep_uct_eager_keys, control_messages_have_their_own_length)
{
    uct_sep_ring_body_t body = {};
    expect_errors errors;

    make();
    ASSERT_NO_FATAL_FAILURE(open_ring());
    for (unsigned type = 0; type < UCT_SEP_RING_MSG_LAST; ++type) {
        size_t length = uct_sep_ring_body_size((uct_sep_ring_msg_type_t)type);

        for (size_t other : {length - 1, length + 1, sizeof(body) + 1}) {
            if (other > sizeof(body) + 1) {
                continue; /* Nothing is shorter than an empty one */
            }
            EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                      uct_sep_eager_receive(sep(1), txwq(1), type, &body,
                                            other));
            EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_ERROR,
                                       "of a wrong length")) << type;
            errors.messages.clear();
        }
    }

    ASSERT_NO_FATAL_FAILURE(must_send(0, pattern(16, 7)));
    ASSERT_TRUE(wait([&]() { return is_quiet(); }));
}

/* They would be written into where nothing is */
TEST_F(test_sep_uct_eager_keys, rings_that_can_not_be_are_not_accepted)
{
    const uct_sep_ring_offer_t bad[] = {
        {0x1000, 1, 0, 4}, {0x1000, 1, 64, 0}, {0x1000, 1, 63, 4}
    };
    uct_sep_ring_body_t body = {};
    expect_errors errors;

    connect();
    ASSERT_FALSE(has_ring());
    for (auto &offer : bad) {
        body.offer = offer;
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_sep_eager_receive(
                          sep(0), txwq(0), UCT_SEP_RING_MSG_OFFER, &body,
                          uct_sep_ring_body_size(UCT_SEP_RING_MSG_OFFER)));
        EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_ERROR, "that can't be"));
        errors.messages.clear();
        ASSERT_FALSE(has_ring());
        txwq(0)->eager->state = {};
    }
}

/* There are so many, and peers come and go */
TEST_F(test_sep_uct_eager_keys, a_counter_comes_back_with_its_connection)
{
    auto num_counters = [&]() {
        unsigned num = 0;

        for (uint64_t map : sep(0)->eager.counter_map) {
            num += ucs_popcount(map);
        }
        return num;
    };

    make();
    for (unsigned i = 0; i < 3; ++i) {
        ASSERT_NO_FATAL_FAILURE(open_ring());
        EXPECT_EQ(1u, num_counters());

        uct_sep_link_fail(sep(0), txwq(0), UCS_ERR_CONNECTION_RESET);
        ASSERT_TRUE(wait([&]() { return m_e[0]->failures.size() > i; }));
        m_e[0]->destroy(m_ep[0]);
        ASSERT_TRUE(wait([&]() { return m_e[0]->num_qps() == 0; }));
        EXPECT_EQ(0u, num_counters());
        m_e[1]->destroy(m_ep[1]);
        for (unsigned j = 0; j < 2; ++j) {
            m_ep[j] = m_e[j]->connect(m_e[1 - j]->addr());
        }
    }
}

TEST_F(test_sep_uct_eager_keys, receives_can_not_be_written)
{
    connect();
    expect_no_write(receive() + 1, receive()->lkey);
}

TEST_F(test_sep_uct_eager_keys, receives_can_not_be_read)
{
    connect();
    expect_no_read(receive() + 1, receive()->lkey);
}

TEST_F(test_sep_uct_eager_keys, copies_that_are_sent_can_not_be_written)
{
    connect();
    auto *desc = (uct_sep_desc_t*)ucs_mpool_get(&sep(1)->tx.desc_mp);
    ASSERT_NE((void*)NULL, desc);
    expect_no_write(uct_sep_desc_buffer(desc), uct_sep_desc_lkey(desc));
    ucs_mpool_put(desc);
}

TEST_F(test_sep_uct_eager_keys, results_of_atomics_can_not_be_changed)
{
    connect();
    uct_sep_desc_t *desc = sep(1)->tx.scratch;
    expect_no_atomic(uct_sep_desc_buffer(desc), uct_sep_desc_lkey(desc));
}

TEST_F(test_sep_uct_eager_keys, a_ring_can_not_be_read)
{
    make();
    open_ring();
    expect_no_read(ring()->rx.first, be32toh(txwq(0)->ring.rkey));
}

TEST_F(test_sep_uct_eager_keys, a_ring_can_not_be_changed_by_atomics)
{
    make();
    open_ring();
    expect_no_atomic(ring()->rx.last, be32toh(txwq(0)->ring.rkey));
}

TEST_F(test_sep_uct_eager_keys, a_counter_can_not_be_read)
{
    make();
    open_ring();

    /* The owner of the ring writes the counter: ask in its place */
    uct_sep_ring_accept_t to = txwq(1)->eager->return_to;
    std::swap(m_e[0], m_e[1]);
    std::swap(m_ep[0], m_ep[1]);
    expect_no_read((void*)to.address, to.rkey);
    std::swap(m_e[0], m_e[1]);
    std::swap(m_ep[0], m_ep[1]);
}

/* It is somebody else's then */
TEST_F(test_sep_uct_eager_keys, who_has_given_a_ring_back_can_not_write_into_it)
{
    make();
    open_ring();
    uint32_t key = be32toh(txwq(0)->ring.rkey);
    void *place  = ring()->rx.first;

    (void)uct_sep_eager_prepare_sleep(sep(1));
    ASSERT_TRUE(wait([&]() { return sep(1)->eager.num_rings == 0; }));
    ASSERT_FALSE(has_ring());
    expect_no_write(place, key);
}

/* Nor into that of another peer, whose key is another one */
TEST_F(test_sep_uct_eager_keys, each_ring_has_a_key_of_its_own)
{
    make();
    open_ring();
    uint32_t key      = be32toh(txwq(0)->ring.rkey);
    uint64_t next_one = txwq(0)->ring.last_end;

    expect_no_write((void*)next_one, key);
}

} /* namespace */
