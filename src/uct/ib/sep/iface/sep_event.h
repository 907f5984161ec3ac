/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EVENT_H
#define UCT_SEP_EVENT_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_event.h
 *
 * The file descriptor an application sleeps on: an epoll set of the completion
 * channels, an event that says that a connection was made or lost, for the main
 * thread to handle, and a timer for what raises no event. Asking for an event
 * is in sep_progress.h.
 */

/**
 * Make a descriptor to sleep on, with an event that others can signal.
 *
 * @param name  For messages.
 * @param fds   Other descriptors for which it wakes; some may be -1.
 *
 * @return UCS_OK, or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t
uct_sep_event_open(const char *name, const int *fds, unsigned num_fds,
                   int *epoll_fd_p, int *event_fd_p);

/** Signal the event, or clear it. */
void uct_sep_event_write(const char *name, int event_fd);
void uct_sep_event_read(const char *name, int event_fd);


/** Get the file descriptor, which the first call creates. Of
 *  uct_iface_ops_t. */
ucs_status_t uct_sep_event_fd_get(uct_iface_h tl_iface, int *fd_p);


/** Wake the application if it sleeps on the file descriptor. Async lock. */
void uct_sep_event_signal(uct_sep_iface_t *iface);


/** Clear the signal: the application is about to look for itself. */
void uct_sep_event_drain(uct_sep_iface_t *iface);


/**
 * Wake the application after a time, once, whatever else happens until then.
 * The descriptor stays ready until the next call. Main thread.
 *
 * @param nsec  Nanoseconds, or 0: don't, any more.
 *
 * @return UCS_OK, or UCS_ERR_IO_ERROR after a message: there is no timer.
 */
ucs_status_t uct_sep_event_set_timer(uct_sep_iface_t *iface, uint64_t nsec);


/** There is nothing yet on which to sleep. */
void uct_sep_event_init(uct_sep_iface_t *iface);


/** Release what these functions have created. */
void uct_sep_event_cleanup(uct_sep_iface_t *iface);

END_C_DECLS

#endif
