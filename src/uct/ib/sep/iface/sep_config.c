/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_config.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>

#include <ucs/config/types.h>
#include <ucs/datastruct/string_buffer.h>
#include <ucs/debug/log.h>
#include <ucs/sys/string.h>

/*
 * Configuration of an interface: the variables, and how they apply to a port.
 */

/* What is behind this many bytes of an active message is a multiple of so many,
 * see uct_sep_config_max_am() */
#define UCT_SEP_FRAG_HDR    16
#define UCT_SEP_FRAG_ALIGN  64

/* Messages after which a connection makes itself heard, with the eager channel:
 * MPI programs exchange some when they start, with all they talk to */
#define UCT_SEP_EAGER_FIRST 16

static const char *uct_sep_tx_post_names[] = {
    [UCT_SEP_TX_POST_BF]   = "bf",
    [UCT_SEP_TX_POST_DB]   = "db",
    [UCT_SEP_TX_POST_AUTO] = "auto",
    [UCT_SEP_TX_POST_LAST] = NULL
};

static const char *uct_sep_api_names[] = {
    [UCT_SEP_API_DV]    = "dv",
    [UCT_SEP_API_VERBS] = "verbs",
    [UCT_SEP_API_WR]    = "wr",
    [UCT_SEP_API_LAST]  = NULL
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

static UCS_CONFIG_DEFINE_ARRAY(uct_sep_path_bits, sizeof(ucs_range_spec_t),
                               UCS_CONFIG_TYPE_RANGE_SPEC);

static const char *uct_sep_fence_names[] = {
    [UCT_SEP_FENCE_NONE] = "none",
    [UCT_SEP_FENCE_WEAK] = "weak",
    [UCT_SEP_FENCE_AUTO] = "auto",
    [UCT_SEP_FENCE_LAST] = NULL
};

/* Help of UCX_SEP_CATEGORY: a line for each row of sep_category.h */
static char uct_sep_category_doc[1024];

UCS_STATIC_INIT {
    const uct_sep_category_row_t *row = uct_sep_category_rows;
    ucs_string_buffer_t doc;
    int category;

    ucs_string_buffer_init_fixed(&doc, uct_sep_category_doc,
                                 sizeof(uct_sep_category_doc));
    ucs_string_buffer_appendf(&doc,
                              "Sharing category: which hardware resources the "
                              "workers of a process\nhave to themselves.");
    for (category = 0; category < UCT_SEP_CATEGORY_LAST; ++category) {
        ucs_string_buffer_appendf(&doc, "\n  %-14s - %s", row[category].name,
                                  row[category].doc);
    }
    for (category = 0; category < UCT_SEP_CATEGORY_LAST; ++category) {
        if (row[category].is_hub) {
            ucs_string_buffer_appendf(&doc, "\n%s must be set in all processes "
                                      "or in none.", row[category].name);
        }
    }
}

/* Where a setting is, and its type, UCS_CONFIG_TYPE_xx */
#define UCT_SEP_CONFIG(_member, _type) \
    ucs_offsetof(uct_sep_iface_config_t, _member), UCS_CONFIG_TYPE_##_type

ucs_config_field_t uct_sep_config_table[] = {
    {"", "", NULL, UCT_SEP_CONFIG(super, TABLE(uct_iface_config_table))},

    {"CATEGORY", "default",
     uct_sep_category_doc,
     UCT_SEP_CONFIG(category, ENUM(uct_sep_category_names))},

    {"CQ_SHARING", "1",
     "Number of workers of a memory domain that share a completion queue for\n"
     "their sends. With 1 each has one to itself and takes no lock.",
     UCT_SEP_CONFIG(cq_sharing, UINT)},

    {"API", "dv",
     "How work requests are posted and completions are taken.\n"
     "  dv    - on the device's queues (direct verbs)\n"
     "  verbs - through libibverbs (ibv_post_send), for comparison: less\n"
     "          inline data, and of the atomics only add and\n"
     "          compare-and-swap of 64 bits\n"
     "  wr    - as verbs, but by libibverbs' extended interface (ibv_wr_start\n"
     "          to ibv_wr_complete)",
     UCT_SEP_CONFIG(api, ENUM(uct_sep_api_names))},

    {"SEG_SIZE", "8273",
     "Size of the buffers for buffered sends and for receives. It must be the\n"
     "same in all processes. The longest active message is the largest that\n"
     "fits and is 16 bytes longer than a multiple of 64: then fragments of\n"
     "long messages do not end inside of a number.",
     UCT_SEP_CONFIG(seg_size, MEMUNITS)},

    {"TX_QUEUE_LEN", "256",
     "Length of the send queue of a connection, in basic blocks of 64 bytes.\n"
     "A work request takes one to four of them.",
     UCT_SEP_CONFIG(tx.queue_len, UINT)},

    {"TX_MIN_INLINE", "0",
     "Inline data that the send queue has room for in each work request.\n"
     "Any message that is short enough is sent inline in any case; a larger\n"
     "value makes the queue longer.",
     UCT_SEP_CONFIG(tx.min_inline, MEMUNITS)},

    {"TX_MAX_INLINE", "auto",
     "Inline limit: longest message that is sent inline, with the header of 8\n"
     "bytes that a short active message has. Longer ones are copied to a\n"
     "buffer. auto is what a work request can hold, 0 is none; not less than\n"
     "TX_MIN_INLINE. Headers of zero-copy messages are inline in any case.",
     UCT_SEP_CONFIG(tx.max_inline, MEMUNITS)},

    {"TX_INLINE_RESP", "32",
     "Longest result of a get or an atomic that comes with its completion,\n"
     "and not on its own: 0 is none, otherwise what a completion has room\n"
     "for. No effect with RX_INLINE=0, unless CATEGORY has given the worker\n"
     "a device context.",
     UCT_SEP_CONFIG(tx.inline_resp, MEMUNITS)},

    {"TX_MAX_POLL", "16",
     "Maximal number of send completions to handle in one progress call.",
     UCT_SEP_CONFIG(tx.max_poll, UINT)},

    {"TX_CQ_MODERATION", "64",
     "Number of work requests of a connection that are posted without asking\n"
     "for a completion.",
     UCT_SEP_CONFIG(tx.cq_moderation, UINT)},

    {"TX_CQ_LEN", "4096",
     "Number of outstanding basic blocks of all connections of an interface.\n"
     "The completion queue has room for these and for the receives.",
     UCT_SEP_CONFIG(tx.cq_len, UINT)},

    {"TX_THROTTLE", "n",
     "Budget of outstanding basic blocks that all workers of the process on a\n"
     "device share: too many slow an adapter down. Each worker that sends has\n"
     "an equal part, at least 8, and no more than TX_CQ_LEN.\n"
     "  n        - none\n"
     "  y        - what gives the best rate, found while sending\n"
     "  <number> - so many",
     UCT_SEP_CONFIG(tx.throttle, STRING)},

    {"TX_POST", "auto",
     "How work requests are handed to the device.\n"
     "  bf   - written to it (BlueFlame)\n"
     "  db   - by a doorbell, upon which it reads them\n"
     "  auto - bf if the device has it",
     UCT_SEP_CONFIG(tx.post, ENUM(uct_sep_tx_post_names))},

    {"TX_POSTLIST", "1",
     "Number of work requests of a connection per doorbell. 1 rings for each.\n"
     "Fewer are rung for when the application progresses or flushes: larger\n"
     "values are for applications that post many small operations in a row.\n"
     "Such an application has to come back: what it sends last, before a long\n"
     "computation or a wait for something else, leaves with the next call.",
     UCT_SEP_CONFIG(tx.postlist, UINT)},

    UCT_SEP_COMPAT_MPOOL_FIELDS("TX_", -1, 0, "send",
                                ucs_offsetof(uct_sep_iface_config_t, tx.mp),
                                ""),

    /* Together with TX_CQ_LEN and the headroom, 8191: libmlx5 rounds up from
     * one more (verbs.c, create_cq), so this is the last that makes 8192
     * entries. Alone with the headroom it is 4095, for which the same holds. */
    {"RX_QUEUE_LEN", "3967",
     "Length of the receive queue, which all connections share.",
     UCT_SEP_CONFIG(rx.queue_len, UINT)},

    {"RX_QUEUE_FILL", "1024",
     "Buffers that the receive queue has at first. They are doubled, up to\n"
     "RX_QUEUE_LEN, when progress finds that half of them were used up.",
     UCT_SEP_CONFIG(rx.queue_fill, UINT)},

    {"RX_INLINE", "32",
     "Longest active message, with its header of one byte, that comes with\n"
     "its completion, and not to a buffer: 0 is none, up to 32 is 32, and up\n"
     "to 64 is 64, for which completions take twice the memory. It needs\n"
     "API=dv, and a CATEGORY with a queue pair for each worker.",
     UCT_SEP_CONFIG(rx.inline_size, MEMUNITS)},

    {"RX_MAX_POLL", "1",
     "Maximal number of receives to handle in one progress call. It ends when\n"
     "this or TX_MAX_POLL is reached. Libraries that wait for a number of\n"
     "messages may miss it if there are several in one call.",
     UCT_SEP_CONFIG(rx.max_poll, UINT)},

    UCT_SEP_COMPAT_MPOOL_FIELDS("RX_", -1, 0, "receive",
                                ucs_offsetof(uct_sep_iface_config_t, rx.mp),
                                ""),

    {"FC_ENABLE", "y",
     "Flow control: limit the active messages that were sent and not handled,\n"
     "so that senders do not find the receive queue empty.",
     UCT_SEP_CONFIG(fc.enable, BOOL)},

    {"FC_WND_SIZE", "512",
     "Window of flow control: number of active messages that can be sent on a\n"
     "connection without a grant by the receiver. Not more than RX_QUEUE_LEN\n"
     "and RX_QUEUE_FILL.",
     UCT_SEP_CONFIG(fc.wnd_size, UINT)},

    {"FC_HARD_THRESH", "0.25",
     "Fraction of the window at which to request a grant that comes at once\n"
     "(more than 0 and less than 1).",
     UCT_SEP_CONFIG(fc.hard_thresh, DOUBLE)},

    {"FC_SOFT_THRESH", "0.5",
     "Fraction of the window at which to request a grant that comes with the\n"
     "next message of the other side (more than FC_HARD_THRESH and less than\n"
     "1).",
     UCT_SEP_CONFIG(fc.soft_thresh, DOUBLE)},

    {"EAGER", "n",
     "Eager channel: peers that send most write their short active messages\n"
     "into a ring of slots in our memory, which is polled, instead of sending\n"
     "them.\n"
     "  y    - yes, unless the adapter is known to place data out of order;\n"
     "         rings are given back before the worker sleeps\n"
     "  auto - yes, if it is known to place them in order, until the worker\n"
     "         sleeps for the first time\n"
     "  n    - no, neither to receive nor to send",
     UCT_SEP_CONFIG(eager.mode, TERNARY_AUTO)},

    {"EAGER_SLOTS", "64",
     "Number of slots of a ring, 1 to 128. If all are in use, messages are\n"
     "sent (MVAPICH: MV2_NUM_RDMA_BUFFER).",
     UCT_SEP_CONFIG(eager.slots, UINT)},

    {"EAGER_SLOT_SIZE", "1088",
     "Size of a slot, a multiple of 64 up to 32k. Messages that are less than\n"
     "8 bytes shorter are sent (MVAPICH: MV2_RDMA_FAST_PATH_BUF_SIZE). It is\n"
     "the path MTU at most, unless data are known to be placed in order.",
     UCT_SEP_CONFIG(eager.slot_size, MEMUNITS)},

    {"EAGER_POLL_SET", "16",
     "Most rings that an interface polls, 1 to 1024. If more peers send, who\n"
     "sends most has one (MVAPICH: MV2_POLLING_SET_LIMIT).",
     UCT_SEP_CONFIG(eager.poll_set, UINT)},

    {"FENCE", "auto",
     "What a fence does.\n"
     "  none - nothing\n"
     "  weak - what follows waits for the results of reads and atomics\n"
     "  auto - weak, which is all that is needed",
     UCT_SEP_CONFIG(fence, ENUM(uct_sep_fence_names))},

    {"MAX_RD_ATOMIC", "auto",
     "Maximal number of outstanding reads and atomics of a connection. auto\n"
     "is the device's limit.",
     UCT_SEP_CONFIG(max_rd_atomic, ULUNITS)},

    {"MAX_GET_ZCOPY", "auto",
     "Maximal size of a zero-copy get operation. 0 is none.",
     UCT_SEP_CONFIG(max_get_zcopy, MEMUNITS)},

    {"TIMEOUT", "1.0s",
     "Transport timeout: how long to wait for an acknowledgement.",
     UCT_SEP_CONFIG(timeout, TIME)},

    {"RETRY_COUNT", "7",
     "Transport retries before a connection is given up.",
     UCT_SEP_CONFIG(retry_count, UINT)},

    {"RNR_TIMEOUT", "1ms",
     "How long a sender waits after finding the receive queue empty.",
     UCT_SEP_CONFIG(rnr_timeout, TIME)},

    {"RNR_RETRY_COUNT", "7",
     "How often a sender tries again after finding the receive queue empty. 7\n"
     "is without limit.",
     UCT_SEP_CONFIG(rnr_retry_count, UINT)},

    {"PATH_MTU", "default",
     "Path MTU. default is that of the port.",
     UCT_SEP_CONFIG(path_mtu, ENUM(uct_sep_path_mtu_names))},

    {"IS_GLOBAL", "n",
     "Use global routing on InfiniBand.",
     UCT_SEP_CONFIG(port.is_global, BOOL)},

    {"SL", "auto",
     "InfiniBand service level, or Ethernet priority. auto is the first that\n"
     "AR_ENABLE allows, and 0 on Ethernet.",
     UCT_SEP_CONFIG(port.sl, ULUNITS)},

    {"AR_ENABLE", "auto",
     "Whether the service level has to be one with adaptive routing, which\n"
     "the subnet manager enables by service level.\n"
     "  y    - yes, or fail\n"
     "  n    - one without it, or fail\n"
     "  try  - yes if there is one\n"
     "  auto - either\n"
     "No effect on Ethernet.",
     UCT_SEP_CONFIG(port.ar_enable, TERNARY_AUTO)},

    {"TRAFFIC_CLASS", "auto",
     "InfiniBand traffic class, or RoCE v2 differentiated services field.\n"
     "auto is 106 on RoCE v2 and 0 otherwise.",
     UCT_SEP_CONFIG(port.traffic_class, ULUNITS)},

    {"HOP_LIMIT", "255",
     "InfiniBand hop limit, or RoCE v2 time to live; 0 to 255.",
     UCT_SEP_CONFIG(port.hop_limit, UINT)},

    {"GID_INDEX", "auto",
     "Index of the port's GID to use. auto selects the best RoCE version on\n"
     "Ethernet, and the first GID on InfiniBand.",
     UCT_SEP_CONFIG(port.gid_index, ULUNITS)},

    {"PKEY", "auto",
     "P_Key to use, 0x1 to 0x7fff. auto is the first one that the port is a\n"
     "full member of.",
     UCT_SEP_CONFIG(port.pkey, HEX)},

    {"NUM_PATHS", "auto",
     "Number of connections that pay off between two interfaces, each on its\n"
     "own path. auto is the number of LID_PATH_BITS on InfiniBand, and of the\n"
     "ports that make up the port (LAG) on Ethernet; at least 2 on NDR.",
     UCT_SEP_CONFIG(port.num_paths, ULUNITS)},

    {"LID_PATH_BITS", "0",
     "Low bits of the LIDs of each path: a list of numbers and ranges. Those\n"
     "that the port's LMC allows are used.",
     UCT_SEP_CONFIG(port.path_bits, ARRAY(uct_sep_path_bits))},

    {"ROCE_PATH_FACTOR", "1",
     "Distance between the RoCE v2 UDP source ports of neighbouring paths, by\n"
     "which switches and LAG ports tell paths apart.",
     UCT_SEP_CONFIG(port.roce_path_factor, UINT)},

    {"ROCE_LOCAL_SUBNET", "n",
     "Treat only RoCE v2 addresses of the port's own subnet as reachable.",
     UCT_SEP_CONFIG(port.roce_local_subnet, BOOL)},

    {"ROCE_SUBNET_PREFIX_LEN", "auto",
     "Bits of an address that identify its subnet, for ROCE_LOCAL_SUBNET.\n"
     "auto is the prefix length of the network interface, inf all.",
     UCT_SEP_CONFIG(port.roce_subnet_prefix_len, ULUNITS)},

    {"CM_TIMEOUT", "200ms",
     "How long to wait for an answer to a connection request before it is\n"
     "repeated the first time.",
     UCT_SEP_CONFIG(cm.timeout, TIME)},

    {"CM_RETRY_COUNT", "20",
     "How often a connection request is repeated before it fails.",
     UCT_SEP_CONFIG(cm.retry_count, UINT)},

    {"CM_RX_QUEUE_LEN", "512",
     "Number of connection requests and answers that can arrive at a time.",
     UCT_SEP_CONFIG(cm.rx_queue_len, UINT)},

    {"CM_MAX_PENDING", "256",
     "How many peers may be connecting at a time. Those beyond have to try\n"
     "again. Each that is connecting has a queue pair, even if it never ends.",
     UCT_SEP_CONFIG(cm.max_pending, UINT)},

    {"CM_KEEPALIVE", "60s",
     "How often to look after connections that no endpoint uses: they are\n"
     "given up if the peer does not use them either, or has gone. inf leaves\n"
     "them alone.",
     UCT_SEP_CONFIG(cm.keepalive, TIME_UNITS)},

    {"MAX_QPS", "inf",
     "How many RC queue pairs the workers of a process may hold on a device,\n"
     "in equal shares. An endpoint that wants to send past that takes the\n"
     "place of one that does not. A number, the same one in all processes of\n"
     "a job; auto: as many as an adapter keeps its rate with; or inf.",
     UCT_SEP_CONFIG(max_qps, ULUNITS)},

    {"MAX_QPS_NODE", "inf",
     "How many RC queue pairs all processes of a user that have this setting\n"
     "may hold on an adapter: each worker an equal share, and what others\n"
     "leave. The account is a file in /dev/shm. A number, auto or inf as with\n"
     "MAX_QPS; the least one holds for all.",
     UCT_SEP_CONFIG(max_qps_node, ULUNITS)},

    {NULL}
};

size_t uct_sep_config_max_zcopy(const uct_sep_iface_t *iface)
{
    return ucs_min(iface->port.attr.max_msg_sz, UCT_SEP_MAX_MSG);
}

size_t uct_sep_config_max_am(size_t room)
{
    return ucs_align_down_pow2(room - UCT_SEP_FRAG_HDR, UCT_SEP_FRAG_ALIGN) +
           UCT_SEP_FRAG_HDR;
}

/* Value of the QP's timeout field: 4.096 us * 2^n, IBA "Local ACK Timeout" */
static uint8_t uct_sep_config_ack_timeout(double timeout)
{
    unsigned n = 1;

    while ((n < 31) && ((4.096e-6 * (1ul << n)) < timeout)) {
        ++n;
    }
    return n;
}

/* Value of the QP's min_rnr_timer field: the smallest one not shorter, IBA
 * "Encoding for RNR NAK timer field". 0 is the longest, 655.36 ms. */
static uint8_t uct_sep_config_rnr_timer(double timeout)
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

    for (n = 1; n <= 31; ++n) {
        if (msec[n] >= (timeout * 1e3)) {
            return n;
        }
    }
    return 0;
}

