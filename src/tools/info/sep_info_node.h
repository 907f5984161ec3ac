/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_NODE_H
#define SEP_INFO_NODE_H

#include <tools/info/sep_info_options.h>

#include <common/json.h>

/*
 * A node: all that shares an adapter.
 */

/**
 * Plan the node that a file describes, or show what runs on this one.
 *
 * @param json  Document to add to, NULL: print text.
 * @return Exit status.
 */
int sep_info_show_node(const sep_info_options_t *options, json_object *json);

#endif
