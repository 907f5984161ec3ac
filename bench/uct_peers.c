/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Measures what the peers of one UCT interface take of its process. To be run
 * by contrib/bench-growth.sh.
 *
 * Peers are interfaces of other processes, with short queues (of transports
 * that connect endpoints, endpoints of some interfaces); the interface that is
 * measured has its defaults. It gets an endpoint for each peer, all of which
 * exist before the first is used; then they send a message each, one after
 * another. At 1, 2, 4... endpoints, created or used, there is a stage "create"
 * or "use", see peer_stage.h; the first one, "open", has none. With -a, peers
 * progress all the time, so that they can be asked to give up connections.
 */

#include "bench_check.h"
#include "peer_procs.h"
#include "peer_stage.h"
#include "uct_pair.h"

#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define UCT_PEERS_MAX         4096
#define UCT_PEERS_MAX_IFACES  8  /* of a process whose endpoints connect */
#define UCT_PEERS_AM_ID       5
#define UCT_PEERS_ADDR_MAX    256
#define UCT_PEERS_WAIT        60 /* seconds for a connection to come up */
#define UCT_PEERS_MIN_SLEEP   100
#define UCT_PEERS_MAX_SLEEP   20000
#define UCT_PEERS_POLL        1  /* ms between two looks of a peer */


/* What processes tell each other of an interface, or of an endpoint. */
typedef struct uct_peers_addr {
    uint8_t dev[UCT_PEERS_ADDR_MAX];
    uint8_t iface[UCT_PEERS_ADDR_MAX];
    uint8_t ep[UCT_PEERS_ADDR_MAX];
} uct_peers_addr_t;

/* To a process of peers: connect an endpoint of one of its interfaces, or, with
 * UCT_PEERS_END, wait until so many messages have come, and end. */
typedef struct uct_peers_command {
    uint32_t         index;
    uint32_t         messages;
    uct_peers_addr_t addr;
} uct_peers_command_t;

#define UCT_PEERS_END UINT32_MAX

typedef struct uct_peers {
    uct_pair_t       pair;      /* Its first worker is the only one */
    const char       *tl;
    const char       *device;
    peer_stage_t     stage;
    unsigned         count;     /* Peers */
    int              is_to_iface;
    int              is_awake;  /* Peers progress while others are used */
    volatile unsigned received;
    uct_iface_h      iface;     /* That is measured */
    uct_ep_h         ep[UCT_PEERS_MAX];
    peer_procs_t     procs;
    uct_peers_addr_t addr[UCT_PEERS_MAX];
} uct_peers_t;

/* Of the peers, so that a thousand of them have room. */
static const peer_procs_env_t uct_peers_env[] = {
    PEER_PROCS_SEP_ENV,
    {"UCX_RC_MLX5_TX_QUEUE_LEN", "64"},
    {"UCX_RC_MLX5_RX_QUEUE_LEN", "64"},
    {"UCX_RC_MLX5_TX_CQ_LEN",   "128"},
    {"UCX_RC_MLX5_FC_WND_SIZE", "16"},
    {"UCX_RC_VERBS_TX_QUEUE_LEN", "64"},
    {"UCX_RC_VERBS_RX_QUEUE_LEN", "64"},
    {"UCX_RC_VERBS_TX_CQ_LEN",  "128"},
    {"UCX_RC_VERBS_FC_WND_SIZE", "16"},
    {NULL, NULL}
};


/*
 * Both sides
 */

static ucs_status_t uct_peers_receive(void *arg, void *data, size_t length,
                                      unsigned flags)
{
    ++((uct_peers_t*)arg)->received;
    return UCS_OK;
}

static void uct_peers_open_md(uct_peers_t *peers)
{
    if (uct_pair_open_md(peers->tl, peers->device, &peers->pair) != UCS_OK) {
        exit(1);
    }
    BENCH_CHECK_EXIT(uct_worker_create(peers->pair.async,
                                       UCS_THREAD_MODE_SINGLE,
                                       &peers->pair.worker[0]));
}

static uct_iface_h uct_peers_open_iface(uct_peers_t *peers)
{
    uct_iface_attr_t attr;
    uct_iface_h iface;

    BENCH_CHECK_EXIT(uct_pair_add_iface(&peers->pair, 0, &iface));
    BENCH_CHECK_EXIT(uct_iface_query(iface, &attr));
    BENCH_CHECK_EXIT(uct_iface_set_am_handler(iface, UCT_PEERS_AM_ID,
                                              uct_peers_receive, peers, 0));
    if ((attr.device_addr_len > UCT_PEERS_ADDR_MAX) ||
        (attr.iface_addr_len > UCT_PEERS_ADDR_MAX) ||
        (attr.ep_addr_len > UCT_PEERS_ADDR_MAX)) {
        fprintf(stderr, "addresses of %s are too long\n", peers->tl);
        exit(1);
    }

    peers->is_to_iface = !!(attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE);
    return iface;
}

