/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Threads that post at the same time, and signals: the device lives in a signal
 * handler, and must be in nobody's way there.
 */

#include <device/device.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

class test_device_thread : public device::test {
};

class test_device_signal : public device::test {
};

void run_threads(int num, const std::function<void(int)> &body)
{
    std::vector<std::thread> threads;

    for (int i = 0; i < num; ++i) {
        threads.emplace_back(body, i);
    }
    for (auto &thread : threads) {
        thread.join();
    }
}

/* One RDMA write that has to arrive */
void write_one(qp &q, cq &scq, const memory &mem, const address &to,
               uint8_t value)
{
    mem.data[0] = value;
    send_wr wr(IBV_WR_RDMA_WRITE, value, {mem.sge(0, 1)});
    q.send(wr.to(to, 0));
    scq.good();
}

/* A network of our own, in which the loopback interface is up: whatever the
 * machine's port 4791 is used for. @return whether there may be one */
bool enter_network()
{
    ifreq request = {};

    if ((unshare(CLONE_NEWNET) != 0) &&
        (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)) {
        return false;
    }

    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    REQUIRE_EQ(0, ioctl(fd, SIOCSIFFLAGS, &request));
    close(fd);
    return true;
}

/* Ends with this process */
pid_t start_wire(const std::string &pid_file)
{
    const std::string program = build_file("bin/mlx5sim-wire");
    pid_t pid                 = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsetenv("LD_PRELOAD");
        execl(program.c_str(), program.c_str(), "--pid-file", pid_file.c_str(),
              nullptr);
        _exit(127);
    }
    REQUIRE(pid > 0);
    while (access(pid_file.c_str(), F_OK) != 0) {
        REQUIRE_EQ(0, waitpid(pid, nullptr, WNOHANG));
        usleep(1000);
    }
    return pid;
}

sigjmp_buf jump;
volatile sig_atomic_t caught, alarms;

void on_fault(int sig)
{
    caught = sig;
    siglongjmp(jump, 1);
}

void on_fault_info(int sig, siginfo_t *info, void*)
{
    caught = (info->si_signo == sig) ? sig : -1;
    siglongjmp(jump, 1);
}

/* Touch what a file has not */
void raise_bus_error()
{
    int fd  = memfd_create("empty", 0);
    void *p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    REQUIRE(p != MAP_FAILED);
    close(fd);
    *(volatile char*)p = 1;
}

void raise_segmentation_fault()
{
    void *p = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0);

    *(volatile char*)p = 1;
}

void catch_fault(void (*raise_it)(), int sig)
{
    caught = 0;
    if (sigsetjmp(jump, 1) == 0) {
        raise_it();
    }
    REQUIRE_EQ(sig, caught);
}

} // namespace


TEST_F(test_device_thread, eight_with_queues_of_their_own)
{
    run(2, [](rank &r) {
        const int num = 8, rounds = 300;
        context c;
        struct { address a[num]; } mine, peer;
        std::vector<std::unique_ptr<domain>> domains;
        std::vector<std::unique_ptr<memory>> mems;
        std::vector<std::unique_ptr<cq>> cqs;
        std::vector<std::unique_ptr<qp>> qps;

        for (int i = 0; i < num; ++i) {
            domains.emplace_back(new domain(c));
            mems.emplace_back(new memory(c, 65536));
            cqs.emplace_back(new cq(c, 64));
            qp_options options = {.pd = domains[i]->pd};
            qps.emplace_back(new qp(c, *cqs[i], *cqs[i], options));
            mine.a[i] = qps[i]->addr(mems[i].get());
        }
        r.publish(mine);
        peer = r.lookup<decltype(peer)>(1 - r.index);
        for (int i = 0; i < num; ++i) {
            qps[i]->connect(peer.a[i]);
            qps[i]->recv(0, mems[i]->sge(0, 4096));
        }
        r.barrier();

        /* both sides send, and receive what the other one sent */
        run_threads(num, [&](int i) {
            memory &mem = *mems[i];
            int sent = 0, received = 0, completed = 0;

            while ((completed < rounds) || (received < rounds)) {
                ibv_wc wc;

                if ((sent < rounds) && (sent == completed)) {
                    size_t length = 1 + (sent * 13 + i) % 4096;
                    pattern::fill(mem.data + 8192, length, sent * 100 + i);
                    send_wr wr(IBV_WR_SEND, 1ul << 32,
                               {mem.sge(8192, length)});
                    qps[i]->send(wr);
                    ++sent;
                }
                if (!cqs[i]->poll(&wc)) {
                    patience::pause();
                    check_abort();
                    continue;
                }
                REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
                if (wc.wr_id >> 32) {
                    ++completed;
                } else {
                    REQUIRE_EQ(1 + (received * 13 + i) % 4096, wc.byte_len);
                    REQUIRE_EQ(wc.byte_len,
                               pattern::check(mem.data, wc.byte_len,
                                              received * 100 + i));
                    ++received;
                    qps[i]->recv(0, mem.sge(0, 4096));
                }
            }
        });
        r.barrier();
        qps.clear();
        cqs.clear();
        mems.clear();
        domains.clear();
    });
}

