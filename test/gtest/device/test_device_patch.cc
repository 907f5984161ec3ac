/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Doorbells without signals (MLX5SIM_PATCH_AFTER): stores that have rung often
 * are replaced by jumps, and memcpy() of libraries that ring by it.
 */

#include <device/device_wqe.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include <dlfcn.h>
#include <sys/time.h>

using namespace device;

namespace {

/** What patch_probe() loads into registers, and what it finds there after its
 *  store. */
struct probe_regs {
    uint64_t gpr[15]; /* rax, rbx, rcx, rdx, rbp, rsi, rdi, r8 to r15 */
    uint64_t flags;
    uint64_t red_zone;
    uint64_t unused;
    uint8_t  ymm[16][32];
};

} // namespace

/* Functions of a store each, with a label at it */
extern "C" {
void patch_mov64(void *addr, uint64_t value);
void patch_mov64_far(void *addr, uint64_t value);
void patch_mov32(void *addr, uint64_t value);
void patch_movnti(void *addr, uint64_t value);
void patch_movdqu(void *addr, const void *wqe);
void patch_memcpy(void *addr, const void *data, size_t length);
void patch_two(void *addr, uint64_t value, void *other, uint64_t other_value);
uint64_t patch_frame(void *addr, uint64_t value);
uint64_t patch_big_frame(void *addr, uint64_t value);
void patch_probe(const probe_regs *in, probe_regs *out);
extern uint8_t patch_mov64_at[], patch_mov64_far_at[], patch_mov32_at[],
               patch_movnti_at[], patch_movdqu_at[], patch_two_at[],
               patch_frame_at[], patch_big_frame_at[], patch_probe_at[];
}

