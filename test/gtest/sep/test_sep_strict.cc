/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/sep_wqe_fixture.h>

#include <uct/ib/sep/base/sep_rkey.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>
#include <uct/ib/sep/open/sep_iface_open.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace sep_wqe_test;

namespace {

struct row {
    const uct_sep_ops_t *ops;
    const char          *name;
};

std::ostream &operator<<(std::ostream &os, const row &r)
{
    return os << r.name;
}

const uint32_t relaxed_key = 0xfedcba98;
const uint32_t strict_key  = 0x98badcfe;
const uint64_t remote_addr = 0x0123456789abcdef;

/* Puts that may be relaxed, of each kind */
class test_sep_strict : public ::testing::TestWithParam<row> {
protected:
    test_sep_strict() : m_f(*GetParam().ops)
    {
        uint8_t packed[sizeof(uct_sep_packed_rkey_t)];
        void *handle;

        uct_sep_rkey_pack(strict_key, relaxed_key, packed);
        EXPECT_EQ(UCS_OK,
                  uct_sep_rkey_unpack(NULL, packed,
                                      UCT_SEP_COMPAT_RKEY_UNPACK_NO_PARAMS
                                      &m_rkey, &handle));
        ucs_list_add_tail(&m_f.iface().conn.active, &m_f.txwq().conn.list);
    }

    static size_t pack_8(void *dest, void *arg)
    {
        memset(dest, 1, 8);
        return 8;
    }

    ssize_t put(unsigned kind)
    {
        uct_iov_t iov = {m_data, 8, m_f.memh(), 0, 1};

        switch (kind % 3) {
        case 0:
            return ops().ep_put_short(m_f.ep(), m_data, 8, remote_addr, m_rkey);
        case 1:
            return ops().ep_put_bcopy(m_f.ep(), pack_8, NULL, remote_addr,
                                      m_rkey);
        default:
            return ops().ep_put_zcopy(m_f.ep(), &iov, 1, remote_addr, m_rkey,
                                      NULL);
        }
    }

    /* Key of a work request */
    uint32_t key(uint16_t pi)
    {
        uint32_t value;

        memcpy(&value, &m_f.wqe(pi, 1)[24], sizeof(value));
        return be32toh(value);
    }

    void expect_put(unsigned kind, uint32_t expected)
    {
        uint16_t pi = m_f.txwq().sw_pi;

        ASSERT_LE(0, put(kind));
        ASSERT_EQ(expected, key(m_f.txwq().sw_pi - 1)) << kind << " at " << pi;
    }

    /* By the endpoint or the interface */
    void fence(unsigned i)
    {
        ASSERT_EQ(UCS_OK, (i % 2) ? uct_sep_ep_fence(m_f.ep(), 0) :
                  uct_sep_iface_fence(&m_f.iface().super.super, 0));
    }

    /* All that was posted */
    void complete_all()
    {
        m_f.complete(m_f.txwq().sw_pi - 1);
        EXPECT_EQ(1u, m_f.progress());
        EXPECT_TRUE(uct_sep_txwq_is_empty(&m_f.txwq()));
    }

    const uct_sep_ops_t &ops() { return m_f.ops(); }

