/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/stat/private.h>
#include <sim/instance/instance.h>
#include <sim/instance/pidns.h>
#include <sim/instance/place.h>
#include <sim/objs/proc.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* File of a private instance that names its mlx5sim-run */
#define MLX5SIM_PRIVATE_OWNER  "private"

/* Between the user's number and what tells private instances apart */
#define MLX5SIM_PRIVATE_SUFFIX ".private."

/* Longest line of the file above */
#define MLX5SIM_PRIVATE_LINE   128


/* Whether a process has a file of the directory mapped */
static int mlx5sim_private_is_mapped(const char *pid, const char *dir)
{
    size_t size = 0, length = strlen(dir);
    char *line  = NULL;
    int found   = 0;
    char path[PATH_MAX];
    const char *name;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
    maps = fopen(path, "re");
    if (maps == NULL) {
        return 0; /* it has gone, or is somebody else's */
    }

    while (!found && (getline(&line, &size, maps) > 0)) {
        name  = strchr(line, '/');
        found = (name != NULL) && (strncmp(name, dir, length) == 0) &&
                (name[length] == '/');
    }

    free(line);
    fclose(maps);
    return found;
}

/* Processes that have a file of the directory mapped, as text with blanks in
 * front. @return whether there are any; also if that can't be told */
static int mlx5sim_private_users(const char *dir, char *pids, size_t size)
{
    DIR *proc     = opendir("/proc");
    size_t length = 0;
    struct dirent *entry;

    pids[0] = '\0';
    if (proc == NULL) {
        snprintf(pids, size, " (no /proc)");
        return 1;
    }

    while ((entry = readdir(proc)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) &&
            mlx5sim_private_is_mapped(entry->d_name, dir)) {
            length += snprintf(pids + length, size - length, " %.20s",
                               entry->d_name);
            if (length >= size) {
                break;
            }
        }
    }

    closedir(proc);
    return length > 0;
}

/* What a process of a PID namespace is known by after its end */
static void mlx5sim_private_name(pid_t pid, uint64_t start_time,
                                 const char *pidns, char *line)
{
    snprintf(line, MLX5SIM_PRIVATE_LINE, "pid %d start %lu namespace %s",
             (int)pid, (unsigned long)start_time, pidns);
}

/* Whether the mlx5sim-run of a private instance has gone; no if that can't be
 * told */
static int mlx5sim_private_is_orphan(int dir_fd, const char *pidns)
{
    char line[MLX5SIM_PRIVATE_LINE], same[MLX5SIM_PRIVATE_LINE];
    unsigned long start_time;
    ssize_t n;
    int fd, pid;

    fd = openat(dir_fd, MLX5SIM_PRIVATE_OWNER,
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }

    n = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[(n > 0) ? n : 0] = '\0';
    if (sscanf(line, "pid %d start %lu", &pid, &start_time) != 2) {
        return 0;
    }

    /* those of other PID namespaces can't be seen */
    mlx5sim_private_name(pid, start_time, pidns, same);
    return (strcmp(line, same) == 0) &&
           (mlx5sim_proc_start_time(pid) != start_time);
}

/* Remove what is left of a private instance, if it is one and nobody has it */
static void mlx5sim_private_remove_orphan(const char *dir, const char *pidns)
{
    char error[MLX5SIM_CONFIG_ERROR_MAX], path[PATH_MAX], pids[64];
    int fd, is_orphan;

    fd = mlx5sim_place_open(dir, 0, error, sizeof(error));
    if (fd < 0) {
        return;
    }

    is_orphan = (mlx5sim_place_check(fd, dir, error, sizeof(error)) == 0) &&
                mlx5sim_private_is_orphan(fd, pidns) &&
                (mlx5sim_place_path(fd, path, sizeof(path)) == 0);
    close(fd);
    if (is_orphan && !mlx5sim_private_users(path, pids, sizeof(pids))) {
        (void)mlx5sim_instance_remove(path, 0, 1, error, sizeof(error));
    }
}

/* Where private instances are, and what their names begin with */
static const char *mlx5sim_private_parent(char *prefix, size_t size)
{
    const char *parent = "/dev/shm";

    if (access(parent, W_OK) != 0) {
        parent = getenv("TMPDIR");
        parent = ((parent == NULL) || (parent[0] != '/')) ? "/tmp" : parent;
    }

    snprintf(prefix, size, "mlx5sim.%u" MLX5SIM_PRIVATE_SUFFIX,
             (unsigned)geteuid());
    return parent;
}

