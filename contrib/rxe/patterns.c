/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every operation of verbs with messages of many lengths, between two programs
 * on any two devices. Each byte is compared, and those around the message, too.
 *
 *   patterns [-d DEVICE] [-g GID-INDEX] [-m MTU] [-p PORT]            waits
 *   patterns [-w] [-d DEVICE] [-g GID-INDEX] [-m MTU] [-p PORT] HOST  asks
 *
 * With -w, only memory windows of the one that waits are looked at.
 *
 * The program that asks does the operations; the one that waits looks what
 * became of them and prints nothing. A line for each test:
 *
 *   write 9 ok
 *   read 4 failed: length 1025: byte 1024 is 0x00, not 0x3c
 */

#define _GNU_SOURCE
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    GUARD   = 64,
    LONGEST = 1 << 20,
    ROOM    = LONGEST + 2 * GUARD,
    DEPTH   = 64,
    GRH     = 40,
    WAIT    = 120 /* seconds */
};

/** What the side that asks wants of the other one. */
typedef enum command {
    NEW_RC,   /* a queue pair */
    NEW_UD,
    FILL,     /* memory with the pattern of a seed */
    RECEIVE,  /* post a receive of a length */
    EXPECT,   /* completion of a receive */
    EXPECT_BAD,
    COMPARE,  /* memory with the pattern of a seed */
    STORE,    /* a number at an offset */
    LOAD,
    BIND,     /* a memory window of type 2 to a part of the memory */
    FREE,     /* it, by a work request */
    DONE
} command_t;

/** On the socket between the two, both ways. */
typedef struct message {
    uint32_t command;
    uint32_t seed;
    uint32_t length;
    uint32_t offset; /* in the memory, behind the guard */
    uint32_t imm;
    uint32_t has_imm;
    uint64_t number;
    /* of the one who answers */
    uint32_t qpn;
    uint32_t rkey;
    uint64_t addr;
    uint32_t psn;
    uint8_t  gid[16];
    uint32_t failed;
    char     text[120];
} message_t;

static struct {
    struct ibv_context  *context;
    struct ibv_pd       *pd;
    struct ibv_cq       *cq;
    struct ibv_mr       *mr;
    struct ibv_mw       *mw;
    struct ibv_qp       *qp;
    struct ibv_ah       *ah;
    uint8_t             *memory;
    uint8_t              guard[GUARD];
    union ibv_gid        gid;
    int                  gid_index;
    enum ibv_mtu         mtu;
    unsigned             mtu_bytes;
    int                  peer; /* socket */
    message_t            far;
    uint32_t             psn;
    unsigned             rnr_retry;
    int                  is_ud;
    int                  only_windows;
    uint32_t             wrong; /* in local keys: 0, or they are wrong */
} self = {.gid_index = 1, .mtu_bytes = 1024};


static void die(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fprintf(stderr, "patterns: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    exit(2);
}


static uint8_t pattern(uint32_t seed, uint32_t place)
{
    uint32_t x = (seed * 2654435761u) ^ (place * 2246822519u);

    return (x ^ (x >> 15)) >> 3;
}


static void fill(uint32_t seed, uint32_t offset, uint32_t length)
{
    uint32_t i;

    /* Around it is the opposite */
    memset(self.memory, 0xa5, ROOM);
    for (i = 0; i < length; ++i) {
        self.memory[GUARD + offset + i] = pattern(seed, i);
    }
}


/* @return 0 if the memory is what fill() makes; a sentence otherwise */
static int compare(uint32_t seed, uint32_t offset, uint32_t length, char *text,
                   size_t size)
{
    uint32_t begin = GUARD + offset;
    uint32_t i;
    uint8_t want;

    for (i = 0; i < ROOM; ++i) {
        want = ((i >= begin) && (i < begin + length)) ?
                       pattern(seed, i - begin) : 0xa5;
        if (self.memory[i] != want) {
            snprintf(text, size, "byte %d is 0x%02x, not 0x%02x",
                     (int)(i - begin), self.memory[i], want);
            return 1;
        }
    }

    return 0;
}


static void talk(message_t *message)
{
    if (send(self.peer, message, sizeof(*message), MSG_NOSIGNAL) !=
        sizeof(*message)) {
        die("cannot write to the peer: %s", strerror(errno));
    }
}


static int listen_to(message_t *message_p)
{
    return recv(self.peer, message_p, sizeof(*message_p), MSG_WAITALL) ==
           sizeof(*message_p);
}


static void modify(struct ibv_qp_attr *attr, int mask, const char *what)
{
    int ret = ibv_modify_qp(self.qp, attr, mask);

    if (ret != 0) {
        die("ibv_modify_qp(%s): %s", what, strerror(ret));
    }
}


static void destroy_qp(void)
{
    struct ibv_wc wc;

    if (self.ah != NULL) {
        ibv_destroy_ah(self.ah);
        self.ah = NULL;
    }
    if (self.qp != NULL) {
        ibv_destroy_qp(self.qp);
        self.qp = NULL;
    }
    while (ibv_poll_cq(self.cq, 1, &wc) > 0) {
    }
}


static void create_qp(int is_ud)
{
    struct ibv_qp_init_attr init = {
        .send_cq    = self.cq,
        .recv_cq    = self.cq,
        .cap        = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH,
                       .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type    = is_ud ? IBV_QPT_UD : IBV_QPT_RC,
        .sq_sig_all = 0
    };
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .port_num        = 1,
        .qkey            = 0x11111111,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC
    };

    destroy_qp();
    self.is_ud = is_ud;
    self.qp    = ibv_create_qp(self.pd, &init);
    if (self.qp == NULL) {
        die("ibv_create_qp: %s", strerror(errno));
    }
    modify(&attr,
           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
           (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS), "INIT");
    self.psn = (self.psn + 0xfffff0) & 0xffffff; /* wraps soon */
}


