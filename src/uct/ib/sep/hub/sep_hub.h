/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_HUB_H
#define UCT_SEP_HUB_H

#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/ep/sep_ep.h>
#include <uct/ib/sep/hub/sep_hub_addr.h>
#include <uct/ib/sep/iface/sep_config.h>
#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/mpool.h>

BEGIN_C_DECLS

/**
 * @file sep_hub.h
 *
 * Sharing category mpi_threads: one queue pair per peer process and one
 * completion queue for all workers of a memory domain and port. They belong to
 * a hub, which has an interface of its own for them, the core. A worker's
 * interface (sep_hub_iface.h) has none of its own: it operates on the core,
 * under the hub's lock.
 *
 * Whoever polls the core finds completions and messages for all workers. They
 * are put into the mail of the interface they are for, under the lock, and
 * handled by its worker's thread.
 */

typedef struct uct_sep_hub uct_sep_hub_t;
typedef struct uct_sep_hub_peer uct_sep_hub_peer_t;
typedef struct uct_sep_hub_op uct_sep_hub_op_t;
typedef struct uct_sep_hub_iface uct_sep_hub_iface_t;
typedef struct uct_sep_hub_ep uct_sep_hub_ep_t;


/** For a hub's core with its worker, for what the hub has, and for what it puts
 *  into interfaces. No user callback ever runs with it held. */
UCT_SEP_MUTEX_DEFINE(uct_sep_hub_mutex)

/** For the hubs of the process. It is held while one is opened. */
UCT_SEP_MUTEX_DEFINE(uct_sep_hub_list_mutex)


/** A message on its way to an interface, at the start of its receive buffer. */
typedef struct uct_sep_hub_msg {
    ucs_queue_elem_t queue;
    uint32_t         length;  /**< Of the data, without the route */
    uint8_t          am_id;
} uct_sep_hub_msg_t;


/** Finish an operation in its worker's thread: deliver its result. */
typedef void (*uct_sep_hub_op_finish_t)(uct_sep_hub_op_t *op);


/** An operation that somebody waits for. */
struct uct_sep_hub_op {
    uct_completion_t        comp;     /**< Completed by the core */
    ucs_queue_elem_t        queue;    /**< In the mail, or to be released */
    ucs_list_link_t         list;     /**< In the endpoint; its worker's
                                           thread */
    uct_sep_hub_peer_t      *peer;    /**< Kept until it is complete */
    uct_sep_hub_ep_t      *ep;      /**< NULL: nobody waits any more */
    uct_completion_t        *user;    /**< User's completion, or NULL */
    uct_sep_hub_op_finish_t finish;   /**< NULL if there is only the
                                           completion */
    uint32_t                length;   /**< Of the result */
    uint8_t                 is_done;  /**< Is in the mail, or was */
    uct_mem_h               memh;     /**< Of a buffer behind this, if any */
    uint64_t                value;    /**< Result of a fetching atomic */
    union {
        void                *result;  /**< Where the user wants it */
        struct {
            uct_unpack_callback_t unpack_cb;
            void                  *arg;
        } get;
    };
};


/** Remote hub: the core's endpoint, which all workers' endpoints to it use. */
struct uct_sep_hub_peer {
    uct_sep_peer_addr_t addr;       /**< Key in the table of peers */
    uct_sep_ep_t        *ep;        /**< Of the core */
    /** Endpoints and outstanding operations */
    unsigned            refcount UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** No longer in the table */
    uint8_t             is_failed UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** The core has the request below */
    uint8_t             is_pending UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    uct_pending_req_t   req;        /**< Tells when to wake waiting endpoints */
    /** uct_sep_hub_ep_t, by sched */
    ucs_list_link_t     waiters UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** uct_sep_hub_ep_t, by peer_list */
    ucs_list_link_t     eps UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** In uct_sep_hub_t, if refcount is 0 */
    ucs_list_link_t     unused UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
};


KHASH_TYPE(uct_sep_hub_peers, const uct_sep_peer_addr_t*, uct_sep_hub_peer_t*);


/** Argument of the core's handler of a message id. */
typedef struct uct_sep_hub_am {
    uct_sep_hub_t *hub;
    uint8_t       am_id;
} uct_sep_hub_am_t;


/** Hub. */
struct uct_sep_hub {
    /** Of all hubs */
    ucs_list_link_t           list UCT_SEP_GUARDED_BY(uct_sep_hub_list_mutex);
    /** Interfaces */
    unsigned                  refcount
                              UCT_SEP_GUARDED_BY(uct_sep_hub_list_mutex);
    uct_sep_iface_config_t    config;     /**< Must be the same for all
                                               interfaces */
    char                      dev_name[UCT_DEVICE_NAME_MAX];
    size_t                    headroom;   /**< Headroom of the core's receive
                                               buffers: uct_sep_hub_msg_t, and
                                               what the first interface
                                               wanted */
    size_t                    alignment;  /**< Alignment of messages' data with
                                               align_offset added */
    size_t                    align_offset;
    ucs_async_context_t       *async;     /**< For the connection manager, since
                                               interfaces come and go */
    uct_worker_h              worker;     /**< Progresses the core and nothing
                                               else */
    uct_sep_iface_t           *core;

