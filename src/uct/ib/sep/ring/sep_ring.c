/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_ring.h"

#include <endian.h>


ucs_status_t uct_sep_ring_tx_open(uct_sep_ring_tx_t *tx,
                                  const uct_sep_ring_offer_t *offer,
                                  size_t max_length,
                                  const volatile uint32_t *returned)
{
    uint32_t size = offer->slot_size;

    if (!uct_sep_ring_is_slot_size(size) || (offer->slots == 0) ||
        (offer->slots > UCT_SEP_RING_MAX_SLOTS) ||
        ((offer->address % UCT_SEP_RING_ALIGN) != 0)) {
        return UCS_ERR_INVALID_PARAM;
    }

    tx->first_end  = offer->address + size;
    tx->last_end   = offer->address + (uint64_t)offer->slots * size;
    tx->slot_end   = tx->first_end;
    tx->rkey       = htobe32(offer->rkey);
    tx->slot_size  = size;
    tx->max_length = ucs_min(size - sizeof(uct_sep_ring_tail_t), max_length);
    tx->slots      = offer->slots;
    tx->left       = offer->slots - 1;
    tx->key        = 1;
    tx->returned   = returned;
    tx->seen       = *returned;
    return UCS_OK;
}

void uct_sep_ring_rx_init(uct_sep_ring_rx_t *rx, void *memory, unsigned slots,
                          uint32_t slot_size)
{
    unsigned i;

    memset(rx, 0, sizeof(*rx));
    rx->first      = UCS_PTR_BYTE_OFFSET(memory, slot_size -
                                         sizeof(uct_sep_ring_tail_t));
    rx->last       = UCS_PTR_BYTE_OFFSET(rx->first, (slots - 1) * slot_size);
    rx->tail       = rx->first;
    rx->slots      = slots;
    rx->slot_size  = slot_size;
    rx->max_length = slot_size - sizeof(uct_sep_ring_tail_t);
    rx->key        = 1;
    rx->max_owed   = ucs_max(slots / 2, 1);

    for (i = 0; i < slots; ++i) {
        *(uct_sep_ring_word_t*)UCS_PTR_BYTE_OFFSET(rx->first, i * slot_size) =
                0;
    }
}
