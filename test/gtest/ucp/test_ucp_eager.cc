/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_pair.h>

#include <cstdlib>
#include <cstring>
#include <string>

/* Short messages of endpoints that are ready for them, and what takes that
 * back; and all the messages that only look short. */
class UcpEager : public UcpPair {
public:
    static constexpr ucp_tag_t TAG      = 0x1234567800000007;
    static constexpr unsigned AM_ID     = 5;
    static constexpr ucp_tag_t ALL_BITS = -1;

    struct Message {
        std::string header, data;
        uint64_t attr;
        bool has_reply_ep;
    };

    void SetUp() override
    {
        sender   = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                               UCP_FEATURE_AM);
        receiver = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                               UCP_FEATURE_AM);
        receive_am(*receiver);
    }

    /* Have active messages of a worker added to the messages. */
    void receive_am(UcpWorker &worker, unsigned flags = 0)
    {
        ucp_am_handler_param_t param = {};
        param.field_mask             = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                       UCP_AM_HANDLER_PARAM_FIELD_CB |
                                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
        param.flags                  = flags;
        param.id                     = AM_ID;
        param.cb                     = am_arrived;
        param.arg                    = this;
        ASSERT_EQ(UCS_OK,
                  ucp_worker_set_am_recv_handler(worker.worker, &param));
    }

    static ucs_status_t am_arrived(void *arg, const void *header,
                                   size_t header_length, void *data,
                                   size_t length,
                                   const ucp_am_recv_param_t *param)
    {
        UcpEager *self = static_cast<UcpEager*>(arg);
        Message message;
        message.header.assign(static_cast<const char*>(header), header_length);
        message.attr         = param->recv_attr;
        message.has_reply_ep = (param->recv_attr &
                                UCP_AM_RECV_ATTR_FIELD_REPLY_EP) &&
                               (param->reply_ep != nullptr);
        if (self->keep_data &&
            (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA)) {
            message.data.resize(length);
            self->messages.push_back(message);
            self->kept.push_back(data);
            return UCS_INPROGRESS;
        }
        if (self->fetch_data &&
            (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA)) {
            message.data.resize(length);
            self->messages.push_back(message);
            ucp_request_param_t no_callback = {};
            EXPECT_EQ(nullptr,
                      ucp_am_recv_data_nbx(self->receiver->worker, data,
                                           &self->messages.back().data[0],
                                           length, &no_callback));
            return UCS_OK;
        }
        if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
            message.data.resize(length);
            self->messages.push_back(message);
            ucp_request_param_t no_callback = {};
            self->fetch = ucp_am_recv_data_nbx(self->receiver->worker, data,
                                               &self->messages.back().data[0],
                                               length, &no_callback);
            EXPECT_FALSE(UCS_PTR_IS_ERR(self->fetch));
            return UCS_INPROGRESS;
        }

        message.data.assign(static_cast<const char*>(data), length);
        self->messages.push_back(message);
        return UCS_OK;
    }

    ucs_status_ptr_t tag_send(ucp_ep_h ep, const std::string &data,
                              ucp_tag_t tag                    = TAG,
                              const ucp_request_param_t &param = {})
    {
        return ucp_tag_send_nbx(ep, data.data(), data.size(), tag, &param);
    }

    ucs_status_ptr_t tag_recv(UcpWorker &worker, std::string &data,
                              ucp_tag_t tag = TAG, ucp_tag_t mask = ALL_BITS)
    {
        ucp_request_param_t param = {};
        return ucp_tag_recv_nbx(worker.worker, &data[0], data.size(), tag, mask,
                                &param);
    }

    ucs_status_ptr_t am_send(ucp_ep_h ep, const std::string &header,
                             const std::string &data, uint32_t flags = 0,
                             ucp_request_param_t param = {})
    {
        if (flags != 0) {
            param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
            param.flags         = flags;
        }
        return ucp_am_send_nbx(ep, AM_ID, header.data(), header.size(),
                               data.data(), data.size(), &param);
    }

    /* A message there, whatever way it takes. */
    void exchange(ucp_ep_h ep, UcpWorker &to, const std::string &data)
    {
        std::string received(data.size(), 0);
        ucs_status_ptr_t recv = tag_recv(to, received);
        ASSERT_EQ(UCS_OK, wait(tag_send(ep, data)));
        ASSERT_EQ(UCS_OK, wait(recv));
        ASSERT_EQ(data, received);
    }

    void expect_am(size_t count)
    {
        ASSERT_TRUE(progress_until([&] { return messages.size() >= count; }));
        ASSERT_EQ(count, messages.size());
    }

    static std::string text(size_t length, unsigned seed = 0)
    {
        std::string s(length, 0);
        for (size_t i = 0; i < length; ++i) {
            s[i] = 'A' + ((seed + i * 7) % 53);
        }
        return s;
    }

    static void count_send(void *request, ucs_status_t status, void *arg)
    {
        EXPECT_EQ(UCS_OK, status);
        ++*static_cast<unsigned*>(arg);
    }

    /* Tagged and active messages of many lengths, with or without the handle of
     * their memory. */
    void send_all_lengths(ucp_ep_h ep, uint64_t memh)
    {
        unsigned completed = 0, expected = 0;
        size_t count       = 0;
        ucp_request_param_t param = {};
        param.op_attr_mask        = memh | UCP_OP_ATTR_FIELD_CALLBACK |
                                    UCP_OP_ATTR_FIELD_USER_DATA;
        param.memh                = sender->memh;
        param.cb.send             = count_send;
        param.user_data           = &completed;
        for (unsigned round = 0; round < 2; ++round) {
            for (size_t length : {0, 1, 8, 100, 180, 200, 1000, 4000, 8000,
                                  9000, 30000, 60000}) {
                const std::string data = text(length, length);
                memcpy(sender->memory, data.data(), length);

                std::string received(length, 0);
                ucs_status_ptr_t recv = tag_recv(*receiver, received);
                ucs_status_ptr_t request;
                request   = ucp_tag_send_nbx(ep, sender->memory, length, TAG,
                                             &param);
                expected += UCS_PTR_IS_PTR(request);
                ASSERT_EQ(UCS_OK, wait(request));
                ASSERT_EQ(UCS_OK, wait(recv));
                ASSERT_EQ(data, received);

                for (const std::string header : {"", "with a header"}) {
                    request   = ucp_am_send_nbx(ep, AM_ID, header.data(),
                                                header.size(), sender->memory,
                                                length, &param);
                    expected += UCS_PTR_IS_PTR(request);
                    expect_am(++count);
                    ASSERT_EQ(UCS_OK, wait(fetch));
                    fetch = nullptr;
                    ASSERT_EQ(UCS_OK, wait(request));
                    ASSERT_EQ(header, messages.back().header) << length;
                    ASSERT_EQ(data, messages.back().data) << length;
                }
            }
            /* Now all say what they are of */
            param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
            param.datatype      = ucp_dt_make_contig(1);
        }
        EXPECT_EQ(expected, completed);
    }

    std::vector<Message> messages;
    std::vector<void*> kept;
    bool keep_data = false, fetch_data = false;
    ucs_status_ptr_t fetch = nullptr;
};