TEST_F(test_device_thread, eight_on_one_queue_pair)
{
    run(1, [](rank&) {
        const int num = 8, rounds = 200;
        loop l({.send_wr = 128});
        std::atomic<int> completed(0), posted(0);

        run_threads(num, [&](int i) {
            for (int n = 0; n < rounds; ++n) {
                ibv_wc wc;

                /* the queue is not large enough for all */
                while (posted - completed > 64) {
                    if (ibv_poll_cq(l.scq.v, 1, &wc) == 1) {
                        REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
                        ++completed;
                    }
                }
                ++posted;
                size_t at = (i * rounds + n) * 8;
                memset(l.mem.data + at, i + 1, 8);
                send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(at, 8)},
                           IBV_SEND_SIGNALED | ((n & 1) ? IBV_SEND_INLINE : 0));
                l.a.send(wr.to(l.to_b, at));
            }
        });
        while (completed < num * rounds) {
            l.scq.good();
            ++completed;
        }
        REQUIRE(memcmp(l.mem.data, l.peer_mem.data, num * rounds * 8) == 0);
    });
}

TEST_F(test_device_thread, queues_that_share_uuars)
{
    /* without thread domains libmlx5 spreads QPs over few uUARs */
    run(1, [](rank&) {
        context c;
        const int num = 8;
        std::vector<std::unique_ptr<qp>> qps;
        std::vector<std::unique_ptr<cq>> cqs;
        memory mem(c, 65536);

        for (int i = 0; i < 3 * num; ++i) {
            cqs.emplace_back(new cq(c, 16));
            qps.emplace_back(new qp(c, *cqs[i], *cqs[i]));
            qps[i]->connect(qps[i]->addr());
        }
        run_threads(num, [&](int i) {
            for (int n = 0; n < 300; ++n) {
                int k     = (n % 3) * num + i;
                size_t at = k * 64;
                memset(mem.data + at, n, 32);
                send_wr wr(IBV_WR_RDMA_WRITE, n, {mem.sge(at, 32)},
                           IBV_SEND_SIGNALED | IBV_SEND_INLINE);
                qps[k]->send(wr.to(qps[k]->addr(&mem), 32768 + at));
                cqs[k]->good();
                REQUIRE(memcmp(mem.data + at, mem.data + 32768 + at, 32) == 0);
            }
        });
        qps.clear();
    });
}

TEST_F(test_device_thread, objects_are_made_while_others_post)
{
    run(1, [](rank&) {
        loop l;
        std::atomic<bool> stop(false);

        run_threads(4, [&](int i) {
            if (i == 0) {
                for (int n = 0; n < 2000; ++n) {
                    write_one(l.a, l.scq, l.mem, l.to_b, n);
                }
                stop = true;
                return;
            }

            while (!stop) {
                if (i == 1) {
                    memory mem(l.c, 65536);
                } else if (i == 2) {
                    cq q(l.c, 16);
                    domain d(l.c);
                    qp self(l.c, q, q, {.pd = d.pd});
                    self.connect(self.addr());
                    memory mem(l.c, 4096);
                    write_one(self, q, mem, self.addr(&mem), 1);
                } else {
                    context other;
                }
            }
        });
    });
}

