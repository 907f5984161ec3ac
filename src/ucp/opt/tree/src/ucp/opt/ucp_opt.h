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
    UCP_OPT_EAGER         = 1 << 5,

    /** UCX_OPT_RECV: a receive of one buffer, and the arrival of a message for
     *  it, do only what is for these */
    UCP_OPT_RECV          = 1 << 6,

    /** UCX_OPT_PROGRESS: progress that does not think of locks */
    UCP_OPT_PROGRESS      = 1 << 7,

    /** UCX_OPT_MEM: workers have registrations of their own */
    UCP_OPT_MEM           = 1 << 8,

    /** UCX_OPT_MEMTYPE: the type of memory is looked up only where there has
     *  been memory that is not of the host */
    UCP_OPT_MEMTYPE       = 1 << 9
};


/** Flags of a worker: the optimisation of that name is on, and calls take no
 *  lock. With UCP_WORKER_FLAG_OPT_RECV all memory is host memory besides, if
 *  the user does not say anything else; with UCP_WORKER_FLAG_OPT_FLUSH_EPS a
 *  worker is flushed by its endpoints (UCX_FLUSH_WORKER_EPS).
 *  UCP_WORKER_FLAG_OPT_RECV_AM is UCX_OPT_RECV for active messages. */
#define UCP_WORKER_FLAG_OPT_FLUSH UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 16)
#define UCP_WORKER_FLAG_OPT_RKEY  UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 17)
#define UCP_WORKER_FLAG_OPT_EAGER UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 18)
#define UCP_WORKER_FLAG_OPT_RECV  UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 19)
#define UCP_WORKER_FLAG_OPT_PROGRESS \
    UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 20)
#define UCP_WORKER_FLAG_OPT_FLUSH_EPS \
    UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 21)
#define UCP_WORKER_FLAG_OPT_RECV_AM \
    UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 22)
#define UCP_WORKER_FLAG_OPT_MEM   UCS_BIT(UCP_WORKER_INTERNAL_FLAGS_SHIFT + 23)


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
