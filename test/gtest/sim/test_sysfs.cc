/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Discovery without a process around it: path mapping, identity, the tree and
 * the instance directory. test_sysfs_config.cc has the variables,
 * test_sysfs_preload.cc the interposers and the launcher.
 */

#include <sim/sysfs_helpers.h>

extern "C" {
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/instance/path.h>
#include <sim/instance/place.h>
#include <sim/instance/tree.h>
}

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

using namespace sysfs_helpers;

namespace {

const char *const root_dir  = "/inst";
const unsigned root_devices = 4;

} // namespace

/*
 * Paths
 */

class test_sysfs_path : public ::testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_EQ(0, mlx5sim_path_set_root(root_dir, root_devices));
    }

    static std::string map(const std::string &path)
    {
        char buf[PATH_MAX];

        return mlx5sim_path_map(path.c_str(), buf, sizeof(buf));
    }
};

TEST_F(test_sysfs_path, our_trees_are_in_the_instance_directory)
{
    static const struct {
        const char *path;
        const char *mapped;
    } cases[] = {
        {"/sys/class/infiniband", "/inst/sysfs/class/infiniband"},
        {"/sys/class/infiniband/", "/inst/sysfs/class/infiniband/"},
        {"/sys/class/infiniband/mlx5_0/ports/1/gids/0",
         "/inst/sysfs/class/infiniband/mlx5_0/ports/1/gids/0"},
        {"/sys/class/infiniband_verbs/abi_version",
         "/inst/sysfs/class/infiniband_verbs/abi_version"},
        {"/sys/class/infiniband_mad", "/inst/sysfs/class/infiniband_mad"},
        {"/sys/devices/pci0000:00/0000:3b:00.0",
         "/inst/sysfs/devices/pci0000:00/0000:3b:00.0"},
        {"/sys/devices/pci0000:00/0000:3c:00.1/vendor",
         "/inst/sysfs/devices/pci0000:00/0000:3c:00.1/vendor"},
        {"/sys/bus/pci/devices/0000:3b:00.1/numa_node",
         "/inst/sysfs/bus/pci/devices/0000:3b:00.1/numa_node"},
        {"/sys/bus/pci/drivers/mlx5_core",
         "/inst/sysfs/bus/pci/drivers/mlx5_core"},
        {"/dev/infiniband", "/inst/dev/infiniband"},
        {"/dev/infiniband/uverbs0", "/inst/dev/infiniband/uverbs0"},
        {"/dev/infiniband/rdma_cm", "/inst/dev/infiniband/rdma_cm"},
        {"/dev/char/231:193", "/inst/dev/infiniband/uverbs1"},
    };

    for (const auto &c : cases) {
        EXPECT_EQ(c.mapped, map(c.path)) << c.path;
    }
}

TEST_F(test_sysfs_path, everything_else_is_returned_as_it_is)
{
    static const char *const paths[] = {
        "", "/", "infiniband", "sys/class/infiniband", "/etc/passwd",
        "/sys", "/sys/", "/sys/class", "/sys/class/net",
        "/sys/class/infiniband2", "/sys/class/infiniband_", "/sysfs/class",
        "/sys/class/infiniban", "/sys/devices/pci0000:00",
        "/sys/devices/pci0000:00/0000:00:1f.0",
        "/sys/devices/pci0000:00/0000:3b:00.00",
        /* a device that this instance does not have */
        "/sys/bus/pci/devices/0000:3d:00.0", "/sys/bus/pci/devices",
        "/dev", "/dev/null", "/dev/infinibandx/uverbs0", "/dev/char/231:1",
        "/dev/shm/sys/class/infiniband", "/proc/sys/class/infiniband",
        "/home/sys/class/infiniband", "/.", "/..", "/.hidden"
    };
    char buf[PATH_MAX];

    for (const char *path : paths) {
        /* not only equal: the same pointer, nothing was copied */
        EXPECT_EQ(path, mlx5sim_path_map(path, buf, sizeof(buf))) << path;
    }
    EXPECT_EQ(nullptr, mlx5sim_path_map(nullptr, buf, sizeof(buf)));
}

TEST_F(test_sysfs_path, dots_and_slashes_do_not_matter)
{
    static const char *const spellings[] = {
        "//sys/class/infiniband/mlx5_0", "/sys//class///infiniband//mlx5_0",
        "/./sys/./class/infiniband/./mlx5_0",
        "/sys/class/net/../infiniband/mlx5_0",
        "/sys/bus/../class/infiniband/mlx5_0",
        "/dev/../sys/class/infiniband/mlx5_0", "/../sys/class/infiniband/mlx5_0"
    };

    for (const char *path : spellings) {
        EXPECT_EQ("/inst/sysfs/class/infiniband/mlx5_0", map(path)) << path;
    }
}

