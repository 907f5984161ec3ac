/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <common/service.h>

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEP_SERVICE_SLACK_NS 1000
#define SEP_SERVICE_SLICE_NS 100000

static volatile sig_atomic_t sep_service_end;


static void sep_service_on_signal(int signal)
{
    sep_service_end = 1;
}

void sep_service_signals(sigset_t *mask_p)
{
    struct sigaction action = {.sa_handler = sep_service_on_signal};
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigprocmask(SIG_BLOCK, &mask, mask_p);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

int sep_service_ends(void)
{
    return sep_service_end;
}

void sep_service_hurry(void)
{
    struct sched_param param = {.sched_priority = 1};
    struct {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t  nice;
        uint32_t priority;
        uint64_t runtime;
        uint64_t deadline;
        uint64_t period;
    } attr = {.size = sizeof(attr), .runtime = SEP_SERVICE_SLICE_NS};

    (void)prctl(PR_SET_TIMERSLACK, SEP_SERVICE_SLACK_NS, 0, 0, 0);
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) != 0) {
        /* Where that is not permitted, a short slice helps with other kernels
         * (sched_setattr(2), from Linux 6.12 on) */
        attr.nice = getpriority(PRIO_PROCESS, 0);
        (void)syscall(SYS_sched_setattr, 0, &attr, 0);
    }
}
