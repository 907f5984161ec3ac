/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_workers.h>

#include <uct/ib/sep/base/sep_def.h>
#include <uct/ib/sep/module/sep_tl.h>
#include <ucs/async/async.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <ucs/time/time.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Long enough for 64 workers and peers on a busy machine; whoever needs longer
 * hangs */
#define SEP_INFO_PATIENCE  120.0

/* Active message by which a worker connects */
#define SEP_INFO_AM_ID     1


static int sep_info_fail(const char *what, ucs_status_t status)
{
    fprintf(stderr, "sep_info: %s failed: %s\n", what,
            ucs_status_string(status));
    return -1;
}

/* First active port of the memory domain */
static int sep_info_find_port(uct_md_h md, char *dev_name, size_t max)
{
    uct_tl_resource_desc_t *resources;
    unsigned count, i;
    int ret = -1;

    if (uct_md_query_tl_resources(md, &resources, &count) != UCS_OK) {
        return -1;
    }

    for (i = 0; (i < count) && (ret != 0); ++i) {
        if (strcmp(resources[i].tl_name, UCT_SEP_TL_NAME) == 0) {
            ucs_strncpy_safe(dev_name, resources[i].dev_name, max);
            ret = 0;
        }
    }
    uct_release_tl_resource_list(resources);
    return ret;
}

static int sep_info_open_md(const char *md_name, sep_info_process_t *process)
{
    uct_md_config_t *config;
    ucs_status_t status;

    status = uct_md_config_read(&uct_sep_component, NULL, NULL, &config);
    if (status != UCS_OK) {
        return sep_info_fail("reading UCX_SEP_*", status);
    }

    status = uct_md_open(&uct_sep_component, md_name, config, &process->md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return sep_info_fail("opening the device", status);
    }

    if (sep_info_find_port(process->md, process->dev_name,
                           sizeof(process->dev_name)) != 0) {
        fprintf(stderr, "sep_info: %s has no active port\n", md_name);
        uct_md_close(process->md);
        return -1;
    }
    return 0;
}

static ucs_status_t
sep_info_am_handler(void *arg, void *data, size_t length, unsigned flags)
{
    return UCS_OK;
}

static ucs_status_t sep_info_open_iface(const sep_info_process_t *process,
                                        sep_info_worker_t *worker)
{
    uct_iface_params_t params = {};
    uct_iface_config_t *config;
    ucs_status_t status;

    status = uct_md_iface_config_read(process->md, UCT_SEP_TL_NAME, NULL, NULL,
                                      &config);
    if (status != UCS_OK) {
        return status;
    }

    params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                  UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = UCT_SEP_TL_NAME;
    params.mode.device.dev_name = process->dev_name;
    status = uct_iface_open(process->md, worker->worker, &params, config,
                            &worker->iface);
    uct_config_release(config);
    return status;
}

static ucs_status_t sep_info_open_worker(const sep_info_process_t *process,
                                         sep_info_worker_t *worker)
{
    ucs_status_t status;

    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                      &worker->async);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_worker_create(worker->async, UCS_THREAD_MODE_SINGLE,
                               &worker->worker);
    if (status != UCS_OK) {
        goto err_destroy_async;
    }

    status = sep_info_open_iface(process, worker);
    if (status != UCS_OK) {
        goto err_destroy_worker;
    }

    status = uct_iface_query(worker->iface, &worker->attr);
    if (status != UCS_OK) {
        goto err_close;
    }

    uct_iface_set_am_handler(worker->iface, SEP_INFO_AM_ID,
                             sep_info_am_handler, NULL, 0);
    uct_iface_progress_enable(worker->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return UCS_OK;

err_close:
    uct_iface_close(worker->iface);
err_destroy_worker:
    uct_worker_destroy(worker->worker);
err_destroy_async:
    ucs_async_context_destroy(worker->async);
err:
    return status;
}

static void
sep_info_close_worker(sep_info_worker_t *worker, unsigned num_peers)
{
    unsigned i;

    for (i = 0; i < num_peers; ++i) {
        if (worker->eps[i] != NULL) {
            uct_ep_destroy(worker->eps[i]);
        }
    }
    free(worker->eps);
    uct_iface_close(worker->iface);
    uct_worker_destroy(worker->worker);
    ucs_async_context_destroy(worker->async);
}

