/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_POOL_H
#define UCT_SEP_POOL_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_pool.h
 *
 * Memory that an interface has for itself, and pools of buffers in it. It is
 * allocated as the user's configuration says (UCX_SEP_ALLOC), but registered
 * with no more rights than are needed: UCT's own pools (uct_iface_mpool_init())
 * register theirs as memory for everybody, so that peers could write into
 * messages that have arrived.
 */

/**
 * Allocate memory that nobody but us may access; it is not registered.
 *
 * @param name   For messages of UCX's.
 * @param mem_p  Filled; released by uct_mem_free(). Nothing is in it.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY without a message.
 */
ucs_status_t uct_sep_pool_alloc_mem(uct_sep_iface_t *iface, size_t length,
                                    const char *name,
                                    uct_allocated_memory_t *mem_p);


/**
 * Make a pool of registered buffers, for local access only. Arguments as those
 * of uct_iface_mpool_init(), but the memory handles are for local keys only
 * (uct_sep_mem_lkey(), uct_sep_own_keys_make()). The interface may be closed
 * before the pool is cleaned up, the memory domain may not.
 */
ucs_status_t
uct_sep_pool_init(uct_sep_iface_t *iface, ucs_mpool_t *mp, size_t elem_size,
                  size_t align_offset, size_t alignment,
                  const uct_iface_mpool_config_t *config, unsigned grow,
                  uct_iface_mpool_init_obj_cb_t init_obj, const char *name);

END_C_DECLS

#endif
