/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_budget_dir.h>
#include <sep/test_sep_uct.h>

#include <uct/ib/sep/base/sep_budget.h>
#include <uct/ib/sep/base/sep_budget_node.h>
#include <uct/ib/sep/base/sep_qps_auto.h>

#include <ucs/sys/string.h>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <string>

using sep_uct_test::expect_errors;

namespace {

/* The model's number is divided as one of the user's is, but workers have what
 * they need in any case */
TEST(test_sep_budget, auto_is_the_number_of_the_model)
{
    const unsigned long setting = UCS_ULUNITS_AUTO, number = UCT_SEP_QPS_AUTO;
    const unsigned long min = 4;
    uct_sep_budget_t *first, *budget;
    unsigned long num;

    ASSERT_EQ(UCS_OK, uct_sep_budget_join("auto", setting, min, &first));
    EXPECT_EQ(number, uct_sep_budget_share(first, setting, min));
    for (num = 1; num < number; ++num) {
        ASSERT_EQ(UCS_OK, uct_sep_budget_join("auto", setting, min, &budget));
        ASSERT_EQ(first, budget);
        ASSERT_EQ(std::max(number / (num + 1), min),
                  uct_sep_budget_share(first, setting, min));
    }
    for (; num > 0; --num) {
        uct_sep_budget_leave(first);
    }
}

TEST(test_sep_budget, each_device_has_its_own)
{
    uct_sep_budget_t *first, *second;

    ASSERT_EQ(UCS_OK, uct_sep_budget_join("first", 4, 2, &first));
    ASSERT_EQ(UCS_OK, uct_sep_budget_join("second", 4, 2, &second));
    EXPECT_EQ(4u, uct_sep_budget_share(first, 4, 2));
    EXPECT_EQ(4u, uct_sep_budget_share(second, 4, 2));
    uct_sep_budget_leave(second);
    uct_sep_budget_leave(first);
}

/* The account of all processes, in a directory of its own */
class test_sep_budget_node : public ::testing::Test {
protected:
    typedef uct_sep_budget_node_t *worker;

    static constexpr unsigned long MIN = 2;

    void SetUp() override
    {
        ASSERT_NO_FATAL_FAILURE(m_dir.enter());
    }

    void TearDown() override
    {
        m_dir.leave();
    }

    static ucs_status_t join(unsigned long max, worker *w_p)
    {
        return uct_sep_budget_node_join("test", 0x1234, max, MIN, w_p);
    }

    static worker join(unsigned long max)
    {
        worker w = nullptr;

        EXPECT_EQ(UCS_OK, join(max, &w));
        return w;
    }

    /* The only file that there is */
    std::string path()
    {
        DIR *dir = opendir(m_dir.path.c_str());
        std::string found;

        while (struct dirent *entry = readdir(dir)) {
            if (entry->d_name[0] != '.') {
                found = m_dir.path + "/" + entry->d_name;
            }
        }
        closedir(dir);
        return found;
    }

    /* Another process, which lives until it is killed. It has done what it is
     * to do when this returns. */
    static pid_t start(const std::function<void()> &run)
    {
        int fds[2];
        char byte = 0;
        pid_t pid;

        EXPECT_EQ(0, pipe(fds));
        pid = fork();
        if (pid == 0) {
            run();
            if (write(fds[1], &byte, 1) == 1) {
                pause();
            }
            _exit(1);
        }
        close(fds[1]);
        EXPECT_EQ(1, read(fds[0], &byte, 1));
        close(fds[0]);
        return pid;
    }

    static void end(pid_t pid)
    {
        int status;

        EXPECT_EQ(0, kill(pid, SIGKILL));
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
    }

