/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/store.h>
#include <sim/objs/cm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Slots are used round robin, so that a number that a peer may still hold comes
 * back late; but within a range that grows with the need, so that few pages of
 * the tables are ever touched. */
#define MLX5SIM_REUSE_MIN 1024

/* Since Linux 5.14; not in the headers of older C libraries */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* tables start on their own pages so that an unused table costs none */
#define MLX5SIM_STORE_ALIGN 4096ul

#define MLX5SIM_MAX_LOCKS 3 /* of an object */

typedef struct {
    uint32_t entry_size;
    uint32_t capacity;
    uint32_t first;       /* lowest index handed out */
    uint32_t body;        /* what is zeroed at allocation starts here */
    uint32_t lock[MLX5SIM_MAX_LOCKS]; /* their offsets, 0: none */
} mlx5sim_kind_t;

/* First indices: 0 is no handle at all; QP numbers below 64 are the special
 * ones; memory key 0x100 (index 1) ends a scatter list, and 0x400 says that a
 * list is one of strides. */
static const mlx5sim_kind_t mlx5sim_kinds[MLX5SIM_OBJ_LAST] = {
    [MLX5SIM_OBJ_CTX]  = {sizeof(mlx5sim_ctx_t), MLX5SIM_MAX_CTXS, 1,
                          offsetof(mlx5sim_ctx_t, dev), {0, 0}},
    [MLX5SIM_OBJ_UAR]  = {sizeof(mlx5sim_uar_t), MLX5SIM_MAX_UARS, 1,
                          offsetof(mlx5sim_uar_t, kind), {0, 0}},
    [MLX5SIM_OBJ_PD]   = {sizeof(mlx5sim_pd_t), MLX5SIM_MAX_PDS, 1,
                          offsetof(mlx5sim_pd_t, refs), {0, 0}},
    [MLX5SIM_OBJ_DM]   = {sizeof(mlx5sim_dm_t), MLX5SIM_MAX_DMS, 1,
                          offsetof(mlx5sim_dm_t, dev), {0, 0}},
    [MLX5SIM_OBJ_MR]   = {sizeof(mlx5sim_mr_obj_t), MLX5SIM_MAX_MRS, 16,
                          offsetof(mlx5sim_mr_obj_t, mr), {0, 0}},
    [MLX5SIM_OBJ_CHAN] = {sizeof(mlx5sim_chan_t), MLX5SIM_MAX_CHANS, 1,
                          offsetof(mlx5sim_chan_t, is_async),
                          {offsetof(mlx5sim_chan_t, lock), 0}},
    [MLX5SIM_OBJ_UMEM] = {sizeof(mlx5sim_umem_t), MLX5SIM_MAX_UMEMS, 1,
                          offsetof(mlx5sim_umem_t, addr), {0, 0}},
    [MLX5SIM_OBJ_KLM]  = {sizeof(mlx5sim_klm_t), MLX5SIM_MAX_KLMS, 1,
                          offsetof(mlx5sim_klm_t, key), {0, 0}},
    [MLX5SIM_OBJ_GENERAL] = {sizeof(mlx5sim_general_t), MLX5SIM_MAX_GENERALS,
                             1, offsetof(mlx5sim_general_t, type), {0, 0}},
    [MLX5SIM_OBJ_PP]   = {sizeof(mlx5sim_pp_t), MLX5SIM_MAX_PPS, 1,
                          offsetof(mlx5sim_pp_t, dev), {0, 0}},
    [MLX5SIM_OBJ_PSV]  = {sizeof(mlx5sim_psv_t), MLX5SIM_MAX_PSVS, 1,
                          offsetof(mlx5sim_psv_t, pdn), {0, 0}},
    [MLX5SIM_OBJ_XRCD] = {sizeof(mlx5sim_xrcd_t), MLX5SIM_MAX_XRCDS, 1,
                          offsetof(mlx5sim_xrcd_t, dev), {0, 0}},
    [MLX5SIM_OBJ_CQ]   = {sizeof(mlx5sim_cq_t), MLX5SIM_MAX_CQS, 1,
                          offsetof(mlx5sim_cq_t, buf),
                          {offsetof(mlx5sim_cq_t, lock), 0}},
    [MLX5SIM_OBJ_SRQ]  = {sizeof(mlx5sim_srq_t), MLX5SIM_MAX_SRQS, 1,
                          offsetof(mlx5sim_srq_t, buf),
                          {offsetof(mlx5sim_srq_t, lock), 0}},
    [MLX5SIM_OBJ_QP]   = {sizeof(mlx5sim_qp_obj_t), MLX5SIM_MAX_QPS, 64,
                          offsetof(mlx5sim_qp_obj_t, qp),
                          {offsetof(mlx5sim_qp_obj_t, sq_lock),
                           offsetof(mlx5sim_qp_obj_t, rq_lock),
                           offsetof(mlx5sim_qp_obj_t, rung_lock)}},
    [MLX5SIM_OBJ_AH]   = {sizeof(mlx5sim_ah_t), MLX5SIM_MAX_AHS, 1,
                          sizeof(mlx5sim_ah_t), {0, 0}},
    [MLX5SIM_OBJ_CM_ID] = {sizeof(mlx5sim_cm_id_t), MLX5SIM_MAX_CM_IDS, 1,
                           offsetof(mlx5sim_cm_id_t, chan), {0, 0}},
};

