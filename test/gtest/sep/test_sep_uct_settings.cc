/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_pack.h>

#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/queue/sep_cq.inl>

#include <algorithm>
#include <cstring>

using namespace sep_uct_test;

namespace {

/* Settings of the data path, each in the modes where it could be different */
class test_sep_uct_settings : public test_sep_uct {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    static std::unique_ptr<entity> open(const settings &config)
    {
        auto result = entity::create(config);

        EXPECT_TRUE(result != nullptr);
        return result;
    }

    /* Have the device finish n work requests that ask for a completion each,
     * nobody looking for these */
    void wait_for_cqes(unsigned n)
    {
        uct_sep_cq_t &cq = m_local->sep()->cq;
        const volatile struct mlx5_cqe64 *last = cq.next + n - 1;

        ASSERT_LT(last, cq.end) << "the queue wraps";
        ASSERT_TRUE(patience::until([&]() {
            return ((last->op_own ^ cq.owner) & MLX5_CQE_OWNER_MASK) == 0;
        }));
    }

    void expect_caps(const settings &config, size_t put, size_t am)
    {
        auto local       = open(config);
        const auto &attr = local->attr();

        EXPECT_EQ(put, attr.cap.put.max_short);
        EXPECT_EQ(am, attr.cap.am.max_short);
        EXPECT_EQ(put > 0, !!(attr.cap.flags & UCT_IFACE_FLAG_PUT_SHORT));
        EXPECT_EQ(am > 0, !!(attr.cap.flags & UCT_IFACE_FLAG_AM_SHORT));
        EXPECT_TRUE(attr.cap.flags & UCT_IFACE_FLAG_PUT_BCOPY);
        EXPECT_TRUE(attr.cap.flags & UCT_IFACE_FLAG_AM_BCOPY);
    }
};

TEST_F(test_sep_uct_settings, inline_limit_is_what_is_reported)
{
    expect_caps({}, 220, 235);
    expect_caps({{"TX_MAX_INLINE", "inf"}}, 220, 235);
    expect_caps({{"TX_MAX_INLINE", "1k"}}, 220, 235);
    expect_caps({{"TX_MAX_INLINE", "225"}}, 220, 225);
    expect_caps({{"TX_MAX_INLINE", "64"}}, 64, 64);
    expect_caps({{"TX_MAX_INLINE", "8"}}, 8, 8);
    expect_caps({{"TX_MAX_INLINE", "7"}}, 7, 0);
    expect_caps({{"TX_MAX_INLINE", "0"}}, 0, 0);
    expect_caps({{"TX_MAX_INLINE", "0"}, {"API", "verbs"}}, 0, 0);
    expect_caps({{"TX_MAX_INLINE", "100"}, {"API", "verbs"}}, 100, 100);

    /* Whose messages have a route in front */
    const size_t route = sizeof(uct_sep_hub_route_t);
    expect_caps({{"CATEGORY", "mpi_threads"}}, 220, 235 - route);
    expect_caps({{"TX_MAX_INLINE", "64"}, {"CATEGORY", "mpi_threads"}}, 64,
                64 - route);
    expect_caps({{"TX_MAX_INLINE", "15"}, {"CATEGORY", "mpi_threads"}}, 15, 0);
    expect_caps({{"TX_MAX_INLINE", "0"}, {"CATEGORY", "mpi_threads"}}, 0, 0);

    expect_refused({{"TX_MAX_INLINE", "63"}, {"TX_MIN_INLINE", "64"}},
                   {"UCX_SEP_TX_MAX_INLINE=63"});
    expect_refused({{"TX_MIN_INLINE", "300"}}, {"UCX_SEP_TX_MIN_INLINE=300"});
    open({{"TX_MAX_INLINE", "64"}, {"TX_MIN_INLINE", "64"}});
}

/* What UCP's longer protocols leave of the longest active message behind their
 * header of 16 bytes */
TEST_F(test_sep_uct_settings, fragments_end_where_elements_do)
{
    for (const char *category : {"dynamic", "mpi_everywhere", "mpi_threads"}) {
        const size_t front = 1 + (!strcmp(category, "mpi_threads") ?
                                  sizeof(uct_sep_hub_route_t) : 0);

        for (size_t size : {512, 1000, 8192, 8208, 8217, 8256, 8257, 8272, 8273,
                            8280, 8281, 65536}) {
            auto local     = open({{"SEG_SIZE", std::to_string(size)},
                                   {"CATEGORY", category}});
            const auto &am = local->attr().cap.am;

            EXPECT_EQ(16u, am.max_bcopy % 64) << size;
            EXPECT_EQ(am.max_bcopy, am.max_zcopy);
            EXPECT_LE(am.max_bcopy + front, size);
            EXPECT_GT(am.max_bcopy + front + 64, size);
        }

        /* 8 KB and a header fit; usually all of the buffer is used */
        const size_t longest = (front == 1) ? 8272 : 8208;
        EXPECT_EQ(longest, open({{"CATEGORY", category}})
                                   ->attr().cap.am.max_bcopy);
    }
}

/* The device has room for it with each work request: longer queues */
TEST_F(test_sep_uct_settings, minimum_of_inline_data_makes_queues_longer)
{
    unsigned length[2];

    for (unsigned i = 0; i < 2; ++i) {
        start({{"TX_MIN_INLINE", (i == 0) ? "0" : "200"}});
        uint64_t data = 1;
        EXPECT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep(), 1, 0, &data, sizeof(data));
        }));
        flush();
        length[i] = m_local->sep_ep(ep())->txwq->mask + 1;
    }
    EXPECT_GE(length[1], 2 * length[0]);
}

