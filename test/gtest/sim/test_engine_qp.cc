/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/engine.h>
#include <sim/engine/mlx5_def.h>
#include <sim/engine/stream.h>

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

/* State transitions against a table written out in terms of verbs.h, row by
 * row as in the tables of the man page ibv_modify_qp(3) and of the kernel */

namespace {

struct transition {
    mlx5sim_qp_state_t cur;
    mlx5sim_qp_state_t next;
    unsigned           type;
    uint32_t           required;
    uint32_t           optional;
};

const transition transitions[] = {
    {MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT, IBV_QPT_RC,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT, IBV_QPT_UC,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT, IBV_QPT_UD,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},

    {MLX5SIM_QPS_INIT, MLX5SIM_QPS_INIT, IBV_QPT_RC, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {MLX5SIM_QPS_INIT, MLX5SIM_QPS_INIT, IBV_QPT_UC, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {MLX5SIM_QPS_INIT, MLX5SIM_QPS_INIT, IBV_QPT_UD, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},

    {MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR, IBV_QPT_RC,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR, IBV_QPT_UC,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR, IBV_QPT_UD, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

    {MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS, IBV_QPT_RC,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
     IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
     IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS, IBV_QPT_UC, IBV_QP_SQ_PSN,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
     IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS, IBV_QPT_UD, IBV_QP_SQ_PSN,
     IBV_QP_CUR_STATE | IBV_QP_QKEY},

    {MLX5SIM_QPS_RTS, MLX5SIM_QPS_RTS, IBV_QPT_RC, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
     IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER},
    {MLX5SIM_QPS_RTS, MLX5SIM_QPS_RTS, IBV_QPT_UC, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
     IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_RTS, MLX5SIM_QPS_RTS, IBV_QPT_UD, 0,
     IBV_QP_CUR_STATE | IBV_QP_QKEY},

    {MLX5SIM_QPS_RTS, MLX5SIM_QPS_SQD, IBV_QPT_RC, 0,
     IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {MLX5SIM_QPS_RTS, MLX5SIM_QPS_SQD, IBV_QPT_UC, 0,
     IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {MLX5SIM_QPS_RTS, MLX5SIM_QPS_SQD, IBV_QPT_UD, 0,
     IBV_QP_EN_SQD_ASYNC_NOTIFY},

    {MLX5SIM_QPS_SQD, MLX5SIM_QPS_RTS, IBV_QPT_RC, 0,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
     IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_SQD, MLX5SIM_QPS_RTS, IBV_QPT_UC, 0,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
     IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_SQD, MLX5SIM_QPS_RTS, IBV_QPT_UD, 0,
     IBV_QP_CUR_STATE | IBV_QP_QKEY},

    {MLX5SIM_QPS_SQD, MLX5SIM_QPS_SQD, IBV_QPT_RC, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
     IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_SQD, MLX5SIM_QPS_SQD, IBV_QPT_UC, 0,
     IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
     IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_SQD, MLX5SIM_QPS_SQD, IBV_QPT_UD, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

    {MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT, IBV_QPT_XRC_SEND,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT, IBV_QPT_XRC_RECV,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR, IBV_QPT_XRC_SEND,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR, IBV_QPT_XRC_RECV,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS, IBV_QPT_XRC_SEND,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
     IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
     IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS, IBV_QPT_XRC_RECV,
     IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
     IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_SQD, MLX5SIM_QPS_SQD, IBV_QPT_XRC_SEND, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH |
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE},
    {MLX5SIM_QPS_SQD, MLX5SIM_QPS_SQD, IBV_QPT_XRC_RECV, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC |
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
     IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},

    {MLX5SIM_QPS_SQE, MLX5SIM_QPS_RTS, IBV_QPT_RC, 0, 0},
    {MLX5SIM_QPS_SQE, MLX5SIM_QPS_RTS, IBV_QPT_UC, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {MLX5SIM_QPS_SQE, MLX5SIM_QPS_RTS, IBV_QPT_UD, 0,
     IBV_QP_CUR_STATE | IBV_QP_QKEY}
};

const unsigned num_bits = 26; /* up to IBV_QP_RATE_LIMIT */

mlx5sim_chk_t check(unsigned type, mlx5sim_qp_state_t cur,
                    mlx5sim_qp_state_t next, uint32_t mask)
{
    return mlx5sim_qp_modify_check(type, cur, next, mask);
}

} // namespace


TEST(test_engine_qp, legal_transitions_with_required_and_optional_attributes)
{
    for (const transition &t : transitions) {
        SCOPED_TRACE(testing::Message() << mlx5sim_qp_state_name(t.cur)
                     << " to " << mlx5sim_qp_state_name(t.next) << " type "
                     << t.type);
        EXPECT_EQ(MLX5SIM_CHK_OK, check(t.type, t.cur, t.next,
                                        t.required | IBV_QP_STATE));
        EXPECT_EQ(MLX5SIM_CHK_OK, check(t.type, t.cur, t.next, t.required));
        EXPECT_EQ(MLX5SIM_CHK_OK,
                  check(t.type, t.cur, t.next,
                        t.required | t.optional | IBV_QP_STATE));
        for (unsigned i = 1; i < num_bits; ++i) {
            uint32_t bit = 1u << i;
            if (t.required & bit) {
                EXPECT_EQ(MLX5SIM_CHK_QP_ATTR,
                          check(t.type, t.cur, t.next,
                                (t.required | IBV_QP_STATE) & ~bit)) << i;
            } else {
                EXPECT_EQ((t.optional & bit) ? MLX5SIM_CHK_OK :
                                               MLX5SIM_CHK_QP_ATTR,
                          check(t.type, t.cur, t.next,
                                t.required | bit | IBV_QP_STATE)) << i;
            }
        }
    }
}

TEST(test_engine_qp, reset_and_error_take_no_attributes)
{
    for (unsigned type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
        for (int cur = MLX5SIM_QPS_RESET; cur <= MLX5SIM_QPS_ERR; ++cur) {
            for (auto next : {MLX5SIM_QPS_RESET, MLX5SIM_QPS_ERR}) {
                if ((cur == MLX5SIM_QPS_RESET) && (next == MLX5SIM_QPS_ERR)) {
                    continue;
                }
                mlx5sim_qp_state_t from = static_cast<mlx5sim_qp_state_t>(cur);
                EXPECT_EQ(MLX5SIM_CHK_OK, check(type, from, next,
                                                IBV_QP_STATE));
                for (unsigned i = 1; i < num_bits; ++i) {
                    EXPECT_EQ(MLX5SIM_CHK_QP_ATTR,
                              check(type, from, next, IBV_QP_STATE | 1u << i));
                }
            }
        }
    }
}

TEST(test_engine_qp, everything_else_is_illegal)
{
    unsigned illegal = 0;

    for (unsigned type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
        for (int cur = MLX5SIM_QPS_RESET; cur <= MLX5SIM_QPS_ERR; ++cur) {
            for (int next = MLX5SIM_QPS_RESET; next <= MLX5SIM_QPS_ERR;
                 ++next) {
                bool legal = (next == MLX5SIM_QPS_RESET) ||
                             ((next == MLX5SIM_QPS_ERR) &&
                              (cur != MLX5SIM_QPS_RESET));
                for (const transition &t : transitions) {
                    legal = legal || ((t.cur == cur) && (t.next == next) &&
                                      (t.type == type));
                }
                if (legal) {
                    continue;
                }
                ++illegal;
                for (uint32_t mask : {uint32_t(IBV_QP_STATE), 0x1fffffu}) {
                    EXPECT_EQ(MLX5SIM_CHK_QP_TRANSITION,
                              check(type, static_cast<mlx5sim_qp_state_t>(cur),
                                    static_cast<mlx5sim_qp_state_t>(next),
                                    mask)) << cur << " to " << next;
                }
            }
        }
    }
    EXPECT_EQ(3u * (49 - 7 - 6 - 9), illegal);
}

TEST(test_engine_qp, nonsense_is_refused)
{
    EXPECT_EQ(MLX5SIM_CHK_QP_TRANSITION,
              check(IBV_QPT_RC, static_cast<mlx5sim_qp_state_t>(7),
                    MLX5SIM_QPS_RESET, IBV_QP_STATE));
    EXPECT_EQ(MLX5SIM_CHK_QP_TRANSITION,
              check(IBV_QPT_RC, MLX5SIM_QPS_RESET,
                    static_cast<mlx5sim_qp_state_t>(-1), IBV_QP_STATE));
    EXPECT_EQ(MLX5SIM_CHK_QP_ATTR,
              check(IBV_QPT_RAW_PACKET, MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT,
                    IBV_QP_STATE | IBV_QP_PORT));
}

TEST(test_engine_qp, state_names)
{
    EXPECT_STREQ("RESET", mlx5sim_qp_state_name(IBV_QPS_RESET));
    EXPECT_STREQ("INIT", mlx5sim_qp_state_name(IBV_QPS_INIT));
    EXPECT_STREQ("RTR", mlx5sim_qp_state_name(IBV_QPS_RTR));
    EXPECT_STREQ("RTS", mlx5sim_qp_state_name(IBV_QPS_RTS));
    EXPECT_STREQ("SQD", mlx5sim_qp_state_name(IBV_QPS_SQD));
    EXPECT_STREQ("SQE", mlx5sim_qp_state_name(IBV_QPS_SQE));
    EXPECT_STREQ("ERR", mlx5sim_qp_state_name(IBV_QPS_ERR));
    EXPECT_STREQ("unknown", mlx5sim_qp_state_name(7));
}

/* Values of the man page of ibv_modify_qp */
TEST(test_engine_qp, rnr_timer_encoding)
{
    EXPECT_EQ(655360000u, mlx5sim_rnr_timer_ns(0));
    EXPECT_EQ(10000u, mlx5sim_rnr_timer_ns(1));
    EXPECT_EQ(120000u, mlx5sim_rnr_timer_ns(7));
    EXPECT_EQ(640000u, mlx5sim_rnr_timer_ns(12));
    EXPECT_EQ(10240000u, mlx5sim_rnr_timer_ns(20));
    EXPECT_EQ(491520000u, mlx5sim_rnr_timer_ns(31));
    for (unsigned i = 2; i < 32; ++i) {
        EXPECT_GT(mlx5sim_rnr_timer_ns(i), mlx5sim_rnr_timer_ns(i - 1));
    }
    for (unsigned i = 5; i < 32; ++i) {
        EXPECT_EQ(2 * mlx5sim_rnr_timer_ns(i - 2), mlx5sim_rnr_timer_ns(i));
    }
    EXPECT_EQ(mlx5sim_rnr_timer_ns(1), mlx5sim_rnr_timer_ns(33));
}

TEST(test_engine_qp, ack_timeout_encoding)
{
    EXPECT_EQ(0u, mlx5sim_ack_timeout_ns(0));
    EXPECT_EQ(8192u, mlx5sim_ack_timeout_ns(1));
    EXPECT_EQ(67108864u, mlx5sim_ack_timeout_ns(14));
    EXPECT_EQ(4096ull << 31, mlx5sim_ack_timeout_ns(31));
}

/* In deferred execution a request is flushed some time after it was fetched */
TEST(test_engine_qp, flush_is_no_error_of_a_stream_that_was_reset)
{
    mlx5sim_qp_t qp = {};

    qp.type        = MLX5SIM_QPT_DCI;
    qp.log_errored = 2;
    EXPECT_EQ(1, mlx5sim_stream_fail(&qp, 7, MLX5SIM_SYNDROME_REMOTE_ACCESS));
    EXPECT_EQ(1, mlx5sim_stream_fail(&qp, 7, MLX5SIM_SYNDROME_WR_FLUSH));
    EXPECT_EQ(0, mlx5sim_stream_reset(&qp, 7));
    EXPECT_EQ(1, mlx5sim_stream_fail(&qp, 7, MLX5SIM_SYNDROME_WR_FLUSH));
    EXPECT_FALSE(mlx5sim_stream_is_errored(&qp, 7));
    EXPECT_EQ(-1, mlx5sim_stream_reset(&qp, 7));
}
