/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/seed.h>

#include <gtest/gtest.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace {

/* This program, with one of the tests below that are disabled otherwise */
class test_seed : public testing::Test {
protected:
    struct result_t {
        int         status;
        std::string output;

        bool has(const std::string &text) const
        {
            return output.find(text) != std::string::npos;
        }
    };

    static std::string self()
    {
        char path[4096];
        ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

        return std::string(path, (length > 0) ? length : 0);
    }

    /* The environment is as "NAME='value' ..." */
    static result_t run(const std::string &env, const std::string &test)
    {
        std::string command =
                "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_STATUS_FILE "
                "-u GTEST_SHARD_INDEX -u GTEST_OUTPUT -u SEP_TEST_SEED "
                "-u SEP_TEST_CASES " + env + " '" + self() +
                "' --gtest_filter=test_seed.DISABLED_" + test +
                " --gtest_also_run_disabled_tests 2>&1";
        FILE *stream = popen(command.c_str(), "r");
        result_t result;
        char buf[512];

        EXPECT_NE(nullptr, stream);
        while (fgets(buf, sizeof(buf), stream) != nullptr) {
            result.output += buf;
        }
        result.status = WEXITSTATUS(pclose(stream));
        return result;
    }

    static std::string value_after(const std::string &text, const char *name)
    {
        size_t at = text.find(name);

        EXPECT_NE(std::string::npos, at) << text;
        at += strlen(name);
        return text.substr(at, text.find_first_not_of("0123456789", at) - at);
    }
};

} // namespace

TEST_F(test_seed, unset_it_is_always_the_same)
{
    result_t first  = run("", "random_passes");
    result_t second = run("", "random_passes");

    EXPECT_EQ(0, first.status) << first.output;
    EXPECT_TRUE(first.has("seed 1 and 6, cases 200")) << first.output;
    EXPECT_TRUE(second.has("seed 1 and 6, cases 200")) << second.output;
    EXPECT_FALSE(first.has("SEP_TEST_SEED")) << first.output;
}

TEST_F(test_seed, what_was_drawn_is_printed_and_does_the_same_again)
{
    result_t drawn    = run("SEP_TEST_SEED=random", "random_passes");
    std::string value = value_after(drawn.output, "SEP_TEST_SEED=");
    result_t again    = run("SEP_TEST_SEED=" + value, "random_passes");

    EXPECT_EQ(0, drawn.status) << drawn.output;
    EXPECT_TRUE(drawn.has("SEP_TEST_SEED=" + value + " was drawn"));
    EXPECT_EQ(value, value_after(drawn.output, "seed ")) << drawn.output;
    EXPECT_EQ(value, value_after(again.output, "seed ")) << again.output;
    EXPECT_NE(value, value_after(run("SEP_TEST_SEED=random",
                                     "random_passes").output, "seed "));
}

TEST_F(test_seed, failure_of_a_random_test_says_how_to_repeat_it)
{
    result_t result = run("SEP_TEST_SEED=77", "random_fails");

    EXPECT_EQ(1, result.status);
    EXPECT_TRUE(result.has("SEP_TEST_SEED=77 does "
                           "test_seed.DISABLED_random_fails again"))
            << result.output;
}

TEST_F(test_seed, failure_of_another_test_does_not)
{
    result_t result = run("SEP_TEST_SEED=77", "fails");

    EXPECT_EQ(1, result.status);
    EXPECT_FALSE(result.has("SEP_TEST_SEED")) << result.output;
}

TEST_F(test_seed, name_of_a_test_that_uses_it_must_say_so)
{
    result_t result = run("", "uses_a_seed");

    EXPECT_EQ(1, result.status);
    EXPECT_TRUE(result.has("name must contain 'random' or 'fuzz'"))
            << result.output;
}

TEST_F(test_seed, malformed_values_are_refused)
{
    for (std::string value : {"", " ", "abc", "-1", "+1", "0x10", "1 ", "1.5",
                              "4294967296", "99999999999999999999", "Random",
                              "random 1"}) {
        result_t result = run("SEP_TEST_SEED='" + value + "'", "random_passes");

        EXPECT_EQ(2, result.status) << value << result.output;
        EXPECT_TRUE(result.has("SEP_TEST_SEED='" + value + "' is not "
                               "understood, it must be a number from 0 to "
                               "4294967295, or random")) << result.output;
    }
    for (std::string value : {"", "0", "many", "-5", "100001"}) {
        result_t result = run("SEP_TEST_CASES='" + value + "'",
                              "random_passes");

        EXPECT_EQ(2, result.status) << value << result.output;
        EXPECT_TRUE(result.has("SEP_TEST_CASES='" + value + "'"))
                << result.output;
    }
}

TEST_F(test_seed, cases_are_percent)
{
    EXPECT_TRUE(run("SEP_TEST_CASES=1", "random_passes").has("cases 2"));
    EXPECT_TRUE(run("SEP_TEST_CASES=350", "random_passes").has("cases 700"));
    EXPECT_TRUE(run("SEP_TEST_SEED=4294967295",
                    "random_passes").has("seed 4294967295 and 4294967300"));
}

TEST_F(test_seed, DISABLED_random_passes)
{
    printf("seed %lu and %lu, cases %u\n", seed::get(), seed::get(5),
           seed::cases(200));
}

TEST_F(test_seed, DISABLED_random_fails)
{
    seed::get();
    FAIL() << "on purpose";
}

TEST_F(test_seed, DISABLED_fails)
{
    FAIL() << "on purpose";
}

TEST_F(test_seed, DISABLED_uses_a_seed)
{
    seed::get();
}
