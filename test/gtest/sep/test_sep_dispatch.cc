/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/sep_wqe_fixture.h>
#include <sep/test_sep_uct.h>

#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/iface/sep_fc.h>

#include <gtest/gtest.h>

#include <vector>

using namespace sep_wqe_test;
using namespace sep_uct_test;

namespace {

/* Pending requests of an endpoint in plain memory, whose work requests are in
 * lists */
class test_sep_dispatch : public ::testing::Test {
protected:
    test_sep_dispatch() : m_f(uct_sep_ops_list)
    {
        EXPECT_EQ(UCS_OK, ucs_async_context_create(
                                  UCS_ASYNC_MODE_THREAD_SPINLOCK, &m_async));
        EXPECT_EQ(UCS_OK, uct_worker_create(m_async, UCS_THREAD_MODE_SINGLE,
                                            &m_worker));
        iface().super.worker     = ucs_derived_of(m_worker, uct_priv_worker_t);
        iface().conn.dispatch_id = UCS_CALLBACKQ_ID_NULL;
        iface().config.postlist  = 4;
        iface().tx.post          = UCT_SEP_TX_POST_BF;
    }

    ~test_sep_dispatch()
    {
        uct_worker_destroy(m_worker);
        ucs_async_context_destroy(m_async);
    }

    uct_sep_iface_t &iface() { return m_f.iface(); }

    /* A request that is refused so many times, and notes its calls */
    void add(pending_req &req, int number, unsigned refusals)
    {
        req.func = [this, number, refusals]() mutable {
            m_calls.push_back(number);
            return (refusals-- > 0) ? UCS_ERR_NO_RESOURCE : UCS_OK;
        };
        ucs_queue_push(&ep()->pending,
                       &((uct_pending_req_priv_queue_t*)req.req.priv)
                                ->queue_elem);
        ++iface().conn.num_pending;
    }

    uct_sep_ep_t *ep() { return ucs_derived_of(m_f.ep(), uct_sep_ep_t); }

    fixture             m_f;
    std::vector<int>    m_calls;
    ucs_async_context_t *m_async = nullptr;
    uct_worker_h        m_worker = nullptr;
};

/* It waits for something that only it knows, so each progress tries */
TEST_F(test_sep_dispatch, a_request_that_is_refused_stays_the_first)
{
    pending_req first, second;

    add(first, 1, 2);
    add(second, 2, 0);
    uct_sep_dispatch_add(ep());
    uct_sep_dispatch(&iface());
    EXPECT_EQ((std::vector<int>{1}), m_calls);
    EXPECT_EQ(2u, iface().conn.num_pending);
    uct_worker_progress(m_worker);
    EXPECT_EQ((std::vector<int>{1, 1}), m_calls);
    uct_worker_progress(m_worker);
    EXPECT_EQ((std::vector<int>{1, 1, 1, 2}), m_calls);
    EXPECT_EQ(0u, iface().conn.num_pending);
    uct_worker_progress(m_worker);
    EXPECT_EQ(4u, m_calls.size());
}

TEST_F(test_sep_dispatch, who_waits_for_a_queue_is_called_when_it_has_room)
{
    int32_t credits = m_f.txwq().credits;
    pending_req req;

    m_f.txwq().credits = -1;
    add(req, 1, 1);
    uct_sep_dispatch_add(ep());
    uct_sep_dispatch(&iface());
    EXPECT_EQ(1u, m_calls.size());
    uct_sep_dispatch(&iface());
    uct_worker_progress(m_worker);
    EXPECT_EQ(1u, m_calls.size()) << "nothing has changed";

    m_f.txwq().credits = credits;
    uct_sep_dispatch_wake(&iface(), &m_f.txwq());
    EXPECT_EQ(2u, m_calls.size());
    EXPECT_EQ(0u, iface().conn.num_pending);
}

/* Whichever queue gave the credits back */
TEST_F(test_sep_dispatch, credits_that_are_back_send_grants)
{
    int32_t credits = iface().tx.cq_credits;
    uct_sep_txwq_t *woken;

    iface().tx.cq_credits = -1;
    uct_sep_fc_receive(&iface(), QPN, UCT_SEP_AM_FC_HARD_REQ, &woken);
    EXPECT_EQ(0, m_f.txwq().sw_pi);
    EXPECT_EQ(1, iface().tx.stalled);

    iface().tx.cq_credits = credits;
    uct_sep_dispatch_unstall(&iface());
    EXPECT_EQ(1, m_f.txwq().sw_pi);
    EXPECT_TRUE(ucs_list_is_empty(&iface().tx.fc_due));
    EXPECT_EQ(0, iface().tx.stalled);
}

/* It need not be progress that calls them */
TEST_F(test_sep_dispatch, what_requests_post_is_rung_for)
{
    uint8_t data[8] = {};
    pending_req req;

    add(req, 1, 0);
    req.func = [&]() {
        return m_f.ops().ep_put_short(m_f.ep(), data, sizeof(data), 0x1000, 1);
    };
    uct_sep_dispatch_add(ep());
    uct_sep_dispatch(&iface());
    EXPECT_EQ(1, m_f.txwq().sw_pi);
    EXPECT_EQ(1u, m_f.dbrec());
    EXPECT_EQ(0, m_f.txwq().list_count);
}

} // namespace
