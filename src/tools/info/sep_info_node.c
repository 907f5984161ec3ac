/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_live.h>
#include <tools/info/sep_info_node.h>
#include <tools/info/sep_info_out.h>
#include <tools/plan/node_read.h>
#include <tools/plan/plan_sharing.h>
#include <tools/plan/rates.h>

#include <model/rate.h>
#include <uct/ib/sep/base/sep_qps_auto.h>

#include <errno.h>
#include <string.h>

/* What the adapter is to keep of its rate, as UCT_SEP_QPS_AUTO does */
#define SEP_INFO_NODE_KEEP  0.9


/* Queue pairs with which the adapter keeps its rate of reads, from all threads
 * of its machine, whatever they have outstanding (contrib/auto-limits.py) */
static unsigned long sep_info_node_most_qps(const sep_info_options_t *options)
{
    static const unsigned depths[] = {8, 16, 32};
    sep_model_load_t load          = {
        .op           = SEP_MODEL_READ,
        .post         = SEP_MODEL_BLUEFLAME,
        .bytes        = 8,
        .instructions = SEP_RATES_INSN_PUT + SEP_RATES_INSN_COMPLETION
    };
    unsigned most = UINT_MAX;
    sep_plan_config_t config;
    unsigned qps, i;

    if (options->adapter_name == NULL) {
        return UCT_SEP_QPS_AUTO;
    }

    sep_plan_config_init(&config);
    sep_plan_sharing(&config, 0, &load.sharing);
    load.threads = options->adapter.value[SEP_MODEL_HW_THREADS];
    for (i = 0; i < (sizeof(depths) / sizeof(depths[0])); ++i) {
        load.depth = depths[i];
        qps        = sep_model_most_qps(&options->adapter, &load,
                                        SEP_INFO_NODE_KEEP);
        if (qps < most) {
            most = qps;
        }
    }
    return most;
}

static int
sep_info_node_describe(const sep_info_options_t *options, sep_node_t *node)
{
    const char *name = options->node;
    char message[SEP_NODE_MESSAGE_MAX];
    FILE *in;
    int ret;

    in = (strcmp(name, "-") == 0) ? stdin : fopen(name, "r");
    if (in == NULL) {
        fprintf(stderr, "sep_info: %s: %s\n", name, strerror(errno));
        return SEP_INFO_USAGE;
    }

    ret = sep_node_read(node, in, (in == stdin) ? "standard input" : name,
                        message);
    if (in != stdin) {
        fclose(in);
    }
    if (ret != 0) {
        fprintf(stderr, "sep_info: %s\n", message);
        return SEP_INFO_USAGE;
    }
    return SEP_INFO_OK;
}

/*
 * Output
 */

static void sep_info_node_number(const sep_node_t *node, sep_node_limit_t limit,
                                 unsigned long number)
{
    if (node->is_unknown[limit]) {
        sep_info_print(" %11s", "?");
    } else {
        sep_info_print(" %11lu", number);
    }
}

static void sep_info_node_row(const sep_node_t *node, const char *label,
                              const char *processes,
                              const sep_node_counts_t *counts)
{
    int limit;

    sep_info_print("%-24s %10s", label, processes);
    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        sep_info_node_number(node, (sep_node_limit_t)limit,
                             counts->takes[limit]);
    }
    sep_info_print(" %9.1f K %9.1f M\n", counts->context_bytes / 1024.0,
                   counts->queue_bytes / 1048576.0);
}

