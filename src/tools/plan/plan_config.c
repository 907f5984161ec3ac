/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/plan/plan_config.h>

#include <uct/ib/sep/base/sep_budget.h>
#include <uct/ib/sep/compat/sep_compat_ucs.h>
#include <uct/ib/sep/conn/sep_cm_int.h>
#include <uct/ib/sep/ep/sep_ep.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/throttle/sep_throttle.h>
#include <uct/ib/sep/verbs/sep_verbs.h>
#include <ucs/config/parser.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

#include <stdio.h>
#include <string.h>

/* Segments of a work request that binds a memory window, with the control
 * segment: libmlx5 verbs.c, _sq_overhead */
#define SEP_PLAN_WINDOW_SEGMENTS 192


/* A process that is alone on the node may hold what both allow */
static void sep_plan_config_budget(const uct_sep_iface_config_t *config,
                                   sep_plan_config_t *plan)
{
    unsigned long max = ucs_min(uct_sep_budget_number(config->max_qps),
                                uct_sep_budget_number(config->max_qps_node));

    plan->max_qps = (max == UCS_ULUNITS_INF) ? 0 : max;
}

static void sep_plan_config_sizes(sep_plan_config_t *plan)
{
    size_t length = ucs_roundup_pow2(plan->rx_queue_len + 1);

    /* Interface and what it allocates: buffer pointers of the receive queue,
     * connection manager with its table of packets */
    plan->sizes.worker      = sizeof(uct_sep_iface_t) +
                              (length * (sizeof(void*) + sizeof(uint16_t))) +
                              sizeof(uct_sep_cm_t) +
                              (plan->cm_rx_queue_len *
                               sizeof(uct_sep_cm_rx_entry_t));
    plan->sizes.connection  = sizeof(uct_sep_link_t) + sizeof(uct_sep_txwq_t);
    plan->sizes.endpoint    = sizeof(uct_sep_ep_t);
    /* Descriptor, pool's pointer, and the alignment of the payload */
    plan->sizes.rx_desc     = 3 * sizeof(uint64_t);
    plan->sizes.huge_page   = ucs_is_thp_enabled() ?
                              ucs_get_huge_page_size() : 0;
    plan->sizes.cm_receive  = UCT_SEP_CM_RX_STRIDE;
    plan->sizes.cm_scrap    = UCT_SEP_CM_RX_SCRAP;
    plan->sizes.cm_recv_sge = UCT_SEP_CM_RX_SGE;
    plan->sizes.cm_inline   = sizeof(uct_sep_conn_packet_t);
    plan->sizes.cm_tx_len   = UCT_SEP_CM_TX_QUEUE_LEN;
    plan->sizes.cq_headroom = UCT_SEP_CQ_HEADROOM;
}

void sep_plan_config_take(const uct_sep_iface_config_t *config,
                          uint32_t throttle, sep_plan_config_t *plan_p)
{
    sep_plan_config_init(plan_p);
    plan_p->cq_sharing      = config->cq_sharing;
    plan_p->tx_queue_len    = config->tx.queue_len;
    plan_p->tx_min_inline   = config->tx.min_inline;
    if (config->api != UCT_SEP_API_DV) {
        /* Any operation through libibverbs: see sep_verbs.c. Without being told
         * which, libmlx5 has room for memory windows as well. */
        plan_p->tx_queue_len  = ucs_roundup_pow2(plan_p->tx_queue_len);
        plan_p->tx_segments   = (config->api == UCT_SEP_API_WR) ?
                                UCT_SEP_CTRL_LEN + UCT_SEP_RADDR_LEN +
                                sizeof(struct mlx5_wqe_atomic_seg) :
                                SEP_PLAN_WINDOW_SEGMENTS;
        plan_p->tx_max_sge    = UCT_SEP_VERBS_MAX_SGE;
        plan_p->tx_min_inline = UCT_SEP_VERBS_MAX_INLINE;
    }
    sep_plan_config_budget(config, plan_p);
    plan_p->tx_cq_len       = config->tx.cq_len;
    plan_p->tx_throttle     = throttle;
    plan_p->rx_queue_len    = config->rx.queue_len;
    plan_p->rx_queue_fill   = ucs_min(config->rx.queue_fill,
                                      config->rx.queue_len);
    plan_p->seg_size        = config->seg_size;
    plan_p->cm_rx_queue_len = config->cm.rx_queue_len;
    plan_p->category        = (sep_plan_category_t)
            uct_sep_category_wanted((uct_sep_category_t)config->category, 1);
    sep_plan_config_sizes(plan_p);
}

ucs_status_t sep_plan_config_read(sep_plan_config_t *plan_p)
{
    uct_sep_iface_config_t config;
    ucs_status_t status;
    uint32_t throttle;

    memset(&config, 0, sizeof(config));
    status = uct_sep_compat_config_fill(&config, uct_sep_config_table,
                                        UCT_SEP_CONFIG_PREFIX);
    if (status != UCS_OK) {
        fprintf(stderr, "a variable UCX_SEP_* has a wrong value\n");
        return status;
    }

    /* Limits of all devices: those of indices, which have 16 bits */
    status = uct_sep_config_check(&config, 1u << 15, (1u << 15) - 1);
    if (status == UCS_OK) {
        status = uct_sep_throttle_parse(config.tx.throttle, &throttle);
    }
    if (status == UCS_OK) {
        sep_plan_config_take(&config, throttle, plan_p);
    }

    ucs_config_parser_release_opts(&config, uct_sep_config_table);
    return status;
}
