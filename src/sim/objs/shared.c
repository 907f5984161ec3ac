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
#define MLX5SIM_SHARED_MAPPED   1024

/* How often a range of a process that lives is wanted where another one is,
 * which was not wanted meanwhile, until it has the place: to map it takes
 * longer than to write without it */
#define MLX5SIM_SHARED_MISSES   64

/* User space ends there (Documentation/arch/x86/x86_64/mm.rst; with five levels
 * of page tables, who wants more has to ask mmap() for it) */
#define MLX5SIM_SHARED_SPACE    (1ul << 47)

/* The program's own descriptors are to have the numbers that they have without
 * us */
#define MLX5SIM_SHARED_MIN_FD   512

/* How often those are looked for that the program has unmapped, if there is no
 * room */
#define MLX5SIM_SHARED_PRUNE    64

/* linux/Documentation/admin-guide/mm/pagemap.rst: an entry of 8 bytes for each
 * page, bit 63 if it is present, and bit 62 if it is swapped */
#define MLX5SIM_PAGEMAP_TOUCHED (3ull << 62)

/* A range of this process */
typedef struct {
    mlx5sim_shared_t what;
    int              is_queue;
    void             *copy;  /* for a child, NULL: none */
} mlx5sim_shared_own_t;

/* A range of another process in this one */
typedef struct {
    atomic_flag      busy;
    uint32_t         tag;   /* whose it is */
    unsigned         misses; /* since it was last written to */
    mlx5sim_shared_t what;
    char             *base; /* NULL: it can't be mapped */
} mlx5sim_shared_place_t;

static pthread_mutex_t mlx5sim_shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static int mlx5sim_shared_cancel; /* state of the thread that has it */
static int mlx5sim_shared_is_enabled;
static int mlx5sim_shared_has_memory;
static mlx5sim_shared_own_t mlx5sim_shared_own[MLX5SIM_SHARED_MAX];
static int mlx5sim_shared_fd = -1;
static mlx5sim_shared_place_t mlx5sim_shared_places[MLX5SIM_SHARED_MAPPED];


/* A thread that is cancelled must not keep the mutex */
static void mlx5sim_shared_lock(void)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&mlx5sim_shared_mutex);
    mlx5sim_shared_cancel = state;
}

static void mlx5sim_shared_unlock(void)
{
    int state = mlx5sim_shared_cancel;

    pthread_mutex_unlock(&mlx5sim_shared_mutex);
    pthread_setcancelstate(state, NULL);
}

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
    uint64_t         inode;  /* of what is looked for; 0: private memory */
    uint64_t         end;
    mlx5sim_shared_t part;   /* from where on; what was found without a gap */
} mlx5sim_shared_look_t;

static int mlx5sim_shared_look(void *arg, const char *line)
{
    mlx5sim_shared_look_t *look = arg;
    mlx5sim_shared_t *part      = &look->part;
    unsigned long lo, hi, offset, inode;
    char perms[5];

    if ((sscanf(line, "%lx-%lx %4s %lx %*s %lu", &lo, &hi, perms, &offset,
                &inode) != 5) || (hi <= part->addr)) {
        return 1;
    }

    /* no stack, the kernel lets it grow */
    if ((lo >= look->end) ||
        ((part->length > 0) && (lo > part->addr + part->length))) {
        return 0;
    } else if ((inode != look->inode) || (strstr(line, "[stack") != NULL) ||
               strcmp(perms, (inode == 0) ? "rw-p" : "rw-s") ||
               ((inode != 0) && (offset != lo))) {
        return part->length == 0;
    }

    if (part->length == 0) {
        part->addr = (lo > part->addr) ? lo : part->addr;
    }
    part->length = ((hi < look->end) ? hi : look->end) - part->addr;
    return 1;
}

/* The first part of a range that is mapped so */
static mlx5sim_shared_t
mlx5sim_shared_part(uint64_t addr, uint64_t length, uint64_t inode)
{
    mlx5sim_shared_look_t look = {inode, addr + length, {addr, 0}};

    mlx5sim_procmaps_read(mlx5sim_shared_look, &look);
    return look.part;
}