static void uct_peers_get_addr(uct_peers_t *peers, uct_iface_h iface,
                               uct_peers_addr_t *addr)
{
    memset(addr, 0, sizeof(*addr));
    BENCH_CHECK_EXIT(uct_iface_get_device_address(iface, (void*)addr->dev));
    if (peers->is_to_iface) {
        BENCH_CHECK_EXIT(uct_iface_get_address(iface, (void*)addr->iface));
    }
}

static void uct_peers_create_ep(uct_peers_t *peers, uct_iface_h iface,
                                const uct_peers_addr_t *remote, uct_ep_h *ep_p)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = iface
    };

    if (peers->is_to_iface) {
        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR |
                             UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr    = (const void*)remote->dev;
        params.iface_addr  = (const void*)remote->iface;
    }
    BENCH_CHECK_EXIT(uct_ep_create(&params, ep_p));
}


/*
 * A process of peers
 */

static void uct_peers_await(uct_peers_t *peers, unsigned messages)
{
    time_t deadline = time(NULL) + UCT_PEERS_WAIT;

    while (peers->received < messages) {
        if (uct_worker_progress(peers->pair.worker[0]) == 0) {
            usleep(1000);
        }
        if (time(NULL) > deadline) {
            fprintf(stderr, "%u of %u messages have come\n", peers->received,
                    messages);
            exit(1);
        }
    }
}

/* Whoever is asked to give up a connection has to progress */
static void uct_peers_progress_until(uct_peers_t *peers, int sock)
{
    struct pollfd fd = {.fd = sock, .events = POLLIN};

    while (peers->is_awake && (poll(&fd, 1, UCT_PEERS_POLL) == 0)) {
        uct_worker_progress(peers->pair.worker[0]);
    }
}

static int uct_peers_play(uct_peers_t *peers, int sock)
{
    unsigned num_ifaces = 0;
    uct_iface_h *ifaces;
    uct_ep_h *eps;
    uct_peers_command_t command;
    uct_peers_addr_t addr;
    uint32_t count, i;

    peer_procs_recv(sock, &count, sizeof(count));
    ifaces = calloc(count, sizeof(*ifaces));
    eps    = calloc(count, sizeof(*eps));
    if ((ifaces == NULL) || (eps == NULL)) {
        fprintf(stderr, "no memory for %u interfaces\n", count);
        return 1;
    }

    uct_peers_open_md(peers);
    for (i = 0; i < count; ++i) {
        /* Some interfaces have much memory, and an endpoint that is connected
         * with another one does not know whose that is */
        if ((i < UCT_PEERS_MAX_IFACES) || peers->is_to_iface) {
            ifaces[num_ifaces++] = uct_peers_open_iface(peers);
        }
        uct_peers_get_addr(peers, ifaces[i % num_ifaces], &addr);
        peer_procs_send(sock, &addr, sizeof(addr));
    }

    for (;;) {
        uct_peers_progress_until(peers, sock);
        peer_procs_recv(sock, &command, sizeof(command));
        if (command.index == UCT_PEERS_END) {
            break;
        }

        i = command.index;
        uct_peers_create_ep(peers, ifaces[i % num_ifaces], &command.addr,
                            &eps[i]);
        BENCH_CHECK_EXIT(uct_ep_get_address(eps[i], (void*)addr.ep));
        BENCH_CHECK_EXIT(uct_ep_connect_to_ep(eps[i], (void*)command.addr.dev,
                                              (void*)command.addr.ep));
        peer_procs_send(sock, &addr, sizeof(addr));
    }

    uct_peers_await(peers, command.messages);
    peer_procs_send(sock, &count, sizeof(count));
    /* The one that is measured closes first */
    peer_procs_recv(sock, &count, sizeof(count));

    for (i = 0; i < count; ++i) {
        if (eps[i] != NULL) {
            uct_ep_destroy(eps[i]);
        }
    }
    for (i = 0; i < num_ifaces; ++i) {
        uct_iface_close(ifaces[i]);
    }
    uct_worker_destroy(peers->pair.worker[0]);
    ucs_async_context_destroy(peers->pair.async);
    uct_md_close(peers->pair.md);
    free(ifaces);
    free(eps);
    return 0;
}


/*
 * The process that is measured
 */

static void uct_peers_connect(uct_peers_t *peers, unsigned index)
{
    int sock                    = peers->procs.sock[index / PEER_PROCS_SHARE];
    uct_peers_command_t command = {
        .index = index % PEER_PROCS_SHARE
    };
    uct_peers_addr_t remote;

    uct_peers_get_addr(peers, peers->iface, &command.addr);
    BENCH_CHECK_EXIT(uct_ep_get_address(peers->ep[index],
                                        (void*)command.addr.ep));
    peer_procs_send(sock, &command, sizeof(command));
    peer_procs_recv(sock, &remote, sizeof(remote));
    BENCH_CHECK_EXIT(uct_ep_connect_to_ep(peers->ep[index], (void*)remote.dev,
                                          (void*)remote.ep));
}

