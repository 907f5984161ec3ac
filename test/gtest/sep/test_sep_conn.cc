/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_conn_model.h>

#include <algorithm>
#include <cstring>

using namespace sep_conn_model;

namespace {

class test_sep_conn : public test_conn, protected conn_pair {
};

} // namespace


TEST_F(test_sep_conn, fits_next_to_an_endpoint_in_256_bytes)
{
    EXPECT_LE(sizeof(uct_sep_conn_t), 112u);
}

TEST_F(test_sep_conn, connects_with_three_packets)
{
    a.start(ab);
    EXPECT_EQ(UCT_SEP_CONN_STATE_REQ_SENT, ab.super.state);
    ASSERT_EQ(1u, w.wire.size());

    auto req = take();
    b.receive(req);
    EXPECT_EQ(UCT_SEP_CONN_STATE_REP_SENT, ba().super.state);
    EXPECT_EQ(0u, ba().established) << "passive side may not send yet";
    ASSERT_EQ(1u, w.wire.size());

    auto rep = take();
    a.receive(rep);
    EXPECT_EQ(1u, ab.established);
    EXPECT_EQ(0u, ba().established);
    ASSERT_EQ(1u, w.wire.size());

    auto rtu = take();
    b.receive(rtu);
    EXPECT_EQ(1u, ba().established);
    EXPECT_TRUE(w.wire.empty());

    w.expect_connected(0, 1);
    EXPECT_EQ(2u, w.qps.size());
}

TEST_F(test_sep_conn, the_peers_qp_is_passed_on_unchanged)
{
    connect();

    uct_sep_conn_qp_info_t seen = ba().remote;
    uct_sep_conn_qp_info_t sent = ab.super.local;
    EXPECT_EQ(0, memcmp(&seen, &sent, sizeof(seen)));
}

/* It sent itself requests, which it does not answer, until it gave up */
TEST_F(test_sep_conn, oneself_comes_back_if_it_is_wanted_while_given_up)
{
    model_conn &aa = a.conn(a.self);
    uct_sep_conn_out_t out;

    a.start(aa);
    uct_sep_conn_disconnect(&a.env, &aa.super, 0, w.now, &out);
    EXPECT_EQ(UCT_SEP_CONN_STATE_RESETTING, aa.super.state);
    EXPECT_EQ(UCS_INPROGRESS,
              uct_sep_conn_start(&a.env, &aa.super, w.now, &out));
    a.reset(aa);
    EXPECT_EQ(UCT_SEP_CONN_STATE_CONNECTED, aa.super.state);
    EXPECT_EQ(2u, aa.established);
    EXPECT_EQ(1u, w.alive_qps(a));
    EXPECT_TRUE(w.wire.empty());
}

TEST_F(test_sep_conn, oneself_reports_why_it_could_not_be_connected)
{
    uct_sep_conn_out_t out;

    a.create_failures = 1;
    EXPECT_EQ(UCS_ERR_NO_MEMORY, uct_sep_conn_start(&a.env,
              &a.conn(a.self).super, w.now, &out));
    a.connect_failures = 1;
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_sep_conn_start(&a.env,
              &a.conn(a.self).super, w.now, &out));
    w.check();
    EXPECT_EQ(0u, w.alive_qps(a));
}

TEST_F(test_sep_conn, a_packet_from_oneself_changes_nothing)
{
    a.start(a.conn(a.self));
    a.receive(to_bytes(message(a, a, UCT_SEP_CONN_MSG_REQ, 99, 0)));
    EXPECT_EQ(UCT_SEP_CONN_STATE_CONNECTED, a.conn(a.self).super.state);
    EXPECT_TRUE(w.wire.empty());
}

TEST_F(test_sep_conn, gives_up_when_nobody_answers)
{
    unsigned sent = 0;

    a.env.max_retries = 5;
    b.env.max_retries = 5;
    a.start(ab);
    while (ab.super.deadline != 0) {
        sent += w.wire.size();
        w.wire.clear();
        w.now = ab.super.deadline - 1;
        a.timeout(ab);
        EXPECT_TRUE(w.wire.empty()) << "repeated too early";
        w.now = ab.super.deadline;
        a.timeout(ab);
    }

    EXPECT_EQ(6u, sent) << "first one and five repetitions";
    EXPECT_EQ(1u, ab.failed);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, ab.last_failure);
    EXPECT_EQ(UCT_SEP_CONN_STATE_IDLE, ab.super.state);
    EXPECT_EQ(0u, w.alive_qps(a));

    /* A later attempt has all chances again */
    connect();
    w.expect_connected(0, 1);
}

