/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Network interfaces behind RoCE ports: what is taken from them, what is
 * refused, and the identity of ports that follows.
 */

#include <sim/sysfs_helpers.h>

extern "C" {
#include <sim/config/identity.h>
}

#include <cerrno>
#include <cstring>
#include <deque>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

using namespace sysfs_helpers;

namespace {

/* What getifaddrs() would say */
class addresses {
public:
    addresses &ipv4(const char *name, const char *text)
    {
        sockaddr_in in = {};

        in.sin_family = AF_INET;
        EXPECT_EQ(1, inet_pton(AF_INET, text, &in.sin_addr));
        return add(name, &in, sizeof(in));
    }

    addresses &ipv6(const char *name, const char *text)
    {
        sockaddr_in6 in = {};

        in.sin6_family = AF_INET6;
        EXPECT_EQ(1, inet_pton(AF_INET6, text, &in.sin6_addr));
        return add(name, &in, sizeof(in));
    }

    addresses &mac(const char *name, const uint8_t *mac, unsigned length)
    {
        sockaddr_ll ll = {};

        ll.sll_family = AF_PACKET;
        ll.sll_halen  = length;
        memcpy(ll.sll_addr, mac, length);
        return add(name, &ll, sizeof(ll));
    }

    addresses &flags(unsigned flags)
    {
        m_list.back().entry.ifa_flags = flags;
        return *this;
    }

    int fill(mlx5sim_netif_t *netif, std::string *error_p)
    {
        char error[MLX5SIM_CONFIG_ERROR_MAX] = "";

        for (size_t i = 0; i + 1 < m_list.size(); ++i) {
            m_list[i].entry.ifa_next = &m_list[i + 1].entry;
        }

        int ret = mlx5sim_netif_fill(m_list.empty() ? nullptr :
                                     &m_list[0].entry, netif, error,
                                     sizeof(error));
        *error_p = error;
        return ret;
    }

    /* What InfiniBand ports say of one that has this address */
    std::string lid_error(mlx5sim_netif_t *netif, unsigned bits, unsigned lmc)
    {
        sockaddr_in mask                     = {};
        char error[MLX5SIM_CONFIG_ERROR_MAX] = "";
        std::string text;

        mask.sin_family      = AF_INET;
        mask.sin_addr.s_addr = htonl(~0u << (32 - bits));
        EXPECT_EQ(0, fill(netif, &text)) << text;
        for (auto &each : m_list) {
            each.entry.ifa_netmask = reinterpret_cast<sockaddr*>(&mask);
        }
        errno = 0;
        if (mlx5sim_netif_check_lids(&m_list[0].entry, netif, 1, lmc, error,
                                     sizeof(error)) == 0) {
            EXPECT_STREQ("", error);
        } else {
            EXPECT_EQ(EINVAL, errno);
        }
        return error;
    }

private:
    struct item {
        ifaddrs          entry;
        sockaddr_storage address;
    };

    addresses &add(const char *name, const void *address, size_t size)
    {
        m_list.emplace_back();
        item &last = m_list.back();
        last.entry.ifa_name  = const_cast<char*>(name);
        last.entry.ifa_flags = IFF_UP;
        last.entry.ifa_addr  = reinterpret_cast<sockaddr*>(&last.address);
        memcpy(&last.address, address, size);
        return *this;
    }

    std::deque<item> m_list; /* its elements stay where they are */
};

const uint8_t mac0[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};

mlx5sim_netif_t named(const char *name, unsigned mtu = 1500)
{
    mlx5sim_netif_t netif = {};

    strcpy(netif.name, name);
    netif.mtu = mtu;
    return netif;
}

std::string text(const mlx5sim_netif_t &netif)
{
    char buf[MLX5SIM_NETIF_STR_MAX];

    return mlx5sim_netif_str(&netif, buf);
}

/* Two devices with two ports each */
mlx5sim_config_t wired()
{
    static const char *const lines[] = {
        "eth0 1500 02:11:22:33:44:50 10.0.0.1 fd00::1",
        "eth1 9000 02:11:22:33:44:51 10.0.1.1 -",
        "ib.7 600 02:11:22:33:44:52 - fd00:2::1",
        "tun3 65535 02:00:0a:00:03:01 10.0.3.1 -"
    };
    mlx5sim_config_t config = default_config();

    config.devices = 2;
    config.ports   = 2;
    config.link    = MLX5SIM_LINK_ROCE;
    for (unsigned i = 0; i < 4; ++i) {
        EXPECT_EQ(0, mlx5sim_netif_parse(lines[i], &config.netifs[i]));
    }
    return config;
}

std::string gid_of(const mlx5sim_config_t &config, unsigned dev, unsigned port,
                   unsigned index)
{
    uint8_t gid[MLX5SIM_GID_LEN];
    char buf[INET6_ADDRSTRLEN];

    if (!mlx5sim_port_gid(&config, dev, port, index, gid)) {
        return "";
    }

    return inet_ntop(AF_INET6, gid, buf, sizeof(buf));
}

} // namespace


