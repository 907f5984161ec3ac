/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_devx.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/refuse.h>

#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <string.h>

/* mlx5 PRM, opcodes of commands (kernel mlx5_ifc.h, MLX5_CMD_OP_*) */
enum {
    MLX5SIM_FW_QUERY_HCA_CAP           = 0x100,
    MLX5SIM_FW_RST2INIT_QP             = 0x502,
    MLX5SIM_FW_RTS2RTS_QP              = 0x505,
    MLX5SIM_FW_QUERY_QP                = 0x50b,
    MLX5SIM_FW_INIT2INIT_QP            = 0x50e,
    MLX5SIM_FW_QUERY_HCA_VPORT_CONTEXT = 0x762,
    MLX5SIM_FW_QUERY_LAG               = 0x842
};

/* Status of a reply (MLX5_CMD_STAT_*) */
enum {
    MLX5SIM_FW_OK           = 0x00,
    MLX5SIM_FW_BAD_OP       = 0x02,
    MLX5SIM_FW_BAD_PARAM    = 0x03,
    MLX5SIM_FW_BAD_QP_STATE = 0x10,
    MLX5SIM_FW_BAD_OUT_LEN  = 0x51
};

/* op_mod of QUERY_HCA_CAP: the group, and whether current values are asked for
 * or the largest possible */
#define MLX5SIM_FW_CAP_GENERAL(_op_mod) (((_op_mod) >> 1) == 0)
#define MLX5SIM_FW_CAP_ATOMIC_CUR       ((3 << 1) | 1)

/* qpc.state and qpc.st (MLX5_QP_STATE_*, MLX5_QP_ST_*) by ours */
static const uint8_t mlx5sim_fw_qp_states[] = {
    [MLX5SIM_QPS_RESET] = 0, [MLX5SIM_QPS_INIT] = 1, [MLX5SIM_QPS_RTR] = 2,
    [MLX5SIM_QPS_RTS]   = 3, [MLX5SIM_QPS_SQE]  = 4, [MLX5SIM_QPS_SQD] = 5,
    [MLX5SIM_QPS_ERR]   = 6
};
static const uint8_t mlx5sim_fw_qp_types[] = {
    [MLX5SIM_QPT_RC] = 0, [MLX5SIM_QPT_UC] = 1, [MLX5SIM_QPT_UD] = 2
};

/* opt_param_mask of INIT2INIT and RTS2RTS (MLX5_QPC_OPT_MASK_RTS2RTS_
 * LAG_TX_PORT_AFFINITY): the only one that is taken here */
#define MLX5SIM_FW_OPT_LAG (1u << 15)

/* Place of a field in a command, in a reply or in what these contain: first
 * bit and number of bits, high ones first, as in mlx5_ifc.h of the kernel and
 * of rdma-core */
typedef struct mlx5sim_fw_field {
    uint16_t offset;
    uint8_t  width;
} mlx5sim_fw_field_t;

#define MLX5SIM_FW_FIELD(_name, _offset, _width) \
    static const mlx5sim_fw_field_t mlx5sim_fw_##_name = {_offset, _width}

/* any command and reply */
MLX5SIM_FW_FIELD(opcode,      0,  16);
MLX5SIM_FW_FIELD(op_mod,      48, 16);
MLX5SIM_FW_FIELD(in_qpn,      72, 24);
MLX5SIM_FW_FIELD(in_opt_mask, 128, 32);
MLX5SIM_FW_FIELD(status,      0,  8);
#define MLX5SIM_FW_HEADER 16  /* bytes of the shortest */
#define MLX5SIM_FW_CAP    16  /* bytes in front of the capabilities, and of the
                                 vport context */
#define MLX5SIM_FW_QPC    24  /* in front of the QPC in query_qp_out, and in
                                 commands that modify a QP */

