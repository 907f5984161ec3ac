/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_IFACE_H
#define UCT_SEP_IFACE_H

#include <uct/ib/sep/category/sep_channel.h>
#include <uct/ib/sep/conn/sep_cm.h>
#include <uct/ib/sep/iface/sep_ops.h>
#include <uct/ib/sep/iface/sep_rx_mode.h>
#include <uct/ib/sep/queue/sep_cq.h>
#include <uct/ib/sep/category/sep_cq_group.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/queue/sep_op.h>
#include <uct/ib/sep/port/sep_port.h>
#include <uct/ib/sep/queue/sep_qp_table.h>
#include <uct/ib/sep/recv/sep_srq.h>
#include <uct/ib/sep/ring/sep_ring_table.h>
#include <uct/ib/sep/throttle/sep_throttle.h>
#include <uct/ib/sep/queue/sep_txwq.h>
#include <uct/base/uct_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_iface.h
 *
 * UCT interface: one worker's use of one port. It has a channel, one completion
 * queue for sends and receives, a shared receive queue, and a connection
 * manager; queue pairs come with connections, see sep_link_qp.h.
 */

typedef struct uct_sep_iface uct_sep_iface_t;
typedef struct uct_sep_api uct_sep_api_t;
typedef struct uct_sep_verbs uct_sep_verbs_t;


/**
 * Most connections with a ring of the peer. Each has a counter of slots that
 * the peer gives back by writes, all of them together a page. Who offers a ring
 * when they are used up is refused.
 */
#define UCT_SEP_EAGER_MAX_COUNTERS  512u


/** Interface. */
struct uct_sep_iface {
    uct_base_iface_t        super;
    uct_sep_cq_t            cq;            /**< Receives, and sends unless they
                                                have another queue */
    uct_sep_cq_member_t     cq_member;     /**< Of the shared queue, if any */
    uct_sep_cq_t            own_cq;        /**< Sends, if they are in a context
                                                of the worker's own and have no
                                                shared queue: cq is not NULL */
    const uct_sep_api_t     *api;
    uct_sep_verbs_t         *verbs;        /**< Only with UCX_SEP_API=verbs */

    struct {
        int32_t             cq_credits;    /**< BBs for which the completion
                                                queue has room, even if each of
                                                them completes in error. As with
                                                a send queue's credits, an
                                                operation can start unless
                                                negative */
        unsigned            in_finish;     /**< Callers of users' completions
                                                that go on to use a send queue
                                                afterwards: none may be
                                                destroyed */
        uct_sep_op_list_t   free_descs;    /**< At hand of desc_mp, */
        uct_sep_op_list_t   free_small;    /**< of small_mp, */
        uct_sep_op_list_t   free_ops;      /**< of op_mp */
        ucs_mpool_t         desc_mp;       /**< uct_sep_desc_t, seg_size */
        ucs_mpool_t         small_mp;      /**< uct_sep_desc_t, 8 bytes */
        ucs_mpool_t         op_mp;         /**< uct_sep_op_t */
        uct_sep_desc_t      *scratch;      /**< Where unwanted results of
                                                atomics go */
        const uct_sep_ops_t *ops;
        int                 post;          /**< What ops were chosen for: a
                                                uct_sep_tx_post_t, ... */
        uint8_t             is_locked;     /**< ... and for shared uUARs */
        uct_sep_txwq_t      idle;          /**< Queue of endpoints without a
                                                connection */
        ucs_list_link_t     unrung;        /**< uct_sep_txwq_t with a list the
                                                device has not been told
                                                about */
        uct_iface_progress_func_t poll;    /**< The rest of progress, apart from
                                                ringing for lists */
        ucs_list_link_t     active;        /**< uct_sep_txwq_t in use */
        ucs_list_link_t     retired;       /**< uct_sep_txwq_t being drained */
        ucs_list_link_t     sched;         /**< Endpoints whose pending requests
                                                may be sent */
        ucs_list_link_t     fc_due;        /**< uct_sep_txwq_t on which a grant
                                                waits for credits */
        unsigned            num_pending;   /**< Pending requests of all
                                                endpoints */
        uct_worker_cb_id_t  reap_id;       /**< Destroys the queues in
                                                retired */
        uint8_t             stalled;       /**< cq_credits ran out */
        uint8_t             in_dispatch;
        uct_sep_ep_t        *dispatched;   /**< Endpoint whose request is being
                                                called; NULL if it was
                                                destroyed */
        uct_worker_cb_id_t  dispatch_id;   /**< Calls the requests of sched
                                                again */
    } tx;

