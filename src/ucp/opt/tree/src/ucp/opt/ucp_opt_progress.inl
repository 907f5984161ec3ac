/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Progress of a worker that takes no lock. Included by core/ucp_worker.c, whose
 * ucp_opt_worker_progress_general() is for all.
 */

#include <ucp/opt/ucp_opt.h>


unsigned ucp_worker_progress(ucp_worker_h worker)
{
    unsigned count;

    if (ucs_unlikely(!(worker->flags & UCP_WORKER_FLAG_OPT_PROGRESS))) {
        return ucp_opt_worker_progress_general(worker);
    }

    /* coverity[assert_side_effect] */
    ucs_assert(worker->inprogress++ == 0);
    count = uct_worker_progress(worker->uct);
    ucs_async_check_miss(&worker->async);
    /* coverity[assert_side_effect] */
    ucs_assert(--worker->inprogress == 0);
    return count;
}
