/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_api.h>

#include <cstring>

using namespace sep_uct_test;

namespace {

/*
 * Queue pairs of a connection: what both sides agree on, and what is given back
 * when it ends. Both sides are here; with one context for all that a worker
 * does, and with one of its own to send from.
 */
class test_sep_uct_link : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    settings with(const settings &more)
    {
        settings result = {{"CATEGORY", GetParam()}};

        result.insert(result.end(), more.begin(), more.end());
        return result;
    }

    void open(const settings &first, const settings &second)
    {
        m_e[0] = entity::create(with(first));
        ASSERT_TRUE(m_e[0] != nullptr);
        m_e[1] = entity::create(*m_e[0], with(second));
        ASSERT_TRUE(m_e[1] != nullptr);
        /* The first worker uses the domain's context in any category */
        EXPECT_EQ(nullptr, sep(0)->channel.own);
        EXPECT_EQ(!strcmp(GetParam(), "mpi_everywhere"),
                  sep(1)->channel.own != NULL);
        m_mem.reset(new memory(m_e[0]->md(), 4096));
        bytes packed = m_mem->packed_rkey();
        ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_e[0]->component(), packed.data(),
                                          &m_rkey));
    }

    void TearDown() override
    {
        if (m_mem) {
            uct_rkey_release(m_e[0]->component(), &m_rkey);
            m_mem.reset();
        }
        m_e[1].reset();
        m_e[0].reset();
    }

    bool wait(const std::function<bool()> &condition)
    {
        bool is_true = false;

        m_e[0]->wait([&]() {
            m_e[1]->progress();
            is_true = condition();
            return is_true;
        });
        return is_true;
    }

    /* One sends to the other, and has a completion */
    void connect(unsigned i)
    {
        m_ep[i] = m_e[i]->connect(m_e[1 - i]->addr());
        ASSERT_TRUE(wait([&]() { return put(i, 8) == UCS_OK; }));
        ASSERT_TRUE(wait([&]() {
            return uct_iface_flush(m_e[i]->iface(), 0, NULL) == UCS_OK;
        }));
    }

    ucs_status_t put(unsigned i, unsigned length, bool is_good = true)
    {
        uint8_t data[128] = {};

        return uct_ep_put_short(m_ep[i], data, length, m_mem->va(),
                                is_good ? m_rkey.rkey :
                                          wrong_rkey(m_rkey.rkey));
    }

    uct_sep_iface_t *sep(unsigned i) { return m_e[i]->sep(); }

    struct ibv_qp_attr query(unsigned i)
    {
        struct ibv_qp_init_attr init_attr;
        struct ibv_qp_attr attr = {};

        EXPECT_EQ(0, ibv_query_qp(m_e[i]->sep_ep(m_ep[i])->txwq->conn.qp, &attr,
                                  IBV_QP_PATH_MTU | IBV_QP_MAX_QP_RD_ATOMIC |
                                  IBV_QP_MAX_DEST_RD_ATOMIC, &init_attr));
        return attr;
    }

    std::unique_ptr<entity> m_e[2];
    uct_ep_h                m_ep[2];
    std::unique_ptr<memory> m_mem;
    uct_rkey_bundle_t       m_rkey;
};

/* Whoever allows less, and whoever begins */
TEST_P(test_sep_uct_link, sides_with_other_limits_agree_on_the_lower_ones)
{
    for (bool is_first_less : {false, true}) {
        settings less = {{"MAX_RD_ATOMIC", "3"}, {"PATH_MTU", "1024"}};
        settings more = {{"MAX_RD_ATOMIC", "7"}, {"PATH_MTU", "2048"}};

        ASSERT_NO_FATAL_FAILURE(open(is_first_less ? less : more,
                                     is_first_less ? more : less));
        for (unsigned i = 0; i < 2; ++i) {
            ASSERT_NO_FATAL_FAILURE(connect(i));
            struct ibv_qp_attr attr = query(i);

            EXPECT_EQ(IBV_MTU_1024, attr.path_mtu);
            EXPECT_EQ(3, attr.max_rd_atomic);
            EXPECT_LE(3, attr.max_dest_rd_atomic);
        }
        TearDown();
    }
}

/* As often as it fails: with more under way in front of what fails, and behind
 * it, than the queue is told about at a time */
