/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keys with layouts between two programs: each side's data are in pieces, by a
 * list or by strides, or have signatures on the wire. Each byte is compared.
 *
 *   layouts [-g GID-INDEX] [-m MTU] [-p PORT] [-u PORT]            waits
 *   layouts [-g GID-INDEX] [-m MTU] [-p PORT] [-u PORT] [-r WHAT] HOST  asks
 *
 * What goes between them comes from this UDP port, of who asks from the next.
 *
 * WHAT is an access at the end that has to be refused: "behind" the last byte,
 * by a key that is "free", by an entry that leads to "nowhere" or, of one's
 * own, "here"; or one that a "wrong" signature in memory stops.
 */

#define _GNU_SOURCE
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    SIZE    = 1 << 20,
    ENTRIES = 40,
    TURNS   = 5000,
    LAYOUTS = 5,  /* list, strides, and a list with an entry of nothing; with
                     signatures of blocks on the wire, and in memory */
    WIRE    = 3,
    MEMORY  = 4,
    BLOCK   = 512,
    BLOCKS  = 65, /* the last packet of 256 bytes has a signature only */
    CRC     = 4,
    WAIT    = 120 /* seconds */
};

/** What a side tells the other one. */
typedef struct peer {
    uint32_t qpn;
    uint32_t keys[LAYOUTS];
    uint8_t  gid[16];
} peer_t;

/** What the one who asks wants. */
typedef struct request {
    char     what;   /* Fill, Compare, Receive, Wait, Errors, Invalidate,
                        Quit */
    uint32_t layout;
    uint32_t offset;
    uint32_t length;
    uint32_t seed;
} request_t;

static struct {
    struct ibv_context *context;
    struct ibv_pd      *pd;
    struct ibv_cq      *cq;
    struct ibv_mr      *mr;
    struct ibv_mr      *bind; /* for windows */
    struct ibv_qp      *qp;
    struct mlx5dv_mkey *keys[LAYOUTS];
    uint8_t            *memory;
    uint32_t            place[LAYOUTS][SIZE]; /* of each byte, in memory */
    uint32_t            total[LAYOUTS];
    int                 gid_index;
    int                 mtu;
    int                 sport;
    int                 socket;
    peer_t              far;
} self = {.gid_index = 3, .mtu = 1024};


static void die(const char *text)
{
    fprintf(stderr, "layouts: %s\n", text);
    exit(2);
}

static void check(int is_good, const char *text)
{
    if (!is_good) {
        die(text);
    }
}

static uint8_t pattern(uint32_t seed, uint32_t i)
{
    uint32_t x = (seed * 2654435761u) ^ (i * 2246822519u);

    return (x ^ (x >> 15)) >> 3;
}

static void fill(const request_t *r)
{
    uint32_t i;

    memset(self.memory, 0xa5, SIZE);
    for (i = 0; i < r->length; ++i) {
        self.memory[self.place[r->layout][r->offset + i]] = pattern(r->seed, i);
    }
}

/* Whether these bytes are as fill() makes them, and all others as well */
static int compare(const request_t *r)
{
    uint32_t others = 0, i;

    for (i = 0; i < r->length; ++i) {
        if (self.memory[self.place[r->layout][r->offset + i]] !=
            pattern(r->seed, i)) {
            return 0;
        }
        self.memory[self.place[r->layout][r->offset + i]] = 0xa5;
    }
    for (i = 0; i < SIZE; ++i) {
        others += self.memory[i] != 0xa5;
    }
    return others == 0;
}

static enum ibv_wc_status wait_status(void)
{
    time_t end = time(NULL) + WAIT;
    struct ibv_wc wc;
    int num;

    while ((num = ibv_poll_cq(self.cq, 1, &wc)) == 0) {
        check(time(NULL) < end, "no completion");
    }
    check(num == 1, "a queue that can't be polled");
    return wc.status;
}

