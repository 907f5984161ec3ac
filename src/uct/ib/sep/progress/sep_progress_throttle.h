/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_PROGRESS_THROTTLE_H
#define UCT_SEP_PROGRESS_THROTTLE_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_progress_throttle.h
 *
 * An interface's share of its device's budget (sep_throttle.h). What is beyond
 * the share is taken from the credits of the completion queue as they come
 * back, never below zero: nothing that is under way depends on it.
 */

/** Have an interface keep to its share, if it is configured.
 *
 *  @return UCS_OK, or UCS_ERR_NO_MEMORY after a message. */
ucs_status_t uct_sep_progress_throttle_init(uct_sep_iface_t *iface);

/** Give up the share. */
void uct_sep_progress_throttle_cleanup(uct_sep_iface_t *iface);


/** Level UCT_SEP_STACK_SHARE of progress. */
unsigned uct_sep_progress_throttle(uct_iface_h tl_iface);

END_C_DECLS

#endif
