/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_FENCE_H
#define UCT_SEP_FENCE_H

#include <ucs/arch/cpu.h>

/**
 * @file sep_fence.h
 *
 * Order of what we and the adapter do to the same memory. An x86 keeps it by
 * itself: its stores become visible in order, its loads are done in order, and
 * no store overtakes a load. There, only the compiler has to keep it. Other
 * processors need a barrier that is for devices, too, not only for other
 * processors (AArch64: of the outer shareable domain, as in libmlx5's
 * util/udma_barrier.h; UCX's ucs_memory_cpu_*_fence() are of the inner one).
 *
 * Doorbells are stores to the device, not to memory. What precedes them has
 * ucs_memory_bus_store_fence() on each processor.
 */

#ifdef __x86_64__

#  define uct_sep_fence_to_device()   ucs_memory_cpu_store_fence()
#  define uct_sep_fence_from_device() ucs_memory_cpu_load_fence()
#  define uct_sep_fence_give_back()   ucs_memory_cpu_store_fence()
/* What reads a slot is a function that is called by its address: no compiler
 * moves that */
#  define uct_sep_fence_slots()       ((void)0)

#else

/** The device sees stores before it if it sees one behind it: a work
 *  request, if it sees the index that includes it. AArch64: DMB OSHST */
#  define uct_sep_fence_to_device()   ucs_memory_bus_store_fence()

/** Loads behind it see all that the device had written before what a load
 *  before it has seen: what a completion says, if its owner bit says that it
 *  is there. AArch64: DMB OSHLD */
#  define uct_sep_fence_from_device() ucs_memory_bus_load_fence()

/** Memory is given to the device by a store behind it: loads and stores of
 *  that memory before it are over when the device may write there. A barrier
 *  for stores alone would let the loads be done later. AArch64: DMB OSHLD,
 *  which is for later stores as well, and DMB OSHST */
#  define uct_sep_fence_give_back() \
    do { \
        ucs_memory_bus_load_fence(); \
        ucs_memory_bus_store_fence(); \
    } while (0)

/** Slots of a ring are given to the peer by a message behind it, which has a
 *  barrier for stores. AArch64: DMB OSHLD */
#  define uct_sep_fence_slots()       ucs_memory_bus_load_fence()

#endif

#endif
