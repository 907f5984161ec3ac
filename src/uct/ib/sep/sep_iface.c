/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_abi.h"
#include "sep_ep.h"
#include "sep_iface.h"
#include "sep_rc.h"

#include <ucs/async/async.h>
#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/stubs.h>
#include <ucs/sys/string.h>
#include <string.h>


/* Receives posted when an interface is opened. UCP does not progress an
 * interface before something has arrived on it, so there must be some; the rest
 * is posted when progress is enabled. */
#define UCT_SEP_RX_FIRST_FILL  64

/* Software overhead of an operation; less than half of that of rc_mlx5 */
#define UCT_SEP_OVERHEAD       20e-9


/* Among transports that are equal in all else; more than any of UCX has */
#define UCT_SEP_PRIORITY       60


static const char *uct_sep_tx_post_names[] = {
    [UCT_SEP_TX_POST_BF]   = "bf",
    [UCT_SEP_TX_POST_DB]   = "db",
    [UCT_SEP_TX_POST_AUTO] = "auto",
    [UCT_SEP_TX_POST_LAST] = NULL
};

static const char *uct_sep_path_mtu_names[] = {
    [0]            = "default",
    [IBV_MTU_256]  = "256",
    [IBV_MTU_512]  = "512",
    [IBV_MTU_1024] = "1024",
    [IBV_MTU_2048] = "2048",
    [IBV_MTU_4096] = "4096",
    [IBV_MTU_4096 + 1] = NULL
};

