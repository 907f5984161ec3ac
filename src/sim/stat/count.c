/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/stat/stat.h>
#include <sim/objs/store.h>
#include <sim/uar/layout.h>

#include <stdlib.h>
#include <string.h>

const char *const mlx5sim_stat_counter_names[MLX5SIM_STAT_COUNTERS] = {
    "doorbells", "blueflames", "cq_arms", "traps", "wqes", "cqes", "bytes",
    "rnr_waits", "violations", "dma_reads", "dma_writes", "mmio_writes",
    "cqes_compressed"
};


uint64_t mlx5sim_stat_uuars(const uint64_t uars[MLX5SIM_UAR_LAST])
{
    return (uars[MLX5SIM_UAR_BF] + uars[MLX5SIM_UAR_STATIC] +
            uars[MLX5SIM_UAR_DYN]) * MLX5SIM_UUARS_PER_UAR;
}

uint32_t mlx5sim_stat_qp_registers(const mlx5sim_qp_obj_t *qp)
{
    const mlx5sim_uar_t *uar = mlx5sim_obj_at(MLX5SIM_OBJ_UAR, qp->uar);

    if (qp->uuar_class == MLX5SIM_UUAR_NONE) {
        return 0; /* a DC target does not ring */
    }

    return ((uar->kind == MLX5SIM_UAR_STATIC) ||
            (uar->kind == MLX5SIM_UAR_DYN)) ?
           1u << (qp->uuar % MLX5SIM_UUARS_PER_UAR) : qp->uuars_rung;
}

const char *mlx5sim_stat_qp_type(unsigned type)
{
    switch (type) {
    case MLX5SIM_QPT_RC:
        return "RC";
    case MLX5SIM_QPT_UC:
        return "UC";
    case MLX5SIM_QPT_UD:
        return "UD";
    case MLX5SIM_QPT_DCI:
        return "DCI";
    case MLX5SIM_QPT_DCT:
        return "DCT";
    default:
        return "?";
    }
}

const char *mlx5sim_stat_uuar_class(unsigned uuar_class)
{
    static const char *const names[MLX5SIM_UUAR_LAST] = {
        [MLX5SIM_UUAR_NONE]    = "none", [MLX5SIM_UUAR_HIGH] = "high",
        [MLX5SIM_UUAR_MEDIUM]  = "medium", [MLX5SIM_UUAR_LOW] = "low",
        [MLX5SIM_UUAR_DYNAMIC] = "dynamic"
    };

    return (uuar_class < MLX5SIM_UUAR_LAST) ? names[uuar_class] : "?";
}

const char *mlx5sim_stat_uar_kind(unsigned kind)
{
    switch (kind) {
    case MLX5SIM_UAR_STATIC:
        return "static";
    case MLX5SIM_UAR_NC:
        return "nc";
    default:
        return "dynamic";
    }
}

/* Registers that the QPs of a process use */
static uint64_t mlx5sim_stat_uuars_used(uint32_t tag)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    uint64_t used = 0;
    const mlx5sim_qp_obj_t *qp;
    uint8_t *registers;
    uint32_t index;

    registers = calloc(MLX5SIM_MAX_UARS, sizeof(*registers));
    if (registers == NULL) {
        return 0;
    }

    for (index = 0; index < high; ++index) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, index);
        if ((atomic_load(&qp->o.owner) == tag) && qp->o.ready &&
            (qp->uar < MLX5SIM_MAX_UARS)) {
            registers[qp->uar] |= mlx5sim_stat_qp_registers(qp);
        }
    }

    for (index = 0; index < MLX5SIM_MAX_UARS; ++index) {
        used += __builtin_popcount(registers[index]);
    }

    free(registers);
    return used;
}

