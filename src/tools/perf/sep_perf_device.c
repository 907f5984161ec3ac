/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_device.h>

#include <common/json.h>

#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEP_PERF_DEVICE_LIBRARY  "libmlx5sim.so"
#define SEP_PERF_DEVICE_PROGRAM  "mlx5sim-stat"


static int
sep_perf_device_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *name = strrchr(info->dlpi_name, '/');

    return (name != NULL) && (strcmp(name + 1, SEP_PERF_DEVICE_LIBRARY) == 0);
}

int sep_perf_device_is_simulated(void)
{
    /* Switched off, it leaves the adapters of the machine alone */
    return (getenv("MLX5SIM_DISABLE") == NULL) &&
           (dl_iterate_phdr(sep_perf_device_library, NULL) != 0);
}

/* Beside this program, or wherever programs are */
static void sep_perf_device_command(char *command, size_t max)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    char *slash;

    if (length > 0) {
        program[length] = '\0';
        slash           = strrchr(program, '/');
        if ((slash != NULL) && (strchr(program, '\'') == NULL)) {
            snprintf(slash + 1, sizeof(program) - (slash + 1 - program), "%s",
                     SEP_PERF_DEVICE_PROGRAM);
            if (access(program, X_OK) == 0) {
                snprintf(command, max, "'%s' --json", program);
                return;
            }
        }
    }
    snprintf(command, max, "%s --json", SEP_PERF_DEVICE_PROGRAM);
}

/* @return All that the program prints, or NULL */
static char *sep_perf_device_ask(void)
{
    char command[PATH_MAX + 16];
    char *text  = NULL;
    size_t size = 0;
    FILE *pipe;
    ssize_t length;

    sep_perf_device_command(command, sizeof(command));
    pipe = popen(command, "r");
    if (pipe == NULL) {
        return NULL;
    }
    length = getdelim(&text, &size, '\0', pipe);
    if ((pclose(pipe) != 0) || (length <= 0)) {
        free(text);
        return NULL;
    }
    return text;
}

/* The live process with our number */
static json_object *sep_perf_device_process(json_object *all)
{
    json_object *list, *item, *pid, *live;
    size_t i;

    if (!json_object_object_get_ex(all, "processes", &list)) {
        return NULL;
    }
    for (i = 0; i < json_object_array_length(list); ++i) {
        item = json_object_array_get_idx(list, i);
        if (json_object_object_get_ex(item, "pid", &pid) &&
            json_object_object_get_ex(item, "live", &live) &&
            (json_object_get_int64(pid) == getpid()) &&
            json_object_get_boolean(live)) {
            return item;
        }
    }
    return NULL;
}

int sep_perf_device_values(const char *const *names, unsigned count,
                           uint64_t *values)
{
    char *text = sep_perf_device_ask();
    json_object *all, *process, *value;
    unsigned i;
    int ret = -1;

    if (text == NULL) {
        return -1;
    }

    all     = json_tokener_parse(text);
    process = (all != NULL) ? sep_perf_device_process(all) : NULL;
    if (process != NULL) {
        ret = 0;
        for (i = 0; i < count; ++i) {
            if (json_object_object_get_ex(process, names[i], &value)) {
                values[i] = json_object_get_int64(value);
            } else {
                ret = -1;
            }
        }
    }
    json_object_put(all);
    free(text);
    return ret;
}

const char *sep_perf_device_adapter(unsigned part_id)
{
    /* PCI device numbers of vendor 15b3: adapter, virtual function */
    static const struct {
        unsigned   first;
        unsigned   last;
        const char *name;
    } adapters[] = {
        {0x1013, 0x1016, "cx4"},
        {0x101b, 0x101f, "cx6"}
    };
    unsigned i;

    for (i = 0; i < (sizeof(adapters) / sizeof(adapters[0])); ++i) {
        if ((part_id >= adapters[i].first) && (part_id <= adapters[i].last)) {
            return adapters[i].name;
        }
    }
    return NULL;
}
