/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CRC_H
#define UCT_SEP_CRC_H

#include <stddef.h>
#include <stdint.h>

/**
 * @file sep_crc.h
 *
 * CRC32 of the connection exchange.
 */


/**
 * CRC32 (IEEE 802.3, reflected) of a buffer: the number that ucs_crc32() gives,
 * with a fifth of the instructions, as it goes by half bytes and not by bits.
 * Connecting to a peer takes six of them.
 *
 * @param [in]  prev    CRC of what is in front of it, or a seed.
 * @param [in]  buffer  Data.
 * @param [in]  size    Its length, bytes.
 *
 * @return CRC.
 */
static inline uint32_t uct_sep_crc32(uint32_t prev, const void *buffer,
                                     size_t size)
{
    /* The polynomial's remainders of 0 to 15 */
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
        0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c
    };
    const uint8_t *byte             = (const uint8_t*)buffer;
    const uint8_t *end              = byte + size;
    uint32_t crc                    = ~prev;

    for (; byte < end; ++byte) {
        crc ^= *byte;
        crc  = (crc >> 4) ^ table[crc & 0xf];
        crc  = (crc >> 4) ^ table[crc & 0xf];
    }
    return ~crc;
}

#endif
