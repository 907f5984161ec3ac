/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_MEASURE_H
#define SEP_PERF_MEASURE_H

#include <tools/perf/sep_perf_result.h>
#include <tools/perf/sep_perf_run.h>
#include <tools/perf/sep_perf_wire.h>

/*
 * What measurements of all levels have in common.
 */

/** How it is known that data has arrived. */
typedef struct sep_perf_check {
    int            fd;       /**< Of the peer */
    sep_model_op_t op;
    size_t         bytes;
    void           *arg;

    /** @return Sum of what a thread writes. */
    uint64_t (*expect)(const void *arg, unsigned thread);

    /** @return Sum of what a thread has read. */
    uint64_t (*local)(const void *arg, unsigned thread);

    /** Say what was taken, when all connections are there; NULL: that is known
     *  already. */
    void (*taken)(void *arg, sep_perf_result_t *result);
} sep_perf_check_t;


/** Fill in what the peer has to know. */
void sep_perf_hello_init(sep_perf_hello_t *hello,
                         const sep_perf_options_t *options,
                         const sep_perf_row_t *row, unsigned num_qps);


/** Be the peer, of any level. @return 0, or -1 after a message. */
int sep_perf_serve(int fd, const sep_perf_options_t *options);


/**
 * Find the device that the options name, and what it is like.
 *
 * @param [inout] result     Gets its name and its regime.
 * @param [out]   part_id_p  Vendor's number of the part.
 *
 * @return 0, or -1 after a message.
 */
int sep_perf_probe(const sep_perf_options_t *options, sep_perf_result_t *result,
                   unsigned *part_id_p);


/**
 * Warm up, measure rate and latency, and see whether data has arrived.
 *
 * @return 0, SEP_PERF_WRONG after a message, or -1 after a message.
 */
int sep_perf_measure(sep_perf_group_t *group, const sep_perf_options_t *options,
                     const sep_perf_check_t *check, sep_perf_result_t *result);


/** What is known behind a measurement: processors, prediction. @return 0, or -1
 *  after a message. */
int sep_perf_finish(const sep_perf_options_t *options,
                    const sep_perf_row_t *row, unsigned part_id,
                    sep_perf_result_t *result);


/** @return Bytes that the process has on its heap and in mappings that are its
 *          own. */
unsigned long sep_perf_memory(void);

#endif
