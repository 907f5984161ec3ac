/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Measures the memory that a UCT transport takes: for a worker, and for an
 * endpoint before and after it is connected. To be run by
 * contrib/bench-memory.sh.
 *
 * Interfaces of one process are connected with each other, all with all, so
 * that what is made at both ends of a connection is counted once per endpoint.
 * Memory is what is in use on the heap, as malloc rounds it up; what is mapped
 * apart from the heap; and what of both is resident, as the kernel tells: much
 * of the others was never touched.
 */

#include "bench_check.h"
#include "uct_pair.h"

#include <inttypes.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define UCT_MEMORY_MAX_IFACES 32
#define UCT_MEMORY_AM_ID      5
#define UCT_MEMORY_WAIT       60 /* seconds for connections to come up */


typedef struct uct_memory {
    uct_pair_t   pair;     /* Finds the transport, and warms everything up */
    unsigned     count;    /* Interfaces */
    uct_worker_h worker[UCT_MEMORY_MAX_IFACES];
    uct_iface_h  iface[UCT_MEMORY_MAX_IFACES];
    uct_ep_h     ep[UCT_MEMORY_MAX_IFACES][UCT_MEMORY_MAX_IFACES];
    unsigned     received;
} uct_memory_t;

typedef struct uct_memory_use {
    long heap;
    long mapped;
    long resident;
} uct_memory_use_t;


static uct_memory_use_t uct_memory_get_use(void)
{
    struct mallinfo2 info = mallinfo2();
    uct_memory_use_t use  = {.heap = info.uordblks + info.hblkhd};
    FILE *file            = fopen("/proc/self/statm", "r");
    long pages            = 0;
    long resident         = 0;

    if ((file == NULL) ||
        (fscanf(file, "%ld %ld", &pages, &resident) != 2)) {
        fprintf(stderr, "/proc/self/statm can't be read\n");
        exit(1);
    }
    fclose(file);

    use.mapped = pages * sysconf(_SC_PAGESIZE) - (long)info.arena -
                 (long)info.hblkhd;
    use.resident = resident * sysconf(_SC_PAGESIZE);
    return use;
}

static void uct_memory_report(const char *what, uct_memory_use_t before,
                              unsigned count)
{
    uct_memory_use_t after = uct_memory_get_use();

    printf("%s %ld %ld %ld\n", what, (after.heap - before.heap) / (long)count,
           (after.mapped - before.mapped) / (long)count,
           (after.resident - before.resident) / (long)count);
    fflush(stdout);
}

static ucs_status_t uct_memory_receive(void *arg, void *data, size_t length,
                                       unsigned flags)
{
    ++((uct_memory_t*)arg)->received;
    return UCS_OK;
}

static void uct_memory_open_iface(uct_memory_t *memory, unsigned i,
                                  const char *tl, const char *device)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = tl,
        .mode.device.dev_name = device
    };
    uct_iface_config_t *config;

    BENCH_CHECK_EXIT(uct_worker_create(memory->pair.async,
                                       UCS_THREAD_MODE_SINGLE,
                                       &memory->worker[i]));
    BENCH_CHECK_EXIT(uct_md_iface_config_read(memory->pair.md, tl, NULL, NULL,
                                              &config));
    BENCH_CHECK_EXIT(uct_iface_open(memory->pair.md, memory->worker[i], &params,
                                    config, &memory->iface[i]));
    uct_config_release(config);
    BENCH_CHECK_EXIT(uct_iface_set_am_handler(memory->iface[i],
                                              UCT_MEMORY_AM_ID,
                                              uct_memory_receive, memory, 0));
    uct_iface_progress_enable(memory->iface[i],
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

static int uct_memory_is_to_iface(const uct_memory_t *memory)
{
    return !!(memory->pair.iface_attr.cap.flags &
              UCT_IFACE_FLAG_CONNECT_TO_IFACE);
}

static void uct_memory_create_ep(uct_memory_t *memory, unsigned from,
                                 unsigned to)
{
    uint8_t dev_addr[256], iface_addr[256];
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = memory->iface[from]
    };

    if (uct_memory_is_to_iface(memory)) {
        BENCH_CHECK_EXIT(uct_iface_get_device_address(memory->iface[to],
                                                      (void*)dev_addr));
        BENCH_CHECK_EXIT(uct_iface_get_address(memory->iface[to],
                                               (void*)iface_addr));
        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR |
                             UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr    = (void*)dev_addr;
        params.iface_addr  = (void*)iface_addr;
    }

    BENCH_CHECK_EXIT(uct_ep_create(&params, &memory->ep[from][to]));
}

