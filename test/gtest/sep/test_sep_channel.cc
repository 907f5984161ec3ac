/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_sep_uct.h"

#include "common/seed.h"

#include <uct/ib/sep/category/sep_channel.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

using namespace sep_uct_test;

namespace {

/* Channels of several workers on one memory domain */
class test_sep_channel : public ::testing::Test {
protected:
    struct worker {
        uct_sep_category_t category;
        uct_sep_channel_t  channel;
        struct ibv_qp      *qp = nullptr;
        uct_sep_bf_t       *bf;

        uintptr_t page() const { return (uintptr_t)bf->reg / 4096; }

        const uct_sep_category_row_t &row() const
        {
            return uct_sep_category_rows[category];
        }
    };

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        m_entity = entity::create({{"CATEGORY", "dynamic"}});
        ASSERT_TRUE(m_entity != nullptr);
        m_md = ucs_derived_of(m_entity->md(), uct_sep_md_t);
        m_cq = ibv_create_cq(m_md->dev.context, 16, NULL, NULL, 0);
        ASSERT_TRUE(m_cq != NULL);
    }

    void TearDown() override
    {
        if (m_cq != nullptr) {
            EXPECT_EQ(0, ibv_destroy_cq(m_cq));
        }
    }

    void open_qp(struct ibv_pd *pd, uct_sep_uuar_use_t use,
                 struct ibv_qp **qp_p, uct_sep_bf_t **bf_p)
    {
        struct ibv_qp_init_attr_ex attr = {};
        struct mlx5dv_qp dv_qp          = {};
        struct mlx5dv_obj dv            = {};

        uct_sep_uuars_enter(&m_md->uuars, use);
        attr.qp_type          = IBV_QPT_RC;
        attr.send_cq          = m_cq;
        attr.recv_cq          = m_cq;
        attr.cap.max_send_wr  = 4;
        attr.cap.max_send_sge = 1;
        attr.comp_mask        = IBV_QP_INIT_ATTR_PD;
        attr.pd               = pd;
        *qp_p = ibv_create_qp_ex(m_md->dev.context, &attr);
        ASSERT_TRUE(*qp_p != NULL);
        dv_qp.comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET;
        dv.qp.in        = *qp_p;
        dv.qp.out       = &dv_qp;
        ASSERT_EQ(0, mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP));
        ASSERT_EQ(UCS_OK, uct_sep_uuars_get(&m_md->uuars, &dv_qp, use, bf_p));
        uct_sep_uuars_leave(&m_md->uuars, use);
    }

    void close_qp(struct ibv_qp *qp, uct_sep_bf_t *bf)
    {
        ASSERT_EQ(0, ibv_destroy_qp(qp));
        uct_sep_uuars_put(&m_md->uuars, bf);
    }

    void open(worker &w, uct_sep_category_t category)
    {
        w.category = category;
        ASSERT_EQ(UCS_OK, uct_sep_channel_init(&w.channel, m_md, category,
                                               "test"));
        EXPECT_EQ(category, w.channel.category);
        open_qp(w.channel.pd, w.channel.use, &w.qp, &w.bf);
    }

    void close(worker &w)
    {
        close_qp(w.qp, w.bf);
        w.qp = nullptr;
        uct_sep_channel_cleanup(&w.channel, m_md);
    }

    /* Each worker has what its category promises, with what the others have */
    void check(const std::vector<worker> &workers, const char *what)
    {
        std::map<uintptr_t, unsigned> pages;
        std::set<void*> regs;

        for (auto &w : workers) {
            if ((w.qp != nullptr) &&
                (w.channel.use == UCT_SEP_UUAR_EXCLUSIVE)) {
                EXPECT_TRUE(regs.insert(w.bf->reg).second) << what;
                EXPECT_FALSE(w.bf->is_shared) << what;
                ++pages[w.page()];
            }
        }
        for (auto &w : workers) {
            if (w.qp == nullptr) {
                continue;
            }
            if (w.row().tds >= 2) {
                EXPECT_EQ(1u, pages[w.page()]) << what;
            } else if (w.row().tds == 1) {
                EXPECT_GE(2u, pages[w.page()]) << what;
            }
        }
    }

    /* Whether both halves of a shared pair are on one page */
    void check_pairs(const std::vector<worker> &workers)
    {
        std::map<const uct_sep_td_pair_t*, uintptr_t> pages;

        for (auto &w : workers) {
            if ((w.qp != nullptr) && (w.row().tds == 1)) {
                auto it = pages.emplace(w.channel.pair[0], w.page()).first;
                EXPECT_EQ(it->second, w.page());
            }
        }
    }

    std::unique_ptr<entity> m_entity;
    uct_sep_md_t            *m_md = nullptr;
    struct ibv_cq           *m_cq = nullptr;
};

