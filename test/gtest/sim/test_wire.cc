/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets as bytes, against bytes that were worked out from the tables of the
 * standards: Ethernet, IP and UDP, or LRH and GRH; BTH and what is behind it;
 * ICRC.
 */

#include <sim/engine/mlx5_def.h>
#include <sim/wire/roce.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

typedef enum { ipv4, ipv6, v1, ib, ib_grh } kind_t;

struct request {
    const char *name;
    kind_t     kind;
    uint8_t    type;      /* of the QP */
    uint8_t    opcode;
    int        is_first;
    int        is_last;
    unsigned   length;    /* of the packet's payload: 1, 2, 3... */
    uint32_t   offset;
    const char *bytes;
};

struct answer {
    const char *name;
    uint8_t    opcode;
    uint8_t    syndrome;
    unsigned   length;
    const char *bytes;
};

const request requests[] = {
    {"RC send only, IPv4", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_SEND, 1, 1, 5, 0,
     "0203040506b00203040506a00800" "45200034000040004011ad72c6120001c6120101"
     "c12312b700200000" "04f0ffff0000567880345678" "0102030405000000"
     "256be26b"},
    {"RC send first, IPv6", ipv6,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_SEND, 1, 0, 4, 0,
     "0203040506b00203040506a086dd" "620abcde001c1140"
     "fe80000000000000248a070300a50000" "fe80000000000000248a070300a50010"
     "c12312b7001c0000" "0040ffff0000567800345678" "01020304" "59ab0f7f"},
    {"RC send middle, v1", v1,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_SEND, 0, 0, 4, 0,
     "0203040506b00203040506a08915" "620abcde00141b40"
     "fe80000000000000248a070300a50000" "fe80000000000000248a070300a50010"
     "0140ffff0000567800345678" "01020304" "efc98fa6"},
    {"RC send last with immediate, InfiniBand", ib,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_SEND_IMM, 0, 1, 5, 0,
     "0032002200090011" "03f0ffff0000567880345678" "aabbccdd0102030405000000"
     "9ad8fffc7aee"},
    {"RC send and invalidate, InfiniBand with GRH", ib_grh,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_SEND_INVAL, 1, 1, 4, 0,
     "0033002200120011" "620abcde00181b40" "fe80000000000000248a070300a50000"
     "fe80000000000000248a070300a50010" "1740ffff0000567880345678"
     "00009abc01020304" "4d9b5b231d15"},
    {"RC write first", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_WRITE, 1, 0, 4, 0,
     "0203040506b00203040506a00800" "45200040000040004011ad66c6120001c6120101"
     "c12312b7002c0000" "0640ffff0000567800345678"
     "00007f00112233440000123400000bb801020304" "873b2e2b"},
    {"RC write middle", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_WRITE, 0, 0, 4, 0,
     "0203040506b00203040506a00800" "45200030000040004011ad76c6120001c6120101"
     "c12312b7001c0000" "0740ffff0000567800345678" "01020304" "a6c5444a"},
    {"RC write last with immediate", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_WRITE_IMM, 0, 1, 4, 0,
     "0203040506b00203040506a00800" "45200034000040004011ad72c6120001c6120101"
     "c12312b700200000" "09c0ffff0000567880345678" "aabbccdd01020304"
     "95b4426e"},
    {"RC write only, empty", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_WRITE, 1, 1, 0, 0,
     "0203040506b00203040506a00800" "4520003c000040004011ad6ac6120001c6120101"
     "c12312b700280000" "0a40ffff0000567880345678"
     "00007f00112233440000123400000000" "2c8aed66"},
    {"RC write only with immediate", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_WRITE_IMM, 1, 1, 4, 0,
     "0203040506b00203040506a00800" "45200044000040004011ad62c6120001c6120101"
     "c12312b700300000" "0bc0ffff0000567880345678"
     "00007f00112233440000123400000004aabbccdd01020304" "3e7e55cb"},
    {"RC read request, the rest", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_RDMA_READ, 1, 1, 0, 1024,
     "0203040506b00203040506a00800" "4520003c000040004011ad6ac6120001c6120101"
     "c12312b700280000" "0c40ffff0000567880345678"
     "00007f001122374400001234000007b8" "618941e0"},
    {"RC compare and swap", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_ATOMIC_CS, 1, 1, 0, 0,
     "0203040506b00203040506a00800" "45200048000040004011ad5ec6120001c6120101"
     "c12312b700340000" "1340ffff0000567880345678"
     "00007f00112233440000123400000000000011110000000000002222" "ddbcb899"},
    {"RC fetch and add", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_ATOMIC_FA, 1, 1, 0, 0,
     "0203040506b00203040506a00800" "45200048000040004011ad5ec6120001c6120101"
     "c12312b700340000" "1440ffff0000567880345678"
     "00007f00112233440000123400000000000011110000000000000000" "4e485711"},
    {"masked compare and swap", ipv4,
     MLX5SIM_QPT_RC, MLX5SIM_OPCODE_ATOMIC_MASKED_CS, 1, 1, 0, 0,
     "0203040506b00203040506a00800" "4520005c000040004011ad4ac6120001c6120101"
     "c12312b700480000" "d340ffff0000567880345678"
     "00007f00112233440000123400000000000011110000000000002222"
     "000000000000ff00000000000000ffff00000004" "d4d9bf3a"},
    {"UC send last", ipv4,
     MLX5SIM_QPT_UC, MLX5SIM_OPCODE_SEND, 0, 1, 5, 0,
     "0203040506b00203040506a00800" "45200034000040004011ad72c6120001c6120101"
     "c12312b700200000" "22f0ffff0000567800345678" "0102030405000000"
     "1bc9fa95"},
    {"UD send only with immediate, IPv6", ipv6,
     MLX5SIM_QPT_UD, MLX5SIM_OPCODE_SEND_IMM, 1, 1, 5, 0,
     "0203040506b00203040506a086dd" "620abcde002c1140"
     "fe80000000000000248a070300a50000" "fe80000000000000248a070300a50010"
     "c12312b7002c0000" "65f0ffff0000567800345678"
     "1122334400004321aabbccdd0102030405000000" "e4b9b49b"}
};

