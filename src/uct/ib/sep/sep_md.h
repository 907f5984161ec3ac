/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_MD_H
#define UCT_SEP_MD_H

#include <uct/ib/sep/sep_device.h>
#include <uct/ib/sep/sep_uuar.h>
#include <uct/base/uct_md.h>
#include <ucs/memory/rcache.h>
#include <pthread.h>

BEGIN_C_DECLS

/**
 * @file sep_md.h
 *
 * Component "sep" and its memory domains, one for each mlx5 device.
 */

extern uct_component_t uct_sep_component;


/** Packed remote key. */
typedef struct uct_sep_packed_rkey {
    __be32 magic; /**< UCT_SEP_RKEY_MAGIC */
    __be32 rkey;
} UCS_S_PACKED uct_sep_packed_rkey_t;

/** "SEPk", to tell our keys from others' and from garbage. */
#define UCT_SEP_RKEY_MAGIC  0x5345506bu


/** Configuration of a memory domain. */
typedef struct uct_sep_md_config {
    uct_md_config_t          super;
    ucs_ternary_auto_value_t rcache_enable; /**< RCACHE */
    uct_md_rcache_config_t   rcache;
    ucs_ternary_auto_value_t fork_init;     /**< FORK_INIT */
    double                   reg_cost_base; /**< MEM_REG_OVERHEAD, seconds */
} uct_sep_md_config_t;


typedef struct uct_sep_mem_keys uct_sep_mem_keys_t;
typedef struct uct_sep_context uct_sep_context_t;


/** Registered memory: what a uct_mem_h points to. */
typedef struct uct_sep_mem {
    uint32_t           lkey;
    uint32_t           rkey;
    struct ibv_mr      *mr;
    uct_sep_mem_keys_t *keys; /**< Local keys in contexts of workers, or NULL;
                                   see sep_context.h */
} uct_sep_mem_t;


/** Memory domain. */
typedef struct uct_sep_md {
    uct_md_t              super;
    uct_sep_device_t      dev;
    struct ibv_pd         *pd;
    ucs_rcache_t          *rcache;     /**< NULL if switched off */
    ucs_linear_func_t     reg_cost;
    uct_sep_uuars_t       uuars;      /**< Of the device's context */

    pthread_mutex_t       channel_lock; /**< Of what follows, and of domains */
    unsigned              num_channels; /**< Of workers; read without lock */
    ucs_list_link_t       half_pairs; /**< uct_sep_td_pair_t, one in use */
    struct uct_sep_td_pair *common_pair; /**< See uct_sep_td_common_get() */
    unsigned              common_refcount;
    int                   uuar_claims; /**< Workers with uUARs by the driver's
                                            policy in the domain's context, or
                                            -1 for one who is to be the only
                                            one */

    pthread_mutex_t       own_lock;   /**< Of what follows, and of local keys */
    ucs_list_link_t       contexts;   /**< uct_sep_context_t, by slot */

    pthread_mutex_t       group_lock; /**< Of what follows: things that several
                                           workers share */
    ucs_list_link_t       cq_groups;  /**< uct_sep_cq_group_t */
    ucs_list_link_t       hubs;       /**< uct_sep_hub_t */
} uct_sep_md_t;


/**
 * Announce that a worker's data path rings uUARs by the driver's policy, in the
 * domain's context. With channel_lock held.
 *
 * @param is_alone  Nobody else may.
 *
 * @return UCS_OK; UCS_ERR_BUSY, without a message.
 */
ucs_status_t uct_sep_md_claim_uuars(uct_sep_md_t *md, int is_alone);

/** Undo it. */
void uct_sep_md_unclaim_uuars(uct_sep_md_t *md);


/** Table of uct_sep_md_config_t. */
extern ucs_config_field_t uct_sep_md_config_table[];


/** Open a device's memory domain; of uct_component_t. */
ucs_status_t
uct_sep_md_open(uct_component_t *component, const char *md_name,
                const uct_md_config_t *uct_config, uct_md_h *md_p);


/** Show a memory domain in the virtual file system; of uct_component_t. */
void uct_sep_md_vfs_init(uct_md_h tl_md);


/** @return Local key of registered memory. */
static inline uint32_t uct_sep_mem_lkey(uct_mem_h memh)
{
    return ((const uct_sep_mem_t*)memh)->lkey;
}

END_C_DECLS

#endif
