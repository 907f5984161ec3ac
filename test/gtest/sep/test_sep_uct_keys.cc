/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_pack.h>

#include <cstring>

using namespace sep_uct_test;

namespace {

/* One of the two keys of a remote memory is nobody's: so it shows which one is
 * used */
class test_sep_uct_keys : public test_sep_uct_mode {
protected:
    enum { NUM_PUTS = 3 };

    void TearDown() override
    {
        m_local_mem.reset();
        test_sep_uct_mode::TearDown();
    }

    void init(bool is_strict_good)
    {
        m_rmem        = m_peer->expose(4096, 1);
        m_local_mem.reset(new memory(m_local->md(), 8));
        uint32_t good = uct_sep_rkey_value(uct_sep_rkey_strict(
                                m_rmem.rkey.rkey));
        uint32_t bad  = good ^ 0x5500;
        uint8_t packed[sizeof(uct_sep_packed_rkey_t)];

        uct_sep_rkey_pack(is_strict_good ? good : bad,
                          is_strict_good ? bad : good, packed);
        ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_local->component(), packed,
                                          &m_rkey));
    }

    ucs_status_t put(unsigned kind, uint64_t data, uct_completion_t *comp)
    {
        uct_iov_t iov = {m_local_mem->ptr(), 8, m_local_mem->memh(), 0, 1};
        bytes buffer((uint8_t*)&data, (uint8_t*)(&data + 1));
        ssize_t ret;

        switch (kind) {
        case 0:
            return uct_ep_put_short(ep(), &data, 8, m_rmem.va, m_rkey.rkey);
        case 1:
            ret = uct_ep_put_bcopy(ep(), pack, &buffer, m_rmem.va, m_rkey.rkey);
            return (ret < 0) ? (ucs_status_t)ret : UCS_OK;
        default:
            memcpy(m_local_mem->ptr(), &data, 8);
            return uct_ep_put_zcopy(ep(), &iov, 1, m_rmem.va, m_rkey.rkey,
                                    comp);
        }
    }

    void expect_put(unsigned kind, uint64_t data)
    {
        completion comp;

        ASSERT_LE(0, retry([&]() { return put(kind, data, &comp.comp); }));
        ASSERT_TRUE(flush_eps());
        bytes read = m_peer->read(0, 8);
        EXPECT_EQ(0, memcmp(read.data(), &data, 8)) << kind;
        if (kind == 2) {
            EXPECT_EQ(UCS_OK, wait(comp));
        }
    }

    /* Without any fence in it */
    bool flush_eps()
    {
        return m_local->wait([&]() {
            return uct_ep_flush(ep(), 0, NULL) == UCS_OK;
        });
    }

    void send_message()
    {
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep(), 1, 0, NULL, 0);
        }));
    }

    remote_memory           m_rmem;
    uct_rkey_bundle_t       m_rkey;
    std::unique_ptr<memory> m_local_mem;
};

TEST_P(test_sep_uct_keys, what_is_behind_a_fence_is_strict)
{
    init(true);
    send_message();
    for (unsigned i = 0; i < 4 * NUM_PUTS; ++i) {
        send_message();
        ASSERT_EQ(UCS_OK, (i & 1) ? uct_ep_fence(ep(), 0) :
                                    uct_iface_fence(m_local->iface(), 0));
        if (i & 2) {
            send_message();
        }
        expect_put(i % NUM_PUTS, i + 1000);
        EXPECT_TRUE(m_local->failures.empty());
    }

    /* The put behind a flush of the interface */
    for (unsigned i = 0; i < NUM_PUTS; ++i) {
        flush();
        expect_put(i, i + 2000);
    }

    /* Any more is not */
    expect_errors hide;
    (void)retry([&]() { return put(0, 1, NULL); });
    (void)flush_eps();
    EXPECT_TRUE(m_local->wait([&]() { return !m_local->failures.empty(); }));
}

