/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

using namespace sep_uct_test;

namespace {

/* Completion credits that run out in unusual places */
class test_sep_uct_credits : public test_sep_uct_mode {
};

/* A pending request would have waited for ever: there was a credit left when
 * the fence began, so nobody asked for completions of what holds the others. */
TEST_P(test_sep_uct_credits, a_fence_that_takes_the_last_one_is_not_the_end)
{
    pending_req req;
    bool is_sent = false;

    auto send = [&]() { return uct_ep_am_short(ep(), 1, 0, NULL, 0); };

    start({{"TX_CQ_LEN", "16"}, {"TX_CQ_MODERATION", "100"}});
    ASSERT_EQ(UCS_OK, retry(send));
    flush();
    while (m_local->sep()->tx.cq_credits > 0) {
        ASSERT_EQ(UCS_OK, send());
    }

    ASSERT_EQ(UCS_OK, uct_ep_fence(ep(), 0));
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, send());
    req.func = [&]() {
        ucs_status_t status = send();

        is_sent = (status == UCS_OK);
        return status;
    };
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &req.req, 0));
    m_local->wait([&]() { return is_sent; });
    flush();
}

INSTANTIATE_TEST_SUITE_P(api, test_sep_uct_credits,
                         ::testing::ValuesIn(api_modes()), mode_name);

} // namespace
