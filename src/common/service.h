/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_SERVICE_H
#define SEP_SERVICE_H

#include <signal.h>

/*
 * Programs that serve others until they get SIGTERM or SIGINT.
 */

/** Take signals while the program waits only. @param mask_p  For ppoll(). */
void sep_service_signals(sigset_t *mask_p);

/** Whether it is to end. */
int sep_service_ends(void);

/** Be woken soon, whoever has the processors. Programs that poll have all of
 *  them, and kernels without preemption let who wakes wait for the next tick
 *  (4 ms) then, except with a real-time policy. */
void sep_service_hurry(void);

#endif
