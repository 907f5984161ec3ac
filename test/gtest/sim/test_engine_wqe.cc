/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/test_engine.h>

#include <infiniband/mlx5dv.h>

#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <string>

/* Send WQEs: what the decoder finds in bytes written field by field, in WQEs
 * built with rdma-core's own header, and in broken ones. */

class test_engine_wqe : public test_engine {
protected:
    static std::string text(const char *format, ...)
            __attribute__((format(printf, 1, 2)))
    {
        char buf[256];
        va_list args;

        va_start(args, format);
        vsnprintf(buf, sizeof(buf), format, args);
        va_end(args);
        return buf;
    }

    static std::string mask(uint64_t bits)
    {
        return (bits == UINT64_MAX) ? "all" : text("%#lx", bits);
    }

    /** All that the rest of the engine reads of a WQE, apart from its opcode
     *  and size; what is not there, or 0, is left out. */
    std::string show() const
    {
        const auto &av    = m_wqe.av;
        std::string shown = m_wqe.signaled ? "signaled " : "";

        shown += m_wqe.solicited ? "solicited " : "";
        shown += m_wqe.fence ? "fence " : "";
        shown += (m_wqe.imm != 0) ? text("imm %#x ", m_wqe.imm) : "";
        if (m_wqe.has_raddr) {
            shown += text("to %#lx@%#x ", m_wqe.raddr, m_wqe.rkey);
        }
        if (m_wqe.atomic_size != 0) {
            shown += text("%s %u %#lx/", m_wqe.atomic.is_cas ? "swap" : "add",
                          m_wqe.atomic_size, m_wqe.atomic.swap_add) +
                     mask(m_wqe.atomic.swap_mask) +
                     text(" if %#lx/", m_wqe.atomic.compare) +
                     mask(m_wqe.atomic.compare_mask) + " ";
        }
        if (m_wqe.has_av) {
            shown += text("QP %#x qkey %#x lid %u sl %u ", av.dqpn, av.qkey,
                          av.dlid, av.sl);
            shown += av.has_grh ? "grh " : "";
            if (av.sgid_index | av.tclass | av.hop_limit | av.flow_label) {
                shown += text("sgid %u class %#x hops %u flow %#x ",
                              av.sgid_index, av.tclass, av.hop_limit,
                              av.flow_label);
            }
            shown += bytes(av.dgid, sizeof(av.dgid)) +
                     bytes(av.dmac, sizeof(av.dmac));
        }
        for (unsigned i = 0; i < m_wqe.num_segs; ++i) {
            const mlx5sim_seg_t &seg = m_wqe.segs[i];
            if (seg.inl != NULL) {
                EXPECT_EQ((uintptr_t)seg.inl, seg.addr);
                EXPECT_EQ(0u, seg.lkey);
            }
            shown += (seg.inl == NULL) ?
                     text("%#lx+%u@%#x ", seg.addr, seg.length, seg.lkey) :
                     "'" + std::string((const char*)seg.inl, seg.length) + "' ";
        }
        return shown + text("= %u", m_wqe.length);
    }

    static std::string bytes(const uint8_t *data, unsigned length)
    {
        std::string shown;

        for (unsigned i = 0; i < length; ++i) {
            shown += text("%02x", data[i]);
        }
        return (shown.find_first_not_of('0') == std::string::npos) ? "" :
               shown + " ";
    }

    /** Neither the WQE nor anything after it is executed. */
    void expect_fatal(mlx5sim_chk_t chk)
    {
        EXPECT_EQ(chk, decode()) << mlx5sim_chk_name(decode());
        EXPECT_TRUE(mlx5sim_chk_is_fatal(chk));
        EXPECT_GE(m_wqe.num_bb, 1);
    }

    void post_write(uint8_t fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE)
    {
        m_sq.ctrl(0, MLX5_OPCODE_RDMA_WRITE, REQ_QPN, fm_ce_se)
            .raddr(0x4000, RKEY).data(req_addr(), 8, LKEY).finish();
    }
};

/*
 * Tables: the bytes of a WQE, and what the decoder finds in them
 */

namespace {

enum service_t {
    RC,
    UD,
    ROCE /* UD on Ethernet */
};

struct ctrl_t {
    ctrl_t(uint8_t op, uint8_t om = 0, uint8_t flags = 0, uint32_t imm_be = 0,
           uint16_t counter = 0) :
        opcode(op), opmod(om), fm_ce_se(flags), imm(imm_be), index(counter)
    {
    }

