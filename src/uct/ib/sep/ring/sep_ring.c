/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ring/sep_ring.h>
#include <uct/ib/sep/ring/sep_ring_poll.h>

#include <ucs/sys/math.h>
#include <endian.h>


void uct_sep_ring_tx_close(uct_sep_ring_tx_t *tx)
{
    const uint8_t *taken = tx->taken;
    uint8_t told         = tx->told;

    memset(tx, 0, sizeof(*tx));
    tx->left  = -1;
    tx->told  = told;
    tx->taken = (taken == NULL) ? &tx->told : taken;
}

void uct_sep_ring_tx_set_other(uct_sep_ring_tx_t *tx,
                               const uct_sep_ring_rx_t *rx)
{
    /* The lower byte of a key counts messages; hosts are little-endian */
    tx->taken = (rx == NULL) ? &tx->told : (const uint8_t*)&rx->key;
    tx->told  = *tx->taken;
}

ucs_status_t uct_sep_ring_tx_open(uct_sep_ring_tx_t *tx,
                                  const uct_sep_ring_offer_t *offer,
                                  size_t max_length,
                                  const uct_sep_ring_count_t *returned)
{
    uint32_t size = offer->slot_size;

    if (!uct_sep_ring_is_slot_size(size) || (offer->slots == 0) ||
        (offer->slots > UCT_SEP_RING_MAX_SLOTS) ||
        ((offer->address % UCT_SEP_RING_ALIGN) != 0)) {
        return UCS_ERR_INVALID_PARAM;
    }

    tx->last_end   = offer->address + (uint64_t)offer->slots * size;
    tx->slot_end   = offer->address + size;
    tx->rkey       = htobe32(offer->rkey);
    tx->slot_size  = size;
    tx->max_length = ucs_min(size - sizeof(uct_sep_ring_tail_t), max_length);
    tx->slots      = offer->slots;
    tx->left       = offer->slots - 1;
    tx->key        = UCT_SEP_RING_KEY(0, 1);
    tx->credits    = 0;
    tx->returned   = returned;
    tx->seen       = *returned;
    tx->is_fenced  = 0;
    return UCS_OK;
}

int uct_sep_ring_tx_refresh(uct_sep_ring_tx_t *tx)
{
    /* No fence: what is done with a slot that came back is a store that depends
     * on it, and no processor stores before it knows that it has to */
    uint32_t returned = *tx->returned;
    uint32_t count    = tx->credits;

    if (tx->is_fenced) {
        return 0;
    }

    if ((int32_t)(returned - tx->seen) > 0) {
        count += returned - tx->seen;
    } else {
        returned = tx->seen;
    }

    /* left is one less than what there is */
    if ((count == 0) || (count > (uint32_t)(tx->slots - 1 - tx->left))) {
        return 0;
    }

    tx->credits = 0;
    tx->seen    = returned;
    tx->left   += count;
    return 1;
}

void uct_sep_ring_rx_init_empty(uct_sep_ring_rx_t *rx)
{
    memset(rx, 0, sizeof(*rx));
    rx->tail = (void*)&uct_sep_ring_empty;
    rx->key  = UCT_SEP_RING_KEY(0, 1);
}

void uct_sep_ring_rx_init(uct_sep_ring_rx_t *rx, void *memory, unsigned slots,
                          uint32_t slot_size, uint32_t *credits)
{
    unsigned i;

    memset(rx, 0, sizeof(*rx));
    rx->first      = UCS_PTR_BYTE_OFFSET(memory, slot_size -
                                         sizeof(uct_sep_ring_tail_t));
    rx->half       = UCS_PTR_BYTE_OFFSET(rx->first, ((slots - 1) / 2) *
                                                    slot_size);
    rx->last       = UCS_PTR_BYTE_OFFSET(rx->first, (slots - 1) * slot_size);
    rx->tail       = rx->first;
    rx->stop       = rx->half;
    rx->slots      = slots;
    rx->slot_size  = slot_size;
    rx->max_length = slot_size - sizeof(uct_sep_ring_tail_t);
    rx->key        = UCT_SEP_RING_KEY(0, 1);
    rx->credits    = credits;
    rx->max_rest   = UCT_SEP_RING_TAIL_REST(UINT8_MAX,
                                            UCT_SEP_RING_HANDLERS - 1,
                                            rx->max_length) ^
                     UCT_SEP_RING_TAIL_VALID;

    for (i = 0; i < slots; ++i) {
        *(uct_sep_ring_word_t*)UCS_PTR_BYTE_OFFSET(rx->first, i * slot_size) =
                0;
    }
}

int uct_sep_ring_rx_stop(uct_sep_ring_rx_t *rx)
{
    unsigned count = 1 + rx->ahead;
    int is_lap     = 0;

    rx->key  += UCT_SEP_RING_KEY(0, count);
    rx->ahead = 0;
    while (count-- > 0) {
        if (rx->tail == rx->last) {
            rx->tail = rx->first;
            is_lap   = 1;
            ++rx->laps;
        } else {
            rx->tail = UCS_PTR_BYTE_OFFSET(rx->tail, rx->slot_size);
        }
    }

    rx->stop = (rx->tail <= rx->half) ? rx->half : rx->last;
    return is_lap;
}
