/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CHANNEL_H
#define UCT_SEP_CHANNEL_H

#include <uct/ib/sep/sep_md.h>
#include <uct/ib/sep/sep_txwq.h>

BEGIN_C_DECLS

/**
 * @file sep_channel.h
 *
 * Through which hardware resources a worker sends: the sharing categories of
 * "Scalable Communication Endpoints for MPI+Threads Applications" (Zambre,
 * Chandramowlishwaran, Balaji, 2018), from a device context for each worker to
 * one queue pair for all.
 */

/** Categories, from the most to the fewest resources. */
typedef enum {
    UCT_SEP_CATEGORY_MPI_EVERYWHERE, /**< A device context per worker */
    UCT_SEP_CATEGORY_2XDYNAMIC,      /**< Two UAR pages per worker, one used */
    UCT_SEP_CATEGORY_DYNAMIC,        /**< A UAR page per worker */
    UCT_SEP_CATEGORY_SHARED_DYNAMIC, /**< A UAR page per two workers */
    UCT_SEP_CATEGORY_STATIC,         /**< UARs by the driver's policy */
    UCT_SEP_CATEGORY_MPI_THREADS,    /**< One queue pair for all workers */
    UCT_SEP_CATEGORY_AUTO,           /**< What fits */
    UCT_SEP_CATEGORY_LAST
} uct_sep_category_t;

/** Names as UCX_SEP_CATEGORY has them, NULL-terminated. */
extern const char *uct_sep_category_names[];


typedef struct uct_sep_channel uct_sep_channel_t;


/** What makes a category. */
typedef struct uct_sep_category_ops {
    /** Allocate domains and set pd of the channel. */
    ucs_status_t (*init)(uct_sep_channel_t *channel, uct_sep_md_t *md);
    /** Release them. */
    void         (*cleanup)(uct_sep_channel_t *channel, uct_sep_md_t *md);
} uct_sep_category_ops_t;


/** Channel of a worker. */
struct uct_sep_channel {
    const uct_sep_category_ops_t *ops;
    struct ibv_pd                *pd;    /**< For the worker's queue pairs: a
                                              parent domain */
    struct ibv_td                *td[2]; /**< Thread domains; the first is in
                                              use */
    uct_sep_bf_t                 bf;     /**< Where its queue pairs ring; set
                                              by the first one */
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


/** Close it; its queue pairs must have been destroyed. */
void uct_sep_channel_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md);


/** Category "dynamic". */
extern const uct_sep_category_ops_t uct_sep_category_dynamic;

END_C_DECLS

#endif
