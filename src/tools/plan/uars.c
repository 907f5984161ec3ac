/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/plan/uars.h>

#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>


unsigned long sep_uars_mapped(void)
{
    unsigned long page  = sysconf(_SC_PAGESIZE);
    unsigned long count = 0;
    unsigned long start, end;
    char line[512], mode[5];
    FILE *maps;

    maps = fopen("/proc/self/maps", "r");
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

/*
 * libmlx5 has a UAR without BlueFlame of its own, for the doorbells of CQs, if
 * and only if the kernel knows UAR objects (verbs.c,
 * mlx5_set_singleton_nc_uar); otherwise this is refused.
 */
sep_plan_regime_t sep_uars_find_regime(struct ibv_context *context)
{
    struct mlx5dv_devx_uar *uar;

    uar = mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC);
    if (uar == NULL) {
        return SEP_PLAN_LEGACY;
    }

    mlx5dv_devx_free_uar(uar);
    return SEP_PLAN_KERNEL_DYNAMIC;
}
