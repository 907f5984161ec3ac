/* SPDX-License-Identifier: BSD-3-Clause */

#include <model/test_model.h>

#include <common/seed.h>

#include <cmath>
#include <random>
#include <vector>

/* What holds for all rates, whatever the parameters fitted. */

class test_model_rate_of : public ::testing::TestWithParam<const char*> {
protected:
    double mops(const sep_model_load_t &load)
    {
        return test_model_rate(m_adapter, load).mops;
    }

    double read(const std::string &policy, unsigned threads, unsigned depth,
                size_t bytes = 8)
    {
        return mops(test_model_load(SEP_MODEL_READ, policy, threads, depth,
                                    bytes));
    }

    sep_model_adapter_t m_adapter = test_model_adapter(GetParam());
};


TEST_P(test_model_rate_of, random_loads_have_rates)
{
    std::mt19937 random(seed::get());
    unsigned cases = seed::cases(20000);

    for (unsigned i = 0; i < cases; ++i) {
        sep_model_load_t load = {};
        auto pick             = [&](unsigned bits) {
            unsigned long mask = (1ul << (random() % (bits + 1))) - 1;
            return (unsigned)(random() & mask);
        };

        load.op                      = (sep_model_op_t)(random() %
                                                        SEP_MODEL_OP_LAST);
        load.post                    = (sep_model_post_t)(random() % 2);
        load.threads                 = 1 + pick(12);
        load.depth                   = 1 + pick(15);
        load.bytes                   = pick(30);
        load.is_inline               = (load.bytes <= SEP_MODEL_MAX_INLINE) &&
                                       (load.op == SEP_MODEL_WRITE);
        load.instructions            = pick(10);
        load.qps                     = pick(24);
        load.signal                  = pick(10);
        load.is_steady               = random() % 2;
        load.sharing.threads_per_qp  = (random() % 8) ? 1 + pick(12) :
                                       SEP_MODEL_ALL;
        load.sharing.threads_per_cq  = (random() % 8) ? 1 + pick(12) :
                                       SEP_MODEL_ALL;
        load.sharing.uuars_dedicated = (random() % 8) ? pick(9) :
                                       SEP_MODEL_ALL;
        load.sharing.uuars_shared    = 1 + pick(9);
        load.sharing.uuars_per_page  = 1 + (random() % 2);
        load.sharing.pages_adjacent  = random() % 2;
        load.sharing.qp_lock         = random() % 2;

        sep_model_rate_t rate = test_model_rate(m_adapter, load);
        ASSERT_TRUE(std::isfinite(rate.mops)) << "case " << i;
        ASSERT_GT(rate.mops, 0) << "case " << i;
        ASSERT_LE(rate.mops, m_adapter.value[SEP_MODEL_WQE_RATE]);
        ASSERT_LE(rate.mops, rate.threads * 1.000001);
        ASSERT_LE(rate.mops, rate.adapter * 1.000001);
        ASSERT_GE(rate.outstanding, 0);
        ASSERT_LE(rate.outstanding, (double)load.threads * load.depth);
        ASSERT_LT(rate.refetches, m_adapter.value[SEP_MODEL_REFETCHES]);
        ASSERT_LT(rate.contexts, m_adapter.value[SEP_MODEL_CONTEXT_FETCHES]);
        ASSERT_LT(rate.limit, SEP_MODEL_LIMIT_LAST);
    }
}

TEST_P(test_model_rate_of, more_data_is_not_faster)
{
    for (sep_model_op_t op :
         {SEP_MODEL_READ, SEP_MODEL_WRITE, SEP_MODEL_SEND}) {
        for (unsigned threads : {1, 16, 96}) {
            double before = INFINITY;
            for (size_t bytes = 0; bytes <= 1 << 20;
                 bytes = (bytes == 0) ? 1 : (bytes * 3 + 1) / 2) {
                double now = mops(test_model_load(op, "per-doorbell", threads,
                                                  8, bytes));
                EXPECT_LE(now, before * 1.000001)
                        << threads << " threads, " << bytes << " bytes";
                before = now;
            }
        }
    }
}

TEST_P(test_model_rate_of, long_messages_are_as_fast_as_the_slowest_link)
{
    double bytes = 1 << 20;
    double link  = std::fmin(m_adapter.value[SEP_MODEL_LINK_RATE] / 8,
                             m_adapter.value[SEP_MODEL_PCIE_RATE]) * 1e3;

    EXPECT_LT(read("per-doorbell", 16, 16, bytes), link / bytes);
    EXPECT_GT(read("per-doorbell", 16, 16, bytes), 0.8 * link / bytes);
}

TEST_P(test_model_rate_of, more_outstanding_is_faster_until_the_adapter_is_full)
{
    for (unsigned threads : {1u, 4u, 12u}) {
        /* The second begins with a fetch that the first does not wait for */
        for (unsigned depth = 2; depth * threads < 256; ++depth) {
            EXPECT_GE(read("per-doorbell", threads, depth),
                      read("per-doorbell", threads, depth - 1) * 0.999999)
                    << threads << " threads, depth " << depth;
        }
    }
}

