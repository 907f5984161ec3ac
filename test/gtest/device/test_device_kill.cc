/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Processes that are killed at any moment: the others learn of it by a
 * completion, lose nothing, and carry on with each other.
 */

#include <device/device_devx.h>
#include <device/device_mesh.h>

#include <common/seed.h>

#include <cerrno>
#include <cstring>
#include <set>

#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

using namespace device;

namespace {

/* words of the board */
enum {
    WORD_ROUND,         /* rank 0: prepare for a victim; 0: leave */
    WORD_PREPARED,
    WORD_QPN,           /* of rank 0 for the victim */
    WORD_RKEY,
    WORD_ADDR,
    WORD_VICTIM,        /* victim's QP, and round it is of */
    WORD_VICTIM_QPN,
    WORD_CONNECTED,
    WORD_KILLED,
    WORD_CHECKED,
    WORD_SEND,          /* rank 1: round << 8 | messages to send */
    WORD_SENT,
    WORD_STOP,
    WORD_DATA,          /* where rank 0 receives */
    WORD_VICTIMS = 100
};

const size_t slots     = 8;
const size_t slot_size = 1024;
const size_t msg_size  = 700;

/* What a victim does, in rotation */
enum action {
    ACT_SEND_SRQ,
    ACT_SEND_RQ,
    ACT_WRITE_IMM,
    ACT_ATOMIC,
    ACT_READ,
    ACT_LAST
};


class test_device_kill : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        /* Thousands of times */
        set_env("MLX5SIM_GONE_AFTER", "0");
    }

    void step_and_kill(action act, unsigned stride);
    bool has_opened_channel();
    bool has_failed_to_write();
    bool is_about_to_write(uint64_t addr);
    void step(int request, long signal);
    int expect_stop(int signal, int other = 0);
    void run_until(const std::function<bool()> &is_there);
    bool has_ended(int index);
    void pid_comes_round(uint8_t *page, size_t size, int prot,
                         bool late = false);

    static void survivor(rank &r, action act);
    static void sender(rank &r);
    static void victim(rank &r, uint64_t round, action act);

    int m_traced = 2;
};


void wait_equal(rank &r, unsigned word, uint64_t value)
{
    uint64_t end = now_ms() + patience_ms;

    while (r.word(word) != value) {
        check_abort();
        if (now_ms() > end) {
            fail(__FILE__, __LINE__, "word %u is %lu, not %lu", word,
                 (unsigned long)r.word(word), (unsigned long)value);
        }
        usleep(20);
    }
}

/*
 * Rank 0. Its SRQ (or for ACT_SEND_RQ one RQ per victim) receives from victims
 * and from rank 1, which lives.
 */
