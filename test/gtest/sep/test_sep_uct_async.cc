/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <ucs/time/time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <sched.h>
#include <unistd.h>

/*
 * What an adapter reports by asynchronous events: queue pairs that were
 * flushed, ports that go down and come up, and that it has failed.
 */

using namespace sep_uct_test;

namespace {

/* Ways in which interfaces use queue pairs and contexts */
std::vector<mode> async_modes()
{
    return {{"dv", {}},
            {"verbs", {{"API", "verbs"}}},
            {"mpi_everywhere", {{"CATEGORY", "mpi_everywhere"}}},
            {"shared_cq", {{"CQ_SHARING", "2"}}},
            {"mpi_threads", {{"CATEGORY", "mpi_threads"}}}};
}

class test_sep_uct_async : public test_sep_uct,
                           public ::testing::WithParamInterface<mode> {
protected:
    void SetUp() override
    {
        /* On devices of their own */
    }

    settings config(const settings &more = settings()) const
    {
        settings result = GetParam().config;

        result.insert(result.end(), more.begin(), more.end());
        return result;
    }

    /* mlx5sim-stat of this device with an option */
    void control(const std::string &option)
    {
        const char *dir = getenv("SEP_BUILD_DIR");
        std::string tool;
        char exe[4096];
        ssize_t length;

        if (dir != NULL) {
            tool = dir;
        } else {
            length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
            ASSERT_GT(length, 0);
            exe[length] = '\0';
            *strrchr(exe, '/') = '\0';
            tool = std::string(exe) + "/../..";
        }
        ASSERT_EQ(0, system((tool + "/bin/mlx5sim-stat " + option).c_str()));
    }

    /* Two that have both sent */
    void connect()
    {
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep(), 1, 0, NULL, 0);
        }));
        m_peer->send(m_local->addr(), 1, 8);
        m_local->wait([&]() {
            return (m_local->messages.size() == 1) &&
                   (m_peer->num_received() == 1);
        });
        m_local->messages.clear();
        flush();
    }
};

/* A queue pair that was destroyed without waiting for the last WQE event took
 * receives along. After a few peers that came and went there were none left. */
TEST_P(test_sep_uct_async, no_receive_is_lost_with_a_connection)
{
    if (!on_device({{"MLX5SIM_SRQ_PREFETCH", "15"}})) {
        return;
    }

    settings all = config(impatient);
    all.push_back({"RX_QUEUE_LEN", "48"});
    all.push_back({"RX_QUEUE_FILL", "48"});

    m_local = entity::create(all);
    ASSERT_TRUE(m_local != nullptr);
    for (unsigned round = 0; round < 8; ++round) {
        peer other(1, all);
        uct_ep_h to_other = m_local->connect(other.addr());

        other.send(m_local->addr(), 20, 100);
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(to_other, 1, 0, NULL, 0);
        }));
        ASSERT_TRUE(m_local->wait([&]() {
            return m_local->messages.size() == 20;
        }));
        m_local->messages.clear();
        flush();

        other.kill();
        m_local->failures.clear();
        (void)uct_ep_am_short(to_other, 1, 0, NULL, 0);
        ASSERT_TRUE(m_local->wait([&]() {
            return m_local->failures.size() > 0;
        }));
        m_local->destroy(to_other);
    }
    m_local->wait([&]() { return m_local->num_qps() == 0; });

    /* There are as many receives as at first: all of one window at once, from
     * peers that take some beforehand again */
    peer last(1, all);
    last.send(m_local->addr(), 300, 100);
    EXPECT_TRUE(m_local->wait([&]() {
        return m_local->messages.size() == 300;
    }));
}

/* Receive buffers of an interface, as the device sees them */
class receive_buffers {
public:
    receive_buffers(entity &owner) : m_srq(owner.sep()->srq)
    {
    }

    /* Make all look as if nothing had arrived in them */
    void poison()
    {
        for (unsigned i = 0; i < m_srq.length; ++i) {
            if (m_srq.descs[i] != NULL) {
                memset(data(i), POISON, m_srq.buf_size);
            }
        }
    }

    /* How many hold a message of this length, or its beginning; whether the end
     * of one is there, too */
    unsigned num_used(size_t length = 1, bool *is_whole_p = nullptr) const
    {
        unsigned count = 0;

        for (unsigned i = 0; i < m_srq.length; ++i) {
            if ((m_srq.descs[i] != NULL) && (at(i, 0) != POISON)) {
                ++count;
                if (is_whole_p != nullptr) {
                    *is_whole_p |= at(i, length - 1) != POISON;
                }
            }
        }
        return count;
    }

