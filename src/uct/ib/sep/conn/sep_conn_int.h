/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CONN_INT_H
#define UCT_SEP_CONN_INT_H

#include <uct/ib/sep/conn/sep_conn.h>

BEGIN_C_DECLS

/**
 * @file sep_conn_int.h
 *
 * Steps of the state machine, shared by sep_conn.c (what the user and the clock
 * do) and sep_conn_recv.c (what packets do). For nobody else.
 */

/** Nothing is to be done yet. */
void uct_sep_conn_out_init(uct_sep_conn_out_t *out);


/** Connect our QP to the peer's.
 *
 *  @return UCS_OK, or the error of qp_connect. */
ucs_status_t uct_sep_conn_bind(uct_sep_conn_env_t *env,
                               uct_sep_conn_t *conn, uint32_t epoch,
                               const uct_sep_conn_qp_info_t *remote);


/** The connection can be used: both QPs are connected. */
void uct_sep_conn_established(uct_sep_conn_env_t *env,
                              uct_sep_conn_t *conn,
                              uct_sep_conn_out_t *out);


/** Give up the attempt. Who wants the connection is told. */
void uct_sep_conn_fail(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                       ucs_status_t status, uct_sep_conn_out_t *out);


/** Answer REJ. */
void uct_sep_conn_reject(uint32_t epoch, uint64_t nonce,
                         uct_sep_conn_rej_t reason,
                         uct_sep_conn_out_t *out);


/** Answer DREP: our QP of @a gone_epoch is gone. */
void uct_sep_conn_reply_gone(uint32_t gone_epoch, uint32_t epoch,
                             uint64_t nonce, uct_sep_conn_out_t *out);


/** REQ_SENT, or IDLE with a QP just made: take the peer's offer, whose nonce is
 *  in remote_nonce. */
void uct_sep_conn_answer(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                         uint32_t epoch,
                         const uct_sep_conn_qp_info_t *remote,
                         ucs_time_t now, uct_sep_conn_out_t *out);


/** IDLE: make a QP for the peer's offer. */
void uct_sep_conn_accept(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                         uint32_t epoch,
                         const uct_sep_conn_qp_info_t *remote,
                         ucs_time_t now, uct_sep_conn_out_t *out);


/** The peer has lost or never had what our QP is connected to. If we want the
 *  connection ourselves, offer a new QP; two sides cannot do this to each other
 *  for ever. */
void uct_sep_conn_retry_anew(uct_sep_conn_env_t *env,
                             uct_sep_conn_t *conn, ucs_time_t now,
                             uct_sep_conn_out_t *out);


/** The peer has given up the connection: the user is told to let go, or has put
 *  it down already. */
void uct_sep_conn_peer_reset(uct_sep_conn_t *conn, uct_sep_conn_out_t *out);


/** The peer, which has asked for the declined token, goes on. */
void uct_sep_conn_refuse(uct_sep_conn_t *conn, uct_sep_conn_out_t *out);


/** Remember whether it is urgent: our question, or the peer's that the user has
 *  not answered yet. */
void uct_sep_conn_set_urgent(uct_sep_conn_t *conn, int is_urgent);


/** Both sides give up the connection. The answer follows when the user has let
 *  go. */
void uct_sep_conn_agree(uct_sep_conn_t *conn, uct_sep_conn_out_t *out);

END_C_DECLS

#endif
