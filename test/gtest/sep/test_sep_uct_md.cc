/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/device/sep_pci.h>
#include <uct/ib/sep/base/sep_account.h>

#include <cstring>

using namespace sep_uct_test;

namespace {

/* Settings of the memory domain, and what the device and UCT see of them */
class test_sep_uct_md : public test_sep_uct {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    static std::unique_ptr<entity> open(const settings &md_config,
                                        const settings &config = settings())
    {
        auto result = entity::create(config, md_config);

        EXPECT_TRUE(result != nullptr);
        return result;
    }

    static uct_sep_md_t *md(entity &user)
    {
        return ucs_derived_of(user.md(), uct_sep_md_t);
    }

    static uct_md_attr_t query(entity &user)
    {
        uct_md_attr_t attr;

        EXPECT_EQ(UCS_OK, uct_md_query(user.md(), &attr));
        return attr;
    }

    static unsigned num_devices(uct_md_h md)
    {
        uct_tl_resource_desc_t *resources;
        unsigned count;

        EXPECT_EQ(UCS_OK, uct_md_query_tl_resources(md, &resources, &count));
        uct_release_tl_resource_list(resources);
        return count;
    }

    /* Ports that are offered with a setting; an interface is not needed */
    static unsigned num_ports(const std::string &name, const std::string &value)
    {
        uct_component_h component;
        uct_md_config_t *config;
        std::string md_name;
        unsigned count = ~0u;
        uct_md_h md;

        EXPECT_TRUE(find_md(&component, &md_name));
        EXPECT_EQ(UCS_OK, uct_md_config_read(component, NULL, NULL, &config));
        EXPECT_EQ(UCS_OK, modify(config, name, value));
        if (uct_md_open(component, md_name.c_str(), config, &md) == UCS_OK) {
            count = num_devices(md);
            uct_md_close(md);
        }
        uct_config_release(config);
        return count;
    }
};

TEST_F(test_sep_uct_md, registration_is_cached_unless_another_way_is_preferred)
{
    /* ... and where UCP has a cache, unless one is asked for */
    EXPECT_EQ(!UCT_SEP_COMPAT_UCP_HAS_RCACHE, md(*open({}))->rcache != NULL);
    EXPECT_TRUE(md(*open({{"RCACHE", "y"}}))->rcache != NULL);
    EXPECT_TRUE(md(*open({{"REG_METHODS", "odp,rcache"},
                          {"RCACHE", "y"}}))->rcache != NULL);
    EXPECT_TRUE(md(*open({{"REG_METHODS", "direct,rcache"}}))->rcache == NULL);
    EXPECT_TRUE(md(*open({{"REG_METHODS", "direct"}}))->rcache == NULL);
    EXPECT_TRUE(md(*open({{"RCACHE", "n"}}))->rcache == NULL);
    expect_refused({}, {"UCX_SEP_REG_METHODS has no way", "on-demand"},
                   {{"REG_METHODS", "odp"}});
    expect_refused({}, {"UCX_SEP_REG_METHODS has \"magic\""},
                   {{"REG_METHODS", "rcache,magic"}});
    expect_refused({}, {"UCX_SEP_REG_METHODS has no way"},
                   {{"REG_METHODS", ""}});
    expect_refused({}, {"UCX_SEP_RCACHE=y, but UCX_SEP_REG_METHODS"},
                   {{"REG_METHODS", "direct"}, {"RCACHE", "y"}});
    expect_refused({}, {"UCX_SEP_REG_METHODS has no way"},
                   {{"REG_METHODS", "rcache"}, {"RCACHE", "n"}});
}

/* Parts of a buffer, one after the other, as malloc() aligns it. If two had a
 * piece in common, the cache would register both again, as one, with each
 * further part. */
TEST_F(test_sep_uct_md, neighbours_do_not_become_one_region)
{
    const size_t length = 4096, parts = 16;
    auto local          = open({{"RCACHE", "y"}});
    bytes buffer((parts * length) + 128);
    uint8_t *first      = (uint8_t*)ucs_align_up_pow2((uintptr_t)buffer.data(),
                                                      64) + 16;
    std::vector<uct_mem_h> memhs(parts);

    for (size_t i = 0; i < parts; ++i) {
        ASSERT_EQ(UCS_OK, uct_md_mem_reg(local->md(), first + (i * length),
                                         length, UCT_MD_MEM_ACCESS_ALL,
                                         &memhs[i]));
        EXPECT_EQ(length, ((uct_sep_mem_t*)memhs[i])->mr->length) << i;
    }

    for (uct_mem_h memh : memhs) {
        EXPECT_EQ(UCS_OK, uct_md_mem_dereg(local->md(), memh));
    }
}

TEST_F(test_sep_uct_md, cost_of_a_registration_is_what_was_set)
{
    const settings direct = {{"REG_METHODS", "direct"}};

    uct_md_attr_t attr = query(*open(direct));
    EXPECT_DOUBLE_EQ(16e-6, attr.reg_cost.c);
    EXPECT_DOUBLE_EQ(0.06e-9, attr.reg_cost.m);

    attr = query(*open({{"REG_METHODS", "direct"},
                        {"MEM_REG_OVERHEAD", "3us"},
                        {"MEM_REG_GROWTH", "2ns"}}));
    EXPECT_DOUBLE_EQ(3e-6, attr.reg_cost.c);
    EXPECT_DOUBLE_EQ(2e-9, attr.reg_cost.m);
}

/* What the peer gets: the strict key and the one for puts and gets */
std::pair<uint32_t, uint32_t> peers_keys(entity &e, memory &region)
{
    uct_rkey_bundle_t rkey;
    bytes packed = region.packed_rkey();

    EXPECT_EQ(UCS_OK, uct_rkey_unpack(e.component(), packed.data(), &rkey));
    std::pair<uint32_t, uint32_t> keys = {
        uct_sep_rkey_value(uct_sep_rkey_strict(rkey.rkey)),
        uct_sep_rkey_value(rkey.rkey)
    };
    uct_rkey_release(e.component(), &rkey);
    return keys;
}

TEST_F(test_sep_uct_md, memory_with_relaxed_ordering_has_two_keys)
{
    auto strict  = open({{"PCI_RELAXED_ORDERING", "off"}});
    auto relaxed = open({{"PCI_RELAXED_ORDERING", "on"}});

    {
        memory region(strict->md(), 4096);
        auto *mem = (uct_sep_mem_t*)region.memh();
        EXPECT_EQ(nullptr, mem->relaxed_mr);
        EXPECT_EQ(mem->mr->lkey, mem->lkey);
        EXPECT_EQ(8u, query(*strict).rkey_packed_size);
        EXPECT_EQ(std::make_pair(mem->mr->rkey, mem->mr->rkey),
                  peers_keys(*strict, region));
    }

    memory region(relaxed->md(), 4096);
    auto *mem = (uct_sep_mem_t*)region.memh();
    ASSERT_NE(nullptr, mem->relaxed_mr);
    EXPECT_NE(mem->mr->lkey, mem->relaxed_mr->lkey);
    EXPECT_EQ(mem->relaxed_mr->lkey, mem->lkey);
    EXPECT_EQ(mem->mr->addr, mem->relaxed_mr->addr);
    EXPECT_EQ(mem->mr->length, mem->relaxed_mr->length);
    EXPECT_EQ(12u, query(*relaxed).rkey_packed_size);
    EXPECT_EQ(std::make_pair(mem->mr->rkey, mem->relaxed_mr->rkey),
              peers_keys(*relaxed, region));
}

/* In all modes in which memory has local keys of its own */
TEST_F(test_sep_uct_md, data_arrive_with_relaxed_ordering)
{
    for (const char *category : {"dynamic", "mpi_everywhere", "mpi_threads"}) {
        auto first  = open({{"PCI_RELAXED_ORDERING", "on"}},
                           {{"CATEGORY", category}});
        auto second = entity::create(*first, {{"CATEGORY", category}});
        ASSERT_TRUE(second != nullptr);
        uct_ep_h ep = second->connect(first->addr());
        memory source(second->md(), 4096), target(second->md(), 4096);
        bytes packed = target.packed_rkey();
        uct_rkey_bundle_t rkey;

        ASSERT_EQ(UCS_OK, uct_rkey_unpack(second->component(), packed.data(),
                                          &rkey));
        bytes data = pattern(4096, 7);
        memcpy(source.ptr(), data.data(), data.size());
        uct_iov_t iov = {source.ptr(), source.size(), source.memh(), 0, 1};

        auto complete = [&](const std::function<ucs_status_t(
                                    uct_completion_t*)> &op) {
            completion comp;
            ucs_status_t status;
            do {
                status = op(&comp.comp);
                first->progress();
                second->progress();
            } while (status == UCS_ERR_NO_RESOURCE);
            ASSERT_EQ(UCS_INPROGRESS, status);
            EXPECT_TRUE(second->wait([&]() {
                first->progress();
                return comp.calls > 0;
            }));
            EXPECT_EQ(UCS_OK, comp.status);
        };

        complete([&](uct_completion_t *comp) {
            return uct_ep_put_zcopy(ep, &iov, 1, target.va(), rkey.rkey, comp);
        });
        EXPECT_EQ(0, memcmp(target.ptr(), data.data(), data.size()));

        memset(source.ptr(), 0, source.size());
        complete([&](uct_completion_t *comp) {
            return uct_ep_get_zcopy(ep, &iov, 1, target.va(), rkey.rkey, comp);
        });
        EXPECT_EQ(0, memcmp(source.ptr(), data.data(), data.size()));

        uint64_t word;
        memcpy(&word, data.data(), sizeof(word));
        uint64_t result = 0;
        complete([&](uct_completion_t *comp) {
            return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 5, &result,
                                         target.va(), rkey.rkey, comp);
        });
        EXPECT_EQ(word, result);
        memcpy(&result, target.ptr(), sizeof(result));
        EXPECT_EQ(word + 5, result);
        uct_rkey_release(second->component(), &rkey);
    }
}