static ucs_config_field_t uct_sep_iface_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_sep_iface_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},

    {"CATEGORY", "dynamic",
     "Sharing category: which hardware resources the workers of a process have\n"
     "to themselves.\n"
     "  mpi_everywhere - a device context each\n"
     "  2xdynamic      - two UAR pages each, of which one is used\n"
     "  dynamic        - a UAR page each\n"
     "  shared_dynamic - two workers share a UAR page\n"
     "  static         - UARs as the driver assigns them\n"
     "  mpi_threads    - one queue pair for all\n"
     "  auto           - the best that is available\n"
     "This version has dynamic.",
     ucs_offsetof(uct_sep_iface_config_t, category),
     UCS_CONFIG_TYPE_ENUM(uct_sep_category_names)},

    {"SEG_SIZE", "8256",
     "Size of the buffers for buffered sends and for receives. It must be the\n"
     "same in all processes.",
     ucs_offsetof(uct_sep_iface_config_t, seg_size), UCS_CONFIG_TYPE_MEMUNITS},

    {"TX_QUEUE_LEN", "256",
     "Length of the send queue of a connection, in basic blocks of 64 bytes. A\n"
     "work request takes one to four of them.",
     ucs_offsetof(uct_sep_iface_config_t, tx.queue_len), UCS_CONFIG_TYPE_UINT},

    {"TX_MIN_INLINE", "0",
     "Inline data for which the send queue has room with each work request.\n"
     "Any message that is short enough is sent inline in any case; a larger\n"
     "value makes the queue longer.",
     ucs_offsetof(uct_sep_iface_config_t, tx.min_inline),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TX_CQ_MODERATION", "64",
     "Number of work requests of a connection that are posted without asking\n"
     "for a completion.",
     ucs_offsetof(uct_sep_iface_config_t, tx.cq_moderation),
     UCS_CONFIG_TYPE_UINT},

    {"TX_CQ_LEN", "4096",
     "Number of outstanding basic blocks of all connections of an interface.\n"
     "The completion queue has room for these and for the receives.",
     ucs_offsetof(uct_sep_iface_config_t, tx.cq_len), UCS_CONFIG_TYPE_UINT},

    {"TX_POST", "auto",
     "How work requests are handed to the device.\n"
     "  bf   - written to it (BlueFlame)\n"
     "  db   - by a doorbell, upon which it reads them\n"
     "  auto - bf if the device has it",
     ucs_offsetof(uct_sep_iface_config_t, tx.post),
     UCS_CONFIG_TYPE_ENUM(uct_sep_tx_post_names)},

    UCT_IFACE_MPOOL_CONFIG_FIELDS("TX_", -1, 256, "send",
                                  ucs_offsetof(uct_sep_iface_config_t, tx.mp),
                                  ""),

    {"RX_QUEUE_LEN", "1024",
     "Length of the receive queue, which all connections share.",
     ucs_offsetof(uct_sep_iface_config_t, rx.queue_len), UCS_CONFIG_TYPE_UINT},

    {"RX_MAX_POLL", "16",
     "Maximal number of completions to handle in one progress call.",
     ucs_offsetof(uct_sep_iface_config_t, rx.max_poll), UCS_CONFIG_TYPE_UINT},

    UCT_IFACE_MPOOL_CONFIG_FIELDS("RX_", -1, 0, "receive",
                                  ucs_offsetof(uct_sep_iface_config_t, rx.mp),
                                  ""),

    {"MAX_RD_ATOMIC", "auto",
     "Maximal number of outstanding reads and atomics of a connection. auto is\n"
     "what the device can do.",
     ucs_offsetof(uct_sep_iface_config_t, max_rd_atomic),
     UCS_CONFIG_TYPE_ULUNITS},

    {"MAX_GET_ZCOPY", "auto",
     "Maximal size of a zero-copy get operation.",
     ucs_offsetof(uct_sep_iface_config_t, max_get_zcopy),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TIMEOUT", "1.0s",
     "Transport timeout: how long to wait for an acknowledgement.",
     ucs_offsetof(uct_sep_iface_config_t, timeout), UCS_CONFIG_TYPE_TIME},

    {"RETRY_COUNT", "7",
     "Transport retries before a connection is given up.",
     ucs_offsetof(uct_sep_iface_config_t, retry_count), UCS_CONFIG_TYPE_UINT},

    {"RNR_TIMEOUT", "1ms",
     "How long a sender waits when the receive queue was empty.",
     ucs_offsetof(uct_sep_iface_config_t, rnr_timeout), UCS_CONFIG_TYPE_TIME},

    {"RNR_RETRY_COUNT", "7",
     "How often a sender tries again when the receive queue was empty. 7 is\n"
     "without limit.",
     ucs_offsetof(uct_sep_iface_config_t, rnr_retry_count),
     UCS_CONFIG_TYPE_UINT},

    {"PATH_MTU", "default",
     "Path MTU. default is that of the port.",
     ucs_offsetof(uct_sep_iface_config_t, path_mtu),
     UCS_CONFIG_TYPE_ENUM(uct_sep_path_mtu_names)},

    {"IS_GLOBAL", "n",
     "Use global routing on InfiniBand.",
     ucs_offsetof(uct_sep_iface_config_t, port.is_global),
     UCS_CONFIG_TYPE_BOOL},

    {"SL", "auto",
     "InfiniBand service level, or Ethernet priority. auto is 0.",
     ucs_offsetof(uct_sep_iface_config_t, port.sl), UCS_CONFIG_TYPE_ULUNITS},

    {"TRAFFIC_CLASS", "auto",
     "InfiniBand traffic class, or RoCE v2 differentiated services field. auto\n"
     "is 106 on RoCE v2 and 0 otherwise.",
     ucs_offsetof(uct_sep_iface_config_t, port.traffic_class),
     UCS_CONFIG_TYPE_ULUNITS},

    {"HOP_LIMIT", "255",
     "InfiniBand hop limit, or RoCE v2 time to live; 0 to 255.",
     ucs_offsetof(uct_sep_iface_config_t, port.hop_limit),
     UCS_CONFIG_TYPE_UINT},

    {"GID_INDEX", "auto",
     "Index of the port's GID to use. auto selects the best RoCE version on\n"
     "Ethernet, and the first GID on InfiniBand.",
     ucs_offsetof(uct_sep_iface_config_t, port.gid_index),
     UCS_CONFIG_TYPE_ULUNITS},

    {"PKEY", "auto",
     "P_Key to use, 0x1 to 0x7fff. auto is the first one of which the port is a\n"
     "full member.",
     ucs_offsetof(uct_sep_iface_config_t, port.pkey), UCS_CONFIG_TYPE_HEX},

    {"LID_PATH_BITS", "0",
     "Low bits of the LID to send from, as far as the port's LMC allows.",
     ucs_offsetof(uct_sep_iface_config_t, port.path_bits),
     UCS_CONFIG_TYPE_UINT},

    {"CM_TIMEOUT", "200ms",
     "How long to wait for an answer to a connection request before it is\n"
     "repeated the first time.",
     ucs_offsetof(uct_sep_iface_config_t, cm.timeout), UCS_CONFIG_TYPE_TIME},

    {"CM_RETRY_COUNT", "20",
     "How often a connection request is repeated before it fails.",
     ucs_offsetof(uct_sep_iface_config_t, cm.retry_count),
     UCS_CONFIG_TYPE_UINT},

    {"CM_RX_QUEUE_LEN", "512",
     "Number of connection requests and answers that can arrive at a time.",
     ucs_offsetof(uct_sep_iface_config_t, cm.rx_queue_len),
     UCS_CONFIG_TYPE_UINT},

    {NULL}
};


static size_t uct_sep_iface_max_zcopy(const uct_sep_iface_t *iface)
{
    return ucs_min(iface->port.attr.max_msg_sz, UCT_SEP_MAX_MSG);
}

