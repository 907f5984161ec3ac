/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <model/row.h>

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/** Columns that a row must have, and those that it may have. */
typedef enum {
    SEP_MODEL_COLUMN_OP,
    SEP_MODEL_COLUMN_POLICY,
    SEP_MODEL_COLUMN_THREADS,
    SEP_MODEL_COLUMN_DEPTH,
    SEP_MODEL_COLUMN_BYTES,
    SEP_MODEL_COLUMN_REQUIRED,
    SEP_MODEL_COLUMN_QPS = SEP_MODEL_COLUMN_REQUIRED,
    SEP_MODEL_COLUMN_SIGNAL,
    SEP_MODEL_COLUMN_STEADY,
    SEP_MODEL_COLUMN_LAST
} sep_model_column_t;

static const char *sep_model_columns[SEP_MODEL_COLUMN_LAST] = {
    [SEP_MODEL_COLUMN_OP]      = "op",
    [SEP_MODEL_COLUMN_POLICY]  = "policy",
    [SEP_MODEL_COLUMN_THREADS] = "threads",
    [SEP_MODEL_COLUMN_DEPTH]   = "depth",
    [SEP_MODEL_COLUMN_BYTES]   = "bytes",
    [SEP_MODEL_COLUMN_QPS]     = "qps",
    [SEP_MODEL_COLUMN_SIGNAL]  = "signal",
    [SEP_MODEL_COLUMN_STEADY]  = "steady"
};

/* Place of a column that is not there */
#define SEP_MODEL_NOWHERE  UINT_MAX

/* Fields of a row at most */
#define SEP_MODEL_MAX_FIELDS  64

/** A file that is being read. */
typedef struct sep_model_table {
    const sep_model_rows_t *rows;
    const char             *name;
    FILE                   *out;      /**< In memory, until all is right */
    char                   *message;
    unsigned               line;
    unsigned               num_rows;
    unsigned               num_fields; /**< Of each row; 0: not known yet */
    unsigned               place[SEP_MODEL_COLUMN_LAST]; /**< Of columns */
} sep_model_table_t;


static int __attribute__((format(printf, 2, 3)))
sep_model_table_fail(sep_model_table_t *table, const char *format, ...)
{
    char text[SEP_MODEL_MESSAGE_MAX / 2];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    snprintf(table->message, SEP_MODEL_MESSAGE_MAX, "%.200s:%u: %s",
             table->name, table->line, text);
    return -1;
}

/* Cut a line at its commas and blanks. @return Number of fields, 0: too many */
static unsigned sep_model_split(char *line, char **fields)
{
    unsigned num_fields = 0;
    char *end;

    while (num_fields < SEP_MODEL_MAX_FIELDS) {
        while (isspace((unsigned char)*line)) {
            ++line;
        }
        fields[num_fields++] = line;
        line                += strcspn(line, ",");
        end                  = line;
        while ((end > fields[num_fields - 1]) &&
               isspace((unsigned char)end[-1])) {
            --end;
        }
        if (*line == '\0') {
            *end = '\0';
            return num_fields;
        }
        ++line;
        *end = '\0';
    }
    return 0;
}

/* First row, if it has the names of columns. @return 1 if it has, 0, or -1 */
static int sep_model_table_header(sep_model_table_t *table, char **fields,
                                  unsigned num_fields)
{
    unsigned missing = SEP_MODEL_COLUMN_REQUIRED;
    unsigned column, field, known = 0;

    for (column = 0; column < SEP_MODEL_COLUMN_LAST; ++column) {
        table->place[column] = SEP_MODEL_NOWHERE;
        for (field = 0; field < num_fields; ++field) {
            if (strcmp(fields[field], sep_model_columns[column]) == 0) {
                table->place[column] = field;
                ++known;
                break;
            }
        }
        if ((field == num_fields) && (column < missing)) {
            missing = column;
        }
    }
    if ((known > 0) && (missing < SEP_MODEL_COLUMN_REQUIRED)) {
        return sep_model_table_fail(table, "there is no column \"%s\"",
                                    sep_model_columns[missing]);
    }
    return known > 0;
}

static void
sep_model_table_print(sep_model_table_t *table, char *const *fields)
{
    unsigned field;

    for (field = 0; field < table->num_fields; ++field) {
        fprintf(table->out, "%s,", fields[field]);
    }
}

