/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_cm_user.h>
#include <sep/count_handlers.h>

#include <common/process.h>
#include <common/seed.h>

#include <gtest/gtest.h>

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <set>
#include <vector>

using namespace sep_cm_test;

namespace {

class test_sep_cm : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (device::get() == nullptr) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    /* One message in each direction, if they are different */
    static void expect_data(cm_user &a, conn *ab, cm_user &b, conn *ba)
    {
        EXPECT_TRUE(a.send(ab, 0x1111));
        EXPECT_TRUE(b.receive(ba, 0x1111));
        if (ab != ba) {
            EXPECT_TRUE(b.send(ba, 0x2222));
            EXPECT_TRUE(a.receive(ab, 0x2222));
        }
    }

    static void connect(cm_user &a, conn *ab, cm_user &b, conn *ba)
    {
        ucs_status_t status = a.start(ab);

        ASSERT_TRUE((status == UCS_INPROGRESS) || (status == UCS_OK));
        ASSERT_TRUE(a.wait([&]() { b.progress(); return ab->established; }));
        ASSERT_TRUE(b.wait([&]() { a.progress(); return ba->established; }));
    }

    static void all_to_all(std::vector<std::unique_ptr<cm_user>> &users)
    {
        std::vector<std::vector<conn*>> conns;

        for (auto &a : users) {
            conns.emplace_back();
            for (auto &b : users) {
                conns.back().push_back(a->get(b->addr));
            }
        }
        for (size_t i = 0; i < users.size(); ++i) {
            for (size_t j = 0; j < users.size(); ++j) {
                users[i]->start(conns[i][j]);
            }
        }
        for (size_t i = 0; i < users.size(); ++i) {
            for (size_t j = 0; j < users.size(); ++j) {
                ASSERT_TRUE(users[i]->wait_established(conns[i][j]))
                        << i << "->" << j;
            }
        }
        for (size_t i = 0; i < users.size(); ++i) {
            EXPECT_EQ(users.size(), users[i]->live_qps());
            for (size_t j = 0; j < users.size(); ++j) {
                EXPECT_EQ(1u, conns[i][j]->qps_created) << i << "->" << j;
                EXPECT_EQ(conns[j][i]->qp->qp_num, conns[i][j]->remote.qpn);
            }
        }
        for (size_t i = 0; i < users.size(); ++i) {
            for (size_t j = 0; j < users.size(); ++j) {
                ASSERT_TRUE(users[i]->send(conns[i][j], 0x1000 + i));
            }
        }
        for (size_t i = 0; i < users.size(); ++i) {
            for (size_t j = 0; j < users.size(); ++j) {
                ASSERT_TRUE(users[i]->receive(conns[i][j], 0x1000 + j));
            }
        }
    }
};

class test_sep_cm_mode : public test_sep_cm,
                         public ::testing::WithParamInterface<
                                 ucs_async_mode_t> {
protected:
    options opts()
    {
        return {.mode = GetParam()};
    }
};

} // namespace


TEST_P(test_sep_cm_mode, connects_two_interfaces_of_a_process)
{
    cm_user a(opts()), b(opts());
    conn *ab = a.get(b.addr), *ba = b.get(a.addr);

    EXPECT_EQ(0u, a.live_qps()) << "an unused connection costs a QP";
    connect(a, ab, b, ba);
    expect_data(a, ab, b, ba);
    EXPECT_EQ(UCS_OK, b.start(ba)) << "passive side uses the same connection";
    EXPECT_EQ(1u, a.live_qps());
    EXPECT_EQ(1u, b.live_qps());
    EXPECT_EQ(0u, a.stats().rx_stale);
}

TEST_P(test_sep_cm_mode, timer_is_gone_when_nothing_is_outstanding)
{
    cm_user a(opts()), b(opts());
    conn *ab = a.get(b.addr), *ba = b.get(a.addr);

    EXPECT_EQ(1u, count_handlers(a.async)) << "the event handler only";
    connect(a, ab, b, ba);
    EXPECT_TRUE(a.wait([&]() { return count_handlers(a.async) == 1; }));
    EXPECT_TRUE(b.wait([&]() { return count_handlers(b.async) == 1; }));
}

TEST_P(test_sep_cm_mode, both_start_at_once)
{
    for (unsigned i = 0; i < 10; ++i) {
        cm_user a(opts()), b(opts());
        conn *ab = a.get(b.addr), *ba = b.get(a.addr);

        a.start(ab);
        b.start(ba);
        ASSERT_TRUE(a.wait([&]() { b.progress(); return ab->established; }));
        ASSERT_TRUE(b.wait([&]() { a.progress(); return ba->established; }));
        expect_data(a, ab, b, ba);
        EXPECT_EQ(1u, ab->qps_created);
        EXPECT_EQ(1u, ba->qps_created);
    }
}

