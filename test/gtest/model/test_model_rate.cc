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