static int mlx5sim_shared_is_private(uint64_t addr, uint64_t length)
{
    mlx5sim_shared_t part = mlx5sim_shared_part(addr, length, 0);

    return (part.addr == addr) && (part.length == length);
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

/* Pages of the file, or private ones, with what a range contains */
static void *mlx5sim_shared_copy_of(const mlx5sim_shared_t *what, int is_file)
{
    void *pages = is_file ?
                  mlx5sim_shared_mmap(what->length, MAP_SHARED,
                                      mlx5sim_shared_fd, what->addr) :
                  mlx5sim_shared_mmap(what->length, MAP_PRIVATE | MAP_ANONYMOUS,
                                      -1, 0);

    if (pages == MAP_FAILED) {
        return NULL;
    }

    memcpy(pages, (const void*)(uintptr_t)what->addr, what->length);
    return pages;
}

/* Have these pages in place of a range, in one step */
static int mlx5sim_shared_replace(const mlx5sim_shared_t *what, void *pages)
{
    if ((pages != NULL) &&
        (syscall(SYS_mremap, pages, what->length, what->length,
                 MREMAP_MAYMOVE | MREMAP_FIXED, what->addr) ==
         (long)what->addr)) {
        return 0;
    }

    if (pages != NULL) {
        mlx5sim_shared_munmap(pages, what->length);
    }
    return -1;
}

/* The program may have unmapped it by now, or a part. @return whether some of
 * it is left */
static int mlx5sim_shared_is_there(mlx5sim_shared_own_t *own)
{
    mlx5sim_shared_t part;

    if (own->what.length == 0) {
        return 0;
    }

    part = mlx5sim_shared_part(own->what.addr, own->what.length,
                               mlx5sim_proc_self()->shared.inode);
    if (part.length == 0) {
        return 0;
    }

    own->what = part;
    return 1;
}

static void mlx5sim_shared_forget(mlx5sim_shared_own_t *own)
{
    if (mlx5sim_shared_is_file(mlx5sim_shared_fd, mlx5sim_proc_self())) {
        (void)fallocate(mlx5sim_shared_fd,
                        FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        own->what.addr, own->what.length);
    }
    memset(own, 0, sizeof(*own));
}

/* The first range that has a part of @a addr and what follows; with a length
 * of 0: one that is free */
static mlx5sim_shared_own_t *
mlx5sim_shared_find(uint64_t addr, uint64_t length)
{
    mlx5sim_shared_t *what;
    unsigned i;

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        what = &mlx5sim_shared_own[i].what;
        if ((length == 0) ? (what->length == 0) :
            ((addr < what->addr + what->length) &&
             (what->addr < addr + length))) {
            return &mlx5sim_shared_own[i];
        }
    }
    return NULL;
}

/* Forget ranges there that the program has unmapped since. @return what is
 * left, or NULL */
static mlx5sim_shared_own_t *
mlx5sim_shared_renew(uint64_t addr, uint64_t length)
{
    mlx5sim_shared_own_t *own;

    while (((own = mlx5sim_shared_find(addr, length)) != NULL) &&
           !mlx5sim_shared_is_there(own)) {
        mlx5sim_shared_forget(own);
    }
    return own;
}

/* Room for one more; under the mutex */
static mlx5sim_shared_own_t *mlx5sim_shared_room(void)
{
    mlx5sim_shared_own_t *own = mlx5sim_shared_find(0, 0);
    static unsigned asked;
    unsigned i;

    if ((own != NULL) || (asked++ % MLX5SIM_SHARED_PRUNE != 0)) {
        return own;
    }

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        if (!mlx5sim_shared_is_there(&mlx5sim_shared_own[i])) {
            mlx5sim_shared_forget(&mlx5sim_shared_own[i]);
        }
    }
    return mlx5sim_shared_find(0, 0);
}

/* Whether the program has never used the pages: there is nothing to copy, and
 * nothing that it could write meanwhile in good order */
