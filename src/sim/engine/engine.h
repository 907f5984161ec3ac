/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_ENGINE_H_
#define MLX5SIM_ENGINE_H_

#include <sim/engine/signature.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The pure part of the software device: bytes and object attributes in,
 * effects and completions out. Nothing here waits, locks, allocates, traps,
 * makes a system call or knows about processes: the executor (sim/exec) owns
 * memory, locks and queues and carries out what a plan says.
 *
 * One work request takes three steps:
 *   1. mlx5sim_wqe_decode()  send queue bytes -> mlx5sim_wqe_t, strict checks
 *   2. mlx5sim_plan_make()   request + both QPs -> mlx5sim_plan_t
 *   3. mlx5sim_cqe_build()   completion of either side -> CQE bytes
 */

#define MLX5SIM_MAX_SGE    64   /* data segments that fit 1024 bytes of WQE */
#define MLX5SIM_WQEBB      64   /* send queue basic block, bytes */
#define MLX5SIM_GRH_LENGTH 40   /* bytes ahead of every UD payload */
#define MLX5SIM_MAX_ERRORED 15  /* streams in error of a DC initiator that has
                                   not failed */


/** QP types, numbered as enum ibv_qp_type (kernel ib_user_verbs.h). Those of
 *  the dynamically connected transport all are IBV_QPT_DRIVER there; they have
 *  their numbers in the PRM (qpc.st). */
enum {
    MLX5SIM_QPT_RC  = 2,
    MLX5SIM_QPT_UC  = 3,
    MLX5SIM_QPT_UD  = 4,
    MLX5SIM_QPT_DCI = 5,   /* initiator: sends only, each time to the target
                              that the work request names */
    MLX5SIM_QPT_DCT = 6    /* target: receives only, from any initiator that
                              has its key */
};


/** Parts of an extended reliable connection (XRC). It goes one way. All else is
 *  as with RC, which is the type of both queue pairs. */
enum {
    MLX5SIM_XRC_NONE,
    MLX5SIM_XRC_INI,       /* initiator: each work request names an SRQ */
    MLX5SIM_XRC_TGT        /* target: has neither queues nor a PD of its own */
};


/** QP states, numbered as enum ibv_qp_state. */
typedef enum {
    MLX5SIM_QPS_RESET,
    MLX5SIM_QPS_INIT,
    MLX5SIM_QPS_RTR,
    MLX5SIM_QPS_RTS,
    MLX5SIM_QPS_SQD,
    MLX5SIM_QPS_SQE,
    MLX5SIM_QPS_ERR
} mlx5sim_qp_state_t;


/** Access flags, numbered as enum ibv_access_flags. */
enum {
    MLX5SIM_ACCESS_LOCAL_WRITE   = 1 << 0,
    MLX5SIM_ACCESS_REMOTE_WRITE  = 1 << 1,
    MLX5SIM_ACCESS_REMOTE_READ   = 1 << 2,
    MLX5SIM_ACCESS_REMOTE_ATOMIC = 1 << 3,
    MLX5SIM_ACCESS_ON_DEMAND     = 1 << 6,  /* not pinned */
    MLX5SIM_ACCESS_RELAXED       = 1 << 20  /* relaxed ordering on PCIe */
};


/** Memory windows that peers may free: enum ibv_mw_type (PRM:
 *  mkc.en_rinval). */
#define MLX5SIM_WINDOW_TYPE_2 2


/** Whether a list leads to the bytes of a key. */
enum {
    MLX5SIM_LAYOUT_NONE,
    MLX5SIM_LAYOUT_PLAIN,
    MLX5SIM_LAYOUT_SIGNED  /* and there are signatures: bytes are those of the
                              wire */
};


/** What the engine must know about a memory region. */
typedef struct mlx5sim_mr {
    uint32_t key;      /* lkey and rkey: mlx5 uses one value for both */
    uint32_t pdn;
    uint32_t access;   /* MLX5SIM_ACCESS_* */
    uint32_t window_type; /* enum ibv_mw_type; 0: it is none */
    uint32_t has_layout;  /* MLX5SIM_LAYOUT_*: va says nothing */
    uint64_t iova;     /* address as work requests name it */
    uint64_t va;       /* the same byte in the owner's address space */
    uint64_t length;   /* bytes */
} mlx5sim_mr_t;


