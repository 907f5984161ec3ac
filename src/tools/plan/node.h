/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TOOLS_NODE_H
#define SEP_TOOLS_NODE_H

#include <tools/plan/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file node.h
 *
 * All that runs on a node and shares an adapter: what it takes together, what
 * there is not enough of first, and how sep_mlx5 could be set so that there is.
 * Pure functions.
 */

/** What an adapter has so many of. */
typedef enum {
    SEP_NODE_UARS,
    SEP_NODE_QPS,
    SEP_NODE_CQS,
    SEP_NODE_LIMIT_LAST
} sep_node_limit_t;

/** "UAR pages", "queue pairs", "CQs"; and names in JSON and in descriptions. */
extern const char *sep_node_limit_texts[SEP_NODE_LIMIT_LAST];
extern const char *sep_node_limit_names[SEP_NODE_LIMIT_LAST];


/** A library that takes something of an adapter. */
typedef struct sep_node_stack {
    const char *name;
    int        is_planned;   /**< sep_mlx5, planned by its category */
    unsigned   workers;      /**< What a process has by default */
    /* For each process, each of its workers, and each peer of each worker */
    unsigned   process[SEP_NODE_LIMIT_LAST];
    unsigned   worker[SEP_NODE_LIMIT_LAST];
    unsigned   connection[SEP_NODE_LIMIT_LAST];
    int        is_plain;     /**< libmlx5 deals its uUARs to the queue pairs */
    const char *about;       /**< What it is, and what its workers are */
    const char *source;      /**< Where that is from */
} sep_node_stack_t;

/** What is known, with a last one without a name. */
extern const sep_node_stack_t sep_node_stacks[];

/** @return The stack of that name, NULL: there is none. */
const sep_node_stack_t *sep_node_stack_find(const char *name);


/** Value of a member that was not given. */
#define SEP_NODE_UNSET  (~0ul)

/** Longest label of processes, with the 0 at its end. */
#define SEP_NODE_LABEL_MAX  48


/** Processes that are alike. */
typedef struct sep_node_group {
    const sep_node_stack_t *stack;
    char                   label[SEP_NODE_LABEL_MAX];
    unsigned               line;       /**< Of the description, 0: none */
    unsigned long          processes;
    unsigned long          workers;    /**< Of each */
    unsigned long          peers;      /**< Of each worker */
    sep_plan_category_t    category;
    /** Of each process, in place of what its stack takes; SEP_NODE_UNSET */
    unsigned long          given[SEP_NODE_LIMIT_LAST];
} sep_node_group_t;


/** A node, or what runs on one of its adapters. */
typedef struct sep_node {
    sep_plan_config_t config;    /**< Of all processes with sep_mlx5: regime,
                                      queues, uUARs of a context */
    unsigned long     has[SEP_NODE_LIMIT_LAST];
    unsigned long     kernel_uars; /**< Of the pages, those of the kernel */
    int               is_unknown[SEP_NODE_LIMIT_LAST]; /**< Nobody tells how
                                                            many are taken */
    unsigned          num_groups;
    sep_node_group_t  *groups;   /**< In the order in which they start */
} sep_node_t;


/** What processes take. */
typedef struct sep_node_counts {
    unsigned long takes[SEP_NODE_LIMIT_LAST];
    unsigned long rc_qps;       /**< Of sep_mlx5, those that a budget is for */
    unsigned long queue_bytes;  /**< Of sep_mlx5: queues in the host's memory */
    unsigned long context_bytes; /**< What the adapter keeps of queue pairs and
                                      CQs, at least */
} sep_node_counts_t;


/** What is not enough. */
typedef struct sep_node_shortage {
    sep_node_limit_t limit;     /**< SEP_NODE_LIMIT_LAST: all is enough */
    unsigned         group;
    unsigned long    process;   /**< Of the group, from 1: the first without */
} sep_node_shortage_t;


/** How sep_mlx5 could be set. */
typedef struct sep_node_setting {
    int                 is_enough; /**< There is one that fits */
    int                 is_changed; /**< It is not what is described */
    sep_plan_category_t category;  /**< For all; SEP_PLAN_LAST: as described */
    unsigned long       max_qps;   /**< UCX_SEP_MAX_QPS of each process, 0: it
                                        needs none */
    unsigned long       max_qps_node; /**< Or UCX_SEP_MAX_QPS_NODE of all */
    int                 is_slow;   /**< Even so there are more queue pairs than
                                        the adapter keeps its rate with */
} sep_node_setting_t;


/** A node without processes: today's kernel, and 8192 UAR pages. */
void sep_node_init(sep_node_t *node);

/** Release what was added to it. */
void sep_node_cleanup(sep_node_t *node);

/**
 * Add processes.
 *
 * @return Them, a process with a peer and the workers that the stack has, until
 *         more are added; NULL: no memory.
 */
sep_node_group_t *
sep_node_add(sep_node_t *node, const sep_node_stack_t *stack);


/** What one process of a group takes. */
void sep_node_process(const sep_node_t *node, const sep_node_group_t *group,
                      sep_node_counts_t *counts_p);

/** What all take. */
void sep_node_total(const sep_node_t *node, sep_node_counts_t *counts_p);

/** @return How many there are for processes. */
unsigned long sep_node_available(const sep_node_t *node,
                                 sep_node_limit_t limit);

/** What is not enough first, if the processes start one after the other. */
void sep_node_find_shortage(const sep_node_t *node,
                            sep_node_shortage_t *shortage_p);

/**
 * How sep_mlx5 should be set.
 *
 * @param [in] most_qps  Queue pairs with which the adapter keeps its rate.
 */
void sep_node_find_setting(const sep_node_t *node, unsigned long most_qps,
                           sep_node_setting_t *setting_p);

#ifdef __cplusplus
}
#endif

#endif
