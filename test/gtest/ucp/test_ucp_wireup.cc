/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_procs.h>

#include <common/patience.h>

#include <poll.h>

/* A process that comes late connects to one that has other things to do than to
 * wait for it. Each with and without adaptive progress, and with an interface
 * that is for connecting only. */
class UcpLateJoiner : public UcpProcs,
                      public testing::WithParamInterface<const char*> {
public:
    void SetUp() override
    {
        env.set("UCX_ADAPTIVE_PROGRESS", GetParam());
    }

    /* Put a number into another's memory, and return when it is there. */
    static void join(UcpBoard &board, int rank, int target, uint64_t value)
    {
        UcpWorker self;
        ucp_rkey_h rkey;
        ucp_ep_h ep = connect(board, target, self, &rkey);
        ASSERT_NE(nullptr, ep);
        ASSERT_EQ(UCS_OK, wait(self, put(ep, rkey, board.ranks[target].memory +
                                                   rank * 8, value)));
        EXPECT_EQ(UCS_OK, flush(self, ep));
        ucp_rkey_destroy(rkey);
        close(self, ep);
    }

    static ucs_status_ptr_t put(ucp_ep_h ep, ucp_rkey_h rkey, uint64_t address,
                                const uint64_t &value)
    {
        return ucp_put_nbx(ep, &value, sizeof(value), address, rkey, &no_param);
    }

    static ucs_status_t wait(UcpWorker &self, ucs_status_ptr_t request)
    {
        if (!UCS_PTR_IS_PTR(request)) {
            return UCS_PTR_STATUS(request);
        }
        EXPECT_TRUE(wait_for(
                [&] {
                    return ucp_request_check_status(request) != UCS_INPROGRESS;
                },
                [&] { ucp_worker_progress(self.worker); }));
        const ucs_status_t status = ucp_request_check_status(request);
        ucp_request_free(request);
        return status;
    }

    static ucs_status_t flush(UcpWorker &self, ucp_ep_h ep)
    {
        return wait(self, ucp_ep_flush_nbx(ep, &no_param));
    }

    static void close(UcpWorker &self, ucp_ep_h ep)
    {
        wait(self, ucp_ep_close_nbx(ep, &no_param));
    }

    static uint64_t received(const UcpWorker &self, int rank)
    {
        return reinterpret_cast<volatile uint64_t*>(self.memory)[rank];
    }

    static constexpr ucp_request_param_t no_param = {};
};

constexpr ucp_request_param_t UcpLateJoiner::no_param;


TEST_P(UcpLateJoiner, ConnectsToAProcessThatOnlyPuts)
{
    run({[&](UcpBoard &board) {
             UcpWorker self;
             publish(board, 0, self);
             ucp_rkey_h rkey;
             ucp_ep_h ep = connect(board, 1, self, &rkey);
             ASSERT_NE(nullptr, ep);
             board.stage = 1;
             EXPECT_TRUE(wait_for([&] { return board.stage == 2; }, [&] {
                 const uint64_t value = 7;
                 ASSERT_EQ(UCS_OK, wait(self, put(ep, rkey,
                                                  board.ranks[1].memory,
                                                  value)));
                 ASSERT_EQ(UCS_OK, flush(self, ep));
             }));
             EXPECT_EQ(42u, received(self, 2));
             ucp_rkey_destroy(rkey);
             close(self, ep);
             board.stage = 3;
         },
         [&](UcpBoard &board) {
             UcpWorker self;
             publish(board, 1, self);
             EXPECT_TRUE(wait_for([&] { return board.stage == 3; }, [&] {
                 ucp_worker_progress(self.worker);
             }));
             EXPECT_EQ(7u, received(self, 0));
         },
         [&](UcpBoard &board) {
             EXPECT_TRUE(wait_for([&] { return board.stage == 1; }));
             join(board, 2, 0, 42);
             board.stage = 2;
         }});
}

TEST_P(UcpLateJoiner, ConnectsToAProcessThatComputes)
{
    run({[&](UcpBoard &board) {
             UcpWorker self;
             publish(board, 0, self);
             /* No call of UCP until both have finished. */
             EXPECT_TRUE(wait_for([&] { return board.stage == 2; }));
             EXPECT_EQ(41u, received(self, 1));
             EXPECT_EQ(42u, received(self, 2));
         },
         [&](UcpBoard &board) {
             join(board, 1, 0, 41);
             ++board.stage;
         },
         [&](UcpBoard &board) {
             join(board, 2, 0, 42);
             ++board.stage;
         }});
}

