/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_UCX_ABI_H_
#define SEP_UCX_ABI_H_

#include <uct/api/version.h>

/*
 * What the transport was built for. Out of the tree this header is generated
 * from the UCX that will load the transport; here it is the one around it.
 */

/** Version of this UCX */
#define SEP_UCX_VERSION_STRING UCT_VERNO_STRING

/** Settings that decide the layout of structures, for error messages */
#define SEP_UCX_BUILD_CONFIG   "in its tree"

#endif
