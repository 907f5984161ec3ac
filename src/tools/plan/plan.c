/* SPDX-License-Identifier: BSD-3-Clause */

#include <tools/plan/plan.h>

#include <string.h>


/* mlx5-abi.h, MLX5_NUM_NON_FP_BFREGS_PER_UAR */
#define SEP_PLAN_UUARS_PER_UAR 2

/* libmlx5, mlx5-abi.h: MLX5_MAX_BFREGS, MLX5_MED_BFREGS_TSHOLD */
#define SEP_PLAN_MAX_UUARS       512
#define SEP_PLAN_MAX_NOT_LOW_LAT 12

/* libmlx5's objects without queues, and what each queue entry adds: heap in use
 * before and after creating some, rdma-core 44, x86-64 */
#define SEP_PLAN_CONTEXT_BYTES 268736
#define SEP_PLAN_TD_BYTES      320 /* with a parent domain */
#define SEP_PLAN_MR_BYTES      80
#define SEP_PLAN_CQ_BYTES      1500
#define SEP_PLAN_SRQ_BYTES     1000
#define SEP_PLAN_QP_BYTES      1600
#define SEP_PLAN_SQ_ENTRY      16  /* wrid, wr_data, wqe_head */
#define SEP_PLAN_RQ_ENTRY      8   /* wrid */
#define SEP_PLAN_SRQ_ENTRY     8   /* wrid */

/* Sizes of a work request, libmlx5 verbs.c (_sq_overhead, mlx5_calc_send_wqe):
 * segments of a datagram, a data segment, and the header of inline data */
#define SEP_PLAN_BB            64
#define SEP_PLAN_UD_SEGMENTS   64
#define SEP_PLAN_DATA_SEGMENT  16
#define SEP_PLAN_ANY_WQE       256 /* the longest: binds a memory window */
#define SEP_PLAN_INLINE_HEADER 4
#define SEP_PLAN_CQE           64
#define SEP_PLAN_SRQ_STRIDE    32

/* The transport's pools of buffers: bytes of a chunk, and of it what is no
 * buffer (sep_bufs.c); the pool of results of atomics */
#define SEP_PLAN_RX_CHUNK      2097152
#define SEP_PLAN_RX_OVERHEAD   4096
#define SEP_PLAN_SMALL_POOL    12288


static const uct_sep_category_row_t sep_plan_naive = {
    .name        = "naive",
    .own_context = 1,
    .tds         = 2,
    .cm          = UCT_SEP_CATEGORY_CM_DRIVER
};

const char *sep_plan_regime_names[SEP_PLAN_REGIME_LAST] = {
    [SEP_PLAN_LEGACY]         = "legacy",
    [SEP_PLAN_KERNEL_DYNAMIC] = "dynamic",
    [SEP_PLAN_NC]             = "nc"
};


/* One context: what its UAR pages depend on */
typedef struct {
    unsigned long td_pages; /* UAR pages for thread domains */
    unsigned long td_used;  /* uUARs of these that queue pairs ring on */
    unsigned long td_pages_used;
    unsigned long plain;    /* Queue pairs without a thread domain */
} sep_plan_context_t;


static unsigned long sep_plan_div_up(unsigned long value, unsigned long by)
{
    return (value + by - 1) / by;
}

static unsigned long sep_plan_align(unsigned long value, unsigned long to)
{
    return sep_plan_div_up(value, to) * to;
}

static unsigned long sep_plan_min(unsigned long a, unsigned long b)
{
    return (a < b) ? a : b;
}

static unsigned long sep_plan_max(unsigned long a, unsigned long b)
{
    return (a > b) ? a : b;
}

static unsigned long sep_plan_pow2(unsigned long value)
{
    unsigned long pow2 = 1;

    while (pow2 < value) {
        pow2 <<= 1;
    }
    return pow2;
}

static unsigned long sep_plan_pages(unsigned long uuars)
{
    return sep_plan_div_up(uuars, SEP_PLAN_UUARS_PER_UAR);
}

