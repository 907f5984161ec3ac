/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_DEF_H
#define UCT_SEP_DEF_H

#include <ucs/sys/compiler_def.h>
#include <infiniband/mlx5dv.h>
#include <assert.h>
#include <endian.h>
#include <stdint.h>

/**
 * @file sep_def.h
 *
 * Limits of the send queue, formats of work requests that mlx5dv.h does not
 * declare, and the header of an active message. Sizes are in bytes unless
 * stated otherwise; a "BB" is a WQE basic block of 64 bytes (PRM: WQEBB), a
 * "DS" the 16-byte unit in which a work request states its size.
 */

#if __BYTE_ORDER != __LITTLE_ENDIAN
#  error "work requests are built for little-endian hosts"
#endif

/** 8 bytes of a work request, whatever fields they hold. */
typedef uint64_t uct_sep_alias_u64_t __attribute__((may_alias));

/** The half of a doorbell record that an index is in. */
typedef uint16_t uct_sep_alias_be16_t __attribute__((may_alias));

/** A segment of 16 bytes (a DS), whatever it holds, as four words: in a vector
 *  register if the processor has these. */
typedef uint32_t uct_sep_seg_t __attribute__((vector_size(16), may_alias));

/** Name of the transport in UCX_TLS. */
#define UCT_SEP_TL_NAME             "sep_mlx5"

/** Prefix of the configuration variables, after UCX_. */
#define UCT_SEP_CONFIG_PREFIX       "SEP_"

/** Unit of a send queue's indices (PRM: WQEBB; mlx5dv.h: MLX5_SEND_WQE_BB). */
#define UCT_SEP_BB_SIZE             64
#define UCT_SEP_BB_SHIFT            6

/** Unit of qpn_ds.ds in the control segment. */
#define UCT_SEP_DS_SIZE             16
#define UCT_SEP_DS_PER_BB           (UCT_SEP_BB_SIZE / UCT_SEP_DS_SIZE)

/**
 * Longest work request we build: what fits one BlueFlame buffer (PRM:
 * log_bf_reg_size; 256 bytes on every device since ConnectX-4).
 */
#define UCT_SEP_MAX_BB              4
#define UCT_SEP_MAX_WQE             (UCT_SEP_MAX_BB * UCT_SEP_BB_SIZE)

/** Segments in front of the payload. */
#define UCT_SEP_CTRL_LEN            16
#define UCT_SEP_RADDR_LEN           16
#define UCT_SEP_DATA_LEN            16
#define UCT_SEP_INL_LEN             4

/** Where the inline payload of a put and of an active message starts. */
#define UCT_SEP_PUT_INL_OFFSET \
    (UCT_SEP_CTRL_LEN + UCT_SEP_RADDR_LEN + UCT_SEP_INL_LEN)
#define UCT_SEP_AM_INL_OFFSET       (UCT_SEP_CTRL_LEN + UCT_SEP_INL_LEN)

/** Inline payload that fits in one BB together with its segments. */
#define UCT_SEP_PUT_INL_1BB         (UCT_SEP_BB_SIZE - UCT_SEP_PUT_INL_OFFSET)
#define UCT_SEP_AM_INL_1BB          (UCT_SEP_BB_SIZE - UCT_SEP_AM_INL_OFFSET)

/** Longest inline put, and longest inline active message with its header. */
#define UCT_SEP_PUT_MAX_INL         (UCT_SEP_MAX_WQE - UCT_SEP_PUT_INL_OFFSET)
#define UCT_SEP_AM_MAX_INL          (UCT_SEP_MAX_WQE - UCT_SEP_AM_INL_OFFSET)

/** Gather entries of put_zcopy and get_zcopy. */
#define UCT_SEP_RMA_MAX_IOV \
    ((UCT_SEP_MAX_WQE - UCT_SEP_CTRL_LEN - UCT_SEP_RADDR_LEN) / \
     UCT_SEP_DATA_LEN)

/** Gather entries of am_zcopy; the rest of the WQE is for the header. */
#define UCT_SEP_AM_MAX_IOV          3

/** Longest user header of am_zcopy, which is sent inline. */
#define UCT_SEP_AM_ZCOPY_MAX_HDR \
    (UCT_SEP_AM_MAX_INL - UCT_SEP_AM_MAX_IOV * UCT_SEP_DATA_LEN - \
     sizeof(uct_sep_am_hdr_t))

/** Message length limit of the hardware (PRM: log_max_msg, 2^30 for RC). */
#define UCT_SEP_MAX_MSG             (1ul << 30)

/** Request a completion (PRM: control segment, ce = 2). */
#define UCT_SEP_FM_SIGNALED         MLX5_WQE_CTRL_CQ_UPDATE

/** Raise the receiver's event even if it is armed for solicited ones only. */
#define UCT_SEP_FM_SOLICITED        MLX5_WQE_CTRL_SOLICITED

/** Start after all previous reads and atomics (PRM: fm = 4). */
#define UCT_SEP_FM_FENCE            MLX5_WQE_CTRL_FENCE

/**
 * Extended atomics: bit 3 selects the extended format, bits 0-2 are the
 * logarithm of the operand size in units of 4 bytes (PRM: opmod of MASKED_CS
 * and MASKED_FA).
 */
#define UCT_SEP_OPMOD_EXT_ATOMIC(_log_size)  (8 | ((_log_size) - 2))

