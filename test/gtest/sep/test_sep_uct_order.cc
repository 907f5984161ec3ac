/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/conn/sep_cm_int.h>

#include <ucs/async/async.h>

using namespace sep_uct_test;

namespace {

/* What waits for a connection goes out before anything that is sent in answer
 * to the peer's first message, even if the thread of the async context, which
 * is told about packets of connections, does not get to run. On a hub, what
 * waits and the message are both mail of the worker. */
class test_sep_uct_order : public testing::TestWithParam<mode> {
protected:
    static std::unique_ptr<entity> create(settings config = settings())
    {
        config.insert(config.end(), GetParam().config.begin(),
                      GetParam().config.end());
        return entity::create(config);
    }

    struct request {
        uct_pending_req_t super;
        uct_ep_h          ep;
        unsigned          *sent;
    };

    static ucs_status_t send(uct_pending_req_t *self)
    {
        request *req        = (request*)self;
        uint64_t data       = 1;
        ucs_status_t status = uct_ep_am_short(req->ep, 1, 0, &data,
                                              sizeof(data));

        *req->sent += (status == UCS_OK);
        return status;
    }

    /* Messages that have to wait for their connection */
    struct queue {
        static constexpr unsigned length = 3;

        request  requests[length];
        unsigned sent = 0;
    };

    static void fill(queue &q, uct_ep_h ep)
    {
        for (auto &req : q.requests) {
            req.super.func = send;
            req.ep         = ep;
            req.sent       = &q.sent;
            ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(&req.super));
            ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep, &req.super, 0));
        }
    }

    /* Those that an entity had sent when its first message was handled */
    static void watch(entity &e, const queue &q, unsigned &sent)
    {
        sent         = UINT_MAX;
        e.on_message = [&]() {
            sent = (e.messages.size() == 1) ? q.sent : sent;
        };
    }

    /* All arrive, once */
    static void exchange(entity &first, entity &second)
    {
        patience::until([&]() {
            first.progress();
            second.progress();
            return (first.messages.size() >= queue::length) &&
                   (second.messages.size() >= queue::length);
        });
        EXPECT_EQ(queue::length, first.messages.size());
        EXPECT_EQ(queue::length, second.messages.size());
    }
};

TEST_P(test_sep_uct_order, what_waits_for_a_connection_precedes_answers)
{
    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }

    auto first  = create();
    auto second = create();
    ASSERT_TRUE((first != nullptr) && (second != nullptr));
    queue from_first, from_second;
    unsigned sent;

    watch(*first, from_first, sent);

    /* The async thread can do nothing from here on */
    UCS_ASYNC_BLOCK(first->sep()->super.worker->async);
    UCS_ASYNC_BLOCK(second->sep()->super.worker->async);

    ASSERT_NO_FATAL_FAILURE(fill(from_first, first->connect(second->addr())));
    ASSERT_NO_FATAL_FAILURE(fill(from_second, second->connect(first->addr())));

    /* The first one is called all the time, the other one now and then */
    unsigned calls = 0;
    patience::until([&]() {
        first->progress();
        if ((calls++ % 10) == 0) {
            second->progress();
        }
        return !first->messages.empty();
    });
    EXPECT_EQ(queue::length, sent) << "it has received, but not sent";

    exchange(*first, *second);
    UCS_ASYNC_UNBLOCK(second->sep()->super.worker->async);
    UCS_ASYNC_UNBLOCK(first->sep()->super.worker->async);
    first->flush();
    second->flush();
}

/* A connection's last packet is a datagram, which the first message on the
 * connection may overtake. Here, it is lost. */
TEST_P(test_sep_uct_order, the_first_message_may_come_before_the_connection)
{
    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }

    /* A timer must not help */
    auto first  = create({{"CM_TIMEOUT", "1000s"}});
    auto second = create();
    ASSERT_TRUE((first != nullptr) && (second != nullptr));
    queue from_first, from_second;
    unsigned sent;

    watch(*first, from_first, sent);
    second->sep()->conn.cm->tx_filter = [](void*,
                                           const uct_sep_conn_msg_t *msg) {
        return (unsigned)(msg->type != UCT_SEP_CONN_MSG_RTU);
    };

    ASSERT_NO_FATAL_FAILURE(fill(from_second, second->connect(first->addr())));
    ASSERT_TRUE(patience::until([&]() { return first->num_qps() == 1; }));
    ASSERT_NO_FATAL_FAILURE(fill(from_first, first->connect(second->addr())));
    patience::until([&]() {
        first->progress();
        second->progress();
        return !first->messages.empty();
    });
    ASSERT_EQ(queue::length, sent) << "it has received, but not sent";

    exchange(*first, *second);
    first->flush();
    second->flush();
}

INSTANTIATE_TEST_SUITE_P(of_workers_with, test_sep_uct_order,
                         testing::Values(mode{"own_queues", {}},
                                         mode{"a_hub", {{"CATEGORY",
                                                         "mpi_threads"}}}),
                         mode_name);

} /* namespace */
