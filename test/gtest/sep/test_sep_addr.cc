/* SPDX-License-Identifier: BSD-3-Clause */

#include <uct/ib/sep/hub/sep_hub_addr.h>
#include <uct/ib/sep/port/sep_addr_rdmacm.h>

#include <common/seed.h>

#include <gtest/gtest.h>
#include <ucs/debug/log.h>

#include <arpa/inet.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

class test_sep_addr : public ::testing::Test {
protected:
    static void set_gid(uct_sep_port_t &port, const char *text)
    {
        ASSERT_EQ(1, inet_pton(AF_INET6, text, port.gid.raw));
    }

    static uct_sep_port_t ib_port(uint16_t lid = 5)
    {
        uct_sep_port_t port = {};

        port.port_num  = 1;
        port.lid       = lid;
        port.pkey      = 0xffff;
        port.hop_limit = 64;
        port.sl        = 3;
        set_gid(port, "fe80::2c9:300:0:5");
        return port;
    }

    static uct_sep_port_t roce_port(const char *gid = "::ffff:10.0.0.1")
    {
        uct_sep_port_t port = {};

        port.port_num      = 2;
        port.is_roce       = 1;
        port.is_roce_v2    = 1;
        port.pkey          = 0xffff;
        port.gid_index     = 3;
        port.hop_limit     = 64;
        port.traffic_class = 106;
        set_gid(port, gid);
        return port;
    }

    static uct_sep_device_addr_t pack(const uct_sep_port_t &port)
    {
        uct_sep_device_addr_t addr;

        uct_sep_device_addr_pack(&port, &addr);
        return addr;
    }

    static bool is_valid(const uct_sep_device_addr_t &addr)
    {
        return uct_sep_device_addr_check(&addr) == UCS_OK;
    }

    static bool is_reachable(const uct_sep_port_t &from,
                             const uct_sep_port_t &to)
    {
        uct_sep_device_addr_t addr = pack(to);
        return uct_sep_device_addr_is_reachable(&from, &addr);
    }

    /* What is handed over, in memory that ends where it ends */
    static uct_sep_device_addr_t
    read(const uct_sep_port_t &port, const std::string &bytes)
    {
        std::vector<char> packed(bytes.begin(), bytes.end());
        uct_sep_device_addr_t addr;

        packed.shrink_to_fit();
        uct_sep_device_addr_read(&port,
                                 (const uct_device_addr_t*)packed.data(),
                                 &addr);
        return addr;
    }

    static std::string gid(const char *text)
    {
        char raw[16];

        EXPECT_EQ(1, inet_pton(AF_INET6, text, raw));
        return std::string(raw, sizeof(raw));
    }
};

TEST_F(test_sep_addr, packed_addresses_are_valid)
{
    uct_sep_port_t no_gid = ib_port();
    memset(no_gid.gid.raw, 0, sizeof(no_gid.gid.raw));

    EXPECT_TRUE(is_valid(pack(ib_port())));
    EXPECT_TRUE(is_valid(pack(no_gid)));
    EXPECT_TRUE(is_valid(pack(roce_port())));
    EXPECT_TRUE(is_valid(pack(roce_port("fe80::1"))));
}

TEST_F(test_sep_addr, the_same_port_always_has_the_same_bytes)
{
    uct_sep_device_addr_t addr1, addr2;
    uct_sep_port_t port = roce_port();

    memset(&addr1, 0xaa, sizeof(addr1));
    memset(&addr2, 0x55, sizeof(addr2));
    uct_sep_device_addr_pack(&port, &addr1);
    uct_sep_device_addr_pack(&port, &addr2);
    EXPECT_EQ(0, memcmp(&addr1, &addr2, sizeof(addr1)));
}

TEST_F(test_sep_addr, a_port_without_any_address_is_invalid)
{
    uct_sep_port_t port = ib_port(0);
    memset(port.gid.raw, 0, sizeof(port.gid.raw));
    EXPECT_FALSE(is_valid(pack(port)));

    port         = roce_port();
    memset(port.gid.raw, 0, sizeof(port.gid.raw));
    EXPECT_FALSE(is_valid(pack(port)));
}

