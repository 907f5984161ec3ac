/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Performs UCT operations so that callgrind can count the instructions of each,
 * and the software device what it reads and writes for each. To be run by
 * contrib/bench-insn.sh, which also reads the result.
 *
 * Callgrind collects only inside functions whose names begin with "measure_".
 * Each holds one call of UCT and nothing else of weight, and what such a
 * function executes itself is taken off afterwards: what remains is the call.
 * After each operation callgrind writes the counts to a file of its own, named
 * by the operation, and this program prints how many calls they are of.
 *
 * With -r it measures what progress with nothing to do costs an interface to
 * which others have sent, by their number: instructions, or time.
 *
 * To count lines of memory, each call begins with caches that are empty:
 * switching instrumentation on clears those that callgrind simulates.
 */

#include "sim_uar.h"
#include "uct_pair.h"
#include "uct_senders.h"

#include <valgrind/callgrind.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define UCT_INSN_AM_ID      5
#define UCT_INSN_SMALL      8    /* bytes of short operations */
#define UCT_INSN_LARGE      1024 /* bytes of buffered operations */
#define UCT_INSN_WARMUP     200  /* more than a queue's signalling period */
#define UCT_INSN_WAIT       10   /* seconds for a connection to come up */
#define UCT_INSN_BATCHES    200  /* of calls that are timed */


/* Not inlined, not cloned under another name, and not left by a jump, which
 * would end the function's collection before the call begins. */
#define UCT_INSN_MEASURE __attribute__((noinline, noclone, unused))
#define UCT_INSN_RETURN(_value) \
    do { \
        __typeof__(_value) _result = (_value); \
        __asm__ volatile("" : "+r"(_result)); \
        return _result; \
    } while (0)


/* What is being counted */
typedef enum {
    UCT_INSN_COUNT_INSN,  /* instructions */
    UCT_INSN_COUNT_LINES, /* lines of memory, with empty caches */
    UCT_INSN_COUNT_DEVICE, /* what the device does: rings it as always */
    UCT_INSN_COUNT_TIME   /* nanoseconds */
} uct_insn_count_t;

typedef struct uct_insn {
    uct_pair_t       pair;
    unsigned         received;
    unsigned         completed;
    uct_completion_t completion;
    uint64_t         fetched;
    uint8_t          source[UCT_INSN_LARGE];
    uint8_t          sink[UCT_INSN_LARGE];
} uct_insn_t;

typedef struct uct_insn_op {
    const char   *name;
    uint64_t     required; /* UCT_IFACE_FLAG_xx */
    ucs_status_t (*run)(uct_insn_t *insn);
} uct_insn_op_t;


/* Not a constant, so that the copy is the C library's and not a row of
 * moves. */
static volatile size_t uct_insn_large = UCT_INSN_LARGE;

static uct_insn_count_t uct_insn_count = UCT_INSN_COUNT_INSN;

/* Calls behind the flush that ends warming up, which are not counted: the first
 * ones after it may take another way */
static unsigned uct_insn_settle = 0;

/* Not while warming up, when other threads make connections: callgrind does not
 * bear being switched while they handle a signal */
static int uct_insn_clears_caches = 0;


/* Callbacks: their instructions are part of the operation. */

static size_t uct_insn_pack(void *dest, void *arg)
{
    size_t length = uct_insn_large;

    memcpy(dest, arg, length);
    return length;
}

static void uct_insn_unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static ucs_status_t uct_insn_receive(void *arg, void *data, size_t length,
                                     unsigned flags)
{
    ((uct_insn_t*)arg)->received++;
    return UCS_OK;
}

static void uct_insn_complete(uct_completion_t *completion)
{
    ucs_container_of(completion, uct_insn_t, completion)->completed++;
}


/* The calls that are measured. */

static UCT_INSN_MEASURE ucs_status_t measure_put_short(uct_insn_t *insn)
{
    UCT_INSN_RETURN(uct_ep_put_short(insn->pair.ep[0], insn->source,
                                     UCT_INSN_SMALL,
                                     (uintptr_t)insn->pair.buffer[1],
                                     insn->pair.rkey.rkey));
}

