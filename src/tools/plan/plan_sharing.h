/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PLAN_SHARING_H
#define SEP_PLAN_SHARING_H

#include <tools/plan/plan.h>

#include <model/rate.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file plan_sharing.h
 *
 * What workers of a category share, in the words of the model that predicts
 * their rates.
 */

/**
 * Say what workers share.
 *
 * @param [in]  config     Category, regime, CQs, and uUARs of a context.
 * @param [in]  verbs      They post through libibverbs, which locks queue pairs
 *                         that have no thread domain.
 * @param [out] sharing_p  What they share.
 */
void sep_plan_sharing(const sep_plan_config_t *config, int verbs,
                      sep_model_sharing_t *sharing_p);

#ifdef __cplusplus
}
#endif

#endif