/** What the engine must know about a queue pair (host byte order). */
typedef struct mlx5sim_qp {
    uint32_t qpn;
    uint32_t uidx;            /* user index reported in CQEs (cqe_version 1); if
                                 0xffffff, which libmlx5 passes to a device of
                                 cqe_version 0, the SRQ number instead */
    uint8_t  type;            /* MLX5SIM_QPT_* */
    uint8_t  state;           /* mlx5sim_qp_state_t */
    uint8_t  port;            /* from 1 */
    uint8_t  path_mtu;        /* enum ibv_mtu: 1 = 256 ... 5 = 4096 */
    uint32_t pdn;
    uint32_t access;          /* remote access allowed, MLX5SIM_ACCESS_* */
    uint32_t dest_qpn;        /* RC/UC */
    uint32_t qkey;            /* UD */
    uint16_t lid;             /* of the QP's own port */
    uint16_t dlid;            /* RC/UC destination, 0 when routed by GID */
    uint8_t  has_grh;         /* RC/UC primary path is global */
    uint8_t  is_roce_v1;      /* UD: sgid is of that type */
    uint8_t  sl;
    uint8_t  retry_cnt;
    uint8_t  rnr_retry;       /* 7: for ever */
    uint8_t  timeout;         /* local ACK: 4.096 us * 2^timeout, 0: none */
    uint8_t  min_rnr_timer;   /* responder's, IBTA encoding */
    uint8_t  max_rd_atomic;   /* initiator depth */
    uint8_t  max_dest_rd_atomic;
    uint8_t  sgid[16];        /* of the QP's own port and GID index */
    uint8_t  dgid[16];        /* RC/UC destination when has_grh */
    uint32_t sq_wqe_cnt;      /* send queue length in 64-byte blocks, 2^n */
    uint32_t rq_wqe_cnt;      /* receive WQEs, 2^n; 0 with an SRQ */
    uint32_t rq_wqe_shift;    /* log2 of the receive WQE stride */
    uint32_t srqn;            /* 0: no SRQ */
    uint32_t srq_pdn;         /* PD of the SRQ, 0: that of the QP */
    uint8_t  no_masked;       /* the device has no masked atomics */
    uint32_t max_inline;      /* not checked: hardware does not know it, and UCX
                                 posts more inline data than it requested */
    uint16_t pkey;
    uint8_t  is_roce;         /* link layer of the port is Ethernet */
    uint8_t  path_mask;       /* low bits of a LID that the port ignores:
                                 2^LMC - 1 */
    uint8_t  path_bits;       /* RC/UC: of the source LID */
    uint8_t  scatter_cqe;     /* RC/UC: short messages are received into CQEs */
    uint8_t  scatter_req_cqe; /* RC: short answers to requests go into CQEs */
    uint32_t psn;             /* RC/UC: of the next packet it sends, 24 bits */
    uint32_t epsn;            /* RC/UC: of the next packet it expects */
    uint64_t dc_key;          /* DCT: access key */
    uint8_t  log_streams;     /* DCI: streams that it works on at a time, 2^n */
    uint8_t  log_errored;     /* DCI: fails when as many are in error, 2^n */
    uint8_t  num_errored;     /* DCI: streams in error, */
    uint16_t errored[MLX5SIM_MAX_ERRORED]; /* their numbers */
    uint8_t  xrc;             /* RC: MLX5SIM_XRC_*. Target: srqn, pdn and uidx
                                 are of the SRQ of the request; without that,
                                 srqn and pdn are 0 */
} mlx5sim_qp_t;


/** Strict checks on what software posted; MLX5SIM_CHK_OK is 0.
 *  mlx5sim_chk_name() and mlx5sim_chk_hint() say what each one means. */