/* As ucx_perftest counts it, the header is the message's first 8 bytes. */
static UCT_INSN_MEASURE ucs_status_t measure_am_short(uct_insn_t *insn)
{
    UCT_INSN_RETURN(uct_ep_am_short(insn->pair.ep[0], UCT_INSN_AM_ID, 1,
                                    insn->source, 0));
}

static UCT_INSN_MEASURE ssize_t measure_put_bcopy(uct_insn_t *insn)
{
    UCT_INSN_RETURN(uct_ep_put_bcopy(insn->pair.ep[0], uct_insn_pack,
                                     insn->source,
                                     (uintptr_t)insn->pair.buffer[1],
                                     insn->pair.rkey.rkey));
}

static UCT_INSN_MEASURE ssize_t measure_am_bcopy(uct_insn_t *insn)
{
    UCT_INSN_RETURN(uct_ep_am_bcopy(insn->pair.ep[0], UCT_INSN_AM_ID,
                                    uct_insn_pack, insn->source, 0));
}

static UCT_INSN_MEASURE ucs_status_t measure_get_bcopy(uct_insn_t *insn)
{
    UCT_INSN_RETURN(uct_ep_get_bcopy(insn->pair.ep[0], uct_insn_unpack,
                                     insn->sink, UCT_INSN_SMALL,
                                     (uintptr_t)insn->pair.buffer[1],
                                     insn->pair.rkey.rkey,
                                     &insn->completion));
}

static UCT_INSN_MEASURE ucs_status_t measure_fadd64(uct_insn_t *insn)
{
    UCT_INSN_RETURN(uct_ep_atomic64_fetch(insn->pair.ep[0], UCT_ATOMIC_OP_ADD,
                                          1, &insn->fetched,
                                          (uintptr_t)insn->pair.buffer[1],
                                          insn->pair.rkey.rkey,
                                          &insn->completion));
}

static UCT_INSN_MEASURE unsigned measure_progress(uct_iface_h iface)
{
    UCT_INSN_RETURN(uct_iface_progress(iface));
}

static UCT_INSN_MEASURE ucs_status_t measure_flush(uct_ep_h ep)
{
    UCT_INSN_RETURN(uct_ep_flush(ep, 0, NULL));
}


/* A measured call, with the doorbells in it executed as the program has
 * them. */
#define UCT_INSN_CALL(_result, _call) \
    do { \
        uct_insn_begin(); \
        _result = (_call); \
        uct_insn_end(); \
    } while (0)

static void uct_insn_begin(void)
{
    if (uct_insn_count < UCT_INSN_COUNT_DEVICE) {
        sim_uar_suspend();
    }
    if (uct_insn_clears_caches) {
        CALLGRIND_START_INSTRUMENTATION;
    }
}

static void uct_insn_end(void)
{
    if (uct_insn_clears_caches) {
        CALLGRIND_STOP_INSTRUMENTATION;
    }
    if (uct_insn_count < UCT_INSN_COUNT_DEVICE) {
        sim_uar_resume();
    }
}


/* One of each, with what has to happen around it. UCS_ERR_NO_RESOURCE tells the
 * caller to progress and try again, which is only accepted while warming up. */

static ucs_status_t uct_insn_run_put_short(uct_insn_t *insn)
{
    ucs_status_t status;

    UCT_INSN_CALL(status, measure_put_short(insn));
    return status;
}

static ucs_status_t uct_insn_run_am_short(uct_insn_t *insn)
{
    ucs_status_t status;

    UCT_INSN_CALL(status, measure_am_short(insn));
    return status;
}

static ucs_status_t uct_insn_run_put_bcopy(uct_insn_t *insn)
{
    ssize_t length;

    UCT_INSN_CALL(length, measure_put_bcopy(insn));
    return (length < 0) ? (ucs_status_t)length : UCS_OK;
}

