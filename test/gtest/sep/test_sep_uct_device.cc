/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/process.h>
#include <sep/test_sep_uct.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sep_uct_test {

static const char *env_on_device = "SEP_TEST_ON_DEVICE";

static std::string this_test()
{
    const ::testing::TestInfo *info =
            ::testing::UnitTest::GetInstance()->current_test_info();

    return std::string(info->test_suite_name()) + "." + info->name();
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
    process::changes what;
    what.unset = {"MLX5SIM_"}; /* Settings of this device */
    what.set   = {std::string(env_on_device) + "=" + this_test(),
                  "MLX5SIM_DIR=" + own_dir};
    for (auto &setting : config) {
        what.set.push_back(setting.first + "=" + setting.second);
    }
    EXPECT_EQ(0, process::wait(process::start_test(this_test(), what)))
            << this_test() << " on a device of its own";

    std::ifstream violations(own_dir + "/violations");
    for (std::string line; std::getline(violations, line);) {
        ADD_FAILURE() << "violation: " << line;
    }
    std::filesystem::remove_all(own_dir);
    return false;
}

} // namespace sep_uct_test