typedef enum {
    MLX5SIM_CHK_OK,
    MLX5SIM_CHK_WQE_INDEX,        /* ctrl wqe_index is not the queue position */
    MLX5SIM_CHK_WQE_QPN,          /* ctrl qpn is another QP's */
    MLX5SIM_CHK_WQE_DS,           /* ds is 0, too large or does not match */
    MLX5SIM_CHK_WQE_OPCODE,       /* unknown, or not allowed for the QP type */
    MLX5SIM_CHK_WQE_OPMOD,
    MLX5SIM_CHK_WQE_RESERVED,     /* reserved bits or bytes are set */
    MLX5SIM_CHK_WQE_CE,           /* reserved completion mode */
    MLX5SIM_CHK_WQE_INLINE,       /* inline length beyond the WQE */
    MLX5SIM_CHK_WQE_SEGMENT,      /* segments do not fill ds exactly */
    MLX5SIM_CHK_WQE_ATOMIC,       /* size, alignment or segment layout */
    MLX5SIM_CHK_WQE_AV,           /* address vector malformed */
    MLX5SIM_CHK_WQE_UD_LENGTH,    /* UD payload above the MTU */
    MLX5SIM_CHK_WQE_LENGTH,       /* message above 2^31 bytes */
    MLX5SIM_CHK_RECV_WQE,         /* receive WQE malformed */
    MLX5SIM_CHK_SQ_OVERRUN,       /* doorbell record too far ahead of the SQ */
    MLX5SIM_CHK_SQ_REUSED,        /* WQE written again before its completion */
    MLX5SIM_CHK_RQ_OVERRUN,
    MLX5SIM_CHK_SRQ_LIST,         /* SRQ next_wqe_index outside the SRQ */
    MLX5SIM_CHK_SRQ_LEAK,         /* QP destroyed with receives of its SRQ */
    MLX5SIM_CHK_CQ_OVERRUN,
    MLX5SIM_CHK_CQ_CI,            /* consumer index ahead of the producer */
    MLX5SIM_CHK_DB_UNCOVERED,     /* doorbell rung, record not ahead */
    MLX5SIM_CHK_DB_QPN,           /* doorbell of an unknown or foreign QP */
    MLX5SIM_CHK_DB_VALUE,         /* doorbell's WQE is not the last posted */
    MLX5SIM_CHK_DB_STATE,         /* posted on a QP that cannot send */
    MLX5SIM_CHK_DB_OFFSET,        /* store outside the doorbell registers */
    MLX5SIM_CHK_BF_MISMATCH,      /* BlueFlame bytes differ from the SQ's */
    MLX5SIM_CHK_WC_RACE,          /* two threads' stores to a uUAR may swap */
    MLX5SIM_CHK_WC_ORDER,         /* so may two of a thread, without a fence */
    MLX5SIM_CHK_BF_BUFFER,        /* same BlueFlame buffer twice in a row */
    MLX5SIM_CHK_CQ_ARM,           /* arm doorbell: cqn, sn or ci are wrong */
    MLX5SIM_CHK_UAR,              /* QP rung through a UAR not its own */
    MLX5SIM_CHK_QP_TRANSITION,    /* illegal modify_qp */
    MLX5SIM_CHK_QP_ATTR,          /* attribute missing, forbidden or bad */
    MLX5SIM_CHK_LAST
} mlx5sim_chk_t;


/** One contiguous piece of a gather or scatter list, or an entry of the list
 *  that a UMR gives to a key. */
typedef struct mlx5sim_seg {
    uint64_t    addr;    /* iova in a WQE; process address in a plan */
    uint32_t    length;  /* bytes */
    uint32_t    lkey;
    const void *inl;     /* not NULL: inline data inside the send queue */
    uint32_t    has_layout; /* in a plan, MLX5SIM_LAYOUT_*: addr is an iova, by
                               which the list of the key leads to the bytes */
    uint32_t    stride;  /* UMR: bytes from one turn to the next */
} mlx5sim_seg_t;


