/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_budget_dir.h>
#include <sep/test_sep_uct.h>

#include <uct/ib/sep/base/sep_budget.h>
#include <uct/ib/sep/base/sep_budget_node.h>
#include <uct/ib/sep/conn/sep_cm_int.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_event.h>

#include <endian.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>

using namespace sep_uct_test;

namespace {

/*
 * More peers than queue pairs (UCX_SEP_MAX_QPS): workers of one process, of
 * which some have a budget. The device executes at once, or some time later.
 */
class test_sep_uct_budget : public ::testing::TestWithParam<const char*> {
protected:
    struct content {
        uint64_t number; /* From this sender to this receiver */
        uint32_t from;
        uint8_t  rest[20];
    };

    struct worker {
        std::unique_ptr<entity> e;
        std::vector<uct_ep_h>   eps;      /* By receiver */
        std::vector<uint64_t>   sent;
        std::vector<uint64_t>   received; /* By sender */
        size_t                  num_seen = 0;
        unsigned                limit    = 0;
    };

    bool has_device()
    {
        return on_device({{"MLX5SIM_EXEC", GetParam()}});
    }

    void open(unsigned count, const std::function<settings(unsigned)> &config,
              const std::function<unsigned(unsigned)> &limit)
    {
        m_workers.resize(count);
        for (unsigned i = 0; i < count; ++i) {
            worker &w = m_workers[i];

            w.e = (i == 0) ? entity::create(config(i)) :
                             entity::create(*m_workers[0].e, config(i));
            ASSERT_NE(nullptr, w.e);
            w.eps.resize(count);
            w.sent.resize(count);
            w.received.resize(count);
            w.limit = limit(i);
        }
        for (auto &w : m_workers) {
            for (unsigned to = 0; to < count; ++to) {
                w.eps[to] = w.e->connect(m_workers[to].e->addr());
            }
        }
    }

    /* All have the same share */
    void open_alike(unsigned count, unsigned share,
                    const settings &more = settings())
    {
        settings config = more;

        config.push_back({"MAX_QPS", std::to_string(count * share)});
        open(count, [&](unsigned) { return config; },
             [&](unsigned) { return share; });
    }

    void close()
    {
        while (!m_workers.empty()) {
            m_workers.pop_back();
        }
    }

    void TearDown() override
    {
        close();
    }

    bool send(unsigned from, unsigned to)
    {
        worker &w    = m_workers[from];
        content data = {w.sent[to], from, {}};
        ucs_status_t status;

        status = uct_ep_am_short(w.eps[to], 1, data.number, &data.from,
                                 sizeof(data) - sizeof(data.number));
        EXPECT_TRUE((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE))
                << ucs_status_string(status);
        w.sent[to] += (status == UCS_OK);
        return status == UCS_OK;
    }

    /* Each once; what has arrived is in order */
    void progress()
    {
        for (auto &w : m_workers) {
            w.e->progress();
            EXPECT_EQ(0u, w.e->failures.size());
            if (w.limit > 0) {
                /* If this machine is so busy that a second goes by, workers
                 * exceed their share */
                EXPECT_LE(w.e->num_qps(), w.limit +
                                          w.e->sep()->conn.budget.num_exceeded);
            }
            for (; w.num_seen < w.e->messages.size(); ++w.num_seen) {
                content data = {};
                const bytes &got = w.e->messages[w.num_seen].data;

                ASSERT_EQ(sizeof(data.number) + sizeof(data.from) +
                          sizeof(data.rest), got.size());
                memcpy(&data, got.data(), got.size());
                ASSERT_LT(data.from, m_workers.size());
                ASSERT_EQ(w.received[data.from]++, data.number)
                        << "out of order";
            }
        }
    }

