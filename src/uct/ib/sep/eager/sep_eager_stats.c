/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/eager/sep_eager_stats.h>
#include <uct/ib/sep/iface/sep_fc.h>

#include <ucs/vfs/base/vfs_obj.h>
#include <inttypes.h>


const char *uct_sep_eager_stat_names[] = {
    [UCT_SEP_EAGER_STAT_RING_SENT]     = "ring_sent",
    [UCT_SEP_EAGER_STAT_RING_RECEIVED] = "ring_received",
    [UCT_SEP_EAGER_STAT_SENT]          = "sent",
    [UCT_SEP_EAGER_STAT_RECEIVED]      = "received",
    [UCT_SEP_EAGER_STAT_FALLBACKS]     = "fallbacks",
    [UCT_SEP_EAGER_STAT_FULL]          = "ring_full",
    [UCT_SEP_EAGER_STAT_WRITES]        = "credit_writes",
    [UCT_SEP_EAGER_STAT_WITHHELD]      = "withheld",
    [UCT_SEP_EAGER_STAT_RINGS]         = "rings",
    [UCT_SEP_EAGER_STAT_ACCEPTED]      = "rings_of_peers"
};


void uct_sep_eager_stats_sent(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uint16_t seq = uct_sep_ring_tx_seq(&txwq->ring);

    if (uct_sep_ring_tx_is_open(&txwq->ring)) {
        iface->eager.stats.ring_sent += (uint16_t)(seq - txwq->eager->counted);
        txwq->eager->counted          = seq;
    }
}

void uct_sep_eager_stats_start(uct_sep_txwq_t *txwq)
{
    txwq->eager->counted = uct_sep_ring_tx_seq(&txwq->ring);
}

void uct_sep_eager_stats_received(uct_sep_iface_t *iface,
                                  uct_sep_eager_ring_t *ring)
{
    uint64_t count = uct_sep_ring_rx_count(&ring->rx);

    iface->eager.stats.ring_received += count - ring->counted;
    ring->counted                     = count;
}

/* Messages received in all rings; changes nothing */
static uint64_t
uct_sep_eager_stats_num_received(const uct_sep_iface_t *iface)
{
    uint64_t count = iface->eager.stats.ring_received;
    const uct_sep_eager_ring_t *ring;
    unsigned i;

    for (i = 0; (iface->eager.rings != NULL) &&
                (i < iface->config.eager.poll_set); ++i) {
        ring = &iface->eager.rings[i];
        if (ring->txwq != NULL) {
            count += uct_sep_ring_rx_count(&ring->rx) - ring->counted;
        }
    }
    return count;
}

/* As of when it was last added up, but for messages in rings of ours */
static uint64_t uct_sep_eager_stats_value(const uct_sep_iface_t *iface,
                                          uct_sep_eager_stat_t stat)
{
    const uct_sep_eager_stats_t *stats = &iface->eager.stats;
    const uint64_t values[]            = {
        [UCT_SEP_EAGER_STAT_RING_SENT] = stats->ring_sent,
        [UCT_SEP_EAGER_STAT_SENT]      = iface->count.sent,
        [UCT_SEP_EAGER_STAT_RECEIVED]  = iface->count.received,
        [UCT_SEP_EAGER_STAT_FALLBACKS] = stats->fallbacks,
        [UCT_SEP_EAGER_STAT_FULL]      = stats->full,
        [UCT_SEP_EAGER_STAT_WRITES]    = stats->writes,
        [UCT_SEP_EAGER_STAT_WITHHELD]  = stats->withheld,
        [UCT_SEP_EAGER_STAT_RINGS]     = iface->eager.num_rings,
        [UCT_SEP_EAGER_STAT_ACCEPTED]  = stats->accepted
    };

    /* Only this one walks the rings */
    return (stat == UCT_SEP_EAGER_STAT_RING_RECEIVED) ?
           uct_sep_eager_stats_num_received(iface) : values[stat];
}

void uct_sep_eager_stats_get(uct_sep_iface_t *iface, uint64_t *values)
{
    uint64_t sent = 0;
    uct_sep_txwq_t *txwq;
    int stat;

    ucs_list_for_each(txwq, &iface->conn.active, conn.list) {
        uct_sep_eager_stats_sent(iface, txwq);
        sent += uct_sep_fc_num_sent(iface, txwq);
    }

    uct_sep_fc_count_received(iface);
    for (stat = 0; stat < UCT_SEP_EAGER_STAT_LAST; ++stat) {
        values[stat] = uct_sep_eager_stats_value(iface, stat);
    }
    values[UCT_SEP_EAGER_STAT_SENT] += sent;
}

static void uct_sep_eager_stats_show(void *obj, ucs_string_buffer_t *strb,
                                     void *arg_ptr, uint64_t arg_u64)
{
    ucs_string_buffer_appendf(strb, "%" PRIu64 "\n",
                              uct_sep_eager_stats_value(arg_ptr, arg_u64));
}

void uct_sep_eager_stats_vfs_init(uct_sep_iface_t *iface, void *obj)
{
    int stat;

    for (stat = 0; stat < UCT_SEP_EAGER_STAT_LAST; ++stat) {
        ucs_vfs_obj_add_ro_file(obj, uct_sep_eager_stats_show, iface, stat,
                                "eager/%s", uct_sep_eager_stat_names[stat]);
    }
}
