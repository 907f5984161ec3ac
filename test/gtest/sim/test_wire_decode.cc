/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets that come from a network: those that mlx5sim_roce_encode_net() writes
 * are read as they were meant, and others are refused. All of them end where a
 * page does that can't be read, so that looking behind them is a crash.
 */

#include <sim/test_wire_fixture.h>

#include <common/seed.h>

#include <set>

namespace {

const uint8_t opcodes[] = {
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b,
    0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, /* RC */
    0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b,
    0x64, 0x65, /* UD */
    0x81,       /* CNP */
    0xd3, 0xd4  /* masked atomics */
};

/* Fields that an opcode has */
bool has(uint8_t opcode, const std::set<unsigned> &operations)
{
    return (opcode != 0x81) && operations.count(opcode & 0x1f);
}

const std::set<unsigned> reth     = {0x06, 0x0a, 0x0b, 0x0c};
const std::set<unsigned> atomic   = {0x13, 0x14};
const std::set<unsigned> aeth     = {0x0d, 0x0f, 0x10, 0x11, 0x12};
const std::set<unsigned> ack_old  = {0x12};
const std::set<unsigned> imm      = {0x03, 0x05, 0x09, 0x0b};
const std::set<unsigned> inv      = {0x16, 0x17};

} // namespace

class test_wire_decode : public test_wire_fixture {
protected:
    uint64_t random(uint64_t limit = 0)
    {
        uint64_t number = m_random();

        return (limit == 0) ? number : (number % limit);
    }

    mlx5sim_roce_path_t random_path(bool is_ipv4)
    {
        mlx5sim_roce_path_t path;

        memset(&path, 0, sizeof(path));
        fill(path.route.sgid, 16);
        fill(path.route.dgid, 16);
        if (is_ipv4) {
            for (uint8_t *gid : {path.route.sgid, path.route.dgid}) {
                memset(gid, 0, 10);
                memset(gid + 10, 0xff, 2);
            }
        } else {
            path.route.sgid[0] = path.route.dgid[0] = 0xfe;
            path.route.flow_label = random(1 << 20);
        }
        path.route.tclass    = random();
        path.route.hop_limit = random();
        path.route.is_udp    = 1;
        path.has_grh         = 1;
        path.sport           = random();
        return path;
    }

    mlx5sim_roce_t random_packet(uint8_t opcode)
    {
        mlx5sim_roce_t packet;

        memset(&packet, 0, sizeof(packet));
        packet.opcode    = opcode;
        packet.solicited = random(2);
        packet.ack_req   = random(2);
        packet.pkey      = random();
        packet.dqpn      = random(1 << 24);
        packet.psn       = random(1 << 24);
        if ((opcode >> 5) == 3) {
            packet.qkey = random();
            packet.sqpn = random(1 << 24);
        }
        if (has(opcode, reth) || has(opcode, atomic)) {
            packet.raddr = random();
            packet.rkey  = random();
        }
        if (has(opcode, reth)) {
            packet.dma_length = random();
        }
        if (has(opcode, atomic)) {
            packet.swap_add = random();
            packet.compare  = random();
        }
        if (opcode >= 0xc0) {
            packet.swap_mask    = random();
            packet.compare_mask = random();
            packet.atomic_size  = 4 << random(2);
        }
        if (has(opcode, aeth)) {
            packet.syndrome = random();
            packet.msn      = random(1 << 24);
        }
        if (has(opcode, ack_old)) {
            packet.old = random();
        }
        if (has(opcode, imm)) {
            packet.imm = random();
        }
        if (has(opcode, inv)) {
            packet.inv_rkey = random();
        }
        return packet;
    }

    bytes_t random_bytes(uint8_t opcode, bool is_ipv4, unsigned length)
    {
        bytes_t payload(length);

        fill(payload.data(), length);
        return encode(random_path(is_ipv4), random_packet(opcode), payload);
    }

    static bool is_ipv4(const bytes_t &bytes)
    {
        return (bytes[0] >> 4) == 4;
    }

    static unsigned udp(const bytes_t &bytes)
    {
        return is_ipv4(bytes) ? 20 : 40;
    }

    static unsigned bth(const bytes_t &bytes)
    {
        return udp(bytes) + 8;
    }

    /* Have lengths and ICRC of a changed packet fit again, so that it is not
     * for them that it is refused */
    static void repair(bytes_t *bytes)
    {
        mlx5sim_roce_path_t path = {};
        unsigned end             = bytes->size() - 4;

        set16(bytes, is_ipv4(*bytes) ? 2 : 4,
              bytes->size() - (is_ipv4(*bytes) ? 0 : 40));
        set16(bytes, udp(*bytes) + 4, bytes->size() - udp(*bytes));
        path.has_grh      = 1;
        path.route.is_udp = 1;
        if (is_ipv4(*bytes)) {
            memset(path.route.dgid + 10, 0xff, 2);
        }
        if (end < bth(*bytes) + 12) {
            return; /* no place for it */
        }
        set_icrc(bytes, end, mlx5sim_roce_icrc(&path, bytes->data(), end));
    }

