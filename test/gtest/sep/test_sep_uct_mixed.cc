/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <cstring>

using namespace sep_uct_test;

namespace {

/* How two processes of a job use the device */
struct mixture {
    const char *name;
    settings   ours, theirs;
};

void PrintTo(const mixture &value, std::ostream *os)
{
    *os << value.name;
}

/* Two workers here and two there, of which the second ones may have a device
 * context of their own: all combinations talk to each other */
class test_sep_uct_mixed : public ::testing::TestWithParam<mixture> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        m_workers[0] = entity::create(GetParam().ours);
        ASSERT_TRUE(m_workers[0] != nullptr);
        m_workers[1] = entity::create(*m_workers[0], GetParam().ours);
        ASSERT_TRUE(m_workers[1] != nullptr);
        m_peer.reset(new peer(2, GetParam().theirs));
    }

    void TearDown() override
    {
        m_peer.reset();
        m_workers[1].reset();
        m_workers[0].reset();
    }

    std::unique_ptr<entity> m_workers[2];
    std::unique_ptr<peer>   m_peer;
};

TEST_P(test_sep_uct_mixed, messages_puts_and_atomics_arrive_on_all_pairs)
{
    for (auto &e : m_workers) {
        for (unsigned remote = 0; remote < 2; ++remote) {
            SCOPED_TRACE(remote);
            uct_ep_h ep        = e->connect(m_peer->addr(remote));
            remote_memory rmem = m_peer->expose(4096, 5);
            bytes data         = pattern(3000, 7);
            memory local(e->md(), data.size());
            uct_iov_t iov = {local.ptr(), local.size(), local.memh(), 0, 1};
            uint64_t before = 0, expected;
            completion put, added;

            memcpy(local.ptr(), data.data(), data.size());
            e->wait([&]() {
                return uct_ep_put_zcopy(ep, &iov, 1, rmem.va, rmem.rkey.rkey,
                                        &put.comp) == UCS_INPROGRESS;
            });
            ASSERT_TRUE(e->flush());
            EXPECT_EQ(1u, put.calls);
            EXPECT_EQ(UCS_OK, put.status);
            EXPECT_EQ(data, m_peer->read(0, data.size()));

            memcpy(&expected, data.data(), sizeof(expected));
            e->wait([&]() {
                return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &before,
                                             rmem.va, rmem.rkey.rkey,
                                             &added.comp) == UCS_INPROGRESS;
            });
            ASSERT_TRUE(e->flush());
            EXPECT_EQ(expected, before);

            m_peer->release(remote);
            e->wait([&]() {
                return uct_ep_am_short(ep, 1, 42, NULL, 0) == UCS_OK;
            });
            ASSERT_TRUE(e->flush());
            e->wait([&]() { return m_peer->num_received(remote) == 1; });
            uct_rkey_release(e->component(), &rmem.rkey);
        }

        /* And back, over connections that exist */
        m_peer->send(e->addr(), 100, 600);
        e->wait([&]() { return e->messages.size() == 100; });
        EXPECT_EQ(600u, e->messages[99].data.size());
        EXPECT_TRUE(e->failures.empty());
    }
}

const settings dv_static    = {{"CATEGORY", "static"}};
const settings verbs_static = {{"CATEGORY", "static"}, {"API", "verbs"}};
const settings dv_own       = {{"CATEGORY", "mpi_everywhere"}};
const settings verbs_own    = {{"CATEGORY", "mpi_everywhere"},
                               {"API", "verbs"}};

/* Alike: in each way to post, by default or with settings of the environment */
std::vector<mixture> alike()
{
    std::vector<mixture> result;

    for (auto &mode : post_modes()) {
        result.push_back({mode.name, mode.config, mode.config});
    }
    return result;
}

std::string mixture_name(const ::testing::TestParamInfo<mixture> &info)
{
    return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(alike, test_sep_uct_mixed,
                         ::testing::ValuesIn(alike()), mixture_name);
INSTANTIATE_TEST_SUITE_P(
        , test_sep_uct_mixed,
        ::testing::Values(mixture{"static_dv_verbs", dv_static, verbs_static},
                          mixture{"static_verbs_dv", verbs_static, dv_static},
                          mixture{"static_verbs", verbs_static, verbs_static},
                          mixture{"own_dv_verbs", dv_own, verbs_own},
                          mixture{"own_verbs_dv", verbs_own, dv_own},
                          mixture{"own_verbs", verbs_own, verbs_own},
                          mixture{"own_verbs_static", verbs_own, dv_static},
                          mixture{"static_own_verbs", verbs_static,
                                  verbs_own}),
        mixture_name);

} // namespace
