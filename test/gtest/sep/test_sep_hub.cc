/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <cstring>

using namespace sep_uct_test;

namespace {

/* Category mpi_threads: all workers use the queues of one hub */
class test_sep_hub : public test_sep_uct {
protected:
    const settings config = {{"CATEGORY", "mpi_threads"}};

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        start(config, 2);
    }

    static uct_sep_hub_t *hub(entity &e)
    {
        return ucs_derived_of(e.iface(), uct_sep_hub_iface_t)->hub;
    }

    /* Another worker of the hub that wants received data to be aligned */
    std::unique_ptr<entity> open_aligned(uint64_t fields, size_t alignment,
                                         size_t offset)
    {
        return open_aligned(fields, alignment, offset, *m_local);
    }

    /* Another worker that wants received data to be aligned, on the memory
     * domain of an owner */
    std::unique_ptr<entity> open_aligned(uint64_t fields, size_t alignment,
                                         size_t offset, entity &owner)
    {
        return entity::create(owner, config,
                              [=](uct_iface_params_t &params) {
            params.field_mask     |= fields;
            params.am_alignment    = alignment;
            params.am_align_offset = offset;
        });
    }

    void send(entity &e, uct_ep_h ep, uint64_t header = 0)
    {
        EXPECT_TRUE(e.wait([&]() {
            return uct_ep_am_short(ep, 1, header, NULL, 0) == UCS_OK;
        }));
        EXPECT_TRUE(e.flush());
    }
};

TEST_F(test_sep_hub, all_workers_of_two_processes_use_one_queue_pair)
{
    std::unique_ptr<entity> other = entity::create(*m_local, config);

    ASSERT_TRUE(other != nullptr);
    ASSERT_TRUE(other->is_on_hub());
    EXPECT_EQ(m_local->sep(), other->sep());
    EXPECT_NE(m_local->addr().iface, other->addr().iface);
    EXPECT_EQ(m_local->addr().dev, other->addr().dev);

    send(*m_local, ep(0));
    send(*m_local, ep(1));
    send(*other, other->connect(m_peer->addr(0)));
    send(*other, other->connect(m_peer->addr(1)));
    EXPECT_EQ(1u, m_local->num_qps());
    EXPECT_EQ(1u, m_peer->num_qps(0));
    EXPECT_EQ(2u, m_peer->num_received(0));
    EXPECT_EQ(2u, m_peer->num_received(1));
}

/* What they say differs where nobody looks */
TEST_F(test_sep_hub, settings_that_are_long_are_not_taken_for_the_same)
{
    settings longer = config;

    longer.push_back({"TX_THROTTLE", std::string(2000, '0') + "64"});
    auto first            = entity::create(*m_local, longer);
    longer.back().second += "0";
    auto second           = entity::create(*m_local, longer);

    ASSERT_TRUE(first != nullptr);
    ASSERT_TRUE(second != nullptr);
    EXPECT_NE(first->sep(), second->sep());
}

TEST_F(test_sep_hub, other_categories_are_not_reachable)
{
    std::unique_ptr<entity> plain = entity::create(*m_local,
                                                   {{"CATEGORY", "dynamic"}});
    address from, to;
    expect_errors hidden;
    uct_ep_h failed;

    ASSERT_TRUE(plain != nullptr);
    from = plain->addr();
    to   = m_local->addr();
    EXPECT_FALSE(uct_iface_is_reachable(plain->iface(),
                                        (uct_device_addr_t*)to.dev.data(),
                                        (uct_iface_addr_t*)to.iface.data()));
    EXPECT_FALSE(uct_iface_is_reachable(m_local->iface(),
                                        (uct_device_addr_t*)from.dev.data(),
                                        (uct_iface_addr_t*)from.iface.data()));
    EXPECT_NE(UCS_OK, plain->try_connect(to, &failed));
    EXPECT_NE(UCS_OK, m_local->try_connect(from, &failed));
}