TEST_F(test_sep_uct_md, pci_bandwidth_bounds_that_of_the_port)
{
    double wire = open({{"PCI_BW", "mlx5_0:1000GBs"}})->attr().bandwidth.shared;

    EXPECT_NEAR(1e9, open({{"PCI_BW", "mlx5_0:1000MBs"}})->
                     attr().bandwidth.shared, 0.05e9);
    EXPECT_NEAR(wire, open({{"PCI_BW", "mlx5_0:auto"}})->
                      attr().bandwidth.shared, wire * 0.3);
    EXPECT_NEAR(wire, open({{"PCI_BW", "mlx5_9:1MBs"}})->
                      attr().bandwidth.shared, wire * 0.3);
}

TEST(test_sep_pci, payload_of_a_link_is_known_from_speed_and_width)
{
    /* Of 256 bytes of payload and what is around them */
    EXPECT_NEAR(2.0e9 * 16 / 8 * 256 / 284,
                uct_sep_pci_link_bw("2.5 GT/s PCIe\n", "16\n"), 1e3);
    EXPECT_NEAR(16e9 * 128 / 130 * 16 / 8 * 256 / 286,
                uct_sep_pci_link_bw("16.0 GT/s PCIe", "16"), 1e3);
    EXPECT_NEAR(8e9 * 128 / 130 * 8 / 8 * 256 / 286,
                uct_sep_pci_link_bw("8 GT/s", "8"), 1e3);

    for (const char *speed : {"", "Unknown", "0 GT/s", "64 lanes", "-3 GT/s"}) {
        EXPECT_EQ(UCT_SEP_PCI_BW_UNLIMITED, uct_sep_pci_link_bw(speed, "16"))
                << speed;
    }
    for (const char *width : {"", "0", "63", "x"}) {
        EXPECT_EQ(UCT_SEP_PCI_BW_UNLIMITED,
                  uct_sep_pci_link_bw("8 GT/s", width)) << width;
    }
}

