/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Work requests made of request packets: those of which the packets are made
 * come back, and packets that do not follow each other are told from those that
 * do.
 */

#include <sim/engine/mlx5_def.h>
#include <sim/wire/roce.h>

#include <common/seed.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace {

const unsigned MTU = 256;

mlx5sim_qp_t qp_of(uint8_t type, uint8_t path_mtu = 1)
{
    mlx5sim_qp_t qp = {};

    qp.type     = type;
    qp.qpn      = 0x4321;
    qp.dest_qpn = 0x5678;
    qp.path_mtu = path_mtu;
    return qp;
}

} // namespace

class test_wire_message : public testing::Test {
protected:
    mlx5sim_roce_fit_t take(uint8_t opcode, unsigned length,
                            uint32_t dma_length = 0)
    {
        mlx5sim_roce_t packet = {};
        mlx5sim_roce_fit_t fit;

        packet.opcode      = opcode;
        packet.raddr       = 0x1000;
        packet.rkey        = 7;
        packet.dma_length  = dma_length;
        packet.atomic_size = m_atomic_size;
        fit = mlx5sim_roce_to_wqe(&m_qp, &packet, length, &m_message, &m_wqe,
                                  &m_place);
        if (fit == MLX5SIM_ROCE_FITS) {
            m_message = m_place.next;
        }
        return fit;
    }

    /* @return whether a message is begun by these packets */
    void restart(uint8_t opcode, uint32_t dma_length = 0)
    {
        m_message = {};
        ASSERT_EQ(MLX5SIM_ROCE_FITS, take(opcode, MTU, dma_length));
    }

    mlx5sim_qp_t           m_qp          = qp_of(MLX5SIM_QPT_RC);
    mlx5sim_roce_message_t m_message     = {};
    uint8_t                m_atomic_size = 8;
    mlx5sim_wqe_t          m_wqe;
    mlx5sim_roce_place_t   m_place;
};