static void connect_qp(void)
{
    struct ibv_qp_attr attr = {
        .qp_state           = IBV_QPS_RTR,
        .path_mtu           = self.mtu,
        .dest_qp_num        = self.far.qpn,
        .rq_psn             = self.far.psn,
        .max_dest_rd_atomic = 8,
        .min_rnr_timer      = 12,
        .ah_attr            = {
            .is_global = 1,
            .port_num  = 1,
            .grh       = {.sgid_index = self.gid_index, .hop_limit = 64}
        }
    };

    memcpy(attr.ah_attr.grh.dgid.raw, self.far.gid, 16);
    if (self.is_ud) {
        modify(&attr, IBV_QP_STATE, "RTR");
    } else {
        modify(&attr,
               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
               IBV_QP_MIN_RNR_TIMER, "RTR");
    }

    if (self.is_ud) {
        self.ah = ibv_create_ah(self.pd, &attr.ah_attr);
        if (self.ah == NULL) {
            die("ibv_create_ah: %s", strerror(errno));
        }
    }

    memset(&attr, 0, sizeof(attr));
    attr.qp_state      = IBV_QPS_RTS;
    attr.sq_psn        = self.psn;
    attr.timeout       = 17; /* half a second */
    attr.retry_cnt     = 7;
    attr.rnr_retry     = self.rnr_retry;
    attr.max_rd_atomic = 8;
    modify(&attr,
           IBV_QP_STATE | IBV_QP_SQ_PSN |
           (self.is_ud ? 0 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
           "RTS");
}


static void introduce(message_t *message_p)
{
    message_p->qpn  = self.qp->qp_num;
    message_p->psn  = self.psn;
    message_p->rkey = self.mr->rkey;
    message_p->addr = (uintptr_t)self.memory + GUARD;
    memcpy(message_p->gid, self.gid.raw, 16);
}


/* @return 0 and a completion, or a sentence */
static int wait_for(struct ibv_wc *wc_p, char *text, size_t size)
{
    time_t end = time(NULL) + WAIT;
    int count;

    do {
        count = ibv_poll_cq(self.cq, 1, wc_p);
        if (count > 0) {
            return 0;
        }
        if (count == 0) {
            usleep(100); /* the other side may need this processor */
        }
    } while ((count == 0) && (time(NULL) < end));

    snprintf(text, size, "no completion after %d s", WAIT);
    return 1;
}


static void post_recv(uint32_t offset, uint32_t length)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)self.memory + GUARD + offset,
        .length = length,
        .lkey   = self.mr->lkey
    };
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;
    int ret = ibv_post_recv(self.qp, &wr, &bad);

    if (ret != 0) {
        die("ibv_post_recv: %s", strerror(ret));
    }
}


