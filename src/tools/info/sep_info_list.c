/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_list.h>
#include <tools/info/sep_info_out.h>

#include <uct/ib/sep/category/sep_category.h>


static void
sep_info_category_json(const uct_sep_category_row_t *row, json_object *json)
{
    int is_any = (row->auto_workers == UCT_SEP_CATEGORY_AUTO_ANY);

    sep_json_add_string(json, "category", row->name);
    sep_json_add_string(json, "what", row->doc);
    sep_json_add_bool(json, "own_context", row->own_context);
    sep_json_add_bool(json, "hub", row->is_hub);
    sep_json_add_bool(json, "auto", row->auto_workers > 0);
    sep_json_add_bool(json, "auto_alone", row->auto_alone);
    if ((row->auto_workers > 0) && !is_any) {
        sep_json_add_number(json, "auto_workers", row->auto_workers);
    }
}

static void sep_info_category_print(const uct_sep_category_row_t *row)
{
    sep_info_print("%-16s %s\n", row->name, row->doc);
}

/* Those by which the transport chooses a category: none has their names */
static void sep_info_show_choices(json_object *json)
{
    json_object *list = (json == NULL) ? NULL :
                        sep_json_add_array(json, "choices");
    const uct_sep_category_row_t *row;
    json_object *choice;
    int category;

    if (list == NULL) {
        sep_info_print("\nThe transport chooses one of these:\n");
    }

    for (category = UCT_SEP_CATEGORY_AUTO; category < UCT_SEP_CATEGORY_LAST;
         ++category) {
        row = &uct_sep_category_rows[category];
        if (list == NULL) {
            sep_info_category_print(row);
        } else {
            choice = sep_json_add_object(list, NULL);
            sep_json_add_string(choice, "choice", row->name);
            sep_json_add_string(choice, "what", row->doc);
        }
    }
}

void sep_info_show_categories(json_object *json)
{
    json_object *list = (json == NULL) ? NULL :
                        sep_json_add_array(json, "categories");
    const uct_sep_category_row_t *row;
    int category;

    for (category = 0; category < UCT_SEP_CATEGORY_AUTO; ++category) {
        row = &uct_sep_category_rows[category];
        if (list != NULL) {
            sep_info_category_json(row, sep_json_add_object(list, NULL));
        } else {
            sep_info_category_print(row);
        }
    }

    sep_info_show_choices(json);
}
