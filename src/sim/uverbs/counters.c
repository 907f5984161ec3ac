/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/counters.h>
#include <sim/instance/instance.h>
#include <sim/instance/tree.h>
#include <sim/objs/port.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>


void mlx5sim_counters_refresh(const char *path)
{
    const char *device = strstr(path, "/infiniband/mlx5_");
    int saved_errno    = errno;
    unsigned dev, port;
    char name[64];

    if ((device != NULL) &&
        (sscanf(device, "/infiniband/mlx5_%u/ports/%u/%63s", &dev, &port,
                name) == 3)) {
        while (name[strlen(name) - 1] == '/') {
            name[strlen(name) - 1] = '\0';
        }
        mlx5sim_port_tell(mlx5sim_instance_dir(), dev, port, name,
                          mlx5sim_tree_set_counter);
    }
    errno = saved_errno;
}
