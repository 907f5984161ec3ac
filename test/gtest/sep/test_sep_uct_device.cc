/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

extern char **environ;

namespace sep_uct_test {

static const char *env_on_device = "SEP_TEST_ON_DEVICE";

static std::string this_test()
{
    const ::testing::TestInfo *info =
            ::testing::UnitTest::GetInstance()->current_test_info();

    return std::string(info->test_suite_name()) + "." + info->name();
}

/* Environment of the process that runs the test */
static std::vector<std::string>
nested_environment(const std::string &dir, const device_settings &config)
{
    std::vector<std::string> result;

    for (char **entry = environ; *entry != NULL; ++entry) {
        std::string text = *entry;
        /* Settings of this device, and where gtest is to write its results */
        if ((text.compare(0, 8, "MLX5SIM_") != 0) &&
            (text.compare(0, 6, "GTEST_") != 0)) {
            result.push_back(text);
        }
    }

    result.push_back(std::string(env_on_device) + "=" + this_test());
    result.push_back("MLX5SIM_DIR=" + dir);
    for (auto &setting : config) {
        result.push_back(setting.first + "=" + setting.second);
    }
    return result;
}

static int run(const std::vector<std::string> &env)
{
    std::string filter = "--gtest_filter=" + this_test();
    const char *argv[] = {"/proc/self/exe", filter.c_str(), "--gtest_brief=1",
                          NULL};
    std::vector<char*> envp;
    int status;
    pid_t pid;

    for (auto &entry : env) {
        envp.push_back(const_cast<char*>(entry.c_str()));
    }
    envp.push_back(NULL);

    if ((posix_spawn(&pid, argv[0], NULL, NULL, const_cast<char**>(argv),
                     envp.data()) != 0) ||
        (waitpid(pid, &status, 0) != pid)) {
        throw std::runtime_error("could not start the program again");
    }
    return status;
}

bool on_device(const device_settings &config)
{
    const char *dir = getenv("MLX5SIM_DIR");

    if (getenv(env_on_device) != NULL) {
        return true;
    }

    if (dir == NULL) {
        /* There may be a device, but not one that can be had as one likes */
        if (getenv("SEP_TEST_NEED_DEVICE") != NULL) {
            ADD_FAILURE() << "this is not the software device";
        }
        return false;
    }

    std::string own_dir = std::string(dir) + ".device." +
                          std::to_string(getpid());
    EXPECT_EQ(0, run(nested_environment(own_dir, config)))
            << this_test() << " on a device of its own";

    std::ifstream violations(own_dir + "/violations");
    for (std::string line; std::getline(violations, line);) {
        ADD_FAILURE() << "violation: " << line;
    }
    EXPECT_EQ(0, system(("rm -rf '" + own_dir + "'").c_str()));
    return false;
}

} // namespace sep_uct_test
