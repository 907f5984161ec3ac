/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_info.h"

#include <ucs/async/async.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <ucs/time/time.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Open workers for real, connect them to peers on the same device, and count.
 * Peers are processes of their own: what they take is not to be counted.
 */

/* Long enough for 64 workers and peers on a busy machine; whoever needs longer
 * hangs */
#define SEP_INFO_PATIENCE  120.0

/* Active message by which a worker connects */
#define SEP_INFO_AM_ID     1

#define SEP_INFO_ADDR_MAX  256


/* One worker */
typedef struct {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_iface_h         iface;
    uct_iface_attr_t    attr;
    uct_ep_h            *eps;      /* One per peer */
    unsigned            connected; /* How many have sent */
} sep_info_worker_t;


/* Memory domain and workers of a process */
typedef struct {
    uct_md_h            md;
    char                dev_name[UCT_DEVICE_NAME_MAX];
    sep_info_worker_t   *workers;
    unsigned            num_workers;
} sep_info_process_t;


/* A peer: another process with one worker */
typedef struct {
    pid_t  pid;
    int    fd;                           /* Closing it ends the peer */
    struct {
        char dev[SEP_INFO_ADDR_MAX];
        char iface[SEP_INFO_ADDR_MAX];
    } addr;
} sep_info_peer_t;


static int sep_info_fail(const char *what, ucs_status_t status)
{
    fprintf(stderr, "sep_info: %s failed: %s\n", what,
            ucs_status_string(status));
    return -1;
}

/* First active port of the memory domain */
static int sep_info_find_port(uct_md_h md, char *dev_name, size_t max)
{
    uct_tl_resource_desc_t *resources;
    unsigned count, i;
    int ret = -1;

    if (uct_md_query_tl_resources(md, &resources, &count) != UCS_OK) {
        return -1;
    }

    for (i = 0; (i < count) && (ret != 0); ++i) {
        if (strcmp(resources[i].tl_name, UCT_SEP_TL_NAME) == 0) {
            ucs_strncpy_safe(dev_name, resources[i].dev_name, max);
            ret = 0;
        }
    }
    uct_release_tl_resource_list(resources);
    return ret;
}

static int sep_info_open_md(const char *md_name, sep_info_process_t *process)
{
    uct_md_config_t *config;
    ucs_status_t status;

    status = uct_md_config_read(&uct_sep_component, NULL, NULL, &config);
    if (status != UCS_OK) {
        return sep_info_fail("reading UCX_SEP_*", status);
    }

    status = uct_md_open(&uct_sep_component, md_name, config, &process->md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return sep_info_fail("opening the device", status);
    }

    if (sep_info_find_port(process->md, process->dev_name,
                           sizeof(process->dev_name)) != 0) {
        fprintf(stderr, "sep_info: %s has no active port\n", md_name);
        uct_md_close(process->md);
        return -1;
    }
    return 0;
}

static ucs_status_t
sep_info_am_handler(void *arg, void *data, size_t length, unsigned flags)
{
    return UCS_OK;
}

static ucs_status_t sep_info_open_iface(const sep_info_process_t *process,
                                        sep_info_worker_t *worker)
{
    uct_iface_params_t params = {};
    uct_iface_config_t *config;
    ucs_status_t status;

    status = uct_md_iface_config_read(process->md, UCT_SEP_TL_NAME, NULL, NULL,
                                      &config);
    if (status != UCS_OK) {
        return status;
    }

    params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                  UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = UCT_SEP_TL_NAME;
    params.mode.device.dev_name = process->dev_name;
    status = uct_iface_open(process->md, worker->worker, &params, config,
                            &worker->iface);
    uct_config_release(config);
    return status;
}

static ucs_status_t sep_info_open_worker(const sep_info_process_t *process,
                                         sep_info_worker_t *worker)
{
    ucs_status_t status;

    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                      &worker->async);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_worker_create(worker->async, UCS_THREAD_MODE_SINGLE,
                               &worker->worker);
    if (status != UCS_OK) {
        goto err_destroy_async;
    }

    status = sep_info_open_iface(process, worker);
    if (status != UCS_OK) {
        goto err_destroy_worker;
    }

    status = uct_iface_query(worker->iface, &worker->attr);
    if (status != UCS_OK) {
        goto err_close;
    }

    uct_iface_set_am_handler(worker->iface, SEP_INFO_AM_ID,
                             sep_info_am_handler, NULL, 0);
    uct_iface_progress_enable(worker->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return UCS_OK;

err_close:
    uct_iface_close(worker->iface);
err_destroy_worker:
    uct_worker_destroy(worker->worker);
err_destroy_async:
    ucs_async_context_destroy(worker->async);
err:
    return status;
}

