/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/limit/limit.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_devx.h>
#include <sim/uverbs/uverbs_objs.h>

#include <errno.h>
#include <infiniband/verbs.h>

/* mkc.access_mode (MLX5_MKC_ACCESS_MODE_KLMS, _KSM) */
#define MLX5SIM_DEVX_MKC_KLM 2
#define MLX5SIM_DEVX_MKC_KSM 3

/* mkc.qpn: for all */
#define MLX5SIM_DEVX_MKC_ANY_QPN 0xffffff


/* A field of the MKC in the command */
static uint64_t
mlx5sim_devx_mkc(const mlx5sim_devx_t *devx, mlx5sim_fw_field_t field)
{
    return mlx5sim_fw_get(devx->fw.in + MLX5SIM_FW_MKC, field);
}

/* Whether work requests may give it a list, which is one of entries of any
 * size */
static int mlx5sim_devx_mkc_is_umr(const mlx5sim_devx_t *devx)
{
    return mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_UMR_EN) &&
           (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_MODE) ==
            MLX5SIM_DEVX_MKC_KLM);
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
 * @return whether that is where it is */
static int
mlx5sim_devx_ksm_add(const mlx5sim_devx_t *devx, uint64_t i,
                     const mlx5sim_mr_t *base, mlx5sim_mr_t *mr)
{
    mlx5sim_mr_t part;

    mlx5sim_devx_ksm_part(devx, i, base, &part);
    if (part.length == 0) {
        return 1;
    }

    mr->access &= base->access;
    if (mr->length == 0) {
        mr->iova = part.iova;
        mr->va   = part.va;
    } else if ((part.iova != mr->iova + mr->length) ||
               (part.va != mr->va + mr->length)) {
        return 0;
    }

    mr->length += part.length;
    return 1;
}

/* What the indirect key gives access to, and whether that is one piece of
 * memory. @return status */
static unsigned mlx5sim_devx_ksm_map(const mlx5sim_devx_t *devx, uint64_t count,
                                     mlx5sim_mr_t *mr, int *is_row_p)
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
        if (status != MLX5SIM_FW_OK) {
            return status;
        }
        *is_row_p &= mlx5sim_devx_ksm_add(devx, i, &base->mr, mr);
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

/* Bytes of an entry */
static uint64_t mlx5sim_devx_klm_size(const mlx5sim_devx_t *devx, uint64_t i)
{
    return (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_MODE) ==
            MLX5SIM_DEVX_MKC_KSM) ?
           1ull << mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LOG_ENTITY) :
           mlx5sim_fw_get(mlx5sim_devx_klm(devx, i), MLX5SIM_FW_KLM_BYTES);
}

/* The list of a key of entries of any size. @return status */
static unsigned mlx5sim_devx_klm_map(const mlx5sim_devx_t *devx, uint64_t count,
                                     mlx5sim_mr_t *mr)
{
    uint64_t total = 0;
    const mlx5sim_mr_obj_t *base;
    unsigned status;
    uint64_t i;

    for (i = 0; i < count; ++i) {
        status = mlx5sim_devx_ksm_base(devx, i, &base);
        if (status != MLX5SIM_FW_OK) {
            return status;
        }
        mr->access &= base->mr.access;
        total      += mlx5sim_devx_klm_size(devx, i);
    }

    return (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LEN) > total) ?
           MLX5SIM_FW_BAD_PARAM : MLX5SIM_FW_OK;
}

/* The entries of a layout, and as many more as a work request may give it.
 * @return 0 or -errno */
static int mlx5sim_devx_layout_list(const mlx5sim_devx_t *devx, uint64_t count,
                                    uint32_t *list_p)
{
    uint64_t i = mlx5sim_devx_mkc_is_umr(devx) ?
                 mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LIST_ROOM) : 0;
    mlx5sim_klm_t *klm;
    int ret;

    i       = (i < MLX5SIM_MAX_SGE) ? i : MLX5SIM_MAX_SGE;
    i       = (i > count) ? i : count;
    *list_p = 0;
    while (i-- > 0) {
        klm = mlx5sim_limit_alloc(devx->ctx, MLX5SIM_OBJ_KLM);
        if (klm == NULL) {
            ret = -errno;
            mlx5sim_klm_free(*list_p);
            return ret;
        }

        if (i < count) {
            klm->key    = mlx5sim_fw_get(mlx5sim_devx_klm(devx, i),
                                         MLX5SIM_FW_KLM_MKEY);
            klm->va     = mlx5sim_fw_get(mlx5sim_devx_klm(devx, i),
                                         MLX5SIM_FW_KLM_ADDRESS);
            klm->length = mlx5sim_devx_klm_size(devx, i);
        }
        klm->is_layout = 1;
        klm->next      = *list_p;
        klm->o.ready   = 1;
        *list_p        = mlx5sim_obj_index(MLX5SIM_OBJ_KLM, klm);
    }

    return 0;
}

/* Make a key one with a layout */
static void mlx5sim_devx_layout(const mlx5sim_devx_t *devx, uint64_t count,
                                mlx5sim_mr_obj_t *mr)
{
    uint32_t qpn = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_QPN);
    uint64_t i;

    mr->layout.is_umr    = mlx5sim_devx_mkc_is_umr(devx);
    mr->layout.is_rinval = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_EN_RINVAL);
    mr->layout.room      = mr->layout.is_umr ?
                           mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LIST_ROOM) : 0;
    if (mr->layout.room < count) {
        mr->layout.room = count;
    }
    mr->layout.count = count;
    mr->sig.room     = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_BSF_EN) ?
                       mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_BSF_ROOM) : 0;
    for (i = 0; i < count; ++i) {
        mr->layout.total += mlx5sim_devx_klm_size(devx, i);
    }

    /* 0: all, as with programs that leave it out */
    mr->window.qpn      = (qpn == MLX5SIM_DEVX_MKC_ANY_QPN) ? 0 : qpn;
    mr->window.is_bound = !mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_FREE);
}

