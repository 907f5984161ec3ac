/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/eager/sep_eager.h>

#include <common/seed.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

using namespace sep_uct_test;

namespace {

/*
 * Peers that are killed while both sides write into each other's rings. There
 * is memory for one ring, so each peer gets that of the last one who was
 * killed.
 */
class test_sep_uct_eager_kill : public test_sep_uct,
                                public ::testing::WithParamInterface<mode> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }

        m_config.insert(m_config.end(), impatient.begin(), impatient.end());
        m_config.insert(m_config.end(), GetParam().config.begin(),
                        GetParam().config.end());
        m_config.push_back({"EAGER", "y"});
        m_config.push_back({"EAGER_POLL_SET", "1"});
        m_local = entity::create(m_config);
        ASSERT_TRUE(m_local != nullptr);
    }

    bool has_ring()
    {
        return m_local->sep()->eager.num_rings > 0;
    }

    /* What came from one peer: a beginning of what it sent, intact */
    void expect_intact()
    {
        uint64_t seq = 0;

        for (auto &message : m_local->messages) {
            bytes expected = pattern(message_length, seq);

            memcpy(expected.data(), &seq, sizeof(seq));
            ASSERT_TRUE(message.data == expected) << seq;
            ++seq;
        }
        m_local->messages.clear();
    }

    /* Kill a peer so many microseconds after it was offered a ring, or after it
     * has written into it */
    void one_peer(bool is_used, unsigned delay)
    {
        peer other(1, m_config);
        uct_ep_h ep         = m_local->connect(other.addr());
        size_t num_failures = m_local->failures.size();
        uint64_t by_ring    = m_local->num_by_ring();

        other.send(m_local->addr(), 1000000, message_length);
        m_local->wait([&]() {
            return is_used ? (m_local->num_by_ring() > by_ring) : has_ring();
        });
        std::thread killer([&]() {
            std::this_thread::sleep_for(std::chrono::microseconds(delay));
            other.kill();
        });
        m_local->wait([&]() {
            ucs_status_t status = uct_ep_am_short(ep, 1, 0, NULL, 0);

            /* Who has used up what the peer granted has nothing under way */
            if (status == UCS_ERR_NO_RESOURCE) {
                status = uct_ep_check(ep, 0, NULL);
            }
            EXPECT_TRUE((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE) ||
                        (status == UCS_ERR_CONNECTION_RESET));
            return m_local->failures.size() > num_failures;
        });
        killer.join();
        EXPECT_EQ(num_failures + 1, m_local->failures.size());
        EXPECT_EQ(ep, m_local->failures.back().ep);

        m_local->destroy(ep);
        m_local->wait([&]() {
            return (m_local->num_qps() == 0) && !has_ring();
        });
        /* A hub keeps for its workers what they have not taken yet */
        while (m_local->progress() > 0);
        expect_intact();
    }

    static constexpr size_t message_length = 100;

    settings m_config;
};

TEST_P(test_sep_uct_eager_kill, random_moments_leave_no_ring)
{
    unsigned num_cases = seed::cases(10);
    std::mt19937_64 random(seed::get());

    for (unsigned i = 0; (i < num_cases) && !HasFailure(); ++i) {
        one_peer(i % 2, random() % 20000);
    }
}

INSTANTIATE_TEST_SUITE_P(modes, test_sep_uct_eager_kill,
                         ::testing::Values(
                                 mode{"dynamic", {{"CATEGORY", "dynamic"}}},
                                 mode{"verbs", {{"API", "verbs"}}},
                                 mode{"cq_sharing", {{"CQ_SHARING", "2"}}},
                                 mode{"threads",
                                      {{"CATEGORY", "mpi_threads"}}}),
                         [](const ::testing::TestParamInfo<mode> &info) {
                             return info.param.name;
                         });

} // namespace
