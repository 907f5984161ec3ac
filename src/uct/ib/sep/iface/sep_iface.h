/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_IFACE_H
#define UCT_SEP_IFACE_H

#include <uct/ib/sep/category/sep_channel.h>
#include <uct/ib/sep/conn/sep_cm.h>
#include <uct/ib/sep/eager/state/sep_eager_state.h>
#include <uct/ib/sep/ep/state/sep_ep_state.h>
#include <uct/ib/sep/iface/sep_ops.h>
#include <uct/ib/sep/iface/sep_rx_mode.h>
#include <uct/ib/sep/queue/sep_cq.h>
#include <uct/ib/sep/category/sep_cq_group.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/queue/sep_op.h>
#include <uct/ib/sep/port/sep_port.h>
#include <uct/ib/sep/progress/state/sep_progress_state.h>
#include <uct/ib/sep/queue/sep_qp_table.h>
#include <uct/ib/sep/recv/sep_srq.h>
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


/** Levels of progress, from the top. Each that is present calls the next one
 *  below it; an interface needs the last one only. */
typedef enum uct_sep_stack_level {
    /** Rings for lists of work requests (UCX_SEP_TX_POSTLIST), before and
     *  after: no message may keep a list waiting, wherever it comes from. */
    UCT_SEP_STACK_LISTS,
    /** Looks for a message in rings, if there are any. One that finds something
     *  does not go on: completions would be polled in vain. */
    UCT_SEP_STACK_RINGS,
    /** Waits for what comes in a ring before a message of the same peer that
     *  was received. Calls nobody: no completion may be looked at before. */
    UCT_SEP_STACK_HELD,
    /** Counts completions, for the share of a budget (UCX_SEP_TX_THROTTLE). */
    UCT_SEP_STACK_SHARE,
    /** Polls the completion queue. */
    UCT_SEP_STACK_POLL,
    UCT_SEP_STACK_LAST
} uct_sep_stack_level_t;


/** Interface. Each struct in it belongs to the room that declares it, and those
 *  of a state/ to the room around that (contrib/check_owners.py). */
