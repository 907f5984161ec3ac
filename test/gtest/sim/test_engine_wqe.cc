/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/test_engine.h>

#include <infiniband/mlx5dv.h>

#include <string>

/* Send WQEs: what the decoder finds in bytes written field by field, in WQEs
 * built with rdma-core's own header, and in broken ones. */

class test_engine_wqe : public test_engine {
protected:
    void expect_seg(unsigned i, uint64_t addr, uint32_t length, uint32_t lkey)
    {
        ASSERT_LT(i, m_wqe.num_segs);
        EXPECT_EQ(NULL, m_wqe.segs[i].inl);
        EXPECT_EQ(addr, m_wqe.segs[i].addr);
        EXPECT_EQ(length, m_wqe.segs[i].length);
        EXPECT_EQ(lkey, m_wqe.segs[i].lkey);
    }

    std::string inline_bytes() const
    {
        std::string bytes;
        for (unsigned i = 0; i < m_wqe.num_segs; ++i) {
            const mlx5sim_seg_t &seg = m_wqe.segs[i];
            if (seg.inl != NULL) {
                EXPECT_EQ((uintptr_t)seg.inl, seg.addr);
                EXPECT_EQ(0u, seg.lkey);
                bytes.append(static_cast<const char*>(seg.inl), seg.length);
            }
        }
        return bytes;
    }

    /** Neither the WQE nor anything after it is executed. */
    void expect_fatal(mlx5sim_chk_t chk, uint16_t index = 0)
    {
        EXPECT_EQ(chk, decode(index)) << mlx5sim_chk_name(decode(index));
        EXPECT_TRUE(mlx5sim_chk_is_fatal(chk));
        EXPECT_GE(m_wqe.num_bb, 1);
    }

    /** Reported, but everything of the WQE is there. */
    void expect_harmless(mlx5sim_chk_t chk)
    {
        EXPECT_EQ(chk, decode());
        EXPECT_FALSE(mlx5sim_chk_is_fatal(chk));
        EXPECT_EQ(MLX5SIM_OPCODE_RDMA_WRITE, m_wqe.opcode);
        EXPECT_EQ(0x4000u, m_wqe.raddr);
        EXPECT_EQ(1u, m_wqe.num_segs);
        EXPECT_EQ(8u, m_wqe.length);
    }

    void post_write(uint8_t fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE)
    {
        m_sq.ctrl(0, MLX5_OPCODE_RDMA_WRITE, REQ_QPN, fm_ce_se)
            .raddr(0x4000, RKEY).data(req_addr(), 8, LKEY).finish();
    }

    static const uint8_t dgid[16];
};

const uint8_t test_engine_wqe::dgid[16] = {0xfe, 0x80, 2, 3, 4, 5, 6, 7,
                                           8, 9, 10, 11, 12, 13, 14, 15};


TEST_F(test_engine_wqe, nop_is_control_segment_only)
{
    m_sq.ctrl(0, MLX5_OPCODE_NOP, REQ_QPN, MLX5_WQE_CTRL_CQ_UPDATE).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(MLX5SIM_OPCODE_NOP, m_wqe.opcode);
    EXPECT_EQ(1, m_wqe.ds);
    EXPECT_EQ(1, m_wqe.num_bb);
    EXPECT_TRUE(m_wqe.signaled);
    EXPECT_EQ(0u, m_wqe.num_segs);
    EXPECT_EQ(0u, m_wqe.length);
    EXPECT_FALSE(m_wqe.has_raddr);
    EXPECT_FALSE(m_wqe.has_av);
    EXPECT_EQ(0, m_wqe.atomic_size);
}

TEST_F(test_engine_wqe, nop_may_carry_anything_after_control)
{
    m_sq.ctrl(0, MLX5_OPCODE_NOP, REQ_QPN)
        .words32(0xffffffff, 0x100, 3, 4).words32(5, 6, 7, 8).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0u, m_wqe.num_segs);
}

TEST_F(test_engine_wqe, send_gathers_inline_and_memory_in_order)
{
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN, MLX5_WQE_CTRL_SOLICITED)
        .inl("header", 6).data(0x1234567890ull, 100, LKEY).inl("tail", 4)
        .data(0x55, 1, LKEY_RO).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_FALSE(m_wqe.signaled);
    EXPECT_TRUE(m_wqe.solicited);
    EXPECT_EQ(5, m_wqe.ds);
    EXPECT_EQ(2, m_wqe.num_bb);
    EXPECT_EQ(4u, m_wqe.num_segs);
    EXPECT_EQ(111u, m_wqe.length);
    EXPECT_EQ("headertail", inline_bytes());
    expect_seg(1, 0x1234567890ull, 100, LKEY);
    expect_seg(3, 0x55, 1, LKEY_RO);
}

TEST_F(test_engine_wqe, zero_length_send_has_no_segments)
{
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0u, m_wqe.num_segs);
    EXPECT_EQ(0u, m_wqe.length);
}

TEST_F(test_engine_wqe, empty_inline_segment_is_no_data)
{
    m_sq.ctrl(0, MLX5_OPCODE_RDMA_WRITE, REQ_QPN).raddr(1, 2).inl("", 0)
        .finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0u, m_wqe.num_segs);
    EXPECT_EQ(0u, m_wqe.length);
}