void test_device_kill::survivor(rank &r, action act)
{
    context c;
    memory mem(c, 65536), target(c, 4096);
    ibv_comp_channel *channel = ibv_create_comp_channel(c.ctx);
    {
        srq shared(c, slots);
        cq rcq(c, 64, channel), scq(c, 64);
        uint64_t *counter = (uint64_t*)target.data, added = 0;

        qp_options options = {.srq = shared.v};
        qp from_sender(c, scq, rcq, options);
        r.publish(from_sender.addr());
        from_sender.connect(r.lookup<address>(1));
        for (size_t i = 0; i < slots; ++i) {
            shared.recv(i, mem.sge(i * slot_size, slot_size));
        }
        r.word(WORD_RKEY) = target.mr->rkey;
        r.word(WORD_ADDR) = target.addr();

        for (uint64_t round = 1;; ++round) {
            std::set<uint64_t> used;
            bool in_rq = act == ACT_SEND_RQ, delivered = false, flushed = false;
            ibv_wc wc;

            while (r.word(WORD_ROUND) < round) {
                check_abort();
                if (r.word(WORD_STOP)) {
                    break;
                }
                usleep(20);
            }
            if (r.word(WORD_STOP)) {
                break;
            }

            qp_options vo = options;
            if (in_rq) {
                vo.srq = nullptr;
            }
            qp v(c, scq, rcq, vo);
            memset(target.data + 64, 0, msg_size);
            r.word(WORD_QPN)      = v.v->qp_num;
            r.word(WORD_PREPARED) = round;
            wait_equal(r, WORD_VICTIM, round);
            address peer = v.addr();
            peer.qpn     = r.word(WORD_VICTIM_QPN);
            v.connect(peer);
            if (in_rq) {
                v.recv(100, mem.sge(100 * 256, slot_size));
            }
            if (round & 1) {
                REQUIRE_EQ(0, ibv_req_notify_cq(rcq.v, 0));
            }
            r.word(WORD_CONNECTED) = round;
            wait_equal(r, WORD_KILLED, round);

            /* What is flushed may come later than the request that failed */
            auto take = [&](const ibv_wc &wc) {
                if (in_rq && (wc.status == IBV_WC_WR_FLUSH_ERR)) {
                    REQUIRE_EQ(100, wc.wr_id);
                    REQUIRE(!delivered && !flushed);
                    flushed = true;
                    return;
                }
                REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
                if (wc.qp_num == v.v->qp_num) {
                    const uint8_t *data =
                            in_rq ? mem.data + 100 * 256 :
                            (act == ACT_WRITE_IMM) ? target.data + 64 :
                            mem.data + wc.wr_id * slot_size;

                    REQUIRE(!delivered && !flushed);
                    REQUIRE_EQ(msg_size, wc.byte_len);
                    REQUIRE_EQ(msg_size, pattern::check(data, msg_size, round));
                    delivered = true;
                } else {
                    REQUIRE_EQ(round & 0xff, mem.data[wc.wr_id * slot_size]);
                    REQUIRE_EQ(slot_size,
                               pattern::check(mem.data + wc.wr_id * slot_size +
                                              1, slot_size - 1, round) + 1);
                }
                if (wc.wr_id < slots) {
                    REQUIRE(used.insert(wc.wr_id).second);
                }
            };

            /* the victim does not answer any more */
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)});
            v.send(wr);
            REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, scq.next().status);
            while (rcq.poll(&wc)) {
                take(wc);
            }

            /* every slot of the SRQ is there, once */
            r.word(WORD_SEND) = (round << 8) | (slots - used.size());
            while ((used.size() < slots) ||
                   (in_rq && !delivered && !flushed)) {
                take(rcq.next());
            }
            wait_equal(r, WORD_SENT, round);
            rcq.empty();
            if (act == ACT_ATOMIC) {
                REQUIRE(*counter - added <= 1);
                added = *counter;
            }
            for (size_t i = 0; i < slots; ++i) {
                shared.recv(i, mem.sge(i * slot_size, slot_size));
            }
            if (!in_rq) {
                ibv_async_event event;

                REQUIRE_EQ(0, ibv_get_async_event(c.ctx, &event));
                REQUIRE_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
                REQUIRE(event.element.qp == v.v);
                ibv_ack_async_event(&event);
            }
            v.destroy();
            r.word(WORD_CHECKED) = round;
        }
        void *context;
        ibv_cq *event_cq;
        (void)context;
        (void)event_cq;
    }
    REQUIRE_EQ(0, ibv_destroy_comp_channel(channel));
}

/* Rank 1 sends to rank 0 what it is asked for */
void test_device_kill::sender(rank &r)
{
    context c;
    memory mem(c, 65536);
    cq q(c, 64);
    qp mine(c, q, q);

    r.publish(mine.addr());
    mine.connect(r.lookup<address>(0));
    for (uint64_t round = 1;; ++round) {
        while ((r.word(WORD_SEND) >> 8) < round) {
            check_abort();
            if (r.word(WORD_STOP)) {
                return;
            }
            usleep(20);
        }

        mem.data[0] = round;
        pattern::fill(mem.data + 1, slot_size - 1, round);
        for (unsigned n = r.word(WORD_SEND) & 0xff; n > 0; --n) {
            send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, slot_size)});
            mine.send(wr);
            q.good();
        }
        r.word(WORD_SENT) = round;
    }
}

