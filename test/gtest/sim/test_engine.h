/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_ENGINE_H_
#define TEST_ENGINE_H_

#include <sim/engine/engine.h>
#include <sim/engine/mlx5_def.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <endian.h>
#include <string.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

/* Helpers of the engine tests: WQEs put together byte by byte, without the
 * structures under test, and a responder made of maps. */

/** A value has the same name in mlx5dv.h. */
#define EXPECT_SAME(name) EXPECT_EQ(int(MLX5_##name), int(MLX5SIM_##name))

/** The row of a table is a test, by its name. */
#define INSTANTIATE_ROWS(suite, rows) \
    INSTANTIATE_TEST_SUITE_P(test_engine, suite, testing::ValuesIn(rows), \
                             [](const auto &info) { \
                                 return std::string(info.param.name); \
                             })

/** A send queue that is written in 16-byte units and wraps. It ends where its
 *  heap block ends, so that ASan sees every byte read beyond it. */
class test_sq {
public:
    explicit test_sq(unsigned wqe_cnt) :
        m_size(wqe_cnt * 64), m_bytes(new uint8_t[m_size]), m_first(0),
        m_units(0)
    {
        memset(m_bytes, 0, m_size);
    }

    ~test_sq()
    {
        delete[] m_bytes;
    }

    test_sq(const test_sq&)            = delete;
    test_sq &operator=(const test_sq&) = delete;

    uint8_t *bytes()
    {
        return m_bytes;
    }

    size_t size() const
    {
        return m_size;
    }

    /** Byte at @a offset of the current WQE. */
    uint8_t &at(size_t offset)
    {
        return m_bytes[(m_first + offset) % m_size];
    }

    /** Start a WQE at block counter @a index; ds is filled by finish(). */
    test_sq &ctrl(uint16_t index, uint8_t opcode, uint32_t qpn,
                  uint8_t fm_ce_se = 0, uint8_t opmod = 0, uint32_t imm_be = 0)
    {
        m_first = (index * size_t(64)) % m_size;
        m_units = 0;
        be32(0, (uint32_t(opmod) << 24) | (uint32_t(index) << 8) | opcode);
        be32(4, qpn << 8);
        be32(8, fm_ce_se);
        for (unsigned i = 0; i < 4; ++i) {
            at(12 + i) = reinterpret_cast<uint8_t*>(&imm_be)[i];
        }
        m_units = 1;
        return *this;
    }

    test_sq &raddr(uint64_t addr, uint32_t rkey)
    {
        be64(m_units * 16, addr);
        be32(m_units * 16 + 8, rkey);
        be32(m_units * 16 + 12, 0);
        ++m_units;
        return *this;
    }

    test_sq &data(uint64_t addr, uint32_t length, uint32_t lkey)
    {
        be32(m_units * 16, length);
        be32(m_units * 16 + 4, lkey);
        be64(m_units * 16 + 8, addr);
        ++m_units;
        return *this;
    }

    test_sq &inl(const void *src, uint32_t length)
    {
        be32(m_units * 16, length | 0x80000000u);
        for (uint32_t i = 0; i < length; ++i) {
            at(m_units * 16 + 4 + i) = static_cast<const uint8_t*>(src)[i];
        }
        m_units += (4 + length + 15) / 16;
        return *this;
    }

    test_sq &words64(uint64_t first, uint64_t second)
    {
        be64(m_units * 16, first);
        be64(m_units * 16 + 8, second);
        ++m_units;
        return *this;
    }

