/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_OBJ_H_
#define MLX5SIM_OBJ_H_

#include <sim/engine/engine.h>
#include <sim/engine/packet.h>
#include <sim/engine/zip.h>
#include <sim/objs/lock.h>

#include <stdint.h>
#include <stdatomic.h>
#include <sys/types.h>

/*
 * Contents of the store: processes, and objects of fixed size without pointers.
 * Addresses in them are in the memory of the process that owns the object.
 */

enum {
    MLX5SIM_MAX_PROCS   = 255,
    MLX5SIM_MAX_DEVICES = 16,   /* largest MLX5SIM_DEVICES */
    MLX5SIM_MAX_CTXS    = 8192,
    MLX5SIM_MAX_UARS    = 1 << 17, /* 8192 of each of 16 devices */
    MLX5SIM_MAX_PDS     = 16384,
    MLX5SIM_MAX_MRS     = 1 << 17,
    MLX5SIM_MAX_DMS     = 1024,
    MLX5SIM_MAX_XRCDS   = 4096,
    MLX5SIM_MAX_CHANS   = 16384,
    MLX5SIM_MAX_UMEMS   = 1 << 16,
    MLX5SIM_MAX_KLMS    = 1 << 17,
    MLX5SIM_MAX_GENERALS = 32767,
    MLX5SIM_MAX_PPS     = 8192,
    MLX5SIM_MAX_PSVS    = 1 << 14,
    MLX5SIM_MAX_CQS     = 1 << 16,
    MLX5SIM_MAX_SRQS    = 1 << 14,
    MLX5SIM_MAX_QPS     = 1 << 16,
    MLX5SIM_MAX_AHS     = 1 << 16,
    MLX5SIM_MAX_CM_IDS  = 1 << 14,
    MLX5SIM_ATOMIC_LOCKS = 64,
    MLX5SIM_MAX_EXITED  = 1024 /* 2^n */
};

/** An event is first written and then counted; a process killed in between
 *  leaves the count unsure. */
enum {
    MLX5SIM_UNSURE_NOW  = 1,  /* being written */
    MLX5SIM_UNSURE_EVER = 2   /* a writer died under way */
};

/** Of objects that a firmware command has made. */
typedef struct mlx5sim_obj_devx {
    uint32_t         is_made;     /* it has */
    uint32_t         umems[2];    /* memory that it is in: index + 1, 0: none */
    uint32_t         event_chan;  /* for asynchronous events: index + 1 */
    uint32_t         event_mask;  /* bit of each mlx5 event that goes there */
    uint64_t         event_cookie;
} mlx5sim_obj_devx_t;

/** Head of every object. */
typedef struct mlx5sim_obj {
    _Atomic uint32_t owner;   /* mlx5sim_proc tag, 0: free */
    _Atomic uint32_t ready;   /* fully built: others may use it */
    _Atomic uint32_t ctx;     /* index of the context it is of, 0: none */
    uint32_t         gen;     /* bumped at each use of the slot */
    uint32_t         has_locks; /* locks of the slot are initialised */
    uint32_t         async_events; /* written to the async FIFO for it */
    uint32_t         async_unsure; /* bits of MLX5SIM_UNSURE_* */
    uint64_t         user_handle; /* what libibverbs wants back in events */
    mlx5sim_obj_devx_t devx;
} mlx5sim_obj_t;


/** Object kinds: index of mlx5sim_store_t.tables. */
typedef enum {
    MLX5SIM_OBJ_CTX,
    MLX5SIM_OBJ_UAR,
    MLX5SIM_OBJ_PD,
    MLX5SIM_OBJ_DM,
    MLX5SIM_OBJ_MR,
    MLX5SIM_OBJ_CHAN,
    MLX5SIM_OBJ_UMEM,
    MLX5SIM_OBJ_KLM,
    MLX5SIM_OBJ_GENERAL,
    MLX5SIM_OBJ_PP,
    MLX5SIM_OBJ_PSV,
    MLX5SIM_OBJ_XRCD,
    MLX5SIM_OBJ_CQ,
    MLX5SIM_OBJ_SRQ,
    MLX5SIM_OBJ_QP,
    MLX5SIM_OBJ_AH,
    MLX5SIM_OBJ_CM_ID,
    MLX5SIM_OBJ_LAST
} mlx5sim_obj_kind_t;


