/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/stat/stat.h"
#include "sim/objs/store.h"

#include <ctype.h>
#include <string.h>

/* uUARs (BlueFlame registers) of a UAR page, mlx5 PRM */
#define MLX5SIM_STAT_UUARS_PER_UAR 2

/* One process, as both layouts show it */
typedef struct {
    const char *name;
    int         pid;
    int         live;
    uint64_t    now[MLX5SIM_OBJ_LAST];
    uint64_t    bf_uars;
    uint64_t    created[MLX5SIM_OBJ_LAST];
    uint64_t    counters[9];
} mlx5sim_stat_row_t;

typedef void (*mlx5sim_stat_row_func_t)(FILE *stream,
                                        const mlx5sim_stat_row_t *row);

static const char *const mlx5sim_stat_counter_names[] = {
    "doorbells", "blueflames", "cq_arms", "traps", "wqes", "cqes", "bytes",
    "rnr_waits", "violations"
};

static const char *const mlx5sim_stat_obj_names[MLX5SIM_OBJ_LAST] = {
    [MLX5SIM_OBJ_CTX]  = "contexts", [MLX5SIM_OBJ_UAR] = "uars",
    [MLX5SIM_OBJ_PD]   = "pds",      [MLX5SIM_OBJ_MR]  = "mrs",
    [MLX5SIM_OBJ_CHAN] = "channels", [MLX5SIM_OBJ_CQ]  = "cqs",
    [MLX5SIM_OBJ_SRQ]  = "srqs",     [MLX5SIM_OBJ_QP]  = "qps",
    [MLX5SIM_OBJ_AH]   = "ahs"
};


static void mlx5sim_stat_count(uint32_t tag, mlx5sim_stat_row_t *row)
{
    const mlx5sim_obj_t *obj;
    uint32_t index, high;
    int kind;

    for (kind = 0; kind < MLX5SIM_OBJ_LAST; ++kind) {
        high = atomic_load(&mlx5sim_store->tables[kind].high);
        for (index = 0; index < high; ++index) {
            obj = mlx5sim_obj_at(kind, index);
            if (atomic_load(&obj->owner) != tag) {
                continue;
            }

            ++row->now[kind];
            if ((kind == MLX5SIM_OBJ_UAR) &&
                (((const mlx5sim_uar_t*)obj)->type == 0)) {
                ++row->bf_uars;
            }
        }
    }
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
        mlx5sim_stat_count(atomic_load(&proc->tag), row);
    } else {
        row->bf_uars = atomic_load(&c->bf_uars);
    }

    for (i = 0; i < MLX5SIM_OBJ_LAST; ++i) {
        row->created[i] = atomic_load(&c->created[i]);
    }

    row->counters[0] = atomic_load(&c->doorbells);
    row->counters[1] = atomic_load(&c->blueflames);
    row->counters[2] = atomic_load(&c->cq_arms);
    row->counters[3] = atomic_load(&c->traps);
    row->counters[4] = atomic_load(&c->wqes);
    row->counters[5] = atomic_load(&c->cqes);
    row->counters[6] = atomic_load(&c->bytes);
    row->counters[7] = atomic_load(&c->rnr_waits);
    row->counters[8] = atomic_load(&c->violations);
}

static void mlx5sim_stat_add(mlx5sim_stat_row_t *sum,
                             const mlx5sim_stat_row_t *row)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_OBJ_LAST; ++i) {
        sum->now[i]     += row->now[i];
        sum->created[i] += row->created[i];
    }
    for (i = 0; i < sizeof(row->counters) / sizeof(row->counters[0]); ++i) {
        sum->counters[i] += row->counters[i];
    }
    /* as for the other objects, what ended processes had is not in use */
    sum->bf_uars += row->live ? row->bf_uars : 0;
}

static void mlx5sim_stat_for_each(FILE *stream, int all,
                                  mlx5sim_stat_row_func_t func,
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
        func(stream, &row);
    }

    for (i = 0; i < MLX5SIM_MAX_PROCS; ++i) {
        proc = &mlx5sim_store->procs[i];
        if (atomic_load(&proc->tag) != 0) {
            mlx5sim_stat_fill(proc, 1, &row);
            mlx5sim_stat_add(sum_p, &row);
            func(stream, &row);
        }
    }
}

