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

    sep_ucp_test::pair m_pair;
};

/* What Open MPI publishes to other nodes, and UCC: only the interfaces that UCX
 * from 1.18 on takes for reachable from there */
TEST_P(test_sep_ucp_address, for_other_nodes_reaches_a_worker)
{
    setenv("UCX_SEP_CATEGORY", GetParam(), 1);
    m_pair.open(UCP_FEATURE_TAG, {}, UCP_WORKER_ADDRESS_FLAG_NET_ONLY);
    if (!HasFatalFailure()) {
        m_pair.exchange();
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
