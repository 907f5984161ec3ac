/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ucp_opt.h"

extern "C" {
#include <ucp/opt/ucp_opt.h>
#include <ucs/async/async.h>
}

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>


class test_ucp_opt_progress : public test_ucp_opt {
public:
    static void get_test_variants(std::vector<ucp_test_variant> &variants)
    {
        test_ucp_opt::get_test_variants(variants);
        add_variant_with_value(variants, UCP_FEATURE_TAG, 1, "mt",
                               MULTI_THREAD_WORKER);
    }

    test_ucp_opt_progress() : test_ucp_opt("PROGRESS")
    {
    }

protected:
    static unsigned count_call(void *arg)
    {
        ++*reinterpret_cast<unsigned*>(arg);
        return 1000;
    }

    /* It may be called twice for one byte: as a missed event, and by the thread
     * that has seen the byte meanwhile */
    static void read_event(int fd, ucs_event_set_types_t events, void *arg)
    {
        char byte;

        if (read(fd, &byte, 1) == 1) {
            ++*reinterpret_cast<volatile int*>(arg);
        }
    }
};

UCS_TEST_P(test_ucp_opt_progress, only_without_locks)
{
    EXPECT_EQ(is_opt() && (get_variant_thread_type() == SINGLE_THREAD),
              !!(sender().worker()->flags & UCP_WORKER_FLAG_OPT_PROGRESS));
}

/* However many there are, each is called, and what they return is added */
UCS_TEST_P(test_ucp_opt_progress, all_callbacks)
{
    ucs_callbackq_t *cbq = &sender().worker()->uct->progress_q;
    unsigned calls[5]    = {};
    std::vector<int> ids;

    flush_workers();
    for (unsigned count = 1; count <= 5; ++count) {
        ids.push_back(ucs_callbackq_add(cbq, count_call, &calls[count - 1]));
        unsigned result = 0;
        /* A worker whose lock is taken does nothing */
        wait_for_cond([&]() { return (result = sender().progress()) >= 1000; },
                      sched_yield);
        EXPECT_EQ(count, result / 1000);
        for (unsigned i = 0; i < count; ++i) {
            EXPECT_EQ(count - i, calls[i]);
        }
    }

    for (int id : ids) {
        ucs_callbackq_remove(cbq, id);
    }
}

/* What happens while the worker blocks its async context is seen afterwards */
UCS_TEST_P(test_ucp_opt_progress, missed_events)
{
    ucs_async_context_t *async = &sender().worker()->async;
    volatile int count         = 0;
    int fds[2];

    ASSERT_EQ(0, pipe2(fds, O_NONBLOCK));
    ASSERT_UCS_OK(ucs_async_set_event_handler(
            async->mode, fds[0], UCS_EVENT_SET_EVREAD, read_event,
            const_cast<int*>(&count), async));

    UCS_ASYNC_BLOCK(async);
    EXPECT_EQ(1, write(fds[1], "", 1));
    ucs_time_t deadline = ucs::get_deadline();
    while (ucs_mpmc_queue_is_empty(&async->missed) &&
           (ucs_get_time() < deadline)) {
        usleep(1000);
    }
    EXPECT_EQ(0, count);
    UCS_ASYNC_UNBLOCK(async);

    wait_for_value(&count, 1);
    EXPECT_EQ(1, count);

    ucs_async_remove_handler(fds[0], 1);
    close(fds[0]);
    close(fds[1]);
}

UCP_INSTANTIATE_TEST_CASE(test_ucp_opt_progress)
