/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Progress of a worker that takes no lock. Included by core/ucp_worker.c, whose
 * ucp_opt_worker_progress_general() is for all.
 */

#include <ucp/opt/ucp_opt.h>


static UCS_F_NOINLINE unsigned
ucp_opt_worker_poll_missed(ucp_worker_h worker, unsigned count)
{
    __ucs_async_poll_missed(&worker->async);
    /* coverity[assert_side_effect] */
    ucs_assert(--worker->inprogress == 0);
    return count;
}

/* As ucs_async_check_miss(): a worker is never in the mode that polls. */
static UCS_F_ALWAYS_INLINE unsigned
ucp_opt_worker_progress_done(ucp_worker_h worker, unsigned count)
{
    ucs_assert(worker->async.mode != UCS_ASYNC_MODE_POLL);
    if (ucs_unlikely(!ucs_mpmc_queue_is_empty(&worker->async.missed))) {
        return ucp_opt_worker_poll_missed(worker, count);
    }

    /* coverity[assert_side_effect] */
    ucs_assert(--worker->inprogress == 0);
    return count;
}

/* The rest of the interfaces, of which the first ones have been progressed. */
static UCS_F_NOINLINE unsigned
ucp_opt_worker_progress_others(ucp_worker_h worker, unsigned first,
                               unsigned count)
{
    ucs_callbackq_elem_t *elem = &worker->uct->progress_q.fast_elems[first];

    for (; elem->cb != NULL; ++elem) {
        count += elem->cb(elem->arg);
    }

    return ucp_opt_worker_progress_done(worker, count);
}

/* The second interface, which is mostly the last one, and up to two more. */
static UCS_F_NOINLINE unsigned
ucp_opt_worker_progress_second(ucp_worker_h worker, unsigned count)
{
    ucs_callbackq_elem_t *elem = worker->uct->progress_q.fast_elems;

    count += elem[1].cb(elem[1].arg);
    if (elem[2].cb != NULL) {
        count += elem[2].cb(elem[2].arg);
        if (elem[3].cb != NULL) {
            count += elem[3].cb(elem[3].arg);
            if (elem[4].cb != NULL) {
                return ucp_opt_worker_progress_others(worker, 4, count);
            }
        }
    }

    return ucp_opt_worker_progress_done(worker, count);
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    ucs_callbackq_elem_t *elem;
    unsigned count;

    if (ucs_unlikely(!(worker->flags & UCP_WORKER_FLAG_OPT_PROGRESS))) {
        return ucp_opt_worker_progress_general(worker);
    }

    /* coverity[assert_side_effect] */
    ucs_assert(worker->inprogress++ == 0);

    /* Mostly there is one interface, and what it returns need not be kept in a
     * register that has to be saved. */
    elem = worker->uct->progress_q.fast_elems;
    if (ucs_unlikely(elem->cb == NULL)) {
        return ucp_opt_worker_progress_others(worker, 0, 0);
    }

    count = elem->cb(elem->arg);
    if (ucs_unlikely(worker->uct->progress_q.fast_elems[1].cb != NULL)) {
        return ucp_opt_worker_progress_second(worker, count);
    }

    return ucp_opt_worker_progress_done(worker, count);
}