TEST_F(test_sep_channel, dynamic_workers_have_a_uar_page_each)
{
    std::vector<worker> workers(6);

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(open(w, UCT_SEP_CATEGORY_DYNAMIC));
    }

    /* Also after others have come and gone */
    for (unsigned round = 0; round < 4; ++round) {
        check(workers, "dynamic");
        for (unsigned i = round % 2; i < workers.size(); i += 2) {
            ASSERT_NO_FATAL_FAILURE(close(workers[i]));
        }
        for (unsigned i = round % 2; i < workers.size(); i += 2) {
            ASSERT_NO_FATAL_FAILURE(open(workers[i], UCT_SEP_CATEGORY_DYNAMIC));
        }
    }

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(close(w));
    }
}

TEST_F(test_sep_channel, shared_dynamic_workers_come_in_pairs_on_one_page)
{
    std::vector<worker> workers(8);
    std::set<uintptr_t> pages;

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(open(w, UCT_SEP_CATEGORY_SHARED_DYNAMIC));
        pages.insert(w.page());
    }
    EXPECT_EQ(4u, pages.size());
    check(workers, "shared_dynamic");
    check_pairs(workers);

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(close(w));
    }
}

TEST_F(test_sep_channel, a_worker_who_is_left_alone_gets_a_new_partner)
{
    std::vector<worker> workers(4);
    uintptr_t page;

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(open(w, UCT_SEP_CATEGORY_SHARED_DYNAMIC));
    }
    page = workers[1].page();
    ASSERT_NO_FATAL_FAILURE(close(workers[0]));
    EXPECT_FALSE(ucs_list_is_empty(&m_md->half_pairs));
    ASSERT_NO_FATAL_FAILURE(open(workers[0], UCT_SEP_CATEGORY_SHARED_DYNAMIC));
    EXPECT_EQ(page, workers[0].page());
    EXPECT_TRUE(ucs_list_is_empty(&m_md->half_pairs));
    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(close(w));
    }
    EXPECT_EQ(0u, m_md->common_refcount);
}

TEST_F(test_sep_channel, promises_hold_whoever_comes_and_goes_at_random)
{
    std::vector<uct_sep_category_t> categories;
    std::vector<worker> workers(12);
    std::mt19937 random(seed::get());

    for (int category = 0; category < UCT_SEP_CATEGORY_AUTO; ++category) {
        const uct_sep_category_row_t &row = uct_sep_category_rows[category];

        if (!row.own_context && !row.is_hub) {
            categories.push_back((uct_sep_category_t)category);
        }
    }

    for (unsigned step = 0; step < 200; ++step) {
        worker &w = workers[random() % workers.size()];

        if (w.qp != nullptr) {
            ASSERT_NO_FATAL_FAILURE(close(w));
        } else {
            ASSERT_NO_FATAL_FAILURE(open(w, categories[random() %
                                                     categories.size()]));
        }
        check(workers, "mixed");
        check_pairs(workers);
        if (HasFailure()) {
            FAIL() << "step " << step;
        }
    }

    for (auto &w : workers) {
        if (w.qp != nullptr) {
            ASSERT_NO_FATAL_FAILURE(close(w));
        }
    }
    EXPECT_TRUE(ucs_list_is_empty(&m_md->half_pairs));
    EXPECT_EQ(0u, m_md->common_refcount);
}

