/* SPDX-License-Identifier: BSD-3-Clause */

#include <tools/plan/plan_config.h>

#include <uct/ib/sep/base/sep_qps_auto.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <set>
#include <vector>

namespace {

/* What the paper's table says of a category */
struct row {
    sep_plan_category_t category;
    unsigned long       contexts, uars_static, uars_dynamic, uuars, qps, cqs;
};

std::ostream &operator<<(std::ostream &os, const row &r)
{
    return os << sep_plan_category_name(r.category);
}

class test_sep_plan : public ::testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_EQ(UCS_OK, sep_plan_config_read(&m_config));
        m_config.regime  = SEP_PLAN_LEGACY;
        m_config.workers = 16;
    }

    sep_plan_t make(sep_plan_category_t category)
    {
        const char *reason = nullptr;
        sep_plan_t plan;

        m_config.category = category;
        EXPECT_EQ(0, sep_plan_make(&m_config, &plan, &reason)) << reason;
        return plan;
    }

    sep_plan_config_t m_config;
};

/* Libmlx5's page for doorbells of CQs is where all queue pairs ring */
TEST_F(test_sep_plan, without_write_combining_a_context_has_one_page)
{
    m_config.regime = SEP_PLAN_NC;
    for (auto category : {SEP_PLAN_MPI_EVERYWHERE, SEP_PLAN_STATIC,
                          SEP_PLAN_MPI_THREADS}) {
        sep_plan_t plan = make(category);

        EXPECT_FALSE(plan.exceeds);
        EXPECT_EQ(plan.total.contexts, sep_plan_uars(&plan.total));
        EXPECT_EQ(plan.total.contexts, plan.total.uars_used);
        EXPECT_EQ(plan.total.contexts, plan.total.uuars_used);
        EXPECT_EQ(0u, plan.total.tds);
    }
    for (auto category : {SEP_PLAN_2XDYNAMIC, SEP_PLAN_DYNAMIC,
                          SEP_PLAN_SHARED_DYNAMIC}) {
        EXPECT_TRUE(make(category).exceeds);
    }
}

class test_sep_plan_paper : public test_sep_plan,
                            public ::testing::WithParamInterface<row> {
};

TEST_P(test_sep_plan_paper, sixteen_threads_take_what_the_paper_says)
{
    const row &want              = GetParam();
    const sep_plan_counts_t have = make(want.category).category;

    EXPECT_EQ(want.contexts, have.contexts);
    EXPECT_EQ(want.uars_static, have.uars_static);
    EXPECT_EQ(want.uars_dynamic, have.uars_dynamic);
    EXPECT_EQ(want.uuars, have.uuars);
    EXPECT_EQ(want.qps, have.qps);
    EXPECT_EQ(want.cqs, have.cqs);
}

INSTANTIATE_TEST_SUITE_P(
        table, test_sep_plan_paper,
        ::testing::Values(row{SEP_PLAN_MPI_EVERYWHERE, 16, 128, 0, 256, 16, 16},
                          row{SEP_PLAN_2XDYNAMIC, 1, 8, 32, 80, 16, 16},
                          row{SEP_PLAN_DYNAMIC, 1, 8, 16, 48, 16, 16},
                          row{SEP_PLAN_SHARED_DYNAMIC, 1, 8, 8, 32, 16, 16},
                          row{SEP_PLAN_STATIC, 1, 8, 0, 16, 16, 16},
                          row{SEP_PLAN_MPI_THREADS, 1, 8, 0, 16, 1, 1}),
        [](const ::testing::TestParamInfo<row> &info) {
            return sep_plan_category_name(info.param.category);
        });

/* The paper's last but one column: uUARs relative to MPI everywhere */
TEST_F(test_sep_plan, shares_of_uuars_are_those_of_the_paper)
{
    const double all = make(SEP_PLAN_MPI_EVERYWHERE).category.uuars;

    EXPECT_EQ(0.3125, make(SEP_PLAN_2XDYNAMIC).category.uuars / all);
    EXPECT_EQ(0.1875, make(SEP_PLAN_DYNAMIC).category.uuars / all);
    EXPECT_EQ(0.125, make(SEP_PLAN_SHARED_DYNAMIC).category.uuars / all);
    EXPECT_EQ(0.0625, make(SEP_PLAN_STATIC).category.uuars / all);
    EXPECT_EQ(0.0625, make(SEP_PLAN_MPI_THREADS).category.uuars / all);
}

