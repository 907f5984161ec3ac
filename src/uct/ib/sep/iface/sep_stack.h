/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_STACK_H
#define UCT_SEP_STACK_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_stack.h
 *
 * Progress of an interface: a stack of levels (uct_sep_stack_level_t), each of
 * which calls the next one below it that is present. UCT calls the one on top.
 * A level that is absent costs nothing: nobody calls it, and nobody asks. A
 * level that is present costs a jump, and what it does.
 *
 * Levels come when an interface is opened, but those of the eager channel come
 * and go with rings. Whoever brings one need not know which others there are.
 */

/** There is no level yet. */
void uct_sep_stack_init(uct_sep_iface_t *iface);


/**
 * Bring a level, or take it away.
 *
 * @param func  What it does, or NULL.
 */
void uct_sep_stack_set(uct_sep_iface_t *iface, uct_sep_stack_level_t level,
                       uct_iface_progress_func_t func);


/** Call what is below a level. */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_stack_next(uct_sep_iface_t *iface, uct_sep_stack_level_t level)
{
    return iface->stack.next[level](&iface->super.super);
}

END_C_DECLS

#endif