/* The side that waits: a completion of a receive as announced? */
static void expect(message_t *m)
{
    uint32_t grh  = self.is_ud ? GRH : 0;
    int has_imm;
    struct ibv_wc wc;

    m->failed = wait_for(&wc, m->text, sizeof(m->text));
    if (m->failed) {
        return;
    }

    has_imm   = (wc.status == IBV_WC_SUCCESS) &&
                (wc.wc_flags & IBV_WC_WITH_IMM);
    m->failed = 1;
    if (m->command == EXPECT_BAD) {
        m->failed = (wc.status == IBV_WC_SUCCESS) ||
                    (wc.status == IBV_WC_WR_FLUSH_ERR);
        snprintf(m->text, sizeof(m->text), "the receiver has %s",
                 ibv_wc_status_str(wc.status));
    } else if (wc.status != IBV_WC_SUCCESS) {
        snprintf(m->text, sizeof(m->text), "receive: %s",
                 ibv_wc_status_str(wc.status));
    } else if (wc.byte_len != m->length + grh) {
        snprintf(m->text, sizeof(m->text), "receive: %u bytes, not %u",
                 wc.byte_len, m->length + grh);
    } else if (has_imm != (int)m->has_imm) {
        snprintf(m->text, sizeof(m->text), "receive: immediate %d, not %u",
                 has_imm, m->has_imm);
    } else if (has_imm && (ntohl(wc.imm_data) != m->imm)) {
        snprintf(m->text, sizeof(m->text), "receive: immediate 0x%x, not 0x%x",
                 ntohl(wc.imm_data), m->imm);
    } else if (self.is_ud && (wc.src_qp != self.far.qpn)) {
        snprintf(m->text, sizeof(m->text), "receive: from 0x%x, not 0x%x",
                 wc.src_qp, self.far.qpn);
    } else {
        m->failed = 0;
    }
}


/* A window for the memory [offset, offset + length), or none: length is 0 */
static void bind_window(message_t *m)
{
    struct ibv_send_wr wr = {.send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    if (m->command == BIND) {
        if (self.mw != NULL) {
            ibv_dealloc_mw(self.mw);
        }
        self.mw = ibv_alloc_mw(self.pd, IBV_MW_TYPE_2);
        if (self.mw == NULL) {
            die("ibv_alloc_mw: %s", strerror(errno));
        }
        wr.opcode                            = IBV_WR_BIND_MW;
        wr.bind_mw.mw                        = self.mw;
        wr.bind_mw.rkey                      = ibv_inc_rkey(self.mw->rkey);
        wr.bind_mw.bind_info.mr              = self.mr;
        wr.bind_mw.bind_info.addr            = (uintptr_t)self.memory + GUARD +
                                               m->offset;
        wr.bind_mw.bind_info.length          = m->length;
        wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                               IBV_ACCESS_REMOTE_READ;
        m->rkey                              = wr.bind_mw.rkey;
    } else {
        wr.opcode          = IBV_WR_LOCAL_INV;
        wr.invalidate_rkey = self.mw->rkey;
        m->rkey            = self.mw->rkey;
    }

    m->failed = 1;
    if (ibv_post_send(self.qp, &wr, &bad)) {
        snprintf(m->text, sizeof(m->text), "ibv_post_send: %s",
                 strerror(errno));
    } else if (!wait_for(&wc, m->text, sizeof(m->text))) {
        m->failed     = wc.status != IBV_WC_SUCCESS;
        self.mw->rkey = m->rkey;
        snprintf(m->text, sizeof(m->text), "window: %s",
                 ibv_wc_status_str(wc.status));
    }
}


static void serve(void)
{
    message_t m;
    uint64_t number;

    while (listen_to(&m) && (m.command != DONE)) {
        m.failed  = 0;
        m.text[0] = '\0';
        switch (m.command) {
        case NEW_RC:
        case NEW_UD:
            self.far       = m;
            self.rnr_retry = 7;
            create_qp(m.command == NEW_UD);
            connect_qp();
            introduce(&m);
            break;
        case FILL:
            fill(m.seed, m.offset, m.length);
            break;
        case RECEIVE:
            post_recv(m.offset, m.length);
            break;
        case EXPECT:
        case EXPECT_BAD:
            expect(&m);
            break;
        case COMPARE:
            if (self.is_ud) { /* how it came is not what is compared */
                memset(self.memory + GUARD, 0xa5, GRH);
            }
            m.failed = compare(m.seed, m.offset, m.length, m.text,
                               sizeof(m.text));
            break;
        case STORE:
            memcpy(self.memory + GUARD + m.offset, &m.number, 8);
            break;
        case LOAD:
            memcpy(&number, self.memory + GUARD + m.offset, 8);
            m.number = number;
            break;
        case BIND:
        case FREE:
            bind_window(&m);
            break;
        default:
            die("unknown command");
        }
        talk(&m);
    }
}


/* Have the other side do something. @return whether it did */
static int ask(message_t *m)
{
    talk(m);
    if (!listen_to(m)) {
        die("the peer is gone");
    }
    return !m->failed;
}


static void renew(int is_ud, unsigned rnr_retry)
{
    message_t m = {.command = is_ud ? NEW_UD : NEW_RC};

    self.rnr_retry = rnr_retry;
    create_qp(is_ud);
    introduce(&m);
    ask(&m);
    self.far = m;
    connect_qp();
}


typedef struct operation {
    const char         *name;
    enum ibv_wr_opcode  opcode;
    int                 has_imm;
    int                 has_recv;
} operation_t;

static char why[200];


static int try_post(enum ibv_wr_opcode opcode, uint32_t local, uint32_t remote,
                    uint32_t length, uint32_t imm,
                    uint64_t compare_add, uint64_t swap, int is_signaled)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)self.memory + GUARD + local,
        .length = length,
        .lkey   = self.mr->lkey ^ self.wrong
    };
    struct ibv_send_wr wr = {
        .sg_list    = &sge,
        .num_sge    = (length != 0),
        .opcode     = opcode,
        .send_flags = is_signaled ? IBV_SEND_SIGNALED : 0,
        .imm_data   = htonl(imm)
    };
    struct ibv_send_wr *bad;

    if (self.is_ud) {
        wr.wr.ud.ah          = self.ah;
        wr.wr.ud.remote_qpn  = self.far.qpn;
        wr.wr.ud.remote_qkey = 0x11111111;
    } else if ((opcode == IBV_WR_ATOMIC_CMP_AND_SWP) ||
               (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)) {
        wr.wr.atomic.remote_addr = self.far.addr + remote;
        wr.wr.atomic.rkey        = self.far.rkey;
        wr.wr.atomic.compare_add = compare_add;
        wr.wr.atomic.swap        = swap;
    } else {
        wr.wr.rdma.remote_addr = self.far.addr + remote;
        wr.wr.rdma.rkey        = self.far.rkey;
    }

    return ibv_post_send(self.qp, &wr, &bad);
}


