/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/sep_wqe_fixture.h>
#include <sep/test_sep_uct.h>

#include <uct/ib/sep/progress/sep_cqe.h>
#include <uct/ib/sep/iface/sep_fc.h>

#include <gtest/gtest.h>

#include <cstring>
#include <set>

using namespace sep_wqe_test;
using namespace sep_uct_test;

namespace {

enum {
    WINDOW = 8,
    SOFT   = 4,
    HARD   = 2,
    AM_ID  = 5
};

/* A queue in plain memory; what it receives is said, and what it sends read */
class test_sep_fc : public ::testing::Test {
protected:
    test_sep_fc() : m_f(uct_sep_ops_bf)
    {
        m_f.iface().config.fc = {1, WINDOW, SOFT, HARD};
        uct_sep_fc_start(&m_f.iface(), &m_f.txwq());
    }

    ucs_status_t send()
    {
        return m_f.ops().ep_am_short(m_f.ep(), AM_ID, 0, NULL, 0);
    }

    /* First byte of the last message, which is then completed */
    uint8_t last_id()
    {
        uint16_t pi = m_f.txwq().sw_pi - 1;
        uint8_t id  = m_f.wqe(pi, 1)[20];

        m_f.complete(pi);
        m_f.progress();
        return id;
    }

    uint8_t send_id()
    {
        EXPECT_EQ(UCS_OK, send());
        return last_id();
    }

    int receive(uint8_t am_id)
    {
        uint8_t bits = am_id & UCT_SEP_AM_FC_MASK;

        return uct_sep_cqe_apply_fc(&m_f.iface(), QPN, &bits);
    }

    int32_t window() { return uct_sep_fc_window(&m_f.txwq()); }

    fixture m_f;
};

TEST_F(test_sep_fc, messages_ask_for_grants_and_end_with_the_window)
{
    for (int i = WINDOW; i > 0; --i) {
        EXPECT_EQ(i, window());
        EXPECT_EQ(AM_ID | ((i == SOFT) ? UCT_SEP_AM_FC_SOFT_REQ :
                           (i == HARD) ? UCT_SEP_AM_FC_HARD_REQ : 0),
                  send_id());
    }
    EXPECT_TRUE(uct_sep_fc_is_blocked(&m_f.txwq()));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send());
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send());
    EXPECT_EQ(0, window());
}

TEST_F(test_sep_fc, all_kinds_of_messages_count)
{
    uint8_t data[64] = {};
    uct_iov_t iov    = {data, 10, m_f.memh(), 0, 1};
    auto pack        = [](void*, void*) { return (size_t)10; };

    m_f.no_moderation();
    EXPECT_EQ(UCS_OK, m_f.ops().ep_am_short(m_f.ep(), AM_ID, 0, data, 40));
    EXPECT_EQ(WINDOW - 1, window());
    EXPECT_EQ(UCS_OK, m_f.ops().ep_am_short_iov(m_f.ep(), AM_ID, &iov, 1));
    EXPECT_EQ(WINDOW - 2, window());
    EXPECT_EQ(10, m_f.ops().ep_am_bcopy(m_f.ep(), AM_ID, pack, NULL, 0));
    EXPECT_EQ(WINDOW - 3, window());
    EXPECT_EQ(UCS_INPROGRESS, m_f.ops().ep_am_zcopy(m_f.ep(), AM_ID, NULL, 0,
                                                    &iov, 1, 0, NULL));
    EXPECT_EQ(WINDOW - 4, window());

    /* Those at a threshold ask, whatever their kind */
    uct_sep_fc_start(&m_f.iface(), &m_f.txwq());
    m_f.txwq().fc.left = -1;
    EXPECT_EQ(UCS_OK, m_f.ops().ep_am_short_iov(m_f.ep(), AM_ID, &iov, 1));
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_SOFT_REQ,
              m_f.wqe(m_f.txwq().sw_pi - 1, 1)[20]);
    m_f.txwq().fc.left = -1;
    EXPECT_EQ(UCS_INPROGRESS, m_f.ops().ep_am_zcopy(m_f.ep(), AM_ID, NULL, 0,
                                                    &iov, 1, 0, NULL));
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_HARD_REQ,
              m_f.wqe(m_f.txwq().sw_pi - 1, 1)[20]);
    EXPECT_EQ(HARD - 1, window());
}