/* What follows a short store says where its jump leads to */
asm(".text\n"
    "patch_mov64:\n"
    "patch_mov64_at:\n"
    "    movq %rsi, (%rdi)\n"
    "    ret\n"
    "    .byte 0x40\n"
    "patch_mov64_far:\n"
    "    lea -0x12340(%rdi), %rdi\n"
    "patch_mov64_far_at:\n"
    "    movq %rsi, 0x12340(%rdi)\n"
    "    ret\n"
    "patch_mov32:\n"
    "patch_mov32_at:\n"
    "    movl %esi, (%rdi)\n"
    "    shr $32, %rsi\n"
    "    movl %esi, 4(%rdi)\n"
    "    ret\n"
    "patch_movnti:\n"
    "patch_movnti_at:\n"
    "    movnti %rsi, (%rdi)\n"
    "    ret\n"
    "patch_movdqu:\n"
    "    movdqu (%rsi), %xmm3\n"
    "    movdqu 16(%rsi), %xmm4\n"
    "    movdqu 32(%rsi), %xmm5\n"
    "    movdqu 48(%rsi), %xmm6\n"
    "patch_movdqu_at:\n"
    "    movdqu %xmm3, (%rdi)\n"
    "    movdqu %xmm4, 16(%rdi)\n"
    "    movdqu %xmm5, 32(%rdi)\n"
    "    movdqu %xmm6, 48(%rdi)\n"
    "    ret\n"
    "patch_memcpy:\n"
    "    sub $8, %rsp\n"
    "    call memcpy@PLT\n"
    "    add $8, %rsp\n"
    "    ret\n"
    "patch_two:\n"
    "patch_two_at:\n"
    "    movq %rsi, (%rdi)\n"
    "    movq %rcx, (%rdx)\n"
    "    ret\n"
    ".macro frame name, size\n"
    "\\name:\n"
    "    mov $0x1, %eax\n"
    "    mov $0x20, %ecx\n"
    "    mov $0x300, %edx\n"
    "    mov $0x4000, %r8d\n"
    "    mov $0x50000, %r9d\n"
    "    mov $0x600000, %r10d\n"
    "    mov $0x7000000, %r11d\n"
    "\\name\\()_at:\n"
    "    movq %rsi, (%rdi)\n"
    "    push %rbx\n"
    "    push %rbp\n"
    "    push %r12\n"
    "    sub $\\size, %rsp\n"
    "    mov %fs:0, %rbx\n" /* the interpreter does not know segments */
    "    mov %rbx, (%rsp)\n"
    "    add $\\size, %rsp\n"
    "    pop %r12\n"
    "    pop %rbp\n"
    "    pop %rbx\n"
    "    add %rcx, %rax\n"
    "    add %rdx, %rax\n"
    "    add %r8, %rax\n"
    "    add %r9, %rax\n"
    "    add %r10, %rax\n"
    "    add %r11, %rax\n"
    "    ret\n"
    ".endm\n"
    "frame patch_frame, 0xb8\n"
    "frame patch_big_frame, 0x7b8\n"
    "patch_probe:\n"
    "    push %rbx\n"
    "    push %rbp\n"
    "    push %r12\n"
    "    push %r13\n"
    "    push %r14\n"
    "    push %r15\n"
    "    push %rsi\n"
    "    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "    vmovdqu 144+32*\\n(%rdi), %ymm\\n\n"
    "    .endr\n"
    "    pushq 120(%rdi)\n"
    "    popfq\n"
    "    mov 128(%rdi), %rax\n"
    "    mov %rax, -64(%rsp)\n"
    "    mov (%rdi), %rax\n"
    "    mov 8(%rdi), %rbx\n"
    "    mov 16(%rdi), %rcx\n"
    "    mov 24(%rdi), %rdx\n"
    "    mov 32(%rdi), %rbp\n"
    "    mov 40(%rdi), %rsi\n"
    "    mov 56(%rdi), %r8\n"
    "    mov 64(%rdi), %r9\n"
    "    mov 72(%rdi), %r10\n"
    "    mov 80(%rdi), %r11\n"
    "    mov 88(%rdi), %r12\n"
    "    mov 96(%rdi), %r13\n"
    "    mov 104(%rdi), %r14\n"
    "    mov 112(%rdi), %r15\n"
    "    mov 48(%rdi), %rdi\n"
    "patch_probe_at:\n"
    "    movq %rsi, 0(%rdi)\n"
    "    lfence\n" /* the interpreter stops here */
    "    pushfq\n"
    "    push %rdi\n"
    "    mov 16(%rsp), %rdi\n"
    "    mov %rax, (%rdi)\n"
    "    mov %rbx, 8(%rdi)\n"
    "    mov %rcx, 16(%rdi)\n"
    "    mov %rdx, 24(%rdi)\n"
    "    mov %rbp, 32(%rdi)\n"
    "    mov %rsi, 40(%rdi)\n"
    "    popq 48(%rdi)\n"
    "    mov %r8, 56(%rdi)\n"
    "    mov %r9, 64(%rdi)\n"
    "    mov %r10, 72(%rdi)\n"
    "    mov %r11, 80(%rdi)\n"
    "    mov %r12, 88(%rdi)\n"
    "    mov %r13, 96(%rdi)\n"
    "    mov %r14, 104(%rdi)\n"
    "    mov %r15, 112(%rdi)\n"
    "    popq 120(%rdi)\n"
    "    mov -64(%rsp), %rax\n"
    "    mov %rax, 128(%rdi)\n"
    "    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "    vmovdqu %ymm\\n, 144+32*\\n(%rdi)\n"
    "    .endr\n"
    "    cld\n"
    "    pop %rsi\n"
    "    pop %r15\n"
    "    pop %r14\n"
    "    pop %r13\n"
    "    pop %r12\n"
    "    pop %rbp\n"
    "    pop %rbx\n"
    "    ret\n");

namespace {

const uint8_t jump = 0xe9;

class test_device_patch : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_PATCH_AFTER", "8");
    }
};

/* Writes of a byte each, which show what the device has executed */
struct ringer {
    ringer() : sq(l.a.v)
    {
    }

    /* Post without a doorbell. @return the first bytes, which ring */
    uint64_t prepare()
    {
        raw_wqe w(sq, MLX5_OPCODE_RDMA_WRITE);
        uint8_t data = ++num;
        uint64_t head;

        w.raddr(l.to_b.addr + num % 64, l.to_b.rkey).inl(&data, 1);
        w.write();
        sq.record(sq.pi);
        memcpy(wqe, w.bytes, sizeof(wqe));
        memcpy(&head, wqe, sizeof(head));
        return head;
    }

    /* The same, which adds 1 to the first word of the peer's memory */
    uint64_t prepare_add()
    {
        raw_wqe w(sq, MLX5_OPCODE_ATOMIC_FA);
        mlx5_wqe_atomic_seg add = {htobe64(1), 0};
        uint64_t head;

        w.raddr(l.to_b.addr, l.to_b.rkey).raw(&add, sizeof(add))
                .data(l.mem.sge(0, sizeof(head)));
        w.write();
        sq.record(sq.pi);
        memcpy(&head, w.bytes, sizeof(head));
        return head;
    }

