/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/instance/instance.h>
#include <sim/instance/path.h>
#include <sim/instance/pidns.h>
#include <sim/instance/place.h>
#include <sim/instance/tree.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MLX5SIM_INSTANCE_DEFAULT_DIR "/dev/shm/mlx5sim."

/* No file of the tree, nor the configuration, is longer */
#define MLX5SIM_INSTANCE_MAX_FILE 65536

static struct {
    pthread_once_t   once;
    int              error; /* errno of the attempt to join */
    char             dir[PATH_MAX];
    mlx5sim_config_t config;
} mlx5sim_instance = {
    .once = PTHREAD_ONCE_INIT
};

/* Returns the locked file or -1. The lock ends with the file descriptor, so
 * also with the process. */
static int mlx5sim_instance_lock(int dir_fd)
{
    int saved_errno, fd;

    fd = openat(dir_fd, MLX5SIM_INSTANCE_LOCK,
                O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return -1;
    }

    while (flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            saved_errno = errno;
            close(fd);
            errno = saved_errno;
            return -1;
        }
    }

    return fd;
}

/* A variable of the environment that differs from the one the instance was
 * created with has no effect: say so. */
static void mlx5sim_instance_compare(const char *dir,
                                     const mlx5sim_config_t *config,
                                     const mlx5sim_config_t *wanted,
                                     char *warning, size_t size)
{
    char has[MLX5SIM_CONFIG_STRING_MAX], wants[MLX5SIM_CONFIG_STRING_MAX];
    const mlx5sim_config_row_t *rows;
    const char *value;
    size_t count, i;

    rows = mlx5sim_config_rows(&count);
    for (i = 0; i < count; ++i) {
        value = getenv(rows[i].name);
        if ((rows[i].scope != MLX5SIM_CONFIG_INSTANCE) || (value == NULL) ||
            (value[0] == '\0')) {
            continue;
        }

        mlx5sim_config_get(config, &rows[i], has, sizeof(has));
        mlx5sim_config_get(wanted, &rows[i], wants, sizeof(wants));
        if (strcmp(has, wants)) {
            snprintf(warning, size, "%s=%s has no effect: the instance %s was "
                     "created with %s; use mlx5sim-run --private, or "
                     "--reset when no process uses it, or another MLX5SIM_DIR",
                     rows[i].name, wants, dir, has);
            return;
        }
    }
}

/* Create the instance with the given configuration, unless somebody has done so
 * since we looked. */
static int mlx5sim_instance_create(const char *dir, int dir_fd,
                                   mlx5sim_config_t *config, char *error,
                                   size_t error_size)
{
    struct rlimit limit;
    int lock_fd, ret;

    /* the kernel would send a signal, even at the mark */
    if ((getrlimit(RLIMIT_FSIZE, &limit) == 0) &&
        (limit.rlim_cur < MLX5SIM_INSTANCE_MAX_FILE)) {
        snprintf(error, error_size, "cannot create the files in %s: this "
                 "process may only make files of %lu bytes; raise 'ulimit -f'",
                 dir, (unsigned long)limit.rlim_cur);
        errno = EFBIG;
        return -1;
    }

    if (mlx5sim_place_claim(dir_fd, dir, error, error_size) != 0) {
        return -1;
    }

    lock_fd = mlx5sim_instance_lock(dir_fd);
    if (lock_fd < 0) {
        snprintf(error, error_size, "cannot lock %s/" MLX5SIM_INSTANCE_LOCK
                 ": %m", dir);
        return -1;
    }

    ret = 0;
    if (faccessat(dir_fd, MLX5SIM_INSTANCE_CONFIG, F_OK, 0) == 0) {
        goto out_unlock;
    }

    /* a creator that was killed may have used another configuration */
    mlx5sim_tree_remove(dir_fd);
    ret = mlx5sim_config_find_netifs(config, error, error_size);
    if (ret != 0) {
        goto out_unlock;
    }

    ret = mlx5sim_tree_create(dir_fd, config);
    if (ret != 0) {
        snprintf(error, error_size, "cannot create the device tree in %s: %m",
                 dir);
        goto out_unlock;
    }

    ret = mlx5sim_pidns_save(dir_fd, dir, error, error_size);
    if (ret != 0) {
        goto out_unlock;
    }

    ret = mlx5sim_config_save(config, dir_fd, MLX5SIM_INSTANCE_CONFIG, error,
                              error_size);
    if (ret != 0) {
        snprintf(error, error_size, "cannot write %s/" MLX5SIM_INSTANCE_CONFIG
                 ": %m", dir);
    }

out_unlock:
    close(lock_fd);
    return ret;
}

