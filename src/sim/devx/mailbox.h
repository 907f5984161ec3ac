/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_DEVX_MAILBOX_H_
#define MLX5SIM_DEVX_MAILBOX_H_

#include <stddef.h>
#include <stdint.h>

/*
 * Firmware commands as bytes: where fields are in what a program writes, in
 * replies, and in the contexts of objects that these contain. Places and names
 * are those of mlx5_ifc.h of the kernel (include/linux/mlx5), which follows the
 * PRM, chapter "Command Interface".
 */

/** Place of a field: first bit, high ones first, and number of bits. */
typedef struct mlx5sim_fw_field {
    uint16_t offset;
    uint8_t  width;
} mlx5sim_fw_field_t;

#define MLX5SIM_FW_FIELD(_offset, _width) \
    ((mlx5sim_fw_field_t){(_offset), (_width)})

/** A command: what the program wrote, and where the reply goes. */
typedef struct mlx5sim_fw {
    const uint8_t *in;
    size_t        in_size;
    uint8_t       *out;
    size_t        out_size;
} mlx5sim_fw_t;

/** Status of a reply (MLX5_CMD_STAT_*). */
enum {
    MLX5SIM_FW_OK            = 0x00,
    MLX5SIM_FW_BAD_OP        = 0x02,
    MLX5SIM_FW_BAD_PARAM     = 0x03,
    MLX5SIM_FW_BAD_RES       = 0x05, /* no such object */
    MLX5SIM_FW_RES_BUSY      = 0x06,
    MLX5SIM_FW_NO_RES        = 0x0f, /* out of memory or objects */
    MLX5SIM_FW_BAD_QP_STATE  = 0x10,
    MLX5SIM_FW_BAD_IN_LEN    = 0x50,
    MLX5SIM_FW_BAD_OUT_LEN   = 0x51
};

/** Sizes and places in bytes: the header of any command and reply; what is in
 *  front of capabilities and of a vport's context, of a QPC, a CQC, an RMPC, an
 *  XRC SRQC, an mkey's context, a DCTC; the WQ in an RMPC; whole commands that
 *  create. */
enum {
    MLX5SIM_FW_HEADER      = 16,
    MLX5SIM_FW_CAP         = 16,
    MLX5SIM_FW_QPC         = 24,
    MLX5SIM_FW_QPC_SIZE    = 232,
    MLX5SIM_FW_CQC         = 16,
    MLX5SIM_FW_CQC_SIZE    = 64,
    MLX5SIM_FW_RMPC        = 32,
    MLX5SIM_FW_RMPC_WQ     = 48,
    MLX5SIM_FW_RMPC_SIZE   = 240,
    MLX5SIM_FW_XRC_SRQC    = 16,
    MLX5SIM_FW_XRC_SRQC_SIZE = 64,
    MLX5SIM_FW_MKC         = 16,
    MLX5SIM_FW_MKC_SIZE    = 64,
    MLX5SIM_FW_KLM_SIZE    = 16,
    MLX5SIM_FW_LOG_MAX_KLM = 12,  /* entries of a list */
    MLX5SIM_FW_LOG_MAX_BSF = 2,   /* units of signatures */
    MLX5SIM_FW_DCTC        = 16,
    MLX5SIM_FW_DCT_SIZE    = 128, /* create_dct_in, query_dct_out */
    MLX5SIM_FW_RESERVED_QPN_SIZE = 32, /* create_reserved_qpn_in */
    MLX5SIM_FW_SCHED_SIZE  = 144, /* create_sched_elem_in, and the reply to a
                                     query */
    MLX5SIM_FW_CREATE_SIZE = 272 /* a list of an mkey comes behind */
};

/** Any command (general_obj_in_cmd_hdr) and reply (general_obj_out_cmd_hdr).
 *  The number of the object is in the same place for QP, CQ, RMP, PD, mkey and
 *  in replies to their creation. */
