/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_pair.h>

#include <cstring>

/* Remote keys that are ready for use, and what takes that back. */
class UcpRkey : public UcpPair {};


static const ucp_request_param_t no_param = {};


TEST_F(UcpRkey, PutsOfEveryLengthArriveAlsoWhileConnecting)
{
    ucp_ep_h ep     = connect(*sender, *receiver);
    ucp_rkey_h rkey = unpack(ep, *receiver);
    std::vector<char> data(2000);

    /* The first finds the endpoint not connected yet. Lengths around the limit
     * of a small put are all among them. */
    for (size_t size = 0; size <= data.size(); size += (size < 300) ? 1 : 100) {
        memset(data.data(), 1 + (size % 100), data.size());
        ASSERT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, data.data(), size)));
        ASSERT_EQ(UCS_OK, flush(ep));
        ASSERT_EQ(0, memcmp(receiver->memory, data.data(), size)) << size;
    }

    ucp_rkey_destroy(rkey);
    close(*sender, ep);
}

TEST_F(UcpRkey, MorePutsThanTheQueueHoldsAllArriveInOrder)
{
    ucp_ep_h ep     = connect(*sender, *receiver);
    ucp_rkey_h rkey = unpack(ep, *receiver);
    std::vector<ucs_status_ptr_t> requests;
    std::vector<uint64_t> values(2000);

    /* No progress in between: some have to be queued by UCP. */
    ASSERT_EQ(UCS_OK, flush(ep));
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = i + 1;
        ucs_status_ptr_t request = put(ep, rkey, *receiver, &values[i],
                                       sizeof(values[i]),
                                       (i % 16) * sizeof(values[i]));
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        if (request != nullptr) {
            requests.push_back(request);
        }
    }

    ASSERT_EQ(UCS_OK, flush(ep));
    for (ucs_status_ptr_t request : requests) {
        EXPECT_EQ(UCS_OK, wait(request));
    }

    const uint64_t *memory =
            reinterpret_cast<const uint64_t*>(receiver->memory);
    for (size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(values.size() - 16 + i + 1, memory[i]);
    }

    ucp_rkey_destroy(rkey);
    close(*sender, ep);
}

TEST_F(UcpRkey, AttributesThatForbidTheShortWayAreKept)
{
    ucp_ep_h ep     = connect(*sender, *receiver);
    ucp_rkey_h rkey = unpack(ep, *receiver);
    uint64_t value  = 17;
    ASSERT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, &value, sizeof(value))));
    ASSERT_EQ(UCS_OK, flush(ep));

    /* A request is asked for although the put is complete. */
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    value                     = 18;
    ucs_status_ptr_t request  = ucp_put_nbx(
            ep, &value, sizeof(value),
            reinterpret_cast<uintptr_t>(receiver->memory), rkey, &param);
    EXPECT_TRUE(UCS_PTR_IS_PTR(request));
    EXPECT_EQ(UCS_OK, wait(request));
    ASSERT_EQ(UCS_OK, flush(ep));
    EXPECT_EQ(0, memcmp(receiver->memory, &value, sizeof(value)));

    ucp_rkey_destroy(rkey);
    close(*sender, ep);
}

TEST_F(UcpRkey, ManyKeysOfOneEndpointAreIndependent)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    std::vector<ucp_rkey_h> keys;
    for (unsigned i = 0; i < 20; ++i) {
        keys.push_back(unpack(ep, *receiver));
    }

    for (uint64_t round = 0; !keys.empty(); ++round) {
        for (ucp_rkey_h rkey : keys) {
            ASSERT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, &round,
                                       sizeof(round))));
        }
        ASSERT_EQ(UCS_OK, flush(ep));
        ASSERT_EQ(0, memcmp(receiver->memory, &round, sizeof(round)));

        /* first, last, or one in the middle of the endpoint's list */
        size_t victim = (round % 3 == 0) ? 0 :
                        (round % 3 == 1) ? keys.size() - 1 : keys.size() / 2;
        ucp_rkey_destroy(keys[victim]);
        keys.erase(keys.begin() + victim);
    }

    close(*sender, ep);
}

