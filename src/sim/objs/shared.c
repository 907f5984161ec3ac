/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/shared.h>
#include <sim/objs/proc.h>
#include <sim/objs/procmaps.h>
#include <sim/objs/store.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MLX5SIM_SHARED_FILE     "mlx5sim-shared"
#define MLX5SIM_SHARED_PAGE     4096ul

/* Ranges of a process. Each is a mapping, of which Linux grants 65530. */
#define MLX5SIM_SHARED_MAX      256
#define MLX5SIM_SHARED_MAX_SIZE (16ul << 20)

/* Mappings of peers' ranges, 2^n. Those of processes that are gone stay until
 * another one needs the place, so this is also how many may stay. */
#define MLX5SIM_SHARED_MAPPED   256

/* User space ends there (Documentation/arch/x86/x86_64/mm.rst; with five levels
 * of page tables, who wants more has to ask mmap() for it) */
#define MLX5SIM_SHARED_SPACE    (1ul << 47)

/* The program's own descriptors are to have the numbers that they have without
 * us */
#define MLX5SIM_SHARED_MIN_FD   512

/* A range of another process in this one */
typedef struct {
    atomic_flag      busy;
    uint32_t         tag;   /* whose it is */
    mlx5sim_shared_t what;
    char             *base; /* NULL: it can't be mapped */
} mlx5sim_shared_place_t;

static pthread_mutex_t mlx5sim_shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static int mlx5sim_shared_is_enabled;
static mlx5sim_shared_t mlx5sim_shared_own[MLX5SIM_SHARED_MAX];
static int mlx5sim_shared_fd = -1;
static mlx5sim_shared_place_t mlx5sim_shared_places[MLX5SIM_SHARED_MAPPED];


/* All calls here are the kernel's: programs hook mmap() and munmap(), and learn
 * from that what they themselves map */
static void *mlx5sim_shared_mmap(size_t length, int flags, int fd, off_t offset)
{
    return (void*)syscall(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE, flags,
                          fd, offset);
}

static void mlx5sim_shared_munmap(void *base, size_t length)
{
    (void)syscall(SYS_munmap, base, length);
}

/* What is mapped at a range */
typedef struct {
    uint64_t addr, end;
    uint64_t inode;     /* that it is to have; 0: private memory */
    int      is_right;  /* so far, up to addr */
} mlx5sim_shared_look_t;

static int mlx5sim_shared_look(void *arg, const char *line)
{
    mlx5sim_shared_look_t *look = arg;
    unsigned long lo, hi, offset, inode;
    char perms[5];

    if ((sscanf(line, "%lx-%lx %4s %lx %*s %lu", &lo, &hi, perms, &offset,
                &inode) != 5) || (hi <= look->addr)) {
        return 1;
    }

    /* no stack, the kernel lets it grow */
    look->is_right = (lo <= look->addr) && (inode == look->inode) &&
                     !strcmp(perms, (inode == 0) ? "rw-p" : "rw-s") &&
                     ((inode == 0) || (offset == lo)) &&
                     (strstr(line, "[stack") == NULL);
    look->addr     = hi;
    return look->is_right && (hi < look->end);
}

static int
mlx5sim_shared_is_mapped(uint64_t addr, uint64_t length, uint64_t inode)
{
    mlx5sim_shared_look_t look = {addr, addr + length, inode, 0};

    mlx5sim_procmaps_read(mlx5sim_shared_look, &look);
    return look.is_right && (look.addr >= look.end);
}

/* The program may have closed the descriptor, and have another file there */
static int mlx5sim_shared_is_file(int fd, const mlx5sim_proc_t *proc)
{
    struct stat st;

    return (fstat(fd, &st) == 0) && (st.st_dev == proc->shared.dev) &&
           (st.st_ino == proc->shared.inode);
}

/* Under the mutex. @return 0, or -1: there is no file */
static int mlx5sim_shared_open(void)
{
    mlx5sim_proc_t *self = mlx5sim_proc_self();
    struct rlimit limit;
    struct stat st;
    int fd, high;

    if (mlx5sim_shared_fd >= 0) {
        return mlx5sim_shared_is_file(mlx5sim_shared_fd, self) ? 0 : -1;
    }

    /* the kernel would send a signal */
    if ((getrlimit(RLIMIT_FSIZE, &limit) != 0) ||
        (limit.rlim_cur < MLX5SIM_SHARED_SPACE)) {
        return -1;
    }

    fd = memfd_create(MLX5SIM_SHARED_FILE, MFD_CLOEXEC);
    if (fd < 0) {
        return -1;
    }

    high = fcntl(fd, F_DUPFD_CLOEXEC, MLX5SIM_SHARED_MIN_FD);
    if (high >= 0) {
        syscall(SYS_close, fd);
        fd = high;
    }

    if ((ftruncate(fd, MLX5SIM_SHARED_SPACE) != 0) || (fstat(fd, &st) != 0)) {
        syscall(SYS_close, fd);
        return -1;
    }

    self->shared.dev   = st.st_dev;
    self->shared.inode = st.st_ino;
    self->shared.fd    = fd;
    mlx5sim_shared_fd  = fd;
    return 0;
}