    /* How many can be used before the next is posted: all, except for the one
     * whose link is not known yet, if we write the links. libmlx5 has one more
     * than it says. */
    unsigned count() const
    {
        return m_srq.filled - (m_srq.ops == &uct_sep_srq_ops);
    }

private:
    static const uint8_t POISON = 0xee;

    uint8_t *data(unsigned index) const
    {
        return (uint8_t*)m_srq.descs[index] + m_srq.hdr_offset;
    }

    uint8_t at(unsigned index, size_t offset) const
    {
        return *(volatile uint8_t*)(data(index) + offset);
    }

    const uct_sep_srq_t &m_srq;
};

/* A message of many packets stops in the middle as its sender is killed. The
 * receive that it had begun to fill comes back, as do those that the queue pair
 * had taken beforehand. */
TEST_P(test_sep_uct_async, a_peer_killed_within_a_message_keeps_no_receive)
{
    static const size_t length  = 8000; /* 32 packets */
    static const unsigned count = 48;

    if (!on_device({{"MLX5SIM_EXEC", "deferred"},
                    {"MLX5SIM_DELAY", "100"},
                    {"MLX5SIM_SRQ_PREFETCH", "15"}})) {
        return;
    }

    settings receiver = config(impatient), sender = config();
    receiver.push_back({"RX_QUEUE_LEN", std::to_string(count)});
    receiver.push_back({"RX_QUEUE_FILL", std::to_string(count)});
    for (settings *side : {&receiver, &sender}) {
        side->push_back({"FC_ENABLE", "n"});
        side->push_back({"EAGER", "n"});
        side->push_back({"PATH_MTU", "256"});
    }

    m_local = entity::create(receiver);
    ASSERT_TRUE(m_local != nullptr);
    receive_buffers buffers(*m_local);
    peer other(1, sender);

    /* As many receives as there are, all at once */
    auto expect_all_receives = [&]() {
        other.send(m_local->addr(), 1, 200);
        m_local->wait([&]() { return m_local->messages.size() == 1; });
        m_local->messages.clear();
        buffers.poison();
        other.send(m_local->addr(), count, 200);
        /* Without progress, so none is posted again */
        patience::until([&]() {
            return buffers.num_used() >= buffers.count();
        });
        EXPECT_EQ(buffers.count(), buffers.num_used());
        EXPECT_TRUE(m_local->wait([&]() {
            return m_local->messages.size() == count;
        }));
        m_local->messages.clear();
    };

    expect_all_receives();
    for (unsigned num_halves = 0; num_halves < 2;) {
        peer victim(1, sender);
        uct_ep_h to_victim = m_local->connect(victim.addr());
        bool is_whole      = false;

        /* Connected by the victim: we would give up too soon */
        victim.send(m_local->addr(), 1, 200);
        ASSERT_TRUE(m_local->wait([&]() {
            return m_local->messages.size() == 1;
        }));
        m_local->messages.clear();

        buffers.poison();
        victim.send(m_local->addr(), 1, length);
        m_local->wait([&]() { return buffers.num_used() > 0; });
        victim.kill();
        if (m_local->messages.empty()) {
            ASSERT_EQ(1u, buffers.num_used(length, &is_whole));
        } else {
            is_whole = true; /* The buffer may be another one by now */
        }
        num_halves += !is_whole;

        /* To those that live it makes no difference */
        other.send(m_local->addr(), 10, 200);
        EXPECT_TRUE(m_local->wait([&]() {
            auto &list = m_local->messages;
            return std::count_if(list.begin(), list.end(), [](message &m) {
                return m.data.size() == 200;
            }) == 10;
        }));
        m_local->messages.clear();

        EXPECT_TRUE(m_local->failures.empty());
        retry([&]() { return uct_ep_am_short(to_victim, 1, 0, NULL, 0); });
        EXPECT_TRUE(m_local->wait([&]() {
            return !m_local->failures.empty();
        }));
        flush();
        ASSERT_EQ(1u, m_local->failures.size());
        EXPECT_EQ(to_victim, m_local->failures[0].ep);
        m_local->failures.clear();
        m_local->destroy(to_victim);
        m_local->wait([&]() { return m_local->num_qps() == 1; });
    }
    expect_all_receives();
    EXPECT_TRUE(m_local->failures.empty());
}