TEST_F(test_sep_conn, repetitions_back_off_up_to_a_limit)
{
    ucs_time_t last = 0, interval;

    a.env.max_retries = 12;
    a.start(ab);
    for (unsigned i = 0; i < 12; ++i) {
        interval = ab.super.deadline - w.now;
        EXPECT_GE(interval, std::min<ucs_time_t>(100ull << i, 1000));
        EXPECT_LE(interval, std::min<ucs_time_t>(100ull << i, 1000) * 5 / 4);
        EXPECT_GE(interval * 5 / 4, last);
        last  = interval;
        w.now = ab.super.deadline;
        a.timeout(ab);
    }
}

TEST_F(test_sep_conn, peer_without_resources_rejects)
{
    for (bool in_create : {true, false}) {
        conn_pair p;

        p.b.create_failures  = in_create;
        p.b.connect_failures = !in_create;
        p.connect();
        EXPECT_EQ(1u, p.ab.failed);
        EXPECT_EQ(UCS_ERR_REJECTED, p.ab.last_failure);
        EXPECT_EQ(0u, p.w.alive_qps(p.a));
        EXPECT_EQ(0u, p.w.alive_qps(p.b));

        p.connect();
        p.w.expect_connected(0, 1);
    }
}

TEST_F(test_sep_conn, active_side_that_cannot_connect_rejects_the_answer)
{
    a.connect_failures = 1;
    connect();
    EXPECT_EQ(UCS_ERR_IO_ERROR, ab.last_failure);
    EXPECT_EQ(0u, ba().failed);
    EXPECT_EQ(0u, w.alive_qps(a));
    EXPECT_EQ(0u, w.alive_qps(b)) << "passive QP stays behind";
}

TEST_F(test_sep_conn, start_while_resetting_is_remembered)
{
    connect();

    /* The peer's new QP is already connected to our old one: of no use */
    b.receive(to_bytes(message(a, b, UCT_SEP_CONN_MSG_REP, 50,
                               ba().super.local_epoch)));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, ba().last_failure);
    b.start(ba());
    EXPECT_EQ(UCT_SEP_CONN_STATE_RESETTING, ba().super.state);
    b.reset(ba());
    EXPECT_EQ(UCT_SEP_CONN_STATE_REQ_SENT, ba().super.state);
}

/* A question tells whether it is urgent, whatever the one before was. Version
 * 0.3.0 returns that with its number. */
TEST_F(test_sep_conn, a_question_may_be_urgent)
{
    w.sleeps = true;
    connect();
    b.start(ba());
    settle();
    for (bool is_urgent : {false, true, true, false}) {
        a.quit(ab, is_urgent);
        b.receive(take());
        ASSERT_TRUE(ba().asked);
        EXPECT_EQ(is_urgent,
                  !!(ba().super.flags & UCT_SEP_CONN_FLAG_URGENT));
        b.answer_asked(ba(), false);
        auto rej = take();
        if (is_urgent) {
            rej[offsetof(uct_sep_conn_packet_t, token)] |=
                    UCT_SEP_CONN_TOKEN_URGENT;
        }
        a.receive(rej);
        ASSERT_EQ(UCT_SEP_CONN_STATE_CONNECTED, ab.super.state);
    }
}

