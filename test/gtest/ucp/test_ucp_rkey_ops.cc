/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_pair.h>

#include <cstring>

/* Gets, longer puts and atomic operations with a remote key: all of them have a
 * short way for a key that is ready, and the general one. */
class UcpRkeyOps : public UcpPair {
public:
    void SetUp() override
    {
        UcpPair::SetUp();
        ep   = connect(*sender, *receiver);
        rkey = unpack(ep, *receiver);
    }

    void TearDown() override
    {
        ucp_rkey_destroy(rkey);
        close(*sender, ep);
        UcpPair::TearDown();
    }

    uint64_t remote(size_t offset = 0) const
    {
        return reinterpret_cast<uintptr_t>(receiver->memory) + offset;
    }

    void fill(unsigned seed)
    {
        for (size_t i = 0; i < UcpWorker::SIZE; ++i) {
            receiver->memory[i] = static_cast<char>((i * 7) + (i >> 8) + seed);
        }
    }

    /** An atomic operation on the first bytes of the memory. @return what was
     *  there, if that is fetched. */
    template<typename T>
    T atomic(ucp_atomic_op_t op, T operand, bool is_fetch, T reply = 0)
    {
        ucp_request_param_t param = {};
        param.op_attr_mask        = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype            = ucp_dt_make_contig(sizeof(T));
        if (is_fetch) {
            param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
            param.reply_buffer  = &reply;
        }
        EXPECT_EQ(UCS_OK, wait(ucp_atomic_op_nbx(ep, op, &operand, 1, remote(),
                                                 rkey, &param)));
        EXPECT_EQ(UCS_OK, flush(ep));
        return reply;
    }

    template<typename T> T value() const
    {
        T result;
        memcpy(&result, receiver->memory, sizeof(result));
        return result;
    }

    template<typename T> void all_atomics();

    ucp_ep_h ep     = nullptr;
    ucp_rkey_h rkey = nullptr;
};


static const ucp_request_param_t no_param = {};


TEST_F(UcpRkeyOps, GetsOfEveryLengthAlsoWhileConnecting)
{
    std::vector<char> data(40000);
    for (size_t size = 0; size <= data.size(); size += (size < 200) ? 1 : 997) {
        fill(size);
        memset(data.data(), 0, data.size());
        ASSERT_EQ(UCS_OK, wait(ucp_get_nbx(ep, data.data(), size, remote(3),
                                           rkey, &no_param)));
        ASSERT_EQ(0, memcmp(receiver->memory + 3, data.data(), size)) << size;
        ASSERT_EQ(0, data[size]) << "more than " << size;
    }
}

TEST_F(UcpRkeyOps, PutsOfEveryLengthInOneConnection)
{
    std::vector<char> data(40000);
    ASSERT_EQ(UCS_OK, flush(ep));
    for (size_t size = 1; size <= data.size(); size += (size < 200) ? 1 : 997) {
        memset(data.data(), size % 127 + 1, data.size());
        memset(receiver->memory, 0, UcpWorker::SIZE);
        ASSERT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, data.data(), size, 5)));
        ASSERT_EQ(UCS_OK, flush(ep));
        ASSERT_EQ(0, memcmp(receiver->memory + 5, data.data(), size)) << size;
        ASSERT_EQ(0, receiver->memory[5 + size]) << "more than " << size;
        ASSERT_EQ(0, receiver->memory[4]);
    }
}

TEST_F(UcpRkeyOps, MoreThanTheQueueHoldsOfEverything)
{
    std::vector<char> data(1000, 'x'), copy(8 * 1000);
    std::vector<ucs_status_ptr_t> requests;
    fill(1);
    for (int i = 0; i < 1000; ++i) {
        requests.push_back(put(ep, rkey, *receiver, data.data(), data.size(),
                               16384));
        requests.push_back(ucp_get_nbx(ep, &copy[8 * i], 8, remote(8 * i), rkey,
                                       &no_param));
        ASSERT_FALSE(UCS_PTR_IS_ERR(requests.back()));
    }
    ASSERT_EQ(UCS_OK, flush(ep));
    EXPECT_EQ(0, memcmp(receiver->memory + 16384, data.data(), data.size()));
    EXPECT_EQ(0, memcmp(receiver->memory, copy.data(), copy.size()));
    for (ucs_status_ptr_t request : requests) {
        EXPECT_EQ(UCS_OK, wait(request));
    }
}

