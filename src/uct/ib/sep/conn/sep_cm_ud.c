/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/conn/sep_cm_int.h>
#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/base/sep_shortage.h>
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/compat/sep_compat_ucs.h>

#include <ucs/algorithm/crc.h>
#include <ucs/arch/cpu.h>
#include <ucs/async/async.h>
#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One in so many sends asks for a completion, which frees the slots of all
 * before it */
#define UCT_SEP_CM_TX_MODERATION  16

/* Completions taken per poll */
#define UCT_SEP_CM_POLL_BATCH     32

/* A datagram leaves within microseconds, or there is something wrong */
#define UCT_SEP_CM_CLOSE_MSEC     10

/* Completions of sends; receives have the index of their buffer */
#define UCT_SEP_CM_TX_WR_ID       UINT64_MAX


#define uct_sep_cm_dev_hash(_addr) \
    ucs_crc32(0, &(_addr), sizeof(_addr))
#define uct_sep_cm_dev_equal(_addr1, _addr2) \
    (memcmp(&(_addr1), &(_addr2), sizeof(_addr1)) == 0)

static_assert(UCT_SEP_CM_MAX_AHS > UCT_SEP_CM_TX_QUEUE_LEN,
              "an address handle may be in use");


KHASH_IMPL(uct_sep_cm_ahs, uct_sep_device_addr_t, uct_sep_cm_ah_t*, 1,
           uct_sep_cm_dev_hash, uct_sep_cm_dev_equal)


static int uct_sep_cm_ud_post_recv(uct_sep_cm_t *cm, const uint32_t *indices,
                                   unsigned count)
{
    struct ibv_recv_wr wrs[UCT_SEP_CM_POLL_BATCH], *bad_wr;
    struct ibv_sge sges[UCT_SEP_CM_POLL_BATCH][UCT_SEP_CM_RX_SGE];
    unsigned i;

    ucs_assert((count > 0) && (count <= UCT_SEP_CM_POLL_BATCH));

    for (i = 0; i < count; ++i) {
        sges[i][0].addr   = (uintptr_t)cm->rx_buf +
                            (indices[i] * UCT_SEP_CM_RX_STRIDE);
        sges[i][0].length = UCT_SEP_CM_RX_STRIDE;
        sges[i][0].lkey   = cm->mr->lkey;
        /* Without it, a longer datagram would break the QP: any of those who
         * may send to us could do that */
        sges[i][1].addr   = (uintptr_t)cm->rx_buf +
                            (cm->rx_queue_len * UCT_SEP_CM_RX_STRIDE);
        sges[i][1].length = UCT_SEP_CM_RX_SCRAP;
        sges[i][1].lkey   = cm->mr->lkey;
        wrs[i].wr_id      = indices[i];
        wrs[i].sg_list    = sges[i];
        wrs[i].num_sge    = UCT_SEP_CM_RX_SGE;
        wrs[i].next       = (i + 1 < count) ? &wrs[i + 1] : NULL;
    }

    return ibv_post_recv(cm->ud_qp, wrs, &bad_wr);
}

static ucs_status_t uct_sep_cm_ud_post_all(uct_sep_cm_t *cm)
{
    uint32_t indices[UCT_SEP_CM_POLL_BATCH];
    unsigned index, count;
    int ret;

    for (index = 0; index < cm->rx_queue_len; index += count) {
        for (count = 0; (count < UCT_SEP_CM_POLL_BATCH) &&
                        (index + count < cm->rx_queue_len); ++count) {
            indices[count] = index + count;
        }

        ret = uct_sep_cm_ud_post_recv(cm, indices, count);
        if (ret != 0) {
            ucs_error("%s: ibv_post_recv(QP 0x%x, UD) failed: %s", cm->name,
                      cm->ud_qp->qp_num, strerror(ret));
            return UCS_ERR_IO_ERROR;
        }
    }

    return UCS_OK;
}

