/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_pair.h>

#include <cstring>
#include <string>

/* Receives that are posted before their message, and all the others. */
class UcpRecv : public UcpPair {
public:
    static constexpr ucp_tag_t TAG      = 0x1234567800000007;
    static constexpr ucp_tag_t ALL_BITS = -1;

    /* Tags with this distance are in the same queue. */
    static constexpr ucp_tag_t QUEUES = 1021;

    struct Completion {
        ucs_status_t status;
        ucp_tag_t sender_tag;
        size_t length;
    };

    void SetUp() override
    {
        UcpPair::SetUp();
        ep = connect(*sender, *receiver);
        std::string data(4, 0);
        ucs_status_ptr_t request = recv(data);
        send("open");
        ASSERT_EQ(UCS_OK, wait(request));
        ASSERT_EQ("open", data);
    }

    void TearDown() override
    {
        close(*sender, ep);
        UcpPair::TearDown();
    }

    void send(const std::string &data, ucp_tag_t tag = TAG)
    {
        ucp_request_param_t param = {};
        ASSERT_EQ(UCS_OK, wait(ucp_tag_send_nbx(ep, data.data(), data.size(),
                                                tag, &param)));
    }

    /* Send, and have it arrive. A later message tells that it has. */
    void send_and_arrive(const std::string &data, ucp_tag_t tag = TAG)
    {
        send(data, tag);
        fence();
    }

    void fence()
    {
        char byte                 = 0;
        ucp_request_param_t param = {};
        ucs_status_ptr_t request  = ucp_tag_recv_nbx(receiver->worker, &byte, 1,
                                                     FENCE, ALL_BITS, &param);
        send("f", FENCE);
        ASSERT_EQ(UCS_OK, wait(request));
    }

    ucs_status_ptr_t recv(std::string &data, ucp_tag_t tag = TAG,
                          ucp_tag_t mask                   = ALL_BITS,
                          const ucp_request_param_t &param = {})
    {
        return ucp_tag_recv_nbx(receiver->worker, &data[0], data.size(), tag,
                                mask, &param);
    }

    bool is_complete(ucs_status_ptr_t request)
    {
        return !UCS_PTR_IS_PTR(request) ||
               (ucp_request_check_status(request) != UCS_INPROGRESS);
    }

    static void arrived(void *request, ucs_status_t status,
                        const ucp_tag_recv_info_t *info, void *arg)
    {
        static_cast<std::vector<Completion>*>(arg)->push_back(
                {status, info->sender_tag, info->length});
    }

    static void arrived_and_free(void *request, ucs_status_t status,
                                 const ucp_tag_recv_info_t *info, void *arg)
    {
        arrived(request, status, info, arg);
        ucp_request_free(request);
    }

    ucp_ep_h ep = nullptr;

private:
    static constexpr ucp_tag_t FENCE = 0x7777777700000000;
};


TEST_F(UcpRecv, ShortDataIsNotWrittenBeyondItsLengthWhereverItGoes)
{
    for (size_t length = 0; length <= 40; ++length) {
        for (size_t offset = 0; offset < 9; ++offset) {
            const std::string data(length, 'a' + length % 26);
            std::string memory(64, '.');
            ucp_request_param_t param = {};
            ucs_status_ptr_t request  = ucp_tag_recv_nbx(
                    receiver->worker, &memory[offset], 40, TAG, ALL_BITS,
                    &param);
            send(data);
            ASSERT_EQ(UCS_OK, wait(request));
            std::string expected(64, '.');
            expected.replace(offset, length, data);
            ASSERT_EQ(expected, memory) << length << " " << offset;
        }
    }
}

TEST_F(UcpRecv, ReceivesOfATagAreMatchedInTheirOrder)
{
    std::vector<std::string> data(100, std::string(8, 0));
    std::vector<ucs_status_ptr_t> requests;
    for (size_t i = 0; i < data.size() / 2; ++i) {
        requests.push_back(recv(data[i]));
    }
    for (size_t i = 0; i < data.size(); ++i) {
        send_and_arrive(std::to_string(10000000 + i));
    }
    for (size_t i = data.size() / 2; i < data.size(); ++i) {
        requests.push_back(recv(data[i]));
    }
    for (size_t i = 0; i < data.size(); ++i) {
        ASSERT_EQ(UCS_OK, wait(requests[i]));
        ASSERT_EQ(std::to_string(10000000 + i), data[i]);
    }
}