/* The driver's policy, for queue pairs without a thread domain: low latency
 * uUARs are for one each; the others are shared, and known to be */
TEST_F(test_sep_channel, static_queue_pairs_know_whether_they_share_a_uuar)
{
    static const unsigned num_qps = 40;
    std::vector<struct ibv_qp*> qps(num_qps);
    std::vector<uct_sep_bf_t*> bfs(num_qps);
    std::map<uct_sep_bf_t*, unsigned> count;
    std::set<uintptr_t> pages;
    uct_sep_channel_t channel;

    ASSERT_EQ(UCS_OK, uct_sep_channel_init(&channel, m_md,
                                           UCT_SEP_CATEGORY_STATIC, "test"));
    for (unsigned i = 0; i < num_qps; ++i) {
        ASSERT_NO_FATAL_FAILURE(open_qp(channel.pd, channel.use, &qps[i],
                                        &bfs[i]));
        ++count[bfs[i]];
        pages.insert((uintptr_t)bfs[i]->reg / 4096);
    }

    unsigned num_dedicated = 0;
    for (auto &c : count) {
        EXPECT_EQ(c.second,
                  ucs_container_of(c.first, uct_sep_uuar_t, bf)->num_qps);
        if (c.first->is_shared) {
            EXPECT_LT(1u, c.second);
        } else {
            EXPECT_EQ(1u, c.second);
            ++num_dedicated;
        }
    }
    EXPECT_EQ(m_md->uuars.num_low_lat, num_dedicated);
    EXPECT_GE(m_md->uuars.num_total, count.size());
    EXPECT_GE(m_md->uuars.num_total / 2, pages.size());

    /* A dedicated one that is given back goes to the next queue pair */
    for (unsigned i = 0; i < num_qps; ++i) {
        if (!bfs[i]->is_shared) {
            uct_sep_bf_t *bf = bfs[i];

            ASSERT_NO_FATAL_FAILURE(close_qp(qps[i], bfs[i]));
            ASSERT_NO_FATAL_FAILURE(open_qp(channel.pd, channel.use, &qps[i],
                                            &bfs[i]));
            EXPECT_EQ(bf, bfs[i]);
            EXPECT_FALSE(bf->is_shared);
        }
    }

    for (unsigned i = 0; i < num_qps; ++i) {
        ASSERT_NO_FATAL_FAILURE(close_qp(qps[i], bfs[i]));
    }
    uct_sep_channel_cleanup(&channel, m_md);
}

TEST_F(test_sep_channel, auto_gives_less_to_each_the_more_workers_there_are)
{
    std::vector<uct_sep_channel_t> channels(
            UCT_SEP_CATEGORY_AUTO_SHARED_DYNAMIC + 2);
    unsigned at_start = m_md->num_channels;
    int last          = UCT_SEP_CATEGORY_MPI_EVERYWHERE;
    std::set<int> seen;

    for (auto &channel : channels) {
        ASSERT_EQ(UCS_OK, uct_sep_channel_init(&channel, m_md,
                                               UCT_SEP_CATEGORY_AUTO, "test"));
        EXPECT_LE(last, (int)channel.category);
        last = channel.category;
        seen.insert(last);
    }
    /* The fixture's own worker is the first one */
    EXPECT_EQ(UCT_SEP_CATEGORY_STATIC, last);
    EXPECT_EQ(4u, seen.size());
    for (auto &channel : channels) {
        uct_sep_channel_cleanup(&channel, m_md);
    }
    EXPECT_EQ(at_start, m_md->num_channels);
}

TEST_F(test_sep_channel, a_category_that_does_not_exist_is_refused)
{
    uct_sep_channel_t channel;
    expect_errors hide;

    for (int category : {UCT_SEP_CATEGORY_LAST}) {
        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  uct_sep_channel_init(&channel, m_md,
                                       (uct_sep_category_t)category, "test"));
    }
}

} // namespace
