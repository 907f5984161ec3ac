/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_pack.h>

#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/eager/sep_eager_stats.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_postlist.h>

#include <common/seed.h>

#include <ucs/vfs/base/vfs_obj.h>

#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <random>

using namespace sep_uct_test;

namespace {

/*
 * Eager channel between interfaces of one process: what is sent arrives, in
 * order, whichever way it goes, and the rings are used, given back and freed.
 */

const int wakeup_timeout_ms = 1000 * patience::seconds();

/* A mode of the transport in which the channel has to work */
struct mode {
    const char *name;
    settings   changes;
};

std::ostream &operator<<(std::ostream &os, const mode &m)
{
    return os << m.name;
}

/* A completion whose callback does something */
struct acting_completion {
    explicit acting_completion(std::function<void()> func) :
        comp(), action(std::move(func))
    {
        comp.count = 1;
        comp.func  = [](uct_completion_t *self) {
            auto *c = ucs_container_of(self, acting_completion, comp);

            c->action();
            c->is_called = true;
        };
    }

    uct_completion_t      comp;
    std::function<void()> action;
    bool                  is_called = false;
};

class test_sep_uct_eager : public ::testing::TestWithParam<mode> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    /* One of several interfaces, and what it has sent to each of the others */
    struct node {
        std::unique_ptr<entity>        e;
        std::vector<uct_ep_h>          eps;
        std::vector<std::deque<bytes>> expected; /* By sender, not yet come */
        size_t                         seen = 0;
    };

    void make(unsigned count, settings changes = settings())
    {
        changes.insert(changes.begin(), GetParam().changes.begin(),
                       GetParam().changes.end());
        changes.insert(changes.begin(), {"EAGER", "y"});
        for (unsigned i = 0; i < count; ++i) {
            node n;
            n.e = (i == 0) ? entity::create(changes) :
                             entity::create(*m_nodes[0].e, changes);
            ASSERT_TRUE(n.e != nullptr);
            n.expected.resize(count);
            m_nodes.push_back(std::move(n));
        }
        for (auto &from : m_nodes) {
            for (auto &to : m_nodes) {
                from.eps.push_back((&from == &to) ? nullptr :
                                   from.e->connect(to.e->addr()));
            }
        }
    }

    void TearDown() override
    {
        /* Interfaces close after their connections have been used up */
        while (!m_nodes.empty()) {
            m_nodes.pop_back();
        }
    }

    /* Messages start with their sender, and a number */
    bytes message_of(unsigned from, size_t length)
    {
        bytes data = pattern(std::max(length, (size_t)8), ++m_count);

        data[0] = from;
        return data;
    }

    ucs_status_t send(unsigned from, unsigned to, unsigned how,
                      const bytes &data)
    {
        uct_ep_h ep     = m_nodes[from].eps[to];
        uint64_t header = 0;
        ucs_status_t status;
        ssize_t packed;
        uct_iov_t iov[2];

        memcpy(&header, data.data(), sizeof(header));
        switch (how) {
        case 0:
            status = uct_ep_am_short(ep, 1, header, data.data() + 8,
                                     data.size() - 8);
            break;
        case 1:
            iov[0] = {(void*)data.data(), 3, UCT_MEM_HANDLE_NULL, 0, 1};
            iov[1] = {(void*)(data.data() + 3), data.size() - 3,
                      UCT_MEM_HANDLE_NULL, 0, 1};
            status = uct_ep_am_short_iov(ep, 1, iov, 2);
            break;
        case 2:
            packed = uct_ep_am_bcopy(ep, 1, pack, (void*)&data, 0);
            status = (packed >= 0) ? UCS_OK : (ucs_status_t)packed;
            break;
        default:
            status = uct_ep_am_zcopy(ep, 1, data.data(), data.size(), NULL, 0,
                                     0, NULL);
            status = (status == UCS_INPROGRESS) ? UCS_OK : status;
            break;
        }

        if (status == UCS_OK) {
            m_nodes[to].expected[from].push_back(data);
        }
        return status;
    }

    /* Compare what has come with what was sent */
    void check()
    {
        for (auto &n : m_nodes) {
            for (; n.seen < n.e->messages.size(); ++n.seen) {
                const bytes &data = n.e->messages[n.seen].data;
                auto &expected    = n.expected[data[0]];

                ASSERT_FALSE(expected.empty());
                ASSERT_EQ(expected.front(), data) << "message " << n.seen;
                expected.pop_front();
            }
            n.e->messages.clear();
            n.seen = 0;
        }
    }

    void progress()
    {
        for (auto &n : m_nodes) {
            n.e->progress();
        }
        check();
    }

    bool is_quiet() const
    {
        for (auto &n : m_nodes) {
            for (auto &expected : n.expected) {
                if (!expected.empty()) {
                    return false;
                }
            }
        }
        return true;
    }

    bool wait(const std::function<bool()> &condition)
    {
        bool is_true = false;

        /* As long as anything takes, on any machine */
        m_nodes[0].e->wait([&]() {
            progress();
            is_true = condition();
            return is_true || HasFatalFailure();
        });
        return is_true;
    }

    /* A message each way between the first two, which connects them */
    void greet()
    {
        for (unsigned i = 0; i < 2; ++i) {
            ASSERT_TRUE(wait([&]() {
                return send(i, 1 - i, 0, message_of(i, 16)) == UCS_OK;
            }));
        }
        wait([&]() { return is_quiet(); });
    }

    /* Send until a ring is open; everything is received */
    void open_ring(unsigned from, unsigned to)
    {
        unsigned sent = 0;

        ASSERT_TRUE(wait([&]() {
            sent += (send(from, to, 0, message_of(from, 16)) == UCS_OK);
            return has_ring(from, to) || (sent > 100000);
        }));
        ASSERT_TRUE(has_ring(from, to)) << "none was offered";
        wait([&]() { return is_quiet(); });
    }

    /* One after the other from the first to the second node, each when slots
     * for it have come back */
    void send_by_ring(unsigned count)
    {
        uct_sep_ring_tx_t *ring = &txwq(0, 1)->ring;

        for (unsigned i = 0; i < count; ++i) {
            ASSERT_TRUE(wait([&]() {
                (void)uct_sep_ring_tx_refresh(ring);
                return ring->left >= 2;
            }));
            ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
            wait([&]() { return is_quiet(); });
        }
    }

    /* A ring from the first to the second node, through which a message has
     * gone. */
    void make_ring()
    {
        make(2);
        open_ring(0, 1);
        ASSERT_NO_FATAL_FAILURE(greet());
        ASSERT_NO_FATAL_FAILURE(send_by_ring(1));
    }

    uct_sep_txwq_t *txwq(unsigned from, unsigned to)
    {
        return m_nodes[from].e->sep_ep(m_nodes[from].eps[to])->txwq;
    }

    bool has_ring(unsigned from, unsigned to)
    {
        return uct_sep_ring_tx_is_open(&txwq(from, to)->ring);
    }

    /* Whether a message has been written into a ring of somebody who does not
     * progress */
    void expect_written(unsigned from, unsigned to)
    {
        uct_sep_postlist_ring_any(m_nodes[from].e->sep());
        ASSERT_TRUE(patience::until([&]() {
            return uct_sep_eager_has_message(txwq(to, from));
        }));
    }

    /* Nothing that the first two have posted is outstanding */
    bool is_flushed()
    {
        return (uct_iface_flush(m_nodes[0].e->iface(), 0, NULL) == UCS_OK) &&
               (uct_iface_flush(m_nodes[1].e->iface(), 0, NULL) == UCS_OK);
    }

    /* The first node gives up its connection to the second one, which does not
     * progress and has not heard of it yet, and will make the next one. What
     * the first one has posted is done. */
    void lose_now()
    {
        entity &first = *m_nodes[0].e;

        ASSERT_TRUE(patience::until([&]() {
            first.progress();
            return uct_iface_flush(first.iface(), 0, NULL) == UCS_OK;
        }));
        uct_sep_link_fail(first.sep(), txwq(0, 1), UCS_ERR_ENDPOINT_TIMEOUT);
        first.destroy(m_nodes[0].eps[1]);
        m_nodes[0].eps[1] = first.connect(m_nodes[1].e->addr());
    }

    /* ... and what the second one has */
    void lose()
    {
        ASSERT_TRUE(patience::until([&]() {
            m_nodes[0].e->progress();
            return is_flushed();
        }));
        ASSERT_NO_FATAL_FAILURE(lose_now());
    }

