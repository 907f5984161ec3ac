/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_BUDGET_H
#define UCT_SEP_BUDGET_H

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/**
 * @file sep_budget.h
 *
 * Who shares a device's budget of queue pairs (UCX_SEP_MAX_QPS): the workers of
 * the process that have one. Each has an equal share, so none waits for what
 * another one holds.
 */

typedef struct uct_sep_budget uct_sep_budget_t;


/** @return What a setting means: with UCS_ULUNITS_AUTO, as many queue pairs as
 *          an adapter keeps its rate with (sep_qps_auto.h). */
unsigned long uct_sep_budget_number(unsigned long setting);


/**
 * One more worker has a share.
 *
 * @param [in]  name      Of the device.
 * @param [in]  max       Queue pairs that all of them may hold.
 *                        UCS_ULUNITS_AUTO is a wish, for which no worker is
 *                        refused.
 * @param [in]  min       Queue pairs that the worker needs.
 * @param [out] budget_p  For @ref uct_sep_budget_leave.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if its share would be less than it
 *         needs, or UCS_ERR_NO_MEMORY, after a message.
 */
ucs_status_t
uct_sep_budget_join(const char *name, unsigned long max, unsigned long min,
                    uct_sep_budget_t **budget_p);


/** A worker has no queue pairs any more. */
void uct_sep_budget_leave(uct_sep_budget_t *budget);


/** @return How many of @a max queue pairs a worker may hold that needs @a min.
 *          Others that come make it less, but not less than these. */
unsigned long uct_sep_budget_share(const uct_sep_budget_t *budget,
                                   unsigned long max, unsigned long min);

END_C_DECLS

#endif
