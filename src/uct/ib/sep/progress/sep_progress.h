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


/*
 * The eager channel: messages in rings, and those by send/receive that come in
 * order with them
 */

/** Level UCT_SEP_STACK_RINGS of progress: looks at the rings and, if they are
 *  empty, calls what is below. */
unsigned uct_sep_progress_eager(uct_iface_h tl_iface);


/**
 * A message with immediate data was received. It is handled at once, or once
 * those in the ring that were sent before it were.
 *
 * @param recv  Copied.
 */
void uct_sep_progress_eager_receive(uct_sep_iface_t *iface,
                                    const uct_sep_eager_recv_t *recv);

/** A control message without immediate data was received. It is handled in its
 *  turn, as uct_sep_progress_eager_receive() does.
 *
 *  @param length  With the header. */
void uct_sep_progress_eager_control(uct_sep_iface_t *iface, uint32_t qpn,
                                    const uct_sep_am_hdr_t *hdr,
                                    uint32_t length);


/*
 * An interface's share of its device's budget (sep_throttle.h). What is beyond
 * the share is taken from the credits of the completion queue as they come
 * back, or a few in advance. They are never negative if nothing is under way.
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
