/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_pair.h>

#include <uct/ib/sep/device/sep_order.h>

#include <deque>
#include <random>

using namespace sep_uct_test;

namespace {

/*
 * The eager channel on adapters that place data out of order: who is offered a
 * ring, and what of a ring does not rest on the order of writes.
 */
class eager_order : public eager_pair {
protected:
    using eager_pair::eager_pair;

    /* How many messages have come by ring so far */
    uint64_t by_ring() { return m_e[1]->num_by_ring(); }

    uint64_t withheld() { return sep(1)->eager.stats.withheld; }

    /* Whether the device says that all data are in order */
    bool is_in_order()
    {
        EXPECT_TRUE(wait([&]() { return txwq(1)->conn.qp != NULL; }));
        return uct_sep_order_query(txwq(1)->conn.qp) == UCT_SEP_ORDER_KEPT;
    }

    void put(memory &to, uint8_t value)
    {
        uct_rkey_bundle_t rkey = {};
        bytes packed           = to.packed_rkey();
        uint64_t data          = value;

        ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_e[0]->component(), packed.data(),
                                          &rkey));
        ASSERT_TRUE(wait([&]() {
            return uct_ep_put_short(m_ep[0], &data, sizeof(data), to.va(),
                                    rkey.rkey) == UCS_OK;
        }));
        uct_rkey_release(m_e[0]->component(), &rkey);
    }
};

class test_sep_uct_eager_order :
    public eager_order,
    public ::testing::WithParamInterface<const char*> {
protected:
    test_sep_uct_eager_order() : eager_order(GetParam()) {}
};

/* Ethernet's default of 1500 bytes makes a path MTU of 1024: a slot of 1088 is
 * two packets, and the second one, with the tail, may be placed first */
TEST_P(test_sep_uct_eager_order, a_slot_has_one_packet_unless_data_are_in_order)
{
    for (const char *mtu : {"256", "512", "1024"}) {
        make({{"PATH_MTU", mtu}, {"EAGER_SLOT_SIZE", "2048"}});
        open_ring();
        if (is_in_order()) {
            EXPECT_EQ(2048u, txwq(0)->ring.slot_size);
        } else {
            EXPECT_EQ(strtoul(mtu, NULL, 0), txwq(0)->ring.slot_size);
        }

        /* What does not fit is sent */
        uint64_t before = by_ring();
        size_t longest  = txwq(0)->ring.max_length;
        if (m_e[0]->is_on_hub()) {
            /* Which of its workers it is for comes in front */
            longest -= sizeof(uct_sep_hub_ep_t::route);
        }
        for (size_t length : {longest, longest + 1, (size_t)8}) {
            ASSERT_NO_FATAL_FAILURE(must_send(2, pattern(length, length)));
            ASSERT_TRUE(wait([&]() { return is_quiet(); }));
            EXPECT_EQ(pattern(length, length), m_e[1]->messages.back().data);
        }
        EXPECT_EQ(before + 2, by_ring());
        m_sent = 0;
        TearDown();
    }
}

/* The smaller of both sides' counts */
TEST_P(test_sep_uct_eager_order, a_slot_has_one_packet_of_the_connection)
{
    make({{"PATH_MTU", "256"}});
    settings longer = {{"CATEGORY", m_category}, {"EAGER", "y"},
                       {"PATH_MTU", "1024"}};
    m_e[1].reset();
    m_e[1] = create_other(longer);
    ASSERT_TRUE(m_e[1] != nullptr);
    m_ep[0] = m_e[0]->connect(m_e[1]->addr());
    m_ep[1] = m_e[1]->connect(m_e[0]->addr());
    open_ring();
    EXPECT_EQ(is_in_order() ? 1088u : 256u, txwq(0)->ring.slot_size);
}

/* Writes are not ordered among each other on such an adapter: a fence and a
 * message by send/receive are, and what follows that waits for it */
TEST_P(test_sep_uct_eager_order, what_comes_first_behind_a_fence_is_sent)
{
    make();
    open_ring();
    memory target(m_e[1]->md(), 64);

    for (unsigned how = 0; how < 3; ++how) {
        for (bool is_put_between : {false, true}) {
            uint64_t before = by_ring();
            uint64_t full   = sep(0)->eager.stats.full;

            ASSERT_NO_FATAL_FAILURE(put(target, 1));
            ASSERT_EQ(UCS_OK, uct_ep_fence(m_ep[0], 0));
            if (is_put_between) {
                ASSERT_NO_FATAL_FAILURE(put(target, 2));
            }
            for (unsigned i = 0; i < 3; ++i) {
                ASSERT_EQ(UCS_OK, send(how, pattern(16, i)));
                ++m_sent;
            }
            ASSERT_TRUE(wait([&]() { return is_quiet(); }));
            for (unsigned i = 0; i < 3; ++i) {
                EXPECT_EQ(pattern(16, i), m_e[1]->messages[i].data);
            }
            EXPECT_EQ(before + 2, by_ring()) << how << is_put_between;
            EXPECT_EQ(full, sep(0)->eager.stats.full);
            m_e[1]->messages.clear();
            m_sent = 0;
            ASSERT_TRUE(m_e[0]->flush());
        }
    }
}

