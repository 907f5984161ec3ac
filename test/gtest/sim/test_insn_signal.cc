/* SPDX-License-Identifier: BSD-3-Clause */

/* The interpreter behind a real signal handler: a page mapped beyond the end of
 * its file, as the device's UAR pages are, and code as compilers and glibc
 * really produce it. */

#include <sim/test_insn_native.h>

#include <immintrin.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

using insn_native::under_valgrind;

namespace {

constexpr size_t PAGE = 4096;
constexpr size_t BF   = 0x800; /* first BlueFlame register of a UAR page */

/* What the handler saw. Plain memory of fixed size: it is a signal handler. */
struct device_t {
    uint8_t                 *page;
    uint8_t                  shadow[PAGE];  /* bytes as the device got them */
    uint8_t                  written[PAGE]; /* how often each byte was stored */
    unsigned                 lengths[256];
    unsigned                 traps;
    unsigned                 stores;
    unsigned                 loads;
    const uint8_t            *shown;     /* what loads find in the page */
    unsigned                 unknown_data;
    unsigned                 budget; /* stop after so many bytes; 0: never */
    unsigned                 bytes;
    int                      stop_with;
    int                      failed; /* 1: not understood, 2: foreign address */
    mlx5sim_insn_run_t       run;
    mlx5sim_insn_run_t       limits; /* template for each run */
};

device_t *g_device;

void on_store(void *arg, uintptr_t addr, const void *data, unsigned length)
{
    device_t *dev   = static_cast<device_t*>(arg);
    uintptr_t start = addr - reinterpret_cast<uintptr_t>(dev->page);

    if ((start >= PAGE) || (length > (PAGE - start))) {
        dev->failed = 2;
        return;
    }
    if (dev->stores < 256) {
        dev->lengths[dev->stores] = length;
    }
    ++dev->stores;
    if (data == nullptr) {
        ++dev->unknown_data;
    } else {
        memcpy(dev->shadow + start, data, length);
    }
    for (unsigned i = 0; i < length; ++i) {
        ++dev->written[start + i];
    }
    dev->bytes += length;
    if ((dev->budget != 0) && (dev->bytes >= dev->budget)) {
        dev->run.stop = dev->stop_with;
    }
}

void on_load(void *arg, uintptr_t addr, void *data, unsigned length)
{
    device_t *dev = static_cast<device_t*>(arg);

    ++dev->loads;
    if (dev->shown != nullptr) {
        memcpy(data, dev->shown + (addr % PAGE), length);
    }
}

void on_signal(int signo, siginfo_t *info, void *context)
{
    device_t *dev  = g_device;
    uintptr_t addr = reinterpret_cast<uintptr_t>(info->si_addr);
    uintptr_t page = reinterpret_cast<uintptr_t>(dev->page);

    ++dev->traps;
    dev->run           = dev->limits;
    dev->run.window.lo = page;
    dev->run.window.hi = page + PAGE;
    dev->run.store_cb  = on_store;
    dev->run.load_cb   = on_load;
    dev->run.arg       = dev;
    if ((addr < page) || (addr >= page + PAGE) ||
        (mlx5sim_insn_run(static_cast<ucontext_t*>(context), &dev->run) !=
         MLX5SIM_INSN_OK)) {
        dev->failed = 1;
        signal(signo, SIG_DFL);
    }
}

class insn_signal : public testing::Test {
protected:
    void SetUp() override
    {
        int fd = memfd_create("uar", 0);

        ASSERT_GE(fd, 0);
        memset(&m_device, 0, sizeof(m_device));
        m_device.page = static_cast<uint8_t*>(mmap(nullptr, PAGE,
                                                   PROT_READ | PROT_WRITE,
                                                   MAP_SHARED, fd, 0));
        close(fd);
        ASSERT_NE(static_cast<void*>(m_device.page), MAP_FAILED);
        m_device.limits.vec_valid = !under_valgrind();
        m_device.stop_with        = MLX5SIM_INSN_STOP_NOW;
        g_device                  = &m_device;

        struct sigaction sa;
        memset(&sa, 0, sizeof(sa));
        sa.sa_sigaction = on_signal;
        sa.sa_flags     = SA_SIGINFO;
        sigfillset(&sa.sa_mask);
        ASSERT_EQ(0, sigaction(SIGBUS, &sa, &m_old));

        for (size_t i = 0; i < sizeof(m_wqe); ++i) {
            m_wqe[i] = static_cast<uint8_t>(29 + (167 * i)); /* all differ */
        }
    }

