/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file process.h
 *
 * Processes that a test starts with another environment. This one's stays as it
 * is, since other threads read it.
 */

#ifndef TEST_COMMON_PROCESS_H_
#define TEST_COMMON_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace process {

/** What is different in the other process. */
struct changes {
    /** Variables that it has: "NAME=value" */
    std::vector<std::string> set;
    /** What variables start with that it does not inherit: "NAME=", "GTEST_" */
    std::vector<std::string> unset;
    /** Descriptors, in the order in which they are made: the one here, and its
     *  number there. It inherits no other one that is closed on exec. */
    std::vector<std::pair<int, int>> fds;
};

/** The file of this program. The link in /proc can't be run under valgrind. */
std::string self();

/** Start a program. Returns its process, or -1. */
pid_t start(const std::vector<std::string> &argv, const changes &what);

/** Start this program with one test, which may be a disabled one. It does not
 *  care what GoogleTest was told here: shards, and files of results. */
pid_t start_test(const std::string &name, changes what);

/** Wait for the end of a process. Returns its status, as waitpid() has it, or
 *  -1 if there is none. */
int wait(pid_t pid);

/** Run a program to its end, and get what it prints to its standard output.
 *  Returns its status, or -1. */
int run(const std::vector<std::string> &argv, changes what,
        std::string *output_p);

} // namespace process

#endif
