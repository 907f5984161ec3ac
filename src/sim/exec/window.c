/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/window.h>
#include <sim/engine/mlx5_def.h>
#include <sim/exec/layout.h>
#include <sim/exec/signature.h>
#include <sim/objs/store.h>
#include <sim/queue/recv.h>


/* Windows share locks: few change at a time */
mlx5sim_lock_t *mlx5sim_window_lock_of(const mlx5sim_mr_obj_t *window)
{
    return &mlx5sim_store->atomic_locks[mlx5sim_obj_index(MLX5SIM_OBJ_MR,
                                                          window) %
                                        MLX5SIM_ATOMIC_LOCKS];
}

/* UMR: of the key only its index counts, as the key is what changes. Linux has
 * the new one there when it registers memory (handle_reg_mr()). */
static mlx5sim_mr_obj_t *
mlx5sim_window_find(const mlx5sim_qp_obj_t *qp, uint32_t key)
{
    mlx5sim_mr_obj_t *window = mlx5sim_obj_find(MLX5SIM_OBJ_MR, key >> 8);

    return ((window != NULL) &&
            (atomic_load(&window->o.owner) == atomic_load(&qp->o.owner)) &&
            window->o.ready &&
            ((window->window.type != 0) || window->layout.is_umr) &&
            (window->mr.pdn == qp->qp.pdn)) ? window : NULL;
}

static int mlx5sim_window_is_for(const mlx5sim_window_t *window,
                                 const mlx5sim_qp_obj_t *qp)
{
    return (window->qpn == 0) || (window->qpn == qp->qp.qpn);
}

/* Wait for those that found the window as it was: from then until its bytes are
 * moved, a request holds the lock of the responder, which is one of @a qp's
 * process. */
static void mlx5sim_window_quiesce(const mlx5sim_qp_obj_t *qp, uint32_t qpn)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    mlx5sim_qp_obj_t *resp;
    uint32_t i;

    for (i = 0; i < high; ++i) {
        resp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, i);
        if ((atomic_load(&resp->o.owner) == atomic_load(&qp->o.owner)) &&
            resp->o.ready && ((qpn == 0) || (resp->qp.qpn == qpn))) {
            mlx5sim_rq_lock(resp);
            mlx5sim_unlock(&resp->rq_lock);
        }
    }
}

/* Whether a UMR may change a key as it wants to: 0 or a syndrome */
static unsigned mlx5sim_window_check(const mlx5sim_mr_obj_t *window,
                                     const mlx5sim_qp_obj_t *qp,
                                     const mlx5sim_wqe_t *wqe)
{
    /* The list of a window has one entry, filled up with nothing. That of
     * another key has to fit (PRM: mkc.translations_octword_size). */
    int is_sound = (window->window.type == 0) ?
                   (wqe->umr.units <= window->layout.room) :
                   (wqe->umr.is_free ||
                    ((wqe->umr.units == MLX5SIM_KLM_UNITS) &&
                     (wqe->umr.turns == 0)));

    return (!is_sound || (wqe->umr.has_bsf && (window->window.type != 0)) ||
            (wqe->umr.check_free && window->window.is_bound) ||
            (wqe->umr.check_qpn &&
             !mlx5sim_window_is_for(&window->window, qp))) ?
           MLX5SIM_SYNDROME_MW_BIND : 0;
}

/* With its lock held, and as a free one */
static void mlx5sim_window_change(mlx5sim_mr_obj_t *window,
                                  const mlx5sim_wqe_t *wqe)
{
    window->mr.key    = (window->mr.key & ~0xffu) | wqe->umr.key;
    window->mr.access = wqe->umr.access;
    window->mr.iova   = wqe->umr.start;
    window->mr.length = 0;
    window->window.qpn = (wqe->umr.qpn == MLX5SIM_QPN_MASK) ? 0 : wqe->umr.qpn;
    if (!wqe->umr.is_free) {
        window->window.base    = wqe->segs[0].lkey;
        window->window.address = wqe->segs[0].addr;
        window->mr.length      = (wqe->umr.length < wqe->segs[0].length) ?
                                 wqe->umr.length : wqe->segs[0].length;
    }
}

