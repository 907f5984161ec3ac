/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_hub_two.h>

#include <functional>
#include <memory>
#include <vector>

using namespace sep_uct_test;

namespace {

/*
 * Operations of workers that share a connection (category mpi_threads), when
 * they are flushed, cancelled, or finished by whoever polls. The peer has few
 * receive buffers, so that what is sent stays under way while it is frozen.
 */
class test_sep_hub_ops : public test_sep_hub_two {
protected:
    void SetUp() override
    {
        test_sep_hub_two::SetUp();
        if (m_other_ep != nullptr) {
            m_memory.reset(new memory(m_local->md(), 4096));
        }
    }

    void TearDown() override
    {
        m_memory.reset();
        test_sep_hub_two::TearDown();
    }

    /* More than the peer has buffers for */
    void block()
    {
        m_peer->freeze();
        for (unsigned i = 0; i < 40; ++i) {
            must_send(*m_local, ep());
        }
    }

    void unblock()
    {
        (void)m_peer->num_received();
    }

    void am_zcopy(uct_ep_h ep, completion &comp)
    {
        uct_iov_t iov = {m_memory->ptr(), 64, m_memory->memh(), 0, 1};
        char header   = 0;

        ASSERT_EQ(UCS_INPROGRESS, uct_ep_am_zcopy(ep, 1, &header, 1, &iov, 1, 0,
                                                  &comp.comp));
    }

    void get_zcopy(uct_completion_t *comp)
    {
        uct_iov_t iov = {m_memory->ptr(), 4096, m_memory->memh(), 0, 1};

        ASSERT_EQ(UCS_INPROGRESS, uct_ep_get_zcopy(ep(), &iov, 1, m_remote.va,
                                                   m_remote.rkey.rkey, comp));
    }

    /* The other worker has found out that an operation of the first is done,
     * which has not looked yet */
    void wait_for_mail()
    {
        m_other->wait([&]() {
            return !ucs_queue_is_empty(&hub_iface(*m_local)->mail.done);
        });
    }

    std::unique_ptr<memory> m_memory;
};

TEST_F(test_sep_hub_ops, who_destroys_an_endpoint_cancels_what_is_under_way)
{
    completion cancelled, kept;

    block();
    am_zcopy(ep(), cancelled);
    am_zcopy(m_other_ep, kept);
    m_local->destroy(ep());
    EXPECT_EQ(1u, cancelled.calls);
    EXPECT_EQ(UCS_ERR_CANCELED, cancelled.status);
    EXPECT_EQ(0u, kept.calls);

    unblock();
    m_other->wait([&]() { return kept.calls > 0; });
    EXPECT_EQ(UCS_OK, kept.status);
    /* Nobody waits for it any more */
    EXPECT_TRUE(m_local->flush());
    EXPECT_EQ(1u, cancelled.calls);
    EXPECT_TRUE(m_other->failures.empty());
}

TEST_F(test_sep_hub_ops, who_destroys_an_endpoint_gets_what_is_done)
{
    struct result {
        bytes    data;
        unsigned calls = 0;
    } got;
    completion zcopy, bcopy;

    get_zcopy(&zcopy.comp);
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_get_bcopy(ep(), [](void *arg, const void *data,
                                        size_t length) {
        result *self = (result*)arg;

        self->data.assign((uint8_t*)data, (uint8_t*)data + length);
        ++self->calls;
    }, &got, 100, m_remote.va, m_remote.rkey.rkey, &bcopy.comp));
    wait_for_mail();
    m_other->wait([&]() {
        return ucs_queue_length(&hub_iface(*m_local)->mail.done) == 2;
    });
    EXPECT_EQ(0u, zcopy.calls + bcopy.calls + got.calls);

    m_local->destroy(ep());
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(1u, zcopy.calls);
        EXPECT_EQ(UCS_OK, zcopy.status);
        EXPECT_EQ(1u, bcopy.calls);
        EXPECT_EQ(UCS_OK, bcopy.status);
        EXPECT_EQ(1u, got.calls);
        m_local->progress();
    }
    bytes expected = pattern(4096, 5);
    EXPECT_EQ(expected, bytes(m_memory->ptr(), m_memory->ptr() + 4096));
    expected.resize(100);
    EXPECT_EQ(expected, got.data);
    EXPECT_TRUE(m_local->flush());
}

