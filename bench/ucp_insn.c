/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Performs UCP operations so that callgrind can count the instructions of each.
 * To be run by contrib/bench-ucp.sh, which also reads the result; the method is
 * that of uct_insn.c.
 *
 * With -s the workers' context is one of several threads, and has locks.
 * With -r it measures the rate of puts instead, in wall-clock time.
 */

#include "sim_uar.h"
#include "ucp_pair.h"

#include <ucm/api/ucm.h>
#include <valgrind/callgrind.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


#define UCP_INSN_TAG     5
#define UCP_INSN_AM_ID   7
#define UCP_INSN_SMALL   8
#define UCP_INSN_LARGE   1024
#define UCP_INSN_WARMUP  200 /* more than a queue's signalling period */
#define UCP_INSN_BATCH   256 /* puts between two flushes, of the rate */
#define UCP_INSN_SECONDS 1.0 /* for which the rate is measured */


/* As in uct_insn.c: a function of its own, which is not left by a jump. */
#define UCP_INSN_MEASURE __attribute__((noinline, noclone, unused))
#define UCP_INSN_RETURN(_value) \
    do { \
        __typeof__(_value) _result = (_value); \
        __asm__ volatile("" : "+r"(_result)); \
        return _result; \
    } while (0)

/* A measured call, with the doorbells in it executed as the program has
 * them. */
#define UCP_INSN_CALL(_result, _call) \
    do { \
        sim_uar_suspend(); \
        _result = (_call); \
        sim_uar_resume(); \
    } while (0)


typedef struct ucp_insn {
    ucp_pair_t pair;
    unsigned   received;
    int        is_connecting; /* there is an endpoint to nobody */
} ucp_insn_t;

typedef struct ucp_insn_op {
    const char   *name;
    ucs_status_t (*run)(ucp_insn_t *insn);
} ucp_insn_op_t;


static const ucp_request_param_t ucp_insn_no_param = {.op_attr_mask = 0};


/* UCX can't watch memory under valgrind, so it would have no registration cache
 * there. Nothing is unmapped here that has been registered. */
ucs_status_t ucm_set_event_handler(int events, int priority,
                                   ucm_event_callback_t cb, void *arg)
{
    return UCS_OK;
}


/* The calls that are measured. */

static UCP_INSN_MEASURE ucs_status_ptr_t
measure_put(ucp_insn_t *insn, size_t length)
{
    UCP_INSN_RETURN(ucp_put_nbx(insn->pair.ep[0], insn->pair.buffer[0], length,
                                (uintptr_t)insn->pair.buffer[1],
                                insn->pair.rkey, &ucp_insn_no_param));
}

static UCP_INSN_MEASURE ucs_status_ptr_t
measure_get(ucp_insn_t *insn, size_t length)
{
    UCP_INSN_RETURN(ucp_get_nbx(insn->pair.ep[0], insn->pair.buffer[0], length,
                                (uintptr_t)insn->pair.buffer[1],
                                insn->pair.rkey, &ucp_insn_no_param));
}

static UCP_INSN_MEASURE ucs_status_ptr_t
measure_fadd(ucp_insn_t *insn, uint64_t *reply,
             const ucp_request_param_t *param)
{
    static const uint64_t one = 1;

    UCP_INSN_RETURN(ucp_atomic_op_nbx(insn->pair.ep[0], UCP_ATOMIC_OP_ADD, &one,
                                      1, (uintptr_t)insn->pair.buffer[1],
                                      insn->pair.rkey, param));
}

static UCP_INSN_MEASURE ucs_status_ptr_t
measure_tag_send(ucp_insn_t *insn, size_t length,
                 const ucp_request_param_t *param)
{
    UCP_INSN_RETURN(ucp_tag_send_nbx(insn->pair.ep[0], insn->pair.buffer[0],
                                     length, UCP_INSN_TAG, param));
}

static UCP_INSN_MEASURE ucs_status_ptr_t measure_tag_recv(ucp_insn_t *insn)
{
    UCP_INSN_RETURN(ucp_tag_recv_nbx(insn->pair.worker[1], insn->pair.buffer[1],
                                     UCP_INSN_SMALL, UCP_INSN_TAG,
                                     (ucp_tag_t)-1, &ucp_insn_no_param));
}