    /* From each to each of those that it is to send to, so many messages */
    void exchange(unsigned count,
                  const std::function<bool(unsigned, unsigned)> &is_pair)
    {
        unsigned num = m_workers.size();
        std::vector<std::vector<uint64_t>> left(num);
        uint64_t missing = 0;

        for (unsigned i = 0; i < num; ++i) {
            for (unsigned j = 0; j < num; ++j) {
                left[i].push_back(is_pair(i, j) ? count : 0);
                missing += left[i][j];
            }
        }
        ASSERT_TRUE(m_workers[0].e->wait([&]() {
            for (unsigned i = 0; i < num; ++i) {
                for (unsigned j = 0; j < num; ++j) {
                    if ((left[i][j] > 0) && send(i, j)) {
                        --left[i][j];
                        --missing;
                    }
                }
            }
            progress();
            return (missing == 0) || HasFailure();
        })) << missing << " messages are left";
        ASSERT_TRUE(m_workers[0].e->wait([&]() {
            bool is_all = true;

            progress();
            for (unsigned i = 0; i < num; ++i) {
                for (unsigned j = 0; j < num; ++j) {
                    is_all &= (m_workers[j].received[i] ==
                               m_workers[i].sent[j]);
                }
            }
            return is_all || HasFailure();
        }));
    }

    std::vector<worker> m_workers;
};

/* Who does not progress agrees to nothing, and must not keep others waiting */
TEST_P(test_sep_uct_budget, a_peer_that_does_not_progress_costs_a_second)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_alike(3, 2));
    ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
        return (from == 0) && (to == 1);
    }));

    worker &first = m_workers[0], &third = m_workers[2];
    while (!send(0, 2)) {
        first.e->progress();
        third.e->progress();
    }
    while (third.e->messages.empty()) {
        first.e->progress();
        third.e->progress();
    }
    EXPECT_EQ(1u, first.e->sep()->conn.budget.num_exceeded);
    EXPECT_EQ(2u, first.e->num_qps());
}

/* A thread that has not progressed has not asked anybody yet */
TEST_P(test_sep_uct_budget, who_computes_keeps_to_the_budget)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_alike(3, 2, {{"CM_TIMEOUT", "1ms"},
                                              {"CM_RETRY_COUNT", "40"}}));
    ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
        return (from == 0) && (to == 1);
    }));

    uct_sep_ep_budget_t &budget = m_workers[0].e->sep()->conn.budget;
    unsigned looks              = 0;

    EXPECT_FALSE(send(0, 2));
    for (; budget.num_exceeded == 0; ++looks) {
        usleep(ucs_time_to_usec(budget.patience));
        m_workers[0].e->progress();
    }
    EXPECT_GE(looks, 16u);
}

/* Its memory may be what others write, or wait for: they are let in, one in the
 * time in which it would have gone beyond its share itself */
TEST_P(test_sep_uct_budget, who_does_not_progress_lets_others_in)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_alike(5, 2, {{"CM_TIMEOUT", "1ms"},
                                              {"CM_RETRY_COUNT", "40"}}));
    ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
        return (to == 0) && ((from == 1) || (from == 2));
    }));

    const uct_sep_ep_budget_t &budget = m_workers[0].e->sep()->conn.budget;
    const uint64_t before             = budget.num_exceeded;
    ucs_time_t start                  = ucs_get_time();

    ASSERT_EQ(2u, m_workers[0].e->num_qps());
    for (unsigned from : {3, 4}) {
        ASSERT_TRUE(m_workers[from].e->wait([&]() {
            m_workers[from].e->progress();
            return send(from, 0);
        }));
    }
    EXPECT_EQ(before + 2, budget.num_exceeded);
    EXPECT_LE(2 * budget.patience, ucs_get_time() - start);
    EXPECT_EQ(4u, m_workers[0].e->num_qps());

    /* It comes down to its share when it wants room itself */
    ASSERT_NO_FATAL_FAILURE(exchange(20, [](unsigned from, unsigned to) {
        return from != to;
    }));
}

/* Who refuses to sleep is asked less and less often, and the endpoints here go
 * on in between */
