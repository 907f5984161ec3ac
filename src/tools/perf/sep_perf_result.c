/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_result.h>

#include <common/json.h>

#include <string.h>

/* Fields of a row */
#define SEP_PERF_MAX_FIELDS  64

/** A field: numbers as they are in TSV and JSON. */
typedef struct {
    const char *name;
    char       text[SEP_PERF_NAME_MAX];
    int        is_number;
} sep_perf_field_t;

typedef struct {
    sep_perf_field_t fields[SEP_PERF_MAX_FIELDS];
    unsigned         count;
} sep_perf_fields_t;

const char *const sep_perf_counter_names[SEP_PERF_COUNTER_LAST] = {
#define SEP_PERF_COUNTER_NAME(_id, _name) [SEP_PERF_##_id] = _name,
    SEP_PERF_COUNTER_FOREACH(SEP_PERF_COUNTER_NAME)
#undef SEP_PERF_COUNTER_NAME
};


static void sep_perf_add_text(sep_perf_fields_t *all, const char *name,
                              const char *text)
{
    sep_perf_field_t *field = &all->fields[all->count++];

    field->name      = name;
    field->is_number = 0;
    snprintf(field->text, sizeof(field->text), "%s", text);
}

static void sep_perf_add_count(sep_perf_fields_t *all, const char *name,
                               unsigned long value)
{
    sep_perf_field_t *field = &all->fields[all->count++];

    field->name      = name;
    field->is_number = 1;
    snprintf(field->text, sizeof(field->text), "%lu", value);
}

/* What was not measured is "-" */
static void sep_perf_add_value(sep_perf_fields_t *all, const char *name,
                               int is_known, int digits, double value)
{
    sep_perf_field_t *field = &all->fields[all->count++];

    field->name      = name;
    field->is_number = is_known;
    if (is_known) {
        snprintf(field->text, sizeof(field->text), "%.*f", digits, value);
    } else {
        snprintf(field->text, sizeof(field->text), "-");
    }
}

static void
sep_perf_fields_what(const sep_perf_options_t *options,
                     const sep_perf_row_t *row, const sep_perf_result_t *result,
                     sep_perf_fields_t *all)
{
    char name[SEP_PERF_NAME_MAX];

    sep_perf_add_text(all, "op", sep_model_op_names[options->op]);
    sep_perf_policy(row->sharing, row->threads, name);
    sep_perf_add_text(all, "policy", name);
    sep_perf_add_count(all, "threads", row->threads);
    sep_perf_add_count(all, "depth", row->depth);
    sep_perf_add_count(all, "bytes", options->bytes);
    sep_perf_add_value(all, "mops", !result->is_device, 4, result->rate * 1e-6);
    sep_perf_add_text(all, "level", sep_perf_level_names[options->level]);
    sep_perf_add_text(all, "transport", (options->level == SEP_PERF_UCT) ?
                      options->tl : "-");
    sep_perf_add_text(all, "sharing", row->sharing->name);
    sep_perf_add_text(all, "td", sep_perf_td_names[row->sharing->td]);
    sep_perf_add_text(all, "features",
                      sep_perf_features_name(row->features, name));
    sep_perf_add_count(all, "postlist", row->postlist);
    sep_perf_add_count(all, "signal", row->signal);
    sep_perf_add_text(all, "inline", result->is_inline ? "y" : "n");
    sep_perf_add_text(all, "turns", options->turns ? "y" : "n");
    sep_perf_add_text(all, "aligned", options->aligned ? "y" : "n");
    sep_perf_add_count(all, "processors", result->cpus);
    sep_perf_add_text(all, "device", result->device);
    sep_perf_add_text(all, "software_device", result->is_device ? "y" : "n");
    sep_perf_add_text(all, "regime",
                      sep_plan_regime_names[result->regime]);
}