    /* As many messages as there is room for in the ring of the first node's
     * connection to the second one. @return their number */
    size_t fill_ring()
    {
        uct_sep_ring_tx_t *ring = &txwq(0, 1)->ring;
        size_t count            = 0;

        (void)uct_sep_ring_tx_refresh(ring);
        while ((ring->left >= 2) &&
               (send(0, 1, 0, message_of(0, 16)) == UCS_OK)) {
            ++count;
        }
        return count;
    }

    /* While the second node handles so many messages of its ring */
    void expect_nothing_posted(const uct_sep_txwq_t *txwq, size_t left)
    {
        entity &second        = *m_nodes[1].e;
        const uint16_t posted = txwq->sw_pi;

        second.on_message = [&]() {
            if (left > 0) {
                --left;
                ASSERT_TRUE(txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE);
                ASSERT_EQ(posted, txwq->sw_pi);
            }
        };
        EXPECT_TRUE(wait([&]() { return left == 0; }));
        second.on_message = nullptr;
    }

    /* It makes the next one, as far as that goes without the second one */
    void ask()
    {
        const uct_sep_link_t *link = this->link(1, 0);

        EXPECT_EQ(UCS_ERR_NO_RESOURCE, send(0, 1, 0, message_of(0, 16)));
        wait_for(1, [&]() {
            m_nodes[0].e->progress();
            return link->super.state == UCT_SEP_CONN_STATE_RESETTING;
        });
    }

    void lose_and_ask()
    {
        ASSERT_NO_FATAL_FAILURE(lose());
        ASSERT_NO_FATAL_FAILURE(ask());
    }

    uct_sep_link_t *link(unsigned from, unsigned to)
    {
        return m_nodes[from].e->sep_ep(m_nodes[from].eps[to])->link;
    }

    /* For what the asynchronous thread of a node does */
    void wait_for(unsigned i, const std::function<bool()> &condition)
    {
        ucs_async_context_t *async = m_nodes[i].e->sep()->super.worker->async;

        ASSERT_TRUE(patience::until([&]() {
            bool is_true;

            UCS_ASYNC_BLOCK(async);
            is_true = condition();
            UCS_ASYNC_UNBLOCK(async);
            return is_true;
        }));
    }

    unsigned num_rings(unsigned i)
    {
        return m_nodes[i].e->sep()->eager.num_rings;
    }

    /* Messages that an interface has taken out of rings */
    uint64_t by_ring(unsigned i)
    {
        return m_nodes[i].e->num_by_ring();
    }

    std::vector<uint64_t> stats(unsigned i)
    {
        std::vector<uint64_t> values(UCT_SEP_EAGER_STAT_LAST);

        uct_sep_eager_stats_get(m_nodes[i].e->sep(), values.data());
        return values;
    }

    static bool is_deferred()
    {
        const char *mode = getenv("MLX5SIM_EXEC");

        return (mode != nullptr) && !strcmp(mode, "deferred");
    }

    /* More messages than 16 bits can count, where it does not take long */
    unsigned many_messages() const
    {
        std::string name = GetParam().name;

        return (((name == "dynamic") || (name == "verbs")) && !is_deferred()) ?
               70000 : 2000;
    }

    /* What UCX's virtual file system shows */
    uint64_t shown(unsigned i, uct_sep_eager_stat_t stat)
    {
        char dir[128], path[256];
        ucs_string_buffer_t strb;
        uint64_t value;

        snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p/eager/%s",
                 (void*)m_nodes[i].e->worker(), (void*)m_nodes[i].e->iface(),
                 uct_sep_eager_stat_names[stat]);
        ucs_string_buffer_init(&strb);
        snprintf(dir, sizeof(dir), "/uct/worker/%p/iface/%p",
                 (void*)m_nodes[i].e->worker(), (void*)m_nodes[i].e->iface());
        EXPECT_EQ(UCS_OK, ucs_vfs_path_list_dir(dir, [](const char*, void*) {},
                                                NULL)); /* Refreshes it */
        EXPECT_EQ(UCS_OK, ucs_vfs_path_read_file(path, &strb)) << path;
        value = strtoul(ucs_string_buffer_cstr(&strb), NULL, 0);
        ucs_string_buffer_cleanup(&strb);
        return value;
    }

    void random_traffic(unsigned count, unsigned seed_index, size_t max_length)
    {
        std::mt19937 random(seed::get(seed_index));

        for (unsigned i = 0; i < count; ++i) {
            unsigned from = random() % m_nodes.size();
            unsigned to   = random() % m_nodes.size();

            if (from == to) {
                continue;
            }
            unsigned how  = random() % 4;
            size_t limit  = (how == 2) ? max_length :
                            (how == 3) ? 64 :
                            std::min((size_t)m_nodes[from].e->attr().
                                             cap.am.max_short, max_length);
            size_t length = ((random() % 4) == 0) ? random() % limit :
                                                    random() % 32;
            send(from, to, how, message_of(from, std::min(length, limit)));
            if ((random() % 3) == 0) {
                m_nodes[random() % m_nodes.size()].e->progress();
                check();
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
        wait([&]() { return is_quiet(); });
    }

    std::vector<node> m_nodes;
    uint64_t          m_count = 0;
};

/* Workers with queues of their own: a hub would have both ends of a ring, and
 * call the handlers of all its workers */
class test_sep_uct_eager_own : public test_sep_uct_eager {
};

TEST_P(test_sep_uct_eager, random_messages_arrive_in_order_both_ways)
{
    make(2);
    open_ring(0, 1);
    open_ring(1, 0);
    for (unsigned i = 0; (i < 8) && !HasFatalFailure(); ++i) {
        random_traffic(2000, i, (i % 2) ? 3000 : 600);
    }
    /* Most of the time more is sent than the rings have room for */
    EXPECT_GT(by_ring(0), 20u);
    EXPECT_GT(by_ring(1), 20u);
    EXPECT_GT(m_nodes[0].e->sep()->eager.stats.fallbacks, 10u);
}

/* One at a time, so that there are slots: by each way that writes into them */
TEST_P(test_sep_uct_eager, short_messages_of_every_length_arrive)
{
    make(2);
    open_ring(0, 1);
    for (unsigned how = 0; how < 3; ++how) {
        for (size_t length = 8; length <= 40; ++length) {
            ASSERT_TRUE(wait([&]() {
                return send(0, 1, how, message_of(0, length)) == UCS_OK;
            }));
            ASSERT_TRUE(wait([&]() { return is_quiet(); }));
        }
    }
    EXPECT_GT(by_ring(1), 20u);
}

/* Also when the numbers in rings and of receives have wrapped */
TEST_P(test_sep_uct_eager_own, every_message_is_counted_by_its_way)
{
    make(2);
    open_ring(0, 1);
    for (unsigned round = 0; round < 2; ++round) {
        auto sender = stats(0), receiver = stats(1);
        uint64_t fallbacks = m_nodes[0].e->sep()->eager.stats.fallbacks;
        unsigned total     = (round == 0) ? 10 : many_messages();

        for (unsigned i = 0; i < total; ++i) {
            ASSERT_TRUE(wait([&]() {
                return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
            }));
            if ((i % 5) == 0) {
                wait([&]() { return is_quiet(); });
            }
        }
        wait([&]() { return is_quiet(); });

        auto sent = stats(0), received = stats(1);
        auto grown = [](const std::vector<uint64_t> &before,
                        const std::vector<uint64_t> &after,
                        uct_sep_eager_stat_t stat) {
            return after[stat] - before[stat];
        };
        EXPECT_EQ(grown(sender, sent, UCT_SEP_EAGER_STAT_RING_SENT),
                  grown(receiver, received,
                        UCT_SEP_EAGER_STAT_RING_RECEIVED));
        EXPECT_EQ(total, grown(sender, sent, UCT_SEP_EAGER_STAT_RING_SENT) +
                         grown(sender, sent, UCT_SEP_EAGER_STAT_SENT));
        EXPECT_EQ(m_nodes[0].e->sep()->eager.stats.fallbacks - fallbacks,
                  grown(sender, sent, UCT_SEP_EAGER_STAT_SENT));
        EXPECT_GT(grown(sender, sent, UCT_SEP_EAGER_STAT_RING_SENT), 0u);
        EXPECT_LE(grown(sender, sent, UCT_SEP_EAGER_STAT_SENT),
                  grown(receiver, received, UCT_SEP_EAGER_STAT_RECEIVED));
    }

    auto receiver = stats(1);
    EXPECT_EQ(1u, receiver[UCT_SEP_EAGER_STAT_RINGS]);
    EXPECT_EQ(1u, stats(0)[UCT_SEP_EAGER_STAT_ACCEPTED]);
    for (int i = 0; i < UCT_SEP_EAGER_STAT_LAST; ++i) {
        EXPECT_EQ(receiver[i], shown(1, (uct_sep_eager_stat_t)i)) <<
                uct_sep_eager_stat_names[i];
    }
}

/* Neither side's numbers wrap unseen if the channel is never used */
TEST_P(test_sep_uct_eager_own, messages_are_counted_without_a_ring)
{
    make(2, {{"EAGER", "n"}});
    for (unsigned i = 0; i < many_messages(); ++i) {
        ASSERT_TRUE(wait([&]() {
            return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
        }));
        if ((i % 16) == 0) {
            wait([&]() { return is_quiet(); });
        }
    }
    wait([&]() { return is_quiet(); });

    EXPECT_EQ(many_messages(), stats(0)[UCT_SEP_EAGER_STAT_SENT]);
    EXPECT_EQ(0u, stats(0)[UCT_SEP_EAGER_STAT_RING_SENT]);
    EXPECT_EQ(many_messages(), stats(1)[UCT_SEP_EAGER_STAT_RECEIVED]);
    EXPECT_EQ(0u, stats(1)[UCT_SEP_EAGER_STAT_SENT]);
}

/* Longer messages need a window, and who waits for one is a pending request:
 * shorter ones must not go into the ring meanwhile, which would be faster */
TEST_P(test_sep_uct_eager, nothing_overtakes_what_waits_for_a_grant)
{
    make(2, {{"FC_WND_SIZE", "64"}});
    open_ring(0, 1);

    bool is_refused = false;
    for (unsigned i = 0; (i < 10000) && !is_refused; ++i) {
        if (send(0, 1, 2, message_of(0, 2000)) == UCS_ERR_NO_RESOURCE) {
            is_refused = uct_sep_fc_is_blocked(txwq(0, 1));
            if (!is_refused) {
                m_nodes[0].e->progress();
            }
        }
    }
    ASSERT_TRUE(is_refused);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send(0, 1, 0, message_of(0, 16)));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send(0, 1, 1, message_of(0, 24)));

    /* Nor when slots come back */
    if (!m_nodes[0].e->is_on_hub()) {
        uct_sep_eager_peer_t *peer = txwq(0, 1)->eager;
        uint32_t returned          = *peer->returned;

        for (unsigned i = 0; i < 2; ++i) {
            EXPECT_EQ(UCS_ERR_NO_RESOURCE, send(0, 1, 0, message_of(0, 16)));
            ++*peer->returned;
        }
        *peer->returned = returned;
    }

    /* All slots that were left can be used afterwards */
    wait([&]() { return is_quiet(); });
    uint64_t before = by_ring(1);
    for (unsigned i = 0; i < 200; ++i) {
        EXPECT_TRUE(wait([&]() {
            return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
        }));
        wait([&]() { return is_quiet(); });
    }
    EXPECT_EQ(before + 200, by_ring(1));
}

