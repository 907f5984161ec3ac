/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a child of fork() has of what its parent shares (objs/shared.h): a copy,
 * as of private memory.
 */

#include <sim/objs/shared_int.h>
#include <sim/objs/procmaps.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <stdio.h>

/* Mappings that a child gets a copy of: there are more than ranges if the
 * program has protected parts */
#define MLX5SIM_SHARED_COPIES 1024

/* A mapping, for a child */
typedef struct {
    mlx5sim_shared_t what;
    int              protection;
    void             *pages; /* NULL: there is no copy yet */
} mlx5sim_shared_copy_t;

static mlx5sim_shared_copy_t mlx5sim_shared_copies[MLX5SIM_SHARED_COPIES];
static unsigned mlx5sim_shared_num_copies;


static void
mlx5sim_shared_copy(const mlx5sim_shared_t *what, int protection)
{
    mlx5sim_shared_copy_t *copy =
            &mlx5sim_shared_copies[mlx5sim_shared_num_copies++];
    const mlx5sim_shared_own_t *own = mlx5sim_shared_find(what->addr,
                                                          what->length);

    copy->what       = *what;
    copy->protection = protection;
    copy->pages      = ((own != NULL) && own->no_fork) ?
                       NULL : mlx5sim_shared_copy_of(what);
}

static int
mlx5sim_shared_copy_line(void *arg, const mlx5sim_procmaps_line_t *line)
{
    mlx5sim_shared_t what = {line->addr, line->length};
    int *is_full          = arg;

    if (mlx5sim_shared_is_of(line, mlx5sim_proc_self())) {
        *is_full = mlx5sim_shared_num_copies == MLX5SIM_SHARED_COPIES;
        if (!*is_full) {
            mlx5sim_shared_copy(&what, line->protection);
        }
    }
    return !*is_full;
}

static void mlx5sim_shared_drop_copies(void)
{
    unsigned i;

    for (i = 0; i < mlx5sim_shared_num_copies; ++i) {
        if (mlx5sim_shared_copies[i].pages != NULL) {
            mlx5sim_shared_munmap(mlx5sim_shared_copies[i].pages,
                                  mlx5sim_shared_copies[i].what.length);
        }
    }
    mlx5sim_shared_num_copies = 0;
}

void mlx5sim_shared_fork_prepare(void)
{
    int is_full = 0;
    unsigned i;

    mlx5sim_shared_lock();
    if ((mlx5sim_shared_find(0, MLX5SIM_SHARED_SPACE) == NULL) ||
        ((mlx5sim_procmaps_read(getpid(), mlx5sim_shared_copy_line,
                                &is_full) == 0) && !is_full)) {
        return;
    }

    /* /proc can't be read: by what was noted, without protections */
    mlx5sim_shared_drop_copies();
    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        if (mlx5sim_shared_own[i].what.length > 0) {
            mlx5sim_shared_copy(&mlx5sim_shared_own[i].what,
                                PROT_READ | PROT_WRITE);
        }
    }
}

void mlx5sim_shared_fork_parent(void)
{
    mlx5sim_shared_drop_copies();
    mlx5sim_shared_unlock();
}

/* There is no room for a copy: have its pages made when they are written. They
 * have what the parent writes until then. */
static void mlx5sim_shared_copy_late(const mlx5sim_shared_copy_t *copy)
{
    int is_late = syscall(SYS_mmap, copy->what.addr, copy->what.length,
                          copy->protection, MAP_PRIVATE | MAP_FIXED,
                          mlx5sim_shared_file(), copy->what.addr) ==
                  (long)copy->what.addr;

    if (!is_late) {
        mlx5sim_shared_munmap((void*)(uintptr_t)copy->what.addr,
                              copy->what.length);
    }
    fprintf(stderr, "mlx5sim: process %d can't have a copy of %lu bytes at "
            "%#lx that its parent has shared with other processes "
            "(MLX5SIM_SHARE), as there is no room: %s\n", (int)getpid(),
            (unsigned long)copy->what.length, (unsigned long)copy->what.addr,
            is_late ? "it may see what the parent writes there" :
            "nothing is there any more");
}

/* Whether the child has a mapping, and the same one: something of its own may
 * be there if it has none. Only what is shared can be doubled by mremap(). */
static int mlx5sim_shared_child_has(const mlx5sim_shared_t *what)
{
    long twin = syscall(SYS_mremap, what->addr, 0, MLX5SIM_SHARED_PAGE,
                        MREMAP_MAYMOVE);

    if (twin == -1) {
        return errno == ENOMEM;
    }

    mlx5sim_shared_munmap((void*)twin, MLX5SIM_SHARED_PAGE);
    return 1;
}

void mlx5sim_shared_discard_copies(const mlx5sim_shared_t *what)
{
    const mlx5sim_shared_copy_t *copy;
    mlx5sim_shared_t common;
    unsigned i;

    for (i = 0; i < mlx5sim_shared_num_copies; ++i) {
        copy   = &mlx5sim_shared_copies[i];
        common = mlx5sim_shared_common(&copy->what, what);
        if ((common.length > 0) && (copy->pages != NULL)) {
            (void)syscall(SYS_madvise, (char*)copy->pages + common.addr -
                          copy->what.addr, common.length, MADV_DONTNEED);
        }
    }
}

static void mlx5sim_shared_use_copy(mlx5sim_shared_copy_t *copy)
{
    if (!mlx5sim_shared_child_has(&copy->what)) {
        if (copy->pages != NULL) {
            mlx5sim_shared_munmap(copy->pages, copy->what.length);
        }
        return;
    }

    if (copy->pages == NULL) {
        copy->pages = mlx5sim_shared_copy_of(&copy->what);
    }
    if (mlx5sim_shared_replace(&copy->what, copy->pages) != 0) {
        mlx5sim_shared_copy_late(copy);
    } else if (copy->protection != (PROT_READ | PROT_WRITE)) {
        (void)syscall(SYS_mprotect, copy->what.addr, copy->what.length,
                      copy->protection);
    }
}

void mlx5sim_shared_fork_child(void)
{
    unsigned i;

    for (i = 0; i < mlx5sim_shared_num_copies; ++i) {
        mlx5sim_shared_use_copy(&mlx5sim_shared_copies[i]);
    }
    mlx5sim_shared_num_copies = 0;
    mlx5sim_shared_forget_own();
    mlx5sim_shared_forget_peers();
    mlx5sim_shared_unlock();
}
