/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_objs.h>
#include <sim/sched/helper.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_dmabuf.h>

#include <errno.h>
#include <infiniband/verbs.h>

/* What the kernel changes by a UMR work request, which leaves the key
 * (can_use_umr_rereg_access()). For anything else the region is made anew. */
#define MLX5SIM_REREG_KEEPS (IBV_ACCESS_LOCAL_WRITE | \
                             IBV_ACCESS_REMOTE_WRITE | \
                             IBV_ACCESS_REMOTE_READ | \
                             IBV_ACCESS_RELAXED_ORDERING)


/* Whether an indirect key leads to this one and has a copy of the translation,
 * so that it would go on with the old one. Layouts have none. */
static int mlx5sim_rereg_is_base(uint32_t key)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_KLM].high);
    const mlx5sim_klm_t *klm;
    uint32_t i;

    for (i = 0; i < high; ++i) {
        klm = mlx5sim_obj_at(MLX5SIM_OBJ_KLM, i);
        if ((atomic_load(&klm->o.owner) == mlx5sim_self_tag) &&
            !klm->is_layout && (klm->key == key)) {
            return 1;
        }
    }

    return 0;
}

static mlx5sim_pd_t *mlx5sim_rereg_pd(uint32_t index)
{
    return mlx5sim_obj_at(MLX5SIM_OBJ_PD, index);
}

/* Kernel, ib_uverbs_rereg_mr() up to the call of the driver.
 * @return 0 or -errno */
static int mlx5sim_rereg_check(const mlx5sim_cmd_t *cmd,
                               mlx5sim_mr_obj_t **mr_p, uint32_t *pd_p)
{
    const struct ib_uverbs_rereg_mr *in = cmd->in;
    int ret;

    if (in->flags == 0) {
        return -EINVAL;
    }

    if (in->flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) {
        return -EOPNOTSUPP;
    }

    if ((in->flags & IBV_REREG_MR_CHANGE_TRANSLATION) &&
        !mlx5sim_mr_is_aligned(in->start, in->hca_va)) {
        return -EINVAL;
    }

    *mr_p = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_MR, in->mr_handle);
    if ((*mr_p == NULL) || ((*mr_p)->window.type != 0)) {
        return -ENOENT;
    }

    if ((*mr_p)->dm != 0) {
        return -EINVAL;
    }

    if (in->flags & IBV_REREG_MR_CHANGE_ACCESS) {
        ret = mlx5sim_mr_check_access(in->access_flags);
        if (ret != 0) {
            return ret;
        }
    }

    *pd_p = (in->flags & IBV_REREG_MR_CHANGE_PD) ? in->pd_handle :
                                                   (*mr_p)->pd;
    return (mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_PD, *pd_p) == NULL) ? -EINVAL : 0;
}

/* Kernel, mlx5_ib_rereg_user_mr(): a region of which nothing can be kept has
 * another key from then on. The handle stays. */
int mlx5sim_cmd_rereg_mr(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_rereg_mr *in  = cmd->in;
    struct ib_uverbs_rereg_mr_resp reply = {0};
    mlx5sim_mr_obj_t *mr;
    uint32_t pd, access;
    int is_moved, is_kept, is_unpinned, ret;

    ret = mlx5sim_rereg_check(cmd, &mr, &pd);
    if (ret != 0) {
        return ret;
    }

    access      = (in->flags & IBV_REREG_MR_CHANGE_ACCESS) ?
                  in->access_flags : mr->mr.access;
    is_kept     = !((mr->mr.access ^ access) & ~MLX5SIM_REREG_KEEPS);
    is_unpinned = mr->is_dmabuf || (mr->mr.access & IBV_ACCESS_ON_DEMAND);
    /* What is not pinned has no pages for a new region: that needs a range,
     * even if the caller was not asked for one */
    is_moved    = (in->flags & IBV_REREG_MR_CHANGE_TRANSLATION) ||
                  (!is_kept && is_unpinned);
    if (is_moved) {
        ret = mlx5sim_mr_get(in->start, in->length, in->hca_va, access);
        if (ret != 0) {
            return ret; /* and the region is as it was */
        }
    } else if (!is_unpinned) {
        access &= ~IBV_ACCESS_ON_DEMAND; /* its pages are pinned */
    }

    if (mlx5sim_rereg_is_base(mr->mr.key)) {
        return mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    }

    /* While it moves, nobody has access. A change of the domain or of the
     * access alone is seen at once, by some requests before others. */
    if (is_moved) {
        mr->o.ready = 0;
        atomic_thread_fence(memory_order_seq_cst);
        mlx5sim_helper_quiesce();
        is_kept      &= !mr->is_dmabuf;
        mlx5sim_dmabuf_release(MLX5SIM_OBJ_MR, &mr->o);
        mr->shared.length = 0;
        mr->mr.iova   = in->hca_va;
        mr->mr.va     = in->start;
        mr->mr.length = in->length;
    }

    if (!is_kept ||
        (is_moved && ((access & IBV_ACCESS_ON_DEMAND) ||
                      (mlx5sim_mr_log_pages(in->start, in->length) >
                       mr->log_pages)))) {
        mr->mr.key    = (mr->mr.key & ~0xffu) | (++mr->o.gen & 0xff);
        mr->log_pages = mlx5sim_mr_log_pages(mr->mr.va, mr->mr.length);
    }

    if (pd != mr->pd) {
        atomic_fetch_add(&mlx5sim_rereg_pd(pd)->refs, 1);
        atomic_fetch_sub(&mlx5sim_rereg_pd(mr->pd)->refs, 1);
        mr->pd     = pd;
        mr->mr.pdn = pd;
    }

    mr->mr.access = access;
    atomic_thread_fence(memory_order_release);
    mr->o.ready   = 1;
    mlx5sim_helper_quiesce();

    reply.lkey = mr->mr.key;
    reply.rkey = mr->mr.key;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}
