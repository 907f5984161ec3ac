/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ucp_opt.h"


class test_ucp_opt_eager : public test_ucp_opt {
public:
    test_ucp_opt_eager(const std::string &name = "EAGER") : test_ucp_opt(name)
    {
    }

protected:
    static constexpr unsigned AM_ID = 1;

    void init() override
    {
        ucp_am_handler_param_t param;

        test_ucp_opt::init();
        param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                           UCP_AM_HANDLER_PARAM_FIELD_CB |
                           UCP_AM_HANDLER_PARAM_FIELD_ARG;
        param.id         = AM_ID;
        param.cb         = am_cb;
        param.arg        = &m_received;
        ASSERT_UCS_OK(ucp_worker_set_am_recv_handler(receiver().worker(),
                                                     &param));
    }

    static ucs_status_t am_cb(void *arg, const void *header, size_t header_len,
                              void *data, size_t length,
                              const ucp_am_recv_param_t *param)
    {
        reinterpret_cast<std::vector<std::string>*>(arg)->emplace_back(
                reinterpret_cast<const char*>(data), length);
        return UCS_OK;
    }

    ucs_status_ptr_t send(bool is_am, const std::string &data)
    {
        return is_am ? ucp_am_send_nbx(sender().ep(), AM_ID, NULL, 0,
                                       data.data(), data.size(), &m_param) :
                       ucp_tag_send_nbx(sender().ep(), data.data(),
                                        data.size(), 17, &m_param);
    }

    ucs_status_ptr_t receive(void *data, size_t length, ucp_tag_t tag,
                             ucp_tag_t mask)
    {
        return ucp_tag_recv_nbx(receiver().worker(), data, length, tag, mask,
                                &m_param);
    }

    void receive_and_check(bool is_am, const std::string &data)
    {
        std::string received(data.size(), 0);

        if (is_am) {
            wait_for_cond([&]() { return !m_received.empty(); },
                          [&]() { progress(); });
            ASSERT_EQ(1u, m_received.size());
            received.swap(m_received[0]);
            m_received.clear();
        } else {
            ASSERT_UCS_OK(request_wait(receive(&received[0], received.size(),
                                               17, -1)));
        }
        ASSERT_EQ(data, received);
    }

    void send_and_check(bool is_am, const std::string &data)
    {
        void *req = send(is_am, data);
        receive_and_check(is_am, data);
        ASSERT_UCS_OK(request_wait(req));
    }

    void test_lengths()
    {
        for (size_t length = 0; length <= 8000;
             length += (length < 300) ? 1 : 77) {
            const std::string data(length, 'a' + (length % 26));
            std::string expected(length, 0);
            void *rreq = receive(&expected[0], length, 17, -1);

            ASSERT_UCS_OK(requests_wait({send(false, data), rreq}));
            ASSERT_EQ(data, expected);
            send_and_check(false, data);
            send_and_check(true, data);
            if ((length % 50) == 0) {
                UCS_ASYNC_BLOCK(&sender().worker()->async);
                ucp_opt_ep_lanes_changed(sender().ep());
                UCS_ASYNC_UNBLOCK(&sender().worker()->async);
                EXPECT_EQ(0u, sender().ep()->opt_eager.tag_limit);
                EXPECT_EQ(0u, sender().ep()->opt_eager.am_bcopy);
            }
        }
    }

    std::vector<std::string>  m_received;
    const ucp_request_param_t m_param = {};
};

UCS_TEST_P(test_ucp_opt_eager, without_request, "RNDV_THRESH=inf",
           "ZCOPY_THRESH=inf")
{
    const std::string data(1024, 'x'); /* Copied, and too long to be short */

    if (is_self() || has_any_transport({"tcp", "shm"})) {
        UCS_TEST_SKIP_R("messages of this length are not copied at once");
    }

    for (bool is_am : {false, true}) {
        /* The first ones make the endpoint ready */
        send_and_check(is_am, data);
        wait_connected();
        send_and_check(is_am, data);
        {
            no_requests guard(sender());
            check_needs_no_request(send(is_am, data));
        }
        if (is_opt()) {
            receive_and_check(is_am, data);
        }
    }
}

UCP_INSTANTIATE_TEST_CASE(test_ucp_opt_eager)

/* Around all limits of messages of one piece, whoever is first, also if what
 * the endpoint is ready for changes */
UCS_TEST_P(test_ucp_opt_eager, lengths, "RNDV_THRESH=inf")
{
    test_lengths();
}


/* The same messages, received with what is needed for one of one piece */
class test_ucp_opt_recv : public test_ucp_opt_eager {
public:
    test_ucp_opt_recv() : test_ucp_opt_eager("RECV")
    {
    }
};

UCS_TEST_P(test_ucp_opt_recv, lengths, "RNDV_THRESH=inf")
{
    test_lengths();
}

/* A receive for any tag gets what came before the one for its own tag was
 * posted; what is too long for a buffer, and what is canceled, is told */
UCS_TEST_P(test_ucp_opt_recv, order)
{
    uint64_t any = 0, own = 0;
    ucp_tag_recv_info_t info;
    uint32_t little = 0;
    uint64_t value  = 1;

    void *any_req  = receive(&any, sizeof(any), 0, 0);
    void *own_req  = receive(&own, sizeof(own), 17, -1);
    void *late_req = receive(&little, sizeof(little), 17, -1);
    for (; value <= 3; ++value) {
        ASSERT_UCS_OK(request_wait(send(false, std::string((char*)&value, 8))));
    }
    request_wait(any_req);
    request_wait(own_req);
    EXPECT_EQ(1u, any);
    EXPECT_EQ(2u, own);
    wait_for_cond([&]() { return is_request_completed(late_req); },
                  [&]() { progress(); });
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED,
              ucp_tag_recv_request_test(late_req, &info));
    ucp_request_free(late_req);

    request_cancel(receiver(), receive(&own, sizeof(own), 17, -1));
    send_and_check(false, "after that");
}

UCP_INSTANTIATE_TEST_CASE(test_ucp_opt_recv)
