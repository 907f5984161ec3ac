/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/test_engine.h>

#include <algorithm>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Plans of RC and UC requests: what is transferred and what is reported, on
 * success and for each thing that can be wrong at either side. */

class test_engine_plan : public test_engine {
protected:
    enum {
        SIGNALED = MLX5_WQE_CTRL_CQ_UPDATE
    };

    void post_send(uint8_t opcode = MLX5_OPCODE_SEND, uint32_t imm_be = 0,
                   uint32_t length = 100, uint32_t lkey = LKEY)
    {
        m_sq.ctrl(0, opcode, REQ_QPN, SIGNALED | MLX5_WQE_CTRL_SOLICITED, 0,
                  imm_be).data(req_addr(), length, lkey).finish();
    }

    void post_write(uint32_t rkey = RKEY, uint64_t offset = 64,
                    uint32_t length = 100)
    {
        m_sq.ctrl(0, MLX5_OPCODE_RDMA_WRITE, REQ_QPN, SIGNALED)
            .raddr(resp_addr(offset), rkey).data(req_addr(), length, LKEY)
            .finish();
    }

    void post_read(uint32_t rkey = RKEY, uint32_t lkey = LKEY)
    {
        m_sq.ctrl(0, MLX5_OPCODE_RDMA_READ, REQ_QPN, SIGNALED)
            .raddr(resp_addr(64), rkey).data(req_addr(), 100, lkey).finish();
    }

    void post_fadd(uint32_t rkey = RKEY, uint64_t offset = 64,
                   uint32_t lkey = LKEY)
    {
        m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_FA, REQ_QPN, SIGNALED)
            .raddr(resp_addr(offset), rkey).words64(5, 0)
            .data(req_addr(8), 8, lkey).finish();
    }

    void expect_resp_cqe(unsigned opcode, uint32_t byte_cnt)
    {
        EXPECT_TRUE(m_plan.consume_recv);
        EXPECT_FALSE(m_plan.resp_error);
        EXPECT_EQ(0u, m_plan.resp_event);
        ASSERT_TRUE(m_plan.has_resp_cqe);
        EXPECT_EQ(opcode, m_plan.resp_cqe.opcode);
        EXPECT_EQ(0u, m_plan.resp_cqe.syndrome);
        EXPECT_EQ(byte_cnt, m_plan.resp_cqe.byte_cnt);
        EXPECT_EQ(77u, m_plan.resp_cqe.wqe_counter);
        EXPECT_EQ(uint32_t(RESP_QPN), m_plan.resp_cqe.qpn);
        EXPECT_EQ(0x52u, m_plan.resp_cqe.uidx);
        EXPECT_EQ(3u, m_plan.resp_cqe.slid);
        EXPECT_EQ(m_req.sl, m_plan.resp_cqe.sl);
    }

    /** Every opcode that an RC queue pair has, valid, in turn. */
    template<typename F> void for_each_rc_request(F f)
    {
        for (uint8_t opcode : {MLX5_OPCODE_SEND, MLX5_OPCODE_SEND_IMM,
                               MLX5_OPCODE_SEND_INVAL}) {
            post_send(opcode, htobe32(RKEY_MW_2));
            f();
        }
        post_write();
        f();
        m_sq.at(3) = MLX5_OPCODE_RDMA_WRITE_IMM;
        f();
        post_read();
        f();
        post_fadd();
        f();
        m_sq.at(3) = MLX5_OPCODE_ATOMIC_CS;
        f();
        for (uint8_t opcode : {MLX5_OPCODE_ATOMIC_MASKED_CS,
                               MLX5_OPCODE_ATOMIC_MASKED_FA}) {
            m_sq.ctrl(0, opcode, REQ_QPN, 0, 8).raddr(resp_addr(64), RKEY)
                .words32(1, 2, 3, 4).data(req_addr(8), 4, LKEY).finish();
            f();
        }
    }
};


TEST_F(test_engine_plan, numbers_are_those_of_verbs)
{
    EXPECT_EQ(int(IBV_EVENT_QP_FATAL), int(MLX5SIM_EVENT_QP_FATAL));
    EXPECT_EQ(int(IBV_EVENT_QP_REQ_ERR), int(MLX5SIM_EVENT_QP_REQ_ERR));
    EXPECT_EQ(int(IBV_EVENT_QP_ACCESS_ERR), int(MLX5SIM_EVENT_QP_ACCESS_ERR));
    EXPECT_EQ(int(IBV_ACCESS_LOCAL_WRITE), int(MLX5SIM_ACCESS_LOCAL_WRITE));
    EXPECT_EQ(int(IBV_ACCESS_REMOTE_WRITE), int(MLX5SIM_ACCESS_REMOTE_WRITE));
    EXPECT_EQ(int(IBV_ACCESS_REMOTE_READ), int(MLX5SIM_ACCESS_REMOTE_READ));
    EXPECT_EQ(int(IBV_ACCESS_REMOTE_ATOMIC), int(MLX5SIM_ACCESS_REMOTE_ATOMIC));
    EXPECT_EQ(int(IBV_MW_TYPE_2), int(MLX5SIM_WINDOW_TYPE_2));
    EXPECT_EQ(int(IBV_QPT_RC), int(MLX5SIM_QPT_RC));
    EXPECT_EQ(int(IBV_QPT_UC), int(MLX5SIM_QPT_UC));
    EXPECT_EQ(int(IBV_QPT_UD), int(MLX5SIM_QPT_UD));
    EXPECT_EQ(int(IBV_QPS_SQE), int(MLX5SIM_QPS_SQE));
    EXPECT_EQ(int(IBV_QPS_ERR), int(MLX5SIM_QPS_ERR));
}