/* A setting of contexts that are created while this exists. */
class UcpEagerSetting {
public:
    explicit UcpEagerSetting(const char *value,
                             const char *variable = "UCX_OPT_EAGER")
        : name(variable)
    {
        const char *before = getenv(name);
        has_before         = before != nullptr;
        saved              = has_before ? before : "";
        setenv(name, value, 1);
    }

    ~UcpEagerSetting()
    {
        if (has_before) {
            setenv(name, saved.c_str(), 1);
        } else {
            unsetenv(name);
        }
    }

private:
    const char *name;
    bool has_before;
    std::string saved;
};


TEST_F(UcpEager, TaggedMessagesOfEveryLengthArriveAlsoWhileConnecting)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    for (size_t length = 0; length < 3000; length += (length < 300) ? 1 : 97) {
        exchange(ep, *receiver, text(length, length));
        ASSERT_FALSE(HasFatalFailure()) << length;
    }
    close(*sender, ep);
}

TEST_F(UcpEager, MoreMessagesThanTheQueueHoldsArriveInOrder)
{
    const size_t count = 5000;
    ucp_ep_h ep        = connect(*sender, *receiver);
    exchange(ep, *receiver, "connected");

    std::vector<std::string> data;
    std::vector<ucs_status_ptr_t> requests;
    for (size_t i = 0; i < count; ++i) {
        data.push_back(std::to_string(i));
    }
    for (size_t i = 0; i < count; ++i) {
        ucs_status_ptr_t request = tag_send(ep, data[i]);
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        if (request != nullptr) {
            requests.push_back(request);
        }
    }
    EXPECT_LT(0u, requests.size()) << "the queue is longer than that";

    for (size_t i = 0; i < count; ++i) {
        std::string received(data[i].size(), 0);
        ASSERT_EQ(UCS_OK, wait(tag_recv(*receiver, received)));
        ASSERT_EQ(data[i], received);
    }
    for (ucs_status_ptr_t request : requests) {
        EXPECT_EQ(UCS_OK, wait(request));
    }
    close(*sender, ep);
}

