/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_side.h>

#include <common/sanitizer.h>

#include <cstring>
#include <thread>

#include <pthread.h>
#include <sched.h>

using namespace sep_uct_test;

namespace {

/*
 * A worker that two threads use in turn, under a lock, on a device that keeps
 * what a thread stores to a BlueFlame register until that thread orders its
 * stores. Unlocking a spin lock is a plain store, so a transport that does not
 * flush leaves its doorbell in the buffers of one processor while the other
 * thread rings: the device reports that. libmlx5 (qp.c) describes the race, and
 * rc_mlx5 posts with a flush to such a worker (BF_POST_MT): it is here to show
 * that the rule is fair.
 */

/* What two threads use */
struct transport {
    const char *name;  /* Of the test */
    const char *tl;
    settings    config;
    bool        has_lists; /* Only a flush rings */
};

void PrintTo(const transport &value, std::ostream *os)
{
    *os << value.name;
}


class test_sep_uct_wc : public ::testing::TestWithParam<transport> {
protected:
    static constexpr int rounds  = 24;
    static constexpr int num_ops = 5; /* Odd: each thread comes to each */

    void SetUp() override
    {
        if (has_asan()) {
            GTEST_SKIP() << "each instruction of a thread is stepped through: "
                            "minutes, with those of the sanitizer";
        }
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    /* Plain stores and loads: std::atomic may use a locked instruction, which
     * would flush */
    int look()
    {
        return __atomic_load_n(&m_turn, __ATOMIC_ACQUIRE);
    }

    void pass()
    {
        __atomic_store_n(&m_turn, m_turn + 1, __ATOMIC_RELEASE);
    }

    /* Post when it is our turn, as a program does that locks its worker */
    void use(side &s, int self)
    {
        for (int i = 0; i < rounds * num_ops; ++i) {
            if ((i % 2) != self) {
                continue;
            }
            while (look() != i) {
            }
            pthread_spin_lock(&m_lock);
            m_status[i] = s.post(i % num_ops, 1);
            if (GetParam().has_lists) {
                s.flushed();
            }
            pthread_spin_unlock(&m_lock);
            pass();
        }
        while (look() != rounds * num_ops) {
        }
    }

    /* A system call: whatever was stored before is visible, for waiting is
     * not what is tested */
    static void progress(side &sender, side &receiver)
    {
        sender.progress();
        receiver.progress();
        sched_yield();
    }

    /* Make the connection before what is tested begins */
    void connect(side &sender, side &receiver)
    {
        sender.create_ep(receiver);
        receiver.create_ep(sender);
        ASSERT_FALSE(HasFailure());
        sender.connect(receiver);
        receiver.connect(sender);

        ucs_status_t status;
        while ((status = sender.post(0, 1)) == UCS_ERR_NO_RESOURCE) {
            progress(sender, receiver);
        }
        ASSERT_EQ(UCS_OK, status);
        while (!sender.flushed()) {
            progress(sender, receiver);
        }
    }

    void expect_sent(side &sender, side &receiver)
    {
        for (ucs_status_t status : m_status) {
            ASSERT_TRUE((status == UCS_OK) || (status == UCS_INPROGRESS))
                    << ucs_status_string(status);
        }
        while (!sender.flushed() || (receiver.num_messages < rounds)) {
            progress(sender, receiver);
        }
        EXPECT_EQ(unsigned(rounds), receiver.num_messages);
    }

    void run(ucs_thread_mode_t mode)
    {
        side sender(GetParam().tl, GetParam().config, mode);
        side receiver(GetParam().tl, GetParam().config, mode);

        ASSERT_NO_FATAL_FAILURE(connect(sender, receiver));
        ASSERT_EQ(0, pthread_spin_init(&m_lock, PTHREAD_PROCESS_PRIVATE));
        std::thread other([&]() { use(sender, 1); });
        use(sender, 0);
        other.join();
        pthread_spin_destroy(&m_lock);
        expect_sent(sender, receiver);
    }

    /* One thread, whose stores nothing orders but the transport */
    void run_alone()
    {
        side sender(GetParam().tl, GetParam().config, UCS_THREAD_MODE_SINGLE);
        side receiver(GetParam().tl, GetParam().config, UCS_THREAD_MODE_SINGLE);

        ASSERT_NO_FATAL_FAILURE(connect(sender, receiver));
        for (int i = 0; i < rounds * num_ops; ++i) {
            m_status[i] = sender.post(i % num_ops, 1);
            if (GetParam().has_lists) {
                sender.flushed();
            }
        }
        expect_sent(sender, receiver);
    }

    int                m_turn = 0;
    pthread_spinlock_t m_lock;
    ucs_status_t       m_status[rounds * num_ops];
};

TEST_P(test_sep_uct_wc, threads_that_use_a_worker_in_turn_do_not_race)
{
    if (on_device({{"MLX5SIM_WC", "4294967295"}})) {
        run(UCS_THREAD_MODE_SERIALIZED);
    }
}

/* Each doorbell orders the one before it: nobody else does, as there is no
 * other thread to be told */
TEST_P(test_sep_uct_wc, a_worker_of_one_thread_orders_its_doorbells)
{
    if (on_device({{"MLX5SIM_WC", "4294967295"}})) {
        run_alone();
    }
}

std::vector<transport> transports()
{
    std::vector<transport> result = {
        {"rc_mlx5", "rc_mlx5", {}, false},
        {"verbs", "sep_mlx5", {{"API", "verbs"}}, false},
        {"db", "sep_mlx5", {{"TX_POST", "db"}}, false},
        {"list", "sep_mlx5", {{"TX_POSTLIST", "2"}}, true},
        {"list_own", "sep_mlx5", {{"TX_POSTLIST", "2"},
                                  {"CATEGORY", "mpi_everywhere"}}, true}
    };

    for (auto &row : categories()) {
        result.push_back({row.name, "sep_mlx5", {{"CATEGORY", row.name}},
                          false});
    }
    return result;
}

INSTANTIATE_TEST_SUITE_P(of, test_sep_uct_wc, ::testing::ValuesIn(transports()),
                         [](const auto &info) {
                             return std::string(info.param.name);
                         });

} // namespace
