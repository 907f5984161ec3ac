/* SPDX-License-Identifier: BSD-3-Clause */

#include <tools/plan/node_read.h>
#include <model/adapter.h>

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SEP_NODE_ADAPTER  "adapter"

/** A description that is being read. */
typedef struct sep_node_reader {
    sep_node_t       *node;
    sep_node_group_t *group;     /**< Of the section, NULL: it is the adapter */
    int              is_begun;   /**< There was a section */
    const char       *name;
    unsigned         line;
    char             *message;
} sep_node_reader_t;


static int __attribute__((format(printf, 2, 3)))
sep_node_reader_fail(sep_node_reader_t *reader, const char *format, ...)
{
    char text[SEP_NODE_MESSAGE_MAX - 232];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    snprintf(reader->message, SEP_NODE_MESSAGE_MAX, "%.200s:%u: %s",
             reader->name, reader->line, text);
    return -1;
}

static int sep_node_section(sep_node_reader_t *reader, char *text)
{
    size_t length = strlen(text);
    const sep_node_stack_t *stack;
    char known[160] = "";

    if ((length < 3) || (text[length - 1] != ']')) {
        return sep_node_reader_fail(reader, "\"%.40s\" is not [name]", text);
    }

    text[length - 1] = '\0';
    ++text;
    reader->is_begun = 1;
    reader->group    = NULL;
    if (strcmp(text, SEP_NODE_ADAPTER) == 0) {
        return 0;
    }

    stack = sep_node_stack_find(text);
    if (stack == NULL) {
        for (stack = sep_node_stacks; stack->name != NULL; ++stack) {
            snprintf(known + strlen(known), sizeof(known) - strlen(known),
                     ", %s", stack->name);
        }
        return sep_node_reader_fail(reader, "there is no [%.40s], only "
                                    SEP_NODE_ADAPTER "%s", text, known);
    }

    reader->group = sep_node_add(reader->node, stack);
    if (reader->group == NULL) {
        return sep_node_reader_fail(reader, "%s", strerror(ENOMEM));
    }
    reader->group->line = reader->line;
    return 0;
}

static int
sep_node_number(sep_node_reader_t *reader, const char *name, const char *text,
                unsigned long min, unsigned long *value_p)
{
    unsigned long value;
    char *end;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || (*end != '\0') || (errno != 0) ||
        (value < min) || (value > SEP_NODE_MAX_NUMBER)) {
        return sep_node_reader_fail(reader, "%s: \"%.40s\" is not a number "
                                    "between %lu and %lu", name, text, min,
                                    SEP_NODE_MAX_NUMBER);
    }
    *value_p = value;
    return 0;
}

/* @return Limit of that name, SEP_NODE_LIMIT_LAST: there is none */
static int sep_node_limit_find(const char *name)
{
    int limit;

    for (limit = 0; limit < SEP_NODE_LIMIT_LAST; ++limit) {
        if (strcmp(name, sep_node_limit_names[limit]) == 0) {
            break;
        }
    }
    return limit;
}

static int sep_node_set_regime(sep_node_reader_t *reader, const char *value)
{
    int regime;

    for (regime = 0; regime < SEP_PLAN_NC; ++regime) {
        if (strcmp(value, sep_plan_regime_names[regime]) == 0) {
            reader->node->config.regime = (sep_plan_regime_t)regime;
            return 0;
        }
    }
    return sep_node_reader_fail(reader, "regime: there is no \"%.40s\", only "
                                "legacy and dynamic", value);
}

static int sep_node_set_adapter(sep_node_reader_t *reader, const char *name,
                                const char *value)
{
    int limit = sep_node_limit_find(name);

    if (limit < SEP_NODE_LIMIT_LAST) {
        return sep_node_number(reader, name, value, 1,
                               &reader->node->has[limit]);
    }
    if (strcmp(name, "kernel_uars") == 0) {
        return sep_node_number(reader, name, value, 0,
                               &reader->node->kernel_uars);
    }
    if (strcmp(name, "regime") == 0) {
        return sep_node_set_regime(reader, value);
    }
    return sep_node_reader_fail(reader, "there is no \"%.40s\" of an adapter, "
                                "only uars, kernel_uars, qps, cqs, regime",
                                name);
}

