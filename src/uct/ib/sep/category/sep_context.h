/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CONTEXT_H
#define UCT_SEP_CONTEXT_H

#include <uct/ib/sep/md/sep_md.h>
#include <ucs/datastruct/list.h>

BEGIN_C_DECLS

/**
 * @file sep_context.h
 *
 * Device context of one worker, next to that of the memory domain (category
 * "mpi_everywhere"). Only what sends is in it: receive queues and whatever
 * remote sides access stay in the memory domain's context, so that one remote
 * key is good for all workers, including those that come later.
 *
 * Sending from the user's memory needs a local key of the worker's own
 * protection domain, which is made when it is first needed.
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
    ucs_list_link_t list;  /**< In uct_sep_context_t */
} uct_sep_own_mr_t;


/** Local keys of a memory handle in contexts of workers, by slot. */
struct uct_sep_mem_keys {
    uint32_t                lkeys[UCT_SEP_MEM_KEYS];
    uct_sep_own_mr_t        *mrs[UCT_SEP_MEM_KEYS]; /**< Under own_lock */
    struct uct_sep_mem_keys *next;                  /**< Further slots */
};


/** Context of a worker. */
struct uct_sep_context {
    struct ibv_context *context;
    struct ibv_pd      *pd;
    uct_sep_uuars_t    uuars;
    unsigned           slot;   /**< Slot of its keys in memory handles */
    ucs_list_link_t    mrs;    /**< uct_sep_own_mr_t; own_lock */
    ucs_list_link_t    list;   /**< In uct_sep_md_t; own_lock */
};


/**
 * Open a context on a memory domain's device.
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY, or UCS_ERR_NO_RESOURCE if the device has
 *         none left, which is logged at debug level only.
 */
ucs_status_t uct_sep_context_open(uct_sep_md_t *md, uct_sep_context_t **own_p);


/** Close it, with the local keys in it. */
void uct_sep_context_close(uct_sep_md_t *md, uct_sep_context_t *own);


/**
 * Make the local key of a memory handle in a context, unless it exists. Called
 * by the worker that owns the context.
 *
 * @return The key, or UCT_SEP_INVALID_LKEY after a message.
 */
uint32_t uct_sep_context_make_lkey(uct_sep_context_t *own, uct_sep_md_t *md,
                                   uct_sep_mem_t *mem);


/** Release the local keys of a memory handle that is about to be released. */
void uct_sep_context_release_mem(uct_sep_md_t *md, uct_sep_mem_t *mem);


/** @return Local key, or UCT_SEP_INVALID_LKEY if it does not exist yet. */
static UCS_F_ALWAYS_INLINE uint32_t
uct_sep_context_lkey(const uct_sep_context_t *own, const uct_sep_mem_t *mem)
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
