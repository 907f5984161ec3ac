/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/sep_wqe_fixture.h>
#include <sep/test_sep_uct.h>

#include <uct/ib/sep/iface/sep_postlist.h>
#include <uct/ib/sep/iface/sep_stack.h>
#include <uct/ib/sep/open/sep_iface_open.h>
#include <uct/ib/sep/progress/sep_progress.h>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

using namespace sep_wqe_test;
using namespace sep_uct_test;

namespace {

const uint64_t remote_addr = 0x0123456789abcdefull;
const uct_rkey_t rkey      = 0xfedcba98;

/* Bytes of the queue, the doorbell record and the doorbell */
class test_sep_postlist : public ::testing::Test {
protected:
    test_sep_postlist() : m_f(uct_sep_ops_list)
    {
        memset(m_data, 0x5a, sizeof(m_data));
        m_f.iface().config.postlist = 4;
        m_f.iface().tx.post         = UCT_SEP_TX_POST_BF;
        uct_sep_stack_set(&m_f.iface(), UCT_SEP_STACK_POLL,
                          uct_sep_progress_buf);
        uct_sep_stack_set(&m_f.iface(), UCT_SEP_STACK_LISTS,
                          uct_sep_postlist_progress);
        m_rung = m_f.dbrec();
    }

    void put(unsigned length = 8)
    {
        ASSERT_EQ(UCS_OK,
                  m_f.ops().ep_put_short(m_f.ep(), m_data, length, remote_addr,
                                         rkey));
    }

    bool is_rung() { return m_f.dbrec() == m_f.txwq().sw_pi; }

    void expect_none_waits()
    {
        EXPECT_TRUE(is_rung());
        EXPECT_EQ(0, m_f.txwq().list_count);
        EXPECT_TRUE(ucs_list_is_empty(&m_f.iface().tx.unrung));
    }

    /* Doorbell buffer index starts with the work request at pi, and no more
     * than length bytes of it were written */
    void expect_doorbell(unsigned index, uint16_t pi, size_t length)
    {
        bytes wqe = m_f.wqe(pi, (length + 63) / 64);
        bytes bf  = m_f.bf(index, BF_SIZE);

        EXPECT_EQ(bytes(wqe.begin(), wqe.begin() + length),
                  bytes(bf.begin(), bf.begin() + length));
        EXPECT_EQ(bytes(bf.size() - length, 0xcc),
                  bytes(bf.begin() + length, bf.end()));
    }