TEST_F(test_sysfs_path, dotdot_behind_a_link_is_the_directory_it_leads_to)
{
    static const struct {
        const char *path;
        const char *mapped;
    } cases[] = {
        {"/sys/class/infiniband/mlx5_1/..",
         "/inst/sysfs/devices/pci0000:00/0000:3b:00.1/infiniband"},
        {"/sys/class/infiniband/mlx5_1/../../vendor",
         "/inst/sysfs/devices/pci0000:00/0000:3b:00.1/vendor"},
        {"/sys/class/infiniband/mlx5_0/device/../0000:3b:00.1",
         "/inst/sysfs/devices/pci0000:00/0000:3b:00.1"},
        {"/sys/class/infiniband_verbs/uverbs0/device/infiniband/mlx5_0/../..",
         "/inst/sysfs/devices/pci0000:00/0000:3b:00.0"},
        {"/sys/class/infiniband/mlx5_0/ports/1/../2/lid",
         "/inst/sysfs/devices/pci0000:00/0000:3b:00.0/infiniband/mlx5_0/"
         "ports/2/lid"},
        {"/sys/bus/pci/devices/0000:3b:00.0/../0000:3b:00.1",
         "/inst/sysfs/devices/pci0000:00/0000:3b:00.1"},
        {"/sys/class/infiniband/mlx5_0/subsystem/../infiniband_verbs",
         "/inst/sysfs/class/infiniband_verbs"},
    };

    for (const auto &c : cases) {
        EXPECT_EQ(c.mapped, map(c.path)) << c.path;
    }
}

TEST_F(test_sysfs_path, dotdot_out_of_our_tree_is_back_on_the_machine)
{
    static const struct {
        const char *path;
        const char *mapped;
    } cases[] = {
        {"/sys/class/infiniband/../net", "/sys/class/net"},
        {"/sys/class/infiniband/mlx5_0/device/../../system/cpu",
         "/sys/devices/system/cpu"},
        {"/dev/infiniband/../null", "/dev/null"},
        /* from there on only the machine knows what is a link */
        {"/sys/class/infiniband/../net/lo/../eth0",
         "/sys/class/net/lo/../eth0"},
    };

    for (const auto &c : cases) {
        EXPECT_EQ(c.mapped, map(c.path)) << c.path;
    }

    /* never was in our tree */
    EXPECT_EQ("/sys/class/net/lo/../../class/infiniband",
              map("/sys/class/net/lo/../../class/infiniband"));
}

TEST_F(test_sysfs_path, character_devices_are_told_apart_with_their_number)
{
    char public_path[PATH_MAX];
    unsigned index = 99;

    auto kind = [&](const char *path) {
        return mlx5sim_path_classify(path, public_path, sizeof(public_path),
                                     &index);
    };

    EXPECT_EQ(MLX5SIM_PATH_UVERBS, kind("/dev/infiniband/uverbs0"));
    EXPECT_EQ(0u, index);
    EXPECT_EQ(MLX5SIM_PATH_UVERBS, kind("/dev//infiniband/./uverbs15"));
    EXPECT_EQ(15u, index);
    EXPECT_EQ(MLX5SIM_PATH_UVERBS, kind("/dev/infiniband/rdma_cm"));
    EXPECT_EQ(MLX5SIM_PATH_RDMA_CM, index);
    EXPECT_EQ(MLX5SIM_PATH_SYSFS, kind("/sys/class/misc/rdma_cm/abi_version"));
    EXPECT_EQ(MLX5SIM_PATH_OTHER, kind("/sys/class/misc/fuse"));
    EXPECT_EQ(MLX5SIM_PATH_UVERBS, kind("/dev/char/231:194"));
    EXPECT_EQ(2u, index);
    EXPECT_STREQ("dev/infiniband/uverbs2", public_path);

    for (const char *path :
         {"/dev/infiniband", "/dev/infiniband/uverbs", "/dev/infiniband/umad0",
          "/dev/infiniband/uverbs00", "/dev/infiniband/uverbs16",
          "/dev/infiniband/uverbs0x", "/dev/infiniband/uverbs-1",
          "/dev/infiniband/uverbs0/", "/dev/infiniband/uverbs0/x",
          "/dev/infiniband/uverbs99999999999999999999"}) {
        EXPECT_EQ(MLX5SIM_PATH_DEV, kind(path)) << path;
    }

    EXPECT_EQ(MLX5SIM_PATH_ANCESTOR, kind("/sys/devices/pci0000:00/"));
    EXPECT_EQ(MLX5SIM_PATH_ANCESTOR, kind("/sys/class"));
}

