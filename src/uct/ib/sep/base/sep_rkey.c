/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_rkey.h>

#include <ucs/debug/log.h>


int uct_sep_rkey_has_relaxed = 0;


void uct_sep_rkey_pack(uint32_t strict, uint32_t relaxed, void *buffer)
{
    uct_sep_packed_rkey_t *packed = buffer;

    packed->rkey = htobe32(strict);
    if (relaxed == strict) {
        packed->magic = htobe32(UCT_SEP_RKEY_MAGIC);
    } else {
        packed->magic   = htobe32(UCT_SEP_RKEY_RELAXED_MAGIC);
        packed->relaxed = htobe32(relaxed);
    }
}

ucs_status_t uct_sep_rkey_unpack(uct_component_h component, const void *buffer,
                                 UCT_SEP_COMPAT_RKEY_UNPACK_PARAMS
                                 uct_rkey_t *rkey_p, void **handle_p)
{
    const uct_sep_packed_rkey_t *packed = buffer;
    uint32_t strict                     = be32toh(packed->rkey);
    uint32_t relaxed                    = strict;

    switch (be32toh(packed->magic)) {
    case UCT_SEP_RKEY_MAGIC:
        break;
    case UCT_SEP_RKEY_RELAXED_MAGIC:
        relaxed = be32toh(packed->relaxed);
        if (relaxed == strict) {
            ucs_error("remote key has 0x%08x for both strict and relaxed "
                      "ordering: it was damaged on its way", strict);
            return UCS_ERR_INVALID_PARAM;
        }

        /* Before anything can be written through it */
        __atomic_store_n(&uct_sep_rkey_has_relaxed, 1, __ATOMIC_RELAXED);
        break;
    default:
        ucs_error("remote key starts with 0x%08x instead of 0x%08x or 0x%08x: "
                  "it is not one that " UCT_SEP_TL_NAME " has packed",
                  be32toh(packed->magic), UCT_SEP_RKEY_MAGIC,
                  UCT_SEP_RKEY_RELAXED_MAGIC);
        return UCS_ERR_INVALID_PARAM;
    }

    *rkey_p   = uct_sep_rkey_make(strict, relaxed);
    *handle_p = NULL;
    return UCS_OK;
}
