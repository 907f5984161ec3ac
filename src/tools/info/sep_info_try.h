/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_TRY_H
#define SEP_INFO_TRY_H

#include <tools/info/sep_info_options.h>

#include <common/json.h>

/*
 * Workers that are opened for real.
 */

/**
 * Open workers, and compare what they have taken with the plan.
 *
 * @param json  Document to add to, NULL: print text.
 * @return Exit status.
 */
int sep_info_try(const sep_info_options_t *options, json_object *json);

#endif