TEST_F(test_sysfs_path, unmap_is_the_inverse)
{
    for (const char *path :
         {"/sys", "/sys/class/infiniband/mlx5_0", "/dev/infiniband",
          "/sys/devices/pci0000:00/0000:3b:00.0/infiniband/mlx5_0"}) {
        char buf[PATH_MAX];
        ASSERT_NE(nullptr, mlx5sim_path_locate(path + 1, buf, sizeof(buf)));
        EXPECT_EQ(1, mlx5sim_path_unmap(buf));
        EXPECT_STREQ(path, buf);
    }

    for (const char *path : {"/inst", "/inst/config", "/inst/sysfsx",
                             "/instance/sysfs/class", "/sys/class"}) {
        char buf[PATH_MAX];
        strcpy(buf, path);
        EXPECT_EQ(0, mlx5sim_path_unmap(buf));
        EXPECT_STREQ(path, buf);
    }
}

TEST_F(test_sysfs_path, long_paths_are_left_to_the_kernel)
{
    std::string component(200, 'a');
    std::string path = "/sys/class/infiniband";

    /* whatever the length: no overflow, and either mapped or untouched */
    while (path.size() < 2 * PATH_MAX) {
        std::string mapped = map(path);
        if (path.size() + strlen(root_dir) + 2 < PATH_MAX - 1) {
            EXPECT_EQ(std::string(root_dir) + "/sysfs" + path.substr(4),
                      mapped);
        } else if (mapped != path) {
            EXPECT_LT(mapped.size(), size_t(PATH_MAX));
        }
        path += "/" + component;
    }

    char small[16];
    const char *asked = "/sys/class/infiniband/mlx5_0";
    EXPECT_EQ(asked, mlx5sim_path_map(asked, small, sizeof(small)));
}

/*
 * Identity
 */

TEST(test_sysfs_identity, no_two_ports_have_the_same_address)
{
    for (unsigned link : {MLX5SIM_LINK_IB, MLX5SIM_LINK_ROCE}) {
        std::set<std::string> gids;
        std::set<unsigned> lids;
        std::set<uint64_t> guids;
        mlx5sim_config_t config = default_config();

        config.link    = link;
        config.devices = MLX5SIM_DEVICES_MAX;
        config.ports   = MLX5SIM_PORTS_MAX;
        for (unsigned dev = 0; dev < config.devices; ++dev) {
            for (unsigned port = 1; port <= config.ports; ++port) {
                uint8_t gid[MLX5SIM_GID_LEN];
                char buf[MLX5SIM_GID_STR_MAX];

                ASSERT_TRUE(mlx5sim_port_gid(&config, dev, port, 0, gid));
                EXPECT_TRUE(gids.insert(mlx5sim_gid_str(gid, buf)).second);
                EXPECT_TRUE(guids.insert(mlx5sim_port_guid(&config, dev,
                                                             port)).second);
                if (link == MLX5SIM_LINK_ROCE) {
                    EXPECT_EQ(0, mlx5sim_port_lid(&config, dev, port));
                    ASSERT_TRUE(mlx5sim_port_gid(&config, dev, port, 3, gid));
                    EXPECT_TRUE(gids.insert(mlx5sim_gid_str(gid, buf)).second);
                } else {
                    EXPECT_TRUE(lids.insert(mlx5sim_port_lid(&config, dev,
                                                             port)).second);
                }
            }
        }
    }
}

TEST(test_sysfs_identity, pci_names_can_be_read_back)
{
    char name[MLX5SIM_PCI_NAME_MAX];

    for (unsigned dev = 0; dev < MLX5SIM_DEVICES_MAX; ++dev) {
        mlx5sim_pci_name(dev, name);
        EXPECT_EQ(int(dev), mlx5sim_pci_name_parse(name, strlen(name)));
        EXPECT_EQ(-1, mlx5sim_pci_name_parse(name, strlen(name) - 1));
    }
    EXPECT_EQ(-1, mlx5sim_pci_name_parse("0000:3b:00.2", 12));
}

/*
 * Tree
 */

class test_sysfs_tree : public ::testing::Test {
protected:
    std::string attr(const std::string &name)
    {
        return read_file(m_dir / ("sysfs/" + name));
    }

    /* errno of reading an attribute, 0: it can be read, -1: is not there */
    int attr_error(const std::string &name)
    {
        int fd = open((m_dir / ("sysfs/" + name)).c_str(), O_RDONLY);
        int error;
        char byte;

        if (fd < 0) {
            return -1;
        }
        error = (read(fd, &byte, 1) < 0) ? errno : 0;
        close(fd);
        return error;
    }

    static unsigned count_entries(const std::string &path)
    {
        m_count = 0;
        nftw(path.c_str(),
             [](const char *, const struct stat *, int, struct FTW *) {
                 ++m_count;
                 return 0;
             },
             16, FTW_PHYS);
        return m_count;
    }

    temp_dir        m_dir;
    static unsigned m_count;
};

unsigned test_sysfs_tree::m_count;

