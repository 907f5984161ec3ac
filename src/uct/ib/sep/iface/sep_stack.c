/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_stack.h>

#include <string.h>


/* UCT is told if it is to call another one; it may be doing so right now */
static void
uct_sep_stack_set_top(uct_sep_iface_t *iface, uct_iface_progress_func_t top)
{
    unsigned flags = iface->super.progress_flags;

    if (iface->super.super.ops.iface_progress == top) {
        return;
    }

    if (flags != 0) {
        uct_base_iface_progress_disable(&iface->super.super,
                                        flags | UCT_PROGRESS_THREAD_SAFE);
    }
    iface->super.super.ops.iface_progress = top;
    if (flags != 0) {
        uct_base_iface_progress_enable(&iface->super.super,
                                       flags | UCT_PROGRESS_THREAD_SAFE);
    }
}

void uct_sep_stack_init(uct_sep_iface_t *iface)
{
    memset(&iface->stack, 0, sizeof(iface->stack));
}

void uct_sep_stack_set(uct_sep_iface_t *iface, uct_sep_stack_level_t level,
                       uct_iface_progress_func_t func)
{
    uct_iface_progress_func_t below = NULL;
    int i;

    iface->stack.func[level] = func;
    for (i = UCT_SEP_STACK_LAST - 1; i >= 0; --i) {
        iface->stack.next[i] = below;
        if (iface->stack.func[i] != NULL) {
            below = iface->stack.func[i];
        }
    }

    uct_sep_stack_set_top(iface, below);
}