TEST_P(test_sep_uct_link, all_credits_come_back_after_a_failure)
{
    ASSERT_NO_FATAL_FAILURE(open({}, {}));
    for (unsigned round = 0; round < 4; ++round) {
        ASSERT_NO_FATAL_FAILURE(connect(1));
        expect_errors hide;
        for (unsigned i = 0; i < 10 * round; ++i) {
            ASSERT_EQ(UCS_OK, put(1, 1 + (i * 11) % 100));
        }
        ASSERT_EQ(UCS_OK, put(1, 8, false));
        for (unsigned i = 0; i < 7 * round; ++i) {
            ASSERT_EQ(UCS_OK, put(1, 100));
        }
        ASSERT_TRUE(wait([&]() { return m_e[1]->failures.size() > round; }));
        m_e[1]->destroy(m_ep[1]);
        ASSERT_TRUE(wait([&]() { return m_e[1]->num_qps() == 0; }));
        EXPECT_EQ(sep(1)->config.cq_len, sep(1)->tx.cq_credits) << round;
    }
}

/* Its completion is the last one then, and has to give back the credits */
TEST_P(test_sep_uct_link, it_goes_although_its_last_request_has_failed)
{
    for (const char *api : {"dv", "verbs"}) {
        completion last;
        expect_errors hide;

        ASSERT_NO_FATAL_FAILURE(open({{"API", api}}, {{"API", api}}));
        ASSERT_NO_FATAL_FAILURE(connect(1));
        uct_iov_t iov = {m_mem->ptr(), 8, m_mem->memh(), 0, 1};
        ASSERT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(m_ep[1], &iov, 1, m_mem->va(),
                                   wrong_rkey(m_rkey.rkey), &last.comp));
        ASSERT_TRUE(wait([&]() { return !m_e[1]->failures.empty(); }));
        EXPECT_EQ(1u, last.calls);
        m_e[1]->destroy(m_ep[1]);
        EXPECT_TRUE(wait([&]() { return m_e[1]->num_qps() == 0; })) << api;
        EXPECT_EQ(sep(1)->config.cq_len, sep(1)->tx.cq_credits) << api;
        TearDown();
    }
}

/* Requests that asked for no completion are done: the device says nothing of
 * them, and has nothing to flush */
TEST_P(test_sep_uct_link, it_goes_although_its_last_requests_say_nothing)
{
    for (const char *api : {"dv", "verbs"}) {
        ASSERT_NO_FATAL_FAILURE(open({{"API", api}}, {{"API", api}}));
        ASSERT_NO_FATAL_FAILURE(connect(1));
        for (unsigned i = 0; i < 3; ++i) {
            volatile uint8_t *last = m_mem->ptr() + 7;

            *last = 0xff;
            ASSERT_EQ(UCS_OK, put(1, 8));
            ASSERT_TRUE(wait([&]() { return *last == 0; }));
        }
        EXPECT_FALSE(uct_sep_txwq_is_empty(m_e[1]->sep_ep(m_ep[1])->txwq));
        EXPECT_EQ(UCS_OK, uct_ep_flush(m_ep[1], UCT_FLUSH_FLAG_CANCEL, NULL));
        m_e[1]->destroy(m_ep[1]);
        EXPECT_TRUE(wait([&]() { return m_e[1]->num_qps() == 0; })) << api;
        TearDown();
    }
}

/* Requests that asked for no completion hold the last credits, as after a share
 * became smaller: who waits for the end of the connection asks nevertheless */
TEST_P(test_sep_uct_link, it_is_idle_in_the_end_though_credits_are_lacking)
{
    for (const char *api : {"dv", "verbs"}) {
        ASSERT_NO_FATAL_FAILURE(open({{"API", api}}, {{"API", api}}));
        ASSERT_NO_FATAL_FAILURE(connect(1));
        uct_sep_txwq_t *txwq = m_e[1]->sep_ep(m_ep[1])->txwq;

        ASSERT_EQ(UCS_OK, put(1, 8));
        int32_t held = sep(1)->tx.cq_credits + 9;
        uct_sep_iface_add_cq_credits(sep(1), -held);
        EXPECT_TRUE(wait([&]() { return uct_sep_link_is_idle(sep(1), txwq); }))
                << api;
        EXPECT_EQ(sep(1)->config.cq_len - held, sep(1)->tx.cq_credits);
        uct_sep_iface_add_cq_credits(sep(1), held);
        TearDown();
    }
}

/* The peer has given up its queue pair, and before we hear of it, ours goes as
 * well. What comes next is not ended by the old news. */
