/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <model/adapter.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const sep_model_param_row_t sep_model_params[SEP_MODEL_PARAM_LAST] = {
#define SEP_MODEL_PARAM_ROW(_id, _name, _unit, _min, _max, _about) \
    [SEP_MODEL_##_id] = {#_name, _unit, _min, _max, _about},
    SEP_MODEL_PARAM_FOREACH(SEP_MODEL_PARAM_ROW)
#undef SEP_MODEL_PARAM_ROW
};

static const char *sep_model_kinds[] = {"fitted", "published", "counted",
                                        "assumed", NULL};

/** A file that is being read. */
typedef struct sep_model_reader {
    const char          *path;
    const char          *wanted;    /**< Adapter that is looked for */
    unsigned            line;
    unsigned            begun;      /**< Line of the section's name, 0: none */
    int                 found;
    sep_model_adapter_t section;    /**< The one that is being read */
    unsigned            set_on[SEP_MODEL_PARAM_LAST]; /**< Lines, 0: not yet */
    sep_model_adapter_t *adapter_p; /**< The one that is looked for */
    char                names[128]; /**< All that there are */
    char                *message;
} sep_model_reader_t;


static int __attribute__((format(printf, 3, 4)))
sep_model_reader_fail(sep_model_reader_t *reader, unsigned line,
                      const char *format, ...)
{
    char text[SEP_MODEL_MESSAGE_MAX / 2];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    snprintf(reader->message, SEP_MODEL_MESSAGE_MAX, "%s:%u: %s", reader->path,
             line, text);
    return -1;
}

char *sep_model_strip(char *text)
{
    size_t length;

    while (isspace((unsigned char)*text)) {
        ++text;
    }
    length = strlen(text);
    while ((length > 0) && isspace((unsigned char)text[length - 1])) {
        text[--length] = '\0';
    }
    return text;
}

static int sep_model_param_find(const char *name)
{
    int param;

    for (param = 0; param < SEP_MODEL_PARAM_LAST; ++param) {
        if (strcmp(name, sep_model_params[param].name) == 0) {
            break;
        }
    }
    return param;
}

/* A section ends: it must be complete */
static int sep_model_section_end(sep_model_reader_t *reader)
{
    int param;

    if (reader->begun == 0) {
        return 0;
    }

    for (param = 0; param < SEP_MODEL_PARAM_LAST; ++param) {
        if (reader->set_on[param] == 0) {
            return sep_model_reader_fail(
                    reader, reader->begun, "adapter %s has no %s (%s, in %s)",
                    reader->section.name, sep_model_params[param].name,
                    sep_model_params[param].about,
                    sep_model_params[param].unit);
        }
    }
    if (strcmp(reader->section.name, reader->wanted) == 0) {
        *reader->adapter_p = reader->section;
        reader->found      = 1;
    }
    return 0;
}

static int sep_model_section_begin(sep_model_reader_t *reader, char *text)
{
    size_t length = strlen(text);
    size_t used   = strlen(reader->names);

    if (sep_model_section_end(reader) != 0) {
        return -1;
    }
    if ((length < 3) || (text[length - 1] != ']') ||
        (strpbrk(text, " \t") != NULL) || (length > SEP_MODEL_NAME_MAX)) {
        return sep_model_reader_fail(reader, reader->line,
                                     "\"%s\" is not [name of an adapter]",
                                     text);
    }
    text[length - 1] = '\0';
    if ((strcmp(text + 1, reader->wanted) == 0) && reader->found) {
        return sep_model_reader_fail(reader, reader->line,
                                     "a second adapter %s", text + 1);
    }

    memset(&reader->section, 0, sizeof(reader->section));
    memset(reader->set_on, 0, sizeof(reader->set_on));
    reader->begun = reader->line;
    snprintf(reader->section.name, sizeof(reader->section.name), "%s",
             text + 1);
    snprintf(reader->names + used, sizeof(reader->names) - used, "%s%s",
             (used > 0) ? ", " : "", text + 1);
    return 0;
}

/* "kind: text" behind a value */
static int sep_model_check_source(sep_model_reader_t *reader, const char *name,
                                  char *source)
{
    char *colon = (source != NULL) ? strchr(source, ':') : NULL;
    int kind;

    if (colon != NULL) {
        *colon = '\0';
        for (kind = 0; sep_model_kinds[kind] != NULL; ++kind) {
            if ((strcmp(sep_model_strip(source), sep_model_kinds[kind]) == 0) &&
                (*sep_model_strip(colon + 1) != '\0')) {
                return 0;
            }
        }
    }
    return sep_model_reader_fail(
            reader, reader->line, "%s does not say where its value is from: "
            "write \"# fitted: ...\", or published, counted, assumed", name);
}

static int sep_model_set(sep_model_reader_t *reader, int param, char *text)
{
    const sep_model_param_row_t *row = &sep_model_params[param];
    double value;
    char *end;

    errno = 0;
    value = strtod(text, &end);
    if ((end == text) || (errno != 0) || !isfinite(value) ||
        ((*end != '\0') && !isspace((unsigned char)*end))) {
        return sep_model_reader_fail(reader, reader->line,
                                     "%s: \"%s\" does not begin with a number",
                                     row->name, text);
    }
    if (strcmp(sep_model_strip(end), row->unit) != 0) {
        return sep_model_reader_fail(reader, reader->line,
                                     "%s is in %s, and not in \"%s\"",
                                     row->name, row->unit,
                                     sep_model_strip(end));
    }
    if ((value < row->min) || (value > row->max)) {
        return sep_model_reader_fail(reader, reader->line,
                                     "%s: %g is not between %g and %g %s",
                                     row->name, value, row->min, row->max,
                                     row->unit);
    }
    reader->section.value[param] = value;
    reader->set_on[param]        = reader->line;
    return 0;
}

static int sep_model_assign(sep_model_reader_t *reader, char *text)
{
    char *equals = strchr(text, '=');
    char *name, *value, *source;
    int param;

    if ((equals == NULL) || (reader->begun == 0)) {
        return sep_model_reader_fail(
                reader, reader->line, "\"%s\" is not %s", text,
                (equals == NULL) ? "\"name = value unit # kind: source\"" :
                "behind the [name] of an adapter");
    }

    *equals = '\0';
    name    = sep_model_strip(text);
    value   = sep_model_strip(equals + 1);
    if (strcmp(name, "about") == 0) {
        snprintf(reader->section.about, sizeof(reader->section.about), "%s",
                 value);
        return 0;
    }

    param = sep_model_param_find(name);
    if (param == SEP_MODEL_PARAM_LAST) {
        return sep_model_reader_fail(reader, reader->line,
                                     "there is no parameter \"%s\"", name);
    }
    if (reader->set_on[param] != 0) {
        return sep_model_reader_fail(reader, reader->line,
                                     "%s has a value already, in line %u",
                                     name, reader->set_on[param]);
    }

    source = strchr(value, '#');
    if (source != NULL) {
        *source++ = '\0';
    }
    if (sep_model_set(reader, param, sep_model_strip(value)) != 0) {
        return -1;
    }
    return sep_model_check_source(reader, name, source);
}

static int sep_model_read_line(sep_model_reader_t *reader, char *line)
{
    char *text = sep_model_strip(line);

    if ((*text == '\0') || (*text == '#')) {
        return 0;
    }
    if (*text == '[') {
        return sep_model_section_begin(reader, text);
    }
    return sep_model_assign(reader, text);
}

static int sep_model_read_all(sep_model_reader_t *reader, FILE *file)
{
    char *line = NULL;
    size_t max = 0;
    int ret    = 0;

    while ((ret == 0) && (getline(&line, &max, file) >= 0)) {
        ++reader->line;
        ret = sep_model_read_line(reader, line);
    }
    free(line);
    if (ret != 0) {
        return ret;
    }
    if (ferror(file)) {
        return sep_model_reader_fail(reader, reader->line + 1, "%s",
                                     strerror(errno));
    }

    ret = sep_model_section_end(reader);
    if ((ret == 0) && !reader->found) {
        snprintf(reader->message, SEP_MODEL_MESSAGE_MAX, "%.200s: there is no "
                 "adapter \"%.32s\", only %s", reader->path, reader->wanted,
                 (reader->names[0] != '\0') ? reader->names : "an empty file");
        return -1;
    }
    return ret;
}

int sep_model_adapter_read(const char *path, const char *name,
                           sep_model_adapter_t *adapter, char *message)
{
    sep_model_reader_t reader = {
        .path      = path,
        .wanted    = name,
        .adapter_p = adapter,
        .message   = message
    };
    FILE *file = fopen(path, "r");
    int ret;

    if (file == NULL) {
        snprintf(message, SEP_MODEL_MESSAGE_MAX, "%.200s: %s", path,
                 strerror(errno));
        return -1;
    }

    ret = sep_model_read_all(&reader, file);
    fclose(file);
    return ret;
}