    budget_dir m_dir;
};

TEST_F(test_sep_budget_node, each_has_a_share_and_what_others_leave)
{
    worker a = join(10);

    EXPECT_EQ(10, uct_sep_budget_node_allowance(a));
    EXPECT_FALSE(uct_sep_budget_node_hold(a, 11, 0));
    EXPECT_EQ(0u, uct_sep_budget_node_held(a));
    EXPECT_TRUE(uct_sep_budget_node_hold(a, 8, 0));

    /* What is left, and its share even if it is not left */
    worker b = join(10);
    EXPECT_TRUE(uct_sep_budget_node_hold(b, 2, 0));
    EXPECT_TRUE(uct_sep_budget_node_hold(b, 5, 0));
    EXPECT_FALSE(uct_sep_budget_node_hold(b, 6, 0));

    /* Who has more gets nothing, and is told to give it back */
    EXPECT_FALSE(uct_sep_budget_node_hold(a, 9, 0));
    EXPECT_EQ(8u, uct_sep_budget_node_held(a));
    EXPECT_EQ(5, uct_sep_budget_node_allowance(a));
    EXPECT_TRUE(uct_sep_budget_node_hold(a, 2, 0));
    EXPECT_TRUE(uct_sep_budget_node_hold(b, 8, 0));
    EXPECT_FALSE(uct_sep_budget_node_hold(b, 9, 0));

    /* The exception */
    EXPECT_TRUE(uct_sep_budget_node_hold(b, 9, 1));
    EXPECT_EQ(9u, uct_sep_budget_node_held(b));

    uct_sep_budget_node_leave(b);
    EXPECT_EQ(10, uct_sep_budget_node_allowance(a));
    uct_sep_budget_node_leave(a);
}

TEST_F(test_sep_budget_node, too_little_is_refused)
{
    worker a = join(5), b = join(5), c;
    {
        expect_errors hide;

        EXPECT_EQ(UCS_ERR_INVALID_PARAM, join(5, &c));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR,
                                 "UCX_SEP_MAX_QPS_NODE=5 is too little for 3"));
    }
    /* It has left nothing behind */
    EXPECT_TRUE(uct_sep_budget_node_hold(a, 5, 0));
    uct_sep_budget_node_leave(b);
    uct_sep_budget_node_leave(a);
}

TEST_F(test_sep_budget_node, with_auto_nobody_is_refused)
{
    std::vector<worker> all;
    const unsigned long number = UCT_SEP_QPS_AUTO;

    all.push_back(join(UCS_ULUNITS_AUTO));
    EXPECT_EQ((long)number, uct_sep_budget_node_allowance(all[0]));
    while (all.size() < number) {
        all.push_back(join(UCS_ULUNITS_AUTO));
        ASSERT_NE(nullptr, all.back());
    }
    for (auto w : all) {
        EXPECT_TRUE(uct_sep_budget_node_hold(w, MIN, 0));
    }
    EXPECT_FALSE(uct_sep_budget_node_hold(all[0], MIN + 1, 0));
    for (auto w : all) {
        uct_sep_budget_node_leave(w);
    }
}

TEST_F(test_sep_budget_node, the_least_number_holds)
{
    worker a = join(20), b, c;
    {
        expect_errors hide;

        b = join(10);
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN,
                                 "=10 here, but 20 in another"));
        c = join(20);
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_WARN,
                                 "=20 here, but 10 in another"));
    }
    EXPECT_EQ(10, uct_sep_budget_node_allowance(a));
    uct_sep_budget_node_leave(c);
    uct_sep_budget_node_leave(b);
    EXPECT_EQ(20, uct_sep_budget_node_allowance(a));

    /* Nor does one that has died have a say */
    pid_t pid = start([]() {
        expect_errors hide;

        join(6);
    });
    EXPECT_EQ(6, uct_sep_budget_node_allowance(a));
    end(pid);
    b = join(20);
    EXPECT_EQ(20, uct_sep_budget_node_allowance(b));
    uct_sep_budget_node_leave(b);
    uct_sep_budget_node_leave(a);
}

TEST_F(test_sep_budget_node, who_gets_a_place_again_hides_nobody)
{
    worker a = join(10), b = join(10);

    EXPECT_TRUE(uct_sep_budget_node_hold(b, 5, 0));
    uct_sep_budget_node_leave(a);
    a = join(10);
    EXPECT_EQ(5, uct_sep_budget_node_allowance(a));
    uct_sep_budget_node_leave(b);
    uct_sep_budget_node_leave(a);
}