TEST_F(test_device_thread, nothing_is_written_after_deregistration)
{
    run(2, [](rank &r) {
        const size_t size = 1 << 20;
        const int rounds  = 60;
        context c;
        cq q(c, 64);
        memory source(c, size);
        qp mine(c, q, q);
        uint8_t *target = (uint8_t*)mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        r.publish(mine.addr());
        address peer = r.lookup<address>(1 - r.index);
        memset(source.data, 0x11, size);
        for (int round = 1; round <= rounds; ++round) {
            mine.connect(peer);
            if (r.index == 0) {
                ibv_mr *mr = ibv_reg_mr(c.pd, target, size, all_access);

                r.word(1) = mr->rkey;
                r.word(2) = (uintptr_t)target;
                r.barrier();
                /* when the peer is at it */
                r.wait_word(3, round);
                REQUIRE_EQ(0, ibv_dereg_mr(mr));
                memset(target, 0xee, size);
                r.wait_word(4, round);
                for (size_t i = 0; i < size; ++i) {
                    REQUIRE_EQ(0xee, target[i]);
                }
            } else {
                ibv_wc wc;
                int n = 0;

                r.barrier();
                do {
                    send_wr wr(IBV_WR_RDMA_WRITE, 1, {source.sge(0, size)});
                    wr.wr.rdma.rkey        = r.word(1);
                    wr.wr.rdma.remote_addr = r.word(2);
                    mine.send(wr);
                    wc = q.next();
                    if (++n == 1) {
                        r.word(3) = round;
                    }
                } while (wc.status == IBV_WC_SUCCESS);
                REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, wc.status);
                r.word(4) = round;
            }
            mine.to_state(IBV_QPS_RESET);
            r.barrier();
        }
    });
}

TEST_F(test_device_thread, on_a_small_stack)
{
    run(1, [](rank&) {
        static loop *l;
        loop the_loop;
        pthread_attr_t attr;
        pthread_t thread;

        l = &the_loop;
        pthread_attr_init(&attr);
        REQUIRE_EQ(0, pthread_attr_setstacksize(&attr, 65536));
        REQUIRE_EQ(0, pthread_create(&thread, &attr, [](void*) -> void* {
            write_one(l->a, l->scq, l->mem, l->to_b, 1);
            return nullptr;
        }, nullptr));
        pthread_join(thread, nullptr);
    });
}


TEST_F(test_device_signal, handlers_of_the_application_get_what_is_theirs)
{
    /* installed before or after the device is there, in either form */
    for (int when = 0; when < 4; ++when) {
        run(1, [=](rank&) {
            struct sigaction act = {}, got;
            std::unique_ptr<loop> l;

            if (when >= 2) {
                l.reset(new loop);
                write_one(l->a, l->scq, l->mem, l->to_b, 1);
            }
            if (when & 1) {
                act.sa_sigaction = on_fault_info;
                act.sa_flags     = SA_SIGINFO;
                REQUIRE_EQ(0, sigaction(SIGBUS, &act, nullptr));
                REQUIRE_EQ(0, sigaction(SIGSEGV, &act, nullptr));
            } else {
                REQUIRE(signal(SIGBUS, on_fault) != SIG_ERR);
                REQUIRE(signal(SIGSEGV, on_fault) != SIG_ERR);
            }
            if (l == nullptr) {
                l.reset(new loop);
            }

            for (int i = 0; i < 3; ++i) {
                write_one(l->a, l->scq, l->mem, l->to_b, i);
                REQUIRE_EQ(0, caught);
                catch_fault(raise_bus_error, SIGBUS);
                catch_fault(raise_segmentation_fault, SIGSEGV);
                caught = 0;
            }

            /* it sees what it installed, not what the device needs */
            REQUIRE_EQ(0, sigaction(SIGBUS, nullptr, &got));
            if (when & 1) {
                REQUIRE(got.sa_sigaction == on_fault_info);
            } else {
                REQUIRE(got.sa_handler == on_fault);
            }
            /* a signal that somebody sends is no doorbell either */
            catch_fault([]() { raise(SIGBUS); }, SIGBUS);

            REQUIRE(signal(SIGBUS, SIG_DFL) != SIG_ERR);
            write_one(l->a, l->scq, l->mem, l->to_b, 9);
        });
    }
}