TEST_F(test_sep_uct_settings, everything_goes_without_inline_data)
{
    for (const char *api : {"dv", "verbs", "wr"}) {
        start({{"TX_MAX_INLINE", "0"}, {"API", api}});
        remote_memory memory = m_peer->expose(64, 3);
        bytes data           = pattern(8, 77);

        EXPECT_EQ(8, retry([&]() {
            return (ucs_status_t)uct_ep_put_bcopy(ep(), pack, &data, memory.va,
                                                  memory.rkey.rkey);
        }));
        flush();
        EXPECT_EQ(data, m_peer->read(0, 8));

        EXPECT_EQ(8, retry([&]() {
            return (ucs_status_t)uct_ep_am_bcopy(ep(), 1, pack, &data, 0);
        }));
        flush();
        EXPECT_TRUE(m_local->wait([&]() {
            return m_peer->num_received() == 1;
        }));
        EXPECT_EQ(data, m_peer->received(0).data);
        uct_rkey_release(m_local->component(), &memory.rkey);
    }
}

#if ENABLE_PARAMS_CHECK
TEST_F(test_sep_uct_settings, what_is_above_the_inline_limit_is_not_short)
{
    const bytes data = pattern(65, 1);
    uct_iov_t iov    = {};

    iov.buffer = (void*)data.data();
    iov.count  = 1;
    for (const char *api : {"dv", "verbs", "wr"}) {
        start({{"TX_MAX_INLINE", "64"}, {"API", api}});
        remote_memory memory = m_peer->expose(128, 3);
        auto put             = [&](unsigned length) {
            return uct_ep_put_short(ep(), data.data(), length, memory.va,
                                    memory.rkey.rkey);
        };
        auto am              = [&](unsigned length) {
            return uct_ep_am_short(ep(), 1, 0, data.data(), length);
        };
        auto am_iov          = [&](size_t length) {
            iov.length = length;
            return uct_ep_am_short_iov(ep(), 1, &iov, 1);
        };

        EXPECT_EQ(UCS_OK, retry([&]() { return put(64); }));
        EXPECT_EQ(UCS_OK, retry([&]() { return am(56); }));
        EXPECT_EQ(UCS_OK, retry([&]() { return am_iov(64); }));
        {
            expect_errors hide;
            EXPECT_EQ(UCS_ERR_INVALID_PARAM, put(65));
            EXPECT_EQ(UCS_ERR_INVALID_PARAM, am(57));
            EXPECT_EQ(UCS_ERR_INVALID_PARAM, am_iov(65));
        }
        flush();
        EXPECT_TRUE(m_local->wait([&]() {
            return m_peer->num_received() == 2;
        }));
        uct_rkey_release(m_local->component(), &memory.rkey);
    }
}
#endif

