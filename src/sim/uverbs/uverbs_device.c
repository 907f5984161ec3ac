/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/cmd.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/limit/limit.h>
#include <sim/objs/clock.h>
#include <sim/objs/store.h>
#include <sim/uverbs/uverbs_context.h>
#include <sim/uverbs/uverbs_dm.h>
#include <sim/uverbs/uverbs_odp.h>

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

/* Limit of a ConnectX-5 */
#define MLX5SIM_MAX_WQEBB 32768


static void mlx5sim_device_attr(const mlx5sim_ctx_t *ctx,
                                struct ib_uverbs_query_device_resp *attr_p)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    const mlx5sim_model_t *model   = mlx5sim_model_get(config->model);
    uint16_t fw[3];

    memset(attr_p, 0, sizeof(*attr_p));
    mlx5sim_fw_version(config, fw);
    attr_p->fw_ver              = ((uint64_t)fw[0] << 32) |
                                  ((uint32_t)fw[1] << 16) | fw[2];
    attr_p->node_guid           = htobe64(mlx5sim_node_guid(config, ctx->dev));
    attr_p->sys_image_guid      = htobe64(mlx5sim_node_guid(config, 0));
    attr_p->max_mr_size         = ~0ul;
    attr_p->page_size_cap       = ~0xffful;
    attr_p->vendor_id           = 0x02c9;
    attr_p->vendor_part_id      = model->pci_device;
    attr_p->max_qp              = mlx5sim_limit(MLX5SIM_OBJ_QP);
    attr_p->max_qp_wr           = MLX5SIM_MAX_WQEBB;
    attr_p->device_cap_flags    = IBV_DEVICE_BAD_PKEY_CNTR |
                                  IBV_DEVICE_BAD_QKEY_CNTR |
                                  IBV_DEVICE_CHANGE_PHY_PORT |
                                  IBV_DEVICE_PORT_ACTIVE_EVENT |
                                  IBV_DEVICE_SYS_IMAGE_GUID |
                                  IBV_DEVICE_RC_RNR_NAK_GEN |
                                  IBV_DEVICE_MEM_WINDOW |
                                  IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    attr_p->device_cap_flags   |= mlx5sim_config_has_xrc(config) ?
                                  IBV_DEVICE_XRC : 0;
    attr_p->max_sge             = 30;
    attr_p->max_sge_rd          = 30;
    attr_p->max_cq              = mlx5sim_limit(MLX5SIM_OBJ_CQ);
    attr_p->max_cqe             = (1 << 22) - 1;
    attr_p->max_mr              = mlx5sim_limit(MLX5SIM_OBJ_MR);
    attr_p->max_mw              = attr_p->max_mr; /* of the same keys */
    attr_p->max_pd              = mlx5sim_limit(MLX5SIM_OBJ_PD);
    attr_p->max_qp_rd_atom      = 16;
    attr_p->max_qp_init_rd_atom = 16;
    attr_p->max_res_rd_atom     = attr_p->max_qp_rd_atom * attr_p->max_qp;
    attr_p->atomic_cap          = IBV_ATOMIC_HCA;
    attr_p->max_ah              = 0x7fffffff;
    attr_p->max_srq             = mlx5sim_limit(MLX5SIM_OBJ_SRQ);
    attr_p->max_srq_wr          = MLX5SIM_MAX_WQEBB - 1;
    attr_p->max_srq_sge         = 31;
    attr_p->max_pkeys           = mlx5sim_pkey_table_len(config);
    attr_p->local_ca_ack_delay  = 16;
    attr_p->phys_port_cnt       = config->ports;
}

