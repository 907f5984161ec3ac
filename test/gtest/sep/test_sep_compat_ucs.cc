/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

extern "C" {
#include <uct/ib/sep/compat/sep_compat_ucs.h>
}

#include <gtest/gtest.h>

/* UCX 1.20.1 and later do not lock it otherwise, and workers share a cache */
TEST(test_sep_compat_ucs, list_of_unused_regions_is_locked)
{
    uct_sep_compat_rcache_config_t config = {};
    ucs_rcache_params_t params            = {};

    uct_sep_compat_rcache_params(&config, 4096, &params);
    EXPECT_TRUE(params.flags & UCS_BIT(3));
}
