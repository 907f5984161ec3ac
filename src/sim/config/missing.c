/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/missing.h>

static const mlx5sim_missing_row_t
mlx5sim_missing_rows[MLX5SIM_MISSING_LAST] = {
    [MLX5SIM_MISSING_XRC]         = {
        "XRC between nodes and processes", "extended reliable connections to "
        "other nodes, and SRQs and targets of other processes",
        "`ibv_modify_qp` of `IBV_QPT_XRC_*`, `ibv_open_qp`", 0},
    [MLX5SIM_MISSING_DC]          = {
        "DC", "dynamically connected transport, without MLX5SIM_DC, or with a "
        "wire",
        "`mlx5dv_create_qp` with `MLX5DV_QP_INIT_ATTR_MASK_DC`", 1},
    [MLX5SIM_MISSING_RAW_PACKET]  = {
        "raw packets", "queue pairs for Ethernet frames",
        "`IBV_QPT_RAW_PACKET`", 0},
    [MLX5SIM_MISSING_QP_OPTIONS]  = {
        "options of queue pairs", "offloads and other flags, beyond scattering "
        "to CQEs", "`create_flags` of "
        "`ibv_create_qp_ex` and `mlx5dv_create_qp`", 0},
    [MLX5SIM_MISSING_SIGNATURE]   = {
        "signatures", "WQEs with checksums", "`MLX5_QP_SIGNATURE`, "
        "`MLX5_SRQ_SIGNATURE` of the environment", 0},
    [MLX5SIM_MISSING_CQ_OPTIONS]  = {
        "options of completion queues", "flags other than to ignore overruns",
        "`ibv_create_cq_ex`", 0},
    [MLX5SIM_MISSING_CQ_RESIZE]   = {
        "resizing with compression", "another length for a completion queue "
        "whose CQEs are compressed", "`ibv_resize_cq`", 0},
    [MLX5SIM_MISSING_ODP]         = {
        "on-demand paging", "registered memory that is not pinned, without "
        "MLX5SIM_ODP",
        "`IBV_ACCESS_ON_DEMAND`, `ibv_advise_mr`", 0},
    [MLX5SIM_MISSING_ZERO_BASED]  = {
        "zero-based regions", "addresses that count from the start of the "
        "memory region", "`IBV_ACCESS_ZERO_BASED`", 0},
    [MLX5SIM_MISSING_DMABUF]      = {
        "dma-buf that can't be mapped", "memory of devices whose drivers don't "
        "let a process map it, and of huge pages",
        "`ibv_reg_dmabuf_mr`, `mlx5dv_devx_umem_reg_ex`", 0},
    [MLX5SIM_MISSING_DM]          = {
        "device memory", "memory on the adapter, without MLX5SIM_DM; addresses "
        "at which it does operations, and memory for steering",
        "`ibv_alloc_dm`, `mlx5dv_dm_map_op_addr`, `mlx5dv_alloc_dm`", 0},
    [MLX5SIM_MISSING_IMPORT]      = {
        "imported devices", "a context of another process, or with static "
        "UARs; XRC by an imported one", "`ibv_import_device`", 0},
    [MLX5SIM_MISSING_FORK]        = {
        "devices of a parent", "commands of a child of fork on what its parent "
        "has opened, other than to ask for attributes, and to take and free "
        "device memory",
        "`fork`", 0},
    [MLX5SIM_MISSING_TM]          = {
        "tag matching", "in hardware", "`IBV_SRQT_TM`", 0},
    [MLX5SIM_MISSING_MCAST]       = {
        "multicast", "datagrams to groups of queue pairs",
        "`ibv_attach_mcast`, `rdma_join_multicast`", 0},
    [MLX5SIM_MISSING_CM_WIRE]     = {
        "connection manager between nodes", "connections of rdma_cm to who is "
        "not in the instance, other than those of RDMA_PS_TCP and RDMA_PS_UDP, "
        "and to IPv6 addresses of InfiniBand", "`rdma_resolve_addr`", 0},
    [MLX5SIM_MISSING_FLOW]        = {
        "flow steering", "rules for who gets which frames",
        "`ibv_create_flow`, `mlx5dv_create_flow`", 0},
    [MLX5SIM_MISSING_WQ]          = {
        "work queues", "receive queues apart from queue pairs, and spreading "
        "over them", "`ibv_create_wq`, `ibv_create_rwq_ind_table`", 0},
    [MLX5SIM_MISSING_COUNTERS]    = {
        "counters", "of what flow rules match", "`ibv_create_counters`", 0},
    [MLX5SIM_MISSING_PACING]      = {
        "packet pacing", "rate limits of send queues, and their table without "
        "MLX5SIM_DEVX",
        "`ibv_modify_qp_rate_limit`, `mlx5dv_pp_alloc`", 0},
    [MLX5SIM_MISSING_DEVX]        = {
        "DEVX", "firmware commands, beyond asking for atomics and those "
        "of MLX5SIM_DEVX",
        "`mlx5dv_devx_*`", 1},
};


const mlx5sim_missing_row_t *mlx5sim_missing_row(mlx5sim_missing_t missing)
{
    return &mlx5sim_missing_rows[missing];
}

void mlx5sim_missing_print(FILE *stream)
{
    const mlx5sim_missing_row_t *row;
    unsigned i;

    fprintf(stream, "| not emulated | what it is | asked for by |\n"
                    "|---|---|---|\n");
    for (i = 0; i < MLX5SIM_MISSING_LAST; ++i) {
        row = &mlx5sim_missing_rows[i];
        fprintf(stream, "| %s%s | %s | %s |\n", row->name,
                row->is_probed ? " *" : "", row->what, row->asked);
    }
}