/* Have other pages at @a addr, with the same contents, in one step */
static int mlx5sim_shared_replace(uint64_t addr, uint64_t length, int flags,
                                  int fd, off_t offset)
{
    void *pages = mlx5sim_shared_mmap(length, flags, fd, offset);

    if (pages == MAP_FAILED) {
        return -1;
    }

    memcpy(pages, (const void*)(uintptr_t)addr, length);
    if (syscall(SYS_mremap, pages, length, length,
                MREMAP_MAYMOVE | MREMAP_FIXED, addr) == (long)addr) {
        return 0;
    }

    mlx5sim_shared_munmap(pages, length);
    return -1;
}

/* The program may have something else there by now */
static void mlx5sim_shared_make_private(const mlx5sim_shared_t *own)
{
    if (mlx5sim_shared_is_mapped(own->addr, own->length,
                                 mlx5sim_proc_self()->shared.inode)) {
        (void)mlx5sim_shared_replace(own->addr, own->length,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
}

static mlx5sim_shared_t *mlx5sim_shared_find(uint64_t addr)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        if (mlx5sim_shared_own[i].addr == addr) {
            return &mlx5sim_shared_own[i];
        }
    }
    return NULL;
}

void mlx5sim_shared_enable(void)
{
    mlx5sim_shared_is_enabled = 1;
}

void mlx5sim_shared_begin(uint64_t addr, uint64_t length,
                          mlx5sim_shared_t *shared_p)
{
    mlx5sim_shared_t *own;

    memset(shared_p, 0, sizeof(*shared_p));
    if (!mlx5sim_shared_is_enabled || (length == 0) ||
        (length > MLX5SIM_SHARED_MAX_SIZE) ||
        ((addr | length) & (MLX5SIM_SHARED_PAGE - 1)) ||
        (addr >= MLX5SIM_SHARED_SPACE - length)) {
        return;
    }

    pthread_mutex_lock(&mlx5sim_shared_mutex);
    own = mlx5sim_shared_find(0);
    if ((own != NULL) && mlx5sim_shared_is_mapped(addr, length, 0) &&
        (mlx5sim_shared_open() == 0) &&
        (mlx5sim_shared_replace(addr, length, MAP_SHARED, mlx5sim_shared_fd,
                                addr) == 0)) {
        own->addr   = addr;
        own->length = length;
        *shared_p   = *own;
    }
    pthread_mutex_unlock(&mlx5sim_shared_mutex);
}

void mlx5sim_shared_end(mlx5sim_shared_t *shared)
{
    mlx5sim_shared_t *own;

    if (shared->length == 0) {
        return;
    }

    pthread_mutex_lock(&mlx5sim_shared_mutex);
    own = mlx5sim_shared_find(shared->addr);
    if (own != NULL) {
        mlx5sim_shared_make_private(own);
        if (mlx5sim_shared_is_file(mlx5sim_shared_fd, mlx5sim_proc_self())) {
            (void)fallocate(mlx5sim_shared_fd,
                            FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            own->addr, own->length);
        }
        own->addr = 0;
    }
    shared->length = 0;
    pthread_mutex_unlock(&mlx5sim_shared_mutex);
}

/* Map a range of another process. Its descriptor is reached as its memory is,
 * by who may trace it. */
static void *mlx5sim_shared_map(const mlx5sim_proc_t *proc,
                                const mlx5sim_shared_t *what)
{
    void *base = MAP_FAILED;
    char path[48];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)proc->pid,
             proc->shared.fd);
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return NULL;
    }

    if (mlx5sim_shared_is_file(fd, proc)) {
        base = mlx5sim_shared_mmap(what->length, MAP_SHARED, fd, what->addr);
    }
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

    if ((place->tag != tag) || (place->what.addr != shared->addr) ||
        (place->what.length != shared->length)) {
        if (place->base != NULL) {
            mlx5sim_shared_munmap(place->base, place->what.length);
        }
        place->tag  = tag;
        place->what = *shared;
        place->base = mlx5sim_shared_map(proc, shared);
    }

    is_done = place->base != NULL;
    if (is_done) {
        mlx5sim_shared_copy(place->base + (addr - shared->addr), data, length);
    }
    atomic_flag_clear_explicit(&place->busy, memory_order_release);
    return is_done;
}

void mlx5sim_shared_fork_prepare(void)
{
    pthread_mutex_lock(&mlx5sim_shared_mutex);
}

void mlx5sim_shared_fork_parent(void)
{
    pthread_mutex_unlock(&mlx5sim_shared_mutex);
}

void mlx5sim_shared_fork_child(void)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        if (mlx5sim_shared_own[i].addr != 0) {
            mlx5sim_shared_make_private(&mlx5sim_shared_own[i]);
        }
    }
    memset(mlx5sim_shared_own, 0, sizeof(mlx5sim_shared_own));
    if ((mlx5sim_shared_fd >= 0) &&
        mlx5sim_shared_is_file(mlx5sim_shared_fd, mlx5sim_proc_self())) {
        syscall(SYS_close, mlx5sim_shared_fd);
    }
    mlx5sim_shared_fd = -1;
    memset((void*)mlx5sim_shared_places, 0, sizeof(mlx5sim_shared_places));
    pthread_mutex_unlock(&mlx5sim_shared_mutex);
}