/** What a UAR page is for. */
typedef enum {
    MLX5SIM_UAR_BF,      /* UAR object with BlueFlame registers */
    MLX5SIM_UAR_NC,      /* UAR object for plain doorbells only */
    MLX5SIM_UAR_STATIC,  /* legacy: comes with the context */
    MLX5SIM_UAR_DYN,     /* legacy: allocated by mmap() for thread domains */
    MLX5SIM_UAR_LAST
} mlx5sim_uar_kind_t;


/** Which uUAR a QP has. The kernel's latency classes are those of the legacy
 *  regime: drivers/infiniband/hw/mlx5/qp.c, alloc_bfreg(). */
typedef enum {
    MLX5SIM_UUAR_NONE,
    MLX5SIM_UUAR_HIGH,    /* doorbells without BlueFlame, shared */
    MLX5SIM_UUAR_MEDIUM,  /* BlueFlame, shared: under a lock */
    MLX5SIM_UUAR_LOW,     /* BlueFlame, of this QP alone */
    MLX5SIM_UUAR_DYNAMIC, /* on a page that the application asked for */
    MLX5SIM_UUAR_LAST
} mlx5sim_uuar_class_t;


/** What a process did; counters only grow. */
typedef struct mlx5sim_counters {
    _Atomic uint64_t created[MLX5SIM_OBJ_LAST]; /* objects of each kind */
    _Atomic uint64_t uars[MLX5SIM_UAR_LAST]; /* UARs created of each kind */
    _Atomic uint64_t doorbells;   /* 8-byte doorbells */
    _Atomic uint64_t blueflames;  /* BlueFlame copies */
    _Atomic uint64_t cq_arms;
    _Atomic uint64_t traps;       /* signals taken for all of them */
    _Atomic uint64_t wqes;        /* send WQEs executed */
    _Atomic uint64_t cqes;        /* completions in this process' CQs */
    _Atomic uint64_t cqes_compressed; /* of them: in blocks */
    _Atomic uint64_t bytes;       /* payload moved by its WQEs */
    _Atomic uint64_t rnr_waits;
    _Atomic uint64_t dma_reads;   /* pieces of its memory read: objs/pcie.h */
    _Atomic uint64_t dma_writes;  /* pieces of its memory written */
    _Atomic uint64_t mmio_writes; /* stores of up to 64 bytes to UAR pages */
    _Atomic uint64_t violations;  /* strict checks that failed */
} mlx5sim_counters_t;


/** Memory of a process into which its peers write without a call:
 *  objs/shared.h. */
typedef struct mlx5sim_shared {
    uint64_t addr;        /* whole pages of the process */
    uint64_t length;      /* 0: there is none */
} mlx5sim_shared_t;

/** The file that they are in. */
typedef struct mlx5sim_shared_file {
    uint64_t dev, inode;
    int32_t  fd;          /* descriptor of the process, if it has not closed
                             it */
} mlx5sim_shared_file_t;


/** A process that opened a device. A slot is taken with the pid and valid once
 *  it has a tag. */
typedef struct mlx5sim_proc {
    _Atomic uint32_t tag;       /* generation << 8 | slot + 1 */
    uint32_t         gen;
    _Atomic pid_t    pid;       /* 0: free */
    _Atomic uint32_t kick;      /* futex word its helper thread sleeps on */
    uint64_t         start_time; /* /proc/PID/stat field 22, clock ticks */
    mlx5sim_lock_t   life;      /* held by its helper thread all the time */
    char             name[32];
    mlx5sim_shared_file_t shared;
    mlx5sim_counters_t c;
} mlx5sim_proc_t;


