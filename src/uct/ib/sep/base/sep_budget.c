/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_budget.h>
#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/base/sep_qps_auto.h>

#include <ucs/datastruct/list.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>

#include <infiniband/verbs.h>
#include <string.h>


struct uct_sep_budget {
    ucs_list_link_t list;      /**< uct_sep_budgets; under its lock */
    unsigned        num_users; /**< Written under the lock, read by all */
    char            name[IBV_SYSFS_NAME_MAX];
};


/* Workers open and close in any thread */
UCT_SEP_MUTEX_DEFINE(uct_sep_budget_mutex)

static uct_sep_budget_mutex_t uct_sep_budget_lock = UCT_SEP_MUTEX_INITIALIZER;
static UCS_LIST_HEAD(uct_sep_budgets);


unsigned long uct_sep_budget_number(unsigned long setting)
{
    return (setting == UCS_ULUNITS_AUTO) ? UCT_SEP_QPS_AUTO : setting;
}

/* NULL if there is no memory */
static UCT_SEP_REQUIRES(uct_sep_budget_mutex) uct_sep_budget_t *
uct_sep_budget_find(const char *name)
{
    uct_sep_budget_t *budget;

    ucs_list_for_each(budget, &uct_sep_budgets, list) {
        if (!strcmp(budget->name, name)) {
            return budget;
        }
    }

    budget = ucs_calloc(1, sizeof(*budget), "sep_budget");
    if (budget != NULL) {
        ucs_strncpy_zero(budget->name, name, sizeof(budget->name));
        ucs_list_add_tail(&uct_sep_budgets, &budget->list);
    }
    return budget;
}

static UCT_SEP_REQUIRES(uct_sep_budget_mutex) void
uct_sep_budget_drop(uct_sep_budget_t *budget, unsigned num_users)
{
    __atomic_store_n(&budget->num_users, num_users, __ATOMIC_RELAXED);
    if (num_users == 0) {
        ucs_list_del(&budget->list);
        ucs_free(budget);
    }
}

ucs_status_t uct_sep_budget_join(const char *name, unsigned long max,
                                 unsigned long min, uct_sep_budget_t **budget_p)
{
    ucs_status_t status = UCS_OK;
    uct_sep_budget_t *budget;
    unsigned num_users;

    uct_sep_budget_mutex_lock(&uct_sep_budget_lock);
    budget = uct_sep_budget_find(name);
    if (budget == NULL) {
        ucs_error("%s: no memory for the budget of UCX_SEP_MAX_QPS", name);
        status = UCS_ERR_NO_MEMORY;
        goto out_unlock;
    }

    num_users = budget->num_users + 1;
    if ((max != UCS_ULUNITS_AUTO) && ((max / num_users) < min)) {
        ucs_error("%s: UCX_SEP_MAX_QPS=%lu is too little for %u workers of a "
                  "process: each needs %lu queue pairs at least, one to "
                  "connect and one for those who connect to it, and two of "
                  "either if a worker sends from a device context of its own",
                  name, max, num_users, min);
        status = UCS_ERR_INVALID_PARAM;
        uct_sep_budget_drop(budget, num_users - 1);
        goto out_unlock;
    }

    __atomic_store_n(&budget->num_users, num_users, __ATOMIC_RELAXED);
    *budget_p = budget;

out_unlock:
    uct_sep_budget_mutex_unlock(&uct_sep_budget_lock);
    return status;
}

void uct_sep_budget_leave(uct_sep_budget_t *budget)
{
    uct_sep_budget_mutex_lock(&uct_sep_budget_lock);
    uct_sep_budget_drop(budget, budget->num_users - 1);
    uct_sep_budget_mutex_unlock(&uct_sep_budget_lock);
}

unsigned long uct_sep_budget_share(const uct_sep_budget_t *budget,
                                   unsigned long max, unsigned long min)
{
    unsigned num_users = __atomic_load_n(&budget->num_users, __ATOMIC_RELAXED);

    return ucs_max(uct_sep_budget_number(max) / num_users, min);
}