void test_device_kill::victim(rank &r, uint64_t round, action act)
{
    context c;
    memory mem(c, 4096);
    cq q(c, 64);
    qp mine(c, q, q);
    address peer = mine.addr();
    size_t offset = 64, length = msg_size;

    wait_equal(r, WORD_PREPARED, round);
    peer.qpn  = r.word(WORD_QPN);
    peer.rkey = r.word(WORD_RKEY);
    peer.addr = r.word(WORD_ADDR);
    r.word(WORD_VICTIM_QPN) = mine.v->qp_num;
    mine.connect(peer);
    r.word(WORD_VICTIM) = round;
    wait_equal(r, WORD_CONNECTED, round);
    pattern::fill(mem.data, msg_size, round);

    /* the first doorbell of a process finds out where its UARs are mapped,
     * which takes long */
    send_wr first(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)});
    mine.send(first.to(peer, 2048));
    q.good();

    ibv_wr_opcode opcode = IBV_WR_SEND;
    switch (act) {
    case ACT_WRITE_IMM:
        opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        break;
    case ACT_ATOMIC:
        opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        length = 8;
        break;
    case ACT_READ:
        opcode = IBV_WR_RDMA_READ;
        break;
    default:
        break;
    }
    send_wr wr(opcode, 1, {mem.sge(0, length)});
    if (act == ACT_ATOMIC) {
        wr.wr.atomic.remote_addr = peer.addr;
        wr.wr.atomic.rkey        = peer.rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.to(peer, offset);
    }

    /* the parent takes over: SIGSTOP before, and if it comes so far, after */
    REQUIRE_EQ(0, ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
    raise(SIGSTOP);
    mine.send(wr);
    raise(SIGSTOP);
    for (;;) {
        pause();
    }
}

/* To repeat what failed: MLX5SIM_RUN_KILL_FIRST, MLX5SIM_RUN_KILL_STRIDE */
unsigned from_env(const char *name, unsigned value)
{
    const char *text = getenv(name);

    return (text != nullptr) ? atoi(text) : value;
}

/* Instruction that a stopped process is at, as file and offset */
std::string where(pid_t pid)
{
    user_regs_struct regs;
    char line[512], text[600] = "nowhere";
    unsigned long lo, hi, offset;
    int name;

    if (ptrace(PTRACE_GETREGS, pid, nullptr, &regs) != 0) {
        return text;
    }

    FILE *maps = fopen(("/proc/" + std::to_string(pid) + "/maps").c_str(), "r");
    while ((maps != nullptr) && (fgets(line, sizeof(line), maps) != nullptr)) {
        if ((sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &lo, &hi, &offset,
                    &name) == 3) && (regs.rip >= lo) && (regs.rip < hi)) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, sizeof(text), "%s at 0x%llx", line + name,
                     regs.rip - lo + offset);
        }
    }
    if (maps != nullptr) {
        fclose(maps);
    }
    return text;
}

/* Kill the victim after each number of instructions that the doorbell takes:
 * some of those before its first system call, which only decode, and then one
 * in @a stride */
void test_device_kill::step_and_kill(action act, unsigned stride)
{
    const uint64_t coarse       = 6;
    const unsigned coarse_steps = 1200;
    unsigned first              = from_env("MLX5SIM_RUN_KILL_FIRST", 0);
    bool at_end                 = false;
    uint64_t round;

    if (has_asan()) {
        stride *= 10; /* so many more instructions does the same take */
    }
    stride = from_env("MLX5SIM_RUN_KILL_STRIDE", stride);
    start(0, 2, [=](rank &r) { survivor(r, act); });
    start(1, 2, [=](rank &r) { sender(r); });
    for (round = 1; !at_end; ++round) {
        bool from_syscall = round > coarse;
        unsigned steps    = from_syscall ? first + (round - coarse) * stride -
                                           ((round * 7) % stride) :
                                           round * coarse_steps;

        word(WORD_ROUND) = round;
        start(2, 2, [=](rank &r) { victim(r, round, act); });
        expect_stop(SIGSTOP);
        ASSERT_EQ(0, ptrace(PTRACE_SETOPTIONS, pid(2), nullptr,
                            PTRACE_O_TRACESYSGOOD));
        step(PTRACE_CONT, 0);
        expect_stop(SIGBUS);
        long signal = SIGBUS;
        if (from_syscall) {
            step(PTRACE_SYSCALL, SIGBUS);
            expect_stop(SIGTRAP | 0x80);
            signal = 0;
        }
        for (unsigned i = 0; (i < steps) && !at_end; ++i) {
            step(PTRACE_SINGLESTEP, signal);
            at_end = expect_stop(SIGTRAP, SIGSTOP) == SIGSTOP;
            signal = 0;
            ASSERT_LT(i, 30000u) << "the doorbell does not end";
        }
        ASSERT_FALSE(at_end && !from_syscall);
        if (HasFailure()) {
            break;
        }

        std::string place = where(pid(2));
        kill(2);
        EXPECT_EQ(SIGKILL, finish(2));
        word(WORD_KILLED) = round;
        uint64_t end = now_ms() + patience_ms;
        while (word(WORD_CHECKED) < round) {
            if ((now_ms() > end) || has_ended(0) || has_ended(1)) {
                FAIL() << "victim " << round << " was killed " << steps
                       << " instructions after its "
                       << (from_syscall ? "first system call" : "doorbell")
                       << ", in " << place;
            }
            usleep(50);
        }
    }
    word(WORD_STOP) = 1;
    finish_all();
    RecordProperty("rounds", round);
}

