/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A ring of the eager channel: the sender and its adapter write payload and
 * tail into slots, the receiver reads the payload once it has seen the tail,
 * and its adapter writes the counter by which slots come back. Mutant 1: no
 * fence between tail and payload. Mutant 2: none before slots are given back.
 */
#include "litmus.h"

#include <ucs/sys/math.h>

/* What others write */
#define UCT_SEP_RING_LITMUS
typedef litmus_word<uint64_t> uct_sep_ring_word_t;
typedef litmus_word<uint32_t> uct_sep_ring_count_t;
#include "ring/sep_ring.c"

const uct_sep_ring_word_t uct_sep_ring_empty = {0};

struct litmus_ring : rl::test_suite<litmus_ring, 2> {
    enum {
        SLOTS     = 2,
        SLOT_SIZE = 64,
        MESSAGES  = 5,
        LENGTH    = 8
    };

    /* Not in the object, which Relacy does not align */
    alignas(SLOT_SIZE) static uint8_t slots[SLOTS * SLOT_SIZE];

    litmus_memory        memory;
    uct_sep_ring_count_t returned;
    uct_sep_ring_tx_t    tx;    /* The sender's */
    uct_sep_ring_tx_t    other; /* The receiver's, without a ring: it has
                                   what is owed */
    uct_sep_ring_rx_t    rx;

    void before()
    {
        uct_sep_ring_offer_t offer;

        memset(&tx, 0, sizeof(tx));
        memset(&other, 0, sizeof(other));
        memset((void*)&rx, 0, sizeof(rx));
        uct_sep_ring_tx_close(&tx);
        uct_sep_ring_tx_close(&other);
        uct_sep_ring_rx_init(&rx, slots, SLOTS, SLOT_SIZE, &other.credits);
        uct_sep_ring_tx_set_other(&other, &rx);
        returned        = 0;
        offer.address   = (uintptr_t)slots;
        offer.rkey      = 1;
        offer.slot_size = SLOT_SIZE;
        offer.slots     = SLOTS;
        RL_ASSERT(uct_sep_ring_tx_open(&tx, &offer, LENGTH, &returned) ==
                  UCS_OK);
        for (unsigned i = 0; i < SLOTS; ++i) {
            *payload(slots + (i + 1) * SLOT_SIZE) = 0;
        }
    }

    static litmus_data<uint64_t> *payload(void *end)
    {
        return (litmus_data<uint64_t>*)((uint8_t*)end - 16);
    }

    /* What the adapter does follows from what the program has stored, which
     * depends on what it has loaded: C++ has no word for that order */
    static void depends()
    {
        litmus_acquire();
    }

    void send()
    {
        for (unsigned i = 1; i <= MESSAGES; ++i) {
            while (tx.left < 0) {
                if (!uct_sep_ring_tx_refresh(&tx)) {
                    litmus_wait();
                }
            }

            uct_sep_ring_tail_t tail = uct_sep_ring_tx_tail(&tx, i, LENGTH);
            uint64_t word            = tail.key | ((uint64_t)tail.rest << 32);
            uint8_t *end             = (uint8_t*)tx.slot_end;

            uct_sep_ring_tx_advance(&tx);
            depends();
            *payload(end) = i;
            litmus_release(); /* The adapter's order */
            *(uct_sep_ring_word_t*)(end - sizeof(tail)) = word;
        }
    }

    void receive()
    {
        for (unsigned i = 1; i <= MESSAGES;) {
            uct_sep_ring_word_t *tail = uct_sep_ring_rx_next(&rx);
            uint64_t word             = uct_sep_ring_rx_look(tail);

            if (!uct_sep_ring_rx_is_next(&rx, word)) {
                RL_ASSERT(uct_sep_ring_rx_may_wait(&rx, word));
                litmus_wait();
                continue;
            }

            uint32_t rest = uct_sep_ring_rx_accept(word);
            RL_ASSERT(rest <= rx.max_rest);
            RL_ASSERT(UCT_SEP_RING_REST_AM_ID(rest) == i);
            uct_sep_ring_rx_begin(&rx, tail);
            RL_ASSERT(*(litmus_data<uint64_t>*)uct_sep_ring_payload(
                              tail, UCT_SEP_RING_REST_LENGTH(rest)) == i);
            if (!uct_sep_ring_rx_end(&rx)) {
                (void)uct_sep_ring_rx_stop(&rx);
            }

            uct_sep_ring_rx_return(&rx, uct_sep_ring_tx_take_owed(&other));
            returned = rx.returned; /* By the adapter */
            ++i;
        }
    }

    void thread(unsigned index)
    {
        (index == 0) ? send() : receive();
    }
};

uint8_t litmus_ring::slots[];

int main(int argc, char **argv)
{
    return litmus_run<litmus_ring>(argc, argv, "ring", 20000);
}