static ucs_status_t uct_insn_run_am_bcopy(uct_insn_t *insn)
{
    ssize_t length;

    UCT_INSN_CALL(length, measure_am_bcopy(insn));
    return (length < 0) ? (ucs_status_t)length : UCS_OK;
}

/* Wait for an operation that was given the completion. */
static ucs_status_t uct_insn_wait(uct_insn_t *insn, ucs_status_t status)
{
    if (status != UCS_INPROGRESS) {
        return status;
    }

    while (insn->completed == 0) {
        uct_pair_progress(&insn->pair);
    }

    return insn->completion.status;
}

static void uct_insn_reset_completion(uct_insn_t *insn)
{
    insn->completed         = 0;
    insn->completion.func   = uct_insn_complete;
    insn->completion.count  = 1;
    insn->completion.status = UCS_OK;
}

static ucs_status_t uct_insn_run_get_bcopy(uct_insn_t *insn)
{
    ucs_status_t status;

    uct_insn_reset_completion(insn);
    UCT_INSN_CALL(status, measure_get_bcopy(insn));
    return uct_insn_wait(insn, status);
}

static ucs_status_t uct_insn_run_fadd64(uct_insn_t *insn)
{
    ucs_status_t status;

    uct_insn_reset_completion(insn);
    UCT_INSN_CALL(status, measure_fadd64(insn));
    return uct_insn_wait(insn, status);
}

/* Have the device see what was posted, also if the transport rings for several
 * operations at once. Does not poll. */
static void uct_insn_ring(uct_insn_t *insn)
{
    (void)uct_iface_flush(insn->pair.iface[0], 0, NULL);
}

/* The message has arrived when the call that sends it returns: so the software
 * device does it, and shared memory. */
static ucs_status_t uct_insn_arrive(uct_insn_t *insn, unsigned before)
{
    unsigned count;

    uct_insn_ring(insn);
    UCT_INSN_CALL(count, measure_progress(insn->pair.iface[1]));
    return ((count > 0) && (insn->received == before + 1)) ?
           UCS_OK : UCS_ERR_NO_PROGRESS;
}

static ucs_status_t uct_insn_run_recv(uct_insn_t *insn)
{
    unsigned before     = insn->received;
    ucs_status_t status = uct_ep_am_short(insn->pair.ep[0], UCT_INSN_AM_ID, 1,
                                          insn->source, 0);

    return (status == UCS_OK) ? uct_insn_arrive(insn, before) : status;
}

static ucs_status_t uct_insn_run_recv_bcopy(uct_insn_t *insn)
{
    unsigned before = insn->received;
    ssize_t length  = uct_ep_am_bcopy(insn->pair.ep[0], UCT_INSN_AM_ID,
                                      uct_insn_pack, insn->source, 0);

    return (length < 0) ? (ucs_status_t)length : uct_insn_arrive(insn, before);
}

/* A message there and one back, so that each side's can tell what the other has
 * room for. What is measured is sending the first, or receiving it. */
static ucs_status_t uct_insn_run_pingpong(uct_insn_t *insn, int is_arrival)
{
    unsigned before = insn->received;
    ucs_status_t status;

    if (is_arrival) {
        status = uct_insn_run_recv(insn);
    } else {
        status = uct_insn_run_am_short(insn);
        while ((status == UCS_OK) && (insn->received == before)) {
            uct_pair_progress(&insn->pair);
        }
    }

    if (status == UCS_OK) {
        before = insn->received;
        status = uct_ep_am_short(insn->pair.ep[1], UCT_INSN_AM_ID, 1,
                                 insn->source, 0);
        while ((status == UCS_OK) && (insn->received == before)) {
            uct_pair_progress(&insn->pair);
        }
    }
    return status;
}

static ucs_status_t uct_insn_run_pingpong_send(uct_insn_t *insn)
{
    return uct_insn_run_pingpong(insn, 0);
}

