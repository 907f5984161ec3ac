/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Many processes, processes that come and go, fork and exec, other users.
 */

#include <device/device_mesh.h>

#include <cerrno>
#include <cstring>

#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

class test_device_many : public device::test {
protected:
    /* Sum of the objects in use, as mlx5sim-stat tells */
    int leaks()
    {
        std::string output;
        int status = stat("--check-leaks", &output);

        EXPECT_EQ(0, status) << output;
        return status;
    }
};

/* One message to oneself through a fresh device */
void use_device()
{
    loop l;

    l.mem.data[0] = 0x42;
    l.b.recv(1, l.peer_mem.sge(0, 8));
    send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 8)});
    l.a.send(wr);
    l.scq.good();
    l.peer_cq.good();
    REQUIRE_EQ(0x42, l.peer_mem.data[0]);
}

void expect_exit(pid_t pid, int expected)
{
    int status;

    REQUIRE_EQ(pid, waitpid(pid, &status, 0));
    REQUIRE_EQ(expected, status);
}

} // namespace


TEST_F(test_device_many, all_to_all_of_64_processes)
{
    const int count      = 64;
    mesh_offers *offers  = (mesh_offers*)mmap(nullptr, sizeof(*offers),
                                              PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_ANONYMOUS, -1,
                                              0);
    mesh_options options;

    ASSERT_NE(MAP_FAILED, (void*)offers);
    options.window      = 2;
    options.messages    = 10;
    options.max_message = 500;
    for (int i = 0; i < count; ++i) {
        /* a sleeping process leaves the processor to those that have work */
        options.sleeps = true;
        word(mesh_words::life(i)) = 1;
        start(i, count, [=](rank &r) { mesh_node(r, offers, options); });
    }
    uint64_t end = now_ms() + 2 * patience_ms;
    for (int from = 0; from < count; ++from) {
        for (int to = 0; to < count; ++to) {
            while ((from != to) && (word(mesh_words::received(from, to)) <
                                    (1ul << 40) + options.messages)) {
                ASSERT_LT(now_ms(), end) << from << " to " << to;
                usleep(1000);
            }
        }
    }
    word(mesh_words::stop) = 1;
    while (word(mesh_words::idle) < (uint64_t)count) {
        ASSERT_LT(now_ms(), end);
        usleep(1000);
    }
    word(mesh_words::leave) = 1;
    finish_all();
    munmap(offers, sizeof(*offers));
}

TEST_F(test_device_many, open_and_close_2000_times)
{
    struct stat before, after;

    /* what one process gives back, it can have again */
    run(1, [](rank&) {
        use_device();
    });
    ASSERT_EQ(0, ::stat((dir() + "/store").c_str(), &before));
    run(1, [](rank&) {
        for (int i = 0; i < 2000; ++i) {
            if ((i % 100) == 0) {
                use_device();
            } else {
                context c;
                memory mem(c, 4096);
                cq q(c, 16);
                qp a(c, q, q);
            }
        }
    });
    ASSERT_EQ(0, ::stat((dir() + "/store").c_str(), &after));
    /* numbers go round within a range: some pages of each table, not all */
    EXPECT_LT(after.st_blocks, 16 * 2048) << "store of more than 16 MB";
    EXPECT_EQ(before.st_size, after.st_size);
    leaks();
}

TEST_F(test_device_many, two_thousand_queue_pairs_of_one_process)
{
    run(1, [](rank&) {
        for (int round = 0; round < 2; ++round) {
            context c;
            memory mem(c, 4096);
            cq q(c, 64);
            std::vector<std::unique_ptr<qp>> qps;
            qp_options options;

            options.send_wr = options.recv_wr = 1;
            for (int i = 0; i < 2000; ++i) {
                qps.emplace_back(new qp(c, q, q, options));
            }
            for (int i = 0; i < 2000; i += 37) {
                qps[i]->connect(qps[i]->addr());
                send_wr wr(IBV_WR_RDMA_WRITE, i, {mem.sge(0, 8)});
                qps[i]->send(wr.to(qps[i]->addr(&mem), 64));
                REQUIRE_EQ(i, q.good().wr_id);
            }
        }
    });
}

TEST_F(test_device_many, processes_come_and_go)
{
    /* more lives than there are slots, most of which give nothing back */
    for (int i = 0; i < 300; ++i) {
        start(0, 1, [=](rank&) {
            if ((i % 3) == 0) {
                use_device();
            } else {
                context *c = new context;
                memory *m  = new memory(*c, 4096);
                cq *q      = new cq(*c, 16);
                new qp(*c, *q, *q);
                (void)m;
                if ((i % 3) == 1) {
                    _exit(0);
                }
                ::kill(getpid(), SIGKILL);
            }
        });
        int status = finish(0);
        ASSERT_EQ(((i % 3) == 2) ? SIGKILL : 0, status);
    }
    leaks();
}

