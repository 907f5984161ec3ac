/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_predict.h>
#include <tools/plan/plan_sharing.h>
#include <tools/plan/rates.h>
#include <tools/info/sep_info_out.h>

#include <model/policy.h>
#include <model/row.h>
#include <uct/ib/sep/throttle/sep_throttle.h>

#include <errno.h>
#include <string.h>

/** What the paths have, in the model's words. */
static const struct {
    unsigned         max_inline;
    sep_model_post_t post;        /* What is not inline */
    const char       *about;
} sep_info_paths[SEP_INFO_PATH_LAST] = {
    [SEP_INFO_PATH_VERBS]  = {0, SEP_MODEL_DOORBELL,
                              "by doorbell through libibverbs"},
    [SEP_INFO_PATH_INLINE] = {60, SEP_MODEL_DOORBELL,
                              "inline if they are short, through libibverbs"},
    [SEP_INFO_PATH_BLUEFLAME] = {60, SEP_MODEL_BLUEFLAME,
                                 "by BlueFlame through libibverbs"},
    [SEP_INFO_PATH_SEP]    = {SEP_MODEL_MAX_INLINE, SEP_MODEL_BLUEFLAME,
                              "by BlueFlame as sep_mlx5 does"}
};

/* Names that rows may have beside the model's policies; set before rows are
 * read, which have no other way to know */
static const sep_info_options_t *sep_info_row_options;


int sep_info_read_adapter(sep_info_options_t *options)
{
    char message[SEP_MODEL_MESSAGE_MAX];

    if (options->adapter_name == NULL) {
        return 0;
    }

    if (sep_rates_read_adapter(options->adapters, options->adapter_name,
                               &options->adapter, message) != 0) {
        fprintf(stderr, "sep_info: %s\n", message);
        return -1;
    }
    return 0;
}

/* What workers of a category share */
static void
sep_info_sharing(const sep_info_options_t *options,
                 sep_plan_category_t category, sep_plan_regime_t regime,
                 sep_model_sharing_t *sharing_p)
{
    sep_plan_config_t config = options->config;

    config.category = category;
    config.regime   = regime;
    sep_plan_sharing(&config, options->path != SEP_INFO_PATH_SEP, sharing_p);
}

static double
sep_info_instructions(const sep_info_options_t *options,
                      const sep_model_sharing_t *sharing)
{
    if (options->path != SEP_INFO_PATH_SEP) {
        return 0;
    }
    return SEP_RATES_INSN_COMPLETION +
           ((sharing->threads_per_qp == SEP_MODEL_ALL) ?
            SEP_RATES_INSN_PUT_HUB :
            (sharing->uuars_dedicated != SEP_MODEL_ALL) ?
            SEP_RATES_INSN_PUT_UUAR : SEP_RATES_INSN_PUT);
}

static void
sep_info_rate(const sep_info_options_t *options, sep_plan_category_t category,
              sep_plan_regime_t regime, sep_model_op_t op,
              sep_model_rate_t *rate_p)
{
    sep_model_load_t load = {
        .op      = op,
        .threads = options->workers,
        .depth   = options->depth,
        .bytes   = options->bytes
    };

    unsigned max_inline   = sep_info_paths[options->path].max_inline;

    load.qps = options->peers * (sep_plan_category_row(category)->is_hub ?
                                 1 : options->workers);
    sep_info_sharing(options, category, regime, &load.sharing);
    load.instructions = sep_info_instructions(options, &load.sharing);
    load.is_inline    = (op == SEP_MODEL_WRITE) && (options->bytes > 0) &&
                        (options->bytes <= max_inline);
    load.post         = load.is_inline ? SEP_MODEL_BLUEFLAME :
                        sep_info_paths[options->path].post;
    if (options->config.tx_throttle != UCT_SEP_THROTTLE_OFF) {
        sep_model_throttle(&options->adapter, options->config.tx_throttle,
                           UCT_SEP_THROTTLE_MIN_SHARE, &load);
    }
    sep_model_predict(&options->adapter, &load, rate_p);
}

