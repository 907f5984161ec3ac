/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/test_engine.h>

extern "C" {
#include <sim/engine/plan.h>
#include <sim/engine/zip.h>
}

#include <infiniband/mlx5dv.h>

#include <set>
#include <string>
#include <vector>

/* Completions are read back with the structures and accessors of rdma-core's
 * mlx5dv.h, the way libmlx5 and UCX look at them. */

class test_engine_cqe : public testing::Test {
protected:
    test_engine_cqe()
    {
        memset(&m_cqe, 0, sizeof(m_cqe));
        m_cqe.opcode      = MLX5SIM_CQE_RESP_SEND;
        m_cqe.wqe_counter = 0xabcd;
        m_cqe.slid        = 0x1234;
        m_cqe.byte_cnt    = 0x01020304;
        m_cqe.qpn         = 0x345678;
        m_cqe.uidx        = 0x9abc;
        m_cqe.srqn        = 0x4321;
        m_cqe.src_qpn     = 0x765432;
        m_cqe.sl          = 0xb;
    }

    struct mlx5_cqe64 *build(unsigned owner = 0)
    {
        memset(m_bytes, 0xff, sizeof(m_bytes));
        mlx5sim_cqe_build(&m_cqe, 64, owner, m_bytes);
        for (unsigned i = 64; i < sizeof(m_bytes); ++i) {
            EXPECT_EQ(0xff, m_bytes[i]);
        }
        return (struct mlx5_cqe64*)m_bytes;
    }

    struct mlx5_err_cqe *build_error(unsigned owner = 0)
    {
        return (struct mlx5_err_cqe*)build(owner);
    }

    mlx5sim_cqe_t m_cqe;
    alignas(64) uint8_t m_bytes[256];
};


