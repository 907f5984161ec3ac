/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/objs/store.h"
#include "sim/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

uint32_t mlx5sim_self_tag;


/* Start time of a process in clock ticks; 0 if it does not exist or is only
 * waiting to be reaped by its parent. */
static uint64_t mlx5sim_proc_start_time(pid_t pid)
{
    unsigned long long start = 0;
    char path[32], buf[512], *p, state;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }

    n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (n <= 0) {
        return 0;
    }

    /* the name in field 2 may hold spaces and parentheses */
    buf[n] = '\0';
    p      = strrchr(buf, ')');
    if ((p == NULL) ||
        (sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d"
                " %*d %*d %*d %*d %*d %llu", &state, &start) != 2) ||
        (state == 'Z') || (state == 'X')) {
        return 0;
    }

    return start;
}

int mlx5sim_proc_attach(void)
{
    uint64_t start_time = mlx5sim_proc_start_time(getpid());
    mlx5sim_proc_t *proc;
    unsigned slot;
    pid_t unused;

    if (mlx5sim_self_tag != 0) {
        return 0;
    }

    mlx5sim_proc_reap_dead();

    for (slot = 0; slot < MLX5SIM_MAX_PROCS; ++slot) {
        proc   = &mlx5sim_store->procs[slot];
        unused = 0;
        if (!atomic_compare_exchange_strong(&proc->pid, &unused, getpid())) {
            continue;
        }

        proc->gen        = (proc->gen + 1) & 0xffffff;
        proc->start_time = start_time;
        memset(proc->name, 0, sizeof(proc->name));
        strncpy(proc->name, program_invocation_short_name,
                sizeof(proc->name) - 1);
        memset((void*)&proc->c, 0, sizeof(proc->c));

        /* peers reach our memory with process_vm_readv/writev, which the Yama
         * security module would refuse between siblings */
        (void)prctl(PR_SET_PTRACER, (unsigned long)-1, 0, 0, 0);
        mlx5sim_self_tag = (proc->gen << 8) | (slot + 1);
        atomic_store(&proc->tag, mlx5sim_self_tag);
        return 0;
    }

    fprintf(stderr, "mlx5sim: %d processes use this instance already, that is "
            "its limit; set MLX5SIM_DIR to start another instance\n",
            MLX5SIM_MAX_PROCS);
    errno = EUSERS;
    return -1;
}

void mlx5sim_proc_forget(void)
{
    mlx5sim_self_tag = 0;
}

mlx5sim_proc_t *mlx5sim_proc_by_tag(uint32_t tag)
{
    mlx5sim_proc_t *proc = &mlx5sim_store->procs[(tag & 0xff) - 1];

    return ((tag != 0) && (atomic_load(&proc->tag) == tag)) ? proc : NULL;
}

mlx5sim_proc_t *mlx5sim_proc_self(void)
{
    return &mlx5sim_store->procs[(mlx5sim_self_tag & 0xff) - 1];
}

int mlx5sim_proc_alive(const mlx5sim_proc_t *proc)
{
    uint64_t start_time;

    if (proc->pid == getpid()) {
        /* exec keeps pid and start time, but the old image is gone */
        return atomic_load(&proc->tag) == mlx5sim_self_tag;
    }

    start_time = mlx5sim_proc_start_time(proc->pid);
    return (start_time != 0) && (start_time == proc->start_time);
}

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

/* Free the objects of @a tag. Under reap_lock: when two do it, one could take
 * the next use of a slot, which the other has freed, for what is to be freed. */
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
            if (atomic_load(&obj->owner) != tag) {
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

    /* Who died at this has left less to do for us. */
    (void)mlx5sim_lock(&mlx5sim_store->reap_lock);
    proc = mlx5sim_proc_by_tag(tag);
    if (proc != NULL) {
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
            if ((pid == getpid()) || (mlx5sim_proc_start_time(pid) == 0)) {
                mlx5sim_proc_release(proc, pid);
            }
        } else if (!mlx5sim_proc_alive(proc) &&
                   (atomic_load(&proc->tag) == tag)) {
            mlx5sim_proc_reap(tag);
        }
    }
}