TEST_F(test_sep_plan, naive_endpoints_waste_17_of_18_uuars)
{
    const sep_plan_counts_t counts = make(SEP_PLAN_NAIVE).category;

    EXPECT_EQ(16u, counts.contexts);
    EXPECT_EQ(16u * 18, counts.uuars);
    EXPECT_EQ(16u, counts.uuars_used);
}

TEST_F(test_sep_plan, contexts_of_naive_endpoints_that_exhaust_a_device)
{
    m_config.workers = 1;

    const sep_plan_counts_t counts = make(SEP_PLAN_NAIVE).category;

    EXPECT_EQ(9u, sep_plan_uars(&counts));
    EXPECT_EQ(907u, sep_plan_fit(&counts, SEP_PLAN_DEVICE_UARS,
                                 SEP_PLAN_KERNEL_UARS));
    EXPECT_EQ(910u, sep_plan_fit(&counts, SEP_PLAN_DEVICE_UARS, 0));
    EXPECT_EQ(0u, sep_plan_fit(&counts, 20, 21));
}

/* With today's kernels there are pages only for those who ring on them */
TEST_F(test_sep_plan, dynamic_regime_takes_no_static_uuars)
{
    m_config.regime = SEP_PLAN_KERNEL_DYNAMIC;

    sep_plan_counts_t counts = make(SEP_PLAN_DYNAMIC).category;
    EXPECT_EQ(1u, counts.uars_static);
    EXPECT_EQ(16u, counts.uars_dynamic);
    EXPECT_EQ(32u, counts.uuars);

    counts = make(SEP_PLAN_2XDYNAMIC).category;
    EXPECT_EQ(32u, counts.uars_dynamic);

    counts = make(SEP_PLAN_SHARED_DYNAMIC).category;
    EXPECT_EQ(8u, counts.uars_dynamic);
    EXPECT_EQ(16u, counts.uuars_used);

    /* 2 pages for those with a uUAR each, and 6 that 12 others share */
    counts = make(SEP_PLAN_STATIC).category;
    EXPECT_EQ(8u, counts.uars_dynamic);
    EXPECT_EQ(16u, counts.uuars_used);

    counts = make(SEP_PLAN_MPI_EVERYWHERE).category;
    EXPECT_EQ(16u, counts.contexts);
    EXPECT_EQ(16u, counts.uars_static);
    EXPECT_EQ(16u, counts.uars_dynamic);

    counts = make(SEP_PLAN_MPI_THREADS).category;
    EXPECT_EQ(1u, counts.uars_dynamic);
}