TEST_F(test_engine_wqe, immediate_stays_as_posted_and_invalidated_rkey_is_host)
{
    for (uint8_t opcode : {MLX5_OPCODE_SEND_IMM, MLX5_OPCODE_RDMA_WRITE_IMM}) {
        m_sq.ctrl(0, opcode, REQ_QPN, 0, 0, 0x11223344);
        if (opcode == MLX5_OPCODE_RDMA_WRITE_IMM) {
            m_sq.raddr(1, 2);
        }
        m_sq.finish();
        ASSERT_EQ(MLX5SIM_CHK_OK, decode());
        EXPECT_EQ(0x11223344u, m_wqe.imm);
    }

    m_sq.ctrl(0, MLX5_OPCODE_SEND_INVAL, REQ_QPN, 0, 0, htobe32(0x2000))
        .finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0x2000u, m_wqe.imm);
}

TEST_F(test_engine_wqe, read_scatters_to_a_list)
{
    m_sq.ctrl(0, MLX5_OPCODE_RDMA_READ, REQ_QPN, MLX5_WQE_CTRL_FENCE)
        .raddr(0xabcdef0123456789ull, 0xdeadbeef).data(0x10, 20, LKEY)
        .data(0x30, 40, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_TRUE(m_wqe.has_raddr);
    EXPECT_TRUE(m_wqe.fence);
    EXPECT_EQ(0xabcdef0123456789ull, m_wqe.raddr);
    EXPECT_EQ(0xdeadbeefu, m_wqe.rkey);
    EXPECT_EQ(60u, m_wqe.length);
    expect_seg(0, 0x10, 20, LKEY);
    expect_seg(1, 0x30, 40, LKEY);
}

TEST_F(test_engine_wqe, data_segment_of_length_0_is_2_gigabytes)
{
    m_sq.ctrl(0, MLX5_OPCODE_RDMA_WRITE, REQ_QPN).raddr(1, 2)
        .data(0x1000, 0, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(1u << 31, m_wqe.length);
    expect_seg(0, 0x1000, 1u << 31, LKEY);
}

TEST_F(test_engine_wqe, plain_atomics_have_full_masks)
{
    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_CS, REQ_QPN).raddr(0x40, 2)
        .words64(0x1111, 0x2222).data(0x10, 8, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(8, m_wqe.atomic_size);
    EXPECT_TRUE(m_wqe.atomic.is_cas);
    EXPECT_EQ(0x1111u, m_wqe.atomic.swap_add);
    EXPECT_EQ(0x2222u, m_wqe.atomic.compare);
    EXPECT_EQ(UINT64_MAX, m_wqe.atomic.swap_mask);
    EXPECT_EQ(UINT64_MAX, m_wqe.atomic.compare_mask);
    EXPECT_EQ(8u, m_wqe.length);
    expect_seg(0, 0x10, 8, LKEY);

    /* the compare field of a fetch-and-add is whatever was there before */
    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_FA, REQ_QPN).raddr(0x40, 2)
        .words64(5, 0xbad).data(0x10, 4, LKEY).data(0x20, 4, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_FALSE(m_wqe.atomic.is_cas);
    EXPECT_EQ(5u, m_wqe.atomic.swap_add);
    EXPECT_EQ(0u, m_wqe.atomic.compare);
    EXPECT_EQ(0u, m_wqe.atomic.compare_mask);
    EXPECT_EQ(2u, m_wqe.num_segs);
}

/* Layouts of UCX: uct_rc_mlx5_txqp_dptr_post, opmod 8 | (log2(size) - 2) */
TEST_F(test_engine_wqe, masked_atomics_of_4_and_8_bytes)
{
    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_CS, REQ_QPN, 0, 8).raddr(0x40, 2)
        .words32(1, 2, 3, 4).data(0x10, 4, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(4, m_wqe.atomic_size);
    EXPECT_TRUE(m_wqe.atomic.is_cas);
    EXPECT_EQ(1u, m_wqe.atomic.swap_add);
    EXPECT_EQ(2u, m_wqe.atomic.compare);
    EXPECT_EQ(3u, m_wqe.atomic.swap_mask);
    EXPECT_EQ(4u, m_wqe.atomic.compare_mask);

    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_CS, REQ_QPN, 0, 9).raddr(0x40, 2)
        .words64(1ull << 40, 2).words64(3, 4ull << 50).data(0x10, 8, LKEY)
        .finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(8, m_wqe.atomic_size);
    EXPECT_EQ(5, m_wqe.ds);
    EXPECT_EQ(1ull << 40, m_wqe.atomic.swap_add);
    EXPECT_EQ(2u, m_wqe.atomic.compare);
    EXPECT_EQ(3u, m_wqe.atomic.swap_mask);
    EXPECT_EQ(4ull << 50, m_wqe.atomic.compare_mask);
    expect_seg(0, 0x10, 8, LKEY);

    /* the last two words are not written by software */
    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_FA, REQ_QPN, 0, 8).raddr(0x40, 2)
        .words32(7, 0x80000000, 0xbad, 0xbad).data(0x10, 4, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(4, m_wqe.atomic_size);
    EXPECT_FALSE(m_wqe.atomic.is_cas);
    EXPECT_EQ(7u, m_wqe.atomic.swap_add);
    EXPECT_EQ(0u, m_wqe.atomic.compare);
    EXPECT_EQ(0x80000000u, m_wqe.atomic.compare_mask);

    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_FA, REQ_QPN, 0, 9).raddr(0x40, 2)
        .words64(7, 9).data(0x10, 8, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(8, m_wqe.atomic_size);
    EXPECT_EQ(7u, m_wqe.atomic.swap_add);
    EXPECT_EQ(0u, m_wqe.atomic.compare);
    EXPECT_EQ(9u, m_wqe.atomic.compare_mask);
}

TEST_F(test_engine_wqe, datagram_with_full_address_vector)
{
    set_type(MLX5SIM_QPT_UD);
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .av(RESP_QPN, 0x1234, 17, 0x35, 0x40000000 | (9 << 20) | 0xabcde, 0x21,
            64, dgid).inl("x", 1).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_TRUE(m_wqe.has_av);
    EXPECT_EQ(uint32_t(RESP_QPN), m_wqe.av.dqpn);
    EXPECT_EQ(0x1234u, m_wqe.av.qkey);
    EXPECT_EQ(17, m_wqe.av.dlid);
    EXPECT_EQ(5, m_wqe.av.sl);
    EXPECT_TRUE(m_wqe.av.has_grh);
    EXPECT_EQ(0x21, m_wqe.av.tclass);
    EXPECT_EQ(64, m_wqe.av.hop_limit);
    EXPECT_EQ(0xabcdeu, m_wqe.av.flow_label);
    EXPECT_EQ(0, memcmp(dgid, m_wqe.av.dgid, 16));
    EXPECT_EQ(0, memcmp("\xaa\xbb\xcc\xdd\xee\xff", m_wqe.av.dmac, 6));
    EXPECT_EQ("x", inline_bytes());
}

TEST_F(test_engine_wqe, datagram_without_grh_bit_has_no_grh_on_infiniband)
{
    set_type(MLX5SIM_QPT_UD);
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .av(RESP_QPN, 0x1234, 17, 0, 0, 0, 0, dgid).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_FALSE(m_wqe.av.has_grh);
}

TEST_F(test_engine_wqe, datagram_on_ethernet_has_grh_and_a_3_bit_priority)
{
    set_type(MLX5SIM_QPT_UD);
    m_req.is_roce = 1;
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .av(RESP_QPN, 0x1234, 0xc000, 0x0a, 0, 0, 0, dgid).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_TRUE(m_wqe.av.has_grh);
    EXPECT_EQ(5, m_wqe.av.sl);
}

TEST_F(test_engine_wqe, datagram_with_compact_address_vector)
{
    set_type(MLX5SIM_QPT_UD);
    m_sq.ctrl(0, MLX5_OPCODE_SEND_IMM, REQ_QPN, 0, 0, 99)
        .compact_av(RESP_QPN, 0x1234, 17, 3).data(5, 6, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(3, m_wqe.ds);
    EXPECT_EQ(uint32_t(RESP_QPN), m_wqe.av.dqpn);
    EXPECT_EQ(17, m_wqe.av.dlid);
    EXPECT_EQ(3, m_wqe.av.sl);
    EXPECT_FALSE(m_wqe.av.has_grh);
    EXPECT_EQ(0, m_wqe.av.tclass);
    EXPECT_EQ(0, m_wqe.av.hop_limit);
    EXPECT_EQ(0u, m_wqe.av.flow_label);
    for (unsigned i = 0; i < 16; ++i) {
        EXPECT_EQ(0, m_wqe.av.dgid[i]);
    }
    expect_seg(0, 5, 6, LKEY);
}

TEST_F(test_engine_wqe, controlled_qkey_is_the_queue_pairs_own)
{
    set_type(MLX5SIM_QPT_UD);
    m_req.qkey = 0x80010000;
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .compact_av(RESP_QPN, 0x80000000, 17, 3).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0x80010000u, m_wqe.av.qkey);
}


/*
 * Wrap-around
 */

TEST_F(test_engine_wqe, inline_data_that_wraps_makes_two_segments)
{
    std::string text;
    for (unsigned i = 0; i < 200; ++i) {
        text += 'a' + (i % 26);
    }

    /* last block of the queue: 12 bytes of data fit before the end */
    m_sq.ctrl(15, MLX5_OPCODE_RDMA_WRITE, REQ_QPN).raddr(1, 2)
        .inl(text.data(), text.size()).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(15));
    EXPECT_EQ(2u, m_wqe.num_segs);
    EXPECT_EQ(28u, m_wqe.segs[0].length);
    EXPECT_EQ(172u, m_wqe.segs[1].length);
    EXPECT_EQ(m_sq.bytes(), m_wqe.segs[1].inl);
    EXPECT_EQ(text, inline_bytes());
    EXPECT_EQ(4, m_wqe.num_bb);
}