/** A decoded send WQE (host byte order except where noted). */
typedef struct mlx5sim_wqe {
    uint16_t      index;        /* position: SQ block counter */
    uint8_t       opcode;       /* MLX5SIM_OPCODE_* of mlx5_def.h */
    uint8_t       opmod;
    uint8_t       ds;           /* 16-byte units */
    uint8_t       num_bb;       /* 64-byte blocks it occupies */
    uint8_t       signaled;     /* CQE on success wanted (CE = 2) */
    uint8_t       solicited;
    uint8_t       fence;
    uint8_t       atomic_size;  /* 0, 4 or 8 bytes */
    uint8_t       has_raddr;
    uint8_t       has_av;
    uint16_t      stream;       /* DCI: any number */
    uint32_t      imm;          /* big endian as posted; SEND_INVAL: the rkey to
                                   invalidate, UMR: the key to change, host
                                   order */
    uint64_t      raddr;
    uint32_t      rkey;
    uint32_t      srqn;         /* XRC: SRQ of the target */
    struct {
        uint8_t   is_cas;
        uint64_t  swap_add;     /* swap value, or the addend */
        uint64_t  compare;
        uint64_t  swap_mask;    /* all ones for plain compare-and-swap */
        uint64_t  compare_mask; /* or the field boundary of a masked add */
    } atomic;
    struct {
        uint32_t  dqpn;
        uint32_t  qkey;         /* the QP's own if bit 31 was posted */
        uint64_t  dc_key;       /* DCI: access key of the target */
        uint16_t  dlid;
        uint8_t   path_bits;    /* of the source LID */
        uint8_t   sl;
        uint8_t   has_grh;
        uint8_t   sgid_index;   /* has_grh: whose GID the header has */
        uint8_t   tclass;
        uint8_t   hop_limit;
        uint32_t  flow_label;
        uint8_t   dgid[16];
        uint8_t   dmac[6];
    } av;
    struct {                    /* UMR: a key as it is to be */
        uint8_t   is_free;      /* leads nowhere; the rest does not count, but
                                   for key */
        uint8_t   check_free;   /* has to be free until then */
        uint8_t   check_qpn;    /* has to be one of the queue pair */
        uint8_t   key;          /* lower byte of it */
        uint64_t  mask;         /* MLX5SIM_UMR_MASK_*: what changes */
        uint32_t  access;       /* MLX5SIM_ACCESS_* */
        uint32_t  qpn;          /* who may use it, MLX5SIM_QPN_MASK: all */
        uint64_t  start;        /* address of its first byte */
        uint64_t  length;
        uint32_t  units;        /* size of its list, of MLX5SIM_WQE_UNIT; 0: it
                                   keeps the one that it has */
        uint32_t  count;        /* entries of the list, in segs */
        uint32_t  turns;        /* how often they come, one turn after the
                                   other; 0: it is no list of strides */
        uint8_t   is_signed;    /* there are to be signatures: as before, or */
        uint8_t   has_bsf;      /* these */
        uint8_t   bsf[MLX5SIM_BSF_SIZE];
    } umr;
    struct {                    /* SET_PSV */
        uint32_t  index;
        uint64_t  value;
    } psv;
    uint32_t      length;       /* payload bytes, gather or scatter total */
    uint32_t      later;        /* bytes at its end that are not yet there, as
                                   they come in later packets; decode says 0 */
    unsigned      num_segs;
    mlx5sim_seg_t segs[MLX5SIM_MAX_SGE];
} mlx5sim_wqe_t;


/** A decoded receive WQE. */
typedef struct mlx5sim_recv_wqe {
    uint16_t      index;        /* RQ counter, or SRQ WQE number: set by whoever
                                   took it from the queue, not by decode */
    unsigned      num_segs;
    uint32_t      length;       /* total room, bytes */
    mlx5sim_seg_t segs[MLX5SIM_MAX_SGE];
} mlx5sim_recv_wqe_t;


