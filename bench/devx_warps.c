/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A GPU's part, done by the processor: threads that stand for warps post to
 * queues that firmware commands have made, as the device code of UCX 1.22 does
 * (src/uct/ib/mlx5/gdaki): room is reserved by an atomic addition, WQEs are
 * written, a ready index puts those who have written in order, and a doorbell
 * has no more than the number of the next WQE. There is one completion for all
 * to look at, the last one.
 *
 * Each message writes its number on its queue to a place of its own. What does
 * not arrive, or out of order, ends the program. Two of its ways give the same
 * each time: warps that run one after the other (-o), and warps that take turns
 * as a seed says (-r), between any two steps of each other.
 */

#include <infiniband/mlx5dv.h>

#include <dlfcn.h>
#include <endian.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARPS_MAX      64
#define BATCH          128     /* WQEs after which a delayed doorbell rings */
#define PATIENCE       120     /* seconds for a completion */
#define COMMAND        272     /* bytes of commands that make or move queues */
#define QPC            192     /* where a QPC and a CQC begin, in bits */
#define CQC            128
#define NONE           UINT64_MAX

/* A queue in the memory that its users and the device share */
typedef struct {
    struct mlx5_cqe64 cqe;
    uint32_t          cq_record[2];
    uint32_t          qp_record[2];
    _Atomic uint64_t  reserved;        /* WQEs that have an owner */
    _Atomic uint64_t  ready;           /* WQEs that are written */
    uint8_t           pad[32];
} channel_t;

typedef struct {
    channel_t              *channel;
    uint8_t                *wqes;
    volatile uint64_t      *reg;
    uint32_t               qpn;
    uint64_t               first;      /* of its places in memory */
    _Atomic uint64_t       seen;       /* places that were found written */
    struct mlx5dv_devx_uar *uar;
    struct mlx5dv_devx_obj *cq;
    struct mlx5dv_devx_obj *qp;
} queue_t;

static struct {
    unsigned sharing, blocks, warps, lanes, messages, depth;
    unsigned is_alone, is_delayed, has_pages, is_serial, has_turns;
    uint64_t seed;
} opt = {.blocks = 2, .warps = 4, .lanes = 8, .messages = 64, .depth = 256};

static const char *sharing_names[] = {"thread", "warp", "block", "all"};
enum { BY_THREAD, BY_WARP, BY_BLOCK, BY_ALL, BY_LAST };

static struct ibv_context *ctx;
static struct ibv_port_attr port;
static union ibv_gid gid;
static uint32_t pdn, mkey, eqn;
static struct mlx5dv_devx_umem *umem;
static uint64_t *from, *to;            /* places: what is sent, what came */
static uint64_t num_queues, per_queue; /* messages */
static queue_t *queues;

/* Whose turn it is */
static struct {
    sem_t            turn[WARPS_MAX];
    unsigned         live[WARPS_MAX];
    unsigned         num;
    uint64_t         chance;
    int            (*step)(void);
    _Atomic uint64_t waits;
} turns;
static __thread unsigned warp_self;


