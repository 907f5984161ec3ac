/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/instance/path.h>
#include <sim/config/identity.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MLX5SIM_PATH_PCI_ROOT "sys/devices/" MLX5SIM_PCI_ROOT
#define MLX5SIM_PATH_PCI_BUS  "sys/bus/pci/devices"
#define MLX5SIM_PATH_DEV_CHAR "dev/char"
#define MLX5SIM_PATH_DEV_DIR  "dev/infiniband"

/* subtrees that are entirely ours */
static const char *const mlx5sim_path_subtrees[] = {
    "sys/class/infiniband",
    "sys/class/infiniband_verbs",
    "sys/class/infiniband_mad",
    "sys/class/misc/rdma_cm",
    "sys/bus/pci/drivers/mlx5_core",
    MLX5SIM_PATH_DEV_DIR
};

/* Directories above them. They are directories on every Linux machine, not
 * symbolic links, so ".." behind them can be resolved without looking. */
static const char *const mlx5sim_path_ancestors[] = {
    "sys", "sys/class", "sys/class/misc", "sys/devices", MLX5SIM_PATH_PCI_ROOT,
    "sys/bus", "sys/bus/pci", MLX5SIM_PATH_PCI_BUS, "sys/bus/pci/drivers"
};

#define MLX5SIM_PATH_COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

static struct {
    char              dir[PATH_MAX];
    size_t            length;
    _Atomic(unsigned) devices; /* 0: dir is not valid yet */
} mlx5sim_path_root;


/* If path is dir or below it: what follows dir ("" or "/..."), else NULL. */
static const char *mlx5sim_path_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);

    if (strncmp(path, dir, length) ||
        ((path[length] != '\0') && (path[length] != '/'))) {
        return NULL;
    }

    return path + length;
}

/* Number of devices, to tell whose a PCI function is: as long as it is unknown,
 * every function that might be ours is. */
static int mlx5sim_path_max_device(void)
{
    unsigned devices = atomic_load_explicit(&mlx5sim_path_root.devices,
                                            memory_order_acquire);

    return (devices == 0) ? MLX5SIM_DEVICES_MAX : (int)devices;
}

/* Device of "/0000:3b:00.0..." or -1; *rest_p is what follows the name. */
static int mlx5sim_path_pci_device(const char *path, const char **rest_p)
{
    size_t length;
    int dev;

    if ((path == NULL) || (path[0] != '/')) {
        return -1;
    }

    length  = strcspn(path + 1, "/");
    *rest_p = path + 1 + length;
    dev     = mlx5sim_pci_name_parse(path + 1, length);

    return (dev < mlx5sim_path_max_device()) ? dev : -1;
}

/* Number behind a prefix, as in uverbs0, without leading zeros: -1 if the name
 * is anything else. */
static int mlx5sim_path_number(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    long number;
    char *end;

    if (strncmp(name, prefix, length) ||
        !isdigit((unsigned char)name[length]) ||
        ((name[length] == '0') && (name[length + 1] != '\0'))) {
        return -1;
    }

    number = strtol(name + length, &end, 10);
    return ((*end == '\0') && (number < MLX5SIM_DEVICES_MAX)) ? number : -1;
}

static mlx5sim_path_kind_t mlx5sim_path_kind(const char *path,
                                             unsigned *index_p)
{
    const char *rest;
    size_t i;
    int dev;

    for (i = 0; i < MLX5SIM_PATH_COUNT(mlx5sim_path_subtrees); ++i) {
        rest = mlx5sim_path_below(path, mlx5sim_path_subtrees[i]);
        if (rest == NULL) {
            continue;
        }

        if (path[0] == 's') {
            return MLX5SIM_PATH_SYSFS;
        }

        if (!strcmp(rest, "/rdma_cm")) {
            *index_p = MLX5SIM_PATH_RDMA_CM;
            return MLX5SIM_PATH_UVERBS;
        }

        dev = mlx5sim_path_number(rest, "/uverbs");
        if (dev < 0) {
            return MLX5SIM_PATH_DEV;
        }

        *index_p = dev;
        return MLX5SIM_PATH_UVERBS;
    }

    if ((mlx5sim_path_pci_device(mlx5sim_path_below(path,
                                                    MLX5SIM_PATH_PCI_ROOT),
                                 &rest) >= 0) ||
        (mlx5sim_path_pci_device(mlx5sim_path_below(path,
                                                    MLX5SIM_PATH_PCI_BUS),
                                 &rest) >= 0)) {
        return MLX5SIM_PATH_SYSFS;
    }

    for (i = 0; i < MLX5SIM_PATH_COUNT(mlx5sim_path_ancestors); ++i) {
        if (!strcmp(path, mlx5sim_path_ancestors[i])) {
            return MLX5SIM_PATH_ANCESTOR;
        }
    }

    return MLX5SIM_PATH_OTHER;
}

/* Whether path is certain to be a directory and no link, so that ".." behind it
 * is the directory above it. */
