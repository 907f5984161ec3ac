/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/process.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace process {

static std::vector<std::string> environment(const changes &what)
{
    std::vector<std::string> result = what.set, gone = what.unset;

    for (auto &variable : what.set) {
        gone.push_back(variable.substr(0, variable.find('=') + 1));
    }
    for (char **entry = environ; *entry != nullptr; ++entry) {
        if (std::none_of(gone.begin(), gone.end(), [&](const std::string &s) {
                return strncmp(*entry, s.c_str(), s.size()) == 0;
            })) {
            result.push_back(*entry);
        }
    }
    return result;
}

static std::vector<char*> pointers(const std::vector<std::string> &strings)
{
    std::vector<char*> result;

    for (auto &string : strings) {
        result.push_back(const_cast<char*>(string.c_str()));
    }
    result.push_back(nullptr);
    return result;
}

std::string self()
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path));

    return std::string(path, std::max<ssize_t>(length, 0));
}

pid_t start(const std::vector<std::string> &argv, const changes &what)
{
    std::vector<std::string> env = environment(what);
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int ret;

    posix_spawn_file_actions_init(&actions);
    for (auto &fd : what.fds) {
        posix_spawn_file_actions_adddup2(&actions, fd.first, fd.second);
    }
    ret = posix_spawn(&pid, argv[0].c_str(), &actions, nullptr,
                      pointers(argv).data(), pointers(env).data());
    posix_spawn_file_actions_destroy(&actions);
    return (ret == 0) ? pid : -1;
}

pid_t start_test(const std::string &name, changes what)
{
    what.unset.push_back("GTEST_");
    return start({self(), "--gtest_filter=" + name,
                  "--gtest_also_run_disabled_tests", "--gtest_brief=1"},
                 what);
}

int wait(pid_t pid)
{
    int status;

    if ((pid < 0) || (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) != pid)) {
        return -1;
    }
    return status;
}

int run(const std::vector<std::string> &argv, changes what,
        std::string *output_p)
{
    char buffer[4096];
    ssize_t length;
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) != 0) {
        return -1;
    }
    what.fds.emplace_back(fds[1], STDOUT_FILENO);
    pid = start(argv, what);
    close(fds[1]);
    while ((length = TEMP_FAILURE_RETRY(
                    read(fds[0], buffer, sizeof(buffer)))) > 0) {
        output_p->append(buffer, length);
    }
    close(fds[0]);
    return wait(pid);
}

} // namespace process