    void check_add()
    {
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        REQUIRE_EQ(++adds, *(volatile uint64_t*)l.peer_mem.data);
    }

    void check()
    {
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        REQUIRE_EQ(num, ((volatile uint8_t*)l.peer_mem.data)[num % 64]);
    }

    loop     l;
    raw_sq   sq;
    uint8_t  num  = 0;
    uint64_t adds = 0;
    uint8_t  wqe[64];
};

struct site {
    void          (*store)(void *addr, uint64_t value);
    const uint8_t *at;
};

const site sites[] = {
    {patch_mov64, patch_mov64_at},
    {patch_mov64_far, patch_mov64_far_at},
    {patch_mov32, patch_mov32_at},
    {patch_movnti, patch_movnti_at}
};

/* Store to other memory so often that the store is put back */
void estrange()
{
    uint64_t word = 0;

    REQUIRE_EQ(jump, *patch_mov64_at);
    for (unsigned i = 0; i < 2000; ++i) {
        patch_mov64(&word, i);
        REQUIRE_EQ(i, word);
    }
    REQUIRE_EQ(0x48, *patch_mov64_at);
}

} // namespace


TEST_F(test_device_patch, hot_stores_become_jumps_and_ring)
{
    run(1, [](rank&) {
        ringer r;

        for (const auto &s : sites) {
            for (unsigned i = 0; i < 32; ++i) {
                uint64_t head = r.prepare();

                REQUIRE_EQ(i >= 8, *s.at == jump);
                s.store(r.sq.next_register(), head);
                r.check();
            }
        }
    });
}

TEST_F(test_device_patch, a_jump_takes_the_rest_of_blueflame_along)
{
    run(1, [this](rank&) {
        long before = 0;
        ringer r;

        for (unsigned i = 0; i < 32; ++i) {
            r.prepare();
            patch_movdqu(r.sq.next_register(), r.wqe);
            r.check();
            before = (i == 15) ? stat_total("traps") : before;
        }
        REQUIRE_EQ(jump, *patch_movdqu_at);
        REQUIRE_EQ(before, stat_total("traps"));
        REQUIRE_EQ(32, stat_total("blueflames"));
    });
}

TEST_F(test_device_patch, memory_that_is_not_the_device_s_is_stored_to)
{
    run(1, [](rank&) {
        uint64_t words[2] = {};
        ringer r;

        for (const auto &s : sites) {
            for (unsigned i = 0; i < 16; ++i) {
                s.store(r.sq.next_register(), r.prepare());
                r.check();
            }
            REQUIRE_EQ(jump, *s.at);
            s.store(&words[0], 0x1122334455667788);
            REQUIRE_EQ(0x1122334455667788, words[0]);
            REQUIRE_EQ(0, words[1]);
            words[0] = 0;
        }
    });
}

/* A function that copies to any memory must not stay slow */
TEST_F(test_device_patch, a_store_that_turns_to_other_memory_comes_back)
{
    run(1, [](rank&) {
        ringer r;

        for (unsigned i = 0; i < 16; ++i) {
            patch_mov64(r.sq.next_register(), r.prepare());
            r.check();
        }
        estrange();
        for (unsigned i = 0; i < 16; ++i) {
            patch_mov64(r.sq.next_register(), r.prepare());
            r.check();
        }
    });
}

TEST_F(test_device_patch, registers_flags_and_the_red_zone_stay)
{
    run(1, [](rank&) {
        ringer r;
        probe_regs in, out;

        for (unsigned i = 0; i < 32; ++i) {
            for (size_t b = 0; b < sizeof(in); ++b) {
                ((uint8_t*)&in)[b] = b * 7 + i;
            }
            in.flags  = 0x202 | ((i & 1) ? 0x8d5 : 0) | ((i & 2) ? 0x400 : 0);
            in.gpr[5] = r.prepare();
            in.gpr[6] = (uintptr_t)r.sq.next_register();
            in.unused = 0;
            out       = probe_regs();
            patch_probe(&in, &out);
            r.check();
            REQUIRE_EQ(0, memcmp(&in, &out, sizeof(in)));
        }
        REQUIRE_EQ(jump, *patch_probe_at);
    });
}

