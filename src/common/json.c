/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/json.h>

#include <ctype.h>
#include <string.h>


int sep_json_print(json_object *json, FILE *stream)
{
    const char *text;
    int ret;

    text = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY |
                                                JSON_C_TO_STRING_SPACED |
                                                JSON_C_TO_STRING_NOSLASHESCAPE);
    ret  = (text == NULL) || (fprintf(stream, "%s\n", text) < 0);
    json_object_put(json);
    return -ret;
}

void sep_json_add(json_object *json, const char *name, json_object *value)
{
    if (name != NULL) {
        json_object_object_add(json, name, value);
    } else {
        json_object_array_add(json, value);
    }
}

json_object *sep_json_add_object(json_object *json, const char *name)
{
    json_object *value = json_object_new_object();

    sep_json_add(json, name, value);
    return value;
}

json_object *sep_json_add_array(json_object *json, const char *name)
{
    json_object *value = json_object_new_array();

    sep_json_add(json, name, value);
    return value;
}

void sep_json_add_string(json_object *json, const char *name,
                         const char *value)
{
    char text[256];
    size_t length = 0;

    /* names may have been cut in the middle of a character */
    for (; (*value != '\0') && (length < sizeof(text)); ++value) {
        if (isascii(*value) && isprint((unsigned char)*value)) {
            text[length++] = *value;
        }
    }

    sep_json_add(json, name, json_object_new_string_len(text, length));
}

void sep_json_add_number(json_object *json, const char *name, uint64_t value)
{
    sep_json_add(json, name, json_object_new_uint64(value));
}

void sep_json_add_bool(json_object *json, const char *name, int value)
{
    sep_json_add(json, name, json_object_new_boolean(value));
}
