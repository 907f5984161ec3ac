/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The application kernels of test/kernels on UCP alone: each thread has a
 * worker of its own, and all of a process one context. An endpoint is made
 * when a thread first has something for the thread of its number in another
 * process.
 *
 *   --ranks R   processes, started by this program (default 2)
 *
 * They find each other in memory that they share, and meet there, so that
 * nothing goes over the device but what the kernel says.
 */

#define _GNU_SOURCE 1 /* memfd_create */

#include "kernels/all.h"

#include <ucp/api/ucp.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define UCP_APP_MAX_RANKS    64
#define UCP_APP_MAX_ADDRESS  4096
#define UCP_APP_MAX_RKEY     1024


/* Environment of a process: its rank, and the descriptor of what they share */
#define UCP_APP_ENV_RANK     "SEP_APP_RANK"
#define UCP_APP_ENV_FD       "SEP_APP_FD"


/** Of a thread, for all others to see. */
typedef struct ucp_app_address {
    size_t  length;
    uint8_t data[UCP_APP_MAX_ADDRESS];
} ucp_app_address_t;


/** Likewise of a process. */
typedef struct ucp_app_memory {
    uint64_t address;
    size_t   rkey_len;
    uint8_t  rkey[UCP_APP_MAX_RKEY];
} ucp_app_memory_t;


/** What processes share. */
typedef struct ucp_app_shared {
    pthread_barrier_t barrier;
    uint64_t          messages[UCP_APP_MAX_RANKS];
    uint64_t          bytes[UCP_APP_MAX_RANKS];
    uint64_t          checks[UCP_APP_MAX_RANKS];
    ucp_app_memory_t  memories[UCP_APP_MAX_RANKS];
    ucp_app_address_t addresses[]; /**< By process and thread */
} ucp_app_shared_t;


/** The interface of a thread. */
typedef struct ucp_app_thread {
    ucp_worker_h worker;
    ucp_ep_h     eps[UCP_APP_MAX_RANKS];
    ucp_rkey_h   rkeys[UCP_APP_MAX_RANKS];
    void         **requests; /**< That have not completed */
    int          num_requests;
    int          max_requests;
} ucp_app_thread_t;


static struct {
    ucp_app_shared_t *shared;
    ucp_context_h    context;
    ucp_mem_h        memh;
    ucp_app_thread_t threads[APP_MAX_THREADS];
} ucp_app;


static const ucp_request_param_t ucp_app_no_params;


static void ucp_app_fail(const char *message)
{
    fprintf(stderr, "FAIL " APP_NAME ": rank %d: %s\n", app.rank, message);
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

static void ucp_app_check(ucs_status_t status, const char *what)
{
    APP_CHECK(status == UCS_OK, "%s: %s", what, ucs_status_string(status));
}

static ucp_app_address_t *ucp_app_address(int rank, int thread)
{
    return &ucp_app.shared->addresses[(rank * app.num_threads) + thread];
}

static void ucp_app_progress(int thread)
{
    ucp_worker_progress(ucp_app.threads[thread].worker);
}

/** Wait for what UCP returned: nothing, an error, or a request. */
static void ucp_app_complete(int thread, void *request, const char *what)
{
    ucs_status_t status;

    if (request == NULL) {
        return;
    }
    if (UCS_PTR_IS_ERR(request)) {
        ucp_app_check(UCS_PTR_STATUS(request), what);
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        app_wait(thread);
    }
    ucp_request_free(request);
    ucp_app_check(status, what);
}

/** Remember what has to be waited for. */
static void ucp_app_keep(int thread, void *request, const char *what)
{
    ucp_app_thread_t *self = &ucp_app.threads[thread];

    if (UCS_PTR_IS_ERR(request)) {
        ucp_app_check(UCS_PTR_STATUS(request), what);
    }
    if (request == NULL) {
        return;
    }
    if (self->num_requests == self->max_requests) {
        self->max_requests = (2 * self->max_requests) + 16;
        self->requests     = realloc(self->requests, self->max_requests *
                                                     sizeof(void*));
        APP_CHECK(self->requests != NULL, "out of memory");
    }
    self->requests[self->num_requests++] = request;
}

static void ucp_app_complete_all(int thread, const char *what)
{
    ucp_app_thread_t *self = &ucp_app.threads[thread];

    while (self->num_requests > 0) {
        ucp_app_complete(thread, self->requests[--self->num_requests], what);
    }
}

/** Memory that others reach, and what they need for that. */
static void ucp_app_attach(size_t length)
{
    ucp_app_memory_t *mine = &ucp_app.shared->memories[app.rank];
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length     = (length + 4095) / 4096 * 4096
    };
    void *rkey;

    app.memory     = aligned_alloc(4096, params.length);
    APP_CHECK(app.memory != NULL, "out of memory: %zu bytes", length);
    memset(app.memory, 0, params.length);
    params.address = app.memory;
    ucp_app_check(ucp_mem_map(ucp_app.context, &params, &ucp_app.memh),
                  "ucp_mem_map");
    mine->address = (uintptr_t)app.memory;
    ucp_app_check(ucp_rkey_pack(ucp_app.context, ucp_app.memh, &rkey,
                                &mine->rkey_len), "ucp_rkey_pack");
    APP_CHECK(mine->rkey_len <= sizeof(mine->rkey),
              "a remote key of %zu bytes", mine->rkey_len);
    memcpy(mine->rkey, rkey, mine->rkey_len);
    ucp_rkey_buffer_release(rkey);
}