void test_device_kill::step(int request, long signal)
{
    ASSERT_EQ(0, ptrace((__ptrace_request)request, pid(m_traced), nullptr,
                        signal));
}

/* Wait until who is traced has stopped by one of two signals. @return which */
int test_device_kill::expect_stop(int signal, int other)
{
    int status, stop;

    EXPECT_EQ(pid(m_traced), waitpid(pid(m_traced), &status, 0));
    EXPECT_TRUE(WIFSTOPPED(status)) << status;
    stop = WSTOPSIG(status);
    EXPECT_TRUE((stop == signal) || (stop == other)) << "signal " << stop;
    return stop;
}

/* Let who is traced go from one system call to the next, until it is there */
void test_device_kill::run_until(const std::function<bool()> &is_there)
{
    uint64_t end = now_ms() + patience_ms;
    long signal  = 0;
    int stop;

    expect_stop(SIGSTOP);
    ASSERT_EQ(0, ptrace(PTRACE_SETOPTIONS, pid(m_traced), nullptr,
                        PTRACE_O_TRACESYSGOOD));
    while (!is_there()) {
        ASSERT_LT(now_ms(), end);
        step(PTRACE_SYSCALL, signal);
        stop = expect_stop(SIGTRAP | 0x80, SIGBUS);
        ASSERT_FALSE(HasFailure());
        signal = (stop == SIGBUS) ? SIGBUS : 0;
    }
}

/* Whether the process 2 is at the end of a system call that opened a channel */
bool test_device_kill::has_opened_channel()
{
    user_regs_struct regs;
    char path[256] = "";

    if ((ptrace(PTRACE_GETREGS, pid(2), nullptr, &regs) != 0) ||
        (regs.orig_rax != SYS_openat) || ((long)regs.rax < 0)) {
        return false;
    }

    iovec local  = {path, sizeof(path) - 1};
    iovec remote = {(void*)regs.rsi, sizeof(path) - 1};
    return (process_vm_readv(pid(2), &local, 1, &remote, 1, 0) > 0) &&
           (strstr(path, "/chan.") != nullptr);
}

/* Whether who is traced is at the end of a system call that could not write to
 * another's memory */
bool test_device_kill::has_failed_to_write()
{
    user_regs_struct regs;

    return (ptrace(PTRACE_GETREGS, pid(m_traced), nullptr, &regs) == 0) &&
           (regs.orig_rax == SYS_process_vm_writev) &&
           ((long)regs.rax == -EFAULT);
}

/* Whether who is traced is at a system call that writes to this place, behind
 * others, or at the instruction that makes it */
bool test_device_kill::is_about_to_write(uint64_t addr)
{
    pid_t pid = this->pid(m_traced);
    user_regs_struct regs;
    iovec piece = {}, local = {&piece, sizeof(piece)}, remote;
    uint16_t insn = 0;

    if (ptrace(PTRACE_GETREGS, pid, nullptr, &regs) != 0) {
        return false;
    }

    errno = 0;
    insn  = ptrace(PTRACE_PEEKTEXT, pid, regs.rip, nullptr);
    if ((regs.orig_rax != SYS_process_vm_writev) &&
        ((insn != 0x050f) || (regs.rax != SYS_process_vm_writev))) {
        return false;
    }

    remote = {(void*)regs.r10, sizeof(piece)};
    return (process_vm_readv(pid, &local, 1, &remote, 1, 0) ==
            sizeof(piece)) && ((uint64_t)piece.iov_base == addr);
}

