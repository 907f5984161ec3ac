/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_MLX5_DEF_H_
#define MLX5SIM_MLX5_DEF_H_

#include <assert.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What an mlx5 device reads and writes in memory shared with software: send
 * and receive work queue entries, completion queue entries and their codes.
 * No other file of the engine knows an offset or a bit.
 *
 * Sources: PRM ("Mellanox Adapters Programmer's Reference Manual"), chapters
 * "Work Request (WQE) Formats" and "Completion Queues"; rdma-core 44
 * providers/mlx5/{mlx5dv.h,wqe.h} for the layout of the structures, named in
 * brackets; UCX 1.13 src/uct/ib/mlx5/ib_mlx5.h for the extended atomics.
 * All multi-byte fields are big endian.
 */

#define MLX5SIM_PACKED          __attribute__((packed))

/** 16-byte unit of a WQE (PRM: octoword) */
#define MLX5SIM_WQE_UNIT        16

/** WQEs are at most 63 units long (ds has 6 bits) */
#define MLX5SIM_WQE_MAX_DS      63

/** Largest message, PRM max_msg_sz is never above it */
#define MLX5SIM_MAX_MESSAGE     (1u << 31)

/** [MLX5_INVALID_LKEY] ends a scatter list */
#define MLX5SIM_LKEY_INVALID    0x100u

#define MLX5SIM_QPN_MASK        0xffffffu

/** uidx passed by software that does not use cqe_version 1 (libmlx5 verbs.c,
 *  kernel MLX5_IB_DEFAULT_UIDX) */
#define MLX5SIM_UIDX_NONE       0xffffffu


/** PRM: WQE opcode [MLX5_OPCODE_*] */
enum {
    MLX5SIM_OPCODE_NOP              = 0x00,
    MLX5SIM_OPCODE_SEND_INVAL       = 0x01,
    MLX5SIM_OPCODE_RDMA_WRITE       = 0x08,
    MLX5SIM_OPCODE_RDMA_WRITE_IMM   = 0x09,
    MLX5SIM_OPCODE_SEND             = 0x0a,
    MLX5SIM_OPCODE_SEND_IMM         = 0x0b,
    MLX5SIM_OPCODE_TSO              = 0x0e,
    MLX5SIM_OPCODE_RDMA_READ        = 0x10,
    MLX5SIM_OPCODE_ATOMIC_CS        = 0x11,
    MLX5SIM_OPCODE_ATOMIC_FA        = 0x12,
    MLX5SIM_OPCODE_ATOMIC_MASKED_CS = 0x14,
    MLX5SIM_OPCODE_ATOMIC_MASKED_FA = 0x15,
    MLX5SIM_OPCODE_FMR              = 0x19,
    MLX5SIM_OPCODE_LOCAL_INVAL      = 0x1b,
    MLX5SIM_OPCODE_CONFIG_CMD       = 0x1f,
    MLX5SIM_OPCODE_SET_PSV          = 0x20,
    MLX5SIM_OPCODE_UMR              = 0x25,
    MLX5SIM_OPCODE_TAG_MATCHING     = 0x28,
    MLX5SIM_OPCODE_FLOW_TBL_ACCESS  = 0x2c,
    MLX5SIM_OPCODE_MMO              = 0x2f
};


/** Opcode modifier of the extended (masked) atomics:
 *  bit 3 set, bits 2:0 = log2(operand size) - 2 */
#define MLX5SIM_OPMOD_EXT_ATOMIC  8u
#define MLX5SIM_OPMOD_ATOMIC_SIZE 7u


/** fm_ce_se byte of the control segment. PRM: fm 7:5, ce 3:2, se 1 */
#define MLX5SIM_FM_SHIFT          5
#define MLX5SIM_CE_SHIFT          2
#define MLX5SIM_CE_MASK           3u
#define MLX5SIM_SE                0x02u
#define MLX5SIM_FM_CE_SE_RESERVED 0x11u