/* Progress that has found a message in a ring rings for lists as well: who has
 * waited for the message may go on to something else */
TEST_P(test_sep_uct_eager_own, no_list_waits_for_the_rings_to_be_empty)
{
    make(2);
    open_ring(0, 1);
    open_ring(1, 0);
    /* All of the queues is free */
    ASSERT_TRUE(m_nodes[0].e->flush());
    ASSERT_TRUE(m_nodes[1].e->flush());
    for (unsigned i = 0; i < 3; ++i) {
        ASSERT_EQ(UCS_OK, send(1, 0, 0, message_of(1, 16)));
    }
    expect_written(1, 0);

    m_nodes[0].e->on_message = [&]() {
        send(0, 1, 0, message_of(0, 16));
    };
    for (unsigned i = 0; i < 3; ++i) {
        ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
        ASSERT_TRUE(m_nodes[0].e->wait([&]() {
            return m_nodes[0].e->messages.size() > i;
        }));
        EXPECT_TRUE(ucs_list_is_empty(&m_nodes[0].e->sep()->tx.unrung));
    }
    m_nodes[0].e->on_message = nullptr;
    wait([&]() { return is_quiet(); });
}

TEST_P(test_sep_uct_eager, slots_come_back_where_nothing_is_sent)
{
    make(2);
    open_ring(0, 1);
    uint64_t before = by_ring(1);

    send_by_ring(500);
    EXPECT_EQ(before + 500, by_ring(1));
    if (!m_nodes[1].e->is_on_hub()) {
        /* A hub has written to itself: what comes back is in its messages */
        EXPECT_GT(m_nodes[1].e->sep()->eager.stats.writes, 0u);
    }
}

/* The counter of slots that came back begins anew with the ring */
TEST_P(test_sep_uct_eager_own, slots_come_back_of_a_ring_that_is_offered_again)
{
    make(2);
    for (unsigned round = 0; round < 2; ++round) {
        open_ring(0, 1);
        uint64_t before = by_ring(1);

        send_by_ring(500);
        EXPECT_EQ(before + 500, by_ring(1)) << "round " << round;

        ASSERT_TRUE(wait([&]() {
            (void)uct_sep_eager_prepare_sleep(m_nodes[1].e->sep());
            return (num_rings(1) == 0) && !has_ring(0, 1);
        }));
    }
}

TEST_P(test_sep_uct_eager_own, a_set_of_one_goes_to_who_sends_most_random)
{
    make(3, {{"EAGER_POLL_SET", "1"}});
    open_ring(1, 0);
    EXPECT_EQ(1u, num_rings(0));

    /* The other one sends far more */
    open_ring(2, 0);
    EXPECT_FALSE(has_ring(1, 0));
    EXPECT_EQ(1u, num_rings(0));

    /* And back, several times, with traffic of both */
    for (unsigned i = 0; (i < 3) && !HasFatalFailure(); ++i) {
        open_ring(1 + (i % 2), 0);
        random_traffic(500, i, 600);
        EXPECT_EQ(1u, num_rings(0));
    }
}

/* Also for the next message of another ring than the outermost handler's */
TEST_P(test_sep_uct_eager_own, handlers_may_wait_for_more_of_their_ring)
{
    make(3);
    open_ring(1, 0);
    open_ring(2, 0);

    entity &to     = *m_nodes[0].e;
    unsigned depth = 0, found = 0;
    auto wait_for  = [&](size_t count) {
        ++depth;
        found += to.wait([&]() { return to.messages.size() >= count; });
        --depth;
    };

    /* The first message's handler waits for another one's, and that for two
     * more, which come by the same ring */
    ASSERT_EQ(UCS_OK, send(1, 0, 0, message_of(1, 16)));
    for (unsigned i = 0; i < 3; ++i) {
        ASSERT_EQ(UCS_OK, send(2, 0, 0, message_of(2, 16)));
    }
    expect_written(1, 0);
    expect_written(2, 0);
    uct_sep_eager_set_hot(to.sep(), txwq(0, 1)->eager->ring);
    to.on_message = [&]() {
        if (depth < 2) {
            wait_for((depth == 0) ? 2 : 4);
        }
    };
    to.wait([&]() { return to.messages.size() >= 4; });
    EXPECT_EQ(2u, found);
    to.on_message = nullptr;
    check();
}

/* Such progress may leave a message that waits for those in its ring: the outer
 * one, which goes on with completions, finds the next one behind it */
TEST_P(test_sep_uct_eager_own, callbacks_of_sends_may_leave_a_message_waiting)
{
    make(3);
    open_ring(0, 1);
    open_ring(2, 1);

    /* Behind the last slot of the first ring, completions are looked at though
     * there is more in the second one */
    uct_sep_iface_t *iface     = m_nodes[1].e->sep();
    uct_sep_eager_ring_t *ring = txwq(1, 0)->eager->ring;
    while ((ring->rx.tail != ring->rx.last) && !HasFatalFailure()) {
        ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
        wait([&]() { return is_quiet(); });
    }
    uct_sep_eager_set_hot(iface, ring);

    acting_completion sent([&]() {
        completion written;

        send(0, 1, 0, message_of(0, 16));
        expect_written(0, 1);
        for (unsigned i = 0; i < 4; ++i) {
            /* The last two by send/receive */
            EXPECT_EQ(UCS_OK, send(2, 1, (i < 2) ? 0 : 2,
                                   message_of(2, (i < 2) ? 16 : 3000)));
        }
        EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(m_nodes[2].eps[1], 0,
                                               &written.comp));
        EXPECT_TRUE(m_nodes[2].e->wait([&]() { return written.calls > 0; }));
        m_nodes[1].e->progress();
    });
    bytes data = message_of(1, 16);
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_am_zcopy(m_nodes[1].eps[2], 1, data.data(), data.size(),
                              NULL, 0, 0, &sent.comp));
    m_nodes[2].expected[1].push_back(data);
    EXPECT_TRUE(wait([&]() { return sent.is_called && is_quiet(); }));
    EXPECT_TRUE(m_nodes[1].e->failures.empty());
}

