/* SPDX-License-Identifier: BSD-3-Clause */

#include <uct/ib/sep/base/sep_budget.h>
#include <uct/ib/sep/base/sep_qps_auto.h>

#include <ucs/sys/string.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace {

/* The model's number is divided as one of the user's is, but workers have what
 * they need in any case */
TEST(test_sep_budget, auto_is_the_number_of_the_model)
{
    const unsigned long setting = UCS_ULUNITS_AUTO, number = UCT_SEP_QPS_AUTO;
    const unsigned long min = 4;
    uct_sep_budget_t *first, *budget;
    unsigned long num;

    ASSERT_EQ(UCS_OK, uct_sep_budget_join("auto", setting, min, &first));
    EXPECT_EQ(number, uct_sep_budget_share(first, setting, min));
    for (num = 1; num < number; ++num) {
        ASSERT_EQ(UCS_OK, uct_sep_budget_join("auto", setting, min, &budget));
        ASSERT_EQ(first, budget);
        ASSERT_EQ(std::max(number / (num + 1), min),
                  uct_sep_budget_share(first, setting, min));
    }
    for (; num > 0; --num) {
        uct_sep_budget_leave(first);
    }
}

} // namespace