TEST_F(UcpEager, MoreActiveMessagesThanTheQueueHoldsArriveInOrder)
{
    const size_t count = 5000;
    ucp_ep_h ep        = connect(*sender, *receiver);
    ASSERT_EQ(UCS_OK, wait(am_send(ep, "", "connected")));
    expect_am(1);
    messages.clear();

    const std::string none;
    std::vector<std::string> data;
    std::vector<ucs_status_ptr_t> requests;
    for (size_t i = 0; i < count; ++i) {
        data.push_back(std::to_string(i));
    }
    for (size_t i = 0; i < count; ++i) {
        ucs_status_ptr_t request = am_send(ep, (i % 3 == 0) ? data[i] : none,
                                           (i % 3 == 0) ? none : data[i]);
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        if (request != nullptr) {
            requests.push_back(request);
        }
    }
    EXPECT_LT(0u, requests.size()) << "the queue is longer than that";

    expect_am(count);
    for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(data[i], messages[i].header + messages[i].data);
        ASSERT_EQ(i % 3 == 0, messages[i].data.empty());
    }
    for (ucs_status_ptr_t request : requests) {
        EXPECT_EQ(UCS_OK, wait(request));
    }
    close(*sender, ep);
}

TEST_F(UcpEager, ActiveMessagesHaveTheirHeaderDataAndFlags)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    const std::vector<size_t> lengths = {0, 1, 7, 8, 9, 60, 100, 180, 190, 200,
                                         300, 3000};
    const std::vector<uint32_t> flags = {0, UCP_AM_SEND_FLAG_EAGER,
                                         UCP_AM_SEND_FLAG_REPLY,
                                         UCP_AM_SEND_FLAG_EAGER |
                                         UCP_AM_SEND_FLAG_REPLY,
                                         UCP_AM_SEND_FLAG_RNDV};
    /* rc_verbs gives the queue one piece more than that takes. */
    const char *tls    = getenv("UCX_TLS");
    const bool replies = (tls == nullptr) ||
                         (strstr(tls, "rc_verbs") == nullptr);
    size_t count       = 0;
    for (uint32_t flag : flags) {
        for (size_t header_length : lengths) {
            for (size_t length : lengths) {
                if ((header_length > 300) ||
                    ((flag & UCP_AM_SEND_FLAG_RNDV) && (length == 0)) ||
                    ((flag & UCP_AM_SEND_FLAG_REPLY) && !replies)) {
                    continue;
                }
                const std::string header = text(header_length, 1);
                const std::string data   = text(length, 2);
                ucs_status_ptr_t request = am_send(ep, header, data, flag);
                expect_am(++count);
                ASSERT_EQ(UCS_OK, wait(fetch));
                fetch = nullptr;
                ASSERT_EQ(UCS_OK, wait(request));
                const Message &message = messages.back();
                ASSERT_EQ(header, message.header)
                        << header_length << " " << length << " " << flag;
                ASSERT_EQ(data, message.data)
                        << header_length << " " << length << " " << flag;
                ASSERT_EQ(!!(flag & UCP_AM_SEND_FLAG_RNDV),
                          !!(message.attr & UCP_AM_RECV_ATTR_FLAG_RNDV));
                if (flag & UCP_AM_SEND_FLAG_REPLY) {
                    ASSERT_TRUE(message.has_reply_ep);
                } else if (!(flag & UCP_AM_SEND_FLAG_RNDV)) {
                    ASSERT_FALSE(message.has_reply_ep);
                }
            }
        }
    }
    close(*sender, ep);
}

