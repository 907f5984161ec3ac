/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/sep_wqe_fixture.h>

#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/progress/sep_progress.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

using namespace sep_wqe_test;

namespace {

const uint64_t remote_addr = 0x1000;
const uct_rkey_t rkey      = 1;

/* A completion that counts its calls */
struct counted {
    counted()
    {
        comp.func   = [](uct_completion_t *self) {
            counted *c = ucs_container_of(self, counted, comp);

            ++c->calls;
            if (c->on_call) {
                c->on_call();
            }
        };
        comp.count  = 1;
        comp.status = UCS_OK;
    }

    uct_completion_t      comp;
    unsigned              calls = 0;
    std::function<void()> on_call;
};


/* What completions of sends do, on a queue in plain memory */
class test_sep_cqe_send : public ::testing::Test {
protected:
    test_sep_cqe_send() : m_f(uct_sep_ops_bf)
    {
        m_f.no_moderation();
    }

    ucs_status_t put(uct_completion_t *comp)
    {
        uct_iov_t iov = {m_data, sizeof(m_data), m_f.memh(), 0, 1};

        return m_f.ops().ep_put_zcopy(m_f.ep(), &iov, 1, remote_addr, rkey,
                                      comp);
    }

    void unsignaled()
    {
        ASSERT_EQ(UCS_OK, m_f.ops().ep_put_short(m_f.ep(), m_data, 8,
                                                 remote_addr, rkey));
    }

    /* Where the result of what is the n-th outstanding is: in the completion,
     * or in memory */
    void *complete_with_data(uint16_t pi, bool in_cqe, unsigned n = 0)
    {
        struct mlx5_cqe64 *cqe = m_f.iface().cq.next;
        ucs_queue_elem_t *elem = m_f.txwq().outstanding.head;
        uct_sep_desc_t *desc;

        for (; n > 0; --n) {
            elem = elem->next;
        }
        desc = ucs_container_of(elem, uct_sep_desc_t, super.queue);

        m_f.complete(pi);
        if (in_cqe) {
            cqe->op_own |= MLX5_INLINE_SCATTER_32;
            return cqe;
        }
        return uct_sep_desc_buffer(desc);
    }

    static void unpack(void *arg, const void *data, size_t length)
    {
        memcpy(arg, data, length);
    }

