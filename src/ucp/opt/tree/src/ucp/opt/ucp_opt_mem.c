/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt_compat.h"

/* Before 1.18 memory is not registered by UCP's cache, but by those of memory
 * domains. */
#if UCX_OPT_SINCE(18)

#include "ucp_opt_mem.h"

#include <ucp/core/ucp_worker.h>
#include <ucp/core/ucp_mm.inl>
#include <ucs/debug/assert.h>
#include <ucs/debug/memtrack_int.h>

#include <string.h>


static inline void ucp_opt_mem_lock(ucp_opt_mem_t *mem)
{
    if (mem->is_shared) {
        ucs_spin_lock(&mem->lock);
    }
}

static inline void ucp_opt_mem_unlock(ucp_opt_mem_t *mem)
{
    if (mem->is_shared) {
        ucs_spin_unlock(&mem->lock);
    }
}

static inline int
ucp_opt_mem_fits(const ucp_opt_mem_entry_t *entry, ucs_pgt_addr_t start,
                 ucs_pgt_addr_t end, ucp_md_map_t md_map, unsigned access)
{
    const ucp_mem_t *memh = &entry->memh;

    return (start >= entry->start) && (end <= entry->end) &&
           ucs_test_all_flags(memh->md_map, md_map) &&
           ucs_test_all_flags(memh->uct_flags, access) &&
           ucp_opt_mem_is_known(memh->parent);
}

static void ucp_opt_mem_destroy(ucp_opt_mem_t *mem)
{
    unsigned i;

    for (i = 0; i < UCP_OPT_MEM_ENTRIES; ++i) {
        ucs_free(mem->entries[i]);
    }
    ucs_spinlock_destroy(&mem->lock);
    ucs_free(mem);
}

/* Take the registration out of an entry that nobody uses, or mark the entry for
 * who uses it last. Returns what the caller has to give back, or NULL. */
static ucp_mem_h ucp_opt_mem_take_out(ucp_opt_mem_entry_t *entry)
{
    ucp_mem_h parent = entry->memh.parent;

    entry->end = 0;
    if (entry->uses > 0) {
        return NULL;
    }

    entry->memh.parent = NULL;
    return parent;
}

/* The context must be locked. */
static void ucp_opt_mem_give_back(ucp_context_h context, ucp_mem_h parent)
{
    if (parent != NULL) {
        ucs_rcache_region_put_unsafe(context->rcache, &parent->super);
    }
}

void ucp_opt_mem_remove(ucp_context_h context, ucp_mem_h parent)
{
    ucp_opt_mem_entry_t *entry;
    ucp_opt_mem_t *mem;
    unsigned i;

    ucs_list_for_each(mem, &context->opt_mem, list) {
        ucp_opt_mem_lock(mem);
        for (i = 0; i < UCP_OPT_MEM_ENTRIES; ++i) {
            entry = mem->entries[i];
            if ((entry->memh.parent != NULL) &&
                ((parent == NULL) ? !ucp_opt_mem_is_known(entry->memh.parent) :
                                    (parent == entry->memh.parent))) {
                ucp_opt_mem_give_back(context, ucp_opt_mem_take_out(entry));
            }
        }
        ucp_opt_mem_unlock(mem);
    }
}

static int ucp_opt_mem_try_lock(ucp_mt_lock_t *lock)
{
    return (lock->mt_type == UCP_MT_TYPE_MUTEX) ?
           !pthread_mutex_trylock(&lock->lock.mt_mutex) :
           ucs_recursive_spin_trylock(&lock->lock.mt_spinlock);
}

/* What the cache has let go of for a fork. UCS holds a lock that others take
 * under that of the context, so that is not waited for. */
static void ucp_opt_mem_purged(void *arg)
{
    ucp_context_h context = arg;

    if (UCP_THREAD_IS_REQUIRED(&context->mt_lock) &&
        !ucp_opt_mem_try_lock(&context->mt_lock)) {
        return;
    }

    ucp_opt_mem_remove(context, NULL);
    UCP_THREAD_CS_EXIT(&context->mt_lock);
}

