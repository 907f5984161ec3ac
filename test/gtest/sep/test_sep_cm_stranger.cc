/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_stranger.h>
#include <sep/test_sep_uct.h>

#include <common/seed.h>

#include <arpa/inet.h>
#include <sys/eventfd.h>

#include <random>

using namespace sep_cm_test;

namespace {

class test_sep_cm_stranger : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (device::get() == nullptr) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    /* As much as a datagram may have */
    static size_t mtu()
    {
        return 128u << device::get()->mtu;
    }

    static void expect_connects(cm_user &a, cm_user &b)
    {
        conn *ab = a.get(b.addr), *ba = b.get(a.addr);

        EXPECT_EQ(UCS_INPROGRESS, a.start(ab));
        EXPECT_TRUE(a.wait_established(ab));
        EXPECT_TRUE(b.wait_established(ba));
    }
};

} // namespace


TEST_F(test_sep_cm_stranger, long_datagrams_do_not_break_the_queue_pair)
{
    std::vector<uint8_t> data(mtu(), 0x5e);
    cm_user a, b;
    stranger s;

    for (unsigned i = 0; i < 200; ++i) {
        s.send(a.addr, data.data(), (i == 0) ? mtu() : mtu() - i * 5);
        ASSERT_TRUE(a.wait([&]() { return a.stats().rx_packets > i; }))
                << i;
    }
    EXPECT_EQ(0u, a.stats().rx_errors);
    EXPECT_EQ(0u, a.stats().restarts);
    EXPECT_EQ(200u, a.stats().rx_malformed);
    EXPECT_EQ(0u, a.stats().tx_packets);
    expect_connects(b, a);
}

TEST_F(test_sep_cm_stranger, who_does_not_know_the_q_key_is_not_heard)
{
    cm_user a, b;
    stranger s;
    uct_sep_conn_packet_t packet;
    uint32_t qkey = uct_sep_iface_addr_qkey(&a.addr.iface);

    EXPECT_NE(qkey, uct_sep_iface_addr_qkey(&b.addr.iface));
    EXPECT_EQ(0u, qkey & 0x80000000u) << "needs privileges to send with";

    const uct_sep_conn_msg_t msg = s.req(a.addr, s.addr());

    uct_sep_conn_msg_pack(&msg, &packet);
    for (uint32_t guess : {qkey ^ 1, 0x5e9c0de1u, 0u,
                           uct_sep_iface_addr_qkey(&b.addr.iface)}) {
        s.send(a.addr, &packet, sizeof(packet), guess);
    }
    s.send(a.addr, "end", 3);
    ASSERT_TRUE(a.wait([&]() { return a.stats().rx_malformed > 0; }));
    EXPECT_EQ(1u, a.stats().rx_packets);
    EXPECT_EQ(0u, a.live_conns());
    EXPECT_EQ(0u, a.stats().rx_errors);
}

TEST_F(test_sep_cm_stranger, who_says_what_is_true_is_answered)
{
    uct_sep_conn_msg_t msg = {};
    cm_user a;
    stranger s;

    s.send(a.addr, s.req(a.addr, s.addr()));
    ASSERT_TRUE(a.wait([&]() { return s.receive(&msg); }));
    EXPECT_EQ(UCT_SEP_CONN_MSG_REP, msg.type);
    EXPECT_EQ(0xbadu, msg.dst_nonce);
    EXPECT_EQ(1u, a.live_conns());

    /* He has it now, so he may say that he does not want it */
    msg.dst_epoch = msg.src_epoch;
    msg.dst_nonce = msg.src_nonce;
    msg.dst_id    = uct_sep_iface_addr_id(&a.addr.iface);
    msg.src       = s.addr();
    msg.type      = UCT_SEP_CONN_MSG_REJ;
    msg.reason    = UCT_SEP_CONN_REJ_STALE_EPOCH;
    ++msg.dst_nonce;
    s.send(a.addr, msg);
    ASSERT_TRUE(a.wait([&]() { return a.stats().rx_stale > 0; }));
    EXPECT_EQ(1u, a.live_qps()) << "a wrong nonce was believed";
    --msg.dst_nonce;
    s.send(a.addr, msg);
    EXPECT_TRUE(a.wait([&]() { return a.live_qps() == 0; }));
}