    uct_sep_srq_t           srq;
    struct {
        ucs_mpool_t         mp;            /**< uct_sep_rx_desc_t */
        uct_recv_desc_t     release;
        ucs_list_link_t     fc_early;      /**< Flow control requests from
                                                unknown peers */
        unsigned            headroom_offset; /**< Offset of the user's
                                                  descriptor in ours */
    } rx;

    /** Eager channel: sep_eager.h */
    struct {
        uct_sep_ring_poll_t places;        /**< Where to look for messages */
        uct_sep_eager_ring_t *hot;         /**< The one from which the last
                                                message came: it is looked at
                                                first. Its place in the table
                                                is not kept */
        uct_sep_eager_ring_t none;         /**< If there is no such ring: is
                                                always empty */
        uct_sep_eager_ring_t *rings;       /**< Of as many as there can be; NULL
                                                before the first is offered */
        uct_allocated_memory_t memory;     /**< Of all of them, */
        uct_allocated_memory_t counters;   /**< of what peers return */
        uint64_t            counter_map[UCT_SEP_EAGER_MAX_COUNTERS /
                                        64];  /**< Bits of those in use */
        unsigned            num_rings;     /**< In use */
        uint8_t             is_revoking;   /**< One is to change hands */
        uint8_t             is_sleepy;     /**< The worker was armed */
        uint8_t             is_held;       /**< held is waiting; no completion
                                                is looked at before that is
                                                done */
        uint8_t             copies;        /**< Handlers keep their buffers:
                                                they get copies */
        uct_sep_eager_recv_t held;
        unsigned            turn;          /**< Ring whose turn it is */
        uct_iface_progress_func_t poll;    /**< What to do if rings are
                                                empty: */
        uct_iface_progress_func_t complete; /**< progress without rings, or
                                                 what handles held */
        uct_iface_progress_func_t progress; /**< Progress with rings */
        ucs_list_link_t     due;           /**< uct_sep_eager_peer_t with
                                                messages to be posted */
        uct_sep_ring_set_t  set;
        uct_sep_eager_stats_t stats;
    } eager;

    /** Share of a budget: sep_throttle.h */
    struct {
        uct_sep_throttle_dev_t *dev;       /**< NULL if there is none */
        uct_iface_progress_func_t poll;    /**< Progress without it */
        int32_t             held;          /**< What of tx.cq_credits is not to
                                                be used */
        int32_t             countdown;     /**< Completions until the next
                                                report */
        unsigned            idle;          /**< Calls since the last one */
        uint8_t             is_user;       /**< Has joined */
    } throttle;

    uct_sep_qp_table_t      qps;           /**< Active and retired queues */
    uct_sep_channel_t       channel;
    uct_sep_port_info_t     port;

    struct {
        uct_sep_async_user_t main;         /**< Of the memory domain's context,
                                                in which receives are */
        uct_sep_async_user_t own;          /**< Of the worker's, if it has
                                                one */
        int                 is_dead;       /**< The device has failed: nothing
                                                completes any more */
    } async;