    test_sq &words32(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
    {
        be32(m_units * 16, a);
        be32(m_units * 16 + 4, b);
        be32(m_units * 16 + 8, c);
        be32(m_units * 16 + 12, d);
        ++m_units;
        return *this;
    }

    /** 48-byte address vector */
    test_sq &av(uint32_t dqpn, uint32_t qkey, uint16_t dlid, uint8_t sl_byte,
                uint32_t grh_gid_fl, uint8_t tclass, uint8_t hop_limit,
                const uint8_t *dgid)
    {
        words32(qkey, 0, dqpn | 0x80000000u,
                (uint32_t(sl_byte) << 24) | dlid);
        words32(0, 0xaabbccddu,
                0xeeff0000u | (uint32_t(tclass) << 8) | hop_limit, grh_gid_fl);
        for (unsigned i = 0; i < 16; ++i) {
            at(m_units * 16 + i) = dgid[i];
        }
        ++m_units;
        return *this;
    }

    test_sq &compact_av(uint32_t dqpn, uint32_t qkey, uint16_t dlid,
                        uint8_t sl_byte)
    {
        return words32(qkey, 0, dqpn, (uint32_t(sl_byte) << 24) | dlid);
    }

    /** Set ds, by default to what was written. */
    test_sq &finish(int ds = -1)
    {
        at(7) = (ds < 0) ? m_units : ds;
        return *this;
    }

    void be32(size_t offset, uint32_t value)
    {
        for (unsigned i = 0; i < 4; ++i) {
            at(offset + i) = value >> (24 - (8 * i));
        }
    }

    void be64(size_t offset, uint64_t value)
    {
        be32(offset, value >> 32);
        be32(offset + 4, value);
    }

private:
    size_t   m_size;
    uint8_t *m_bytes;
    size_t   m_first;
    size_t   m_units;
};


/** What both sides of the tests have */
enum {
    REQ_QPN    = 0x111,
    RESP_QPN   = 0x222,
    REQ_PDN    = 7,
    RESP_PDN   = 8,
    LKEY       = 0x1000,  /* requester, writable */
    LKEY_RO    = 0x1001,  /* requester, not writable */
    LKEY_PD    = 0x1002,  /* requester's process, other PD */
    RKEY       = 0x2000,  /* responder, everything allowed */
    RKEY_LOCAL = 0x2001,  /* responder, local write only */
    RKEY_PD    = 0x2002,  /* responder's process, other PD */
    RKEY_READ  = 0x2003,  /* responder, remote read only */
    RKEY_MW_1  = 0x2004,  /* responder, memory window of type 1 */
    RKEY_MW_2  = 0x2005,  /* of type 2 */
    RKEY_MW_PD = 0x2006,  /* of type 2, other PD */
    RKEY_LIST  = 0x2007,  /* responder, with a layout */
    LKEY_LIST  = 0x1003,  /* requester, with a layout */
    BUF_SIZE   = 8192
};


/** Two connected queue pairs, their regions and the responder's receives. */
class test_engine : public testing::Test {
public:
    test_engine() :
        m_req_buf(BUF_SIZE), m_resp_buf(BUF_SIZE), m_sq(16), m_recv_status(0),
        m_peeks(0)
    {
        for (unsigned i = 0; i < BUF_SIZE; ++i) {
            m_req_buf[i]  = i * 7 + 1;
            m_resp_buf[i] = i * 13 + 5;
        }

        m_req             = make_qp(MLX5SIM_QPT_RC, REQ_QPN, RESP_QPN, REQ_PDN);
        m_resp            = make_qp(MLX5SIM_QPT_RC, RESP_QPN, REQ_QPN,
                                    RESP_PDN);
        m_req.uidx        = 0x51;
        m_resp.uidx       = 0x52;
        m_req.lid         = 3;
        m_resp.lid        = 4;
        m_env.arg         = this;
        m_env.mr_find     = mr_find;
        m_env.recv_peek   = recv_peek;
        m_env.layout_find = layout_find;

        add_mr(MLX5SIM_SIDE_REQUESTER, LKEY, REQ_PDN, 1);
        add_mr(MLX5SIM_SIDE_REQUESTER, LKEY_RO, REQ_PDN, 0);
        add_mr(MLX5SIM_SIDE_REQUESTER, LKEY_PD, 99, 1);
        add_mr(MLX5SIM_SIDE_RESPONDER, RKEY, RESP_PDN, 0xf);
        add_mr(MLX5SIM_SIDE_RESPONDER, RKEY_LOCAL, RESP_PDN, 1);
        add_mr(MLX5SIM_SIDE_RESPONDER, RKEY_PD, 99, 0xf);
        add_mr(MLX5SIM_SIDE_RESPONDER, RKEY_READ, RESP_PDN,
               MLX5SIM_ACCESS_REMOTE_READ);
        add_mr(MLX5SIM_SIDE_RESPONDER, RKEY_MW_1, RESP_PDN, 0xf, 1);
        add_mr(MLX5SIM_SIDE_RESPONDER, RKEY_MW_2, RESP_PDN, 0xf,
               MLX5SIM_WINDOW_TYPE_2);
        add_mr(MLX5SIM_SIDE_RESPONDER, RKEY_MW_PD, 99, 0xf,
               MLX5SIM_WINDOW_TYPE_2);
        add_mr(MLX5SIM_SIDE_RESPONDER, RKEY_LIST, RESP_PDN, 0xf);
        add_mr(MLX5SIM_SIDE_REQUESTER, LKEY_LIST, REQ_PDN, 1);
        for (auto &mr : m_mrs) {
            mr.second.has_layout = (mr.second.key == RKEY_LIST) ||
                                   (mr.second.key == LKEY_LIST);
        }

        /* a plan must not depend on what was there before */
        memset(&m_plan, 0xa5, sizeof(m_plan));
        memset(&m_wqe, 0xa5, sizeof(m_wqe));
        for (unsigned i = 0; i < MLX5SIM_MAX_SGE; ++i) {
            m_wqe.segs[i].inl = NULL; /* looks like memory, of no known key */
        }
    }