TEST_P(test_sep_uct_budget, a_busy_peer_is_seldom_asked)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_alike(3, 2, {{"CM_TIMEOUT", "1000s"}}));
    ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
        return (from == 0) && (to == 1);
    }));

    uct_sep_iface_t *iface = m_workers[0].e->sep();
    uct_sep_link_t *link   =
            m_workers[0].e->sep_ep(m_workers[0].eps[1])->link;
    uct_sep_link_t *busy   =
            m_workers[1].e->sep_ep(m_workers[1].eps[0])->link;
    uint64_t num_asked     = 0;
    unsigned since         = 0;

    EXPECT_FALSE(send(0, 2));
    while (num_asked < 9) {
        /* Where it has no credits or queue left for a while, it is busy
         * nevertheless. It never becomes urgent. */
        iface->conn.budget.num_spared = 0;
        send(1, 0);
        if (busy->txwq != NULL) {
            busy->txwq->conn.visited_pi = busy->txwq->sw_pi + 1;
        }
        ASSERT_NO_FATAL_FAILURE(progress());
        ++since;
        if (iface->conn.budget.num_asked > num_asked) {
            ASSERT_EQ(std::min<uint64_t>(num_asked, 6), link->refusals);
            EXPECT_GE(since, (num_asked == 0) ? 1u :
                             (1u << std::min<uint64_t>(num_asked - 1, 6)));
            ++num_asked;
            since = 0;
        }
    }

    ASSERT_TRUE(m_workers[0].e->wait([&]() {
        send(1, 0);
        progress();
        return send(0, 1) || HasFailure();
    })) << "the endpoint of a refused connection does not go on";
}

/* What is new is not given up for a while, nor is what is used then */
TEST_P(test_sep_uct_budget, new_and_used_ones_are_kept)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_alike(3, 2, {{"CM_TIMEOUT", "1000s"}}));
    ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
        return (from == 0) && (to == 1);
    }));

    uct_sep_iface_t *iface = m_workers[0].e->sep();
    uct_sep_txwq_t *txwq   =
            m_workers[0].e->sep_ep(m_workers[0].eps[1])->link->txwq;
    ucs_time_t long_time   = ucs_time_from_sec(1000.0);
    auto num_asked         = [&](unsigned rounds) {
        for (unsigned i = 0; (i < rounds) && !HasFailure(); ++i) {
            progress();
        }
        return iface->conn.budget.num_asked;
    };

    EXPECT_GT(iface->conn.budget.connect_time, 0u);
    txwq->conn.kept_until = ucs_get_time() + long_time;
    EXPECT_FALSE(send(0, 2));
    /* The hand does not look whether it could be given up, which would ask for
     * a completion */
    uint16_t posted = txwq->sw_pi;
    EXPECT_FALSE(uct_sep_txwq_is_empty(txwq));
    EXPECT_EQ(0u, num_asked(100));
    EXPECT_EQ(posted, txwq->sw_pi);

    /* The hand finds that it has been used since. However long connecting
     * takes, it is kept for half of what others wait. */
    iface->conn.budget.connect_time = 2 * long_time;
    iface->conn.budget.patience     = long_time;
    txwq->conn.kept_until           = ucs_get_time();
    ++txwq->conn.visited_pi;
    EXPECT_EQ(0u, num_asked(100));
    EXPECT_GT(txwq->conn.kept_until, ucs_get_time() + (long_time / 4));
    EXPECT_LE(txwq->conn.kept_until, ucs_get_time() + (long_time / 2));

    /* As soon as what was posted for looking is done */
    txwq->conn.kept_until = ucs_get_time();
    EXPECT_TRUE(m_workers[0].e->wait([&]() {
        return (num_asked(1) > 0) || HasFailure();
    }));
}

/* Whose answer is under way is about to make room */
TEST_P(test_sep_uct_budget, no_more_are_asked_than_are_needed)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open(5, [](unsigned i) {
        return (i > 0) ? settings() : settings{{"MAX_QPS", "4"},
                                               {"CM_TIMEOUT", "1000s"}};
    }, [](unsigned i) { return (i > 0) ? 0 : 4; }));
    ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
        return (from == 0) && (to > 0) && (to < 4);
    }));

    uct_sep_iface_t *iface = m_workers[0].e->sep();
    iface->conn.cm->tx_filter = [](void*, const uct_sep_conn_msg_t*) {
        return 0u; /* The question is lost */
    };
    iface->conn.budget.patience = ucs_time_from_sec(1000.0);
    EXPECT_FALSE(send(0, 4));
    ASSERT_TRUE(m_workers[0].e->wait([&]() {
        progress();
        return (iface->conn.budget.num_asked > 0) || HasFailure();
    }));
    for (unsigned i = 0; i < 100; ++i) {
        ASSERT_NO_FATAL_FAILURE(progress());
    }
    EXPECT_EQ(1u, iface->conn.budget.num_asked);
    iface->conn.cm->tx_filter = NULL;
}

