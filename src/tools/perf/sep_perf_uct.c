/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_uct.h>
#include <tools/perf/sep_perf_device.h>
#include <tools/perf/sep_perf_measure.h>
#include <tools/perf/sep_perf_uct_iface.h>
#include <tools/plan/uars.h>

#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/queue/sep_uuar.h>

#include <stdlib.h>
#include <string.h>


/** Something that is waited for. */
typedef struct sep_perf_uct_op {
    uct_completion_t          comp;
    struct sep_perf_uct_worker *worker;
    unsigned                  covered; /**< Messages for which it stands */
    uint64_t                  result;  /**< Of an atomic */
} sep_perf_uct_op_t;

/** A worker, and its endpoint. */
typedef struct sep_perf_uct_worker {
    sep_perf_uct_iface_t iface;
    sep_perf_thread_t    *thread;
    sep_perf_uct_op_t    *ops;      /**< As many as may be outstanding */
    unsigned             num_ops;
    unsigned             next_op;
    unsigned             unflushed; /**< Messages whose flush had no room */
    ucs_status_t         error;
    uct_iov_t            iov;
    const uint8_t        *data;     /**< Of the next active message */
    unsigned             shift;     /**< Where it begins in the buffer */
    uint64_t             remote;
    uct_rkey_t           rkey;
    sep_model_op_t       op;
    size_t               bytes;
    int                  is_short;
    int                  is_copied; /**< Reads too short for zcopy */
} sep_perf_uct_worker_t;

/** All of a row. */
typedef struct sep_perf_uct {
    const sep_perf_options_t *options;
    const sep_perf_row_t     *row;
    sep_perf_uct_md_t        md;
    sep_perf_uct_worker_t    *workers;
    uint8_t                  *buffer;
    size_t                   stride;
    uct_mem_h                memh;
    sep_perf_uct_target_t    target;
    uct_rkey_bundle_t        rkey;
    unsigned long            uars;      /**< Before */
    unsigned long            memory;
    sep_perf_group_t         group;
} sep_perf_uct_t;


/*
 * Threads
 */

static void sep_perf_uct_completed(uct_completion_t *comp)
{
    sep_perf_uct_op_t *op = ucs_container_of(comp, sep_perf_uct_op_t, comp);

    if (comp->status != UCS_OK) {
        op->worker->error = comp->status;
    }
    sep_perf_thread_done(op->worker->thread, op->covered);
}

/* The ones before it complete first, so the oldest is free */
static sep_perf_uct_op_t *
sep_perf_uct_next_op(sep_perf_uct_worker_t *worker, unsigned covered)
{
    sep_perf_uct_op_t *op = &worker->ops[worker->next_op];

    op->comp.func   = sep_perf_uct_completed;
    op->comp.count  = 1;
    op->comp.status = UCS_OK;
    op->worker      = worker;
    op->covered     = covered;
    return op;
}

static void sep_perf_uct_use_op(sep_perf_uct_worker_t *worker)
{
    if (++worker->next_op == worker->num_ops) {
        worker->next_op = 0;
    }
}

/* Short messages complete with what is flushed behind them */
static int sep_perf_uct_flush(sep_perf_uct_worker_t *worker)
{
    sep_perf_uct_op_t *op = sep_perf_uct_next_op(worker, worker->unflushed);
    ucs_status_t status   = uct_ep_flush(worker->iface.ep, 0, &op->comp);

    if (status == UCS_ERR_NO_RESOURCE) {
        return 0;
    }
    worker->unflushed = 0;
    if (status == UCS_INPROGRESS) {
        sep_perf_uct_use_op(worker);
        return 0;
    }
    if (status != UCS_OK) {
        return sep_perf_uct_fail("a flush", status);
    }
    sep_perf_thread_done(worker->thread, op->covered);
    return 0;
}

static size_t sep_perf_uct_pack(void *dest, void *arg)
{
    const sep_perf_uct_worker_t *worker = arg;

    memcpy(dest, worker->data, worker->bytes);
    return worker->bytes;
}

