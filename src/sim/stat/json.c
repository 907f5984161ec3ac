/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/stat/stat.h"
#include "sim/config/identity.h"
#include "sim/objs/store.h"
#include "sim/uar/uar.h"

#include <ctype.h>

typedef struct {
    FILE       *stream;
    int        detail;
    const char *separator;
} mlx5sim_stat_json_t;

static const char *const mlx5sim_stat_obj_names[MLX5SIM_OBJ_LAST] = {
    [MLX5SIM_OBJ_CTX]  = "contexts", [MLX5SIM_OBJ_UAR] = "uars",
    [MLX5SIM_OBJ_PD]   = "pds",      [MLX5SIM_OBJ_MR]  = "mrs",
    [MLX5SIM_OBJ_CHAN] = "channels", [MLX5SIM_OBJ_CQ]  = "cqs",
    [MLX5SIM_OBJ_SRQ]  = "srqs",     [MLX5SIM_OBJ_QP]  = "qps",
    [MLX5SIM_OBJ_AH]   = "ahs"
};


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

static void mlx5sim_stat_json_uars(FILE *stream, const char *suffix,
                                   const uint64_t uars[MLX5SIM_UAR_LAST])
{
    fprintf(stream, "\"uars_static%s\": %lu, \"uars_dynamic%s\": %lu, "
            "\"uars_nc%s\": %lu, \"uuars%s\": %lu, ", suffix,
            uars[MLX5SIM_UAR_STATIC], suffix,
            uars[MLX5SIM_UAR_DYN] + uars[MLX5SIM_UAR_BF], suffix,
            uars[MLX5SIM_UAR_NC], suffix, mlx5sim_stat_uuars(uars));
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

    mlx5sim_stat_json_uars(stream, "", row->uars_now);
    mlx5sim_stat_json_uars(stream, "_created", row->uars_created);
    fprintf(stream, "\"uuars_used\": %lu", row->uuars_used);
    for (i = 0; i < MLX5SIM_STAT_COUNTERS; ++i) {
        fprintf(stream, ", \"%s\": %lu", mlx5sim_stat_counter_names[i],
                row->counters[i]);
    }
}

static void mlx5sim_stat_json_contexts(FILE *stream, uint32_t tag)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CTX].high);
    const char *separator = "";
    const mlx5sim_ctx_t *ctx;
    uint32_t index;

    fprintf(stream, ",\n   \"context_list\": [");
    for (index = 0; index < high; ++index) {
        ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, index);
        if (atomic_load(&ctx->o.owner) != tag) {
            continue;
        }

        fprintf(stream, "%s\n    {\"context\": %u, \"device\": \"mlx5_%u\", "
                "\"uar_mode\": \"%s\", \"uuars_static\": %u, "
                "\"uuars_low_latency\": %u}", separator, index, ctx->dev,
                ctx->is_legacy ? "legacy" : "dynamic", ctx->static_uuars,
                ctx->low_lat_uuars);
        separator = ",";
    }
    fputc(']', stream);
}

/* Where the QP rings */
static void mlx5sim_stat_json_qp_uuar(FILE *stream, const mlx5sim_qp_obj_t *qp)
{
    const mlx5sim_uar_t *uar = mlx5sim_obj_at(MLX5SIM_OBJ_UAR, qp->uar);
    uint32_t registers       = mlx5sim_stat_qp_registers(qp);

    fprintf(stream, "\"uar\": %u, \"uar_kind\": \"%s\", \"uuar_class\": \"%s\"",
            qp->uar, mlx5sim_stat_uar_kind(uar->kind),
            mlx5sim_stat_uuar_class(qp->uuar_class));
    if (registers != 0) {
        fprintf(stream, ", \"uuar_register\": %d", __builtin_ctz(registers));
    } else {
        fprintf(stream, ", \"uuar_register\": null");
    }
    if ((uar->kind == MLX5SIM_UAR_STATIC) || (uar->kind == MLX5SIM_UAR_DYN)) {
        fprintf(stream, ", \"uuar\": %u", qp->uuar);
    } else {
        fprintf(stream, ", \"uuar\": null");
    }
}

