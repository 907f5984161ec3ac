/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_verbs.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>


int sep_perf_verbs_init_sender(sep_perf_sender_t *sender, unsigned postlist)
{
    static const enum ibv_wr_opcode opcodes[SEP_MODEL_OP_LAST] = {
        [SEP_MODEL_READ]   = IBV_WR_RDMA_READ,
        [SEP_MODEL_WRITE]  = IBV_WR_RDMA_WRITE,
        [SEP_MODEL_SEND]   = IBV_WR_SEND,
        [SEP_MODEL_ATOMIC] = IBV_WR_ATOMIC_FETCH_AND_ADD
    };
    struct ibv_send_wr *wr;
    unsigned i;

    sender->wrs = calloc(postlist, sizeof(*sender->wrs));
    if (sender->wrs == NULL) {
        perror("sep_perf: memory for work requests");
        return -1;
    }

    sender->sge.addr   = (uintptr_t)sender->buffer;
    sender->sge.length = sender->bytes;
    sender->sge.lkey   = sender->lkey;
    for (i = 0; i < postlist; ++i) {
        wr          = &sender->wrs[i];
        wr->next    = ((i + 1) < postlist) ? (wr + 1) : NULL;
        wr->sg_list = &sender->sge;
        wr->num_sge = 1;
        wr->opcode  = opcodes[sender->op];
        if (sender->op == SEP_MODEL_ATOMIC) {
            wr->wr.atomic.remote_addr = sender->remote;
            wr->wr.atomic.rkey        = sender->rkey;
            wr->wr.atomic.compare_add = 1;
        } else if (sender->op != SEP_MODEL_SEND) {
            wr->wr.rdma.remote_addr = sender->remote;
            wr->wr.rdma.rkey        = sender->rkey;
        }
    }
    return 0;
}

static int sep_perf_verbs_post(sep_perf_thread_t *thread, unsigned count)
{
    sep_perf_sender_t *sender = thread->priv;
    struct ibv_send_wr *last  = &sender->wrs[count - 1];
    struct ibv_send_wr *next  = last->next;
    unsigned flags            = sender->is_inline ? IBV_SEND_INLINE : 0;
    struct ibv_send_wr *wr, *bad;
    unsigned covered, i;
    int ret;

    for (i = 0; i < count; ++i) {
        wr             = &sender->wrs[i];
        covered        = sep_perf_thread_next(thread);
        wr->wr_id      = SEP_PERF_ID(thread->index, covered);
        wr->send_flags = flags | ((covered > 0) ? IBV_SEND_SIGNALED : 0);
    }

    last->next = NULL;
    ret        = ibv_post_send(sender->qp->qp, sender->wrs, &bad);
    last->next = next;
    if (ret != 0) {
        fprintf(stderr, "sep_perf: thread %u can't post: %s\n", thread->index,
                strerror(ret));
        return -1;
    }
    return 0;
}

static int sep_perf_verbs_completion(const sep_perf_thread_t *thread,
                                     const struct ibv_cq_ex *cq)
{
    uint64_t id = cq->wr_id;

    if (cq->status != IBV_WC_SUCCESS) {
        fprintf(stderr, "sep_perf: a message of thread %u failed: %s\n",
                SEP_PERF_ID_THREAD(id), ibv_wc_status_str(cq->status));
        return -1;
    }
    sep_perf_thread_done(&thread->group->threads[SEP_PERF_ID_THREAD(id)],
                         SEP_PERF_ID_COVERED(id));
    return 0;
}

static int sep_perf_verbs_poll(sep_perf_thread_t *thread)
{
    const sep_perf_sender_t *sender = thread->priv;
    struct ibv_cq_ex *cq            = sender->qp->cq->cq;
    struct ibv_poll_cq_attr attr    = {};
    int ret;

    ret = ibv_start_poll(cq, &attr);
    if (ret == ENOENT) {
        return 0;
    } else if (ret != 0) {
        fprintf(stderr, "sep_perf: thread %u can't poll: %s\n", thread->index,
                strerror(ret));
        return -1;
    }

    do {
        ret = sep_perf_verbs_completion(thread, cq);
    } while ((ret == 0) && ((ret = ibv_next_poll(cq)) == 0));
    ibv_end_poll(cq);
    return (ret == ENOENT) ? 0 : -1;
}

const sep_perf_api_t sep_perf_verbs_api = {
    .post = sep_perf_verbs_post,
    .poll = sep_perf_verbs_poll
};