static void sep_perf_fields_taken(const sep_perf_result_t *result,
                                  sep_perf_fields_t *all)
{
    const struct {
        const char    *name;
        unsigned long value;
    } counts[] = {
        {"contexts", result->contexts}, {"uars", result->uars},
        {"uuars", result->uuars},       {"tds", result->tds},
        {"qps", result->qps},           {"cqs", result->cqs},
        {"pds", result->pds},           {"mrs", result->mrs},
        {"buffers", result->bufs},      {"memory", result->memory}
    };
    unsigned i;

    for (i = 0; i < (sizeof(counts) / sizeof(counts[0])); ++i) {
        sep_perf_add_count(all, counts[i].name, counts[i].value);
    }
    sep_perf_add_value(all, "paper_memory", result->paper_memory > 0, 0,
                       result->paper_memory);
    sep_perf_add_count(all, "messages", result->messages);
}

static void
sep_perf_fields_times(const sep_perf_result_t *result, sep_perf_fields_t *all)
{
    static const char *names[] = {"latency_us", "latency_median_us",
                                  "latency_p99_us"};
    int i;

    for (i = 0; i < 3; ++i) {
        sep_perf_add_value(all, names[i], !result->is_device &&
                           (result->latency[i] > 0), 3,
                           result->latency[i] * 1e6);
    }
    for (i = 0; i < SEP_PERF_COUNTER_LAST; ++i) {
        sep_perf_add_value(all, sep_perf_counter_names[i], result->has_counters,
                           4, result->counters[i]);
    }
    sep_perf_add_text(all, "adapter", (result->adapter[0] != '\0') ?
                      result->adapter : "-");
    sep_perf_add_value(all, "predicted_mops", result->predicted > 0, 4,
                       result->predicted * 1e-6);
    sep_perf_add_value(all, "predicted_latency_us",
                       result->predicted_latency > 0, 3,
                       result->predicted_latency * 1e6);
    sep_perf_add_text(all, "predicted_limit", (result->predicted > 0) ?
                      sep_model_limit_names[result->limit] : "-");
}

static void sep_perf_print_tsv(sep_perf_out_t *out,
                               const sep_perf_fields_t *all)
{
    unsigned i;

    if (out->num_rows == 0) {
        for (i = 0; i < all->count; ++i) {
            fprintf(out->stream, "%s%s", (i == 0) ? "" : "\t",
                    all->fields[i].name);
        }
        fprintf(out->stream, "\n");
    }
    for (i = 0; i < all->count; ++i) {
        fprintf(out->stream, "%s%s", (i == 0) ? "" : "\t", all->fields[i].text);
    }
    fprintf(out->stream, "\n");
    fflush(out->stream);
}

static void sep_perf_print_json(sep_perf_out_t *out,
                                const sep_perf_fields_t *all)
{
    json_object *item = sep_json_add_object(out->json, NULL);
    const sep_perf_field_t *field;
    unsigned i;

    for (i = 0; i < all->count; ++i) {
        field = &all->fields[i];
        if (!field->is_number && (strcmp(field->text, "-") == 0)) {
            sep_json_add(item, field->name, NULL);
        } else if (!field->is_number) {
            sep_json_add_string(item, field->name, field->text);
        } else {
            /* As it is written here, and not with 17 digits */
            sep_json_add(item, field->name, json_tokener_parse(field->text));
        }
    }
}

static void sep_perf_print_head(sep_perf_out_t *out,
                                const sep_perf_result_t *result)
{
    const sep_perf_options_t *options = out->options;

    fprintf(out->stream, "# %s: %s of %zu byte%s, level %s%s%s, %u "
            "outstanding%s\n", result->device,
            sep_model_op_names[options->op], options->bytes,
            (options->bytes == 1) ? "" : "s",
            sep_perf_level_names[options->level],
            (options->level == SEP_PERF_UCT) ? " " : "",
            (options->level == SEP_PERF_UCT) ? options->tl : "",
            options->depth, options->turns ? ", in turns" : "");
    fprintf(out->stream, "%-26s %-14s %7s | %3s %4s %5s %4s %4s %4s %4s %8s |",
            "sharing", "features", "threads", "ctx", "UAR", "uUAR", "QP", "CQ",
            "PD", "MR", "memory");
    if (result->has_counters) {
        fprintf(out->stream, " %8s %9s %8s %9s %6s |", "doorbell", "BlueFlame",
                "DMA read", "DMA write", "CQE");
    }
    fprintf(out->stream, " %9s %9s\n", "M msg/s", "latency");
}

