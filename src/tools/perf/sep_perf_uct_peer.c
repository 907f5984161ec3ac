/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_uct.h>
#include <tools/perf/sep_perf_measure.h>
#include <tools/perf/sep_perf_uct_iface.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Progress in vain after which the peer lets others have the processor */
#define SEP_PERF_UCT_PATIENCE  64


/* One worker for all endpoints: transports that connect interfaces need no
 * endpoint here */
typedef struct sep_perf_uct_server {
    const sep_perf_hello_t *hello;
    sep_perf_uct_md_t      md;
    sep_perf_uct_iface_t   iface;
    uct_ep_h               *eps;
    uint8_t                *memory;
    uct_mem_h              memh;
    sep_perf_uct_inbox_t   inbox;
} sep_perf_uct_server_t;

static int sep_perf_uct_server_open(sep_perf_uct_server_t *server,
                                    const sep_perf_options_t *options,
                                    sep_perf_uct_target_t *target)
{
    const sep_perf_hello_t *hello = server->hello;
    size_t slot                   = sep_perf_slot_size(hello->bytes);
    unsigned i;

    server->inbox.bytes   = hello->bytes;
    server->inbox.threads = hello->threads;
    server->eps           = calloc(hello->threads, sizeof(*server->eps));
    if ((server->eps == NULL) ||
        (sep_perf_uct_md_open(&server->md, hello->tl, options->device,
                              options->port) != 0) ||
        (sep_perf_uct_iface_open(&server->md, &server->inbox,
                                 &server->iface) != 0) ||
        (sep_perf_uct_mem_alloc(&server->md, hello->threads * slot,
                                &server->memory, &server->memh) != 0)) {
        return -1;
    }
    for (i = 0; (hello->op == SEP_MODEL_READ) && (i < hello->threads); ++i) {
        sep_perf_pattern_fill(server->memory + (i * slot), hello->bytes, 0);
    }
    if ((server->md.attr.rkey_packed_size > sizeof(target->rkey)) ||
        (uct_md_mkey_pack(server->md.md, server->memh, target->rkey) !=
         UCS_OK)) {
        fprintf(stderr, "sep_perf: the peer can't pack a key\n");
        return -1;
    }
    target->address = (uintptr_t)server->memory;
    target->failed  = 0;
    return 0;
}

static int sep_perf_uct_server_connect(sep_perf_uct_server_t *server, int fd)
{
    sep_perf_uct_addr_t remote, local;
    unsigned i;

    for (i = 0; i < server->hello->threads; ++i) {
        if (sep_perf_wire_read(fd, &remote, sizeof(remote)) != 0) {
            return -1;
        }
        if (sep_perf_uct_connects_ep(&server->iface) &&
            (sep_perf_uct_ep_create(&server->iface, NULL) != 0)) {
            return -1;
        }
        server->eps[i] = server->iface.ep;
        if ((sep_perf_uct_address(&server->iface, &local) != 0) ||
            (sep_perf_uct_ep_connect(&server->iface, &remote) != 0) ||
            (sep_perf_wire_write(fd, &local, sizeof(local)) != 0)) {
            return -1;
        }
    }
    return 0;
}

static int sep_perf_uct_server_check(sep_perf_uct_server_t *server, int fd)
{
    const sep_perf_hello_t *hello = server->hello;
    uint64_t value;
    uint8_t *slot;
    unsigned i;

    for (i = 0; i < hello->threads; ++i) {
        slot = server->memory + (i * sep_perf_slot_size(hello->bytes));
        if (hello->op == SEP_MODEL_SEND) {
            value = server->inbox.good;
        } else if (hello->op == SEP_MODEL_ATOMIC) {
            memcpy(&value, slot, sizeof(value));
        } else {
            value = sep_perf_sum(slot, hello->bytes);
        }
        if (sep_perf_wire_write(fd, &value, sizeof(value)) != 0) {
            return -1;
        }
    }
    return 0;
}

int sep_perf_uct_serve(int fd, const sep_perf_hello_t *hello,
                       const sep_perf_options_t *options)
{
    sep_perf_uct_target_t target = {.failed = 1};
    sep_perf_uct_server_t server = {.hello = hello};
    unsigned vain                = 0;
    int command, failed;

    failed = (sep_perf_uct_server_open(&server, options, &target) != 0);
    if ((sep_perf_wire_write(fd, &target, sizeof(target)) != 0) || failed ||
        (sep_perf_uct_server_connect(&server, fd) != 0)) {
        return -1;
    }

    for (;;) {
        if (uct_worker_progress(server.iface.worker) > 0) {
            vain = 0;
            continue;
        }
        if (++vain < SEP_PERF_UCT_PATIENCE) {
            continue;
        }
        vain    = 0;
        command = sep_perf_wire_command(fd, 0);
        if (command == SEP_PERF_COMMAND_CHECK) {
            if (sep_perf_uct_server_check(&server, fd) != 0) {
                return -1;
            }
        } else if (command != 0) {
            return (command == SEP_PERF_COMMAND_QUIT) ? 0 : -1;
        }
        sched_yield();
    }
}
