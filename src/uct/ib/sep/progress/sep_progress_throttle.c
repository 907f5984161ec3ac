/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/iface/sep_stack.h>

/* Basic blocks that have completed since the last time. A queue of more than
 * 65535 between two reports, or one that is retired, is counted too low. */
static uint32_t uct_sep_progress_throttle_count(uct_sep_iface_t *iface,
                                                unsigned *num_queues_p)
{
    unsigned num_queues = 0;
    uint32_t num_bb     = 0;
    uct_sep_txwq_t *txwq;

    ucs_list_for_each(txwq, &iface->conn.active, conn.list) {
        num_bb += uct_sep_txwq_report(txwq);
        ++num_queues;
    }

    *num_queues_p = num_queues;
    return num_bb;
}

static void uct_sep_progress_throttle_set(uct_sep_iface_t *iface,
                                          uint32_t share)
{
    int32_t held = iface->config.cq_len -
                   (int32_t)ucs_min(share, (uint32_t)iface->config.cq_len);
    int32_t more = held - iface->throttle.held;

    /* What is under way comes back first. Who has more to send has posted it
     * before that is seen here: some is taken in advance. */
    more                  = ucs_min(more,
                                    ucs_max(iface->tx.cq_credits +
                                            UCT_SEP_THROTTLE_MAX_ADVANCE, 0));
    iface->throttle.held += more;
    uct_sep_iface_add_cq_credits(iface, -more);

    /* Those who wait for credits may wait for these: no completion need be due
     * any more */
    uct_sep_dispatch_unstall(iface);
}

static UCS_F_NOINLINE void
uct_sep_progress_throttle_report(uct_sep_iface_t *iface)
{
    uct_sep_throttle_dev_t *dev = iface->throttle.dev;
    unsigned num_queues;
    uint32_t num_bb;

    if (!iface->throttle.is_user) {
        iface->throttle.is_user = 1;
        uct_sep_throttle_join(dev);
    }

    num_bb = uct_sep_progress_throttle_count(iface, &num_queues);
    uct_sep_throttle_report(dev, num_bb, iface->config.cq_len);
    iface->throttle.countdown = ucs_min(ucs_max(num_queues,
                                                UCT_SEP_THROTTLE_MIN_REPORT),
                                        UCT_SEP_THROTTLE_MAX_REPORT);
    uct_sep_progress_throttle_set(iface, uct_sep_throttle_share(dev));
}

static UCS_F_NOINLINE void
uct_sep_progress_throttle_leave(uct_sep_iface_t *iface)
{
    iface->throttle.countdown = 0;
    if (iface->throttle.is_user) {
        iface->throttle.is_user = 0;
        uct_sep_throttle_leave(iface->throttle.dev);
    }
}

ucs_status_t uct_sep_progress_throttle_init(uct_sep_iface_t *iface)
{
    ucs_status_t status;

    iface->throttle.dev = NULL;
    if (iface->config.throttle == UCT_SEP_THROTTLE_OFF) {
        return UCS_OK;
    }

    status = uct_sep_throttle_get(uct_sep_iface_md(iface)->dev.name,
                                  iface->config.throttle,
                                  &iface->throttle.dev);
    if (status != UCS_OK) {
        return status;
    }

    iface->throttle.held      = 0;
    iface->throttle.countdown = 0;
    iface->throttle.idle      = 0;
    iface->throttle.is_user   = 0;
    uct_sep_stack_set(iface, UCT_SEP_STACK_SHARE, uct_sep_progress_throttle);
    uct_sep_progress_throttle_set(iface,
                                  uct_sep_throttle_share(iface->throttle.dev));
    return UCS_OK;
}

void uct_sep_progress_throttle_cleanup(uct_sep_iface_t *iface)
{
    if (iface->throttle.dev != NULL) {
        uct_sep_progress_throttle_leave(iface);
        uct_sep_throttle_put(iface->throttle.dev);
    }
}

unsigned uct_sep_progress_throttle(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    unsigned count         = uct_sep_stack_next(iface,
                                                    UCT_SEP_STACK_SHARE);

    if (count == 0) {
        if (++iface->throttle.idle == UCT_SEP_THROTTLE_MAX_IDLE) {
            uct_sep_progress_throttle_leave(iface);
        }
        return 0;
    }

    iface->throttle.idle       = 0;
    iface->throttle.countdown -= count;
    if (iface->throttle.countdown <= 0) {
        uct_sep_progress_throttle_report(iface);
    }

    return count;
}