static ucs_status_t uct_sep_cm_ud_modify(uct_sep_cm_t *cm,
                                         enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {
        .qp_state   = state,
        .pkey_index = cm->pkey_index,
        .port_num   = cm->port.port_num,
        .qkey       = cm->qkey,
        .sq_psn     = 0
    };

    if (ibv_modify_qp(cm->ud_qp, &attr, IBV_QP_STATE | mask) != 0) {
        ucs_error("%s: ibv_modify_qp(QP 0x%x, UD, state %d) failed: %m",
                  cm->name, cm->ud_qp->qp_num, state);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

/* From RESET to RTS with all receives posted */
static ucs_status_t uct_sep_cm_ud_bring_up(uct_sep_cm_t *cm)
{
    ucs_status_t status;

    status = uct_sep_cm_ud_modify(cm, IBV_QPS_INIT, IBV_QP_PKEY_INDEX |
                                                    IBV_QP_PORT | IBV_QP_QKEY);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_cm_ud_post_all(cm);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_cm_ud_modify(cm, IBV_QPS_RTR, 0);
    if (status != UCS_OK) {
        return status;
    }

    return uct_sep_cm_ud_modify(cm, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

/* A device error puts the QP into the error state. Start over; what is lost is
 * repeated. */
static void uct_sep_cm_ud_recover(uct_sep_cm_t *cm)
{
    uct_sep_cm_count(cm, restarts, diag,
                     "restarting the connection manager's QP 0x%x after an "
                     "error", cm->ud_qp->qp_num);

    /* Going to RESET removes the completions of the QP from the CQ */
    if (uct_sep_cm_ud_modify(cm, IBV_QPS_RESET, 0) != UCS_OK) {
        return;
    }

    cm->rx_fifo_head  = 0;
    cm->rx_fifo_count = 0;
    cm->tx_unsignaled = 0;
    cm->tx_signaled   = 0;
    if (uct_sep_cm_ud_bring_up(cm) == UCS_OK) {
        cm->is_broken = 0;
    }
}

/* Poll completions; packets are only put aside, so that a send can call this */
static int uct_sep_cm_ud_poll(uct_sep_cm_t *cm)
{
    struct ibv_wc wcs[UCT_SEP_CM_POLL_BATCH];
    uct_sep_cm_rx_entry_t *entry;
    int i, count;

    count = ibv_poll_cq(cm->cq, UCT_SEP_CM_POLL_BATCH, wcs);
    if (count < 0) {
        ucs_error("%s: ibv_poll_cq(UD) failed", cm->name);
        return 0;
    }

    for (i = 0; i < count; ++i) {
        if ((wcs[i].wr_id == UCT_SEP_CM_TX_WR_ID) && (cm->tx_signaled > 0)) {
            --cm->tx_signaled;
        }
        if (wcs[i].status != IBV_WC_SUCCESS) {
            if (wcs[i].status != IBV_WC_WR_FLUSH_ERR) {
                uct_sep_cm_count(cm, rx_errors, diag,
                                 "UD %s on QP 0x%x failed: %s (vendor 0x%x)",
                                 (wcs[i].wr_id == UCT_SEP_CM_TX_WR_ID) ?
                                 "send" : "receive", wcs[i].qp_num,
                                 ibv_wc_status_str(wcs[i].status),
                                 wcs[i].vendor_err);
            }
            cm->is_broken = 1;
        } else if (wcs[i].wr_id != UCT_SEP_CM_TX_WR_ID) {
            ucs_assert(cm->rx_fifo_count < cm->rx_queue_len);
            entry          = &cm->rx_fifo[(cm->rx_fifo_head +
                                           cm->rx_fifo_count) %
                                          cm->rx_queue_len];
            entry->index   = wcs[i].wr_id;
            entry->length  = (wcs[i].byte_len > UCT_SEP_CONN_GRH_LEN) ?
                             (wcs[i].byte_len - UCT_SEP_CONN_GRH_LEN) : 0;
            entry->source.qpn     = wcs[i].src_qp;
            entry->source.slid    = wcs[i].slid;
            entry->source.has_grh = !!(wcs[i].wc_flags & IBV_WC_GRH);
            ++cm->rx_fifo_count;
        }
    }

    return count;
}

/* Look at the packets put aside, and post their buffers again. @return How many
 * there were. */
static unsigned uct_sep_cm_ud_dispatch(uct_sep_cm_t *cm)
{
    unsigned count = 0;
    uct_sep_cm_rx_entry_t entry;
    struct {
        uint8_t               grh[UCT_SEP_CONN_GRH_LEN];
        uct_sep_conn_packet_t packet;
    } UCS_S_PACKED rx;
    int ret;

    for (; cm->rx_fifo_count > 0; ++count) {
        entry            = cm->rx_fifo[cm->rx_fifo_head];
        cm->rx_fifo_head = (cm->rx_fifo_head + 1) % cm->rx_queue_len;
        --cm->rx_fifo_count;

        /* Post the buffer first: handling the packet may take long (creating a
         * QP is a system call), and others are arriving. */
        memcpy(&rx, cm->rx_buf + (entry.index * UCT_SEP_CM_RX_STRIDE),
               sizeof(rx));
        ret = cm->is_broken ? 0 : uct_sep_cm_ud_post_recv(cm, &entry.index, 1);
        if (ret != 0) {
            ucs_error("%s: ibv_post_recv(QP 0x%x, UD) failed: %s", cm->name,
                      cm->ud_qp->qp_num, strerror(ret));
            cm->is_broken = 1;
        }

        /* If it is longer than the packet, it is not of a version we know. The
         * parser says so itself: it reads only the start if the length is wrong
         */
        uct_sep_cm_rx(cm, &rx.packet, entry.length, rx.grh, &entry.source);
    }

    return count;
}

int uct_sep_cm_ud_drain(uct_sep_cm_t *cm)
{
    unsigned packets = 0;
    int count;

    if (cm->is_draining) {
        return 1;
    }

    cm->is_draining = 1;
    do {
        count    = uct_sep_cm_ud_poll(cm);
        packets += uct_sep_cm_ud_dispatch(cm);
        if (cm->is_broken) {
            uct_sep_cm_ud_recover(cm);
        }
    } while ((count > 0) && !cm->is_broken && (packets < cm->rx_queue_len));
    cm->is_draining = 0;

    return (count <= 0) || cm->is_broken;
}

void uct_sep_cm_ud_flush(uct_sep_cm_t *cm)
{
    if (ucs_unlikely((cm->rx_fifo_count > 0) || cm->is_broken)) {
        uct_sep_cm_ud_drain(cm);
    }
}

static void uct_sep_cm_ud_ah_remove(uct_sep_cm_t *cm, uct_sep_cm_ah_t *entry)
{
    khiter_t iter = kh_get(uct_sep_cm_ahs, &cm->ahs, entry->addr);

    ucs_assert(iter != kh_end(&cm->ahs));
    kh_del(uct_sep_cm_ahs, &cm->ahs, iter);
    ucs_list_del(&entry->list);
    --cm->stats.ahs;
    if (ibv_destroy_ah(entry->ah) != 0) {
        ucs_warn("%s: ibv_destroy_ah() failed: %m", cm->name);
    }
    ucs_free(entry);
}

static uct_sep_cm_ah_t *
uct_sep_cm_ud_ah_create(uct_sep_cm_t *cm, const uct_sep_device_addr_t *addr)
{
    char addr_str[UCT_SEP_ADDR_STR_MAX];
    struct ibv_ah_attr ah_attr;
    uct_sep_cm_ah_t *entry;

    entry = ucs_malloc(sizeof(*entry), "sep_cm_ah");
    if (entry == NULL) {
        return NULL;
    }

    uct_sep_device_addr_to_ah_attr(&cm->port, addr, &ah_attr);
    entry->addr = *addr;
    entry->ah   = ibv_create_ah(cm->pd, &ah_attr);
    if (entry->ah == NULL) {
        uct_sep_cm_count(cm, ah_errors, diag, "ibv_create_ah(%s) failed: %m",
                         uct_sep_device_addr_str(addr, addr_str,
                                                 sizeof(addr_str)));
        ucs_free(entry);
        return NULL;
    }

    return entry;
}

static struct ibv_ah *
uct_sep_cm_ud_ah_get(uct_sep_cm_t *cm, const uct_sep_device_addr_t *addr)
{
    uct_sep_cm_ah_t *entry;
    khiter_t iter;
    int ret;

    iter = kh_put(uct_sep_cm_ahs, &cm->ahs, *addr, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        return NULL;
    }

    if (ret == UCS_KH_PUT_KEY_PRESENT) {
        entry = kh_value(&cm->ahs, iter);
        ucs_list_del(&entry->list);
        ucs_list_add_tail(&cm->ah_list, &entry->list);
        return entry->ah;
    }

    entry = uct_sep_cm_ud_ah_create(cm, addr);
    if (entry == NULL) {
        kh_del(uct_sep_cm_ahs, &cm->ahs, iter);
        return NULL;
    }

    kh_value(&cm->ahs, iter) = entry;
    ucs_list_add_tail(&cm->ah_list, &entry->list);
    if (++cm->stats.ahs > UCT_SEP_CM_MAX_AHS) {
        uct_sep_cm_ud_ah_remove(cm, ucs_list_head(&cm->ah_list,
                                                  uct_sep_cm_ah_t, list));
    }

    return entry->ah;
}

static void uct_sep_cm_ud_ahs_cleanup(uct_sep_cm_t *cm)
{
    while (!ucs_list_is_empty(&cm->ah_list)) {
        uct_sep_cm_ud_ah_remove(cm, ucs_list_head(&cm->ah_list,
                                                  uct_sep_cm_ah_t, list));
    }
    kh_destroy_inplace(uct_sep_cm_ahs, &cm->ahs);
}

/*
 * libmlx5 alternates between the two buffers of the uUAR by itself. The device
 * has seen what others have written when they release the lock, so it does not
 * matter that libmlx5 does not know of their toggles.
 */
static int uct_sep_cm_ud_post_wr(uct_sep_cm_t *cm, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad_wr;
    int ret;

    if (cm->bf == NULL) {
        return ibv_post_send(cm->ud_qp, wr, &bad_wr);
    }

    if (uct_sep_compat_async_mode(cm->async) != UCS_ASYNC_MODE_SIGNAL) {
        uct_sep_bf_spinlock_lock(&cm->bf->lock);
    } else if (!uct_sep_bf_spinlock_trylock(&cm->bf->lock)) {
        /* This may be a signal handler that has interrupted the lock's owner */
        return EBUSY;
    }

    ret = ibv_post_send(cm->ud_qp, wr, &bad_wr);
    ucs_memory_bus_store_fence();
    uct_sep_bf_spinlock_unlock(&cm->bf->lock);
    return ret;
}

int uct_sep_cm_ud_post_send(uct_sep_cm_t *cm, const uct_sep_peer_addr_t *peer,
                            const uct_sep_conn_packet_t *packet)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)packet,
        .length = sizeof(*packet)
    };
    struct ibv_send_wr wr = {
        .wr_id      = UCT_SEP_CM_TX_WR_ID,
        .sg_list    = &sge,
        .num_sge    = 1,
        .opcode     = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE
    };
    struct ibv_ah *ah;
    int ret;

    ah = uct_sep_cm_ud_ah_get(cm, &peer->dev);
    if (ah == NULL) {
        return EHOSTUNREACH;
    }

    wr.wr.ud.ah          = ah;
    wr.wr.ud.remote_qpn  = uct_sep_iface_addr_qpn(&peer->iface);
    wr.wr.ud.remote_qkey = uct_sep_iface_addr_qkey(&peer->iface);
    if ((cm->tx_unsignaled + 1 >= UCT_SEP_CM_TX_MODERATION) ||
        (cm->closing != 0)) {
        wr.send_flags |= IBV_SEND_SIGNALED;
    }

    ret = uct_sep_cm_ud_post_wr(cm, &wr);
    if (ret == ENOMEM) {
        /* Send queue full: see whether the device has finished some */
        uct_sep_cm_ud_poll(cm);
        if (cm->closing != 0) {
            uct_sep_cm_ud_flush_sends(cm);
        }
        ret = uct_sep_cm_ud_post_wr(cm, &wr);
    }

    if (ret != 0) {
        return ret;
    }

    if (wr.send_flags & IBV_SEND_SIGNALED) {
        cm->tx_unsignaled = 0;
        ++cm->tx_signaled;
    } else {
        ++cm->tx_unsignaled;
    }
    return 0;
}

void uct_sep_cm_ud_begin_close(uct_sep_cm_t *cm)
{
    cm->closing = ucs_get_time() + ucs_time_from_msec(UCT_SEP_CM_CLOSE_MSEC);
}

void uct_sep_cm_ud_flush_sends(uct_sep_cm_t *cm)
{
    while ((cm->tx_signaled > 0) && !cm->is_broken &&
           (ucs_get_time() < cm->closing)) {
        uct_sep_cm_ud_poll(cm);
    }
}

unsigned uct_sep_cm_ud_get_events(uct_sep_cm_t *cm)
{
    unsigned count = 0;
    struct ibv_cq *cq;
    void *context;

    while (ibv_get_cq_event(cm->channel, &cq, &context) == 0) {
        ++count;
    }

    if (count > 0) {
        /* One call for all: it takes a mutex */
        ibv_ack_cq_events(cm->cq, count);
    }

    return count;
}

void uct_sep_cm_ud_arm(uct_sep_cm_t *cm)
{
    int ret = ibv_req_notify_cq(cm->cq, 0);

    if (ret != 0) {
        ucs_error("%s: ibv_req_notify_cq(UD) failed: %s, no more connections "
                  "can be made", cm->name, strerror(ret));
    }
}

static ucs_status_t
uct_sep_cm_ud_buffers_alloc(uct_sep_cm_t *cm, unsigned rx_queue_len)
{
    cm->rx_queue_len = rx_queue_len;
    cm->rx_fifo      = ucs_calloc(rx_queue_len, sizeof(*cm->rx_fifo),
                                  "sep_cm_rx_fifo");
    if (cm->rx_fifo == NULL) {
        goto err;
    }

    /* Whole pages of its own: registered memory is not inherited by fork, and
     * nothing else may be lost with it */
    cm->rx_buf_size = ucs_align_up((rx_queue_len * UCT_SEP_CM_RX_STRIDE) +
                                   UCT_SEP_CM_RX_SCRAP,
                                   (size_t)sysconf(_SC_PAGESIZE));
    cm->rx_buf      = mmap(NULL, cm->rx_buf_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (cm->rx_buf == MAP_FAILED) {
        goto err_free_fifo;
    }

    cm->mr = ibv_reg_mr(cm->pd, cm->rx_buf, cm->rx_buf_size,
                        IBV_ACCESS_LOCAL_WRITE);
    if (cm->mr == NULL) {
        ucs_error("%s: ibv_reg_mr(%zu bytes, UD receives) failed: %m%s",
                  cm->name, cm->rx_buf_size, (errno == ENOMEM) ?
                  " (see ulimit -l, or set a smaller UCX_SEP_CM_RX_QUEUE_LEN)" :
                  "");
        munmap(cm->rx_buf, cm->rx_buf_size);
        ucs_free(cm->rx_fifo);
        return UCS_ERR_IO_ERROR;
    }

    uct_sep_account_add(cm->mr->context, UCT_SEP_ACCOUNT_MR, cm->rx_buf_size);
    return UCS_OK;

err_free_fifo:
    ucs_free(cm->rx_fifo);
err:
    ucs_error("%s: could not allocate %u connection receives, set a smaller "
              "UCX_SEP_CM_RX_QUEUE_LEN", cm->name, rx_queue_len);
    return UCS_ERR_NO_MEMORY;
}

static void uct_sep_cm_ud_buffers_free(uct_sep_cm_t *cm)
{
    uct_sep_account_remove(cm->mr->context, UCT_SEP_ACCOUNT_MR,
                           cm->rx_buf_size);
    if (ibv_dereg_mr(cm->mr) != 0) {
        ucs_warn("%s: ibv_dereg_mr(UD receives) failed: %m", cm->name);
    }
    munmap(cm->rx_buf, cm->rx_buf_size);
    ucs_free(cm->rx_fifo);
}

static ucs_status_t
uct_sep_cm_ud_qp_create(uct_sep_cm_t *cm, struct ibv_pd *pd,
                        uct_sep_uuar_use_t use)
{
    struct ibv_qp_init_attr attr = {
        .send_cq    = cm->cq,
        .recv_cq    = cm->cq,
        .cap        = {
            .max_send_wr     = UCT_SEP_CM_TX_QUEUE_LEN,
            .max_recv_wr     = cm->rx_queue_len,
            .max_send_sge    = 1,
            .max_recv_sge    = UCT_SEP_CM_RX_SGE,
            .max_inline_data = sizeof(uct_sep_conn_packet_t)
        },
        .qp_type    = IBV_QPT_UD,
        .sq_sig_all = 0
    };

    cm->ud_qp = ibv_create_qp(pd, &attr);
    if (cm->ud_qp == NULL) {
        ucs_error("%s: could not create a queue pair for connecting, with %u "
                  "receives: %m%s", cm->name, cm->rx_queue_len,
                  uct_sep_shortage_hint(
                          errno, uct_sep_uuar_use_is_driver(use) ?
                          ". Reduce UCX_SEP_CM_RX_QUEUE_LEN; if the device has "
                          "no UAR page left, use fewer workers or another "
                          "UCX_SEP_CATEGORY" :
                          ". Reduce UCX_SEP_CM_RX_QUEUE_LEN, or use fewer "
                          "workers"));
        return UCS_ERR_IO_ERROR;
    }

    uct_sep_account_add_qp(cm->ud_qp);
    return UCS_OK;
}

/* Let others know which uUAR the QP rings */
static ucs_status_t
uct_sep_cm_ud_qp_register(uct_sep_cm_t *cm, uct_sep_uuar_use_t use)
{
    struct mlx5dv_qp dv_qp = {.comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET};
    struct mlx5dv_obj dv   = {};
    int ret;

    dv.qp.in  = cm->ud_qp;
    dv.qp.out = &dv_qp;
    ret       = mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP);
    if (ret != 0) {
        ucs_error("%s: mlx5dv_init_obj(UD QP 0x%x) failed: %s", cm->name,
                  cm->ud_qp->qp_num, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    return uct_sep_uuars_get(cm->uuars, &dv_qp, use, &cm->bf);
}

static void uct_sep_cm_ud_qp_destroy(uct_sep_cm_t *cm)
{
    uint32_t qpn = cm->ud_qp->qp_num;

    if (cm->bf != NULL) {
        uct_sep_uuars_put(cm->uuars, cm->bf);
    }

    uct_sep_account_remove_qp(cm->ud_qp);
    if (ibv_destroy_qp(cm->ud_qp) != 0) {
        ucs_warn("%s: ibv_destroy_qp(QP 0x%x, UD) failed: %m", cm->name, qpn);
    }
}

static ucs_status_t
uct_sep_cm_ud_qp_open(uct_sep_cm_t *cm, const uct_sep_cm_params_t *params)
{
    struct ibv_pd *pd = (params->qp_pd != NULL) ? params->qp_pd : cm->pd;
    ucs_status_t status;

    cm->uuars = params->uuars;
    if (cm->uuars == NULL) {
        return uct_sep_cm_ud_qp_create(cm, pd, UCT_SEP_UUAR_DRIVER);
    }

    uct_sep_uuars_enter(cm->uuars, params->uuar_use);
    status = uct_sep_cm_ud_qp_create(cm, pd, params->uuar_use);
    if (status == UCS_OK) {
        status = uct_sep_cm_ud_qp_register(cm, params->uuar_use);
        if (status != UCS_OK) {
            uct_sep_cm_ud_qp_destroy(cm);
        }
    }
    uct_sep_uuars_leave(cm->uuars, params->uuar_use);
    return status;
}

static ucs_status_t uct_sep_cm_ud_channel_create(uct_sep_cm_t *cm,
                                                 struct ibv_context *context)
{
    ucs_status_t status;

    cm->channel = ibv_create_comp_channel(context);
    if (cm->channel == NULL) {
        ucs_error("%s: ibv_create_comp_channel() failed: %m", cm->name);
        return UCS_ERR_IO_ERROR;
    }

    status = ucs_sys_fcntl_modfl(cm->channel->fd, O_NONBLOCK, 0);
    if (status != UCS_OK) {
        ibv_destroy_comp_channel(cm->channel);
    }
    return status;
}

ucs_status_t uct_sep_cm_ud_open(uct_sep_cm_t *cm,
                                const uct_sep_cm_params_t *params)
{
    ucs_status_t status;
    int ret;

    cm->pkey_index = params->pkey_index;
    kh_init_inplace(uct_sep_cm_ahs, &cm->ahs);
    ucs_list_head_init(&cm->ah_list);

    status = uct_sep_cm_ud_channel_create(cm, params->ibv_context);
    if (status != UCS_OK) {
        goto err;
    }

    /* Room for every receive and send at once, so it can't overflow */
    cm->cq = ibv_create_cq(params->ibv_context,
                           params->rx_queue_len + UCT_SEP_CM_TX_QUEUE_LEN, NULL,
                           cm->channel, 0);
    if (cm->cq == NULL) {
        ucs_error("%s: ibv_create_cq(UD, %u entries) failed: %m", cm->name,
                  params->rx_queue_len + UCT_SEP_CM_TX_QUEUE_LEN);
        status = UCS_ERR_IO_ERROR;
        goto err_destroy_channel;
    }

    uct_sep_account_add_cq(cm->cq);
    status = uct_sep_cm_ud_buffers_alloc(cm, params->rx_queue_len);
    if (status != UCS_OK) {
        goto err_destroy_cq;
    }

    status = uct_sep_cm_ud_qp_open(cm, params);
    if (status != UCS_OK) {
        goto err_free_buffers;
    }

    /* Arm before anything can arrive */
    ret = ibv_req_notify_cq(cm->cq, 0);
    if (ret != 0) {
        ucs_error("%s: ibv_req_notify_cq(UD) failed: %s", cm->name,
                  strerror(ret));
        status = UCS_ERR_IO_ERROR;
        goto err_destroy_qp;
    }

    status = uct_sep_cm_ud_bring_up(cm);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    return UCS_OK;

err_destroy_qp:
    uct_sep_cm_ud_qp_destroy(cm);
err_free_buffers:
    uct_sep_cm_ud_buffers_free(cm);
err_destroy_cq:
    uct_sep_account_remove_cq(cm->cq);
    ibv_destroy_cq(cm->cq);
err_destroy_channel:
    ibv_destroy_comp_channel(cm->channel);
err:
    return status;
}

void uct_sep_cm_ud_close(uct_sep_cm_t *cm)
{
    uct_sep_cm_ud_ahs_cleanup(cm);

    uct_sep_cm_ud_qp_destroy(cm);
    uct_sep_cm_ud_buffers_free(cm);

    /* Destroying a CQ would wait for its unread events */
    uct_sep_cm_ud_get_events(cm);
    uct_sep_account_remove_cq(cm->cq);
    if (ibv_destroy_cq(cm->cq) != 0) {
        ucs_warn("%s: ibv_destroy_cq(UD) failed: %m", cm->name);
    }

    if (ibv_destroy_comp_channel(cm->channel) != 0) {
        ucs_warn("%s: ibv_destroy_comp_channel() failed: %m", cm->name);
    }
}
