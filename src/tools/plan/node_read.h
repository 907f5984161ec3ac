/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TOOLS_NODE_READ_H
#define SEP_TOOLS_NODE_READ_H

#include <tools/plan/node.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest message, with the 0 at its end. */
#define SEP_NODE_MESSAGE_MAX  512

/** Greatest number in a description. */
#define SEP_NODE_MAX_NUMBER   (1ul << 24)

/**
 * Read what runs on a node (docs/node.md has the format).
 *
 * @param [inout] node     An initialized node. Processes are added to it, and
 *                         what is said of the adapter replaces what was there.
 * @param [in]    in       The description.
 * @param [in]    name     What to call it in a message.
 * @param [out]   message  What is wrong, with the line; SEP_NODE_MESSAGE_MAX
 *                         bytes.
 *
 * @return 0, or -1.
 */
int sep_node_read(sep_node_t *node, FILE *in, const char *name, char *message);

#ifdef __cplusplus
}
#endif

#endif