TEST_F(test_sep_uct_settings, progress_handles_as_many_receives_as_allowed)
{
    const unsigned count = 20;

    for (unsigned limit : {1, 3, 16}) {
        start({{"RX_MAX_POLL", std::to_string(limit)}});
        uct_ep_h to_self = m_local->connect(m_local->addr());
        uint64_t data    = 0;

        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(to_self, 1, 0, &data, sizeof(data));
        }));
        m_local->flush();
        m_local->wait([&]() { return m_local->messages.size() == 1; });
        m_local->messages.clear();

        for (unsigned i = 0; i < count; ++i) {
            ASSERT_EQ(UCS_OK, uct_ep_am_short(to_self, 1, 0, &data,
                                              sizeof(data)));
        }
        wait_for_cqes(count);
        for (unsigned done = 0; done < count;) {
            unsigned now = std::min(limit, count - done);
            EXPECT_EQ(now, m_local->progress());
            done += now;
            EXPECT_EQ(done, m_local->messages.size());
        }
        m_local->flush();
    }
}

/* Who waits until a number of messages has come, and looks after each call,
 * must not find one more: MPICH waits so for the posts of an epoch */
TEST_F(test_sep_uct_settings, by_default_a_call_delivers_one_message)
{
    for (const settings &mode : {settings{{"API", "dv"}},
                                 settings{{"API", "verbs"}},
                                 settings{{"CATEGORY", "mpi_threads"}},
                                 settings{{"CATEGORY", "mpi_everywhere"}},
                                 settings{{"CQ_SHARING", "2"}},
                                 settings{{"TX_POSTLIST", "4"}}}) {
        start(mode);
        m_peer->send(m_local->addr(), 200, 100);
        EXPECT_TRUE(m_local->wait([&]() {
            size_t before = m_local->messages.size();

            m_local->progress();
            EXPECT_LE(m_local->messages.size(), before + 1);
            return m_local->messages.size() >= 150;
        })) << mode[0].second;
        m_local->wait([&]() { return m_local->messages.size() == 200; });
    }
}

TEST_F(test_sep_uct_settings, receive_queue_grows_when_half_of_it_is_used_up)
{
    start({{"RX_QUEUE_LEN", "200"}, {"RX_QUEUE_FILL", "64"},
           {"RX_MAX_POLL", "16"}, {"FC_ENABLE", "n"},
           {"TX_CQ_MODERATION", "2000"}});
    uct_ep_h to_self   = m_local->connect(m_local->addr());
    uct_sep_srq_t &srq = m_local->sep()->srq;
    uint64_t data      = 0;
    unsigned expected  = 0;

    auto burst = [&](unsigned count) {
        for (unsigned i = 0; i < count; ++i, ++data, ++expected) {
            ASSERT_EQ(UCS_OK, uct_ep_am_short(to_self, 1, 0, &data,
                                              sizeof(data)));
        }
        wait_for_cqes(count);
        m_local->wait([&]() { return m_local->messages.size() == expected; });
        m_local->flush();
    };

    EXPECT_EQ(UCS_OK, retry([&]() {
        return uct_ep_am_short(to_self, 1, 0, &data, sizeof(data));
    }));
    ++data;
    ++expected;
    m_local->flush();
    m_local->wait([&]() { return m_local->messages.size() == 1; });
    EXPECT_EQ(64u, uct_sep_srq_num_filled(&srq));

    /* A call handles 16 */
    burst(16 + 31);
    EXPECT_EQ(64u, uct_sep_srq_num_filled(&srq));
    burst(16 + 32);
    EXPECT_EQ(128u, uct_sep_srq_num_filled(&srq));
    burst(63);
    EXPECT_EQ(128u, uct_sep_srq_num_filled(&srq));

    for (unsigned i = 0; i < 400; ++i, ++data, ++expected) {
        EXPECT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(to_self, 1, 0, &data, sizeof(data));
        }));
    }
    m_local->wait([&]() { return m_local->messages.size() == expected; });
    for (uint64_t i = 0; i < expected; ++i) {
        uint64_t value;
        memcpy(&value, m_local->messages[i].data.data() + 8, sizeof(value));
        EXPECT_EQ(i, value);
    }
}