/* So does a fence of the whole interface */
TEST_P(test_sep_uct_eager_order, what_comes_first_behind_all_puts_is_sent)
{
    make();
    open_ring();
    memory target(m_e[1]->md(), 64);
    uint64_t before = by_ring();

    ASSERT_NO_FATAL_FAILURE(put(target, 1));
    ASSERT_EQ(UCS_OK, uct_iface_fence(m_e[0]->iface(), 0));
    for (unsigned i = 0; i < 2; ++i) {
        ASSERT_NO_FATAL_FAILURE(must_send(2, pattern(16, i)));
    }
    ASSERT_TRUE(wait([&]() { return is_quiet(); }));
    EXPECT_EQ(before + 1, by_ring());
}

/* Two writes of one counter may be placed in either order, and then it would
 * say what the first one did */
TEST_P(test_sep_uct_eager_order, one_write_of_slots_is_under_way_at_a_time)
{
    make();
    open_ring();
    /* From the first slot on, with nothing given back */
    while (ring()->rx.tail != ring()->rx.first) {
        ASSERT_NO_FATAL_FAILURE(must_send(0, pattern(16, 1)));
        ASSERT_TRUE(wait([&]() { return is_quiet(); }));
    }
    ASSERT_TRUE(wait([&]() { return !txwq(1)->eager->is_returning; }));
    m_e[1]->messages.clear();
    m_sent = 0;
    for (unsigned i = 0; i < 64; ++i) {
        ASSERT_EQ(UCS_OK, send(0, pattern(16, i)));
    }

    auto take = [&](size_t count) {
        return m_e[1]->wait([&]() {
            uct_iface_progress(m_e[1]->iface());
            return m_e[1]->messages.size() >= count;
        });
    };
    const uint64_t &writes = sep(1)->eager.stats.writes;
    ASSERT_TRUE(take(20));
    uint64_t before = writes;
    uct_sep_eager_return_slots(sep(1), txwq(1));
    EXPECT_EQ(before + 1, writes);

    /* It has been posted; nobody has looked for its completion */
    txwq(1)->ring.told -= 32; /* As if more had been taken meanwhile */
    uct_sep_eager_return_slots(sep(1), txwq(1));
    txwq(1)->ring.told += 32;
    EXPECT_EQ(before + 1, writes);

    m_sent = 64;
    ASSERT_TRUE(wait([&]() {
        return is_quiet() && !txwq(1)->eager->is_returning;
    }));
    EXPECT_GT(writes, before + 1);

    /* All slots come back */
    EXPECT_TRUE(wait([&]() {
        (void)uct_sep_ring_tx_refresh(&txwq(0)->ring);
        return txwq(0)->ring.left >= 32;
    }));
}

/* Unless it is asked for, nobody has a ring where it is not known what it rests
 * on */
TEST_P(test_sep_uct_eager_order, auto_is_for_those_who_know)
{
    expect_errors log(UCS_LOG_LEVEL_INFO);

    make({{"EAGER", "auto"}});
    send_much();
    ASSERT_TRUE(wait([&]() { return has_ring() || (withheld() > 0); }));
    EXPECT_EQ(is_in_order(), has_ring());
    EXPECT_EQ(is_in_order() ? 0u : 1u, withheld());
    EXPECT_EQ(is_in_order() ? 0u : 1u,
              log.count(UCS_LOG_LEVEL_INFO, "no rings are offered"));
}

/*
 * A device that places packets of consecutive writes in any order, and does
 * not tell, since it has no DEVX: the channel has to get along with that. Each
 * of these tests has a device of its own, and a seed.
 */
class test_sep_uct_eager_disorder :
    public eager_order,
    public testing::WithParamInterface<std::tuple<const char*, int>> {
protected:
    test_sep_uct_eager_disorder() : eager_order(std::get<0>(GetParam())) {}

    static int seed() { return std::get<1>(GetParam()); }

    static bool on_such_a_device()
    {
        return on_device({{"MLX5SIM_EXEC", "deferred"},
                          {"MLX5SIM_DATA_IN_ORDER", "n"},
                          {"MLX5SIM_SEED", std::to_string(seed())}});
    }
};