static void post(enum ibv_wr_opcode opcode, uint32_t local, uint32_t remote,
                 uint32_t length, uint32_t imm, int is_signaled)
{
    int ret = try_post(opcode, local, remote, length, imm, 0, 0, is_signaled);

    if (ret != 0) {
        die("ibv_post_send: %s", strerror(ret));
    }
}


static int finish(enum ibv_wc_status status)
{
    struct ibv_wc wc;

    if (wait_for(&wc, why, sizeof(why))) {
        return 0;
    }
    if (wc.status != status) {
        snprintf(why, sizeof(why), "completion: %s, not %s",
                 ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
        return 0;
    }
    return 1;
}


/* As finish(), of two that may be. @return which of them, or 0 */
static enum ibv_wc_status finish_either(enum ibv_wc_status first,
                                        enum ibv_wc_status second)
{
    struct ibv_wc wc;

    if (wait_for(&wc, why, sizeof(why))) {
        return 0;
    }
    if ((wc.status != first) && (wc.status != second)) {
        snprintf(why, sizeof(why), "completion: %s",
                 ibv_wc_status_str(wc.status));
        return 0;
    }
    return wc.status;
}


/* The other side's COMPARE, EXPECT... @return whether it is content */
static int check(command_t command, uint32_t seed, uint32_t offset,
                 uint32_t length, int has_imm, uint32_t imm)
{
    message_t m = {
        .command = command,
        .seed    = seed,
        .offset  = offset,
        .length  = length,
        .has_imm = has_imm,
        .imm     = imm
    };

    if (ask(&m)) {
        return 1;
    }
    snprintf(why, sizeof(why), "%s", m.text);
    return 0;
}


static int one(const operation_t *op, uint32_t length, uint32_t seed)
{
    uint32_t imm = seed * 0x01010101;
    uint32_t to  = self.is_ud ? 0 : seed % 8; /* any alignment */
    uint32_t grh = self.is_ud ? GRH : 0;

    if (op->opcode == IBV_WR_RDMA_READ) {
        check(FILL, seed, to, length, 0, 0);
        fill(0, 0, 0);
        post(op->opcode, 0, to, length, 0, 1);
        return finish(IBV_WC_SUCCESS) &&
               !compare(seed, 0, length, why, sizeof(why));
    }

    check(FILL, 0, 0, 0, 0, 0);
    if (op->has_recv) {
        check(RECEIVE, 0, to, grh + length, 0, 0);
    }
    fill(seed, 0, length);
    post(op->opcode, 0, to, length, imm, 1);
    return finish(IBV_WC_SUCCESS) &&
           (!op->has_recv ||
            check(EXPECT, 0, 0, length, op->has_imm, imm)) &&
           check(COMPARE, seed, to + grh, length, 0, 0);
}


static int failures;


static void report(const char *name, unsigned count, int is_ok)
{
    if (is_ok) {
        printf("%s %u ok\n", name, count);
    } else {
        printf("%s %u failed: %s\n", name, count, why);
        ++failures;
    }
    fflush(stdout);
}


static void lengths(const operation_t *op)
{
    uint32_t mtu           = self.mtu_bytes;
    const uint32_t rc[]    = {0,       1,           2,  3, 64, mtu - 1, mtu,
                              mtu + 1, 2 * mtu, 10 * mtu + 3, LONGEST};
    const uint32_t ud[]    = {0, 1, 2, 3, 64, mtu - 1, mtu};
    const uint32_t *length = self.is_ud ? ud : rc;
    unsigned number        = self.is_ud ? 7 : 11;
    char sentence[sizeof(why)];
    unsigned i;

    for (i = 0; i < number; ++i) {
        if (!one(op, length[i], 1 + i)) {
            snprintf(sentence, sizeof(sentence), "length %u: %.150s", length[i],
                     why);
            strcpy(why, sentence);
            report(op->name, i, 0);
            renew(self.is_ud, 7);
            return;
        }
    }
    report(op->name, number, 1);
}


static uint64_t far_number(command_t command, uint64_t number)
{
    message_t m = {.command = command, .offset = 8, .number = number};

    ask(&m);
    return m.number;
}


/* An atomic that finds @a before must leave @a after. */
static int atomic(enum ibv_wr_opcode opcode, uint64_t compare_add,
                  uint64_t swap, uint64_t before, uint64_t after)
{
    uint64_t old = ~before;
    uint64_t now;

    far_number(STORE, before);
    memcpy(self.memory + GUARD, &old, 8);
    if (try_post(opcode, 0, 8, 8, 0, compare_add, swap, 1) ||
        !finish(IBV_WC_SUCCESS)) {
        return 0;
    }
    memcpy(&old, self.memory + GUARD, 8);
    now = far_number(LOAD, 0);
    if ((old != before) || (now != after)) {
        snprintf(why, sizeof(why),
                 "0x%llx: old value 0x%llx, new one 0x%llx, not 0x%llx",
                 (long long)before, (long long)old, (long long)now,
                 (long long)after);
        return 0;
    }
    return 1;
}


static void atomics(void)
{
    const uint64_t number = 0x0123456789abcdef;
    const uint64_t other  = 0xfedcba9876543210;

    check(FILL, 0, 0, 0, 0, 0);
    report("fetch-add", 4,
           atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, number, number + 1) &&
           atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, number, number) &&
           atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, other, 0, number,
                  number + other) &&
           atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, ~0ull, 0));
    report("cmp-swap", 3,
           atomic(IBV_WR_ATOMIC_CMP_AND_SWP, number, other, number, other) &&
           atomic(IBV_WR_ATOMIC_CMP_AND_SWP, number + 1, other, number,
                  number) &&
           atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 0, ~0ull, 0, ~0ull));
    far_number(STORE, 0xa5a5a5a5a5a5a5a5);
    report("atomics change nothing else", 1, check(COMPARE, 0, 0, 0, 0, 0));
}


