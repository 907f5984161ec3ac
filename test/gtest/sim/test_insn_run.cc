/* SPDX-License-Identifier: BSD-3-Clause */

/* Where the interpreter starts, and where and why it ends */

#include <sim/test_insn_fixture.h>

using namespace insn_native;

namespace {

class insn_run : public insn_test {
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

/* What was decoded is kept, but not beyond the bytes */
TEST_F(insn_run, code_that_has_changed_is_decoded_anew)
{
    record_t record = {};

    for (uint8_t offset : {8, 8, 16, 8}) {
        EXPECT_EQ(MLX5SIM_INSN_OK,
                  run(&record, {0x48, 0x89, 0x47, offset, 0xcc}));
        EXPECT_EQ(record.run.window.lo + offset, record.stores.back().first);
    }
    EXPECT_EQ(MLX5SIM_INSN_OK, run(&record, {0x48, 0x89, 0x07, 0xcc, 0xcc}));
    EXPECT_EQ(record.run.window.lo, record.stores.back().first);
    EXPECT_EQ(3u, m_done);
    EXPECT_EQ(MLX5SIM_INSN_UNKNOWN,
              run(&record, {0xcc, 0x89, 0x07, 0xcc, 0xcc}));
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
