/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_API_H
#define UCT_SEP_API_H

#include <uct/ib/sep/iface/sep_config.h>

BEGIN_C_DECLS

/**
 * @file sep_api.h
 *
 * Ways to drive the device (UCX_SEP_API): directly in the memory of its queues,
 * as libmlx5's direct verbs expose it, or through libibverbs. All differences
 * are here and in the work requests (sep_wr.inl and sep_verbs_wr.inl), which
 * are compiled into the tables of operations (sep_ops.h).
 */

/** For what a completion queue is to raise an event. */
typedef enum {
    UCT_SEP_API_ARM_NONE,      /**< Only look whether there are completions */
    UCT_SEP_API_ARM_SOLICITED, /**< What the sender has marked, and errors */
    UCT_SEP_API_ARM_ANY
} uct_sep_api_arm_t;

struct uct_sep_api {
    const char                *name;         /**< Value of UCX_SEP_API */

    /** Mode of its data paths, of sep_ops.h, or 0 if it depends on how work
     *  requests are handed to the device. */
    unsigned                  ops_mode;

    /** Choose the polling loop, once it is known where sends complete. */
    uct_iface_progress_func_t (*progress)(const uct_sep_iface_t *iface);

    /** Check the configuration, and create the part of an interface that only
     *  this API has. UCS_OK, or an error after a message. */
    ucs_status_t              (*init)(
                                      uct_sep_iface_t *iface,
                                      const uct_sep_iface_config_t *config);
    void                      (*cleanup)(uct_sep_iface_t *iface);

    uct_sep_cq_create_func_t  cq_create;
    const uct_sep_srq_ops_t   *srq_ops;

    /** Create a queue pair with a send queue of the configured length; it
     *  receives if it has a receive queue. Extends the attributes. NULL with
     *  errno. */
    struct ibv_qp             *(*qp_create)(
                                      const uct_sep_iface_t *iface,
                                      struct ibv_pd *pd,
                                      struct ibv_qp_init_attr_ex *attr);

    /** Create a queue pair that receives and never sends. NULL with errno. */
    struct ibv_qp             *(*responder_create)(
                                      const uct_sep_iface_t *iface,
                                      struct ibv_pd *pd,
                                      struct ibv_qp_init_attr_ex *attr);

    /** Set up the send queue of the former. */
    ucs_status_t              (*qp_map)(uct_sep_iface_t *iface,
                                        struct ibv_qp *qp,
                                        uct_sep_uuar_use_t use,
                                        uct_sep_txwq_t *txwq);

    /** Choose operations that can post to a send queue, before its first
     *  use. */
    void                      (*txwq_check)(uct_sep_iface_t *iface,
                                            const uct_sep_txwq_t *txwq);

    /** Index in the queue of receives that is behind all completions that are
     *  there. */
    uint32_t                  (*cq_end)(const uct_sep_iface_t *iface);

    /** Whether all completions before an index have been taken. They have not
     *  been handled if one is held: sep_eager.h. */
    int                       (*cq_has_passed)(uct_sep_iface_t *iface,
                                               uint32_t end);

    /** Whether the queue of receives may have a completion of a QP; in any
     *  thread. */
    int                       (*cq_may_have)(const uct_sep_iface_t *iface,
                                             uint32_t qpn);

    /** Ask for an event of one of the interface's queues, the one in a worker's
     *  own context before the other one. UCS_ERR_BUSY if there are
     *  completions. */
    ucs_status_t              (*cq_arm)(uct_sep_iface_t *iface,
                                        uct_sep_cq_t *cq,
                                        uct_sep_api_arm_t arm);
};

END_C_DECLS

#endif
