/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_PLAN_H
#define SEP_INFO_PLAN_H

#include <tools/info/sep_info_options.h>

#include <common/json.h>

/*
 * Plans for the transport's configuration.
 */

/**
 * Copy the configuration of the transport and of libmlx5 into the options'
 * plan: UCX_SEP_*, MLX5_TOTAL_UUARS, MLX5_NUM_LOW_LAT_UUARS.
 *
 * @return 0, or -1 after a message.
 */
int sep_info_read_config(sep_info_options_t *options);

/**
 * Show plans.
 *
 * @param json  Document to add to, NULL: print text.
 * @return Exit status.
 */
int sep_info_show_plans(const sep_info_options_t *options, json_object *json);

#endif