static ucs_status_t
uct_sep_iface_query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    uct_sep_iface_t *iface      = ucs_derived_of(tl_iface, uct_sep_iface_t);
    const uct_sep_device_t *dev = &uct_sep_iface_md(iface)->dev;
    size_t max_zcopy            = uct_sep_iface_max_zcopy(iface);
    size_t mtu                  = 128ul << iface->config.path_mtu;
    size_t am_max               = iface->config.seg_size -
                                  sizeof(uct_sep_am_hdr_t);

    uct_base_iface_query(&iface->super, attr);

    attr->device_addr_len = sizeof(uct_sep_device_addr_t);
    attr->iface_addr_len  = sizeof(uct_sep_iface_addr_t);
    attr->ep_addr_len     = 0;

    attr->cap.flags       = iface->tx.ops->cap_flags | dev->atomic_cap |
                            UCT_IFACE_FLAG_PENDING |
                            UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                            UCT_IFACE_FLAG_CB_SYNC |
                            UCT_IFACE_FLAG_EP_CHECK |
                            UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                            UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF |
                            UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                            UCT_IFACE_FLAG_EVENT_RECV |
                            UCT_IFACE_FLAG_EVENT_FD;

    attr->cap.put.max_short       = UCT_SEP_PUT_MAX_INL;
    attr->cap.put.max_bcopy       = iface->config.seg_size;
    attr->cap.put.min_zcopy       = 0;
    attr->cap.put.max_zcopy       = max_zcopy;
    attr->cap.put.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.put.align_mtu       = mtu;
    attr->cap.put.max_iov         = UCT_SEP_RMA_MAX_IOV;

    attr->cap.get.max_bcopy       = iface->config.seg_size;
    attr->cap.get.min_zcopy       = 0;
    attr->cap.get.max_zcopy       = iface->config.max_get_zcopy;
    attr->cap.get.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.get.align_mtu       = mtu;
    attr->cap.get.max_iov         = UCT_SEP_RMA_MAX_IOV;

    attr->cap.am.max_short        = UCT_SEP_AM_MAX_INL -
                                    sizeof(uct_sep_am_hdr_t);
    attr->cap.am.max_bcopy        = am_max;
    attr->cap.am.min_zcopy        = 0;
    attr->cap.am.max_zcopy        = am_max;
    attr->cap.am.max_hdr          = UCT_SEP_AM_ZCOPY_MAX_HDR;
    attr->cap.am.opt_zcopy_align  = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.am.align_mtu        = mtu;
    attr->cap.am.max_iov          = UCT_SEP_AM_MAX_IOV;

    attr->cap.atomic32.op_flags   = dev->atomic32.op_flags;
    attr->cap.atomic32.fop_flags  = dev->atomic32.fop_flags;
    attr->cap.atomic64.op_flags   = dev->atomic64.op_flags;
    attr->cap.atomic64.fop_flags  = dev->atomic64.fop_flags;

    attr->latency             = ucs_linear_func_make(iface->port.latency, 0);
    attr->bandwidth.shared    = iface->port.bandwidth;
    attr->bandwidth.dedicated = 0;
    attr->overhead            = UCT_SEP_OVERHEAD;
    attr->priority            = UCT_SEP_PRIORITY;
    return UCS_OK;
}

static ucs_status_t uct_sep_iface_get_device_address(uct_iface_h tl_iface,
                                                     uct_device_addr_t *addr)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    uct_sep_cm_get_device_address(iface->conn.cm, (void*)addr);
    return UCS_OK;
}

static ucs_status_t
uct_sep_iface_get_address(uct_iface_h tl_iface, uct_iface_addr_t *addr)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    uct_sep_cm_get_address(iface->conn.cm, (void*)addr);
    return UCS_OK;
}

static int uct_sep_iface_is_reachable(const uct_iface_h tl_iface,
                                      const uct_device_addr_t *dev_addr,
                                      const uct_iface_addr_t *iface_addr)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    return uct_sep_cm_is_reachable(iface->conn.cm, dev_addr, iface_addr);
}

static void
uct_sep_iface_progress_enable(uct_iface_h tl_iface, unsigned flags)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    if (flags & UCT_PROGRESS_RECV) {
        /* May be called from the async thread, but only once with effect, and
         * not while the main thread progresses what it is about to enable */
        UCS_ASYNC_BLOCK(iface->super.worker->async);
        uct_sep_srq_fill(&iface->srq, iface->config.rx_queue_len);
        UCS_ASYNC_UNBLOCK(iface->super.worker->async);
    }

    uct_base_iface_progress_enable(tl_iface, flags);
}

static void uct_sep_iface_release_desc(uct_recv_desc_t *self, void *user_desc)
{
    uct_sep_iface_t *iface = ucs_container_of(self, uct_sep_iface_t,
                                              rx.release);

    ucs_mpool_put(UCS_PTR_BYTE_OFFSET(user_desc,
                                      -(ptrdiff_t)iface->rx.headroom_offset));
    if (ucs_unlikely(iface->srq.num_empty > 0)) {
        uct_sep_srq_refill(&iface->srq);
    }
}

