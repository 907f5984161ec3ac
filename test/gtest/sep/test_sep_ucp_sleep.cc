/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_sep_uct.h"

#include <ucp/api/ucp.h>

#include <poll.h>

#include <chrono>
#include <cstdlib>

using namespace sep_uct_test;

namespace {

/* Workers that sleep while others have rings of the eager channel in their
 * memory, as applications do it that wait on UCP's file descriptor */
class test_sep_ucp_sleep : public ::testing::Test {
protected:
    static constexpr int timeout_ms = 60000;

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }

        setenv("UCX_SEP_EAGER", "y", 1);
        open();
    }

    void TearDown() override
    {
        for (auto ep : m_eps) {
            close(ep);
        }
        for (auto worker : m_workers) {
            if (worker != nullptr) {
                ucp_worker_destroy(worker);
            }
        }
        if (m_context != nullptr) {
            ucp_cleanup(m_context);
        }
        unsetenv("UCX_SEP_EAGER");
    }

    void open()
    {
        ucp_params_t params               = {};
        ucp_worker_params_t worker_params = {};
        ucp_ep_params_t ep_params         = {};
        ucp_config_t *config;
        ucp_address_t *address;
        ucs_status_t status;
        size_t length;

        ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
        EXPECT_EQ(UCS_OK, ucp_config_modify(config, "TLS", "sep_mlx5"));
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features   = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
        status            = ucp_init(&params, config, &m_context);
        ucp_config_release(config);
        ASSERT_EQ(UCS_OK, status);

        for (auto &worker : m_workers) {
            ASSERT_EQ(UCS_OK, ucp_worker_create(m_context, &worker_params,
                                                &worker));
        }
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ(UCS_OK, ucp_worker_get_address(m_workers[!i], &address,
                                                     &length));
            ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
            ep_params.address    = address;
            EXPECT_EQ(UCS_OK, ucp_ep_create(m_workers[i], &ep_params,
                                            &m_eps[i]));
            ucp_worker_release_address(m_workers[!i], address);
        }
    }

    void close(ucp_ep_h ep)
    {
        ucp_request_param_t param = {};

        if (ep != nullptr) {
            finish(ucp_ep_close_nbx(ep, &param));
        }
    }

    void progress()
    {
        for (auto worker : m_workers) {
            ucp_worker_progress(worker);
        }
    }

    void finish(ucs_status_ptr_t req)
    {
        if (UCS_PTR_IS_PTR(req)) {
            while (ucp_request_check_status(req) == UCS_INPROGRESS) {
                progress();
            }
            ucp_request_free(req);
        }
    }

    /* Whether it is on its way, not only queued */
    bool send(uint64_t value)
    {
        ucp_request_param_t param = {};

        m_sent   = value;
        auto req = ucp_tag_send_nbx(m_eps[0], &m_sent, sizeof(m_sent), 1,
                                    &param);
        EXPECT_FALSE(UCS_PTR_IS_ERR(req));
        bool is_sent = (req == nullptr);
        finish(req);
        return is_sent;
    }

    /* Start to receive */
    void post()
    {
        ucp_request_param_t param = {};

        m_received = 0;
        m_recv     = ucp_tag_recv_nbx(m_workers[1], &m_received,
                                      sizeof(m_received), 1, UINT64_MAX,
                                      &param);
        ASSERT_TRUE(UCS_PTR_IS_PTR(m_recv));
    }

    bool is_received()
    {
        return ucp_request_check_status(m_recv) != UCS_INPROGRESS;
    }

    /* As applications do before they sleep, without the sender's help */
    bool arm()
    {
        auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(timeout_ms);
        ucs_status_t status;

        do {
            while (ucp_worker_progress(m_workers[1]) > 0);
            status = ucp_worker_arm(m_workers[1]);
        } while ((status == UCS_ERR_BUSY) &&
                 (std::chrono::steady_clock::now() < deadline));
        return status == UCS_OK;
    }

    ucp_context_h    m_context    = nullptr;
    ucp_worker_h     m_workers[2] = {};
    ucp_ep_h         m_eps[2]     = {};
    ucs_status_ptr_t m_recv       = nullptr;
    uint64_t         m_sent       = 0;
    uint64_t         m_received   = 0;
};

TEST_F(test_sep_ucp_sleep, a_message_wakes_it_whoever_has_a_ring)
{
    struct pollfd pfd = {-1, POLLIN, 0};

    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(m_workers[1], &pfd.fd));

    /* Until the sender has a ring */
    for (uint64_t i = 1; i <= 1000; ++i) {
        post();
        send(i);
        while (!is_received()) {
            progress();
        }
        ucp_request_free(m_recv);
        ASSERT_EQ(i, m_received);
    }

    /* From now on the sender only sends */
    for (uint64_t i = 1; i <= 20; ++i) {
        post();
        ASSERT_TRUE(arm()) << "it is kept awake, message " << i;
        ASSERT_TRUE(send(i));
        while (!is_received()) {
            ASSERT_EQ(1, poll(&pfd, 1, timeout_ms)) << "message " << i;
            while (ucp_worker_progress(m_workers[1]) > 0);
            if (!is_received()) {
                arm();
            }
        }
        ucp_request_free(m_recv);
        ASSERT_EQ(i, m_received);
    }
}

} // namespace
