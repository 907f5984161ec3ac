/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/port/sep_ar.h>
#include <ucs/sys/string.h>
#include <endian.h>
#include <glob.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

using namespace sep_uct_test;

namespace {

/* Ports and paths: what the device has seen of the settings */
class test_sep_uct_path : public test_sep_uct {
protected:
    void SetUp() override
    {
    }

    /* Have it send something, and look at the queue pair */
    struct ibv_qp_attr connected(uct_ep_h ep)
    {
        struct ibv_qp_init_attr init_attr;
        struct ibv_qp_attr attr = {};
        uint64_t data           = 1;

        EXPECT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep, 1, 0, &data, sizeof(data));
        }));
        flush();

        EXPECT_EQ(0, ibv_query_qp(m_local->sep_ep(ep)->txwq->conn.qp, &attr,
                                  IBV_QP_AV | IBV_QP_PATH_MTU |
                                  IBV_QP_PKEY_INDEX | IBV_QP_PORT,
                                  &init_attr));
        return attr;
    }

    struct ibv_qp_attr connected(const settings &config)
    {
        start(config);
        return HasFatalFailure() ? ibv_qp_attr() : connected(ep());
    }

    std::unique_ptr<entity> open(const settings &config)
    {
        auto result = entity::create(all_settings(config));

        EXPECT_TRUE(result != nullptr);
        return result;
    }

    /* Where an interface is, as rdmacm of UCX tells it: the flags are those of
     * ib_device.h, the last two bytes path MTU and index of the GID */
    static address by_rdmacm(address to, bool has_grh, unsigned path_bits)
    {
        auto *addr = (const uct_sep_device_addr_t*)to.dev.data();
        bytes gid(addr->gid, addr->gid + sizeof(addr->gid)), dev;
        uint16_t lid = be16toh(addr->lid) + path_bits;

        if (addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_ETH) {
            dev = {0x6b};
            dev.insert(dev.end(), gid.begin(), gid.end());
        } else {
            dev = {uint8_t(has_grh ? 0x43 : 0x03), uint8_t(lid),
                   uint8_t(lid >> 8)};
            if (has_grh) {
                dev.insert(dev.end(), gid.begin() + 8, gid.end());
            }
        }
        dev.insert(dev.end(), {IBV_MTU_1024, 1});
        to.dev = dev;
        return to;
    }

    /* One side knows the other by its own address only, or none does */
    void meet_by_rdmacm(bool is_peer_told, bool has_grh, unsigned path_bits = 0)
    {
        uint64_t data = 1;
        address to;

        start({});
        to          = by_rdmacm(m_peer->addr(), has_grh, path_bits);
        uct_ep_h ep = m_local->connect(to);
        m_peer->send(is_peer_told ? m_local->addr() :
                                    by_rdmacm(m_local->addr(), has_grh,
                                              path_bits), 1, 8);
        EXPECT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep, 1, 0, &data, sizeof(data));
        }));
        EXPECT_TRUE(m_local->wait([&]() {
            return (m_local->messages.size() == 1) &&
                   (m_peer->num_received() == 1);
        }));
        EXPECT_EQ(1u, m_local->num_links()) << "it is one connection";
        EXPECT_EQ(1u, m_peer->num_qps());

        /* It says itself where it is, and is still known by the other */
        auto dev = m_local->sep_ep(ep)->link->super.peer.dev;
        EXPECT_EQ(0, memcmp(&dev, m_peer->addr().dev.data(), sizeof(dev)));
        EXPECT_TRUE(uct_sep_ep_is_connected(
                ep, (const uct_device_addr_t*)to.dev.data(),
                (const uct_iface_addr_t*)to.iface.data()));
    }

    static unsigned udp_sport(uint32_t flow_label)
    {
        return ((flow_label & 0x3fff) ^ (flow_label >> 14)) | 0xc000;
    }
};

TEST_F(test_sep_uct_path, peers_meet_by_addresses_of_rdmacm)
{
    for (bool is_peer_told : {false, true}) {
        for (bool has_grh : {false, true}) {
            meet_by_rdmacm(is_peer_told, has_grh);
        }
    }
}

