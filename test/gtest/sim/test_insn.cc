/* SPDX-License-Identifier: BSD-3-Clause */

/* The interpreter against the processor: random encodings from everything it
 * claims to know, and random bytes, each executed natively and interpreted from
 * the same state. */

#include "test_insn_encode.h"

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>

using namespace insn_native;

namespace {

struct coverage_t {
    unsigned tried = 0;
    unsigned executed = 0;
    unsigned refused = 0;
    unsigned faulted = 0;
};

class insn_fuzz : public testing::Test {
protected:
    void SetUp() override
    {
        const char *seed = getenv("MLX5SIM_TEST_SEED");

        if (under_valgrind()) {
            GTEST_SKIP() << "valgrind has no single step";
        }
        m_seed = (seed != nullptr) ? strtoull(seed, nullptr, 0) : 20180905;
        printf("MLX5SIM_TEST_SEED=%llu\n",
               static_cast<unsigned long long>(m_seed));
        ASSERT_TRUE(m_sandbox.open());
        m_master.resize(DATA_SIZE);
        std::mt19937_64 rng(m_seed);
        for (auto &b : m_master) {
            b = rng();
        }
        /* Half of the quadwords are good targets for indirect branches */
        for (size_t i = 0; i < DATA_SIZE; i += 16) {
            uint64_t target = CODE_BASE + (rng() % CODE_SIZE);
            memcpy(&m_master[i], &target, 8);
        }
    }

    void reset_memory()
    {
        memcpy(m_sandbox.data(), m_master.data(), DATA_SIZE);
        memcpy(m_sandbox.low(), m_master.data(), DATA_SIZE);
    }

    static std::string dump(const uint8_t *code, size_t length)
    {
        std::string text;
        char buf[4];

        for (size_t i = 0; i < length; ++i) {
            snprintf(buf, sizeof(buf), "%02x ", code[i]);
            text += buf;
        }
        return text;
    }

    /* Compare everything; the text says what differs */
    std::string compare(const state_t &want, const state_t &got,
                        uint64_t ignore_flags)
    {
        static const char *NAMES[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                      "rsi", "rdi", "r8", "r9", "r10", "r11",
                                      "r12", "r13", "r14", "r15"};
        char buf[128];
        std::string text;

        for (int i = 0; i < 16; ++i) {
            if (want.gpr[i] != got.gpr[i]) {
                snprintf(buf, sizeof(buf), " %s %lx, natively %lx;", NAMES[i],
                         got.gpr[i], want.gpr[i]);
                text += buf;
            }
        }
        if (want.rip != got.rip) {
            snprintf(buf, sizeof(buf), " rip %lx, natively %lx;", got.rip,
                     want.rip);
            text += buf;
        }
        if ((want.rflags ^ got.rflags) & ~ignore_flags) {
            snprintf(buf, sizeof(buf), " rflags %lx, natively %lx;", got.rflags,
                     want.rflags);
            text += buf;
        }
        unsigned width    = (level() == LEVEL_AVX512) ? 64 :
                            (level() == LEVEL_AVX)    ? 32 : 16;
        unsigned num_vecs = (level() == LEVEL_AVX512) ? 32 : 16;
        for (unsigned i = 0; i < num_vecs; ++i) {
            if (memcmp(want.vec[i], got.vec[i], width) != 0) {
                snprintf(buf, sizeof(buf), " vector register %u: ", i);
                text += buf + dump(got.vec[i], width) + "natively " +
                        dump(want.vec[i], width);
            }
        }
        if ((level() == LEVEL_AVX512) &&
            (memcmp(want.k, got.k, sizeof(want.k)) != 0)) {
            text += " opmasks differ;";
        }
        if (memcmp(m_want_data.data(), m_sandbox.data(), DATA_SIZE) != 0) {
            text += " memory differs;";
        }
        if (memcmp(m_want_low.data(), m_sandbox.low(), DATA_SIZE) != 0) {
            text += " low memory differs;";
        }
        return text;
    }