/*
 * Legacy: the kernel gives queue pairs the low-latency uUARs, the last ones,
 * one each; then the medium-latency ones, least used first; never the first one
 * as long as there are others (mlx5_ib, alloc_bfreg).
 */
static void sep_plan_plain_legacy(const sep_plan_config_t *config,
                                  unsigned long plain,
                                  sep_plan_counts_t *counts)
{
    unsigned long low      = sep_plan_min(config->low_lat_uuars,
                                          config->total_uuars - 1);
    unsigned long first    = config->total_uuars - low;
    unsigned long used_low = sep_plan_min(plain, low);
    unsigned long used_med = sep_plan_min(plain - used_low, first - 1);
    unsigned long pages;

    /* low: first, first + 1, ...; medium: 1, 2, ... */
    pages = (used_low == 0) ? 0 :
            ((first + used_low - 1) / SEP_PLAN_UUARS_PER_UAR) -
            (first / SEP_PLAN_UUARS_PER_UAR) + 1;
    if (used_med > 0) {
        pages += (used_med / SEP_PLAN_UUARS_PER_UAR) + 1;
        if ((used_med / SEP_PLAN_UUARS_PER_UAR) ==
            (first / SEP_PLAN_UUARS_PER_UAR)) {
            --pages; /* Both are on the same page */
        }
    }

    counts->uuars_used += used_low + used_med;
    counts->uars_used  += pages;
}

/*
 * Dynamic: libmlx5 takes a page when no dedicated uUAR is left; once their
 * maximum is reached, a page for each further queue pair until the maximum of
 * shared uUARs is reached (verbs.c, mlx5_get_qp_uar).
 */
static void sep_plan_plain_dynamic(const sep_plan_config_t *config,
                                   unsigned long plain,
                                   sep_plan_counts_t *counts)
{
    unsigned long alone_pages  = sep_plan_pages(config->low_lat_uuars);
    unsigned long shared_pages = sep_plan_pages(config->total_uuars -
                                                config->low_lat_uuars);
    unsigned long alone, shared, pages, used;

    alone  = sep_plan_min(plain, alone_pages * SEP_PLAN_UUARS_PER_UAR);
    shared = plain - alone;
    pages  = sep_plan_pages(alone) + sep_plan_min(shared, shared_pages);
    used   = sep_plan_min(shared, shared_pages * SEP_PLAN_UUARS_PER_UAR);

    counts->uars_dynamic += pages;
    counts->uuars        += pages * SEP_PLAN_UUARS_PER_UAR;
    counts->uuars_used   += alone + used;
    counts->uars_used    += sep_plan_pages(alone) + sep_plan_pages(used);
}

static void sep_plan_add_context(const sep_plan_config_t *config,
                                 const sep_plan_context_t *context,
                                 sep_plan_counts_t *counts)
{
    counts->contexts     += 1;
    counts->uars_dynamic += context->td_pages;
    counts->uuars        += context->td_pages * SEP_PLAN_UUARS_PER_UAR;
    counts->uuars_used   += context->td_used;
    counts->uars_used    += context->td_pages_used;
    counts->driver_bytes += SEP_PLAN_CONTEXT_BYTES;

    if (config->regime == SEP_PLAN_LEGACY) {
        counts->uars_static += sep_plan_pages(config->total_uuars);
        counts->uuars       += config->total_uuars;
        sep_plan_plain_legacy(config, context->plain, counts);
    } else if (config->regime == SEP_PLAN_NC) {
        counts->uars_static += 1;
        counts->uuars       += SEP_PLAN_UUARS_PER_UAR;
        counts->uuars_used  += (context->plain > 0);
        counts->uars_used   += (context->plain > 0);
    } else {
        counts->uars_static += 1; /* For the doorbells of CQs */
        sep_plan_plain_dynamic(config, context->plain, counts);
    }
}

/*
 * Queues
 */

