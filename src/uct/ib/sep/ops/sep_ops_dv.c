/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

/* Data paths with direct verbs */

#include <uct/ib/sep/ops/sep_ops_dv.h>
#include <uct/ib/sep/ops/sep_wr.inl>
#include <uct/ib/sep/ops/sep_ops.inl>
#include <uct/ib/sep/ops/sep_ops_define.inl>

UCT_SEP_OPS_FOREACH_DV(UCT_SEP_OPS_DEFINE)
