/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/devx/caps.h>
#include <sim/config/identity.h>

#include <string.h>

/* op_mod of QUERY_HCA_CAP: the group, and whether current values are asked for
 * or the largest possible */
#define MLX5SIM_FW_CAP_GENERAL(_op_mod) (((_op_mod) >> 1) == 0)
#define MLX5SIM_FW_CAP_ODP(_op_mod)     (((_op_mod) >> 1) == 2)
#define MLX5SIM_FW_CAP_ATOMIC_CUR       ((3 << 1) | 1)
#define MLX5SIM_FW_CAP_DEVICE_MEM(_op_mod) (((_op_mod) >> 1) == 0xf)
#define MLX5SIM_FW_CAP_NIC_FLOW(_op_mod)   (((_op_mod) >> 1) == 7)
#define MLX5SIM_FW_CAP_QOS(_op_mod)        (((_op_mod) >> 1) == 0xc)
#define MLX5SIM_FW_CAP_GENERAL_2(_op_mod)  (((_op_mod) >> 1) == 0x20)

/* cmd_hca_cap */
#define MLX5SIM_CAP_HCA_CAP_2        MLX5SIM_FW_FIELD(32, 1)
#define MLX5SIM_CAP_QP_DATA_IN_ORDER MLX5SIM_FW_FIELD(98, 1)
#define MLX5SIM_CAP_LOG_MAX_QP_SZ    MLX5SIM_FW_FIELD(136, 8)
#define MLX5SIM_CAP_LOG_MAX_QP       MLX5SIM_FW_FIELD(155, 5)
#define MLX5SIM_CAP_ECE              MLX5SIM_FW_FIELD(163, 1)
#define MLX5SIM_CAP_LOG_MAX_SRQ      MLX5SIM_FW_FIELD(171, 5)
#define MLX5SIM_CAP_LOG_MAX_CQ_SZ    MLX5SIM_FW_FIELD(200, 8)
#define MLX5SIM_CAP_LOG_MAX_CQ       MLX5SIM_FW_FIELD(219, 5)
#define MLX5SIM_CAP_LOG_MAX_MKEY     MLX5SIM_FW_FIELD(234, 6)
#define MLX5SIM_CAP_MAX_INDIRECTION  MLX5SIM_FW_FIELD(256, 8)
#define MLX5SIM_CAP_FIXED_BUFFER     MLX5SIM_FW_FIELD(264, 1) /* KSM */
#define MLX5SIM_CAP_LOG_MAX_BSF      MLX5SIM_FW_FIELD(274, 6)
#define MLX5SIM_CAP_LOG_MAX_KLM      MLX5SIM_FW_FIELD(282, 6)
#define MLX5SIM_CAP_QPC_EXT          MLX5SIM_FW_FIELD(290, 1)
#define MLX5SIM_CAP_LOG_MAX_RA_REQ_DC MLX5SIM_FW_FIELD(298, 6)
#define MLX5SIM_CAP_OOO_SL_MASK      MLX5SIM_FW_FIELD(312, 1)
#define MLX5SIM_CAP_LOG_MAX_RA_RES_DC MLX5SIM_FW_FIELD(314, 6)
#define MLX5SIM_CAP_LOG_MAX_RA_REQ   MLX5SIM_FW_FIELD(330, 6)
#define MLX5SIM_CAP_RTS2RTS_SPORT    MLX5SIM_FW_FIELD(337, 1)
#define MLX5SIM_CAP_RTS2RTS_LAG      MLX5SIM_FW_FIELD(338, 1)
#define MLX5SIM_CAP_LOG_MAX_RA_RES   MLX5SIM_FW_FIELD(346, 6)
#define MLX5SIM_CAP_DEVICE_MEMORY    MLX5SIM_FW_FIELD(424, 1)
#define MLX5SIM_CAP_PORT_TYPE        MLX5SIM_FW_FIELD(438, 2)
#define MLX5SIM_CAP_NUM_PORTS        MLX5SIM_FW_FIELD(440, 8)
#define MLX5SIM_CAP_LOG_MAX_MSG      MLX5SIM_FW_FIELD(451, 5)
#define MLX5SIM_CAP_INIT2_LAG        MLX5SIM_FW_FIELD(504, 1)
#define MLX5SIM_CAP_CQE_VERSION      MLX5SIM_FW_FIELD(508, 4)
#define MLX5SIM_CAP_DRAIN_SIGERR     MLX5SIM_FW_FIELD(527, 1)
#define MLX5SIM_CAP_SIGERR_CQE       MLX5SIM_FW_FIELD(530, 1)
#define MLX5SIM_CAP_SHO              MLX5SIM_FW_FIELD(535, 1) /* signatures */
#define MLX5SIM_CAP_DCT              MLX5SIM_FW_FIELD(538, 1)
#define MLX5SIM_CAP_QOS              MLX5SIM_FW_FIELD(539, 1)
#define MLX5SIM_CAP_ROCE             MLX5SIM_FW_FIELD(541, 1)
#define MLX5SIM_CAP_ATOMIC           MLX5SIM_FW_FIELD(542, 1)
#define MLX5SIM_CAP_PG               MLX5SIM_FW_FIELD(551, 1)
#define MLX5SIM_CAP_LAG_DCT          MLX5SIM_FW_FIELD(630, 2)
#define MLX5SIM_CAP_LAG_AFFINITY     MLX5SIM_FW_FIELD(632, 1)
#define MLX5SIM_CAP_LAG_MASTER       MLX5SIM_FW_FIELD(635, 1)
#define MLX5SIM_CAP_NUM_LAG_PORTS    MLX5SIM_FW_FIELD(636, 4)
#define MLX5SIM_CAP_LOG_MAX_RMP      MLX5SIM_FW_FIELD(899, 5)
#define MLX5SIM_CAP_GENERAL_TYPES    MLX5SIM_FW_FIELD(1024, 64)
#define MLX5SIM_CAP_SIGERR_DOMAIN    MLX5SIM_FW_FIELD(1152, 1)
#define MLX5SIM_CAP_LOG_MAX_STREAMS  MLX5SIM_FW_FIELD(1419, 5)
#define MLX5SIM_CAP_LOG_MAX_ERRORED  MLX5SIM_FW_FIELD(1427, 5)
#define MLX5SIM_CAP_LAST             640 /* of what libmlx5 asks for */
#define MLX5SIM_CAP_LAST_RMP         904
#define MLX5SIM_CAP_LAST_TYPES       1088
#define MLX5SIM_CAP_LAST_SIGERR      1160
#define MLX5SIM_CAP_LAST_STREAMS     1432

