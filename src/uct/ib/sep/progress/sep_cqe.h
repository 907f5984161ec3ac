/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CQE_H
#define UCT_SEP_CQE_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_cqe.h
 *
 * What a completion can lead to besides the usual, which is in sep_cqe.inl.
 */

/** What a completion says about an error. */
typedef struct uct_sep_cqe_error {
    ucs_status_t status;   /**< For operations and endpoints */
    const char   *reason;  /**< In words */
    unsigned     syndrome; /**< As the device or verbs name it */
    unsigned     vendor;   /**< Vendor's syndrome */
    int          is_size;  /**< A message was too long for its buffer */
    int          is_abort; /**< "Remote aborted": with some vendor's syndromes,
                                what was aborted comes again */
} uct_sep_cqe_error_t;


/**
 * A work request has failed.
 *
 * @param pi     Its index.
 * @param end    Index behind it.
 */
void uct_sep_cqe_handle_send_error(uct_sep_iface_t *iface,
                                   uct_sep_txwq_t *txwq, uint16_t pi,
                                   uint16_t end,
                                   const uct_sep_cqe_error_t *error);


/** A receive has failed. Its buffer is the caller's to use again. */
void uct_sep_cqe_handle_recv_error(uct_sep_iface_t *iface, uint32_t qpn,
                                   const uct_sep_cqe_error_t *error);


/** A completion that is neither a successful send nor a receive. */
void uct_sep_cqe_handle_other(uct_sep_iface_t *iface,
                              const struct mlx5_cqe64 *cqe);


/**
 * A received message has bits of flow control.
 *
 * @return Whether it is a message for a handler, too.
 */
int uct_sep_cqe_receive_fc(uct_sep_iface_t *iface, const uct_sep_am_hdr_t *hdr,
                           uint32_t length, uint32_t qpn);


/** Apply bits of flow control that are not in the header.
 *
 *  @param bits_p  Without the mark of the first message afterwards.
 *
 *  @return Whether there is a message for a handler, too. */
int uct_sep_cqe_apply_fc(uct_sep_iface_t *iface, uint32_t qpn, uint8_t *bits_p);


/**
 * A message with immediate data, in order: give it to its handler, and the
 * buffer back.
 */
void uct_sep_cqe_deliver_imm(uct_sep_iface_t *iface,
                             const uct_sep_eager_recv_t *recv, uint8_t am_id);


/** First byte of a message with immediate data. */
const uct_sep_am_hdr_t *
uct_sep_cqe_imm_hdr(const uct_sep_iface_t *iface,
                    const uct_sep_eager_recv_t *recv);


/** A message without a header was received. */
void uct_sep_cqe_handle_short(uct_sep_iface_t *iface);


/** Keep the result that is in a completion of several operations, before users'
 *  callbacks are called.
 *
 *  @param end  Index up to which the queue's operations are complete. */
void uct_sep_cqe_keep_data(uct_sep_txwq_t *txwq, const struct mlx5_cqe64 *cqe,
                           uint16_t end);


/** A completion of a queue pair that is not, or no longer, ours. */
void uct_sep_cqe_handle_unknown(uct_sep_iface_t *iface,
                                const struct mlx5_cqe64 *cqe);


/**
 * Credits have come back to a queue on which somebody waits, or which is being
 * drained.
 */
void uct_sep_cqe_follow_up(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);

END_C_DECLS

#endif
