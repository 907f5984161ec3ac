/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/shared_int.h>
#include <sim/objs/guard.h>
#include <sim/objs/mapping.h>
#include <sim/objs/procmaps.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define MLX5SIM_SHARED_FILE     "mlx5sim-shared"

#define MLX5SIM_SHARED_MAX_SIZE (16ul << 20)

/* Memory regions leave some of them to queues */
#define MLX5SIM_SHARED_MEMORIES 192

/* All memory regions together. What the program has unmapped keeps its pages
 * until the next one is to be shared. */
#define MLX5SIM_SHARED_MAX_SUM  (128ul << 20)

/* The program's own descriptors are to have the numbers that they have without
 * us */
#define MLX5SIM_SHARED_MIN_FD   512

/* How often those are looked for that the program has unmapped, if there is no
 * room */
#define MLX5SIM_SHARED_PRUNE    64

static pthread_mutex_t mlx5sim_shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static int mlx5sim_shared_cancel; /* state of the thread that has it */
static uint64_t mlx5sim_shared_mask; /* and its signal mask */
static int mlx5sim_shared_is_enabled;
static _Atomic int mlx5sim_shared_has_mappings;
static int mlx5sim_shared_has_memory;
static mlx5sim_shared_own_t mlx5sim_shared_parts[MLX5SIM_SHARED_MAX];
static unsigned mlx5sim_shared_num_parts; /* that are found in a survey */
static int mlx5sim_shared_fd = -1;
static pid_t mlx5sim_shared_pid; /* who opened it: a child may have it, too */

mlx5sim_shared_own_t mlx5sim_shared_own[MLX5SIM_SHARED_MAX];

/* Odd while the ranges are being replaced by what is left of them */
static _Atomic unsigned mlx5sim_shared_changes;

/* All that has ever been shared is between these */
static _Atomic uint64_t mlx5sim_shared_low = UINT64_MAX;
static _Atomic uint64_t mlx5sim_shared_high;


/* A thread that is cancelled must not keep the mutex, nor may its handlers of
 * signals want it. SIGBUS and SIGTRAP are the device's. */
static int mlx5sim_shared_lock_by(int (*lock)(pthread_mutex_t *mutex))
{
    uint64_t all = ~((1ull << (SIGBUS - 1)) | (1ull << (SIGTRAP - 1)));
    uint64_t mask;
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(mask));
    if (lock(&mlx5sim_shared_mutex) != 0) {
        (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL,
                      sizeof(mask));
        pthread_setcancelstate(state, NULL);
        return 0;
    }

    mlx5sim_shared_cancel = state;
    mlx5sim_shared_mask   = mask;
    return 1;
}

void mlx5sim_shared_lock(void)
{
    (void)mlx5sim_shared_lock_by(pthread_mutex_lock);
}

void mlx5sim_shared_unlock(void)
{
    uint64_t mask = mlx5sim_shared_mask;
    int state     = mlx5sim_shared_cancel;

    pthread_mutex_unlock(&mlx5sim_shared_mutex);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
    pthread_setcancelstate(state, NULL);
}

