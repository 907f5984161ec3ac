/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PLAN_CONFIG_H
#define SEP_PLAN_CONFIG_H

#include <tools/plan/plan.h>

#include <uct/ib/sep/iface/sep_config.h>

BEGIN_C_DECLS

/**
 * @file plan_config.h
 *
 * What the planner takes from the transport: its variables, and the sizes of
 * its objects.
 */

/** Initialize a plan's configuration with what the transport is configured to.
 *
 *  @param throttle  Parsed value of UCX_SEP_TX_THROTTLE. */
void sep_plan_config_take(const uct_sep_iface_config_t *config,
                          uint32_t throttle, sep_plan_config_t *plan_p);


/** Initialize a plan's configuration with what UCX_SEP_* say, and with defaults
 *  where they say nothing.
 *
 *  @return Error, after a message, if a variable has a wrong value. */
ucs_status_t sep_plan_config_read(sep_plan_config_t *plan_p);

END_C_DECLS

#endif