/* In the mail there is an operation still, although nothing is under way */
TEST_F(test_sep_hub_ops, a_flush_comes_behind_operations_that_others_finished)
{
    std::vector<int> order;
    struct step {
        uct_completion_t      comp;
        std::function<void()> func;
    } get, flushed;

    for (auto *each : {&get, &flushed}) {
        each->comp.count  = 1;
        each->comp.status = UCS_OK;
        each->comp.func   = [](uct_completion_t *self) {
            EXPECT_EQ(UCS_OK, self->status);
            ucs_container_of(self, step, comp)->func();
        };
    }
    get.func     = [&]() { order.push_back(1); };
    flushed.func = [&]() { order.push_back(2); };

    get_zcopy(&get.comp);
    wait_for_mail();
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep(), 0, &flushed.comp));
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_local->iface(), 0, NULL));
    EXPECT_TRUE(order.empty());
    m_local->progress();
    EXPECT_EQ((std::vector<int>{1, 2}), order);
    EXPECT_EQ(UCS_OK, uct_ep_flush(ep(), 0, NULL));
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_local->iface(), 0, NULL));
}

TEST_F(test_sep_hub_ops, a_flush_waits_for_the_worker_s_own_operations)
{
    completion mine, theirs, flushed;

    block();
    am_zcopy(ep(), mine);
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_other->iface(), 0, NULL))
            << "it has nothing under way";
    am_zcopy(m_other_ep, theirs);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep(), 0, &flushed.comp));
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_local->iface(), 0, NULL));
    for (unsigned i = 0; i < 100; ++i) {
        m_local->progress();
        m_other->progress();
    }
    EXPECT_EQ(0u, mine.calls + theirs.calls + flushed.calls);

    unblock();
    m_local->wait([&]() { return flushed.calls > 0; });
    EXPECT_EQ(UCS_OK, flushed.status);
    EXPECT_EQ(1u, mine.calls);
    EXPECT_EQ(UCS_OK, mine.status);
    m_other->wait([&]() { return theirs.calls > 0; });
    EXPECT_EQ(UCS_OK, theirs.status);
    EXPECT_EQ(1u, flushed.calls);
    EXPECT_TRUE(m_other->flush());
}

/* It would stop the queue pair, which others use */
TEST_F(test_sep_hub_ops, nobody_cancels_what_others_have_under_way)
{
    completion mine, theirs, flushed;

    block();
    am_zcopy(ep(), mine);
    am_zcopy(m_other_ep, theirs);
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep(), UCT_FLUSH_FLAG_CANCEL,
                                           &flushed.comp));
    EXPECT_EQ(0u, mine.calls);

    unblock();
    m_local->wait([&]() { return flushed.calls > 0; });
    m_other->wait([&]() { return theirs.calls > 0; });
    EXPECT_EQ(1u, mine.calls);
    EXPECT_EQ(UCS_OK, mine.status);
    EXPECT_EQ(UCS_OK, theirs.status);
    EXPECT_TRUE(m_local->failures.empty());
    EXPECT_TRUE(m_other->failures.empty());
    must_send(*m_other, m_other_ep);
    EXPECT_TRUE(m_other->flush());
}

TEST_F(test_sep_hub_ops, who_is_alone_cancels_and_the_next_endpoint_works)
{
    completion mine;

    m_other->destroy(m_other_ep);
    block();
    am_zcopy(ep(), mine);
    EXPECT_EQ(UCS_OK, uct_ep_flush(ep(), UCT_FLUSH_FLAG_CANCEL, NULL));
    EXPECT_EQ(1u, mine.calls);
    EXPECT_EQ(UCS_ERR_CANCELED, mine.status);
    for (unsigned i = 0; i < 100; ++i) {
        m_local->progress();
    }
    EXPECT_EQ(1u, mine.calls);
    EXPECT_TRUE(m_local->failures.empty()) << "it was asked for";

    unblock();
    uct_ep_h next = m_other->connect(m_peer->addr());
    must_send(*m_other, next);
    EXPECT_TRUE(m_other->flush());
    EXPECT_TRUE(m_local->flush());
}