static void
sep_info_close_worker(sep_info_worker_t *worker, unsigned num_peers)
{
    unsigned i;

    for (i = 0; i < num_peers; ++i) {
        if (worker->eps[i] != NULL) {
            uct_ep_destroy(worker->eps[i]);
        }
    }
    free(worker->eps);
    uct_iface_close(worker->iface);
    uct_worker_destroy(worker->worker);
    ucs_async_context_destroy(worker->async);
}

static void sep_info_close(sep_info_process_t *process, unsigned num_peers)
{
    while (process->num_workers > 0) {
        sep_info_close_worker(&process->workers[--process->num_workers],
                              num_peers);
    }
    free(process->workers);
    uct_md_close(process->md);
}

static int sep_info_open(const char *md_name, unsigned num_workers,
                         unsigned num_peers, sep_info_process_t *process)
{
    sep_info_worker_t *worker;
    ucs_status_t status;

    memset(process, 0, sizeof(*process));
    if (sep_info_open_md(md_name, process) != 0) {
        return -1;
    }

    process->workers = calloc(num_workers, sizeof(*process->workers));
    while ((process->workers != NULL) && (process->num_workers < num_workers)) {
        worker      = &process->workers[process->num_workers];
        worker->eps = calloc(num_peers + 1, sizeof(*worker->eps));
        status      = (worker->eps == NULL) ? UCS_ERR_NO_MEMORY :
                      sep_info_open_worker(process, worker);
        if (status != UCS_OK) {
            fprintf(stderr, "sep_info: worker %u of %u cannot be opened: %s\n",
                    process->num_workers + 1, num_workers,
                    ucs_status_string(status));
            free(worker->eps);
            sep_info_close(process, num_peers);
            return -1;
        }
        ++process->num_workers;
    }

    return 0;
}

/*
 * Peers
 */

static void sep_info_peer_main(const char *md_name, int fd)
{
    sep_info_process_t process;
    sep_info_worker_t *worker;
    sep_info_peer_t self;
    char byte;

    if (sep_info_open(md_name, 1, 0, &process) != 0) {
        _exit(1);
    }

    worker = &process.workers[0];
    memset(&self.addr, 0, sizeof(self.addr));
    if ((worker->attr.device_addr_len > sizeof(self.addr.dev)) ||
        (worker->attr.iface_addr_len > sizeof(self.addr.iface)) ||
        (uct_iface_get_device_address(worker->iface,
                                      (void*)self.addr.dev) != UCS_OK) ||
        (uct_iface_get_address(worker->iface,
                               (void*)self.addr.iface) != UCS_OK) ||
        (write(fd, &self.addr, sizeof(self.addr)) != sizeof(self.addr))) {
        _exit(1);
    }

    /* Until the other end closes */
    while ((recv(fd, &byte, 1, MSG_DONTWAIT) < 0) &&
           ((errno == EAGAIN) || (errno == EINTR))) {
        if (uct_worker_progress(worker->worker) == 0) {
            usleep(200);
        }
    }

    sep_info_close(&process, 0);
    exit(0);
}

static int sep_info_start_peer(const char *md_name, sep_info_peer_t *peers,
                               unsigned index)
{
    sep_info_peer_t *peer = &peers[index];
    unsigned i;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        perror("sep_info: socketpair");
        return -1;
    }

    fflush(NULL);
    peer->pid = fork();
    if (peer->pid < 0) {
        perror("sep_info: fork");
        close(fds[0]);
        close(fds[1]);
        return -1;
    }

    if (peer->pid == 0) {
        close(fds[0]);
        for (i = 0; i < index; ++i) {
            close(peers[i].fd);
        }
        sep_info_peer_main(md_name, fds[1]);
    }

    close(fds[1]);
    peer->fd = fds[0];
    return 0;
}

static void sep_info_stop_peers(sep_info_peer_t *peers, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        close(peers[i].fd);
    }
    for (i = 0; i < count; ++i) {
        waitpid(peers[i].pid, NULL, 0);
    }
    free(peers);
}

static sep_info_peer_t *
sep_info_start_peers(const char *md_name, unsigned count)
{
    sep_info_peer_t *peers = calloc(count + 1, sizeof(*peers));
    unsigned i;

    for (i = 0; (peers != NULL) && (i < count); ++i) {
        if (sep_info_start_peer(md_name, peers, i) != 0) {
            sep_info_stop_peers(peers, i);
            return NULL;
        }
    }

    for (i = 0; (peers != NULL) && (i < count); ++i) {
        if (recv(peers[i].fd, &peers[i].addr, sizeof(peers[i].addr),
                 MSG_WAITALL) != sizeof(peers[i].addr)) {
            fprintf(stderr, "sep_info: peer %u of %u did not start\n", i + 1,
                    count);
            sep_info_stop_peers(peers, count);
            return NULL;
        }
    }
    return peers;
}