INSTANTIATE_TEST_SUITE_P(modes, test_sep_cm_mode,
                         ::testing::Values(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                           UCS_ASYNC_MODE_THREAD_MUTEX,
                                           UCS_ASYNC_MODE_POLL),
                         [](const auto &info) {
                             return std::string(
                                     (info.param == UCS_ASYNC_MODE_POLL) ?
                                     "poll" :
                                     (info.param ==
                                      UCS_ASYNC_MODE_THREAD_MUTEX) ?
                                     "thread_mutex" : "thread_spinlock");
                         });

TEST_F(test_sep_cm, connects_to_itself_at_once_with_one_qp)
{
    cm_user a;
    conn *aa = a.get(a.addr);

    EXPECT_EQ(UCS_OK, a.start(aa));
    EXPECT_EQ(1u, aa->established);
    EXPECT_EQ(1u, a.live_qps());
    expect_data(a, aa, a, aa);
    EXPECT_EQ(0u, a.stats().tx_packets);
}

TEST_F(test_sep_cm, addresses_are_of_this_port_and_unique)
{
    cm_user a, b;

    EXPECT_EQ(0, memcmp(&a.addr.dev, &b.addr.dev, sizeof(a.addr.dev)));
    EXPECT_NE(uct_sep_iface_addr_id(&a.addr.iface),
              uct_sep_iface_addr_id(&b.addr.iface));
    EXPECT_TRUE(uct_sep_cm_is_reachable(a.cm,
                (const uct_device_addr_t*)&b.addr.dev,
                (const uct_iface_addr_t*)&b.addr.iface));
    EXPECT_TRUE(uct_sep_cm_is_reachable(a.cm,
                (const uct_device_addr_t*)&b.addr.dev, nullptr));
    EXPECT_FALSE(uct_sep_cm_is_reachable(a.cm, nullptr, nullptr));
}

TEST_F(test_sep_cm, bad_addresses_are_refused_with_the_reason)
{
    cm_user a, b;
    uct_sep_peer_addr_t known;
    uct_sep_conn_t *conn;

    auto get = [&](const uct_sep_peer_addr_t &addr) {
        return uct_sep_cm_peer_add(a.cm,
                                   (const uct_device_addr_t*)&addr.dev,
                                   (const uct_iface_addr_t*)&addr.iface, 0,
                                   &known, &conn);
    };

    uct_sep_peer_addr_t addr = b.addr;
    ++addr.iface.version;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, get(addr));
    addr = b.addr;
    uct_sep_iface_addr_pack(uct_sep_iface_addr_qpn(&addr.iface), 0, 0,
                            &addr.iface);
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get(addr));
    addr           = b.addr;
    addr.dev.flags = 0xff;
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get(addr));
    addr            = b.addr;
    addr.dev.pkey  ^= htons(2);
    EXPECT_EQ(UCS_ERR_UNREACHABLE, get(addr));
    EXPECT_EQ(0u, a.live_conns());
}

TEST_F(test_sep_cm, unused_connection_is_freed_with_its_last_reference)
{
    cm_user a, b;
    conn *c1 = a.get(b.addr), *c2 = a.get(b.addr);

    EXPECT_EQ(c1, c2);
    a.put(c1);
    EXPECT_EQ(1u, a.live_conns());
    uct_sep_cm_conn_hold(a.cm, &c2->super);
    a.put(c2);
    EXPECT_EQ(1u, a.live_conns());
    a.put(c2);
    EXPECT_EQ(0u, a.live_conns());
    EXPECT_EQ(0u, a.stats().tx_packets);
}

/* Who is known has a reference as soon as there is a connection, whoever makes
 * it, and takes it when he learns of that */
TEST_F(test_sep_cm, a_known_peer_has_a_reference)
{
    cm_user a, b;
    uct_sep_peer_addr_t known;
    uct_sep_conn_t *first, *second;
    auto add = [&](uct_sep_peer_addr_t *peer_p, uct_sep_conn_t **conn_p) {
        return uct_sep_cm_peer_add(a.cm, (const uct_device_addr_t*)&b.addr.dev,
                                   (const uct_iface_addr_t*)&b.addr.iface, 0,
                                   peer_p, conn_p);
    };

    /* Nobody makes one */
    ASSERT_EQ(UCS_OK, add(&known, &first));
    EXPECT_EQ(nullptr, first);
    uct_sep_cm_peer_remove(a.cm, &known);
    EXPECT_EQ(0u, a.live_conns());

    /* He himself; there may be no memory */
    ASSERT_EQ(UCS_OK, add(&known, &first));
    EXPECT_EQ(nullptr, first);
    a.alloc_failures = 1;
    EXPECT_EQ(UCS_ERR_NO_MEMORY,
              uct_sep_cm_peer_get_conn(a.cm, &known, &first));
    ASSERT_EQ(UCS_OK, uct_sep_cm_peer_get_conn(a.cm, &known, &first));
    EXPECT_EQ(1u, first->refcount);
    EXPECT_EQ(nullptr, uct_sep_cm_conn_take_peer(a.cm, first));
    uct_sep_cm_conn_put(a.cm, first);
    EXPECT_EQ(0u, a.live_conns());

    /* Another user */
    for (bool is_taken : {false, true}) {
        ASSERT_EQ(UCS_OK, add(&known, &first));
        EXPECT_EQ(nullptr, first);
        uct_sep_peer_addr_t other;
        ASSERT_EQ(UCS_OK, add(&other, &second));
        ASSERT_NE(nullptr, second);
        EXPECT_EQ(2u, second->refcount);
        uct_sep_cm_conn_put(a.cm, second);
        EXPECT_EQ(1u, a.live_conns());
        if (is_taken) {
            EXPECT_EQ(&known, uct_sep_cm_conn_take_peer(a.cm, second));
            EXPECT_EQ(1u, second->refcount);
            uct_sep_cm_conn_put(a.cm, second);
        } else {
            uct_sep_cm_peer_remove(a.cm, &known);
        }
        EXPECT_EQ(0u, a.live_conns());
    }

    /* The peer */
    ASSERT_EQ(UCS_OK, add(&known, &first));
    conn *ba = b.get(a.addr);
    b.start(ba);
    ASSERT_TRUE(b.wait_established(ba));
    EXPECT_EQ(1u, a.live_conns());
    ASSERT_EQ(UCS_OK, uct_sep_cm_peer_get_conn(a.cm, &known, &first));
    EXPECT_EQ(1u, first->refcount);
    EXPECT_TRUE(a.wait_established(reinterpret_cast<conn*>(first)));
}

