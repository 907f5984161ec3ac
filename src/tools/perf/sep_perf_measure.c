/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_measure.h>
#include <tools/perf/sep_perf_device.h>
#include <tools/perf/sep_perf_predict.h>
#include <tools/perf/sep_perf_uct.h>
#include <tools/perf/sep_perf_verbs.h>

#include <malloc.h>
#include <string.h>
#include <unistd.h>

/* Messages of each thread, if the user does not say */
#define SEP_PERF_MESSAGES         1000000
#define SEP_PERF_MESSAGES_DEVICE  1024

/* Messages of each thread whose times are taken */
#define SEP_PERF_SAMPLES          10000

/* How often the peer is asked whether all has arrived, a millisecond between:
 * a completion of the peer may come behind ours */
#define SEP_PERF_CHECKS           500


unsigned long sep_perf_memory(void)
{
    struct mallinfo2 info = mallinfo2();
    unsigned long sum     = info.uordblks;
    unsigned long start, end, offset, inode;
    char line[512], mode[5];
    int length;
    FILE *maps;

    maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) {
        return sum;
    }
    /* Private memory without a name is what was mapped for a purpose: queues,
     * for instance. The heap is counted above */
    while (fgets(line, sizeof(line), maps) != NULL) {
        if ((sscanf(line, "%lx-%lx %4s %lx %*s %lu%n", &start, &end, mode,
                    &offset, &inode, &length) == 5) && (inode == 0) &&
            (strcmp(mode, "rw-p") == 0) && (strchr(line, '[') == NULL)) {
            sum += end - start;
        }
    }
    fclose(maps);
    return sum;
}

void sep_perf_hello_init(sep_perf_hello_t *hello,
                         const sep_perf_options_t *options,
                         const sep_perf_row_t *row, unsigned num_qps)
{
    memset(hello, 0, sizeof(*hello));
    hello->magic   = SEP_PERF_WIRE_MAGIC;
    hello->level   = options->level;
    hello->op      = options->op;
    hello->threads = row->threads;
    hello->qps     = num_qps;
    hello->depth   = row->depth * ((row->threads + num_qps - 1) / num_qps);
    hello->bytes   = options->bytes;
    if (options->tl != NULL) {
        strncpy(hello->tl, options->tl, sizeof(hello->tl) - 1);
    }
}

int sep_perf_serve(int fd, const sep_perf_options_t *options)
{
    sep_perf_hello_t hello;

    if (sep_perf_wire_read(fd, &hello, sizeof(hello)) != 0) {
        return -1; /* Who asked has failed, and said why */
    }
    if ((hello.magic != SEP_PERF_WIRE_MAGIC) ||
        (hello.level >= SEP_PERF_LEVEL_LAST) ||
        (hello.op >= SEP_MODEL_OP_LAST) || (hello.threads < 1) ||
        (hello.threads > SEP_PERF_MAX_THREADS) || (hello.qps < 1) ||
        (hello.qps > hello.threads) || (hello.bytes < 1) ||
        (hello.bytes > SEP_PERF_MAX_BYTES) || (hello.depth > (1 << 24))) {
        fprintf(stderr, "sep_perf: who has called is no sep_perf, or one of "
                "another version\n");
        return -1;
    }
    hello.tl[sizeof(hello.tl) - 1] = '\0';
    return (hello.level == SEP_PERF_UCT) ?
           sep_perf_uct_serve(fd, &hello, options) :
           sep_perf_verbs_serve(fd, &hello, options);
}