/* Under the mutex. @return 0, or -1: there is no file */
static int mlx5sim_shared_open(void)
{
    mlx5sim_proc_t *self = mlx5sim_proc_self();
    struct rlimit limit;
    struct stat st;
    int fd, high;

    if (mlx5sim_shared_fd >= 0) {
        return (mlx5sim_shared_file() >= 0) ? 0 : -1;
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
    mlx5sim_shared_pid = getpid();
    return 0;
}

/* Pages of the file that are a range's. @return NULL: there is no room */
static void *mlx5sim_shared_map_file(const mlx5sim_shared_t *what)
{
    void *pages = mlx5sim_shared_mmap(what->length, MAP_SHARED,
                                      mlx5sim_shared_fd, what->addr);

    return (pages == MAP_FAILED) ? NULL : pages;
}

/* The same, with what private memory contains */
static void *mlx5sim_shared_file_of(const mlx5sim_shared_t *what)
{
    void *pages = mlx5sim_shared_map_file(what);

    if (pages != NULL) {
        memcpy(pages, (const void*)(uintptr_t)what->addr, what->length);
    }
    return pages;
}

int mlx5sim_shared_file(void)
{
    return ((mlx5sim_shared_fd >= 0) &&
            mlx5sim_shared_is_file(mlx5sim_shared_fd, mlx5sim_proc_self())) ?
           mlx5sim_shared_fd : -1;
}

void *mlx5sim_shared_copy_of(const mlx5sim_shared_t *what)
{
    struct iovec from = {(void*)(uintptr_t)what->addr, what->length};
    struct iovec to   = {NULL, what->length};
    ssize_t length    = what->length;

    to.iov_base = mlx5sim_shared_mmap(what->length, MAP_PRIVATE | MAP_ANONYMOUS,
                                      -1, 0);
    if (to.iov_base == MAP_FAILED) {
        return NULL;
    }

    /* without the file, what can't be read can't be copied */
    if ((pread(mlx5sim_shared_file(), to.iov_base, length, what->addr) !=
         length) &&
        (process_vm_readv(gettid(), &to, 1, &from, 1, 0) != length)) {
        mlx5sim_shared_munmap(to.iov_base, what->length);
        return NULL;
    }
    return to.iov_base;
}

int mlx5sim_shared_replace(const mlx5sim_shared_t *what, void *pages)
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

/* Give the pages of the file back */
static void mlx5sim_shared_punch(const mlx5sim_shared_t *what)
{
    if (what->length > 0) {
        (void)fallocate(mlx5sim_shared_file(),
                        FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, what->addr,
                        what->length);
    }
}

static void mlx5sim_shared_forget(mlx5sim_shared_own_t *own)
{
    mlx5sim_shared_punch(&own->what);
    memset(own, 0, sizeof(*own));
}

mlx5sim_shared_own_t *mlx5sim_shared_find(uint64_t addr, uint64_t length)
{
    mlx5sim_shared_t what = {addr, length};
    unsigned i;

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        if (mlx5sim_shared_common(&mlx5sim_shared_own[i].what,
                                  &what).length > 0) {
            return &mlx5sim_shared_own[i];
        }
    }
    return NULL;
}

/* The range that has an address, or the next one behind it */
static const mlx5sim_shared_own_t *mlx5sim_shared_next(uint64_t addr)
{
    const mlx5sim_shared_own_t *next = NULL;
    const mlx5sim_shared_own_t *own;
    unsigned i;

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        own = &mlx5sim_shared_own[i];
        if ((own->what.length > 0) &&
            (own->what.addr + own->what.length > addr) &&
            ((next == NULL) || (own->what.addr < next->what.addr))) {
            next = own;
        }
    }
    return next;
}

/* Note a part of a range that is still there. @return 0, or -1: there is no
 * room */
static int mlx5sim_shared_note(const mlx5sim_shared_own_t *own,
                               const mlx5sim_shared_t *part)
{
    mlx5sim_shared_own_t *last = (mlx5sim_shared_num_parts == 0) ? NULL :
            &mlx5sim_shared_parts[mlx5sim_shared_num_parts - 1];

    if ((last != NULL) && (last->what.addr >= own->what.addr) &&
        (last->what.addr + last->what.length == part->addr)) {
        last->what.length += part->length; /* protected otherwise */
        return 0;
    }

    if (mlx5sim_shared_num_parts == MLX5SIM_SHARED_MAX) {
        return -1;
    }

    last           = &mlx5sim_shared_parts[mlx5sim_shared_num_parts++];
    last->what     = *part;
    last->is_queue = own->is_queue;
    last->no_fork  = own->no_fork;
    return 0;
}

/* Note what a mapping has of ranges, in the order of addresses: it may be of
 * several */
