/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Write combining (MLX5SIM_WC): what a thread stores to a BlueFlame register is
 * seen when the thread orders its stores, and sooner or later in any case.
 * Stores whose order is left to chance are reported.
 */

#include <device/device_wqe.h>

#include <csignal>
#include <functional>
#include <thread>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

/* What is between a store and a look at its effect must be nothing but what it
 * says */
#define PLAIN \
    __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

namespace {

/* Instructions that no test lives to see executed */
const char *const for_ever = "4294967295";

class test_device_wc : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_WC", for_ever);
        catch_errors();
    }

    /* What was reported, and how often. The stacks of both have to be in the
     * report. */
    unsigned expect(const std::string &name)
    {
        std::vector<std::string> lines = take_violations();
        std::string text               = errors();
        unsigned num                   = 0;

        for (const auto &line : lines) {
            EXPECT_EQ(name, line.substr(0, line.find(' '))) << line;
            ++num;
        }
        return num;
    }
};

/* A queue pair that writes bytes to memory, which shows what the device has
 * seen. The store that rings is the last thing that post() does. */
struct writer {
    writer() : sq(l.a.v), seen(l.peer_mem.data)
    {
    }

    PLAIN void post(bool blueflame = true)
    {
        uint8_t data[32];

        ++num;
        memset(data, num, sizeof(data));
        raw_wqe w(sq, MLX5_OPCODE_RDMA_WRITE);
        w.raddr(l.to_b.addr + num, l.to_b.rkey).inl(data, 1);
        w.post(blueflame);
    }

    /* Whether the device has seen the last one */
    PLAIN bool is_seen() const
    {
        return seen[num] == num;
    }

    void finish()
    {
        __builtin_ia32_sfence();
        for (; done < num; ++done) {
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        }
        l.scq.empty();
    }

    loop             l;
    raw_sq           sq;
    volatile uint8_t *seen;
    uint8_t          num  = 0;
    unsigned         done = 0;
};

/* A turn is passed on by what orders no stores to a device: std::atomic may
 * exchange, without optimization */
PLAIN int look(const int *turn)
{
    return __atomic_load_n(turn, __ATOMIC_ACQUIRE);
}

PLAIN void pass(int *turn, int value)
{
    __atomic_store_n(turn, value, __ATOMIC_RELEASE);
}

typedef void (*insn_t)();

/* @return how many of 32 stores the device has seen after an instruction */
PLAIN unsigned count_seen(writer &w, insn_t insn, bool blueflame)
{
    unsigned num = 0;

    for (int i = 0; i < 32; ++i) {
        w.post(blueflame);
        insn();
        num += w.is_seen();
        __builtin_ia32_sfence();
    }
    return num;
}

/* Ring by a doorbell for a write, and then look, with only a fence in between.
 * @return What was seen */
PLAIN unsigned ring_and_look(writer &w)
{
    uint8_t data[32];
    uint8_t seen;

    memset(data, w.num, sizeof(data));
    raw_wqe wqe(w.sq, MLX5_OPCODE_RDMA_WRITE);
    wqe.raddr(w.l.to_b.addr + w.num, w.l.to_b.rkey).inl(data, 1);
    wqe.write();
    w.sq.record(w.sq.pi);
    asm volatile("movq %1, (%2)\n\t"
                 "sfence\n\t"
                 "movb (%3), %0"
                 : "=&q"(seen)
                 : "r"(wqe.head()), "r"(w.sq.next_register()),
                   "r"(w.seen + w.num)
                 : "memory");
    return seen;
}

PLAIN void nothing()
{
}

PLAIN void load_fence()
{
    __builtin_ia32_lfence();
}

PLAIN void pause_insn()
{
    __builtin_ia32_pause();
}

PLAIN void plain_store()
{
    static int word;

    asm volatile("movl $1, %0" : "=m"(word));
}

PLAIN void store_unlock()
{
    /* what pthread_spin_unlock() is */
    static int word;

    __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
}

PLAIN void exchange_registers()
{
    asm volatile("xchg %%rax, %%rdx" : : : "rax", "rdx");
}

PLAIN void store_fence()
{
    __builtin_ia32_sfence();
}

PLAIN void memory_fence()
{
    __builtin_ia32_mfence();
}

PLAIN void exchange()
{
    static int word;

    asm volatile("xchgl %%eax, %0" : "+m"(word) : : "rax");
}

PLAIN void locked_add()
{
    static int word;

    asm volatile("lock; addl $1, %0" : "+m"(word));
}

