/* SPDX-License-Identifier: BSD-3-Clause */

extern "C" {
#include <sim/objs/guard.h>
}

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

namespace {

const size_t page = 4096;

uint8_t *pages(size_t num, void *at = nullptr)
{
    return (uint8_t*)mmap(at, num * page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0),
                          -1, 0);
}

class test_guard : public testing::Test {
protected:
    void SetUp() override
    {
        guard = mlx5sim_guard_begin((uintptr_t)data, 4 * page, 1);
        if (guard < 0) {
            GTEST_SKIP() << "userfaultfd() is not allowed here";
        }
    }

    void TearDown() override
    {
        munmap(data, 4 * page);
    }

    uint8_t *data = pages(4);
    int     guard;
};

} // namespace


/* Who touches a page meanwhile touches the one that takes its place */
TEST_F(test_guard, what_is_written_meanwhile_is_there)
{
    std::atomic<bool> is_ready(false), is_done(false);
    std::thread writer([&]() {
        is_ready     = true;
        data[page]   = 1;
        data[0]     += 1;
        is_done      = true;
    });

    while (!is_ready) {
    }
    usleep(20000); /* it may be there, or not: the outcome is the same */
    EXPECT_FALSE(is_done);
    ASSERT_EQ(data, pages(4, data));
    mlx5sim_guard_end(guard, (uintptr_t)data, 4 * page);
    writer.join();
    EXPECT_EQ(1, data[page]);
    EXPECT_EQ(1, data[0]);
}

/* It waits no longer than that */
TEST_F(test_guard, pages_that_are_not_replaced)
{
    mlx5sim_guard_end(guard, (uintptr_t)data, 4 * page);
    data[0] = 1;
    EXPECT_EQ(0, data[page]);
}

TEST(test_guard_bad, what_is_not_private_memory)
{
    EXPECT_EQ(-1, mlx5sim_guard_begin(page, page, 1));
    EXPECT_EQ(-1, mlx5sim_guard_begin(1, 1, 1));
}