TEST(test_sep_pci, processors_are_near_if_the_device_says_so)
{
    cpu_set_t local, affinity;

    ASSERT_EQ(UCS_OK, uct_sep_pci_parse_cpus("00000001,80000003\n", &local));
    EXPECT_EQ(4, CPU_COUNT(&local));
    for (int cpu : {0, 1, 31, 32}) {
        EXPECT_TRUE(CPU_ISSET(cpu, &local)) << cpu;
    }

    CPU_ZERO(&affinity);
    CPU_SET(1, &affinity);
    CPU_SET(32, &affinity);
    EXPECT_EQ(0, uct_sep_pci_distance(&local, &affinity));
    CPU_SET(33, &affinity);
    EXPECT_DOUBLE_EQ(200e-9, uct_sep_pci_distance(&local, &affinity));

    for (const char *text : {"", ",", "1,", "x", "123456789"}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_sep_pci_parse_cpus(text, &local))
                << text;
    }
}

TEST_F(test_sep_uct_md, infiniband_ports_can_be_chosen_by_subnet)
{
    EXPECT_EQ(1u, num_ports("SUBNET_PREFIX", ""));
    EXPECT_EQ(1u, num_ports("SUBNET_PREFIX", "fe80:0:0:0"));
    EXPECT_EQ(0u, num_ports("SUBNET_PREFIX", "fe80:0:0:1"));

    for (const char *text : {"fe80", "fe80:0:0:0:0", "x:0:0:0", "fe80:0:0:",
                             "12345:0:0:0"}) {
        expect_refused({}, {std::string("UCX_SEP_SUBNET_PREFIX=") + text},
                       {{"SUBNET_PREFIX", text}});
    }
}

TEST_F(test_sep_uct_md, infiniband_needs_no_pause_frames)
{
    EXPECT_EQ(1u, num_ports("ETH_PAUSE_ON", "n"));
}

TEST_F(test_sep_uct_md, roce_ports_are_not_offered_on_a_lossy_network)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    EXPECT_EQ(1u, num_ports("ETH_PAUSE_ON", "y"));
    EXPECT_EQ(0u, num_ports("ETH_PAUSE_ON", "n"));
    EXPECT_EQ(1u, num_ports("SUBNET_PREFIX", "fe80:0:0:1"));
}

} // namespace