/* A header for rows that came without */
static void sep_model_table_make_header(sep_model_table_t *table)
{
    unsigned field;

    for (field = 0; field < table->num_fields; ++field) {
        if (field < SEP_MODEL_COLUMN_REQUIRED) {
            fprintf(table->out, "%s,", sep_model_columns[field]);
        } else if ((field == SEP_MODEL_COLUMN_REQUIRED) &&
                   (table->num_fields == SEP_MODEL_COLUMN_REQUIRED + 1)) {
            fprintf(table->out, "mops,");
        } else {
            fprintf(table->out, "column_%u,", field + 1);
        }
    }
    fprintf(table->out, "%s\n", SEP_MODEL_PREDICTED);
}

/* The first row that is no comment. @return 1 if it is a header, 0, or -1 */
static int sep_model_table_begin(sep_model_table_t *table, char **fields,
                                 unsigned num_fields)
{
    unsigned column;
    int ret = sep_model_table_header(table, fields, num_fields);

    if (ret < 0) {
        return -1;
    }

    table->num_fields = num_fields;
    if (ret > 0) {
        sep_model_table_print(table, fields);
        fprintf(table->out, "%s\n", SEP_MODEL_PREDICTED);
        return 1;
    }

    if (num_fields < SEP_MODEL_COLUMN_REQUIRED) {
        return sep_model_table_fail(table, "%u fields, and not at least %u: "
                                    "op,policy,threads,depth,bytes", num_fields,
                                    SEP_MODEL_COLUMN_REQUIRED);
    }
    for (column = 0; column < SEP_MODEL_COLUMN_LAST; ++column) {
        table->place[column] = (column < SEP_MODEL_COLUMN_REQUIRED) ?
                               column : SEP_MODEL_NOWHERE;
    }
    sep_model_table_make_header(table);
    return 0;
}

static int sep_model_table_number(sep_model_table_t *table, char **fields,
                                  sep_model_column_t column, unsigned long min,
                                  unsigned long max, unsigned long *value_p)
{
    const char *text;
    char *end;

    if (table->place[column] == SEP_MODEL_NOWHERE) {
        *value_p = 0;
        return 0;
    }

    text     = fields[table->place[column]];
    errno    = 0;
    *value_p = strtoul(text, &end, 10);
    if (isdigit((unsigned char)*text) && (*end == '\0') && (errno == 0) &&
        (*value_p >= min) && (*value_p <= max)) {
        return 0;
    }
    return sep_model_table_fail(table, "%s: \"%s\" is not a number between %lu "
                                "and %lu", sep_model_columns[column], text,
                                min, max);
}

static int
sep_model_table_op(sep_model_table_t *table, char **fields,
                   sep_model_load_t *load)
{
    const char *name = fields[table->place[SEP_MODEL_COLUMN_OP]];
    int op;

    for (op = 0; op < SEP_MODEL_OP_LAST; ++op) {
        if (strcmp(name, sep_model_op_names[op]) == 0) {
            load->op = (sep_model_op_t)op;
            return 0;
        }
    }
    return sep_model_table_fail(table, "op: there is no \"%s\", only read, "
                                "write, send and atomic", name);
}