TEST_F(test_sysfs_tree, has_what_libibverbs_and_ucx_read)
{
    mlx5sim_config_t config = default_config();

    config.devices = 2;
    config.ports   = 2;
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));

    EXPECT_EQ("6\n", attr("class/infiniband_verbs/abi_version"));
    EXPECT_EQ("1\n", attr("class/infiniband_verbs/uverbs1/abi_version"));
    EXPECT_EQ("231:193\n", attr("class/infiniband_verbs/uverbs1/dev"));
    EXPECT_EQ("mlx5_1\n", attr("class/infiniband_verbs/uverbs1/ibdev"));
    EXPECT_EQ("1: CA\n", attr("class/infiniband/mlx5_1/node_type"));
    /* libibverbs matches "pci:v000015B3d00001017sv*" */
    EXPECT_EQ(0u, attr("class/infiniband/mlx5_0/device/modalias")
                          .find("pci:v000015B3d00001017sv"));
    EXPECT_EQ("0x15b3\n", attr("devices/pci0000:00/0000:3b:00.0/vendor"));
    EXPECT_EQ("0x1017\n", attr("devices/pci0000:00/0000:3b:00.0/device"));
    EXPECT_EQ("16\n",
              attr("devices/pci0000:00/0000:3b:00.0/current_link_width"));
    EXPECT_EQ("8.0 GT/s PCIe\n",
              attr("devices/pci0000:00/0000:3b:00.0/current_link_speed"));
    EXPECT_EQ("0x13\n", attr("class/infiniband/mlx5_1/ports/2/lid"));
    EXPECT_EQ("0xffff\n", attr("class/infiniband/mlx5_0/ports/1/pkeys/0"));
    EXPECT_EQ("IB/RoCE v1\n",
              attr("class/infiniband/mlx5_0/ports/1/gid_attrs/types/0"));
    EXPECT_EQ("0\n",
              attr("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"));

    EXPECT_EQ((std::set<std::string>{"mlx5_0", "mlx5_1"}),
              list_dir(m_dir / "sysfs/class/infiniband"));
    EXPECT_EQ((std::set<std::string>{"rdma_cm", "uverbs0", "uverbs1"}),
              list_dir(m_dir / "dev/infiniband"));
    EXPECT_EQ("4\n", attr("class/misc/rdma_cm/abi_version"));
    EXPECT_EQ((std::set<std::string>{"1", "2"}),
              list_dir(m_dir / "sysfs/class/infiniband/mlx5_0/ports"));
}

TEST_F(test_sysfs_tree, attributes_of_gids_that_are_not_there_are_invalid)
{
    mlx5sim_config_t config = default_config();
    std::string attrs       = "class/infiniband/mlx5_0/ports/1/gid_attrs/";

    /* there is no network interface of InfiniBand's GIDs */
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    EXPECT_EQ(0, attr_error(attrs + "types/0"));
    EXPECT_EQ(EINVAL, attr_error(attrs + "types/1"));
    EXPECT_EQ(EINVAL, attr_error(attrs + "types/7"));
    EXPECT_EQ(EINVAL, attr_error(attrs + "ndevs/0"));
    EXPECT_EQ(EINVAL, attr_error(attrs + "ndevs/7"));
    EXPECT_EQ(-1, attr_error(attrs + "types/8"));
    EXPECT_EQ(-1, attr_error(attrs + "ndevs/8"));

    mlx5sim_tree_remove(m_dir.fd());
    ASSERT_TRUE(list_dir(m_dir.c_str()).empty());
    config.link = MLX5SIM_LINK_ROCE;
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    EXPECT_EQ(0, attr_error(attrs + "types/3"));
    EXPECT_EQ(0, attr_error(attrs + "ndevs/3"));
    EXPECT_EQ(EINVAL, attr_error(attrs + "types/4"));
    EXPECT_EQ(EINVAL, attr_error(attrs + "ndevs/4"));
}

TEST_F(test_sysfs_tree, roce_ports_have_v2_gids_and_a_network_interface)
{
    mlx5sim_config_t config = default_config();
    std::string port        = "class/infiniband/mlx5_0/ports/1/";

    config.link = MLX5SIM_LINK_ROCE;
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    EXPECT_EQ("Ethernet\n", attr(port + "link_layer"));
    EXPECT_EQ("0x0\n", attr(port + "lid"));
    EXPECT_EQ("RoCE v2\n", attr(port + "gid_attrs/types/3"));
    EXPECT_EQ("IB/RoCE v1\n", attr(port + "gid_attrs/types/2"));
    EXPECT_EQ("lo\n", attr(port + "gid_attrs/ndevs/3"));
    EXPECT_EQ("0000:0000:0000:0000:0000:ffff:c612:0001\n",
              attr(port + "gids/3"));
    EXPECT_EQ(std::set<std::string>{"lo"},
              list_dir(m_dir / "sysfs/class/infiniband/mlx5_0/device/net"));
}

