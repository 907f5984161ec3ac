/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_budget_node.h>
#include <uct/ib/sep/base/sep_budget.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/time/time.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


/* "sepqps" and the version of what follows, which processes with another
 * version of the transport may have */
#define UCT_SEP_BUDGET_NODE_MAGIC  0x7365707170730001ull

/* Bytes of the file that are locked. They are only numbers to the kernel. */
#define UCT_SEP_BUDGET_NODE_DOOR       0
#define UCT_SEP_BUDGET_NODE_SLOT(_i)   (1 + (_i))
#define UCT_SEP_BUDGET_NODE_ALL_SLOTS  1, 0 /* To infinity: fcntl(2) */

/* How often a worker without room looks for dead ones, as that is a system call
 * for each of the others */
#define UCT_SEP_BUDGET_NODE_INTERVAL  ucs_time_from_msec(100.0)


/* A worker's; written by it alone */
typedef struct {
    uint32_t limit; /* UCX_SEP_MAX_QPS_NODE; 0: nobody has the slot */
    uint32_t held;
} uct_sep_budget_node_slot_t;


/* The file */
typedef struct {
    uint64_t                   magic;
    uint32_t                   num_slots; /* Those that were ever used */
    uint32_t                   reserved;
    uct_sep_budget_node_slot_t slots[UCT_SEP_BUDGET_NODE_MAX];
} uct_sep_budget_node_file_t;


struct uct_sep_budget_node {
    uct_sep_budget_node_file_t *file;
    uct_sep_budget_node_slot_t *slot;
    unsigned long              min;
    ucs_time_t                 next_look; /* For dead workers */
    pid_t                      pid;       /* Children have no slot */
    int                        fd;
    char                       path[PATH_MAX];
};


/* All that one worker knows of the others */
typedef struct {
    unsigned num_workers;
    uint32_t limit; /* The least, or UINT32_MAX */
    long     held;
} uct_sep_budget_node_sum_t;


const char *uct_sep_budget_node_dir = "/dev/shm";


static int uct_sep_budget_node_lock(int fd, int cmd, short type, off_t start,
                                    off_t length)
{
    struct flock lock = {
        .l_type   = type,
        .l_whence = SEEK_SET,
        .l_start  = start,
        .l_len    = length
    };
    int ret;

    do {
        ret = fcntl(fd, cmd, &lock);
    } while ((ret != 0) && (errno == EINTR));
    return ret == 0;
}

static int uct_sep_budget_node_try_lock(int fd, off_t start, off_t length)
{
    return uct_sep_budget_node_lock(fd, F_OFD_SETLK, F_WRLCK, start, length);
}

static void uct_sep_budget_node_unlock(int fd, off_t start, off_t length)
{
    uct_sep_budget_node_lock(fd, F_OFD_SETLK, F_UNLCK, start, length);
}

/* A child that was forked meanwhile has the file open, and would keep locks */
static void uct_sep_budget_node_close(int fd)
{
    uct_sep_budget_node_unlock(fd, 0, 0);
    close(fd);
}

static uct_sep_budget_node_sum_t
uct_sep_budget_node_sum(const uct_sep_budget_node_file_t *file)
{
    uct_sep_budget_node_sum_t sum = {0, UINT32_MAX, 0};
    const uct_sep_budget_node_slot_t *slot, *end;
    uint32_t limit;

    end = file->slots + __atomic_load_n(&file->num_slots, __ATOMIC_SEQ_CST);
    for (slot = file->slots; slot < end; ++slot) {
        limit = __atomic_load_n(&slot->limit, __ATOMIC_SEQ_CST);
        if (limit != 0) {
            ++sum.num_workers;
            sum.limit = ucs_min(sum.limit, limit);
            sum.held += __atomic_load_n(&slot->held, __ATOMIC_SEQ_CST);
        }
    }
    return sum;
}

static void uct_sep_budget_node_clear(uct_sep_budget_node_slot_t *slot)
{
    __atomic_store_n(&slot->limit, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&slot->held, 0, __ATOMIC_SEQ_CST);
}

/* Return what workers have that died */
static void uct_sep_budget_node_bury(uct_sep_budget_node_t *node)
{
    uct_sep_budget_node_slot_t *slot;
    unsigned i;

    for (i = 0; i < node->file->num_slots; ++i) {
        slot = &node->file->slots[i];
        /* A lock of our own would be given to us once more */
        if ((slot == node->slot) || (slot->limit == 0) ||
            !uct_sep_budget_node_try_lock(node->fd, UCT_SEP_BUDGET_NODE_SLOT(i),
                                          1)) {
            continue;
        }

        ucs_debug("%s: a worker with %u queue pairs has died", node->path,
                  slot->held);
        uct_sep_budget_node_clear(slot);
        uct_sep_budget_node_unlock(node->fd, UCT_SEP_BUDGET_NODE_SLOT(i), 1);
    }
}

