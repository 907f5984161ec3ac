/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * CQE compression: completions that are alike come as a block, a title and
 * arrays of mini CQEs, in CQs that ask for it. libmlx5 does not read these, so
 * the tests do, as UCX and the kernel's Ethernet driver do.
 */

#include <device/device.h>

#include <common/seed.h>
#include <common/step.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include <endian.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

const uint8_t format_mask       = 0xc; /* cqe_format of op_own */
const uint8_t format_compressed = 0xc;

/** As the kernel's struct mlx5_mini_cqe8 and UCX's uct_ib_mlx5_mini_cqe8_t. */
struct mini_cqe {
    uint16_t wqe_counter;  /* of requesters, */
    uint8_t  s_wqe_opcode; /* and this */
    uint8_t  reserved;
    uint32_t byte_cnt;
};

/** A completion. */
struct completion {
    unsigned opcode;
    unsigned wqe_opcode;   /* of a requester */
    uint32_t qpn;
    uint16_t wqe_counter;
    uint32_t byte_cnt;
    uint32_t imm;
    unsigned syndrome;     /* of an error */
    unsigned block;        /* how many there are in its block; 1: it is none */
};

mlx5dv_cq_init_attr compressed(unsigned cqe_size = 64,
                               unsigned format = MLX5DV_CQE_RES_FORMAT_HASH)
{
    mlx5dv_cq_init_attr dv = {};

    dv.comp_mask           = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE |
                             MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
    dv.cqe_size            = cqe_size;
    dv.cqe_comp_res_format = format;
    return dv;
}

/** Reads a CQ: what is compressed it expands in place, and libmlx5 polls it. */
class reader {
public:
    explicit reader(cq &q, bool has_index = false) :
        m_cq(q), m_has_index(has_index)
    {
        m_dv = q.direct();
    }

    /** The next completion, if there is one. */
    bool poll(completion *result)
    {
        ibv_wc wc;

        if (m_ready.empty() && !read()) {
            return false;
        }
        *result = m_ready.front();
        m_ready.pop_front();
        REQUIRE(m_cq.poll(&wc));
        REQUIRE_EQ(result->qpn, wc.qp_num);
        REQUIRE_EQ(result->syndrome == 0, wc.status == IBV_WC_SUCCESS);
        ++m_ci;
        return true;
    }

    completion next()
    {
        uint64_t end = now_ms() + patience_ms;
        completion result;

        while (!poll(&result)) {
            patience::pause();
            check_abort();
            if (now_ms() > end) {
                fail(__FILE__, __LINE__, "no completion");
            }
        }
        return result;
    }

    completion good()
    {
        completion result = next();

        REQUIRE_EQ(0, result.syndrome);
        return result;
    }

    void empty()
    {
        completion result;

        REQUIRE(!poll(&result));
    }

    unsigned ring() const
    {
        return m_dv.cqe_cnt;
    }

    uint32_t laps() const
    {
        return m_ci / m_dv.cqe_cnt;
    }

    unsigned num_blocks = 0;

private:
    uint8_t *slot(uint32_t ci) const
    {
        return (uint8_t*)m_dv.buf + (ci & (m_dv.cqe_cnt - 1)) * m_dv.cqe_size +
               m_dv.cqe_size - 64;
    }

    /** Read a CQE, or a block. */
    __attribute__((no_sanitize("thread"))) bool read()
    {
        uint8_t op_own = __atomic_load_n(slot(m_ci) + 63, __ATOMIC_ACQUIRE);
        unsigned owner = !!(m_ci & m_dv.cqe_cnt);
        mlx5_cqe64 title;

        if (((op_own >> 4) == MLX5_CQE_INVALID) || ((op_own & 1) != owner)) {
            return false;
        }

        memcpy((void*)&title, slot(m_ci), sizeof(title));
        if ((op_own & format_mask) == format_compressed) {
            ++num_blocks;
            expand(title, be32toh(title.byte_cnt));
        } else {
            m_ready.push_back(what(title));
        }
        return true;
    }