/* @return 0, or -1 */
static int sep_model_table_load(sep_model_table_t *table, char **fields,
                                sep_model_load_t *load)
{
    const sep_model_rows_t *rows = table->rows;
    const char *policy;
    unsigned long threads, depth, bytes, qps, signal, steady;

    if ((sep_model_table_op(table, fields, load) != 0) ||
        (sep_model_table_number(table, fields, SEP_MODEL_COLUMN_THREADS, 1,
                                SEP_MODEL_MAX_THREADS, &threads) != 0) ||
        (sep_model_table_number(table, fields, SEP_MODEL_COLUMN_DEPTH, 1,
                                SEP_MODEL_MAX_DEPTH, &depth) != 0) ||
        (sep_model_table_number(table, fields, SEP_MODEL_COLUMN_BYTES, 0,
                                SEP_MODEL_MAX_BYTES, &bytes) != 0) ||
        (sep_model_table_number(table, fields, SEP_MODEL_COLUMN_QPS, 1,
                                SEP_MODEL_MAX_QPS, &qps) != 0) ||
        (sep_model_table_number(table, fields, SEP_MODEL_COLUMN_SIGNAL, 1,
                                SEP_MODEL_MAX_DEPTH, &signal) != 0) ||
        (sep_model_table_number(table, fields, SEP_MODEL_COLUMN_STEADY, 0, 1,
                                &steady) != 0)) {
        return -1;
    }
    if ((load->op == SEP_MODEL_ATOMIC) && (bytes != 4) && (bytes != 8)) {
        return sep_model_table_fail(table, "bytes: an atomic has 4 or 8, and "
                                    "not %lu", bytes);
    }
    policy = fields[table->place[SEP_MODEL_COLUMN_POLICY]];
    if (rows->find(policy, &load->sharing) != 0) {
        return sep_model_table_fail(table, "policy: there is no \"%s\", only "
                                    "%s", policy, rows->policies);
    }

    load->threads      = threads;
    load->depth        = depth;
    load->bytes        = bytes;
    load->qps          = qps;
    load->signal       = signal;
    load->is_steady    = steady;
    load->instructions = rows->instructions;
    load->is_inline    = (bytes > 0) && (bytes <= rows->max_inline) &&
                         ((load->op == SEP_MODEL_WRITE) ||
                          (load->op == SEP_MODEL_SEND));
    load->post         = load->is_inline ? SEP_MODEL_BLUEFLAME : rows->post;
    return 0;
}

static int
sep_model_table_row(sep_model_table_t *table, char **fields,
                    unsigned num_fields)
{
    sep_model_load_t load;
    sep_model_rate_t rate;

    if (num_fields != table->num_fields) {
        return sep_model_table_fail(table, "%u fields, and not %u as in the "
                                    "first row", num_fields,
                                    table->num_fields);
    }
    if (sep_model_table_load(table, fields, &load) != 0) {
        return -1;
    }

    sep_model_predict(table->rows->adapter, &load, &rate);
    sep_model_table_print(table, fields);
    fprintf(table->out, "%.4f\n", rate.mops);
    ++table->num_rows;
    return 0;
}

static int sep_model_table_line(sep_model_table_t *table, char *line)
{
    char *fields[SEP_MODEL_MAX_FIELDS];
    unsigned num_fields;
    int ret;

    line += strspn(line, " \t\r\n");
    if ((*line == '\0') || (*line == '#')) {
        return 0;
    }

    num_fields = sep_model_split(line, fields);
    if (num_fields == 0) {
        return sep_model_table_fail(table, "more than %u fields",
                                    SEP_MODEL_MAX_FIELDS);
    }
    if (table->num_fields == 0) {
        ret = sep_model_table_begin(table, fields, num_fields);
        if (ret != 0) {
            return (ret < 0) ? -1 : 0;
        }
    }
    return sep_model_table_row(table, fields, num_fields);
}

static int sep_model_table_read(sep_model_table_t *table, FILE *in)
{
    char *line = NULL;
    size_t max = 0;
    int ret    = 0;
    ssize_t length;

    while ((ret == 0) && ((length = getline(&line, &max, in)) >= 0)) {
        ++table->line;
        ret = (strlen(line) == (size_t)length) ?
              sep_model_table_line(table, line) :
              sep_model_table_fail(table, "a byte 0: this is no text");
    }
    free(line);
    if (ret != 0) {
        return ret;
    }

    if (ferror(in)) {
        return sep_model_table_fail(table, "%s", strerror(errno));
    }
    return (table->num_rows > 0) ? 0 :
           sep_model_table_fail(table, "there are no rows");
}

int sep_model_predict_rows(const sep_model_rows_t *rows, FILE *in,
                           const char *in_name, FILE *out, char *message)
{
    sep_model_table_t table = {
        .rows    = rows,
        .name    = in_name,
        .message = message
    };
    char *text  = NULL;
    size_t size = 0;
    int ret;

    table.out = open_memstream(&text, &size);
    if (table.out == NULL) {
        return sep_model_table_fail(&table, "%s", strerror(errno));
    }

    ret = sep_model_table_read(&table, in);
    if (fclose(table.out) != 0) {
        ret = sep_model_table_fail(&table, "%s", strerror(errno));
    }
    if (ret == 0) {
        fwrite(text, 1, size, out);
    }
    free(text);
    return ret;
}
