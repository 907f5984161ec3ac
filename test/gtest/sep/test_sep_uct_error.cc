/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/iface/sep_api.h>

#include <cstdlib>
#include <cstring>

using namespace sep_uct_test;

namespace {

class test_sep_uct_error : public test_sep_uct_mode {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        start(impatient);
    }

    void connect()
    {
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep(), 1, 0, NULL, 0);
        }));
        flush();
    }

    ucs_status_t wait_failure(uct_ep_h ep)
    {
        m_local->wait([&]() {
            for (auto &failure : m_local->failures) {
                if (failure.ep == ep) {
                    return true;
                }
            }
            return false;
        });
        for (auto &failure : m_local->failures) {
            if (failure.ep == ep) {
                return failure.status;
            }
        }
        return UCS_OK;
    }

    /* The peer refuses a work request. Its queue pair is in error from then on:
     * if its answer is lost, there is none to what is repeated. */
    void expect_failed_by_peer(uct_ep_h ep)
    {
        const char *loss    = getenv("MLX5SIM_LOSS");
        ucs_status_t status = wait_failure(ep);

        if ((loss == nullptr) || (status != UCS_ERR_ENDPOINT_TIMEOUT)) {
            EXPECT_EQ(UCS_ERR_CONNECTION_RESET, status);
        }
    }

    /* No operation can be started, flush is done, and no queue pair remains */
    void expect_unusable(uct_ep_h ep)
    {
        uint64_t data = 0;

        EXPECT_EQ(UCS_ERR_CONNECTION_RESET,
                  uct_ep_am_short(ep, 1, 0, NULL, 0));
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET,
                  uct_ep_put_short(ep, &data, sizeof(data), 0, 0));
        EXPECT_EQ(UCS_OK, uct_ep_flush(ep, 0, NULL));
        EXPECT_EQ(UCS_OK, uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, NULL));
        m_local->wait([&]() { return m_local->num_qps() == 0; });
    }
};

TEST_P(test_sep_uct_error, a_killed_peer_is_reported_and_all_operations_end)
{
    remote_memory rmem = m_peer->expose(65536, 5);
    memory local(m_local->md(), 65536);
    uct_iov_t iov = {local.ptr(), 4096, local.memh(), 0, 1};
    completion comps[20];
    completion flush_comp;

    connect();
    m_peer->kill();

    for (auto &comp : comps) {
        ASSERT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(ep(), &iov, 1, rmem.va, rmem.rkey.rkey,
                                   &comp.comp));
    }
    for (unsigned i = 0; i < 20; ++i) {
        ASSERT_EQ(UCS_OK, uct_ep_am_short(ep(), 1, 0, NULL, 0));
    }
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_flush(ep(), 0, &flush_comp.comp));

    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, wait_failure(ep()));
    for (auto &comp : comps) {
        EXPECT_EQ(1u, comp.calls);
        EXPECT_TRUE(UCS_STATUS_IS_ERR(comp.status));
    }
    EXPECT_EQ(1u, flush_comp.calls);
    EXPECT_EQ(1u, m_local->failures.size());
    expect_unusable(ep());
    flush();
    EXPECT_EQ(4095, m_local->sep()->tx.cq_credits);
}

TEST_P(test_sep_uct_error, a_peer_that_is_gone_before_the_first_use_is_reported)
{
    start(hasty);
    m_peer->kill();
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_am_short(ep(), 1, 0, NULL, 0));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait_failure(ep())));
    expect_unusable(ep());
}

/* The connection went away with its last endpoint while it was in use */
TEST_P(test_sep_uct_error, the_last_endpoint_may_be_destroyed_when_it_fails)
{
    start(hasty);
    m_peer->kill();
    m_local->destroy_failed = true;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_am_short(ep(), 1, 0, NULL, 0));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait_failure(ep())));
    EXPECT_EQ(0u, m_local->num_qps());
}