/* It may sleep until what it has sent is answered, which it never is */
TEST_F(test_sep_conn, who_has_agreed_is_told_if_the_peer_asks_anew)
{
    w.sleeps = true;
    connect();
    b.start(ba());
    settle();
    a.quit(ab);
    b.receive(take());
    ASSERT_TRUE(ba().asked);
    b.answer_asked(ba(), true);
    EXPECT_EQ(UCT_SEP_CONN_STATE_RESETTING, ba().super.state);
    w.wire.clear();

    /* a has lost its own */
    a.reset(ab);
    a.start(ab);
    auto req            = take();
    const unsigned told = ba().failed;
    const unsigned lost = ab.failed;
    a.env.max_retries   = 3;
    for (unsigned i = 0; i < 10; ++i) {
        b.receive(req);
        EXPECT_EQ(told + 1, ba().failed) << "once";

        /* It hears that b is alive, however long b's user takes */
        ASSERT_EQ(1u, w.wire.size());
        a.receive(take());
        w.now = ab.super.deadline;
        a.timeout(ab);
        ASSERT_EQ(lost, ab.failed) << i;
        req = take();
    }
    EXPECT_TRUE(w.wire.empty());
}

TEST_F(test_sep_conn, a_request_of_an_older_epoch_is_ignored)
{
    a.start(ab);
    auto old_req = w.wire[0].bytes;
    settle();
    a.reset(ab);
    connect();
    w.expect_connected(0, 1);

    uct_sep_conn_t before = ba().super;
    b.receive(old_req);
    EXPECT_EQ(0, memcmp(&before, &ba().super, sizeof(before)));
    EXPECT_TRUE(w.wire.empty());
}

TEST_F(test_sep_conn, a_connection_in_use_survives_a_rejection)
{
    connect();

    for (unsigned reason = 1; reason < UCT_SEP_CONN_REJ_LAST; ++reason) {
        uct_sep_conn_msg_t msg = message(b, a, UCT_SEP_CONN_MSG_REJ, 0,
                                         ab.super.local_epoch);
        msg.reason = static_cast<uct_sep_conn_rej_t>(reason);
        a.receive(to_bytes(msg));
    }
    w.expect_connected(0, 1);
    EXPECT_EQ(0u, ab.failed);
}

TEST_F(test_sep_conn, lost_rtu_is_repeated_for_every_answer)
{
    a.start(ab);
    auto req = take();
    b.receive(req);
    auto rep = take();

    for (unsigned i = 0; i < 3; ++i) {
        a.receive(rep);
        ASSERT_EQ(1u, w.wire.size());
        w.wire.clear(); /* RTU is lost */
    }
    EXPECT_EQ(1u, ab.established);
    EXPECT_EQ(0u, ba().established);

    settle();
    w.expect_connected(0, 1);
}

TEST_F(test_sep_conn, interface_that_is_gone_is_reported_at_once)
{
    w.restart(1); /* Before a packet was sent */
    connect();
    EXPECT_EQ(1u, ab.failed);
    EXPECT_EQ(UCS_ERR_UNREACHABLE, ab.last_failure);
    EXPECT_EQ(0u, ab.super.retries) << "it did not have to time out";
    EXPECT_EQ(0u, w.alive_qps(*w.nodes[1]));
}

TEST_F(test_sep_conn, a_request_whose_answer_was_given_up_begins_anew)
{
    a.start(ab);
    auto req             = take();
    uint32_t first_epoch = ab.super.local_epoch;
    b.receive(req);
    b.reset(ba()); /* Its QP failed, the answer is lost */
    w.wire.clear();

    b.receive(req);
    EXPECT_EQ(0u, w.alive_qps(b)) << "a QP was connected to a second time";
    ASSERT_EQ(1u, w.wire.size());
    auto rej = take();
    a.receive(rej);
    EXPECT_EQ(UCT_SEP_CONN_STATE_REQ_SENT, ab.super.state);
    EXPECT_GT(ab.super.local_epoch, first_epoch);
    EXPECT_EQ(1u, ab.super.retries) << "must not go on for ever";
    EXPECT_EQ(0u, ab.failed);

    settle();
    w.expect_connected(0, 1);
}

TEST_F(test_sep_conn, an_attempt_rejected_as_stale_too_often_fails)
{
    a.env.max_retries = 3;
    a.start(ab);
    for (unsigned i = 0; i < 4; ++i) {
        uct_sep_conn_msg_t rej = message(b, a, UCT_SEP_CONN_MSG_REJ, 0,
                                         ab.super.local_epoch);
        rej.reason = UCT_SEP_CONN_REJ_STALE_EPOCH;
        EXPECT_EQ(0u, ab.failed);
        a.receive(to_bytes(rej));
    }
    EXPECT_EQ(1u, ab.failed);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, ab.last_failure);
    EXPECT_EQ(UCT_SEP_CONN_STATE_IDLE, ab.super.state);
}