static ucs_status_t uct_insn_run_pingpong_recv(uct_insn_t *insn)
{
    return uct_insn_run_pingpong(insn, 1);
}

static ucs_status_t uct_insn_run_completion(uct_insn_t *insn)
{
    uct_iov_t iov = {
        .buffer = insn->pair.buffer[0],
        .length = UCT_INSN_SMALL,
        .memh   = insn->pair.memh[0],
        .stride = 0,
        .count  = 1
    };
    ucs_status_t status;
    unsigned count;

    uct_insn_reset_completion(insn);
    status = uct_ep_put_zcopy(insn->pair.ep[0], &iov, 1,
                              (uintptr_t)insn->pair.buffer[1],
                              insn->pair.rkey.rkey, &insn->completion);
    if (status != UCS_INPROGRESS) {
        return (status == UCS_OK) ? UCS_ERR_UNSUPPORTED : status;
    }

    uct_insn_ring(insn);
    UCT_INSN_CALL(count, measure_progress(insn->pair.iface[0]));
    return ((count > 0) && (insn->completed == 1)) ?
           UCS_OK : UCS_ERR_NO_PROGRESS;
}

static ucs_status_t uct_insn_run_progress_idle(uct_insn_t *insn)
{
    unsigned count;

    UCT_INSN_CALL(count, measure_progress(insn->pair.iface[0]));
    return (count == 0) ? UCS_OK : UCS_ERR_BUSY;
}

/* Rings may still be on offer, or their acceptance on its way */
static void uct_insn_wait_idle(uct_insn_t *insn)
{
    unsigned idle = 0;

    while (idle < 1000) {
        idle = (uct_iface_progress(insn->pair.iface[1]) == 0) ? (idle + 1) : 0;
        uct_pair_progress(&insn->pair);
    }
}

/* With -r: of the interface that has senders. */
static ucs_status_t uct_insn_run_senders(uct_insn_t *insn)
{
    unsigned count;

    UCT_INSN_CALL(count, measure_progress(insn->pair.iface[1]));
    return (count == 0) ? UCS_OK : UCS_ERR_BUSY;
}

static ucs_status_t uct_insn_run_flush(uct_insn_t *insn)
{
    ucs_status_t status;
    unsigned count;

    status = uct_ep_put_short(insn->pair.ep[0], insn->source, UCT_INSN_SMALL,
                              (uintptr_t)insn->pair.buffer[1],
                              insn->pair.rkey.rkey);
    if (status != UCS_OK) {
        return status;
    }

    for (;;) {
        UCT_INSN_CALL(status, measure_flush(insn->pair.ep[0]));
        if ((status != UCS_INPROGRESS) && (status != UCS_ERR_NO_RESOURCE)) {
            return status;
        }

        UCT_INSN_CALL(count, measure_progress(insn->pair.iface[0]));
        (void)count;
    }
}

static const uct_insn_op_t uct_insn_ops[] = {
    {"put_short",     UCT_IFACE_FLAG_PUT_SHORT, uct_insn_run_put_short},
    {"am_short",      UCT_IFACE_FLAG_AM_SHORT,  uct_insn_run_am_short},
    {"put_bcopy",     UCT_IFACE_FLAG_PUT_BCOPY, uct_insn_run_put_bcopy},
    {"am_bcopy",      UCT_IFACE_FLAG_AM_BCOPY,  uct_insn_run_am_bcopy},
    {"get_bcopy",     UCT_IFACE_FLAG_GET_BCOPY, uct_insn_run_get_bcopy},
    {"fadd64",        0,                        uct_insn_run_fadd64},
    {"recv",          UCT_IFACE_FLAG_AM_SHORT,  uct_insn_run_recv},
    {"completion",    UCT_IFACE_FLAG_PUT_ZCOPY, uct_insn_run_completion},
    {"progress_idle", 0,                        uct_insn_run_progress_idle},
    {"flush",         UCT_IFACE_FLAG_PUT_SHORT, uct_insn_run_flush},
    {NULL}
};