#define MLX5SIM_FW_OPCODE   MLX5SIM_FW_FIELD(0, 16)
#define MLX5SIM_FW_OP_MOD   MLX5SIM_FW_FIELD(48, 16)
#define MLX5SIM_FW_NUMBER   MLX5SIM_FW_FIELD(72, 24)
#define MLX5SIM_FW_OPT_MASK MLX5SIM_FW_FIELD(128, 32)
#define MLX5SIM_FW_STATUS   MLX5SIM_FW_FIELD(0, 8)
#define MLX5SIM_FW_SYNDROME MLX5SIM_FW_FIELD(32, 32)

/** general_obj_in_cmd_hdr of a general object: its type, and its number, which
 *  has more bits than others; 2^n of them are asked for. */
#define MLX5SIM_FW_GENERAL_TYPE   MLX5SIM_FW_FIELD(48, 16)
#define MLX5SIM_FW_GENERAL_NUMBER MLX5SIM_FW_FIELD(64, 32)
#define MLX5SIM_FW_GENERAL_RANGE  MLX5SIM_FW_FIELD(99, 5)

/** Types of general objects (MLX5_OBJ_TYPE_* of libmlx5's mlx5_ifc.h), which
 *  are bits of cmd_hca_cap.general_obj_types, too */
enum {
    MLX5SIM_FW_TYPE_SCHED        = 0x26, /* SCHEDULING_ELEMENT */
    MLX5SIM_FW_TYPE_RESERVED_QPN = 0x2c
};

/** sched_elem behind the header, and the sched_context in it */
#define MLX5SIM_FW_SCHED_SELECT    MLX5SIM_FW_FIELD(128, 64)
#define MLX5SIM_FW_SCHED_HIERARCHY MLX5SIM_FW_FIELD(192, 8)
#define MLX5SIM_FW_SCHED_ELEMENT   MLX5SIM_FW_FIELD(384, 8)
#define MLX5SIM_FW_SCHED_TSAR      MLX5SIM_FW_FIELD(424, 8)
#define MLX5SIM_FW_SCHED_PARENT    MLX5SIM_FW_FIELD(448, 32)
#define MLX5SIM_FW_SCHED_SHARE     MLX5SIM_FW_FIELD(544, 32)
#define MLX5SIM_FW_SCHED_MAX       MLX5SIM_FW_FIELD(576, 32)

/** create_qp_in, create_cq_in: behind the context */
#define MLX5SIM_FW_QP_UMEM_OFFSET MLX5SIM_FW_FIELD(2048, 64)
#define MLX5SIM_FW_QP_UMEM        MLX5SIM_FW_FIELD(2112, 32)
#define MLX5SIM_FW_CQ_UMEM_OFFSET MLX5SIM_FW_FIELD(640, 64)
#define MLX5SIM_FW_CQ_UMEM        MLX5SIM_FW_FIELD(704, 32)

/** rts2rts_qp_in: the other mask of optional parameters, and whether it has an
 *  extended QPC (qpc_ext), which is behind that and in the same place for all
 *  transitions that have it */
#define MLX5SIM_FW_QPC_EXT        MLX5SIM_FW_FIELD(64, 1)
#define MLX5SIM_FW_OPT_MASK_EXT   MLX5SIM_FW_FIELD(2112, 64)
#define MLX5SIM_FW_OPT_MASK_EXT_END 272 /* bytes */
#define MLX5SIM_FW_QPC_EXT_STREAM MLX5SIM_FW_FIELD(2192, 16)
#define MLX5SIM_FW_QPC_EXT_REQ_LEAF  MLX5SIM_FW_FIELD(2208, 32)
#define MLX5SIM_FW_QPC_EXT_RESP_LEAF MLX5SIM_FW_FIELD(2240, 32)
#define MLX5SIM_FW_QPC_EXT_END    464 /* bytes */

/** create_psv_in, whose PD is where numbers are, and create_psv_out */
#define MLX5SIM_FW_PSV_COUNT  MLX5SIM_FW_FIELD(64, 4)
#define MLX5SIM_FW_PSV_NUMBER MLX5SIM_FW_FIELD(136, 24)