/** PRM: fence modes; larger values are reserved */
enum {
    MLX5SIM_FM_NONE            = 0,
    MLX5SIM_FM_INITIATOR_SMALL = 1, /* [..._INITIATOR_SMALL_FENCE] */
    MLX5SIM_FM_FENCE           = 2,
    MLX5SIM_FM_STRONG_ORDER    = 3,
    MLX5SIM_FM_SMALL           = 4  /* [MLX5_WQE_CTRL_FENCE], IBV_SEND_FENCE */
};

/** PRM: completion modes. Software of the rdma-core family uses 0 and 2 only;
 *  1 (CQE on the first error) and 3 (CQE and event) are for other consumers. */
enum {
    MLX5SIM_CE_ON_ERROR  = 0,
    MLX5SIM_CE_ALWAYS    = 2,
    MLX5SIM_CE_CQE_EVENT = 3
};


/** Control segment [mlx5_wqe_ctrl_seg] */
typedef struct mlx5sim_ctrl_seg {
    __be32  opmod_idx_opcode;   /* opmod 31:24, wqe_index 23:8, opcode 7:0 */
    __be32  qpn_ds;             /* qp_or_sq 31:8, ds 5:0 */
    uint8_t signature;
    __be16  dci_stream;         /* dci_stream_channel_id: only DC initiators
                                   have it */
    uint8_t fm_ce_se;
    __be32  imm;                /* general_id: immediate or rkey */
} MLX5SIM_PACKED mlx5sim_ctrl_seg_t;

#define MLX5SIM_CTRL_DS_MASK      0x3fu
#define MLX5SIM_CTRL_DS_RESERVED  0xc0u


/** XRC segment: the SRQ at the target [struct mlx5_wqe_xrc_seg of libmlx5] */
typedef struct mlx5sim_xrc_seg {
    __be32  srqn;
    uint8_t reserved[12];
} MLX5SIM_PACKED mlx5sim_xrc_seg_t;


/** Remote address segment [mlx5_wqe_raddr_seg] */
typedef struct mlx5sim_raddr_seg {
    __be64  raddr;
    __be32  rkey;
    __be32  reserved;
} MLX5SIM_PACKED mlx5sim_raddr_seg_t;


/** Atomic segment of IBTA atomics, always 8 bytes of operand
 *  [mlx5_wqe_atomic_seg] */
typedef struct mlx5sim_atomic_seg {
    __be64  swap_add;
    __be64  compare;            /* not written for fetch-and-add */
} MLX5SIM_PACKED mlx5sim_atomic_seg_t;


/** Masked compare-and-swap, 4-byte operands */
typedef struct mlx5sim_masked_cs32_seg {
    __be32  swap;
    __be32  compare;
    __be32  swap_mask;
    __be32  compare_mask;
} MLX5SIM_PACKED mlx5sim_masked_cs32_seg_t;


/** Masked compare-and-swap, 8-byte operands [mlx5_wqe_masked_atomic_seg] */
typedef struct mlx5sim_masked_cs64_seg {
    __be64  swap;
    __be64  compare;
    __be64  swap_mask;
    __be64  compare_mask;
} MLX5SIM_PACKED mlx5sim_masked_cs64_seg_t;


/** Masked fetch-and-add, 4-byte operands. A set bit of field_boundary is the
 *  top bit of a field: no carry leaves it. */
typedef struct mlx5sim_masked_fa32_seg {
    __be32  add;
    __be32  field_boundary;
    __be32  reserved[2];
} MLX5SIM_PACKED mlx5sim_masked_fa32_seg_t;


/** Masked fetch-and-add, 8-byte operands */
typedef struct mlx5sim_masked_fa64_seg {
    __be64  add;
    __be64  field_boundary;
} MLX5SIM_PACKED mlx5sim_masked_fa64_seg_t;


/** Pointer to memory [mlx5_wqe_data_seg] */
typedef struct mlx5sim_data_seg {
    __be32  byte_count;         /* bit 31 clear; 0 in a send WQE: 2^31 */
    __be32  lkey;
    __be64  addr;
} MLX5SIM_PACKED mlx5sim_data_seg_t;


