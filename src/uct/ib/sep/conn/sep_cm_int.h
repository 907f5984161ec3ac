/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CM_INT_H
#define UCT_SEP_CM_INT_H

#include <uct/ib/sep/conn/sep_cm.h>

#include <ucs/datastruct/khash.h>

BEGIN_C_DECLS

/**
 * @file sep_cm_int.h
 *
 * Internals of the connection manager, shared by sep_cm.c (connections) and
 * sep_cm_ud.c (its UD queue pair). For nobody else, except to tell its size.
 */

/**
 * Sends in flight. Packets are few per peer, and one thread hardly posts them
 * faster than a device sends them.
 */
#define UCT_SEP_CM_TX_QUEUE_LEN  128


/** A received packet that has been polled but not looked at. */
typedef struct uct_sep_cm_rx_entry {
    uint32_t index;   /**< Receive buffer */
    uint32_t length;  /**< Bytes behind the GRH */
    uint32_t src_qpn; /**< Who sent it, according to the device */
} uct_sep_cm_rx_entry_t;


KHASH_TYPE(uct_sep_cm_peers, const uct_sep_peer_addr_t*, char)
KHASH_TYPE(uct_sep_cm_ahs, uct_sep_device_addr_t, struct ibv_ah*)


struct uct_sep_cm {
    ucs_async_context_t         *async;
    const uct_sep_cm_ops_t      *ops;
    void                        *arg;
    uct_sep_port_t              port;
    uct_sep_peer_addr_t         self;
    uct_sep_conn_env_t          env;
    uct_sep_cm_tx_filter_t      tx_filter;
    void                        *tx_filter_arg;

    khash_t(uct_sep_cm_peers)   peers; /**< Keys are inside the connections */
    khash_t(uct_sep_cm_ahs)     ahs;   /**< By device address */

    ucs_list_link_t             timers;   /**< Connections with a deadline */
    ucs_time_t                  tick;     /**< Interval of the timer */
    int                         timer_id; /**< -1 if there is none */

    struct ibv_pd               *pd;
    uint16_t                    pkey_index;
    struct ibv_comp_channel     *channel;
    struct ibv_cq               *cq;
    struct ibv_qp               *ud_qp;
    uct_sep_uuars_t             *uuars;       /**< NULL: nobody else rings */
    uct_sep_bf_t                *bf;          /**< With uuars: what ud_qp
                                                   rings */
    struct ibv_mr               *mr;
    uint8_t                     *rx_buf;      /**< rx_queue_len of them */
    size_t                      rx_buf_size;
    unsigned                    rx_queue_len;
    uct_sep_cm_rx_entry_t       *rx_fifo;     /**< Ring, rx_queue_len entries */
    unsigned                    rx_fifo_head; /**< Next to look at */
    unsigned                    rx_fifo_count;
    unsigned                    tx_unsignaled;
    uint8_t                     is_broken;    /**< QP is in error state */
    uint8_t                     is_draining;  /**< Guards against recursion */

    uct_sep_cm_stats_t          stats;
    char                        name[64];
};


/**
 * Create the UD QP with all it needs, post its receives and arm the CQ.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR with a message.
 */
ucs_status_t uct_sep_cm_ud_open(uct_sep_cm_t *cm,
                                const uct_sep_cm_params_t *params);

/** Mirror of @ref uct_sep_cm_ud_open. */
void uct_sep_cm_ud_close(uct_sep_cm_t *cm);

/**
 * Post a packet.
 *
 * @return 0, or errno: ENOMEM if the send queue is full, EHOSTUNREACH if there
 *         is no address handle, EBUSY if the uUAR is in use.
 */
int uct_sep_cm_ud_post_send(uct_sep_cm_t *cm, const uct_sep_peer_addr_t *peer,
                            const uct_sep_conn_packet_t *packet);

/** Read the events from the channel. @return How many there were. */
unsigned uct_sep_cm_ud_get_events(uct_sep_cm_t *cm);

/** Ask for an event with the next completion. */
void uct_sep_cm_ud_arm(uct_sep_cm_t *cm);

/** Poll until the CQ is empty, and pass each packet to @ref uct_sep_cm_rx. */
void uct_sep_cm_ud_drain(uct_sep_cm_t *cm);

/**
 * Look at packets that were polled while a send made room for itself. To be
 * called after sending, outside of @ref uct_sep_cm_ud_drain.
 */
void uct_sep_cm_ud_flush(uct_sep_cm_t *cm);

/** Handle one received payload. Implemented by sep_cm.c. */
void uct_sep_cm_rx(uct_sep_cm_t *cm, const void *data, size_t length,
                   uint32_t src_qpn);

END_C_DECLS

#endif
