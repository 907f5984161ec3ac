/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PATH_H_
#define MLX5SIM_PATH_H_

#include <stddef.h>

/*
 * Which paths are ours, and where they really are. Nothing here does I/O.
 *
 * A public path is what programs use: /sys/class/infiniband/mlx5_0. Its real
 * place is in the instance directory, laid out the same way below it:
 * DIR/sysfs/class/infiniband/mlx5_0, DIR/dev/infiniband/uverbs0.
 */

/** What a path is to us. */
typedef enum {
    MLX5SIM_PATH_OTHER,    /**< not ours */
    MLX5SIM_PATH_MOVED,    /**< not ours, but leads through our tree and out
                                again by "..": use the path without the
                                detour */
    MLX5SIM_PATH_ANCESTOR, /**< directory above our trees, such as
                                /sys/devices/pci0000:00: the machine's own, or
                                ours where the machine has none */
    MLX5SIM_PATH_SYSFS,    /**< in our part of sysfs */
    MLX5SIM_PATH_DEV,      /**< in /dev/infiniband */
    MLX5SIM_PATH_UVERBS    /**< a character device: uverbsN, or rdma_cm */
} mlx5sim_path_kind_t;

/** What the character device of the connection manager has in place of a device
 *  number. */
#define MLX5SIM_PATH_RDMA_CM 0x100u

/**
 * Whether a path needs @ref mlx5sim_path_classify at all. Almost no path of a
 * process does; this looks at only a few bytes.
 */
static inline int mlx5sim_path_is_candidate(const char *path)
{
    if ((path == NULL) || (path[0] != '/')) {
        return 0;
    }

    while (path[1] == '/') {
        ++path;
    }

    return ((path[1] == 's') && (path[2] == 'y') && (path[3] == 's')) ||
           ((path[1] == 'd') && (path[2] == 'e') && (path[3] == 'v')) ||
           ((path[1] == '.') && ((path[2] == '/') || (path[2] == '.')));
}

/**
 * Classify an absolute public path.
 *
 * "." , repeated slashes and ".." are resolved; the symbolic links of our tree
 * are known here, so that ".." behind one means what it means in the file
 * system. Relative paths and paths that reach us through symbolic links of the
 * machine are MLX5SIM_PATH_OTHER.
 *
 * @param [out] public_p  Resolved path without the leading slash, unless the
 *                        result is MLX5SIM_PATH_OTHER.
 * @param [out] index_p   Device number, if it is MLX5SIM_PATH_UVERBS, or
 *                        MLX5SIM_PATH_RDMA_CM.
 */
mlx5sim_path_kind_t mlx5sim_path_classify(const char *path, char *public_p,
                                          size_t size, unsigned *index_p);

/**
 * Set where public paths are mapped to. Call once before threads use
 * @ref mlx5sim_path_map; until then nothing is mapped.
 *
 * @param dir      Instance directory: absolute, without symbolic links.
 * @param devices  Number of devices it has.
 *
 * @return 0, or -1 with errno ENAMETOOLONG.
 */
int mlx5sim_path_set_root(const char *dir, unsigned devices);

/** Number of devices given to @ref mlx5sim_path_set_root, 0 before. */
unsigned mlx5sim_path_devices(void);

/**
 * Real place of a public path.
 *
 * @param buf  Holds the result if it differs from @a path.
 *
 * @return @a buf, or @a path itself if it is not ours (or too long).
 */
const char *mlx5sim_path_map(const char *path, char *buf, size_t size);

/** Real place of a path that @ref mlx5sim_path_classify resolved; also maps
 *  ANCESTOR paths. @return @a buf or NULL with errno ENAMETOOLONG. */
const char *mlx5sim_path_locate(const char *public_path, char *buf,
                                size_t size);

/**
 * Public path of a real place, in place. The result is never longer.
 *
 * @return 1 if @a path was in the instance directory, else 0.
 */
int mlx5sim_path_unmap(char *path);

/**
 * Target of a symbolic link of our tree.
 *
 * @param path    Resolved public path without leading slash.
 * @param target  Where it leads, in the same form.
 *
 * @return 1 if @a path is such a link, else 0.
 */
int mlx5sim_path_link(const char *path, char *target, size_t size);

#endif
