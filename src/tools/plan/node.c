/* SPDX-License-Identifier: BSD-3-Clause */

#include <tools/plan/node.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* mlx5's programmer's reference: a queue pair's context has 232 bytes, which
 * are kept in 256, and a CQ's has 64 (Linux, mlx5_ifc.h: qpc, cqc) */
#define SEP_NODE_QP_CONTEXT  256
#define SEP_NODE_CQ_CONTEXT  64

/* What adapters have if nobody says (sep_info -d prints it of one) */
#define SEP_NODE_MAX_QP  131072
#define SEP_NODE_MAX_CQ  16777216

const char *sep_node_limit_texts[SEP_NODE_LIMIT_LAST] = {
    [SEP_NODE_UARS] = "UAR pages",
    [SEP_NODE_QPS]  = "queue pairs",
    [SEP_NODE_CQS]  = "CQs"
};

const char *sep_node_limit_names[SEP_NODE_LIMIT_LAST] = {
    [SEP_NODE_UARS] = "uars",
    [SEP_NODE_QPS]  = "qps",
    [SEP_NODE_CQS]  = "cqs"
};

/* UAR pages, queue pairs, CQs; the pages of contexts are not counted here */
const sep_node_stack_t sep_node_stacks[] = {
    {
        .name       = "sep_mlx5",
        .is_planned = 1,
        .workers    = 1,
        .about      = "MPI, OpenSHMEM or others on UCX with this transport",
        .source     = "docs/resources.md"
    },
    {
        .name       = "rc_mlx5",
        .workers    = 1,
        .worker     = {1, 1, 4},
        .connection = {0, 1, 0},
        .about      = "the same with UCX's own transport",
        .source     = "counted: UCX 1.13.1, UCX_TLS=rc_x, mlx5sim-stat"
    },
    {
        .name       = "nixl",
        .workers    = 8,
        .worker     = {1, 1, 4},
        .connection = {0, 1, 0},
        .about      = "NIXL on rc_mlx5; workers: num_threads",
        .source     = "vllm-project/vllm, pull request 27196"
    },
    {
        .name       = "nvshmem",
        .workers    = 8,
        .process    = {1, 1, 1},
        .connection = {1, 1, 1},
        .about      = "NVSHMEM with IBGDA; workers: RC queue pairs to each "
                      "peer",
        .source     = "vllm-project/vllm, pull request 27196"
    },
    {
        .name       = "mooncake",
        .workers    = 2,
        .process    = {0, 0, 1},
        .connection = {0, 1, 0},
        .is_plain   = 1,
        .about      = "Mooncake's transfer engine; workers: queue pairs to "
                      "each peer",
        .source     = "kvcache-ai/Mooncake, docs/source/"
                      "design/transfer-engine"
    },
    {
        .name       = "perftest",
        .workers    = 1,
        .process    = {0, 0, 1},
        .connection = {0, 1, 0},
        .is_plain   = 1,
        .about      = "ib_write_bw and others; workers: queue pairs (-q)",
        .source     = "counted: perftest, mlx5sim-stat"
    },
    {
        .name       = "other",
        .workers    = 1,
        .about      = "anything: say what each process takes",
        .source     = "the description"
    },
    {}
};


const sep_node_stack_t *sep_node_stack_find(const char *name)
{
    const sep_node_stack_t *stack;

    for (stack = sep_node_stacks; stack->name != NULL; ++stack) {
        if (strcmp(stack->name, name) == 0) {
            return stack;
        }
    }
    return NULL;
}

void sep_node_init(sep_node_t *node)
{
    memset(node, 0, sizeof(*node));
    sep_plan_config_init(&node->config);
    node->has[SEP_NODE_UARS] = SEP_PLAN_DEVICE_UARS;
    node->has[SEP_NODE_QPS]  = SEP_NODE_MAX_QP;
    node->has[SEP_NODE_CQS]  = SEP_NODE_MAX_CQ;
    node->kernel_uars        = SEP_PLAN_KERNEL_UARS;
}

void sep_node_cleanup(sep_node_t *node)
{
    free(node->groups);
    node->groups     = NULL;
    node->num_groups = 0;
}