/* qos_cap: a table of rates, with bursts and packet sizes, for programs, too
 * (packet_pacing_uid); and elements of the send scheduler, types of which are
 * bits: deficit-weighted round robin over nodes and queue groups. Send queues
 * (SQ) there are none, but libmlx5 asks for shares and limits only with these.
 */
#define MLX5SIM_CAP_PP             MLX5SIM_FW_FIELD(0, 1)
#define MLX5SIM_CAP_PP_BURST       MLX5SIM_FW_FIELD(5, 1)
#define MLX5SIM_CAP_PP_TYPICAL     MLX5SIM_FW_FIELD(6, 1)
#define MLX5SIM_CAP_PP_UID         MLX5SIM_FW_FIELD(11, 1)
#define MLX5SIM_CAP_PP_MAX         MLX5SIM_FW_FIELD(64, 32)
#define MLX5SIM_CAP_PP_MIN         MLX5SIM_FW_FIELD(96, 32)
#define MLX5SIM_CAP_PP_TABLE       MLX5SIM_FW_FIELD(144, 16)
#define MLX5SIM_CAP_NIC_SQ_SCHED   MLX5SIM_FW_FIELD(8, 1)
#define MLX5SIM_CAP_NIC_SHARE      MLX5SIM_FW_FIELD(9, 1)
#define MLX5SIM_CAP_NIC_RATE       MLX5SIM_FW_FIELD(10, 1)
#define MLX5SIM_CAP_NIC_QP_SCHED   MLX5SIM_FW_FIELD(33, 1)
#define MLX5SIM_CAP_LOG_MAX_LEAVES MLX5SIM_FW_FIELD(43, 5)
#define MLX5SIM_CAP_MAX_SHARE      MLX5SIM_FW_FIELD(224, 32)
#define MLX5SIM_CAP_NIC_ELEMENTS   MLX5SIM_FW_FIELD(256, 16)
#define MLX5SIM_CAP_NIC_TSARS      MLX5SIM_FW_FIELD(272, 16)
#define MLX5SIM_CAP_QOS_LAST       288
#define MLX5SIM_SCHED_ELEMENTS     0x11
#define MLX5SIM_SCHED_TSARS        0x1

