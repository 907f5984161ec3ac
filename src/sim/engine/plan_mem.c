/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/plan.h>


static inline int mlx5sim_mr_allows(const mlx5sim_mr_t *mr, uint32_t pdn,
                                    uint32_t access, uint64_t addr,
                                    uint64_t length)
{
    uint64_t offset = addr - mr->iova;

    return (mr->pdn == pdn) && ((mr->access & access) == access) &&
           (addr >= mr->iova) && (offset <= mr->length) &&
           (length <= mr->length - offset);
}


int mlx5sim_plan_place(const mlx5sim_env_t *env, mlx5sim_side_t side,
                       uint32_t key, uint32_t pdn, uint32_t access,
                       uint64_t addr, uint32_t length, mlx5sim_seg_t *seg_p)
{
    const mlx5sim_mr_t *mr = env->mr_find(env->arg, side, key);
    uint64_t va;

    if ((mr == NULL) || !mlx5sim_mr_allows(mr, pdn, access, addr, length)) {
        return -1;
    }

    va = mr->va + (addr - mr->iova);
    if (mr->has_layout) {
        /* its pieces, which may be many, are looked up when they are moved */
        if (env->layout_find(env->arg, side, key, access, addr, length,
                             &va) == 0) {
            return -1;
        }
        va = addr;
    }

    seg_p->addr       = va;
    seg_p->length     = length;
    seg_p->lkey       = key;
    seg_p->inl        = NULL;
    seg_p->has_layout = mr->has_layout;
    return 0;
}


int mlx5sim_plan_local_list(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                            const mlx5sim_env_t *env, uint32_t access,
                            mlx5sim_seg_t *out, unsigned *num_p)
{
    const mlx5sim_seg_t *seg = wqe->segs;
    const mlx5sim_seg_t *end = seg + wqe->num_segs;

    for (; seg < end; ++seg, ++out) {
        if (seg->inl != NULL) {
            *out = *seg;
        } else if (mlx5sim_plan_place(env, MLX5SIM_SIDE_REQUESTER, seg->lkey,
                                      req->pdn, access, seg->addr,
                                      seg->length, out) != 0) {
            return -1;
        }
    }

    *num_p = wqe->num_segs;
    return 0;
}


int mlx5sim_plan_recv_list(const mlx5sim_qp_t *resp,
                           const mlx5sim_recv_wqe_t *recv,
                           const mlx5sim_env_t *env, uint32_t skip,
                           uint32_t length, mlx5sim_seg_t *out,
                           unsigned *num_p)
{
    uint32_t pdn             = ((resp->srqn != 0) && (resp->srq_pdn != 0)) ?
                               resp->srq_pdn : resp->pdn;
    const mlx5sim_seg_t *seg = recv->segs;
    const mlx5sim_seg_t *end = seg + recv->num_segs;
    unsigned count           = 0;
    uint32_t part;

    for (; length > 0; ++seg) {
        if (seg == end) {
            return -1;
        }

        if (skip >= seg->length) {
            skip -= seg->length;
            continue;
        }

        part = seg->length - skip;
        if (part > length) {
            part = length;
        }

        if (mlx5sim_plan_place(env, MLX5SIM_SIDE_RESPONDER, seg->lkey, pdn,
                               MLX5SIM_ACCESS_LOCAL_WRITE, seg->addr + skip,
                               part, &out[count]) != 0) {
            return -1;
        }

        length -= part;
        skip    = 0;
        ++count;
    }

    *num_p = count;
    return 0;
}