TEST_F(test_sep_cm, used_connection_outlives_its_references)
{
    cm_user a, b;
    conn *ab = a.get(b.addr), *ba = b.get(a.addr);

    connect(a, ab, b, ba);
    a.put(ab);
    EXPECT_EQ(1u, a.live_conns());
    EXPECT_TRUE(b.send(ba, 5)) << "peer's use of it was broken";
    EXPECT_EQ(ab, a.get(b.addr));
}

/* Neither the one whose peer has told us, nor the one that has failed */
TEST_F(test_sep_cm, a_connection_is_freed_with_its_queue_pair)
{
    cm_user a;
    auto b   = std::make_unique<cm_user>();
    auto c   = std::make_unique<cm_user>();
    conn *ba = b->get(a.addr), *ca = c->get(a.addr);
    conn *ac;

    b->start(ba);
    ASSERT_TRUE(b->wait_established(ba));
    c->start(ca);
    ASSERT_TRUE(c->wait_established(ca));
    ac = a.get(c->addr);
    ASSERT_TRUE(a.wait_established(ac));
    ASSERT_TRUE(a.wait([&]() { return a.live_conns() == 2; }));

    /* The user has to let go of it, as in sep_link.c */
    a.on_failed = [&](conn *failed) {
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, failed->status);
        a.error(failed);
    };
    b.reset();
    ASSERT_TRUE(a.wait([&]() { return a.live_conns() == 1; }));
    EXPECT_EQ(1u, a.live_qps());

    a.error(ac);
    EXPECT_EQ(0u, a.live_qps());
    a.put(ac);
    EXPECT_EQ(0u, a.live_conns());
}

TEST_F(test_sep_cm, a_half_open_connection_is_freed_when_it_is_given_up)
{
    options o = {.timeout = 0.005, .retry_count = 2};
    cm_user a(o);
    options mute  = o;
    mute.mode     = UCS_ASYNC_MODE_POLL; /* Nobody polls: it never answers */
    cm_user b(mute);
    conn *ba      = b.get(a.addr);

    b.start(ba);
    ASSERT_TRUE(a.wait([&]() { return a.stats().rx_packets > 0; }));
    ASSERT_TRUE(a.wait([&]() { return a.live_conns() == 0; }));
    EXPECT_EQ(0u, a.live_qps());
}

/* UCX's timers expire at once for the first time */
TEST_F(test_sep_cm, keepalive_waits_for_its_period)
{
    cm_user a({.keepalive = ucs_time_from_sec(3600)}), b, c;
    conn *ab = a.get(b.addr), *ba = b.get(a.addr);
    conn *ac = a.get(c.addr), *ca = c.get(a.addr);
    uint64_t ticks;

    connect(a, ab, b, ba);
    ASSERT_TRUE(a.wait([&]() { return count_handlers(a.async) == 1; }));
    ticks = a.stats().timer_ticks;
    a.put(ab);
    /* Wakes the thread that looks at timers */
    connect(a, ac, c, ca);
    ASSERT_TRUE(a.wait([&]() { return a.stats().timer_ticks > ticks + 1; }));
    EXPECT_EQ(0u, ab->unused);
}

/* No wake-ups where nobody could have gone */
TEST_F(test_sep_cm, keepalive_runs_while_there_are_unused_connections)
{
    cm_user a({.keepalive = ucs_time_from_msec(5)});
    auto b   = std::make_unique<cm_user>();
    conn *ab = a.get(b->addr), *ba = b->get(a.addr);

    connect(a, ab, *b, ba);
    ASSERT_TRUE(a.wait([&]() { return count_handlers(a.async) == 1; }));
    a.put(ab);
    ASSERT_TRUE(a.wait([&]() { return ab->unused > 2; }));
    EXPECT_EQ(2u, count_handlers(a.async));
    EXPECT_EQ(ab, a.get(b->addr));
    EXPECT_TRUE(a.wait([&]() { return count_handlers(a.async) == 1; }));
}