TEST_F(test_sep_fc, other_operations_need_no_window)
{
    uint8_t data[8] = {};

    for (int i = 0; i < WINDOW; ++i) {
        send_id();
    }
    EXPECT_EQ(UCS_OK, m_f.ops().ep_put_short(m_f.ep(), data, 8, 0x1000, 1));
    EXPECT_EQ(UCS_INPROGRESS, m_f.ops().ep_flush(m_f.ep(), 0, NULL));
}

TEST_F(test_sep_fc, a_grant_opens_the_window)
{
    for (int i = 0; i < WINDOW; ++i) {
        send_id();
    }
    EXPECT_EQ(0, receive(UCT_SEP_AM_FC_PURE_GRANT));
    EXPECT_EQ(WINDOW, window());
    EXPECT_EQ(AM_ID, send_id());
    EXPECT_EQ(1, receive(UCT_SEP_AM_FC_GRANT | 3));
    EXPECT_EQ(WINDOW, window());
}

TEST_F(test_sep_fc, a_soft_request_is_granted_by_the_next_message)
{
    uint16_t pi = m_f.txwq().sw_pi;

    EXPECT_EQ(1, receive(UCT_SEP_AM_FC_SOFT_REQ | 3));
    EXPECT_EQ(pi, m_f.txwq().sw_pi);
    EXPECT_EQ(WINDOW, window());
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_GRANT, send_id());
    EXPECT_EQ(WINDOW - 1, window());
    EXPECT_EQ(AM_ID, send_id());
}

TEST_F(test_sep_fc, one_message_can_grant_and_ask)
{
    while (window() > HARD) {
        send_id();
    }
    receive(UCT_SEP_AM_FC_SOFT_REQ);
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_GRANT | UCT_SEP_AM_FC_HARD_REQ, send_id());
}

TEST_F(test_sep_fc, a_hard_request_is_granted_at_once_without_a_window)
{
    for (int i = 0; i < WINDOW; ++i) {
        send_id();
    }
    uint16_t pi = m_f.txwq().sw_pi;
    EXPECT_EQ(1, receive(UCT_SEP_AM_FC_HARD_REQ | 3));
    EXPECT_EQ((uint16_t)(pi + 1), m_f.txwq().sw_pi);

    bytes wqe = m_f.wqe(pi, 1);
    EXPECT_EQ(MLX5_OPCODE_SEND, wqe[3]);
    EXPECT_EQ(0x80, wqe[16]); /* inline ... */
    EXPECT_EQ(1, wqe[19]);    /* ... of one byte */
    EXPECT_EQ(UCT_SEP_AM_FC_PURE_GRANT, wqe[20]);
    EXPECT_EQ(0, window());
}

TEST_F(test_sep_fc, a_hard_request_settles_a_soft_one)
{
    receive(UCT_SEP_AM_FC_SOFT_REQ);
    receive(UCT_SEP_AM_FC_HARD_REQ);
    last_id();
    EXPECT_EQ(AM_ID, send_id());
}

TEST_F(test_sep_fc, a_grant_waits_for_credits)
{
    int32_t credits = m_f.txwq().credits;
    uint8_t data[8] = {};

    ASSERT_EQ(UCS_OK, m_f.ops().ep_put_short(m_f.ep(), data, 8, 0x1000, 1));
    m_f.txwq().credits = -1;
    receive(UCT_SEP_AM_FC_HARD_REQ);
    receive(UCT_SEP_AM_FC_HARD_REQ);
    EXPECT_EQ(1, m_f.txwq().sw_pi);
    EXPECT_FALSE(ucs_list_is_empty(&m_f.iface().tx.fc_due));

    m_f.txwq().credits = credits - 1;
    m_f.complete(0);
    m_f.progress();
    EXPECT_EQ(2, m_f.txwq().sw_pi);
    EXPECT_EQ(UCT_SEP_AM_FC_PURE_GRANT, m_f.wqe(1, 1)[20]);
    EXPECT_TRUE(ucs_list_is_empty(&m_f.iface().tx.fc_due));
}

