/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CQ_H
#define UCT_SEP_CQ_H

#include <uct/ib/sep/base/sep_def.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/**
 * @file sep_cq.h
 *
 * Completion queue for sends and receives, polled in memory. The consumer index
 * is published only once per turn of UCT_SEP_CQ_TURN entries: the device needs
 * it only to know that there is room, and the queue is that much larger.
 */

/** CQEs per turn. The queue is aligned to a turn, so that an entry's address
 *  tells its position in the turn. */
#define UCT_SEP_CQ_TURN       32

/** Size of an entry in units of 64 bytes, of which the last is what all entries
 *  have; short data may be in the first (mlx5dv.h: mlx5_cqe64). */
#define UCT_SEP_CQ_STRIDE_64  1
#define UCT_SEP_CQ_STRIDE_128 2

/** Size of a turn in bytes. */
#define UCT_SEP_CQ_TURN_SIZE(_stride) \
    (UCT_SEP_CQ_TURN * (_stride) * sizeof(struct mlx5_cqe64))

/** Completion queue. */
typedef struct uct_sep_cq {
    struct mlx5_cqe64       *next;    /**< CQE to be looked at */
    uint8_t                 owner;    /**< Owner bit that makes it valid */
    uint32_t                ci;       /**< Consumer index when this turn began,
                                           not masked; the device knows this
                                           one */
    struct mlx5_cqe64       *start;   /**< First CQE */
    struct mlx5_cqe64       *end;     /**< Behind the last CQE */
    __be32                  *dbrec;   /**< [0] consumer index, [1] arm */
    void                    *uar;     /**< Page with the arm doorbell */
    uint32_t                cqn;      /**< CQ number */
    uint32_t                length;   /**< CQEs, power of two */
    unsigned                stride;   /**< UCT_SEP_CQ_STRIDE_xx; polling loops
                                           know it at compile time */
    uint32_t                arm_sn;   /**< Events received, for the doorbell */
    unsigned                unacked;  /**< Events read but not acknowledged */
    struct ibv_cq           *cq;
    struct ibv_comp_channel *channel;
} uct_sep_cq_t;


/**
 * Create the queue itself, on the channel that exists already and with the
 * stride that is set.
 *
 * @return UCS_OK; UCS_ERR_NO_RESOURCE with errno and without a message; or
 *         another error after a message.
 */
typedef ucs_status_t
(*uct_sep_cq_create_func_t)(uct_sep_cq_t *cq, struct ibv_context *context,
                            unsigned length, const char *name);

/** Create a queue that is polled in memory. */
ucs_status_t uct_sep_cq_create_dv(uct_sep_cq_t *cq, struct ibv_context *context,
                                  unsigned length, const char *name);


/** There is no such queue. */
static inline void uct_sep_cq_init_none(uct_sep_cq_t *cq)
{
    cq->cq = NULL;
}


/**
 * Create a completion queue with a channel, whose file descriptor does not
 * block.
 *
 * @param [in]  context  Device.
 * @param [in]  length   CQEs it must hold.
 * @param [in]  stride   Size of a CQE, UCT_SEP_CQ_STRIDE_xx.
 * @param [in]  create   Creates the queue itself.
 * @param [in]  name     For messages, e.g. "mlx5_0:1".
 * @param [out] cq       Filled.
 *
 * @return UCS_OK, or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_cq_init(uct_sep_cq_t *cq, struct ibv_context *context,
                             unsigned length, unsigned stride,
                             uct_sep_cq_create_func_t create, const char *name);


/** Destroy it, after its queue pairs. */
void uct_sep_cq_cleanup(uct_sep_cq_t *cq);


/** @return How many completions are there. */
unsigned uct_sep_cq_count(const uct_sep_cq_t *cq);


/**
 * @return Whether a completion of a QP's receives may be there. Those that have
 *         been taken count as well until their place is written anew, so it can
 *         be called while another thread polls.
 */
int uct_sep_cq_may_have(const uct_sep_cq_t *cq, uint32_t qpn);


/**
 * Ask for an event on the channel.
 *
 * @param [in]  solicited  Only for what the sender has marked, or for an error.
 */
void uct_sep_cq_arm(uct_sep_cq_t *cq, int solicited);


/**
 * Take the events from the channel.
 *
 * @param [out] count_p  How many there were.
 *
 * @return UCS_OK, or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_cq_read_events(uct_sep_cq_t *cq, unsigned *count_p);

END_C_DECLS

#endif