TEST_F(test_engine_wqe, inline_data_that_ends_with_the_queue_does_not_wrap)
{
    m_sq.ctrl(15, MLX5_OPCODE_RDMA_WRITE, REQ_QPN).raddr(1, 2)
        .inl("0123456789012345678901234567", 28).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(15));
    EXPECT_EQ(1u, m_wqe.num_segs);
    EXPECT_EQ(28u, m_wqe.length);
}

TEST_F(test_engine_wqe, segments_after_a_wrapped_inline_segment_are_found)
{
    std::string text(50, 'z');

    m_sq.ctrl(15, MLX5_OPCODE_SEND, REQ_QPN).inl(text.data(), text.size())
        .data(0x77, 88, LKEY).inl("end", 3).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(15));
    EXPECT_EQ(4u, m_wqe.num_segs);
    expect_seg(2, 0x77, 88, LKEY);
    EXPECT_EQ(text + "end", inline_bytes());
}

TEST_F(test_engine_wqe, data_segments_wrap_at_unit_boundaries)
{
    m_sq.ctrl(15, MLX5_OPCODE_SEND, REQ_QPN);
    for (unsigned i = 0; i < 10; ++i) {
        m_sq.data(0x1000 + i, 10 + i, LKEY + i);
    }
    m_sq.finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(15));
    EXPECT_EQ(10u, m_wqe.num_segs);
    for (unsigned i = 0; i < 10; ++i) {
        expect_seg(i, 0x1000 + i, 10 + i, LKEY + i);
    }
}

