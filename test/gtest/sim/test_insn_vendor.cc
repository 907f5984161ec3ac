/* SPDX-License-Identifier: BSD-3-Clause */

/* Encodings that processors of Intel and of AMD take for different things, or
 * that only one of them has, and the neighbours that are the same on both. The
 * list with reasons is in docs/software-device.md. */

#include <sim/test_insn_fixture.h>

#include <cpuid.h>

using namespace insn_native;

namespace {

typedef std::vector<uint8_t> bytes_t;

/* Who executes an encoding */
enum owner_t {
    SAME,      /* Interpreter and processor, alike */
    LEFT,      /* The processor, whatever it takes it for */
    MOVDIRI,   /* As SAME on a processor that has it, else as LEFT */
    MOVDIR64B,
    SSE4A
};

struct case_t {
    const char *name;
    owner_t     owner;
    bytes_t     code;
};

/* rdi, rsi and rbx point to data, rax to code, rcx is 3, k1 is 0, k2 is 5 */
const case_t CASES[] = {
    /* F3 90 is pause; with REX.B Intel: pause, AMD: xchg r8, rax */
    {"nop",                       SAME, {0x90}},
    {"pause",                     SAME, {0xf3, 0x90}},
    {"pause, rex.w",              SAME, {0xf3, 0x48, 0x90}},
    {"pause, rex.rx",             SAME, {0xf3, 0x46, 0x90}},
    {"pause, 66",                 SAME, {0x66, 0xf3, 0x90}},
    {"xchg r8, rax",              SAME, {0x49, 0x90}},
    {"xchg r8w, ax",              SAME, {0x66, 0x41, 0x90}},
    {"pause or xchg, rex.b",      LEFT, {0xf3, 0x41, 0x90}},
    {"pause or xchg, rex.wb",     LEFT, {0xf3, 0x49, 0x90}},
    {"pause or xchg, rex.wrxb",   LEFT, {0xf3, 0x4f, 0x90}},
    {"pause or xchg, 66",         LEFT, {0x66, 0xf3, 0x41, 0x90}},
    {"xchg with f2",              LEFT, {0xf2, 0x41, 0x90}},

    /* 66 in front of a near branch. Intel: no effect; AMD: the instruction
     * pointer is cut to 16 bits. Not with REX.W. */
    {"jmp rel8, 66",              LEFT, {0x66, 0xeb, 0x00}},
    {"jmp rel32, 66",             LEFT, {0x66, 0xe9, 0, 0, 0, 0}},
    {"jcc rel8, 66",              LEFT, {0x66, 0x75, 0x00}},
    {"jcc rel32, 66",             LEFT, {0x66, 0x0f, 0x85, 0, 0, 0, 0}},
    {"call rel32, 66",            LEFT, {0x66, 0xe8, 0, 0, 0, 0}},
    {"call rel32, 66 rex.w",      LEFT, {0x66, 0x48, 0xe8, 0, 0, 0, 0}},
    {"loop, 66",                  LEFT, {0x66, 0xe2, 0x00}},
    {"jrcxz, 66",                 LEFT, {0x66, 0xe3, 0x00}},
    {"ret, 66",                   LEFT, {0x66, 0xc3}},
    {"ret imm16, 66",             LEFT, {0x66, 0xc2, 0x08, 0x00}},
    {"jmp rax, 66",               LEFT, {0x66, 0xff, 0xe0}},
    {"call rax, 66",              LEFT, {0x66, 0xff, 0xd0}},
    {"jmp rax, 66 rex.w",         SAME, {0x66, 0x48, 0xff, 0xe0}},
    {"call rax, 66 rex.w",        SAME, {0x66, 0x48, 0xff, 0xd0}},
    {"push, 66",                  LEFT, {0x66, 0x50}},
    {"pop, 66",                   LEFT, {0x66, 0x58}},
    {"push imm, 66",              LEFT, {0x66, 0x68, 0x12, 0x34}},
    {"push rax, 66",              LEFT, {0x66, 0xff, 0xf0}},
    {"push rax, 66 rex.w",        SAME, {0x66, 0x48, 0xff, 0xf0}},
    {"leave, 66",                 LEFT, {0x66, 0xc9}},

    /* Far branches: REX.W gives a 64-bit offset on Intel only */
    {"call far",                  LEFT, {0x48, 0xff, 0x1f}},
    {"jmp far",                   LEFT, {0x48, 0xff, 0x2f}},

    /* Prefixes without effect on branches: hints, bnd, notrack, 67 */
    {"jcc rel8, 2e",              SAME, {0x2e, 0x75, 0x00}},
    {"jcc rel8, 3e",              SAME, {0x3e, 0x75, 0x00}},
    {"jmp rax, notrack",          SAME, {0x3e, 0xff, 0xe0}},
    {"bnd jmp",                   SAME, {0xf2, 0xeb, 0x00}},
    {"rep jmp",                   SAME, {0xf3, 0xeb, 0x00}},
    {"bnd call",                  SAME, {0xf2, 0xe8, 0, 0, 0, 0}},
    {"addr32 call",               SAME, {0x67, 0xe8, 0, 0, 0, 0}},
    {"addr32 jmp",                SAME, {0x67, 0xeb, 0x00}},
    {"addr32 push",               SAME, {0x67, 0x50}},
    {"loop, 67: ecx",             LEFT, {0x67, 0xe2, 0x00}},
    {"jecxz",                     LEFT, {0x67, 0xe3, 0x00}},

    /* Several prefixes: F2 and F3 together are not defined, 66 is weaker than
     * either, REX counts only where it is last */
    {"f2 f3 movsb",               LEFT, {0xf2, 0xf3, 0xa4}},
    {"f3 f2 movsb",               LEFT, {0xf3, 0xf2, 0xa4}},
    {"f3 f2 movups",              LEFT, {0xf3, 0xf2, 0x0f, 0x11, 0x07}},
    {"movss st, 66",              SAME, {0x66, 0xf3, 0x0f, 0x11, 0x07}},
    {"movsd st, 66",              SAME, {0x66, 0xf2, 0x0f, 0x11, 0x07}},
    {"movdqu st, 66",             SAME, {0x66, 0xf3, 0x0f, 0x7f, 0x07}},
    {"movq, 66",                  SAME, {0x66, 0xf3, 0x0f, 0x7e, 0xc1}},
    {"popcnt 16",                 SAME, {0x66, 0xf3, 0x0f, 0xb8, 0xc1}},
    {"mov st, 66 behind rex",     SAME, {0x48, 0x66, 0x89, 0x07}},
    {"repne movsb",               SAME, {0xf2, 0xa4}},
    {"repne stosq",               SAME, {0xf2, 0x48, 0xab}},
    {"mov st, xrelease",          LEFT, {0xf3, 0x89, 0x07}},

    /* Segments: es, cs, ss and ds have no base and, with EFER.LMSLE clear, no
     * limit on AMD either */
    {"mov st, es",                SAME, {0x26, 0x48, 0x89, 0x07}},
    {"mov st, cs",                SAME, {0x2e, 0x48, 0x89, 0x07}},
    {"mov st, ss",                SAME, {0x36, 0x48, 0x89, 0x07}},
    {"mov st, ds",                SAME, {0x3e, 0x48, 0x89, 0x07}},
    {"mov st, fs",                LEFT, {0x64, 0x48, 0x89, 0x07}},
    {"mov st, gs then ds",        LEFT, {0x65, 0x3e, 0x48, 0x89, 0x07}},

    /* Locked ones, and lock where it raises #UD */
    {"lock mov",                  LEFT, {0xf0, 0x89, 0x07}},
    {"lock add",                  LEFT, {0xf0, 0x48, 0x01, 0x07}},
    {"lock nop",                  LEFT, {0xf0, 0x90}},
    {"lock prefetch",             LEFT, {0xf0, 0x0f, 0x18, 0x0f}},
    {"lock movups",               LEFT, {0xf0, 0x0f, 0x11, 0x07}},
    {"xchg with memory",          LEFT, {0x48, 0x87, 0x07}},

    /* Prefetches. 0F 0D with a register is a nop on Intel, #UD on AMD. */
    {"prefetch",                  SAME, {0x0f, 0x0d, 0x07}},
    {"prefetchw",                 SAME, {0x0f, 0x0d, 0x0f}},
    {"prefetchwt1",               SAME, {0x0f, 0x0d, 0x17}},
    {"prefetch /3",               SAME, {0x0f, 0x0d, 0x1f}},
    {"prefetch /7",               SAME, {0x0f, 0x0d, 0x3f}},
    {"0f 0d with a register",     LEFT, {0x0f, 0x0d, 0xc8}},
    {"prefetchnta",               SAME, {0x0f, 0x18, 0x07}},
    {"prefetcht2",                SAME, {0x0f, 0x18, 0x1f}},
    {"0f 18 /4",                  SAME, {0x0f, 0x18, 0x27}},
    {"0f 18 /7",                  SAME, {0x0f, 0x18, 0x3f}},
    {"0f 18 with a register",     SAME, {0x0f, 0x18, 0xc8}},
    {"nop rm, 66",                SAME, {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {"endbr64",                   SAME, {0xf3, 0x0f, 0x1e, 0xfa}},
    {"rdsspq",                    LEFT, {0xf3, 0x48, 0x0f, 0x1e, 0xc8}},

    /* Fences: any of the low three bits */
    {"lfence, rm 1",              SAME, {0x0f, 0xae, 0xe9}},
    {"mfence, rm 7",              SAME, {0x0f, 0xae, 0xf7}},
    {"sfence, rm 2",              SAME, {0x0f, 0xae, 0xfa}},
    {"66 sfence",                 LEFT, {0x66, 0x0f, 0xae, 0xf8}},

    /* Aliases that one of the manuals does not have */
    {"test rm8, imm /1",          SAME, {0xf6, 0xc9, 0x55}},
    {"test rm, imm /1",           SAME, {0x48, 0xf7, 0xc9, 1, 2, 3, 4}},
    {"sal /6",                    SAME, {0x48, 0xd1, 0xf0}},
    {"sal /6, imm",               SAME, {0xc1, 0xf0, 0x03}},

    /* Results that are not defined, or by one of the manuals only */
    {"bsf of zero",               LEFT, {0x48, 0x0f, 0xbc, 0xc5}},
    {"bsr of zero",               LEFT, {0x0f, 0xbd, 0xc5}},
    {"tzcnt, or bsf",             LEFT, {0xf3, 0x0f, 0xbc, 0xc1}},
    {"lzcnt, or bsr",             LEFT, {0xf3, 0x0f, 0xbd, 0xc1}},
    {"shld 16 bits by 17",        LEFT, {0x66, 0x0f, 0xa4, 0xd9, 0x11}},
    {"shrd 16 bits by 31",        LEFT, {0x66, 0x0f, 0xac, 0xd9, 0x1f}},
    {"shld 16 bits by 16",        SAME, {0x66, 0x0f, 0xa4, 0xd9, 0x10}},
    {"rcl",                       LEFT, {0x48, 0xd1, 0xd0}},
    {"rcr",                       LEFT, {0x48, 0xd1, 0xd8}},
    {"bswap 16 bits",             LEFT, {0x66, 0x0f, 0xc8}},
    {"movsxd 16 bits",            LEFT, {0x66, 0x63, 0xc1}},
    {"0f b8 without f3",          LEFT, {0x0f, 0xb8, 0xc1}},

    /* Stores with a prefix that the opcode does not have */
    {"f3 movaps st",              LEFT, {0xf3, 0x0f, 0x29, 0x07}},
    {"f2 movaps st",              LEFT, {0xf2, 0x0f, 0x29, 0x07}},
    {"f3 movntdq",                LEFT, {0xf3, 0x0f, 0xe7, 0x07}},
    {"f2 movntdq",                LEFT, {0xf2, 0x0f, 0xe7, 0x07}},
    {"66 movnti",                 LEFT, {0x66, 0x0f, 0xc3, 0x07}},
    {"f3 movnti",                 LEFT, {0xf3, 0x0f, 0xc3, 0x07}},
    {"f2 movlps st",              LEFT, {0xf2, 0x0f, 0x13, 0x07}},
    {"movntq, mmx",               LEFT, {0x0f, 0xe7, 0x07}},

    /* Stores that not every processor has */
    {"movdiri",               MOVDIRI, {0x0f, 0x38, 0xf9, 0x07}},
    {"movdiri 64",            MOVDIRI, {0x48, 0x0f, 0x38, 0xf9, 0x07}},
    {"66 movdiri",               LEFT, {0x66, 0x0f, 0x38, 0xf9, 0x07}},
    {"movdir64b",           MOVDIR64B, {0x66, 0x0f, 0x38, 0xf8, 0x1f}},
    {"enqcmd",                   LEFT, {0xf2, 0x0f, 0x38, 0xf8, 0x1f}},
    {"enqcmds",                  LEFT, {0xf3, 0x0f, 0x38, 0xf8, 0x1f}},
    {"movntss",                 SSE4A, {0xf3, 0x0f, 0x2b, 0x07}},
    {"movntss, rex.r",          SSE4A, {0xf3, 0x44, 0x0f, 0x2b, 0x4f, 0x01}},
    {"movntsd",                 SSE4A, {0xf2, 0x0f, 0x2b, 0x07}},
    {"movntsd, unaligned",      SSE4A, {0xf2, 0x0f, 0x2b, 0x47, 0x03}},
    {"movntss, register",        LEFT, {0xf3, 0x0f, 0x2b, 0xc1}},
    {"vex movntss",              LEFT, {0xc5, 0xfa, 0x2b, 0x07}},
    {"maskmovdqu",               LEFT, {0x66, 0x0f, 0xf7, 0xc1}},
    {"vmaskmovdqu",              LEFT, {0xc5, 0xf9, 0xf7, 0xc1}},
    {"vmaskmovps",               LEFT, {0xc4, 0xe2, 0x75, 0x2e, 0x07}},
    {"vpmaskmovq",               LEFT, {0xc4, 0xe2, 0xf5, 0x8e, 0x07}},
    {"clzero",                   LEFT, {0x0f, 0x01, 0xfc}},

    /* Other spaces that only one vendor has or had */
    {"3dnow pmulhrw",            LEFT, {0x0f, 0x0f, 0xc1, 0xb7}},
    {"femms",                    LEFT, {0x0f, 0x0e}},
    {"extrq",                    LEFT, {0x66, 0x0f, 0x78, 0xc0, 0x00, 0x00}},
    {"insertq",                  LEFT, {0xf2, 0x0f, 0x79, 0xc1}},
    {"xop vpcmov",               LEFT, {0x8f, 0xe8, 0x78, 0xa2, 0xc1, 0x20}},
    {"fma4",                     LEFT, {0xc4, 0xe3, 0xf9, 0x69, 0xc2, 0x30}},
    {"apx rex2",                 LEFT, {0xd5, 0x00, 0x90}},
    {"apx evex.b4",              LEFT, {0x62, 0xf9, 0x7c, 0x48, 0x11, 0x07}},
};

bool has(owner_t owner)
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

    if (owner == SSE4A) {
        return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) &&
               (ecx & (1u << 6));
    }
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
           (ecx & (1u << ((owner == MOVDIRI) ? 27 : 28)));
}

class insn_vendor : public insn_test {
protected:
    void make_state(generator_t &gen, const bytes_t &code, state_t *s)
    {
        gen.random_state(s);
        s->gpr[0] = CODE_BASE + 64;
        s->gpr[1] = 3;
        s->gpr[3] = DATA_BASE + 2048; /* rbx */
        s->gpr[5] = 0;                /* rbp: a scan finds nothing */
        s->gpr[6] = DATA_BASE + 4096;
        s->gpr[7] = DATA_BASE + 1024;
        s->k[1]   = 0;
        s->k[2]   = 5;
        s->rip    = CODE_BASE + 1024;
        memset(m_sandbox.code(), 0xcc, CODE_SIZE);
        memcpy(reinterpret_cast<void*>(s->rip), code.data(), code.size());
    }

