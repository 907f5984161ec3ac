/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_TAG_MATCH_H_
#define UCP_OPT_TAG_MATCH_H_

#include <ucp/tag/tag_match.inl>

#include <stdint.h>

/*
 * The queue of a tag. It is that of ucp_tag_match_calc_hash(), found in fewer
 * instructions.
 */

/** Remainder of a 32-bit number and the number of queues. The first product is
 *  the fraction of the quotient in units of 2^-64, so the upper half of the
 *  second is the remainder; exactly, as the divisor has less than 32 bits. */
static UCS_F_ALWAYS_INLINE uint64_t ucp_opt_tag_remainder(uint32_t value)
{
#ifdef __SIZEOF_INT128__
    uint64_t fraction = value * (UINT64_MAX / UCP_TAG_MATCH_HASH_SIZE + 1);

    return ((unsigned __int128)fraction * UCP_TAG_MATCH_HASH_SIZE) >> 64;
#else
    return value % UCP_TAG_MATCH_HASH_SIZE;
#endif
}

/** Queue of receives of a tag, all bits of which are compared. */
static UCS_F_ALWAYS_INLINE ucp_request_queue_t *
ucp_opt_tag_queue(ucp_tag_match_t *tm, ucp_tag_t tag)
{
    size_t hash = ucp_opt_tag_remainder(tag) ^ ucp_opt_tag_remainder(tag >> 32);

    ucs_assert(hash == ucp_tag_match_calc_hash(tag));
    return &tm->expected.hash[hash];
}

#endif
