/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/cmd.h>

#include <string.h>


void mlx5sim_cmd_reply(void *out, size_t out_size, const void *reply,
                       size_t size)
{
    if (out_size > 0) {
        memcpy(out, reply, (out_size < size) ? out_size : size);
    }
}