    uint8_t  opcode, opmod, fm_ce_se;
    uint32_t imm;
    uint16_t index;
};

struct row_t {
    const char    *name;
    service_t     service;
    ctrl_t        ctrl;
    void          (*write)(test_sq &sq); /* what follows, and ds */
    mlx5sim_chk_t chk;
    const char    *shown; /* NULL: not looked at */
};

void PrintTo(const row_t &row, std::ostream *os)
{
    *os << row.name;
}

const uint8_t DGID[16] = {0xfe, 0x80, 2, 3, 4, 5, 6, 7,
                          8, 9, 10, 11, 12, 13, 14, 15};
#define DGID_DMAC "fe8002030405060708090a0b0c0d0e0f aabbccddeeff "

void none(test_sq &sq)
{
    sq.finish();
}

void write_8(test_sq &sq)
{
    sq.raddr(0x4000, RKEY).data(0x100000000, 8, LKEY).finish();
}

void atomic_8(test_sq &sq)
{
    sq.raddr(8, 1).words64(1, 2).data(1, 8, LKEY).finish();
}

#define SEGS(...)  [](test_sq &sq) { sq.__VA_ARGS__.finish(); }
#define CHK(name)  MLX5SIM_CHK_##name
#define OP(...)    {MLX5_OPCODE_##__VA_ARGS__}
#define AT_END(op) {op, 0, 0, 0, 15} /* in the last block of the queue */
#define WRITE_8    "to 0x4000@0x2000 0x100000000+8@0x1000 = 8"

const row_t DECODED[] = {
    {"nop_is_control_segment_only", RC, OP(NOP, 0, MLX5_WQE_CTRL_CQ_UPDATE),
     none, CHK(OK), "signaled = 0"},
    {"nop_may_carry_anything_after_control", RC, OP(NOP),
     SEGS(words32(0xffffffff, 0x100, 3, 4).words32(5, 6, 7, 8)), CHK(OK),
     "= 0"},
    {"send_gathers_inline_and_memory_in_order", RC,
     OP(SEND, 0, MLX5_WQE_CTRL_SOLICITED),
     SEGS(inl("header", 6).data(0x1234567890ull, 100, LKEY).inl("tail", 4)
          .data(0x55, 1, LKEY_RO)), CHK(OK),
     "solicited 'header' 0x1234567890+100@0x1000 'tail' 0x55+1@0x1001 = 111"},
    {"zero_length_send_has_no_segments", RC, OP(SEND), none, CHK(OK), "= 0"},
    {"empty_inline_segment_is_no_data", RC, OP(RDMA_WRITE),
     SEGS(raddr(1, 2).inl("", 0)), CHK(OK), "to 0x1@0x2 = 0"},
    {"immediate_of_a_send_stays_as_posted", RC, OP(SEND_IMM, 0, 0, 0x11223344),
     none, CHK(OK), "imm 0x11223344 = 0"},
    {"immediate_of_a_write_stays_as_posted", RC,
     OP(RDMA_WRITE_IMM, 0, 0, 0x11223344), SEGS(raddr(1, 2)), CHK(OK),
     "imm 0x11223344 to 0x1@0x2 = 0"},
    {"invalidated_rkey_is_host", RC, OP(SEND_INVAL, 0, 0, htobe32(0x2000)),
     none, CHK(OK), "imm 0x2000 = 0"},
    {"read_scatters_to_a_list", RC, OP(RDMA_READ, 0, MLX5_WQE_CTRL_FENCE),
     SEGS(raddr(0xabcdef0123456789ull, 0xdeadbeef).data(0x10, 20, LKEY)
          .data(0x30, 40, LKEY)), CHK(OK),
     "fence to 0xabcdef0123456789@0xdeadbeef 0x10+20@0x1000 0x30+40@0x1000 "
     "= 60"},
    {"data_segment_of_length_0_is_2_gigabytes", RC, OP(RDMA_WRITE),
     SEGS(raddr(1, 2).data(0x1000, 0, LKEY)), CHK(OK),
     "to 0x1@0x2 0x1000+2147483648@0x1000 = 2147483648"},

    {"plain_swap_has_full_masks", RC, OP(ATOMIC_CS),
     SEGS(raddr(0x40, 2).words64(0x1111, 0x2222).data(0x10, 8, LKEY)), CHK(OK),
     "to 0x40@0x2 swap 8 0x1111/all if 0x2222/all 0x10+8@0x1000 = 8"},
    /* the compare field of a fetch-and-add is whatever was there before */
    {"plain_add_has_no_field_boundaries", RC, OP(ATOMIC_FA),
     SEGS(raddr(0x40, 2).words64(5, 0xbad).data(0x10, 4, LKEY)
          .data(0x20, 4, LKEY)), CHK(OK),
     "to 0x40@0x2 add 8 0x5/all if 0/0 0x10+4@0x1000 0x20+4@0x1000 = 8"},
    /* Layouts of UCX: uct_rc_mlx5_txqp_dptr_post, opmod 8 | (log2(size) - 2) */
    {"masked_swap_of_4_bytes", RC, OP(ATOMIC_MASKED_CS, 8),
     SEGS(raddr(0x40, 2).words32(1, 2, 3, 4).data(0x10, 4, LKEY)), CHK(OK),
     "to 0x40@0x2 swap 4 0x1/0x3 if 0x2/0x4 0x10+4@0x1000 = 4"},
    {"masked_swap_of_8_bytes", RC, OP(ATOMIC_MASKED_CS, 9),
     SEGS(raddr(0x40, 2).words64(1ull << 40, 2).words64(3, 4ull << 50)
          .data(0x10, 8, LKEY)), CHK(OK),
     "to 0x40@0x2 swap 8 0x10000000000/0x3 if 0x2/0x10000000000000 "
     "0x10+8@0x1000 = 8"},
    /* the last two words are not written by software */
    {"masked_add_of_4_bytes", RC, OP(ATOMIC_MASKED_FA, 8),
     SEGS(raddr(0x40, 2).words32(7, 0x80000000, 0xbad, 0xbad)
          .data(0x10, 4, LKEY)), CHK(OK),
     "to 0x40@0x2 add 4 0x7/all if 0/0x80000000 0x10+4@0x1000 = 4"},
    {"masked_add_of_8_bytes", RC, OP(ATOMIC_MASKED_FA, 9),
     SEGS(raddr(0x40, 2).words64(7, 9).data(0x10, 8, LKEY)), CHK(OK),
     "to 0x40@0x2 add 8 0x7/all if 0/0x9 0x10+8@0x1000 = 8"},

    {"datagram_with_full_address_vector", UD, OP(SEND),
     SEGS(av(RESP_QPN, 0x1234, 17, 0x35, 0x40000000 | (9 << 20) | 0xabcde, 0x21,
             64, DGID).inl("x", 1)), CHK(OK),
     "QP 0x222 qkey 0x1234 lid 17 sl 5 grh sgid 9 class 0x21 hops 64 "
     "flow 0xabcde " DGID_DMAC "'x' = 1"},
    {"datagram_without_grh_bit_has_no_grh_on_infiniband", UD, OP(SEND),
     SEGS(av(RESP_QPN, 0x1234, 17, 0, 0, 0, 0, DGID)), CHK(OK),
     "QP 0x222 qkey 0x1234 lid 17 sl 0 " DGID_DMAC "= 0"},
    {"datagram_on_ethernet_has_grh_and_a_3_bit_priority", ROCE, OP(SEND),
     SEGS(av(RESP_QPN, 0x1234, 0xc000, 0x0a, 0, 0, 0, DGID)), CHK(OK),
     "QP 0x222 qkey 0x1234 lid 49152 sl 5 grh " DGID_DMAC "= 0"},
    {"datagram_with_compact_address_vector", UD, OP(SEND_IMM, 0, 0, 99),
     SEGS(compact_av(RESP_QPN, 0x1234, 17, 3).data(5, 6, LKEY)), CHK(OK),
     "imm 0x63 QP 0x222 qkey 0x1234 lid 17 sl 3 0x5+6@0x1000 = 6"},
    {"controlled_qkey_is_the_queue_pairs_own", UD, OP(SEND),
     SEGS(compact_av(RESP_QPN, 0x80000000, 17, 3)), CHK(OK),
     "QP 0x222 qkey 0x80010000 lid 17 sl 3 = 0"},

    {"inline_data_that_ends_with_the_queue_does_not_wrap", RC,
     AT_END(MLX5_OPCODE_RDMA_WRITE),
     SEGS(raddr(1, 2).inl("0123456789012345678901234567", 28)), CHK(OK),
     "to 0x1@0x2 '0123456789012345678901234567' = 28"},
    {"segments_after_a_wrapped_inline_segment_are_found", RC,
     AT_END(MLX5_OPCODE_SEND),
     SEGS(inl("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", 50)
          .data(0x77, 88, LKEY).inl("end", 3)), CHK(OK),
     "'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz' 'zzzzzz' "
     "0x77+88@0x1000 'end' = 141"},
    {"datagram_data_wraps_right_after_the_address_vector", UD,
     AT_END(MLX5_OPCODE_SEND),
     SEGS(av(RESP_QPN, 1, 2, 3, 0, 0, 0, DGID).data(9, 10, LKEY)), CHK(OK),
     "QP 0x222 qkey 0x1 lid 2 sl 3 " DGID_DMAC "0x9+10@0x1000 = 10"},
    {"atomic_data_wraps_right_after_the_operands", RC,
     OP(ATOMIC_MASKED_CS, 9, 0, 0, 15),
     SEGS(raddr(8, 9).words64(1, 2).words64(3, 4).data(0x10, 8, LKEY)),
     CHK(OK), "to 0x8@0x9 swap 8 0x1/0x3 if 0x2/0x4 0x10+8@0x1000 = 8"},
    /* 0xffff is block 15; the control segment has all 16 bits */
    {"block_counter_is_masked_by_the_queue_only", RC,
     OP(SEND, 0, 0, 0, 0xffff), SEGS(data(1, 2, 3)), CHK(OK), "0x1+2@0x3 = 2"},

    /* reported, and all of the WQE is there */
    {"wrong_index", RC, OP(RDMA_WRITE, 0, MLX5_WQE_CTRL_CQ_UPDATE),
     [](test_sq &sq) { write_8(sq); sq.at(2) = 9; }, CHK(WQE_INDEX),
     "signaled " WRITE_8},
    {"wrong_qpn", RC, OP(RDMA_WRITE, 0, MLX5_WQE_CTRL_CQ_UPDATE),
     [](test_sq &sq) { write_8(sq); sq.at(6) ^= 1; }, CHK(WQE_QPN),
     "signaled " WRITE_8},
    {"reserved_flag_01", RC, OP(RDMA_WRITE, 0, 0x01), write_8,
     CHK(WQE_RESERVED), WRITE_8},
    {"reserved_flag_10", RC, OP(RDMA_WRITE, 0, 0x10), write_8,
     CHK(WQE_RESERVED), WRITE_8},
    {"reserved_fence_5", RC, OP(RDMA_WRITE, 0, 5 << 5), write_8,
     CHK(WQE_RESERVED), "fence " WRITE_8},
    {"reserved_fence_6", RC, OP(RDMA_WRITE, 0, 6 << 5), write_8,
     CHK(WQE_RESERVED), "fence " WRITE_8},
    {"reserved_fence_7", RC, OP(RDMA_WRITE, 0, 7 << 5), write_8,
     CHK(WQE_RESERVED), "fence " WRITE_8},
    {"reserved_ds_40", RC, OP(RDMA_WRITE, 0, MLX5_WQE_CTRL_CQ_UPDATE),
     [](test_sq &sq) { write_8(sq); sq.at(7) |= 0x40; }, CHK(WQE_RESERVED),
     "signaled " WRITE_8},
    {"reserved_ds_80", RC, OP(RDMA_WRITE, 0, MLX5_WQE_CTRL_CQ_UPDATE),
     [](test_sq &sq) { write_8(sq); sq.at(7) |= 0x80; }, CHK(WQE_RESERVED),
     "signaled " WRITE_8},
    {"reserved_completion_mode_1", RC, OP(RDMA_WRITE, 0, 1 << 2), write_8,
     CHK(WQE_CE), WRITE_8},
    {"reserved_completion_mode_3", RC, OP(RDMA_WRITE, 0, 3 << 2), write_8,
     CHK(WQE_CE), "signaled " WRITE_8},
};

/* Neither the WQE nor anything after it is executed */
const row_t REFUSED[] = {
    {"mistake_goes_before_a_harmless_one", RC, OP(RDMA_WRITE),
     [](test_sq &sq) { write_8(sq); sq.at(2) = 9; sq.at(3) = 0x3f; },
     CHK(WQE_OPCODE), NULL},
    {"ds_is_zero", RC, OP(RDMA_WRITE),
     [](test_sq &sq) { write_8(sq); sq.finish(0); }, CHK(WQE_DS), NULL},
    {"ds_has_no_address", RC, OP(RDMA_READ), none, CHK(WQE_DS), NULL},
    {"ds_has_no_operands", RC, OP(ATOMIC_FA), SEGS(raddr(8, 1)), CHK(WQE_DS),
     NULL},
    {"ds_has_half_of_the_operands", RC, OP(ATOMIC_MASKED_CS, 9),
     SEGS(raddr(8, 1).words64(1, 2)), CHK(WQE_DS), "to 0x8@0x1 = 0"},
    {"ds_has_no_address_vector", UD, OP(SEND), none, CHK(WQE_DS), NULL},
    {"ds_has_half_of_the_address_vector", UD, OP(SEND),
     [](test_sq &sq) { sq.av(RESP_QPN, 1, 2, 3, 0, 0, 0, DGID).finish(3); },
     CHK(WQE_DS), "= 0"},

    /* what the device does not have */
    {"opcode_tso", RC, OP(TSO), SEGS(raddr(1, 2)), CHK(WQE_OPCODE), NULL},
    {"opcode_umr", RC, OP(UMR), SEGS(raddr(1, 2)), CHK(WQE_DS), NULL},
    {"opcode_psv", RC, OP(SET_PSV), SEGS(raddr(1, 2).raddr(1, 2)), CHK(WQE_DS),
     NULL},
    {"opcode_mmo", RC, OP(MMO), SEGS(raddr(1, 2)), CHK(WQE_OPCODE), NULL},
    {"opcode_02", RC, 0x02, SEGS(raddr(1, 2)), CHK(WQE_OPCODE), NULL},
    {"opcode_3f", RC, 0x3f, SEGS(raddr(1, 2)), CHK(WQE_OPCODE), NULL},
    {"opcode_40", RC, 0x40, SEGS(raddr(1, 2)), CHK(WQE_OPCODE), NULL},
    {"opcode_ff", RC, 0xff, SEGS(raddr(1, 2)), CHK(WQE_OPCODE), NULL},

    /* opmod is for masked atomics only */
    {"opmod_send", RC, OP(SEND, 1), none, CHK(WQE_OPMOD), NULL},
    {"opmod_plain", RC, OP(ATOMIC_FA, 9), atomic_8, CHK(WQE_OPMOD), NULL},
    {"opmod_0", RC, OP(ATOMIC_MASKED_FA, 0), atomic_8, CHK(WQE_OPMOD), NULL},
    {"opmod_1", RC, OP(ATOMIC_MASKED_FA, 1), atomic_8, CHK(WQE_OPMOD), NULL},
    {"opmod_18", RC, OP(ATOMIC_MASKED_FA, 24), atomic_8, CHK(WQE_OPMOD), NULL},
    {"opmod_88", RC, OP(ATOMIC_MASKED_FA, 0x88), atomic_8, CHK(WQE_OPMOD),
     NULL},

    {"inline_length_goes_beyond_the_wqe", RC, OP(SEND),
     [](test_sq &sq) {
         sq.inl("123456789012", 12).finish().be32(16, 13 | 0x80000000u);
     }, CHK(WQE_INLINE), NULL},
    {"inline_length_goes_far_beyond_the_wqe", RC, OP(SEND),
     [](test_sq &sq) {
         sq.inl("123456789012", 12).finish().be32(16, 0xffffffff);
     }, CHK(WQE_INLINE), "= 0"},
    {"inline_data_cannot_be_received_into", RC, OP(RDMA_READ),
     SEGS(raddr(8, 1).inl("1234", 4)), CHK(WQE_SEGMENT), NULL},
    {"segment_counted_but_not_written", RC, OP(SEND),
     SEGS(data(1, 2, LKEY).words32(0, 0, 0, 0)), CHK(WQE_SEGMENT),
     "0x1+2@0x1000 = 2"},
    {"segment_ends_a_list", RC, OP(SEND), SEGS(data(0, 0, MLX5_INVALID_LKEY)),
     CHK(WQE_SEGMENT), NULL},
    {"atomic_operands_of_16_bytes", RC, OP(ATOMIC_MASKED_FA, 10), atomic_8,
     CHK(WQE_ATOMIC), NULL},
    {"atomic_of_8_bytes_and_segments_of_4", RC, OP(ATOMIC_FA),
     SEGS(raddr(8, 1).words64(1, 2).data(1, 4, LKEY)), CHK(WQE_ATOMIC), NULL},
    {"atomic_of_4_bytes_and_segments_of_8", RC, OP(ATOMIC_MASKED_FA, 8),
     atomic_8, CHK(WQE_ATOMIC), NULL},
    {"atomic_without_room_for_the_old_value", RC, OP(ATOMIC_CS),
     SEGS(raddr(8, 1).words64(1, 2)), CHK(WQE_ATOMIC), NULL},
    {"compact_address_vector_with_reserved_bits", UD, OP(SEND),
     SEGS(compact_av(RESP_QPN | 0x01000000, 1, 2, 3)), CHK(WQE_AV), NULL},
    {"address_vector_with_reserved_bits", UD, OP(SEND),
     SEGS(av(RESP_QPN | 0x40000000, 1, 2, 3, 0, 0, 0, DGID)), CHK(WQE_AV),
     NULL},
    {"compact_address_vector_on_ethernet", ROCE, OP(SEND),
     SEGS(compact_av(RESP_QPN, 1, 2, 3)), CHK(WQE_AV), NULL},
};

} // namespace