TEST_F(UcpRecv, TagsOfOneQueueAreToldApart)
{
    const std::vector<ucp_tag_t> tags = {
        TAG, TAG + QUEUES, TAG + 2 * QUEUES, TAG ^ (1ul << 63),
        TAG + (QUEUES << 32), 0, static_cast<ucp_tag_t>(-1), 0xffffffff,
        0xffffffff00000000, 0xfffffffe00000001
    };
    std::vector<std::string> data(tags.size(), std::string(8, 0));
    std::vector<ucs_status_ptr_t> requests;
    for (size_t i = 0; i < tags.size(); ++i) {
        requests.push_back(recv(data[i], tags[i]));
    }

    /* from the last to the first */
    for (size_t i = tags.size(); i-- > 0;) {
        send_and_arrive(std::to_string(10000000 + i), tags[i]);
        for (size_t k = 0; k < tags.size(); ++k) {
            ASSERT_EQ(k >= i, is_complete(requests[k])) << i << " " << k;
        }
    }
    for (size_t i = 0; i < tags.size(); ++i) {
        EXPECT_EQ(UCS_OK, wait(requests[i]));
        EXPECT_EQ(std::to_string(10000000 + i), data[i]);
    }
}

TEST_F(UcpRecv, AReceiveOfAnyTagIsMatchedWhenItsTurnComes)
{
    std::string first(5, 0), any(5, 0), last(5, 0), masked(5, 0);
    ucs_status_ptr_t first_request  = recv(first);
    ucs_status_ptr_t any_request    = recv(any, 0, 0);
    ucs_status_ptr_t last_request   = recv(last);
    ucs_status_ptr_t masked_request = recv(masked, 0xab, 0xff);

    send("one..");
    send("two..");
    send("three");
    send("four.", 0x9900ab);
    EXPECT_EQ(UCS_OK, wait(first_request));
    EXPECT_EQ(UCS_OK, wait(any_request));
    EXPECT_EQ(UCS_OK, wait(last_request));
    EXPECT_EQ(UCS_OK, wait(masked_request));
    EXPECT_EQ("one..", first);
    EXPECT_EQ("two..", any);
    EXPECT_EQ("three", last);
    EXPECT_EQ("four.", masked);
}

TEST_F(UcpRecv, AMessageThatIsTooLongIsReported)
{
    for (int posted_before = 0; posted_before < 2; ++posted_before) {
        std::string data(12, '.');
        ucp_request_param_t param = {};
        ucs_status_ptr_t request  = nullptr;
        if (posted_before) {
            request = ucp_tag_recv_nbx(receiver->worker, &data[0], 7, TAG,
                                       ALL_BITS, &param);
        }
        send_and_arrive("12345678");
        if (!posted_before) {
            request = ucp_tag_recv_nbx(receiver->worker, &data[0], 7, TAG,
                                       ALL_BITS, &param);
        }
        EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, wait(request)) << posted_before;
        EXPECT_EQ(".....", data.substr(7)) << posted_before;

        /* The queue is as it was. */
        std::string next(4, 0);
        request = recv(next);
        send("next");
        EXPECT_EQ(UCS_OK, wait(request));
        EXPECT_EQ("next", next);
    }
}

