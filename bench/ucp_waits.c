/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Threads that each send messages between two workers of their own, all in one
 * context, on two processors: how often a message finds a lock of UCP taken,
 * how long it waits for it, and how long all of it takes. To be run by
 * contrib/bench-ucp.sh --waits.
 *
 * The numbers of threads alternate, in one process, so what another program
 * takes of the processors is spread over all of them.
 *
 * The software device takes so long for a message that locks of UCP are nearly
 * always free. With -a nothing is sent: a function in place of the transport's
 * says at once that the buffer has been, as a device would that takes no time.
 * What is left is UCP's part of a message, over and over, and no receiver.
 */

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "ucp_ops.inl"
#include "ucp_pair.h"

#include <uct/api/uct.h>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>


#define UCP_WAITS_THREADS 16
#define UCP_WAITS_PHASES  5 /* 1, 2, 4, 8 and 16 threads */
#define UCP_WAITS_ROUNDS  64
#define UCP_WAITS_CPUS    2
#define UCP_WAITS_IFACES  256
/* So small that the C library keeps all stacks: UCX looks at its registrations
 * when memory is unmapped */
#define UCP_WAITS_STACK   (256 * 1024)


/* What locks of a library have cost a thread. */
typedef struct ucp_waits_cost {
    unsigned long taken;
    unsigned long contended; /* found taken by another thread */
    double        seconds;   /* that these waited */
} ucp_waits_cost_t;

typedef struct ucp_waits_thread {
    pthread_t        thread;
    unsigned         index;
    ucp_pair_t       pair;
    ucs_status_t     status;
    ucp_waits_cost_t cost;
    double           start, end;
} ucp_waits_thread_t;

/* A number of threads, once. */
typedef struct ucp_waits_result {
    double seconds;   /* of a processor, per message */
    double contended; /* locks per message */
    double waited;    /* seconds per message */
} ucp_waits_result_t;


static const ucp_ops_op_t *ucp_waits_op;
static unsigned ucp_waits_count = 4096; /* messages of all threads */
static unsigned ucp_waits_share;        /* of one */
static int ucp_waits_is_alone;          /* nothing is sent */
static uct_iface_h ucp_waits_ifaces[UCP_WAITS_IFACES];
static unsigned ucp_waits_num_ifaces;
static int ucp_waits_cpus[UCP_WAITS_CPUS];
static pthread_barrier_t ucp_waits_barrier;
static ucp_waits_thread_t ucp_waits[UCP_WAITS_THREADS];
static ucp_waits_result_t ucp_waits_results[UCP_WAITS_PHASES][UCP_WAITS_ROUNDS];
static uintptr_t ucp_waits_begin, ucp_waits_end; /* where libucp is */
static __thread ucp_waits_cost_t *ucp_waits_cost;


static double ucp_waits_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

/* In front of the C library's, for all libraries. Those of UCX call it from
 * where they want the lock. */
int pthread_spin_lock(pthread_spinlock_t *lock)
{
    uintptr_t caller       = (uintptr_t)__builtin_return_address(0);
    ucp_waits_cost_t *cost = ((caller >= ucp_waits_begin) &&
                              (caller < ucp_waits_end)) ?
                                     ucp_waits_cost : NULL;
    double start;

    if (cost != NULL) {
        ++cost->taken;
    }
    if (pthread_spin_trylock(lock) == 0) {
        return 0;
    }

    start = (cost != NULL) ? ucp_waits_time() : 0;
    do {
        while (*lock != 1) {
            __builtin_ia32_pause();
        }
    } while (pthread_spin_trylock(lock) != 0);
    if (cost != NULL) {
        ++cost->contended;
        cost->seconds += ucp_waits_time() - start;
    }

    return 0;
}

/* In front of UCT's, to know all interfaces. */
ucs_status_t uct_iface_open(uct_md_h md, uct_worker_h worker,
                            const uct_iface_params_t *params,
                            const uct_iface_config_t *config,
                            uct_iface_h *iface_p)
{
    ucs_status_t (*open)(uct_md_h, uct_worker_h, const uct_iface_params_t*,
                         const uct_iface_config_t*, uct_iface_h*) =
            dlsym(RTLD_NEXT, "uct_iface_open");
    ucs_status_t status = open(md, worker, params, config, iface_p);

    if ((status == UCS_OK) && (ucp_waits_num_ifaces < UCP_WAITS_IFACES)) {
        ucp_waits_ifaces[ucp_waits_num_ifaces++] = *iface_p;
    }

    return status;
}

