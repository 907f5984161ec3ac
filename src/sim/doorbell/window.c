/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/doorbell/window.h"
#include "sim/doorbell/trap.h"
#include "sim/uverbs/uverbs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MLX5SIM_PAGE_SHIFT  12
#define MLX5SIM_PAGE_MASK   0xffful
#define MLX5SIM_MAX_WINDOWS 32768

/* A snapshot of the mappings. Readers use whatever snapshot is current; an old
 * one stays valid for those that hold it, so snapshots are never freed: there
 * is one per new UAR at most, and their pages are shared zero pages beyond
 * `num`. */
typedef struct {
    unsigned         num;
    mlx5sim_window_t windows[];
} mlx5sim_windows_t;

static _Atomic(mlx5sim_windows_t*) mlx5sim_windows;
static pthread_mutex_t mlx5sim_windows_mutex = PTHREAD_MUTEX_INITIALIZER;


static int mlx5sim_window_parse(const char *line, mlx5sim_window_t *window_p)
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
static unsigned mlx5sim_window_scan(mlx5sim_windows_t *windows, unsigned max)
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
                mlx5sim_window_parse(line, &windows->windows[num])) {
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

static void mlx5sim_window_rescan(mlx5sim_windows_t *seen)
{
    size_t size = sizeof(mlx5sim_windows_t) +
                  MLX5SIM_MAX_WINDOWS * sizeof(mlx5sim_window_t);
    mlx5sim_windows_t *windows;

    pthread_mutex_lock(&mlx5sim_windows_mutex);
    if (atomic_load(&mlx5sim_windows) == seen) {
        windows = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (windows != MAP_FAILED) {
            windows->num = mlx5sim_window_scan(windows, MLX5SIM_MAX_WINDOWS);
            atomic_store(&mlx5sim_windows, windows);
        }
    }
    pthread_mutex_unlock(&mlx5sim_windows_mutex);
}

/* /proc/self/maps is sorted by address */
static const mlx5sim_window_t *
mlx5sim_window_search(const mlx5sim_windows_t *windows, uintptr_t addr)
{
    unsigned lo = 0, hi = (windows != NULL) ? windows->num : 0, mid;

    while (lo < hi) {
        mid = (lo + hi) / 2;
        if (addr < windows->windows[mid].range.lo) {
            hi = mid;
        } else if (addr >= windows->windows[mid].range.hi) {
            lo = mid + 1;
        } else {
            return &windows->windows[mid];
        }
    }

    return NULL;
}

static mlx5sim_uar_t *mlx5sim_window_uar(const mlx5sim_window_t *window,
                                         uintptr_t page)
{
    uint64_t file_page;
    mlx5sim_uar_t *uar;

    file_page = (window->offset + (page - window->range.lo)) >>
                MLX5SIM_PAGE_SHIFT;
    if ((file_page < MLX5SIM_UAR_PAGE_BASE) ||
        (file_page >= MLX5SIM_UAR_PAGE_BASE + MLX5SIM_MAX_UARS)) {
        return NULL;
    }

    uar = mlx5sim_obj_at(MLX5SIM_OBJ_UAR, file_page - MLX5SIM_UAR_PAGE_BASE);
    return ((atomic_load(&uar->o.owner) == mlx5sim_self_tag) &&
            (uar->o.ctx == window->ctx)) ? uar : NULL;
}

mlx5sim_uar_t *mlx5sim_window_find(uintptr_t addr,
                                   mlx5sim_insn_window_t *page_p,
                                   mlx5sim_insn_window_t avoid_p[2],
                                   unsigned *num_p)
{
    uintptr_t page = addr & ~MLX5SIM_PAGE_MASK;
    const mlx5sim_window_t *window;
    mlx5sim_windows_t *windows;
    mlx5sim_uar_t *uar = NULL;
    int tries;

    if ((mlx5sim_store == NULL) || (mlx5sim_self_tag == 0)) {
        return NULL;
    }

    for (tries = 0; tries < 2; ++tries) {
        windows = atomic_load(&mlx5sim_windows);
        window  = mlx5sim_window_search(windows, addr);
        uar     = (window != NULL) ? mlx5sim_window_uar(window, page) : NULL;
        if (uar != NULL) {
            break;
        }
        mlx5sim_window_rescan(windows);
    }

    if (uar == NULL) {
        return NULL;
    }

    page_p->lo    = page;
    page_p->hi    = page + MLX5SIM_PAGE_MASK + 1;
    avoid_p[0].lo = windows->windows[0].range.lo;
    avoid_p[0].hi = page_p->lo;
    avoid_p[1].lo = page_p->hi;
    avoid_p[1].hi = windows->windows[windows->num - 1].range.hi;
    *num_p        = 2;
    return uar;
}
