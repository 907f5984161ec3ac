/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_LIST_H
#define SEP_INFO_LIST_H

#include <common/json.h>

/*
 * List of categories, for people and for scripts.
 */

/**
 * Show the categories.
 *
 * @param json  Document to add to, NULL: print text.
 */
void sep_info_show_categories(json_object *json);

#endif