/* The queue pair is lost to all */
TEST_F(test_sep_hub, an_error_is_told_to_all_workers_and_a_new_endpoint_works)
{
    std::unique_ptr<entity> other = entity::create(*m_local, config);
    remote_memory rmem            = m_peer->expose(64, 5);
    uct_ep_h other_ep             = other->connect(m_peer->addr(1));
    uint64_t data                 = 0;

    send(*m_local, ep(0));
    send(*other, other_ep);
    {
        expect_errors hidden;

        ASSERT_EQ(UCS_OK, uct_ep_put_short(ep(0), &data, sizeof(data), rmem.va,
                                           0xbad));
        m_local->wait([&]() { return m_local->failures.size() == 2; });
        EXPECT_TRUE(other->failures.empty()) << "in its own progress only";
        other->wait([&]() { return other->failures.size() == 1; });
        EXPECT_EQ(other_ep, other->failures[0].ep);
        EXPECT_NE(UCS_OK, uct_ep_am_short(other_ep, 1, 0, NULL, 0));
    }
    send(*other, other->connect(m_peer->addr(1)));
    send(*m_local, m_local->connect(m_peer->addr(0)));
}

/* The failure is in the mail: found by another worker, and not yet told */
TEST_F(test_sep_hub, a_flush_does_not_succeed_before_a_failure_is_told)
{
    std::unique_ptr<entity> other = entity::create(*m_local, config);
    remote_memory rmem            = m_peer->expose(64, 5);
    uct_ep_h other_ep             = other->connect(m_peer->addr(1));
    uint64_t data                 = 0;
    completion flushed;

    send(*m_local, ep(0));
    send(*other, other_ep);
    ASSERT_EQ(UCS_OK, uct_ep_put_short(ep(0), &data, sizeof(data), rmem.va,
                                       wrong_rkey(rmem.rkey.rkey)));
    ASSERT_TRUE(other->wait([&]() { return !other->failures.empty(); }));
    ASSERT_TRUE(m_local->failures.empty());

    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep(0), 0, NULL));
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_local->iface(), 0, NULL));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep(0), 0, &flushed.comp));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, wait(flushed));
    m_local->wait([&]() { return !m_local->failures.empty(); });
    EXPECT_EQ(UCS_OK, uct_ep_flush(ep(0), 0, NULL));
}

TEST_F(test_sep_hub, a_message_for_a_worker_that_has_gone_is_dropped)
{
    std::unique_ptr<entity> gone = entity::create(*m_local, config);
    uct_ep_h to_gone             = m_local->connect(gone->addr());

    send(*m_local, to_gone, 1);
    gone.reset();
    /* Does not get the number that has become free */
    std::unique_ptr<entity> next = entity::create(*m_local, config);
    uct_ep_h to_next             = m_local->connect(next->addr());

    /* In this order, on the connection that both endpoints use */
    send(*m_local, to_gone, 2);
    send(*m_local, to_next, 3);
    next->wait([&]() {
        return !next->messages.empty() &&
               (*(uint64_t*)next->messages.back().data.data() == 3);
    });
    EXPECT_EQ(1u, next->messages.size());
}

/* Kept receive buffers are released by their own worker, also when others use
 * the pool */
TEST_F(test_sep_hub, kept_descriptors_stay_intact)
{
    static const unsigned count = 200;
    std::unique_ptr<entity> other = entity::create(*m_local, config);
    std::vector<unsigned> received(2, 0);

    m_peer->send(m_local->addr(), count, 500, 8);
    m_peer->send(other->addr(), count, 500, 9);
    m_local->wait([&]() {
        other->progress();
        return (m_local->descs.size() == count) &&
               (other->descs.size() == count);
    });
    for (entity *e : {m_local.get(), other.get()}) {
        for (unsigned i = 0; i < count; ++i) {
            bytes expected = pattern(500, i);
            uint64_t seq   = i;

            memcpy(expected.data(), &seq, sizeof(seq));
            ASSERT_EQ(500u, e->descs[i].second);
            ASSERT_EQ(expected, bytes((uint8_t*)e->descs[i].first + 24,
                                      (uint8_t*)e->descs[i].first + 524));
        }
        e->release_descs();
    }
}