#define CHECK(_cond) \
    do { \
        if (!(_cond)) { \
            fprintf(stderr, "devx_warps: line %d: %s is wrong (%m)\n", \
                    __LINE__, #_cond); \
            exit(1); \
        } \
    } while (0)


static unsigned chance(unsigned limit)
{
    turns.chance = turns.chance * 6364136223846793005ul + 1442695040888963407ul;
    return (turns.chance >> 33) % limit;
}

static void turns_give(void)
{
    sem_post(&turns.turn[turns.live[chance(turns.num)]]);
}

static void turns_take(unsigned warp)
{
    while (sem_wait(&turns.turn[warp]) != 0) {
    }
}

/* Others may come between here, and the device: in stepped execution it does
 * something only then. Not to be counted as work. */
static __attribute__((noinline, noclone)) void turns_point(int is_waiting)
{
    if (is_waiting) {
        atomic_fetch_add_explicit(&turns.waits, 1, memory_order_relaxed);
    }

    if (opt.has_turns) {
        if ((turns.step != NULL) && (is_waiting || (chance(4) == 0))) {
            turns.step();
        }
        turns_give();
        turns_take(warp_self);
    } else if (is_waiting) {
        sched_yield();
    }
}

/* What was written before is there before what is written after, for the device
 * as well */
static inline void gpu_fence(void)
{
#ifdef __x86_64__
    __asm__ volatile("sfence" ::: "memory");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Number of the last WQE that is complete, -1 if there is none. The completion
 * has 16 bits of it; the others are those of a number that is not far ahead. */
static inline uint64_t gpu_completed(const queue_t *queue)
{
    uint16_t counter  = be16toh(*(volatile const uint16_t*)
                                &queue->channel->cqe.wqe_counter);
    uint64_t reserved = atomic_load_explicit(&queue->channel->reserved,
                                             memory_order_acquire);

    return reserved - (uint16_t)(reserved - counter);
}

/* Highest number at which WQEs may begin */
static inline uint64_t gpu_limit(const queue_t *queue, unsigned count)
{
    return gpu_completed(queue) + 1 + opt.depth - count;
}

/* The first of some WQEs, or NONE. Who has taken too many gives them back
 * unless somebody else has come behind; then it has to try on. */
static inline uint64_t gpu_reserve(queue_t *queue, unsigned count)
{
    _Atomic uint64_t *reserved = &queue->channel->reserved;
    uint64_t base, next;

    if (atomic_load_explicit(reserved, memory_order_relaxed) >
        gpu_limit(queue, count)) {
        return NONE;
    }

    base = atomic_fetch_add(reserved, count);
    while (base > gpu_limit(queue, count)) {
        next = base + count;
        if (atomic_compare_exchange_strong(reserved, &next, base)) {
            return NONE;
        }
        turns_point(1);
    }
    return base;
}

/* An 8-byte RDMA write. Twice as the queue goes round there is a completion, so
 * that all know of the room; and where somebody waits for it. */
static inline void gpu_write(queue_t *queue, uint64_t index, int is_last)
{
    uint8_t *wqe   = queue->wqes + (index & (opt.depth - 1)) * MLX5_SEND_WQE_BB;
    uint64_t place = queue->first + index;
    struct mlx5_wqe_raddr_seg raddr = {.raddr = htobe64((uintptr_t)&to[place]),
                                       .rkey  = htobe32(mkey)};
    struct mlx5_wqe_data_seg data   = {.byte_count = htobe32(sizeof(*from)),
                                       .lkey = htobe32(mkey),
                                       .addr = htobe64((uintptr_t)
                                                       &from[place])};
    struct mlx5_wqe_ctrl_seg ctrl   = {
        .opmod_idx_opcode = htobe32(((uint32_t)(uint16_t)index << 8) |
                                    MLX5_OPCODE_RDMA_WRITE),
        .qpn_ds           = htobe32((queue->qpn << 8) | 3),
        .fm_ce_se         = (is_last || !(index & (opt.depth / 2 - 1))) ?
                            MLX5_WQE_CTRL_CQ_UPDATE : 0
    };

    memcpy(wqe, &ctrl, sizeof(ctrl));
    memcpy(wqe + sizeof(ctrl), &raddr, sizeof(raddr));
    memcpy(wqe + sizeof(ctrl) + sizeof(raddr), &data, sizeof(data));
}

/* The store is the last of its function: what is behind one that traps in the
 * software device would be counted twice */
static __attribute__((noinline)) void
gpu_doorbell(volatile uint64_t *reg, uint64_t value)
{
    *reg = value;
}

/* Neither size nor opcode: hardware looks at the numbers of the queue and of
 * the next WQE */
static inline void gpu_ring(const queue_t *queue, uint64_t next)
{
    gpu_fence();
    gpu_doorbell(queue->reg, htobe32((uint32_t)(uint16_t)next << 8) |
                             ((uint64_t)htobe32(queue->qpn << 8) << 32));
}

/* In order of the numbers: each waits for those before it. The first doorbell
 * is early, and may find the record as it was; so there is a second one. */
static inline void
gpu_post(queue_t *queue, uint64_t base, unsigned count, int is_delayed)
{
    _Atomic uint64_t *ready = &queue->channel->ready;
    uint64_t next           = base + count;
    uint64_t expected;

    gpu_fence();
    if (is_delayed && !((base ^ next) & BATCH)) {
        for (expected = base;
             !atomic_compare_exchange_strong(ready, &expected, next);
             expected = base) {
            turns_point(1);
        }
        return;
    }

    while (atomic_load_explicit(ready, memory_order_acquire) != base) {
        turns_point(1);
    }
    gpu_ring(queue, next);
    turns_point(0);
    *(volatile uint32_t*)&queue->channel->qp_record[MLX5_SND_DBR] =
            htobe32((uint16_t)next);
    turns_point(0);
    gpu_ring(queue, next);
    atomic_store_explicit(ready, next, memory_order_release);
}

/* Some lanes that reserve together send a message each.
 * @return number of the first, or NONE: there was no room */
static __attribute__((noinline)) uint64_t
gpu_put(queue_t *queue, unsigned lanes, int is_last)
{
    uint64_t base = gpu_reserve(queue, lanes);
    unsigned lane;

    if (base == NONE) {
        return NONE;
    }

    turns_point(0);
    for (lane = 0; lane < lanes; ++lane) {
        gpu_write(queue, base + lane, is_last);
    }
    turns_point(0);
    gpu_post(queue, base, lanes, opt.is_delayed && !is_last);
    return base;
}

/* Under callgrind all inside is counted but turns_point() */
static __attribute__((noinline)) uint64_t
measure_put(queue_t *queue, unsigned lanes, int is_last)
{
    return gpu_put(queue, lanes, is_last);
}

/* What has a completion is there, and what is there has no gap in front */
static void check_order(queue_t *queue)
{
    volatile uint64_t *place = &to[queue->first];
    uint64_t completed       = gpu_completed(queue);
    uint64_t seen            = atomic_load(&queue->seen);
    uint64_t last;

    CHECK((queue->channel->cqe.op_own >> 4) != MLX5_CQE_REQ_ERR);
    last = seen + 2 * opt.depth;
    last = (last < per_queue) ? last : per_queue;
    while ((last > seen) && (place[last - 1] == 0)) {
        --last;
    }
    last = ((int64_t)(completed + 1 - last) > 0) ? completed + 1 : last;
    for (; seen < last; ++seen) {
        CHECK(place[seen] == seen + 1);
    }
    atomic_store(&queue->seen, seen);
}

static queue_t *queue_of(unsigned warp, unsigned lane)
{
    unsigned index = (opt.sharing == BY_THREAD) ? warp * opt.lanes + lane :
                     (opt.sharing == BY_WARP)   ? warp :
                     (opt.sharing == BY_BLOCK)  ? warp / opt.warps : 0;

    return &queues[index];
}

static void warp_wait(queue_t *queue, uint64_t index)
{
    time_t end = time(NULL) + PATIENCE;

    while ((int64_t)(gpu_completed(queue) - index) < 0) {
        CHECK(time(NULL) < end);
        turns_point(1);
        check_order(queue);
    }
}

static void *warp_run(void *arg)
{
    unsigned warp  = (uintptr_t)arg;
    unsigned group = opt.is_alone ? 1 : opt.lanes;
    time_t end     = time(NULL) + PATIENCE;
    uint64_t last[opt.lanes];
    unsigned message, lane, i;
    queue_t *queue;

    warp_self = warp;
    if (opt.has_turns) {
        turns_take(warp);
    }

    for (message = 1; message <= opt.messages; ++message) {
        for (lane = 0; lane < opt.lanes; lane += group) {
            queue = queue_of(warp, lane);
            while ((last[lane] = measure_put(queue, group,
                                             message == opt.messages)) ==
                   NONE) {
                CHECK(time(NULL) < end);
                turns_point(1);
            }
            check_order(queue);
        }
    }
    for (lane = 0; lane < opt.lanes; lane += group) {
        warp_wait(queue_of(warp, lane), last[lane] + group - 1);
    }

    if (opt.has_turns) {
        for (i = 0; turns.live[i] != warp; ++i) {
        }
        turns.live[i] = turns.live[--turns.num];
        if (turns.num > 0) {
            turns_give();
        }
    }
    return NULL;
}

/* A field of a command, as in mlx5_ifc.h */
static void set(uint8_t *in, unsigned bit, unsigned width, uint64_t value)
{
    for (; width-- > 0; value >>= 1) {
        in[(bit + width) / 8] |= (value & 1) << (7 - (bit + width) % 8);
    }
}

static struct mlx5dv_devx_obj *
queue_create(uint8_t *in, unsigned opcode, uint32_t *number_p)
{
    uint8_t out[16] = {0};
    struct mlx5dv_devx_obj *obj;

    set(in, 0, 16, opcode);
    obj = mlx5dv_devx_obj_create(ctx, in, COMMAND, out, sizeof(out));
    CHECK(obj != NULL);
    *number_p = (out[9] << 16) | (out[10] << 8) | out[11];
    return obj;
}

static void queue_modify(queue_t *queue, uint8_t *in, unsigned opcode)
{
    uint8_t out[16] = {0};

    set(in, 0, 16, opcode);
    set(in, 72, 24, queue->qpn);
    CHECK(mlx5dv_devx_obj_modify(queue->qp, in, COMMAND, out, sizeof(out)) ==
          0);
}

/* RC to itself: one queue pair is both sides */
static void queue_connect(queue_t *queue)
{
    uint8_t init[COMMAND] = {0}, rtr[COMMAND] = {0}, rts[COMMAND] = {0};

    set(init, QPC + 488, 8, 1);                 /* vhca_port_num */
    set(init, QPC + 1169, 1, 1);                /* rwe */
    queue_modify(queue, init, 0x502);

    set(rtr, QPC + 64, 3, IBV_MTU_1024);
    set(rtr, QPC + 67, 5, 30);                  /* log_msg_max */
    set(rtr, QPC + 168, 24, queue->qpn);        /* remote_qpn */
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        memcpy(rtr + QPC / 8 + 40, gid.raw, sizeof(gid.raw));
    } else {
        set(rtr, QPC + 240, 16, port.lid);
    }
    queue_modify(queue, rtr, 0x503);

    set(rts, QPC + 256, 5, 14);                 /* ack_timeout */
    set(rts, QPC + 909, 3, 7);                  /* retry_count */
    set(rts, QPC + 912, 3, 7);                  /* rnr_retry */
    queue_modify(queue, rts, 0x504);
}

static void queue_init(queue_t *queue, uint8_t *mem)
{
    uint64_t index           = queue - queues;
    uint64_t channel         = index * sizeof(channel_t);
    uint64_t wqes            = num_queues * sizeof(channel_t) +
                               index * opt.depth * MLX5_SEND_WQE_BB;
    uint8_t cq_in[COMMAND]   = {0}, qp_in[COMMAND] = {0};
    uint32_t cqn;

    queue->channel = (channel_t*)(mem + channel);
    queue->wqes    = mem + wqes;
    queue->first   = index * per_queue;
    queue->uar     = (opt.has_pages || (index == 0)) ?
                     mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF) :
                     queues->uar;
    CHECK(queue->uar != NULL);
    queue->reg     = queue->uar->reg_addr;
    /* number -1 is complete */
    memset(&queue->channel->cqe, 0xff, sizeof(queue->channel->cqe));

    set(cq_in, CQC + 11, 1, 1);                 /* cc: one place */
    set(cq_in, CQC + 14, 1, 1);                 /* oi: nobody counts them */
    set(cq_in, CQC + 32, 32, umem->umem_id);    /* dbr_umem_id */
    set(cq_in, CQC + 104, 24, queue->uar->page_id);
    set(cq_in, CQC + 184, 8, eqn);
    set(cq_in, CQC + 448, 64, channel + offsetof(channel_t, cq_record));
    set(cq_in, 640, 64, channel);               /* cq_umem_offset */
    set(cq_in, 704, 32, umem->umem_id);
    queue->cq = queue_create(cq_in, 0x400, &cqn);

    set(qp_in, QPC + 40, 24, pdn);
    set(qp_in, QPC + 81, 4, __builtin_ctz(opt.depth));  /* log_sq_size */
    set(qp_in, QPC + 104, 24, queue->uar->page_id);
    set(qp_in, QPC + 1000, 24, cqn);            /* cqn_snd, cqn_rcv */
    set(qp_in, QPC + 1256, 24, cqn);
    set(qp_in, QPC + 1280, 64, channel + offsetof(channel_t, qp_record));
    set(qp_in, QPC + 1381, 3, 3);               /* rq_type: none */
    set(qp_in, QPC + 1824, 32, umem->umem_id);  /* dbr_umem_id */
    set(qp_in, 2048, 64, wqes);                 /* wq_umem_offset */
    set(qp_in, 2112, 32, umem->umem_id);
    queue->qp = queue_create(qp_in, 0x500, &queue->qpn);
    queue_connect(queue);
}

