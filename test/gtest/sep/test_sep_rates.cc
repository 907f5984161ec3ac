/* SPDX-License-Identifier: BSD-3-Clause */

#include <model/rate.h>
#include <tools/plan/plan.h>
#include <tools/plan/plan_sharing.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>

/* Rates that the model predicts for the sharing categories, against those of
 * "Scalable Communication Endpoints for MPI+Threads Applications" (Zambre,
 * Chandramowlishwaran, Balaji, 2018), on a ConnectX-4: 2-byte writes, inline,
 * by BlueFlame and each signaled, 128 outstanding, legacy UARs. To some of them
 * the adapter's parameters are fitted, the others are predicted. */

class test_sep_rates : public ::testing::Test {
protected:
    void SetUp() override
    {
        std::string path = std::string(SEP_TEST_TOP) +
                           "/src/model/adapters.conf";
        char message[SEP_MODEL_MESSAGE_MAX] = "";

        ASSERT_EQ(0, sep_model_adapter_read(path.c_str(), "cx4", &m_adapter,
                                            message)) << message;
    }

    sep_model_sharing_t sharing(const char *category)
    {
        sep_model_sharing_t result;
        sep_plan_config_t config;

        sep_plan_config_init(&config);
        config.category = sep_plan_category_find(category);
        config.regime   = SEP_PLAN_LEGACY;
        EXPECT_NE(SEP_PLAN_LAST, config.category);
        sep_plan_sharing(&config, 1, &result);
        return result;
    }

    double mops(const sep_model_sharing_t &sharing, unsigned threads)
    {
        sep_model_load_t load = {};
        sep_model_rate_t rate;

        load.op        = SEP_MODEL_WRITE;
        load.post      = SEP_MODEL_BLUEFLAME;
        load.threads   = threads;
        load.depth     = 128;
        load.bytes     = 2;
        load.is_inline = 1;
        load.sharing   = sharing;
        sep_model_predict(&m_adapter, &load, &rate);
        return rate.mops;
    }

    /* In percent of a context per thread */
    double percent(const char *category, unsigned threads)
    {
        return mops(sharing(category), threads) * 100 /
               mops(sharing("mpi_everywhere"), threads);
    }

    sep_model_adapter_t m_adapter;
};

TEST_F(test_sep_rates, are_those_of_the_paper)
{
    /* Global array: 16 threads of a process. Stencil, 16.1: a thread in each of
     * 16 processes, which share nothing */
    const struct {
        const char *category;
        unsigned   threads;
        double     paper;
        bool       fitted;
    } rows[] = {
        {"2xdynamic",      16, 108, true},
        {"dynamic",        16, 94,  false},
        {"shared_dynamic", 16, 65,  true},
        {"static",         16, 64,  false},
        {"mpi_threads",    16, 3,   false},
        {"2xdynamic",      1,  106, false},
        {"dynamic",        1,  106, false},
        {"shared_dynamic", 1,  106, false},
        {"static",         1,  100, false},
        {"mpi_threads",    1,  87,  false}
    };
    unsigned predicted = 0, num_rows = 0;

    for (const auto &row : rows) {
        EXPECT_NEAR(row.paper, percent(row.category, row.threads),
                    row.fitted ? 1 : 10)
                << row.category << ", " << row.threads << " threads";
        ++num_rows;
        predicted += !row.fitted;
    }
    EXPECT_GE(2 * predicted, num_rows);
    /* Not only within ten points, where the paper's number is small */
    EXPECT_NEAR(3, percent("mpi_threads", 16), 2);
}

/* Fitted: 16 pages side by side in a context cost 1.15x, 8 nothing. Predicted:
 * unused pages in between undo that, and doorbells do not have it */
TEST_F(test_sep_rates, pages_side_by_side_disturb_each_other)
{
    sep_model_sharing_t adjacent = sharing("dynamic");
    sep_model_sharing_t apart    = sharing("2xdynamic");

    EXPECT_NEAR(1.15, 2 * mops(adjacent, 8) / mops(adjacent, 16), 0.01);
    EXPECT_NEAR(1, 2 * mops(apart, 8) / mops(apart, 16), 0.01);
    EXPECT_NEAR(1, mops(adjacent, 8) / mops(apart, 8), 0.01);
}

/* Fitted: "up to 18x" for a CQ that 16 threads share */
TEST_F(test_sep_rates, a_shared_cq_costs_most)
{
    sep_model_sharing_t own    = sharing("2xdynamic");
    sep_model_sharing_t shared = own;
    double before              = mops(own, 16);

    for (unsigned threads : {2, 4, 8, 16}) {
        shared.threads_per_cq = threads;
        EXPECT_LT(mops(shared, 16), before) << threads;
        before = mops(shared, 16);
    }
    EXPECT_NEAR(18, mops(own, 16) / before, 1);
}

TEST_F(test_sep_rates, all_categories_share_something_else)
{
    sep_plan_config_t config;

    sep_plan_config_init(&config);
    config.cq_sharing = 4;
    for (int category = 0; category < SEP_PLAN_LAST; ++category) {
        for (int regime = 0; regime < SEP_PLAN_REGIME_LAST; ++regime) {
            sep_model_sharing_t result;
            config.category = (sep_plan_category_t)category;
            config.regime   = (sep_plan_regime_t)regime;
            sep_plan_sharing(&config, 0, &result);
            bool is_hub = (category == SEP_PLAN_MPI_THREADS);
            EXPECT_EQ(is_hub ? SEP_MODEL_ALL : 1u, result.threads_per_qp);
            EXPECT_EQ(is_hub ? SEP_MODEL_ALL : 4u, result.threads_per_cq);
            EXPECT_EQ(category == SEP_PLAN_STATIC,
                      result.uuars_dedicated != SEP_MODEL_ALL);
            EXPECT_FALSE(result.qp_lock);
            EXPECT_GE(result.uuars_shared, 1u);
        }
    }
}

/* Without low-latency uUARs all queue pairs share */
TEST_F(test_sep_rates, static_uuars_are_those_of_the_environment)
{
    sep_plan_config_t config;
    sep_model_sharing_t result;

    sep_plan_config_init(&config);
    config.category = SEP_PLAN_STATIC;
    config.regime   = SEP_PLAN_KERNEL_DYNAMIC;
    sep_plan_sharing(&config, 1, &result);
    EXPECT_EQ(4u, result.uuars_dedicated);
    EXPECT_EQ(12u, result.uuars_shared);

    ASSERT_EQ(0, sep_plan_set_uuars(&config, 8, 0));
    sep_plan_sharing(&config, 1, &result);
    EXPECT_EQ(0u, result.uuars_dedicated);
    EXPECT_EQ(config.total_uuars, result.uuars_shared);
}
