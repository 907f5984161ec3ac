/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_verbs.h>
#include <tools/perf/sep_perf_device.h>
#include <tools/perf/sep_perf_measure.h>
#include <tools/plan/uars.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Completion queues have room for so many more than can be outstanding */
#define SEP_PERF_CQ_HEADROOM  64


static int sep_perf_verbs_fail(const sep_perf_verbs_t *verbs, const char *what,
                               unsigned index)
{
    fprintf(stderr, "sep_perf: %s: can't make %s %u: %s\n",
            verbs->row->sharing->name, what, index + 1, strerror(errno));
    return -1;
}

static unsigned
sep_perf_verbs_count(const sep_perf_verbs_t *verbs,
                     sep_perf_resource_t resource)
{
    return sep_perf_count(verbs->row->sharing, resource, verbs->row->threads);
}

static unsigned
sep_perf_verbs_ways(const sep_perf_verbs_t *verbs, sep_perf_resource_t resource)
{
    return sep_perf_ways(verbs->row->sharing, resource, verbs->row->threads);
}

/* Object of one kind that the first thread of an object of another kind has */
static unsigned
sep_perf_verbs_owner(const sep_perf_verbs_t *verbs,
                     sep_perf_resource_t resource, unsigned index,
                     sep_perf_resource_t owner)
{
    return (index * sep_perf_verbs_ways(verbs, resource)) /
           sep_perf_verbs_ways(verbs, owner);
}

static uint8_t *
sep_perf_verbs_buffer(const sep_perf_verbs_t *verbs, unsigned thread)
{
    return verbs->buffer + (verbs->stride *
                            (thread / sep_perf_verbs_ways(verbs,
                                                          SEP_PERF_BUF)));
}

static int sep_perf_verbs_allocate(sep_perf_verbs_t *verbs)
{
    unsigned qps = sep_perf_verbs_count(verbs, SEP_PERF_QP);
    unsigned cqs = sep_perf_verbs_count(verbs, SEP_PERF_CQ);

    verbs->contexts = calloc(sep_perf_verbs_count(verbs, SEP_PERF_CTX),
                             sizeof(*verbs->contexts));
    verbs->uuars    = calloc(sep_perf_verbs_count(verbs, SEP_PERF_CTX),
                             sizeof(*verbs->uuars));
    verbs->pds      = calloc(sep_perf_verbs_count(verbs, SEP_PERF_PD),
                             sizeof(*verbs->pds));
    verbs->mrs      = calloc(sep_perf_verbs_count(verbs, SEP_PERF_MR),
                             sizeof(*verbs->mrs));
    verbs->cqs      = calloc(cqs, sizeof(*verbs->cqs));
    verbs->qps      = aligned_alloc(64, (qps * sizeof(*verbs->qps) + 63) &
                                        ~63ul);
    if ((verbs->contexts == NULL) || (verbs->uuars == NULL) ||
        (verbs->pds == NULL) || (verbs->mrs == NULL) || (verbs->cqs == NULL) ||
        (verbs->qps == NULL)) {
        perror("sep_perf: memory for objects");
        return -1;
    }
    memset(verbs->qps, 0, qps * sizeof(*verbs->qps));
    return 0;
}

static int sep_perf_verbs_make_contexts(sep_perf_verbs_t *verbs)
{
    unsigned i;

    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_CTX); ++i) {
        verbs->contexts[i] = ibv_open_device(verbs->device);
        if (verbs->contexts[i] == NULL) {
            return sep_perf_verbs_fail(verbs, "device context", i);
        }
        if (verbs->options->level == SEP_PERF_DV) {
            uct_sep_uuars_init(&verbs->uuars[i], verbs->contexts[i]);
        }
    }
    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_PD); ++i) {
        verbs->pds[i] = ibv_alloc_pd(verbs->contexts[
                sep_perf_verbs_owner(verbs, SEP_PERF_PD, i, SEP_PERF_CTX)]);
        if (verbs->pds[i] == NULL) {
            return sep_perf_verbs_fail(verbs, "protection domain", i);
        }
    }
    return 0;
}

