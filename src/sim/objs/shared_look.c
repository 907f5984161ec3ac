/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Which memory of this process may be shared (objs/shared.h).
 */

#include <sim/objs/shared_int.h>
#include <sim/objs/procmaps.h>

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <string.h>

/* A process with more mappings has no memory region shared: each would take
 * milliseconds to look them through */
#define MLX5SIM_SHARED_MAX_MAPS 2048

/* linux/Documentation/admin-guide/mm/pagemap.rst: an entry of 8 bytes for each
 * page, bit 63 if it is present, and bit 62 if it is swapped */
#define MLX5SIM_PAGEMAP_TOUCHED (3ull << 62)

/* How much of a range is private memory that can be written to, from its start
 * on */
typedef struct {
    mlx5sim_shared_t what;
    mlx5sim_shared_t part;
    int              is_queue;
    unsigned         num_maps; /* so far */
} mlx5sim_shared_look_t;


static int mlx5sim_shared_is_over(const mlx5sim_shared_look_t *look)
{
    return !look->is_queue && (look->num_maps > MLX5SIM_SHARED_MAX_MAPS);
}

/* Whether memory is used for something else as soon as it is no region any
 * more: an allocator's, or the stack that this runs on. What is in a queue's
 * place is private again by then. */
static int mlx5sim_shared_is_lent(const mlx5sim_procmaps_line_t *line)
{
    uint64_t frame = (uintptr_t)__builtin_frame_address(0);

    return (strstr(line->text, "[heap]") != NULL) ||
           ((frame >= line->addr) && (frame < line->addr + line->length));
}

/* Whether the program has said where in the machine memory is to be: that would
 * be lost. A thread's own policy holds for the file as well. */
static int mlx5sim_shared_is_bound(const mlx5sim_procmaps_line_t *line)
{
    int mode = MPOL_DEFAULT;

    return (syscall(SYS_get_mempolicy, &mode, NULL, 0, line->addr,
                    MPOL_F_ADDR) == 0) &&
           (mode != MPOL_DEFAULT);
}

static int mlx5sim_shared_look(void *arg, const mlx5sim_procmaps_line_t *line)
{
    mlx5sim_shared_look_t *look = arg;
    mlx5sim_shared_t all        = {line->addr, line->length};

    /* no stack either that the kernel lets grow */
    if (line->is_private && (line->inode == 0) &&
        (line->protection == (PROT_READ | PROT_WRITE)) &&
        (strstr(line->text, "[stack") == NULL) &&
        (mlx5sim_shared_common(&all, &look->what).length > 0) &&
        (look->is_queue || (!mlx5sim_shared_is_lent(line) &&
                            !mlx5sim_shared_is_bound(line)))) {
        mlx5sim_shared_add(&look->part, &look->what, line);
    }

    ++look->num_maps;
    return !mlx5sim_shared_is_over(look) &&
           (line->addr < look->what.addr + look->what.length);
}

mlx5sim_shared_found_t
mlx5sim_shared_find_private(const mlx5sim_shared_t *what, int is_queue)
{
    mlx5sim_shared_look_t look = {*what, {0, 0}, is_queue, 0};

    if (mlx5sim_procmaps_read(getpid(), mlx5sim_shared_look, &look) != 0) {
        return MLX5SIM_SHARED_OTHER;
    }

    return mlx5sim_shared_is_over(&look) ? MLX5SIM_SHARED_TOO_MANY :
           ((look.part.addr == what->addr) &&
            (look.part.length == what->length)) ?
           MLX5SIM_SHARED_PRIVATE : MLX5SIM_SHARED_OTHER;
}

int mlx5sim_shared_is_untouched(uint64_t addr, uint64_t length)
{
    uint64_t pages  = length / MLX5SIM_SHARED_PAGE;
    uint64_t done   = 0;
    int is_touched  = 0;
    uint64_t entries[512];
    uint64_t i, num;
    int fd;

    fd = syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/pagemap",
                 O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }

    for (; !is_touched && (done < pages); done += num) {
        num        = (pages - done < 512) ? pages - done : 512;
        is_touched = pread(fd, entries, num * sizeof(*entries),
                           (addr / MLX5SIM_SHARED_PAGE + done) *
                           sizeof(*entries)) !=
                     (ssize_t)(num * sizeof(*entries));
        for (i = 0; !is_touched && (i < num); ++i) {
            is_touched = (entries[i] & MLX5SIM_PAGEMAP_TOUCHED) != 0;
        }
    }

    syscall(SYS_close, fd);
    return !is_touched;
}