/* cmd_hca_cap_2 */
#define MLX5SIM_CAP_LOG_QPN_RESERVED MLX5SIM_FW_FIELD(147, 5)
#define MLX5SIM_CAP_2_LAST           160

/* atomic_caps */
#define MLX5SIM_CAP_ATOMIC_8B_MODE    MLX5SIM_FW_FIELD(64, 2) /* 1: host's */
#define MLX5SIM_CAP_ATOMIC_OPERATIONS MLX5SIM_FW_FIELD(144, 16)
#define MLX5SIM_CAP_ATOMIC_SIZE_QP    MLX5SIM_FW_FIELD(176, 16)
#define MLX5SIM_CAP_ATOMIC_SIZE_DC    MLX5SIM_FW_FIELD(208, 16)
#define MLX5SIM_CAP_ATOMIC_PCI_FADD   MLX5SIM_FW_FIELD(640, 16)
#define MLX5SIM_CAP_ATOMIC_PCI_SWAP   MLX5SIM_FW_FIELD(656, 16)
#define MLX5SIM_CAP_ATOMIC_PCI_CSWAP  MLX5SIM_FW_FIELD(672, 16)
#define MLX5SIM_CAP_ATOMIC_LAST       688
/* compare-swap, fetch-add, masked compare-swap, masked fetch-add */
#define MLX5SIM_ATOMIC_OPERATIONS 0xf
#define MLX5SIM_ATOMIC_UNMASKED   0x3
/* set of sizes in bytes: 4 and 8 */
#define MLX5SIM_ATOMIC_SIZES      0xc
/* sets of sizes of atomics on PCIe, enum ibv_pci_atomic_op_size */
#define MLX5SIM_ATOMIC_PCI_4      1
#define MLX5SIM_ATOMIC_PCI_8      2

/* odp_cap: a word for each transport (odp_per_transport_service_cap). Its high
 * bits are enum ibv_odp_transport_cap_bits, from the lowest one on. */
#define MLX5SIM_CAP_ODP_RC   16 /* byte */
#define MLX5SIM_CAP_ODP_UD   24
#define MLX5SIM_CAP_ODP_XRC  28
#define MLX5SIM_CAP_ODP_DC   32
#define MLX5SIM_CAP_ODP_END  36
#define MLX5SIM_CAP_ODP_BITS 6

/* device_mem_cap: sizes in bytes; alignment counts from that of the smallest
 * piece */
#define MLX5SIM_CAP_MEMIC            MLX5SIM_FW_FIELD(0, 1)
#define MLX5SIM_CAP_LOG_MIN_MEMIC    MLX5SIM_FW_FIELD(43, 5)
#define MLX5SIM_CAP_LOG_MEMIC_ALIGN  MLX5SIM_FW_FIELD(56, 8)
#define MLX5SIM_CAP_MEMIC_BAR_SIZE   MLX5SIM_FW_FIELD(128, 32)
#define MLX5SIM_CAP_MAX_MEMIC        MLX5SIM_FW_FIELD(160, 32)
#define MLX5SIM_CAP_MEMIC_LAST       192
#define MLX5SIM_LOG_MIN_MEMIC        6