/* Buffers of all threads are in one piece; a region has those of its threads */
static int sep_perf_verbs_make_memory(sep_perf_verbs_t *verbs)
{
    size_t bytes     = verbs->options->bytes;
    unsigned threads = verbs->row->threads;
    unsigned bufs    = sep_perf_verbs_count(verbs, SEP_PERF_BUF);
    unsigned ways    = sep_perf_verbs_ways(verbs, SEP_PERF_MR);
    unsigned i, first, last;

    verbs->stride = verbs->options->aligned ? sep_perf_slot_size(bytes) : bytes;
    verbs->buffer = aligned_alloc(4096, ((verbs->stride * bufs) + 4095) &
                                        ~4095ul);
    if (verbs->buffer == NULL) {
        perror("sep_perf: memory for buffers");
        return -1;
    }
    for (i = 0; i < bufs; ++i) {
        sep_perf_pattern_fill(verbs->buffer + (i * verbs->stride), bytes, i);
    }

    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_MR); ++i) {
        first = i * ways;
        last  = ((first + ways) < threads) ? (first + ways - 1) : (threads - 1);
        verbs->mrs[i] = ibv_reg_mr(
                verbs->pds[sep_perf_verbs_owner(verbs, SEP_PERF_MR, i,
                                                SEP_PERF_PD)],
                sep_perf_verbs_buffer(verbs, first),
                (sep_perf_verbs_buffer(verbs, last) + bytes) -
                sep_perf_verbs_buffer(verbs, first), IBV_ACCESS_LOCAL_WRITE);
        if (verbs->mrs[i] == NULL) {
            return sep_perf_verbs_fail(verbs, "memory region", i);
        }
    }
    return 0;
}

static int sep_perf_verbs_make_cqs(sep_perf_verbs_t *verbs)
{
    unsigned ways = sep_perf_verbs_ways(verbs, SEP_PERF_CQ);
    struct ibv_cq_init_attr_ex attr;
    struct ibv_context *context;
    sep_perf_cq_t *cq;
    unsigned i;

    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_CQ); ++i) {
        cq            = &verbs->cqs[i];
        cq->is_shared = (ways > 1);
        context       = verbs->contexts[sep_perf_verbs_owner(verbs, SEP_PERF_CQ,
                                                             i, SEP_PERF_CTX)];
        memset(&attr, 0, sizeof(attr));
        attr.cqe       = (verbs->row->depth * ways) + SEP_PERF_CQ_HEADROOM;
        attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
        attr.flags     = cq->is_shared ? 0 : IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
        if (verbs->options->level == SEP_PERF_DV) {
            if (sep_perf_dv_init_cq(cq, context, attr.cqe,
                                    ibv_get_device_name(verbs->device)) != 0) {
                return -1;
            }
            continue;
        }
        cq->cq = ibv_create_cq_ex(context, &attr);
        if (cq->cq == NULL) {
            return sep_perf_verbs_fail(verbs, "completion queue", i);
        }
        cq->is_open = 1;
    }
    return 0;
}

/* Thread domains of a queue pair: it has the first one, the others keep the
 * places beside it empty */
static int sep_perf_verbs_make_tds(sep_perf_verbs_t *verbs, unsigned i,
                                   struct ibv_context *context,
                                   struct ibv_pd *pd)
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd};
    struct ibv_td_init_attr td_attr         = {};
    sep_perf_qp_t *qp                       = &verbs->qps[i];
    unsigned count = sep_perf_td_count(verbs->row->sharing->td);
    unsigned j;

    for (j = 0; j < count; ++j) {
        qp->tds[j] = ibv_alloc_td(context, &td_attr);
        if (qp->tds[j] == NULL) {
            return sep_perf_verbs_fail(verbs, "thread domain of queue pair", i);
        }
        ++verbs->num_tds;
    }
    if (count > 0) {
        attr.td    = qp->tds[0];
        qp->domain = ibv_alloc_parent_domain(context, &attr);
        if (qp->domain == NULL) {
            return sep_perf_verbs_fail(verbs, "domain of queue pair", i);
        }
    }
    return 0;
}

