/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/throttle/sep_throttle.h>
#include <uct/ib/sep/throttle/sep_throttle_adapt.h>

#include <cmath>
#include <cstring>
#include <functional>

using namespace sep_uct_test;

namespace {

/*
 * The search for a budget, on adapters that are a formula: the rate with so
 * much under way.
 */
class test_sep_throttle_adapt : public ::testing::Test {
protected:
    typedef std::function<double(uint32_t)> plant;

    static constexpr uint32_t min = 96 * 8;
    static constexpr uint32_t max = 96 * 4095;

    void SetUp() override
    {
        uct_sep_throttle_adapt_init(&m_adapt, UINT32_MAX);
    }

    /* Mean rate over so many windows */
    double run(const plant &rate, unsigned windows)
    {
        double sum = 0;

        for (unsigned i = 0; i < windows; ++i) {
            double now = rate(std::min(m_adapt.budget, max));

            sum += now;
            uct_sep_throttle_adapt_next(&m_adapt, now, min, max);
            EXPECT_LE(min, m_adapt.budget);
            EXPECT_GE(max, m_adapt.budget);
        }
        return sum / windows;
    }

    /* Who has so much to send, on an adapter of this rate and latency whose
     * caches hold so much */
    static plant adapter(uint32_t demand, double rate, double latency,
                         double cache)
    {
        return [=](uint32_t budget) {
            double n = std::min(budget, demand);

            return std::min(n / latency, rate) /
                   (1 + ((n > cache) ? (n - cache) / cache : 0));
        };
    }

    uct_sep_throttle_adapt_t m_adapt;
};

TEST_F(test_sep_throttle_adapt, finds_the_rate_that_too_many_would_halve)
{
    plant rate = adapter(3072, 110, 7, 1400);

    EXPECT_LT(rate(max), 55);
    run(rate, 200);
    EXPECT_GT(run(rate, 1000), 0.95 * 110);
    EXPECT_LT(m_adapt.budget, 1600u);
}

TEST_F(test_sep_throttle_adapt, keeps_the_rate_where_nothing_is_lost)
{
    /* More than the adapter needs, and far less */
    for (uint32_t demand : {100000u, 3072u, 1000u}) {
        for (double latency : {2.0, 7.0, 20.0}) {
            plant rate = adapter(demand, 110, latency, 1e9);

            uct_sep_throttle_adapt_init(&m_adapt, UINT32_MAX);
            run(rate, 200);
            EXPECT_GT(run(rate, 1000), 0.95 * rate(max))
                    << demand << " requests, latency " << latency;
        }
    }
}

TEST_F(test_sep_throttle_adapt, begins_again_when_others_slow_it_down)
{
    run(adapter(3072, 110, 7, 1400), 300);

    /* Another process has half of the adapter and of its caches */
    plant half = adapter(3072, 55, 14, 900);
    run(half, 500);
    EXPECT_GT(run(half, 1000), 0.95 * 55);

    /* It has ended */
    plant whole = adapter(3072, 110, 7, 1400);
    run(whole, 500);
    EXPECT_GT(run(whole, 1000), 0.95 * 110);
}

TEST_F(test_sep_throttle_adapt, limits_nobody_whose_rate_is_his_own)
{
    double phase = 0;
    /* Computes for longer and longer */
    plant slower = [&](uint32_t) { return 100 / (1 + (phase += 0.2)); };

    run(adapter(3072, 110, 7, 1400), 300);
    EXPECT_LT(m_adapt.budget, 1600u);
    run(slower, 60);
    EXPECT_GT(m_adapt.budget, 3072u);
}

/* Budgets of devices, whoever uses them */
class test_sep_throttle_dev : public ::testing::Test {
protected:
    static uct_sep_throttle_dev_t *get(uint32_t budget)
    {
        uct_sep_throttle_dev_t *dev = nullptr;

        EXPECT_EQ(UCS_OK, uct_sep_throttle_get("throttle", budget, &dev));
        return dev;
    }
};

/* Who has another setting has a budget of its own */
TEST_F(test_sep_throttle_dev, only_equal_budgets_are_shared)
{
    uct_sep_throttle_dev_t *first = get(100), *same = get(100),
                           *other = get(200);

    EXPECT_EQ(first, same);
    EXPECT_EQ(100u, uct_sep_throttle_share(first));
    EXPECT_EQ(200u, uct_sep_throttle_share(other));
    uct_sep_throttle_put(other);
    uct_sep_throttle_put(same);
    uct_sep_throttle_put(first);
}

/* However few workers there are */
TEST_F(test_sep_throttle_dev, a_few_completions_judge_nothing)
{
    uct_sep_throttle_dev_t *dev = get(UCT_SEP_THROTTLE_AUTO);
    const uint32_t before       = uct_sep_throttle_share(dev);

    uct_sep_throttle_join(dev);
    for (unsigned i = 0; i < 8; ++i) {
        uct_sep_throttle_report(dev, 500, 512);
    }
    EXPECT_EQ(before, uct_sep_throttle_share(dev));

    /* The first window only tells when the second one began */
    uct_sep_throttle_report(dev, 4096, 512);
    uct_sep_throttle_report(dev, 4096, 512);
    EXPECT_GT(before, uct_sep_throttle_share(dev));
    uct_sep_throttle_leave(dev);
    uct_sep_throttle_put(dev);
}



class test_sep_throttle : public test_sep_uct {
protected:
    ucs_status_t put(entity &from, uct_ep_h ep)
    {
        static const uint64_t value = 0x1122334455667788;

        return uct_ep_put_short(ep, &value, sizeof(value), m_remote.va,
                                m_remote.rkey.rkey);
    }

