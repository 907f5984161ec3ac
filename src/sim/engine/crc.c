/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/crc.h>

#include <endian.h>
#include <string.h>

#define MLX5SIM_CRC_POLYNOMIAL 0xedb88320 /* bits of 0x04c11db7 reversed */

/* [n] has the CRCs of bytes with n zeros behind them */
typedef uint32_t mlx5sim_crc_table_t[256];

static mlx5sim_crc_table_t mlx5sim_crc_tables[8];


/* When the program is loaded: packets are made in signal handlers, too */
__attribute__((constructor))
static void mlx5sim_crc_init(void)
{
    uint32_t crc;
    unsigned i, n;

    for (i = 0; i < 256; ++i) {
        crc = i;
        for (n = 0; n < 8; ++n) {
            crc = (crc >> 1) ^ ((crc & 1) ? MLX5SIM_CRC_POLYNOMIAL : 0);
        }
        mlx5sim_crc_tables[0][i] = crc;
    }

    for (n = 1; n < 8; ++n) {
        for (i = 0; i < 256; ++i) {
            crc                      = mlx5sim_crc_tables[n - 1][i];
            mlx5sim_crc_tables[n][i] = (crc >> 8) ^
                                       mlx5sim_crc_tables[0][crc & 0xff];
        }
    }
}

uint32_t mlx5sim_crc_add(uint32_t crc, const uint8_t *bytes, unsigned length)
{
    const mlx5sim_crc_table_t *tables = mlx5sim_crc_tables;
    uint64_t word;

    for (; length >= sizeof(word); length -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        word   = le64toh(word) ^ crc;
        crc    = tables[7][word & 0xff] ^ tables[6][(word >> 8) & 0xff] ^
                 tables[5][(word >> 16) & 0xff] ^
                 tables[4][(word >> 24) & 0xff] ^
                 tables[3][(word >> 32) & 0xff] ^
                 tables[2][(word >> 40) & 0xff] ^
                 tables[1][(word >> 48) & 0xff] ^ tables[0][word >> 56];
        bytes += sizeof(word);
    }

    for (; length > 0; --length) {
        crc = (crc >> 8) ^ tables[0][(crc ^ *bytes++) & 0xff];
    }

    return crc;
}
