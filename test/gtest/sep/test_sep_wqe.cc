/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/sep_bf_copy.h>
#include <sep/sep_wqe_fixture.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace sep_wqe_test;

namespace {

typedef std::vector<uint8_t> bytes;

/* Expected bytes, written down field by field as the PRM has them */
class expected {
public:
    expected &be(uint64_t value, unsigned size)
    {
        while (size-- > 0) {
            m_data.push_back(value >> (size * 8));
        }
        return *this;
    }

    expected &ctrl(unsigned opmod, uint16_t index, unsigned opcode, unsigned ds,
                   uint8_t fm_ce_se)
    {
        /* opmod_idx_opcode, qpn_ds, signature, stream, fm_ce_se, imm */
        return be(opmod, 1).be(index, 2).be(opcode, 1).be(QPN, 3).be(ds, 1)
              .be(0, 3).be(fm_ce_se, 1).be(0, 4);
    }

    expected &raddr(uint64_t addr, uint32_t rkey)
    {
        return be(addr, 8).be(rkey, 4).be(0, 4);
    }

    expected &inl(uint32_t length) { return be(0x80000000u | length, 4); }

    expected &data(uint32_t length, uint32_t lkey, const void *addr)
    {
        return be(length, 4).be(lkey, 4).be((uintptr_t)addr, 8);
    }

    expected &raw(const void *data, size_t length)
    {
        m_data.insert(m_data.end(), (const uint8_t*)data,
                      (const uint8_t*)data + length);
        return *this;
    }

    expected &host64(uint64_t value) { return raw(&value, sizeof(value)); }

    size_t size() const { return m_data.size(); }
    unsigned ds() const { return (m_data.size() + 15) / 16; }
    unsigned num_bb() const { return (m_data.size() + 63) / 64; }
    const bytes &get() const { return m_data; }

private:
    bytes m_data;
};

struct mode {
    const uct_sep_ops_t *ops;
    bool                is_bf;
    uint8_t             sharing; /* UCT_SEP_BF_xx */
    const char          *name;
};

std::ostream &operator<<(std::ostream &os, const mode &m)
{
    return os << m.name;
}

std::vector<mode> modes()
{
    std::vector<mode> result = {
        {&uct_sep_ops_bf, true, UCT_SEP_BF_SINGLE, "bf"},
        {&uct_sep_ops_bf_shared, true, UCT_SEP_BF_SINGLE, "bf_shared_single"},
        {&uct_sep_ops_bf_shared, true, UCT_SEP_BF_TURNS, "bf_shared_turns"},
        {&uct_sep_ops_bf_shared, true, UCT_SEP_BF_SHARED, "bf_shared"},
        {&uct_sep_ops_db, false, UCT_SEP_BF_SINGLE, "db"},
        {&uct_sep_ops_db, false, UCT_SEP_BF_SHARED, "db_shared"}
    };

#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        result.push_back({&uct_sep_ops_bf64, true, UCT_SEP_BF_SINGLE, "bf64"});
        result.push_back({&uct_sep_ops_bf64_shared, true, UCT_SEP_BF_SHARED,
                          "bf64_shared"});
    }
#endif
    return result;
}

const uint64_t remote_addr = 0x0123456789abcdefull;
const uint32_t put_key     = 0xfedcba98;
const uint32_t atom_key    = 0x98badcfe; /* Strict */
const uct_rkey_t rkey      = uct_sep_rkey_make(atom_key, put_key);

class test_sep_wqe : public ::testing::TestWithParam<mode> {
protected:
    test_sep_wqe() : m_f(*GetParam().ops)
    {
        m_f.txwq().bf->sharing = GetParam().sharing;
        for (unsigned i = 0; i < sizeof(m_data); ++i) {
            m_data[i] = i * 7 + 1;
        }
    }

    const uct_sep_ops_t &ops() { return m_f.ops(); }

    /* The work request at pi, the doorbell record, the doorbell, and what of
     * the queue's state depends on it */
    void check(uint16_t pi, const expected &wqe, unsigned bf_index = 0)
    {
        unsigned num_bb = wqe.num_bb();
        bytes memory    = m_f.wqe(pi, num_bb);

        ASSERT_EQ(wqe.get(),
                  bytes(memory.begin(), memory.begin() + wqe.size()));
        EXPECT_EQ((uint16_t)(pi + num_bb), m_f.dbrec());
        EXPECT_EQ((uint16_t)(pi + num_bb), m_f.txwq().sw_pi);

        /* The device ignores what is behind the work request in its last BB */
        bytes bf    = m_f.bf(bf_index, UCT_SEP_MAX_WQE);
        size_t used = GetParam().is_bf ? wqe.size() : 8;
        size_t rung = GetParam().is_bf ? memory.size() : 8;
        EXPECT_EQ(bytes(memory.begin(), memory.begin() + used),
                  bytes(bf.begin(), bf.begin() + used));
        EXPECT_EQ(bytes(bf.size() - rung, 0xcc),
                  bytes(bf.begin() + rung, bf.end()));
    }

