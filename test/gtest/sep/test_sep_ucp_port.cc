/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_ucp.h>
#include <sep/test_sep_uct.h>
#include <sep/test_sep_uct_tls.h>

#include <set>
#include <string>

using namespace sep_uct_test;

namespace {

/* Ports of RoCE without GIDs, whose link is up: those of representors, and of
 * functions on which RoCE is switched off (GIDLESS, no table), and those whose
 * network interface has gone (EMPTY_GIDS, a table of zeros). UCP opens each
 * port that is offered, and gives up its worker if one can't be opened. */
class test_sep_ucp_port : public ::testing::TestWithParam<const char*> {
protected:
    typedef std::set<std::string> names;

    /* Devices that a transport offers */
    static names devices(const std::string &tl)
    {
        names found;

        any_device(tl, [&](uct_component_h, uct_md_h, const char *dev) {
            found.insert(dev);
            return false;
        });
        return found;
    }

    /* Whether two workers can talk on these transports */
    static void exchange(const char *tls)
    {
        sep_ucp_test::pair pair;

        ASSERT_NO_FATAL_FAILURE(pair.open(UCP_FEATURE_TAG, {{"TLS", tls}}));
        pair.exchange();
    }
};

TEST_P(test_sep_ucp_port, the_one_that_has_gids_is_used)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}, {"MLX5SIM_PORTS", "2"},
                    {GetParam(), "mlx5_0:1"}})) {
        return;
    }

    const names expected = {"mlx5_0:2"};
    EXPECT_EQ(expected, devices("rc_mlx5"));
    EXPECT_EQ(expected, devices("sep_mlx5"));
    {
        SCOPED_TRACE("rc_mlx5");
        exchange("rc_x");
    }
    exchange("sep_mlx5");
}

TEST_P(test_sep_ucp_port, without_any_gid_others_are_used)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"},
                    {GetParam(), "mlx5_0:1"}})) {
        return;
    }

    EXPECT_EQ(names(), devices("rc_mlx5"));
    EXPECT_EQ(names(), devices("sep_mlx5"));
    {
        SCOPED_TRACE("rc_mlx5");
        exchange("rc_x,sm");
    }
    exchange("sep_mlx5,sm");
}

INSTANTIATE_TEST_SUITE_P(settings, test_sep_ucp_port,
                         ::testing::Values("MLX5SIM_GIDLESS",
                                           "MLX5SIM_EMPTY_GIDS"),
                         [](const ::testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });

} // namespace
