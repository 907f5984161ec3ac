/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

/* Data path which posts lists, in a device context of the worker's own */

#define UCT_SEP_OPS_POSTLIST  1
#define UCT_SEP_OPS_OWN       1
#define UCT_SEP_OPS_NAME      uct_sep_ops_list_own

#include <uct/ib/sep/ops/sep_ops.inl>