TEST_F(test_sep_uct_settings, receive_queue_grows_to_its_length_and_no_further)
{
    for (const settings &mode : {settings{{"API", "dv"}},
                                 settings{{"RX_MAX_POLL", "2"}},
                                 settings{{"API", "verbs"}},
                                 settings{{"CATEGORY", "mpi_threads"}},
                                 settings{{"CQ_SHARING", "2"}}}) {
        settings config = mode;
        config.insert(config.end(), {{"RX_QUEUE_LEN", "100"},
                                     {"RX_QUEUE_FILL", "20"},
                                     {"FC_ENABLE", "n"}});
        start(config);
        bool is_verbs = m_local->is_verbs();
        m_peer->send(m_local->addr(), 3000, 100);
        if (!is_verbs) {
            wait_for_cqes(20);
        }
        EXPECT_TRUE(m_local->wait([&]() {
            return m_local->messages.size() == 3000;
        }));
        EXPECT_LE(uct_sep_srq_num_filled(&m_local->sep()->srq), 100u);
        EXPECT_GT(uct_sep_srq_num_filled(&m_local->sep()->srq),
                  is_verbs ? 19u : 20u);
    }

    expect_refused({{"RX_QUEUE_FILL", "0"}}, {"UCX_SEP_RX_QUEUE_FILL=0"});
}

/* Messages have a header of one byte in front of the one that is the user's */
TEST_F(test_sep_uct_settings, short_messages_come_with_their_completions)
{
    const struct {
        settings config;
        size_t   limit;
    } modes[] = {
        {{{"RX_INLINE", "32"}}, 32}, /* Also the default */
        {{{"RX_INLINE", "1"}}, 32},
        {{{"RX_INLINE", "33"}}, 64},
        {{{"RX_INLINE", "64"}, {"TX_INLINE_RESP", "0"}}, 64},
        {{{"RX_INLINE", "0"}}, 0},
        {{{"RX_INLINE", "64"}, {"CATEGORY", "mpi_everywhere"}}, 64},
        {{{"RX_INLINE", "32"}, {"CQ_SHARING", "2"}}, 32},
        {{{"RX_INLINE", "32"}, {"TX_POSTLIST", "4"}}, 32},
        {{{"RX_INLINE", "32"}, {"API", "verbs"}}, 0},
        {{{"RX_INLINE", "32"}, {"CATEGORY", "mpi_threads"}}, 0},
        {{}, 32}
    };

    for (const auto &mode : modes) {
        SCOPED_TRACE(testing::Message() << "mode " << &mode - modes);
        start(mode.config);
        uct_ep_h to_self = m_local->connect(m_local->addr());

        /* Several rounds through a queue of this length */
        for (unsigned i = 0; i < 1000; ++i) {
            unsigned length = i % 71;
            bytes data      = pattern(length, i);
            uint64_t header = i;

            ASSERT_EQ(UCS_OK, retry([&]() {
                return uct_ep_am_short(to_self, 1, header, data.data(), length);
            }));
            if ((i % 10) != 9) {
                continue; /* Some come in bursts */
            }
            m_local->flush();
            ASSERT_TRUE(m_local->wait([&]() {
                return m_local->messages.size() == i + 1;
            }));
        }
        for (unsigned i = 0; i < 1000; ++i) {
            const message &received = m_local->messages[i];
            unsigned length         = i % 71;
            bytes expected          = pattern(length, i);
            uint64_t header         = i;

            expected.insert(expected.begin(), (uint8_t*)&header,
                            (uint8_t*)(&header + 1));
            ASSERT_EQ(expected, received.data) << i;
            ASSERT_EQ((1 + sizeof(header) + length > mode.limit) &&
                      !m_local->is_on_hub(),
                      received.has_desc && !m_local->is_on_hub()) << i;
        }
    }

    expect_refused({{"RX_INLINE", "65"}}, {"UCX_SEP_RX_INLINE=65"});
}

/* Whether the last completion has the result itself, where that can be seen */
static void expect_result(entity &e, size_t length, bool is_with_it)
{
    if (e.is_verbs() || e.is_on_hub() ||
        uct_sep_iface_shares_cq(e.sep())) {
        return;
    }

    const uct_sep_cq_t &cq = (e.sep()->own_cq.cq != NULL) ? e.sep()->own_cq :
                                                            e.sep()->cq;
    if (cq.next > cq.start) {
        ASSERT_EQ(is_with_it, !!uct_sep_cqe_has_data(cq.next - cq.stride))
                << length;
    }
}