TEST_F(test_sep_addr, contradictions_are_invalid)
{
    uct_sep_device_addr_t addr = pack(ib_port());
    addr.flags |= UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V2;
    EXPECT_FALSE(is_valid(addr)) << "RoCE on InfiniBand";

    addr        = pack(ib_port());
    addr.flags &= ~UCT_SEP_DEVICE_ADDR_FLAG_GID;
    EXPECT_FALSE(is_valid(addr)) << "GID without its flag";

    addr      = pack(ib_port());
    addr.path = UCT_SEP_MAX_PATHS;
    EXPECT_FALSE(is_valid(addr)) << "path";

    addr     = pack(roce_port());
    addr.lid = htons(1);
    EXPECT_FALSE(is_valid(addr)) << "LID on Ethernet";

    addr        = pack(roce_port());
    addr.flags &= ~UCT_SEP_DEVICE_ADDR_FLAG_IPV4;
    EXPECT_FALSE(is_valid(addr)) << "IPv4 GID without its flag";
}

TEST_F(test_sep_addr, random_bytes_do_not_crash_and_seldom_pass)
{
    std::mt19937_64 rng(seed::get());
    uct_sep_port_t port = roce_port();
    unsigned passed     = 0;

    for (unsigned i = 0; i < seed::cases(100000); ++i) {
        uct_sep_device_addr_t addr;
        uct_sep_iface_addr_t iface_addr;
        char buf[UCT_SEP_ADDR_STR_MAX];

        for (size_t j = 0; j < sizeof(addr); ++j) {
            reinterpret_cast<uint8_t*>(&addr)[j] = rng();
        }
        for (size_t j = 0; j < sizeof(iface_addr); ++j) {
            reinterpret_cast<uint8_t*>(&iface_addr)[j] = rng();
        }
        passed += is_valid(addr);
        uct_sep_device_addr_is_reachable(&port, &addr);
        uct_sep_device_addr_str(&addr, buf, sizeof(buf));
        EXPECT_LT(strlen(buf), sizeof(buf) - 1) << "text was cut";
        uct_sep_iface_addr_check(&iface_addr);
    }
    EXPECT_LT(passed, seed::cases(1000));
}

TEST_F(test_sep_addr, infiniband_ports_of_a_subnet_reach_each_other)
{
    uct_sep_port_t other = ib_port(9);

    EXPECT_TRUE(is_reachable(ib_port(), other));
    EXPECT_TRUE(is_reachable(ib_port(), ib_port())) << "oneself";

    set_gid(other, "fec0::5");
    EXPECT_FALSE(is_reachable(ib_port(), other)) << "another subnet";
    EXPECT_FALSE(is_reachable(ib_port(), roce_port())) << "another link layer";
    EXPECT_FALSE(is_reachable(roce_port(), ib_port()));
}

TEST_F(test_sep_addr, global_routing_needs_a_gid_on_both_sides)
{
    uct_sep_port_t global = ib_port(), no_gid = ib_port(9);

    global.force_global = 1;
    EXPECT_TRUE(is_reachable(global, ib_port(9)));
    memset(no_gid.gid.raw, 0, sizeof(no_gid.gid.raw));
    EXPECT_FALSE(is_reachable(global, no_gid));
}

TEST_F(test_sep_addr, roce_ports_need_the_same_version_and_family)
{
    uct_sep_port_t v1 = roce_port();
    v1.is_roce_v2     = 0;

    EXPECT_TRUE(is_reachable(roce_port(), roce_port("::ffff:10.0.0.2")));
    EXPECT_FALSE(is_reachable(roce_port(), roce_port("fe80::2")));
    EXPECT_FALSE(is_reachable(roce_port(), v1));
    EXPECT_TRUE(is_reachable(v1, v1));
}

TEST_F(test_sep_addr, partitions_need_a_full_member)
{
    uct_sep_port_t full = ib_port(), limited = ib_port(9), other = ib_port(9);

    full.pkey    = 0x8001;
    limited.pkey = 0x0001;
    other.pkey   = 0x8002;
    EXPECT_TRUE(is_reachable(full, full));
    EXPECT_TRUE(is_reachable(full, limited));
    EXPECT_TRUE(is_reachable(limited, full));
    EXPECT_FALSE(is_reachable(limited, limited));
    EXPECT_FALSE(is_reachable(full, other));
}

