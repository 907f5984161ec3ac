/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_OPS_DV_H
#define UCT_SEP_OPS_DV_H

#include <uct/ib/sep/iface/sep_ops.h>

BEGIN_C_DECLS

/**
 * @file sep_ops_dv.h
 *
 * Tables of operations with direct verbs, one for each row of sep_ops.h.
 */

UCT_SEP_OPS_FOREACH_DV(UCT_SEP_OPS_DECLARE)

END_C_DECLS

#endif