TEST_P(test_sep_uct_eager_own, rings_are_given_back_before_a_worker_sleeps)
{
    make(2);
    open_ring(0, 1);
    ASSERT_EQ(1u, num_rings(1));

    /* Nothing wakes it any more when it has them, and what it had sent before
     * has completed */
    uct_iface_h iface = m_nodes[1].e->iface();
    struct pollfd pfd = {-1, POLLIN, 0};
    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(iface, &pfd.fd));
    EXPECT_TRUE(wait([&]() {
        return (uct_iface_event_arm(iface, UCT_EVENT_RECV) == UCS_OK) &&
               (num_rings(1) == 0) && (poll(&pfd, 1, 10) == 0);
    }));
    EXPECT_FALSE(has_ring(0, 1));

    /* Awake again */
    open_ring(0, 1);
}

/* A call of progress takes the message in the last slot of a ring, the next one
 * and a completion: that must not be what the peer has sent behind them all */
TEST_P(test_sep_uct_eager_own, a_ring_is_given_back_behind_its_messages)
{
    make(2, {{"EAGER_SLOTS", "16"}});
    open_ring(0, 1);
    ASSERT_TRUE(wait([&]() {
        uct_sep_ring_tx_t *ring = &txwq(0, 1)->ring;

        if (is_quiet() && (ring->slot_end != ring->last_end)) {
            send(0, 1, 0, message_of(0, 16));
        }
        (void)uct_sep_ring_tx_refresh(ring);
        return is_quiet() && (ring->slot_end == ring->last_end) &&
               (ring->left >= 4);
    }));

    for (unsigned i = 0; i < 4; ++i) {
        ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
    }
    (void)uct_sep_eager_prepare_sleep(m_nodes[1].e->sep());
    uct_sep_postlist_ring_any(m_nodes[1].e->sep());
    ASSERT_TRUE(m_nodes[0].e->wait([&]() { return !has_ring(0, 1); }));
    ASSERT_TRUE(m_nodes[0].e->flush());

    expect_errors none;
    EXPECT_TRUE(wait([&]() { return is_quiet() && (num_rings(1) == 0); }));
    EXPECT_TRUE(m_nodes[1].e->failures.empty());
    EXPECT_TRUE(none.messages.empty());
}

/* It comes back behind the message that is being handled: the slot is still in
 * use */
TEST_P(test_sep_uct_eager_own, a_ring_is_not_offered_while_a_handler_is_in_it)
{
    make(3, {{"EAGER_POLL_SET", "1"}});
    ASSERT_TRUE(wait([&]() {
        return send(1, 2, 0, message_of(1, 16)) == UCS_OK;
    }));
    open_ring(0, 1);

    entity &to       = *m_nodes[1].e;
    auto offer       = [&]() { /* To who sends much */
        uct_sep_eager_report(to.sep(), txwq(1, 2), 1000);
        return num_rings(1);
    };
    unsigned offered = 0;
    bool is_back     = false;

    ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
    expect_written(0, 1);
    to.on_message = [&]() {
        (void)uct_sep_eager_prepare_sleep(to.sep());
        is_back = to.wait([&]() {
            m_nodes[0].e->progress();
            return num_rings(1) == 0;
        });
        offered = offer();
    };
    EXPECT_TRUE(to.wait([&]() { return !to.messages.empty(); }));
    to.on_message = nullptr;
    check();
    EXPECT_TRUE(is_back);
    EXPECT_EQ(0u, offered);
    EXPECT_EQ(1u, offer());
    wait([&]() { return has_ring(2, 1); });
}

/* Who writes to it is busy with something else, or does not want to send any
 * more: nobody waits for that. What it writes is found in time. */
TEST_P(test_sep_uct_eager_own,
       a_worker_sleeps_though_its_rings_do_not_come_back)
{
    make(2);
    open_ring(0, 1);
    /* All messages fit into a short queue: who hears of more completions hears
     * of its ring, too */
    ASSERT_TRUE(m_nodes[0].e->flush());

    entity &to        = *m_nodes[1].e;
    struct pollfd pfd = {-1, POLLIN, 0};
    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(to.iface(), &pfd.fd));
    for (unsigned i = 0; i < 10; ++i) {
        uint64_t before = by_ring(1);
        bool is_armed   = false;

        ASSERT_TRUE(to.wait([&]() {
            is_armed = (uct_iface_event_arm(to.iface(), UCT_EVENT_RECV) ==
                        UCS_OK);
            return is_armed;
        }));
        ASSERT_TRUE(has_ring(0, 1)); /* It has not heard of that */

        ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
        uct_sep_postlist_ring_any(m_nodes[0].e->sep());
        if ((i % 2) == 0) {
            /* It does not fall asleep over a message */
            ASSERT_TRUE(patience::until([&]() {
                return !uct_sep_eager_is_drained(txwq(1, 0));
            }));
            EXPECT_EQ(UCS_ERR_BUSY,
                      uct_iface_event_arm(to.iface(), UCT_EVENT_RECV));
        } else {
            while (to.messages.empty()) {
                ASSERT_EQ(1, poll(&pfd, 1, wakeup_timeout_ms));
                while (to.progress() > 0);
                if (to.messages.empty()) {
                    uct_iface_event_arm(to.iface(), UCT_EVENT_RECV);
                }
            }
        }
        to.wait([&]() { return !to.messages.empty(); });
        check();
        EXPECT_EQ(before + 1, by_ring(1));
    }
}

/* Who has been woken may ask for other events than before */
TEST_P(test_sep_uct_eager_own, who_dozes_is_woken_once)
{
    make(2);
    open_ring(0, 1);

    uct_iface_h iface = m_nodes[1].e->iface();
    struct pollfd pfd = {-1, POLLIN, 0};
    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(iface, &pfd.fd));
    ASSERT_TRUE(m_nodes[1].e->wait([&]() {
        return uct_iface_event_arm(iface, UCT_EVENT_RECV) == UCS_OK;
    }));
    EXPECT_EQ(1, poll(&pfd, 1, wakeup_timeout_ms));
    EXPECT_TRUE(wait([&]() {
        return (uct_iface_event_arm(iface, UCT_EVENT_SEND_COMP) == UCS_OK) &&
               (num_rings(1) == 0) && (poll(&pfd, 1, 10) == 0);
    }));
}

/* One queue pair, connected to itself, has both ends of a ring */
TEST_P(test_sep_uct_eager, an_interface_can_write_to_itself)
{
    make(1);
    m_nodes[0].eps[0] = m_nodes[0].e->connect(m_nodes[0].e->addr());
    open_ring(0, 0);
    for (unsigned i = 0; i < 1000; ++i) {
        EXPECT_TRUE(wait([&]() {
            return send(0, 0, i % 4, message_of(0, 8 + i % 32)) == UCS_OK;
        }));
        if ((i % 5) == 0) {
            wait([&]() { return is_quiet(); });
        }
    }
    wait([&]() { return is_quiet(); });
    EXPECT_GT(by_ring(0), 500u);
}

/* Messages may come before the main thread knows the connection. The first one
 * tells it, so that those that ask for a ring are heard. */
TEST_P(test_sep_uct_eager_own, a_ring_is_offered_to_who_was_not_known_yet)
{
    make(2);
    entity &to = *m_nodes[1].e;
    for (unsigned i = 0; i < 20; ++i) {
        bytes data = message_of(0, 16);
        ASSERT_TRUE(patience::until([&]() {
            m_nodes[0].e->progress();
            return send(0, 1, 0, data) == UCS_OK;
        }));
    }
    ASSERT_TRUE(patience::until([&]() {
        m_nodes[0].e->progress();
        uct_iface_progress(to.iface());
        return to.messages.size() >= 20;
    }));
    EXPECT_FALSE(ucs_list_is_empty(&to.sep()->conn.active));
    EXPECT_TRUE(wait([&]() { return has_ring(0, 1); }));
}