/* hca_vport_context */
/* hca_vport_context, and its command */
#define MLX5SIM_VPORT_PORT        MLX5SIM_FW_FIELD(76, 4)
#define MLX5SIM_VPORT_SYSTEM_GUID MLX5SIM_FW_FIELD(0x140, 64)
#define MLX5SIM_VPORT_PORT_GUID   MLX5SIM_FW_FIELD(0x180, 64)
#define MLX5SIM_VPORT_NODE_GUID   MLX5SIM_FW_FIELD(0x1c0, 64)
#define MLX5SIM_VPORT_OOO_SL_MASK MLX5SIM_FW_FIELD(656, 16)
#define MLX5SIM_VPORT_LID         MLX5SIM_FW_FIELD(0x300, 16)
#define MLX5SIM_VPORT_LMC         MLX5SIM_FW_FIELD(0x318, 3)
#define MLX5SIM_VPORT_SM_LID      MLX5SIM_FW_FIELD(0x320, 16)

/* query_roce_address_in and _out (roce_addr_layout) */
#define MLX5SIM_ROCE_INDEX   MLX5SIM_FW_FIELD(64, 16)
#define MLX5SIM_ROCE_PORT    MLX5SIM_FW_FIELD(92, 4)
#define MLX5SIM_ROCE_GID     16 /* byte */
#define MLX5SIM_ROCE_MAC     34
#define MLX5SIM_ROCE_L3_TYPE MLX5SIM_FW_FIELD(340, 4) /* 0: IPv4 */
#define MLX5SIM_ROCE_VERSION MLX5SIM_FW_FIELD(344, 8) /* 0: v1, 2: v2 */

/* query_lag_out */
#define MLX5SIM_LAG_STATE   MLX5SIM_FW_FIELD(93, 3)
#define MLX5SIM_LAG_REMAP_2 MLX5SIM_FW_FIELD(116, 4)
#define MLX5SIM_LAG_REMAP_1 MLX5SIM_FW_FIELD(124, 4)


int mlx5sim_fw_is_atomic_caps(unsigned op_mod)
{
    return op_mod == MLX5SIM_FW_CAP_ATOMIC_CUR;
}

/* Sizes of the atomics that are said to be atomics on PCIe. libmlx5 copies them
 * to ibv_device_attr_ex::pci_atomic_caps, and newer versions make atomic_cap of
 * a device that has fetch-add and compare-swap of 8 bytes IBV_ATOMIC_GLOB
 * (verbs.c, get_pci_atomic_caps). */
static void mlx5sim_fw_pci_atomics(unsigned which, uint8_t *caps)
{
    static const struct {
        uint8_t fadd, swap;
    } sizes[] = {
        [MLX5SIM_PCI_ATOMICS_NONE]  = {0, 0},
        [MLX5SIM_PCI_ATOMICS_FADD8] = {MLX5SIM_ATOMIC_PCI_8, 0},
        [MLX5SIM_PCI_ATOMICS_8]     = {MLX5SIM_ATOMIC_PCI_8,
                                       MLX5SIM_ATOMIC_PCI_8},
        [MLX5SIM_PCI_ATOMICS_4_8]   = {MLX5SIM_ATOMIC_PCI_4 |
                                       MLX5SIM_ATOMIC_PCI_8,
                                       MLX5SIM_ATOMIC_PCI_4 |
                                       MLX5SIM_ATOMIC_PCI_8}
    };

    mlx5sim_fw_set(caps, MLX5SIM_CAP_ATOMIC_PCI_FADD, sizes[which].fadd);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_ATOMIC_PCI_SWAP, sizes[which].swap);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_ATOMIC_PCI_CSWAP, sizes[which].swap);
}

static unsigned
mlx5sim_fw_atomic_caps(const mlx5sim_config_t *config, mlx5sim_fw_t *fw)
{
    uint8_t *caps = fw->out + MLX5SIM_FW_CAP;

    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_CAP_ATOMIC_LAST / 8) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(caps, MLX5SIM_CAP_ATOMIC_8B_MODE, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_ATOMIC_OPERATIONS,
                   config->masked_atomics ? MLX5SIM_ATOMIC_OPERATIONS :
                                            MLX5SIM_ATOMIC_UNMASKED);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_ATOMIC_SIZE_QP, MLX5SIM_ATOMIC_SIZES);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_ATOMIC_SIZE_DC, MLX5SIM_ATOMIC_SIZES);
    mlx5sim_fw_pci_atomics(config->pci_atomics, caps);
    return MLX5SIM_FW_OK;
}