TEST_F(test_sysfs_tree, ports_without_gids_have_empty_directories)
{
    mlx5sim_config_t config = default_config();
    std::string device      = "class/infiniband/mlx5_0/ports/";
    std::string port        = "sysfs/" + device + "1/";
    char error[MLX5SIM_CONFIG_ERROR_MAX];

    config.link  = MLX5SIM_LINK_ROCE;
    config.ports = 2;
    ASSERT_EQ(0, mlx5sim_config_set(&config, "MLX5SIM_GIDLESS", "mlx5_0:1",
                                    error, sizeof(error)));
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    EXPECT_EQ("4: ACTIVE\n", attr(device + "1/state"));
    EXPECT_EQ("0x00000000\n", attr(device + "1/cap_mask"));
    EXPECT_EQ("0x00010000\n", attr(device + "2/cap_mask"));
    for (const char *name : {"gids", "gid_attrs/types", "gid_attrs/ndevs"}) {
        ASSERT_EQ(0, access((m_dir / (port + name)).c_str(), F_OK)) << name;
        EXPECT_TRUE(list_dir(m_dir / (port + name)).empty()) << name;
    }
    EXPECT_EQ("RoCE v2\n", attr(device + "2/gid_attrs/types/3"));
}

TEST_F(test_sysfs_tree, ports_with_empty_gids_have_zeros)
{
    mlx5sim_config_t config = default_config();
    std::string device      = "class/infiniband/mlx5_0/ports/";
    char error[MLX5SIM_CONFIG_ERROR_MAX];

    config.link  = MLX5SIM_LINK_ROCE;
    config.ports = 2;
    ASSERT_EQ(0, mlx5sim_config_set(&config, "MLX5SIM_EMPTY_GIDS", "mlx5_0:1",
                                    error, sizeof(error)));
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    EXPECT_EQ("0x00010000\n", attr(device + "1/cap_mask"));
    EXPECT_EQ(16u, list_dir(m_dir / ("sysfs/" + device + "1/gids")).size());
    for (const char *index : {"0", "3", "15"}) {
        EXPECT_EQ("0000:0000:0000:0000:0000:0000:0000:0000\n",
                  attr(device + "1/gids/" + index));
    }
    for (const char *name : {"types/0", "types/15", "ndevs/0", "ndevs/15"}) {
        EXPECT_EQ(EINVAL, attr_error(device + "1/gid_attrs/" + name)) << name;
    }
    EXPECT_EQ("lo\n", attr(device + "2/gid_attrs/ndevs/3"));
}

TEST_F(test_sysfs_tree, every_link_leads_where_the_path_mapping_thinks)
{
    static std::vector<std::string> links;
    mlx5sim_config_t config = default_config();
    char resolved[PATH_MAX], target[PATH_MAX];

    config.devices = 3;
    config.ports   = 2;
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    ASSERT_NE(nullptr, realpath(m_dir.c_str(), resolved));
    ASSERT_EQ(0, mlx5sim_path_set_root(resolved, config.devices));

    links.clear();
    nftw(resolved,
         [](const char *path, const struct stat *, int type, struct FTW *) {
             /* not what can't be read, which sysfs has no links for */
             if ((type == FTW_SL) && (strstr(path, "/gid_attrs/") == nullptr)) {
                 links.push_back(path);
             }
             return 0;
         },
         16, FTW_PHYS);

    /* per device: 3 in classes and bus, 2 of the function, 2 each of the
     * InfiniBand and uverbs devices */
    EXPECT_EQ(config.devices * 9, links.size());
    for (const std::string &link : links) {
        char public_path[PATH_MAX];

        strcpy(public_path, link.c_str());
        ASSERT_EQ(1, mlx5sim_path_unmap(public_path));
        ASSERT_NE(nullptr, realpath(link.c_str(), resolved)) << link;
        ASSERT_EQ(1, mlx5sim_path_unmap(resolved));
        ASSERT_EQ(1, mlx5sim_path_link(public_path + 1, target,
                                       sizeof(target))) << public_path;
        EXPECT_STREQ(resolved + 1, target) << public_path;
    }
}

TEST_F(test_sysfs_tree, creating_it_again_changes_nothing)
{
    mlx5sim_config_t config = default_config();
    struct stat before, after;
    std::string path = m_dir / "sysfs/class/infiniband/mlx5_0";

    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    ASSERT_EQ(0, stat(path.c_str(), &before));
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    ASSERT_EQ(0, stat(path.c_str(), &after));
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_EQ((std::set<std::string>{"sysfs", "dev"}), list_dir(m_dir.c_str()));
}

TEST_F(test_sysfs_tree, creators_at_the_same_time_all_end_with_a_whole_tree)
{
    mlx5sim_config_t config = default_config();
    temp_dir other;
    unsigned expected;

    config.devices = 2;
    ASSERT_EQ(0, mlx5sim_tree_create(other.fd(), &config));
    expected = count_entries(other.c_str());

    std::vector<int> results = run_at_once(8, [&](unsigned) {
        if (mlx5sim_tree_create(m_dir.fd(), &config) != 0) {
            return 1;
        }
        /* whoever was first: it must be complete as soon as we are back */
        return (count_entries(m_dir / "sysfs") + count_entries(m_dir / "dev") +
                1 == expected) ? 0 : 2;
    });

    EXPECT_EQ(std::vector<int>(8, 0), results);
    EXPECT_EQ((std::set<std::string>{"sysfs", "dev"}), list_dir(m_dir.c_str()));
}

