/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_IFACE_H
#define UCT_SEP_IFACE_H

#include <uct/ib/sep/category/sep_channel.h>
#include <uct/ib/sep/conn/sep_cm.h>
#include <uct/ib/sep/iface/sep_ops.h>
#include <uct/ib/sep/queue/sep_cq.h>
#include <uct/ib/sep/category/sep_cq_group.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/queue/sep_op.h>
#include <uct/ib/sep/port/sep_port.h>
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
 * manager; queue pairs come with connections, see sep_link.h.
 */

typedef struct uct_sep_iface uct_sep_iface_t;
typedef struct uct_sep_api uct_sep_api_t;
typedef struct uct_sep_verbs uct_sep_verbs_t;


/** Ways to the device, see sep_api.h. */
enum {
    UCT_SEP_API_DV,    /**< Direct verbs */
    UCT_SEP_API_VERBS, /**< libibverbs */
    UCT_SEP_API_LAST
};


/** What a fence does. */
enum {
    UCT_SEP_FENCE_NONE, /**< Nothing */
    UCT_SEP_FENCE_WEAK, /**< Reads and atomics before it are done first */
    UCT_SEP_FENCE_AUTO, /**< The weakest one that orders all operations */
    UCT_SEP_FENCE_LAST
};


/** Configuration of an interface; see the table for what it means. */
typedef struct uct_sep_iface_config {
    uct_iface_config_t       super;
    size_t                   seg_size;
    int                      category;
    unsigned                 cq_sharing;
    int                      fence;         /**< UCT_SEP_FENCE_xx */
    int                      api;           /**< UCT_SEP_API_xx */
    uct_sep_port_config_t    port;
    unsigned                 path_mtu;      /**< 0 is "default" */
    unsigned long            max_rd_atomic;
    double                   timeout;
    unsigned                 retry_count;
    double                   rnr_timeout;
    unsigned                 rnr_retry_count;
    size_t                   max_get_zcopy;
    struct {
        unsigned             queue_len;
        size_t               min_inline;
        size_t               max_inline;
        unsigned             max_poll;
        unsigned             cq_moderation;
        unsigned             cq_len;
        unsigned             postlist;
        int                  post;
        uct_iface_mpool_config_t mp;
    } tx;
    struct {
        unsigned             queue_len;
        unsigned             queue_fill;
        unsigned             max_poll;
        uct_iface_mpool_config_t mp;
    } rx;
    struct {
        int                  enable;
        unsigned             wnd_size;
        double               hard_thresh;
        double               soft_thresh;
    } fc;
    struct {
        double               timeout;
        unsigned             retry_count;
        unsigned             rx_queue_len;
    } cm;
} uct_sep_iface_config_t;


/** Interface. */
struct uct_sep_iface {
    uct_base_iface_t        super;
    uct_sep_cq_t            cq;            /**< Receives, and sends unless these
                                                have another queue */
    uct_sep_cq_member_t     cq_member;     /**< Of the shared queue, if any */
    uct_sep_cq_t            own_cq;        /**< Sends, if they are in a context
                                                of the worker's own and have no
                                                shared queue: cq is not NULL */
    const uct_sep_api_t     *api;
    uct_sep_verbs_t         *verbs;        /**< Only with UCX_SEP_API=verbs */

    struct {
        int32_t             cq_credits;    /**< BBs for which the completion
                                                queue has room, also if each of
                                                them completes in error. As with
                                                a send queue's, an operation can
                                                start unless it is negative */
        unsigned            in_finish;     /**< Callers that call users'
                                                completions, and go on with a
                                                send queue: none may be
                                                destroyed */
        ucs_mpool_t         desc_mp;       /**< uct_sep_desc_t, seg_size */
        ucs_mpool_t         small_mp;      /**< uct_sep_desc_t, 8 bytes */
        ucs_mpool_t         op_mp;         /**< uct_sep_op_t */
        void                *scratch;      /**< Takes the results of atomics
                                                that nobody wants */
        uint32_t            scratch_lkey;
        const uct_sep_ops_t *ops;
        int                 post;          /**< What ops are for: a
                                                uct_sep_tx_post_t, ... */
        uint8_t             is_locked;     /**< ... and for shared uUARs */
        uct_sep_txwq_t      idle;          /**< Queue of endpoints without a
                                                connection */
        ucs_list_link_t     unrung;        /**< uct_sep_txwq_t with a list that
                                                the device was not told of */
        uct_iface_progress_func_t poll;    /**< What progress is besides ringing
                                                for lists, if there are any */
        ucs_list_link_t     active;        /**< uct_sep_txwq_t in use */
        ucs_list_link_t     retired;       /**< uct_sep_txwq_t being drained */
        ucs_list_link_t     sched;         /**< Endpoints whose pending requests
                                                may be sent */
        ucs_list_link_t     fc_due;        /**< uct_sep_txwq_t on which a grant
                                                waits for credits */
        unsigned            num_pending;   /**< Requests in all endpoints */
        uct_worker_cb_id_t  reap_id;       /**< Destroys what is in retired */
        uint8_t             stalled;       /**< cq_credits ran out */
        uint8_t             in_dispatch;
        uct_sep_ep_t        *dispatched;   /**< Whose request is being called;
                                                NULL if it was destroyed */
        uct_worker_cb_id_t  dispatch_id;   /**< Retry of what is in sched */
    } tx;

    uct_sep_srq_t           srq;
    struct {
        ucs_mpool_t         mp;            /**< uct_sep_rx_desc_t */
        uct_recv_desc_t     release;
        ucs_list_link_t     fc_early;      /**< Requests of flow control from
                                                peers that are not known */
        unsigned            headroom_offset; /**< Of the user's descriptor in
                                                  ours */
    } rx;