/* Those that do not end in the sigaction() that programs call */
TEST_F(test_device_signal, the_device_keeps_its_signal)
{
    for (const char *name : {"sigset", "sysv_signal", "__sysv_signal",
                             "bsd_signal", "ssignal"}) {
        run(1, [=](rank&) {
            auto set = (sighandler_t(*)(int, sighandler_t))
                       dlsym(RTLD_DEFAULT, name);
            loop l;

            REQUIRE(set != nullptr);
            write_one(l.a, l.scq, l.mem, l.to_b, 1);
            REQUIRE(set(SIGBUS, on_fault) != SIG_ERR);
            write_one(l.a, l.scq, l.mem, l.to_b, 2);
            REQUIRE_EQ(0, caught);
            catch_fault(raise_bus_error, SIGBUS);
            write_one(l.a, l.scq, l.mem, l.to_b, 3);
        });
    }

    run(1, [](rank&) {
        auto ignore = (int(*)(int))dlsym(RTLD_DEFAULT, "sigignore");
        loop l;

        REQUIRE_EQ(0, ignore(SIGBUS));
        raise(SIGBUS);
        write_one(l.a, l.scq, l.mem, l.to_b, 1);
    });
}

TEST_F(test_device_signal, an_error_without_a_handler_is_fatal)
{
    if (has_asan()) {
        GTEST_SKIP() << "the sanitizer has a handler";
    }

    for (bool sent : {false, true}) {
        start(0, 1, [=](rank&) {
            loop l;

            write_one(l.a, l.scq, l.mem, l.to_b, 1);
            if (sent) {
                ::kill(getpid(), SIGBUS);
                for (;;) {
                    pause();
                }
            }
            raise_bus_error();
        });
        EXPECT_EQ(SIGBUS, finish(0) & 0x7f);
    }
}

TEST_F(test_device_signal, ignored_when_sent)
{
    run(1, [](rank&) {
        loop l;

        REQUIRE(signal(SIGBUS, SIG_IGN) != SIG_ERR);
        raise(SIGBUS);
        write_one(l.a, l.scq, l.mem, l.to_b, 1);
    });
}

TEST_F(test_device_signal, timers_at_a_high_rate)
{
    run(1, [](rank&) {
        loop l;
        itimerval timer      = {{0, 100}, {0, 100}};
        struct sigaction act = {};
        int posts            = 0;

        act.sa_handler = [](int) { alarms = alarms + 1; };
        act.sa_flags   = SA_RESTART;
        REQUIRE_EQ(0, sigaction(SIGALRM, &act, nullptr));
        REQUIRE_EQ(0, setitimer(ITIMER_REAL, &timer, nullptr));
        while ((alarms < 300) || (posts < 2000)) {
            write_one(l.a, l.scq, l.mem, l.to_b, posts);
            REQUIRE_EQ(posts & 0xff, l.peer_mem.data[0]);
            ++posts;
        }
        timer = itimerval();
        setitimer(ITIMER_REAL, &timer, nullptr);
    });
}

TEST_F(test_device_signal, all_blocked_in_a_thread_that_posts)
{
    run(1, [](rank&) {
        for (int before = 0; before < 2; ++before) {
            sigset_t all, old;
            std::unique_ptr<loop> l;

            if (!before) {
                l.reset(new loop);
            }
            sigfillset(&all);
            REQUIRE_EQ(0, pthread_sigmask(SIG_SETMASK, &all, &old));
            if (before) {
                l.reset(new loop);
            }
            write_one(l->a, l->scq, l->mem, l->to_b, 1);
            REQUIRE_EQ(0, sigprocmask(SIG_BLOCK, &all, nullptr));
            write_one(l->a, l->scq, l->mem, l->to_b, 2);
            std::thread([&]() {
                write_one(l->a, l->scq, l->mem, l->to_b, 3);
            }).join();
            REQUIRE_EQ(0, pthread_sigmask(SIG_SETMASK, &old, nullptr));
        }
    });
}

