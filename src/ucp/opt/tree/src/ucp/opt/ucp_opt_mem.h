/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_MEM_H_
#define UCP_OPT_MEM_H_

#include <ucp/core/ucp_mm.h>
#include <ucp/opt/ucp_opt.h>
#include <ucs/arch/cpu.h>
#include <ucs/datastruct/list.h>
#include <ucs/memory/rcache_int.h>
#include <ucs/type/spinlock.h>

/*
 * Registrations that a worker has just used. Stock UCP asks the context's cache
 * for the registration of a buffer with each operation and gives it back
 * afterwards, both under the one lock of the context: workers of threads of
 * their own wait for each other there (UCX issue 11034).
 *
 * A worker has a few memory handles of its own. Each is a copy of one of the
 * context's cache, which is its parent, and holds one reference to that for all
 * the operations of the worker that use it. So what these take is the lock of
 * the worker, which nobody else wants. Others take it only if a registration
 * must go: its memory was unmapped, or a peer may not write to it any more.
 *
 * UCP takes a handle with a parent for one that the user has given. So there is
 * nothing else that has to know these, but for who gives them back.
 */

/** How many buffers a worker remembers. */
#define UCP_OPT_MEM_ENTRIES 8

/** Flag of a memory handle: a worker's own. */
#define UCP_MEMH_FLAG_OPT   UCS_BIT(7)


/** A registration that the worker holds. */
typedef struct ucp_opt_mem_entry {
    struct ucp_opt_mem *mem;      /**< whose it is */
    unsigned           uses;      /**< operations that have it */
    ucs_pgt_addr_t     start;     /**< of its memory */
    ucs_pgt_addr_t     end;       /**< behind it; 0: nobody finds it any more,
                                       and it is given back after its uses */
    /** Memory domains by which it can be sent, for version 1 of the protocols
     *  and for version 2 */
    ucp_md_map_t       send_md_map[2];
    ucp_mem_t          memh;      /**< copy; without a parent if there is
                                       none. Last, since it ends in an array */
} ucp_opt_mem_entry_t;


/** What a worker remembers. */
typedef struct ucp_opt_mem {
    ucs_list_link_t     list;      /**< of the context, under its lock */
    int                 is_shared; /**< whether others may look: lock it */
    ucs_spinlock_t      lock;      /**< all below; taken after the context's */
    unsigned            next;      /**< where to look for one to replace */
    ucp_opt_mem_entry_t *found;    /**< what was found last */
    ucp_opt_mem_entry_t *entries[UCP_OPT_MEM_ENTRIES];
} ucp_opt_mem_t;


/** Whether an operation of a worker may use what that remembers: its buffer is
 *  in one piece, of the host, and has no memory handle yet. */
#define ucp_opt_mem_takes(_worker, _dt_iter) \
    (((_worker)->flags & UCP_WORKER_FLAG_OPT_MEM) && \
     ((_dt_iter)->dt_class == UCP_DATATYPE_CONTIG) && \
     ((_dt_iter)->type.contig.memh == NULL) && ((_dt_iter)->length > 0) && \
     ((_dt_iter)->mem_info.type == UCS_MEMORY_TYPE_HOST))

/** The same for a rendezvous request, whose peer has a key for the buffer: not
 *  where keys are invalidated if the peer fails, and not where another memory
 *  domain may be asked to register the buffer later, with the same handle. */
#define ucp_opt_mem_takes_rndv(_ep, _dt_iter) \
    (ucp_opt_mem_takes((_ep)->worker, _dt_iter) && \
     (ucp_ep_config(_ep)->key.err_mode == UCP_ERR_HANDLING_MODE_NONE) && \
     ucs_is_pow2((_ep)->worker->context->cache_md_map[UCS_MEMORY_TYPE_HOST]))

/**
 * Get a buffer's memory handle for one operation of a worker. It is given back
 * by ucp_memh_put().
 *
 * @param worker     Worker, which UCP_WORKER_FLAG_OPT_MEM is set for.
 * @param address    Buffer.
 * @param length     Its length in bytes, not 0.
 * @param md_map     Memory domains to have it registered with.
 * @param uct_flags  UCT_MD_MEM_ that it needs.
 * @param memh_p     Memory handle: the worker's, or one of the context's cache.
 *
 * @return As ucp_memh_get().
 */
ucs_status_t ucp_opt_mem_get(ucp_worker_h worker, void *address, size_t length,
                             ucp_md_map_t md_map, unsigned uct_flags,
                             ucp_mem_h *memh_p);

/** Part of @ref ucp_opt_mem_put: an operation does not use a worker's handle
 *  any more. */
void ucp_opt_mem_release(ucp_mem_h memh);

/** Part of @ref ucp_opt_mem_release: the registration has to go, if this was
 *  the last operation that used it. */
void ucp_opt_mem_release_gone(ucp_opt_mem_entry_t *entry);

/** Part of ucp_memh_put(), for handles with a parent: whether it was one of a
 *  worker's, which is given back then. */
static inline int ucp_opt_mem_put(ucp_mem_h memh)
{
    if (!(memh->flags & UCP_MEMH_FLAG_OPT)) {
        return 0;
    }

    ucp_opt_mem_release(memh);
    return 1;
}

/** Whether a registration is still what is known for its memory. The thread
 *  that unmaps memory, or invalidates its registration, clears the flag before
 *  anybody can have other memory at the same address. */
static inline int ucp_opt_mem_is_known(ucp_mem_h parent)
{
    return parent->super.flags & UCS_RCACHE_REGION_FLAG_PGTABLE;
}

/** Whether memory was unmapped that the cache has not looked for yet, or not to
 *  the end: its registrations may be known. To be asked before that. */
#define ucp_opt_mem_has_events(_context) \
    ((_context)->rcache->inv_pending || ({ \
        ucs_memory_cpu_load_fence(); \
        0; \
    }))

/** Have all workers give back a registration that is being invalidated, for
 *  which UCS waits until nobody has it any more; if @a parent is NULL, those
 *  whose memory was unmapped: that is to be done after memory was registered,
 *  which is when UCS does the same. The context must be locked. */
void ucp_opt_mem_remove(ucp_context_h context, ucp_mem_h parent);

/** Give back all of a worker that is being destroyed. */
void ucp_opt_mem_cleanup(ucp_worker_h worker);

#endif