    void TearDown() override
    {
        sigaction(SIGBUS, &m_old, nullptr);
        munmap(m_device.page, PAGE);
    }

    uint8_t *bf(size_t offset = 0)
    {
        return m_device.page + BF + offset;
    }

    /* Under valgrind, the values of vector registers are not known */
    void expect_data(const void *data, const void *shadow, size_t length)
    {
        EXPECT_TRUE(under_valgrind() || (m_device.unknown_data == 0));
        if (m_device.unknown_data == 0) {
            EXPECT_EQ(0, memcmp(data, shadow, length));
        }
    }

    /* ... and function calls end a run, so that there are more traps */
    void expect_traps(unsigned num)
    {
        if (under_valgrind()) {
            EXPECT_GE(m_device.traps, num);
        } else {
            EXPECT_EQ(num, m_device.traps);
        }
    }

    /* Exactly these bytes arrived, and nothing else did */
    void expect_covered(const void *data, size_t length, size_t offset = 0)
    {
        EXPECT_EQ(0, m_device.failed);
        expect_data(data, m_device.shadow + BF + offset, length);
        for (size_t i = 0; i < PAGE; ++i) {
            bool inside = (i >= BF + offset) && (i < BF + offset + length);
            ASSERT_EQ(inside, m_device.written[i] != 0) << "byte " << i;
        }
    }

    /* ... and once each */
    void expect_exactly(const void *data, size_t length, size_t offset = 0)
    {
        EXPECT_EQ(0, m_device.failed);
        expect_data(data, m_device.shadow + BF + offset, length);
        for (size_t i = 0; i < PAGE; ++i) {
            bool inside = (i >= BF + offset) && (i < BF + offset + length);
            ASSERT_EQ(inside ? 1 : 0, m_device.written[i]) << "byte " << i;
        }
    }

    alignas(64) uint8_t m_wqe[256];
    device_t            m_device;
    struct sigaction    m_old;
};

} // namespace

extern "C" {
/* Never inlined, so that each is compiled for its own instruction set; without
 * a sanitizer's checks between the stores. */
#define BF_FUNC \
    __attribute__((noinline, used, optimize("O2"), \
                   no_sanitize("address", "undefined")))

BF_FUNC static void bf_copy_loop(volatile uint64_t *dst, const uint64_t *src)
{
    for (unsigned i = 0; i < 8; ++i) {
        dst[i] = src[i];
    }
}

/* As libmlx5 does without optimisation: counters live in memory */
BF_FUNC __attribute__((optimize("O0"))) static void
bf_copy_loop_o0(uint64_t *dst, const uint64_t *src, int bytes)
{
    while (bytes > 0) {
        *dst++ = *src++;
        bytes -= 8;
    }
}

BF_FUNC static void bf_copy_swapped(volatile uint64_t *dst, const uint64_t *src)
{
    for (unsigned i = 0; i < 8; ++i) {
        dst[i] = __builtin_bswap64(src[i]);
    }
}

BF_FUNC __attribute__((target("movbe"))) static void
bf_copy_movbe(volatile uint64_t *dst, const uint64_t *src)
{
    for (unsigned i = 0; i < 8; ++i) {
        dst[i] = __builtin_bswap64(src[i]);
    }
}

BF_FUNC static void bf_copy_inline_sse(void *dst, const void *src)
{
    __builtin_memcpy(dst, src, 64);
    __asm__ volatile("sfence" ::: "memory");
}

BF_FUNC __attribute__((target("avx2"))) static void
bf_copy_inline_avx2(void *dst, const void *src)
{
    __builtin_memcpy(dst, src, 64);
    __asm__ volatile("" ::: "memory");
}

BF_FUNC __attribute__((target("avx512f,prefer-vector-width=512"))) static void
bf_copy_inline_avx512(void *dst, const void *src)
{
    __builtin_memcpy(dst, src, 64);
    __asm__ volatile("" ::: "memory");
}

BF_FUNC static void bf_copy_movnti(long long *dst, const long long *src)
{
    for (unsigned i = 0; i < 8; ++i) {
        _mm_stream_si64(dst + i, src[i]);
    }
    _mm_sfence();
}

BF_FUNC static void bf_copy_stream_sse(void *dst, const void *src)
{
    for (unsigned i = 0; i < 4; ++i) {
        _mm_stream_si128(static_cast<__m128i*>(dst) + i,
                         _mm_load_si128(static_cast<const __m128i*>(src) + i));
    }
    _mm_sfence();
}

BF_FUNC __attribute__((target("avx512f"))) static void
bf_copy_stream_avx512(void *dst, const void *src)
{
    _mm512_stream_si512(static_cast<__m512i*>(dst), _mm512_loadu_si512(src));
}

BF_FUNC __attribute__((target("avx512f"))) static void
bf_copy_high_zmm(void *dst, const void *src)
{
    __asm__ volatile("vmovdqu64 %1, %%zmm29\n\t"
                     "vmovdqu64 %%zmm29, %0"
                     : "=m"(*static_cast<char(*)[64]>(dst))
                     : "m"(*static_cast<const char(*)[64]>(src))
                     : "xmm29");
}

BF_FUNC static void bf_copy_rep_movsb(void *dst, const void *src, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n)::"memory");
}

