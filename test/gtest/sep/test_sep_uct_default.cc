/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <common/sanitizer.h>

#include <map>
#include <memory>
#include <vector>

using namespace sep_uct_test;

namespace {

/*
 * Unless UCX_SEP_CATEGORY is set, a worker gets a UAR page of its own. Where
 * that can't be had, it gets less, and a warning, for UCP gives up a worker
 * whose transport does not open. Who has asked for a category gets it, or an
 * error.
 */
class test_sep_uct_default : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    /* Two workers that talk to each other. @return category of the second */
    static std::string talk(const settings &config)
    {
        uint64_t data = 0x5e9;
        auto self     = entity::create(config);

        if (self == nullptr) {
            return "none";
        }

        auto other  = entity::create(*self, config);
        if (other == nullptr) {
            return "only one";
        }

        uct_ep_h ep         = other->connect(self->addr());
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        other->wait([&]() {
            status = uct_ep_am_short(ep, 1, 0, &data, sizeof(data));
            self->progress();
            return status != UCS_ERR_NO_RESOURCE;
        });
        EXPECT_EQ(UCS_OK, status);
        self->wait([&]() {
            other->progress();
            return !self->messages.empty();
        });
        EXPECT_TRUE(other->flush());
        return uct_sep_category_names[other->sep()->channel.category];
    }
};

TEST_F(test_sep_uct_default, is_dynamic_if_that_can_be_had)
{
    EXPECT_EQ("dynamic", talk({{"CATEGORY", "default"}}));
}

/* UCX calls those that its API does not show without a look, and each version
 * has others */
TEST_F(test_sep_uct_default, no_internal_operation_is_missing)
{
    typedef void (*func_t)(void);

    for (const char *category : {"dynamic", "mpi_threads"}) {
        auto self = entity::create({{"CATEGORY", category}});
        ASSERT_TRUE(self != nullptr);

        auto *iface = ucs_derived_of(self->iface(), uct_base_iface_t);
        auto *ops   = (const func_t*)iface->internal_ops;
        for (size_t i = 0; i < sizeof(*iface->internal_ops) / sizeof(*ops);
             ++i) {
            EXPECT_TRUE(ops[i] != NULL) << category << ": operation " << i;
        }
    }
}

TEST_F(test_sep_uct_default, is_static_without_write_combining)
{
    if (on_device({{"MLX5SIM_BF", "n"}, {"UCX_SEP_CATEGORY", "default"}})) {
        expect_errors hide;
        EXPECT_EQ("static", talk({}));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN,
                                 "using \"static\" (said once)"));
    }
}

TEST_F(test_sep_uct_default, is_static_without_write_combining_in_old_kernels)
{
    SKIP_WITHOUT_MMAP_HOOK();
    if (on_device({{"MLX5SIM_BF", "n"}, {"MLX5SIM_UAR_MODE", "legacy"},
                   {"UCX_SEP_CATEGORY", "default"}})) {
        expect_errors hide;
        EXPECT_EQ("static", talk({}));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN,
                                 "using \"static\" (said once)"));
    }
}

/* The context has its 8 pages, and then there are none */
TEST_F(test_sep_uct_default, is_static_if_there_is_no_page_for_a_domain)
{
    SKIP_WITHOUT_MMAP_HOOK();
    if (on_device({{"MLX5SIM_UARS", "8"}, {"MLX5SIM_UAR_MODE", "legacy"},
                   {"UCX_SEP_CATEGORY", "default"}})) {
        expect_errors hide;
        EXPECT_EQ("static", talk({}));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN, "no UAR page left"));
        EXPECT_EQ("none", talk({{"CATEGORY", "dynamic"}}));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, "no UAR page left"));
    }
}

/* The page of the completion queues is the first one */
TEST_F(test_sep_uct_default, is_less_if_a_page_is_refused)
{
    if (on_device({{"MLX5SIM_UAR_MODE", "dynamic"}, {"MLX5SIM_FAIL", "uar:2"},
                   {"UCX_SEP_CATEGORY", "default"}})) {
        expect_errors hide;
        auto self = entity::create();

        ASSERT_TRUE(self != nullptr);
        EXPECT_EQ(UCT_SEP_CATEGORY_SHARED_DYNAMIC,
                  self->sep()->channel.category);
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN,
                                 "using \"shared_dynamic\" (said once)"));
    }
}