static int
sep_node_set_category(sep_node_reader_t *reader, const char *value)
{
    sep_plan_category_t category = sep_plan_category_find(value);
    char names[256];

    if (!reader->group->stack->is_planned) {
        return sep_node_reader_fail(reader, "category is for [sep_mlx5], and "
                                    "not for [%s]", reader->group->stack->name);
    }
    if (category == SEP_PLAN_LAST) {
        return sep_node_reader_fail(reader, "there is no category \"%.40s\", "
                                    "only %s, naive", value,
                                    uct_sep_category_list(names,
                                                          sizeof(names)));
    }
    reader->group->category = category;
    return 0;
}

static int sep_node_set_group(sep_node_reader_t *reader, const char *name,
                              const char *value)
{
    sep_node_group_t *group = reader->group;
    int limit               = sep_node_limit_find(name);

    if (limit < SEP_NODE_LIMIT_LAST) {
        return sep_node_number(reader, name, value, 0, &group->given[limit]);
    }
    if (strcmp(name, "processes") == 0) {
        return sep_node_number(reader, name, value, 1, &group->processes);
    }
    if (strcmp(name, "workers") == 0) {
        return sep_node_number(reader, name, value, 1, &group->workers);
    }
    if (strcmp(name, "peers") == 0) {
        return sep_node_number(reader, name, value, 0, &group->peers);
    }
    if (strcmp(name, "category") == 0) {
        return sep_node_set_category(reader, value);
    }
    if (strcmp(name, "label") == 0) {
        snprintf(group->label, sizeof(group->label), "%s", value);
        return 0;
    }
    return sep_node_reader_fail(reader, "there is no \"%.40s\" of processes, "
                                "only processes, workers, peers, category, "
                                "label, uars, qps, cqs", name);
}

static int sep_node_line(sep_node_reader_t *reader, char *line)
{
    char *equals, *name, *value;

    line[strcspn(line, "#")] = '\0';
    line                     = sep_model_strip(line);
    if (*line == '\0') {
        return 0;
    }
    if (*line == '[') {
        return sep_node_section(reader, line);
    }

    equals = strchr(line, '=');
    if ((equals == NULL) || !reader->is_begun) {
        return sep_node_reader_fail(reader, "\"%.40s\" is not %s", line,
                                    (equals == NULL) ?
                                    "\"name = value\" or [name]" :
                                    "behind a [name]");
    }
    *equals = '\0';
    name    = sep_model_strip(line);
    value   = sep_model_strip(equals + 1);
    return (reader->group == NULL) ?
           sep_node_set_adapter(reader, name, value) :
           sep_node_set_group(reader, name, value);
}

int sep_node_read(sep_node_t *node, FILE *in, const char *name, char *message)
{
    sep_node_reader_t reader = {
        .node    = node,
        .name    = name,
        .message = message
    };
    char *line = NULL;
    size_t max = 0;
    int ret    = 0;
    ssize_t length;

    while ((ret == 0) && ((length = getline(&line, &max, in)) >= 0)) {
        ++reader.line;
        ret = (strlen(line) == (size_t)length) ?
              sep_node_line(&reader, line) :
              sep_node_reader_fail(&reader, "a byte 0: this is no text");
    }
    free(line);
    if ((ret == 0) && ferror(in)) {
        return sep_node_reader_fail(&reader, "%s", strerror(errno));
    }
    if ((ret == 0) && (node->num_groups == 0)) {
        return sep_node_reader_fail(&reader, "there are no processes");
    }
    return ret;
}
