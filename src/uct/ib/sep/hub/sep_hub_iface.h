/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_HUB_IFACE_H
#define UCT_SEP_HUB_IFACE_H

#include <uct/ib/sep/hub/sep_hub.h>

BEGIN_C_DECLS

/**
 * @file sep_hub_iface.h
 *
 * A worker's interface in category mpi_threads: its view of the hub
 * (sep_hub.h), and the mail that it gets from there.
 */

/** Where messages and completions are put. */
typedef struct uct_sep_hub_mail {
    ucs_queue_head_t messages; /**< uct_sep_hub_msg_t */
    ucs_queue_head_t done;     /**< uct_sep_hub_op_t */
    ucs_list_link_t  ready;    /**< Endpoints that may send again */
    ucs_list_link_t  failed;   /**< Endpoints whose users are to be told */
} uct_sep_hub_mail_t;


/** Interface. */
struct uct_sep_hub_iface {
    uct_base_iface_t     super;
    uct_sep_hub_t        *hub;
    uint16_t             index;       /**< In the hub */

    uct_sep_hub_mail_t   mail UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** Also read without the lock, as an atomic; read again under it when it
     *  matters */
    int                  has_mail UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** The worker may be asleep */
    int                  is_armed UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    int                  event_fd;    /**< Written to wake it, or -1; set before
                                           it is first armed */

    /* The worker's thread */
    uct_sep_hub_mail_t   inbox;       /**< Mail that was taken, being handled */
    ucs_queue_head_t     old_messages; /**< Handled; returned to the core's pool
                                            when the lock is next taken */
    ucs_queue_head_t     old_ops;     /**< Handled; returned to the hub's
                                            pools then */
    unsigned             num_old;     /**< In both */
    unsigned             num_ops;     /**< Outstanding operations */
    unsigned             num_pending; /**< Pending requests of all endpoints */
    unsigned             num_packed;  /**< Endpoints with a packed message */
    ucs_list_link_t      eps;
    ucs_mpool_t          pack_mp;     /**< Buffers for users' pack callbacks */
    uct_recv_desc_t      release;
    size_t               headroom;    /**< User's, in front of the data */
    uint8_t              keeps_descs; /**< Receive buffers have room for that,
                                           and the user's alignment */
    int                  epoll_fd;    /**< For the user, or -1 */
};


/** Open an interface of category mpi_threads; as uct_iface_open(). */
ucs_status_t uct_sep_hub_iface_open(uct_md_h md, uct_worker_h worker,
                                    const uct_iface_params_t *params,
                                    const uct_iface_config_t *config,
                                    uct_iface_h *iface_p);


/** Mail has arrived; wake the worker if it sleeps. */
void uct_sep_hub_mail_notify(uct_sep_hub_iface_t *iface)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Give back what was handled. */
void uct_sep_hub_mail_clean(uct_sep_hub_iface_t *iface)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Take the mail. */
void uct_sep_hub_mail_take(uct_sep_hub_iface_t *iface)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Finish all completed operations in the inbox. */
unsigned uct_sep_hub_mail_finish_ops(uct_sep_hub_iface_t *iface)
        UCT_SEP_EXCLUDES(uct_sep_hub_mutex);

END_C_DECLS

#endif