    void expose()
    {
        m_remote = m_peer->expose(4096, 1);
        ASSERT_EQ(UCS_OK, retry([&]() { return put(*m_local, ep()); }));
        flush();
    }

    void release()
    {
        uct_rkey_release(m_local->component(), &m_remote.rkey);
    }

    /* Post until there are no resources, without progress; how many */
    unsigned fill(entity &from, uct_ep_h ep)
    {
        unsigned count = 0;

        while (put(from, ep) == UCS_OK) {
            ++count;
        }
        return count;
    }

    /* Enough completions for a worker to ask for its share */
    void send_some(entity &from, uct_ep_h ep, unsigned count = 2000)
    {
        for (unsigned i = 0; i < count; ++i) {
            ASSERT_TRUE(from.wait([&]() { return put(from, ep) == UCS_OK; }));
        }
        ASSERT_TRUE(from.flush());
    }

    /* Send until the worker keeps to its share. What is under way comes back
     * first, and the sooner the device completes the less of it: whether one
     * request for a share is enough, only the device knows. */
    void settle(entity &from, uct_ep_h ep, int32_t share)
    {
        const uct_sep_iface_t *iface = from.sep();

        ASSERT_TRUE(patience::until([&]() {
            send_some(from, ep);
            return HasFatalFailure() ||
                   (iface->throttle.held == iface->config.cq_len - share);
        })) << iface->throttle.held << " are withheld";
        EXPECT_EQ(share + 1u, fill(from, ep)); /* 0 credits: one more */
        ASSERT_TRUE(from.flush());
    }

    static bool parses(const char *value, uint32_t *budget_p)
    {
        expect_errors hide;

        return uct_sep_throttle_parse(value, budget_p) == UCS_OK;
    }

