/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion queues in shared memory: peers write there without a call, and the
 * program notices nothing of it.
 */

#include <device/device_shared.h>

#include <atomic>
#include <thread>

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace device;
using namespace device::shared;

namespace {

/* A lock of the program that fork() takes, and a word that its children set */
pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t *own_word;

void take_own()
{
    pthread_mutex_lock(&own_lock);
}

void give_own()
{
    pthread_mutex_unlock(&own_lock);
}

void begin_anew()
{
    if (own_word != nullptr) {
        *own_word = getpid();
    }
    pthread_mutex_unlock(&own_lock);
}

/* Messages of 8 bytes, which go into completions, and of 200, which do not */
void send_some(side &s, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; ++i) {
        unsigned length = (i & 1) ? 200 : 8;

        pattern::fill(s.mem.data, length, i);
        s.q.send(*std::make_unique<send_wr>(
                IBV_WR_SEND, i,
                std::vector<ibv_sge>{s.mem.sge(0, length)}));
        REQUIRE_EQ(i, s.scq.good().wr_id);
    }
}

void recv_some(side &s, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; ++i) {
        unsigned length = (i & 1) ? 200 : 8;
        ibv_wc wc;

        s.q.recv(i, s.mem.sge(4096, 256));
        wc = s.rcq.good();
        REQUIRE_EQ(i, wc.wr_id);
        REQUIRE_EQ(length, wc.byte_len);
        REQUIRE_EQ(length, pattern::check(s.mem.data + 4096, length, i));
    }
}

} // namespace


TEST_F(test_device_shared, a_ring_goes_round_that_a_peer_has_mapped)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        mapping mine = mapping_at(s.rcq.direct().buf);

        REQUIRE(mine.is_shared());
        REQUIRE(mine.perms == "rw-s");
        r.publish(mine.inode);
        r.barrier();
        if (r.index == 0) {
            bool is_there = false;

            send_some(s, 0, 3 * num_cqes);
            for (const mapping &m : mappings()) {
                is_there |= m.inode == r.lookup<uint64_t>(1);
            }
            REQUIRE(is_there);
        } else {
            recv_some(s, 0, 3 * num_cqes);
        }
        r.barrier();
    });
}

TEST_F(test_device_shared, the_memory_is_private_again_behind_it)
{
    run(1, [](rank&) {
        context c;
        auto queue = std::make_unique<cq>(c, num_cqes - 1);
        void *buf  = queue->direct().buf;

        REQUIRE(mapping_at(buf).is_shared());
        queue.reset();
        REQUIRE(!mapping_at(buf).is_shared());
        REQUIRE_EQ(0, count_shared());
    });
}

TEST_F(test_device_shared, so_it_is_if_the_context_is_closed_first)
{
    run(1, [](rank&) {
        ibv_device **list = ibv_get_device_list(nullptr);
        ibv_context *ctx  = ibv_open_device(list[0]);
        ibv_cq *queue     = ibv_create_cq(ctx, num_cqes - 1, nullptr, nullptr,
                                          0);

        REQUIRE(queue != nullptr);
        REQUIRE_EQ(1, count_shared());
        REQUIRE_EQ(0, ibv_close_device(ctx));
        REQUIRE_EQ(0, count_shared());
        ibv_free_device_list(list);
    });
}

TEST_F(test_device_shared, a_child_has_a_copy)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        volatile uint8_t *bytes;
        uint8_t before[4096];
        int status;

        if (r.index == 0) {
            send_some(s, 0, 2);
            r.barrier();
            r.barrier();
            send_some(s, 2, num_cqes);
            r.barrier();
            return;
        }

        recv_some(s, 0, 2);
        r.barrier();
        bytes = (uint8_t*)s.rcq.direct().buf;
        memcpy(before, (void*)bytes, sizeof(before));
        pid_t pid = fork();
        if (pid == 0) {
            bool good = !mapping_at((void*)bytes).is_shared();

            r.wait_word(0, 1);
            good = good && !memcmp((void*)bytes, before, sizeof(before));
            memset((void*)bytes, 0xff, sizeof(before));
            r.word(1) = 1;
            _exit(good ? 0 : 1);
        }
        REQUIRE(pid > 0);
        REQUIRE(mapping_at((void*)bytes).is_shared());
        r.barrier();
        recv_some(s, 2, num_cqes - 1);
        r.word(0) = 1;
        r.wait_word(1, 1);
        recv_some(s, num_cqes + 1, 1);
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);
        r.barrier();
    });
}

/* As main() may end with pthread_exit(): of the process the kernel knows no
 * memory by its number then, and calls it a zombie. What it has is not taken
 * for a dead one's either, by who opens the device next. */