    /* Refused, and nothing changed */
    void expect_left(const case_t &c, const state_t &s)
    {
        mlx5sim_insn_run_t run;
        state_t got;
        int signo;

        reset_memory();
        memset(&run, 0, sizeof(run));
        run.window    = {DATA_BASE + 1024, DATA_BASE + 2048};
        run.vec_valid = 1;
        run.max_insns = 1;
        run.store_cb  = [](void *, uintptr_t, const void *, unsigned) {};
        m_shadow.set(s, 0xe6);
        EXPECT_EQ(MLX5SIM_INSN_UNKNOWN, interpret(&m_shadow, &run, &signo))
                << c.name;
        EXPECT_EQ(0, signo) << c.name;
        EXPECT_EQ(0u, run.num_stores + run.num_loads) << c.name;
        m_shadow.get(&got);
        m_want_data = m_want_low = m_master;
        EXPECT_EQ("", compare(s, got, 0)) << c.name;
    }
};

} // namespace

TEST_F(insn_vendor, what_differs_is_left_to_the_processor)
{
    generator_t gen(m_seed);

    for (const case_t &c : CASES) {
        bool is_ours = (c.owner == SAME) || ((c.owner != LEFT) && has(c.owner));
        coverage_t cover;
        state_t s;

        for (unsigned i = 0; i < 10; ++i) {
            make_state(gen, c.code, &s);
            if (!is_ours) {
                expect_left(c, s);
                continue;
            }
            ASSERT_EQ(c.code.size(),
                      mlx5sim_insn_length(c.code.data(), c.code.size()))
                    << c.name;
            bool repeated = (c.code[0] == 0xf2) &&
                            is_string(c.code.data(), c.code.size());
            EXPECT_EQ("", judge(s, 0xe6, repeated, false, &cover)) << c.name;
        }
        EXPECT_EQ(is_ours ? 10u : 0u, cover.executed) << c.name;
    }
}

