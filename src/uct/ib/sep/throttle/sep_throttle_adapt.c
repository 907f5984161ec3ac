/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/throttle/sep_throttle_adapt.h>

#include <ucs/sys/math.h>

/* A rate that is lower by this part is lower for a reason */
#define UCT_SEP_THROTTLE_TOLERANCE    (1.0 / 16)

/* The best rate is forgotten by this part per window: callers change */
#define UCT_SEP_THROTTLE_DECAY        (1.0 / 256)

/* Windows to stay where the search has ended, first and at most */
#define UCT_SEP_THROTTLE_MIN_PATIENCE 8
#define UCT_SEP_THROTTLE_MAX_PATIENCE 64

void uct_sep_throttle_adapt_init(uct_sep_throttle_adapt_t *adapt,
                                 uint32_t budget)
{
    adapt->budget   = budget;
    adapt->best     = 0;
    adapt->hold     = 0;
    adapt->patience = UCT_SEP_THROTTLE_MIN_PATIENCE;
}

void uct_sep_throttle_adapt_next(uct_sep_throttle_adapt_t *adapt, double rate,
                                 uint32_t min, uint32_t max)
{
    uint64_t budget = ucs_min(adapt->budget, max);

    if ((rate < (adapt->best * (1.0 - UCT_SEP_THROTTLE_TOLERANCE))) &&
        (adapt->budget < max)) {
        /* Too few. Steps up are larger than those down. */
        budget         += (budget / 4) + 1;
        adapt->hold     = adapt->patience;
        adapt->patience = ucs_min(2 * adapt->patience,
                                  UCT_SEP_THROTTLE_MAX_PATIENCE);
        adapt->best    *= 1.0 - UCT_SEP_THROTTLE_DECAY;
        if (budget >= max) {
            /* No budget has brought the rate back: something else is different
             * now. Begin again. */
            uct_sep_throttle_adapt_init(adapt, max);
        }
    } else if (adapt->hold > 0) {
        --adapt->hold;
        adapt->best = ucs_max(adapt->best, rate);
    } else {
        adapt->best = ucs_max(adapt->best *
                              (1.0 - UCT_SEP_THROTTLE_DECAY), rate);
        budget     -= budget / 8;
    }

    adapt->budget = ucs_min(ucs_max(budget, min), max);
}