TEST_F(test_sep_plan, shared_pages_come_one_per_queue_pair)
{
    m_config.regime = SEP_PLAN_KERNEL_DYNAMIC;

    const std::vector<std::pair<unsigned, unsigned long>> pages = {
        {1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {6, 4}, {9, 7}, {10, 8},
        {11, 8}, {100, 8}};
    for (auto &want : pages) {
        m_config.workers = want.first;
        EXPECT_EQ(want.second, make(SEP_PLAN_STATIC).category.uars_dynamic) <<
                  want.first << " queue pairs";
    }
}

/* The kernel's policy: 12, 13, 14, 15, then 1 to 11, and 0 never */
TEST_F(test_sep_plan, static_uuars_are_used_in_the_order_of_the_kernel)
{
    std::set<unsigned> uuars, pages;

    for (unsigned i = 0; i < 40; ++i) {
        unsigned uuar = (i < 4) ? (12 + i) : (1 + ((i - 4) % 11));

        uuars.insert(uuar);
        pages.insert(uuar / 2);
        m_config.workers = i + 1;

        const sep_plan_counts_t counts = make(SEP_PLAN_STATIC).category;
        EXPECT_EQ(uuars.size(), counts.uuars_used) << i + 1;
        EXPECT_EQ(pages.size(), counts.uars_used) << i + 1;
        EXPECT_EQ(8u, sep_plan_uars(&counts));
    }
}

TEST_F(test_sep_plan, the_transport_adds_a_connection_manager_per_worker)
{
    for (int category = 0; category < SEP_PLAN_NUM_CATEGORIES; ++category) {
        for (int regime = 0; regime < SEP_PLAN_REGIME_LAST; ++regime) {
            m_config.regime = (sep_plan_regime_t)regime;

            const sep_plan_t plan   = make((sep_plan_category_t)category);
            const unsigned managers =
                    uct_sep_category_rows[category].is_hub ? 1 : 16;

            EXPECT_GE(plan.transport.qps, managers);
            EXPECT_EQ(plan.total.qps,
                      plan.category.qps + plan.transport.qps);
            EXPECT_EQ(plan.total.uuars,
                      plan.category.uuars + plan.transport.uuars);
            EXPECT_EQ(managers, plan.total.srqs);
            EXPECT_EQ(0u, plan.category.srqs);
            EXPECT_LE(plan.total.uuars_used, plan.total.uuars);
            EXPECT_LE(plan.total.uars_used, sep_plan_uars(&plan.total));
        }
    }
}

/* All but the first worker receive on queue pairs of their own */
TEST_F(test_sep_plan, workers_with_a_context_have_two_queue_pairs_per_peer)
{
    m_config.peers = 3;
    for (int regime = 0; regime < SEP_PLAN_REGIME_LAST; ++regime) {
        m_config.regime = (sep_plan_regime_t)regime;

        const sep_plan_t plan = make(SEP_PLAN_MPI_EVERYWHERE);
        EXPECT_EQ(16u * 3, plan.category.qps);
        EXPECT_EQ(16u + (15 * 3), plan.transport.qps);
        EXPECT_EQ(16u + 15, plan.transport.cqs);
    }

    /* 2 pages each for three queue pairs and the manager, and one in which all
     * receive; 1 each for the doorbells of CQs */
    m_config.regime = SEP_PLAN_KERNEL_DYNAMIC;
    const sep_plan_counts_t counts = make(SEP_PLAN_MPI_EVERYWHERE).total;
    EXPECT_EQ(16u, counts.uars_static);
    EXPECT_EQ(16u * 2 + 1, counts.uars_dynamic);
}

TEST_F(test_sep_plan, peers_cost_queue_pairs_and_no_uars_with_thread_domains)
{
    const sep_plan_counts_t few = make(SEP_PLAN_DYNAMIC).total;

    m_config.peers = 100;
    const sep_plan_counts_t many = make(SEP_PLAN_DYNAMIC).total;

    EXPECT_EQ(few.qps + (16 * 99), many.qps);
    EXPECT_EQ(few.qp_bytes + (16 * 99 * 256 * 64), many.qp_bytes);
    EXPECT_EQ(sep_plan_uars(&few), sep_plan_uars(&many));
    EXPECT_EQ(few.cqs, many.cqs);

    /* One set for all workers */
    EXPECT_EQ(100u, make(SEP_PLAN_MPI_THREADS).category.qps);
}

TEST_F(test_sep_plan, send_cqs_can_be_shared)
{
    for (unsigned sharing : {2, 3, 4, 16, 20}) {
        m_config.cq_sharing = sharing;
        EXPECT_EQ((16 + sharing - 1) / sharing,
                  make(SEP_PLAN_DYNAMIC).category.cqs);
    }
}

TEST_F(test_sep_plan, queues_are_as_long_as_libmlx5_makes_them)
{
    m_config.workers       = 1;
    m_config.tx_queue_len  = 200;
    m_config.tx_min_inline = 64; /* Two basic blocks each */
    m_config.rx_queue_len  = 300;
    m_config.rx_queue_fill = 300;
    m_config.tx_cq_len     = 900;

    const sep_plan_t plan = make(SEP_PLAN_DYNAMIC);

    EXPECT_EQ(512u * 64, plan.category.qp_bytes);
    EXPECT_EQ(2048u * 64, plan.category.cq_bytes);
    EXPECT_EQ(512u * 32, plan.total.srq_bytes);
}

TEST_F(test_sep_plan, workers_share_a_budget_of_queue_pairs)
{
    m_config.workers = 4;
    m_config.peers   = 100;
    EXPECT_EQ(400u, make(SEP_PLAN_DYNAMIC).category.qps);
    EXPECT_EQ(400u + 300 + 4, make(SEP_PLAN_MPI_EVERYWHERE).total.qps);

    m_config.max_qps = 42;
    EXPECT_EQ(40u, make(SEP_PLAN_DYNAMIC).category.qps);
    EXPECT_EQ(40u + 4, make(SEP_PLAN_DYNAMIC).total.qps);
    EXPECT_EQ(42u, make(SEP_PLAN_MPI_THREADS).category.qps);

    /* Two for each connection, but of the first worker */
    EXPECT_EQ(10u + 3 * 5, make(SEP_PLAN_MPI_EVERYWHERE).category.qps);
    EXPECT_EQ(10u + 2 * 3 * 5 + 4, make(SEP_PLAN_MPI_EVERYWHERE).total.qps);

    /* They need some, and do not take more than they have peers */
    m_config.max_qps = 1;
    EXPECT_EQ(8u, make(SEP_PLAN_DYNAMIC).category.qps);
    EXPECT_EQ(8u, sep_plan_least_qps(&m_config));
    m_config.category = SEP_PLAN_MPI_EVERYWHERE;
    EXPECT_EQ(16u, sep_plan_least_qps(&m_config));
    m_config.max_qps = 42;
    m_config.peers   = 1;
    EXPECT_EQ(4u, make(SEP_PLAN_DYNAMIC).category.qps);
}

TEST_F(test_sep_plan, the_budget_is_that_of_the_transport)
{
    EXPECT_EQ(0u, m_config.max_qps);
    setenv("UCX_SEP_MAX_QPS_NODE", "900", 1);
    ASSERT_EQ(UCS_OK, sep_plan_config_read(&m_config));
    EXPECT_EQ(900u, m_config.max_qps);
    setenv("UCX_SEP_MAX_QPS", "auto", 1);
    ASSERT_EQ(UCS_OK, sep_plan_config_read(&m_config));
    EXPECT_EQ((unsigned)UCT_SEP_QPS_AUTO, m_config.max_qps);
    unsetenv("UCX_SEP_MAX_QPS_NODE");
    unsetenv("UCX_SEP_MAX_QPS");
}

TEST_F(test_sep_plan, uuars_are_rounded_as_libmlx5_does)
{
    ASSERT_EQ(0, sep_plan_set_uuars(&m_config, 15, 4));
    EXPECT_EQ(16u, m_config.total_uuars);
    EXPECT_EQ(4u, m_config.low_lat_uuars);

    /* At most 12 that are not of low latency */
    ASSERT_EQ(0, sep_plan_set_uuars(&m_config, 64, 4));
    EXPECT_EQ(52u, m_config.low_lat_uuars);

    ASSERT_EQ(0, sep_plan_set_uuars(&m_config, 2, 0));
    EXPECT_EQ(1u, make(SEP_PLAN_STATIC).category.uars_static);

    EXPECT_NE(0, sep_plan_set_uuars(&m_config, 0, 0));
    EXPECT_NE(0, sep_plan_set_uuars(&m_config, 16, 16));
    EXPECT_NE(0, sep_plan_set_uuars(&m_config, 16, -1));
    EXPECT_NE(0, sep_plan_set_uuars(&m_config, 514, 4));
}

/* The paper, appendix B: 512 pages in a context */
TEST_F(test_sep_plan, thread_domains_of_a_context_are_limited)
{
    m_config.workers = 512;
    EXPECT_FALSE(make(SEP_PLAN_DYNAMIC).exceeds);
    EXPECT_TRUE(make(SEP_PLAN_2XDYNAMIC).exceeds);
    EXPECT_FALSE(make(SEP_PLAN_NAIVE).exceeds);

    m_config.workers = 513;
    EXPECT_TRUE(make(SEP_PLAN_DYNAMIC).exceeds);
    EXPECT_FALSE(make(SEP_PLAN_SHARED_DYNAMIC).exceeds);
    EXPECT_FALSE(make(SEP_PLAN_STATIC).exceeds);

    m_config.regime = SEP_PLAN_KERNEL_DYNAMIC;
    EXPECT_FALSE(make(SEP_PLAN_2XDYNAMIC).exceeds);
}

TEST_F(test_sep_plan, what_makes_no_sense_is_refused)
{
    const char *reason = nullptr;
    sep_plan_t plan;

    m_config.workers = 0;
    EXPECT_EQ(-1, sep_plan_make(&m_config, &plan, &reason));
    ASSERT_TRUE(reason != nullptr);

    ASSERT_EQ(UCS_OK, sep_plan_config_read(&m_config));
    m_config.low_lat_uuars = 16;
    EXPECT_EQ(-1, sep_plan_make(&m_config, &plan, &reason));
    EXPECT_EQ(SEP_PLAN_LAST, sep_plan_category_find("dynamics"));
    EXPECT_EQ(SEP_PLAN_2XDYNAMIC, sep_plan_category_find("2xdynamic"));
}

} // namespace