    fixture m_f;
    uint8_t m_data[64] = {};
};

/* Wherever the indices begin again from zero, a completion is of what was
 * posted before it, and of nothing else */
TEST_F(test_sep_cqe_send, a_completion_ends_what_precedes_it_where_indices_wrap)
{
    const unsigned num = 6;

    for (uint16_t first : {0xfff8, 0xfffa, 0xfffd, 0xffff, 0, 0x7ffa, 0x7ffd,
                           0x7fff}) {
        for (unsigned last = 0; last < num; ++last) {
            counted comps[num];

            m_f.seek(first);
            for (auto &c : comps) {
                ASSERT_EQ(UCS_INPROGRESS, put(&c.comp));
            }
            m_f.complete(first + last);
            ASSERT_EQ(1u, m_f.progress());
            for (unsigned i = 0; i < num; ++i) {
                ASSERT_EQ(unsigned(i <= last), comps[i].calls)
                        << "from " << first << ", " << i << " of " << last;
            }
            ASSERT_EQ((uint16_t)(first + last + 1), m_f.txwq().hw_ci);

            m_f.complete(first + num - 1);
            m_f.progress();
            for (auto &c : comps) {
                ASSERT_EQ(1u, c.calls);
            }
            ASSERT_TRUE(uct_sep_txwq_is_empty(&m_f.txwq()));
            ASSERT_EQ((int32_t)m_f.txwq().bb_max, m_f.txwq().credits);
            ASSERT_EQ((int32_t)NUM_CQE, m_f.iface().tx.cq_credits);
        }
    }
}

/* A flush asks for no completion of its own if the last work request has asked
 * for one: both end with it */
TEST_F(test_sep_cqe_send, an_operation_and_flushes_end_with_one_completion)
{
    for (unsigned num_before = 0; num_before < 3; ++num_before) {
        for (unsigned num_flushes = 1; num_flushes < 4; ++num_flushes) {
            counted before[3], op, flushes[3];
            uint16_t pi;

            for (unsigned i = 0; i < num_before; ++i) {
                ASSERT_EQ(UCS_INPROGRESS, put(&before[i].comp));
            }
            pi = m_f.txwq().sw_pi;
            ASSERT_EQ(UCS_INPROGRESS, put(&op.comp));
            for (unsigned i = 0; i < num_flushes; ++i) {
                ASSERT_EQ(UCS_INPROGRESS,
                          m_f.ops().ep_flush(m_f.ep(), 0, &flushes[i].comp));
            }
            ASSERT_EQ((uint16_t)(pi + 1), m_f.txwq().sw_pi);

            /* One at a time, or all by the last */
            if (num_flushes % 2) {
                for (unsigned i = 0; i < num_before; ++i) {
                    m_f.complete(pi - num_before + i);
                    m_f.progress();
                    EXPECT_EQ(0u, op.calls);
                }
            }
            m_f.complete(pi);
            m_f.progress();
            EXPECT_EQ(1u, op.calls);
            for (unsigned i = 0; i < num_before; ++i) {
                EXPECT_EQ(1u, before[i].calls);
            }
            for (unsigned i = 0; i < num_flushes; ++i) {
                EXPECT_EQ(1u, flushes[i].calls) << num_before << " " << i;
            }
            EXPECT_TRUE(ucs_queue_is_empty(&m_f.txwq().outstanding));
            EXPECT_EQ((int32_t)NUM_CQE, m_f.iface().tx.cq_credits);
        }
    }
}

/* What is posted while a completion is handled is not ended by it */
TEST_F(test_sep_cqe_send, what_a_callback_posts_ends_with_its_own_completion)
{
    for (unsigned num = 1; num <= 3; ++num) {
        counted comps[3], later;
        uint16_t first = m_f.txwq().sw_pi;

        for (unsigned i = 0; i < num; ++i) {
            ASSERT_EQ(UCS_INPROGRESS, put(&comps[i].comp));
        }
        comps[num - 1].on_call = [&]() {
            EXPECT_EQ(UCS_INPROGRESS, put(&later.comp));
        };
        m_f.complete(first + num - 1);
        EXPECT_EQ(1u, m_f.progress());
        EXPECT_EQ(0u, later.calls);
        m_f.complete(first + num);
        EXPECT_EQ(1u, m_f.progress());
        EXPECT_EQ(1u, later.calls);
        EXPECT_EQ((int32_t)NUM_CQE, m_f.iface().tx.cq_credits);
    }
}

/* A callback that progresses has taken the next completion already: the outer
 * one gives back what is left, and no more */
TEST_F(test_sep_cqe_send, a_callback_may_progress)
{
    counted comps[4];
    uint16_t first = m_f.txwq().sw_pi;

    for (auto &c : comps) {
        ASSERT_EQ(UCS_INPROGRESS, put(&c.comp));
    }
    unsignaled();
    comps[1].on_call = [&]() {
        m_f.complete(first + 3);
        m_f.progress();
        EXPECT_EQ(1u, comps[2].calls);
        EXPECT_EQ(1u, comps[3].calls);
    };
    m_f.complete(first + 1);
    m_f.progress();
    EXPECT_EQ((uint16_t)(first + 4), m_f.txwq().hw_ci);
    EXPECT_EQ((int32_t)m_f.txwq().bb_max - 1, m_f.txwq().credits);
    EXPECT_EQ((int32_t)NUM_CQE - 1, m_f.iface().tx.cq_credits);
}

/* A callback that progresses finishes operations with a later completion: the
 * data in that are the last one's, not those of one whose own had none */
TEST_F(test_sep_cqe_send, data_in_a_completion_are_of_its_operation_only)
{
    const uint32_t be32 = htobe32(0x01020304);
    uint32_t result     = 0;
    uint8_t read[8]     = {};
    counted first, second, third;
    uint16_t pi = m_f.txwq().sw_pi;

    ASSERT_EQ(UCS_INPROGRESS, put(&first.comp));
    ASSERT_EQ(UCS_INPROGRESS,
              m_f.ops().ep_get_bcopy(m_f.ep(), unpack, read, sizeof(read),
                                     remote_addr, rkey, &second.comp));
    ASSERT_EQ(UCS_INPROGRESS,
              m_f.ops().ep_atomic_cswap32(m_f.ep(), 1, 2, remote_addr, rkey,
                                          &result, &third.comp));
    first.on_call = [&]() {
        memcpy(complete_with_data(pi + 2, true), &be32, sizeof(be32));
        m_f.progress();
    };
    memcpy(complete_with_data(pi + 1, false, 1), "in place", sizeof(read));
    m_f.progress();
    EXPECT_EQ(1u, second.calls);
    EXPECT_EQ(1u, third.calls);
    EXPECT_EQ(0, memcmp(read, "in place", sizeof(read)));
    EXPECT_EQ(0x01020304u, result);
}

/* Results of atomics that the device has written to memory are of their size,
 * and big endian if of 4 bytes; in a completion all are */
TEST_F(test_sep_cqe_send, results_of_atomics)
{
    for (bool in_cqe : {false, true}) {
        const uint64_t garbage = ~0ull;
        const uint32_t value32 = 0x01020304, be32 = htobe32(value32);
        const uint64_t value64 = 0x0102030405060708;
        const uint64_t data64  = in_cqe ? htobe64(value64) : value64;
        uint32_t result32[2]   = {0x77777777, 0x77777777};
        uint64_t result64[2]   = {0x77777777, 0x77777777};
        counted comp32, comp64;
        void *data;

        uint16_t pi = m_f.txwq().sw_pi;
        ASSERT_EQ(UCS_INPROGRESS,
                  m_f.ops().ep_atomic_cswap32(m_f.ep(), 1, 2, remote_addr, rkey,
                                              result32, &comp32.comp));
        data = complete_with_data(pi, in_cqe);
        memcpy(data, &garbage, sizeof(garbage));
        memcpy(data, &be32, sizeof(be32));
        m_f.progress();
        EXPECT_EQ(1u, comp32.calls);
        EXPECT_EQ(value32, result32[0]) << in_cqe;
        EXPECT_EQ(0x77777777u, result32[1]) << in_cqe;

        pi = m_f.txwq().sw_pi;
        ASSERT_EQ(UCS_INPROGRESS,
                  m_f.ops().ep_atomic_cswap64(m_f.ep(), 1, 2, remote_addr, rkey,
                                              result64, &comp64.comp));
        memcpy(complete_with_data(pi, in_cqe), &data64, sizeof(data64));
        m_f.progress();
        EXPECT_EQ(1u, comp64.calls);
        EXPECT_EQ(value64, result64[0]) << in_cqe;
        EXPECT_EQ(0x77777777u, result64[1]) << in_cqe;
    }
}


/* A way of receiving: how, its progress, and the longest message in a
 * completion */
struct rx_mode {
    const char                *name;
    uct_iface_progress_func_t progress;
    unsigned                  stride;
    uint8_t                   scatter; /* Bit of op_own */
};

void PrintTo(const rx_mode &mode, std::ostream *os)
{
    *os << mode.name;
}

/* What completions of receives do: messages in them, and in buffers */
class test_sep_cqe_recv : public ::testing::TestWithParam<rx_mode> {
protected:
    enum {
        LENGTH = 8,   /* Of the receive queue */
        SIZE   = 128, /* Of a buffer */
        AM_ID  = 3
    };