/* The hub's receive buffers are there already when another worker comes */
TEST_F(test_sep_hub, an_impossible_alignment_is_refused_to_any_worker)
{
    const uint64_t alignment = UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT;
    const uint64_t offset    = UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET;
    expect_errors hidden;

    EXPECT_EQ(nullptr, open_aligned(alignment, 0, 0));
    EXPECT_EQ(nullptr, open_aligned(alignment, 3, 0));
    EXPECT_EQ(nullptr, open_aligned(alignment | offset, 3, 1));
    EXPECT_EQ(nullptr, open_aligned(offset, 0, 11));
    EXPECT_NE(nullptr, open_aligned(alignment | offset, 8, 3));
}

TEST_F(test_sep_hub, a_worker_gets_its_alignment_or_no_descriptor)
{
    const uint64_t fields = UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT |
                            UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET;

    for (size_t alignment : {1, 4, 8, 4096}) {
        for (size_t offset : {0, 1, 8}) {
            std::unique_ptr<entity> e = open_aligned(fields, alignment, offset);
            struct result {
                uintptr_t data  = 0;
                unsigned  flags = 0;
            } got;

            ASSERT_TRUE(e != nullptr);
            uct_iface_set_am_handler(e->iface(), 1,
                                     [](void *arg, void *data, size_t length,
                                        unsigned flags) {
                *(result*)arg = {(uintptr_t)data, flags};
                return UCS_OK;
            }, &got, 0);
            m_peer->send(e->addr(), 1, 500);
            ASSERT_TRUE(e->wait([&]() { return got.data != 0; }));
            if (got.flags & UCT_CB_PARAM_FLAG_DESC) {
                EXPECT_EQ(0u, (got.data + offset) % alignment)
                        << alignment << " " << offset;
            } else {
                EXPECT_TRUE((alignment > 8) || ((offset % alignment) != 0))
                        << alignment << " " << offset;
            }
        }
    }
}

/* Settings are the same if their values are, whatever is in between */
TEST_F(test_sep_hub, padding_of_settings_makes_no_other_hub)
{
    typedef decltype(uct_sep_iface_config_t::eager) eager_t;
    const size_t end          = offsetof(eager_t, poll_set) + sizeof(unsigned);
    uct_iface_params_t params = {};
    uct_sep_iface_config_t *sep_config;
    uct_iface_config_t *read;
    uct_iface_h iface;

    static_assert(sizeof(eager_t) > end, "there is no padding");
    ASSERT_EQ(UCS_OK, uct_md_iface_config_read(m_local->md(), "sep_mlx5", NULL,
                                               NULL, &read));
    EXPECT_EQ(UCS_OK, uct_config_modify(read, "CATEGORY", "mpi_threads"));
    sep_config = ucs_derived_of(read, uct_sep_iface_config_t);
    memset((char*)&sep_config->eager + end, 0xff, sizeof(eager_t) - end);

    params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                  UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = "sep_mlx5";
    params.mode.device.dev_name = hub(*m_local)->dev_name;
    EXPECT_EQ(UCS_OK, uct_iface_open(m_local->md(), m_local->worker(), &params,
                                     read, &iface));
    EXPECT_EQ(hub(*m_local), ucs_derived_of(iface, uct_sep_hub_iface_t)->hub);
    uct_iface_close(iface);

    /* A value does */
    sep_config->eager.poll_set ^= 1;
    EXPECT_EQ(UCS_OK, uct_iface_open(m_local->md(), m_local->worker(), &params,
                                     read, &iface));
    EXPECT_NE(hub(*m_local), ucs_derived_of(iface, uct_sep_hub_iface_t)->hub);
    uct_iface_close(iface);
    uct_config_release(read);
}

/* The hub's own part of a receive buffer is in front of what the first worker
 * wants to be aligned in its way */
TEST_F(test_sep_hub, what_is_in_front_of_messages_is_aligned)
{
    const uint64_t fields = UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT |
                            UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET;

    for (size_t alignment : {1, 2, 8, 64}) {
        for (size_t offset : {0, 1, 3, 12}) {
            std::unique_ptr<entity> owner = entity::create();
            std::unique_ptr<entity> e;

            ASSERT_TRUE(owner != nullptr);
            e = open_aligned(fields, alignment, offset, *owner);
            ASSERT_TRUE(e != nullptr);
            m_peer->send(e->addr(), 1, 500, 8);
            ASSERT_TRUE(e->wait([&]() { return !e->descs.empty(); }));

            /* The headroom in front is 24 bytes */
            uintptr_t data = (uintptr_t)e->descs[0].first + 24;
            EXPECT_EQ(0u, (data + offset) % alignment)
                    << alignment << " " << offset;
            EXPECT_EQ(0u, (data - sizeof(uct_sep_hub_route_t) -
                           hub(*e)->headroom) % alignof(uct_sep_hub_msg_t))
                    << alignment << " " << offset;
            e->release_descs();
        }
    }
}