/** Device context (one open of uverbsN). */
typedef struct mlx5sim_ctx {
    mlx5sim_obj_t o;
    uint32_t      dev;            /* device index */
    uint64_t      inode;          /* number of the file that its descriptors
                                     are open on */
    int32_t       opened_fd;      /* descriptor that is no copy, -1: closed */
    _Atomic uint32_t descriptors; /* the opened one, and imported copies */
    uint32_t      cqe_version;
    uint32_t      async_fifo;     /* channel index of the async event FIFO, 0:
                                     none, or closed */
    uint32_t      is_legacy;      /* static UARs, as before the UAR object */
    uint32_t      static_uuars;   /* legacy: number of static uUARs */
    uint32_t      low_lat_uuars;  /* legacy: the last, for one QP each */
    int32_t       fault;          /* 1: to be opened; else what opening says */
    uint32_t      is_open;        /* GET_CONTEXT has succeeded */
    uint32_t      has_devx;
    _Atomic uint32_t lag_next;    /* counts QPs, for their ports of a LAG */
    _Atomic uint32_t is_dead;     /* device has failed since it was opened */
} mlx5sim_ctx_t;


typedef struct mlx5sim_uar {
    mlx5sim_obj_t    o;
    uint32_t         kind;        /* mlx5sim_uar_kind_t */
    uint32_t         dev;         /* device index */
    uint32_t         page;        /* legacy: number in the context, per kind */
    _Atomic uint64_t doorbells;
    _Atomic uint64_t blueflames;
} mlx5sim_uar_t;


typedef struct mlx5sim_pd {
    mlx5sim_obj_t    o;
    _Atomic uint32_t refs;
} mlx5sim_pd_t;


/** Places of device memory in the program that are remembered: it has one, and
 *  one for each import. */
#define MLX5SIM_DM_PLACES 8

/** Memory of a device. It is in a shared memory segment of the process that has
 *  taken it. */
typedef struct mlx5sim_dm {
    mlx5sim_obj_t    o;
    uint32_t         dev;         /* device index */
    uint32_t         page;        /* the first of the device's */
    uint32_t         pages;       /* how many */
    int32_t          segment;     /* shmat() */
    uint64_t         addr;        /* where the device sees it */
    _Atomic uint64_t mapped[MLX5SIM_DM_PLACES]; /* where the application has
                                                 * seen it lately, 0: nowhere */
    _Atomic uint32_t next;        /* of these, the next one */
    uint64_t         length;      /* as the application has asked for */
    _Atomic uint32_t refs;        /* memory regions */
} mlx5sim_dm_t;


/** Of a memory window: what it is bound to. */
typedef struct mlx5sim_window {
    uint32_t type;                /* enum ibv_mw_type; 0: it is none */
    uint32_t is_bound;
    uint32_t qpn;                 /* who may use it, 0: all */
    uint32_t base;                /* key of the region */
    uint64_t address;             /* where it begins, by that key */
} mlx5sim_window_t;


/** Of an indirect key whose list leads to pieces of memory apart from each
 *  other. Whether it leads there now, window.is_bound says, and window.qpn for
 *  whom. */
typedef struct mlx5sim_layout {
    uint32_t room;                /* units of a list that it can have; 0: it is
                                   * no such key */
    uint32_t count;               /* entries of the list that it has */
    uint64_t total;               /* bytes of the list */
    uint64_t turn;                /* bytes until its entries come again; 0: they
                                   * do not */
    uint32_t is_umr;              /* work requests change it (PRM: umr_en) */
    uint32_t is_rinval;           /* peers may free it (PRM: en_rinval) */
} mlx5sim_layout_t;


/** Of such a key, its signatures. */
typedef struct mlx5sim_mr_sig {
    uint32_t      room;           /* units of BSFs that it can have (PRM:
                                   * bsf_octword_size) */
    uint32_t      is_on;
    uint32_t      has_bsf;        /* a work request has said which, */
    mlx5sim_sig_t sig;            /* these */
    uint32_t      has_error;      /* a wrong one was told */
    uint64_t      held_end;       /* where the next byte would go on with: */
    uint8_t       held[MLX5SIM_SIG_MAX_SIZE]; /* of the one that is coming */
} mlx5sim_mr_sig_t;


/** A signature that stays (PRM: Persistent Signature Value). Blocks begin anew,
 *  so it has what they begin with. */