/* What follows is interpreted, too, and may be the beginning of a function */
TEST_F(test_device_patch, a_frame_behind_a_store_is_made)
{
    run(1, [](rank&) {
        ringer r;

        for (unsigned i = 0; i < 32; ++i) {
            uint64_t head = r.prepare();

            REQUIRE_EQ(0x7654321, patch_frame(r.sq.next_register(), head));
            r.check();
            head = r.prepare();
            REQUIRE_EQ(0x7654321, patch_big_frame(r.sq.next_register(), head));
            r.check();
        }
        REQUIRE_EQ(jump, *patch_frame_at);
        REQUIRE_EQ(jump, *patch_big_frame_at);
    });
}

/* The jump of the first one would have bytes of the second in it */
TEST_F(test_device_patch, of_two_stores_in_a_row_one_is_replaced)
{
    run(1, [](rank&) {
        ringer a, b;

        for (unsigned i = 0; i < 64; ++i) {
            uint64_t head = a.prepare(), other = b.prepare();

            patch_two(a.sq.next_register(), head, b.sq.next_register(), other);
            a.check();
            b.check();
        }
        REQUIRE_EQ(1, (patch_two_at[0] == jump) + (patch_two_at[3] == jump));
    });
}

/* The first store to a page that the device does not know yet raises a signal,
 * from where the copy of the instruction is */
TEST_F(test_device_patch, copies_are_not_replaced)
{
    run(1, [](rank&) {
        for (unsigned i = 0; i < 30; ++i) {
            ringer r;

            patch_mov64(r.sq.next_register(), r.prepare());
            r.check();
        }
        estrange();
    });
}

TEST_F(test_device_patch, threads_meet_the_change)
{
    set_env("MLX5SIM_PATCH_AFTER", "100");
    for (int round = 0; round < 8; ++round) {
        run(1, [](rank&) {
            std::vector<std::unique_ptr<ringer>> ringers;
            std::vector<std::thread> threads;

            for (int i = 0; i < 4; ++i) {
                ringers.emplace_back(new ringer);
            }
            for (auto &r : ringers) {
                threads.emplace_back([&r] {
                    for (unsigned i = 0; i < 400; ++i) {
                        const site &s = sites[i % 4];
                        uint64_t head = r->prepare();

                        s.store(r->sq.next_register(), head);
                        r->check();
                    }
                });
            }
            for (auto &t : threads) {
                t.join();
            }
            for (const auto &s : sites) {
                REQUIRE_EQ(jump, *s.at);
            }
        });
    }
}

TEST_F(test_device_patch, who_rings_by_memcpy_calls_the_device)
{
    run(1, [this](rank&) {
        uint8_t from[256], to[256];
        long before = 0;
        ringer r;

        for (unsigned i = 0; i < 32; ++i) {
            r.prepare();
            patch_memcpy(r.sq.next_register(), r.wqe, sizeof(r.wqe));
            r.check();
            before = (i == 15) ? stat_total("traps") : before;
        }
        /* a sanitizer's memcpy() stays */
        REQUIRE(has_asan() || (before == stat_total("traps")));
        REQUIRE_EQ(32, stat_total("blueflames"));

        for (size_t i = 0; i < sizeof(from); ++i) {
            from[i] = i;
        }
        for (size_t length = 0; length <= sizeof(to); ++length) {
            memset(to, 0xff, sizeof(to));
            patch_memcpy(to, from, length);
            REQUIRE_EQ(0, memcmp(to, from, length));
            for (size_t i = length; i < sizeof(to); ++i) {
                REQUIRE_EQ(0xff, to[i]);
            }
        }
    });
}

namespace {

ringer *interrupted;
volatile sig_atomic_t interrupts;
volatile sig_atomic_t next_value;

/* Signals of one number are queued, each with a value */
void count_values(int sig, siginfo_t *info, void *context)
{
    REQUIRE_EQ(SIGRTMIN, sig);
    REQUIRE_EQ(SI_QUEUE, info->si_code);
    REQUIRE_EQ(next_value, info->si_value.sival_int);
    REQUIRE(context != nullptr);
    next_value = next_value + 1;
}

void ring_in_handler(int)
{
    patch_mov64(interrupted->sq.next_register(), interrupted->prepare());
    interrupted->check();
    ++interrupts;
}

void add_in_handler(int)
{
    patch_mov64(interrupted->sq.next_register(), interrupted->prepare_add());
    interrupted->check_add();
    ++interrupts;
}

} // namespace

