/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <tools/plan/plan_config.h>
#include <uct/ib/sep/base/sep_account.h>

#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <malloc.h>

#include <cstdlib>
#include <map>

using namespace sep_uct_test;

namespace {

/* What is counted against what is there */
class test_sep_account : public ::testing::Test {
protected:
    typedef std::map<std::string, unsigned long> account;

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        /* Keeps the device's account in the file system */
        m_first = entity::create();
        ASSERT_TRUE(m_first != nullptr);
    }

    struct ibv_context *context()
    {
        return ucs_derived_of(m_first->md(), uct_sep_md_t)->dev.context;
    }

    account get()
    {
        account values;

        for (int item = 0; item < UCT_SEP_ACCOUNT_LAST; ++item) {
            values[uct_sep_account_names[item]] = uct_sep_account_get(
                    context(), (uct_sep_account_item_t)item);
        }
        return values;
    }

    static bool connected(entity &e, uct_ep_h ep)
    {
        return e.wait([&]() {
            return uct_ep_am_short(ep, 1, 0, NULL, 0) == UCS_OK;
        });
    }

    std::unique_ptr<entity> m_first;
};

TEST_F(test_sep_account, everything_that_is_taken_is_given_back)
{
    account before = get();

    for (int round = 0; round < 2; ++round) {
        auto e1 = entity::create(), e2 = entity::create();

        ASSERT_TRUE((e1 != nullptr) && (e2 != nullptr));
        ASSERT_TRUE(connected(*e1, e1->connect(e2->addr())));
        ASSERT_TRUE(connected(*e1, e1->connect(e1->addr())));
        ASSERT_TRUE(connected(*e2, e2->connect(e1->addr())));

        account now = get();

        /* A memory domain each; two connection managers, one QP at either end
         * of the connection, and one connected to itself */
        EXPECT_EQ(before["contexts"] + 2, now["contexts"]);
        EXPECT_EQ(before["qps"] + 2 + 3, now["qps"]);
        EXPECT_EQ(before["cqs"] + 4, now["cqs"]);
        EXPECT_EQ(before["srqs"] + 2, now["srqs"]);
        EXPECT_GT(now["mrs"], before["mrs"] + 2);
        EXPECT_GT(now["mr_bytes"], before["mr_bytes"]);
    }

    EXPECT_EQ(before, get());
}

TEST_F(test_sep_account, queues_are_counted_as_long_as_they_are)
{
    account before = get();
    auto e         = entity::create({{"TX_QUEUE_LEN", "128"},
                                     {"TX_CQ_LEN", "900"},
                                     {"RX_QUEUE_LEN", "300"},
                                     {"CM_RX_QUEUE_LEN", "64"}});
    account opened = get();

    ASSERT_TRUE(e != nullptr);
    /* 900 + 300 + 128, and the manager's 64 + 128 and one that is not used */
    EXPECT_EQ((2048 + 256) * 64, opened["cq_bytes"] - before["cq_bytes"]);
    EXPECT_EQ(512 * 32, opened["srq_bytes"] - before["srq_bytes"]);

    ASSERT_TRUE(connected(*e, e->connect(e->addr())));
    EXPECT_EQ(128 * 64, get()["qp_bytes"] - opened["qp_bytes"]);
}

/* Libmlx5 makes a queue of a power of two entries, and keeps one unused: with
 * one entry more than fits, the queue that is polled would be twice as long.
 * What the queue is worth is asked of the C library. */
TEST_F(test_sep_account, default_completion_queues_have_no_unused_half)
{
    for (auto category : {"dynamic", "mpi_everywhere"}) {
        SCOPED_TRACE(category);
        auto e1 = entity::create({{"CATEGORY", category}});
        ASSERT_TRUE(e1 != nullptr);
        account before = get();
        auto e2        = entity::create(*e1, {{"CATEGORY", category}});
        account after  = get();
        sep_plan_config_t config;
        sep_plan_t one, two;
        const char *reason;
        size_t bytes, usable;

        ASSERT_TRUE(e2 != nullptr);
        ASSERT_EQ(UCS_OK, sep_plan_config_read(&config));
        config.category = sep_plan_category_find(category);
        ASSERT_EQ(0, sep_plan_make(&config, &one, &reason)) << reason;
        config.workers = 2;
        ASSERT_EQ(0, sep_plan_make(&config, &two, &reason)) << reason;
        EXPECT_EQ(two.total.cq_bytes - one.total.cq_bytes,
                  after["cq_bytes"] - before["cq_bytes"]);

        /* The first one has all in one queue */
        EXPECT_EQ(8192u, e1->sep()->cq.length);
        bytes = 0;
        for (uct_sep_cq_t *cq : {&e1->sep()->cq, &e2->sep()->cq,
                                 &e2->sep()->own_cq}) {
            if (cq->cq != NULL) {
                usable = malloc_usable_size(cq->start);
                EXPECT_LT(usable, cq->length * sizeof(struct mlx5_cqe64) +
                                  2 * ucs_get_page_size());
                bytes += cq->length * sizeof(struct mlx5_cqe64);
            }
        }
        /* Each manager has 1024 entries */
        EXPECT_EQ(two.total.cq_bytes, bytes + 2 * 1024 * 64);
    }
}

/* A key for each ordering: which processors have relaxed ordering by default
 * depends on their vendor */
TEST_F(test_sep_account, memory_is_counted_while_it_is_registered)
{
    const std::pair<const char*, unsigned> orderings[] = {{"off", 1},
                                                          {"on", 2}};

    for (auto &ordering : orderings) {
        SCOPED_TRACE(ordering.first);
        auto e = entity::create({}, {{"PCI_RELAXED_ORDERING", ordering.first}});
        ASSERT_TRUE(e != nullptr);
        account before = get();
        {
            memory mem(e->md(), 1 << 20);

            EXPECT_EQ(before["mrs"] + ordering.second, get()["mrs"]);
            EXPECT_LE(before["mr_bytes"] + mem.size(), get()["mr_bytes"]);
            /* Once, whether it has one key or two */
            EXPECT_GT(before["mr_bytes"] + (2 * mem.size()),
                      get()["mr_bytes"]);
        }
    }
}

TEST_F(test_sep_account, the_virtual_file_system_shows_it)
{
    std::string path = std::string("/uct/component/sep/memory_domain/") +
                       ibv_get_device_name(context()->device) + "/resources/";

    for (auto &item : get()) {
        ucs_string_buffer_t strb;

        ucs_string_buffer_init(&strb);
        ASSERT_EQ(UCS_OK, ucs_vfs_path_read_file((path + item.first).c_str(),
                                                 &strb)) << item.first;
        EXPECT_EQ(item.second,
                  strtoul(ucs_string_buffer_cstr(&strb), NULL, 0)) <<
                  item.first;
        ucs_string_buffer_cleanup(&strb);
    }
}

} // namespace
