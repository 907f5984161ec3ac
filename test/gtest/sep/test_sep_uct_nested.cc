/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ostream>

using namespace sep_uct_test;

namespace {

/* What comes in completions, and how */
struct variant {
    const char *name;
    const char *rx_inline; /* Bytes in a completion */
    size_t     length;     /* Of the message's data, without its header word */
    unsigned   before;     /* Messages that are there when it comes */
    const char *sharing;   /* Workers on a completion queue for sends */
};

std::ostream &operator<<(std::ostream &os, const variant &v)
{
    return os << v.name;
}

/*
 * A handler that progresses: whatever it makes of more completions than the
 * queue holds, its own message stays as it was until it returns. The device
 * writes to the memory of a completion again when it has been taken.
 */
class test_sep_uct_nested : public ::testing::TestWithParam<variant> {
protected:
    static constexpr uint64_t HEADER = 0x1122334455667788;
    /* The shortest queues there are: several times through the CQ */
    static constexpr unsigned MESSAGES = 2000;

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }

        settings config = {{"RX_INLINE", GetParam().rx_inline},
                           {"TX_CQ_LEN", "64"}, {"RX_QUEUE_LEN", "128"},
                           {"TX_QUEUE_LEN", "64"},
                           {"CQ_SHARING", GetParam().sharing}};
        m_from = entity::create(config);
        ASSERT_TRUE(m_from != nullptr);
        m_to = entity::create(*m_from, config);
        ASSERT_TRUE(m_to != nullptr);
        m_ep = m_from->connect(m_to->addr());
        ASSERT_EQ(UCS_OK, uct_iface_set_am_handler(m_to->iface(), 2,
                                                   handler, this, 0));
    }

    void TearDown() override
    {
        m_to.reset();
        m_from.reset();
    }

    void send(uint8_t id, const bytes &data)
    {
        ASSERT_TRUE(m_from->wait([&]() {
            m_to->progress();
            return uct_ep_am_short(m_ep, id, HEADER, data.data(),
                                   data.size()) == UCS_OK;
        }));
    }

    static ucs_status_t handler(void *arg, void *data, size_t length, unsigned)
    {
        auto *self     = (test_sep_uct_nested*)arg;
        const bytes is((uint8_t*)data, (uint8_t*)data + length);
        size_t already = self->m_to->messages.size();

        for (unsigned i = 0; i < MESSAGES; ++i) {
            self->send(1, pattern(GetParam().length, i + 1));
        }
        EXPECT_TRUE(self->m_from->wait([&]() {
            self->m_to->progress();
            return self->m_to->messages.size() == already + MESSAGES;
        }));
        EXPECT_EQ(is, bytes((uint8_t*)data, (uint8_t*)data + length));
        self->m_seen = is;
        return UCS_OK;
    }

    std::unique_ptr<entity> m_from, m_to;
    uct_ep_h                m_ep;
    bytes                   m_seen;
};

TEST_P(test_sep_uct_nested, a_message_outlives_what_its_handler_progresses)
{
    const bytes data = pattern(GetParam().length, 77);
    bytes all(sizeof(uint64_t));

    memcpy(all.data(), &HEADER, sizeof(HEADER));
    all.insert(all.end(), data.begin(), data.end());

    /* Connected, and all that this takes is over */
    send(1, data);
    ASSERT_TRUE(m_from->wait([&]() {
        m_to->progress();
        return m_to->messages.size() == 1;
    }));

    for (unsigned i = 0; i < GetParam().before; ++i) {
        ASSERT_EQ(UCS_OK, uct_ep_am_short(m_ep, 1, HEADER, data.data(),
                                          data.size()));
    }
    ASSERT_EQ(UCS_OK, uct_ep_am_short(m_ep, 2, HEADER, data.data(),
                                      data.size()));
    ASSERT_TRUE(m_from->wait([&]() {
        m_to->progress();
        return !m_seen.empty();
    }));
    EXPECT_EQ(all, m_seen);
}

INSTANTIATE_TEST_SUITE_P(in, test_sep_uct_nested, ::testing::Values(
        variant{"completion", "32", 16, 0, "1"},
        variant{"completion_behind_others", "32", 16, 3, "1"},
        variant{"large_completion", "64", 48, 0, "1"},
        variant{"large_completion_behind_others", "64", 48, 3, "1"},
        variant{"half_of_a_large_completion", "64", 16, 0, "1"},
        variant{"buffer", "0", 16, 0, "1"},
        variant{"completion_sends_shared", "32", 16, 3, "2"},
        variant{"large_completion_sends_shared", "64", 48, 3, "2"}),
        [](const ::testing::TestParamInfo<variant> &info) {
            return info.param.name;
        });

} /* namespace */