BF_FUNC static void bf_copy_rep_movsq(void *dst, const void *src, size_t n)
{
    __asm__ volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(n)::"memory");
}

BF_FUNC static void bf_rep_stosq(void *dst, uint64_t value, size_t n)
{
    __asm__ volatile("rep stosq" : "+D"(dst), "+c"(n) : "a"(value) : "memory");
}
}

static void *(*volatile glibc_memcpy)(void *, const void *, size_t) = memcpy;
static void *(*volatile glibc_memset)(void *, int, size_t)          = memset;

TEST_F(insn_signal, one_doorbell_is_one_trap_and_eight_bytes)
{
    uint64_t value = 0x1122334455667788ul;

    *reinterpret_cast<volatile uint64_t*>(bf()) = value;
    expect_exactly(&value, 8);
    expect_traps(1);
    EXPECT_EQ(1u, m_device.stores);
    EXPECT_EQ(8u, m_device.lengths[0]);
}

TEST_F(insn_signal, cq_arm_stores_of_four_bytes_arrive_separately)
{
    volatile uint32_t *reg = reinterpret_cast<volatile uint32_t*>(bf());
    uint32_t value[2]      = {0xa0b0c0d0, 0x01020304};

    reg[0] = value[0];
    reg[1] = value[1];
    expect_exactly(value, 8);
    expect_traps(1);
    EXPECT_EQ(2u, m_device.stores);
}

TEST_F(insn_signal, narrow_and_immediate_stores)
{
    volatile uint8_t *reg = bf();

    reg[0]                                         = m_wqe[0];
    *reinterpret_cast<volatile uint16_t*>(reg + 2) = 0x4321;
    EXPECT_EQ(0, m_device.failed);
    EXPECT_EQ(m_wqe[0], m_device.shadow[BF]);
    EXPECT_EQ(0, m_device.written[BF + 1]);
    EXPECT_EQ(0x21, m_device.shadow[BF + 2]);
    EXPECT_EQ(0x43, m_device.shadow[BF + 3]);
}

/* A WQEBB, copied in all the ways there are: one trap */
struct copy_row {
    const char *name;
    bool       (*is_there)(); /* NULL: everywhere */
    void       (*copy)(void *dst, void *src);
    unsigned   stores;        /* 0: any number; the bytes once each */
    bool       is_swapped;    /* each quadword */
};

void PrintTo(const copy_row &row, std::ostream *os)
{
    *os << row.name;
}

#define HAS(feature) [] { return __builtin_cpu_supports(feature) != 0; }
#define COPY(call)   [](void *dst, void *src) { call; }
#define OF(type, p)  static_cast<type*>(p)

const unsigned OVERLAPPING = -1; /* any number, and bytes more than once */