    uct_sep_qp_table_t      qps;           /**< Active and retired queues */
    uct_sep_channel_t       channel;
    uct_sep_port_info_t     port;

    struct {
        uct_sep_cm_t        *cm;
        ucs_queue_head_t    events;        /**< uct_sep_link_t with news for the
                                                main thread; async lock */
        uct_worker_cb_id_t  event_id;      /**< Handler of these; async lock */
        int                 event_fd;      /**< eventfd, or -1; async lock */
        int                 epoll_fd;      /**< For the user, or -1 */
        unsigned            num_links;     /**< Connections, for the leak
                                                check; async lock */
        unsigned            num_qp;        /**< Queue pairs; async lock */
    } conn;

    struct {
        size_t              seg_size;
        size_t              max_get_zcopy;
        uint16_t            moderation;
        uint16_t            postlist;      /**< Work requests of a list */
        struct {
            int             enable;
            int32_t         window;        /**< Messages without a grant */
            int32_t         soft;          /**< Windows at which it is asked */
            int32_t         hard;          /**< for */
        } fc;
        unsigned            tx_queue_len;
        size_t              tx_min_inline;
        size_t              tx_max_inline; /**< Of a message, see TX_MAX_INLINE */
        unsigned            rx_queue_len;
        unsigned            rx_queue_fill; /**< Receives posted at first */
        unsigned            rx_max_poll;   /**< Receives of a progress call, */
        unsigned            tx_max_poll;   /**< and sends */
        int                 has_fence;     /**< Whether a fence does something */
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


/**
 * Open an interface of its own, whatever the category; as uct_iface_open().
 */
ucs_status_t uct_sep_iface_open(uct_md_h md, uct_worker_h worker,
                                const uct_iface_params_t *params,
                                const uct_iface_config_t *config,
                                uct_iface_h *iface_p);


UCS_CLASS_DECLARE(uct_sep_iface_t, uct_md_h, uct_worker_h,
                  const uct_iface_params_t*, const uct_iface_config_t*);


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


/** @return Memory domain of an interface. */
static inline uct_sep_md_t *uct_sep_iface_md(const uct_sep_iface_t *iface)
{
    return ucs_derived_of(iface->super.md, uct_sep_md_t);
}


/** Take back what can be of no length: short messages, gets. */
void uct_sep_open_drop_unusable(uct_iface_attr_t *attr);


/** Table of uct_sep_iface_config_t. */
extern ucs_config_field_t uct_sep_config_table[];


/**
 * Check the values of a configuration, each by itself.
 *
 * @param max_qp_wr   Limits of the device, as in ibv_device_attr.
 * @param max_srq_wr
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message that names the
 *         variable and its range.
 */
ucs_status_t uct_sep_config_check(const uct_sep_iface_config_t *config,
                                  unsigned max_qp_wr,
                                  unsigned max_srq_wr);


/**
 * Check a configuration against the port and the device, and take it over.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message that names the
 *         variable and its range.
 */
ucs_status_t uct_sep_config_apply(uct_sep_iface_t *iface,
                                  const uct_sep_iface_config_t *config);


/** Longest zero-copy operation of the port. */
size_t uct_sep_config_max_zcopy(const uct_sep_iface_t *iface);


/**
 * Install the operations of one way to post.
 *
 * @param post       UCT_SEP_TX_POST_BF, _DB or _AUTO.
 * @param is_locked  Whether uUARs may be shared with other threads.
 */
void uct_sep_iface_set_ops(uct_sep_iface_t *iface, int post, int is_locked);


/** Poll for completions; of uct_iface_ops_t. */
unsigned uct_sep_progress(uct_iface_h tl_iface);


/** The same, with another completion queue for sends in the worker's context.
 */
unsigned uct_sep_progress_own(uct_iface_h tl_iface);


/**
 * Make the local keys of memory in the worker's own context.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY after a message.
 */
ucs_status_t uct_sep_bufs_make_lkeys(uct_sep_iface_t *iface,
                                     const uct_iov_t *iov, size_t iovcnt);


/**
 * Try again to find the local key of a descriptor which has none. If that fails
 * the descriptor goes back to its pool.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY after a message.
 */
ucs_status_t uct_sep_bufs_make_desc_lkey(uct_sep_iface_t *iface,
                                         uct_sep_desc_t *desc);


/** The same for a worker that shares its send completion queue. */
unsigned uct_sep_progress_group(uct_iface_h tl_iface);


/**
 * The completion queue may not have room for all that could complete, so
 * nothing can be posted. Asks those queues for a completion which would not
 * send one by themselves.
 */
void uct_sep_credits_stall(uct_sep_iface_t *iface);


/** Make sure that a completion tells when all that was posted is done. */
void uct_sep_credits_signal_last(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** Call what is pending and can be sent. */
void uct_sep_dispatch(uct_sep_iface_t *iface);


/** Completion events; of uct_iface_ops_t. */
ucs_status_t uct_sep_event_fd_get(uct_iface_h tl_iface, int *fd_p);
ucs_status_t uct_sep_event_arm(uct_iface_h tl_iface, unsigned events);


/** Wake the application if it sleeps on the file descriptor. Async lock. */
void uct_sep_event_signal(uct_sep_iface_t *iface);


/** Release what the event functions have made. */
void uct_sep_event_cleanup(uct_sep_iface_t *iface);

END_C_DECLS

#endif
