/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/preload/device.h>
#include <sim/instance/path.h>
#include <sim/libc/real.h>
#include <sim/rdmacm/rdmacm.h>
#include <sim/uverbs/uverbs.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static __thread int mlx5sim_device_errno
        __attribute__((tls_model("initial-exec")));


int mlx5sim_device_open(unsigned index, int flags)
{
    int fd;

    if ((index != MLX5SIM_PATH_RDMA_CM) && (index >= mlx5sim_path_devices())) {
        errno = ENOENT;
        fd    = -1;
    } else if (flags & O_DIRECTORY) {
        errno = ENOTDIR;
        fd    = -1;
    } else if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) {
        errno = EEXIST;
        fd    = -1;
    } else if (index == MLX5SIM_PATH_RDMA_CM) {
        fd = mlx5sim_rdmacm_open(flags);
    } else {
        fd = mlx5sim_uverbs_open(index, flags);
    }

    mlx5sim_device_errno = (fd < 0) ? errno : 0;
    return fd;
}

int mlx5sim_device_error(void)
{
    return mlx5sim_device_errno;
}

void mlx5sim_device_forget_error(void)
{
    mlx5sim_device_errno = 0;
}

int mlx5sim_device_is_placeholder(const char *path, dev_t st_dev, ino_t st_ino,
                                  unsigned *index_p)
{
    char name[64], buf[PATH_MAX];
    mlx5sim_path_kind_t kind;
    struct stat st;
    const char *base;

    base = strrchr(path, '/');
    base = (base == NULL) ? path : base + 1;
    if ((strncmp(base, "uverbs", 6) && strcmp(base, "rdma_cm")) ||
        (strlen(base) > 16) ||
        (mlx5sim_path_devices() == 0)) {
        return 0;
    }

    snprintf(name, sizeof(name), "/dev/infiniband/%s", base);
    kind = mlx5sim_path_classify(name, buf, sizeof(buf), index_p);
    if ((kind != MLX5SIM_PATH_UVERBS) ||
        (mlx5sim_path_locate(name + 1, buf, sizeof(buf)) == NULL)) {
        return 0;
    }

    return (REAL(stat)(buf, &st) == 0) && (st.st_dev == st_dev) &&
           (st.st_ino == st_ino);
}
