/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_pair.h>

#include <cstring>

/* Flush of endpoints and workers, with and without something outstanding. */
class UcpFlush : public UcpPair {
public:
    void SetUp() override
    {
        UcpPair::SetUp();
        ep   = connect(*sender, *receiver);
        rkey = unpack(ep, *receiver);
        ASSERT_EQ(UCS_OK, flush(ep));
    }

    void TearDown() override
    {
        ucp_rkey_destroy(rkey);
        close(*sender, ep);
        UcpPair::TearDown();
    }

    static void called(void *request, ucs_status_t status, void *arg)
    {
        EXPECT_EQ(UCS_OK, status);
        ++*static_cast<unsigned*>(arg);
    }

    ucp_ep_h ep     = nullptr;
    ucp_rkey_h rkey = nullptr;
};


static const ucp_request_param_t no_param = {};


TEST_F(UcpFlush, NothingOutstandingNeedsNoRequest)
{
    /* Connecting may have left messages under way. */
    ASSERT_TRUE(progress_until([&] {
        ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &no_param);
        return (wait(request) == UCS_OK) && (request == nullptr);
    }));

    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(nullptr, ucp_ep_flush_nbx(ep, &no_param));
    }
    EXPECT_EQ(UCS_OK, wait(ucp_worker_flush_nbx(sender->worker, &no_param)));
}

TEST_F(UcpFlush, EverythingBeforeItHasArrived)
{
    std::vector<char> data(UcpWorker::SIZE);
    for (size_t size : {1ul, 8ul, 500ul, 5000ul, UcpWorker::SIZE}) {
        memset(data.data(), static_cast<int>(size % 251) + 1, size);
        ucs_status_ptr_t request = put(ep, rkey, *receiver, data.data(), size);
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        ASSERT_EQ(UCS_OK, flush(ep));
        EXPECT_EQ(0, memcmp(receiver->memory, data.data(), size)) << size;
        EXPECT_EQ(UCS_OK, wait(request));
    }
}

TEST_F(UcpFlush, CallbackIsCalledOnceIfThereIsARequestAndElseNever)
{
    unsigned calls            = 0, requests = 0;
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_CALLBACK |
                                UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send             = called;
    param.user_data           = &calls;

    for (uint64_t i = 0; i < 100; ++i) {
        if (i % 2) {
            ASSERT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, &i, sizeof(i))));
        }
        ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &param);
        requests += UCS_PTR_IS_PTR(request);
        EXPECT_EQ(UCS_OK, wait(request));
        EXPECT_EQ(requests, calls);
    }
}

TEST_F(UcpFlush, TheCallersRequestIsUsed)
{
    /* UCP's own part of a request lies in front of it, and is smaller. */
    std::vector<uint64_t> memory(256);
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_REQUEST;
    param.request             = &memory[200];

    for (uint64_t i = 0; i < 50; ++i) {
        ASSERT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, &i, sizeof(i))));
        ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &param);
        if (UCS_PTR_IS_PTR(request)) {
            EXPECT_EQ(param.request, request);
            EXPECT_TRUE(progress_until([&] {
                return ucp_request_check_status(request) != UCS_INPROGRESS;
            }));
            EXPECT_EQ(UCS_OK, ucp_request_check_status(request));
        } else {
            EXPECT_EQ(nullptr, request);
        }
        EXPECT_EQ(i, *reinterpret_cast<uint64_t*>(receiver->memory));
    }
}

TEST_F(UcpFlush, ManyAtATimeAreAllCompleted)
{
    std::vector<ucs_status_ptr_t> requests;
    std::vector<uint64_t> values(500);
    for (uint64_t &value : values) {
        ucs_status_ptr_t request = put(ep, rkey, *receiver, &value,
                                       sizeof(value));
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        requests.push_back(request);
        requests.push_back(ucp_ep_flush_nbx(ep, &no_param));
        /* Without progress: the queue fills up, and flushes are queued. */
    }
    for (ucs_status_ptr_t request : requests) {
        EXPECT_EQ(UCS_OK, wait(request));
    }
    /* If this was its first use, messages that connect may be under way. */
    EXPECT_TRUE(progress_until([&] {
        ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &no_param);
        return (wait(request) == UCS_OK) && (request == nullptr);
    }));
}

TEST_F(UcpFlush, WorkerFlushCoversAllEndpoints)
{
    /* More than are flushed in the call. */
    std::vector<std::unique_ptr<UcpWorker>> others;
    std::vector<ucp_ep_h> eps;
    std::vector<ucp_rkey_h> keys;
    auto progress_all = [&] {
        for (auto &other : others) {
            ucp_worker_progress(other->worker);
        }
    };
    auto finish = [&](ucs_status_ptr_t request) {
        ASSERT_TRUE(progress_until([&] {
            progress_all();
            return !UCS_PTR_IS_PTR(request) ||
                   (ucp_request_check_status(request) != UCS_INPROGRESS);
        }));
        EXPECT_EQ(UCS_OK, wait(request));
    };

    for (uint64_t count = 1; count <= 4; ++count) {
        for (unsigned i = 0; i < 5; ++i) {
            others.push_back(std::make_unique<UcpWorker>());
            eps.push_back(connect(*sender, *others.back()));
            keys.push_back(unpack(eps.back(), *others.back()));
        }
        for (uint64_t value = 1; value < 5; ++value) {
            std::vector<ucs_status_ptr_t> requests;
            uint64_t data = value * 100 + count;
            for (size_t i = 0; i < eps.size(); ++i) {
                requests.push_back(put(eps[i], keys[i], *others[i], &data,
                                       sizeof(data)));
            }
            finish(ucp_worker_flush_nbx(sender->worker, &no_param));
            for (size_t i = 0; i < eps.size(); ++i) {
                EXPECT_EQ(data,
                          *reinterpret_cast<uint64_t*>(others[i]->memory));
                finish(requests[i]);
            }
        }
    }

    for (size_t i = 0; i < eps.size(); ++i) {
        ucp_rkey_destroy(keys[i]);
        close(*sender, eps[i], UCP_EP_CLOSE_MODE_FORCE);
    }
}

TEST_F(UcpFlush, EndpointMayBeClosedWhileBeingFlushed)
{
    ucp_ep_h other       = connect(*sender, *receiver);
    ucp_rkey_h other_key = unpack(other, *receiver);
    uint64_t value       = 77;
    ucs_status_ptr_t request = put(other, other_key, *receiver, &value,
                                   sizeof(value));
    ucs_status_ptr_t flushed = ucp_ep_flush_nbx(other, &no_param);
    close(*sender, other);
    EXPECT_EQ(UCS_OK, wait(flushed));
    EXPECT_EQ(UCS_OK, wait(request));
    ucp_rkey_destroy(other_key); /* A queued put looks at it. */
    EXPECT_EQ(value, *reinterpret_cast<uint64_t*>(receiver->memory));
}
