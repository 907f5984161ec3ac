/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_PREDICT_H
#define SEP_INFO_PREDICT_H

#include <tools/info/sep_info_options.h>

#include <model/rate.h>
#include <common/json.h>

/*
 * Rates that the model predicts: of the categories that are planned, and of
 * rows in a file.
 */

/** Read the adapter's parameters, if the user names one.
 *  @return 0, or -1 after a message. */
int sep_info_read_adapter(sep_info_options_t *options);


/** Show the rates of categories as a table. */
void sep_info_show_rates(const sep_info_options_t *options,
                         sep_plan_regime_t regime);


/** Add a category's rates to its plan. */
void sep_info_add_rates(const sep_info_options_t *options,
                        sep_plan_category_t category, sep_plan_regime_t regime,
                        json_object *json);


/** Predict the rows of the file that the user names. @return Exit status. */
int sep_info_predict_file(const sep_info_options_t *options);

#endif