TEST_F(test_sep_uct_settings, short_results_come_with_their_completions)
{
    const struct {
        settings config;
        size_t   limit;
        bool     is_second; /* Not the domain's first, whose context it is */
    } modes[] = {
        {{{"TX_INLINE_RESP", "32"}}, 32},
        {{{"TX_INLINE_RESP", "0"}}, 0},
        {{{"TX_INLINE_RESP", "1"}, {"RX_INLINE", "64"}}, 64},
        {{{"RX_INLINE", "0"}}, 0}, /* libmlx5 does not allow it */
        {{{"RX_INLINE", "0"}, {"CATEGORY", "mpi_everywhere"}}, 0},
        {{{"RX_INLINE", "64"}, {"CATEGORY", "mpi_everywhere"}}, 64},
        {{{"RX_INLINE", "0"}, {"CATEGORY", "mpi_everywhere"}}, 32, true},
        {{{"RX_INLINE", "64"}, {"CATEGORY", "mpi_everywhere"}}, 32, true},
        {{{"RX_INLINE", "64"}, {"CQ_SHARING", "2"}}, 32},
        {{{"TX_POSTLIST", "4"}}, 32},
        {{{"API", "verbs"}}, 0},
        {{{"CATEGORY", "mpi_threads"}}, 0},
        {{}, 32}
    };

    for (const auto &mode : modes) {
        SCOPED_TRACE(testing::Message() << "mode " << &mode - modes);
        start(mode.config);
        remote_memory memory = m_peer->expose(4096, 5);
        bytes all            = pattern(4096, 5);
        std::unique_ptr<entity> second;
        entity *e            = m_local.get();
        uct_ep_h to_peer     = ep();

        if (mode.is_second) {
            second  = entity::create(*m_local, mode.config);
            ASSERT_TRUE(second != nullptr);
            e       = second.get();
            to_peer = e->connect(m_peer->addr());
            ASSERT_TRUE(e->sep()->own_cq.cq != NULL);
        }

        /* Post and wait for the result */
        auto run = [&](completion &comp,
                       const std::function<ucs_status_t()> &op) {
            ucs_status_t status = UCS_OK;

            EXPECT_TRUE(e->wait([&]() {
                status = op();
                return status != UCS_ERR_NO_RESOURCE;
            }));
            EXPECT_EQ(UCS_INPROGRESS, status);
            EXPECT_TRUE(e->wait([&]() { return comp.calls > 0; }));
            EXPECT_EQ(UCS_OK, comp.status);
        };

        EXPECT_EQ(mode.limit ? mode.limit + 1 : 0,
                  e->attr().cap.get.min_zcopy);
        for (size_t length = 1; length < 100; ++length) {
            completion comp;
            bytes result;

            run(comp, [&]() {
                return uct_ep_get_bcopy(to_peer, unpack, &result, length,
                                        memory.va + length, memory.rkey.rkey,
                                        &comp.comp);
            });
            ASSERT_EQ(bytes(all.begin() + length, all.begin() + 2 * length),
                      result);

            ASSERT_NO_FATAL_FAILURE(
                    expect_result(*e, length, length <= mode.limit));
        }

        for (uint64_t i = 0; i < 10; ++i) {
            uint64_t before, old = 0;
            completion comp;

            memcpy(&before, &all[8], sizeof(before));
            run(comp, [&]() {
                return uct_ep_atomic64_fetch(to_peer, UCT_ATOMIC_OP_ADD, 3,
                                             &old, memory.va + 8,
                                             memory.rkey.rkey, &comp.comp);
            });
            ASSERT_EQ(before + 3 * i, old);
            ASSERT_NO_FATAL_FAILURE(
                    expect_result(*e, sizeof(old), sizeof(old) <= mode.limit));
        }

        for (uint32_t i = 0; i < 10; ++i) {
            uint32_t before, old = 0;
            completion comp;

            if (!(e->attr().cap.atomic32.fop_flags &
                  UCS_BIT(UCT_ATOMIC_OP_CSWAP))) {
                break; /* Not through verbs */
            }
            memcpy(&before, &all[64], sizeof(before));
            run(comp, [&]() {
                return uct_ep_atomic_cswap32(to_peer, before + i,
                                             before + i + 1, memory.va + 64,
                                             memory.rkey.rkey, &old,
                                             &comp.comp);
            });
            ASSERT_EQ(before + i, old);
            ASSERT_NO_FATAL_FAILURE(
                    expect_result(*e, sizeof(old), sizeof(old) <= mode.limit));
        }
        uct_rkey_release(m_local->component(), &memory.rkey);
    }

    expect_refused({{"TX_INLINE_RESP", "65"}}, {"UCX_SEP_TX_INLINE_RESP=65"});
}

