/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Signatures of blocks as such: what others have published of their values.
 */

#include <sim/engine/mlx5_def.h>
#include <sim/engine/signature.h>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

mlx5sim_sig_domain_t domain(mlx5sim_sig_type_t type, unsigned block)
{
    mlx5sim_sig_domain_t d = {};

    d.type     = type;
    d.block    = block;
    d.app_mask = 0xffff;
    return d;
}

} // namespace

/* T10 SBC, table "CRC test cases" */
TEST(test_signature, crc_of_t10)
{
    const mlx5sim_sig_domain_t d = domain(MLX5SIM_SIG_T10DIF, 32);
    const std::vector<uint8_t> zeros(32), ones(32, 0xff);
    std::vector<uint8_t> up(32), down(32), two(32);

    for (unsigned i = 0; i < 32; ++i) {
        up[i]   = i;
        down[i] = 0xff - i;
        two[i]  = (i < 2) ? 0xff : 0;
    }
    EXPECT_EQ(0x0000u, mlx5sim_sig_make(&d, 0, zeros.data()) >> 48);
    EXPECT_EQ(0xa293u, mlx5sim_sig_make(&d, 0, ones.data()) >> 48);
    EXPECT_EQ(0x0224u, mlx5sim_sig_make(&d, 0, up.data()) >> 48);
    EXPECT_EQ(0x21b8u, mlx5sim_sig_make(&d, 0, two.data()) >> 48);
    EXPECT_EQ(0xa0b7u, mlx5sim_sig_make(&d, 0, down.data()) >> 48);
}

/* RFC 1071, section 3: the sum of its example is 0xddf2 */
TEST(test_signature, checksum_of_ip)
{
    const uint8_t data[]   = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    mlx5sim_sig_domain_t d = domain(MLX5SIM_SIG_T10DIF, sizeof(data));

    d.is_csum = 1;
    EXPECT_EQ(0x220du, mlx5sim_sig_make(&d, 0, data) >> 48);
}

/* The check value of CRC-32, as zlib and Ethernet have it */
TEST(test_signature, crc_32)
{
    mlx5sim_sig_domain_t d = domain(MLX5SIM_SIG_CRC32, 9);
    const uint8_t expected[] = {0x26, 0x39, 0xf4, 0xcb};
    uint8_t bytes[MLX5SIM_SIG_MAX_SIZE];
    uint64_t value;

    d.has_seed = 1;
    value      = mlx5sim_sig_make(&d, 0, (const uint8_t*)"123456789");
    EXPECT_EQ(0xcbf43926ull << 32, value);
    mlx5sim_sig_encode(&d, value, bytes);
    EXPECT_EQ(0, memcmp(expected, bytes, sizeof(expected)));
    EXPECT_EQ(value, mlx5sim_sig_decode(&d, bytes));
}

TEST(test_signature, places)
{
    const mlx5sim_sig_domain_t none = domain(MLX5SIM_SIG_NONE, 0);
    const mlx5sim_sig_domain_t t10  = domain(MLX5SIM_SIG_T10DIF, 512);
    const mlx5sim_sig_domain_t crc  = domain(MLX5SIM_SIG_CRC32, 4096);
    const mlx5sim_sig_t sig         = {t10, crc, 0, 0};

    EXPECT_EQ(777u, mlx5sim_sig_place(&none, 777));
    EXPECT_EQ(511u, mlx5sim_sig_place(&t10, 511));
    EXPECT_EQ(520u, mlx5sim_sig_place(&t10, 512));
    EXPECT_EQ(777u, mlx5sim_sig_data(&none, 777));
    EXPECT_EQ(512u, mlx5sim_sig_data(&t10, 512));
    EXPECT_EQ(512u, mlx5sim_sig_data(&t10, 519));
    EXPECT_EQ(513u, mlx5sim_sig_data(&t10, 521));
    EXPECT_EQ(4100u, mlx5sim_sig_wire_length(&sig, 8 * 520));
    EXPECT_EQ(4095u, mlx5sim_sig_wire_length(&sig, 8 * 520 - 9));
}

TEST(test_signature, errors_in_order)
{
    mlx5sim_sig_domain_t d = domain(MLX5SIM_SIG_T10DIF, 512);
    const uint64_t right   = 0x1111222233334444;

    EXPECT_EQ(0u, mlx5sim_sig_check(&d, 0xff, right, right));
    EXPECT_EQ(MLX5SIM_SIGERR_GUARD, mlx5sim_sig_check(&d, 0xff, 0, right));
    EXPECT_EQ(MLX5SIM_SIGERR_APP, mlx5sim_sig_check(&d, 0x3f, 0, right));
    EXPECT_EQ(MLX5SIM_SIGERR_REF, mlx5sim_sig_check(&d, 0x0f, 0, right));
    EXPECT_EQ(0u, mlx5sim_sig_check(&d, 0, 0, right));
    d.app_mask = 0xdddd;
    EXPECT_EQ(0u, mlx5sim_sig_check(&d, 0x30, 0, right));
    EXPECT_EQ(0x11ff222233334444u, mlx5sim_sig_merge(right, ~0ull, 0x40));
}