/* What is refused is used again before anything else is asked */
TEST_P(test_sep_uct_budget, endpoints_go_on_with_a_refusal)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_alike(3, 2, {{"CM_TIMEOUT", "1000s"}}));
    ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
        return (from == 0) && (to == 1);
    }));

    worker &first = m_workers[0], &second = m_workers[1];
    uct_sep_iface_t *iface = first.e->sep();
    uct_sep_link_t *link   = first.e->sep_ep(first.eps[1])->link;
    ucs_async_context_t *async = iface->super.worker->async;
    bool is_refused            = false;

    iface->conn.budget.patience = ucs_time_from_sec(1000.0);
    EXPECT_FALSE(send(0, 2));
    ASSERT_TRUE(first.e->wait([&]() {
        first.e->progress();
        return link->super.state == UCT_SEP_CONN_STATE_DISCONNECTING;
    }));

    /* The other one has used it, and says so */
    ASSERT_TRUE(second.e->wait([&]() {
        send(1, 0);
        UCS_ASYNC_BLOCK(async);
        is_refused = link->has_event;
        UCS_ASYNC_UNBLOCK(async);
        return is_refused;
    }));
    EXPECT_TRUE(uct_sep_cm_conn_is_usable(&link->super));
    first.e->progress();
    EXPECT_EQ(1u, iface->conn.budget.num_asked);
    EXPECT_EQ(link->txwq, first.e->sep_ep(first.eps[1])->txwq);
}

TEST_P(test_sep_uct_budget, an_attempt_that_failed_holds_nothing)
{
    if (!has_device()) {
        return;
    }
    settings config = hasty;
    config.push_back({"MAX_QPS", "2"});
    auto local = entity::create(config), other = entity::create(*local);
    ASSERT_NE(nullptr, local);
    ASSERT_NE(nullptr, other);

    uct_ep_h ep = local->connect(other->addr());
    local->sep()->conn.cm->tx_filter = [](void*, const uct_sep_conn_msg_t*) {
        return 0u;
    };
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_am_short(ep, 1, 0, NULL, 0));
    EXPECT_EQ(1u, local->sep()->conn.budget.held);
    ASSERT_TRUE(local->wait([&]() { return local->failures.size() == 1; }));
    EXPECT_EQ(0u, local->num_qps());
    EXPECT_EQ(0u, local->sep()->conn.budget.held);
}

/* It may have nothing else to do than to make room */
TEST_P(test_sep_uct_budget, who_waits_for_room_wakes_a_sleeper)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open(4, [](unsigned i) {
        return (i > 0) ? settings() : settings{{"MAX_QPS", "2"}};
    }, [](unsigned i) { return (i > 0) ? 0 : 2; }));
    ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
        return ((from == 0) && (to == 1)) || ((from == 2) && (to == 0));
    }));

    entity &sleeper   = *m_workers[0].e;
    auto *async       = sleeper.sep()->super.worker->async;
    auto &num_waits   = sleeper.sep()->conn.budget.num_waits;
    struct pollfd pfd = {-1, POLLIN, 0};
    auto falls_asleep = [&]() {
        sleeper.progress();
        return uct_iface_event_arm(sleeper.iface(), UCT_EVENT_RECV) == UCS_OK;
    };

    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(sleeper.iface(), &pfd.fd));
    ASSERT_TRUE(sleeper.wait([&]() {
        progress();
        return falls_asleep() && (poll(&pfd, 1, 0) == 0);
    }));
    EXPECT_EQ(0u, num_waits);
    /* An event that was due before may come late */
    uct_sep_event_signal(sleeper.sep());
    EXPECT_FALSE(send(3, 0));
    ASSERT_TRUE(m_workers[3].e->wait([&]() {
        m_workers[3].e->progress();
        if (poll(&pfd, 1, 0) == 0) {
            return false;
        }

        /* If it was that, it sleeps again; nothing comes in between */
        UCS_ASYNC_BLOCK(async);
        while ((num_waits == 0) && !falls_asleep());
        bool is_waited_for = (num_waits == 1);
        UCS_ASYNC_UNBLOCK(async);
        ucs_async_check_miss(async);
        return is_waited_for;
    }));
}

