/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RARELY_H
#define UCT_SEP_RARELY_H

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#include <inttypes.h>

/**
 * @file sep_rarely.h
 *
 * Messages for which others are to blame, who can send at any rate.
 */


/**
 * Print a message the 1st, 2nd, 4th, 8th... time.
 *
 * @param _counter  How many there have been; uint64_t, counts this one.
 * @param _level    Level, as in the name of UCX's macro.
 * @param _what     How a reader of the log knows the counter.
 */
#define uct_sep_log_rarely(_counter, _level, _what, _fmt, ...) \
    do { \
        ++(_counter); \
        if (ucs_is_pow2(_counter)) { \
            ucs_##_level(_fmt " (" _what " %" PRIu64 ")", ##__VA_ARGS__, \
                         (uint64_t)(_counter)); \
        } \
    } while (0)

#endif