    remote_memory m_remote;
};

TEST_F(test_sep_throttle, settings)
{
    uint32_t budget;

    EXPECT_TRUE(parses("n", &budget));
    EXPECT_EQ(UCT_SEP_THROTTLE_OFF, budget);
    EXPECT_TRUE(parses("Y", &budget));
    EXPECT_EQ(UCT_SEP_THROTTLE_AUTO, budget);
    EXPECT_TRUE(parses("1200", &budget));
    EXPECT_EQ(1200u, budget);
    for (const char *value : {"", "0", "7", "-1", "+9", "12x", "1e3", "yess",
                              " 9", "99999999", "99999999999999999999"}) {
        EXPECT_FALSE(parses(value, &budget)) << value;
    }

    if (entity::has_device()) {
        expect_errors errors;
        EXPECT_TRUE(entity::create({{"TX_THROTTLE", "few"}}) == nullptr);
        EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_ERROR,
                                   "UCX_SEP_TX_THROTTLE=few"));
    }
}

TEST_F(test_sep_throttle, a_worker_alone_has_all_of_the_budget)
{
    start({{"TX_THROTTLE", "100"}});
    expose();
    send_some(*m_local, ep());
    EXPECT_EQ(100u + 1, fill(*m_local, ep())); /* 0 credits: one more */
    flush();
    EXPECT_EQ(100u + 1, fill(*m_local, ep()));
    flush();
    release();
}

TEST_F(test_sep_throttle, off_it_withholds_nothing)
{
    start({});
    expose();
    EXPECT_EQ(m_local->sep()->config.cq_len, m_local->sep()->tx.cq_credits);
    release();
}

TEST_F(test_sep_throttle, workers_share_it)
{
    start({{"TX_THROTTLE", "100"}});
    expose();

    auto other  = entity::create(*m_local, all_settings({{"TX_THROTTLE",
                                                          "100"}}));
    uct_ep_h ep2 = other->connect(m_peer->addr());
    send_some(*other, ep2, 1);

    /* Each asks for its share once the other one has begun */
    ASSERT_NO_FATAL_FAILURE(settle(*m_local, ep(), 50));
    ASSERT_NO_FATAL_FAILURE(settle(*other, ep2, 50));

    /* One is idle for long */
    for (unsigned i = 0; i <= UCT_SEP_THROTTLE_MAX_IDLE; ++i) {
        other->progress();
    }
    ASSERT_NO_FATAL_FAILURE(settle(*m_local, ep(), 100));

    /* It comes back, and then is closed */
    send_some(*other, ep2);
    ASSERT_NO_FATAL_FAILURE(settle(*m_local, ep(), 50));
    other.reset();
    ASSERT_NO_FATAL_FAILURE(settle(*m_local, ep(), 100));
    release();
}

/* More workers than the budget has room for: each has what it needs for the
 * longest requests */
TEST_F(test_sep_throttle, nobody_has_nothing)
{
    const settings config = all_settings({{"TX_THROTTLE", "8"}});
    std::vector<std::unique_ptr<entity>> others;
    std::vector<uct_ep_h> eps;

    start({{"TX_THROTTLE", "8"}});
    expose();
    for (unsigned i = 0; i < 5; ++i) {
        others.push_back(entity::create(*m_local, config));
        eps.push_back(others[i]->connect(m_peer->addr()));
    }
    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned i = 0; i < 5; ++i) {
            send_some(*others[i], eps[i], 200);
        }
    }
    for (unsigned i = 0; i < 5; ++i) {
        EXPECT_EQ(8u + 1, fill(*others[i], eps[i]));
        ASSERT_TRUE(others[i]->flush());
    }
    others.clear();
    release();
}

/* Several connections, all of whose requests are unsignaled: who has used up
 * the share gets it back */
