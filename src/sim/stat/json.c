/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/stat/stat.h>
#include <common/json.h>
#include <sim/config/identity.h>
#include <sim/objs/store.h>
#include <sim/uar/uar.h>

/* Where processes are written to, and in how much detail */
typedef struct {
    json_object *processes;
    int         detail;
} mlx5sim_stat_json_t;

static const char *const mlx5sim_stat_obj_names[MLX5SIM_OBJ_LAST] = {
    [MLX5SIM_OBJ_CTX]  = "contexts", [MLX5SIM_OBJ_UAR] = "uars",
    [MLX5SIM_OBJ_PD]   = "pds",      [MLX5SIM_OBJ_MR]  = "mrs",
    [MLX5SIM_OBJ_CHAN] = "channels", [MLX5SIM_OBJ_CQ]  = "cqs",
    [MLX5SIM_OBJ_SRQ]  = "srqs",     [MLX5SIM_OBJ_QP]  = "qps",
    [MLX5SIM_OBJ_AH]   = "ahs",      [MLX5SIM_OBJ_UMEM] = "umems",
    [MLX5SIM_OBJ_KLM]  = "klms",     [MLX5SIM_OBJ_CM_ID] = "cm_ids",
    [MLX5SIM_OBJ_DM]   = "dms",      [MLX5SIM_OBJ_XRCD] = "xrcds",
    [MLX5SIM_OBJ_GENERAL] = "general_objects", [MLX5SIM_OBJ_PP] = "rates",
    [MLX5SIM_OBJ_PSV]  = "psvs"
};


/* A number whose name has two parts */
static void mlx5sim_stat_json_add(json_object *json, const char *name,
                                  const char *suffix, uint64_t value)
{
    char text[64];

    snprintf(text, sizeof(text), "%s%s", name, suffix);
    sep_json_add_number(json, text, value);
}

static void mlx5sim_stat_json_device(json_object *json, const char *name,
                                     unsigned dev)
{
    char text[16];

    snprintf(text, sizeof(text), "mlx5_%u", dev);
    sep_json_add_string(json, name, text);
}

static void mlx5sim_stat_json_uars(json_object *json, const char *suffix,
                                   const uint64_t uars[MLX5SIM_UAR_LAST])
{
    mlx5sim_stat_json_add(json, "uars_static", suffix,
                          uars[MLX5SIM_UAR_STATIC]);
    mlx5sim_stat_json_add(json, "uars_dynamic", suffix,
                          uars[MLX5SIM_UAR_DYN] + uars[MLX5SIM_UAR_BF]);
    mlx5sim_stat_json_add(json, "uars_nc", suffix, uars[MLX5SIM_UAR_NC]);
    mlx5sim_stat_json_add(json, "uuars", suffix, mlx5sim_stat_uuars(uars));
}

static void mlx5sim_stat_json_values(json_object *json,
                                     const mlx5sim_stat_row_t *row)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_OBJ_LAST; ++i) {
        sep_json_add_number(json, mlx5sim_stat_obj_names[i], row->now[i]);
        mlx5sim_stat_json_add(json, mlx5sim_stat_obj_names[i], "_created",
                              row->created[i]);
    }

    mlx5sim_stat_json_uars(json, "", row->uars_now);
    mlx5sim_stat_json_uars(json, "_created", row->uars_created);
    sep_json_add_number(json, "uuars_used", row->uuars_used);
    for (i = 0; i < MLX5SIM_STAT_COUNTERS; ++i) {
        sep_json_add_number(json, mlx5sim_stat_counter_names[i],
                            row->counters[i]);
    }
}

static void mlx5sim_stat_json_context(json_object *json, uint32_t index,
                                      const mlx5sim_ctx_t *ctx)
{
    sep_json_add_number(json, "context", index);
    mlx5sim_stat_json_device(json, "device", ctx->dev);
    sep_json_add_string(json, "uar_mode", ctx->is_legacy ? "legacy" :
                                                           "dynamic");
    sep_json_add_number(json, "uuars_static", ctx->static_uuars);
    sep_json_add_number(json, "uuars_low_latency", ctx->low_lat_uuars);
}

