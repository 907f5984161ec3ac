/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/seed.h>

#include <gtest/gtest.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <random>
#include <string>

namespace {

const char SEED_NAME[]  = "SEP_TEST_SEED";
const char CASES_NAME[] = "SEP_TEST_CASES";
const char SECONDS_NAME[] = "SEP_TEST_SECONDS";

uint64_t g_seed    = 1;
uint64_t g_percent = 100;
uint64_t g_seconds = 0;
bool     g_is_used = false; /* by the current test */

[[noreturn]] void refuse(const char *name, const char *value,
                         const char *allowed)
{
    fprintf(stderr, "%s='%s' is not understood, it must be %s\n", name, value,
            allowed);
    exit(2);
}

/* All of the text is a decimal number */
bool parse(const char *text, uint64_t min, uint64_t max, uint64_t *value_p)
{
    char *end;

    errno    = 0;
    *value_p = strtoull(text, &end, 10);
    return (strspn(text, "0123456789") == strlen(text)) && (end != text) &&
           (errno == 0) && (*value_p >= min) && (*value_p <= max);
}

void read_seed()
{
    const char *text = getenv(SEED_NAME);

    if (text == nullptr) {
        return;
    }
    if (strcmp(text, "random") != 0) {
        if (!parse(text, 0, UINT32_MAX, &g_seed)) {
            refuse(SEED_NAME, text,
                   "a number from 0 to 4294967295, or random");
        }
        return;
    }
    g_seed = std::random_device()();
    /* Programs that tests start shall not draw another one */
    setenv(SEED_NAME, std::to_string(g_seed).c_str(), 1);
    printf("%s=%lu was drawn\n", SEED_NAME, g_seed);
    fflush(stdout);
}

void read_percent()
{
    const char *text = getenv(CASES_NAME);

    if ((text != nullptr) && !parse(text, 1, 100000, &g_percent)) {
        refuse(CASES_NAME, text, "a number of percent from 1 to 100000");
    }
}

void read_seconds()
{
    const char *text = getenv(SECONDS_NAME);

    if ((text != nullptr) && !parse(text, 1, 1000000, &g_seconds)) {
        refuse(SECONDS_NAME, text, "a number of seconds from 1 to 1000000");
    }
}

uint64_t now()
{
    timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

class seed_listener : public testing::EmptyTestEventListener {
public:
    void OnTestProgramStart(const testing::UnitTest &) override
    {
        read_seed();
        read_percent();
        read_seconds();
    }

    void OnTestStart(const testing::TestInfo &) override
    {
        g_is_used = false;
    }

    void OnTestEnd(const testing::TestInfo &info) override
    {
        if (g_is_used && info.result()->Failed()) {
            printf("%s=%lu does %s.%s again\n", SEED_NAME, g_seed,
                   info.test_suite_name(), info.name());
            fflush(stdout);
        }
    }
};

/* main() is GoogleTest's. Its list of listeners exists as soon as it is
 * used. */
const bool g_is_listening = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new seed_listener);
    return true;
}();

bool is_name_right(const testing::TestInfo &info)
{
    std::string name = std::string(info.test_suite_name()) + "." + info.name();

    return (name.find("random") != std::string::npos) ||
           (name.find("fuzz") != std::string::npos);
}

} // namespace

uint64_t seed::get(uint64_t number)
{
    const testing::TestInfo *info =
            testing::UnitTest::GetInstance()->current_test_info();

    g_is_used = true;
    if ((info != nullptr) && !is_name_right(*info)) {
        ADD_FAILURE() << "uses a seed, so its name must contain 'random' or "
                         "'fuzz'";
    }
    return g_seed + number;
}

unsigned seed::cases(unsigned usual)
{
    uint64_t num = usual * g_percent / 100;

    return (num > 0) ? num : 1;
}

seed::limit::limit(unsigned usual) :
    m_cases(cases(usual)), m_end((g_seconds > 0) ? now() + g_seconds : 0)
{
}

bool seed::limit::allows(unsigned done) const
{
    return (m_end > 0) ? ((done == 0) || (now() < m_end)) : (done < m_cases);
}