static void ucp_app_detach(void)
{
    ucp_app_check(ucp_mem_unmap(ucp_app.context, ucp_app.memh),
                  "ucp_mem_unmap");
    free(app.memory);
}

static void ucp_app_open(int thread)
{
    ucp_app_thread_t *self     = &ucp_app.threads[thread];
    ucp_app_address_t *mine    = ucp_app_address(app.rank, thread);
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_address_t *address;

    memset(self, 0, sizeof(*self));
    ucp_app_check(ucp_worker_create(ucp_app.context, &params, &self->worker),
                  "ucp_worker_create");
    ucp_app_check(ucp_worker_get_address(self->worker, &address, &mine->length),
                  "ucp_worker_get_address");
    APP_CHECK(mine->length <= sizeof(mine->data), "an address of %zu bytes",
              mine->length);
    memcpy(mine->data, address, mine->length);
    ucp_worker_release_address(self->worker, address);
}

/** The endpoint to the thread of the same number in another process. */
static ucp_ep_h ucp_app_ep(int thread, int rank)
{
    ucp_app_thread_t *self   = &ucp_app.threads[thread];
    ucp_app_address_t *other = ucp_app_address(rank, thread);
    ucp_ep_params_t params   = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t*)other->data
    };

    if (self->eps[rank] == NULL) {
        ucp_app_check(ucp_ep_create(self->worker, &params, &self->eps[rank]),
                      "ucp_ep_create");
    }
    return self->eps[rank];
}

static ucp_rkey_h ucp_app_rkey(int thread, int rank)
{
    ucp_app_thread_t *self = &ucp_app.threads[thread];

    if (self->rkeys[rank] == NULL) {
        ucp_app_check(ucp_ep_rkey_unpack(ucp_app_ep(thread, rank),
                                         ucp_app.shared->memories[rank].rkey,
                                         &self->rkeys[rank]),
                      "ucp_ep_rkey_unpack");
    }
    return self->rkeys[rank];
}

static void ucp_app_close(int thread)
{
    ucp_app_thread_t *self = &ucp_app.threads[thread];
    int rank;

    for (rank = 0; rank < app.num_ranks; ++rank) {
        if (self->rkeys[rank] != NULL) {
            ucp_rkey_destroy(self->rkeys[rank]);
        }
        if (self->eps[rank] != NULL) {
            ucp_app_complete(thread, ucp_ep_close_nbx(self->eps[rank],
                                                      &ucp_app_no_params),
                             "ucp_ep_close_nbx");
        }
    }
}