mlx5sim_store_t *mlx5sim_store;
uint32_t mlx5sim_self_tag;

static char mlx5sim_store_dir[256];

static const char *const mlx5sim_kind_names[MLX5SIM_OBJ_LAST] = {
    [MLX5SIM_OBJ_CTX]  = "context",
    [MLX5SIM_OBJ_UAR]  = "UAR",
    [MLX5SIM_OBJ_PD]   = "PD",
    [MLX5SIM_OBJ_DM]   = "DM",
    [MLX5SIM_OBJ_MR]   = "MR",
    [MLX5SIM_OBJ_CHAN] = "channel",
    [MLX5SIM_OBJ_UMEM] = "UMEM",
    [MLX5SIM_OBJ_KLM]  = "KLM",
    [MLX5SIM_OBJ_GENERAL] = "general object",
    [MLX5SIM_OBJ_PP]   = "rate",
    [MLX5SIM_OBJ_PSV]  = "PSV",
    [MLX5SIM_OBJ_XRCD] = "XRCD",
    [MLX5SIM_OBJ_CQ]   = "CQ",
    [MLX5SIM_OBJ_SRQ]  = "SRQ",
    [MLX5SIM_OBJ_QP]   = "QP",
    [MLX5SIM_OBJ_AH]   = "AH",
    [MLX5SIM_OBJ_CM_ID] = "CM id"
};


const char *mlx5sim_obj_kind_name(mlx5sim_obj_kind_t kind)
{
    return mlx5sim_kind_names[kind];
}


static uint64_t mlx5sim_store_align(uint64_t size)
{
    return (size + MLX5SIM_STORE_ALIGN - 1) & ~(MLX5SIM_STORE_ALIGN - 1);
}

static uint64_t mlx5sim_store_size(void)
{
    uint64_t size = mlx5sim_store_align(sizeof(mlx5sim_store_t));
    unsigned kind;

    for (kind = 0; kind < MLX5SIM_OBJ_LAST; ++kind) {
        size += mlx5sim_store_align((uint64_t)mlx5sim_kinds[kind].entry_size *
                                    mlx5sim_kinds[kind].capacity);
    }

    return size;
}

/* As madvise(MADV_POPULATE_WRITE) does it where the kernel has that */
static int mlx5sim_store_allocate(uint64_t offset, uint64_t length)
{
    char path[sizeof(mlx5sim_store_dir) + 16];
    int fd, err;

    snprintf(path, sizeof(path), "%s/store", mlx5sim_store_dir);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }

    err = (fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, length) == 0) ? 0 : errno;
    close(fd);
    if ((err == 0) || (err == EOPNOTSUPP)) {
        return 0;
    }

    errno = err;
    return -1;
}

/* Have the file system provide what will be touched: one that is full would
 * otherwise end whoever touches it with SIGBUS. */
