/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_plan.h>
#include <tools/info/sep_info_out.h>
#include <tools/info/sep_info_predict.h>
#include <tools/plan/plan_config.h>

#include <stdlib.h>
#include <string.h>


static int sep_info_env(const char *name, int value)
{
    const char *env = getenv(name);

    return (env != NULL) ? atoi(env) : value; /* As libmlx5 does */
}

int sep_info_read_config(sep_info_options_t *options)
{
    sep_plan_config_t *plan = &options->config;
    int total, low_lat;

    if (sep_plan_config_read(plan) != UCS_OK) {
        return -1;
    }

    total   = sep_info_env("MLX5_TOTAL_UUARS", plan->total_uuars);
    low_lat = sep_info_env("MLX5_NUM_LOW_LAT_UUARS", plan->low_lat_uuars);
    if (sep_plan_set_uuars(plan, total, low_lat) != 0) {
        fprintf(stderr, "sep_info: MLX5_TOTAL_UUARS=%d, "
                "MLX5_NUM_LOW_LAT_UUARS=%d: libmlx5 opens no device with "
                "these. The second must be less than the first, and that at "
                "most 512\n", total, low_lat);
        return -1;
    }

    return 0;
}

/*
 * Output
 */

static void sep_info_plan_header(const sep_info_options_t *options,
                                 sep_plan_regime_t regime)
{
    const sep_plan_config_t *config = &options->config;

    sep_info_print("#\n# %u worker%s, %u peer%s each, in a process; UAR pages "
                   "by the %s regime,\n# %u uUARs per context, %u of low "
                   "latency; send queues of %u, receive queues\n# of %u, CQs "
                   "for %u sends and %s\n#\n", options->workers,
                   (options->workers == 1) ? "" : "s", options->peers,
                   (options->peers == 1) ? "" : "s",
                   sep_plan_regime_names[regime], config->total_uuars,
                   config->low_lat_uuars, config->tx_queue_len,
                   config->rx_queue_len, config->tx_cq_len,
                   (config->cq_sharing > 1) ? "shared" : "these receives");
    if (config->max_qps > 0) {
        sep_info_print("# At most %lu RC queue pairs at a time "
                       "(UCX_SEP_MAX_QPS, UCX_SEP_MAX_QPS_NODE)\n#\n",
                       config->max_qps);
    }
    sep_info_print("%-16s %-9s %5s %12s %6s %5s %6s %5s %5s %10s %10s %9s\n",
                   "category", "", "ctx", "UAR pages", "uUARs", "used", "QPs",
                   "CQs", "SRQs", "queues", "buffers", "objects");
}

static void sep_info_bytes(unsigned long bytes, char *buf, size_t max)
{
    if (bytes < 1024) {
        snprintf(buf, max, "%lu", bytes);
    } else if (bytes < (1024ul * 1024)) {
        snprintf(buf, max, "%.1f K", bytes / 1024.0);
    } else {
        snprintf(buf, max, "%.1f M", bytes / (1024.0 * 1024.0));
    }
}

static void sep_info_plan_row(const char *category, const char *part,
                              const sep_plan_counts_t *counts)
{
    char uars[48], queues[16], buffers[16], objects[16];

    if ((counts->uars_static > 0) && (counts->uars_dynamic > 0)) {
        snprintf(uars, sizeof(uars), "%lu+%lu", counts->uars_static,
                 counts->uars_dynamic);
    } else {
        snprintf(uars, sizeof(uars), "%lu", sep_plan_uars(counts));
    }
    sep_info_bytes(counts->qp_bytes + counts->cq_bytes + counts->srq_bytes,
                   queues, sizeof(queues));
    sep_info_bytes(counts->mr_bytes, buffers, sizeof(buffers));
    sep_info_bytes(counts->driver_bytes + counts->transport_bytes, objects,
                   sizeof(objects));
    sep_info_print("%-16s %-9s %5lu %12s %6lu %5lu %6lu %5lu %5lu %10s %10s "
                   "%9s\n", category, part, counts->contexts, uars,
                   counts->uuars, counts->uuars_used, counts->qps, counts->cqs,
                   counts->srqs, queues, buffers, objects);
}