    /* One instruction at s.rip both ways. Empty if they agree. */
    std::string judge(const state_t &s, uint64_t in_use, bool repeated,
                      bool may_refuse, coverage_t *cover)
    {
        uint8_t code[16]    = {0};
        mlx5sim_insn_run_t run;
        mlx5sim_insn_status_t status;
        state_t native, got;
        int native_signo, signo;

        memcpy(code, reinterpret_cast<const void*>(s.rip),
               std::min<uint64_t>(15, CODE_BASE + CODE_SIZE - s.rip));
        m_code.assign(m_sandbox.code(), m_sandbox.code() + CODE_SIZE);
        reset_memory();
        native_signo = step(&s, &native, repeated);
        if ((native_signo == SIGSEGV) && (native.rip != s.rip)) {
            native_signo = SIGTRAP; /* a branch to nowhere, but done */
        }
        m_want_data.assign(m_sandbox.data(), m_sandbox.data() + DATA_SIZE);
        m_want_low.assign(m_sandbox.low(), m_sandbox.low() + DATA_SIZE);
        m_want_code.assign(m_sandbox.code(), m_sandbox.code() + CODE_SIZE);

        reset_memory();
        memcpy(m_sandbox.code(), m_code.data(), CODE_SIZE);
        memset(&run, 0, sizeof(run));
        run.vec_valid = 1;
        run.max_insns = 1;
        run.store_cb  = [](void *, uintptr_t, const void *, unsigned) {};
        m_shadow.set(s, in_use);
        status = interpret(&m_shadow, &run, &signo);
        while ((status == MLX5SIM_INSN_OK) && repeated &&
               (m_shadow.cpu.rip == s.rip)) {
            status = interpret(&m_shadow, &run, &signo);
        }
        m_shadow.get(&got);

        ++cover->tried;
        if (signo != 0) {
            ++cover->faulted;
            return (native_signo != SIGTRAP) ? "" :
                   "the interpreter faulted, the processor did not";
        }
        if (status != MLX5SIM_INSN_OK) {
            /* Nothing may have changed */
            ++cover->refused;
            m_want_data = m_master;
            m_want_low  = m_master;
            std::string text = compare(s, got, 0);
            if (!text.empty()) {
                return "changed although refused:" + text;
            }
            return ((native_signo != SIGTRAP) || may_refuse) ?
                   "" : "refused, but the processor executed it";
        }
        ++cover->executed;
        if (native_signo != SIGTRAP) {
            return "executed, but the processor raised signal " +
                   std::to_string(native_signo);
        }
        std::string text = compare(native, got, undefined_flags(code, s));
        if (memcmp(m_want_code.data(), m_sandbox.code(), CODE_SIZE) != 0) {
            text += " memory with code differs;";
        }
        return text;
    }

    sandbox_t            m_sandbox;
    shadow_t             m_shadow;
    uint64_t             m_seed;
    std::vector<uint8_t> m_master;
    std::vector<uint8_t> m_want_data;
    std::vector<uint8_t> m_want_low;
    std::vector<uint8_t> m_code; /* as it was before an instruction ran */
    std::vector<uint8_t> m_want_code;
};

unsigned num_cases(unsigned normal)
{
    const char *text = getenv("MLX5SIM_TEST_CASES");

    return (text != nullptr) ? strtoul(text, nullptr, 0) : normal;
}

/* Parts of the extended state that are in initial configuration: for the native
 * run the registers are zero, for the interpreter their memory is garbage */
uint64_t drop_components(generator_t &gen, state_t *s)
{
    uint64_t used = MLX5SIM_INSN_XSTATE_SSE | MLX5SIM_INSN_XSTATE_YMM |
                    MLX5SIM_INSN_XSTATE_ZMM | MLX5SIM_INSN_XSTATE_HI16 |
                    MLX5SIM_INSN_XSTATE_OPMASK;

    if (gen.one_in(4)) {
        used &= gen.rnd();
    }
    if (!(used & MLX5SIM_INSN_XSTATE_OPMASK)) {
        memset(s->k, 0, sizeof(s->k));
    }
    for (int i = 0; i < 16; ++i) {
        if (!(used & MLX5SIM_INSN_XSTATE_SSE)) {
            memset(s->vec[i], 0, 16);
        }
        if (!(used & MLX5SIM_INSN_XSTATE_YMM)) {
            memset(s->vec[i] + 16, 0, 16);
        }
        if (!(used & MLX5SIM_INSN_XSTATE_ZMM)) {
            memset(s->vec[i] + 32, 0, 32);
        }
        if (!(used & MLX5SIM_INSN_XSTATE_HI16)) {
            memset(s->vec[i + 16], 0, 64);
        }
    }
    return used;
}

/* As long as the longest instruction */
std::vector<uint8_t> padded(std::vector<uint8_t> code)
{
    code.resize(16, 0);
    return code;
}

/* Natively, a repeated string instruction is single-stepped by element */
bool is_string(const uint8_t *code, unsigned length)
{
    uint8_t last = (length > 0) ? code[length - 1] : 0;

    return ((last & 0xfe) == 0xa4) || ((last & 0xfe) == 0xaa);
}

} // namespace

