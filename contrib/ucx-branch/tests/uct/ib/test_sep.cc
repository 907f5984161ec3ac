/* SPDX-License-Identifier: BSD-3-Clause */

#include <uct/uct_test.h>

extern "C" {
#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>
}

#include <stdlib.h>
#include <map>


/*
 * What tests of all transports can't ask for: when connections are made and
 * given up, and what workers share. What the process has taken from the device
 * is in UCX's virtual file system.
 */
class test_sep : public uct_test {
protected:
    static constexpr uint8_t AM_ID = 1;

    void init() override
    {
        uct_test::init();
        m_received = 0;
    }

    entity *create()
    {
        entity *e = uct_test::create_entity(0);

        m_entities.push_back(e);
        set_handler(e->iface());
        return e;
    }

    void set_handler(uct_iface_h iface)
    {
        ASSERT_UCS_OK(uct_iface_set_am_handler(iface, AM_ID, am_handler, this,
                                               0));
    }

    static ucs_status_t am_handler(void *arg, void *data, size_t length,
                                   unsigned flags)
    {
        ++reinterpret_cast<test_sep*>(arg)->m_received;
        return UCS_OK;
    }

    /* How much the process has of something */
    unsigned long resource(const std::string &name) const
    {
        const std::string path = "/uct/component/sep/memory_domain/" +
                                 GetParam()->md_name + "/resources/" + name;
        ucs_string_buffer_t strb;

        ucs_string_buffer_init(&strb);
        EXPECT_UCS_OK(ucs_vfs_path_read_file(path.c_str(), &strb));
        unsigned long value = strtoul(ucs_string_buffer_cstr(&strb), NULL, 0);
        ucs_string_buffer_cleanup(&strb);
        return value;
    }

    ucs_status_t send(uct_ep_h ep)
    {
        return uct_ep_am_short(ep, AM_ID, 0, NULL, 0);
    }

    void send_and_check(uct_ep_h ep)
    {
        unsigned expected = m_received + 1;
        ucs_status_t status;

        UCT_TEST_CALL_AND_TRY_AGAIN(send(ep), status);
        ASSERT_UCS_OK(status);
        wait_for_value(&m_received, expected, true);
        ASSERT_EQ(expected, m_received);
    }

    volatile unsigned m_received;
};

/* A connection is made for the first message, in whatever direction, and all
 * endpoints of two interfaces share it */
UCS_TEST_P(test_sep, connect_on_demand)
{
    const unsigned num_eps = 10;
    entity *e[2]           = {create(), create()};
    unsigned long before   = resource("qps");

    for (unsigned i = 0; i < num_eps; ++i) {
        e[0]->connect_to_iface(i, *e[1]);
        e[1]->connect_to_iface(i, *e[0]);
    }
    short_progress_loop();
    EXPECT_EQ(before, resource("qps"));

    for (unsigned i = 0; i < num_eps; ++i) {
        send_and_check(e[0]->ep(i));
        send_and_check(e[1]->ep(i));
        EXPECT_EQ(before + 2, resource("qps"));
    }

    flush();
    EXPECT_EQ(before + 2, resource("qps"));
}

/* With fewer queue pairs than peers all messages arrive nevertheless: who does
 * not send makes room */
UCS_TEST_P(test_sep, budget, "SEP_MAX_QPS=10")
{
    const unsigned limit = 10, count = 5, rounds = 2;
    ucs_time_t last      = 0, longest = 0;
    unsigned long peak   = 0;
    std::vector<entity*> e;

    for (unsigned i = 0; i < count; ++i) {
        e.push_back(create());
    }

    unsigned long before = resource("qps");
    auto look            = [&]() {
        ucs_time_t now = ucs_get_time();

        longest = last ? ucs_max(longest, now - last) : 0;
        last    = now;
        peak    = ucs_max(peak, resource("qps") - before);
        progress();
    };

    for (unsigned i = 0; i < count; ++i) {
        for (unsigned j = 0; j < count; ++j) {
            e[i]->connect_to_iface(j, *e[j]);
        }
    }

    /* Each to each, and never the same two twice in a row */
    for (unsigned shift = 1; shift <= rounds * (count - 1); ++shift) {
        for (unsigned i = 0; i < count; ++i) {
            unsigned j           = (i + 1 + (shift % (count - 1))) % count;
            unsigned expected    = m_received + 1;
            ucs_status_t status  = UCS_ERR_NO_RESOURCE;

            wait_for_cond([&]() {
                status = send(e[i]->ep(j));
                return status != UCS_ERR_NO_RESOURCE;
            }, look);
            ASSERT_UCS_OK(status);
            wait_for_cond([&]() { return m_received == expected; }, look);
            ASSERT_EQ(expected, m_received);
        }
    }

    /* Who has waited for a second takes more than his share */
    EXPECT_LT(0u, peak);
    if (longest < ucs_time_from_msec(100)) {
        EXPECT_GE(limit, peak);
    }
}

