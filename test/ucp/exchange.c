/* SPDX-License-Identifier: BSD-3-Clause */

#include "jobs/job_pattern.h"

#include <ucp/api/ucp.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * Two processes that talk by UCP alone and find each other by files, so that
 * nothing but UCP need be the same in both, which may have two versions of it.
 *
 *   exchange DIRECTORY RANK STEP...
 *
 * RANK is 0 or 1; each STEP is one of tag, am, put, get, atomic. Both processes
 * must be started with the same steps. What is printed is described in
 * test/mpi/mpi_job.h.
 */

enum {
    REGION_LEN  = 2 * 1024 * 1024,
    NUM_ATOMICS = 64,
    PATIENCE    = 150 /* Seconds for all of it; peers are stopped for 60 */
};

/** Buffered, several fragments, rendezvous */
static const size_t sizes[] = {1, 8, 200, 4000, 20000, 100000, 1500000};

/** Of active messages */
enum {
    AM_ID = 7
};

/** What a process tells the other, in front of its address and its key */
typedef struct exchange_head {
    uint64_t address_len;
    uint64_t rkey_len;
    uint64_t region;    /**< Address of the region that the key is for */
    uint64_t counter;   /**< Address of a 64-bit number in it */
} exchange_head_t;

typedef struct exchange {
    int            rank;
    const char     *dir;
    const char     *part;
    time_t         deadline;
    ucp_context_h  context;
    ucp_worker_h   worker;
    ucp_ep_h       ep;
    ucp_mem_h      memh;
    ucp_rkey_h     rkey;
    uint8_t        *region;
    uint64_t       *counter;
    uint64_t       remote_region;
    uint64_t       remote_counter;
    uint64_t       messages;
    uint64_t       bytes;
    uint64_t       am_count;    /**< Active messages that are complete */
    job_buffer_t   am_buffer;
} exchange_t;

static exchange_t self;


static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *format, ...)
{
    char message[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    fprintf(stderr, "FAIL exchange: %s: %s\n", self.part, message);
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

static void check_status(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fail("%s: %s", what, ucs_status_string(status));
    }
}

static void progress(void)
{
    if (ucp_worker_progress(self.worker) == 0) {
        if (time(NULL) > self.deadline) {
            fail("nothing came for too long");
        }
        usleep(20);
    }
}

/* Wait for a request, or nothing if it was done at once */
static void wait_for(void *request, const char *what)
{
    ucs_status_t status = UCS_OK;

    if (UCS_PTR_IS_ERR(request)) {
        check_status(UCS_PTR_STATUS(request), what);
    } else if (request != NULL) {
        while ((status = ucp_request_check_status(request)) ==
               UCS_INPROGRESS) {
            progress();
        }
        ucp_request_free(request);
        check_status(status, what);
    }
}

static const ucp_request_param_t no_params;

static void sent(size_t length)
{
    ++self.messages;
    self.bytes += length;
}

static void check_data(const job_buffer_t *buffer, size_t length,
                       uint64_t sequence)
{
    uint64_t seed = job_pattern_seed(!self.rank, self.rank, sequence);
    size_t offset = job_pattern_mismatch(buffer->data, length, seed);

    if (offset != length) {
        fail("byte %zu of %zu is wrong", offset, length);
    }
    if (job_buffer_check(buffer) != 0) {
        fail("memory beside a buffer of %zu bytes was overwritten", length);
    }
}

static job_buffer_t make_data(size_t length, uint64_t sequence)
{
    job_buffer_t buffer = job_buffer_alloc(length);

    job_pattern_fill(buffer.data, length,
                     job_pattern_seed(self.rank, !self.rank, sequence));
    return buffer;
}

/* Both have got here */
static void barrier(void)
{
    static ucp_tag_t tag = 1ull << 40;
    uint8_t out = 0, in = 0;
    void *send, *recv;

    recv = ucp_tag_recv_nbx(self.worker, &in, 1, ++tag, UINT64_MAX, &no_params);
    send = ucp_tag_send_nbx(self.ep, &out, 1, tag, &no_params);
    wait_for(send, "sending of a token");
    wait_for(recv, "receiving of a token");
}

static void flush(void)
{
    wait_for(ucp_ep_flush_nbx(self.ep, &no_params), "flush");
}

static void step_tag(void)
{
    job_buffer_t out, in;
    void *send, *recv;
    unsigned i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        out  = make_data(sizes[i], i);
        in   = job_buffer_alloc(sizes[i]);
        recv = ucp_tag_recv_nbx(self.worker, in.data, sizes[i], i, UINT64_MAX,
                                &no_params);
        send = ucp_tag_send_nbx(self.ep, out.data, sizes[i], i, &no_params);
        wait_for(send, "ucp_tag_send_nbx");
        wait_for(recv, "ucp_tag_recv_nbx");
        check_data(&in, sizes[i], i);
        sent(sizes[i]);
        job_buffer_free(&out);
        job_buffer_free(&in);
    }
}

/* The data of a rendezvous */
static void
fetched(void *request, ucs_status_t status, size_t length, void *user_data)
{
    check_status(status, "ucp_am_recv_data_nbx");
    ++self.am_count;
    ucp_request_free(request);
}

