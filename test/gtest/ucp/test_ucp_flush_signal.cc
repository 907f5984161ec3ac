/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_pair.h>

#include <cstdlib>
#include <cstring>

/* Flush of what the transport expects to be flushed, and of what it does not:
 * operations are signaled or not by how many there were between the flushes
 * before, and no flush may be complete too early or never because of that. */
class UcpFlushSignal : public UcpPair {
public:
    /** An endpoint and where it leads. */
    struct Target {
        ucp_ep_h ep;
        ucp_rkey_h rkey;
        size_t offset;  /* of its own part of the memory */
        uint64_t count; /* puts so far */
    };

    void SetUp() override
    {
        UcpPair::SetUp();
        add_target();
    }

    void TearDown() override
    {
        for (Target &target : targets) {
            ucp_rkey_destroy(target.rkey);
            close(*sender, target.ep, close_mode);
        }
        UcpPair::TearDown();
    }

    void add_target(ucp_err_handling_mode_t mode = UCP_ERR_HANDLING_MODE_NONE)
    {
        Target target = {connect(*sender, *receiver, mode), nullptr,
                         targets.size() * 64, 0};
        target.rkey   = unpack(target.ep, *receiver);
        ASSERT_EQ(UCS_OK, flush(target.ep));
        targets.push_back(target);
    }

    /** Puts without progress in between. */
    void put_some(Target &target, unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            ++target.count;
            ucs_status_ptr_t request = put(target.ep, target.rkey, *receiver,
                                           &target.count, sizeof(target.count),
                                           target.offset);
            ASSERT_FALSE(UCS_PTR_IS_ERR(request));
            if (request != nullptr) {
                /* The value must not change before it has been sent. */
                ASSERT_EQ(UCS_OK, wait(request));
            }
        }
    }

    void expect_arrived(const Target &target)
    {
        uint64_t value;
        memcpy(&value, receiver->memory + target.offset, sizeof(value));
        EXPECT_EQ(target.count, value);
    }

    std::vector<Target> targets;
    unsigned close_mode = UCP_EP_CLOSE_MODE_FLUSH;
};


static const ucp_request_param_t no_param = {};


TEST_F(UcpFlushSignal, OnePutAndAFlushAgainAndAgain)
{
    for (int i = 0; i < 1000; ++i) {
        put_some(targets[0], 1);
        ASSERT_EQ(UCS_OK, flush(targets[0].ep));
        expect_arrived(targets[0]);
    }
}

TEST_F(UcpFlushSignal, AnyNumberOfPutsBetweenFlushes)
{
    /* One, which is expected to go on; then something else each time. 64 is
     * the period of signaled operations. */
    static const unsigned counts[] = {0, 2, 3, 62, 63, 64, 65, 127, 128, 300};

    for (unsigned count : counts) {
        for (unsigned ones = 0; ones < 4; ++ones) {
            for (unsigned i = 0; i < ones; ++i) {
                put_some(targets[0], 1);
                ASSERT_EQ(UCS_OK, flush(targets[0].ep));
                expect_arrived(targets[0]);
            }
            put_some(targets[0], count);
            ASSERT_EQ(UCS_OK, flush(targets[0].ep));
            expect_arrived(targets[0]);
        }
    }
}

TEST_F(UcpFlushSignal, SeveralFlushesOfOnePut)
{
    for (int i = 0; i < 200; ++i) {
        std::vector<ucs_status_ptr_t> requests;
        put_some(targets[0], 1);
        for (int j = 0; j < 1 + (i % 5); ++j) {
            requests.push_back(ucp_ep_flush_nbx(targets[0].ep, &no_param));
        }
        requests.push_back(ucp_worker_flush_nbx(sender->worker, &no_param));
        for (ucs_status_ptr_t request : requests) {
            ASSERT_EQ(UCS_OK, wait(request));
            expect_arrived(targets[0]);
        }
    }
}

