/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file patience.h
 *
 * How tests wait for what another process, thread or the device does.
 *
 * They give up only on what hangs: nothing that works takes as long, not even
 * on a machine that is ten times slower or has ten times as much to do. They
 * sleep now and then as well. Who polls always keeps the processor from whom he
 * waits for, and who yields it with sched_yield() gives it, for some
 * milliseconds each time, to whatever else the machine has to do.
 */

#ifndef TEST_COMMON_PATIENCE_H_
#define TEST_COMMON_PATIENCE_H_

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

namespace patience {

/** Seconds to wait: SEP_TEST_PATIENCE, or 300. */
inline unsigned seconds()
{
    const char *text = getenv("SEP_TEST_PATIENCE");
    long value       = (text != nullptr) ? strtol(text, nullptr, 10) : 0;

    return ((value > 0) && (value < 100000)) ? value : 300;
}

/** To be called by who polls in vain, each time: now and then it sleeps. */
inline void pause()
{
    static thread_local unsigned count;
    timespec ts = {0, 20000};

    if ((++count % 64) == 0) {
        nanosleep(&ts, nullptr);
    }
}

/**
 * Poll until a condition holds.
 *
 * @return Whether it does; false if it was waited for in vain.
 */
template<typename T> bool until(T condition)
{
    timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t end = now.tv_sec + seconds(); !condition();) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > end) {
            return false;
        }
        pause();
    }
    return true;
}

} // namespace patience

#endif