static void
sep_plan_add_qps(unsigned long count, unsigned long sq_bytes,
                 unsigned long rq_len, unsigned recv_sge,
                 sep_plan_counts_t *counts)
{
    unsigned long rq_bytes = rq_len * sep_plan_pow2(recv_sge) *
                             SEP_PLAN_DATA_SEGMENT;

    counts->qps          += count;
    counts->qp_bytes     += count * (sq_bytes + rq_bytes);
    counts->driver_bytes += count *
                            (SEP_PLAN_QP_BYTES +
                             ((sq_bytes / SEP_PLAN_BB) * SEP_PLAN_SQ_ENTRY) +
                             (rq_len * SEP_PLAN_RQ_ENTRY));
}

static unsigned long
sep_plan_sq_bytes(unsigned long length, unsigned long segments,
                  unsigned long max_sge, unsigned long max_inline)
{
    unsigned long wqe = segments + (max_sge * SEP_PLAN_DATA_SEGMENT);

    if (max_inline > 0) {
        wqe = sep_plan_max(wqe, segments +
                                sep_plan_align(SEP_PLAN_INLINE_HEADER +
                                               max_inline,
                                               SEP_PLAN_DATA_SEGMENT));
    }

    return sep_plan_pow2(length * sep_plan_align(wqe, SEP_PLAN_BB));
}

static void sep_plan_add_rc(const sep_plan_config_t *config,
                            unsigned long count, sep_plan_counts_t *counts)
{
    sep_plan_add_qps(count, sep_plan_sq_bytes(config->tx_queue_len,
                                              config->tx_segments,
                                              config->tx_max_sge,
                                              config->tx_min_inline),
                     0, 0, counts);
}

static void sep_plan_add_cqs(unsigned long count, unsigned long length,
                             sep_plan_counts_t *counts)
{
    /* One is never used: libmlx5 rounds up from one more */
    counts->cqs          += count;
    counts->cq_bytes     += count * sep_plan_pow2(length + 1) * SEP_PLAN_CQE;
    counts->driver_bytes += count * SEP_PLAN_CQ_BYTES;
}

/* Receive buffers present from the start: UCX allocates chunks of so many, and
 * uses the rest if it has to allocate more than it asked for */
static unsigned long sep_plan_rx_pool(const sep_plan_config_t *config)
{
    const sep_plan_sizes_t *sizes = &config->sizes;
    unsigned long buffer, count, chunk, huge;

    buffer = sep_plan_align(sizes->rx_desc + config->seg_size, 64);
    count  = (SEP_PLAN_RX_CHUNK - SEP_PLAN_RX_OVERHEAD) / buffer;
    count  = sep_plan_min(config->rx_queue_fill, (count > 0) ? count : 1);
    chunk  = sep_plan_align((count * buffer) + 1, 4096);
    if (sizes->huge_page > 0) {
        huge = sep_plan_align(chunk, sizes->huge_page);
        if (huge < (2 * count * buffer)) {
            chunk = huge;
        }
    }

    return sep_plan_div_up(config->rx_queue_fill, chunk / buffer) * chunk;
}

static void sep_plan_add_srqs(const sep_plan_config_t *config,
                              unsigned long count, sep_plan_counts_t *counts)
{
    unsigned long length = sep_plan_pow2(config->rx_queue_len + 1);
    unsigned long all    = (2ul * config->rx_queue_len) + 1;

    /* libmlx5 keeps as many work requests again for those that are to wait,
     * unless the device has no room (srq.c) */
    all = (all <= config->max_srq_wr) ? sep_plan_pow2(all) : length;

    counts->srqs         += count;
    counts->srq_bytes    += count * length * SEP_PLAN_SRQ_STRIDE;
    counts->driver_bytes += count * (SEP_PLAN_SRQ_BYTES +
                                     (all * SEP_PLAN_SRQ_ENTRY) +
                                     ((all - length) * SEP_PLAN_SRQ_STRIDE));
    counts->mr_bytes     += count * (sep_plan_rx_pool(config) +
                                     SEP_PLAN_SMALL_POOL);
}

