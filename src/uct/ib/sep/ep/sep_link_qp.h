/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_LINK_QP_H
#define UCT_SEP_LINK_QP_H

#include <uct/ib/sep/conn/sep_conn.h>
#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_link_qp.h
 *
 * Queue pairs of a connection: created, connected, torn down. One QP sends and
 * receives, unless one of the two sides has a device context of its own: then
 * one QP sends and another, the responder, receives.
 */

/**
 * Create the QPs of a connection, in the INIT state.
 *
 * @param is_split  Whether a QP other than the sending one receives.
 * @param txwq      Filled in; release with uct_sep_link_txwq_close().
 *
 * @return UCS_OK, or an error after a message.
 */
ucs_status_t
uct_sep_link_txwq_open(uct_sep_iface_t *iface, int is_split,
                       uct_sep_txwq_t *txwq);


/**
 * Destroy them.
 *
 * @param has_sent  Whether anything was ever posted.
 */
void uct_sep_link_txwq_close(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                             int has_sent);


/**
 * Connect them to the peer's; then they can be used.
 *
 * @param psn      First packet sequence number of what is sent.
 * @param remote   The peer's description of its QPs.
 * @param ah_attr  Path to the peer.
 *
 * @return UCS_OK, or an error after a message.
 */
ucs_status_t
uct_sep_link_txwq_connect(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                          uint32_t psn, const uct_sep_conn_qp_info_t *remote,
                          const struct ibv_ah_attr *ah_attr);


/**
 * Bring a QP to the error state, so that all that is outstanding completes.
 */
void uct_sep_link_qp_to_error(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** @return Number of the QP that receives. */
static inline uint32_t uct_sep_link_recv_qpn(const uct_sep_txwq_t *txwq)
{
    return (txwq->conn.responder != NULL) ? txwq->conn.responder->qp_num :
                                            txwq->qpn;
}


/** @return Whether the device has failed: nothing completes any more. */
static inline int uct_sep_link_is_dead(const uct_sep_iface_t *iface)
{
    return uct_sep_async_is_fatal(&iface->conn.async.main) ||
           uct_sep_async_is_fatal(&iface->conn.async.own);
}

END_C_DECLS

#endif
