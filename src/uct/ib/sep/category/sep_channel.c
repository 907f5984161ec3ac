/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/category/sep_channel.h>
#include <uct/ib/sep/category/sep_sharing.h>

#include <ucs/debug/log.h>
#include <string.h>


static const uct_sep_category_ops_t *uct_sep_category_ops[] = {
#define UCT_SEP_CATEGORY_OPS(_id, _name, _ops, ...) \
    [UCT_SEP_CATEGORY_##_id] = &uct_sep_category_##_ops,
    UCT_SEP_CATEGORY_FOREACH(UCT_SEP_CATEGORY_OPS)
#undef UCT_SEP_CATEGORY_OPS
};


ucs_status_t
uct_sep_channel_init_common(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    struct ibv_pd *pd;
    ucs_status_t status;

    status = uct_sep_td_common_get(md, &pd);
    if (status != UCS_OK) {
        return status;
    }

    channel->has_common = 1;
    if (pd != NULL) {
        channel->cm_pd  = pd;
        channel->cm_use = UCT_SEP_UUAR_SHARED;
        return UCS_OK;
    }

    channel->cm_pd  = md->pd;
    channel->cm_use = UCT_SEP_UUAR_DRIVER;
    return uct_sep_channel_claim_uuars(channel, md);
}

/* Category that keeps the memory domain's uUARs for one worker */
static const char *uct_sep_channel_claimant(void)
{
    const uct_sep_category_row_t *row = uct_sep_category_rows;

    while (!row->own_context) {
        ++row;
    }
    return row->name;
}

ucs_status_t
uct_sep_channel_claim_uuars(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    if (channel->has_claim) {
        return UCS_OK;
    }

    if (uct_sep_sharing_claim_uuars(md->sharing, 0) != UCS_OK) {
        ucs_error("%s: a worker of category \"%s\" has claimed the uUARs of "
                  "the memory domain: give all workers of a memory domain the "
                  "same UCX_SEP_CATEGORY", md->dev.name,
                  uct_sep_channel_claimant());
        return UCS_ERR_UNSUPPORTED;
    }

    channel->has_claim = 1;
    return UCS_OK;
}

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) void
uct_sep_channel_release(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    if (channel->has_claim) {
        uct_sep_sharing_unclaim_uuars(md->sharing);
    }
    if (channel->has_common) {
        uct_sep_td_common_put(md);
    }
}

ucs_status_t uct_sep_channel_get_responder_pd(uct_sep_channel_t *channel,
                                              uct_sep_md_t *md,
                                              struct ibv_pd **pd_p)
{
    ucs_status_t status = UCS_OK;
    struct ibv_pd *pd;

    if (channel->responder_pd == NULL) {
        uct_sep_sharing_mutex_lock(&md->sharing->lock);
        status = uct_sep_td_common_get(md, &pd);
        uct_sep_sharing_mutex_unlock(&md->sharing->lock);
        if (status != UCS_OK) {
            return status;
        }

        channel->has_common   = 1;
        channel->responder_pd = (pd != NULL) ? pd : md->pd;
    }

    *pd_p = channel->responder_pd;
    return UCS_OK;
}

static ucs_status_t
uct_sep_channel_try_init(uct_sep_channel_t *channel, uct_sep_md_t *md,
                         uct_sep_category_t category)
{
    ucs_status_t status;

    memset(channel, 0, sizeof(*channel));
    channel->category = category;
    channel->ops      = uct_sep_category_ops[category];
    channel->uuars    = &md->uuars;

    uct_sep_sharing_mutex_lock(&md->sharing->lock);
    status = channel->ops->init(channel, md);
    if (status != UCS_OK) {
        uct_sep_channel_release(channel, md);
    } else {
        __atomic_add_fetch(&md->sharing->num_channels, 1, __ATOMIC_RELAXED);
    }
    uct_sep_sharing_mutex_unlock(&md->sharing->lock);
    return status;
}

/* Why there are no thread domains, or UAR pages for them */
static const char *uct_sep_channel_shortage(ucs_status_t status)
{
    return (status == UCT_SEP_TD_ERR_NONE) ?
           "no thread domain, as the kernel has found no write combining," :
           "no UAR page left";
}

static int uct_sep_channel_is_shortage(ucs_status_t status)
{
    return (status == UCS_ERR_NO_RESOURCE) || (status == UCT_SEP_TD_ERR_NONE);
}

/* Fall back, one category at a time, while there is no page or domain */
static ucs_status_t
uct_sep_channel_init_any(uct_sep_channel_t *channel, uct_sep_md_t *md,
                         uct_sep_category_t wanted, const char *name)
{
    static int is_told = 0;
    ucs_status_t shortage = UCS_OK;
    uct_sep_category_t category, next;
    ucs_status_t status;

    for (category = wanted;; category = next) {
        status = uct_sep_channel_try_init(channel, md, category);
        next   = uct_sep_category_auto_next(category);
        if (!uct_sep_channel_is_shortage(status) ||
            (next == UCT_SEP_CATEGORY_AUTO)) {
            break;
        }
        shortage = status;
    }

    if ((status == UCS_OK) && (category != wanted) &&
        !__atomic_exchange_n(&is_told, 1, __ATOMIC_RELAXED)) {
        ucs_warn("%s: there is %s for a worker of sharing category \"%s\", "
                 "using \"%s\" (said once)", name,
                 uct_sep_channel_shortage(shortage),
                 uct_sep_category_names[wanted],
                 uct_sep_category_names[category]);
    }
    return status;
}