static void count_call(void *request, ucs_status_t status, void *arg)
{
    EXPECT_EQ(UCS_OK, status);
    ++*static_cast<unsigned*>(arg);
}

TEST_F(UcpRkeyOps, AKeyThatIsReadyChecksParametersAsWell)
{
    uint64_t value           = 17;
    ucp_request_param_t both = {};
    both.op_attr_mask        = UCP_OP_ATTR_FLAG_FAST_CMPL |
                               UCP_OP_ATTR_FLAG_MULTI_SEND;
    const auto put_both = [&](size_t size) {
        return ucp_put_nbx(ep, receiver->memory + 4096, size, remote(), rkey,
                           &both);
    };
    ucs_status_ptr_t status = is_ucx_since(18) ? put_both(sizeof(value)) : NULL;
    if (status != UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM)) {
        EXPECT_EQ(UCS_OK, wait(status));
        EXPECT_EQ(UCS_OK, flush(ep));
        GTEST_SKIP() << "this UCX checks no parameters";
    }

    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(UCS_OK, wait(put(ep, rkey, *receiver, &value,
                                   sizeof(value))));
        EXPECT_EQ(UCS_OK, flush(ep));
    }
    for (size_t size : {sizeof(value), size_t{1000}}) {
        EXPECT_EQ(UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM), put_both(size));
        EXPECT_EQ(UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM),
                  ucp_put_nbx(ep, nullptr, size, remote(), rkey, &no_param));
        EXPECT_EQ(UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM),
                  ucp_get_nbx(ep, nullptr, size, remote(), rkey, &no_param));
    }
    EXPECT_EQ(UCS_OK, flush(ep));
    EXPECT_EQ(17u, this->value<uint64_t>());
}