/* A handler that rings would wait for ever for a lock of who it interrupts */
TEST_F(test_device_patch, handlers_ring_as_well)
{
    run(1, [](rank&) {
        struct itimerval timer = {{0, 300}, {0, 300}};
        ringer r, other;

        interrupted = &other;
        signal(SIGALRM, ring_in_handler);
        setitimer(ITIMER_REAL, &timer, nullptr);
        while (interrupts < 200) {
            patch_mov64(r.sq.next_register(), r.prepare());
            r.check();
        }
        timer = {};
        setitimer(ITIMER_REAL, &timer, nullptr);
        REQUIRE_EQ(jump, *patch_mov64_at);
    });
}

/* Atomics at addresses that are the same but for the page have a lock in
 * common: the device must be done with one before the next begins */
TEST_F(test_device_patch, handlers_do_not_interrupt_the_device)
{
    run(1, [](rank&) {
        struct itimerval timer = {{0, 300}, {0, 300}};
        ringer r, other;

        interrupted = &other;
        signal(SIGALRM, add_in_handler);
        setitimer(ITIMER_REAL, &timer, nullptr);
        while (interrupts < 300) {
            patch_mov64(r.sq.next_register(), r.prepare_add());
            r.check_add();
        }
        timer = {};
        setitimer(ITIMER_REAL, &timer, nullptr);
        REQUIRE_EQ(jump, *patch_mov64_at);
    });
}

/* Those that come while the device is at work wait until it is done */
TEST_F(test_device_patch, signals_come_in_order_and_as_they_were_sent)
{
    const int count = 3000;

    run(1, [](rank&) {
        struct sigaction action = {};
        pthread_t self          = pthread_self();
        ringer r;

        action.sa_sigaction = count_values;
        action.sa_flags     = SA_SIGINFO;
        REQUIRE_EQ(0, sigaction(SIGRTMIN, &action, nullptr));
        while (*(volatile const uint8_t*)patch_mov64_at != jump) {
            patch_mov64(r.sq.next_register(), r.prepare());
            r.check();
        }
        std::thread sender([&]() {
            for (int i = 0; i < count; ++i) {
                union sigval value = {};

                value.sival_int = i;
                while (pthread_sigqueue(self, SIGRTMIN, value) != 0) {
                    REQUIRE_EQ(EAGAIN, errno);
                }
            }
        });
        while (next_value < count) {
            patch_mov64(r.sq.next_register(), r.prepare());
            r.check();
        }
        sender.join();
    });
}

/* The program's handler, and not the one that the kernel has */
TEST_F(test_device_patch, programs_are_told_the_handlers_that_they_have_set)
{
    run(1, [](rank&) {
        struct sigaction action = {}, old;
        ringer r, other;

        interrupted       = &other;
        action.sa_handler = ring_in_handler;
        action.sa_flags   = SA_RESETHAND;
        sigaddset(&action.sa_mask, SIGUSR2);
        REQUIRE_EQ(0, sigaction(SIGUSR1, &action, &old));
        REQUIRE(old.sa_handler == SIG_DFL);
        REQUIRE_EQ(0, sigaction(SIGUSR1, nullptr, &old));
        REQUIRE(old.sa_handler == ring_in_handler);
        REQUIRE_EQ(SA_RESETHAND, old.sa_flags &
                                 (SA_SIGINFO | SA_RESETHAND | SA_RESTART));
        REQUIRE_EQ(1, sigismember(&old.sa_mask, SIGUSR2));

        /* once only */
        raise(SIGUSR1);
        REQUIRE_EQ(1, interrupts);
        REQUIRE_EQ(0, sigaction(SIGUSR1, nullptr, &old));
        REQUIRE(old.sa_handler == SIG_DFL);

        REQUIRE(signal(SIGUSR1, ring_in_handler) == SIG_DFL);
        REQUIRE_EQ(0, sigaction(SIGUSR1, nullptr, &old));
        REQUIRE(old.sa_handler == ring_in_handler);
        REQUIRE_EQ(SA_RESTART, old.sa_flags &
                               (SA_SIGINFO | SA_RESETHAND | SA_RESTART));
        REQUIRE(signal(SIGUSR1, SIG_IGN) == ring_in_handler);
        raise(SIGUSR1);
        REQUIRE_EQ(1, interrupts);
        REQUIRE_EQ(-1, sigaction(65, &action, nullptr));
        REQUIRE_EQ(EINVAL, errno);
    });
}

