/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_EAGER_H_
#define UCP_OPT_EAGER_H_

#include <ucp/core/ucp_types.h>
#include <ucp/proto/proto_select.h>
#include <ucs/arch/cpu.h>
#include <uct/api/uct.h>

#include <stddef.h>
#include <stdint.h>

/*
 * An endpoint that is ready for short messages: it holds the UCT endpoint of
 * the lane of active messages, what that has for short ones, and how long they
 * may be, so that sending one looks up nothing. It also knows how long messages
 * may be that the transport copies at once: these need no request. And it knows
 * which longer ones the transport sends from registered memory in one piece:
 * these need little of their request (ucp_opt_zcopy.inl).
 *
 * It is made ready, for a state of its lanes (see ucp_opt_rkey.h), by a message
 * that was sent in the general way. When the lanes change the limits become 0,
 * and messages go the general way again.
 */

/** Messages that are too long to be copied, and are sent in one piece from
 *  memory that the memory domain of the lane has registered. */
typedef struct ucp_opt_eager_zcopy {
    size_t                         max_length; /**< of the longest; 0: not known
                                                    or none */
    /** What a request says of how it is sent */
    union {
        const ucp_proto_config_t   *config;    /**< version 2 of protocols */
        uct_pending_callback_t     func;       /**< version 1 */
    } proto;
} ucp_opt_eager_zcopy_t;


/** Part of ucp_ep_t. */
typedef struct ucp_opt_eager {
    size_t                 tag_limit; /**< tagged messages of fewer bytes are
                                           short; 0: the endpoint is not ready
                                           or has no short messages */
    size_t                 am_limit;  /**< the same for active messages, without
                                           header or with a header only */
    size_t                 tag_bcopy; /**< tagged messages of fewer bytes are
                                           copied by the transport; 0: not known
                                           or none */
    size_t                 am_bcopy;  /**< the same for active messages without
                                           header */
    int                    is_ready;  /**< whether the endpoint is, even if it
                                           has no short messages */
    uint8_t                is_v2;     /**< version of the protocols below */
    ucp_md_index_t         md_index;  /**< memory domain of the lane */
    ucp_opt_eager_zcopy_t  tag_zcopy; /**< tagged messages */
    ucp_opt_eager_zcopy_t  am_zcopy;  /**< active messages without header */
    uct_ep_h               uct_ep;    /**< lane of active messages */
    uct_ep_am_short_func_t am_short;  /**< what the lane has for it */
    uint64_t               state;     /**< state of the lanes that the above is
                                           for */
} ucp_opt_eager_t;


/** A new endpoint is not ready. */
#define ucp_opt_eager_init(_ep) \
    do { \
        (_ep)->opt_eager.tag_limit = 0; \
        (_ep)->opt_eager.am_limit  = 0; \
        (_ep)->opt_eager.tag_bcopy = 0; \
        (_ep)->opt_eager.am_bcopy  = 0; \
        (_ep)->opt_eager.tag_zcopy.max_length = 0; \
        (_ep)->opt_eager.am_zcopy.max_length  = 0; \
        (_ep)->opt_eager.is_ready  = 0; \
        (_ep)->opt_eager.state     = UCP_OPT_STATE_NONE; \
    } while (0)

/** Part of ucp_opt_ep_lanes_changed(): the endpoint, whose state has been taken
 *  away, is not ready any more. */
#define ucp_opt_eager_lanes_changed(_ep) \
    do { \
        ucs_memory_cpu_store_fence(); \
        (_ep)->opt_eager.tag_limit = 0; \
        (_ep)->opt_eager.am_limit  = 0; \
        (_ep)->opt_eager.tag_bcopy = 0; \
        (_ep)->opt_eager.am_bcopy  = 0; \
        (_ep)->opt_eager.tag_zcopy.max_length = 0; \
        (_ep)->opt_eager.am_zcopy.max_length  = 0; \
        (_ep)->opt_eager.is_ready  = 0; \
    } while (0)

/** Whether an endpoint should be made ready after a message has gone the
 *  general way. */
#define ucp_opt_eager_is_wanted(_ep) \
    (((_ep)->worker->flags & UCP_WORKER_FLAG_OPT_EAGER) && \
     (((_ep)->opt_state == UCP_OPT_STATE_NONE) || \
      ((_ep)->opt_eager.state != (_ep)->opt_state)))

/**
 * Make an endpoint ready if its lanes allow that now. To be called for workers
 * that have UCP_WORKER_FLAG_OPT_EAGER.
 */
void ucp_opt_eager_prepare(ucp_ep_h ep);

/** Whether the endpoint still has the lane that it is ready for. */
int ucp_opt_eager_is_current(ucp_ep_h ep);

#endif