static void mlx5sim_private_remove_orphans(const char *parent,
                                           const char *prefix,
                                           const char *pidns)
{
    DIR *dir = opendir(parent);
    struct dirent *entry;
    char path[PATH_MAX];

    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if ((strncmp(entry->d_name, prefix, strlen(prefix)) == 0) &&
            (snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) <
             (int)sizeof(path))) {
            mlx5sim_private_remove_orphan(path, pidns);
        }
    }

    if (dir != NULL) {
        closedir(dir);
    }
}

/* @return 0, or -1 with errno */
static int mlx5sim_private_write_owner(int dir_fd, const char *line)
{
    ssize_t length = strlen(line);
    int fd, ret;

    fd = openat(dir_fd, MLX5SIM_PRIVATE_OWNER,
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -1;
    }

    ret = (write(fd, line, length) == length) ? 0 : -1;
    close(fd);
    return ret;
}

int mlx5sim_private_create(pid_t owner)
{
    char error[MLX5SIM_CONFIG_ERROR_MAX], line[MLX5SIM_PRIVATE_LINE];
    uint64_t start_time = mlx5sim_proc_start_time(owner);
    char prefix[64], path[PATH_MAX], pidns[MLX5SIM_PIDNS_MAX];
    const char *parent;
    int fd;

    if (mlx5sim_pidns_name(pidns, error, sizeof(error)) != 0) {
        fprintf(stderr, "mlx5sim-stat: %s\n", error);
        return 1;
    }

    if (start_time == 0) {
        fprintf(stderr, "mlx5sim-stat: there is no process %d\n", (int)owner);
        return 1;
    }

    mlx5sim_private_name(owner, start_time, pidns, line);
    parent = mlx5sim_private_parent(prefix, sizeof(prefix));
    mlx5sim_private_remove_orphans(parent, prefix, pidns);
    if ((snprintf(path, sizeof(path), "%s/%sXXXXXX", parent, prefix) >=
         (int)sizeof(path)) || (mkdtemp(path) == NULL)) {
        fprintf(stderr, "mlx5sim-stat: cannot make a directory in %s: %m\n",
                parent);
        return 1;
    }

    fd = mlx5sim_place_open(path, 0, error, sizeof(error));
    if ((fd < 0) ||
        (mlx5sim_place_claim(fd, path, error, sizeof(error)) != 0)) {
        fprintf(stderr, "mlx5sim-stat: %s\n", error);
        goto err;
    }

    if (mlx5sim_private_write_owner(fd, line) != 0) {
        fprintf(stderr, "mlx5sim-stat: cannot write %s/" MLX5SIM_PRIVATE_OWNER
                ": %m\n", path);
        goto err;
    }

    close(fd);
    puts(path);
    return 0;

err:
    if (fd >= 0) {
        (void)mlx5sim_place_clear(fd, NULL);
        (void)mlx5sim_place_abandon(fd);
        close(fd);
    } else {
        (void)rmdir(path);
    }
    return 1;
}

/* Whether an instance may be removed, as far as its users are concerned */
static int mlx5sim_private_check_used(int dir_fd, const char *dir, char *error,
                                      size_t error_size)
{
    char pids[256];

    if (mlx5sim_place_check(dir_fd, dir, error, error_size) != 0) {
        return -1;
    }

    /* one that was never finished has no users */
    if ((faccessat(dir_fd, MLX5SIM_INSTANCE_CONFIG, F_OK, 0) == 0) &&
        (mlx5sim_pidns_check(dir_fd, dir, error, error_size) != 0)) {
        return -1;
    }

    if (mlx5sim_private_users(dir, pids, sizeof(pids))) {
        snprintf(error, error_size, "%.200s is in use by process%.200s", dir,
                 pids);
        return -1;
    }

    return 0;
}

int mlx5sim_private_remove(int force)
{
    char error[MLX5SIM_CONFIG_ERROR_MAX], buf[PATH_MAX], path[PATH_MAX];
    int fd, follow, ret;
    const char *dir;

    dir = mlx5sim_instance_locate(buf, sizeof(buf), &follow);
    fd  = mlx5sim_place_open(dir, follow ? MLX5SIM_PLACE_FOLLOW : 0, error,
                             sizeof(error));
    if (fd < 0) {
        goto err;
    }

    ret = mlx5sim_place_path(fd, path, sizeof(path));
    if (ret != 0) {
        snprintf(error, sizeof(error), "cannot resolve %.200s: %m", dir);
    } else if (!force) {
        ret = mlx5sim_private_check_used(fd, path, error, sizeof(error));
    }

    close(fd);
    if (ret != 0) {
        goto err;
    }

    if (mlx5sim_instance_remove(path, 0, force, error, sizeof(error)) == 0) {
        return 0;
    }

err:
    fprintf(stderr, "mlx5sim-stat: %s\n", error);
    return 1;
}