static void sep_info_node_table(const sep_node_t *node)
{
    sep_node_counts_t counts;
    unsigned long number;
    char processes[24];
    unsigned i;
    int limit;

    sep_info_print("#\n# What shares the adapter, UAR pages by the %s regime. "
                   "For each process:\n#\n"
                   "%-24s %10s %11s %11s %11s %11s %11s\n",
                   sep_plan_regime_names[node->config.regime], "", "processes",
                   "UAR pages", "QPs", "CQs", "contexts", "queues");
    for (i = 0; i < node->num_groups; ++i) {
        snprintf(processes, sizeof(processes), "%lu",
                 node->groups[i].processes);
        sep_node_process(node, &node->groups[i], &counts);
        sep_info_node_row(node, node->groups[i].label, processes, &counts);
    }
    sep_node_total(node, &counts);
    sep_info_node_row(node, "= all of them", "", &counts);
    sep_info_print("%-35s", "of the adapter's");
    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        number = sep_node_available(node, (sep_node_limit_t)limit);
        sep_info_print(" %11lu", number);
    }
    sep_info_print("\n# contexts: the adapter's memory for queue pairs and "
                   "CQs, at least; queues: the\n# host's for those of "
                   "sep_mlx5. %lu UAR pages are the kernel's.\n#\n",
                   node->kernel_uars);
}

static void sep_info_node_verdict(const sep_node_t *node,
                                  const sep_node_shortage_t *shortage)
{
    const sep_node_group_t *group = &node->groups[shortage->group];
    sep_node_limit_t first        = SEP_NODE_UARS;
    double least                  = 0;
    sep_node_counts_t total;
    double part;
    int limit;

    if (shortage->limit != SEP_NODE_LIMIT_LAST) {
        sep_info_print("# Fails: %s end at process %lu of %lu of %s",
                       sep_node_limit_texts[shortage->limit],
                       shortage->process, group->processes, group->label);
        if (group->line > 0) {
            sep_info_print(" (line %u)", group->line);
        }
        sep_info_print(", if they start in this order.\n");
        return;
    }

    sep_node_total(node, &total);
    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        part = (double)total.takes[limit] /
               sep_node_available(node, (sep_node_limit_t)limit);
        if ((part > least) && !node->is_unknown[limit]) {
            least = part;
            first = (sep_node_limit_t)limit;
        }
    }
    sep_info_print("# Fits. With %.1f times as much, %s would end first.\n",
                   (least > 0) ? (1 / least) : 0, sep_node_limit_texts[first]);
}

static void sep_info_node_advice(const sep_node_t *node, unsigned long most_qps,
                                 const sep_node_setting_t *setting)
{
    sep_node_counts_t total;

    sep_node_total(node, &total);
    if (total.takes[SEP_NODE_QPS] > most_qps) {
        sep_info_print("# The adapter keeps 90 %% of its rate of reads with up "
                       "to %lu queue pairs in use\n# (a model, "
                       "docs/model.md); here are %lu.\n", most_qps,
                       total.takes[SEP_NODE_QPS]);
    }
    if (!setting->is_enough) {
        sep_info_print("# No setting of sep_mlx5 fits: run fewer of the "
                       "others, let them take less, or\n# give the adapter "
                       "more UAR pages (PF_LOG_BAR_SIZE of mlxconfig).\n");
    } else if (setting->is_changed) {
        sep_info_print("# This setting of sep_mlx5 fits:\n");
        if (setting->category != SEP_PLAN_LAST) {
            sep_info_print("UCX_SEP_CATEGORY=%s\n",
                           sep_plan_category_name(setting->category));
        }
        if (setting->max_qps > 0) {
            sep_info_print("UCX_SEP_MAX_QPS=%lu\n"
                           "# or, for all together, so that some have what "
                           "others leave:\n# UCX_SEP_MAX_QPS_NODE=%lu\n",
                           setting->max_qps, setting->max_qps_node);
        }
    }
    if (setting->is_enough && setting->is_slow) {
        sep_info_print("# Even so there are more queue pairs than that.\n");
    }
}

static void
sep_info_node_add_counts(const sep_node_t *node, json_object *json,
                         const sep_node_counts_t *counts)
{
    int limit;

    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        if (node->is_unknown[limit]) {
            sep_json_add(json, sep_node_limit_names[limit], NULL);
        } else {
            sep_json_add_number(json, sep_node_limit_names[limit],
                                counts->takes[limit]);
        }
    }
    sep_json_add_number(json, "context_bytes", counts->context_bytes);
    sep_json_add_number(json, "queue_bytes", counts->queue_bytes);
}

