/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_odp.h>
#include <sim/config/identity.h>
#include <sim/devx/caps.h>
#include <sim/instance/instance.h>
#include <sim/objs/shared.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_objs.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>

#define MLX5SIM_ODP_PAGE_MASK 4095ull


void mlx5sim_odp_caps(struct ib_uverbs_ex_query_device_resp *reply)
{
    struct ib_uverbs_odp_caps *caps = &reply->odp_caps;

    if (!mlx5sim_instance_config()->odp) {
        return;
    }

    caps->general_caps                   = IBV_ODP_SUPPORT |
                                           IBV_ODP_SUPPORT_IMPLICIT;
    caps->per_transport_caps.rc_odp_caps = MLX5SIM_ODP_CAPS_RC;
    caps->per_transport_caps.ud_odp_caps = MLX5SIM_ODP_CAPS_UD;
    reply->xrc_odp_caps                  =
            mlx5sim_config_has_xrc(mlx5sim_instance_config()) ?
            MLX5SIM_ODP_CAPS_XRC : 0;
}

/* Kernel, mlx5_ib_reg_user_mr() */
int mlx5sim_mr_get(uint64_t start, uint64_t length, uint64_t hca_va,
                   unsigned access)
{
    uint64_t end = start + length;
    int ret;

    if (!(access & IBV_ACCESS_ON_DEMAND)) {
        ret = mlx5sim_mr_pin(start, length, access);
        if (ret == -EFAULT) {
            /* or another thread registers more of it right now */
            mlx5sim_shared_settle();
            ret = mlx5sim_mr_pin(start, length, access);
        }
        return ret;
    }

    /* create_user_odp_mr(): all memory of the process, also what comes later */
    if ((start == 0) && (length == UINT64_MAX)) {
        return (hca_va == 0) ? 0 : -EINVAL;
    }

    /* ib_init_umem_odp(); nobody asks whether there is memory */
    if ((end < start) || (end == 0) || (end > ~MLX5SIM_ODP_PAGE_MASK)) {
        return -EOVERFLOW;
    }

    return ((length == 0) && !(start & MLX5SIM_ODP_PAGE_MASK)) ? -EINVAL : 0;
}

/* Kernel, get_prefetchable_mr(). @return 0 or -errno */
static int mlx5sim_odp_find(uint32_t pd, uint64_t advice, uint32_t lkey,
                            const mlx5sim_mr_obj_t **mr_p)
{
    const mlx5sim_mr_obj_t *mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR, lkey >> 8);

    if ((mr == NULL) || (atomic_load(&mr->o.owner) != mlx5sim_self_tag) ||
        !mr->o.ready || (mr->mr.key != lkey) || mr->o.devx.is_made ||
        (!mr->is_dmabuf && !(mr->mr.access & IBV_ACCESS_ON_DEMAND))) {
        return -ENOENT;
    }

    *mr_p = mr;
    return ((mr->pd != pd) ||
            ((advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE) &&
             !mlx5sim_mr_is_writable(mr->mr.access))) ? -EPERM : 0;
}

/* Kernel, pagefault_mr(): up to the end of the last page. @return 0 or
 * -errno */
static int mlx5sim_odp_fetch(const mlx5sim_mr_t *mr, uint64_t advice,
                             const struct ib_uverbs_sge *sge)
{
    uint64_t end = (mr->length == UINT64_MAX) ? UINT64_MAX :
                   (mr->va + mr->length + MLX5SIM_ODP_PAGE_MASK) &
                           ~MLX5SIM_ODP_PAGE_MASK;
    uint64_t va  = mr->va + (sge->addr - mr->iova);

    if ((sge->addr < mr->iova) || (va < mr->va) || (va >= end) ||
        (end - va < sge->length)) {
        return -EFAULT;
    }

    if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
        return 0; /* only pages that are there, which makes no difference */
    }

    return mlx5sim_mr_pin(va, sge->length,
                          (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH) ?
                          0 : IBV_ACCESS_LOCAL_WRITE);
}

/* Kernel, mlx5_ib_advise_mr_prefetch(): without the flag, all keys are looked
 * at, and what happens to the pages later nobody hears */
static int mlx5sim_odp_prefetch(uint32_t pd, uint64_t advice, int is_flush,
                                const struct ib_uverbs_sge *list,
                                unsigned count)
{
    const mlx5sim_mr_obj_t *mr;
    unsigned i;
    int ret;

    for (i = 0; !is_flush && (i < count); ++i) {
        ret = mlx5sim_odp_find(pd, advice, list[i].lkey, &mr);
        if (ret != 0) {
            return ret;
        }
    }

    for (i = 0; i < count; ++i) {
        ret = mlx5sim_odp_find(pd, advice, list[i].lkey, &mr);
        if (ret == 0) {
            ret = mlx5sim_odp_fetch(&mr->mr, advice, &list[i]);
        }
        if ((ret != 0) && is_flush) {
            return ret;
        }
    }

    return 0;
}

int mlx5sim_method_advise_mr(mlx5sim_ctx_t *ctx,
                             struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *pd, *advice, *flags, *list;

    if (!mlx5sim_instance_config()->odp) {
        return mlx5sim_refuse_method(hdr->object_id, hdr->method_id);
    }

    pd     = mlx5sim_attr_find(hdr, UVERBS_ATTR_ADVISE_MR_PD_HANDLE);
    advice = mlx5sim_attr_find(hdr, UVERBS_ATTR_ADVISE_MR_ADVICE);
    flags  = mlx5sim_attr_find(hdr, UVERBS_ATTR_ADVISE_MR_FLAGS);
    list   = mlx5sim_attr_find(hdr, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
    if ((pd == NULL) || (advice == NULL) || (flags == NULL) ||
        (list == NULL) || (list->len < sizeof(struct ib_uverbs_sge))) {
        return -EINVAL;
    }

    if ((pd->data >> 32) ||
        (mlx5sim_obj_mine(MLX5SIM_OBJ_PD, pd->data,
                          mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx)) == NULL)) {
        return -ENOENT;
    }

    if ((flags->data & ~(uint64_t)IB_UVERBS_ADVISE_MR_FLAG_FLUSH) ||
        (list->len % sizeof(struct ib_uverbs_sge))) {
        return -EINVAL;
    }

    if ((advice->data != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH) &&
        (advice->data != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE) &&
        (advice->data != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)) {
        return -EOPNOTSUPP;
    }

    return mlx5sim_odp_prefetch(pd->data, advice->data,
                                !!(flags->data &
                                   IB_UVERBS_ADVISE_MR_FLAG_FLUSH),
                                mlx5sim_attr_in(list),
                                list->len / sizeof(struct ib_uverbs_sge));
}
