/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Workers report completions, and whoever ends a window adapts the budget: one
 * at a time, with nothing but is_adapting to keep the others away. Mutant 3:
 * who takes it does not acquire.
 */
#include "litmus.h"

#undef __ATOMIC_ACQUIRE
#define __ATOMIC_ACQUIRE \
    ((litmus_mutant == 3) ? __ATOMIC_RELAXED : LITMUS_ACQUIRE)

/* A window begins at a time that only its owner knows */
#include <ucs/time/time.h>
typedef litmus_data<ucs_time_t> litmus_time_t;
#define ucs_time_t litmus_time_t
static unsigned long litmus_get_time()
{
    return 1;
}
#define ucs_get_time litmus_get_time
#include "throttle/sep_throttle.c"
#undef ucs_time_t

/* The search itself is pure; that two do it at a time would be a race */
static litmus_data<unsigned> litmus_num_searches;

void uct_sep_throttle_adapt_init(uct_sep_throttle_adapt_t *adapt,
                                 uint32_t budget)
{
}

void uct_sep_throttle_adapt_next(uct_sep_throttle_adapt_t *adapt, double rate,
                                 uint32_t min, uint32_t max)
{
    litmus_num_searches = litmus_num_searches + 1;
}

struct litmus_throttle : rl::test_suite<litmus_throttle, 3> {
    litmus_memory          memory;
    uct_sep_throttle_dev_t dev;

    void before()
    {
        memset((void*)&dev, 0, sizeof(dev));
        dev.setting      = UCT_SEP_THROTTLE_AUTO;
        dev.adapt.budget = 100;
        __atomic_store_n(&dev.budget, 100, __ATOMIC_RELAXED);
        __atomic_store_n(&dev.num_users, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&dev.completed, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&dev.is_adapting, 0, __ATOMIC_RELAXED);
        dev.start           = 0;
        litmus_num_searches = 0;
    }

    void thread(unsigned index)
    {
        uct_sep_throttle_join(&dev);
        for (int i = 0; i < 2; ++i) {
            uct_sep_throttle_report(&dev, UCT_SEP_THROTTLE_WINDOW, 16);
            RL_ASSERT(uct_sep_throttle_share(&dev) >=
                      UCT_SEP_THROTTLE_MIN_SHARE);
        }
        uct_sep_throttle_leave(&dev);
    }

    void after()
    {
        RL_ASSERT(__atomic_load_n(&dev.num_users, __ATOMIC_RELAXED) == 0);
        RL_ASSERT(__atomic_load_n(&dev.is_adapting, __ATOMIC_RELAXED) == 0);
    }
};

int main(int argc, char **argv)
{
    return litmus_run<litmus_throttle>(argc, argv, "throttle", 20000);
}