/* A queue that the handler of SIGALRM posts to, and what. It may have
 * interrupted malloc(), so it is made beforehand. */
loop *handler_loop;
send_wr *handler_wr;
volatile sig_atomic_t handler_posts;

void on_alarm_post(int)
{
    int saved_errno = errno;
    ibv_send_wr *bad;
    ibv_wc wc;
    int count;

    if (ibv_post_send(handler_loop->a.v, handler_wr, &bad) != 0) {
        abort();
    }
    do {
        count = ibv_poll_cq(handler_loop->scq.v, 1, &wc);
    } while (count == 0);
    if ((count < 0) || (wc.status != IBV_WC_SUCCESS)) {
        abort();
    }
    handler_posts = handler_posts + 1;
    errno         = saved_errno;
}

/* The lock of a queue pair was held by the thread that the handler had
 * interrupted, and it waited for it for ever. */
TEST_F(test_device_signal, a_handler_posts_while_its_thread_is_in_a_command)
{
    run(1, [](rank&) {
        const int posts      = 2000;
        struct sigaction act = {};
        loop l;
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 1)});

        handler_loop   = &l;
        handler_wr     = &wr.to(l.to_b, 0);
        act.sa_handler = on_alarm_post;
        act.sa_flags   = SA_RESTART;
        REQUIRE_EQ(0, sigaction(SIGALRM, &act, nullptr));

        for (unsigned i = 0; handler_posts < posts; ++i) {
            /* One at a time: where the handler takes longer than that, a timer
             * with an interval would leave no time for anything else */
            struct itimerval timer = {{0, 0}, {0, 1 + (i % 100)}};
            ibv_qp_init_attr init;
            ibv_qp_attr attr;

            REQUIRE_EQ(0, setitimer(ITIMER_REAL, &timer, nullptr));

            /* whose locks the handler needs */
            REQUIRE_EQ(0, ibv_query_qp(l.a.v, &attr, IBV_QP_STATE, &init));
            REQUIRE_EQ(unsigned(IBV_QPS_RTS), unsigned(attr.qp_state));
            attr.min_rnr_timer = 1 + (i % 8);
            REQUIRE_EQ(0, ibv_modify_qp(l.b.v, &attr, IBV_QP_MIN_RNR_TIMER));
            if ((i % 16) == 0) {
                /* others are made and destroyed, and a context is closed */
                loop other;

                write_one(other.a, other.scq, other.mem, other.to_b, 3);
            }
        }

        const struct itimerval off = {};
        REQUIRE_EQ(0, setitimer(ITIMER_REAL, &off, nullptr));
    });
}

TEST_F(test_device_signal, a_handler_that_posts_while_all_else_is_blocked)
{
    typedef std::function<int(const sigset_t*)> wait_t;
    const std::pair<const char*, wait_t> waits[] = {
        {"sigsuspend", [](const sigset_t *mask) { return sigsuspend(mask); }},
        {"pselect", [](const sigset_t *mask) {
            return pselect(0, nullptr, nullptr, nullptr, nullptr, mask);
        }},
        {"ppoll", [](const sigset_t *mask) {
            return ppoll(nullptr, 0, nullptr, mask);
        }},
        {"epoll_pwait", [](const sigset_t *mask) {
            epoll_event event;
            int fd  = epoll_create1(EPOLL_CLOEXEC);
            int ret = epoll_pwait(fd, &event, 1, -1, mask);
            int err = errno;

            close(fd);
            errno = err;
            return ret;
        }},
    };

    for (auto &wait : waits) {
        run(1, [&](rank&) {
            static loop *l;
            loop the_loop;
            struct sigaction act = {};
            sigset_t usr1, mask;

            l = &the_loop;
            act.sa_handler = [](int) {
                write_one(l->a, l->scq, l->mem, l->to_b, 9);
            };
            REQUIRE_EQ(0, sigaction(SIGUSR1, &act, nullptr));

            /* comes when the wait lets it through, and nothing else */
            sigemptyset(&usr1);
            sigaddset(&usr1, SIGUSR1);
            REQUIRE_EQ(0, sigprocmask(SIG_BLOCK, &usr1, nullptr));
            raise(SIGUSR1);
            sigfillset(&mask);
            sigdelset(&mask, SIGUSR1);
            REQUIRE_EQ(-1, wait.second(&mask));
            REQUIRE_EQ(EINTR, errno);
            REQUIRE_EQ(9, l->peer_mem.data[0]);
        });
        ASSERT_FALSE(HasFailure()) << wait.first;
    }
}

