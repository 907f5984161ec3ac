/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_ucp.h>
#include <sep/test_sep_uct.h>

#include <cstdlib>

using namespace sep_uct_test;

namespace {

/* What UCP publishes of a worker */
class test_sep_ucp_address :
    public ::testing::Test,
    public ::testing::WithParamInterface<const char*> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    void exchange()
    {
        ucp_request_param_t param = {};
        uint64_t sent = 0x5e9, received = 0;

        auto recv = ucp_tag_recv_nbx(m_pair.worker(1), &received,
                                     sizeof(received), 1, UINT64_MAX, &param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(recv));
        auto send = ucp_tag_send_nbx(m_pair.ep(0), &sent, sizeof(sent), 1,
                                     &param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(send));
        m_pair.finish(send);
        m_pair.finish(recv);
        EXPECT_EQ(sent, received);
    }

    sep_ucp_test::pair m_pair;
};

/* What Open MPI publishes to other nodes, and UCC: only the interfaces that UCX
 * from 1.18 on takes for reachable from there */
TEST_P(test_sep_ucp_address, for_other_nodes_reaches_a_worker)
{
    setenv("UCX_SEP_CATEGORY", GetParam(), 1);
    m_pair.open(UCP_FEATURE_TAG, {}, UCP_WORKER_ADDRESS_FLAG_NET_ONLY);
    if (!HasFatalFailure()) {
        exchange();
    }
    m_pair.close();
    unsetenv("UCX_SEP_CATEGORY");
}

INSTANTIATE_TEST_SUITE_P(category, test_sep_ucp_address,
                         ::testing::Values("dynamic", "mpi_threads"),
                         [](const ::testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });

} // namespace