TEST_F(test_sep_uct_settings, progress_handles_as_many_sends_as_allowed)
{
    const unsigned count = 20;

    for (unsigned limit : {1, 3, 16}) {
        start({{"TX_MAX_POLL", std::to_string(limit)}});
        remote_memory target = m_peer->expose(64, 3);
        memory source(m_local->md(), 64);
        uct_iov_t iov = {source.ptr(), source.size(), source.memh(), 0, 1};
        completion comp;

        auto put = [&]() {
            return uct_ep_put_zcopy(ep(), &iov, 1, target.va, target.rkey.rkey,
                                    &comp.comp);
        };
        ASSERT_EQ(UCS_INPROGRESS, retry(put));
        EXPECT_EQ(UCS_OK, wait(comp));
        comp.calls      = 0;
        comp.comp.count = count + 1;

        for (unsigned i = 0; i < count; ++i) {
            ASSERT_EQ(UCS_INPROGRESS, put());
        }
        wait_for_cqes(count);
        for (unsigned done = 0; done < count;) {
            unsigned now = std::min(limit, count - done);
            EXPECT_EQ(now, m_local->progress());
            done += now;
            EXPECT_EQ(count + 1 - done, (unsigned)comp.comp.count);
        }
        uct_rkey_release(m_local->component(), &target.rkey);
    }
}

/* Whatever the queue they come from */
TEST_F(test_sep_uct_settings, limits_of_progress_hold_in_all_modes)
{
    const unsigned count = 30, limit = 2;

    for (const settings &mode : {settings{{"CATEGORY", "mpi_everywhere"}},
                                 settings{{"CQ_SHARING", "2"}},
                                 settings{{"API", "verbs"}},
                                 settings{{"TX_POSTLIST", "4"}}}) {
        settings config = mode;
        config.push_back({"RX_MAX_POLL", std::to_string(limit)});
        config.push_back({"TX_MAX_POLL", std::to_string(limit)});

        auto first  = open(config);
        auto second = entity::create(*first, config);
        ASSERT_TRUE(second != nullptr);
        uct_ep_h ep = second->connect(first->addr());
        memory source(second->md(), 64), target(second->md(), 64);
        bytes packed  = target.packed_rkey();
        uct_iov_t iov = {source.ptr(), source.size(), source.memh(), 0, 1};
        uct_rkey_bundle_t rkey;
        completion comp;

        ASSERT_EQ(UCS_OK, uct_rkey_unpack(second->component(), packed.data(),
                                          &rkey));
        comp.comp.count = count;
        for (unsigned i = 0; i < count;) {
            if (uct_ep_put_zcopy(ep, &iov, 1, target.va(), rkey.rkey,
                                 &comp.comp) == UCS_INPROGRESS) {
                ++i;
            }
            EXPECT_LE(first->progress(), 2 * limit);
            EXPECT_LE(second->progress(), 2 * limit + 1); /* Connecting, too */
        }
        for (uint64_t i = 0; i < count;) {
            if (uct_ep_am_short(ep, 1, 0, &i, sizeof(i)) == UCS_OK) {
                ++i;
            }
            second->progress();
        }
        EXPECT_TRUE(second->wait([&]() {
            EXPECT_LE(first->progress(), 2 * limit);
            return (comp.calls == 1) && (first->messages.size() == count);
        }));
        uct_rkey_release(second->component(), &rkey);
    }

    expect_refused({{"TX_MAX_POLL", "0"}}, {"UCX_SEP_TX_MAX_POLL=0"});
    expect_refused({{"RX_MAX_POLL", "0"}}, {"UCX_SEP_RX_MAX_POLL=0"});
    expect_refused({{"TX_MAX_POLL", "1000"}}, {"UCX_SEP_TX_MAX_POLL=1000"});
}

/* Words that UCX's parser knows and that mean nothing here, and one of none */
TEST_F(test_sep_uct_settings, eager_is_a_word_of_three)
{
    for (const char *value : {"try", "maybe"}) {
        expect_errors hide;
        EXPECT_TRUE(entity::create({{"EAGER", value}}) == nullptr) << value;
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR,
                                 "set it to y, auto or n"));
    }
    for (const char *value : {"y", "auto", "n"}) {
        EXPECT_TRUE(entity::create({{"EAGER", value}}) != nullptr) << value;
    }
}

