/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file seed.h
 *
 * Where all random tests get their randomness from.
 *
 * SEP_TEST_SEED is a number from 0 to 4294967295, or "random" for one that is
 * drawn; without it, it is 1, so that runs are alike. A drawn one is printed
 * when the program starts, any one when a test that used it fails: with
 * SEP_TEST_SEED set to it, the test does the same again.
 *
 * SEP_TEST_CASES is how much these tests do, in percent of the usual. Some go
 * on for SEP_TEST_SECONDS instead.
 *
 * The name of a test that uses the seed contains "random" or "fuzz" (the name
 * of its suite will do), so that --gtest_filter='*random*:*fuzz*' is all of
 * them.
 */

#ifndef TEST_COMMON_SEED_H_
#define TEST_COMMON_SEED_H_

#include <stdint.h>

namespace seed {

/**
 * Seed for a generator of the current test, which fails if its name does not
 * say that it is random. To be called before the test starts another process,
 * so that the process that reports the failure knows.
 *
 * @param number  Which of the test's generators it is for; those of one test
 *                should differ.
 */
uint64_t get(uint64_t number = 0);

/**
 * How many cases to do.
 *
 * @param usual  Number without SEP_TEST_CASES.
 *
 * @return At least 1.
 */
unsigned cases(unsigned usual);

/** Cases of a test that may go on for a given time. */
class limit {
public:
    /** @param usual  Cases without SEP_TEST_SECONDS and SEP_TEST_CASES. */
    explicit limit(unsigned usual);

    /** Whether to do another one after this many; the first one always. */
    bool allows(unsigned done) const;

private:
    unsigned m_cases;
    uint64_t m_end; /* Second of CLOCK_MONOTONIC, 0: cases count */
};

} // namespace seed

#endif