TEST_F(test_sysfs_tree, a_failure_leaves_nothing_behind)
{
    mlx5sim_config_t config = default_config();

    EXPECT_EQ(-1, mlx5sim_tree_create(-1, &config));
    EXPECT_EQ(EBADF, errno);

    if (geteuid() != 0) {
        ASSERT_EQ(0, chmod(m_dir.c_str(), 0500));
        EXPECT_EQ(-1, mlx5sim_tree_create(m_dir.fd(), &config));
        EXPECT_EQ(EACCES, errno);
        ASSERT_EQ(0, chmod(m_dir.c_str(), 0700));
    }
    EXPECT_TRUE(list_dir(m_dir.c_str()).empty());
}

TEST_F(test_sysfs_tree, remove_takes_finished_and_unfinished_trees_only)
{
    mlx5sim_config_t config = default_config();

    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    ASSERT_EQ(0, mkdir((m_dir / "dev.tmp.7.8").c_str(), 0755));
    write_file(m_dir / "store", "");
    mlx5sim_tree_remove(m_dir.fd());
    EXPECT_EQ(std::set<std::string>{"store"}, list_dir(m_dir.c_str()));
}

/*
 * Instance
 */

class test_sysfs_instance : public ::testing::Test {
protected:
    int join(const std::string &dir, mlx5sim_config_t *config)
    {
        return mlx5sim_instance_join(dir.c_str(), 1, config, m_path, m_error,
                                     sizeof(m_error));
    }

    /** All of an instance that has not been used yet. */
    static std::set<std::string> whole()
    {
        return {"config",           "dev",       "lock",
                "mlx5sim-instance", "namespace", "sysfs"};
    }

    clean_env m_env;
    temp_dir  m_dir;
    char      m_path[PATH_MAX];
    char      m_error[MLX5SIM_CONFIG_ERROR_MAX];
};

TEST_F(test_sysfs_instance, the_first_user_decides_and_the_others_are_told)
{
    mlx5sim_config_t config;
    struct stat st;

    setenv("MLX5SIM_DEVICES", "3", 1);
    ASSERT_EQ(0, join(m_dir / "i", &config)) << m_error;
    EXPECT_EQ(3u, config.devices);
    EXPECT_STREQ("", m_error);
    ASSERT_EQ(0, stat((m_dir / "i").c_str(), &st));
    EXPECT_EQ(0700u, st.st_mode & 07777);

    setenv("MLX5SIM_DEVICES", "5", 1);
    ASSERT_EQ(0, join(m_dir / "i", &config)) << m_error;
    EXPECT_EQ(3u, config.devices);
    EXPECT_NE(nullptr, strstr(m_error, "MLX5SIM_DEVICES=5 has no effect"))
            << m_error;

    unsetenv("MLX5SIM_DEVICES");
    setenv("MLX5SIM_STRICT", "n", 1);
    ASSERT_EQ(0, join(m_dir / "i", &config)) << m_error;
    EXPECT_EQ(3u, config.devices);
    EXPECT_EQ(0u, config.strict);
    EXPECT_STREQ("", m_error);
}

TEST_F(test_sysfs_instance, a_bad_value_creates_nothing)
{
    mlx5sim_config_t config;

    setenv("MLX5SIM_LINK", "token-ring", 1);
    EXPECT_EQ(-1, join(m_dir / "i", &config));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_NE(nullptr, strstr(m_error, "MLX5SIM_LINK='token-ring'"));
    EXPECT_EQ(-1, access((m_dir / "i").c_str(), F_OK));
}

TEST_F(test_sysfs_instance, first_users_at_the_same_time_agree)
{
    for (unsigned round = 0; round < 5; ++round) {
        std::string dir = m_dir / ("i" + std::to_string(round));
        std::vector<int> results = run_at_once(8, [&](unsigned i) {
            mlx5sim_config_t config;

            /* each would have it differently */
            setenv("MLX5SIM_DEVICES", std::to_string(i + 1).c_str(), 1);
            if (join(dir, &config) != 0) {
                return 100;
            }

            return (list_dir(dir + "/sysfs/class/infiniband").size() ==
                    config.devices) ? int(config.devices) : 101;
        });

        EXPECT_GE(results[0], 1);
        EXPECT_LE(results[0], 8);
        EXPECT_EQ(std::vector<int>(8, results[0]), results);
        EXPECT_EQ(whole(), list_dir(dir));
    }
}

