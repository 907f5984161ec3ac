/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_PROGRESS_H
#define UCT_SEP_PROGRESS_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_progress.h
 *
 * Loops that poll for completions; of uct_iface_ops_t. Opening an interface
 * chooses one of them: by the way of receiving, for each of which all are
 * compiled, and by where its sends complete.
 */

/** Progress functions of a mode of receiving. */
typedef struct uct_sep_progress_funcs {
    uct_iface_progress_func_t plain; /**< Sends complete in the same queue */
    uct_iface_progress_func_t own;   /**< In one in the worker's own context */
    uct_iface_progress_func_t group; /**< In one that workers share */
} uct_sep_progress_funcs_t;


/** All of them. */
extern const uct_sep_progress_funcs_t
uct_sep_progress_funcs[UCT_SEP_RX_MODE_LAST];


#define UCT_SEP_PROGRESS_DECLARE(_name, _mode) \
    unsigned uct_sep_progress_##_name(uct_iface_h tl_iface); \
    unsigned uct_sep_progress_own_##_name(uct_iface_h tl_iface); \
    unsigned uct_sep_progress_group_##_name(uct_iface_h tl_iface);

UCT_SEP_RX_MODE_FOREACH(UCT_SEP_PROGRESS_DECLARE)


/**
 * Ask for an event on the file descriptor (sep_event.h).
 *
 * @return UCS_OK, UCS_ERR_BUSY if there is something to be handled first, or
 *         UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_progress_arm(uct_iface_h tl_iface, unsigned events);

END_C_DECLS

#endif