    fixture m_f;
    uint8_t m_data[512];
};

TEST_P(test_sep_wqe, put_short)
{
    ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                         rkey));
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_RDMA_WRITE, 3, 0)
                       .raddr(remote_addr, put_key).inl(8).raw(m_data, 8));
}

TEST_P(test_sep_wqe, put_short_of_every_length_at_every_place)
{
    for (unsigned length = 1; length <= UCT_SEP_PUT_MAX_INL; ++length) {
        for (unsigned pi : {5u, (unsigned)NUM_BB - 1, NUM_BB - 2u, NUM_BB - 3u,
                            0xffffu, 0xfffeu}) {
            fixture f(*GetParam().ops);

            f.seek(pi);
            ASSERT_EQ(UCS_OK, f.ops().ep_put_short(f.ep(), m_data, length,
                                                   remote_addr, rkey));
            expected wqe;
            wqe.ctrl(0, pi, MLX5_OPCODE_RDMA_WRITE, (36 + length + 15) / 16, 0)
               .raddr(remote_addr, put_key).inl(length).raw(m_data, length);
            bytes memory = f.wqe(pi, wqe.num_bb());
            ASSERT_EQ(wqe.get(),
                      bytes(memory.begin(), memory.begin() + wqe.size()))
                    << length << " at " << pi;
            ASSERT_EQ((uint16_t)(pi + wqe.num_bb()), f.dbrec());
            ASSERT_EQ(f.txwq().bb_max - (int)wqe.num_bb(), f.txwq().credits);
            if (GetParam().is_bf) {
                ASSERT_EQ(memory, f.bf(0, memory.size()));
            }
        }
    }
}

TEST_P(test_sep_wqe, put_short_of_nothing_has_no_data_segment)
{
    ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), NULL, 0, remote_addr, rkey));
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_RDMA_WRITE, 2, 0)
                       .raddr(remote_addr, put_key));
}

TEST_P(test_sep_wqe, work_requests_use_the_blueflame_buffers_in_turn)
{
    m_f.no_moderation();
    for (unsigned i = 0; i < 4; ++i) {
        ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, i, rkey));
        check(i, expected().ctrl(0, i, MLX5_OPCODE_RDMA_WRITE, 3, 0)
                           .raddr(i, put_key).inl(8).raw(m_data, 8), i % 2);
    }
}

TEST_P(test_sep_wqe, am_short)
{
    ASSERT_EQ(UCS_OK, ops().ep_am_short(m_f.ep(), 0x1e, remote_addr, m_data,
                                        8));
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_SEND, 3, UCT_SEP_FM_SOLICITED)
                       .inl(17).be(0x1e, 1).host64(remote_addr)
                       .raw(m_data, 8));
}

TEST_P(test_sep_wqe, am_short_of_every_length_at_every_place)
{
    for (unsigned length = 0; length <= UCT_SEP_AM_MAX_INL - 9; ++length) {
        for (unsigned pi : {0u, NUM_BB - 1u, NUM_BB - 2u, NUM_BB - 3u}) {
            fixture f(*GetParam().ops);

            f.seek(pi);
            ASSERT_EQ(UCS_OK, f.ops().ep_am_short(f.ep(), 2, 3, m_data,
                                                  length));
            expected wqe;
            wqe.ctrl(0, pi, MLX5_OPCODE_SEND, (20 + 9 + length + 15) / 16,
                     UCT_SEP_FM_SOLICITED)
               .inl(9 + length).be(2, 1).host64(3).raw(m_data, length);
            bytes memory = f.wqe(pi, wqe.num_bb());
            ASSERT_EQ(wqe.get(),
                      bytes(memory.begin(), memory.begin() + wqe.size()))
                    << length << " at " << pi;
        }
    }
}

TEST_P(test_sep_wqe, am_short_iov_is_one_inline_segment)
{
    uct_iov_t iov[3] = {{m_data, 50, NULL, 0, 1}, {m_data, 0, NULL, 0, 1},
                        {m_data + 50, 100, NULL, 0, 1}};

    m_f.seek(NUM_BB - 1);
    ASSERT_EQ(UCS_OK, ops().ep_am_short_iov(m_f.ep(), 7, iov, 3));
    check(NUM_BB - 1, expected().ctrl(0, NUM_BB - 1, MLX5_OPCODE_SEND, 11,
                                      UCT_SEP_FM_SOLICITED)
                                .inl(151).be(7, 1).raw(m_data, 150));
}

size_t pack_100(void *dest, void *arg)
{
    memcpy(dest, arg, 100);
    return 100;
}