TEST_F(test_sep_uct_path, peers_meet_by_any_lid_of_theirs)
{
    if (!on_device({{"MLX5SIM_LMC", "3"}})) {
        return;
    }

    meet_by_rdmacm(false, false, 5);
    meet_by_rdmacm(true, true, 5);
}

TEST_F(test_sep_uct_path, peers_meet_by_addresses_of_rdmacm_on_roce)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    meet_by_rdmacm(false, true);
    meet_by_rdmacm(true, true);
}

TEST_F(test_sep_uct_path, path_bits_are_a_list_of_ranges)
{
    if (!on_device({{"MLX5SIM_LMC", "3"}})) {
        return;
    }

    auto local        = open({{"LID_PATH_BITS", "5,2-3,7-6,8-20,1"}});
    const auto &port  = local->sep()->port.addr;
    const bytes first = {5, 2, 3, 7, 6, 1};
    EXPECT_EQ(first, bytes(port.path_bits,
                           port.path_bits + port.path_bits_count));
    EXPECT_EQ(6u, local->attr().dev_num_paths);

    /* Descending from beyond what the LMC allows */
    local              = open({{"LID_PATH_BITS", "20-6"}});
    const auto &port2  = local->sep()->port.addr;
    const bytes second = {7, 6};
    EXPECT_EQ(second, bytes(port2.path_bits,
                            port2.path_bits + port2.path_bits_count));

    expect_refused({{"LID_PATH_BITS", "8"}},
                   {"UCX_SEP_LID_PATH_BITS has no value below 8"});
    expect_refused({{"LID_PATH_BITS", "8-9,30-20"}},
                   {"UCX_SEP_LID_PATH_BITS has no value below 8"});
    expect_refused({{"LID_PATH_BITS", "0-7,0-7,0-7,0-7,0-7,0-7,0-7,0-7,0-7,0-7,"
                                      "0-7,0-7,0-7,0-7,0-7,0-7,0"}},
                   {"UCX_SEP_LID_PATH_BITS has more than 128"});
}

TEST_F(test_sep_uct_path, each_path_is_a_connection_with_its_path_bits)
{
    if (!on_device({{"MLX5SIM_LMC", "2"}})) {
        return;
    }

    start({{"LID_PATH_BITS", "1-3"}});
    EXPECT_EQ(3u, m_local->attr().dev_num_paths);

    std::set<uint32_t> qpns;
    for (unsigned path = 0; path < 4; ++path) {
        uct_ep_h ep = m_local->connect(m_peer->addr(), path);
        auto attr   = connected(ep);
        EXPECT_EQ(1 + (path % 3), attr.ah_attr.src_path_bits);
        EXPECT_EQ(1u + (path % 3), attr.ah_attr.dlid & 3);
        qpns.insert(m_local->sep_ep(ep)->txwq->qpn);

        /* Another endpoint of this path has this path's connection */
        uct_ep_h other = m_local->connect(m_peer->addr(), path);
        EXPECT_EQ(m_local->sep_ep(ep)->link, m_local->sep_ep(other)->link);
    }
    EXPECT_EQ(4u, qpns.size());
    EXPECT_EQ(4u, m_peer->num_qps());
}

TEST_F(test_sep_uct_path, data_arrive_on_all_paths_of_both_sides)
{
    if (!on_device({{"MLX5SIM_LMC", "1"}})) {
        return;
    }

    start({{"LID_PATH_BITS", "0-1"}});

    /* The peer's endpoint is on path 0, and ours on both */
    m_peer->send(m_local->addr(), 50, 100);
    for (unsigned path = 0; path < 2; ++path) {
        uct_ep_h ep = m_local->connect(m_peer->addr(), path);
        for (uint64_t i = 0; i < 50; ++i) {
            EXPECT_EQ(UCS_OK, retry([&]() {
                return uct_ep_am_short(ep, 1, path, &i, sizeof(i));
            }));
        }
    }
    flush();
    EXPECT_TRUE(m_local->wait([&]() {
        return (m_peer->num_received() == 100) &&
               (m_local->messages.size() == 50);
    }));
    EXPECT_EQ(2u, m_peer->num_qps());

    remote_memory memory = m_peer->expose(64, 3);
    uint64_t value       = 0x1122334455667788;
    uct_ep_h ep          = m_local->connect(m_peer->addr(), 1);
    EXPECT_EQ(UCS_OK, retry([&]() {
        return uct_ep_put_short(ep, &value, sizeof(value), memory.va,
                                memory.rkey.rkey);
    }));
    flush();
    EXPECT_EQ(0, memcmp(&value, m_peer->read(0, 8).data(), 8));
    uct_rkey_release(m_local->component(), &memory.rkey);
}

