/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ring/sep_ring_poll.h>

#include <ucs/debug/memtrack_int.h>


const uct_sep_ring_word_t uct_sep_ring_empty = 0;


ucs_status_t uct_sep_ring_poll_init(uct_sep_ring_poll_t *poll, unsigned max)
{
    unsigned i;

    poll->count  = 0;
    poll->max    = ucs_align_up_pow2(max, UCT_SEP_RING_POLL_TAIL);
    poll->places = ucs_malloc(poll->max * sizeof(*poll->places),
                              "sep_ring_poll");
    if (poll->places == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < poll->max; ++i) {
        poll->places[i] = &uct_sep_ring_empty;
    }
    return UCS_OK;
}

void uct_sep_ring_poll_cleanup(uct_sep_ring_poll_t *poll)
{
    ucs_free(poll->places);
}

void uct_sep_ring_poll_set(uct_sep_ring_poll_t *poll, unsigned index,
                           uct_sep_ring_place_t place)
{
    poll->places[index] = place;
    poll->count         = ucs_max(poll->count,
                                  ucs_align_up_pow2(index + 1,
                                                    UCT_SEP_RING_POLL_TAIL));
}

void uct_sep_ring_poll_clear(uct_sep_ring_poll_t *poll, unsigned index)
{
    unsigned i;

    poll->places[index] = &uct_sep_ring_empty;

    /* Don't look at what was in use once */
    for (i = poll->count; i > 0; --i) {
        if (poll->places[i - 1] != &uct_sep_ring_empty) {
            break;
        }
    }
    poll->count = ucs_align_up_pow2(i, UCT_SEP_RING_POLL_TAIL);
}
