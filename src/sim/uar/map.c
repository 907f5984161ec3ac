/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uar/map.h>
#include <sim/objs/procmaps.h>
#include <sim/uar/layout.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MLX5SIM_MAX_MAPS 32768

/* The sequence number prevents data races, but ThreadSanitizer can't know. */
#define MLX5SIM_MAP_SEQ __attribute__((no_sanitize("thread")))

static mlx5sim_map_t *mlx5sim_maps;
static _Atomic unsigned mlx5sim_maps_num;
static _Atomic unsigned mlx5sim_maps_seq;
static pthread_mutex_t mlx5sim_maps_mutex = PTHREAD_MUTEX_INITIALIZER;


MLX5SIM_MAP_SEQ static int
mlx5sim_map_parse(const mlx5sim_procmaps_line_t *line, mlx5sim_map_t *map_p)
{
    static const char name[] = "/memfd:" MLX5SIM_UAR_FILE;
    const char *file         = strstr(line->text, name);

    if (file == NULL) {
        return 0;
    }

    map_p->range.lo = line->addr;
    map_p->range.hi = line->addr + line->length;
    map_p->offset   = line->offset;
    map_p->inode    = line->inode;
    map_p->ctx      = strtoul(file + strlen(name), NULL, 10);
    return 1;
}

/* Mappings that are found */
typedef struct {
    mlx5sim_map_t *maps;
    unsigned      num, max;
} mlx5sim_map_found_t;

static int mlx5sim_map_add(void *arg, const mlx5sim_procmaps_line_t *line)
{
    mlx5sim_map_found_t *found = arg;

    if ((found->num < found->max) &&
        mlx5sim_map_parse(line, &found->maps[found->num])) {
        ++found->num;
    }
    return 1;
}

static unsigned mlx5sim_map_scan(mlx5sim_map_t *maps, unsigned max)
{
    mlx5sim_map_found_t found = {maps, 0, max};

    mlx5sim_procmaps_read(getpid(), mlx5sim_map_add, &found);
    return found.num;
}

int mlx5sim_map_rescan(unsigned seq)
{
    size_t size = MLX5SIM_MAX_MAPS * sizeof(mlx5sim_map_t);
    int is_new  = 0;
    void *table;

    pthread_mutex_lock(&mlx5sim_maps_mutex);
    if (atomic_load(&mlx5sim_maps_seq) == seq) {
        if (mlx5sim_maps == NULL) {
            /* pages beyond what is used are never touched */
            table = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            mlx5sim_maps = (table != MAP_FAILED) ? table : NULL;
        }

        if (mlx5sim_maps != NULL) {
            atomic_store(&mlx5sim_maps_seq, seq + 1);
            atomic_thread_fence(memory_order_seq_cst);
            atomic_store(&mlx5sim_maps_num,
                         mlx5sim_map_scan(mlx5sim_maps, MLX5SIM_MAX_MAPS));
            atomic_store(&mlx5sim_maps_seq, seq + 2);
        }
        is_new = 1;
    }
    pthread_mutex_unlock(&mlx5sim_maps_mutex);

    return is_new;
}

void mlx5sim_map_renew(void)
{
    while (!mlx5sim_map_rescan(atomic_load(&mlx5sim_maps_seq) & ~1u)) {
        sched_yield();
    }
}

void mlx5sim_map_fork_child(void)
{
    unsigned seq = atomic_load(&mlx5sim_maps_seq);

    pthread_mutex_init(&mlx5sim_maps_mutex, NULL);
    atomic_store(&mlx5sim_maps_num, 0);
    atomic_store(&mlx5sim_maps_seq, (seq + 1) & ~1u);
}

/* /proc/self/maps is sorted by address */
MLX5SIM_MAP_SEQ static const mlx5sim_map_t *
mlx5sim_map_search(const mlx5sim_map_t *maps, unsigned num, uintptr_t addr)
{
    unsigned lo = 0, hi = num, mid;

    while (lo < hi) {
        mid = (lo + hi) / 2;
        if (addr < maps[mid].range.lo) {
            hi = mid;
        } else if (addr >= maps[mid].range.hi) {
            lo = mid + 1;
        } else {
            return &maps[mid];
        }
    }

    return NULL;
}

MLX5SIM_MAP_SEQ int
mlx5sim_map_lookup(uintptr_t addr, mlx5sim_map_t *map_p,
                   mlx5sim_insn_window_t *all_p, unsigned *seq_p)
{
    const mlx5sim_map_t *found;
    unsigned num;

    for (;;) {
        *seq_p = atomic_load(&mlx5sim_maps_seq);
        if (*seq_p & 1) {
            sched_yield();
            continue;
        }

        num   = atomic_load(&mlx5sim_maps_num);
        found = mlx5sim_map_search(mlx5sim_maps, num, addr);
        if (found != NULL) {
            *map_p = *found;
            all_p->lo = mlx5sim_maps[0].range.lo;
            all_p->hi = mlx5sim_maps[num - 1].range.hi;
        }

        atomic_thread_fence(memory_order_acquire);
        if (atomic_load(&mlx5sim_maps_seq) == *seq_p) {
            return found != NULL;
        }
    }
}

int mlx5sim_map_has_page(uint32_t ctx, uint64_t file_page)
{
    uint64_t offset = file_page << MLX5SIM_UAR_PAGE_SHIFT;
    const mlx5sim_map_t *map;
    int is_mapped = 0;
    unsigned i;

    mlx5sim_map_renew();
    pthread_mutex_lock(&mlx5sim_maps_mutex);
    for (i = 0; i < atomic_load(&mlx5sim_maps_num); ++i) {
        map       = &mlx5sim_maps[i];
        is_mapped = is_mapped ||
                    ((map->ctx == ctx) && (offset >= map->offset) &&
                     (offset - map->offset <
                      map->range.hi - map->range.lo));
    }
    pthread_mutex_unlock(&mlx5sim_maps_mutex);
    return is_mapped;
}