/* UCX bears only so many timers in a process. Those who have none look when
 * somebody connects, so what the dead have left does not grow. */
TEST_F(test_sep_cm, keepalive_of_many_interfaces)
{
    const unsigned num_users = 60;
    std::vector<std::unique_ptr<cm_user>> users;
    std::vector<conn*> unused;
    unsigned with_timer = 0;
    cm_user peer, late;
    options o = {.rx_len = 16, .keepalive = ucs_time_from_msec(5)};
    for (unsigned i = 0; i < num_users; ++i) {
        users.push_back(std::make_unique<cm_user>(o));

        cm_user &user = *users.back();
        conn *there   = user.get(peer.addr), *back = peer.get(user.addr);

        connect(user, there, peer, back);
        ASSERT_TRUE(user.wait([&]() {
            return count_handlers(user.async) == 1;
        }));
        user.put(there);
        with_timer += count_handlers(user.async) - 1;
        unused.push_back(there);
    }
    EXPECT_LT(0u, with_timer);
    EXPECT_GT(num_users, with_timer);

    usleep(10000);
    for (unsigned i = 0; i < num_users; ++i) {
        conn *back = late.get(users[i]->addr);

        late.start(back);
        ASSERT_TRUE(late.wait_established(back));
        EXPECT_TRUE(users[i]->wait([&]() { return unused[i]->unused > 0; }))
                << i;
    }
}

/* Whether the connection can be given up */
static void ask(cm_user &user, conn *c)
{
    UCS_ASYNC_BLOCK(user.async);
    uct_sep_cm_conn_disconnect(user.cm, &c->super, 0);
    UCS_ASYNC_UNBLOCK(user.async);
}

static void expect_nothing_left(cm_user &a, cm_user &b)
{
    for (cm_user *user : {&a, &b}) {
        ASSERT_TRUE(user->wait([=]() { return user->live_conns() == 0; }));
        EXPECT_EQ(0u, user->live_qps());
    }
}

TEST_F(test_sep_cm, both_sides_agree_to_give_up_a_connection)
{
    cm_user a, b;
    conn *ab = a.get(b.addr), *ba = b.get(a.addr);

    connect(a, ab, b, ba);
    for (cm_user *user : {&a, &b}) {
        user->on_failed = [=](conn *failed) { user->error(failed); };
    }
    a.put(ab);
    ask(a, ab);
    ASSERT_TRUE(a.wait_established(ab, 2)) << "the other side uses it";
    EXPECT_TRUE(b.send(ba, 5));

    b.put(ba);
    ask(a, ab);
    expect_nothing_left(a, b);
}

TEST_F(test_sep_cm, who_has_no_references_may_let_go_at_once)
{
    cm_user a, b;
    conn *ab = a.get(b.addr), *ba = b.get(a.addr);

    connect(a, ab, b, ba);
    a.lets_go = b.lets_go = true;
    for (cm_user *user : {&a, &b}) {
        user->on_failed = [](conn*) { ADD_FAILURE() << "there is no need"; };
    }
    b.put(ba);
    a.put(ab);
    ask(a, ab);
    expect_nothing_left(a, b);
}

/* Peers that never answer take no more queue pairs than are for them. The
 * others get in when those have been given up. */
TEST_F(test_sep_cm, a_flood_of_half_open_connections_is_bounded)
{
    std::vector<std::unique_ptr<cm_user>> flood;
    unsigned most = 0;
    options o, mute;

    o.max_pending = 4;
    o.timeout     = 0.01;
    o.retry_count = 3;
    mute.mode     = UCS_ASYNC_MODE_POLL;
    mute.rx_len   = 16;
    cm_user a(o), b;

    for (unsigned i = 0; i < 40; ++i) {
        flood.push_back(std::make_unique<cm_user>(mute));
        flood.back()->start(flood.back()->get(a.addr));
        most = std::max(most, a.live_qps());
    }
    ASSERT_TRUE(a.wait([&]() { return a.stats().rx_packets >= 40; }));
    most = std::max(most, a.live_qps());
    EXPECT_GE(4u, most);

    conn *ba = b.get(a.addr);
    b.start(ba);
    ASSERT_TRUE(b.wait_established(ba));
}

/* Those that somebody may connect to are no strangers */
TEST_F(test_sep_cm, a_known_peer_does_not_wait_behind_a_flood)
{
    uct_sep_peer_addr_t known;
    uct_sep_conn_t *conn;
    options o, mute;

    o.max_pending = 1;
    mute.mode     = UCS_ASYNC_MODE_POLL;
    mute.rx_len   = 16;
    cm_user a(o), b, stranger(mute);
    stranger.start(stranger.get(a.addr));
    ASSERT_TRUE(a.wait([&]() { return a.live_qps() == 1; }));

    ASSERT_EQ(UCS_OK, uct_sep_cm_peer_add(
                              a.cm, (const uct_device_addr_t*)&b.addr.dev,
                              (const uct_iface_addr_t*)&b.addr.iface, 0,
                              &known, &conn));
    auto *ba = b.get(a.addr);
    b.start(ba);
    ASSERT_TRUE(b.wait_established(ba));
    EXPECT_EQ(2u, a.live_qps());
    uct_sep_cm_peer_remove(a.cm, &known);
}

