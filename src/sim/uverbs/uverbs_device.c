/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/uverbs/cmd.h"
#include "sim/config/identity.h"
#include "sim/instance/instance.h"
#include "sim/limit/inject.h"
#include "sim/limit/limit.h"
#include "sim/objs/clock.h"
#include "sim/objs/store.h"
#include "sim/uar/layout.h"
#include "sim/uar/legacy.h"
#include "sim/uverbs/uverbs_chan.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

/* Limits that libmlx5 takes at open; values of a ConnectX-5 */
#define MLX5SIM_LOG_QP_TAB_SIZE 18
#define MLX5SIM_MAX_SQ_DESC     1024
#define MLX5SIM_MAX_RQ_DESC     512
#define MLX5SIM_MAX_WQEBB       32768
#define MLX5SIM_CQE_VERSION     1


/* The request is as long as the library's version of it: at first the uUARs
 * only, then flags, CQE version, capabilities (mlx5_ib_alloc_ucontext of the
 * kernel).
 * @return version of the structure, or -errno */
static int mlx5sim_context_request(const mlx5sim_cmd_t *cmd,
                                   struct mlx5_ib_alloc_ucontext_req_v2 *req_p)
{
    size_t min_v2 = offsetof(struct mlx5_ib_alloc_ucontext_req_v2,
                             max_cqe_version);

    if ((cmd->uin_size != sizeof(struct mlx5_ib_alloc_ucontext_req)) &&
        (cmd->uin_size < min_v2)) {
        return -EINVAL;
    }

    memset(req_p, 0, sizeof(*req_p));
    memcpy(req_p, cmd->uin, (cmd->uin_size < sizeof(*req_p)) ? cmd->uin_size :
                                                               sizeof(*req_p));
    if ((req_p->flags & ~MLX5_IB_ALLOC_UCTX_DEVX) || req_p->comp_mask ||
        req_p->reserved0 || req_p->reserved1 || req_p->reserved2) {
        return -EOPNOTSUPP;
    }

    /* DEVX objects are not offered, libmlx5 then asks again without */
    if (req_p->flags & MLX5_IB_ALLOC_UCTX_DEVX) {
        return -EINVAL;
    }

    return (cmd->uin_size < min_v2) ? 0 : 2;
}

static void mlx5sim_context_reply(mlx5sim_cmd_t *cmd, unsigned cqe_version)
{
    struct mlx5_ib_alloc_ucontext_resp reply = {0};

    reply.qp_tab_size       = 1 << MLX5SIM_LOG_QP_TAB_SIZE;
    /* mlx5_ib: only with mlx5_ib_dev::wc_support */
    reply.bf_reg_size       = mlx5sim_instance_config()->bf ?
                              MLX5SIM_UAR_BF_REG : 0;
    reply.tot_bfregs        = cmd->ctx->static_uuars;
    reply.cache_line_size   = 64;
    reply.max_sq_desc_sz    = MLX5SIM_MAX_SQ_DESC;
    reply.max_rq_desc_sz    = MLX5SIM_MAX_RQ_DESC;
    reply.max_send_wqebb    = MLX5SIM_MAX_WQEBB;
    reply.max_recv_wr       = MLX5SIM_MAX_WQEBB;
    reply.max_srq_recv_wr   = MLX5SIM_MAX_WQEBB - 1;
    reply.num_ports         = mlx5sim_instance_config()->ports;
    reply.response_length   = sizeof(reply);
    reply.cqe_version       = cqe_version;
    reply.cmds_supp_uhw     = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE |
                              MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
    reply.eth_min_inline    = MLX5_USER_INLINE_MODE_NONE;
    reply.log_uar_size      = MLX5SIM_UAR_PAGE_SHIFT;
    /* hca_core_clock_offset is for a page that shows the clock: not offered, as
     * where pages are larger than 4 KB */
    reply.clock_info_versions = 1 << MLX5_IB_CLOCK_INFO_V1;
    reply.num_uars_per_page = 1;
    /* 0 even if there are static ones: libmlx5 then uses the UAR object */
    reply.num_dyn_bfregs    = cmd->ctx->is_legacy ? MLX5SIM_LEGACY_DYN_UUARS :
                                                    0;
    mlx5sim_cmd_reply(cmd->uout, cmd->uout_size, &reply, sizeof(reply));
}

