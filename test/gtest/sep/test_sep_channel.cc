/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_sep_uct.h"

#include <uct/ib/sep/sep_channel.h>

#include <memory>
#include <set>

using namespace sep_uct_test;

namespace {

/* Channels of several workers on one memory domain */
class test_sep_channel : public ::testing::Test {
protected:
    struct worker {
        uct_sep_channel_t channel;
        struct ibv_cq     *cq;
        struct ibv_qp     *qp;
        uintptr_t         page;
    };

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        m_entity = entity::create();
        ASSERT_TRUE(m_entity != nullptr);
        m_md = ucs_derived_of(m_entity->md(), uct_sep_md_t);
    }

    void open(worker &w)
    {
        struct ibv_qp_init_attr_ex attr = {};
        struct mlx5dv_qp dv_qp          = {};
        struct mlx5dv_obj dv            = {};

        ASSERT_EQ(UCS_OK, uct_sep_channel_init(&w.channel, m_md,
                                               UCT_SEP_CATEGORY_DYNAMIC,
                                               "test"));
        w.cq = ibv_create_cq(m_md->dev.context, 16, NULL, NULL, 0);
        ASSERT_TRUE(w.cq != NULL);
        attr.qp_type          = IBV_QPT_RC;
        attr.send_cq          = w.cq;
        attr.recv_cq          = w.cq;
        attr.cap.max_send_wr  = 4;
        attr.cap.max_send_sge = 1;
        attr.comp_mask        = IBV_QP_INIT_ATTR_PD;
        attr.pd               = w.channel.pd;
        w.qp = ibv_create_qp_ex(m_md->dev.context, &attr);
        ASSERT_TRUE(w.qp != NULL);
        dv.qp.in  = w.qp;
        dv.qp.out = &dv_qp;
        ASSERT_EQ(0, mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP));
        w.page = (uintptr_t)dv_qp.bf.reg / 4096;
    }

    void close(worker &w)
    {
        ASSERT_EQ(0, ibv_destroy_qp(w.qp));
        ASSERT_EQ(0, ibv_destroy_cq(w.cq));
        uct_sep_channel_cleanup(&w.channel, m_md);
    }

    std::unique_ptr<entity> m_entity;
    uct_sep_md_t            *m_md = nullptr;
};

TEST_F(test_sep_channel, each_worker_has_a_uar_page_of_its_own)
{
    static const unsigned num_workers = 6;
    worker workers[num_workers];

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(open(w));
    }

    /* Also after others have come and gone */
    for (unsigned round = 0; round < 4; ++round) {
        std::set<uintptr_t> pages;

        for (auto &w : workers) {
            EXPECT_TRUE(pages.insert(w.page).second) << "round " << round;
        }
        for (unsigned i = round % 2; i < num_workers; i += 2) {
            ASSERT_NO_FATAL_FAILURE(close(workers[i]));
        }
        for (unsigned i = round % 2; i < num_workers; i += 2) {
            ASSERT_NO_FATAL_FAILURE(open(workers[i]));
        }
    }

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(close(w));
    }
}

TEST_F(test_sep_channel, a_category_that_does_not_exist_yet_is_refused)
{
    uct_sep_channel_t channel;
    expect_errors hide;

    for (int category : {UCT_SEP_CATEGORY_MPI_EVERYWHERE,
                         UCT_SEP_CATEGORY_2XDYNAMIC,
                         UCT_SEP_CATEGORY_SHARED_DYNAMIC,
                         UCT_SEP_CATEGORY_STATIC, UCT_SEP_CATEGORY_MPI_THREADS,
                         UCT_SEP_CATEGORY_LAST}) {
        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  uct_sep_channel_init(&channel, m_md,
                                       (uct_sep_category_t)category, "test"));
    }
}

} // namespace