TEST_F(test_sep_conn, passive_side_follows_a_newer_request_of_its_peers)
{
    a.start(ab);
    b.receive(take());
    w.wire.clear(); /* The answer is lost */
    uint32_t first = ba().qpn;

    a.reset(ab);
    a.start(ab);
    b.receive(take());
    EXPECT_EQ(first, ba().qpn) << "anybody may have sent this";
    a.receive(take()); /* The old answer again */
    b.receive(w.wire[0].bytes);
    EXPECT_NE(first, ba().qpn);
    EXPECT_EQ(ab.qpn, w.qps[ba().qpn].remote);
    EXPECT_EQ(0u, ba().failed);
    settle();
    w.expect_connected(0, 1);
}

TEST_F(test_sep_conn, an_answer_nobody_waits_for_frees_the_passive_qp)
{
    a.start(ab);
    b.receive(take());
    a.reset(ab); /* Does not want it any more */
    a.receive(take());
    ASSERT_EQ(1u, w.wire.size());
    EXPECT_EQ(1u, w.alive_qps(b));
    b.receive(w.wire[0].bytes);
    EXPECT_EQ(0u, w.alive_qps(b));
}

TEST_F(test_sep_conn, crossed_attempts_are_given_up_by_both_sides)
{
    uct_sep_conn_msg_t msg;

    /* Our QP is connected to b's QP 1, b's QP 2 is connected to ours */
    a.start(ab);
    a.receive(to_bytes(message(b, a, UCT_SEP_CONN_MSG_REQ, 1, 0)));
    uint32_t epoch = ab.super.local_epoch;
    w.wire.clear();
    a.receive(to_bytes(message(b, a, UCT_SEP_CONN_MSG_REP, 2, epoch)));

    EXPECT_EQ(0u, ab.established);
    EXPECT_EQ(UCT_SEP_CONN_STATE_REQ_SENT, ab.super.state);
    EXPECT_GT(ab.super.local_epoch, epoch);
    ASSERT_EQ(2u, w.wire.size());
    ASSERT_EQ(UCT_SEP_CONN_PARSE_OK, uct_sep_conn_msg_parse(
              w.wire[0].bytes.data(), w.wire[0].bytes.size(), &msg));
    EXPECT_EQ(UCT_SEP_CONN_MSG_REJ, msg.type);
    EXPECT_EQ(2u, msg.dst_epoch);
}

/* He knows all about b except a nonce */
TEST_F(test_sep_conn, the_last_epoch_in_a_strangers_request_locks_nobody_out)
{
    auto forged = message(a, b, UCT_SEP_CONN_MSG_REQ, UINT32_MAX, 0);

    b.receive(to_bytes(forged));
    w.wire.clear(); /* Before a sees the answer */
    connect();
    w.expect_connected(0, 1);
    EXPECT_EQ(0u, ab.failed);

    b.receive(to_bytes(forged));
    settle();
    EXPECT_EQ(0u, ba().failed) << "a connection in use was given up";
    w.expect_connected(0, 1);
}

/* Nor does a message on his queue pair, which establishes the connection */
TEST_F(test_sep_conn, a_strangers_message_locks_nobody_out)
{
    auto forged = message(a, b, UCT_SEP_CONN_MSG_REQ, UINT32_MAX, 0);

    w.is_peer_real = false;
    b.receive(to_bytes(forged));
    b.hear(ba().qpn);
    EXPECT_EQ(1u, ba().established);
    w.wire.clear();
    connect();
    EXPECT_EQ(0u, ab.failed);
    w.expect_connected(0, 1);
}

/* As in the reference code of SipHash: key 00 01 .. 0f, data 00 01 02 03 */
TEST_F(test_sep_conn, nonces_are_siphash_of_the_epoch)
{
    const uct_sep_conn_key_t key = {{0x0706050403020100ull,
                                     0x0f0e0d0c0b0a0908ull}};

    EXPECT_EQ(0xcf2794e0277187b7ull, uct_sep_nonce(&key, 0x03020100));
}
