/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RKEY_H
#define UCT_SEP_RKEY_H

#include <uct/ib/sep/base/sep_def.h>
#include <uct/ib/sep/compat/sep_compat_md.h>
#include <uct/api/uct.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * @file sep_rkey.h
 *
 * Remote keys. Memory that is registered with relaxed ordering has two: what is
 * written through the relaxed one may overtake, and be overtaken by, any write
 * before it; what is written through the strict one comes after all before it
 * (verbs.h: IBV_ACCESS_RELAXED_ORDERING; PCI Express Base Specification,
 * "Transaction Ordering"). Otherwise the strict one stands for both.
 *
 * In a uct_rkey_t both are as in a work request, big endian: the one for puts
 * and gets in the lower half, the strict one in the upper half. So either costs
 * one instruction.
 */

/** Packed remote key. */
typedef struct uct_sep_packed_rkey {
    __be32 magic;   /**< UCT_SEP_RKEY_MAGIC or UCT_SEP_RKEY_RELAXED_MAGIC */
    __be32 rkey;    /**< Strict one */
    __be32 relaxed; /**< Only with UCT_SEP_RKEY_RELAXED_MAGIC */
} UCS_S_PACKED uct_sep_packed_rkey_t;

/** "SEPk" and "SEPr", to tell our keys from others' and from garbage. */
#define UCT_SEP_RKEY_MAGIC          0x5345506bu
#define UCT_SEP_RKEY_RELAXED_MAGIC  0x53455072u


/** Whether a relaxed key has ever been unpacked: if not, all that a queue pair
 *  writes arrives in order. Use uct_sep_rkey_is_order_relaxed(). */
extern int uct_sep_rkey_has_relaxed;


/** @return Length of a packed key, bytes. */
static inline size_t uct_sep_rkey_packed_size(int is_relaxed)
{
    return is_relaxed ? sizeof(uct_sep_packed_rkey_t) :
                        ucs_offsetof(uct_sep_packed_rkey_t, relaxed);
}


/**
 * Pack a remote key.
 *
 * @param strict   Strict key, as libibverbs has it.
 * @param relaxed  Relaxed one, or the same if there is none.
 * @param buffer   As long as uct_sep_rkey_packed_size() says.
 */
void uct_sep_rkey_pack(uint32_t strict, uint32_t relaxed, void *buffer);


/** Unpack a remote key; of uct_component_t. Returns UCS_ERR_INVALID_PARAM after
 *  an error message if it is none of ours. */
ucs_status_t uct_sep_rkey_unpack(uct_component_h component, const void *buffer,
                                 UCT_SEP_COMPAT_RKEY_UNPACK_PARAMS
                                 uct_rkey_t *rkey_p, void **handle_p);


/** @return Whether the peers' order of writes has to be looked after, because
 *          some of them may be relaxed. */
static inline int uct_sep_rkey_is_order_relaxed(void)
{
    return __atomic_load_n(&uct_sep_rkey_has_relaxed, __ATOMIC_RELAXED);
}


/** @return Remote key of two keys as libibverbs has them. */
static inline uct_rkey_t uct_sep_rkey_make(uint32_t strict, uint32_t relaxed)
{
    return ((uct_rkey_t)htobe32(strict) << 32) | htobe32(relaxed);
}


/** @return A remote key by which puts are strict. */
static UCS_F_ALWAYS_INLINE uct_rkey_t uct_sep_rkey_strict(uct_rkey_t rkey)
{
    return rkey >> 32;
}


/** @return Key for puts and gets as libibverbs has it. */
static UCS_F_ALWAYS_INLINE uint32_t uct_sep_rkey_value(uct_rkey_t rkey)
{
    return be32toh((uint32_t)rkey);
}

END_C_DECLS

#endif
