/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_ops.h"

#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>

const uct_sep_ops_t *uct_sep_ops_find(unsigned mode)
{
    static const struct {
        unsigned            mode;
        const uct_sep_ops_t *ops;
    } rows[] = {
#define UCT_SEP_OPS_ROW(_name, _mode) {_mode, &uct_sep_ops_##_name},
        UCT_SEP_OPS_FOREACH(UCT_SEP_OPS_ROW)
#undef UCT_SEP_OPS_ROW
    };
    unsigned i;

    for (i = 0; i < ucs_static_array_size(rows); ++i) {
        if (rows[i].mode == mode) {
            return rows[i].ops;
        }
    }
    ucs_fatal("there is no data path of mode 0x%x", mode);
}
