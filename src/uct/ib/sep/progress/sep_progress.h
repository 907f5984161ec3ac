/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_PROGRESS_H
#define UCT_SEP_PROGRESS_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_progress.h
 *
 * Loops that poll for completions; of uct_iface_ops_t. Opening an interface
 * chooses one of them.
 */

/** Poll the completion queue for receives, and for sends unless they have
 *  another one. */
unsigned uct_sep_progress(uct_iface_h tl_iface);


/** The same, with another completion queue for sends in the worker's context.
 */
unsigned uct_sep_progress_own(uct_iface_h tl_iface);


/** The same for a worker that shares its send completion queue. */
unsigned uct_sep_progress_group(uct_iface_h tl_iface);


/**
 * Ask for an event on the file descriptor (sep_event.h).
 *
 * @return UCS_OK, UCS_ERR_BUSY if there is something to be handled first, or
 *         UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_progress_arm(uct_iface_h tl_iface, unsigned events);

END_C_DECLS

#endif