/** A completion before it is encoded. */
typedef struct mlx5sim_cqe {
    uint8_t  opcode;        /* MLX5SIM_CQE_* of mlx5_def.h */
    uint8_t  syndrome;      /* for the error opcodes */
    uint8_t  vendor_err;
    uint8_t  wqe_opcode;    /* requester: opcode of the WQE completed */
    uint8_t  solicited;
    uint8_t  has_grh;       /* UD receive */
    uint8_t  sl;            /* RoCE datagram: packet type */
    uint8_t  path_bits;     /* low bits of the LID it was sent to */
    uint16_t wqe_counter;
    uint16_t slid;
    uint32_t byte_cnt;
    uint32_t imm;           /* big endian as posted; RESP_SEND_INV: the rkey,
                               host order */
    uint32_t qpn;           /* QP the completion belongs to */
    uint32_t uidx;
    uint32_t srqn;          /* 0: none */
    uint32_t src_qpn;       /* UD receive */
    uint64_t timestamp;     /* device clock; plans leave 0, the executor may set
                               it. Not reported in error CQEs. */
    uint16_t pkey;          /* UD receive without immediate */
    uint8_t  scattered;     /* bytes of data in the CQE; 0: it is in memory */
    union {
        uint8_t             data[64];
        mlx5sim_sig_error_t sig; /* SIG_ERR */
    };
} mlx5sim_cqe_t;


/** Maximum of data that fits into a CQE of @a size bytes. */
unsigned mlx5sim_cqe_max_data(unsigned size);


/** Whose a piece of memory or an effect is. */
typedef enum {
    MLX5SIM_SIDE_REQUESTER,
    MLX5SIM_SIDE_RESPONDER
} mlx5sim_side_t;


/** What happens to the work request. */
typedef enum {
    MLX5SIM_VERDICT_DONE,   /* carry out the plan, the WQE is finished (it may
                               have failed: req_cqe.syndrome tells) */
    MLX5SIM_VERDICT_RNR,    /* no receive WQE: try again after the RNR timer */
    MLX5SIM_VERDICT_RETRY,  /* responder cannot answer: try again on timeout */
    MLX5SIM_VERDICT_GONE    /* nor will it ever */
} mlx5sim_verdict_t;


/** Asynchronous events of a plan, numbered as enum ibv_event_type. */
enum {
    MLX5SIM_EVENT_NONE          = 0,
    MLX5SIM_EVENT_QP_FATAL      = 1,
    MLX5SIM_EVENT_QP_REQ_ERR    = 2,
    MLX5SIM_EVENT_QP_ACCESS_ERR = 3,
    MLX5SIM_EVENT_SQ_DRAINED    = 5
};


/** Everything one work request does. Executors apply it in the order: copy or
 *  atomic, responder CQE, requester CQE, state changes. A plan is used where it
 *  was made: copying it leaves src[0] pointing at the first one's grh. */
typedef struct mlx5sim_plan {
    mlx5sim_verdict_t verdict;

    /* transfer: total bytes equal on both sides; length 0: none */
    uint64_t          length;
    mlx5sim_side_t    src_side;
    mlx5sim_side_t    dst_side;
    unsigned          num_src;
    unsigned          num_dst;
    mlx5sim_seg_t     src[MLX5SIM_MAX_SGE + 1]; /* process addresses; inline
                                                   data: of the caller, and inl
                                                   is set */
    mlx5sim_seg_t     dst[MLX5SIM_MAX_SGE + 1];

    /* atomic on the responder's memory; its old value goes to dst[] of the
     * requester (num_dst, dst), converted by mlx5sim_atomic_result() */
    uint8_t           atomic_size;  /* 0: none, else 4 or 8 */
    uint64_t          atomic_old;   /* value before it, once it is executed */
    uint64_t          atomic_addr;  /* responder process address */

    uint8_t           consume_recv; /* the peeked receive WQE is used up */
    uint8_t           has_req_cqe;
    uint8_t           has_resp_cqe;
    uint8_t           req_error;    /* requester QP enters ERR, or SQE (UD) */
    uint8_t           resp_error;   /* responder QP enters ERR */
    uint8_t           is_answered;  /* req_error: the responder does its part,
                                       but the answer has no place: an atomic is
                                       executed, and no data are moved */
    uint8_t           resp_event;   /* async event to raise, MLX5SIM_EVENT_* */
    uint8_t           invalidate;   /* SEND_INVAL: rkey in inv_rkey dies */
    uint8_t           grh_length;   /* not 0: src[0] is the GRH (src[0].inl is
                                       grh), part of length */
    uint32_t          inv_rkey;
    uint8_t           grh[MLX5SIM_GRH_LENGTH];
    mlx5sim_cqe_t     req_cqe;
    mlx5sim_cqe_t     resp_cqe;
} mlx5sim_plan_t;