/* After a flush, puts are strict until something has completed, if memory may
 * have relaxed ordering. Rings have not. */
TEST_P(test_sep_uct_eager, a_flush_does_not_close_rings)
{
    int has_relaxed = uct_sep_rkey_has_relaxed;

    make(2);
    open_ring(0, 1);
    uct_sep_rkey_has_relaxed = 1; /* As if such a key had come */
    for (unsigned i = 0; i < 20; ++i) {
        uint64_t before = by_ring(1);

        EXPECT_TRUE(wait([&]() {
            return uct_iface_flush(m_nodes[0].e->iface(), 0, NULL) == UCS_OK;
        }));
        ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
        wait([&]() { return is_quiet(); });
        EXPECT_EQ(before + 1, by_ring(1));
    }
    uct_sep_rkey_has_relaxed = has_relaxed;
}

/* A worker that sends and does not receive; the other has switched it off */
TEST_P(test_sep_uct_eager, who_has_it_off_declines)
{
    make(1);
    settings off = GetParam().changes;
    node n;

    off.push_back({"EAGER", "n"});
    n.e = entity::create(*m_nodes[0].e, off);
    ASSERT_TRUE(n.e != nullptr);
    m_nodes.push_back(std::move(n));
    for (unsigned i = 0; i < 2; ++i) {
        m_nodes[i].expected.resize(2);
        m_nodes[i].eps.resize(2);
        m_nodes[i].eps[1 - i] = m_nodes[i].e->connect(
                m_nodes[1 - i].e->addr());
    }

    for (unsigned i = 0; i < 2000; ++i) {
        ASSERT_TRUE(wait([&]() {
            return send(1, 0, 0, message_of(1, 16)) == UCS_OK;
        }));
    }
    EXPECT_TRUE(wait([&]() { return is_quiet() && (num_rings(0) == 0); }));
    /* It was offered one, and is not asked again */
    ASSERT_NE((void*)NULL, txwq(0, 1)->eager);
    EXPECT_TRUE(txwq(0, 1)->eager->is_refused);
    uct_sep_eager_report(m_nodes[0].e->sep(), txwq(0, 1), 1000000);
    EXPECT_EQ(0u, num_rings(0));
    EXPECT_EQ(0u, by_ring(0));
    EXPECT_FALSE(has_ring(1, 0));
    EXPECT_EQ(0u, num_rings(1));
}

/* A peer may not have answered when it is asked to give a ring back that it was
 * just offered. It would have accepted. */
TEST_P(test_sep_uct_eager_own,
       who_was_asked_before_it_answered_gets_another_ring)
{
    const int32_t none = 1 << 20;

    make(2);
    ASSERT_NO_FATAL_FAILURE(greet());

    /* The writer can't post anything */
    txwq(0, 1)->credits -= none;
    uct_sep_eager_report(m_nodes[1].e->sep(), txwq(1, 0), 1000);
    uct_sep_eager_prepare_sleep(m_nodes[1].e->sep());
    EXPECT_TRUE(wait([&]() {
        return (txwq(0, 1)->eager != NULL) &&
               (txwq(0, 1)->eager->state.due ==
                UCS_BIT(UCT_SEP_RING_MSG_DECLINE));
    }));
    txwq(0, 1)->credits += none;
    uct_sep_eager_send_due(m_nodes[0].e->sep());
    EXPECT_TRUE(wait([&]() { return num_rings(1) == 0; }));

    open_ring(0, 1);
}

/* Its ring will be free when its messages were handled, and nothing can be sent
 * to it */
TEST_P(test_sep_uct_eager_own,
       nobody_is_asked_for_a_ring_whose_connection_failed)
{
    make(3, {{"EAGER_POLL_SET", "1"}});
    open_ring(1, 0);
    for (unsigned from : {0u, 2u}) {
        ASSERT_TRUE(wait([&]() {
            return send(from, 2 - from, 0, message_of(from, 16)) == UCS_OK;
        }));
    }
    wait([&]() { return is_quiet(); });

    ASSERT_EQ(UCS_OK, send(1, 0, 0, message_of(1, 16)));
    expect_written(1, 0);
    uct_sep_iface_t *iface  = m_nodes[0].e->sep();
    uct_sep_txwq_t *retired = txwq(0, 1);
    uct_sep_link_fail(iface, retired, UCS_ERR_CONNECTION_RESET);
    ASSERT_NE((void*)NULL, retired->eager); /* Not destroyed yet */
    uint16_t posted = retired->sw_pi;

    uct_sep_eager_report(iface, txwq(0, 2), 1000000);
    EXPECT_EQ(posted, retired->sw_pi);
    EXPECT_FALSE(retired->eager->state.is_revoked);
    EXPECT_EQ(0, retired->eager->state.due);

    /* The message is handled, and the ring given to the other one */
    open_ring(2, 0);
    EXPECT_EQ(1u, num_rings(0));
}

/* The peer has accepted a ring and written into it, and neither was looked at
 * when the connection failed */
TEST_P(test_sep_uct_eager_own, messages_of_a_ring_are_handled_after_a_failure)
{
    make(2);
    ASSERT_NO_FATAL_FAILURE(greet());

    uct_sep_eager_report(m_nodes[1].e->sep(), txwq(1, 0), 1000);
    uct_sep_postlist_ring_any(m_nodes[1].e->sep());
    ASSERT_TRUE(patience::until([&]() {
        m_nodes[0].e->progress();
        return has_ring(0, 1);
    }));
    ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
    expect_written(0, 1);

    uct_sep_link_fail(m_nodes[1].e->sep(), txwq(1, 0),
                      UCS_ERR_CONNECTION_RESET);
    EXPECT_TRUE(wait([&]() { return is_quiet() && (num_rings(1) == 0); }));
    EXPECT_EQ(1u, by_ring(1));
}

/* The peer has given up the connection, as after all repetitions to a node that
 * was stopped, and makes the next one while its messages are in the ring. What
 * we send from then on goes by that as well. */
TEST_P(test_sep_uct_eager_own, the_next_connection_does_not_overtake_a_ring)
{
    make(2);
    open_ring(0, 1);
    ASSERT_NO_FATAL_FAILURE(greet());
    /* Completions are looked at where a ring ends, which is in the middle of
     * the messages */
    send_by_ring(txwq(0, 1)->ring.left / 2);

    entity &first = *m_nodes[0].e, &second = *m_nodes[1].e;

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    (void)uct_sep_ring_tx_refresh(&txwq(0, 1)->ring);
    while ((txwq(0, 1)->ring.left >= 2) &&
           (send(0, 1, 0, message_of(0, 16)) == UCS_OK));
    ASSERT_NO_FATAL_FAILURE(lose());

    /* The second one comes now and then */
    unsigned calls = 0;
    bool is_sent   = false, is_answered = false;
    const uct_sep_txwq_t *old = txwq(1, 0);
    ASSERT_TRUE(patience::until([&]() {
        is_sent = is_sent ||
                  (send(0, 1, 0, message_of(0, 16)) == UCS_OK);
        first.progress();
        if ((++calls % 500) == 0) {
            second.progress();
            check();
            is_answered = is_answered ||
                          ((txwq(1, 0) != old) &&
                           (send(1, 0, 0, message_of(1, 16)) == UCS_OK));
        }
        return (is_sent && is_answered) || HasFatalFailure();
    }));
    wait([&]() { return is_quiet(); });
    EXPECT_TRUE(second.failures.empty());
}

/* ... though they wait for one that was sent, which nobody has looked at */
TEST_P(test_sep_uct_eager_own,
       the_next_connection_waits_for_what_waits_in_a_ring)
{
    ASSERT_NO_FATAL_FAILURE(make_ring());

    entity &second       = *m_nodes[1].e;
    uct_sep_txwq_t *txwq = this->txwq(1, 0);
    uint64_t before      = by_ring(1);

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    ASSERT_EQ(UCS_OK, send(0, 1, 3, message_of(0, 16)));
    ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
    expect_written(0, 1);
    EXPECT_FALSE(uct_sep_link_is_idle(second.sep(), txwq));

    ASSERT_NO_FATAL_FAILURE(lose_and_ask());
    uct_sep_link_handle_events(second.sep());
    EXPECT_TRUE(txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE);

    wait([&]() { return is_quiet(); });
    EXPECT_EQ(before + 1, by_ring(1));
    EXPECT_TRUE(wait([&]() {
        return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
    }));
    wait([&]() { return is_quiet(); });
    EXPECT_TRUE(second.failures.empty());
}