static int mlx5sim_path_is_plain(const char *path)
{
    const char *name;
    unsigned index;

    if ((path[0] == '\0') || !strcmp(path, "dev") ||
        !strcmp(path, MLX5SIM_PATH_DEV_CHAR) ||
        (mlx5sim_path_kind(path, &index) != MLX5SIM_PATH_OTHER)) {
        return 1;
    }

    /* a class is a directory, what is in it are links */
    name = mlx5sim_path_below(path, "sys/class");
    return (name != NULL) && (strchr(name + 1, '/') == NULL);
}

int mlx5sim_path_link(const char *path, char *target, size_t size)
{
    char pci[MLX5SIM_PCI_NAME_MAX], public_name[40];
    const char *rest, *name;
    int dev, is_verbs;

    /* class/infiniband/mlx5_N, class/infiniband_verbs/uverbsN */
    for (is_verbs = 0; is_verbs < 2; ++is_verbs) {
        rest = mlx5sim_path_below(path, is_verbs ?
                                                "sys/class/infiniband_verbs" :
                                                "sys/class/infiniband");
        dev  = (rest == NULL) ? -1 :
               mlx5sim_path_number(rest, is_verbs ? "/uverbs" : "/mlx5_");
        if (dev >= 0) {
            snprintf(target, size, "%s/%s/%s%s", MLX5SIM_PATH_PCI_ROOT,
                     mlx5sim_pci_name(dev, pci),
                     is_verbs ? "infiniband_verbs" : "infiniband", rest);
            return 1;
        }
    }

    /* bus/pci/devices/0000:3b:00.N */
    dev = mlx5sim_path_pci_device(mlx5sim_path_below(path,
                                                     MLX5SIM_PATH_PCI_BUS),
                                  &rest);
    if ((dev >= 0) && (*rest == '\0')) {
        snprintf(target, size, "%s/%s", MLX5SIM_PATH_PCI_ROOT,
                 mlx5sim_pci_name(dev, pci));
        return 1;
    }

    /* dev/char/231:192: links of udev to our character devices */
    rest = mlx5sim_path_below(path, MLX5SIM_PATH_DEV_CHAR);
    if (rest != NULL) {
        for (dev = 0; dev < mlx5sim_path_max_device(); ++dev) {
            snprintf(public_name, sizeof(public_name), "/%u:%u",
                     MLX5SIM_UVERBS_MAJOR, MLX5SIM_UVERBS_BASE_MINOR + dev);
            if (!strcmp(rest, public_name)) {
                snprintf(target, size, "%s/uverbs%d", MLX5SIM_PATH_DEV_DIR,
                         dev);
                return 1;
            }
        }
    }

    /* links in the directory of the PCI function */
    dev = mlx5sim_path_pci_device(mlx5sim_path_below(path,
                                                     MLX5SIM_PATH_PCI_ROOT),
                                  &rest);
    if (dev < 0) {
        return 0;
    }

    if (!strcmp(rest, "/driver")) {
        snprintf(target, size, "sys/bus/pci/drivers/mlx5_core");
        return 1;
    } else if (!strcmp(rest, "/subsystem")) {
        snprintf(target, size, "sys/bus/pci");
        return 1;
    }

    for (is_verbs = 0; is_verbs < 2; ++is_verbs) {
        snprintf(public_name, sizeof(public_name), is_verbs ?
                 "/infiniband_verbs/uverbs%d" : "/infiniband/mlx5_%d", dev);
        name = mlx5sim_path_below(rest, public_name);
        if (name == NULL) {
            continue;
        }

        if (!strcmp(name, "/device")) {
            snprintf(target, size, "%s/%s", MLX5SIM_PATH_PCI_ROOT,
                     mlx5sim_pci_name(dev, pci));
            return 1;
        } else if (!strcmp(name, "/subsystem")) {
            snprintf(target, size, "sys/class/%s",
                     is_verbs ? "infiniband_verbs" : "infiniband");
            return 1;
        }
    }

    return 0;
}

/* Append a component. Returns -1 if it does not fit. */
static int mlx5sim_path_push(char *path, size_t size, const char *name,
                             size_t name_length)
{
    size_t length = strlen(path);

    if (length + name_length + 2 > size) {
        return -1;
    }

    if (length > 0) {
        path[length++] = '/';
    }
    memcpy(path + length, name, name_length);
    path[length + name_length] = '\0';
    return 0;
}

static void mlx5sim_path_pop(char *path)
{
    char *slash = strrchr(path, '/');

    *((slash == NULL) ? path : slash) = '\0';
}