/* Intel refuses such a branch, AMD the instruction it goes to */
TEST_F(insn_vendor, branches_out_of_the_address_space_are_left_to_the_processor)
{
    static const bytes_t BRANCHES[] = {{0xe9, 0x00, 0x30, 0x00, 0x00},
                                       {0x0f, 0x85, 0x00, 0x30, 0x00, 0x00},
                                       {0xe8, 0x00, 0x30, 0x00, 0x00},
                                       {0xff, 0xe0},
                                       {0xff, 0xd0},
                                       {0xff, 0x26},
                                       {0xc3}};
    uint64_t top  = (1ul << 47) - 0x2000; /* Linux leaves the last page free */
    uint64_t wild = 1ul << 47;
    void *page    = mmap(reinterpret_cast<void*>(top), 4096,
                         PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                         0);
    state_t s, native;

    if (page == MAP_FAILED) {
        GTEST_SKIP() << "the last page is taken";
    }
    for (const bytes_t &code : BRANCHES) {
        generator_t gen(m_seed);

        make_state(gen, code, &s);
        memcpy(page, code.data(), code.size());
        std::fill(m_master.begin(), m_master.end(), 0);
        memcpy(&m_master[s.gpr[6] - DATA_BASE], &wild, sizeof(wild));
        memcpy(&m_master[s.gpr[4] - DATA_BASE], &wild, sizeof(wild));
        s.gpr[0]  = wild;
        s.rip     = top;
        s.rflags &= ~0x40ul; /* ZF: jne is taken */
        expect_left({"branch", LEFT, code}, s);
        reset_memory();
        EXPECT_EQ(SIGSEGV, step(&s, &native, false));
        EXPECT_TRUE((native.rip == s.rip) || (native.rip >= wild));
    }
    munmap(page, 4096);
}