    /* What becomes of a packet if one byte is another one */
    mlx5sim_roce_verdict_t with(bytes_t bytes, unsigned offset, uint8_t value)
    {
        bytes[offset] = value;
        repair(&bytes);
        return decode(bytes);
    }
};

TEST_F(test_wire_decode, random_packets_are_read_as_they_were_written)
{
    m_random.seed(seed::get());
    for (unsigned round = 0; round < seed::cases(50); ++round) {
        for (uint8_t opcode : opcodes) {
            mlx5sim_roce_path_t path = random_path(round % 2);
            mlx5sim_roce_t packet    = random_packet(opcode);
            bytes_t payload(random((round < 8) ? 8 : 4097));
            bytes_t bytes;

            fill(payload.data(), payload.size());
            bytes = encode(path, packet, payload);
            ASSERT_EQ(MLX5SIM_ROCE_VALID, decode(bytes)) << int(opcode);
            EXPECT_EQ(0, memcmp(&path, &m_path, sizeof(path))) << int(opcode);
            EXPECT_EQ(0, memcmp(&packet, &m_packet, sizeof(packet)))
                    << int(opcode);
            EXPECT_EQ(payload, bytes_t(m_payload, m_payload + m_length));

            /* Ethernet's padding */
            bytes.resize(bytes.size() + random(50), 0x5a);
            EXPECT_EQ(MLX5SIM_ROCE_VALID, decode(bytes));
            EXPECT_EQ(payload, bytes_t(m_payload, m_payload + m_length));
        }
    }
}

TEST_F(test_wire_decode, a_header_of_ipv4_is_never_a_fragment)
{
    bytes_t bytes = random_bytes(0x04, true, 5);
    uint32_t sum  = 0;

    for (unsigned i = 0; i < 20; i += 2) {
        sum += (bytes[i] << 8) | bytes[i + 1];
    }
    EXPECT_EQ(0xffffu, (sum & 0xffff) + (sum >> 16));
    EXPECT_EQ(bytes_t({0, 0, 0x40, 0}),
              bytes_t(bytes.begin() + 4, bytes.begin() + 8));
}

TEST_F(test_wire_decode, what_is_cut_off_is_refused)
{
    for (uint8_t opcode : opcodes) {
        for (bool is_ipv4 : {true, false}) {
            bytes_t bytes = random_bytes(opcode, is_ipv4, 5);

            for (unsigned length = 0; length < bytes.size(); ++length) {
                EXPECT_EQ(MLX5SIM_ROCE_SHORT, decode(bytes, length))
                        << int(opcode) << ", " << length << " bytes";
            }
        }
    }
}

/* A sender who means it: the headers of the opcode are not there */
TEST_F(test_wire_decode, what_is_short_by_its_own_account_is_refused)
{
    for (uint8_t opcode : opcodes) {
        for (bool is_ipv4 : {true, false}) {
            bytes_t bytes  = random_bytes(opcode, is_ipv4, 0);
            unsigned least = bth(bytes) + 16;

            while (bytes.size() > least) {
                bytes.pop_back();
                repair(&bytes);
                EXPECT_EQ((bytes.size() % 4) ? MLX5SIM_ROCE_BAD_LENGTH :
                                               MLX5SIM_ROCE_SHORT,
                          decode(bytes)) << int(opcode) << ", " << bytes.size();
            }
            while (bytes.size() > bth(bytes)) {
                bytes.pop_back();
                repair(&bytes);
                EXPECT_EQ(MLX5SIM_ROCE_SHORT, decode(bytes));
            }
        }
    }
}

TEST_F(test_wire_decode, a_bit_that_changed_is_found)
{
    for (uint8_t opcode : {0x04, 0x06, 0x13, 0x65}) {
        for (bool is_ipv4 : {true, false}) {
            bytes_t bytes           = random_bytes(opcode, is_ipv4, 5);
            /* routers may change these */
            std::set<unsigned> free = {udp(bytes) + 6, udp(bytes) + 7,
                                       bth(bytes) + 4};

            free.insert({1, is_ipv4 ? 8u : 7u});
            if (is_ipv4) {
                free.insert({10, 11});
            } else {
                free.insert({2, 3});
            }
            for (unsigned bit = 0; bit < 8 * bytes.size(); ++bit) {
                bool is_free = free.count(bit / 8) ||
                               (!is_ipv4 && (bit < 4));

                bytes[bit / 8] ^= 1 << (bit % 8);
                EXPECT_EQ(is_free, decode(bytes) == MLX5SIM_ROCE_VALID)
                        << int(opcode) << ", bit " << (bit % 8) << " of byte "
                        << (bit / 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}

TEST_F(test_wire_decode, other_ip_packets_are_refused)
{
    bytes_t four = random_bytes(0x04, true, 5);
    bytes_t six  = random_bytes(0x04, false, 5);

    EXPECT_EQ(MLX5SIM_ROCE_VALID, with(four, 0, 0x45));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_IP, with(four, 0, 0x46));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_IP, with(four, 0, 0x55));
    EXPECT_EQ(MLX5SIM_ROCE_FRAGMENT, with(four, 6, 0x20)); /* more follow */
    EXPECT_EQ(MLX5SIM_ROCE_FRAGMENT, with(four, 6, 0x50));
    EXPECT_EQ(MLX5SIM_ROCE_FRAGMENT, with(four, 7, 1));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_UDP, with(four, 9, 6));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_UDP, with(four, 23, 0xb8));

    EXPECT_EQ(MLX5SIM_ROCE_VALID, with(six, 7, 1));
    EXPECT_EQ(MLX5SIM_ROCE_FRAGMENT, with(six, 6, 44));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_UDP, with(six, 6, 0x1b));
    EXPECT_EQ(MLX5SIM_ROCE_NOT_UDP, with(six, 42, 0x13));
    for (unsigned gid : {8, 24}) {
        bytes_t mapped = six;

        memset(&mapped[gid], 0, 10);
        memset(&mapped[gid + 10], 0xff, 2);
        EXPECT_EQ(MLX5SIM_ROCE_NOT_IP, decode(mapped));
    }
}