static UCP_INSN_MEASURE ucs_status_ptr_t
measure_am_send(ucp_insn_t *insn, size_t length,
                const ucp_request_param_t *param)
{
    UCP_INSN_RETURN(ucp_am_send_nbx(insn->pair.ep[0], UCP_INSN_AM_ID, NULL, 0,
                                    insn->pair.buffer[0], length, param));
}

static UCP_INSN_MEASURE ucs_status_ptr_t measure_flush(ucp_ep_h ep)
{
    UCP_INSN_RETURN(ucp_ep_flush_nbx(ep, &ucp_insn_no_param));
}

static UCP_INSN_MEASURE ucs_status_ptr_t
measure_flush_worker(ucp_worker_h worker)
{
    UCP_INSN_RETURN(ucp_worker_flush_nbx(worker, &ucp_insn_no_param));
}

static UCP_INSN_MEASURE unsigned measure_progress(ucp_worker_h worker)
{
    UCP_INSN_RETURN(ucp_worker_progress(worker));
}

static UCP_INSN_MEASURE ucs_status_t
measure_rkey_unpack(ucp_insn_t *insn, ucp_rkey_h *rkey_p)
{
    UCP_INSN_RETURN(ucp_ep_rkey_unpack(insn->pair.ep[0],
                                       insn->pair.packed_rkey, rkey_p));
}


/* One of each, with what has to happen around it. */

static ucs_status_t ucp_insn_run_put(ucp_insn_t *insn, size_t length)
{
    ucs_status_ptr_t request;

    UCP_INSN_CALL(request, measure_put(insn, length));
    return ucp_pair_wait(&insn->pair, request);
}

static ucs_status_t ucp_insn_run_put_small(ucp_insn_t *insn)
{
    return ucp_insn_run_put(insn, UCP_INSN_SMALL);
}

static ucs_status_t ucp_insn_run_put_large(ucp_insn_t *insn)
{
    return ucp_insn_run_put(insn, UCP_INSN_LARGE);
}

static ucs_status_t ucp_insn_run_get(ucp_insn_t *insn, size_t length)
{
    ucs_status_ptr_t request;

    UCP_INSN_CALL(request, measure_get(insn, length));
    return ucp_pair_wait(&insn->pair, request);
}

static ucs_status_t ucp_insn_run_get_small(ucp_insn_t *insn)
{
    return ucp_insn_run_get(insn, UCP_INSN_SMALL);
}

static ucs_status_t ucp_insn_run_get_large(ucp_insn_t *insn)
{
    return ucp_insn_run_get(insn, UCP_INSN_LARGE);
}

static ucs_status_t ucp_insn_run_fadd(ucp_insn_t *insn)
{
    uint64_t reply            = 0;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype     = ucp_dt_make_contig(sizeof(reply)),
        .reply_buffer = &reply
    };
    ucs_status_ptr_t request;

    UCP_INSN_CALL(request, measure_fadd(insn, &reply, &param));
    return ucp_pair_wait(&insn->pair, request);
}

/* A message that is sent, and received by a request posted before. What is
 * measured is one of the three steps. */
static ucs_status_t ucp_insn_run_tag(ucp_insn_t *insn, int measured)
{
    ucs_status_ptr_t send, recv;
    ucs_status_t status;

    if (measured == 1) {
        UCP_INSN_CALL(recv, measure_tag_recv(insn));
    } else {
        recv = ucp_tag_recv_nbx(insn->pair.worker[1], insn->pair.buffer[1],
                                UCP_INSN_SMALL, UCP_INSN_TAG, (ucp_tag_t)-1,
                                &ucp_insn_no_param);
    }

    if (measured == 0) {
        UCP_INSN_CALL(send, measure_tag_send(insn, UCP_INSN_SMALL,
                                             &ucp_insn_no_param));
    } else {
        send = ucp_tag_send_nbx(insn->pair.ep[0], insn->pair.buffer[0],
                                UCP_INSN_SMALL, UCP_INSN_TAG,
                                &ucp_insn_no_param);
    }

    if (measured == 2) {
        unsigned count;
        UCP_INSN_CALL(count, measure_progress(insn->pair.worker[1]));
        /* The first is sent when the endpoint is connected. */
        if ((count == 0) && !UCS_PTR_IS_PTR(send)) {
            return UCS_ERR_NO_PROGRESS;
        }
    }

    status = ucp_pair_wait(&insn->pair, send);
    return (status == UCS_OK) ? ucp_pair_wait(&insn->pair, recv) : status;
}