    static mlx5sim_qp_t make_qp(unsigned type, uint32_t qpn, uint32_t dest_qpn,
                                uint32_t pdn)
    {
        mlx5sim_qp_t qp;

        memset(&qp, 0, sizeof(qp));
        qp.qpn                = qpn;
        qp.type               = type;
        qp.state              = MLX5SIM_QPS_RTS;
        qp.port               = 1;
        qp.path_mtu           = 3; /* 1024 */
        qp.pdn                = pdn;
        qp.access             = 0xe;
        qp.dest_qpn           = dest_qpn;
        qp.qkey               = 0x1ee7;
        qp.max_rd_atomic      = 4;
        qp.max_dest_rd_atomic = 4;
        qp.sq_wqe_cnt         = 16;
        qp.rq_wqe_cnt         = 16;
        qp.rq_wqe_shift       = 6;
        qp.pkey               = 0xffff;
        return qp;
    }

    void set_type(unsigned type)
    {
        m_req.type = m_resp.type = type;
    }

    /** Address of a buffer as work requests name it: differs from where the
     *  bytes are, so that a missing translation shows. */
    static uint64_t iova(mlx5sim_side_t side, uint64_t offset = 0)
    {
        return ((side == MLX5SIM_SIDE_REQUESTER) ? 0x100000000ull :
                                                   0x200000000ull) + offset;
    }

    uint64_t req_addr(uint64_t offset = 0) const
    {
        return iova(MLX5SIM_SIDE_REQUESTER, offset);
    }

    uint64_t resp_addr(uint64_t offset = 0) const
    {
        return iova(MLX5SIM_SIDE_RESPONDER, offset);
    }

    uint64_t req_va(uint64_t offset = 0)
    {
        return (uintptr_t)&m_req_buf[offset];
    }

    uint64_t resp_va(uint64_t offset = 0)
    {
        return (uintptr_t)&m_resp_buf[offset];
    }

    void add_recv(uint64_t offset, uint32_t length, uint32_t lkey = RKEY)
    {
        mlx5sim_seg_t seg = {resp_addr(offset), length, lkey, NULL};

        if (m_recv_status != 1) {
            m_recv.num_segs = 0;
            m_recv.length   = 0;
            m_recv.index    = 77;
            m_recv_status   = 1;
        }
        m_recv.segs[m_recv.num_segs++] = seg;
        m_recv.length                 += length;
    }

    mlx5sim_chk_t decode(uint16_t index = 0)
    {
        return mlx5sim_wqe_decode(&m_req, m_sq.bytes(), index, &m_wqe);
    }

    /** Decode what was posted, which must be right, and plan it. */
    void plan(uint16_t index = 0)
    {
        ASSERT_EQ(MLX5SIM_CHK_OK, decode(index));
        replan();
    }

    void replan()
    {
        m_peeks = 0;
        mlx5sim_plan_make(&m_req, &m_wqe, &m_resp, &m_env, &m_plan);
        EXPECT_LE(m_peeks, 1u);
    }