    struct {
        uct_sep_cm_t        *cm;
        ucs_queue_head_t    events;        /**< uct_sep_link_t with news for the
                                                main thread; async lock */
        uct_worker_cb_id_t  event_id;      /**< Their handler; async lock */
        uct_worker_cb_id_t  connect_id;    /**< Progresses the manager, while
                                                endpoints connect */
        int                 event_fd;      /**< eventfd, or -1; async lock */
        int                 epoll_fd;      /**< For the user, or -1 */
        int                 timer_fd;      /**< In epoll_fd, or -1 */
        int                 is_timed;      /**< It was set, and may have
                                                expired */
        ucs_list_link_t     orphans;       /**< uct_sep_txwq_t that were never
                                                active, to be flushed; async
                                                lock */
        unsigned            num_links;     /**< Connections, for the leak
                                                check; async lock */
        unsigned            num_qp;        /**< Queue pairs; async lock */
    } conn;

    struct {
        size_t              seg_size;
        size_t              max_get_zcopy;
        uint16_t            moderation;
        int32_t             cq_len;        /**< Credits of an interface that
                                                has nothing under way */
        uint32_t            throttle;      /**< Budget, or
                                                UCT_SEP_THROTTLE_xx */
        uint16_t            postlist;      /**< Maximum of work requests in a
                                                list */
        struct {
            int             enable;
            int32_t         window;        /**< Messages without a grant */
            int32_t         soft;          /**< Windows at which one is
                                                requested */
            int32_t         hard;          /**< for */
            int32_t         early;         /**< Window at which a connection
                                                asks for the first time, with
                                                the eager channel */
        } fc;
        struct {
            int             mode;          /**< ucs_ternary_auto_value_t */
            unsigned        slots;         /**< Of a ring */
            size_t          slot_size;     /**< Bytes, with the tail */
            unsigned        poll_set;      /**< Most rings */
        } eager;
        unsigned            tx_queue_len;
        size_t              tx_min_inline;
        size_t              tx_max_inline; /**< See TX_MAX_INLINE */
        size_t              tx_inline_resp; /**< Longest result that may be in
                                                 a completion, 0: none */
        uct_sep_rx_mode_t   rx_mode;
        unsigned            rx_queue_len;
        unsigned            rx_queue_fill; /**< Receives posted at first */
        unsigned            rx_max_poll;   /**< Receives of a progress call, */
        unsigned            tx_max_poll;   /**< and sends */
        int                 has_fence;     /**< Whether a fence does anything */
        int                 post;          /**< uct_sep_tx_post_t, as set */
        uint8_t             path_mtu;      /**< enum ibv_mtu */
        uint8_t             timeout;       /**< As in ibv_qp_attr */
        uint8_t             retry_cnt;
        uint8_t             rnr_retry;
        uint8_t             min_rnr_timer;
        uint8_t             max_rd_atomic;
        uint8_t             max_dest_rd_atomic;
    } config;
};


/** @return Whether other workers use its send completion queue. */
static inline int uct_sep_iface_shares_cq(const uct_sep_iface_t *iface)
{
    return iface->cq_member.group != NULL;
}


/** @return Where sends complete. */
static inline struct ibv_cq *
uct_sep_iface_send_cq(const uct_sep_iface_t *iface)
{
    return uct_sep_iface_shares_cq(iface) ? iface->cq_member.group->cq.cq :
           (iface->own_cq.cq != NULL)     ? iface->own_cq.cq :
                                            iface->cq.cq;
}


/** @return Shortest zero-copy get, bytes: what is shorter would stay in the
 *          completion. */
static UCS_F_ALWAYS_INLINE size_t
uct_sep_iface_min_get_zcopy(const uct_sep_iface_t *iface)
{
    return (iface->config.tx_inline_resp > 0) ?
           (iface->config.tx_inline_resp + 1) : 0;
}


/** @return Memory domain of an interface. */
static inline uct_sep_md_t *uct_sep_iface_md(const uct_sep_iface_t *iface)
{
    return ucs_derived_of(iface->super.md, uct_sep_md_t);
}

END_C_DECLS

#endif
