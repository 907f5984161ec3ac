/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/patch.h>
#include <sim/doorbell/patch_call.h>
#include <sim/libc/real.h>

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

typedef enum {
    MLX5SIM_PATCH_COUNTING,
    MLX5SIM_PATCH_REPLACED, /* or just being replaced */
    MLX5SIM_PATCH_REFUSED
} mlx5sim_patch_state_t;

/* A store of the program, or a call of memcpy(), by what comes behind it */
typedef struct {
    _Atomic uintptr_t addr;  /* 0: free; once set, it stays */
    atomic_uint       traps;
    _Atomic int       state; /* mlx5sim_patch_state_t */
} mlx5sim_patch_site_t;

static unsigned mlx5sim_patch_after;
static mlx5sim_patch_site_t mlx5sim_patch_sites[MLX5SIM_INSN_MAX_MOVED];

/* Objects whose stores stay as they are, because the device calls them: the C
 * library, that which has memcpy() in its place, as a sanitizer may, and the
 * device itself */
static mlx5sim_insn_window_t mlx5sim_patch_libc;
static mlx5sim_insn_window_t mlx5sim_patch_memcpy;
static mlx5sim_insn_window_t mlx5sim_patch_self;


/* A debugger takes breakpoints for its own */
static int mlx5sim_patch_is_traced(void)
{
    static const char key[] = "TracerPid:\t";
    char buf[4096];
    const char *pos;
    ssize_t num;
    int fd;

    fd = REAL(openat)(AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 1;
    }

    num = read(fd, buf, sizeof(buf) - 1);
    REAL(close)(fd);
    buf[(num > 0) ? num : 0] = '\0';
    pos = strstr(buf, key);
    return (pos == NULL) || (pos[sizeof(key) - 1] != '0');
}

/* @return that of @a addr, or NULL; @a is_new: or one that was free */
static mlx5sim_patch_site_t *mlx5sim_patch_find(uintptr_t addr, int is_new)
{
    mlx5sim_patch_site_t *site;
    uintptr_t old;
    unsigned i;

    for (i = 0; i < MLX5SIM_INSN_MAX_MOVED; ++i) {
        site = &mlx5sim_patch_sites[(addr + i) % MLX5SIM_INSN_MAX_MOVED];
        old  = atomic_load(&site->addr);
        if ((old == 0) && !is_new) {
            return NULL;
        }
        if ((old == addr) ||
            ((old == 0) &&
             (atomic_compare_exchange_strong(&site->addr, &old, addr) ||
              (old == addr)))) {
            return site;
        }
    }
    return NULL;
}

static int
mlx5sim_patch_is_in(uintptr_t addr, const mlx5sim_insn_window_t *range)
{
    return (addr >= range->lo) && (addr < range->hi);
}

/* Whether code belongs to a library that copies for others */
static int mlx5sim_patch_is_copier(uintptr_t addr)
{
    return mlx5sim_patch_is_in(addr, &mlx5sim_patch_libc) ||
           mlx5sim_patch_is_in(addr, &mlx5sim_patch_memcpy);
}

static int mlx5sim_patch_replace(const mlx5sim_patch_site_t *site,
                                 uintptr_t addr, int is_call)
{
    return is_call ? mlx5sim_patch_call_make(addr) :
           mlx5sim_patch_jump_make(site - mlx5sim_patch_sites, addr);
}

void mlx5sim_patch_count(uintptr_t rip, uintptr_t rsp)
{
    mlx5sim_patch_site_t *site;
    uintptr_t addr;
    int is_call;

    if (mlx5sim_patch_after == 0) {
        return;
    }

    /* memcpy() has no frame, and the same instruction serves everybody */
    is_call = mlx5sim_patch_is_copier(rip);
    addr    = is_call ? *(const uintptr_t*)rsp : rip;
    if (mlx5sim_patch_is_copier(addr) ||
        mlx5sim_patch_is_in(addr, &mlx5sim_patch_self) ||
        mlx5sim_patch_jump_is_copy(addr) ||
        ((site = mlx5sim_patch_find(addr, 1)) == NULL) ||
        (atomic_fetch_add(&site->traps, 1) + 1 < mlx5sim_patch_after) ||
        (atomic_load(&site->state) != MLX5SIM_PATCH_COUNTING) ||
        !mlx5sim_patch_lock(addr)) {
        return;
    }

    if (atomic_load(&site->state) == MLX5SIM_PATCH_COUNTING) {
        if (mlx5sim_patch_is_traced()) {
            atomic_store(&site->traps, 0);
        } else {
            atomic_store(&site->state, MLX5SIM_PATCH_REPLACED);
            if (mlx5sim_patch_replace(site, addr, is_call) != 0) {
                atomic_store(&site->state, MLX5SIM_PATCH_REFUSED);
            }
        }
    }
    mlx5sim_patch_unlock();
}

int mlx5sim_patch_wait(ucontext_t *uc)
{
    greg_t *rip    = &uc->uc_mcontext.gregs[REG_RIP];
    uintptr_t addr = *rip - 1;
    const mlx5sim_patch_site_t *site;

    site = (mlx5sim_patch_after > 0) ? mlx5sim_patch_find(addr, 0) : NULL;
    if ((site == NULL) ||
        (atomic_load(&site->state) == MLX5SIM_PATCH_COUNTING)) {
        return 0;
    }

    while (mlx5sim_patch_is_busy(addr)) {
        sched_yield();
    }
    *rip = addr;
    return 1;
}

/* The handler may not ask the loader, whose lock may be held */
static int
mlx5sim_patch_spare(struct dl_phdr_info *info, size_t size, void *arg)
{
    mlx5sim_insn_window_t range = {.lo = UINTPTR_MAX};
    uintptr_t start;
    unsigned i;

    for (i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            start    = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            range.lo = (start < range.lo) ? start : range.lo;
            range.hi = start + info->dlpi_phdr[i].p_memsz;
        }
    }
    if (mlx5sim_patch_is_in((uintptr_t)gnu_get_libc_version, &range)) {
        mlx5sim_patch_libc = range;
    }
    if (mlx5sim_patch_is_in((uintptr_t)memcpy, &range)) {
        mlx5sim_patch_memcpy = range;
    }
    if (mlx5sim_patch_is_in((uintptr_t)mlx5sim_patch_init, &range)) {
        mlx5sim_patch_self = range;
    }
    return 0;
}

int mlx5sim_patch_init(unsigned after, mlx5sim_patch_store_t store,
                       mlx5sim_patch_copy_t copy)
{
    if ((after == 0) || !mlx5sim_patch_jump_init(store)) {
        return 0;
    }

    mlx5sim_patch_call_init(copy);
    dl_iterate_phdr(mlx5sim_patch_spare, NULL);
    mlx5sim_patch_after = after;
    return 1;
}

void mlx5sim_patch_fork_prepare(void)
{
    while (!mlx5sim_patch_lock(0)) {
        sched_yield();
    }
}

void mlx5sim_patch_fork_done(void)
{
    mlx5sim_patch_unlock();
}
