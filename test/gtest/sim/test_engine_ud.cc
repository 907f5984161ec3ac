/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/test_engine.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Datagrams: the 40 bytes ahead of the payload, and all the ways to get lost */

class test_engine_ud : public test_engine {
protected:
    test_engine_ud()
    {
        static const uint8_t sgid[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0,
                                         1, 1, 1, 1, 1, 1, 1, 1};

        set_type(MLX5SIM_QPT_UD);
        memcpy(m_req.sgid, sgid, sizeof(sgid));
        m_req.dest_qpn = m_resp.dest_qpn = 0;
    }

    void post(uint32_t length = 100, uint8_t opcode = MLX5_OPCODE_SEND,
              uint32_t qkey = 0x1ee7)
    {
        m_sq.ctrl(0, opcode, REQ_QPN,
                  MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_SOLICITED, 0, 0x1234)
            .compact_av(RESP_QPN, qkey, 4, 6)
            .data(req_addr(), length, LKEY).finish();
    }

    void post_global(const uint8_t *dgid, uint32_t length = 100)
    {
        m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN, MLX5_WQE_CTRL_CQ_UPDATE)
            .av(RESP_QPN, 0x1ee7, 4, 6,
                (m_req.is_roce ? 0 : 0x40000000) | 0x54321, 0x7b, 63, dgid)
            .data(req_addr(), length, LKEY).finish();
    }

    void expect_resp_cqe(uint32_t byte_cnt)
    {
        EXPECT_TRUE(m_plan.consume_recv);
        ASSERT_TRUE(m_plan.has_resp_cqe);
        EXPECT_FALSE(m_plan.resp_error);
        EXPECT_EQ(byte_cnt, m_plan.resp_cqe.byte_cnt);
        EXPECT_EQ(uint32_t(REQ_QPN), m_plan.resp_cqe.src_qpn);
        EXPECT_EQ(uint32_t(RESP_QPN), m_plan.resp_cqe.qpn);
        EXPECT_EQ(3, m_plan.resp_cqe.slid);
        EXPECT_EQ(0xffff, m_plan.resp_cqe.pkey);
        EXPECT_EQ(77, m_plan.resp_cqe.wqe_counter);
    }

    static const uint8_t dgid[16];
    static const uint8_t dgid_ipv4[16];
};

const uint8_t test_engine_ud::dgid[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0,
                                          2, 2, 2, 2, 2, 2, 2, 2};
const uint8_t test_engine_ud::dgid_ipv4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                               0xff, 0xff, 192, 168, 1, 2};


TEST_F(test_engine_ud, room_of_the_header_may_be_split_over_segments)
{
    add_recv(0, 13, 0xbad); /* not written, so any key will do */
    add_recv(100, 40);
    add_recv(500, 1000);
    post();
    plan();
    expect_resp_cqe(140);
    ASSERT_EQ(2u, m_plan.num_dst);
    EXPECT_EQ(resp_va(127), m_plan.dst[0].addr);
    EXPECT_EQ(13u, m_plan.dst[0].length);
    execute();
    EXPECT_EQ(0, memcmp(&m_req_buf[0], &m_resp_buf[127], 13));
    EXPECT_EQ(0, memcmp(&m_req_buf[13], &m_resp_buf[500], 87));
}

TEST_F(test_engine_ud, immediate)
{
    add_recv(0, 4096);
    post(0 + 1, MLX5_OPCODE_SEND_IMM);
    plan();
    expect_resp_cqe(41);
    EXPECT_EQ(MLX5SIM_CQE_RESP_SEND_IMM, m_plan.resp_cqe.opcode);
    EXPECT_EQ(0x1234u, m_plan.resp_cqe.imm);
}

