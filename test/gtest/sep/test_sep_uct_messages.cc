/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

using namespace sep_uct_test;

namespace {

/* What can't be had is refused with what is missing and what to set */
class test_sep_uct_messages : public test_sep_uct {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    static device_settings uars(const char *count, const char *regime)
    {
        return {{"MLX5SIM_UARS", count}, {"MLX5SIM_UAR_MODE", regime}};
    }
};

TEST_F(test_sep_uct_messages, no_uar_page_for_a_category)
{
    if (!on_device(uars("1", "dynamic"))) {
        return;
    }

    for (auto &row : categories()) {
        if (row.own_context) {
            expect_refused({{"CATEGORY", row.name}},
                           {"no UAR page left", "UCX_SEP_CATEGORY"});
        } else if (row.tds > 0) {
            expect_refused({{"CATEGORY", row.name}},
                           {"no UAR page left", row.name, "such as static"});
        } else {
            /* There is nothing that takes fewer */
            expect_refused({{"CATEGORY", row.name}},
                           {"no UAR page left", row.name, "fewer processes"});
        }
    }

    expect_refused({{"CATEGORY", "auto"}},
                   {"no UAR page left", "auto", "fewer processes"});
}

TEST_F(test_sep_uct_messages, no_uar_page_for_a_context)
{
    if (getenv("MLX5SIM_DIR") == NULL) {
        GTEST_SKIP() << "needs a device with few UAR pages";
    }

    if (!on_device(uars("7", "legacy"))) {
        return;
    }

    expect_refused({{"CATEGORY", "static"}}, {"ibv_open_device", "UAR pages"});
}

/* libmlx5 opens the context, which is of no use */
TEST_F(test_sep_uct_messages, no_uar_page_for_the_context_of_another_worker)
{
    if (!on_device(uars("4", "dynamic"))) {
        return;
    }

    const settings config = {{"CATEGORY", "mpi_everywhere"}};
    std::vector<std::unique_ptr<entity>> workers;
    expect_errors errors;

    do {
        workers.push_back(workers.empty() ? entity::create(config) :
                                            entity::create(*workers[0],
                                                           config));
        ASSERT_GT(4u, workers.size());
    } while (workers.back() != nullptr);
    EXPECT_LE(3u, workers.size());
    EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_ERROR, "no UAR page left"));
    while (!workers.empty()) {
        workers.pop_back();
    }
}

TEST_F(test_sep_uct_messages, auto_says_once_that_it_takes_less)
{
    if (!on_device(uars("6", "dynamic"))) {
        return;
    }

    std::vector<std::unique_ptr<entity>> workers;
    expect_errors errors;

    workers.push_back(entity::create({{"CATEGORY", "auto"}}));
    ASSERT_TRUE(workers[0] != nullptr);
    EXPECT_EQ(0u, errors.messages.size());
    for (unsigned i = 0; i < 6; ++i) {
        workers.push_back(entity::create(*workers[0], {{"CATEGORY", "auto"}}));
        ASSERT_TRUE(workers.back() != nullptr) << i;
    }
    EXPECT_EQ(UCT_SEP_CATEGORY_STATIC, workers.back()->sep()->channel.category);
    EXPECT_EQ(1u, errors.messages.size());
    EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_WARN, "2xdynamic"));
    while (!workers.empty()) {
        workers.pop_back();
    }
}

TEST_F(test_sep_uct_messages, settings_that_make_no_sense)
{
    expect_refused({{"TIMEOUT", "-1s"}}, {"UCX_SEP_TIMEOUT=-1s"});
    expect_refused({{"TIMEOUT", "nan"}}, {"UCX_SEP_TIMEOUT"});
    expect_refused({{"RNR_TIMEOUT", "-5ms"}}, {"UCX_SEP_RNR_TIMEOUT=-0.005s"});
    expect_refused({{"MAX_RD_ATOMIC", "0"}}, {"UCX_SEP_MAX_RD_ATOMIC=0"});
}

TEST_F(test_sep_uct_messages, long_times_are_as_long_as_they_can_be)
{
    const struct {
        const char *timeout;
        unsigned   timer;
    } values[] = {{"1ms", 14}, {"491.52ms", 31}, {"492ms", 0}, {"inf", 0}};

    for (auto &value : values) {
        auto local = entity::create({{"RNR_TIMEOUT", value.timeout},
                                     {"TIMEOUT", value.timeout}});
        ASSERT_TRUE(local != nullptr) << value.timeout;
        EXPECT_EQ(value.timer, local->sep()->config.min_rnr_timer)
                << value.timeout;
    }
}

TEST_F(test_sep_uct_messages, without_zero_copy_gets_there_is_no_such_flag)
{
    for (const char *category : {"dynamic", "mpi_threads"}) {
        auto none = entity::create({{"MAX_GET_ZCOPY", "0"},
                                    {"CATEGORY", category}});
        auto some = entity::create({{"MAX_GET_ZCOPY", "4k"},
                                    {"CATEGORY", category}});

        ASSERT_TRUE((none != nullptr) && (some != nullptr));
        EXPECT_FALSE(none->attr().cap.flags & UCT_IFACE_FLAG_GET_ZCOPY);
        /* Those of a hub's workers are zero-copy gets of the hub */
        EXPECT_EQ(!none->is_on_hub(),
                  !!(none->attr().cap.flags & UCT_IFACE_FLAG_GET_BCOPY));
        EXPECT_TRUE(some->attr().cap.flags & UCT_IFACE_FLAG_GET_ZCOPY);
        EXPECT_EQ(4096u, some->attr().cap.get.max_zcopy);
    }
}

TEST_F(test_sep_uct_messages, a_peer_that_is_not_of_the_same_kind)
{
    if (!on_device({})) { /* Once in a process */
        return;
    }

    auto plain  = entity::create({{"CATEGORY", "dynamic"}});
    auto shared = entity::create({{"CATEGORY", "mpi_threads"}});
    ASSERT_TRUE((plain != nullptr) && (shared != nullptr));

    auto reaches = [](entity &from, entity &to) {
        address addr = to.addr();
        return uct_iface_is_reachable(from.iface(),
                                      (uct_device_addr_t*)addr.dev.data(),
                                      (uct_iface_addr_t*)addr.iface.data());
    };

    expect_errors errors;
    EXPECT_TRUE(reaches(*plain, *plain));
    EXPECT_TRUE(reaches(*shared, *shared));
    EXPECT_EQ(0u, errors.messages.size());
    EXPECT_FALSE(reaches(*plain, *shared));
    EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_WARN,
                               "UCX_SEP_CATEGORY=mpi_threads"));
    EXPECT_FALSE(reaches(*shared, *plain));
    EXPECT_FALSE(reaches(*plain, *shared));
    EXPECT_EQ(1u, errors.messages.size());
}

} // namespace
