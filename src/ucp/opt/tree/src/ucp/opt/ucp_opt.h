/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_H_
#define UCP_OPT_H_

#include <ucp/core/ucp_types.h>

#include <stdint.h>

/*
 * Which of the optimisations that are added to UCP are in effect.
 */

/** Optimisations, as bits of ucp_context_t::opt. Each has a variable
 *  UCX_OPT_<name>; without its bit UCP behaves as it did before. */
enum {
    /** UCX_OPT_RKEY: keys are ready for use when they have been unpacked */
    UCP_OPT_RKEY          = 1 << 0,

    /** UCX_OPT_FLUSH: a flush needs a request only if something is left to be
     *  waited for */
    UCP_OPT_FLUSH         = 1 << 1,

    /** UCX_OPT_WIREUP: an interface that only connects others is not polled */
    UCP_OPT_WIREUP        = 1 << 2,

    /** UCX_OPT_ONDEMAND=y: endpoints are connected when they are used */
    UCP_OPT_ONDEMAND      = 1 << 3,

    /** UCX_OPT_ONDEMAND=auto: the same, if there will be many endpoints */
    UCP_OPT_ONDEMAND_AUTO = 1 << 4,

    /** UCX_OPT_EAGER: short messages look up nothing */
    UCP_OPT_EAGER         = 1 << 5
};


/** Flags of a worker: UCP_OPT_FLUSH, UCP_OPT_RKEY, UCP_OPT_EAGER is on, and
 *  calls take no lock. */
#define UCP_WORKER_FLAG_OPT_FLUSH UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 16)
#define UCP_WORKER_FLAG_OPT_RKEY  UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 17)
#define UCP_WORKER_FLAG_OPT_EAGER UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 18)


/**
 * Read the UCX_OPT_* variables. A value that cannot be understood is reported
 * as a warning and the optimisation is off.
 *
 * @return Bits of what is switched on.
 */
uint32_t ucp_opt_read(void);

/** What a worker, whose thread mode is set, has of the flags above. */
uint64_t ucp_opt_worker_flags(ucp_worker_h worker);

#endif
