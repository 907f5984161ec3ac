/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_LIVE_H
#define SEP_INFO_LIVE_H

#include <tools/info/sep_info_options.h>
#include <tools/plan/node.h>

/*
 * What the processes on this node hold now.
 */

/** A command that prints what they hold as a description of a node; without it
 *  the kernel is asked. Set by whoever knows better, as mlx5sim-run does. */
#define SEP_INFO_LIVE_ENV  "SEP_NODE_LIVE"

/**
 * Add them to a node. Of each process, UAR pages are the mappings of memory
 * that can be written but not read, as only libmlx5 makes them; queue pairs and
 * CQs are what "rdma resource" shows.
 *
 * @return Exit status, after a message if it is not SEP_INFO_OK.
 */
int sep_info_live(const sep_info_options_t *options, sep_node_t *node);

#endif
