/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/eager/sep_eager_order.h>
#include <uct/ib/sep/port/sep_ar.h>

#include <ucs/debug/log.h>


/* What is said once, however many peers there are: who has asked for rings and
 * gets none wants to know why */
static void
uct_sep_eager_order_tell(uct_sep_iface_t *iface, int is_refused,
                         const char *what, const char *why)
{
    int is_asked          = (iface->config.eager.mode == UCS_YES);
    ucs_log_level_t level = (is_asked && is_refused) ? UCS_LOG_LEVEL_DIAG :
                                                       UCS_LOG_LEVEL_INFO;

    if (!iface->eager.is_order_told) {
        iface->eager.is_order_told = 1;
        ucs_log(level, "%s: UCX_SEP_EAGER=%s: %s: %s", iface->port.name,
                is_asked ? "y" : "auto", what, why);
    }
}

/* Asked once: the service level stays */
static int uct_sep_eager_order_has_ar(uct_sep_iface_t *iface)
{
    if (iface->eager.ar == UCT_SEP_EAGER_AR_UNKNOWN) {
        iface->eager.ar = uct_sep_ar_is_used(&uct_sep_iface_md(iface)->dev,
                                             &iface->port) ?
                          UCT_SEP_EAGER_AR_USED : UCT_SEP_EAGER_AR_NONE;
    }

    return iface->eager.ar == UCT_SEP_EAGER_AR_USED;
}

static const char uct_sep_eager_order_ar[] =
        "the service level of the port has adaptive routing, with which "
        "packets overtake each other: set UCX_SEP_SL or UCX_SEP_AR_ENABLE=n";

int uct_sep_eager_order_offers(uct_sep_iface_t *iface,
                               const uct_sep_txwq_t *txwq,
                               uint32_t *slot_size_p)
{
    struct ibv_qp *qp = (txwq->conn.responder != NULL) ?
                        txwq->conn.responder : txwq->conn.qp;
    uct_sep_order_t order;

    if (uct_sep_eager_order_has_ar(iface)) {
        uct_sep_eager_order_tell(iface, 1, "no rings are offered",
                                 uct_sep_eager_order_ar);
        return 0;
    }

    order        = uct_sep_order_query(qp);
    *slot_size_p = uct_sep_ring_slot_size(iface->config.eager.slot_size,
                                          128u << txwq->conn.path_mtu,
                                          order == UCT_SEP_ORDER_KEPT);
    switch (order) {
    case UCT_SEP_ORDER_KEPT:
        ucs_debug("%s: QP 0x%x: data are placed in order: slots of %u bytes",
                  iface->port.name, qp->qp_num, *slot_size_p);
        return 1;
    case UCT_SEP_ORDER_BROKEN:
        uct_sep_eager_order_tell(iface, 1, "no rings are offered",
                                 "the adapter does not place the data of "
                                 "RDMA writes in order (data_in_order of the "
                                 "queue pair)");
        return 0;
    default:
        if (iface->config.eager.mode != UCS_YES) {
            uct_sep_eager_order_tell(iface, 1, "no rings are offered",
                                     "nobody can tell whether the adapter "
                                     "places data in order (DEVX, firmware "
                                     "with qp_data_in_order, and x86 are "
                                     "needed). UCX_SEP_EAGER=y does without");
            return 0;
        }
        uct_sep_eager_order_tell(iface, 0, "slots have one packet at most",
                                 "nobody can tell whether the adapter places "
                                 "data in order (DEVX, firmware with "
                                 "qp_data_in_order, and x86 are needed)");
        return 1;
    }
}

int uct_sep_eager_order_accepts(uct_sep_iface_t *iface)
{
    if (!uct_sep_eager_order_has_ar(iface)) {
        return 1;
    }

    uct_sep_eager_order_tell(iface, 1, "rings are neither offered nor accepted",
                             uct_sep_eager_order_ar);
    return 0;
}
