/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_try.h>
#include <tools/info/sep_info_device.h>
#include <tools/info/sep_info_out.h>
#include <tools/info/sep_info_workers.h>
#include <tools/plan/uars.h>

#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/eager/sep_eager_stats.h>
#include <uct/ib/sep/hub/sep_hub_iface.h>
#include <uct/ib/sep/module/sep_tl.h>
#include <uct/ib/sep/open/sep_iface_open.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Count what workers have taken, and compare with the plan.
 */

/* What a process has taken */
typedef struct sep_info_taken {
    unsigned long account[UCT_SEP_ACCOUNT_LAST]; /* By the transport */
    unsigned long uars;                          /* UAR pages mapped */
    unsigned long resident;                      /* Bytes in memory */
    int           is_eager;                      /* The eager channel is on */
    unsigned      slots;                         /* UCX_SEP_EAGER_SLOTS */
    uint32_t      slot_size;
    unsigned      poll_set;
    uint64_t      eager[UCT_SEP_EAGER_STAT_LAST]; /* What it has carried */
} sep_info_taken_t;


/* Memory of the process that is resident, not only reserved */
static unsigned long sep_info_resident(void)
{
    unsigned long size, resident = 0;
    FILE *statm;

    statm = fopen("/proc/self/statm", "r");
    if (statm != NULL) {
        if (fscanf(statm, "%lu %lu", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(statm);
    }
    return resident * ucs_get_page_size();
}

static void
sep_info_count(const sep_info_process_t *process, sep_info_taken_t *taken)
{
    const uct_sep_md_t *md = ucs_derived_of(process->md, uct_sep_md_t);
    int item;

    for (item = 0; item < UCT_SEP_ACCOUNT_LAST; ++item) {
        taken->account[item] = uct_sep_account_get(md->dev.context, item);
    }
    taken->uars = sep_uars_mapped() - taken->uars;
    taken->resident = sep_info_resident() - taken->resident;
}

/* What has the queues: with category mpi_threads, the hub's */
static uct_sep_iface_t *sep_info_iface(const sep_info_worker_t *worker)
{
    if (worker->attr.iface_addr_len == sizeof(uct_sep_hub_addr_t)) {
        return ucs_derived_of(worker->iface, uct_sep_hub_iface_t)->hub->core;
    }
    return ucs_derived_of(worker->iface, uct_sep_iface_t);
}

/* Use the eager channel, if it is on, and count. @return 0, or -1 after a
 * message. */
static int sep_info_try_eager(sep_info_process_t *process, unsigned peers,
                              sep_info_taken_t *taken)
{
    uint64_t values[UCT_SEP_EAGER_STAT_LAST];
    uct_sep_iface_t *iface, *last = NULL;
    unsigned i, stat;

    memset(taken->eager, 0, sizeof(taken->eager));
    taken->is_eager = 0;
    for (i = 0; i < process->num_workers; ++i) {
        iface = sep_info_iface(&process->workers[i]);
        if (!uct_sep_eager_is_enabled(iface)) {
            return 0;
        }
        if ((i == 0) && (sep_info_talk(process, peers) != 0)) {
            return -1;
        }
        if (iface == last) {
            continue; /* All share one */
        }

        last             = iface;
        taken->is_eager  = 1;
        taken->slots     = iface->config.eager.slots;
        taken->slot_size = iface->config.eager.slot_size;
        taken->poll_set  = iface->config.eager.poll_set;
        uct_sep_eager_stats_get(iface, values);
        for (stat = 0; stat < UCT_SEP_EAGER_STAT_LAST; ++stat) {
            taken->eager[stat] += values[stat];
        }
    }
    return 0;
}

static void
sep_info_report_eager(const sep_info_taken_t *taken, json_object *json)
{
    const struct {
        const char    *name;
        unsigned long value;
    } settings[] = {
        {"slots", taken->slots},
        {"slot_size", taken->slot_size},
        {"poll_set", taken->poll_set}
    };
    json_object *item = NULL;
    unsigned i;

    if (!taken->is_eager) {
        return;
    }

    if (json != NULL) {
        item = sep_json_add_object(json, "eager");
    } else {
        sep_info_print("#\n# Eager channel of all workers, after %u messages "
                       "to each peer\n#\n", SEP_INFO_MESSAGES);
    }

    for (i = 0; i < (sizeof(settings) / sizeof(settings[0])); ++i) {
        if (item != NULL) {
            sep_json_add_number(item, settings[i].name, settings[i].value);
        } else {
            sep_info_print("%-28s %12lu\n", settings[i].name,
                           settings[i].value);
        }
    }
    for (i = 0; i < UCT_SEP_EAGER_STAT_LAST; ++i) {
        if (item != NULL) {
            sep_json_add_number(item, uct_sep_eager_stat_names[i],
                                taken->eager[i]);
        } else {
            sep_info_print("%-28s %12lu\n", uct_sep_eager_stat_names[i],
                           (unsigned long)taken->eager[i]);
        }
    }
}

/* One line of the comparison. @return Whether it is as planned. */
static int sep_info_compare(const char *name, unsigned long planned,
                            unsigned long taken, int is_estimate,
                            json_object *json)
{
    int same = (planned == taken) || is_estimate;
    json_object *item;

    if (json != NULL) {
        item = sep_json_add_object(json, name);
        sep_json_add_number(item, "planned", planned);
        sep_json_add_number(item, "taken", taken);
        sep_json_add_bool(item, "estimate", is_estimate);
    } else {
        sep_info_print("%-28s %12lu %12lu%s\n", name, planned, taken,
                       is_estimate ? "   (planned is an estimate)" :
                       same        ? "" : "   <-- differs");
    }
    return same;
}

static int sep_info_compare_all(const sep_plan_counts_t *plan,
                                const sep_info_taken_t *taken,
                                json_object *json)
{
    const unsigned long *account = taken->account;
    const struct {
        const char    *name;
        unsigned long planned;
        unsigned long taken;
        int           is_estimate;
    } lines[] = {
        {"contexts", plan->contexts, account[UCT_SEP_ACCOUNT_CONTEXT], 0},
        {"thread_domains", plan->tds, account[UCT_SEP_ACCOUNT_TD], 0},
        {"uars", sep_plan_uars(plan), taken->uars, 0},
        {"uars_in_use", plan->uars_used, account[UCT_SEP_ACCOUNT_UAR], 0},
        {"uuars_in_use", plan->uuars_used, account[UCT_SEP_ACCOUNT_UUAR], 0},
        {"qps", plan->qps, account[UCT_SEP_ACCOUNT_QP], 0},
        {"cqs", plan->cqs, account[UCT_SEP_ACCOUNT_CQ], 0},
        {"srqs", plan->srqs, account[UCT_SEP_ACCOUNT_SRQ], 0},
        {"qp_bytes", plan->qp_bytes, account[UCT_SEP_ACCOUNT_QP_BYTES], 0},
        {"cq_bytes", plan->cq_bytes, account[UCT_SEP_ACCOUNT_CQ_BYTES], 0},
        {"srq_bytes", plan->srq_bytes, account[UCT_SEP_ACCOUNT_SRQ_BYTES], 0},
        {"mr_bytes", plan->mr_bytes, account[UCT_SEP_ACCOUNT_MR_BYTES], 1},
        {"resident_bytes", sep_plan_bytes(plan), taken->resident, 1}
    };
    int same = 1;
    unsigned i;

    for (i = 0; i < (sizeof(lines) / sizeof(lines[0])); ++i) {
        same &= sep_info_compare(lines[i].name, lines[i].planned,
                                 lines[i].taken, lines[i].is_estimate, json);
    }
    return same;
}

/* @param list  Of values in JSON, NULL: print text */
static int sep_info_report(const sep_plan_config_t *config,
                           const sep_info_taken_t *taken, json_object *list)
{
    const char *category = sep_plan_category_name(config->category);
    json_object *json    = NULL;
    const char *reason;
    sep_plan_t plan;
    int same;

    if (sep_plan_make(config, &plan, &reason) != 0) {
        fprintf(stderr, "sep_info: %s\n", reason);
        return SEP_INFO_USAGE;
    }

    if (list != NULL) {
        json = sep_json_add_object(list, NULL);
        sep_json_add_string(json, "category", category);
        sep_json_add_string(json, "regime",
                            sep_plan_regime_names[config->regime]);
        sep_json_add_number(json, "workers", config->workers);
        sep_json_add_number(json, "peers", config->peers);
    } else {
        sep_info_print("#\n# %s: %u worker%s connected to %u peer%s each, UAR "
                       "pages by the %s regime\n#\n%-28s %12s %12s\n",
                       category, config->workers,
                       (config->workers == 1) ? "" : "s", config->peers,
                       (config->peers == 1) ? "" : "s",
                       sep_plan_regime_names[config->regime], "", "planned",
                       "taken");
    }

    same = sep_info_compare_all(&plan.total, taken, json);
    sep_info_report_eager(taken, json);
    if (json != NULL) {
        sep_json_add_bool(json, "same", same);
    }
    return same ? SEP_INFO_OK : SEP_INFO_DIFFERENT;
}

/* Open, connect, count, close */
static int sep_info_measure(const char *md_name,
                            const sep_plan_config_t *config,
                            sep_info_taken_t *taken)
{
    int ret = -1;
    sep_info_process_t process;
    sep_info_peer_t *peers;

    peers = sep_info_start_peers(md_name, config->peers);
    if (peers == NULL) {
        return -1;
    }

    taken->uars     = sep_uars_mapped();
    taken->resident = sep_info_resident();
    if (sep_info_open(md_name, config->workers, config->peers, &process) != 0) {
        goto out_stop_peers;
    }

    ret = sep_info_connect(&process, peers, config->peers);
    if (ret == 0) {
        sep_info_count(&process, taken);
        ret = sep_info_try_eager(&process, config->peers, taken);
    }
    sep_info_close(&process, config->peers);

out_stop_peers:
    sep_info_stop_peers(peers, config->peers);
    return ret;
}

static void sep_info_measure_child(const char *md_name,
                                   const sep_plan_config_t *config, int fd)
{
    const char *category = sep_plan_category_name(config->category);
    sep_info_taken_t taken;

    setenv("UCX_SEP_CATEGORY", category, 1);
    exit(((sep_info_measure(md_name, config, &taken) == 0) &&
          (write(fd, &taken, sizeof(taken)) == sizeof(taken))) ?
         SEP_INFO_OK : SEP_INFO_FAILED);
}

/* In a process of its own, so that one category finds nothing left by another.
 * @return 0, or -1 after a message. */
static int
sep_info_measure_apart(const char *md_name, const sep_plan_config_t *config,
                       sep_info_taken_t *taken)
{
    int wstatus, fds[2], is_read;
    pid_t pid;

    if (pipe(fds) != 0) {
        perror("sep_info: pipe");
        return -1;
    }

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        sep_info_measure_child(md_name, config, fds[1]);
    }

    close(fds[1]);
    is_read = (pid > 0) && (read(fds[0], taken, sizeof(*taken)) ==
                            sizeof(*taken));
    close(fds[0]);
    if ((pid < 0) || (waitpid(pid, &wstatus, 0) != pid) ||
        !WIFEXITED(wstatus)) {
        fprintf(stderr, "sep_info: the process with %s failed\n",
                sep_plan_category_name(config->category));
        return -1;
    }
    return ((WEXITSTATUS(wstatus) == SEP_INFO_OK) && is_read) ? 0 : -1;
}

static int sep_info_try_category(const sep_info_options_t *options,
                                 const char *md_name,
                                 const sep_info_device_t *device,
                                 sep_plan_category_t category,
                                 json_object *list)
{
    sep_plan_config_t config = options->config;
    sep_info_taken_t taken;

    config.category   = category;
    config.regime     = device->regime;
    config.workers    = options->workers;
    config.peers      = options->peers;
    config.max_srq_wr = device->attr.orig_attr.max_srq_wr;
    if (device->max_dyn_uuars > 0) {
        config.max_dyn_uuars = device->max_dyn_uuars;
    }

    return (sep_info_measure_apart(md_name, &config, &taken) == 0) ?
           sep_info_report(&config, &taken, list) : SEP_INFO_FAILED;
}

/* The device that is asked for, or the first one */
static int sep_info_find_device(const sep_info_options_t *options, char *name,
                                size_t max, sep_info_device_t *device_p)
{
    struct ibv_device **list;
    int i, count, ret = -1;

    list = ibv_get_device_list(&count);
    for (i = 0; (list != NULL) && (i < count); ++i) {
        if (uct_sep_device_is_usable(list[i]) &&
            ((options->dev_name == NULL) ||
             (strcmp(options->dev_name, ibv_get_device_name(list[i])) == 0))) {
            ucs_strncpy_safe(name, ibv_get_device_name(list[i]), max);
            ret = sep_info_device_query(list[i], device_p);
            break;
        }
    }

    if ((list == NULL) || (i == count)) {
        fprintf(stderr, "sep_info: there is no mlx5 device%s%s that can be "
                "opened\n", (options->dev_name != NULL) ? " " : "",
                (options->dev_name != NULL) ? options->dev_name : "");
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    return ret;
}

int sep_info_try(const sep_info_options_t *options, json_object *json)
{
    char md_name[IBV_SYSFS_NAME_MAX];
    int result = SEP_INFO_OK;
    sep_info_device_t device;
    int category, status;
    json_object *tries;

    /* The transport registers itself when the program starts, unless it does
     * not fit the UCX present */
    if (ucs_list_is_empty(&uct_sep_component.tl_list)) {
        fprintf(stderr, "sep_info: the transport does not fit this UCX\n");
        return SEP_INFO_FAILED;
    }

    if (sep_info_find_device(options, md_name, sizeof(md_name),
                             &device) != 0) {
        return SEP_INFO_FAILED;
    }

    tries = (json != NULL) ? sep_json_add_array(json, "tries") : NULL;
    for (category = 0; category < SEP_PLAN_NUM_CATEGORIES; ++category) {
        /* Of all, those that can be had */
        if ((options->category == SEP_PLAN_LAST) ?
            ((device.regime == SEP_PLAN_NC) &&
             (sep_plan_category_row(category)->tds > 0)) :
            ((int)options->category != category)) {
            continue;
        }

        status = sep_info_try_category(options, md_name, &device, category,
                                       tries);
        if (status > result) {
            result = status;
        }
    }
    return result;
}
