/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_HUB_TWO_H
#define TEST_SEP_HUB_TWO_H

#include <sep/test_sep_uct.h>

#include <memory>

namespace sep_uct_test {

/* Two workers with one connection to the peer (category mpi_threads), on which
 * each has sent a message. The peer has few receive buffers. */
class test_sep_hub_two : public test_sep_uct {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        start(config, 1);
        m_other    = entity::create(*m_local, config);
        ASSERT_TRUE(m_other != nullptr);
        ASSERT_EQ(m_local->sep(), m_other->sep());
        m_other_ep = m_other->connect(m_peer->addr());
        m_remote   = m_peer->expose(4096, 5);
        must_send(*m_local, ep());
        must_send(*m_other, m_other_ep);
        EXPECT_TRUE(m_local->flush());
        EXPECT_TRUE(m_other->flush());
    }

    void TearDown() override
    {
        if (m_other_ep != nullptr) {
            uct_rkey_release(m_local->component(), &m_remote.rkey);
        }
        m_other.reset();
        test_sep_uct::TearDown();
    }

    static uct_sep_hub_iface_t *hub_iface(entity &e)
    {
        return ucs_derived_of(e.iface(), uct_sep_hub_iface_t);
    }

    static uct_sep_hub_ep_t *hub_ep(uct_ep_h ep)
    {
        return ucs_derived_of(ep, uct_sep_hub_ep_t);
    }

    static uct_sep_hub_t *hub(entity &e)
    {
        return hub_iface(e)->hub;
    }

    static ucs_status_t send(uct_ep_h ep, uint64_t header = 0)
    {
        return uct_ep_am_short(ep, 1, header, NULL, 0);
    }

    static void must_send(entity &e, uct_ep_h ep)
    {
        EXPECT_TRUE(e.wait([&]() { return send(ep) == UCS_OK; }));
    }

    settings config = {{"CATEGORY", "mpi_threads"},
                       {"RX_QUEUE_LEN", "16"},
                       {"FC_ENABLE", "n"},
                       {"EAGER", "n"}};

    std::unique_ptr<entity> m_other;
    uct_ep_h                m_other_ep = nullptr;
    remote_memory           m_remote;
};

} // namespace sep_uct_test

#endif