/** What a UMR changes of a key [mlx5_wqe_umr_ctrl_seg]. A mask says which
 *  fields of the next segment count; of a memory window it is not looked at, as
 *  the library sets it for all that it writes. */
typedef struct mlx5sim_umr_ctrl_seg {
    uint8_t flags;
    uint8_t reserved0[3];
    __be16  klm_octowords;
    __be16  offset_bsf;         /* translation_offset if there is the flag, else
                                   bsf_octowords */
    __be64  mkey_mask;
    uint8_t reserved1[32];
} MLX5SIM_PACKED mlx5sim_umr_ctrl_seg_t;

#define MLX5SIM_UMR_INLINE        0x80u /* the list is in the WQE */
#define MLX5SIM_UMR_OFFSET        0x10u /* it goes to translation_offset */
#define MLX5SIM_UMR_CHECK_FREE    0x20u /* the key has to be free, */
#define MLX5SIM_UMR_CHECK_QPN     0x08u /* or to be this queue pair's */

/** [MLX5_WQE_UMR_CTRL_MKEY_MASK_*] */
#define MLX5SIM_UMR_MASK_LEN          (1ull << 0)
#define MLX5SIM_UMR_MASK_START        (1ull << 6)
#define MLX5SIM_UMR_MASK_SIG_ERR      (1ull << 9)
#define MLX5SIM_UMR_MASK_BSF          (1ull << 12)
#define MLX5SIM_UMR_MASK_MKEY         (1ull << 13)
#define MLX5SIM_UMR_MASK_QPN          (1ull << 14)
#define MLX5SIM_UMR_MASK_LOCAL_WRITE  (1ull << 18)
#define MLX5SIM_UMR_MASK_REMOTE_READ  (1ull << 19)
#define MLX5SIM_UMR_MASK_REMOTE_WRITE (1ull << 20)
#define MLX5SIM_UMR_MASK_ATOMIC       (1ull << 21)
#define MLX5SIM_UMR_MASK_FREE         (1ull << 29)


/** Fields of the key [mlx5_wqe_mkey_context_seg] */
typedef struct mlx5sim_mkey_seg {
    uint8_t free;
    uint8_t reserved0;
    uint8_t access_flags;
    uint8_t sf;
    __be32  qpn_mkey;           /* QP 31:8, all ones: any; key 7:0 */
    __be32  reserved1;
    __be32  flags_pd;
    __be64  start_addr;
    __be64  len;
    __be32  bsf_octword_size;
    __be32  reserved2[4];
    __be32  translations_octword_size;
    uint8_t reserved3[3];
    uint8_t log_page_size;
    __be32  reserved4;
} MLX5SIM_PACKED mlx5sim_mkey_seg_t;

/** [MLX5_WQE_MKEY_CONTEXT_FREE, ..._ACCESS_FLAGS_*] */
#define MLX5SIM_MKEY_FREE         0x40u
#define MLX5SIM_MKEY_ATOMIC       0x40u
#define MLX5SIM_MKEY_REMOTE_WRITE 0x20u
#define MLX5SIM_MKEY_REMOTE_READ  0x10u
#define MLX5SIM_MKEY_LOCAL_WRITE  0x08u

/** Memory of a key: part of that of another one [mlx5_wqe_umr_klm_seg]. Lists
 *  are padded to four of these. */
typedef struct mlx5sim_klm_seg {
    __be32  byte_count;
    __be32  mkey;
    __be64  address;
} MLX5SIM_PACKED mlx5sim_klm_seg_t;

#define MLX5SIM_KLM_UNITS         4

/** Head of a list of strides, in the place of its first entry
 *  [mlx5_wqe_umr_repeat_block_seg]: the memory of all entries comes one behind
 *  the other, then again, each further on by its stride. */
typedef struct mlx5sim_repeat_seg {
    __be32  byte_count;         /* of one turn */
    __be32  op;
    __be32  repeat_count;
    __be16  reserved;
    __be16  num_ent;
} MLX5SIM_PACKED mlx5sim_repeat_seg_t;