const answer answers[] = {
    {"acknowledgement", MLX5SIM_BTH_ACK,
     MLX5SIM_AETH_ACK, 0,
     "0203040506b00203040506a00800" "45200030000040004011ad76c6120001c6120101"
     "c12312b7001c0000" "1140ffff0000432100345678" "1f000077" "daa8e7b1"},
    {"RNR NAK", MLX5SIM_BTH_ACK,
     MLX5SIM_AETH_RNR | 14, 0,
     "0203040506b00203040506a00800" "45200030000040004011ad76c6120001c6120101"
     "c12312b7001c0000" "1140ffff0000432100345678" "2e000077" "1e3770f9"},
    {"read response first", MLX5SIM_BTH_READ_FIRST,
     MLX5SIM_AETH_ACK, 4,
     "0203040506b00203040506a00800" "45200034000040004011ad72c6120001c6120101"
     "c12312b700200000" "0d40ffff0000432100345678" "1f00007701020304"
     "851dae56"},
    {"read response middle", MLX5SIM_BTH_READ_MIDDLE,
     0, 4,
     "0203040506b00203040506a00800" "45200030000040004011ad76c6120001c6120101"
     "c12312b7001c0000" "0e40ffff0000432100345678" "01020304" "f9764988"},
    {"atomic acknowledgement", MLX5SIM_BTH_ATOMIC_ACK,
     MLX5SIM_AETH_ACK, 0,
     "0203040506b00203040506a00800" "45200038000040004011ad6ec6120001c6120101"
     "c12312b700240000" "1240ffff0000432100345678" "1f0000770000000000000055"
     "1268ba62"}
};