TEST_P(test_sep_wqe, put_bcopy_sends_the_descriptor)
{
    ASSERT_EQ(100, ops().ep_put_bcopy(m_f.ep(), pack_100, m_data, remote_addr,
                                      rkey));
    uct_sep_desc_t *desc = ucs_container_of(
            m_f.txwq().outstanding.head, uct_sep_desc_t, super.queue);
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_RDMA_WRITE, 3, 0)
                       .raddr(remote_addr, put_key)
                       .data(100, DESC_LKEY, uct_sep_desc_buffer(desc)));
    EXPECT_EQ(0, memcmp(uct_sep_desc_buffer(desc), m_data, 100));
}

TEST_P(test_sep_wqe, am_bcopy_sends_the_header_with_the_descriptor)
{
    ASSERT_EQ(100, ops().ep_am_bcopy(m_f.ep(), 9, pack_100, m_data, 0));
    uct_sep_desc_t *desc = ucs_container_of(
            m_f.txwq().outstanding.head, uct_sep_desc_t, super.queue);
    uint8_t *buffer      = (uint8_t*)uct_sep_desc_buffer(desc);
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_SEND, 2, UCT_SEP_FM_SOLICITED)
                       .data(101, DESC_LKEY, buffer));
    EXPECT_EQ(9, buffer[0]);
    EXPECT_EQ(0, memcmp(buffer + 1, m_data, 100));
}

size_t pack_nothing(void *dest, void *arg)
{
    return 0;
}

/* Of a descriptor that was used before, which takes another way: by a get,
 * which wants more of it, and by a copy */
TEST_P(test_sep_wqe, copies_use_a_descriptor_again)
{
    m_f.no_moderation();
    ASSERT_EQ(UCS_INPROGRESS,
              ops().ep_get_bcopy(m_f.ep(), NULL, NULL, 200, remote_addr, rkey,
                                 m_f.comp()));
    uct_sep_desc_t *desc = ucs_container_of(
            m_f.txwq().outstanding.head, uct_sep_desc_t, super.queue);
    uint8_t *buffer      = (uint8_t*)uct_sep_desc_buffer(desc);
    m_f.complete(0);
    ASSERT_EQ(1u, m_f.progress());

    ASSERT_EQ(100, ops().ep_put_bcopy(m_f.ep(), pack_100, m_data, remote_addr,
                                      rkey));
    ASSERT_EQ(&desc->super.queue, m_f.txwq().outstanding.head);
    check(1, expected().ctrl(0, 1, MLX5_OPCODE_RDMA_WRITE, 3, 0)
                       .raddr(remote_addr, put_key)
                       .data(100, DESC_LKEY, buffer), 1);
    EXPECT_EQ(0, memcmp(buffer, m_data, 100));
    m_f.complete(1);
    ASSERT_EQ(1u, m_f.progress());

    ASSERT_EQ(0, ops().ep_put_bcopy(m_f.ep(), pack_nothing, NULL, remote_addr,
                                    rkey));
    ASSERT_EQ(&desc->super.queue, m_f.txwq().outstanding.head);
    bytes nothing = m_f.wqe(2, 1);
    EXPECT_EQ(expected().ctrl(0, 2, MLX5_OPCODE_RDMA_WRITE, 2, 0)
                        .raddr(remote_addr, put_key).get(),
              bytes(nothing.begin(), nothing.begin() + 32));
    EXPECT_EQ(3u, m_f.dbrec());
    m_f.complete(2);
    ASSERT_EQ(1u, m_f.progress());

    ASSERT_EQ(100, ops().ep_am_bcopy(m_f.ep(), 9, pack_100, m_data, 0));
    ASSERT_EQ(&desc->super.queue, m_f.txwq().outstanding.head);
    bytes sent = m_f.wqe(3, 1);
    EXPECT_EQ(expected().ctrl(0, 3, MLX5_OPCODE_SEND, 2, UCT_SEP_FM_SOLICITED)
                        .data(101, DESC_LKEY, buffer).get(),
              bytes(sent.begin(), sent.begin() + 32));
    EXPECT_EQ(9, buffer[0]);
    EXPECT_EQ(0, memcmp(buffer + 1, m_data, 100));
    EXPECT_EQ(m_f.txwq().bb_max - 1, m_f.txwq().credits);
}

TEST_P(test_sep_wqe, get_bcopy_is_signaled)
{
    ASSERT_EQ(UCS_INPROGRESS,
              ops().ep_get_bcopy(m_f.ep(), NULL, NULL, 200, remote_addr, rkey,
                                 m_f.comp()));
    uct_sep_desc_t *desc = ucs_container_of(
            m_f.txwq().outstanding.head, uct_sep_desc_t, super.queue);
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_RDMA_READ, 3,
                             UCT_SEP_FM_SIGNALED)
                       .raddr(remote_addr, put_key)
                       .data(200, DESC_LKEY, uct_sep_desc_buffer(desc)));
}