TEST_F(test_sep_addr, infiniband_address_vector)
{
    uct_sep_device_addr_t addr = pack(ib_port(9));
    uct_sep_port_t port        = ib_port();
    struct ibv_ah_attr ah_attr;

    uct_sep_device_addr_to_ah_attr(&port, &addr, &ah_attr);
    EXPECT_EQ(9, ah_attr.dlid);
    EXPECT_EQ(3, ah_attr.sl);
    EXPECT_EQ(1, ah_attr.port_num);
    EXPECT_EQ(0, ah_attr.is_global);
    EXPECT_EQ(0, ah_attr.static_rate);

    port.force_global    = 1;
    port.gid_index       = 2;
    port.path_bits_count = 1;
    port.path_bits[0]    = 4;
    addr                 = pack(ib_port(8));
    uct_sep_device_addr_to_ah_attr(&port, &addr, &ah_attr);
    EXPECT_EQ(1, ah_attr.is_global);
    EXPECT_EQ(2, ah_attr.grh.sgid_index);
    EXPECT_EQ(64, ah_attr.grh.hop_limit);
    EXPECT_EQ(12, ah_attr.dlid);
    EXPECT_EQ(4, ah_attr.src_path_bits);
    EXPECT_EQ(0, memcmp(ah_attr.grh.dgid.raw, addr.gid, sizeof(addr.gid)));
}

/* What is logged as a warning, by a function that the log calls */
static std::string warnings;

static ucs_log_func_rc_t
keep_warning(const char *, unsigned, const char *, ucs_log_level_t level,
             const ucs_log_component_config_t *, const char *format, va_list ap)
{
    char text[1024];

    if (level == UCS_LOG_LEVEL_WARN) {
        vsnprintf(text, sizeof(text), format, ap);
        warnings += text;
    }
    return UCS_LOG_FUNC_RC_STOP;
}

TEST_F(test_sep_addr, another_version_is_named_once)
{
    uint8_t ours     = UCT_SEP_ADDR_VERSION;
    uint8_t ours_hub = UCT_SEP_HUB_ADDR_VERSION;
    uint8_t other    = UCT_SEP_ADDR_VERSION + 1;
    uint8_t hub      = UCT_SEP_HUB_ADDR_VERSION + 2;

    warnings.clear();
    ucs_log_push_handler(keep_warning);
    EXPECT_TRUE(uct_sep_addr_check_kind("mlx5_7:1", 0, &ours));
    EXPECT_TRUE(uct_sep_addr_check_kind("mlx5_7:1", 1, &ours_hub));
    EXPECT_EQ("", warnings);
    EXPECT_FALSE(uct_sep_addr_check_kind("mlx5_7:1", 0, &other));
    std::string first = warnings;
    EXPECT_FALSE(uct_sep_addr_check_kind("mlx5_7:1", 0, &hub));
    EXPECT_FALSE(uct_sep_addr_check_kind("mlx5_7:1", 1, &other));
    EXPECT_FALSE(uct_sep_addr_check_kind("mlx5_7:1", 1, &hub));
    ucs_log_pop_handler();

    EXPECT_EQ(first, warnings);
    EXPECT_NE(std::string::npos,
              first.find("mlx5_7:1: a peer has version " +
                         std::to_string(UCT_SEP_ADDR_VERSION + 1) +
                         " of the connection protocol, this is version " +
                         std::to_string(UCT_SEP_ADDR_VERSION))) << first;
}

TEST_F(test_sep_addr, a_peer_is_found_again_on_any_path)
{
    uct_sep_peer_addr_t peer;
    uct_sep_peer_addr_t same;

    peer.dev = pack(ib_port(8));
    uct_sep_iface_addr_pack(17, 4711, UCT_SEP_IFACE_ADDR_FLAG_SPLIT,
                            &peer.iface);
    same          = peer;
    peer.dev.path = 3;
    EXPECT_TRUE(uct_sep_peer_addr_is(&peer, &same.dev, &same.iface));
    EXPECT_TRUE(uct_sep_peer_addr_is(&peer, &same.dev, NULL));

    same.dev = pack(ib_port(9));
    EXPECT_FALSE(uct_sep_peer_addr_is(&peer, &same.dev, &same.iface));
    EXPECT_FALSE(uct_sep_peer_addr_is(&peer, &same.dev, NULL));

    same.dev = pack(ib_port(8));
    uct_sep_iface_addr_pack(17, 4712, UCT_SEP_IFACE_ADDR_FLAG_SPLIT,
                            &same.iface);
    EXPECT_FALSE(uct_sep_peer_addr_is(&peer, &same.dev, &same.iface));
    EXPECT_TRUE(uct_sep_peer_addr_is(&peer, &same.dev, NULL));
}

