/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ring/sep_ring_set.h>

#include <ucs/sys/math.h>


/* Messages of an epoch, per ring: so many that everybody who matters has been
 * heard several times */
#define UCT_SEP_RING_SET_EPOCH   4096u

/* A ring changes hands if that is worth this factor, and so many messages: to
 * take one back costs four messages and the time of a round trip */
#define UCT_SEP_RING_SET_FACTOR  2u
#define UCT_SEP_RING_SET_MARGIN  256u


void uct_sep_ring_set_init(uct_sep_ring_set_t *set, unsigned max)
{
    set->epoch    = 0;
    set->messages = 0;
    set->length   = (uint64_t)UCT_SEP_RING_SET_EPOCH * ucs_max(max, 1u);
}

uint32_t uct_sep_ring_score_get(const uct_sep_ring_score_t *score,
                                const uct_sep_ring_set_t *set)
{
    uint32_t age = set->epoch - score->epoch;

    return (age < 32) ? (score->messages >> age) : 0;
}

void uct_sep_ring_score_add(uct_sep_ring_score_t *score,
                            const uct_sep_ring_set_t *set, uint64_t messages)
{
    uint64_t sum = uct_sep_ring_score_get(score, set) + messages;

    score->messages = ucs_min(sum, UINT32_MAX);
    score->epoch    = set->epoch;
}

void uct_sep_ring_set_report(uct_sep_ring_set_t *set,
                             uct_sep_ring_score_t *score, uint32_t messages)
{
    set->messages += messages;
    if (set->messages >= set->length) {
        set->messages = 0;
        ++set->epoch;
    }
    uct_sep_ring_score_add(score, set, messages);
}

int uct_sep_ring_set_replaces(uint32_t candidate, uint32_t least)
{
    return candidate > ((uint64_t)least * UCT_SEP_RING_SET_FACTOR +
                        UCT_SEP_RING_SET_MARGIN);
}