/* The largest power of 2 that is not above a limit */
static unsigned mlx5sim_fw_log(unsigned limit)
{
    return (limit > 0) ? 31 - __builtin_clz(limit) : 0;
}

static unsigned
mlx5sim_fw_general_caps(const mlx5sim_config_t *config, mlx5sim_fw_t *fw)
{
    unsigned is_roce = config->link == MLX5SIM_LINK_ROCE;
    unsigned lag     = mlx5sim_lag_ports(config);
    uint8_t *caps    = fw->out + MLX5SIM_FW_CAP;

    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_CAP_LAST / 8) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(caps, MLX5SIM_CAP_HCA_CAP_2, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_QP_DATA_IN_ORDER,
                   config->data_in_order != MLX5SIM_DATA_IN_ORDER_UNKNOWN);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_QP_SZ, 15);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_QP,
                   mlx5sim_fw_log(config->max_qp));
    /* There are no options: what commands return of them stays 0 */
    mlx5sim_fw_set(caps, MLX5SIM_CAP_ECE, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_SRQ,
                   mlx5sim_fw_log(config->max_srq));
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_CQ_SZ, 22);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_CQ,
                   mlx5sim_fw_log(config->max_cq));
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_MKEY,
                   mlx5sim_fw_log(config->max_mr));
    mlx5sim_fw_set(caps, MLX5SIM_CAP_MAX_INDIRECTION, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_FIXED_BUFFER, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_DRAIN_SIGERR, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_SIGERR_CQE, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_SHO, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_BSF, MLX5SIM_FW_LOG_MAX_BSF);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_KLM,
                   MLX5SIM_FW_LOG_MAX_KLM);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_OOO_SL_MASK, !is_roce);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_RA_REQ, 4);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_RA_RES, 4);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_QPC_EXT, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_QOS, 1);
    if (mlx5sim_config_has_dc(config)) {
        mlx5sim_fw_set(caps, MLX5SIM_CAP_DCT, 1);
        mlx5sim_fw_set(caps, MLX5SIM_CAP_LAG_DCT, lag > 0);
        mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_RA_REQ_DC, 4);
        mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_RA_RES_DC, 4);
    }
    mlx5sim_fw_set(caps, MLX5SIM_CAP_DEVICE_MEMORY, config->dm);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_PORT_TYPE, is_roce);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_NUM_PORTS, config->ports);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_MSG, 30);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_CQE_VERSION, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_ROCE, is_roce);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_ATOMIC, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_PG, config->odp);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LAG_AFFINITY, lag > 0);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_INIT2_LAG, lag > 0);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_RTS2RTS_SPORT, is_roce);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_RTS2RTS_LAG, lag > 0);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LAG_MASTER, lag > 0);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_NUM_LAG_PORTS, lag);
    if (fw->out_size >= MLX5SIM_FW_CAP + MLX5SIM_CAP_LAST_RMP / 8) {
        mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_RMP,
                       mlx5sim_fw_log(config->max_srq));
    }
    if (fw->out_size >= MLX5SIM_FW_CAP + MLX5SIM_CAP_LAST_TYPES / 8) {
        mlx5sim_fw_set(caps, MLX5SIM_CAP_GENERAL_TYPES,
                       (1ull << MLX5SIM_FW_TYPE_RESERVED_QPN) |
                       (1ull << MLX5SIM_FW_TYPE_SCHED));
    }
    if (fw->out_size >= MLX5SIM_FW_CAP + MLX5SIM_CAP_LAST_SIGERR / 8) {
        mlx5sim_fw_set(caps, MLX5SIM_CAP_SIGERR_DOMAIN, 1);
    }
    if (mlx5sim_config_has_dc(config) &&
        (fw->out_size >= MLX5SIM_FW_CAP + MLX5SIM_CAP_LAST_STREAMS / 8)) {
        mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_STREAMS,
                       MLX5SIM_LOG_MAX_STREAMS);
        mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_ERRORED,
                       MLX5SIM_LOG_MAX_ERRORED);
    }
    return MLX5SIM_FW_OK;
}

