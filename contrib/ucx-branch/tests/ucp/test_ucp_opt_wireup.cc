/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ucp_opt.h"

extern "C" {
#include <ucp/wireup/wireup_ep.h>
}


class test_ucp_opt_wireup : public test_ucp_opt {
public:
    test_ucp_opt_wireup(const std::string &name = "WIREUP") :
        test_ucp_opt(name)
    {
    }

protected:
    /* What stands for a lane while it is not connected */
    ucp_wireup_ep_t *proxy()
    {
        return ucp_wireup_ep(sender().ep()->uct_eps[0]);
    }

    void put_and_check(uint64_t value)
    {
        const ucp_request_param_t param = {};
        mapped_buffer memory(sizeof(value), receiver());
        ucs::handle<ucp_rkey_h> rkey = memory.rkey(sender());
        void *req = ucp_put_nbx(sender().ep(), &value, sizeof(value),
                                (uint64_t)memory.ptr(), rkey, &param);

        flush_ep(sender());
        ASSERT_UCS_OK(request_wait(req));
        EXPECT_EQ(value, *(volatile uint64_t*)memory.ptr());
        /* Before the memory of the key goes */
        rkey.reset();
    }
};

/* The interface that connects others is not polled, while it does and
 * afterwards */
UCS_TEST_P(test_ucp_opt_wireup, not_polled)
{
    ASSERT_TRUE(proxy() != NULL);
    ASSERT_TRUE(proxy()->aux_ep != NULL);

    ucp_worker_iface_t *wiface = ucp_worker_iface(sender().worker(),
                                                  proxy()->aux_rsc_index);
    EXPECT_EQ(is_opt(), wiface->activate_count == 0);

    put_and_check(1);
    flush_workers();
    wait_for_cond([&]() { return wiface->activate_count == 0; },
                  [&]() { progress(); });
    EXPECT_EQ(0u, wiface->activate_count);
    put_and_check(2);
}

UCP_INSTANTIATE_TEST_CASE_TLS(test_ucp_opt_wireup, rcx, "rc_x")
UCP_INSTANTIATE_TEST_CASE_TLS(test_ucp_opt_wireup, rc, "rc_v")


class test_ucp_opt_ondemand : public test_ucp_opt_wireup {
public:
    test_ucp_opt_ondemand() : test_ucp_opt_wireup("ONDEMAND")
    {
    }
};

/* Until an endpoint is used it has no transport endpoint */
UCS_TEST_P(test_ucp_opt_ondemand, first_use)
{
    const ucp_request_param_t param = {};

    for (int i = 0; i < 10; ++i) {
        short_progress_loop();
        EXPECT_EQ(NULL, is_opt() ? ucp_ep_flush_nbx(sender().ep(), &param) :
                                   NULL);
    }
    EXPECT_EQ(is_opt(), (proxy() != NULL) && (proxy()->super.uct_ep == NULL));

    put_and_check(1);
    EXPECT_TRUE((proxy() == NULL) || (proxy()->super.uct_ep != NULL));
    EXPECT_EQ(NULL, sender().ep()->ext->opt_ondemand);
}

UCP_INSTANTIATE_TEST_CASE_TLS(test_ucp_opt_ondemand, rcx, "rc_x")
UCP_INSTANTIATE_TEST_CASE_TLS(test_ucp_opt_ondemand, rc, "rc_v")