/* A message in two packets, of which the second one has the tail */
TEST_P(test_sep_uct_eager_disorder, random_messages_are_whole_and_in_order)
{
    if (!on_such_a_device()) {
        return;
    }

    make({{"PATH_MTU", "256"}});
    open_ring();
    uint64_t before = by_ring();
    std::deque<bytes> expected;
    std::mt19937 random(seed());
    auto check = [&]() {
        for (auto &m : m_e[1]->messages) {
            ASSERT_FALSE(expected.empty());
            ASSERT_EQ(expected.front(), m.data);
            expected.pop_front();
        }
        m_e[1]->messages.clear();
    };

    for (unsigned i = 0; (i < 2000) && !HasFatalFailure(); ++i) {
        expected.push_back(pattern(8 + random() % 300, i));
        ASSERT_TRUE(wait([&]() {
            check();
            return send(2, expected.back()) == UCS_OK;
        }));
    }
    EXPECT_TRUE(wait([&]() {
        check();
        return expected.empty() || HasFatalFailure();
    }));
    EXPECT_GT(by_ring(), before + 100);
}

/* As UCP's rendezvous by puts does it: data, a fence, and a message that says
 * that they are there */
TEST_P(test_sep_uct_eager_disorder, puts_are_there_when_a_message_behind_comes)
{
    if (!on_such_a_device()) {
        return;
    }

    make({{"PATH_MTU", "256"}});
    open_ring();
    const size_t length = 6000;
    memory target(m_e[1]->md(), length);
    memory source(m_e[0]->md(), length);
    memory other(m_e[1]->md(), 64);
    uct_rkey_bundle_t rkey = {};
    bytes packed           = target.packed_rkey();
    unsigned handled       = 0;
    bytes data;

    ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_e[0]->component(), packed.data(),
                                      &rkey));
    m_e[1]->on_message = [&]() {
        ++handled;
        EXPECT_EQ(0, memcmp(data.data(), target.ptr(), length))
                << "message " << handled;
    };
    for (unsigned i = 0; (i < 300) && !HasFailure(); ++i) {
        uct_iov_t iov = {source.ptr(), length, source.memh(), 0, 1};

        data = pattern(length, i);
        memcpy(source.ptr(), data.data(), length);
        ASSERT_TRUE(wait([&]() {
            return uct_ep_put_zcopy(m_ep[0], &iov, 1, target.va(), rkey.rkey,
                                    NULL) == UCS_INPROGRESS;
        }));
        ASSERT_EQ(UCS_OK, uct_ep_fence(m_ep[0], 0));
        if ((i % 2) == 0) {
            /* What is put first behind the fence is not for that message */
            ASSERT_NO_FATAL_FAILURE(put(other, i));
        }
        /* The second one is written into the ring */
        for (unsigned j = 0; j < 2; ++j) {
            ASSERT_EQ(UCS_OK, send((i + j) % 3, pattern(16, i)));
        }
        ASSERT_TRUE(wait([&]() { return handled == 2 * (i + 1); }));
        ASSERT_TRUE(m_e[0]->flush());
    }
    m_e[1]->on_message = nullptr;
    uct_rkey_release(m_e[0]->component(), &rkey);
}

/* Where nothing is sent back, a ring lives on the writes that give back slots:
 * as few as may be, so that two are soon under way */
TEST_P(test_sep_uct_eager_disorder, slots_come_back_for_ever)
{
    if (!on_such_a_device()) {
        return;
    }

    make({{"EAGER_SLOTS", "4"}});
    open_ring();
    for (unsigned i = 0; i < 40; ++i) {
        uint64_t last = by_ring();

        for (unsigned j = 0; j < 100; ++j) {
            ASSERT_NO_FATAL_FAILURE(must_send(0, pattern(16, i)));
        }
        ASSERT_TRUE(wait([&]() { return is_quiet(); }));
        ASSERT_LT(last, by_ring()) << "round " << i;

        /* All were handled: slots come back, however long that takes */
        ASSERT_TRUE(wait([&]() {
            return (txwq(0)->ring.left >= 0) ||
                   uct_sep_ring_tx_refresh(&txwq(0)->ring);
        })) << "no slot has come back in round " << i;
        m_e[1]->messages.clear();
        m_sent = 0;
    }
}

