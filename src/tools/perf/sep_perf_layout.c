/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_layout.h>
#include <tools/plan/plan_sharing.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Threads of a resource at most */
#define SEP_PERF_MAX_WAYS  4096

const char *sep_perf_resource_names[SEP_PERF_RESOURCE_LAST] = {
#define SEP_PERF_RESOURCE_NAME(_id, _name) [SEP_PERF_##_id] = _name,
    SEP_PERF_RESOURCE_FOREACH(SEP_PERF_RESOURCE_NAME)
#undef SEP_PERF_RESOURCE_NAME
};

const char *sep_perf_td_names[SEP_PERF_TD_LAST] = {
    [SEP_PERF_TD_NONE]   = "none",
    [SEP_PERF_TD_PAIR]   = "pair",
    [SEP_PERF_TD_OWN]    = "own",
    [SEP_PERF_TD_SPACED] = "spaced"
};

/* What an object belongs to, or uses and can't be shared by more than: the
 * second one must be shared by as many threads or by a multiple */
static const sep_perf_resource_t sep_perf_owners[][2] = {
    {SEP_PERF_PD, SEP_PERF_CTX},
    {SEP_PERF_CQ, SEP_PERF_CTX},
    {SEP_PERF_QP, SEP_PERF_CTX},
    {SEP_PERF_MR, SEP_PERF_PD},
    {SEP_PERF_QP, SEP_PERF_PD},
    {SEP_PERF_QP, SEP_PERF_CQ}
};

/*
 * The paper shares one resource after the other, each with all that it belongs
 * to shared by all 16 threads: a context can't be shared by fewer threads than
 * its domains, and so on.
 */
static const sep_perf_figure_t sep_perf_figures[] = {
    {3, "naive endpoints, by the number of threads", "naive"},
    {5, "a local buffer for x threads", "buf=%u"},
    {6, "the same, not aligned to cache lines if --unaligned", "buf=%u"},
    {7, "a device context for x threads", "ctx=%u"},
    {8, "a protection domain for x threads", "ctx=all,pd=%u"},
    {9, "a memory region for x threads", "ctx=all,pd=all,mr=%u"},
    {10, "a completion queue for x threads", "ctx=all,pd=all,cq=%u"},
    {11, "a queue pair and its completion queue for x threads",
     "ctx=all,pd=all,cq=%u,qp=%u"}
};

#define SEP_PERF_NUM_FIGURES \
    (sizeof(sep_perf_figures) / sizeof(sep_perf_figures[0]))


unsigned sep_perf_td_count(sep_perf_td_t td)
{
    static const unsigned counts[SEP_PERF_TD_LAST] = {
        [SEP_PERF_TD_NONE] = 0,
        [SEP_PERF_TD_PAIR] = 1,
        [SEP_PERF_TD_OWN]  = 2,
        [SEP_PERF_TD_SPACED] = 4
    };

    return counts[td];
}

static int sep_perf_parse_ways(const char *text, unsigned *ways_p)
{
    unsigned long ways;
    char *end;

    if (strcmp(text, "all") == 0) {
        *ways_p = SEP_PERF_ALL;
        return 0;
    }

    errno = 0;
    ways  = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || (*end != '\0') || (errno != 0) ||
        (ways < 1) || (ways > SEP_PERF_MAX_WAYS)) {
        return -1;
    }
    *ways_p = ways;
    return 0;
}

/* One "name=value". @return 0, or -1 with a message */
static int sep_perf_parse_item(char *item, sep_perf_sharing_t *sharing,
                               int *has_td, char *message)
{
    char *value = strchr(item, '=');
    int i;

    if (value != NULL) {
        *value++ = '\0';
        if (strcmp(item, "td") == 0) {
            for (i = 0; i < SEP_PERF_TD_LAST; ++i) {
                if (strcmp(value, sep_perf_td_names[i]) == 0) {
                    sharing->td = (sep_perf_td_t)i;
                    *has_td     = 1;
                    return 0;
                }
            }
            snprintf(message, SEP_MODEL_MESSAGE_MAX, "td=%.40s: a thread "
                     "domain is none, pair, own or spaced", value);
            return -1;
        }
        for (i = 0; i < SEP_PERF_RESOURCE_LAST; ++i) {
            if (strcmp(item, sep_perf_resource_names[i]) == 0) {
                if (sep_perf_parse_ways(value, &sharing->ways[i]) == 0) {
                    return 0;
                }
                snprintf(message, SEP_MODEL_MESSAGE_MAX, "%s=%.40s: not a "
                         "number of threads between 1 and %u, nor \"all\"",
                         item, value, SEP_PERF_MAX_WAYS);
                return -1;
            }
        }
    }
    snprintf(message, SEP_MODEL_MESSAGE_MAX, "\"%.40s\" is neither a category, "
             "nor one of buf, ctx, pd, mr, cq, qp=<threads> and td=<kind>",
             item);
    return -1;
}