/* Nothing but progress empties the ring for which the answer waits, whatever
 * events the worker waits for */
TEST_P(test_sep_uct_eager_own, who_has_to_empty_a_ring_does_not_sleep)
{
    ASSERT_NO_FATAL_FAILURE(make_ring());

    entity &second = *m_nodes[1].e;
    int fd;

    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(second.iface(), &fd));
    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
    expect_written(0, 1);
    ASSERT_NO_FATAL_FAILURE(lose_and_ask());
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(UCS_ERR_BUSY,
                  uct_iface_event_arm(second.iface(), UCT_EVENT_SEND_COMP));
    }

    wait([&]() { return is_quiet(); });
    EXPECT_TRUE(wait([&]() {
        return uct_iface_event_arm(second.iface(), UCT_EVENT_SEND_COMP) ==
               UCS_OK;
    }));
    EXPECT_TRUE(second.failures.empty());
}

/* Slots given back to who has given up the connection would be an error, and
 * the answer would not wait for the rest of the ring */
TEST_P(test_sep_uct_eager_own, nothing_is_posted_to_who_has_given_up)
{
    ASSERT_NO_FATAL_FAILURE(make_ring());

    entity &second             = *m_nodes[1].e;
    const uct_sep_txwq_t *txwq = this->txwq(1, 0);
    size_t left                = 0;

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    left = fill_ring();
    ASSERT_NO_FATAL_FAILURE(lose_and_ask());
    uct_sep_link_handle_events(second.sep());

    expect_nothing_posted(txwq, left);
    EXPECT_TRUE(wait([&]() {
        return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
    }));
    wait([&]() { return is_quiet(); });
    EXPECT_TRUE(second.failures.empty());
}

/* ... also if it had agreed to the end before, and then has lost its own */
TEST_P(test_sep_uct_eager_own, nothing_is_posted_to_who_has_agreed_and_asks)
{
    make_ring();
    if (HasFatalFailure()) {
        return;
    }

    entity &first = *m_nodes[0].e, &second = *m_nodes[1].e;
    uct_sep_txwq_t *old        = txwq(0, 1);
    const uct_sep_txwq_t *txwq = this->txwq(1, 0);
    uct_sep_link_t *link       = this->link(1, 0);
    size_t left                = 0;

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    left = fill_ring();
    ASSERT_TRUE(patience::until([&]() {
        first.progress();
        return uct_iface_flush(first.iface(), 0, NULL) == UCS_OK;
    }));

    /* Nobody uses it at the second node, which agrees at once */
    uct_sep_cm_conn_hold(second.sep()->conn.cm, &link->super);
    second.destroy(m_nodes[1].eps[0]);
    UCS_ASYNC_BLOCK(second.sep()->super.worker->async);
    --link->super.refcount;
    UCS_ASYNC_UNBLOCK(second.sep()->super.worker->async);
    uct_sep_link_unbind_all(this->link(0, 1));
    uct_sep_cm_conn_disconnect(first.sep()->conn.cm, &this->link(0, 1)->super,
                               0);
    wait_for(1, [&]() {
        return link->super.flags & UCT_SEP_CONN_FLAG_AGREED;
    });

    uct_sep_link_fail(first.sep(), old, UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send(0, 1, 0, message_of(0, 16)));
    wait_for(1, [&]() {
        first.progress();
        return link->super.flags & UCT_SEP_CONN_FLAG_PENDING;
    });
    EXPECT_TRUE(link->super.flags & UCT_SEP_CONN_FLAG_AGREED);
    uct_sep_link_handle_events(second.sep());

    expect_nothing_posted(txwq, left);
    EXPECT_TRUE(wait([&]() {
        return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
    }));
    EXPECT_TRUE(wait([&]() { return m_nodes[1].expected[0].empty(); }));
}

/* What has arrived at the peer before that gave up the connection is not lost,
 * though nobody has asked for a completion. With messages in the ring, and
 * without. */
TEST_P(test_sep_uct_eager_own, who_has_lost_nothing_goes_on)
{
    make_ring();
    if (HasFatalFailure()) {
        return;
    }

    entity &second = *m_nodes[1].e;

    for (unsigned num_left : {3, 0}) {
        ASSERT_NO_FATAL_FAILURE(open_ring(0, 1));
        ASSERT_NO_FATAL_FAILURE(greet());
        ASSERT_TRUE(wait([&]() { return is_flushed(); }));
        for (unsigned i = 0; i < 3; ++i) {
            ASSERT_EQ(UCS_OK, send(1, 0, 0, message_of(1, 16)));
        }
        uct_sep_postlist_ring_any(second.sep());
        for (unsigned i = 0; i < num_left; ++i) {
            ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
        }
        ASSERT_TRUE(patience::until([&]() {
            m_nodes[0].e->progress();
            check();
            return m_nodes[0].expected[1].empty();
        }));
        EXPECT_FALSE(uct_sep_txwq_is_empty(txwq(1, 0)));
        ASSERT_NO_FATAL_FAILURE(lose_now());
        ASSERT_NO_FATAL_FAILURE(ask());

        EXPECT_TRUE(wait([&]() {
            return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
        }));
        EXPECT_TRUE(wait([&]() {
            return send(1, 0, 0, message_of(1, 16)) == UCS_OK;
        }));
        EXPECT_TRUE(wait([&]() { return is_quiet(); }));
        EXPECT_TRUE(second.failures.empty()) << num_left;
    }
}

/* What was sent behind that is lost, of which its sender hears when it has
 * handled what is in the ring. A flush does not succeed meanwhile. */
TEST_P(test_sep_uct_eager_own, who_has_lost_a_message_hears_of_it_later)
{
    make_ring();
    if (HasFatalFailure()) {
        return;
    }

    entity &second = *m_nodes[1].e;
    uct_ep_h ep    = m_nodes[1].eps[0];
    size_t left    = 0;

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    left = fill_ring();
    ASSERT_NO_FATAL_FAILURE(lose());
    expect_errors hide;
    ASSERT_EQ(UCS_OK, send(1, 0, 0, message_of(1, 16)));
    m_nodes[0].expected[1].clear();
    ASSERT_NO_FATAL_FAILURE(ask());
    uct_sep_link_handle_events(second.sep());

    second.on_message = [&]() {
        if (left > 0) {
            --left;
            EXPECT_TRUE(second.failures.empty());
            EXPECT_NE(UCS_OK, uct_ep_flush(ep, 0, NULL));
        }
    };
    EXPECT_TRUE(wait([&]() { return left == 0; }));
    second.on_message = nullptr;
    EXPECT_TRUE(wait([&]() { return !second.failures.empty(); }));
    EXPECT_EQ(1u, second.failures.size());
    EXPECT_TRUE(wait([&]() {
        return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
    }));
    EXPECT_TRUE(wait([&]() { return is_quiet(); }));
}

/* ... nor does one of a callback behind the failure, which endpoints hear of
 * later */
TEST_P(test_sep_uct_eager_own, who_has_lost_a_message_can_not_flush)
{
    make(3);

    entity &second = *m_nodes[1].e;
    entity &third  = *m_nodes[2].e;
    unsigned count = 0;

    ASSERT_NO_FATAL_FAILURE(greet());
    ASSERT_TRUE(wait([&]() {
        return send(2, 1, 3, message_of(2, 16)) == UCS_OK;
    }));
    ASSERT_TRUE(wait([&]() { return is_quiet() && is_flushed(); }));
    ASSERT_NO_FATAL_FAILURE(lose());
    expect_errors hide;
    ASSERT_EQ(UCS_OK, send(1, 0, 0, message_of(1, 16)));
    m_nodes[0].expected[1].clear();
    ASSERT_NO_FATAL_FAILURE(ask());
    uct_sep_link_handle_events(second.sep());

    ASSERT_EQ(UCS_OK, send(2, 1, 3, message_of(2, 16)));
    ASSERT_TRUE(patience::until([&]() {
        third.progress();
        return uct_iface_flush(third.iface(), 0, NULL) == UCS_OK;
    }));
    second.on_message = [&]() {
        ++count;
        EXPECT_TRUE(second.failures.empty());
        EXPECT_NE(UCS_OK, uct_ep_flush(m_nodes[1].eps[0], 0, NULL));
        second.on_message = nullptr;
    };
    EXPECT_TRUE(wait([&]() { return !second.failures.empty(); }));
    EXPECT_TRUE(wait([&]() { return is_quiet(); }));
    EXPECT_EQ(1u, count);
    EXPECT_EQ(1u, second.failures.size());
}

