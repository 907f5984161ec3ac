/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sep_srq_fill.inl
 *
 * Buffers for the work requests of a shared receive queue. Template: a file
 * that includes it defines
 *
 *     UCT_SEP_SRQ(name)    the name with the prefix of the API
 *
 * and the functions set_data, start, append and publish under such names. It
 * gets replace, fill_empty and refill_empty.
 */

static UCS_F_ALWAYS_INLINE int
UCT_SEP_SRQ(set_buffer)(uct_sep_srq_t *srq, uint16_t index)
{
    uct_sep_rx_desc_t *desc;

    desc = ucs_mpool_get_inline(srq->mp);
    if (desc == NULL) {
        return 0;
    }

    UCT_SEP_SRQ(set_data)(srq, index,
                          UCS_PTR_BYTE_OFFSET(desc, srq->hdr_offset),
                          desc->lkey);
    srq->descs[index] = desc;
    return 1;
}

static void UCT_SEP_SRQ(fill_empty)(uct_sep_srq_t *srq, unsigned count)
{
    /* One more gets a buffer than can be taken, see sep_srq.h */
    unsigned target = ucs_min(count + 1, srq->length);

    for (; srq->filled < target; ++srq->filled) {
        if (!UCT_SEP_SRQ(set_buffer)(srq, srq->filled)) {
            break;
        }

        if (srq->filled == 0) {
            UCT_SEP_SRQ(start)(srq, 0);
            srq->first = srq->counter;
        } else {
            UCT_SEP_SRQ(append)(srq, srq->filled);
        }
    }

    if (srq->num_empty == 0) {
        srq->batch = uct_sep_srq_batch(uct_sep_srq_num_filled(srq));
    }
    UCT_SEP_SRQ(publish)(srq);
}

void UCT_SEP_SRQ(replace)(uct_sep_srq_t *srq, uint16_t index)
{
    srq->descs[index] = NULL;
    if (ucs_likely(UCT_SEP_SRQ(set_buffer)(srq, index))) {
        UCT_SEP_SRQ(append)(srq, index);
    } else {
        srq->empty[srq->num_empty++] = index;
        srq->batch                   = 0;
    }
}

static void UCT_SEP_SRQ(refill_empty)(uct_sep_srq_t *srq)
{
    while (srq->num_empty > 0) {
        if (!UCT_SEP_SRQ(set_buffer)(srq, srq->empty[srq->num_empty - 1])) {
            break;
        }
        UCT_SEP_SRQ(append)(srq, srq->empty[--srq->num_empty]);
    }

    if (srq->num_empty == 0) {
        srq->batch = uct_sep_srq_batch(uct_sep_srq_num_filled(srq));
    }

    UCT_SEP_SRQ(publish)(srq);
}