TEST_F(test_sep_uct_settings, fence_can_be_switched_off)
{
    const struct {
        const char *value;
        bool       fences;
    } modes[] = {{"none", false}, {"weak", true}, {"auto", true}};

    for (auto &mode : modes) {
        start({{"FENCE", mode.value}});
        remote_memory target = m_peer->expose(64, 3);
        uint64_t result, data = 1;
        completion comp;

        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_atomic64_fetch(ep(), UCT_ATOMIC_OP_ADD, 1, &result,
                                         target.va, target.rkey.rkey,
                                         &comp.comp);
        }));
        uct_sep_txwq_t *txwq = m_local->sep_ep(ep())->txwq;
        EXPECT_EQ(UCS_OK, uct_ep_fence(ep(), 0));
        EXPECT_EQ(mode.fences, !!(txwq->flags & UCT_SEP_TXWQ_FLAG_FENCE))
                << mode.value;
        ASSERT_EQ(UCS_OK, uct_ep_put_short(ep(), &data, sizeof(data), target.va,
                                           target.rkey.rkey));
        EXPECT_EQ(UCS_OK, uct_iface_fence(m_local->iface(), 0));
        EXPECT_EQ(mode.fences, !!(txwq->flags & UCT_SEP_TXWQ_FLAG_FENCE));
        EXPECT_EQ(UCS_OK, wait(comp));
        flush();
        uct_rkey_release(m_local->component(), &target.rkey);
    }

    expect_refused({{"FENCE", "strong"}}, {"Invalid value for FENCE"});
}

/* What auto chooses */
class test_sep_uct_post : public test_sep_uct_settings {
protected:
    /* Connect, and return how it posts */
    int post(const settings &config)
    {
        uint64_t data = 1;

        start(config);
        EXPECT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep(), 1, 0, &data, sizeof(data));
        }));
        flush();
        /* Those that look whether it is, in static */
        EXPECT_GE(m_local->sep()->tx.is_shared,
                  m_local->sep_ep(ep())->txwq->bf->sharing !=
                          UCT_SEP_BF_SINGLE);
        return m_local->sep()->tx.post;
    }

    static bool is_bf(int post)
    {
        return (post == UCT_SEP_TX_POST_BF) || (post == UCT_SEP_TX_POST_AUTO);
    }
};

TEST_F(test_sep_uct_post, blueflame_is_used_if_the_device_has_it)
{
    for (auto &row : categories()) {
        const char *category = row.name;

        EXPECT_TRUE(is_bf(post({{"CATEGORY", category}}))) << category;
        EXPECT_TRUE(is_bf(post({{"CATEGORY", category}, {"TX_POST", "bf"}})))
                << category;
        EXPECT_EQ(UCT_SEP_TX_POST_DB, post({{"CATEGORY", category},
                                            {"TX_POST", "db"}})) << category;
    }
}

TEST_F(test_sep_uct_post, doorbells_are_used_where_there_is_no_blueflame)
{
    if (!on_device({{"MLX5_SHUT_UP_BF", "1"}})) {
        return;
    }

    /* That is about uUARs by the driver's policy only */
    EXPECT_TRUE(is_bf(post({{"CATEGORY", "dynamic"}})));

    expect_errors hide; /* That bf has no effect */
    for (const char *value : {"auto", "bf", "db"}) {
        EXPECT_EQ(UCT_SEP_TX_POST_DB, post({{"CATEGORY", "static"},
                                            {"TX_POST", value}})) << value;
    }
}

/* uUARs by the policy of old kernels: of two, one is for doorbells and the
 * other for all queue pairs */
TEST_F(test_sep_uct_post, shared_uuars_are_locked)
{
    if (!on_device({{"MLX5SIM_UAR_MODE", "legacy"},
                    {"MLX5_TOTAL_UUARS", "2"},
                    {"MLX5_NUM_LOW_LAT_UUARS", "0"}})) {
        return;
    }

    start({{"CATEGORY", "static"}}, 3);
    for (unsigned i = 0; i < 3; ++i) {
        uint64_t data = 1;
        EXPECT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep(i), 1, 0, &data, sizeof(data));
        }));
    }
    flush();
    EXPECT_EQ(UCT_SEP_BF_SHARED, m_local->sep_ep(ep(0))->txwq->bf->sharing);
    EXPECT_TRUE(m_local->sep()->tx.is_shared);
    EXPECT_EQ(m_local->sep_ep(ep(0))->txwq->bf,
              m_local->sep_ep(ep(2))->txwq->bf);
}

} // namespace