static int
mlx5sim_shared_survey_line(void *arg, const mlx5sim_procmaps_line_t *line)
{
    uint64_t end          = line->addr + line->length;
    mlx5sim_shared_t rest = {line->addr, line->length};
    int *is_full          = arg;
    const mlx5sim_shared_own_t *own;
    mlx5sim_shared_t common;

    if (!mlx5sim_shared_is_of(line, mlx5sim_proc_self())) {
        return 1;
    }

    while ((own = mlx5sim_shared_next(rest.addr)) != NULL) {
        common = mlx5sim_shared_common(&own->what, &rest);
        if (common.length == 0) {
            break;
        }

        rest.addr   = common.addr + common.length;
        rest.length = end - rest.addr;
        *is_full = mlx5sim_shared_note(own, &common) != 0;
        if (*is_full) {
            return 0;
        }
    }
    return 1;
}

/* Give back what is no longer there of a range */
static void mlx5sim_shared_trim(const mlx5sim_shared_t *what)
{
    uint64_t end         = what->addr + what->length;
    mlx5sim_shared_t gap = {what->addr, 0};
    mlx5sim_shared_t part;
    unsigned i;

    for (i = 0; i < mlx5sim_shared_num_parts; ++i) {
        part = mlx5sim_shared_common(&mlx5sim_shared_parts[i].what, what);
        if (part.length > 0) {
            gap.length = part.addr - gap.addr;
            mlx5sim_shared_punch(&gap);
            gap.addr = part.addr + part.length;
        }
    }

    gap.length = end - gap.addr;
    mlx5sim_shared_punch(&gap);
}

/* Whether the ranges are those of this process, and not of its parent, which a
 * child has that was made without handlers, or calls them just now */
static int mlx5sim_shared_is_mine(void)
{
    return getpid() == mlx5sim_shared_pid;
}

/* Find out what the program has left of all ranges. @return 0, or -1: that
 * can't be found out, and they are as before */
static int mlx5sim_shared_survey(void)
{
    int is_full = 0;
    unsigned i;

    if (!mlx5sim_shared_is_mine()) {
        return -1;
    }

    mlx5sim_shared_num_parts = 0;
    if ((mlx5sim_procmaps_read(getpid(), mlx5sim_shared_survey_line,
                               &is_full) != 0) || is_full) {
        return -1;
    }

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        mlx5sim_shared_trim(&mlx5sim_shared_own[i].what);
    }

    atomic_fetch_add(&mlx5sim_shared_changes, 1);
    memset(mlx5sim_shared_own, 0, sizeof(mlx5sim_shared_own));
    memcpy(mlx5sim_shared_own, mlx5sim_shared_parts,
           mlx5sim_shared_num_parts * sizeof(*mlx5sim_shared_own));
    atomic_fetch_add(&mlx5sim_shared_changes, 1);
    return 0;
}

/* The first range that has a part of that now. @return 0, or -1: it can't be
 * found out */
static int mlx5sim_shared_find_now(uint64_t addr, uint64_t length,
                                   mlx5sim_shared_own_t **own_p)
{
    int ret = 0;

    *own_p = mlx5sim_shared_find(addr, length);
    if (*own_p != NULL) {
        ret    = mlx5sim_shared_survey();
        *own_p = mlx5sim_shared_find(addr, length);
    }
    return ret;
}

static mlx5sim_shared_own_t *mlx5sim_shared_free(unsigned max)
{
    unsigned i;

    for (i = 0; i < max; ++i) {
        if (mlx5sim_shared_own[i].what.length == 0) {
            return &mlx5sim_shared_own[i];
        }
    }
    return NULL;
}

/* Room for a range; under the mutex. @return NULL: there is none */
static mlx5sim_shared_own_t *
mlx5sim_shared_room_now(uint64_t length, int is_queue)
{
    uint64_t sum = 0;
    unsigned i;

    if (is_queue) {
        return mlx5sim_shared_free(MLX5SIM_SHARED_MAX);
    }

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        sum += mlx5sim_shared_own[i].is_queue ?
               0 : mlx5sim_shared_own[i].what.length;
    }
    return (sum + length <= MLX5SIM_SHARED_MAX_SUM) ?
           mlx5sim_shared_free(MLX5SIM_SHARED_MEMORIES) : NULL;
}