/** What tells it from an entry, whose key is there [libmlx5: 0x400; kernel:
 *  MLX5_STRIDE_BLOCK_OP]. It is the key of no memory. */
#define MLX5SIM_REPEAT_OP         0x400u

/** [mlx5_wqe_umr_repeat_ent_seg] */
typedef struct mlx5sim_stride_seg {
    __be16  stride;
    __be16  byte_count;
    __be32  mkey;
    __be64  address;
} MLX5SIM_PACKED mlx5sim_stride_seg_t;


/** [MLX5_WQE_MKEY_CONTEXT_FLAGS_BSF_ENABLE] of flags_pd */
#define MLX5SIM_MKEY_BSF          (1u << 30)

/** Part of a BSF about T10-DIF, on the wire or in memory [mlx5_bsf_inl] */
typedef struct mlx5sim_bsf_inl {
    __be16  vld_refresh;
    __be16  app_tag;
    __be32  ref_tag;
    uint8_t sig_type;
    uint8_t rp_inv_seed;
    uint8_t reserved[3];
    uint8_t check;              /* dif_inc_ref_guard_check */
    __be16  app_mask;           /* dif_app_bitmask_check */
} MLX5SIM_PACKED mlx5sim_bsf_inl_t;

#define MLX5SIM_BSF_INL_VALID     0x8000u
#define MLX5SIM_BSF_REFRESH       0x4000u
#define MLX5SIM_BSF_REPEAT        0x80u
#define MLX5SIM_BSF_SEED          0x08u
#define MLX5SIM_BSF_REF_INC       0x40u
#define MLX5SIM_BSF_ESCAPE_MASK   0x0fu
#define MLX5SIM_BSF_T10DIF_CRC    1u
#define MLX5SIM_BSF_T10DIF_CSUM   2u

/** Signatures of a key, behind its list: byte stream format [mlx5_bsf]. Of the
 *  wire there is either the size of blocks, or, if these are as in memory,
 *  which bytes of signatures are copied. */
typedef struct mlx5sim_bsf {
    uint8_t size_sbs;           /* size 7:6, same block structure 4 */
    uint8_t check_byte_mask;
    uint8_t wire;
    uint8_t mem;
    __be32  raw_data_size;
    __be32  w_bfs_psv;          /* block format 31:24, PSV 23:0 */
    __be32  m_bfs_psv;
    __be32  t_init_gen_pro_size;
    __be32  rsvd_epi_size;
    __be32  w_tfs_psv;          /* signatures of transactions */
    __be32  m_tfs_psv;
    mlx5sim_bsf_inl_t w_inl;
    mlx5sim_bsf_inl_t m_inl;
} MLX5SIM_PACKED mlx5sim_bsf_t;

#define MLX5SIM_BSF_SIZE_SHIFT    6
#define MLX5SIM_BSF_INLINE        2u  /* has all parts above */
#define MLX5SIM_BSF_SAME          0x10u
#define MLX5SIM_BSF_BFS_SHIFT     24
#define MLX5SIM_BSF_PSV_MASK      0xffffffu
#define MLX5SIM_BFS_CRC32         0x20u
#define MLX5SIM_BFS_REPEAT        0x02u
#define MLX5SIM_BFS_NO_SEED       0x01u

/** Sizes of blocks [bs_to_bs_selector() of libmlx5] */
enum {
    MLX5SIM_BSF_BLOCK_512  = 1,
    MLX5SIM_BSF_BLOCK_520  = 2,
    MLX5SIM_BSF_BLOCK_4096 = 3,
    MLX5SIM_BSF_BLOCK_4160 = 4
};

/** What SET_PSV sets [mlx5_wqe_set_psv_seg] */
typedef struct mlx5sim_set_psv_seg {
    __be32  psv_index;
    __be16  syndrome;
    uint8_t reserved[2];
    __be64  transient_signature;
} MLX5SIM_PACKED mlx5sim_set_psv_seg_t;