static int mlx5sim_store_reserve(mlx5sim_store_t *store, uint64_t offset,
                                 uint64_t length)
{
    uint64_t start = offset & ~(MLX5SIM_STORE_ALIGN - 1);
    static _Atomic int warned;
    int saved_errno;

    length = mlx5sim_store_align(offset + length) - start;
    /* not through the C library: programs hook its madvise() */
    if (syscall(SYS_madvise, (char*)store + start, length,
                MADV_POPULATE_WRITE) == 0) {
        return 0;
    }

    if (errno == EFAULT) {
        errno = ENOSPC; /* SIGBUS, as madvise(2) says */
    } else if ((errno == EINVAL) &&
               (mlx5sim_store_allocate(start, length) == 0)) {
        return 0;
    }

    saved_errno = errno;
    if (!atomic_exchange(&warned, 1)) {
        fprintf(stderr, "mlx5sim: %s has no room for the device's objects: %s; "
                "make room in its file system, or set MLX5SIM_DIR to another "
                "one\n", mlx5sim_store_dir, strerror(saved_errno));
    }
    errno = saved_errno;
    return -1;
}

static int mlx5sim_store_init(mlx5sim_store_t *store)
{
    uint64_t offset = mlx5sim_store_align(sizeof(*store));
    const mlx5sim_kind_t *desc;
    mlx5sim_table_t *table;
    unsigned i;

    for (i = 0; i < MLX5SIM_OBJ_LAST; ++i) {
        desc              = &mlx5sim_kinds[i];
        table             = &store->tables[i];
        table->offset     = offset;
        table->entry_size = desc->entry_size;
        table->capacity   = desc->capacity;
        table->cursor     = desc->first;
        table->high       = desc->first;
        if (mlx5sim_store_reserve(store, offset, (uint64_t)desc->entry_size *
                                                 desc->first) != 0) {
            return -1;
        }

        offset += mlx5sim_store_align((uint64_t)desc->entry_size *
                                      desc->capacity);
    }

    for (i = 0; i < MLX5SIM_ATOMIC_LOCKS; ++i) {
        mlx5sim_lock_init(&store->atomic_locks[i]);
    }
    mlx5sim_lock_init(&store->limit_lock);
    mlx5sim_lock_init(&store->reap_lock);
    mlx5sim_lock_init(&store->cm_lock);

    store->version    = MLX5SIM_STORE_VERSION;
    store->size_check = sizeof(mlx5sim_qp_obj_t);
    store->total_size = offset;
    atomic_thread_fence(memory_order_release);
    store->magic      = MLX5SIM_STORE_MAGIC;
    return 0;
}

/* Give the file its size; the kernel would send a signal if it is not
 * allowed. */
static int mlx5sim_store_resize(int fd, uint64_t size)
{
    struct rlimit limit;
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return -1;
    }

    if ((uint64_t)st.st_size == size) {
        return 0;
    }

    if ((getrlimit(RLIMIT_FSIZE, &limit) == 0) && (limit.rlim_cur < size)) {
        fprintf(stderr, "mlx5sim: this process may not make files of %lu MB, "
                "which the object store is, most of it a hole: raise "
                "'ulimit -f'\n", (unsigned long)(size >> 20) + 1);
        errno = EFBIG;
        return -1;
    }

    return ftruncate(fd, size);
}