TEST_F(test_engine_wqe, datagram_data_wraps_right_after_the_address_vector)
{
    set_type(MLX5SIM_QPT_UD);
    m_sq.ctrl(15, MLX5_OPCODE_SEND, REQ_QPN)
        .av(RESP_QPN, 1, 2, 3, 0, 0, 0, dgid).data(9, 10, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(15));
    expect_seg(0, 9, 10, LKEY);
}

TEST_F(test_engine_wqe, atomic_data_wraps_right_after_the_operands)
{
    m_sq.ctrl(15, MLX5_OPCODE_ATOMIC_MASKED_CS, REQ_QPN, 0, 9).raddr(8, 9)
        .words64(1, 2).words64(3, 4).data(0x10, 8, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(15));
    EXPECT_EQ(4u, m_wqe.atomic.compare_mask);
    expect_seg(0, 0x10, 8, LKEY);
}

TEST_F(test_engine_wqe, block_counter_is_masked_by_the_queue_only)
{
    /* 0xffff is block 15; the control segment has all 16 bits */
    m_sq.ctrl(0xffff, MLX5_OPCODE_SEND, REQ_QPN).data(1, 2, 3).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(0xffff));
    EXPECT_EQ(0xffff, m_wqe.index);
    EXPECT_EQ(MLX5SIM_CHK_WQE_INDEX, decode(15));
}

TEST_F(test_engine_wqe, queue_of_one_block)
{
    test_sq sq(1);

    m_req.sq_wqe_cnt = 1;
    sq.ctrl(3, MLX5_OPCODE_RDMA_WRITE, REQ_QPN).raddr(1, 2).inl("abcdefgh", 8)
      .finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, mlx5sim_wqe_decode(&m_req, sq.bytes(), 3,
                                                 &m_wqe));
    EXPECT_EQ(8u, m_wqe.length);
    sq.finish(5);
    EXPECT_EQ(MLX5SIM_CHK_WQE_DS, mlx5sim_wqe_decode(&m_req, sq.bytes(), 3,
                                                     &m_wqe));
}

TEST_F(test_engine_wqe, longest_list_fits)
{
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN);
    for (unsigned i = 0; i < 62; ++i) {
        m_sq.data(i, 1, LKEY);
    }
    m_sq.finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(62u, m_wqe.num_segs);
    EXPECT_EQ(16, m_wqe.num_bb);
}


/*
 * WQEs of rdma-core's mlx5dv.h
 */

TEST_F(test_engine_wqe, mlx5dv_setters_build_a_write)
{
    struct {
        struct mlx5_wqe_ctrl_seg  ctrl;
        struct mlx5_wqe_raddr_seg raddr;
        struct mlx5_wqe_data_seg  data;
    } dv;

    memset(&dv, 0, sizeof(dv));
    mlx5dv_set_ctrl_seg(&dv.ctrl, 5, MLX5_OPCODE_RDMA_WRITE_IMM, 0, REQ_QPN,
                        MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_SOLICITED |
                        MLX5_WQE_CTRL_FENCE, 3, 0, htobe32(0xcafe));
    dv.raddr.raddr = htobe64(0x123456789abcull);
    dv.raddr.rkey  = htobe32(0x4321);
    mlx5dv_set_data_seg(&dv.data, 4096, LKEY, 0x7fff12345678ull);
    memcpy(m_sq.bytes() + 5 * 64, &dv, sizeof(dv));

    ASSERT_EQ(MLX5SIM_CHK_OK, decode(5));
    EXPECT_EQ(MLX5SIM_OPCODE_RDMA_WRITE_IMM, m_wqe.opcode);
    EXPECT_TRUE(m_wqe.signaled);
    EXPECT_TRUE(m_wqe.solicited);
    EXPECT_TRUE(m_wqe.fence);
    EXPECT_EQ(htobe32(0xcafe), m_wqe.imm);
    EXPECT_EQ(0x123456789abcull, m_wqe.raddr);
    EXPECT_EQ(0x4321u, m_wqe.rkey);
    expect_seg(0, 0x7fff12345678ull, 4096, LKEY);
}

