/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_info.h"

#include <assert.h>
#include <ctype.h>


/* Objects and arrays that are open: their closing brackets, and whether they
 * have a value already */
static struct {
    char bracket;
    int  has_value;
} sep_info_json_stack[8];
static unsigned sep_info_json_depth;


static void sep_info_json_text(const char *text)
{
    fputc('"', sep_info_out);
    for (; *text != '\0'; ++text) {
        if ((*text == '"') || (*text == '\\')) {
            fputc('\\', sep_info_out);
        }
        if (isprint((unsigned char)*text)) {
            fputc(*text, sep_info_out);
        }
    }
    fputc('"', sep_info_out);
}

/* What is in front of a value */
static void sep_info_json_begin(const char *name)
{
    if (sep_info_json_depth > 0) {
        if (sep_info_json_stack[sep_info_json_depth - 1].has_value) {
            fputc(',', sep_info_out);
        }
        sep_info_json_stack[sep_info_json_depth - 1].has_value = 1;
        sep_info_print("\n%*s", 2 * sep_info_json_depth, "");
    }

    if (name != NULL) {
        sep_info_json_text(name);
        sep_info_print(": ");
    }
}

void sep_info_json_open(const char *name, char bracket)
{
    sep_info_json_begin(name);
    fputc(bracket, sep_info_out);
    assert(sep_info_json_depth < (sizeof(sep_info_json_stack) /
                                  sizeof(sep_info_json_stack[0])));
    sep_info_json_stack[sep_info_json_depth].bracket = (bracket == '{') ? '}' :
                                                                          ']';
    sep_info_json_stack[sep_info_json_depth++].has_value = 0;
}

void sep_info_json_close(void)
{
    --sep_info_json_depth;
    if (sep_info_json_stack[sep_info_json_depth].has_value) {
        sep_info_print("\n%*s", 2 * sep_info_json_depth, "");
    }
    fputc(sep_info_json_stack[sep_info_json_depth].bracket, sep_info_out);
    if (sep_info_json_depth == 0) {
        fputc('\n', sep_info_out);
    }
}

void sep_info_json_written(void)
{
    sep_info_json_stack[sep_info_json_depth - 1].has_value = 1;
}

void sep_info_json_string(const char *name, const char *value)
{
    sep_info_json_begin(name);
    sep_info_json_text(value);
}

void sep_info_json_number(const char *name, unsigned long value)
{
    sep_info_json_begin(name);
    sep_info_print("%lu", value);
}

void sep_info_json_bool(const char *name, int value)
{
    sep_info_json_begin(name);
    sep_info_print("%s", value ? "true" : "false");
}
