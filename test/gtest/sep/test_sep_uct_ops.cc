/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_pack.h>

#include <uct/ib/sep/iface/sep_api.h>

#include <algorithm>
#include <cstring>

using namespace sep_uct_test;

namespace {

/* Sizes around every limit up to and including the last one */
std::vector<size_t> sizes(size_t last)
{
    std::vector<size_t> result;

    for (size_t size : {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 27, 28, 29, 31, 32,
                        33, 35, 36, 60, 91, 92, 93, 156, 157, 203, 204, 219,
                        220, 1000,
                        4096, 8191, 8192, 8271, 8272, 8273, 100000}) {
        if (size < last) {
            result.push_back(size);
        }
    }
    result.push_back(last);
    return result;
}

/* Operands of atomics, and what is in memory before and after */
const uint64_t a = 0x8123456789abcdefull, b = 0xfedcba9876543210ull;
const uint32_t c = 0x89abcdef, d = 0xf6543210;
const struct {
    uct_atomic_op_t op;
    uint64_t        after64;
    uint32_t        after32;
    const char      *name;
} atomics[] = {
    {UCT_ATOMIC_OP_ADD,  (a + b), (c + d), "add"},
    {UCT_ATOMIC_OP_AND,  (a & b), (c & d), "and"},
    {UCT_ATOMIC_OP_OR,   (a | b), (c | d), "or"},
    {UCT_ATOMIC_OP_XOR,  (a ^ b), (c ^ d), "xor"},
    {UCT_ATOMIC_OP_SWAP, b,     d,     "swap"}
};

class test_sep_uct_ops : public test_sep_uct_mode {
protected:
    static const size_t mem_size = 128 * 1024;

    /* Put with one of the three, then look at the other side's memory */
    void check_put(size_t max, const std::function<ucs_status_t(
                           const bytes&, const remote_memory&)> &put)
    {
        remote_memory rmem = m_peer->expose(mem_size, 1);
        bytes image        = pattern(mem_size, 1);
        unsigned seed      = 100;

        for (size_t size : sizes(max)) {
            bytes data = pattern(size, ++seed);

            ASSERT_FALSE(UCS_STATUS_IS_ERR(retry([&]() {
                return put(data, rmem);
            }))) << size;
            flush();
            std::copy(data.begin(), data.end(), image.begin());
            ASSERT_EQ(image, m_peer->read(0, mem_size)) << size;
        }
    }

    void check_am(uint8_t id, const std::function<ucs_status_t(
                          const bytes&)> &send, size_t min, size_t max)
    {
        uint64_t count = m_peer->num_received();
        unsigned seed  = 500;

        for (size_t size : sizes(max)) {
            if (size < min) {
                continue;
            }

            bytes data = pattern(size, ++seed);
            ASSERT_FALSE(UCS_STATUS_IS_ERR(retry([&]() {
                return send(data);
            }))) << size;
            m_local->wait([&]() { return m_peer->num_received() > count; });
            message received = m_peer->received(count++);
            ASSERT_EQ(id, received.id);
            ASSERT_EQ(data, received.data) << size;
        }
    }

    /* An atomic operation on 8 bytes with neighbours; what the target is
     * afterwards, and before */
    template<typename T>
    void check_atomic(T before, T after, const char *name,
                      const std::function<ucs_status_t(uint64_t, uct_rkey_t,
                                                       T*, completion&)> &op,
                      bool is_fetch)
    {
        remote_memory rmem = m_peer->expose(64, 9);
        bytes image        = pattern(64, 9);
        completion comp;
        T result = 0;

        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_put_short(ep(), &before, sizeof(before),
                                    rmem.va + 16, rmem.rkey.rkey);
        }));
        ucs_status_t status = retry([&]() {
            return op(rmem.va + 16, rmem.rkey.rkey, &result, comp);
        });
        if (is_fetch) {
            ASSERT_EQ(UCS_INPROGRESS, status) << name;
            EXPECT_EQ(UCS_OK, wait(comp)) << name;
            EXPECT_EQ(before, result) << name;
        } else {
            ASSERT_EQ(UCS_OK, status) << name;
        }
        flush();

        memcpy(&image[16], &after, sizeof(after));
        EXPECT_EQ(image, m_peer->read(0, image.size())) << name;
    }
};