const copy_row COPIES[] = {
    {"loop_of_eight_byte_stores", NULL,
     COPY(bf_copy_loop(OF(uint64_t, dst), OF(uint64_t, src))), 0, false},
    {"unoptimised_loop", NULL,
     COPY(bf_copy_loop_o0(OF(uint64_t, dst), OF(uint64_t, src), 64)), 0, false},
    {"byte_swapped", NULL,
     COPY(bf_copy_swapped(OF(uint64_t, dst), OF(uint64_t, src))), 0, true},
    {"movbe", HAS("movbe"),
     COPY(bf_copy_movbe(OF(uint64_t, dst), OF(uint64_t, src))), 0, true},
    {"inlined_sse", NULL, COPY(bf_copy_inline_sse(dst, src)), OVERLAPPING,
     false},
    {"inlined_avx2", HAS("avx2"), COPY(bf_copy_inline_avx2(dst, src)),
     OVERLAPPING, false},
    {"inlined_avx512", HAS("avx512f"), COPY(bf_copy_inline_avx512(dst, src)),
     1, false},
    {"high_zmm_register", HAS("avx512f"), COPY(bf_copy_high_zmm(dst, src)), 0,
     false},
    {"streaming_stores", NULL,
     COPY(bf_copy_movnti(OF(long long, dst), OF(long long, src))), 8, false},
    {"streaming_vector_stores", NULL, COPY(bf_copy_stream_sse(dst, src)), 4,
     false},
    {"streaming_zmm_store", HAS("avx512f"),
     COPY(bf_copy_stream_avx512(dst, src)), 1, false},
    {"rep_movsb", NULL, COPY(bf_copy_rep_movsb(dst, src, 64)), 1, false},
};

class insn_signal_copy : public insn_signal,
                         public testing::WithParamInterface<copy_row> {};

TEST_P(insn_signal_copy, traps_once)
{
    const copy_row &row = GetParam();
    uint64_t expected[8];

    if ((row.is_there != NULL) && !row.is_there()) {
        GTEST_SKIP() << "not on this processor";
    }
    memcpy(expected, m_wqe, sizeof(expected));
    for (uint64_t &word : expected) {
        word = row.is_swapped ? __builtin_bswap64(word) : word;
    }
    row.copy(bf(), m_wqe);
    expect_traps(1);
    if (row.stores == OVERLAPPING) {
        expect_covered(expected, 64);
        return;
    }
    expect_exactly(expected, 64);
    if (row.stores != 0) {
        EXPECT_EQ(row.stores, m_device.stores);
    }
}

INSTANTIATE_TEST_SUITE_P(insn_signal, insn_signal_copy,
                         testing::ValuesIn(COPIES), [](const auto &info) {
                             return std::string(info.param.name);
                         });

TEST_F(insn_signal, glibc_memcpy_of_a_wqebb_traps_once)
{
    void *result = glibc_memcpy(bf(), m_wqe, 64);

    EXPECT_EQ(bf(), result);
    /* With 512-bit registers glibc stores the same 64 bytes twice, once from
     * each end; a device merges them in its WC buffer. */
    expect_covered(m_wqe, 64);
    expect_traps(1);
}

TEST_F(insn_signal, glibc_memcpy_of_every_size_has_no_byte_wrong)
{
    for (size_t n = 1; n <= 256; ++n) {
        memset(m_device.shadow, 0, PAGE);
        memset(m_device.written, 0, PAGE);
        m_device.traps = m_device.stores = 0;
        glibc_memcpy(bf(), m_wqe, n);
        ASSERT_EQ(0, m_device.failed);
        expect_data(m_wqe, m_device.shadow + BF, n);
        /* Overlapping stores are glibc's way for odd sizes; none outside */
        for (size_t i = 0; i < PAGE; ++i) {
            ASSERT_EQ((i >= BF) && (i < BF + n), m_device.written[i] != 0)
                    << "size " << n << " byte " << i;
        }
        expect_traps(1);
        ASSERT_FALSE(HasFailure()) << n;
    }
}

TEST_F(insn_signal, glibc_memset_of_a_wqebb_traps_once)
{
    uint8_t expected[64];

    memset(expected, 0x5a, sizeof(expected));
    glibc_memset(bf(), 0x5a, 64);
    expect_covered(expected, 64);
    expect_traps(1);
}

TEST_F(insn_signal, glibc_memset_of_every_size_has_no_byte_wrong)
{
    uint8_t expected[256];

    memset(expected, 0x5a, sizeof(expected));
    for (size_t n = 1; n <= sizeof(expected); ++n) {
        memset(m_device.shadow, 0, PAGE);
        memset(m_device.written, 0, PAGE);
        m_device.traps = 0;
        glibc_memset(bf(), 0x5a, n);
        expect_covered(expected, n);
        expect_traps(1);
        ASSERT_FALSE(HasFailure()) << n;
    }
}

TEST_F(insn_signal, rep_movs_off_a_boundary_is_reported_in_lines)
{
    bf_copy_rep_movsb(bf(8), m_wqe, 200);
    expect_exactly(m_wqe, 200, 8);
    expect_traps(1);
    ASSERT_EQ(4u, m_device.stores);
    EXPECT_EQ(56u, m_device.lengths[0]);
    EXPECT_EQ(64u, m_device.lengths[1]);
    EXPECT_EQ(16u, m_device.lengths[3]);
}

