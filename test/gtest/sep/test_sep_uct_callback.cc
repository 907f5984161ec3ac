/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <gtest/gtest.h>

#include <functional>
#include <list>

using namespace sep_uct_test;

namespace {

/* What users may do in callbacks: progress, cancel, destroy the endpoint. What
 * goes wrong here is memory that is used after it was released: for the run
 * with sanitizers. */
class test_sep_uct_callback : public test_sep_uct_mode {
protected:
    /* A put that calls a function when it completes */
    struct put {
        uct_completion_t                  comp;
        std::function<void(ucs_status_t)> func;
        ucs_status_t                      status = UCS_INPROGRESS;
        unsigned                          calls  = 0;
    };

    void SetUp() override
    {
        test_sep_uct_mode::SetUp();
        if (IsSkipped()) {
            return;
        }
        m_remote = m_peer->expose(4096, 1);
        m_mem.reset(new memory(m_local->md(), 4096));
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_put_short(ep(), m_mem->ptr(), 8, m_remote.va,
                                    m_remote.rkey.rkey);
        }));
        flush();
    }

    void TearDown() override
    {
        if (m_mem) {
            uct_rkey_release(m_local->component(), &m_remote.rkey);
        }
        m_mem.reset();
        test_sep_uct_mode::TearDown();
    }

    put &post(const std::function<void(ucs_status_t)> &func = nullptr)
    {
        uct_iov_t iov = {m_mem->ptr(), 4096, m_mem->memh(), 0, 1};

        m_puts.emplace_back();
        put &p      = m_puts.back();
        p.func      = func;
        p.comp      = {[](uct_completion_t *comp) {
                           put *self    = ucs_container_of(comp, put, comp);
                           self->status = comp->status;
                           ++self->calls;
                           if (self->func) {
                               self->func(comp->status);
                           }
                       }, 1, UCS_OK};
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(ep(), &iov, 1, m_remote.va,
                                   m_remote.rkey.rkey, &p.comp));
        return p;
    }

    bool all_called() const
    {
        for (auto &p : m_puts) {
            if (p.calls == 0) {
                return false;
            }
        }
        return true;
    }

    /* Take all that has completed. The device has by then dealt with what was
     * given up; a callback can't wait for more, as its own operation is not
     * over. */
    void drain()
    {
        for (unsigned i = 0; i < 1000; ++i) {
            m_local->progress();
        }
    }

    void expect_all_gone()
    {
        EXPECT_TRUE(m_local->wait([&]() {
            return ucs_list_is_empty(&m_local->sep()->conn.retired);
        }));
        EXPECT_EQ(0u, m_local->sep()->tx.in_finish);
        for (auto &p : m_puts) {
            EXPECT_EQ(1u, p.calls);
        }
    }

    /* A new connection works */
    void expect_can_send(unsigned i = 0)
    {
        uct_ep_h other = m_local->connect(m_peer->addr(i));

        EXPECT_EQ(UCS_OK, retry([&]() {
            return uct_ep_put_short(other, m_mem->ptr(), 8, m_remote.va,
                                    m_remote.rkey.rkey);
        }));
        flush();
    }

    remote_memory           m_remote;
    std::unique_ptr<memory> m_mem;
    std::list<put>          m_puts;
};

TEST_P(test_sep_uct_callback, a_completion_may_cancel_and_progress)
{
    post([&](ucs_status_t) {
        EXPECT_EQ(UCS_OK, uct_ep_flush(ep(), UCT_FLUSH_FLAG_CANCEL, NULL));
        drain();
    });
    for (unsigned i = 0; i < 5; ++i) {
        post();
    }
    EXPECT_TRUE(m_local->wait([&]() { return all_called(); }));
    expect_all_gone();
    m_local->destroy(ep());
    expect_can_send();
}

TEST_P(test_sep_uct_callback, a_cancelled_completion_may_progress)
{
    for (unsigned i = 0; i < 5; ++i) {
        post([&](ucs_status_t) { drain(); });
    }
    EXPECT_EQ(UCS_OK, uct_ep_flush(ep(), UCT_FLUSH_FLAG_CANCEL, NULL));
    EXPECT_TRUE(m_local->wait([&]() { return all_called(); }));
    expect_all_gone();
    m_local->destroy(ep());
    expect_can_send();
}

