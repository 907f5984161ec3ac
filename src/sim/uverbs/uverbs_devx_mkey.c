/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/limit/limit.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_devx.h>
#include <sim/uverbs/uverbs_objs.h>

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

/* The key that an entry leads to. @return status */
static unsigned mlx5sim_devx_ksm_base(const mlx5sim_devx_t *devx, uint64_t i,
                                      const mlx5sim_mr_obj_t **base_p)
{
    uint32_t key = mlx5sim_fw_get(mlx5sim_devx_klm(devx, i),
                                  MLX5SIM_FW_KLM_MKEY);
    const mlx5sim_mr_obj_t *base;

    base = mlx5sim_obj_mine(MLX5SIM_OBJ_MR, key >> 8,
                            mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx));
    if ((base == NULL) || (base->mr.key != key)) {
        return MLX5SIM_FW_BAD_RES;
    }

    *base_p = base;

    /* max_indirection is 1 */
    return ((base->list != 0) || (base->window.type != 0) ||
            (base->mr.pdn != mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_PD))) ?
           MLX5SIM_FW_BAD_PARAM : MLX5SIM_FW_OK;
}

/* The memory of an entry: as much of it as the other key gives access to, which
 * may be none before the first and behind the last. part_p->iova counts from
 * the first entry. */
static void
mlx5sim_devx_ksm_part(const mlx5sim_devx_t *devx, uint64_t i,
                      const mlx5sim_mr_t *base, mlx5sim_mr_t *part_p)
{
    uint64_t entity  = 1ull << mlx5sim_devx_mkc(devx,
                                                MLX5SIM_FW_MKC_LOG_ENTITY);
    uint64_t address = mlx5sim_fw_get(mlx5sim_devx_klm(devx, i),
                                      MLX5SIM_FW_KLM_ADDRESS);
    uint64_t end     = (entity > ~address) ? ~0ull : address + entity;
    uint64_t low     = (address > base->iova) ? address : base->iova;
    uint64_t high    = (end < base->iova + base->length) ?
                       end : base->iova + base->length;

    part_p->iova   = i * entity + (low - address);
    part_p->va     = base->va + (low - base->iova);
    part_p->length = (low < high) ? high - low : 0;
}

/* Put the memory of an entry behind that of the entries before it.
 * @return status */
static unsigned
mlx5sim_devx_ksm_add(const mlx5sim_devx_t *devx, uint64_t i,
                     const mlx5sim_mr_t *base, mlx5sim_mr_t *mr)
{
    mlx5sim_mr_t part;

    mlx5sim_devx_ksm_part(devx, i, base, &part);
    if (part.length == 0) {
        return MLX5SIM_FW_OK;
    }

    if (mr->length == 0) {
        mr->iova = part.iova;
        mr->va   = part.va;
    } else if ((part.iova != mr->iova + mr->length) ||
               (part.va != mr->va + mr->length)) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
        return MLX5SIM_FW_BAD_PARAM;
    }

    mr->length += part.length;
    mr->access &= base->access;
    return MLX5SIM_FW_OK;
}

/* What the indirect key gives access to. @return status */
static unsigned mlx5sim_devx_ksm_map(const mlx5sim_devx_t *devx, uint64_t count,
                                     mlx5sim_mr_t *mr)
{
    uint64_t entity = 1ull << mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LOG_ENTITY);
    uint64_t len    = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LEN);
    const mlx5sim_mr_obj_t *base;
    unsigned status;
    uint64_t i;

    if ((len == 0) || ((len - 1) / entity >= count)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    for (i = 0; i < count; ++i) {
        status = mlx5sim_devx_ksm_base(devx, i, &base);
        if (status == MLX5SIM_FW_OK) {
            status = mlx5sim_devx_ksm_add(devx, i, &base->mr, mr);
        }
        if (status != MLX5SIM_FW_OK) {
            return status;
        }
    }

    len        -= (mr->iova < len) ? mr->iova : len;
    mr->length  = (mr->length < len) ? mr->length : len;
    mr->iova   += mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_START);
    return MLX5SIM_FW_OK;
}

/* Note which keys these are, each once for entries in a row, with the memory of
 * those. @return 0 or -errno */
static int mlx5sim_devx_ksm_keys(const mlx5sim_devx_t *devx, uint64_t count,
                                 uint32_t *list_p)
{
    mlx5sim_klm_t *klm = NULL;
    const mlx5sim_mr_obj_t *base;
    mlx5sim_mr_t part;
    uint32_t key;
    uint64_t i;
    int ret;

    *list_p = 0;
    for (i = 0; i < count; ++i) {
        key  = mlx5sim_fw_get(mlx5sim_devx_klm(devx, i), MLX5SIM_FW_KLM_MKEY);
        base = mlx5sim_obj_at(MLX5SIM_OBJ_MR, key >> 8);
        mlx5sim_devx_ksm_part(devx, i, &base->mr, &part);
        if ((klm != NULL) && (key == klm->key)) {
            klm->va      = (klm->length > 0) ? klm->va : part.va;
            klm->length += part.length;
            continue;
        }

        klm = mlx5sim_limit_alloc(devx->ctx, MLX5SIM_OBJ_KLM);
        if (klm == NULL) {
            ret = -errno;
            mlx5sim_klm_free(*list_p);
            return ret;
        }

        klm->key     = key;
        klm->va      = part.va;
        klm->length  = part.length;
        klm->next    = *list_p;
        klm->o.ready = 1;
        *list_p      = mlx5sim_obj_index(MLX5SIM_OBJ_KLM, klm);
    }

    return 0;
}

unsigned mlx5sim_devx_create_mkey(mlx5sim_devx_t *devx)
{
    uint32_t pdn    = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_PD);
    uint64_t count  = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_MKEY_LIST_SIZE);
    mlx5sim_mr_t as = {.pdn = pdn};
    mlx5sim_mr_obj_t *mr;
    mlx5sim_pd_t *pd;
    unsigned status;
    uint32_t list;
    int ret;

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

    pd = mlx5sim_obj_mine(MLX5SIM_OBJ_PD, pdn,
                          mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx));
    if (pd == NULL) {
        return MLX5SIM_FW_BAD_RES;
    }

    as.access = (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_A) ?
                 IBV_ACCESS_REMOTE_ATOMIC : 0) |
                (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_RW) ?
                 IBV_ACCESS_REMOTE_WRITE : 0) |
                (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_RR) ?
                 IBV_ACCESS_REMOTE_READ : 0) |
                (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LW) ?
                 IBV_ACCESS_LOCAL_WRITE : 0);
    status    = mlx5sim_devx_ksm_map(devx, count, &as);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    ret = mlx5sim_devx_ksm_keys(devx, count, &list);
    if (ret != 0) {
        return mlx5sim_devx_status(ret);
    }

    mr = mlx5sim_limit_alloc(devx->ctx, MLX5SIM_OBJ_MR);
    if (mr == NULL) {
        ret = -errno;
        mlx5sim_klm_free(list);
        return mlx5sim_devx_status(ret);
    }

    atomic_fetch_add(&pd->refs, 1);
    mr->pd       = pdn;
    mr->list     = list;
    as.key       = (mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr) << 8) |
                   mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_KEY);
    mr->mr       = as;
    atomic_thread_fence(memory_order_release);
    mr->o.ready  = 1;
    devx->obj    = mr;
    devx->number = mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr);
    return MLX5SIM_FW_OK;
}
