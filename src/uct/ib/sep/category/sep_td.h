/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_TD_H
#define UCT_SEP_TD_H

#include <uct/ib/sep/category/sep_sharing.h>
#include <uct/ib/sep/md/sep_md.h>
#include <ucs/datastruct/list.h>

BEGIN_C_DECLS

/**
 * @file sep_td.h
 *
 * Thread domains, two at a time. libmlx5 (verbs.c) gives a thread domain the
 * next free uUAR of a list that has two per UAR page. As long as domains of a
 * context come and go in pairs, and nothing else takes from that list, both of
 * a pair are on the same page.
 */

/**
 * There are no thread domains: the kernel has found no write combining. It
 * refuses pages for BlueFlame then, as UAR objects (EOPNOTSUPP) and by mmap()
 * (EPERM): mlx5_ib, main.c, wc_support.
 */
#define UCT_SEP_TD_ERR_NONE  UCS_ERR_NOT_IMPLEMENTED


/** Two thread domains on one UAR page. */
typedef struct uct_sep_td_pair {
    struct ibv_td   *td[2];
    struct ibv_pd   *pd[2];     /**< Parent domains with them */
    /** A bit for each domain without a user; for @ref uct_sep_td_half_get */
    unsigned        free_mask UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);
    /** In uct_sep_sharing_t::half_pairs or uct_sep_sharing_t::lenders */
    ucs_list_link_t list UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);
    /** Its user, and those that it is lent to */
    unsigned        refcount UCT_SEP_GUARDED_BY(uct_sep_sharing_mutex);
} uct_sep_td_pair_t;


/**
 * Allocate a pair for one user. What fails is logged at debug level.
 *
 * @return UCS_OK; UCT_SEP_TD_ERR_NONE or UCS_ERR_NO_RESOURCE (there is no UAR
 *         page), for which there may be a way out; UCS_ERR_NO_MEMORY or
 *         UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_td_pair_get(uct_sep_md_t *md, uct_sep_td_pair_t **pair_p)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/** Release it. It stays as long as somebody has it on loan. */
void uct_sep_td_pair_put(uct_sep_md_t *md, uct_sep_td_pair_t *pair)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/** The user of a pair rings the uUAR of its second domain only with its lock
 *  held, or not at all: so others may ring it, too, if there is no page left
 *  for them. */
void uct_sep_td_pair_lend(uct_sep_md_t *md, uct_sep_td_pair_t *pair)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/** End that, before the pair is released. Who has it on loan keeps it. */
void uct_sep_td_pair_unlend(uct_sep_td_pair_t *pair)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/**
 * Get one domain of a pair whose other one is for somebody else: from a pair
 * with a free domain, or from a new one.
 *
 * @param [out] index_p  Which one.
 *
 * @return As @ref uct_sep_td_pair_get.
 */
ucs_status_t uct_sep_td_half_get(uct_sep_md_t *md, uct_sep_td_pair_t **pair_p,
                                 unsigned *index_p)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/** Release it; with the second one, the pair. */
void uct_sep_td_half_put(uct_sep_md_t *md, uct_sep_td_pair_t *pair,
                         unsigned index)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/**
 * Get the domain that all workers of a memory domain share for work off the
 * data path: the first one of a pair, of which the second one is spare, or if
 * there is no UAR page left, the one that is lent, which is then both. In the
 * legacy regime there is none: queue pairs without a thread domain cost no UAR
 * page there. Nor is there one where there are no thread domains: such queue
 * pairs ring on the page that comes with the context.
 *
 * @param [out] pd_p  NULL if there is none.
 *
 * @return As @ref uct_sep_td_pair_get.
 */
ucs_status_t uct_sep_td_common_get(uct_sep_md_t *md, struct ibv_pd **pd_p)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/** @return The spare domain of those that are shared, NULL if there is none. */
struct ibv_pd *uct_sep_td_common_spare(const uct_sep_md_t *md)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);


/** Takes the lock of what is shared.
 *
 * @return Whether workers share that of a worker that had one for itself. */
int uct_sep_td_common_is_lent(const uct_sep_md_t *md);


/** Release it. */
void uct_sep_td_common_put(uct_sep_md_t *md)
        UCT_SEP_REQUIRES(uct_sep_sharing_mutex);

END_C_DECLS

#endif