TEST_P(test_sep_uct_ops, put_short_writes_exactly_the_data)
{
    check_put(m_local->attr().cap.put.max_short,
              [this](const bytes &data, const remote_memory &rmem) {
        return uct_ep_put_short(ep(), data.data(), data.size(), rmem.va,
                                rmem.rkey.rkey);
    });
}

TEST_P(test_sep_uct_ops, put_bcopy_writes_exactly_the_data)
{
    check_put(m_local->attr().cap.put.max_bcopy,
              [this](const bytes &data, const remote_memory &rmem) {
        ssize_t ret = uct_ep_put_bcopy(ep(), pack, (void*)&data, rmem.va,
                                       rmem.rkey.rkey);
        return (ret == (ssize_t)data.size()) ? UCS_OK : (ucs_status_t)ret;
    });
}

TEST_P(test_sep_uct_ops, put_zcopy_writes_exactly_the_data)
{
    memory local(m_local->md(), mem_size);

    check_put(mem_size - 1, [&](const bytes &data, const remote_memory &rmem) {
        completion comp;
        uct_iov_t iov = {local.ptr(), data.size(), local.memh(), 0, 1};

        std::copy(data.begin(), data.end(), local.ptr());
        ucs_status_t status = uct_ep_put_zcopy(ep(), &iov, 1, rmem.va,
                                               rmem.rkey.rkey, &comp.comp);
        return (status == UCS_INPROGRESS) ? wait(comp) : status;
    });
}

TEST_P(test_sep_uct_ops, put_zcopy_gathers_at_any_place_of_the_queue)
{
    size_t iovcnt      = m_local->attr().cap.put.max_iov;
    remote_memory rmem = m_peer->expose(mem_size, 1);
    memory local(m_local->md(), mem_size);

    /* Four BBs each, in a queue whose length they do not divide because of the
     * one-BB put in between: all ways to wrap come up */
    for (unsigned round = 0; round < 100; ++round) {
        std::vector<uct_iov_t> iov;
        bytes expected;
        completion comp;
        size_t offset = 0;

        bytes data = pattern(mem_size, round);
        std::copy(data.begin(), data.end(), (uint8_t*)local.ptr());
        for (size_t i = 0; i < iovcnt; ++i) {
            size_t length = (i == 5) ? 0 : (i * 7 + round);

            iov.push_back({local.ptr() + offset, length, local.memh(), 0, 1});
            expected.insert(expected.end(), data.begin() + offset,
                            data.begin() + offset + length);
            offset += length + 3;
        }

        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_put_short(ep(), &round, sizeof(round),
                                    rmem.va + mem_size - 8, rmem.rkey.rkey);
        }));
        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_put_zcopy(ep(), iov.data(), iov.size(), rmem.va,
                                    rmem.rkey.rkey, &comp.comp);
        }));
        ASSERT_EQ(UCS_OK, wait(comp));
        ASSERT_EQ(expected, m_peer->read(0, expected.size())) << round;
    }
}

TEST_P(test_sep_uct_ops, get_bcopy_reads_what_is_there)
{
    remote_memory rmem = m_peer->expose(mem_size, 77);
    bytes image        = pattern(mem_size, 77);

    for (size_t size : sizes(m_local->attr().cap.get.max_bcopy)) {
        completion comp;
        bytes result;

        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_get_bcopy(ep(), unpack, &result, size, rmem.va + 5,
                                    rmem.rkey.rkey, &comp.comp);
        }));
        ASSERT_EQ(UCS_OK, wait(comp));
        ASSERT_EQ(bytes(image.begin() + 5, image.begin() + 5 + size), result);
    }
}

TEST_P(test_sep_uct_ops, get_zcopy_reads_what_is_there)
{
    remote_memory rmem = m_peer->expose(mem_size, 78);
    bytes image        = pattern(mem_size, 78);
    memory local(m_local->md(), mem_size);

    for (size_t size : sizes(mem_size - 64)) {
        if (size < m_local->attr().cap.get.min_zcopy) {
            continue;
        }

        completion comp;
        size_t half      = size / 2;
        uct_iov_t iov[2] = {{local.ptr(), half, local.memh(), 0, 1},
                            {local.ptr() + half + 32, size - half,
                             local.memh(), 0, 1}};

        memset(local.ptr(), 0, local.size());
        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_get_zcopy(ep(), iov, 2, rmem.va, rmem.rkey.rkey,
                                    &comp.comp);
        }));
        ASSERT_EQ(UCS_OK, wait(comp));
        EXPECT_EQ(0, memcmp(local.ptr(), image.data(), half));
        EXPECT_EQ(bytes(32, 0), bytes(local.ptr() + half,
                                      local.ptr() + half + 32));
        EXPECT_EQ(0, memcmp(local.ptr() + half + 32, image.data() + half,
                            size - half));
    }
}