/* Many messages under way: each is a slice of one pattern */
static void window(const operation_t *op, uint32_t slice)
{
    const uint32_t count = 48;
    const uint32_t total = count * slice;
    int ok               = 1;
    char name[64];
    uint32_t i;

    snprintf(name, sizeof(name), "%s x %u of %u", op->name, count, slice);
    if (op->opcode == IBV_WR_RDMA_READ) {
        check(FILL, 77, 0, total, 0, 0);
        fill(0, 0, 0);
    } else {
        check(FILL, 0, 0, 0, 0, 0);
        fill(77, 0, total);
    }
    for (i = 0; op->has_recv && (i < count); ++i) {
        check(RECEIVE, 0, i * slice, slice, 0, 0);
    }
    for (i = 0; i < count; ++i) {
        post(op->opcode, i * slice, i * slice, slice, i, i == count - 1);
    }
    ok = finish(IBV_WC_SUCCESS);
    for (i = 0; ok && op->has_recv && (i < count); ++i) {
        ok = check(EXPECT, 0, 0, slice, op->has_imm, i);
    }
    if (op->opcode == IBV_WR_RDMA_READ) {
        ok = ok && !compare(77, 0, total, why, sizeof(why));
    } else {
        ok = ok && check(COMPARE, 77, 0, total, 0, 0);
    }
    report(name, count, ok);
    if (!ok) {
        renew(0, 7);
    }
}


