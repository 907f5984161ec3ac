/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/layout.h>
#include <sim/engine/mlx5_def.h>
#include <sim/exec/signature.h>
#include <sim/exec/window.h>
#include <sim/objs/store.h>

#include <errno.h>

/* How many turns of a list are looked at, at its start and at its end, before
 * an access: the first and the last whole ones are in them */
#define MLX5SIM_LAYOUT_TURNS 2


/* Take a list over from a UMR */
static void mlx5sim_layout_set_list(mlx5sim_mr_obj_t *mr,
                                    const mlx5sim_wqe_t *wqe)
{
    const mlx5sim_seg_t *seg = wqe->segs;
    const mlx5sim_seg_t *end = seg + wqe->umr.count;
    uint32_t next            = mr->list;
    uint64_t bytes           = 0;
    mlx5sim_klm_t *klm;

    for (; (seg < end) && (next != 0); ++seg, next = klm->next) {
        klm         = mlx5sim_obj_at(MLX5SIM_OBJ_KLM, next);
        klm->key    = seg->lkey;
        klm->va     = seg->addr;
        klm->length = seg->length;
        klm->stride = seg->stride;
        bytes      += seg->length;
    }

    mr->layout.count = wqe->umr.count;
    mr->layout.turn  = (wqe->umr.turns != 0) ? bytes : 0;
    mr->layout.total = (wqe->umr.turns != 0) ? bytes * wqe->umr.turns : bytes;
}

/* Flags of an access that a mask of a UMR says are to be changed */
static uint32_t mlx5sim_layout_access_mask(uint64_t mask)
{
    return ((mask & MLX5SIM_UMR_MASK_LOCAL_WRITE) ?
            MLX5SIM_ACCESS_LOCAL_WRITE : 0) |
           ((mask & MLX5SIM_UMR_MASK_REMOTE_WRITE) ?
            MLX5SIM_ACCESS_REMOTE_WRITE : 0) |
           ((mask & MLX5SIM_UMR_MASK_REMOTE_READ) ?
            MLX5SIM_ACCESS_REMOTE_READ : 0) |
           ((mask & MLX5SIM_UMR_MASK_ATOMIC) ?
            MLX5SIM_ACCESS_REMOTE_ATOMIC : 0);
}

void mlx5sim_layout_set(mlx5sim_mr_obj_t *mr, const mlx5sim_wqe_t *wqe)
{
    uint64_t mask   = wqe->umr.mask;
    uint32_t access = mlx5sim_layout_access_mask(mask);

    if (wqe->umr.units != 0) {
        mlx5sim_layout_set_list(mr, wqe);
    }

    mr->mr.access = (mr->mr.access & ~access) | (wqe->umr.access & access);
    if (mask & MLX5SIM_UMR_MASK_MKEY) {
        mr->mr.key = (mr->mr.key & ~0xffu) | wqe->umr.key;
    }
    if (mask & MLX5SIM_UMR_MASK_QPN) {
        mr->window.qpn = (wqe->umr.qpn == MLX5SIM_QPN_MASK) ? 0 : wqe->umr.qpn;
    }
    if (mask & MLX5SIM_UMR_MASK_START) {
        mr->mr.iova = wqe->umr.start;
    }
    if (mask & MLX5SIM_UMR_MASK_LEN) {
        mr->mr.length = wqe->umr.length;
    }
}

/* The key of a request, if it has a layout and leads somewhere. With its lock
 * held. */
static int mlx5sim_layout_is_valid(const mlx5sim_mr_obj_t *mr, uint32_t key)
{
    return (atomic_load(&mr->o.owner) != 0) && mr->o.ready &&
           (mr->mr.key == key) && (mr->layout.room != 0) &&
           mr->window.is_bound;
}

/* Memory of a list from @a offset on, up to the end of an entry or @a length
 * bytes. @return 0, or -1: there is none, or not for that */