    /** What an executor does with the data of a plan. */
    void execute()
    {
        std::vector<uint8_t> bytes;

        if (m_plan.atomic_size > 0) {
            uint64_t old = 0, value;
            uint8_t result[8];

            memcpy(&old, (void*)(uintptr_t)m_plan.atomic_addr,
                   m_plan.atomic_size);
            value = mlx5sim_atomic_compute(&m_wqe, old);
            memcpy((void*)(uintptr_t)m_plan.atomic_addr, &value,
                   m_plan.atomic_size);
            mlx5sim_atomic_result(&m_wqe, old, 0, result);
            bytes.assign(result, result + m_plan.atomic_size);
        }

        for (unsigned i = 0; i < m_plan.num_src; ++i) {
            const mlx5sim_seg_t &seg = m_plan.src[i];
            const uint8_t *ptr       = (seg.inl != NULL) ?
                                       static_cast<const uint8_t*>(seg.inl) :
                                       (const uint8_t*)(uintptr_t)seg.addr;
            bytes.insert(bytes.end(), ptr, ptr + seg.length);
        }

        size_t offset = 0;
        for (unsigned i = 0; i < m_plan.num_dst; ++i) {
            const mlx5sim_seg_t &seg = m_plan.dst[i];
            ASSERT_LE(offset + seg.length, bytes.size());
            memcpy((void*)(uintptr_t)seg.addr, &bytes[offset], seg.length);
            offset += seg.length;
        }
        EXPECT_EQ(bytes.size(), offset);
        if (m_plan.atomic_size == 0) {
            EXPECT_EQ(m_plan.length, offset);
        }
    }

    void expect_no_effect() const
    {
        EXPECT_EQ(0u, m_plan.length);
        EXPECT_EQ(0u, m_plan.num_src);
        EXPECT_EQ(0u, m_plan.num_dst);
        EXPECT_EQ(0u, m_plan.atomic_size);
        EXPECT_EQ(0u, m_plan.invalidate);
        EXPECT_EQ(0u, m_plan.grh_length);
    }

    /** The requester fails with @a syndrome; nothing else is looked at. */
    void expect_req_error(unsigned syndrome) const
    {
        EXPECT_EQ(MLX5SIM_VERDICT_DONE, m_plan.verdict);
        expect_no_effect();
        EXPECT_TRUE(m_plan.req_error);
        ASSERT_TRUE(m_plan.has_req_cqe);
        EXPECT_EQ(MLX5SIM_CQE_REQ_ERR, m_plan.req_cqe.opcode);
        EXPECT_EQ(syndrome, m_plan.req_cqe.syndrome);
        EXPECT_EQ(m_wqe.opcode, m_plan.req_cqe.wqe_opcode);
        EXPECT_EQ(m_wqe.index, m_plan.req_cqe.wqe_counter);
        EXPECT_EQ(m_req.qpn, m_plan.req_cqe.qpn);
        EXPECT_EQ(m_req.uidx, m_plan.req_cqe.uidx);
        EXPECT_TRUE(m_plan.req_cqe.solicited);
    }

    /** ... and the responder did not notice. */
    void expect_local_error(unsigned syndrome) const
    {
        expect_req_error(syndrome);
        expect_resp_untouched();
    }

    /** ... and the responder answered with a NAK. */
    void expect_nak(unsigned syndrome, unsigned event) const
    {
        expect_req_error(syndrome);
        EXPECT_FALSE(m_plan.consume_recv);
        EXPECT_FALSE(m_plan.has_resp_cqe);
        EXPECT_TRUE(m_plan.resp_error);
        EXPECT_EQ(event, m_plan.resp_event);
    }

    void expect_resp_untouched() const
    {
        EXPECT_FALSE(m_plan.consume_recv);
        EXPECT_FALSE(m_plan.has_resp_cqe);
        EXPECT_FALSE(m_plan.resp_error);
        EXPECT_EQ(0u, m_plan.resp_event);
    }

    /** The responder's receive fails with @a syndrome. */
    void expect_resp_cqe_error(unsigned syndrome) const
    {
        EXPECT_TRUE(m_plan.consume_recv);
        EXPECT_TRUE(m_plan.resp_error);
        ASSERT_TRUE(m_plan.has_resp_cqe);
        EXPECT_EQ(MLX5SIM_CQE_RESP_ERR, m_plan.resp_cqe.opcode);
        EXPECT_EQ(syndrome, m_plan.resp_cqe.syndrome);
        EXPECT_EQ(m_resp.qpn, m_plan.resp_cqe.qpn);
        EXPECT_EQ(77u, m_plan.resp_cqe.wqe_counter);
        EXPECT_TRUE(m_plan.resp_cqe.solicited);
    }

