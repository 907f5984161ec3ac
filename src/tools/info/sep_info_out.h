/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_OUT_H
#define SEP_INFO_OUT_H

#include <stdio.h>

/*
 * Where the result goes: to standard output, while UCX's messages, which would
 * go there too, go to standard error.
 */

extern FILE *sep_info_out;

/** Begin. @return 0, or -1 after a message. */
int sep_info_out_open(void);

/** End. @return 0, or -1 after a message: disk full, for instance. */
int sep_info_out_close(void);

/** Print there. */
void sep_info_print(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