TEST_F(test_sep_addr, roce_address_vector_is_always_global)
{
    uct_sep_device_addr_t addr = pack(roce_port("::ffff:10.0.0.2"));
    uct_sep_port_t port        = roce_port();
    struct ibv_ah_attr ah_attr;

    uct_sep_device_addr_to_ah_attr(&port, &addr, &ah_attr);
    EXPECT_EQ(1, ah_attr.is_global);
    EXPECT_EQ(2, ah_attr.port_num);
    EXPECT_EQ(0, ah_attr.dlid);
    EXPECT_EQ(3, ah_attr.grh.sgid_index);
    EXPECT_EQ(106, ah_attr.grh.traffic_class);
    EXPECT_EQ(0, memcmp(ah_attr.grh.dgid.raw, addr.gid, sizeof(addr.gid)));
}

TEST_F(test_sep_addr, paths_of_infiniband_take_turns_in_the_path_bits)
{
    uct_sep_device_addr_t addr = pack(ib_port(16));
    uct_sep_port_t port        = ib_port();
    struct ibv_ah_attr ah_attr;

    port.path_bits_count = 3;
    port.path_bits[0]    = 2;
    port.path_bits[1]    = 0;
    port.path_bits[2]    = 7;
    for (unsigned path = 0; path < UCT_SEP_MAX_PATHS; ++path) {
        addr.path = path;
        ASSERT_TRUE(is_valid(addr));
        uct_sep_device_addr_to_ah_attr(&port, &addr, &ah_attr);
        EXPECT_EQ(port.path_bits[path % 3], ah_attr.src_path_bits);
        EXPECT_EQ(16 + port.path_bits[path % 3], ah_attr.dlid);
    }
}

/* What the kernel makes of a flow label: rdma_flow_label_to_udp_sport() */
static unsigned udp_sport(uint32_t flow_label)
{
    return ((flow_label & 0x3fff) ^ (flow_label >> 14)) | 0xc000;
}

TEST_F(test_sep_addr, paths_of_roce_have_udp_ports_of_their_own)
{
    uct_sep_device_addr_t addr = pack(roce_port("::ffff:10.0.0.2"));
    uct_sep_port_t port        = roce_port();
    struct ibv_ah_attr ah_attr;

    port.num_paths        = 2;
    port.roce_path_factor = 5;
    for (unsigned path = 0; path < UCT_SEP_MAX_PATHS; ++path) {
        addr.path = path;
        uct_sep_device_addr_to_ah_attr(&port, &addr, &ah_attr);
        EXPECT_NE(0u, ah_attr.grh.flow_label);
        EXPECT_EQ(0xc000 + 5 * path, udp_sport(ah_attr.grh.flow_label));
    }

    /* With one path, others choose */
    port.num_paths = 1;
    addr.path      = 0;
    uct_sep_device_addr_to_ah_attr(&port, &addr, &ah_attr);
    EXPECT_EQ(0u, ah_attr.grh.flow_label);
}

TEST_F(test_sep_addr, roce_can_be_limited_to_a_subnet)
{
    uct_sep_port_t port = roce_port("::ffff:10.1.2.3");

    EXPECT_TRUE(is_reachable(port, roce_port("::ffff:11.0.0.1")));
    port.subnet_prefix_len = 96 + 16;
    EXPECT_TRUE(is_reachable(port, roce_port("::ffff:10.1.9.9")));
    EXPECT_FALSE(is_reachable(port, roce_port("::ffff:10.2.2.3")));
    port.subnet_prefix_len = 96 + 17;
    EXPECT_TRUE(is_reachable(port, roce_port("::ffff:10.1.127.9")));
    EXPECT_FALSE(is_reachable(port, roce_port("::ffff:10.1.128.3")));
    port.subnet_prefix_len = 128;
    EXPECT_TRUE(is_reachable(port, port));
    EXPECT_FALSE(is_reachable(port, roce_port("::ffff:10.1.2.2")));
}

