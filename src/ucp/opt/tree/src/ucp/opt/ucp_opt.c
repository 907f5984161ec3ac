/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt.h"
#include "ucp_opt_compat.h"

#include <ucp/core/ucp_worker.h>
#include <ucs/config/parser.h>
#include <ucs/debug/log.h>
#include <ucs/memory/rcache_int.h>
#include <ucs/sys/compiler.h>
#include <uct/opt/opt_compat.h>

#include <stddef.h>


typedef struct {
    int rkey;
    int flush;
    int wireup;
    int ondemand;
    int eager;
    int recv;
    int progress;
    int mem;
    int memtype;
} ucp_opt_config_t;


static ucs_config_field_t ucp_opt_config_table[] = {
    {"RKEY", "y",
     "Resolve remote keys when they are unpacked, so that a small put finds\n"
     "everything it needs in the key.",
     ucs_offsetof(ucp_opt_config_t, rkey), UCS_CONFIG_TYPE_BOOL},

    {"FLUSH", "y",
     "Complete a flush at once, without a request, if the transports have\n"
     "nothing outstanding.",
     ucs_offsetof(ucp_opt_config_t, flush), UCS_CONFIG_TYPE_BOOL},

    {"WIREUP", "y",
     "Do not poll an interface that only connects endpoints of others. What\n"
     "arrives there is handled in asynchronous context.",
     ucs_offsetof(ucp_opt_config_t, wireup), UCS_CONFIG_TYPE_BOOL},

    {"EAGER", "y",
     "Send short messages without looking up what is known since an earlier\n"
     "one.",
     ucs_offsetof(ucp_opt_config_t, eager), UCS_CONFIG_TYPE_BOOL},

    {"RECV", "y",
     "Receive messages of one piece, tagged ones into one buffer, with what\n"
     "that needs and no more.",
     ucs_offsetof(ucp_opt_config_t, recv), UCS_CONFIG_TYPE_BOOL},

    {"PROGRESS", "y",
     "Progress a worker that takes no lock without asking for it.",
     ucs_offsetof(ucp_opt_config_t, progress), UCS_CONFIG_TYPE_BOOL},

#if UCX_OPT_SINCE(18)
    {"MEM", "y",
     "Let a worker remember the registrations that it has used last, so that\n"
     "workers of several threads do not wait for each other.",
     ucs_offsetof(ucp_opt_config_t, mem), UCS_CONFIG_TYPE_BOOL},
#endif

#if UCX_OPT_SINCE(18)
    {"MEMTYPE", "y",
     "Take memory for that of the host, without looking it up under a lock of\n"
     "all threads, if it is outside of all that has ever been another.",
     ucs_offsetof(ucp_opt_config_t, memtype), UCS_CONFIG_TYPE_BOOL},
#endif

    {"ONDEMAND", "n",
     "Connect an endpoint when it is used for the first time rather than when\n"
     "it is created:\n"
     " y    - always, unless it handles failures of its peer\n"
     " auto - if many endpoints are expected (64 or more, see UCX_NUM_EPS)",
     ucs_offsetof(ucp_opt_config_t, ondemand), UCS_CONFIG_TYPE_ON_OFF_AUTO},

    {NULL}
};
UCS_CONFIG_REGISTER_TABLE(ucp_opt_config_table, "UCP optimisations", "OPT_",
                          ucp_opt_config_t, &ucs_config_global_list)


uint32_t ucp_opt_read(void)
{
    ucp_opt_config_t config = {0};
    ucs_status_t status;
    uint32_t opt            = 0;

    status = ucx_opt_fill(&config, ucp_opt_config_table);
    if (status != UCS_OK) {
        ucs_warn("the UCX_OPT_ variables cannot be read (%s): no optimisation"
                 " is switched on", ucs_status_string(status));
        return 0;
    }

    if (config.rkey) {
        opt |= UCP_OPT_RKEY;
    }
    if (config.flush) {
        opt |= UCP_OPT_FLUSH;
    }
    if (config.wireup) {
        opt |= UCP_OPT_WIREUP;
    }
    if (config.eager) {
        opt |= UCP_OPT_EAGER;
    }
    if (config.recv) {
        opt |= UCP_OPT_RECV;
    }
    if (config.progress) {
        opt |= UCP_OPT_PROGRESS;
    }
    if (config.mem) {
        opt |= UCP_OPT_MEM;
    }
    if (config.memtype) {
        opt |= UCP_OPT_MEMTYPE;
    }
    if (config.ondemand == UCS_CONFIG_ON) {
        opt |= UCP_OPT_ONDEMAND;
    } else if (config.ondemand == UCS_CONFIG_AUTO) {
        opt |= UCP_OPT_ONDEMAND_AUTO;
    }

    ucs_config_parser_release_opts(&config, ucp_opt_config_table);
    return opt;
}

uint64_t ucp_opt_worker_flags(ucp_worker_h worker)
{
    uint32_t opt   = worker->context->opt;
    uint64_t flags = 0;

    if (worker->flags & UCP_WORKER_FLAG_THREAD_MULTI) {
        return 0;
    }

    if (opt & UCP_OPT_FLUSH) {
        flags |= UCP_WORKER_FLAG_OPT_FLUSH;
        if (worker->context->config.ext.flush_worker_eps) {
            flags |= UCP_WORKER_FLAG_OPT_FLUSH_EPS;
        }
    }
    if ((opt & UCP_OPT_RKEY) && !ucp_opt_has_ep_fence(worker->context)) {
        flags |= UCP_WORKER_FLAG_OPT_RKEY;
    }
    if (opt & UCP_OPT_EAGER) {
        flags |= UCP_WORKER_FLAG_OPT_EAGER;
    }
    if ((opt & UCP_OPT_RECV) &&
        (worker->context->config.features & UCP_FEATURE_TAG) &&
        (worker->context->num_mem_type_detect_mds == 0)) {
        flags |= UCP_WORKER_FLAG_OPT_RECV;
    }
    if (opt & UCP_OPT_RECV) {
        flags |= UCP_WORKER_FLAG_OPT_RECV_AM;
    }
    if (opt & UCP_OPT_PROGRESS) {
        flags |= UCP_WORKER_FLAG_OPT_PROGRESS;
    }
    if ((opt & UCP_OPT_MEM) && ucp_opt_mem_is_possible(worker->context)) {
        flags |= UCP_WORKER_FLAG_OPT_MEM;
    }
    return flags;
}