static void add_places(unsigned layout, uint64_t offset, uint32_t length)
{
    uint32_t i;

    for (i = 0; i < length; ++i) {
        self.place[layout][self.total[layout]++] = offset + i;
    }
}

static void make_signed(unsigned layout)
{
    struct ibv_qp_ex *ex    = ibv_qp_to_qp_ex(self.qp);
    struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
    struct mlx5dv_mkey_init_attr attr = {
        .pd           = self.pd,
        .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
                        MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
        .max_entries  = 2
    };
    struct mlx5dv_mkey_conf_attr conf = {.conf_flags = 0};
    struct mlx5dv_sig_crc crc = {MLX5DV_SIG_CRC_TYPE_CRC32, 0xffffffff};
    struct mlx5dv_sig_block_domain domain = {
        .sig_type   = MLX5DV_SIG_TYPE_CRC,
        .sig.crc    = &crc,
        .block_size = MLX5DV_BLOCK_SIZE_512
    };
    struct mlx5dv_sig_block_attr sig = {
        .mem        = (layout == MEMORY) ? &domain : NULL,
        .wire       = (layout == WIRE) ? &domain : NULL,
        .check_mask = MLX5DV_SIG_MASK_CRC32
    };
    uint64_t base           = (uintptr_t)self.memory;
    struct ibv_sge list[2]  = {
        {base + 600001, 777, self.mr->lkey},
        {base + 10000, BLOCKS * (BLOCK + CRC) - 777, self.mr->lkey}
    };

    self.keys[layout] = mlx5dv_create_mkey(&attr);
    check(self.keys[layout] != NULL, "no key with signatures");
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(dv, self.keys[layout], 3, &conf);
    mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_LOCAL_WRITE |
                                        IBV_ACCESS_REMOTE_WRITE |
                                        IBV_ACCESS_REMOTE_READ);
    mlx5dv_wr_set_mkey_layout_list(dv, 2, list);
    mlx5dv_wr_set_mkey_sig_block(dv, &sig);
    check(ibv_wr_complete(ex) == 0, "signatures that can't be posted");
    check(wait_status() == IBV_WC_SUCCESS, "signatures that are refused");
    add_places(layout, 600001, 777);
    add_places(layout, 10000, BLOCKS * BLOCK - 777);
}

static void make_layout(unsigned layout)
{
    struct ibv_qp_ex *ex    = ibv_qp_to_qp_ex(self.qp);
    struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
    struct mlx5dv_mkey_init_attr attr = {
        .pd           = self.pd,
        .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
        .max_entries  = ENTRIES
    };
    uint64_t base = (uintptr_t)self.memory;
    struct mlx5dv_mr_interleaved strides[2] = {
        {base + 1000, 3, 4, self.mr->lkey},
        {base + SIZE / 2, 70, 7, self.mr->lkey}
    };
    struct ibv_sge list[ENTRIES];
    unsigned i, turn;

    self.keys[layout] = mlx5dv_create_mkey(&attr);
    check(self.keys[layout] != NULL, "no key");
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    if (layout == 1) {
        mlx5dv_wr_mr_interleaved(dv, self.keys[layout],
                                 IBV_ACCESS_LOCAL_WRITE |
                                 IBV_ACCESS_REMOTE_WRITE |
                                 IBV_ACCESS_REMOTE_READ, TURNS, 2, strides);
        for (turn = 0; turn < TURNS; ++turn) {
            add_places(layout, 1000 + turn * 7, 3);
            add_places(layout, SIZE / 2 + turn * 77, 70);
        }
    } else {
        for (i = 0; i < ENTRIES; ++i) {
            list[i].addr   = base + (ENTRIES - i) * 20000;
            list[i].length = 8 + i * 311;
            list[i].lkey   = (layout == 2) && (i == 1) ? 0x123456 :
                                                         self.mr->lkey;
            add_places(layout, (ENTRIES - i) * 20000, list[i].length);
        }
        mlx5dv_wr_mr_list(dv, self.keys[layout],
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
                          ENTRIES, list);
    }
    check(ibv_wr_complete(ex) == 0, "a layout that can't be posted");
    check(wait_status() == IBV_WC_SUCCESS, "a layout that is refused");
}