static void
sep_info_plan_json_counts(json_object *json, const sep_plan_counts_t *counts)
{
    sep_json_add_number(json, "contexts", counts->contexts);
    sep_json_add_number(json, "thread_domains", counts->tds);
    sep_json_add_number(json, "uars_static", counts->uars_static);
    sep_json_add_number(json, "uars_dynamic", counts->uars_dynamic);
    sep_json_add_number(json, "uars", sep_plan_uars(counts));
    sep_json_add_number(json, "uars_in_use", counts->uars_used);
    sep_json_add_number(json, "uuars", counts->uuars);
    sep_json_add_number(json, "uuars_in_use", counts->uuars_used);
    sep_json_add_number(json, "qps", counts->qps);
    sep_json_add_number(json, "cqs", counts->cqs);
    sep_json_add_number(json, "srqs", counts->srqs);
    sep_json_add_number(json, "qp_bytes", counts->qp_bytes);
    sep_json_add_number(json, "cq_bytes", counts->cq_bytes);
    sep_json_add_number(json, "srq_bytes", counts->srq_bytes);
    sep_json_add_number(json, "mr_bytes", counts->mr_bytes);
    sep_json_add_number(json, "driver_bytes", counts->driver_bytes);
    sep_json_add_number(json, "transport_bytes", counts->transport_bytes);
}

static void
sep_info_plan_json(const sep_info_options_t *options,
                   const sep_plan_config_t *config, const sep_plan_t *plan,
                   json_object *json)
{
    sep_json_add_string(json, "category",
                        sep_plan_category_name(config->category));
    sep_json_add_string(json, "regime", sep_plan_regime_names[config->regime]);
    sep_json_add_number(json, "workers", config->workers);
    sep_json_add_number(json, "peers", config->peers);
    if (config->max_qps > 0) {
        sep_json_add_number(json, "max_qps", config->max_qps);
        sep_json_add_number(json, "least_qps", sep_plan_least_qps(config));
    }
    sep_info_plan_json_counts(sep_json_add_object(json, "own"),
                              &plan->category);
    sep_info_plan_json_counts(sep_json_add_object(json, "transport"),
                              &plan->transport);
    sep_info_plan_json_counts(sep_json_add_object(json, "total"),
                              &plan->total);
    sep_json_add_bool(json, "exceeds_context", plan->exceeds);
    sep_json_add_number(json, "processes",
                        sep_plan_fit(&plan->category, options->device_uars,
                                     options->kernel_uars));
    if (options->adapter_name != NULL) {
        sep_info_add_rates(options, config->category, config->regime, json);
    }
}

/* What the user asked for, of one category and regime; as sep_plan_make() */
static int sep_info_make_plan(const sep_info_options_t *options,
                              sep_plan_category_t category,
                              sep_plan_regime_t regime,
                              sep_plan_config_t *config_p, sep_plan_t *plan_p,
                              const char **reason_p)
{
    *config_p          = options->config;
    config_p->category = category;
    config_p->regime   = regime;
    config_p->workers  = options->workers;
    config_p->peers    = options->peers;
    return sep_plan_make(config_p, plan_p, reason_p);
}