/*
 * Success
 */

TEST_F(test_engine_plan, nop_completes_without_a_peer)
{
    m_sq.ctrl(0, MLX5_OPCODE_NOP, REQ_QPN, SIGNALED).finish();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    mlx5sim_plan_make(&m_req, &m_wqe, NULL, &m_env, &m_plan);
    expect_lost();
    EXPECT_TRUE(m_plan.has_req_cqe);
}

TEST_F(test_engine_plan, send_moves_bytes_and_completes_both_sides)
{
    m_req.sl = 5;
    add_recv(200, 4096);
    post_send();
    plan();
    expect_req_success();
    EXPECT_TRUE(m_plan.has_req_cqe);
    expect_resp_cqe(MLX5SIM_CQE_RESP_SEND, 100);
    EXPECT_TRUE(m_plan.resp_cqe.solicited);
    EXPECT_EQ(MLX5SIM_SIDE_REQUESTER, m_plan.src_side);
    EXPECT_EQ(MLX5SIM_SIDE_RESPONDER, m_plan.dst_side);
    execute();
    EXPECT_EQ(0, memcmp(&m_req_buf[0], &m_resp_buf[200], 100));
    EXPECT_EQ(uint8_t(300 * 13 + 5), m_resp_buf[300]);
}

TEST_F(test_engine_plan, send_gathers_and_scatters_across_different_borders)
{
    add_recv(1000, 5);
    add_recv(2000, 20);
    add_recv(3000, 100);
    add_recv(4000, 100, 0xbad); /* not reached, so not looked at */
    m_sq.ctrl(15, MLX5_OPCODE_SEND, REQ_QPN).data(req_addr(10), 7, LKEY)
        .inl("abcdefghijklmnopqrstuvwxyz", 26).data(req_addr(500), 9, LKEY_RO)
        .finish();
    plan(15);
    EXPECT_EQ(42u, m_plan.length);
    EXPECT_EQ(3u, m_plan.num_dst);
    execute();
    std::vector<uint8_t> expected(&m_req_buf[10], &m_req_buf[17]);
    for (char c = 'a'; c <= 'z'; ++c) {
        expected.push_back(c);
    }
    expected.insert(expected.end(), &m_req_buf[500], &m_req_buf[509]);
    EXPECT_EQ(0, memcmp(&expected[0], &m_resp_buf[1000], 5));
    EXPECT_EQ(0, memcmp(&expected[5], &m_resp_buf[2000], 20));
    EXPECT_EQ(0, memcmp(&expected[25], &m_resp_buf[3000], 17));
}

TEST_F(test_engine_plan, send_with_invalidate)
{
    add_recv(0, 4096);
    post_send(MLX5_OPCODE_SEND_INVAL, htobe32(RKEY_MW_2));
    plan();
    expect_resp_cqe(MLX5SIM_CQE_RESP_SEND_INV, 100);
    EXPECT_TRUE(m_plan.invalidate);
    EXPECT_EQ(uint32_t(RKEY_MW_2), m_plan.inv_rkey);
    EXPECT_EQ(uint32_t(RKEY_MW_2), m_plan.resp_cqe.imm);
}