TEST_P(test_sep_wqe, put_zcopy_gathers_all_entries_over_the_end_of_the_queue)
{
    for (unsigned pi = NUM_BB - 4; pi < NUM_BB; ++pi) {
        fixture f(*GetParam().ops);
        expected wqe;
        uct_iov_t iov[UCT_SEP_RMA_MAX_IOV];

        wqe.ctrl(0, pi, MLX5_OPCODE_RDMA_WRITE, 2 + UCT_SEP_RMA_MAX_IOV - 1,
                 UCT_SEP_FM_SIGNALED).raddr(remote_addr, put_key);
        for (unsigned i = 0; i < UCT_SEP_RMA_MAX_IOV; ++i) {
            iov[i] = {m_data + i, (size_t)(i * 3), f.memh(), 0, 1};
            if (i > 0) {
                wqe.data(i * 3, MEM_LKEY, m_data + i);
            }
        }
        f.seek(pi);
        ASSERT_EQ(UCS_INPROGRESS,
                  f.ops().ep_put_zcopy(f.ep(), iov, UCT_SEP_RMA_MAX_IOV,
                                       remote_addr, rkey, f.comp()));
        bytes memory = f.wqe(pi, 4);
        ASSERT_EQ(wqe.get(), bytes(memory.begin(),
                                   memory.begin() + wqe.size())) << pi;
    }
}

TEST_P(test_sep_wqe, put_zcopy_that_nobody_waits_for_is_not_signaled)
{
    uct_iov_t iov = {m_data, 10, m_f.memh(), 0, 1};

    ASSERT_EQ(UCS_INPROGRESS, ops().ep_put_zcopy(m_f.ep(), &iov, 1, remote_addr,
                                                 rkey, NULL));
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_RDMA_WRITE, 3, 0)
                       .raddr(remote_addr, put_key).data(10, MEM_LKEY, m_data));
}

TEST_P(test_sep_wqe, get_zcopy)
{
    uct_iov_t iov = {m_data, 10, m_f.memh(), 0, 1};

    ASSERT_EQ(UCS_INPROGRESS, ops().ep_get_zcopy(m_f.ep(), &iov, 1, remote_addr,
                                                 rkey, NULL));
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_RDMA_READ, 3,
                             UCT_SEP_FM_SIGNALED)
                       .raddr(remote_addr, put_key).data(10, MEM_LKEY, m_data));
}

TEST_P(test_sep_wqe, am_zcopy_with_headers_of_every_length_at_every_place)
{
    for (unsigned hdr = 0; hdr <= UCT_SEP_AM_ZCOPY_MAX_HDR; ++hdr) {
        for (unsigned pi : {0u, NUM_BB - 1u, NUM_BB - 2u, NUM_BB - 3u}) {
            fixture f(*GetParam().ops);
            expected wqe;
            uct_iov_t iov[3] = {{m_data, 10, f.memh(), 0, 1},
                                {m_data + 1, 0, f.memh(), 0, 1},
                                {m_data + 2, 20, f.memh(), 0, 1}};
            unsigned inl_ds  = (16 + 4 + 1 + hdr + 15) / 16;

            f.seek(pi);
            ASSERT_EQ(UCS_INPROGRESS,
                      f.ops().ep_am_zcopy(f.ep(), 11, m_data, hdr, iov, 3, 0,
                                          NULL));
            wqe.ctrl(0, pi, MLX5_OPCODE_SEND, inl_ds + 2, UCT_SEP_FM_SOLICITED)
               .inl(1 + hdr).be(11, 1).raw(m_data, hdr);
            size_t inl_end = wqe.size();
            bytes memory   = f.wqe(pi, ((inl_ds + 2) + 3) / 4);
            ASSERT_EQ(wqe.get(), bytes(memory.begin(),
                                       memory.begin() + inl_end));

            expected segs;
            segs.data(10, MEM_LKEY, m_data).data(20, MEM_LKEY, m_data + 2);
            ASSERT_EQ(segs.get(), bytes(memory.begin() + inl_ds * 16,
                                        memory.begin() + (inl_ds + 2) * 16))
                    << hdr << " at " << pi;
        }
    }
}

TEST_P(test_sep_wqe, plain_atomics)
{
    uint64_t result;

    ASSERT_EQ(UCS_OK, ops().ep_atomic64_post(m_f.ep(), UCT_ATOMIC_OP_ADD, 5,
                                             remote_addr, rkey));
    check(0, expected().ctrl(0, 0, MLX5_OPCODE_ATOMIC_FA, 4, 0)
                       .raddr(remote_addr, atom_key).be(5, 8).be(0, 8)
                       .data(8, DESC_LKEY, uct_sep_desc_buffer(
                                              m_f.iface().tx.scratch)), 0);

    ASSERT_EQ(UCS_INPROGRESS,
              ops().ep_atomic_cswap64(m_f.ep(), 0x1111, 0x2222, remote_addr,
                                      rkey, &result, NULL));
    uct_sep_desc_t *desc = ucs_container_of(
            m_f.txwq().outstanding.head, uct_sep_desc_t, super.queue);
    check(1, expected().ctrl(0, 1, MLX5_OPCODE_ATOMIC_CS, 4,
                             UCT_SEP_FM_SIGNALED)
                       .raddr(remote_addr, atom_key).be(0x2222, 8).be(0x1111, 8)
                       .data(8, DESC_LKEY, uct_sep_desc_buffer(desc)), 1);
}