static int sep_info_show_plan(const sep_info_options_t *options,
                              sep_plan_category_t category,
                              sep_plan_regime_t regime, json_object *list)
{
    sep_plan_config_t config;
    const char *reason;
    sep_plan_t plan;

    if (sep_info_make_plan(options, category, regime, &config, &plan,
                           &reason) != 0) {
        fprintf(stderr, "sep_info: %s\n", reason);
        return SEP_INFO_USAGE;
    }

    if (list != NULL) {
        sep_info_plan_json(options, &config, &plan,
                           sep_json_add_object(list, NULL));
        return SEP_INFO_OK;
    }

    sep_info_plan_row(sep_plan_category_name(category), "own",
                      &plan.category);
    if (category != SEP_PLAN_NAIVE) {
        sep_info_plan_row("", "+ others", &plan.transport);
        sep_info_plan_row("", "= total", &plan.total);
    }
    if (plan.exceeds && (regime == SEP_PLAN_NC)) {
        sep_info_print("%-16s   impossible: needs thread domains, which need "
                       "write combining\n", "");
    } else if (plan.exceeds) {
        sep_info_print("%-16s   impossible: a context has %u uUARs for thread "
                       "domains\n", "", config.max_dyn_uuars);
    }
    if ((config.max_qps > 0) &&
        (config.max_qps < sep_plan_least_qps(&config))) {
        sep_info_print("%-16s   needs %lu RC queue pairs at least\n", "",
                       sep_plan_least_qps(&config));
    }
    return SEP_INFO_OK;
}

static void sep_info_show_capacity(const sep_info_options_t *options,
                                   sep_plan_category_t category,
                                   sep_plan_regime_t regime)
{
    sep_plan_config_t config;
    const char *reason;
    sep_plan_t plan;

    if ((sep_info_make_plan(options, category, regime, &config, &plan,
                            &reason) == 0) &&
        !((regime == SEP_PLAN_NC) && plan.exceeds)) {
        sep_info_print("%s%s %lu", (category == 0) ? "" : ", ",
                       sep_plan_category_name(category),
                       sep_plan_fit(&plan.category, options->device_uars,
                                    options->kernel_uars));
    }
}

static void sep_info_show_footer(const sep_info_options_t *options,
                                 sep_plan_regime_t regime)
{
    sep_plan_config_t config = options->config;
    const char *reason;
    sep_plan_t plan;
    int category;

    sep_info_print("\n# own: what the category is about, queue pairs of data "
                   "with their CQs and UARs.\n# others: to receive, and each "
                   "worker's connection manager. used: uUARs that\n# queue "
                   "pairs ring on. buffers and objects are estimates.\n#\n# "
                   "Processes like this that fit %lu UAR pages, %lu of them "
                   "the kernel's:\n# ", options->device_uars,
                   options->kernel_uars);
    for (category = 0; category < SEP_PLAN_NUM_CATEGORIES; ++category) {
        sep_info_show_capacity(options, category, regime);
    }
    sep_info_print("\n");

    config.category = SEP_PLAN_NAIVE;
    config.regime   = regime;
    if ((regime != SEP_PLAN_NC) &&
        (sep_plan_make(&config, &plan, &reason) == 0)) {
        sep_info_print("# With a context and a thread domain for each "
                       "worker, %lu workers would fit.\n",
                       sep_plan_fit(&plan.category, options->device_uars,
                                    options->kernel_uars));
    }
}

int sep_info_show_plans(const sep_info_options_t *options, json_object *json)
{
    json_object *plans = (json != NULL) ? sep_json_add_array(json, "plans") :
                                          NULL;
    int regime, category, status;

    for (regime = 0; regime < SEP_PLAN_REGIME_LAST; ++regime) {
        if ((options->regime == SEP_PLAN_REGIME_LAST) ?
            (regime == SEP_PLAN_NC) : ((int)options->regime != regime)) {
            continue;
        }

        if (plans == NULL) {
            sep_info_plan_header(options, regime);
        }
        for (category = 0; category < SEP_PLAN_LAST; ++category) {
            if ((options->category == SEP_PLAN_LAST) ?
                (category == SEP_PLAN_NAIVE) :
                ((int)options->category != category)) {
                continue;
            }
            status = sep_info_show_plan(options, category, regime, plans);
            if (status != SEP_INFO_OK) {
                return status;
            }
        }
        if (plans == NULL) {
            sep_info_show_footer(options, regime);
            if (options->adapter_name != NULL) {
                sep_info_show_rates(options, regime);
            }
        }
    }

    return SEP_INFO_OK;
}
