/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uar/dm.h>
#include <sim/objs/mem.h>
#include <sim/objs/store.h>
#include <sim/reap/reap.h>
#include <sim/uar/layout.h>
#include <sim/uar/map.h>

#include <errno.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(MLX5SIM_DM_PAGES == 32, "a bit for each page");


static uint64_t mlx5sim_dm_size(const mlx5sim_dm_t *dm)
{
    return (uint64_t)dm->pages * MLX5SIM_UAR_PAGE_SIZE;
}

/* Not through the C library: programs hook its functions. The segment is marked
 * for removal at once; Linux attaches it all the same as long as it is there.
 * @return 0 or -ENOMEM */
static int mlx5sim_dm_attach(mlx5sim_dm_t *dm)
{
    long addr;

    dm->segment = syscall(SYS_shmget, IPC_PRIVATE, mlx5sim_dm_size(dm),
                          IPC_CREAT | 0600);
    if (dm->segment < 0) {
        return -ENOMEM;
    }

    addr = syscall(SYS_shmat, dm->segment, NULL, 0);
    syscall(SYS_shmctl, dm->segment, IPC_RMID, NULL);
    if (addr == -1) {
        return -ENOMEM;
    }

    dm->addr = addr;
    return 0;
}

/* The first of @a pages free pages of a device in a row, or -1. limit_lock is
 * held. Counted each time instead of in a map, which killed processes could
 * leave wrong. */
static int mlx5sim_dm_search(uint32_t dev, uint32_t pages)
{
    uint32_t high   = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_DM].high);
    uint64_t wanted = (1ull << pages) - 1;
    uint64_t taken  = 0;
    const mlx5sim_dm_t *dm;
    unsigned i;

    for (i = 0; i < high; ++i) {
        dm = mlx5sim_obj_at(MLX5SIM_OBJ_DM, i);
        if ((atomic_load(&dm->o.owner) != 0) && (dm->dev == dev)) {
            taken |= ((1ull << dm->pages) - 1) << dm->page;
        }
    }

    for (i = 0; i + pages <= MLX5SIM_DM_PAGES; ++i) {
        if (!(taken & (wanted << i))) {
            return i;
        }
    }

    return -1;
}

/* One attempt. @return as mlx5sim_dm_take() */
static int mlx5sim_dm_try(mlx5sim_ctx_t *ctx, uint32_t pages,
                          mlx5sim_dm_t **dm_p)
{
    mlx5sim_dm_t *dm = NULL;
    int page, ret;

    (void)mlx5sim_lock(&mlx5sim_store->limit_lock);
    page = mlx5sim_dm_search(ctx->dev, pages);
    if (page >= 0) {
        dm = mlx5sim_obj_alloc(MLX5SIM_OBJ_DM,
                               mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    }
    if (dm != NULL) {
        dm->dev   = ctx->dev;
        dm->page  = page;
        dm->pages = pages;
    }
    mlx5sim_unlock(&mlx5sim_store->limit_lock);
    if (dm == NULL) {
        return -ENOMEM;
    }

    ret = mlx5sim_dm_attach(dm);
    if (ret != 0) {
        mlx5sim_obj_free(MLX5SIM_OBJ_DM, dm);
        return ret;
    }

    *dm_p = dm;
    return 0;
}

int mlx5sim_dm_take(mlx5sim_ctx_t *ctx, uint64_t length, mlx5sim_dm_t **dm_p)
{
    uint32_t pages;
    int ret;

    if (length > (uint64_t)MLX5SIM_DM_PAGES * MLX5SIM_UAR_PAGE_SIZE) {
        return -ENOMEM;
    }

    pages = (length + MLX5SIM_UAR_PAGE_SIZE - 1) / MLX5SIM_UAR_PAGE_SIZE;
    ret   = mlx5sim_dm_try(ctx, pages, dm_p);
    if (ret != 0) {
        /* what the dead held is free */
        mlx5sim_proc_reap_dead();
        ret = mlx5sim_dm_try(ctx, pages, dm_p);
    }

    if (ret == 0) {
        (*dm_p)->length = length;
    }
    return ret;
}

void mlx5sim_dm_give(mlx5sim_dm_t *dm)
{
    syscall(SYS_shmdt, dm->addr);
    mlx5sim_obj_free(MLX5SIM_OBJ_DM, dm);
}

mlx5sim_dm_t *mlx5sim_dm_find(uint32_t ctx, uint64_t file_page)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_DM].high);
    mlx5sim_dm_t *dm;
    uint32_t i;

    for (i = 0; i < high; ++i) {
        dm = mlx5sim_obj_mine(MLX5SIM_OBJ_DM, i, ctx);
        if ((dm != NULL) && (file_page >= MLX5SIM_UAR_PAGE_DM + dm->page) &&
            (file_page - MLX5SIM_UAR_PAGE_DM - dm->page < dm->pages)) {
            return dm;
        }
    }

    return NULL;
}