/* Without its answer, its adapter tells that it has gone: when the question is
 * repeated, and when it is asked again after all repetitions */
TEST_P(test_sep_uct_budget, a_peer_that_was_killed_makes_room)
{
    if (!has_device()) {
        return;
    }

    for (bool is_late : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(open(3, [](unsigned i) {
            return (i > 0) ? settings() : settings{{"MAX_QPS", "2"},
                                                   {"CM_TIMEOUT", "1000s"}};
        }, [](unsigned i) { return (i > 0) ? 0 : 2; }));
        ASSERT_NO_FATAL_FAILURE(exchange(1, [](unsigned from, unsigned to) {
            return (from == 0) && (to == 1);
        }));

        worker &first = m_workers[0], &second = m_workers[1];
        uct_sep_link_t *link = first.e->sep_ep(first.eps[1])->link;
        auto lose_all = [](void*, const uct_sep_conn_msg_t*) { return 0u; };
        uint16_t asked_pi = 0;
        bool is_connected;

        ASSERT_TRUE(first.e->wait([&]() {
            progress();
            return uct_ep_flush(first.eps[1], 0, NULL) == UCS_OK;
        }));
        first.e->sep()->conn.cm->tx_filter  = lose_all;
        second.e->sep()->conn.cm->tx_filter = lose_all;
        EXPECT_FALSE(send(0, 2));
        ASSERT_TRUE(first.e->wait([&]() {
            first.e->progress();
            return link->super.state == UCT_SEP_CONN_STATE_DISCONNECTING;
        }));

        if (is_late) {
            /* It is alive when its adapter is asked */
            asked_pi            = link->txwq->sw_pi;
            link->super.retries = 1;
            ASSERT_TRUE(first.e->wait([&]() {
                first.e->progress();
                return (link->txwq->sw_pi != asked_pi) &&
                       uct_sep_txwq_is_empty(link->txwq);
            }));
            EXPECT_EQ(UCT_SEP_CONN_STATE_DISCONNECTING, link->super.state);
            link->super.deadline = 0;
        }
        second.e.reset();
        first.e->sep()->conn.cm->tx_filter = NULL;
        first.e->wait([&]() {
            first.e->progress();
            m_workers[2].e->progress();
            if ((link->super.state == UCT_SEP_CONN_STATE_DISCONNECTING) &&
                (link->super.deadline != 0)) {
                link->super.retries = 1; /* As if it had been repeated */
            }
            return is_connected = send(0, 2);
        });
        EXPECT_TRUE(is_connected) << "its queue pair is kept, " << is_late;
        EXPECT_EQ(0u, first.e->sep()->conn.budget.num_exceeded);
        m_workers.erase(m_workers.begin() + 1);
        close();
    }
}

/* With two queue pairs for each connection */
TEST_P(test_sep_uct_budget, split_connections_count_twice)
{
    if (!has_device()) {
        return;
    }
    const unsigned num = 4, share = 4;
    ASSERT_NO_FATAL_FAILURE(
            open_alike(num, share, {{"CATEGORY", "mpi_everywhere"}}));
    ASSERT_NO_FATAL_FAILURE(exchange(5, [](unsigned i, unsigned j) {
        return i != j;
    }));
    for (auto &w : m_workers) {
        uct_sep_iface_t *iface = w.e->sep();
        unsigned count         = 0;
        uct_sep_txwq_t *txwq;

        UCS_ASYNC_BLOCK(iface->super.worker->async);
        for (auto *list : {&iface->conn.active, &iface->conn.retired}) {
            ucs_list_for_each(txwq, list, conn.list) {
                count += (txwq->conn.responder != nullptr) ? 2 : 1;
            }
        }
        EXPECT_EQ(count, iface->conn.budget.held);
        EXPECT_LE(count, share + 2 * iface->conn.budget.num_exceeded);
        UCS_ASYNC_UNBLOCK(iface->super.worker->async);
    }
}

