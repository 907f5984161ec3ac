/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_RC_OPT_FLUSH_H_
#define UCT_RC_OPT_FLUSH_H_

#include <uct/ib/rc/base/rc_ep.h>
#include <uct/ib/rc/base/rc_iface.h>
#include <ucs/datastruct/arbiter.h>
#include <ucs/datastruct/mpool.inl>

/*
 * Flush of an RC endpoint without a work request of its own.
 *
 * A flush has to post one because the operation it waits for was not signaled.
 * A program that puts and flushes, and puts and flushes, does so every time. So
 * when a flush finds that exactly one work request was posted since the flush
 * before, it expects the same to come again: it makes the next one signaled,
 * and the flush after that only waits for it. If something else comes instead,
 * one completion was asked for that nobody needed, and the next flush sees more
 * than one work request and expects nothing.
 *
 * Whether a send is signaled is decided by uct_rc_iface_tx_moderation(), which
 * compares uct_rc_txqp_t::unsignaled with a limit. A value that is above each
 * limit therefore costs the sends nothing. It stands for 0: nothing unsignaled
 * is outstanding. RC_UNSIGNALED_INF, the other such value, does not tell.
 */

/** Of uct_rc_txqp_t::unsignaled: nothing is, and the next send will not be. */
#define UCT_RC_OPT_SIGNAL_NEXT (RC_UNSIGNALED_INF - 1)


/**
 * Expect another single operation before the next flush.
 *
 * @param [in] ep         Endpoint with nothing unsignaled outstanding.
 * @param [in] is_single  Whether one work request was posted since the flush
 *                        before.
 * @param [in] next_sn    What tells the next flush that.
 */
static UCS_F_ALWAYS_INLINE void
uct_rc_opt_flush_expect(uct_rc_ep_t *ep, int is_single, uint16_t next_sn)
{
    ep->opt_flush_sn = next_sn;
    if (is_single) {
        ep->txqp.unsignaled = UCT_RC_OPT_SIGNAL_NEXT;
    }
}

/**
 * Flush an endpoint if that takes no work request and nothing is queued that
 * the flush has to wait for as well. Resources are no condition: what they are
 * checked for in a flush is to keep it behind what is queued.
 *
 * @param [in] iface      Interface of the endpoint.
 * @param [in] ep         Endpoint to flush.
 * @param [in] flags      As those of uct_ep_flush().
 * @param [in] comp       As that of uct_ep_flush().
 * @param [in] available  Value of uct_rc_txqp_t::available if nothing is
 *                        outstanding.
 * @param [in] is_single  As for uct_rc_opt_flush_expect().
 * @param [in] next_sn    As for uct_rc_opt_flush_expect().
 * @param [in] sn         Number of the last signaled work request.
 *
 * @return UCS_OK: nothing is outstanding; UCS_INPROGRESS: comp will be called;
 *         UCS_ERR_NOT_IMPLEMENTED: it takes more than that.
 */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_rc_opt_flush(uct_rc_iface_t *iface, uct_rc_ep_t *ep, unsigned flags,
                 uct_completion_t *comp, int16_t available, int is_single,
                 uint16_t next_sn, uint16_t sn)
{
    uct_rc_iface_send_op_t *op;

    if (ucs_unlikely((flags != UCT_FLUSH_FLAG_LOCAL) ||
                     !iface->config.opt_flush ||
                     !ucs_arbiter_group_is_empty(&ep->arb_group))) {
        return UCS_ERR_NOT_IMPLEMENTED;
    }

    if (uct_rc_txqp_available(&ep->txqp) == available) {
        uct_rc_opt_flush_expect(ep, is_single, next_sn);
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    if ((ep->txqp.unsignaled != 0) &&
        (ep->txqp.unsignaled != UCT_RC_OPT_SIGNAL_NEXT)) {
        return UCS_ERR_NOT_IMPLEMENTED;
    }

    if (ucs_likely(comp != NULL)) {
        /* This function is to call nothing. */
        if (ucs_unlikely(iface->tx.send_op_mp.freelist == NULL)) {
            return UCS_ERR_NOT_IMPLEMENTED;
        }

        op = (uct_rc_iface_send_op_t*)
                        ucs_mpool_get_inline(&iface->tx.send_op_mp);
        uct_rc_ep_init_send_op(op, 0, comp,
                               uct_rc_ep_flush_op_completion_handler);
        uct_rc_iface_send_op_set_name(op, "rc_opt_flush");
        op->iface = iface;
        uct_rc_txqp_add_send_op_sn(&ep->txqp, op, sn);
    }

    uct_rc_opt_flush_expect(ep, is_single, next_sn);
    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return UCS_INPROGRESS;
}


/** Return what uct_rc_opt_flush() does if it can flush the endpoint. */
#define UCT_RC_OPT_FLUSH(...) \
    { \
        ucs_status_t _status = uct_rc_opt_flush(__VA_ARGS__); \
        if (ucs_likely(_status != UCS_ERR_NOT_IMPLEMENTED)) { \
            return _status; \
        } \
    }

#endif
