/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

/* Data path which posts by BlueFlame, to uUARs that may be shared */

#define UCT_SEP_OPS_POST  UCT_SEP_TX_POST_BF
#define UCT_SEP_OPS_LOCK  1
#define UCT_SEP_OPS_NAME  uct_sep_ops_bf_lock

#include <uct/ib/sep/ops/sep_ops.inl>
