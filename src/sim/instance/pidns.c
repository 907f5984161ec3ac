/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/instance/pidns.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


int mlx5sim_pidns_name(char *name, char *error, size_t error_size)
{
    struct stat st;
    char self[32];
    ssize_t n;

    n = readlink("/proc/self", self, sizeof(self) - 1);
    if (n < 0) {
        snprintf(error, error_size, "cannot read /proc/self: %m; the device "
                 "needs /proc");
        return -1;
    }

    self[n] = '\0';
    if (atoi(self) != getpid()) {
        snprintf(error, error_size, "/proc shows the processes of another PID "
                 "namespace (this one is %s there, and %d here): mount one of "
                 "this namespace, as unshare --mount-proc does", self,
                 (int)getpid());
        errno = EXDEV;
        return -1;
    }

    /* a kernel without namespaces has but one */
    if (stat("/proc/self/ns/pid", &st) != 0) {
        memset(&st, 0, sizeof(st));
    }

    snprintf(name, MLX5SIM_PIDNS_MAX, "%lu:%lu\n", (unsigned long)st.st_dev,
             (unsigned long)st.st_ino);
    return 0;
}

int mlx5sim_pidns_save(int dir_fd, const char *dir, char *error,
                       size_t error_size)
{
    char name[MLX5SIM_PIDNS_MAX];
    ssize_t n = -1;
    int fd;

    if (mlx5sim_pidns_name(name, error, error_size) != 0) {
        return -1;
    }

    fd = openat(dir_fd, MLX5SIM_PIDNS_FILE,
                O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        errno = ENOSPC;
        n     = write(fd, name, strlen(name));
        close(fd);
    }

    if (n != (ssize_t)strlen(name)) {
        snprintf(error, error_size, "cannot write %s/" MLX5SIM_PIDNS_FILE
                 ": %m", dir);
        return -1;
    }

    return 0;
}

int mlx5sim_pidns_check(int dir_fd, const char *dir, char *error,
                        size_t error_size)
{
    char name[MLX5SIM_PIDNS_MAX], its[MLX5SIM_PIDNS_MAX];
    ssize_t n = -1;
    int fd;

    if (mlx5sim_pidns_name(name, error, error_size) != 0) {
        return -1;
    }

    fd = openat(dir_fd, MLX5SIM_PIDNS_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, its, sizeof(its) - 1);
        close(fd);
    }

    if (n < 0) {
        snprintf(error, error_size, "cannot read %s/" MLX5SIM_PIDNS_FILE
                 ": %m; remove the instance when no process uses it", dir);
        return -1;
    }

    its[n] = '\0';
    if (strcmp(name, its) != 0) {
        snprintf(error, error_size, "the instance %s is of another PID "
                 "namespace, whose processes can't be seen from here: set "
                 "MLX5SIM_DIR to another directory, or, if they have ended, "
                 "remove it with rm -r", dir);
        errno = EXDEV;
        return -1;
    }

    return 0;
}
