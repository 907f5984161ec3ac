/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TOOLS_UARS_H
#define SEP_TOOLS_UARS_H

#include <tools/plan/plan.h>

#include <infiniband/verbs.h>

/*
 * UAR pages of this process, and how it gets them.
 */

/** @return UAR pages that are mapped: the shared mappings that are writable
 *          but not readable, as only libmlx5 makes them. */
unsigned long sep_uars_mapped(void);


/** @return The same of another process; 0 if it can't be looked at. */
unsigned long sep_uars_mapped_by(unsigned long pid);


/** @return Regime of a context's UAR pages. */
sep_plan_regime_t sep_uars_find_regime(struct ibv_context *context);

#endif