/* Whether messages have the handle of their memory. */
class UcpEagerMemh : public UcpEager,
                     public ::testing::WithParamInterface<uint64_t> {
protected:
    /* From a sender that copies no message that is not short */
    ucp_ep_h connect_without_copies()
    {
        UcpEagerSetting setting("0", "UCX_ZCOPY_THRESH");
        sender = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                             UCP_FEATURE_AM);
        return connect(*sender, *receiver);
    }
};

INSTANTIATE_TEST_SUITE_P(, UcpEagerMemh,
                         ::testing::Values(0, UCP_OP_ATTR_FIELD_MEMH),
                         [](const auto &info) {
                             return info.param ? "handle" : "none";
                         });

TEST_F(UcpEager, MessagesFromRegisteredMemoryOfEveryLengthArrive)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    send_all_lengths(ep, UCP_OP_ATTR_FIELD_MEMH);
    close(*sender, ep);
}

TEST_P(UcpEagerMemh, MessagesOfEveryLengthAreSentFromWhereTheyAre)
{
    ucp_ep_h ep = connect_without_copies();
    send_all_lengths(ep, GetParam());
    close(*sender, ep);
}

TEST_P(UcpEagerMemh, TheUsersRequestSends)
{
    ucp_ep_h ep = connect_without_copies();
    exchange(ep, *receiver, "connected");

    ucp_context_attr_t attr = {};
    attr.field_mask         = UCP_ATTR_FIELD_REQUEST_SIZE;
    ASSERT_EQ(UCS_OK, ucp_context_query(sender->context, &attr));
    std::vector<uint64_t> memory(attr.request_size / sizeof(uint64_t) + 1);
    ucp_request_param_t param = {};
    param.op_attr_mask        = GetParam() |
                                UCP_OP_ATTR_FIELD_REQUEST;
    param.memh                = sender->memh;
    param.request             = &memory.back() + 1;
    for (unsigned i = 0; i < 10; ++i) {
        const std::string data = text(3000, i);
        memcpy(sender->memory, data.data(), data.size());
        std::string received(data.size(), 0);
        ucs_status_ptr_t recv = tag_recv(*receiver, received);
        ucs_status_ptr_t send = ucp_tag_send_nbx(ep, sender->memory,
                                                 data.size(), TAG, &param);
        ASSERT_TRUE((send == nullptr) || (send == param.request));
        ASSERT_TRUE(progress_until([&] {
            return (send == nullptr) ||
                   (ucp_request_check_status(send) != UCS_INPROGRESS);
        }));
        EXPECT_TRUE((send == nullptr) ||
                    (ucp_request_check_status(send) == UCS_OK));
        EXPECT_EQ(UCS_OK, wait(recv));
        EXPECT_EQ(data, received);
    }
    close(*sender, ep);
}