/* A message in the ring that has to come behind another one waits for what is
 * in the completion queue when it is asked about, not for what was there when
 * one before it was */
TEST_P(test_sep_uct_eager_own, each_message_in_the_ring_waits_for_its_own)
{
    make_ring();
    if (HasFatalFailure()) {
        return;
    }

    uct_sep_iface_t *iface = m_nodes[1].e->sep();

    for (unsigned i = 0; i < 2; ++i) {
        ASSERT_TRUE(wait([&]() { return is_flushed(); }));
        ASSERT_EQ(UCS_OK, send(0, 1, 3, message_of(0, 16)));
        ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
        ASSERT_NO_FATAL_FAILURE(expect_written(0, 1));
        EXPECT_TRUE(uct_sep_eager_is_drained(txwq(1, 0)));
        EXPECT_FALSE(uct_sep_link_is_idle(iface, txwq(1, 0))) << i;
        EXPECT_TRUE(wait([&]() { return is_quiet(); }));
    }
}

/* Nor does the end of a connection, which waits for what has come meanwhile */
TEST_P(test_sep_uct_eager_own, the_end_waits_for_what_has_come_since_a_visit)
{
    make_ring();
    if (HasFatalFailure()) {
        return;
    }

    uct_sep_iface_t *iface = m_nodes[1].e->sep();
    uct_sep_txwq_t *txwq   = this->txwq(1, 0);

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    uint32_t before = iface->api->cq_end(iface);
    ASSERT_EQ(UCS_OK, send(0, 1, 3, message_of(0, 16)));
    ASSERT_EQ(UCS_OK, send(0, 1, 0, message_of(0, 16)));
    ASSERT_NO_FATAL_FAILURE(expect_written(0, 1));
    /* A visit when the fabric had brought only the second one */
    txwq->conn.has_cq_end  = 1;
    txwq->conn.waiting_seq = uct_sep_eager_next_seq(txwq);
    txwq->conn.cq_end      = before;
    ASSERT_NO_FATAL_FAILURE(lose_now());
    ASSERT_NO_FATAL_FAILURE(ask());
    uct_sep_link_handle_events(iface);
    EXPECT_EQ(txwq, link(1, 0)->txwq);
    EXPECT_TRUE(wait([&]() { return is_quiet(); }));
    EXPECT_TRUE(wait([&]() {
        return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
    }));
    EXPECT_TRUE(wait([&]() { return is_quiet(); }));
    EXPECT_TRUE(m_nodes[1].e->failures.empty());
}

/* Slots that were given back on what the peer had lost already are nobody's
 * loss, also if a flush waits for them */
TEST_P(test_sep_uct_eager_own, slots_that_do_not_come_back_are_no_loss)
{
    make_ring();
    if (HasFatalFailure()) {
        return;
    }

    entity &second           = *m_nodes[1].e;
    completion flushed;
    uct_sep_txwq_t *txwq     = this->txwq(1, 0);
    uct_sep_ring_tx_t *other = &this->txwq(0, 1)->ring;

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    (void)uct_sep_ring_tx_refresh(other);
    ASSERT_TRUE(patience::until([&]() {
        m_nodes[0].e->progress();
        return (other->left < 2) ||
               ((send(0, 1, 0, message_of(0, 16)) == UCS_OK) &&
                (other->left < 2));
    }));
    ASSERT_NO_FATAL_FAILURE(lose());
    ASSERT_TRUE(patience::until([&]() {
        second.progress();
        check();
        return txwq->eager->is_returning;
    }));
    EXPECT_FALSE(is_quiet());
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_flush(m_nodes[1].eps[0], 0, &flushed.comp));
    ASSERT_NO_FATAL_FAILURE(ask());
    uct_sep_link_handle_events(second.sep());
    EXPECT_TRUE(txwq->conn.is_settled);

    EXPECT_TRUE(wait([&]() {
        return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
    }));
    EXPECT_TRUE(wait([&]() { return is_quiet(); }));
    EXPECT_TRUE(second.failures.empty());
    EXPECT_EQ(UCS_OK, flushed.status);
}

/* What a peer writes into a ring, and it is our memory */
class test_sep_uct_eager_bad : public test_sep_uct_eager {
protected:
    void SetUp() override
    {
        test_sep_uct_eager::SetUp();
        if (IsSkipped()) {
            return;
        }
        make(3);
        open_ring(0, 1);
        open_ring(2, 1);
    }

    uct_sep_eager_ring_t *ring()
    {
        for (unsigned i = 0; i < 16; ++i) {
            uct_sep_eager_ring_t *r = &m_nodes[1].e->sep()->eager.rings[i];
            if ((r->txwq != NULL) && (r->txwq == txwq(1, 0))) {
                return r;
            }
        }
        return NULL;
    }

    /* The connection fails, and the other one does not */
    void expect_failure()
    {
        EXPECT_TRUE(wait([&]() { return !m_nodes[1].e->failures.empty(); }));
        EXPECT_EQ(1u, m_nodes[1].e->failures.size());
        EXPECT_EQ(m_nodes[1].eps[0], m_nodes[1].e->failures[0].ep);
        m_nodes[1].expected[0].clear();
        random_traffic_of_others();
    }

    void random_traffic_of_others()
    {
        for (unsigned i = 0; i < 100; ++i) {
            ASSERT_EQ(UCS_OK, send(2, 1, 0, message_of(2, 16)));
            wait([&]() { return m_nodes[1].expected[2].empty(); });
        }
    }

    static constexpr uint32_t VALID = UCT_SEP_RING_TAIL_VALID;

    void write_tail(uint16_t seq, uint32_t length, uint8_t am_id,
                    uint8_t credits, uint32_t mark = VALID)
    {
        uint32_t key = uct_sep_ring_rx_key(&ring()->rx);
        uct_sep_ring_tail_t tail = {key + (uint16_t)(seq - key),
                                    UCT_SEP_RING_TAIL_REST(credits, am_id,
                                                           length) ^
                                    mark ^ VALID};

        memcpy(ring()->rx.tail, &tail, sizeof(tail));
    }

    uint16_t seq()
    {
        return uct_sep_ring_rx_seq(&ring()->rx);
    }
};

TEST_P(test_sep_uct_eager_bad, a_message_longer_than_its_slot)
{
    write_tail(seq(), ring()->rx.max_length + 1, 1, 0);
    expect_failure();
}

/* Nobody will ever handle it, and its connection is not kept for that */
TEST_P(test_sep_uct_eager_bad, a_message_longer_than_its_slot_after_a_failure)
{
    uct_sep_iface_t *iface = m_nodes[1].e->sep();
    expect_errors expected;

    write_tail(seq(), ring()->rx.max_length + 1, 1, 0);
    uct_sep_link_fail(iface, txwq(1, 0), UCS_ERR_CONNECTION_RESET);
    EXPECT_TRUE(wait([&]() {
        return ucs_list_is_empty(&iface->conn.retired);
    }));
    EXPECT_EQ(1u, num_rings(1));
    EXPECT_EQ(1u, expected.count(UCS_LOG_LEVEL_ERROR, "a wrong length"));
    expect_failure();
}

TEST_P(test_sep_uct_eager_bad, bits_that_mean_nothing)
{
    write_tail(seq(), 8, 1, 0, VALID | (1u << 28));
    expect_failure();
}

/* It may be on its way; who never completes it has spoilt its own ring */
TEST_P(test_sep_uct_eager_bad, a_message_without_the_mark_is_not_taken)
{
    uint64_t before = by_ring(1);

    write_tail(seq(), 8, 1, 0, 0);
    random_traffic_of_others();
    EXPECT_TRUE(m_nodes[1].e->failures.empty());
    EXPECT_EQ(before + 100, by_ring(1));

    /* Unless something else shows that it is complete */
    uct_sep_iface_t *iface = m_nodes[0].e->sep();
    uct_sep_wr_am_t am     = {};
    am.id                  = UCT_SEP_AM_RING | 1;
    am.is_imm              = 1;
    am.imm                 = UCT_SEP_RING_IMM(0, 0, seq() + 1);
    iface->tx.ops->post_header(iface, txwq(0, 1), am, &am, 8);
    expect_failure();
}

/* The ring in which it is comes first in the table, and none of the others is
 * the one from which the last message came */