class wqe_decoded : public test_engine_wqe,
                    public testing::WithParamInterface<row_t> {
protected:
    void expect_row()
    {
        const row_t &row = GetParam();

        if (row.service != RC) {
            set_type(MLX5SIM_QPT_UD);
            m_req.qkey    = 0x80010000;
            m_req.is_roce = row.service == ROCE;
        }
        m_sq.ctrl(row.ctrl.index, row.ctrl.opcode, REQ_QPN, row.ctrl.fm_ce_se,
                  row.ctrl.opmod, row.ctrl.imm);
        row.write(m_sq);
        EXPECT_STREQ(mlx5sim_chk_name(row.chk),
                     mlx5sim_chk_name(decode(row.ctrl.index)));
        EXPECT_EQ(m_sq.at(3), m_wqe.opcode);
        EXPECT_EQ(m_sq.at(0), m_wqe.opmod);
        EXPECT_EQ(m_sq.at(7) & 0x3f, m_wqe.ds);
        EXPECT_EQ(std::max((m_wqe.ds + 3) / 4, 1), m_wqe.num_bb);
        EXPECT_EQ(row.ctrl.index, m_wqe.index);
        if (row.shown != NULL) {
            EXPECT_EQ(row.shown, show());
        }
    }
};

class wqe_refused : public wqe_decoded {};

