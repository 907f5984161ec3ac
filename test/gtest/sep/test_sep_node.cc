/* SPDX-License-Identifier: BSD-3-Clause */

#include <tools/plan/node_read.h>
#include <tools/plan/plan_config.h>

#include <gtest/gtest.h>

#include <string>

/* Nodes: what is read of a description, what all on it take, what ends first,
 * and settings that fit. */

class test_sep_node : public ::testing::Test {
protected:
    void SetUp() override
    {
        sep_node_init(&m_node);
        ASSERT_EQ(UCS_OK, sep_plan_config_read(&m_node.config));
        m_node.config.regime = SEP_PLAN_KERNEL_DYNAMIC;
    }

    void TearDown() override
    {
        sep_node_cleanup(&m_node);
    }

    /* @return Message, "": it was read */
    std::string read(const std::string &text)
    {
        char message[SEP_NODE_MESSAGE_MAX] = "";
        FILE *in = fmemopen((void*)text.data(), text.size(), "r");
        int ret  = sep_node_read(&m_node, in, "node", message);

        fclose(in);
        EXPECT_EQ(ret != 0, message[0] != '\0') << message;
        return message;
    }

    sep_node_counts_t process(unsigned group)
    {
        sep_node_counts_t counts = {};

        sep_node_process(&m_node, &m_node.groups[group], &counts);
        return counts;
    }

    sep_node_shortage_t shortage()
    {
        sep_node_shortage_t result = {};

        sep_node_find_shortage(&m_node, &result);
        return result;
    }

    sep_node_setting_t setting(unsigned long most_qps)
    {
        sep_node_setting_t result = {};

        sep_node_find_setting(&m_node, most_qps, &result);
        return result;
    }

    sep_node_t m_node;
};


TEST_F(test_sep_node, a_description_is_read)
{
    ASSERT_EQ("", read("# comment\n[adapter]\nuars = 512 # pages\n"
                       "kernel_uars=0\nqps = 4096\ncqs = 100\n"
                       "regime = legacy\n\n[sep_mlx5]\nprocesses = 3\n"
                       "workers = 4\npeers = 5\ncategory = static\n"
                       "label = my job\n [nixl] \n[other]\nuars = 7\nqps = 0\n"
                       "cqs = 9"));
    EXPECT_EQ(512u, m_node.has[SEP_NODE_UARS]);
    EXPECT_EQ(4096u, m_node.has[SEP_NODE_QPS]);
    EXPECT_EQ(100u, m_node.has[SEP_NODE_CQS]);
    EXPECT_EQ(0u, m_node.kernel_uars);
    EXPECT_EQ(SEP_PLAN_LEGACY, m_node.config.regime);
    ASSERT_EQ(3u, m_node.num_groups);
    EXPECT_STREQ("my job", m_node.groups[0].label);
    EXPECT_EQ(9u, m_node.groups[0].line);
    EXPECT_EQ(3u, m_node.groups[0].processes);
    EXPECT_EQ(4u, m_node.groups[0].workers);
    EXPECT_EQ(5u, m_node.groups[0].peers);
    EXPECT_EQ(SEP_PLAN_STATIC, m_node.groups[0].category);
    EXPECT_EQ(8u, m_node.groups[1].workers);
    EXPECT_EQ(7u, process(2).takes[SEP_NODE_UARS]);
    EXPECT_EQ(0u, process(2).takes[SEP_NODE_QPS]);
    EXPECT_EQ(9u, process(2).takes[SEP_NODE_CQS]);
}