/** Inline data follows in the queue, padded to a unit
 *  [mlx5_wqe_inline_seg] */
typedef struct mlx5sim_inline_seg {
    __be32  byte_count;         /* bit 31 set [MLX5_INLINE_SEG] */
} MLX5SIM_PACKED mlx5sim_inline_seg_t;

#define MLX5SIM_INLINE_FLAG       0x80000000u


/** Address vector of a datagram, and of what a DC initiator sends
 *  [mlx5_wqe_av]. Software may post the first 16 bytes only; bit 31 of dqp_dct
 *  says that all 48 are there. */
typedef struct mlx5sim_av_seg {
    union {
        struct {
            __be32  qkey;       /* bit 31: use the Q_Key of the QP */
            __be32  reserved;
        } MLX5SIM_PACKED;
        __be64  dc_key;
    };
    __be32  dqp_dct;            /* ext 31, SL of answers 27:24 (DC), destination
                                 * QP or DCT 23:0 */
    uint8_t stat_rate_sl;       /* rate 7:4; sl 3:0, or Ethernet prio 3:1 */
    uint8_t fl_mlid;            /* force loopback 7, source path bits 6:0 */
    __be16  rlid;               /* UDP source port on RoCE v2 */
    uint8_t reserved0[4];
    uint8_t rmac[6];
    uint8_t tclass;
    uint8_t hop_limit;
    __be32  grh_gid_fl;         /* grh 30, sgid_index 27:20, flow label 19:0 */
    uint8_t rgid[16];
} MLX5SIM_PACKED mlx5sim_av_seg_t;

#define MLX5SIM_AV_COMPACT_SIZE   16
#define MLX5SIM_AV_EXT            0x80000000u   /* [MLX5_EXTENDED_UD_AV] */
#define MLX5SIM_AV_DQP_RESERVED   0x7f000000u
#define MLX5SIM_AV_REVERSE_SL     0x0f000000u   /* DC initiators only */
#define MLX5SIM_AV_QKEY_OF_QP     0x80000000u
#define MLX5SIM_AV_GRH            0x40000000u
#define MLX5SIM_AV_PATH_BITS      0x7f
#define MLX5SIM_AV_SGID_SHIFT     20
#define MLX5SIM_AV_SGID_MASK      0xff
#define MLX5SIM_AV_FLOW_LABEL     0x000fffffu


/** Link of an SRQ's list of WQEs [mlx5_wqe_srq_next_seg]. UCX keeps its own
 *  data in the reserved bytes, so they are not checked. */
typedef struct mlx5sim_srq_next_seg {
    uint8_t reserved0[2];
    __be16  next_wqe_index;
    uint8_t signature;
    uint8_t reserved1[11];
} MLX5SIM_PACKED mlx5sim_srq_next_seg_t;


/** PRM: CQE opcode, the upper half of op_own [MLX5_CQE_*] */
enum {
    MLX5SIM_CQE_REQ           = 0x0,
    MLX5SIM_CQE_RESP_WR_IMM   = 0x1,
    MLX5SIM_CQE_RESP_SEND     = 0x2,
    MLX5SIM_CQE_RESP_SEND_IMM = 0x3,
    MLX5SIM_CQE_RESP_SEND_INV = 0x4,
    MLX5SIM_CQE_RESIZE_CQ     = 0x5,
    MLX5SIM_CQE_SIG_ERR       = 0xc,
    MLX5SIM_CQE_REQ_ERR       = 0xd,
    MLX5SIM_CQE_RESP_ERR      = 0xe,
    MLX5SIM_CQE_INVALID       = 0xf
};

/** op_own: opcode 7:4, cqe_format 3:2 (0: no data in the CQE, not
 *  compressed), se 1, owner 0 */
