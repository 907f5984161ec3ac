/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_TL_H
#define UCT_SEP_TL_H

#include <uct/ib/sep/compat/sep_compat_md.h>

BEGIN_C_DECLS

/**
 * @file sep_tl.h
 *
 * What UCT sees of the module, for programs that are linked with it.
 */

/** Component "sep". Its list of transports is empty if the module has refused
 *  the UCX that loads it (sep_abi.h). */
extern uct_component_t uct_sep_component;

END_C_DECLS

#endif