TEST_F(test_sysfs_instance, what_a_killed_creator_left_is_made_new)
{
    mlx5sim_config_t config = default_config();

    /* killed between the tree and the config file, and another one within the
     * tree */
    config.devices = 4;
    ASSERT_EQ(0, mlx5sim_place_claim(m_dir.fd(), m_dir.c_str(), m_error,
                                     sizeof(m_error)));
    ASSERT_EQ(0, mlx5sim_tree_create(m_dir.fd(), &config));
    ASSERT_EQ(0, mkdir((m_dir / "sysfs.tmp.1.2").c_str(), 0755));
    write_file(m_dir / "sysfs.tmp.1.2/x", "");

    setenv("MLX5SIM_DEVICES", "2", 1);
    ASSERT_EQ(0, join(m_dir.c_str(), &config)) << m_error;
    EXPECT_EQ(2u, config.devices);
    EXPECT_EQ((std::set<std::string>{"mlx5_0", "mlx5_1"}),
              list_dir(m_dir / "sysfs/class/infiniband"));
    EXPECT_EQ(whole(), list_dir(m_dir.c_str()));
}

TEST_F(test_sysfs_instance, a_directory_of_somebody_else_is_refused)
{
    mlx5sim_config_t config;
    std::string dir = "/usr";

    if (geteuid() == 0) {
        dir = m_dir / "i";
        ASSERT_EQ(0, mkdir(dir.c_str(), 0700));
        ASSERT_EQ(0, chown(dir.c_str(), 65534, 65534));
    }

    EXPECT_EQ(-1, join(dir, &config));
    EXPECT_EQ(EPERM, errno);
    EXPECT_NE(nullptr, strstr(m_error, "belongs to user")) << m_error;
    EXPECT_NE(nullptr, strstr(m_error, "MLX5SIM_DIR")) << m_error;
    EXPECT_EQ(-1, access((dir + "/config").c_str(), F_OK));
}

TEST_F(test_sysfs_instance, a_directory_others_can_write_to_is_refused)
{
    mlx5sim_config_t config;

    ASSERT_EQ(0, chmod(m_dir.c_str(), 0770));
    EXPECT_EQ(-1, join(m_dir.c_str(), &config));
    EXPECT_EQ(EPERM, errno);
    EXPECT_NE(nullptr, strstr(m_error, "chmod")) << m_error;
}

TEST_F(test_sysfs_instance, a_planted_link_is_not_followed)
{
    mlx5sim_config_t config;

    ASSERT_EQ(0, mkdir((m_dir / "target").c_str(), 0700));
    ASSERT_EQ(0, symlink("target", (m_dir / "i").c_str()));
    EXPECT_EQ(-1, mlx5sim_instance_join((m_dir / "i").c_str(), 0, &config,
                                        m_path, m_error, sizeof(m_error)));
    EXPECT_TRUE(list_dir(m_dir / "target").empty());

    /* whereas a user's own MLX5SIM_DIR may be one */
    EXPECT_EQ(0, join(m_dir / "i", &config)) << m_error;
    EXPECT_EQ("target", std::string(m_path).substr(strlen(m_path) - 6));

    /* but not somebody else's, with or without a slash that follows it */
    if (geteuid() == 0) {
        ASSERT_EQ(0, lchown((m_dir / "i").c_str(), 65534, 65534));
        for (const char *name : {"i", "i/"}) {
            EXPECT_EQ(-1, join(m_dir / name, &config)) << name;
            EXPECT_EQ(EPERM, errno);
            EXPECT_NE(nullptr, strstr(m_error, "symbolic link of user 65534"))
                    << m_error;
        }
    }
}

TEST_F(test_sysfs_instance, files_of_others_are_never_touched)
{
    mlx5sim_config_t config;

    ASSERT_EQ(0, mkdir((m_dir / "dev").c_str(), 0700));
    write_file(m_dir / "dev/project", "years of work");
    write_file(m_dir / "config", "LAYOUT=1\n");
    for (const char *mark : {"", "mlx5sim instance, format 0\n", "mlx5sim"}) {
        /* of another version, of another program, or unfinished */
        if (mark[0] != '\0') {
            write_file(m_dir / "mlx5sim-instance", mark);
        }

        EXPECT_EQ(-1, join(m_dir.c_str(), &config)) << mark;
        EXPECT_EQ(ENOTEMPTY, errno);
        EXPECT_NE(nullptr, strstr(m_error, "nothing in it is touched"))
                << m_error;
        EXPECT_EQ(-1, mlx5sim_instance_remove(m_dir.c_str(), 0, 1, m_error,
                                              sizeof(m_error)));
        EXPECT_EQ(ENOTEMPTY, errno);
        EXPECT_EQ("years of work", read_file(m_dir / "dev/project"));
        EXPECT_EQ("LAYOUT=1\n", read_file(m_dir / "config"));
    }
}