bool test_device_kill::has_ended(int index)
{
    siginfo_t info = {};

    return (waitid(P_PID, pid(index), &info, WEXITED | WNOHANG | WNOWAIT) ==
            0) && (info.si_pid != 0);
}

} // namespace


TEST_F(test_device_kill, at_each_instruction_of_a_send_to_an_srq)
{
    step_and_kill(ACT_SEND_SRQ, 25);
}

TEST_F(test_device_kill, at_each_instruction_of_a_send)
{
    step_and_kill(ACT_SEND_RQ, 45);
}

TEST_F(test_device_kill, at_each_instruction_of_a_write_with_immediate)
{
    step_and_kill(ACT_WRITE_IMM, 45);
}

TEST_F(test_device_kill, at_each_instruction_of_an_atomic)
{
    step_and_kill(ACT_ATOMIC, 45);
}

TEST_F(test_device_kill, at_each_instruction_of_a_read)
{
    step_and_kill(ACT_READ, 45);
}


/* One place has all completions. Before there was any, it looked as if the
 * first had come, when memory was clear and its writer died in front of it. */
TEST_F(test_device_kill, before_the_first_completion_of_a_collapsed_queue)
{
    unsigned steps = 0;
    bool at_end    = false;

    set_env("MLX5SIM_DEVX", "y");
    set_env("MLX5SIM_EXEC", "sync");
    start(0, 1, [](rank &r) {
        for (uint64_t round = 1;; ++round) {
            wait_equal(r, WORD_ROUND, round);
            if (r.word(WORD_STOP)) {
                return;
            }

            devx_loop l(0, ring_log, false, true);
            unsigned status;

            memset(l.queues.data, 0, 64);
            l.recv(l.mem.sge(0, 64));
            r.word(WORD_QPN)      = l.b.number;
            r.word(WORD_ADDR)     = (uint64_t)l.queues.data;
            r.word(WORD_DATA)     = l.mem.addr();
            r.word(WORD_PREPARED) = round;
            wait_equal(r, WORD_VICTIM, round);
            REQUIRE_EQ(0, l.b.modify(rst2init_command(l.b.number), &status));
            REQUIRE_EQ(0, l.b.modify(init2rtr_command(l.c, l.b.number,
                                                      r.word(WORD_VICTIM_QPN)),
                                     &status));
            REQUIRE_EQ(0, l.b.modify(rtr2rts_command(l.b.number), &status));
            r.word(WORD_CONNECTED) = round;
            wait_equal(r, WORD_KILLED, round);

            uint32_t producer = get(l.cq.query(fw_query_cq, 80), 128 + 360, 24);
            REQUIRE_EQ(producer, *(uint32_t*)(l.queues.data + 60) != 0);
            r.word(WORD_CHECKED) = round;
        }
    });

    for (uint64_t round = 1; !at_end; ++round) {
        word(WORD_ROUND) = round;
        start(2, 1, [=](rank &r) {
            context c;
            memory mem(c, 4096);
            cq q(c, 64);
            qp mine(c, q, q);
            address peer = mine.addr();

            wait_equal(r, WORD_PREPARED, round);
            peer.qpn                = r.word(WORD_QPN);
            r.word(WORD_VICTIM_QPN) = mine.v->qp_num;
            mine.connect(peer);
            r.word(WORD_VICTIM) = round;
            wait_equal(r, WORD_CONNECTED, round);
            REQUIRE_EQ(0, ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
            raise(SIGSTOP);
            send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, 64)});
            mine.send(wr);
            raise(SIGSTOP);
        });

        /* to the system call that brings the data, and then step by step */
        while (word(WORD_CONNECTED) < round) {
            usleep(50);
        }
        run_until([&]() { return is_about_to_write(word(WORD_DATA)); });
        ASSERT_FALSE(HasFailure());
        steps += has_asan() ? 400 : 40;
        for (unsigned i = 0; (i < steps) && !at_end; ++i) {
            step(PTRACE_SINGLESTEP, 0);
            expect_stop(SIGTRAP, SIGTRAP | 0x80);
            at_end = is_about_to_write(word(WORD_ADDR));
            ASSERT_LT(i, 30000u);
        }

        kill(2);
        EXPECT_EQ(SIGKILL, finish(2));
        word(WORD_KILLED) = round;
        while (word(WORD_CHECKED) < round) {
            ASSERT_FALSE(has_ended(0)) << steps << " steps";
            usleep(50);
        }
    }
    EXPECT_GT(steps, 100u);
    word(WORD_STOP)   = 1;
    word(WORD_ROUND) += 1;
    finish_all();
}

