/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_MODEL_ROW_H
#define SEP_MODEL_ROW_H

#include <model/rate.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file row.h
 *
 * Measurements as rows of CSV, "op,policy,threads,depth,bytes" and perhaps
 * more: read, predicted, and printed with another column. A first row may name
 * the columns, in any order, and may then have "qps", "signal" and "steady",
 * too (sep_model_load_t). Empty lines and comments ("#") are left out.
 */

/** Greatest numbers in a row. */
#define SEP_MODEL_MAX_THREADS  4096
#define SEP_MODEL_MAX_DEPTH    32768
#define SEP_MODEL_MAX_BYTES    (1ul << 30)
#define SEP_MODEL_MAX_QPS      (1ul << 24)

/** Name of the column that is added. */
#define SEP_MODEL_PREDICTED    "predicted_mops"


/**
 * Find what threads share by the name of it in a row.
 *
 * @return 0, or -1 if there is none of that name.
 */
typedef int (*sep_model_sharing_find_t)(const char *name,
                                        sep_model_sharing_t *sharing_p);


/** How rows are understood. */
typedef struct sep_model_rows {
    const sep_model_adapter_t *adapter;
    sep_model_post_t          post;         /**< These are not in rows. Inline
                                                 data goes by BlueFlame */
    unsigned                  max_inline;   /**< Data up to this length is
                                                 inline, if it can be */
    double                    instructions;
    sep_model_sharing_find_t  find;
    const char                *policies;    /**< Names that it knows, for a
                                                 message */
} sep_model_rows_t;


/**
 * Predict rows.
 *
 * @param [in]  rows     How they are understood.
 * @param [in]  in       Where they are.
 * @param [in]  in_name  What to call that in a message.
 * @param [in]  out      Where to print them. Nothing is printed unless all rows
 *                       are right.
 * @param [out] message  What is wrong, with the line; at least
 *                       SEP_MODEL_MESSAGE_MAX bytes.
 *
 * @return 0, or -1.
 */
int sep_model_predict_rows(const sep_model_rows_t *rows, FILE *in,
                           const char *in_name, FILE *out, char *message);

#ifdef __cplusplus
}
#endif

#endif
