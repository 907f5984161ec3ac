/* SPDX-License-Identifier: BSD-3-Clause */

/* The interpreter against the processor: random encodings from everything it
 * claims to know, and random bytes, each executed natively and interpreted from
 * the same state. */

#include <sim/test_insn_fixture.h>

#include <memory>

using namespace insn_native;


TEST_F(insn_fuzz, every_known_encoding_agrees_with_the_processor)
{
    unsigned per_template = seed::cases(150);
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

/* Random bytes that write to it would end it, or spoil a later test */
TEST_F(insn_fuzz, memory_of_the_program_is_left_alone)
{
    /* The index of a bit may be a place anywhere */
    static const std::vector<uint8_t> BTS_FAR = {0x48, 0x0f, 0xab, 0x04, 0x25,
                                                 0,    0,    0,    0};
    /* In memory at rax */
    static const std::vector<uint8_t> BTS     = {0x48, 0x0f, 0xba, 0x28, 0};
    static uint64_t loaded;
    uint64_t on_stack = 0;
    auto on_heap      = std::make_unique<uint64_t>(0);
    generator_t gen(m_seed);
    coverage_t cover;

    auto expect_same = [&](const std::vector<uint8_t> &code, uint64_t rax) {
        state_t s;

        gen.random_state(&s);
        s.gpr[0] = rax;
        s.rip    = CODE_BASE;
        memset(m_sandbox.code(), 0xcc, CODE_SIZE);
        memcpy(m_sandbox.code(), code.data(), code.size());
        EXPECT_EQ("", judge(s, 0xe6, false, true, &cover));
    };

    for (uint64_t *word : {&loaded, &on_stack, on_heap.get()}) {
        uint64_t addr = reinterpret_cast<uintptr_t>(word);

        if (addr < PROGRAM.lo) {
            GTEST_SKIP() << "the program is not position-independent";
        }
        expect_same(BTS_FAR, addr * 8);
        EXPECT_EQ(0u, *word);
        expect_same(BTS, addr);
        EXPECT_EQ(0u, *word);
        expect_same(BTS, gen.data_address(8));
    }
    EXPECT_EQ(6u, cover.refused);
    EXPECT_EQ(3u, cover.executed);
}

/* Bytes of no particular meaning, and valid instructions with a few bits
 * changed. Whatever the interpreter agrees to execute, the processor must do
 * the same way. */
TEST_F(insn_fuzz, whatever_is_accepted_agrees_with_the_processor)
{
    unsigned wanted = seed::cases(150) * 200;
    unsigned failures = 0, accepted = 0, executed = 0;
    generator_t gen(m_seed + 1);
    coverage_t cover;

    if (reinterpret_cast<uintptr_t>(&seed::cases) < (1ul << 32)) {
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
        tame_registers(gen, &s);
        unsigned length = mlx5sim_insn_length(code.data(), code.size());
        if ((length == 0) || may_be_wild(code, length)) {
            continue;
        }
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
        static void load(void *arg, uintptr_t addr, void*, unsigned length)
        {
            device_t *dev = static_cast<device_t*>(arg);

            dev->foreign |= (addr < dev->window.lo) ||
                            (addr + length > dev->window.hi);
        }
    } device;
    unsigned per_template = seed::cases(60);
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
    for (unsigned i = 0; i < seed::cases(60) * NUM_TEMPLATES; ++i) {
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

TEST_F(insn_fuzz, straight_runs_of_instructions_agree_with_the_processor)
{
    constexpr unsigned LENGTH = 40;
    unsigned failures = 0;
    generator_t gen(m_seed + 4);

    gen.avoid_memory();
    for (unsigned i = 0; i < seed::cases(150) * 4; ++i) {
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

    for (unsigned i = 0; i < seed::cases(150) * 100; ++i) {
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
    unsigned known = 0, wanted = seed::cases(150) * 2000;
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