static void transfer(void *out, const void *in, size_t size)
{
    check(send(self.socket, in, size, MSG_NOSIGNAL) == (ssize_t)size,
          "the peer has gone");
    check(recv(self.socket, out, size, MSG_WAITALL) == (ssize_t)size,
          "the peer has gone");
}

static void make_qp(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .cap            = {.max_send_wr     = 16,
                           .max_recv_wr     = 16,
                           .max_send_sge    = 1,
                           .max_recv_sge    = 1,
                           .max_inline_data = 828},
        .qp_type        = IBV_QPT_RC,
        .comp_mask      = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd             = self.pd,
        .send_cq        = self.cq,
        .recv_cq        = self.cq,
        .send_ops_flags = IBV_QP_EX_WITH_SEND
    };
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask      = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
                          MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
        .create_flags   = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
                          MLX5DV_QP_CREATE_SIG_PIPELINING,
        .send_ops_flags = MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
                          MLX5DV_QP_EX_WITH_MR_LIST |
                          MLX5DV_QP_EX_WITH_MKEY_CONFIGURE
    };

    self.qp = mlx5dv_create_qp(self.context, &attr, &dv);
    check(self.qp != NULL, "no queue pair");
}

static void connect_to(const peer_t *far)
{
    struct ibv_qp_attr attr = {
        .qp_state           = IBV_QPS_INIT,
        .port_num           = 1,
        .qp_access_flags    = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                              IBV_ACCESS_REMOTE_ATOMIC,
        .dest_qp_num        = far->qpn,
        .path_mtu           = (self.mtu == 256) ? IBV_MTU_256 : IBV_MTU_1024,
        .max_dest_rd_atomic = 4,
        .max_rd_atomic      = 4,
        .min_rnr_timer      = 1,
        .timeout            = 14,
        .retry_cnt          = 7,
        .rnr_retry          = 7,
        .ah_attr            = {.is_global = 1,
                               .port_num  = 1,
                               .grh       = {.sgid_index = self.gid_index,
                                             .hop_limit  = 64}}
    };

    memcpy(attr.ah_attr.grh.dgid.raw, far->gid, sizeof(far->gid));
    check(ibv_modify_qp(self.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                        IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
          "not INIT");
    attr.qp_state = IBV_QPS_RTR;
    check(ibv_modify_qp(self.qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                        IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "not RTR");
    attr.qp_state = IBV_QPS_RTS;
    check(ibv_modify_qp(self.qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC) == 0, "not RTS");
    if (self.sport != 0) {
        check(mlx5dv_modify_qp_udp_sport(self.qp, self.sport) == 0,
              "not the UDP source port");
    }
}

static void setup(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    peer_t near              = {.qpn = 0};
    union ibv_gid gid;
    unsigned i;

    check((list != NULL) && (list[0] != NULL), "no device");
    self.context = ibv_open_device(list[0]);
    check(self.context != NULL, "no context");
    self.pd     = ibv_alloc_pd(self.context);
    self.cq     = ibv_create_cq(self.context, 64, NULL, NULL, 0);
    self.memory = aligned_alloc(4096, SIZE);
    check((self.pd != NULL) && (self.cq != NULL) && (self.memory != NULL),
          "no objects");
    /* peers may do here what a key says, and nothing by the region's */
    self.mr = ibv_reg_mr(self.pd, self.memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
    self.bind = ibv_reg_mr(self.pd, self.memory, 4096,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    check((self.mr != NULL) && (self.bind != NULL), "no region");
    check(ibv_query_gid(self.context, 1, self.gid_index, &gid) == 0, "no GID");
    make_qp();
    near.qpn = self.qp->qp_num;
    memcpy(near.gid, gid.raw, sizeof(near.gid));
    transfer(&self.far, &near, sizeof(near));
    connect_to(&self.far);
    for (i = 0; i < LAYOUTS; ++i) {
        if (i < WIRE) {
            make_layout(i);
        } else {
            make_signed(i);
        }
        near.keys[i] = self.keys[i]->rkey;
    }
    transfer(&self.far, &near, sizeof(near));
}

static enum ibv_wc_status post(enum ibv_wr_opcode opcode, unsigned layout,
                               uint64_t offset, uint32_t length, unsigned key,
                               uint64_t remote)
{
    struct ibv_sge sge     = {offset, length, self.keys[layout]->lkey};
    struct ibv_send_wr wr  = {.opcode     = opcode,
                              .sg_list    = &sge,
                              .num_sge    = 1,
                              .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey        = self.far.keys[key];
        wr.wr.atomic.compare_add = 0x0101010101010101;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey        = self.far.keys[key];
    }
    check(ibv_post_send(self.qp, &wr, &bad) == 0, "a request that can't be");
    return wait_status();
}

static int do_request(const request_t *r)
{
    struct ibv_sge sge        = {r->offset, r->length,
                                 self.keys[r->layout]->lkey};
    struct ibv_recv_wr recv   = {.sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr free   = {.opcode          = IBV_WR_LOCAL_INV,
                                 .send_flags      = IBV_SEND_SIGNALED,
                                 .invalidate_rkey = self.keys[r->layout]->rkey};
    struct mlx5dv_mkey_err error;
    struct ibv_recv_wr *bad_recv;
    struct ibv_send_wr *bad_send;

    switch (r->what) {
    case 'F':
        fill(r);
        return 1;
    case 'C':
        return compare(r);
    case 'R':
        fill(&(request_t){.length = 0});
        return ibv_post_recv(self.qp, &recv, &bad_recv) == 0;
    case 'W':
        return wait_status() == IBV_WC_SUCCESS;
    case 'E':
        return (mlx5dv_mkey_check(self.keys[r->layout], &error) == 0) &&
               (error.err_type == MLX5DV_MKEY_NO_ERR);
    case 'I':
        return (ibv_post_send(self.qp, &free, &bad_send) == 0) &&
               (wait_status() == IBV_WC_SUCCESS);
    default:
        return 1;
    }
}

static void serve(void)
{
    request_t request;
    char answer;

    do {
        check(recv(self.socket, &request, sizeof(request), MSG_WAITALL) ==
              sizeof(request), "the peer has gone");
        answer = do_request(&request);
        check(send(self.socket, &answer, 1, MSG_NOSIGNAL) == 1,
              "the peer has gone");
    } while (request.what != 'Q');
}

static void ask(char what, unsigned layout, uint32_t offset, uint32_t length,
                uint32_t seed)
{
    request_t request = {what, layout, offset, length, seed};
    char text[64], answer;

    check(send(self.socket, &request, sizeof(request), MSG_NOSIGNAL) ==
          sizeof(request), "the peer has gone");
    check(recv(self.socket, &answer, 1, MSG_WAITALL) == 1,
          "the peer has gone");
    snprintf(text, sizeof(text), "%c of layout %u at %u, %u bytes", what,
             layout, offset, length);
    check(answer, text);
}

/* A part of a layout of this side, and the same of one of the other side */
static void move(unsigned mine, unsigned theirs, uint32_t offset,
                 uint32_t length)
{
    request_t local = {'F', mine, offset, length, offset + 1};

    fill(&local);
    ask('F', theirs, 0, 0, 0);
    check(post(IBV_WR_RDMA_WRITE, mine, offset, length, theirs, offset) ==
          IBV_WC_SUCCESS, "a write");
    ask('C', theirs, offset, length, offset + 1);

    fill(&(request_t){.length = 0});
    ask('F', theirs, offset, length, offset + 2);
    check(post(IBV_WR_RDMA_READ, mine, offset, length, theirs, offset) ==
          IBV_WC_SUCCESS, "a read");
    local.seed = offset + 2;
    check(compare(&local), "what was read");

    fill(&local);
    ask('R', theirs, offset, length, 0);
    check(post(IBV_WR_SEND, mine, offset, length, 0, 0) == IBV_WC_SUCCESS,
          "a message");
    ask('W', theirs, 0, 0, 0);
    ask('C', theirs, offset, length, offset + 2);
    printf("layouts %u to %u, %u bytes at %u: ok\n", mine, theirs, length,
           offset);
}

/* Signatures that are on the wire only, of both sides: the message is longer */
static void move_signed(void)
{
    const uint32_t length = BLOCKS * BLOCK, wire = BLOCKS * (BLOCK + CRC);
    request_t local       = {'F', WIRE, 0, length, 1};
    struct mlx5dv_mkey_err error;

    fill(&local);
    ask('F', WIRE, 0, 0, 0);
    check(post(IBV_WR_RDMA_WRITE, WIRE, 0, wire, WIRE, 0) == IBV_WC_SUCCESS,
          "a write with signatures");
    ask('C', WIRE, 0, length, 1);

    fill(&(request_t){.length = 0});
    ask('F', WIRE, 0, length, 2);
    check(post(IBV_WR_RDMA_READ, WIRE, 0, wire, WIRE, 0) == IBV_WC_SUCCESS,
          "a read with signatures");
    local.seed = 2;
    check(compare(&local), "what was read with signatures");

    fill(&local);
    ask('R', WIRE, 0, wire, 0);
    check(post(IBV_WR_SEND, WIRE, 0, wire, 0, 0) == IBV_WC_SUCCESS,
          "a message with signatures");
    ask('W', WIRE, 0, 0, 0);
    ask('C', WIRE, 0, length, 2);
    ask('E', WIRE, 0, 0, 0);
    check((mlx5dv_mkey_check(self.keys[WIRE], &error) == 0) &&
          (error.err_type == MLX5DV_MKEY_NO_ERR), "a signature");
    printf("signatures: ok\n");
}

/* What is in memory has none that is right. The message arrives all the same,
 * and what is behind it waits until it is told to go on. */
static void stop(void)
{
    const uint32_t length   = BLOCKS * BLOCK;
    struct ibv_sge sge      = {0, length, self.keys[MEMORY]->lkey};
    struct ibv_mw *window   = ibv_alloc_mw(self.pd, IBV_MW_TYPE_2);
    struct ibv_send_wr bind = {.opcode     = IBV_WR_BIND_MW,
                               .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr wr   = {.opcode     = IBV_WR_RDMA_WRITE,
                               .next       = &bind,
                               .sg_list    = &sge,
                               .num_sge    = 1,
                               .send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp_attr attr = {.qp_state     = IBV_QPS_RTS,
                               .cur_qp_state = IBV_QPS_SQD};
    struct mlx5dv_mkey_err error;
    struct ibv_async_event event;
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    check(window != NULL, "no window");
    bind.bind_mw.mw                       = window;
    bind.bind_mw.rkey                     = ibv_inc_rkey(window->rkey);
    bind.bind_mw.bind_info.mr             = self.bind;
    bind.bind_mw.bind_info.addr           = (uintptr_t)self.memory;
    bind.bind_mw.bind_info.length         = 64;
    bind.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
    wr.wr.rdma.rkey                       = self.far.keys[0];
    fill(&(request_t){.length = 0});
    check(ibv_post_send(self.qp, &wr, &bad) == 0, "requests that can't be");
    check(wait_status() == IBV_WC_SUCCESS, "a write with a wrong signature");
    check((ibv_get_async_event(self.context, &event) == 0) &&
          (event.event_type == IBV_EVENT_SQ_DRAINED), "another event");
    ibv_ack_async_event(&event);
    check((mlx5dv_mkey_check(self.keys[MEMORY], &error) == 0) &&
          (error.err_type == MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD) &&
          (error.err.sig.offset == 0), "another error");
    check(ibv_poll_cq(self.cq, 1, &wc) == 0, "a completion behind it");
    check(ibv_modify_qp(self.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0,
          "not RTS again");
    check(wait_status() == IBV_WC_SUCCESS, "a window that is bound twice");
    move(0, 0, 7, 2000);
}

static void refuse(const char *what)
{
    enum ibv_wc_status status;

    if (strcmp(what, "wrong") == 0) {
        stop();
        printf("%s: ok\n", what);
        return;
    }

    if (strcmp(what, "behind") == 0) {
        status = post(IBV_WR_RDMA_WRITE, 0, 0, 5000, 0, self.total[0] - 4999);
    } else if (strcmp(what, "free") == 0) {
        ask('I', 0, 0, 0, 0);
        status = post(IBV_WR_RDMA_READ, 0, 0, 5000, 0, 0);
    } else if (strcmp(what, "nowhere") == 0) {
        status = post(IBV_WR_RDMA_WRITE, 0, 0, 5000, 2, 0);
    } else {
        status = post(IBV_WR_RDMA_WRITE, 2, 0, 5000, 0, 0);
        check(status == IBV_WC_LOC_PROT_ERR, ibv_wc_status_str(status));
        status = IBV_WC_REM_ACCESS_ERR;
    }
    check(status == IBV_WC_REM_ACCESS_ERR, ibv_wc_status_str(status));
    printf("%s: ok\n", what);
}

static void run(void)
{
    uint32_t old, mine, theirs;

    for (mine = 0; mine < 2; ++mine) {
        for (theirs = 0; theirs < 2; ++theirs) {
            move(mine, theirs, 0, 1);
            move(mine, theirs, 7, 2);
            move(mine, theirs, 500, 3000);
            move(mine, theirs, 0, 200000);
        }
    }

    move_signed();

    ask('F', 0, 0, 8, 3);
    fill(&(request_t){.length = 0});
    check(post(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 0, 0) == IBV_WC_SUCCESS,
          "an atomic");
    for (old = 0; old < 8; ++old) {
        check(self.memory[self.place[1][old]] == pattern(3, old),
              "what an atomic has fetched");
    }
}

static int listen_at(const char *port)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6,
                                .sin6_port   = htons(atoi(port))};
    int fd                   = socket(AF_INET6, SOCK_STREAM, 0);
    int on                   = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    check((bind(fd, (struct sockaddr*)&addr, sizeof(addr)) == 0) &&
          (listen(fd, 1) == 0), "no port");
    return accept(fd, NULL, NULL);
}

static int connect_at(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *to;
    int fd;

    check(getaddrinfo(host, port, &hints, &to) == 0, "no such host");
    fd = socket(to->ai_family, SOCK_STREAM, 0);
    check(connect(fd, to->ai_addr, to->ai_addrlen) == 0, "nobody waits");
    return fd;
}

int main(int argc, char **argv)
{
    const char *port = "18515";
    const char *last = NULL;
    int option;

    while ((option = getopt(argc, argv, "g:m:p:r:u:")) != -1) {
        switch (option) {
        case 'g':
            self.gid_index = atoi(optarg);
            break;
        case 'm':
            self.mtu = atoi(optarg);
            break;
        case 'p':
            port = optarg;
            break;
        case 'r':
            last = optarg;
            break;
        case 'u':
            self.sport = atoi(optarg);
            break;
        default:
            die("usage: layouts [-g GID-INDEX] [-m MTU] [-p PORT] [-u PORT] "
                "[-r WHAT] [HOST]");
        }
    }

    self.sport += (self.sport != 0) && (optind < argc);
    self.socket = (optind < argc) ? connect_at(argv[optind], port) :
                                    listen_at(port);
    setup();
    if (optind == argc) {
        serve();
        return 0;
    }

    run();
    if (last != NULL) {
        refuse(last);
    }
    ask('Q', 0, 0, 0, 0);
    return 0;
}
