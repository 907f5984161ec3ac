/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uar/window.h>
#include <sim/objs/store.h>
#include <sim/uar/layout.h>
#include <sim/uar/legacy.h>
#include <sim/uar/map.h>


static mlx5sim_uar_t *mlx5sim_window_uar(const mlx5sim_map_t *map,
                                         uintptr_t page)
{
    uint64_t file_page;
    mlx5sim_uar_t *uar;
    uint32_t index;

    file_page = (map->offset + (page - map->range.lo)) >>
                MLX5SIM_UAR_PAGE_SHIFT;
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

/* @param may_scan  Whether to make a new snapshot for what is not in it */
static mlx5sim_uar_t *
mlx5sim_window_lookup(uintptr_t addr, int may_scan,
                      mlx5sim_insn_window_t *page_p,
                      mlx5sim_insn_window_t avoid_p[2], unsigned *num_p)
{
    uintptr_t page = addr & ~(uintptr_t)(MLX5SIM_UAR_PAGE_SIZE - 1);
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

    page_p->lo    = page;
    page_p->hi    = page + MLX5SIM_UAR_PAGE_SIZE;
    avoid_p[0].lo = all.lo;
    avoid_p[0].hi = page_p->lo;
    avoid_p[1].lo = page_p->hi;
    avoid_p[1].hi = all.hi;
    *num_p        = 2;
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

    *page_p = addr & ~(uintptr_t)(MLX5SIM_UAR_PAGE_SIZE - 1);
    if (mlx5sim_store == NULL) {
        return -1;
    }

    mlx5sim_map_renew();
    if (!mlx5sim_map_lookup(addr, &map, &all, &seq)) {
        return -1;
    }

    return (map.offset + (*page_p - map.range.lo)) >> MLX5SIM_UAR_PAGE_SHIFT;
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