static void sep_perf_uct_unpack(void *arg, const void *data, size_t length)
{
    const sep_perf_uct_worker_t *worker = arg;

    memcpy(worker->iov.buffer, data, length);
}

static ucs_status_t
sep_perf_uct_post_short(sep_perf_uct_worker_t *worker)
{
    ssize_t length;

    worker->data = (const uint8_t*)worker->iov.buffer + worker->shift;
    if (worker->op == SEP_MODEL_WRITE) {
        return uct_ep_put_short(worker->iface.ep, worker->iov.buffer,
                                worker->bytes, worker->remote, worker->rkey);
    }
    if (worker->is_short) {
        return uct_ep_am_short(worker->iface.ep, SEP_PERF_UCT_AM_ID, 0,
                               worker->data, worker->bytes);
    }
    length = uct_ep_am_bcopy(worker->iface.ep, SEP_PERF_UCT_AM_ID,
                             sep_perf_uct_pack, worker, 0);
    return (length >= 0) ? UCS_OK : (ucs_status_t)length;
}

static ucs_status_t
sep_perf_uct_post_long(sep_perf_uct_worker_t *worker, sep_perf_uct_op_t *op)
{
    switch (worker->op) {
    case SEP_MODEL_READ:
        if (worker->is_copied) {
            return uct_ep_get_bcopy(worker->iface.ep, sep_perf_uct_unpack,
                                    worker, worker->bytes, worker->remote,
                                    worker->rkey, &op->comp);
        }
        return uct_ep_get_zcopy(worker->iface.ep, &worker->iov, 1,
                                worker->remote, worker->rkey, &op->comp);
    case SEP_MODEL_ATOMIC:
        return uct_ep_atomic64_fetch(worker->iface.ep, UCT_ATOMIC_OP_ADD, 1,
                                     &op->result, worker->remote, worker->rkey,
                                     &op->comp);
    default:
        return uct_ep_put_zcopy(worker->iface.ep, &worker->iov, 1,
                                worker->remote, worker->rkey, &op->comp);
    }
}

/* @return 0, 1 if there is no room, or -1 after a message */
static int sep_perf_uct_post_one(sep_perf_uct_worker_t *worker)
{
    sep_perf_thread_t *thread = worker->thread;
    sep_perf_uct_op_t *op     = NULL;
    ucs_status_t status;
    unsigned covered;

    if (worker->is_short || (worker->op == SEP_MODEL_SEND)) {
        status = sep_perf_uct_post_short(worker);
    } else {
        op     = sep_perf_uct_next_op(worker, 1);
        status = sep_perf_uct_post_long(worker, op);
    }
    if (status == UCS_ERR_NO_RESOURCE) {
        return 1;
    } else if (status < 0) {
        return sep_perf_uct_fail("a message can't be sent", status);
    }

    if ((worker->op == SEP_MODEL_SEND) &&
        (++worker->shift == SEP_PERF_UCT_AM_SHIFTS)) {
        worker->shift = 0;
    }
    covered = sep_perf_thread_next(thread);
    if (op == NULL) {
        worker->unflushed += covered;
        return (covered > 0) ? sep_perf_uct_flush(worker) : 0;
    }
    if (status == UCS_INPROGRESS) {
        sep_perf_uct_use_op(worker);
    } else {
        sep_perf_thread_done(thread, 1);
    }
    return 0;
}

/* Those for which there was no room come with the next list */
static int sep_perf_uct_post(sep_perf_thread_t *thread, unsigned count)
{
    sep_perf_uct_worker_t *worker = thread->priv;
    unsigned i;
    int ret;

    for (i = 0; i < count; ++i) {
        if (worker->unflushed > 0) {
            return 1;
        }
        ret = sep_perf_uct_post_one(worker);
        if (ret != 0) {
            return ((ret > 0) && (i > 0)) ? 0 : ret;
        }
    }
    return 0;
}

