/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_UCP_H_
#define TEST_SEP_UCP_H_

#include <gtest/gtest.h>

#include <ucp/api/ucp.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace sep_ucp_test {

/** Two UCP workers on sep_mlx5, each with an endpoint to the other. */
class pair {
public:
    /** Names and values of UCX's settings, without the prefix. */
    typedef std::vector<std::pair<const char*, const char*>> options;

    ~pair()
    {
        close();
    }

    /** Open and connect.
     *  @param [in] features  UCP_FEATURE_x.
     *  @param [in] opts      Settings besides UCX_TLS, or instead of it.
     *  @param [in] flags     UCP_WORKER_ADDRESS_FLAG_x of the addresses by
     *                        which they are connected. */
    void open(uint64_t features, const options &opts = {}, uint32_t flags = 0)
    {
        ucp_params_t params               = {};
        ucp_worker_params_t worker_params = {};
        ucp_ep_params_t ep_params         = {};
        ucp_worker_attr_t attr            = {};
        ucp_config_t *config;
        ucs_status_t status;

        ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
        EXPECT_EQ(UCS_OK, ucp_config_modify(config, "TLS", "sep_mlx5"));
        for (auto &option : opts) {
            EXPECT_EQ(UCS_OK, ucp_config_modify(config, option.first,
                                                option.second)) << option.first;
        }

        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features   = features;
        status            = ucp_init(&params, config, &m_context);
        ucp_config_release(config);
        ASSERT_EQ(UCS_OK, status);

        for (auto &worker : m_workers) {
            ASSERT_EQ(UCS_OK, ucp_worker_create(m_context, &worker_params,
                                                &worker));
        }
        for (int i = 0; i < 2; ++i) {
            attr.field_mask      = UCP_WORKER_ATTR_FIELD_ADDRESS |
                                   UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
            attr.address_flags   = flags;
            ASSERT_EQ(UCS_OK, ucp_worker_query(m_workers[!i], &attr));
            ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
            ep_params.address    = attr.address;
            status               = ucp_ep_create(m_workers[i], &ep_params,
                                                 &m_eps[i]);
            ucp_worker_release_address(m_workers[!i], attr.address);
            if (status != UCS_OK) {
                m_eps[i] = nullptr;
            }
            ASSERT_EQ(UCS_OK, status) << attr.address_length
                                      << " bytes of address";
        }
    }

    /** Disconnect and release everything; nothing if it is not open. */
    void close()
    {
        ucp_request_param_t param = {};

        for (auto &ep : m_eps) {
            if (ep != nullptr) {
                finish(ucp_ep_close_nbx(ep, &param));
                ep = nullptr;
            }
        }
        for (auto &worker : m_workers) {
            if (worker != nullptr) {
                ucp_worker_destroy(worker);
                worker = nullptr;
            }
        }
        if (m_context != nullptr) {
            ucp_cleanup(m_context);
            m_context = nullptr;
        }
    }

    /** Progress both workers once. */
    void progress()
    {
        for (auto &worker : m_workers) {
            ucp_worker_progress(worker);
        }
    }

    /** Progress both workers until a request is completed, and release it.
     *  @param [in] req  What an ..._nbx function returned. */
    void finish(ucs_status_ptr_t req)
    {
        if (UCS_PTR_IS_PTR(req)) {
            while (ucp_request_check_status(req) == UCS_INPROGRESS) {
                progress();
            }
            ucp_request_free(req);
        }
    }

    /** Send a number from the first worker to the other by a tag. */
    void exchange()
    {
        ucp_request_param_t param = {};
        uint64_t sent = 0x5e9, received = 0;

        auto recv = ucp_tag_recv_nbx(m_workers[1], &received, sizeof(received),
                                     1, UINT64_MAX, &param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(recv));
        auto send = ucp_tag_send_nbx(m_eps[0], &sent, sizeof(sent), 1, &param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(send));
        finish(send);
        finish(recv);
        EXPECT_EQ(sent, received);
    }

    /** @return A worker; the endpoint of worker i leads to the other. */
    ucp_worker_h worker(int i) const
    {
        return m_workers[i];
    }

    ucp_ep_h ep(int i) const
    {
        return m_eps[i];
    }

private:
    ucp_context_h m_context    = nullptr;
    ucp_worker_h  m_workers[2] = {};
    ucp_ep_h      m_eps[2]     = {};
};

} // namespace sep_ucp_test

#endif
