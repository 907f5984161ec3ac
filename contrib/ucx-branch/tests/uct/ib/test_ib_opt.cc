/* SPDX-License-Identifier: BSD-3-Clause */

#include <uct/uct_test.h>

extern "C" {
#include <uct/ib/base/ib_iface.h>
}


/* Verbs, whose polls of a queue can be counted; what the transports with direct
 * verbs ask before they poll is the same */
class test_ib_opt_idle : public uct_test {
protected:
    void init() override
    {
        uct_test::init();
        m_env.reset(new ucs::scoped_setenv("UCX_OPT_IDLE_TX", "n"));
        create_and_connect(m_stock);
        m_env.reset();
        create_and_connect(m_opt);
    }

    void create_and_connect(entity *(&e)[2])
    {
        for (auto &each : e) {
            each = uct_test::create_entity(0);
            m_entities.push_back(each);
            uct_iface_set_am_handler(each->iface(), 0, am_handler, NULL, 0);
        }
        e[0]->connect(0, *e[1], 0);
        e[1]->connect(0, *e[0], 0);
    }

    static ucs_status_t am_handler(void *arg, void *data, size_t length,
                                   unsigned flags)
    {
        return UCS_OK;
    }

    static int count_poll_cq(struct ibv_cq *cq, int num_entries,
                             struct ibv_wc *wc)
    {
        m_polls += (cq == m_cq);
        return m_poll_cq(cq, num_entries, wc);
    }

    /* How often an idle interface polls for sends */
    unsigned idle_polls(entity *e, unsigned count)
    {
        uct_ib_iface_t *iface = ucs_derived_of(e->iface(), uct_ib_iface_t);
        struct ibv_context_ops *ops;

        m_cq         = iface->cq[UCT_IB_DIR_TX];
        m_polls      = 0;
        ops          = &m_cq->context->ops;
        m_poll_cq    = ops->poll_cq;
        ops->poll_cq = count_poll_cq;
        for (unsigned i = 0; i < count; ++i) {
            uct_iface_progress(e->iface());
        }
        ops->poll_cq = m_poll_cq;
        return m_polls;
    }

    std::unique_ptr<ucs::scoped_setenv> m_env;
    entity                              *m_stock[2], *m_opt[2];
    static struct ibv_cq                *m_cq;
    static unsigned                     m_polls;
    static int (*m_poll_cq)(struct ibv_cq*, int, struct ibv_wc*);
};

struct ibv_cq *test_ib_opt_idle::m_cq;
unsigned test_ib_opt_idle::m_polls;
int (*test_ib_opt_idle::m_poll_cq)(struct ibv_cq*, int, struct ibv_wc*);

UCS_TEST_P(test_ib_opt_idle, polls)
{
    /* More than are posted without asking for a completion */
    for (unsigned sends : {0, 1, 100}) {
        for (auto *e : {m_stock[0], m_opt[0]}) {
            for (unsigned i = 0; i < sends; ++i) {
                ucs_status_t status;
                UCT_TEST_CALL_AND_TRY_AGAIN(send_am_message(e), status);
                ASSERT_UCS_OK(status);
            }
        }
        flush();
        short_progress_loop(100);
        EXPECT_LE(100u, idle_polls(m_stock[0], 100));
        EXPECT_EQ(0u, idle_polls(m_opt[0], 100));
    }
}

_UCT_INSTANTIATE_TEST_CASE(test_ib_opt_idle, rc_verbs)
_UCT_INSTANTIATE_TEST_CASE(test_ib_opt_idle, ud_verbs)