/** Lookups a plan needs; pure as far as the engine is concerned. */
typedef struct mlx5sim_env {
    void *arg;

    /** Region of @a key in the device of @a side, NULL if there is none (or if
     *  it belongs to a process other than that of the QP of that side). */
    const mlx5sim_mr_t *(*mr_find)(void *arg, mlx5sim_side_t side,
                                   uint32_t key);

    /** Next receive WQE of the responder (RQ or SRQ), not yet consumed.
     *  @return 1 and *@a recv_p filled, 0 if none is posted, -1 if the queue
     *          itself is malformed (the QP then enters the error state).
     *  Called once at most, and only for requests that consume a receive. */
    int (*recv_peek)(void *arg, mlx5sim_recv_wqe_t *recv_p);

    /** Where the list of @a key, which has a layout, leads with these bytes.
     *  @param access  MLX5SIM_ACCESS_* that it is for.
     *  @param va_p    Process address of the first one.
     *  @return How many of them are in a row there; 0 if not all of them can be
     *          reached. */
    uint64_t (*layout_find)(void *arg, mlx5sim_side_t side, uint32_t key,
                            uint32_t access, uint64_t addr, uint64_t length,
                            uint64_t *va_p);
} mlx5sim_env_t;


/**
 * Decode the send WQE at block counter @a index.
 *
 * @param qp      Owner: type, qpn, queue length.
 * @param sq      First byte of the send queue, sq_wqe_cnt * 64 bytes; WQEs wrap
 *                at its end, inline data too (it then makes two segments).
 * @param index   SQ block counter (not masked).
 * @param wqe_p   Filled as far as possible even if a check fails. Always has
 *                num_bb >= 1 so that a lenient device can go on.
 *
 * @return MLX5SIM_CHK_OK, or the first check that failed; one that leaves
 *         nothing to execute (mlx5sim_chk_is_fatal()) takes precedence.
 */
mlx5sim_chk_t mlx5sim_wqe_decode(const mlx5sim_qp_t *qp, const void *sq,
                                 uint16_t index, mlx5sim_wqe_t *wqe_p);


/**
 * Decode a receive WQE: an array of data segments (after a 16-byte next segment
 * in an SRQ), ended by the stride or by a segment of lkey 0x100.
 *
 * @param wqe     @a stride bytes.
 * @param is_srq  Skip the next segment.
 *
 * @return MLX5SIM_CHK_OK or MLX5SIM_CHK_RECV_WQE. recv_p->index is not touched.
 */
mlx5sim_chk_t mlx5sim_recv_decode(const void *wqe, unsigned stride, int is_srq,
                                  mlx5sim_recv_wqe_t *recv_p);


/**
 * Work out what @a wqe does.
 *
 * @param req   Requester QP, in a state that sends.
 * @param resp  Responder QP: the RC peer or the UD destination. NULL if there
 *              is no such QP or its process is gone (RC: the plan is a
 *              transport-retry-exceeded error; UD: the packet is lost and the
 *              send completes).
 */
void mlx5sim_plan_make(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                       const mlx5sim_qp_t *resp, const mlx5sim_env_t *env,
                       mlx5sim_plan_t *plan_p);


/**
 * Work out what the answer to a read or an atomic does, whose request the
 * responder has accepted: data on their way back. Of an atomic, which was
 * executed then, only the requester's side is looked at.
 *
 * @param resp  Of a read: where the data are.
 */
void mlx5sim_plan_answer(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                         const mlx5sim_qp_t *resp, const mlx5sim_env_t *env,
                         mlx5sim_plan_t *plan_p);


/** Reduce what @a plan moves to @a length bytes from @a offset on: those of one
 *  packet. Both are inside of what it moves. */
void mlx5sim_plan_cut(mlx5sim_plan_t *plan, uint64_t offset, uint64_t length);


/** Make the plan for the requester's side of a WQE that has succeeded, or has
 *  failed with @a syndrome: its completion, and the state it leads to. */
void mlx5sim_plan_success(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                          mlx5sim_plan_t *plan_p);
void mlx5sim_plan_fail_local(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                             unsigned syndrome, mlx5sim_plan_t *plan_p);


