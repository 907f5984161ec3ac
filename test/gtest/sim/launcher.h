/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef LAUNCHER_H_
#define LAUNCHER_H_

/*
 * Commands run by mlx5sim-run, as in a shell.
 */

#include <common/patience.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace launcher_helpers {

/* a command that takes longer than this hangs */
const int time_limit_ms = 1000 * patience::seconds();

inline std::string build_file(const std::string &name)
{
    const char *dir = getenv("SEP_BUILD_DIR");

    return std::string((dir == nullptr) ? "." : dir) + "/" + name;
}

inline std::string launcher(const std::string &options = "--private")
{
    return build_file("bin/mlx5sim-run") + " " + options + " -- ";
}

struct result {
    std::string output; /* standard output and error */
    int         status; /* as of the shell */
};

/* Run a shell command; kill it with all it started if it hangs. */
inline result run(const std::string &command)
{
    result res = {"", -1};
    int fds[2], status;
    pid_t pid;

    EXPECT_EQ(0, pipe2(fds, O_CLOEXEC));
    pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", command.c_str(), (char*)nullptr);
        _exit(127);
    }

    close(fds[1]);
    for (;;) {
        struct pollfd pfd = {fds[0], POLLIN, 0};
        char buf[4096];
        ssize_t size;

        if (poll(&pfd, 1, time_limit_ms) == 0) {
            ADD_FAILURE() << command << " hangs; output: " << res.output;
            kill(-pid, SIGKILL);
        }
        size = read(fds[0], buf, sizeof(buf));
        if (size <= 0) {
            break;
        }
        res.output.append(buf, size);
    }

    close(fds[0]);
    EXPECT_EQ(pid, waitpid(pid, &status, 0));
    res.status = WIFEXITED(status) ? WEXITSTATUS(status) :
                                     128 + WTERMSIG(status);
    return res;
}

inline bool have(const std::string &program)
{
    return run("PATH=$PATH:/usr/sbin command -v " + program).status == 0;
}

} // namespace launcher_helpers

#endif
