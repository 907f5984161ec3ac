/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_conn_model.h>

#include <common/seed.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

using namespace sep_conn_model;

namespace {

class test_sep_conn_msg : public test_conn, protected conn_pair {
};

} // namespace


TEST_F(test_sep_conn_msg, packets_survive_the_wire_format)
{
    for (auto type : {UCT_SEP_CONN_MSG_REQ, UCT_SEP_CONN_MSG_REP,
                      UCT_SEP_CONN_MSG_RTU, UCT_SEP_CONN_MSG_REJ}) {
        uct_sep_conn_msg_t msg = message(a, b, type, 0x11223344, 0x55667788);
        uct_sep_conn_msg_t out;

        msg.reason                = (type == UCT_SEP_CONN_MSG_REJ) ?
                                    UCT_SEP_CONN_REJ_STALE_IFACE :
                                    UCT_SEP_CONN_REJ_NONE;
        msg.qp.max_rd_atomic      = 16;
        msg.qp.max_dest_rd_atomic = 9;
        msg.qp.responder_qpn      = 0xabcdef;

        auto bytes = to_bytes(msg);
        ASSERT_EQ(UCT_SEP_CONN_PARSE_OK,
                  uct_sep_conn_msg_parse(bytes.data(), bytes.size(), &out));
        EXPECT_EQ(type, out.type);
        EXPECT_EQ(msg.reason, out.reason);
        EXPECT_EQ(msg.dst_id, out.dst_id);
        EXPECT_EQ(0, memcmp(&msg.src, &out.src, sizeof(msg.src)));
        EXPECT_EQ((type == UCT_SEP_CONN_MSG_REJ) ? 0 : msg.src_epoch,
                  out.src_epoch);
        EXPECT_EQ((type == UCT_SEP_CONN_MSG_REQ) ? 0 : msg.dst_epoch,
                  out.dst_epoch);
        EXPECT_EQ((type == UCT_SEP_CONN_MSG_REJ) ? 0 : msg.src_nonce,
                  out.src_nonce);
        EXPECT_EQ(msg.dst_nonce, out.dst_nonce);
        if ((type == UCT_SEP_CONN_MSG_REQ) || (type == UCT_SEP_CONN_MSG_REP)) {
            EXPECT_EQ(0, memcmp(&msg.qp, &out.qp, sizeof(msg.qp)));
        }
    }
}

TEST_F(test_sep_conn_msg, wire_bytes_are_what_the_format_says)
{
    auto msg = message(a, b, UCT_SEP_CONN_MSG_REP, 0x01020304, 0x05060708,
                       0x0a0b0c);

    msg.src_nonce = 0x1112131415161718ull;
    msg.dst_nonce = 0x2122232425262728ull;
    auto bytes    = to_bytes(msg);

    EXPECT_EQ(104u, bytes.size());
    EXPECT_EQ(0, memcmp(bytes.data(), "SEPc\x07\x02\x00\x68", 8));
    EXPECT_EQ(0, memcmp(&bytes[64], "\x01\x02\x03\x04\x05\x06\x07\x08", 8));
    EXPECT_EQ(0, memcmp(&bytes[72], "\x11\x12\x13\x14\x15\x16\x17\x18"
                        "\x21\x22\x23\x24\x25\x26\x27\x28", 16));
    EXPECT_EQ(0, memcmp(&bytes[88], "\x00\x0a\x0b\x0c", 4));
}

TEST_F(test_sep_conn_msg, every_other_length_is_noticed)
{
    uct_sep_conn_msg_t out;

    for (size_t length = 0; length < 300; ++length) {
        /* On the heap and no longer than it is, for the sanitizer */
        auto bytes = to_bytes(any_message(a, b));
        bytes.resize(length);
        bytes.shrink_to_fit();
        EXPECT_EQ(length == sizeof(uct_sep_conn_packet_t),
                  uct_sep_conn_msg_parse(bytes.data(), length, &out) ==
                          UCT_SEP_CONN_PARSE_OK) << length;
    }
}