TEST_F(test_sep_uct_path, paths_to_oneself_work)
{
    if (!on_device({{"MLX5SIM_LMC", "1"}})) {
        return;
    }

    start({{"LID_PATH_BITS", "0-1"}});
    for (unsigned path = 0; path < 2; ++path) {
        uct_ep_h ep = m_local->connect(m_local->addr(), path);
        EXPECT_EQ(path, connected(ep).ah_attr.src_path_bits);
    }
    EXPECT_TRUE(m_local->wait([&]() { return m_local->messages.size() == 2; }));
}

TEST_F(test_sep_uct_path, number_of_paths_can_be_set)
{
    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }

    EXPECT_EQ(1u, open({})->attr().dev_num_paths);
    EXPECT_EQ(1u, open({{"NUM_PATHS", "1"}})->attr().dev_num_paths);
    EXPECT_EQ(4u, open({{"NUM_PATHS", "4"}})->attr().dev_num_paths);
    for (const char *count : {"0", "129", "inf"}) {
        expect_refused({{"NUM_PATHS", count}},
                       {"UCX_SEP_NUM_PATHS should be auto or between"});
    }
    expect_refused({{"NUM_PATHS", "2"}, {"CATEGORY", "mpi_threads"}},
                   {"UCX_SEP_NUM_PATHS=2, but UCX_SEP_CATEGORY=mpi_threads"});
    EXPECT_EQ(1u, open({{"CATEGORY", "mpi_threads"}})->attr().dev_num_paths);
}

TEST_F(test_sep_uct_path, a_path_that_can_not_be_is_refused)
{
    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }

    auto local = open({});
    uct_ep_h ep;
    expect_errors hide;

    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              local->try_connect(local->addr(), &ep, UCT_SEP_MAX_PATHS));
}

TEST_F(test_sep_uct_path, paths_of_roce_differ_in_the_udp_port)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    EXPECT_EQ(0u, connected(settings()).ah_attr.grh.flow_label);

    start({{"NUM_PATHS", "3"}, {"ROCE_PATH_FACTOR", "7"}});
    EXPECT_EQ(3u, m_local->attr().dev_num_paths);
    for (unsigned path = 0; path < 3; ++path) {
        auto attr = connected(m_local->connect(m_peer->addr(), path));
        EXPECT_EQ(0xc000 + 7 * path,
                  udp_sport(attr.ah_attr.grh.flow_label));
    }
}

TEST_F(test_sep_uct_path, gid_is_the_best_one_or_the_one_that_was_set)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    /* The device has v1 and v2 of a link-local address, and of an IPv4 one */
    auto attr = connected(settings());
    EXPECT_EQ(1, attr.ah_attr.is_global);
    EXPECT_EQ(3, attr.ah_attr.grh.sgid_index);
    EXPECT_EQ(106, attr.ah_attr.grh.traffic_class);

    for (unsigned index = 0; index < 4; ++index) {
        union ibv_gid gid;

        attr = connected({{"GID_INDEX", std::to_string(index)}});
        EXPECT_EQ(index, attr.ah_attr.grh.sgid_index);
        EXPECT_EQ((index & 1) ? 106 : 0, attr.ah_attr.grh.traffic_class);
        ASSERT_EQ(0, ibv_query_gid(m_local->sep()->channel.pd->context, 1,
                                   index, &gid));
        EXPECT_EQ(0, memcmp(&gid, &attr.ah_attr.grh.dgid, sizeof(gid)));
    }

    for (const char *index : {"4" /* Empty */, "100000"}) {
        expect_refused({{"GID_INDEX", index}},
                       {"at that index: correct UCX_SEP_GID_INDEX"});
    }
}