/* Only if they are named */
static const uct_insn_op_t uct_insn_named_ops[] = {
    {"recv_bcopy",    UCT_IFACE_FLAG_AM_BCOPY,  uct_insn_run_recv_bcopy},
    {"pingpong_send", UCT_IFACE_FLAG_AM_SHORT,  uct_insn_run_pingpong_send},
    {"pingpong_recv", UCT_IFACE_FLAG_AM_SHORT,  uct_insn_run_pingpong_recv},
    {NULL}
};


static ucs_status_t uct_insn_repeat(uct_insn_t *insn, const uct_insn_op_t *op,
                                    unsigned count)
{
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < count; ++i) {
        status = op->run(insn);
        if (status != UCS_OK) {
            return status;
        }

        uct_pair_drain(&insn->pair);
    }

    return UCS_OK;
}

static int uct_insn_is_supported(const uct_insn_t *insn,
                                 const uct_insn_op_t *op)
{
    const uct_iface_attr_t *attr = &insn->pair.iface_attr;

    if (!strcmp(op->name, "fadd64") &&
        !(attr->cap.atomic64.fop_flags & UCS_BIT(UCT_ATOMIC_OP_ADD))) {
        return 0;
    }

    return (attr->cap.flags & op->required) == op->required;
}

/* Repeat the operation until it has been carried out so many times, also while
 * a connection is being made. */
static ucs_status_t uct_insn_warm_up(uct_insn_t *insn, const uct_insn_op_t *op)
{
    time_t deadline = time(NULL) + UCT_INSN_WAIT;
    unsigned done   = 0;
    ucs_status_t status;

    while (done < UCT_INSN_WARMUP) {
        status = op->run(insn);
        if (status == UCS_OK) {
            ++done;
        } else if (time(NULL) > deadline) {
            return UCS_ERR_TIMED_OUT;
        } else if (status == UCS_ERR_NO_RESOURCE) {
            usleep(1000);
        } else if (status != UCS_ERR_NO_PROGRESS) {
            /* No progress of what is measured: a message of the transport's own
             * came first */
            return status;
        }

        uct_pair_drain(&insn->pair);
    }

    status = uct_pair_quiesce(&insn->pair);
    return (status == UCS_OK) ? uct_insn_repeat(insn, op, uct_insn_settle) :
                                status;
}

/* Write the device's counters to a file named by the operation */
static int uct_insn_write_counters(const uct_insn_op_t *op, const char *command,
                                   const char *prefix, const char *when)
{
    char line[1024];
    int length;

    length = snprintf(line, sizeof(line), "%s > '%s.%s.%s'", command, prefix,
                      op->name, when);
    return ((length < (int)sizeof(line)) && (system(line) == 0)) ? 0 : -1;
}

static ucs_status_t
uct_insn_measure_device(uct_insn_t *insn, const uct_insn_op_t *op,
                        unsigned count, const char *command, const char *prefix)
{
    ucs_status_t status;

    status = uct_insn_warm_up(insn, op);
    if (status != UCS_OK) {
        return status;
    }

    if (uct_insn_write_counters(op, command, prefix, "before") != 0) {
        return UCS_ERR_IO_ERROR;
    }

    status = uct_insn_repeat(insn, op, count);
    if (status != UCS_OK) {
        return status;
    }

    if (uct_insn_write_counters(op, command, prefix, "after") != 0) {
        return UCS_ERR_IO_ERROR;
    }

    return uct_pair_quiesce(&insn->pair);
}

