/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random schedules of operations on random interfaces: what arrives is what has
 * to. The seed of a schedule decides about its operations and about the
 * device, and a schedule that fails is made shorter.
 */

#include <sep/test_sep_random_world.h>
#include <common/seed.h>
#include <common/step.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

using namespace sep_random;

namespace {

/* What a process that runs schedules tells the one that started it */
struct report {
    uint64_t seed;      /* Of the schedule under way */
    uint64_t num;       /* Schedules that it has finished */
    char     wrong[2000];
    uint64_t traces[8];
};

/* Schedules that one process runs at most, and seconds for one of them. Who is
 * stuck is ended by a signal, and was found. */
const unsigned max_batch = 500;
const unsigned max_time  = 30;

/* Memory that was released is overwritten: who uses it is found more often */
const sep_uct_test::device_settings device = {{"MLX5SIM_EXEC", "stepped"},
                                              {"MALLOC_PERTURB_", "165"}};

class test_sep_uct_random : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override
    {
        m_report = (report*)mmap(NULL, sizeof(*m_report),
                                 PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, m_report);
    }

    void TearDown() override
    {
        munmap(m_report, sizeof(*m_report));
    }

    /* What went wrong in another process, or "" */
    std::string in_child(const std::function<void(world&)> &run, bool is_quiet)
    {
        int status;
        pid_t pid;

        memset(m_report, 0, sizeof(*m_report));
        pid = fork();
        if (pid == 0) {
            if (is_quiet && (freopen("/dev/null", "w", stderr) == nullptr)) {
                _exit(1);
            }
            world w;
            run(w);
            _exit((m_report->wrong[0] != '\0') ? 1 : 0);
        }
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        if (WIFSIGNALED(status)) {
            return std::string("the process was ended by a signal: ") +
                   strsignal(WTERMSIG(status));
        }
        return m_report->wrong;
    }

    void run_one(world &w, const schedule &plan)
    {
        alarm(max_time);
        m_report->seed   = plan.seed;
        std::string said = w.run(plan);
        snprintf(m_report->wrong, sizeof(m_report->wrong), "%s", said.c_str());
        ++m_report->num;
    }

    /* Shorten what fails, and say what it is */
    void explain(uint64_t seed, const std::string &said)
    {
        schedule least = shrink(generate(seed, GetParam()),
                                [this](const schedule &plan) {
            return !in_child([&](world &w) { run_one(w, plan); },
                             true).empty();
        });
        std::string last = in_child([&](world &w) { run_one(w, least); },
                                    false);

        ADD_FAILURE() << said << "\nSEP_TEST_SEED=" << seed
                      << " starts with this schedule. " << least.ops.size()
                      << " operations suffice:\n" << to_string(least)
                      << (last.empty() ? "... but not always" : last);
    }

    report *m_report;
};

TEST_P(test_sep_uct_random, schedules)
{
    seed::limit limit(200);
    unsigned done = 0;

    if (!sep_uct_test::on_device(device)) {
        return;
    }

    while (limit.allows(done) && !HasFailure()) {
        std::string said = in_child([&](world &w) {
            for (unsigned i = 0; (i < max_batch) && limit.allows(done + i) &&
                                 (m_report->wrong[0] == '\0'); ++i) {
                run_one(w, generate((uint32_t)seed::get(done + i), GetParam()));
            }
        }, false);
        done += m_report->num;
        if (!said.empty()) {
            explain(m_report->seed, said);
        }
    }
    printf("%u schedules\n", done);
}

/* Without that, a schedule that fails can't be made shorter */
TEST_P(test_sep_uct_random, schedules_do_the_same_again)
{
    const unsigned num = 8;
    uint32_t first     = seed::get();

    if (!sep_uct_test::on_device(device)) {
        return;
    }

    auto run = [this](world &w, uint64_t seed) {
        run_one(w, generate(seed, GetParam()));
        return w.trace();
    };
    std::string said = in_child([&](world &w) {
        for (unsigned i = 0; i < num; ++i) {
            m_report->traces[i] = run(w, first + i);
        }
        /* In another order */
        for (unsigned i = num; i-- > 0;) {
            if (run(w, first + i) != m_report->traces[i]) {
                snprintf(m_report->wrong, sizeof(m_report->wrong),
                         "seed %u did something else", first + i);
                break;
            }
        }
    }, false);
    EXPECT_EQ("", said);
}

INSTANTIATE_TEST_SUITE_P(faults, test_sep_uct_random, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool> &info) {
                             return info.param ? "yes" : "no";
                         });

} // namespace