TEST_F(test_engine_wqe, mlx5dv_setters_build_a_datagram)
{
    struct {
        struct mlx5_wqe_ctrl_seg     ctrl;
        struct mlx5_wqe_datagram_seg dgram;
        struct mlx5_wqe_data_seg     data;
    } dv;
    uint8_t gid[16], mac[6] = {1, 2, 3, 4, 5, 6};

    set_type(MLX5SIM_QPT_UD);
    memcpy(gid, dgid, sizeof(gid));
    memset(&dv, 0, sizeof(dv));
    mlx5dv_set_ctrl_seg(&dv.ctrl, 0, MLX5_OPCODE_SEND, 0, REQ_QPN, 0, 5, 0, 0);
    mlx5dv_set_dgram_seg(&dv.dgram, 0x1ee7ull << 32, RESP_QPN, 1, 4, 0x81, 99,
                         mac, 7, 8, 0x40000000 | 0x12345, gid);
    mlx5dv_set_data_seg(&dv.data, 64, LKEY, 0x1000);
    memcpy(m_sq.bytes(), &dv, sizeof(dv));

    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0x1ee7u, m_wqe.av.qkey);
    EXPECT_EQ(uint32_t(RESP_QPN), m_wqe.av.dqpn);
    EXPECT_EQ(99, m_wqe.av.dlid);
    EXPECT_EQ(4, m_wqe.av.sl);
    EXPECT_EQ(7, m_wqe.av.tclass);
    EXPECT_EQ(8, m_wqe.av.hop_limit);
    EXPECT_EQ(0x12345u, m_wqe.av.flow_label);
    EXPECT_TRUE(m_wqe.av.has_grh);
    EXPECT_EQ(0, memcmp(mac, m_wqe.av.dmac, 6));
    EXPECT_EQ(0, memcmp(gid, m_wqe.av.dgid, 16));
    expect_seg(0, 0x1000, 64, LKEY);
}

TEST_F(test_engine_wqe, codes_are_those_of_mlx5dv)
{
    EXPECT_EQ(int(MLX5_OPCODE_NOP), int(MLX5SIM_OPCODE_NOP));
    EXPECT_EQ(int(MLX5_OPCODE_SEND_INVAL), int(MLX5SIM_OPCODE_SEND_INVAL));
    EXPECT_EQ(int(MLX5_OPCODE_RDMA_WRITE), int(MLX5SIM_OPCODE_RDMA_WRITE));
    EXPECT_EQ(int(MLX5_OPCODE_RDMA_WRITE_IMM),
              int(MLX5SIM_OPCODE_RDMA_WRITE_IMM));
    EXPECT_EQ(int(MLX5_OPCODE_SEND), int(MLX5SIM_OPCODE_SEND));
    EXPECT_EQ(int(MLX5_OPCODE_SEND_IMM), int(MLX5SIM_OPCODE_SEND_IMM));
    EXPECT_EQ(int(MLX5_OPCODE_TSO), int(MLX5SIM_OPCODE_TSO));
    EXPECT_EQ(int(MLX5_OPCODE_RDMA_READ), int(MLX5SIM_OPCODE_RDMA_READ));
    EXPECT_EQ(int(MLX5_OPCODE_ATOMIC_CS), int(MLX5SIM_OPCODE_ATOMIC_CS));
    EXPECT_EQ(int(MLX5_OPCODE_ATOMIC_FA), int(MLX5SIM_OPCODE_ATOMIC_FA));
    EXPECT_EQ(int(MLX5_OPCODE_ATOMIC_MASKED_CS),
              int(MLX5SIM_OPCODE_ATOMIC_MASKED_CS));
    EXPECT_EQ(int(MLX5_OPCODE_ATOMIC_MASKED_FA),
              int(MLX5SIM_OPCODE_ATOMIC_MASKED_FA));
    EXPECT_EQ(int(MLX5_OPCODE_UMR), int(MLX5SIM_OPCODE_UMR));
    EXPECT_EQ(uint32_t(MLX5_INVALID_LKEY), MLX5SIM_LKEY_INVALID);
    EXPECT_EQ(uint32_t(MLX5_INLINE_SEG), MLX5SIM_INLINE_FLAG);
    EXPECT_EQ(uint32_t(MLX5_EXTENDED_UD_AV), MLX5SIM_AV_EXT);
    EXPECT_EQ(sizeof(struct mlx5_wqe_ctrl_seg), sizeof(mlx5sim_ctrl_seg_t));
    EXPECT_EQ(sizeof(struct mlx5_wqe_av), sizeof(mlx5sim_av_seg_t));
    EXPECT_EQ(offsetof(struct mlx5_wqe_av, grh_gid_fl),
              offsetof(mlx5sim_av_seg_t, grh_gid_fl));
    EXPECT_EQ(offsetof(struct mlx5_wqe_srq_next_seg, next_wqe_index),
              offsetof(mlx5sim_srq_next_seg_t, next_wqe_index));
}


/*
 * What can be wrong
 */

TEST_F(test_engine_wqe, wrong_index_is_reported_and_the_rest_decoded)
{
    post_write();
    m_sq.at(2) = 9;
    expect_harmless(MLX5SIM_CHK_WQE_INDEX);
    EXPECT_EQ(0, m_wqe.index);
}

