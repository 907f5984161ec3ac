/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/throttle/sep_throttle.h>
#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/throttle/sep_throttle_adapt.h>

#include <ucs/datastruct/list.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/time/time.h>

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Largest budget that can be set */
#define UCT_SEP_THROTTLE_MAX_BUDGET  (1u << 24)

/* A budget is judged by so many completions, or by this many per worker */
#define UCT_SEP_THROTTLE_WINDOW      4096u
#define UCT_SEP_THROTTLE_WINDOW_USER 256u


struct uct_sep_throttle_dev {
    ucs_list_link_t          list;     /**< uct_sep_throttle_devs */
    unsigned                 refcount; /**< Both under its lock */
    uint32_t                 setting;
    char                     name[IBV_SYSFS_NAME_MAX];

    /* By all workers, atomically */
    uint32_t                 num_users;   /**< Workers that send */
    uint32_t                 budget;
    uint32_t                 completed;   /**< In this window */
    uint32_t                 is_adapting; /**< Somebody uses what follows */

    ucs_time_t               start;       /**< Of the window, 0 if unknown */
    uct_sep_throttle_adapt_t adapt;
};


/* Workers open and close in any thread */
UCT_SEP_MUTEX_DEFINE(uct_sep_throttle_mutex)

static uct_sep_throttle_mutex_t uct_sep_throttle_lock =
        UCT_SEP_MUTEX_INITIALIZER;
static UCS_LIST_HEAD(uct_sep_throttle_devs);


ucs_status_t uct_sep_throttle_parse(const char *value, uint32_t *budget_p)
{
    unsigned long number;
    char *end;

    if (!strcasecmp(value, "n") || !strcasecmp(value, "no")) {
        *budget_p = UCT_SEP_THROTTLE_OFF;
        return UCS_OK;
    }

    if (!strcasecmp(value, "y") || !strcasecmp(value, "yes")) {
        *budget_p = UCT_SEP_THROTTLE_AUTO;
        return UCS_OK;
    }

    number = strtoul(value, &end, 10);
    if ((value[0] < '0') || (value[0] > '9') || (*end != '\0') ||
        (number < UCT_SEP_THROTTLE_MIN_SHARE) ||
        (number > UCT_SEP_THROTTLE_MAX_BUDGET)) {
        ucs_error("UCX_SEP_TX_THROTTLE=%s: set it to n, y, or a number of "
                  "basic blocks from %u to %u", value,
                  UCT_SEP_THROTTLE_MIN_SHARE, UCT_SEP_THROTTLE_MAX_BUDGET);
        return UCS_ERR_INVALID_PARAM;
    }

    *budget_p = number;
    return UCS_OK;
}

ucs_status_t uct_sep_throttle_get(const char *name, uint32_t budget,
                                  uct_sep_throttle_dev_t **dev_p)
{
    ucs_status_t status = UCS_OK;
    uct_sep_throttle_dev_t *dev;

    uct_sep_throttle_mutex_lock(&uct_sep_throttle_lock);
    ucs_list_for_each(dev, &uct_sep_throttle_devs, list) {
        if ((dev->setting == budget) && !strcmp(dev->name, name)) {
            ++dev->refcount;
            goto out;
        }
    }

    dev = ucs_calloc(1, sizeof(*dev), "sep_throttle");
    if (dev == NULL) {
        ucs_error("%s: no memory for the budget of UCX_SEP_TX_THROTTLE", name);
        status = UCS_ERR_NO_MEMORY;
        goto out_unlock;
    }

    dev->refcount = 1;
    dev->setting  = budget;
    /* The largest one, until the first window has ended */
    dev->budget   = budget;
    ucs_strncpy_zero(dev->name, name, sizeof(dev->name));
    uct_sep_throttle_adapt_init(&dev->adapt, dev->budget);
    ucs_list_add_tail(&uct_sep_throttle_devs, &dev->list);

out:
    *dev_p = dev;
out_unlock:
    uct_sep_throttle_mutex_unlock(&uct_sep_throttle_lock);
    return status;
}

void uct_sep_throttle_put(uct_sep_throttle_dev_t *dev)
{
    uct_sep_throttle_mutex_lock(&uct_sep_throttle_lock);
    if (--dev->refcount == 0) {
        ucs_list_del(&dev->list);
        ucs_free(dev);
    }
    uct_sep_throttle_mutex_unlock(&uct_sep_throttle_lock);
}

void uct_sep_throttle_join(uct_sep_throttle_dev_t *dev)
{
    __atomic_add_fetch(&dev->num_users, 1, __ATOMIC_RELAXED);
}

void uct_sep_throttle_leave(uct_sep_throttle_dev_t *dev)
{
    __atomic_sub_fetch(&dev->num_users, 1, __ATOMIC_RELAXED);
}

static uint32_t uct_sep_throttle_num_users(const uct_sep_throttle_dev_t *dev)
{
    return ucs_max(__atomic_load_n(&dev->num_users, __ATOMIC_RELAXED), 1u);
}

/* Whether so many completions are enough to judge a budget */
static int uct_sep_throttle_is_window(uint32_t completed, uint32_t users)
{
    return (completed >= UCT_SEP_THROTTLE_WINDOW) &&
           (completed >= (users * UCT_SEP_THROTTLE_WINDOW_USER));
}

/* The window has ended; one worker at a time */
static void uct_sep_throttle_end_window(uct_sep_throttle_dev_t *dev,
                                        uint32_t users, uint32_t max)
{
    ucs_time_t now     = ucs_get_time();
    uint32_t completed = __atomic_load_n(&dev->completed, __ATOMIC_RELAXED);

    if (!uct_sep_throttle_is_window(completed, users)) {
        return; /* Somebody else has ended it */
    }

    if ((dev->start != 0) && (now > dev->start)) {
        uct_sep_throttle_adapt_next(
                &dev->adapt,
                completed / ucs_time_to_sec(now - dev->start),
                users * UCT_SEP_THROTTLE_MIN_SHARE,
                ucs_min((uint64_t)users * max, UCT_SEP_THROTTLE_MAX_BUDGET));
        __atomic_store_n(&dev->budget, dev->adapt.budget, __ATOMIC_RELAXED);
    }

    dev->start = now;
    __atomic_store_n(&dev->completed, 0, __ATOMIC_RELAXED);
}

void uct_sep_throttle_report(uct_sep_throttle_dev_t *dev, uint32_t num_bb,
                             uint32_t max)
{
    uint32_t users, completed;

    if (dev->setting != UCT_SEP_THROTTLE_AUTO) {
        return;
    }

    users     = uct_sep_throttle_num_users(dev);
    completed = __atomic_add_fetch(&dev->completed, num_bb, __ATOMIC_RELAXED);
    if (!uct_sep_throttle_is_window(completed, users) ||
        __atomic_exchange_n(&dev->is_adapting, 1, __ATOMIC_ACQUIRE)) {
        return;
    }

    uct_sep_throttle_end_window(dev, users, max);
    __atomic_store_n(&dev->is_adapting, 0, __ATOMIC_RELEASE);
}

uint32_t uct_sep_throttle_share(const uct_sep_throttle_dev_t *dev)
{
    uint32_t budget = __atomic_load_n(&dev->budget, __ATOMIC_RELAXED);

    return ucs_max(budget / uct_sep_throttle_num_users(dev),
                   UCT_SEP_THROTTLE_MIN_SHARE);
}
