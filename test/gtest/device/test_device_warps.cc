/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A GPU's part: bench/devx_warps, whose warps post to queues of firmware
 * commands, and which looks at the order of what comes.
 */

#include <device/device.h>

#include <cstdio>
#include <sstream>

#include <unistd.h>

using namespace device;

namespace {

class test_device_warps : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
    }

    /* The program with some options; what it prints: {column: cell} */
    std::map<std::string, std::string> warps(std::vector<std::string> options)
    {
        const std::string program = build_file("bench/devx_warps");
        FILE *file                = tmpfile();
        std::map<std::string, std::string> row;
        std::string name, cell;

        options.insert(options.begin(), program);
        run(1, [&](rank&) {
            std::vector<char*> argv;

            for (std::string &option : options) {
                argv.push_back(&option[0]);
            }
            argv.push_back(nullptr);
            REQUIRE(dup2(fileno(file), STDOUT_FILENO) >= 0);
            execv(program.c_str(), argv.data());
            REQUIRE(false);
        });

        char printed[512] = {0};
        rewind(file);
        EXPECT_GT(fread(printed, 1, sizeof(printed) - 1, file), 0ul);
        fclose(file);
        std::istringstream lines(printed), names, cells;
        std::getline(lines, name);
        std::getline(lines, cell);
        names.str(name);
        cells.str(cell);
        while (std::getline(names, name, '\t') &&
               std::getline(cells, cell, '\t')) {
            row[name] = cell;
        }
        return row;
    }

    static const std::vector<std::string> sharing;
};

const std::vector<std::string> test_device_warps::sharing = {
    "thread", "warp", "block", "all"
};

} // namespace

/* In 2 blocks of 4 warps of 8 lanes, and in queues that go round */
TEST_F(test_device_warps, each_write_arrives_in_order)
{
    const char *queues[] = {"64", "8", "2", "1"};

    for (unsigned i = 0; i < sharing.size(); ++i) {
        for (const char *pages : {"-oy", "-op"}) {
            auto row = warps({"-s", sharing[i], "-n", "64", pages});

            EXPECT_EQ("4096", row["messages"]);
            EXPECT_EQ(queues[i], row["qps"]);
            EXPECT_EQ(queues[i], row["cqs"]);
            EXPECT_EQ((pages[2] == 'p') ? queues[i] : "1", row["uars"]);
        }
    }
    EXPECT_EQ(0, stat_total("qps"));
}

/* Of what lanes post by themselves, each rings twice; of what a warp posts at
 * once, the warp does. All completions are counted: one in half a queue, and
 * those of the last messages. */
TEST_F(test_device_warps, doorbells_and_completions_are_those_of_the_sharing)
{
    auto counted = [&](const std::string &key) {
        std::string json;

        EXPECT_EQ(0, stat("--json --all", &json));
        size_t at = json.find("\"" + key + "\":", json.find("\"totals\""));
        return atol(json.c_str() + at + key.size() + 3);
    };
    auto more = [&](const std::vector<std::string> &options) {
        long doorbells = counted("doorbells"), cqes = counted("cqes");

        warps(options);
        return std::make_pair(counted("doorbells") - doorbells,
                              counted("cqes") - cqes);
    };

    /* 1024 messages of 64 lanes; queues of 64 */
    warps({"-n", "1", "-o"}); /* makes the instance */
    EXPECT_EQ(std::make_pair(2048l, 128l),
              more({"-s", "thread", "-n", "16", "-d", "64", "-o"}));
    EXPECT_EQ(std::make_pair(256l, 96l),
              more({"-s", "warp", "-n", "16", "-d", "64", "-o"}));
    EXPECT_EQ(std::make_pair(256l, 96l),
              more({"-s", "all", "-n", "16", "-d", "64", "-o"}));
    EXPECT_EQ(std::make_pair(2048l, 96l),
              more({"-s", "all", "-n", "16", "-d", "64", "-oa"}));
}

TEST_F(test_device_warps, warps_that_come_between_each_other_keep_the_order)
{
    set_env("MLX5SIM_EXEC", "stepped");
    for (const char *seed : {"1", "2", "3"}) {
        set_env("MLX5SIM_SEED", seed);
        for (const std::string &who : sharing) {
            for (const char *alone : {"-p", "-a"}) {
                warps({"-s", who, "-n", "12", "-l", "4", "-d", "8", "-r", seed,
                       alone});
            }
        }
        warps({"-s", "all", "-n", "24", "-d", "256", "-r", seed, "-y"});
    }
}

TEST_F(test_device_warps, a_seed_does_the_same_again)
{
    set_env("MLX5SIM_EXEC", "stepped");
    auto waits = [&](const char *seed) {
        return warps({"-s", "all", "-n", "8", "-d", "32", "-r",
                      seed})["waits"];
    };

    EXPECT_EQ(waits("1"), waits("1"));
    EXPECT_NE(waits("1"), waits("2"));
}

TEST_F(test_device_warps, warps_at_once_keep_the_order)
{
    static const struct {
        const char *exec, *seed;
    } ways[] = {
        {"sync", "1"}, {"deferred", "1"}, {"deferred", "2"}, {"deferred", "3"}
    };

    for (const auto &way : ways) {
        set_env("MLX5SIM_EXEC", way.exec);
        set_env("MLX5SIM_SEED", way.seed);
        for (const std::string &who : sharing) {
            warps({"-s", who, "-n", "16", "-d", "32"});
        }
        warps({"-s", "block", "-n", "8", "-d", "32", "-a"});
    }
}