/* What the workers of a category share, without what the transport has in
 * addition */
static void sep_perf_sharing_category(sep_plan_category_t category,
                                      sep_perf_sharing_t *sharing)
{
    const uct_sep_category_row_t *row;

    if (category == SEP_PLAN_NAIVE) {
        sharing->td = SEP_PERF_TD_PAIR; /* Alone on its context's page */
        return;
    }

    row         = sep_plan_category_row(category);
    sharing->td = (row->tds == 0) ? SEP_PERF_TD_NONE :
                  (row->tds == 1) ? SEP_PERF_TD_PAIR :
                  (row->tds == 2) ? SEP_PERF_TD_OWN : SEP_PERF_TD_SPACED;
    if (!row->own_context) {
        sharing->ways[SEP_PERF_CTX] = SEP_PERF_ALL;
        sharing->ways[SEP_PERF_PD]  = SEP_PERF_ALL;
    }
    if (row->is_hub) {
        sharing->ways[SEP_PERF_QP] = SEP_PERF_ALL;
        sharing->ways[SEP_PERF_CQ] = SEP_PERF_ALL;
    }
}

int sep_perf_sharing_parse(const char *text, sep_perf_sharing_t *sharing_p,
                           char *message)
{
    sep_plan_category_t category = sep_plan_category_find(text);
    int i, has_td                = 0;
    char *item, *next;
    char copy[256];

    memset(sharing_p, 0, sizeof(*sharing_p));
    if (strlen(text) >= sizeof(sharing_p->name)) {
        snprintf(message, SEP_MODEL_MESSAGE_MAX, "\"%.40s...\" is too long",
                 text);
        return -1;
    }

    snprintf(sharing_p->name, sizeof(sharing_p->name), "%s", text);
    for (i = 0; i < SEP_PERF_RESOURCE_LAST; ++i) {
        sharing_p->ways[i] = 1;
    }
    if (category != SEP_PLAN_LAST) {
        sep_perf_sharing_category(category, sharing_p);
        return 0;
    }

    snprintf(copy, sizeof(copy), "%s", text);
    for (item = copy; item != NULL; item = next) {
        next = strchr(item, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (sep_perf_parse_item(item, sharing_p, &has_td, message) != 0) {
            return -1;
        }
    }
    if (!has_td) {
        sharing_p->td = (sharing_p->ways[SEP_PERF_QP] == 1) ?
                        SEP_PERF_TD_OWN : SEP_PERF_TD_NONE;
    }
    return 0;
}

void sep_perf_sharing_unknown(sep_perf_sharing_t *sharing_p)
{
    int i;

    memset(sharing_p, 0, sizeof(*sharing_p));
    snprintf(sharing_p->name, sizeof(sharing_p->name), "%s", SEP_PERF_UNKNOWN);
    for (i = 0; i < SEP_PERF_RESOURCE_LAST; ++i) {
        sharing_p->ways[i] = 1;
    }
}

unsigned sep_perf_ways(const sep_perf_sharing_t *sharing,
                       sep_perf_resource_t resource, unsigned threads)
{
    unsigned ways = sharing->ways[resource];

    return ((ways == SEP_PERF_ALL) || (ways > threads)) ? threads : ways;
}

unsigned sep_perf_count(const sep_perf_sharing_t *sharing,
                        sep_perf_resource_t resource, unsigned threads)
{
    unsigned ways = sep_perf_ways(sharing, resource, threads);

    return (threads + ways - 1) / ways;
}

int sep_perf_sharing_check(const sep_perf_sharing_t *sharing, unsigned threads,
                           char *message)
{
    unsigned i, object, owner;

    for (i = 0; i < (sizeof(sep_perf_owners) / sizeof(sep_perf_owners[0]));
         ++i) {
        object = sep_perf_ways(sharing, sep_perf_owners[i][0], threads);
        owner  = sep_perf_ways(sharing, sep_perf_owners[i][1], threads);
        if ((owner % object != 0) && (owner != threads)) {
            snprintf(message, SEP_MODEL_MESSAGE_MAX, "%s: a %s for %u threads "
                     "needs a %s for as many or a multiple, and not for %u",
                     sharing->name,
                     sep_perf_resource_names[sep_perf_owners[i][0]], object,
                     sep_perf_resource_names[sep_perf_owners[i][1]], owner);
            return -1;
        }
    }

    /* libmlx5 takes no lock for it */
    if ((sharing->td != SEP_PERF_TD_NONE) &&
        (sep_perf_ways(sharing, SEP_PERF_QP, threads) > 1)) {
        snprintf(message, SEP_MODEL_MESSAGE_MAX, "%s: a queue pair with a "
                 "thread domain is for one thread", sharing->name);
        return -1;
    }
    return 0;
}

void sep_perf_model_sharing(const sep_perf_sharing_t *sharing, unsigned threads,
                            const sep_plan_config_t *config, int verbs,
                            sep_model_sharing_t *sharing_p)
{
    unsigned contexts = sep_perf_count(sharing, SEP_PERF_CTX, threads);
    unsigned per_ctx  = sep_perf_ways(sharing, SEP_PERF_CTX, threads);
    sep_plan_config_t shared;

    /* Contexts multiply what one has: that of the category "static" */
    shared            = *config;
    shared.category   = sep_plan_category_find("static");
    shared.cq_sharing = 1;
    sep_plan_sharing(&shared, verbs, sharing_p);
    sharing_p->uuars_dedicated *= contexts;
    sharing_p->uuars_shared    *= contexts;
    sharing_p->threads_per_qp   = sep_perf_ways(sharing, SEP_PERF_QP, threads);
    sharing_p->threads_per_cq   = sep_perf_ways(sharing, SEP_PERF_CQ, threads);
    sharing_p->qp_lock          = verbs && (sharing->td == SEP_PERF_TD_NONE);
    if ((sharing->td != SEP_PERF_TD_NONE) || (per_ctx == 1)) {
        sharing_p->uuars_dedicated = SEP_MODEL_ALL;
        sharing_p->uuars_shared    = 1;
        sharing_p->uuars_per_page  = ((sharing->td == SEP_PERF_TD_PAIR) &&
                                      (per_ctx > 1)) ? 2 : 1;
        /* Pages of a context are side by side; those of others are not */
        sharing_p->pages_adjacent  = (sharing->td != SEP_PERF_TD_NONE) &&
                                     (sharing->td != SEP_PERF_TD_SPACED) &&
                                     (per_ctx == threads);
    }
}

void sep_perf_policy(const sep_perf_sharing_t *sharing, unsigned threads,
                     char *name)
{
    unsigned per_qp = sep_perf_ways(sharing, SEP_PERF_QP, threads);

    snprintf(name, SEP_PERF_NAME_MAX, "-");
    if (strcmp(sharing->name, SEP_PERF_UNKNOWN) == 0) {
        return;
    }
    if (sep_plan_category_find(sharing->name) != SEP_PLAN_LAST) {
        snprintf(name, SEP_PERF_NAME_MAX, "%s", sharing->name);
    } else if ((sharing->td == SEP_PERF_TD_NONE) &&
               (sep_perf_count(sharing, SEP_PERF_CTX, threads) == 1) &&
               (sep_perf_ways(sharing, SEP_PERF_CQ, threads) == per_qp)) {
        if (per_qp == 1) {
            snprintf(name, SEP_PERF_NAME_MAX, "per-qp");
        } else if (per_qp == threads) {
            snprintf(name, SEP_PERF_NAME_MAX, "shared-qp");
        } else {
            snprintf(name, SEP_PERF_NAME_MAX, "mul-%u", per_qp);
        }
    }
}

unsigned long sep_perf_paper_bytes(const sep_perf_sharing_t *sharing,
                                   unsigned threads)
{
    return (sep_perf_count(sharing, SEP_PERF_CTX, threads) *
            SEP_PERF_PAPER_CTX_BYTES) +
           (sep_perf_count(sharing, SEP_PERF_PD, threads) *
            SEP_PERF_PAPER_PD_BYTES) +
           (sep_perf_count(sharing, SEP_PERF_MR, threads) *
            SEP_PERF_PAPER_MR_BYTES) +
           (sep_perf_count(sharing, SEP_PERF_CQ, threads) *
            SEP_PERF_PAPER_CQ_BYTES) +
           (sep_perf_count(sharing, SEP_PERF_QP, threads) *
            SEP_PERF_PAPER_QP_BYTES);
}

const sep_perf_figure_t *sep_perf_figure_at(unsigned index)
{
    return (index < SEP_PERF_NUM_FIGURES) ? &sep_perf_figures[index] : NULL;
}

const sep_perf_figure_t *sep_perf_figure_find(unsigned number)
{
    unsigned i;

    for (i = 0; i < SEP_PERF_NUM_FIGURES; ++i) {
        if (sep_perf_figures[i].number == number) {
            return &sep_perf_figures[i];
        }
    }
    return NULL;
}