static void uct_memory_connect_ep(uct_memory_t *memory, unsigned from,
                                  unsigned to)
{
    uint8_t dev_addr[256], ep_addr[256];

    BENCH_CHECK_EXIT(uct_iface_get_device_address(memory->iface[to],
                                                  (void*)dev_addr));
    BENCH_CHECK_EXIT(uct_ep_get_address(memory->ep[to][from], (void*)ep_addr));
    BENCH_CHECK_EXIT(uct_ep_connect_to_ep(memory->ep[from][to],
                                          (void*)dev_addr, (void*)ep_addr));
}

static void uct_memory_for_all(uct_memory_t *memory,
                               void (*func)(uct_memory_t*, unsigned, unsigned))
{
    unsigned i, j;

    for (i = 0; i < memory->count; ++i) {
        for (j = 0; j < memory->count; ++j) {
            if (i != j) {
                func(memory, i, j);
            }
        }
    }
}

static void uct_memory_progress(uct_memory_t *memory)
{
    unsigned i;

    for (i = 0; i < memory->count; ++i) {
        uct_worker_progress(memory->worker[i]);
    }
}

/* Until the message is on its way: the endpoint is connected then */
static void uct_memory_send(uct_memory_t *memory, unsigned from, unsigned to)
{
    time_t deadline = time(NULL) + UCT_MEMORY_WAIT;
    ucs_status_t status;

    do {
        status = uct_ep_am_short(memory->ep[from][to], UCT_MEMORY_AM_ID, 0,
                                 NULL, 0);
        uct_memory_progress(memory);
        if ((status == UCS_ERR_NO_RESOURCE) && (time(NULL) > deadline)) {
            status = UCS_ERR_TIMED_OUT;
        }
    } while (status == UCS_ERR_NO_RESOURCE);
    BENCH_CHECK_EXIT(status);
}

static void uct_memory_destroy_ep(uct_memory_t *memory, unsigned from,
                                  unsigned to)
{
    uct_ep_destroy(memory->ep[from][to]);
}

int main(int argc, char **argv)
{
    static uct_memory_t memory = {.count = 8};
    const char *tl             = NULL;
    const char *device         = NULL;
    uct_memory_use_t start;
    unsigned num_eps, i;
    int option;

    while ((option = getopt(argc, argv, "t:d:n:")) != -1) {
        switch (option) {
        case 't':
            tl = optarg;
            break;
        case 'd':
            device = optarg;
            break;
        case 'n':
            memory.count = strtoul(optarg, NULL, 0);
            break;
        default:
            tl = NULL;
            optind = argc;
            break;
        }
    }

    if ((tl == NULL) || (device == NULL) || (memory.count < 2) ||
        (memory.count > UCT_MEMORY_MAX_IFACES)) {
        fprintf(stderr, "usage: %s -t TRANSPORT -d DEVICE [-n INTERFACES]\n",
                argv[0]);
        return 2;
    }

    /* One arena, no cache of freed memory: the heap is what is in use */
    mallopt(M_ARENA_MAX, 1);
    if (uct_pair_open(tl, device, &memory.pair) != UCS_OK) {
        return 1;
    }

    num_eps = memory.count * (memory.count - 1);

    start = uct_memory_get_use();
    for (i = 0; i < memory.count; ++i) {
        uct_memory_open_iface(&memory, i, tl, device);
    }
    uct_memory_report("worker", start, memory.count);

    start = uct_memory_get_use();
    uct_memory_for_all(&memory, uct_memory_create_ep);
    uct_memory_report("unconnected", start, num_eps);

    if (!uct_memory_is_to_iface(&memory)) {
        uct_memory_for_all(&memory, uct_memory_connect_ep);
    }
    uct_memory_for_all(&memory, uct_memory_send);
    while (memory.received < num_eps) {
        uct_memory_progress(&memory);
    }
    uct_memory_report("connected", start, num_eps);

    uct_memory_for_all(&memory, uct_memory_destroy_ep);
    for (i = 0; i < memory.count; ++i) {
        uct_iface_close(memory.iface[i]);
        uct_worker_destroy(memory.worker[i]);
    }
    uct_pair_close(&memory.pair);
    return 0;
}