/* With the door locked, remove the file if nobody else has a slot */
static void uct_sep_budget_node_remove(const uct_sep_budget_node_t *node)
{
    struct stat st;

    if (uct_sep_budget_node_try_lock(node->fd, UCT_SEP_BUDGET_NODE_ALL_SLOTS) &&
        (fstat(node->fd, &st) == 0) && (st.st_nlink > 0)) {
        unlink(node->path);
    }
}

/* Open the file, with the door locked */
static ucs_status_t
uct_sep_budget_node_open(const char *name, uct_sep_budget_node_t *node)
{
    struct stat st;

    for (;;) {
        node->fd = open(node->path,
                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (node->fd < 0) {
            ucs_error("%s: can't open %s, the account of UCX_SEP_MAX_QPS_NODE: "
                      "%m", name, node->path);
            return UCS_ERR_IO_ERROR;
        }

        if (!uct_sep_budget_node_lock(node->fd, F_OFD_SETLKW, F_WRLCK,
                                      UCT_SEP_BUDGET_NODE_DOOR, 1) ||
            (fstat(node->fd, &st) != 0)) {
            ucs_error("%s: can't lock %s, the account of UCX_SEP_MAX_QPS_NODE: "
                      "%m", name, node->path);
            goto err_close;
        }

        if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid())) {
            ucs_error("%s: %s, the account of UCX_SEP_MAX_QPS_NODE, is not a "
                      "file of this user: remove it", name, node->path);
            goto err_close;
        }

        if (st.st_nlink > 0) {
            return UCS_OK;
        }

        /* Whoever was the last one has removed it meanwhile */
        uct_sep_budget_node_close(node->fd);
    }

err_close:
    uct_sep_budget_node_close(node->fd);
    return UCS_ERR_IO_ERROR;
}

/* Whatever nobody uses is made afresh; that may be of another version, or what
 * is left of processes that were killed */
static ucs_status_t
uct_sep_budget_node_map(const char *name, uct_sep_budget_node_t *node)
{
    int is_fresh = uct_sep_budget_node_try_lock(node->fd,
                                                UCT_SEP_BUDGET_NODE_ALL_SLOTS);
    struct stat st;
    int ret;

    if (is_fresh) {
        uct_sep_budget_node_unlock(node->fd, UCT_SEP_BUDGET_NODE_ALL_SLOTS);
        ret = ftruncate(node->fd, 0) ? errno :
              posix_fallocate(node->fd, 0, sizeof(*node->file));
        if (ret != 0) {
            ucs_error("%s: no room for %s, the account of "
                      "UCX_SEP_MAX_QPS_NODE: %s", name, node->path,
                      strerror(ret));
            return UCS_ERR_IO_ERROR;
        }
    } else if ((fstat(node->fd, &st) != 0) ||
               (st.st_size != sizeof(*node->file))) {
        goto err_foreign;
    }

    node->file = mmap(NULL, sizeof(*node->file), PROT_READ | PROT_WRITE,
                      MAP_SHARED, node->fd, 0);
    if (node->file == MAP_FAILED) {
        ucs_error("%s: can't map %s, the account of UCX_SEP_MAX_QPS_NODE: %m",
                  name, node->path);
        return UCS_ERR_IO_ERROR;
    }

    if (is_fresh) {
        node->file->magic = UCT_SEP_BUDGET_NODE_MAGIC;
    } else if ((node->file->magic != UCT_SEP_BUDGET_NODE_MAGIC) ||
               (node->file->num_slots > UCT_SEP_BUDGET_NODE_MAX)) {
        munmap(node->file, sizeof(*node->file));
        goto err_foreign;
    }
    return UCS_OK;

err_foreign:
    ucs_error("%s: %s is in use, and is no account of UCX_SEP_MAX_QPS_NODE as "
              "this version of sep_mlx5 has it: use one version only, or end "
              "the processes that have it open", name, node->path);
    return UCS_ERR_IO_ERROR;
}

static ucs_status_t
uct_sep_budget_node_take_slot(const char *name, uct_sep_budget_node_t *node)
{
    unsigned i;

    for (i = 0; i < UCT_SEP_BUDGET_NODE_MAX; ++i) {
        if ((node->file->slots[i].limit == 0) &&
            uct_sep_budget_node_try_lock(node->fd, UCT_SEP_BUDGET_NODE_SLOT(i),
                                         1)) {
            node->slot = &node->file->slots[i];
            uct_sep_budget_node_clear(node->slot);
            __atomic_store_n(&node->file->num_slots,
                             ucs_max(node->file->num_slots, i + 1),
                             __ATOMIC_SEQ_CST);
            return UCS_OK;
        }
    }

    ucs_error("%s: %u workers share the adapter with UCX_SEP_MAX_QPS_NODE, "
              "and there can be no more", name, i);
    return UCS_ERR_EXCEEDS_LIMIT;
}

