/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_JSON_H
#define SEP_JSON_H

#include <json-c/json.h>

#include <stdint.h>
#include <stdio.h>

/*
 * What programs say in JSON, made with json-c: it has unsigned numbers of 64
 * bits, which other libraries lack, and keeps the order in which values were
 * added. All of them go into an object under a name, or at the end of an array,
 * which has none.
 */

/** Print a document and free it. @return 0, or -1 with errno. */
int sep_json_print(json_object *json, FILE *stream);

/** Add a value. @param name  NULL if @a json is an array. */
void sep_json_add(json_object *json, const char *name, json_object *value);

/** Add an object or an array that is empty. @return It. */
json_object *sep_json_add_object(json_object *json, const char *name);
json_object *sep_json_add_array(json_object *json, const char *name);

/** Add text; of other than printable ASCII characters nothing is left. */
void sep_json_add_string(json_object *json, const char *name,
                         const char *value);

void sep_json_add_number(json_object *json, const char *name, uint64_t value);
void sep_json_add_bool(json_object *json, const char *name, int value);

#endif