/* Answers that must not be written to where the requester wants them. It is the
 * last to find out. */
static void wrong_places(void)
{
    uint64_t number = 0x0505050505050505;
    int ok;

    renew(0, 7);
    far_number(STORE, 5);
    memcpy(self.memory + GUARD, &number, 8);
    self.wrong = 0x5a5a00;
    ok = !try_post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 8, 0, 1, 0, 1) &&
         finish(IBV_WC_LOC_PROT_ERR) && (far_number(LOAD, 0) == 6) &&
         !memcmp(self.memory + GUARD, &number, 8);
    report("atomic with a wrong lkey is executed", 1, ok);

    renew(0, 7);
    /* Some do not even accept it */
    ok = try_post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 9, 8, 0, 1, 0, 1) ||
         finish(IBV_WC_REM_INV_REQ_ERR);
    report("atomic with that on an odd address is refused", 1, ok);

    renew(0, 7);
    fill(5, 0, 3000);
    post(IBV_WR_RDMA_READ, 0, 0, 3000, 0, 1);
    ok = finish(IBV_WC_LOC_PROT_ERR) && !compare(5, 0, 3000, why, sizeof(why));
    report("read with a wrong lkey fails", 1, ok);

    renew(0, 7);
    self.far.rkey = self.far.rkey ^ 0x5a5a00;
    post(IBV_WR_RDMA_READ, 0, 0, 3000, 0, 1);
    ok = finish(IBV_WC_REM_ACCESS_ERR);
    report("read with that and a wrong rkey is refused", 1, ok);
    self.wrong = 0;
}


/* What may not work does not, and changes nothing */
static void refusals(void)
{
    enum ibv_wc_status status;
    uint32_t rkey;
    int ok;

    check(FILL, 0, 0, 0, 0, 0);
    fill(5, 0, 8 * 1024);
    rkey          = self.far.rkey;
    self.far.rkey = rkey ^ 0x5a5a00;
    post(IBV_WR_RDMA_WRITE, 0, 0, 3000, 0, 1);
    ok = finish(IBV_WC_REM_ACCESS_ERR) && check(COMPARE, 0, 0, 0, 0, 0);
    report("write with a wrong rkey is refused", 1, ok);

    renew(0, 7);
    rkey          = self.far.rkey;
    self.far.rkey = rkey ^ 0x5a5a00;
    post(IBV_WR_RDMA_READ, 0, 0, 3000, 0, 1);
    ok = finish(IBV_WC_REM_ACCESS_ERR) &&
         !compare(5, 0, 8 * 1024, why, sizeof(why));
    report("read with a wrong rkey is refused", 1, ok);

    renew(0, 7);
    post(IBV_WR_RDMA_WRITE, 0, ROOM - 1000, 3000, 0, 1);
    ok = finish(IBV_WC_REM_ACCESS_ERR) && check(COMPARE, 0, 0, 0, 0, 0);
    report("write over the end is refused", 1, ok);

    renew(0, 7);
    /* Some do not even accept it */
    ok = (try_post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 4, 8, 0, 1, 0, 1) ||
          finish(IBV_WC_REM_INV_REQ_ERR)) && check(COMPARE, 0, 0, 0, 0, 0);
    report("atomic on an odd address is refused", 1, ok);

    renew(0, 7);
    check(RECEIVE, 0, 0, 0, 0, 0);
    self.far.rkey = self.far.rkey ^ 0x5a5a00;
    post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 100, 1, 1);
    ok = finish(IBV_WC_REM_ACCESS_ERR) && check(EXPECT_BAD, 0, 0, 0, 0, 0) &&
         check(COMPARE, 0, 0, 0, 0, 0);
    report("write-imm with a wrong rkey ends the receive", 1, ok);

    wrong_places();

    renew(0, 7);
    check(RECEIVE, 0, 0, 1000, 0, 0);
    post(IBV_WR_SEND, 0, 0, 1001, 0, 1);
    /* IBTA volume 1, "Responder error behavior": the first. rxe: the second */
    status = finish_either(IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR);
    ok     = (status != 0) && check(EXPECT_BAD, 0, 0, 0, 0, 0);
    report((status == IBV_WC_REM_OP_ERR) ?
                   "send longer than the receive is refused as a remote"
                   " operation error" :
                   "send longer than the receive is refused", 1, ok);

    renew(0, 1);
    post(IBV_WR_SEND, 0, 0, 100, 0, 1);
    ok = finish(IBV_WC_RNR_RETRY_EXC_ERR);
    report("send without a receive ends", 1, ok);

    /* The receive comes while the sender waits */
    renew(0, 7);
    check(FILL, 0, 0, 0, 0, 0);
    fill(6, 0, 5000);
    post(IBV_WR_SEND, 0, 0, 5000, 0, 1);
    usleep(200000);
    check(RECEIVE, 0, 0, 5000, 0, 0);
    ok = finish(IBV_WC_SUCCESS) && check(EXPECT, 0, 0, 5000, 0, 0) &&
         check(COMPARE, 6, 0, 5000, 0, 0);
    report("send waits for a late receive", 1, ok);
}


