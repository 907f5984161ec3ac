/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets of InfiniBand in UDP, as they go between nodes: they are read as they
 * were written, and others are refused. All of them end where a page does that
 * can't be read, so that looking behind them is a crash.
 */

#include <sim/test_wire_fixture.h>

#include <common/seed.h>

#include <set>

namespace {

const unsigned LRH = 28; /* behind IPv4 and UDP */
const unsigned GRH = LRH + 8;

const uint8_t opcodes[] = {0x00, 0x03, 0x04, 0x0a, 0x0b, 0x0c, 0x0d, 0x11,
                           0x12, 0x13, 0x16, 0x20, 0x64, 0x65, 0xd3};

} // namespace

class test_wire_ib : public test_wire_fixture {
protected:
    mlx5sim_roce_path_t random_path(bool has_grh)
    {
        mlx5sim_roce_path_t path;

        memset(&path, 0, sizeof(path));
        path.is_ib   = 1;
        path.has_grh = has_grh;
        path.sl      = m_random() % 16;
        path.slid    = m_random();
        path.dlid    = m_random();
        path.sport   = m_random();
        fill(path.from, sizeof(path.from));
        fill(path.to, sizeof(path.to));
        if (has_grh) {
            fill(path.route.sgid, 16);
            fill(path.route.dgid, 16);
            path.route.tclass     = m_random();
            path.route.flow_label = m_random() % (1 << 20);
            path.route.hop_limit  = m_random();
        }
        return path;
    }

    mlx5sim_roce_t packet_of(uint8_t opcode)
    {
        mlx5sim_roce_t packet;

        memset(&packet, 0, sizeof(packet));
        packet.opcode  = opcode;
        packet.ack_req = m_random() % 2;
        packet.pkey    = m_random();
        packet.dqpn    = m_random() % (1 << 24);
        packet.psn     = m_random() % (1 << 24);
        return packet;
    }

    bytes_t random_bytes(uint8_t opcode, bool has_grh, unsigned length)
    {
        bytes_t payload(length);

        fill(payload.data(), length);
        return encode(random_path(has_grh), packet_of(opcode), payload);
    }

    static void repair_vcrc(bytes_t *bytes)
    {
        unsigned end  = bytes->size() - 2;
        uint16_t vcrc = mlx5sim_roce_vcrc(&(*bytes)[LRH], end - LRH);

        (*bytes)[end]     = vcrc;
        (*bytes)[end + 1] = vcrc >> 8;
    }

    /* Have lengths and checksums of a changed packet fit again; those of its
     * own headers stay */
    static void repair(bytes_t *bytes, bool has_grh)
    {
        mlx5sim_roce_path_t path = {};
        unsigned end             = bytes->size() - 6;

        set16(bytes, 2, bytes->size());
        set16(bytes, 24, bytes->size() - 20);
        path.is_ib   = 1;
        path.has_grh = has_grh;
        set_icrc(bytes, end,
                 mlx5sim_roce_icrc(&path, &(*bytes)[LRH], end - LRH));
        repair_vcrc(bytes);
    }

    mlx5sim_roce_verdict_t
    with(bytes_t bytes, bool has_grh, unsigned offset, uint8_t value)
    {
        bytes[offset] = value;
        repair(&bytes, has_grh);
        return decode(bytes);
    }
};

TEST_F(test_wire_ib, a_packet_is_the_payload_of_udp_over_ipv4)
{
    static const uint8_t head[] = {
        0x45, 0x00, 0x00, 0x42, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x25, 0x0f,
        10,   77,   0,    1,    10,   77,   1,    2,
        0xc1, 0x23, 0x39, 0xc7, 0x00, 0x2e, 0x00, 0x00
    };
    mlx5sim_roce_path_t path = random_path(false);
    mlx5sim_roce_t packet    = packet_of(0x04);
    bytes_t payload          = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    bytes_t bytes, inner(MLX5SIM_ROCE_MAX);

    path.sport = 0xc123;
    memcpy(path.from, head + 12, 4);
    memcpy(path.to, head + 16, 4);
    bytes = encode(path, packet, payload);
    inner.resize(mlx5sim_roce_encode(&path, &packet, payload.data(),
                                     payload.size(), inner.data()));
    EXPECT_EQ(bytes_t(head, head + sizeof(head)),
              bytes_t(bytes.begin(), bytes.begin() + LRH));
    EXPECT_EQ(inner, bytes_t(bytes.begin() + LRH, bytes.end()));
}

