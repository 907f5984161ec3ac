/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_API_DV_H
#define UCT_SEP_API_DV_H

#include <uct/ib/sep/iface/sep_api.h>

BEGIN_C_DECLS

/**
 * @file sep_api_dv.h
 *
 * UCX_SEP_API=dv: objects are made with direct verbs, so that their queues can
 * be worked on.
 */

extern const uct_sep_api_t uct_sep_api_dv;

END_C_DECLS

#endif