/* All processes of a node should take the same, whatever order they are in */
TEST_F(test_sep_uct_path, of_equally_good_gids_the_first_is_taken)
{
    static const char pattern[] = "/sysfs/devices/*/*/infiniband/mlx5_0/ports/"
                                  "1/gid_attrs/types/2";
    glob_t found;

    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    /* The third was a GID of RoCE v1, with the address of the fourth, v2 */
    EXPECT_EQ(3u, open({})->sep()->port.addr.gid_index);
    ASSERT_EQ(0, glob((std::string(getenv("MLX5SIM_DIR")) + pattern).c_str(), 0,
                      NULL, &found));
    ASSERT_EQ(1u, found.gl_pathc);
    ASSERT_EQ(0, chmod(found.gl_pathv[0], 0644));
    std::ofstream(found.gl_pathv[0]) << "RoCE v2\n";
    globfree(&found);

    EXPECT_EQ(2u, open({})->sep()->port.addr.gid_index);
    EXPECT_EQ(3u, open({{"GID_INDEX", "3"}})->sep()->port.addr.gid_index);
}

TEST_F(test_sep_uct_path, ports_of_different_roce_versions_are_not_reachable)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    auto v1 = open({{"GID_INDEX", "2"}});
    auto v2 = open({{"GID_INDEX", "3"}});
    address addr = v2->addr();
    uct_ep_h ep;

    EXPECT_FALSE(uct_iface_is_reachable(
            v1->iface(), (const uct_device_addr_t*)addr.dev.data(),
            (const uct_iface_addr_t*)addr.iface.data()));
    expect_errors hide;
    EXPECT_EQ(UCS_ERR_UNREACHABLE, v1->try_connect(addr, &ep));
}

TEST_F(test_sep_uct_path, roce_subnet_limits_what_is_reachable)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    /* 198.18.0.1, and a neighbour */
    auto prefix_len = [&](const settings &config) {
        return open(config)->sep()->port.addr.subnet_prefix_len;
    };
    EXPECT_EQ(0, prefix_len({}));
    EXPECT_EQ(0, prefix_len({{"ROCE_SUBNET_PREFIX_LEN", "24"}}));
    EXPECT_EQ(120, prefix_len({{"ROCE_LOCAL_SUBNET", "y"},
                               {"ROCE_SUBNET_PREFIX_LEN", "24"}}));
    EXPECT_EQ(128, prefix_len({{"ROCE_LOCAL_SUBNET", "y"},
                               {"ROCE_SUBNET_PREFIX_LEN", "inf"}}));
    EXPECT_EQ(64, prefix_len({{"GID_INDEX", "1"},
                              {"ROCE_LOCAL_SUBNET", "y"},
                              {"ROCE_SUBNET_PREFIX_LEN", "64"}}));
    /* The device's interface is the loopback one, 127.0.0.1/8 */
    EXPECT_EQ(104, prefix_len({{"ROCE_LOCAL_SUBNET", "y"}}));
    expect_refused({{"ROCE_SUBNET_PREFIX_LEN", "33"},
                    {"ROCE_LOCAL_SUBNET", "y"}},
                   {"UCX_SEP_ROCE_SUBNET_PREFIX_LEN=33"});

    auto local = open({{"ROCE_LOCAL_SUBNET", "y"},
                       {"ROCE_SUBNET_PREFIX_LEN", "24"}});
    auto is_reachable = [&](uint8_t third, uint8_t fourth) {
        address addr = local->addr();
        auto *dev    = (uct_sep_device_addr_t*)addr.dev.data();
        dev->gid[14] = third;
        dev->gid[15] = fourth;
        return uct_iface_is_reachable(
                local->iface(), (const uct_device_addr_t*)addr.dev.data(),
                (const uct_iface_addr_t*)addr.iface.data());
    };
    EXPECT_TRUE(is_reachable(0, 200));
    EXPECT_FALSE(is_reachable(1, 1));
}