void sep_info_show_rates(const sep_info_options_t *options,
                         sep_plan_regime_t regime)
{
    static const sep_model_op_t ops[] = {SEP_MODEL_READ, SEP_MODEL_WRITE};
    sep_model_rate_t rate;
    unsigned op;
    int category;

    sep_info_print("#\n# Rates that the model predicts, million per second: "
                   "%u worker%s with a thread\n# each, %u outstanding, %lu "
                   "bytes, %s\n# on %s: %s\n#\n",
                   options->workers, (options->workers == 1) ? "" : "s",
                   options->depth, options->bytes,
                   sep_info_paths[options->path].about,
                   options->adapter.name, options->adapter.about);
    if (options->config.tx_throttle == UCT_SEP_THROTTLE_AUTO) {
        sep_info_print("# UCX_SEP_TX_THROTTLE=y: fewer outstanding if that is "
                       "faster\n#\n");
    } else if (options->config.tx_throttle != UCT_SEP_THROTTLE_OFF) {
        sep_info_print("# UCX_SEP_TX_THROTTLE: %u outstanding of all workers, "
                       "at least %u of each\n#\n",
                       options->config.tx_throttle, UCT_SEP_THROTTLE_MIN_SHARE);
    }
    sep_info_print("%-16s %9s %-12s %12s   %9s %-12s %12s\n", "category",
                   "reads", "limited by", "in adapter", "writes", "limited by",
                   "in adapter");
    for (category = 0; category < SEP_PLAN_LAST; ++category) {
        if ((options->category == SEP_PLAN_LAST) ?
            (category == SEP_PLAN_NAIVE) :
            ((int)options->category != category)) {
            continue;
        }
        sep_info_print("%-16s", sep_plan_category_name(category));
        for (op = 0; op < 2; ++op) {
            sep_info_rate(options, category, regime, ops[op], &rate);
            sep_info_print("%s %9.2f %-12s %12.0f", (op == 0) ? "" : "  ",
                           rate.mops, sep_model_limit_names[rate.limit],
                           rate.outstanding);
        }
        sep_info_print("\n");
    }
    if (options->workers > options->adapter.value[SEP_MODEL_HW_THREADS]) {
        sep_info_print("# The machine has %.0f hardware threads: some take "
                       "turns\n", options->adapter.value[SEP_MODEL_HW_THREADS]);
    }
}

void sep_info_add_rates(const sep_info_options_t *options,
                        sep_plan_category_t category, sep_plan_regime_t regime,
                        json_object *json)
{
    json_object *all = sep_json_add_object(json, "predicted");
    sep_model_rate_t rate;
    json_object *one;
    unsigned op;

    sep_json_add_string(all, "adapter", options->adapter.name);
    sep_json_add_number(all, "depth", options->depth);
    sep_json_add_number(all, "bytes", options->bytes);
    for (op = SEP_MODEL_READ; op <= SEP_MODEL_WRITE; ++op) {
        sep_info_rate(options, category, regime, (sep_model_op_t)op, &rate);
        one = sep_json_add_object(all, sep_model_op_names[op]);
        sep_json_add_number(one, "requests_per_second", rate.mops * 1e6);
        sep_json_add_number(one, "outstanding", rate.outstanding);
        sep_json_add_string(one, "limited_by",
                            sep_model_limit_names[rate.limit]);
    }
}

/* Policies of measurements, and categories of today's kernels */
static int
sep_info_find_sharing(const char *name, sep_model_sharing_t *sharing_p)
{
    sep_plan_category_t category;

    if (sep_model_policy_find(name, sharing_p) == 0) {
        return 0;
    }
    category = sep_plan_category_find(name);
    if (category == SEP_PLAN_LAST) {
        return -1;
    }
    sep_info_sharing(sep_info_row_options, category, SEP_PLAN_KERNEL_DYNAMIC,
                     sharing_p);
    return 0;
}

int sep_info_predict_file(const sep_info_options_t *options)
{
    const char *name = options->predict;
    char message[SEP_MODEL_MESSAGE_MAX];
    char policies[320], categories[256];
    sep_model_rows_t rows = {
        .adapter    = &options->adapter,
        .post       = sep_info_paths[options->path].post,
        .max_inline = sep_info_paths[options->path].max_inline,
        .find       = sep_info_find_sharing,
        .policies   = policies
    };
    FILE *in;
    int ret;

    snprintf(policies, sizeof(policies), "%s, %s", sep_model_policy_list,
             uct_sep_category_list(categories, sizeof(categories)));
    if (options->path == SEP_INFO_PATH_SEP) {
        rows.instructions = SEP_RATES_INSN_PUT + SEP_RATES_INSN_COMPLETION;
    }

    in = (strcmp(name, "-") == 0) ? stdin : fopen(name, "r");
    if (in == NULL) {
        fprintf(stderr, "sep_info: %s: %s\n", name, strerror(errno));
        return SEP_INFO_USAGE;
    }

    sep_info_row_options = options;
    ret = sep_model_predict_rows(&rows, in, (in == stdin) ? "standard input" :
                                 name, sep_info_out, message);
    if (in != stdin) {
        fclose(in);
    }
    if (ret != 0) {
        fprintf(stderr, "sep_info: %s\n", message);
        return SEP_INFO_USAGE;
    }
    return SEP_INFO_OK;
}