TEST_P(test_sep_uct_eager_bad, a_message_without_the_mark_delays_nobody)
{
    uct_sep_iface_t *iface = m_nodes[1].e->sep();

    uct_sep_eager_set_hot(iface, &iface->eager.none);
    ASSERT_EQ(0u, uct_sep_eager_index(iface, ring()));
    write_tail(seq(), 8, 1, 0, 0);
    for (unsigned i = 0; (i < 10) && !HasFatalFailure(); ++i) {
        ASSERT_EQ(UCS_OK, send(2, 1, 0, message_of(2, 16)));
        ASSERT_TRUE(wait([&]() { return m_nodes[1].expected[2].empty(); }));
        uct_sep_eager_set_hot(iface, &iface->eager.none);
    }
    EXPECT_TRUE(m_nodes[1].e->failures.empty());
}

TEST_P(test_sep_uct_eager_bad, a_wrong_number)
{
    write_tail(seq() + 1, 8, 1, 0);
    expect_failure();
}

/* It waits for one that is not there. Who has lied, or lost that with its
 * connection, makes the next one nevertheless. */
TEST_P(test_sep_uct_eager_bad, a_message_that_waits_in_vain_delays_nobody)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    write_tail(seq(), 8, 1, 0);
    *ring()->rx.tail += UCT_SEP_RING_KEY(1, 0);
    ASSERT_TRUE(uct_sep_eager_has_message(txwq(1, 0)));
    random_traffic_of_others();

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    EXPECT_TRUE(uct_sep_link_is_idle(m_nodes[1].e->sep(), txwq(1, 0)));
    ASSERT_NO_FATAL_FAILURE(lose_and_ask());
    EXPECT_TRUE(wait([&]() {
        return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
    }));
    EXPECT_TRUE(wait([&]() { return is_quiet(); }));
    EXPECT_TRUE(m_nodes[1].e->failures.empty());
}

/* ... though others send all the time, so that there is always a completion */
TEST_P(test_sep_uct_eager_bad, a_message_that_waits_in_vain_delays_for_a_while)
{
    if (m_nodes[0].e->is_on_hub()) {
        GTEST_SKIP() << "a hub takes all that is there";
    }
    TearDown();
    ASSERT_NO_FATAL_FAILURE(make(3, {{"RX_QUEUE_LEN", "64"},
                                     {"TX_CQ_LEN", "256"}}));
    ASSERT_NO_FATAL_FAILURE(open_ring(0, 1));
    ASSERT_NO_FATAL_FAILURE(open_ring(2, 1));
    ASSERT_NO_FATAL_FAILURE(greet());
    write_tail(seq(), 8, 1, 0);
    *ring()->rx.tail += UCT_SEP_RING_KEY(1, 0);

    entity &second         = *m_nodes[1].e;
    uct_sep_iface_t *iface = second.sep();
    uct_sep_txwq_t *txwq   = this->txwq(1, 0);
    /* Through verbs, as many as the queue holds */
    const int most         = 1000 + (2 * iface->cq.cq->cqe);
    size_t count           = 0;

    ASSERT_TRUE(wait([&]() { return is_flushed(); }));
    iface->config.rx_max_poll = 1;
    /* What is sent has been received before it is complete */
    auto stream = [&]() {
        entity &other = *m_nodes[2].e;

        while (count < 5) {
            ASSERT_TRUE(patience::until([&]() {
                other.progress();
                return send(2, 1, 3, message_of(2, 16)) == UCS_OK;
            }));
            ++count;
            ASSERT_TRUE(patience::until([&]() {
                other.progress();
                return uct_iface_flush(other.iface(), 0, NULL) == UCS_OK;
            }));
        }
        second.progress();
        check();
        count = m_nodes[1].expected[2].size();
    };

    stream();
    EXPECT_FALSE(uct_sep_link_is_idle(iface, txwq));
    for (int i = 0; (i < most) && !uct_sep_link_is_idle(iface, txwq); ++i) {
        ASSERT_NO_FATAL_FAILURE(stream());
    }
    EXPECT_TRUE(uct_sep_link_is_idle(iface, txwq));
    EXPECT_GT(count, 0u);

    ASSERT_NO_FATAL_FAILURE(lose_now());
    ASSERT_NO_FATAL_FAILURE(ask());
    for (int i = 0; (i < most) && (this->txwq(1, 0) == txwq); ++i) {
        ASSERT_NO_FATAL_FAILURE(stream());
    }
    EXPECT_NE(txwq, this->txwq(1, 0));
    EXPECT_TRUE(wait([&]() {
        return send(0, 1, 0, message_of(0, 16)) == UCS_OK;
    }));
    EXPECT_TRUE(wait([&]() { return is_quiet(); }));
    EXPECT_TRUE(second.failures.empty());
}

TEST_P(test_sep_uct_eager_bad, slots_that_were_not_used)
{
    /* What is returned is counted when half of a ring was used */
    open_ring(1, 0);
    for (unsigned i = 0; (i < 64) && (ring() != NULL) && ring()->is_watched;
         ++i) {
        bytes data = message_of(0, 8);
        memcpy(uct_sep_ring_payload(ring()->rx.tail, 8), data.data(), 8);
        m_nodes[1].expected[0].push_back(data);
        write_tail(seq(), 8, 1, 200);
        m_nodes[1].e->progress();
    }
    expect_failure();
}

TEST_P(test_sep_uct_eager_bad, control_messages_out_of_turn)
{
    uct_sep_iface_t *iface = m_nodes[0].e->sep();
    uct_sep_wr_am_t am     = {.id = UCT_SEP_AM_RING | UCT_SEP_RING_MSG_ACCEPT};
    uct_sep_ring_body_t body = {};

    iface->tx.ops->post_header(iface, txwq(0, 1), am, &body,
                               sizeof(body.accept));
    expect_failure();
}

TEST_P(test_sep_uct_eager_bad, an_unknown_control_message)
{
    uct_sep_iface_t *iface = m_nodes[0].e->sep();
    uct_sep_wr_am_t am     = {.id = UCT_SEP_AM_RING | 31};

    iface->tx.ops->post_header(iface, txwq(0, 1), am, &am, 5);
    expect_failure();
}

TEST_P(test_sep_uct_eager_bad, a_message_behind_others_that_are_not_there)
{
    uct_sep_iface_t *iface = m_nodes[0].e->sep();
    uct_sep_wr_am_t am     = {};

    am.id     = UCT_SEP_AM_RING | 1;
    am.is_imm = 1;
    am.imm    = UCT_SEP_RING_IMM(0, 0, seq() + 1);
    iface->tx.ops->post_header(iface, txwq(0, 1), am, &am, 8);
    expect_failure();
}

TEST_P(test_sep_uct_eager_bad, a_message_for_a_ring_that_is_not_there)
{
    uct_sep_iface_t *iface = m_nodes[1].e->sep();
    uct_sep_wr_am_t am     = {};

    /* From the owner to the writer, which has none */
    am.id     = UCT_SEP_AM_RING | 1;
    am.is_imm = 1;
    iface->tx.ops->post_header(iface, txwq(1, 0), am, &am, 8);
    EXPECT_TRUE(wait([&]() { return !m_nodes[0].e->failures.empty(); }));
}

const mode modes[] = {
    {"dynamic", {{"CATEGORY", "dynamic"}}},
    {"doorbell", {{"API", "dv"}, {"TX_POST", "db"}}},
    {"own", {{"CATEGORY", "mpi_everywhere"}}},
    {"cq_sharing", {{"API", "dv"}, {"CQ_SHARING", "2"}}},
    {"postlist", {{"API", "dv"}, {"TX_POSTLIST", "8"}}},
    {"verbs", {{"API", "verbs"}}},
    {"buffers", {{"RX_INLINE", "0"}}},
    {"cqe64", {{"RX_INLINE", "64"}}},
    {"burst", {{"RX_MAX_POLL", "16"}}},
    {"short_queue", {{"TX_QUEUE_LEN", "16"}, {"EAGER_SLOTS", "128"}}},
    {"threads", {{"CATEGORY", "mpi_threads"}}} /* The only one with a hub */
};

std::string mode_name(const ::testing::TestParamInfo<mode> &info)
{
    return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(modes, test_sep_uct_eager, ::testing::ValuesIn(modes),
                         mode_name);
INSTANTIATE_TEST_SUITE_P(modes, test_sep_uct_eager_own,
                         ::testing::ValuesIn(std::begin(modes),
                                             std::end(modes) - 1), mode_name);
INSTANTIATE_TEST_SUITE_P(modes, test_sep_uct_eager_bad,
                         ::testing::Values(modes[0], modes[5]), mode_name);

} /* namespace */