static ucs_status_t
uct_sep_config_check_range(const char *name, unsigned long value,
                           unsigned long min, unsigned long max)
{
    if ((value >= min) && (value <= max)) {
        return UCS_OK;
    }

    ucs_error("UCX_" UCT_SEP_CONFIG_PREFIX "%s=%lu, should be between %lu and "
              "%lu", name, value, min, max);
    return UCS_ERR_INVALID_PARAM;
}

/* Times that are too long are cut to the longest there is, but none can be
 * negative */
static ucs_status_t uct_sep_config_check_time(const char *name, double value)
{
    if (value >= 0) { /* False for NaN */
        return UCS_OK;
    }

    ucs_error("UCX_" UCT_SEP_CONFIG_PREFIX "%s=%gs, should not be negative",
              name, value);
    return UCS_ERR_INVALID_PARAM;
}

/* Longest inline data of any completion */
#define UCT_SEP_MAX_INLINE_CQE UCT_SEP_CQE_MAX_DATA(UCT_SEP_CQ_STRIDE_128)

static ucs_status_t
uct_sep_config_init_fc(uct_sep_iface_t *iface,
                       const uct_sep_iface_config_t *config)
{
    unsigned fill = iface->config.rx_queue_fill;
    unsigned window;

    /* "not more than" is false for NaN */
    if (!(config->fc.hard_thresh > 0) ||
        !(config->fc.soft_thresh > config->fc.hard_thresh) ||
        !(config->fc.soft_thresh < 1)) {
        ucs_error("UCX_SEP_FC_HARD_THRESH=%g and UCX_SEP_FC_SOFT_THRESH=%g: "
                  "should be more than 0 and less than 1, the second more than "
                  "the first", config->fc.hard_thresh, config->fc.soft_thresh);
        return UCS_ERR_INVALID_PARAM;
    }

    iface->config.fc.enable = config->fc.enable;
    iface->config.fc.early  = 0;
    if (!config->fc.enable) {
        /* The window starts over when it is down to the threshold */
        iface->config.fc.window = 1 << 30;
        iface->config.fc.soft   = 1;
        iface->config.fc.hard   = 1;
        return UCS_OK;
    }

    /* A receive queue like ours must take at least what one peer sends: a
     * window and, once that is granted, what was sent since the request. The
     * requesting message and a grant for the other side come on top, and what
     * the device has not been told about yet. */
    fill                   -= ucs_min(fill, uct_sep_srq_batch(fill) - 1);
    window                  = ucs_max(1, (int)(((int)fill - 2) /
                                               (1 + config->fc.hard_thresh)));
    window                  = ucs_min(config->fc.wnd_size, window);
    iface->config.fc.window = window;
    iface->config.fc.hard   = ucs_max(1, (int)(window *
                                               config->fc.hard_thresh));
    iface->config.fc.soft   = ucs_max(iface->config.fc.hard,
                                      (int)(window * config->fc.soft_thresh));
    if (config->eager.mode != UCS_NO) {
        iface->config.fc.early = window - UCT_SEP_EAGER_FIRST;
    }
    return UCS_OK;
}