/* Was reported as a lack of resources, which a completion would have ended */
TEST_P(test_sep_uct_error, a_queue_pair_that_cannot_be_made_is_an_error)
{
    uct_pending_req_t req;
    unsigned queue_len = m_local->sep()->config.tx_queue_len;

    req.func = [](uct_pending_req_t*) { return UCS_OK; };
    m_local->sep()->config.tx_queue_len = 1u << 30;
    {
        expect_errors expected;

        EXPECT_EQ(UCS_ERR_NO_MEMORY, uct_ep_am_short(ep(), 1, 0, NULL, 0));
        EXPECT_EQ(UCS_ERR_BUSY, uct_ep_pending_add(ep(), &req, 0));
    }
    EXPECT_EQ(0u, m_local->num_qps());

    m_local->sep()->config.tx_queue_len = queue_len;
    connect();
}

TEST_P(test_sep_uct_error, pending_requests_survive_until_they_are_purged)
{
    uct_pending_req_t reqs[3];
    unsigned purged = 0;

    start(hasty);
    m_peer->kill();
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_am_short(ep(), 1, 0, NULL, 0));
    for (auto &req : reqs) {
        req.func = [](uct_pending_req_t*) { return UCS_ERR_NO_RESOURCE; };
        ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &req, 0));
    }
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait_failure(ep())));
    uct_ep_pending_purge(ep(), [](uct_pending_req_t*, void *arg) {
        ++*(unsigned*)arg;
    }, &purged);
    EXPECT_EQ(3u, purged);
    flush();
}

TEST_P(test_sep_uct_error, ep_check_finds_a_dead_peer)
{
    connect();
    for (unsigned i = 0; i < 10; ++i) {
        ASSERT_EQ(UCS_OK, uct_ep_check(ep(), 0, NULL));
        flush();
    }
    EXPECT_TRUE(m_local->failures.empty());

    m_peer->kill();
    ASSERT_EQ(UCS_OK, uct_ep_check(ep(), 0, NULL));
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, wait_failure(ep()));
}

TEST_P(test_sep_uct_error, ep_check_finds_a_dead_peer_without_a_connection)
{
    start(hasty);
    m_peer->kill();
    ASSERT_EQ(UCS_OK, uct_ep_check(ep(), 0, NULL));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait_failure(ep())));
}

TEST_P(test_sep_uct_error, memory_outside_the_region_fails_the_endpoint)
{
    remote_memory rmem = m_peer->expose(4096, 5);
    completion comp;
    bytes result;

    connect();
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_get_bcopy(ep(), [](void*, const void*, size_t) {
                  ADD_FAILURE() << "unpacked what was not read";
              }, NULL, 8192, rmem.va + (1 << 20), rmem.rkey.rkey, &comp.comp));
    expect_failed_by_peer(ep());
    EXPECT_TRUE(UCS_STATUS_IS_ERR(comp.status));
}

TEST_P(test_sep_uct_error, the_peer_hears_of_a_broken_connection_when_it_sends)
{
    remote_memory rmem = m_peer->expose(4096, 5);
    uint64_t data      = 0;

    connect();
    ASSERT_EQ(UCS_OK, uct_ep_put_short(ep(), &data, sizeof(data), rmem.va,
                                       0xbad));
    expect_failed_by_peer(ep());

    /* Either its first message fails, or a new connection carries it */
    m_peer->send(m_local->addr(), 1, 64);
    m_local->wait([&]() {
        return (m_peer->num_failures() > 0) || !m_local->messages.empty();
    });
}

TEST_P(test_sep_uct_error, malformed_addresses_are_refused)
{
    address good = m_peer->addr();
    unsigned refused = 0;
    expect_errors hide;

    EXPECT_TRUE(uct_iface_is_reachable(m_local->iface(),
                                       (uct_device_addr_t*)good.dev.data(),
                                       (uct_iface_addr_t*)good.iface.data()));

    for (size_t i = 0; i < good.dev.size() + good.iface.size(); ++i) {
        address bad   = good;
        uint8_t &byte = (i < bad.dev.size()) ? bad.dev[i] :
                                               bad.iface[i - bad.dev.size()];
        uct_ep_h ep;

        byte ^= 0xff;
        int reachable = uct_iface_is_reachable(
                m_local->iface(), (uct_device_addr_t*)bad.dev.data(),
                (uct_iface_addr_t*)bad.iface.data());
        ucs_status_t status = m_local->try_connect(bad, &ep);
        if (reachable) {
            EXPECT_EQ(UCS_OK, status) << i;
        } else {
            EXPECT_TRUE(UCS_STATUS_IS_ERR(status)) << i;
            ++refused;
        }
    }
    /* Flags, reserved bytes, version at least */
    EXPECT_GE(refused, 3u);
    EXPECT_EQ(0u, m_local->num_qps());
}