TEST_F(UcpRkeyOps, AttributesOfAGet)
{
    uint64_t value = 0;
    unsigned calls = 0;
    fill(2);
    for (int i = 0; i < 10; ++i) {
        /* the caller's request; UCP's part lies in front of it */
        std::vector<uint64_t> memory(256);
        ucp_request_param_t param = {};
        param.op_attr_mask        = UCP_OP_ATTR_FIELD_REQUEST;
        param.request             = &memory[200];
        ucs_status_ptr_t request  = ucp_get_nbx(ep, &value, sizeof(value),
                                                remote(i), rkey, &param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        if (request != nullptr) {
            EXPECT_EQ(param.request, request);
            ASSERT_TRUE(progress_until([&] {
                return ucp_request_check_status(request) != UCS_INPROGRESS;
            }));
        }
        EXPECT_EQ(0, memcmp(receiver->memory + i, &value, sizeof(value)));

        /* a callback, if it is not complete at once */
        unsigned before    = calls;
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                             UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send      = count_call;
        param.user_data    = &calls;
        request            = ucp_get_nbx(ep, &value, sizeof(value), remote(),
                                         rkey, &param);
        unsigned expected  = before + (request != nullptr);
        EXPECT_EQ(UCS_OK, wait(request));
        EXPECT_EQ(expected, calls);

        /* a request in any case, and none in any case */
        param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        request            = ucp_get_nbx(ep, &value, sizeof(value), remote(),
                                         rkey, &param);
        EXPECT_TRUE(UCS_PTR_IS_PTR(request));
        EXPECT_EQ(UCS_OK, wait(request));
        param.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
        EXPECT_EQ(UCS_ERR_NO_RESOURCE,
                  UCS_PTR_STATUS(ucp_get_nbx(ep, &value, sizeof(value),
                                             remote(), rkey, &param)));
    }
}

template<typename T> void UcpRkeyOps::all_atomics()
{
    /* What it starts with, and what an operand makes of it. */
    const T start = static_cast<T>(0x123456789abcdef0), operand = 0x0f0f1234;
    const struct {
        ucp_atomic_op_t op;
        bool can_post;
        T result;
    } ops[] = {
        {UCP_ATOMIC_OP_ADD,  true,  static_cast<T>(start + operand)},
        {UCP_ATOMIC_OP_AND,  true,  static_cast<T>(start & operand)},
        {UCP_ATOMIC_OP_OR,   true,  static_cast<T>(start | operand)},
        {UCP_ATOMIC_OP_XOR,  true,  static_cast<T>(start ^ operand)},
        {UCP_ATOMIC_OP_SWAP, false, operand}
    };

    for (int round = 0; round < 5; ++round) {
        for (const auto &op : ops) {
            memset(receiver->memory, 0x55, 16);
            memcpy(receiver->memory, &start, sizeof(start));
            EXPECT_EQ(start, atomic<T>(op.op, operand, true)) << op.op;
            EXPECT_EQ(op.result, value<T>()) << op.op;
            EXPECT_EQ(0x55, receiver->memory[sizeof(T)]);
            if (op.can_post) {
                memcpy(receiver->memory, &start, sizeof(start));
                atomic<T>(op.op, operand, false);
                EXPECT_EQ(op.result, value<T>()) << op.op;
            }
        }

        /* The operand is what it is compared with, the reply what is stored. */
        memcpy(receiver->memory, &start, sizeof(start));
        EXPECT_EQ(start, atomic<T>(UCP_ATOMIC_OP_CSWAP, operand, true, 77));
        EXPECT_EQ(start, value<T>());
        EXPECT_EQ(start, atomic<T>(UCP_ATOMIC_OP_CSWAP, start, true, 77));
        EXPECT_EQ(T(77), value<T>());
    }
}

TEST_F(UcpRkeyOps, EveryAtomicOperationOf8Bytes)
{
    all_atomics<uint64_t>();
}

TEST_F(UcpRkeyOps, EveryAtomicOperationOf4Bytes)
{
    all_atomics<uint32_t>();
}

TEST_F(UcpRkeyOps, ManyAtomicsAreAllCarriedOut)
{
    uint64_t one              = 1;
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_DATATYPE |
                                UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.datatype            = ucp_dt_make_contig(sizeof(one));
    std::vector<uint64_t> replies(2000);
    std::vector<ucs_status_ptr_t> requests;

    /* No progress: more than the queue holds. Posts in between. */
    ASSERT_EQ(UCS_OK, flush(ep));
    for (uint64_t &reply : replies) {
        param.op_attr_mask ^= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer  = &reply;
        requests.push_back(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &one, 1,
                                             remote(), rkey, &param));
        ASSERT_FALSE(UCS_PTR_IS_ERR(requests.back()));
    }
    for (ucs_status_ptr_t request : requests) {
        EXPECT_EQ(UCS_OK, wait(request));
    }
    ASSERT_EQ(UCS_OK, flush(ep));
    EXPECT_EQ(replies.size(), value<uint64_t>());
}

TEST_F(UcpRkeyOps, KeysOfDifferentMemoryAreNotMixedUp)
{
    /* All are of one kind, and resolved alike. */
    UcpWorker others[3];
    std::vector<ucp_ep_h> eps;
    std::vector<ucp_rkey_h> keys;
    auto finish = [&](ucs_status_ptr_t request) {
        ASSERT_TRUE(progress_until([&] {
            for (UcpWorker &other : others) {
                ucp_worker_progress(other.worker);
            }
            return !UCS_PTR_IS_PTR(request) ||
                   (ucp_request_check_status(request) != UCS_INPROGRESS);
        }));
        EXPECT_EQ(UCS_OK, wait(request));
    };

    for (uint64_t i = 0; i < 3; ++i) {
        *reinterpret_cast<uint64_t*>(others[i].memory) = 100 + i;
        eps.push_back(connect(*sender, others[i]));
        finish(ucp_ep_flush_nbx(eps.back(), &no_param));
    }
    for (unsigned round = 0; round < 20; ++round) {
        for (unsigned i = 0; i < 3; ++i) {
            uint64_t reply = 0;
            keys.push_back(unpack(eps[i], others[i]));
            finish(ucp_get_nbx(eps[i], &reply, sizeof(reply),
                               reinterpret_cast<uintptr_t>(others[i].memory),
                               keys.back(), &no_param));
            EXPECT_EQ(100 + i, reply);
        }
    }

    for (ucp_rkey_h key : keys) {
        ucp_rkey_destroy(key);
    }
    for (ucp_ep_h other_ep : eps) {
        close(*sender, other_ep, UCP_EP_CLOSE_MODE_FORCE);
    }
}