static void queue_cleanup(queue_t *queue)
{
    uint64_t i;

    check_order(queue);
    CHECK(atomic_load(&queue->channel->ready) == per_queue);
    CHECK(atomic_load(&queue->channel->reserved) == per_queue);
    for (i = 0; i < per_queue; ++i) {
        CHECK(to[queue->first + i] == i + 1);
    }
    CHECK(mlx5dv_devx_obj_destroy(queue->qp) == 0);
    CHECK(mlx5dv_devx_obj_destroy(queue->cq) == 0);
    if (opt.has_pages || (queue == queues)) {
        mlx5dv_devx_free_uar(queue->uar);
    }
}

static void run_warps(void)
{
    unsigned num = opt.blocks * opt.warps;
    pthread_t threads[WARPS_MAX];
    unsigned i;

    for (i = 0; i < num; ++i) {
        CHECK(sem_init(&turns.turn[i], 0, 0) == 0);
        turns.live[i] = i;
    }
    turns.num    = num;
    turns.chance = opt.seed;
    for (i = 0; i < num; ++i) {
        CHECK(pthread_create(&threads[i], NULL, warp_run,
                             (void*)(uintptr_t)i) == 0);
        if (opt.is_serial) {
            pthread_join(threads[i], NULL);
        }
    }
    if (opt.has_turns) {
        turns_give();
    }
    for (i = 0; (i < num) && !opt.is_serial; ++i) {
        pthread_join(threads[i], NULL);
    }
}

