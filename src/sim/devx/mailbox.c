/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/devx/mailbox.h>


void mlx5sim_fw_set(uint8_t *base, mlx5sim_fw_field_t field, uint64_t value)
{
    unsigned bit, i;

    for (i = 0; i < field.width; ++i) {
        bit = field.offset + field.width - 1 - i;
        if ((value >> i) & 1) {
            base[bit / 8] |= 0x80 >> (bit % 8);
        }
    }
}

uint64_t mlx5sim_fw_get(const uint8_t *base, mlx5sim_fw_field_t field)
{
    uint64_t value = 0;
    unsigned bit, i;

    for (i = 0; i < field.width; ++i) {
        bit   = field.offset + i;
        value = (value << 1) | ((base[bit / 8] >> (7 - bit % 8)) & 1);
    }
    return value;
}