TEST_P(UcpEagerMemh, MoreMessagesThanTheQueueHoldsArrive)
{
    const size_t count = 3000, length = 700;
    ucp_ep_h ep = connect_without_copies();
    exchange(ep, *receiver, "connected");

    ucp_request_param_t param = {};
    param.op_attr_mask        = GetParam();
    param.memh                = sender->memh;
    const std::string data    = text(UcpWorker::SIZE);
    memcpy(sender->memory, data.data(), data.size());
    std::vector<ucs_status_ptr_t> requests;
    for (size_t i = 0; i < count; ++i) {
        const char *buffer       = sender->memory + i;
        ucs_status_ptr_t request = (i % 2 == 0) ?
                ucp_tag_send_nbx(ep, buffer, length, TAG, &param) :
                ucp_am_send_nbx(ep, AM_ID, nullptr, 0, buffer, length, &param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        if (request != nullptr) {
            requests.push_back(request);
        }
    }
    expect_am(count / 2);
    for (size_t i = 0; i < count; ++i) {
        std::string received = messages[i / 2].data;
        if (i % 2 == 0) {
            received.assign(length, 0);
            ASSERT_EQ(UCS_OK, wait(tag_recv(*receiver, received)));
        }
        ASSERT_EQ(data.substr(i, length), received) << i;
    }
    for (ucs_status_ptr_t request : requests) {
        EXPECT_EQ(UCS_OK, wait(request));
    }
    close(*sender, ep);
}

TEST_P(UcpEagerMemh, ARequestUnderWayTellsWhatItIs)
{
    if (has_shared_memory()) {
        GTEST_SKIP() << "shared memory copies what is sent at once";
    }

    ucp_ep_h ep = connect_without_copies();
    exchange(ep, *receiver, "connected");

    ucp_request_param_t param = {};
    param.op_attr_mask        = GetParam();
    param.memh                = sender->memh;

    /* UCX 1.13.1 does not tell it with version 2 of the protocols */
    const char *proto = getenv("UCX_PROTO_ENABLE");
    const bool has_mem_type = is_ucx_since(18) || (proto == nullptr) ||
                              (*proto != 'y');
    for (bool is_am : {false, true}) {
        ucs_status_ptr_t request = is_am ?
                ucp_am_send_nbx(ep, AM_ID, nullptr, 0, sender->memory, 3000,
                                &param) :
                ucp_tag_send_nbx(ep, sender->memory, 3000, TAG, &param);
        ASSERT_TRUE(UCS_PTR_IS_PTR(request));
        char text[200];
        ucp_request_attr_t attr      = {};
        attr.field_mask              = UCP_REQUEST_ATTR_FIELD_INFO_STRING |
                                       UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE |
                                       UCP_REQUEST_ATTR_FIELD_STATUS |
                                       UCP_REQUEST_ATTR_FIELD_MEM_TYPE;
        attr.debug_string            = text;
        attr.debug_string_size       = sizeof(text);
        ASSERT_EQ(UCS_OK, ucp_request_query(request, &attr));
        EXPECT_EQ(UCS_INPROGRESS, attr.status);
        if (has_mem_type) {
            EXPECT_EQ(UCS_MEMORY_TYPE_HOST, attr.mem_type);
        }
        /* As version 2 and version 1 of the protocols have it */
        EXPECT_TRUE((strstr(text, "copy") != nullptr) ||
                    (strstr(text, "send length 3000") != nullptr)) << text;
        EXPECT_EQ(UCS_OK, wait(request));
    }
    expect_am(1);
    std::string received(3000, 0);
    EXPECT_EQ(UCS_OK, wait(tag_recv(*receiver, received)));
    close(*sender, ep);
}

TEST_F(UcpEager, DataOfActiveMessagesMayBeKept)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    ASSERT_EQ(UCS_OK, wait(am_send(ep, "", "connected")));
    expect_am(1);
    messages.clear();

    for (unsigned round = 0; round < 20; ++round) {
        /* whether the transport lends its memory or not */
        const bool all = round >= 10;
        receive_am(*receiver, all ? UCP_AM_FLAG_PERSISTENT_DATA : 0);
        keep_data = true;
        for (unsigned i = 0; i < 50; ++i) {
            ASSERT_EQ(UCS_OK, wait(am_send(ep, text(i % 5, i),
                                           text(8 + i % 3, round + i))));
        }
        expect_am(50);
        keep_data = false;
        for (unsigned i = 0; i < 50; ++i) {
            ASSERT_EQ(UCS_OK, wait(am_send(ep, "", "other data")));
        }
        expect_am(100);

        size_t next = 0;
        for (unsigned i = 0; (i < 50) && !kept.empty(); ++i) {
            ASSERT_EQ(text(i % 5, i), messages[i].header);
            ASSERT_EQ(8 + i % 3, messages[i].data.size());
            const std::string data(static_cast<const char*>(kept[next]),
                                   8 + i % 3);
            ASSERT_EQ(text(8 + i % 3, round + i), data) << i;
            ucp_am_data_release(receiver->worker, kept[next]);
            ++next;
        }
        ASSERT_EQ(kept.size(), next);
        ASSERT_TRUE(!all || (next == 50));
        kept.clear();
        messages.clear();
    }
    close(*sender, ep);
}