/* IBA 4.1.3: a port with an LMC has 2^LMC LIDs, and may send from each */
TEST_F(test_sep_addr, a_source_lid_is_one_of_the_port)
{
    uct_sep_port_t port = ib_port(8);

    for (uint16_t lid : {0, 7, 8, 9, 11, 12, 0xffff}) {
        uct_sep_device_addr_t addr = pack(port);
        EXPECT_EQ(lid == 8, uct_sep_device_addr_is_source(&addr, lid, NULL));
    }

    port.lmc                   = 2;
    uct_sep_device_addr_t addr = pack(port);
    EXPECT_TRUE(is_valid(addr));
    for (uint16_t lid : {0, 7, 8, 9, 11, 12, 0xffff}) {
        EXPECT_EQ((lid >= 8) && (lid <= 11),
                  uct_sep_device_addr_is_source(&addr, lid, NULL)) << lid;
    }

    port.lid = 9;
    EXPECT_FALSE(is_valid(pack(port))) << "not the first LID of four";
}

TEST_F(test_sep_addr, a_network_header_has_the_address_of_its_source)
{
    uint8_t grh[40] = {};

    /* The GRH, and the header of IPv6, have the source at byte 8 */
    uct_sep_port_t v1 = roce_port("fe80::2c9:300:0:7");
    v1.is_roce_v2     = 0;
    for (const auto &port : {ib_port(8), v1, roce_port("2001:db8::1")}) {
        uct_sep_device_addr_t addr = pack(port);

        memcpy(grh + 8, addr.gid, 16);
        EXPECT_TRUE(uct_sep_device_addr_is_source(&addr, port.lid, grh));
        for (unsigned i = 8; i < 24; ++i) {
            grh[i] ^= 1;
            EXPECT_FALSE(uct_sep_device_addr_is_source(&addr, port.lid, grh));
            grh[i] ^= 1;
        }
        EXPECT_EQ(!port.is_roce,
                  uct_sep_device_addr_is_source(&addr, port.lid, NULL));
    }

    /* That of IPv4 is at byte 20, whatever is in front of it */
    uct_sep_device_addr_t addr = pack(roce_port("::ffff:10.1.2.3"));
    memset(grh, 0xee, sizeof(grh));
    grh[20] = 0x45;
    memcpy(grh + 32, "\x0a\x01\x02\x03", 4);
    EXPECT_TRUE(uct_sep_device_addr_is_source(&addr, 0, grh));
    EXPECT_FALSE(uct_sep_device_addr_is_source(&addr, 0, NULL));
    grh[35] ^= 1;
    EXPECT_FALSE(uct_sep_device_addr_is_source(&addr, 0, grh));
    grh[35] ^= 1;
    grh[20]  = 0x60;
    EXPECT_FALSE(uct_sep_device_addr_is_source(&addr, 0, grh)) << "IPv6";
}

TEST_F(test_sep_addr, ours_are_read_as_they_are)
{
    uct_sep_port_t v1 = roce_port("fe80::1");
    uct_sep_port_t lmc = ib_port(8);

    v1.is_roce_v2 = 0;
    lmc.lmc       = 3;
    for (const auto &port : {ib_port(), lmc, roce_port(), v1}) {
        uct_sep_device_addr_t addr = pack(port);
        uct_sep_device_addr_t got  = read(v1, std::string((const char*)&addr,
                                                          sizeof(addr)));
        EXPECT_EQ(0, memcmp(&addr, &got, sizeof(addr)));
    }
}

/* As rdmacm of UCX packs them: flags, LID and what there is of the GID, path
 * MTU, index of the GID */