TEST_F(test_engine_plan, receive_from_shared_queue_reports_its_number)
{
    add_recv(0, 4096);
    m_resp.srqn = 0x99;
    post_send();
    plan();
    EXPECT_EQ(0x99u, m_plan.resp_cqe.srqn);

    /* an SRQ may be in another protection domain than the QP */
    m_resp.srq_pdn = 55;
    replan();
    expect_resp_cqe_error(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
    m_mrs[std::make_pair(int(MLX5SIM_SIDE_RESPONDER), uint32_t(RKEY))].pdn = 55;
    replan();
    expect_resp_cqe(MLX5SIM_CQE_RESP_SEND, 100);

    /* without an SRQ that of the QP counts */
    m_resp.srqn = 0;
    replan();
    expect_resp_cqe_error(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

TEST_F(test_engine_plan, write_of_all_of_a_region_and_not_a_byte_more)
{
    post_write(RKEY, 0, BUF_SIZE);
    plan();
    expect_req_success();
    execute();
    EXPECT_EQ(m_req_buf, m_resp_buf);
}

TEST_F(test_engine_plan, write_with_immediate_consumes_a_receive_unread)
{
    add_recv(0, 0, 0xbad);
    post_write();
    m_sq.at(3) = MLX5_OPCODE_RDMA_WRITE_IMM;
    m_sq.be32(12, 0x01020304);
    plan();
    expect_req_success();
    expect_resp_cqe(MLX5SIM_CQE_RESP_WR_IMM, 100);
    EXPECT_EQ(htobe32(0x01020304), m_plan.resp_cqe.imm);
    EXPECT_EQ(resp_va(64), m_plan.dst[0].addr);
}

TEST_F(test_engine_plan, zero_length_access_needs_no_key)
{
    for (uint8_t opcode : {MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_READ}) {
        m_sq.ctrl(0, opcode, REQ_QPN, SIGNALED).raddr(0xdead, 0xbad).finish();
        plan();
        expect_lost();
        EXPECT_TRUE(m_plan.has_req_cqe);
    }
}

TEST_F(test_engine_plan, read_moves_bytes_the_other_way)
{
    post_read();
    plan();
    expect_req_success();
    expect_resp_untouched();
    EXPECT_EQ(100u, m_plan.req_cqe.byte_cnt);
    EXPECT_EQ(MLX5SIM_SIDE_RESPONDER, m_plan.src_side);
    EXPECT_EQ(MLX5SIM_SIDE_REQUESTER, m_plan.dst_side);
    execute();
    EXPECT_EQ(0, memcmp(&m_req_buf[0], &m_resp_buf[64], 100));
}

TEST_F(test_engine_plan, atomic_of_4_bytes_leaves_its_neighbours_alone)
{
    std::vector<uint8_t> resp_before(m_resp_buf), req_before(m_req_buf);
    uint32_t swapped = 0xaabbccdd;

    m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_CS, REQ_QPN, 0, 8)
        .raddr(resp_addr(68), RKEY).words32(swapped, 0, 0xffffffff, 0)
        .data(req_addr(12), 4, LKEY).finish();
    plan();
    execute();
    /* the old value comes back in big endian */
    std::reverse_copy(&resp_before[68], &resp_before[72], &req_before[12]);
    memcpy(&resp_before[68], &swapped, 4);
    EXPECT_EQ(resp_before, m_resp_buf);
    EXPECT_EQ(req_before, m_req_buf);
}


/*
 * Keys with a layout: their pieces are looked up when they are moved
 */

TEST_F(test_engine_plan, layouts_stay_in_a_plan)
{
    post_write(RKEY_LIST);
    plan();
    ASSERT_EQ(1u, m_plan.num_dst);
    EXPECT_TRUE(m_plan.dst[0].has_layout);
    EXPECT_EQ(resp_addr(64), m_plan.dst[0].addr);
    EXPECT_EQ(uint32_t(RKEY_LIST), m_plan.dst[0].lkey);
    EXPECT_EQ(uint32_t(MLX5SIM_ACCESS_REMOTE_WRITE), m_layout_access);
    ASSERT_EQ(1u, m_plan.num_src);
    EXPECT_FALSE(m_plan.src[0].has_layout);

    mlx5sim_plan_cut(&m_plan, 30, 50);
    EXPECT_TRUE(m_plan.dst[0].has_layout);
    EXPECT_EQ(resp_addr(94), m_plan.dst[0].addr);
    EXPECT_EQ(50u, m_plan.dst[0].length);

    post_read(RKEY, LKEY_LIST);
    plan();
    ASSERT_EQ(1u, m_plan.num_dst);
    EXPECT_TRUE(m_plan.dst[0].has_layout);
    EXPECT_EQ(req_addr(), m_plan.dst[0].addr);
    EXPECT_EQ(uint32_t(MLX5SIM_ACCESS_LOCAL_WRITE), m_layout_access);

    add_recv(0, 60, RKEY);
    add_recv(100, 60, RKEY_LIST);
    post_send(MLX5_OPCODE_SEND, 0, 100, LKEY_LIST);
    plan();
    EXPECT_TRUE(m_plan.src[0].has_layout);
    ASSERT_EQ(2u, m_plan.num_dst);
    EXPECT_FALSE(m_plan.dst[0].has_layout);
    EXPECT_TRUE(m_plan.dst[1].has_layout);
    EXPECT_EQ(resp_addr(100), m_plan.dst[1].addr);
}

TEST_F(test_engine_plan, layouts_that_lead_nowhere_are_errors)
{
    m_hole = 163;
    post_write(RKEY_LIST);
    plan();
    ASSERT_TRUE(m_plan.req_error);
    EXPECT_EQ(unsigned(MLX5SIM_SYNDROME_REMOTE_ACCESS),
              m_plan.req_cqe.syndrome);
    m_hole = 164;
    replan();
    EXPECT_FALSE(m_plan.req_error);

    m_hole = 99;
    add_recv(0, 100);
    post_send(MLX5_OPCODE_SEND, 0, 100, LKEY_LIST);
    plan();
    ASSERT_TRUE(m_plan.req_error);
    EXPECT_EQ(unsigned(MLX5SIM_SYNDROME_LOCAL_PROT), m_plan.req_cqe.syndrome);
}

TEST_F(test_engine_plan, atomics_on_layouts_are_in_one_piece)
{
    post_fadd(RKEY_LIST, 56);
    plan();
    EXPECT_FALSE(m_plan.req_error);
    EXPECT_EQ(resp_va(56), m_plan.atomic_addr);
    EXPECT_EQ(uint32_t(MLX5SIM_ACCESS_REMOTE_ATOMIC), m_layout_access);

    m_piece = 60;
    replan();
    ASSERT_TRUE(m_plan.req_error);
    EXPECT_EQ(unsigned(MLX5SIM_SYNDROME_REMOTE_ACCESS),
              m_plan.req_cqe.syndrome);
    EXPECT_EQ(0u, m_plan.atomic_size);
}


/*
 * A request, and how it ends
 */

enum end_t {
    DONE,
    LOCAL,            /* the requester finds it */
    NO_PLACE,         /* when the answer comes */
    LOCAL_OP,
    INVALID,          /* the responder refuses it */
    ACCESS,
    BROKEN,
    RECV_SHORT,       /* the receive is used up, with an error */
    RECV_PROT,
    RECV_ACCESS,
    NO_RECV,          /* again, later */
    NO_ANSWER,
    LOST
};

class plan_of;

struct plan_row {
    const char *name;
    end_t      end;
    void       (*post)(plan_of &t);
};

void PrintTo(const plan_row &row, std::ostream *os)
{
    *os << row.name;
}

class plan_of : public test_engine_plan,
                public testing::WithParamInterface<plan_row> {
public:
    static const plan_row ROWS[];

protected:
    plan_of &uc(uint32_t dest_qpn = REQ_QPN, unsigned state = MLX5SIM_QPS_RTS)
    {
        set_type(MLX5SIM_QPT_UC);
        m_resp.dest_qpn = dest_qpn;
        m_resp.state    = state;
        return *this;
    }

    plan_of &recv(uint64_t offset, uint32_t length, int status = 1)
    {
        add_recv(offset, length);
        m_recv_status = status;
        return *this;
    }

    void post_send_of(uint32_t lkey)
    {
        add_recv(0, 4096);
        post_send(MLX5_OPCODE_SEND, 0, 100, lkey);
    }

    void post_send_inval(uint32_t rkey)
    {
        post_send(MLX5_OPCODE_SEND_INVAL, htobe32(rkey));
    }

    void post_write_of_two(uint32_t lkey)
    {
        m_sq.ctrl(0, MLX5_OPCODE_RDMA_WRITE, REQ_QPN).raddr(resp_addr(), RKEY)
            .data(req_addr(), 1, LKEY).data(req_addr(), 1, lkey).finish();
    }

    void post_range(uint64_t offset, uint32_t length)
    {
        add_recv(0, 4096);
        m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
            .data(req_addr(offset), length, LKEY).finish();
    }

    void post_write_imm(uint32_t rkey = RKEY, uint32_t length = 100)
    {
        post_write(rkey, 64, length);
        m_sq.at(3) = MLX5_OPCODE_RDMA_WRITE_IMM;
    }

    void post_fadd_4(uint64_t offset)
    {
        m_sq.ctrl(0, MLX5_OPCODE_ATOMIC_MASKED_FA, REQ_QPN, 0, 8)
            .raddr(resp_addr(offset), RKEY).words32(1, 0, 0, 0)
            .data(req_addr(), 4, LKEY).finish();
    }

    void post_send_to(uint64_t offset, uint32_t length, uint32_t lkey = RKEY)
    {
        add_recv(offset, length, lkey);
        post_send();
    }

    void expect_used_up(unsigned syndrome, unsigned resp_syndrome)
    {
        expect_req_error(syndrome);
        expect_resp_cqe_error(resp_syndrome);
        EXPECT_EQ(0u, m_plan.resp_event); /* the CQE tells */
    }

    void expect_no_place()
    {
        bool is_atomic = m_wqe.opcode != MLX5_OPCODE_RDMA_READ;

        EXPECT_TRUE(m_plan.req_error);
        EXPECT_TRUE(m_plan.is_answered);
        EXPECT_EQ(unsigned(MLX5SIM_SYNDROME_LOCAL_PROT),
                  m_plan.req_cqe.syndrome);
        EXPECT_EQ(is_atomic ? m_wqe.atomic_size : 0u, m_plan.atomic_size);
        EXPECT_EQ(is_atomic ? 0u : 100u, m_plan.length);
        EXPECT_EQ(0u, m_plan.num_dst);
        expect_resp_untouched();
    }

    void expect_again(unsigned verdict)
    {
        EXPECT_EQ(verdict, unsigned(m_plan.verdict));
        expect_no_effect();
        expect_resp_untouched();
        EXPECT_FALSE(m_plan.has_req_cqe);
        EXPECT_FALSE(m_plan.req_error);
    }

    void expect_end(end_t end)
    {
        switch (end) {
        case DONE:
            return expect_req_success();
        case LOCAL:
            return expect_local_error(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
        case NO_PLACE:
            return expect_no_place();
        case LOCAL_OP:
            return expect_local_error(MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
        case INVALID:
            return expect_nak(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
                              IBV_EVENT_QP_REQ_ERR);
        case ACCESS:
            return expect_nak(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
                              IBV_EVENT_QP_ACCESS_ERR);
        case BROKEN:
            return expect_nak(MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
                              IBV_EVENT_QP_FATAL);
        case RECV_SHORT:
            return expect_used_up(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
                                  MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
        case RECV_PROT:
            return expect_used_up(MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
                                  MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
        case RECV_ACCESS:
            return expect_used_up(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
                                  MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR);
        case NO_RECV:
            return expect_again(MLX5SIM_VERDICT_RNR);
        case NO_ANSWER:
            return expect_again(MLX5SIM_VERDICT_RETRY);
        case LOST:
            return expect_lost();
        }
    }
};

#define READ      MLX5SIM_ACCESS_REMOTE_READ
#define WRITE     MLX5SIM_ACCESS_REMOTE_WRITE
#define ATOMIC    MLX5SIM_ACCESS_REMOTE_ATOMIC
#define POST(...) [](plan_of &t) { t.__VA_ARGS__; }

const plan_row plan_of::ROWS[] = {
    /* the requester finds it */
    {"lkey_unknown", LOCAL, POST(post_send_of(0xbad))},
    {"lkey_foreign", LOCAL, POST(post_send_of(LKEY_PD))},
    {"range_one_byte_before", LOCAL, POST(post_range(-1, 1))},
    {"range_some_from_before", LOCAL, POST(post_range(-1, 100))},
    {"range_one_byte_behind", LOCAL, POST(post_range(BUF_SIZE, 1))},
    {"range_some_to_behind", LOCAL, POST(post_range(BUF_SIZE - 99, 100))},
    {"range_all_and_one_byte", LOCAL, POST(post_range(1, BUF_SIZE))},
    {"range_end_of_all_addresses", LOCAL,
     POST(post_range(-1 - t.req_addr(), 2))},
    {"range_of_2_gigabytes", LOCAL, POST(post_range(0, 0))},
    {"range_null", LOCAL, POST(post_range(-t.req_addr(), 1))},
    {"range_up_to_the_end", DONE, POST(post_range(BUF_SIZE - 100, 100))},
    {"lkey_of_second_segment", LOCAL, POST(post_write_of_two(0xbad))},
    {"read_into_read_only", NO_PLACE, POST(post_read(RKEY, LKEY_RO))},
    {"read_by_lkey_unknown", NO_PLACE, POST(post_read(RKEY, 0xbad))},
    {"atomic_into_read_only", NO_PLACE, POST(post_fadd(RKEY, 64, LKEY_RO))},
    {"atomic_by_lkey_unknown", NO_PLACE, POST(post_fadd(RKEY, 64, 0xbad))},
    {"read_without_initiator_depth", LOCAL_OP,
     POST(m_req.max_rd_atomic = 0; t.post_read())},
    {"atomic_without_initiator_depth", LOCAL_OP,
     POST(m_req.max_rd_atomic = 0; t.post_fadd())},
    {"write_without_initiator_depth", DONE,
     POST(m_req.max_rd_atomic = 0; t.post_write())},

    /* no answer, or none now */
    {"full_partition_member", DONE, POST(m_req.pkey = 0x7fff; t.post_write())},
    {"limited_partition_member", NO_ANSWER,
     POST(m_req.pkey = t.m_resp.pkey = 0x7fff; t.post_write())},
    {"send_without_receive", NO_RECV, POST(post_send())},
    {"write_imm_without_receive", NO_RECV, POST(post_write_imm())},

    /* the receive is not as it should be */
    {"receive_too_small", RECV_SHORT, POST(recv(0, 50).post_send_to(50, 49))},
    {"receive_just_large_enough", DONE,
     POST(recv(0, 50).recv(50, 49).post_send_to(99, 1))},
    {"receive_with_unknown_key", RECV_PROT, POST(post_send_to(0, 4096, 0xbad))},
    {"receive_with_foreign_key", RECV_PROT,
     POST(post_send_to(0, 4096, RKEY_PD))},
    {"receive_into_read_only", RECV_PROT,
     POST(post_send_to(0, 4096, RKEY_READ))},
    {"receive_needs_no_remote_access", DONE,
     POST(post_send_to(0, 4096, RKEY_LOCAL))},
    {"receive_beyond_its_region", RECV_PROT,
     POST(post_send_to(BUF_SIZE - 99, 4096))},
    {"receive_claims_too_much", RECV_PROT,
     POST(recv(0, 99).m_recv.length = 4096; t.post_send())},
    {"receive_queue_is_malformed", BROKEN, POST(recv(0, 99, -1).post_send())},

    /* the responder refuses it */
    {"write_by_rkey_unknown", ACCESS, POST(post_write(0xbad))},
    {"write_imm_by_rkey_unknown", RECV_ACCESS,
     POST(recv(0, 0).post_write_imm(0xbad))},
    {"write_imm_of_packets_by_rkey_unknown", ACCESS,
     POST(m_req.path_mtu = t.m_resp.path_mtu = 0; t.post_write_imm(0xbad, 4097))
    },
    {"write_imm_by_rkey_unknown_without_receive", NO_RECV,
     POST(post_write_imm(0xbad))},
    {"write_imm_not_allowed", INVALID,
     POST(m_resp.access = READ; t.recv(0, 0).post_write_imm())},
    {"atomic_by_both_keys_unknown", ACCESS, POST(post_fadd(0xbad, 64, 0xbad))},
    {"atomic_at_65_by_lkey_unknown", INVALID, POST(post_fadd(RKEY, 65, 0xbad))},
    {"read_by_both_keys_unknown", ACCESS, POST(post_read(0xbad, 0xbad))},
    {"atomic_by_rkey_unknown", ACCESS, POST(post_fadd(0xbad))},
    {"read_by_rkey_unknown", ACCESS, POST(post_read(0xbad))},
    {"write_by_rkey_foreign", ACCESS, POST(post_write(RKEY_PD))},
    {"write_imm_by_rkey_foreign", RECV_ACCESS,
     POST(recv(0, 0).post_write_imm(RKEY_PD))},
    {"atomic_by_rkey_foreign", ACCESS, POST(post_fadd(RKEY_PD))},
    {"read_by_rkey_foreign", ACCESS, POST(post_read(RKEY_PD))},
    {"write_by_rkey_local", ACCESS, POST(post_write(RKEY_LOCAL))},
    {"write_imm_by_rkey_local", RECV_ACCESS,
     POST(recv(0, 0).post_write_imm(RKEY_LOCAL))},
    {"atomic_by_rkey_local", ACCESS, POST(post_fadd(RKEY_LOCAL))},
    {"read_by_rkey_local", ACCESS, POST(post_read(RKEY_LOCAL))},
    {"write_by_rkey_read_only", ACCESS, POST(post_write(RKEY_READ))},
    {"write_imm_by_rkey_read_only", RECV_ACCESS,
     POST(recv(0, 0).post_write_imm(RKEY_READ))},
    {"atomic_by_rkey_read_only", ACCESS, POST(post_fadd(RKEY_READ))},
    {"read_by_rkey_read_only", DONE, POST(post_read(RKEY_READ))},
    {"write_out_of_region_before", ACCESS, POST(post_write(RKEY, -1))},
    {"write_out_of_region_end", ACCESS, POST(post_write(RKEY, BUF_SIZE - 99))},
    {"write_out_of_region_behind", ACCESS, POST(post_write(RKEY, BUF_SIZE))},
    {"write_out_of_region_far", ACCESS,
     POST(post_write(RKEY, uint64_t(1) << 63))},
    {"atomic_behind_the_region", ACCESS, POST(post_fadd(RKEY, BUF_SIZE))},
    {"atomic_up_to_the_end", DONE, POST(post_fadd(RKEY, BUF_SIZE - 8))},
    {"only_reads_allowed_write", INVALID,
     POST(m_resp.access = READ; t.post_write())},
    {"only_reads_allowed_atomic", INVALID,
     POST(m_resp.access = READ; t.post_fadd())},
    {"only_reads_allowed_read", DONE,
     POST(m_resp.access = READ; t.post_read())},
    {"all_but_reads_allowed_read", INVALID,
     POST(m_resp.access = WRITE | ATOMIC; t.post_read())},
    {"read_without_responder_depth", INVALID,
     POST(m_resp.max_dest_rd_atomic = 0; t.post_read())},
    {"atomic_without_responder_depth", INVALID,
     POST(m_resp.max_dest_rd_atomic = 0; t.post_fadd())},
    {"write_without_responder_depth", DONE,
     POST(m_resp.max_dest_rd_atomic = 0; t.post_write())},
    {"atomic_of_8_bytes_at_65", INVALID, POST(post_fadd(RKEY, 65))},
    {"atomic_of_8_bytes_at_66", INVALID, POST(post_fadd(RKEY, 66))},
    {"atomic_of_8_bytes_at_68", INVALID, POST(post_fadd(RKEY, 68))},
    {"atomic_of_8_bytes_at_71", INVALID, POST(post_fadd(RKEY, 71))},
    {"atomic_of_4_bytes_at_65", INVALID, POST(post_fadd_4(65))},
    {"atomic_of_4_bytes_at_66", INVALID, POST(post_fadd_4(66))},
    {"atomic_of_4_bytes_at_67", INVALID, POST(post_fadd_4(67))},
    {"atomic_of_4_bytes_at_68", DONE, POST(post_fadd_4(68))},
    {"unknown_key_to_invalidate", ACCESS, POST(post_send_inval(0xbad))},
    {"foreign_key_to_invalidate", ACCESS, POST(post_send_inval(RKEY_MW_PD))},
    {"key_of_a_region_to_invalidate", ACCESS, POST(post_send_inval(RKEY))},
    {"window_of_type_1_to_invalidate", ACCESS,
     POST(post_send_inval(RKEY_MW_1))},
    {"window_of_type_2_to_invalidate", DONE, POST(recv(0, 4096).
     post_send_inval(RKEY_MW_2))},

    /* unreliable: what the responder does not like is dropped */
    {"uc_send_no_receive", LOST, POST(uc().post_send())},
    {"uc_send_to_an_error_state", LOST,
     POST(uc(REQ_QPN, MLX5SIM_QPS_ERR).post_send_to(0, 4096))},
    {"uc_send_to_another_peer", LOST, POST(uc(1).post_send_to(0, 4096))},
    {"uc_write_unknown_key", LOST, POST(uc().post_write(0xbad))},
    {"uc_write_not_allowed", LOST,
     POST(uc().m_resp.access = 0; t.post_write())},
    {"uc_write_allowed", DONE,
     POST(uc().m_resp.access = WRITE; t.post_write())},
    {"uc_send_unknown_lkey", LOCAL, POST(uc().post_send_of(0xbad))},
};

TEST_P(plan_of, a_request_ends_as_it_should)
{
    end_t end = GetParam().end;

    if (end == ACCESS) {
        add_recv(0, 4096); /* and it stays */
    }
    GetParam().post(*this);
    plan();
    expect_end(end);
    if ((end == ACCESS) && (m_wqe.opcode != MLX5_OPCODE_SEND_INVAL)) {
        EXPECT_EQ(0u, m_peeks);
    }
}

INSTANTIATE_ROWS(plan_of, plan_of::ROWS);


/*
 * Errors the requester finds
 */

TEST_F(test_engine_plan, opcode_is_checked_even_if_decoding_was_not)
{
    post_read();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    set_type(MLX5SIM_QPT_UC);
    replan();
    expect_local_error(MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    m_wqe.opcode = 0xee;
    replan();
    expect_local_error(MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

TEST_F(test_engine_plan, message_length_is_checked_even_if_decoding_was_not)
{
    post_send();
    ASSERT_EQ(MLX5SIM_CHK_OK, decode());
    m_wqe.length = (1u << 31) + 1;
    replan();
    expect_local_error(MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
}

TEST_F(test_engine_plan, rejected_wqe_completes_with_a_local_error)
{
    post_send();
    decode();
    for (int i = MLX5SIM_CHK_OK + 1; i < MLX5SIM_CHK_LAST; ++i) {
        mlx5sim_chk_t chk = static_cast<mlx5sim_chk_t>(i);
        memset(&m_plan, 0xa5, sizeof(m_plan));
        mlx5sim_plan_bad_wqe(&m_req, &m_wqe, chk, &m_plan);
        expect_local_error(((chk == MLX5SIM_CHK_WQE_LENGTH) ||
                            (chk == MLX5SIM_CHK_WQE_UD_LENGTH)) ?
                           MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR :
                           MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    }
}


/*
 * No answer
 */

TEST_F(test_engine_plan, missing_peer_is_gone)
{
    for_each_rc_request([this]() {
        ASSERT_EQ(MLX5SIM_CHK_OK, decode());
        memset(&m_plan, 0xa5, sizeof(m_plan));
        mlx5sim_plan_make(&m_req, &m_wqe, NULL, &m_env, &m_plan);
        EXPECT_EQ(MLX5SIM_VERDICT_GONE, m_plan.verdict);
        EXPECT_FALSE(m_plan.has_req_cqe);
        expect_no_effect();
    });
}

TEST_F(test_engine_plan, silent_peer_is_tried_again)
{
    const struct {
        const char *fault;
        unsigned   state, dest_qpn, type, pkey, psn;
    } rows[] = {
        {"reset", MLX5SIM_QPS_RESET, REQ_QPN, MLX5SIM_QPT_RC, 0xffff, 0},
        {"init", MLX5SIM_QPS_INIT, REQ_QPN, MLX5SIM_QPT_RC, 0xffff, 0},
        {"error", MLX5SIM_QPS_ERR, REQ_QPN, MLX5SIM_QPT_RC, 0xffff, 0},
        {"peer", MLX5SIM_QPS_RTS, REQ_QPN + 1, MLX5SIM_QPT_RC, 0xffff, 0},
        {"type", MLX5SIM_QPS_RTS, REQ_QPN, MLX5SIM_QPT_UC, 0xffff, 0},
        {"pkey", MLX5SIM_QPS_RTS, REQ_QPN, MLX5SIM_QPT_RC, 0x8001, 0},
        {"psn", MLX5SIM_QPS_RTS, REQ_QPN, MLX5SIM_QPT_RC, 0xffff, 1}
    };

    add_recv(0, 4096);
    for (const auto &row : rows) {
        SCOPED_TRACE(row.fault);
        m_resp.state    = row.state;
        m_resp.dest_qpn = row.dest_qpn;
        m_resp.type     = row.type;
        m_resp.pkey     = row.pkey;
        m_resp.epsn     = m_req.psn + row.psn;
        for_each_rc_request([this]() {
            memset(&m_plan, 0xa5, sizeof(m_plan));
            plan();
            EXPECT_EQ(MLX5SIM_VERDICT_RETRY, m_plan.verdict);
            EXPECT_EQ(0u, m_peeks);
            EXPECT_FALSE(m_plan.has_req_cqe);
            EXPECT_FALSE(m_plan.req_error);
            expect_no_effect();
            expect_resp_untouched();
        });
    }
}

/* Each packet but the last has the size of the path MTU */
TEST_F(test_engine_plan, sides_with_another_mtu_understand_one_packet)
{
    m_resp.path_mtu = 2; /* 512, half of the requester's */
    add_recv(0, 4096);
    post_send(MLX5_OPCODE_SEND, 0, 512);
    plan();
    expect_req_success();
    post_write(RKEY, 64, 512);
    plan();
    expect_req_success();

    post_send(MLX5_OPCODE_SEND, 0, 513);
    plan();
    expect_nak(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    post_write(RKEY, 64, 513);
    plan();
    expect_nak(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    m_sq.ctrl(0, MLX5_OPCODE_RDMA_READ, REQ_QPN, SIGNALED)
        .raddr(resp_addr(64), RKEY).data(req_addr(), 513, LKEY).finish();
    plan();
    expect_local_error(MLX5_CQE_SYNDROME_BAD_RESP_ERR);
}

TEST_F(test_engine_plan, retries_exceeded)
{
    post_send();
    plan();
    mlx5sim_plan_retry_exceeded(&m_req, &m_wqe, 1, &m_plan);
    expect_local_error(MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
    mlx5sim_plan_retry_exceeded(&m_req, &m_wqe, 0, &m_plan);
    expect_local_error(MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}


/*
 * Memory that is gone while the executor copies
 */


TEST_F(test_engine_plan, fault_of_responder_memory)
{
    add_recv(0, 4096);
    for_each_rc_request([this]() {
        plan();
        mlx5sim_plan_fault(&m_req, &m_wqe, &m_resp, MLX5SIM_SIDE_RESPONDER,
                           &m_plan);
        switch (m_wqe.opcode) {
        case MLX5_OPCODE_SEND:
        case MLX5_OPCODE_SEND_IMM:
        case MLX5_OPCODE_SEND_INVAL:
            expect_req_error(MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
            expect_resp_cqe_error(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
            break;
        case MLX5_OPCODE_RDMA_WRITE_IMM:
            expect_req_error(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
            expect_resp_cqe_error(MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR);
            break;
        default:
            expect_nak(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
                       IBV_EVENT_QP_ACCESS_ERR);
            break;
        }
    });
}

/*
 * Unreliable connection: what the responder does not like is dropped
 */

class test_engine_plan_uc : public test_engine_plan {
protected:
    test_engine_plan_uc()
    {
        set_type(MLX5SIM_QPT_UC);
    }
};

TEST_F(test_engine_plan_uc, any_message_may_be_the_next_one)
{
    m_resp.epsn = m_req.psn + 5;
    post_write();
    plan();
    expect_req_success();
    EXPECT_EQ(100u, m_plan.length);
}

TEST_F(test_engine_plan_uc, request_to_nobody_or_to_memory_gone_is_lost)
{
    post_send();
    plan();
    mlx5sim_plan_make(&m_req, &m_wqe, NULL, &m_env, &m_plan);
    expect_lost();

    post_write();
    plan();
    expect_req_success();
    EXPECT_EQ(100u, m_plan.length);
    mlx5sim_plan_fault(&m_req, &m_wqe, &m_resp, MLX5SIM_SIDE_RESPONDER,
                       &m_plan);
    expect_lost();
}

