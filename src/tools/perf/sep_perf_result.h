/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_RESULT_H
#define SEP_PERF_RESULT_H

#include <tools/perf/sep_perf_options.h>

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file sep_perf_result.h
 *
 * What a row has measured, and how it is printed. Nothing here needs a device.
 */

/** What the software device counts: enumerator, name. */
#define SEP_PERF_COUNTER_FOREACH(_macro) \
    _macro(DOORBELLS, "doorbells") \
    _macro(BLUEFLAMES, "blueflames") \
    _macro(DMA_READS, "dma_reads") \
    _macro(DMA_WRITES, "dma_writes") \
    _macro(CQES, "cqes")

typedef enum {
#define SEP_PERF_COUNTER_ENUMERATOR(_id, _name) SEP_PERF_##_id,
    SEP_PERF_COUNTER_FOREACH(SEP_PERF_COUNTER_ENUMERATOR)
#undef SEP_PERF_COUNTER_ENUMERATOR
    SEP_PERF_COUNTER_LAST
} sep_perf_counter_t;

/** Their names, as mlx5sim-stat has them. */
extern const char *const sep_perf_counter_names[SEP_PERF_COUNTER_LAST];


/** What a row has measured. */
typedef struct sep_perf_result {
    unsigned long contexts;
    unsigned long uars;          /**< UAR pages, of all kinds */
    unsigned long uuars;         /**< uUARs on them, without those pages that
                                      are for doorbells of CQs only */
    unsigned long tds;
    unsigned long qps;
    unsigned long cqs;
    unsigned long pds;
    unsigned long mrs;
    unsigned long bufs;
    unsigned long memory;        /**< Bytes that the objects have on the heap,
                                      queues included */
    unsigned long paper_memory;  /**< Bytes in the paper's sizes of objects; 0:
                                      these do not apply */
    unsigned      regime;        /**< sep_plan_regime_t */
    unsigned      is_inline;     /**< Data was inline in fact */
    unsigned      cpus;          /**< Processors that threads may use */
    unsigned      is_device;     /**< On the software device */
    unsigned      has_counters;  /**< It has told what it did */
    uint64_t      messages;      /**< Of all threads */
    double        rate;          /**< Messages per second */
    double        latency[3];    /**< Mean, median, 99 %: seconds; 0: not
                                      measured */
    double        counters[SEP_PERF_COUNTER_LAST]; /**< Per message */
    double        predicted;     /**< Messages per second; 0: none */
    double        predicted_latency; /**< Seconds */
    unsigned      limit;         /**< sep_model_limit_t of it */
    char          device[32];    /**< Name */
    char          adapter[SEP_MODEL_NAME_MAX]; /**< Model's, "" for none */
} sep_perf_result_t;


/** Where results go, and in which form. */
typedef struct sep_perf_out {
    FILE               *stream;
    const sep_perf_options_t *options;
    struct json_object *json;     /**< Array of rows, NULL: no JSON */
    unsigned           num_rows;
    int                is_device; /**< One of them was on the device */
    unsigned           crowded;  /**< Processors, if one row had more threads */
    int                is_listed;  /**< One had lists or was not signaled, which
                                        the model does not know */
} sep_perf_out_t;


/** Begin. @param json  What rows are added to, or NULL. */
void sep_perf_out_begin(sep_perf_out_t *out, FILE *stream,
                        const sep_perf_options_t *options,
                        struct json_object *json);


/** Print a row, or add it. */
void sep_perf_out_row(sep_perf_out_t *out, const sep_perf_row_t *row,
                      const sep_perf_result_t *result);


/** What is to be said about all rows. */
void sep_perf_out_end(sep_perf_out_t *out);

#ifdef __cplusplus
}
#endif

#endif