/* MPICH with 8 interfaces on a device with few pages: each of them sends to
 * each, also when those have gone that had pages of their own */
TEST_F(test_sep_uct_default, is_less_when_all_pages_are_used_up)
{
    const unsigned num_workers = 8;
    std::vector<std::unique_ptr<entity>> workers;
    std::map<std::string, unsigned> count;
    uint64_t data = 0x5e9;

    if (!on_device({{"MLX5SIM_UAR_MODE", "dynamic"}, {"MLX5SIM_UARS", "6"},
                    {"UCX_SEP_CATEGORY", "default"}})) {
        return;
    }

    expect_errors hide;
    for (unsigned i = 0; i < num_workers; ++i) {
        workers.push_back((i == 0) ? entity::create() :
                                     entity::create(*workers[0]));
        ASSERT_TRUE(workers[i] != nullptr) << i;
        ++count[uct_sep_category_names[workers[i]->sep()->channel.category]];
    }
    EXPECT_EQ(5u, count["dynamic"]);
    EXPECT_EQ(3u, count["static"]);
    EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN,
                             "using \"static\" (said once)"));

    auto progress_all = [&]() {
        for (auto &worker : workers) {
            worker->progress();
        }
    };
    auto talk_all = [&]() {
        for (auto &from : workers) {
            for (auto &to : workers) {
                uct_ep_h ep         = from->connect(to->addr());
                ucs_status_t status = UCS_ERR_NO_RESOURCE;

                to->messages.clear();
                from->wait([&]() {
                    status = uct_ep_am_short(ep, 1, 0, &data, sizeof(data));
                    progress_all();
                    return status != UCS_ERR_NO_RESOURCE;
                });
                ASSERT_EQ(UCS_OK, status);
                to->wait([&]() {
                    progress_all();
                    return !to->messages.empty();
                });
                EXPECT_TRUE(from->flush());
            }
        }
    };

    ASSERT_NO_FATAL_FAILURE(talk_all());
    workers.erase(workers.begin() + 1, workers.begin() + 5);
    ASSERT_NO_FATAL_FAILURE(talk_all());
    EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_ERROR, ""));
    while (!workers.empty()) {
        workers.pop_back();
    }
}

/* Both have opened a worker in time. What is left is for who comes first. */
TEST_F(test_sep_uct_default, is_less_in_both_of_two_processes)
{
    const unsigned num_workers = 8;
    std::vector<std::unique_ptr<entity>> workers;
    std::map<std::string, unsigned> count;
    uint64_t data = 0x5e9;

    if (!on_device({{"MLX5SIM_UAR_MODE", "dynamic"}, {"MLX5SIM_UARS", "6"},
                    {"UCX_SEP_CATEGORY", "default"}})) {
        return;
    }

    expect_errors hide;
    workers.push_back(entity::create());
    ASSERT_TRUE(workers[0] != nullptr);
    peer other(num_workers);
    ASSERT_FALSE(other.addr().dev.empty()); /* It is there */
    while (workers.size() < num_workers) {
        workers.push_back(entity::create(*workers[0]));
        ASSERT_TRUE(workers.back() != nullptr) << workers.size();
    }
    for (auto &worker : workers) {
        ++count[uct_sep_category_names[worker->sep()->channel.category]];
    }
    EXPECT_EQ(1u, count["dynamic"]);
    EXPECT_EQ(num_workers - 1, count["static"]);
    EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN,
                             "using \"static\" (said once)"));

    for (unsigned i = 0; i < num_workers; ++i) {
        uct_ep_h ep         = workers[i]->connect(other.addr(i));
        ucs_status_t status = UCS_ERR_NO_RESOURCE;

        workers[i]->wait([&]() {
            status = uct_ep_am_short(ep, 1, 0, &data, sizeof(data));
            return status != UCS_ERR_NO_RESOURCE;
        });
        EXPECT_EQ(UCS_OK, status) << i;
        EXPECT_TRUE(workers[i]->flush());
        other.send(workers[i]->addr(), 1, 64);
        workers[i]->wait([&]() { return !workers[i]->messages.empty(); });
    }
    for (unsigned i = 0; i < num_workers; ++i) {
        EXPECT_TRUE(workers[i]->wait([&]() {
            return other.num_received(i) > 0;
        }));
    }
    EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_ERROR, ""));
    while (!workers.empty()) {
        workers.pop_back();
    }
}