TEST_F(UcpFlushSignal, GetsAreFlushedAsPutsAre)
{
    uint64_t value = 0;
    for (uint64_t i = 1; i < 300; ++i) {
        /* The put must not overtake, and neither does the get. */
        put_some(targets[0], 1 + (i % 3 == 0));
        ucs_status_ptr_t request = ucp_get_nbx(
                targets[0].ep, &value, sizeof(value),
                reinterpret_cast<uintptr_t>(receiver->memory), targets[0].rkey,
                &no_param);
        ASSERT_EQ(UCS_OK, flush(targets[0].ep));
        EXPECT_EQ(targets[0].count, value);
        EXPECT_EQ(UCS_OK, wait(request));
    }
}

TEST_F(UcpFlushSignal, EachEndpointHasItsOwnExpectation)
{
    add_target();
    add_target();
    for (unsigned i = 0; i < 400; ++i) {
        put_some(targets[0], 1);
        put_some(targets[1], i % 3);
        put_some(targets[2], (i % 7 == 0) ? 70 : 1);
        if (i % 4 == 0) {
            ASSERT_EQ(UCS_OK, wait(ucp_worker_flush_nbx(sender->worker,
                                                        &no_param)));
            for (const Target &target : targets) {
                expect_arrived(target);
            }
        } else {
            Target &target = targets[i % targets.size()];
            ASSERT_EQ(UCS_OK, flush(target.ep));
            expect_arrived(target);
        }
    }
}

TEST_F(UcpFlushSignal, QueuedFlushesEndWhenTheEndpointIsClosedByForce)
{
    const char *proto = getenv("UCX_PROTO_ENABLE");
    if ((proto != nullptr) && !strcmp(proto, "y")) {
        GTEST_SKIP() << "with version 2 of the protocols, UCX 1.13.1 itself "
                        "stops at its assertion that nothing is queued then";
    }

    add_target(UCP_ERR_HANDLING_MODE_PEER);
    Target target = targets.back();
    targets.pop_back();

    /* More than the queue holds, and no progress: flushes wait as well. */
    std::vector<ucs_status_ptr_t> requests;
    uint64_t value = 1;
    for (int i = 0; i < 1000; ++i) {
        requests.push_back(put(target.ep, target.rkey, *receiver, &value,
                               sizeof(value), target.offset));
        requests.push_back(ucp_ep_flush_nbx(target.ep, &no_param));
    }
    ucp_rkey_destroy(target.rkey);
    close(*sender, target.ep, UCP_EP_CLOSE_MODE_FORCE);
    for (ucs_status_ptr_t request : requests) {
        ucs_status_t status = wait(request);
        EXPECT_TRUE((status == UCS_OK) || (status == UCS_ERR_CANCELED))
                << ucs_status_string(status);
    }
}

TEST_F(UcpFlushSignal, AFlushOfAPutToNobodyFails)
{
    add_target(UCP_ERR_HANDLING_MODE_PEER);
    Target &target    = targets.back();
    uintptr_t address = reinterpret_cast<uintptr_t>(receiver->memory);
    uint64_t value    = 1;
    for (int i = 0; i < 10; ++i) {
        put_some(target, 1);
        ASSERT_EQ(UCS_OK, flush(target.ep));
    }

    /* The other endpoint would fail without anyone being told. */
    ucp_rkey_destroy(targets[0].rkey);
    close(*sender, targets[0].ep);
    targets.erase(targets.begin());
    close_mode = UCP_EP_CLOSE_MODE_FORCE;
    receiver.reset();

    ucs_status_t status = UCS_OK;
    ASSERT_TRUE(progress_until([&] {
        wait(ucp_put_nbx(targets[0].ep, &value, sizeof(value), address,
                         targets[0].rkey, &no_param));
        ucs_status_t result = flush(targets[0].ep);
        status              = (status == UCS_OK) ? result : status;
        return errors > 0;
    }));
    EXPECT_NE(UCS_OK, status);
}