/* Without memory for it the worker has none, and does without. */
static void ucp_opt_mem_create(ucp_worker_h worker)
{
    ucp_context_h context = worker->context;
    ucp_opt_mem_entry_t *entry;
    ucp_opt_mem_t *mem;
    unsigned i;

    worker->flags &= ~UCP_WORKER_FLAG_OPT_MEM;
    mem            = ucs_calloc(1, sizeof(*mem), "ucp_opt_mem");
    if (mem == NULL) {
        return;
    }

    if (ucs_spinlock_init(&mem->lock, 0) != UCS_OK) {
        ucs_free(mem);
        return;
    }

    mem->is_shared = UCP_THREAD_IS_REQUIRED(&context->mt_lock);
    for (i = 0; i < UCP_OPT_MEM_ENTRIES; ++i) {
        entry = ucs_calloc(1, ucs_offsetof(ucp_opt_mem_entry_t, memh) +
                              ucp_memh_size(context), "ucp_opt_mem_entry");
        if (entry == NULL) {
            ucp_opt_mem_destroy(mem);
            return;
        }

        entry->mem      = mem;
        mem->entries[i] = entry;
    }
    mem->found = mem->entries[0];

    UCP_THREAD_CS_ENTER(&context->mt_lock);
    ucs_list_add_tail(&context->opt_mem, &mem->list);
    context->rcache->purged = ucp_opt_mem_purged;
    UCP_THREAD_CS_EXIT(&context->mt_lock);

    worker->opt_mem = mem;
    worker->flags  |= UCP_WORKER_FLAG_OPT_MEM;
}

/* An entry that nobody uses, to have another registration. */
static ucp_opt_mem_entry_t *ucp_opt_mem_victim(ucp_opt_mem_t *mem)
{
    ucp_opt_mem_entry_t *entry;
    unsigned i;

    for (i = 0; i < UCP_OPT_MEM_ENTRIES; ++i) {
        mem->next = (mem->next + 1) % UCP_OPT_MEM_ENTRIES;
        entry     = mem->entries[mem->next];
        if (entry->uses == 0) {
            return entry;
        }
    }

    return NULL;
}

/* Memory domains of a registration, if it allows that. */
static ucp_md_map_t ucp_opt_mem_md_map(ucp_mem_h memh, unsigned access)
{
    return ucs_test_all_flags(memh->uct_flags, access) ? memh->md_map : 0;
}

/* Have the worker remember a registration, whose reference the caller hands
 * over. Returns the worker's handle, in use; NULL if it keeps none. */
static ucp_mem_h ucp_opt_mem_remember(ucp_context_h context, ucp_opt_mem_t *mem,
                                      ucp_mem_h memh)
{
    ucp_opt_mem_entry_t *entry;
    ucp_mem_h own = NULL;

    /* Not if it has been invalidated since: nobody would look for it again */
    UCP_THREAD_CS_ENTER(&context->mt_lock);
    ucp_opt_mem_lock(mem);
    entry = ucp_opt_mem_is_known(memh) ? ucp_opt_mem_victim(mem) : NULL;
    if (entry != NULL) {
        ucp_opt_mem_give_back(context, ucp_opt_mem_take_out(entry));
        own = &entry->memh;
        memcpy(own, memh, ucp_memh_size(context));
        own->flags  |= UCP_MEMH_FLAG_OPT;
        own->parent  = memh;
        entry->start = memh->super.super.start;
        entry->end   = memh->super.super.end;
        entry->uses  = 1;
        /* As ucp_opt_zcopy_access() */
        entry->send_md_map[0] = ucp_opt_mem_md_map(memh, UCT_MD_MEM_ACCESS_RMA);
        entry->send_md_map[1] = ucp_opt_mem_md_map(
                memh, UCT_MD_MEM_ACCESS_LOCAL_READ);
        mem->found = entry;
    }
    ucp_opt_mem_unlock(mem);
    UCP_THREAD_CS_EXIT(&context->mt_lock);
    return own;
}