TEST_F(test_sep_throttle, nobody_waits_for_ever)
{
    const unsigned num_peers = 6;

    for (const settings &config : std::vector<settings>{
             {{"TX_THROTTLE", "8"}},
             {{"TX_THROTTLE", "8"}, {"API", "verbs"}},
             {{"TX_THROTTLE", "9"}, {"TX_POSTLIST", "8"}},
             {{"TX_THROTTLE", "8"}, {"CATEGORY", "mpi_everywhere"}},
             {{"TX_THROTTLE", "8"}, {"CATEGORY", "mpi_threads"}},
             {{"TX_THROTTLE", "8"}, {"CQ_SHARING", "2"}},
             {{"TX_THROTTLE", "8"}, {"EAGER", "y"}},
             {{"TX_THROTTLE", "y"}, {"TX_CQ_LEN", "8"}},
             {{"TX_THROTTLE", "y"}}}) {
        std::vector<uct_ep_h> eps;
        uint64_t count = 0;

        start(config, num_peers);
        for (unsigned i = 0; i < num_peers; ++i) {
            eps.push_back(m_local->connect(m_peer->addr(i)));
        }
        for (unsigned i = 0; i < 1500; ++i) {
            ASSERT_EQ(UCS_OK, retry([&]() {
                return uct_ep_am_short(eps[i % num_peers], 1, i, NULL, 0);
            })) << config[0].second << " " << i;
            ++count;
        }
        flush();
        for (unsigned i = 0; i < num_peers; ++i) {
            m_local->wait([&]() {
                return m_peer->num_received(i) == count / num_peers;
            });
            EXPECT_EQ(count / num_peers, m_peer->num_received(i));
        }
    }
}

/* Requests that wait because a share became smaller are called when it becomes
 * larger, although nothing completes any more */
TEST_F(test_sep_throttle, pending_requests_are_called)
{
    start({{"TX_THROTTLE", "16"}});
    expose();
    send_some(*m_local, ep());

    std::vector<std::unique_ptr<pending_req>> reqs;
    unsigned called = 0;

    fill(*m_local, ep());
    for (unsigned i = 0; i < 200; ++i) {
        reqs.emplace_back(new pending_req);
        reqs.back()->func = [&]() {
            ucs_status_t status = put(*m_local, ep());
            called += (status == UCS_OK);
            return status;
        };
        ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &reqs.back()->req, 0));
    }
    EXPECT_TRUE(m_local->wait([&]() { return called == 200; }));
    flush();
    release();
}

/* Who always has more to send than there is room for comes down to a share that
 * became smaller */
TEST_F(test_sep_throttle, who_always_waits_leaves_others_their_share)
{
    const settings config = {{"TX_THROTTLE", "100"}};
    uct_sep_iface_t *iface;
    bool is_over = false;
    pending_req waits;

    start(config);
    expose();
    iface      = m_local->sep();
    auto other = entity::create(*m_local, all_settings(config));
    send_some(*m_local, ep());
    EXPECT_EQ(iface->config.cq_len - 100, iface->throttle.held);

    fill(*m_local, ep());
    waits.func = [&]() {
        fill(*m_local, ep());
        return is_over ? UCS_OK : UCS_ERR_NO_RESOURCE;
    };
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &waits.req, 0));

    send_some(*other, other->connect(m_peer->addr()), 1);
    EXPECT_TRUE(m_local->wait([&]() {
        return iface->throttle.held == iface->config.cq_len - 50;
    }));

    is_over = true;
    EXPECT_TRUE(m_local->wait([&]() {
        return iface->conn.num_pending == 0;
    }));
    flush();
    other.reset();
    release();
}

/* Found while sending: whatever the rates of this machine are, all arrives, and
 * what is withheld stays within bounds */
TEST_F(test_sep_throttle, adapts_while_it_sends)
{
    start({{"TX_THROTTLE", "y"}, {"TX_CQ_LEN", "512"}});
    expose();

    unsigned lowest = UINT_MAX;
    for (unsigned i = 0; i < 40; ++i) {
        uct_sep_iface_t *iface = m_local->sep();

        send_some(*m_local, ep(), 5000);
        EXPECT_LE(0, iface->throttle.held);
        EXPECT_EQ(iface->config.cq_len,
                  iface->throttle.held + iface->tx.cq_credits);
        lowest = std::min(lowest, uct_sep_throttle_share(iface->throttle.dev));
    }
    /* It has tried */
    EXPECT_LT(lowest, 512u);
    release();
}

} // namespace