static void mlx5sim_stat_table_row(FILE *stream, const mlx5sim_stat_row_t *row)
{
    const uint64_t *objs = (row->live || (row->pid == 0)) ? row->now :
                                                            row->created;
    char pid[16] = "";

    if (row->pid != 0) {
        snprintf(pid, sizeof(pid), "%d%s", row->pid, row->live ? "" : "+");
    }

    fprintf(stream, "%-16.16s %9s %4lu %4lu %5lu %5lu %4lu %4lu %5lu %9lu %9lu "
            "%9lu %9lu %5lu\n", row->name, pid, objs[MLX5SIM_OBJ_CTX],
            objs[MLX5SIM_OBJ_UAR], row->bf_uars * MLX5SIM_STAT_UUARS_PER_UAR,
            objs[MLX5SIM_OBJ_QP], objs[MLX5SIM_OBJ_CQ], objs[MLX5SIM_OBJ_SRQ],
            objs[MLX5SIM_OBJ_MR], row->counters[0], row->counters[1],
            row->counters[4], row->counters[5], row->counters[8]);
}

void mlx5sim_stat_table(FILE *stream, int all)
{
    mlx5sim_stat_row_t sum;

    fprintf(stream, "%-16s %9s %4s %4s %5s %5s %4s %4s %5s %9s %9s %9s %9s "
            "%5s\n", "process", "pid", "ctx", "UAR", "uUAR", "QP", "CQ", "SRQ",
            "MR", "doorbell", "BlueFlame", "WQE", "CQE", "viol");
    mlx5sim_stat_for_each(stream, all, mlx5sim_stat_table_row, &sum);
    mlx5sim_stat_table_row(stream, &sum);
    if (all) {
        fprintf(stream, "+ has ended: its objects are those it had created\n");
    }
}

static void mlx5sim_stat_json_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text != '\0'; ++text) {
        if ((*text == '"') || (*text == '\\')) {
            fputc('\\', stream);
        }
        if (isprint((unsigned char)*text)) {
            fputc(*text, stream);
        }
    }
    fputc('"', stream);
}

static void mlx5sim_stat_json_values(FILE *stream,
                                     const mlx5sim_stat_row_t *row)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_OBJ_LAST; ++i) {
        fprintf(stream, "\"%s\": %lu, \"%s_created\": %lu, ",
                mlx5sim_stat_obj_names[i], row->now[i],
                mlx5sim_stat_obj_names[i], row->created[i]);
    }

    fprintf(stream, "\"uuars\": %lu", row->bf_uars * MLX5SIM_STAT_UUARS_PER_UAR);
    for (i = 0; i < sizeof(row->counters) / sizeof(row->counters[0]); ++i) {
        fprintf(stream, ", \"%s\": %lu", mlx5sim_stat_counter_names[i],
                row->counters[i]);
    }
}

static int mlx5sim_stat_json_first;

static void mlx5sim_stat_json_row(FILE *stream, const mlx5sim_stat_row_t *row)
{
    fprintf(stream, "%s\n  {\"name\": ", mlx5sim_stat_json_first ? "" : ",");
    mlx5sim_stat_json_first = 0;
    mlx5sim_stat_json_string(stream, row->name);
    fprintf(stream, ", \"pid\": %d, \"live\": %s, ", row->pid,
            row->live ? "true" : "false");
    mlx5sim_stat_json_values(stream, row);
    fputc('}', stream);
}

void mlx5sim_stat_json(FILE *stream, int all)
{
    mlx5sim_stat_row_t sum;

    mlx5sim_stat_json_first = 1;
    fprintf(stream, "{\"processes\": [");
    mlx5sim_stat_for_each(stream, all, mlx5sim_stat_json_row, &sum);
    fprintf(stream, "],\n \"totals\": {");
    mlx5sim_stat_json_values(stream, &sum);
    fprintf(stream, "}}\n");
}
