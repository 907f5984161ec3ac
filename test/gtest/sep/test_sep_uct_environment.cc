/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <infiniband/verbs.h>

#include <cstring>

/*
 * What an adapter, its firmware or a container can be like.
 */

using namespace sep_uct_test;

namespace {

class test_sep_uct_environment : public test_sep_uct {
protected:
    void SetUp() override
    {
        /* Tests open what they need, on devices of their own */
    }
};

/* Attributes of another transport on the first port; false if there is none */
bool query_tl(const std::string &component, const std::string &tl,
              uct_iface_attr_t *attr_p)
{
    uct_component_h *components;
    unsigned num_components;
    bool found = false;

    if (uct_query_components(&components, &num_components) != UCS_OK) {
        return false;
    }

    for (unsigned i = 0; (i < num_components) && !found; ++i) {
        uct_component_attr_t attr;
        uct_md_config_t *md_config;
        uct_md_h md;

        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                          UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        if ((uct_component_query(components[i], &attr) != UCS_OK) ||
            (component != attr.name) || (attr.md_resource_count == 0)) {
            continue;
        }

        std::vector<uct_md_resource_desc_t> mds(attr.md_resource_count);
        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds.data();
        EXPECT_EQ(UCS_OK, uct_component_query(components[i], &attr));
        EXPECT_EQ(UCS_OK, uct_md_config_read(components[i], NULL, NULL,
                                             &md_config));
        EXPECT_EQ(UCS_OK, uct_md_open(components[i], mds[0].md_name, md_config,
                                      &md));
        uct_config_release(md_config);

        ucs_async_context_t *async;
        uct_worker_h worker;
        uct_iface_config_t *config;
        uct_iface_params_t params;
        uct_iface_h iface;
        std::string device = std::string(mds[0].md_name) + ":1";

        EXPECT_EQ(UCS_OK, ucs_async_context_create(
                                  UCS_ASYNC_MODE_THREAD_SPINLOCK, &async));
        EXPECT_EQ(UCS_OK, uct_worker_create(async, UCS_THREAD_MODE_SINGLE,
                                            &worker));
        EXPECT_EQ(UCS_OK, uct_md_iface_config_read(md, tl.c_str(), NULL, NULL,
                                                   &config));
        params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                      UCT_IFACE_PARAM_FIELD_DEVICE;
        params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
        params.mode.device.tl_name  = tl.c_str();
        params.mode.device.dev_name = device.c_str();
        if (uct_iface_open(md, worker, &params, config, &iface) == UCS_OK) {
            found = uct_iface_query(iface, attr_p) == UCS_OK;
            uct_iface_close(iface);
        }
        uct_config_release(config);
        uct_worker_destroy(worker);
        ucs_async_context_destroy(async);
        uct_md_close(md);
    }

    uct_release_component_list(components);
    return found;
}

/* What libmlx5 says of the atomics of the first device */
enum ibv_atomic_cap atomic_cap()
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_device_attr_ex attr = {};

    if ((devices == NULL) || (devices[0] == NULL)) {
        ADD_FAILURE() << "no device";
        return attr.orig_attr.atomic_cap;
    }

    struct ibv_context *context = ibv_open_device(devices[0]);
    EXPECT_EQ(0, ibv_query_device_ex(context, NULL, &attr));
    ibv_close_device(context);
    ibv_free_device_list(devices);
    return attr.orig_attr.atomic_cap;
}

/* Which atomics a device has on PCIe, and what can be offered then */
struct pci_atomics {
    const char *name;
    uint64_t   op32, fop32, op64, fop64;
};

void PrintTo(const pci_atomics &row, std::ostream *os)
{
    *os << row.name;
}

class test_sep_uct_pci_atomics :
    public test_sep_uct_environment,
    public ::testing::WithParamInterface<pci_atomics> {
};

const uint64_t add   = UCS_BIT(UCT_ATOMIC_OP_ADD);
const uint64_t cswap = UCS_BIT(UCT_ATOMIC_OP_CSWAP);

/* Masked atomics are not atomic towards the processor, whatever the device
 * says of the others: a sum that the processor and a masked operation both add
 * to would come out wrong */
