/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/sep_wqe_fixture.h>

#include <uct/ib/sep/compat/sep_compat_iface.h>
#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_stack.h>
#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/recv/sep_srq.h>
#include <uct/ib/sep/throttle/sep_throttle.h>

#include <ucs/datastruct/mpool.inl>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

using namespace sep_wqe_test;

namespace {

/* Receive queue in plain memory, with as many buffers as there are */
class test_sep_srq : public ::testing::Test {
protected:
    enum {
        LENGTH      = 64,
        NUM_BUFFERS = 70,
        BUF_SIZE    = 256
    };

    test_sep_srq() : m_f(uct_sep_ops_bf)
    {
        uct_sep_srq_t &srq = m_f.iface().srq;

        EXPECT_EQ(UCS_OK, uct_sep_compat_mpool_init(&m_mp, BUF_SIZE + 64, 0, 64,
                                                    NUM_BUFFERS, NUM_BUFFERS,
                                                    "test_sep_srq"));
        srq.buf        = m_wqes;
        srq.shift      = 5;
        srq.length     = LENGTH;
        srq.descs      = m_descs;
        srq.empty      = m_empty;
        srq.dbrec      = &m_dbrec;
        srq.hdr_offset = 64;
        srq.buf_size   = BUF_SIZE;
        srq.mp         = &m_mp;
        for (unsigned i = 0; i < LENGTH; ++i) {
            wqe(i)->next_wqe_index = htobe16((i + 1) % LENGTH);
        }
    }

    ~test_sep_srq()
    {
        give_back_kept();
        for (auto desc : m_descs) {
            if (desc != NULL) {
                ucs_mpool_put(desc);
            }
        }
        ucs_mpool_cleanup(&m_mp, 1);
    }

    uct_sep_srq_t &srq() { return m_f.iface().srq; }

    struct mlx5_wqe_srq_next_seg *wqe(unsigned index)
    {
        return (struct mlx5_wqe_srq_next_seg*)m_wqes[index];
    }

    /* As progress looks at it: uct_sep_srq_is_due() */
    bool is_due()
    {
        return (uint16_t)(srq().counter - srq().published) >= srq().batch;
    }

    unsigned published() { return be32toh(m_dbrec); }

    /* The device takes the next one, the application keeps its buffer */
    uint16_t take()
    {
        uint16_t index = m_head;

        m_head = be16toh(wqe(index)->next_wqe_index);
        m_kept.push_back(m_descs[index]);
        srq().ops->replace(&srq(), index);
        return index;
    }

    void give_back_kept()
    {
        for (auto desc : m_kept) {
            ucs_mpool_put(desc);
        }
        m_kept.clear();
    }

    /* What a call of progress does after receives */
    void progress_after_receive()
    {
        if (is_due()) {
            uct_sep_srq_refill(&srq());
        }
    }