TEST_F(insn_fuzz, every_known_encoding_agrees_with_the_processor)
{
    unsigned per_template = num_cases(150);
    unsigned failures = 0, total = 0;
    generator_t gen(m_seed);

    for (const template_t &t : TEMPLATES) {
        coverage_t cover;
        unsigned shown = 0;

        for (unsigned i = 0; (i < 20 * per_template) &&
                             (cover.tried < per_template); ++i) {
            std::vector<uint8_t> code;
            bool repeated = false;
            state_t s;

            gen.random_state(&s);
            uint64_t used = drop_components(gen, &s);
            if (!gen.encode(t, &s, &code, &repeated)) {
                continue;
            }
            memset(m_sandbox.code(), 0xcc, CODE_SIZE);
            memcpy(reinterpret_cast<void*>(s.rip), code.data(), code.size());

            unsigned length = mlx5sim_insn_length(code.data(), code.size());
            EXPECT_TRUE((length == code.size()) ||
                        ((length == 0) && (t.flags & MAYBE)))
                    << t.name << ": " << dump(code.data(), code.size())
                    << "length " << length;
            std::string text = judge(s, used, repeated, t.flags & MAYBE,
                                     &cover);
            failures += !text.empty();
            if (!text.empty() && (shown++ < 3)) {
                ADD_FAILURE() << t.name << ": "
                              << dump(code.data(), code.size()) << text;
            }
        }
        total += cover.tried;
        if ((t.enc == LEG) || (level() == LEVEL_AVX512)) {
            /* The template is no accident of refusals and faults */
            EXPECT_GE(cover.tried, per_template / 2) << t.name;
            EXPECT_GE(cover.executed, cover.tried / 8) << t.name;
        }
    }
    EXPECT_EQ(0u, failures);
    RecordProperty("cases", total);
    printf("%u cases\n", total);
}

/* Bytes of no particular meaning, and valid instructions with a few bits
 * changed. Whatever the interpreter agrees to execute, the processor must do
 * the same way. */
TEST_F(insn_fuzz, whatever_is_accepted_agrees_with_the_processor)
{
    unsigned wanted = num_cases(150) * 200;
    unsigned failures = 0, accepted = 0, executed = 0;
    generator_t gen(m_seed + 1);
    coverage_t cover;

    if (reinterpret_cast<uintptr_t>(&num_cases) < (1ul << 32)) {
        GTEST_SKIP() << "the program lies where wild addresses could hit it";
    }
    for (unsigned i = 0; i < wanted; ++i) {
        std::vector<uint8_t> code;
        bool repeated = false;
        state_t s;

        gen.random_state(&s);
        uint64_t used = drop_components(gen, &s);
        if (gen.one_in(3) ||
            !gen.encode(TEMPLATES[gen.rnd(NUM_TEMPLATES)], &s, &code,
                        &repeated)) {
            code.resize(15);
            for (auto &byte : code) {
                byte = gen.rnd();
            }
            /* Addresses that work, and small numbers that keep them so */
            for (auto &r : s.gpr) {
                r = gen.one_in(2) ? gen.rnd(64) : gen.data_address(1);
            }
            s.gpr[4] = gen.data_address(8);
        } else {
            for (unsigned n = gen.rnd(3) + 1; n > 0; --n) {
                code[gen.rnd(code.size())] ^= 1 << gen.rnd(8);
            }
            code.resize(15, gen.rnd());
        }
        s.gpr[1] &= gen.one_in(4) ? ~0ul : 0x3f;
#ifdef __SANITIZE_ADDRESS__
        /* Wild addresses could hit its shadow memory */
        for (auto &r : s.gpr) {
            r = gen.one_in(2) ? gen.rnd(64) : gen.data_address(1);
        }
#endif
        unsigned length = mlx5sim_insn_length(code.data(), code.size());
        if (length == 0) {
            continue;
        }
#ifdef __SANITIZE_ADDRESS__
        /* ... as could data addresses cut to 32 bits */
        if (std::find(code.begin(), code.begin() + length, 0x67) !=
            code.begin() + length) {
            continue;
        }
#endif
        ++accepted;
        s.rip = CODE_BASE + CODE_SIZE - length;
        memset(m_sandbox.code(), 0xcc, CODE_SIZE);
        memcpy(reinterpret_cast<void*>(s.rip), code.data(), length);
        std::string text = judge(s, used, is_string(code.data(), length), true,
                                 &cover);
        if (!text.empty() && (failures++ < 20)) {
            ADD_FAILURE() << dump(code.data(), length) << text;
        }
    }
    executed = cover.executed;
    EXPECT_EQ(0u, failures);
    EXPECT_GT(accepted, wanted / 4);
    EXPECT_GT(executed, wanted / 10);
    printf("%u accepted, %u executed, %u faulted both ways\n", accepted,
           executed, cover.faulted);
}