    __attribute__((no_sanitize("thread")))
    void expand(mlx5_cqe64 cqe, uint32_t count)
    {
        uint16_t counter = be16toh(cqe.wqe_counter);
        mini_cqe minis[8];

        REQUIRE(count > 1);
        /* UCX 1.13 can't read one that goes round the end */
        REQUIRE((m_ci & (m_dv.cqe_cnt - 1)) + count <= m_dv.cqe_cnt);
        cqe.op_own &= ~format_mask;
        for (uint32_t i = 0; i < count; ++i) {
            if ((i % 8) == 0) {
                memcpy(minis, slot(m_ci + ((i == 0) ? 1 : i)), sizeof(minis));
            }

            const mini_cqe &mini = minis[i % 8];
            cqe.byte_cnt         = mini.byte_cnt;
            if ((cqe.op_own >> 4) == MLX5_CQE_REQ) {
                cqe.wqe_counter  = mini.wqe_counter;
                cqe.sop_drop_qpn = (cqe.sop_drop_qpn & htobe32(0xffffff)) |
                                   htobe32((uint32_t)mini.s_wqe_opcode << 24);
            } else {
                /* neither a hash nor a checksum of what is not IP */
                REQUIRE_EQ(0, mini.wqe_counter);
                if (m_has_index) {
                    /* big endian, in the place of a requester's opcode */
                    memcpy(&cqe.wqe_counter, &mini.s_wqe_opcode, 2);
                } else {
                    REQUIRE_EQ(0, mini.s_wqe_opcode);
                    REQUIRE_EQ(0, mini.reserved);
                    cqe.wqe_counter = htobe16(counter + i);
                }
            }
            memcpy(slot(m_ci + i), (void*)&cqe, sizeof(cqe));
            m_ready.push_back(what(cqe));
            m_ready.back().block = count;
        }
    }

    static completion what(const mlx5_cqe64 &cqe)
    {
        completion result = {};

        result.opcode      = cqe.op_own >> 4;
        result.wqe_opcode  = be32toh(cqe.sop_drop_qpn) >> 24;
        result.qpn         = be32toh(cqe.sop_drop_qpn) & 0xffffff;
        result.wqe_counter = be16toh(cqe.wqe_counter);
        result.byte_cnt    = be32toh(cqe.byte_cnt);
        result.imm         = be32toh(cqe.imm_inval_pkey);
        result.block       = 1;
        if ((result.opcode == MLX5_CQE_REQ_ERR) ||
            (result.opcode == MLX5_CQE_RESP_ERR)) {
            result.syndrome = ((const mlx5_err_cqe*)&cqe)->syndrome;
        }
        return result;
    }

    cq                     &m_cq;
    bool                   m_has_index;
    mlx5dv_cq              m_dv = {};
    uint32_t               m_ci = 0;
    std::deque<completion> m_ready;
};

/** Two QPs of one process; the CQs of the first one and the receive CQ of the
 *  second one compress. */
struct pair {
    explicit pair(const mlx5dv_cq_init_attr &dv, int cq_size = 255,
                  const qp_options &options = qp_options()) :
        mem(c, 1 << 20), scq(c, cq_size, dv), rcq(c, cq_size, dv), other(c, 16),
        a(c, scq, other, options), b(c, other, rcq, options), sent(scq),
        received(rcq, dv.cqe_comp_res_format ==
                      MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX)
    {
        a.connect(b.addr());
        b.connect(a.addr());
        to_b = b.addr(&mem);
    }

    context c;
    memory  mem;
    cq      scq, rcq, other;
    qp      a, b;
    reader  sent, received;
    address to_b;
};

/** Work requests that are posted with one doorbell. */
class list {
public:
    send_wr &add(const send_wr &wr)
    {
        m_wrs.push_back(wr);
        return m_wrs.back();
    }

    void post(qp &q)
    {
        for (size_t i = 0; i < m_wrs.size(); ++i) {
            m_wrs[i].next = (i + 1 < m_wrs.size()) ? &m_wrs[i + 1] : nullptr;
        }
        q.send(m_wrs[0]);
        m_wrs.clear();
    }

private:
    std::deque<send_wr> m_wrs;
};

class test_device_compression : public device::test {
protected:
    /* In deferred execution a block is what chance makes one */
    void one_doorbell_is_one_block()
    {
        set_env("MLX5SIM_EXEC", "sync");
    }

    static mlx5dv_context query(context &c)
    {
        mlx5dv_context result = {};

        result.comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION;
        REQUIRE_EQ(0, mlx5dv_query_device(c.ctx, &result));
        return result;
    }