static ucs_status_t
uct_sep_channel_init_auto(uct_sep_channel_t *channel, uct_sep_md_t *md,
                          uct_sep_category_t wanted, const char *name)
{
    ucs_status_t status, reserved;
    struct ibv_pd *pd;

    /* Hold back what static needs, while there are pages */
    uct_sep_sharing_mutex_lock(&md->sharing->lock);
    reserved = uct_sep_td_common_get(md, &pd);
    uct_sep_sharing_mutex_unlock(&md->sharing->lock);

    status = uct_sep_channel_init_any(channel, md, wanted, name);
    if (reserved == UCS_OK) {
        if ((status == UCS_OK) && !channel->has_common) {
            channel->has_common = 1;
        } else {
            uct_sep_sharing_mutex_lock(&md->sharing->lock);
            uct_sep_td_common_put(md);
            uct_sep_sharing_mutex_unlock(&md->sharing->lock);
        }
    }

    return status;
}

/* Tell what to do if there are no UAR pages, or no thread domains */
static void
uct_sep_channel_no_pages(uct_sep_category_t category, ucs_status_t status,
                         const char *name)
{
    const uct_sep_category_row_t *row = &uct_sep_category_rows[category];
    uct_sep_category_t last, next;

    last = uct_sep_category_auto_first(1);
    while ((next = uct_sep_category_auto_next(last)) != UCT_SEP_CATEGORY_AUTO) {
        last = next;
    }

    if (status == UCT_SEP_TD_ERR_NONE) {
        ucs_error("%s: there is %s for a worker of sharing category \"%s\": "
                  "set UCX_SEP_CATEGORY to one that needs none, such as %s, or "
                  "leave it unset", name, uct_sep_channel_shortage(status),
                  row->name, uct_sep_category_names[last]);
    } else if (row->own_context || (row->tds > 0)) {
        ucs_error("%s: the device or the process has no UAR page left for a "
                  "worker of sharing category \"%s\": use fewer workers, or "
                  "set UCX_SEP_CATEGORY to one that takes fewer pages, such as "
                  "%s", name, row->name, uct_sep_category_names[last]);
    } else {
        ucs_error("%s: the device or the process has no UAR page left for a "
                  "worker of sharing category \"%s\": no category takes fewer, "
                  "run fewer processes on the device, or set "
                  "UCX_SEP_CATEGORY=%s in all of them", name, row->name,
                  uct_sep_category_names[last]);
    }
}

ucs_status_t uct_sep_channel_init(uct_sep_channel_t *channel, uct_sep_md_t *md,
                                  uct_sep_category_t category, const char *name)
{
    uct_sep_category_t wanted;
    ucs_status_t status;
    char names[256];

    if (category >= UCT_SEP_CATEGORY_LAST) {
        ucs_error("%s: there is no sharing category number %d: set "
                  "UCX_SEP_CATEGORY to one of %s, or auto", name, (int)category,
                  uct_sep_category_list(names, sizeof(names)));
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_sep_sharing_get(md);
    if (status != UCS_OK) {
        return status;
    }

    wanted = uct_sep_category_wanted(category,
                                     __atomic_load_n(&md->sharing->num_channels,
                                                     __ATOMIC_RELAXED) + 1);
    switch (category) {
    case UCT_SEP_CATEGORY_AUTO:
        status = uct_sep_channel_init_auto(channel, md, wanted, name);
        break;
    case UCT_SEP_CATEGORY_DEFAULT:
        status = uct_sep_channel_init_any(channel, md, wanted, name);
        break;
    default:
        status = uct_sep_channel_try_init(channel, md, category);
        break;
    }

    if (uct_sep_channel_is_shortage(status)) {
        uct_sep_channel_no_pages(category, status, name);
        status = UCS_ERR_NO_RESOURCE;
    } else if (status != UCS_OK) {
        ucs_error("%s: could not set up a worker of sharing category \"%s\": "
                  "%s", name, uct_sep_category_names[category],
                  ucs_status_string(status));
    }

    if (status != UCS_OK) {
        uct_sep_sharing_put(md);
    }
    return status;
}

void uct_sep_channel_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    uct_sep_sharing_mutex_lock(&md->sharing->lock);
    channel->ops->cleanup(channel, md);
    uct_sep_channel_release(channel, md);
    __atomic_sub_fetch(&md->sharing->num_channels, 1, __ATOMIC_RELAXED);
    uct_sep_sharing_mutex_unlock(&md->sharing->lock);
    uct_sep_sharing_put(md);
}
