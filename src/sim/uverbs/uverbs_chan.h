/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_CHAN_H_
#define MLX5SIM_UVERBS_CHAN_H_

#include <stdint.h>

/** Create a channel (completion or async) and open its FIFO for the
 *  application. @return descriptor or -errno. */
int mlx5sim_uverbs_chan_create(uint32_t ctx, int is_async, uint32_t *chan_p);

/** The application closes the descriptor of a channel. */
void mlx5sim_uverbs_chan_close(uint32_t index);

#endif
