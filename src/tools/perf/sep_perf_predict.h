/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_PREDICT_H
#define SEP_PERF_PREDICT_H

#include <tools/perf/sep_perf_result.h>

/*
 * What the model predicts for a row.
 */

/**
 * Predict rate and latency of a row, with the uUARs that libmlx5's environment
 * variables say.
 *
 * @param [in]    part_id  Vendor's number of the device, for the adapter if the
 *                         options name none.
 * @param [inout] result   Has the regime, and whether data is inline.
 *
 * @return 0, or -1 after a message.
 */
int sep_perf_predict(const sep_perf_options_t *options,
                     const sep_perf_row_t *row, unsigned part_id,
                     sep_perf_result_t *result);

#endif
