/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_hub_two.h>

#include <common/patience.h>

#include <poll.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

using namespace sep_uct_test;

namespace {

/*
 * What a worker finds that others have taken from the connection they share
 * (category mpi_threads): when it sleeps, flushes, fails or goes before it has
 * looked, and when others take the room for which it has packed a message.
 */
class test_sep_hub_mail : public test_sep_hub_two {
protected:
    test_sep_hub_mail()
    {
        config.push_back({"RX_MAX_POLL", "1"});
    }

    void SetUp() override
    {
        test_sep_hub_two::SetUp();
        if (m_other_ep == nullptr) {
            return;
        }
        /* A flush does not tell whether the peer has handled them */
        EXPECT_TRUE(m_local->wait([&]() {
            return m_peer->num_received() == 2;
        }));
        m_peer->release();
    }

    /* All that the connection has room for. Returns their number. */
    unsigned fill(uct_ep_h ep)
    {
        unsigned count = 0;

        while (send(ep, 100) == UCS_OK) {
            ++count;
        }
        return count;
    }

    static ucs_status_t arm(entity &e)
    {
        return uct_iface_event_arm(e.iface(),
                                   UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
    }

    static bool is_signalled(entity &e)
    {
        struct pollfd pfd = {-1, POLLIN, 0};

        EXPECT_EQ(UCS_OK, uct_iface_event_fd_get(e.iface(), &pfd.fd));
        return poll(&pfd, 1, 0) == 1;
    }

    /* Others take what has come for a worker */
    void wait_for_messages(entity &to, entity &poller, size_t count)
    {
        EXPECT_TRUE(poller.wait([&]() {
            return ucs_queue_length(&hub_iface(to)->mail.messages) == count;
        }));
    }

    /* The connection has room again, as another worker has found out; the first
     * one has not looked */
    void wait_for_room()
    {
        EXPECT_TRUE(m_other->wait([&]() {
            return uct_sep_ep_can_send(m_local->sep_ep(ep()));
        }));
    }

    /* A buffered send whose callback does something */
    ssize_t send_packed(uct_ep_h ep, uint64_t value,
                        const std::function<void()> &func)
    {
        struct context {
            uint64_t                     value;
            const std::function<void()> *func;
        } c = {value, &func};

        return uct_ep_am_bcopy(ep, 1, [](void *dest, void *arg) -> size_t {
            auto *self = (context*)arg;

            memcpy(dest, &self->value, sizeof(self->value));
            (*self->func)();
            return sizeof(self->value);
        }, &c, 0);
    }

    /* A message that was packed while others took its room. */
    void pack()
    {
        ASSERT_EQ((ssize_t)sizeof(uint64_t), send_packed(ep(), 1, [&]() {
            m_filled = fill(m_other_ep);
        }));
        ASSERT_TRUE(hub_ep(ep())->packed != NULL);
        EXPECT_EQ(1u, hub_iface(*m_local)->num_packed);
    }

    uint64_t received(uint64_t index)
    {
        bytes data = m_peer->received(index).data;
        uint64_t value;

        memcpy(&value, data.data(), sizeof(value));
        return value;
    }

    unsigned m_filled = 0;
};

/* In what others have taken, and in what it has taken and not handled: it
 * handles one message at a time */
TEST_F(test_sep_hub_mail, who_has_mail_does_not_sleep)
{
    m_peer->send(m_local->addr(), 3, 64);
    wait_for_messages(*m_local, *m_other, 3);
    EXPECT_EQ(UCS_ERR_BUSY, arm(*m_local));
    for (size_t i = 1; i <= 3; ++i) {
        EXPECT_EQ(UCS_ERR_BUSY, arm(*m_local)) << i;
        uct_iface_progress(m_local->iface());
        EXPECT_EQ(i, m_local->messages.size());
    }
    EXPECT_TRUE(m_local->wait([&]() { return arm(*m_local) == UCS_OK; }));
    EXPECT_FALSE(is_signalled(*m_local));
}

/* Once it has looked, the event is over */
TEST_F(test_sep_hub_mail, who_was_woken_sleeps_again)
{
    struct pollfd pfd = {-1, POLLIN, 0};

    for (unsigned round = 1; round <= 3; ++round) {
        ASSERT_TRUE(m_local->wait([&]() { return arm(*m_local) == UCS_OK; }));
        EXPECT_FALSE(is_signalled(*m_local));
        m_peer->send(m_local->addr(), 1, 64);
        wait_for_messages(*m_local, *m_other, 1);
        /* The device may take its time from the completion to its event */
        EXPECT_EQ(UCS_OK, uct_iface_event_fd_get(
                                  &hub(*m_local)->core->super.super, &pfd.fd));
        EXPECT_EQ(1, poll(&pfd, 1, 1000 * patience::seconds()));
        EXPECT_TRUE(is_signalled(*m_local));
        EXPECT_FALSE(hub_iface(*m_local)->is_armed);
        EXPECT_TRUE(m_local->wait([&]() {
            return m_local->messages.size() == round;
        }));
    }
}

/* Completions keep coming, and an event on which others sleep may be among
 * those that were consumed */
TEST_F(test_sep_hub_mail, who_gives_up_sleeping_wakes_others)
{
    auto &ops  = hub(*m_local)->core->super.super.ops;
    auto saved = ops.iface_event_arm;

    ASSERT_TRUE(m_other->wait([&]() { return arm(*m_other) == UCS_OK; }));
    ops.iface_event_arm = [](uct_iface_h, unsigned) { return UCS_ERR_BUSY; };
    EXPECT_EQ(UCS_ERR_BUSY, arm(*m_local));
    ops.iface_event_arm = saved;
    EXPECT_TRUE(is_signalled(*m_other));
    EXPECT_FALSE(hub_iface(*m_other)->is_armed);
}

/* What has come for a worker that never looks again belongs to the connection,
 * which complains if it does not come back */
TEST_F(test_sep_hub_mail, who_goes_leaves_nothing_unread)
{
    settings other_hub = config;
    expect_errors errors;

    other_hub.push_back({"RX_QUEUE_LEN", "32"});
    {
        auto stays = entity::create(*m_local, other_hub);
        auto goes  = entity::create(*m_local, other_hub);
        ASSERT_TRUE((stays != nullptr) && (goes != nullptr));
        ASSERT_EQ(stays->sep(), goes->sep());
        m_peer->send(goes->addr(), 3, 500);
        wait_for_messages(*goes, *stays, 3);
        goes.reset();
    }
    EXPECT_TRUE(errors.messages.empty()) << errors.messages[0].text;
}

TEST_F(test_sep_hub_mail, a_message_without_a_route_is_dropped)
{
    expect_errors log(UCS_LOG_LEVEL_DIAG);
    uct_ep_h to_self  = m_local->connect(m_other->addr());
    uct_iov_t iov     = {(void*)"abcd", 4, UCT_MEM_HANDLE_NULL, 0, 1};
    uct_ep_h core     = &hub_ep(to_self)->peer->ep->super.super;

    EXPECT_TRUE(m_local->wait([&]() {
        return uct_ep_am_short_iov(core, 1, &iov, 1) == UCS_OK;
    }));
    EXPECT_TRUE(m_local->wait([&]() {
        return log.count(UCS_LOG_LEVEL_DIAG, "without a route") == 1;
    }));

    /* Others come */
    must_send(*m_local, to_self);
    EXPECT_TRUE(m_other->wait([&]() { return m_other->messages.size() == 1; }));
    EXPECT_TRUE(m_local->messages.empty());
}

/* A hub begins with room for eight workers */
TEST_F(test_sep_hub_mail, many_workers_have_places_of_their_own)
{
    std::vector<std::unique_ptr<entity>> more;

    for (unsigned i = 2; i < 11; ++i) {
        more.push_back(entity::create(*m_local, config));
        ASSERT_TRUE(more.back() != nullptr);
        EXPECT_EQ(i, hub_iface(*more.back())->index);
    }
    ASSERT_EQ(16u, hub(*m_local)->num_ifaces);
    for (unsigned i = 11; i < 16; ++i) {
        EXPECT_EQ(nullptr, hub(*m_local)->ifaces[i]) << i;
    }
    uct_ep_h to_last = m_local->connect(more.back()->addr());
    must_send(*m_local, to_last);
    EXPECT_TRUE(more.back()->wait([&]() {
        return more.back()->messages.size() == 1;
    }));
    m_local->destroy(to_last);
}

/* As there are 65536 numbers, and others stay longer than it takes until it is
 * the turn of theirs again */
TEST_F(test_sep_hub_mail, numbers_that_are_used_are_not_given_again)
{
    hub(*m_local)->next_index = 0;
    auto third = entity::create(*m_local, config);
    ASSERT_TRUE(third != nullptr);
    EXPECT_EQ(2, hub_iface(*third)->index);
    third.reset();
    auto fourth = entity::create(*m_local, config);
    ASSERT_TRUE(fourth != nullptr);
    EXPECT_EQ(3, hub_iface(*fourth)->index);
    EXPECT_EQ(0, hub_iface(*m_local)->index);
    EXPECT_EQ(1, hub_iface(*m_other)->index);
}

/* The connection's completions are its own already */
TEST_F(test_sep_hub_mail, a_hub_shares_no_completion_queue)
{
    settings sharing = config;

    sharing.push_back({"CQ_SHARING", "4"});
    auto e = entity::create(*m_local, sharing);
    ASSERT_TRUE(e != nullptr);
    EXPECT_NE(m_local->sep(), e->sep());
    EXPECT_EQ(nullptr, e->sep()->cq_member.group);
}

TEST_F(test_sep_hub_mail, an_endpoint_is_connected_to_one_worker)
{
    uct_ep_h to_other = m_local->connect(m_other->addr());
    address other     = m_other->addr(), local = m_local->addr();
    auto is_connected = [&](const address &to) {
        return !!uct_sep_hub_ep_is_connected(
                to_other, (const uct_device_addr_t*)to.dev.data(),
                (const uct_iface_addr_t*)to.iface.data());
    };

    EXPECT_TRUE(is_connected(other));
    EXPECT_FALSE(is_connected(local)) << "on the same hub";
    EXPECT_FALSE(is_connected(m_peer->addr()));
    m_local->destroy(to_other);
}

/*
 * Pending requests
 */

/* Or whoever waits for room would do so for ever */
TEST_F(test_sep_hub_mail, pending_requests_learn_of_a_failure)
{
    ucs_status_t seen = UCS_OK;
    uint64_t data     = 0;
    pending_req req;
    expect_errors hidden;

    req.func = [&]() {
        ucs_status_t status = send(ep(), 1);

        if (status != UCS_ERR_NO_RESOURCE) {
            seen = status;
        }
        return status;
    };
    /* What fails is in front of what fills the connection */
    m_peer->freeze();
    ASSERT_EQ(UCS_OK, uct_ep_put_short(m_other_ep, &data, sizeof(data),
                                       m_remote.va, 0xbad));
    fill(m_other_ep);
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(ep(), 1));
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &req.req, 0));
    ASSERT_TRUE(m_local->wait([&]() {
        return !m_local->failures.empty() && (seen != UCS_OK);
    }));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(seen));
    (void)m_peer->num_received();
    uct_ep_pending_purge(ep(), NULL, NULL);
    m_other->wait([&]() { return !m_other->failures.empty(); });
}

