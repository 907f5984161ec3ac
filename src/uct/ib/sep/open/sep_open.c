/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/open/sep_open.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>


static ucs_status_t
uct_sep_open_check_alignment(const uct_iface_params_t *params)
{
    size_t alignment = UCT_IFACE_PARAM_VALUE(params, am_alignment, AM_ALIGNMENT,
                                             1ul);

    /* A pool would complain as well, but not if the interface is opened on
     * existing queues */
    if ((alignment == 0) || !ucs_is_pow2(alignment)) {
        ucs_error(UCT_SEP_TL_NAME ": received data can't be aligned to %zu, "
                  "which is not a power of two: change am_alignment",
                  alignment);
        return UCS_ERR_INVALID_PARAM;
    }

    if ((params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET) &&
        !(params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT)) {
        ucs_error(UCT_SEP_TL_NAME ": am_align_offset is %zu, and what it is "
                  "relative to is not set: set am_alignment too",
                  params->am_align_offset);
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

ucs_status_t uct_sep_open_check(const uct_iface_params_t *params)
{
    UCT_CHECK_PARAM(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE,
                    "UCT_IFACE_PARAM_FIELD_OPEN_MODE is not defined");
    if (!(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
        ucs_error(UCT_SEP_TL_NAME " supports only UCT_IFACE_OPEN_MODE_DEVICE");
        return UCS_ERR_UNSUPPORTED;
    }

    return uct_sep_open_check_alignment(params);
}

void uct_sep_open_drop_unusable(uct_iface_attr_t *attr)
{
    if (attr->cap.put.max_short == 0) {
        attr->cap.flags &= ~UCT_IFACE_FLAG_PUT_SHORT;
    }

    if ((attr->cap.get.max_zcopy == 0) ||
        (attr->cap.get.max_zcopy < attr->cap.get.min_zcopy)) {
        attr->cap.get.max_zcopy = 0;
        attr->cap.flags &= ~UCT_IFACE_FLAG_GET_ZCOPY;
    }

    if (attr->cap.get.max_bcopy == 0) {
        attr->cap.flags &= ~UCT_IFACE_FLAG_GET_BCOPY;
    }

    /* Every message has a header */
    if (attr->cap.am.max_short < sizeof(uint64_t)) {
        attr->cap.am.max_short = 0;
        attr->cap.flags       &= ~UCT_IFACE_FLAG_AM_SHORT;
    }
}

#define UCT_SEP_OPEN_SET_OP(_ops, _op) \
    ops->ep_##_op = (_ops)->ep_##_op;

void uct_sep_open_set_ops(const uct_sep_ops_t *tx_ops, uct_iface_ops_t *ops)
{
    UCT_SEP_OPS_FOREACH_EP(UCT_SEP_OPEN_SET_OP, tx_ops)
}