    void expect_req_success() const
    {
        EXPECT_EQ(MLX5SIM_VERDICT_DONE, m_plan.verdict);
        EXPECT_FALSE(m_plan.req_error);
        ASSERT_EQ(m_wqe.signaled, m_plan.has_req_cqe);
        if (m_plan.has_req_cqe) {
            EXPECT_EQ(MLX5SIM_CQE_REQ, m_plan.req_cqe.opcode);
            EXPECT_EQ(0u, m_plan.req_cqe.syndrome);
            EXPECT_EQ(m_wqe.opcode, m_plan.req_cqe.wqe_opcode);
            EXPECT_EQ(m_wqe.index, m_plan.req_cqe.wqe_counter);
            EXPECT_EQ(m_req.qpn, m_plan.req_cqe.qpn);
        }
    }

    /** Unreliable: the requester is done, the responder saw nothing. */
    void expect_lost() const
    {
        expect_req_success();
        expect_no_effect();
        expect_resp_untouched();
    }

protected:
    void add_mr(mlx5sim_side_t side, uint32_t key, uint32_t pdn,
                uint32_t access, uint32_t window = 0)
    {
        mlx5sim_mr_t mr;

        memset(&mr, 0, sizeof(mr));
        mr.key    = key;
        mr.pdn    = pdn;
        mr.access    = access;
        mr.window_type = window;
        mr.iova   = iova(side);
        mr.va     = (side == MLX5SIM_SIDE_REQUESTER) ? req_va() : resp_va();
        mr.length = BUF_SIZE;
        m_mrs[std::make_pair((int)side, key)] = mr;
    }

    static const mlx5sim_mr_t *mr_find(void *arg, mlx5sim_side_t side,
                                       uint32_t key)
    {
        test_engine *self = static_cast<test_engine*>(arg);
        auto it           = self->m_mrs.find(std::make_pair((int)side, key));

        return (it == self->m_mrs.end()) ? NULL : &it->second;
    }

    /** Pieces of m_piece bytes, one behind the other; nothing is at m_hole. */
    static uint64_t layout_find(void *arg, mlx5sim_side_t side, uint32_t key,
                                uint32_t access, uint64_t addr, uint64_t length,
                                uint64_t *va_p)
    {
        test_engine *self = static_cast<test_engine*>(arg);
        uint64_t offset   = addr - iova(side);

        EXPECT_TRUE((key == RKEY_LIST) || (key == LKEY_LIST));
        if ((self->m_hole >= offset) && (self->m_hole < offset + length)) {
            return 0;
        }

        self->m_layout_access = access;
        *va_p = (side == MLX5SIM_SIDE_REQUESTER) ? self->req_va(offset) :
                                                   self->resp_va(offset);
        return std::min(length, self->m_piece - offset % self->m_piece);
    }

    static int recv_peek(void *arg, mlx5sim_recv_wqe_t *recv_p)
    {
        test_engine *self = static_cast<test_engine*>(arg);

        ++self->m_peeks;
        if (self->m_recv_status == 1) {
            *recv_p = self->m_recv;
        }
        return self->m_recv_status;
    }

    std::vector<uint8_t> m_req_buf;
    std::vector<uint8_t> m_resp_buf;
    test_sq              m_sq;
    mlx5sim_qp_t         m_req;
    mlx5sim_qp_t         m_resp;
    mlx5sim_env_t        m_env;
    mlx5sim_wqe_t        m_wqe;
    mlx5sim_plan_t       m_plan;
    mlx5sim_recv_wqe_t   m_recv;
    int                  m_recv_status;
    unsigned             m_peeks;
    uint64_t             m_hole = UINT64_MAX;
    uint64_t             m_piece = 64;
    uint32_t             m_layout_access = 0;
    std::map<std::pair<int, uint32_t>, mlx5sim_mr_t> m_mrs;
};

#endif