TEST_F(test_device_signal, a_handler_that_posts)
{
    /* with all other signals blocked while it runs */
    run(1, [](rank&) {
        static loop *l;
        loop the_loop;
        struct sigaction act = {}, got;

        l = &the_loop;
        act.sa_handler = [](int) {
            write_one(l->a, l->scq, l->mem, l->to_b, 7);
        };
        sigfillset(&act.sa_mask);
        REQUIRE_EQ(0, sigaction(SIGUSR1, &act, nullptr));
        raise(SIGUSR1);
        REQUIRE_EQ(7, the_loop.peer_mem.data[0]);
        REQUIRE_EQ(0, sigaction(SIGUSR1, nullptr, &got));
        REQUIRE(got.sa_handler == act.sa_handler);
    });
}

TEST_F(test_device_signal, errno_survives_a_doorbell)
{
    run(1, [](rank&) {
        loop l;
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});

        wr.to(l.to_b, 0);
        errno = 1234;
        int ret = l.a.try_send(wr);
        REQUIRE_EQ(1234, errno);
        REQUIRE_EQ(0, ret);
        l.scq.good();
    });
}

/* A modify looks for what was posted as the device's own thread does from time
 * to time: neither may take it that an older doorbell record is newer than one
 * that was rung beside it. What is sent to the other node gets lost there. */
TEST_F(test_device_thread, doorbells_for_another_node_beside_those_who_look)
{
    const int can_not = 1, messages = 50000, each = 16, lookers = 4;

    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_WIRE", "lo");
    start(0, 1, [&](rank&) {
        if (!enter_network()) {
            _exit(can_not);
        }

        std::atomic<bool> is_over{false};
        qp_options options = {.type = IBV_QPT_UC};
        options.path.grh.sgid_index = 3;

        context c;
        cq scq(c, 256), rcq(c, 1);
        memory mem(c, 4096);
        qp q(c, scq, rcq, options);
        address there = q.addr();
        pid_t wire    = start_wire(dir() + "/wire.pid");
        in_addr_t ip  = inet_addr("127.0.0.2");

        there.gid        = {};
        memset(there.gid.raw + 10, 0xff, 2);
        memcpy(there.gid.raw + 12, &ip, sizeof(ip));
        q.connect(there);
        run_threads(1 + lookers, [&](int thread) {
            while ((thread > 0) && !is_over) {
                q.to_state(IBV_QPS_RTS);
            }
            for (int i = 0; (thread == 0) && (i < messages); ++i) {
                bool is_last = (i % each) == each - 1;
                send_wr wr(IBV_WR_SEND, i, {mem.sge(0, 8)},
                           is_last ? IBV_SEND_SIGNALED : 0);

                q.send(wr);
                if (is_last) {
                    REQUIRE_EQ(i, scq.good().wr_id);
                }
            }
            is_over = true;
        });
        REQUIRE_EQ(0, ::kill(wire, SIGTERM));
        REQUIRE_EQ(wire, waitpid(wire, nullptr, 0));
    });

    int status = finish(0);

    if (WIFEXITED(status) && (WEXITSTATUS(status) == can_not)) {
        GTEST_SKIP() << "no network of our own: unshare refused";
    }
    EXPECT_EQ(0, status);
}
