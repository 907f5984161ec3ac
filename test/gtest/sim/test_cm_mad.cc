/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages of the connection manager as bytes. Where each field is was written
 * down from the tables of IBTA volume 1, chapter 12, and the kernel's
 * include/rdma/ibta_vol1_c12.h, by hand: byte behind the header, and the bits
 * that it has there.
 */

#include <sim/rdmacm/mad.h>

#include <common/seed.h>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace {

const unsigned header = 24; /* bytes: IBTA 13.4.2 */

using mad_t   = mlx5sim_cm_mad_t;
using bytes_t = std::vector<uint8_t>;

bytes_t encode(const mad_t &mad)
{
    bytes_t bytes(MLX5SIM_CM_MAD_LENGTH, 0xaa);

    mlx5sim_cm_mad_encode(&mad, bytes.data());
    return bytes;
}

/* A field with all of its bits set, or with bytes that count from 1 */
struct field {
    const char                  *name;
    uint16_t                    attr;
    unsigned                    offset;
    bytes_t                     bytes;
    std::function<void(mad_t&)> set;
};

bytes_t counting(unsigned size)
{
    bytes_t bytes(size);

    for (unsigned i = 0; i < size; ++i) {
        bytes[i] = i + 1;
    }
    return bytes;
}

template<typename T> void count(T &array, unsigned size = sizeof(T))
{
    memcpy(array, counting(size).data(), size);
}

