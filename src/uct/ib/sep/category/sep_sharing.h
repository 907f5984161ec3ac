/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_SHARING_H
#define UCT_SEP_SHARING_H

#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/md/sep_md.h>
#include <ucs/datastruct/list.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/**
 * @file sep_sharing.h
 *
 * What the workers of a memory domain share: uct_sep_md_t::sharing. It is there
 * as long as any of them has a channel; the memory domain knows nothing of it.
 */

/** For what workers share of UAR pages and uUARs. */
UCT_SEP_MUTEX_DEFINE(uct_sep_sharing_mutex)

/** For the groups that share completion queues. */
UCT_SEP_MUTEX_DEFINE(uct_sep_cq_groups_mutex)


/** State of this room, for a memory domain. */
struct uct_sep_sharing {
    /** Channels, and those that are being opened */
    unsigned                  refcount UCT_SEP_GUARDED_BY(uct_sep_own_mutex);
    /** uct_sep_context_t, by slot */
    ucs_list_link_t           contexts UCT_SEP_GUARDED_BY(uct_sep_own_mutex);

    uct_sep_sharing_mutex_t   lock;
    /** Of workers; atomic */
    unsigned                  num_channels;
    /** uct_sep_td_pair_t, one in use */
    ucs_list_link_t           half_pairs
                              UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);
    /** uct_sep_td_pair_t whose second one others may have */
    ucs_list_link_t           lenders
                              UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);
    /** See uct_sep_td_common_get() */
    struct uct_sep_td_pair    *common_pair
                              UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);
    /** The common pair is a lender's */
    int                       is_common_lent
                              UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);
    unsigned                  common_refcount
                              UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);
    /** Workers on uUARs assigned by the driver in the domain's context, or -1
     *  if one worker is to be the only one */
    int                       uuar_claims
                              UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);

    uct_sep_cq_groups_mutex_t group_lock;
    /** uct_sep_cq_group_t */
    ucs_list_link_t           cq_groups
                              UCT_SEP_GUARDED_BY(uct_sep_cq_groups_mutex);
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
 * domain's context.
 *
 * @param is_alone No other worker may.
 *
 * @return UCS_OK; UCS_ERR_BUSY, without a message.
 */
ucs_status_t uct_sep_sharing_claim_uuars(uct_sep_sharing_t *sharing,
                                         int is_alone)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);

/** Undo it. */
void uct_sep_sharing_unclaim_uuars(uct_sep_sharing_t *sharing)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);

END_C_DECLS

#endif