/* Many that are in earnest have to wait for each other, but all get in. Each
 * path is a connection of its own; UCX has timers for 70 interfaces. */
TEST_F(test_sep_cm, a_crowd_of_1000_connects)
{
    const unsigned num_ifaces = 20, num_paths = 50;
    std::vector<std::unique_ptr<cm_user>> crowd;
    std::vector<conn*> conns;
    uint64_t packets = 0;
    options o = {.timeout = 0.05, .rx_len = 64, .max_pending = 16};
    cm_user a(o);

    for (unsigned i = 0; i < num_ifaces; ++i) {
        crowd.push_back(std::make_unique<cm_user>(o));
        for (unsigned path = 0; path < num_paths; ++path) {
            conns.push_back(crowd.back()->get(a.addr, path));
        }
    }
    for (unsigned i = 0; i < conns.size(); ++i) {
        crowd[i / num_paths]->start(conns[i]);
    }
    for (unsigned i = 0; i < conns.size(); ++i) {
        ASSERT_TRUE(crowd[i / num_paths]->wait_established(conns[i])) << i;
        EXPECT_EQ(0u, conns[i]->failed);
    }
    EXPECT_TRUE(a.wait([&]() { return a.live_qps() == conns.size(); }));
    for (auto &user : crowd) {
        packets += user->stats().tx_packets;
    }
    EXPECT_GT(packets, 2 * conns.size()) << "nobody had to wait";
}

TEST_F(test_sep_cm, packets_lost_and_repeated_at_random_are_made_good)
{
    std::vector<std::unique_ptr<cm_user>> users;
    uint64_t retries = 0;

    for (unsigned i = 0; i < 8; ++i) {
        options o = {.timeout = 0.02, .retry_count = 1000, .loss = 30,
                     .duplicates = 20, .seed = seed::get(i)};

        users.push_back(std::make_unique<cm_user>(o));
    }
    all_to_all(users);
    for (auto &i : users) {
        retries += i->stats().tx_retries;
    }
    EXPECT_GT(retries, 0u);
}

TEST_F(test_sep_cm, sixty_four_interfaces_connect_to_one_at_once)
{
    std::vector<std::unique_ptr<cm_user>> peers;
    std::vector<conn*> out, in;
    cm_user hub;

    for (unsigned i = 0; i < 64; ++i) {
        peers.push_back(std::make_unique<cm_user>(options{.rx_len = 16}));
        out.push_back(peers.back()->get(hub.addr));
        in.push_back(hub.get(peers.back()->addr));
    }
    for (unsigned i = 0; i < 64; ++i) {
        (i % 2) ? peers[i]->start(out[i]) : hub.start(in[i]);
    }
    for (unsigned i = 0; i < 64; ++i) {
        ASSERT_TRUE(peers[i]->wait_established(out[i])) << i;
        ASSERT_TRUE(hub.wait_established(in[i])) << i;
        EXPECT_TRUE(peers[i]->send(out[i], 100 + i));
        EXPECT_TRUE(hub.receive(in[i], 100 + i));
    }
    EXPECT_EQ(64u, hub.live_qps());
}

TEST_F(test_sep_cm, more_starts_than_the_send_queue_holds)
{
    options o;
    std::vector<conn*> conns;
    cm_user a, b;

    /* All to one QP that does not know the ids: each is answered */
    for (unsigned i = 1; i <= 600; ++i) {
        uct_sep_peer_addr_t addr = b.addr;
        /* Of the same Q_Key */
        uct_sep_iface_addr_pack(uct_sep_iface_addr_qpn(&addr.iface),
                                uct_sep_iface_addr_id(&addr.iface) ^
                                        (uint64_t(i) << 31), 0, &addr.iface);
        conns.push_back(a.get(addr));
    }
    UCS_ASYNC_BLOCK(a.async);
    for (conn *c : conns) {
        EXPECT_EQ(UCS_INPROGRESS, a.start(c));
    }
    UCS_ASYNC_UNBLOCK(a.async);
    for (conn *c : conns) {
        ASSERT_TRUE(a.wait_failed(c));
        EXPECT_EQ(UCS_ERR_UNREACHABLE, c->status);
    }
    EXPECT_EQ(0u, a.live_qps());
    EXPECT_EQ(0u, b.live_conns());
}

