/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_RKEY_H_
#define UCP_OPT_RKEY_H_

#include <ucp/core/ucp_types.h>
#include <ucp/opt/ucp_opt_eager.h>
#include <ucs/sys/compiler.h>
#include <uct/api/uct.h>

/*
 * A remote key that is ready for use: it holds the UCT endpoint and key and the
 * limits of small operations, so that these look up nothing.
 *
 * What it is ready for is a state of the lanes of one endpoint, which has a
 * number, given when the first key is made ready for it and never given again.
 * Whatever changes the lanes of an endpoint takes its number away by
 * ucp_opt_ep_lanes_changed(), and no key is ready for it any more. The next
 * operation goes the general way, which resolves the key as ever, and makes it
 * ready again.
 *
 * Keys of the same memory domains and type that are used with endpoints of the
 * same configuration are resolved alike. That is done once: see
 * ucp_opt_rkey_class.h.
 */

/** Numbers that no state of an endpoint has. */
enum {
    UCP_OPT_STATE_NONE   = 0, /**< of an endpoint: no key is ready for it */
    UCP_OPT_RKEY_UNREADY = 1, /**< of a key: it is not ready at the moment */
    UCP_OPT_RKEY_NEVER   = 2, /**< of a key: it will not be */
    UCP_OPT_STATE_FIRST  = 1 << 8, /**< lowest number of a state */
    UCP_OPT_STATE_NEXT   = 1 << 8  /**< between two states */
};

/** Most lanes that a state says of itself. */
#define UCP_OPT_STATE_MAX_LANES 4

struct ucp_opt_rkey_class;

/** Like ucp_atomic_op_nbx(). */
typedef ucs_status_ptr_t
(*ucp_opt_amo_func_t)(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                      size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                      const ucp_request_param_t *param);

/** Part of ucp_rkey_t. */
typedef struct ucp_opt_rkey {
    uint64_t                        state;   /**< state of the endpoint that the
                                                  key is ready for, or one of
                                                  the numbers above */
    size_t                          max_put; /**< longest short put in bytes, 0:
                                                  it is not for these */
    uct_ep_h                        rma_ep;  /**< lane of puts and gets */
    uct_ep_put_short_func_t         put_short; /**< what the lane has for it */
    uct_rkey_t                      rma_rkey; /**< UCT key for that lane */
    size_t                          max_put_bcopy; /**< longest put that the
                                                  transport copies at once */
    size_t                          max_get; /**< longest get in bytes, 0: it is
                                                  not for gets */
    uct_ep_h                        amo_ep;  /**< lane of atomics */
    uct_rkey_t                      amo_rkey; /**< UCT key for that lane */
    ucp_opt_amo_func_t              amo_func; /**< what carries out atomics */
    unsigned                        amos;    /**< what atomics it is for:
                                                  UCP_OPT_AMO_BIT() */
    const struct ucp_opt_rkey_class *cls;    /**< how it is resolved; NULL if
                                                  that is not known */
} ucp_opt_rkey_t;


/** Atomics with a key that is not ready. */
ucs_status_ptr_t
ucp_opt_amo_prepare(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                    size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                    const ucp_request_param_t *param);

/** A new key is not ready. */
static UCS_F_ALWAYS_INLINE void ucp_opt_rkey_init(ucp_opt_rkey_t *opt)
{
    opt->state    = UCP_OPT_RKEY_UNREADY;
    opt->amo_func = ucp_opt_amo_prepare;
    opt->cls      = NULL;
}

/**
 * Make a key ready if it and the endpoint's lanes allow that now. To be called
 * with the worker's lock held, if it has one.
 *
 * @param [in] ep    Endpoint the key was unpacked on.
 * @param [in] rkey  Key that is resolved for the endpoint's configuration.
 */
void ucp_opt_rkey_prepare(ucp_ep_h ep, ucp_rkey_h rkey);

/** Whether the endpoint still has the lanes that a key is ready for. */
int ucp_opt_rkey_is_current(ucp_ep_h ep, ucp_rkey_h rkey);

/**
 * Resolve a key for version 1 of the protocols as one of the same class was. To
 * be called in place of ucp_rkey_resolve_inner().
 *
 * @return Whether that could be done.
 */
int ucp_opt_rkey_resolve(ucp_ep_h ep, ucp_rkey_h rkey);

/** Note how a key has been resolved for version 1 of the protocols. */
void ucp_opt_rkey_resolved(ucp_ep_h ep, ucp_rkey_h rkey);

/** Give the state of an endpoint's lanes a number that no state had before. */
uint64_t ucp_opt_new_state(ucp_ep_h ep);

/** How many lanes the state of an endpoint says there are: its lowest byte.
 *  0 if it has no number, if there are more than UCP_OPT_STATE_MAX_LANES or one
 *  is missing, if lanes replace each other, or without
 *  UCP_WORKER_FLAG_OPT_FLUSH. */
#define ucp_opt_ep_state_lanes(_ep) ((uint8_t)(_ep)->opt_state)

/** The number of the state of an endpoint's lanes. */
#define ucp_opt_ep_state(_ep) \
    ({ \
        uint64_t _state = (_ep)->opt_state; \
        \
        if (ucs_unlikely(_state == UCP_OPT_STATE_NONE)) { \
            _state = ucp_opt_new_state(_ep); \
        } \
        _state; \
    })

/** The endpoint's lanes are going to change or have done so: no key is ready
 *  for it any more, and it is not ready for short messages. May be called from
 *  the asynchronous context. */
#define ucp_opt_ep_lanes_changed(_ep) \
    do { \
        (_ep)->opt_state = UCP_OPT_STATE_NONE; \
        ucp_opt_eager_lanes_changed(_ep); \
    } while (0)

#endif
