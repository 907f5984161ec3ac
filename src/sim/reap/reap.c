/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/reap/reap.h>
#include <sim/objs/cm.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/queue/cq.h>
#include <sim/queue/recv.h>

#include <string.h>
#include <unistd.h>


static void mlx5sim_proc_reap_qp(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_qp_obj_t *peer;

    qp->o.ready = 0;

    /* The dead process may have been delivering to its peer: taking the lock
     * repairs what it left half done there. */
    if ((qp->qp.type == MLX5SIM_QPT_RC) && (qp->qp.dest_qpn != 0)) {
        peer = mlx5sim_qp_by_num(qp->qp.dest_qpn);
        if ((peer != NULL) && (peer != qp)) {
            mlx5sim_rq_lock(peer);
            mlx5sim_unlock(&peer->rq_lock);
        }
    }

    /* whoever is delivering to the dead one finishes first */
    mlx5sim_rq_lock(qp);
    mlx5sim_unlock(&qp->rq_lock);
}

/* Give a slot without a tag back, unless somebody has done so. */
static void mlx5sim_proc_release(mlx5sim_proc_t *proc, pid_t pid)
{
    atomic_compare_exchange_strong(&proc->pid, &pid, 0);
}

/* Write what the dead process held back in CQs of others. */
static void mlx5sim_proc_reap_held(uint32_t tag)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CQ].high);
    mlx5sim_cq_t *cq;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, index);
        if ((cq->holder == tag) && (atomic_load(&cq->o.owner) != 0) &&
            (atomic_load(&cq->o.owner) != tag)) {
            mlx5sim_cq_settle(cq);
        }
    }
}

/* Leave an id whose peer is on another node to mlx5sim-wire, which tells the
 * peer, as the kernel does. @return whether it was */
static int mlx5sim_proc_leave_cm_id(mlx5sim_cm_id_t *id, uint32_t tag)
{
    uint32_t wire_tag          = atomic_load(&mlx5sim_store->wire_tag);
    const mlx5sim_proc_t *wire = mlx5sim_proc_by_tag(wire_tag);

    if (!id->o.ready || !id->is_remote || (wire_tag == tag) ||
        (wire == NULL) || mlx5sim_proc_is_gone(wire)) {
        return 0;
    }

    atomic_store(&id->o.owner, wire_tag);
    return 1;
}

/* Free the objects of @a tag. Under reap_lock: if two did it, one could free
 * the next use of a slot that the other has already freed. */
static void mlx5sim_proc_reap_objs(uint32_t tag)
{
    mlx5sim_chan_t *chan;
    mlx5sim_obj_t *obj;
    uint32_t index, high;
    char path[320];
    int kind;

    /* dependents before what they depend on */
    for (kind = MLX5SIM_OBJ_LAST - 1; kind >= 0; --kind) {
        high = atomic_load(&mlx5sim_store->tables[kind].high);
        for (index = 0; index < high; ++index) {
            obj = mlx5sim_obj_at(kind, index);
            if ((atomic_load(&obj->owner) != tag) ||
                ((kind == MLX5SIM_OBJ_CM_ID) &&
                 mlx5sim_proc_leave_cm_id((void*)obj, tag))) {
                continue;
            }

            if ((kind == MLX5SIM_OBJ_QP) && obj->has_locks) {
                mlx5sim_proc_reap_qp((void*)obj);
            } else if (kind == MLX5SIM_OBJ_CHAN) {
                chan = (void*)obj;
                mlx5sim_chan_path(chan, path, sizeof(path));
                unlink(path);
            }

            mlx5sim_obj_free(kind, obj);
        }
    }
}

void mlx5sim_proc_reap(uint32_t tag)
{
    mlx5sim_proc_t *proc;
    uint64_t num_exited;
    pid_t pid;

    /* A process that died doing this has left us less to do. */
    (void)mlx5sim_lock(&mlx5sim_store->reap_lock);
    proc = mlx5sim_proc_by_tag(tag);
    if (proc != NULL) {
        mlx5sim_proc_reap_held(tag);
        mlx5sim_proc_reap_objs(tag);
        pid        = proc->pid;
        num_exited = atomic_fetch_add(&mlx5sim_store->num_exited, 1);
        memcpy((void*)&mlx5sim_store->exited[num_exited &
                                             (MLX5SIM_MAX_EXITED - 1)],
               (void*)proc, sizeof(*proc));
        atomic_store(&proc->tag, 0);
        mlx5sim_proc_release(proc, pid);
    }
    mlx5sim_unlock(&mlx5sim_store->reap_lock);
}

void mlx5sim_proc_reap_dead(void)
{
    mlx5sim_proc_t *proc;
    unsigned slot;
    uint32_t tag;
    pid_t pid;

    for (slot = 0; slot < MLX5SIM_MAX_PROCS; ++slot) {
        proc = &mlx5sim_store->procs[slot];
        pid  = atomic_load(&proc->pid);
        tag  = atomic_load(&proc->tag);
        if (pid == 0) {
            continue;
        }

        if (tag == 0) {
            /* being filled in, unless its process died at that, or in exec */
            if ((pid == getpid()) || !mlx5sim_proc_exists(pid)) {
                mlx5sim_proc_release(proc, pid);
            }
        } else if (!mlx5sim_proc_alive(proc) &&
                   (atomic_load(&proc->tag) == tag)) {
            mlx5sim_proc_reap(tag);
        }
    }
}