TEST_F(UcpEager, DataOfActiveMessagesMayBeFetchedInTheCallback)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    fetch_data  = true;
    for (unsigned i = 1; i < 200; ++i) {
        ASSERT_EQ(UCS_OK, wait(am_send(ep, text(i % 5, i), text(i, i))));
        expect_am(i);
        ASSERT_EQ(text(i % 5, i), messages.back().header);
        ASSERT_EQ(text(i, i), messages.back().data);
    }
    close(*sender, ep);
}

TEST_F(UcpEager, DatatypesAreCountedInElements)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    exchange(ep, *receiver, "connected");

    const std::string data    = text(96);
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_DATATYPE;
    for (size_t element : {1, 3, 8, 96}) {
        param.datatype = ucp_dt_make_contig(element);
        std::string received(data.size(), 0);
        ucs_status_ptr_t recv = tag_recv(*receiver, received);
        ASSERT_EQ(UCS_OK, wait(ucp_tag_send_nbx(ep, data.data(),
                                                data.size() / element, TAG,
                                                &param)));
        ASSERT_EQ(UCS_OK, wait(recv));
        EXPECT_EQ(data, received) << element;

        messages.clear();
        ASSERT_EQ(UCS_OK, wait(ucp_am_send_nbx(ep, AM_ID, nullptr, 0,
                                               data.data(),
                                               data.size() / element, &param)));
        expect_am(1);
        EXPECT_EQ(data, messages.back().data) << element;
    }

    /* Not a buffer but a list of them, whose count is small. */
    ucp_dt_iov_t iov[2] = {{const_cast<char*>(data.data()), 40},
                           {const_cast<char*>(data.data()) + 40, 56}};
    param.datatype      = ucp_dt_make_iov();
    std::string received(data.size(), 0);
    ucs_status_ptr_t recv = tag_recv(*receiver, received);
    ASSERT_EQ(UCS_OK, wait(ucp_tag_send_nbx(ep, iov, 2, TAG, &param)));
    ASSERT_EQ(UCS_OK, wait(recv));
    EXPECT_EQ(data, received);
    messages.clear();
    ASSERT_EQ(UCS_OK,
              wait(ucp_am_send_nbx(ep, AM_ID, nullptr, 0, iov, 2, &param)));
    expect_am(1);
    EXPECT_EQ(data, messages.back().data);
    close(*sender, ep);
}

