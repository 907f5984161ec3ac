/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

/* Data path which posts through libibverbs in a worker's own context */

#define UCT_SEP_OPS_NAME  uct_sep_ops_verbs_own
#define UCT_SEP_OPS_WR    <uct/ib/sep/verbs/sep_verbs_wr.inl>
#define UCT_SEP_OPS_OWN   1

#include <uct/ib/sep/ops/sep_ops.inl>
