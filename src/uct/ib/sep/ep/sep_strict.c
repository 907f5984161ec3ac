/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_strict.h>
#include <uct/ib/sep/ep/sep_ep.h>


/* Let the data path find its credits, for one put. Returns as
 * uct_sep_ep_no_credits(). */
static ucs_status_t uct_sep_strict_begin(uct_ep_h tl_ep)
{
    uct_sep_ep_t *ep    = ucs_derived_of(tl_ep, uct_sep_ep_t);
    ucs_status_t status = uct_sep_ep_no_credits(ep);

    if (status == UCS_OK) {
        uct_sep_txwq_unbias(ep->txwq, UCT_SEP_TXWQ_FLAG_STRICT);
    }
    return status;
}

/* The put is posted, or has failed: is it the last strict one? */
static ssize_t uct_sep_strict_end(uct_sep_txwq_t *txwq, ssize_t ret)
{
    int16_t completed = txwq->hw_ci - txwq->strict_pi;

    if ((ret < 0) || (completed < 0)) {
        uct_sep_txwq_bias(txwq, UCT_SEP_TXWQ_FLAG_STRICT);
    }
    return ret;
}

ucs_status_t uct_sep_strict_put_short(uct_ep_h tl_ep, const void *buffer,
                                      unsigned length, uint64_t remote_addr,
                                      uct_rkey_t rkey)
{
    uct_sep_ep_t *ep     = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_txwq_t *txwq = ep->txwq;
    ucs_status_t status  = uct_sep_strict_begin(tl_ep);

    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_ep_iface(ep)->tx.ops->ep_put_short(
            tl_ep, buffer, length, remote_addr, uct_sep_rkey_strict(rkey));
    return (ucs_status_t)uct_sep_strict_end(txwq, status);
}

ssize_t uct_sep_strict_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                 void *arg, uint64_t remote_addr,
                                 uct_rkey_t rkey)
{
    uct_sep_ep_t *ep     = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_txwq_t *txwq = ep->txwq;
    ucs_status_t status  = uct_sep_strict_begin(tl_ep);

    if (status != UCS_OK) {
        return status;
    }

    return uct_sep_strict_end(txwq, uct_sep_ep_iface(ep)->tx.ops->ep_put_bcopy(
                                            tl_ep, pack_cb, arg, remote_addr,
                                            uct_sep_rkey_strict(rkey)));
}

ucs_status_t uct_sep_strict_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                      size_t iovcnt, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_sep_ep_t *ep     = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_txwq_t *txwq = ep->txwq;
    ucs_status_t status  = uct_sep_strict_begin(tl_ep);

    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_ep_iface(ep)->tx.ops->ep_put_zcopy(
            tl_ep, iov, iovcnt, remote_addr, uct_sep_rkey_strict(rkey), comp);
    return (ucs_status_t)uct_sep_strict_end(txwq, status);
}
