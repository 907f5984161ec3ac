/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Shared memory of processes whose children, threads and handlers of fork() do
 * what the device does not see, or at a time when it sees less.
 */

#include <device/device_shared.h>

#include <atomic>
#include <memory>
#include <thread>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace device;
using namespace device::shared;

namespace {

/* Handlers of fork() that were there before the device's: those in front of it
 * are called behind them, and a child's before them */
pthread_mutex_t early_lock = PTHREAD_MUTEX_INITIALIZER;
bool has_early_lock;
region *early_discards; /* in the child */

void early_prepare()
{
    if (has_early_lock) {
        pthread_mutex_lock(&early_lock);
    }
}

void early_parent()
{
    if (has_early_lock) {
        pthread_mutex_unlock(&early_lock);
    }
}

void early_child()
{
    early_parent();
    if (early_discards != nullptr) {
        madvise(early_discards->data, early_discards->size, MADV_DONTNEED);
    }
}

void register_early()
{
    pthread_atfork(early_prepare, early_parent, early_child);
}

/* Before the constructors of all libraries */
__attribute__((section(".preinit_array"), used))
void (*register_early_p)() = register_early;

bool has(const region &mine, uint8_t value)
{
    size_t good = 0;

    for (size_t i = 0; i < mine.size; ++i) {
        good += mine.data[i] == value;
    }
    return good == mine.size;
}

int status_of(pid_t pid)
{
    int status;

    REQUIRE(pid > 0);
    REQUIRE_EQ(pid, waitpid(pid, &status, 0));
    return status;
}

class test_device_shared_fork : public test_device_shared {
protected:
    void SetUp() override
    {
        test_device_shared::SetUp();
        if (!can_guard() && !can_guard(true)) {
            GTEST_SKIP() << "userfaultfd() is not allowed here";
        }
        SKIP_WITHOUT_MMAP_HOOK();
        set_env("MLX5SIM_SHARE", "memory");
    }
};

} // namespace


/* Its entry of /proc is empty then, and the process goes on */
TEST_F(test_device_shared_fork, the_first_thread_has_ended)
{
    run(1, [](rank&) {
        static pthread_t first = pthread_self();
        auto *c                = new context;
        static cq *kept        = new cq(*c, num_cqes - 1);
        static cq *gone        = new cq(*c, num_cqes - 1);
        static region *mine    = new region(*c, 4);

        memset(kept->direct().buf, 0x5a, 4096);
        memset(mine->data, 0x5a, mine->size);
        std::thread([]() {
            pthread_join(first, nullptr);
            REQUIRE(mapping_at(mine->data).perms == "");
            delete gone;
            mine->reg(*new context);
            _exit((has(*mine, 0x5a) &&
                   (*((uint8_t*)kept->direct().buf + 100) == 0x5a)) ? 0 : 1);
        }).detach();
        syscall(SYS_exit, 0); /* as pthread_exit() ends, without unwinding */
    });
}