static ucs_status_t
ucp_waits_am_zcopy(uct_ep_h ep, uint8_t id, const void *header,
                   unsigned header_length, const uct_iov_t *iov, size_t iovcnt,
                   unsigned flags, uct_completion_t *comp)
{
    return UCS_OK;
}

static ucs_status_t
ucp_waits_put_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                    uint64_t remote_addr, uct_rkey_t rkey,
                    uct_completion_t *comp)
{
    return UCS_OK;
}

static void ucp_waits_send_nothing(void)
{
    unsigned i;

    for (i = 0; i < ucp_waits_num_ifaces; ++i) {
        ucp_waits_ifaces[i]->ops.ep_am_zcopy  = ucp_waits_am_zcopy;
        ucp_waits_ifaces[i]->ops.ep_put_zcopy = ucp_waits_put_zcopy;
    }
}

/* UCP's part. What sends nothing completes in the call. */
static ucs_status_t ucp_waits_alone(ucp_pair_t *pair)
{
    ucs_status_ptr_t request;

    if (ucp_waits_op->is_put) {
        request = ucp_put_nbx(pair->ep[0], pair->buffer[0],
                              ucp_waits_op->length, (uintptr_t)pair->buffer[1],
                              pair->rkey, &ucp_ops_no_param);
    } else {
        request = ucp_tag_send_nbx(pair->ep[0], pair->buffer[0],
                                   ucp_waits_op->length, UCP_OPS_TAG,
                                   &ucp_ops_no_param);
    }

    return ucp_pair_wait(pair, request);
}

static int
ucp_waits_find_ucp(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t end;
    unsigned i;

    if (strstr(info->dlpi_name, "/libucp.") == NULL) {
        return 0;
    }

    ucp_waits_begin = info->dlpi_addr;
    for (i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            end           = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
                            info->dlpi_phdr[i].p_memsz;
            ucp_waits_end = (end > ucp_waits_end) ? end : ucp_waits_end;
        }
    }

    return 1;
}

/* Processors that threads are pinned to, in turns: two, if there are. */
static void ucp_waits_find_cpus(void)
{
    unsigned found = 0;
    cpu_set_t set;
    int cpu;

    sched_getaffinity(0, sizeof(set), &set);
    for (cpu = 0; (cpu < CPU_SETSIZE) && (found < UCP_WAITS_CPUS); ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
            ucp_waits_cpus[found++] = cpu;
        }
    }
    if (found < UCP_WAITS_CPUS) {
        fprintf(stderr, "there are no %d processors\n", UCP_WAITS_CPUS);
        exit(1);
    }
}

static void *ucp_waits_run(void *arg)
{
    ucp_waits_thread_t *self = arg;
    unsigned i;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(ucp_waits_cpus[self->index % UCP_WAITS_CPUS], &set);
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
    memset(&self->cost, 0, sizeof(self->cost));

    pthread_barrier_wait(&ucp_waits_barrier);
    ucp_waits_cost = &self->cost;
    self->start    = ucp_waits_time();
    for (i = 1; (i <= ucp_waits_share) && (self->status == UCS_OK); ++i) {
        self->status = ucp_waits_is_alone ?
                       ucp_waits_alone(&self->pair) :
                       ucp_ops_message(&self->pair, ucp_waits_op);
        if ((self->status == UCS_OK) && ucp_waits_op->is_put &&
            !ucp_waits_is_alone && ((i % UCP_OPS_WINDOW) == 0)) {
            self->status = ucp_pair_flush(&self->pair);
        }
    }
    self->end      = ucp_waits_time();
    ucp_waits_cost = NULL;
    return NULL;
}

