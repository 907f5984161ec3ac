/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Measures what the peers of one UCP worker take of its process. To be run by
 * contrib/bench-growth.sh.
 *
 * Peers are workers of other processes, with short queues; the worker that is
 * measured has its defaults. It gets an endpoint for each peer, all of which
 * exist before the first is used; then they send a message each, one after
 * another. At 1, 2, 4... endpoints, created or used, there is a stage "create"
 * or "use", see peer_stage.h; the first one, "open", has none.
 *
 * With -w, a process of peers has so many workers at most, and an endpoint of
 * each is with one of them in turn: for transports whose workers take much
 * memory, if endpoints to the same worker share nothing.
 */

#include "bench_check.h"
#include "peer_procs.h"
#include "peer_stage.h"

#include <ucp/api/ucp.h>

#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define UCP_PEERS_MAX         4096
#define UCP_PEERS_TAG         5
#define UCP_PEERS_ADDR_MAX    1024
#define UCP_PEERS_WAIT        60 /* seconds for a message */
#define UCP_PEERS_MIN_SLEEP   100
#define UCP_PEERS_MAX_SLEEP   20000


typedef struct ucp_peers_addr {
    uint32_t length;
    uint8_t  data[UCP_PEERS_ADDR_MAX];
} ucp_peers_addr_t;

typedef struct ucp_peers {
    peer_stage_t     stage;
    unsigned         count;       /* Peers */
    unsigned         max_workers; /* Of a process of peers */
    ucp_context_h    context;
    ucp_worker_h     worker;      /* That is measured */
    ucp_ep_h         ep[UCP_PEERS_MAX];
    peer_procs_t     procs;
    ucp_peers_addr_t addr[UCP_PEERS_MAX];
} ucp_peers_t;

/* Of the peers, so that a thousand of them have room. */
static const peer_procs_env_t ucp_peers_env[] = {
    PEER_PROCS_SEP_ENV,
    {NULL, NULL}
};

static const ucp_request_param_t ucp_peers_no_param = {.op_attr_mask = 0};


/*
 * Both sides
 */

static void ucp_peers_open_context(ucp_peers_t *peers)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_RMA
    };
    ucp_config_t *config;

    BENCH_CHECK_EXIT(ucp_config_read(NULL, NULL, &config));
    BENCH_CHECK_EXIT(ucp_init(&params, config, &peers->context));
    ucp_config_release(config);
}

static ucp_worker_h ucp_peers_open_worker(ucp_peers_t *peers)
{
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_worker_h worker;

    BENCH_CHECK_EXIT(ucp_worker_create(peers->context, &params, &worker));
    return worker;
}


/*
 * A process of peers
 */

static void ucp_peers_send_addr(int sock, ucp_worker_h worker)
{
    ucp_peers_addr_t addr;
    ucp_address_t *address;
    size_t length;

    BENCH_CHECK_EXIT(ucp_worker_get_address(worker, &address, &length));
    if (length > sizeof(addr.data)) {
        fprintf(stderr, "an address has %zu bytes\n", length);
        exit(1);
    }

    memset(&addr, 0, sizeof(addr));
    addr.length = length;
    memcpy(addr.data, address, length);
    ucp_worker_release_address(worker, address);
    peer_procs_send(sock, &addr, sizeof(addr));
}

/* Whether a message has come: receive it. */
static unsigned ucp_peers_receive(ucp_worker_h worker)
{
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;
    ucs_status_ptr_t request;
    uint64_t data;

    message = ucp_tag_probe_nb(worker, UCP_PEERS_TAG, UINT64_MAX, 1, &info);
    if (message == NULL) {
        return 0;
    }

    request = ucp_tag_msg_recv_nbx(worker, &data, sizeof(data), message,
                                   &ucp_peers_no_param);
    if (UCS_PTR_IS_ERR(request)) {
        BENCH_CHECK_EXIT(UCS_PTR_STATUS(request));
    }
    if (request != NULL) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucp_worker_progress(worker);
        }
        ucp_request_free(request);
    }
    return 1;
}

/* Receive until the first process says that it has sent all. */
static void ucp_peers_serve(ucp_worker_h *workers, unsigned num_workers,
                            unsigned messages, int sock)
{
    struct pollfd fd  = {.fd = sock, .events = POLLIN};
    time_t deadline   = 0;
    unsigned received = 0;
    unsigned i, any;

    for (;;) {
        for (any = 0, i = 0; i < num_workers; ++i) {
            any      += ucp_worker_progress(workers[i]);
            received += ucp_peers_receive(workers[i]);
        }

        if ((deadline == 0) && (poll(&fd, 1, (any > 0) ? 0 : 1) > 0)) {
            deadline = time(NULL) + UCP_PEERS_WAIT;
        }
        if ((deadline != 0) && (received == messages)) {
            return;
        }
        if ((deadline != 0) && (time(NULL) > deadline)) {
            fprintf(stderr, "%u of %u messages have come\n", received,
                    messages);
            exit(1);
        }
    }
}