static mlx5sim_shared_own_t *
mlx5sim_shared_room(uint64_t length, int is_queue)
{
    mlx5sim_shared_own_t *own = mlx5sim_shared_room_now(length, is_queue);
    static unsigned asked;

    if ((own != NULL) || (asked++ % MLX5SIM_SHARED_PRUNE != 0)) {
        return own;
    }

    (void)mlx5sim_shared_survey();
    return mlx5sim_shared_room_now(length, is_queue);
}

static void
mlx5sim_shared_record(mlx5sim_shared_own_t *own, const mlx5sim_shared_t *what,
                      int is_queue, int no_fork)
{
    own->what     = *what;
    own->is_queue = is_queue;
    own->no_fork  = no_fork;
    if (what->addr < mlx5sim_shared_low) {
        mlx5sim_shared_low = what->addr;
    }
    if (what->addr + what->length > mlx5sim_shared_high) {
        mlx5sim_shared_high = what->addr + what->length;
    }
}

void mlx5sim_shared_enable(int has_mappings, int has_memory)
{
    mlx5sim_shared_is_enabled   = 1;
    mlx5sim_shared_has_mappings = has_mappings;
    mlx5sim_shared_has_memory   = has_memory;
}

/* Replace pages that nobody has touched by those of the file; under the mutex.
 * @return whether that was done */
static int mlx5sim_shared_take(const mlx5sim_shared_t *what, int is_forked)
{
    int is_done = 0;
    void *pages;
    int guard;

    switch (mlx5sim_shared_find_private(what, 0)) {
    case MLX5SIM_SHARED_PRIVATE:
        break;
    case MLX5SIM_SHARED_TOO_MANY:
        mlx5sim_shared_has_mappings = 0;
        return 0;
    default:
        return 0;
    }

    if (mlx5sim_shared_open() != 0) {
        return 0;
    }

    /* a system call fails only for who has asked for that */
    guard = mlx5sim_guard_begin(what->addr, what->length,
                                mlx5sim_shared_has_memory);
    if (guard < 0) {
        return 0;
    }

    /* from here on that is so for good */
    if (mlx5sim_shared_is_untouched(what->addr, what->length)) {
        mlx5sim_shared_punch(what); /* what a peer has written since */
        pages = mlx5sim_shared_map_file(what);
        if ((pages != NULL) && !is_forked) {
            (void)syscall(SYS_madvise, pages, what->length, MADV_DONTFORK);
        }
        is_done = mlx5sim_shared_replace(what, pages) == 0;
    }
    mlx5sim_guard_end(guard, what->addr, what->length);
    return is_done;
}