TEST_P(wqe_decoded, and_can_be_executed)
{
    expect_row();
    EXPECT_FALSE(mlx5sim_chk_is_fatal(GetParam().chk));
}

TEST_P(wqe_refused, and_those_behind_it)
{
    expect_row();
    EXPECT_TRUE(mlx5sim_chk_is_fatal(GetParam().chk));
}

INSTANTIATE_ROWS(wqe_decoded, DECODED);
INSTANTIATE_ROWS(wqe_refused, REFUSED);


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
    ASSERT_EQ(2u, m_wqe.num_segs);
    EXPECT_EQ(m_sq.bytes(), m_wqe.segs[1].inl);
    EXPECT_EQ("to 0x1@0x2 '" + text.substr(0, 28) + "' '" + text.substr(28) +
              "' = 200", show());
    EXPECT_EQ(4, m_wqe.num_bb);
}

TEST_F(test_engine_wqe, block_counter_has_bits_that_the_queue_does_not_need)
{
    m_sq.ctrl(0xffff, MLX5_OPCODE_SEND, REQ_QPN).data(1, 2, 3).finish();
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

/* mlx5dv.h has no struct for it; libmlx5's is the number and 12 bytes */
TEST_F(test_engine_wqe, initiators_name_an_srq)
{
    m_req.xrc = MLX5SIM_XRC_INI;
    m_sq.ctrl(0, MLX5_OPCODE_RDMA_WRITE, REQ_QPN).raddr(0x11234567ull << 32, 0)
        .raddr(8, 9).data(1, 2, LKEY).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0x234567u, m_wqe.srqn);
    EXPECT_EQ(8u, m_wqe.raddr);
    EXPECT_EQ(1u, m_wqe.num_segs);
    m_sq.finish(2);
    EXPECT_EQ(MLX5SIM_CHK_WQE_DS, decode());
    m_sq.finish(1);
    EXPECT_EQ(MLX5SIM_CHK_WQE_DS, decode());
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
    EXPECT_EQ(htobe32(0xcafe), m_wqe.imm);
    EXPECT_EQ("signaled solicited fence imm 0xfeca0000 "
              "to 0x123456789abc@0x4321 0x7fff12345678+4096@0x1000 = 4096",
              show());
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
    memcpy(gid, DGID, sizeof(gid));
    memset(&dv, 0, sizeof(dv));
    mlx5dv_set_ctrl_seg(&dv.ctrl, 0, MLX5_OPCODE_SEND, 0, REQ_QPN, 0, 5, 0, 0);
    mlx5dv_set_dgram_seg(&dv.dgram, 0x1ee7ull << 32, RESP_QPN, 1, 4, 0x81, 99,
                         mac, 7, 8, 0x40000000 | 0x12345, gid);
    mlx5dv_set_data_seg(&dv.data, 64, LKEY, 0x1000);
    memcpy(m_sq.bytes(), &dv, sizeof(dv));

    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ("QP 0x222 qkey 0x1ee7 lid 99 sl 4 grh sgid 0 class 0x7 hops 8 "
              "flow 0x12345 fe8002030405060708090a0b0c0d0e0f 010203040506 "
              "0x1000+64@0x1000 = 64", show());
}