const field fields[] = {
    {"comm", 0x10, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.local_comm = 0x01020304; }},
    {"service", 0x10, 8, {0, 0, 0, 0, 1, 6, 0x1d, 0x2f}, [](mad_t &m) {
        m.service = 0x01061d2full; }},
    {"guid", 0x10, 16, {1, 2, 3, 4, 5, 6, 7, 8}, [](mad_t &m) {
        m.guid = 0x0102030405060708ull; }},
    {"qkey", 0x10, 28, {0x80, 1, 0, 2}, [](mad_t &m) { m.qkey = 0x80010002; }},
    {"qpn", 0x10, 32, {0xff, 0xff, 0xff, 0}, [](mad_t &m) {
        m.qpn = 0xffffff; }},
    {"responder_resources", 0x10, 35, {0xff}, [](mad_t &m) {
        m.responder_resources = 0xff; }},
    {"initiator_depth", 0x10, 39, {0xff}, [](mad_t &m) {
        m.initiator_depth = 0xff; }},
    /* of the receiver and the sender: the upper 5 bits of bytes 43 and 47 */
    {"response_timeout", 0x10, 43, {0xf8, 0, 0, 0, 0xf8}, [](mad_t &m) {
        m.response_timeout = 31; }},
    {"transport", 0x10, 43, {0x06}, [](mad_t &m) { m.transport = 3; }},
    {"flow_control", 0x10, 43, {0x01}, [](mad_t &m) { m.flow_control = 1; }},
    {"psn", 0x10, 44, {0xff, 0xff, 0xff, 0}, [](mad_t &m) {
        m.psn = 0xffffff; }},
    {"retry_count", 0x10, 47, {0x07}, [](mad_t &m) { m.retry_count = 7; }},
    {"pkey", 0x10, 48, {0x80, 0x01}, [](mad_t &m) { m.pkey = 0x8001; }},
    {"mtu", 0x10, 50, {0xf0}, [](mad_t &m) { m.mtu = 15; }},
    {"rnr_retry_count", 0x10, 50, {0x07}, [](mad_t &m) {
        m.rnr_retry_count = 7; }},
    {"max_retries", 0x10, 51, {0xf0}, [](mad_t &m) { m.max_retries = 15; }},
    {"srq", 0x10, 51, {0x08}, [](mad_t &m) { m.srq = 1; }},
    {"sgid", 0x10, 56, counting(16), [](mad_t &m) { count(m.sgid); }},
    {"dgid", 0x10, 72, counting(16), [](mad_t &m) { count(m.dgid); }},
    {"rate", 0x10, 91, {0x3f}, [](mad_t &m) { m.rate = 63; }},
    {"tclass", 0x10, 92, {0xff}, [](mad_t &m) { m.tclass = 0xff; }},
    {"hop_limit", 0x10, 93, {0xff}, [](mad_t &m) { m.hop_limit = 0xff; }},
    {"ack_timeout", 0x10, 95, {0xf8}, [](mad_t &m) { m.ack_timeout = 31; }},
    {"data", 0x10, 140, counting(92), [](mad_t &m) { count(m.data, 92); }},

    {"local_comm", 0x11, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.local_comm = 0x01020304; }},
    {"remote_comm", 0x11, 4, {1, 2, 3, 4}, [](mad_t &m) {
        m.remote_comm = 0x01020304; }},
    {"of", 0x11, 8, {0xc0}, [](mad_t &m) { m.of = 3; }},
    {"service_timeout", 0x11, 9, {0xf8}, [](mad_t &m) {
        m.service_timeout = 31; }},
    {"data", 0x11, 10, counting(222), [](mad_t &m) { count(m.data, 222); }},

    {"local_comm", 0x12, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.local_comm = 0x01020304; }},
    {"remote_comm", 0x12, 4, {1, 2, 3, 4}, [](mad_t &m) {
        m.remote_comm = 0x01020304; }},
    {"of", 0x12, 8, {0xc0}, [](mad_t &m) { m.of = 3; }},
    {"info_length", 0x12, 9, {0xfe}, [](mad_t &m) { m.info_length = 127; }},
    {"reason", 0x12, 10, {1, 28}, [](mad_t &m) { m.reason = 0x011c; }},
    {"guid", 0x12, 12, {1, 2, 3, 4, 5, 6, 7, 8}, [](mad_t &m) {
        m.guid = 0x0102030405060708ull; }},
    {"data", 0x12, 84, counting(148), [](mad_t &m) { count(m.data, 148); }},

    {"local_comm", 0x13, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.local_comm = 0x01020304; }},
    {"remote_comm", 0x13, 4, {1, 2, 3, 4}, [](mad_t &m) {
        m.remote_comm = 0x01020304; }},
    {"qkey", 0x13, 8, {0x80, 1, 0, 2}, [](mad_t &m) { m.qkey = 0x80010002; }},
    {"qpn", 0x13, 12, {0xff, 0xff, 0xff, 0}, [](mad_t &m) {
        m.qpn = 0xffffff; }},
    {"psn", 0x13, 20, {0xff, 0xff, 0xff, 0}, [](mad_t &m) {
        m.psn = 0xffffff; }},
    {"responder_resources", 0x13, 24, {0xff}, [](mad_t &m) {
        m.responder_resources = 0xff; }},
    {"initiator_depth", 0x13, 25, {0xff}, [](mad_t &m) {
        m.initiator_depth = 0xff; }},
    {"ack_delay", 0x13, 26, {0xf8}, [](mad_t &m) { m.ack_delay = 31; }},
    {"flow_control", 0x13, 26, {0x01}, [](mad_t &m) { m.flow_control = 1; }},
    {"rnr_retry_count", 0x13, 27, {0xe0}, [](mad_t &m) {
        m.rnr_retry_count = 7; }},
    {"srq", 0x13, 27, {0x10}, [](mad_t &m) { m.srq = 1; }},
    {"guid", 0x13, 28, {1, 2, 3, 4, 5, 6, 7, 8}, [](mad_t &m) {
        m.guid = 0x0102030405060708ull; }},
    {"data", 0x13, 36, counting(196), [](mad_t &m) { count(m.data, 196); }},

    {"local_comm", 0x14, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.local_comm = 0x01020304; }},
    {"remote_comm", 0x14, 4, {1, 2, 3, 4}, [](mad_t &m) {
        m.remote_comm = 0x01020304; }},
    {"data", 0x14, 8, counting(224), [](mad_t &m) { count(m.data, 224); }},

    {"local_comm", 0x15, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.local_comm = 0x01020304; }},
    {"remote_comm", 0x15, 4, {1, 2, 3, 4}, [](mad_t &m) {
        m.remote_comm = 0x01020304; }},
    {"qpn", 0x15, 8, {0xff, 0xff, 0xff, 0}, [](mad_t &m) {
        m.qpn = 0xffffff; }},
    {"data", 0x15, 12, counting(220), [](mad_t &m) { count(m.data, 220); }},

    {"local_comm", 0x16, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.local_comm = 0x01020304; }},
    {"remote_comm", 0x16, 4, {1, 2, 3, 4}, [](mad_t &m) {
        m.remote_comm = 0x01020304; }},
    {"data", 0x16, 8, counting(224), [](mad_t &m) { count(m.data, 224); }},

    {"request", 0x17, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.local_comm = 0x01020304; }},
    {"pkey", 0x17, 4, {0x80, 0x01}, [](mad_t &m) { m.pkey = 0x8001; }},
    {"service", 0x17, 8, {0, 0, 0, 0, 1, 0x11, 0x1d, 0x2f}, [](mad_t &m) {
        m.service = 0x01111d2full; }},
    {"data", 0x17, 16, counting(216), [](mad_t &m) { count(m.data, 216); }},

    {"request", 0x18, 0, {1, 2, 3, 4}, [](mad_t &m) {
        m.remote_comm = 0x01020304; }},
    {"status", 0x18, 4, {2}, [](mad_t &m) { m.reason = 2; }},
    {"qpn", 0x18, 8, {0xff, 0xff, 0xff, 0}, [](mad_t &m) {
        m.qpn = 0xffffff; }},
    {"service", 0x18, 12, {0, 0, 0, 0, 1, 0x11, 0x1d, 0x2f}, [](mad_t &m) {
        m.service = 0x01111d2full; }},
    {"qkey", 0x18, 20, {1, 2, 3, 4}, [](mad_t &m) { m.qkey = 0x01020304; }},
    {"data", 0x18, 96, counting(136), [](mad_t &m) { count(m.data, 136); }}
};

} // namespace


