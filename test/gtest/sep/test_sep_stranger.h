/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_STRANGER_H
#define TEST_SEP_STRANGER_H

#include <sep/test_sep_cm_user.h>

#include <uct/ib/sep/conn/sep_conn_msg.h>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

/*
 * Somebody on the fabric with a UD queue pair of plain verbs, who sends what he
 * likes to whom he likes. He can't choose his queue pair's number and his port.
 */
namespace sep_cm_test {

class stranger {
public:
    static constexpr uint64_t ID = 4711;

    stranger() : m_dev(*device::get()), m_buf(MAX_LENGTH + RX_LEN * RX_STRIDE)
    {
        struct ibv_qp_init_attr init = {};
        struct ibv_qp_attr attr      = {};

        m_cq                     = ibv_create_cq(m_dev.context, 64, nullptr,
                                                 nullptr, 0);
        m_mr                     = ibv_reg_mr(m_dev.pd, m_buf.data(),
                                              m_buf.size(),
                                              IBV_ACCESS_LOCAL_WRITE);
        init.send_cq             = m_cq;
        init.recv_cq             = m_cq;
        init.qp_type             = IBV_QPT_UD;
        init.cap.max_send_wr     = 8;
        init.cap.max_recv_wr     = RX_LEN;
        init.cap.max_send_sge    = 1;
        init.cap.max_recv_sge    = 1;
        m_qp                     = ibv_create_qp(m_dev.pd, &init);
        EXPECT_NE(nullptr, m_mr);
        EXPECT_NE(nullptr, m_qp);

        attr.port_num = 1;
        attr.qkey     = uct_sep_addr_qkey(ID);
        attr.qp_state = IBV_QPS_INIT;
        EXPECT_EQ(0, ibv_modify_qp(m_qp, &attr,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                           IBV_QP_PORT | IBV_QP_QKEY));
        for (unsigned i = 0; i < RX_LEN; ++i) {
            post_recv(i);
        }
        attr.qp_state = IBV_QPS_RTR;
        EXPECT_EQ(0, ibv_modify_qp(m_qp, &attr, IBV_QP_STATE));
        attr.qp_state = IBV_QPS_RTS;
        EXPECT_EQ(0, ibv_modify_qp(m_qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    }

    ~stranger()
    {
        if (m_ah != nullptr) {
            EXPECT_EQ(0, ibv_destroy_ah(m_ah));
        }
        EXPECT_EQ(0, ibv_destroy_qp(m_qp));
        EXPECT_EQ(0, ibv_dereg_mr(m_mr));
        EXPECT_EQ(0, ibv_destroy_cq(m_cq));
    }

    /* As an interface with this id would describe itself. All of it is true. */
    uct_sep_peer_addr_t addr(uint64_t id = ID) const
    {
        uct_sep_peer_addr_t self;

        uct_sep_device_addr_pack(&m_dev.port, &self.dev);
        uct_sep_iface_addr_pack(m_qp->qp_num, id, 0, &self.iface);
        return self;
    }

    /* Of those whose answers he hears: they have the Q_Key of his queue pair */
    static uint64_t id(uint64_t index)
    {
        return ID + (index << 31);
    }

    /* A request for a connection to an interface */
    uct_sep_conn_msg_t req(const uct_sep_peer_addr_t &to,
                           const uct_sep_peer_addr_t &from) const
    {
        uct_sep_conn_msg_t msg = {};

        msg.type        = UCT_SEP_CONN_MSG_REQ;
        msg.src         = from;
        msg.dst_id      = uct_sep_iface_addr_id(&to.iface);
        msg.src_epoch   = 1;
        msg.src_nonce   = 0xbad;
        msg.qp.qpn      = 0xbad000;
        msg.qp.path_mtu = m_dev.mtu;
        return msg;
    }

    void send(const uct_sep_peer_addr_t &to, const uct_sep_conn_msg_t &msg)
    {
        uct_sep_conn_packet_t packet;

        uct_sep_conn_msg_pack(&msg, &packet);
        send(to, &packet, sizeof(packet));
    }

    void send(const uct_sep_peer_addr_t &to, const void *data, size_t length)
    {
        send(to, data, length, uct_sep_iface_addr_qkey(&to.iface));
    }

    /* Returns when the device has sent it */
    void send(const uct_sep_peer_addr_t &to, const void *data, size_t length,
              uint32_t qkey)
    {
        struct ibv_send_wr wr = {}, *bad_wr;
        struct ibv_sge sge    = {};

        set_ah(to);
        memcpy(m_buf.data(), data, length);
        sge.addr             = reinterpret_cast<uintptr_t>(m_buf.data());
        sge.length           = length;
        sge.lkey             = m_mr->lkey;
        wr.wr_id             = SEND;
        wr.sg_list           = &sge;
        wr.num_sge           = 1;
        wr.opcode            = IBV_WR_SEND;
        wr.send_flags        = IBV_SEND_SIGNALED;
        wr.wr.ud.ah          = m_ah;
        wr.wr.ud.remote_qpn  = uct_sep_iface_addr_qpn(&to.iface);
        wr.wr.ud.remote_qkey = qkey;
        ASSERT_EQ(0, ibv_post_send(m_qp, &wr, &bad_wr));
        while (!m_is_sent) {
            poll();
        }
        m_is_sent = false;
    }

    /* Answers that have come; the oldest is taken. @return Whether there was
     * one. */
    bool receive(uct_sep_conn_msg_t *msg_p)
    {
        poll();
        if (m_received.empty()) {
            return false;
        }
        *msg_p = m_received.front();
        m_received.erase(m_received.begin());
        return true;
    }

private:
    static constexpr size_t MAX_LENGTH = 4096;
    static constexpr unsigned RX_LEN   = 16;
    static constexpr size_t RX_STRIDE  = 256;
    static constexpr uint64_t SEND     = UINT64_MAX;

    void set_ah(const uct_sep_peer_addr_t &to)
    {
        struct ibv_ah_attr attr;

        if ((m_ah != nullptr) &&
            (memcmp(&to.dev, &m_ah_addr, sizeof(to.dev)) == 0)) {
            return;
        }
        if (m_ah != nullptr) {
            EXPECT_EQ(0, ibv_destroy_ah(m_ah));
        }
        uct_sep_device_addr_to_ah_attr(&m_dev.port, &to.dev, &attr);
        m_ah      = ibv_create_ah(m_dev.pd, &attr);
        m_ah_addr = to.dev;
        ASSERT_NE(nullptr, m_ah);
    }

    uint8_t *rx(uint64_t index)
    {
        return &m_buf[MAX_LENGTH + index * RX_STRIDE];
    }

    void post_recv(uint64_t index)
    {
        struct ibv_recv_wr wr = {}, *bad_wr;
        struct ibv_sge sge    = {};

        sge.addr   = reinterpret_cast<uintptr_t>(rx(index));
        sge.length = RX_STRIDE;
        sge.lkey   = m_mr->lkey;
        wr.wr_id   = index;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        EXPECT_EQ(0, ibv_post_recv(m_qp, &wr, &bad_wr));
    }

    void poll()
    {
        uct_sep_conn_msg_t msg;
        struct ibv_wc wc;

        while (ibv_poll_cq(m_cq, 1, &wc) > 0) {
            ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
            if (wc.wr_id == SEND) {
                m_is_sent = true;
                continue;
            }
            if (uct_sep_conn_msg_parse(rx(wc.wr_id) + UCT_SEP_CONN_GRH_LEN,
                                       wc.byte_len - UCT_SEP_CONN_GRH_LEN,
                                       &msg) == UCT_SEP_CONN_PARSE_OK) {
                m_received.push_back(msg);
            }
            post_recv(wc.wr_id);
        }
    }

    device                          &m_dev;
    std::vector<uint8_t>            m_buf;
    struct ibv_cq                   *m_cq = nullptr;
    struct ibv_mr                   *m_mr = nullptr;
    struct ibv_qp                   *m_qp = nullptr;
    struct ibv_ah                   *m_ah = nullptr;
    uct_sep_device_addr_t           m_ah_addr = {};
    bool                            m_is_sent = false;
    std::vector<uct_sep_conn_msg_t> m_received;
};

} // namespace sep_cm_test

#endif
