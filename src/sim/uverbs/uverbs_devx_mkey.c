/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/limit/limit.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_devx.h>

#include <errno.h>
#include <infiniband/verbs.h>

/* mkc.access_mode (MLX5_MKC_ACCESS_MODE_KSM) */
#define MLX5SIM_DEVX_MKC_KSM 3


/* A field of the MKC in the command */
static uint64_t
mlx5sim_devx_mkc(const mlx5sim_devx_t *devx, mlx5sim_fw_field_t field)
{
    return mlx5sim_fw_get(devx->fw.in + MLX5SIM_FW_MKC, field);
}

/* Entry of the list */
static const uint8_t *mlx5sim_devx_klm(const mlx5sim_devx_t *devx, uint64_t i)
{
    return devx->fw.in + MLX5SIM_FW_CREATE_SIZE + i * MLX5SIM_FW_KLM_SIZE;
}

/* Whether all entries lead to one key, one behind the other. @return status */
static unsigned mlx5sim_devx_ksm_check(const mlx5sim_devx_t *devx,
                                       uint64_t count)
{
    const uint8_t *first = mlx5sim_devx_klm(devx, 0);
    uint64_t entity      = 1ull << mlx5sim_devx_mkc(devx,
                                                    MLX5SIM_FW_MKC_LOG_ENTITY);
    uint64_t i, len;
    const uint8_t *klm;

    for (i = 1; i < count; ++i) {
        klm = mlx5sim_devx_klm(devx, i);
        if ((mlx5sim_fw_get(klm, MLX5SIM_FW_KLM_MKEY) !=
             mlx5sim_fw_get(first, MLX5SIM_FW_KLM_MKEY)) ||
            (mlx5sim_fw_get(klm, MLX5SIM_FW_KLM_ADDRESS) !=
             mlx5sim_fw_get(first, MLX5SIM_FW_KLM_ADDRESS) + i * entity)) {
            (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
            return MLX5SIM_FW_BAD_PARAM;
        }
    }

    len = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LEN);
    return ((len == 0) || ((len - 1) / entity >= count)) ?
           MLX5SIM_FW_BAD_PARAM : MLX5SIM_FW_OK;
}

/* What the indirect key gives access to: its range as far as the other key's
 * goes, which is what remains when both are looked at. */
static void mlx5sim_devx_ksm_map(const mlx5sim_devx_t *devx,
                                 const mlx5sim_mr_t *base, mlx5sim_mr_t *mr)
{
    uint64_t first = mlx5sim_fw_get(mlx5sim_devx_klm(devx, 0),
                                    MLX5SIM_FW_KLM_ADDRESS);
    uint64_t start = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_START);
    uint64_t len   = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LEN);
    uint64_t low, high;

    low  = (first > base->iova) ? first : base->iova;
    high = (len > ~first) ? ~0ull : first + len;
    high = (high < base->iova + base->length) ? high :
                                                base->iova + base->length;
    mr->iova   = start + (low - first);
    mr->va     = base->va + (low - base->iova);
    mr->length = (high > low) ? high - low : 0;
}

unsigned mlx5sim_devx_create_mkey(mlx5sim_devx_t *devx)
{
    uint32_t ctx   = mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx);
    uint32_t pdn   = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_PD);
    uint64_t count = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_MKEY_LIST_SIZE);
    unsigned access, status;
    const mlx5sim_mr_obj_t *base;
    mlx5sim_mr_obj_t *mr;
    mlx5sim_pd_t *pd;
    uint32_t key;

    if (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_MODE_HIGH) ||
        (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_MODE) != MLX5SIM_DEVX_MKC_KSM)) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
        return MLX5SIM_FW_BAD_PARAM;
    }

    if ((count == 0) || mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_NUMBER)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    if (count > (devx->fw.in_size - MLX5SIM_FW_CREATE_SIZE) /
                        MLX5SIM_FW_KLM_SIZE) {
        return MLX5SIM_FW_BAD_IN_LEN;
    }

    status = mlx5sim_devx_ksm_check(devx, count);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    key  = mlx5sim_fw_get(mlx5sim_devx_klm(devx, 0), MLX5SIM_FW_KLM_MKEY);
    pd   = mlx5sim_obj_mine(MLX5SIM_OBJ_PD, pdn, ctx);
    base = mlx5sim_obj_mine(MLX5SIM_OBJ_MR, key >> 8, ctx);
    if ((pd == NULL) || (base == NULL) || (base->mr.key != key)) {
        return MLX5SIM_FW_BAD_RES;
    }

    /* max_indirection is 1 */
    if ((base->base != 0) || (base->mr.pdn != pdn)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    mr = mlx5sim_limit_alloc(devx->ctx, MLX5SIM_OBJ_MR);
    if (mr == NULL) {
        return mlx5sim_devx_status(-errno);
    }

    access = (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_A) ?
              IBV_ACCESS_REMOTE_ATOMIC : 0) |
             (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_RW) ?
              IBV_ACCESS_REMOTE_WRITE : 0) |
             (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_RR) ?
              IBV_ACCESS_REMOTE_READ : 0) |
             (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LW) ?
              IBV_ACCESS_LOCAL_WRITE : 0);
    atomic_fetch_add(&pd->refs, 1);
    mr->pd        = pdn;
    mr->base      = key;
    mr->mr.pdn    = pdn;
    mr->mr.access = access & base->mr.access;
    mr->mr.key    = (mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr) << 8) |
                    mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_KEY);
    mlx5sim_devx_ksm_map(devx, &base->mr, &mr->mr);
    atomic_thread_fence(memory_order_release);
    mr->o.ready   = 1;
    devx->obj     = mr;
    devx->number  = mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr);
    return MLX5SIM_FW_OK;
}
