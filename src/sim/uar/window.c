/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uar/window.h>
#include <sim/objs/store.h>
#include <sim/uar/layout.h>
#include <sim/uar/legacy.h>
#include <sim/uar/map.h>


static uintptr_t mlx5sim_window_page(uintptr_t addr)
{
    return addr & ~(uintptr_t)(MLX5SIM_UAR_PAGE_SIZE - 1);
}

/* Number of a page in the file that is mapped there */
static uint64_t
mlx5sim_window_number(const mlx5sim_map_t *map, uintptr_t page)
{
    return (map->offset + (page - map->range.lo)) >> MLX5SIM_UAR_PAGE_SHIFT;
}

static mlx5sim_uar_t *mlx5sim_window_uar(const mlx5sim_map_t *map,
                                         uintptr_t page)
{
    uint64_t file_page = mlx5sim_window_number(map, page);
    mlx5sim_uar_t *uar;
    uint32_t index;

    if (file_page >= MLX5SIM_UAR_PAGE_BASE + MLX5SIM_MAX_UARS) {
        return NULL;
    }

    index = (file_page >= MLX5SIM_UAR_PAGE_BASE) ?
            file_page - MLX5SIM_UAR_PAGE_BASE :
            mlx5sim_legacy_find(map->ctx, file_page);
    uar   = mlx5sim_obj_at(MLX5SIM_OBJ_UAR, index);
    return ((atomic_load(&uar->o.owner) == mlx5sim_self_tag) &&
            (uar->o.ctx == map->ctx)) ? uar : NULL;
}

/* @param all  Range that covers all pages of contexts */
static void mlx5sim_window_set(uintptr_t page, const mlx5sim_insn_window_t *all,
                               mlx5sim_insn_window_t *page_p,
                               mlx5sim_insn_window_t avoid_p[2],
                               unsigned *num_p)
{
    page_p->lo    = page;
    page_p->hi    = page + MLX5SIM_UAR_PAGE_SIZE;
    avoid_p[0].lo = all->lo;
    avoid_p[0].hi = page_p->lo;
    avoid_p[1].lo = page_p->hi;
    avoid_p[1].hi = all->hi;
    *num_p        = 2;
}

/* @param may_scan  Whether to make a new snapshot for what is not in it */
static mlx5sim_uar_t *
mlx5sim_window_lookup(uintptr_t addr, int may_scan,
                      mlx5sim_insn_window_t *page_p,
                      mlx5sim_insn_window_t avoid_p[2], unsigned *num_p)
{
    uintptr_t page = mlx5sim_window_page(addr);
    int is_fresh   = !may_scan;
    mlx5sim_uar_t *uar;
    mlx5sim_insn_window_t all;
    mlx5sim_map_t map;
    int is_there;
    unsigned seq;

    if ((mlx5sim_store == NULL) || (mlx5sim_self_tag == 0)) {
        return NULL;
    }

    /* somebody else's snapshot may have been begun before this page was mapped:
     * only our own is conclusive */
    for (;;) {
        is_there = mlx5sim_map_lookup(addr, &map, &all, &seq);
        uar      = is_there ? mlx5sim_window_uar(&map, page) : NULL;
        if (uar != NULL) {
            break;
        } else if (is_fresh) {
            return NULL;
        }
        is_fresh = mlx5sim_map_rescan(seq);
    }

    mlx5sim_window_set(page, &all, page_p, avoid_p, num_p);
    return uar;
}

mlx5sim_uar_t *mlx5sim_window_find(uintptr_t addr,
                                   mlx5sim_insn_window_t *page_p,
                                   mlx5sim_insn_window_t avoid_p[2],
                                   unsigned *num_p)
{
    return mlx5sim_window_lookup(addr, 1, page_p, avoid_p, num_p);
}

mlx5sim_uar_t *mlx5sim_window_find_known(uintptr_t addr,
                                         mlx5sim_insn_window_t *page_p,
                                         mlx5sim_insn_window_t avoid_p[2],
                                         unsigned *num_p)
{
    return mlx5sim_window_lookup(addr, 0, page_p, avoid_p, num_p);
}

int64_t mlx5sim_window_file_page(uintptr_t addr, uintptr_t *page_p)
{
    mlx5sim_insn_window_t all;
    mlx5sim_map_t map;
    unsigned seq;

    *page_p = mlx5sim_window_page(addr);
    if (mlx5sim_store == NULL) {
        return -1;
    }

    mlx5sim_map_renew();
    if (!mlx5sim_map_lookup(addr, &map, &all, &seq)) {
        return -1;
    }

    return mlx5sim_window_number(&map, *page_p);
}

/* Whether what was mapped is of a context that is still open. One that was
 * opened since may have its number, and other pages at the same addresses. */
static int mlx5sim_window_is_open(const mlx5sim_map_t *map)
{
    const mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, map->ctx);

    return (atomic_load(&ctx->o.owner) != 0) && (ctx->inode == map->inode);
}

int mlx5sim_window_find_clock(uintptr_t addr, mlx5sim_insn_window_t *page_p,
                              mlx5sim_insn_window_t avoid_p[2],
                              unsigned *num_p)
{
    uintptr_t page = mlx5sim_window_page(addr);
    int is_fresh   = 0;
    mlx5sim_insn_window_t all;
    mlx5sim_map_t map;
    unsigned seq;

    if (mlx5sim_store == NULL) {
        return 0;
    }

    while (!mlx5sim_map_lookup(addr, &map, &all, &seq) ||
           (mlx5sim_window_number(&map, page) != MLX5SIM_UAR_PAGE_CORE_CLOCK) ||
           !(is_fresh || mlx5sim_window_is_open(&map))) {
        if (is_fresh) {
            return 0;
        }
        mlx5sim_map_renew();
        is_fresh = 1;
    }

    mlx5sim_window_set(page, &all, page_p, avoid_p, num_p);
    return 1;
}

int mlx5sim_window_is_mapped(uintptr_t addr)
{
    uintptr_t page;

    return mlx5sim_window_file_page(addr, &page) >= 0;
}

mlx5sim_uar_t *mlx5sim_window_refresh(uintptr_t addr)
{
    mlx5sim_insn_window_t page, avoid[2];
    unsigned num;

    mlx5sim_map_renew();
    return mlx5sim_window_find(addr, &page, avoid, &num);
}
