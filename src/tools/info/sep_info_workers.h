/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_WORKERS_H
#define SEP_INFO_WORKERS_H

#include <sys/types.h>
#include <uct/api/uct.h>

/*
 * Workers that are opened for real, and connected to peers on the same device.
 * Peers are processes of their own: what they take must not be counted.
 */

#define SEP_INFO_ADDR_MAX 256


/** One worker. */
typedef struct {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_iface_h         iface;
    uct_iface_attr_t    attr;
    uct_ep_h            *eps;      /**< One per peer */
    unsigned            connected; /**< How many have sent */
} sep_info_worker_t;


/** Memory domain and workers of a process. */
typedef struct {
    uct_md_h            md;
    char                dev_name[UCT_DEVICE_NAME_MAX];
    sep_info_worker_t   *workers;
    unsigned            num_workers;
} sep_info_process_t;


/** A peer: another process with one worker. */
typedef struct {
    pid_t  pid;
    int    fd;                           /**< Closing it ends the peer */
    struct {
        char dev[SEP_INFO_ADDR_MAX];
        char iface[SEP_INFO_ADDR_MAX];
    } addr;
} sep_info_peer_t;


/**
 * Open a device and workers on it.
 *
 * @param num_peers  Endpoints for which each worker has room.
 * @return 0, or -1 after a message.
 */
int sep_info_open(const char *md_name, unsigned num_workers, unsigned num_peers,
                  sep_info_process_t *process);

void sep_info_close(sep_info_process_t *process, unsigned num_peers);

/** Start peers. @return The peers, or NULL after a message. */
sep_info_peer_t *sep_info_start_peers(const char *md_name, unsigned count);

void sep_info_stop_peers(sep_info_peer_t *peers, unsigned count);

/** Messages that each worker sends to each peer in sep_info_talk(). */
#define SEP_INFO_MESSAGES  256


/** Have each worker send SEP_INFO_MESSAGES of 8 bytes to each peer. @return 0,
 *  or -1 after a message. */
int sep_info_talk(sep_info_process_t *process, unsigned num_peers);


/** Connect each worker to each peer. @return 0, or -1 after a message. */
int sep_info_connect(sep_info_process_t *process, const sep_info_peer_t *peers,
                     unsigned num_peers);

#endif
