/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_sched.h>
#include <sim/config/config.h>
#include <sim/reap/reap.h>

/* scheduling_hierarchy, element_type, tsar_type (libmlx5's mlx5_ifc.h,
 * MLX5_SCHED_*) */
enum {
    MLX5SIM_SCHED_NIC  = 3,
    MLX5SIM_SCHED_NODE = 0, /* TSAR */
    MLX5SIM_SCHED_LEAF = 4, /* QUEUE_GROUP */
    MLX5SIM_SCHED_DWRR = 0
};

/* modify_field_select (MLX5DV_SCHED_ELEM_ATTR_FLAGS_*) */
enum {
    MLX5SIM_SCHED_SHARE = 1 << 0,
    MLX5SIM_SCHED_MAX   = 1 << 1,
    MLX5SIM_SCHED_ALL   = MLX5SIM_SCHED_SHARE | MLX5SIM_SCHED_MAX
};


static mlx5sim_general_t *
mlx5sim_sched_find(const mlx5sim_devx_t *devx, uint32_t id, uint32_t element)
{
    mlx5sim_general_t *general;

    general = mlx5sim_obj_mine(MLX5SIM_OBJ_GENERAL, id,
                               mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx));
    return ((general != NULL) &&
            (general->type == MLX5SIM_FW_TYPE_SCHED) &&
            (general->sched.element == element)) ? general : NULL;
}

static void mlx5sim_sched_refs_add(uint32_t id, int diff)
{
    mlx5sim_general_t *general = mlx5sim_obj_at(MLX5SIM_OBJ_GENERAL, id);

    if (id != 0) {
        atomic_fetch_add(&general->refs, diff);
    }
}

/* A root has neither a share nor a limit (mlx5dv_sched_node_create(3)) */
static int mlx5sim_sched_is_valid(const mlx5sim_sched_t *sched)
{
    return (sched->share <= MLX5SIM_MAX_SCHED_SHARE) &&
           ((sched->parent != 0) ||
            ((sched->element == MLX5SIM_SCHED_NODE) && (sched->share == 0) &&
             (sched->max == 0)));
}

/* Leaves of a device */
static unsigned mlx5sim_sched_leaves(uint32_t dev)
{
    uint32_t high  = atomic_load(
            &mlx5sim_store->tables[MLX5SIM_OBJ_GENERAL].high);
    unsigned count = 0;
    const mlx5sim_general_t *general;
    const mlx5sim_ctx_t *ctx;
    uint32_t i;

    for (i = 0; i < high; ++i) {
        general = mlx5sim_obj_at(MLX5SIM_OBJ_GENERAL, i);
        if ((atomic_load(&general->o.owner) != 0) && general->o.ready &&
            (general->type == MLX5SIM_FW_TYPE_SCHED) &&
            (general->sched.element == MLX5SIM_SCHED_LEAF)) {
            ctx    = mlx5sim_obj_at(MLX5SIM_OBJ_CTX,
                                    atomic_load(&general->o.ctx));
            count += ctx->dev == dev;
        }
    }

    return count;
}

static int mlx5sim_sched_has_room(uint32_t dev)
{
    const unsigned max = 1u << MLX5SIM_LOG_MAX_SCHED_LEAVES;

    if (mlx5sim_sched_leaves(dev) >= max) {
        mlx5sim_proc_reap_dead(); /* what the dead held is free */
    }
    return mlx5sim_sched_leaves(dev) < max;
}

unsigned mlx5sim_sched_create(const mlx5sim_devx_t *devx,
                              mlx5sim_general_t *general)
{
    const uint8_t *in      = devx->fw.in;
    mlx5sim_sched_t *sched = &general->sched;

    if (devx->fw.in_size < MLX5SIM_FW_SCHED_SIZE) {
        return MLX5SIM_FW_BAD_IN_LEN;
    }

    sched->element = mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_ELEMENT);
    sched->parent  = mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_PARENT);
    sched->share   = mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_SHARE);
    sched->max     = mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_MAX);
    if ((mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_HIERARCHY) != MLX5SIM_SCHED_NIC) ||
        ((sched->element != MLX5SIM_SCHED_NODE) &&
         (sched->element != MLX5SIM_SCHED_LEAF)) ||
        ((sched->element == MLX5SIM_SCHED_NODE) &&
         (mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_TSAR) != MLX5SIM_SCHED_DWRR)) ||
        !mlx5sim_sched_is_valid(sched)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    if ((sched->parent != 0) &&
        (mlx5sim_sched_find(devx, sched->parent, MLX5SIM_SCHED_NODE) == NULL)) {
        return MLX5SIM_FW_BAD_RES;
    }

    if ((sched->element == MLX5SIM_SCHED_LEAF) &&
        !mlx5sim_sched_has_room(devx->ctx->dev)) {
        return MLX5SIM_FW_NO_RES;
    }

    mlx5sim_sched_refs_add(sched->parent, 1);
    return MLX5SIM_FW_OK;
}