    /** @return 0, or the errno of creating such a CQ. */
    static int attempt(context &c, mlx5dv_cq_init_attr dv)
    {
        ibv_cq_init_attr_ex attr = {};
        ibv_cq_ex *made;

        attr.cqe = 16;
        errno    = 0;
        made     = mlx5dv_create_cq(c.ctx, &attr, &dv);
        if (made == nullptr) {
            return errno;
        }
        REQUIRE_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(made)));
        return 0;
    }
};

} // namespace


TEST_F(test_device_compression, devices_say_what_they_compress)
{
    const struct {
        const char *value;
        int        error_64;
        int        error_128;
    } rows[] = {
        {"none", EINVAL, EINVAL}, /* of libmlx5, which knows */
        {"64", 0, EOPNOTSUPP},
        {"64_128", 0, 0}
    };

    /* a property of the instance: each has one of its own */
    for (auto &row : rows) {
        set_env("MLX5SIM_CQE_COMPRESSION", row.value);
        set_env("MLX5SIM_DIR", dir() + "/" + row.value);
        run(1, [&](rank&) {
            context c;
            mlx5dv_context dv = query(c);

            if (row.error_64 != 0) {
                REQUIRE_EQ(0, dv.cqe_comp_caps.max_num);
            } else {
                REQUIRE(dv.cqe_comp_caps.max_num >= 8);
                REQUIRE_EQ(MLX5DV_CQE_RES_FORMAT_HASH |
                           MLX5DV_CQE_RES_FORMAT_CSUM |
                           MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX,
                           dv.cqe_comp_caps.supported_format);
            }
            REQUIRE_EQ(row.error_128 == 0,
                       !!(dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP));
            REQUIRE_EQ(row.error_64, attempt(c, compressed(64)));
            REQUIRE_EQ(row.error_128, attempt(c, compressed(128)));
        });
    }
}

TEST_F(test_device_compression, formats_are_those_that_the_kernel_knows)
{
    run(1, [](rank&) {
        context c;

        REQUIRE_EQ(0, attempt(c, compressed(64, MLX5DV_CQE_RES_FORMAT_HASH)));
        REQUIRE_EQ(0, attempt(c, compressed(64, MLX5DV_CQE_RES_FORMAT_CSUM)));
        REQUIRE_EQ(0, attempt(c, compressed(
                                 64, MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX)));
        REQUIRE_EQ(EINVAL, attempt(c, compressed(64, 0)));
        /* one of two, libmlx5 lets both pass */
        REQUIRE_EQ(EINVAL,
                   attempt(c, compressed(64, MLX5DV_CQE_RES_FORMAT_HASH |
                                             MLX5DV_CQE_RES_FORMAT_CSUM)));
        REQUIRE_EQ(EINVAL,
                   attempt(c, compressed(64, MLX5DV_CQE_RES_FORMAT_CSUM |
                                         MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX)));

        /* padding is for CQEs of 128 bytes */
        mlx5dv_cq_init_attr dv = compressed(128);
        dv.comp_mask          |= MLX5DV_CQ_INIT_ATTR_MASK_FLAGS;
        dv.flags               = MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD;
        REQUIRE_EQ(0, attempt(c, dv));
        dv.cqe_size = 64;
        REQUIRE(attempt(c, dv) != 0);
    });
}