int mlx5sim_store_open(const char *dir)
{
    uint64_t size = mlx5sim_store_size();
    mlx5sim_store_t *store;
    char path[sizeof(mlx5sim_store_dir) + 16];
    int fd, err;

    if (mlx5sim_store != NULL) {
        return 0;
    }

    if (strlen(dir) >= sizeof(mlx5sim_store_dir)) {
        errno = ENAMETOOLONG;
        goto err;
    }

    strcpy(mlx5sim_store_dir, dir);
    snprintf(path, sizeof(path), "%s/store", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        goto err;
    }

    /* the first one initialises, the others wait for it */
    if ((flock(fd, LOCK_EX) != 0) || (mlx5sim_store_resize(fd, size) != 0)) {
        goto err_close;
    }

    store = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (store == MAP_FAILED) {
        goto err_close;
    }

    /* most of 100 MB of address space is never touched: keep it out of core
     * dumps and free of transparent huge pages */
    (void)madvise(store, size, MADV_DONTDUMP);
    if ((mlx5sim_store_reserve(store, 0, sizeof(*store)) != 0) ||
        ((store->magic == 0) && (mlx5sim_store_init(store) != 0))) {
        err = errno;
        munmap(store, size);
        errno = err;
        goto err_close;
    }

    if ((store->magic != MLX5SIM_STORE_MAGIC) ||
               (store->version != MLX5SIM_STORE_VERSION) ||
               (store->size_check != sizeof(mlx5sim_qp_obj_t))) {
        fprintf(stderr, "mlx5sim: %s was made by another build of the software "
                "device; end its users and remove %s\n", path, dir);
        munmap(store, size);
        close(fd);
        errno = EPROTO;
        return -1;
    }

    /* the mapping keeps the open file, and with it the lock, alive */
    (void)flock(fd, LOCK_UN);
    close(fd);
    mlx5sim_store = store;
    return 0;

err_close:
    err   = errno;
    close(fd);
    errno = err;
err:
    err   = errno;
    fprintf(stderr, "mlx5sim: cannot open the object store in %s: %s; check "
            "MLX5SIM_DIR\n", dir, strerror(errno));
    errno = err;
    return -1;
}

void *mlx5sim_obj_at(mlx5sim_obj_kind_t kind, uint32_t index)
{
    return (char*)mlx5sim_store + mlx5sim_store->tables[kind].offset +
           (uint64_t)index * mlx5sim_kinds[kind].entry_size;
}

void *mlx5sim_obj_find(mlx5sim_obj_kind_t kind, uint32_t index)
{
    return (index < atomic_load(&mlx5sim_store->tables[kind].high)) ?
           mlx5sim_obj_at(kind, index) : NULL;
}

uint32_t mlx5sim_obj_index(mlx5sim_obj_kind_t kind, const void *obj)
{
    return ((const char*)obj - (const char*)mlx5sim_obj_at(kind, 0)) /
           mlx5sim_kinds[kind].entry_size;
}

void *mlx5sim_obj_alloc(mlx5sim_obj_kind_t kind, uint32_t ctx)
{
    const mlx5sim_kind_t *desc = &mlx5sim_kinds[kind];
    mlx5sim_table_t *table     = &mlx5sim_store->tables[kind];
    uint32_t index, free_owner, high, limit, i;
    int error                  = ENOMEM;
    mlx5sim_obj_t *obj;

    limit = (2 * atomic_load(&table->in_use)) + MLX5SIM_REUSE_MIN;
    if (limit > desc->capacity) {
        limit = desc->capacity;
    }

    for (i = desc->first; i < desc->capacity; ++i) {
        /* going round delays the reuse of numbers that peers may still hold */
        index = atomic_fetch_add(&table->cursor, 1);
        if (index >= limit) {
            atomic_store(&table->cursor, desc->first + 1);
            index = desc->first;
        }

        high = atomic_load(&table->high);
        if ((index >= high) &&
            (mlx5sim_store_reserve(mlx5sim_store, table->offset +
                                   (uint64_t)index * desc->entry_size,
                                   desc->entry_size) != 0)) {
            /* no more than there are: one of those may be free */
            error = errno;
            if (limit <= high) {
                break;
            }
            limit = high;
            continue;
        }

        obj = mlx5sim_obj_at(kind, index);
        if (atomic_load(&obj->owner) != 0) {
            continue;
        }

        /* Before the slot is taken: a process killed in between has taken
         * nothing, and mlx5sim_proc_reap() looks at every slot that is
         * taken. */
        while ((high <= index) &&
               !atomic_compare_exchange_weak(&table->high, &high, index + 1)) {
        }

        atomic_fetch_add(&table->in_use, 1);
        free_owner = 0;
        if (!atomic_compare_exchange_strong(&obj->owner, &free_owner,
                                            mlx5sim_self_tag)) {
            atomic_fetch_sub(&table->in_use, 1);
            continue;
        }

        if (kind != MLX5SIM_OBJ_CTX) {
            /* an open device file becomes a context by a command */
            atomic_fetch_add(&mlx5sim_proc_self()->c.created[kind], 1);
        }
        obj->ready        = 0;
        obj->ctx          = ctx;
        obj->user_handle  = 0;
        obj->async_events = 0;
        obj->async_unsure = 0;
        memset(&obj->devx, 0, sizeof(obj->devx));
        ++obj->gen;
        if (!obj->has_locks) {
            /* never again: a peer may still hold or wait for the old lock */
            for (i = 0; (i < MLX5SIM_MAX_LOCKS) && (desc->lock[i] != 0); ++i) {
                mlx5sim_lock_init((void*)((char*)obj + desc->lock[i]));
            }
            obj->has_locks = 1;
        }

        memset((char*)obj + desc->body, 0, desc->entry_size - desc->body);
        return obj;
    }

    errno = error;
    return NULL;
}