    fixture                          m_f;
    ucs_mpool_t                      m_mp;
    alignas(16) uint8_t              m_wqes[LENGTH][32] = {};
    uct_sep_rx_desc_t                *m_descs[LENGTH]   = {};
    uint16_t                         m_empty[LENGTH]    = {};
    __be32                           m_dbrec            = 0;
    uint16_t                         m_head             = 0;
    std::vector<uct_sep_rx_desc_t*>  m_kept;
};

TEST_F(test_sep_srq, one_more_is_filled_than_can_be_taken)
{
    uct_sep_srq_fill(&srq(), 20);
    EXPECT_EQ(20u, uct_sep_srq_num_filled(&srq()));
    EXPECT_EQ(20u, published());
    for (unsigned i = 0; i < LENGTH; ++i) {
        EXPECT_EQ(i <= 20, m_descs[i] != NULL) << i;
    }
    uct_sep_srq_fill(&srq(), 40);
    EXPECT_EQ(40u, uct_sep_srq_num_filled(&srq()));
    EXPECT_EQ(40u, published());
    EXPECT_EQ(0, uct_sep_srq_num_used(&srq()));
    uct_sep_srq_fill(&srq(), 1000);
    EXPECT_EQ(LENGTH - 1u, uct_sep_srq_num_filled(&srq()));
}

TEST_F(test_sep_srq, each_has_a_buffer_of_its_own)
{
    std::set<uint64_t> addresses;

    uct_sep_srq_fill(&srq(), LENGTH - 1);
    for (unsigned i = 0; i < 3; ++i) {
        take();
    }
    for (unsigned i = 0; i < LENGTH; ++i) {
        auto *data = (struct mlx5_wqe_data_seg*)(wqe(i) + 1);

        EXPECT_EQ((uintptr_t)m_descs[i] + srq().hdr_offset,
                  be64toh(data->addr));
        EXPECT_EQ((uint32_t)BUF_SIZE, be32toh(data->byte_count));
        EXPECT_TRUE(addresses.insert(be64toh(data->addr)).second);
    }
}

/* The device is told about many at a time, unless it needs each */
TEST_F(test_sep_srq, the_device_is_told_of_a_batch)
{
    uct_sep_srq_fill(&srq(), LENGTH - 1);
    EXPECT_EQ(uct_sep_srq_batch(LENGTH - 1), srq().batch);
    EXPECT_FALSE(is_due());
    for (unsigned i = 0; i < 5 * srq().batch; ++i) {
        unsigned before = published();

        take();
        progress_after_receive();
        EXPECT_EQ((((i + 1) % srq().batch) == 0), published() != before) << i;
    }
    EXPECT_EQ(5 * srq().batch, uct_sep_srq_num_used(&srq()));
}

/* The application keeps more than there are: the queue goes on with what it
 * has, each progress looks for more, and finds them wherever they come from */
TEST_F(test_sep_srq, each_progress_looks_for_buffers_that_are_missing)
{
    uct_sep_srq_fill(&srq(), LENGTH - 1);
    for (unsigned i = 0; i < NUM_BUFFERS - LENGTH; ++i) {
        take();
    }
    EXPECT_EQ(0u, srq().num_empty);

    std::set<uint16_t> lost;
    for (unsigned i = 0; i < 10; ++i) {
        lost.insert(take());
    }
    EXPECT_EQ(10u, srq().num_empty);
    for (uint16_t index : lost) {
        EXPECT_EQ(nullptr, m_descs[index]);
    }

    /* None has come back: what there is was published, and it is still due */
    for (unsigned i = 0; i < 2; ++i) {
        ASSERT_TRUE(is_due());
        progress_after_receive();
        EXPECT_EQ(srq().counter, published());
        EXPECT_EQ(10u, srq().num_empty);
    }

    /* Some, and then all */
    unsigned before = published();
    for (unsigned i = 0; i < 4; ++i) {
        ucs_mpool_put(m_kept.back());
        m_kept.pop_back();
    }
    ASSERT_TRUE(is_due());
    progress_after_receive();
    EXPECT_EQ(before + 4, published());
    EXPECT_EQ(6u, srq().num_empty);
    give_back_kept();
    ASSERT_TRUE(is_due());
    progress_after_receive();
    EXPECT_EQ(before + 10, published());
    EXPECT_EQ(0u, srq().num_empty);
    EXPECT_FALSE(is_due());

    /* All are in the list, each once */
    std::set<uint16_t> all;
    for (uint16_t i = 0, index = m_head; i < LENGTH; ++i) {
        EXPECT_NE(nullptr, m_descs[index]) << index;
        all.insert(index);
        index = be16toh(wqe(index)->next_wqe_index);
    }
    EXPECT_EQ((size_t)LENGTH, all.size());
}

/* A grant lets the peer send into the buffers of what it has sent before: the
 * device knows of these when it sees the grant */
TEST_F(test_sep_srq, buffers_are_posted_before_a_grant)
{
    static unsigned published_at_post;
    static const __be32 *dbrec;
    static const uct_sep_ops_t *real;
    uct_sep_ops_t ops = *m_f.iface().tx.ops;
    uct_sep_txwq_t *woken;

    m_f.iface().config.fc = {1, 8, 4, 2};
    uct_sep_fc_start(&m_f.iface(), &m_f.txwq());
    dbrec                = &m_dbrec;
    real                 = m_f.iface().tx.ops;
    ops.post_header      = [](uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                              uct_sep_wr_am_t am, const void *body,
                              size_t length) {
        published_at_post = be32toh(*dbrec);
        real->post_header(iface, txwq, am, body, length);
    };
    m_f.iface().tx.ops = &ops;

    uct_sep_srq_fill(&srq(), LENGTH - 1);
    srq().batch = 16;
    for (unsigned i = 0; i < 3; ++i) {
        take();
    }
    ASSERT_EQ(LENGTH - 1u, published());
    EXPECT_EQ(1, uct_sep_fc_receive(&m_f.iface(), QPN,
                                    UCT_SEP_AM_FC_HARD_REQ | 1, &woken));
    EXPECT_EQ(LENGTH - 1u + 3, published_at_post);

    /* ... and before one that the next message carries */
    take();
    EXPECT_EQ(1, uct_sep_fc_receive(&m_f.iface(), QPN,
                                    UCT_SEP_AM_FC_SOFT_REQ | 1, &woken));
    EXPECT_EQ(LENGTH - 1u + 4, published());
    m_f.iface().tx.ops = real;
}


/* A worker whose share of the budget changes, in plain memory */
class test_sep_throttle_share : public ::testing::Test {
protected:
    test_sep_throttle_share() : m_f(uct_sep_ops_bf)
    {
        uct_sep_iface_t &iface = m_f.iface();

        iface.config.cq_len = 1 << 10;
        iface.tx.cq_credits = iface.config.cq_len;
        EXPECT_EQ(UCS_OK, uct_sep_throttle_get("test_sep_throttle_share",
                                               budget, &iface.throttle.dev));
        uct_sep_stack_set(&iface, UCT_SEP_STACK_SHARE,
                          uct_sep_progress_throttle);
        uct_sep_stack_set(&iface, UCT_SEP_STACK_POLL,
                          [](uct_iface_h) { return 1u; });
        set();
    }