TEST_F(test_sep_cm_stranger, a_claim_of_anothers_address_is_dropped)
{
    unsigned dropped = 0;
    cm_user a, b;
    stranger s;

    auto expect_dropped = [&](const uct_sep_peer_addr_t &claim,
                              const char *what) {
        s.send(a.addr, s.req(a.addr, claim));
        ++dropped;
        ASSERT_TRUE(a.wait([&]() { return a.stats().rx_packets >= dropped; }));
        EXPECT_EQ(dropped, a.stats().rx_foreign) << what;
        EXPECT_EQ(0u, a.live_conns()) << what;
        EXPECT_EQ(0u, a.stats().tx_packets) << what;
    };

    uct_sep_peer_addr_t claim = s.addr();
    if (device::get()->port.is_roce) {
        claim.dev.gid[15] ^= 1;
    } else {
        claim.dev.lid = htons(ntohs(claim.dev.lid) + 1);
    }
    expect_dropped(claim, "another port");

    expect_dropped(b.addr, "another queue pair");
}

/* Each would cost a queue pair and a message */
TEST_F(test_sep_cm_stranger, an_offer_that_contradicts_the_address_is_dropped)
{
    uct_sep_peer_addr_t split;
    uct_sep_conn_msg_t msg;
    cm_user a;
    stranger s;

    split = s.addr();
    uct_sep_iface_addr_pack(uct_sep_iface_addr_qpn(&split.iface), stranger::ID,
                            UCT_SEP_IFACE_ADDR_FLAG_SPLIT, &split.iface);
    s.send(a.addr, s.req(a.addr, split));

    msg                  = s.req(a.addr, s.addr());
    msg.qp.responder_qpn = msg.qp.qpn + 1;
    s.send(a.addr, msg);

    ASSERT_TRUE(a.wait([&]() { return a.stats().rx_packets == 2; }));
    EXPECT_EQ(2u, a.stats().rx_malformed);
    EXPECT_EQ(0u, a.live_conns());
    EXPECT_EQ(0u, a.stats().tx_packets);

    msg.src = split;
    s.send(a.addr, msg);
    EXPECT_TRUE(a.wait([&]() { return a.live_conns() == 1; }));
}

/* REJ goes to each, at an address that is almost his own */
TEST_F(test_sep_cm_stranger, ten_thousand_random_requests_take_bounded_memory)
{
    std::mt19937_64 rng(seed::get());
    cm_user a, b;
    stranger s;

    for (unsigned i = 0; i < 10000; ++i) {
        uct_sep_peer_addr_t claim = s.addr(1 + rng() % UCT_SEP_ADDR_MAX_ID);
        uct_sep_conn_msg_t msg;

        if (!device::get()->port.is_roce) {
            for (unsigned j = 8; j < 16; ++j) {
                claim.dev.gid[j] = rng(); /* Without a GRH nobody can tell */
            }
        }
        claim.dev.path = rng() % UCT_SEP_MAX_PATHS;
        msg            = s.req(a.addr, claim);
        msg.dst_id     = 1 + rng() % UCT_SEP_ADDR_MAX_ID;
        s.send(a.addr, msg);
        if (i % 100 == 99) {
            ASSERT_TRUE(a.wait([&]() { return a.stats().rx_packets > i; }));
        }
    }
    EXPECT_EQ(10000u, a.stats().rx_foreign);
    EXPECT_EQ(10000u, a.stats().tx_packets);
    EXPECT_LE(a.stats().ahs, 256u);
    EXPECT_EQ(0u, a.live_conns());
    EXPECT_EQ(0u, a.live_qps());
    expect_connects(b, a);
}

/* A log is not for strangers to fill */
TEST_F(test_sep_cm_stranger, a_flood_does_not_fill_the_log)
{
    const unsigned count = 100, lines = 7; /* 1, 2, 4... 64 */
    unsigned received    = 0;
    std::vector<uint8_t> data(mtu(), 0x5e);
    sep_uct_test::expect_errors hide(UCS_LOG_LEVEL_DEBUG);
    cm_user a, b;
    stranger s;

    auto flood = [&](const std::function<void()> &send) {
        for (unsigned i = 0; i < count; ++i) {
            send();
            ++received;
            ASSERT_TRUE(a.wait([&]() {
                return a.stats().rx_packets >= received;
            }));
        }
    };

    flood([&]() { s.send(a.addr, data.data(), data.size()); });
    EXPECT_EQ(lines, hide.count(UCS_LOG_LEVEL_DEBUG, "(rx_malformed"));

    flood([&]() { s.send(a.addr, s.req(a.addr, b.addr)); });
    EXPECT_EQ(lines, hide.count(UCS_LOG_LEVEL_DIAG, "(rx_foreign"));

    a.alloc_failures = count;
    flood([&]() { s.send(a.addr, s.req(a.addr, s.addr())); });
    EXPECT_EQ(lines, hide.count(UCS_LOG_LEVEL_DIAG, "cm rejects"));
}