TEST(test_cm_mad, the_header_is_that_of_the_class)
{
    const bytes_t wanted = {1, 7, 2, 3, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
                            0, 0x14, 0, 0, 0, 0, 0, 0};
    mad_t mad            = {};
    bytes_t bytes;

    mad.attr = MLX5SIM_CM_MAD_RTU;
    mad.tid  = 0x0102030405060708ull;
    bytes    = encode(mad);
    bytes.resize(header);
    EXPECT_EQ(wanted, bytes);
}

TEST(test_cm_mad, fields_are_where_the_standard_has_them)
{
    for (const field &f : fields) {
        SCOPED_TRACE(testing::Message() << f.name << " of 0x" << std::hex <<
                     f.attr);
        mad_t empty = {}, mad = {}, read;
        bytes_t wanted;

        empty.attr = f.attr;
        mad.attr   = f.attr;
        f.set(mad);
        /* nothing else has changed */
        wanted = encode(empty);
        std::copy(f.bytes.begin(), f.bytes.end(),
                  wanted.begin() + header + f.offset);
        EXPECT_EQ(wanted, encode(mad));

        ASSERT_EQ(0, mlx5sim_cm_mad_decode(wanted.data(), wanted.size(),
                                           &read));
        EXPECT_EQ(0, memcmp(&mad, &read, sizeof(mad)));
    }
}

/* Neighbours in a byte, and bits that are too many, do not touch each other */
TEST(test_cm_mad, numbers_are_cut_to_their_fields)
{
    for (const field &f : fields) {
        SCOPED_TRACE(testing::Message() << f.name << " of 0x" << std::hex <<
                     f.attr);
        mad_t all, mad, read;
        bytes_t bytes, once;

        memset(&all, 0xff, sizeof(all));
        all.attr = f.attr;
        bytes    = encode(all);
        ASSERT_EQ(0, mlx5sim_cm_mad_decode(bytes.data(), bytes.size(), &read));
        once = encode(read);
        EXPECT_EQ(bytes, once);

        mad = read;
        f.set(mad);
        for (unsigned i = 0; i < f.bytes.size(); ++i) {
            bytes[header + f.offset + i] = encode(mad)[header + f.offset + i];
        }
        EXPECT_EQ(bytes, encode(mad));
    }
}

/* RoCE has no LIDs: IB_LID_PERMISSIVE */
TEST(test_cm_mad, lids_of_a_request)
{
    mad_t mad = {};

    mad.attr            = MLX5SIM_CM_MAD_REQ;
    mad.slid            = 0x1234;
    mad.dlid            = MLX5SIM_CM_MAD_NO_LID;
    const bytes_t bytes = encode(mad);
    EXPECT_EQ(bytes_t({0x12, 0x34, 0xff, 0xff}),
              bytes_t(bytes.begin() + header + 52,
                      bytes.begin() + header + 56));
}

TEST(test_cm_mad, what_is_no_message_is_refused)
{
    /* byte of the header, a value that it must not have */
    const std::pair<unsigned, uint8_t> wrong[] = {
        {0, 0}, {0, 2}, {1, 3}, {1, 4}, {1, 0x81}, {2, 1}, {2, 3}, {3, 1},
        {3, 0x81}, {4, 1}, {5, 0x1c}, {16, 1}, {17, 0}, {17, 0x0f},
        {17, 0x19} /* LAP */, {17, 0x1a} /* APR */, {17, 0xff}
    };
    mad_t mad = {}, read;

    mad.attr            = MLX5SIM_CM_MAD_REQ;
    const bytes_t right = encode(mad);
    ASSERT_EQ(0, mlx5sim_cm_mad_decode(right.data(), right.size(), &read));
    for (auto &each : wrong) {
        bytes_t bytes = right;

        bytes[each.first] = each.second;
        EXPECT_EQ(-1, mlx5sim_cm_mad_decode(bytes.data(), bytes.size(), &read))
                << each.first << " " << unsigned(each.second);
    }
}