TEST_P(test_sep_wqe, masked_atomics_of_4_bytes)
{
    const uint32_t v = 0x12345678;
    void *scratch    = uct_sep_desc_buffer(m_f.iface().tx.scratch);
    uint32_t result;

    m_f.no_moderation();

    /* opmod 8: extended, 4 bytes */
    ASSERT_EQ(UCS_OK, ops().ep_atomic32_post(m_f.ep(), UCT_ATOMIC_OP_ADD, v,
                                             remote_addr, rkey));
    check(0, expected().ctrl(8, 0, MLX5_OPCODE_ATOMIC_MASKED_FA, 4, 0)
                       .raddr(remote_addr, atom_key).be(v, 4).be(0, 4).be(0, 8)
                       .data(4, DESC_LKEY, scratch), 0);
    ASSERT_EQ(UCS_OK, ops().ep_atomic32_post(m_f.ep(), UCT_ATOMIC_OP_XOR, v,
                                             remote_addr, rkey));
    check(1, expected().ctrl(8, 1, MLX5_OPCODE_ATOMIC_MASKED_FA, 4, 0)
                       .raddr(remote_addr, atom_key).be(v, 4).be(0xffffffff, 4)
                       .be(0, 8).data(4, DESC_LKEY, scratch), 1);
    ASSERT_EQ(UCS_OK, ops().ep_atomic32_post(m_f.ep(), UCT_ATOMIC_OP_AND, v,
                                             remote_addr, rkey));
    check(2, expected().ctrl(8, 2, MLX5_OPCODE_ATOMIC_MASKED_CS, 4, 0)
                       .raddr(remote_addr, atom_key).be(v, 4).be(0, 4)
                       .be((uint32_t)~v, 4).be(0, 4)
                       .data(4, DESC_LKEY, scratch), 0);
    ASSERT_EQ(UCS_OK, ops().ep_atomic32_post(m_f.ep(), UCT_ATOMIC_OP_OR, v,
                                             remote_addr, rkey));
    check(3, expected().ctrl(8, 3, MLX5_OPCODE_ATOMIC_MASKED_CS, 4, 0)
                       .raddr(remote_addr, atom_key).be(v, 4).be(0, 4).be(v, 4)
                       .be(0, 4).data(4, DESC_LKEY, scratch), 1);
    ASSERT_EQ(UCS_INPROGRESS,
              ops().ep_atomic_cswap32(m_f.ep(), 0x1111, 0x2222, remote_addr,
                                      rkey, &result, NULL));
    uct_sep_desc_t *desc = ucs_container_of(
            m_f.txwq().outstanding.head, uct_sep_desc_t, super.queue);
    check(4, expected().ctrl(8, 4, MLX5_OPCODE_ATOMIC_MASKED_CS, 4,
                             UCT_SEP_FM_SIGNALED)
                       .raddr(remote_addr, atom_key).be(0x2222, 4).be(0x1111, 4)
                       .be(0xffffffff, 4).be(0xffffffff, 4)
                       .data(4, DESC_LKEY, uct_sep_desc_buffer(desc)), 0);
}

TEST_P(test_sep_wqe, masked_atomics_of_8_bytes_continue_at_the_queues_start)
{
    const uint64_t v = 0x123456789abcdef0ull;
    void *scratch    = uct_sep_desc_buffer(m_f.iface().tx.scratch);

    m_f.seek(NUM_BB - 1);
    ASSERT_EQ(UCS_OK, ops().ep_atomic64_post(m_f.ep(), UCT_ATOMIC_OP_AND, v,
                                             remote_addr, rkey));
    check(NUM_BB - 1,
          expected().ctrl(9, NUM_BB - 1, MLX5_OPCODE_ATOMIC_MASKED_CS, 5, 0)
                    .raddr(remote_addr, atom_key).be(v, 8).be(0, 8).be(~v, 8)
                    .be(0, 8).data(8, DESC_LKEY, scratch), 0);
}

TEST_P(test_sep_wqe, masked_xor_of_8_bytes)
{
    const uint64_t v = 0x123456789abcdef0ull;
    void *scratch    = uct_sep_desc_buffer(m_f.iface().tx.scratch);

    ASSERT_EQ(UCS_OK, ops().ep_atomic64_post(m_f.ep(), UCT_ATOMIC_OP_XOR, v,
                                             remote_addr, rkey));
    check(0, expected().ctrl(9, 0, MLX5_OPCODE_ATOMIC_MASKED_FA, 4, 0)
                       .raddr(remote_addr, atom_key).be(v, 8).be(UINT64_MAX, 8)
                       .data(8, DESC_LKEY, scratch), 0);
}