static ucs_status_t
arrived(void *arg, const void *header, size_t header_length, void *data,
        size_t length, const ucp_am_recv_param_t *param)
{
    ucp_request_param_t recv_param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am   = fetched
    };
    uint64_t expected = length ^ 0x5e9;
    void *request;

    if ((header_length != sizeof(expected)) ||
        memcmp(header, &expected, sizeof(expected))) {
        fail("header of a message of %zu bytes is wrong", length);
    }
    if (length > self.am_buffer.length) {
        fail("a message of %zu bytes came instead of %zu", length,
             self.am_buffer.length);
    }

    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        request = ucp_am_recv_data_nbx(self.worker, data, self.am_buffer.data,
                                       length, &recv_param);
        if (UCS_PTR_IS_ERR(request)) {
            check_status(UCS_PTR_STATUS(request), "ucp_am_recv_data_nbx");
        }
        return UCS_INPROGRESS;
    }

    memcpy(self.am_buffer.data, data, length);
    ++self.am_count;
    return UCS_OK;
}

static void step_am(void)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id         = AM_ID,
        .cb         = arrived
    };
    uint64_t header;
    job_buffer_t out;
    unsigned i;

    check_status(ucp_worker_set_am_recv_handler(self.worker, &param),
                 "ucp_worker_set_am_recv_handler");
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        self.am_count  = 0;
        self.am_buffer = job_buffer_alloc(sizes[i]);
        barrier();
        out    = make_data(sizes[i], i);
        header = sizes[i] ^ 0x5e9;
        wait_for(ucp_am_send_nbx(self.ep, AM_ID, &header, sizeof(header),
                                 out.data, sizes[i], &no_params),
                 "ucp_am_send_nbx");
        while (self.am_count == 0) {
            progress();
        }
        check_data(&self.am_buffer, sizes[i], i);
        sent(sizes[i]);
        job_buffer_free(&out);
        job_buffer_free(&self.am_buffer);
    }
}

static void step_put(void)
{
    size_t offset = 64;
    job_buffer_t out, in;
    unsigned i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        out = make_data(sizes[i], i);
        wait_for(ucp_put_nbx(self.ep, out.data, sizes[i],
                             self.remote_region + offset, self.rkey,
                             &no_params), "ucp_put_nbx");
        flush();
        barrier();
        in = job_buffer_alloc(sizes[i]);
        memcpy(in.data, self.region + offset, sizes[i]);
        check_data(&in, sizes[i], i);
        sent(sizes[i]);
        job_buffer_free(&out);
        job_buffer_free(&in);
        offset += (sizes[i] + 63) & ~(size_t)63;
    }
}

static void step_get(void)
{
    job_buffer_t in;
    unsigned i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        job_pattern_fill(self.region + 64, sizes[i],
                         job_pattern_seed(self.rank, !self.rank, 100 + i));
        barrier();
        in = job_buffer_alloc(sizes[i]);
        wait_for(ucp_get_nbx(self.ep, in.data, sizes[i],
                             self.remote_region + 64, self.rkey, &no_params),
                 "ucp_get_nbx");
        flush();
        check_data(&in, sizes[i], 100 + i);
        barrier();
        sent(sizes[i]);
        job_buffer_free(&in);
    }
}

static void step_atomic(void)
{
    uint64_t one = 1, result, last = 0;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype     = ucp_dt_make_contig(sizeof(one)),
        .reply_buffer = &result
    };
    int i;

    for (i = 0; i < NUM_ATOMICS; ++i) {
        result = UINT64_MAX;
        wait_for(ucp_atomic_op_nbx(self.ep, UCP_ATOMIC_OP_ADD, &one, 1,
                                   self.remote_counter, self.rkey, &param),
                 "ucp_atomic_op_nbx");
        if (result != last + (i > 0)) {
            fail("fetch-and-add number %d returned %" PRIu64, i, result);
        }
        last = result;
        sent(sizeof(one));
    }
    flush();
    barrier();
    if (*(volatile uint64_t*)self.counter != NUM_ATOMICS) {
        fail("the counter is %" PRIu64 " instead of %d", *self.counter,
             NUM_ATOMICS);
    }
}

static const struct {
    const char *name;
    void       (*run)(void);
} steps[] = {
    {"tag", step_tag},
    {"am", step_am},
    {"put", step_put},
    {"get", step_get},
    {"atomic", step_atomic}
};

/* Show the other process what it needs, all at once */
static void publish(const exchange_head_t *head, const void *address,
                    const void *rkey)
{
    char path[1000], temporary[1010];
    FILE *file;

    snprintf(path, sizeof(path), "%s/rank.%d", self.dir, self.rank);
    snprintf(temporary, sizeof(temporary), "%s.new", path);
    file = fopen(temporary, "w");
    if ((file == NULL) || (fwrite(head, sizeof(*head), 1, file) != 1) ||
        (fwrite(address, head->address_len, 1, file) != 1) ||
        (fwrite(rkey, head->rkey_len, 1, file) != 1) || (fclose(file) != 0) ||
        (rename(temporary, path) != 0)) {
        fail("%s: %s", path, strerror(errno));
    }
}