static ucs_status_t uct_insn_measure(uct_insn_t *insn, const uct_insn_op_t *op,
                                     unsigned count)
{
    ucs_status_t status;

    status = uct_insn_warm_up(insn, op);
    if (status != UCS_OK) {
        return status;
    }

    /* Connections that were made by now have mapped their pages. */
    if (sim_uar_find() < 0) {
        return UCS_ERR_NO_ELEM;
    }

    /* Not instrumented while warming up: zeroing the counters afterwards would
     * leave some of that behind. */
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    if (uct_insn_count == UCT_INSN_COUNT_LINES) {
        CALLGRIND_STOP_INSTRUMENTATION;
        uct_insn_clears_caches = 1;
    }

    status                 = uct_insn_repeat(insn, op, count);
    uct_insn_clears_caches = 0;
    if (status != UCS_OK) {
        return status;
    }

    CALLGRIND_DUMP_STATS_AT(op->name);
    CALLGRIND_STOP_INSTRUMENTATION;

    return uct_pair_quiesce(&insn->pair);
}

static double uct_insn_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

/* Nanoseconds of an operation: the fastest of many batches of calls */
static ucs_status_t uct_insn_time(uct_insn_t *insn, const uct_insn_op_t *op,
                                  unsigned count, double *nanoseconds_p)
{
    double best = 0, start, seconds;
    ucs_status_t status;
    unsigned batch, i;

    for (batch = 0; batch < UCT_INSN_BATCHES; ++batch) {
        start = uct_insn_now();
        for (i = 0; i < count; ++i) {
            status = op->run(insn);
            if (status != UCS_OK) {
                return status;
            }
        }

        seconds = uct_insn_now() - start;
        best    = ((batch == 0) || (seconds < best)) ? seconds : best;
    }

    *nanoseconds_p = best * 1e9 / count;
    return UCS_OK;
}

/* Progress by number of senders: for each of a list of numbers that grow */
static int uct_insn_senders(uct_insn_t *insn, unsigned count, char *list)
{
    char name[32]      = "";
    uct_insn_op_t op   = {.name = name, .run = uct_insn_run_senders};
    double nanoseconds = 0;
    uct_senders_t senders;
    ucs_status_t status;
    char *word;

    uct_senders_init(&senders, &insn->pair);
    for (word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        snprintf(name, sizeof(name), "senders_%s", word);
        status = uct_senders_grow(&senders, strtoul(word, NULL, 0),
                                  UCT_INSN_AM_ID, &insn->received);
        if (status == UCS_OK) {
            status = uct_pair_quiesce(&insn->pair);
            uct_insn_wait_idle(insn);
        }
        if (status == UCS_OK) {
            status = (uct_insn_count == UCT_INSN_COUNT_TIME) ?
                     uct_insn_time(insn, &op, count, &nanoseconds) :
                     uct_insn_measure(insn, &op, count);
        }
        if (status != UCS_OK) {
            fprintf(stderr, "%s on %s failed: %s\n", name, insn->pair.tl,
                    ucs_status_string(status));
            return 1;
        }

        if (uct_insn_count == UCT_INSN_COUNT_TIME) {
            printf("%s %.2f\n", name, nanoseconds);
        } else {
            printf("%s %u\n", name, count);
        }
        fflush(stdout);
    }

    return 0;
}

static void uct_insn_print_names(const uct_insn_op_t *op)
{
    for (; op->name != NULL; ++op) {
        fprintf(stderr, " %s", op->name);
    }
}

static void uct_insn_usage(const char *program)
{
    fprintf(stderr,
            "usage: %s -t TRANSPORT [-d DEVICE] [-n COUNT] [-w COUNT] [-l]\n"
            "       [-s COMMAND -o PREFIX] [OPERATION...]\n"
            "       %s -t TRANSPORT [-d DEVICE] [-n COUNT] [-c] -r N,N,...\n"
            "  -w  calls between the flush that ends warming up and the first\n"
            "      that counts (default 0)\n"
            "  -l  for counting lines of memory: begin with empty caches\n"
            "  -s  for counting what the device does: before and after each\n"
            "      operation's calls, COMMAND writes its counters to files\n"
            "      whose names begin with PREFIX\n"
            "  -r  progress of an interface with so many senders, senders_N;\n"
            "      each is a path (UCX_SEP_NUM_PATHS) of another interface\n"
            "  -c  nanoseconds instead of counting\n"
            "Operations:", program, program);
    uct_insn_print_names(uct_insn_ops);
    fprintf(stderr, "; if named:");
    uct_insn_print_names(uct_insn_named_ops);
    fprintf(stderr, "\n");
}

