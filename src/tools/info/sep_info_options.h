/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_OPTIONS_H
#define SEP_INFO_OPTIONS_H

#include <tools/plan/plan.h>

#include <model/adapter.h>

/*
 * What sep_info is asked for, and its exit status.
 */

/** Exit status. */
enum {
    SEP_INFO_OK,        /**< All went well */
    SEP_INFO_DIFFERENT, /**< What was taken differs from the plan */
    SEP_INFO_USAGE,     /**< Wrong arguments */
    SEP_INFO_FAILED     /**< No device, no transport, or no resources */
};


/** What the threads that are predicted work with. */
typedef enum {
    SEP_INFO_PATH_VERBS,  /**< libibverbs: a doorbell per request, which the
                               adapter fetches with its data */
    SEP_INFO_PATH_INLINE, /**< libibverbs, short data inline. What is inline,
                               libmlx5 posts by BlueFlame */
    SEP_INFO_PATH_BLUEFLAME, /**< libibverbs by BlueFlame, which is its default
                                  for what is posted alone; short data inline */
    SEP_INFO_PATH_SEP,    /**< The transport: BlueFlame, inline data */
    SEP_INFO_PATH_LAST
} sep_info_path_t;

/** "verbs", "inline", "blueflame", "sep". */
extern const char *sep_info_path_names[SEP_INFO_PATH_LAST];


/** What the user asks for. */
typedef struct sep_info_options {
    const char          *dev_name;     /**< NULL: all, or the first one */
    int                 devices;       /**< Show devices */
    int                 plan;          /**< Show plans */
    int                 try;           /**< Open workers for real */
    int                 list;          /**< Show categories */
    int                 json;
    unsigned            workers;
    unsigned            peers;
    sep_plan_category_t category;      /**< SEP_PLAN_LAST: all */
    sep_plan_regime_t   regime;        /**< SEP_PLAN_REGIME_LAST: both */
    unsigned long       device_uars;
    unsigned long       kernel_uars;
    sep_plan_config_t   config;        /**< The transport's configuration */
    const char          *adapter_name; /**< Whose rates, NULL: none */
    const char          *adapters;     /**< File of adapters, NULL: ours */
    const char          *predict;      /**< File of rows, NULL: none */
    const char          *node;         /**< What runs on a node: a file, "-" or
                                            "live"; NULL: not asked for */
    unsigned            depth;         /**< Outstanding per worker */
    unsigned long       bytes;         /**< Of a request */
    sep_info_path_t     path;
    int                 is_load_set;   /**< One of the last three was given */
    sep_model_adapter_t adapter;       /**< What the model knows of it */
} sep_info_options_t;


/**
 * Read the command line.
 *
 * @return 0, 1 to end the program with success, or -1 after a message.
 */
int sep_info_parse(int argc, char **argv, sep_info_options_t *options);

#endif