/* One doorbell, so that the device has all of them before it writes */
TEST_F(test_device_compression, sends_of_a_doorbell_come_as_a_block)
{
    one_doorbell_is_one_block();
    run(1, [this](rank&) {
        for (unsigned size : {64, 128}) {
            for (unsigned format : {MLX5DV_CQE_RES_FORMAT_HASH,
                                    MLX5DV_CQE_RES_FORMAT_CSUM,
                                    MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX}) {
                pair p(compressed(size, format));
                uint16_t counter = 0;

                /* whole arrays, and some more; a block has an end */
                for (unsigned num : {1, 2, 7, 8, 9, 16, 17, 31, 40}) {
                    long compressed = stat_total("cqes_compressed");
                    long completed  = stat_total("cqes");
                    unsigned max    = query(p.c).cqe_comp_caps.max_num;
                    list wrs;

                    for (unsigned i = 0; i < num; ++i) {
                        send_wr wr((i % 3 == 1) ? IBV_WR_RDMA_READ :
                                                  IBV_WR_RDMA_WRITE,
                                   i, {p.mem.sge(0, 100 + i)});
                        wrs.add(wr.to(p.to_b, 65536));
                    }
                    wrs.post(p.a);

                    for (unsigned i = 0; i < num; ++i) {
                        completion wc = p.sent.good();

                        REQUIRE_EQ(MLX5_CQE_REQ, wc.opcode);
                        REQUIRE_EQ((i % 3 == 1) ? MLX5_OPCODE_RDMA_READ :
                                                  MLX5_OPCODE_RDMA_WRITE,
                                   wc.wqe_opcode);
                        REQUIRE_EQ(p.a.v->qp_num, wc.qpn);
                        REQUIRE_EQ(counter++, wc.wqe_counter);
                        if (i % 3 == 1) {
                            REQUIRE_EQ(100 + i, wc.byte_cnt);
                        }
                        REQUIRE_EQ((i < max) ? std::min(num, max) : num - max,
                                   wc.block);
                    }
                    p.sent.empty();
                    REQUIRE_EQ(num, stat_total("cqes") - completed);
                    REQUIRE_EQ((num > 1) ? num : 0,
                               stat_total("cqes_compressed") - compressed);
                }
            }
        }
    });
}

TEST_F(test_device_compression, receives_that_follow_each_other_are_alike)
{
    one_doorbell_is_one_block();
    run(1, [](rank&) {
        for (unsigned size : {64, 128}) {
            pair p(compressed(size, (size == 64) ?
                                    MLX5DV_CQE_RES_FORMAT_HASH :
                                    MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX));
            list wrs;

            auto send = [&](ibv_wr_opcode op, unsigned length, uint32_t imm) {
                p.b.recv(0, p.mem.sge(131072, 1024));
                send_wr wr(op, 0, {p.mem.sge(0, length)}, 0);
                wr.imm_data = htobe32(imm);
                wrs.add(wr);
            };
            auto expect = [&](unsigned opcode, unsigned length, uint32_t imm,
                              uint16_t counter, unsigned block) {
                completion wc = p.received.good();

                REQUIRE_EQ(opcode, wc.opcode);
                REQUIRE_EQ(p.b.v->qp_num, wc.qpn);
                REQUIRE_EQ(length, wc.byte_cnt);
                REQUIRE_EQ(counter, wc.wqe_counter);
                REQUIRE_EQ(block, wc.block);
                if (opcode == MLX5_CQE_RESP_SEND_IMM) {
                    REQUIRE_EQ(imm, wc.imm);
                }
            };

            for (unsigned i = 0; i < 10; ++i) {
                send(IBV_WR_SEND, 200 + i, 0);
            }
            /* other kinds of messages, and other immediates, end it */
            for (unsigned i = 0; i < 6; ++i) {
                send(IBV_WR_SEND_WITH_IMM, 100, i / 3);
            }
            /* data that come with the completion are never compressed */
            send(IBV_WR_SEND, 500, 0);
            send(IBV_WR_SEND, 600, 0);
            send(IBV_WR_SEND, 8, 0);
            send(IBV_WR_SEND, 600, 0);
            wrs.post(p.a);

            for (unsigned i = 0; i < 10; ++i) {
                expect(MLX5_CQE_RESP_SEND, 200 + i, 0, i, 10);
            }
            for (unsigned i = 0; i < 6; ++i) {
                expect(MLX5_CQE_RESP_SEND_IMM, 100, i / 3, 10 + i, 3);
            }
            expect(MLX5_CQE_RESP_SEND, 500, 0, 16, 2);
            expect(MLX5_CQE_RESP_SEND, 600, 0, 17, 2);
            expect(MLX5_CQE_RESP_SEND, 8, 0, 18, 1);
            expect(MLX5_CQE_RESP_SEND, 600, 0, 19, 1);
            p.received.empty();
        }
    });
}

/* Readers count the numbers of receives up from the title's, also in an SRQ,
 * where they are in the order in which its list says. With indices they are
 * told. */
