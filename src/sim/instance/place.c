/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/instance/place.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All of the mark. The number changes with what may be in the directory. */
#define MLX5SIM_PLACE_CONTENT \
    "mlx5sim instance, format 1\n" \
    "What is in this directory belongs to the software mlx5 device, which " \
    "removes it.\n"

/* How often others may get in between while a directory is marked */
#define MLX5SIM_PLACE_TRIES 100

typedef enum {
    MLX5SIM_PLACE_NOT_MARKED,
    MLX5SIM_PLACE_BEGUN,      /* somebody marks it, or was killed at that */
    MLX5SIM_PLACE_MARKED,
    MLX5SIM_PLACE_FOREIGN     /* the file is not what we write */
} mlx5sim_place_state_t;


/* A link that another user has planted must not choose the directory. The
 * kernel refuses it only where fs.protected_symlinks is 1 and the link is in a
 * directory like /tmp. */
static int mlx5sim_place_check_link(const char *dir, char *error,
                                    size_t error_size)
{
    char name[PATH_MAX];
    struct stat st;
    size_t length;

    length = strlen(dir);
    while ((length > 1) && (dir[length - 1] == '/')) {
        --length; /* behind a slash, a link is followed */
    }

    if (length >= sizeof(name)) {
        snprintf(error, error_size, "%.100s...: name too long", dir);
        errno = ENAMETOOLONG;
        return -1;
    }

    memcpy(name, dir, length);
    name[length] = '\0';
    if ((fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) == 0) &&
        S_ISLNK(st.st_mode) && (st.st_uid != geteuid()) && (st.st_uid != 0)) {
        snprintf(error, error_size, "%s is a symbolic link of user %u, not of "
                 "user %u who runs this; set MLX5SIM_DIR to a directory of "
                 "your own", dir, (unsigned)st.st_uid, (unsigned)geteuid());
        errno = EPERM;
        return -1;
    }

    return 0;
}

int mlx5sim_place_open(const char *dir, unsigned flags, char *error,
                       size_t error_size)
{
    int follow = flags & MLX5SIM_PLACE_FOLLOW;
    struct stat st;
    int fd;

    if ((flags & MLX5SIM_PLACE_CREATE) && (mkdir(dir, 0700) != 0) &&
        (errno != EEXIST)) {
        snprintf(error, error_size, "cannot create the directory %s: %m; set "
                 "MLX5SIM_DIR to a place where that is possible", dir);
        return -1;
    }

    if (follow && (mlx5sim_place_check_link(dir, error, error_size) != 0)) {
        return -1;
    }

    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC |
                   (follow ? 0 : O_NOFOLLOW));
    if (fd < 0) {
        snprintf(error, error_size, "cannot open the directory %s: %m; set "
                 "MLX5SIM_DIR to another one", dir);
        return -1;
    }

    if (fstat(fd, &st) != 0) {
        snprintf(error, error_size, "cannot stat %s: %m", dir);
        goto err_close;
    }

    if (st.st_uid != geteuid()) {
        snprintf(error, error_size, "%s belongs to user %u, not to user %u who "
                 "runs this; set MLX5SIM_DIR to a directory of your own", dir,
                 (unsigned)st.st_uid, (unsigned)geteuid());
        errno = EPERM;
        goto err_close;
    }

    if (st.st_mode & (S_IWGRP | S_IWOTH)) {
        snprintf(error, error_size, "%s can be written by other users: chmod "
                 "go-w it, or set MLX5SIM_DIR to another directory", dir);
        errno = EPERM;
        goto err_close;
    }

    return fd;

err_close:
    close(fd);
    return -1;
}

static mlx5sim_place_state_t mlx5sim_place_state(int dir_fd)
{
    char content[sizeof(MLX5SIM_PLACE_CONTENT) + 1];
    mlx5sim_place_state_t state = MLX5SIM_PLACE_FOREIGN;
    struct stat st;
    ssize_t n;
    int fd;

    /* whatever it is, opening it must not wait */
    fd = openat(dir_fd, MLX5SIM_PLACE_MARK,
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return (errno == ENOENT) ? MLX5SIM_PLACE_NOT_MARKED :
                                   MLX5SIM_PLACE_FOREIGN;
    }

    if ((fstat(fd, &st) != 0) || !S_ISREG(st.st_mode)) {
        goto out;
    }

    n = read(fd, content, sizeof(content));
    if ((n < 0) || (n >= (ssize_t)sizeof(MLX5SIM_PLACE_CONTENT)) ||
        (memcmp(content, MLX5SIM_PLACE_CONTENT, n) != 0)) {
        goto out;
    }

    state = (n == sizeof(MLX5SIM_PLACE_CONTENT) - 1) ? MLX5SIM_PLACE_MARKED :
                                                       MLX5SIM_PLACE_BEGUN;
out:
    close(fd);
    return state;
}

static int mlx5sim_place_is_dot(const char *name)
{
    return (strcmp(name, ".") == 0) || (strcmp(name, "..") == 0);
}

/* Directory stream with a position of its own */
static DIR *mlx5sim_place_list(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir;

    if (fd < 0) {
        return NULL;
    }

    dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
    }
    return dir;
}