sep_node_group_t *
sep_node_add(sep_node_t *node, const sep_node_stack_t *stack)
{
    sep_node_group_t *groups;
    sep_node_group_t *group;
    int limit;

    groups = realloc(node->groups, (node->num_groups + 1) * sizeof(*groups));
    if (groups == NULL) {
        return NULL;
    }

    node->groups = groups;
    group        = &groups[node->num_groups++];
    memset(group, 0, sizeof(*group));
    snprintf(group->label, sizeof(group->label), "%s", stack->name);
    group->stack     = stack;
    group->processes = 1;
    group->workers   = stack->workers;
    group->peers     = 1;
    group->category  = node->config.category;
    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        group->given[limit] = SEP_NODE_UNSET;
    }
    return group;
}

/* A process of sep_mlx5 */
static void
sep_node_plan(const sep_node_t *node, const sep_node_group_t *group,
              sep_node_counts_t *counts)
{
    sep_plan_config_t config = node->config;
    const char *reason;
    sep_plan_t plan;

    config.category = group->category;
    config.workers  = group->workers;
    config.peers    = group->peers;
    if (sep_plan_make(&config, &plan, &reason) != 0) {
        return; /* Only without workers, which a description can't have */
    }

    counts->takes[SEP_NODE_UARS] = sep_plan_uars(&plan.total);
    counts->takes[SEP_NODE_QPS]  = plan.total.qps;
    counts->takes[SEP_NODE_CQS]  = plan.total.cqs;
    /* All but the connection managers', of which each worker has one as it has
     * a receive queue */
    counts->rc_qps               = plan.total.qps - plan.total.srqs;
    counts->queue_bytes          = plan.total.qp_bytes + plan.total.cq_bytes +
                                   plan.total.srq_bytes;
}

/* A process of another stack */
static void
sep_node_sum(const sep_node_t *node, const sep_node_group_t *group,
             sep_node_counts_t *counts)
{
    const sep_node_stack_t *stack = group->stack;
    int limit;

    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        counts->takes[limit] = stack->process[limit] +
                               (group->workers *
                                (stack->worker[limit] +
                                 (group->peers * stack->connection[limit])));
    }
    counts->takes[SEP_NODE_UARS] += sep_plan_context_uars(
            &node->config, stack->is_plain ? counts->takes[SEP_NODE_QPS] : 0);
}

void sep_node_process(const sep_node_t *node, const sep_node_group_t *group,
                      sep_node_counts_t *counts_p)
{
    int limit;

    memset(counts_p, 0, sizeof(*counts_p));
    if (group->stack->is_planned) {
        sep_node_plan(node, group, counts_p);
    } else if (strcmp(group->stack->name, "other") != 0) {
        sep_node_sum(node, group, counts_p);
    }

    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        if (group->given[limit] != SEP_NODE_UNSET) {
            counts_p->takes[limit] = group->given[limit];
        }
    }
    counts_p->context_bytes =
            (counts_p->takes[SEP_NODE_QPS] * SEP_NODE_QP_CONTEXT) +
            (counts_p->takes[SEP_NODE_CQS] * SEP_NODE_CQ_CONTEXT);
}

void sep_node_total(const sep_node_t *node, sep_node_counts_t *counts_p)
{
    sep_node_counts_t one;
    unsigned i;
    int limit;

    memset(counts_p, 0, sizeof(*counts_p));
    for (i = 0; i < node->num_groups; ++i) {
        sep_node_process(node, &node->groups[i], &one);
        for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
            counts_p->takes[limit] += one.takes[limit] *
                                      node->groups[i].processes;
        }
        counts_p->rc_qps        += one.rc_qps * node->groups[i].processes;
        counts_p->queue_bytes   += one.queue_bytes * node->groups[i].processes;
        counts_p->context_bytes += one.context_bytes *
                                   node->groups[i].processes;
    }
}

unsigned long sep_node_available(const sep_node_t *node,
                                 sep_node_limit_t limit)
{
    unsigned long kernel = (limit == SEP_NODE_UARS) ? node->kernel_uars : 0;

    return (node->has[limit] > kernel) ? (node->has[limit] - kernel) : 0;
}