/*
 * Init and cleanup
 */

/* Value of the QP's timeout field: 4.096 us * 2^n, IBA "Local ACK Timeout" */
static uint8_t uct_sep_iface_ack_timeout(double timeout)
{
    unsigned n = 1;

    while ((n < 31) && ((4.096e-6 * (1ul << n)) < timeout)) {
        ++n;
    }
    return n;
}

/* Value of the QP's min_rnr_timer field: the smallest one not shorter, IBA
 * "Encoding for RNR NAK timer field" */
static uint8_t uct_sep_iface_rnr_timer(double timeout)
{
    static const double msec[] = {
        [1]  = 0.01,   [2]  = 0.02,   [3]  = 0.03,   [4]  = 0.04,
        [5]  = 0.06,   [6]  = 0.08,   [7]  = 0.12,   [8]  = 0.16,
        [9]  = 0.24,   [10] = 0.32,   [11] = 0.48,   [12] = 0.64,
        [13] = 0.96,   [14] = 1.28,   [15] = 1.92,   [16] = 2.56,
        [17] = 3.84,   [18] = 5.12,   [19] = 7.68,   [20] = 10.24,
        [21] = 15.36,  [22] = 20.48,  [23] = 30.72,  [24] = 40.96,
        [25] = 61.44,  [26] = 81.92,  [27] = 122.88, [28] = 163.84,
        [29] = 245.76, [30] = 327.68, [31] = 491.52
    };
    unsigned n;

    for (n = 1; n < 31; ++n) {
        if (msec[n] >= (timeout * 1e3)) {
            break;
        }
    }
    return n;
}

static ucs_status_t
uct_sep_iface_check_range(const char *name, unsigned long value,
                          unsigned long min, unsigned long max)
{
    if ((value >= min) && (value <= max)) {
        return UCS_OK;
    }

    ucs_error("UCX_" UCT_SEP_CONFIG_PREFIX "%s=%lu, should be between %lu and "
              "%lu", name, value, min, max);
    return UCS_ERR_INVALID_PARAM;
}

static ucs_status_t
uct_sep_iface_init_config(uct_sep_iface_t *iface,
                          const uct_sep_iface_config_t *config)
{
    const struct ibv_device_attr *attr =
            &uct_sep_iface_md(iface)->dev.attr.orig_attr;
    const struct {
        const char    *name;
        unsigned long value, min, max;
    } ranges[] = {
        {"SEG_SIZE", config->seg_size, 512, 1ul << 20},
        {"TX_QUEUE_LEN", config->tx.queue_len, 2 * UCT_SEP_MAX_BB,
         ucs_min((unsigned long)attr->max_qp_wr, 1ul << 15)},
        {"TX_MIN_INLINE", config->tx.min_inline, 0, UCT_SEP_PUT_MAX_INL},
        {"TX_CQ_MODERATION", config->tx.cq_moderation, 1, INT16_MAX},
        {"TX_CQ_LEN", config->tx.cq_len, 2 * UCT_SEP_MAX_BB, 1ul << 20},
        {"RX_QUEUE_LEN", config->rx.queue_len, 1, attr->max_srq_wr},
        {"RX_MAX_POLL", config->rx.max_poll, 1, UCT_SEP_CQ_HEADROOM / 4},
        {"RETRY_COUNT", config->retry_count, 0, 7},
        {"RNR_RETRY_COUNT", config->rnr_retry_count, 0, 7},
        {"CM_RETRY_COUNT", config->cm.retry_count, 0, 1000},
        {"CM_RX_QUEUE_LEN", config->cm.rx_queue_len, 1, attr->max_qp_wr}
    };
    unsigned max_rd_atomic, max_dest_rd_atomic;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(ranges); ++i) {
        status = uct_sep_iface_check_range(ranges[i].name, ranges[i].value,
                                           ranges[i].min, ranges[i].max);
        if (status != UCS_OK) {
            return status;
        }
    }

    if (config->path_mtu > (unsigned)iface->port.attr.max_mtu) {
        ucs_error("%s: UCX_SEP_PATH_MTU=%s, but the port supports %s at most",
                  iface->port.name, uct_sep_path_mtu_names[config->path_mtu],
                  uct_sep_path_mtu_names[iface->port.attr.max_mtu]);
        return UCS_ERR_INVALID_PARAM;
    }

    max_rd_atomic      = ucs_min(attr->max_qp_init_rd_atom, UINT8_MAX);
    max_dest_rd_atomic = ucs_min(attr->max_qp_rd_atom, UINT8_MAX);

    iface->config.seg_size           = config->seg_size;
    iface->config.tx_queue_len       = config->tx.queue_len;
    iface->config.tx_min_inline      = config->tx.min_inline;
    iface->config.moderation         = config->tx.cq_moderation;
    iface->config.rx_queue_len       = config->rx.queue_len;
    iface->config.max_poll           = config->rx.max_poll;
    iface->config.timeout            = uct_sep_iface_ack_timeout(
                                               config->timeout);
    iface->config.retry_cnt          = config->retry_count;
    iface->config.rnr_retry          = config->rnr_retry_count;
    iface->config.min_rnr_timer      = uct_sep_iface_rnr_timer(
                                               config->rnr_timeout);
    iface->config.path_mtu           = (config->path_mtu != 0) ?
                                       config->path_mtu :
                                       (unsigned)iface->port.attr.active_mtu;
    iface->config.max_rd_atomic      = ucs_min(max_rd_atomic,
                                               config->max_rd_atomic);
    iface->config.max_dest_rd_atomic = ucs_min(max_dest_rd_atomic,
                                               config->max_rd_atomic);
    iface->config.max_get_zcopy      = ucs_min(uct_sep_iface_max_zcopy(iface),
                                               config->max_get_zcopy);
    return UCS_OK;
}