TEST(test_netif, lists_are_names_with_commas_between_them)
{
    std::string all;

    for (const char *good : {"eth0", "eth0,eth1", "a,b,c", "veth@1", "lo"}) {
        EXPECT_TRUE(mlx5sim_netif_check(good)) << good;
    }

    for (const char *bad : {"", ",", "eth0,", ",eth0", "eth0,,eth1", "a/b", ".",
                            "eth0,..", "eth0 eth1", "a-name-that-is-too-long",
                            "eth0,eth1,eth0"}) {
        EXPECT_FALSE(mlx5sim_netif_check(bad)) << bad;
    }

    for (unsigned i = 0; i < MLX5SIM_NETIFS_MAX; ++i) {
        all += (i > 0 ? ",e" : "e") + std::to_string(i);
    }
    EXPECT_TRUE(mlx5sim_netif_check(all.c_str()));
    EXPECT_FALSE(mlx5sim_netif_check((all + ",more").c_str()));
}

TEST(test_netif, the_first_address_of_each_kind_is_taken)
{
    mlx5sim_netif_t netif = named("eth0");
    addresses list;
    std::string error;

    list.ipv4("lo", "127.0.0.1").mac("eth0", mac0, 6)
        .ipv4("eth01", "10.9.9.9").ipv4("eth0", "10.0.0.1")
        .ipv4("eth0", "10.0.0.2").ipv6("eth0", "fe80::1")
        .ipv6("eth0", "::ffff:1.2.3.4").ipv6("eth0", "ff02::1")
        .ipv6("eth0", "fd00::7").ipv6("eth0", "2001:db8::1");
    ASSERT_EQ(0, list.fill(&netif, &error)) << error;
    EXPECT_EQ("eth0 1500 02:11:22:33:44:55 10.0.0.1 fd00::7", text(netif));
}

TEST(test_netif, one_without_a_mac_has_one_made_of_its_address)
{
    static const uint8_t none[8] = {};
    mlx5sim_netif_t netif        = named("tun0");
    mlx5sim_netif_t netif6       = named("tun1");
    addresses list;
    std::string error;

    list.mac("tun0", none, 6).ipv4("tun0", "10.1.2.3").mac("tun1", none, 0)
        .ipv6("tun1", "fd00::102:304");
    ASSERT_EQ(0, list.fill(&netif, &error)) << error;
    EXPECT_EQ("tun0 1500 02:00:0a:01:02:03 10.1.2.3 -", text(netif));
    ASSERT_EQ(0, list.fill(&netif6, &error)) << error;
    EXPECT_EQ("tun1 1500 02:00:01:02:03:04 - fd00::102:304", text(netif6));
}

TEST(test_netif, what_is_of_no_use_is_refused_with_what_to_do)
{
    static const struct {
        const char *name;
        unsigned   mtu;
        int        error;
        const char *says;
    } cases[] = {
        {"eth7", 1500, ENODEV, "'ip address' shows"},
        {"down", 1500, EINVAL, "'ip link set down up'"},
        {"bare", 1500, EINVAL, "'ip address add ADDRESS/BITS dev bare'"},
        {"good", 351, EINVAL, "'ip link set good mtu 1500'"},
        {"good", 352, 0, ""}
    };
    addresses list;
    std::string error;

    list.ipv4("down", "10.0.0.1").flags(0).mac("bare", mac0, 6)
        .ipv6("bare", "fe80::1").ipv4("good", "10.0.0.2");
    for (const auto &c : cases) {
        mlx5sim_netif_t netif = named(c.name, c.mtu);

        errno = 0;
        EXPECT_EQ((c.error == 0) ? 0 : -1, list.fill(&netif, &error)) << c.name;
        if (c.error != 0) {
            EXPECT_EQ(c.error, errno) << error;
        }
        EXPECT_NE(std::string::npos, error.find(c.says)) << error;
    }
}