static ucs_status_t ucp_insn_run_tag_send(ucp_insn_t *insn)
{
    return ucp_insn_run_tag(insn, 0);
}

static ucs_status_t ucp_insn_run_tag_post(ucp_insn_t *insn)
{
    return ucp_insn_run_tag(insn, 1);
}

static ucs_status_t ucp_insn_run_tag_arrival(ucp_insn_t *insn)
{
    return ucp_insn_run_tag(insn, 2);
}

/* A message there and one back. What is measured is sending the first, or
 * posting its receive and progressing until it has come. */
static ucs_status_t ucp_insn_run_pingpong(ucp_insn_t *insn, int is_arrival)
{
    ucs_status_ptr_t send, recv;
    ucs_status_t status;
    unsigned count;

    if (is_arrival) {
        UCP_INSN_CALL(recv, measure_tag_recv(insn));
        send = ucp_tag_send_nbx(insn->pair.ep[0], insn->pair.buffer[0],
                                UCP_INSN_SMALL, UCP_INSN_TAG,
                                &ucp_insn_no_param);
        /* Not the first, which is sent when the endpoint is connected */
        while (!UCS_PTR_IS_PTR(send) && UCS_PTR_IS_PTR(recv) &&
               (ucp_request_check_status(recv) == UCS_INPROGRESS)) {
            UCP_INSN_CALL(count, measure_progress(insn->pair.worker[1]));
            (void)count;
        }
    } else {
        recv = ucp_tag_recv_nbx(insn->pair.worker[1], insn->pair.buffer[1],
                                UCP_INSN_SMALL, UCP_INSN_TAG, (ucp_tag_t)-1,
                                &ucp_insn_no_param);
        UCP_INSN_CALL(send, measure_tag_send(insn, UCP_INSN_SMALL,
                                             &ucp_insn_no_param));
    }

    status = ucp_pair_wait(&insn->pair, send);
    if (status == UCS_OK) {
        status = ucp_pair_wait(&insn->pair, recv);
    }
    if (status != UCS_OK) {
        return status;
    }

    recv   = ucp_tag_recv_nbx(insn->pair.worker[0], insn->pair.buffer[0],
                              UCP_INSN_SMALL, UCP_INSN_TAG, (ucp_tag_t)-1,
                              &ucp_insn_no_param);
    send   = ucp_tag_send_nbx(insn->pair.ep[1], insn->pair.buffer[1],
                              UCP_INSN_SMALL, UCP_INSN_TAG, &ucp_insn_no_param);
    status = ucp_pair_wait(&insn->pair, send);
    return (status == UCS_OK) ? ucp_pair_wait(&insn->pair, recv) : status;
}

static ucs_status_t ucp_insn_run_pingpong_send(ucp_insn_t *insn)
{
    return ucp_insn_run_pingpong(insn, 0);
}

static ucs_status_t ucp_insn_run_pingpong_recv(ucp_insn_t *insn)
{
    return ucp_insn_run_pingpong(insn, 1);
}

static ucs_status_t
ucp_insn_receive(void *arg, const void *header, size_t header_length,
                 void *data, size_t length, const ucp_am_recv_param_t *param)
{
    ++((ucp_insn_t*)arg)->received;
    return UCS_OK;
}

/* Sending an active message or its arrival is measured. */
static ucs_status_t ucp_insn_run_am(ucp_insn_t *insn, int is_arrival)
{
    unsigned before = insn->received;
    ucs_status_ptr_t request;
    ucs_status_t status;
    unsigned count;

    if (is_arrival) {
        request = ucp_am_send_nbx(insn->pair.ep[0], UCP_INSN_AM_ID, NULL, 0,
                                  insn->pair.buffer[0], UCP_INSN_SMALL,
                                  &ucp_insn_no_param);
        UCP_INSN_CALL(count, measure_progress(insn->pair.worker[1]));
        /* The first is sent when the endpoint is connected. */
        if ((count == 0) && !UCS_PTR_IS_PTR(request)) {
            return UCS_ERR_NO_PROGRESS;
        }
    } else {
        UCP_INSN_CALL(request, measure_am_send(insn, UCP_INSN_SMALL,
                                               &ucp_insn_no_param));
    }

    status = ucp_pair_wait(&insn->pair, request);
    while ((status == UCS_OK) && (insn->received == before)) {
        ucp_pair_progress(&insn->pair);
    }

    return status;
}