/* Connection manager of a worker: a UD queue pair with a CQ and buffers */
static void sep_plan_add_cms(const sep_plan_config_t *config,
                             unsigned long count, sep_plan_counts_t *counts)
{
    const sep_plan_sizes_t *sizes = &config->sizes;
    unsigned long rq_len          = sep_plan_pow2(config->cm_rx_queue_len);

    sep_plan_add_qps(count, sep_plan_sq_bytes(sizes->cm_tx_len,
                                              SEP_PLAN_UD_SEGMENTS, 1,
                                              sizes->cm_inline),
                     rq_len, sizes->cm_recv_sge, counts);
    sep_plan_add_cqs(count, config->cm_rx_queue_len + sizes->cm_tx_len, counts);
    counts->mr_bytes += count *
                        sep_plan_align((config->cm_rx_queue_len *
                                        sizes->cm_receive) + sizes->cm_scrap,
                                       4096);
    counts->driver_bytes += count * SEP_PLAN_MR_BYTES;
}

/*
 * Categories
 */

/* UAR pages of thread domains, in pairs: libmlx5 gives the uUARs of a page to
 * domains one after the other, so even an unused one needs a domain */
static void sep_plan_add_pairs(unsigned long pairs, unsigned long pairs_used,
                               unsigned long used, sep_plan_context_t *context,
                               sep_plan_counts_t *counts)
{
    context->td_pages      += pairs;
    context->td_pages_used += pairs_used;
    context->td_used       += used;
    counts->tds            += pairs * SEP_PLAN_UUARS_PER_UAR;
    counts->driver_bytes   += pairs * SEP_PLAN_UUARS_PER_UAR *
                              SEP_PLAN_TD_BYTES;
}

/* uUARs that the data queue pairs of this many workers in a context ring */
static void sep_plan_add_data(const sep_plan_config_t *config,
                              unsigned long workers,
                              sep_plan_context_t *context,
                              sep_plan_counts_t *counts)
{
    const uct_sep_category_row_t *row = sep_plan_category_row(config->category);
    /* Without peers nobody rings */
    unsigned long used                = (config->peers > 0) ? workers : 0;

    if (row->tds == 0) {
        context->plain += workers * config->peers;
    } else {
        sep_plan_add_pairs(sep_plan_pages(workers * row->tds),
                           (row->tds == 1) ? sep_plan_pages(used) : used, used,
                           context, counts);
    }
}

/* uUARs that the connection managers of this many workers ring: unused ones on
 * the workers' own pages if there are any; otherwise those that the driver
 * assigns or, if it would take further pages for that, one page for all */
static void sep_plan_add_managers(const sep_plan_config_t *config,
                                  unsigned long workers,
                                  sep_plan_context_t *context,
                                  sep_plan_counts_t *counts)
{
    const uct_sep_category_row_t *row = sep_plan_category_row(config->category);

    if (row->cm == UCT_SEP_CATEGORY_CM_OWN_PAGE) {
        context->td_used      += workers;
        context->td_pages_used = (row->tds > 2) ?
                                 (context->td_pages_used + workers) :
                                 context->td_pages;
    } else if ((row->cm == UCT_SEP_CATEGORY_CM_COMMON) &&
               (config->regime == SEP_PLAN_KERNEL_DYNAMIC)) {
        sep_plan_add_pairs(1, 1, 1, context, counts);
    } else {
        context->plain += workers;
    }
}

static int sep_plan_is_hub(const sep_plan_config_t *config)
{
    return sep_plan_category_row(config->category)->is_hub;
}

/* Workers as the device sees them: a hub is one */
static unsigned long sep_plan_channels(const sep_plan_config_t *config)
{
    return sep_plan_is_hub(config) ? 1 : config->workers;
}

