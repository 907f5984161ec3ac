/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_COMPAT_ASYNC_H
#define UCT_SEP_COMPAT_ASYNC_H

#include <ucs/async/async_fwd.h>

#include <stddef.h>

/**
 * @file sep_compat_async.h
 *
 * What UCX's async.h does inline, for a UCX with assertions as well as for one
 * without: there the mutex of a context has an owner and a count, so that what
 * is behind it is elsewhere. Nothing else that the transport shares with UCX
 * depends on assertions.
 */


/** Whether the loaded UCX has assertions. To be called before anything else
 *  here; until then it is as the headers say. */
void uct_sep_compat_async_init(int has_assertions);


/** @return Where the mode of a context is. */
size_t uct_sep_compat_async_mode_offset(void);


/** @return The mode of a context. */
ucs_async_mode_t uct_sep_compat_async_mode(const ucs_async_context_t *async);


/** UCS_ASYNC_BLOCK. */
void uct_sep_compat_async_block(ucs_async_context_t *async);


/** UCS_ASYNC_UNBLOCK. */
void uct_sep_compat_async_unblock(ucs_async_context_t *async);

#endif
