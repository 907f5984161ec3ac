/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/uar/window.h"
#include "sim/doorbell/trap.h"
#include "sim/uar/legacy.h"
#include "sim/uverbs/uverbs.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MLX5SIM_PAGE_SHIFT  12
#define MLX5SIM_PAGE_MASK   0xffful
#define MLX5SIM_MAX_WINDOWS 32768

/*
 * A snapshot of the mappings, made anew in place when it does not help. Readers
 * are doorbells, so they take no lock: they read again if the sequence number,
 * odd during a change, has moved.
 */
/* what the sequence number guards is no data race, but ThreadSanitizer can't know */
#define MLX5SIM_WINDOW_SEQ __attribute__((no_sanitize("thread")))

static mlx5sim_window_t *mlx5sim_windows;
static _Atomic unsigned mlx5sim_windows_num;
static _Atomic unsigned mlx5sim_windows_seq;
static pthread_mutex_t mlx5sim_windows_mutex = PTHREAD_MUTEX_INITIALIZER;


MLX5SIM_WINDOW_SEQ static int
mlx5sim_window_parse(const char *line, mlx5sim_window_t *window_p)
{
    static const char name[] = "/memfd:" MLX5SIM_TRAP_FILE_PREFIX;
    unsigned long lo, hi, offset;
    const char *file;

    file = strstr(line, name);
    if ((file == NULL) ||
        (sscanf(line, "%lx-%lx %*s %lx", &lo, &hi, &offset) != 3)) {
        return 0;
    }

    window_p->range.lo = lo;
    window_p->range.hi = hi;
    window_p->offset   = offset;
    window_p->ctx      = strtoul(file + strlen(name), NULL, 10);
    return 1;
}

/* No stdio: this runs in a signal handler of an arbitrary program */
static unsigned mlx5sim_window_scan(mlx5sim_window_t *windows, unsigned max)
{
    char buf[8192];
    size_t used  = 0;
    unsigned num = 0;
    char *line, *end;
    ssize_t n;
    int fd;

    fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }

    while ((n = read(fd, buf + used, sizeof(buf) - 1 - used)) > 0) {
        used     += n;
        buf[used] = '\0';
        line      = buf;
        while ((end = memchr(line, '\n', buf + used - line)) != NULL) {
            *end = '\0';
            if ((num < max) &&
                mlx5sim_window_parse(line, &windows[num])) {
                ++num;
            }
            line = end + 1;
        }

        used -= line - buf;
        memmove(buf, line, used);
    }

    close(fd);
    return num;
}

/* Make a new snapshot unless the one of @a seq is replaced already. @return
 * whether it was made */
static int mlx5sim_window_rescan(unsigned seq)
{
    size_t size = MLX5SIM_MAX_WINDOWS * sizeof(mlx5sim_window_t);
    int is_new  = 0;
    void *table;

    pthread_mutex_lock(&mlx5sim_windows_mutex);
    if (atomic_load(&mlx5sim_windows_seq) == seq) {
        if (mlx5sim_windows == NULL) {
            /* pages beyond what is used are never touched */
            table = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            mlx5sim_windows = (table != MAP_FAILED) ? table : NULL;
        }

        if (mlx5sim_windows != NULL) {
            atomic_store(&mlx5sim_windows_seq, seq + 1);
            atomic_thread_fence(memory_order_seq_cst);
            atomic_store(&mlx5sim_windows_num,
                         mlx5sim_window_scan(mlx5sim_windows,
                                             MLX5SIM_MAX_WINDOWS));
            atomic_store(&mlx5sim_windows_seq, seq + 2);
        }
        is_new = 1;
    }
    pthread_mutex_unlock(&mlx5sim_windows_mutex);

    return is_new;
}

/* A snapshot that was begun after the call */
static void mlx5sim_window_renew(void)
{
    while (!mlx5sim_window_rescan(atomic_load(&mlx5sim_windows_seq) & ~1u)) {
        sched_yield();
    }
}

void mlx5sim_window_fork_child(void)
{
    unsigned seq = atomic_load(&mlx5sim_windows_seq);

    pthread_mutex_init(&mlx5sim_windows_mutex, NULL);
    atomic_store(&mlx5sim_windows_num, 0);
    atomic_store(&mlx5sim_windows_seq, (seq + 1) & ~1u);
}

/* /proc/self/maps is sorted by address */
MLX5SIM_WINDOW_SEQ static const mlx5sim_window_t *
mlx5sim_window_search(const mlx5sim_window_t *windows, unsigned num,
                      uintptr_t addr)
{
    unsigned lo = 0, hi = num, mid;

    while (lo < hi) {
        mid = (lo + hi) / 2;
        if (addr < windows[mid].range.lo) {
            hi = mid;
        } else if (addr >= windows[mid].range.hi) {
            lo = mid + 1;
        } else {
            return &windows[mid];
        }
    }

    return NULL;
}

