/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CATEGORY_H
#define UCT_SEP_CATEGORY_H

#include <uct/ib/sep/category/sep_category_auto.h>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file sep_category.h
 *
 * Sharing categories, those of "Scalable Communication Endpoints for
 * MPI+Threads Applications" (Zambre, Chandramowlishwaran, Balaji, 2018): a row
 * for each. Everything known about a category anywhere comes from its row: the
 * values of UCX_SEP_CATEGORY and their help, how a worker's channel is opened,
 * what auto chooses, what can't be combined, plans and lists of sep_info, and
 * through these tests and benchmarks. docs/add-a-category.md shows how to add
 * one.
 *
 * Nothing here needs UCX or libibverbs, for the planner is a pure function.
 */

/** Which uUAR a worker's connection manager rings. */
typedef enum {
    UCT_SEP_CATEGORY_CM_DRIVER,  /**< The one that the driver assigns */
    UCT_SEP_CATEGORY_CM_COMMON,  /**< In the dynamic regime, one for all workers
                                      of the memory domain; else the driver's */
    UCT_SEP_CATEGORY_CM_OWN_PAGE /**< An unused one on the worker's pages */
} uct_sep_category_cm_t;


/** Maximum number of thread domains of a worker. */
#define UCT_SEP_CATEGORY_MAX_TDS  4

/** For uct_sep_category_row_t::auto_workers: no limit. */
#define UCT_SEP_CATEGORY_AUTO_ANY UINT_MAX


/** A category. Members that a row does not mention are 0. */
typedef struct uct_sep_category_row {
    const char            *name;       /**< Value of UCX_SEP_CATEGORY */
    const char            *doc;        /**< What workers have, in a few words */
    uint8_t               own_context; /**< Each worker sends in a context of
                                            its own, and receives in that of
                                            the memory domain */
    uint8_t               tds;         /**< Thread domains of a worker, two on
                                            each UAR page; with 1, two workers
                                            share a page. Without any, the
                                            driver chooses where queue pairs
                                            ring */
    uint8_t               is_hub;      /**< Only one worker, a hub's, has what
                                            the row says, for all others */
    uint8_t               is_default;  /**< What a worker gets unless
                                            UCX_SEP_CATEGORY is set, if it is
                                            available */
    uint8_t               auto_alone;  /**< auto chooses it for the first
                                            worker */
    unsigned              auto_workers; /**< auto chooses it up to this many
                                             workers, unless a row above
                                             applies, or if there are no UAR
                                             pages for a row above. 0: never */
    uct_sep_category_cm_t cm;
} uct_sep_category_row_t;


/**
 * The rows, from the most to the fewest resources: enumerator, name, the
 * uct_sep_category_ops_t that opens its channel (uct_sep_category_xx), and
 * members of uct_sep_category_row_t.
 */
#define UCT_SEP_CATEGORY_FOREACH(_macro) \
    _macro(MPI_EVERYWHERE, mpi_everywhere, context, \
           .doc          = "a device context each", \
           .own_context  = 1) \
    _macro(2XDYNAMIC, 2xdynamic, dynamic, \
           .doc          = "two UAR pages each, of which one is used", \
           .tds          = 4, \
           .cm           = UCT_SEP_CATEGORY_CM_OWN_PAGE, \
           .auto_workers = UCT_SEP_CATEGORY_AUTO_2XDYNAMIC) \
    _macro(DYNAMIC, dynamic, dynamic, \
           .doc          = "a UAR page each", \
           .tds          = 2, \
           .cm           = UCT_SEP_CATEGORY_CM_OWN_PAGE, \
           .is_default   = 1, \
           .auto_alone   = 1, \
           .auto_workers = UCT_SEP_CATEGORY_AUTO_DYNAMIC) \
    _macro(SHARED_DYNAMIC, shared_dynamic, shared_dynamic, \
           .doc          = "two workers share a UAR page", \
           .tds          = 1, \
           .cm           = UCT_SEP_CATEGORY_CM_COMMON, \
           .auto_workers = UCT_SEP_CATEGORY_AUTO_SHARED_DYNAMIC) \
    _macro(STATIC, static, static, \
           .doc          = "UARs as the driver assigns them", \
           .cm           = UCT_SEP_CATEGORY_CM_COMMON, \
           .auto_workers = UCT_SEP_CATEGORY_AUTO_ANY) \
    _macro(MPI_THREADS, mpi_threads, static, \
           .doc          = "one queue pair for all", \
           .is_hub       = 1, \
           .cm           = UCT_SEP_CATEGORY_CM_COMMON)


/** Categories, numbered by rows. */
typedef enum {
#define UCT_SEP_CATEGORY_ENUMERATOR(_id, ...) UCT_SEP_CATEGORY_##_id,
    UCT_SEP_CATEGORY_FOREACH(UCT_SEP_CATEGORY_ENUMERATOR)
#undef UCT_SEP_CATEGORY_ENUMERATOR
    UCT_SEP_CATEGORY_AUTO,    /**< One of the rows; also their number */
    UCT_SEP_CATEGORY_DEFAULT, /**< Not set: the default row, or a lesser one */
    UCT_SEP_CATEGORY_LAST
} uct_sep_category_t;


/** Rows; those of auto and default have only a name and a description. */
extern const uct_sep_category_row_t
        uct_sep_category_rows[UCT_SEP_CATEGORY_LAST];


/** Names, with auto and default; NULL at the end, as UCX's parser wants it. */
extern const char *uct_sep_category_names[UCT_SEP_CATEGORY_LAST + 1];


/**
 * Category that auto chooses for a worker.
 *
 * @param num_workers  Of the memory domain, this one included.
 */
uct_sep_category_t uct_sep_category_auto_first(unsigned num_workers);


/**
 * Category that a worker should get.
 *
 * @param category     As configured.
 * @param num_workers  Of the memory domain, this one included.
 *
 * @return A row.
 */
uct_sep_category_t uct_sep_category_wanted(uct_sep_category_t category,
                                           unsigned num_workers);


/** Category that auto and default choose if another can't be had.
 *  UCT_SEP_CATEGORY_AUTO if there is none left. */
uct_sep_category_t uct_sep_category_auto_next(uct_sep_category_t category);


/** Write all rows' names to a buffer, separated by ", ". @return @a buf. */
const char *uct_sep_category_list(char *buf, size_t max);

#ifdef __cplusplus
}
#endif

#endif