TEST_F(test_device_compression, receives_of_an_srq_are_counted_up)
{
    one_doorbell_is_one_block();
    const unsigned order[]  = {0, 1, 2, 5, 6, 3, 4, 7};
    const unsigned blocks[] = {3, 3, 3, 2, 2, 2, 2};

    for (bool has_index : {false, true}) {
        run(1, [&](rank&) {
            context c;
            memory mem(c, 65536);
            cq other(c, 64), rcq(c, 255, compressed(
                    64, has_index ? MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX :
                                    MLX5DV_CQE_RES_FORMAT_HASH));
            srq s(c, 8);
            qp a(c, other, other), b(c, other, rcq, {.srq = s.v});
            reader received(rcq, has_index);
            mlx5dv_obj obj    = {};
            mlx5dv_srq dv     = {};
            list wrs;

            a.connect(b.addr());
            b.connect(a.addr());
            obj.srq.in  = s.v;
            obj.srq.out = &dv;
            REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ));
            for (unsigned i = 0; i < 7; ++i) {
                s.recv(i, mem.sge(4096, 1024));
                wrs.add(send_wr(IBV_WR_SEND, 0, {mem.sge(0, 200)}, 0));
            }
            /* what libmlx5 has linked one after the other */
            for (unsigned i = 0; i < 7; ++i) {
                mlx5_wqe_srq_next_seg *seg = (mlx5_wqe_srq_next_seg*)(
                        (uint8_t*)dv.buf + order[i] * dv.stride);
                seg->next_wqe_index = htobe16(order[i + 1]);
            }
            wrs.post(a);
            for (unsigned i = 0; i < 7; ++i) {
                completion wc = received.good();

                REQUIRE_EQ(order[i], wc.wqe_counter);
                REQUIRE_EQ(has_index ? 7 : blocks[i], wc.block);
            }
            received.empty();
        });
    }
}

TEST_F(test_device_compression, rings_go_round)
{
    one_doorbell_is_one_block();
    run(1, [](rank&) {
        for (unsigned size : {64, 128}) {
            pair p(compressed(size), 15);
            uint16_t counter = 0;

            REQUIRE_EQ(16, p.sent.ring());
            for (unsigned num = 1; p.sent.laps() < 50; num = num % 15 + 1) {
                list wrs;

                for (unsigned i = 0; i < num; ++i) {
                    /* the last byte of an array is one of these */
                    send_wr wr(IBV_WR_RDMA_READ, i, {p.mem.sge(0, 100 + i)});
                    wrs.add(wr.to(p.to_b));
                }
                wrs.post(p.a);
                for (unsigned i = 0; i < num; ++i) {
                    completion wc = p.sent.good();

                    REQUIRE_EQ(counter++, wc.wqe_counter);
                    REQUIRE_EQ(100 + i, wc.byte_cnt);
                }
                p.sent.empty();
            }
            REQUIRE(p.sent.num_blocks > 50);
        }
    });
}

TEST_F(test_device_compression, errors_come_on_their_own)
{
    one_doorbell_is_one_block();
    run(1, [](rank&) {
        pair p(compressed());
        list wrs;

        for (unsigned i = 0; i < 10; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {p.mem.sge(0, 100)});
            wr.to(p.to_b);
            if (i == 6) {
                wr.wr.rdma.rkey ^= 0x100;
            }
            wrs.add(wr);
        }
        wrs.post(p.a);
        for (unsigned i = 0; i < 10; ++i) {
            completion wc = p.sent.next();

            REQUIRE_EQ(i, wc.wqe_counter);
            REQUIRE_EQ((i < 6) ? 6 : 1, wc.block);
            REQUIRE_EQ((i < 6) ? 0 :
                       (i == 6) ? MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR :
                                  MLX5_CQE_SYNDROME_WR_FLUSH_ERR, wc.syndrome);
        }
        p.sent.empty();
    });
}

TEST_F(test_device_compression, queues_that_do_not_ask_get_none)
{
    run(1, [this](rank&) {
        loop l;

        for (unsigned i = 0; i < 20; ++i) {
            list wrs;

            for (unsigned j = 0; j < 20; ++j) {
                send_wr wr(IBV_WR_RDMA_WRITE, j, {l.mem.sge(0, 100)});
                wrs.add(wr.to(l.to_b));
            }
            wrs.post(l.a);
            for (unsigned j = 0; j < 20; ++j) {
                REQUIRE_EQ(j, l.scq.good().wr_id);
            }
        }
        REQUIRE_EQ(0, stat_total("cqes_compressed"));
    });
}