static int sep_perf_verbs_make_qp(sep_perf_verbs_t *verbs, unsigned i)
{
    unsigned ways  = sep_perf_verbs_ways(verbs, SEP_PERF_QP);
    unsigned index = sep_perf_verbs_owner(verbs, SEP_PERF_QP, i, SEP_PERF_CTX);
    struct ibv_context *context = verbs->contexts[index];
    sep_perf_qp_t *qp           = &verbs->qps[i];
    struct ibv_qp_init_attr attr;
    struct ibv_pd *pd;

    pd            = verbs->pds[sep_perf_verbs_owner(verbs, SEP_PERF_QP, i,
                                                    SEP_PERF_PD)];
    qp->cq        = &verbs->cqs[sep_perf_verbs_owner(verbs, SEP_PERF_QP, i,
                                                     SEP_PERF_CQ)];
    qp->uuars     = &verbs->uuars[index];
    qp->is_shared = (ways > 1);
    if (sep_perf_verbs_make_tds(verbs, i, context, pd) != 0) {
        return -1;
    }

    memset(&attr, 0, sizeof(attr));
    attr.qp_type             = IBV_QPT_RC;
    attr.send_cq             = (verbs->options->level == SEP_PERF_DV) ?
                               qp->cq->dv.cq : ibv_cq_ex_to_cq(qp->cq->cq);
    attr.recv_cq             = attr.send_cq;
    /* The least that level dv takes */
    attr.cap.max_send_wr     = ((verbs->row->depth * ways) < 16) ?
                               16 : (verbs->row->depth * ways);
    attr.cap.max_send_sge    = 1;
    attr.cap.max_inline_data = verbs->row->is_inline ?
                               verbs->options->bytes : 0;
    qp->qp = ibv_create_qp((qp->domain != NULL) ? qp->domain : pd, &attr);
    if (qp->qp == NULL) {
        return sep_perf_verbs_fail(verbs, "queue pair", i);
    }
    return (verbs->options->level == SEP_PERF_DV) ?
           sep_perf_dv_init_qp(qp, qp->domain != NULL) : 0;
}

static int sep_perf_verbs_open(sep_perf_verbs_t *verbs)
{
    unsigned i;

    if ((sep_perf_verbs_allocate(verbs) != 0) ||
        (sep_perf_verbs_make_contexts(verbs) != 0) ||
        (sep_perf_verbs_make_memory(verbs) != 0) ||
        (sep_perf_verbs_make_cqs(verbs) != 0)) {
        return -1;
    }
    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_QP); ++i) {
        if (sep_perf_verbs_make_qp(verbs, i) != 0) {
            return -1;
        }
    }
    return 0;
}

static void
sep_perf_verbs_taken(const sep_perf_verbs_t *verbs, sep_perf_result_t *result)
{
    result->contexts = sep_perf_verbs_count(verbs, SEP_PERF_CTX);
    result->tds      = verbs->num_tds;
    result->qps      = sep_perf_verbs_count(verbs, SEP_PERF_QP);
    result->cqs      = sep_perf_verbs_count(verbs, SEP_PERF_CQ);
    result->pds      = sep_perf_verbs_count(verbs, SEP_PERF_PD);
    result->mrs      = sep_perf_verbs_count(verbs, SEP_PERF_MR);
    result->bufs     = sep_perf_verbs_count(verbs, SEP_PERF_BUF);
    result->paper_memory = sep_perf_paper_bytes(verbs->row->sharing,
                                                verbs->row->threads);
    result->is_inline    = verbs->row->is_inline;
}