static void mlx5sim_stat_count(uint32_t tag, mlx5sim_stat_row_t *row)
{
    const mlx5sim_obj_t *obj;
    uint32_t index, high, uar_kind;
    int kind;

    for (kind = 0; kind < MLX5SIM_OBJ_LAST; ++kind) {
        high = atomic_load(&mlx5sim_store->tables[kind].high);
        for (index = 0; index < high; ++index) {
            obj = mlx5sim_obj_at(kind, index);
            if (atomic_load(&obj->owner) != tag) {
                continue;
            }

            ++row->now[kind];
            if (kind == MLX5SIM_OBJ_UAR) {
                uar_kind = ((const mlx5sim_uar_t*)obj)->kind;
                ++row->uars_now[uar_kind % MLX5SIM_UAR_LAST];
            }
        }
    }

    row->uuars_used = mlx5sim_stat_uuars_used(tag);
}

static void mlx5sim_stat_fill(mlx5sim_proc_t *proc, int live,
                              mlx5sim_stat_row_t *row)
{
    mlx5sim_counters_t *c = &proc->c;
    unsigned i;

    memset(row, 0, sizeof(*row));
    row->name = proc->name;
    row->pid  = proc->pid;
    row->live = live;
    if (live) {
        row->tag = atomic_load(&proc->tag);
        mlx5sim_stat_count(row->tag, row);
    }

    for (i = 0; i < MLX5SIM_OBJ_LAST; ++i) {
        row->created[i] = atomic_load(&c->created[i]);
    }
    for (i = 0; i < MLX5SIM_UAR_LAST; ++i) {
        row->uars_created[i] = atomic_load(&c->uars[i]);
    }

    row->counters[0]  = atomic_load(&c->doorbells);
    row->counters[1]  = atomic_load(&c->blueflames);
    row->counters[2]  = atomic_load(&c->cq_arms);
    row->counters[3]  = atomic_load(&c->traps);
    row->counters[4]  = atomic_load(&c->wqes);
    row->counters[5]  = atomic_load(&c->cqes);
    row->counters[6]  = atomic_load(&c->bytes);
    row->counters[7]  = atomic_load(&c->rnr_waits);
    row->counters[8]  = atomic_load(&c->violations);
    row->counters[9]  = atomic_load(&c->dma_reads);
    row->counters[10] = atomic_load(&c->dma_writes);
    row->counters[11] = atomic_load(&c->mmio_writes);
    row->counters[12] = atomic_load(&c->cqes_compressed);
}

static void mlx5sim_stat_add(mlx5sim_stat_row_t *sum,
                             const mlx5sim_stat_row_t *row)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_OBJ_LAST; ++i) {
        sum->now[i]     += row->now[i];
        sum->created[i] += row->created[i];
    }
    for (i = 0; i < MLX5SIM_UAR_LAST; ++i) {
        sum->uars_now[i]     += row->uars_now[i];
        sum->uars_created[i] += row->uars_created[i];
    }
    for (i = 0; i < MLX5SIM_STAT_COUNTERS; ++i) {
        sum->counters[i] += row->counters[i];
    }
    sum->uuars_used += row->uuars_used;
}

void mlx5sim_stat_for_each(int all, mlx5sim_stat_row_func_t func, void *arg,
                           mlx5sim_stat_row_t *sum_p)
{
    uint64_t exited = atomic_load(&mlx5sim_store->num_exited), i;
    mlx5sim_stat_row_t row;
    mlx5sim_proc_t *proc;

    memset(sum_p, 0, sizeof(*sum_p));
    sum_p->name = "total";

    i = (exited > MLX5SIM_MAX_EXITED) ? exited - MLX5SIM_MAX_EXITED : 0;
    for (; all && (i < exited); ++i) {
        proc = &mlx5sim_store->exited[i & (MLX5SIM_MAX_EXITED - 1)];
        mlx5sim_stat_fill(proc, 0, &row);
        mlx5sim_stat_add(sum_p, &row);
        func(&row, arg);
    }

    for (i = 0; i < MLX5SIM_MAX_PROCS; ++i) {
        proc = &mlx5sim_store->procs[i];
        if (atomic_load(&proc->tag) != 0) {
            mlx5sim_stat_fill(proc, 1, &row);
            mlx5sim_stat_add(sum_p, &row);
            func(&row, arg);
        }
    }
}