PLAIN void locked_add_64()
{
    static long word;

    asm volatile("lock; addq $1, %0" : "+m"(word));
}

PLAIN void cpuid()
{
    unsigned eax = 0, ecx = 0, ebx, edx;

    asm volatile("cpuid" : "+a"(eax), "+c"(ecx), "=b"(ebx), "=d"(edx));
}

PLAIN void system_call()
{
    long ret = SYS_getpid;

    asm volatile("syscall" : "+a"(ret) : : "rcx", "r11", "memory");
}

PLAIN void flags()
{
    asm volatile("pushfq\n\tpopfq" : : : "memory", "cc");
}

/* Make all steps of a process look like INT1.
 * words[0]: 1 when it begins, or the error; words[1]: how many have been */
[[noreturn]] void disguise_steps(pid_t pid, std::atomic<uint64_t> *words)
{
    siginfo_t info;
    int status;

    if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) {
        words[0] = errno;
        _exit(0);
    }
    words[0] = 1;
    while ((waitpid(pid, &status, __WALL) == pid) && WIFSTOPPED(status)) {
        if ((ptrace(PTRACE_GETSIGINFO, pid, nullptr, &info) == 0) &&
            (info.si_signo == SIGTRAP) && (info.si_code == TRAP_TRACE)) {
            info.si_code = TRAP_BRKPT;
            ptrace(PTRACE_SETSIGINFO, pid, nullptr, &info);
            ++words[1];
        }
        ptrace(PTRACE_CONT, pid, nullptr, WSTOPSIG(status));
    }
    _exit(0);
}

volatile sig_atomic_t caught;

void on_signal(int)
{
    ++caught;
}

} // namespace


TEST_F(test_device_wc, stores_are_seen_at_once_unless_the_mode_is_on)
{
    set_env("MLX5SIM_WC", "0");
    run(1, [](rank&) {
        writer w;

        REQUIRE_EQ(32, count_seen(w, nothing, true));
        REQUIRE_EQ(32, count_seen(w, nothing, false));
        w.finish();
    });
}

/* What is behind a fence is another thread's turn, say: instructions after a
 * store that rings are interpreted with it, but not beyond the fence */
TEST_F(test_device_wc, nothing_behind_a_fence_comes_before_the_doorbell)
{
    set_env("MLX5SIM_WC", "0");
    run(1, [](rank&) {
        writer w;

        for (int i = 0; i < 32; ++i) {
            REQUIRE_EQ(++w.num, ring_and_look(w));
        }
        w.finish();
    });
}

TEST_F(test_device_wc, stores_are_kept_by_what_orders_nothing)
{
    run(1, [](rank&) {
        for (insn_t insn : {nothing, load_fence, pause_insn, plain_store,
                            store_unlock, exchange_registers}) {
            for (bool blueflame : {true, false}) {
                writer w;
                unsigned num = count_seen(w, insn, blueflame);

                /* one in four is written out at once */
                REQUIRE(num < 24);
                w.finish();
            }
        }
    });
}

TEST_F(test_device_wc, stores_are_seen_after_what_orders_them)
{
    run(1, [](rank&) {
        for (insn_t insn : {store_fence, memory_fence, exchange, locked_add,
                            locked_add_64, cpuid, system_call, flags}) {
            for (bool blueflame : {true, false}) {
                writer w;

                REQUIRE_EQ(32, count_seen(w, insn, blueflame));
                w.finish();
            }
        }
    });
}

TEST_F(test_device_wc, stores_are_seen_after_the_instructions_of_the_variable)
{
    set_env("MLX5SIM_WC", "300");
    run(1, [](rank&) {
        unsigned longest = 0;
        writer w;

        for (int i = 0; i < 64; ++i) {
            unsigned loops = 0;

            w.post();
            while (!w.is_seen()) {
                ++loops;
            }
            REQUIRE(loops <= 300);
            longest = std::max(longest, loops);
            __builtin_ia32_sfence();
        }
        REQUIRE(longest > 0);
        w.finish();
    });
}

/* A virtual machine may lose the processor's reason for a step, and the signal
 * is then that of INT1. It ended the program. */