/* The number of instructions grows until the command ends. The harness looks
 * for what is left of the processes. */
TEST_F(test_device_kill, at_each_instruction_of_a_creation)
{
    const unsigned stride = from_env("MLX5SIM_RUN_KILL_STRIDE",
                                     has_asan() ? 90 : 9);
    bool at_end           = false;

    for (unsigned steps = 1; !at_end && !HasFailure(); steps += stride) {
        start(2, 3, [](rank &r) {
            context c;

            (void)r;
            REQUIRE_EQ(0, ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
            raise(SIGSTOP);
            REQUIRE(ibv_alloc_pd(c.ctx) != nullptr);
            raise(SIGSTOP);
        });
        expect_stop(SIGSTOP);
        for (unsigned i = 0; (i < steps) && !at_end && !HasFailure(); ++i) {
            step(PTRACE_SINGLESTEP, 0);
            at_end = expect_stop(SIGTRAP, SIGSTOP) == SIGSTOP;
        }
        kill(2);
        EXPECT_EQ(SIGKILL, finish(2));
        RecordProperty("steps", steps);
    }
}

/* Elsewhere a pid is another process', or none */
TEST_F(test_device_kill, nobody_from_another_pid_namespace)
{
    std::string enter = "unshare --pid --fork --mount-proc ";
    std::string output;

    if (geteuid() != 0) {
        enter += "--map-root-user ";
    }
    if (system((enter + "true 2>/dev/null").c_str()) != 0) {
        GTEST_SKIP() << "no PID namespaces here";
    }

    run(1, [&](rank&) {
        loop l;
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});

        REQUIRE(stat("", &output, enter) != 0);
        REQUIRE(output.find("another PID namespace") != std::string::npos);

        /* commands and queues go on */
        memory more(l.c, 4096);
        l.a.send(wr.to(l.to_b));
        l.scq.good();
    });
}

/* Start a process with a pid that was another's. @return -1 and errno if that
 * is not permitted */
pid_t start_impostor(pid_t pid)
{
    struct clone_args args = {};

    args.exit_signal  = SIGCHLD;
    args.set_tid      = (uintptr_t)&pid;
    args.set_tid_size = 1;

    pid_t child = syscall(SYS_clone3, &args, sizeof(args));
    if (child == 0) {
        for (;;) {
            pause();
        }
    }
    return child;
}

/* Rank 0 writes to the memory of rank 1 at @a page; that has been killed, and
 * another process, where the page is protected by @a prot, has its pid.
 * @param late  That happens when rank 0 is about to write in the way of
 *              debuggers, as the page is protected. */