/* What was sent last is seen by the flush; one that sleeps has nothing to
 * flush, and nothing to be put in order */
TEST_P(test_sep_uct_budget, an_endpoint_asleep_flushes_at_once)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open(5, [](unsigned i) {
        return (i > 0) ? settings() : settings({{"MAX_QPS", "2"}});
    }, [](unsigned i) { return (i > 0) ? 0 : 2; }));

    worker &w = m_workers[0];
    for (unsigned round = 0; round < 2; ++round) {
        for (unsigned to = 1; to < 5; ++to) {
            ASSERT_NO_FATAL_FAILURE(exchange(1, [&](unsigned i, unsigned j) {
                return (i == 0) && (j == to);
            }));
        }
    }
    EXPECT_EQ(&w.e->sep()->tx.idle, w.e->sep_ep(w.eps[1])->txwq);
    EXPECT_EQ(UCS_OK, uct_ep_fence(w.eps[1], 0));
    EXPECT_EQ(UCS_OK, uct_ep_flush(w.eps[1], 0, NULL));
    EXPECT_EQ(&w.e->sep()->tx.idle, w.e->sep_ep(w.eps[1])->txwq);

    /* Who wants to know whether the peer is there wakes it up */
    EXPECT_EQ(UCS_OK, uct_ep_check(w.eps[1], 0, NULL));
    ASSERT_TRUE(w.e->wait([&]() {
        progress();
        return w.e->sep_ep(w.eps[1])->txwq != &w.e->sep()->tx.idle;
    }));
}

TEST_P(test_sep_uct_budget, too_little_is_refused)
{
    if (!has_device()) {
        return;
    }
    for (const char *value : {"0", "1"}) {
        expect_errors hide;

        EXPECT_EQ(nullptr, entity::create({{"MAX_QPS", value}})) << value;
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, "UCX_SEP_MAX_QPS"));
    }

    /* For one, but not for two */
    auto first = entity::create({{"MAX_QPS", "3"}});
    ASSERT_NE(nullptr, first);
    {
        expect_errors hide;

        EXPECT_EQ(nullptr, entity::create(*first, {{"MAX_QPS", "3"}}));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, "for 2 workers"));
    }
    auto second = entity::create(*first, {{"MAX_QPS", "4"}});
    ASSERT_NE(nullptr, second);
}

TEST_P(test_sep_uct_budget, auto_bounds_a_process)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open(3, [](unsigned) {
        return settings({{"MAX_QPS", "auto"}});
    }, [](unsigned) { return 0; }));
    ASSERT_NO_FATAL_FAILURE(exchange(3, [](unsigned, unsigned) {
        return true;
    }));
    ASSERT_NE(nullptr, m_workers[0].e->sep()->conn.budget.shared);
    EXPECT_EQ(0u, m_workers[0].e->sep()->conn.budget.num_waits);
}

/* With an account of a directory of its own */
class test_sep_uct_budget_node : public test_sep_uct_budget {
protected:
    void SetUp() override
    {
        ASSERT_NO_FATAL_FAILURE(m_dir.enter());
    }

    void TearDown() override
    {
        close();
        m_dir.leave();
    }

    void open_node(unsigned count, unsigned max)
    {
        open(count, [&](unsigned) {
            return settings({{"MAX_QPS_NODE", std::to_string(max)}});
        }, [](unsigned) { return 0; });
    }

    /* One sends to all others, which send nothing */
    void fan_out()
    {
        ASSERT_NO_FATAL_FAILURE(exchange(4, [](unsigned from, unsigned to) {
            return (from == 0) && (to > 0);
        }));
    }

    budget_dir m_dir;
};

/* Its share is two, but the others need one each */
TEST_P(test_sep_uct_budget_node, a_worker_has_what_others_leave)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_node(6, 12));
    ASSERT_NO_FATAL_FAILURE(fan_out());
    EXPECT_EQ(5u, m_workers[0].e->num_qps());
    EXPECT_EQ(0u, m_workers[0].e->sep()->conn.budget.num_waits);
}