TEST_P(test_sep_wqe,
       a_fence_is_a_fenced_write_of_nothing_before_the_next_operation)
{
    m_f.no_moderation();
    ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                         rkey));
    ASSERT_EQ(UCS_OK, uct_sep_ep_fence(m_f.ep(), 0));
    EXPECT_EQ(1, m_f.dbrec());
    ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                         rkey));
    bytes fence = m_f.wqe(1, 1);
    EXPECT_EQ(expected().ctrl(0, 1, MLX5_OPCODE_RDMA_WRITE, 2, UCT_SEP_FM_FENCE)
                        .raddr(0, 0).get(),
              bytes(fence.begin(), fence.begin() + 32));
    EXPECT_EQ(3, m_f.dbrec());
    EXPECT_EQ(m_f.txwq().bb_max - 3, uct_sep_txwq_credits(&m_f.txwq()));
}

TEST_P(test_sep_wqe, a_fence_with_nothing_outstanding_posts_nothing)
{
    ASSERT_EQ(UCS_OK, uct_sep_ep_fence(m_f.ep(), 0));
    ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                         rkey));
    EXPECT_EQ(1, m_f.dbrec());
}

TEST_P(test_sep_wqe, an_endpoint_without_credits_posts_nothing)
{
    m_f.txwq().credits = -1;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr, rkey));
    m_f.txwq().credits        = 0;
    m_f.iface().tx.cq_credits = -1;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr, rkey));
    EXPECT_EQ(0, m_f.txwq().sw_pi);
}

TEST_P(test_sep_wqe, one_work_request_in_moderation_asks_for_a_completion)
{
    /* A quarter of the queue, as its longest work requests take 4 BBs */
    int moderation = m_f.txwq().bb_max / UCT_SEP_MAX_BB;

    for (int i = 1; i <= 2 * moderation; ++i) {
        ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                             rkey));
        EXPECT_EQ((i % moderation) ? 0 : UCT_SEP_FM_SIGNALED,
                  m_f.wqe(i - 1, 1)[11]) << i;
    }
}

struct counted {
    uct_completion_t comp;
    unsigned         calls;
};

TEST_P(test_sep_wqe, a_completion_finishes_all_operations_up_to_it_in_order)
{
    uct_iov_t iov    = {m_data, 10, m_f.memh(), 0, 1};
    counted comps[3] = {};

    for (auto &c : comps) {
        c.comp = {[](uct_completion_t *self) {
                      ++ucs_container_of(self, counted, comp)->calls;
                  }, 1, UCS_OK};
        ASSERT_EQ(UCS_INPROGRESS,
                  ops().ep_put_zcopy(m_f.ep(), &iov, 1, remote_addr, rkey,
                                     &c.comp));
    }
    EXPECT_EQ(0u, m_f.progress());
    m_f.complete(1);
    EXPECT_EQ(1u, m_f.progress());
    EXPECT_EQ(1u, comps[0].calls);
    EXPECT_EQ(1u, comps[1].calls);
    EXPECT_EQ(0u, comps[2].calls);
    EXPECT_EQ(m_f.txwq().bb_max - 1, m_f.txwq().credits);
    EXPECT_EQ(NUM_CQE - 1, m_f.iface().tx.cq_credits);
    m_f.complete(2);
    EXPECT_EQ(1u, m_f.progress());
    EXPECT_EQ(1u, comps[2].calls);
    EXPECT_EQ(m_f.txwq().bb_max, m_f.txwq().credits);
}

TEST_P(test_sep_wqe, a_flush_is_a_signaled_nop_behind_what_was_posted)
{
    EXPECT_EQ(UCS_OK, ops().ep_flush(m_f.ep(), 0, NULL));
    EXPECT_EQ(0, m_f.txwq().sw_pi);

    ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                         rkey));
    EXPECT_EQ(UCS_INPROGRESS, ops().ep_flush(m_f.ep(), 0, NULL));
    check(1, expected().ctrl(0, 1, MLX5_OPCODE_NOP, 1, UCT_SEP_FM_SIGNALED),
          1);
    EXPECT_TRUE(uct_sep_txwq_is_signaled(&m_f.txwq()));

    /* One is enough */
    EXPECT_EQ(UCS_INPROGRESS, ops().ep_flush(m_f.ep(), 0, NULL));
    EXPECT_EQ(2, m_f.txwq().sw_pi);

    m_f.complete(1);
    EXPECT_EQ(1u, m_f.progress());
    EXPECT_EQ(UCS_OK, ops().ep_flush(m_f.ep(), 0, NULL));
    EXPECT_EQ(m_f.txwq().bb_max, m_f.txwq().credits);
    EXPECT_EQ(NUM_CQE, m_f.iface().tx.cq_credits);
}

