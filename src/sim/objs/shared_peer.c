/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/shared_int.h>
#include <sim/objs/store.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Mappings of peers' ranges, 2^n. Those of processes that are gone stay until
 * another one is made. */
#define MLX5SIM_SHARED_MAPPED   1024

/* How many of them are looked at when one is made */
#define MLX5SIM_SHARED_LOOKS    8

/* How often a range of a process that lives is wanted where another one is,
 * which was not wanted meanwhile, until it has the place: to map it takes
 * longer than to write without it */
#define MLX5SIM_SHARED_MISSES   64

/* A range of another process in this one */
typedef struct {
    atomic_flag      busy;
    uint32_t         tag;   /* whose it is */
    unsigned         misses; /* since it was last written to */
    mlx5sim_shared_t what;
    char             *base; /* NULL: it can't be mapped */
} mlx5sim_shared_place_t;

static mlx5sim_shared_place_t mlx5sim_shared_places[MLX5SIM_SHARED_MAPPED];

/* The places where mappings were made lately, how many were, and which is to be
 * looked at next */
static _Atomic uint16_t mlx5sim_shared_order[MLX5SIM_SHARED_MAPPED];
static _Atomic unsigned mlx5sim_shared_made, mlx5sim_shared_turn;


int mlx5sim_shared_is_file(int fd, const mlx5sim_proc_t *proc)
{
    struct stat st;

    return (fstat(fd, &st) == 0) && (st.st_dev == proc->shared.dev) &&
           (st.st_ino == proc->shared.inode);
}

int mlx5sim_shared_is_of(const mlx5sim_procmaps_line_t *line,
                         const mlx5sim_proc_t *proc)
{
    return !line->is_private && (line->dev == proc->shared.dev) &&
           (line->inode == proc->shared.inode) && (line->offset == line->addr);
}

mlx5sim_shared_t mlx5sim_shared_common(const mlx5sim_shared_t *a,
                                       const mlx5sim_shared_t *b)
{
    uint64_t a_end = a->addr + a->length;
    uint64_t b_end = b->addr + b->length;
    uint64_t lo    = (a->addr > b->addr) ? a->addr : b->addr;
    uint64_t hi    = (a_end < b_end) ? a_end : b_end;

    return (mlx5sim_shared_t){lo, (hi > lo) ? hi - lo : 0};
}

void mlx5sim_shared_add(mlx5sim_shared_t *part, const mlx5sim_shared_t *what,
                        const mlx5sim_procmaps_line_t *line)
{
    mlx5sim_shared_t all    = {line->addr, line->length};
    mlx5sim_shared_t common = mlx5sim_shared_common(&all, what);

    if (common.length == 0) {
        return;
    } else if (part->length == 0) {
        *part = common;
    } else if (part->addr + part->length == common.addr) {
        part->length += common.length;
    }
}

/* Open the file of a process. Its descriptor is reached as its memory is, by
 * who may trace it. @return a descriptor, or -1 */
static int mlx5sim_shared_reach(const mlx5sim_proc_t *proc)
{
    char path[48];
    int fd;

    if (proc->shared.inode == 0) {
        return -1;
    }

    snprintf(path, sizeof(path), "/proc/%d/fd/%d",
             (int)mlx5sim_proc_thread(proc), proc->shared.fd);
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if ((fd >= 0) && !mlx5sim_shared_is_file(fd, proc)) {
        syscall(SYS_close, fd);
        fd = -1;
    }
    return fd;
}

/* Map a range of another process */
static void *mlx5sim_shared_map(const mlx5sim_proc_t *proc,
                                const mlx5sim_shared_t *what)
{
    int fd = mlx5sim_shared_reach(proc);
    void *base;

    if (fd < 0) {
        return NULL;
    }

    base = mlx5sim_shared_mmap(what->length, MAP_SHARED, fd, what->addr);
    syscall(SYS_close, fd);
    if (base == MAP_FAILED) {
        return NULL;
    }

    /* a child has peers of its own */
    (void)syscall(SYS_madvise, base, what->length, MADV_DONTFORK);
    return base;
}

