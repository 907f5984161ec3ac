/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file test_insn_fixture.h
 *
 * The interpreter against the processor: one instruction from one state, done
 * by both, and everything compared.
 */

#ifndef TEST_INSN_FIXTURE_H_
#define TEST_INSN_FIXTURE_H_

#include <sim/test_insn_encode.h>
#include <sim/test_insn_flags.h>

#include <common/sanitizer.h>
#include <common/seed.h>

#include <stdio.h>

#include <algorithm>

namespace insn_native {

struct coverage_t {
    unsigned tried = 0;
    unsigned executed = 0;
    unsigned refused = 0;
    unsigned faulted = 0;
};

/* For tests that are not random: their memory is always the same */
class insn_test : public testing::Test {
protected:
    explicit insn_test(uint64_t seed = 1) : m_seed(seed) {}

    void SetUp() override
    {
        if (under_valgrind()) {
            GTEST_SKIP() << "valgrind has no single step";
        }
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

    /* One instruction at s.rip both ways. Empty if they agree. The interpreter
     * is first: what it may refuse and does, the processor is not asked to do,
     * as nobody knows whether that would touch memory of this program. */
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
        memset(&run, 0, sizeof(run));
        run.vec_valid = 1;
        run.max_insns = 1;
        run.avoid     = &PROGRAM;
        run.num_avoid = 1;
        run.store_cb  = [](void *, uintptr_t, const void *, unsigned) {};
        m_shadow.set(s, in_use);
        status = interpret(&m_shadow, &run, &signo);
        while ((status == MLX5SIM_INSN_OK) && repeated &&
               (m_shadow.cpu.rip == s.rip)) {
            status = interpret(&m_shadow, &run, &signo);
        }
        m_shadow.get(&got);

        ++cover->tried;
        if ((signo == 0) && (status != MLX5SIM_INSN_OK)) {
            /* Nothing may have changed */
            ++cover->refused;
            m_want_data = m_master;
            m_want_low  = m_master;
            std::string text = compare(s, got, 0);
            if (!text.empty()) {
                return "changed although refused:" + text;
            }
            if (may_refuse) {
                return "";
            }
        }
        /* compare() does not mind whose memory is whose */
        m_want_data.assign(m_sandbox.data(), m_sandbox.data() + DATA_SIZE);
        m_want_low.assign(m_sandbox.low(), m_sandbox.low() + DATA_SIZE);
        m_want_code.assign(m_sandbox.code(), m_sandbox.code() + CODE_SIZE);

        reset_memory();
        memcpy(m_sandbox.code(), m_code.data(), CODE_SIZE);
        native_signo = step(&s, &native, repeated);
        if ((native_signo == SIGSEGV) && (native.rip != s.rip)) {
            native_signo = SIGTRAP; /* a branch to nowhere, but done */
        }
        if (signo != 0) {
            ++cover->faulted;
            return (native_signo != SIGTRAP) ? "" :
                   "the interpreter faulted, the processor did not";
        }
        if (status != MLX5SIM_INSN_OK) {
            return (native_signo != SIGTRAP) ? "" :
                   "refused, but the processor executed it";
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

class insn_fuzz : public insn_test {
protected:
    insn_fuzz() : insn_test(seed::get()) {}
};

/* Parts of the extended state that are in initial configuration: for the native
 * run the registers are zero, for the interpreter their memory is garbage */
inline uint64_t drop_components(generator_t &gen, state_t *s)
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
inline std::vector<uint8_t> padded(std::vector<uint8_t> code)
{
    code.resize(16, 0);
    return code;
}

/* Natively, a repeated string instruction is single-stepped by element */
inline bool is_string(const uint8_t *code, unsigned length)
{
    uint8_t last = (length > 0) ? code[length - 1] : 0;

    return ((last & 0xfe) == 0xa4) || ((last & 0xfe) == 0xaa);
}

/* AddressSanitizer has shadow memory where wild addresses, or data addresses
 * cut to 32 bits, could hit it. */
inline void tame_registers(generator_t &gen, state_t *s)
{
    if (has_asan()) {
        for (auto &r : s->gpr) {
            r = gen.one_in(2) ? gen.rnd(64) : gen.data_address(1);
        }
    }
}

inline bool may_be_wild(const std::vector<uint8_t> &code, unsigned length)
{
    return has_asan() &&
           (std::find(code.begin(), code.begin() + length, 0x67) !=
            code.begin() + length);
}

} // namespace insn_native

#endif