/* In the other process, which has not said yet what it says once */
TEST_P(test_sep_uct_error, a_process_of_another_version_is_refused_by_name)
{
    address later         = m_local->addr();
    const std::string two = "version " + std::to_string(UCT_SEP_ADDR_VERSION +
                                                        1) +
                            " of the connection protocol, this is version " +
                            std::to_string(UCT_SEP_ADDR_VERSION);
    std::string said;

    EXPECT_EQ(UCT_SEP_ADDR_VERSION, later.iface[0] & 0x7f);
    ++later.iface[0];
    EXPECT_FALSE(m_peer->reaches(later, &said));
    EXPECT_NE(std::string::npos, said.find("a peer has " + two)) << said;
    EXPECT_NE(std::string::npos, said.find("same version of the transport"))
            << said;
    EXPECT_EQ(0u, m_peer->num_qps());

    /* Of this version it is reached */
    EXPECT_TRUE(m_peer->reaches(m_local->addr(), &said)) << said;
    EXPECT_EQ("", said);
    m_peer->send(m_local->addr(), 1, 8);
    m_local->wait([&]() { return m_local->messages.size() == 1; });
    EXPECT_EQ(0u, m_peer->num_failures());
}

TEST_P(test_sep_uct_error, a_foreign_interface_id_does_not_connect)
{
    address stale = m_peer->addr();
    uct_ep_h ep;

    /* An earlier process at the same UD QP */
    stale.iface[offsetof(uct_sep_iface_addr_t, flags_id)] ^= 1;
    ASSERT_EQ(UCS_OK, m_local->try_connect(stale, &ep));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_am_short(ep, 1, 0, NULL, 0));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait_failure(ep)));
    connect(); /* The real one is not disturbed */
}

TEST_P(test_sep_uct_error, foreign_remote_keys_are_refused)
{
    memory local(m_local->md(), 4096);
    bytes packed = local.packed_rkey();
    uct_rkey_bundle_t rkey;
    expect_errors hide;

    ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_local->component(), packed.data(),
                                      &rkey));
    for (unsigned i = 0; i < 4; ++i) {
        bytes bad = packed;

        bad[i] ^= 1;
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_rkey_unpack(m_local->component(), bad.data(), &rkey));
    }

    /* Two keys, of which one was overwritten */
    packed.resize(uct_sep_rkey_packed_size(1));
    uct_sep_rkey_pack(0x1234, 0x5678, packed.data());
    ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_local->component(), packed.data(),
                                      &rkey));
    memcpy(&packed[offsetof(uct_sep_packed_rkey_t, relaxed)],
           &packed[offsetof(uct_sep_packed_rkey_t, rkey)], 4);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_rkey_unpack(m_local->component(), packed.data(), &rkey));
    EXPECT_EQ(5u, hide.count(UCS_LOG_LEVEL_ERROR, "remote key"));
}

TEST_P(test_sep_uct_error, settings_out_of_range_are_refused)
{
    const settings bad = {
        {"RX_QUEUE_LEN", "0"},
        {"RX_QUEUE_LEN", "1000000"},
        {"TX_QUEUE_LEN", "1"},
        {"TX_CQ_LEN", "1"},
        {"TX_CQ_MODERATION", "0"},
        {"SEG_SIZE", "10"},
        {"RETRY_COUNT", "8"},
        {"RNR_RETRY_COUNT", "8"},
        {"SL", "16"},
        {"TRAFFIC_CLASS", "256"}
    };

    for (auto &setting : bad) {
        expect_refused(all_settings({setting}),
                       {"UCX_SEP_" + setting.first + "=" + setting.second +
                        ", should be between"});
    }
    expect_refused(all_settings({{"PKEY", "0x1234"}}),
                   {"0x1234 is not in the port's table"});
    expect_refused(all_settings({{"GID_INDEX", "200"}}),
                   {"correct UCX_SEP_GID_INDEX"});
    expect_refused(all_settings({{"LID_PATH_BITS", "100"}}),
                   {"UCX_SEP_LID_PATH_BITS has no value"});
}

