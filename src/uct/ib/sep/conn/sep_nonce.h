/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_NONCE_H
#define UCT_SEP_NONCE_H

#include <stdint.h>

/**
 * @file sep_nonce.h
 *
 * Nonces of the connection exchange. They are computed from a secret of the
 * interface, so that nothing has to be stored with a connection. Who knows some
 * of them, as each peer does, must not be able to tell the others: that takes a
 * cryptographic function.
 */

/** Secret of an interface: 128 random bits. */
typedef struct uct_sep_conn_key {
    uint64_t words[2];
} uct_sep_conn_key_t;


static inline uint64_t uct_sep_nonce_rotate(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static inline void uct_sep_nonce_rounds(uint64_t v[4], unsigned count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[1]  = uct_sep_nonce_rotate(v[1], 13) ^ v[0];
        v[0]  = uct_sep_nonce_rotate(v[0], 32);
        v[2] += v[3];
        v[3]  = uct_sep_nonce_rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3]  = uct_sep_nonce_rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1]  = uct_sep_nonce_rotate(v[1], 17) ^ v[2];
        v[2]  = uct_sep_nonce_rotate(v[2], 32);
    }
}


/**
 * Nonce of a queue pair: SipHash-2-4 (Aumasson and Bernstein, 2012) of its
 * epoch's four bytes, least significant first.
 *
 * @return Nonce; never zero.
 */
static inline uint64_t
uct_sep_nonce(const uct_sep_conn_key_t *key, uint32_t epoch)
{
    /* The only block: the data, and its length in the last byte */
    const uint64_t block = ((uint64_t)sizeof(epoch) << 56) | epoch;
    uint64_t v[4]        = {key->words[0] ^ 0x736f6d6570736575ull,
                            key->words[1] ^ 0x646f72616e646f6dull,
                            key->words[0] ^ 0x6c7967656e657261ull,
                            key->words[1] ^ 0x7465646279746573ull};
    uint64_t nonce;

    v[3] ^= block;
    uct_sep_nonce_rounds(v, 2);
    v[0] ^= block;
    v[2] ^= 0xff;
    uct_sep_nonce_rounds(v, 4);

    nonce = v[0] ^ v[1] ^ v[2] ^ v[3];
    return (nonce != 0) ? nonce : 1;
}

#endif