TEST(test_netif, each_port_needs_one)
{
    mlx5sim_config_t config = default_config();
    char error[MLX5SIM_CONFIG_ERROR_MAX];

    EXPECT_EQ(0, mlx5sim_config_find_netifs(&config, error, sizeof(error)));
    EXPECT_FALSE(mlx5sim_config_has_wire(&config));

    strcpy(config.wire, "none0,none1");
    config.ports = 2;
    EXPECT_EQ(-1, mlx5sim_config_find_netifs(&config, error, sizeof(error)));
    EXPECT_NE(nullptr, strstr(error, "no network interface none0")) << error;

    for (unsigned devices : {2, 16}) {
        config.devices = devices;
        EXPECT_EQ(-1, mlx5sim_config_find_netifs(&config, error,
                                                 sizeof(error)));
        EXPECT_NE(nullptr, strstr(error, "2 network interfaces")) << error;
        EXPECT_NE(nullptr, strstr(error, (std::to_string(devices * 2) +
                                          " ports").c_str())) << error;
    }

    config.devices = 1;
    config.ports   = 1;
    EXPECT_EQ(-1, mlx5sim_config_find_netifs(&config, error, sizeof(error)));
    EXPECT_NE(nullptr, strstr(error, "there is 1 port")) << error;
    EXPECT_FALSE(mlx5sim_config_has_wire(&config));
}

TEST(test_netif, the_mtu_is_what_the_kernel_says)
{
    static const struct {
        unsigned ethernet, infiniband;
    } cases[] = {
        {0, 0}, {351, 0}, {352, 1}, {607, 1}, {608, 2}, {1119, 2}, {1120, 3},
        {1500, 3}, {2143, 3}, {2144, 4}, {4191, 4}, {4192, 5}, {9000, 5},
        {65536, 5}
    };

    for (const auto &c : cases) {
        EXPECT_EQ(c.infiniband, mlx5sim_netif_ib_mtu(c.ethernet)) << c.ethernet;
    }
}