/* qpc */
#define MLX5SIM_FW_QPC_SIZE 232
MLX5SIM_FW_FIELD(qpc_state,         0,    4);
MLX5SIM_FW_FIELD(qpc_lag,           4,    4);
MLX5SIM_FW_FIELD(qpc_st,            8,    8);
MLX5SIM_FW_FIELD(qpc_pd,            40,   24);
MLX5SIM_FW_FIELD(qpc_mtu,           64,   3);
MLX5SIM_FW_FIELD(qpc_data_in_order, 90,   1);
MLX5SIM_FW_FIELD(qpc_user_index,    136,  24);
MLX5SIM_FW_FIELD(qpc_remote_qpn,    168,  24);
MLX5SIM_FW_FIELD(qpc_retry_count,   909,  3);
MLX5SIM_FW_FIELD(qpc_rnr_retry,     912,  3);
MLX5SIM_FW_FIELD(qpc_rre,           1168, 1);
MLX5SIM_FW_FIELD(qpc_rwe,           1169, 1);
MLX5SIM_FW_FIELD(qpc_rae,           1170, 1);
MLX5SIM_FW_FIELD(qpc_q_key,         1344, 32);

/* cmd_hca_cap */
MLX5SIM_FW_FIELD(cap_qp_data_in_order, 98,  1);
MLX5SIM_FW_FIELD(cap_ooo_sl_mask,      312, 1);
MLX5SIM_FW_FIELD(cap_rts2rts_lag,      338, 1);
MLX5SIM_FW_FIELD(cap_port_type,        438, 2);
MLX5SIM_FW_FIELD(cap_num_ports,        440, 8);
MLX5SIM_FW_FIELD(cap_log_max_msg,      451, 5);
MLX5SIM_FW_FIELD(cap_init2_lag,        504, 1);
MLX5SIM_FW_FIELD(cap_cqe_version,      508, 4);
MLX5SIM_FW_FIELD(cap_roce,             541, 1);
MLX5SIM_FW_FIELD(cap_atomic,           542, 1);
MLX5SIM_FW_FIELD(cap_lag_affinity,     632, 1);
MLX5SIM_FW_FIELD(cap_lag_master,       635, 1);
MLX5SIM_FW_FIELD(cap_num_lag_ports,    636, 4);
#define MLX5SIM_FW_CAP_LAST 640

/* atomic_caps */
MLX5SIM_FW_FIELD(atomic_8b_mode,     64,  2);   /* 1: host order */
MLX5SIM_FW_FIELD(atomic_operations,  144, 16);
MLX5SIM_FW_FIELD(atomic_size_qp,     176, 16);
MLX5SIM_FW_FIELD(atomic_pci_fadd,    640, 16);
MLX5SIM_FW_FIELD(atomic_pci_swap,    656, 16);
MLX5SIM_FW_FIELD(atomic_pci_cswap,   672, 16);
#define MLX5SIM_FW_ATOMIC_LAST 688
/* compare-swap, fetch-add, masked compare-swap, masked fetch-add */
#define MLX5SIM_ATOMIC_OPERATIONS 0xf
#define MLX5SIM_ATOMIC_UNMASKED   0x3
/* set of sizes in bytes: 4 and 8 */
#define MLX5SIM_ATOMIC_SIZES      0xc
/* sets of sizes of atomics on PCIe, enum ibv_pci_atomic_op_size */
#define MLX5SIM_ATOMIC_PCI_4      1
#define MLX5SIM_ATOMIC_PCI_8      2

/* hca_vport_context */
MLX5SIM_FW_FIELD(vport_ooo_sl_mask, 656, 16);
#define MLX5SIM_FW_VPORT_LAST 672

/* query_lag_out */
MLX5SIM_FW_FIELD(lag_state,   93,  3);
MLX5SIM_FW_FIELD(lag_remap_2, 116, 4);
MLX5SIM_FW_FIELD(lag_remap_1, 124, 4);

/* A command: what the program wrote, and where the reply goes */
typedef struct mlx5sim_fw {
    const uint8_t *in;
    size_t        in_size;
    uint8_t       *out;
    size_t        out_size;
} mlx5sim_fw_t;


static void
mlx5sim_fw_set(uint8_t *base, mlx5sim_fw_field_t field, uint32_t value)
{
    unsigned bit, i;

    for (i = 0; i < field.width; ++i) {
        bit = field.offset + field.width - 1 - i;
        if ((value >> i) & 1) {
            base[bit / 8] |= 0x80 >> (bit % 8);
        }
    }
}

static uint32_t mlx5sim_fw_get(const uint8_t *base, mlx5sim_fw_field_t field)
{
    uint32_t value = 0;
    unsigned bit, i;

    for (i = 0; i < field.width; ++i) {
        bit   = field.offset + i;
        value = (value << 1) | ((base[bit / 8] >> (7 - bit % 8)) & 1);
    }
    return value;
}