/*
 * A message that was packed and has no room
 */

TEST_F(test_sep_hub_mail, what_is_packed_is_flushed)
{
    ASSERT_NO_FATAL_FAILURE(pack());
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_flush(ep(), 0, NULL));
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_local->iface(), 0, NULL));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send(ep(), 2));
    flush();
    EXPECT_TRUE(m_other->flush());
    EXPECT_EQ(0u, hub_iface(*m_local)->num_packed);
    m_local->wait([&]() { return m_peer->num_received() == m_filled + 1; });
    EXPECT_EQ(1u, received(m_filled));
}

/* By a callback that sends itself: the first one that was packed is sent first,
 * even if there is room for the other one at once */
TEST_F(test_sep_hub_mail, what_is_packed_is_not_overtaken)
{
    EXPECT_EQ((ssize_t)sizeof(uint64_t), send_packed(ep(), 2, [&]() {
        ASSERT_NO_FATAL_FAILURE(pack());
        wait_for_room();
    }));
    EXPECT_EQ(0u, hub_iface(*m_local)->num_packed);
    flush();
    EXPECT_TRUE(m_other->flush());
    m_local->wait([&]() { return m_peer->num_received() == m_filled + 2; });
    EXPECT_EQ(1u, received(m_filled));
    EXPECT_EQ(2u, received(m_filled + 1));
}

