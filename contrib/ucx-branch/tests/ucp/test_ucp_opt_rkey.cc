/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ucp_opt.h"

extern "C" {
#include <ucp/core/ucp_rkey.h>
}


class test_ucp_opt_rkey : public test_ucp_opt {
public:
    test_ucp_opt_rkey() : test_ucp_opt("RKEY")
    {
    }

protected:
    /* What the transport copies, but is too long to be short */
    static constexpr size_t BCOPY = 1024;

    void init() override
    {
        test_ucp_opt::init();
        m_memory.reset(new mapped_buffer(65536, receiver()));
        m_memory->rkey(sender(), m_rkey);
    }

    void cleanup() override
    {
        m_rkey.reset();
        m_memory.reset();
        test_ucp_opt::cleanup();
    }

    ucs_status_ptr_t put(const void *buffer, size_t length)
    {
        return ucp_put_nbx(sender().ep(), buffer, length,
                           (uint64_t)m_memory->ptr(), m_rkey, &m_param);
    }

    void put_and_check(size_t length, char seed)
    {
        std::string data(length, seed);
        void *req = put(data.data(), length);

        flush_ep(sender());
        ASSERT_UCS_OK(request_wait(req));
        ASSERT_EQ(0, memcmp(m_memory->ptr(), data.data(), length)) << length;
    }

    /* Have the key made ready, if that is possible with this transport */
    bool is_ready()
    {
        ucp_rkey_h rkey = m_rkey;

        wait_connected();
        put_and_check(8, 'r');
        return (rkey->opt.state == sender().ep()->opt_state) &&
               (rkey->opt.state >= UCP_OPT_STATE_FIRST);
    }

    std::unique_ptr<mapped_buffer> m_memory;
    ucs::handle<ucp_rkey_h>        m_rkey;
    const ucp_request_param_t      m_param = {};
};

/* The second key of a kind is not looked up, and both are used with their own
 * memory */
UCS_TEST_P(test_ucp_opt_rkey, one_class)
{
    bool ready = is_ready();
    mapped_buffer other(4096, receiver());
    ucs::handle<ucp_rkey_h> other_rkey = other.rkey(sender());
    const uint64_t value[2]            = {1, 2};
    ucp_rkey_h rkey                    = other_rkey;

    if (has_any_transport({"rc_x", "rc_v", "dc_x", "sep_mlx5"})) {
        EXPECT_EQ(is_opt(), ready);
    }
    if (ready) {
        EXPECT_TRUE(rkey->opt.cls != NULL);
        EXPECT_EQ(m_rkey->opt.cls, rkey->opt.cls);
    }

    void *req0 = put(&value[0], sizeof(value[0]));
    void *req1 = ucp_put_nbx(sender().ep(), &value[1], sizeof(value[1]),
                             (uint64_t)other.ptr(), other_rkey, &m_param);
    flush_ep(sender());
    ASSERT_UCS_OK(requests_wait({req0, req1}));
    EXPECT_EQ(value[0], *(volatile uint64_t*)m_memory->ptr());
    EXPECT_EQ(value[1], *(volatile uint64_t*)other.ptr());
}

UCS_TEST_P(test_ucp_opt_rkey, rma_without_request, "ZCOPY_THRESH=inf")
{
    std::string data(BCOPY, 'x');

    if (!(is_ready() && (m_rkey->opt.max_put_bcopy >= BCOPY)) &&
        (is_opt() || !has_transport("rc_x"))) {
        UCS_TEST_SKIP_R("the transport does not copy puts of this length");
    }

    {
        no_requests guard(sender());
        check_needs_no_request(put(data.data(), data.size()));
    }
    flush_ep(sender());
    EXPECT_EQ(is_opt(), !memcmp(m_memory->ptr(), data.data(), data.size()));
}

/* Lengths around all limits, while connecting and later, also if what the key
 * is ready for changes: then the next operation resolves it again */
UCS_TEST_P(test_ucp_opt_rkey, lengths)
{
    for (size_t length = 0; length <= 20000;
         length += (length < 300) ? 1 : 1971) {
        put_and_check(length, 'a' + (length % 26));

        std::string copy(length, 0);
        void *req = ucp_get_nbx(sender().ep(), &copy[0], length,
                                (uint64_t)m_memory->ptr(), m_rkey, &m_param);
        ASSERT_UCS_OK(request_wait(req));
        ASSERT_EQ(0, memcmp(m_memory->ptr(), copy.data(), length)) << length;
        if ((length % 50) == 0) {
            UCS_ASYNC_BLOCK(&sender().worker()->async);
            ucp_opt_ep_lanes_changed(sender().ep());
            UCS_ASYNC_UNBLOCK(&sender().worker()->async);
        }
    }
}

/* Posted without a request, and fetched */
UCS_TEST_P(test_ucp_opt_rkey, amo_without_request, "ATOMIC_MODE=device")
{
    const uint64_t one        = 1;
    volatile uint64_t *remote = (uint64_t*)m_memory->ptr();
    uint64_t reply            = 0;
    bool ready                = is_ready() && (m_rkey->opt.amos != 0);
    ucp_request_param_t param;

    auto add = [&]() {
        return ucp_atomic_op_nbx(sender().ep(), UCP_ATOMIC_OP_ADD, &one, 1,
                                 (uint64_t)remote, m_rkey, &param);
    };

    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = ucp_dt_make_contig(sizeof(one));
    *remote            = 40;
    if (ready) {
        /* The device carries them out */
        no_requests guard(sender());
        check_needs_no_request(add());
    } else {
        ASSERT_UCS_OK(request_wait(add()));
    }
    flush_ep(sender());

    uint64_t before     = *remote;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.reply_buffer  = &reply;
    ASSERT_UCS_OK(request_wait(add()));
    EXPECT_EQ(41u, before);
    EXPECT_EQ(before, reply);
    EXPECT_EQ(before + 1, *remote);
}

UCP_INSTANTIATE_TEST_CASE(test_ucp_opt_rkey)
