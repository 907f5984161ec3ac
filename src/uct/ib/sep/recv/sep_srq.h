/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_SRQ_H
#define UCT_SEP_SRQ_H

#include <uct/ib/sep/base/sep_def.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/sys/math.h>
#include <ucs/type/status.h>
#include <uct/api/uct.h>

BEGIN_C_DECLS

/**
 * @file sep_srq.h
 *
 * Shared receive queue, written directly in memory. It is a list of work
 * requests linked by index (PRM: linked-list SRQ). The device may take all of
 * them but the last one, whose link is not known yet. A work request keeps its
 * buffer as long as the application returns it at once, so reposting only means
 * appending it to the list. The device is told about several at a time.
 */

/** Header of a receive buffer, in front of what the device writes. From a
 *  memory pool. */
typedef struct uct_sep_rx_desc {
    uint32_t lkey;
} UCS_S_PACKED uct_sep_rx_desc_t; /* Payload is aligned, so this is not */


typedef struct uct_sep_srq uct_sep_srq_t;
typedef struct uct_sep_srq_params uct_sep_srq_params_t;


/** What differs between the APIs, apart from taking receives and giving them
 *  back. */
typedef void (*uct_sep_srq_unmap_func_t)(uct_sep_srq_t *srq);
typedef struct uct_sep_srq_ops {
    /** Set buf and length; links work requests in order. */
    ucs_status_t             (*map)(uct_sep_srq_t *srq,
                                    const uct_sep_srq_params_t *params);
    uct_sep_srq_unmap_func_t unmap;
    /** See the functions below. */
    void                     (*fill)(uct_sep_srq_t *srq, unsigned count);
    void                     (*refill)(uct_sep_srq_t *srq);
    /** Append a receive again, with its buffer or a new one. */
    void                     (*append)(uct_sep_srq_t *srq, uint16_t index);
    void                     (*replace)(uct_sep_srq_t *srq, uint16_t index);
} uct_sep_srq_ops_t;


/** Queue that is written directly in memory. */
extern const uct_sep_srq_ops_t uct_sep_srq_ops;


/** Shared receive queue. */
struct uct_sep_srq {
    void              *buf;       /**< Work requests */
    uct_sep_rx_desc_t **descs;    /**< Buffer of each, by index */
    __be32            *dbrec;     /**< Doorbell record */
    struct mlx5_wqe_srq_next_seg *last; /**< Link of the last work request */
    uint16_t          counter;    /**< How many were handed to the device */
    uint16_t          first;      /**< Value of counter with one buffer */
    uint16_t          published;  /**< What the doorbell record says */
    uint16_t          batch;      /**< How many the device is told about at a
                                       time; 0 if some have no buffer */
    uint16_t          tail;       /**< Through libibverbs: index of the last
                                       work request */
    uint16_t          head;       /**< Through libibverbs: index of the first
                                       one not published */
    uint8_t           shift;      /**< Log of a work request's size */
    unsigned          hdr_offset; /**< From descriptor to received data */
    uint32_t          length;     /**< Work requests, power of two */
    uint32_t          filled;     /**< Work requests that have had a buffer */
    uint32_t          num_empty;  /**< Work requests without a buffer */
    uint16_t          *empty;     /**< Indices of those without a buffer */
    uint32_t          buf_size;   /**< Bytes the device may write */
    ucs_mpool_t       *mp;        /**< Pool of uct_sep_rx_desc_t */
    struct ibv_srq    *srq;
    uint32_t          srqn;
    uint32_t          account;    /**< Bytes accounted for */
    const uct_sep_srq_ops_t *ops;
};


/** @return How many receives the device is told about at a time if there are
 *          @a count: a small part, so that nobody finds none. */
static inline unsigned uct_sep_srq_batch(unsigned count)
{
    return ucs_max(1, ucs_min(count / 32, 16));
}


/** @return Receives that can be outstanding with the buffers there are. */
static inline unsigned uct_sep_srq_num_filled(const uct_sep_srq_t *srq)
{
    return srq->filled - 1;
}


/** @return Receives that were used, and posted again; lower 16 bits. */
static inline uint16_t uct_sep_srq_num_used(const uct_sep_srq_t *srq)
{
    return srq->counter - srq->first - uct_sep_srq_num_filled(srq);
}


/** Parameters of @ref uct_sep_srq_init. */
struct uct_sep_srq_params {
    struct ibv_pd *pd;
    unsigned      length;     /**< Receives that can be outstanding */
    unsigned      hdr_offset; /**< Of the buffer in a pool's element */
    unsigned      buf_size;   /**< Length of the buffer */
    ucs_mpool_t   *mp;        /**< Where the buffers come from */
    const char    *name;      /**< For messages, e.g. "mlx5_0:1" */
    const uct_sep_srq_ops_t *ops;
};


/**
 * Create a queue with nothing posted.
 *
 * @return UCS_OK, UCS_ERR_NO_MEMORY, UCS_ERR_INVALID_PARAM or UCS_ERR_IO_ERROR,
 *         after a message.
 */
ucs_status_t uct_sep_srq_init(uct_sep_srq_t *srq,
                              const uct_sep_srq_params_t *params);


/** Destroy it and return the buffers; its queue pairs must be gone. */
void uct_sep_srq_cleanup(uct_sep_srq_t *srq);


/**
 * Post more receives, until @a count can be outstanding. Stops early if there
 * is no memory.
 */
void uct_sep_srq_fill(uct_sep_srq_t *srq, unsigned count);


/**
 * Give a work request a new buffer and append it: the application has the old
 * one. If there is no memory, it waits for the next call.
 */
void uct_sep_srq_replace(uct_sep_srq_t *srq, uint16_t index);


/** Try again to find buffers for the work requests that have none. */
void uct_sep_srq_refill(uct_sep_srq_t *srq);

END_C_DECLS

#endif