/*
 * Connecting
 */

static ucs_status_t
sep_info_create_eps(sep_info_worker_t *worker, const sep_info_peer_t *peers,
                    unsigned count)
{
    uct_ep_params_t params = {};
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < count; ++i) {
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                            UCT_EP_PARAM_FIELD_DEV_ADDR |
                            UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.iface      = worker->iface;
        params.dev_addr   = (const void*)peers[i].addr.dev;
        params.iface_addr = (const void*)peers[i].addr.iface;
        status = uct_ep_create(&params, &worker->eps[i]);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

/* Send on what is not connected yet. @return Whether all are, or < 0. */
static int sep_info_connect_some(sep_info_worker_t *worker, unsigned num_peers)
{
    ucs_status_t status;
    unsigned i;
    uct_ep_h ep;

    /* All are asked at once; those that are through are at the front */
    for (i = worker->connected; i < num_peers; ++i) {
        status = uct_ep_am_short(worker->eps[i], SEP_INFO_AM_ID, 0, NULL, 0);
        if (status == UCS_ERR_NO_RESOURCE) {
            continue;
        } else if (status != UCS_OK) {
            return sep_info_fail("connecting to a peer", status);
        }

        ep                             = worker->eps[i];
        worker->eps[i]                 = worker->eps[worker->connected];
        worker->eps[worker->connected] = ep;
        ++worker->connected;
    }

    return (worker->connected == num_peers) &&
           (uct_iface_flush(worker->iface, 0, NULL) == UCS_OK);
}

static int sep_info_connect(sep_info_process_t *process,
                            const sep_info_peer_t *peers, unsigned num_peers)
{
    ucs_time_t deadline = ucs_get_time() +
                          ucs_time_from_sec(SEP_INFO_PATIENCE);
    unsigned i, num_done;
    ucs_status_t status;
    int ret;

    for (i = 0; i < process->num_workers; ++i) {
        status = sep_info_create_eps(&process->workers[i], peers, num_peers);
        if (status != UCS_OK) {
            return sep_info_fail("creating an endpoint", status);
        }
    }

    do {
        num_done = 0;
        for (i = 0; i < process->num_workers; ++i) {
            uct_worker_progress(process->workers[i].worker);
            ret = sep_info_connect_some(&process->workers[i], num_peers);
            if (ret < 0) {
                return -1;
            }
            num_done += ret;
        }
        if (ucs_get_time() > deadline) {
            fprintf(stderr, "sep_info: not connected after %.0f s\n",
                    SEP_INFO_PATIENCE);
            return -1;
        }
    } while (num_done < process->num_workers);
    return 0;
}

/*
 * Counting and comparing
 */

/* Memory of the process that is there, and not only promised */
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
    taken->uars = sep_info_mapped_uars() - taken->uars;
    taken->resident = sep_info_resident() - taken->resident;
}

/* One line of the comparison. @return Whether it is as planned. */
static int sep_info_compare(const sep_info_options_t *options, const char *name,
                            unsigned long planned, unsigned long taken,
                            int is_estimate)
{
    int same = (planned == taken) || is_estimate;

    if (options->json) {
        sep_info_json_open(name, '{');
        sep_info_json_number("planned", planned);
        sep_info_json_number("taken", taken);
        sep_info_json_bool("estimate", is_estimate);
        sep_info_json_close();
    } else {
        sep_info_print("%-28s %12lu %12lu%s\n", name, planned, taken,
                       is_estimate ? "   (an estimate)" :
                       same        ? "" : "   <-- differs");
    }
    return same;
}

static int sep_info_compare_all(const sep_info_options_t *options,
                                const sep_plan_counts_t *plan,
                                const sep_info_taken_t *taken)
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
        {"all_bytes", sep_plan_bytes(plan), taken->resident, 1}
    };
    int same = 1;
    unsigned i;

    for (i = 0; i < (sizeof(lines) / sizeof(lines[0])); ++i) {
        same &= sep_info_compare(options, lines[i].name, lines[i].planned,
                                 lines[i].taken, lines[i].is_estimate);
    }
    return same;
}