static void
uct_sep_iface_init_desc(uct_iface_h tl_iface, void *obj, uct_mem_h memh)
{
    uct_sep_desc_t *desc = obj;

    desc->lkey       = uct_sep_mem_lkey(memh);
    desc->super.comp = NULL;
}

static void
uct_sep_iface_init_rx_desc(uct_iface_h tl_iface, void *obj, uct_mem_h memh)
{
    uct_sep_rx_desc_t *desc = obj;

    desc->lkey = uct_sep_mem_lkey(memh);
}

static ucs_status_t
uct_sep_iface_init_tx(uct_sep_iface_t *iface,
                      const uct_sep_iface_config_t *config)
{
    uct_iface_mpool_config_t scratch_config = {.max_bufs = UINT_MAX,
                                               .bufs_grow = 64};
    uct_sep_desc_t *scratch;
    ucs_status_t status;

    status = uct_iface_mpool_init(&iface->super, &iface->tx.desc_mp,
                                  sizeof(uct_sep_desc_t) +
                                  iface->config.seg_size,
                                  sizeof(uct_sep_desc_t),
                                  UCS_SYS_CACHE_LINE_SIZE, &config->tx.mp,
                                  iface->config.tx_queue_len,
                                  uct_sep_iface_init_desc, "sep_tx_desc");
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_iface_mpool_init(&iface->super, &iface->tx.small_mp,
                                  sizeof(uct_sep_desc_t) + sizeof(uint64_t),
                                  sizeof(uct_sep_desc_t),
                                  UCS_SYS_CACHE_LINE_SIZE, &scratch_config, 64,
                                  uct_sep_iface_init_desc, "sep_atomic_desc");
    if (status != UCS_OK) {
        goto err_cleanup_desc_mp;
    }

    status = uct_sep_op_mpool_init(&iface->tx.op_mp);
    if (status != UCS_OK) {
        goto err_cleanup_small_mp;
    }

    scratch = ucs_mpool_get(&iface->tx.small_mp);
    if (scratch == NULL) {
        ucs_error("%s: no registered memory for atomic operations",
                  iface->port.name);
        status = UCS_ERR_NO_MEMORY;
        goto err_cleanup_op_mp;
    }

    iface->tx.scratch      = uct_sep_desc_buffer(scratch);
    iface->tx.scratch_lkey = scratch->lkey;
    iface->tx.cq_credits   = config->tx.cq_len - 1;
    iface->tx.num_pending  = 0;
    iface->tx.stalled      = 0;
    iface->tx.in_dispatch  = 0;
    iface->tx.dispatch_id  = UCS_CALLBACKQ_ID_NULL;
    uct_sep_txwq_init_idle(&iface->tx.idle);
    ucs_list_head_init(&iface->tx.active);
    ucs_list_head_init(&iface->tx.retired);
    ucs_list_head_init(&iface->tx.sched);
    return UCS_OK;

err_cleanup_op_mp:
    ucs_mpool_cleanup(&iface->tx.op_mp, 0);
err_cleanup_small_mp:
    ucs_mpool_cleanup(&iface->tx.small_mp, 0);
err_cleanup_desc_mp:
    ucs_mpool_cleanup(&iface->tx.desc_mp, 0);
err:
    return status;
}

static void uct_sep_iface_cleanup_tx(uct_sep_iface_t *iface)
{
    ucs_mpool_put(UCS_PTR_BYTE_OFFSET(iface->tx.scratch,
                                      -(ptrdiff_t)sizeof(uct_sep_desc_t)));
    ucs_mpool_cleanup(&iface->tx.op_mp, 1);
    ucs_mpool_cleanup(&iface->tx.small_mp, 1);
    ucs_mpool_cleanup(&iface->tx.desc_mp, 1);
}

