/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_MODEL_H
#define TEST_MODEL_H

#include <model/policy.h>
#include <model/rate.h>

#include <gtest/gtest.h>

#include <string>

/* What the tests of the model share: SEP_TEST_TOP is the top directory of the
 * sources. */

static inline std::string test_model_path(const std::string &name)
{
    return std::string(SEP_TEST_TOP) + "/" + name;
}

static inline sep_model_adapter_t test_model_adapter(const char *name)
{
    char message[SEP_MODEL_MESSAGE_MAX] = "";
    sep_model_adapter_t adapter         = {};

    EXPECT_EQ(0, sep_model_adapter_read(
                         test_model_path("src/model/adapters.conf").c_str(),
                         name, &adapter, message)) << message;
    return adapter;
}

static inline sep_model_load_t
test_model_load(sep_model_op_t op, const std::string &policy, unsigned threads,
                unsigned depth, size_t bytes = 8)
{
    sep_model_load_t load = {};

    load.op      = op;
    load.threads = threads;
    load.depth   = depth;
    load.bytes   = bytes;
    EXPECT_EQ(0, sep_model_policy_find(policy.c_str(), &load.sharing));
    return load;
}

static inline sep_model_rate_t
test_model_rate(const sep_model_adapter_t &adapter,
                const sep_model_load_t &load)
{
    sep_model_rate_t rate = {};

    sep_model_predict(&adapter, &load, &rate);
    return rate;
}

#endif