static int mlx5sim_layout_piece(const mlx5sim_mr_obj_t *mr, int is_write,
                                uint64_t offset, uint64_t length,
                                mlx5sim_seg_t *out)
{
    uint64_t turns           = 0;
    uint32_t next            = mr->list;
    const mlx5sim_klm_t *klm = NULL;
    const mlx5sim_mr_obj_t *base;
    uint64_t addr;
    uint32_t i;

    if (offset >= mr->layout.total) {
        return -1;
    }

    if (mr->layout.turn != 0) {
        turns  = offset / mr->layout.turn;
        offset = offset % mr->layout.turn;
    }

    for (i = 0; i < mr->layout.count; ++i) {
        klm = mlx5sim_obj_find(MLX5SIM_OBJ_KLM, next);
        if (klm == NULL) {
            return -1;
        }

        if (offset < klm->length) {
            break;
        }
        offset -= klm->length;
        next    = klm->next;
    }

    if (i == mr->layout.count) {
        return -1;
    }

    base   = mlx5sim_obj_find(MLX5SIM_OBJ_MR, klm->key >> 8);
    addr   = klm->va + turns * klm->stride + offset;
    length = (length < klm->length - offset) ? length : klm->length - offset;
    if ((base == NULL) ||
        (atomic_load(&base->o.owner) != atomic_load(&mr->o.owner)) ||
        !base->o.ready || (base->mr.key != klm->key) ||
        (base->mr.pdn != mr->mr.pdn) || (base->window.type != 0) ||
        (base->list != 0) ||
        (is_write && !(base->mr.access & MLX5SIM_ACCESS_LOCAL_WRITE)) ||
        (addr < base->mr.iova) || (addr - base->mr.iova > base->mr.length) ||
        (length > base->mr.length - (addr - base->mr.iova))) {
        return -1;
    }

    out->addr       = base->mr.va + (addr - base->mr.iova);
    out->length     = length;
    out->lkey       = klm->key;
    out->inl        = NULL;
    out->has_layout = 0;
    return 0;
}

/* Whether all of these bytes can be reached */
static int mlx5sim_layout_check(const mlx5sim_mr_obj_t *mr, int is_write,
                                uint64_t offset, uint64_t length)
{
    mlx5sim_seg_t piece;

    for (; length > 0; offset += piece.length, length -= piece.length) {
        if (mlx5sim_layout_piece(mr, is_write, offset, length, &piece) != 0) {
            return 0;
        }
    }

    return 1;
}

/* The same where turns may be many: memory of an entry goes one way from turn
 * to turn, so with its ends all between them is in the other key, too */
static int mlx5sim_layout_check_ends(const mlx5sim_mr_obj_t *mr, int is_write,
                                     uint64_t offset, uint64_t length)
{
    uint64_t end = MLX5SIM_LAYOUT_TURNS * mr->layout.turn;

    if ((end == 0) || (length <= 2 * end)) {
        return mlx5sim_layout_check(mr, is_write, offset, length);
    }

    return mlx5sim_layout_check(mr, is_write, offset, end) &&
           mlx5sim_layout_check(mr, is_write, offset + length - end, end);
}

/* The same for bytes from an offset of the key on. If it has signatures, these
 * are bytes of the wire. */
static int mlx5sim_layout_check_key(const mlx5sim_mr_obj_t *mr, int is_write,
                                    uint64_t *offset, uint64_t *length)
{
    if (mr->sig.is_on &&
        (!mlx5sim_sig_find(mr, offset, length) ||
         (*offset > mr->mr.length) || (*length > mr->mr.length - *offset))) {
        return 0;
    }

    return mlx5sim_layout_check_ends(mr, is_write, *offset, *length);
}

uint64_t mlx5sim_layout_find(const mlx5sim_qp_obj_t *qp, uint32_t key,
                             uint32_t access, uint64_t addr, uint64_t length,
                             uint64_t *va_p)
{
    const mlx5sim_mr_obj_t *mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR, key >> 8);
    int is_write               = !!(access & (MLX5SIM_ACCESS_LOCAL_WRITE |
                                              MLX5SIM_ACCESS_REMOTE_WRITE |
                                              MLX5SIM_ACCESS_REMOTE_ATOMIC));
    mlx5sim_seg_t piece        = {.length = 0};
    mlx5sim_lock_t *lock;
    uint64_t offset;

    if ((mr == NULL) ||
        (atomic_load(&mr->o.owner) != atomic_load(&qp->o.owner))) {
        return 0;
    }

    lock = mlx5sim_window_lock_of(mr);
    (void)mlx5sim_lock(lock);
    offset = addr - mr->mr.iova;
    if (!mlx5sim_layout_is_valid(mr, key) ||
        !mlx5sim_layout_check_key(mr, is_write, &offset, &length)) {
        piece.length = 0;
    } else if ((length == 0) && mr->sig.is_on) {
        piece.length = 1; /* of a signature alone, which is not in memory */
        piece.addr   = 0;
    } else if (mlx5sim_layout_piece(mr, is_write, offset, length, &piece) !=
               0) {
        piece.length = 0;
    }
    mlx5sim_unlock(lock);

    *va_p = piece.addr;
    return piece.length;
}