static void
sep_perf_print_text(sep_perf_out_t *out, const sep_perf_row_t *row,
                    const sep_perf_result_t *result)
{
    char features[SEP_PERF_NAME_MAX];
    double rate    = result->is_device ? result->predicted : result->rate;
    double latency = result->is_device ? result->predicted_latency :
                                         result->latency[0];

    if (out->num_rows == 0) {
        sep_perf_print_head(out, result);
    }
    fprintf(out->stream, "%-26s %-14s %7u | %3lu %4lu %5lu %4lu %4lu %4lu %4lu "
            "%7.0fK |", row->sharing->name,
            sep_perf_features_name(row->features, features), row->threads,
            result->contexts, result->uars, result->uuars, result->qps,
            result->cqs, result->pds, result->mrs, result->memory / 1024.0);
    if (result->has_counters) {
        fprintf(out->stream, " %8.3f %9.3f %8.3f %9.3f %6.3f |",
                result->counters[SEP_PERF_DOORBELLS],
                result->counters[SEP_PERF_BLUEFLAMES],
                result->counters[SEP_PERF_DMA_READS],
                result->counters[SEP_PERF_DMA_WRITES],
                result->counters[SEP_PERF_CQES]);
    }
    if (rate > 0) {
        fprintf(out->stream, " %s%8.2f", result->is_device ? "~" : " ",
                rate * 1e-6);
    } else {
        fprintf(out->stream, " %9s", "-");
    }
    if (latency > 0) {
        fprintf(out->stream, " %s%8.2f\n", result->is_device ? "~" : " ",
                latency * 1e6);
    } else {
        fprintf(out->stream, " %9s\n", "-");
    }
    fflush(out->stream);
}

void sep_perf_out_begin(sep_perf_out_t *out, FILE *stream,
                        const sep_perf_options_t *options,
                        struct json_object *json)
{
    memset(out, 0, sizeof(*out));
    out->stream  = stream;
    out->options = options;
    out->json    = json;
}

void sep_perf_out_row(sep_perf_out_t *out, const sep_perf_row_t *row,
                      const sep_perf_result_t *result)
{
    sep_perf_fields_t all = {.count = 0};

    if (out->options->tsv || (out->json != NULL)) {
        sep_perf_fields_what(out->options, row, result, &all);
        sep_perf_fields_taken(result, &all);
        sep_perf_fields_times(result, &all);
    }
    if (out->json != NULL) {
        sep_perf_print_json(out, &all);
    } else if (out->options->tsv) {
        sep_perf_print_tsv(out, &all);
    } else {
        sep_perf_print_text(out, row, result);
    }

    ++out->num_rows;
    out->is_device |= result->is_device;
    if (row->threads > result->cpus) {
        out->crowded = result->cpus;
    }
    out->is_listed |= (result->predicted > 0) &&
                       ((row->postlist > 1) || (row->signal > 1));
}

void sep_perf_out_end(sep_perf_out_t *out)
{
    if (out->json != NULL) {
        return;
    }
    if (out->is_device) {
        fprintf(out->stream, "# This is the software device: its times mean "
                "nothing. Rates (~) and latencies are\n# predicted by the "
                "model and not measured (docs/model.md)\n");
    }
    if (out->is_listed) {
        fprintf(out->stream, "# Predicted are messages that are posted one by "
                "one, each with a completion: the\n# model knows no lists\n");
    }
    if (out->crowded > 0) {
        fprintf(out->stream, "# There are more threads than the %u processors "
                "here: some took turns\n", out->crowded);
    }
}
