/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_live.h>
#include <tools/plan/node_read.h>
#include <tools/plan/uars.h>

#include <json-c/json.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Most that a command may print: some hundred bytes for each object */
#define SEP_INFO_LIVE_MAX  (256ul << 20)


static int sep_info_live_command(const char *command, sep_node_t *node)
{
    char message[SEP_NODE_MESSAGE_MAX];
    FILE *in = popen(command, "r");
    int ret;

    if (in == NULL) {
        fprintf(stderr, "sep_info: %s: %s\n", command, strerror(errno));
        return SEP_INFO_FAILED;
    }

    ret = sep_node_read(node, in, command, message);
    if ((pclose(in) != 0) || (ret != 0)) {
        fprintf(stderr, "sep_info: " SEP_INFO_LIVE_ENV "=%s: %s\n", command,
                (ret != 0) ? message : "the command failed");
        return SEP_INFO_FAILED;
    }
    return SEP_INFO_OK;
}

/* Group of a process, made if there is none. Its pid is behind the name. */
static sep_node_group_t *
sep_info_live_group(sep_node_t *node, unsigned long pid, const char *comm)
{
    char label[SEP_NODE_LABEL_MAX];
    sep_node_group_t *group;
    unsigned i;

    snprintf(label, sizeof(label), "%.24s (%lu)", comm, pid);
    for (i = 0; i < node->num_groups; ++i) {
        if (strcmp(node->groups[i].label, label) == 0) {
            return &node->groups[i];
        }
    }

    group = sep_node_add(node, sep_node_stack_find("other"));
    if (group != NULL) {
        snprintf(group->label, sizeof(group->label), "%s", label);
        for (i = 0; i < SEP_NODE_LIMIT_LAST; ++i) {
            group->given[i] = 0;
        }
    }
    return group;
}

static void sep_info_live_comm(unsigned long pid, char *comm, size_t max)
{
    char path[48];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%lu/comm", pid);
    file = fopen(path, "r");
    if ((file == NULL) || (fgets(comm, max, file) == NULL)) {
        snprintf(comm, max, "?");
    }
    if (file != NULL) {
        fclose(file);
    }
    comm[strcspn(comm, "\n")] = '\0';
}

/* UAR pages of all processes that may be looked at */
static int sep_info_live_uars(sep_node_t *node)
{
    DIR *dir = opendir("/proc");
    sep_node_group_t *group;
    struct dirent *entry;
    unsigned long pid, uars;
    char comm[32];

    if (dir == NULL) {
        fprintf(stderr, "sep_info: /proc: %s\n", strerror(errno));
        return -1;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0])) {
            continue;
        }
        pid  = strtoul(entry->d_name, NULL, 10);
        uars = sep_uars_mapped_by(pid);
        if (uars == 0) {
            continue;
        }
        sep_info_live_comm(pid, comm, sizeof(comm));
        group = sep_info_live_group(node, pid, comm);
        if (group != NULL) {
            group->given[SEP_NODE_UARS] += uars;
        }
    }
    closedir(dir);
    return 0;
}

static char *sep_info_live_read(FILE *in)
{
    char *text  = NULL;
    size_t size = 0;
    size_t max  = 0;
    char *more;

    do {
        if (size + 1 >= max) {
            max  = (max == 0) ? 65536 : (2 * max);
            more = (max > SEP_INFO_LIVE_MAX) ? NULL : realloc(text, max);
            if (more == NULL) {
                free(text);
                return NULL;
            }
            text = more;
        }
        size += fread(text + size, 1, max - size - 1, in);
    } while (!feof(in) && !ferror(in));
    text[size] = '\0';
    return text;
}

/* What the kernel knows of one kind of object */
static json_object *sep_info_live_rdma(const char *kind)
{
    json_object *list = NULL;
    char command[64];
    char *text;
    FILE *in;

    snprintf(command, sizeof(command), "rdma -j resource show %s 2>/dev/null",
             kind);
    in = popen(command, "r");
    if (in == NULL) {
        return NULL;
    }
    text = sep_info_live_read(in);
    if ((pclose(in) == 0) && (text != NULL)) {
        list = json_tokener_parse(text);
    }
    free(text);
    if ((list != NULL) && !json_object_is_type(list, json_type_array)) {
        json_object_put(list);
        list = NULL;
    }
    return list;
}

static const char *sep_info_live_string(json_object *object, const char *name)
{
    json_object *value;

    return json_object_object_get_ex(object, name, &value) ?
           json_object_get_string(value) : "";
}

/* Objects of one kind: those without a process are the kernel's */
static void sep_info_live_objects(const sep_info_options_t *options,
                                  const char *kind, sep_node_limit_t limit,
                                  sep_node_t *node)
{
    json_object *list = sep_info_live_rdma(kind);
    sep_node_group_t *group;
    json_object *one, *pid;
    size_t i;

    if (list == NULL) {
        node->is_unknown[limit] = 1;
        return;
    }

    for (i = 0; i < json_object_array_length(list); ++i) {
        one = json_object_array_get_idx(list, i);
        if (!json_object_is_type(one, json_type_object) ||
            ((options->dev_name != NULL) &&
             (strcmp(options->dev_name,
                     sep_info_live_string(one, "ifname")) != 0))) {
            continue;
        }
        group = json_object_object_get_ex(one, "pid", &pid) ?
                sep_info_live_group(node, json_object_get_int64(pid),
                                    sep_info_live_string(one, "comm")) :
                sep_info_live_group(node, 0, "kernel");
        if (group != NULL) {
            ++group->given[limit];
        }
    }
    json_object_put(list);
}

int sep_info_live(const sep_info_options_t *options, sep_node_t *node)
{
    const char *command = getenv(SEP_INFO_LIVE_ENV);

    if ((command != NULL) && (command[0] != '\0')) {
        return sep_info_live_command(command, node);
    }

    if (sep_info_live_uars(node) != 0) {
        return SEP_INFO_FAILED;
    }
    sep_info_live_objects(options, "qp", SEP_NODE_QPS, node);
    sep_info_live_objects(options, "cq", SEP_NODE_CQS, node);
    if (node->num_groups == 0) {
        fprintf(stderr, "sep_info: no process holds UAR pages%s, as far as "
                "this user may see\n", node->is_unknown[SEP_NODE_QPS] ?
                ", and \"rdma resource\" shows nothing" : "");
        return SEP_INFO_FAILED;
    }
    return SEP_INFO_OK;
}