TEST_F(test_sep_cm, peer_that_is_gone_times_out)
{
    cm_user a({.timeout = 0.005, .retry_count = 3});
    auto b   = std::make_unique<cm_user>();
    conn *ab = a.get(b->addr);

    b.reset();
    EXPECT_EQ(UCS_INPROGRESS, a.start(ab));
    ASSERT_TRUE(a.wait_failed(ab));
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, ab->status);
    EXPECT_EQ(0u, a.live_qps());
    EXPECT_EQ(3u, a.stats().tx_retries);
    EXPECT_TRUE(a.wait([&]() { return count_handlers(a.async) == 1; }));
}

TEST_F(test_sep_cm, failed_callback_may_drop_the_connection)
{
    cm_user a({.timeout = 0.005, .retry_count = 0});
    auto b      = std::make_unique<cm_user>();
    auto c      = std::make_unique<cm_user>();
    conn *ab    = a.get(b->addr);
    conn *ac    = a.get(c->addr);
    unsigned n  = 0;
    a.on_failed = [&](conn *failed) {
        ++n;
        a.put(failed);
    };

    b.reset();
    c.reset();
    a.start(ab);
    a.start(ac);
    ASSERT_TRUE(a.wait([&]() { return n == 2; }));
    EXPECT_EQ(0u, a.live_conns());
}

TEST_F(test_sep_cm, peer_without_resources_rejects)
{
    for (unsigned i = 0; i < 2; ++i) {
        cm_user a, b;
        conn *ab = a.get(b.addr), *ba = b.get(a.addr);

        ((i == 0) ? b.create_failures : b.connect_failures) = 1;
        EXPECT_EQ(UCS_INPROGRESS, a.start(ab));
        ASSERT_TRUE(a.wait_failed(ab));
        EXPECT_EQ(UCS_ERR_REJECTED, ab->status);
        EXPECT_EQ(0u, a.live_qps());
        EXPECT_EQ(0u, b.live_qps());

        connect(a, ab, b, ba);
        expect_data(a, ab, b, ba);
    }
}

TEST_F(test_sep_cm, own_lack_of_resources_is_returned_by_start)
{
    cm_user a, b;
    conn *ab = a.get(b.addr);

    a.create_failures = 1;
    EXPECT_EQ(UCS_ERR_NO_MEMORY, a.start(ab));
    EXPECT_EQ(0u, ab->failed) << "told twice";
    EXPECT_EQ(UCS_INPROGRESS, a.start(ab));
    EXPECT_TRUE(a.wait_established(ab));
}

TEST_F(test_sep_cm, connection_is_made_anew_after_an_error)
{
    cm_user a, b;
    conn *ab = a.get(b.addr), *ba = b.get(a.addr);

    connect(a, ab, b, ba);
    uint32_t first = ba->qp->qp_num;

    a.error(ab);
    EXPECT_EQ(0u, a.live_qps());
    EXPECT_EQ(UCS_INPROGRESS, a.start(ab));
    ASSERT_TRUE(b.wait_failed(ba));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, ba->status);
    EXPECT_EQ(first, ba->qp->qp_num) << "taken from under the user's hands";

    b.error(ba);
    ASSERT_TRUE(a.wait_established(ab, 2));
    ASSERT_TRUE(b.wait_established(ba, 2));
    EXPECT_NE(first, ba->qp->qp_num);
    expect_data(a, ab, b, ba);
}

TEST_F(test_sep_cm, errors_again_and_again_on_both_sides_with_random_loss)
{
    options o = {.timeout = 0.01, .retry_count = 1000, .loss = 20,
                 .duplicates = 20, .seed = seed::get()};
    cm_user a(o), b(o);
    conn *ab = a.get(b.addr), *ba = b.get(a.addr);

    auto established = [](conn *c) {
        return c->super.state == UCT_SEP_CONN_STATE_CONNECTED;
    };
    auto use         = [&](cm_user &user, conn *c) {
        UCS_ASYNC_BLOCK(user.async);
        if (c->super.state == UCT_SEP_CONN_STATE_RESETTING) {
            user.error(c);
        }
        user.start(c);
        UCS_ASYNC_UNBLOCK(user.async);
        return established(c);
    };

    for (unsigned round = 0; round < 20; ++round) {
        a.error(ab);
        if (round % 3 == 0) {
            b.error(ba);
        }
        do {
            ASSERT_TRUE(a.wait([&]() {
                bool is_a_done = use(a, ab);
                bool is_b_done = use(b, ba);
                return is_a_done && is_b_done;
            }));
            /* As a send would find out */
            if (ab->remote.qpn != ba->qp->qp_num) {
                a.error(ab);
            }
        } while (!established(ab) || !established(ba) ||
                 (ab->remote.qpn != ba->qp->qp_num) ||
                 (ba->remote.qpn != ab->qp->qp_num));
        expect_data(a, ab, b, ba);
        EXPECT_EQ(1u, a.live_qps());
        EXPECT_EQ(1u, b.live_qps());
    }
}

TEST_F(test_sep_cm, closed_in_any_state)
{
    options o = {.loss = 100};
    cm_user b;

    for (unsigned i = 0; i < 20; ++i) {
        cm_user a((i % 2) ? o : options());
        conn *ab = a.get(b.addr);
        if (i % 4) {
            a.start(ab);
        }
        if (i % 3) {
            usleep(i * 50);
        }
    }
}

