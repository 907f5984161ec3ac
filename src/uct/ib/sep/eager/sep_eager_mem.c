/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/eager/sep_eager_mem.h>
#include <uct/ib/sep/iface/sep_pool.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>


/* What peers may do. Whoever registers memory that others write has to be
 * allowed to write it, too (ibv_reg_mr(3)). */
#define UCT_SEP_EAGER_MEM_ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* Of a counter in memory */
#define UCT_SEP_EAGER_COUNTER_UNIT  sizeof(uint64_t)


static ucs_status_t
uct_sep_eager_mem_alloc(uct_sep_iface_t *iface, size_t length, const char *name,
                        uct_allocated_memory_t *mem)
{
    ucs_status_t status;

    if (mem->address != NULL) {
        return UCS_OK;
    }

    status = uct_sep_pool_alloc_mem(iface, length, name, mem);
    if (status != UCS_OK) {
        mem->address = NULL;
        ucs_debug("%s: no memory for the eager channel (%s, %zu bytes): %s",
                  iface->port.name, name, length, ucs_status_string(status));
        return UCS_ERR_NO_MEMORY;
    }

    memset(mem->address, 0, length);
    return UCS_OK;
}

static void uct_sep_eager_mem_free(uct_allocated_memory_t *mem)
{
    if (mem->address != NULL) {
        uct_mem_free(mem);
        mem->address = NULL;
    }
}

static size_t uct_sep_eager_mem_ring_size(const uct_sep_iface_t *iface)
{
    return (size_t)iface->config.eager.slots * iface->config.eager.slot_size;
}

void *uct_sep_eager_mem_ring(const uct_sep_iface_t *iface,
                             const uct_sep_eager_ring_t *ring)
{
    return UCS_PTR_BYTE_OFFSET(iface->eager.memory.address,
                               (ring - iface->eager.rings) *
                               uct_sep_eager_mem_ring_size(iface));
}

ucs_status_t uct_sep_eager_mem_init_rings(uct_sep_iface_t *iface)
{
    unsigned num = iface->config.eager.poll_set;
    ucs_status_t status;

    if (iface->eager.rings != NULL) {
        return UCS_OK;
    }

    status = uct_sep_eager_mem_alloc(iface, num *
                                            uct_sep_eager_mem_ring_size(iface),
                                     "sep_eager_rings", &iface->eager.memory);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_ring_poll_init(&iface->eager.places, num);
    if (status != UCS_OK) {
        return status;
    }

    iface->eager.rings = ucs_calloc(num, sizeof(*iface->eager.rings),
                                    "sep_eager_ring");
    if (iface->eager.rings == NULL) {
        uct_sep_ring_poll_cleanup(&iface->eager.places);
        return UCS_ERR_NO_MEMORY;
    }

    return UCS_OK;
}

ucs_status_t uct_sep_eager_mem_open_ring(uct_sep_iface_t *iface,
                                         uct_sep_eager_ring_t *ring)
{
    return uct_sep_mem_reg_own(uct_sep_iface_md(iface),
                               uct_sep_eager_mem_ring(iface, ring),
                               uct_sep_eager_mem_ring_size(iface),
                               UCT_SEP_EAGER_MEM_ACCESS, &ring->memh);
}

void uct_sep_eager_mem_close_ring(uct_sep_iface_t *iface,
                                  uct_sep_eager_ring_t *ring)
{
    uct_sep_mem_dereg_own(uct_sep_iface_md(iface), ring->memh);
    ring->memh = NULL;
}

/* Before the first ring of a peer is accepted */
static ucs_status_t uct_sep_eager_mem_init_counters(uct_sep_iface_t *iface)
{
    size_t length = UCT_SEP_EAGER_MAX_COUNTERS * UCT_SEP_EAGER_COUNTER_UNIT;
    ucs_status_t status;

    if (iface->eager.counters_memh != NULL) {
        return UCS_OK;
    }

    status = uct_sep_eager_mem_alloc(iface, length, "sep_eager_counters",
                                     &iface->eager.counters);
    if (status != UCS_OK) {
        return status;
    }

    return uct_sep_mem_reg_own(uct_sep_iface_md(iface),
                               iface->eager.counters.address, length,
                               UCT_SEP_EAGER_MEM_ACCESS,
                               &iface->eager.counters_memh);
}

uint32_t *uct_sep_eager_mem_get_counter(uct_sep_iface_t *iface)
{
    unsigned i, bit;

    if (uct_sep_eager_mem_init_counters(iface) != UCS_OK) {
        return NULL;
    }

    for (i = 0; i < ucs_static_array_size(iface->eager.counter_map); ++i) {
        if (~iface->eager.counter_map[i] != 0) {
            bit                          = ucs_ffs64(~iface->eager.
                                                      counter_map[i]);
            iface->eager.counter_map[i] |= UCS_BIT(bit);
            return UCS_PTR_BYTE_OFFSET(iface->eager.counters.address,
                                       (i * 64 + bit) *
                                       UCT_SEP_EAGER_COUNTER_UNIT);
        }
    }

    return NULL;
}

void uct_sep_eager_mem_put_counter(uct_sep_iface_t *iface,
                                   const uint32_t *counter)
{
    unsigned index = UCS_PTR_BYTE_DIFF(iface->eager.counters.address, counter) /
                     UCT_SEP_EAGER_COUNTER_UNIT;

    iface->eager.counter_map[index / 64] &= ~UCS_BIT(index % 64);
}

uint32_t uct_sep_eager_mem_counter_rkey(const uct_sep_iface_t *iface)
{
    return iface->eager.counters_memh->mr->rkey;
}

void uct_sep_eager_mem_cleanup(uct_sep_iface_t *iface)
{
    if (iface->eager.rings != NULL) {
        uct_sep_ring_poll_cleanup(&iface->eager.places);
        ucs_free(iface->eager.rings);
    }
    if (iface->eager.counters_memh != NULL) {
        uct_sep_mem_dereg_own(uct_sep_iface_md(iface),
                              iface->eager.counters_memh);
    }
    uct_sep_eager_mem_free(&iface->eager.counters);
    uct_sep_eager_mem_free(&iface->eager.memory);
}
