/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_ucp.h>
#include <sep/test_sep_uct.h>

#include <cstring>
#include <numeric>

using namespace sep_uct_test;

namespace {

/* Longer than any fragment, and a number of bytes that divides nothing */
constexpr size_t LENGTH = 50021;

/* A datatype that UCP can only pack and unpack piece by piece: it notes the
 * pieces that it is asked for. The data are bytes in a row. */
struct pieces {
    std::vector<size_t> offsets, lengths;
    bytes               data;

    void clear()
    {
        offsets.clear();
        lengths.clear();
    }

    void add(size_t offset, size_t length)
    {
        offsets.push_back(offset);
        lengths.push_back(length);
    }

    static void *start_pack(void *context, const void *buffer, size_t count)
    {
        return (void*)buffer;
    }

    static void *start_unpack(void *context, void *buffer, size_t count)
    {
        return buffer;
    }

    static size_t size(void *state)
    {
        return ((pieces*)state)->data.size();
    }

    static size_t pack(void *state, size_t offset, void *dest, size_t max)
    {
        pieces *self  = (pieces*)state;
        size_t length = std::min(max, self->data.size() - offset);

        self->add(offset, length);
        memcpy(dest, &self->data[offset], length);
        return length;
    }

    static ucs_status_t
    unpack(void *state, size_t offset, const void *src, size_t length)
    {
        pieces *self = (pieces*)state;

        self->add(offset, length);
        memcpy(&self->data[offset], src, length);
        return UCS_OK;
    }

    static void finish(void *state)
    {
    }
};

struct request {
    bool         is_done = false;
    ucs_status_t status  = UCS_INPROGRESS;

    static void sent(void *, ucs_status_t status, void *user)
    {
        ((request*)user)->status  = status;
        ((request*)user)->is_done = true;
    }

    static void received(void *, ucs_status_t status,
                         const ucp_tag_recv_info_t *, void *user)
    {
        sent(nullptr, status, user);
    }

    static void streamed(void *, ucs_status_t status, size_t, void *user)
    {
        sent(nullptr, status, user);
    }
};

/* UCP cuts long messages to what the transport says is the longest active
 * message. Its protocols put different headers in front of each piece. */
class test_sep_ucp_fragments : public testing::TestWithParam<const char*> {
protected:
    typedef sep_ucp_test::pair::options options;

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }

        auto local = entity::create();
        ASSERT_TRUE(local != nullptr);
        m_longest = local->attr().cap.am.max_bcopy;

        static const ucp_generic_dt_ops_t ops = {
            pieces::start_pack, pieces::start_unpack, pieces::size,
            pieces::pack, pieces::unpack, pieces::finish
        };
        ASSERT_EQ(UCS_OK, ucp_dt_create_generic(&ops, nullptr, &m_generic));
        m_has_generic = true;

        m_sent.data     = pattern(LENGTH, 1);
        m_received.data = bytes(LENGTH);
    }

    void TearDown() override
    {
        close();
        if (m_has_generic) {
            ucp_dt_destroy(m_generic);
        }
    }

    void open(options opts)
    {
        opts.emplace_back("PROTO_ENABLE", GetParam());
        m_pair.open(UCP_FEATURE_TAG | UCP_FEATURE_STREAM | UCP_FEATURE_AM,
                    opts);
    }

    void close()
    {
        m_pair.close();
        m_sent.clear();
        m_received.clear();
        std::fill(m_received.data.begin(), m_received.data.end(), 0);
    }

    void wait(ucs_status_ptr_t req, request &user)
    {
        ASSERT_FALSE(UCS_PTR_IS_ERR(req))
                << ucs_status_string(UCS_PTR_STATUS(req));
        while ((req != nullptr) && !user.is_done) {
            m_pair.progress();
        }
        if (req != nullptr) {
            EXPECT_EQ(UCS_OK, user.status);
            ucp_request_free(req);
        }
    }

    ucp_request_param_t send_param(request &user, bool is_generic)
    {
        ucp_request_param_t param = {};

        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                             UCP_OP_ATTR_FIELD_USER_DATA |
                             UCP_OP_ATTR_FIELD_DATATYPE;
        param.cb.send      = request::sent;
        param.user_data    = &user;
        param.datatype     = is_generic ? m_generic : ucp_dt_make_contig(1);
        return param;
    }

    /* What UCP takes: one of the datatype, or bytes */
    void *buffer(bool is_generic)
    {
        return is_generic ? (void*)&m_sent : (void*)m_sent.data.data();
    }

    static size_t count(bool is_generic)
    {
        return is_generic ? 1 : LENGTH;
    }

    /* Tagged message to a receive of the datatype */
    void send_tagged(const options &opts, bool is_generic, bool is_sync = false)
    {
        request send, recv;

        ASSERT_NO_FATAL_FAILURE(open(opts));

        ucp_request_param_t param = send_param(recv, true);
        param.cb.recv             = request::received;
        auto *recv_req = ucp_tag_recv_nbx(m_pair.worker(1), &m_received, 1, 7,
                                          UINT64_MAX, &param);
        param          = send_param(send, is_generic);
        auto *send_req = is_sync ?
                         ucp_tag_send_sync_nbx(m_pair.ep(0), buffer(is_generic),
                                               count(is_generic), 7, &param) :
                         ucp_tag_send_nbx(m_pair.ep(0), buffer(is_generic),
                                          count(is_generic), 7, &param);
        wait(send_req, send);
        wait(recv_req, recv);
        EXPECT_TRUE(m_sent.data == m_received.data);
    }

    /* All pieces but the last fill an active message behind these headers, and
     * are a multiple of align */
    void expect_pieces(const pieces &found, size_t first_hdr, size_t other_hdr,
                       size_t align, const char *what)
    {
        size_t total = 0;

        ASSERT_GT(found.lengths.size(), 2u) << what;
        for (size_t i = 0; i < found.lengths.size(); ++i) {
            EXPECT_EQ(total, found.offsets[i]) << what;
            total += found.lengths[i];
            if (i + 1 < found.lengths.size()) {
                EXPECT_EQ(m_longest - ((i == 0) ? first_hdr : other_hdr),
                          found.lengths[i]) << what << ", piece " << i;
                EXPECT_EQ(0u, found.lengths[i] % ((i == 0) ? 8 : align))
                        << what << ", piece " << i;
            }
        }
        EXPECT_EQ(LENGTH, total) << what;
    }

    sep_ucp_test::pair m_pair;
    ucp_datatype_t     m_generic     = 0;
    bool               m_has_generic = false;
    size_t             m_longest     = 0;
    pieces             m_sent, m_received;
};