TEST_F(test_sep_conn_msg, parse_says_what_is_wrong)
{
    uct_sep_conn_msg_t out;

    auto parse = [&](std::vector<uint8_t> bytes) {
        return uct_sep_conn_msg_parse(bytes.data(), bytes.size(), &out);
    };
    auto bytes = to_bytes(any_message(a, b));
    bytes[0]  ^= 1;
    EXPECT_EQ(UCT_SEP_CONN_PARSE_MAGIC, parse(bytes));

    bytes    = to_bytes(any_message(a, b));
    bytes[4] = UCT_SEP_ADDR_VERSION + 1;
    EXPECT_EQ(UCT_SEP_CONN_PARSE_VERSION, parse(bytes));
    /* Also if a later version is longer */
    bytes.resize(200);
    EXPECT_EQ(UCT_SEP_CONN_PARSE_VERSION, parse(bytes));

    bytes     = to_bytes(any_message(a, b));
    bytes[10] = 1;
    EXPECT_EQ(UCT_SEP_CONN_PARSE_FIELD, parse(bytes));
    bytes.resize(sizeof(uct_sep_conn_packet_t) - 1);
    EXPECT_EQ(UCT_SEP_CONN_PARSE_LENGTH, parse(bytes));
}

TEST_F(test_sep_conn_msg, fields_out_of_range_are_refused)
{
    uct_sep_conn_msg_t out;

    std::vector<std::pair<const char*,
                          std::function<void(uct_sep_conn_msg_t&)>>> cases = {
        {"type 0", [](auto &m) { m.type = (uct_sep_conn_msg_type_t)0; }},
        {"type 5", [](auto &m) { m.type = UCT_SEP_CONN_MSG_LAST; }},
        {"no reason", [](auto &m) { m.type = UCT_SEP_CONN_MSG_REJ; }},
        {"unknown reason", [](auto &m) { m.type   = UCT_SEP_CONN_MSG_REJ;
                                         m.reason = UCT_SEP_CONN_REJ_LAST; }},
        {"no source epoch", [](auto &m) { m.src_epoch = 0; }},
        {"no destination epoch", [](auto &m) { m.dst_epoch = 0; }},
        {"no source nonce", [](auto &m) { m.src_nonce = 0; }},
        {"no destination nonce", [](auto &m) { m.dst_nonce = 0; }},
        {"a rejection without nonce", [](auto &m) {
            m.type      = UCT_SEP_CONN_MSG_REJ;
            m.reason    = UCT_SEP_CONN_REJ_STALE_EPOCH;
            m.dst_nonce = 0;
        }},
        {"no destination id", [](auto &m) { m.dst_id = 0; }},
        {"destination id of 56 bits", [](auto &m) { m.dst_id |= 1ull << 55; }},
        {"no source id", [](auto &m) { memset(m.src.iface.flags_id, 0, 7); }},
        {"source qp 0", [](auto &m) { memset(m.src.iface.ud_qpn, 0, 3); }},
        {"source version", [](auto &m) { ++m.src.iface.version; }},
        {"device flags", [](auto &m) { m.src.dev.flags = 0x80; }},
        {"no lid", [](auto &m) { m.src.dev.lid = 0; }},
        {"qp 0", [](auto &m) { m.qp.qpn = 0; }},
        {"qp of 25 bits", [](auto &m) { m.qp.qpn = 1 << 24; }},
        {"psn of 25 bits", [](auto &m) { m.qp.psn = 1 << 24; }},
        {"mtu 0", [](auto &m) { m.qp.path_mtu = 0; }},
        {"mtu 6", [](auto &m) { m.qp.path_mtu = 6; }}
    };

    for (const auto &c : cases) {
        uct_sep_conn_msg_t msg = any_message(a, b);
        c.second(msg);
        auto bytes = to_bytes(msg);
        EXPECT_EQ(UCT_SEP_CONN_PARSE_FIELD,
                  uct_sep_conn_msg_parse(bytes.data(), bytes.size(), &out))
                << c.first;
    }
}

