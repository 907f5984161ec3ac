/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/stat/stat.h>
#include <sim/objs/store.h>
#include <sim/uar/uar.h>

#include <inttypes.h>
#include <string.h>

typedef struct {
    FILE *stream;
    int  detail;
} mlx5sim_stat_table_t;


/* Contexts of a process and what they have, then its QPs and where they ring */
static void mlx5sim_stat_table_detail(FILE *stream, uint32_t tag)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CTX].high);
    const mlx5sim_qp_obj_t *qp;
    const mlx5sim_ctx_t *ctx;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, index);
        if (atomic_load(&ctx->o.owner) != tag) {
            continue;
        }

        fprintf(stream, "    context %u on mlx5_%u: ", index, ctx->dev);
        if (ctx->is_legacy) {
            fprintf(stream, "%u static uUARs, %u of low latency\n",
                    ctx->static_uuars, ctx->low_lat_uuars);
        } else {
            fprintf(stream, "dynamic UARs\n");
        }
    }

    high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    for (index = 0; index < high; ++index) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, index);
        if ((atomic_load(&qp->o.owner) != tag) || !qp->o.ready) {
            continue;
        }

        fprintf(stream, "    QP 0x%06x %s %-5s context %u UAR %u registers "
                "0x%x class %s -> 0x%06x port %u MTU %u SL %u GID %u hops %u "
                "traffic class %u path bits %u\n", qp->qp.qpn,
                mlx5sim_stat_qp_type(qp->qp.type),
                mlx5sim_qp_state_name(qp->qp.state), qp->o.ctx, qp->uar,
                mlx5sim_stat_qp_registers(qp),
                mlx5sim_stat_uuar_class(qp->uuar_class), qp->qp.dest_qpn,
                qp->qp.port,
                (qp->qp.path_mtu > 0) ? 128u << qp->qp.path_mtu : 0,
                qp->qp.sl, qp->sgid_index, qp->hop_limit, qp->traffic_class,
                qp->qp.path_bits);
    }
}

static void mlx5sim_stat_table_row(const mlx5sim_stat_row_t *row, void *arg)
{
    const mlx5sim_stat_table_t *table = arg;
    /* of processes that have ended, what they had */
    int is_ended         = !row->live && (row->pid != 0);
    const uint64_t *objs = is_ended ? row->created : row->now;
    const uint64_t *uars = is_ended ? row->uars_created : row->uars_now;
    char pid[16] = "";

    if (row->pid != 0) {
        snprintf(pid, sizeof(pid), "%d%s", row->pid, row->live ? "" : "+");
    }

    fprintf(table->stream, "%-16.16s %9s %4lu %4lu %4lu %4lu %5lu %5lu %4lu "
            "%4lu %4lu %5lu %9lu %9lu %9lu %9lu %5lu\n", row->name, pid,
            objs[MLX5SIM_OBJ_CTX], objs[MLX5SIM_OBJ_UAR],
            uars[MLX5SIM_UAR_STATIC],
            uars[MLX5SIM_UAR_DYN] + uars[MLX5SIM_UAR_BF],
            mlx5sim_stat_uuars(uars), objs[MLX5SIM_OBJ_QP],
            objs[MLX5SIM_OBJ_CQ], objs[MLX5SIM_OBJ_SRQ], objs[MLX5SIM_OBJ_PD],
            objs[MLX5SIM_OBJ_MR], row->counters[0], row->counters[1],
            row->counters[4], row->counters[5], row->counters[8]);
    if (table->detail && row->live) {
        mlx5sim_stat_table_detail(table->stream, row->tag);
    }
}

static void mlx5sim_stat_node_row(const mlx5sim_stat_row_t *row, void *arg)
{
    fprintf(arg, "[other]\nlabel = %s (%d)\nuars = %" PRIu64 "\nqps = %" PRIu64
            "\ncqs = %" PRIu64 "\n", row->name, row->pid,
            row->now[MLX5SIM_OBJ_UAR], row->now[MLX5SIM_OBJ_QP],
            row->now[MLX5SIM_OBJ_CQ]);
}

void mlx5sim_stat_node(FILE *stream)
{
    mlx5sim_stat_row_t sum;

    mlx5sim_stat_for_each(0, mlx5sim_stat_node_row, stream, &sum);
}

/* What was counted between two tables, in columns of counters */
static void mlx5sim_stat_table_since(FILE *stream,
                                     const mlx5sim_stat_row_t *before,
                                     const mlx5sim_stat_row_t *now)
{
    static const unsigned columns[] = {0, 1, 4, 5};
    unsigned i;

    fprintf(stream, "%-79s", "since the last table");
    for (i = 0; i < (sizeof(columns) / sizeof(columns[0])); ++i) {
        fprintf(stream, " %9ld", (long)(now->counters[columns[i]] -
                                        before->counters[columns[i]]));
    }
    fprintf(stream, " %5ld\n", (long)(now->counters[8] - before->counters[8]));
}

void mlx5sim_stat_table(FILE *stream, const mlx5sim_config_t *config, int all,
                        int detail, mlx5sim_stat_row_t *before_p)
{
    mlx5sim_stat_table_t table = {stream, detail};
    mlx5sim_stat_row_t sum;
    unsigned dev;

    fprintf(stream, "%-16s %9s %4s %4s %4s %4s %5s %5s %4s %4s %4s %5s %9s %9s "
            "%9s %9s %5s\n", "process", "pid", "ctx", "UAR", "stat", "dyn",
            "uUAR", "QP", "CQ", "SRQ", "PD", "MR", "doorbell", "BlueFlame",
            "WQE", "CQE", "viol");
    mlx5sim_stat_for_each(all, mlx5sim_stat_table_row, &table, &sum);
    mlx5sim_stat_table_row(&sum, &table);
    if (before_p != NULL) {
        mlx5sim_stat_table_since(stream, before_p, &sum);
        *before_p = sum;
    }
    if (all) {
        fprintf(stream, "+ has ended: its objects are those it had created\n");
    }

    for (dev = 0; detail && (dev < config->devices); ++dev) {
        fprintf(stream, "mlx5_%u: %u of %u UAR pages in use\n", dev,
                mlx5sim_uar_count(dev), config->uars);
    }
}
