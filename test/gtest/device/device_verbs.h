/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_VERBS_H_
#define MLX5SIM_TEST_DEVICE_VERBS_H_

/*
 * Verbs objects for the processes of the device tests. Whatever goes wrong here
 * ends the process with a message, so tests only say what they do.
 */

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace device {

const unsigned all_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

const uint32_t default_qkey = 0x11223344;


/** An open device with a protection domain. */
class context {
public:
    explicit context(unsigned device = 0, unsigned port = 1);
    ~context();
    context(const context&) = delete;

    /** A thread domain, or nullptr with errno. */
    ibv_td *new_domain();

    ibv_context *ctx;
    ibv_pd      *pd;
    uint16_t    lid;
    ibv_gid     gid;
    bool        is_roce;
    uint8_t     port;
};


/** A domain of one thread: its QPs have a uUAR of their own. */
class domain {
public:
    explicit domain(context &c);
    ~domain();
    domain(const domain&) = delete;

    ibv_td *td;
    ibv_pd *pd;
};


/** Registered memory. */
class memory {
public:
    memory(context &c, size_t size, unsigned access = all_access,
           ibv_pd *pd = nullptr);
    ~memory();
    memory(const memory&) = delete;

    /** Scatter/gather element of a part. */
    ibv_sge sge(size_t offset, size_t length) const;

    uint64_t addr(size_t offset = 0) const
    {
        return (uintptr_t)(data + offset);
    }

    uint8_t *data;
    size_t  size;
    ibv_mr  *mr;
};


/** Completion queue, with a channel if wanted. */
class cq {
public:
    cq(context &c, int num, ibv_comp_channel *channel = nullptr);
    cq(context &c, int num, unsigned cqe_size);
    cq(context &c, int num, mlx5dv_cq_init_attr dv,
       ibv_comp_channel *channel = nullptr);
    cq(context &c, int num, ibv_create_cq_attr_flags flags);
    ~cq();
    cq(const cq&) = delete;

    /** Wait for the next completion. */
    ibv_wc next();

    /** Wait for the next completion, which has to be good. */
    ibv_wc good();

    /** Next completion if there is one. */
    bool poll(ibv_wc *wc_p);

    /** There must be no completion. */
    void empty();

    /** Its ring, as mlx5dv tells. */
    mlx5dv_cq direct() const;

    ibv_cq *v;
};


/** How others reach a process. */
struct address {
    uint32_t qpn;
    uint32_t qpn2;
    uint16_t lid;
    ibv_gid  gid;
    uint32_t rkey;
    uint64_t addr;
};


/** What a QP is made with; names as in ibv_qp_init_attr. */
struct qp_options {
    ibv_qp_type type       = IBV_QPT_RC;
    ibv_srq     *srq       = nullptr;
    ibv_pd      *pd        = nullptr;   /* default: the context's */
    unsigned    send_wr    = 64;
    unsigned    recv_wr    = 64;
    unsigned    send_sge   = 4;
    unsigned    recv_sge   = 4;
    unsigned    inline_len = 64;
    bool        sig_all    = false;
    uint64_t    dv_ops     = 0;         /* mlx5dv_wr_*; its data then never go
                                           into completions, and it has */
    uint32_t    dv_flags   = 0;         /* MLX5DV_QP_CREATE_* */
    /* of modify */
    unsigned    access     = all_access & ~IBV_ACCESS_LOCAL_WRITE;
    unsigned    timeout    = 18;        /* 1 s, times 8: a peer may be slow to
                                           connect on a loaded machine */
    unsigned    retry_cnt  = 7;
    unsigned    rnr_retry  = 7;
    unsigned    rnr_timer  = 1;         /* 10 us */
    ibv_mtu     mtu        = IBV_MTU_4096;
    uint32_t    sq_psn     = 0;
    uint32_t    rq_psn     = 0;
    uint8_t     max_rd     = 16;        /* max_rd_atomic */
    uint8_t     max_dest_rd = 16;
    ibv_ah_attr path       = {};        /* what connect() does not know */
};


/** Queue pair. */
class qp {
public:
    qp(context &c, cq &send_cq, cq &recv_cq,
       const qp_options &options = qp_options());
    ~qp();
    qp(const qp&) = delete;

    /** Where others send to. */
    address addr(const memory *mem = nullptr) const;

    void to_init();
    void to_rtr(const address &peer);
    void to_rts();
    /** All three. */
    void connect(const address &peer);
    /** To the error or the reset state. */
    void to_state(ibv_qp_state state);

    ibv_qp_state state() const;

    void destroy();

    int try_send(ibv_send_wr &wr);
    void send(ibv_send_wr &wr);
    void recv(uint64_t wr_id, const ibv_sge *sge, int num_sge);
    void recv(uint64_t wr_id, const ibv_sge &sge)
    {
        recv(wr_id, &sge, 1);
    }

    ibv_qp     *v;
    context    &c;
    qp_options options;
};


/** A send work request with room for its list. */
struct send_wr : public ibv_send_wr {
    send_wr(ibv_wr_opcode op, uint64_t id, const std::vector<ibv_sge> &list,
            unsigned flags = IBV_SEND_SIGNALED);

    send_wr(const send_wr &other);
    send_wr &operator=(const send_wr&) = delete;

    send_wr &to(const address &peer, size_t offset = 0)
    {
        wr.rdma.remote_addr = peer.addr + offset;
        wr.rdma.rkey        = peer.rkey;
        return *this;
    }

    send_wr &atomic(const address &peer, size_t offset, uint64_t compare_add,
                    uint64_t swap = 0)
    {
        wr.atomic.remote_addr = peer.addr + offset;
        wr.atomic.rkey        = peer.rkey;
        wr.atomic.compare_add = compare_add;
        wr.atomic.swap        = swap;
        return *this;
    }

    std::vector<ibv_sge> elements;
};


/** Shared receive queue. */
class srq {
public:
    srq(context &c, unsigned num, unsigned sge = 1, ibv_pd *pd = nullptr);
    ~srq();
    srq(const srq&) = delete;

    void recv(uint64_t wr_id, const ibv_sge &sge);

    ibv_srq *v;
};


/** Deterministic bytes. ThreadSanitizer does not see that a completion orders
 *  what the device reads and writes. */
class pattern {
public:
    explicit pattern(uint64_t seed) :
        m_state(seed * 2654435761u + 88172645463325252ul)
    {
    }

    __attribute__((no_sanitize("thread"))) uint64_t next()
    {
        m_state ^= m_state << 13;
        m_state ^= m_state >> 7;
        m_state ^= m_state << 17;
        return m_state * 0x2545f4914f6cdd1dul;
    }

    /** 0 to @a limit - 1 */
    uint64_t below(uint64_t limit)
    {
        return (next() >> 16) % limit;
    }

    __attribute__((no_sanitize("thread")))
    static void fill(void *buf, size_t length, uint64_t seed);

    /** @return offset of the first byte that is wrong, or @a length. */
    __attribute__((no_sanitize("thread")))
    static size_t check(const void *buf, size_t length, uint64_t seed);

private:
    uint64_t m_state;
};


/** Two QPs of one process connected to each other, for tests of one side. */
struct loop {
    explicit loop(const qp_options &options = qp_options(),
                  size_t mem_size = 65536, int cq_size = 256);

    context c;
    memory  mem;
    memory  peer_mem;
    cq      scq;
    cq      rcq;
    cq      peer_cq;
    qp      a;
    qp      b;
    address to_b;
    address to_a;
};

} // namespace device

#endif