TEST_P(test_model_rate_of, more_threads_of_their_own_are_faster)
{
    for (unsigned depth : {1u, 4u}) {
        for (unsigned threads = 2; threads <= 64; ++threads) {
            EXPECT_GE(read("per-doorbell", threads, depth),
                      read("per-doorbell", threads - 1, depth) * 0.999999)
                    << threads << " threads, depth " << depth;
        }
    }
}

/* But for the softness of the change from one limit to another */
TEST_P(test_model_rate_of, sharing_is_not_faster)
{
    const std::vector<std::string> policies = {"per-doorbell", "per-qp",
                                               "mul-2", "mul-4", "mul-16",
                                               "shared-qp"};

    for (unsigned depth : {1, 2, 8, 16}) {
        for (unsigned threads : {2, 4, 8, 16, 24, 32}) {
            for (size_t i = 1; i < policies.size(); ++i) {
                EXPECT_LE(read(policies[i], threads, depth),
                          read(policies[i - 1], threads, depth) * 1.005)
                        << policies[i] << ", " << threads << " threads, depth "
                        << depth;
            }
        }
    }
}

TEST_P(test_model_rate_of, a_shared_cq_costs)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_WRITE, "per-doorbell", 16,
                                            64);
    double before         = mops(load);

    for (unsigned threads : {2, 4, 8, 16}) {
        load.sharing.threads_per_cq = threads;
        double now                  = mops(load);
        EXPECT_LT(now, before) << threads;
        before = now;
    }
}

TEST_P(test_model_rate_of, what_threads_do_not_have_to_execute_is_faster)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_WRITE, "per-doorbell", 8,
                                            16);
    double doorbell       = mops(load);

    load.instructions = m_adapter.value[SEP_MODEL_INSTRUCTIONS];
    EXPECT_DOUBLE_EQ(doorbell, mops(load));
    load.instructions /= 4;
    EXPECT_GT(mops(load), doorbell);
}

TEST_P(test_model_rate_of, blueflame_and_inline_data_save_transactions)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_WRITE, "per-doorbell", 96,
                                            8);
    /* Doorbell, element asked for and sent, data asked for and sent, CQE */
    EXPECT_EQ(6, test_model_rate(m_adapter, load).tlps);
    load.is_inline = 1;
    EXPECT_EQ(4, test_model_rate(m_adapter, load).tlps);
    load.post = SEP_MODEL_BLUEFLAME;
    EXPECT_EQ(2, test_model_rate(m_adapter, load).tlps);
    load.bytes = 29; /* It does not fit into 64 bytes with the segments */
    EXPECT_EQ(3, test_model_rate(m_adapter, load).tlps);
    load = test_model_load(SEP_MODEL_READ, "per-doorbell", 96, 8, 4096);
    EXPECT_EQ(4 + 16, test_model_rate(m_adapter, load).tlps);
}

TEST_P(test_model_rate_of, requests_without_completions_save_transactions)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_WRITE, "per-doorbell", 96,
                                            32);

    load.signal = 1;
    EXPECT_EQ(6, test_model_rate(m_adapter, load).tlps);
    load.signal = 4;
    EXPECT_EQ(5.25, test_model_rate(m_adapter, load).tlps);
}

/* The answer to a read has to find its memory, whoever wants a completion */
TEST_P(test_model_rate_of, only_writes_without_completions_need_no_state)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_WRITE, "per-doorbell", 96,
                                            32);

    load.qps       = 8192;
    load.is_steady = 1;
    for (sep_model_op_t op : {SEP_MODEL_WRITE, SEP_MODEL_SEND}) {
        load.op     = op;
        load.signal = 1;
        auto each   = test_model_rate(m_adapter, load);
        load.signal = 64;
        auto few    = test_model_rate(m_adapter, load);
        EXPECT_GT(each.refetches, 1);
        EXPECT_LT(few.refetches, each.refetches / 60);
        EXPECT_DOUBLE_EQ(each.contexts / 64, few.contexts);
    }

    load.op = SEP_MODEL_READ;
    EXPECT_GT(test_model_rate(m_adapter, load).refetches, 1);
    EXPECT_GT(test_model_rate(m_adapter, load).contexts, 1);
}

/* But for their own limits, which soften the change to the threads' */
TEST_P(test_model_rate_of, more_queue_pairs_are_not_faster)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_READ, "per-doorbell", 32,
                                            16);
    double before         = mops(load);

    load.qps = 32; /* Those that they have in any case */
    EXPECT_DOUBLE_EQ(before, mops(load));
    for (load.qps = 64; load.qps < (1u << 20); load.qps *= 2) {
        double now = mops(load);
        EXPECT_LE(now, before * 1.001) << load.qps;
        before = now;
    }
    load.qps = 32;
    EXPECT_LT(before, mops(load) / 2);
}

/* A queue pair has so many reads under way, so several have more */
TEST_P(test_model_rate_of, a_thread_with_several_queue_pairs_has_their_limits)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_READ, "per-doorbell", 1,
                                            256);

    m_adapter.value[SEP_MODEL_QP_RATE] = 1;
    EXPECT_NEAR(1, mops(load), 0.01);
    load.qps = 2;
    EXPECT_NEAR(2, mops(load), 0.02);
}