TEST_F(test_wire_ib, random_packets_are_read_as_they_were_written)
{
    m_random.seed(seed::get());
    for (unsigned round = 0; round < seed::cases(50); ++round) {
        for (uint8_t opcode : opcodes) {
            mlx5sim_roce_path_t path = random_path(round % 2);
            mlx5sim_roce_t packet    = packet_of(opcode);
            bytes_t payload(m_random() % ((round < 8) ? 8 : 4097));
            bytes_t bytes;

            fill(payload.data(), payload.size());
            bytes = encode(path, packet, payload);
            ASSERT_EQ(MLX5SIM_ROCE_VALID, decode(bytes)) << int(opcode);
            EXPECT_EQ(0, memcmp(&path, &m_path, sizeof(path))) << int(opcode);
            EXPECT_EQ(packet.opcode, m_packet.opcode);
            EXPECT_EQ(packet.dqpn, m_packet.dqpn);
            EXPECT_EQ(packet.psn, m_packet.psn);
            EXPECT_EQ(payload, bytes_t(m_payload, m_payload + m_length));

            /* Ethernet's padding */
            bytes.resize(bytes.size() + m_random() % 50, 0x5a);
            EXPECT_EQ(MLX5SIM_ROCE_VALID, decode(bytes));
            EXPECT_EQ(payload, bytes_t(m_payload, m_payload + m_length));
        }
    }
}

TEST_F(test_wire_ib, an_answer_goes_back_to_the_node)
{
    mlx5sim_roce_path_t there = random_path(true), back = there;

    mlx5sim_roce_return(&back);
    EXPECT_EQ(0, memcmp(there.from, back.to, 4));
    EXPECT_EQ(0, memcmp(there.to, back.from, 4));
    EXPECT_EQ(there.slid, back.dlid);
    EXPECT_EQ(there.dlid, back.slid);
}

TEST_F(test_wire_ib, what_is_cut_off_is_refused)
{
    for (uint8_t opcode : opcodes) {
        for (bool has_grh : {true, false}) {
            bytes_t bytes = random_bytes(opcode, has_grh, 5);

            for (unsigned length = 0; length < bytes.size(); ++length) {
                EXPECT_EQ(MLX5SIM_ROCE_SHORT, decode(bytes, length))
                        << int(opcode) << ", " << length << " bytes";
            }
        }
    }
}

/* A sender who means it: headers are not there, and all lengths say so */
TEST_F(test_wire_ib, what_is_short_by_its_own_account_is_refused)
{
    for (bool has_grh : {true, false}) {
        bytes_t bytes = random_bytes(0x0a, has_grh, 0);

        while (bytes.size() > LRH + 8 + 2 + 4) {
            bytes.resize(bytes.size() - 4);
            set16(&bytes, LRH + 4, (bytes.size() - LRH) / 4);
            if (has_grh && (bytes.size() >= GRH + 42)) {
                set16(&bytes, GRH + 4, bytes.size() - GRH - 42);
            }
            if (bytes.size() >= LRH + 26 + (has_grh ? 40 : 0)) {
                repair(&bytes, has_grh);
            } else {
                set16(&bytes, 2, bytes.size());
                set16(&bytes, 24, bytes.size() - 20);
                repair_vcrc(&bytes);
            }
            EXPECT_EQ(MLX5SIM_ROCE_SHORT, decode(bytes)) << bytes.size();
        }
        while (bytes.size() > LRH) {
            bytes.pop_back();
            set16(&bytes, 2, bytes.size());
            set16(&bytes, 24, bytes.size() - 20);
            if (bytes.size() >= LRH + 2) {
                repair_vcrc(&bytes);
            }
            EXPECT_NE(MLX5SIM_ROCE_VALID, decode(bytes)) << bytes.size();
        }
        EXPECT_EQ(MLX5SIM_ROCE_SHORT, decode(bytes));
    }
}