/* A move whose mask has no bit set touches no memory: no fault, whatever the
 * address; and elements that are not in the mask do not fault either. */
TEST_F(insn_vendor, masked_moves_at_the_end_of_memory_agree)
{
    static const bytes_t MOVES[] = {
        {0x62, 0xf1, 0x7c, 0x49, 0x11, 0x07}, /* vmovups [rdi]{k1}, zmm0 */
        {0x62, 0xf1, 0x7c, 0x4a, 0x11, 0x07},
        {0x62, 0xf1, 0x7c, 0x29, 0x11, 0x07}, /* ymm0 */
        {0x62, 0xf1, 0x7c, 0x0a, 0x11, 0x07}, /* xmm0 */
        {0x62, 0xf1, 0x7c, 0x49, 0x29, 0x07}, /* vmovaps: aligned */
        {0x62, 0xf1, 0x7c, 0x4a, 0x29, 0x07},
        {0x62, 0xf1, 0x7c, 0x49, 0x28, 0x07}, /* load */
        {0x62, 0xf1, 0x7c, 0xca, 0x10, 0x07}, /* ... clearing the others */
        {0x62, 0xf1, 0x7f, 0x4a, 0x7f, 0x07}, /* vmovdqu8 */
        {0x62, 0xf1, 0x7f, 0xca, 0x6f, 0x07},
    };
    generator_t gen(m_seed);
    coverage_t cover;

    if (level() < LEVEL_AVX512) {
        GTEST_SKIP() << "no opmasks on this processor";
    }
    for (const bytes_t &code : MOVES) {
        for (unsigned back = 0; back < 80; ++back) {
            state_t s;

            make_state(gen, code, &s);
            s.gpr[7] = DATA_BASE + DATA_SIZE - back;
            EXPECT_EQ("", judge(s, 0xe6, false, true, &cover))
                    << dump(code.data(), code.size()) << back;
        }
    }
    EXPECT_GE(cover.executed, 200u);
}

