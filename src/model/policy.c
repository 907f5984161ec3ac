/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <model/policy.h>

#include <stdio.h>
#include <string.h>

/* Most threads of a queue pair in a name */
#define SEP_MODEL_POLICY_MAX  4096

const char sep_model_policy_list[] =
        "shared-qp, mul-<threads>, per-qp, per-doorbell";

int sep_model_policy_find(const char *name, sep_model_sharing_t *sharing_p)
{
    unsigned threads = 1;
    int length       = 0;

    if (strcmp(name, "shared-qp") == 0) {
        threads = SEP_MODEL_ALL;
    } else if ((sscanf(name, "mul-%4u%n", &threads, &length) == 1) &&
               (length > 0)) {
        if ((name[length] != '\0') || (name[4] == '+') || (name[4] == '-') ||
            (threads < 1) || (threads > SEP_MODEL_POLICY_MAX)) {
            return -1;
        }
    } else if ((strcmp(name, "per-qp") != 0) &&
               (strcmp(name, "per-doorbell") != 0)) {
        return -1;
    }

    sharing_p->threads_per_qp  = threads;
    sharing_p->threads_per_cq  = threads;
    sharing_p->uuars_dedicated = (strcmp(name, "per-doorbell") == 0) ?
                                 SEP_MODEL_ALL : SEP_MODEL_UUARS_DEDICATED;
    sharing_p->uuars_shared    = SEP_MODEL_UUARS_SHARED;
    sharing_p->uuars_per_page  = 2;
    sharing_p->pages_adjacent  = 1;
    sharing_p->qp_lock         = 1;
    return 0;
}