TEST_F(test_engine_wqe, codes_are_those_of_mlx5dv)
{
    EXPECT_SAME(OPCODE_NOP);
    EXPECT_SAME(OPCODE_SEND_INVAL);
    EXPECT_SAME(OPCODE_RDMA_WRITE);
    EXPECT_SAME(OPCODE_RDMA_WRITE_IMM);
    EXPECT_SAME(OPCODE_SEND);
    EXPECT_SAME(OPCODE_SEND_IMM);
    EXPECT_SAME(OPCODE_TSO);
    EXPECT_SAME(OPCODE_RDMA_READ);
    EXPECT_SAME(OPCODE_ATOMIC_CS);
    EXPECT_SAME(OPCODE_ATOMIC_FA);
    EXPECT_SAME(OPCODE_ATOMIC_MASKED_CS);
    EXPECT_SAME(OPCODE_ATOMIC_MASKED_FA);
    EXPECT_SAME(OPCODE_UMR);
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

TEST_F(test_engine_wqe, fence_modes_in_use_are_accepted)
{
    for (unsigned fm = 0; fm <= 4; ++fm) {
        post_write(fm << 5);
        EXPECT_EQ(MLX5SIM_CHK_OK, decode()) << fm;
        EXPECT_EQ(fm != 0, m_wqe.fence);
    }
}

/*
 * Keys with a list
 */

class test_engine_wqe_umr : public test_engine_wqe {
protected:
    enum {
        MASK = MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN |
               MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE
    };

    test_sq &post_umr(unsigned units,
                      uint8_t flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE,
                      unsigned offset = 0, uint8_t free = 0)
    {
        return m_sq.ctrl(m_at, MLX5_OPCODE_UMR, REQ_QPN, 0, 0, htobe32(0x1234))
                   .words32(uint32_t(flags) << 24, (units << 16) | offset, 0,
                            MASK)
                   .words64(0, 0).words64(0, 0)
                   .words32((uint32_t(free) << 24) | (0x18 << 8), 0xffffff34, 0,
                            0)
                   .words64(0x77, 4096).words64(0, 0).words64(0, 0);
    }

    test_sq &repeat(uint32_t bytes, uint32_t turns, uint32_t entries)
    {
        return m_sq.words32(bytes, 0x400, turns, entries);
    }

    uint16_t m_at = 0;
};

TEST_F(test_engine_wqe_umr, has_entries_of_any_length)
{
    m_at = 14; /* the list is at the start of the queue */
    post_umr(4).data(0x1000, 5, LKEY).data(0x2000, 0x80000000, RKEY)
               .words64(0, 0).words64(0, 0).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(m_at));
    EXPECT_EQ(0x1234u, m_wqe.imm);
    EXPECT_EQ(uint64_t(MASK), m_wqe.umr.mask);
    EXPECT_EQ(uint32_t(MLX5SIM_ACCESS_LOCAL_WRITE |
                       MLX5SIM_ACCESS_REMOTE_READ), m_wqe.umr.access);
    EXPECT_EQ(0x77u, m_wqe.umr.start);
    EXPECT_EQ(4096u, m_wqe.umr.length);
    EXPECT_EQ(4u, m_wqe.umr.units);
    EXPECT_EQ(4u, m_wqe.umr.count);
    EXPECT_EQ(0u, m_wqe.umr.turns);
    EXPECT_EQ(0u, m_wqe.num_segs);
    EXPECT_EQ(0u, m_wqe.length);
    EXPECT_EQ(0x1000u, m_wqe.segs[0].addr);
    EXPECT_EQ(5u, m_wqe.segs[0].length);
    EXPECT_EQ(uint32_t(LKEY), m_wqe.segs[0].lkey);
    EXPECT_EQ(0x2000u, m_wqe.segs[1].addr);
    EXPECT_EQ(0x80000000u, m_wqe.segs[1].length);
    EXPECT_EQ(uint32_t(RKEY), m_wqe.segs[1].lkey);
    EXPECT_EQ(0u, m_wqe.segs[2].length);
}