/* What follows the fence must not pass what was packed before it */
TEST_F(test_sep_hub_mail, a_fence_is_behind_what_is_packed)
{
    uct_sep_txwq_t *txwq = m_local->sep_ep(ep())->txwq;

    for (bool is_of_all : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(pack());
        ASSERT_EQ(UCS_OK, is_of_all ? uct_iface_fence(m_local->iface(), 0) :
                                      uct_ep_fence(ep(), 0));
        ASSERT_TRUE(m_local->wait([&]() {
            return hub_ep(ep())->packed == NULL;
        }));
        /* It has just been posted */
        EXPECT_FALSE(uct_sep_txwq_is_empty(txwq));
        EXPECT_TRUE(txwq->flags & UCT_SEP_TXWQ_FLAG_FENCE) << is_of_all;
        flush();
        EXPECT_TRUE(m_other->flush());

        /* Without one, there is none */
        ASSERT_NO_FATAL_FAILURE(pack());
        ASSERT_TRUE(m_local->wait([&]() {
            return hub_ep(ep())->packed == NULL;
        }));
        EXPECT_FALSE(txwq->flags & UCT_SEP_TXWQ_FLAG_FENCE) << is_of_all;
        flush();
        EXPECT_TRUE(m_other->flush());
    }
}

/*
 * What a worker has under way
 */

/* The queue's index goes round */
TEST(test_sep_hub_ep, an_endpoint_is_complete_when_its_last_operation_is)
{
    for (uint32_t first : {0u, 0x7ffcu, 0xfffcu}) {
        uct_sep_txwq_t txwq     = {};
        uct_sep_ep_t core       = {};
        uct_sep_hub_peer_t peer = {};
        uct_sep_hub_ep_t ep     = {};

        core.txwq  = &txwq;
        peer.ep    = &core;
        ep.peer    = &peer;
        txwq.sw_pi = first + 8; /* Others have posted behind it */
        for (uint32_t done = 0; done < 8; ++done) {
            ep.mark     = first + 5;
            ep.is_dirty = 1;
            txwq.hw_ci  = first + done;
            EXPECT_EQ(done >= 5, !!uct_sep_hub_ep_is_complete(&ep))
                    << first << " " << done;
            EXPECT_EQ(done < 5, !!ep.is_dirty);
        }

        /* It has been passed, but it has failed */
        ep.is_dirty       = 1;
        txwq.conn.is_lost = 1;
        EXPECT_FALSE(uct_sep_hub_ep_is_complete(&ep)) << first;
    }
}

} // namespace