    test_sep_cqe_recv() : m_f(uct_sep_ops_bf)
    {
        uct_sep_iface_t &iface = m_f.iface();
        uct_sep_srq_t &srq     = iface.srq;

        iface.config.fc = {1, 8, 4, 2};
        uct_sep_fc_start(&iface, &m_f.txwq());
        iface.cq.stride = GetParam().stride;
        iface.cq.next   = iface.cq.start + (GetParam().stride - 1);
        for (auto &am : iface.super.am) {
            am.cb  = handler;
            am.arg = this;
        }

        srq.buf    = m_wqes;
        srq.shift  = 5;
        srq.length = LENGTH;
        srq.filled = LENGTH;
        srq.descs  = m_descs;
        srq.batch  = INT16_MAX;
        srq.last   = (struct mlx5_wqe_srq_next_seg*)m_wqes;
        srq.hdr_offset = sizeof(uct_sep_rx_desc_t);
        for (unsigned i = 0; i < LENGTH; ++i) {
            memset(m_buffers[i], 0xee, sizeof(m_buffers[i]));
            m_descs[i] = (uct_sep_rx_desc_t*)m_buffers[i];
        }
        m_cqe = iface.cq.next;
    }

    static ucs_status_t handler(void *arg, void *data, size_t length,
                                unsigned flags)
    {
        auto *self = (test_sep_cqe_recv*)arg;

        EXPECT_LT(length, unsigned(SIZE)) << "beyond any message";
        if (length < SIZE) {
            self->m_messages.emplace_back((uint8_t*)data,
                                          (uint8_t*)data + length);
        }
        self->m_flags = flags;
        if (self->m_on_message) {
            self->m_on_message();
        }
        return UCS_OK;
    }