    fixture    m_f;
    uct_rkey_t m_rkey;
    uint8_t    m_data[8] = {};
};

TEST_P(test_sep_strict, puts_are_until_what_precedes_the_fence_completes)
{
    m_f.no_moderation();
    for (unsigned i = 0; i < 12; ++i) {
        SCOPED_TRACE(i);
        expect_put(i, relaxed_key);
        fence(i / 3);
        /* A message does not end it */
        ASSERT_EQ(UCS_OK, ops().ep_am_short(m_f.ep(), 1, 0, m_data, 8));
        for (unsigned j = 0; j < 4; ++j) {
            expect_put(i + j, strict_key);
        }
        complete_all();
        if (i % 4 < 2) {
            expect_put(i, strict_key);
        } else {
            /* There is nothing left to be ordered */
            ASSERT_EQ(UCS_OK, ops().ep_am_short(m_f.ep(), 1, 0, m_data, 8));
        }
        EXPECT_LE(0, m_f.txwq().credits);
        expect_put(i + 1, relaxed_key);
        expect_put(i + 2, relaxed_key);
        complete_all();
        EXPECT_EQ(m_f.txwq().bb_max, m_f.txwq().credits);
    }
}

TEST_P(test_sep_strict, one_put_is_behind_a_fence_with_nothing_outstanding)
{
    for (unsigned i = 0; i < 12; ++i) {
        SCOPED_TRACE(i);
        fence(i / 3);
        expect_put(i, strict_key);
        EXPECT_EQ(1u, (unsigned)(uint16_t)(m_f.txwq().sw_pi -
                                           m_f.txwq().hw_ci));
        expect_put(i + 1, relaxed_key);
        complete_all();
    }
}

TEST_P(test_sep_strict, one_put_is_behind_a_flush_of_the_interface)
{
    uct_iface_h iface = &m_f.iface().super.super;

    m_f.no_moderation();
    for (unsigned i = 0; i < 6; ++i) {
        SCOPED_TRACE(i);
        expect_put(i, relaxed_key);
        EXPECT_EQ(UCS_INPROGRESS, uct_sep_iface_flush(iface, 0, NULL));
        expect_put(i, relaxed_key); /* Nothing was flushed */
        EXPECT_EQ(UCS_INPROGRESS, uct_sep_iface_flush(iface, 0, NULL));
        complete_all();
        EXPECT_EQ(UCS_OK, uct_sep_iface_flush(iface, 0, NULL));
        EXPECT_EQ(UCS_OK, uct_sep_iface_flush(iface, 0, NULL));
        expect_put(i, strict_key);
        expect_put(i + 1, relaxed_key);
        complete_all();
    }
}

TEST_P(test_sep_strict, a_put_that_fails_is_not_the_one)
{
    int32_t cq_credits = m_f.iface().tx.cq_credits;
    ucs_mpool_t real   = m_f.iface().tx.desc_mp;
    ucs_mpool_t &mp    = m_f.iface().tx.desc_mp;

    m_f.no_moderation();
    fence(0);
    m_f.iface().tx.cq_credits = -1;
    for (unsigned kind = 0; kind < 3; ++kind) {
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, put(kind));
    }
    m_f.iface().tx.cq_credits = cq_credits;

    /* No descriptor for a copy */
    ASSERT_EQ(UCS_OK,
              uct_sep_compat_mpool_init(&mp, 8, 0, 64, 1, 1, "full"));
    void *only = ucs_mpool_get(&mp);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, put(1));
    ucs_mpool_put(only);
    ucs_mpool_cleanup(&mp, 1);
    mp = real;

    EXPECT_EQ(0, m_f.txwq().sw_pi);
    expect_put(0, strict_key);
    expect_put(0, relaxed_key);
    EXPECT_EQ(m_f.txwq().bb_max - 2, m_f.txwq().credits);
}

/* Nobody waits for a put that never comes */
TEST_P(test_sep_strict, what_completes_behind_a_flush_ends_it)
{
    uct_iface_h iface = &m_f.iface().super.super;
    uint64_t result;

    m_f.no_moderation();
    for (unsigned i = 0; i < 3; ++i) {
        SCOPED_TRACE(i);
        ASSERT_EQ(UCS_OK, uct_sep_iface_flush(iface, 0, NULL));
        for (unsigned j = 0; j < 2; ++j) {
            EXPECT_GT(0, m_f.txwq().credits);
            switch (i) {
            case 0:
                ASSERT_EQ(UCS_OK, ops().ep_am_short(m_f.ep(), 1, 0, m_data, 8));
                break;
            case 1:
                ASSERT_EQ(UCS_INPROGRESS,
                          ops().ep_get_bcopy(m_f.ep(), NULL, NULL, 8,
                                             remote_addr, m_rkey, NULL));
                break;
            default:
                ASSERT_EQ(UCS_INPROGRESS,
                          ops().ep_atomic64_fetch(m_f.ep(), UCT_ATOMIC_OP_ADD,
                                                  1, &result, remote_addr,
                                                  m_rkey, NULL));
            }
            complete_all();
        }
        EXPECT_LE(0, m_f.txwq().credits);
        expect_put(i, relaxed_key);
        complete_all();
    }
}

TEST_P(test_sep_strict, a_fence_reaches_across_the_indices_wrap)
{
    m_f.no_moderation();
    for (unsigned pi : {0xffffu, 0xfffeu, 0x7fffu, 0x8000u}) {
        SCOPED_TRACE(pi);
        m_f.seek(pi);
        expect_put(0, relaxed_key);
        fence(0);
        expect_put(0, strict_key);
        expect_put(0, strict_key);
        complete_all();
        expect_put(0, strict_key);
        expect_put(0, relaxed_key);
        complete_all();
    }
}

INSTANTIATE_TEST_SUITE_P(rows, test_sep_strict,
                         ::testing::Values(row{&uct_sep_ops_bf, "bf"},
                                           row{&uct_sep_ops_db, "db"},
                                           row{&uct_sep_ops_list, "list"}),
                         [](const ::testing::TestParamInfo<row> &info) {
                             return std::string(info.param.name);
                         });

} // namespace
