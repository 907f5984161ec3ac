/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef COUNT_HANDLERS_H
#define COUNT_HANDLERS_H

#include <ucs/async/async.h>

/**
 * @param async  An async context of UCX.
 *
 * @return How many timers and event handlers the transport has on it: it asks
 *         for them through the linker's --wrap. UCX has not counted them since
 *         1.14.
 */
unsigned count_handlers(const ucs_async_context_t *async);

#endif