struct uct_sep_iface {
    uct_base_iface_t        super;
    uct_sep_cq_t            cq;            /**< Receives, and sends unless they
                                                have another queue */
    uct_sep_cq_member_t     cq_member;     /**< Of the shared queue, if any */
    uct_sep_cq_t            own_cq;        /**< Sends, if they are in a context
                                                of the worker's own and have no
                                                shared queue: cq is not NULL */
    const uct_sep_api_t     *api;
    uct_sep_verbs_t         *verbs;        /**< Only through libibverbs */

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
        uct_sep_op_list_t   free_descs;    /**< Of desc_mp, at hand */
        uct_sep_op_list_t   free_small;    /**< Of small_mp, at hand */
        uct_sep_op_list_t   free_ops;      /**< Of op_mp, at hand */
        ucs_mpool_t         desc_mp;       /**< uct_sep_desc_t, seg_size */
        ucs_mpool_t         small_mp;      /**< uct_sep_desc_t, 8 bytes */
        ucs_mpool_t         op_mp;         /**< uct_sep_op_t */
        uct_sep_desc_t      *scratch;      /**< Where unwanted results of
                                                atomics go */
        const uct_sep_ops_t *ops;
        int                 post;          /**< uct_sep_tx_post_t that ops were
                                                chosen for */
        uint8_t             is_shared;     /**< Whether ops are for uUARs that
                                                other threads ring */
        uct_sep_txwq_t      idle;          /**< Queue of endpoints without a
                                                connection */
        ucs_list_link_t     unrung;        /**< uct_sep_txwq_t with a list the
                                                device has not been told
                                                about */
        ucs_list_link_t     fc_due;        /**< uct_sep_txwq_t on which a grant
                                                waits for credits */
        uint8_t             stalled;       /**< cq_credits ran out */
    } tx;

    uct_sep_srq_t           srq;
    struct {
        ucs_mpool_t         mp;            /**< uct_sep_rx_desc_t */
        uct_recv_desc_t     release;
        unsigned            headroom_offset; /**< Offset of the user's
                                                  descriptor in ours */
    } rx;

    /** Levels of progress: sep_stack.h */
    struct {
        /** What each calls */
        uct_iface_progress_func_t next[UCT_SEP_STACK_LAST];
        /** The levels; NULL if one is absent */
        uct_iface_progress_func_t func[UCT_SEP_STACK_LAST];
    } stack;

    uct_sep_eager_state_t   eager;         /**< Eager channel */

    /** Messages by send/receive, for eager channels: sep_fc.h */
    struct {
        uint64_t            sent;          /**< See uct_sep_fc_num_sent() */
        uint64_t            received;      /**< Receives used */
        uint16_t            counted;       /**< Number of receives that is in
                                                received */
    } count;

    uct_sep_progress_share_t throttle;     /**< Share of a budget */

    uct_sep_qp_table_t      qps;           /**< Active and retired queues */
    uct_sep_channel_t       channel;
    uct_sep_port_info_t     port;

    uct_sep_ep_state_t      conn;          /**< Endpoints, connections */

    /** To sleep: sep_event.h */
    struct {
        int                 event_fd;      /**< eventfd, or -1; async lock */
        int                 epoll_fd;      /**< For the user, or -1 */
        int                 timer_fd;      /**< In epoll_fd, or -1 */
        int                 is_timed;      /**< It was set, and may have
                                                expired */
    } event;

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
            int32_t         soft;          /**< Window at which a grant is
                                                requested, for later */
            int32_t         hard;          /**< Window at which a grant is
                                                requested at once */
            int32_t         early;         /**< Window at which a connection
                                                asks for the first time, with
                                                the eager channel */
        } fc;
        uct_sep_eager_config_t eager;
        unsigned long       max_qps;       /**< Of the process on the device, as
                                                it is set: UCS_ULUNITS_INF,
                                                UCS_ULUNITS_AUTO */
        unsigned long       max_qps_node;  /**< Of all processes, likewise */
        unsigned            tx_queue_len;
        size_t              tx_min_inline;
        size_t              tx_max_inline; /**< See TX_MAX_INLINE */
        size_t              tx_inline_resp; /**< Longest result that may be in
                                                 a completion, 0: none */
        uct_sep_rx_mode_t   rx_mode;
        unsigned            rx_queue_len;
        unsigned            rx_queue_fill; /**< Receives posted at first */
        unsigned            rx_max_poll;   /**< Receives of a progress call */
        unsigned            tx_max_poll;   /**< Sends of a progress call */
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


/** Post by these operations from now on; see uct_sep_iface_t::tx. */
static inline void
uct_sep_iface_set_ops(uct_sep_iface_t *iface, const uct_sep_ops_t *ops,
                      int post, int is_shared)
{
    iface->tx.ops       = ops;
    iface->tx.post      = post;
    iface->tx.is_shared = is_shared;
}


/** Credits of the completion queue come back, or are taken. */
static UCS_F_ALWAYS_INLINE void
uct_sep_iface_add_cq_credits(uct_sep_iface_t *iface, int32_t num)
{
    iface->tx.cq_credits += num;
}


/** From here to uct_sep_iface_end_finish() users' completions are called, and
 *  no send queue may be destroyed. */
static UCS_F_ALWAYS_INLINE void
uct_sep_iface_begin_finish(uct_sep_iface_t *iface)
{
    ++iface->tx.in_finish;
}


static UCS_F_ALWAYS_INLINE void uct_sep_iface_end_finish(uct_sep_iface_t *iface)
{
    --iface->tx.in_finish;
}


/** @return Memory domain of an interface. */
static inline uct_sep_md_t *uct_sep_iface_md(const uct_sep_iface_t *iface)
{
    return ucs_derived_of(iface->super.md, uct_sep_md_t);
}

END_C_DECLS

#endif
