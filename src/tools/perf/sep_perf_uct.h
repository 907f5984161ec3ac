/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_UCT_H
#define SEP_PERF_UCT_H

#include <tools/perf/sep_perf_result.h>
#include <tools/perf/sep_perf_wire.h>

/*
 * Level uct: workers of a UCT transport, one per thread.
 */

/** Measure a row. @return 0, a positive exit status, or -1; after a message. */
int sep_perf_uct_measure(const sep_perf_options_t *options,
                         const sep_perf_row_t *row, sep_perf_result_t *result);


/** Be the peer. @return 0, or -1 after a message. */
int sep_perf_uct_serve(int fd, const sep_perf_hello_t *hello,
                       const sep_perf_options_t *options);

#endif
