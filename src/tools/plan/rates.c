/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/plan/rates.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEP_RATES_ADAPTERS "adapters.conf"


/* Beside the program, which is how it is in the build tree and wherever the
 * prefix is; else where it was to be installed */
static void sep_rates_path(char *path, size_t max)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    char *slash;
    int last;

    if (length > 0) {
        program[length] = '\0';
        slash           = strrchr(program, '/');
        if (slash != NULL) {
            *slash = '\0';
            last   = snprintf(path, max, "%s/../share/sep/%s", program,
                              SEP_RATES_ADAPTERS);
            if ((last > 0) && ((size_t)last < max) &&
                (access(path, R_OK) == 0)) {
                return;
            }
        }
    }
    snprintf(path, max, "%s/%s", SEP_PKGDATADIR, SEP_RATES_ADAPTERS);
}

int sep_rates_read_adapter(const char *path, const char *name,
                           sep_model_adapter_t *adapter_p, char *message)
{
    char ours[PATH_MAX + 64];

    if (path == NULL) {
        sep_rates_path(ours, sizeof(ours));
        path = ours;
    }
    return sep_model_adapter_read(path, name, adapter_p, message);
}