/* @return 0 or -errno */
static int mlx5sim_fw_init(mlx5sim_fw_t *fw, struct ib_uverbs_ioctl_hdr *hdr,
                           uint16_t in_id, uint16_t out_id)
{
    const struct ib_uverbs_attr *in  = mlx5sim_attr_find(hdr, in_id);
    const struct ib_uverbs_attr *out = mlx5sim_attr_find(hdr, out_id);

    if ((in == NULL) || (out == NULL) || (in->len < MLX5SIM_FW_HEADER) ||
        (out->len < MLX5SIM_FW_HEADER)) {
        return -EINVAL;
    }

    fw->in       = mlx5sim_attr_in(in);
    fw->in_size  = in->len;
    fw->out      = mlx5sim_attr_out(out);
    fw->out_size = out->len;
    memset(fw->out, 0, fw->out_size);
    return 0;
}

/* End a command as firmware does. @return 0 or -EREMOTEIO */
static int mlx5sim_fw_done(mlx5sim_fw_t *fw, unsigned status)
{
    mlx5sim_fw_set(fw->out, mlx5sim_fw_status, status);
    return (status == MLX5SIM_FW_OK) ? 0 : -EREMOTEIO;
}

/* Sizes of the atomics that are said to be atomics on PCIe. libmlx5 copies them
 * to ibv_device_attr_ex::pci_atomic_caps, and newer versions make atomic_cap of
 * a device that has fetch-add and compare-swap of 8 bytes IBV_ATOMIC_GLOB
 * (verbs.c, get_pci_atomic_caps). */
static void mlx5sim_fw_pci_atomics(uint8_t *caps)
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
    unsigned which = mlx5sim_instance_config()->pci_atomics;

    mlx5sim_fw_set(caps, mlx5sim_fw_atomic_pci_fadd, sizes[which].fadd);
    mlx5sim_fw_set(caps, mlx5sim_fw_atomic_pci_swap, sizes[which].swap);
    mlx5sim_fw_set(caps, mlx5sim_fw_atomic_pci_cswap, sizes[which].swap);
}

/* @return status */
static unsigned mlx5sim_fw_query_atomic_caps(mlx5sim_fw_t *fw)
{
    uint8_t *caps = fw->out + MLX5SIM_FW_CAP;

    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_FW_ATOMIC_LAST / 8) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(caps, mlx5sim_fw_atomic_8b_mode, 1);
    mlx5sim_fw_set(caps, mlx5sim_fw_atomic_operations,
                   mlx5sim_instance_config()->masked_atomics ?
                   MLX5SIM_ATOMIC_OPERATIONS : MLX5SIM_ATOMIC_UNMASKED);
    mlx5sim_fw_set(caps, mlx5sim_fw_atomic_size_qp, MLX5SIM_ATOMIC_SIZES);
    mlx5sim_fw_pci_atomics(caps);
    return MLX5SIM_FW_OK;
}

/* What is not set here, the device can't do. @return status */
static unsigned mlx5sim_fw_query_caps(mlx5sim_fw_t *fw)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    unsigned is_roce               = config->link == MLX5SIM_LINK_ROCE;
    unsigned lag                   = mlx5sim_lag_ports(config);
    uint8_t *caps                  = fw->out + MLX5SIM_FW_CAP;

    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_FW_CAP_LAST / 8) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(caps, mlx5sim_fw_cap_qp_data_in_order,
                   config->data_in_order != MLX5SIM_DATA_IN_ORDER_UNKNOWN);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_ooo_sl_mask, !is_roce);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_port_type, is_roce);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_num_ports, config->ports);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_log_max_msg, 30);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_cqe_version, 1);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_roce, is_roce);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_atomic, 1);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_lag_affinity, lag > 0);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_init2_lag, lag > 0);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_rts2rts_lag, lag > 0);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_lag_master, lag > 0);
    mlx5sim_fw_set(caps, mlx5sim_fw_cap_num_lag_ports, lag);
    return MLX5SIM_FW_OK;
}