/* Nobody waits for a completion that the device holds back */
TEST_F(test_device_compression, queues_that_are_armed_wake_up)
{
    set_env("MLX5SIM_EXEC", "deferred");
    run(1, [](rank&) {
        context c;
        ibv_comp_channel *channel = ibv_create_comp_channel(c.ctx);
        REQUIRE(channel != nullptr);
        {
            memory mem(c, 65536);
            cq scq(c, 255, compressed(), channel), other(c, 16);
            qp a(c, scq, other), b(c, other, other);
            reader sent(scq);
            address to_b    = b.addr(&mem);
            unsigned events = 0;
            uint16_t done   = 0;

            a.connect(b.addr());
            b.connect(a.addr());
            for (unsigned round = 0; round < 60; ++round) {
                uint16_t end = done + 1 + round % 9;
                list wrs;

                for (uint16_t i = done; i != end; ++i) {
                    send_wr wr(IBV_WR_RDMA_WRITE, i, {mem.sge(0, 100)});
                    wrs.add(wr.to(to_b));
                }
                wrs.post(a);

                while (done != end) {
                    completion wc;
                    ibv_cq *which;
                    void *arg;

                    if (sent.poll(&wc)) {
                        REQUIRE_EQ(done++, wc.wqe_counter);
                        continue;
                    }

                    REQUIRE_EQ(0, ibv_req_notify_cq(scq.v, 0));
                    pollfd fd = {channel->fd, POLLIN, 0};
                    REQUIRE_EQ(1, poll(&fd, 1, patience_ms));
                    REQUIRE_EQ(0, ibv_get_cq_event(channel, &which, &arg));
                    ++events;
                    REQUIRE(sent.poll(&wc));
                    REQUIRE_EQ(done++, wc.wqe_counter);
                }
            }
            REQUIRE(events > 0);
            ibv_ack_cq_events(scq.v, events);
        }
        REQUIRE_EQ(0, ibv_destroy_comp_channel(channel));
    });
}

/* Once a requester knows that its messages have been received, it may exit:
 * whatever was held back for the receiver has been written by then */
TEST_F(test_device_compression, requester_does_not_know_before_the_receiver)
{
    const unsigned rounds = 100, burst = 9;

    set_env("MLX5SIM_EXEC", "deferred");
    run(2, [&](rank &r) {
        context c;
        memory mem(c, 65536);
        cq other(c, 64), rcq(c, 255, compressed());
        qp q(c, other, rcq);
        reader received(rcq);

        r.publish(q.addr());
        q.connect(r.lookup<address>(1 - r.index));
        for (unsigned i = 0; i < burst; ++i) {
            q.recv(0, mem.sge(4096, 1024));
        }
        r.barrier();

        for (unsigned round = 1; round <= rounds; ++round) {
            if (r.index == 0) {
                list wrs;

                r.wait_word(1, round - 1);
                for (unsigned i = 1; i <= burst; ++i) {
                    wrs.add(send_wr(IBV_WR_SEND, i, {mem.sge(0, 200)},
                                    (i == burst) ? IBV_SEND_SIGNALED : 0));
                }
                wrs.post(q);
                REQUIRE_EQ(burst, other.good().wr_id);
                r.word(0) = round;
            } else {
                completion wc;

                r.wait_word(0, round);
                for (unsigned i = 0; i < burst; ++i) {
                    REQUIRE(received.poll(&wc));
                    REQUIRE_EQ(0, wc.syndrome);
                    q.recv(0, mem.sge(4096, 1024));
                }
                received.empty();
                r.word(1) = round;
            }
        }
        if (r.index == 1) {
            REQUIRE(received.num_blocks > 0);
        }
        r.barrier();
    });
}

/* A requester is stopped at the instruction that tells it: the receiver has its
 * completion by then. Without delay, many a message is sent, answered and
 * completed in one round. */