/* The mark asks for nothing, but takes the place of what does */
TEST_F(test_sep_fc, the_first_message_has_a_mark)
{
    uct_sep_fc_announce(&m_f.iface(), &m_f.txwq());
    EXPECT_EQ(WINDOW, window());
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_SOFT_REQ, send_id());
    EXPECT_EQ(WINDOW - 1, window());
    EXPECT_EQ(AM_ID, send_id());
    EXPECT_EQ(WINDOW - 2, window());

    /* A hard request is seen as well, and must not look like a control
     * message */
    m_f.iface().config.fc = {1, 1, 1, 1};
    uct_sep_fc_start(&m_f.iface(), &m_f.txwq());
    uct_sep_fc_announce(&m_f.iface(), &m_f.txwq());
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_HARD_REQ, send_id());
}

TEST_F(test_sep_fc, the_first_message_has_a_mark_without_flow_control)
{
    m_f.iface().config.fc = {0, 1 << 30, 1, 1};
    uct_sep_fc_start(&m_f.iface(), &m_f.txwq());
    uct_sep_fc_announce(&m_f.iface(), &m_f.txwq());
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_SOFT_REQ, send_id());
    EXPECT_EQ(AM_ID, send_id());
}

TEST_F(test_sep_fc, a_mark_is_no_request)
{
    uint16_t pi = m_f.txwq().sw_pi;

    uct_sep_fc_announce(&m_f.iface(), &m_f.txwq());
    m_f.txwq().fc.flags &= ~UCT_SEP_FC_FLAG_FIRST; /* Only the peer's */
    EXPECT_EQ(1, receive(UCT_SEP_AM_FC_SOFT_REQ | 1));
    EXPECT_EQ(pi, m_f.txwq().sw_pi);
    EXPECT_EQ(0, m_f.txwq().fc.flags & UCT_SEP_FC_FLAG_GRANT);

    /* The next one is */
    EXPECT_EQ(1, receive(UCT_SEP_AM_FC_SOFT_REQ | 1));
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_GRANT, send_id());
}

TEST_F(test_sep_fc, a_hard_request_that_comes_first_is_granted)
{
    uct_sep_fc_announce(&m_f.iface(), &m_f.txwq());
    EXPECT_EQ(0, receive(UCT_SEP_AM_FC_PURE_GRANT)); /* No message */
    EXPECT_EQ(1, receive(UCT_SEP_AM_FC_HARD_REQ | 1));
    EXPECT_EQ(UCT_SEP_AM_FC_PURE_GRANT, last_id());
    EXPECT_EQ(1, receive(UCT_SEP_AM_FC_SOFT_REQ | 1));
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_GRANT | UCT_SEP_AM_FC_SOFT_REQ, send_id());
}

TEST_F(test_sep_fc, without_it_nothing_is_asked_for_but_grants_are_given)
{
    m_f.iface().config.fc = {0, 3, 1, 1};
    uct_sep_fc_start(&m_f.iface(), &m_f.txwq());
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(AM_ID, send_id());
    }
    receive(UCT_SEP_AM_FC_SOFT_REQ);
    EXPECT_EQ(AM_ID | UCT_SEP_AM_FC_GRANT, send_id());
    receive(UCT_SEP_AM_FC_HARD_REQ);
    EXPECT_EQ(UCT_SEP_AM_FC_PURE_GRANT, last_id());
}

