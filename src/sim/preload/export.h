/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_EXPORT_H_
#define MLX5SIM_EXPORT_H_

/** A function that takes the place of the C library's. Headers forbid passing
 *  NULL to most of these; libc or the kernel decides what to do about it. */
#define MLX5SIM_EXPORT \
    __attribute__((visibility("default"), no_sanitize("nonnull-attribute")))

#endif