void sep_info_close(sep_info_process_t *process, unsigned num_peers)
{
    while (process->num_workers > 0) {
        sep_info_close_worker(&process->workers[--process->num_workers],
                              num_peers);
    }
    free(process->workers);
    uct_md_close(process->md);
}

int sep_info_open(const char *md_name, unsigned num_workers,
                         unsigned num_peers, sep_info_process_t *process)
{
    sep_info_worker_t *worker;
    ucs_status_t status;

    memset(process, 0, sizeof(*process));
    if (sep_info_open_md(md_name, process) != 0) {
        return -1;
    }

    process->workers = calloc(num_workers, sizeof(*process->workers));
    while ((process->workers != NULL) && (process->num_workers < num_workers)) {
        worker      = &process->workers[process->num_workers];
        worker->eps = calloc(num_peers + 1, sizeof(*worker->eps));
        status      = (worker->eps == NULL) ? UCS_ERR_NO_MEMORY :
                      sep_info_open_worker(process, worker);
        if (status != UCS_OK) {
            fprintf(stderr, "sep_info: worker %u of %u cannot be opened: %s\n",
                    process->num_workers + 1, num_workers,
                    ucs_status_string(status));
            free(worker->eps);
            sep_info_close(process, num_peers);
            return -1;
        }
        ++process->num_workers;
    }

    return 0;
}

/*
 * Peers
 */

static void sep_info_peer_main(const char *md_name, int fd)
{
    sep_info_process_t process;
    sep_info_worker_t *worker;
    sep_info_peer_t self;
    char byte;

    if (sep_info_open(md_name, 1, 0, &process) != 0) {
        _exit(1);
    }

    worker = &process.workers[0];
    memset(&self.addr, 0, sizeof(self.addr));
    if ((worker->attr.device_addr_len > sizeof(self.addr.dev)) ||
        (worker->attr.iface_addr_len > sizeof(self.addr.iface)) ||
        (uct_iface_get_device_address(worker->iface,
                                      (void*)self.addr.dev) != UCS_OK) ||
        (uct_iface_get_address(worker->iface,
                               (void*)self.addr.iface) != UCS_OK) ||
        (write(fd, &self.addr, sizeof(self.addr)) != sizeof(self.addr))) {
        _exit(1);
    }

    /* Until the other end closes */
    while ((recv(fd, &byte, 1, MSG_DONTWAIT) < 0) &&
           ((errno == EAGAIN) || (errno == EINTR))) {
        if (uct_worker_progress(worker->worker) == 0) {
            usleep(200);
        }
    }

    sep_info_close(&process, 0);
    exit(0);
}

static int sep_info_start_peer(const char *md_name, sep_info_peer_t *peers,
                               unsigned index)
{
    sep_info_peer_t *peer = &peers[index];
    unsigned i;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        perror("sep_info: socketpair");
        return -1;
    }

    fflush(NULL);
    peer->pid = fork();
    if (peer->pid < 0) {
        perror("sep_info: fork");
        close(fds[0]);
        close(fds[1]);
        return -1;
    }

    if (peer->pid == 0) {
        close(fds[0]);
        for (i = 0; i < index; ++i) {
            close(peers[i].fd);
        }
        sep_info_peer_main(md_name, fds[1]);
    }

    close(fds[1]);
    peer->fd = fds[0];
    return 0;
}

void sep_info_stop_peers(sep_info_peer_t *peers, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        close(peers[i].fd);
    }
    for (i = 0; i < count; ++i) {
        waitpid(peers[i].pid, NULL, 0);
    }
    free(peers);
}

sep_info_peer_t *
sep_info_start_peers(const char *md_name, unsigned count)
{
    sep_info_peer_t *peers = calloc(count + 1, sizeof(*peers));
    unsigned i;

    for (i = 0; (peers != NULL) && (i < count); ++i) {
        if (sep_info_start_peer(md_name, peers, i) != 0) {
            sep_info_stop_peers(peers, i);
            return NULL;
        }
    }

    for (i = 0; (peers != NULL) && (i < count); ++i) {
        if (recv(peers[i].fd, &peers[i].addr, sizeof(peers[i].addr),
                 MSG_WAITALL) != sizeof(peers[i].addr)) {
            fprintf(stderr, "sep_info: peer %u of %u did not start\n", i + 1,
                    count);
            sep_info_stop_peers(peers, count);
            return NULL;
        }
    }
    return peers;
}

/*
 * Connecting
 */

