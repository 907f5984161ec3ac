/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_IB_OPT_H_
#define UCT_IB_OPT_H_

#include <stdint.h>

/*
 * Which of the optimisations that are added to the InfiniBand transports are in
 * effect.
 */

/** Optimisations, as bits of what uct_ib_opt_read() returns. */
enum {
    /** UCX_OPT_IDLE_TX: a send CQ is polled only while it may get an entry */
    UCT_IB_OPT_IDLE_TX      = 1 << 0,

    /** UCX_OPT_FLUSH_SIGNAL: an operation that is expected to be flushed is
     *  signaled, so that the flush posts nothing */
    UCT_IB_OPT_FLUSH_SIGNAL = 1 << 1
};


/**
 * Read the UCX_OPT_* variables that are about these transports. A value that
 * cannot be understood is reported as a warning and the optimisation is off.
 *
 * @return Bits of what is switched on.
 */
uint32_t uct_ib_opt_read(void);

#endif