TEST_P(test_sep_wqe, flushes_complete_with_what_they_wait_for)
{
    counted comps[2] = {};

    for (auto &c : comps) {
        c.comp = {[](uct_completion_t *self) {
                      ++ucs_container_of(self, counted, comp)->calls;
                  }, 1, UCS_OK};
    }

    for (unsigned i = 0; i < 2; ++i) {
        ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                             rkey));
        ASSERT_EQ(UCS_INPROGRESS, ops().ep_flush(m_f.ep(), 0, &comps[i].comp));
    }
    m_f.complete(1);
    EXPECT_EQ(1u, m_f.progress());
    EXPECT_EQ(1u, comps[0].calls);
    EXPECT_EQ(0u, comps[1].calls);
    m_f.complete(2); /* the put itself: the flush was expected */
    EXPECT_EQ(1u, m_f.progress());
    EXPECT_EQ(1u, comps[1].calls);
}

TEST_P(test_sep_wqe, what_is_flushed_alone_asks_for_a_completion_itself)
{
    for (unsigned i = 0; i < 10; ++i) {
        const uint16_t pi = m_f.txwq().sw_pi;
        ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                             rkey));
        EXPECT_EQ(i > 0, uct_sep_txwq_is_signaled(&m_f.txwq()));
        EXPECT_EQ(UCS_INPROGRESS, ops().ep_flush(m_f.ep(), 0, NULL));
        /* The first has a NOP behind it */
        const uint16_t end = pi + ((i == 0) ? 2 : 1);
        EXPECT_EQ(end, m_f.txwq().sw_pi);
        EXPECT_TRUE(uct_sep_txwq_is_signaled(&m_f.txwq()));

        /* Again, before it is complete and after that */
        EXPECT_EQ(UCS_INPROGRESS, ops().ep_flush(m_f.ep(), 0, NULL));
        m_f.complete(end - 1);
        EXPECT_EQ(1u, m_f.progress());
        EXPECT_EQ(UCS_OK, ops().ep_flush(m_f.ep(), 0, NULL));
        EXPECT_EQ(end, m_f.txwq().sw_pi);
        EXPECT_EQ(m_f.txwq().bb_max, m_f.txwq().credits);
        EXPECT_EQ(NUM_CQE, m_f.iface().tx.cq_credits);
    }
}

TEST_P(test_sep_wqe, an_expectation_of_a_flush_that_fails_is_given_up)
{
    m_f.no_moderation();
    for (unsigned puts : {1u, 1u, 2u, 2u, 1u, 1u}) {
        const uint16_t pi   = m_f.txwq().sw_pi;
        const bool expected = m_f.txwq().flags & UCT_SEP_TXWQ_FLAG_EXPECT;
        for (unsigned i = 0; i < puts; ++i) {
            ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8,
                                                 remote_addr, rkey));
            EXPECT_EQ(expected && (i == 0),
                      uct_sep_txwq_is_signaled(&m_f.txwq()));
        }
        EXPECT_EQ(UCS_INPROGRESS, ops().ep_flush(m_f.ep(), 0, NULL));
        const uint16_t end = pi + puts + (expected && (puts == 1) ? 0 : 1);
        EXPECT_EQ(end, m_f.txwq().sw_pi);
        EXPECT_EQ(puts == 1,
                  !!(m_f.txwq().flags & UCT_SEP_TXWQ_FLAG_EXPECT));

        if (expected) {
            m_f.complete(pi);
        }
        if (end - 1 != pi) {
            m_f.complete(end - 1);
        }
        while (m_f.progress() > 0) {
        }
        EXPECT_EQ(UCS_OK, ops().ep_flush(m_f.ep(), 0, NULL));
        EXPECT_EQ(m_f.txwq().bb_max, m_f.txwq().credits);
        EXPECT_EQ(NUM_CQE, m_f.iface().tx.cq_credits);
    }
}

TEST_P(test_sep_wqe, a_flush_without_credits_posts_nothing)
{
    ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr,
                                         rkey));
    m_f.txwq().credits = -1;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, ops().ep_flush(m_f.ep(), 0, NULL));
    EXPECT_EQ(1, m_f.txwq().sw_pi);
}

TEST_P(test_sep_wqe, a_callback_that_progresses_gives_credits_back_once)
{
    static fixture *f;
    uct_iov_t iov    = {m_data, 10, m_f.memh(), 0, 1};
    counted comps[2] = {};

    f = &m_f;
    for (auto &c : comps) {
        c.comp = {[](uct_completion_t *self) {
                      ++ucs_container_of(self, counted, comp)->calls;
                      f->progress();
                  }, 1, UCS_OK};
        ASSERT_EQ(UCS_INPROGRESS,
                  ops().ep_put_zcopy(m_f.ep(), &iov, 1, remote_addr, rkey,
                                     &c.comp));
    }
    m_f.complete(0);
    m_f.complete(1);
    EXPECT_EQ(1u, m_f.progress());
    EXPECT_EQ(1u, comps[0].calls);
    EXPECT_EQ(1u, comps[1].calls);
    EXPECT_EQ(m_f.txwq().bb_max, m_f.txwq().credits);
    EXPECT_EQ(NUM_CQE, m_f.iface().tx.cq_credits);
}

