/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef BENCH_SIM_UAR_H_
#define BENCH_SIM_UAR_H_

/*
 * Lets a benchmark execute its doorbells natively on the software device.
 *
 * The device notices a doorbell because its UAR pages lie beyond the end of an
 * empty file, so that a store to them raises a signal whose handler interprets
 * the store and some of what follows. Those instructions are then not executed
 * by the program, and callgrind counts wrong: it charges the whole basic block
 * of the store, and again what the program continues with.
 *
 * Between sim_uar_suspend() and sim_uar_resume() the file is long enough: a
 * doorbell is a store to memory. sim_uar_resume() reads what was stored, ends
 * the file again and stores it once more, upon which the device acts.
 *
 * Without the software device the functions do nothing.
 */

/** Find the UAR pages of this process. To be repeated when connections were
 *  made since. @return Number of pages, or -1 after an error message. */
int sim_uar_find(void);

/** From here on, doorbells are only noted down. */
void sim_uar_suspend(void);

/** Ring the doorbells noted down, and trap those that follow. */
void sim_uar_resume(void);

#endif