static ucs_status_t ucp_insn_run_am_send(ucp_insn_t *insn)
{
    return ucp_insn_run_am(insn, 0);
}

static ucs_status_t ucp_insn_run_am_arrival(ucp_insn_t *insn)
{
    return ucp_insn_run_am(insn, 1);
}

/* From the call until the request is complete. The other worker, which is not
 * measured, is progressed for the first message: it connects. */
static ucs_status_t
ucp_insn_measure_completion(ucp_insn_t *insn, ucs_status_ptr_t request)
{
    ucs_status_t status;
    unsigned count;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        UCP_INSN_CALL(count, measure_progress(insn->pair.worker[0]));
        (void)count;
        ucp_worker_progress(insn->pair.worker[1]);
    }

    ucp_request_free(request);
    return status;
}

static ucs_status_t ucp_insn_put_unmeasured(ucp_insn_t *insn)
{
    return ucp_pair_wait(&insn->pair,
                         ucp_put_nbx(insn->pair.ep[0], insn->pair.buffer[0],
                                     UCP_INSN_SMALL,
                                     (uintptr_t)insn->pair.buffer[1],
                                     insn->pair.rkey, &ucp_insn_no_param));
}

static ucs_status_t ucp_insn_run_flush_none(ucp_insn_t *insn)
{
    ucs_status_ptr_t request;

    UCP_INSN_CALL(request, measure_flush(insn->pair.ep[0]));
    return ucp_insn_measure_completion(insn, request);
}

static ucs_status_t ucp_insn_run_flush_put(ucp_insn_t *insn)
{
    ucs_status_t status = ucp_insn_put_unmeasured(insn);

    return (status == UCS_OK) ? ucp_insn_run_flush_none(insn) : status;
}

/* What no transport can expect: one more than the puts of flush_put. */
static ucs_status_t ucp_insn_run_flush_puts(ucp_insn_t *insn)
{
    ucs_status_t status = ucp_insn_put_unmeasured(insn);

    return (status == UCS_OK) ? ucp_insn_run_flush_put(insn) : status;
}

static ucs_status_t ucp_insn_run_flush_worker_none(ucp_insn_t *insn)
{
    ucs_status_ptr_t request;

    UCP_INSN_CALL(request, measure_flush_worker(insn->pair.worker[0]));
    return ucp_insn_measure_completion(insn, request);
}

static ucs_status_t ucp_insn_run_flush_worker_put(ucp_insn_t *insn)
{
    ucs_status_t status = ucp_insn_put_unmeasured(insn);

    return (status == UCS_OK) ? ucp_insn_run_flush_worker_none(insn) : status;
}

/* Sending a tagged message that is not short, until the call returns; it is
 * received by a request posted before. */
static ucs_status_t ucp_insn_run_tag_large(ucp_insn_t *insn, size_t length)
{
    ucs_status_ptr_t send, recv;
    ucs_status_t status;

    recv = ucp_tag_recv_nbx(insn->pair.worker[1], insn->pair.buffer[1], length,
                            UCP_INSN_TAG, (ucp_tag_t)-1, &ucp_insn_no_param);
    UCP_INSN_CALL(send, measure_tag_send(insn, length, &ucp_insn_no_param));
    status = ucp_pair_wait(&insn->pair, send);
    return (status == UCS_OK) ? ucp_pair_wait(&insn->pair, recv) : status;
}

/* The same for an active message. */
static ucs_status_t ucp_insn_run_am_large(ucp_insn_t *insn, size_t length)
{
    unsigned before = insn->received;
    ucs_status_ptr_t request;
    ucs_status_t status;

    UCP_INSN_CALL(request, measure_am_send(insn, length, &ucp_insn_no_param));
    status = ucp_pair_wait(&insn->pair, request);
    while ((status == UCS_OK) && (insn->received == before)) {
        ucp_pair_progress(&insn->pair);
    }

    return status;
}

#define UCP_INSN_RUN_LARGE(_kilobytes) \
    static ucs_status_t ucp_insn_run_tag_##_kilobytes##k(ucp_insn_t *insn) \
    { \
        return ucp_insn_run_tag_large(insn, (_kilobytes) * 1024); \
    } \
    \
    static ucs_status_t ucp_insn_run_am_##_kilobytes##k(ucp_insn_t *insn) \
    { \
        return ucp_insn_run_am_large(insn, (_kilobytes) * 1024); \
    }