static unsigned mlx5sim_fw_qos_caps(mlx5sim_fw_t *fw)
{
    uint8_t *caps = fw->out + MLX5SIM_FW_CAP;

    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_CAP_QOS_LAST / 8) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(caps, MLX5SIM_CAP_PP, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_PP_BURST, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_PP_TYPICAL, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_PP_UID, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_PP_MAX, MLX5SIM_PP_MAX_RATE);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_PP_MIN, MLX5SIM_PP_MIN_RATE);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_PP_TABLE, MLX5SIM_PP_RATES + 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_NIC_SQ_SCHED, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_NIC_SHARE, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_NIC_RATE, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_NIC_QP_SCHED, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MAX_LEAVES,
                   MLX5SIM_LOG_MAX_SCHED_LEAVES);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_MAX_SHARE, MLX5SIM_MAX_SCHED_SHARE);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_NIC_ELEMENTS, MLX5SIM_SCHED_ELEMENTS);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_NIC_TSARS, MLX5SIM_SCHED_TSARS);
    return MLX5SIM_FW_OK;
}

static unsigned mlx5sim_fw_general_caps_2(mlx5sim_fw_t *fw)
{
    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_CAP_2_LAST / 8) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(fw->out + MLX5SIM_FW_CAP, MLX5SIM_CAP_LOG_QPN_RESERVED,
                   MLX5SIM_LOG_QPN_RESERVED);
    return MLX5SIM_FW_OK;
}

static void mlx5sim_fw_set_odp(uint8_t *word, unsigned bits)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_CAP_ODP_BITS; ++i) {
        mlx5sim_fw_set(word, MLX5SIM_FW_FIELD(i, 1), (bits >> i) & 1);
    }
}

static unsigned
mlx5sim_fw_odp_caps(const mlx5sim_config_t *config, mlx5sim_fw_t *fw)
{
    uint8_t *caps = fw->out + MLX5SIM_FW_CAP;

    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_CAP_ODP_END) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set_odp(caps + MLX5SIM_CAP_ODP_RC, MLX5SIM_ODP_CAPS_RC);
    mlx5sim_fw_set_odp(caps + MLX5SIM_CAP_ODP_UD, MLX5SIM_ODP_CAPS_UD);
    mlx5sim_fw_set_odp(caps + MLX5SIM_CAP_ODP_XRC,
                       mlx5sim_config_has_xrc(config) ? MLX5SIM_ODP_CAPS_XRC :
                                                        0);
    mlx5sim_fw_set_odp(caps + MLX5SIM_CAP_ODP_DC,
                       mlx5sim_config_has_dc(config) ? MLX5SIM_ODP_CAPS_DC : 0);
    return MLX5SIM_FW_OK;
}

static unsigned mlx5sim_fw_device_mem_caps(mlx5sim_fw_t *fw)
{
    uint8_t *caps = fw->out + MLX5SIM_FW_CAP;

    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_CAP_MEMIC_LAST / 8) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(caps, MLX5SIM_CAP_MEMIC, 1);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MIN_MEMIC, MLX5SIM_LOG_MIN_MEMIC);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_LOG_MEMIC_ALIGN,
                   MLX5SIM_DM_LOG_ALIGN - MLX5SIM_LOG_MIN_MEMIC);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_MEMIC_BAR_SIZE, MLX5SIM_DM_SIZE);
    mlx5sim_fw_set(caps, MLX5SIM_CAP_MAX_MEMIC, MLX5SIM_DM_SIZE);
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_fw_query_caps(const mlx5sim_config_t *config, mlx5sim_fw_t *fw)
{
    unsigned op_mod = mlx5sim_fw_get(fw->in, MLX5SIM_FW_OP_MOD);

    if (mlx5sim_fw_is_atomic_caps(op_mod)) {
        return mlx5sim_fw_atomic_caps(config, fw);
    }

    if (MLX5SIM_FW_CAP_ODP(op_mod) && config->odp) {
        return mlx5sim_fw_odp_caps(config, fw);
    }

    if (MLX5SIM_FW_CAP_DEVICE_MEM(op_mod) && config->dm) {
        return mlx5sim_fw_device_mem_caps(fw);
    }

    if (MLX5SIM_FW_CAP_QOS(op_mod)) {
        return mlx5sim_fw_qos_caps(fw);
    }

    if (MLX5SIM_FW_CAP_GENERAL_2(op_mod)) {
        return mlx5sim_fw_general_caps_2(fw);
    }

    /* adapters have these groups; here they are all zero */
    if (MLX5SIM_FW_CAP_DEVICE_MEM(op_mod) || MLX5SIM_FW_CAP_NIC_FLOW(op_mod)) {
        return MLX5SIM_FW_OK;
    }

    return MLX5SIM_FW_CAP_GENERAL(op_mod) ?
           mlx5sim_fw_general_caps(config, fw) : MLX5SIM_FW_BAD_PARAM;
}