static uint8_t *read_other(void)
{
    uint8_t *content = NULL;
    struct stat status;
    char path[1000];
    FILE *file;

    snprintf(path, sizeof(path), "%s/rank.%d", self.dir, !self.rank);
    while ((file = fopen(path, "r")) == NULL) {
        if (time(NULL) > self.deadline) {
            fail("the other process has not told where it is");
        }
        usleep(2000);
    }

    if ((fstat(fileno(file), &status) != 0) ||
        (status.st_size < (off_t)sizeof(exchange_head_t)) ||
        ((content = malloc(status.st_size)) == NULL) ||
        (fread(content, status.st_size, 1, file) != 1)) {
        fail("%s can't be read", path);
    }
    fclose(file);
    return content;
}

static void open_all(void)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA |
                      UCP_FEATURE_AMO64
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_mem_map_params_t map_params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length     = REGION_LEN
    };
    ucp_config_t *config;

    check_status(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    check_status(ucp_init(&params, config, &self.context), "ucp_init");
    ucp_config_release(config);
    check_status(ucp_worker_create(self.context, &worker_params, &self.worker),
                 "ucp_worker_create");

    self.region = aligned_alloc(4096, REGION_LEN);
    if (self.region == NULL) {
        fail("out of memory");
    }
    memset(self.region, 0, REGION_LEN);
    self.counter       = (uint64_t*)self.region;
    map_params.address = self.region;
    check_status(ucp_mem_map(self.context, &map_params, &self.memh),
                 "ucp_mem_map");
}

static void connect_to_other(void)
{
    ucp_address_t *address;
    size_t address_len, rkey_len;
    exchange_head_t head;
    ucp_ep_params_t params;
    uint8_t *other;
    void *rkey;

    check_status(ucp_worker_get_address(self.worker, &address, &address_len),
                 "ucp_worker_get_address");
    check_status(ucp_rkey_pack(self.context, self.memh, &rkey, &rkey_len),
                 "ucp_rkey_pack");
    head.address_len = address_len;
    head.rkey_len    = rkey_len;
    head.region      = (uintptr_t)self.region;
    head.counter     = (uintptr_t)self.counter;
    publish(&head, address, rkey);
    ucp_rkey_buffer_release(rkey);
    ucp_worker_release_address(self.worker, address);

    other = read_other();
    memcpy(&head, other, sizeof(head));
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address    = (const ucp_address_t*)(other + sizeof(head));
    check_status(ucp_ep_create(self.worker, &params, &self.ep),
                 "ucp_ep_create");
    check_status(ucp_ep_rkey_unpack(self.ep, other + sizeof(head) +
                                    head.address_len, &self.rkey),
                 "ucp_ep_rkey_unpack");
    self.remote_region  = head.region;
    self.remote_counter = head.counter;
    free(other);
}

/* Wait until the other process has come here, too. Not by a message: it would
 * be one more whose answer may be lost. */
static void meet(void)
{
    char path[1000];
    FILE *file;

    snprintf(path, sizeof(path), "%s/done.%d", self.dir, self.rank);
    file = fopen(path, "w");
    if ((file == NULL) || (fclose(file) != 0)) {
        fail("%s: %s", path, strerror(errno));
    }

    snprintf(path, sizeof(path), "%s/done.%d", self.dir, !self.rank);
    while (access(path, F_OK) != 0) {
        if (time(NULL) > self.deadline) {
            fail("the other process does not come to its end");
        }
        ucp_worker_progress(self.worker);
    }
}

/* Who closes while something of the other process is not answered leaves that
 * to a queue pair that is not there any more */
static void close_all(void)
{
    ucp_rkey_destroy(self.rkey);
    barrier();
    flush();
    meet();
    wait_for(ucp_ep_close_nbx(self.ep, &no_params), "ucp_ep_close_nbx");
    check_status(ucp_mem_unmap(self.context, self.memh), "ucp_mem_unmap");
    ucp_worker_destroy(self.worker);
    ucp_cleanup(self.context);
    free(self.region);
}

static void run_step(const char *name)
{
    unsigned i;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i) {
        if (strcmp(steps[i].name, name) == 0) {
            self.part = name;
            steps[i].run();
            barrier();
            return;
        }
    }
    fail("there is no step '%s'", name);
}

int main(int argc, char **argv)
{
    int i;

    self.part     = "start";
    self.deadline = time(NULL) + PATIENCE;
    if (argc < 4) {
        fail("usage: exchange DIRECTORY RANK STEP...");
    }
    self.dir  = argv[1];
    self.rank = atoi(argv[2]) != 0;

    open_all();
    connect_to_other();
    for (i = 3; i < argc; ++i) {
        run_step(argv[i]);
    }
    self.part = "end";
    close_all();

    printf("traffic %" PRIu64 " %" PRIu64 "\n", self.messages, self.bytes);
    printf("PASS exchange: UCX %s: %" PRIu64 " messages, %" PRIu64 " bytes\n",
           ucp_get_version_string(), self.messages, self.bytes);
    return EXIT_SUCCESS;
}