UCP_INSN_RUN_LARGE(1)
UCP_INSN_RUN_LARGE(2)
UCP_INSN_RUN_LARGE(4)
UCP_INSN_RUN_LARGE(8)

/* Sending from the user's buffer, until it may be changed again: the user has
 * registered it, or UCP asks its cache for the registration. */
static ucs_status_t ucp_insn_run_zcopy(ucp_insn_t *insn, int is_am,
                                       int has_memh, size_t length)
{
    const ucp_request_param_t param = {
        .op_attr_mask = has_memh ? UCP_OP_ATTR_FIELD_MEMH : 0,
        .memh         = insn->pair.memh[0]
    };
    unsigned before                 = insn->received;
    ucs_status_ptr_t send, recv     = NULL;
    ucs_status_t status;

    if (is_am) {
        UCP_INSN_CALL(send, measure_am_send(insn, length, &param));
    } else {
        recv = ucp_tag_recv_nbx(insn->pair.worker[1], insn->pair.buffer[1],
                                length, UCP_INSN_TAG, (ucp_tag_t)-1,
                                &ucp_insn_no_param);
        UCP_INSN_CALL(send, measure_tag_send(insn, length, &param));
    }

    status = ucp_insn_measure_completion(insn, send);
    if (!is_am) {
        return (status == UCS_OK) ? ucp_pair_wait(&insn->pair, recv) : status;
    }

    while ((status == UCS_OK) && (insn->received == before)) {
        ucp_pair_progress(&insn->pair);
    }

    return status;
}

#define UCP_INSN_RUN_ZCOPY(_kilobytes) \
    static ucs_status_t ucp_insn_run_tag_zcopy_##_kilobytes##k( \
            ucp_insn_t *insn) \
    { \
        return ucp_insn_run_zcopy(insn, 0, 1, (_kilobytes) * 1024); \
    } \
    \
    static ucs_status_t ucp_insn_run_am_zcopy_##_kilobytes##k( \
            ucp_insn_t *insn) \
    { \
        return ucp_insn_run_zcopy(insn, 1, 1, (_kilobytes) * 1024); \
    }

UCP_INSN_RUN_ZCOPY(1)
UCP_INSN_RUN_ZCOPY(8)

static ucs_status_t ucp_insn_run_tag_cached_8k(ucp_insn_t *insn)
{
    return ucp_insn_run_zcopy(insn, 0, 0, 8192);
}

static ucs_status_t ucp_insn_run_am_cached_8k(ucp_insn_t *insn)
{
    return ucp_insn_run_zcopy(insn, 1, 0, 8192);
}

/* Acknowledgements of what came before may be late on a busy machine. */
static void ucp_insn_settle(ucp_insn_t *insn)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    unsigned quiet                     = 0;

    while (quiet < 10) {
        if (ucp_worker_progress(insn->pair.worker[0]) +
            ucp_worker_progress(insn->pair.worker[1]) > 0) {
            quiet = 0;
        } else {
            ++quiet;
            nanosleep(&pause, NULL);
        }
    }
}

static ucs_status_t ucp_insn_run_progress_idle(ucp_insn_t *insn)
{
    unsigned count;

    ucp_insn_settle(insn);
    UCP_INSN_CALL(count, measure_progress(insn->pair.worker[0]));
    return (count == 0) ? UCS_OK : UCS_ERR_BUSY;
}

/* An endpoint to a worker that is gone: it connects for as long as the wireup
 * interface tries. It is closed with its worker. */
static ucs_status_t ucp_insn_connect_to_nobody(ucp_insn_t *insn)
{
    ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_ep_params_t ep_params         = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
    };
    ucp_address_t *address;
    ucp_worker_h gone;
    ucs_status_t status;
    size_t length;
    void *copy;
    ucp_ep_h ep;

    status = ucp_worker_create(insn->pair.context, &worker_params, &gone);
    if (status != UCS_OK) {
        return status;
    }

    status = ucp_worker_get_address(gone, &address, &length);
    if (status != UCS_OK) {
        goto out_destroy_worker;
    }

    copy = malloc(length);
    if (copy == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto out_release_address;
    }

    memcpy(copy, address, length);
out_release_address:
    ucp_worker_release_address(gone, address);
out_destroy_worker:
    ucp_worker_destroy(gone);
    if (status != UCS_OK) {
        return status;
    }

    ep_params.address = copy;
    status            = ucp_ep_create(insn->pair.worker[0], &ep_params, &ep);
    free(copy);
    return status;
}