void test_device_kill::pid_comes_round(uint8_t *page, size_t size, int prot,
                                       bool late)
{
    pid_t impostor, owner;
    int status;

    if (late) {
        set_env("MLX5SIM_EXEC", "sync"); /* By the thread that is traced */
    }

    auto body = [&](rank &r) {
        qp_options options;

        options.timeout   = 8; /* 1 ms */
        options.retry_cnt = 1;
        side s(r, options);
        if (r.index == 1) {
            ibv_mr *mr = ibv_reg_mr(s.c.pd, page, size, all_access);

            REQUIRE(mr != nullptr);
            REQUIRE_EQ(0, mprotect(page, size, prot));
            /* Once the other one has the key it may stop, which looks as if it
             * had ended */
            r.word(WORD_VICTIM) = getpid();
            r.word(WORD_RKEY)   = mr->rkey;
            for (;;) {
                pause();
            }
        }

        send_wr wr(IBV_WR_RDMA_WRITE, 1, {s.mem.sge(0, 8)});

        memset(s.mem.data, 0xee, 8);
        if (late) {
            r.wait_word(WORD_RKEY, 1);
            REQUIRE_EQ(0, ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
            raise(SIGSTOP);
        } else {
            r.wait_word(WORD_KILLED, 1);
        }
        wr.wr.rdma.remote_addr = (uintptr_t)page;
        wr.wr.rdma.rkey        = r.word(WORD_RKEY);
        s.q.send(wr);
        REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, s.scq.next().status);
    };

    start(0, 2, body);
    start(1, 2, body);
    ASSERT_TRUE(patience::until([&]() {
        return ((owner = word(WORD_VICTIM)) != 0) || has_ended(0) ||
               has_ended(1);
    }));
    ASSERT_NE(0, owner);
    if (late) {
        m_traced = 0;
        /* It asks whether memory is there, and writes */
        unsigned num_failed = 0;
        ASSERT_NO_FATAL_FAILURE(run_until([&]() {
            return has_failed_to_write() && (++num_failed == 2);
        }));
    }

    kill(1);
    EXPECT_EQ(SIGKILL, finish(1));
    ASSERT_EQ(0, mprotect(page, size, prot));
    /* The kernel tells processes of one pid apart by the tick they start in,
     * which is as much as a pid needs that comes round by itself */
    usleep(2 * 1000000 / sysconf(_SC_CLK_TCK));
    impostor = start_impostor(owner);
    status   = errno;
    ASSERT_EQ(0, mprotect(page, size, PROT_READ | PROT_WRITE));
    if (impostor < 0) {
        kill(0);
        finish(0);
        GTEST_SKIP() << "cannot choose a pid: " << strerror(status);
    }

    EXPECT_EQ(owner, impostor);
    word(WORD_KILLED) = 1;
    if (late) {
        step(PTRACE_DETACH, 0);
    }
    finish_all();
    uint8_t byte = 0xff;
    iovec here = {&byte, 1}, there = {page, 1};
    EXPECT_EQ(1, process_vm_readv(impostor, &here, 1, &there, 1, 0));
    EXPECT_EQ(0, byte) << "of the process that has its pid now";
    EXPECT_EQ(0, ::kill(impostor, SIGKILL));
    EXPECT_EQ(impostor, waitpid(impostor, &status, 0));
}

/* What another process has in the place of a killed one's memory. Private:
 * nobody writes to shared memory that is protected */
class private_page {
public:
    private_page() :
        size(4096),
        data((uint8_t*)mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        EXPECT_NE(MAP_FAILED, (void*)data);
    }

    ~private_page()
    {
        munmap(data, size);
    }

    const size_t  size;
    uint8_t *const data;
};

/* Nobody has noticed that the peer was killed, and its pid has come round. The
 * device knew the tag alone, and wrote into the other process. */
TEST_F(test_device_kill, one_whose_pid_is_anothers_by_now)
{
    private_page page;

    pid_comes_round(page.data, page.size, PROT_READ | PROT_WRITE);
}

/* Protected memory is reached in another way, as debuggers do */
TEST_F(test_device_kill, one_whose_pid_is_anothers_with_protected_memory)
{
    private_page page;

    pid_comes_round(page.data, page.size, PROT_READ);
}

/* Whoever is killed after it was found alive */
TEST_F(test_device_kill, one_whose_pid_becomes_anothers_meanwhile)
{
    private_page page;

    pid_comes_round(page.data, page.size, PROT_READ, true);
}

/* Who writes an event must not be ended by SIGPIPE */
TEST_F(test_device_kill, reader_of_a_channel_when_an_event_is_written)
{
    set_env("MLX5SIM_EXEC", "sync"); /* By the thread that is traced */
    start(1, 3, [](rank &r) {
        context c;
        ibv_comp_channel *channel = ibv_create_comp_channel(c.ctx);
        memory mem(c, 4096);
        cq scq(c, 16), rcq(c, 16, channel);
        qp mine(c, scq, rcq);

        r.publish(mine.addr(&mem));
        mine.connect(r.lookup<address>(2));
        mine.recv(1, mem.sge(0, 64));
        REQUIRE_EQ(0, ibv_req_notify_cq(rcq.v, 0));
        r.word(WORD_CONNECTED) = 1;
        for (;;) {
            pause();
        }
    });
    start(2, 3, [](rank &r) {
        context c;
        memory mem(c, 4096);
        cq q(c, 16);
        qp mine(c, q, q);

        r.publish(mine.addr(&mem));
        mine.connect(r.lookup<address>(1));
        r.wait_word(WORD_CONNECTED, 1);
        REQUIRE_EQ(0, ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
        raise(SIGSTOP);
        send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, 8)});
        mine.send(wr);
        q.good();
        raise(SIGSTOP);
    });

    ASSERT_NO_FATAL_FAILURE(run_until([&]() { return has_opened_channel(); }));
    kill(1);
    EXPECT_EQ(SIGKILL, finish(1));
    step(PTRACE_CONT, 0);
    expect_stop(SIGSTOP);
    step(PTRACE_CONT, 0);
    EXPECT_EQ(0, finish(2));
}


