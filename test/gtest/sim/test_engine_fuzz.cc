/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/test_engine.h>

#include <common/seed.h>

#include <algorithm>
#include <random>

/* Arbitrary bytes in the queues: nothing is read outside of them (meant to run
 * under ASan), and what comes out is always consistent. */

class test_engine_fuzz : public test_engine {
protected:
    test_engine_fuzz() : m_random(seed::get())
    {
    }

    uint32_t random(uint32_t limit)
    {
        return m_random() % limit;
    }

    void fill_random(uint8_t *bytes, size_t size)
    {
        for (size_t i = 0; i < size; ++i) {
            bytes[i] = m_random();
        }
    }

    /** Let some of the randomness get past the first checks. */
    void make_plausible(test_sq *sq, unsigned index)
    {
        static const uint8_t opcodes[] = {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b,
                                          0x10, 0x11, 0x12, 0x14, 0x15};

        sq->ctrl(index, opcodes[random(sizeof(opcodes))], m_req.qpn,
                 random(2) * 8, random(2) ? 0 : 8 + random(2));
        for (size_t unit = 1; unit < sq->size() / 16; ++unit) {
            switch (random(4)) {
            case 0: /* inline of a length that has a chance */
                sq->be32(unit * 16, 0x80000000 | random(128));
                break;
            case 1: /* data of known memory */
                sq->be32(unit * 16, random(256));
                sq->be32(unit * 16 + 4, random(2) ? LKEY : RKEY);
                sq->be64(unit * 16 + 8, random(2) ? req_addr(random(BUF_SIZE)) :
                                                    random(1 << 30));
                break;
            case 2: /* remote address */
                sq->be64(unit * 16, resp_addr(random(BUF_SIZE) & ~7));
                sq->be32(unit * 16 + 8, RKEY);
                break;
            default:
                break;
            }
        }
        sq->finish(random(64));
    }

    void check_wqe(mlx5sim_chk_t chk, test_sq *sq)
    {
        uint64_t length = 0;

        ASSERT_GE(m_wqe.num_bb, 1);
        ASSERT_LE(m_wqe.num_bb, 16);
        ASSERT_LE(m_wqe.num_segs, unsigned(MLX5SIM_MAX_SGE));
        ASSERT_LT(chk, MLX5SIM_CHK_LAST);
        for (unsigned i = 0; i < m_wqe.num_segs; ++i) {
            const mlx5sim_seg_t &seg = m_wqe.segs[i];
            const uint8_t *inl       = static_cast<const uint8_t*>(seg.inl);
            if (inl != NULL) {
                ASSERT_GE(inl, sq->bytes());
                ASSERT_LE(inl + seg.length, sq->bytes() + sq->size());
            }
            ASSERT_GT(seg.length, 0u);
            length += seg.length;
        }
        if (chk == MLX5SIM_CHK_OK) {
            ASSERT_EQ(length, m_wqe.length);
            ASSERT_LE(m_wqe.num_bb * 64u, sq->size());
        }
    }

    /** Both lists of a plan are inside the buffers and of one length. */
    void check_plan(test_sq *sq)
    {
        uint64_t src = 0, dst = 0;

        for (unsigned i = 0; i < m_plan.num_src; ++i) {
            check_seg(m_plan.src[i], m_plan.src_side, sq);
            src += m_plan.src[i].length;
        }
        for (unsigned i = 0; i < m_plan.num_dst; ++i) {
            ASSERT_EQ(NULL, m_plan.dst[i].inl);
            check_seg(m_plan.dst[i], m_plan.dst_side, sq);
            dst += m_plan.dst[i].length;
        }
        if (m_plan.is_answered) {
            ASSERT_TRUE(m_plan.req_error);
            ASSERT_FALSE(m_plan.resp_error);
            ASSERT_FALSE(m_plan.consume_recv);
            ASSERT_EQ(MLX5SIM_VERDICT_DONE, m_plan.verdict);
            ASSERT_EQ(0u, dst);
            ASSERT_EQ(m_plan.length, src);
        } else if (m_plan.atomic_size != 0) {
            ASSERT_EQ(m_plan.atomic_size, dst);
            ASSERT_GE(m_plan.atomic_addr, resp_va());
            ASSERT_LE(m_plan.atomic_addr + m_plan.atomic_size,
                      resp_va() + BUF_SIZE);
        } else {
            ASSERT_EQ(m_plan.length, src);
            ASSERT_EQ(m_plan.length, dst);
        }
        if (m_plan.verdict != MLX5SIM_VERDICT_DONE) {
            expect_no_effect();
            ASSERT_FALSE(m_plan.has_req_cqe);
            ASSERT_FALSE(m_plan.has_resp_cqe);
        }
        if (m_plan.req_error) {
            ASSERT_TRUE(m_plan.has_req_cqe);
            ASSERT_NE(0, m_plan.req_cqe.syndrome);
            if (!m_plan.is_answered) {
                expect_no_effect();
            }
        }
    }

    void check_seg(const mlx5sim_seg_t &seg, mlx5sim_side_t side, test_sq *sq)
    {
        if (seg.inl == NULL) {
            uint64_t va = (side == MLX5SIM_SIDE_REQUESTER) ? req_va() :
                                                             resp_va();
            ASSERT_GE(seg.addr, va);
            ASSERT_LE(seg.addr + seg.length, va + BUF_SIZE);
        } else if (seg.inl != m_plan.grh) {
            const uint8_t *inl = static_cast<const uint8_t*>(seg.inl);
            ASSERT_GE(inl, sq->bytes());
            ASSERT_LE(inl + seg.length, sq->bytes() + sq->size());
        }
    }