/* With the peer, over its socket */
static int sep_perf_verbs_connect(sep_perf_verbs_t *verbs, int fd)
{
    unsigned num_qps          = sep_perf_verbs_count(verbs, SEP_PERF_QP);
    sep_perf_qp_addr_t *addrs = calloc(num_qps, sizeof(*addrs));
    sep_perf_hello_t hello;
    unsigned i;
    int ret = -1;

    if (addrs == NULL) {
        return -1;
    }
    sep_perf_hello_init(&hello, verbs->options, verbs->row, num_qps);
    for (i = 0; i < num_qps; ++i) {
        sep_perf_qp_address(verbs->qps[i].qp, &verbs->port, &addrs[i]);
    }
    if ((sep_perf_wire_write(fd, &hello, sizeof(hello)) != 0) ||
        (sep_perf_wire_write(fd, addrs, num_qps * sizeof(*addrs)) != 0) ||
        (sep_perf_wire_read(fd, &verbs->target, sizeof(verbs->target)) != 0) ||
        verbs->target.failed ||
        (sep_perf_wire_read(fd, addrs, num_qps * sizeof(*addrs)) != 0)) {
        fprintf(stderr, "sep_perf: the peer has ended\n");
        goto out;
    }
    for (i = 0; i < num_qps; ++i) {
        if (sep_perf_qp_connect(verbs->qps[i].qp, &verbs->port,
                                &addrs[i]) != 0) {
            goto out;
        }
    }
    ret = 0;
out:
    free(addrs);
    return ret;
}

static uint64_t sep_perf_verbs_expect(const void *arg, unsigned thread)
{
    const sep_perf_verbs_t *verbs = arg;

    /* The buffer was filled with its own number */
    return sep_perf_pattern_sum(verbs->options->bytes, thread /
                                sep_perf_verbs_ways(verbs, SEP_PERF_BUF));
}

static uint64_t sep_perf_verbs_local(const void *arg, unsigned thread)
{
    const sep_perf_verbs_t *verbs = arg;

    return sep_perf_sum(sep_perf_verbs_buffer(verbs, thread),
                        verbs->options->bytes);
}

static void sep_perf_verbs_close(sep_perf_verbs_t *verbs)
{
    unsigned i, j;

    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_QP); ++i) {
        if (verbs->options->level == SEP_PERF_DV) {
            sep_perf_dv_cleanup_qp(&verbs->qps[i]);
        }
        ibv_destroy_qp(verbs->qps[i].qp);
        if (verbs->qps[i].domain != NULL) {
            ibv_dealloc_pd(verbs->qps[i].domain);
        }
        for (j = 0; j < sep_perf_td_count(verbs->row->sharing->td); ++j) {
            ibv_dealloc_td(verbs->qps[i].tds[j]);
        }
    }
    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_CQ); ++i) {
        if (verbs->options->level == SEP_PERF_DV) {
            sep_perf_dv_cleanup_cq(&verbs->cqs[i]);
        } else {
            ibv_destroy_cq(ibv_cq_ex_to_cq(verbs->cqs[i].cq));
        }
    }
    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_MR); ++i) {
        ibv_dereg_mr(verbs->mrs[i]);
    }
    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_PD); ++i) {
        ibv_dealloc_pd(verbs->pds[i]);
    }
    for (i = 0; i < sep_perf_verbs_count(verbs, SEP_PERF_CTX); ++i) {
        if (verbs->options->level == SEP_PERF_DV) {
            uct_sep_uuars_cleanup(&verbs->uuars[i]);
        }
        ibv_close_device(verbs->contexts[i]);
    }
    ibv_free_device_list(verbs->devices);
    free(verbs->contexts);
    free(verbs->uuars);
    free(verbs->pds);
    free(verbs->mrs);
    free(verbs->cqs);
    free(verbs->qps);
    free(verbs->buffer);
}

/* What a thread needs to post, and does not look up each time */
static int sep_perf_verbs_make_sender(sep_perf_verbs_t *verbs, unsigned thread,
                                      sep_perf_sender_t *sender)
{
    const sep_perf_row_t *row = verbs->row;
    const struct ibv_mr *mr   = verbs->mrs[thread /
                                           sep_perf_verbs_ways(verbs,
                                                               SEP_PERF_MR)];

    sender->verbs     = verbs;
    sender->qp        = &verbs->qps[thread / sep_perf_verbs_ways(verbs,
                                                                 SEP_PERF_QP)];
    sender->buffer    = sep_perf_verbs_buffer(verbs, thread);
    sender->bytes     = verbs->options->bytes;
    sender->remote    = verbs->target.address +
                        (thread * sep_perf_slot_size(sender->bytes));
    sender->lkey      = mr->lkey;
    sender->rkey      = verbs->target.rkey;
    sender->op        = verbs->options->op;
    sender->is_inline = row->is_inline;
    if (verbs->options->level == SEP_PERF_VERBS) {
        return sep_perf_verbs_init_sender(sender, row->postlist);
    }
    sender->rkey = htobe32(sender->rkey); /* As in a work request */
    sender->post = ((row->features & SEP_PERF_FEATURE_BLUEFLAME) &&
                    (sender->qp->bf->size > 0)) ? UCT_SEP_TX_POST_BF :
                                                  UCT_SEP_TX_POST_DB;
    return 0;
}

