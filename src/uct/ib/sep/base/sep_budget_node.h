/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_BUDGET_NODE_H
#define UCT_SEP_BUDGET_NODE_H

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * @file sep_budget_node.h
 *
 * An adapter's budget of queue pairs (UCX_SEP_MAX_QPS_NODE), which the workers
 * of all processes of a user share. The account is a file in shared memory, in
 * which each worker has a slot: what it holds, and the number it was given.
 *
 * - A worker may hold an equal share of the number, and beyond that what the
 *   others leave. So none waits for what another one holds. Who holds more than
 *   its share gives that back when it next wants to connect; until then there
 *   may be more than the number.
 * - If the numbers differ, the least one holds for all.
 * - A lock of the slot's byte in the file says that the worker lives. It is one
 *   of the open file (F_OFD_SETLK), so the kernel releases it when the last
 *   process is gone that has the file open. That may be a child, who then has
 *   the device's file open as well, for which the queue pairs live on. Process
 *   numbers would mean nothing in another container.
 * - Who connects takes no lock: a worker writes its own slot, and reads the
 *   others'. A lock of the first byte is for those who come and go.
 */

/** Workers that can share an adapter. */
#define UCT_SEP_BUDGET_NODE_MAX  4096

typedef struct uct_sep_budget_node uct_sep_budget_node_t;


/** Where accounts are. Tests have them elsewhere. */
extern const char *uct_sep_budget_node_dir;


/**
 * One more worker has a slot.
 *
 * @param [in]  name    Of the device, for messages.
 * @param [in]  guid    Of the adapter: names the account, with the user.
 * @param [in]  max     Queue pairs that all workers may hold, or
 *                      UCS_ULUNITS_AUTO, for which no worker is refused.
 * @param [in]  min     Queue pairs that the worker needs.
 * @param [out] node_p  For @ref uct_sep_budget_node_leave.
 *
 * @return UCS_OK, or an error after a message: UCS_ERR_INVALID_PARAM if its
 *         share would be less than it needs, UCS_ERR_EXCEEDS_LIMIT if there are
 *         too many workers, UCS_ERR_IO_ERROR if there can be no account.
 */
ucs_status_t
uct_sep_budget_node_join(const char *name, uint64_t guid, unsigned long max,
                         unsigned long min, uct_sep_budget_node_t **node_p);


/** A worker has no queue pairs any more. The last one removes the file. */
void uct_sep_budget_node_leave(uct_sep_budget_node_t *node);


/**
 * @return How many queue pairs the worker may hold now: its share and what
 *         others leave. It needs no more than one look at the account, and is
 *         true for as long as that.
 */
long uct_sep_budget_node_allowance(const uct_sep_budget_node_t *node);


/**
 * Say that the worker holds so many queue pairs. If they are more than before,
 * and no longer allowed, what workers held that have died is returned.
 *
 * @param [in] is_forced  They will be held in any case.
 *
 * @return Whether it may; otherwise nothing has changed.
 */
int uct_sep_budget_node_hold(uct_sep_budget_node_t *node, unsigned count,
                             int is_forced);


/** @return What the worker has said. */
unsigned uct_sep_budget_node_held(const uct_sep_budget_node_t *node);

END_C_DECLS

#endif