TEST_F(test_wire_message, random_requests_come_back_from_their_packets)
{
    static const struct {
        uint8_t type;
        uint8_t opcode;
    } rows[] = {
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_SEND},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_SEND_IMM},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_SEND_INVAL},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_WRITE},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_WRITE_IMM},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_READ},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_ATOMIC_CS},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_ATOMIC_FA},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_ATOMIC_MASKED_CS},
        {MLX5SIM_QPT_RC, MLX5SIM_OPCODE_ATOMIC_MASKED_FA},
        {MLX5SIM_QPT_UC, MLX5SIM_OPCODE_SEND},
        {MLX5SIM_QPT_UC, MLX5SIM_OPCODE_SEND_IMM},
        {MLX5SIM_QPT_UC, MLX5SIM_OPCODE_RDMA_WRITE},
        {MLX5SIM_QPT_UC, MLX5SIM_OPCODE_RDMA_WRITE_IMM},
        {MLX5SIM_QPT_UD, MLX5SIM_OPCODE_SEND},
        {MLX5SIM_QPT_UD, MLX5SIM_OPCODE_SEND_IMM}
    };
    std::mt19937_64 random(seed::get());

    for (unsigned i = 0; i < seed::cases(200); ++i) {
        for (const auto &row : rows) {
            bool is_write  = (row.opcode == MLX5SIM_OPCODE_RDMA_WRITE) ||
                             (row.opcode == MLX5SIM_OPCODE_RDMA_WRITE_IMM);
            bool is_send   = !is_write && (row.opcode < 0x10);
            bool is_masked = row.opcode >= MLX5SIM_OPCODE_ATOMIC_MASKED_CS;
            bool is_atomic = row.opcode > MLX5SIM_OPCODE_RDMA_READ;
            bool is_cas    = (row.opcode == MLX5SIM_OPCODE_ATOMIC_CS) ||
                             (row.opcode == MLX5SIM_OPCODE_ATOMIC_MASKED_CS);
            bool has_imm   = (row.opcode == MLX5SIM_OPCODE_SEND_IMM) ||
                             (row.opcode == MLX5SIM_OPCODE_RDMA_WRITE_IMM);
            bool is_inv    = row.opcode == MLX5SIM_OPCODE_SEND_INVAL;
            mlx5sim_wqe_t wqe = {};
            unsigned mtu, length, offset = 0;
            bool is_first = true, is_last;

            m_qp      = qp_of(row.type, 1 + random() % 5);
            m_message = {};
            mtu       = 128u << m_qp.path_mtu;
            wqe.opcode             = row.opcode;
            wqe.solicited          = random() & 1;
            wqe.raddr              = random();
            wqe.rkey               = random();
            wqe.imm                = random();
            wqe.length             = random() % (4 * mtu);
            wqe.av.dqpn            = random() & 0xffffff;
            wqe.av.qkey            = random();
            if (row.type == MLX5SIM_QPT_UD) {
                wqe.length %= mtu + 1;
            } else if ((random() % 4) == 0) {
                wqe.length -= wqe.length % mtu;
            }
            if (is_atomic) {
                wqe.atomic_size         = is_masked ? (4 << (random() & 1)) : 8;
                wqe.length              = wqe.atomic_size;
                wqe.atomic.swap_add     = random();
                wqe.atomic.compare      = is_cas ? random() : 0;
                wqe.atomic.swap_mask    = is_masked ? random() : UINT64_MAX;
                wqe.atomic.compare_mask = is_masked ? random() :
                                          is_cas ? UINT64_MAX : 0;
            }

            do {
                uint8_t bytes[MLX5SIM_ROCE_MAX];
                mlx5sim_roce_path_t path = {};
                mlx5sim_roce_t packet, read;
                const uint8_t *data;
                unsigned size;
                uint8_t payload[4096] = {};

                length  = (is_send || is_write) ?
                          std::min(mtu, wqe.length - offset) : 0;
                is_last = !(is_send || is_write) ||
                          (offset + length == wqe.length);
                path.has_grh      = 1;
                path.route.is_udp = 1;
                mlx5sim_roce_request(&m_qp, &wqe, 5, offset, is_first, is_last,
                                     &packet);
                size = mlx5sim_roce_encode_net(&path, &packet, payload, length,
                                               bytes);
                ASSERT_EQ(MLX5SIM_ROCE_VALID,
                          mlx5sim_roce_decode(bytes, size, &path, &read, &data,
                                              &size));
                ASSERT_EQ(MLX5SIM_ROCE_FITS,
                          mlx5sim_roce_to_wqe(&m_qp, &read, size, &m_message,
                                              &m_wqe, &m_place))
                        << int(row.opcode) << ", at " << offset << " of "
                        << wqe.length << ", MTU " << mtu;
                m_message = m_place.next;

                EXPECT_EQ(offset, m_place.offset);
                EXPECT_EQ(is_first, m_place.is_first);
                EXPECT_EQ(is_last, m_place.is_last);
                EXPECT_EQ(!is_last, m_message.is_open);
                EXPECT_EQ(is_send ? (offset + length) : wqe.length,
                          m_wqe.length);
                EXPECT_EQ(is_write ? (wqe.length - offset - length) : 0,
                          m_wqe.later);
                EXPECT_EQ(!is_send, m_wqe.has_raddr);
                if (!is_send) {
                    EXPECT_EQ(wqe.raddr, m_wqe.raddr);
                    EXPECT_EQ(wqe.rkey, m_wqe.rkey);
                }
                if (is_last) {
                    EXPECT_EQ(wqe.opcode, m_wqe.opcode);
                    EXPECT_EQ((has_imm || is_inv) ? wqe.imm : 0, m_wqe.imm);
                    EXPECT_EQ((is_send || (is_write && has_imm)) ?
                              wqe.solicited : 0, m_wqe.solicited);
                } else {
                    EXPECT_EQ(is_write ? MLX5SIM_OPCODE_RDMA_WRITE :
                                         MLX5SIM_OPCODE_SEND, m_wqe.opcode);
                    EXPECT_EQ(0, m_wqe.solicited);
                }
                if (is_atomic) {
                    EXPECT_EQ(wqe.atomic_size, m_wqe.atomic_size);
                    EXPECT_EQ(is_cas, m_wqe.atomic.is_cas);
                    EXPECT_EQ(wqe.atomic.swap_add, m_wqe.atomic.swap_add);
                    EXPECT_EQ(wqe.atomic.compare, m_wqe.atomic.compare);
                    EXPECT_EQ(wqe.atomic.swap_mask, m_wqe.atomic.swap_mask);
                    EXPECT_EQ(wqe.atomic.compare_mask,
                              m_wqe.atomic.compare_mask);
                }
                EXPECT_EQ(row.type == MLX5SIM_QPT_UD, m_wqe.has_av);
                if (m_wqe.has_av) {
                    EXPECT_EQ(wqe.av.dqpn, m_wqe.av.dqpn);
                    EXPECT_EQ(wqe.av.qkey, m_wqe.av.qkey);
                }
                EXPECT_EQ(0u, m_wqe.num_segs);
                offset  += length;
                is_first = false;
            } while (!is_last);
        }
    }
}

