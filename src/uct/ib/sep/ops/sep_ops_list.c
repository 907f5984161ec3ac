/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

/* Data path which posts lists. How a list is rung is not its concern. */

#define UCT_SEP_OPS_POSTLIST  1
#define UCT_SEP_OPS_NAME      uct_sep_ops_list

#include <uct/ib/sep/ops/sep_ops.inl>