TEST_F(UcpRecv, TheCallbackIsToldWhatHasCome)
{
    std::vector<Completion> completions;
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_CALLBACK |
                                UCP_OP_ATTR_FIELD_USER_DATA;
    param.user_data           = &completions;

    std::string data(16, 0), small(2, 0);
    param.cb.recv            = arrived_and_free;
    ucs_status_ptr_t request = recv(data, 0, 0, param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    request = recv(small, TAG, ALL_BITS, param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    request             = recv(data, TAG + 1, ALL_BITS, param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));

    send("hello", TAG + 5);
    send("too long");
    send("more", TAG + 1);
    ASSERT_TRUE(progress_until([&] { return completions.size() == 3; }));
    EXPECT_EQ(UCS_OK, completions[0].status);
    EXPECT_EQ(TAG + 5, completions[0].sender_tag);
    EXPECT_EQ(5u, completions[0].length);
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, completions[1].status);
    EXPECT_EQ(UCS_OK, completions[2].status);
    EXPECT_EQ(TAG + 1, completions[2].sender_tag);
    EXPECT_EQ(4u, completions[2].length);

    /* One that is there already, whose request must be given nevertheless. */
    send_and_arrive("late", TAG + 2);
    param.cb.recv = arrived;
    request       = recv(data, TAG + 2, ALL_BITS, param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    EXPECT_EQ(4u, completions.size());
    EXPECT_EQ(UCS_OK, wait(request));
}

TEST_F(UcpRecv, TheCallersOwnRequestIsUsed)
{
    /* What UCP needs is in front of it. */
    std::vector<char> memory(8192);
    std::vector<Completion> completions;
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_REQUEST |
                                UCP_OP_ATTR_FIELD_CALLBACK |
                                UCP_OP_ATTR_FIELD_USER_DATA;
    param.request             = memory.data() + 4096;
    param.cb.recv             = arrived;
    param.user_data           = &completions;
    for (unsigned i = 1; i < 50; ++i) {
        std::string data(4, 0);
        ASSERT_EQ(param.request, recv(data, TAG, ALL_BITS, param));
        send("mine");
        ASSERT_TRUE(progress_until([&] { return completions.size() == i; }));
        ASSERT_EQ("mine", data);
        ASSERT_EQ(UCS_OK, ucp_request_check_status(param.request));
    }
}

TEST_F(UcpRecv, ACanceledReceiveTakesNoMessage)
{
    std::string canceled(4, '.'), data(4, 0);
    ucs_status_ptr_t first  = recv(canceled);
    ucs_status_ptr_t second = recv(data);
    ucp_request_cancel(receiver->worker, first);
    send("data");
    EXPECT_EQ(UCS_ERR_CANCELED, wait(first));
    EXPECT_EQ(UCS_OK, wait(second));
    EXPECT_EQ("....", canceled);
    EXPECT_EQ("data", data);
}

TEST_F(UcpRecv, ARequestThatIsFreedEarlyIsReceivedAllTheSame)
{
    for (unsigned i = 0; i < 300; ++i) {
        std::string forgotten(4, 0), data(4, 0);
        ucp_request_free(recv(forgotten));
        ucs_status_ptr_t request = recv(data);
        send("free");
        send("wait");
        ASSERT_EQ(UCS_OK, wait(request));
        ASSERT_EQ("free", forgotten);
        ASSERT_EQ("wait", data);
    }
}

TEST_F(UcpRecv, ListsOfBuffersAndElementsAreFilled)
{
    char one[3] = {}, two[9] = {};
    ucp_dt_iov_t iov[2]       = {{one, sizeof(one)}, {two, sizeof(two)}};
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype            = ucp_dt_make_iov();
    ucs_status_ptr_t request  = ucp_tag_recv_nbx(receiver->worker, iov, 2, TAG,
                                                 ALL_BITS, &param);
    send("12345678");
    EXPECT_EQ(UCS_OK, wait(request));
    EXPECT_EQ(0, memcmp(one, "123", 3));
    EXPECT_EQ(0, memcmp(two, "45678", 6));

    std::string data(24, 0);
    param.datatype = ucp_dt_make_contig(8);
    request = ucp_tag_recv_nbx(receiver->worker, &data[0], 3, TAG, ALL_BITS,
                               &param);
    send("123456781234567812345678");
    EXPECT_EQ(UCS_OK, wait(request));
    EXPECT_EQ("123456781234567812345678", data);
}

TEST_F(UcpRecv, MessagesThatWereProbedAreReceivedByTheirHandle)
{
    send_and_arrive("12345678", TAG + 1);
    send_and_arrive("abcdefgh", TAG + 1);
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message = ucp_tag_probe_nb(receiver->worker, TAG + 1,
                                                 ALL_BITS, 1, &info);
    ASSERT_NE(nullptr, message);
    EXPECT_EQ(8u, info.length);

    std::string data(8, 0);
    EXPECT_EQ(UCS_OK, wait(recv(data, TAG + 1)));
    EXPECT_EQ("abcdefgh", data);
    ucp_request_param_t param = {};
    EXPECT_EQ(UCS_OK, wait(ucp_tag_msg_recv_nbx(receiver->worker, &data[0], 8,
                                                message, &param)));
    EXPECT_EQ("12345678", data);
}

TEST_F(UcpRecv, LongMessagesFindReceivesThatWerePostedForThem)
{
    for (size_t length : {300u, 5000u, 9000u, 20000u, 100000u, 1000000u}) {
        const std::string data(length, 'a' + length % 26);
        std::string received(length, 0);
        ucs_status_ptr_t request = recv(received);
        ucp_request_param_t param = {};
        ucs_status_ptr_t send_request = ucp_tag_send_nbx(
                ep, data.data(), data.size(), TAG, &param);
        EXPECT_EQ(UCS_OK, wait(send_request));
        EXPECT_EQ(UCS_OK, wait(request));
        EXPECT_EQ(data, received);
    }
}