static ucs_status_t
sep_info_create_eps(sep_info_worker_t *worker, const sep_info_peer_t *peers,
                    unsigned count)
{
    uct_ep_params_t params = {};
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < count; ++i) {
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                            UCT_EP_PARAM_FIELD_DEV_ADDR |
                            UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.iface      = worker->iface;
        params.dev_addr   = (const void*)peers[i].addr.dev;
        params.iface_addr = (const void*)peers[i].addr.iface;
        status = uct_ep_create(&params, &worker->eps[i]);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

/* Send on endpoints that are not connected yet. @return Whether all are, or <
 * 0. */
static int sep_info_connect_some(sep_info_worker_t *worker, unsigned num_peers)
{
    ucs_status_t status;
    unsigned i;
    uct_ep_h ep;

    /* All connect at once; those that are done are at the front */
    for (i = worker->connected; i < num_peers; ++i) {
        status = uct_ep_am_short(worker->eps[i], SEP_INFO_AM_ID, 0, NULL, 0);
        if (status == UCS_ERR_NO_RESOURCE) {
            continue;
        } else if (status != UCS_OK) {
            return sep_info_fail("connecting to a peer", status);
        }

        ep                             = worker->eps[i];
        worker->eps[i]                 = worker->eps[worker->connected];
        worker->eps[worker->connected] = ep;
        ++worker->connected;
    }

    return (worker->connected == num_peers) &&
           (uct_iface_flush(worker->iface, 0, NULL) == UCS_OK);
}

int sep_info_connect(sep_info_process_t *process,
                            const sep_info_peer_t *peers, unsigned num_peers)
{
    ucs_time_t deadline = ucs_get_time() +
                          ucs_time_from_sec(SEP_INFO_PATIENCE);
    unsigned i, num_done;
    ucs_status_t status;
    int ret;

    for (i = 0; i < process->num_workers; ++i) {
        status = sep_info_create_eps(&process->workers[i], peers, num_peers);
        if (status != UCS_OK) {
            return sep_info_fail("creating an endpoint", status);
        }
    }

    do {
        num_done = 0;
        for (i = 0; i < process->num_workers; ++i) {
            uct_worker_progress(process->workers[i].worker);
            ret = sep_info_connect_some(&process->workers[i], num_peers);
            if (ret < 0) {
                return -1;
            }
            num_done += ret;
        }
        if (ucs_get_time() > deadline) {
            fprintf(stderr, "sep_info: not connected after %.0f s\n",
                    SEP_INFO_PATIENCE);
            return -1;
        }
    } while (num_done < process->num_workers);
    return 0;
}

/*
 * Messages
 */

/* @return Whether all were sent, or < 0. */
static int sep_info_send_some(sep_info_worker_t *worker, unsigned num_peers,
                              unsigned *sent)
{
    ucs_status_t status;
    unsigned i, num_done = 0;

    for (i = 0; i < num_peers; ++i) {
        if (sent[i] < SEP_INFO_MESSAGES) {
            status = uct_ep_am_short(worker->eps[i], SEP_INFO_AM_ID, 0, NULL,
                                     0);
            if (status == UCS_OK) {
                ++sent[i];
            } else if (status != UCS_ERR_NO_RESOURCE) {
                return sep_info_fail("sending to a peer", status);
            }
        }
        num_done += (sent[i] == SEP_INFO_MESSAGES);
    }

    return (num_done == num_peers) &&
           (uct_iface_flush(worker->iface, 0, NULL) == UCS_OK);
}

int sep_info_talk(sep_info_process_t *process, unsigned num_peers)
{
    ucs_time_t deadline = ucs_get_time() +
                          ucs_time_from_sec(SEP_INFO_PATIENCE);
    unsigned *sent      = calloc(num_peers + 1, sizeof(*sent));
    unsigned i;
    int ret = (sent == NULL) ? -1 : 1;

    for (i = 0; (ret > 0) && (i < process->num_workers); ++i) {
        memset(sent, 0, num_peers * sizeof(*sent));
        do {
            uct_worker_progress(process->workers[i].worker);
            ret = sep_info_send_some(&process->workers[i], num_peers, sent);
            /* The peers are about to receive */
            usleep(20);
        } while ((ret == 0) && (ucs_get_time() < deadline));
        if (ret == 0) {
            fprintf(stderr, "sep_info: the peers don't receive\n");
        }
    }

    free(sent);
    return (ret > 0) ? 0 : -1;
}