    fixture  m_f;
    uint8_t  m_data[256];
    uint32_t m_rung;
};

TEST_F(test_sep_postlist, a_list_is_rung_for_once_by_its_last_work_request)
{
    for (unsigned i = 0; i < 3; ++i) {
        put();
        EXPECT_EQ(m_rung, m_f.dbrec());
    }
    expect_doorbell(0, 0, 0);
    put();
    expect_none_waits();
    EXPECT_EQ(4u, m_f.dbrec());
    expect_doorbell(0, 3, 8);

    m_f.complete(3);
    EXPECT_EQ(1u, m_f.progress());
    put();
    put();
    put();
    put(100); /* of 3 BBs */
    expect_none_waits();
    EXPECT_EQ(10u, m_f.dbrec());
    expect_doorbell(1, 7, 8);
}

TEST_F(test_sep_postlist, a_single_work_request_comes_with_the_doorbell)
{
    put(100);
    uct_sep_postlist_ring_any(&m_f.iface());
    expect_none_waits();
    expect_doorbell(0, 0, 3 * 64);
}

TEST_F(test_sep_postlist,
       a_single_work_request_does_not_if_only_doorbells_are_used)
{
    m_f.iface().tx.post = UCT_SEP_TX_POST_DB;
    put(100);
    uct_sep_postlist_ring_any(&m_f.iface());
    expect_none_waits();
    expect_doorbell(0, 0, 8);
}

TEST_F(test_sep_postlist, progress_rings_for_what_waits)
{
    put();
    EXPECT_FALSE(is_rung());
    EXPECT_EQ(0u, uct_sep_postlist_progress(&m_f.iface().super.super));
    expect_none_waits();
}

TEST_F(test_sep_postlist, progress_rings_for_what_callbacks_post)
{
    static std::function<void()> post;
    uct_completion_t comp = {[](uct_completion_t*) { post(); }, 1, UCS_OK};
    uct_iov_t iov         = {m_data, 10, m_f.memh(), 0, 1};

    post = [this]() { put(); };
    ASSERT_EQ(UCS_INPROGRESS,
              m_f.ops().ep_put_zcopy(m_f.ep(), &iov, 1, remote_addr, rkey,
                                     &comp));
    m_f.complete(0);
    EXPECT_EQ(1u, uct_sep_postlist_progress(&m_f.iface().super.super));
    EXPECT_EQ(2, m_f.txwq().sw_pi);
    expect_none_waits();
}

TEST_F(test_sep_postlist, an_endpoint_flush_rings)
{
    put();
    EXPECT_EQ(UCS_INPROGRESS, m_f.ops().ep_flush(m_f.ep(), 0, NULL));
    expect_none_waits();

    /* Also if it has nothing to post itself: this one asks for a completion */
    uct_completion_t *comp = m_f.comp();
    ASSERT_EQ(UCS_INPROGRESS,
              m_f.ops().ep_get_bcopy(m_f.ep(), NULL, NULL, 8, remote_addr, rkey,
                                     comp));
    EXPECT_FALSE(is_rung());
    EXPECT_EQ(UCS_INPROGRESS, m_f.ops().ep_flush(m_f.ep(), 0, NULL));
    expect_none_waits();
}

TEST_F(test_sep_postlist, an_interface_flush_rings)
{
    put();
    uct_sep_iface_flush(&m_f.iface().super.super, 0, NULL);
    EXPECT_TRUE(is_rung());
}

TEST_F(test_sep_postlist, a_fence_of_the_interface_rings)
{
    put();
    EXPECT_EQ(UCS_OK, uct_sep_iface_fence(&m_f.iface().super.super, 0));
    EXPECT_TRUE(is_rung());
}

TEST_F(test_sep_postlist, a_fence_of_an_endpoint_rings)
{
    put();
    EXPECT_EQ(UCS_OK, uct_sep_ep_fence(m_f.ep(), 0));
    expect_none_waits();
}

TEST_F(test_sep_postlist, what_follows_a_fence_is_in_a_list_again)
{
    put();
    EXPECT_EQ(UCS_OK, uct_sep_ep_fence(m_f.ep(), 0));
    put(); /* brings the fence's work request */
    put();
    EXPECT_FALSE(is_rung());
    EXPECT_EQ(4, m_f.txwq().sw_pi);
    uct_sep_postlist_progress(&m_f.iface().super.super);
    expect_none_waits();
}

TEST_F(test_sep_postlist, credits_are_taken_before_the_doorbell)
{
    put();
    put(100); /* of 3 BBs */
    EXPECT_FALSE(is_rung());
    EXPECT_EQ(m_f.txwq().bb_max - 4, m_f.txwq().credits);
    EXPECT_EQ(NUM_CQE - 4, m_f.iface().tx.cq_credits);
}

TEST_F(test_sep_postlist, running_out_of_credits_rings)
{
    m_f.iface().config.postlist = 1000;
    while (m_f.txwq().credits >= 0) {
        put();
    }
    EXPECT_FALSE(is_rung());
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              m_f.ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr, rkey));
    expect_none_waits();
}

TEST_F(test_sep_postlist, what_must_be_sent_at_once_is)
{
    put();
    m_f.ops().post_empty(&m_f.iface(), &m_f.txwq(), 1, UCT_SEP_FM_SIGNALED);
    expect_none_waits();
}