/** qpc; the path is ads */
#define MLX5SIM_FW_QPC_STATE         MLX5SIM_FW_FIELD(0, 4)
#define MLX5SIM_FW_QPC_LAG           MLX5SIM_FW_FIELD(4, 4)
#define MLX5SIM_FW_QPC_ST            MLX5SIM_FW_FIELD(8, 8)
#define MLX5SIM_FW_QPC_WQ_SIGNATURE  MLX5SIM_FW_FIELD(32, 1)
#define MLX5SIM_FW_QPC_DRAIN_SIGERR  MLX5SIM_FW_FIELD(37, 1)
#define MLX5SIM_FW_QPC_PD            MLX5SIM_FW_FIELD(40, 24)
#define MLX5SIM_FW_QPC_MTU           MLX5SIM_FW_FIELD(64, 3)
#define MLX5SIM_FW_QPC_LOG_MSG_MAX   MLX5SIM_FW_FIELD(67, 5)
#define MLX5SIM_FW_QPC_LOG_RQ_SIZE   MLX5SIM_FW_FIELD(73, 4)
#define MLX5SIM_FW_QPC_LOG_RQ_STRIDE MLX5SIM_FW_FIELD(77, 3)
#define MLX5SIM_FW_QPC_NO_SQ         MLX5SIM_FW_FIELD(80, 1)
#define MLX5SIM_FW_QPC_LOG_SQ_SIZE   MLX5SIM_FW_FIELD(81, 4)
#define MLX5SIM_FW_QPC_DATA_IN_ORDER MLX5SIM_FW_FIELD(90, 1)
#define MLX5SIM_FW_QPC_UAR           MLX5SIM_FW_FIELD(104, 24)
#define MLX5SIM_FW_QPC_DBR_MODE      MLX5SIM_FW_FIELD(128, 2)
#define MLX5SIM_FW_QPC_USER_INDEX    MLX5SIM_FW_FIELD(136, 24)
#define MLX5SIM_FW_QPC_REMOTE_QPN    MLX5SIM_FW_FIELD(168, 24)
#define MLX5SIM_FW_QPC_PKEY_INDEX    MLX5SIM_FW_FIELD(208, 16)
#define MLX5SIM_FW_QPC_GRH           MLX5SIM_FW_FIELD(232, 1)
#define MLX5SIM_FW_QPC_MLID          MLX5SIM_FW_FIELD(233, 7)
#define MLX5SIM_FW_QPC_RLID          MLX5SIM_FW_FIELD(240, 16)
#define MLX5SIM_FW_QPC_ACK_TIMEOUT   MLX5SIM_FW_FIELD(256, 5)
#define MLX5SIM_FW_QPC_SGID_INDEX    MLX5SIM_FW_FIELD(264, 8)
#define MLX5SIM_FW_QPC_STAT_RATE     MLX5SIM_FW_FIELD(276, 4)
#define MLX5SIM_FW_QPC_HOP_LIMIT     MLX5SIM_FW_FIELD(280, 8)
#define MLX5SIM_FW_QPC_TCLASS        MLX5SIM_FW_FIELD(292, 8)
#define MLX5SIM_FW_QPC_FLOW_LABEL    MLX5SIM_FW_FIELD(300, 20)
#define MLX5SIM_FW_QPC_RGID_BYTE     40
#define MLX5SIM_FW_QPC_DSCP          MLX5SIM_FW_FIELD(458, 6)
#define MLX5SIM_FW_QPC_UDP_SPORT     MLX5SIM_FW_FIELD(464, 16)
#define MLX5SIM_FW_QPC_ETH_PRIO      MLX5SIM_FW_FIELD(481, 3)
#define MLX5SIM_FW_QPC_SL            MLX5SIM_FW_FIELD(484, 4)
#define MLX5SIM_FW_QPC_PORT          MLX5SIM_FW_FIELD(488, 8)
#define MLX5SIM_FW_QPC_LOG_SRA_MAX   MLX5SIM_FW_FIELD(904, 3)
#define MLX5SIM_FW_QPC_RETRY_COUNT   MLX5SIM_FW_FIELD(909, 3)
#define MLX5SIM_FW_QPC_RNR_RETRY     MLX5SIM_FW_FIELD(912, 3)
#define MLX5SIM_FW_QPC_NEXT_SEND_PSN MLX5SIM_FW_FIELD(968, 24)
#define MLX5SIM_FW_QPC_LOG_STREAMS   MLX5SIM_FW_FIELD(995, 5)
#define MLX5SIM_FW_QPC_CQN_SND       MLX5SIM_FW_FIELD(1000, 24)
#define MLX5SIM_FW_QPC_LOG_ERRORED   MLX5SIM_FW_FIELD(1027, 5)
#define MLX5SIM_FW_QPC_LOG_RRA_MAX   MLX5SIM_FW_FIELD(1160, 3)
#define MLX5SIM_FW_QPC_ATOMIC_MODE   MLX5SIM_FW_FIELD(1164, 4)
#define MLX5SIM_FW_QPC_RRE           MLX5SIM_FW_FIELD(1168, 1)
#define MLX5SIM_FW_QPC_RWE           MLX5SIM_FW_FIELD(1169, 1)
#define MLX5SIM_FW_QPC_RAE           MLX5SIM_FW_FIELD(1170, 1)
#define MLX5SIM_FW_QPC_MIN_RNR_NAK   MLX5SIM_FW_FIELD(1187, 5)
#define MLX5SIM_FW_QPC_NEXT_RCV_PSN  MLX5SIM_FW_FIELD(1192, 24)
#define MLX5SIM_FW_QPC_CQN_RCV       MLX5SIM_FW_FIELD(1256, 24)
#define MLX5SIM_FW_QPC_DBR_ADDR      MLX5SIM_FW_FIELD(1280, 64)
#define MLX5SIM_FW_QPC_Q_KEY         MLX5SIM_FW_FIELD(1344, 32)
#define MLX5SIM_FW_QPC_RQ_TYPE       MLX5SIM_FW_FIELD(1381, 3)
#define MLX5SIM_FW_QPC_SRQN          MLX5SIM_FW_FIELD(1384, 24)
#define MLX5SIM_FW_QPC_SQ_COUNTER    MLX5SIM_FW_FIELD(1440, 16)
#define MLX5SIM_FW_QPC_CS_REQ        MLX5SIM_FW_FIELD(1584, 8)
#define MLX5SIM_FW_QPC_CS_RES        MLX5SIM_FW_FIELD(1592, 8)
#define MLX5SIM_FW_QPC_DBR_UMEM      MLX5SIM_FW_FIELD(1824, 32)