TEST_P(UcpLateJoiner, ConnectsToAProcessThatIsConnectingToOneThatIsGone)
{
    run({[&](UcpBoard &board) {
             UcpWorker self;
             publish(board, 0, self);
             ucp_rkey_h rkey;
             ucp_ep_h ep;
             {
                 UcpWorker gone;
                 publish(board, 3, gone);
             }
             ep = connect(board, 3, self, &rkey);
             ASSERT_NE(nullptr, ep);
             board.stage = 1;
             EXPECT_TRUE(wait_for([&] { return board.stage == 2; }, [&] {
                 ucp_worker_progress(self.worker);
             }));
             EXPECT_EQ(42u, received(self, 2));
             ucp_rkey_destroy(rkey);
             /* The endpoint goes with the worker. */
         },
         [&](UcpBoard &board) {
             EXPECT_TRUE(wait_for([&] { return board.stage == 1; }));
             join(board, 2, 0, 42);
             board.stage = 2;
         }});
}

TEST_P(UcpLateJoiner, WakesAProcessThatSleeps)
{
    run({[&](UcpBoard &board) {
             UcpWorker self(UCS_THREAD_MODE_SINGLE, UCP_FEATURE_WAKEUP);
             publish(board, 0, self);
             int fd;
             ASSERT_EQ(UCS_OK, ucp_worker_get_efd(self.worker, &fd));
             uint64_t value            = 0;
             ucp_request_param_t param = {};
             ucs_status_ptr_t request  = ucp_tag_recv_nbx(self.worker, &value,
                                                          sizeof(value), 1, -1,
                                                          &param);
             ASSERT_TRUE(UCS_PTR_IS_PTR(request));
             while (ucp_request_check_status(request) == UCS_INPROGRESS) {
                 if (ucp_worker_progress(self.worker) != 0) {
                     continue;
                 }
                 ucs_status_t status = ucp_worker_arm(self.worker);
                 if (status == UCS_ERR_BUSY) {
                     continue;
                 }
                 ASSERT_EQ(UCS_OK, status);
                 pollfd event = {fd, POLLIN, 0};
                 ASSERT_EQ(1, poll(&event, 1, 1000 * patience::seconds()))
                         << "never woken";
             }
             ucp_request_free(request);
             EXPECT_EQ(43u, value);
             /* The other acknowledges the connection until it is closed. */
             EXPECT_TRUE(wait_for([&] { return board.stage == 1; }, [&] {
                 ucp_worker_progress(self.worker);
             }));
         },
         [&](UcpBoard &board) {
             UcpWorker self(UCS_THREAD_MODE_SINGLE, UCP_FEATURE_WAKEUP);
             ucp_rkey_h rkey;
             ucp_ep_h ep = connect(board, 0, self, &rkey);
             ASSERT_NE(nullptr, ep);
             const uint64_t value = 43;
             EXPECT_EQ(UCS_OK, wait(self, ucp_tag_send_nbx(ep, &value,
                                                           sizeof(value), 1,
                                                           &no_param)));
             EXPECT_EQ(UCS_OK, flush(self, ep));
             ucp_rkey_destroy(rkey);
             close(self, ep);
             board.stage = 1;
         }});
}

INSTANTIATE_TEST_SUITE_P(adaptive, UcpLateJoiner, testing::Values("y", "n"));


/* One end sends without a pause, the other closes its endpoint as soon as it
 * has everything: that the connection is complete must have come before. It
 * depends on when UCX's thread runs, so there are many of them. */
class UcpCloseFirst : public UcpPair {
public:
    static constexpr unsigned COUNT = 200;

    void send(ucp_ep_h ep, uint64_t value)
    {
        ucp_request_param_t param = {};

        ASSERT_EQ(UCS_OK, wait(ucp_tag_send_nbx(ep, &value, sizeof(value), 1,
                                                &param)));
    }

    bool receive(uint64_t expected)
    {
        ucp_tag_recv_info_t info;
        ucp_request_param_t param = {};
        uint64_t value            = 0;
        ucp_tag_message_h message = ucp_tag_probe_nb(receiver->worker, 1, -1, 1,
                                                     &info);
        if (message == nullptr) {
            return false;
        }

        EXPECT_EQ(UCS_OK, wait(ucp_tag_msg_recv_nbx(receiver->worker, &value,
                                                    sizeof(value), message,
                                                    &param)));
        EXPECT_EQ(expected, value);
        return true;
    }
};

TEST_F(UcpCloseFirst, WhatIsSentAfterwardsArrives)
{
    for (unsigned round = 0; (round < 20) && !HasFailure(); ++round) {
        sender        = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                                    UCP_FEATURE_WAKEUP);
        receiver      = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                                    UCP_FEATURE_WAKEUP);
        ucp_ep_h ep   = connect(*sender, *receiver);

        for (uint64_t i = 0; i < COUNT; ++i) {
            send(ep, i);
        }
        ucp_ep_h back = connect(*receiver, *sender);
        for (uint64_t i = 0; i < COUNT; ++i) {
            ASSERT_TRUE(progress_until([&] { return receive(i); }));
        }
        close(*receiver, back);
        send(ep, COUNT);
        ASSERT_TRUE(progress_until([&] { return receive(COUNT); }))
                << "round " << round;
        close(*sender, ep);
    }
}