_UCT_INSTANTIATE_TEST_CASE(test_sep, sep_mlx5)


/* Workers of a memory domain */
class test_sep_category : public test_sep {
protected:
    enum {
        COUNT = 4
    };

    struct taken {
        unsigned long contexts, thread_domains, qps, cqs;
    };

    taken look() const
    {
        return {resource("contexts"), resource("thread_domains"),
                resource("qps"), resource("cqs")};
    }

    /* As many interfaces on a memory domain, each with a worker, and each sends
     * to a peer */
    taken open_and_send(entity *domain, entity *peer)
    {
        const taken before = look();
        std::vector<uct_worker_h> workers(COUNT);
        std::vector<uct_iface_h> ifaces(COUNT);
        std::vector<uct_ep_h> eps(COUNT);
        std::string dev_addr(peer->iface_attr().device_addr_len, 0);
        std::string iface_addr(peer->iface_attr().iface_addr_len, 0);
        uct_ep_params_t params;

        EXPECT_UCS_OK(uct_iface_get_device_address(
                peer->iface(), (uct_device_addr_t*)&dev_addr[0]));
        EXPECT_UCS_OK(uct_iface_get_address(peer->iface(),
                                            (uct_iface_addr_t*)&iface_addr[0]));
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                            UCT_EP_PARAM_FIELD_DEV_ADDR |
                            UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr   = (const uct_device_addr_t*)dev_addr.data();
        params.iface_addr = (const uct_iface_addr_t*)iface_addr.data();
        for (unsigned i = 0; i < COUNT; ++i) {
            EXPECT_UCS_OK(uct_worker_create(&m_async, UCS_THREAD_MODE_SINGLE,
                                            &workers[i]));
            EXPECT_UCS_OK(uct_iface_open(domain->md(), workers[i],
                                         &domain->iface_params(),
                                         m_iface_config, &ifaces[i]));
            set_handler(ifaces[i]);
            uct_iface_progress_enable(ifaces[i], UCT_PROGRESS_SEND |
                                                 UCT_PROGRESS_RECV);
            params.iface = ifaces[i];
            EXPECT_UCS_OK(uct_ep_create(&params, &eps[i]));
        }

        auto progress_all = [&]() {
            for (uct_worker_h worker : workers) {
                uct_worker_progress(worker);
            }
            progress();
        };
        for (unsigned i = 0; i < COUNT; ++i) {
            wait_for_cond([&]() { return send(eps[i]) == UCS_OK; },
                          progress_all);
        }
        wait_for_cond([&]() { return m_received == COUNT; }, progress_all);
        EXPECT_EQ((unsigned)COUNT, m_received);

        taken after = look();
        for (unsigned i = 0; i < COUNT; ++i) {
            uct_ep_destroy(eps[i]);
            uct_iface_close(ifaces[i]);
            uct_worker_destroy(workers[i]);
        }
        return {after.contexts - before.contexts,
                after.thread_domains - before.thread_domains,
                after.qps - before.qps, after.cqs - before.cqs};
    }

    void init() override
    {
        test_sep::init();
        ASSERT_UCS_OK(ucs_async_context_init(&m_async, UCS_ASYNC_MODE_THREAD));
    }

    void cleanup() override
    {
        test_sep::cleanup();
        ucs_async_context_cleanup(&m_async);
    }

    ucs_async_context_t m_async;
};

/* What each has to itself gets less from one category to the next */
UCS_TEST_P(test_sep_category, what_workers_share)
{
    std::map<std::string, taken> of;

    for (const char *name : {"mpi_everywhere", "2xdynamic", "dynamic",
                             "shared_dynamic", "static", "mpi_threads"}) {
        modify_config("SEP_CATEGORY", name);
        m_received = 0;
        of[name]   = open_and_send(create(), create());
        m_entities.clear();
    }

    /* Contexts, and thread domains in one context */
    for (const auto &each : of) {
        EXPECT_EQ((each.first == "mpi_everywhere") ? COUNT : 0,
                  each.second.contexts) << each.first;
    }
    EXPECT_LE((unsigned)COUNT, of["dynamic"].thread_domains);
    EXPECT_EQ(2 * of["dynamic"].thread_domains,
              of["2xdynamic"].thread_domains);
    EXPECT_EQ(of["dynamic"].thread_domains,
              2 * of["shared_dynamic"].thread_domains);
    EXPECT_EQ(0u, of["static"].thread_domains);

    /* Queues */
    EXPECT_GT(of["mpi_everywhere"].qps, of["dynamic"].qps);
    EXPECT_EQ(of["static"].qps, of["dynamic"].qps);
    EXPECT_LE(2u * COUNT, of["dynamic"].qps);
    EXPECT_LE((unsigned)COUNT, of["dynamic"].cqs);
    EXPECT_GT((unsigned)COUNT, of["mpi_threads"].qps);
    EXPECT_EQ(0u, of["mpi_threads"].cqs);
}

_UCT_INSTANTIATE_TEST_CASE(test_sep_category, sep_mlx5)