TEST_F(test_device_wc, a_step_may_look_like_an_instruction)
{
    run(1, [this](rank&) {
        pid_t tracer = fork();

        if (tracer == 0) {
            disguise_steps(getppid(), &word(0));
        }
        REQUIRE(patience::until([this]() { return word(0) != 0; }));
        if (word(0) == 1) {
            writer w;
            uint64_t end = now_ms() + patience_ms;

            /* Until one is kept, and its thread is stepped */
            do {
                REQUIRE(now_ms() < end);
                __builtin_ia32_sfence();
                w.post();
            } while (w.is_seen());
            w.finish();
        }
        ::kill(tracer, SIGKILL);
        REQUIRE_EQ(tracer, waitpid(tracer, nullptr, 0));
        REQUIRE((word(0) != 1) || (word(1) > 0));
    });
    if (word(0) > 1) {
        GTEST_SKIP() << "processes can't be traced: " << strerror(word(0));
    }
}

TEST_F(test_device_wc, the_seed_decides)
{
    std::vector<uint64_t> seen;

    /* the same page of a device of its own, so only the seed differs */
    for (const char *seed : {"1", "1", "2"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + std::to_string(seen.size()));
        set_env("MLX5SIM_SEED", seed);
        run(1, [this](rank&) {
            uint64_t bits = 0;
            writer w;

            for (int i = 0; i < 64; ++i) {
                w.post();
                bits = (bits << 1) | w.is_seen();
                __builtin_ia32_sfence();
            }
            word(0) = bits;
            w.finish();
        });
        EXPECT_NE(std::string::npos,
                  errors().find("MLX5SIM_SEED=" + std::string(seed)));
        seen.push_back(word(0)); /* run() starts with zeros */
    }
    EXPECT_NE(0u, seen[0]);
    EXPECT_NE(UINT64_MAX, seen[0]);
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_NE(seen[0], seen[2]);
}

TEST_F(test_device_wc, libmlx5_flushes)
{
    run(1, [](rank&) {
        loop l;

        for (unsigned i = 0; i < 200; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 8)});

            l.a.send(wr.to(l.to_b, 0));
            l.scq.good();
        }
    });
}

TEST_F(test_device_wc, another_thread_must_not_ring_before_a_flush)
{
    run(1, [](rank&) {
        int turn = 0;
        writer w;

        /* Each waits for its turn without ordering its stores, as behind a spin
         * lock that the other one holds */
        auto body = [&](int self) {
            for (int i = self; i < 20; i += 2) {
                while (look(&turn) != i) {
                }
                w.post();
                pass(&turn, i + 1);
            }
            while (look(&turn) != 20) {
            }
        };
        std::thread other(body, 1);
        body(0);
        other.join();
        w.finish();
    });

    EXPECT_GE(expect("wc_race"), 5u);
    std::string text = errors();
    for (const char *which : {"kept store, thread ", "this store, thread "}) {
        size_t at = text.find(which);

        ASSERT_NE(std::string::npos, at) << text;
        /* Its stack: an address at least */
        EXPECT_NE(std::string::npos, text.substr(at, 300).find("0x")) << text;
    }
}

TEST_F(test_device_wc, another_thread_may_ring_after_a_flush)
{
    run(1, [](rank&) {
        int turn = 0;
        writer w;

        auto body = [&](int self) {
            for (int i = self; i < 20; i += 2) {
                while (look(&turn) != i) {
                }
                w.post();
                __builtin_ia32_sfence();
                pass(&turn, i + 1);
            }
        };
        std::thread other(body, 1);
        body(0);
        other.join();
        w.finish();
    });
}

TEST_F(test_device_wc, threads_on_registers_of_their_own_do_not_matter)
{
    run(1, [](rank&) {
        int turn = 0;
        loop l;
        qp other_qp(l.c, l.scq, l.rcq);
        raw_sq a(l.a.v), b(other_qp.v);

        other_qp.connect(other_qp.addr());
        REQUIRE(a.dv.bf.reg != b.dv.bf.reg);
        auto body = [&](int self) {
            raw_sq &sq = self ? b : a;

            for (int i = self; i < 20; i += 2) {
                while (look(&turn) != i) {
                }
                raw_wqe(sq, MLX5_OPCODE_NOP).post(true);
                pass(&turn, i + 1);
            }
        };
        std::thread other(body, 1);
        body(0);
        other.join();
        __builtin_ia32_sfence();
        for (int i = 0; i < 20; ++i) {
            l.scq.next();
        }
    });
}