/* Whether there is nothing but a mark; no if that can't be told */
static int mlx5sim_place_is_empty(int dir_fd)
{
    DIR *dir = mlx5sim_place_list(dir_fd);
    struct dirent *entry;
    int empty = (dir != NULL);

    while (empty && ((entry = readdir(dir)) != NULL)) {
        empty = mlx5sim_place_is_dot(entry->d_name) ||
                (strcmp(entry->d_name, MLX5SIM_PLACE_MARK) == 0);
    }

    if (dir != NULL) {
        closedir(dir);
    }
    return empty;
}

/* Write the mark. @return 0, 1 if others got in between, or -1 */
static int mlx5sim_place_write(int dir_fd, int is_new)
{
    static const char content[] = MLX5SIM_PLACE_CONTENT;
    ssize_t length              = sizeof(content) - 1;
    ssize_t n;
    int fd;

    fd = openat(dir_fd, MLX5SIM_PLACE_MARK,
                O_WRONLY | O_NOFOLLOW | O_CLOEXEC |
                (is_new ? O_CREAT | O_EXCL : 0), 0600);
    if (fd < 0) {
        return ((errno == EEXIST) || (errno == ENOENT)) ? 1 : -1;
    }

    /* all who do this at once write the same */
    errno = 0;
    n     = write(fd, content, length);
    close(fd);
    if (n == length) {
        return 0;
    }

    errno = (n < 0) ? errno : ENOSPC;
    return -1;
}

static int mlx5sim_place_refuse(const char *dir, char *error, size_t error_size)
{
    snprintf(error, error_size, "%s is not empty, and its files are not of "
             "this device (they would include " MLX5SIM_PLACE_MARK "): nothing "
             "in it is touched; choose an empty or a new directory as "
             "MLX5SIM_DIR, or, if it is an instance of an older version, end "
             "its users and remove it yourself", dir);
    errno = ENOTEMPTY;
    return -1;
}

int mlx5sim_place_claim(int dir_fd, const char *dir, char *error,
                        size_t error_size)
{
    mlx5sim_place_state_t state;
    int tries, ret;

    for (tries = 0; tries < MLX5SIM_PLACE_TRIES; ++tries) {
        state = mlx5sim_place_state(dir_fd);
        if (state == MLX5SIM_PLACE_MARKED) {
            return 0;
        }

        if ((state == MLX5SIM_PLACE_FOREIGN) ||
            !mlx5sim_place_is_empty(dir_fd)) {
            /* whoever has marked it since then has begun to fill it */
            return (mlx5sim_place_state(dir_fd) == MLX5SIM_PLACE_MARKED) ? 0 :
                   mlx5sim_place_refuse(dir, error, error_size);
        }

        ret = mlx5sim_place_write(dir_fd, state == MLX5SIM_PLACE_NOT_MARKED);
        if (ret < 0) {
            break;
        }
    }

    snprintf(error, error_size, "cannot write %s/" MLX5SIM_PLACE_MARK ": %m; "
             "set MLX5SIM_DIR to another directory", dir);
    return -1;
}

int mlx5sim_place_check(int dir_fd, const char *dir, char *error,
                        size_t error_size)
{
    if (mlx5sim_place_state(dir_fd) == MLX5SIM_PLACE_MARKED) {
        return 0;
    }

    snprintf(error, error_size, "%s is not an instance of yours, or of another "
             "version of the device (it has no file " MLX5SIM_PLACE_MARK " as "
             "this one writes it): nothing in it is touched", dir);
    errno = ENOTEMPTY;
    return -1;
}

int mlx5sim_place_path(int dir_fd, char *path, size_t size)
{
    char link[32];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", dir_fd);
    n = readlink(link, path, size);
    if (n < 0) {
        return -1;
    }

    if ((size_t)n == size) {
        errno = ENAMETOOLONG;
        return -1;
    }

    path[n] = '\0';
    return 0;
}

int mlx5sim_place_remove(int dir_fd, const char *name)
{
    struct dirent *entry;
    int fd;
    DIR *dir;

    if ((unlinkat(dir_fd, name, 0) == 0) || (errno == ENOENT)) {
        return 0;
    }

    fd = openat(dir_fd, name,
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }

    dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return -1;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (!mlx5sim_place_is_dot(entry->d_name)) {
            (void)mlx5sim_place_remove(fd, entry->d_name);
        }
    }

    closedir(dir);
    return unlinkat(dir_fd, name, AT_REMOVEDIR);
}

int mlx5sim_place_clear(int dir_fd, int (*is_ours)(const char *name))
{
    DIR *dir = mlx5sim_place_list(dir_fd);
    struct dirent *entry;
    int left = 0;

    if (dir == NULL) {
        return -1;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (mlx5sim_place_is_dot(entry->d_name) ||
            (strcmp(entry->d_name, MLX5SIM_PLACE_MARK) == 0)) {
            continue;
        }

        if (((is_ours != NULL) && !is_ours(entry->d_name)) ||
            (mlx5sim_place_remove(dir_fd, entry->d_name) != 0)) {
            ++left;
        }
    }

    closedir(dir);
    return left;
}

int mlx5sim_place_abandon(int dir_fd)
{
    char path[PATH_MAX];

    if ((unlinkat(dir_fd, MLX5SIM_PLACE_MARK, 0) != 0) && (errno != ENOENT)) {
        return -1;
    }

    /* takes nothing along if the name leads elsewhere by now: it has to be
     * empty */
    return ((mlx5sim_place_path(dir_fd, path, sizeof(path)) == 0) &&
            (rmdir(path) == 0)) ? 0 : -1;
}