TEST_F(test_device_shared, the_first_thread_has_ended)
{
    for (const char *share : {"queues", "none"}) {
        set_env("MLX5SIM_SHARE", share);
        run(2, [](rank &r) {
            static pthread_t first = pthread_self();
            static side *s         = new side(r, qp_options(), 1 << 16,
                                              num_cqes - 1);
            int status;

            if (r.index == 0) {
                r.wait_word(0, 1);
                pid_t pid = fork();
                if (pid == 0) {
                    context late;
                    _exit(0);
                }
                REQUIRE_EQ(pid, waitpid(pid, &status, 0));
                REQUIRE_EQ(0, status);
                send_some(*s, 0, num_cqes);
                r.barrier();
                return;
            }

            std::thread([&r]() {
                pthread_join(first, nullptr);
                r.word(0) = 1;
                recv_some(*s, 0, num_cqes);
                {
                    cq another(s->c, num_cqes - 1);
                }
                r.barrier();
                _exit(0);
            }).detach();
            syscall(SYS_exit, 0); /* pthread_exit() would unwind the test */
        });
    }
}

/* As daemons close all that they do not know */
TEST_F(test_device_shared, the_descriptor_is_closed)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);

        if (r.index == 0) {
            r.barrier();
            send_some(s, 0, 4);
        } else {
            REQUIRE_EQ(0, close(shared_fd()));
            r.barrier();
            recv_some(s, 0, 4);
        }
        r.barrier();
    });
}

TEST_F(test_device_shared, the_descriptor_is_of_another_file)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        struct stat st;

        if (r.index == 0) {
            r.barrier();
            send_some(s, 0, 4);
        } else {
            int fd    = shared_fd();
            int other = memfd_create("other", MFD_CLOEXEC);

            REQUIRE(dup2(other, fd) == fd);
            close(other);
            r.barrier();
            recv_some(s, 0, 4);
            {
                /* nor is it used for what comes later */
                cq late(s.c, num_cqes - 1);
                REQUIRE(!mapping_at(late.direct().buf).is_shared());
            }
            REQUIRE_EQ(0, fstat(fd, &st));
            REQUIRE_EQ(0, st.st_size);
            REQUIRE_EQ(0, st.st_blocks);
        }
        r.barrier();
    });
}

TEST_F(test_device_shared, parts_of_a_page_are_not)
{
    run(1, [](rank&) {
        context c;
        cq queue(c, num_cqes / 2 - 1);

        REQUIRE(!mapping_at(queue.direct().buf).is_shared());
    });
}

TEST_F(test_device_shared, no_more_than_some_hundred_are)
{
    run(1, [](rank&) {
        context c;
        std::list<std::unique_ptr<cq>> queues;

        for (int i = 0; i < 300; ++i) {
            queues.push_back(std::make_unique<cq>(c, num_cqes - 1));
        }
        REQUIRE_EQ(256, count_shared());
        queues.clear();
        REQUIRE_EQ(0, count_shared());
    });
}

/* Handlers of fork() that the program has registered before it opens the device
 * take a lock under which others make completion queues, and register memory */
TEST_F(test_device_shared, handlers_of_the_program_have_locks)
{
    set_env("RDMAV_FORK_SAFE", "1");
    for (const char *share : {"queues", "mappings", "memory"}) {
        set_env("MLX5SIM_SHARE", share);
        run(1, [](rank&) {
            REQUIRE_EQ(0, pthread_atfork(take_own, give_own, begin_anew));

            context c;
            std::atomic<bool> is_over(false);
            std::atomic<unsigned> made(0);
            std::thread other([&]() {
                while (!is_over) {
                    take_own();
                    {
                        cq queue(c, num_cqes - 1);
                        region mine(c, 4);
                    }
                    give_own();
                    ++made;
                }
            });

            for (unsigned i = 0; i < 30; ++i) {
                unsigned before = made;
                int status;
                pid_t pid = fork();

                if (pid == 0) {
                    _exit(0);
                }
                REQUIRE_EQ(pid, waitpid(pid, &status, 0));
                REQUIRE(patience::until([&]() { return made > before; }));
            }
            is_over = true;
            other.join();
        });
    }
}

/* What they write in the child is not the parent's */
TEST_F(test_device_shared, handlers_of_the_program_write_to_their_copy)
{
    set_env("MLX5SIM_SHARE", "memory");
    run(1, [](rank&) {
        REQUIRE_EQ(0, pthread_atfork(take_own, give_own, begin_anew));

        context c;
        region mine(c, 4);
        int status;

        own_word  = (uint64_t*)mine.data;
        *own_word = 1;
        pid_t pid = fork();
        if (pid == 0) {
            _exit(*own_word == (uint64_t)getpid() ? 3 : 4);
        }
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE(WIFEXITED(status));
        REQUIRE_EQ(3, WEXITSTATUS(status));
        REQUIRE_EQ(1u, *own_word);
    });
}

TEST_F(test_device_shared, regions_are_not_unless_wanted)
{
    set_env("MLX5SIM_SHARE", "queues");
    run(1, [](rank&) {
        context c;
        region mine(c, 4);

        REQUIRE(!mapping_at(mine.data).is_shared());
    });
}

TEST_F(test_device_shared, none_is_unless_wanted)
{
    set_env("MLX5SIM_SHARE", "none");
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);

        REQUIRE(!mapping_at(s.rcq.direct().buf).is_shared());
        if (r.index == 0) {
            send_some(s, 0, 4);
        } else {
            recv_some(s, 0, 4);
        }
        r.barrier();
    });
}