void sep_node_find_shortage(const sep_node_t *node,
                            sep_node_shortage_t *shortage_p)
{
    unsigned long left[SEP_NODE_LIMIT_LAST];
    unsigned long fit, least;
    sep_node_counts_t one;
    unsigned i;
    int limit;

    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        left[limit] = sep_node_available(node, (sep_node_limit_t)limit);
    }

    shortage_p->limit   = SEP_NODE_LIMIT_LAST;
    shortage_p->group   = 0;
    shortage_p->process = 0;
    for (i = 0; i < node->num_groups; ++i) {
        sep_node_process(node, &node->groups[i], &one);
        least = node->groups[i].processes;
        for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
            fit = (one.takes[limit] > 0) ? (left[limit] / one.takes[limit]) :
                                           least;
            if (fit < least) {
                least               = fit;
                shortage_p->limit   = (sep_node_limit_t)limit;
                shortage_p->group   = i;
                shortage_p->process = fit + 1;
            }
        }
        if (shortage_p->limit != SEP_NODE_LIMIT_LAST) {
            return;
        }
        for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
            left[limit] -= least * one.takes[limit];
        }
    }
}

/* What a budget leaves each process, 0: none is needed */
static void sep_node_find_budget(const sep_node_t *node, unsigned long most_qps,
                                 sep_node_setting_t *setting)
{
    unsigned long processes  = 0;
    unsigned long least      = 0;
    sep_plan_config_t config = node->config;
    sep_node_counts_t total;
    unsigned long others, left;
    unsigned i;

    sep_node_total(node, &total);
    setting->max_qps      = 0;
    setting->max_qps_node = 0;
    setting->is_slow      = 0;
    if (most_qps > sep_node_available(node, SEP_NODE_QPS)) {
        most_qps = sep_node_available(node, SEP_NODE_QPS);
    }
    if (total.takes[SEP_NODE_QPS] <= most_qps) {
        return;
    }

    for (i = 0; i < node->num_groups; ++i) {
        if (node->groups[i].stack->is_planned) {
            processes      += node->groups[i].processes;
            config.category = node->groups[i].category;
            config.workers  = node->groups[i].workers;
            if (sep_plan_least_qps(&config) > least) {
                least = sep_plan_least_qps(&config);
            }
        }
    }
    setting->is_slow = 1;
    if (processes == 0) {
        return;
    }

    others           = total.takes[SEP_NODE_QPS] - total.rc_qps;
    left             = (others < most_qps) ? (most_qps - others) : 0;
    setting->max_qps = left / processes;
    if (setting->max_qps >= least) {
        setting->is_slow = 0;
    } else {
        setting->max_qps = least;
    }
    setting->max_qps_node = setting->max_qps * processes;
}

/* @return Whether a category fits, for all of sep_mlx5. */
static int
sep_node_try(const sep_node_t *node, sep_plan_category_t category,
             unsigned long most_qps, sep_node_setting_t *setting)
{
    sep_node_t trial = *node;
    sep_node_shortage_t shortage;
    unsigned i;

    trial.groups = malloc((node->num_groups + 1) * sizeof(*trial.groups));
    if (trial.groups == NULL) {
        return 0;
    }

    memcpy(trial.groups, node->groups,
           node->num_groups * sizeof(*trial.groups));
    for (i = 0; (category != SEP_PLAN_LAST) && (i < node->num_groups); ++i) {
        trial.groups[i].category = category;
    }
    setting->category = category;
    sep_node_find_budget(&trial, most_qps, setting);
    if (setting->max_qps > 0) {
        trial.config.max_qps = setting->max_qps;
    }
    sep_node_find_shortage(&trial, &shortage);
    free(trial.groups);
    return shortage.limit == SEP_NODE_LIMIT_LAST;
}

void sep_node_find_setting(const sep_node_t *node, unsigned long most_qps,
                           sep_node_setting_t *setting_p)
{
    /* Those that workers may have for themselves, with fewer and fewer pages */
    static const sep_plan_category_t order[] = {
        SEP_PLAN_LAST, SEP_PLAN_DYNAMIC, SEP_PLAN_SHARED_DYNAMIC,
        SEP_PLAN_STATIC
    };
    unsigned i;

    memset(setting_p, 0, sizeof(*setting_p));
    for (i = 0; i < (sizeof(order) / sizeof(order[0])); ++i) {
        if (sep_node_try(node, order[i], most_qps, setting_p)) {
            setting_p->is_enough = 1;
            break;
        }
    }
    setting_p->is_changed = setting_p->is_enough &&
                            ((setting_p->category != SEP_PLAN_LAST) ||
                             (setting_p->max_qps > 0));
}