#define MLX5SIM_CQE_OPCODE_SHIFT  4
#define MLX5SIM_CQE_SE            0x02u
/** Data is in the CQE [MLX5_INLINE_SCATTER_32, MLX5_INLINE_SCATTER_64] */
#define MLX5SIM_CQE_SCATTER_32    0x04u
#define MLX5SIM_CQE_SCATTER_64    0x08u
#define MLX5SIM_CQE_OWNER         0x01u
/** cqe_format 3: first of a block of compressed completions, the title
 *  [UCT_IB_MLX5_CQE_FORMAT_MASK] */
#define MLX5SIM_CQE_COMPRESSED    0x0cu


/** PRM: syndrome of an error CQE [MLX5_CQE_SYNDROME_*] */
enum {
    MLX5SIM_SYNDROME_LOCAL_LENGTH       = 0x01,
    MLX5SIM_SYNDROME_LOCAL_QP_OP        = 0x02,
    MLX5SIM_SYNDROME_LOCAL_PROT         = 0x04,
    MLX5SIM_SYNDROME_WR_FLUSH           = 0x05,
    MLX5SIM_SYNDROME_MW_BIND            = 0x06,
    MLX5SIM_SYNDROME_BAD_RESP           = 0x10,
    MLX5SIM_SYNDROME_LOCAL_ACCESS       = 0x11,
    MLX5SIM_SYNDROME_REMOTE_INVAL_REQ   = 0x12,
    MLX5SIM_SYNDROME_REMOTE_ACCESS      = 0x13,
    MLX5SIM_SYNDROME_REMOTE_OP          = 0x14,
    MLX5SIM_SYNDROME_TRANSPORT_RETRY    = 0x15,
    MLX5SIM_SYNDROME_RNR_RETRY          = 0x16,
    MLX5SIM_SYNDROME_REMOTE_ABORTED     = 0x22
};


/** vendor_err_synd: undocumented; values that ConnectX adapters report in the
 *  field, so that logs look familiar. 0x93 and 0x99 (paging) must not be used:
 *  software reacts to them. */
enum {
    MLX5SIM_VENDOR_LOCAL_PROT      = 0x33,
    MLX5SIM_VENDOR_LOCAL_QP_OP     = 0x68,
    MLX5SIM_VENDOR_LOCAL_LENGTH    = 0x6a,
    MLX5SIM_VENDOR_TRANSPORT_RETRY = 0x81,
    MLX5SIM_VENDOR_RNR_RETRY       = 0x87,
    MLX5SIM_VENDOR_REMOTE_ACCESS   = 0x88,
    MLX5SIM_VENDOR_REMOTE_OP       = 0x89,
    MLX5SIM_VENDOR_REMOTE_INVAL    = 0x8a,
    MLX5SIM_VENDOR_WR_FLUSH        = 0xf9
};


/** Successful completion [mlx5_cqe64] */
typedef struct mlx5sim_cqe64 {
    uint8_t reserved0[2];
    __be16  wqe_id;
    uint8_t reserved4[13];
    uint8_t ml_path;            /* destination path bits 6:0 */
    uint8_t reserved18[4];
    __be16  slid;
    __be32  flags_rqpn;         /* g 29:28, sl 27:24, remote QP 23:0 */
    uint8_t hds_ip_ext;
    uint8_t l4_hdr_type_etc;
    __be16  vlan_info;
    __be32  srqn_uidx;          /* 23:0 */
    __be32  imm_inval_pkey;     /* immediate, rkey or P_Key */
    uint8_t app;
    uint8_t app_op;
    __be16  app_info;
    __be32  byte_cnt;
    __be64  timestamp;
    __be32  sop_drop_qpn;       /* send_wqe_opcode 31:24, QP 23:0 */
    __be16  wqe_counter;
    uint8_t signature;
    uint8_t op_own;
} MLX5SIM_PACKED mlx5sim_cqe64_t;


/** Mini CQE: what a completion of a block does not share with the title
 *  [mlx5_mini_cqe8 of the kernel's include/linux/mlx5/device.h,
 *  uct_ib_mlx5_mini_cqe8_t of UCX] */