/* Have the other side bind a window, or free it. @return whether it did */
static int window_of(command_t command, uint32_t offset, uint32_t length)
{
    message_t m = {.command = command, .offset = offset, .length = length};

    if (!ask(&m)) {
        snprintf(why, sizeof(why), "%s", m.text);
        return 0;
    }
    self.far.rkey = m.rkey;
    return 1;
}


static void windows(void)
{
    const uint32_t offset = 1003, length = 7001;
    uint32_t rkey;
    int ok;

    renew(0, 7);
    check(FILL, 0, 0, 0, 0, 0);
    fill(8, 0, length);
    ok = window_of(BIND, offset, length);
    if (ok) {
        post(IBV_WR_RDMA_WRITE, 0, offset, length, 0, 1);
        ok = finish(IBV_WC_SUCCESS) && check(COMPARE, 8, offset, length, 0, 0);
    }
    report("write through a window", 1, ok);

    if (ok) {
        check(FILL, 9, offset, length, 0, 0);
        fill(0, 0, 0);
        post(IBV_WR_RDMA_READ, 0, offset, length, 0, 1);
        ok = finish(IBV_WC_SUCCESS) && !compare(9, 0, length, why, sizeof(why));
    }
    report("read through a window", 1, ok);

    check(FILL, 0, 0, 0, 0, 0);
    post(IBV_WR_RDMA_WRITE, 0, offset + 1, length, 0, 1);
    ok = finish(IBV_WC_REM_ACCESS_ERR) && check(COMPARE, 0, 0, 0, 0, 0);
    report("write over the end of a window is refused", 1, ok);

    renew(0, 7);
    ok = window_of(BIND, offset, length) && window_of(FREE, 0, 0);
    if (ok) {
        post(IBV_WR_RDMA_WRITE, 0, offset, length, 0, 1);
        ok = finish(IBV_WC_REM_ACCESS_ERR) && check(COMPARE, 0, 0, 0, 0, 0);
    }
    report("write through a window that was freed is refused", 1, ok);

    renew(0, 7);
    check(FILL, 0, 0, 0, 0, 0);
    fill(8, 0, 100);
    ok = window_of(BIND, offset, length);
    if (ok) {
        check(RECEIVE, 0, 0, 100, 0, 0);
        rkey = self.far.rkey; /* where others have immediate data */
        post(IBV_WR_SEND_WITH_INV, 0, 0, 100, ntohl(rkey), 1);
        ok = finish(IBV_WC_SUCCESS) && check(EXPECT, 0, 0, 100, 0, 0) &&
             check(COMPARE, 8, 0, 100, 0, 0);
    }
    report("send frees a window", 1, ok);

    post(IBV_WR_RDMA_WRITE, 0, offset, length, 0, 1);
    ok = ok && finish(IBV_WC_REM_ACCESS_ERR) &&
         check(COMPARE, 8, 0, 100, 0, 0);
    report("write through that window is refused", 1, ok);

    renew(0, 7);
    check(RECEIVE, 0, 0, 100, 0, 0);
    rkey = self.far.rkey;
    post(IBV_WR_SEND_WITH_INV, 0, 0, 100, ntohl(rkey), 1);
    ok = finish(IBV_WC_REM_ACCESS_ERR);
    report("send frees no region", 1, ok);
}