TEST_F(test_device_wc, two_stores_of_a_thread_need_a_fence_between_them)
{
    run(1, [](rank&) {
        writer w;
        raw_wqe first(w.sq, MLX5_OPCODE_NOP);

        for (int i = 0; i < 16; ++i) {
            raw_wqe nop(w.sq, MLX5_OPCODE_NOP);

            nop.write();
            ((volatile uint32_t*)w.sq.dv.dbrec)[MLX5_SND_DBR] =
                    htobe32(w.sq.pi);
            w.sq.blueflame(nop.bytes, 1);
        }
        __builtin_ia32_sfence();
        for (int i = 0; i < 16; ++i) {
            w.l.scq.next();
        }
    });
    EXPECT_GE(expect("wc_order"), 5u);
}

TEST_F(test_device_wc, buffers_of_a_register_are_used_in_turn)
{
    run(1, [](rank&) {
        writer w;

        w.post();
        __builtin_ia32_sfence();
        w.sq.toggle ^= w.sq.dv.bf.size;
        w.post();
        w.finish();
    });
    EXPECT_EQ(1u, expect("bf_buffer"));
}

TEST_F(test_device_wc, a_signal_orders_stores_and_is_not_lost)
{
    run(1, [](rank&) {
        itimerval timer       = {};
        struct sigaction action = {};
        writer w;

        action.sa_handler = on_signal;
        REQUIRE_EQ(0, sigaction(SIGALRM, &action, NULL));
        timer.it_value.tv_usec = 2000;
        for (int in_time = 0; in_time < 8;) {
            int before = caught;

            REQUIRE_EQ(0, setitimer(ITIMER_REAL, &timer, NULL));
            w.post();
            int posted = caught;
            while (caught == before) {
            }
            if (posted == before) {
                REQUIRE(w.is_seen());
                ++in_time;
            } else { /* It came before the stores: other processes ran */
                timer.it_value.tv_usec *= 2;
            }
            w.finish();
        }
    });
}

TEST_F(test_device_wc, handlers_of_a_program_get_their_signals)
{
    run(1, [](rank&) {
        struct sigaction action = {}, old;
        sigset_t set, now;
        writer w;

        /* breakpoints are the program's, and may come while it is stepped */
        action.sa_handler = on_signal;
        REQUIRE_EQ(0, sigaction(SIGTRAP, &action, NULL));
        for (int i = 0; i < 8; ++i) {
            w.post();
            asm volatile("int3");
            REQUIRE(w.is_seen());
        }
        REQUIRE_EQ(8, caught);
        REQUIRE_EQ(0, raise(SIGTRAP));
        REQUIRE_EQ(9, caught);
        REQUIRE_EQ(0, sigaction(SIGTRAP, NULL, &old));
        REQUIRE(old.sa_handler == on_signal);

        /* nor does a program notice that signals were blocked */
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigaddset(&set, SIGTRAP);
        REQUIRE_EQ(0, pthread_sigmask(SIG_SETMASK, &set, NULL));
        for (int i = 0; i < 8; ++i) {
            w.post();
            nothing();
            REQUIRE_EQ(0, pthread_sigmask(SIG_SETMASK, NULL, &now));
            REQUIRE(sigismember(&now, SIGUSR1));
            REQUIRE(!sigismember(&now, SIGUSR2));
            REQUIRE(!sigismember(&now, SIGALRM));
        }
        w.finish();
    });
}

TEST_F(test_device_wc, a_doorbell_in_a_signal_handler_comes_after_the_thread_s)
{
    static volatile sig_atomic_t may_post;
    static writer *static_w;

    run(1, [](rank&) {
        struct sigaction action = {};
        itimerval timer         = {}, never = {};
        writer w;

        static_w          = &w;
        action.sa_handler = [](int) {
            /* A post that is interrupted half way would go wrong anywhere */
            if (may_post) {
                may_post = 0;
                static_w->post();
                ++caught;
            }
        };
        REQUIRE_EQ(0, sigaction(SIGALRM, &action, NULL));
        for (int i = 0; i < 8; ++i) {
            int before = caught;

            timer.it_value.tv_usec    = 2000;
            timer.it_interval.tv_usec = 2000;
            REQUIRE_EQ(0, setitimer(ITIMER_REAL, &timer, NULL));
            w.post();
            may_post = 1;
            while (caught == before) {
            }
            REQUIRE_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
        }
        w.finish();
    });
}

TEST_F(test_device_wc, a_forked_child_starts_with_empty_buffers)
{
    run(1, [](rank&) {
        writer w;

        w.post();
        pid_t pid = fork();
        if (pid == 0) {
            _exit(w.is_seen() ? 0 : 1);
        }

        int status;
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);
        w.finish();
    });
}
