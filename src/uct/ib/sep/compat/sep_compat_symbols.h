/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_COMPAT_SYMBOLS_H
#define UCT_SEP_COMPAT_SYMBOLS_H

/**
 * @file sep_compat_symbols.h
 *
 * By which functions of libuct and libucs releases of UCX can be told apart:
 * each series has a set of its own.
 */

/** A function that came with a change. */
typedef struct uct_sep_compat_symbol {
    const char *name;
    int        is_there; /**< In the UCX that this was compiled for */
} uct_sep_compat_symbol_t;


/** All of them; the last has no name. */
extern const uct_sep_compat_symbol_t uct_sep_compat_symbols[];


/** Number of them that there is room for in a mask. */
#define UCT_SEP_COMPAT_MAX_SYMBOLS 32

#endif