unsigned
mlx5sim_fw_query_vport(const mlx5sim_config_t *config, unsigned dev,
                       mlx5sim_fw_t *fw)
{
    unsigned port    = mlx5sim_fw_get(fw->in, MLX5SIM_VPORT_PORT);
    uint8_t *context = fw->out + MLX5SIM_FW_CAP;

    /* without a port, it is the function's own */
    port += port == 0;
    if ((config->link == MLX5SIM_LINK_ROCE) || (port > config->ports)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    mlx5sim_fw_set(context, MLX5SIM_VPORT_SYSTEM_GUID,
                   mlx5sim_node_guid(config, 0));
    mlx5sim_fw_set(context, MLX5SIM_VPORT_PORT_GUID,
                   mlx5sim_port_guid(config, dev, port));
    mlx5sim_fw_set(context, MLX5SIM_VPORT_NODE_GUID,
                   mlx5sim_node_guid(config, dev));
    mlx5sim_fw_set(context, MLX5SIM_VPORT_OOO_SL_MASK, config->ooo_sl_mask);
    mlx5sim_fw_set(context, MLX5SIM_VPORT_LID,
                   mlx5sim_port_lid(config, dev, port));
    mlx5sim_fw_set(context, MLX5SIM_VPORT_LMC, mlx5sim_port_lmc(config));
    mlx5sim_fw_set(context, MLX5SIM_VPORT_SM_LID, mlx5sim_port_sm_lid(config));
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_fw_query_lag(const mlx5sim_config_t *config, mlx5sim_fw_t *fw)
{
    if (mlx5sim_lag_ports(config) > 0) {
        mlx5sim_fw_set(fw->out, MLX5SIM_LAG_STATE, 1);
        mlx5sim_fw_set(fw->out, MLX5SIM_LAG_REMAP_1, 1);
        mlx5sim_fw_set(fw->out, MLX5SIM_LAG_REMAP_2, 2);
    }
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_fw_query_roce(const mlx5sim_config_t *config, unsigned dev,
                               mlx5sim_fw_t *fw)
{
    static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
    unsigned index = mlx5sim_fw_get(fw->in, MLX5SIM_ROCE_INDEX);
    unsigned port  = mlx5sim_fw_get(fw->in, MLX5SIM_ROCE_PORT);
    uint8_t gid[MLX5SIM_GID_LEN];

    /* without a port, it is the function's own */
    port += port == 0;
    if ((config->link != MLX5SIM_LINK_ROCE) || (port > config->ports) ||
        (index >= mlx5sim_gid_table_len(config, dev, port))) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    if (!mlx5sim_port_gid(config, dev, port, index, gid)) {
        return MLX5SIM_FW_OK; /* all zero: not in use */
    }

    memcpy(fw->out + MLX5SIM_ROCE_GID, gid, sizeof(gid));
    mlx5sim_gid_mac(config, gid, fw->out + MLX5SIM_ROCE_MAC);
    mlx5sim_fw_set(fw->out, MLX5SIM_ROCE_L3_TYPE,
                   memcmp(gid, ipv4, sizeof(ipv4)) != 0);
    mlx5sim_fw_set(fw->out, MLX5SIM_ROCE_VERSION,
                   mlx5sim_gid_is_roce_v2(config, index) ? 2 : 0);
    return MLX5SIM_FW_OK;
}