const uint8_t payload[] = {1, 2, 3, 4, 5};

mlx5sim_roce_path_t path_of(kind_t kind)
{
    static const uint8_t gids[2][16] = {
        {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x24, 0x8a, 7, 3, 0, 0xa5, 0, 0},
        {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x24, 0x8a, 7, 3, 0, 0xa5, 0, 0x10}
    };
    static const uint8_t mapped[2][16] = {
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 0, 1},
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 1, 1}
    };
    static const uint8_t smac[] = {2, 3, 4, 5, 6, 0xa0};
    static const uint8_t dmac[] = {2, 3, 4, 5, 6, 0xb0};
    mlx5sim_roce_path_t path    = {};

    memcpy(path.route.sgid, (kind == ipv4) ? mapped[0] : gids[0], 16);
    memcpy(path.route.dgid, (kind == ipv4) ? mapped[1] : gids[1], 16);
    path.route.flow_label = 0xabcde;
    path.route.tclass     = 0x20;
    path.route.hop_limit  = 64;
    path.route.is_udp     = (kind == ipv4) || (kind == ipv6);
    path.is_ib            = (kind == ib) || (kind == ib_grh);
    path.has_grh          = kind != ib;
    path.sl               = 3;
    path.slid             = 0x11;
    path.dlid             = 0x22;
    path.sport            = 0xc123;
    memcpy(path.smac, smac, sizeof(smac));
    memcpy(path.dmac, dmac, sizeof(dmac));
    return path;
}

mlx5sim_qp_t qp_of(uint8_t type)
{
    mlx5sim_qp_t qp = {};

    qp.type     = type;
    qp.qpn      = 0x4321;
    qp.dest_qpn = 0x5678;
    qp.pkey     = 0xffff;
    return qp;
}

std::string hex(const uint8_t *bytes, unsigned length)
{
    std::string text;
    char digits[3];

    for (unsigned i = 0; i < length; ++i) {
        snprintf(digits, sizeof(digits), "%02x", bytes[i]);
        text += digits;
    }
    return text;
}

std::string encoded(const mlx5sim_roce_path_t &path,
                    const mlx5sim_roce_t &packet, unsigned length)
{
    uint8_t frame[MLX5SIM_ROCE_MAX];
    unsigned size = mlx5sim_roce_encode(&path, &packet, payload, length, frame);

    return hex(frame, size);
}

/* Read the bytes of a row, and write them again */
std::string rewritten(const char *row)
{
    std::vector<uint8_t> bytes;
    uint8_t out[MLX5SIM_ROCE_MAX];
    mlx5sim_roce_path_t path;
    mlx5sim_roce_t packet;
    const uint8_t *data;
    unsigned length;

    for (const char *digits = row + 28; *digits != '\0'; digits += 2) {
        bytes.push_back(std::stoul(std::string(digits, 2), nullptr, 16));
    }

    EXPECT_EQ(MLX5SIM_ROCE_VALID,
              mlx5sim_roce_decode(bytes.data(), bytes.size(), &path, &packet,
                                  &data, &length));
    EXPECT_EQ(0, memcmp(payload, data, length));
    EXPECT_EQ(0x345678u, packet.psn);
    EXPECT_EQ(0xc123, path.sport);
    return std::string(row, 28) +
           hex(out, mlx5sim_roce_encode_net(&path, &packet, data, length, out));
}

} // namespace