TEST_F(insn_signal, rep_movsq_and_rep_stosq)
{
    uint64_t expected[8];

    bf_copy_rep_movsq(bf(), m_wqe, 8);
    expect_exactly(m_wqe, 64);
    expect_traps(1);

    memset(m_device.written, 0, PAGE);
    std::fill(expected, expected + 8, 0x0807060504030201ul);
    bf_rep_stosq(bf(), expected[0], 8);
    expect_exactly(expected, 64);
    expect_traps(2);
}

TEST_F(insn_signal, rep_stos_beyond_the_window_leaves_the_rest_to_hardware)
{
    /* Two pages: the device's, then an ordinary one */
    uint8_t *two = static_cast<uint8_t*>(mmap(nullptr, 2 * PAGE, PROT_NONE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                              0));
    uint8_t *was = m_device.page;
    ASSERT_NE(static_cast<void*>(two), MAP_FAILED);
    m_device.page = static_cast<uint8_t*>(mremap(was, PAGE, PAGE,
                                                 MREMAP_MAYMOVE | MREMAP_FIXED,
                                                 two));
    ASSERT_EQ(two, m_device.page);
    ASSERT_EQ(0, mprotect(two + PAGE, PAGE, PROT_READ | PROT_WRITE));

    bf_rep_stosq(two + PAGE - 16, 0x1111111111111111ul, 5);
    EXPECT_EQ(0, m_device.failed);
    expect_traps(1);
    for (unsigned i = 0; i < 16; ++i) {
        EXPECT_EQ(0x11, m_device.shadow[PAGE - 16 + i]);
    }
    for (unsigned i = 0; i < 32; ++i) {
        EXPECT_EQ((i < 24) ? 0x11 : 0, two[PAGE + i]);
    }

    /* A single store across the edge is split */
    uint64_t value = 0x8877665544332211ul;
    struct __attribute__((packed)) unaligned_t {
        volatile uint64_t value;
    };
    reinterpret_cast<unaligned_t*>(two + PAGE - 3)->value = value;
    EXPECT_EQ(0, m_device.failed);
    EXPECT_EQ(0, memcmp(&value, m_device.shadow + PAGE - 3, 3));
    EXPECT_EQ(0, memcmp(reinterpret_cast<char*>(&value) + 3, two + PAGE, 5));
    munmap(two + PAGE, PAGE);
}

TEST_F(insn_signal, callback_can_stop_after_a_complete_wqebb)
{
    m_device.budget = 64;
    bf_copy_loop(reinterpret_cast<volatile uint64_t*>(bf()),
                 reinterpret_cast<uint64_t*>(m_wqe));
    expect_exactly(m_wqe, 64);
    expect_traps(1);
    EXPECT_EQ(MLX5SIM_INSN_END_STOP, m_device.run.end);
}

/* Complete after the first of glibc's stores, whatever their width */
TEST_F(insn_signal, stopping_softly_swallows_overlapping_stores)
{
    m_device.budget    = 64;
    m_device.stop_with = MLX5SIM_INSN_STOP_SOON;
    glibc_memcpy(bf(), m_wqe, 64);
    expect_covered(m_wqe, 64);
    expect_traps(1);
    EXPECT_EQ(MLX5SIM_INSN_END_STOP, m_device.run.end);
}

TEST_F(insn_signal, stopping_in_mid_copy_only_costs_another_trap)
{
    m_device.budget = 1; /* every store ends the run */
    bf_copy_loop(reinterpret_cast<volatile uint64_t*>(bf()),
                 reinterpret_cast<uint64_t*>(m_wqe));
    expect_exactly(m_wqe, 64);
    EXPECT_EQ(m_device.stores, m_device.traps);
}

TEST_F(insn_signal, stopping_in_mid_string_resumes_at_the_next_element)
{
    m_device.budget = 1;
    bf_copy_rep_movsb(bf(), m_wqe, 256);
    expect_exactly(m_wqe, 256);
    expect_traps(4);
}

TEST_F(insn_signal, limits_end_the_run)
{
    m_device.limits.max_insns = 1;
    bf_copy_movnti(reinterpret_cast<long long*>(bf()),
                   reinterpret_cast<long long*>(m_wqe));
    expect_exactly(m_wqe, 64);
    expect_traps(8);
    EXPECT_EQ(MLX5SIM_INSN_END_LIMIT, m_device.run.end);
}