static void ucp_app_destroy(int thread)
{
    ucp_worker_destroy(ucp_app.threads[thread].worker);
    free(ucp_app.threads[thread].requests);
}

static void ucp_app_get(int thread, void *local, int rank, size_t offset,
                        size_t length)
{
    ucp_app_keep(thread,
                 ucp_get_nbx(ucp_app_ep(thread, rank), local, length,
                             ucp_app.shared->memories[rank].address + offset,
                             ucp_app_rkey(thread, rank), &ucp_app_no_params),
                 "ucp_get_nbx");
}

static void ucp_app_put(int thread, const void *local, int rank, size_t offset,
                        size_t length)
{
    ucp_app_keep(thread,
                 ucp_put_nbx(ucp_app_ep(thread, rank), local, length,
                             ucp_app.shared->memories[rank].address + offset,
                             ucp_app_rkey(thread, rank), &ucp_app_no_params),
                 "ucp_put_nbx");
}

static void ucp_app_fence(int thread)
{
    ucp_app_check(ucp_worker_fence(ucp_app.threads[thread].worker),
                  "ucp_worker_fence");
}

static void ucp_app_flush(int thread)
{
    ucp_app_complete_all(thread, "get or put");
    ucp_app_complete(thread,
                     ucp_worker_flush_nbx(ucp_app.threads[thread].worker,
                                          &ucp_app_no_params),
                     "ucp_worker_flush_nbx");
}

static void ucp_app_exchange(int thread, const app_message_t *out, int num_out,
                             const app_message_t *in, int num_in)
{
    ucp_worker_h worker = ucp_app.threads[thread].worker;
    int i;

    for (i = 0; i < num_in; ++i) {
        ucp_app_keep(thread,
                     ucp_tag_recv_nbx(worker, in[i].data, in[i].length,
                                      ((uint64_t)in[i].rank << 32) | in[i].tag,
                                      UINT64_MAX, &ucp_app_no_params),
                     "ucp_tag_recv_nbx");
    }
    for (i = 0; i < num_out; ++i) {
        ucp_app_keep(thread,
                     ucp_tag_send_nbx(ucp_app_ep(thread, out[i].rank),
                                      out[i].data, out[i].length,
                                      ((uint64_t)app.rank << 32) | out[i].tag,
                                      &ucp_app_no_params),
                     "ucp_tag_send_nbx");
    }
    ucp_app_complete_all(thread, "send or receive");
}

static void ucp_app_barrier(void)
{
    pthread_barrier_wait(&ucp_app.shared->barrier);
}

static const app_ops_t ucp_app_ops = {
    .name     = "ucp",
    .fail     = ucp_app_fail,
    .attach   = ucp_app_attach,
    .detach   = ucp_app_detach,
    .open     = ucp_app_open,
    .close    = ucp_app_close,
    .destroy  = ucp_app_destroy,
    .get      = ucp_app_get,
    .put      = ucp_app_put,
    .fence    = ucp_app_fence,
    .flush    = ucp_app_flush,
    .exchange = ucp_app_exchange,
    .progress = ucp_app_progress,
    .barrier  = ucp_app_barrier
};

static int ucp_app_option(const char *option, const char *value)
{
    if (strcmp(option, "--ranks")) {
        return 0;
    }
    app.num_ranks = app_parse_number(option, value, UCP_APP_MAX_RANKS);
    return 2;
}

static void ucp_app_run(void)
{
    ucp_params_t params = {
        .field_mask   = UCP_PARAM_FIELD_FEATURES |
                        UCP_PARAM_FIELD_MT_WORKERS_SHARED,
        .features     = UCP_FEATURE_TAG | UCP_FEATURE_RMA,
        .mt_workers_shared = 1
    };
    ucp_config_t *config;

    ucp_app_check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    ucp_app_check(ucp_init(&params, config, &ucp_app.context), "ucp_init");
    ucp_config_release(config);
    app_run();
    ucp_cleanup(ucp_app.context);
    ucp_app.shared->messages[app.rank] = app.messages;
    ucp_app.shared->bytes[app.rank]    = app.bytes;
    ucp_app.shared->checks[app.rank]   = app.checks;
}