TEST_F(test_sep_node, wrong_descriptions_are_named)
{
    const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "node:0: there are no processes"},
        {"[adapter]\n", "node:1: there are no processes"},
        {"[ucx]\n", "node:1: there is no [ucx], only adapter, sep_mlx5, "
         "rc_mlx5, nixl, nvshmem, mooncake, perftest, other"},
        {"[nixl\n", "node:1: \"[nixl\" is not [name]"},
        {"peers = 1\n", "node:1: \"peers = 1\" is not behind a [name]"},
        {"[nixl]\npeers\n", "node:2: \"peers\" is not \"name = value\" or "
         "[name]"},
        {"[nixl]\n\nranks = 2\n", "node:3: there is no \"ranks\" of processes, "
         "only processes, workers, peers, category, label, uars, qps, cqs"},
        {"[adapter]\npages = 2\n", "node:2: there is no \"pages\" of an "
         "adapter, only uars, kernel_uars, qps, cqs, regime"},
        {"[adapter]\nregime = new\n", "node:2: regime: there is no \"new\", "
         "only legacy and dynamic"},
        {"[nixl]\nprocesses = 0\n", "node:2: processes: \"0\" is not a number "
         "between 1 and 16777216"},
        {"[nixl]\nworkers = -1\n", "node:2: workers: \"-1\" is not a number "
         "between 1 and 16777216"},
        {"[nixl]\nqps = 1e3\n", "node:2: qps: \"1e3\" is not a number between "
         "0 and 16777216"},
        {"[nixl]\ncategory = static\n", "node:2: category is for [sep_mlx5], "
         "and not for [nixl]"},
    };

    for (const auto &one : cases) {
        EXPECT_EQ(one.message, read(one.text));
        sep_node_cleanup(&m_node);
    }
    EXPECT_EQ(0u, read("[sep_mlx5]\ncategory = best\n").find(
            "node:2: there is no category \"best\", only "));
    EXPECT_EQ("node:2: a byte 0: this is no text",
              read(std::string("[nixl]\n\0\n", 9)));
}

TEST_F(test_sep_node, processes_of_sep_mlx5_are_as_planned)
{
    const char *reason;
    sep_plan_t plan;

    ASSERT_EQ("", read("[sep_mlx5]\nworkers = 16\npeers = 63\n"
                       "category = 2xdynamic\n"));
    m_node.config.category = SEP_PLAN_2XDYNAMIC;
    m_node.config.workers  = 16;
    m_node.config.peers    = 63;
    ASSERT_EQ(0, sep_plan_make(&m_node.config, &plan, &reason));
    EXPECT_EQ(sep_plan_uars(&plan.total), process(0).takes[SEP_NODE_UARS]);
    EXPECT_EQ(plan.total.qps, process(0).takes[SEP_NODE_QPS]);
    EXPECT_EQ(plan.total.cqs, process(0).takes[SEP_NODE_CQS]);
    EXPECT_EQ(16u * 63, process(0).rc_qps);
}

/* As the software device counts them: ucx_perftest, and ib_write_bw -q 4 */
TEST_F(test_sep_node, others_are_as_counted)
{
    ASSERT_EQ("", read("[rc_mlx5]\n[perftest]\nworkers = 4\n"));
    EXPECT_EQ(2u, process(0).takes[SEP_NODE_UARS]);
    EXPECT_EQ(2u, process(0).takes[SEP_NODE_QPS]);
    EXPECT_EQ(4u, process(0).takes[SEP_NODE_CQS]);
    EXPECT_EQ(3u, process(1).takes[SEP_NODE_UARS]);
    EXPECT_EQ(4u, process(1).takes[SEP_NODE_QPS]);
    EXPECT_EQ(1u, process(1).takes[SEP_NODE_CQS]);
}

TEST_F(test_sep_node, a_context_has_pages_for_all_its_queue_pairs)
{
    /* One for CQs, and at most 8 for any number of queue pairs */
    ASSERT_EQ("", read("[mooncake]\npeers = 256\n"));
    EXPECT_EQ(9u, process(0).takes[SEP_NODE_UARS]);
    EXPECT_EQ(512u, process(0).takes[SEP_NODE_QPS]);
    m_node.config.regime = SEP_PLAN_LEGACY;
    EXPECT_EQ(8u, process(0).takes[SEP_NODE_UARS]);
}

TEST_F(test_sep_node, the_first_process_without_is_found)
{
    ASSERT_EQ("", read("[adapter]\nuars = 100\nkernel_uars = 20\n"
                       "[other]\nprocesses = 3\nuars = 10\n"
                       "[other]\nprocesses = 9\nuars = 7\n"));
    /* 80 - 30 is for seven */
    EXPECT_EQ(SEP_NODE_UARS, shortage().limit);
    EXPECT_EQ(1u, shortage().group);
    EXPECT_EQ(8u, shortage().process);

    m_node.groups[1].processes = 7;
    EXPECT_EQ(SEP_NODE_LIMIT_LAST, shortage().limit);
    m_node.kernel_uars = 100;
    EXPECT_EQ(0u, shortage().group);
    EXPECT_EQ(1u, shortage().process);
}