/* What a device says about itself, and who has a ring there */
struct answer {
    const char      *name;
    device_settings device;
    uct_sep_order_t order;     /* Of a queue pair */
    size_t          slots[2];  /* Length with EAGER=y and auto; 0: no rings */
    unsigned        told[2];   /* Messages of level diag, with y and auto */
};

/* GoogleTest would print its bytes, padding included */
std::ostream &operator<<(std::ostream &out, const answer &value)
{
    return out << value.name;
}

const settings eager_modes[] = {{{"EAGER", "y"}}, {{"EAGER", "auto"}}};

class test_sep_uct_eager_answer : public eager_order,
                                  public testing::WithParamInterface<answer> {
protected:
    void expect_rings(settings config)
    {
        for (unsigned i = 0; i < 2; ++i) {
            expect_errors log(UCS_LOG_LEVEL_INFO);
            settings changes = config;

            changes.push_back(eager_modes[i][0]);
            make(changes);
            ASSERT_NO_FATAL_FAILURE(send_much());
            ASSERT_TRUE(wait([&]() { return has_ring() || (withheld() > 0); }));
            EXPECT_EQ(GetParam().order, uct_sep_order_query(receiver()));
            EXPECT_EQ(GetParam().slots[i],
                      has_ring() ? txwq(0)->ring.slot_size : 0u) << i;
            EXPECT_EQ(has_ring() ? 0u : 1u, withheld());
            EXPECT_EQ(GetParam().told[i],
                      log.count(UCS_LOG_LEVEL_DIAG, "no rings are offered"));
            m_sent = 0;
            TearDown();
        }
    }

    /* The queue pair that places what is written */
    struct ibv_qp *receiver()
    {
        const uct_sep_link_state_t &conn = txwq(1)->conn;

        return (conn.responder != NULL) ? conn.responder : conn.qp;
    }
};

TEST_P(test_sep_uct_eager_answer, rings_are_offered_to_who_can_rely_on_them)
{
    if (!on_device(GetParam().device)) {
        return;
    }

    expect_rings({{"PATH_MTU", "256"}});
}

/* Queue pairs that only receive never get to RTS: libibverbs does not answer */
TEST_P(test_sep_uct_eager_answer, queue_pairs_that_only_receive_are_asked)
{
    if (!on_device(GetParam().device)) {
        return;
    }

    expect_rings({{"PATH_MTU", "256"}, {"CATEGORY", "mpi_everywhere"}});
}

const answer answers[] = {
    {"no_devx", {}, UCT_SEP_ORDER_UNKNOWN, {256, 0}, {0, 0}},
    {"in_order", {{"MLX5SIM_DEVX", "y"}}, UCT_SEP_ORDER_KEPT, {1088, 1088},
     {0, 0}},
    {"out_of_order", {{"MLX5SIM_DEVX", "y"}, {"MLX5SIM_DATA_IN_ORDER", "n"}},
     UCT_SEP_ORDER_BROKEN, {0, 0}, {1, 0}},
    {"old_firmware",
     {{"MLX5SIM_DEVX", "y"}, {"MLX5SIM_DATA_IN_ORDER", "unknown"}},
     UCT_SEP_ORDER_UNKNOWN, {256, 0}, {0, 0}},
    {"service_level",
     {{"MLX5SIM_DEVX", "y"}, {"MLX5SIM_LINK", "ib"},
      {"MLX5SIM_OOO_SL_MASK", "1"}},
     UCT_SEP_ORDER_BROKEN, {0, 0}, {1, 0}},
    {"other_service_level",
     {{"MLX5SIM_DEVX", "y"}, {"MLX5SIM_LINK", "ib"},
      {"MLX5SIM_OOO_SL_MASK", "2"}},
     UCT_SEP_ORDER_KEPT, {1088, 1088}, {0, 0}},
};

INSTANTIATE_TEST_SUITE_P(devices, test_sep_uct_eager_answer,
                         testing::ValuesIn(answers),
                         [](const testing::TestParamInfo<answer> &info) {
                             return std::string(info.param.name);
                         });

const char *const categories[] = {"dynamic", "mpi_threads"};

INSTANTIATE_TEST_SUITE_P(categories, test_sep_uct_eager_order,
                         testing::ValuesIn(categories),
                         [](const ::testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });

INSTANTIATE_TEST_SUITE_P(
        seeds, test_sep_uct_eager_disorder,
        testing::Combine(testing::ValuesIn(categories),
                         testing::Values(1, 2, 3)),
        [](const testing::TestParamInfo<std::tuple<const char*, int>> &info) {
            return std::string(std::get<0>(info.param)) + "_" +
                   std::to_string(std::get<1>(info.param));
        });

} /* namespace */