TEST_P(test_sep_uct_link, it_comes_back_when_both_sides_have_given_it_up)
{
    ASSERT_NO_FATAL_FAILURE(open({}, {}));
    ASSERT_NO_FATAL_FAILURE(connect(1));
    ASSERT_NO_FATAL_FAILURE(connect(0));

    uct_sep_link_t *link       = m_e[0]->sep_ep(m_ep[0])->link;
    ucs_async_context_t *async = sep(0)->super.worker->async;
    bool is_pending            = false;

    ASSERT_EQ(UCS_OK, put(1, 8));
    EXPECT_EQ(UCS_OK, uct_ep_flush(m_ep[1], UCT_FLUSH_FLAG_CANCEL, NULL));
    m_e[1]->destroy(m_ep[1]);
    m_ep[1] = m_e[1]->connect(m_e[0]->addr());
    while (!is_pending) {
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, put(1, 8));
        UCS_ASYNC_BLOCK(async);
        is_pending = link->has_event &&
                     (link->super.flags & UCT_SEP_CONN_FLAG_PENDING);
        UCS_ASYNC_UNBLOCK(async);
    }

    ASSERT_EQ(UCS_OK, put(0, 8));
    EXPECT_EQ(UCS_OK, uct_ep_flush(m_ep[0], UCT_FLUSH_FLAG_CANCEL, NULL));

    m_e[0]->progress(); /* The news */
    *m_mem->ptr() = 0xff;
    ASSERT_TRUE(wait([&]() { return put(1, 8) == UCS_OK; }));
    ASSERT_TRUE(wait([&]() {
        return uct_iface_flush(m_e[1]->iface(), 0, NULL) == UCS_OK;
    }));
    EXPECT_EQ(0u, m_e[1]->failures.size());
    EXPECT_EQ(0, *m_mem->ptr());
}

/* The peer has asked for the end of the connection, and what we have sent is
 * still under way, for as long as the transport repeats it: who wants to sleep
 * hears of its completion */
TEST_P(test_sep_uct_link, who_waits_for_sends_at_the_end_may_sleep)
{
    ASSERT_NO_FATAL_FAILURE(open({}, {}));
    ASSERT_NO_FATAL_FAILURE(connect(1));

    uct_iface_h iface    = m_e[1]->iface();
    uct_sep_link_t *link = m_e[1]->sep_ep(m_ep[1])->link;
    uct_sep_txwq_t *txwq = link->txwq;
    int fd;

    auto arm = [&]() { return uct_iface_event_arm(iface, UCT_EVENT_RECV); };

    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(iface, &fd));
    ASSERT_TRUE(wait([&]() { return arm() == UCS_OK; }));
    ASSERT_TRUE(uct_sep_txwq_is_empty(txwq));
    uct_sep_txwq_count_signaled(txwq);
    (void)uct_sep_txwq_advance(txwq, txwq->sw_pi, 1);
    UCS_ASYNC_BLOCK(sep(1)->super.worker->async);
    link->super.state  = UCT_SEP_CONN_STATE_RESETTING;
    link->super.flags &= ~UCT_SEP_CONN_FLAG_WANTED;
    link->super.flags |= UCT_SEP_CONN_FLAG_AGREED;
    uct_sep_link_cm_ops.failed(sep(1), &link->super, UCS_ERR_CONNECTION_RESET);
    UCS_ASYNC_UNBLOCK(sep(1)->super.worker->async);

    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(UCS_OK, arm());
        EXPECT_TRUE(txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE);
    }

    (void)uct_sep_txwq_complete(txwq, txwq->sw_pi);
    EXPECT_EQ(UCS_ERR_BUSY, arm());
    EXPECT_TRUE(wait([&]() { return m_e[1]->num_qps() == 0; }));
    EXPECT_TRUE(m_e[1]->failures.empty());
}

static int has_completions;
static int (*real_cq_has_passed)(uct_sep_iface_t *iface, uint32_t end);

/* Its number may be given to another queue pair then */
TEST_P(test_sep_uct_link, it_stays_while_completions_may_be_its_own)
{
    ASSERT_NO_FATAL_FAILURE(open({}, {}));
    ASSERT_NO_FATAL_FAILURE(connect(1));

    uct_sep_txwq_t *txwq     = m_e[1]->sep_ep(m_ep[1])->txwq;
    uct_sep_iface_t *iface   = sep(1);
    const uct_sep_api_t *api = iface->api;
    uct_sep_api_t copy       = *api;
    expect_errors hide;

    has_completions    = 1;
    real_cq_has_passed = api->cq_has_passed;
    copy.cq_has_passed = [](uct_sep_iface_t *iface, uint32_t end) -> int {
        return !has_completions && real_cq_has_passed(iface, end);
    };
    iface->api = &copy;
    ASSERT_EQ(UCS_OK, put(1, 8, false));
    ASSERT_TRUE(wait([&]() { return !m_e[1]->failures.empty(); }));
    m_e[1]->destroy(m_ep[1]);
    ASSERT_TRUE(wait([&]() {
        return (m_e[1]->num_qps() == 0) ||
               (uct_sep_txwq_is_empty(txwq) &&
                uct_sep_async_is_flushed(&txwq->conn.flush));
    }));
    for (unsigned i = 0; i < 100; ++i) {
        m_e[1]->progress();
    }
    EXPECT_EQ(1u, m_e[1]->num_qps());

    has_completions = 0;
    EXPECT_TRUE(wait([&]() { return m_e[1]->num_qps() == 0; }));
    iface->api = api;
}

