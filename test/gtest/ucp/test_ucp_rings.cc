/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_procs.h>

#include <common/patience.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include <poll.h>

/* The eager channel under UCP, which stops progressing interfaces: a message
 * that is written into memory wakes nobody, and must not be missed. Other
 * transports do the same by send/receive. */
class UcpRings : public UcpPair {
public:
    static constexpr ucp_tag_t TAG      = 7;
    static constexpr ucp_tag_t ALL_BITS = -1;

    void SetUp() override
    {
        env.set("UCX_SEP_EAGER", "y");
        env.set("UCX_SEP_EAGER_SLOTS", "8");
        sender   = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                               UCP_FEATURE_WAKEUP);
        receiver = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                               UCP_FEATURE_WAKEUP);
        ASSERT_EQ(UCS_OK, ucp_worker_get_efd(receiver->worker, &fd));
    }

    /* Messages are their numbers, and of different lengths */
    void send(ucp_ep_h ep, unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            std::vector<uint32_t> data(1 + (sent % 40), sent);
            ucp_request_param_t param = {};

            ++sent;
            ASSERT_EQ(UCS_OK, wait(ucp_tag_send_nbx(ep, data.data(),
                                                    data.size() *
                                                    sizeof(data[0]),
                                                    TAG, &param)));
        }
    }

    /* Take what has arrived of them. @return whether it is all */
    bool receive()
    {
        ucp_tag_recv_info_t info;
        ucp_tag_message_h message;

        while ((message = ucp_tag_probe_nb(receiver->worker, TAG, ALL_BITS, 1,
                                           &info)) != nullptr) {
            std::vector<uint32_t> data(40);
            ucp_request_param_t param = {};

            EXPECT_EQ(UCS_OK, wait(ucp_tag_msg_recv_nbx(
                                      receiver->worker, data.data(),
                                      data.size() * sizeof(data[0]), message,
                                      &param)));
            EXPECT_EQ(received, data[0]);
            EXPECT_EQ((1 + (received % 40)) * sizeof(data[0]), info.length);
            ++received;
        }
        return received == sent;
    }

    /* As a program that waits for events does it */
    void fall_asleep()
    {
        EXPECT_TRUE(progress_until([this] {
            ucs_status_t status = ucp_worker_arm(receiver->worker);

            EXPECT_TRUE((status == UCS_OK) || (status == UCS_ERR_BUSY));
            return status == UCS_OK;
        }));
    }

    bool is_woken(int milliseconds)
    {
        pollfd entry = {fd, POLLIN, 0};

        return poll(&entry, 1, milliseconds) == 1;
    }

    UcpEnv env;
    int fd            = -1;
    unsigned sent     = 0;
    unsigned received = 0;
};

TEST_F(UcpRings, AReceiverThatSleepsIsWoken)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    std::mt19937 random(1);

    for (unsigned round = 0; (round < 100) && !HasFailure(); ++round) {
        /* Enough for a ring, every now and then */
        send(ep, (round % 4) ? (random() % 4) : 100);
        EXPECT_TRUE(progress_until([this] { return receive(); }));
        fall_asleep();

        send(ep, 1 + random() % 3);
        for (unsigned i = 0; (i < 100 * patience::seconds()) && !is_woken(10);
             ++i) {
            ucp_worker_progress(sender->worker);
        }
        EXPECT_TRUE(is_woken(0));
        EXPECT_TRUE(progress_until([this] { return receive(); }));
    }
    close(*sender, ep);
}

/* The receiver has no endpoint, later it has one, and then none again, with
 * which UCP stops to progress its interface */
TEST_F(UcpRings, NothingIsMissedIfTheInterfaceIsNotProgressed)
{
    ucp_ep_h ep = connect(*sender, *receiver);

    for (unsigned round = 0; (round < 30) && !HasFailure(); ++round) {
        send(ep, 200);
        ucp_ep_h back = connect(*receiver, *sender);
        send(ep, 10);
        EXPECT_TRUE(progress_until([this] { return receive(); }));
        close(*receiver, back);
        send(ep, 10);
        EXPECT_TRUE(progress_until([this] { return receive(); }));
    }
    close(*sender, ep);
}
