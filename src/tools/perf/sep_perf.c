/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/plan/rates.h>
#include <tools/perf/sep_perf_measure.h>
#include <tools/perf/sep_perf_options.h>
#include <tools/perf/sep_perf_result.h>
#include <tools/perf/sep_perf_uct.h>
#include <tools/perf/sep_perf_verbs.h>

#include <common/json.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/**
 * @file sep_perf.c
 *
 * Message rate and latency by what threads share. Each row is measured by a
 * process of its own, so that it finds nothing that another has left.
 */


static int sep_perf_measure_row(const sep_perf_options_t *options,
                                const sep_perf_row_t *row,
                                sep_perf_result_t *result)
{
    return (options->level == SEP_PERF_UCT) ?
           sep_perf_uct_measure(options, row, result) :
           sep_perf_verbs_measure(options, row, result);
}

/* @return Exit status */
static int sep_perf_measure_apart(const sep_perf_options_t *options,
                                  const sep_perf_row_t *row,
                                  sep_perf_result_t *result)
{
    int wstatus, fds[2], is_read, ret;
    pid_t pid;

    if (pipe(fds) != 0) {
        perror("sep_perf: pipe");
        return SEP_PERF_FAILED;
    }

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        memset(result, 0, sizeof(*result));
        ret = sep_perf_measure_row(options, row, result);
        if ((ret >= 0) &&
            (write(fds[1], result, sizeof(*result)) != sizeof(*result))) {
            ret = -1;
        }
        exit((ret < 0) ? SEP_PERF_FAILED : ret);
    }

    close(fds[1]);
    is_read = (pid > 0) && (read(fds[0], result, sizeof(*result)) ==
                            sizeof(*result));
    close(fds[0]);
    if ((pid < 0) || (waitpid(pid, &wstatus, 0) != pid) ||
        !WIFEXITED(wstatus)) {
        fprintf(stderr, "sep_perf: %s: the process failed\n",
                row->sharing->name);
        return SEP_PERF_FAILED;
    }
    return is_read ? WEXITSTATUS(wstatus) : SEP_PERF_FAILED;
}

/* @return Exit status; what is wrong with a row is known before the first one
 *         is measured */
static int sep_perf_row(const sep_perf_options_t *options, unsigned index,
                        sep_perf_out_t *out)
{
    unsigned threads  = options->threads[index % options->num_threads];
    unsigned features = options->features[(index / options->num_threads) %
                                          options->num_features];
    const sep_perf_sharing_t *sharing =
            &options->sharing[index / options->num_threads /
                              options->num_features];
    char message[SEP_MODEL_MESSAGE_MAX];
    sep_perf_result_t result;
    sep_perf_row_t row;
    int status;

    if (sep_perf_row_make(options, sharing, features, threads, &row,
                          message) != 0) {
        fprintf(stderr, "sep_perf: %s\n", message);
        return SEP_PERF_USAGE;
    }
    if (out == NULL) {
        return SEP_PERF_OK;
    }

    status = sep_perf_measure_apart(options, &row, &result);
    if (status <= SEP_PERF_WRONG) {
        sep_perf_out_row(out, &row, &result);
    }
    return status;
}

/* @param out  NULL: only look whether all rows make sense */
static int sep_perf_rows(const sep_perf_options_t *options, sep_perf_out_t *out)
{
    unsigned count = options->num_threads * options->num_features *
                     options->num_sharing;
    int worst      = SEP_PERF_OK;
    unsigned i;
    int status;

    for (i = 0; i < count; ++i) {
        status = sep_perf_row(options, i, out);
        if (status > worst) {
            worst = status;
        }
        /* If the first one has no device, nor have the others */
        if ((status == SEP_PERF_USAGE) ||
            ((status == SEP_PERF_FAILED) && (out->num_rows == 0))) {
            break;
        }
    }
    return worst;
}

/* "%u" is a number for programs */
static void sep_perf_list(void)
{
    const sep_perf_figure_t *figure;
    const char *next, *place;
    unsigned i;

    for (i = 0; (figure = sep_perf_figure_at(i)) != NULL; ++i) {
        printf("--figure %-2u  %s: ", figure->number, figure->about);
        for (next = figure->share; (place = strstr(next, "%u")) != NULL;
             next = place + 2) {
            printf("%.*sx", (int)(place - next), next);
        }
        printf("%s\n", next);
    }
}

/* Before anything is measured. @return 0, or -1 after a message */
static int sep_perf_check_adapter(const sep_perf_options_t *options)
{
    char message[SEP_MODEL_MESSAGE_MAX];
    sep_model_adapter_t adapter;

    if ((options->adapter_name == NULL) ||
        (sep_rates_read_adapter(options->adapters, options->adapter_name,
                                &adapter, message) == 0)) {
        return 0;
    }
    fprintf(stderr, "sep_perf: %s\n", message);
    return -1;
}

/* @return The status, or another one if what was printed is lost */
static int sep_perf_flush(int status)
{
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        perror("sep_perf: standard output");
        return SEP_PERF_FAILED;
    }
    return status;
}

int main(int argc, char **argv)
{
    json_object *json = NULL;
    sep_perf_options_t options;
    sep_perf_out_t out;
    int status;

    status = sep_perf_parse(argc, argv, stdout, &options);
    if (status != 0) {
        return (status < 0) ? SEP_PERF_USAGE : SEP_PERF_OK;
    }
    if (options.list) {
        sep_perf_list();
        return sep_perf_flush(SEP_PERF_OK);
    }
    if (options.listen != NULL) {
        sep_perf_peer_listen(&options, sep_perf_serve);
        return SEP_PERF_FAILED;
    }
    if ((sep_perf_rows(&options, NULL) != SEP_PERF_OK) ||
        (sep_perf_check_adapter(&options) != 0)) {
        return SEP_PERF_USAGE;
    }

    if (options.json) {
        json = json_object_new_object();
    }
    sep_perf_out_begin(&out, stdout, &options, (json == NULL) ? NULL :
                       sep_json_add_array(json, "rows"));
    status = sep_perf_rows(&options, &out);
    sep_perf_out_end(&out);
    if (json != NULL) {
        sep_json_print(json, stdout);
    }
    return sep_perf_flush(status);
}
