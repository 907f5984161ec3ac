/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_UCP_OPT_H_
#define TEST_UCP_OPT_H_

#include "ucp_test.h"

extern "C" {
#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_worker.h>
#include <ucs/datastruct/mpool.h>
}


/*
 * What is done with an optimization, and without it: the results are the same.
 * UCX_OPT_<name> is read from the environment when a context is created.
 */
class test_ucp_opt : public ucp_test {
public:
    static void get_test_variants(std::vector<ucp_test_variant> &variants)
    {
        const uint64_t features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 |
                                  UCP_FEATURE_TAG | UCP_FEATURE_AM;

        add_variant_with_value(variants, features, 1, "opt");
        add_variant_with_value(variants, features, 0, "no_opt");
    }

    /* Other tests have workers of UCS_THREAD_MODE_MULTI */
    ucp_worker_params_t get_worker_params() override
    {
        ucp_worker_params_t params = ucp_test::get_worker_params();

        if (get_variant_thread_type() == SINGLE_THREAD) {
            params.thread_mode = UCS_THREAD_MODE_SINGLE;
        }
        return params;
    }

protected:
    test_ucp_opt(const std::string &name) : m_name("UCX_OPT_" + name)
    {
    }

    bool is_opt() const
    {
        return get_variant_value();
    }

    void init() override
    {
        m_env.push_back(new ucs::scoped_setenv(m_name.c_str(),
                                               is_opt() ? "y" : "n"));
        ucp_test::init();
        sender().connect(&receiver(), get_ep_params());
        if (!is_self()) {
            receiver().connect(&sender(), get_ep_params());
        }
    }

    /* Until nothing of connecting is under way any more */
    void wait_connected()
    {
        for (auto *e : {&sender(), &receiver()}) {
            ucs_time_t deadline = ucs::get_deadline();
            void *req;

            while ((req = e->flush_ep_nb()) != NULL) {
                ASSERT_UCS_OK(request_wait(req));
                ASSERT_LT(ucs_get_time(), deadline);
            }
        }
        short_progress_loop();
    }

    /* As long as it exists, a worker has no request to give */
    class no_requests {
    public:
        no_requests(const entity &e) :
            m_mp(&e.worker()->req_mp),
            m_freelist(m_mp->freelist),
            m_quota(m_mp->data->quota)
        {
            m_mp->freelist    = NULL;
            m_mp->data->quota = 0;
        }

        ~no_requests()
        {
            EXPECT_TRUE(m_mp->freelist == NULL);
            m_mp->freelist    = m_freelist;
            m_mp->data->quota = m_quota;
        }

    private:
        ucs_mpool_t      *m_mp;
        ucs_mpool_elem_t *m_freelist;
        unsigned         m_quota;
    };

    /* What an operation returns that finds no request: nothing is different if
     * it needs none */
    void check_needs_no_request(ucs_status_ptr_t result) const
    {
        EXPECT_EQ(is_opt() ? UCS_OK : UCS_ERR_NO_MEMORY,
                  UCS_PTR_STATUS(result));
    }

private:
    const std::string m_name;
};

#endif