TEST_F(test_wire_ib, a_bit_that_changed_is_found)
{
    for (bool has_grh : {true, false}) {
        bytes_t bytes = random_bytes(0x0a, has_grh, 5);

        for (unsigned bit = 8 * LRH; bit < 8 * bytes.size(); ++bit) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            EXPECT_EQ(MLX5SIM_ROCE_BAD_VCRC, decode(bytes)) << bit;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

TEST_F(test_wire_ib, the_icrc_covers_what_stays)
{
    for (bool has_grh : {true, false}) {
        bytes_t bytes           = random_bytes(0x0a, has_grh, 5);
        unsigned bth            = has_grh ? (GRH + 40) : GRH;
        /* what switches and routers may change: bytes, and halves of one */
        std::set<unsigned> free = {bth + 4};
        unsigned high           = LRH;

        if (has_grh) {
            free.insert({LRH + 2, LRH + 3, LRH + 6, LRH + 7, GRH + 1, GRH + 2,
                         GRH + 3, GRH + 7});
        }
        for (unsigned bit = 8 * LRH; bit < 8 * (bytes.size() - 2); ++bit) {
            unsigned byte = bit / 8, mask = 1 << (bit % 8);
            bool is_free  = free.count(byte) ||
                            ((byte == high) && (mask & 0xf0)) ||
                            (has_grh && ((byte == GRH) && (mask & 0x0f))) ||
                            (has_grh && ((byte == LRH + 1) && (mask & 0xfc))) ||
                            (has_grh && ((byte == LRH + 4) && (mask & 0xf8)));

            bytes[byte] ^= mask;
            repair_vcrc(&bytes);
            EXPECT_EQ(is_free, decode(bytes) == MLX5SIM_ROCE_VALID)
                    << "bit " << (bit % 8) << " of byte " << byte;
            bytes[byte] ^= mask;
        }
    }
}

TEST_F(test_wire_ib, other_packets_are_refused)
{
    bytes_t local  = random_bytes(0x04, false, 8);
    bytes_t global = random_bytes(0x04, true, 8);

    EXPECT_EQ(MLX5SIM_ROCE_VALID, with(local, false, LRH, 0xf0));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_IB, with(local, false, LRH, 1)); /* version */
    for (unsigned lnh : {0, 1}) { /* raw */
        EXPECT_EQ(MLX5SIM_ROCE_NOT_IB,
                  with(local, false, LRH + 1, (local[LRH + 1] & 0xfc) | lnh));
    }
    for (unsigned words = 0; words < 0x800; ++words) {
        bytes_t other = local;

        set16(&other, LRH + 4, words);
        repair(&other, false);
        EXPECT_EQ((words == (local.size() - LRH - 2) / 4) ?
                  MLX5SIM_ROCE_VALID : MLX5SIM_ROCE_BAD_LENGTH, decode(other));
    }

    EXPECT_EQ(MLX5SIM_ROCE_VALID, with(global, true, GRH, 0x6f));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_IB, with(global, true, GRH, 0x4f));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_IB, with(global, true, GRH + 6, 17));
    for (unsigned length = 0; length < 0x10000; ++length) {
        bytes_t other = global;

        set16(&other, GRH + 4, length);
        repair(&other, true);
        EXPECT_EQ((length == global.size() - GRH - 42) ?
                  MLX5SIM_ROCE_VALID : MLX5SIM_ROCE_BAD_LENGTH, decode(other));
    }

    /* ports: RoCE v2, and none */
    set16(&local, 22, 4791);
    EXPECT_EQ(MLX5SIM_ROCE_BAD_LENGTH, decode(local));
    set16(&local, 22, MLX5SIM_ROCE_IB_PORT + 1);
    EXPECT_EQ(MLX5SIM_ROCE_NOT_UDP, decode(local));
}

TEST_F(test_wire_ib, ipv6_carries_none)
{
    mlx5sim_roce_path_t path = {};
    mlx5sim_roce_t packet    = packet_of(0x04);
    bytes_t bytes;

    path.has_grh = path.route.is_udp = 1;
    path.route.sgid[0] = path.route.dgid[0] = 0xfe;
    bytes = encode(path, packet, {});
    EXPECT_EQ(MLX5SIM_ROCE_VALID, decode(bytes));
    set16(&bytes, 42, MLX5SIM_ROCE_IB_PORT);
    EXPECT_EQ(MLX5SIM_ROCE_NOT_UDP, decode(bytes));
}

TEST_F(test_wire_ib, fuzz_never_leaves_the_packet)
{
    unsigned valid = 0;

    m_random.seed(seed::get());
    for (unsigned i = 0; i < seed::cases(30000); ++i) {
        bool has_grh  = m_random() % 2;
        bytes_t bytes = random_bytes(opcodes[m_random() % sizeof(opcodes)],
                                     has_grh, m_random() % 40);
        const uint8_t *end;

        for (unsigned changes = m_random() % 4; changes > 0; --changes) {
            bytes[LRH + m_random() % (bytes.size() - LRH)] = m_random();
        }
        if (m_random() % 4 == 0) {
            bytes.resize(LRH + 66 + m_random() % bytes.size());
        }
        if (m_random() % 4 != 0) {
            repair(&bytes, has_grh);
        }

        end = m_map + ROOM;
        if (decode(bytes) == MLX5SIM_ROCE_VALID) {
            ++valid;
            ASSERT_GE(m_payload, end - bytes.size());
            ASSERT_LE(m_payload + m_length, end - 6);
        }
    }
    EXPECT_GT(valid, 0u);
}
