/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_IFACE_OPEN_H
#define UCT_SEP_IFACE_OPEN_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_iface_open.h
 *
 * Interface with queues of its own: it is opened and closed here, and here are
 * the operations that concern all of it.
 */

/**
 * Open an interface with queues of its own, whatever the category; as
 * uct_iface_open().
 */
ucs_status_t uct_sep_iface_open(uct_md_h md, uct_worker_h worker,
                                const uct_iface_params_t *params,
                                const uct_iface_config_t *config,
                                uct_iface_h *iface_p);


/** Its class. */
UCS_CLASS_DECLARE(uct_sep_iface_t, uct_md_h, uct_worker_h,
                  const uct_iface_params_t*, const uct_iface_config_t*);


/** The part of the port's bandwidth that a connection can have: ports that are
 *  one by link aggregation carry a path each. */
double uct_sep_iface_path_ratio(uct_iface_h tl_iface);


/** Show what there is to see of it, in UCX's virtual file system, as a part of
 *  an interface: itself, or that of a worker on a hub. */
void uct_sep_iface_show(uct_sep_iface_t *iface, uct_iface_h tl_iface);


/** Flush and fence all that the interface has sent; of uct_iface_ops_t. */
ucs_status_t uct_sep_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                 uct_completion_t *comp);
ucs_status_t uct_sep_iface_fence(uct_iface_h tl_iface, unsigned flags);

END_C_DECLS

#endif