/* Messages of others are there all the time: only those that were there when
 * the queue pair had been flushed may be its own */
TEST_P(test_sep_uct_link, it_goes_while_others_send)
{
    for (const char *api : {"dv", "verbs"}) {
        const settings config = {{"API", api}, {"EAGER", "n"},
                                 {"RX_MAX_POLL", "1"}, {"RX_QUEUE_LEN", "64"},
                                 {"TX_CQ_LEN", "256"}};
        size_t sent = 0;
        expect_errors hide;

        ASSERT_NO_FATAL_FAILURE(open(config, config));
        ASSERT_NO_FATAL_FAILURE(connect(1));
        auto other  = entity::create(*m_e[0], with(config));
        ASSERT_TRUE(other != nullptr);
        uct_ep_h ep = other->connect(m_e[1]->addr());

        /* What is sent has been received by the device before it is complete.
         * A call handles one. */
        auto stream = [&]() {
            while (sent < m_e[1]->messages.size() + 5) {
                if (!other->wait([&]() {
                        m_e[0]->progress();
                        return uct_ep_am_short(ep, 1, 0, NULL, 0) == UCS_OK;
                    })) {
                    return;
                }
                ++sent;
                other->flush();
            }
            m_e[1]->progress();
        };

        ASSERT_TRUE(other->wait([&]() {
            m_e[1]->progress();
            return uct_ep_am_short(ep, 1, 0, NULL, 0) == UCS_OK;
        }));
        ++sent;
        ASSERT_TRUE(wait([&]() { return !m_e[1]->messages.empty(); }));
        EXPECT_EQ(2u, m_e[1]->num_qps());

        stream();
        ASSERT_EQ(UCS_OK, put(1, 8, false));
        for (unsigned i = 0; (i < 5000) && (m_e[1]->num_qps() == 2); ++i) {
            m_e[0]->progress();
            stream();
        }
        EXPECT_EQ(1u, m_e[1]->num_qps()) << api;
        EXPECT_EQ(1u, m_e[1]->failures.size()) << api;

        m_e[1]->destroy(m_ep[1]);
        other.reset();
        TearDown();
    }
}

INSTANTIATE_TEST_SUITE_P(in, test_sep_uct_link,
                         ::testing::Values("dynamic", "mpi_everywhere"),
                         [](const auto &info) {
                             return std::string(info.param);
                         });


/* Keys of memory */
class test_sep_uct_keys : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        /* Keeps the device's account */
        m_first = entity::create();
        ASSERT_TRUE(m_first != nullptr);
    }

    unsigned long num_keys()
    {
        return uct_sep_account_get(
                ucs_derived_of(m_first->md(), uct_sep_md_t)->dev.context,
                UCT_SEP_ACCOUNT_MR);
    }

    std::unique_ptr<entity> m_first;
};

TEST_F(test_sep_uct_keys, all_go_with_the_memory_and_with_the_domain)
{
    const unsigned long before = num_keys();
    expect_errors errors;

    for (const char *order : {"on", "off"}) {
        for (const char *rcache : {"y", "n"}) {
            const unsigned num = 5;
            auto e             = entity::create({},
                                                {{"PCI_RELAXED_ORDERING",
                                                  order},
                                                 {"RCACHE", rcache}});
            ASSERT_TRUE(e != nullptr);
            const unsigned long opened = num_keys();
            {
                std::vector<std::unique_ptr<memory>> regions;
                for (unsigned i = 0; i < num; ++i) {
                    regions.emplace_back(new memory(e->md(), 8192));
                }
                EXPECT_EQ(opened + num * (strcmp(order, "on") ? 1 : 2),
                          num_keys());
            }
            if (*rcache == 'n') {
                EXPECT_EQ(opened, num_keys());
            }
            e.reset();
            EXPECT_EQ(before, num_keys()) << order << " " << rcache;
        }
    }
    EXPECT_TRUE(errors.messages.empty()) << errors.messages[0].text;
}

} // namespace
