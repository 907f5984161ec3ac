/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_MODEL_POLICY_H
#define SEP_MODEL_POLICY_H

#include <model/rate.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file policy.h
 *
 * Names for what threads share, as measurements of others have them: those of
 * SMART (Ren et al., ASPLOS 2024), which compares ways to use libibverbs from
 * many threads. All queue pairs are in one context without thread domains.
 */

/** uUARs of a context that queue pairs get: libmlx5's defaults, with today's
 *  kernels (MLX5_TOTAL_UUARS less MLX5_NUM_LOW_LAT_UUARS, and the latter). */
#define SEP_MODEL_UUARS_SHARED     12
#define SEP_MODEL_UUARS_DEDICATED  4


/**
 * Find a policy.
 *
 * - shared-qp: a queue pair and a CQ for all threads
 * - mul-2, mul-4 or another number: a queue pair and a CQ for so many
 * - per-qp: one of each per thread; the driver deals its uUARs to them
 * - per-doorbell: and a uUAR per thread
 *
 * @return 0, or -1 if there is none of that name.
 */
int sep_model_policy_find(const char *name, sep_model_sharing_t *sharing_p);


/** Names that sep_model_policy_find() knows, for messages. */
extern const char sep_model_policy_list[];

#ifdef __cplusplus
}
#endif

#endif