TEST_P(test_sep_wqe, limit_of_polling_holds_for_a_call)
{
    for (unsigned max : {1u, 2u, 3u}) {
        m_f.iface().config.tx_max_poll = max;
        for (unsigned i = 0; i < 3; ++i) {
            uint16_t pi = m_f.txwq().sw_pi;
            ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, 8,
                                                 remote_addr, rkey));
            m_f.complete(pi);
        }
        for (unsigned left = 3; left > 0;) {
            unsigned count = m_f.progress();
            ASSERT_EQ(std::min(max, left), count);
            left -= count;
        }
        EXPECT_EQ(0u, m_f.progress());
    }
}

TEST_P(test_sep_wqe, queues_go_around_many_times)
{
    const unsigned rounds = 3 * 65536; /* Indices have 16 bits */
    unsigned length       = 0;
    uint16_t last         = 0;

    for (unsigned i = 0; i < rounds; ++i) {
        length = (length + 37) % UCT_SEP_PUT_MAX_INL;
        last   = m_f.txwq().sw_pi;
        ASSERT_EQ(UCS_OK, ops().ep_put_short(m_f.ep(), m_data, length,
                                             remote_addr, rkey)) << i;
        if (uct_sep_txwq_is_signaled(&m_f.txwq())) {
            m_f.complete(last);
            ASSERT_EQ(1u, m_f.progress());
            ASSERT_EQ(m_f.txwq().bb_max, m_f.txwq().credits);
        }
    }
    EXPECT_EQ(m_f.txwq().bb_max - (uint16_t)(m_f.txwq().sw_pi -
                                             m_f.txwq().hw_ci),
              m_f.txwq().credits);
}

INSTANTIATE_TEST_SUITE_P(post, test_sep_wqe, ::testing::ValuesIn(modes()),
                         [](const ::testing::TestParamInfo<mode> &info) {
                             return std::string(info.param.name);
                         });

TEST(test_sep_txwq, an_unusable_length_is_refused)
{
    uct_sep_txwq_mem_t mem = {};
    uct_sep_txwq_t txwq;

    for (unsigned count : {0u, 4u, 12u, 1u << 16}) {
        mem.bb_count = count;
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_sep_txwq_init(&txwq, &mem));
    }
}

TEST(test_sep_qp_table, finds_what_was_added_and_only_that)
{
    std::vector<uct_sep_txwq_t> queues(2000);
    uct_sep_qp_table_t table;
    uint32_t qpn = 5;
    std::vector<uint32_t> qpns;

    ASSERT_EQ(UCS_OK, uct_sep_qp_table_init(&table));
    for (unsigned i = 0; i < queues.size(); ++i) {
        /* In places the same low bits, so that entries are pushed aside */
        qpn += (i % 3) ? 1 : 4096;
        qpns.push_back(qpn & UCT_SEP_QPN_MASK);
        ASSERT_EQ(UCS_OK, uct_sep_qp_table_add(&table, qpns[i], &queues[i]));
    }
    for (unsigned i = 0; i < queues.size(); ++i) {
        ASSERT_EQ(&queues[i], uct_sep_qp_table_find(&table, qpns[i]));
    }
    for (unsigned i = 0; i < queues.size(); i += 2) {
        uct_sep_qp_table_remove(&table, qpns[i]);
        uct_sep_qp_table_remove(&table, qpns[i]);
    }
    for (unsigned i = 0; i < queues.size(); ++i) {
        ASSERT_EQ((i % 2) ? &queues[i] : NULL,
                  uct_sep_qp_table_find(&table, qpns[i]));
    }
    EXPECT_EQ(queues.size() / 2, table.count);
    uct_sep_qp_table_cleanup(&table);
}

/* An asm statement that does not name what it overwrites gives wrong data
 * wherever the transport is compiled for the processor */
TEST(test_sep_bf_copy, one_store_leaves_the_callers_registers_alone)
{
    sep_bf_copy_value_t src, dst;
    sep_bf_copy_value_t values[SEP_BF_COPY_NUM_VALUES];
    sep_bf_copy_value_t after[SEP_BF_COPY_NUM_VALUES];

    memset(&src, 0xee, sizeof(src));
    for (unsigned i = 0; i < SEP_BF_COPY_NUM_VALUES; ++i) {
        memset(&values[i], i + 1, sizeof(values[i]));
    }

    if (sep_bf_copy_with_values(&dst, &src, values, after) != 0) {
        GTEST_SKIP() << "no AVX-512";
    }

    EXPECT_EQ(0, memcmp(&dst, &src, sizeof(dst)));
    for (unsigned i = 0; i < SEP_BF_COPY_NUM_VALUES; ++i) {
        EXPECT_EQ(0, memcmp(&values[i], &after[i], sizeof(after[i]))) << i;
    }
}

} // namespace
