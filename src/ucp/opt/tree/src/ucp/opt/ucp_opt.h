/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_H_
#define UCP_OPT_H_

#include <stdint.h>

/*
 * Which of the optimisations that are added to UCP are in effect.
 */

/** Optimisations, as bits of ucp_context_t::opt. Each has a variable
 *  UCX_OPT_<name>; without its bit UCP behaves as it did before. */
enum {
    /** UCX_OPT_RKEY: keys are ready for use when they have been unpacked */
    UCP_OPT_RKEY  = 1 << 0,

    /** UCX_OPT_FLUSH: a flush needs a request only if something is left to be
     *  waited for */
    UCP_OPT_FLUSH = 1 << 1
};


/**
 * Read the UCX_OPT_* variables. A value that cannot be understood is reported
 * as a warning and the optimisation is off.
 *
 * @return Bits of what is switched on.
 */
uint32_t ucp_opt_read(void);

#endif