static int mlx5sim_cmd_query_device(mlx5sim_cmd_t *cmd)
{
    struct ib_uverbs_query_device_resp reply;

    mlx5sim_device_attr(cmd->ctx, &reply);
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

static int mlx5sim_cmd_ex_query_device(mlx5sim_cmd_t *cmd)
{
    struct ib_uverbs_ex_query_device_resp reply = {.comp_mask = 0};
    struct mlx5_ib_query_device_resp ureply     = {.comp_mask = 0};

    mlx5sim_device_attr(cmd->ctx, &reply.base);
    reply.response_length     = (cmd->out_size < sizeof(reply)) ?
                                cmd->out_size : sizeof(reply);
    reply.device_cap_flags_ex = reply.base.device_cap_flags;
    mlx5sim_odp_caps(&reply);
    reply.timestamp_mask      = MLX5SIM_CLOCK_MASK;
    reply.hca_core_clock      = MLX5SIM_CLOCK_KHZ;
    reply.max_dm_size         = mlx5sim_dm_max();
    ureply.response_length    = (cmd->uout_size < sizeof(ureply)) ?
                                cmd->uout_size : sizeof(ureply);
    ureply.flags              = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;

    /* mlx5_ib_query_device() of the kernel */
    if (mlx5sim_config_has_dc(mlx5sim_instance_config())) {
        ureply.dci_streams_caps.max_log_num_concurent = MLX5SIM_LOG_MAX_STREAMS;
        ureply.dci_streams_caps.max_log_num_errored   = MLX5SIM_LOG_MAX_ERRORED;
    }

    if (mlx5sim_instance_config()->cqe_compression !=
        MLX5SIM_CQE_COMPRESSION_NONE) {
        ureply.cqe_comp_caps.max_num          = MLX5SIM_ZIP_MAX;
        ureply.cqe_comp_caps.supported_format =
                MLX5_IB_CQE_RES_FORMAT_HASH | MLX5_IB_CQE_RES_FORMAT_CSUM |
                MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX;
        if (mlx5sim_instance_config()->cqe_compression !=
            MLX5SIM_CQE_COMPRESSION_64) {
            ureply.flags |= MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP;
        }
    }

    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    mlx5sim_cmd_reply(cmd->uout, cmd->uout_size, &ureply, sizeof(ureply));
    return 0;
}

static int mlx5sim_cmd_query_port(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_query_port *in  = cmd->in;
    const mlx5sim_config_t *config         = mlx5sim_instance_config();
    const mlx5sim_model_t *model           = mlx5sim_model_get(config->model);
    int is_roce                            = config->link == MLX5SIM_LINK_ROCE;
    struct ib_uverbs_query_port_resp reply = {0};
    uint32_t speed;
    int is_down;

    if ((in->port_num == 0) || (in->port_num > config->ports)) {
        return -EINVAL;
    }

    is_down              = !!(atomic_load(&mlx5sim_store->ports_down[
                                                  cmd->ctx->dev]) &
                              (1u << in->port_num));
    reply.port_cap_flags = mlx5sim_port_cap_mask(config, cmd->ctx->dev,
                                                 in->port_num);
    reply.max_msg_sz     = 1u << 30;
    reply.gid_tbl_len    = mlx5sim_gid_table_len(config, cmd->ctx->dev,
                                                 in->port_num);
    reply.pkey_tbl_len   = mlx5sim_pkey_table_len(config);
    reply.lid            = mlx5sim_port_lid(config, cmd->ctx->dev,
                                            in->port_num);
    reply.lmc            = mlx5sim_port_lmc(config);
    reply.sm_lid         = mlx5sim_port_sm_lid(config);
    reply.state          = is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    reply.max_mtu        = IBV_MTU_4096;
    reply.active_mtu     = mlx5sim_port_mtu(config, cmd->ctx->dev,
                                            in->port_num);
    reply.max_vl_num     = 3;
    reply.subnet_timeout = is_roce ? 0 : 18;
    speed                = atomic_load(&mlx5sim_store->speeds[cmd->ctx->dev]
                                               [in->port_num - 1]);
    reply.active_width   = (speed != 0) ? speed >> 8 : model->active_width;
    reply.active_speed   = (speed != 0) ? speed & 0xff : model->active_speed;
    reply.phys_state     = is_down ? 3 : 5; /* Disabled, LinkUp */
    reply.link_layer     = is_roce ? IBV_LINK_LAYER_ETHERNET :
                                     IBV_LINK_LAYER_INFINIBAND;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

const mlx5sim_cmd_desc_t mlx5sim_cmds_device[] = {
    {IB_USER_VERBS_CMD_GET_CONTEXT, "GET_CONTEXT", 8,
     sizeof(struct mlx5_ib_alloc_ucontext_req), 8, 0, mlx5sim_cmd_get_context,
     MLX5SIM_FAULT_NONE},
    {IB_USER_VERBS_CMD_QUERY_DEVICE, "QUERY_DEVICE", 8, 0,
     sizeof(struct ib_uverbs_query_device_resp), 0, mlx5sim_cmd_query_device,
     MLX5SIM_FAULT_QUERY_DEVICE},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
     "EX_QUERY_DEVICE", 8, 0, sizeof(struct ib_uverbs_query_device_resp), 0,
     mlx5sim_cmd_ex_query_device,
     MLX5SIM_FAULT_QUERY_DEVICE},
    {IB_USER_VERBS_CMD_QUERY_PORT, "QUERY_PORT",
     sizeof(struct ib_uverbs_query_port), 0,
     sizeof(struct ib_uverbs_query_port_resp), 0, mlx5sim_cmd_query_port,
     MLX5SIM_FAULT_QUERY_PORT},
    {0, NULL, 0, 0, 0, 0, NULL, MLX5SIM_FAULT_NONE}
};