TEST_F(test_sep_budget_node, what_the_dead_held_is_returned)
{
    worker a = join(10);
    pid_t pid = start([]() { uct_sep_budget_node_hold(join(10), 7, 0); });

    EXPECT_FALSE(uct_sep_budget_node_hold(a, 6, 0));
    EXPECT_TRUE(uct_sep_budget_node_hold(a, 5, 0));
    end(pid);
    while (!uct_sep_budget_node_hold(a, 10, 0)) {
        usleep(1000);
    }
    uct_sep_budget_node_leave(a);
}

/* A child has all files open that its parent had, those of the device as well,
 * so the queue pairs live as long as it does */
TEST_F(test_sep_budget_node, children_keep_what_their_parents_held)
{
    pid_t *child = (pid_t*)mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    worker a     = join(12);
    pid_t pid    = start([=]() {
        uct_sep_budget_node_hold(join(12), 6, 0);
        *child = start([]() {});
    });

    end(pid);
    worker b = join(12); /* It has looked for dead ones */
    EXPECT_EQ(6, uct_sep_budget_node_allowance(b));
    EXPECT_TRUE(uct_sep_budget_node_hold(b, 6, 0));
    EXPECT_FALSE(uct_sep_budget_node_hold(b, 7, 0));

    /* Whoever has inherited it waits for it */
    EXPECT_EQ(0, kill(*child, SIGKILL));
    while (!uct_sep_budget_node_hold(b, 12, 0)) {
        usleep(1000);
    }
    uct_sep_budget_node_leave(b);
    uct_sep_budget_node_leave(a);
    munmap(child, sizeof(*child));
}

TEST_F(test_sep_budget_node, children_change_nothing)
{
    worker a  = join(10);
    pid_t pid = start([=]() {
        uct_sep_budget_node_hold(a, 1, 0);
        uct_sep_budget_node_leave(a);
    });

    EXPECT_TRUE(uct_sep_budget_node_hold(a, 7, 0));
    pid_t second = start([=]() {
        uct_sep_budget_node_hold(a, 3, 1);
        uct_sep_budget_node_leave(a);
    });
    EXPECT_EQ(7u, uct_sep_budget_node_held(a));
    EXPECT_NE("", path());

    /* Nor is their parent taken for dead */
    worker b = join(10);
    EXPECT_EQ(5, uct_sep_budget_node_allowance(b));
    EXPECT_EQ(7u, uct_sep_budget_node_held(a));
    uct_sep_budget_node_leave(b);

    /* And who has left locks nobody out, though a child has its file open */
    pid_t third = start([]() {});
    uct_sep_budget_node_leave(a);
    EXPECT_EQ("", path());
    a = join(10);
    EXPECT_EQ(10, uct_sep_budget_node_allowance(a));
    uct_sep_budget_node_leave(a);
    end(third);
    end(second);
    end(pid);
}

/* A child has the file open whose locks have gone with its parent's worker */
TEST_F(test_sep_budget_node, who_leaves_opens_the_door)
{
    worker a  = join(10), b = join(10);
    pid_t pid = start([]() {});

    uct_sep_budget_node_leave(a);
    uct_sep_budget_node_leave(join(10));
    uct_sep_budget_node_leave(b);
    end(pid);
}

/* Of several that want the last one, one at a time has it */
TEST_F(test_sep_budget_node, two_never_have_the_last_one)
{
    const unsigned num = 4, rounds = 3000;
    struct shared {
        std::atomic<unsigned> have, got, wrong, ready;
    };
    shared *all = (shared*)mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const unsigned long max = num * MIN + 1;
    std::vector<pid_t> pids;

    for (unsigned i = 0; i < num; ++i) {
        pid_t pid = fork();
        if (pid == 0) {
            worker w = join(max);

            uct_sep_budget_node_hold(w, MIN, 0);
            for (++all->ready; all->ready < num;) {
                usleep(100);
            }
            for (unsigned round = 0; round < rounds; ++round) {
                if (uct_sep_budget_node_hold(w, MIN + 1, 0)) {
                    all->wrong += (++all->have > 1);
                    ++all->got;
                    --all->have;
                    uct_sep_budget_node_hold(w, MIN, 0);
                }
            }
            /* Shares stay as they are until all have ended */
            for (++all->ready; all->ready < 2 * num;) {
                usleep(100);
            }
            uct_sep_budget_node_leave(w);
            _exit(0);
        }
        pids.push_back(pid);
    }
    for (pid_t pid : pids) {
        int status = -1;

        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_EQ(0, status);
    }
    EXPECT_EQ(0u, all->wrong);
    EXPECT_GT(all->got, 0u);
    munmap(all, sizeof(*all));
}