/* @return status */
static unsigned mlx5sim_fw_query_vport(mlx5sim_fw_t *fw)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();

    if (config->link == MLX5SIM_LINK_ROCE) {
        return MLX5SIM_FW_BAD_PARAM;
    }
    if (fw->out_size < MLX5SIM_FW_CAP + MLX5SIM_FW_VPORT_LAST / 8) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(fw->out + MLX5SIM_FW_CAP, mlx5sim_fw_vport_ooo_sl_mask,
                   config->ooo_sl_mask);
    return MLX5SIM_FW_OK;
}

/* All ports of the LAG are up: each sends for itself. @return status */
static unsigned mlx5sim_fw_query_lag(mlx5sim_fw_t *fw)
{
    if (mlx5sim_lag_ports(mlx5sim_instance_config()) > 0) {
        mlx5sim_fw_set(fw->out, mlx5sim_fw_lag_state, 1);
        mlx5sim_fw_set(fw->out, mlx5sim_fw_lag_remap_1, 1);
        mlx5sim_fw_set(fw->out, mlx5sim_fw_lag_remap_2, 2);
    }
    return MLX5SIM_FW_OK;
}

int mlx5sim_devx_other(const mlx5sim_ctx_t *ctx,
                       struct ib_uverbs_ioctl_hdr *hdr)
{
    unsigned opcode, op_mod;
    mlx5sim_fw_t fw;
    int ret;

    ret = mlx5sim_fw_init(&fw, hdr, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN,
                          MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);
    if (ret != 0) {
        return ret;
    }

    opcode = mlx5sim_fw_get(fw.in, mlx5sim_fw_opcode);
    op_mod = mlx5sim_fw_get(fw.in, mlx5sim_fw_op_mod);
    if ((opcode == MLX5SIM_FW_QUERY_HCA_CAP) &&
        (op_mod == MLX5SIM_FW_CAP_ATOMIC_CUR)) {
        return mlx5sim_fw_done(&fw, mlx5sim_fw_query_atomic_caps(&fw));
    }

    if (!mlx5sim_instance_config()->devx) {
        return mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    }

    /* kernel, devx_is_whitelist_cmd(): these need no DEVX context */
    if ((opcode == MLX5SIM_FW_QUERY_HCA_CAP) &&
        MLX5SIM_FW_CAP_GENERAL(op_mod)) {
        return mlx5sim_fw_done(&fw, mlx5sim_fw_query_caps(&fw));
    } else if (opcode == MLX5SIM_FW_QUERY_HCA_VPORT_CONTEXT) {
        return mlx5sim_fw_done(&fw, mlx5sim_fw_query_vport(&fw));
    } else if (!ctx->has_devx) {
        return (opcode == MLX5SIM_FW_QUERY_HCA_CAP) ?
               mlx5sim_fw_done(&fw, MLX5SIM_FW_BAD_PARAM) : -EINVAL;
    } else if (opcode == MLX5SIM_FW_QUERY_LAG) {
        return mlx5sim_fw_done(&fw, mlx5sim_fw_query_lag(&fw));
    }

