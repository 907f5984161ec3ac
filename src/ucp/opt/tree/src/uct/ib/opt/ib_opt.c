/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ib_opt.h"

#include <ucs/config/parser.h>
#include <ucs/debug/log.h>
#include <ucs/sys/compiler.h>
#include <uct/opt/opt_compat.h>

#include <stddef.h>


typedef struct {
    int idle_tx;
    int flush_signal;
} uct_ib_opt_config_t;


static ucs_config_field_t uct_ib_opt_config_table[] = {
    {"IDLE_TX", "y",
     "Do not poll the completion queue for sends while nothing that has been\n"
     "posted will write to it.",
     ucs_offsetof(uct_ib_opt_config_t, idle_tx), UCS_CONFIG_TYPE_BOOL},

    {"FLUSH_SIGNAL", "y",
     "Where each operation is followed by a flush, ask for the completion of\n"
     "the operation, so that the flush does not have to post a work request.",
     ucs_offsetof(uct_ib_opt_config_t, flush_signal), UCS_CONFIG_TYPE_BOOL},

    {NULL}
};
UCS_CONFIG_REGISTER_TABLE(uct_ib_opt_config_table, "InfiniBand optimisations",
                          "OPT_", uct_ib_opt_config_t, &ucs_config_global_list)


uint32_t uct_ib_opt_read(void)
{
    uct_ib_opt_config_t config;
    ucs_status_t status;
    uint32_t opt = 0;

    status = ucx_opt_fill(&config, uct_ib_opt_config_table);
    if (status != UCS_OK) {
        ucs_warn("the UCX_OPT_ variables cannot be read (%s): no optimisation"
                 " is switched on", ucs_status_string(status));
        return 0;
    }

    if (config.idle_tx) {
        opt |= UCT_IB_OPT_IDLE_TX;
    }
    if (config.flush_signal) {
        opt |= UCT_IB_OPT_FLUSH_SIGNAL;
    }

    ucs_config_parser_release_opts(&config, uct_ib_opt_config_table);
    return opt;
}
