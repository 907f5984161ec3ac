/* SPDX-License-Identifier: BSD-3-Clause */
typedef int placeholder_t;