TEST_F(test_sep_uct_path, sl_traffic_class_and_hop_limit_reach_the_device)
{
    if (!on_device({{"MLX5SIM_LMC", "1"}})) {
        return;
    }

    auto attr = connected({{"SL", "5"}, {"IS_GLOBAL", "y"},
                           {"TRAFFIC_CLASS", "33"}, {"HOP_LIMIT", "9"},
                           {"PATH_MTU", "512"}, {"LID_PATH_BITS", "1"}});
    EXPECT_EQ(5, attr.ah_attr.sl);
    EXPECT_EQ(1, attr.ah_attr.is_global);
    EXPECT_EQ(33, attr.ah_attr.grh.traffic_class);
    EXPECT_EQ(9, attr.ah_attr.grh.hop_limit);
    EXPECT_EQ(IBV_MTU_512, attr.path_mtu);
    EXPECT_EQ(1, attr.ah_attr.src_path_bits);

    attr = connected(settings());
    EXPECT_EQ(0, attr.ah_attr.sl);
    EXPECT_EQ(0, attr.ah_attr.is_global);
}

TEST_F(test_sep_uct_path, pkey_has_fifteen_bits)
{
    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }

    EXPECT_EQ(0xffff, open({})->sep()->port.addr.pkey);
    EXPECT_EQ(0xffff, open({{"PKEY", "0x7fff"}})->sep()->port.addr.pkey);
    expect_refused({{"PKEY", "0xffff"}}, {"UCX_SEP_PKEY=0xffff"});
    expect_refused({{"PKEY", "0x0"}}, {"UCX_SEP_PKEY=0x0"});
    expect_refused({{"PKEY", "0x123"}}, {"correct UCX_SEP_PKEY"});
}

TEST_F(test_sep_uct_path, adaptive_routing_needs_a_device_that_tells)
{
    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }

    open({{"AR_ENABLE", "auto"}});
    EXPECT_EQ(3, open({{"AR_ENABLE", "try"}, {"SL", "3"}})->sep()->
                 port.addr.sl);
    expect_refused({{"AR_ENABLE", "y"}}, {"UCX_SEP_AR_ENABLE=y"});
    expect_refused({{"AR_ENABLE", "n"}}, {"UCX_SEP_AR_ENABLE=n"});
}

/* What UCX's table in the description of UCX_IB_AR_ENABLE says */
TEST(test_sep_ar, service_level_is_one_that_the_setting_allows)
{
    const uint16_t all = 0xffff, none = 0, some = 0x0c;
    const int fails    = -1;
    const unsigned long sl_auto = UCS_ULUNITS_AUTO;
    const struct {
        unsigned long sl;
        uint16_t      mask;
        int           yes, no, attempt, any;
    } table[] = {
        {sl_auto, some, 2,     0,     2, 0},
        {sl_auto, all,  0,     fails, 0, 0},
        {sl_auto, none, fails, 0,     0, 0},
        {3,       some, 3,     fails, 3, 3},
        {4,       some, fails, 4,     4, 4},
        {15,      all,  15,    fails, 15, 15}
    };
    expect_errors hide;

    auto select = [&](ucs_ternary_auto_value_t enable, unsigned long sl,
                      bool is_known, uint16_t mask) {
        uint8_t result;
        ucs_status_t status = uct_sep_ar_select_sl("x", enable, sl, is_known,
                                                   mask, &result);
        EXPECT_TRUE((status == UCS_OK) || (status == UCS_ERR_UNSUPPORTED));
        return (status == UCS_OK) ? (int)result : fails;
    };

    for (auto &row : table) {
        EXPECT_EQ(row.yes, select(UCS_YES, row.sl, true, row.mask));
        EXPECT_EQ(row.no, select(UCS_NO, row.sl, true, row.mask));
        EXPECT_EQ(row.attempt, select(UCS_TRY, row.sl, true, row.mask));
        EXPECT_EQ(row.any, select(UCS_AUTO, row.sl, true, row.mask));
        EXPECT_EQ(fails, select(UCS_YES, row.sl, false, 0));
        EXPECT_EQ(fails, select(UCS_NO, row.sl, false, 0));
        EXPECT_EQ(row.any, select(UCS_TRY, row.sl, false, 0));
        EXPECT_EQ(row.any, select(UCS_AUTO, row.sl, false, 0));
    }
}

} // namespace