TEST(test_netif, a_text_is_read_back_and_others_are_refused)
{
    mlx5sim_netif_t netif;

    for (const char *good :
         {"eth0 1500 02:11:22:33:44:55 10.0.0.1 fd00::7",
          "eth0 65536 02:11:22:33:44:55 - fd00::7", "x 352 "
          "ff:ff:ff:ff:ff:ff 255.255.255.255 "
          "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}) {
        ASSERT_EQ(0, mlx5sim_netif_parse(good, &netif)) << good;
        EXPECT_EQ(good, text(netif));
    }

    for (const char *bad :
         {"", "eth0", "eth0 1500 02:11:22:33:44:55 10.0.0.1",
          "eth0 1500 02:11:22:33:44:55 10.0.0.1 fd00::7 x",
          "eth0 1500 02:11:22:33:44:55 10.0.0.256 -",
          "eth0 1500 02:11:22:33:44:55 - fd00",
          "a/b 1500 02:11:22:33:44:55 - fd00::1"}) {
        EXPECT_EQ(-1, mlx5sim_netif_parse(bad, &netif)) << bad;
    }
}

TEST(test_netif, a_saved_configuration_has_them)
{
    temp_dir dir;
    mlx5sim_config_t config = wired(), loaded = default_config();
    char error[MLX5SIM_CONFIG_ERROR_MAX];
    std::string content;

    strcpy(config.wire, "eth0,eth1,ib.7,tun3");
    ASSERT_EQ(0, mlx5sim_config_save(&config, dir.fd(), "config", error,
                                     sizeof(error))) << error;
    ASSERT_EQ(0, mlx5sim_config_load(&loaded, dir.fd(), dir.c_str(), "config",
                                     error, sizeof(error))) << error;
    EXPECT_EQ(0, memcmp(&config, &loaded, sizeof(config)));

    content = "LAYOUT=1\n";
    for (unsigned i = 0; i <= MLX5SIM_NETIFS_MAX; ++i) {
        content += "NETIF=" + text(config.netifs[0]) + "\n";
    }
    for (const char *bad : {content.c_str(), "LAYOUT=1\nNETIF=e\n"}) {
        write_file(dir / "config", bad);
        EXPECT_EQ(-1, mlx5sim_config_load(&loaded, dir.fd(), dir.c_str(),
                                          "config", error, sizeof(error)));
        EXPECT_NE(nullptr, strstr(error, "no network interface")) << error;
    }
}

TEST(test_netif, ports_are_what_their_interfaces_are)
{
    mlx5sim_config_t config = wired();

    ASSERT_TRUE(mlx5sim_config_has_wire(&config));
    EXPECT_EQ("fe80::11:22ff:fe33:4450", gid_of(config, 0, 1, 0));
    EXPECT_EQ("fe80::11:22ff:fe33:4450", gid_of(config, 0, 1, 1));
    EXPECT_EQ("::ffff:10.0.0.1", gid_of(config, 0, 1, 2));
    EXPECT_EQ("::ffff:10.0.0.1", gid_of(config, 0, 1, 3));
    EXPECT_EQ("fd00::1", gid_of(config, 0, 1, 4));
    EXPECT_EQ("fd00::1", gid_of(config, 0, 1, 5));
    EXPECT_EQ("", gid_of(config, 0, 1, 6));
    EXPECT_EQ("::ffff:10.0.1.1", gid_of(config, 0, 2, 3));
    EXPECT_EQ("", gid_of(config, 0, 2, 4));
    /* without IPv4, the global address comes next */
    EXPECT_EQ("fd00:2::1", gid_of(config, 1, 1, 3));
    EXPECT_EQ("", gid_of(config, 1, 1, 4));
    EXPECT_TRUE(mlx5sim_gid_is_roce_v2(&config, 5));
    EXPECT_FALSE(mlx5sim_gid_is_roce_v2(&config, 4));

    EXPECT_EQ(0x0211220300334450ull, mlx5sim_node_guid(&config, 0));
    EXPECT_EQ(0x0211220300334450ull, mlx5sim_port_guid(&config, 0, 1));
    EXPECT_EQ(0x0211220300334451ull, mlx5sim_port_guid(&config, 0, 2));
    EXPECT_EQ(0x0211220300334452ull, mlx5sim_node_guid(&config, 1));

    EXPECT_EQ(3u, mlx5sim_port_mtu(&config, 0, 1));
    EXPECT_EQ(5u, mlx5sim_port_mtu(&config, 0, 2));
    EXPECT_EQ(1u, mlx5sim_port_mtu(&config, 1, 1));
    EXPECT_STREQ("ib.7", mlx5sim_port_netdev(&config, 1, 1));
    EXPECT_STREQ("tun3", mlx5sim_port_netif(&config, 1, 2)->name);
}

TEST(test_netif, a_gid_is_found_with_its_mac)
{
    mlx5sim_config_t config = wired();
    uint8_t gid[MLX5SIM_GID_LEN], mac[6];
    unsigned dev, port;

    for (unsigned i = 0; i < 4; ++i) {
        for (unsigned index = 0;
             mlx5sim_port_gid(&config, i / 2, 1 + i % 2, index, gid); ++index) {
            ASSERT_TRUE(mlx5sim_gid_find(&config, gid, &dev, &port));
            EXPECT_EQ(i / 2, dev);
            EXPECT_EQ(1 + i % 2, port);
            mlx5sim_gid_mac(&config, gid, mac);
            EXPECT_EQ(0, memcmp(mac, config.netifs[i].mac, 6)) << i;
        }
    }

    /* of another node: link local tells it */
    ASSERT_EQ(1, inet_pton(AF_INET6, "fe80::311:22ff:fe33:4499", gid));
    EXPECT_FALSE(mlx5sim_gid_find(&config, gid, &dev, &port));
    mlx5sim_gid_mac(&config, gid, mac);
    EXPECT_EQ(0, memcmp(mac, "\x01\x11\x22\x33\x44\x99", 6));
}

TEST(test_netif, a_lid_is_the_lower_half_of_the_address)
{
    mlx5sim_config_t config = wired();
    unsigned dev, port;
    uint8_t ipv4[4];

    config.link  = MLX5SIM_LINK_IB;
    config.ports = 1; /* eth0, eth1 */
    EXPECT_EQ(0x0001u, mlx5sim_port_lid(&config, 0, 1));
    EXPECT_EQ(0x0101u, mlx5sim_port_lid(&config, 1, 1));
    config.lmc = 2;
    EXPECT_EQ(0x0004u, mlx5sim_port_lid(&config, 0, 1));
    EXPECT_EQ(0x0404u, mlx5sim_port_lid(&config, 1, 1));
    for (unsigned lid = 0; lid < 0x10000; ++lid) {
        bool is_first = lid / 4 == 1, is_second = lid / 4 == 0x101;

        dev = port = 9;
        ASSERT_EQ(is_first || is_second,
                  mlx5sim_lid_find(&config, lid, &dev, &port)) << lid;
        if (is_first || is_second) {
            EXPECT_EQ(is_second, dev);
            EXPECT_EQ(1u, port);
        }
        mlx5sim_netif_at_lid(&config.netifs[1], 2, lid, ipv4);
        ASSERT_EQ(0, memcmp(ipv4, config.netifs[1].ipv4, 2));
        ASSERT_EQ(lid / 4, ipv4[2] * 256u + ipv4[3]);
    }

    EXPECT_EQ("fe80::211:2203:33:4450", gid_of(config, 0, 1, 0));
    EXPECT_EQ("", gid_of(config, 0, 1, 1));
}

TEST(test_netif, infiniband_has_more_headers_between_nodes)
{
    mlx5sim_config_t config = wired();

    config.link = MLX5SIM_LINK_IB;
    for (unsigned size = 1; size <= 5; ++size) {
        config.netifs[0].mtu = (128 << size) + 96 + 30;
        EXPECT_EQ(size, mlx5sim_port_mtu(&config, 0, 1));
        config.netifs[0].mtu -= 1;
        EXPECT_EQ(size - 1, mlx5sim_port_mtu(&config, 0, 1));
    }
}

TEST(test_netif, what_makes_no_lid_is_refused_with_what_to_do)
{
    static const struct {
        const char *address;
        unsigned   bits, lmc, mtu;
        const char *says; /* "": nothing */
    } cases[] = {
        {"10.77.0.1", 24, 0, 1500, ""},
        {"10.77.0.1", 16, 0, 1500, ""},
        {"10.77.0.1", 15, 0, 1500, "(/15) has more addresses"},
        {"10.77.0.0", 31, 0, 1500, "makes no LID"},
        {"10.77.191.255", 16, 0, 1500, ""},
        {"10.77.192.0", 16, 0, 1500, "eth0, 10.77.192.0, makes no LID"},
        {"10.77.95.255", 16, 1, 1500, ""},
        {"10.77.96.0", 16, 1, 1500, "makes no LID"},
        {"10.77.0.1", 16, 0, 382, ""},
        {"10.77.0.1", 16, 0, 381, "has an MTU of 381"},
        {"fd00::1", 16, 0, 1500, "has no IPv4 address"}
    };

    for (const auto &c : cases) {
        mlx5sim_netif_t netif = named("eth0", c.mtu);
        addresses list;
        std::string error;

        if (strchr(c.address, ':') != nullptr) {
            list.ipv6("eth0", c.address);
        } else {
            list.ipv4("eth0", c.address);
        }
        error = list.lid_error(&netif, c.bits, c.lmc);
        EXPECT_EQ(c.says[0] == '\0', error.empty()) << error;
        EXPECT_NE(std::string::npos, error.find(c.says)) << error;
    }
}

TEST(test_netif, two_ports_with_one_lid_are_refused)
{
    mlx5sim_netif_t netifs[2];
    char error[MLX5SIM_CONFIG_ERROR_MAX] = "";

    ASSERT_EQ(0, mlx5sim_netif_parse("eth0 1500 02:11:22:33:44:55 10.1.0.9 -",
                                     &netifs[0]));
    ASSERT_EQ(0, mlx5sim_netif_parse("eth1 1500 02:11:22:33:44:56 10.2.0.9 -",
                                     &netifs[1]));
    EXPECT_EQ(-1, mlx5sim_netif_check_lids(nullptr, netifs, 2, 0, error,
                                           sizeof(error)));
    EXPECT_STREQ("MLX5SIM_WIRE: eth0 and eth1 would have the same LID, 0x9: "
                 "the lower half of the IPv4 address is the LID of an "
                 "InfiniBand port; give one of them another", error);
}

TEST(test_netif, without_them_ports_have_addresses_that_are_nobodys)
{
    mlx5sim_config_t config = default_config();

    config.link    = MLX5SIM_LINK_ROCE;
    config.devices = 2;
    EXPECT_EQ(nullptr, mlx5sim_port_netif(&config, 1, 1));
    EXPECT_EQ("fe80::248a:703:a5:10", gid_of(config, 1, 1, 1));
    EXPECT_EQ("::ffff:198.18.1.1", gid_of(config, 1, 1, 3));
    EXPECT_EQ("", gid_of(config, 1, 1, 4));
    EXPECT_EQ(3u, mlx5sim_port_mtu(&config, 1, 1));
    EXPECT_STREQ("lo", mlx5sim_port_netdev(&config, 1, 1));
    config.link = MLX5SIM_LINK_IB;
    EXPECT_EQ(5u, mlx5sim_port_mtu(&config, 1, 1));
}
