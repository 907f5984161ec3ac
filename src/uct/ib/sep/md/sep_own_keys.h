/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_OWN_KEYS_H
#define UCT_SEP_OWN_KEYS_H

#include <uct/ib/sep/md/sep_md.h>
#include <ucs/datastruct/list.h>

BEGIN_C_DECLS

/**
 * @file sep_own_keys.h
 *
 * Local keys of registered memory in protection domains of workers, next to the
 * one of the memory domain. A worker that has a device context of its own sends
 * from the user's memory by such a key, which is made when it is first needed.
 * A memory handle has a slot for each of these domains.
 */

/** Slots in @ref uct_sep_mem_keys_t. */
#define UCT_SEP_MEM_KEYS  15

/** No local key. mlx5 never assigns this value: a key's index has 24 bits, and
 *  all ones is the null mkey (PRM). */
#define UCT_SEP_INVALID_LKEY  UINT32_MAX


/** Local key of a memory handle in a worker's context. */
typedef struct uct_sep_own_mr {
    struct ibv_mr   *mr;
    uct_sep_mem_t   *mem;
    unsigned        slot;
    ucs_list_link_t list;  /**< In uct_sep_own_keys_t */
} uct_sep_own_mr_t;


/** Local keys of a memory handle in contexts of workers, by slot. */
struct uct_sep_mem_keys {
    uint32_t                lkeys[UCT_SEP_MEM_KEYS];
    uct_sep_own_mr_t        *mrs[UCT_SEP_MEM_KEYS]
                            UCT_SEP_GUARDED_BY(uct_sep_own_mutex);
    struct uct_sep_mem_keys *next; /**< Further slots */
};


/** A protection domain of a worker, and the keys in it. */
typedef struct uct_sep_own_keys {
    struct ibv_pd   *pd;   /**< Not owned */
    unsigned        slot;  /**< Of the keys in memory handles */
    /** uct_sep_own_mr_t */
    ucs_list_link_t mrs UCT_SEP_GUARDED_BY(uct_sep_own_mutex);
} uct_sep_own_keys_t;


/** No keys yet. The slot is that of no other such protection domain. */
void uct_sep_own_keys_init(uct_sep_own_keys_t *own, struct ibv_pd *pd,
                           unsigned slot);


/** Release all keys in the protection domain. */
void uct_sep_own_keys_cleanup(uct_sep_own_keys_t *own)
        UCT_SEP_REQUIRES(uct_sep_own_mutex);


/**
 * Make the local key of a memory handle, unless it exists. Called by the worker
 * that has the protection domain.
 *
 * @return The key, or UCT_SEP_INVALID_LKEY after a message.
 */
uint32_t uct_sep_own_keys_make(uct_sep_own_keys_t *own, uct_sep_md_t *md,
                               uct_sep_mem_t *mem);


/** Release a memory handle's keys in all workers' protection domains. */
void uct_sep_own_keys_release_mem(uct_sep_md_t *md, uct_sep_mem_t *mem);


/** @return Local key, or UCT_SEP_INVALID_LKEY if it does not exist yet. */
static UCS_F_ALWAYS_INLINE uint32_t
uct_sep_own_keys_lkey(const uct_sep_own_keys_t *own, const uct_sep_mem_t *mem)
{
    unsigned slot = own->slot;
    const uct_sep_mem_keys_t *keys;

    /* Others may add to the list while we look at it */
    keys = __atomic_load_n(&mem->keys, __ATOMIC_ACQUIRE);
    while (keys != NULL) {
        if (ucs_likely(slot < UCT_SEP_MEM_KEYS)) {
            return keys->lkeys[slot];
        }

        slot -= UCT_SEP_MEM_KEYS;
        keys  = __atomic_load_n(&keys->next, __ATOMIC_ACQUIRE);
    }

    return UCT_SEP_INVALID_LKEY;
}

END_C_DECLS

#endif