void mlx5sim_obj_restart(mlx5sim_obj_kind_t kind)
{
    mlx5sim_table_t *table = &mlx5sim_store->tables[kind];
    uint32_t first         = mlx5sim_kinds[kind].first;
    uint32_t high          = atomic_load(&table->high);
    mlx5sim_obj_t *obj;
    uint32_t index;

    for (index = first; index < high; ++index) {
        obj = mlx5sim_obj_at(kind, index);
        if (atomic_load(&obj->owner) == 0) {
            obj->gen = 0;
        }
    }
    atomic_store(&table->cursor, first);
}

void mlx5sim_obj_free(mlx5sim_obj_kind_t kind, void *ptr)
{
    mlx5sim_obj_t *obj = ptr;

    obj->ready = 0;
    /* whoever closes this context now must not mistake the slot's next use for
     * an object of it */
    obj->ctx   = 0;
    atomic_store(&obj->owner, 0);
    atomic_fetch_sub(&mlx5sim_store->tables[kind].in_use, 1);
}

void *mlx5sim_obj_mine(mlx5sim_obj_kind_t kind, uint32_t index, uint32_t ctx)
{
    mlx5sim_obj_t *obj = mlx5sim_obj_find(kind, index);

    if ((obj != NULL) && (atomic_load(&obj->owner) == mlx5sim_self_tag) &&
        obj->ready && (obj->ctx == ctx)) {
        return obj;
    }

    errno = EINVAL;
    return NULL;
}

mlx5sim_proc_t *mlx5sim_proc_by_tag(uint32_t tag)
{
    mlx5sim_proc_t *proc;

    if (tag == 0) {
        return NULL; /* of a slot that has been given back meanwhile */
    }

    proc = &mlx5sim_store->procs[(tag & 0xff) - 1];
    return (atomic_load(&proc->tag) == tag) ? proc : NULL;
}

mlx5sim_proc_t *mlx5sim_proc_self(void)
{
    return &mlx5sim_store->procs[(mlx5sim_self_tag & 0xff) - 1];
}

uint32_t mlx5sim_qp_num(const mlx5sim_qp_obj_t *qp)
{
    return ((qp->o.gen & 0x7f) << 16) | mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
}

int mlx5sim_qp_is_dead(const mlx5sim_qp_obj_t *qp)
{
    mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, qp->o.ctx);

    return atomic_load_explicit(&ctx->is_dead, memory_order_relaxed) != 0;
}

int mlx5sim_qp_is_cut_off(const mlx5sim_qp_obj_t *qp)
{
    uint32_t down = atomic_load_explicit(&mlx5sim_store->ports_down[qp->dev],
                                         memory_order_relaxed);

    return (down & (1u << qp->qp.port)) || mlx5sim_qp_is_dead(qp);
}

mlx5sim_qp_obj_t *mlx5sim_qp_by_num(uint32_t qpn)
{
    mlx5sim_qp_obj_t *qp = mlx5sim_obj_find(MLX5SIM_OBJ_QP, qpn & 0xffff);

    if ((qpn >> 24) || (qp == NULL) || (atomic_load(&qp->o.owner) == 0) ||
        !qp->o.ready || (mlx5sim_qp_num(qp) != qpn)) {
        return NULL;
    }

    return qp;
}

void mlx5sim_chan_path(const mlx5sim_chan_t *chan, char *buf, size_t size)
{
    snprintf(buf, size, "%s/chan.%u.%u", mlx5sim_store_dir,
             mlx5sim_obj_index(MLX5SIM_OBJ_CHAN, chan), chan->o.gen);
}