TEST_F(test_engine_ud, global_route_header_precedes_the_payload)
{
    const struct ibv_grh *grh = (const struct ibv_grh*)&m_resp_buf[200];

    add_recv(200, 4096);
    post_global(dgid, 101);
    plan();
    expect_req_success();
    expect_resp_cqe(141);
    EXPECT_TRUE(m_plan.resp_cqe.has_grh);
    EXPECT_EQ(6, m_plan.resp_cqe.sl);
    EXPECT_EQ(40, m_plan.grh_length);
    EXPECT_EQ(141u, m_plan.length);
    execute();
    EXPECT_EQ(0, memcmp(&m_req_buf[0], &m_resp_buf[240], 101));
    EXPECT_EQ(htobe32(0x67b54321), grh->version_tclass_flow);
    /* BTH 12, DETH 8, payload padded to 4, ICRC 4 */
    EXPECT_EQ(htobe16(12 + 8 + 104 + 4), grh->paylen);
    EXPECT_EQ(0x1b, grh->next_hdr);
    EXPECT_EQ(63, grh->hop_limit);
    EXPECT_EQ(0, memcmp(grh->sgid.raw, m_req.sgid, 16));
    EXPECT_EQ(0, memcmp(grh->dgid.raw, dgid, 16));
    EXPECT_EQ(0u, m_plan.src[0].lkey);

    m_sq.at(3) = MLX5_OPCODE_SEND_IMM; /* 4 bytes more on the wire */
    plan();
    execute();
    EXPECT_EQ(htobe16(12 + 8 + 4 + 104 + 4), grh->paylen);
}

TEST_F(test_engine_ud, longest_gather_list_with_a_header)
{
    add_recv(0, 4096);
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN)
        .av(RESP_QPN, 0x1ee7, 4, 6, 0x40000000, 0, 0, dgid);
    for (unsigned i = 0; i < 59; ++i) {
        m_sq.data(req_addr(i * 3), 1, LKEY);
    }
    m_sq.finish();
    plan();
    EXPECT_EQ(60u, m_plan.num_src);
    execute();
    for (unsigned i = 0; i < 59; ++i) {
        EXPECT_EQ(m_req_buf[i * 3], m_resp_buf[40 + i]);
    }
}

TEST_F(test_engine_ud, roce_over_ipv6_leaves_an_ipv6_header)
{
    m_req.is_roce = m_resp.is_roce = 1;
    add_recv(0, 4096);
    post_global(dgid);
    plan();
    EXPECT_TRUE(m_plan.resp_cqe.has_grh);
    EXPECT_EQ(8 | 1, m_plan.resp_cqe.sl);
    execute();
    EXPECT_EQ(0x67, m_resp_buf[0]);
    EXPECT_EQ(17, m_resp_buf[6]); /* UDP */
    EXPECT_EQ(8 + 12 + 8 + 100 + 4, (m_resp_buf[4] << 8) | m_resp_buf[5]);
    EXPECT_EQ(0, memcmp(&m_resp_buf[24], dgid, 16));
}

/* Also where its GIDs are IPv4 addresses: there is no IP in such a packet */
TEST_F(test_engine_ud, roce_v1_leaves_a_grh)
{
    m_req.is_roce = m_resp.is_roce = 1;
    m_req.is_roce_v1               = 1;
    m_req.path_mtu                 = 5;
    add_recv(0, 4096);
    post_global(dgid_ipv4);
    plan();
    EXPECT_TRUE(m_plan.resp_cqe.has_grh);
    EXPECT_EQ(0, m_plan.resp_cqe.sl);
    execute();
    EXPECT_EQ(0x1b, m_resp_buf[6]);
    EXPECT_EQ(12 + 8 + 100 + 4, (m_resp_buf[4] << 8) | m_resp_buf[5]);
    EXPECT_EQ(0, memcmp(&m_resp_buf[8], m_req.sgid, 16));
    EXPECT_EQ(0, memcmp(&m_resp_buf[24], dgid_ipv4, 16));
}

TEST_F(test_engine_ud, roce_over_ipv4_leaves_an_ipv4_header_at_the_end)
{
    static const uint8_t sgid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff,
                                     192, 168, 1, 1};
    const uint8_t *ip             = &m_resp_buf[20];
    uint32_t sum                  = 0;

    memcpy(m_req.sgid, sgid, sizeof(sgid));
    m_req.is_roce = m_resp.is_roce = 1;
    m_req.path_mtu                 = 5;
    add_recv(0, 4096);
    post_global(dgid_ipv4);
    plan();
    expect_resp_cqe(140);
    EXPECT_EQ(8 | 2, m_plan.resp_cqe.sl);
    execute();
    EXPECT_EQ(0x45, ip[0]);
    EXPECT_EQ(0x7b, ip[1]);
    EXPECT_EQ(20 + 8 + 12 + 8 + 100 + 4, (ip[2] << 8) | ip[3]);
    EXPECT_EQ(63, ip[8]);
    EXPECT_EQ(0, ip[4] | ip[5]); /* not fragmented, no identification */
    EXPECT_EQ(17, ip[9]);
    EXPECT_EQ(0, memcmp(ip + 12, sgid + 12, 4));
    EXPECT_EQ(0, memcmp(ip + 16, dgid_ipv4 + 12, 4));
    for (unsigned i = 0; i < 20; i += 2) {
        sum += (ip[i] << 8) | ip[i + 1];
    }
    EXPECT_EQ(0xffffu, (sum & 0xffff) + (sum >> 16));
    EXPECT_EQ(0, memcmp(&m_req_buf[0], &m_resp_buf[40], 100));
}

