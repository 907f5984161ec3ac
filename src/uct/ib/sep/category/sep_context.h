/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CONTEXT_H
#define UCT_SEP_CONTEXT_H

#include <uct/ib/sep/md/sep_own_keys.h>
#include <ucs/datastruct/list.h>

BEGIN_C_DECLS

/**
 * @file sep_context.h
 *
 * Device context of one worker, next to that of the memory domain (category
 * "mpi_everywhere"). Only what sends is in it: receive queues and whatever
 * remote sides access stay in the memory domain's context, so that one remote
 * key is good for all workers, including those that come later.
 *
 * Sending from the user's memory needs a local key of the worker's own
 * protection domain, which is made when it is first needed.
 */

/** Context of a worker. */
struct uct_sep_context {
    struct ibv_context *context;
    uct_sep_async_t    async;  /**< Events */
    struct ibv_pd      *pd;
    uct_sep_uuars_t    uuars;
    uct_sep_own_keys_t keys;
    /** In uct_sep_sharing_t */
    ucs_list_link_t    list UCT_SEP_GUARDED_BY(uct_sep_own_mutex);
};


/**
 * Open a context on a memory domain's device.
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY, or UCS_ERR_NO_RESOURCE if the device has
 *         none left, which is logged at debug level only.
 */
ucs_status_t uct_sep_context_open(uct_sep_md_t *md, uct_sep_context_t **own_p);


/** Close it, with the local keys in it. */
void uct_sep_context_close(uct_sep_md_t *md, uct_sep_context_t *own);

END_C_DECLS

#endif