static ucs_status_t ucp_insn_run_progress_connecting(ucp_insn_t *insn)
{
    unsigned __attribute__((unused)) count;
    ucs_status_t status;

    if (!insn->is_connecting) {
        status = ucp_insn_connect_to_nobody(insn);
        if (status != UCS_OK) {
            return status;
        }
        insn->is_connecting = 1;
    }

    UCP_INSN_CALL(count, measure_progress(insn->pair.worker[0]));
    return UCS_OK;
}

static ucs_status_t ucp_insn_run_rkey_unpack(ucp_insn_t *insn)
{
    ucs_status_t status;
    ucp_rkey_h rkey;

    UCP_INSN_CALL(status, measure_rkey_unpack(insn, &rkey));
    if (status == UCS_OK) {
        ucp_rkey_destroy(rkey);
    }

    return status;
}

static const ucp_insn_op_t ucp_insn_ops[] = {
    {"put_8",             ucp_insn_run_put_small},
    {"put_1k",            ucp_insn_run_put_large},
    {"get_8",             ucp_insn_run_get_small},
    {"get_1k",            ucp_insn_run_get_large},
    {"fadd",              ucp_insn_run_fadd},
    {"tag_send",          ucp_insn_run_tag_send},
    {"tag_recv_post",     ucp_insn_run_tag_post},
    {"tag_recv_progress", ucp_insn_run_tag_arrival},
    {"tag_pingpong_send", ucp_insn_run_pingpong_send},
    {"tag_pingpong_recv", ucp_insn_run_pingpong_recv},
    {"am_send",           ucp_insn_run_am_send},
    {"am_recv_progress",  ucp_insn_run_am_arrival},
    {"tag_send_1k",       ucp_insn_run_tag_1k},
    {"tag_send_2k",       ucp_insn_run_tag_2k},
    {"tag_send_4k",       ucp_insn_run_tag_4k},
    {"tag_send_8k",       ucp_insn_run_tag_8k},
    {"am_send_1k",        ucp_insn_run_am_1k},
    {"am_send_2k",        ucp_insn_run_am_2k},
    {"am_send_4k",        ucp_insn_run_am_4k},
    {"am_send_8k",        ucp_insn_run_am_8k},
    {"tag_send_zcopy_1k", ucp_insn_run_tag_zcopy_1k},
    {"tag_send_zcopy_8k", ucp_insn_run_tag_zcopy_8k},
    {"am_send_zcopy_1k",  ucp_insn_run_am_zcopy_1k},
    {"am_send_zcopy_8k",  ucp_insn_run_am_zcopy_8k},
    {"tag_send_cached_8k", ucp_insn_run_tag_cached_8k},
    {"am_send_cached_8k", ucp_insn_run_am_cached_8k},
    {"flush_one_put",     ucp_insn_run_flush_put},
    {"flush_two_puts",    ucp_insn_run_flush_puts},
    {"flush_nothing",     ucp_insn_run_flush_none},
    {"worker_flush_one_put", ucp_insn_run_flush_worker_put},
    {"worker_flush_nothing", ucp_insn_run_flush_worker_none},
    {"progress_idle",     ucp_insn_run_progress_idle},
    {"rkey_unpack",       ucp_insn_run_rkey_unpack},
    {"progress_connecting", ucp_insn_run_progress_connecting}, /* the last */
    {NULL}
};


static ucs_status_t ucp_insn_quiesce(ucp_insn_t *insn)
{
    /* What connects to nobody is never flushed. */
    ucs_status_t status = insn->is_connecting ? UCS_OK :
                          ucp_pair_flush(&insn->pair);
    unsigned i;

    for (i = 0; i < UCP_INSN_WARMUP; ++i) {
        ucp_pair_progress(&insn->pair);
    }

    return status;
}

static ucs_status_t ucp_insn_repeat(ucp_insn_t *insn, const ucp_insn_op_t *op,
                                    unsigned count)
{
    ucs_status_t status = UCS_OK;

    while ((count-- > 0) && (status == UCS_OK)) {
        status = op->run(insn);
        ucp_pair_progress(&insn->pair);
    }

    return status;
}