TEST_F(UcpEager, ARequestIsGivenIfOneIsAskedFor)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    exchange(ep, *receiver, "connected");

    unsigned completed        = 0;
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FLAG_NO_IMM_CMPL |
                                UCP_OP_ATTR_FIELD_CALLBACK |
                                UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send             = count_send;
    param.user_data           = &completed;
    const std::string none, data = "data", more = "more";
    std::string received(4, 0);
    ucs_status_ptr_t recv = tag_recv(*receiver, received);
    ucs_status_ptr_t send = tag_send(ep, data, TAG, param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send));
    EXPECT_EQ(UCS_OK, wait(send));
    EXPECT_EQ(UCS_OK, wait(recv));
    EXPECT_EQ(1u, completed);
    EXPECT_EQ("data", received);

    send = am_send(ep, none, data, 0, param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send));
    EXPECT_EQ(UCS_OK, wait(send));
    EXPECT_EQ(2u, completed);
    expect_am(1);

    /* It may be complete at once as well, without a callback then. */
    param.op_attr_mask &= ~UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    EXPECT_EQ(nullptr, tag_send(ep, more, TAG, param));
    EXPECT_EQ(nullptr, am_send(ep, none, more, 0, param));
    EXPECT_EQ(2u, completed);
    EXPECT_EQ(UCS_OK, wait(tag_recv(*receiver, received)));
    EXPECT_EQ("more", received);
    expect_am(2);
    close(*sender, ep);
}

/* Where UCX checks parameters, an endpoint that is ready lets none through: the
 * ID was cut off to that of another handler */
TEST_F(UcpEager, WrongParametersAreSeenByAnEndpointThatIsReady)
{
    const ucp_request_param_t none = {};
    const std::string data         = "data";
    ucp_ep_h ep                    = connect(*sender, *receiver);

    const auto send_wrong = [&] {
        return ucp_am_send_nbx(ep, AM_ID + UINT16_MAX + 1, nullptr, 0,
                               data.data(), data.size(), &none);
    };
    ucs_status_ptr_t status = send_wrong();
    const bool is_checked   = status == UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    if (!is_checked) {
        EXPECT_EQ(UCS_OK, wait(status));
        close(*sender, ep);
        GTEST_SKIP() << "this UCX checks no parameters";
    }

    exchange(ep, *receiver, "connected");
    EXPECT_EQ(UCS_OK, wait(am_send(ep, "", data)));
    EXPECT_EQ(UCS_OK, wait(am_send(ep, "", data)));
    expect_am(2);
    EXPECT_EQ(UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM), send_wrong());
    if (is_ucx_since(18)) {
        ucp_request_param_t both = {};
        both.op_attr_mask        = UCP_OP_ATTR_FLAG_FAST_CMPL |
                                   UCP_OP_ATTR_FLAG_MULTI_SEND;
        EXPECT_EQ(UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM),
                  tag_send(ep, data, TAG, both));
        EXPECT_EQ(UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM),
                  am_send(ep, "", data, 0, both));
    }
    expect_am(2);
    close(*sender, ep);
}

TEST_F(UcpEager, SynchronousMessagesWaitForTheirReceiver)
{
    ucp_ep_h ep = connect(*sender, *receiver);
    exchange(ep, *receiver, "connected");

    ucp_request_param_t param = {};
    ucs_status_ptr_t send     = ucp_tag_send_sync_nbx(ep, "data", 4, TAG,
                                                      &param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send));
    for (int i = 0; i < 1000; ++i) {
        progress();
    }
    EXPECT_EQ(UCS_INPROGRESS, ucp_request_check_status(send));
    std::string received(4, 0);
    EXPECT_EQ(UCS_OK, wait(tag_recv(*receiver, received)));
    EXPECT_EQ(UCS_OK, wait(send));
    EXPECT_EQ("data", received);
    close(*sender, ep);
}

TEST_F(UcpEager, EndpointsComeAndGo)
{
    for (unsigned i = 0; i < 10; ++i) {
        /* A new endpoint is likely to have the memory of the old one. */
        ucp_ep_h ep = connect(*sender, *receiver);
        for (unsigned k = 0; k < 3; ++k) {
            exchange(ep, *receiver, text(20, i + k));
        }
        close(*sender, ep);
    }
}