/* With the data all zero, a processor and a device window that reads as zero
 * can't be told apart: everything the processor wrote must be in memory outside
 * the window and in the reports inside, and nothing else. */
TEST_F(insn_fuzz, stores_into_a_window_are_reported_as_the_processor_does_them)
{
    struct device_t {
        std::vector<uint8_t>  bytes;
        mlx5sim_insn_window_t window;
        bool                  foreign;
        static void store(void *arg, uintptr_t addr, const void *data,
                          unsigned length)
        {
            device_t *dev = static_cast<device_t*>(arg);

            if ((addr < dev->window.lo) || (addr + length > dev->window.hi) ||
                (length == 0) || (length > MLX5SIM_INSN_MAX_STORE)) {
                dev->foreign = true;
                return;
            }
            memcpy(&dev->bytes[addr - DATA_BASE], data, length);
        }
        static void load(void *arg, uintptr_t addr, unsigned length)
        {
            device_t *dev = static_cast<device_t*>(arg);

            dev->foreign |= (addr < dev->window.lo) ||
                            (addr + length > dev->window.hi);
        }
    } device;
    unsigned per_template = num_cases(60);
    unsigned failures = 0, crossing = 0, reports = 0, total = 0;
    generator_t gen(m_seed + 2);

    std::fill(m_master.begin(), m_master.end(), 0);
    for (unsigned i = 0; i < per_template * NUM_TEMPLATES; ++i) {
        const template_t &t = TEMPLATES[i % NUM_TEMPLATES];
        std::vector<uint8_t> code;
        mlx5sim_insn_run_t run;
        state_t s, native, got;
        bool repeated = false;
        int signo;

        gen.random_state(&s);
        if (!gen.encode(t, &s, &code, &repeated) ||
            ((t.flags & STR) &&
             (std::max(s.gpr[6], s.gpr[7]) - std::min(s.gpr[6], s.gpr[7]) <
              640))) {
            continue;
        }
        memset(m_sandbox.code(), 0xcc, CODE_SIZE);
        memcpy(reinterpret_cast<void*>(s.rip), code.data(), code.size());

        device.window.lo = DATA_BASE + gen.rnd(DATA_SIZE / 2);
        device.window.hi = device.window.lo + gen.rnd(DATA_SIZE / 2);
        if (gen.one_in(2) && (gen.last_target() >= DATA_BASE)) {
            uint64_t edge = gen.last_target() + gen.rnd(32);
            if (gen.one_in(2)) {
                device.window.lo = edge;
                device.window.hi = std::max(edge, device.window.hi);
            } else {
                device.window.hi = edge;
                device.window.lo = std::min(edge, device.window.lo);
            }
        }
        device.bytes.assign(DATA_SIZE, 0);
        device.foreign = false;

        reset_memory();
        int native_signo = step(&s, &native, repeated);
        if ((native_signo == SIGSEGV) && (native.rip != s.rip)) {
            native_signo = SIGTRAP;
        }
        m_want_data.assign(m_sandbox.data(), m_sandbox.data() + DATA_SIZE);
        m_want_low.assign(m_sandbox.low(), m_sandbox.low() + DATA_SIZE);

        reset_memory();
        memset(&run, 0, sizeof(run));
        run.window    = device.window;
        run.vec_valid = 1;
        run.max_insns = 1;
        run.store_cb  = device_t::store;
        run.load_cb   = device_t::load;
        run.arg       = &device;
        m_shadow.set(s, 0xe6);
        mlx5sim_insn_status_t status = interpret(&m_shadow, &run, &signo);
        while ((status == MLX5SIM_INSN_OK) && repeated &&
               (m_shadow.cpu.rip == s.rip)) {
            status = interpret(&m_shadow, &run, &signo);
        }
        if ((signo != 0) || (status != MLX5SIM_INSN_OK)) {
            continue;
        }
        ++total;
        reports  += run.num_stores;
        crossing += (run.num_stores + run.num_loads > 0) &&
                    !std::equal(m_master.begin(), m_master.end(),
                                m_sandbox.data());

        /* Put the reported bytes where the processor would have put them */
        for (uint64_t a = device.window.lo; a < device.window.hi; ++a) {
            device.foreign |= (m_sandbox.data()[a - DATA_BASE] != 0);
            m_sandbox.data()[a - DATA_BASE] = device.bytes[a - DATA_BASE];
        }
        m_shadow.get(&got);
        std::string text = compare(native, got,
                                   undefined_flags(padded(code).data(), s));
        if (device.foreign) {
            text += " the device was touched behind the callbacks' back;";
        }
        if ((!text.empty() || (native_signo != SIGTRAP)) &&
            (failures++ < 20)) {
            ADD_FAILURE() << t.name << ": " << dump(code.data(), code.size())
                          << " native signal " << native_signo << text;
        }
    }
    EXPECT_EQ(0u, failures);
    EXPECT_GT(reports, total / 20);
    EXPECT_GT(crossing, 20u);
    printf("%u cases, %u reports, %u across an edge\n", total, reports,
           crossing);
}

