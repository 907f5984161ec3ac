/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file test_insn_native.h
 *
 * The processor as the judge of the interpreter: run one instruction natively,
 * from any state of general and vector registers, by single-stepping it from a
 * signal handler.
 */

#ifndef TEST_INSN_NATIVE_H_
#define TEST_INSN_NATIVE_H_

#include <sim/insn/insn.h>

#include <gtest/gtest.h>

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <string>

namespace insn_native {

/* Where code and data of the tests live: so far from everything else that no
 * sum of a few addresses in it, nor a 32-bit displacement, is mapped. The low
 * one is the same address cut to 32 bits. */
constexpr uint64_t DATA_BASE = 0x200010000000ul;
constexpr uint64_t DATA_SIZE = 0x2000;
constexpr uint64_t CODE_BASE = DATA_BASE + 0x20000;
constexpr uint64_t CODE_SIZE = 0x1000;
constexpr uint64_t LOW_BASE  = 0x10000000ul;

/* Where Linux puts the rest of a position-independent program, by chance: it
 * begins at two thirds of the address space, and libraries and stacks end at
 * the end. The sum of a displacement and a number with a taste for edges may be
 * in there. */
constexpr mlx5sim_insn_window_t PROGRAM = {0x500000000000ul, 1ul << 47};

constexpr uint64_t TRAP_FLAG   = 0x100;
constexpr uint64_t RESUME_FLAG = 0x10000;
constexpr uint64_t DIR_FLAG    = 0x400;
constexpr uint64_t STATUS      = 0x8d5;

struct state_t {
    uint64_t gpr[16];
    uint64_t rip;
    uint64_t rflags;
    alignas(64) uint8_t vec[32][64];
    uint64_t k[8];
};

enum level_t { LEVEL_SSE, LEVEL_AVX, LEVEL_AVX512 };

inline level_t level()
{
    static level_t value = (__builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl")) ? LEVEL_AVX512 :
                           __builtin_cpu_supports("avx2") ? LEVEL_AVX :
                                                               LEVEL_SSE;
    return value;
}

enum phase_t { PHASE_IDLE, PHASE_ARMED, PHASE_RUNNING, PHASE_INTERPRETER };

struct global_t {
    volatile phase_t phase;
    const state_t   *in;
    state_t         *out;
    int              signo;
    int              repeats; /* keep stepping while rip stays */
    gregset_t        saved;
    sigjmp_buf       env;
};

inline global_t g;

constexpr int GREGS[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                           REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                           REG_R12, REG_R13, REG_R14, REG_R15};

inline void handler(int signo, siginfo_t *, void *context)
{
    greg_t *gregs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;

    switch (g.phase) {
    case PHASE_ARMED:
        memcpy(g.saved, gregs, sizeof(g.saved));
        for (int i = 0; i < 16; ++i) {
            gregs[GREGS[i]] = g.in->gpr[i];
        }
        gregs[REG_RIP] = g.in->rip;
        gregs[REG_EFL] = g.in->rflags | TRAP_FLAG;
        g.phase        = PHASE_RUNNING;
        break;
    case PHASE_RUNNING:
        if ((signo == SIGTRAP) && (g.repeats > 0) &&
            (static_cast<uint64_t>(gregs[REG_RIP]) == g.in->rip)) {
            --g.repeats;
            break;
        }
        for (int i = 0; i < 16; ++i) {
            g.out->gpr[i] = gregs[GREGS[i]];
        }
        g.out->rip    = gregs[REG_RIP];
        g.out->rflags = gregs[REG_EFL] & ~(TRAP_FLAG | RESUME_FLAG);
        g.signo       = signo;
        memcpy(gregs, g.saved, sizeof(g.saved));
        g.phase = PHASE_IDLE;
        break;
    case PHASE_INTERPRETER:
        g.phase = PHASE_IDLE;
        siglongjmp(g.env, signo);
    default:
        signal(signo, SIG_DFL);
        break;
    }
}

#define INSN_REGS_16(_x) \
    _x(0) _x(1) _x(2) _x(3) _x(4) _x(5) _x(6) _x(7) _x(8) _x(9) _x(10) _x(11) \
    _x(12) _x(13) _x(14) _x(15)
#define INSN_REGS_HI(_x) \
    _x(16) _x(17) _x(18) _x(19) _x(20) _x(21) _x(22) _x(23) _x(24) _x(25) \
    _x(26) _x(27) _x(28) _x(29) _x(30) _x(31)
#define INSN_LOAD_XMM(_n)  "movups 64*" #_n "(%0), %%xmm" #_n "\n\t"
#define INSN_SAVE_XMM(_n)  "movups %%xmm" #_n ", 64*" #_n "(%1)\n\t"
#define INSN_LOAD_YMM(_n)  "vmovups 64*" #_n "(%0), %%ymm" #_n "\n\t"
#define INSN_SAVE_YMM(_n)  "vmovups %%ymm" #_n ", 64*" #_n "(%1)\n\t"
#define INSN_LOAD_ZMM(_n)  "vmovups 64*" #_n "(%0), %%zmm" #_n "\n\t"
#define INSN_SAVE_ZMM(_n)  "vmovups %%zmm" #_n ", 64*" #_n "(%1)\n\t"
#define INSN_REGS_K(_x) \
    _x(0) _x(1) _x(2) _x(3) _x(4) _x(5) _x(6) _x(7)
#define INSN_LOAD_K(_n)    "kmovq 8*" #_n "(%2), %%k" #_n "\n\t"
#define INSN_SAVE_K(_n)    "kmovq %%k" #_n ", 8*" #_n "(%3)\n\t"
#define INSN_XMM_CLOBBERS \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
    "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc"

/* One instruction at in->rip (all iterations of a repeated one). Returns the
 * signal it ended with: SIGTRAP if it was executed. */
__attribute__((noinline)) inline int
step(const state_t *in, state_t *out, bool repeated)
{
    g.in      = in;
    g.out     = out;
    g.repeats = repeated ? 10000 : 0;
    g.phase   = PHASE_ARMED;
    *out      = *in;
    switch (level()) {
    case LEVEL_AVX512:
        __asm__ volatile(INSN_REGS_16(INSN_LOAD_ZMM)
                         INSN_REGS_HI(INSN_LOAD_ZMM)
                         INSN_REGS_K(INSN_LOAD_K)
                         "int3\n\t"
                         INSN_REGS_16(INSN_SAVE_ZMM)
                         INSN_REGS_HI(INSN_SAVE_ZMM)
                         INSN_REGS_K(INSN_SAVE_K)
                         "vzeroupper"
                         ::"r"(in->vec), "r"(out->vec), "r"(in->k),
                           "r"(out->k)
                         : INSN_XMM_CLOBBERS);
        break;
    case LEVEL_AVX:
        __asm__ volatile(INSN_REGS_16(INSN_LOAD_YMM)
                         "int3\n\t"
                         INSN_REGS_16(INSN_SAVE_YMM)
                         "vzeroupper"
                         ::"r"(in->vec), "r"(out->vec)
                         : INSN_XMM_CLOBBERS);
        break;
    default:
        __asm__ volatile(INSN_REGS_16(INSN_LOAD_XMM)
                         "int3\n\t"
                         INSN_REGS_16(INSN_SAVE_XMM)
                         ::"r"(in->vec), "r"(out->vec)
                         : INSN_XMM_CLOBBERS);
        break;
    }
    return g.signo;
}

/* The interpreter's view of a state: registers apart, as XSAVE has them. */
struct shadow_t {
    mlx5sim_insn_cpu_t cpu;
    uint64_t           in_use;
    uint8_t            xmm[16][16];
    uint8_t            ymm_hi[16][16];
    uint8_t            zmm_hi[16][32];
    uint8_t            hi16[16][64];
    uint64_t           opmask[8];

    void set(const state_t &s, uint64_t used)
    {
        memset(&cpu, 0, sizeof(cpu));
        memcpy(cpu.gpr, s.gpr, sizeof(cpu.gpr));
        cpu.rip         = s.rip;
        cpu.rflags      = s.rflags;
        in_use          = used;
        cpu.vecs.avail  = MLX5SIM_INSN_XSTATE_SSE;
        cpu.vecs.avail |= (level() >= LEVEL_AVX) ? MLX5SIM_INSN_XSTATE_YMM : 0;
        cpu.vecs.avail |= (level() >= LEVEL_AVX512) ?
                          (MLX5SIM_INSN_XSTATE_ZMM | MLX5SIM_INSN_XSTATE_HI16 |
                           MLX5SIM_INSN_XSTATE_OPMASK) : 0;
        cpu.vecs.in_use = &in_use;
        cpu.vecs.xmm    = xmm[0];
        cpu.vecs.ymm_hi = ymm_hi[0];
        cpu.vecs.zmm_hi = zmm_hi[0];
        cpu.vecs.hi16   = hi16[0];
        cpu.vecs.opmask = opmask;
        memcpy(opmask, s.k, sizeof(opmask));
        for (int i = 0; i < 16; ++i) {
            memcpy(xmm[i], s.vec[i], 16);
            memcpy(ymm_hi[i], s.vec[i] + 16, 16);
            memcpy(zmm_hi[i], s.vec[i] + 32, 32);
            memcpy(hi16[i], s.vec[i + 16], 64);
        }
        /* What is not in use is garbage in memory, and zero for the program */
        if (!(used & MLX5SIM_INSN_XSTATE_SSE)) {
            memset(xmm, 0xa5, sizeof(xmm));
        }
        if (!(used & MLX5SIM_INSN_XSTATE_YMM)) {
            memset(ymm_hi, 0xa5, sizeof(ymm_hi));
        }
        if (!(used & MLX5SIM_INSN_XSTATE_ZMM)) {
            memset(zmm_hi, 0xa5, sizeof(zmm_hi));
        }
        if (!(used & MLX5SIM_INSN_XSTATE_HI16)) {
            memset(hi16, 0xa5, sizeof(hi16));
        }
        if (!(used & MLX5SIM_INSN_XSTATE_OPMASK)) {
            memset(opmask, 0xa5, sizeof(opmask));
        }
    }

    static void part(void *dst, const void *src, size_t length, bool used)
    {
        if (used) {
            memcpy(dst, src, length);
        } else {
            memset(dst, 0, length);
        }
    }

    void get(state_t *s) const
    {
        memcpy(s->gpr, cpu.gpr, sizeof(cpu.gpr));
        s->rip    = cpu.rip;
        s->rflags = cpu.rflags;
        for (int i = 0; i < 16; ++i) {
            part(s->vec[i], xmm[i], 16, in_use & MLX5SIM_INSN_XSTATE_SSE);
            part(s->vec[i] + 16, ymm_hi[i], 16,
                 in_use & MLX5SIM_INSN_XSTATE_YMM);
            part(s->vec[i] + 32, zmm_hi[i], 32,
                 in_use & MLX5SIM_INSN_XSTATE_ZMM);
            part(s->vec[i + 16], hi16[i], 64,
                 in_use & MLX5SIM_INSN_XSTATE_HI16);
        }
        part(s->k, opmask, sizeof(opmask), in_use & MLX5SIM_INSN_XSTATE_OPMASK);
    }
};

/* Interpret up to run->max_insns instructions. A fault in the interpreter's own
 * memory access comes back as *signo_p. */
inline mlx5sim_insn_status_t
interpret(shadow_t *shadow, mlx5sim_insn_run_t *run, int *signo_p)
{
    volatile mlx5sim_insn_status_t status = MLX5SIM_INSN_UNKNOWN;
    int signo                             = sigsetjmp(g.env, 1);

    if (signo == 0) {
        g.phase = PHASE_INTERPRETER;
        status  = mlx5sim_insn_cpu_run(&shadow->cpu, run);
        g.phase = PHASE_IDLE;
    }
    *signo_p = signo;
    return status;
}

/* It has no single step, and no vector registers in signal frames */
inline bool under_valgrind()
{
    const char *preload = getenv("LD_PRELOAD");

    return (preload != nullptr) && (strstr(preload, "vgpreload") != nullptr);
}

/* Maps the memory and installs the handlers for one test. */
class sandbox_t {
public:
    bool open()
    {
        static uint8_t alt_stack[1 << 17];
        struct sigaction sa;
        stack_t stack;

        m_data = map(DATA_BASE, DATA_SIZE, PROT_READ | PROT_WRITE);
        m_low  = map(LOW_BASE, DATA_SIZE, PROT_READ | PROT_WRITE);
        m_code = map(CODE_BASE, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
        if (!m_data || !m_low || !m_code) {
            return false;
        }
        stack.ss_sp    = alt_stack;
        stack.ss_size  = sizeof(alt_stack);
        stack.ss_flags = 0;
        sigaltstack(&stack, &m_old_stack);
        memset(&sa, 0, sizeof(sa));
        sa.sa_sigaction = handler;
        sa.sa_flags     = SA_SIGINFO | SA_ONSTACK;
        sigfillset(&sa.sa_mask);
        for (int i = 0; i < NUM_SIGNALS; ++i) {
            sigaction(SIGNALS[i], &sa, &m_old[i]);
        }
        m_opened = true;
        return true;
    }

    ~sandbox_t()
    {
        if (m_opened) {
            for (int i = 0; i < NUM_SIGNALS; ++i) {
                sigaction(SIGNALS[i], &m_old[i], nullptr);
            }
            sigaltstack(&m_old_stack, nullptr);
        }
        unmap(m_data, DATA_SIZE);
        unmap(m_low, DATA_SIZE);
        unmap(m_code, CODE_SIZE);
    }

    uint8_t *data() { return m_data; }
    uint8_t *low()  { return m_low; }
    uint8_t *code() { return m_code; }

private:
    static uint8_t *map(uint64_t addr, uint64_t size, int prot)
    {
        void *p = mmap(reinterpret_cast<void*>(addr), size, prot,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                       0);
        return (p == MAP_FAILED) ? nullptr : static_cast<uint8_t*>(p);
    }

    static void unmap(uint8_t *p, uint64_t size)
    {
        if (p != nullptr) {
            munmap(p, size);
        }
    }

    static constexpr int NUM_SIGNALS = 5;
    static constexpr int SIGNALS[NUM_SIGNALS] = {SIGTRAP, SIGSEGV, SIGBUS,
                                                 SIGILL, SIGFPE};
    struct sigaction m_old[NUM_SIGNALS];
    stack_t          m_old_stack;
    uint8_t         *m_data   = nullptr;
    uint8_t         *m_low    = nullptr;
    uint8_t         *m_code   = nullptr;
    bool             m_opened = false;
};

} // namespace insn_native

#endif