TEST_P(test_sep_uct_pci_atomics, only_what_the_device_reports_is_offered)
{
    const pci_atomics &row = GetParam();

    if (!on_device({{"MLX5SIM_PCI_ATOMICS", row.name}})) {
        return;
    }

    for (auto &mode : api_modes()) {
        SCOPED_TRACE(mode.name);
        auto local       = entity::create(mode.config);
        bool is_verbs    = local->is_verbs();
        const auto &cap  = local->attr().cap;

        EXPECT_EQ(is_verbs ? 0 : row.op32, cap.atomic32.op_flags);
        EXPECT_EQ(is_verbs ? 0 : row.fop32, cap.atomic32.fop_flags);
        EXPECT_EQ(row.op64, cap.atomic64.op_flags);
        EXPECT_EQ(row.fop64, cap.atomic64.fop_flags);
        EXPECT_TRUE(cap.flags & UCT_IFACE_FLAG_ATOMIC_CPU);
        EXPECT_FALSE(cap.flags & UCT_IFACE_FLAG_ATOMIC_DEVICE);
    }

    /* UCX's transport on the same device, unless libmlx5 calls its atomics
     * global, as newer ones do: UCX takes that for none */
    uct_iface_attr_t attr;
    ASSERT_TRUE(query_tl("ib", "rc_mlx5", &attr));
    if (atomic_cap() == IBV_ATOMIC_GLOB) {
        EXPECT_EQ(0u, attr.cap.atomic64.op_flags);
        return;
    }
    EXPECT_EQ(attr.cap.atomic32.op_flags, row.op32);
    EXPECT_EQ(attr.cap.atomic32.fop_flags, row.fop32);
    EXPECT_EQ(attr.cap.atomic64.op_flags, row.op64);
    EXPECT_EQ(attr.cap.atomic64.fop_flags, row.fop64);
    EXPECT_TRUE(attr.cap.flags & UCT_IFACE_FLAG_ATOMIC_CPU);
}

/* All of 4 bytes are masked atomics, which a device need not have */
TEST_P(test_sep_uct_pci_atomics, none_of_4_bytes_without_masked_atomics)
{
    const pci_atomics &row = GetParam();

    if (!on_device({{"MLX5SIM_PCI_ATOMICS", row.name},
                    {"MLX5SIM_MASKED_ATOMICS", "n"}})) {
        return;
    }

    auto local      = entity::create();
    const auto &cap = local->attr().cap;
    EXPECT_EQ(0u, cap.atomic32.op_flags);
    EXPECT_EQ(0u, cap.atomic32.fop_flags);
    EXPECT_EQ(row.op64, cap.atomic64.op_flags);
    EXPECT_EQ(row.fop64, cap.atomic64.fop_flags);
}

TEST_P(test_sep_uct_pci_atomics, what_is_offered_works_and_nothing_else)
{
    const pci_atomics &row = GetParam();

    if (!on_device({{"MLX5SIM_PCI_ATOMICS", row.name}})) {
        return;
    }

    start({});
    remote_memory remote = m_peer->expose(64, 1);
    uint64_t result      = 0, before, after;
    completion comp;
    ucs_status_t status;

    auto content = [&]() {
        uint64_t value;
        memcpy(&value, m_peer->read(0, sizeof(value)).data(), sizeof(value));
        return value;
    };

    before = content();
    EXPECT_EQ(UCS_OK, retry([&]() {
        return uct_ep_atomic64_post(ep(), UCT_ATOMIC_OP_ADD, 5, remote.va,
                                    remote.rkey.rkey);
    }));
    flush();
    after = content();
    EXPECT_EQ(before + 5, after);

    if (row.fop64 & cswap) {
        comp.comp.count = 1;
        status          = retry([&]() {
            return uct_ep_atomic_cswap64(ep(), after, 77, remote.va,
                                         remote.rkey.rkey, &result,
                                         &comp.comp);
        });
        EXPECT_TRUE((status == UCS_OK) || (status == UCS_INPROGRESS));
        EXPECT_EQ(UCS_OK, wait(comp));
        EXPECT_EQ(after, result);
        EXPECT_EQ(77u, content());
        after = 77;
    }

    expect_errors errors;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_ep_atomic64_post(ep(), UCT_ATOMIC_OP_XOR, 1, remote.va,
                                   remote.rkey.rkey));
    EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_ERROR, "is not supported"));
    EXPECT_EQ(after, content());
}