/* Each opcode between messages, within a send, and within a write */
TEST_F(test_wire_message, only_what_continues_a_message_does)
{
    for (unsigned opcode = 0; opcode < 0x18; ++opcode) {
        bool is_answer = (opcode == 0x15) || ((opcode >= 0x0d) &&
                                              (opcode <= 0x12));
        bool is_send   = (opcode < 0x06) || (opcode >= 0x16);
        bool is_later  = (opcode == 0x01) || (opcode == 0x02) ||
                         (opcode == 0x03) || (opcode == 0x07) ||
                         (opcode == 0x08) || (opcode == 0x09) ||
                         (opcode == 0x16);
        bool has_data  = (opcode < 0x0c) || (opcode >= 0x16);
        bool is_middle = opcode == 0x07;
        unsigned bytes = has_data ? MTU : 0;
        uint32_t dma   = (opcode == 0x06) ? (2 * MTU) : bytes;

        m_message = {};
        EXPECT_EQ(is_answer ? MLX5SIM_ROCE_FOREIGN :
                  is_later ? MLX5SIM_ROCE_SEQUENCE : MLX5SIM_ROCE_FITS,
                  take(opcode, bytes, dma)) << opcode;
        restart(0x00);
        EXPECT_EQ(is_answer ? MLX5SIM_ROCE_FOREIGN :
                  (is_later && is_send) ? MLX5SIM_ROCE_FITS :
                                          MLX5SIM_ROCE_SEQUENCE,
                  take(opcode, bytes, dma)) << opcode;
        restart(0x06, (is_middle ? 3 : 2) * MTU);
        EXPECT_EQ(is_answer ? MLX5SIM_ROCE_FOREIGN :
                  (is_later && !is_send) ? MLX5SIM_ROCE_FITS :
                                           MLX5SIM_ROCE_SEQUENCE,
                  take(opcode, bytes, dma)) << opcode;
    }
}

TEST_F(test_wire_message, uc_forgets_a_message_if_another_begins)
{
    m_qp = qp_of(MLX5SIM_QPT_UC);
    restart(0x20);
    EXPECT_EQ(MLX5SIM_ROCE_FITS, take(0x26, MTU, 2 * MTU));
    EXPECT_EQ(0u, m_place.offset);
    EXPECT_EQ(MLX5SIM_ROCE_SEQUENCE, take(0x22, 1));
    EXPECT_EQ(MLX5SIM_ROCE_FITS, take(0x28, MTU));
}

TEST_F(test_wire_message, other_transport_services_are_foreign)
{
    static const struct {
        uint8_t type;
        uint8_t opcode;
    } rows[] = {
        {MLX5SIM_QPT_RC, 0x04}, {MLX5SIM_QPT_RC, 0xd3}, {MLX5SIM_QPT_UC, 0x24},
        {MLX5SIM_QPT_UD, 0x64}
    };

    for (uint8_t type : {MLX5SIM_QPT_RC, MLX5SIM_QPT_UC, MLX5SIM_QPT_UD}) {
        m_qp = qp_of(type);
        for (const auto &row : rows) {
            EXPECT_EQ((type == row.type) ? MLX5SIM_ROCE_FITS :
                                           MLX5SIM_ROCE_FOREIGN,
                      take(row.opcode, 0)) << int(type) << int(row.opcode);
        }
        EXPECT_EQ(MLX5SIM_ROCE_FOREIGN, take(MLX5SIM_BTH_CNP, 16));
    }
}

