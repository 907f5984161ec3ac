/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include <ucs/type/status.h>

#include <stdio.h>
#include <stdlib.h>


/** Make a call that returns a ucs_status_t. If it fails, say so, and leave the
 *  function or the program. */
#define BENCH_CHECK_OR(_call, _leave) \
    do { \
        ucs_status_t _status = (_call); \
        if (_status != UCS_OK) { \
            fprintf(stderr, "%s failed: %s\n", #_call, \
                    ucs_status_string(_status)); \
            _leave; \
        } \
    } while (0)


/** ... return the status. */
#define BENCH_CHECK_RETURN(_call) BENCH_CHECK_OR(_call, return _status)


/** ... end the program. */
#define BENCH_CHECK_EXIT(_call)   BENCH_CHECK_OR(_call, exit(1))

#endif