TEST_F(test_engine_wqe_umr, has_strides)
{
    m_at = 14;
    post_umr(4);
    repeat(9, 70000, 2).words32((100 << 16) | 7, LKEY, 0, 0x1000)
                       .words32((200 << 16) | 2, RKEY, 1, 0x2000)
                       .words64(0, 0).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(m_at));
    EXPECT_EQ(4u, m_wqe.umr.units);
    EXPECT_EQ(2u, m_wqe.umr.count);
    EXPECT_EQ(70000u, m_wqe.umr.turns);
    EXPECT_EQ(7u, m_wqe.segs[0].length);
    EXPECT_EQ(100u, m_wqe.segs[0].stride);
    EXPECT_EQ(uint32_t(LKEY), m_wqe.segs[0].lkey);
    EXPECT_EQ(0x1000u, m_wqe.segs[0].addr);
    EXPECT_EQ(200u, m_wqe.segs[1].stride);
    EXPECT_EQ(0x100002000u, m_wqe.segs[1].addr);
}

TEST_F(test_engine_wqe_umr, without_a_list_leaves_it)
{
    post_umr(0).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0u, m_wqe.umr.units);
    EXPECT_EQ(0u, m_wqe.umr.count);
}

TEST_F(test_engine_wqe_umr, list_is_not_as_it_is_said_to_be)
{
    const uint8_t inl = MLX5_WQE_UMR_CTRL_FLAG_INLINE;

    post_umr(8).words64(0, 0).words64(0, 0).words64(0, 0).words64(0, 0)
               .finish();
    expect_fatal(MLX5SIM_CHK_WQE_SEGMENT);
    post_umr(0).words64(0, 0).words64(0, 0).words64(0, 0).words64(0, 0)
               .finish();
    expect_fatal(MLX5SIM_CHK_WQE_SEGMENT);
    post_umr(1, 0).words64(0, 0).finish();
    expect_fatal(MLX5SIM_CHK_WQE_SEGMENT);
    post_umr(1, inl | MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET, 4)
            .words64(0, 0).finish();
    expect_fatal(MLX5SIM_CHK_WQE_SEGMENT);
    post_umr(1, inl, 0, MLX5_WQE_MKEY_CONTEXT_FREE).words64(0, 0).finish();
    expect_fatal(MLX5SIM_CHK_WQE_SEGMENT);
}

TEST_F(test_engine_wqe_umr, strides_do_not_fit_their_head)
{
    struct {
        uint32_t bytes, turns, entries;
        bool     is_good;
    } rows[] = {
        {9, 1, 1, true}, {8, 1, 1, false}, {9, 0, 1, false}, {0, 1, 0, true},
        {9, 1, 4, false}, {9, 1, 3, true}, {9, 1, 0xffff, false}
    };

    for (const auto &row : rows) {
        post_umr(4);
        repeat(row.bytes, row.turns, row.entries).words32(9, LKEY, 0, 0)
                .words64(0, 0).words64(0, 0).finish();
        EXPECT_EQ(row.is_good ? MLX5SIM_CHK_OK : MLX5SIM_CHK_WQE_SEGMENT,
                  decode()) << row.bytes << " " << row.turns << " "
                            << row.entries;
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
        {MLX5_OPCODE_ATOMIC_MASKED_FA, true, false, false},
        {MLX5_OPCODE_UMR,              true, true,  false}
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
        .av(RESP_QPN, 0x1ee7, 2, 3, 0x40000000, 0, 0, DGID).finish();
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