/* Where vector registers can't be trusted, no instruction may use one except to
 * store it into the window, which is reported with its length alone. */
TEST_F(insn_fuzz, without_vector_registers_nothing_depends_on_them)
{
    struct device_t {
        std::vector<uint8_t>  bytes;
        std::vector<bool>     unknown;
        static void store(void *arg, uintptr_t addr, const void *data,
                          unsigned length)
        {
            device_t *dev = static_cast<device_t*>(arg);

            for (unsigned i = 0; i < length; ++i) {
                dev->unknown[addr - DATA_BASE + i] = (data == nullptr);
                if (data != nullptr) {
                    dev->bytes[addr - DATA_BASE + i] =
                            static_cast<const uint8_t*>(data)[i];
                }
            }
        }
    } device;
    unsigned failures = 0, blind = 0, refused = 0;
    generator_t gen(m_seed + 3);

    std::fill(m_master.begin(), m_master.end(), 0);
    for (unsigned i = 0; i < num_cases(60) * NUM_TEMPLATES; ++i) {
        const template_t &t = TEMPLATES[i % NUM_TEMPLATES];
        std::vector<uint8_t> code;
        mlx5sim_insn_run_t run;
        state_t s, native, got, garbage;
        bool repeated = false;
        int signo;

        gen.random_state(&s);
        if (!gen.encode(t, &s, &code, &repeated) || (t.flags & STR)) {
            continue;
        }
        memset(m_sandbox.code(), 0xcc, CODE_SIZE);
        memcpy(reinterpret_cast<void*>(s.rip), code.data(), code.size());
        reset_memory();
        if (step(&s, &native, repeated) != SIGTRAP) {
            continue;
        }
        m_want_data.assign(m_sandbox.data(), m_sandbox.data() + DATA_SIZE);
        m_want_low.assign(m_sandbox.low(), m_sandbox.low() + DATA_SIZE);

        reset_memory();
        device.bytes.assign(DATA_SIZE, 0);
        device.unknown.assign(DATA_SIZE, false);
        memset(&run, 0, sizeof(run));
        run.window    = {DATA_BASE, DATA_BASE + DATA_SIZE};
        run.vec_valid = 0;
        run.max_insns = 1;
        run.store_cb  = device_t::store;
        run.arg       = &device;
        garbage       = s;
        memset(garbage.vec, 0xee, sizeof(garbage.vec));
        memset(garbage.k, 0xee, sizeof(garbage.k));
        m_shadow.set(garbage, 0xe6);
        mlx5sim_insn_status_t status = interpret(&m_shadow, &run, &signo);
        m_shadow.get(&got);
        EXPECT_EQ(0, signo);
        EXPECT_EQ(0, memcmp(got.vec, garbage.vec, sizeof(got.vec))) << t.name;
        EXPECT_EQ(0, memcmp(got.k, garbage.k, sizeof(got.k))) << t.name;
        if (status != MLX5SIM_INSN_OK) {
            ++refused;
            continue;
        }
        for (unsigned j = 0; j < DATA_SIZE; ++j) {
            if (device.unknown[j]) {
                blind              += (j == 0) || !device.unknown[j - 1];
                m_sandbox.data()[j] = m_want_data[j];
            } else {
                m_sandbox.data()[j] = device.bytes[j];
            }
        }
        /* If it was executed, it had no business with the vectors natively */
        memcpy(got.vec, s.vec, sizeof(got.vec));
        memcpy(got.k, s.k, sizeof(got.k));
        std::string text = compare(native, got,
                                   undefined_flags(padded(code).data(), s));
        if (!text.empty() && (failures++ < 20)) {
            ADD_FAILURE() << t.name << ": " << dump(code.data(), code.size())
                          << text;
        }
    }
    EXPECT_EQ(0u, failures);
    EXPECT_GT(blind, 100u);
    EXPECT_GT(refused, 100u);
}

