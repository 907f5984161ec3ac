/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/category/sep_category.h>

#include <stdio.h>

const uct_sep_category_row_t uct_sep_category_rows[] = {
#define UCT_SEP_CATEGORY_ROW(_id, _name, _ops, ...) \
    [UCT_SEP_CATEGORY_##_id] = {.name = #_name, __VA_ARGS__},
    UCT_SEP_CATEGORY_FOREACH(UCT_SEP_CATEGORY_ROW)
#undef UCT_SEP_CATEGORY_ROW
    [UCT_SEP_CATEGORY_AUTO] = {.name = "auto",
                               .doc  = "the best that is available"},
    [UCT_SEP_CATEGORY_DEFAULT] = {.name = "default",
                                  .doc  = "dynamic, or what is available"}
};

const char *uct_sep_category_names[] = {
#define UCT_SEP_CATEGORY_NAME(_id, _name, ...) \
    [UCT_SEP_CATEGORY_##_id] = #_name,
    UCT_SEP_CATEGORY_FOREACH(UCT_SEP_CATEGORY_NAME)
#undef UCT_SEP_CATEGORY_NAME
    [UCT_SEP_CATEGORY_AUTO] = "auto",
    [UCT_SEP_CATEGORY_DEFAULT] = "default",
    [UCT_SEP_CATEGORY_LAST] = NULL
};

/* A single worker has no neighbour to avoid; a few can be generous; many share,
 * when the adapter has become the limit or so that pages suffice */
uct_sep_category_t uct_sep_category_auto_first(unsigned num_workers)
{
    const uct_sep_category_row_t *row = uct_sep_category_rows;

    while ((num_workers == 1) ? !row->auto_alone :
                                (num_workers > row->auto_workers)) {
        ++row;
    }
    return (uct_sep_category_t)(row - uct_sep_category_rows);
}

static uct_sep_category_t uct_sep_category_default(void)
{
    const uct_sep_category_row_t *row = uct_sep_category_rows;

    while (!row->is_default) {
        ++row;
    }
    return (uct_sep_category_t)(row - uct_sep_category_rows);
}

uct_sep_category_t uct_sep_category_wanted(uct_sep_category_t category,
                                           unsigned num_workers)
{
    return (category == UCT_SEP_CATEGORY_AUTO) ?
           uct_sep_category_auto_first(num_workers) :
           (category == UCT_SEP_CATEGORY_DEFAULT) ?
           uct_sep_category_default() : category;
}

uct_sep_category_t uct_sep_category_auto_next(uct_sep_category_t category)
{
    int next = category;

    do {
        ++next;
    } while ((next < UCT_SEP_CATEGORY_AUTO) &&
             (uct_sep_category_rows[next].auto_workers == 0));
    return (uct_sep_category_t)next;
}

const char *uct_sep_category_list(char *buf, size_t max)
{
    size_t length = 0;
    int category;

    buf[0] = '\0';
    for (category = 0; category < UCT_SEP_CATEGORY_AUTO; ++category) {
        length += snprintf(buf + length, max - length, "%s%s",
                           (category == 0) ? "" : ", ",
                           uct_sep_category_rows[category].name);
        if (length >= max) {
            break;
        }
    }
    return buf;
}