TEST_F(UcpRkey, KeysOutliveTheirEndpoint)
{
    std::vector<ucp_rkey_h> keys;
    for (unsigned i = 0; i < 4; ++i) {
        /* A new endpoint is likely to have the memory of the old one. */
        ucp_ep_h ep = connect(*sender, *receiver);
        keys.push_back(unpack(ep, *receiver));
        uint64_t value = i + 1;
        ASSERT_EQ(UCS_OK, wait(put(ep, keys.back(), *receiver, &value,
                                   sizeof(value))));
        ASSERT_EQ(UCS_OK, flush(ep));
        ASSERT_EQ(0, memcmp(receiver->memory, &value, sizeof(value)));
        close(*sender, ep);
    }

    for (ucp_rkey_h rkey : keys) {
        ucp_rkey_destroy(rkey);
    }
}

TEST_F(UcpRkey, EachEndpointUsesItsOwnKey)
{
    UcpWorker other;
    ucp_ep_h ep[2]     = {connect(*sender, *receiver), connect(*sender, other)};
    ucp_rkey_h rkey[2] = {unpack(ep[0], *receiver), unpack(ep[1], other)};
    char *memory[2]    = {receiver->memory, other.memory};

    for (uint64_t value = 1; value < 50; ++value) {
        for (int i = 0; i < 2; ++i) {
            uint64_t data = (value << 8) + i;
            ucs_status_ptr_t request = ucp_put_nbx(
                    ep[i], &data, sizeof(data),
                    reinterpret_cast<uintptr_t>(memory[i]), rkey[i], &no_param);
            ASSERT_FALSE(UCS_PTR_IS_ERR(request));
            ASSERT_TRUE(progress_until([&] {
                ucp_worker_progress(other.worker);
                return !UCS_PTR_IS_PTR(request) ||
                       (ucp_request_check_status(request) != UCS_INPROGRESS);
            }));
            EXPECT_EQ(UCS_OK, wait(request));
            request = ucp_ep_flush_nbx(ep[i], &no_param);
            ASSERT_TRUE(progress_until([&] {
                ucp_worker_progress(other.worker);
                return !UCS_PTR_IS_PTR(request) ||
                       (ucp_request_check_status(request) != UCS_INPROGRESS);
            }));
            EXPECT_EQ(UCS_OK, wait(request));
            EXPECT_EQ(0, memcmp(memory[i], &data, sizeof(data)));
        }
    }

    for (int i = 0; i < 2; ++i) {
        ucp_rkey_destroy(rkey[i]);
        close(*sender, ep[i], UCP_EP_CLOSE_MODE_FORCE);
    }
}

TEST_F(UcpRkey, WorkersForSeveralThreadsPutAsWell)
{
    sender = std::make_unique<UcpWorker>(UCS_THREAD_MODE_MULTI);
    ucp_ep_h ep     = connect(*sender, *receiver);
    ucp_rkey_h rkey = unpack(ep, *receiver);
    for (uint64_t value = 1; value < 300; ++value) {
        ASSERT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, &value,
                                   sizeof(value))));
    }
    ASSERT_EQ(UCS_OK, flush(ep));
    EXPECT_EQ(299u, *reinterpret_cast<uint64_t*>(receiver->memory));
    ucp_rkey_destroy(rkey);
    close(*sender, ep);
}

TEST_F(UcpRkey, AFailedEndpointsKeysAreNotUsed)
{
    ucp_ep_h ep     = connect(*sender, *receiver, UCP_ERR_HANDLING_MODE_PEER);
    ucp_rkey_h rkey = unpack(ep, *receiver);
    uint64_t value  = 1;
    ASSERT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, &value, sizeof(value))));
    ASSERT_EQ(UCS_OK, flush(ep));
    uintptr_t address = reinterpret_cast<uintptr_t>(receiver->memory);

    /* The peer goes away without a word. */
    receiver.reset();
    ASSERT_TRUE(progress_until([&] {
        if (errors == 0) {
            wait(ucp_put_nbx(ep, &value, sizeof(value), address, rkey,
                             &no_param));
            flush(ep);
        }
        return errors > 0;
    }));
    EXPECT_EQ(1u, errors);

    /* What comes after fails, in whatever way, and reaches nothing freed. */
    for (int i = 0; i < 100; ++i) {
        EXPECT_NE(UCS_OK, wait(ucp_put_nbx(ep, &value, sizeof(value), address,
                                           rkey, &no_param)));
    }

    ucp_rkey_destroy(rkey);
    close(*sender, ep, UCP_EP_CLOSE_MODE_FORCE);
}