TEST_F(test_engine_wqe, wrong_qpn_is_reported_and_the_rest_decoded)
{
    post_write();
    m_sq.at(6) ^= 1;
    expect_harmless(MLX5SIM_CHK_WQE_QPN);
}

TEST_F(test_engine_wqe, reserved_bits_are_reported_and_the_rest_decoded)
{
    for (uint8_t bits : {0x01, 0x10, 5 << 5, 6 << 5, 7 << 5}) {
        post_write(bits);
        expect_harmless(MLX5SIM_CHK_WQE_RESERVED);
    }

    for (uint8_t bits : {0x40, 0x80}) {
        post_write();
        m_sq.at(7) |= bits;
        expect_harmless(MLX5SIM_CHK_WQE_RESERVED);
    }
}

TEST_F(test_engine_wqe, fence_modes_in_use_are_accepted)
{
    for (unsigned fm = 0; fm <= 4; ++fm) {
        post_write(fm << 5);
        EXPECT_EQ(MLX5SIM_CHK_OK, decode()) << fm;
        EXPECT_EQ(fm != 0, m_wqe.fence);
    }
}

/* UCX without SSE 4.2 and ibv_wr_* leave these bytes as they find them */
TEST_F(test_engine_wqe, bytes_that_software_leaves_alone_are_not_checked)
{
    post_write();
    m_sq.be32(8, 0xffffff00 | MLX5_WQE_CTRL_CQ_UPDATE);
    m_sq.be32(12, 0xffffffff);
    m_sq.be32(28, 0xffffffff);
    EXPECT_EQ(MLX5SIM_CHK_OK, decode());
}

TEST_F(test_engine_wqe, reserved_completion_modes_are_reported)
{
    post_write(1 << 2);
    expect_harmless(MLX5SIM_CHK_WQE_CE);
    EXPECT_FALSE(m_wqe.signaled);
    post_write(3 << 2);
    expect_harmless(MLX5SIM_CHK_WQE_CE);
    EXPECT_TRUE(m_wqe.signaled);
}

TEST_F(test_engine_wqe, fatal_mistake_goes_before_a_harmless_one)
{
    post_write();
    m_sq.at(2) = 9;
    m_sq.at(3) = 0x3f;
    expect_fatal(MLX5SIM_CHK_WQE_OPCODE);
}

TEST_F(test_engine_wqe, ds_is_zero)
{
    post_write();
    m_sq.finish(0);
    expect_fatal(MLX5SIM_CHK_WQE_DS);
    EXPECT_EQ(1, m_wqe.num_bb);
}

TEST_F(test_engine_wqe, ds_is_larger_than_the_queue)
{
    test_sq sq(4);

    m_req.sq_wqe_cnt = 4;
    sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).finish(17);
    EXPECT_EQ(MLX5SIM_CHK_WQE_DS, mlx5sim_wqe_decode(&m_req, sq.bytes(), 0,
                                                     &m_wqe));
    EXPECT_EQ(5, m_wqe.num_bb);
}

TEST_F(test_engine_wqe, queue_pair_without_send_queue)
{
    m_req.sq_wqe_cnt = 0;
    EXPECT_EQ(MLX5SIM_CHK_WQE_DS, mlx5sim_wqe_decode(&m_req, NULL, 0, &m_wqe));
    EXPECT_EQ(1, m_wqe.num_bb);
}

TEST_F(test_engine_wqe, ds_does_not_cover_the_segments_of_the_opcode)
{
    m_sq.ctrl(0, MLX5_OPCODE_RDMA_READ, REQ_QPN).finish();
    expect_fatal(MLX5SIM_CHK_WQE_DS);

    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_FA, REQ_QPN).raddr(8, 1).finish();
    expect_fatal(MLX5SIM_CHK_WQE_DS);

    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_CS, REQ_QPN, 0, 9).raddr(8, 1)
        .words64(1, 2).finish();
    expect_fatal(MLX5SIM_CHK_WQE_DS);
    EXPECT_EQ(0, m_wqe.atomic_size);

    set_type(MLX5SIM_QPT_UD);
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).finish();
    expect_fatal(MLX5SIM_CHK_WQE_DS);

    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .av(RESP_QPN, 1, 2, 3, 0, 0, 0, dgid).finish(3);
    expect_fatal(MLX5SIM_CHK_WQE_DS);
    EXPECT_FALSE(m_wqe.has_av);
}

TEST_F(test_engine_wqe, opcodes_the_device_does_not_have)
{
    for (unsigned opcode : {int(MLX5_OPCODE_TSO), int(MLX5_OPCODE_UMR),
                            int(MLX5_OPCODE_SET_PSV), int(MLX5_OPCODE_MMO),
                            0x02, 0x3f, 0x40, 0xff}) {
        m_sq.ctrl(0, opcode, REQ_QPN).raddr(1, 2).finish();
        expect_fatal(MLX5SIM_CHK_WQE_OPCODE);
    }
}