/* In front of it in the queue is what another one has under way */
TEST_F(test_sep_hub_ops, a_flush_waits_for_a_check)
{
    block();
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_other->iface(), 0, NULL));
    ASSERT_EQ(UCS_OK, uct_ep_check(m_other_ep, 0, NULL));
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_other->iface(), 0, NULL));
    unblock();
    EXPECT_TRUE(m_other->flush());
    EXPECT_TRUE(m_local->flush());
}

/* There is nothing to unpack */
TEST_F(test_sep_hub_ops, what_has_failed_has_no_result)
{
    uint64_t fetched = 7;
    unsigned calls   = 0;
    completion get, fetch;
    expect_errors hidden;
    uct_rkey_t wrong = wrong_rkey(m_remote.rkey.rkey);

    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_get_bcopy(ep(), [](void *arg, const void*, size_t) {
        ++*(unsigned*)arg;
    }, &calls, 100, m_remote.va, wrong, &get.comp));
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_atomic64_fetch(ep(), UCT_ATOMIC_OP_ADD, 1, &fetched,
                                    m_remote.va, wrong, &fetch.comp));
    EXPECT_TRUE(m_local->wait([&]() {
        return (get.calls > 0) && (fetch.calls > 0);
    }));
    EXPECT_NE(UCS_OK, get.status);
    EXPECT_NE(UCS_OK, fetch.status);
    EXPECT_EQ(0u, calls);
    EXPECT_EQ(7u, fetched);
    EXPECT_TRUE(m_other->wait([&]() { return !m_other->failures.empty(); }));
}

TEST_F(test_sep_hub_ops, results_have_their_own_size)
{
    const uint32_t guard = 0x5a5a5a5a;
    uint32_t result[2]   = {guard, guard}, before;
    bytes data           = pattern(4096, 5);
    completion add, swap;

    if (m_local->is_verbs()) {
        GTEST_SKIP() << "libibverbs has no atomic operations of 4 bytes";
    }

    memcpy(&before, data.data(), sizeof(before));
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_atomic32_fetch(ep(), UCT_ATOMIC_OP_ADD, 1, &result[0],
                                    m_remote.va, m_remote.rkey.rkey,
                                    &add.comp));
    EXPECT_TRUE(m_local->wait([&]() { return add.calls > 0; }));
    EXPECT_EQ(before, result[0]);
    EXPECT_EQ(guard, result[1]);

    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_atomic_cswap32(ep(), before + 1, before, m_remote.va,
                                    m_remote.rkey.rkey, &result[0],
                                    &swap.comp));
    EXPECT_TRUE(m_local->wait([&]() { return swap.calls > 0; }));
    EXPECT_EQ(before + 1, result[0]);
    EXPECT_EQ(guard, result[1]);
}

/* Neither what is complete, nor what the connection had no room for */
TEST_F(test_sep_hub_ops, operations_that_are_over_keep_no_connection)
{
    auto *peer = hub_ep(ep())->peer;
    completion done, refused;
    uct_iov_t iov = {m_memory->ptr(), 64, m_memory->memh(), 0, 1};
    unsigned num_peers = kh_size(&hub(*m_local)->peers);

    ASSERT_EQ(2u, peer->refcount);
    am_zcopy(ep(), done);
    EXPECT_EQ(3u, peer->refcount);
    while (uct_ep_am_short(m_other_ep, 1, 0, NULL, 0) == UCS_OK);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              uct_ep_put_zcopy(ep(), &iov, 1, m_remote.va, m_remote.rkey.rkey,
                               &refused.comp));
    EXPECT_EQ(3u, peer->refcount);
    EXPECT_TRUE(m_local->flush());
    EXPECT_TRUE(m_other->flush());
    EXPECT_EQ(1u, done.calls);
    EXPECT_EQ(2u, peer->refcount);

    m_local->destroy(ep());
    EXPECT_EQ(1u, peer->refcount);
    m_other->destroy(m_other_ep);
    EXPECT_EQ(num_peers - 1, kh_size(&hub(*m_local)->peers));
}

} // namespace