const char *const EAGER = "inf";

TEST_P(test_sep_ucp_fragments, tag_eager)
{
    for (bool is_generic : {true, false}) {
        /* The first header has the tag, the length and a number, the others
         * have number and offset */
        send_tagged({{"RNDV_THRESH", EAGER}, {"ZCOPY_THRESH", "0"}},
                    is_generic);
        expect_pieces(m_received, 24, 16, 64, "tag, received");
        if (is_generic) {
            expect_pieces(m_sent, 24, 16, 64, "tag, packed");
        }
        close();
    }

    send_tagged({{"RNDV_THRESH", EAGER}, {"ZCOPY_THRESH", "inf"}}, false);
    expect_pieces(m_received, 24, 16, 64, "tag, copied");
}

TEST_P(test_sep_ucp_fragments, tag_eager_sync)
{
    for (bool is_generic : {true, false}) {
        send_tagged({{"RNDV_THRESH", EAGER}}, is_generic, true);
        expect_pieces(m_received, 40, 16, 64, "synchronous, received");
        if (is_generic) {
            expect_pieces(m_sent, 40, 16, 64, "synchronous, packed");
        }
        close();
    }
}

TEST_P(test_sep_ucp_fragments, rendezvous)
{
    /* Unlike the eager protocols, all pieces are multiples of 64 */
    for (bool is_generic : {true, false}) {
        for (const char *zcopy_thresh : {"0", "inf"}) {
            send_tagged({{"RNDV_THRESH", "0"}, {"ZCOPY_THRESH", zcopy_thresh}},
                        is_generic);
            ASSERT_FALSE(m_received.lengths.empty());
            if (is_generic && !strcmp(GetParam(), "y") &&
                (m_received.lengths[0] != m_longest - 16)) {
                /* In 1.13 not one of the newer rendezvous protocols can pack */
                expect_pieces(m_received, 24, 16, 64, "eager, received");
            } else {
                expect_pieces(m_received, 16, 16, 64, "rendezvous, received");
                EXPECT_EQ(0u, m_received.lengths[0] % 64);
            }
            close();
        }
    }
}

TEST_P(test_sep_ucp_fragments, stream)
{
    request send, recv;
    bytes data(LENGTH);
    size_t length;

    ASSERT_NO_FATAL_FAILURE(open({}));

    ucp_request_param_t param = send_param(recv, false);
    param.op_attr_mask       |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags               = UCP_STREAM_RECV_FLAG_WAITALL;
    param.cb.recv_stream      = request::streamed;
    auto *recv_req = ucp_stream_recv_nbx(m_pair.ep(1), data.data(), LENGTH,
                                         &length, &param);
    param          = send_param(send, true);
    wait(ucp_stream_send_nbx(m_pair.ep(0), &m_sent, 1, &param), send);
    wait(recv_req, recv);
    EXPECT_TRUE(m_sent.data == data);
    expect_pieces(m_sent, 8, 8, 8, "stream, packed");
}

struct am_receiver {
    bytes data;
    bool  is_done = false;

    static ucs_status_t receive(void *arg, const void *, size_t, void *data,
                                size_t length, const ucp_am_recv_param_t *)
    {
        auto *self = (am_receiver*)arg;

        self->data.assign((uint8_t*)data, (uint8_t*)data + length);
        self->is_done = true;
        return UCS_OK;
    }
};

TEST_P(test_sep_ucp_fragments, active_message)
{
    /* The user's header is part of the first piece */
    for (size_t header : {0, 8, 64}) {
        am_receiver receiver;
        request send;

        ASSERT_NO_FATAL_FAILURE(open({{"RNDV_THRESH", EAGER}}));

        ucp_am_handler_param_t handler = {};
        handler.field_mask             = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                         UCP_AM_HANDLER_PARAM_FIELD_CB |
                                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
        handler.id                     = 3;
        handler.cb                     = am_receiver::receive;
        handler.arg                    = &receiver;
        ASSERT_EQ(UCS_OK, ucp_worker_set_am_recv_handler(m_pair.worker(1),
                                                         &handler));

        bytes front(header);
        ucp_request_param_t param = send_param(send, true);
        wait(ucp_am_send_nbx(m_pair.ep(0), 3, front.data(), header, &m_sent, 1,
                             &param), send);
        while (!receiver.is_done) {
            m_pair.progress();
        }
        EXPECT_TRUE(m_sent.data == receiver.data);
        expect_pieces(m_sent, 32 + header, 24, 8, "active message, packed");
        close();
    }
}

/* UCP's older and its newer protocols */
INSTANTIATE_TEST_SUITE_P(protocols, test_sep_ucp_fragments,
                         testing::Values("n", "y"));

} /* namespace */