TEST_F(test_engine_wqe, opcodes_by_transport_service)
{
    struct {
        unsigned opcode;
        bool     rc, uc, ud;
    } rows[] = {
        {MLX5_OPCODE_NOP,              true, true,  true},
        {MLX5_OPCODE_SEND,             true, true,  true},
        {MLX5_OPCODE_SEND_IMM,         true, true,  true},
        {MLX5_OPCODE_SEND_INVAL,       true, false, false},
        {MLX5_OPCODE_RDMA_WRITE,       true, true,  false},
        {MLX5_OPCODE_RDMA_WRITE_IMM,   true, true,  false},
        {MLX5_OPCODE_RDMA_READ,        true, false, false},
        {MLX5_OPCODE_ATOMIC_CS,        true, false, false},
        {MLX5_OPCODE_ATOMIC_FA,        true, false, false},
        {MLX5_OPCODE_ATOMIC_MASKED_CS, true, false, false},
        {MLX5_OPCODE_ATOMIC_MASKED_FA, true, false, false}
    };

    for (const auto &row : rows) {
        m_sq.ctrl(0, row.opcode, REQ_QPN).finish();
        for (auto type : {MLX5SIM_QPT_RC, MLX5SIM_QPT_UC, MLX5SIM_QPT_UD}) {
            bool allowed = (type == MLX5SIM_QPT_RC) ? row.rc :
                           (type == MLX5SIM_QPT_UC) ? row.uc : row.ud;
            m_req.type   = type;
            EXPECT_EQ(allowed, decode() != MLX5SIM_CHK_WQE_OPCODE)
                    << row.opcode << " type " << type;
        }
    }

    m_req.type = 8; /* raw packet */
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).finish();
    expect_fatal(MLX5SIM_CHK_WQE_OPCODE);
}

TEST_F(test_engine_wqe, opmod_is_for_masked_atomics_only)
{
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN, 0, 1).finish();
    expect_fatal(MLX5SIM_CHK_WQE_OPMOD);

    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_FA, REQ_QPN, 0, 9).raddr(8, 1)
        .words64(1, 2).data(1, 8, LKEY).finish();
    expect_fatal(MLX5SIM_CHK_WQE_OPMOD);

    for (uint8_t opmod : {0, 1, 0x18, 0x88}) {
        m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_FA, REQ_QPN, 0, opmod)
            .raddr(8, 1).words64(1, 2).data(1, 8, LKEY).finish();
        expect_fatal(MLX5SIM_CHK_WQE_OPMOD);
    }
}

TEST_F(test_engine_wqe, inline_length_goes_beyond_the_wqe)
{
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).inl("123456789012", 12).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    m_sq.be32(16, 13 | 0x80000000u);
    expect_fatal(MLX5SIM_CHK_WQE_INLINE);
    m_sq.be32(16, 0xffffffff);
    expect_fatal(MLX5SIM_CHK_WQE_INLINE);
    EXPECT_EQ(0u, m_wqe.num_segs);
}

TEST_F(test_engine_wqe, inline_data_cannot_be_received_into)
{
    m_sq.ctrl(0, MLX5_OPCODE_RDMA_READ, REQ_QPN).raddr(8, 1).inl("1234", 4)
        .finish();
    expect_fatal(MLX5SIM_CHK_WQE_SEGMENT);
}

TEST_F(test_engine_wqe, segment_counted_but_not_written)
{
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).data(1, 2, LKEY)
        .words32(0, 0, 0, 0).finish();
    expect_fatal(MLX5SIM_CHK_WQE_SEGMENT);
    EXPECT_EQ(1u, m_wqe.num_segs);

    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .data(0, 0, MLX5_INVALID_LKEY).finish();
    expect_fatal(MLX5SIM_CHK_WQE_SEGMENT);
}

TEST_F(test_engine_wqe, atomic_of_a_wrong_size)
{
    /* 16-byte operands */
    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_FA, REQ_QPN, 0, 10).raddr(8, 1)
        .words64(1, 2).data(1, 8, LKEY).finish();
    expect_fatal(MLX5SIM_CHK_WQE_ATOMIC);

    /* data segments of another size than the operands */
    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_FA, REQ_QPN).raddr(8, 1).words64(1, 2)
        .data(1, 4, LKEY).finish();
    expect_fatal(MLX5SIM_CHK_WQE_ATOMIC);

    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_FA, REQ_QPN, 0, 8).raddr(8, 1)
        .words64(1, 2).data(1, 8, LKEY).finish();
    expect_fatal(MLX5SIM_CHK_WQE_ATOMIC);

    /* nowhere to put the old value */
    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_CS, REQ_QPN).raddr(8, 1).words64(1, 2)
        .finish();
    expect_fatal(MLX5SIM_CHK_WQE_ATOMIC);
}

TEST_F(test_engine_wqe, malformed_address_vector)
{
    set_type(MLX5SIM_QPT_UD);
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .compact_av(RESP_QPN | 0x01000000, 1, 2, 3).finish();
    expect_fatal(MLX5SIM_CHK_WQE_AV);

    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .av(RESP_QPN | 0x40000000, 1, 2, 3, 0, 0, 0, dgid).finish();
    expect_fatal(MLX5SIM_CHK_WQE_AV);

    m_req.is_roce = 1;
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).compact_av(RESP_QPN, 1, 2, 3)
        .finish();
    expect_fatal(MLX5SIM_CHK_WQE_AV);
}