unsigned mlx5sim_window_set(const mlx5sim_qp_obj_t *qp,
                            const mlx5sim_wqe_t *wqe)
{
    mlx5sim_mr_obj_t *window = mlx5sim_window_find(qp, wqe->imm);
    uint32_t was_bound       = 0;
    uint32_t qpn             = 0;
    uint32_t is_bound;
    unsigned syndrome;

    if (window == NULL) {
        return MLX5SIM_SYNDROME_MW_BIND;
    }

    (void)mlx5sim_lock(mlx5sim_window_lock_of(window));
    syndrome = mlx5sim_window_check(window, qp, wqe);
    if ((syndrome == 0) && (window->window.type == 0)) {
        syndrome = mlx5sim_sig_set(window, wqe);
    }
    if (syndrome == 0) {
        /* who dies under way leaves it free */
        was_bound               = window->window.is_bound;
        qpn                     = window->window.qpn;
        is_bound                = !wqe->umr.is_free;
        window->window.is_bound = 0;
        atomic_thread_fence(memory_order_release);
        if (window->window.type != 0) {
            mlx5sim_window_change(window, wqe);
        } else {
            mlx5sim_layout_set(window, wqe);
            is_bound = (wqe->umr.mask & MLX5SIM_UMR_MASK_FREE) ? is_bound :
                                                                 was_bound;
        }
        atomic_thread_fence(memory_order_release);
        window->window.is_bound = is_bound;
    }
    mlx5sim_unlock(mlx5sim_window_lock_of(window));

    if (was_bound) {
        mlx5sim_window_quiesce(qp, qpn);
    }
    return syndrome;
}

/* Take over what the region has of it. Remote access is the window's to give:
 * the region only has to let the adapter write. */
static void mlx5sim_window_lead(const mlx5sim_window_t *window,
                                const mlx5sim_mr_obj_t *base,
                                mlx5sim_mr_t *mr_p)
{
    uint64_t offset = window->address - base->mr.iova;
    uint64_t room   = base->mr.length - offset;

    if ((window->address < base->mr.iova) || (offset > base->mr.length)) {
        mr_p->length = 0;
        return;
    }

    mr_p->va     = base->mr.va + offset;
    mr_p->length = (mr_p->length < room) ? mr_p->length : room;
    if (!(base->mr.access & MLX5SIM_ACCESS_LOCAL_WRITE)) {
        mr_p->access &= ~(MLX5SIM_ACCESS_LOCAL_WRITE |
                          MLX5SIM_ACCESS_REMOTE_WRITE |
                          MLX5SIM_ACCESS_REMOTE_ATOMIC);
    }
}

int mlx5sim_window_map(const mlx5sim_mr_obj_t *window, uint32_t key,
                       const mlx5sim_qp_obj_t *qp, mlx5sim_mr_t *mr_p)
{
    const mlx5sim_mr_obj_t *base;
    mlx5sim_window_t bound;
    uint64_t length;
    int is_signed;

    (void)mlx5sim_lock(mlx5sim_window_lock_of(window));
    bound     = window->window;
    *mr_p     = window->mr;
    is_signed = window->sig.is_on;
    length    = is_signed ? mlx5sim_sig_length(window) : window->mr.length;
    mlx5sim_unlock(mlx5sim_window_lock_of(window));

    if (!bound.is_bound || (mr_p->key != key) ||
        !mlx5sim_window_is_for(&bound, qp)) {
        return -1;
    }

    mr_p->window_type = bound.type;
    if (window->layout.room != 0) {
        mr_p->has_layout  = is_signed ? MLX5SIM_LAYOUT_SIGNED :
                                        MLX5SIM_LAYOUT_PLAIN;
        mr_p->length      = length;
        mr_p->window_type = window->layout.is_rinval ? MLX5SIM_WINDOW_TYPE_2 :
                                                       0;
        return 0;
    }

    /* max_indirection is 1: neither a window nor an indirect key */
    base            = mlx5sim_obj_find(MLX5SIM_OBJ_MR, bound.base >> 8);
    if ((base == NULL) ||
        (atomic_load(&base->o.owner) != atomic_load(&window->o.owner)) ||
        !base->o.ready || (base->mr.key != bound.base) ||
        (base->mr.pdn != mr_p->pdn) || (base->window.type != 0) ||
        (base->list != 0)) {
        mr_p->length = 0;
    } else {
        mlx5sim_window_lead(&bound, base, mr_p);
    }
    return 0;
}

void mlx5sim_window_invalidate(mlx5sim_mr_obj_t *window, uint32_t key)
{
    (void)mlx5sim_lock(mlx5sim_window_lock_of(window));
    if (window->mr.key == key) {
        window->window.is_bound = 0;
    }
    mlx5sim_unlock(mlx5sim_window_lock_of(window));
}