static int sep_perf_verbs_run(sep_perf_verbs_t *verbs, int fd,
                              sep_perf_result_t *result)
{
    const sep_perf_options_t *options = verbs->options;
    const sep_perf_check_t check      = {
        .fd     = fd,
        .op     = options->op,
        .expect = sep_perf_verbs_expect,
        .local  = sep_perf_verbs_local,
        .arg    = verbs,
        .bytes  = options->bytes
    };
    sep_perf_sender_t *senders;
    unsigned i;
    int ret = 0;

    senders = calloc(verbs->row->threads, sizeof(*senders));
    if ((senders == NULL) ||
        (sep_perf_group_init(&verbs->group, (options->level == SEP_PERF_DV) ?
                             &sep_perf_dv_api : &sep_perf_verbs_api, options,
                             verbs->row,
                             sep_perf_verbs_ways(verbs, SEP_PERF_CQ) > 1) !=
         0)) {
        return -1;
    }
    for (i = 0; (i < verbs->row->threads) && (ret == 0); ++i) {
        verbs->group.threads[i].priv = &senders[i];
        ret = sep_perf_verbs_make_sender(verbs, i, &senders[i]);
    }
    if (ret == 0) {
        ret = sep_perf_measure(&verbs->group, options, &check, result);
    }
    sep_perf_group_cleanup(&verbs->group);
    for (i = 0; i < verbs->row->threads; ++i) {
        free(senders[i].wrs);
    }
    free(senders);
    return ret;
}

/* What a process has failed with goes when it ends */
int sep_perf_verbs_measure(const sep_perf_options_t *options,
                           const sep_perf_row_t *row, sep_perf_result_t *result)
{
    sep_perf_verbs_t verbs = {.options = options, .row = row};
    unsigned long uars, memory;
    sep_perf_peer_t peer;
    unsigned part_id;
    int ret;

    if (!(row->features & SEP_PERF_FEATURE_BLUEFLAME)) {
        setenv("MLX5_SHUT_UP_BF", "1", 1);
    }
    if ((sep_perf_peer_start(options, sep_perf_serve, &peer) != 0) ||
        (sep_perf_probe(options, result, &part_id) != 0)) {
        return -1;
    }

    verbs.device = sep_perf_device_find(options->device, &verbs.devices);
    if (verbs.device == NULL) {
        return -1;
    }

    uars   = sep_uars_mapped();
    memory = sep_perf_memory();
    if (sep_perf_verbs_open(&verbs) != 0) {
        return -1;
    }
    result->uars   = sep_uars_mapped() - uars;
    result->memory = sep_perf_memory() - memory;
    sep_perf_verbs_taken(&verbs, result);
    /* Each context has a page for doorbells of CQs only */
    result->uuars  = UCT_SEP_UUARS_PER_UAR *
                     (result->uars - ((result->regime == SEP_PLAN_LEGACY) ?
                                      0 : result->contexts));
    if ((sep_perf_port_query(verbs.contexts[0], options, &verbs.port) != 0) ||
        (sep_perf_verbs_connect(&verbs, peer.fd) != 0)) {
        return -1;
    }

    ret = sep_perf_verbs_run(&verbs, peer.fd, result);
    if (ret >= 0) {
        ret = (sep_perf_finish(options, row, part_id, result) != 0) ?
              -1 : ret;
        sep_perf_verbs_close(&verbs);
        sep_perf_peer_stop(&peer);
    }
    return ret;
}