static void open_device(void)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_device **list        = ibv_get_device_list(NULL);

    CHECK((list != NULL) && (list[0] != NULL));
    ctx = mlx5dv_open_device(list[0], &attr);
    CHECK(ctx != NULL);
    ibv_free_device_list(list);
    CHECK(ibv_query_port(ctx, 1, &port) == 0);
    CHECK(ibv_query_gid(ctx, 1, 0, &gid) == 0);
    CHECK(mlx5dv_devx_query_eqn(ctx, 0, &eqn) == 0);
}

static void *allocate(size_t size)
{
    void *mem = aligned_alloc(4096, (size + 4095) & ~4095ul);

    CHECK(mem != NULL);
    return memset(mem, 0, size);
}

static void run(void)
{
    uint64_t total = (uint64_t)opt.blocks * opt.warps * opt.lanes *
                     opt.messages;
    uint64_t sizes[]      = {opt.blocks * opt.warps * opt.lanes,
                             opt.blocks * opt.warps, opt.blocks, 1};
    struct mlx5dv_pd dvpd = {0};
    struct mlx5dv_obj obj = {0};
    struct ibv_mr *mr;
    struct ibv_pd *pd;
    size_t size;
    uint8_t *mem;
    uint64_t i;

    num_queues = sizes[opt.sharing];
    per_queue  = total / num_queues;
    size       = num_queues * (sizeof(channel_t) +
                               opt.depth * MLX5_SEND_WQE_BB);

    open_device();
    pd         = ibv_alloc_pd(ctx);
    CHECK(pd != NULL);
    obj.pd.in  = pd;
    obj.pd.out = &dvpd;
    CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD) == 0);
    pdn  = dvpd.pdn;
    from = allocate(2 * total * sizeof(*from));
    to   = from + total;
    mr   = ibv_reg_mr(pd, from, 2 * total * sizeof(*from),
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(mr != NULL);
    mkey = mr->lkey;
    mem  = allocate(size);
    umem = mlx5dv_devx_umem_reg(ctx, mem, size, IBV_ACCESS_LOCAL_WRITE);
    CHECK(umem != NULL);
    for (i = 0; i < total; ++i) {
        from[i] = i % per_queue + 1;
    }

    queues = calloc(num_queues, sizeof(*queues));
    CHECK(queues != NULL);
    for (i = 0; i < num_queues; ++i) {
        queue_init(&queues[i], mem);
    }

    run_warps();

    for (i = num_queues; i-- > 0;) {
        queue_cleanup(&queues[i]);
    }
    printf("sharing\tmessages\tqps\tcqs\tuars\tbytes\twaits\n"
           "%s\t%lu\t%lu\t%lu\t%lu\t%zu\t%lu\n", sharing_names[opt.sharing],
           total, num_queues, num_queues, opt.has_pages ? num_queues : 1, size,
           atomic_load(&turns.waits));
    free(queues);
    CHECK(mlx5dv_devx_umem_dereg(umem) == 0);
    CHECK(ibv_dereg_mr(mr) == 0);
    CHECK(ibv_dealloc_pd(pd) == 0);
    CHECK(ibv_close_device(ctx) == 0);
    free(mem);
    free(from);
}