/* So many threads, all messages. */
static int ucp_waits_phase(unsigned threads, ucp_waits_result_t *result)
{
    unsigned cpus    = (threads < UCP_WAITS_CPUS) ? threads : UCP_WAITS_CPUS;
    unsigned long contended = 0;
    double waited = 0, start, end, messages;
    pthread_attr_t attr;
    unsigned i;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, UCP_WAITS_STACK);
    ucp_waits_share = ucp_waits_count / threads;
    messages        = ucp_waits_share * threads;
    pthread_barrier_init(&ucp_waits_barrier, NULL, threads);
    for (i = 0; i < threads; ++i) {
        if (pthread_create(&ucp_waits[i].thread, &attr, ucp_waits_run,
                           &ucp_waits[i]) != 0) {
            perror("pthread_create");
            exit(1);
        }
    }
    for (i = 0; i < threads; ++i) {
        pthread_join(ucp_waits[i].thread, NULL);
    }
    pthread_barrier_destroy(&ucp_waits_barrier);
    pthread_attr_destroy(&attr);

    start = ucp_waits[0].start;
    end   = ucp_waits[0].end;
    for (i = 0; i < threads; ++i) {
        if (ucp_waits[i].status != UCS_OK) {
            fprintf(stderr, "%s failed: %s\n", ucp_waits_op->name,
                    ucs_status_string(ucp_waits[i].status));
            return 1;
        }

        start      = (ucp_waits[i].start < start) ? ucp_waits[i].start : start;
        end        = (ucp_waits[i].end > end) ? ucp_waits[i].end : end;
        contended += ucp_waits[i].cost.contended;
        waited    += ucp_waits[i].cost.seconds;
    }

    result->seconds   = (end - start) * cpus / messages;
    result->contended = contended / messages;
    result->waited    = waited / messages;
    return 0;
}

static int ucp_waits_compare(const void *a, const void *b)
{
    double x = *(const double*)a, y = *(const double*)b;

    return (x > y) - (x < y);
}

static double ucp_waits_median(const ucp_waits_result_t *results,
                               unsigned rounds, size_t offset)
{
    double values[UCP_WAITS_ROUNDS];
    unsigned i;

    for (i = 0; i < rounds; ++i) {
        values[i] = *(const double*)((const char*)&results[i] + offset);
    }
    qsort(values, rounds, sizeof(*values), ucp_waits_compare);
    return values[rounds / 2];
}

static int ucp_waits_all(unsigned rounds)
{
    unsigned i, round, phase;

    for (i = 0; i < UCP_WAITS_THREADS; ++i) {
        ucp_waits[i].index          = i;
        ucp_waits[i].pair.is_shared = 1;
        if (((i == 0) ? ucp_pair_open(&ucp_waits[0].pair) :
                        ucp_pair_open_beside(&ucp_waits[i].pair,
                                             &ucp_waits[0].pair)) != UCS_OK) {
            return 1;
        }
        if (ucp_ops_warm_up(&ucp_waits[i].pair, ucp_waits_op) != UCS_OK) {
            return 1;
        }
    }

    if (ucp_waits_is_alone) {
        ucp_waits_send_nothing();
    }

    for (round = 0; round < rounds; ++round) {
        for (phase = 0; phase < UCP_WAITS_PHASES; ++phase) {
            if (ucp_waits_phase(1u << phase,
                                &ucp_waits_results[phase][round]) != 0) {
                return 1;
            }
        }
    }

    for (phase = 0; phase < UCP_WAITS_PHASES; ++phase) {
        printf("%u", 1u << phase);
        printf("\t%.1f", 1e6 * ucp_waits_median(
                ucp_waits_results[phase], rounds,
                offsetof(ucp_waits_result_t, contended)));
        printf("\t%.2f", 1e9 * ucp_waits_median(
                ucp_waits_results[phase], rounds,
                offsetof(ucp_waits_result_t, waited)));
        printf("\t%.0f\n", 1e9 * ucp_waits_median(
                ucp_waits_results[phase], rounds,
                offsetof(ucp_waits_result_t, seconds)));
    }

    for (i = UCP_WAITS_THREADS; i-- > 0;) {
        ucp_pair_close(&ucp_waits[i].pair);
    }

    return 0;
}

int main(int argc, char **argv)
{
    unsigned rounds = 9;
    int option;

    while ((option = getopt(argc, argv, "an:r:")) != -1) {
        switch (option) {
        case 'a':
            ucp_waits_is_alone = 1;
            break;
        case 'n':
            ucp_waits_count = strtoul(optarg, NULL, 0);
            break;
        case 'r':
            rounds = strtoul(optarg, NULL, 0);
            break;
        default:
            return 2;
        }
    }

    ucp_waits_op = (optind == argc - 1) ? ucp_ops_find(argv[optind]) : NULL;
    if ((ucp_waits_op == NULL) || (ucp_waits_count < UCP_WAITS_THREADS) ||
        (rounds < 1) || (rounds > UCP_WAITS_ROUNDS)) {
        fprintf(stderr, "usage: %s [-a] [-n MESSAGES] [-r ROUNDS] "
                "OPERATION\n", argv[0]);
        return 2;
    }

    dl_iterate_phdr(ucp_waits_find_ucp, NULL);
    ucp_waits_find_cpus();
    return ucp_waits_all(rounds);
}