INSTANTIATE_TEST_SUITE_P(
        device, test_sep_uct_pci_atomics,
        ::testing::Values(pci_atomics{"fadd8", 0, 0, add, add},
                          pci_atomics{"8", 0, 0, add, add | cswap},
                          pci_atomics{"4_8", add, add | cswap, add,
                                      add | cswap}),
        [](const ::testing::TestParamInfo<pci_atomics> &info) {
            return std::string("sizes_") + info.param.name;
        });

/* In a container, the GID that looks best can be that of an interface in
 * another network namespace: it is in the table, and of no use */
TEST_F(test_sep_uct_environment, a_gid_that_works_is_preferred_to_a_better_one)
{
    /* What the device has: 0 v1, 1 v2, 2 v1 IPv4, 3 v2 IPv4 */
    static const struct {
        const char *bad;
        unsigned   expected;
    } rows[] = {
        {"31", 3}, {"3", 1}, {"1", 3}, {"3,1", 2}, {"1,2,3", 0}
    };

    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    for (auto &row : rows) {
        SCOPED_TRACE(row.bad);
        ASSERT_EQ(0, setenv("MLX5SIM_BAD_GIDS", row.bad, 1));

        start({});
        EXPECT_EQ(row.expected, m_local->sep()->port.addr.gid_index);
        EXPECT_EQ((row.expected & 1) != 0,
                  m_local->sep()->port.addr.is_roce_v2 != 0);
        m_peer->send(m_local->addr(), 10, 100);
        EXPECT_TRUE(m_local->wait([&]() {
            return m_local->messages.size() == 10;
        }));
    }
}

TEST_F(test_sep_uct_environment, without_any_gid_that_works_a_warning_says_so)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"},
                    {"MLX5SIM_BAD_GIDS", "0,1,2,3"}})) {
        return;
    }

    {
        expect_errors errors;
        auto local = entity::create();

        EXPECT_TRUE(local != nullptr);
        EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_WARN, "UCX_SEP_GID_INDEX"));
        EXPECT_EQ(1u, errors.messages.size());
    }

    /* Who names one gets it */
    auto local = entity::create({{"GID_INDEX", "2"}});
    ASSERT_TRUE(local != nullptr);
    EXPECT_EQ(2u, local->sep()->port.addr.gid_index);
}

class test_sep_uct_aborted : public test_sep_uct_environment,
                             public ::testing::WithParamInterface<mode> {
};

/* More messages than there are receives, so none of these may be lost */
TEST_P(test_sep_uct_aborted, receives_are_used_again_and_messages_arrive)
{
    for (const char *value : {"1+:0x22:0x93", "1+:0x22:0x99",
                              "30:0x22:0x93"}) {
        SCOPED_TRACE(value);
        if (!on_device({{"MLX5SIM_RECV_ERROR", "1+:0x22:0x93"}})) {
            return;
        }
        ASSERT_EQ(0, setenv("MLX5SIM_RECV_ERROR", value, 1));

        settings config = {{"RX_QUEUE_LEN", "16"}, {"RX_QUEUE_FILL", "16"}};
        config.insert(config.end(), GetParam().config.begin(),
                      GetParam().config.end());
        start(config);

        m_peer->send(m_local->addr(), 100, 200);
        for (uint64_t i = 0; i < 100; ++i) {
            ASSERT_EQ(UCS_OK, retry([&]() {
                return uct_ep_am_short(ep(), 1, i, &i, sizeof(i));
            }));
        }
        EXPECT_TRUE(m_local->wait([&]() {
            return (m_local->messages.size() == 100) &&
                   (m_peer->num_received() == 100);
        }));
        flush();
        EXPECT_EQ(0u, m_local->failures.size());
        EXPECT_EQ(0u, m_peer->num_failures());
    }
}

/* The same syndrome means that the connection is gone if the vendor's says
 * something else */
TEST_P(test_sep_uct_aborted, another_vendor_syndrome_fails_the_connection)
{
    if (!on_device({{"MLX5SIM_RECV_ERROR", "5:0x22:0x94"}})) {
        return;
    }

    start(GetParam().config);
    ASSERT_EQ(UCS_OK, retry([&]() {
        return uct_ep_am_short(ep(), 1, 0, NULL, 0);
    }));
    flush();
    m_peer->send(m_local->addr(), 10, 200);
    EXPECT_TRUE(m_local->wait([&]() {
        return m_local->failures.size() > 0;
    }));
}

INSTANTIATE_TEST_SUITE_P(api, test_sep_uct_aborted,
                         ::testing::ValuesIn(api_modes()), mode_name);

} // namespace