static ucs_status_t ucp_insn_measure(ucp_insn_t *insn, const ucp_insn_op_t *op,
                                     unsigned count)
{
    ucs_status_t status;

    status = ucp_insn_repeat(insn, op, UCP_INSN_WARMUP);
    if (status == UCS_OK) {
        status = ucp_insn_quiesce(insn);
    }
    if ((status != UCS_OK) || (sim_uar_find() < 0)) {
        return (status == UCS_OK) ? UCS_ERR_NO_ELEM : status;
    }

    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    status = ucp_insn_repeat(insn, op, count);
    if (status != UCS_OK) {
        return status;
    }
    CALLGRIND_DUMP_STATS_AT(op->name);
    CALLGRIND_STOP_INSTRUMENTATION;

    return ucp_insn_quiesce(insn);
}

static double ucp_insn_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

/* Millions of 8-byte puts per second, flushed after each batch. */
static ucs_status_t ucp_insn_rate(ucp_insn_t *insn, double *rate_p)
{
    double start       = ucp_insn_time(), elapsed;
    unsigned long puts = 0;
    ucs_status_t status;
    unsigned i;

    do {
        for (i = 0; i < UCP_INSN_BATCH; ++i) {
            status = ucp_insn_put_unmeasured(insn);
            if (status != UCS_OK) {
                return status;
            }
        }

        status = ucp_pair_wait(&insn->pair,
                               ucp_ep_flush_nbx(insn->pair.ep[0],
                                                &ucp_insn_no_param));
        if (status != UCS_OK) {
            return status;
        }

        puts    += UCP_INSN_BATCH;
        elapsed  = ucp_insn_time() - start;
    } while (elapsed < UCP_INSN_SECONDS);

    *rate_p = puts / elapsed * 1e-6;
    return UCS_OK;
}

static int ucp_insn_is_wanted(const char *name, char **names)
{
    int any = (*names == NULL);

    for (; *names != NULL; ++names) {
        any |= !strcmp(name, *names);
    }

    return any;
}

static ucs_status_t ucp_insn_run_all(ucp_insn_t *insn, unsigned count,
                                     char **names)
{
    const ucp_insn_op_t *op;
    ucs_status_t status;

    for (op = ucp_insn_ops; op->name != NULL; ++op) {
        if (!ucp_insn_is_wanted(op->name, names)) {
            continue;
        }

        status = ucp_insn_measure(insn, op, count);
        if (status != UCS_OK) {
            fprintf(stderr, "%s failed: %s\n", op->name,
                    ucs_status_string(status));
            return status;
        }

        printf("%s %u\n", op->name, count);
        fflush(stdout);
    }

    return UCS_OK;
}

static ucs_status_t ucp_insn_run_rate(ucp_insn_t *insn)
{
    ucs_status_t status;
    double rate;

    status = ucp_insn_rate(insn, &rate);
    if (status != UCS_OK) {
        fprintf(stderr, "puts failed: %s\n", ucs_status_string(status));
        return status;
    }

    printf("%.4f\n", rate);
    return UCS_OK;
}

static void ucp_insn_usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [-r] [-s] [-n COUNT] [OPERATION...]\nOperations:",
            program);
    for (const ucp_insn_op_t *op = ucp_insn_ops; op->name != NULL; ++op) {
        fprintf(stderr, " %s", op->name);
    }
    fprintf(stderr, "\n");
}

int main(int argc, char **argv)
{
    static ucp_insn_t insn;
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = UCP_INSN_AM_ID,
        .cb         = ucp_insn_receive,
        .arg        = &insn
    };
    unsigned count = 256;
    int is_rate    = 0;
    ucs_status_t status;
    int option;

    while ((option = getopt(argc, argv, "n:rs")) != -1) {
        switch (option) {
        case 'n':
            count = strtoul(optarg, NULL, 0);
            break;
        case 'r':
            is_rate = 1;
            break;
        case 's':
            insn.pair.is_shared = 1;
            break;
        default:
            ucp_insn_usage(argv[0]);
            return 2;
        }
    }

    if (count == 0) {
        ucp_insn_usage(argv[0]);
        return 2;
    }

    if (ucp_pair_open(&insn.pair) != UCS_OK) {
        return 1;
    }

    status = ucp_worker_set_am_recv_handler(insn.pair.worker[1], &handler);
    if (status == UCS_OK) {
        status = is_rate ? ucp_insn_run_rate(&insn) :
                           ucp_insn_run_all(&insn, count, &argv[optind]);
    }

    ucp_pair_close(&insn.pair);
    return (status == UCS_OK) ? 0 : 1;
}
