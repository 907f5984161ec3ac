/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_BUDGET_DIR_H
#define TEST_SEP_BUDGET_DIR_H

#include <uct/ib/sep/base/sep_budget_node.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <string>

/* A directory for accounts of UCX_SEP_MAX_QPS_NODE in place of /dev/shm */
class budget_dir {
public:
    void enter()
    {
        char dir[] = "/tmp/sep_budget.XXXXXX";

        ASSERT_NE(nullptr, mkdtemp(dir));
        path                    = dir;
        m_before                = uct_sep_budget_node_dir;
        uct_sep_budget_node_dir = path.c_str();
    }

    /* The last worker has left nothing behind */
    void leave()
    {
        uct_sep_budget_node_dir = m_before;
        EXPECT_EQ(0, rmdir(path.c_str())) << path;
    }

    std::string path;

private:
    const char  *m_before = nullptr;
};

#endif