static ucs_status_t
uct_sep_iface_init_rx(uct_sep_iface_t *iface, const uct_iface_params_t *params,
                      const uct_sep_iface_config_t *config)
{
    size_t headroom = (params->field_mask & UCT_IFACE_PARAM_FIELD_RX_HEADROOM) ?
                      params->rx_headroom : 0;
    uct_sep_srq_params_t srq_params;
    size_t payload_offset, align, align_offset;
    ucs_status_t status;

    /* In front of the payload are the user's headroom and, in front of that,
     * the pointer by which UCT knows how to release the descriptor. The header
     * is received into the last byte of these. Everything is aligned to 8, and
     * the header is in the cache line in which the payload starts. */
    payload_offset = ucs_align_up_pow2(sizeof(uct_sep_rx_desc_t) +
                                       sizeof(uct_recv_desc_t*) + headroom,
                                       sizeof(uint64_t));

    status = uct_iface_param_am_alignment(params, iface->config.seg_size,
                                          payload_offset - sizeof(uint64_t),
                                          payload_offset, &align,
                                          &align_offset);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_iface_mpool_init(&iface->super, &iface->rx.mp,
                                  payload_offset + iface->config.seg_size,
                                  align_offset, align, &config->rx.mp,
                                  ucs_min(iface->config.rx_queue_len, 256),
                                  uct_sep_iface_init_rx_desc, "sep_rx_desc");
    if (status != UCS_OK) {
        goto err;
    }

    iface->rx.release.cb      = uct_sep_iface_release_desc;
    iface->rx.headroom_offset = payload_offset - headroom;

    srq_params.pd         = uct_sep_iface_md(iface)->pd;
    srq_params.length     = iface->config.rx_queue_len;
    srq_params.hdr_offset = payload_offset - sizeof(uct_sep_am_hdr_t);
    srq_params.buf_size   = iface->config.seg_size;
    srq_params.mp         = &iface->rx.mp;
    srq_params.name       = iface->port.name;
    status = uct_sep_srq_init(&iface->srq, &srq_params);
    if (status != UCS_OK) {
        goto err_cleanup_mp;
    }

    uct_sep_srq_fill(&iface->srq, ucs_min(iface->config.rx_queue_len,
                                          UCT_SEP_RX_FIRST_FILL));
    if (iface->srq.counter == 0) {
        ucs_error("%s: no registered memory for receives", iface->port.name);
        status = UCS_ERR_NO_MEMORY;
        goto err_cleanup_srq;
    }

    return UCS_OK;

err_cleanup_srq:
    uct_sep_srq_cleanup(&iface->srq);
err_cleanup_mp:
    ucs_mpool_cleanup(&iface->rx.mp, 0);
err:
    return status;
}

static void uct_sep_iface_cleanup_rx(uct_sep_iface_t *iface)
{
    uct_sep_srq_cleanup(&iface->srq);
    /* Descriptors which the application has not released are its fault, and are
     * reported by the pool */
    ucs_mpool_cleanup(&iface->rx.mp, 1);
}

static ucs_status_t
uct_sep_iface_init_cm(uct_sep_iface_t *iface,
                      const uct_sep_iface_config_t *config)
{
    uct_sep_cm_params_t params = {};

    ucs_list_head_init(&iface->conn.events);
    iface->conn.event_id = UCS_CALLBACKQ_ID_NULL;
    iface->conn.event_fd = -1;
    iface->conn.epoll_fd = -1;
    iface->conn.num_rc   = 0;
    iface->conn.num_qp   = 0;

    params.ibv_context  = uct_sep_iface_md(iface)->dev.context;
    params.pd           = uct_sep_iface_md(iface)->pd;
    params.port         = iface->port.addr;
    params.pkey_index   = iface->port.pkey_index;
    params.async        = iface->super.worker->async;
    params.ops          = &uct_sep_rc_cm_ops;
    params.arg          = iface;
    params.timeout      = config->cm.timeout;
    params.retry_count  = config->cm.retry_count;
    params.rx_queue_len = config->cm.rx_queue_len;
    params.name         = iface->port.name;
    return uct_sep_cm_init(&params, &iface->conn.cm);
}

/* All connections go; what is outstanding on them is cancelled */
static void uct_sep_iface_cleanup_cm(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq, *tmp;

    uct_sep_cm_cleanup(iface->conn.cm);

    uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                        &iface->conn.event_id);
    uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                        &iface->tx.dispatch_id);

    ucs_list_for_each_safe(txwq, tmp, &iface->tx.retired, list) {
        uct_sep_rc_destroy_txwq(iface, txwq);
    }

    ucs_assert(ucs_list_is_empty(&iface->tx.active));
    if ((iface->conn.num_rc != 0) || (iface->conn.num_qp != 0)) {
        ucs_warn("%s: %u connections and %u queue pairs were not released",
                 iface->port.name, iface->conn.num_rc, iface->conn.num_qp);
    }

    uct_sep_iface_event_cleanup(iface);
}