TEST_F(test_engine_wqe, datagram_larger_than_the_mtu)
{
    set_type(MLX5SIM_QPT_UD);
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).compact_av(RESP_QPN, 1, 2, 3)
        .data(1, 1024, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());

    m_sq.be32(32, 1025);
    expect_fatal(MLX5SIM_CHK_WQE_UD_LENGTH);

    m_req.path_mtu = 5;
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    m_sq.be32(32, 4097);
    expect_fatal(MLX5SIM_CHK_WQE_UD_LENGTH);

    m_req.path_mtu = 0; /* not set: the largest there is */
    m_sq.be32(32, 4096);
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
}

TEST_F(test_engine_wqe, message_above_2_gigabytes)
{
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).data(1, 0, LKEY).data(2, 1, LKEY)
        .finish();
    expect_fatal(MLX5SIM_CHK_WQE_LENGTH);

    /* 62 times 2 GB does not wrap around to something small */
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN);
    for (unsigned i = 0; i < 62; ++i) {
        m_sq.data(1, 0, LKEY);
    }
    m_sq.finish();
    expect_fatal(MLX5SIM_CHK_WQE_LENGTH);
    EXPECT_EQ(UINT32_MAX, m_wqe.length);
}


/*
 * Names and dumps
 */

TEST_F(test_engine_wqe, every_check_has_its_own_name_and_a_hint)
{
    std::map<std::string, int> names;

    for (int i = 0; i < MLX5SIM_CHK_LAST; ++i) {
        mlx5sim_chk_t chk = static_cast<mlx5sim_chk_t>(i);
        EXPECT_EQ(1, ++names[mlx5sim_chk_name(chk)]) << mlx5sim_chk_name(chk);
        EXPECT_GT(strlen(mlx5sim_chk_name(chk)), 1u);
        EXPECT_GT(strlen(mlx5sim_chk_hint(chk)), 10u);
    }
    EXPECT_STREQ("unknown", mlx5sim_chk_name(MLX5SIM_CHK_LAST));
    EXPECT_STREQ("wqe_index", mlx5sim_chk_name(MLX5SIM_CHK_WQE_INDEX));
    EXPECT_STREQ("ATOMIC_MASKED_FA",
                 mlx5sim_opcode_name(MLX5_OPCODE_ATOMIC_MASKED_FA));
    EXPECT_STREQ("unknown", mlx5sim_opcode_name(0x77));
}

TEST_F(test_engine_wqe, dump_shows_fields_and_bytes)
{
    char buf[4096];

    m_sq.ctrl(15, MLX5_OPCODE_RDMA_WRITE, REQ_QPN, MLX5_WQE_CTRL_CQ_UPDATE)
        .raddr(0xabcdef, 0x7788).inl("0123456789abcdefghijklmnopqrstuv", 32)
        .finish();
    int length = mlx5sim_wqe_dump(&m_req, m_sq.bytes(), 15, buf, sizeof(buf));
    EXPECT_EQ(strlen(buf), size_t(length));
    for (const char *part : {"QP 0x111", "RDMA_WRITE", "signaled", "32 bytes",
                             "remote 0xabcdef rkey 0x7788", "inline 28 bytes",
                             "inline 4 bytes", "003c0:", "00000: 73747576"}) {
        EXPECT_TRUE(strstr(buf, part) != NULL) << part << " in\n" << buf;
    }
}

TEST_F(test_engine_wqe, dump_names_the_failed_check)
{
    char buf[4096];

    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_CS, REQ_QPN).raddr(8, 9)
        .words64(0x1111, 0x2222).data(1, 4, LKEY).finish();
    mlx5sim_wqe_dump(&m_req, m_sq.bytes(), 0, buf, sizeof(buf));
    EXPECT_TRUE(strstr(buf, "check failed: wqe_atomic") != NULL) << buf;
    EXPECT_TRUE(strstr(buf, "compare 0x2222") != NULL) << buf;
    EXPECT_TRUE(strstr(buf, "data 4 bytes at 0x1 lkey 0x1000") != NULL) << buf;

    set_type(MLX5SIM_QPT_UD);
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .av(RESP_QPN, 0x1ee7, 2, 3, 0x40000000, 0, 0, dgid).finish();
    mlx5sim_wqe_dump(&m_req, m_sq.bytes(), 0, buf, sizeof(buf));
    EXPECT_TRUE(strstr(buf, "to QP 0x222 qkey 0x1ee7") != NULL) << buf;
    EXPECT_TRUE(strstr(buf, "fe80:0203:") != NULL) << buf;
}

TEST_F(test_engine_wqe, dump_is_cut_at_the_buffer_and_says_its_full_length)
{
    char full[4096], part[4096];

    post_write();
    int length = mlx5sim_wqe_dump(&m_req, m_sq.bytes(), 0, full, sizeof(full));
    for (int size = 0; size <= length + 1; ++size) {
        memset(part, 'x', sizeof(part));
        EXPECT_EQ(length, mlx5sim_wqe_dump(&m_req, m_sq.bytes(), 0, part,
                                           size));
        EXPECT_EQ('x', part[size]);
        if (size > 0) {
            EXPECT_EQ(std::string(full).substr(0, size - 1), part);
        }
    }

    m_req.sq_wqe_cnt = 0;
    EXPECT_GT(mlx5sim_wqe_dump(&m_req, NULL, 0, full, sizeof(full)), 0);
}