/** cqc. With cc all CQEs are written to the first place (PRM, "Completion Queue
 *  Context"). rocSHMEM's gda/mlx5 and NVSHMEM's ibgda make such queues, with oi
 *  and as long as the send queue, and read the WQE counter there. The owner bit
 *  is that of the lap, as in a ring: nobody was found who reads it. */
#define MLX5SIM_FW_CQC_CQE_SZ      MLX5SIM_FW_FIELD(8, 3)
#define MLX5SIM_FW_CQC_CC          MLX5SIM_FW_FIELD(11, 1)
#define MLX5SIM_FW_CQC_OI          MLX5SIM_FW_FIELD(14, 1)
#define MLX5SIM_FW_CQC_COMP_EN     MLX5SIM_FW_FIELD(17, 1)
#define MLX5SIM_FW_CQC_ST          MLX5SIM_FW_FIELD(20, 4)
#define MLX5SIM_FW_CQC_DBR_UMEM    MLX5SIM_FW_FIELD(32, 32)
#define MLX5SIM_FW_CQC_LOG_CQ_SIZE MLX5SIM_FW_FIELD(99, 5)
#define MLX5SIM_FW_CQC_UAR         MLX5SIM_FW_FIELD(104, 24)
#define MLX5SIM_FW_CQC_EQN         MLX5SIM_FW_FIELD(184, 8)
#define MLX5SIM_FW_CQC_PRODUCER    MLX5SIM_FW_FIELD(360, 24)
#define MLX5SIM_FW_CQC_DBR_ADDR    MLX5SIM_FW_FIELD(448, 64)