/** Turn @a plan, one that moves data, into the error that hardware reports when
 *  memory of @a side turns out to be unmapped during the transfer. */
void mlx5sim_plan_fault(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                        const mlx5sim_qp_t *resp, mlx5sim_side_t side,
                        mlx5sim_plan_t *plan);


/** Turn @a plan into retry exceeded (syndrome of transport or RNR retries). */
void mlx5sim_plan_retry_exceeded(const mlx5sim_qp_t *req,
                                 const mlx5sim_wqe_t *wqe, int is_rnr,
                                 mlx5sim_plan_t *plan_p);


/** Make the plan for a WQE that mlx5sim_wqe_decode() rejected with @a chk: the
 *  local error with which hardware completes it. */
void mlx5sim_plan_bad_wqe(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                          mlx5sim_chk_t chk, mlx5sim_plan_t *plan_p);


/** Completion with flush error of a send WQE / receive WQE of @a qp. */
void mlx5sim_cqe_flush(const mlx5sim_qp_t *qp, int is_recv,
                       uint16_t wqe_counter, uint8_t wqe_opcode,
                       mlx5sim_cqe_t *cqe_p);


/** New memory value of an atomic. @a old and the result are in host order. */
uint64_t mlx5sim_atomic_compute(const mlx5sim_wqe_t *wqe, uint64_t old);


/** Bytes the requester receives for the old value @a old: @a out_p gets
 *  wqe->atomic_size bytes in the order the hardware returns them, which is not
 *  the same in a CQE and in memory. */
void mlx5sim_atomic_result(const mlx5sim_wqe_t *wqe, uint64_t old,
                           int is_in_cqe, void *out_p);


/**
 * Write the CQE's bytes.
 *
 * @param size   64 or 128 (the 64 meaningful bytes are the last ones then).
 * @param owner  Ownership bit: (producer index / number of CQEs) & 1.
 * @param out_p  @a size bytes; the byte to publish last is out_p[size - 1].
 */
void mlx5sim_cqe_build(const mlx5sim_cqe_t *cqe, unsigned size,
                       unsigned owner, void *out_p);


/** IBTA encoding of min_rnr_timer -> nanoseconds; and of the ACK timeout. */
uint64_t mlx5sim_rnr_timer_ns(unsigned min_rnr_timer);
uint64_t mlx5sim_ack_timeout_ns(unsigned timeout);


/**
 * Type of a queue pair for mlx5sim_qp_modify_check(): as enum ibv_qp_type, if
 * it is of XRC.
 */
unsigned mlx5sim_qp_modify_type(const mlx5sim_qp_t *qp);


/**
 * Check a modify_qp call against the IBTA state table (as ib_modify_qp_is_ok
 * of the kernel does).
 *
 * @param type       As mlx5sim_qp_modify_type() says.
 * @param attr_mask  enum ibv_qp_attr_mask bits given by the caller.
 * @return MLX5SIM_CHK_OK, MLX5SIM_CHK_QP_TRANSITION or MLX5SIM_CHK_QP_ATTR.
 */
mlx5sim_chk_t mlx5sim_qp_modify_check(unsigned type, mlx5sim_qp_state_t cur,
                                      mlx5sim_qp_state_t next,
                                      uint32_t attr_mask);


/** Whether a WQE with this mistake cannot be executed: a lenient device then
 *  completes it with mlx5sim_plan_bad_wqe(); with other mistakes it goes on. */
int mlx5sim_chk_is_fatal(mlx5sim_chk_t chk);


/** Short name such as "wqe_index", and a sentence saying what to look for. */
const char *mlx5sim_chk_name(mlx5sim_chk_t chk);
const char *mlx5sim_chk_hint(mlx5sim_chk_t chk);
const char *mlx5sim_qp_state_name(unsigned state);
const char *mlx5sim_opcode_name(unsigned opcode);
const char *mlx5sim_syndrome_name(unsigned syndrome);


/**
 * Print a decoded send WQE (fields and raw hex) for a strict-check report.
 *
 * @return Characters written, as snprintf.
 */
int mlx5sim_wqe_dump(const mlx5sim_qp_t *qp, const void *sq, uint16_t index,
                     char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