typedef struct mlx5sim_mini_cqe {
    union {
        __be32      rx_hash_result;   /* responder, format "hash" */
        struct {                      /* responder, with checksum */
            __be16  checksum;
            __be16  stride_index;
        } MLX5SIM_PACKED rx;
        struct {                      /* requester, whatever the format */
            __be16  wqe_counter;
            uint8_t s_wqe_opcode;
            uint8_t reserved;
        } MLX5SIM_PACKED tx;
    };
    __be32 byte_cnt;
} MLX5SIM_PACKED mlx5sim_mini_cqe_t;


/** Failed completion [mlx5_err_cqe] */
typedef struct mlx5sim_err_cqe {
    uint8_t reserved0[32];
    __be32  srqn_uidx;
    uint8_t reserved36[18];
    uint8_t vendor_err_synd;
    uint8_t syndrome;
    __be32  s_wqe_opcode_qpn;
    __be16  wqe_counter;
    uint8_t signature;
    uint8_t op_own;
} MLX5SIM_PACKED mlx5sim_err_cqe_t;


/** A wrong signature [kernel: mlx5_sig_err_cqe; SPDK's lib/mlx5 has the type
 *  and the domain, which libmlx5 asks for (sigerr_domain_and_sig_type)] */
typedef struct mlx5sim_sig_err_cqe {
    uint8_t reserved0[16];
    __be32  expected_trans_sig; /* upper half of the number, */
    __be32  actual_trans_sig;
    __be32  expected_reftag;    /* lower half */
    __be32  actual_reftag;
    __be16  syndrome;
    uint8_t sig_type;           /* 0: of a block */
    uint8_t domain;             /* 0: wire, 1: memory */
    __be32  mkey;
    __be64  err_offset;
    uint8_t reserved1[8];
    __be32  qpn;
    uint8_t reserved2[2];
    uint8_t signature;
    uint8_t op_own;
} MLX5SIM_PACKED mlx5sim_sig_err_cqe_t;

/** [MLX5_SIGERR_CQE_SYNDROME_*] */
#define MLX5SIM_SIGERR_REF        (1u << 11)
#define MLX5SIM_SIGERR_APP        (1u << 12)
#define MLX5SIM_SIGERR_GUARD      (1u << 13)

/** PRM: g, where the network header is; 1 = in the receive buffer */
#define MLX5SIM_CQE_GRH_SHIFT     28
#define MLX5SIM_CQE_SL_SHIFT      24

/** PRM: on RoCE the sl bits of a datagram's CQE are the packet type instead:
 *  L3 header type 2:0, UDP header present 3 */
enum {
    MLX5SIM_ROCE_L3_GRH  = 0,
    MLX5SIM_ROCE_L3_IPV6 = 1,
    MLX5SIM_ROCE_L3_IPV4 = 2,
    MLX5SIM_ROCE_UDP     = 8
};