TEST_P(test_model_rate_of, the_most_queue_pairs_keep_what_was_asked_for)
{
    for (sep_model_op_t op : {SEP_MODEL_READ, SEP_MODEL_WRITE}) {
        for (double keep : {0.5, 0.9, 0.99}) {
            sep_model_load_t load = test_model_load(op, "per-doorbell", 96, 8);
            double least          = keep * mops(load);
            unsigned most         = sep_model_most_qps(&m_adapter, &load, keep);

            load.qps = most;
            EXPECT_GE(mops(load), least) << keep;
            load.qps = most + 1;
            EXPECT_LT(mops(load), least) << keep;
        }
    }
}

TEST_P(test_model_rate_of, who_needs_no_contexts_may_have_any_number_of_them)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_WRITE, "per-doorbell", 4,
                                            8);

    load.signal = 1000;
    EXPECT_EQ(UINT_MAX, sep_model_most_qps(&m_adapter, &load, 0.9));
    m_adapter.value[SEP_MODEL_CONTEXT_FETCHES] = 0;
    load = test_model_load(SEP_MODEL_READ, "per-doorbell", 96, 8);
    EXPECT_EQ(UINT_MAX, sep_model_most_qps(&m_adapter, &load, 0.9));
}

/* Threads that wait for all have nothing under way until they have begun
 * again */
TEST_P(test_model_rate_of, steady_threads_wait_less)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_READ, "per-doorbell", 4,
                                            8);
    double turns          = mops(load);

    load.is_steady = 1;
    EXPECT_GT(mops(load), turns);
    EXPECT_EQ(4 * 8, test_model_rate(m_adapter, load).outstanding);
}

TEST_P(test_model_rate_of, threads_that_take_turns_do_not_add_up)
{
    unsigned hw    = m_adapter.value[SEP_MODEL_HW_THREADS];
    double depth_1 = read("per-doorbell", 1, 1);

    EXPECT_GT(read("per-doorbell", hw, 1), depth_1 * hw / 4);
    EXPECT_LE(test_model_rate(m_adapter, test_model_load(
            SEP_MODEL_READ, "per-doorbell", 64 * hw, 64)).threads,
              hw / m_adapter.value[SEP_MODEL_CPU_REQUEST]);
}

TEST_P(test_model_rate_of, nobody_has_less_of_a_budget_than_the_least)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_READ, "per-doorbell", 64,
                                            32);
    auto depth            = [&](unsigned budget, unsigned least) {
        sep_model_load_t limited = load;
        sep_model_throttle(&m_adapter, budget, least, &limited);
        return limited.depth;
    };

    EXPECT_EQ(32u, depth(64 * 32, 1));
    EXPECT_EQ(32u, depth(1u << 24, 1));
    EXPECT_EQ(31u, depth(64 * 32 - 1, 1));
    EXPECT_EQ(10u, depth(640, 8));
    EXPECT_EQ(8u, depth(64, 8));
    load.depth = 4;
    EXPECT_EQ(4u, depth(64, 8));
}

TEST_P(test_model_rate_of, no_budget_is_better_than_the_best)
{
    for (unsigned threads : {1, 16, 64, 96, 200}) {
        sep_model_load_t load = test_model_load(SEP_MODEL_READ, "per-doorbell",
                                                threads, 40);
        sep_model_load_t best = load;

        sep_model_throttle(&m_adapter, SEP_MODEL_THROTTLE_BEST, 1, &best);
        EXPECT_LE(best.depth, load.depth);
        for (unsigned depth = 1; depth <= 40; ++depth) {
            load.depth = depth;
            EXPECT_LE(mops(load), mops(best)) << threads << " " << depth;
        }
    }
}

/* What it is there for: the data's collapse, 111 to 55 million */
TEST(test_model_throttle, undoes_the_collapse_of_too_many_outstanding)
{
    sep_model_adapter_t adapter = test_model_adapter("cx6");
    sep_model_load_t load = test_model_load(SEP_MODEL_READ, "per-doorbell", 96,
                                            32);
    double before = test_model_rate(adapter, load).mops;

    sep_model_throttle(&adapter, SEP_MODEL_THROTTLE_BEST, 8, &load);
    EXPECT_GT(test_model_rate(adapter, load).mops, 1.5 * before);
}

INSTANTIATE_TEST_SUITE_P(adapters, test_model_rate_of,
                         ::testing::Values("cx4", "cx6"),
                         [](const auto &info) {
                             return std::string(info.param);
                         });


TEST(test_model_policy, unknown_names_are_refused)
{
    sep_model_sharing_t sharing;

    for (const char *name : {"", "per", "per-qp2", "mul", "mul-", "mul-0",
                             "mul-x", "mul--2", "mul-+2", "mul-2x", "mul-99999",
                             "PER-QP"}) {
        EXPECT_EQ(-1, sep_model_policy_find(name, &sharing)) << name;
    }
    EXPECT_EQ(0, sep_model_policy_find("mul-8", &sharing));
    EXPECT_EQ(8u, sharing.threads_per_qp);
}