/**
 * Room in the completion queue beyond what credits account for: the consumer
 * index is published once per UCT_SEP_CQ_TURN, and a failed QP gets a last work
 * request.
 */
#define UCT_SEP_CQ_HEADROOM         128

/**
 * Vendor's syndromes of receives that were aborted (remote aborted, 0x22)
 * because a page was not there, or a packet was out of order: the requester
 * repeats the message, which takes another receive (UCX:
 * UCT_IB_MLX5_CQE_VENDOR_SYND_ODP and _PSN, and its issue 1963).
 */
#define UCT_SEP_VENDOR_SYND_ODP     0x93
#define UCT_SEP_VENDOR_SYND_PSN     0x99

/** Mask of a queue pair number, 24 bits. */
#define UCT_SEP_QPN_MASK            0xffffffu


/** How a work request is handed to the device. */
typedef enum {
    UCT_SEP_TX_POST_BF,   /**< BlueFlame: copy of the work request */
    UCT_SEP_TX_POST_DB,   /**< Doorbell: its first 8 bytes */
    UCT_SEP_TX_POST_AUTO, /**< BlueFlame if the device has it */
    UCT_SEP_TX_POST_LAST, /**< Number of those that can be configured */
    UCT_SEP_TX_POST_BF64  /**< BlueFlame with one store for 64 bytes */
} uct_sep_tx_post_t;


/**
 * Flow control, the upper bits of the first byte of an active message: see
 * sep_fc.h. All three together mark a message that is nothing but a grant.
 */
#define UCT_SEP_AM_FC_SOFT_REQ      0x20 /**< Grant with your next message */
#define UCT_SEP_AM_FC_HARD_REQ      0x40 /**< Grant at once */
#define UCT_SEP_AM_FC_GRANT         0x80 /**< The window is full again */
#define UCT_SEP_AM_FC_MASK          0xe0
#define UCT_SEP_AM_FC_PURE_GRANT    UCT_SEP_AM_FC_MASK

/**
 * No message asks for a grant in both ways. With immediate data this marks one
 * sent while there is a ring: these bits are in there. Without, it is a control
 * message of the eager channel (sep_ring_def.h).
 */
#define UCT_SEP_AM_RING \
    (UCT_SEP_AM_FC_SOFT_REQ | UCT_SEP_AM_FC_HARD_REQ)


/** First byte of every active message. */
typedef struct uct_sep_am_hdr {
    uint8_t am_id; /**< uct_iface_set_am_handler() id and UCT_SEP_AM_FC_xx */
} UCS_S_PACKED uct_sep_am_hdr_t;

static_assert(sizeof(uct_sep_am_hdr_t) == 1, "active message header size");


/** Header of a short active message, in front of the payload. */
typedef struct uct_sep_am_short_hdr {
    uct_sep_am_hdr_t super;
    uint64_t         header; /**< User header, host byte order */
} UCS_S_PACKED uct_sep_am_short_hdr_t;

static_assert(sizeof(uct_sep_am_short_hdr_t) == 9, "short message header size");


/** PRM: extended compare and swap, 4-byte operands. */
typedef struct uct_sep_wqe_masked_cs32 {
    __be32 swap;
    __be32 compare;
    __be32 swap_mask;
    __be32 compare_mask;
} UCS_S_PACKED uct_sep_wqe_masked_cs32_t;

static_assert(sizeof(uct_sep_wqe_masked_cs32_t) == UCT_SEP_DS_SIZE, "DS");


/** PRM: extended fetch and add, 4-byte operands. */
typedef struct uct_sep_wqe_masked_fa32 {
    __be32 add;
    __be32 field_boundary; /**< A one marks the highest bit of a field: carry
                                stops there */
    __be32 reserved[2];
} UCS_S_PACKED uct_sep_wqe_masked_fa32_t;

static_assert(sizeof(uct_sep_wqe_masked_fa32_t) == UCT_SEP_DS_SIZE, "DS");


/** PRM: extended compare and swap, 8-byte operands; two DS. */
typedef struct uct_sep_wqe_masked_cs64 {
    __be64 swap;
    __be64 compare;
    __be64 swap_mask;
    __be64 compare_mask;
} UCS_S_PACKED uct_sep_wqe_masked_cs64_t;

static_assert(sizeof(uct_sep_wqe_masked_cs64_t) == 2 * UCT_SEP_DS_SIZE, "DS");


/** PRM: extended fetch and add, 8-byte operands. */
typedef struct uct_sep_wqe_masked_fa64 {
    __be64 add;
    __be64 field_boundary;
} UCS_S_PACKED uct_sep_wqe_masked_fa64_t;

static_assert(sizeof(uct_sep_wqe_masked_fa64_t) == UCT_SEP_DS_SIZE, "DS");

static_assert(sizeof(struct mlx5_wqe_ctrl_seg) == UCT_SEP_CTRL_LEN, "ctrl");
static_assert(sizeof(struct mlx5_wqe_raddr_seg) == UCT_SEP_RADDR_LEN, "raddr");
static_assert(sizeof(struct mlx5_wqe_data_seg) == UCT_SEP_DATA_LEN, "data");
static_assert(sizeof(struct mlx5_wqe_inl_data_seg) == UCT_SEP_INL_LEN, "inl");
static_assert(sizeof(struct mlx5_cqe64) == 64, "cqe");

#endif