/* Join the instance in an open directory. @param wanted  What the environment
 * asks for. */
static int mlx5sim_instance_join_at(int dir_fd, const char *dir,
                                    mlx5sim_config_t *wanted,
                                    mlx5sim_config_t *config_p, char *path_p,
                                    char *error, size_t error_size)
{
    int ret;

    ret = (faccessat(dir_fd, MLX5SIM_INSTANCE_CONFIG, F_OK, 0) == 0) ?
          mlx5sim_place_claim(dir_fd, dir, error, error_size) :
          mlx5sim_instance_create(dir, dir_fd, wanted, error, error_size);
    if ((ret != 0) ||
        (mlx5sim_pidns_check(dir_fd, dir, error, error_size) != 0)) {
        return -1;
    }

    if (mlx5sim_place_path(dir_fd, path_p, PATH_MAX) != 0) {
        snprintf(error, error_size, "cannot resolve %.200s: %m; is /proc "
                 "mounted?", dir);
        return -1;
    }

    mlx5sim_config_init(config_p);
    return mlx5sim_config_load(config_p, dir_fd, path_p,
                               MLX5SIM_INSTANCE_CONFIG, error, error_size);
}

int mlx5sim_instance_join(const char *dir, int follow,
                          mlx5sim_config_t *config_p, char *path_p, char *error,
                          size_t error_size)
{
    unsigned flags = MLX5SIM_PLACE_CREATE |
                     (follow ? MLX5SIM_PLACE_FOLLOW : 0);
    mlx5sim_config_t wanted;
    int saved_errno;
    int dir_fd, ret;

    error[0] = '\0';

    /* even what will not be used has to be valid: anything else is a mistake */
    mlx5sim_config_init(&wanted);
    if (mlx5sim_config_read_env(&wanted, ~0u, error, error_size) != 0) {
        return -1;
    }

    dir_fd = mlx5sim_place_open(dir, flags, error, error_size);
    if (dir_fd < 0) {
        return -1;
    }

    ret = mlx5sim_instance_join_at(dir_fd, dir, &wanted, config_p, path_p,
                                   error, error_size);
    saved_errno = errno;
    close(dir_fd);
    errno = saved_errno;
    if (ret != 0) {
        return -1;
    }

    mlx5sim_instance_compare(dir, config_p, &wanted, error, error_size);
    return mlx5sim_config_read_env(config_p, MLX5SIM_CONFIG_PROCESS, error,
                                   error_size);
}

/* What an instance consists of: the rest of a directory is somebody else's */
static int mlx5sim_instance_has(const char *name)
{
    static const char *const names[] = {
        MLX5SIM_INSTANCE_CONFIG, MLX5SIM_INSTANCE_LOCK,
        MLX5SIM_INSTANCE_VIOLATIONS, MLX5SIM_INSTANCE_STORE, MLX5SIM_PIDNS_FILE
    };
    unsigned i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (strcmp(name, names[i]) == 0) {
            return 1;
        }
    }

    return mlx5sim_tree_has(name) ||
           (strncmp(name, MLX5SIM_INSTANCE_CHAN,
                    strlen(MLX5SIM_INSTANCE_CHAN)) == 0) ||
           /* unfinished */
           (strncmp(name, MLX5SIM_INSTANCE_CONFIG ".",
                    strlen(MLX5SIM_INSTANCE_CONFIG ".")) == 0);
}