static void mlx5sim_stat_json_contexts(json_object *list, uint32_t tag)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CTX].high);
    const mlx5sim_ctx_t *ctx;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, index);
        if (atomic_load(&ctx->o.owner) == tag) {
            mlx5sim_stat_json_context(sep_json_add_object(list, NULL), index,
                                      ctx);
        }
    }
}

/* Where the QP rings */
static void mlx5sim_stat_json_qp_uuar(json_object *json,
                                      const mlx5sim_qp_obj_t *qp)
{
    const mlx5sim_uar_t *uar = mlx5sim_obj_at(MLX5SIM_OBJ_UAR, qp->uar);
    uint32_t registers       = mlx5sim_stat_qp_registers(qp);
    int is_legacy            = (uar->kind == MLX5SIM_UAR_STATIC) ||
                               (uar->kind == MLX5SIM_UAR_DYN);

    sep_json_add_number(json, "uar", qp->uar);
    sep_json_add_string(json, "uar_kind", mlx5sim_stat_uar_kind(uar->kind));
    sep_json_add_string(json, "uuar_class",
                        mlx5sim_stat_uuar_class(qp->uuar_class));
    sep_json_add(json, "uuar_register", (registers == 0) ? NULL :
                 json_object_new_int(__builtin_ctz(registers)));
    sep_json_add(json, "uuar", is_legacy ? json_object_new_uint64(qp->uuar) :
                                           NULL);
}

/* What it works on, and what it did */
static void mlx5sim_stat_json_qp_queues(json_object *json,
                                        const mlx5sim_qp_obj_t *qp)
{
    sep_json_add_number(json, "pd", qp->pd);
    sep_json_add_number(json, "send_cq", qp->send_cq);
    sep_json_add_number(json, "recv_cq", qp->recv_cq);
    sep_json_add(json, "srq", json_object_new_int((int)qp->srq - 1));
    sep_json_add_number(json, "sq_wqebbs", qp->qp.sq_wqe_cnt);
    sep_json_add_number(json, "rq_wqes", qp->qp.rq_wqe_cnt);
    sep_json_add_number(json, "doorbells", qp->doorbells);
    sep_json_add_number(json, "blueflames", qp->blueflames);
    sep_json_add_number(json, "wqes", qp->wqes);
    sep_json_add_number(json, "received", qp->received);
}

/* The way to its peer */
static void mlx5sim_stat_json_qp_path(json_object *json,
                                      const mlx5sim_qp_obj_t *qp)
{
    char gid[MLX5SIM_GID_STR_MAX];

    sep_json_add_number(json, "dest_qpn", qp->qp.dest_qpn);
    sep_json_add_number(json, "lid", qp->qp.lid);
    sep_json_add_number(json, "dlid", qp->qp.dlid);
    sep_json_add_number(json, "path_bits", qp->qp.path_bits);
    sep_json_add_number(json, "sl", qp->qp.sl);
    sep_json_add_number(json, "path_mtu", (qp->qp.path_mtu > 0) ?
                                          128u << qp->qp.path_mtu : 0);
    sep_json_add_bool(json, "is_global", qp->qp.has_grh);
    sep_json_add_string(json, "dgid", mlx5sim_gid_str(qp->qp.dgid, gid));
    sep_json_add_number(json, "gid_index", qp->sgid_index);
    sep_json_add_number(json, "hop_limit", qp->hop_limit);
    sep_json_add_number(json, "traffic_class", qp->traffic_class);
    sep_json_add_number(json, "flow_label", qp->flow_label);
    sep_json_add_number(json, "pkey_index", qp->pkey_index);
    sep_json_add_number(json, "static_rate", qp->static_rate);
}