static void sep_info_node_add_groups(const sep_node_t *node, json_object *json)
{
    json_object *groups = sep_json_add_array(json, "processes");
    const sep_node_group_t *group;
    sep_node_counts_t counts;
    json_object *one;
    unsigned i;

    for (i = 0; i < node->num_groups; ++i) {
        group = &node->groups[i];
        one   = sep_json_add_object(groups, NULL);
        sep_json_add_string(one, "stack", group->stack->name);
        sep_json_add_string(one, "label", group->label);
        sep_json_add_number(one, "processes", group->processes);
        sep_node_process(node, group, &counts);
        sep_info_node_add_counts(node, sep_json_add_object(one, "each"),
                                 &counts);
    }
    sep_node_total(node, &counts);
    sep_info_node_add_counts(node, sep_json_add_object(json, "total"), &counts);
}

static void sep_info_node_add(const sep_node_t *node, unsigned long most_qps,
                              const sep_node_shortage_t *shortage,
                              const sep_node_setting_t *setting,
                              json_object *json)
{
    json_object *one;
    int limit;

    sep_info_node_add_groups(node, json);
    one = sep_json_add_object(json, "available");
    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        sep_json_add_number(one, sep_node_limit_names[limit],
                            sep_node_available(node, (sep_node_limit_t)limit));
    }
    sep_json_add_number(json, "most_qps", most_qps);
    sep_json_add_bool(json, "fits", shortage->limit == SEP_NODE_LIMIT_LAST);
    if (shortage->limit != SEP_NODE_LIMIT_LAST) {
        one = sep_json_add_object(json, "fails");
        sep_json_add_string(one, "limit",
                            sep_node_limit_names[shortage->limit]);
        sep_json_add_string(one, "label",
                            node->groups[shortage->group].label);
        sep_json_add_number(one, "line", node->groups[shortage->group].line);
        sep_json_add_number(one, "process", shortage->process);
    }
    one = sep_json_add_object(json, "setting");
    sep_json_add_bool(one, "fits", setting->is_enough);
    sep_json_add_bool(one, "slow", setting->is_slow);
    if (setting->is_changed && (setting->category != SEP_PLAN_LAST)) {
        sep_json_add_string(one, "UCX_SEP_CATEGORY",
                            sep_plan_category_name(setting->category));
    }
    if (setting->is_changed && (setting->max_qps > 0)) {
        sep_json_add_number(one, "UCX_SEP_MAX_QPS", setting->max_qps);
        sep_json_add_number(one, "UCX_SEP_MAX_QPS_NODE", setting->max_qps_node);
    }
}

int sep_info_show_node(const sep_info_options_t *options, json_object *json)
{
    sep_node_shortage_t shortage;
    sep_node_setting_t setting;
    unsigned long most_qps;
    sep_node_t node;
    int status;

    sep_node_init(&node);
    node.config              = options->config;
    node.config.regime       = (options->regime == SEP_PLAN_LEGACY) ?
                               SEP_PLAN_LEGACY : SEP_PLAN_KERNEL_DYNAMIC;
    node.has[SEP_NODE_UARS]  = options->device_uars;
    node.kernel_uars         = options->kernel_uars;
    status                   = (strcmp(options->node, "live") == 0) ?
                               sep_info_live(options, &node) :
                               sep_info_node_describe(options, &node);
    if (status != SEP_INFO_OK) {
        sep_node_cleanup(&node);
        return status;
    }

    most_qps = sep_info_node_most_qps(options);
    sep_node_find_shortage(&node, &shortage);
    sep_node_find_setting(&node, most_qps, &setting);
    if (json != NULL) {
        sep_info_node_add(&node, most_qps, &shortage, &setting,
                          sep_json_add_object(json, "node"));
    } else {
        sep_info_node_table(&node);
        sep_info_node_verdict(&node, &shortage);
        sep_info_node_advice(&node, most_qps, &setting);
    }
    sep_node_cleanup(&node);
    return (shortage.limit == SEP_NODE_LIMIT_LAST) ? SEP_INFO_OK :
                                                     SEP_INFO_DIFFERENT;
}