typedef struct mlx5sim_psv {
    mlx5sim_obj_t    o;
    uint32_t         pdn;
    _Atomic uint64_t value;       /* as SET_PSV has it */
} mlx5sim_psv_t;


/** What a command has asked for when it made an indirect key: fields of mkc. */
typedef struct mlx5sim_mkc {
    uint64_t start, len;
    uint32_t qpn;
    uint32_t list_room;           /* translations_octword_size */
    uint8_t  mode, log_entity, free;
    uint8_t  access;              /* IBV_ACCESS_* */
} mlx5sim_mkc_t;

/** A memory region, an indirect key or a memory window. */
typedef struct mlx5sim_mr_obj {
    mlx5sim_obj_t o;
    mlx5sim_mr_t  mr;             /* of a window or a layout without va */
    mlx5sim_window_t window;
    mlx5sim_layout_t layout;
    mlx5sim_mr_sig_t sig;
    uint32_t      pd;             /* index */
    uint32_t      dm;             /* device memory: index, 0: none */
    uint32_t      is_dmabuf;      /* va is a mapping of the device's own */
    mlx5sim_shared_t shared;      /* whole pages of a region that is neither */
    uint32_t      log_pages;      /* how many its key can take, 2^n */
    uint32_t      list;           /* indirect: first key that it leads to, index
                                   * of a KLM; 0: none. A layout has all that
                                   * it may ever need */
    mlx5sim_mkc_t mkc;            /* indirect key */
} mlx5sim_mr_obj_t;


/** Channel of completions, of asynchronous events or of the connection manager:
 *  a FIFO named by the slot. */
typedef struct mlx5sim_chan {
    mlx5sim_obj_t    o;
    mlx5sim_lock_t   lock;        /* writers against the filter at destroy */
    uint32_t         is_async;
    uint32_t         is_cm;       /* /dev/infiniband/rdma_cm, opened */
    uint64_t         inode;       /* of that: number of the FIFO */
    _Atomic uint32_t refs;        /* CQs that report here */
} mlx5sim_chan_t;


/** Memory registered for the queues of objects made by firmware commands. */
typedef struct mlx5sim_umem {
    mlx5sim_obj_t    o;
    uint64_t         addr;
    uint64_t         length;
    uint32_t         access;      /* IBV_ACCESS_* */
    uint32_t         is_dmabuf;   /* addr is a mapping of the device's own */
    _Atomic uint32_t refs;
} mlx5sim_umem_t;


/** One of the keys that an indirect key leads to, and the memory to which it
 *  leads by that: of entries in a row; an entry of a layout. */
typedef struct mlx5sim_klm {
    mlx5sim_obj_t o;
    uint32_t      key;
    uint32_t      is_layout;
    uint64_t      va;             /* in the owner's address space; layout:
                                   * address by the key */
    uint64_t      length;         /* bytes */
    uint32_t      stride;         /* layout: how much further each turn is */
    uint32_t      next;           /* index, 0: the last */
} mlx5sim_klm_t;


/** The first of the numbers of queue pairs that are reserved in blocks: from
 *  here on, mlx5sim_qp_num() has none. The last one of all is that of multicast
 *  (IBTA volume 1), so there are fewer objects than blocks. */
#define MLX5SIM_QPN_RESERVED (1u << 23)

/** An element of the send scheduler. */
typedef struct mlx5sim_sched {
    uint32_t element;             /* node or leaf, as commands have it */
    uint32_t parent;              /* node: index of the object, 0: it is a
                                     root */
    uint32_t share;               /* of the parent's, relative to others */
    uint32_t max;                 /* Mbit/s, 0: no limit */
} mlx5sim_sched_t;

/** A general object of the firmware (PRM: CREATE_GENERAL_OBJECT). */
typedef struct mlx5sim_general {
    mlx5sim_obj_t    o;
    uint32_t         type;        /* MLX5SIM_FW_TYPE_* */
    mlx5sim_sched_t  sched;
    _Atomic uint32_t refs;        /* elements below, and queue pairs */
} mlx5sim_general_t;