TEST(test_wire, requests_have_the_bytes_of_the_standard)
{
    static const uint8_t imm[] = {0xaa, 0xbb, 0xcc, 0xdd};

    for (const request &row : requests) {
        mlx5sim_qp_t qp   = qp_of(row.type);
        mlx5sim_wqe_t wqe = {};
        mlx5sim_roce_t packet;

        wqe.opcode              = row.opcode;
        wqe.solicited           = 1;
        wqe.length              = ((row.is_first && row.is_last) &&
                                   (row.opcode != MLX5SIM_OPCODE_RDMA_READ)) ?
                                  row.length : 3000;
        wqe.raddr               = 0x7f0011223344;
        wqe.rkey                = 0x1234;
        wqe.atomic.swap_add     = 0x1111;
        wqe.atomic.compare      = (row.opcode == MLX5SIM_OPCODE_ATOMIC_FA) ?
                                  0 : 0x2222;
        wqe.atomic.swap_mask    = 0xff00;
        wqe.atomic.compare_mask = 0xffff;
        wqe.atomic_size         = 4;
        wqe.av.dqpn             = 0x5678;
        wqe.av.qkey             = 0x11223344;
        memcpy(&wqe.imm, imm, sizeof(imm));
        if (row.opcode == MLX5SIM_OPCODE_SEND_INVAL) {
            wqe.imm       = 0x9abc;
            wqe.solicited = 0;
        }

        mlx5sim_roce_request(&qp, &wqe, 0x345678, row.offset, row.is_first,
                             row.is_last, &packet);
        EXPECT_EQ(row.bytes, encoded(path_of(row.kind), packet, row.length))
                << row.name;
    }
}

TEST(test_wire, answers_have_the_bytes_of_the_standard)
{
    for (const answer &row : answers) {
        mlx5sim_qp_t qp = qp_of(MLX5SIM_QPT_RC);
        mlx5sim_roce_t packet;

        mlx5sim_roce_answer(&qp, row.opcode, 0x345678, row.syndrome, 0x77,
                            &packet);
        packet.old = 0x55;
        EXPECT_EQ(row.bytes, encoded(path_of(ipv4), packet, row.length))
                << row.name;
    }
}

TEST(test_wire, bytes_of_the_standard_are_read_without_loss)
{
    for (const request &row : requests) {
        if ((row.kind == ipv4) || (row.kind == ipv6)) {
            EXPECT_EQ(row.bytes, rewritten(row.bytes)) << row.name;
        }
    }
    for (const answer &row : answers) {
        EXPECT_EQ(row.bytes, rewritten(row.bytes)) << row.name;
    }
}

/* The local packet that IBTA volume 1 has as a sample of its ICRC */
TEST(test_wire, the_standards_sample_has_its_icrc)
{
    static const uint8_t sample[] = {
        0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24,
        0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71,
        0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00,
        0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4,
        0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00
    };
    mlx5sim_roce_path_t path = path_of(ib);

    EXPECT_EQ(0x5ab72596u, mlx5sim_roce_icrc(&path, sample, sizeof(sample)));
}

TEST(test_wire, an_answer_goes_the_way_back)
{
    mlx5sim_roce_path_t there = path_of(ipv4), back = there;

    mlx5sim_roce_return(&back);
    EXPECT_EQ(0, memcmp(there.route.sgid, back.route.dgid, 16));
    EXPECT_EQ(0, memcmp(there.route.dgid, back.route.sgid, 16));
    EXPECT_EQ(0, memcmp(there.smac, back.dmac, 6));
    EXPECT_EQ(0, memcmp(there.dmac, back.smac, 6));
    EXPECT_EQ(there.slid, back.dlid);
    EXPECT_EQ(there.dlid, back.slid);
    mlx5sim_roce_return(&back);
    EXPECT_EQ(0, memcmp(&there, &back, sizeof(there)));
}

TEST(test_wire, flow_labels_and_qp_numbers_choose_the_port)
{
    EXPECT_EQ(0xc000 | (0x3cde ^ 0x2a), mlx5sim_roce_sport(0xabcde, 1, 2));
    /* the product is 0x5fcb99ae5, and the label 0x9c52e */
    EXPECT_EQ(0xc509, mlx5sim_roce_sport(0, 0x12345, 0x54321));
    EXPECT_EQ(mlx5sim_roce_sport(0, 0x12345, 0x54321),
              mlx5sim_roce_sport(0, 0x54321, 0x12345));
}