/* Valgrind drops what a handler does to the flags: the branch behind the
 * comparison went the wrong way, and a lock of libmlx5 was not released */
TEST(insn_flags, a_run_under_valgrind_ends_where_nobody_needs_them)
{
    static const uint8_t code[] = {
        0x48, 0x89, 0x07,                   /*  0: mov %rax,(%rdi) */
        0x90, 0x90, 0x90, 0x90, 0x90,       /*  3: nop */
        0x85, 0xc9,                         /*  8: test %ecx,%ecx */
        0x75, 0x00,                         /* 10: jne 12 */
        0x89, 0xca,                         /* 12: mov %ecx,%edx */
        0x85, 0xd2,                         /* 14: test %edx,%edx */
        0x75, 0x00,                         /* 16: jne 18 */
        0xcc
    };
    uint64_t device[8] = {};

    for (int vec_valid = 0; vec_valid < 2; ++vec_valid) {
        mlx5sim_insn_cpu_t cpu;
        mlx5sim_insn_run_t run;

        memset(&cpu, 0, sizeof(cpu));
        memset(&run, 0, sizeof(run));
        cpu.rip       = (uintptr_t)code;
        cpu.gpr[7]    = (uintptr_t)device; /* rdi */
        run.window    = {(uintptr_t)device, (uintptr_t)(device + 8)};
        run.vec_valid = vec_valid;
        run.max_gap   = 6; /* up to the first test */
        run.store_cb  = [](void*, uintptr_t, const void*, unsigned) {};
        ASSERT_EQ(MLX5SIM_INSN_OK, mlx5sim_insn_cpu_run(&cpu, &run));
        EXPECT_EQ(MLX5SIM_INSN_END_GAP, run.end);
        EXPECT_EQ(vec_valid ? 10u : 14u, cpu.rip - (uintptr_t)code);
    }
}

TEST_F(insn_fuzz, straight_runs_of_instructions_agree_with_the_processor)
{
    constexpr unsigned LENGTH = 40;
    unsigned failures = 0, total = 0;
    generator_t gen(m_seed + 4);

    gen.avoid_memory();
    for (unsigned i = 0; i < num_cases(150) * 4; ++i) {
        std::vector<uint8_t> program;
        mlx5sim_insn_run_t run;
        state_t s, next, native, got;
        unsigned count = 0;
        int signo;

        gen.random_state(&s);
        while (count < LENGTH) {
            const template_t &t = TEMPLATES[gen.rnd(NUM_TEMPLATES)];
            std::vector<uint8_t> code;
            bool repeated = false;
            state_t scratch;

            /* Registers only, nothing that depends on their values */
            if ((t.flags & (BRN | STR | MAYBE | DIRF | IMM16)) ||
                ((t.flags & RM_M) && !(t.flags & RM_R)) ||
                (t.opcode == 0xc3) || (t.opcode == 0xff) ||
                ((t.map == 0) && (t.opcode >= 0x50) && (t.opcode < 0x6b)) ||
                !gen.encode(t, &scratch, &code, &repeated)) {
                continue;
            }
            program.insert(program.end(), code.begin(), code.end());
            ++count;
        }
        s.rip = CODE_BASE + CODE_SIZE - program.size() - 1;
        memset(m_sandbox.code(), 0xcc, CODE_SIZE);
        memcpy(reinterpret_cast<void*>(s.rip), program.data(), program.size());

        reset_memory();
        uint64_t ignore = 0;
        next            = s;
        for (unsigned n = 0; n < LENGTH; ++n) {
            uint8_t code[16] = {0};
            memcpy(code, reinterpret_cast<const void*>(next.rip),
                   std::min<uint64_t>(15, CODE_BASE + CODE_SIZE - next.rip));
            ignore = undefined_flags(code, next);
            ASSERT_EQ(SIGTRAP, step(&next, &native, false));
            /* Both sides go on with the same value of undefined flags */
            native.rflags &= ~ignore;
            next           = native;

            memset(&run, 0, sizeof(run));
            run.vec_valid = 1;
            run.max_insns = 1;
            run.store_cb  = [](void *, uintptr_t, const void *, unsigned) {};
            if (n == 0) {
                m_shadow.set(s, 0xe6);
            }
            if (interpret(&m_shadow, &run, &signo) != MLX5SIM_INSN_OK) {
                break;
            }
            m_shadow.cpu.rflags &= ~ignore;
        }
        m_shadow.get(&got);
        m_want_data = m_master;
        m_want_low  = m_master;
        std::string text = compare(native, got, 0);
        ++total;
        if (!text.empty() && (failures++ < 5)) {
            ADD_FAILURE() << "program " << i << ": " << text;
        }

        /* And in one go: it ends before the int3 behind the program */
        memset(&run, 0, sizeof(run));
        run.vec_valid = 1;
        run.store_cb  = [](void *, uintptr_t, const void *, unsigned) {};
        m_shadow.set(s, 0xe6);
        EXPECT_EQ(MLX5SIM_INSN_OK, interpret(&m_shadow, &run, &signo));
        EXPECT_EQ(LENGTH, run.num_insns);
        EXPECT_EQ(MLX5SIM_INSN_END_UNKNOWN, run.end);
        EXPECT_EQ(CODE_BASE + CODE_SIZE - 1, m_shadow.cpu.rip);
    }
    EXPECT_EQ(0u, failures);
}