/* Valid instructions with prefixes in front that they may not be made for */
TEST_F(insn_fuzz, prefixes_in_front_of_anything_agree_with_the_processor)
{
    static const uint8_t PREFIXES[] = {0x66, 0x67, 0xf2, 0xf3, 0x26, 0x2e,
                                       0x36, 0x3e, 0x40, 0x41, 0x44, 0x48};
    unsigned wanted = seed::cases(150) * 200, failures = 0, accepted = 0;
    generator_t gen(m_seed + 7);
    coverage_t cover;

    for (unsigned i = 0; i < wanted; ++i) {
        const template_t &t = TEMPLATES[gen.rnd(NUM_TEMPLATES)];
        bool repeated       = false;
        bytes_t code;
        state_t s;

        gen.random_state(&s);
        uint64_t used = drop_components(gen, &s);
        if (!gen.encode(t, &s, &code, &repeated)) {
            continue;
        }
        for (unsigned n = gen.rnd(3) + 1; n > 0; --n) {
            code.insert(code.begin() + gen.rnd(2) * (code[0] >= 0x40),
                        PREFIXES[gen.rnd(sizeof(PREFIXES))]);
        }
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
            ADD_FAILURE() << t.name << ": " << dump(code.data(), length)
                          << text;
        }
    }
    EXPECT_EQ(0u, failures);
    EXPECT_GT(accepted, wanted / 4);
    EXPECT_GT(cover.executed, wanted / 10);
}