static void mlx5sim_stat_json_qp(FILE *stream, const mlx5sim_qp_obj_t *qp)
{
    char gid[MLX5SIM_GID_STR_MAX];

    fprintf(stream, "{\"qpn\": %u, \"type\": \"%s\", \"state\": \"%s\", "
            "\"context\": %u, \"device\": \"mlx5_%u\", \"port\": %u, ",
            qp->qp.qpn, mlx5sim_stat_qp_type(qp->qp.type),
            mlx5sim_qp_state_name(qp->qp.state), qp->o.ctx, qp->dev,
            qp->qp.port);
    mlx5sim_stat_json_qp_uuar(stream, qp);
    fprintf(stream, ",\n     \"pd\": %u, \"send_cq\": %u, \"recv_cq\": %u, "
            "\"srq\": %d, \"sq_wqebbs\": %u, \"rq_wqes\": %u, "
            "\"doorbells\": %lu, \"blueflames\": %lu, \"wqes\": %lu, "
            "\"received\": %lu,\n", qp->pd, qp->send_cq, qp->recv_cq,
            (int)qp->srq - 1, qp->qp.sq_wqe_cnt, qp->qp.rq_wqe_cnt,
            qp->doorbells, qp->blueflames, qp->wqes, qp->received);
    fprintf(stream, "     \"dest_qpn\": %u, \"lid\": %u, \"dlid\": %u, "
            "\"path_bits\": %u, \"sl\": %u, \"path_mtu\": %u, \"is_global\": %s, "
            "\"dgid\": \"%s\", ", qp->qp.dest_qpn, qp->qp.lid, qp->qp.dlid,
            qp->qp.path_bits, qp->qp.sl,
            (qp->qp.path_mtu > 0) ? 128u << qp->qp.path_mtu : 0,
            qp->qp.has_grh ? "true" : "false",
            mlx5sim_gid_str(qp->qp.dgid, gid));
    fprintf(stream, "\"gid_index\": %u, \"hop_limit\": %u, "
            "\"traffic_class\": %u, \"flow_label\": %u, \"pkey_index\": %u, "
            "\"static_rate\": %u,\n", qp->sgid_index, qp->hop_limit,
            qp->traffic_class, qp->flow_label, qp->pkey_index, qp->static_rate);
    fprintf(stream, "     \"timeout\": %u, \"retry_cnt\": %u, "
            "\"rnr_retry\": %u, \"min_rnr_timer\": %u, \"max_rd_atomic\": %u, "
            "\"max_dest_rd_atomic\": %u, \"access\": %u}", qp->qp.timeout,
            qp->qp.retry_cnt, qp->qp.rnr_retry, qp->qp.min_rnr_timer,
            qp->qp.max_rd_atomic, qp->qp.max_dest_rd_atomic, qp->qp.access);
}

static void mlx5sim_stat_json_qps(FILE *stream, uint32_t tag)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    const char *separator = "";
    const mlx5sim_qp_obj_t *qp;
    uint32_t index;

    fprintf(stream, ",\n   \"qp_list\": [");
    for (index = 0; index < high; ++index) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, index);
        if ((atomic_load(&qp->o.owner) == tag) && qp->o.ready) {
            fprintf(stream, "%s\n    ", separator);
            mlx5sim_stat_json_qp(stream, qp);
            separator = ",";
        }
    }
    fputc(']', stream);
}

static void mlx5sim_stat_json_row(const mlx5sim_stat_row_t *row, void *arg)
{
    mlx5sim_stat_json_t *json = arg;

    fprintf(json->stream, "%s\n  {\"name\": ", json->separator);
    json->separator = ",";
    mlx5sim_stat_json_string(json->stream, row->name);
    fprintf(json->stream, ", \"pid\": %d, \"live\": %s, ", row->pid,
            row->live ? "true" : "false");
    mlx5sim_stat_json_values(json->stream, row);
    if (json->detail && row->live) {
        mlx5sim_stat_json_contexts(json->stream, row->tag);
        mlx5sim_stat_json_qps(json->stream, row->tag);
    }
    fputc('}', json->stream);
}

static void mlx5sim_stat_json_devices(FILE *stream,
                                      const mlx5sim_config_t *config)
{
    unsigned dev;

    fprintf(stream, " \"devices\": [");
    for (dev = 0; dev < config->devices; ++dev) {
        fprintf(stream, "%s\n  {\"name\": \"mlx5_%u\", \"ports\": %u, "
                "\"uar_mode\": \"%s\", \"uars\": %u, \"uars_max\": %u}", (dev > 0) ? "," : "", dev,
                config->ports,
                (config->uar_mode == MLX5SIM_UAR_MODE_LEGACY) ? "legacy" :
                                                                "dynamic",
                mlx5sim_uar_count(dev), config->uars);
    }
    fprintf(stream, "],\n");
}

void mlx5sim_stat_json(FILE *stream, const mlx5sim_config_t *config, int all,
                       int detail)
{
    mlx5sim_stat_json_t json = {stream, detail, ""};
    mlx5sim_stat_row_t sum;

    fprintf(stream, "{\"processes\": [");
    mlx5sim_stat_for_each(all, mlx5sim_stat_json_row, &json, &sum);
    fprintf(stream, "],\n");
    mlx5sim_stat_json_devices(stream, config);
    fprintf(stream, " \"totals\": {");
    mlx5sim_stat_json_values(stream, &sum);
    fprintf(stream, "}}\n");
}