TEST_F(test_sep_node, what_ends_first_may_be_anything)
{
    ASSERT_EQ("", read("[adapter]\nqps = 10\ncqs = 8\n"
                       "[other]\nprocesses = 5\nuars = 1\nqps = 3\ncqs = 2\n"));
    EXPECT_EQ(SEP_NODE_QPS, shortage().limit);
    EXPECT_EQ(4u, shortage().process);
    m_node.has[SEP_NODE_CQS] = 5;
    EXPECT_EQ(SEP_NODE_CQS, shortage().limit);
    EXPECT_EQ(3u, shortage().process);
}

TEST_F(test_sep_node, what_fits_needs_no_setting)
{
    ASSERT_EQ("", read("[sep_mlx5]\nprocesses = 4\npeers = 3\n"));
    EXPECT_TRUE(setting(474).is_enough);
    EXPECT_FALSE(setting(474).is_changed);
    EXPECT_FALSE(setting(474).is_slow);
}

TEST_F(test_sep_node, a_category_with_fewer_pages_is_found)
{
    ASSERT_EQ("", read("[adapter]\nuars = 221\n[sep_mlx5]\nprocesses = 10\n"
                       "workers = 16\ncategory = 2xdynamic\n"));
    /* 33 pages each; then 17, which is 170 of 200 */
    EXPECT_EQ(SEP_NODE_UARS, shortage().limit);
    EXPECT_TRUE(setting(474).is_enough);
    EXPECT_EQ(SEP_PLAN_DYNAMIC, setting(474).category);
    EXPECT_EQ(0u, setting(474).max_qps);
    m_node.has[SEP_NODE_UARS] = 121 + 1;
    EXPECT_EQ(SEP_PLAN_SHARED_DYNAMIC, setting(474).category);
    m_node.has[SEP_NODE_UARS] = 22;
    EXPECT_FALSE(setting(474).is_enough);
    EXPECT_FALSE(setting(474).is_changed);
}

TEST_F(test_sep_node, a_budget_divides_what_others_leave)
{
    ASSERT_EQ("", read("[sep_mlx5]\nprocesses = 4\npeers = 1000\n"
                       "[other]\nqps = 70\n"));
    /* 474, less 70 and four connection managers */
    EXPECT_EQ(100u, setting(474).max_qps);
    EXPECT_EQ(400u, setting(474).max_qps_node);
    EXPECT_EQ(SEP_PLAN_LAST, setting(474).category);
    EXPECT_FALSE(setting(474).is_slow);

    /* Each worker needs two */
    m_node.groups[0].workers = 8;
    m_node.groups[1].given[SEP_NODE_QPS] = 470;
    EXPECT_EQ(16u, setting(474).max_qps);
    EXPECT_EQ(64u, setting(474).max_qps_node);
    EXPECT_TRUE(setting(474).is_slow);
    EXPECT_TRUE(setting(474).is_enough);

    /* Or four, with contexts of their own */
    m_node.groups[0].category = SEP_PLAN_MPI_EVERYWHERE;
    EXPECT_EQ(32u, setting(474).max_qps);
}

TEST_F(test_sep_node, a_budget_is_for_the_device_as_well)
{
    ASSERT_EQ("", read("[adapter]\nqps = 1000\n"
                       "[sep_mlx5]\nprocesses = 4\npeers = 1000\n"));
    EXPECT_EQ(SEP_NODE_QPS, shortage().limit);
    EXPECT_EQ(249u, setting(1ul << 20).max_qps);
    EXPECT_TRUE(setting(1ul << 20).is_enough);
}

TEST_F(test_sep_node, others_alone_can_be_too_many)
{
    ASSERT_EQ("", read("[nvshmem]\nprocesses = 8\npeers = 200\n"));
    EXPECT_EQ(SEP_NODE_UARS, shortage().limit);
    EXPECT_FALSE(setting(474).is_enough);
    EXPECT_EQ(0u, setting(474).max_qps);
}