/* libmlx5 does not lock the page of another worker, and we can't where it
 * posts: better none than one whose connections fail */
TEST_F(test_sep_uct_default, verbs_do_not_share_the_last_page)
{
    if (on_device({{"MLX5SIM_UAR_MODE", "dynamic"}, {"MLX5SIM_UARS", "2"},
                   {"UCX_SEP_API", "verbs"},
                   {"UCX_SEP_CATEGORY", "default"}})) {
        expect_errors hide;
        auto self = entity::create();

        ASSERT_TRUE(self != nullptr);
        EXPECT_TRUE(entity::create(*self) == nullptr);
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, "UCX_SEP_API=dv"));
        EXPECT_TRUE(entity::create(*self, {{"API", "dv"}}) != nullptr);
    }
}

/* Not even one page: no category would help, and the message does not say so */
TEST_F(test_sep_uct_default, says_that_other_processes_have_all_pages)
{
    if (on_device({{"MLX5SIM_UAR_MODE", "dynamic"}, {"MLX5SIM_UARS", "1"},
                   {"UCX_SEP_CATEGORY", "default"}})) {
        expect_errors hide;
        EXPECT_EQ("none", talk({}));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR,
                                 "run fewer processes on the device"));
    }
}

/* The file system of the software device is full: whatever is made next is
 * refused, and fewer workers or pages would not help */
TEST_F(test_sep_uct_default, a_full_file_system_is_no_lack_of_pages)
{
    if (!on_device({{"MLX5SIM_UAR_MODE", "dynamic"},
                    {"UCX_SEP_CATEGORY", "default"}})) {
        return;
    }

    for (const char *object : {"uar:2+", "cq:1+", "srq:1+", "qp:1+"}) {
        expect_errors hide;

        setenv("MLX5SIM_FAIL", (std::string(object) + ":ENOSPC").c_str(), 1);
        EXPECT_EQ("none", talk({})) << object;
        unsetenv("MLX5SIM_FAIL");
        EXPECT_LE(1u, hide.count(UCS_LOG_LEVEL_ERROR, "No space left"))
                << object;
        EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_ERROR, "UAR page")) << object;
        EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_WARN, "UAR page")) << object;
        EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_ERROR, "UCX_SEP_")) << object;
    }
}

/* libmlx5 counts pages itself where the kernel doesn't, and has that errno */
TEST_F(test_sep_uct_default, a_limit_of_the_library_is_a_lack_of_pages)
{
    SKIP_WITHOUT_MMAP_HOOK();
    if (on_device({{"MLX5SIM_FAIL", "uar:2+:ENOSPC"},
                   {"MLX5SIM_UAR_MODE", "legacy"},
                   {"UCX_SEP_CATEGORY", "default"}})) {
        expect_errors hide;
        EXPECT_EQ("static", talk({}));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN, "no UAR page left"));
    }
}

TEST_F(test_sep_uct_default, who_asks_for_a_category_gets_it_or_an_error)
{
    if (!on_device({{"MLX5SIM_BF", "n"}})) {
        return;
    }

    expect_errors hide;
    for (auto &row : categories()) {
        EXPECT_EQ(std::string((row.tds > 0) ? "none" : row.name),
                  talk({{"CATEGORY", row.name}}));
    }
    EXPECT_EQ(3u, hide.count(UCS_LOG_LEVEL_ERROR,
                             "set UCX_SEP_CATEGORY to one that needs none"));
    EXPECT_EQ("static", talk({{"CATEGORY", "auto"}}));
}

/* More than a few buffers are for who receives */
TEST_F(test_sep_uct_default, who_only_sends_has_few_receives)
{
    auto owner = entity::create();
    ASSERT_TRUE(owner != nullptr);
    auto quiet = entity::create(*owner, settings(), entity::editor(), false);
    ASSERT_TRUE(quiet != nullptr);

    uint32_t few = quiet->sep()->srq.filled;
    uct_iface_progress_enable(quiet->iface(), UCT_PROGRESS_SEND);
    EXPECT_EQ(few, quiet->sep()->srq.filled);
    uct_iface_progress_enable(quiet->iface(), UCT_PROGRESS_RECV);
    EXPECT_LT(few, quiet->sep()->srq.filled);
}

} // namespace