TEST_P(test_sep_uct_keys, atomics_are_strict)
{
    init(true);
    for (unsigned i = 0; i < 3; ++i) {
        completion comp;
        uint64_t result;

        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_atomic64_fetch(ep(), UCT_ATOMIC_OP_ADD, 1, &result,
                                         m_rmem.va, m_rkey.rkey, &comp.comp);
        }));
        ASSERT_EQ(UCS_OK, wait(comp));
        completion swapped;
        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_atomic_cswap64(ep(), result + 1, result, m_rmem.va,
                                         m_rkey.rkey, &result, &swapped.comp);
        }));
        ASSERT_EQ(UCS_OK, wait(swapped));
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_atomic64_post(ep(), UCT_ATOMIC_OP_ADD, 1, m_rmem.va,
                                        m_rkey.rkey);
        }));
        flush();
    }
    EXPECT_TRUE(m_local->failures.empty());
}

TEST_P(test_sep_uct_keys, puts_and_gets_are_relaxed)
{
    init(false);
    for (unsigned i = 0; i < 2 * NUM_PUTS; ++i) {
        expect_put(i % NUM_PUTS, i + 1000);
        completion comp;
        bytes result;
        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_get_bcopy(ep(), unpack, &result, 8, m_rmem.va,
                                    m_rkey.rkey, &comp.comp);
        }));
        ASSERT_EQ(UCS_OK, wait(comp));
        EXPECT_EQ(m_peer->read(0, 8), result);
    }
    EXPECT_TRUE(m_local->failures.empty());
}

/* With a send queue that is soon full */
class test_sep_uct_hub_keys : public test_sep_uct_keys {
protected:
    static size_t pack_and_fill(void *dest, void *arg)
    {
        auto *self    = (test_sep_uct_hub_keys*)arg;
        uint64_t data = 1;
        ucs_status_t status;

        do {
            status = uct_ep_put_short(self->ep(), &data, sizeof(data),
                                      self->m_rmem.va + 8,
                                      self->m_rmem.rkey.rkey);
        } while (status == UCS_OK);
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
        memcpy(dest, &data, sizeof(data));
        return sizeof(data);
    }
};

/* It comes from before the fence, but is posted behind it */
TEST_P(test_sep_uct_hub_keys, a_put_that_the_hub_has_kept_is_not_the_strict_one)
{
    init(true);
    send_message();
    ASSERT_TRUE(flush_eps());
    auto *hub_ep = ucs_derived_of(ep(), uct_sep_hub_ep_t);

    for (unsigned i = 0; i < 2 * NUM_PUTS; ++i) {
        ASSERT_EQ((ssize_t)sizeof(uint64_t),
                  uct_ep_put_bcopy(ep(), pack_and_fill, this, m_rmem.va,
                                   m_rmem.rkey.rkey));
        ASSERT_NE(nullptr, hub_ep->packed);
        ASSERT_EQ(UCS_OK, (i & 1) ? uct_ep_fence(ep(), 0) :
                                    uct_iface_fence(m_local->iface(), 0));
        ASSERT_TRUE(m_local->wait([&]() { return hub_ep->packed == NULL; }));
        expect_put(i % NUM_PUTS, i + 1000);
        ASSERT_TRUE(m_local->failures.empty());
    }
}

INSTANTIATE_TEST_SUITE_P(post, test_sep_uct_hub_keys,
                         ::testing::Values(mode{"mpi_threads",
                                                {{"CATEGORY", "mpi_threads"},
                                                 {"TX_QUEUE_LEN", "8"}}}),
                         mode_name);

/* In all ways to post, and where queues or contexts are shared or not */
std::vector<mode> key_modes()
{
    std::vector<mode> result = post_modes();

    for (const char *category : {"mpi_threads", "mpi_everywhere"}) {
        result.push_back({category, {{"CATEGORY", category}}});
    }
    return result;
}

INSTANTIATE_TEST_SUITE_P(post, test_sep_uct_keys,
                         ::testing::ValuesIn(key_modes()), mode_name);

} // namespace