TEST_F(insn_signal, gap_ends_the_run)
{
    volatile uint64_t sink = 0;

    m_device.limits.max_gap   = 10;
    *reinterpret_cast<volatile uint64_t*>(bf()) = 1;
    for (unsigned i = 0; i < 100; ++i) {
        sink = sink + i;
    }
    EXPECT_EQ(4950u, sink);
    expect_traps(1);
    EXPECT_EQ(MLX5SIM_INSN_END_GAP, m_device.run.end);
    EXPECT_EQ(11u, m_device.run.num_insns);
}

TEST_F(insn_signal, reading_the_device_gives_zeros_and_is_reported)
{
    volatile uint64_t *reg = reinterpret_cast<volatile uint64_t*>(bf());
    uint8_t got[64];

    EXPECT_EQ(0u, *reg);
    EXPECT_EQ(1u, m_device.loads);
    memset(got, 0xff, sizeof(got));
    glibc_memcpy(got, bf(), sizeof(got));
    for (unsigned i = 0; i < sizeof(got); ++i) {
        EXPECT_EQ(0, got[i]);
    }
    EXPECT_GE(m_device.loads, 2u);
    EXPECT_EQ(0u, m_device.stores);
    EXPECT_EQ(0, m_device.failed);
}

TEST_F(insn_signal, reading_the_device_gives_what_it_shows)
{
    volatile uint64_t *reg = reinterpret_cast<volatile uint64_t*>(bf(2));
    alignas(64) static uint8_t shown[PAGE];
    uint8_t got[64];

    memcpy(shown + BF, m_wqe, sizeof(m_wqe));
    m_device.shown = shown;
    uint64_t word = *reg;
    EXPECT_EQ(0, memcmp(&word, m_wqe + 2, sizeof(word)));
    EXPECT_EQ(m_wqe[3], *(bf(3)));
    if (!under_valgrind()) {
        glibc_memcpy(got, bf(), sizeof(got));
        EXPECT_EQ(0, memcmp(got, m_wqe, sizeof(got)));
    }
    EXPECT_EQ(0u, m_device.stores);
    EXPECT_EQ(0, m_device.failed);
}

TEST_F(insn_signal, without_vector_registers_a_store_has_a_length_but_no_data)
{
    m_device.limits.vec_valid = 0;
    bf_copy_inline_sse(bf(), m_wqe);
    EXPECT_EQ(0, m_device.failed);
    EXPECT_EQ(m_device.stores, m_device.unknown_data);
    for (size_t i = 0; i < 64; ++i) {
        EXPECT_NE(0, m_device.written[BF + i]);
    }
}

#define BF_UNKNOWN "lock addl $0, (%%rsp)\n\t" /* ends a run */