TEST_F(test_sep_addr, rdmacm_tells_where_a_port_is)
{
    const std::string lid("\x11\x02", 2), tail("\x05\x01", 2);
    const std::string id("\x02\xc9\x03\x00\x00\x00\x00\x05", 8);
    const std::string flid("\x12\x34", 2);
    const std::string prefix("\x20\x01\x0d\xb8\x00\x00\x00\x07", 8);
    char buf[UCT_SEP_ADDR_STR_MAX];
    uct_sep_port_t limited = ib_port(), roce = roce_port();

    limited.pkey = 0x7fff;

    auto expect = [&](const std::string &text, const uct_sep_port_t &port,
                      const std::string &bytes) {
        uct_sep_device_addr_t addr = read(port, bytes);

        EXPECT_TRUE(is_valid(addr)) << text;
        EXPECT_EQ(text + " pkey 0x0",
                  uct_sep_device_addr_str(&addr, buf, sizeof(buf)));
        EXPECT_TRUE(uct_sep_device_addr_is_reachable(&port, &addr) ||
                    (text.find("2001:") != std::string::npos) ||
                    (text.find("fec0:") != std::string::npos)) << text;
        EXPECT_FALSE(uct_sep_device_addr_is_reachable(
                             port.is_roce ? &limited : &roce, &addr)) << text;
    };

    expect("ib lid 529", ib_port(), "\x03" + lid + tail);
    expect("ib lid 529", limited, "\x13" + lid + flid + tail);
    expect("ib lid 529", ib_port(), "\x23" + lid + prefix + tail);
    expect("ib lid 529 gid fe80::2c9:300:0:5", limited,
           "\x43" + lid + id + tail);
    expect("ib lid 529 gid fec0::1234:2c9:300:0:5", ib_port(),
           "\x53" + lid + id + flid + tail);
    expect("ib lid 529 gid 2001:db8:0:7:2c9:300:0:5", ib_port(),
           "\x63" + lid + id + prefix + tail);
    expect("roce_v2 gid ::ffff:10.0.0.9", roce,
           "\x6b" + gid("::ffff:10.0.0.9") + tail);
    expect("roce_v2 gid fe80::9", roce_port("fe80::1"),
           "\x6b" + gid("fe80::9") + tail);
    roce.is_roce_v2 = 0;
    expect("roce_v1 gid fe80::9", roce, "\x6b" + gid("fe80::9") + tail);

    EXPECT_FALSE(is_valid(read(roce, "\x6b" + gid("::") + tail)));
    EXPECT_FALSE(is_valid(read(ib_port(), std::string("\x03\0\0", 3) + tail)));
    EXPECT_FALSE(is_valid(read(ib_port(), std::string("\x03\0\xff", 3) + tail)))
            << "flags and P_Key of a version before, RoCE v1";
}

TEST_F(test_sep_addr, what_rdmacm_tells_is_equal_to_what_the_peer_says)
{
    const std::string tail("\x05\x01", 2);
    uct_sep_port_t lmc = ib_port(0x218);
    uct_sep_peer_addr_t peer, told;

    peer.dev = pack(roce_port());
    uct_sep_iface_addr_pack(0x123, 0xfeed, 0, &peer.iface);
    told     = peer;
    told.dev = read(roce_port(), "\x6b" + gid("::ffff:10.0.0.2") + tail);
    EXPECT_TRUE(uct_sep_peer_addr_equal(&peer, &told)) << "another GID";
    told.dev.path = 1;
    EXPECT_FALSE(uct_sep_peer_addr_equal(&peer, &told)) << "path";
    told.dev.path = 0;
    uct_sep_iface_addr_pack(0x123, 0xfeee, 0, &told.iface);
    EXPECT_FALSE(uct_sep_peer_addr_equal(&peer, &told)) << "id";
    uct_sep_iface_addr_pack(0x123, 0xfeed, UCT_SEP_IFACE_ADDR_FLAG_SPLIT,
                            &told.iface);
    EXPECT_FALSE(uct_sep_peer_addr_equal(&peer, &told)) << "flags";
    told.iface = peer.iface;

    lmc.lmc  = 3;
    peer.dev = pack(lmc);
    told     = peer;
    told.dev = read(ib_port(), "\x03\x1a\x02" + tail);
    EXPECT_TRUE(uct_sep_peer_addr_equal(&peer, &told)) << "another LID";
    told.dev = read(ib_port(), "\x03\x20\x02" + tail);
    EXPECT_FALSE(uct_sep_peer_addr_equal(&peer, &told)) << "another port's";

    told.dev = pack(roce_port("::ffff:10.0.0.2"));
    peer.dev = pack(roce_port());
    EXPECT_FALSE(uct_sep_peer_addr_equal(&peer, &told)) << "both are exact";
}