/* @param sent  Messages of each thread. @return 0, SEP_PERF_WRONG, or -1 */
static int sep_perf_check_once(const sep_perf_group_t *group,
                               const sep_perf_check_t *check, uint64_t sent,
                               unsigned *wrong)
{
    const uint8_t command = SEP_PERF_COMMAND_CHECK;
    uint64_t pattern      = sep_perf_pattern_sum(check->bytes, 0);
    uint64_t value, want;
    int ret               = SEP_PERF_OK;
    unsigned i;

    if (sep_perf_wire_write(check->fd, &command, 1) != 0) {
        return -1;
    }
    for (i = 0; i < group->row->threads; ++i) {
        if (sep_perf_wire_read(check->fd, &value, sizeof(value)) != 0) {
            return -1;
        }
        switch (check->op) {
        case SEP_MODEL_SEND:
            want = sent * group->row->threads;
            break;
        case SEP_MODEL_ATOMIC:
            want = sent;
            break;
        case SEP_MODEL_READ:
            value = check->local(check->arg, i);
            want  = pattern;
            break;
        default:
            want = check->expect(check->arg, i);
            break;
        }
        if (value != want) {
            *wrong = i;
            ret    = SEP_PERF_WRONG;
        }
    }
    return ret;
}

static int sep_perf_check_data(const sep_perf_group_t *group,
                               const sep_perf_check_t *check, uint64_t sent)
{
    unsigned tries = 0;
    unsigned wrong = 0;
    int ret;

    while ((ret = sep_perf_check_once(group, check, sent, &wrong)) ==
           SEP_PERF_WRONG) {
        if (++tries == SEP_PERF_CHECKS) {
            fprintf(stderr, "sep_perf: %s: data of thread %u is not what it "
                    "should be\n", group->row->sharing->name, wrong);
            return ret;
        }
        usleep(1000);
    }
    if (ret < 0) {
        fprintf(stderr, "sep_perf: the peer has ended\n");
    }
    return ret;
}

static int sep_perf_counters(uint64_t *values)
{
    return sep_perf_device_values(sep_perf_counter_names, SEP_PERF_COUNTER_LAST,
                                  values);
}

int sep_perf_measure(sep_perf_group_t *group, const sep_perf_options_t *options,
                     const sep_perf_check_t *check, sep_perf_result_t *result)
{
    unsigned postlist = group->row->postlist;
    uint64_t before[SEP_PERF_COUNTER_LAST], after[SEP_PERF_COUNTER_LAST];
    uint64_t messages, warm, samples = 0;
    sep_perf_times_t times = {};
    int i;

    result->is_device = sep_perf_device_is_simulated();
    messages          = (options->messages > 0) ? options->messages :
                        result->is_device ? SEP_PERF_MESSAGES_DEVICE :
                                            SEP_PERF_MESSAGES;
    /* Whole lists: each message is posted like the others */
    messages          = ((messages + postlist - 1) / postlist) * postlist;
    warm              = (messages < 1000) ? messages : (messages / 10);
    if (sep_perf_group_run(group, warm, SEP_PERF_WARM, &times) != 0) {
        return -1;
    }

    if (check->taken != NULL) {
        check->taken(check->arg, result);
    }
    result->has_counters = result->is_device &&
                           (sep_perf_counters(before) == 0);
    if (sep_perf_group_run(group, messages, SEP_PERF_RATE, &times) != 0) {
        return -1;
    }
    if (result->has_counters && (sep_perf_counters(after) == 0)) {
        for (i = 0; i < SEP_PERF_COUNTER_LAST; ++i) {
            result->counters[i] = (double)(after[i] - before[i]) /
                                  (messages * group->row->threads);
        }
    } else {
        result->has_counters = 0;
    }

    result->messages = messages * group->row->threads;
    result->rate     = times.rate;
    if (options->latency && !result->is_device) {
        samples = (messages < SEP_PERF_SAMPLES) ? messages : SEP_PERF_SAMPLES;
        if (sep_perf_group_run(group, samples, SEP_PERF_LATENCY, &times) != 0) {
            return -1;
        }
        result->latency[0] = times.mean;
        result->latency[1] = times.median;
        result->latency[2] = times.p99;
    }
    return sep_perf_check_data(group, check, warm + messages + samples);
}

int sep_perf_finish(const sep_perf_options_t *options,
                    const sep_perf_row_t *row, unsigned part_id,
                    sep_perf_result_t *result)
{
    result->cpus = sep_perf_num_cpus();
    /* Elsewhere only if somebody asks: times are better than predictions */
    if (!result->is_device && (options->adapter_name == NULL)) {
        return 0;
    }
    return sep_perf_predict(options, row, part_id, result);
}