void uct_sep_iface_set_ops(uct_sep_iface_t *iface, const uct_sep_ops_t *tx_ops)
{
    uct_iface_ops_t *ops = &iface->super.super.ops;

    iface->tx.ops          = tx_ops;
    ops->ep_put_short      = tx_ops->ep_put_short;
    ops->ep_put_bcopy      = tx_ops->ep_put_bcopy;
    ops->ep_put_zcopy      = tx_ops->ep_put_zcopy;
    ops->ep_get_bcopy      = tx_ops->ep_get_bcopy;
    ops->ep_get_zcopy      = tx_ops->ep_get_zcopy;
    ops->ep_am_short       = tx_ops->ep_am_short;
    ops->ep_am_short_iov   = tx_ops->ep_am_short_iov;
    ops->ep_am_bcopy       = tx_ops->ep_am_bcopy;
    ops->ep_am_zcopy       = tx_ops->ep_am_zcopy;
    ops->ep_atomic_cswap64 = tx_ops->ep_atomic_cswap64;
    ops->ep_atomic_cswap32 = tx_ops->ep_atomic_cswap32;
    ops->ep_atomic32_post  = tx_ops->ep_atomic32_post;
    ops->ep_atomic64_post  = tx_ops->ep_atomic64_post;
    ops->ep_atomic32_fetch = tx_ops->ep_atomic32_fetch;
    ops->ep_atomic64_fetch = tx_ops->ep_atomic64_fetch;
}

static const uct_sep_ops_t *uct_sep_iface_choose_ops(int post)
{
    if (post == UCT_SEP_TX_POST_DB) {
        return &uct_sep_ops_db;
    }

#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        return &uct_sep_ops_bf64;
    }
#endif

    return &uct_sep_ops_bf;
}

static UCS_CLASS_DECLARE_DELETE_FUNC(uct_sep_iface_t, uct_iface_t);

/* Operations that do not depend on how work requests are posted */
static uct_iface_ops_t uct_sep_iface_ops = {
    .ep_get_short             = (uct_ep_get_short_func_t)
                                ucs_empty_function_return_unsupported,
    .ep_pending_add           = uct_sep_ep_pending_add,
    .ep_pending_purge         = uct_sep_ep_pending_purge,
    .ep_flush                 = uct_sep_ep_flush,
    .ep_fence                 = uct_sep_ep_fence,
    .ep_check                 = uct_sep_ep_check,
    .ep_create                = uct_sep_ep_create,
    .ep_destroy               = uct_sep_ep_destroy,
    .ep_get_address           = (uct_ep_get_address_func_t)
                                ucs_empty_function_return_unsupported,
    .ep_connect_to_ep         = (uct_ep_connect_to_ep_func_t)
                                ucs_empty_function_return_unsupported,
    .iface_flush              = uct_sep_iface_flush,
    .iface_fence              = uct_sep_iface_fence,
    .iface_progress_enable    = uct_sep_iface_progress_enable,
    .iface_progress_disable   = uct_base_iface_progress_disable,
    .iface_progress           = uct_sep_iface_progress,
    .iface_event_fd_get       = uct_sep_iface_event_fd_get,
    .iface_event_arm          = uct_sep_iface_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_sep_iface_t),
    .iface_query              = uct_sep_iface_query,
    .iface_get_device_address = uct_sep_iface_get_device_address,
    .iface_get_address        = uct_sep_iface_get_address,
    .iface_is_reachable       = uct_sep_iface_is_reachable
};

