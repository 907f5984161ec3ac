/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TOOLS_PLAN_H
#define SEP_TOOLS_PLAN_H

#include <uct/ib/sep/category/sep_category.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file plan.h
 *
 * What workers of a sharing category take from a device, calculated from the
 * configuration and the category's row, without a device.
 *
 * Two regimes: in the legacy one, of kernels without UAR objects, the kernel
 * gives each device context its static UAR pages when it is opened, with two
 * uUARs each, and assigns queue pairs without a thread domain to them. In the
 * dynamic one, libmlx5 takes pages when they are needed: one for CQ doorbells
 * at once, others for queue pairs on demand.
 *
 * A third one is that of kernels and virtual machines that can't combine
 * writes: they refuse thread domains, and all queue pairs of a context ring on
 * its page for CQ doorbells (libmlx5's verbs.c, mlx5_get_qp_uar).
 *
 * The legacy regime is that of "Scalable Communication Endpoints for
 * MPI+Threads Applications" (Zambre, Chandramowlishwaran, Balaji, 2018), whose
 * table the planner reproduces.
 */

/** Sharing categories of UCX_SEP_CATEGORY; only the planner knows the last
 *  one. */
typedef enum {
#define SEP_PLAN_CATEGORY(_id, ...) SEP_PLAN_##_id,
    UCT_SEP_CATEGORY_FOREACH(SEP_PLAN_CATEGORY)
#undef SEP_PLAN_CATEGORY
    SEP_PLAN_NUM_CATEGORIES,
    /** A context with a thread domain for each worker: the paper's "naive
     *  endpoints", for comparison */
    SEP_PLAN_NAIVE = SEP_PLAN_NUM_CATEGORIES,
    SEP_PLAN_LAST
} sep_plan_category_t;

/** @return Row of a category. */
const uct_sep_category_row_t *
sep_plan_category_row(sep_plan_category_t category);


/** @return Name of a category. */
const char *sep_plan_category_name(sep_plan_category_t category);


/** How contexts get UAR pages. */
typedef enum {
    SEP_PLAN_LEGACY,  /**< Static ones when it is opened */
    SEP_PLAN_KERNEL_DYNAMIC, /**< UAR objects of the kernel, on demand */
    SEP_PLAN_NC,      /**< UAR objects without write combining: one page, where
                           all ring */
    SEP_PLAN_REGIME_LAST
} sep_plan_regime_t;

/** Names of regimes: "legacy", "dynamic", "nc". */
extern const char *sep_plan_regime_names[SEP_PLAN_REGIME_LAST];


/** Memory of the objects that are not queues, in bytes. */
typedef struct sep_plan_sizes {
    size_t worker;     /**< Transport: interface with its tables */
    size_t connection; /**< Transport: connection with its send queue */
    size_t endpoint;   /**< Transport: endpoint */
    size_t rx_desc;    /**< In front of each receive buffer */
    size_t huge_page;  /**< Unit in which buffer pools are allocated if that
                            does not double them; 0: none */
    size_t cm_receive; /**< Receive of the connection manager */
    size_t cm_scrap;   /**< What its receives share for longer datagrams */
    unsigned cm_recv_sge; /**< Entries of each receive */
    size_t cm_inline;  /**< Inline data of its sends */
    unsigned cm_tx_len;   /**< Its send queue */
    unsigned cq_headroom; /**< CQEs beyond those of sends and receives */
} sep_plan_sizes_t;


/** What is planned. */
typedef struct sep_plan_config {
    sep_plan_category_t category;
    sep_plan_regime_t   regime;
    unsigned            workers;        /**< Of one process */
    unsigned            peers;          /**< Connections of each worker; for
                                             mpi_threads, peer processes */
    unsigned long       max_qps;        /**< RC queue pairs that the workers
                                             may hold together, 0: any number.
                                             Each has what it needs */
    unsigned            cq_sharing;     /**< Workers per send CQ */
    unsigned            total_uuars;    /**< Of a context: MLX5_TOTAL_UUARS */
    unsigned            low_lat_uuars;  /**< MLX5_NUM_LOW_LAT_UUARS */
    unsigned            max_dyn_uuars;  /**< For thread domains of a context,
                                             legacy regime; 0: no limit */
    unsigned            tx_queue_len;   /**< UCX_SEP_TX_QUEUE_LEN */
    unsigned            tx_min_inline;
    unsigned            tx_segments;    /**< Bytes of a work request in front of
                                             gather entries or inline data */
    unsigned            tx_max_sge;     /**< Gather entries of a work request */
    unsigned            tx_cq_len;
    unsigned            rx_queue_len;
    unsigned            rx_queue_fill;  /**< Buffers of rx_queue_len at first */
    unsigned            seg_size;
    unsigned            cm_rx_queue_len;
    unsigned            tx_throttle;    /**< Requests that all workers may have
                                             under way; 0: no limit, UINT_MAX:
                                             what gives the best rate */
    unsigned            max_srq_wr;     /**< Of the device */
    sep_plan_sizes_t    sizes;
} sep_plan_config_t;


/** Resources. */
typedef struct sep_plan_counts {
    unsigned long contexts;
    unsigned long tds;          /**< Thread domains */
    unsigned long uars_static;  /**< UAR pages that opening contexts takes */
    unsigned long uars_dynamic; /**< UAR pages taken later */
    unsigned long uuars;        /**< uUARs on all of these pages */
    unsigned long uuars_used;   /**< uUARs that a queue pair rings on */
    unsigned long uars_used;    /**< Pages with such uUARs */
    unsigned long qps;
    unsigned long cqs;
    unsigned long srqs;
    unsigned long qp_bytes;     /**< Send and receive queues */
    unsigned long cq_bytes;
    unsigned long srq_bytes;
    unsigned long mr_bytes;     /**< Registered buffers, full-grown: estimate */
    unsigned long driver_bytes; /**< libmlx5's objects: estimate */
    unsigned long transport_bytes; /**< The transport's objects: estimate */
} sep_plan_counts_t;


/** A plan. */
typedef struct sep_plan {
    sep_plan_counts_t category;  /**< What the category itself is about: queue
                                      pairs for data, their CQs and UARs. This
                                      is what the paper counts */
    sep_plan_counts_t transport; /**< What sep_mlx5 takes in addition, to
                                      receive and to make connections */
    sep_plan_counts_t total;
    int               exceeds;   /**< A context does not have enough UAR pages
                                      for thread domains, or none at all */
} sep_plan_t;


/** Paper and driver defaults: a worker with a peer, 16 uUARs, 4 of them low
 *  latency. The transport's queues are left empty, see plan_config.h. */
void sep_plan_config_init(sep_plan_config_t *config);


/**
 * Set how many uUARs a context has, as libmlx5 does from MLX5_TOTAL_UUARS and
 * MLX5_NUM_LOW_LAT_UUARS: rounded up to whole pages, and at most 12 of them of
 * medium and high latency (mlx5.c, get_total_uuars, get_num_low_lat_uuars).
 *
 * @return 0, or -1 if libmlx5 would refuse to open a device.
 */
int sep_plan_set_uuars(sep_plan_config_t *config, int total, int low_lat);


/**
 * Find a category by its name in UCX_SEP_CATEGORY, or "naive".
 *
 * @return Category, or SEP_PLAN_LAST if there is none of that name.
 */
sep_plan_category_t sep_plan_category_find(const char *name);


/**
 * Make a plan.
 *
 * @return 0, or -1 with a message for the user in @a reason if the
 *         configuration makes no sense.
 */
int sep_plan_make(const sep_plan_config_t *config, sep_plan_t *plan_p,
                  const char **reason_p);


/** @return The least max_qps with which all workers have what they need. */
unsigned long sep_plan_least_qps(const sep_plan_config_t *config);


/** @return UAR pages of a context, if so many of its queue pairs have no thread
 *          domain. */
unsigned long sep_plan_context_uars(const sep_plan_config_t *config,
                                    unsigned long plain);


/** @return UAR pages of all kinds. */
unsigned long sep_plan_uars(const sep_plan_counts_t *counts);


/** @return Bytes of all kinds. */
unsigned long sep_plan_bytes(const sep_plan_counts_t *counts);


/**
 * How many processes as planned fit a device's UAR pages.
 *
 * @param [in] counts    Of one process.
 * @param [in] pages     UAR pages of the device, 8192 on ConnectX-4.
 * @param [in] reserved  Of these, the kernel's own.
 */
unsigned long sep_plan_fit(const sep_plan_counts_t *counts, unsigned long pages,
                           unsigned long reserved);


/** Limit of uUARs for a context's thread domains, legacy regime: on 512 pages
 *  (paper, appendix B). */
#define SEP_PLAN_MAX_DYN_UUARS  1024

/** UAR pages of a device (paper, section 2). */
#define SEP_PLAN_DEVICE_UARS    8192

/**
 * UAR pages of the kernel's own drivers. The paper says that 907 contexts of 9
 * pages exhaust 8192 pages, and 907 x 9 is 8163; 8192 / 9 would be 910. So 21
 * to 29 pages were not available: this is the least of these.
 */
#define SEP_PLAN_KERNEL_UARS    21

#ifdef __cplusplus
}
#endif

#endif