TEST_F(test_device_compression, requester_does_not_know_at_any_instruction)
{
    const unsigned num = 5;
    uint8_t first;
    int status;

    set_env("MLX5SIM_EXEC", "stepped");
    set_env("MLX5SIM_DELAY", "0");
    auto body = [&](rank &r) {
        context c;
        memory mem(c, 4096);
        cq other(c, 64), rcq(c, 255, compressed());
        qp q(c, other, rcq);
        reader received(rcq);
        mlx5dv_cq dv = other.direct();

        r.publish(q.addr());
        q.connect(r.lookup<address>(1 - r.index));
        for (unsigned i = 0; i < num; ++i) {
            q.recv(0, mem.sge(0, 1024));
        }
        r.barrier();
        if (r.index == 0) {
            REQUIRE_EQ(0, ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
        }
        for (unsigned i = 0; i < num; ++i) {
            if (r.index == 1) {
                completion wc;

                r.wait_word(1, i + 1);
                r.word(3) = received.poll(&wc);
                r.word(2) = i + 1;
                continue;
            }
            /* longer than what comes with a completion, which is no mini */
            send_wr wr(IBV_WR_SEND, i, {mem.sge(0, 200)});
            q.send(wr);
            r.word(0) = (uintptr_t)dv.buf + i * 64 + 63; /* owner and opcode */
            raise(SIGSTOP);
            while (step::make() != 0) {
            }
            REQUIRE_EQ(i, other.good().wr_id);
        }
    };
    start(0, 2, body);
    start(1, 2, body);

    auto look = [&]() -> uint8_t {
        return ptrace(PTRACE_PEEKDATA, pid(0), word(0) - 7, nullptr) >> 56;
    };
    /* Goes on, with the signal it has stopped by, and stops by another one */
    auto go_on = [&](__ptrace_request how, long signal) {
        return (ptrace(how, pid(0), nullptr, signal) == 0) &&
               (waitpid(pid(0), &status, 0) == pid(0)) && WIFSTOPPED(status);
    };
    ASSERT_EQ(pid(0), waitpid(pid(0), &status, 0));
    for (unsigned i = 0; i < num; ++i) {
        /* by doorbells, too */
        while (WIFSTOPPED(status) && (WSTOPSIG(status) == SIGBUS)) {
            ASSERT_TRUE(go_on(PTRACE_CONT, SIGBUS));
        }
        ASSERT_TRUE(WIFSTOPPED(status)) << status;
        ASSERT_EQ(SIGSTOP, WSTOPSIG(status));
        for (first = look(); look() == first;) {
            ASSERT_TRUE(go_on(PTRACE_SINGLESTEP, 0));
        }
        word(1) = i + 1;
        ASSERT_TRUE(patience::until([&]() { return word(2) == i + 1; }));
        ASSERT_EQ(1u, word(3)) << "message " << i;
        if (i + 1 < num) {
            ASSERT_TRUE(go_on(PTRACE_CONT, 0));
        }
    }
    ASSERT_EQ(0, ptrace(PTRACE_DETACH, pid(0), nullptr, nullptr));
    finish_all();
}

/* Several queue pairs share their CQs, which go round often: nothing is lost,
 * and each queue pair's completions come in its order */
TEST_F(test_device_compression, random_bursts_of_several_queue_pairs)
{
    const unsigned num_qps = 3, depth = 16;

    for (unsigned attempt = 0; attempt < seed::cases(4); ++attempt) {
        set_env("MLX5SIM_EXEC", "deferred");
        set_env("MLX5SIM_SEED", std::to_string(seed::get(attempt)));
        set_env("MLX5SIM_LOSS", (attempt % 2) ? "20" : "0");
        run(1, [&](rank&) {
            struct stream {
                std::unique_ptr<qp> a, b;
                uint16_t posted = 0, sent = 0, received = 0;
            };
            pattern random(seed::get(attempt + 1000));
            mlx5dv_cq_init_attr dv = compressed((attempt & 2) ? 128 : 64);
            context c;
            memory mem(c, 65536);
            cq scq(c, num_qps * depth - 1, dv), rcq(c, num_qps * depth - 1, dv);
            cq other(c, 16);
            reader sent(scq), received(rcq);
            std::map<uint32_t, stream*> by_qpn;
            stream streams[num_qps];
            unsigned blocks = 0, total = 0;

            for (auto &s : streams) {
                s.a.reset(new qp(c, scq, other));
                s.b.reset(new qp(c, other, rcq));
                s.a->connect(s.b->addr());
                s.b->connect(s.a->addr());
                by_qpn[s.a->v->qp_num] = by_qpn[s.b->v->qp_num] = &s;
            }

            auto length = [](uint16_t number) { return 64 + number % 1000; };
            auto drain  = [&](bool is_sent) {
                completion wc;

                if (!(is_sent ? sent : received).poll(&wc)) {
                    return false;
                }
                stream &s = *by_qpn.at(wc.qpn);
                REQUIRE_EQ(0, wc.syndrome);
                if (is_sent) {
                    REQUIRE_EQ(MLX5_CQE_REQ, wc.opcode);
                    REQUIRE_EQ(MLX5_OPCODE_SEND, wc.wqe_opcode);
                    REQUIRE_EQ(s.sent++, wc.wqe_counter);
                } else {
                    REQUIRE_EQ(MLX5_CQE_RESP_SEND, wc.opcode);
                    REQUIRE_EQ(length(s.received), wc.byte_cnt);
                    REQUIRE_EQ(s.received++, wc.wqe_counter);
                }
                ++total;
                return true;
            };

            uint64_t end = now_ms() + patience_ms;
            while ((total < 12000) || !std::all_of(streams, streams + num_qps,
                                                   [](const stream &s) {
                return (s.sent == s.posted) && (s.received == s.posted);
            })) {
                if (now_ms() > end) {
                    fail(__FILE__, __LINE__, "%u completions", total);
                }

                stream &s = streams[random.below(num_qps)];
                uint16_t open = s.posted - std::min(s.sent, s.received);
                if ((total < 12000) && (open < depth)) {
                    unsigned num = 1 + random.below(depth - open);
                    list wrs;

                    for (; num > 0; --num, ++s.posted) {
                        s.b->recv(0, mem.sge(4096, 2048));
                        wrs.add(send_wr(IBV_WR_SEND, 0,
                                        {mem.sge(0, length(s.posted))}));
                    }
                    wrs.post(*s.a);
                }
                for (unsigned i = random.below(64); i > 0; --i) {
                    if (!drain(random.below(2))) {
                        patience::pause();
                    }
                }
            }

            blocks = sent.num_blocks + received.num_blocks;
            sent.empty();
            received.empty();
            REQUIRE(sent.laps() > 10);
            REQUIRE(blocks > 100);
        });
    }
}

/* What a process that is killed held back for others is written, or was never
 * sent: what comes is in order, and receives go on */
TEST_F(test_device_compression, killed_requesters_leave_a_queue_that_works)
{
    const unsigned num_lists = 20;

    set_env("MLX5SIM_EXEC", "deferred");
    auto body = [&](rank &r) {
        context c;
        memory mem(c, 65536);
        cq other(c, 255), rcq(c, 255, compressed());
        srq s(c, 255);
        qp_options options = {.srq = (r.index == 1) ? s.v : nullptr};
        qp q(c, other, rcq, options);
        reader received(rcq);

        r.publish(q.addr());
        q.connect(r.lookup<address>(1 - r.index));
        for (unsigned i = 0; (r.index == 1) && (i < 200); ++i) {
            s.recv(i, mem.sge(4096, 1024));
        }
        r.barrier();
        for (unsigned i = 0; r.index == 0; ++i) {
            list wrs;

            for (unsigned j = 0; j < 4; ++j) {
                wrs.add(send_wr(IBV_WR_SEND, i, {mem.sge(0, 200)},
                                (j == 3) ? IBV_SEND_SIGNALED : 0));
            }
            wrs.post(q);
            if (i == num_lists) {
                ::kill(getpid(), SIGKILL);
            }
            other.good();
        }

        r.wait_word(1, 1);
        /* a message to ourselves takes a receive behind those of the dead
         * one */
        qp own(c, other, rcq, options), peer(c, other, other);
        unsigned expected = 0;
        completion wc;

        own.connect(peer.addr());
        peer.connect(own.addr());
        send_wr last(IBV_WR_SEND, 1, {mem.sge(0, 300)});
        peer.send(last);
        other.good();
        unsigned missing = 0;
        do {
            wc       = received.good();
            missing += wc.wqe_counter - expected;
            REQUIRE(wc.wqe_counter >= expected);
            expected = wc.wqe_counter + 1;
        } while (wc.qpn != own.v->qp_num);
        /* one may have been taken for a packet that was being written */
        REQUIRE(missing <= 1);
        REQUIRE(expected > 4 * num_lists);
        REQUIRE_EQ(300, wc.byte_cnt);
        received.empty();
    };

    start(0, 2, body);
    start(1, 2, body);
    EXPECT_EQ(SIGKILL, finish(0));
    word(1) = 1;
    EXPECT_EQ(0, finish(1));
}