void mlx5sim_shared_memory(uint64_t addr, uint64_t length,
                           mlx5sim_shared_t *shared_p)
{
    int is_forked  = 1;
    int is_mapping = mlx5sim_mapping_is_one(addr, length, &is_forked);
    uint64_t slack = MLX5SIM_SHARED_PAGE - 1;
    uint64_t first = (addr + slack) & ~slack;
    uint64_t end   = (addr + length + (is_mapping ? slack : 0)) & ~slack;
    mlx5sim_shared_t what = {first, end - first};
    mlx5sim_shared_own_t *own;

    memset(shared_p, 0, sizeof(*shared_p));
    if (!mlx5sim_shared_has_mappings || (end <= first) ||
        (end - first > MLX5SIM_SHARED_MAX_SIZE) ||
        (end > MLX5SIM_SHARED_SPACE)) {
        return;
    }

    mlx5sim_shared_lock();
    if (mlx5sim_shared_find_now(what.addr, what.length, &own) != 0) {
        /* it stays as it is */
    } else if (own != NULL) {
        if (mlx5sim_shared_has(&own->what, what.addr, what.length)) {
            *shared_p = own->what;
        }
    } else if (((is_mapping && !is_forked) || mlx5sim_shared_has_memory) &&
               mlx5sim_shared_is_untouched(what.addr, what.length)) {
        own = mlx5sim_shared_room(what.length, 0);
        if ((own != NULL) && mlx5sim_shared_take(&what, is_forked)) {
            mlx5sim_shared_record(own, &what, 0, !is_forked);
            *shared_p = what;
        }
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
    if ((mlx5sim_shared_find_now(addr, length, &own) == 0) && (own == NULL) &&
        ((own = mlx5sim_shared_room(length, 1)) != NULL) &&
        (mlx5sim_shared_find_private(&what, 1) == MLX5SIM_SHARED_PRIVATE) &&
        (mlx5sim_shared_open() == 0) &&
        (mlx5sim_shared_replace(&what, mlx5sim_shared_file_of(&what)) ==
         0)) {
        mlx5sim_shared_record(own, &what, 1, 0);
        *shared_p = what;
    }
    mlx5sim_shared_unlock();
}

void mlx5sim_shared_end(mlx5sim_shared_t *shared)
{
    mlx5sim_shared_own_t *own;
    int ret;

    if (shared->length == 0) {
        return;
    }

    mlx5sim_shared_lock();
    ret = mlx5sim_shared_find_now(shared->addr, shared->length, &own);
    if ((own != NULL) && own->is_queue) {
        /* what can't be replaced stays, as memory does */
        if ((ret == 0) &&
            (mlx5sim_shared_replace(&own->what,
                                    mlx5sim_shared_copy_of(&own->what)) ==
             0)) {
            mlx5sim_shared_forget(own);
        } else {
            own->is_queue = 0;
        }
    }
    shared->length = 0;
    mlx5sim_shared_unlock();
}

/* Without the mutex: who asks may have locks that others want who have it. In
 * doubt it is: who asks then has it looked up under the mutex. */
int mlx5sim_shared_is_in(uint64_t addr, uint64_t length)
{
    unsigned changes = atomic_load(&mlx5sim_shared_changes);

    return (addr < mlx5sim_shared_high) &&
           (addr + length > mlx5sim_shared_low) &&
           ((mlx5sim_shared_find(addr, length) != NULL) || (changes & 1) ||
            (atomic_load(&mlx5sim_shared_changes) != changes));
}

/* Without the descriptor of the file: by mappings, which have to be looked up,
 * as they may be something else's by now */
static void mlx5sim_shared_discard_mapped(const mlx5sim_shared_t *what)
{
    mlx5sim_shared_own_t *own;
    mlx5sim_shared_t common;
    unsigned i;

    mlx5sim_shared_lock();
    if (mlx5sim_shared_find_now(what->addr, what->length, &own) == 0) {
        for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
            common = mlx5sim_shared_common(&mlx5sim_shared_own[i].what, what);
            if (common.length > 0) {
                (void)syscall(SYS_madvise, common.addr, common.length,
                              MADV_REMOVE);
            }
        }
    }
    mlx5sim_shared_unlock();
}

/* By what was noted: the program can't have anything else in the file. Without
 * the mutex: who asks may have locks that somebody waits for who has it, as
 * between handlers of fork(). */
void mlx5sim_shared_discard(uint64_t addr, uint64_t length)
{
    uint64_t end          = (addr + length + MLX5SIM_SHARED_PAGE - 1) &
                            ~(MLX5SIM_SHARED_PAGE - 1);
    mlx5sim_shared_t what = {addr, end - addr};
    mlx5sim_shared_t common;
    unsigned changes, i;

    if (!mlx5sim_shared_is_mine()) {
        mlx5sim_shared_discard_copies(&what);
        return;
    }

    if (mlx5sim_shared_file() < 0) {
        mlx5sim_shared_discard_mapped(&what);
        return;
    }

    do {
        changes = atomic_load(&mlx5sim_shared_changes);
        for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
            common = mlx5sim_shared_common(&mlx5sim_shared_own[i].what, &what);
            mlx5sim_shared_punch(&common);
        }
    } while ((changes & 1) ||
             (atomic_load(&mlx5sim_shared_changes) != changes));
}