static int uct_insn_is_wanted(const char *name, char **names)
{
    if (*names == NULL) {
        return 1;
    }

    for (; *names != NULL; ++names) {
        if (!strcmp(name, *names)) {
            return 1;
        }
    }

    return 0;
}

/* Operations of a table. @return Exit status. */
static int uct_insn_run_ops(uct_insn_t *insn, const uct_insn_op_t *op,
                            unsigned count, const char *stat,
                            const char *prefix, char **names)
{
    ucs_status_t status;

    for (; op->name != NULL; ++op) {
        if (!uct_insn_is_wanted(op->name, names) ||
            !uct_insn_is_supported(insn, op)) {
            continue;
        }

        status = (uct_insn_count == UCT_INSN_COUNT_DEVICE) ?
                 uct_insn_measure_device(insn, op, count, stat, prefix) :
                 uct_insn_measure(insn, op, count);
        if (status != UCS_OK) {
            fprintf(stderr, "%s on %s failed: %s\n", op->name, insn->pair.tl,
                    ucs_status_string(status));
            return 1;
        }

        printf("%s %u\n", op->name, count);
        fflush(stdout);
    }

    return 0;
}

int main(int argc, char **argv)
{
    static uct_insn_t insn;
    const char *tl     = NULL;
    const char *device = NULL;
    const char *stat   = NULL;
    const char *prefix = NULL;
    char *senders      = NULL;
    unsigned count     = 256;
    ucs_status_t status;
    int option, side, result;

    while ((option = getopt(argc, argv, "t:d:n:w:ls:o:r:c")) != -1) {
        switch (option) {
        case 't':
            tl = optarg;
            break;
        case 'd':
            device = optarg;
            break;
        case 'n':
            count = strtoul(optarg, NULL, 0);
            break;
        case 'w':
            uct_insn_settle = strtoul(optarg, NULL, 0);
            break;
        case 'l':
            uct_insn_count = UCT_INSN_COUNT_LINES;
            break;
        case 's':
            uct_insn_count = UCT_INSN_COUNT_DEVICE;
            stat           = optarg;
            break;
        case 'o':
            prefix = optarg;
            break;
        case 'r':
            senders = optarg;
            break;
        case 'c':
            uct_insn_count = UCT_INSN_COUNT_TIME;
            break;
        default:
            uct_insn_usage(argv[0]);
            return 2;
        }
    }

    if ((tl == NULL) || (count == 0) || ((stat == NULL) != (prefix == NULL)) ||
        ((uct_insn_count == UCT_INSN_COUNT_TIME) && (senders == NULL))) {
        uct_insn_usage(argv[0]);
        return 2;
    }

    status = uct_pair_open(tl, device, &insn.pair);
    if (status != UCS_OK) {
        return 1;
    }

    for (side = 0; side < 2; ++side) {
        status = uct_iface_set_am_handler(insn.pair.iface[side],
                                          UCT_INSN_AM_ID, uct_insn_receive,
                                          &insn, 0);
        if (status != UCS_OK) {
            fprintf(stderr, "no active messages: %s\n",
                    ucs_status_string(status));
            return 1;
        }
    }

    if (senders != NULL) {
        return uct_insn_senders(&insn, count, senders);
    }

    result = uct_insn_run_ops(&insn, uct_insn_ops, count, stat, prefix,
                              &argv[optind]);
    if ((result == 0) && (argv[optind] != NULL)) {
        if (uct_pair_connect_back(&insn.pair) != UCS_OK) {
            return 1;
        }
        result = uct_insn_run_ops(&insn, uct_insn_named_ops, count, stat,
                                  prefix, &argv[optind]);
    }

    uct_pair_close(&insn.pair);
    return result;
}