static int sep_perf_uct_poll(sep_perf_thread_t *thread)
{
    sep_perf_uct_worker_t *worker = thread->priv;

    uct_worker_progress(worker->iface.worker);
    if (worker->error != UCS_OK) {
        return sep_perf_uct_fail("a message failed", worker->error);
    }
    return (worker->unflushed > 0) ? sep_perf_uct_flush(worker) : 0;
}

static const sep_perf_api_t sep_perf_uct_api = {
    .post = sep_perf_uct_post,
    .poll = sep_perf_uct_poll
};

/*
 * A row
 */

/* What the row says, for the transport that knows it, unless the user says
 * something else */
static void sep_perf_uct_configure(const sep_perf_options_t *options,
                                   const sep_perf_row_t *row)
{
    char number[16];

    if (strcmp(options->tl, UCT_SEP_TL_NAME) != 0) {
        return;
    }
    setenv("UCX_SEP_CATEGORY", row->sharing->name, 1);
    snprintf(number, sizeof(number), "%u", row->postlist);
    setenv("UCX_SEP_TX_POSTLIST", number, 0);
    snprintf(number, sizeof(number), "%u", row->signal);
    setenv("UCX_SEP_TX_CQ_MODERATION", number, 0);
    if (!(row->features & SEP_PERF_FEATURE_BLUEFLAME)) {
        setenv("UCX_SEP_TX_POST", "db", 0);
    }
}

/* Whether the transport can do it, and how. @return 0, or -1 after a message */
static int sep_perf_uct_choose(const sep_perf_uct_t *uct,
                               sep_perf_uct_worker_t *worker)
{
    const uct_iface_attr_t *attr = &worker->iface.attr;
    uint64_t flags               = attr->cap.flags;
    size_t bytes                 = uct->options->bytes;
    int wants_short              = uct->row->features & SEP_PERF_FEATURE_INLINE;
    int is_able;

    worker->op    = uct->options->op;
    worker->bytes = bytes;
    switch (worker->op) {
    case SEP_MODEL_WRITE:
        worker->is_short = wants_short && (flags & UCT_IFACE_FLAG_PUT_SHORT) &&
                           (bytes <= attr->cap.put.max_short);
        is_able = worker->is_short || ((flags & UCT_IFACE_FLAG_PUT_ZCOPY) &&
                                       (bytes <= attr->cap.put.max_zcopy));
        break;
    case SEP_MODEL_READ:
        worker->is_copied = (bytes < attr->cap.get.min_zcopy);
        is_able           = worker->is_copied ?
                            ((flags & UCT_IFACE_FLAG_GET_BCOPY) &&
                             (bytes <= attr->cap.get.max_bcopy)) :
                            ((flags & UCT_IFACE_FLAG_GET_ZCOPY) &&
                             (bytes <= attr->cap.get.max_zcopy));
        break;
    case SEP_MODEL_SEND:
        worker->is_short = wants_short && (flags & UCT_IFACE_FLAG_AM_SHORT) &&
                           ((bytes + 8) <= attr->cap.am.max_short);
        is_able = worker->is_short || ((flags & UCT_IFACE_FLAG_AM_BCOPY) &&
                                       (bytes <= attr->cap.am.max_bcopy));
        break;
    default:
        is_able = (attr->cap.atomic64.fop_flags &
                   UCS_BIT(UCT_ATOMIC_OP_ADD)) != 0;
        break;
    }
    if (!is_able) {
        fprintf(stderr, "sep_perf: %s has no %s of %zu bytes\n",
                uct->md.tl, sep_model_op_names[worker->op], bytes);
        return -1;
    }
    return 0;
}

/* Bytes of a thread's buffer: active messages begin elsewhere each time */
static size_t sep_perf_uct_room(const sep_perf_options_t *options)
{
    return options->bytes + ((options->op == SEP_MODEL_SEND) ?
                             (SEP_PERF_UCT_AM_SHIFTS - 1) : 0);
}