TEST_F(UcpEager, WorkersForSeveralThreadsSendAsWell)
{
    sender      = std::make_unique<UcpWorker>(UCS_THREAD_MODE_MULTI,
                                              UCP_FEATURE_AM);
    ucp_ep_h ep = connect(*sender, *receiver);
    for (unsigned i = 0; i < 100; ++i) {
        exchange(ep, *receiver, text(i % 20, i));
        ASSERT_EQ(UCS_OK, wait(am_send(ep, "", text(i % 20, i))));
        expect_am(i + 1);
    }
    close(*sender, ep);
}

TEST_F(UcpEager, AFailedEndpointSendsNothing)
{
    ucp_ep_h ep = connect(*sender, *receiver, UCP_ERR_HANDLING_MODE_PEER);
    exchange(ep, *receiver, "connected");
    exchange(ep, *receiver, "ready");

    /* The peer goes away without a word. Until that is noticed, not so much is
     * sent that requests are pending: if any are, UCX 1.13.1 with
     * UCX_PROTO_ENABLE=y aborts, with any transport. */
    receiver.reset();
    wait(tag_send(ep, "data"));
    ASSERT_TRUE(progress_until([&] {
        return errors > 0;
    })) << "the failure was not noticed";
    for (unsigned i = 0; i < 10; ++i) {
        EXPECT_NE(UCS_OK, wait(tag_send(ep, "data")));
        EXPECT_NE(UCS_OK, wait(am_send(ep, "", "data")));
    }
    close(*sender, ep, UCP_EP_CLOSE_MODE_FORCE);
}

TEST_P(UcpEagerMemh, WhatAFailedEndpointSendsFails)
{
    UcpEagerSetting setting("0", "UCX_ZCOPY_THRESH");
    sender      = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                              UCP_FEATURE_AM);
    ucp_ep_h ep = connect(*sender, *receiver, UCP_ERR_HANDLING_MODE_PEER);
    exchange(ep, *receiver, "connected");
    exchange(ep, *receiver, "ready");

    ucs_status_t completed    = UCS_INPROGRESS;
    ucp_request_param_t param = {};
    param.op_attr_mask        = GetParam() |
                                UCP_OP_ATTR_FIELD_CALLBACK |
                                UCP_OP_ATTR_FIELD_USER_DATA;
    param.memh                = sender->memh;
    param.user_data           = &completed;
    param.cb.send             = [](void *request, ucs_status_t status,
                                   void *arg) {
        EXPECT_EQ(UCS_INPROGRESS, *static_cast<ucs_status_t*>(arg));
        *static_cast<ucs_status_t*>(arg) = status;
    };
    receiver.reset();
    ucs_status_ptr_t send = ucp_tag_send_nbx(ep, sender->memory, 2000, TAG,
                                             &param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send));
    EXPECT_NE(UCS_OK, wait(send));
    EXPECT_GT(UCS_OK, completed);
    close(*sender, ep, UCP_EP_CLOSE_MODE_FORCE);
}

TEST_F(UcpEager, BothWaysOfSendingAreTheSameForTheReceiver)
{
    const std::vector<const char*> settings = {"n", "y"};
    for (const char *from : settings) {
        for (const char *to : settings) {
            messages.clear();
            {
                UcpEagerSetting setting(from);
                sender = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                                     UCP_FEATURE_AM);
            }
            {
                UcpEagerSetting setting(to);
                receiver = std::make_unique<UcpWorker>(UCS_THREAD_MODE_SINGLE,
                                                       UCP_FEATURE_AM);
            }
            receive_am(*receiver);

            ucp_ep_h ep = connect(*sender, *receiver);
            for (unsigned i = 0; i < 40; ++i) {
                exchange(ep, *receiver, text(i, i));
                ASSERT_FALSE(HasFatalFailure()) << from << to << i;
                ASSERT_EQ(UCS_OK, wait(am_send(ep, text(i % 3, i),
                                               text(i, i))));
                expect_am(i + 1);
                EXPECT_EQ(text(i % 3, i), messages.back().header);
                EXPECT_EQ(text(i, i), messages.back().data);
            }
            close(*sender, ep);
        }
    }
}