/* Between processes */
class test_sep_uct_fc : public test_sep_uct {
public:
    ucs_status_t send(uint64_t seq)
    {
        return uct_ep_am_short(ep(), 1, seq, NULL, 0);
    }

protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    uint64_t fill(uint64_t seq)
    {
        uint64_t count = 0;

        while (send(seq + count) == UCS_OK) {
            ++count;
        }
        return count;
    }

    static uint64_t sequence(const message &msg)
    {
        uint64_t seq;

        memcpy(&seq, msg.data.data(), sizeof(seq));
        return seq;
    }

    void connect()
    {
        ASSERT_EQ(UCS_OK, retry([&]() { return send(0); }));
        flush();
        m_local->wait([&]() { return m_peer->num_received() == 1; });
        m_peer->release();
    }

    void expect_peer_received(uint64_t count)
    {
        m_local->wait([&]() { return m_peer->num_received() >= count; });
        ASSERT_EQ(count, m_peer->num_received());
        for (uint64_t i = 0; i < count; ++i) {
            ASSERT_EQ(i, sequence(m_peer->received(i)));
        }
    }
};

TEST_F(test_sep_uct_fc, a_window_is_all_that_is_sent_to_who_does_not_receive)
{
    uint8_t data[8] = {};

    start({{"FC_WND_SIZE", "32"}});
    connect();
    remote_memory remote = m_peer->expose(64, 1);
    m_peer->freeze();
    /* One has been used to connect */
    uint64_t count = fill(0);
    EXPECT_EQ(31u, count);

    /* Neither a request nor anything else is in the way of the rest */
    EXPECT_EQ(UCS_OK, uct_ep_put_short(ep(), data, 8, remote.va,
                                       remote.rkey.rkey));
    flush();
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send(count));
    for (; count < 100; ++count) {
        if (count == 31) {
            (void)m_peer->num_received(); /* Goes on receiving */
        }
        ASSERT_EQ(UCS_OK, retry([&]() { return send(count); }));
    }
    expect_peer_received(100);
}

TEST_F(test_sep_uct_fc, a_connection_survives_without_retries)
{
    start({{"RX_QUEUE_LEN", "8"}, {"RNR_RETRY_COUNT", "0"}});
    connect();
    m_peer->freeze();
    uint64_t count = fill(0);
    EXPECT_EQ(3u, count) << "with the first one, a quarter more, and two, they "
                            "fill the queue";
    flush();
    for (; count < 500; ++count) {
        if (count == 3) {
            (void)m_peer->num_received();
        }
        ASSERT_EQ(UCS_OK, retry([&]() { return send(count); }));
    }
    expect_peer_received(500);
    EXPECT_EQ(0u, m_local->failures.size());
}

TEST_F(test_sep_uct_fc, who_waits_for_a_grant_is_told_that_the_peer_has_gone)
{
    expect_errors errors;

    start({{"FC_WND_SIZE", "4"}, {"TIMEOUT", "10ms"}, {"RETRY_COUNT", "1"}});
    connect();
    m_peer->freeze();
    fill(0);
    m_peer->kill();
    /* Looks whether the peer is there, as UCP does */
    EXPECT_TRUE(m_local->wait([&]() {
        (void)uct_ep_check(ep(), 0, NULL);
        return m_local->failures.size() == 1;
    }));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(send(0)));
}

TEST_F(test_sep_uct_fc, impossible_thresholds_are_refused)
{
    expect_refused({{"FC_HARD_THRESH", "0"}}, {"UCX_SEP_FC_HARD_THRESH=0 "});
    expect_refused({{"FC_HARD_THRESH", "0.6"}},
                   {"UCX_SEP_FC_HARD_THRESH=0.6 "});
    expect_refused({{"FC_SOFT_THRESH", "1"}}, {"UCX_SEP_FC_SOFT_THRESH=1:"});
    expect_refused({{"FC_WND_SIZE", "0"}}, {"UCX_SEP_FC_WND_SIZE=0"});
}

} // namespace