/* Give the slot a limit, with the door locked */
static ucs_status_t
uct_sep_budget_node_enter(const char *name, uct_sep_budget_node_t *node,
                          unsigned long max)
{
    uct_sep_budget_node_sum_t sum = uct_sep_budget_node_sum(node->file);
    uint32_t limit = ucs_min(uct_sep_budget_number(max), UINT32_MAX);
    unsigned num   = sum.num_workers + 1;

    if ((max != UCS_ULUNITS_AUTO) &&
        ((ucs_min(limit, sum.limit) / num) < node->min)) {
        ucs_error("%s: UCX_SEP_MAX_QPS_NODE=%u is too little for %u workers of "
                  "the processes that share the adapter: this one needs %lu "
                  "queue pairs at least", name, ucs_min(limit, sum.limit), num,
                  node->min);
        return UCS_ERR_INVALID_PARAM;
    }

    if ((sum.num_workers > 0) && (limit != sum.limit)) {
        ucs_warn("%s: UCX_SEP_MAX_QPS_NODE=%u here, but %u in another process "
                 "or worker on the adapter: the lesser one holds for all",
                 name, limit, sum.limit);
    }
    __atomic_store_n(&node->slot->limit, limit, __ATOMIC_SEQ_CST);
    return UCS_OK;
}

ucs_status_t
uct_sep_budget_node_join(const char *name, uint64_t guid, unsigned long max,
                         unsigned long min, uct_sep_budget_node_t **node_p)
{
    uct_sep_budget_node_t *node;
    ucs_status_t status;

    node = ucs_calloc(1, sizeof(*node), "sep_budget_node");
    if (node == NULL) {
        ucs_error("%s: no memory for the account of UCX_SEP_MAX_QPS_NODE",
                  name);
        return UCS_ERR_NO_MEMORY;
    }

    node->pid = getpid();
    node->min = min;
    ucs_snprintf_safe(node->path, sizeof(node->path),
                      "%s/sep_mlx5.%u.%016lx.qps", uct_sep_budget_node_dir,
                      geteuid(), (unsigned long)guid);

    status = uct_sep_budget_node_open(name, node);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_sep_budget_node_map(name, node);
    if (status != UCS_OK) {
        goto err_close;
    }

    uct_sep_budget_node_bury(node);
    status = uct_sep_budget_node_take_slot(name, node);
    if (status != UCS_OK) {
        goto err_unmap;
    }

    status = uct_sep_budget_node_enter(name, node, max);
    if (status != UCS_OK) {
        goto err_unmap;
    }

    uct_sep_budget_node_unlock(node->fd, UCT_SEP_BUDGET_NODE_DOOR, 1);
    *node_p = node;
    return UCS_OK;

err_unmap:
    munmap(node->file, sizeof(*node->file));
err_close:
    uct_sep_budget_node_remove(node);
    uct_sep_budget_node_close(node->fd);
err_free:
    ucs_free(node);
    return status;
}

void uct_sep_budget_node_leave(uct_sep_budget_node_t *node)
{
    if (node->pid != getpid()) {
        /* A child's file is its parent's, and so are the locks */
        close(node->fd);
    } else {
        uct_sep_budget_node_clear(node->slot);
        if (uct_sep_budget_node_lock(node->fd, F_OFD_SETLKW, F_WRLCK,
                                     UCT_SEP_BUDGET_NODE_DOOR, 1)) {
            uct_sep_budget_node_remove(node);
        }
        uct_sep_budget_node_close(node->fd);
    }
    munmap(node->file, sizeof(*node->file));
    ucs_free(node);
}

long uct_sep_budget_node_allowance(const uct_sep_budget_node_t *node)
{
    uct_sep_budget_node_sum_t sum = uct_sep_budget_node_sum(node->file);
    unsigned num                  = ucs_max(sum.num_workers, 1u);
    long share                    = ucs_max(sum.limit / num, node->min);

    return ucs_max(share, (long)node->slot->held + sum.limit - sum.held);
}

int uct_sep_budget_node_hold(uct_sep_budget_node_t *node, unsigned count,
                             int is_forced)
{
    unsigned held = node->slot->held;
    ucs_time_t now;

    if (node->pid != getpid()) {
        return 1;
    }

    /* First said, then looked: of two who do so at a time one sees the other */
    __atomic_store_n(&node->slot->held, count, __ATOMIC_SEQ_CST);
    if (is_forced || (count <= held) ||
        (count <= uct_sep_budget_node_allowance(node))) {
        return 1;
    }

    now = ucs_get_time();
    if (now >= node->next_look) {
        node->next_look = now + UCT_SEP_BUDGET_NODE_INTERVAL;
        uct_sep_budget_node_bury(node);
        if (count <= uct_sep_budget_node_allowance(node)) {
            return 1;
        }
    }

    __atomic_store_n(&node->slot->held, held, __ATOMIC_SEQ_CST);
    return 0;
}

unsigned uct_sep_budget_node_held(const uct_sep_budget_node_t *node)
{
    return node->slot->held;
}