TEST_F(test_sep_cm, random_packets_that_are_none_of_ours_change_nothing)
{
    cm_user a, b;
    device &dev                  = *device::get();
    struct ibv_qp_init_attr init = {};
    struct ibv_qp_attr attr      = {};
    struct ibv_ah_attr ah_attr;
    uct_sep_device_addr_t addr   = a.addr.dev;
    uint8_t payload[512];
    std::mt19937_64 rng(seed::get());
    struct ibv_wc wc;

    struct ibv_cq *cq = ibv_create_cq(dev.context, 16, nullptr, nullptr, 0);
    init.send_cq      = cq;
    init.recv_cq      = cq;
    init.qp_type      = IBV_QPT_UD;
    init.cap.max_send_wr  = 8;
    init.cap.max_recv_wr  = 1;
    init.cap.max_send_sge = 1;
    init.cap.max_recv_sge = 1;
    struct ibv_qp *qp = ibv_create_qp(dev.pd, &init);
    ASSERT_NE(nullptr, qp);
    attr.port_num = 1;
    attr.qkey     = uct_sep_iface_addr_qkey(&a.addr.iface);
    attr.qp_state = IBV_QPS_INIT;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                          IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    uct_sep_device_addr_to_ah_attr(&dev.port, &addr, &ah_attr);
    struct ibv_ah *ah = ibv_create_ah(dev.pd, &ah_attr);
    ASSERT_NE(nullptr, ah);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, payload, sizeof(payload), 0);
    ASSERT_NE(nullptr, mr);

    for (unsigned i = 0; i < 300; ++i) {
        struct ibv_send_wr wr = {}, *bad_wr;
        struct ibv_sge sge    = {};

        for (auto &byte : payload) {
            byte = rng();
        }
        if (i % 3 == 0) {
            memcpy(payload, "SEPc\x06\x01\x00\x68", 8);
        }
        sge.addr   = reinterpret_cast<uintptr_t>(payload);
        sge.lkey   = mr->lkey;
        /* The last is longer than a receive of the manager */
        sge.length = (i == 299) ? sizeof(payload) :
                     (i % 3 == 0) ? sizeof(uct_sep_conn_packet_t) :
                                    rng() % 108;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode  = IBV_WR_SEND;
        wr.send_flags        = IBV_SEND_SIGNALED;
        wr.wr.ud.ah          = ah;
        wr.wr.ud.remote_qpn  = uct_sep_iface_addr_qpn(&a.addr.iface);
        wr.wr.ud.remote_qkey = uct_sep_iface_addr_qkey(&a.addr.iface);
        ASSERT_EQ(0, ibv_post_send(qp, &wr, &bad_wr));
        ASSERT_TRUE(a.wait([&]() { return ibv_poll_cq(cq, 1, &wc) > 0; }));
        ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
    }

    ASSERT_TRUE(a.wait([&]() { return a.stats().rx_malformed >= 299; }));
    EXPECT_EQ(0u, a.live_conns());
    EXPECT_EQ(0u, a.stats().tx_packets);

    conn *ab = a.get(b.addr), *ba = b.get(a.addr);
    connect(b, ba, a, ab);
    expect_data(a, ab, b, ba);

    ibv_dereg_mr(mr);
    ibv_destroy_ah(ah);
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
}

TEST_F(test_sep_cm, bad_parameters_are_refused)
{
    uct_sep_cm_params_t params = {};
    uct_sep_cm_t *cm;
    cm_user a;

    params.name         = "test";
    params.ibv_context  = device::get()->context;
    params.pd           = device::get()->pd;
    params.port         = device::get()->port;
    params.timeout      = 1;
    params.rx_queue_len = 16;
    params.max_half_open = 1;
    params.keepalive    = UCS_TIME_INFINITY;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_sep_cm_init(&params, &cm));
    params.async        = a.async;
    params.timeout      = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_sep_cm_init(&params, &cm));
    params.timeout      = 1;
    params.rx_queue_len = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_sep_cm_init(&params, &cm));
    params.rx_queue_len = 16;
    params.max_half_open = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_sep_cm_init(&params, &cm));
    params.max_half_open = 1;
    params.keepalive    = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_sep_cm_init(&params, &cm));
    params.keepalive    = UCS_TIME_INFINITY;
    params.port.lid     = 0;
    memset(&params.port.gid, 0, sizeof(params.port.gid));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_sep_cm_init(&params, &cm));
    EXPECT_EQ(1u, count_handlers(a.async));
}

/*
 * Several processes: this program again, each knowing its rank and a socket to
 * the parent
 */

class test_sep_cm_processes : public test_sep_cm {
protected:
    struct child {
        pid_t               pid;
        int                 fd;
        FILE                *output;
        uct_sep_peer_addr_t addr;
    };