TEST_F(test_sep_postlist, moderation_counts_inside_lists)
{
    int moderation = m_f.txwq().bb_max / UCT_SEP_MAX_BB;

    m_f.iface().config.postlist = 1000;
    for (int i = 1; i <= 2 * moderation; ++i) {
        put();
        EXPECT_EQ((i % moderation) ? 0 : UCT_SEP_FM_SIGNALED,
                  m_f.wqe(i - 1, 1)[11]) << i;
    }
}

/* Between processes */
class test_sep_uct_postlist : public test_sep_uct {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        start({{"TX_POSTLIST", "1000"}}, 3);
        for (unsigned i = 0; i < 3; ++i) {
            ASSERT_EQ(UCS_OK, retry([&]() { return send(i, 0); }));
        }
        flush();
        for (unsigned i = 0; i < 3; ++i) {
            m_local->wait([&]() { return m_peer->num_received(i) == 1; });
            m_peer->release(i);
        }
    }

    ucs_status_t send(unsigned i, uint64_t seq)
    {
        return uct_ep_am_short(ep(i), 1, seq, NULL, 0);
    }

    /* What this side does not progress any more the peer receives none the
     * less */
    void expect_received(unsigned i, uint64_t count)
    {
        while (m_peer->num_received(i) < count) {
        }
        EXPECT_EQ(count, m_peer->num_received(i));
    }
};

TEST_F(test_sep_uct_postlist, one_progress_rings_for_several_connections)
{
    for (uint64_t seq = 0; seq < 5; ++seq) {
        for (unsigned i = 0; i < 3; ++i) {
            ASSERT_EQ(UCS_OK, send(i, seq));
        }
    }
    EXPECT_EQ(3u, ucs_list_length(&m_local->sep()->tx.unrung));
    m_local->progress();
    for (unsigned i = 0; i < 3; ++i) {
        expect_received(i, 5);
    }
}

TEST_F(test_sep_uct_postlist, a_destroyed_endpoint_has_sent)
{
    for (unsigned i = 0; i < 3; ++i) {
        ASSERT_EQ(UCS_OK, send(i, 0));
    }
    m_local->destroy(ep(0));
    for (unsigned i = 0; i < 3; ++i) {
        expect_received(i, 1);
    }
}

TEST_F(test_sep_uct_postlist, who_sleeps_has_sent)
{
    int fd;

    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(m_local->iface(), &fd));
    ASSERT_EQ(UCS_OK, send(1, 0));
    (void)uct_iface_event_arm(m_local->iface(), UCT_EVENT_RECV);
    expect_received(1, 1);
}

TEST_F(test_sep_uct_postlist, a_lost_connection_ends_what_was_not_rung_for)
{
    completion comp;
    memory mem(m_local->md(), 64);
    uct_iov_t iov = {mem.ptr(), 64, mem.memh(), 0, 1};

    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_am_zcopy(ep(0), 1, NULL, 0, &iov, 1, 0, &comp.comp));
    ASSERT_EQ(UCS_OK, send(0, 1));
    m_peer->kill();
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait(comp)));
    EXPECT_TRUE(m_local->wait([&]() { return m_local->failures.size() > 0; }));
    EXPECT_TRUE(ucs_list_is_empty(&m_local->sep()->tx.unrung));
}

TEST_F(test_sep_uct_postlist, a_flush_that_cancels_leaves_nothing)
{
    completion comp;
    memory mem(m_local->md(), 64);
    uct_iov_t iov = {mem.ptr(), 64, mem.memh(), 0, 1};

    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_am_zcopy(ep(0), 1, NULL, 0, &iov, 1, 0, &comp.comp));
    EXPECT_EQ(UCS_OK, uct_ep_flush(ep(0), UCT_FLUSH_FLAG_CANCEL, NULL));
    EXPECT_EQ(UCS_ERR_CANCELED, wait(comp));
    EXPECT_TRUE(ucs_list_is_empty(&m_local->sep()->tx.unrung));
}

} // namespace