#define MLX5SIM_ASSERT_SIZE(_type, _size) \
    static_assert(sizeof(_type) == (_size), "size of " #_type)

#define MLX5SIM_ASSERT_OFFSET(_type, _field, _offset) \
    static_assert(offsetof(_type, _field) == (_offset), \
                  "offset of " #_type "." #_field)

MLX5SIM_ASSERT_SIZE(mlx5sim_ctrl_seg_t, 16);
MLX5SIM_ASSERT_OFFSET(mlx5sim_ctrl_seg_t, qpn_ds, 4);
MLX5SIM_ASSERT_OFFSET(mlx5sim_ctrl_seg_t, fm_ce_se, 11);
MLX5SIM_ASSERT_OFFSET(mlx5sim_ctrl_seg_t, imm, 12);
MLX5SIM_ASSERT_SIZE(mlx5sim_xrc_seg_t, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_raddr_seg_t, 16);
MLX5SIM_ASSERT_OFFSET(mlx5sim_raddr_seg_t, rkey, 8);
MLX5SIM_ASSERT_SIZE(mlx5sim_atomic_seg_t, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_masked_cs32_seg_t, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_masked_cs64_seg_t, 32);
MLX5SIM_ASSERT_SIZE(mlx5sim_masked_fa32_seg_t, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_masked_fa64_seg_t, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_data_seg_t, 16);
MLX5SIM_ASSERT_OFFSET(mlx5sim_data_seg_t, lkey, 4);
MLX5SIM_ASSERT_OFFSET(mlx5sim_data_seg_t, addr, 8);
MLX5SIM_ASSERT_SIZE(mlx5sim_inline_seg_t, 4);
MLX5SIM_ASSERT_SIZE(mlx5sim_umr_ctrl_seg_t, 48);
MLX5SIM_ASSERT_OFFSET(mlx5sim_umr_ctrl_seg_t, mkey_mask, 8);
MLX5SIM_ASSERT_SIZE(mlx5sim_mkey_seg_t, 64);
MLX5SIM_ASSERT_OFFSET(mlx5sim_mkey_seg_t, qpn_mkey, 4);
MLX5SIM_ASSERT_OFFSET(mlx5sim_mkey_seg_t, start_addr, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_klm_seg_t, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_repeat_seg_t, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_stride_seg_t, 16);
MLX5SIM_ASSERT_SIZE(mlx5sim_av_seg_t, 48);
MLX5SIM_ASSERT_OFFSET(mlx5sim_av_seg_t, dqp_dct, 8);
MLX5SIM_ASSERT_OFFSET(mlx5sim_av_seg_t, rlid, 14);
MLX5SIM_ASSERT_OFFSET(mlx5sim_av_seg_t, rmac, 20);
MLX5SIM_ASSERT_OFFSET(mlx5sim_av_seg_t, grh_gid_fl, 28);
MLX5SIM_ASSERT_OFFSET(mlx5sim_av_seg_t, rgid, 32);
MLX5SIM_ASSERT_SIZE(mlx5sim_srq_next_seg_t, 16);
MLX5SIM_ASSERT_OFFSET(mlx5sim_srq_next_seg_t, next_wqe_index, 2);
MLX5SIM_ASSERT_SIZE(mlx5sim_cqe64_t, 64);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, ml_path, 17);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, slid, 22);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, flags_rqpn, 24);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, srqn_uidx, 32);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, imm_inval_pkey, 36);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, byte_cnt, 44);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, timestamp, 48);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, sop_drop_qpn, 56);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, wqe_counter, 60);
MLX5SIM_ASSERT_OFFSET(mlx5sim_cqe64_t, op_own, 63);
MLX5SIM_ASSERT_SIZE(mlx5sim_mini_cqe_t, 8);
MLX5SIM_ASSERT_OFFSET(mlx5sim_mini_cqe_t, tx.s_wqe_opcode, 2);
MLX5SIM_ASSERT_OFFSET(mlx5sim_mini_cqe_t, byte_cnt, 4);
MLX5SIM_ASSERT_SIZE(mlx5sim_err_cqe_t, 64);
MLX5SIM_ASSERT_OFFSET(mlx5sim_err_cqe_t, srqn_uidx, 32);
MLX5SIM_ASSERT_OFFSET(mlx5sim_err_cqe_t, vendor_err_synd, 54);
MLX5SIM_ASSERT_OFFSET(mlx5sim_err_cqe_t, syndrome, 55);
MLX5SIM_ASSERT_OFFSET(mlx5sim_err_cqe_t, s_wqe_opcode_qpn, 56);
MLX5SIM_ASSERT_OFFSET(mlx5sim_err_cqe_t, op_own, 63);
MLX5SIM_ASSERT_SIZE(mlx5sim_sig_err_cqe_t, 64);
MLX5SIM_ASSERT_OFFSET(mlx5sim_sig_err_cqe_t, mkey, 36);
MLX5SIM_ASSERT_OFFSET(mlx5sim_sig_err_cqe_t, op_own, 63);
MLX5SIM_ASSERT_SIZE(mlx5sim_bsf_t, 64);
MLX5SIM_ASSERT_OFFSET(mlx5sim_bsf_t, m_inl, 48);
MLX5SIM_ASSERT_SIZE(mlx5sim_set_psv_seg_t, 16);

#endif