/** dctc */
#define MLX5SIM_FW_DCTC_STATE       MLX5SIM_FW_FIELD(4, 4)
#define MLX5SIM_FW_DCTC_OFFLOAD     MLX5SIM_FW_FIELD(24, 4)
#define MLX5SIM_FW_DCTC_USER_INDEX  MLX5SIM_FW_FIELD(40, 24)
#define MLX5SIM_FW_DCTC_CQN         MLX5SIM_FW_FIELD(72, 24)
#define MLX5SIM_FW_DCTC_RRE         MLX5SIM_FW_FIELD(108, 1)
#define MLX5SIM_FW_DCTC_RWE         MLX5SIM_FW_FIELD(109, 1)
#define MLX5SIM_FW_DCTC_RAE         MLX5SIM_FW_FIELD(110, 1)
#define MLX5SIM_FW_DCTC_CS_RES      MLX5SIM_FW_FIELD(136, 8)
#define MLX5SIM_FW_DCTC_MIN_RNR_NAK MLX5SIM_FW_FIELD(147, 5)
#define MLX5SIM_FW_DCTC_SRQN        MLX5SIM_FW_FIELD(168, 24)
#define MLX5SIM_FW_DCTC_PD          MLX5SIM_FW_FIELD(200, 24)
#define MLX5SIM_FW_DCTC_TCLASS      MLX5SIM_FW_FIELD(224, 8)
#define MLX5SIM_FW_DCTC_FLOW_LABEL  MLX5SIM_FW_FIELD(236, 20)
#define MLX5SIM_FW_DCTC_KEY         MLX5SIM_FW_FIELD(256, 64)
#define MLX5SIM_FW_DCTC_MTU         MLX5SIM_FW_FIELD(325, 3)
#define MLX5SIM_FW_DCTC_PORT        MLX5SIM_FW_FIELD(328, 8)
#define MLX5SIM_FW_DCTC_PKEY_INDEX  MLX5SIM_FW_FIELD(336, 16)
#define MLX5SIM_FW_DCTC_SGID_INDEX  MLX5SIM_FW_FIELD(360, 8)
#define MLX5SIM_FW_DCTC_HOP_LIMIT   MLX5SIM_FW_FIELD(376, 8)

/** rmpc, and the wq in it */
#define MLX5SIM_FW_RMPC_STATE     MLX5SIM_FW_FIELD(8, 4)
#define MLX5SIM_FW_WQ_TYPE        MLX5SIM_FW_FIELD(0, 4)
#define MLX5SIM_FW_WQ_SIGNATURE   MLX5SIM_FW_FIELD(4, 1)
#define MLX5SIM_FW_WQ_LWM         MLX5SIM_FW_FIELD(48, 16)
#define MLX5SIM_FW_WQ_PD          MLX5SIM_FW_FIELD(72, 24)
#define MLX5SIM_FW_WQ_DBR_ADDR    MLX5SIM_FW_FIELD(128, 64)
#define MLX5SIM_FW_WQ_HW_COUNTER  MLX5SIM_FW_FIELD(192, 32)
#define MLX5SIM_FW_WQ_LOG_STRIDE  MLX5SIM_FW_FIELD(268, 4)
#define MLX5SIM_FW_WQ_LOG_SIZE    MLX5SIM_FW_FIELD(283, 5)
#define MLX5SIM_FW_WQ_DBR_UMEM    MLX5SIM_FW_FIELD(320, 32)
#define MLX5SIM_FW_WQ_UMEM        MLX5SIM_FW_FIELD(352, 32)
#define MLX5SIM_FW_WQ_UMEM_OFFSET MLX5SIM_FW_FIELD(384, 64)

/** modify_rmp_in: the state that it is in, and what changes (rmp_bitmask) */
#define MLX5SIM_FW_MODIFY_RMP_STATE MLX5SIM_FW_FIELD(64, 4)
#define MLX5SIM_FW_MODIFY_RMP_MASK  MLX5SIM_FW_FIELD(128, 64)
#define MLX5SIM_FW_MODIFY_RMP_LWM   1u

