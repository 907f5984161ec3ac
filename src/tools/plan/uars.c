/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/plan/uars.h>

#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>


static unsigned long sep_uars_in(const char *path)
{
    unsigned long page  = sysconf(_SC_PAGESIZE);
    unsigned long count = 0;
    unsigned long start, end;
    char line[512], mode[5];
    FILE *maps;

    maps = fopen(path, "r");
    if (maps == NULL) {
        return 0;
    }

    while (fgets(line, sizeof(line), maps) != NULL) {
        if ((sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3) &&
            (strcmp(mode, "-w-s") == 0)) {
            count += (end - start) / page;
        }
    }

    fclose(maps);
    return count;
}

unsigned long sep_uars_mapped(void)
{
    return sep_uars_in("/proc/self/maps");
}

unsigned long sep_uars_mapped_by(unsigned long pid)
{
    char path[48];

    snprintf(path, sizeof(path), "/proc/%lu/maps", pid);
    return sep_uars_in(path);
}

static int sep_uars_can_alloc(struct ibv_context *context, uint32_t type)
{
    struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(context, type);

    if (uar == NULL) {
        return 0;
    }

    mlx5dv_devx_free_uar(uar);
    return 1;
}

/*
 * libmlx5 has a UAR without BlueFlame of its own, for the doorbells of CQs, if
 * and only if the kernel knows UAR objects (verbs.c,
 * mlx5_set_singleton_nc_uar); otherwise this is refused. The kernel refuses one
 * with BlueFlame if it can't combine writes (mlx5_ib, wc_support).
 */
sep_plan_regime_t sep_uars_find_regime(struct ibv_context *context)
{
    if (!sep_uars_can_alloc(context, MLX5DV_UAR_ALLOC_TYPE_NC)) {
        return SEP_PLAN_LEGACY;
    }

    return sep_uars_can_alloc(context, MLX5DV_UAR_ALLOC_TYPE_BF) ?
           SEP_PLAN_KERNEL_DYNAMIC : SEP_PLAN_NC;
}