    void random_recv()
    {
        m_recv_status = 0;
        for (unsigned i = random(5); i > 0; --i) {
            add_recv(random(BUF_SIZE), 1 + random(2000),
                     random(8) ? RKEY : RKEY_READ);
        }
    }

    std::mt19937 m_random;
};


TEST_F(test_engine_fuzz, noise_in_the_send_queue)
{
    char buf[512];

    for (unsigned i = 0; i < seed::cases(20000); ++i) {
        unsigned wqe_cnt = 1u << random(6);
        unsigned index   = random(65536);
        test_sq sq(wqe_cnt);

        m_req.sq_wqe_cnt = wqe_cnt;
        m_req.type       = 2 + random(4);
        m_req.is_roce    = random(2);
        fill_random(sq.bytes(), sq.size());
        mlx5sim_chk_t chk = mlx5sim_wqe_decode(&m_req, sq.bytes(), index,
                                               &m_wqe);
        ASSERT_NO_FATAL_FAILURE(check_wqe(chk, &sq));
        mlx5sim_wqe_dump(&m_req, sq.bytes(), index, buf, random(sizeof(buf)));
    }
}

TEST_F(test_engine_fuzz, nearly_valid_requests_end_to_end)
{
    unsigned executed = 0, failed = 0, rejected = 0;

    for (unsigned i = 0; i < seed::cases(60000); ++i) {
        unsigned wqe_cnt = 1u << random(6);
        unsigned index   = random(65536);
        test_sq sq(wqe_cnt);
        uint8_t cqe[128];

        m_req.sq_wqe_cnt = wqe_cnt;
        m_req.is_roce    = random(2);
        m_req.path_mtu   = random(7);
        set_type(2 + random(3));
        fill_random(sq.bytes(), sq.size());
        make_plausible(&sq, index);
        mlx5sim_chk_t chk = mlx5sim_wqe_decode(&m_req, sq.bytes(), index,
                                               &m_wqe);
        ASSERT_NO_FATAL_FAILURE(check_wqe(chk, &sq));
        if (mlx5sim_chk_is_fatal(chk)) {
            ++rejected;
            mlx5sim_plan_bad_wqe(&m_req, &m_wqe, chk, &m_plan);
            ASSERT_TRUE(m_plan.req_error);
            continue;
        }

        random_recv();
        if (m_wqe.has_av) {
            m_resp.qkey = m_wqe.av.qkey;
        }
        replan();
        ASSERT_NO_FATAL_FAILURE(check_plan(&sq));
        if (m_plan.req_error) {
            ++failed;
        } else if (m_plan.verdict == MLX5SIM_VERDICT_DONE) {
            ASSERT_NO_FATAL_FAILURE(execute());
            ++executed;
        }
        if (m_plan.has_resp_cqe) {
            mlx5sim_cqe_build(&m_plan.resp_cqe, 128, 1, cqe);
        }
        /* only a copy can fault */
        if (((m_plan.length > 0) || (m_plan.atomic_size > 0)) &&
            (random(8) == 0)) {
            mlx5sim_plan_fault(&m_req, &m_wqe, &m_resp,
                               random(2) ? MLX5SIM_SIDE_REQUESTER :
                                           MLX5SIM_SIDE_RESPONDER, &m_plan);
            ASSERT_NO_FATAL_FAILURE(check_plan(&sq));
        }
    }

    /* the generator reaches all ends */
    EXPECT_GT(executed, seed::cases(100));
    EXPECT_GT(failed, seed::cases(100));
    EXPECT_GT(rejected, seed::cases(100));
}

TEST_F(test_engine_fuzz, noise_in_the_receive_queue)
{
    for (unsigned i = 0; i < seed::cases(50000); ++i) {
        unsigned stride = random(4) ? 16u << random(7) : random(1100);
        uint8_t *wqe    = new uint8_t[stride];
        uint64_t length = 0;
        int is_srq      = random(2);

        fill_random(wqe, stride);
        for (unsigned unit = 0; unit < stride / 16; ++unit) {
            if (random(8)) {
                wqe[unit * 16] &= 0x7f;
            }
            if (random(16) == 0) {
                memcpy(wqe + unit * 16 + 4, "\0\0\1\0", 4);
            }
        }
        mlx5sim_chk_t chk = mlx5sim_recv_decode(wqe, stride, is_srq, &m_recv);
        if (chk == MLX5SIM_CHK_OK) {
            ASSERT_LE((m_recv.num_segs + is_srq) * 16, stride);
            for (unsigned j = 0; j < m_recv.num_segs; ++j) {
                length += m_recv.segs[j].length;
            }
            ASSERT_EQ(std::min(length, uint64_t(UINT32_MAX)), m_recv.length);
        } else {
            ASSERT_EQ(MLX5SIM_CHK_RECV_WQE, chk);
            ASSERT_EQ(0u, m_recv.num_segs);
            ASSERT_EQ(0u, m_recv.length);
        }
        delete[] wqe;
    }
}