mlx5sim_path_kind_t mlx5sim_path_classify(const char *path, char *public_p,
                                          size_t size, unsigned *index_p)
{
    int follow = 0, left = 0;
    char target[PATH_MAX];
    mlx5sim_path_kind_t kind;
    const char *p;
    size_t length;

    if (!mlx5sim_path_is_candidate(path) || (size == 0)) {
        return MLX5SIM_PATH_OTHER;
    }

    /* links matter only with ".." */
    follow      = strstr(path, "/..") != NULL;
    public_p[0] = '\0';

    for (p = path; *p != '\0'; p += length) {
        p     += strspn(p, "/");
        length = strcspn(p, "/");
        if ((length == 0) || ((length == 1) && (p[0] == '.'))) {
            continue;
        }

        if ((length == 2) && (p[0] == '.') && (p[1] == '.')) {
            if (mlx5sim_path_is_plain(public_p)) {
                kind = mlx5sim_path_kind(public_p, index_p);
                left |= (kind >= MLX5SIM_PATH_SYSFS);
                mlx5sim_path_pop(public_p);
                continue;
            } else if (!left) {
                return MLX5SIM_PATH_OTHER;
            }

            /* the machine has to resolve the rest */
            return (mlx5sim_path_push(public_p, size, p, strlen(p)) == 0) ?
                   MLX5SIM_PATH_MOVED : MLX5SIM_PATH_OTHER;
        }

        if (mlx5sim_path_push(public_p, size, p, length) != 0) {
            return MLX5SIM_PATH_OTHER;
        }

        if (follow && (p[length] != '\0') &&
            mlx5sim_path_link(public_p, target, sizeof(target))) {
            if (strlen(target) >= size) {
                return MLX5SIM_PATH_OTHER;
            }
            strcpy(public_p, target);
        }
    }

    /* links outside our tree have to be resolved in any case */
    if (mlx5sim_path_below(public_p, MLX5SIM_PATH_DEV_CHAR) &&
        mlx5sim_path_link(public_p, target, sizeof(target)) &&
        (strlen(target) < size)) {
        strcpy(public_p, target);
    }

    kind = mlx5sim_path_kind(public_p, index_p);
    if (kind >= MLX5SIM_PATH_SYSFS) {
        /* a trailing slash asks for the target of a link; behind a file, let
         * the file system say that it is no directory */
        if (p[-1] == '/') {
            if (mlx5sim_path_push(public_p, size, "", 0) != 0) {
                return MLX5SIM_PATH_OTHER;
            }
            kind = (kind == MLX5SIM_PATH_UVERBS) ? MLX5SIM_PATH_DEV : kind;
        }
    } else if (left) {
        kind = MLX5SIM_PATH_MOVED;
    }

    return kind;
}

int mlx5sim_path_set_root(const char *dir, unsigned devices)
{
    size_t length = strlen(dir);

    if (length >= sizeof(mlx5sim_path_root.dir)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    memcpy(mlx5sim_path_root.dir, dir, length + 1);
    mlx5sim_path_root.length = length;
    atomic_store_explicit(&mlx5sim_path_root.devices, devices,
                          memory_order_release);
    return 0;
}

unsigned mlx5sim_path_devices(void)
{
    return atomic_load_explicit(&mlx5sim_path_root.devices,
                                memory_order_acquire);
}

const char *mlx5sim_path_locate(const char *public_path, char *buf, size_t size)
{
    const char *sub = public_path;
    const char *top = "";
    int length;

    /* DIR/sysfs, not DIR/sys: the directory should say what it is */
    if (mlx5sim_path_below(public_path, "sys") != NULL) {
        sub = public_path + 3;
        top = "sysfs";
    }

    length = snprintf(buf, size, "%s/%s%s", mlx5sim_path_root.dir, top, sub);
    if ((length < 0) || ((size_t)length >= size)) {
        errno = ENAMETOOLONG;
        return NULL;
    }

    return buf;
}

const char *mlx5sim_path_map(const char *path, char *buf, size_t size)
{
    char public_path[PATH_MAX];
    mlx5sim_path_kind_t kind;
    const char *real_path;
    unsigned index;

    if (!mlx5sim_path_is_candidate(path) || (mlx5sim_path_devices() == 0)) {
        return path;
    }

    kind = mlx5sim_path_classify(path, public_path, sizeof(public_path),
                                 &index);
    if (kind >= MLX5SIM_PATH_SYSFS) {
        real_path = mlx5sim_path_locate(public_path, buf, size);
        return (real_path == NULL) ? path : real_path;
    }

    if ((kind == MLX5SIM_PATH_MOVED) && (strlen(public_path) + 2 <= size)) {
        buf[0] = '/';
        strcpy(buf + 1, public_path);
        return buf;
    }

    return path;
}

int mlx5sim_path_unmap(char *path)
{
    const char *rest;
    size_t top;

    if ((mlx5sim_path_devices() == 0) ||
        strncmp(path, mlx5sim_path_root.dir, mlx5sim_path_root.length)) {
        return 0;
    }

    rest = path + mlx5sim_path_root.length;
    if (mlx5sim_path_below(rest, "/sysfs") != NULL) {
        top = sizeof("/sysfs") - 1;
        memcpy(path, "/sys", 4);
        memmove(path + 4, rest + top, strlen(rest + top) + 1);
        return 1;
    } else if (mlx5sim_path_below(rest, "/dev") != NULL) {
        memmove(path, rest, strlen(rest) + 1);
        return 1;
    }

    return 0;
}