void mlx5sim_sched_drop(const mlx5sim_general_t *general)
{
    mlx5sim_sched_refs_add(general->sched.parent, -1);
}

/* An element stays what it is and where it is */
unsigned mlx5sim_sched_modify(mlx5sim_devx_t *devx)
{
    mlx5sim_general_t *general = devx->obj;
    mlx5sim_sched_t sched      = general->sched;
    const uint8_t *in          = devx->fw.in;
    uint64_t select;

    if (devx->fw.in_size < MLX5SIM_FW_SCHED_SIZE) {
        return MLX5SIM_FW_BAD_IN_LEN;
    }

    select = mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_SELECT);
    if (select & MLX5SIM_SCHED_SHARE) {
        sched.share = mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_SHARE);
    }
    if (select & MLX5SIM_SCHED_MAX) {
        sched.max = mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_MAX);
    }
    if ((select & ~(uint64_t)MLX5SIM_SCHED_ALL) ||
        (mlx5sim_fw_get(in, MLX5SIM_FW_SCHED_HIERARCHY) != MLX5SIM_SCHED_NIC) ||
        !mlx5sim_sched_is_valid(&sched)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    general->sched = sched;
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_sched_query(mlx5sim_devx_t *devx)
{
    const mlx5sim_general_t *general = devx->obj;
    uint8_t *out                     = devx->fw.out;

    if (devx->fw.out_size < MLX5SIM_FW_SCHED_SIZE) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    mlx5sim_fw_set(out, MLX5SIM_FW_SCHED_HIERARCHY, MLX5SIM_SCHED_NIC);
    mlx5sim_fw_set(out, MLX5SIM_FW_SCHED_ELEMENT, general->sched.element);
    mlx5sim_fw_set(out, MLX5SIM_FW_SCHED_PARENT, general->sched.parent);
    mlx5sim_fw_set(out, MLX5SIM_FW_SCHED_SHARE, general->sched.share);
    mlx5sim_fw_set(out, MLX5SIM_FW_SCHED_MAX, general->sched.max);
    return MLX5SIM_FW_OK;
}

/* Only RC has much to answer: libmlx5 takes no leaf for the answers of UC and
 * UD */
unsigned mlx5sim_sched_bind(const mlx5sim_devx_t *devx)
{
    const uint32_t leaves[2] = {
        mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_QPC_EXT_REQ_LEAF),
        mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_QPC_EXT_RESP_LEAF)
    };
    mlx5sim_qp_obj_t *qp     = devx->obj;
    unsigned i;

    for (i = 0; i < 2; ++i) {
        if ((leaves[i] != 0) &&
            (mlx5sim_sched_find(devx, leaves[i], MLX5SIM_SCHED_LEAF) ==
             NULL)) {
            return MLX5SIM_FW_BAD_RES;
        }
    }

    if ((leaves[1] != 0) && (qp->qp.type != MLX5SIM_QPT_RC)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    mlx5sim_sched_refs_add(leaves[0], 1);
    mlx5sim_sched_refs_add(leaves[1], 1);
    mlx5sim_sched_unbind(qp);
    qp->sched_leaves[0] = leaves[0];
    qp->sched_leaves[1] = leaves[1];
    return MLX5SIM_FW_OK;
}

void mlx5sim_sched_unbind(mlx5sim_qp_obj_t *qp)
{
    unsigned i;

    for (i = 0; i < 2; ++i) {
        mlx5sim_sched_refs_add(qp->sched_leaves[i], -1);
        qp->sched_leaves[i] = 0;
    }
}
