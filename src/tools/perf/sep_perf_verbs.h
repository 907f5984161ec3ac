/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_VERBS_H
#define SEP_PERF_VERBS_H

#include <tools/perf/sep_perf_result.h>
#include <tools/perf/sep_perf_run.h>
#include <tools/perf/sep_perf_wire.h>

#include <uct/ib/sep/queue/sep_cq.h>
#include <uct/ib/sep/queue/sep_qp_table.h>
#include <uct/ib/sep/queue/sep_txwq.h>
#include <uct/ib/sep/queue/sep_uuar.h>

#include <infiniband/verbs.h>
#include <ucs/type/spinlock.h>

/*
 * Objects of libibverbs, shared by threads as a row says, at levels verbs and
 * dv; and the objects of the peer that they send to.
 */

/** Thread domains of a queue pair at most, SEP_PERF_TD_SPACED. */
#define SEP_PERF_MAX_TDS  4


/** What the other side needs of a queue pair. */
typedef struct sep_perf_qp_addr {
    uint32_t qpn;
    uint16_t lid;
    uint8_t  mtu;          /**< enum ibv_mtu that is possible there */
    uint8_t  has_gid;
    uint8_t  gid[16];
} sep_perf_qp_addr_t;


/** What is needed of the peer's memory. */
typedef struct sep_perf_target {
    uint64_t address;
    uint32_t rkey;
    uint32_t failed;       /**< The peer has no resources */
} sep_perf_target_t;


/** A port of a device. */
typedef struct sep_perf_port {
    unsigned             number;
    struct ibv_port_attr attr;
    union ibv_gid        gid;
    int                  gid_index;
} sep_perf_port_t;


/** A queue pair. */
typedef struct sep_perf_qp {
    struct ibv_qp      *qp;
    struct ibv_td      *tds[SEP_PERF_MAX_TDS];
    struct ibv_pd      *domain;    /**< Parent domain with the first one, or
                                        NULL */
    struct sep_perf_cq *cq;
    uct_sep_uuars_t    *uuars;     /**< Level dv, as all that follows */
    uct_sep_txwq_t     txwq;
    uct_sep_bf_t       *bf;
    ucs_spinlock_t     lock;
    int                is_shared;  /**< By threads */
    uint32_t           *ids;       /**< By index of the work request: what its
                                        completion means, SEP_PERF_ID */
} sep_perf_qp_t;


/** A completion queue. */
typedef struct sep_perf_cq {
    struct ibv_cq_ex   *cq;        /**< Level verbs */
    uct_sep_cq_t       dv;         /**< Level dv, as all that follows */
    uct_sep_qp_table_t table;
    ucs_spinlock_t     lock;
    int                is_shared;
    int                is_open;
} sep_perf_cq_t;


/** All objects of a row. */
typedef struct sep_perf_verbs {
    const sep_perf_options_t *options;
    const sep_perf_row_t     *row;
    struct ibv_device        **devices;
    struct ibv_device        *device;
    struct ibv_context       **contexts;
    uct_sep_uuars_t          *uuars;      /**< Of each context */
    struct ibv_pd            **pds;
    struct ibv_mr            **mrs;
    sep_perf_cq_t            *cqs;
    sep_perf_qp_t            *qps;
    uint8_t                  *buffer;
    size_t                   stride;      /**< From a buffer to the next */
    sep_perf_port_t          port;
    sep_perf_target_t        target;
    unsigned                 num_tds;
    sep_perf_group_t         group;
} sep_perf_verbs_t;


/** What a thread has at hand when it posts. */
typedef struct sep_perf_sender {
    sep_perf_verbs_t   *verbs;
    sep_perf_qp_t      *qp;
    const uint8_t      *buffer;
    uint64_t           remote;
    size_t             bytes;
    uint32_t           lkey;
    uint32_t           rkey;
    sep_model_op_t     op;
    int                is_inline;
    uct_sep_tx_post_t  post;      /**< Level dv: of a work request alone */
    struct ibv_send_wr *wrs;      /**< Level verbs: a list, made beforehand */
    struct ibv_sge     sge;
} sep_perf_sender_t;


/** What a completion means: whose messages, and how many. */
#define SEP_PERF_ID(_thread, _covered) \
    (((uint32_t)(_thread) << 16) | (_covered))
#define SEP_PERF_ID_THREAD(_id)   ((uint32_t)(_id) >> 16)
#define SEP_PERF_ID_COVERED(_id)  ((uint32_t)(_id) & 0xffff)


/** Measure a row. @return 0, a positive exit status, or -1; after a message. */
int sep_perf_verbs_measure(const sep_perf_options_t *options,
                           const sep_perf_row_t *row,
                           sep_perf_result_t *result);


/** Be the peer. @return 0, or -1 after a message. */
int sep_perf_verbs_serve(int fd, const sep_perf_hello_t *hello,
                         const sep_perf_options_t *options);


/** Find a device. @return It, as part of a list to be freed, or NULL after a
 *  message. */
struct ibv_device *sep_perf_device_find(const char *name,
                                        struct ibv_device ***list_p);


/** Find out about the port that the options name. @return 0, or -1 after a
 *  message. */
int sep_perf_port_query(struct ibv_context *context,
                        const sep_perf_options_t *options,
                        sep_perf_port_t *port_p);


/** Say how a queue pair is reached. */
void sep_perf_qp_address(const struct ibv_qp *qp, const sep_perf_port_t *port,
                         sep_perf_qp_addr_t *addr_p);


/** Connect a queue pair. @return 0, or -1 after a message. */
int sep_perf_qp_connect(struct ibv_qp *qp, const sep_perf_port_t *port,
                        const sep_perf_qp_addr_t *remote);


/** How threads post and poll. */
extern const sep_perf_api_t sep_perf_verbs_api;
extern const sep_perf_api_t sep_perf_dv_api;


/** Make a thread's list for level verbs. @return 0, or -1 after a message. */
int sep_perf_verbs_init_sender(sep_perf_sender_t *sender, unsigned postlist);


/** Make the queues known to level dv. @return 0, or -1 after a message. */
int sep_perf_dv_init_cq(sep_perf_cq_t *cq, struct ibv_context *context,
                        unsigned length, const char *name);
int sep_perf_dv_init_qp(sep_perf_qp_t *qp, int has_td);
void sep_perf_dv_cleanup_qp(sep_perf_qp_t *qp);
void sep_perf_dv_cleanup_cq(sep_perf_cq_t *cq);

#endif