/** Somebody's use of a rate for packet pacing. */
typedef struct mlx5sim_pp {
    mlx5sim_obj_t o;
    uint32_t      dev;            /* device index */
    uint32_t      index;          /* of the entry in the device's table */
    uint32_t      is_dedicated;   /* nobody else uses the entry */
    uint8_t       limit[48];      /* PRM: set_pp_rate_limit_context */
} mlx5sim_pp_t;


/** Name of an XRC domain: device and inode of the file that stands for it; else
 *  0 and a number that no other has. */
typedef struct mlx5sim_xrcd_id {
    uint64_t st_dev;
    uint64_t st_ino;
} mlx5sim_xrcd_id_t;

/** An XRC domain that is open. */
typedef struct mlx5sim_xrcd {
    mlx5sim_obj_t     o;
    uint32_t          dev;        /* device index */
    mlx5sim_xrcd_id_t id;
    _Atomic uint32_t  refs;       /* SRQs and targets */
} mlx5sim_xrcd_t;


/** mlx5sim_cq_t.writing before the first CQE: it is of none that comes soon. */
#define MLX5SIM_CQ_NOT_WRITING UINT64_MAX

typedef struct mlx5sim_cq {
    mlx5sim_obj_t    o;
    mlx5sim_lock_t   lock;
    uint64_t         buf;         /* owner's address of the ring */
    mlx5sim_shared_t shared;      /* the ring, all of it or nothing */
    uint64_t         db;          /* doorbell record: [0] ci, [1] arm */
    uint32_t         num_cqes;    /* 2^n */
    uint32_t         cqe_size;
    uint32_t         pi;          /* free running producer index */
    uint32_t         ci_cache;    /* last consumer index that was read */
    uint32_t         ci_traced;   /* and that is in the timeline */
    uint32_t         chan;        /* index + 1, 0: none */
    uint32_t         uar;         /* index */
    uint32_t         armed;       /* 0, 1: next, 2: next solicited */
    uint32_t         arm_sn;
    uint32_t         sol_pi;      /* pi after the last solicited CQE */
    uint32_t         overrun;
    uint32_t         ignore_overrun; /* PRM: cqc.oi, there is always room */
    uint32_t         pusher;      /* QP (index + 1) whose claim completes now */
    uint32_t         unsure;      /* bits of MLX5SIM_UNSURE_* */
    uint32_t         marks;       /* resizes at consumer index mark_ci */
    uint32_t         mark_ci;     /* does not count those resizes yet */
    uint32_t         compressed;  /* PRM: cqc.cqe_comp_en */
    uint32_t         holder;      /* tag of who was the last to hold one back */
    uint32_t         held_pi;     /* where the block starts: pi until written */
    uint32_t         held;        /* completions in the block until then */
    uint32_t         collapsed;   /* PRM: cqc.cc, all CQEs go to one place */
    uint64_t         writing;     /* there: pi and tail of the CQE under way,
                                   * or MLX5SIM_CQ_NOT_WRITING */
    mlx5sim_zip_t    zip;         /* the completions held back */
    uint64_t         events;      /* written to the channel */
    uint64_t         cqes;
    _Atomic uint32_t refs;
} mlx5sim_cq_t;


/** Receives of another process that were read ahead, as they lie in the queue:
 *  one access takes longer than all else that a receive does. */
enum { MLX5SIM_RECV_AHEAD = 512 };

typedef struct mlx5sim_recv_ahead {
    uint32_t num;         /* 0: none */
    uint32_t first;       /* place in the queue */
    uint16_t db;          /* doorbell record before: what it does not count was
                             not posted yet, and is not valid */
    uint8_t  wqes[MLX5SIM_RECV_AHEAD];
} mlx5sim_recv_ahead_t;


/** A claimed receive WQE, so that the death of the claimer can be repaired. */
typedef struct mlx5sim_claim {
    uint32_t active;
    uint32_t held;        /* of a message whose first packets have landed, and
                             the last one has not: stays claimed */
    uint32_t index;       /* SRQ WQE number, or RQ counter */
    uint32_t pushing;     /* CQE goes to slot cq_pi of the CQ */
    uint32_t cq_pi;
} mlx5sim_claim_t;