int mlx5sim_instance_remove(const char *dir, int follow, int all, char *error,
                            size_t error_size)
{
    int dir_fd, left, ret = -1;

    dir_fd = mlx5sim_place_open(dir, follow ? MLX5SIM_PLACE_FOLLOW : 0, error,
                                error_size);
    if (dir_fd < 0) {
        return -1;
    }

    if (mlx5sim_place_check(dir_fd, dir, error, error_size) != 0) {
        goto out;
    }

    /* first of all, so that nobody joins what is going */
    (void)unlinkat(dir_fd, MLX5SIM_INSTANCE_CONFIG, 0);
    left = mlx5sim_place_clear(dir_fd, all ? NULL : mlx5sim_instance_has);
    ret  = mlx5sim_place_abandon(dir_fd);
    if (left > 0) {
        snprintf(error, error_size, "%s is no instance any more, but holds "
                 "files that are not of the device: they are left alone", dir);
    } else if (ret != 0) {
        snprintf(error, error_size, "cannot remove %s: %m", dir);
    }

out:
    close(dir_fd);
    return ret;
}

const char *mlx5sim_instance_locate(char *buf, size_t size, int *follow_p)
{
    const char *env = getenv("MLX5SIM_DIR");

    snprintf(buf, size, MLX5SIM_INSTANCE_DEFAULT_DIR "%u", (unsigned)geteuid());
    if ((env == NULL) || (env[0] == '\0')) {
        env = buf;
    }

    /* anybody can put a link at the default place, whoever names it */
    *follow_p = (strcmp(env, buf) != 0);
    return env;
}

static void mlx5sim_instance_init(void)
{
    char error[MLX5SIM_CONFIG_ERROR_MAX], buf[PATH_MAX];
    const char *unknown, *closest, *dir;
    int follow;

    dir = mlx5sim_instance_locate(buf, sizeof(buf), &follow);
    mlx5sim_config_init(&mlx5sim_instance.config);
    if (mlx5sim_instance_join(dir, follow, &mlx5sim_instance.config,
                              mlx5sim_instance.dir, error,
                              sizeof(error)) != 0) {
        goto err;
    }

    if (mlx5sim_path_set_root(mlx5sim_instance.dir,
                              mlx5sim_instance.config.devices) != 0) {
        snprintf(error, sizeof(error), "cannot resolve %.200s: %m", dir);
        goto err;
    }

    if (mlx5sim_instance.config.log < MLX5SIM_LOG_LEVEL_WARN) {
        return;
    }

    if (error[0] != '\0') {
        fprintf(stderr, "mlx5sim: warning: %s\n", error);
    }

    unknown = mlx5sim_config_find_unknown(&closest);
    if (unknown != NULL) {
        fprintf(stderr, "mlx5sim: warning: %s is not a variable of mlx5sim%s%s"
                "%s\n", unknown, (closest != NULL) ? ", did you mean " : "",
                (closest != NULL) ? closest : "", (closest != NULL) ? "?" : "");
    }
    return;

err:
    mlx5sim_instance.error = (errno != 0) ? errno : EINVAL;
    mlx5sim_config_init(&mlx5sim_instance.config);
    fprintf(stderr, "mlx5sim: no device in this process: %s\n", error);
}

const char *mlx5sim_instance_dir(void)
{
    int saved_errno = errno;

    pthread_once(&mlx5sim_instance.once, mlx5sim_instance_init);
    errno = saved_errno;
    if (mlx5sim_instance.error != 0) {
        errno = mlx5sim_instance.error;
        return NULL;
    }

    return mlx5sim_instance.dir;
}

const mlx5sim_config_t *mlx5sim_instance_config(void)
{
    mlx5sim_instance_dir();
    return &mlx5sim_instance.config;
}

int mlx5sim_instance_is_disabled(void)
{
    enum { UNKNOWN, NO, YES };
    static atomic_int state = UNKNOWN;
    const char *value;
    int current;

    current = atomic_load_explicit(&state, memory_order_relaxed);
    if (current == UNKNOWN) {
        value   = getenv("MLX5SIM_DISABLE");
        current = ((value != NULL) && (mlx5sim_config_bool(value) == 1)) ?
                  YES : NO;
        atomic_store_explicit(&state, current, memory_order_relaxed);
    }

    return current == YES;
}
