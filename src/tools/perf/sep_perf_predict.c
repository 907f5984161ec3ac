/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_predict.h>
#include <tools/plan/rates.h>
#include <tools/perf/sep_perf_device.h>

#include <stdlib.h>
#include <string.h>

/* The adapter that is known best */
#define SEP_PERF_ADAPTER  "cx6"


static double sep_perf_instructions(const sep_perf_options_t *options,
                                    const sep_model_sharing_t *sharing)
{
    if (options->level == SEP_PERF_VERBS) {
        return 0;
    }
    return SEP_RATES_INSN_COMPLETION +
           (((options->level == SEP_PERF_UCT) &&
             (sharing->threads_per_qp > 1)) ? SEP_RATES_INSN_PUT_HUB :
            (sharing->uuars_dedicated != SEP_MODEL_ALL) ?
            SEP_RATES_INSN_PUT_UUAR : SEP_RATES_INSN_PUT);
}

/* Number of an environment variable that libmlx5 knows */
static int sep_perf_environment(const char *name, int value)
{
    const char *text = getenv(name);

    return (text != NULL) ? atoi(text) : value;
}

int sep_perf_predict(const sep_perf_options_t *options,
                     const sep_perf_row_t *row, unsigned part_id,
                     sep_perf_result_t *result)
{
    const char *name      = options->adapter_name;
    int bf                = (row->features & SEP_PERF_FEATURE_BLUEFLAME) != 0;
    sep_model_load_t load = {
        .op        = options->op,
        .threads   = row->threads,
        .depth     = row->depth,
        .bytes     = options->bytes,
        .is_inline = result->is_inline
    };
    char message[SEP_MODEL_MESSAGE_MAX];
    sep_model_adapter_t adapter;
    sep_plan_config_t config;
    sep_model_rate_t rate;

    if (name == NULL) {
        name = sep_perf_device_adapter(part_id);
    }
    if (name == NULL) {
        name = SEP_PERF_ADAPTER;
    }
    if (sep_rates_read_adapter(options->adapters, name, &adapter,
                               message) != 0) {
        fprintf(stderr, "sep_perf: %s\n", message);
        return -1;
    }

    sep_plan_config_init(&config);
    config.regime = (sep_plan_regime_t)result->regime;
    if (sep_plan_set_uuars(&config, sep_perf_environment("MLX5_TOTAL_UUARS",
                                                         16),
                           sep_perf_environment("MLX5_NUM_LOW_LAT_UUARS",
                                                4)) != 0) {
        fprintf(stderr, "sep_perf: MLX5_TOTAL_UUARS and "
                "MLX5_NUM_LOW_LAT_UUARS do not fit each other\n");
        return -1;
    }

    sep_perf_model_sharing(row->sharing, row->threads, &config,
                           options->level == SEP_PERF_VERBS, &load.sharing);
    load.instructions = sep_perf_instructions(options, &load.sharing);
    /* libmlx5 uses BlueFlame for whatever is posted alone
     * (MLX5_POST_SEND_PREFER_BF) */
    load.post         = bf ? SEP_MODEL_BLUEFLAME : SEP_MODEL_DOORBELL;
    sep_model_predict(&adapter, &load, &rate);
    result->predicted = rate.mops * 1e6;
    result->limit     = rate.limit;

    load.depth = 1;
    sep_model_predict(&adapter, &load, &rate);
    result->predicted_latency = row->threads / (rate.mops * 1e6);
    snprintf(result->adapter, sizeof(result->adapter), "%s", adapter.name);
    return 0;
}
