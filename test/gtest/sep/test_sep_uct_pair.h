/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_UCT_PAIR_H
#define TEST_SEP_UCT_PAIR_H

#include <sep/test_sep_uct_pack.h>

#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/eager/sep_eager_stats.h>

#include <cstring>
#include <memory>

namespace sep_uct_test {

/* Two interfaces of one process that send to each other, with the eager
 * channel: who writes is 0, who owns the ring 1 */
class eager_pair : public ::testing::Test {
protected:
    explicit eager_pair(const char *category = "dynamic") : m_category(category)
    {
    }

    /* In category mpi_threads, workers of one memory domain have one interface
     * behind them, which would write to itself */
    std::unique_ptr<entity> create_other(const settings &config)
    {
        return (m_category == "mpi_threads") ? entity::create(config) :
                                               entity::create(*m_e[0], config);
    }

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    void make(settings changes = settings())
    {
        changes.insert(changes.begin(), {"EAGER", "y"});
        changes.insert(changes.begin(), {"CATEGORY", m_category});
        m_e[0] = entity::create(changes);
        ASSERT_TRUE(m_e[0] != nullptr);
        m_e[1] = create_other(changes);
        ASSERT_TRUE(m_e[1] != nullptr);
        for (unsigned i = 0; i < 2; ++i) {
            m_ep[i] = m_e[i]->connect(m_e[1 - i]->addr());
        }
    }

    void TearDown() override
    {
        m_e[1].reset();
        m_e[0].reset();
    }

    void progress()
    {
        m_e[0]->progress();
        m_e[1]->progress();
    }

    bool wait(const std::function<bool()> &condition)
    {
        bool is_true = false;

        m_e[0]->wait([&]() {
            progress();
            is_true = condition();
            return is_true;
        });
        return is_true;
    }

    uct_sep_txwq_t *txwq(unsigned i) { return m_e[i]->sep_ep(m_ep[i])->txwq; }
    uct_sep_iface_t *sep(unsigned i) { return m_e[i]->sep(); }

    bool has_ring() { return uct_sep_ring_tx_is_open(&txwq(0)->ring); }

    uct_sep_eager_ring_t *ring() { return txwq(1)->eager->ring; }

    /* By am_short, am_short_iov, am_bcopy */
    ucs_status_t send(unsigned how, const bytes &data)
    {
        uint64_t header;
        ssize_t packed;
        uct_iov_t iov = {(void*)data.data(), data.size(), UCT_MEM_HANDLE_NULL,
                         0, 1};

        switch (how) {
        case 0:
            memcpy(&header, data.data(), sizeof(header));
            return uct_ep_am_short(m_ep[0], 1, header, data.data() + 8,
                                   data.size() - 8);
        case 1:
            return uct_ep_am_short_iov(m_ep[0], 1, &iov, 1);
        default:
            packed = uct_ep_am_bcopy(m_ep[0], 1, pack, (void*)&data, 0);
            return (packed >= 0) ? UCS_OK : (ucs_status_t)packed;
        }
    }

    void must_send(unsigned how, const bytes &data)
    {
        ++m_sent;
        ASSERT_TRUE(wait([&]() { return send(how, data) == UCS_OK; }));
    }

    /* All that was sent has come */
    bool is_quiet() { return m_e[1]->messages.size() == m_sent; }

    /* Send until the ring is open, or others would have one by now */
    void send_much()
    {
        for (unsigned i = 0; (i < 200) && !has_ring(); ++i) {
            must_send(0, pattern(16, i));
            progress();
        }
        ASSERT_TRUE(wait([&]() { return is_quiet(); }));
        m_e[1]->messages.clear();
        m_sent = 0;
    }

    void open_ring()
    {
        ASSERT_NO_FATAL_FAILURE(send_much());
        ASSERT_TRUE(wait([&]() { return has_ring(); })) << "none was offered";
    }

    const std::string       m_category;
    std::unique_ptr<entity> m_e[2];
    uct_ep_h                m_ep[2];
    size_t                  m_sent = 0;
};

} /* namespace */

#endif