/* Whoever sends from a callback finds credits that others have waited for */
TEST_F(test_sep_hub, a_send_from_a_completion_comes_behind_pending_requests)
{
    const uint64_t first = 1, second = 2;
    memory local(m_local->md(), 64);
    uct_iov_t iov  = {local.ptr(), 32, local.memh(), 0, 1};
    uint64_t count = 1;
    struct sender {
        uct_completion_t comp;
        pending_req      req;
        uct_ep_h         ep;
        ucs_status_t     status = UCS_INPROGRESS;
    } late;
    pending_req early;
    bool done = false;

    send(*m_local, ep(0));
    m_local->wait([&]() { return m_peer->num_received() > 0; });
    m_peer->release();

    early.func = [&]() {
        return uct_ep_am_short(ep(0), 1, first, NULL, 0);
    };
    late.req.func = [&]() {
        ucs_status_t status = uct_ep_am_short(ep(0), 1, second, NULL, 0);

        done = (status == UCS_OK);
        return status;
    };
    late.ep          = ep(0);
    late.comp.count  = 1;
    late.comp.status = UCS_OK;
    late.comp.func   = [](uct_completion_t *comp) {
        sender *self = ucs_container_of(comp, sender, comp);

        self->status = self->req.func();
        if (self->status == UCS_ERR_NO_RESOURCE) {
            EXPECT_EQ(UCS_OK, uct_ep_pending_add(self->ep, &self->req.req, 0));
        }
    };
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_am_zcopy(ep(0), 1, &count, sizeof(count),
                                              &iov, 1, 0, &late.comp));
    while (uct_ep_am_short(ep(0), 1, 0, NULL, 0) == UCS_OK) {
        ++count;
    }
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(0), &early.req, 0));

    ASSERT_TRUE(m_local->wait([&]() { return done; }));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, late.status);
    flush();
    m_local->wait([&]() { return m_peer->num_received() == count + 2; });
    EXPECT_EQ(first, *(uint64_t*)m_peer->received(count).data.data());
    EXPECT_EQ(second, *(uint64_t*)m_peer->received(count + 1).data.data());
}

/* What comes next in its place must stay as it is. That has its size, as the C
 * library gives the block that was freed last to the next who asks for one of
 * its size, unless it keeps enough of these already. */
TEST_F(test_sep_hub, a_pending_request_may_destroy_its_endpoint)
{
    const std::vector<uint8_t> expected(sizeof(uct_sep_hub_ep_t), 0xff);
    std::vector<std::vector<uint8_t>> kept, next;
    pending_req req;

    send(*m_local, ep(0));
    while (uct_ep_am_short(ep(0), 1, 0, NULL, 0) == UCS_OK);
    req.func = [&]() {
        kept.assign(64, expected);
        next.reserve(64);
        m_local->destroy(ep(0));
        while (next.size() < 64) {
            next.push_back(expected);
        }
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(0), &req.req, 0));
    EXPECT_TRUE(m_local->wait([&]() { return !next.empty(); }));
    for (const auto &block : next) {
        EXPECT_EQ(expected, block);
    }
}

/* UCP does that to an interface that it has no use for yet */
TEST_F(test_sep_hub, an_interface_that_no_worker_progresses_can_be_progressed)
{
    settings other_hub = config;

    other_hub.push_back({"RX_QUEUE_LEN", "512"});
    std::unique_ptr<entity> quiet = entity::create(*m_local, other_hub,
                                                   entity::editor(), false);
    ASSERT_TRUE(quiet != nullptr);
    ASSERT_NE(m_local->sep(), quiet->sep());
    m_peer->send(quiet->addr(), 3, 100);
    m_local->wait([&]() {
        uct_iface_progress(quiet->iface());
        return quiet->messages.size() == 3;
    });
    EXPECT_EQ(3u, quiet->messages.size());
}

} // namespace
