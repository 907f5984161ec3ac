/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_MODEL_ADAPTER_H
#define SEP_MODEL_ADAPTER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file adapter.h
 *
 * Parameters of the model, for an adapter and the machine that it is in. Their
 * values are in a file (adapters.conf), each with its unit and its source.
 * docs/model.md explains them.
 */

/** Longest name of an adapter, with the 0 at its end. */
#define SEP_MODEL_NAME_MAX    32

/** Longest description of an adapter, with the 0 at its end. */
#define SEP_MODEL_ABOUT_MAX   256

/** Longest message of an error, with the 0 at its end. */
#define SEP_MODEL_MESSAGE_MAX 512


/**
 * The parameters: enumerator, name in the file, unit, least and greatest value,
 * and what it is. The values of a file are refused outside of these bounds.
 */
#define SEP_MODEL_PARAM_FOREACH(_macro) \
    _macro(HW_THREADS, hw_threads, "threads", 1, 65536, \
           "hardware threads of the machine") \
    _macro(CORES, cores, "threads", 1, 65536, \
           "threads at most whose waiting slows a lock: cores") \
    _macro(CPU_REQUEST, cpu_request, "us", 1e-4, 1e3, \
           "time of a thread to post a request by doorbell and to poll its " \
           "completion, without locks") \
    _macro(CPU_BLUEFLAME, cpu_blueflame, "us", 0, 1e3, \
           "time to write a work queue element to a BlueFlame register, " \
           "beyond that of a doorbell") \
    _macro(INSTRUCTIONS, instructions, "instructions", 1, 1e6, \
           "what cpu_request is the time of") \
    _macro(CROWDING, crowding, "ratio", 0, 100, \
           "by how much threads are slower if all of the machine's are busy") \
    _macro(LOCK, lock, "us", 0, 1e3, \
           "lock and unlock, if nobody else wants to") \
    _macro(LOCK_HANDOVER, lock_handover, "us", 0, 1e3, \
           "a lock goes from one thread to another") \
    _macro(LOCK_WAITER, lock_waiter, "us", 0, 1e3, \
           "how much each thread that waits delays that") \
    _macro(PAGE_SHARED, page_shared, "us", 0, 1e3, \
           "BlueFlame write, if another thread writes to the same UAR page") \
    _macro(PAGE_ADJACENT, page_adjacent, "us", 0, 1e3, \
           "BlueFlame write, if others write to more than page_run adjacent " \
           "pages") \
    _macro(PAGE_RUN, page_run, "pages", 1, 65536, \
           "adjacent UAR pages that do not disturb each other") \
    _macro(LATENCY, latency, "us", 1e-3, 1e4, \
           "from a doorbell to the completion, nothing else under way") \
    _macro(FETCH_WAIT, fetch_wait, "us", 0, 1e4, \
           "fetch of work queue elements, for which those that are posted " \
           "during it wait") \
    _macro(READS_PER_QP, reads_per_qp, "requests", 1, 65536, \
           "reads and atomics that a queue pair has under way") \
    _macro(QP_RATE, qp_rate, "M/s", 1e-3, 1e6, \
           "requests of a queue pair") \
    _macro(WQE_RATE, wqe_rate, "M/s", 1e-3, 1e6, \
           "requests of the adapter") \
    _macro(TLP_TIME, tlp_time, "ns", 1e-3, 1e5, \
           "a transaction on the PCIe link") \
    _macro(TLP_PAYLOAD, tlp_payload, "bytes", 64, 4096, \
           "most data in a transaction") \
    _macro(READ_REQUEST, read_request, "bytes", 64, 4096, \
           "most data that the adapter reads at a time") \
    _macro(PCIE_RATE, pcie_rate, "GB/s", 1e-3, 1e4, \
           "data over the PCIe link in one direction") \
    _macro(LINK_RATE, link_rate, "Gb/s", 1e-3, 1e5, \
           "data over the network") \
    _macro(MTU, mtu, "bytes", 256, 65536, \
           "data in a packet") \
    _macro(STATE_CAPACITY, state_capacity, "TLPs", 1, 1e9, \
           "transactions of others that the state of a request survives in " \
           "the adapter") \
    _macro(REFETCHES, refetches, "fetches", 0, 1000, \
           "how often it is fetched again if none survives") \
    _macro(CONTEXT_CAPACITY, context_capacity, "QPs", 1, 1e9, \
           "queue pairs in use whose contexts the adapter has room for") \
    _macro(CONTEXT_FETCHES, context_fetches, "fetches", 0, 1000, \
           "how often contexts are fetched for a request if it has none")


/** Parameters. */
typedef enum {
#define SEP_MODEL_PARAM_ENUMERATOR(_id, ...) SEP_MODEL_##_id,
    SEP_MODEL_PARAM_FOREACH(SEP_MODEL_PARAM_ENUMERATOR)
#undef SEP_MODEL_PARAM_ENUMERATOR
    SEP_MODEL_PARAM_LAST
} sep_model_param_t;


/** What is known of a parameter. */
typedef struct sep_model_param_row {
    const char *name;
    const char *unit;
    double     min;
    double     max;
    const char *about;
} sep_model_param_row_t;

extern const sep_model_param_row_t
        sep_model_params[SEP_MODEL_PARAM_LAST];


/** An adapter. */
typedef struct sep_model_adapter {
    char   name[SEP_MODEL_NAME_MAX];
    char   about[SEP_MODEL_ABOUT_MAX];
    double value[SEP_MODEL_PARAM_LAST];
} sep_model_adapter_t;


/**
 * Read an adapter's parameters from a file.
 *
 * A section per adapter, "[name]", with a line "about = text" and one for each
 * parameter:
 * @code
 * name = value unit  # kind: source
 * @endcode
 * where kind is "fitted", "published", "counted" or "assumed". Other lines
 * are empty or start with "#".
 *
 * @param [in]  path     The file.
 * @param [in]  name     Of the adapter.
 * @param [out] adapter  Its parameters.
 * @param [out] message  What is wrong, with file and line, on failure; at least
 *                       SEP_MODEL_MESSAGE_MAX bytes.
 *
 * @return 0, or -1. All of the file must be right, other adapters as well.
 */
int sep_model_adapter_read(const char *path, const char *name,
                           sep_model_adapter_t *adapter, char *message);

/** @return What is between the blanks at both ends of a string, which is cut
 *          there. */
char *sep_model_strip(char *text);

#ifdef __cplusplus
}
#endif

#endif