    static child spawn(unsigned rank, unsigned count, unsigned loss,
                       uint64_t seed)
    {
        process::changes what;
        int fds[2];
        child c;

        EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
        c.output = tmpfile();
        c.fd     = fds[0];
        what.set = {"TEST_SEP_CM_FD=" + std::to_string(fds[1]),
                    "TEST_SEP_CM_RANK=" + std::to_string(rank),
                    "TEST_SEP_CM_COUNT=" + std::to_string(count),
                    "TEST_SEP_CM_LOSS=" + std::to_string(loss),
                    "TEST_SEP_CM_SEED=" + std::to_string(seed)};
        what.fds = {{fds[1], fds[1]},
                    {fileno(c.output), STDOUT_FILENO},
                    {fileno(c.output), STDERR_FILENO}};
        c.pid = process::start_test("test_sep_cm_processes.DISABLED_child",
                                    what);
        close(fds[1]);
        return c;
    }

    static bool read_all(int fd, void *buf, size_t length)
    {
        struct pollfd p = {fd, POLLIN, 0};

        for (size_t done = 0; done < length;) {
            if (poll(&p, 1, 1000 * patience::seconds()) <= 0) {
                return false;
            }
            ssize_t ret = read(fd, (char*)buf + done, length - done);
            if (ret <= 0) {
                return false;
            }
            done += ret;
        }
        return true;
    }

    static bool write_all(int fd, const void *buf, size_t length)
    {
        return send(fd, buf, length, MSG_NOSIGNAL) == (ssize_t)length;
    }

    static std::string output(const child &c)
    {
        std::string text;
        char buf[1024];
        size_t length;

        rewind(c.output);
        while ((length = fread(buf, 1, sizeof(buf), c.output)) > 0) {
            text.append(buf, length);
        }
        return text;
    }

    /* The seed is for whom to lose */
    static void run(unsigned count, unsigned loss, uint64_t seed = 0)
    {
        std::vector<child> children;
        char token;

        for (unsigned i = 0; i < count; ++i) {
            children.push_back(spawn(i, count, loss, seed + i));
        }
        for (auto &c : children) {
            EXPECT_TRUE(read_all(c.fd, &c.addr, sizeof(c.addr)));
        }
        for (auto &to : children) {
            for (auto &of : children) {
                write_all(to.fd, &of.addr, sizeof(of.addr));
            }
        }
        /* All are done before the first leaves */
        for (auto &c : children) {
            EXPECT_TRUE(read_all(c.fd, &token, 1)) << "process died or hangs";
        }
        for (auto &c : children) {
            write_all(c.fd, "q", 1);
        }
        for (auto &c : children) {
            if (HasFailure() && (c.pid > 0)) {
                kill(c.pid, SIGKILL);
            }
            EXPECT_EQ(0, process::wait(c.pid)) << output(c);
            close(c.fd);
            fclose(c.output);
        }
    }
};

TEST_F(test_sep_cm_processes, DISABLED_child)
{
    const char *rank_str = getenv("TEST_SEP_CM_RANK");
    char token           = 'd';
    options o;

    if (rank_str == nullptr) {
        GTEST_SKIP() << "started by other tests";
    }

    int fd         = atoi(getenv("TEST_SEP_CM_FD"));
    unsigned rank  = atoi(rank_str);
    unsigned count = atoi(getenv("TEST_SEP_CM_COUNT"));
    std::vector<uct_sep_peer_addr_t> addrs(count);
    std::vector<conn*> conns;

    o.loss       = atoi(getenv("TEST_SEP_CM_LOSS"));
    o.duplicates = o.loss;
    o.seed       = strtoull(getenv("TEST_SEP_CM_SEED"), nullptr, 10);
    if (o.loss > 0) {
        o.timeout     = 0.02;
        o.retry_count = 1000;
    }

    cm_user self(o);
    ASSERT_TRUE(write_all(fd, &self.addr, sizeof(self.addr)));
    ASSERT_TRUE(read_all(fd, addrs.data(), sizeof(addrs[0]) * count));

    for (auto &addr : addrs) {
        conns.push_back(self.get(addr));
        self.start(conns.back());
    }
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_TRUE(self.wait_established(conns[i])) << rank << "->" << i;
        ASSERT_TRUE(self.send(conns[i], 0x1000 + rank));
    }
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_TRUE(self.receive(conns[i], 0x1000 + i)) << i << "->" << rank;
        EXPECT_EQ(1u, conns[i]->qps_created);
        EXPECT_EQ(0u, conns[i]->failed);
    }
    EXPECT_EQ(count, self.live_qps());

    ASSERT_TRUE(write_all(fd, &token, 1));
    ASSERT_TRUE(read_all(fd, &token, 1));
}

TEST_F(test_sep_cm_processes, two)
{
    run(2, 0);
}

TEST_F(test_sep_cm_processes, sixteen_all_to_all)
{
    run(16, 0);
}

TEST_F(test_sep_cm_processes, sixteen_all_to_all_with_random_loss)
{
    run(16, 25, seed::get());
}

TEST_F(test_sep_cm_processes, sixty_four_all_to_all)
{
    run(64, 0);
}