/* Left by processes that were killed, or by another version */
TEST_F(test_sep_budget_node, what_nobody_uses_is_made_afresh)
{
    worker w = join(10);
    const std::string file = path();
    struct stat first, st;

    ASSERT_EQ(0, stat(file.c_str(), &first));
    EXPECT_EQ(0600u, first.st_mode & 0777);
    uct_sep_budget_node_leave(w);
    EXPECT_EQ("", path());

    end(start([]() { uct_sep_budget_node_hold(join(10), 7, 0); }));
    for (off_t size : {first.st_size, (off_t)0, (off_t)5, first.st_size + 1}) {
        std::string rubbish(size, 'x');
        int fd = open(file.c_str(), O_RDWR | O_CREAT, 0600);

        ASSERT_GE(fd, 0);
        EXPECT_EQ(size, write(fd, rubbish.data(), size));
        EXPECT_EQ(0, ftruncate(fd, size));
        close(fd);
        w = join(10);
        ASSERT_NE(nullptr, w);
        EXPECT_TRUE(uct_sep_budget_node_hold(w, 10, 0));
        ASSERT_EQ(0, stat(file.c_str(), &st));
        EXPECT_EQ(first.st_size, st.st_size);
        uct_sep_budget_node_leave(w);
    }
}

TEST_F(test_sep_budget_node, what_others_use_and_is_foreign_is_refused)
{
    worker a = join(10), b;
    const std::string file = path();
    int fd = open(file.c_str(), O_RDWR);
    struct stat st;
    uint64_t magic, wrong = 1;

    ASSERT_EQ(0, fstat(fd, &st));
    ASSERT_EQ((ssize_t)sizeof(magic), pread(fd, &magic, sizeof(magic), 0));
    expect_errors hide;

    EXPECT_EQ((ssize_t)sizeof(wrong), pwrite(fd, &wrong, sizeof(wrong), 0));
    EXPECT_EQ(UCS_ERR_IO_ERROR, join(10, &b));
    EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, file + " is in use, and"));

    EXPECT_EQ((ssize_t)sizeof(magic), pwrite(fd, &magic, sizeof(magic), 0));
    EXPECT_EQ(0, ftruncate(fd, st.st_size + 1));
    EXPECT_EQ(UCS_ERR_IO_ERROR, join(10, &b));
    EXPECT_EQ(2u, hide.count(UCS_LOG_LEVEL_ERROR, file + " is in use, and"));

    /* The door is open again */
    EXPECT_EQ(0, ftruncate(fd, st.st_size));
    EXPECT_EQ(UCS_OK, join(10, &b));
    uct_sep_budget_node_leave(b);
    uct_sep_budget_node_leave(a);
    close(fd);
}

TEST_F(test_sep_budget_node, files_that_are_no_account_are_refused)
{
    worker w = join(10);
    const std::string file = path();

    uct_sep_budget_node_leave(w);
    expect_errors hide;

    /* Nobody's file is opened in another's name */
    ASSERT_EQ(0, symlink("/dev/null", file.c_str()));
    EXPECT_EQ(UCS_ERR_IO_ERROR, join(10, &w));
    EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, "can't open " + file));
    EXPECT_EQ(0, unlink(file.c_str()));

    if (geteuid() == 0) {
        close(open(file.c_str(), O_RDWR | O_CREAT, 0600));
        ASSERT_EQ(0, chown(file.c_str(), 1, 1));
        EXPECT_EQ(UCS_ERR_IO_ERROR, join(10, &w));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR,
                                 "is not a file of this user"));
        EXPECT_EQ(0, unlink(file.c_str()));
    }
}

} // namespace