/* As the device could not see when the region went */
TEST_F(test_device_shared_fork, something_else_is_where_a_region_was)
{
    run(1, [](rank&) {
        context c;
        region mine(c, 8);
        int status;

        memset(mine.data, 7, mine.size);
        REQUIRE_EQ(0, ibv_dereg_mr(mine.mr));
        {
            no_descriptors full;

            REQUIRE_EQ(0, munmap(mine.data, mine.size));
            REQUIRE(mmap(mine.data, mine.size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                    mine.data);
            memset(mine.data, 1, mine.size);
            pid_t pid = fork();
            if (pid == 0) {
                _exit(has(mine, 1) ? 0 : 1);
            }
            status = status_of(pid);
        }
        REQUIRE_EQ(0, status);
        REQUIRE(has(mine, 1));
        mine.reg(c);
    });
}

/* Nor has a child of _Fork() called any handler: what it does with memory of
 * its own, which the kernel puts where the parent's was left out, is not done
 * to the parent's */
TEST_F(test_device_shared_fork, a_child_without_handlers_has_its_own_there)
{
    run(1, [](rank&) {
        context c;
        region one(c, 8), other(c, 8);

        memset(one.data, 7, one.size);
        memset(other.data, 8, other.size);
        REQUIRE_EQ(0, madvise(one.data, one.size, MADV_DONTFORK));
        for (bool is_unmapped : {false, true}) {
            pid_t pid = _Fork();
            if (pid == 0) {
                void *its = mmap(one.data, one.size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                memset(its, 3, one.size);
                int ret = is_unmapped ? munmap(its, one.size) :
                                        madvise(its, one.size, MADV_DONTNEED);
                _exit(((its == one.data) && (ret == 0)) ? 0 : 1);
            }
            REQUIRE_EQ(0, status_of(pid));
            REQUIRE(has(one, 7));
            REQUIRE(has(other, 8));
        }
    });
}

/* Another thread discards memory under a lock that the handler waits for */
TEST_F(test_device_shared_fork, a_handler_of_before_waits_for_who_discards)
{
    run(1, [](rank&) {
        context c;
        region mine(c, 8);
        std::atomic<bool> is_over(false);
        std::atomic<unsigned> done(0);

        has_early_lock = true;
        std::thread other([&]() {
            while (!is_over) {
                pthread_mutex_lock(&early_lock);
                REQUIRE_EQ(0, madvise(mine.data, 4096, MADV_DONTNEED));
                pthread_mutex_unlock(&early_lock);
                ++done;
            }
        });
        for (unsigned i = 0; i < 30; ++i) {
            unsigned before = done;
            pid_t pid       = fork();

            if (pid == 0) {
                _exit(0);
            }
            REQUIRE_EQ(0, status_of(pid));
            REQUIRE(patience::until([&]() { return done > before; }));
        }
        is_over = true;
        other.join();
    });
}

/* Before the child has its copy: that is to have zeros, and the parent's not */
TEST_F(test_device_shared_fork, a_handler_of_before_discards)
{
    run(1, [](rank&) {
        context c;
        region mine(c, 8);

        memset(mine.data, 7, mine.size);
        early_discards = &mine;
        pid_t pid      = fork();
        if (pid == 0) {
            _exit(has(mine, 0) ? 0 : 1);
        }
        REQUIRE_EQ(0, status_of(pid));
        REQUIRE(has(mine, 7));
    });
}

/* What can't be given private pages is not moved: nobody would know it */
TEST_F(test_device_shared_fork, there_is_no_room_to_move_it)
{
    run(1, [](rank&) {
        context c;
        region mine(c, 8);

        memset(mine.data, 7, mine.size);
        {
            no_descriptors full;

            REQUIRE(mremap(mine.data, mine.size, 2 * mine.size,
                           MREMAP_MAYMOVE) == MAP_FAILED);
            REQUIRE_EQ(ENOMEM, errno);
        }
        REQUIRE(has(mine, 7));
        REQUIRE(mapping_at(mine.data).is_shared());
    });
}

/* One part of what was a region is unmapped while a peer writes to another */
TEST_F(test_device_shared_fork, a_peer_writes_while_a_part_goes)
{
    run(2, [](rank &r) {
        const unsigned times = 200;
        side s(r);

        for (unsigned i = 0; i < times; ++i) {
            std::unique_ptr<region> mine;

            if (r.index == 1) {
                mine = std::make_unique<region>(s.c, 16);
                REQUIRE_EQ(0, ibv_dereg_mr(mine->mr));
                mine->size /= 2;
                mine->reg(s.c);
                r.publish(mine->addr());
            }
            r.barrier();
            if (r.index == 0) {
                address to = r.lookup<address>(1);

                while (r.word(0) <= i) {
                    write_to(s, to, 8, 8, 1);
                }
            } else {
                REQUIRE_EQ(0, munmap(mine->data + mine->size, mine->size));
                r.word(0) = i + 1;
            }
            r.barrier();
        }
    });
}