static unsigned long sep_plan_num_contexts(const sep_plan_config_t *config)
{
    return sep_plan_category_row(config->category)->own_context ?
           sep_plan_channels(config) : 1;
}

/* Whether workers send through a context of their own, but receive in that of
 * the memory domain, which the first worker has */
static int sep_plan_is_split(const sep_plan_config_t *config)
{
    return sep_plan_category_row(config->category)->own_context &&
           (config->category != SEP_PLAN_NAIVE);
}

/* Those that do */
static unsigned long sep_plan_split_workers(const sep_plan_config_t *config)
{
    return sep_plan_is_split(config) ? (config->workers - 1) : 0;
}

/* Queue pairs that a worker needs: for a connection that it begins, and one of
 * somebody else */
static unsigned long sep_plan_least(const sep_plan_config_t *config)
{
    return (sep_plan_split_workers(config) > 0) ? 4 : 2;
}

unsigned long sep_plan_least_qps(const sep_plan_config_t *config)
{
    return sep_plan_channels(config) * sep_plan_least(config);
}

/* Connections that a worker has at a time, of so many queue pairs */
static unsigned long
sep_plan_connected(const sep_plan_config_t *config, unsigned long width)
{
    unsigned long share = config->max_qps / sep_plan_channels(config);

    return (config->max_qps == 0) ? config->peers :
           sep_plan_min(config->peers,
                        sep_plan_max(share, sep_plan_least(config)) / width);
}

/* Queue pairs that receive for workers that send in a context of their own */
static unsigned long sep_plan_responders(const sep_plan_config_t *config)
{
    return sep_plan_split_workers(config) * sep_plan_connected(config, 2);
}

/* Those that send */
static unsigned long sep_plan_senders(const sep_plan_config_t *config)
{
    return ((sep_plan_channels(config) - sep_plan_split_workers(config)) *
            sep_plan_connected(config, 1)) + sep_plan_responders(config);
}

/* uUARs of these in the domain's context: assigned, but never rung */
static void sep_plan_add_responders(const sep_plan_config_t *config,
                                    sep_plan_context_t *context,
                                    sep_plan_counts_t *counts)
{
    unsigned long count = sep_plan_responders(config);

    if ((count > 0) && (config->regime == SEP_PLAN_KERNEL_DYNAMIC)) {
        sep_plan_add_pairs(1, 1, 1, context, counts);
    } else {
        context->plain += count;
    }
}

/* Contexts, thread domains and UAR pages. @return Whether a context has pages
 * enough. */
static int sep_plan_add_contexts(const sep_plan_config_t *config,
                                 int has_others, sep_plan_counts_t *counts)
{
    unsigned long channels     = sep_plan_channels(config);
    unsigned long num_contexts = sep_plan_num_contexts(config);
    int is_enough              = 1;
    sep_plan_context_t context;
    unsigned long i;

    for (i = 0; i < num_contexts; ++i) {
        memset(&context, 0, sizeof(context));
        sep_plan_add_data(config, channels / num_contexts, &context, counts);
        if (has_others) {
            sep_plan_add_managers(config, channels / num_contexts, &context,
                                  counts);
        }
        if (has_others && (i == 0)) {
            sep_plan_add_responders(config, &context, counts);
        }
        sep_plan_add_context(config, &context, counts);
        if (config->regime == SEP_PLAN_NC) {
            is_enough &= (context.td_pages == 0);
        } else if ((config->regime == SEP_PLAN_LEGACY) &&
                   (config->max_dyn_uuars > 0)) {
            is_enough &= (context.td_pages * SEP_PLAN_UUARS_PER_UAR) <=
                         config->max_dyn_uuars;
        }
    }
    return is_enough;
}

/* A hub's single CQ is shared by all in any case */
static int sep_plan_shares_cqs(const sep_plan_config_t *config)
{
    return (config->cq_sharing > 1) && !sep_plan_is_hub(config);
}

