/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_ucp.h>
#include <sep/test_sep_uct.h>

#include <poll.h>

#include <chrono>
#include <cstdlib>

using namespace sep_uct_test;

namespace {

/* Workers that sleep while others have rings of the eager channel in their
 * memory, as applications do it that wait on UCP's file descriptor */
class test_sep_ucp_sleep : public ::testing::Test {
protected:
    const int timeout_ms = 1000 * patience::seconds();

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }

        setenv("UCX_SEP_EAGER", "y", 1);
        m_pair.open(UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP);
    }

    void TearDown() override
    {
        m_pair.close();
        unsetenv("UCX_SEP_EAGER");
    }

    /* Whether it is on its way, not only queued */
    bool send(uint64_t value)
    {
        ucp_request_param_t param = {};

        m_sent   = value;
        auto req = ucp_tag_send_nbx(m_pair.ep(0), &m_sent, sizeof(m_sent), 1,
                                    &param);
        EXPECT_FALSE(UCS_PTR_IS_ERR(req));
        bool is_sent = (req == nullptr);
        m_pair.finish(req);
        return is_sent;
    }

    /* Start to receive */
    void post()
    {
        ucp_request_param_t param = {};

        m_received = 0;
        m_recv     = ucp_tag_recv_nbx(m_pair.worker(1), &m_received,
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
            while (ucp_worker_progress(m_pair.worker(1)) > 0);
            status = ucp_worker_arm(m_pair.worker(1));
        } while ((status == UCS_ERR_BUSY) &&
                 (std::chrono::steady_clock::now() < deadline));
        return status == UCS_OK;
    }

    sep_ucp_test::pair m_pair;
    ucs_status_ptr_t   m_recv     = nullptr;
    uint64_t           m_sent     = 0;
    uint64_t           m_received = 0;
};

TEST_F(test_sep_ucp_sleep, a_message_wakes_it_whoever_has_a_ring)
{
    struct pollfd pfd = {-1, POLLIN, 0};

    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(m_pair.worker(1), &pfd.fd));

    /* Until the sender has a ring */
    for (uint64_t i = 1; i <= 1000; ++i) {
        post();
        send(i);
        while (!is_received()) {
            m_pair.progress();
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
            while (ucp_worker_progress(m_pair.worker(1)) > 0);
            if (!is_received()) {
                arm();
            }
        }
        ucp_request_free(m_recv);
        ASSERT_EQ(i, m_received);
    }
}

} // namespace