TEST_F(test_sep_conn_msg, random_bytes_are_never_accepted)
{
    std::mt19937_64 rng(seed::get());
    uct_sep_conn_msg_t out;

    for (unsigned i = 0; i < seed::cases(200000); ++i) {
        uint8_t bytes[200];
        size_t length = rng() % sizeof(bytes);

        for (size_t j = 0; j < length; ++j) {
            bytes[j] = rng();
        }
        if (rng() % 2) {
            /* Get past the first checks */
            memcpy(bytes, "SEPc\x06", 5);
            length = sizeof(uct_sep_conn_packet_t);
        }
        ASSERT_NE(UCT_SEP_CONN_PARSE_OK,
                  uct_sep_conn_msg_parse(bytes, length, &out));
    }
}

TEST_F(test_sep_conn_msg, packets_for_random_others_never_change_a_state)
{
    std::mt19937_64 rng(seed::get());
    node &c = w.add();

    connect();
    a.start(a.conn(c.self)); /* This one stays half open */
    w.wire.clear();

    uct_sep_conn_t before_ab = a.conn(b.self).super;
    uct_sep_conn_t before_ac = a.conn(c.self).super;
    for (unsigned i = 0; i < seed::cases(100000); ++i) {
        const node &from = (rng() % 2) ? b : c;
        auto type        = static_cast<uct_sep_conn_msg_type_t>(1 + rng() % 4);
        auto msg         = message(from, a, type, 1 + rng() % 4,
                                   1 + rng() % 4);

        msg.dst_id      ^= 1ull << (rng() % 64);
        auto bytes       = to_bytes(msg);
        bytes[rng() % 4] ^= (rng() % 2) << (rng() % 8); /* the magic */
        a.receive(bytes);
        if ((rng() % 8) == 0) {
            bytes.resize(rng() % bytes.size());
            a.receive(bytes);
        }
    }

    EXPECT_EQ(0, memcmp(&before_ab, &a.conn(b.self).super, sizeof(before_ab)));
    EXPECT_EQ(0, memcmp(&before_ac, &a.conn(c.self).super, sizeof(before_ac)));
    EXPECT_EQ(2u, a.conns.size());

    /* Who asks for somebody else hears that he is not here */
    EXPECT_FALSE(w.wire.empty());
    for (const auto &packet : w.wire) {
        uct_sep_conn_msg_t out;

        ASSERT_EQ(UCT_SEP_CONN_PARSE_OK,
                  uct_sep_conn_msg_parse(packet.bytes.data(),
                                         packet.bytes.size(), &out));
        EXPECT_EQ(UCT_SEP_CONN_MSG_REJ, out.type);
        EXPECT_EQ(UCT_SEP_CONN_REJ_STALE_IFACE, out.reason);
    }
}

TEST_F(test_sep_conn_msg, random_valid_packets_without_sense_break_nothing)
{
    uint64_t established = 0;

    /* world::check() looks at every step */
    for (unsigned i = 0; (i < seed::cases(3000)) && !HasFailure(); ++i) {
        SCOPED_TRACE(testing::Message() << "run " << i);
        random_chooser choose(seed::get(i));
        conn_pair p;
        world &w       = p.w;
        node &a        = p.a;
        node &b        = p.b;
        model_conn &ab = p.ab;

        a.env.max_retries = b.env.max_retries = 4;
        w.is_peer_real                        = false;
        for (unsigned step = 0; step < 60; ++step) {
            switch (choose.pick(8)) {
            case 0:
                a.start(ab);
                break;
            case 1:
                if (ab.must_reset || choose.pick(2)) {
                    a.reset(ab);
                }
                break;
            case 2:
                w.now = std::max(w.now, ab.super.deadline);
                a.timeout(ab);
                break;
            default: {
                auto type    = static_cast<uct_sep_conn_msg_type_t>(
                        1 + choose.pick(4));
                uint32_t qpn = 0x100000 + choose.pick(8);
                auto msg     = message(b, a, type, 1 + choose.pick(6),
                                       1 + choose.pick(6), qpn);
                if (type == UCT_SEP_CONN_MSG_REJ) {
                    msg.reason = static_cast<uct_sep_conn_rej_t>(
                            1 + choose.pick(UCT_SEP_CONN_REJ_LAST - 1));
                }
                a.receive(to_bytes(msg));
                break;
            }
            }
        }
        established += ab.established;
        a.close();
        EXPECT_EQ(0u, w.alive_qps(a));
    }

    EXPECT_GT(established, seed::cases(100));
}