TEST_F(test_sep_addr, interface_address_survives_packing)
{
    uct_sep_iface_addr_t addr;

    uct_sep_iface_addr_pack(0xabcdef, 0x223344d5667788ull,
                            UCT_SEP_IFACE_ADDR_FLAG_SPLIT, &addr);
    EXPECT_EQ(UCS_OK, uct_sep_iface_addr_check(&addr));
    EXPECT_EQ(0xabcdefu, uct_sep_iface_addr_qpn(&addr));
    EXPECT_EQ(0x223344d5667788ull, uct_sep_iface_addr_id(&addr));
    EXPECT_EQ(UCT_SEP_IFACE_ADDR_FLAG_SPLIT, uct_sep_iface_addr_flags(&addr));
    EXPECT_EQ(0, memcmp(&addr, "\x07\xab\xcd\xef\xa2\x33\x44\xd5\x66\x77\x88",
                        sizeof(addr)));

    uct_sep_iface_addr_pack(0xabcdef, UCT_SEP_ADDR_MAX_ID, 0, &addr);
    EXPECT_EQ(UCT_SEP_ADDR_MAX_ID, uct_sep_iface_addr_id(&addr));
    EXPECT_EQ(0, uct_sep_iface_addr_flags(&addr));
}

/* It has no place of its own in the address, and is not a controlled one */
TEST_F(test_sep_addr, the_q_key_is_31_bits_of_the_id)
{
    uct_sep_iface_addr_t addr;

    uct_sep_iface_addr_pack(0x123, 0x223344d5667788ull, 0, &addr);
    EXPECT_EQ(0x55667788u, uct_sep_iface_addr_qkey(&addr));
    uct_sep_iface_addr_pack(0x123, UCT_SEP_ADDR_MAX_ID, 0, &addr);
    EXPECT_EQ(UCT_SEP_ADDR_MAX_QKEY, uct_sep_iface_addr_qkey(&addr));
}

/* Otherwise clients can't connect that send their id, as those of the bindings
 * for Go and Java do. Private data of rdma_cm's REQ, without UCX's header, less
 * what the hungriest of UCX's releases takes: 1.14, with several paths. */
TEST_F(test_sep_addr, an_interface_address_fits_into_what_rdmacm_sends)
{
    const size_t private_data = 56 - 2, sockaddr_data = 11, worker = 1 + 8;
    const size_t device = 1 + 1 + 1, transport = 2 + 16 + 1 + 1;

    EXPECT_LE(sizeof(uct_sep_iface_addr_t),
              private_data - sockaddr_data - worker - device - transport);
}

TEST_F(test_sep_addr, interface_address_of_another_version_is_unsupported)
{
    uct_sep_iface_addr_t addr;

    uct_sep_iface_addr_pack(0x123, 1, 0, &addr);
    ++addr.version;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_sep_iface_addr_check(&addr));
}

TEST_F(test_sep_addr, impossible_interface_addresses_are_invalid)
{
    uct_sep_iface_addr_t addr;

    for (uint32_t qpn : {0u, 1u, 0xffffffu}) {
        uct_sep_iface_addr_pack(qpn, 1, 0, &addr);
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_sep_iface_addr_check(&addr));
    }
    uct_sep_iface_addr_pack(0x123, 0, 0, &addr);
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_sep_iface_addr_check(&addr));
    uct_sep_iface_addr_pack(0x123, 0, UCT_SEP_IFACE_ADDR_FLAG_SPLIT, &addr);
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_sep_iface_addr_check(&addr));
}

TEST_F(test_sep_addr, texts_name_what_matters)
{
    uct_sep_device_addr_t addr = pack(roce_port());
    uct_sep_peer_addr_t peer;
    char buf[UCT_SEP_ADDR_STR_MAX];

    EXPECT_NE(nullptr, strstr(uct_sep_device_addr_str(&addr, buf, sizeof(buf)),
                              "10.0.0.1"));
    addr.path = 3;
    EXPECT_NE(nullptr, strstr(uct_sep_device_addr_str(&addr, buf, sizeof(buf)),
                              "path 3"));
    peer.dev = pack(ib_port(17));
    uct_sep_iface_addr_pack(0x123, 0xfeed, 0, &peer.iface);
    EXPECT_STREQ("ib lid 17 gid fe80::2c9:300:0:5 pkey 0xffff ud_qp 0x123 id "
                 "000000000000feed",
                 uct_sep_peer_addr_str(&peer, buf, sizeof(buf)));
}
