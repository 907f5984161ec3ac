/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_device.h>
#include <tools/info/sep_info_list.h>
#include <tools/info/sep_info_node.h>
#include <tools/info/sep_info_options.h>
#include <tools/info/sep_info_out.h>
#include <tools/info/sep_info_plan.h>
#include <tools/info/sep_info_predict.h>
#include <tools/info/sep_info_try.h>

#include <common/json.h>

/**
 * @file sep_info.c
 *
 * Devices, plans, and what a process really takes. No part of sep_info knows
 * what kind of device there is: it asks libibverbs and libmlx5, looks at the
 * memory map of the process, and reads what the transport counts. The transport
 * is linked into the program.
 */


/* @param json  Document to add to, NULL: print text */
static int sep_info_run(const sep_info_options_t *options, json_object *json)
{
    int status = SEP_INFO_OK;

    if (options->predict != NULL) {
        return sep_info_predict_file(options);
    }
    if (options->list) {
        sep_info_show_categories(json);
    }
    if (options->devices) {
        status = sep_info_show_devices(options, json);
    }
    if ((status == SEP_INFO_OK) && options->plan) {
        status = sep_info_show_plans(options, json);
    }
    if ((status == SEP_INFO_OK) && options->try) {
        status = sep_info_try(options, json);
    }
    if ((status == SEP_INFO_OK) && (options->node != NULL)) {
        status = sep_info_show_node(options, json);
    }
    return status;
}

static int sep_info_close(int status)
{
    return (sep_info_out_close() == 0) ? status : SEP_INFO_FAILED;
}

int main(int argc, char **argv)
{
    sep_info_options_t options;
    json_object *json;
    int ret;

    if (sep_info_out_open() != 0) {
        return SEP_INFO_FAILED;
    }

    ret = sep_info_parse(argc, argv, &options);
    if (ret != 0) {
        return sep_info_close((ret < 0) ? SEP_INFO_USAGE : SEP_INFO_OK);
    }

    if ((sep_info_read_config(&options) != 0) ||
        (sep_info_read_adapter(&options) != 0)) {
        return SEP_INFO_USAGE;
    }

    json = options.json ? json_object_new_object() : NULL;
    ret  = sep_info_run(&options, json);
    if (json != NULL) {
        sep_json_print(json, sep_info_out);
    }
    return sep_info_close(ret);
}
