/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Threads that each send messages between two workers of their own, all in one
 * context, so that callgrind can say which LOCKed instructions a message takes.
 * To be run by contrib/bench-ucp.sh --locks, which also reads the result.
 *
 * With -m UCP has to find out of which type memory is, as on a machine with
 * GPUs. There is none of those.
 */

#include "ucp_ops.inl"
#include "ucp_pair.h"

#include <ucm/api/ucm.h>
#include <uct/api/v2/uct_v2.h>
#include <valgrind/callgrind.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define UCP_WORKERS_MAX 64


typedef struct ucp_workers_thread {
    pthread_t    thread;
    ucp_pair_t   pair;
    ucs_status_t status;
} ucp_workers_thread_t;


static const ucp_ops_op_t *ucp_workers_op;
static unsigned ucp_workers_count = 64;
static int ucp_workers_has_types;
static pthread_barrier_t ucp_workers_barrier;
static ucp_workers_thread_t ucp_workers[UCP_WORKERS_MAX];


/* UCX can't watch memory under valgrind, so it would have no registration cache
 * there. Nothing is unmapped here that has been registered. */
ucs_status_t ucm_set_event_handler(int events, int priority,
                                   ucm_event_callback_t cb, void *arg)
{
    return UCS_OK;
}

#if UCP_API_VERSION >= UCP_VERSION(1, 18)
/* What UCP asks memory domains for. With -m they know memory of GPUs. */
ucs_status_t uct_md_query_v2(uct_md_h md, uct_md_attr_v2_t *attr)
{
    ucs_status_t (*query)(uct_md_h, uct_md_attr_v2_t*) =
            dlsym(RTLD_NEXT, "uct_md_query_v2");
    ucs_status_t status = query(md, attr);

    if ((status == UCS_OK) && ucp_workers_has_types &&
        (attr->field_mask & UCT_MD_ATTR_FIELD_DETECT_MEM_TYPES)) {
        attr->detect_mem_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
    }

    return status;
}
#endif

/* A message, from the call until both sides have completed it. A function of
 * its own, for callgrind. */
static __attribute__((noinline, noclone)) ucs_status_t
measure_message(ucp_pair_t *pair)
{
    ucs_status_t status = ucp_ops_message(pair, ucp_workers_op);

    __asm__ volatile("" : "+r"(status));
    return status;
}

static ucs_status_t ucp_workers_repeat(ucp_pair_t *pair)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 1; (i <= ucp_workers_count) && (status == UCS_OK); ++i) {
        status = measure_message(pair);
        if ((status == UCS_OK) && ((i % UCP_OPS_WINDOW) == 0)) {
            status = ucp_pair_flush(pair);
        }
    }

    return status;
}

static void *ucp_workers_run(void *arg)
{
    ucp_workers_thread_t *self = arg;

    if (self->status == UCS_OK) {
        self->status = ucp_ops_warm_up(&self->pair, ucp_workers_op);
    }

    /* One thread begins to count, for all */
    if (pthread_barrier_wait(&ucp_workers_barrier) ==
        PTHREAD_BARRIER_SERIAL_THREAD) {
        CALLGRIND_START_INSTRUMENTATION;
    }
    pthread_barrier_wait(&ucp_workers_barrier);
    if (self->status == UCS_OK) {
        self->status = ucp_workers_repeat(&self->pair);
    }
    if (pthread_barrier_wait(&ucp_workers_barrier) ==
        PTHREAD_BARRIER_SERIAL_THREAD) {
        CALLGRIND_STOP_INSTRUMENTATION;
    }

    return NULL;
}

static int ucp_workers_start(unsigned threads)
{
    int failed = 0;
    unsigned i;

    pthread_barrier_init(&ucp_workers_barrier, NULL, threads);
    for (i = 0; i < threads; ++i) {
        if (pthread_create(&ucp_workers[i].thread, NULL, ucp_workers_run,
                           &ucp_workers[i]) != 0) {
            /* The others wait for it */
            perror("pthread_create");
            exit(1);
        }
    }

    for (i = 0; i < threads; ++i) {
        pthread_join(ucp_workers[i].thread, NULL);
        if (ucp_workers[i].status != UCS_OK) {
            fprintf(stderr, "%s failed: %s\n", ucp_workers_op->name,
                    ucs_status_string(ucp_workers[i].status));
            failed = 1;
        }
    }

    return failed;
}

static int ucp_workers_all(unsigned threads)
{
    int failed;
    unsigned i;

    ucp_workers[0].pair.is_shared = 1;
    if (ucp_pair_open(&ucp_workers[0].pair) != UCS_OK) {
        return 1;
    }

    for (i = 1; i < threads; ++i) {
        if (ucp_pair_open_beside(&ucp_workers[i].pair,
                                 &ucp_workers[0].pair) != UCS_OK) {
            return 1;
        }
    }

    failed = ucp_workers_start(threads);
    for (i = threads; i-- > 0;) {
        ucp_pair_close(&ucp_workers[i].pair);
    }

    printf("%u\n", threads * ucp_workers_count);
    return failed;
}

int main(int argc, char **argv)
{
    unsigned threads = 1;
    int option;

    while ((option = getopt(argc, argv, "mn:t:")) != -1) {
        switch (option) {
        case 'm':
            ucp_workers_has_types = 1;
            break;
        case 'n':
            ucp_workers_count = strtoul(optarg, NULL, 0);
            break;
        case 't':
            threads = strtoul(optarg, NULL, 0);
            break;
        default:
            return 2;
        }
    }

    ucp_workers_op = (optind == argc - 1) ? ucp_ops_find(argv[optind]) : NULL;
    if ((ucp_workers_op != NULL) && (ucp_workers_count > 0) && (threads > 0) &&
        (threads <= UCP_WORKERS_MAX)) {
        return ucp_workers_all(threads);
    }

    fprintf(stderr, "usage: %s [-m] [-n COUNT] [-t THREADS] OPERATION\n",
            argv[0]);
    return 2;
}
