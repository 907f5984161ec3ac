/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/open/sep_select.h>
#include <uct/ib/sep/ops/sep_ops_dv.h>
#include <uct/ib/sep/verbs/sep_verbs.h>
#include <gtest/gtest.h>

#include <map>

namespace {

/* What each data path was compiled for */
const std::map<const uct_sep_ops_t*, unsigned> rows = {
#define ROW(_name, _mode) {&uct_sep_ops_##_name, _mode},
    UCT_SEP_OPS_FOREACH_DV(ROW)
    UCT_SEP_OPS_FOREACH_VERBS(ROW)
#undef ROW
};

/* All that can be asked for together */
template<typename func_t> void for_each_mode(func_t func)
{
    for (unsigned post : {UCT_SEP_TX_POST_BF, UCT_SEP_TX_POST_BF64,
                          UCT_SEP_TX_POST_DB}) {
        for (unsigned shared : {0u, unsigned(UCT_SEP_OPS_SHARED)}) {
            for (unsigned list : {0u, unsigned(UCT_SEP_OPS_LIST)}) {
                for (unsigned api : {0u, unsigned(UCT_SEP_OPS_VERBS),
                                     unsigned(UCT_SEP_OPS_VERBS |
                                              UCT_SEP_OPS_WR)}) {
                    func(post | shared | list | api);
                }
            }
        }
    }
}

TEST(test_sep_select, any_mode_has_a_data_path_that_can_do_it)
{
    for_each_mode([](unsigned mode) {
        auto row = rows.find(uct_sep_select_find(mode));

        ASSERT_TRUE(row != rows.end()) << std::hex << mode;
        if (mode & UCT_SEP_OPS_VERBS) {
            EXPECT_EQ(mode & (UCT_SEP_OPS_VERBS | UCT_SEP_OPS_WR), row->second);
        } else if (mode & UCT_SEP_OPS_LIST) {
            /* Looks itself how it rings, and who else does */
            EXPECT_EQ(unsigned(UCT_SEP_OPS_LIST), row->second);
        } else {
            EXPECT_EQ(UCT_SEP_OPS_POST(mode), UCT_SEP_OPS_POST(row->second));
            EXPECT_EQ(0u, mode & ~row->second) << std::hex << mode;
        }
    });
}

TEST(test_sep_select, each_data_path_is_chosen_for_what_it_was_compiled_for)
{
    for (auto &row : rows) {
        EXPECT_EQ(row.first, uct_sep_select_find(row.second));
    }
}

/* Messages find the ring in any case, but here without a detour */
TEST(test_sep_select, with_rings_messages_have_functions_of_their_own)
{
    if (!sep_uct_test::entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }

    for (bool has_rings : {false, true}) {
        auto e = sep_uct_test::entity::create({
                {"CATEGORY", "dynamic"}, {"EAGER", has_rings ? "y" : "n"}});
        ASSERT_NE(nullptr, e);
        const uct_iface_ops_t &ops = e->iface()->ops;
        const uct_sep_ops_t *path  = e->sep()->tx.ops;

        EXPECT_EQ(has_rings, ops.ep_am_short == path->ep_am_short_eager);
        EXPECT_EQ(has_rings, ops.ep_am_bcopy == path->ep_am_bcopy_eager);
    }
}

} // namespace
