/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_LAYOUT_H
#define SEP_PERF_LAYOUT_H

#include <model/rate.h>
#include <tools/plan/plan.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file sep_perf_layout.h
 *
 * Who shares what, at the level of verbs: each resource by so many threads, as
 * in "Scalable Communication Endpoints for MPI+Threads Applications" (Zambre,
 * Chandramowlishwaran, Balaji, 2018), whose figures and categories are rows
 * here. Pure functions: no device is needed.
 */

/** Resources that can be shared: enumerator, name. */
#define SEP_PERF_RESOURCE_FOREACH(_macro) \
    _macro(BUF, "buf")  /* Local buffer */ \
    _macro(CTX, "ctx")  /* Device context */ \
    _macro(PD, "pd")    /* Protection domain */ \
    _macro(MR, "mr")    /* Memory region */ \
    _macro(CQ, "cq")    /* Completion queue */ \
    _macro(QP, "qp")    /* Queue pair */

typedef enum {
#define SEP_PERF_RESOURCE_ENUMERATOR(_id, _name) SEP_PERF_##_id,
    SEP_PERF_RESOURCE_FOREACH(SEP_PERF_RESOURCE_ENUMERATOR)
#undef SEP_PERF_RESOURCE_ENUMERATOR
    SEP_PERF_RESOURCE_LAST
} sep_perf_resource_t;

/** Their names: "buf", "ctx" ... */
extern const char *sep_perf_resource_names[SEP_PERF_RESOURCE_LAST];


/** Thread domain of a queue pair. libmlx5 gives domains the next free uUAR, two
 *  on a page: what is not used keeps others away. */
typedef enum {
    SEP_PERF_TD_NONE,   /**< None: the driver chooses the uUAR */
    SEP_PERF_TD_PAIR,   /**< One: two share a UAR page */
    SEP_PERF_TD_OWN,    /**< Two, of which one is used: a page of its own */
    SEP_PERF_TD_SPACED, /**< Four, of which one is used: and a page between it
                             and the next one */
    SEP_PERF_TD_LAST
} sep_perf_td_t;

/** Their names: "none", "pair", "own", "spaced". */
extern const char *sep_perf_td_names[SEP_PERF_TD_LAST];

/** @return Thread domains to allocate for each queue pair. */
unsigned sep_perf_td_count(sep_perf_td_t td);


/** As many threads as there are. */
#define SEP_PERF_ALL         0

/** Longest name of what is shared, with the 0 at its end. */
#define SEP_PERF_NAME_MAX    96


/** What is shared by how many threads. */
typedef struct sep_perf_sharing {
    char          name[SEP_PERF_NAME_MAX];    /**< As the user says it */
    unsigned      ways[SEP_PERF_RESOURCE_LAST]; /**< Threads of each, or
                                                   SEP_PERF_ALL */
    sep_perf_td_t td;
} sep_perf_sharing_t;


/**
 * Understand the name of a category, or a list: "ctx=16,cq=4,td=own". What a
 * list does not say is not shared, and each queue pair has a thread domain on a
 * UAR page of its own ("naive" endpoints), or none if several threads share it.
 * A number may be "all".
 *
 * @param [out] message  What is wrong, SEP_MODEL_MESSAGE_MAX bytes.
 *
 * @return 0, or -1.
 */
int sep_perf_sharing_parse(const char *text, sep_perf_sharing_t *sharing_p,
                           char *message);


/** Name of what is not known to be shared or not. */
#define SEP_PERF_UNKNOWN     "-"

/** Nothing is known: of transports that are not ours. */
void sep_perf_sharing_unknown(sep_perf_sharing_t *sharing_p);


/**
 * Say whether so many threads can share like this: objects belong to others,
 * which must not be shared by fewer.
 *
 * @return 0, or -1 with a message.
 */
int sep_perf_sharing_check(const sep_perf_sharing_t *sharing, unsigned threads,
                           char *message);


/** @return Threads of a resource: at most all of them. */
unsigned sep_perf_ways(const sep_perf_sharing_t *sharing,
                       sep_perf_resource_t resource, unsigned threads);


/** @return How many there are of a resource. */
unsigned sep_perf_count(const sep_perf_sharing_t *sharing,
                        sep_perf_resource_t resource, unsigned threads);


/**
 * Say what is shared in the words of the model.
 *
 * @param [in]  config     Regime, and uUARs of a context.
 * @param [in]  verbs      They post through libibverbs, which locks queue pairs
 *                         without a thread domain.
 * @param [out] sharing_p  For the model.
 */
void sep_perf_model_sharing(const sep_perf_sharing_t *sharing, unsigned threads,
                            const sep_plan_config_t *config, int verbs,
                            sep_model_sharing_t *sharing_p);


/**
 * Find what sep_info --predict calls it.
 *
 * @param [out] name  At least SEP_PERF_NAME_MAX bytes; "-" if it has no name.
 */
void sep_perf_policy(const sep_perf_sharing_t *sharing, unsigned threads,
                     char *name);


/** Memory of objects: what the paper's figures count (its table of memory, with
 *  the libmlx5 of 2018). */
#define SEP_PERF_PAPER_CTX_BYTES  (256ul * 1024)
#define SEP_PERF_PAPER_PD_BYTES   144ul
#define SEP_PERF_PAPER_MR_BYTES   144ul
#define SEP_PERF_PAPER_QP_BYTES   (80ul * 1024)
#define SEP_PERF_PAPER_CQ_BYTES   (9ul * 1024)

/** @return Bytes of all objects in the paper's sizes. */
unsigned long sep_perf_paper_bytes(const sep_perf_sharing_t *sharing,
                                   unsigned threads);


/** What a figure of the paper shares: rows of increasing x. */
typedef struct sep_perf_figure {
    unsigned   number;
    const char *about;
    const char *share;  /**< With one "%u", which becomes x; without: a row per
                             number of threads */
} sep_perf_figure_t;

/** @return A figure, or NULL if there is no such one with resources. */
const sep_perf_figure_t *sep_perf_figure_find(unsigned number);

/** @return The figure in the table with that index, or NULL behind the end. */
const sep_perf_figure_t *sep_perf_figure_at(unsigned index);

#ifdef __cplusplus
}
#endif

#endif
