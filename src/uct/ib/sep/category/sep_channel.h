/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CHANNEL_H
#define UCT_SEP_CHANNEL_H

#include <uct/ib/sep/category/sep_category.h>
#include <uct/ib/sep/category/sep_context.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/category/sep_td.h>
#include <uct/ib/sep/queue/sep_uuar.h>

BEGIN_C_DECLS

/**
 * @file sep_channel.h
 *
 * The hardware resources through which a worker sends, by its sharing category:
 * from a device context for each worker to one queue pair for all.
 */

typedef struct uct_sep_channel uct_sep_channel_t;


/** How the channel of a category is opened, following its row. Both functions
 *  require uct_sep_sharing_mutex. */
typedef struct uct_sep_category_ops {
    /** Allocate domains and fill the channel. Missing UAR pages are logged at
     *  debug level only. */
    ucs_status_t (*init)(uct_sep_channel_t *channel, uct_sep_md_t *md);
    /** Release them; the caller releases what has_common and has_claim stand
     *  for. */
    void         (*cleanup)(uct_sep_channel_t *channel, uct_sep_md_t *md);
} uct_sep_category_ops_t;


/** Channel of a worker. */
struct uct_sep_channel {
    const uct_sep_category_ops_t *ops;
    uct_sep_category_t           category; /**< In effect, never "auto" */
    struct ibv_pd                *pd;      /**< For its RC queue pairs */
    uct_sep_uuars_t              *uuars;   /**< Where they are registered: those
                                                of pd's context */
    uct_sep_uuar_use_t           use;      /**< Who rings their uUARs */
    /** For queue pairs that do not send, in the memory domain's context; NULL
     *  if there is none yet, see @ref uct_sep_channel_get_responder_pd */
    struct ibv_pd                *responder_pd;
    struct ibv_pd                *spare_pd; /**< If the driver has no uUAR for
                                                 one; shared, may be NULL */
    struct ibv_pd                *cm_pd;   /**< For the connection manager's
                                                queue pair */
    uct_sep_uuar_use_t           cm_use;   /**< Who rings its uUAR */
    /** Thread domains, as the category uses them */
    uct_sep_td_pair_t            *pair[UCT_SEP_CATEGORY_MAX_TDS / 2];
    unsigned                     index;    /**< Index of ours in a shared
                                                pair */
    uct_sep_context_t            *own;     /**< The worker's own context, or
                                                NULL for the domain's */
    uint8_t                      has_common; /**< uct_sep_td_common_get() */
    uint8_t                      has_claim;  /**< See uct_sep_sharing_
                                                  claim_uuars() */
};


/**
 * Open a channel.
 *
 * @param [in]  category  As configured.
 * @param [in]  name      For messages, e.g. "mlx5_0:1".
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED, UCS_ERR_NO_RESOURCE or UCS_ERR_IO_ERROR
 *         after a message that says what is missing and what to set.
 */
ucs_status_t uct_sep_channel_init(uct_sep_channel_t *channel, uct_sep_md_t *md,
                                  uct_sep_category_t category,
                                  const char *name);


/** Close it, after its queue pairs. */
void uct_sep_channel_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md);


/**
 * Find the domain for queue pairs that only receive, or that remote sides
 * access. It belongs to the memory domain's context.
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY or UCS_ERR_NO_RESOURCE, without a message.
 */
ucs_status_t uct_sep_channel_get_responder_pd(uct_sep_channel_t *channel,
                                              uct_sep_md_t *md,
                                              struct ibv_pd **pd_p);


/**
 * For the categories: have the connection manager's queue pair ring a uUAR that
 * all workers of the memory domain share.
 */
ucs_status_t uct_sep_channel_init_common(uct_sep_channel_t *channel,
                                         uct_sep_md_t *md)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/** For the categories: uct_sep_sharing_claim_uuars(), with a message. */
ucs_status_t uct_sep_channel_claim_uuars(uct_sep_channel_t *channel,
                                         uct_sep_md_t *md)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/** The ones named by the rows of sep_category.h. */
#define UCT_SEP_CATEGORY_OPS_DECLARE(_id, _name, _ops, ...) \
    extern const uct_sep_category_ops_t uct_sep_category_##_ops;
UCT_SEP_CATEGORY_FOREACH(UCT_SEP_CATEGORY_OPS_DECLARE)
#undef UCT_SEP_CATEGORY_OPS_DECLARE

END_C_DECLS

#endif