/* By all ways that the C library has. Who is given the kernel's handler sets
 * that again, and does not get its own back. */
TEST_F(test_device_patch, handlers_are_set_in_older_ways)
{
    static const struct {
        const char *name;
        int        flags;
    } ways[] = {
        {"signal", SA_RESTART}, {"bsd_signal", SA_RESTART},
        {"ssignal", SA_RESTART}, {"sigset", 0},
        {"sysv_signal", (int)SA_RESETHAND | SA_NODEFER},
        {"__sysv_signal", (int)SA_RESETHAND | SA_NODEFER}
    };

    run(1, [](rank&) {
        const int flags = SA_SIGINFO | SA_RESTART | SA_NODEFER |
                          (int)SA_RESETHAND;
        int count       = 0;
        ringer r, other;

        interrupted = &other;
        for (const auto &way : ways) {
            auto set = (sighandler_t(*)(int, sighandler_t))
                       dlsym(RTLD_DEFAULT, way.name);
            struct sigaction action = {}, old;

            REQUIRE(set != nullptr);
            action.sa_handler = add_in_handler;
            REQUIRE_EQ(0, sigaction(SIGUSR1, &action, nullptr));
            REQUIRE(set(SIGUSR1, ring_in_handler) == add_in_handler);
            REQUIRE_EQ(0, sigaction(SIGUSR1, nullptr, &old));
            REQUIRE(old.sa_handler == ring_in_handler);
            REQUIRE_EQ(way.flags, (int)old.sa_flags & flags);
            raise(SIGUSR1);
            REQUIRE_EQ(++count, interrupts);
            REQUIRE_EQ(0, sigaction(SIGUSR1, nullptr, &old));
            REQUIRE(old.sa_handler == ((way.flags & (int)SA_RESETHAND) ?
                                       SIG_DFL : ring_in_handler));
            REQUIRE(set(SIGUSR1, SIG_ERR) == SIG_ERR);
            REQUIRE_EQ(EINVAL, errno);
            REQUIRE(set(0, SIG_DFL) == SIG_ERR);
            REQUIRE_EQ(EINVAL, errno);
            REQUIRE(set(SIGKILL, ring_in_handler) == SIG_ERR);
            REQUIRE_EQ(EINVAL, errno);
        }
    });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_F(test_device_patch, handlers_of_system_v_are_held)
{
    run(1, [](rank&) {
        struct sigaction old;
        ringer r, other;

        interrupted = &other;
        REQUIRE(sigset(SIGUSR1, ring_in_handler) == SIG_DFL);
        REQUIRE(sigset(SIGUSR1, SIG_HOLD) == ring_in_handler);
        raise(SIGUSR1);
        REQUIRE_EQ(0, interrupts);
        REQUIRE(sigset(SIGUSR1, SIG_HOLD) == SIG_HOLD);
        REQUIRE(sigset(SIGUSR1, ring_in_handler) == SIG_HOLD);
        REQUIRE_EQ(1, interrupts);

        REQUIRE_EQ(0, siginterrupt(SIGUSR1, 0));
        REQUIRE_EQ(0, sigaction(SIGUSR1, nullptr, &old));
        REQUIRE(old.sa_handler == ring_in_handler);
        REQUIRE_EQ(SA_RESTART, old.sa_flags & (SA_RESTART | SA_SIGINFO));
        raise(SIGUSR1);
        REQUIRE_EQ(2, interrupts);

        REQUIRE_EQ(0, sigignore(SIGUSR1));
        raise(SIGUSR1);
        REQUIRE_EQ(2, interrupts);
        REQUIRE(sigset(SIGUSR1, SIG_DFL) == SIG_IGN);
        REQUIRE_EQ(-1, sigignore(SIGKILL));
        REQUIRE_EQ(EINVAL, errno);
    });
}

#pragma GCC diagnostic pop

TEST_F(test_device_patch, nothing_is_replaced_unless_asked_for)
{
    set_env("MLX5SIM_PATCH_AFTER", "0");
    run(1, [](rank&) {
        ringer r;

        for (unsigned i = 0; i < 1000; ++i) {
            patch_mov64(r.sq.next_register(), r.prepare());
            r.check();
        }
        REQUIRE_EQ(0x48, *patch_mov64_at);
    });
}