TEST_F(insn_fuzz, truncated_instructions_are_unknown)
{
    generator_t gen(m_seed + 5);

    for (unsigned i = 0; i < num_cases(150) * 100; ++i) {
        std::vector<uint8_t> code;
        bool repeated = false;
        state_t s;

        gen.random_state(&s);
        if (!gen.encode(TEMPLATES[i % NUM_TEMPLATES], &s, &code, &repeated)) {
            continue;
        }
        unsigned length = mlx5sim_insn_length(code.data(), code.size());
        for (size_t n = 0; n < length; ++n) {
            ASSERT_EQ(0u, mlx5sim_insn_length(code.data(), n))
                    << dump(code.data(), code.size());
        }
        code.resize(32, 0x90);
        ASSERT_EQ(length, mlx5sim_insn_length(code.data(), code.size()));
    }
}

/* Nothing is known of the bytes, and behind them is no memory */
TEST_F(insn_fuzz, garbage_is_decoded_without_reading_beyond_it)
{
    unsigned known = 0, wanted = num_cases(150) * 2000;
    generator_t gen(m_seed + 6);

    for (unsigned i = 0; i < wanted; ++i) {
        unsigned given = gen.rnd(16);
        uint8_t *code  = m_sandbox.code() + CODE_SIZE - given;

        for (unsigned n = 0; n < given; ++n) {
            code[n] = gen.rnd();
        }
        unsigned length = mlx5sim_insn_length(code, given);
        ASSERT_LE(length, given);
        known += (length != 0);
    }
    EXPECT_GT(known, wanted / 10);
}

namespace {

class insn_run : public insn_fuzz {
protected:
    struct record_t {
        std::vector<std::pair<uint64_t, unsigned>> stores;
        mlx5sim_insn_run_t                         run;
        int                                        stop_after = 0;
        int                                        stop_with  = 0;
    };

    static void store(void *arg, uintptr_t addr, const void *, unsigned length)
    {
        record_t *record = static_cast<record_t*>(arg);

        record->stores.push_back({addr, length});
        if (static_cast<int>(record->stores.size()) == record->stop_after) {
            record->run.stop = record->stop_with;
        }
    }

    /* Run a program with rdi at the window, rsi at ordinary memory */
    mlx5sim_insn_status_t run(record_t *record, std::vector<uint8_t> program)
    {
        state_t s;
        int signo;

        memset(&s, 0, sizeof(s));
        s.gpr[6] = DATA_BASE;
        s.gpr[7] = DATA_BASE + DATA_SIZE / 2;
        s.rip    = CODE_BASE + CODE_SIZE - program.size();
        memcpy(reinterpret_cast<void*>(s.rip), program.data(), program.size());
        record->run.window    = {s.gpr[7], s.gpr[7] + 256};
        record->run.vec_valid = 1;
        record->run.store_cb  = store;
        record->run.arg       = record;
        m_shadow.set(s, 0xe6);
        mlx5sim_insn_status_t status = interpret(&m_shadow, &record->run,
                                                 &signo);
        EXPECT_EQ(0, signo);
        m_done = m_shadow.cpu.rip - s.rip;
        return status;
    }

