/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_RKEY_CLASS_H_
#define UCP_OPT_RKEY_CLASS_H_

#include <ucp/core/ucp_types.h>
#include <ucp/core/ucp_rkey.inl>
#include <ucp/opt/ucp_opt.h>

/*
 * How the keys of a class are resolved. With version 1 of the protocols a class
 * is the keys of the same memory domains and memory type for one configuration
 * of endpoints; with version 2, the keys of one rkey configuration, which is
 * the same and the device the memory is close to. Configurations are never
 * changed or removed while the worker exists, so neither are classes.
 */

/** A lane, and which of the UCT keys in a key is for it. */
typedef struct {
    uct_iface_h      iface;      /**< transport of the lane; while it is being
                                      connected, or has failed, the endpoint has
                                      something else there */
    ucp_lane_index_t lane;       /**< UCP_NULL_LANE: none */
    uint8_t          rkey_index; /**< in ucp_rkey_t::tl_rkey; UCP_NULL_RESOURCE:
                                      the lane needs none */
} ucp_opt_rkey_lane_t;

/** Atomic operations, as bits: whether a reply is fetched, the operation is
 *  CSWAP, and how long the operand is (4 or 8 bytes). */
#define UCP_OPT_AMO_BIT(_is_fetch, _is_cswap, _size) \
    UCS_BIT(((_is_fetch) ? 2 : 0) + ((_is_cswap) ? 2 : 0) + \
            (((_size) == sizeof(uint64_t)) ? 1 : 0))

/** All atomic operations of a size. */
#define UCP_OPT_AMO_ALL(_size) \
    (UCP_OPT_AMO_BIT(0, 0, _size) | UCP_OPT_AMO_BIT(1, 0, _size) | \
     UCP_OPT_AMO_BIT(1, 1, _size))

typedef struct ucp_opt_rkey_class {
    struct ucp_opt_rkey_class *next;       /**< of the worker */
    ucp_md_map_t              md_map;      /**< as that of the keys */
    ucp_worker_cfg_index_t    cfg_index;   /**< version 1: of the endpoint;
                                                version 2: of the key */
    uint8_t                   mem_type;    /**< as that of the keys */
    ucp_rkey_config_key_t     config_key;  /**< version 2: of the keys */
    ucp_worker_cfg_index_t    ep_cfg_index; /**< of the endpoints */
    uint8_t                   is_resolved; /**< version 1: other keys can be
                                                resolved by this */
    uint8_t                   has_sw;      /**< version 1: an operation is
                                                carried out by the peer's UCP,
                                                which has to be known for it */
    ucp_rkey_t                resolved;    /**< version 1: the first key, of
                                                which the cache is valid */
    ucp_opt_rkey_lane_t       rma;         /**< puts and gets */
    size_t                    max_put;     /**< bytes; 0: none */
    size_t                    max_put_bcopy; /**< the same for puts that the
                                                transport copies at once */
    size_t                    max_get;     /**< bytes; 0: none */
    ucp_opt_rkey_lane_t       amo;         /**< atomics */
    unsigned                  amos;        /**< as ucp_opt_rkey_t::amos */
    ucp_opt_amo_func_t        amo_func;    /**< of keys that are ready */
} ucp_opt_rkey_class_t;


/**
 * Find or make the class of a key. The one that was found last is found first.
 *
 * @param [in] ep    Endpoint the key is used with.
 * @param [in] rkey  Key that is resolved for the endpoint's configuration.
 *
 * @return The class, or NULL if there is no memory for another one.
 */
const ucp_opt_rkey_class_t *ucp_opt_rkey_class(ucp_ep_h ep, ucp_rkey_h rkey);

/**
 * Find the class of a key with version 1 of the protocols, when the key is not
 * resolved.
 *
 * @return The class, or NULL if there is none yet.
 */
const ucp_opt_rkey_class_t *ucp_opt_rkey_class_find_v1(ucp_ep_h ep,
                                                       ucp_rkey_h rkey);

/**
 * Find the configuration of a key for version 2 of the protocols, if it is that
 * of the key before.
 *
 * @return Whether it is, and is set.
 */
static UCS_F_ALWAYS_INLINE int
ucp_opt_rkey_find_config(ucp_worker_h worker, ucp_rkey_h rkey,
                         const ucp_rkey_config_key_t *config_key)
{
    const ucp_opt_rkey_class_t *cls = worker->opt_rkey_classes;

    if ((cls == NULL) ||
        !ucp_rkey_config_is_equal(cls->config_key, *config_key)) {
        return 0;
    }

    rkey->cfg_index = cls->cfg_index;
    rkey->opt.cls   = cls;
    return 1;
}

/** Atomics with a key that is ready for some. */
ucs_status_ptr_t
ucp_opt_amo_ready(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                  size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                  const ucp_request_param_t *param);

/** Atomics that are active messages, with version 1 of the protocols. */
ucs_status_ptr_t
ucp_opt_amo_am_v1(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                  size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                  const ucp_request_param_t *param);

/** The same with version 2. */
ucs_status_ptr_t
ucp_opt_amo_am_v2(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                  size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                  const ucp_request_param_t *param);

/** Release all classes of a worker. */
void ucp_opt_rkey_classes_cleanup(ucp_worker_h worker);

/** UCT key of a key for a lane. */
static UCS_F_ALWAYS_INLINE uct_rkey_t
ucp_opt_rkey_tl(ucp_rkey_h rkey, uint8_t rkey_index)
{
    return (rkey_index == UCP_NULL_RESOURCE) ? UCT_INVALID_RKEY :
           rkey->tl_rkey[rkey_index].rkey.rkey;
}

#endif