TEST_F(test_device_many, exit_while_threads_post)
{
    /* the device must not go before the threads do */
    for (int i = 0; i < 20; ++i) {
        run(1, [](rank&) {
            loop *l = new loop;
            std::atomic<int> *posts = new std::atomic<int>(0);
            std::vector<pthread_t> threads(2);

            for (auto &thread : threads) {
                struct arg {
                    loop *l;
                    qp *q;
                    std::atomic<int> *posts;
                };
                qp *q = new qp(l->c, *new cq(l->c, 64), l->rcq);
                q->connect(q->addr());
                pthread_create(&thread, nullptr, [](void *p) -> void* {
                    arg *a = (arg*)p;
                    for (;;) {
                        send_wr wr(IBV_WR_RDMA_WRITE, 1, {a->l->mem.sge(0, 8)},
                                   0);
                        /* until the queue is full, then overwrite nothing */
                        if (a->q->try_send(wr.to(a->q->addr(&a->l->mem), 64))) {
                            a->q->to_state(IBV_QPS_RESET);
                            a->q->connect(a->q->addr());
                        }
                        ++*a->posts;
                    }
                    return nullptr;
                }, new arg{l, q, posts});
            }
            REQUIRE(patience::until([&]() { return *posts >= 100; }));
            exit(0);
        });
    }
}

TEST_F(test_device_many, children_leave_the_device_of_their_parent_alone)
{
    run(1, [](rank&) {
        loop l;

        for (int i = 0; i < 12; ++i) {
            pid_t pid = fork();

            if (pid == 0) {
                switch (i % 4) {
                case 0:
                    exit(0);
                case 1:
                    _exit(0);
                case 2:
                    execl("/bin/true", "true", (char*)nullptr);
                    _exit(1);
                case 3:
                    /* close what is inherited, then a device of its own */
                    close(l.c.ctx->cmd_fd);
                    close(l.c.ctx->async_fd);
                    use_device();
                    close(l.c.ctx->cmd_fd);
                    exit(0);
                }
            }

            /* at the same time */
            for (int n = 0; n < 20; ++n) {
                l.b.recv(1, l.peer_mem.sge(0, 8));
                l.mem.data[0] = i + n;
                send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 8)});
                l.a.send(wr);
                l.scq.good();
                l.peer_cq.good();
                REQUIRE_EQ(i + n, l.peer_mem.data[0]);
            }
            expect_exit(pid, 0);
        }

        /* objects can still be made */
        qp another(l.c, l.scq, l.rcq);
        another.connect(l.to_a);
    });
}

TEST_F(test_device_many, a_child_closes_everything_after_opening_its_own_device)
{
    run(1, [](rank&) {
        loop l;
        pid_t pid = fork();

        if (pid == 0) {
            context mine;

            /* as daemons and Python's subprocess do; its own device, too */
            for (int fd = 3; fd < 200; ++fd) {
                close(fd);
            }
            _exit(0);
        }
        expect_exit(pid, 0);

        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(wr.to(l.to_b, 0));
        l.scq.good();
        qp another(l.c, l.scq, l.rcq);
    });
}

TEST_F(test_device_many, vfork_children_share_the_table_of_descriptors)
{
    run(1, [](rank&) {
        loop l;
        volatile int fd = l.c.ctx->cmd_fd, async_fd = l.c.ctx->async_fd;
        pid_t pid       = vfork();

        if (pid == 0) {
            /* the memory is the parent's, the descriptors are not */
            close(fd);
            close(async_fd);
            _exit(0);
        }
        expect_exit(pid, 0);

        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(wr.to(l.to_b, 0));
        l.scq.good();
        qp another(l.c, l.scq, l.rcq);
    });
}

TEST_F(test_device_many, threads_open_and_close_at_the_same_time)
{
    run(1, [](rank&) {
        std::vector<pthread_t> threads(4);

        for (auto &thread : threads) {
            pthread_create(&thread, nullptr, [](void*) -> void* {
                for (int i = 0; i < 150; ++i) {
                    use_device();
                }
                return nullptr;
            }, nullptr);
        }
        for (auto &thread : threads) {
            pthread_join(thread, nullptr);
        }
    });
}

