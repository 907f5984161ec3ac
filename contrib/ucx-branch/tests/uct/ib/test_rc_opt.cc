/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_rc.h"


/* Flush that waits for an operation instead of posting a work request */
class test_rc_opt_flush : public test_rc {
protected:
    void init() override
    {
        test_rc::init();
        m_env.reset(new ucs::scoped_setenv("UCX_OPT_FLUSH_SIGNAL", "n"));
        m_stock = uct_test::create_entity(0);
        m_entities.push_back(m_stock);
        m_stock->connect(0, *m_e2, 1);
        m_e2->connect(1, *m_stock, 0);
        m_env.reset();
    }

    static void count_call(uct_completion_t *comp)
    {
        EXPECT_EQ(UCS_OK, comp->status);
    }

    /* Post so many operations and flush. Returns how much of the queue a flush
     * has taken. */
    int post_and_flush(entity *e, unsigned count)
    {
        uct_completion_t comp;
        ucs_status_t status;

        for (unsigned i = 0; i < count; ++i) {
            UCT_TEST_CALL_AND_TRY_AGAIN(send_am_message(e), status);
            EXPECT_UCS_OK(status);
        }

        int before  = rc_ep(e)->txqp.available;
        comp.func   = count_call;
        comp.count  = 1;
        comp.status = UCS_OK;
        UCT_TEST_CALL_AND_TRY_AGAIN(uct_ep_flush(e->ep(0), 0, &comp), status);
        int taken   = before - rc_ep(e)->txqp.available;
        if (status == UCS_INPROGRESS) {
            wait_for_cond([&]() { return comp.count == 0; },
                          [&]() { progress(); });
            EXPECT_EQ(0, comp.count);
        } else {
            EXPECT_UCS_OK(status);
        }
        return taken;
    }

    std::unique_ptr<ucs::scoped_setenv> m_env;
    entity                              *m_stock;
};

/* The first flush finds that one operation was posted, and expects the same to
 * come again */
UCS_TEST_P(test_rc_opt_flush, one_operation)
{
    post_and_flush(m_e1, 1);
    post_and_flush(m_e1, 1);
    for (unsigned i = 0; i < 200; ++i) {
        ASSERT_EQ(0, post_and_flush(m_e1, 1)) << i;
        ASSERT_LT(0, post_and_flush(m_stock, 1)) << i;
    }
}

/* 64 is the period of signaled operations */
UCS_TEST_P(test_rc_opt_flush, any_number)
{
    for (unsigned count : {0, 1, 2, 3, 62, 1, 63, 64, 1, 65, 127, 1, 128}) {
        for (unsigned ones = 0; ones < 4; ++ones) {
            post_and_flush(m_e1, 1);
        }
        post_and_flush(m_e1, count);
    }
    flush();
    EXPECT_EQ(rc_ep(m_stock)->txqp.available, rc_ep(m_e1)->txqp.available);
}

UCT_INSTANTIATE_RC_TEST_CASE(test_rc_opt_flush)
