/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/base/sep_shortage.h>
#include <uct/ib/sep/category/sep_context.h>
#include <uct/ib/sep/category/sep_sharing.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <errno.h>
#include <string.h>


/* The lowest slot that no open context uses */
static UCT_SEP_REQUIRES(uct_sep_own_mutex) unsigned
uct_sep_context_free_slot(uct_sep_md_t *md)
{
    uct_sep_context_t *own;
    unsigned slot = 0;

    /* The list is sorted by slot */
    ucs_list_for_each(own, &md->sharing->contexts, list) {
        if (own->keys.slot != slot) {
            break;
        }
        ++slot;
    }
    return slot;
}

static UCT_SEP_REQUIRES(uct_sep_own_mutex) void
uct_sep_context_insert(uct_sep_md_t *md, uct_sep_context_t *own)
{
    uct_sep_context_t *other;

    uct_sep_own_keys_init(&own->keys, own->pd, uct_sep_context_free_slot(md));
    ucs_list_for_each(other, &md->sharing->contexts, list) {
        if (other->keys.slot > own->keys.slot) {
            ucs_list_insert_before(&other->list, &own->list);
            return;
        }
    }
    ucs_list_add_tail(&md->sharing->contexts, &own->list);
}

/* Why the driver did not make something, by errno. There are no pages left in
 * most cases, which is said by whoever knows what else could be done. */
static ucs_status_t uct_sep_context_failed(uct_sep_md_t *md, const char *call)
{
    if (uct_sep_shortage_get(errno) == UCT_SEP_SHORTAGE_DEVICE) {
        ucs_debug("%s: %s failed: %m", md->dev.name, call);
        return UCS_ERR_NO_RESOURCE;
    }

    ucs_error("%s: %s failed: %m%s", md->dev.name, call,
              uct_sep_shortage_hint(errno, ""));
    return UCS_ERR_IO_ERROR;
}

ucs_status_t uct_sep_context_open(uct_sep_md_t *md, uct_sep_context_t **own_p)
{
    uct_sep_context_t *own;
    ucs_status_t status;

    own = ucs_calloc(1, sizeof(*own), "sep_context");
    if (own == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    own->context = ibv_open_device(md->dev.context->device);
    if (own->context == NULL) {
        status = uct_sep_context_failed(md, "ibv_open_device()");
        goto err_free;
    }

    uct_sep_account_add(own->context, UCT_SEP_ACCOUNT_CONTEXT, 0);
    own->pd = ibv_alloc_pd(own->context);
    if (own->pd == NULL) {
        status = uct_sep_context_failed(md, "ibv_alloc_pd()");
        goto err_close;
    }

    uct_sep_uuars_init(&own->uuars, own->context);
    if (own->uuars.is_dynamic != md->uuars.is_dynamic) {
        /* libmlx5 opens contexts even if no page is left to arm their
         * completion queues on; such queues can't be created */
        ucs_debug("%s: no UAR page for a context", md->dev.name);
        status = UCS_ERR_NO_RESOURCE;
        goto err_dealloc;
    }

    status = uct_sep_async_init(&own->async, own->context,
                                md->async.is_enabled, 0);
    if (status != UCS_OK) {
        goto err_dealloc;
    }

    uct_sep_own_mutex_lock(&md->own_lock);
    uct_sep_context_insert(md, own);
    uct_sep_own_mutex_unlock(&md->own_lock);

    *own_p = own;
    return UCS_OK;

err_dealloc:
    uct_sep_uuars_cleanup(&own->uuars);
    ibv_dealloc_pd(own->pd);
err_close:
    uct_sep_account_remove(own->context, UCT_SEP_ACCOUNT_CONTEXT, 0);
    ibv_close_device(own->context);
err_free:
    ucs_free(own);
    return status;
}

void uct_sep_context_close(uct_sep_md_t *md, uct_sep_context_t *own)
{
    int ret;

    uct_sep_own_mutex_lock(&md->own_lock);
    uct_sep_own_keys_cleanup(&own->keys);
    ucs_list_del(&own->list);
    uct_sep_own_mutex_unlock(&md->own_lock);

    uct_sep_async_cleanup(&own->async);
    uct_sep_uuars_cleanup(&own->uuars);
    ret = ibv_dealloc_pd(own->pd);
    if (ret != 0) {
        ucs_warn("%s: ibv_dealloc_pd(of a worker's context) failed: %s",
                 md->dev.name, strerror(ret));
    }

    uct_sep_account_remove(own->context, UCT_SEP_ACCOUNT_CONTEXT, 0);
    if (ibv_close_device(own->context) != 0) {
        ucs_warn("%s: ibv_close_device(of a worker) failed: %m", md->dev.name);
    }
    ucs_free(own);
}
