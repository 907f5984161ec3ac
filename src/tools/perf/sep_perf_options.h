/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_OPTIONS_H
#define SEP_PERF_OPTIONS_H

#include <tools/perf/sep_perf_layout.h>

#include <model/adapter.h>
#include <model/rate.h>

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file sep_perf_options.h
 *
 * What sep_perf is asked to measure, and its exit status.
 */

/** Exit status. */
enum {
    SEP_PERF_OK,
    SEP_PERF_WRONG,    /**< Data did not arrive */
    SEP_PERF_USAGE,    /**< Wrong arguments */
    SEP_PERF_FAILED    /**< No device, or no resources */
};


/** What the threads work with. */
typedef enum {
    SEP_PERF_VERBS,  /**< libibverbs */
    SEP_PERF_DV,     /**< Work requests that the transport's code writes to the
                          queues, without libibverbs */
    SEP_PERF_UCT,    /**< Workers of a UCT transport */
    SEP_PERF_LEVEL_LAST
} sep_perf_level_t;

/** "verbs", "dv", "uct". */
extern const char *sep_perf_level_names[SEP_PERF_LEVEL_LAST];


/** What the paper switches on and off: enumerator, name. */
#define SEP_PERF_FEATURE_FOREACH(_macro) \
    _macro(POSTLIST, "postlist")     /* Several work requests, one doorbell */ \
    _macro(UNSIGNALED, "unsignaled") /* Not each has a completion */ \
    _macro(INLINE, "inline")         /* Data in the work request */ \
    _macro(BLUEFLAME, "blueflame")   /* Work request in the doorbell */

enum {
#define SEP_PERF_FEATURE_INDEX(_id, _name) SEP_PERF_FEATURE_INDEX_##_id,
    SEP_PERF_FEATURE_FOREACH(SEP_PERF_FEATURE_INDEX)
#undef SEP_PERF_FEATURE_INDEX
    SEP_PERF_NUM_FEATURES
};

enum {
#define SEP_PERF_FEATURE_BIT(_id, _name) \
    SEP_PERF_FEATURE_##_id = 1 << SEP_PERF_FEATURE_INDEX_##_id,
    SEP_PERF_FEATURE_FOREACH(SEP_PERF_FEATURE_BIT)
#undef SEP_PERF_FEATURE_BIT
    SEP_PERF_FEATURE_ALL = (1 << SEP_PERF_NUM_FEATURES) - 1
};

/** @return Name of a set of features, such as "all" or "no-postlist", in
 *          @a name of at least SEP_PERF_NAME_MAX bytes. */
const char *sep_perf_features_name(unsigned features, char *name);


/** Rows that differ in threads, in features and in what is shared, at most. */
#define SEP_PERF_MAX_LIST     64

/** The paper's defaults. */
#define SEP_PERF_THREADS      16
#define SEP_PERF_BYTES        2
#define SEP_PERF_DEPTH        128
#define SEP_PERF_POSTLIST     32
#define SEP_PERF_SIGNAL       64

/** Most threads, and most of their data. */
#define SEP_PERF_MAX_THREADS  1024
#define SEP_PERF_MAX_BYTES    (1ul << 20)


/** What is to be measured. */
typedef struct sep_perf_options {
    sep_perf_level_t    level;
    const char          *device;     /**< Name, NULL: the first one */
    unsigned            port;        /**< Of the device, from 1 on */
    int                 gid_index;   /**< -1: choose */
    const char          *tl;         /**< UCT transport */
    const char          *host;       /**< Where the peer is, NULL: here */
    const char          *listen;     /**< Be a peer at this TCP port */
    sep_model_op_t      op;
    size_t              bytes;
    unsigned            depth;
    unsigned            postlist;    /**< Work requests of a list */
    unsigned            signal;      /**< One in so many has a completion */
    int                 turns;       /**< Wait for all that was posted before
                                          posting more */
    int                 aligned;     /**< Buffers begin with cache lines */
    int                 pin;         /**< Threads, to processors */
    int                 serial;      /**< One thread after the other */
    unsigned long       messages;    /**< Of each thread; 0: choose */
    int                 latency;     /**< Measure it as well */
    int                 json;
    int                 tsv;
    int                 list;        /**< List figures and categories */
    const char          *adapter_name; /**< Model's, NULL: like the device */
    const char          *adapters;   /**< File, NULL: ours */
    unsigned            threads[SEP_PERF_MAX_LIST];
    unsigned            num_threads;
    unsigned            features[SEP_PERF_MAX_LIST];
    unsigned            num_features;
    sep_perf_sharing_t  sharing[SEP_PERF_MAX_LIST];
    unsigned            num_sharing;
    const sep_perf_figure_t *figure; /**< Of the paper, NULL: none */
} sep_perf_options_t;


/** One of the measurements. */
typedef struct sep_perf_row {
    const sep_perf_sharing_t *sharing;
    unsigned                 threads;
    unsigned                 features;
    /** What is used in fact: lists and signals are as long as depth allows */
    unsigned                 depth;
    unsigned                 postlist;
    unsigned                 signal;
    int                      is_inline;
} sep_perf_row_t;


/**
 * Read the command line.
 *
 * @param out  Where help goes.
 *
 * @return 0, 1 to end the program with success, or -1 after a message.
 */
int sep_perf_parse(int argc, char **argv, FILE *out,
                   sep_perf_options_t *options);


/** Longest data that libibverbs is asked to take inline: the paper's. */
#define SEP_PERF_MAX_INLINE   60


/**
 * Make a row of one of the sets of features, and so on.
 *
 * @param [out] message  What is wrong, SEP_MODEL_MESSAGE_MAX bytes.
 *
 * @return 0, or -1.
 */
int sep_perf_row_make(const sep_perf_options_t *options,
                      const sep_perf_sharing_t *sharing, unsigned features,
                      unsigned threads, sep_perf_row_t *row_p, char *message);

#ifdef __cplusplus
}
#endif

#endif