/** Receives of a QP that fail on request. */
typedef struct mlx5sim_recv_fault {
    uint32_t nth;         /* from 1; 0: none */
    uint32_t count;       /* receives so far */
    uint8_t  onwards;     /* not only that one */
    uint8_t  syndrome;
    uint8_t  vendor;
    uint8_t  is_abort;    /* the message comes again */
} mlx5sim_recv_fault_t;


enum {
    MLX5SIM_SRQ_RETURNED = 64,
    MLX5SIM_SRQ_PREFETCH = 16   /* of a QP */
};

/** What is taken from an SRQ. It changes in one store, so that the death of who
 *  changes it leaves the old or the new position and nothing else. */
typedef union mlx5sim_srq_pos {
    struct {
        uint16_t head;          /* next WQE number to hand out */
        uint16_t consumed;      /* counter that chases the doorbell record */
        uint16_t num_returned;  /* WQEs in returned[], handed out first */
        uint16_t seq;           /* changes */
    };
    uint64_t word;
} mlx5sim_srq_pos_t;

typedef struct mlx5sim_srq {
    mlx5sim_obj_t    o;
    mlx5sim_lock_t   lock;
    uint64_t         buf;
    uint64_t         db;
    uint32_t         max_wr;
    uint32_t         num_wqes;    /* 2^n */
    uint32_t         wqe_shift;
    uint32_t         max_sge;
    uint32_t         is_cyclic;   /* PRM: wq.wq_type, no list of WQEs */
    _Atomic uint64_t pos;         /* mlx5sim_srq_pos_t */
    /* change that is under way: of a QP's claim (index + 1, 0: none) */
    uint32_t         changer;
    uint16_t         change_seq;  /* pos.seq when it is done */
    uint16_t         change_claims; /* 1: claims a WQE, 0: gives it back */
    uint16_t         limit;
    uint16_t         returned[MLX5SIM_SRQ_RETURNED]; /* claimed in vain */
    uint32_t         lost;        /* WQEs of destroyed QPs, not yet reported */
    uint32_t         lost_qpn;    /* the last one */
    uint32_t         early_qpn;   /* QP that went before its last WQE event was
                                     read, 0: none, or reported */
    uint16_t         early_db;    /* doorbell record at that time */
    uint32_t         pd;
    uint32_t         srqn;
    _Atomic uint32_t xrcd;        /* XRC: domain, index + 1; 0: none */
    uint32_t         cq;          /* XRC: index, where receives complete */
    uint32_t         uidx;        /* XRC: as mlx5sim_qp_t.uidx */
    uint64_t         received;
    _Atomic uint32_t refs;
    mlx5sim_recv_ahead_t ahead;
} mlx5sim_srq_t;


/** Result of an atomic, for requests that come again because the answer was
 *  lost. */
typedef struct mlx5sim_saved {
    uint32_t is_valid;
    uint32_t psn;
    uint64_t old;         /* value before the atomic, host order */
} mlx5sim_saved_t;


enum { MLX5SIM_MAX_RD_ATOMIC = 16 };