/* Whoever sends without end must not keep others out */
class test_sep_cm_flood :
    public test_sep_cm_stranger,
    public ::testing::WithParamInterface<ucs_async_mode_t> {
};

TEST_P(test_sep_cm_flood, leaves_time_for_others)
{
    const unsigned LIMIT = 100000;
    std::atomic<unsigned> sent{0};
    std::atomic<bool> is_over{false};
    std::function<void()> turn;
    int turn_fd;

    options o = {.mode = GetParam(), .rx_len = 16};
    o.timeout = 0.008; /* Its timer goes every 2 ms */
    cm_user a(o);
    stranger s;
    uct_sep_conn_msg_t msg = s.req(a.addr, s.addr());

    /* For each packet that is answered, another one arrives */
    msg.dst_id = 1;
    a.on_send  = [&]() {
        if (!is_over && (sent < LIMIT)) {
            ++sent;
            s.send(a.addr, msg);
        }
    };
    /* The flood goes on until somebody else has had a turn: another handler of
     * the async thread, as a thread can wait long for its spinlock, or the
     * thread that is interrupted */
    turn = [&]() { is_over = sent > 10 * o.rx_len; };
    if (o.mode == UCS_ASYNC_MODE_SIGNAL) {
        turn_fd = -1;
    } else {
        turn_fd = eventfd(1, EFD_NONBLOCK);
        ASSERT_EQ(UCS_OK, ucs_async_set_event_handler(
                o.mode, turn_fd, UCS_EVENT_SET_EVREAD,
                [](int, ucs_event_set_types_t, void *arg) {
                    (*(std::function<void()>*)arg)();
                },
                &turn, a.async));
    }

    UCS_ASYNC_BLOCK(a.async);
    a.on_send();
    UCS_ASYNC_UNBLOCK(a.async);
    ucs_async_check_miss(a.async);
    EXPECT_TRUE(a.wait([&]() {
        if (turn_fd < 0) {
            turn();
        }
        return is_over.load();
    }));
    EXPECT_LT(sent, LIMIT) << "nobody else had a turn";
    if (turn_fd >= 0) {
        ASSERT_EQ(UCS_OK, ucs_async_remove_handler(turn_fd, 1));
        close(turn_fd);
    }

    UCS_ASYNC_BLOCK(a.async);
    a.on_send = nullptr;
    UCS_ASYNC_UNBLOCK(a.async);
    EXPECT_TRUE(a.wait([&]() { return a.stats().rx_packets == sent; }))
            << "packets are left lying";
}

INSTANTIATE_TEST_SUITE_P(mode, test_sep_cm_flood,
                         ::testing::Values(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                           UCS_ASYNC_MODE_SIGNAL),
                         [](const ::testing::TestParamInfo<ucs_async_mode_t>
                                    &info) {
                             return (info.param == UCS_ASYNC_MODE_SIGNAL) ?
                                    "signal" : "thread";
                         });

/* Whoever sends without end must not keep others out */
TEST_F(test_sep_cm_stranger, a_flood_leaves_time_for_others)
{
    const unsigned LIMIT = 10000;
    unsigned sent        = 1;
    options o = {.mode = UCS_ASYNC_MODE_POLL, .rx_len = 16};
    cm_user a(o);
    stranger s;
    uct_sep_conn_msg_t msg = s.req(a.addr, s.addr());

    /* For each packet that is answered, another one arrives */
    msg.dst_id = 1;
    a.on_send  = [&]() {
        if (sent < LIMIT) {
            ++sent;
            s.send(a.addr, msg);
        }
    };
    s.send(a.addr, msg);
    for (unsigned i = 0; (i < 10) || (sent < 100); ++i) {
        unsigned before = sent;

        ASSERT_LT(i, 1000u) << "packets are left lying";
        a.progress();
        ASSERT_LE(sent - before, 2 * o.rx_len) << "progress does not return";
    }
    a.on_send = nullptr;
}