    uct_sep_hub_mutex_t       lock;
    khash_t(uct_sep_hub_peers) peers UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** Peers to be destroyed when the core has returned */
    ucs_list_link_t           unused UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** By index, NULL if free */
    uct_sep_hub_iface_t       **ifaces UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** Length of ifaces */
    unsigned                  num_ifaces UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** Whose turn it is: messages to one that has gone may be on their way */
    unsigned                  next_index UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** uct_sep_hub_op_t */
    ucs_mpool_t               op_mp UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** uct_sep_hub_op_t, with registered memory of seg_size behind it */
    ucs_mpool_t               get_mp UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    uct_sep_hub_am_t          am[UCT_AM_ID_MAX];
};


static UCS_F_ALWAYS_INLINE UCT_SEP_ACQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_lock(uct_sep_hub_t *hub)
{
    uct_sep_hub_mutex_lock(&hub->lock);
}

static UCS_F_ALWAYS_INLINE UCT_SEP_TRY_ACQUIRES(uct_sep_hub_mutex) int
uct_sep_hub_trylock(uct_sep_hub_t *hub)
{
    return uct_sep_hub_mutex_trylock(&hub->lock);
}

static UCS_F_ALWAYS_INLINE UCT_SEP_RELEASES(uct_sep_hub_mutex) void
uct_sep_hub_unlock(uct_sep_hub_t *hub)
{
    uct_sep_hub_mutex_unlock(&hub->lock);
}


/**
 * Find or open the hub of a port, and register a worker's interface with it.
 *
 * @param [in]  params    Of the interface.
 * @param [in]  config    Of the interface.
 * @param [in]  iface     Interface; its index is filled in.
 * @param [out] hub_p     Filled with the hub.
 *
 * @return UCS_OK, or why it can't be opened, after a message.
 */
ucs_status_t uct_sep_hub_join(uct_sep_md_t *md,
                              const uct_iface_params_t *params,
                              const uct_sep_iface_config_t *config,
                              uct_sep_hub_iface_t *iface,
                              uct_sep_hub_t **hub_p)
        UCT_SEP_EXCLUDES(uct_sep_hub_list_mutex)
        UCT_SEP_EXCLUDES(uct_sep_hub_mutex);


/** Whether received data is aligned as an interface's parameters ask. */
int uct_sep_hub_is_aligned(const uct_sep_hub_t *hub,
                           const uct_iface_params_t *params);


/** An interface is gone; the last one takes the hub with it. */
void uct_sep_hub_leave(uct_sep_hub_t *hub)
        UCT_SEP_EXCLUDES(uct_sep_hub_list_mutex)
        UCT_SEP_EXCLUDES(uct_sep_hub_mutex);


/**
 * Poll the core once; what arrives is in the interfaces' mail afterwards.
 *
 * @return As uct_worker_progress().
 */
unsigned uct_sep_hub_poll(uct_sep_hub_t *hub)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/**
 * Find or make the peer of a remote interface and add an endpoint to it.
 *
 * @return UCS_OK, or the error of the core's ep_create, after a message.
 */
ucs_status_t uct_sep_hub_connect(uct_sep_hub_t *hub,
                                 const uct_device_addr_t *dev_addr,
                                 const uct_sep_hub_addr_t *addr,
                                 uct_sep_hub_ep_t *ep)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Remove an endpoint from its peer. */
void uct_sep_hub_disconnect(uct_sep_hub_t *hub, uct_sep_hub_ep_t *ep)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/**
 * Put an endpoint into its interface's list of ready ones as soon as the core
 * can send to the peer again.
 *
 * @return UCS_OK, or UCS_ERR_BUSY if it can.
 */
ucs_status_t uct_sep_hub_wait(uct_sep_hub_t *hub, uct_sep_hub_ep_t *ep)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/**
 * A peer's core endpoint no longer works. All its endpoints fail.
 *
 * @param is_told  Whether to tell the users; not if they asked for it.
 */
void uct_sep_hub_peer_fail(uct_sep_hub_t *hub, uct_sep_hub_peer_t *peer,
                           ucs_status_t status, int is_told)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/**
 * Get an operation, set up for the core to complete.
 *
 * @param mp  One of the hub's pools.
 *
 * @return NULL if there is no memory.
 */
uct_sep_hub_op_t *uct_sep_hub_op_get(ucs_mpool_t *mp, uct_sep_hub_ep_t *ep,
                                     uct_completion_t *user)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Give back an operation that the core did not take. */
void uct_sep_hub_op_cancel(uct_sep_hub_t *hub, uct_sep_hub_op_t *op)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Wake all interfaces that sleep. */
void uct_sep_hub_wake_all(uct_sep_hub_t *hub)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);

END_C_DECLS

#endif