/** arm_xrc_srq_in (its op_mod is 1), and xrc_srqc */
#define MLX5SIM_FW_ARM_XRC_SRQ_LWM      MLX5SIM_FW_FIELD(112, 16)
#define MLX5SIM_FW_XRC_SRQC_LOG_SIZE    MLX5SIM_FW_FIELD(4, 4)
#define MLX5SIM_FW_XRC_SRQC_LOG_STRIDE  MLX5SIM_FW_FIELD(37, 3)
#define MLX5SIM_FW_XRC_SRQC_XRCD        MLX5SIM_FW_FIELD(40, 24)
#define MLX5SIM_FW_XRC_SRQC_CQN         MLX5SIM_FW_FIELD(72, 24)
#define MLX5SIM_FW_XRC_SRQC_USER_INDEX  MLX5SIM_FW_FIELD(136, 24)
#define MLX5SIM_FW_XRC_SRQC_PD          MLX5SIM_FW_FIELD(200, 24)
#define MLX5SIM_FW_XRC_SRQC_LWM         MLX5SIM_FW_FIELD(224, 16)

/** mkc, and the list behind a create_mkey_in: klm_pas_mtt, klm */
#define MLX5SIM_FW_MKC_FREE        MLX5SIM_FW_FIELD(1, 1)
#define MLX5SIM_FW_MKC_MODE_HIGH   MLX5SIM_FW_FIELD(3, 3)
#define MLX5SIM_FW_MKC_UMR_EN      MLX5SIM_FW_FIELD(16, 1)
#define MLX5SIM_FW_MKC_A           MLX5SIM_FW_FIELD(17, 1)
#define MLX5SIM_FW_MKC_RW          MLX5SIM_FW_FIELD(18, 1)
#define MLX5SIM_FW_MKC_RR          MLX5SIM_FW_FIELD(19, 1)
#define MLX5SIM_FW_MKC_LW          MLX5SIM_FW_FIELD(20, 1)
#define MLX5SIM_FW_MKC_MODE        MLX5SIM_FW_FIELD(22, 2)
#define MLX5SIM_FW_MKC_QPN         MLX5SIM_FW_FIELD(32, 24)
#define MLX5SIM_FW_MKC_KEY         MLX5SIM_FW_FIELD(56, 8)
#define MLX5SIM_FW_MKC_BSF_EN      MLX5SIM_FW_FIELD(97, 1)
#define MLX5SIM_FW_MKC_EN_RINVAL   MLX5SIM_FW_FIELD(103, 1)
#define MLX5SIM_FW_MKC_PD          MLX5SIM_FW_FIELD(104, 24)
#define MLX5SIM_FW_MKC_START       MLX5SIM_FW_FIELD(128, 64)
#define MLX5SIM_FW_MKC_LEN         MLX5SIM_FW_FIELD(192, 64)
#define MLX5SIM_FW_MKC_BSF_ROOM    MLX5SIM_FW_FIELD(256, 32)
#define MLX5SIM_FW_MKC_LIST_ROOM   MLX5SIM_FW_FIELD(416, 32)
#define MLX5SIM_FW_MKC_LOG_ENTITY  MLX5SIM_FW_FIELD(475, 5)
#define MLX5SIM_FW_MKC_CRYPTO_EN   MLX5SIM_FW_FIELD(483, 2)
#define MLX5SIM_FW_MKEY_LIST_SIZE  MLX5SIM_FW_FIELD(768, 32)
#define MLX5SIM_FW_KLM_BYTES       MLX5SIM_FW_FIELD(0, 32)
#define MLX5SIM_FW_KLM_MKEY        MLX5SIM_FW_FIELD(32, 32)
#define MLX5SIM_FW_KLM_ADDRESS     MLX5SIM_FW_FIELD(64, 64)

/** Write a field of @a base whose bits are 0. */
void mlx5sim_fw_set(uint8_t *base, mlx5sim_fw_field_t field, uint64_t value);

/** Read a field of @a base. */
uint64_t mlx5sim_fw_get(const uint8_t *base, mlx5sim_fw_field_t field);

#endif
