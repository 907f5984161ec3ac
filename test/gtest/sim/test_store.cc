/* SPDX-License-Identifier: BSD-3-Clause */

#include <gtest/gtest.h>

#include <cstdint>

/* store.h has C11 atomics, which are not C++ */
extern "C" struct mlx5sim_proc *mlx5sim_proc_by_tag(uint32_t tag);

namespace {

/* Whoever holds a slot's index finds 0 for its owner once the slot was given
 * back. There is no entry of that number, not even to point at: UBSan sees it,
 * also here, where no store is mapped. */
TEST(test_store, nobody_owns_a_free_slot)
{
    EXPECT_EQ(nullptr, mlx5sim_proc_by_tag(0));
}

} // namespace