TEST_F(test_wire_decode, lengths_that_differ_are_refused)
{
    for (bool is_ipv4 : {true, false}) {
        bytes_t bytes    = random_bytes(0x04, is_ipv4, 8);
        unsigned ip_at   = is_ipv4 ? 2 : 4;
        unsigned ip_size = bytes.size() - (is_ipv4 ? 0 : 40);
        unsigned size    = bytes.size() - udp(bytes);
        bytes_t longest  = random_bytes(0x04, is_ipv4, 4096);

        for (unsigned other : {0u, 8u, size - 4, size + 4, 0xffffu}) {
            set16(&bytes, udp(bytes) + 4, other);
            EXPECT_EQ(MLX5SIM_ROCE_BAD_LENGTH, decode(bytes)) << other;
        }
        repair(&bytes);
        for (unsigned other = 0; other < 0x10000; ++other) {
            set16(&bytes, ip_at, other);
            EXPECT_EQ(other == ip_size, decode(bytes) == MLX5SIM_ROCE_VALID)
                    << other;
        }
        repair(&bytes);
        EXPECT_EQ(MLX5SIM_ROCE_VALID, decode(bytes));

        EXPECT_EQ(MLX5SIM_ROCE_VALID, decode(longest));
        longest.resize(longest.size() + 4);
        repair(&longest);
        EXPECT_EQ(MLX5SIM_ROCE_BAD_LENGTH, decode(longest));
    }
}

TEST_F(test_wire_decode, each_bit_of_the_transport_header_is_looked_at)
{
    const std::set<unsigned> known(opcodes, opcodes + sizeof(opcodes));
    bytes_t bytes = random_bytes(0x04, true, 64);
    bytes_t empty = random_bytes(0x04, true, 0);
    unsigned at   = bth(bytes);

    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        EXPECT_EQ(known.count(opcode) ? MLX5SIM_ROCE_VALID :
                                        MLX5SIM_ROCE_OPCODE,
                  with(bytes, at, opcode)) << opcode;
    }
    for (unsigned version = 1; version < 16; ++version) {
        EXPECT_EQ(MLX5SIM_ROCE_VERSION, with(bytes, at + 1, 0x40 | version));
    }
    for (unsigned pad = 0; pad < 4; ++pad) {
        EXPECT_EQ(MLX5SIM_ROCE_VALID, with(bytes, at + 1, 0x40 | (pad << 4)));
        EXPECT_EQ(64 - pad, m_length);
        EXPECT_EQ(pad ? MLX5SIM_ROCE_BAD_PAD : MLX5SIM_ROCE_VALID,
                  with(empty, at + 1, 0x40 | (pad << 4)));
    }

    /* an operand of 0x108 bytes has not 8 */
    bytes = random_bytes(0xd3, true, 0);
    EXPECT_EQ(MLX5SIM_ROCE_VALID, with(bytes, bytes.size() - 6, 1));
    EXPECT_EQ(0, m_packet.atomic_size);
}

TEST_F(test_wire_decode, fuzz_never_leaves_the_packet)
{
    unsigned valid = 0;

    m_random.seed(seed::get());
    for (unsigned i = 0; i < seed::cases(30000); ++i) {
        bytes_t bytes  = random_bytes(opcodes[random(sizeof(opcodes))],
                                      random(2), random(40));
        unsigned start = bth(bytes);
        const uint8_t *end;

        for (unsigned changes = random(4); changes > 0; --changes) {
            /* some spare the headers that are checked first */
            unsigned first = random(2) ? 0 : start;

            bytes[first + random(bytes.size() - first)] = random();
        }
        if (random(4) == 0) {
            bytes.resize(48 + random(bytes.size()));
        }
        if (random(4) != 0) {
            repair(&bytes);
        }

        end = m_map + ROOM;
        if (decode(bytes) == MLX5SIM_ROCE_VALID) {
            ++valid;
            ASSERT_GE(m_payload, end - bytes.size());
            ASSERT_LE(m_payload + m_length, end - 4);
        }
    }
    EXPECT_GT(valid, 0u);
}