TEST_P(test_sep_uct_budget_node, a_worker_without_connections_holds_nothing)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_node(2, 4));
    ASSERT_NO_FATAL_FAILURE(fan_out());

    worker &first = m_workers[0];
    const uct_sep_budget_node_t *node = first.e->sep()->conn.budget.node;

    EXPECT_EQ(2u, uct_sep_budget_node_held(node));
    first.e->destroy(first.eps[1]);
    m_workers.pop_back();
    ASSERT_TRUE(first.e->wait([&]() { return first.e->num_qps() == 0; }));
    EXPECT_EQ(0u, uct_sep_budget_node_held(node));
}

/* One more worker has all of that */
TEST_P(test_sep_uct_budget_node, a_worker_without_more_than_a_share_evicts)
{
    uct_sep_budget_node_t *other;

    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open_node(6, 14));
    ASSERT_EQ(UCS_OK, uct_sep_budget_node_join(
            "other", be64toh(uct_sep_iface_md(m_workers[0].e->sep())->dev.attr
                             .orig_attr.sys_image_guid), 14, 2, &other));
    ASSERT_TRUE(uct_sep_budget_node_hold(other, 14, 0));
    ASSERT_NO_FATAL_FAILURE(fan_out());
    EXPECT_LE(m_workers[0].e->num_qps(),
              2u + m_workers[0].e->sep()->conn.budget.num_exceeded);
    EXPECT_GT(m_workers[0].e->sep()->conn.budget.num_waits, 0u);

    /* And has it when that one is gone */
    uct_sep_budget_node_leave(other);
    for (unsigned i = 0; i < 3; ++i) {
        ASSERT_NO_FATAL_FAILURE(fan_out());
    }
    EXPECT_EQ(5u, m_workers[0].e->num_qps());
}

TEST_P(test_sep_uct_budget_node, all_send_to_all)
{
    if (!has_device()) {
        return;
    }
    for (const char *category : {"dynamic", "mpi_everywhere"}) {
        const unsigned num = 5, share = 4;

        ASSERT_NO_FATAL_FAILURE(open(num, [&](unsigned) {
            return settings({{"MAX_QPS_NODE", std::to_string(num * share)},
                             {"CATEGORY", category}});
        }, [](unsigned) { return 0; }));
        for (unsigned round = 0; round < 4; ++round) {
            ASSERT_NO_FATAL_FAILURE(exchange(8, [](unsigned, unsigned) {
                return true;
            }));
        }
        uint64_t num_waits = 0;
        for (auto &w : m_workers) {
            num_waits += w.e->sep()->conn.budget.num_waits;
        }
        EXPECT_GT(num_waits, 0u);
        close();
    }
}

TEST_P(test_sep_uct_budget_node, too_little_is_refused)
{
    if (!has_device()) {
        return;
    }
    for (const char *value : {"0", "1"}) {
        expect_errors hide;

        EXPECT_EQ(nullptr, entity::create({{"MAX_QPS_NODE", value}}));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, "UCX_SEP_MAX_QPS_NODE"));
    }

    /* For one, but not for two */
    auto first = entity::create({{"MAX_QPS_NODE", "3"}});
    ASSERT_NE(nullptr, first);
    expect_errors hide;
    EXPECT_EQ(nullptr, entity::create(*first, {{"MAX_QPS_NODE", "3"}}));
    EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, "for 2 workers"));

    /* Nor has it a share of the process */
    EXPECT_EQ(nullptr, entity::create(*first, {{"MAX_QPS_NODE", "3"},
                                               {"MAX_QPS", "4"}}));
    auto second = entity::create(*first, {{"MAX_QPS", "4"}});
    auto third  = entity::create(*first, {{"MAX_QPS", "4"}});
    EXPECT_NE(nullptr, second);
    EXPECT_NE(nullptr, third);
}

INSTANTIATE_TEST_SUITE_P(, test_sep_uct_budget_node,
                         ::testing::Values("sync", "deferred"),
                         [](const ::testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });

INSTANTIATE_TEST_SUITE_P(, test_sep_uct_budget,
                         ::testing::Values("sync", "deferred"),
                         [](const ::testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });

} // namespace