TEST_P(test_sep_uct_error, unsupported_atomics_are_refused)
{
    uint64_t result;
    completion comp;
    expect_errors hide;

    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_ep_atomic64_post(ep(), UCT_ATOMIC_OP_SWAP, 0, 0, 0));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_ep_atomic64_post(ep(), UCT_ATOMIC_OP_LAST, 0, 0, 0));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_ep_atomic64_fetch(ep(), (uct_atomic_op_t)100, 0, &result, 0,
                                    0, &comp.comp));
}

TEST_P(test_sep_uct_error, settings_that_an_api_does_not_have_are_refused)
{
    const settings bad = {{"TX_POST", "bf"},
                          {"TX_POST", "db"},
                          {"TX_POSTLIST", "8"},
                          {"CQ_SHARING", "2"}};
    bool is_verbs      = m_local->is_verbs();

    for (auto &setting : bad) {
        settings config = all_settings({{"CATEGORY", "dynamic"}, setting});

        if (is_verbs) {
            expect_refused(config, {"UCX_SEP_" + setting.first,
                                    std::string("UCX_SEP_API=") +
                                    m_local->sep()->api->name});
        } else {
            EXPECT_TRUE(entity::create(config) != nullptr)
                    << setting.first << "=" << setting.second;
        }
    }
}

TEST_P(test_sep_uct_error, only_verbs_refuses_atomics_that_it_does_not_have)
{
    bool has_all         = !m_local->is_verbs();
    ucs_status_t posted  = has_all ? UCS_OK : UCS_ERR_UNSUPPORTED;
    ucs_status_t fetched = has_all ? UCS_INPROGRESS : UCS_ERR_UNSUPPORTED;
    remote_memory rmem   = m_peer->expose(16, 5);
    const bytes before   = m_peer->read(0, 16);
    uint32_t result32    = 0;
    uint64_t result64    = 0;
    completion comp[2];
    uint64_t value64;
    expect_errors hide;

    memcpy(&value64, before.data(), sizeof(value64));
    EXPECT_EQ(has_all, !!(m_local->attr().cap.atomic64.fop_flags &
                          UCS_BIT(UCT_ATOMIC_OP_SWAP)));
    EXPECT_EQ(has_all, !!(m_local->attr().cap.atomic32.op_flags &
                          UCS_BIT(UCT_ATOMIC_OP_ADD)));
    EXPECT_EQ(posted, retry([&]() {
        return uct_ep_atomic64_post(ep(), UCT_ATOMIC_OP_AND, 0, rmem.va,
                                    rmem.rkey.rkey);
    }));
    EXPECT_EQ(posted, retry([&]() {
        return uct_ep_atomic32_post(ep(), UCT_ATOMIC_OP_ADD, 3, rmem.va,
                                    rmem.rkey.rkey);
    }));
    EXPECT_EQ(fetched, retry([&]() {
        return uct_ep_atomic_cswap32(ep(), 3, 5, rmem.va, rmem.rkey.rkey,
                                     &result32, &comp[0].comp);
    }));
    EXPECT_EQ(fetched, retry([&]() {
        return uct_ep_atomic64_fetch(ep(), UCT_ATOMIC_OP_SWAP, 9, &result64,
                                     rmem.va, rmem.rkey.rkey, &comp[1].comp);
    }));
    flush();
    for (auto &each : comp) {
        EXPECT_EQ(has_all ? 1u : 0u, each.calls);
    }
    EXPECT_EQ(has_all ? 3u : 0u, result32);
    EXPECT_EQ(has_all ? 5u : 0u, result64);
    if (has_all) {
        value64 = 9;
    }
    EXPECT_EQ(0, memcmp(m_peer->read(0, 8).data(), &value64, 8));
    uct_rkey_release(m_local->component(), &rmem.rkey);
}

INSTANTIATE_TEST_SUITE_P(api, test_sep_uct_error,
                         ::testing::ValuesIn(api_modes()), mode_name);

} // namespace
