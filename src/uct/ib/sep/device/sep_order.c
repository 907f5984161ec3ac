/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/device/sep_order.h>
#include <uct/ib/sep/device/sep_device.h>

#include <infiniband/mlx5dv.h>
#include <ucs/debug/log.h>
#include <stdint.h>
#include <string.h>


/* mlx5 PRM "HCA Capabilities" (general, current): byte and bit of
 * qp_data_in_order, whether QUERY_QP tells */
#define UCT_SEP_HCA_CAP_GENERAL_CUR          ((0 << 1) | 1)
#define UCT_SEP_GENERAL_CAPS_DATA_IN_ORDER   12
#define UCT_SEP_GENERAL_CAPS_DATA_IN_ORDER_BIT 0x20

/* Firmware command QUERY_QP, mlx5 PRM: sizes of command and reply; where the
 * number of the queue pair (24 bits) and its context are, and data_in_order in
 * that */
#define UCT_SEP_CMD_OP_QUERY_QP              0x50b
#define UCT_SEP_QUERY_QP_IN_LEN              16
#define UCT_SEP_QUERY_QP_IN_QPN              9
#define UCT_SEP_QUERY_QP_OUT_LEN             272
#define UCT_SEP_QUERY_QP_OUT_QPC             24
#define UCT_SEP_QPC_DATA_IN_ORDER            11
#define UCT_SEP_QPC_DATA_IN_ORDER_BIT        0x20


#if defined(__x86_64__) || defined(__i386__)
static uct_sep_order_t uct_sep_order_query_qpc(struct ibv_qp *qp)
{
    uint8_t cmd[UCT_SEP_QUERY_QP_IN_LEN]    = {0};
    uint8_t reply[UCT_SEP_QUERY_QP_OUT_LEN] = {0};
    const uint8_t *qpc                      = reply + UCT_SEP_QUERY_QP_OUT_QPC;
    uint8_t caps[UCT_SEP_HCA_CAP_LEN];
    int ret;

    if ((uct_sep_device_query_caps(qp->context, UCT_SEP_HCA_CAP_GENERAL_CUR,
                                   caps) != UCS_OK) ||
        !(caps[UCT_SEP_GENERAL_CAPS_DATA_IN_ORDER] &
          UCT_SEP_GENERAL_CAPS_DATA_IN_ORDER_BIT)) {
        return UCT_SEP_ORDER_UNKNOWN;
    }

    cmd[0]                           = UCT_SEP_CMD_OP_QUERY_QP >> 8;
    cmd[1]                           = UCT_SEP_CMD_OP_QUERY_QP & 0xff;
    cmd[UCT_SEP_QUERY_QP_IN_QPN]     = qp->qp_num >> 16;
    cmd[UCT_SEP_QUERY_QP_IN_QPN + 1] = qp->qp_num >> 8;
    cmd[UCT_SEP_QUERY_QP_IN_QPN + 2] = qp->qp_num;
    ret = mlx5dv_devx_qp_query(qp, cmd, sizeof(cmd), reply, sizeof(reply));
    if (ret != 0) {
        ucs_debug("%s: QUERY_QP(0x%x) failed: %s",
                  ibv_get_device_name(qp->context->device), qp->qp_num,
                  strerror(ret));
        return UCT_SEP_ORDER_UNKNOWN;
    }

    return (qpc[UCT_SEP_QPC_DATA_IN_ORDER] & UCT_SEP_QPC_DATA_IN_ORDER_BIT) ?
           UCT_SEP_ORDER_KEPT : UCT_SEP_ORDER_BROKEN;
}
#endif

uct_sep_order_t uct_sep_order_query(struct ibv_qp *qp)
{
#if defined(__x86_64__) || defined(__i386__)
#  if HAVE_DECL_IBV_QUERY_QP_DATA_IN_ORDER
    if (ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) > 0) {
        return UCT_SEP_ORDER_KEPT;
    }
#  endif

    return uct_sep_order_query_qpc(qp);
#else
    return UCT_SEP_ORDER_UNKNOWN;
#endif
}
