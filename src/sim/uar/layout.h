/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UAR_LAYOUT_H_
#define MLX5SIM_UAR_LAYOUT_H_

/*
 * Layout of a UAR page (mlx5 PRM, "UAR page format"), and where the pages are
 * in a context's file.
 */

#define MLX5SIM_UAR_PAGE_SHIFT    12
#define MLX5SIM_UAR_PAGE_SIZE     (1 << MLX5SIM_UAR_PAGE_SHIFT)

/** Register that arms a CQ. */
#define MLX5SIM_UAR_OFFSET_CQ_ARM 0x20

/** Doorbell and BlueFlame registers (uUARs) begin here. User space has two of
 *  them: MLX5_NON_FP_BFREGS_PER_UAR of the kernel. */
#define MLX5SIM_UAR_OFFSET_BF     0x800
#define MLX5SIM_UUARS_PER_UAR     2

/** Bytes from one to the next (bf_reg_size); it is two buffers, written in
 *  turn. */
#define MLX5SIM_UAR_BF_REG        0x200
#define MLX5SIM_UAR_BF_BUFFER     (MLX5SIM_UAR_BF_REG / 2)

/** Whether a register or buffer begins at an offset in the page. */
#define MLX5SIM_UAR_IS_BUFFER(_offset) \
    (((_offset) & (MLX5SIM_UAR_BF_BUFFER - 1)) == 0)

/** Bytes of a doorbell; anything longer is a BlueFlame copy of the WQE. */
#define MLX5SIM_UAR_DOORBELL      8

/** Name of a context's file, as in /proc/self/maps; its index follows. */
#define MLX5SIM_UAR_FILE          "mlx5sim-ctx-"

/** Page number of the page that shows the clock: command
 *  MLX5_IB_MMAP_CORE_CLOCK (mlx5-abi.h). */
#define MLX5SIM_UAR_PAGE_CORE_CLOCK   0x500ul

/** Offset of the clock in that page: internal_timer_h and internal_timer_l, 32
 *  bits each, big-endian. In the initialization segment they are at 0x1000
 *  (mlx5 PRM, "Initialization Segment"), and the page begins there. */
#define MLX5SIM_UAR_OFFSET_CORE_CLOCK 0

/** Page number of the kernel's page for turning ticks into time: command
 *  MLX5_IB_MMAP_CLOCK_INFO, index MLX5_IB_CLOCK_INFO_V1 (mlx5-abi.h). */
#define MLX5SIM_UAR_PAGE_CLOCK    0x700ul

/** Page number of the first page of device memory: command
 *  MLX5_IB_MMAP_DEVICE_MEM, index 0; and how many there are, so that none has
 *  an extended index. A ConnectX-5 has as many. */
#define MLX5SIM_UAR_PAGE_DM       0x800ul
#define MLX5SIM_DM_PAGES          32u

/** Page number of UAR object 0 in the file of its context; far beyond the
 *  legacy mmap commands. */
#define MLX5SIM_UAR_PAGE_BASE     0x100000ul

#endif