#define EXPECT_SYNDROME(theirs, ours) \
    EXPECT_EQ(int(MLX5_CQE_SYNDROME_##theirs), int(MLX5SIM_SYNDROME_##ours))

TEST_F(test_engine_cqe, codes_are_those_of_mlx5dv)
{
    EXPECT_SAME(CQE_REQ);
    EXPECT_SAME(CQE_RESP_WR_IMM);
    EXPECT_SAME(CQE_RESP_SEND);
    EXPECT_SAME(CQE_RESP_SEND_IMM);
    EXPECT_SAME(CQE_RESP_SEND_INV);
    EXPECT_SAME(CQE_RESIZE_CQ);
    EXPECT_SAME(CQE_REQ_ERR);
    EXPECT_SAME(CQE_RESP_ERR);
    EXPECT_SAME(CQE_INVALID);
    EXPECT_SYNDROME(LOCAL_LENGTH_ERR, LOCAL_LENGTH);
    EXPECT_SYNDROME(LOCAL_QP_OP_ERR, LOCAL_QP_OP);
    EXPECT_SYNDROME(LOCAL_PROT_ERR, LOCAL_PROT);
    EXPECT_SYNDROME(WR_FLUSH_ERR, WR_FLUSH);
    EXPECT_SYNDROME(MW_BIND_ERR, MW_BIND);
    EXPECT_SYNDROME(BAD_RESP_ERR, BAD_RESP);
    EXPECT_SYNDROME(LOCAL_ACCESS_ERR, LOCAL_ACCESS);
    EXPECT_SYNDROME(REMOTE_INVAL_REQ_ERR, REMOTE_INVAL_REQ);
    EXPECT_SYNDROME(REMOTE_ACCESS_ERR, REMOTE_ACCESS);
    EXPECT_SYNDROME(REMOTE_OP_ERR, REMOTE_OP);
    EXPECT_SYNDROME(TRANSPORT_RETRY_EXC_ERR, TRANSPORT_RETRY);
    EXPECT_SYNDROME(RNR_RETRY_EXC_ERR, RNR_RETRY);
    EXPECT_SYNDROME(REMOTE_ABORTED_ERR, REMOTE_ABORTED);
}

TEST_F(test_engine_cqe, structures_are_those_of_mlx5dv)
{
    EXPECT_EQ(sizeof(struct mlx5_cqe64), sizeof(mlx5sim_cqe64_t));
    EXPECT_EQ(sizeof(struct mlx5_err_cqe), sizeof(mlx5sim_err_cqe_t));
    EXPECT_EQ(offsetof(struct mlx5_cqe64, ml_path),
              offsetof(mlx5sim_cqe64_t, ml_path));
    EXPECT_EQ(offsetof(struct mlx5_cqe64, slid),
              offsetof(mlx5sim_cqe64_t, slid));
    EXPECT_EQ(offsetof(struct mlx5_cqe64, timestamp),
              offsetof(mlx5sim_cqe64_t, timestamp));
    EXPECT_EQ(offsetof(struct mlx5_err_cqe, syndrome),
              offsetof(mlx5sim_err_cqe_t, syndrome));
    EXPECT_EQ(offsetof(struct mlx5_err_cqe, vendor_err_synd),
              offsetof(mlx5sim_err_cqe_t, vendor_err_synd));
    EXPECT_EQ(55u, offsetof(mlx5sim_err_cqe_t, syndrome));
}

TEST_F(test_engine_cqe, ownership_bit)
{
    for (unsigned owner : {0, 1, 2, 3}) {
        struct mlx5_cqe64 *cqe = build(owner);
        EXPECT_EQ(owner & 1, mlx5dv_get_cqe_owner(cqe));
        EXPECT_EQ(MLX5_CQE_RESP_SEND, mlx5dv_get_cqe_opcode(cqe));
        EXPECT_EQ(cqe->op_own, m_bytes[63]);
        /* no inline scatter, no compression */
        EXPECT_EQ(0, cqe->op_own & 0xc);
    }
}

TEST_F(test_engine_cqe, solicited_event_bit_does_not_disturb_readers)
{
    m_cqe.solicited        = 1;
    struct mlx5_cqe64 *cqe = build(1);
    EXPECT_EQ(2, cqe->op_own & 2);
    EXPECT_EQ(1, mlx5dv_get_cqe_owner(cqe));
    EXPECT_EQ(MLX5_CQE_RESP_SEND, mlx5dv_get_cqe_opcode(cqe));
    /* compressed or with inline data, to libmlx5 and UCX */
    EXPECT_EQ(0, cqe->op_own & (MLX5_INLINE_SCATTER_32 |
                                MLX5_INLINE_SCATTER_64));
}

TEST_F(test_engine_cqe, short_data_is_in_front_of_what_the_completion_says)
{
    for (unsigned size : {64, 128}) {
        unsigned max = mlx5sim_cqe_max_data(size);
        EXPECT_EQ(size / 2, max);

        for (unsigned i = 0; i < max; ++i) {
            m_cqe.data[i] = i + 1;
        }
        m_cqe.scattered = max;
        memset(m_bytes, 0, sizeof(m_bytes));
        mlx5sim_cqe_build(&m_cqe, size, 1, m_bytes);
        EXPECT_EQ(0, memcmp(m_bytes, m_cqe.data, max));

        struct mlx5_cqe64 *cqe = (struct mlx5_cqe64*)(m_bytes + size - 64);
        EXPECT_EQ(1, mlx5dv_get_cqe_owner(cqe));
        EXPECT_EQ(MLX5_CQE_RESP_SEND, mlx5dv_get_cqe_opcode(cqe));
        EXPECT_EQ(htobe32(0x01020304), cqe->byte_cnt);
        EXPECT_EQ((size == 64) ? MLX5_INLINE_SCATTER_32 :
                                 MLX5_INLINE_SCATTER_64,
                  cqe->op_own & (MLX5_INLINE_SCATTER_32 |
                                 MLX5_INLINE_SCATTER_64));
    }
}

TEST_F(test_engine_cqe, requester_completion)
{
    m_cqe.opcode     = MLX5SIM_CQE_REQ;
    m_cqe.wqe_opcode = MLX5_OPCODE_RDMA_READ;
    struct mlx5_cqe64 *cqe = build();
    EXPECT_EQ(MLX5_CQE_REQ, mlx5dv_get_cqe_opcode(cqe));
    EXPECT_EQ(htobe32((MLX5_OPCODE_RDMA_READ << 24) | 0x345678),
              cqe->sop_drop_qpn);
    EXPECT_EQ(htobe16(0xabcd), cqe->wqe_counter);
    EXPECT_EQ(htobe32(0x01020304), cqe->byte_cnt);
    EXPECT_EQ(htobe32(0x9abc), cqe->srqn_uidx);
    EXPECT_EQ(0, cqe->app);
}

TEST_F(test_engine_cqe, datagram_receive)
{
    m_cqe.has_grh = 1;
    m_cqe.pkey    = 0x8005;
    struct mlx5_cqe64 *cqe = build();
    EXPECT_EQ(MLX5_CQE_RESP_SEND, mlx5dv_get_cqe_opcode(cqe));
    EXPECT_EQ(htobe16(0x1234), cqe->slid);
    EXPECT_EQ(0x765432u, be32toh(cqe->flags_rqpn) & 0xffffff);
    EXPECT_EQ(0xbu, (be32toh(cqe->flags_rqpn) >> 24) & 0xf);
    EXPECT_EQ(1u, (be32toh(cqe->flags_rqpn) >> 28) & 3);
    EXPECT_EQ(0x8005u, be32toh(cqe->imm_inval_pkey) & 0xffff);
    EXPECT_EQ(0, cqe->ml_path);
    EXPECT_EQ(htobe32(0x345678), cqe->sop_drop_qpn);

    m_cqe.has_grh = 0;
    EXPECT_EQ(0u, (be32toh(build()->flags_rqpn) >> 28) & 3);
}

TEST_F(test_engine_cqe, immediate_is_passed_through_and_rkey_is_big_endian)
{
    m_cqe.imm  = 0x11223344;
    m_cqe.pkey = 0xffff;
    for (unsigned opcode : {MLX5SIM_CQE_RESP_SEND_IMM,
                            MLX5SIM_CQE_RESP_WR_IMM}) {
        m_cqe.opcode = opcode;
        EXPECT_EQ(0x11223344u, build()->imm_inval_pkey);
    }
    m_cqe.opcode = MLX5SIM_CQE_RESP_SEND_INV;
    EXPECT_EQ(htobe32(0x11223344), build()->imm_inval_pkey);
}

TEST_F(test_engine_cqe, version_1_reports_the_user_index_everywhere)
{
    for (unsigned opcode : {MLX5SIM_CQE_REQ, MLX5SIM_CQE_RESP_SEND,
                            MLX5SIM_CQE_REQ_ERR, MLX5SIM_CQE_RESP_ERR}) {
        for (uint32_t srqn : {0, 0x4321}) {
            m_cqe.opcode = opcode;
            m_cqe.srqn   = srqn;
            EXPECT_EQ(0x9abcu, be32toh(build()->srqn_uidx));
        }
    }

    m_cqe.uidx = 0;
    EXPECT_EQ(0u, be32toh(build()->srqn_uidx));
}

/* libmlx5 get_cur_rsc(): not 0 means that the receive was from an SRQ */
TEST_F(test_engine_cqe, version_0_reports_the_srq_of_a_receive)
{
    m_cqe.uidx = 0xffffff;
    for (unsigned opcode : {MLX5SIM_CQE_RESP_SEND, MLX5SIM_CQE_RESP_ERR}) {
        m_cqe.opcode = opcode;
        m_cqe.srqn   = 0x4321;
        EXPECT_EQ(0x4321u, be32toh(build()->srqn_uidx));
        m_cqe.srqn   = 0;
        EXPECT_EQ(0u, be32toh(build()->srqn_uidx));
    }

    m_cqe.srqn = 0x4321;
    for (unsigned opcode : {MLX5SIM_CQE_REQ, MLX5SIM_CQE_REQ_ERR}) {
        m_cqe.opcode = opcode;
        EXPECT_EQ(0u, be32toh(build()->srqn_uidx));
    }
}

TEST_F(test_engine_cqe, error_completion)
{
    m_cqe.opcode     = MLX5SIM_CQE_REQ_ERR;
    m_cqe.syndrome   = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    m_cqe.vendor_err = 0x88;
    m_cqe.wqe_opcode = MLX5_OPCODE_RDMA_WRITE;
    m_cqe.timestamp  = UINT64_MAX; /* must not run into the syndrome */
    m_cqe.solicited  = 1;
    struct mlx5_err_cqe *cqe = build_error(1);
    EXPECT_EQ(MLX5_CQE_REQ_ERR, cqe->op_own >> 4);
    EXPECT_EQ(1, cqe->op_own & 1);
    EXPECT_EQ(0, cqe->op_own & 0xe);
    EXPECT_EQ(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, cqe->syndrome);
    EXPECT_EQ(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, m_bytes[55]);
    EXPECT_EQ(0x88, cqe->vendor_err_synd);
    EXPECT_EQ(htobe32((MLX5_OPCODE_RDMA_WRITE << 24) | 0x345678),
              cqe->s_wqe_opcode_qpn);
    EXPECT_EQ(htobe16(0xabcd), cqe->wqe_counter);
    for (unsigned i = 36; i < 54; ++i) {
        EXPECT_EQ(0, m_bytes[i]);
    }
}

TEST_F(test_engine_cqe, timestamp_of_a_success)
{
    m_cqe.timestamp = 0x1122334455667788ull;
    struct mlx5_cqe64 *cqe = build();
    EXPECT_EQ(htobe64(0x1122334455667788ull), cqe->timestamp);
    EXPECT_EQ(htobe32(0x01020304), cqe->byte_cnt);
    EXPECT_EQ(htobe32(0x345678), cqe->sop_drop_qpn);
}

TEST_F(test_engine_cqe, cqe_of_128_bytes_has_the_same_content_at_its_end)
{
    uint8_t large[128];

    for (unsigned opcode : {MLX5SIM_CQE_RESP_SEND, MLX5SIM_CQE_RESP_ERR}) {
        m_cqe.opcode   = opcode;
        m_cqe.syndrome = 5;
        build(1);
        memset(large, 0xff, sizeof(large));
        mlx5sim_cqe_build(&m_cqe, 128, 1, large);
        EXPECT_EQ(0, memcmp(large + 64, m_bytes, 64));
        for (unsigned i = 0; i < 64; ++i) {
            EXPECT_EQ(0, large[i]);
        }
    }
}

TEST_F(test_engine_cqe, flush_of_a_send_and_of_a_receive)
{
    mlx5sim_qp_t qp = test_engine::make_qp(MLX5SIM_QPT_RC, 0x111, 0x222, 1);

    qp.uidx = 0x77;
    qp.srqn = 0x88;
    memset(&m_cqe, 0xa5, sizeof(m_cqe));
    mlx5sim_cqe_flush(&qp, 0, 42, MLX5_OPCODE_SEND, &m_cqe);
    struct mlx5_err_cqe *cqe = build_error();
    EXPECT_EQ(MLX5_CQE_REQ_ERR, cqe->op_own >> 4);
    EXPECT_EQ(MLX5_CQE_SYNDROME_WR_FLUSH_ERR, cqe->syndrome);
    EXPECT_EQ(htobe32((MLX5_OPCODE_SEND << 24) | 0x111), cqe->s_wqe_opcode_qpn);
    EXPECT_EQ(htobe16(42), cqe->wqe_counter);
    EXPECT_EQ(htobe32(0x77), cqe->srqn);

    /* A receive has no opcode, whatever the queue pair was doing */
    mlx5sim_cqe_flush(&qp, 1, 43, MLX5_OPCODE_SEND, &m_cqe);
    cqe = build_error();
    EXPECT_EQ(MLX5_CQE_RESP_ERR, cqe->op_own >> 4);
    EXPECT_EQ(MLX5_CQE_SYNDROME_WR_FLUSH_ERR, cqe->syndrome);
    EXPECT_EQ(htobe32(0x111), cqe->s_wqe_opcode_qpn);
    EXPECT_EQ(htobe16(43), cqe->wqe_counter);
    EXPECT_EQ(0x88u, m_cqe.srqn);
    EXPECT_TRUE(m_cqe.solicited);
}

TEST_F(test_engine_cqe, every_syndrome_has_its_own_name)
{
    std::set<std::string> names;

    for (unsigned syndrome : {0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x10, 0x11,
                              0x12, 0x13, 0x14, 0x15, 0x16, 0x22}) {
        EXPECT_TRUE(names.insert(mlx5sim_syndrome_name(syndrome)).second);
    }
    EXPECT_EQ(0u, names.count("unknown syndrome"));
    EXPECT_STREQ("unknown syndrome", mlx5sim_syndrome_name(0x77));
}


/*
 * Receive WQEs
 */

class test_engine_recv : public testing::Test {
protected:
    test_engine_recv() : m_bytes(NULL), m_stride(0)
    {
        memset(&m_recv, 0xa5, sizeof(m_recv));
        m_recv.index = 1234;
    }

    ~test_engine_recv()
    {
        delete[] m_bytes;
    }

    void start(unsigned stride)
    {
        delete[] m_bytes;
        m_stride = stride;
        m_bytes  = new uint8_t[stride];
        memset(m_bytes, 0xee, stride);
    }

    void seg(unsigned i, uint32_t byte_count, uint32_t lkey, uint64_t addr)
    {
        struct mlx5_wqe_data_seg data;

        mlx5dv_set_data_seg(&data, byte_count, lkey, addr);
        memcpy(m_bytes + i * 16, &data, sizeof(data));
    }

    mlx5sim_chk_t decode(int is_srq = 0)
    {
        return mlx5sim_recv_decode(m_bytes, m_stride, is_srq, &m_recv);
    }

    uint8_t            *m_bytes;
    unsigned            m_stride;
    mlx5sim_recv_wqe_t  m_recv;
};


TEST_F(test_engine_recv, list_ends_with_the_invalid_key)
{
    start(64);
    seg(0, 10, 1, 0x1000);
    seg(1, 20, 2, 0x2000);
    seg(2, 0, MLX5_INVALID_LKEY, 0);
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    ASSERT_EQ(2u, m_recv.num_segs);
    EXPECT_EQ(30u, m_recv.length);
    EXPECT_EQ(0x1000u, m_recv.segs[0].addr);
    EXPECT_EQ(10u, m_recv.segs[0].length);
    EXPECT_EQ(1u, m_recv.segs[0].lkey);
    EXPECT_EQ(NULL, m_recv.segs[0].inl);
    EXPECT_EQ(0x2000u, m_recv.segs[1].addr);
    EXPECT_EQ(2u, m_recv.segs[1].lkey);
    EXPECT_EQ(1234, m_recv.index);
}

TEST_F(test_engine_recv, list_ends_with_the_stride)
{
    start(32);
    seg(0, 10, 1, 0x1000);
    seg(1, 20, 2, 0x2000);
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(2u, m_recv.num_segs);

    start(16);
    seg(0, 10, 1, 0x1000);
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(1u, m_recv.num_segs);
}

/* UCX stores pointers in the reserved bytes of the next segment */
TEST_F(test_engine_recv, shared_receive_skips_the_next_segment)
{
    start(32);
    seg(1, 20, 2, 0x2000);
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(1));
    ASSERT_EQ(1u, m_recv.num_segs);
    EXPECT_EQ(0x2000u, m_recv.segs[0].addr);

    start(16);
    EXPECT_EQ(MLX5SIM_CHK_RECV_WQE, decode(1));
}

/* mlx5_post_srq_recv() copies entries of length 0 */
TEST_F(test_engine_recv, empty_entry_takes_nothing)
{
    start(64);
    seg(1, 0, 7, 0x1000);
    seg(2, 20, 2, 0x2000);
    seg(3, 0, MLX5_INVALID_LKEY, 0);
    ASSERT_EQ(MLX5SIM_CHK_OK, decode(1));
    ASSERT_EQ(1u, m_recv.num_segs);
    EXPECT_EQ(20u, m_recv.length);
    EXPECT_EQ(2u, m_recv.segs[0].lkey);
}

TEST_F(test_engine_recv, empty_receive)
{
    start(32);
    seg(0, 0, MLX5_INVALID_LKEY, 0);
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(0u, m_recv.num_segs);
    EXPECT_EQ(0u, m_recv.length);
}

TEST_F(test_engine_recv, malformed)
{
    start(32);
    seg(0, 10, 1, 0x1000);
    seg(1, 0x80000004, 1, 0x1000);
    EXPECT_EQ(MLX5SIM_CHK_RECV_WQE, decode());

    start(8);
    EXPECT_EQ(MLX5SIM_CHK_RECV_WQE, decode());

    start(16 * 65);
    for (unsigned i = 0; i < 65; ++i) {
        seg(i, 1, 1, i);
    }
    EXPECT_EQ(MLX5SIM_CHK_RECV_WQE, decode());
    seg(64, 0, MLX5_INVALID_LKEY, 0);
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(64u, m_recv.num_segs);
}

TEST_F(test_engine_recv, room_of_many_large_segments_does_not_wrap_around)
{
    start(64);
    for (unsigned i = 0; i < 4; ++i) {
        seg(i, 0x7fffffff, 1, 0);
    }
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    EXPECT_EQ(UINT32_MAX, m_recv.length);
}

/* What software prints beside the syndrome, on either side */
TEST_F(test_engine_cqe, errors_have_vendor_syndromes_of_their_own)
{
    std::set<unsigned> seen = {0, 0x93, 0x99}; /* None, and those of paging */
    mlx5sim_plan_t plan     = {};
    mlx5sim_qp_t req        = {};
    mlx5sim_wqe_t wqe       = {};

    req.type = MLX5SIM_QPT_RC;
    for (unsigned syndrome : {MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
                              MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
                              MLX5_CQE_SYNDROME_LOCAL_PROT_ERR,
                              MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
                              MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
                              MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
                              MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR,
                              MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR}) {
        mlx5sim_plan_fail_local(&req, &wqe, syndrome, &plan);
        EXPECT_TRUE(seen.insert(plan.req_cqe.vendor_err).second) << syndrome;

        unsigned vendor_err = plan.req_cqe.vendor_err;
        EXPECT_FALSE(plan.consume_recv);
        mlx5sim_plan_fail_recv(&req, &wqe, syndrome, syndrome, &plan);
        EXPECT_TRUE(plan.consume_recv);
        EXPECT_EQ(vendor_err, plan.req_cqe.vendor_err) << syndrome;
        EXPECT_EQ(vendor_err, plan.resp_cqe.vendor_err) << syndrome;
    }
}


/* Completions that become a block */
class test_engine_zip : public test_engine_cqe {
protected:
    enum {
        COMPRESSED = 3 << 2 /* cqe_format of op_own */
    };

    /* Put one behind the others */
    bool put()
    {
        bool is_put = mlx5sim_zip_put(&m_zip, m_count, &m_cqe);

        m_count += is_put;
        return is_put;
    }

    const struct mlx5_cqe64 *title()
    {
        mlx5sim_zip_title(&m_zip, m_count, 1, m_bytes);
        return (const struct mlx5_cqe64*)m_bytes;
    }

    mlx5sim_mini_cqe_t mini(unsigned i)
    {
        mlx5sim_mini_cqe_t result;

        memcpy(&result, m_zip.mini[i], sizeof(result));
        return result;
    }

    mlx5sim_zip_t m_zip   = {};
    unsigned      m_count = 0;
};

TEST_F(test_engine_zip, receives_follow_each_other_in_their_queue)
{
    m_cqe.wqe_counter = 0xfffe;
    for (unsigned i = 0; i < 4; ++i) {
        m_cqe.byte_cnt = 100 + i;
        EXPECT_TRUE(put());
        ++m_cqe.wqe_counter;
    }
    /* Their numbers are counted, not told */
    ++m_cqe.wqe_counter;
    EXPECT_FALSE(put());
    EXPECT_EQ(0xfffe, be16toh(title()->wqe_counter));
    for (unsigned i = 0; i < 4; ++i) {
        EXPECT_EQ(100 + i, be32toh(mini(i).byte_cnt));
    }
}

/* With indices they need not, and requests tell what they always do */
TEST_F(test_engine_zip, receives_tell_their_index)
{
    m_zip.has_index = 1;
    for (unsigned i : {7, 3, 0xfffe}) {
        m_cqe.wqe_counter = i;
        EXPECT_TRUE(put());
    }
    EXPECT_EQ(7, be16toh(title()->wqe_counter));
    EXPECT_EQ(7, be16toh(mini(0).rx.stride_index));
    EXPECT_EQ(3, be16toh(mini(1).rx.stride_index));
    EXPECT_EQ(0xfffe, be16toh(mini(2).rx.stride_index));
    EXPECT_EQ(0, mini(2).rx.checksum);

    m_count          = 0;
    m_cqe.opcode     = MLX5SIM_CQE_REQ;
    m_cqe.wqe_opcode = MLX5_OPCODE_RDMA_WRITE;
    EXPECT_TRUE(put());
    EXPECT_EQ(0xfffe, be16toh(mini(0).tx.wqe_counter));
    EXPECT_EQ(MLX5_OPCODE_RDMA_WRITE, mini(0).tx.s_wqe_opcode);
}

TEST_F(test_engine_zip, requests_tell_their_number_and_opcode)
{
    m_cqe.opcode = MLX5SIM_CQE_REQ;
    for (unsigned i : {7, 3, 500}) {
        m_cqe.wqe_counter = i;
        m_cqe.wqe_opcode  = (i == 3) ? MLX5_OPCODE_RDMA_READ :
                                       MLX5_OPCODE_RDMA_WRITE;
        EXPECT_TRUE(put());
    }
    EXPECT_EQ(3, be16toh(mini(1).tx.wqe_counter));
    EXPECT_EQ(MLX5_OPCODE_RDMA_READ, mini(1).tx.s_wqe_opcode);
    EXPECT_EQ(500, be16toh(mini(2).tx.wqe_counter));
    EXPECT_EQ(MLX5_OPCODE_RDMA_WRITE, mini(2).tx.s_wqe_opcode);
}

TEST_F(test_engine_zip, only_what_is_alike_is_in_a_block)
{
    ASSERT_TRUE(put());
    ++m_cqe.wqe_counter;

    std::vector<mlx5sim_cqe_t> others(6, m_cqe);

    others[0].qpn       ^= 1;
    others[1].uidx      ^= 1;
    others[2].solicited ^= 1;
    others[3].opcode     = MLX5SIM_CQE_REQ;
    others[4].opcode     = MLX5SIM_CQE_RESP_ERR;
    others[5].scattered  = 8;
    for (const mlx5sim_cqe_t &other : others) {
        m_cqe = other;
        EXPECT_FALSE(put()) << (&other - others.data());
    }
}

/* There is no place for it in a mini CQE, and nothing of an error */
TEST_F(test_engine_zip, neither_data_nor_errors_begin_a_block)
{
    m_cqe.scattered = 8;
    EXPECT_FALSE(put());
    m_cqe.scattered = 0;
    m_cqe.opcode    = MLX5SIM_CQE_REQ_ERR;
    EXPECT_FALSE(put());
    m_cqe.opcode = MLX5SIM_CQE_RESP_ERR;
    EXPECT_FALSE(put());
}

TEST_F(test_engine_zip, one_completion_is_no_block)
{
    ASSERT_TRUE(put());
    EXPECT_EQ(0, title()->op_own & COMPRESSED);
    EXPECT_EQ(1, title()->op_own & MLX5_CQE_OWNER_MASK);
    EXPECT_EQ(m_cqe.byte_cnt, be32toh(title()->byte_cnt));
    EXPECT_EQ(0u, mlx5sim_zip_arrays(m_count));

    ++m_cqe.wqe_counter;
    ASSERT_TRUE(put());
    EXPECT_EQ(COMPRESSED, title()->op_own & COMPRESSED);
    EXPECT_EQ(2u, be32toh(title()->byte_cnt));
    EXPECT_EQ(1u, mlx5sim_zip_arrays(m_count));
}

TEST_F(test_engine_zip, a_block_has_a_limit)
{
    while (put()) {
        ASSERT_LE(m_count, MLX5SIM_ZIP_MAX);
        ++m_cqe.wqe_counter;
    }
    EXPECT_EQ(MLX5SIM_ZIP_MAX, m_count);
}