TEST_P(test_sep_uct_ops, am_short_arrives_with_its_header)
{
    check_am(3, [this](const bytes &data) {
        uint64_t header;

        memcpy(&header, data.data(), sizeof(header));
        return uct_ep_am_short(ep(), 3, header, data.data() + sizeof(header),
                               data.size() - sizeof(header));
    }, sizeof(uint64_t), m_local->attr().cap.am.max_short);
}

TEST_P(test_sep_uct_ops, am_short_iov_arrives_in_one_piece)
{
    check_am(4, [this](const bytes &data) {
        size_t third     = data.size() / 3;
        uct_iov_t iov[3] = {{(void*)data.data(), third, NULL, 0, 1},
                            {(void*)(data.data() + third), 0, NULL, 0, 1},
                            {(void*)(data.data() + third),
                             data.size() - third, NULL, 0, 1}};

        return uct_ep_am_short_iov(ep(), 4, iov, 3);
    }, 0, m_local->attr().cap.am.max_short);
}

TEST_P(test_sep_uct_ops, am_bcopy_arrives)
{
    check_am(5, [this](const bytes &data) {
        ssize_t ret = uct_ep_am_bcopy(ep(), 5, pack, (void*)&data, 0);
        return (ret == (ssize_t)data.size()) ? UCS_OK : (ucs_status_t)ret;
    }, 0, m_local->attr().cap.am.max_bcopy);
}

TEST_P(test_sep_uct_ops, am_zcopy_arrives_with_headers_of_all_lengths)
{
    memory local(m_local->md(), mem_size);
    size_t max_hdr = m_local->attr().cap.am.max_hdr;
    unsigned round = 0;

    for (unsigned repeat = 0; repeat < 4; ++repeat) {
        check_am(6, [&](const bytes &data) {
            size_t hdr_len   = std::min(data.size(),
                                        (size_t)(round++ * 13) %
                                        (max_hdr + 1));
            size_t length    = data.size() - hdr_len;
            uct_iov_t iov[3] = {{local.ptr(), length / 2, local.memh(), 0, 1},
                                {local.ptr() + length / 2, 0, local.memh(),
                                 0, 1},
                                {local.ptr() + length / 2,
                                 length - length / 2, local.memh(), 0, 1}};
            completion comp;

            std::copy(data.begin() + hdr_len, data.end(), local.ptr());
            ucs_status_t status = uct_ep_am_zcopy(ep(), 6, data.data(),
                                                  hdr_len, iov, 3, 0,
                                                  &comp.comp);
            return (status == UCS_INPROGRESS) ? wait(comp) : status;
        }, 0, m_local->attr().cap.am.max_zcopy);
    }
}

TEST_P(test_sep_uct_ops, atomics_without_result_change_memory)
{
    for (auto &op : atomics) {
        if (m_local->attr().cap.atomic64.op_flags & UCS_BIT(op.op)) {
            check_atomic<uint64_t>(a, op.after64, op.name,
                                   [&](uint64_t addr, uct_rkey_t rkey,
                                       uint64_t*, completion&) {
                return uct_ep_atomic64_post(ep(), op.op, b, addr, rkey);
            }, false);
        }
        if (m_local->attr().cap.atomic32.op_flags & UCS_BIT(op.op)) {
            check_atomic<uint32_t>(c, op.after32, op.name,
                                   [&](uint64_t addr, uct_rkey_t rkey,
                                       uint32_t*, completion&) {
                return uct_ep_atomic32_post(ep(), op.op, d, addr, rkey);
            }, false);
        }
    }
}

