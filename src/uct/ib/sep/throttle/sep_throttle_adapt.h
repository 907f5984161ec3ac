/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_THROTTLE_ADAPT_H
#define UCT_SEP_THROTTLE_ADAPT_H

#include <ucs/sys/compiler_def.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * @file sep_throttle_adapt.h
 *
 * How many requests to keep under way: the fewest that give the rate. Knows
 * neither time nor adapters: it is told the rate at which requests completed
 * with the last budget, and says the next one.
 *
 * From the largest budget it goes down, step by step, as long as the rate does
 * not fall. If that is because of the adapter's caches (ConnectX-6: the rate of
 * 96 threads with 32 requests each is half of that with 8; Ren et al., SMART,
 * ASPLOS 2024), it rises at first. Where it falls, the budget goes back up and
 * stays for a while. Somebody who does not need what he may have has the same
 * rate with every budget, or lower ones for reasons of his own, upon which the
 * budget rises until it limits nobody.
 */

/** State of the search. */
typedef struct uct_sep_throttle_adapt {
    uint32_t budget; /**< Basic blocks that may be under way */
    double   best;   /**< Highest rate of late; any unit */
    unsigned hold;   /**< Windows for which to stay at the budget */
    unsigned patience; /**< Value of hold for the next time */
} uct_sep_throttle_adapt_t;


/** Begin with a budget. */
void uct_sep_throttle_adapt_init(uct_sep_throttle_adapt_t *adapt,
                                 uint32_t budget);


/**
 * Set the next budget.
 *
 * @param rate Of completions, with the present one; more than 0.
 * @param min  Limits of the next one, inclusive.
 * @param max
 */
void uct_sep_throttle_adapt_next(uct_sep_throttle_adapt_t *adapt, double rate,
                                 uint32_t min, uint32_t max);

END_C_DECLS

#endif
