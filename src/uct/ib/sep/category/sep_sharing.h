/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_SHARING_H
#define UCT_SEP_SHARING_H

#include <uct/ib/sep/md/sep_md.h>
#include <ucs/datastruct/list.h>
#include <ucs/type/status.h>
#include <pthread.h>

BEGIN_C_DECLS

/**
 * @file sep_sharing.h
 *
 * What the workers of a memory domain share: uct_sep_md_t::sharing. It is there
 * as long as any of them has a channel; the memory domain knows nothing of it.
 */

/** State of this room, for a memory domain. */
struct uct_sep_sharing {
    unsigned               refcount;     /**< Channels, and those that are being
                                              opened; own_lock of the memory
                                              domain */

    pthread_mutex_t        lock;         /**< For what follows, and for
                                              domains */
    unsigned               num_channels; /**< Of workers; read without lock */
    ucs_list_link_t        half_pairs;   /**< uct_sep_td_pair_t, one in use */
    ucs_list_link_t        lenders;      /**< uct_sep_td_pair_t whose second one
                                              others may have */
    struct uct_sep_td_pair *common_pair; /**< See uct_sep_td_common_get() */
    int                    is_common_lent; /**< It is a lender's */
    unsigned               common_refcount;
    int                    uuar_claims;  /**< Workers on uUARs assigned by the
                                              driver in the domain's context, or
                                              -1 if one worker is to be the only
                                              one */

    ucs_list_link_t        contexts;     /**< uct_sep_context_t, by slot;
                                              own_lock of the memory domain */

    pthread_mutex_t        group_lock;   /**< For what follows */
    ucs_list_link_t        cq_groups;    /**< uct_sep_cq_group_t */
};


/**
 * Have what the workers of a memory domain share, until it is released.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY after a message.
 */
ucs_status_t uct_sep_sharing_get(uct_sep_md_t *md);


/** Release it. */
void uct_sep_sharing_put(uct_sep_md_t *md);


/**
 * Announce that a worker's data path rings uUARs assigned by the driver, in the
 * domain's context. With the lock held.
 *
 * @param is_alone No other worker may.
 *
 * @return UCS_OK; UCS_ERR_BUSY, without a message.
 */
ucs_status_t uct_sep_sharing_claim_uuars(uct_sep_sharing_t *sharing,
                                         int is_alone);

/** Undo it. */
void uct_sep_sharing_unclaim_uuars(uct_sep_sharing_t *sharing);

END_C_DECLS

#endif