/* ones complement sums of 10 words carry more than once */
TEST_F(test_engine_ud, ipv4_header_checksum_of_any_address)
{
    uint8_t gid[16];

    m_req.is_roce = m_resp.is_roce = 1;
    add_recv(0, 4096);
    memcpy(gid, dgid_ipv4, sizeof(gid));
    for (unsigned i = 0; i < 65536; i += 7) {
        const uint8_t *ip = &m_resp_buf[20];
        uint32_t sum      = 0;

        gid[12] = i >> 8;
        gid[13] = i;
        gid[14] = gid[15] = 0xff;
        memcpy(m_req.sgid, gid, sizeof(gid));
        post_global(gid, 1);
        plan();
        execute();
        for (unsigned j = 0; j < 20; j += 2) {
            sum += (ip[j] << 8) | ip[j + 1];
        }
        while (sum >> 16) {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        ASSERT_EQ(0xffffu, sum) << i;
    }
}

TEST_F(test_engine_ud, datagrams_that_get_lost)
{
    const mlx5sim_qp_t resp = m_resp;

    post();
    plan();
    expect_lost(); /* no receive */
    add_recv(0, 4096);

    mlx5sim_plan_make(&m_req, &m_wqe, NULL, &m_env, &m_plan);
    expect_lost();

    m_resp.qkey = 0x1ee8;
    replan();
    expect_lost();
    m_resp = resp;

    m_resp.pkey = 0x8001;
    replan();
    expect_lost();
    m_resp = resp;

    m_resp.type = MLX5SIM_QPT_RC;
    replan();
    expect_lost();
    m_resp = resp;

    for (auto state : {MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT, MLX5SIM_QPS_ERR}) {
        m_resp.state = state;
        replan();
        expect_lost();
        EXPECT_EQ(0u, m_peeks);
    }

    for (auto state : {MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS, MLX5SIM_QPS_SQD,
                       MLX5SIM_QPS_SQE}) {
        m_resp.state = state;
        replan();
        expect_resp_cqe(140);
    }
}

TEST_F(test_engine_ud, receive_without_room_for_the_header_fails)
{
    add_recv(0, 139);
    post();
    plan();
    expect_req_success();
    expect_no_effect();
    expect_resp_cqe_error(MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
}

TEST_F(test_engine_ud, receive_with_a_bad_key_fails)
{
    add_recv(0, 4096, 0xbad);
    post();
    plan();
    expect_req_success();
    expect_no_effect();
    expect_resp_cqe_error(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

TEST_F(test_engine_ud, malformed_receive_queue_is_fatal_for_its_owner)
{
    m_recv_status = -1;
    post();
    plan();
    expect_req_success();
    expect_no_effect();
    EXPECT_FALSE(m_plan.has_resp_cqe);
    EXPECT_TRUE(m_plan.resp_error);
    EXPECT_EQ(IBV_EVENT_QP_FATAL, m_plan.resp_event);
}

TEST_F(test_engine_ud, own_mistakes_are_errors)
{
    add_recv(0, 4096);
    m_sq.ctrl(0, MLX5_OPCODE_SEND, REQ_QPN).compact_av(RESP_QPN, 0x1ee7, 4, 6)
        .data(req_addr(), 1, 0xbad).finish();
    plan();
    expect_local_error(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);

    post(1025);
    EXPECT_EQ(MLX5SIM_CHK_WQE_UD_LENGTH, decode());
    replan();
    expect_local_error(MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
}

TEST_F(test_engine_ud, faults_while_copying)
{
    add_recv(0, 4096);
    post_global(dgid);
    plan();
    mlx5sim_plan_fault(&m_req, &m_wqe, &m_resp, MLX5SIM_SIDE_RESPONDER,
                       &m_plan);
    expect_req_success();
    expect_no_effect();
    expect_resp_cqe_error(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);

    plan();
    mlx5sim_plan_fault(&m_req, &m_wqe, &m_resp, MLX5SIM_SIDE_REQUESTER,
                       &m_plan);
    expect_local_error(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}