/* Whether there is such a key: 0 or a status */
static unsigned mlx5sim_devx_mkey_check(const mlx5sim_devx_t *devx,
                                        uint64_t count)
{
    uint64_t mode = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_MODE);
    uint64_t room = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LIST_ROOM);
    int is_umr    = mlx5sim_devx_mkc_is_umr(devx);

    if (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_MODE_HIGH) ||
        ((mode != MLX5SIM_DEVX_MKC_KSM) && (mode != MLX5SIM_DEVX_MKC_KLM)) ||
        mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_CRYPTO_EN)) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
        return MLX5SIM_FW_BAD_PARAM;
    }

    /* signatures, only work requests give */
    if (mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_BSF_EN) && !is_umr) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    /* one without entries waits for a work request that has some */
    if (((count == 0) && (!is_umr || (room == 0))) ||
        (is_umr && (room > (1u << MLX5SIM_FW_LOG_MAX_KLM))) ||
        mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_NUMBER)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    return (count > (devx->fw.in_size - MLX5SIM_FW_CREATE_SIZE) /
                    MLX5SIM_FW_KLM_SIZE) ?
           MLX5SIM_FW_BAD_IN_LEN : MLX5SIM_FW_OK;
}

/* The fields that QUERY_MKEY gives back */
static void mlx5sim_devx_keep_mkc(const mlx5sim_devx_t *devx, uint32_t access,
                                  mlx5sim_mkc_t *mkc_p)
{
    mkc_p->start      = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_START);
    mkc_p->len        = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LEN);
    mkc_p->qpn        = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_QPN);
    mkc_p->list_room  = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LIST_ROOM);
    mkc_p->mode       = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_MODE);
    mkc_p->log_entity = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LOG_ENTITY);
    mkc_p->free       = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_FREE);
    mkc_p->access     = access;
}

unsigned mlx5sim_devx_create_mkey(mlx5sim_devx_t *devx)
{
    uint32_t pdn    = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_PD);
    uint64_t count  = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_MKEY_LIST_SIZE);
    int is_row      = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_MODE) ==
                      MLX5SIM_DEVX_MKC_KSM;
    mlx5sim_mr_t as = {.pdn = pdn};
    uint32_t asked;
    mlx5sim_mr_obj_t *mr;
    mlx5sim_pd_t *pd;
    unsigned status;
    uint32_t list;
    int ret;

    status = mlx5sim_devx_mkey_check(devx, count);
    if (status != MLX5SIM_FW_OK) {
        return status;
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
    asked     = as.access;
    status    = is_row ? mlx5sim_devx_ksm_map(devx, count, &as, &is_row) :
                         mlx5sim_devx_klm_map(devx, count, &as);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    if (!is_row) {
        as.iova   = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_START);
        as.length = mlx5sim_devx_mkc(devx, MLX5SIM_FW_MKC_LEN);
        as.va     = 0;
    }

    ret = is_row ? mlx5sim_devx_ksm_keys(devx, count, &list) :
                   mlx5sim_devx_layout_list(devx, count, &list);
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
    mlx5sim_devx_keep_mkc(devx, asked, &mr->mkc);
    if (!is_row) {
        mlx5sim_devx_layout(devx, count, mr);
    }
    atomic_thread_fence(memory_order_release);
    mr->o.ready  = 1;
    devx->obj    = mr;
    devx->number = mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr);
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_devx_query_mkey(mlx5sim_devx_t *devx)
{
    const mlx5sim_mr_obj_t *mr = devx->obj;
    mlx5sim_mkc_t mkc          = mr->mkc;
    uint8_t *out               = devx->fw.out + MLX5SIM_FW_MKC;

    /* what work requests have changed */
    if (mr->layout.is_umr) {
        mkc.start  = mr->mr.iova;
        mkc.len    = mr->mr.length;
        mkc.access = mr->mr.access;
        mkc.free   = !mr->window.is_bound;
    }

    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_FREE, mkc.free);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_UMR_EN, mr->layout.is_umr);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_A,
                   !!(mkc.access & IBV_ACCESS_REMOTE_ATOMIC));
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_RW,
                   !!(mkc.access & IBV_ACCESS_REMOTE_WRITE));
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_RR,
                   !!(mkc.access & IBV_ACCESS_REMOTE_READ));
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_LW,
                   !!(mkc.access & IBV_ACCESS_LOCAL_WRITE));
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_MODE, mkc.mode);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_QPN, mkc.qpn);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_KEY, mr->mr.key & 0xff);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_EN_RINVAL, mr->layout.is_rinval);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_BSF_EN, mr->sig.is_on);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_BSF_ROOM, mr->sig.room);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_PD, mr->pd);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_START, mkc.start);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_LEN, mkc.len);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_LIST_ROOM, mkc.list_room);
    mlx5sim_fw_set(out, MLX5SIM_FW_MKC_LOG_ENTITY, mkc.log_entity);
    return MLX5SIM_FW_OK;
}