static int sep_perf_uct_open_thread(sep_perf_uct_t *uct, unsigned i, int fd)
{
    sep_perf_uct_worker_t *worker = &uct->workers[i];
    static sep_perf_uct_inbox_t inbox;
    sep_perf_uct_addr_t addr;

    if ((sep_perf_uct_iface_open(&uct->md, &inbox, &worker->iface) != 0) ||
        (sep_perf_uct_choose(uct, worker) != 0)) {
        return -1;
    }

    worker->num_ops    = uct->row->depth + 1;
    worker->ops        = calloc(worker->num_ops, sizeof(*worker->ops));
    worker->iov.buffer = uct->buffer + (i * uct->stride);
    worker->iov.length = worker->bytes;
    worker->iov.count  = 1;
    worker->iov.memh   = uct->memh;
    worker->remote     = uct->target.address +
                         (i * sep_perf_slot_size(worker->bytes));
    worker->rkey       = uct->rkey.rkey;
    if (worker->ops == NULL) {
        return -1;
    }

    sep_perf_pattern_fill(worker->iov.buffer, sep_perf_uct_room(uct->options),
                          i);
    if (sep_perf_uct_connects_ep(&worker->iface) &&
        (sep_perf_uct_ep_create(&worker->iface, NULL) != 0)) {
        return -1;
    }
    if ((sep_perf_uct_address(&worker->iface, &addr) != 0) ||
        (sep_perf_wire_write(fd, &addr, sizeof(addr)) != 0) ||
        (sep_perf_wire_read(fd, &addr, sizeof(addr)) != 0)) {
        return -1;
    }
    return sep_perf_uct_connects_ep(&worker->iface) ?
           sep_perf_uct_ep_connect(&worker->iface, &addr) :
           sep_perf_uct_ep_create(&worker->iface, &addr);
}

static int sep_perf_uct_open(sep_perf_uct_t *uct, int fd)
{
    const sep_perf_options_t *options = uct->options;
    unsigned threads                  = uct->row->threads;
    sep_perf_hello_t hello;
    unsigned i;

    uct->workers = calloc(threads, sizeof(*uct->workers));
    uct->stride  = sep_perf_uct_room(options);
    if (options->aligned) {
        uct->stride = sep_perf_slot_size(uct->stride);
    }
    sep_perf_hello_init(&hello, options, uct->row, threads);
    if ((uct->workers == NULL) ||
        (sep_perf_uct_md_open(&uct->md, options->tl, options->device,
                              options->port) != 0) ||
        (sep_perf_uct_mem_alloc(&uct->md, threads * uct->stride, &uct->buffer,
                                &uct->memh) != 0)) {
        return -1;
    }
    if ((sep_perf_wire_write(fd, &hello, sizeof(hello)) != 0) ||
        (sep_perf_wire_read(fd, &uct->target, sizeof(uct->target)) != 0) ||
        uct->target.failed) {
        fprintf(stderr, "sep_perf: the peer has ended\n");
        return -1;
    }
    if (uct_rkey_unpack(uct->md.component, uct->target.rkey, &uct->rkey) !=
        UCS_OK) {
        return sep_perf_uct_fail("the peer's key", UCS_ERR_INVALID_PARAM);
    }
    for (i = 0; i < threads; ++i) {
        if (sep_perf_uct_open_thread(uct, i, fd) != 0) {
            return -1;
        }
    }
    return 0;
}

static void sep_perf_uct_close(sep_perf_uct_t *uct)
{
    unsigned i;

    for (i = 0; i < uct->row->threads; ++i) {
        sep_perf_uct_iface_close(&uct->workers[i].iface);
        free(uct->workers[i].ops);
    }
    uct_rkey_release(uct->md.component, &uct->rkey);
    uct_md_mem_dereg(uct->md.md, uct->memh);
    uct_md_close(uct->md.md);
    free(uct->buffer);
    free(uct->workers);
}

/* Connections are made by the first messages, so it is known behind them what
 * they take: of the device, or of the transport, if it is ours */