TEST_P(test_sep_uct_callback,
       a_completion_may_destroy_the_endpoint_and_progress)
{
    bool destroyed = false;

    /* Each of the others may complete while the ones before are told of */
    for (unsigned i = 0; i < 6; ++i) {
        post([&](ucs_status_t) {
            if (!destroyed) {
                destroyed = true;
                m_local->destroy(ep());
            }
            drain();
        });
    }
    EXPECT_TRUE(m_local->wait([&]() { return all_called(); }));
    expect_all_gone();
    flush();
    expect_can_send();
}

TEST_P(test_sep_uct_callback, completions_of_a_destroyed_endpoint_may_progress)
{
    for (unsigned i = 0; i < 6; ++i) {
        post([&](ucs_status_t) { drain(); });
    }
    m_local->destroy(ep());
    EXPECT_TRUE(all_called());
    expect_all_gone();
    expect_can_send();
}

TEST_P(test_sep_uct_callback,
       failed_completions_and_the_error_handler_may_progress)
{
    expect_errors quiet;

    m_local->destroy_failed = true;
    m_local->on_failure     = [&]() { drain(); };
    m_peer->kill();
    for (unsigned i = 0; i < 5; ++i) {
        post([&](ucs_status_t) { drain(); });
    }
    EXPECT_TRUE(m_local->wait([&]() {
        return all_called() && (m_local->failures.size() == 1);
    }));
    expect_all_gone();
    for (auto &p : m_puts) {
        EXPECT_TRUE(UCS_STATUS_IS_ERR(p.status));
    }
}

TEST_P(test_sep_uct_callback,
       a_completion_before_the_failed_one_may_cancel_and_progress)
{
    expect_errors quiet;
    uct_iov_t iov = {m_mem->ptr(), 8, m_mem->memh(), 0, 1};
    completion bad;

    /* Polled for after the bad one has failed, so that both are there */
    put &p = post([&](ucs_status_t) {
        EXPECT_EQ(UCS_OK, uct_ep_flush(ep(), UCT_FLUSH_FLAG_CANCEL, NULL));
        drain();
    });
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_put_zcopy(ep(), &iov, 1, m_remote.va,
                               wrong_rkey(m_remote.rkey.rkey), &bad.comp));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait(bad)));
    EXPECT_EQ(UCS_OK, p.status);
    expect_all_gone();
}

TEST_P(test_sep_uct_callback, a_message_may_cancel_destroy_and_progress)
{
    bool first = true;

    m_local->on_message = [&]() {
        if (first) {
            first = false;
            for (unsigned i = 0; i < 5; ++i) {
                post([&](ucs_status_t) { m_local->progress(); });
            }
            EXPECT_EQ(UCS_OK, uct_ep_flush(ep(), UCT_FLUSH_FLAG_CANCEL, NULL));
            m_local->destroy(ep());
        }
        drain();
    };
    m_peer->send(m_local->addr(), 50, 100);
    EXPECT_TRUE(m_local->wait([&]() {
        return !m_local->messages.empty() && all_called();
    }));
    drain();
    expect_all_gone();
}

struct destroyer {
    uct_pending_req_t     req;
    std::function<void()> func;
};

TEST_P(test_sep_uct_callback, a_pending_request_may_destroy_its_endpoint)
{
    destroyer d;
    ucs_status_t status;
    bool called = false;

    d.func     = [&]() {
        called = true;
        m_local->destroy(ep());
    };
    d.req.func = [](uct_pending_req_t *req) {
        ucs_container_of(req, destroyer, req)->func();
        return UCS_OK;
    };
    do {
        while ((status = uct_ep_put_short(ep(), m_mem->ptr(), 8, m_remote.va,
                                          m_remote.rkey.rkey)) == UCS_OK) {
        }
        ASSERT_EQ(UCS_ERR_NO_RESOURCE, status);
    } while ((status = uct_ep_pending_add(ep(), &d.req, 0)) == UCS_ERR_BUSY);
    ASSERT_EQ(UCS_OK, status);
    EXPECT_TRUE(m_local->wait([&]() { return called; }));
    flush();
    expect_can_send();
}

INSTANTIATE_TEST_SUITE_P(
        mode, test_sep_uct_callback,
        ::testing::Values(mode{"dv", {}}, mode{"verbs", {{"API", "verbs"}}},
                          mode{"postlist", {{"TX_POSTLIST", "8"}}},
                          mode{"cq_sharing", {{"CQ_SHARING", "2"}}}),
        mode_name);

} // namespace
