/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_ucp.h>
#include <sep/test_sep_uct.h>

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

    static void add_devices(uct_component_h component, const std::string &tl,
                            names *names_p)
    {
        uct_component_attr_t attr;
        uct_md_config_t *config;

        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        ASSERT_EQ(UCS_OK, uct_component_query(component, &attr));
        if (attr.md_resource_count == 0) {
            return;
        }
        std::vector<uct_md_resource_desc_t> mds(attr.md_resource_count);
        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds.data();
        ASSERT_EQ(UCS_OK, uct_component_query(component, &attr));

        ASSERT_EQ(UCS_OK, uct_md_config_read(component, NULL, NULL, &config));
        for (auto &resource : mds) {
            uct_tl_resource_desc_t *tls;
            unsigned count;
            uct_md_h md;

            if (uct_md_open(component, resource.md_name, config, &md) !=
                UCS_OK) {
                continue;
            }
            EXPECT_EQ(UCS_OK, uct_md_query_tl_resources(md, &tls, &count));
            for (unsigned i = 0; i < count; ++i) {
                if (tl == tls[i].tl_name) {
                    names_p->insert(tls[i].dev_name);
                }
            }
            uct_release_tl_resource_list(tls);
            uct_md_close(md);
        }
        uct_config_release(config);
    }

    /* Devices that a transport offers */
    static names devices(const std::string &tl)
    {
        uct_component_h *components;
        unsigned count;
        names found;

        EXPECT_EQ(UCS_OK, uct_query_components(&components, &count));
        for (unsigned i = 0; i < count; ++i) {
            add_devices(components[i], tl, &found);
        }
        uct_release_component_list(components);
        return found;
    }

    /* Whether two workers can talk on these transports */
    static void exchange(const char *tls)
    {
        ucp_request_param_t param = {};
        uint64_t sent = 0x5e9, received = 0;
        sep_ucp_test::pair pair;

        ASSERT_NO_FATAL_FAILURE(pair.open(UCP_FEATURE_TAG, {{"TLS", tls}}));
        auto recv = ucp_tag_recv_nbx(pair.worker(1), &received,
                                     sizeof(received), 1, UINT64_MAX, &param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(recv));
        auto send = ucp_tag_send_nbx(pair.ep(0), &sent, sizeof(sent), 1,
                                     &param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(send));
        pair.finish(send);
        pair.finish(recv);
        EXPECT_EQ(sent, received);
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