    /* A message of the bytes: header, and what follows */
    void receive(const std::vector<uint8_t> &bytes, uint16_t index,
                 bool is_inline)
    {
        uint8_t *data = is_inline ?
                        (uint8_t*)(m_cqe - (GetParam().stride - 1)) :
                        m_buffers[index] + sizeof(uct_sep_rx_desc_t);

        *data = AM_ID; /* Left there if it has no bytes */
        std::copy(bytes.begin(), bytes.end(), data);
        m_cqe->byte_cnt     = htobe32(bytes.size());
        m_cqe->wqe_counter  = htobe16(index);
        m_cqe->sop_drop_qpn = htobe32(QPN);
        m_cqe->op_own       = (MLX5_CQE_RESP_SEND << 4) |
                              (is_inline ? GetParam().scatter : 0);
        m_cqe += GetParam().stride;
    }

    unsigned progress()
    {
        return GetParam().progress(&m_f.iface().super.super);
    }

    /* Which work requests were handed to the device again, in order */
    std::vector<unsigned> appended()
    {
        std::vector<unsigned> result;
        auto *link = (struct mlx5_wqe_srq_next_seg*)m_wqes;

        for (unsigned i = 0; i < m_f.iface().srq.counter; ++i) {
            result.push_back(be16toh(link->next_wqe_index));
            link = (struct mlx5_wqe_srq_next_seg*)&m_wqes[result.back()];
        }
        return result;
    }

    typedef std::vector<std::vector<uint8_t>> messages;