/** Show this process what all share. */
static void ucp_app_map(int fd)
{
    size_t length = sizeof(*ucp_app.shared) +
                    (sizeof(ucp_app_address_t) * app.num_ranks *
                     app.num_threads);

    if (ftruncate(fd, length) != 0) {
        app_fail("memory of %zu bytes: %s", length, strerror(errno));
    }
    ucp_app.shared = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                          0);
    APP_CHECK(ucp_app.shared != MAP_FAILED, "mmap: %s", strerror(errno));
}

/** Make what all share.
 *  @return Its descriptor. */
static int ucp_app_share(void)
{
    int fd = memfd_create(APP_NAME, 0);
    pthread_barrierattr_t attr;

    APP_CHECK(fd >= 0, "memfd_create: %s", strerror(errno));
    ucp_app_map(fd);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&ucp_app.shared->barrier, &attr, app.num_ranks);
    pthread_barrierattr_destroy(&attr);
    return fd;
}

/** Start a process: this program anew, so that it takes nothing over of what
 *  libraries had here. */
static pid_t ucp_app_start(int rank, int fd, char **argv)
{
    char path[PATH_MAX], words[2][16];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    pid_t pid;

    APP_CHECK(length > 0, "/proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    snprintf(words[0], sizeof(words[0]), "%d", rank);
    snprintf(words[1], sizeof(words[1]), "%d", fd);
    setenv(UCP_APP_ENV_RANK, words[0], 1);
    setenv(UCP_APP_ENV_FD, words[1], 1);
    pid = fork();
    APP_CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        execv(path, argv);
        _exit(127);
    }
    return pid;
}

/** Wait for all processes; the end of one that has failed is that of all.
 *  @return Whether all were well. */
static bool ucp_app_await(const pid_t *pids)
{
    bool is_well = true;
    int left     = app.num_ranks;
    int i, status;

    while (left > 0) {
        if (wait(&status) < 0) {
            APP_CHECK(errno == EINTR, "wait: %s", strerror(errno));
            continue;
        }
        --left;
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0)) {
            for (i = 0; is_well && (i < app.num_ranks); ++i) {
                kill(pids[i], SIGKILL);
            }
            if (is_well && WIFSIGNALED(status)) {
                fprintf(stderr, "FAIL " APP_NAME ": a process was ended by "
                        "signal %d\n", WTERMSIG(status));
            }
            is_well = false;
        }
    }
    return is_well;
}

int main(int argc, char **argv)
{
    uint64_t messages = 0, bytes = 0, checks = 0;
    pid_t pids[UCP_APP_MAX_RANKS];
    int i, fd;

    app.ops       = &ucp_app_ops;
    app.num_ranks = 2;
    app_parse(argc, argv, ucp_app_option);
    if (getenv(UCP_APP_ENV_RANK) != NULL) {
        app.rank = atoi(getenv(UCP_APP_ENV_RANK));
        ucp_app_map(atoi(getenv(UCP_APP_ENV_FD)));
        ucp_app_run();
        return EXIT_SUCCESS;
    }

    fd = ucp_app_share();
    for (i = 0; i < app.num_ranks; ++i) {
        pids[i] = ucp_app_start(i, fd, argv);
    }
    if (!ucp_app_await(pids)) {
        return EXIT_FAILURE;
    }

    for (i = 0; i < app.num_ranks; ++i) {
        messages += ucp_app.shared->messages[i];
        bytes    += ucp_app.shared->bytes[i];
        checks   += ucp_app.shared->checks[i];
    }
    printf("traffic %" PRIu64 " %" PRIu64 "\n", messages, bytes);
    printf("PASS " APP_NAME ": %d ranks, %" PRIu64 " messages, %" PRIu64
           " bytes, %" PRIu64 " checks\n", app.num_ranks, messages, bytes,
           checks);
    return EXIT_SUCCESS;
}