/* Pieces of one element of a list. @return bytes */
static uint64_t mlx5sim_layout_expand(const mlx5sim_seg_t *seg, int is_write,
                                      uint64_t offset, uint64_t length,
                                      mlx5sim_seg_t *out, unsigned *num_p)
{
    const mlx5sim_mr_obj_t *mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR,
                                                  seg->lkey >> 8);
    uint64_t bytes             = 0;
    mlx5sim_lock_t *lock;

    if (mr == NULL) {
        return 0;
    }

    lock = mlx5sim_window_lock_of(mr);
    (void)mlx5sim_lock(lock);
    while ((bytes < length) && (*num_p < MLX5SIM_MAX_SGE) &&
           mlx5sim_layout_is_valid(mr, seg->lkey) &&
           (mlx5sim_layout_piece(mr, is_write,
                                 seg->addr - mr->mr.iova + offset + bytes,
                                 length - bytes, &out[*num_p]) == 0)) {
        bytes += out[(*num_p)++].length;
    }
    mlx5sim_unlock(lock);
    return bytes;
}

uint64_t mlx5sim_layout_pieces(const mlx5sim_seg_t *segs, unsigned num_segs,
                               int is_write, uint64_t offset, uint64_t length,
                               mlx5sim_seg_t *out, unsigned *num_p)
{
    uint64_t bytes = 0;
    uint64_t want, got;
    unsigned i;

    *num_p = 0;
    for (i = 0; (i < num_segs) && (bytes < length) &&
                (*num_p < MLX5SIM_MAX_SGE); ++i) {
        if (offset >= segs[i].length) {
            offset -= segs[i].length;
            continue;
        }

        want = segs[i].length - offset;
        want = (want < length - bytes) ? want : length - bytes;
        if ((segs[i].inl == NULL) && segs[i].has_layout) {
            got = mlx5sim_layout_expand(&segs[i], is_write, offset, want, out,
                                        num_p);
        } else {
            got                 = want;
            out[*num_p]         = segs[i];
            out[*num_p].addr   += offset;
            out[*num_p].length  = want;
            if (segs[i].inl != NULL) {
                out[*num_p].inl = (const uint8_t*)segs[i].inl + offset;
            }
            ++*num_p;
        }

        bytes += got;
        offset = 0;
        if ((got < want) && (*num_p < MLX5SIM_MAX_SGE)) {
            return 0;
        }
    }

    return bytes;
}

int mlx5sim_layout_is_in(const mlx5sim_seg_t *segs, unsigned num_segs)
{
    unsigned i;

    for (i = 0; i < num_segs; ++i) {
        if ((segs[i].inl == NULL) && segs[i].has_layout) {
            return 1;
        }
    }

    return 0;
}

const mlx5sim_plan_t *
mlx5sim_layout_part(const mlx5sim_plan_t *plan, uint64_t offset,
                    mlx5sim_plan_t *part, mlx5sim_side_t *side_p)
{
    uint64_t length = plan->length - offset;

    if (!mlx5sim_layout_is_in(plan->src, plan->num_src) &&
        !mlx5sim_layout_is_in(plan->dst, plan->num_dst)) {
        return plan;
    }

    part->atomic_size = 0;
    part->src_side    = plan->src_side;
    part->dst_side    = plan->dst_side;
    part->num_dst     = 0;
    *side_p           = plan->src_side;
    length            = mlx5sim_layout_pieces(plan->src, plan->num_src, 0,
                                              offset, length, part->src,
                                              &part->num_src);
    if ((length != 0) && (plan->num_dst > 0)) {
        *side_p = plan->dst_side;
        length  = mlx5sim_layout_pieces(plan->dst, plan->num_dst, 1, offset,
                                        length, part->dst, &part->num_dst);
        (void)mlx5sim_layout_pieces(plan->src, plan->num_src, 0, offset,
                                    length, part->src, &part->num_src);
    }

    part->length = length;
    return (length != 0) ? part : NULL;
}
