/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_MODEL_RATE_H
#define SEP_MODEL_RATE_H

#include <model/adapter.h>

#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file rate.h
 *
 * The model: at which rate threads get requests through an adapter. Each thread
 * posts as many requests as may be outstanding, one by one, waits until all
 * have completed, and begins again. docs/model.md has the equations. Pure
 * functions.
 */

/** What the requests do. */
typedef enum {
    SEP_MODEL_READ,   /**< RDMA read */
    SEP_MODEL_WRITE,  /**< RDMA write */
    SEP_MODEL_SEND,   /**< Send to a receive queue */
    SEP_MODEL_ATOMIC, /**< Atomic that fetches the old value */
    SEP_MODEL_OP_LAST
} sep_model_op_t;

/** "read", "write", "send", "atomic". */
extern const char *sep_model_op_names[SEP_MODEL_OP_LAST];


/** How the adapter learns of a request. */
typedef enum {
    SEP_MODEL_DOORBELL,  /**< It is told that there is one, and fetches it */
    SEP_MODEL_BLUEFLAME  /**< It is written to the adapter */
} sep_model_post_t;


/** For members of sep_model_sharing_t: as many as there are threads. */
#define SEP_MODEL_ALL UINT_MAX


/** What the threads share. */
typedef struct sep_model_sharing {
    unsigned threads_per_qp;   /**< At least 1 */
    unsigned threads_per_cq;   /**< At least threads_per_qp; less counts as
                                    that */
    unsigned uuars_dedicated;  /**< Queue pairs that have a uUAR each */
    unsigned uuars_shared;     /**< uUARs over which the others are dealt, with
                                    a lock each; at least one if there are
                                    others */
    unsigned uuars_per_page;   /**< uUARs in use on a UAR page, 1 or 2 */
    int      pages_adjacent;   /**< There is no unused page between two that are
                                    in use */
    int      qp_lock;          /**< Posting takes a lock, needed or not, as in
                                    libibverbs without a thread domain */
} sep_model_sharing_t;


/** What the threads do. */
typedef struct sep_model_load {
    sep_model_op_t      op;
    sep_model_post_t    post;
    unsigned            threads;       /**< At least 1 */
    unsigned            depth;         /**< Requests outstanding per thread, at
                                            least 1 */
    size_t              bytes;         /**< Of a request's data */
    int                 is_inline;     /**< The data is part of the work queue
                                            element; not for reads, atomics */
    double              instructions;  /**< To post a request and to poll its
                                            completion; 0: those of which the
                                            adapter's cpu_request is the time */
    unsigned            qps;           /**< Queue pairs that the threads use by
                                            turns, at least as many as they
                                            share; 0: as many */
    unsigned            signal;        /**< One request in so many has a
                                            completion; 0: each has */
    int                 is_steady;     /**< The threads do not wait until all
                                            have completed: depth requests are
                                            under way at any time, on average */
    sep_model_sharing_t sharing;
} sep_model_load_t;


/** What limits a rate. */
typedef enum {
    SEP_MODEL_LIMIT_THREADS, /**< Their time, and the latency */
    SEP_MODEL_LIMIT_LOCKS,   /**< Waiting for each other */
    SEP_MODEL_LIMIT_QP,      /**< Queue pairs */
    SEP_MODEL_LIMIT_ADAPTER, /**< Transactions, or its requests per second */
    SEP_MODEL_LIMIT_STATE,   /**< State of requests that is fetched again */
    SEP_MODEL_LIMIT_CONTEXT, /**< Contexts of queue pairs that are */
    SEP_MODEL_LIMIT_DATA,    /**< Bytes over a link */
    SEP_MODEL_LIMIT_LAST
} sep_model_limit_t;

/** In a word or two, for users. */
extern const char *sep_model_limit_names[SEP_MODEL_LIMIT_LAST];


/** A prediction. */
typedef struct sep_model_rate {
    double            mops;        /**< Million requests per second */
    double            threads;     /**< What the threads could do with an
                                        infinitely fast adapter */
    double            adapter;     /**< What the adapter could do with as many
                                        outstanding */
    double            outstanding; /**< Requests in the adapter, on average */
    double            refetches;   /**< How often the state of one is fetched
                                        again */
    double            contexts;    /**< How often the context of its queue pair
                                        is */
    double            tlps;        /**< Transactions of a request, without
                                        these */
    sep_model_limit_t limit;
} sep_model_rate_t;


/** Most inline data for which the model holds: what fits a BlueFlame register
 *  of 256 bytes behind the segments of an RDMA write. */
#define SEP_MODEL_MAX_INLINE 220


/**
 * Predict a rate.
 *
 * @param [in]  adapter  Its parameters.
 * @param [in]  load     What the threads do.
 * @param [out] rate_p   The prediction.
 */
void sep_model_predict(const sep_model_adapter_t *adapter,
                       const sep_model_load_t *load, sep_model_rate_t *rate_p);

/**
 * Find out up to how many queue pairs an adapter keeps its rate.
 *
 * @param [in] adapter  Its parameters.
 * @param [in] load     What the threads do; its member @a qps is not used.
 * @param [in] keep     What is to be left of the rate with one queue pair per
 *                      thread, more than 0 and less than 1.
 *
 * @return The most queue pairs, or UINT_MAX if the rate does not depend on
 *         them.
 */
unsigned sep_model_most_qps(const sep_model_adapter_t *adapter,
                            const sep_model_load_t *load, double keep);

/** For @ref sep_model_throttle: the number of requests that gives the highest
 *  rate. */
#define SEP_MODEL_THROTTLE_BEST UINT_MAX

/**
 * Limit what the threads have outstanding, as UCX_SEP_TX_THROTTLE does.
 *
 * @param [in]    adapter    Its parameters.
 * @param [in]    budget     Requests of all threads, or
 *                           SEP_MODEL_THROTTLE_BEST.
 * @param [in]    min_depth  What each thread may have in any case, at least 1.
 * @param [inout] load       Its depth is lowered, or left as it is.
 */
void sep_model_throttle(const sep_model_adapter_t *adapter, unsigned budget,
                        unsigned min_depth, sep_model_load_t *load);

#ifdef __cplusplus
}
#endif

#endif
