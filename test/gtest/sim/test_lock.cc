/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/patience.h>

extern "C" {
#include <sim/objs/lock.h>
}

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

class test_lock : public testing::Test {
protected:
    struct shared {
        mlx5sim_lock_t        lock;
        std::atomic<unsigned> word;
        unsigned              count;
    };

    void SetUp() override
    {
        m_shared = (shared*)mmap(nullptr, sizeof(*m_shared),
                                 PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, (void*)m_shared);
        mlx5sim_lock_init(&m_shared->lock);
    }

    void TearDown() override
    {
        munmap(m_shared, sizeof(*m_shared));
    }

    template<typename F> pid_t start(const F &body)
    {
        pid_t pid = fork();

        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(body());
        }
        return pid;
    }

    /* @return status of a process, which is killed if it does not end */
    int finish(pid_t pid)
    {
        int status;

        if (patience::until([&]() {
                return waitpid(pid, &status, WNOHANG) == pid;
            })) {
            return status;
        }
        ADD_FAILURE() << "process " << pid << " hangs";
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        return -1;
    }

    std::atomic<unsigned> &futex()
    {
        return reinterpret_cast<std::atomic<unsigned>&>(
                m_shared->lock.__data.__lock);
    }

    bool has_waiters()
    {
        return (futex() & FUTEX_WAITERS) != 0;
    }

    shared *m_shared;
};

} // namespace


TEST_F(test_lock, is_held_by_one_process_at_a_time)
{
    const unsigned times = 20000;
    pid_t pids[4];

    for (pid_t &pid : pids) {
        pid = start([&]() {
            for (unsigned i = 0; i < times; ++i) {
                if (mlx5sim_lock(&m_shared->lock) != 0) {
                    return 1;
                }
                ++m_shared->count;
                mlx5sim_unlock(&m_shared->lock);
            }
            return 0;
        });
    }
    for (pid_t pid : pids) {
        EXPECT_EQ(0, finish(pid));
    }
    EXPECT_EQ(4 * times, m_shared->count);
}

TEST_F(test_lock, tells_once_that_its_owner_died)
{
    ASSERT_EQ(0, finish(start([&]() {
        return mlx5sim_lock(&m_shared->lock);
    })));

    EXPECT_EQ(1, mlx5sim_lock(&m_shared->lock));
    mlx5sim_unlock(&m_shared->lock);
    EXPECT_EQ(0, mlx5sim_lock(&m_shared->lock));
    mlx5sim_unlock(&m_shared->lock);
}

TEST_F(test_lock, an_orphan_is_seen_without_taking_it)
{
    pid_t owner = start([&]() {
        (void)mlx5sim_lock(&m_shared->lock);
        m_shared->word = 1;
        pause();
        return 0;
    });

    EXPECT_FALSE(mlx5sim_lock_is_orphan(&m_shared->lock));
    ASSERT_TRUE(patience::until([&]() { return m_shared->word != 0; }));

    EXPECT_FALSE(mlx5sim_lock_is_orphan(&m_shared->lock));
    EXPECT_EQ(0, kill(owner, SIGKILL));
    EXPECT_EQ(SIGKILL, finish(owner));
    EXPECT_TRUE(mlx5sim_lock_is_orphan(&m_shared->lock));
    EXPECT_EQ(1, mlx5sim_lock(&m_shared->lock));
    EXPECT_FALSE(mlx5sim_lock_is_orphan(&m_shared->lock));
    mlx5sim_unlock(&m_shared->lock);
}

TEST_F(test_lock, wakes_who_waits_when_its_owner_dies)
{
    pid_t owner = start([&]() {
        (void)mlx5sim_lock(&m_shared->lock);
        m_shared->word = 1;
        pause();
        return 0;
    });

    ASSERT_TRUE(patience::until([&]() { return m_shared->word != 0; }));

    pid_t waiter = start([&]() { return mlx5sim_lock(&m_shared->lock); });
    ASSERT_TRUE(patience::until([&]() { return has_waiters(); }));
    kill(owner, SIGKILL);
    EXPECT_EQ(SIGKILL, finish(owner));
    EXPECT_EQ(W_EXITCODE(1, 0), finish(waiter));
}

/* One sleeps. Another one was woken, and killed before it could store that
 * there are more who wait, while a third one has the lock: so it does not
 * know. */
TEST_F(test_lock, is_got_although_the_wakeup_went_to_one_who_was_killed)
{
    ASSERT_EQ(0, mlx5sim_lock(&m_shared->lock));

    pid_t waiter = start([&]() { return mlx5sim_lock(&m_shared->lock); });
    ASSERT_TRUE(patience::until([&]() { return has_waiters(); }));
    futex() &= ~FUTEX_WAITERS;
    mlx5sim_unlock(&m_shared->lock);
    EXPECT_EQ(0, finish(waiter));
}