static void run(void)
{
    static const operation_t send      = {"send", IBV_WR_SEND, 0, 1};
    static const operation_t send_imm  = {"send-imm", IBV_WR_SEND_WITH_IMM, 1,
                                          1};
    static const operation_t write     = {"write", IBV_WR_RDMA_WRITE, 0, 0};
    static const operation_t write_imm = {"write-imm",
                                          IBV_WR_RDMA_WRITE_WITH_IMM, 1, 1};
    static const operation_t read      = {"read", IBV_WR_RDMA_READ, 0, 0};
    static const operation_t ud        = {"ud-send", IBV_WR_SEND, 0, 1};
    static const operation_t ud_imm    = {"ud-send-imm", IBV_WR_SEND_WITH_IMM,
                                          1, 1};
    message_t m                        = {.command = DONE};

    if (self.only_windows) {
        windows();
        talk(&m);
        return;
    }

    renew(0, 7);
    lengths(&send);
    lengths(&send_imm);
    lengths(&write);
    lengths(&write_imm);
    lengths(&read);
    atomics();
    window(&send, 100);
    window(&send, 3001);
    window(&write, 5000);
    window(&write_imm, 1025);
    window(&read, 3001);
    refusals();
    renew(1, 7);
    lengths(&ud);
    lengths(&ud_imm);
    talk(&m);
}


static void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int i;

    for (i = 0; (list != NULL) && (list[i] != NULL); ++i) {
        if ((name == NULL) || !strcmp(ibv_get_device_name(list[i]), name)) {
            self.context = ibv_open_device(list[i]);
            break;
        }
    }
    if (self.context == NULL) {
        die("no device %s", name ? name : "");
    }

    self.memory = aligned_alloc(4096, (ROOM + 4095) & ~4095);
    self.pd     = ibv_alloc_pd(self.context);
    self.cq     = ibv_create_cq(self.context, 2 * DEPTH, NULL, NULL, 0);
    if ((self.pd == NULL) || (self.cq == NULL) || (self.memory == NULL)) {
        die("no protection domain, queue or memory: %s", strerror(errno));
    }
    self.mr = ibv_reg_mr(self.pd, self.memory, ROOM,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                         IBV_ACCESS_MW_BIND);
    if (self.mr == NULL) {
        die("ibv_reg_mr: %s", strerror(errno));
    }
    if (ibv_query_gid(self.context, 1, self.gid_index, &self.gid)) {
        die("no GID %d", self.gid_index);
    }
}


static int dial(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags    = host ? 0 : AI_PASSIVE,
                             .ai_family   = AF_INET};
    time_t end            = time(NULL) + 60;
    int on                = 1;
    int fd, ret;
    struct addrinfo *info;

    ret = getaddrinfo(host, port, &hints, &info);
    if (ret != 0) {
        die("%s: %s", host, gai_strerror(ret));
    }
    fd = socket(info->ai_family, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (host == NULL) {
        if (bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, 1)) {
            die("port %s: %s", port, strerror(errno));
        }
        fd = accept(fd, NULL, NULL);
    } else {
        while (connect(fd, info->ai_addr, info->ai_addrlen)) {
            if (time(NULL) > end) {
                die("%s: %s", host, strerror(errno));
            }
            close(fd);
            usleep(200000);
            fd = socket(info->ai_family, SOCK_STREAM, 0);
        }
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    freeaddrinfo(info);
    return fd;
}


int main(int argc, char **argv)
{
    const char *device = NULL;
    const char *port   = "18600";
    int option;

    while ((option = getopt(argc, argv, "d:g:m:p:w")) != -1) {
        switch (option) {
        case 'd':
            device = optarg;
            break;
        case 'g':
            self.gid_index = atoi(optarg);
            break;
        case 'm':
            self.mtu_bytes = atoi(optarg);
            break;
        case 'p':
            port = optarg;
            break;
        case 'w':
            self.only_windows = 1;
            break;
        default:
            return 2;
        }
    }

    /* 256 is 1 */
    self.mtu = __builtin_ctz(self.mtu_bytes) - 7;
    open_device(device);
    self.peer = dial(argv[optind], port);
    if (argv[optind] == NULL) {
        serve();
    } else {
        run();
    }
    destroy_qp();
    return failures != 0;
}
