/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

extern "C" {
#include <uct/ib/sep/compat/sep_compat_symbols.h>
#include <uct/ib/sep/module/sep_abi.h>
}

#include <gtest/gtest.h>
#include <string>

class test_sep_abi : public ::testing::Test {
protected:
    void SetUp() override
    {
        uct_sep_abi_get_built(&m_built);
        m_loaded = m_built;
    }

    /* What is reported when the loaded UCX is m_loaded. */
    std::string mismatch()
    {
        char diff[1024];

        m_status = uct_sep_abi_compare(&m_built, &m_loaded, diff,
                                       sizeof(diff));
        return diff;
    }

    uct_sep_abi_t m_built;
    uct_sep_abi_t m_loaded;
    ucs_status_t  m_status;
};

TEST_F(test_sep_abi, probes_find_the_ucx_it_was_built_for)
{
    uct_sep_abi_get_loaded(&m_loaded);
    EXPECT_EQ("", mismatch());
    EXPECT_EQ(UCS_OK, m_status);
    EXPECT_EQ(m_built.assertions, m_loaded.assertions);
    EXPECT_EQ(m_built.stats, m_loaded.stats);
    EXPECT_EQ(m_built.symbols, m_loaded.symbols);
    EXPECT_GT(m_loaded.sizes[1], m_loaded.sizes[0]); /* uct_base_iface_t */
    EXPECT_EQ(UCS_OK, uct_sep_abi_check());
}

TEST_F(test_sep_abi, unknown_version_is_not_a_mismatch)
{
    m_loaded.version = NULL;
    EXPECT_EQ("", mismatch());
    EXPECT_EQ(UCS_OK, m_status);
}

TEST_F(test_sep_abi, other_series_names_both)
{
    static const char *others[] = {"9.8.7", "1.2.0", "1.222.0", "1.2", "1", ""};

    m_built.version = "1.22.0";
    for (auto other : others) {
        m_loaded.version = other;
        EXPECT_EQ(std::string("release 1.22.0 here and ") + other +
                  " in the loaded UCX", mismatch());
        EXPECT_EQ(UCS_ERR_UNSUPPORTED, m_status);
    }
}

TEST_F(test_sep_abi, a_module_is_for_the_whole_series)
{
    static const char *others[] = {"1.22.0", "1.22.1", "1.22.10", "1.22"};

    m_built.version = "1.22.0";
    for (auto other : others) {
        m_loaded.version = other;
        EXPECT_EQ("", mismatch());
        EXPECT_EQ(UCS_OK, m_status);
    }
}

TEST_F(test_sep_abi, other_statistics_name_both)
{
    m_built.stats  = 1;
    m_loaded.stats = 0;
    EXPECT_EQ("statistics on here and off in the loaded UCX", mismatch());
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, m_status);
}

TEST_F(test_sep_abi, assertions_are_no_mismatch)
{
    m_loaded.assertions = !m_built.assertions;
    EXPECT_EQ("", mismatch());
    EXPECT_EQ(UCS_OK, m_status);
}

TEST_F(test_sep_abi, each_function_that_came_with_a_change_is_compared)
{
    unsigned i;

    for (i = 0; uct_sep_compat_symbols[i].name != NULL; ++i) {
        m_loaded          = m_built;
        m_loaded.symbols ^= 1u << i;
        EXPECT_EQ(std::string(uct_sep_compat_symbols[i].name) + "() " +
                  ((m_built.symbols & (1u << i)) ?
                   "is here and is not in the loaded UCX" :
                   "is not here and is in the loaded UCX"), mismatch());
        EXPECT_EQ(UCS_ERR_UNSUPPORTED, m_status);
    }
    EXPECT_GT(i, 0u);
    EXPECT_LE(i, UCT_SEP_COMPAT_MAX_SYMBOLS);
}

TEST_F(test_sep_abi, each_size_is_compared)
{
    for (unsigned i = 0; i < UCT_SEP_ABI_NUM_CLASSES; ++i) {
        m_loaded           = m_built;
        m_loaded.sizes[i] += 8;
        EXPECT_NE("", mismatch());
        EXPECT_EQ(UCS_ERR_UNSUPPORTED, m_status);
    }
}

TEST_F(test_sep_abi, short_buffer_cuts_the_text_only)
{
    char diff[16];

    m_loaded.version   = "9.8.7";
    m_loaded.sizes[0] += 8;
    m_loaded.sizes[1] += 8;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_sep_abi_compare(&m_built, &m_loaded, diff, sizeof(diff)));
    EXPECT_EQ(sizeof(diff) - 1, strlen(diff));
}