static int mlx5sim_shared_is_untouched(uint64_t addr, uint64_t length)
{
    uint64_t pages  = length / MLX5SIM_SHARED_PAGE;
    uint64_t done   = 0;
    int is_touched  = 0;
    uint64_t entries[512];
    uint64_t i, num;
    int fd;

    fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap",
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

void mlx5sim_shared_enable(int has_memory)
{
    mlx5sim_shared_is_enabled = 1;
    mlx5sim_shared_has_memory = has_memory;
}

void mlx5sim_shared_memory(uint64_t addr, uint64_t length,
                           mlx5sim_shared_t *shared_p)
{
    uint64_t first = (addr + MLX5SIM_SHARED_PAGE - 1) &
                     ~(MLX5SIM_SHARED_PAGE - 1);
    uint64_t end   = (addr + length) & ~(MLX5SIM_SHARED_PAGE - 1);
    mlx5sim_shared_own_t *own;

    memset(shared_p, 0, sizeof(*shared_p));
    if (!mlx5sim_shared_has_memory || (end <= first) ||
        (end - first > MLX5SIM_SHARED_MAX_SIZE) ||
        (end > MLX5SIM_SHARED_SPACE)) {
        return;
    }

    length = end - first;
    mlx5sim_shared_lock();
    own = mlx5sim_shared_renew(first, length);
    if (own != NULL) {
        if (mlx5sim_shared_has(&own->what, first, length)) {
            *shared_p = own->what;
        }
    } else if (mlx5sim_shared_is_untouched(first, length) &&
               ((own = mlx5sim_shared_room()) != NULL) &&
               mlx5sim_shared_is_private(first, length) &&
               (mlx5sim_shared_open() == 0) &&
               (syscall(SYS_mmap, first, length, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED, mlx5sim_shared_fd, first) ==
                (long)first)) {
        own->what     = (mlx5sim_shared_t){first, length};
        own->is_queue = 0;
        *shared_p     = own->what;
    }
    mlx5sim_shared_unlock();
}

void mlx5sim_shared_begin(uint64_t addr, uint64_t length,
                          mlx5sim_shared_t *shared_p)
{
    mlx5sim_shared_t what = {addr, length};
    mlx5sim_shared_own_t *own;

    memset(shared_p, 0, sizeof(*shared_p));
    if (!mlx5sim_shared_is_enabled || (length == 0) ||
        (length > MLX5SIM_SHARED_MAX_SIZE) ||
        ((addr | length) & (MLX5SIM_SHARED_PAGE - 1)) ||
        (addr >= MLX5SIM_SHARED_SPACE - length)) {
        return;
    }

    mlx5sim_shared_lock();
    if ((mlx5sim_shared_renew(addr, length) == NULL) &&
        ((own = mlx5sim_shared_room()) != NULL) &&
        mlx5sim_shared_is_private(addr, length) &&
        (mlx5sim_shared_open() == 0) &&
        (mlx5sim_shared_replace(&what, mlx5sim_shared_copy_of(&what, 1)) ==
         0)) {
        own->what     = what;
        own->is_queue = 1;
        *shared_p     = what;
    }
    mlx5sim_shared_unlock();
}

void mlx5sim_shared_end(mlx5sim_shared_t *shared)
{
    mlx5sim_shared_own_t *own;

    if (shared->length == 0) {
        return;
    }

    mlx5sim_shared_lock();
    own = mlx5sim_shared_find(shared->addr, shared->length);
    if ((own != NULL) && own->is_queue) {
        /* what can't be replaced stays, as memory does */
        if (!mlx5sim_shared_is_there(own) ||
            (mlx5sim_shared_replace(&own->what,
                                    mlx5sim_shared_copy_of(&own->what, 0)) ==
             0)) {
            mlx5sim_shared_forget(own);
        } else {
            own->is_queue = 0;
        }
    }
    shared->length = 0;
    mlx5sim_shared_unlock();
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

void mlx5sim_shared_fork_prepare(void)
{
    mlx5sim_shared_own_t *own;
    unsigned i;

    mlx5sim_shared_lock();
    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        own       = &mlx5sim_shared_own[i];
        own->copy = mlx5sim_shared_is_there(own) ?
                    mlx5sim_shared_copy_of(&own->what, 0) : NULL;
    }
}

void mlx5sim_shared_fork_parent(void)
{
    mlx5sim_shared_own_t *own;
    unsigned i;

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        own = &mlx5sim_shared_own[i];
        if (own->copy != NULL) {
            mlx5sim_shared_munmap(own->copy, own->what.length);
        }
    }
    mlx5sim_shared_unlock();
}

void mlx5sim_shared_fork_child(void)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        if (mlx5sim_shared_own[i].copy != NULL) {
            (void)mlx5sim_shared_replace(&mlx5sim_shared_own[i].what,
                                         mlx5sim_shared_own[i].copy);
        }
    }
    memset(mlx5sim_shared_own, 0, sizeof(mlx5sim_shared_own));
    if ((mlx5sim_shared_fd >= 0) &&
        mlx5sim_shared_is_file(mlx5sim_shared_fd, mlx5sim_proc_self())) {
        syscall(SYS_close, mlx5sim_shared_fd);
    }
    mlx5sim_shared_fd = -1;
    memset((void*)mlx5sim_shared_places, 0, sizeof(mlx5sim_shared_places));
    mlx5sim_shared_unlock();
}