static int ucp_peers_play(ucp_peers_t *peers, int sock)
{
    unsigned num_workers = 0;
    ucp_worker_h *workers;
    uint32_t count, i;

    peer_procs_recv(sock, &count, sizeof(count));
    workers = calloc(count, sizeof(*workers));
    if (workers == NULL) {
        fprintf(stderr, "no memory for %u workers\n", count);
        return 1;
    }

    ucp_peers_open_context(peers);
    for (i = 0; i < count; ++i) {
        if (i < peers->max_workers) {
            workers[num_workers++] = ucp_peers_open_worker(peers);
        }
        ucp_peers_send_addr(sock, workers[i % num_workers]);
    }

    ucp_peers_serve(workers, num_workers, count, sock);
    peer_procs_recv(sock, &count, sizeof(count));
    peer_procs_send(sock, &count, sizeof(count));
    /* The one that is measured closes first */
    peer_procs_recv(sock, &count, sizeof(count));

    for (i = 0; i < num_workers; ++i) {
        ucp_worker_destroy(workers[i]);
    }
    ucp_cleanup(peers->context);
    free(workers);
    return 0;
}


/*
 * The process that is measured
 */

/* Waiting takes no instructions to speak of, also on a busy machine. */
static void ucp_peers_wait(ucp_peers_t *peers, ucs_status_ptr_t request)
{
    time_t deadline  = time(NULL) + UCP_PEERS_WAIT;
    useconds_t sleep = UCP_PEERS_MIN_SLEEP;
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        BENCH_CHECK_EXIT(UCS_PTR_STATUS(request));
        return;
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        if (ucp_worker_progress(peers->worker) == 0) {
            usleep(sleep);
            sleep = (sleep < UCP_PEERS_MAX_SLEEP) ? (2 * sleep) : sleep;
        }
        if (time(NULL) > deadline) {
            status = UCS_ERR_TIMED_OUT;
            break;
        }
    }
    BENCH_CHECK_EXIT(status);
    ucp_request_free(request);
}

static void ucp_peers_create(ucp_peers_t *peers, unsigned index)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t*)peers->addr[index].data
    };

    BENCH_CHECK_EXIT(ucp_ep_create(peers->worker, &params, &peers->ep[index]));
}

static void ucp_peers_use(ucp_peers_t *peers, unsigned index)
{
    uint64_t data = index;

    ucp_peers_wait(peers, ucp_tag_send_nbx(peers->ep[index], &data,
                                           sizeof(data), UCP_PEERS_TAG,
                                           &ucp_peers_no_param));
    ucp_peers_wait(peers, ucp_ep_flush_nbx(peers->ep[index],
                                           &ucp_peers_no_param));
}

static void ucp_peers_end(ucp_peers_t *peers)
{
    unsigned i, p;
    uint32_t count;

    for (p = 0; p < peers->procs.count; ++p) {
        count = peer_procs_share(peers->count, p);
        peer_procs_send(peers->procs.sock[p], &count, sizeof(count));
    }
    for (p = 0; p < peers->procs.count; ++p) {
        peer_procs_recv(peers->procs.sock[p], &count, sizeof(count));
    }

    for (i = 0; i < peers->count; ++i) {
        ucp_peers_wait(peers, ucp_ep_close_nbx(peers->ep[i],
                                               &ucp_peers_no_param));
    }
    ucp_worker_destroy(peers->worker);
    ucp_cleanup(peers->context);

    for (p = 0; p < peers->procs.count; ++p) {
        peer_procs_send(peers->procs.sock[p], &count, sizeof(count));
    }
}

static int ucp_peers_measure(ucp_peers_t *peers, char **argv)
{
    unsigned i;

    peer_stage_init();
    peer_procs_start(&peers->procs, argv, ucp_peers_env, peers->count,
                     peers->addr, sizeof(peers->addr[0]));
    ucp_peers_open_context(peers);
    peers->worker = ucp_peers_open_worker(peers);

    peer_stage_start();
    peer_stage_report(&peers->stage, "open", 0);

    for (i = 0; i < peers->count; ++i) {
        ucp_peers_create(peers, i);
        if (peer_stage_is(i + 1, peers->count)) {
            peer_stage_report(&peers->stage, "create", i + 1);
        }
    }

    for (i = 0; i < peers->count; ++i) {
        ucp_peers_use(peers, i);
        if (peer_stage_is(i + 1, peers->count)) {
            peer_stage_report(&peers->stage, "use", i + 1);
        }
    }

    ucp_peers_end(peers);
    return (peer_procs_wait(&peers->procs) == 0) ? 0 : 1;
}

int main(int argc, char **argv)
{
    static ucp_peers_t peers = {
        .count       = 16,
        .max_workers = PEER_PROCS_SHARE
    };
    int sock                 = -1;
    int is_wrong             = 0;
    int option;

    while ((option = getopt(argc, argv, "n:w:s:o:P:")) != -1) {
        switch (option) {
        case 'n':
            peers.count = strtoul(optarg, NULL, 0);
            break;
        case 'w':
            peers.max_workers = strtoul(optarg, NULL, 0);
            break;
        case 's':
            peers.stage.command = optarg;
            break;
        case 'o':
            peers.stage.prefix = optarg;
            break;
        case 'P': /* A process of peers, see peer_procs.h */
            sock = atoi(optarg);
            break;
        default:
            is_wrong = 1;
            break;
        }
    }

    if (is_wrong || (peers.count < 1) || (peers.count > UCP_PEERS_MAX) ||
        (peers.max_workers < 1) ||
        ((peers.stage.command == NULL) != (peers.stage.prefix == NULL))) {
        fprintf(stderr, "usage: %s [-n PEERS] [-w WORKERS] "
                "[-s COMMAND -o PREFIX]\n", argv[0]);
        return 2;
    }

    return (sock < 0) ? ucp_peers_measure(&peers, argv) :
           ucp_peers_play(&peers, sock);
}