/* Those that are shorter end where a page does that can't be read */
TEST(test_cm_mad, other_lengths_are_refused)
{
    const size_t page = sysconf(_SC_PAGESIZE);
    mad_t mad         = {}, read;
    uint8_t *pages;

    pages = (uint8_t*)mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, pages);
    ASSERT_EQ(0, mprotect(pages + 2 * page, page, PROT_NONE));
    mad.attr            = MLX5SIM_CM_MAD_REP;
    const bytes_t right = encode(mad);
    for (unsigned length = 0; length <= page; ++length) {
        uint8_t *bytes = pages + 2 * page - length;

        memcpy(bytes, right.data(), std::min<size_t>(length, right.size()));
        ASSERT_EQ((length == 256) ? 0 : -1,
                  mlx5sim_cm_mad_decode(bytes, length, &read)) << length;
    }
    munmap(pages, 3 * page);
}

/* Whatever the bytes are, what was understood is said in the same way */
TEST(test_cm_mad, random_messages_are_read_and_written_again)
{
    std::mt19937_64 random(seed::get());
    bytes_t bytes(MLX5SIM_CM_MAD_LENGTH);

    for (int i = 0; i < 2000; ++i) {
        mad_t mad, again;

        for (uint8_t &byte : bytes) {
            byte = random();
        }
        const bytes_t head = {1, 7, 2, 3, 0, 0};
        std::copy(head.begin(), head.end(), bytes.begin());
        bytes[16] = 0;
        bytes[17] = 0x10 + random() % 9;
        ASSERT_EQ(0, mlx5sim_cm_mad_decode(bytes.data(), bytes.size(), &mad));
        if (mad.attr == MLX5SIM_CM_MAD_REQ) {
            /* two fields of one kind, of which the sender's counts */
            bytes[header + 43] = (bytes[header + 43] & 7) |
                                 (bytes[header + 47] & 0xf8);
        }
        const bytes_t written = encode(mad);
        ASSERT_EQ(0, mlx5sim_cm_mad_decode(written.data(), written.size(),
                                           &again));
        ASSERT_EQ(0, memcmp(&mad, &again, sizeof(mad)));
    }
}

TEST(test_cm_mad, addresses_of_requests)
{
    const bytes_t ipv4 = {0, 0x40, 0x1d, 0x2f,
                          0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2,
                          0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, 1};
    mlx5sim_cm_mad_ip_t ip;
    bytes_t out(MLX5SIM_CM_MAD_IP_LENGTH), wrong;

    ASSERT_EQ(0, mlx5sim_cm_mad_get_ip(ipv4.data(), &ip));
    EXPECT_FALSE(ip.is_ipv6);
    EXPECT_EQ(0x1d2f, ip.port);
    EXPECT_EQ(0, memcmp(ip.src, "\x0a\x4d\x00\x02", 4));
    EXPECT_EQ(0, memcmp(ip.dst, "\x0a\x4d\x00\x01", 4));
    mlx5sim_cm_mad_put_ip(&ip, out.data());
    EXPECT_EQ(ipv4, out);

    bytes_t ipv6 = {0, 0x60, 0x1d, 0x2f};
    for (int i = 0; i < 32; ++i) {
        ipv6.push_back(i);
    }
    ASSERT_EQ(0, mlx5sim_cm_mad_get_ip(ipv6.data(), &ip));
    EXPECT_TRUE(ip.is_ipv6);
    mlx5sim_cm_mad_put_ip(&ip, out.data());
    EXPECT_EQ(ipv6, out);

    /* another version of them, and of IP */
    wrong    = ipv4;
    wrong[0] = 1;
    EXPECT_EQ(-1, mlx5sim_cm_mad_get_ip(wrong.data(), &ip));
    for (unsigned version = 0; version < 16; ++version) {
        wrong    = ipv4;
        wrong[1] = version << 4;
        EXPECT_EQ(((version == 4) || (version == 6)) ? 0 : -1,
                  mlx5sim_cm_mad_get_ip(wrong.data(), &ip));
    }
}