static ucs_status_t
uct_sep_config_check_eager(const uct_sep_iface_t *iface,
                           const uct_sep_iface_config_t *config)
{
    if (config->eager.mode == UCS_NO) {
        return UCS_OK;
    }

    /* UCX's parser has a third word, and a synonym of it */
    if (config->eager.mode == UCS_TRY) {
        ucs_error("%s: UCX_SEP_EAGER=try (or maybe) means nothing: set it to "
                  "y, auto or n", iface->port.name);
        return UCS_ERR_INVALID_PARAM;
    }

    if (!uct_sep_ring_is_slot_size(config->eager.slot_size) ||
        (config->eager.slot_size > config->seg_size)) {
        ucs_error("%s: UCX_SEP_EAGER_SLOT_SIZE=%zu is not a multiple of %u "
                  "that is not larger than UCX_SEP_SEG_SIZE=%zu and %u",
                  iface->port.name, config->eager.slot_size,
                  UCT_SEP_RING_SLOT_ALIGN, config->seg_size,
                  UCT_SEP_RING_MAX_SLOT);
        return UCS_ERR_INVALID_PARAM;
    }

    if (!config->fc.enable) {
        ucs_error("%s: UCX_SEP_EAGER needs UCX_SEP_FC_ENABLE=y: by requests of "
                  "flow control a worker learns who sends", iface->port.name);
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

ucs_status_t
uct_sep_config_check(const uct_sep_iface_config_t *config,
                     unsigned max_qp_wr, unsigned max_srq_wr)
{
    const struct {
        const char    *name;
        unsigned long value, min, max;
    } ranges[] = {
        {"CQ_SHARING", config->cq_sharing, 1, 1024},
        {"SEG_SIZE", config->seg_size, 512, 1ul << 20},
        {"TX_QUEUE_LEN", config->tx.queue_len, 2 * UCT_SEP_MAX_BB,
         ucs_min((unsigned long)max_qp_wr, 1ul << 15)},
        {"TX_MIN_INLINE", config->tx.min_inline, 0, UCT_SEP_PUT_MAX_INL},
        {"TX_INLINE_RESP", config->tx.inline_resp, 0, UCT_SEP_MAX_INLINE_CQE},
        {"RX_INLINE", config->rx.inline_size, 0, UCT_SEP_MAX_INLINE_CQE},
        {"TX_CQ_MODERATION", config->tx.cq_moderation, 1, INT16_MAX},
        {"TX_POSTLIST", config->tx.postlist, 1, INT16_MAX},
        {"TX_CQ_LEN", config->tx.cq_len, 2 * UCT_SEP_MAX_BB, 1ul << 20},
        {"RX_QUEUE_LEN", config->rx.queue_len, 1, max_srq_wr},
        {"RX_QUEUE_FILL", config->rx.queue_fill, 1, max_srq_wr},
        {"FC_WND_SIZE", config->fc.wnd_size, 1, INT16_MAX},
        {"EAGER_SLOTS", config->eager.slots, 1, UCT_SEP_RING_MAX_SLOTS},
        {"EAGER_POLL_SET", config->eager.poll_set, 1, 1024},
        {"RX_MAX_POLL", config->rx.max_poll, 1, UCT_SEP_CQ_HEADROOM / 4},
        {"TX_MAX_POLL", config->tx.max_poll, 1, UCT_SEP_CQ_HEADROOM / 4},
        {"RETRY_COUNT", config->retry_count, 0, 7},
        {"RNR_RETRY_COUNT", config->rnr_retry_count, 0, 7},
        {"CM_RETRY_COUNT", config->cm.retry_count, 0, 1000},
        {"CM_RX_QUEUE_LEN", config->cm.rx_queue_len, 1, max_qp_wr},
        {"CM_MAX_PENDING", config->cm.max_pending, 1, UINT32_MAX}
    };
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(ranges); ++i) {
        status = uct_sep_config_check_range(ranges[i].name, ranges[i].value,
                                            ranges[i].min, ranges[i].max);
        if (status != UCS_OK) {
            return status;
        }
    }

    status = uct_sep_config_check_time("TIMEOUT", config->timeout);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_config_check_time("RNR_TIMEOUT", config->rnr_timeout);
    if (status != UCS_OK) {
        return status;
    }

    if ((config->max_qps < 2) || (config->max_qps_node < 2)) {
        ucs_error("UCX_SEP_MAX_QPS%s: set it to auto, inf, or to 2 at least: a "
                  "worker needs one queue pair to connect, and one for those "
                  "who connect to it", (config->max_qps < 2) ? "" : "_NODE");
        return UCS_ERR_INVALID_PARAM;
    }

    if (config->max_rd_atomic == 0) {
        ucs_error("UCX_SEP_MAX_RD_ATOMIC=0 allows neither reads nor atomics: "
                  "set it to auto, or to 1 at least");
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

ucs_status_t
uct_sep_config_apply(uct_sep_iface_t *iface,
                     const uct_sep_iface_config_t *config)
{
    const struct ibv_device_attr *attr =
            &uct_sep_iface_md(iface)->dev.attr.orig_attr;
    const uct_sep_category_row_t *category;
    unsigned max_rd_atomic, max_dest_rd_atomic;
    ucs_status_t status;

    status = uct_sep_config_check(config, attr->max_qp_wr,
                                  attr->max_srq_wr);
    if (status != UCS_OK) {
        return status;
    }

    category = &uct_sep_category_rows[config->category];
    if ((config->cq_sharing > 1) && category->own_context) {
        ucs_error("%s: UCX_SEP_CQ_SHARING=%u, but with UCX_SEP_CATEGORY=%s "
                  "each worker has a device context of its own, and completion "
                  "queues can't be shared between these: set another category, "
                  "or UCX_SEP_CQ_SHARING=1", iface->port.name,
                  config->cq_sharing, category->name);
        return UCS_ERR_INVALID_PARAM;
    }

    if (category->is_hub && (config->port.num_paths != UCS_ULUNITS_AUTO) &&
        (config->port.num_paths > 1)) {
        ucs_error("%s: UCX_SEP_NUM_PATHS=%lu, but UCX_SEP_CATEGORY=%s has one "
                  "queue pair for all: set another category, or "
                  "UCX_SEP_NUM_PATHS=1", iface->port.name,
                  config->port.num_paths, category->name);
        return UCS_ERR_INVALID_PARAM;
    }

    /* "auto" and "inf" are the largest numbers */
    if (config->tx.max_inline < config->tx.min_inline) {
        ucs_error("%s: UCX_SEP_TX_MAX_INLINE=%zu is less than "
                  "UCX_SEP_TX_MIN_INLINE=%zu", iface->port.name,
                  config->tx.max_inline, config->tx.min_inline);
        return UCS_ERR_INVALID_PARAM;
    }

    iface->config.rx_queue_len  = config->rx.queue_len;
    iface->config.rx_queue_fill = ucs_min(config->rx.queue_fill,
                                          config->rx.queue_len);
    status = uct_sep_config_init_fc(iface, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_throttle_parse(config->tx.throttle,
                                    &iface->config.throttle);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_config_check_eager(iface, config);
    if (status != UCS_OK) {
        return status;
    }

    if (config->path_mtu > (unsigned)iface->port.attr.max_mtu) {
        ucs_error("%s: UCX_SEP_PATH_MTU=%s, but the port supports %s at most",
                  iface->port.name, uct_sep_path_mtu_names[config->path_mtu],
                  uct_sep_path_mtu_names[iface->port.attr.max_mtu]);
        return UCS_ERR_INVALID_PARAM;
    }

    max_rd_atomic      = ucs_min(attr->max_qp_init_rd_atom, UINT8_MAX);
    max_dest_rd_atomic = ucs_min(attr->max_qp_rd_atom, UINT8_MAX);

    iface->config.eager              = config->eager;
    iface->config.seg_size           = config->seg_size;
    iface->config.max_qps            = config->max_qps;
    iface->config.max_qps_node       = config->max_qps_node;
    iface->config.tx_queue_len       = config->tx.queue_len;
    iface->config.tx_min_inline      = config->tx.min_inline;
    iface->config.postlist           = config->tx.postlist;
    iface->config.moderation         = (iface->config.throttle ==
                                        UCT_SEP_THROTTLE_OFF) ?
                                       config->tx.cq_moderation :
                                       ucs_min(config->tx.cq_moderation,
                                               UCT_SEP_THROTTLE_MODERATION);
    iface->config.cq_len             = config->tx.cq_len - 1;
    iface->config.tx_max_inline      = config->tx.max_inline;
    iface->config.rx_max_poll        = config->rx.max_poll;
    iface->config.tx_max_poll        = config->tx.max_poll;
    iface->config.post               = config->tx.post;
    iface->config.has_fence          = config->fence != UCT_SEP_FENCE_NONE;
    iface->config.timeout            = uct_sep_config_ack_timeout(
                                               config->timeout);
    iface->config.retry_cnt          = config->retry_count;
    iface->config.rnr_retry          = config->rnr_retry_count;
    iface->config.min_rnr_timer      = uct_sep_config_rnr_timer(
                                               config->rnr_timeout);
    iface->config.path_mtu           = (config->path_mtu != 0) ?
                                       config->path_mtu :
                                       (unsigned)iface->port.attr.active_mtu;
    iface->config.max_rd_atomic      = ucs_min(max_rd_atomic,
                                               config->max_rd_atomic);
    iface->config.max_dest_rd_atomic = ucs_min(max_dest_rd_atomic,
                                               config->max_rd_atomic);
    iface->config.max_get_zcopy      = ucs_min(uct_sep_config_max_zcopy(iface),
                                               config->max_get_zcopy);
    return UCS_OK;
}

void uct_sep_config_apply_inline(uct_sep_iface_t *iface,
                                 const uct_sep_iface_config_t *config)
{
    size_t max = UCT_SEP_CQE_MAX_DATA(UCT_SEP_CQ_STRIDE_64);
    int is_own = iface->channel.own != NULL;

    iface->config.rx_mode        = UCT_SEP_RX_MODE_BUF;
    iface->config.tx_inline_resp = 0;
    if (config->api != UCT_SEP_API_DV) {
        return; /* libibverbs looks after it */
    }

    if (config->rx.inline_size > max) {
        iface->config.rx_mode = UCT_SEP_RX_MODE_CQE64;
    } else if (config->rx.inline_size > 0) {
        iface->config.rx_mode = UCT_SEP_RX_MODE_CQE32;
    }

    /* A queue pair that receives can have results in completions only if it has
     * messages there: libmlx5 takes the flags for "neither" and "both" to
     * exclude each other. Sends with a completion queue of their own have the
     * smaller completions. */
    if ((config->tx.inline_resp > 0) &&
        (is_own || (iface->config.rx_mode != UCT_SEP_RX_MODE_BUF))) {
        iface->config.tx_inline_resp =
                (is_own || (config->cq_sharing > 1)) ? max :
                uct_sep_rx_mode_data(iface->config.rx_mode);
    }
}