    uint64_t m_done; /* bytes of code behind us */
};

const std::vector<uint8_t> ST0  = {0x48, 0x89, 0x07};       /* [rdi] = rax */
const std::vector<uint8_t> ST8  = {0x48, 0x89, 0x47, 0x08}; /* [rdi + 8] */
const std::vector<uint8_t> LD   = {0x48, 0x8b, 0x06};       /* rax = [rsi] */
const std::vector<uint8_t> INT3 = {0xcc};

std::vector<uint8_t> operator+(std::vector<uint8_t> a,
                               const std::vector<uint8_t> &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

} // namespace

TEST_F(insn_run, ends_before_an_unknown_instruction)
{
    record_t record = {};

    EXPECT_EQ(MLX5SIM_INSN_OK, run(&record, ST0 + LD + ST8 + INT3));
    EXPECT_EQ(2u, record.stores.size());
    EXPECT_EQ(MLX5SIM_INSN_END_UNKNOWN, record.run.end);
    EXPECT_EQ(10u, m_done);
    EXPECT_EQ(3u, record.run.num_insns);
}

TEST_F(insn_run, unknown_first_instruction_reports_nothing)
{
    record_t record = {};

    EXPECT_EQ(MLX5SIM_INSN_UNKNOWN, run(&record, INT3 + ST0));
    EXPECT_TRUE(record.stores.empty());
    EXPECT_EQ(0u, m_done);

    /* A locked one: it would have to be atomic */
    EXPECT_EQ(MLX5SIM_INSN_UNKNOWN, run(&record, {0xf0, 0x48, 0x01, 0x07}));
    /* Through fs: the base is not known */
    EXPECT_EQ(MLX5SIM_INSN_UNKNOWN, run(&record, {0x64, 0x48, 0x89, 0x07}));
    EXPECT_TRUE(record.stores.empty());
}

TEST_F(insn_run, stop_now_and_stop_soon)
{
    record_t now = {}, soon = {};

    now.stop_after = soon.stop_after = 1;
    now.stop_with  = MLX5SIM_INSN_STOP_NOW;
    soon.stop_with = MLX5SIM_INSN_STOP_SOON;
    EXPECT_EQ(MLX5SIM_INSN_OK, run(&now, ST0 + ST8 + ST0 + LD + ST0 + INT3));
    EXPECT_EQ(1u, now.stores.size());
    EXPECT_EQ(MLX5SIM_INSN_END_STOP, now.run.end);

    EXPECT_EQ(MLX5SIM_INSN_OK, run(&soon, ST0 + ST8 + ST0 + LD + ST0 + INT3));
    EXPECT_EQ(3u, soon.stores.size());
    EXPECT_EQ(MLX5SIM_INSN_END_STOP, soon.run.end);
    EXPECT_EQ(10u, m_done);
}

TEST_F(insn_run, ranges_to_avoid_are_left_to_the_processor)
{
    mlx5sim_insn_window_t avoid[2] = {{1, 2}, {DATA_BASE + 7, DATA_BASE + 8}};
    record_t record                = {};

    record.run.avoid     = avoid;
    record.run.num_avoid = 2;
    /* The load from rsi would touch the last byte */
    EXPECT_EQ(MLX5SIM_INSN_OK, run(&record, ST0 + LD + ST8 + INT3));
    EXPECT_EQ(1u, record.stores.size());
    EXPECT_EQ(3u, m_done);

    /* One byte less does not */
    avoid[1].lo = avoid[1].hi = DATA_BASE + 8;
    EXPECT_EQ(MLX5SIM_INSN_OK, run(&record, ST0 + LD + ST8 + INT3));
    EXPECT_EQ(10u, m_done);

    /* A store to it neither */
    avoid[1] = {DATA_BASE, DATA_BASE + 1};
    EXPECT_EQ(MLX5SIM_INSN_OK,
              run(&record, ST0 + std::vector<uint8_t>{0x48, 0x89, 0x06}));
    EXPECT_EQ(3u, m_done);
}

TEST_F(insn_run, unsigned_wraparound_of_addresses_is_no_access_to_the_window)
{
    record_t record = {};

    /* rax is 0: [rax - 4] wraps around the end of the address space. It faults
     * natively, and must not be taken for the window. */
    state_t s;
    int signo;
    std::vector<uint8_t> program = {0x48, 0x89, 0x40, 0xfc};
    memset(&s, 0, sizeof(s));
    s.rip = CODE_BASE;
    memcpy(m_sandbox.code(), program.data(), program.size());
    record.run.window    = {0, 4096};
    record.run.vec_valid = 1;
    record.run.store_cb  = store;
    record.run.arg       = &record;
    m_shadow.set(s, 0xe6);
    interpret(&m_shadow, &record.run, &signo);
    EXPECT_TRUE(record.stores.empty());
}