static UCS_F_NOINLINE ucs_status_t
ucp_opt_mem_get_new(ucp_worker_h worker, void *address, size_t length,
                    ucp_md_map_t md_map, unsigned uct_flags, ucp_mem_h *memh_p)
{
    ucp_context_h context = worker->context;
    ucs_status_t status;
    ucp_mem_h own;

    if (worker->opt_mem == NULL) {
        ucp_opt_mem_create(worker);
    }

    status = ucp_memh_get(context, address, length, UCS_MEMORY_TYPE_HOST,
                          md_map, uct_flags, "opt_mem", memh_p);
    if ((status != UCS_OK) || (worker->opt_mem == NULL)) {
        return status;
    }

    /* An error that is hidden leaves a domain out: later it may be there */
    if (!ucs_test_all_flags((*memh_p)->md_map, md_map)) {
        return UCS_OK;
    }

    own = ucp_opt_mem_remember(context, worker->opt_mem, *memh_p);
    if (own != NULL) {
        *memh_p = own;
    }

    return UCS_OK;
}

ucs_status_t ucp_opt_mem_get(ucp_worker_h worker, void *address, size_t length,
                             ucp_md_map_t md_map, unsigned uct_flags,
                             ucp_mem_h *memh_p)
{
    ucp_opt_mem_t *mem   = worker->opt_mem;
    ucs_pgt_addr_t start = (uintptr_t)address;
    unsigned access      = UCP_MM_UCT_ACCESS_FLAGS(uct_flags);
    ucp_opt_mem_entry_t *entry;
    unsigned i;

    if (ucs_unlikely((mem == NULL) ||
                     ucp_opt_mem_has_events(worker->context))) {
        goto not_found;
    }

    ucp_opt_mem_lock(mem);
    entry = mem->found;
    for (i = 0; i < UCP_OPT_MEM_ENTRIES; ++i) {
        if (ucp_opt_mem_fits(entry, start, start + length, md_map, access)) {
            ++entry->uses;
            mem->found = entry;
            *memh_p    = &entry->memh;
            ucp_opt_mem_unlock(mem);
            return UCS_OK;
        }
        entry = mem->entries[i];
    }
    ucp_opt_mem_unlock(mem);

not_found:
    return ucp_opt_mem_get_new(worker, address, length, md_map, uct_flags,
                               memh_p);
}

void ucp_opt_mem_release(ucp_mem_h memh)
{
    ucp_opt_mem_entry_t *entry = ucs_container_of(memh, ucp_opt_mem_entry_t,
                                                  memh);

    ucp_opt_mem_lock(entry->mem);
    ucs_assert(entry->uses > 0);
    --entry->uses;
    ucp_opt_mem_unlock(entry->mem);

    if (ucs_unlikely(entry->end == 0)) {
        ucp_opt_mem_release_gone(entry);
    }
}

void ucp_opt_mem_release_gone(ucp_opt_mem_entry_t *entry)
{
    ucp_mem_h parent;

    /* Unless another thread has seen before that nobody uses it */
    ucp_opt_mem_lock(entry->mem);
    parent = ucp_opt_mem_take_out(entry);
    ucp_opt_mem_unlock(entry->mem);

    if (parent != NULL) {
        ucp_memh_put(parent);
    }
}

void ucp_opt_mem_cleanup(ucp_worker_h worker)
{
    ucp_context_h context = worker->context;
    ucp_opt_mem_t *mem    = worker->opt_mem;
    unsigned i;

    if (mem == NULL) {
        return;
    }

    UCP_THREAD_CS_ENTER(&context->mt_lock);
    ucs_list_del(&mem->list);
    for (i = 0; i < UCP_OPT_MEM_ENTRIES; ++i) {
        ucs_assert(mem->entries[i]->uses == 0);
        ucp_opt_mem_give_back(context, mem->entries[i]->memh.parent);
    }
    UCP_THREAD_CS_EXIT(&context->mt_lock);
    ucp_opt_mem_destroy(mem);
}

#endif