static int mlx5sim_cmd_get_context(mlx5sim_cmd_t *cmd)
{
    struct ib_uverbs_get_context_resp core_reply = {0};
    mlx5sim_ctx_t *ctx                           = cmd->ctx;
    struct mlx5_ib_alloc_ucontext_req_v2 req;
    int version, fd, ret;
    uint32_t chan;

    if (ctx->async_fifo != 0) {
        return -EINVAL; /* a context is made once per open */
    }

    version = mlx5sim_context_request(cmd, &req);
    if (version < 0) {
        return version;
    }

    /* libmlx5 repeats the command with shorter requests: count one fault per
     * open */
    if (ctx->fault == MLX5SIM_CONTEXT_NEW) {
        ctx->fault = mlx5sim_inject(MLX5SIM_FAULT_CONTEXT);
    }
    if (ctx->fault != 0) {
        return ctx->fault;
    }

    if ((mlx5sim_instance_config()->uar_mode == MLX5SIM_UAR_MODE_LEGACY) ||
        !(req.lib_caps & MLX5_LIB_CAP_DYN_UAR)) {
        ret = mlx5sim_legacy_open(ctx, version, req.total_num_bfregs,
                                  req.num_low_latency_bfregs);
        if (ret != 0) {
            return ret;
        }
    }

    fd = mlx5sim_uverbs_chan_create(mlx5sim_cmd_ctx_index(cmd), 1, &chan);
    if (fd < 0) {
        mlx5sim_legacy_close(ctx);
        return fd;
    }

    atomic_fetch_add(&mlx5sim_proc_self()->c.created[MLX5SIM_OBJ_CTX], 1);
    ctx->async_fifo             = chan;
    core_reply.async_fd         = fd;
    core_reply.num_comp_vectors = MLX5SIM_COMP_VECTORS;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &core_reply, sizeof(core_reply));
    mlx5sim_context_reply(cmd, (req.max_cqe_version < MLX5SIM_CQE_VERSION) ?
                               req.max_cqe_version : MLX5SIM_CQE_VERSION);
    return 0;
}

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
    attr_p->node_guid           = htobe64(mlx5sim_node_guid(ctx->dev));
    attr_p->sys_image_guid      = htobe64(mlx5sim_node_guid(0));
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
                                  IBV_DEVICE_RC_RNR_NAK_GEN;
    attr_p->max_sge             = 30;
    attr_p->max_sge_rd          = 30;
    attr_p->max_cq              = mlx5sim_limit(MLX5SIM_OBJ_CQ);
    attr_p->max_cqe             = (1 << 22) - 1;
    attr_p->max_mr              = mlx5sim_limit(MLX5SIM_OBJ_MR);
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
    reply.timestamp_mask      = MLX5SIM_CLOCK_MASK;
    reply.hca_core_clock      = MLX5SIM_CLOCK_KHZ;
    ureply.response_length    = (cmd->uout_size < sizeof(ureply)) ?
                                cmd->uout_size : sizeof(ureply);
    ureply.flags              = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;

    /* mlx5_ib_query_device() of the kernel */
    if (mlx5sim_instance_config()->cqe_compression !=
        MLX5SIM_CQE_COMPRESSION_NONE) {
        ureply.cqe_comp_caps.max_num          = MLX5SIM_ZIP_MAX;
        ureply.cqe_comp_caps.supported_format = MLX5_IB_CQE_RES_FORMAT_HASH |
                                                MLX5_IB_CQE_RES_FORMAT_CSUM;
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
    int is_down;

    if ((in->port_num == 0) || (in->port_num > config->ports)) {
        return -EINVAL;
    }

    is_down              = !!(atomic_load(&mlx5sim_store->ports_down[
                                                  cmd->ctx->dev]) &
                              (1u << in->port_num));
    reply.port_cap_flags = mlx5sim_port_cap_mask(config);
    reply.max_msg_sz     = 1u << 30;
    reply.gid_tbl_len    = mlx5sim_gid_table_len(config);
    reply.pkey_tbl_len   = mlx5sim_pkey_table_len(config);
    reply.lid            = mlx5sim_port_lid(config, cmd->ctx->dev,
                                            in->port_num);
    reply.lmc            = mlx5sim_port_lmc(config);
    reply.sm_lid         = mlx5sim_port_sm_lid(config);
    reply.state          = is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    reply.max_mtu        = IBV_MTU_4096;
    reply.active_mtu     = is_roce ? IBV_MTU_1024 : IBV_MTU_4096;
    reply.max_vl_num     = 3;
    reply.subnet_timeout = is_roce ? 0 : 18;
    reply.active_width   = model->active_width;
    reply.active_speed   = model->active_speed;
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