static void
mlx5sim_shared_copy(char *to, const char *from, size_t length)
{
    size_t tail = (length >= 8) && !((uintptr_t)(to + length) & 7) ? 8 :
                  (length >= 4) && !((uintptr_t)(to + length) & 3) ? 4 : 1;
    size_t head = length - tail;
    uint64_t word8;
    uint32_t word4;

    memcpy(to, from, head);
    switch (tail) {
    case 8:
        memcpy(&word8, from + head, tail);
        __atomic_store_n((uint64_t*)(to + head), word8, __ATOMIC_RELEASE);
        break;
    case 4:
        memcpy(&word4, from + head, tail);
        __atomic_store_n((uint32_t*)(to + head), word4, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n(to + head, from[head], __ATOMIC_RELEASE);
        break;
    }
}

/* Processes that are gone keep their memory as long as it is mapped here. A few
 * mappings are looked at each time, in turns, as this is done on a doorbell. */
static void mlx5sim_shared_drop_gone(void)
{
    unsigned made = atomic_load(&mlx5sim_shared_made);
    mlx5sim_shared_place_t *place;
    const mlx5sim_proc_t *proc;
    unsigned i, turn;

    made = (made < MLX5SIM_SHARED_MAPPED) ? made : MLX5SIM_SHARED_MAPPED;
    for (i = 0; (i < made) && (i < MLX5SIM_SHARED_LOOKS); ++i) {
        turn  = atomic_fetch_add(&mlx5sim_shared_turn, 1) % made;
        place = &mlx5sim_shared_places[atomic_load(
                &mlx5sim_shared_order[turn])];
        if ((place->base != NULL) &&
            !atomic_flag_test_and_set_explicit(&place->busy,
                                               memory_order_acquire)) {
            proc = mlx5sim_proc_by_tag(place->tag);
            if ((place->base != NULL) &&
                ((proc == NULL) || mlx5sim_proc_is_gone(proc))) {
                mlx5sim_shared_munmap(place->base, place->what.length);
                place->base = NULL;
                place->tag  = 0;
            }
            atomic_flag_clear_explicit(&place->busy, memory_order_release);
        }
    }
}

int mlx5sim_shared_write(mlx5sim_proc_t *proc, const mlx5sim_shared_t *shared,
                         uint64_t addr, const void *data, size_t length)
{
    uint32_t tag = atomic_load(&proc->tag);
    mlx5sim_shared_place_t *place;
    int is_done;

    if ((shared->length == 0) || mlx5sim_proc_is_gone(proc)) {
        return 0;
    }

    place = &mlx5sim_shared_places[((shared->addr / MLX5SIM_SHARED_PAGE) ^
                                    (tag * 31)) % MLX5SIM_SHARED_MAPPED];
    while (atomic_flag_test_and_set_explicit(&place->busy,
                                             memory_order_acquire)) {
        sched_yield();
    }

    if ((place->tag == tag) && (place->what.addr == shared->addr) &&
        (place->what.length == shared->length)) {
        place->misses = 0;
    } else if ((place->base != NULL) &&
               (mlx5sim_proc_by_tag(place->tag) != NULL) &&
               (++place->misses < MLX5SIM_SHARED_MISSES)) {
        atomic_flag_clear_explicit(&place->busy, memory_order_release);
        return 0;
    } else {
        if (place->base != NULL) {
            mlx5sim_shared_munmap(place->base, place->what.length);
        }
        mlx5sim_shared_drop_gone();
        atomic_store(&mlx5sim_shared_order[
                             atomic_fetch_add(&mlx5sim_shared_made, 1) %
                             MLX5SIM_SHARED_MAPPED],
                     place - mlx5sim_shared_places);
        place->tag    = tag;
        place->what   = *shared;
        place->base   = mlx5sim_shared_map(proc, shared);
        place->misses = 0;
    }

    is_done = place->base != NULL;
    if (is_done) {
        mlx5sim_shared_copy(place->base + (addr - shared->addr), data, length);
    }
    atomic_flag_clear_explicit(&place->busy, memory_order_release);
    return is_done;
}

void mlx5sim_shared_forget_peers(void)
{
    memset((void*)mlx5sim_shared_places, 0, sizeof(mlx5sim_shared_places));
}

/* What of a range a process still has */
typedef struct {
    const mlx5sim_proc_t *proc;
    mlx5sim_shared_t     what;
    mlx5sim_shared_t     part;
} mlx5sim_shared_force_t;

static int
mlx5sim_shared_force_line(void *arg, const mlx5sim_procmaps_line_t *line)
{
    mlx5sim_shared_force_t *force = arg;

    if (mlx5sim_shared_is_of(line, force->proc)) {
        mlx5sim_shared_add(&force->part, &force->what, line);
    }
    return line->addr < force->what.addr + force->what.length;
}

int mlx5sim_shared_force(const mlx5sim_proc_t *proc, uint64_t addr, void *data,
                         size_t length, int is_write)
{
    mlx5sim_shared_force_t force = {proc, {addr, length}, {0, 0}};
    int is_done                  = 0;
    int fd;

    fd = mlx5sim_shared_reach(proc);
    if (fd < 0) {
        return 0;
    }

    mlx5sim_procmaps_read(mlx5sim_proc_thread(proc), mlx5sim_shared_force_line,
                          &force);
    if ((force.part.addr == addr) && (force.part.length == length)) {
        is_done = (is_write ? pwrite(fd, data, length, addr) :
                              pread(fd, data, length, addr)) ==
                  (ssize_t)length;
    }

    syscall(SYS_close, fd);
    return is_done;
}
