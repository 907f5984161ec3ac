/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/ep/sep_evict.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/iface/sep_event.h>
#include <uct/ib/sep/iface/sep_postlist.h>

/*
 * Going to sleep: an event is asked for if there is nothing to poll.
 */

/* Whether messages may come into rings meanwhile, which raise no event */
static ucs_status_t uct_sep_progress_arm_eager(uct_sep_iface_t *iface)
{
    uct_sep_eager_sleep_t sleep = uct_sep_eager_prepare_sleep(iface);
    uint64_t nsec               = 0;

    if (sleep == UCT_SEP_EAGER_AWAKE) {
        return UCS_ERR_BUSY;
    }

    if (sleep == UCT_SEP_EAGER_DOZE) {
        nsec = UCT_SEP_EAGER_DOZE_NSEC;
    }

    /* Without a timer, the worker stays awake until there are no rings */
    return (uct_sep_event_set_timer(iface, nsec) == UCS_OK) ? UCS_OK :
                                                              UCS_ERR_BUSY;
}

ucs_status_t uct_sep_progress_arm(uct_iface_h tl_iface, unsigned events)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    ucs_status_t status;
    unsigned count;
    int event_fd;

    /* Cleared before looking at the list, so that nothing is lost in between.
     * Handled here, because the interface's progress does not. */
    uct_sep_event_drain(iface);

    /* Who has asked for receives before may still sleep for them */
    status = ((events & UCT_EVENT_RECV) || iface->event.is_timed) ?
             uct_sep_progress_arm_eager(iface) : UCS_OK;
    uct_sep_postlist_ring_any(iface); /* With what this has posted */
    if (status != UCS_OK) {
        return status;
    }

    /* What is left waits for what only progress brings about, or for sends */
    if ((uct_sep_link_handle_events(iface) > 0) ||
        !uct_sep_link_waits_for_sends(iface) ||
        uct_sep_evict_is_waiting(iface)) {
        return UCS_ERR_BUSY;
    }

    if (!ucs_list_is_empty(&iface->tx.fc_due) ||
        uct_sep_link_has_events(iface)) {
        /* Peers wait for grants, or for the end of a connection, which wait for
         * a completion */
        events |= UCT_EVENT_SEND_COMP;
    }

    status = uct_sep_cq_read_events(&iface->cq, &count);
    if (status != UCS_OK) {
        return status;
    }

    if (iface->own_cq.cq != NULL) {
        status = uct_sep_cq_read_events(&iface->own_cq, &count);
        if (status != UCS_OK) {
            return status;
        }

        status = iface->api->cq_arm(iface, &iface->own_cq,
                                    (events & UCT_EVENT_SEND_COMP) ?
                                    UCT_SEP_API_ARM_ANY : UCT_SEP_API_ARM_NONE);
        if (status != UCS_OK) {
            return status;
        }
    }

    if (uct_sep_iface_shares_cq(iface) && (events & UCT_EVENT_SEND_COMP)) {
        status = uct_sep_event_fd_get(tl_iface, &event_fd);
        if (status == UCS_OK) {
            status = uct_sep_cq_member_arm(&iface->cq_member,
                                           iface->event.event_fd);
        }
        if (status != UCS_OK) {
            return status;
        }
    }

    return iface->api->cq_arm(iface, &iface->cq,
                              (events & UCT_EVENT_SEND_COMP) ?
                              UCT_SEP_API_ARM_ANY : UCT_SEP_API_ARM_SOLICITED);
}
