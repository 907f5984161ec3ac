/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_DEVICE_H_
#define MLX5SIM_DEVICE_H_

#include <sys/types.h>

/*
 * /dev/infiniband/uverbsN and rdma_cm: files in the instance's tree, which
 * stand for character devices.
 */

/** Open uverbs@a index, or rdma_cm if that is MLX5SIM_PATH_RDMA_CM.
 *  @param flags  As of open(2). */
int mlx5sim_device_open(unsigned index, int flags);

/** errno of the last failed open of a device by this thread, 0 if it did
 *  not fail or that was forgotten. */
int mlx5sim_device_error(void);
void mlx5sim_device_forget_error(void);

/** Whether a file is the one that stands for a character device in our tree.
 *  Programs get there when they walk /dev/infiniband by directory descriptors.
 *  @param index_p  Which device. */
int mlx5sim_device_is_placeholder(const char *path, dev_t st_dev, ino_t st_ino,
                                  unsigned *index_p);

#endif