/* Waiting takes no instructions to speak of, also on a busy machine: the async
 * thread and the peer's process make the connection meanwhile. */
static void uct_peers_use(uct_peers_t *peers, unsigned index)
{
    time_t deadline  = time(NULL) + UCT_PEERS_WAIT;
    useconds_t sleep = UCT_PEERS_MIN_SLEEP;
    ucs_status_t status;

    if (!peers->is_to_iface) {
        uct_peers_connect(peers, index);
    }

    for (;;) {
        status = uct_ep_am_short(peers->ep[index], UCT_PEERS_AM_ID, 0, NULL, 0);
        if (status != UCS_ERR_NO_RESOURCE) {
            break;
        }
        if (time(NULL) > deadline) {
            status = UCS_ERR_TIMED_OUT;
            break;
        }
        usleep(sleep);
        sleep = (sleep < UCT_PEERS_MAX_SLEEP) ? (2 * sleep) : sleep;
        uct_worker_progress(peers->pair.worker[0]);
    }
    BENCH_CHECK_EXIT(status);

    /* Not of the interface, for that looks at all endpoints */
    do {
        status = uct_ep_flush(peers->ep[index], 0, NULL);
        uct_worker_progress(peers->pair.worker[0]);
    } while ((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE));
    BENCH_CHECK_EXIT(status);
}

static void uct_peers_end(uct_peers_t *peers)
{
    uct_peers_command_t command = {.index = UCT_PEERS_END};
    unsigned i, p;
    uint32_t count;

    for (p = 0; p < peers->procs.count; ++p) {
        command.messages = peer_procs_share(peers->count, p);
        peer_procs_send(peers->procs.sock[p], &command, sizeof(command));
    }
    for (p = 0; p < peers->procs.count; ++p) {
        peer_procs_recv(peers->procs.sock[p], &count, sizeof(count));
    }

    for (i = 0; i < peers->count; ++i) {
        uct_ep_destroy(peers->ep[i]);
    }
    uct_iface_close(peers->iface);
    uct_worker_destroy(peers->pair.worker[0]);
    ucs_async_context_destroy(peers->pair.async);
    uct_md_close(peers->pair.md);

    for (p = 0; p < peers->procs.count; ++p) {
        count = peer_procs_share(peers->count, p);
        peer_procs_send(peers->procs.sock[p], &count, sizeof(count));
    }
}

static int uct_peers_measure(uct_peers_t *peers, char **argv)
{
    unsigned i;

    peer_stage_init();
    peer_procs_start(&peers->procs, argv, uct_peers_env, peers->count,
                     peers->addr, sizeof(peers->addr[0]));
    uct_peers_open_md(peers);
    peers->iface = uct_peers_open_iface(peers);

    peer_stage_start();
    peer_stage_report(&peers->stage, "open", 0);

    for (i = 0; i < peers->count; ++i) {
        uct_peers_create_ep(peers, peers->iface, &peers->addr[i],
                            &peers->ep[i]);
        if (peer_stage_is(i + 1, peers->count)) {
            peer_stage_report(&peers->stage, "create", i + 1);
        }
    }

    for (i = 0; i < peers->count; ++i) {
        uct_peers_use(peers, i);
        if (peer_stage_is(i + 1, peers->count)) {
            peer_stage_report(&peers->stage, "use", i + 1);
        }
    }

    uct_peers_end(peers);
    return (peer_procs_wait(&peers->procs) == 0) ? 0 : 1;
}

int main(int argc, char **argv)
{
    static uct_peers_t peers = {.count = 16};
    int sock                 = -1;
    int option;

    while ((option = getopt(argc, argv, "t:d:n:s:o:aP:")) != -1) {
        switch (option) {
        case 't':
            peers.tl = optarg;
            break;
        case 'd':
            peers.device = optarg;
            break;
        case 'n':
            peers.count = strtoul(optarg, NULL, 0);
            break;
        case 's':
            peers.stage.command = optarg;
            break;
        case 'o':
            peers.stage.prefix = optarg;
            break;
        case 'a':
            peers.is_awake = 1;
            break;
        case 'P': /* A process of peers, see peer_procs.h */
            sock = atoi(optarg);
            break;
        default:
            peers.tl = NULL;
            optind   = argc;
            break;
        }
    }

    if ((peers.tl == NULL) || (peers.device == NULL) || (peers.count < 1) ||
        (peers.count > UCT_PEERS_MAX) ||
        ((peers.stage.command == NULL) != (peers.stage.prefix == NULL))) {
        fprintf(stderr, "usage: %s -t TRANSPORT -d DEVICE [-n PEERS] "
                "[-s COMMAND -o PREFIX] [-a]\n", argv[0]);
        return 2;
    }

    return (sock < 0) ? uct_peers_measure(&peers, argv) :
           uct_peers_play(&peers, sock);
}