TEST_F(insn_signal, registers_loaded_in_the_handler_survive_the_return)
{
    alignas(64) uint8_t low[32], high[64];

    if (!__builtin_cpu_supports("avx512f") || under_valgrind()) {
        GTEST_SKIP() << "no avx512f here";
    }
    /* With ymm and zmm in their initial state, the frame has no value of them
     * until the interpreter puts one there */
    __asm__ volatile("vzeroall\n\t"
                     "movq $1, (%0)\n\t"
                     "vmovdqu (%1), %%ymm5\n\t"
                     "vmovdqu64 (%1), %%zmm20\n\t"
                     BF_UNKNOWN
                     "vmovdqu %%ymm5, (%2)\n\t"
                     "vmovdqu64 %%zmm20, (%3)\n\t"
                     "vzeroupper"
                     ::"r"(bf()), "r"(m_wqe), "r"(low), "r"(high)
                     : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    EXPECT_EQ(3u, m_device.run.num_insns);
    EXPECT_EQ(0, memcmp(low, m_wqe, sizeof(low)));
    EXPECT_EQ(0, memcmp(high, m_wqe, sizeof(high)));
}

TEST_F(insn_signal, vzeroupper_in_the_handler_clears_the_upper_halves)
{
    alignas(64) uint8_t got[64];

    if (!__builtin_cpu_supports("avx512f") || under_valgrind()) {
        GTEST_SKIP() << "no avx512f here";
    }
    __asm__ volatile("vmovdqu64 (%1), %%zmm5\n\t"
                     "movq $1, (%0)\n\t"
                     "vzeroupper\n\t"
                     BF_UNKNOWN
                     "vmovdqu64 %%zmm5, (%2)\n\t"
                     "vzeroupper"
                     ::"r"(bf()), "r"(m_wqe), "r"(got)
                     : "memory", "cc", "xmm5");
    EXPECT_EQ(2u, m_device.run.num_insns);
    EXPECT_EQ(0, memcmp(got, m_wqe, 16));
    for (unsigned i = 16; i < 64; ++i) {
        EXPECT_EQ(0, got[i]) << i;
    }
}

/* Opmasks lie elsewhere in the frame on each vendor's processors */
TEST_F(insn_signal, opmasks_are_found_in_the_frame_and_survive_the_return)
{
    uint64_t mask = 0x8000ffff00f0a50ful, other = 0x123456789abcdef0ul, got;

    if (!__builtin_cpu_supports("avx512bw") || under_valgrind()) {
        GTEST_SKIP() << "no avx512bw here";
    }
    __asm__ volatile("kmovq %3, %%k3\n\t"
                     "vmovdqu64 (%2), %%zmm7\n\t"
                     "vmovdqu8 %%zmm7, (%1)%{%%k3%}\n\t"
                     "kmovq %4, %%k6\n\t"
                     BF_UNKNOWN
                     "kmovq %%k6, %0\n\t"
                     "vzeroupper"
                     : "=r"(got)
                     : "r"(bf()), "r"(m_wqe), "r"(mask), "r"(other)
                     : "memory", "cc", "xmm7");
    EXPECT_EQ(0, m_device.failed);
    EXPECT_EQ(2u, m_device.run.num_insns);
    EXPECT_EQ(other, got);
    for (unsigned i = 0; i < 64; ++i) {
        bool is_set = (mask >> i) & 1;
        EXPECT_EQ(is_set ? 1 : 0, m_device.written[BF + i]) << i;
        EXPECT_EQ(is_set ? m_wqe[i] : 0, m_device.shadow[BF + i]) << i;
    }
}

/* The processor reports an address inside the device's page, although the
 * instruction's own is in front of it */
TEST_F(insn_signal, stores_that_begin_before_the_page_are_found)
{
    uint8_t *two = static_cast<uint8_t*>(mmap(nullptr, 2 * PAGE,
                                              PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                              0));
    ASSERT_NE(static_cast<void*>(two), MAP_FAILED);
    m_device.page = static_cast<uint8_t*>(mremap(m_device.page, PAGE, PAGE,
                                                 MREMAP_MAYMOVE | MREMAP_FIXED,
                                                 two + PAGE));
    ASSERT_EQ(two + PAGE, m_device.page);

    __asm__ volatile("movups (%1), %%xmm3\n\t"
                     "movups %%xmm3, (%0)"
                     ::"r"(m_device.page - 5), "r"(m_wqe)
                     : "memory", "xmm3");
    EXPECT_EQ(0, m_device.failed);
    expect_traps(1);
    EXPECT_EQ(0, memcmp(m_wqe, m_device.page - 5, 5));
    expect_data(m_wqe + 5, m_device.shadow, 11);

    if (__builtin_cpu_supports("avx512bw") && !under_valgrind()) {
        uint64_t mask = 0xff00000000ul; /* only bytes on the page */

        m_device.traps = 0;
        memset(m_device.written, 0, PAGE);
        __asm__ volatile("kmovq %2, %%k3\n\t"
                         "vmovdqu64 (%1), %%zmm7\n\t"
                         "vmovdqu8 %%zmm7, (%0)%{%%k3%}\n\t"
                         "vzeroupper"
                         ::"r"(m_device.page - 32), "r"(m_wqe), "r"(mask)
                         : "memory", "xmm7");
        EXPECT_EQ(0, m_device.failed);
        expect_traps(1);
        expect_data(m_wqe + 32, m_device.shadow, 8);
        EXPECT_EQ(0, m_device.written[8]);
    }
    munmap(two, PAGE);
}

/* Contexts as older kernels and processors make them */
TEST_F(insn_signal, contexts_with_little_or_no_vector_state)
{
    static const uint8_t movups[] = {0x0f, 0x11, 0x07};       /* [rdi], xmm0 */
    static const uint8_t vmovups[] = {0xc5, 0xfc, 0x11, 0x07}; /* ymm0 */
    alignas(64) uint8_t frame[512];
    ucontext_t uc;

    memset(&uc, 0, sizeof(uc));
    memset(frame, 0, sizeof(frame)); /* no FP_XSTATE_MAGIC1 in it */
    memcpy(frame + 160, m_wqe, 16);
    uc.uc_stack.ss_flags           = SS_DISABLE;
    uc.uc_mcontext.gregs[REG_RDI]  = reinterpret_cast<greg_t>(bf());
    uc.uc_mcontext.gregs[REG_RSP]  = reinterpret_cast<greg_t>(frame);
    m_device.run                   = m_device.limits;
    m_device.run.vec_valid         = 1;
    m_device.run.max_insns         = 1;
    m_device.run.window.lo         = reinterpret_cast<uintptr_t>(m_device.page);
    m_device.run.window.hi         = m_device.run.window.lo + PAGE;
    m_device.run.store_cb          = on_store;
    m_device.run.arg               = &m_device;

    uc.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(movups);
    EXPECT_EQ(MLX5SIM_INSN_UNKNOWN, mlx5sim_insn_run(&uc, &m_device.run));
    EXPECT_EQ(0u, m_device.stores);

    uc.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(frame);
    EXPECT_EQ(MLX5SIM_INSN_OK, mlx5sim_insn_run(&uc, &m_device.run));
    EXPECT_EQ(reinterpret_cast<greg_t>(movups) + 3,
              uc.uc_mcontext.gregs[REG_RIP]);
    expect_exactly(m_wqe, 16);

    uc.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(vmovups);
    EXPECT_EQ(MLX5SIM_INSN_UNKNOWN, mlx5sim_insn_run(&uc, &m_device.run));
    EXPECT_EQ(1u, m_device.stores);
}

/* The handler's own frame lies right below the interrupted stack's red zone:
 * what the interrupted code stores there natively must not be done from within
 * the handler. */
extern "C" BF_FUNC uint64_t bf_then_deep_stack(volatile uint64_t *reg)
{
    uint64_t sum = 0;

    __asm__ volatile("mov %%rsp, %%r12\n\t"
                     "movq $7, (%1)\n\t"
                     "push $1\n\t"
                     "sub $256, %%rsp\n\t"
                     "mov $4096, %%ecx\n\t"
                     "1: movq $-1, (%%rsp)\n\t"
                     "sub $8, %%rsp\n\t"
                     "sub $8, %%rcx\n\t"
                     "jnz 1b\n\t"
                     "mov $512, %%ecx\n\t"
                     "2: add $8, %%rsp\n\t"
                     "add (%%rsp), %0\n\t"
                     "dec %%rcx\n\t"
                     "jnz 2b\n\t"
                     "mov %%r12, %%rsp"
                     : "+r"(sum)
                     : "r"(reg)
                     : "rcx", "r12", "memory", "cc");
    return sum;
}

TEST_F(insn_signal, deep_stack_use_after_a_store_does_not_hit_the_handler)
{
    volatile uint64_t *reg = reinterpret_cast<volatile uint64_t*>(bf());

    m_device.limits.max_insns = 100000;
    m_device.limits.max_gap   = 100000;
    EXPECT_EQ(static_cast<uint64_t>(-512), bf_then_deep_stack(reg));
    expect_traps(1);
    EXPECT_EQ(MLX5SIM_INSN_END_UNKNOWN, m_device.run.end);
}

TEST_F(insn_signal, deep_stack_use_is_interpreted_with_an_alternate_stack)
{
    volatile uint64_t *reg = reinterpret_cast<volatile uint64_t*>(bf());
    std::vector<uint8_t> memory(1 << 16);
    struct sigaction sa;
    stack_t alt, old;

    if (under_valgrind()) {
        GTEST_SKIP() << "valgrind tracks the stack pointer itself";
    }
    alt.ss_sp    = memory.data();
    alt.ss_size  = memory.size();
    alt.ss_flags = 0;
    ASSERT_EQ(0, sigaltstack(&alt, &old));
    sigaction(SIGBUS, nullptr, &sa);
    sa.sa_flags |= SA_ONSTACK;
    sigaction(SIGBUS, &sa, nullptr);

    m_device.limits.max_insns = 2000;
    m_device.limits.max_gap   = 2000;
    EXPECT_EQ(static_cast<uint64_t>(-512), bf_then_deep_stack(reg));
    expect_traps(1);
    EXPECT_EQ(MLX5SIM_INSN_END_LIMIT, m_device.run.end);
    sigaltstack(&old, nullptr);
}