TEST_P(test_sep_uct_ops, fetching_atomics_return_what_was_there)
{
    for (auto &op : atomics) {
        if (m_local->attr().cap.atomic64.fop_flags & UCS_BIT(op.op)) {
            check_atomic<uint64_t>(a, op.after64, op.name,
                                   [&](uint64_t addr, uct_rkey_t rkey,
                                       uint64_t *result, completion &comp) {
                return uct_ep_atomic64_fetch(ep(), op.op, b, result, addr, rkey,
                                             &comp.comp);
            }, true);
        }
        if (m_local->attr().cap.atomic32.fop_flags & UCS_BIT(op.op)) {
            check_atomic<uint32_t>(c, op.after32, op.name,
                                   [&](uint64_t addr, uct_rkey_t rkey,
                                       uint32_t *result, completion &comp) {
                return uct_ep_atomic32_fetch(ep(), op.op, d, result, addr, rkey,
                                             &comp.comp);
            }, true);
        }
    }
}

TEST_P(test_sep_uct_ops, compare_and_swap_only_swaps_when_equal)
{
    for (int equal = 0; equal < 2; ++equal) {
        if (m_local->attr().cap.atomic64.fop_flags &
            UCS_BIT(UCT_ATOMIC_OP_CSWAP)) {
            check_atomic<uint64_t>(a, equal ? b : a, "cswap64",
                                   [&](uint64_t addr, uct_rkey_t rkey,
                                       uint64_t *result, completion &comp) {
                return uct_ep_atomic_cswap64(ep(), equal ? a : a + 1, b, addr,
                                             rkey, result, &comp.comp);
            }, true);
        }
        if (m_local->attr().cap.atomic32.fop_flags &
            UCS_BIT(UCT_ATOMIC_OP_CSWAP)) {
            check_atomic<uint32_t>(c, equal ? d : c, "cswap32",
                                   [&](uint64_t addr, uct_rkey_t rkey,
                                       uint32_t *result, completion &comp) {
                return uct_ep_atomic_cswap32(ep(), equal ? c : c + 1, d, addr,
                                             rkey, result, &comp.comp);
            }, true);
        }
    }
}

TEST_P(test_sep_uct_ops, the_device_offers_atomics_of_both_sizes)
{
    const uct_iface_attr_t &attr = m_local->attr();

    /* Or the three tests above would look at nothing */
    if (m_local->is_verbs()) {
        EXPECT_EQ(0u, attr.cap.atomic32.op_flags | attr.cap.atomic32.fop_flags);
        EXPECT_EQ(UCS_BIT(UCT_ATOMIC_OP_ADD), attr.cap.atomic64.op_flags);
        EXPECT_EQ(UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_CSWAP),
                  attr.cap.atomic64.fop_flags);
    } else {
        EXPECT_NE(0u, attr.cap.atomic32.fop_flags);
        EXPECT_NE(0u, attr.cap.atomic64.fop_flags);
    }
}

TEST_P(test_sep_uct_ops, an_endpoint_to_oneself_works)
{
    memory local(m_local->md(), 4096);
    uct_ep_h self = m_local->connect(m_local->addr());
    uint64_t data = 0x1122334455667788ull;
    uct_rkey_bundle_t rkey;
    bytes packed = local.packed_rkey();

    ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_local->component(), packed.data(),
                                      &rkey));
    ASSERT_EQ(UCS_OK, retry([&]() {
        return uct_ep_put_short(self, &data, sizeof(data), local.va() + 8,
                                rkey.rkey);
    }));
    ASSERT_EQ(UCS_OK, retry([&]() {
        return uct_ep_am_short(self, 2, data, NULL, 0);
    }));
    m_local->wait([&]() { return m_local->messages.size() == 1; });
    flush();
    EXPECT_EQ(0, memcmp(local.ptr() + 8, &data, sizeof(data)));
    EXPECT_EQ(0, memcmp(m_local->messages[0].data.data(), &data,
                        sizeof(data)));
    EXPECT_EQ(1u, m_local->num_qps());
}

/* One of the two keys of a remote memory is nobody's: so it shows which one is
 * used */
class test_sep_uct_keys : public test_sep_uct_ops {
protected:
    enum { NUM_PUTS = 3 };

    void TearDown() override
    {
        m_local_mem.reset();
        test_sep_uct_ops::TearDown();
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

INSTANTIATE_TEST_SUITE_P(post, test_sep_uct_ops,
                         ::testing::ValuesIn(post_modes()), mode_name);

} // namespace