/* CQ for the sends of this many workers */
static void sep_plan_add_shared_cqs(const sep_plan_config_t *config,
                                    unsigned long channels,
                                    sep_plan_counts_t *counts)
{
    sep_plan_add_cqs(sep_plan_div_up(channels, config->cq_sharing),
                     (unsigned long)config->cq_sharing *
                     (config->tx_cq_len + config->sizes.cq_headroom), counts);
}

/* The first worker has one for all; the others one for sends in their context,
 * and another one for receives, see below */
static void sep_plan_add_split_send_cqs(const sep_plan_config_t *config,
                                        sep_plan_counts_t *counts)
{
    sep_plan_add_cqs(1, config->tx_cq_len + config->rx_queue_len +
                        config->sizes.cq_headroom, counts);
    sep_plan_add_cqs(sep_plan_split_workers(config),
                     config->tx_cq_len + config->sizes.cq_headroom, counts);
}

static void
sep_plan_category(const sep_plan_config_t *config, sep_plan_counts_t *counts)
{
    unsigned long channels = sep_plan_channels(config);

    sep_plan_add_contexts(config, 0, counts);
    sep_plan_add_rc(config, sep_plan_senders(config), counts);

    if (sep_plan_is_split(config)) {
        sep_plan_add_split_send_cqs(config, counts);
    } else if (sep_plan_shares_cqs(config)) {
        sep_plan_add_shared_cqs(config, channels, counts);
    } else {
        sep_plan_add_cqs(channels, config->tx_cq_len + config->rx_queue_len +
                                   config->sizes.cq_headroom, counts);
    }
}

/* What workers with a context of their own have in that of the memory domain */
static void sep_plan_add_split(const sep_plan_config_t *config,
                               sep_plan_counts_t *counts)
{
    unsigned long split = sep_plan_split_workers(config);

    /* Queue pairs that receive: with room for one work request, which libmlx5
     * makes as large as one of any kind can be */
    sep_plan_add_qps(sep_plan_responders(config), SEP_PLAN_ANY_WQE, 0, 0,
                     counts);

    sep_plan_add_split_send_cqs(config, counts);
    sep_plan_add_cqs(split, config->rx_queue_len + config->sizes.cq_headroom,
                     counts);
}

/* Everything */
static void
sep_plan_total(const sep_plan_config_t *config, sep_plan_counts_t *counts,
               int *exceeds_p)
{
    unsigned long channels = sep_plan_channels(config);

    *exceeds_p = !sep_plan_add_contexts(config, 1, counts);
    sep_plan_add_rc(config, sep_plan_senders(config), counts);

    if (sep_plan_is_split(config)) {
        sep_plan_add_split(config, counts);
    } else if (sep_plan_shares_cqs(config)) {
        sep_plan_add_shared_cqs(config, channels, counts);
        sep_plan_add_cqs(channels, config->rx_queue_len +
                                   config->sizes.cq_headroom, counts);
    } else {
        sep_plan_add_cqs(channels, config->tx_cq_len + config->rx_queue_len +
                                   config->sizes.cq_headroom, counts);
    }

    sep_plan_add_srqs(config, channels, counts);
    sep_plan_add_cms(config, channels, counts);
    counts->transport_bytes = (config->workers * config->sizes.worker) +
                              (sep_plan_senders(config) *
                               config->sizes.connection) +
                              ((unsigned long)config->workers * config->peers *
                               config->sizes.endpoint);
}

static void sep_plan_subtract(const sep_plan_counts_t *total,
                              const sep_plan_counts_t *part,
                              sep_plan_counts_t *rest)
{
    const unsigned long *t = (const unsigned long*)total;
    const unsigned long *p = (const unsigned long*)part;
    unsigned long *r       = (unsigned long*)rest;
    size_t i;

    for (i = 0; i < (sizeof(*total) / sizeof(*t)); ++i) {
        r[i] = t[i] - p[i];
    }
}