/* Whether @a addr is where the application has seen the memory lately */
static int mlx5sim_dm_has(const mlx5sim_dm_t *dm, uintptr_t addr)
{
    uint64_t mapped;
    unsigned i;

    for (i = 0; i < MLX5SIM_DM_PLACES; ++i) {
        mapped = atomic_load(&dm->mapped[i]);
        if ((mapped != 0) && (addr - mapped < mlx5sim_dm_size(dm))) {
            return 1;
        }
    }

    return 0;
}

/* Whether another thread, with the same fault, has brought memory there. An
 * address that is in none any more, and faults again, can't be read. */
static int mlx5sim_dm_is_there(uintptr_t addr)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_DM].high);
    const mlx5sim_dm_t *dm;
    struct iovec local, remote;
    uint32_t i;
    char byte;

    for (i = 0; i < high; ++i) {
        dm = mlx5sim_obj_at(MLX5SIM_OBJ_DM, i);
        if ((atomic_load(&dm->o.owner) == mlx5sim_self_tag) &&
            mlx5sim_dm_has(dm, addr)) {
            local  = (struct iovec){&byte, 1};
            remote = (struct iovec){(void*)addr, 1};
            return mlx5sim_mem_probev(mlx5sim_proc_self(), &local, 1, &remote,
                                      1, 1) == 0;
        }
    }

    return 0;
}

int mlx5sim_dm_fault(uintptr_t addr)
{
    uint64_t file_page, offset;
    mlx5sim_insn_window_t all;
    uintptr_t start;
    mlx5sim_map_t map;
    mlx5sim_dm_t *dm;
    unsigned seq;

    if ((mlx5sim_store == NULL) || (mlx5sim_self_tag == 0)) {
        return 0;
    }

    mlx5sim_map_renew();
    if (!mlx5sim_map_lookup(addr, &map, &all, &seq)) {
        return mlx5sim_dm_is_there(addr);
    }

    file_page = (map.offset + (addr - map.range.lo)) >> MLX5SIM_UAR_PAGE_SHIFT;
    dm        = mlx5sim_dm_find(map.ctx, file_page);
    if (dm == NULL) {
        return 0;
    }

    /* all of it has to be mapped: the segment comes as a whole */
    offset = (MLX5SIM_UAR_PAGE_DM + dm->page) * MLX5SIM_UAR_PAGE_SIZE;
    if ((offset < map.offset) ||
        (offset - map.offset + mlx5sim_dm_size(dm) >
         map.range.hi - map.range.lo)) {
        return 0;
    }

    start = map.range.lo + (offset - map.offset);
    atomic_store(&dm->mapped[atomic_fetch_add(&dm->next, 1) %
                             MLX5SIM_DM_PLACES], start);
    return syscall(SYS_shmat, dm->segment, start, SHM_REMAP) == (long)start;
}
