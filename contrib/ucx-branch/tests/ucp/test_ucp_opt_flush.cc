/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ucp_opt.h"


class test_ucp_opt_flush : public test_ucp_opt {
public:
    test_ucp_opt_flush() : test_ucp_opt("FLUSH")
    {
    }

protected:
    void init() override
    {
        test_ucp_opt::init();
        m_memory.reset(new mapped_buffer(4096, receiver()));
        m_memory->rkey(sender(), m_rkey);
    }

    void cleanup() override
    {
        m_rkey.reset();
        m_memory.reset();
        test_ucp_opt::cleanup();
    }

    ucs_status_ptr_t put(const uint64_t *value)
    {
        return ucp_put_nbx(sender().ep(), value, sizeof(*value),
                           (uint64_t)m_memory->ptr(), m_rkey, &m_param);
    }

    static void count_call(void *request, ucs_status_t status, void *arg)
    {
        EXPECT_EQ(UCS_OK, status);
        ++*reinterpret_cast<unsigned*>(arg);
    }

    std::unique_ptr<mapped_buffer> m_memory;
    ucs::handle<ucp_rkey_h>        m_rkey;
    const ucp_request_param_t      m_param = {};
};

/* Of a request only what is needed is set, whether something is outstanding or
 * not */
UCS_TEST_P(test_ucp_opt_flush, ep_request)
{
    const auto not_set = reinterpret_cast<ucp_request_callback_t>(0x55);
    std::vector<ucp_request_t> memory(2);
    ucp_request_param_t param;
    uint64_t value = 0;

    ASSERT_UCS_OK(request_wait(put(&value)));
    wait_connected();
    param.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST;
    param.request      = &memory[1];
    for (value = 1; value <= 10; ++value) {
        void *put_req             = (value % 2) ? put(&value) : NULL;
        memory[0].send.flushed_cb = not_set;
        void *req                 = ucp_ep_flush_nbx(sender().ep(), &param);

        /* Where puts are in software, their answers are waited for */
        if (!has_any_transport({"ud_v", "ud_x", "tcp"})) {
            EXPECT_EQ(is_opt(), memory[0].send.flushed_cb == not_set);
        }
        wait_for_cond([&]() {
            return !UCS_PTR_IS_PTR(req) ||
                   (ucp_request_check_status(req) != UCS_INPROGRESS);
        }, [&]() { progress(); });
        ASSERT_UCS_OK(request_wait(put_req));
        EXPECT_EQ(value - !(value % 2), *(volatile uint64_t*)m_memory->ptr());
    }
}

/* The callback is called once if there is a request, and else never */
UCS_TEST_P(test_ucp_opt_flush, ep_completion)
{
    unsigned calls = 0, requests = 0;
    ucp_request_param_t param;

    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                         UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send      = count_call;
    param.user_data    = &calls;
    for (uint64_t value = 1; value <= 100; ++value) {
        void *put_req   = (value % 4) ? put(&value) : NULL;
        void *flush_req = ucp_ep_flush_nbx(sender().ep(), &param);

        requests += UCS_PTR_IS_PTR(flush_req);
        ASSERT_UCS_OK(request_wait(flush_req));
        ASSERT_UCS_OK(request_wait(put_req));
        EXPECT_EQ(requests, calls);
        if (value % 4) {
            EXPECT_EQ(value, *(volatile uint64_t*)m_memory->ptr());
        }
    }
}

/* Without progress in between: queues fill up, and so flushes are queued */
UCS_TEST_P(test_ucp_opt_flush, many_at_a_time)
{
    std::vector<uint64_t> values(500);
    std::vector<void*> reqs;

    for (uint64_t &value : values) {
        value = &value - &values[0] + 1;
        reqs.push_back(put(&value));
        reqs.push_back((value % 7) ?
                               ucp_ep_flush_nbx(sender().ep(), &m_param) :
                               ucp_worker_flush_nbx(sender().worker(),
                                                    &m_param));
    }
    ASSERT_UCS_OK(requests_wait(reqs));
    flush_ep(sender());
    EXPECT_EQ(values.size(), *(volatile uint64_t*)m_memory->ptr());
}

/* All endpoints are asked in the call if there are 16 of them or fewer: then
 * the request has no callback in progress */
UCS_TEST_P(test_ucp_opt_flush, worker_in_the_call)
{
    if (!has_any_transport({"rc_v", "rc_x", "sep_mlx5"})) {
        UCS_TEST_SKIP_R("needs puts that are not complete at once");
    }

    for (int count = 1; count <= 17; count += 8) {
        while (sender().get_num_eps() < count) {
            sender().connect(&receiver(), get_ep_params(),
                             sender().get_num_eps());
            flush_worker(sender());
        }
        wait_connected();

        uint64_t value = count;
        void *put_req  = put(&value);
        void *req      = ucp_worker_flush_nbx(sender().worker(), &m_param);
        ASSERT_TRUE(UCS_PTR_IS_PTR(req));
        EXPECT_EQ(is_opt() && (count <= 16),
                  ((ucp_request_t*)req - 1)->flush_worker.prog_id ==
                          UCS_CALLBACKQ_ID_NULL);
        ASSERT_UCS_OK(request_wait(req));
        ASSERT_UCS_OK(request_wait(put_req));
        EXPECT_EQ(value, *(volatile uint64_t*)m_memory->ptr());
    }
}

UCP_INSTANTIATE_TEST_CASE(test_ucp_opt_flush)
