/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Preloaded to ranks that outnumber the processors: who progresses in vain lets
 * others run. MPI libraries poll until their time slice is over, and what they
 * wait for has to come from a rank that is not running.
 *
 * Not where several threads progress: who yields has the library's lock, which
 * the others then never find free. With threads, MPICH yields without it.
 */

#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    static unsigned (*progress)(ucp_worker_h);
    static unsigned num_threads;
    static __thread int is_counted;
    unsigned count;

    if (progress == NULL) {
        progress = (unsigned (*)(ucp_worker_h))dlsym(RTLD_NEXT,
                                                     "ucp_worker_progress");
        if (progress == NULL) {
            abort();
        }
    }

    if (!is_counted) {
        is_counted = 1;
        __atomic_add_fetch(&num_threads, 1, __ATOMIC_RELAXED);
    }

    count = progress(worker);
    if ((count == 0) &&
        (__atomic_load_n(&num_threads, __ATOMIC_RELAXED) == 1)) {
        sched_yield();
    }
    return count;
}