/* Peers write to regions there by the kernel from now on */
static void mlx5sim_shared_untell(const mlx5sim_shared_t *what)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_MR].high);
    mlx5sim_mr_obj_t *mr;
    uint32_t i;

    for (i = 0; i < high; ++i) {
        mr = mlx5sim_obj_at(MLX5SIM_OBJ_MR, i);
        if ((atomic_load(&mr->o.owner) == mlx5sim_self_tag) &&
            (mlx5sim_shared_common(&mr->shared, what).length > 0)) {
            mr->shared.length = 0;
        }
    }
}

void mlx5sim_shared_leave(uint64_t addr, uint64_t length)
{
    mlx5sim_shared_t what = {addr, length};

    mlx5sim_shared_untell(&what);
}

void mlx5sim_shared_left(void)
{
    if (mlx5sim_shared_lock_by(pthread_mutex_trylock)) {
        (void)mlx5sim_shared_survey();
        mlx5sim_shared_unlock();
    }
}

void mlx5sim_shared_settle(void)
{
    mlx5sim_shared_lock();
    mlx5sim_shared_unlock();
}

/* At the same address, so that the kernel makes one mapping of it and of what
 * is beside it. mremap() wants one. @return 0, or -1: there is no room */
static int mlx5sim_shared_make_private(const mlx5sim_shared_t *what)
{
    void *pages = mlx5sim_shared_copy_of(what);
    void *addr  = (void*)(uintptr_t)what->addr;
    int ret     = -1;

    if (pages == NULL) {
        return -1;
    }

    mlx5sim_shared_untell(what);
    if (syscall(SYS_mmap, addr, what->length, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        (long)addr) {
        memcpy(addr, pages, what->length);
        ret = 0;
    }
    mlx5sim_shared_munmap(pages, what->length);
    return ret;
}

int mlx5sim_shared_withdraw(uint64_t addr, uint64_t length)
{
    mlx5sim_shared_t what = {addr, length};
    mlx5sim_shared_own_t *own;
    mlx5sim_shared_t common;
    unsigned i;
    int ret;

    mlx5sim_shared_lock();
    ret = mlx5sim_shared_find_now(addr, length, &own);
    for (i = 0; (ret == 0) && (i < MLX5SIM_SHARED_MAX); ++i) {
        common = mlx5sim_shared_common(&mlx5sim_shared_own[i].what, &what);
        if (common.length > 0) {
            ret = mlx5sim_shared_make_private(&common);
        }
    }
    (void)mlx5sim_shared_survey();
    mlx5sim_shared_unlock();
    return ret;
}

/* Without the mutex, as mlx5sim_shared_is_in(): what is wrong then makes a copy
 * that nobody needs, or one that the child has to make */
void mlx5sim_shared_set_fork(uint64_t addr, uint64_t length, int is_forked)
{
    mlx5sim_shared_t what = {addr, length};
    mlx5sim_shared_own_t *own;
    unsigned i;

    for (i = 0; i < MLX5SIM_SHARED_MAX; ++i) {
        own = &mlx5sim_shared_own[i];
        if (mlx5sim_shared_common(&own->what, &what).length > 0) {
            own->no_fork = !is_forked && mlx5sim_shared_has(&what,
                                                            own->what.addr,
                                                            own->what.length);
        }
    }
}

void mlx5sim_shared_forget_own(void)
{
    int fd = mlx5sim_shared_file();

    memset(mlx5sim_shared_own, 0, sizeof(mlx5sim_shared_own));
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
    mlx5sim_shared_fd = -1;
}