TEST_F(test_wire_message, packets_have_the_size_of_the_path_mtu)
{
    EXPECT_EQ(MLX5SIM_ROCE_NOT_MTU, take(0x00, MTU - 1));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_MTU, take(0x00, MTU + 1));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_MTU, take(0x04, MTU + 1));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_MTU, take(0x06, 0, 2 * MTU));
    EXPECT_EQ(MLX5SIM_ROCE_FITS, take(0x04, 0));
    restart(0x00);
    EXPECT_EQ(MLX5SIM_ROCE_NOT_MTU, take(0x01, MTU - 1));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_MTU, take(0x02, MTU + 1));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_MTU, take(0x02, 0));
    EXPECT_EQ(MLX5SIM_ROCE_FITS, take(0x02, 1));
    EXPECT_EQ(MTU + 1, m_wqe.length);
}

TEST_F(test_wire_message, a_write_has_as_many_bytes_as_it_said)
{
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x0a, 5, 4));
    EXPECT_EQ(MLX5SIM_ROCE_INCOMPLETE, take(0x0a, 3, 4));
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x06, MTU, MTU));
    restart(0x06, MTU + 8);
    EXPECT_EQ(8u, m_wqe.later);
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x07, MTU));
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x08, 9));
    EXPECT_EQ(MLX5SIM_ROCE_INCOMPLETE, take(0x08, 7));
    EXPECT_EQ(MLX5SIM_ROCE_FITS, take(0x08, 8));
    EXPECT_EQ(0u, m_wqe.later);
}

TEST_F(test_wire_message, nothing_is_larger_than_a_message_may_be)
{
    EXPECT_EQ(MLX5SIM_ROCE_FITS, take(0x0c, 0, MLX5SIM_MAX_MESSAGE));
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x0c, 0, MLX5SIM_MAX_MESSAGE + 1));
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x0c, 4, 4));
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x13, 8));
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x06, MTU, MLX5SIM_MAX_MESSAGE + 1));
    restart(0x00);
    m_message.offset = MLX5SIM_MAX_MESSAGE - MTU;
    EXPECT_EQ(MLX5SIM_ROCE_BEYOND, take(0x01, MTU));
    EXPECT_EQ(MLX5SIM_ROCE_FITS, take(0x02, MTU));
    m_atomic_size = 0;
    EXPECT_EQ(MLX5SIM_ROCE_FITS, take(0x13, 0));
    EXPECT_EQ(8, m_wqe.atomic_size);
    EXPECT_EQ(MLX5SIM_ROCE_OPERAND, take(0xd3, 0));
}

TEST_F(test_wire_message, fuzz_is_never_beyond_the_message)
{
    static const uint8_t types[]    = {MLX5SIM_QPT_RC, MLX5SIM_QPT_UC,
                                       MLX5SIM_QPT_UD};
    static const unsigned lengths[] = {0, 1, MTU, MTU, MTU, MTU + 1};
    std::mt19937_64 random(seed::get());

    for (unsigned i = 0; i < seed::cases(100000); ++i) {
        unsigned length = lengths[random() % 6];
        uint8_t opcode  = (random() % 4) ? (random() % 0x18) : random();

        if ((i % 100) == 0) {
            m_qp      = qp_of(types[random() % 3]);
            m_message = {};
        }
        m_atomic_size = random() % 9;
        if (m_qp.type != MLX5SIM_QPT_RC) {
            opcode |= (m_qp.type == MLX5SIM_QPT_UC) ? 0x20 : 0x60;
        }
        if (take(opcode, length, random() % (4 * MTU)) == MLX5SIM_ROCE_FITS) {
            ASSERT_LE(m_place.offset + length, MLX5SIM_MAX_MESSAGE);
            if (!m_wqe.has_raddr || (length > 0)) {
                ASSERT_EQ(m_wqe.length,
                          m_place.offset + length + m_wqe.later);
            }
            ASSERT_EQ(!m_place.is_last, m_message.is_open);
        }
    }
}