static void mlx5sim_stat_json_qp_limits(json_object *json,
                                        const mlx5sim_qp_t *qp)
{
    sep_json_add_number(json, "timeout", qp->timeout);
    sep_json_add_number(json, "retry_cnt", qp->retry_cnt);
    sep_json_add_number(json, "rnr_retry", qp->rnr_retry);
    sep_json_add_number(json, "min_rnr_timer", qp->min_rnr_timer);
    sep_json_add_number(json, "max_rd_atomic", qp->max_rd_atomic);
    sep_json_add_number(json, "max_dest_rd_atomic", qp->max_dest_rd_atomic);
    sep_json_add_number(json, "access", qp->access);
}

static void mlx5sim_stat_json_qp(json_object *json, const mlx5sim_qp_obj_t *qp)
{
    sep_json_add_number(json, "qpn", qp->qp.qpn);
    sep_json_add_string(json, "type", mlx5sim_stat_qp_type(qp->qp.type));
    sep_json_add_string(json, "state", mlx5sim_qp_state_name(qp->qp.state));
    sep_json_add_number(json, "context", qp->o.ctx);
    mlx5sim_stat_json_device(json, "device", qp->dev);
    sep_json_add_number(json, "port", qp->qp.port);
    mlx5sim_stat_json_qp_uuar(json, qp);
    mlx5sim_stat_json_qp_queues(json, qp);
    mlx5sim_stat_json_qp_path(json, qp);
    mlx5sim_stat_json_qp_limits(json, &qp->qp);
}

static void mlx5sim_stat_json_qps(json_object *list, uint32_t tag)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    const mlx5sim_qp_obj_t *qp;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, index);
        if ((atomic_load(&qp->o.owner) == tag) && qp->o.ready) {
            mlx5sim_stat_json_qp(sep_json_add_object(list, NULL), qp);
        }
    }
}

static void mlx5sim_stat_json_row(const mlx5sim_stat_row_t *row, void *arg)
{
    mlx5sim_stat_json_t *json = arg;
    json_object *process      = sep_json_add_object(json->processes, NULL);

    sep_json_add_string(process, "name", row->name);
    sep_json_add_number(process, "pid", row->pid);
    sep_json_add_bool(process, "live", row->live);
    mlx5sim_stat_json_values(process, row);
    if (json->detail && row->live) {
        mlx5sim_stat_json_contexts(sep_json_add_array(process, "context_list"),
                                   row->tag);
        mlx5sim_stat_json_qps(sep_json_add_array(process, "qp_list"),
                              row->tag);
    }
}

static void mlx5sim_stat_json_devices(json_object *list,
                                      const mlx5sim_config_t *config)
{
    json_object *json;
    unsigned dev;

    for (dev = 0; dev < config->devices; ++dev) {
        json = sep_json_add_object(list, NULL);
        mlx5sim_stat_json_device(json, "name", dev);
        sep_json_add_number(json, "ports", config->ports);
        sep_json_add_string(json, "uar_mode",
                            (config->uar_mode == MLX5SIM_UAR_MODE_LEGACY) ?
                            "legacy" : "dynamic");
        sep_json_add_number(json, "uars", mlx5sim_uar_count(dev));
        sep_json_add_number(json, "uars_max", config->uars);
    }
}

void mlx5sim_stat_json(FILE *stream, const mlx5sim_config_t *config, int all,
                       int detail)
{
    json_object *top         = json_object_new_object();
    mlx5sim_stat_json_t json = {sep_json_add_array(top, "processes"), detail};
    mlx5sim_stat_row_t sum;

    mlx5sim_stat_for_each(all, mlx5sim_stat_json_row, &json, &sum);
    mlx5sim_stat_json_devices(sep_json_add_array(top, "devices"), config);
    mlx5sim_stat_json_values(sep_json_add_object(top, "totals"), &sum);
    sep_json_print(top, stream);
}