    fixture               m_f;
    alignas(16) uint8_t   m_wqes[LENGTH][32] = {};
    uct_sep_rx_desc_t     *m_descs[LENGTH];
    uint8_t               m_buffers[LENGTH][SIZE + 32];
    struct mlx5_cqe64     *m_cqe;
    messages              m_messages;
    unsigned              m_flags = 0;
    std::function<void()> m_on_message;
};

/* First of a call of progress, and behind others */
TEST_P(test_sep_cqe_recv, a_message_without_a_header_is_dropped)
{
    const std::vector<uint8_t> good = {AM_ID, 1, 2, 3};

    for (bool is_inline : {true, false}) {
        m_f.iface().srq.counter = 0;
        m_f.iface().srq.last    = (struct mlx5_wqe_srq_next_seg*)m_wqes;
        m_messages.clear();
        receive({}, 1, is_inline);
        EXPECT_EQ(1u, progress());
        EXPECT_TRUE(m_messages.empty());
        receive(good, 2, is_inline);
        receive({}, 3, is_inline);
        receive(good, 4, is_inline);
        while (progress() > 0) {
        }
        EXPECT_EQ((messages{{1, 2, 3}, {1, 2, 3}}), m_messages);
        EXPECT_EQ((std::vector<unsigned>{1, 2, 3, 4}), appended());
    }
}

TEST_P(test_sep_cqe_recv, a_message_is_as_long_as_it_says)
{
    for (unsigned length : {1u, 2u, 9u, 31u, 32u}) {
        for (bool is_inline : {true, false}) {
            std::vector<uint8_t> bytes(length);

            for (unsigned i = 0; i < length; ++i) {
                bytes[i] = AM_ID + i;
            }
            m_messages.clear();
            receive(bytes, 1, is_inline);
            EXPECT_EQ(1u, progress());
            bytes.erase(bytes.begin());
            EXPECT_EQ(messages{bytes}, m_messages);
            EXPECT_EQ(unsigned(is_inline ? 0 : UCT_CB_PARAM_FLAG_DESC),
                      m_flags);
        }
    }
}

TEST_P(test_sep_cqe_recv, flow_control_is_taken_out_of_a_message)
{
    for (bool is_first : {true, false}) {
        for (bool is_inline : {true, false}) {
            m_messages.clear();
            m_f.txwq().fc.left = m_f.txwq().fc.left - 1;
            int32_t window     = uct_sep_fc_window(&m_f.txwq());
            EXPECT_EQ(7, window);
            if (!is_first) {
                receive({AM_ID, 8}, 2, is_inline);
            }
            receive({AM_ID | UCT_SEP_AM_FC_GRANT, 9}, 1, is_inline);
            receive({UCT_SEP_AM_FC_PURE_GRANT}, 3, is_inline);
            while (progress() > 0) {
            }
            EXPECT_EQ(is_first ? (messages{{9}}) : (messages{{8}, {9}}),
                      m_messages);
            EXPECT_EQ(8, uct_sep_fc_window(&m_f.txwq()));
        }
    }
}

/* The device may write the completion again once a handler has progressed: all
 * that is needed afterwards was read before */
TEST_P(test_sep_cqe_recv, a_handler_may_progress)
{
    for (bool is_behind : {false, true}) {
        for (bool is_inline : {true, false}) {
            struct mlx5_cqe64 *cqe;

            m_f.iface().srq.counter = 0;
            m_f.iface().srq.last    = (struct mlx5_wqe_srq_next_seg*)m_wqes;
            m_messages.clear();
            if (is_behind) {
                receive({AM_ID, 0}, 5, is_inline);
            }
            cqe = m_cqe;
            receive({AM_ID, 1}, 1, is_inline);
            m_on_message = [&]() {
                if (m_messages.back()[0] == 1) {
                    receive({AM_ID, 2}, 2, is_inline);
                    EXPECT_EQ(1u, progress());
                    cqe->wqe_counter = htobe16(7);
                    cqe->byte_cnt    = 0;
                }
            };
            while (progress() > 0) {
            }
            EXPECT_EQ(is_behind ? (messages{{0}, {1}, {2}}) :
                                  (messages{{1}, {2}}), m_messages);
            /* A buffer that was not used is free before the handler is called
             */
            std::vector<unsigned> order = is_inline ?
                                          std::vector<unsigned>{1, 2} :
                                          std::vector<unsigned>{2, 1};
            if (is_behind) {
                order.insert(order.begin(), 5);
            }
            EXPECT_EQ(order, appended());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(in, test_sep_cqe_recv, ::testing::Values(
        rx_mode{"cqe32", uct_sep_progress_cqe32, UCT_SEP_CQ_STRIDE_64,
                MLX5_INLINE_SCATTER_32},
        rx_mode{"cqe64", uct_sep_progress_cqe64, UCT_SEP_CQ_STRIDE_128,
                MLX5_INLINE_SCATTER_64}),
                         [](const auto &info) {
                             return std::string(info.param.name);
                         });

} // namespace