/*
 * At random moments
 */

namespace {

class test_device_kill_random : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        m_offers = (mesh_offers*)mmap(nullptr, sizeof(*m_offers),
                                      PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, (void*)m_offers);
    }

    void TearDown() override
    {
        device::test::TearDown();
        munmap(m_offers, sizeof(*m_offers));
    }

    void start_node(int node, int count)
    {
        mesh_options options;
        mesh_offers *offers = m_offers;

        options.sleeps = node & 1;
        options.seed   = m_seed;
        ++word(mesh_words::life(node));
        start(node, count, [=](rank &r) { mesh_node(r, offers, options); });
    }

    void kill_node(int node)
    {
        ++word(mesh_words::killed(node));
        kill(node);
        ASSERT_EQ(SIGKILL, finish(node)) << "rank " << node << " had failed";
    }

    /* Differs when anything was received */
    uint64_t traffic(int count)
    {
        uint64_t sum = 0;

        for (int from = 0; from < count; ++from) {
            for (int to = 0; to < count; ++to) {
                if (from != to) {
                    sum += word(mesh_words::received(from, to));
                }
            }
        }
        return sum;
    }

    /* Wait until everybody has got @a num messages from everybody's present
     * life; as long as it takes if something moves */
    void expect_traffic(int count, uint64_t num)
    {
        uint64_t end  = now_ms() + patience_ms;
        uint64_t seen = traffic(count);

        for (int from = 0; from < count; ++from) {
            for (int to = 0; to < count; ++to) {
                uint64_t least = (word(mesh_words::life(from)) << 40) + num;

                while ((from != to) &&
                       (word(mesh_words::received(from, to)) < least)) {
                    if (traffic(count) != seen) {
                        /* a slow machine is no reason to fail */
                        seen = traffic(count);
                        end  = now_ms() + patience_ms;
                    }
                    ASSERT_LT(now_ms(), end) << "from " << from << " to " << to
                            << std::hex << ": "
                            << word(mesh_words::received(from, to));
                    usleep(200);
                }
            }
        }
    }

    void stop(int count)
    {
        uint64_t end = now_ms() + patience_ms;

        word(mesh_words::stop) = 1;
        while (word(mesh_words::idle) < (uint64_t)count) {
            ASSERT_LT(now_ms(), end);
            usleep(200);
        }
        word(mesh_words::leave) = 1;
        finish_all();
    }

    /* @a victims of @a count are killed in turn, @a rounds times */
    void run_mesh(int count, int victims, int rounds, unsigned max_delay_us)
    {
        pattern rnd(seed::get());

        m_seed = seed::get(1);

        for (int i = 0; i < count; ++i) {
            start_node(i, count);
        }
        for (int i = 0; (i < rounds) && !HasFatalFailure(); ++i) {
            int node = rnd.below(victims);

            usleep(rnd.below(max_delay_us));
            kill_node(node);
            usleep(rnd.below(max_delay_us / 4));
            start_node(node, count);
        }
        if (!HasFatalFailure()) {
            expect_traffic(count, 20);
        }
        if (!HasFatalFailure()) {
            stop(count);
        }
    }

    mesh_offers *m_offers;
    uint64_t     m_seed = 0; /* of the messages */
};

} // namespace


TEST_F(test_device_kill_random, one_of_two)
{
    run_mesh(2, 1, 200, 12000);
}

TEST_F(test_device_kill_random, one_of_three)
{
    run_mesh(3, 1, 100, 16000);
}

TEST_F(test_device_kill_random, any_of_eight)
{
    run_mesh(8, 8, 100, 40000);
}