TEST_F(test_sysfs_instance, one_of_another_pid_namespace_is_refused)
{
    mlx5sim_config_t config;

    ASSERT_EQ(0, join(m_dir.c_str(), &config)) << m_error;
    write_file(m_dir / "namespace", "1:2\n");
    EXPECT_EQ(-1, join(m_dir.c_str(), &config));
    EXPECT_EQ(EXDEV, errno);
    EXPECT_NE(nullptr, strstr(m_error, "another PID namespace")) << m_error;
    EXPECT_NE(nullptr, strstr(m_error, m_dir.c_str())) << m_error;
    ASSERT_EQ(0, unlink((m_dir / "namespace").c_str()));
    EXPECT_EQ(-1, join(m_dir.c_str(), &config));
}

TEST_F(test_sysfs_instance, the_root_directory_is_refused)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    /* not by join(), which a mistake would let loose on /dev */
    ASSERT_LE(0, fd);
    EXPECT_EQ(-1, mlx5sim_place_claim(fd, "/", m_error, sizeof(m_error)));
    EXPECT_EQ(ENOTEMPTY, errno);
    EXPECT_NE(nullptr, strstr(m_error, "/ is not empty")) << m_error;
    EXPECT_NE(0, access("/mlx5sim-instance", F_OK));
    close(fd);
}

TEST_F(test_sysfs_instance, a_mark_is_a_file_and_not_a_link_or_a_fifo)
{
    std::string mark = m_dir / "i/mlx5sim-instance";
    mlx5sim_config_t config;

    ASSERT_EQ(0, join(m_dir / "i", &config)) << m_error;
    ASSERT_EQ(0, rename(mark.c_str(), (m_dir / "mark").c_str()));
    ASSERT_EQ(0, symlink("../mark", mark.c_str()));
    EXPECT_EQ(-1, join(m_dir / "i", &config));
    ASSERT_EQ(0, unlink(mark.c_str()));
    ASSERT_EQ(0, mkfifo(mark.c_str(), 0600));
    EXPECT_EQ(-1, join(m_dir / "i", &config));
    ASSERT_EQ(0, unlink(mark.c_str()));
    ASSERT_EQ(0, rename((m_dir / "mark").c_str(), mark.c_str()));
    EXPECT_EQ(0, join(m_dir / "i", &config)) << m_error;
}

TEST_F(test_sysfs_instance, one_who_was_killed_at_the_mark_is_in_nobodys_way)
{
    mlx5sim_config_t config;

    for (const char *mark : {"", "mlx5sim inst"}) {
        write_file(m_dir / "mlx5sim-instance", mark);
        ASSERT_EQ(0, join(m_dir.c_str(), &config)) << m_error;
        ASSERT_EQ(0, join(m_dir.c_str(), &config)) << m_error;
        EXPECT_EQ(whole(), list_dir(m_dir.c_str()));
        for (const std::string &name : whole()) {
            ASSERT_EQ(0, mlx5sim_place_remove(m_dir.fd(), name.c_str()));
        }
    }
}

TEST_F(test_sysfs_instance, removing_it_leaves_what_others_put_there)
{
    mlx5sim_config_t config;

    ASSERT_EQ(0, mkdir((m_dir / "target").c_str(), 0700));
    write_file(m_dir / "target/file", "kept");
    ASSERT_EQ(0, join(m_dir / "i", &config)) << m_error;
    write_file(m_dir / "i/notes", "kept");
    ASSERT_EQ(0, symlink("../../target", (m_dir / "i/sysfs/way").c_str()));
    EXPECT_EQ(-1, mlx5sim_instance_remove((m_dir / "i").c_str(), 0, 0, m_error,
                                          sizeof(m_error)));
    EXPECT_EQ(ENOTEMPTY, errno);
    EXPECT_EQ(std::set<std::string>{"notes"}, list_dir(m_dir / "i"));
    EXPECT_EQ("kept", read_file(m_dir / "target/file"));

    /* and then it is an instance no more */
    EXPECT_EQ(-1, join(m_dir / "i", &config));
    ASSERT_EQ(0, unlink((m_dir / "i/notes").c_str()));
    ASSERT_EQ(0, join(m_dir / "i", &config)) << m_error;
    write_file(m_dir / "i/notes", "not kept");
    EXPECT_EQ(0, mlx5sim_instance_remove((m_dir / "i").c_str(), 0, 1, m_error,
                                         sizeof(m_error))) << m_error;
    EXPECT_EQ(std::set<std::string>{"target"}, list_dir(m_dir.c_str()));
}

TEST_F(test_sysfs_instance, a_missing_parent_directory_is_named)
{
    mlx5sim_config_t config;

    EXPECT_EQ(-1, join(m_dir / "no/i", &config));
    EXPECT_EQ(ENOENT, errno);
    EXPECT_NE(nullptr, strstr(m_error, (m_dir / "no/i").c_str())) << m_error;
}