    (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    return mlx5sim_fw_done(&fw, (opcode == MLX5SIM_FW_QUERY_HCA_CAP) ?
                                MLX5SIM_FW_BAD_PARAM : MLX5SIM_FW_BAD_OP);
}

/* The command on a queue pair and the queue pair. The number in the command has
 * to be that of the object (kernel, devx_is_valid_obj_id()).
 * @return 0 or -errno */
static int
mlx5sim_devx_qp(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr,
                uint16_t handle_id, uint16_t in_id, uint16_t out_id,
                mlx5sim_fw_t *fw, mlx5sim_qp_obj_t **qp_p)
{
    const struct ib_uverbs_attr *handle = mlx5sim_attr_find(hdr, handle_id);
    mlx5sim_qp_obj_t *qp;

    if ((handle == NULL) || (mlx5sim_fw_init(fw, hdr, in_id, out_id) != 0)) {
        return -EINVAL;
    }

    qp = mlx5sim_obj_mine(MLX5SIM_OBJ_QP, handle->data,
                          mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    if (qp == NULL) {
        return -ENOENT;
    }

    *qp_p = qp;
    return (mlx5sim_fw_get(fw->in, mlx5sim_fw_in_qpn) == qp->qp.qpn) ? 0 :
                                                                       -EINVAL;
}

int mlx5sim_devx_query(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    mlx5sim_qp_obj_t *qp;
    mlx5sim_fw_t fw;
    uint8_t *qpc;
    int ret;

    ret = mlx5sim_devx_qp(ctx, hdr, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE,
                          MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
                          MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, &fw, &qp);
    if (ret != 0) {
        return ret;
    }

    if (mlx5sim_fw_get(fw.in, mlx5sim_fw_opcode) != MLX5SIM_FW_QUERY_QP) {
        return -EINVAL;
    }
    if (fw.out_size < MLX5SIM_FW_QPC + MLX5SIM_FW_QPC_SIZE) {
        return mlx5sim_fw_done(&fw, MLX5SIM_FW_BAD_OUT_LEN);
    }

    qpc = fw.out + MLX5SIM_FW_QPC;
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_state,
                   mlx5sim_fw_qp_states[qp->qp.state]);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_lag, qp->lag_port);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_st, mlx5sim_fw_qp_types[qp->qp.type]);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_pd, qp->qp.pdn);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_mtu, qp->qp.path_mtu);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_data_in_order,
                   (mlx5sim_instance_config()->data_in_order !=
                    MLX5SIM_DATA_IN_ORDER_UNKNOWN) &&
                   mlx5sim_sl_is_in_order(mlx5sim_instance_config(),
                                          qp->qp.sl));
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_user_index, qp->qp.uidx);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_remote_qpn, qp->qp.dest_qpn);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_retry_count, qp->qp.retry_cnt);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_rnr_retry, qp->qp.rnr_retry);
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_rre,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_READ));
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_rwe,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_WRITE));
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_rae,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_ATOMIC));
    mlx5sim_fw_set(qpc, mlx5sim_fw_qpc_q_key, qp->qp.qkey);
    return mlx5sim_fw_done(&fw, MLX5SIM_FW_OK);
}

/* Bind a queue pair to a port of the LAG. @return status */
static unsigned
mlx5sim_fw_set_lag_port(const mlx5sim_fw_t *fw, mlx5sim_qp_obj_t *qp,
                        unsigned state)
{
    uint32_t mask = mlx5sim_fw_get(fw->in, mlx5sim_fw_in_opt_mask);
    unsigned port;

    if (qp->qp.state != state) {
        return MLX5SIM_FW_BAD_QP_STATE;
    }

    if ((fw->in_size < MLX5SIM_FW_QPC + MLX5SIM_FW_QPC_SIZE) ||
        (mask & ~MLX5SIM_FW_OPT_LAG)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    if (mask & MLX5SIM_FW_OPT_LAG) {
        port = mlx5sim_fw_get(fw->in + MLX5SIM_FW_QPC, mlx5sim_fw_qpc_lag);
        if (port > mlx5sim_lag_ports(mlx5sim_instance_config())) {
            return MLX5SIM_FW_BAD_PARAM;
        }
        qp->lag_port = port;
    }

    return MLX5SIM_FW_OK;
}

int mlx5sim_devx_modify(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    mlx5sim_qp_obj_t *qp;
    mlx5sim_fw_t fw;
    int ret;

    ret = mlx5sim_devx_qp(ctx, hdr, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE,
                          MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
                          MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, &fw, &qp);
    if (ret != 0) {
        return ret;
    }

    if (fw.in_size < MLX5SIM_FW_QPC) {
        return -EINVAL;
    }

    switch (mlx5sim_fw_get(fw.in, mlx5sim_fw_opcode)) {
    case MLX5SIM_FW_INIT2INIT_QP:
        return mlx5sim_fw_done(&fw, mlx5sim_fw_set_lag_port(&fw, qp,
                                                            MLX5SIM_QPS_INIT));
    case MLX5SIM_FW_RTS2RTS_QP:
        return mlx5sim_fw_done(&fw, mlx5sim_fw_set_lag_port(&fw, qp,
                                                            MLX5SIM_QPS_RTS));
    default:
        (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
        return mlx5sim_fw_done(&fw, MLX5SIM_FW_BAD_OP);
    }
}

int mlx5sim_devx_create(struct ib_uverbs_ioctl_hdr *hdr)
{
    mlx5sim_fw_t fw;
    int ret;

    ret = mlx5sim_fw_init(&fw, hdr, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
                          MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT);
    if (ret != 0) {
        return ret;
    }

    (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    return mlx5sim_fw_done(&fw, MLX5SIM_FW_BAD_OP);
}