UCS_CLASS_INIT_FUNC(uct_sep_iface_t, uct_md_h tl_md, uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    const uct_sep_iface_config_t *config = ucs_derived_of(tl_config,
                                                     uct_sep_iface_config_t);
    uct_sep_md_t *md                     = ucs_derived_of(tl_md, uct_sep_md_t);
    ucs_status_t status;
    unsigned port_num;

    UCT_CHECK_PARAM(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE,
                    "UCT_IFACE_PARAM_FIELD_OPEN_MODE is not defined");
    if (!(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
        ucs_error(UCT_SEP_TL_NAME " supports only UCT_IFACE_OPEN_MODE_DEVICE");
        return UCS_ERR_UNSUPPORTED;
    }

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_sep_iface_ops,
                              &uct_base_iface_internal_ops, tl_md, worker,
                              params,
                              tl_config UCS_STATS_ARG(
                                      (params->field_mask &
                                       UCT_IFACE_PARAM_FIELD_STATS_ROOT) ?
                                      params->stats_root : NULL)
                              UCS_STATS_ARG(params->mode.device.dev_name));

    port_num = uct_sep_device_find_port(&md->dev, params->mode.device.dev_name);
    if (port_num == 0) {
        ucs_error("%s is not a port of device %s, which has %u",
                  params->mode.device.dev_name, md->dev.name,
                  md->dev.attr.orig_attr.phys_port_cnt);
        status = UCS_ERR_NO_DEVICE;
        goto err;
    }

    status = uct_sep_device_open_port(&md->dev, port_num, &config->port,
                                      &self->port);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_sep_iface_init_config(self, config);
    if (status != UCS_OK) {
        goto err;
    }

    /* If the device has no BlueFlame, the first queue pair tells */
    self->config.post = config->tx.post;
    uct_sep_iface_set_ops(self, uct_sep_iface_choose_ops(config->tx.post));

    status = uct_sep_qp_table_init(&self->qps);
    if (status != UCS_OK) {
        ucs_error("%s: no memory for the table of queue pairs",
                  self->port.name);
        goto err;
    }

    status = uct_sep_channel_init(&self->channel, md, config->category,
                                  self->port.name);
    if (status != UCS_OK) {
        goto err_cleanup_qps;
    }

    status = uct_sep_cq_init(&self->cq, md->dev.context,
                             config->rx.queue_len + config->tx.cq_len +
                             UCT_SEP_CQ_HEADROOM, self->port.name);
    if (status != UCS_OK) {
        goto err_cleanup_channel;
    }

    status = uct_sep_iface_init_tx(self, config);
    if (status != UCS_OK) {
        goto err_cleanup_cq;
    }

    status = uct_sep_iface_init_rx(self, params, config);
    if (status != UCS_OK) {
        goto err_cleanup_tx;
    }

    status = uct_sep_iface_init_cm(self, config);
    if (status != UCS_OK) {
        goto err_cleanup_rx;
    }

    ucs_debug("%s: opened interface %p, category %s, lid %u, path MTU %u",
              self->port.name, (void*)self,
              uct_sep_category_names[config->category], self->port.addr.lid,
              128u << self->config.path_mtu);
    return UCS_OK;

err_cleanup_rx:
    uct_sep_iface_cleanup_rx(self);
err_cleanup_tx:
    uct_sep_iface_cleanup_tx(self);
err_cleanup_cq:
    uct_sep_cq_cleanup(&self->cq);
err_cleanup_channel:
    uct_sep_channel_cleanup(&self->channel, md);
err_cleanup_qps:
    uct_sep_qp_table_cleanup(&self->qps);
err:
    return status;
}

static UCS_CLASS_CLEANUP_FUNC(uct_sep_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_sep_iface_cleanup_cm(self);
    uct_sep_iface_cleanup_rx(self);
    uct_sep_iface_cleanup_tx(self);
    uct_sep_cq_cleanup(&self->cq);
    uct_sep_channel_cleanup(&self->channel, uct_sep_iface_md(self));
    uct_sep_qp_table_cleanup(&self->qps);
}

UCS_CLASS_DEFINE(uct_sep_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_sep_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t*,
                                 const uct_iface_config_t*);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_sep_iface_t, uct_iface_t);

static ucs_status_t
uct_sep_query_devices(uct_md_h tl_md, uct_tl_device_resource_t **devices_p,
                      unsigned *num_devices_p)
{
    uct_sep_md_t *md       = ucs_derived_of(tl_md, uct_sep_md_t);
    unsigned num_ports     = md->dev.attr.orig_attr.phys_port_cnt;
    unsigned num_devices   = 0;
    uct_tl_device_resource_t *devices;
    unsigned port_num;

    devices = ucs_calloc(ucs_max(num_ports, 1), sizeof(*devices),
                         "sep_devices");
    if (devices == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (port_num = 1; port_num <= num_ports; ++port_num) {
        if (uct_sep_device_port_is_active(&md->dev, port_num)) {
            ucs_snprintf_zero(devices[num_devices].name,
                              sizeof(devices[num_devices].name), "%s:%u",
                              md->dev.name, port_num);
            devices[num_devices].type       = UCT_DEVICE_TYPE_NET;
            devices[num_devices].sys_device = UCS_SYS_DEVICE_ID_UNKNOWN;
            ++num_devices;
        }
    }

    *devices_p     = devices;
    *num_devices_p = num_devices;
    return UCS_OK;
}

UCT_TL_DEFINE_ENTRY(&uct_sep_component, sep_mlx5, uct_sep_query_devices,
                    uct_sep_iface_t, UCT_SEP_CONFIG_PREFIX,
                    uct_sep_iface_config_table, uct_sep_iface_config_t);

/* When the module is loaded. Never taken back: UCT keeps components for good,
 * and the module is linked so that it stays in memory. */
static void UCS_F_CTOR uct_sep_register(void)
{
    if (uct_sep_abi_check() != UCS_OK) {
        return; /* It has said what is wrong */
    }

    uct_component_register(&uct_sep_component);
    uct_tl_register(&uct_sep_component, &UCT_TL_NAME(sep_mlx5));
}