static int sep_info_report(const sep_info_options_t *options,
                           sep_plan_config_t *config,
                           const sep_info_taken_t *taken)
{
    const char *category = sep_plan_category_names[config->category];
    const char *reason;
    sep_plan_t plan;
    int same;

    if (sep_plan_make(config, &plan, &reason) != 0) {
        fprintf(stderr, "sep_info: %s\n", reason);
        return SEP_INFO_USAGE;
    }

    if (options->json) {
        sep_info_json_open(NULL, '{');
        sep_info_json_string("category", category);
        sep_info_json_string("regime", sep_plan_regime_names[config->regime]);
        sep_info_json_number("workers", config->workers);
        sep_info_json_number("peers", config->peers);
    } else {
        sep_info_print("#\n# %s: %u worker%s connected to %u peer%s each, UAR "
                       "pages by the %s regime\n#\n%-28s %12s %12s\n",
                       category, config->workers,
                       (config->workers == 1) ? "" : "s", config->peers,
                       (config->peers == 1) ? "" : "s",
                       sep_plan_regime_names[config->regime], "", "planned",
                       "taken");
    }

    same = sep_info_compare_all(options, &plan.total, taken);
    if (options->json) {
        sep_info_json_bool("same", same);
        sep_info_json_close();
    }
    return same ? SEP_INFO_OK : SEP_INFO_DIFFERENT;
}

static int sep_info_try_on(const sep_info_options_t *options,
                           const char *md_name, sep_plan_config_t *config)
{
    int status = SEP_INFO_FAILED;
    sep_info_process_t process;
    sep_info_taken_t taken;
    sep_info_peer_t *peers;

    peers = sep_info_start_peers(md_name, config->peers);
    if (peers == NULL) {
        return SEP_INFO_FAILED;
    }

    taken.uars = sep_info_mapped_uars();
    taken.resident = sep_info_resident();
    if (sep_info_open(md_name, config->workers, config->peers, &process) != 0) {
        goto out_stop_peers;
    }

    if (sep_info_connect(&process, peers, config->peers) == 0) {
        sep_info_count(&process, &taken);
        status = sep_info_report(options, config, &taken);
    }
    sep_info_close(&process, config->peers);

out_stop_peers:
    sep_info_stop_peers(peers, config->peers);
    return status;
}

/* In a process of its own, so that one category finds nothing of another */
static int sep_info_try_category(const sep_info_options_t *options,
                                 const char *md_name,
                                 const sep_info_device_t *device,
                                 sep_plan_category_t category)
{
    sep_plan_config_t config = options->config;
    int wstatus;
    pid_t pid;

    config.category   = category;
    config.regime     = device->regime;
    config.workers    = options->workers;
    config.peers      = options->peers;
    config.max_srq_wr = device->attr.orig_attr.max_srq_wr;
    if (device->max_dyn_uuars > 0) {
        config.max_dyn_uuars = device->max_dyn_uuars;
    }

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        setenv("UCX_SEP_CATEGORY", sep_plan_category_names[category], 1);
        exit(sep_info_try_on(options, md_name, &config));
    }

    if ((pid < 0) || (waitpid(pid, &wstatus, 0) != pid) ||
        !WIFEXITED(wstatus)) {
        fprintf(stderr, "sep_info: the process with %s failed\n",
                sep_plan_category_names[category]);
        return SEP_INFO_FAILED;
    }
    return WEXITSTATUS(wstatus);
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

int sep_info_try(const sep_info_options_t *options)
{
    char md_name[IBV_SYSFS_NAME_MAX];
    int result = SEP_INFO_OK;
    sep_info_device_t device;
    int category, status;

    /* The transport registers itself when the program starts, unless it does
     * not fit the UCX that is there; to name its class brings it in */
    if ((UCS_CLASS_NAME(uct_sep_iface_t).name == NULL) ||
        ucs_list_is_empty(&uct_sep_component.tl_list)) {
        fprintf(stderr, "sep_info: the transport does not fit this UCX\n");
        return SEP_INFO_FAILED;
    }

    if (sep_info_find_device(options, md_name, sizeof(md_name),
                             &device) != 0) {
        return SEP_INFO_FAILED;
    }

    /* Children write values of this array */
    if (options->json) {
        sep_info_json_open("tries", '[');
    }
    for (category = 0; category < SEP_PLAN_NUM_CATEGORIES; ++category) {
        if ((options->category != SEP_PLAN_LAST) &&
            ((int)options->category != category)) {
            continue;
        }

        status = sep_info_try_category(options, md_name, &device, category);
        if (options->json && (status <= SEP_INFO_DIFFERENT)) {
            sep_info_json_written();
        }
        if (status > result) {
            result = status;
        }
    }
    if (options->json) {
        sep_info_json_close();
    }
    return result;
}