static void usage(void)
{
    fprintf(stderr,
            "usage: devx_warps [-s thread|warp|block|all] [options]\n"
            "  -s  who has a queue\n"
            "  -a  lanes reserve alone, not the warp for all of them at once\n"
            "  -y  ring after %u WQEs and at the end, not with each put\n"
            "  -p  a page of doorbells for each queue, not one for all\n"
            "  -b  blocks (%u)\n"
            "  -w  warps of each (%u)\n"
            "  -l  lanes of each (%u)\n"
            "  -n  messages of each lane (%u)\n"
            "  -d  WQEs of a queue (%u)\n"
            "  -o  warps run one after the other\n"
            "  -r  warps take turns, as this seed says\n",
            BATCH, opt.blocks, opt.warps, opt.lanes, opt.messages, opt.depth);
    exit(2);
}

int main(int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, "s:b:w:l:n:d:r:aypo")) != -1) {
        switch (c) {
        case 's':
            for (opt.sharing = 0; (opt.sharing < BY_LAST) &&
                 strcmp(optarg, sharing_names[opt.sharing]);
                 ++opt.sharing) {
            }
            break;
        case 'b':
            opt.blocks = atoi(optarg);
            break;
        case 'w':
            opt.warps = atoi(optarg);
            break;
        case 'l':
            opt.lanes = atoi(optarg);
            break;
        case 'n':
            opt.messages = atoi(optarg);
            break;
        case 'd':
            opt.depth = atoi(optarg);
            break;
        case 'r':
            opt.has_turns = 1;
            opt.seed      = strtoul(optarg, NULL, 0);
            break;
        case 'a':
            opt.is_alone = 1;
            break;
        case 'y':
            opt.is_delayed = 1;
            break;
        case 'p':
            opt.has_pages = 1;
            break;
        case 'o':
            opt.is_serial = 1;
            break;
        default:
            usage();
        }
    }

    if ((opt.sharing == BY_LAST) || (opt.blocks * opt.warps == 0) ||
        (opt.blocks * opt.warps > WARPS_MAX) || (opt.lanes == 0) ||
        (opt.messages == 0) || (opt.depth & (opt.depth - 1)) ||
        (opt.depth < 2 * opt.lanes) || (opt.depth > 32768) ||
        (opt.is_delayed && (opt.depth < 2 * BATCH)) ||
        (opt.is_serial && opt.has_turns)) {
        usage();
    }

    opt.is_alone = opt.is_alone || (opt.sharing == BY_THREAD);
    if (opt.has_turns) {
        *(void**)&turns.step = dlsym(RTLD_DEFAULT, "mlx5sim_step");
    }
    run();
    return 0;
}
