/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_PROGRESS_STATE_H
#define UCT_SEP_PROGRESS_STATE_H

#include <uct/ib/sep/throttle/sep_throttle.h>
#include <stdint.h>

/**
 * @file sep_progress_state.h
 *
 * What progress keeps in an interface.
 */

/** Share of a budget: sep_progress.h */
typedef struct uct_sep_progress_share {
    uct_sep_throttle_dev_t *dev;       /**< NULL if there is none */
    int32_t                held;       /**< What of tx.cq_credits is not to be
                                            used */
    int32_t                countdown;  /**< Completions until the next
                                            report */
    unsigned               idle;       /**< Calls since the last one */
    uint8_t                is_user;    /**< Has joined */
} uct_sep_progress_share_t;

#endif