    ~test_sep_throttle_share()
    {
        uct_sep_progress_throttle_cleanup(&m_f.iface());
    }

    /* As at a report */
    void set()
    {
        m_f.iface().throttle.countdown = 0;
        uct_sep_progress_throttle(&m_f.iface().super.super);
    }

    static constexpr uint32_t budget = 64;
    fixture m_f;
};

TEST_F(test_sep_throttle_share, who_waits_is_called_when_it_grows)
{
    struct request {
        uct_pending_req_t req;
        unsigned          calls;
    } r = {};
    uct_sep_iface_t &iface = m_f.iface();
    auto *ep               = ucs_derived_of(m_f.ep(), uct_sep_ep_t);

    EXPECT_EQ((int32_t)budget, iface.tx.cq_credits);
    uct_sep_throttle_join(iface.throttle.dev);
    set();
    EXPECT_EQ((int32_t)budget / 2, iface.tx.cq_credits);

    /* All of the half is in use, nothing of it completes */
    iface.tx.cq_credits -= budget / 2 + 1;
    iface.tx.stalled     = 1;
    r.req.func           = [](uct_pending_req_t *req) {
        ++ucs_container_of(req, request, req)->calls;
        return UCS_OK;
    };
    ucs_queue_push(&ep->pending,
                   &((uct_pending_req_priv_queue_t*)r.req.priv)->queue_elem);
    iface.conn.num_pending = 1;
    uct_sep_dispatch_add(ep);
    set();
    EXPECT_EQ(0u, r.calls);
    EXPECT_EQ(1, iface.tx.stalled);

    uct_sep_throttle_leave(iface.throttle.dev);
    set();
    EXPECT_EQ((int32_t)budget / 2 - 1, iface.tx.cq_credits);
    EXPECT_EQ(1u, r.calls);
    EXPECT_EQ(0, iface.tx.stalled);
    EXPECT_EQ(0u, iface.conn.num_pending);
}

/* What is in use comes back before it is withheld */
TEST_F(test_sep_throttle_share, it_shrinks_as_requests_complete)
{
    uct_sep_iface_t &iface = m_f.iface();

    iface.tx.cq_credits -= budget - 4;
    uct_sep_throttle_join(iface.throttle.dev);
    set();
    EXPECT_EQ(-UCT_SEP_THROTTLE_MAX_ADVANCE, iface.tx.cq_credits);
    set();
    EXPECT_EQ(-UCT_SEP_THROTTLE_MAX_ADVANCE, iface.tx.cq_credits);
    iface.tx.cq_credits += budget - 4;
    set();
    EXPECT_EQ((int32_t)budget / 2, iface.tx.cq_credits);
    uct_sep_throttle_leave(iface.throttle.dev);
}

/* Who waits posts what has completed, each time before that is seen */
TEST_F(test_sep_throttle_share, it_shrinks_though_requests_wait)
{
    uct_sep_iface_t &iface = m_f.iface();

    iface.tx.cq_credits -= budget + 1;
    uct_sep_throttle_join(iface.throttle.dev);
    for (unsigned i = 0; i < 3; ++i) {
        set();
        iface.tx.cq_credits = std::min(iface.tx.cq_credits + (int)budget, -1);
    }
    EXPECT_EQ(iface.config.cq_len - (int32_t)budget / 2, iface.throttle.held);
    uct_sep_throttle_leave(iface.throttle.dev);
}

} // namespace