void sep_plan_config_init(sep_plan_config_t *config)
{
    memset(config, 0, sizeof(*config));
    config->category      = SEP_PLAN_DYNAMIC;
    config->regime        = SEP_PLAN_KERNEL_DYNAMIC;
    config->workers       = 1;
    config->peers         = 1;
    config->cq_sharing    = 1;
    config->total_uuars   = 16;
    config->low_lat_uuars = 4;
    config->max_dyn_uuars = SEP_PLAN_MAX_DYN_UUARS;
    config->tx_segments   = 32; /* control, remote address */
    config->tx_max_sge    = 1;
    config->max_srq_wr    = 32767;
}

int sep_plan_set_uuars(sep_plan_config_t *config, int total, int low_lat)
{
    if ((total < 1) || (low_lat < 0)) {
        return -1;
    }

    total   = sep_plan_align(total, SEP_PLAN_UUARS_PER_UAR);
    low_lat = sep_plan_max(low_lat, (total > SEP_PLAN_MAX_NOT_LOW_LAT) ?
                                    (total - SEP_PLAN_MAX_NOT_LOW_LAT) : 0);
    if ((total > SEP_PLAN_MAX_UUARS) || (low_lat > (total - 1))) {
        return -1;
    }

    config->total_uuars   = total;
    config->low_lat_uuars = low_lat;
    return 0;
}

const uct_sep_category_row_t *
sep_plan_category_row(sep_plan_category_t category)
{
    return (category == SEP_PLAN_NAIVE) ? &sep_plan_naive :
                                          &uct_sep_category_rows[category];
}

const char *sep_plan_category_name(sep_plan_category_t category)
{
    return sep_plan_category_row(category)->name;
}

sep_plan_category_t sep_plan_category_find(const char *name)
{
    int category;

    for (category = 0; category < SEP_PLAN_LAST; ++category) {
        if (strcmp(name, sep_plan_category_name(category)) == 0) {
            break;
        }
    }
    return category;
}

int sep_plan_make(const sep_plan_config_t *config, sep_plan_t *plan_p,
                  const char **reason_p)
{
    if ((config->workers == 0) || (config->cq_sharing == 0) ||
        (config->category >= SEP_PLAN_LAST) ||
        (config->regime >= SEP_PLAN_REGIME_LAST)) {
        *reason_p = "there must be a worker, a category and a regime";
        return -1;
    }

    if ((config->total_uuars < SEP_PLAN_UUARS_PER_UAR) ||
        ((config->total_uuars % SEP_PLAN_UUARS_PER_UAR) != 0) ||
        (config->low_lat_uuars >= config->total_uuars)) {
        *reason_p = "MLX5_TOTAL_UUARS must be even, and greater than "
                    "MLX5_NUM_LOW_LAT_UUARS";
        return -1;
    }

    memset(plan_p, 0, sizeof(*plan_p));
    sep_plan_category(config, &plan_p->category);
    sep_plan_total(config, &plan_p->total, &plan_p->exceeds);
    sep_plan_subtract(&plan_p->total, &plan_p->category, &plan_p->transport);
    return 0;
}

unsigned long sep_plan_context_uars(const sep_plan_config_t *config,
                                    unsigned long plain)
{
    sep_plan_context_t context = {.plain = plain};
    sep_plan_counts_t counts   = {};

    sep_plan_add_context(config, &context, &counts);
    return sep_plan_uars(&counts);
}

unsigned long sep_plan_uars(const sep_plan_counts_t *counts)
{
    return counts->uars_static + counts->uars_dynamic;
}

unsigned long sep_plan_bytes(const sep_plan_counts_t *counts)
{
    return counts->qp_bytes + counts->cq_bytes + counts->srq_bytes +
           counts->mr_bytes + counts->driver_bytes + counts->transport_bytes;
}

unsigned long sep_plan_fit(const sep_plan_counts_t *counts, unsigned long pages,
                           unsigned long reserved)
{
    return (pages > reserved) ?
           ((pages - reserved) / sep_plan_uars(counts)) : 0;
}
