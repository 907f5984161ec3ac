/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PCIE_H_
#define MLX5SIM_PCIE_H_

#include <sim/objs/obj.h>

/*
 * What an adapter would send over PCI Express, per process whose memory it is.
 * One contiguous piece counts as one, whatever its length: an entry of a gather
 * or scatter list, a WQE, a CQE. Doorbell records are not counted; when an
 * adapter reads them is its own affair.
 */

/** The device read pieces of a process' memory. */
static inline void mlx5sim_pcie_read(mlx5sim_proc_t *proc, unsigned count)
{
    atomic_fetch_add_explicit(&proc->c.dma_reads, count, memory_order_relaxed);
}

/** The device wrote pieces of a process' memory. */
static inline void mlx5sim_pcie_written(mlx5sim_proc_t *proc, unsigned count)
{
    atomic_fetch_add_explicit(&proc->c.dma_writes, count, memory_order_relaxed);
}

/** A process wrote to the device: write combining makes one write of up to 64
 *  bytes, a line of the processor's cache. */
static inline void mlx5sim_pcie_mmio(mlx5sim_proc_t *proc, unsigned length)
{
    atomic_fetch_add_explicit(&proc->c.mmio_writes, (length + 63) / 64,
                              memory_order_relaxed);
}

#endif