typedef struct mlx5sim_qp_obj {
    mlx5sim_obj_t    o;
    mlx5sim_lock_t   sq_lock;
    mlx5sim_lock_t   rq_lock;
    mlx5sim_lock_t   rung_lock;
    mlx5sim_qp_t     qp;          /* the engine's view */
    uint64_t         sq;          /* owner's address of the send queue */
    uint64_t         rq;
    uint64_t         db;          /* doorbell record: [0] RQ, [1] SQ */
    uint32_t         pd, send_cq, recv_cq; /* indices */
    uint32_t         srq;         /* index + 1, 0: none; XRC target: of the
                                     last message */
    uint32_t         xrcd;        /* XRC target: domain, index + 1; 0: none */
    uint32_t         uar;         /* index */
    uint32_t         uuar_class;  /* mlx5sim_uuar_class_t */
    uint32_t         uuar;        /* legacy: number among the static or among
                                     the dynamic ones of the context */
    uint32_t         uuars_rung;  /* bit of each register of the page */
    uint32_t         dev;
    /* under sq_lock */
    uint16_t         sq_head;     /* next block to execute */
    uint32_t         bf_wqe;      /* index + 1 of the WQE that came last by
                                     BlueFlame, and is not fetched; 0: none */
    uint16_t         retries;
    uint64_t         wqes;
    uint64_t         doorbells;
    uint64_t         blueflames;
    _Atomic uint32_t is_rung;     /* since it left RESET: before that, its
                                     doorbell record means nothing */
    uint64_t         retry_since; /* CLOCK_MONOTONIC ns, 0: not waiting */
    uint64_t         gone_since;  /* the same, for a responder that is gone */
    uint64_t         gone_after;  /* longest time until that is an error, ns */
    _Atomic uint64_t retry_at;    /* parked until then, 0: not parked; the
                                     helper thread reads it without the lock */
    _Atomic uint32_t kicked;      /* helper thread of the owner must look */
    _Atomic uint32_t rung;        /* deferred, or is_remote: doorbell record
                                     when it was last rung */
    _Atomic uint32_t reported;    /* deferred: block after the last WQE that
                                     software knows to be finished */
    uint32_t         resets;      /* how often it was put to RESET */
    uint32_t         drain_sigerr; /* a wrong signature stops it (PRM) */
    uint32_t         has_sigerr;  /* and does: nothing new is begun */
    uint32_t         is_remote;   /* RC, UC: its peer is on another node, so
                                     that mlx5sim-wire executes what it sends */
    _Atomic uint32_t is_told;     /* mlx5sim-wire is about to look at it */
    /* What a further mlx5sim-wire goes on with, if one was killed: packets are
     * counted from the first one that the QP sent since it left RESET */
    uint64_t         wire_una;    /* first packet of the WQE at sq_head */
    uint64_t         wire_sent;   /* one after the last that ever was sent */
    uint64_t         wire_next_una; /* wire_una and sq_head behind that WQE, */
    uint16_t         wire_next_head; /* if wire_claim is active: */
    mlx5sim_claim_t  wire_claim;  /* its completion is being written */
    uint16_t         pi_traced;   /* posted work requests in the timeline; of
                                     the thread that rings */
    uint32_t         messages;    /* answered since sq_psn was set, 24 bits;
                                     counted for captures */
    /* under rq_lock */
    uint32_t         rq_head;     /* 16 bits are compared */
    uint64_t         received;
    mlx5sim_claim_t  claim;
    mlx5sim_recv_ahead_t ahead;
    mlx5sim_recv_fault_t recv_fault;
    uint32_t         prefetch;    /* WQEs it takes from its SRQ beforehand */
    uint32_t         num_held;    /* such WQEs */
    uint16_t         held[MLX5SIM_SRQ_PREFETCH];
    uint64_t         flush_at;    /* in error: when such WQEs are flushed */
    uint64_t         flush_delay; /* ns that the flush takes */
    uint32_t         last_wqe_event; /* raised since the QP left RESET */
    uint32_t         in_message;  /* first packets of one have landed */
    uint32_t         nak_sent;    /* told that a packet is missing */
    mlx5sim_roce_message_t message; /* from another node, that is under way */
    uint32_t         message_psn; /* of the packet behind what it has */
    uint64_t         accepted;    /* packets since the QP left RESET */
    uint32_t         num_saved;   /* ever */
    mlx5sim_saved_t  saved[MLX5SIM_MAX_RD_ATOMIC];
    /* attributes only query_qp wants back */
    uint32_t         rq_psn, sq_psn;
    uint16_t         pkey_index;
    uint8_t          sgid_index, hop_limit, traffic_class, static_rate;
    uint8_t          sq_sig_all;
    uint8_t          lag_port;    /* of a LAG, from 1; 0: any */
    uint16_t         udp_sport;   /* RoCE v2, 0: as the kernel chooses */
    uint32_t         sched_leaves[2]; /* of the send scheduler, 0: none: for
                                     requests, for answers */
    uint32_t         flow_label;
} mlx5sim_qp_obj_t;


typedef struct mlx5sim_ah {
    mlx5sim_obj_t o;
} mlx5sim_ah_t;

#endif