static void sep_perf_uct_taken(void *arg, sep_perf_result_t *result)
{
    static const char *names[] = {"contexts", "qps", "cqs", "pds", "mrs"};
    sep_perf_uct_t *uct        = arg;
    uint64_t values[5]         = {};
    const uct_sep_md_t *md;

    if (sep_perf_device_is_simulated()) {
        sep_perf_device_values(names, 5, values);
    } else if (strcmp(uct->md.tl, UCT_SEP_TL_NAME) == 0) {
        md        = ucs_derived_of(uct->md.md, uct_sep_md_t);
        values[0] = uct_sep_account_get(md->dev.context,
                                        UCT_SEP_ACCOUNT_CONTEXT);
        values[1] = uct_sep_account_get(md->dev.context, UCT_SEP_ACCOUNT_QP);
        values[2] = uct_sep_account_get(md->dev.context, UCT_SEP_ACCOUNT_CQ);
    }
    result->contexts = values[0];
    result->qps      = values[1];
    result->cqs      = values[2];
    result->pds      = values[3];
    result->mrs      = values[4];
    result->bufs     = uct->row->threads;
    result->uars     = sep_uars_mapped() - uct->uars;
    result->uuars    = UCT_SEP_UUARS_PER_UAR *
                       (result->uars -
                        ((result->regime == SEP_PLAN_LEGACY) ? 0 :
                         result->contexts));
    result->memory   = sep_perf_memory() - uct->memory;
    result->is_inline = uct->workers[0].is_short;
}

static uint64_t sep_perf_uct_expect(const void *arg, unsigned thread)
{
    const sep_perf_uct_t *uct = arg;

    return sep_perf_pattern_sum(uct->options->bytes, thread);
}

static uint64_t sep_perf_uct_local(const void *arg, unsigned thread)
{
    const sep_perf_uct_t *uct = arg;

    return sep_perf_sum(uct->buffer + (thread * uct->stride),
                        uct->options->bytes);
}

static int
sep_perf_uct_run(sep_perf_uct_t *uct, int fd, sep_perf_result_t *result)
{
    const sep_perf_options_t *options = uct->options;
    const sep_perf_check_t check      = {
        .fd     = fd,
        .op     = options->op,
        .bytes  = options->bytes,
        .arg    = uct,
        .expect = sep_perf_uct_expect,
        .local  = sep_perf_uct_local,
        .taken  = sep_perf_uct_taken
    };
    unsigned i;
    int ret;

    if (sep_perf_group_init(&uct->group, &sep_perf_uct_api, options, uct->row,
                            0) != 0) {
        return -1;
    }
    for (i = 0; i < uct->row->threads; ++i) {
        uct->group.threads[i].priv = &uct->workers[i];
        uct->workers[i].thread     = &uct->group.threads[i];
    }
    ret = sep_perf_measure(&uct->group, options, &check, result);
    sep_perf_group_cleanup(&uct->group);
    return ret;
}

int sep_perf_uct_measure(const sep_perf_options_t *options,
                         const sep_perf_row_t *row, sep_perf_result_t *result)
{
    sep_perf_uct_t uct = {.options = options, .row = row};
    unsigned part_id   = 0;
    sep_perf_peer_t peer;
    int ret;

    sep_perf_uct_configure(options, row);
    if (sep_perf_peer_start(options, sep_perf_serve, &peer) != 0) {
        return -1;
    }
    if (sep_perf_probe(options, result, &part_id) != 0) {
        return -1;
    }
    uct.uars   = sep_uars_mapped();
    uct.memory = sep_perf_memory();
    if (sep_perf_uct_open(&uct, peer.fd) != 0) {
        return -1;
    }

    ret = sep_perf_uct_run(&uct, peer.fd, result);
    if (ret >= 0) {
        ret = (sep_perf_finish(options, row, part_id, result) != 0) ? -1 : ret;
        sep_perf_uct_close(&uct);
        sep_perf_peer_stop(&peer);
    }
    return ret;
}