/* Nothing completes any more, so nothing may be waited for */
TEST_P(test_sep_uct_async, a_failed_device_fails_all_endpoints)
{
    if (!on_device({})) {
        return;
    }

    start(config());
    connect();

    expect_errors errors;
    uct_ep_h other       = m_local->connect(m_peer->addr());
    unsigned num_pending = 0;

    control("--fatal mlx5_0");
    EXPECT_TRUE(m_local->wait([&]() {
        return m_local->failures.size() == 2;
    }));
    for (auto &failure : m_local->failures) {
        EXPECT_TRUE((failure.ep == ep()) || (failure.ep == other));
        EXPECT_EQ(UCS_ERR_IO_ERROR, failure.status);
    }
    EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_ERROR, "async event"));

    flush();
    EXPECT_TRUE(UCS_STATUS_IS_ERR(uct_ep_am_short(ep(), 1, 0, NULL, 0)));
    EXPECT_NE(UCS_ERR_NO_RESOURCE, uct_ep_am_short(ep(), 1, 0, NULL, 0));
    uct_ep_pending_purge(ep(), [](uct_pending_req_t*, void *arg) {
        ++*(unsigned*)arg;
    }, &num_pending);

    /* A new one does not wait for an answer that can't come */
    uct_ep_h late = m_local->connect(m_peer->addr());
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_ep_am_short(late, 1, 0, NULL, 0));

    /* Ends, though the device refuses to destroy anything */
    m_eps.clear();
    m_local.reset();
}

/* Operations that were waiting for the device when it failed */
TEST_P(test_sep_uct_async, what_is_outstanding_on_a_failed_device_ends)
{
    if (!on_device({})) {
        return;
    }

    start(config());
    connect();

    /* The peer's port does not answer, so that there is something outstanding:
     * with one device, it is our own */
    remote_memory remote = m_peer->expose(4096, 1);
    memory local(m_local->md(), 4096);
    uct_iov_t iov = {local.ptr(), 4096, local.memh(), 0, 1};
    completion comps[5], flush_comp;
    expect_errors errors;

    control("--port-down mlx5_0:1");
    for (auto &comp : comps) {
        ASSERT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(ep(), &iov, 1, remote.va, remote.rkey.rkey,
                                   &comp.comp));
    }
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_flush(ep(), 0, &flush_comp.comp));

    control("--fatal mlx5_0");
    EXPECT_EQ(UCS_ERR_IO_ERROR, wait(flush_comp));
    for (auto &comp : comps) {
        EXPECT_EQ(1u, comp.calls);
        EXPECT_EQ(UCS_ERR_IO_ERROR, comp.status);
    }
    EXPECT_EQ(1u, m_local->failures.size());
    flush();
    m_eps.clear();
}

TEST_P(test_sep_uct_async, messages_wait_while_the_port_is_down)
{
    if (!on_device({})) {
        return;
    }

    start(config({{"TIMEOUT", "5s"}}));
    connect();

    /* Logged once, though the process may have several contexts, at the level
     * of uct_ib_handle_async_event() */
    expect_errors log(UCS_LOG_LEVEL_DIAG);
    auto is_logged = [&](const char *event) {
        return log.count(UCS_LOG_LEVEL_DIAG, event) > 0;
    };
    static const char down[] = "mlx5_0: async event: port error on port 1";
    static const char up[]   = "mlx5_0: async event: port active on port 1";

    control("--port-down mlx5_0:1");
    EXPECT_TRUE(m_local->wait([&]() { return is_logged(down); }));
    for (uint64_t i = 0; i < 10; ++i) {
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep(), 1, i, &i, sizeof(i));
        }));
    }
    for (unsigned i = 0; i < 100; ++i) {
        m_local->progress();
    }
    EXPECT_EQ(1u, m_peer->num_received());
    EXPECT_FALSE(is_logged(up));
    control("--port-up mlx5_0:1");
    EXPECT_TRUE(m_local->wait([&]() {
        return is_logged(up) && (m_peer->num_received() == 11);
    }));
    EXPECT_EQ(1u, log.count(UCS_LOG_LEVEL_DIAG, down));
    EXPECT_EQ(1u, log.count(UCS_LOG_LEVEL_DIAG, up));
    EXPECT_EQ(2u, log.count(UCS_LOG_LEVEL_DIAG, "async event"));
    EXPECT_EQ(0u, m_local->failures.size());
}

INSTANTIATE_TEST_SUITE_P(modes, test_sep_uct_async,
                         ::testing::ValuesIn(async_modes()), mode_name);

} // namespace