/* It dies, as nothing can be done for it, but not without a word */
TEST_F(test_device_many, a_forked_child_that_rings_is_told_why_it_dies)
{
    catch_errors();
    run(1, [](rank &) {
        loop l;
        int status;

        /* the handler has seen these pages */
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(wr.to(l.to_b));
        l.scq.good();

        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGBUS, SIG_DFL); /* sanitizers have a handler */
            send_wr again(IBV_WR_RDMA_WRITE, 2, {l.mem.sge(0, 8)});
            l.a.try_send(again.to(l.to_b));
            _exit(0);
        }
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE(WIFSIGNALED(status));
        REQUIRE_EQ(SIGBUS, WTERMSIG(status));
    });
    EXPECT_NE(std::string::npos, errors().find("that its parent opened"))
            << errors();
}

TEST_F(test_device_many, fork_while_threads_use_the_device)
{
    if (has_asan()) {
        GTEST_SKIP() << "the sanitizer's allocator keeps its locks over fork()";
    }

    /* not while they open it: libibverbs has locks there that a child would
     * inherit */
    run(1, [](rank&) {
        static std::atomic<bool> stop;
        std::vector<pthread_t> threads(3);
        loop l;

        stop = false;
        for (auto &thread : threads) {
            pthread_create(&thread, nullptr, [](void *p) -> void* {
                loop *l = (loop*)p;
                cq q(l->c, 64);

                while (!stop) {
                    qp self(l->c, q, q);
                    memory mem(l->c, 8192);

                    self.connect(self.addr());
                    for (int i = 0; i < 10; ++i) {
                        send_wr wr(IBV_WR_RDMA_WRITE, i, {mem.sge(0, 8)});
                        self.send(wr.to(self.addr(&mem), 64));
                        q.good();
                    }
                }
                return nullptr;
            }, &l);
        }
        for (int i = 0; i < 60; ++i) {
            pid_t pid = fork();

            if (pid == 0) {
                /* a lock that nobody will release any more */
                alarm(patience::seconds());
                use_device();
                _exit(0);
            }
            expect_exit(pid, 0);
        }
        stop = true;
        for (auto &thread : threads) {
            pthread_join(thread, nullptr);
        }
    });
}

TEST_F(test_device_many, a_process_that_calls_exec_is_gone)
{
    start(0, 2, [](rank &r) {
        context c;
        memory mem(c, 4096);
        cq q(c, 64);
        qp mine(c, q, q);

        r.publish(mine.addr(&mem));
        address peer = r.lookup<address>(1);
        mine.connect(peer);
        r.barrier();
        r.wait_word(0, 1);
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)});
        mine.send(wr.to(peer, 0));
        REQUIRE(q.next().status != IBV_WC_SUCCESS);
    });
    start(1, 2, [](rank &r) {
        context c;
        memory mem(c, 4096);
        cq q(c, 64);
        qp mine(c, q, q);

        r.publish(mine.addr(&mem));
        mine.connect(r.lookup<address>(0));
        r.barrier();
        execl("/bin/sleep", "sleep", "100", (char*)nullptr);
    });
    /* the new image must be there */
    std::string exe = "/proc/" + std::to_string(pid(1)) + "/exe";
    ASSERT_TRUE(patience::until([&]() {
        char target[256];
        ssize_t n = readlink(exe.c_str(), target, sizeof(target) - 1);

        target[std::max<ssize_t>(n, 0)] = '\0';
        return (n > 0) && !strstr(target, "gtest");
    }));
    word(0) = 1;
    EXPECT_EQ(0, finish(0));
    kill(1);
    EXPECT_EQ(SIGKILL, finish(1));
}

TEST_F(test_device_many, two_processes_of_a_user_without_privileges)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "not root: all other tests run without privileges";
    }

    const uid_t nobody = 65534;
    ASSERT_EQ(0, chown(dir().c_str(), nobody, nobody));
    run(2, [=](rank &r) {
        REQUIRE_EQ(0, setgroups(0, nullptr));
        REQUIRE_EQ(0, setgid(nobody));
        REQUIRE_EQ(0, setuid(nobody));
        /* as exec would; until then the kernel protects the process */
        REQUIRE_EQ(0, prctl(PR_SET_DUMPABLE, 1));

        context c;
        memory mem(c, 65536);
        cq scq(c, 64), rcq(c, 64);
        qp q(c, scq, rcq);

        r.publish(q.addr(&mem));
        address peer = r.lookup<address>(1 - r.index);
        q.connect(peer);
        q.recv(1, mem.sge(0, 100));
        r.barrier();
        send_wr wr(IBV_WR_SEND, 1, {mem.sge(200, 100)});
        q.send(wr);
        scq.good();
        rcq.good();
        send_wr w(IBV_WR_RDMA_WRITE, 2, {mem.sge(0, 4000)});
        q.send(w.to(peer, 5000));
        scq.good();
        r.barrier();
    });
    ASSERT_EQ(0, chown(dir().c_str(), 0, 0));
}
