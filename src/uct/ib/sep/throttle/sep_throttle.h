/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_THROTTLE_H
#define UCT_SEP_THROTTLE_H

#include <ucs/type/status.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * @file sep_throttle.h
 *
 * Budget of requests under way (UCX_SEP_TX_THROTTLE), which the process's
 * workers on a device share. It counts basic blocks of 64 bytes, as all credits
 * of send queues do: most requests have one.
 *
 * Each worker that sends may use an equal share. It withholds the rest from its
 * own credits, and asks for its share after some completions: posting knows
 * nothing of it. Nobody takes a lock, except to open and to close.
 */

/** Fewest basic blocks of a worker: two of the longest work requests. */
#define UCT_SEP_THROTTLE_MIN_SHARE   8u

/** Completions after which a worker reports, fewest and most. */
#define UCT_SEP_THROTTLE_MIN_REPORT  64u
#define UCT_SEP_THROTTLE_MAX_REPORT  256u

/** Basic blocks under way that a report may withhold, before they come back.
 *  Far fewer than UCT_SEP_CQ_HEADROOM / 2, down to which completions are asked
 *  for. */
#define UCT_SEP_THROTTLE_MAX_ADVANCE 16

/** Calls of progress without a completion after which a worker's share is for
 *  others. */
#define UCT_SEP_THROTTLE_MAX_IDLE    4096u

/** Most work requests of a connection without a completion, while there is a
 *  budget: they hold a part of it. */
#define UCT_SEP_THROTTLE_MODERATION  16u

/** The setting is a budget, or this: there is no limit. */
#define UCT_SEP_THROTTLE_OFF         0u

/** The setting is a budget, or this: it is adapted to the rate of
 *  completions. */
#define UCT_SEP_THROTTLE_AUTO        UINT32_MAX


typedef struct uct_sep_throttle_dev uct_sep_throttle_dev_t;


/**
 * Read the setting: n, y, or a number.
 *
 * @param [in]  value     What the user has written.
 * @param [out] budget_p  The budget, or UCT_SEP_THROTTLE_xx.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message.
 */
ucs_status_t uct_sep_throttle_parse(const char *value, uint32_t *budget_p);


/**
 * Get a device's budget. Workers with the same setting share one.
 *
 * @param [in]  name    Of the device.
 * @param [in]  budget  Setting, not UCT_SEP_THROTTLE_OFF.
 * @param [out] dev_p   To be released by @ref uct_sep_throttle_put.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY after a message.
 */
ucs_status_t uct_sep_throttle_get(const char *name, uint32_t budget,
                                  uct_sep_throttle_dev_t **dev_p);

void uct_sep_throttle_put(uct_sep_throttle_dev_t *dev);


/** A worker begins to send; or it has sent nothing for long, or is closed. */
void uct_sep_throttle_join(uct_sep_throttle_dev_t *dev);

void uct_sep_throttle_leave(uct_sep_throttle_dev_t *dev);


/**
 * Count what has completed, and adapt the budget if it is time.
 *
 * @param num_bb  Basic blocks.
 * @param max     Most that the worker could have under way.
 */
void uct_sep_throttle_report(uct_sep_throttle_dev_t *dev, uint32_t num_bb,
                             uint32_t max);


/** @return Basic blocks that each worker may have under way at present, at
 *          least UCT_SEP_THROTTLE_MIN_SHARE. */
uint32_t uct_sep_throttle_share(const uct_sep_throttle_dev_t *dev);

END_C_DECLS

#endif