/* Look @a addr up in the snapshot; @a all_p is the range of all windows.
 * @return whether it is there; *seq_p says of which snapshot that is true */
MLX5SIM_WINDOW_SEQ static int
mlx5sim_window_lookup(uintptr_t addr, mlx5sim_window_t *window_p,
                      mlx5sim_insn_window_t *all_p, unsigned *seq_p)
{
    const mlx5sim_window_t *found;
    unsigned num;

    for (;;) {
        *seq_p = atomic_load(&mlx5sim_windows_seq);
        if (*seq_p & 1) {
            sched_yield();
            continue;
        }

        num   = atomic_load(&mlx5sim_windows_num);
        found = mlx5sim_window_search(mlx5sim_windows, num, addr);
        if (found != NULL) {
            *window_p = *found;
            all_p->lo = mlx5sim_windows[0].range.lo;
            all_p->hi = mlx5sim_windows[num - 1].range.hi;
        }

        atomic_thread_fence(memory_order_acquire);
        if (atomic_load(&mlx5sim_windows_seq) == *seq_p) {
            return found != NULL;
        }
    }
}

static mlx5sim_uar_t *mlx5sim_window_uar(const mlx5sim_window_t *window,
                                         uintptr_t page)
{
    uint64_t file_page;
    mlx5sim_uar_t *uar;
    uint32_t index;

    file_page = (window->offset + (page - window->range.lo)) >>
                MLX5SIM_PAGE_SHIFT;
    if (file_page >= MLX5SIM_UAR_PAGE_BASE + MLX5SIM_MAX_UARS) {
        return NULL;
    }

    index = (file_page >= MLX5SIM_UAR_PAGE_BASE) ?
            file_page - MLX5SIM_UAR_PAGE_BASE :
            mlx5sim_legacy_find(window->ctx, file_page);
    uar   = mlx5sim_obj_at(MLX5SIM_OBJ_UAR, index);
    return ((atomic_load(&uar->o.owner) == mlx5sim_self_tag) &&
            (uar->o.ctx == window->ctx)) ? uar : NULL;
}

mlx5sim_uar_t *mlx5sim_window_find(uintptr_t addr,
                                   mlx5sim_insn_window_t *page_p,
                                   mlx5sim_insn_window_t avoid_p[2],
                                   unsigned *num_p)
{
    uintptr_t page = addr & ~MLX5SIM_PAGE_MASK;
    mlx5sim_uar_t *uar;
    mlx5sim_insn_window_t all;
    mlx5sim_window_t window;
    int is_there, is_fresh = 0;
    unsigned seq;

    if ((mlx5sim_store == NULL) || (mlx5sim_self_tag == 0)) {
        return NULL;
    }

    /* a snapshot by somebody else may have been begun before this page was
     * mapped: only one of our own is final */
    for (;;) {
        is_there = mlx5sim_window_lookup(addr, &window, &all, &seq);
        uar      = is_there ? mlx5sim_window_uar(&window, page) : NULL;
        if (uar != NULL) {
            break;
        } else if (is_fresh) {
            return NULL;
        }
        is_fresh = mlx5sim_window_rescan(seq);
    }

    page_p->lo    = page;
    page_p->hi    = page + MLX5SIM_PAGE_MASK + 1;
    avoid_p[0].lo = all.lo;
    avoid_p[0].hi = page_p->lo;
    avoid_p[1].lo = page_p->hi;
    avoid_p[1].hi = all.hi;
    *num_p        = 2;
    return uar;
}

mlx5sim_uar_t *mlx5sim_window_refresh(uintptr_t addr)
{
    mlx5sim_insn_window_t page, avoid[2];
    unsigned num;

    mlx5sim_window_renew();
    return mlx5sim_window_find(addr, &page, avoid, &num);
}

int mlx5sim_window_is_mapped(uint32_t ctx, uint64_t file_page)
{
    uint64_t offset = file_page << MLX5SIM_PAGE_SHIFT;
    const mlx5sim_window_t *window;
    int is_mapped = 0;
    unsigned i;

    mlx5sim_window_renew();
    pthread_mutex_lock(&mlx5sim_windows_mutex);
    for (i = 0; i < atomic_load(&mlx5sim_windows_num); ++i) {
        window    = &mlx5sim_windows[i];
        is_mapped = is_mapped ||
                    ((window->ctx == ctx) && (offset >= window->offset) &&
                     (offset - window->offset <
                      window->range.hi - window->range.lo));
    }
    pthread_mutex_unlock(&mlx5sim_windows_mutex);
    return is_mapped;
}
