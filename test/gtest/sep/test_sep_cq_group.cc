/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <common/patience.h>

#include <uct/ib/sep/category/sep_cq_group.h>
#include <uct/ib/sep/port/sep_addr.h>
#include <uct/ib/sep/queue/sep_cq.inl>

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

using namespace sep_uct_test;

namespace {

/*
 * The members of a shared completion queue, without their workers: queue pairs
 * of plain verbs that are connected to themselves, and whatever the test polls
 * is all that is polled.
 */
class test_sep_cq_group : public ::testing::Test {
protected:
    enum {
        SHARE = 16 /* CQEs that a member may have outstanding */
    };

    /* One side, A or B */
    struct member {
        uct_sep_cq_member_t super;
        int                 fd = -1;

        const struct mlx5_cqe64 &next()
        {
            return super.batch[super.batch_head++];
        }

        unsigned left() const
        {
            return super.batch_count - super.batch_head;
        }
    };

    struct queue_pair {
        struct ibv_qp  *qp = nullptr;
        uct_sep_txwq_t txwq;
        uint16_t       posted = 0;
        uint16_t       seen   = 0;
    };

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        m_entity = entity::create({{"CATEGORY", "dynamic"}});
        ASSERT_TRUE(m_entity != nullptr);
        m_md = ucs_derived_of(m_entity->md(), uct_sep_md_t);
        for (auto *m : {&a, &b}) {
            ASSERT_EQ(UCS_OK, uct_sep_cq_member_init(&m->super, m_md,
                                                     m_md->dev.context, 2,
                                                     SHARE, "test"));
            m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            ASSERT_LE(0, m->fd);
        }
        ASSERT_EQ(a.super.group, b.super.group);
        m_group = a.super.group;
    }

    void TearDown() override
    {
        if (m_group == nullptr) {
            return;
        }
        while (!m_qps.empty()) {
            destroy(*m_qps.back());
        }
        EXPECT_EQ(0u, m_group->qps.count);
        for (auto *m : {&a, &b}) {
            uct_sep_cq_member_cleanup(&m->super, m_md);
            ::close(m->fd);
        }
    }

    queue_pair &open(member &m)
    {
        struct ibv_qp_init_attr init = {};
        struct ibv_qp_attr attr      = {};
        address addr                 = m_entity->addr();
        uct_sep_device_addr_t dev;

        m_qps.emplace_back(new queue_pair);
        queue_pair &q         = *m_qps.back();
        init.qp_type          = IBV_QPT_RC;
        init.send_cq          = m_group->cq.cq;
        init.recv_cq          = m_group->cq.cq;
        init.cap.max_send_wr  = 1024; /* libmlx5 does not see completions */
        init.cap.max_send_sge = 1;
        q.qp                  = ibv_create_qp(m_md->pd, &init);
        EXPECT_TRUE(q.qp != nullptr);
        memset(&q.txwq, 0, sizeof(q.txwq));
        q.txwq.qpn = q.qp->qp_num;
        EXPECT_EQ(UCS_OK, uct_sep_cq_member_add_qp(&m.super, &q.txwq));

        attr.qp_state        = IBV_QPS_INIT;
        attr.port_num        = 1;
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        EXPECT_EQ(0, ibv_modify_qp(q.qp, &attr,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                           IBV_QP_PORT |
                                           IBV_QP_ACCESS_FLAGS));
        memcpy(&dev, addr.dev.data(), sizeof(dev));
        uct_sep_device_addr_to_ah_attr(&m_entity->sep()->port.addr, &dev,
                                       &attr.ah_attr);
        attr.qp_state      = IBV_QPS_RTR;
        attr.path_mtu      = IBV_MTU_1024;
        attr.dest_qp_num   = q.qp->qp_num;
        attr.min_rnr_timer = 12;
        EXPECT_EQ(0, ibv_modify_qp(q.qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV |
                                           IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                           IBV_QP_RQ_PSN |
                                           IBV_QP_MAX_DEST_RD_ATOMIC |
                                           IBV_QP_MIN_RNR_TIMER));
        attr.qp_state  = IBV_QPS_RTS;
        attr.timeout   = 14;
        attr.retry_cnt = 7;
        attr.rnr_retry = 7;
        EXPECT_EQ(0, ibv_modify_qp(q.qp, &attr,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT |
                                           IBV_QP_RETRY_CNT |
                                           IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                           IBV_QP_MAX_QP_RD_ATOMIC));
        return q;
    }

    void destroy(queue_pair &q)
    {
        for (auto it = m_qps.begin(); it != m_qps.end(); ++it) {
            if (it->get() == &q) {
                EXPECT_EQ(0, uct_sep_cq_member_destroy_qp(q.txwq.cq_member,
                                                          q.qp, q.posted > 0));
                m_qps.erase(it);
                return;
            }
        }
    }

    /* Writes of nothing, with a completion each */
    void post(queue_pair &q, unsigned count)
    {
        struct ibv_send_wr wr = {}, *bad;

        wr.opcode     = IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        for (unsigned i = 0; i < count; ++i) {
            ASSERT_EQ(0, ibv_post_send(q.qp, &wr, &bad));
            ++q.posted;
        }
    }

    /* The device has finished so many, and nobody has looked at them */
    void wait_for(unsigned count)
    {
        ASSERT_TRUE(patience::until([&]() {
            return uct_sep_cq_has(&m_group->cq, count);
        }));
    }

    /* The next completions in a member's batch are these of a queue pair */
    void expect_next(member &m, queue_pair &q, unsigned count)
    {
        ASSERT_LE(count, m.left());
        for (unsigned i = 0; i < count; ++i) {
            const struct mlx5_cqe64 &cqe = m.next();

            EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4);
            EXPECT_EQ(q.qp->qp_num,
                      be32toh(cqe.sop_drop_qpn) & UCT_SEP_QPN_MASK);
            EXPECT_EQ(q.seen++, be16toh(cqe.wqe_counter));
        }
    }

    /* How often a member was signalled */
    static uint64_t signals(member &m)
    {
        uint64_t value = 0;

        return (read(m.fd, &value, sizeof(value)) == sizeof(value)) ? value : 0;
    }

    /* Whether the queue itself raises an event, once something has come */
    void expect_event()
    {
        struct pollfd pfd = {m_group->cq.channel->fd, POLLIN, 0};

        EXPECT_EQ(1, ::poll(&pfd, 1, 1000 * patience::seconds()))
                << "lost wake-up";
    }

    uint32_t published()
    {
        return be32toh(m_group->cq.dbrec[0]);
    }

    member                                   a, b;
    uct_sep_cq_group_t                       *m_group = nullptr;
    std::vector<std::unique_ptr<queue_pair>> m_qps;
    std::unique_ptr<entity>                  m_entity;
    uct_sep_md_t                             *m_md = nullptr;
};

TEST_F(test_sep_cq_group, completions_reach_their_member_whoever_polls)
{
    queue_pair &qa = open(a), &qb = open(b), &qa2 = open(a);

    post(qa, 2);
    wait_for(2);
    post(qb, 3);
    wait_for(5);
    post(qa2, 4);
    wait_for(9);

    ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
    EXPECT_EQ(6u, a.left());
    EXPECT_EQ(0u, b.left());
    expect_next(a, qa, 2);
    expect_next(a, qa2, 4);
    EXPECT_FALSE(uct_sep_cq_member_fetch(&a.super));

    ASSERT_TRUE(uct_sep_cq_member_fetch(&b.super));
    EXPECT_EQ(3u, b.left());
    expect_next(b, qb, 3);
    EXPECT_FALSE(uct_sep_cq_member_fetch(&b.super));
}

/* The device is told how far they have come with each poll, however few come at
 * a time: it would stop a queue that it takes for full */
TEST_F(test_sep_cq_group, the_queue_goes_round)
{
    queue_pair &qa = open(a), &qb = open(b);
    uint32_t total = 0;

    for (unsigned round = 0; total < 6 * m_group->cq.length; ++round) {
        unsigned num_a = round % (SHARE + 1), num_b = SHARE - round % SHARE;

        post(qa, num_a);
        post(qb, num_b);
        total += num_a + num_b;
        wait_for(num_a + num_b);
        for (auto *m : {&b, &a}) {
            EXPECT_EQ((m == &b) || (num_a > 0),
                      !!uct_sep_cq_member_fetch(&m->super));
            EXPECT_EQ(total, published());
        }
        ASSERT_NO_FATAL_FAILURE(expect_next(b, qb, num_b));
        ASSERT_NO_FATAL_FAILURE(expect_next(a, qa, num_a));
        ASSERT_FALSE(HasFailure()) << "round " << round;
    }
}

TEST_F(test_sep_cq_group, who_has_news_knows_it_without_the_lock)
{
    queue_pair &qa = open(a), &qb = open(b);

    for (unsigned round = 0; round < 5 * m_group->cq.length; ++round) {
        EXPECT_FALSE(uct_sep_cq_member_has_news(&a.super));
        EXPECT_FALSE(uct_sep_cq_member_has_news(&b.super));

        /* In the queue: it may be of either of them */
        post(qb, 1);
        wait_for(1);
        EXPECT_TRUE(uct_sep_cq_member_has_news(&a.super));
        EXPECT_TRUE(uct_sep_cq_member_has_news(&b.super));

        /* In an inbox */
        EXPECT_FALSE(uct_sep_cq_member_fetch(&a.super));
        EXPECT_FALSE(uct_sep_cq_member_has_news(&a.super));
        EXPECT_TRUE(uct_sep_cq_member_has_news(&b.super));

        /* In a batch */
        ASSERT_TRUE(uct_sep_cq_member_fetch(&b.super));
        EXPECT_TRUE(uct_sep_cq_member_has_news(&b.super));
        ASSERT_NO_FATAL_FAILURE(expect_next(b, qb, 1));
        ASSERT_FALSE(HasFailure()) << "round " << round;
    }
    EXPECT_EQ(0u, qa.posted);
}

TEST_F(test_sep_cq_group, two_members_sleep_and_each_is_woken)
{
    queue_pair &qa = open(a), &qb = open(b);

    for (unsigned round = 0; round < 3; ++round) {
        ASSERT_EQ(UCS_OK, uct_sep_cq_member_arm(&a.super, a.fd));
        ASSERT_EQ(UCS_OK, uct_sep_cq_member_arm(&b.super, b.fd));
        post(qa, 1);
        post(qb, 1);
        wait_for(2);
        expect_event();

        /* A wakes up, and takes what B sleeps for */
        EXPECT_EQ(0u, signals(b));
        ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
        EXPECT_EQ(1u, signals(b));
        expect_next(a, qa, 1);
        (void)signals(a);

        /* Who is awake is not signalled */
        post(qb, 2);
        post(qa, 1);
        wait_for(3);
        ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
        EXPECT_EQ(0u, signals(a));
        EXPECT_EQ(0u, signals(b));
        expect_next(a, qa, 1);
        ASSERT_TRUE(uct_sep_cq_member_fetch(&b.super));
        expect_next(b, qb, 3);
    }
}

TEST_F(test_sep_cq_group, who_has_something_to_do_does_not_sleep)
{
    queue_pair &qa = open(a), &qb = open(b);

    /* In the queue, which it looks at itself */
    post(qa, 2);
    wait_for(2);
    EXPECT_EQ(UCS_ERR_BUSY, uct_sep_cq_member_arm(&a.super, a.fd));
    EXPECT_FALSE(a.super.is_armed);

    /* In its inbox, and in its batch */
    EXPECT_EQ(UCS_ERR_BUSY, uct_sep_cq_member_arm(&a.super, a.fd));
    ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
    expect_next(a, qa, 1);
    EXPECT_EQ(UCS_ERR_BUSY, uct_sep_cq_member_arm(&a.super, a.fd));
    expect_next(a, qa, 1);
    EXPECT_EQ(UCS_OK, uct_sep_cq_member_arm(&a.super, a.fd));
    EXPECT_TRUE(a.super.is_armed);

    /* What is for others does not keep it awake, and wakes them */
    EXPECT_EQ(UCS_OK, uct_sep_cq_member_arm(&b.super, b.fd));
    post(qb, 1);
    wait_for(1);
    EXPECT_EQ(UCS_OK, uct_sep_cq_member_arm(&a.super, a.fd));
    EXPECT_EQ(1u, signals(b));
    ASSERT_TRUE(uct_sep_cq_member_fetch(&b.super));
    expect_next(b, qb, 1);
}

/* It has taken the event that A would have been woken by */
TEST_F(test_sep_cq_group, who_finds_that_it_can_not_sleep_wakes_others)
{
    queue_pair &qa = open(a), &qb = open(b);

    ASSERT_EQ(UCS_OK, uct_sep_cq_member_arm(&a.super, a.fd));
    post(qb, 1);
    wait_for(1);
    expect_event();
    ASSERT_EQ(UCS_ERR_BUSY, uct_sep_cq_member_arm(&b.super, b.fd));
    EXPECT_EQ(0u, signals(a));

    post(qa, 1);
    wait_for(1);
    expect_event();

    /* ... or its completion */
    EXPECT_EQ(UCS_ERR_BUSY, uct_sep_cq_member_arm(&b.super, b.fd));
    EXPECT_EQ(1u, signals(a));
    ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
    expect_next(a, qa, 1);
    ASSERT_TRUE(uct_sep_cq_member_fetch(&b.super));
    expect_next(b, qb, 1);
}

/* Its number may be another one's when they are looked at */
TEST_F(test_sep_cq_group, a_destroyed_queue_pair_leaves_no_completions)
{
    /* Where they are: in the queue, in a batch that has been begun, in an
     * inbox */
    for (const char *where : {"queue", "batch", "inbox"}) {
        queue_pair &gone = open(a), &stays = open(a), &qb = open(b);
        uint32_t qpn     = gone.qp->qp_num;
        unsigned count   = 3;

        post(gone, 2);
        wait_for(2);
        post(stays, 2);
        wait_for(4);
        post(qb, 2);
        wait_for(6);
        post(gone, 1);
        wait_for(7);
        post(stays, 1);
        wait_for(8);
        if (where == std::string("batch")) {
            ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
            expect_next(a, gone, 2);
            expect_next(a, stays, 1);
            count = 2;
        } else if (where == std::string("inbox")) {
            ASSERT_TRUE(uct_sep_cq_member_fetch(&b.super));
        }

        EXPECT_EQ(3u, m_group->qps.count);
        destroy(gone);
        EXPECT_EQ(2u, m_group->qps.count);
        EXPECT_EQ(nullptr, uct_sep_qp_table_find(&m_group->qps, qpn));

        /* B gets its number, and nothing that was its */
        uct_sep_txwq_t heir;
        memset(&heir, 0, sizeof(heir));
        heir.qpn = qpn;
        ASSERT_EQ(UCS_OK, uct_sep_cq_member_add_qp(&b.super, &heir));
        if (a.left() == 0) {
            ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super)) << where;
        }
        EXPECT_EQ(count, a.left()) << where;
        expect_next(a, stays, count);
        EXPECT_FALSE(uct_sep_cq_member_fetch(&a.super)) << where;
        if (b.left() == 0) {
            ASSERT_TRUE(uct_sep_cq_member_fetch(&b.super)) << where;
        }
        EXPECT_EQ(2u, b.left()) << where;
        expect_next(b, qb, 2);
        uct_sep_qp_table_remove(&m_group->qps, qpn);
        destroy(stays);
        destroy(qb);
        ASSERT_FALSE(HasFailure()) << where;
    }
}

/* A poll takes 64 of them */
TEST_F(test_sep_cq_group, a_destroyed_queue_pair_leaves_none_however_many)
{
    const unsigned count = 100;
    member big[2];

    for (auto &m : big) {
        ASSERT_EQ(UCS_OK, uct_sep_cq_member_init(&m.super, m_md,
                                                 m_md->dev.context, 2, count,
                                                 "test"));
    }
    m_group = big[0].super.group; /* Where queue pairs are opened */

    queue_pair &gone = open(big[1]);
    uint32_t qpn     = gone.qp->qp_num;
    uct_sep_txwq_t heir;

    post(gone, count);
    wait_for(count);
    destroy(gone);
    memset(&heir, 0, sizeof(heir));
    heir.qpn = qpn;
    ASSERT_EQ(UCS_OK, uct_sep_cq_member_add_qp(&big[0].super, &heir));
    EXPECT_FALSE(uct_sep_cq_member_fetch(&big[0].super));
    EXPECT_FALSE(uct_sep_cq_member_fetch(&big[1].super));
    uct_sep_qp_table_remove(&m_group->qps, qpn);
    m_group = a.super.group;
    for (auto &m : big) {
        uct_sep_cq_member_cleanup(&m.super, m_md);
    }
}

/* It has been read before: who sleeps on it again would be woken for ever */
TEST_F(test_sep_cq_group, an_event_wakes_once)
{
    queue_pair &qa    = open(a);
    struct pollfd pfd = {m_group->cq.channel->fd, POLLIN, 0};

    for (unsigned round = 0; round < 3; ++round) {
        ASSERT_EQ(UCS_OK, uct_sep_cq_member_arm(&a.super, a.fd));
        EXPECT_EQ(0, ::poll(&pfd, 1, 0));
        post(qa, 1);
        wait_for(1);
        expect_event();
        ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
        expect_next(a, qa, 1);
    }
}

/* By the connection manager's thread, say, while the member handles others */
TEST_F(test_sep_cq_group, one_that_never_sent_takes_nothing_of_others_along)
{
    queue_pair &idle = open(a), &qa = open(a);

    post(qa, 3);
    wait_for(3);
    destroy(idle);
    ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
    EXPECT_EQ(3u, a.left());
    expect_next(a, qa, 3);
}

/* It has room for all that its members may have outstanding */
TEST_F(test_sep_cq_group, what_nobody_polls_for_has_room)
{
    queue_pair &qa = open(a), &qb = open(b);

    EXPECT_LE(2u * SHARE, m_group->cq.length);
    for (unsigned round = 0; round < 2; ++round) {
        post(qa, SHARE);
        post(qb, SHARE);
        wait_for(2 * SHARE);
        ASSERT_TRUE(uct_sep_cq_member_fetch(&b.super));
        EXPECT_EQ((unsigned)SHARE, b.left());
        expect_next(b, qb, SHARE);
        ASSERT_TRUE(uct_sep_cq_member_fetch(&a.super));
        EXPECT_EQ((unsigned)SHARE, a.left());
        expect_next(a, qa, SHARE);
    }
}

TEST_F(test_sep_cq_group, workers_of_another_kind_get_another_queue)
{
    const struct {
        unsigned sharing, share;
        bool     is_same;
    } kinds[] = {{2, SHARE, true}, {3, SHARE, false}, {2, SHARE + 1, false}};
    uct_sep_cq_member_t other;

    /* There is room */
    uct_sep_cq_member_cleanup(&b.super, m_md);
    for (auto &kind : kinds) {
        ASSERT_EQ(UCS_OK, uct_sep_cq_member_init(&other, m_md,
                                                 m_md->dev.context,
                                                 kind.sharing, kind.share,
                                                 "test"));
        EXPECT_EQ(kind.is_same, other.group == m_group) << kind.sharing;
        uct_sep_cq_member_cleanup(&other, m_md);
    }
    ASSERT_EQ(UCS_OK, uct_sep_cq_member_init(&b.super, m_md, m_md->dev.context,
                                             2, SHARE, "test"));
    EXPECT_EQ(m_group, b.super.group);

    /* There is none */
    ASSERT_EQ(UCS_OK, uct_sep_cq_member_init(&other, m_md, m_md->dev.context, 2,
                                             SHARE, "test"));
    EXPECT_NE(m_group, other.group);
    uct_sep_cq_member_cleanup(&other, m_md);

    /* There is, in another context */
    uct_sep_cq_member_cleanup(&b.super, m_md);
    struct ibv_context *context = ibv_open_device(m_md->dev.context->device);
    ASSERT_NE(nullptr, context);
    ASSERT_EQ(UCS_OK, uct_sep_cq_member_init(&other, m_md, context, 2, SHARE,
                                             "test"));
    EXPECT_NE(m_group, other.group);
    uct_sep_cq_member_cleanup(&other, m_md);
    ibv_close_device(context);
    ASSERT_EQ(UCS_OK, uct_sep_cq_member_init(&b.super, m_md, m_md->dev.context,
                                             2, SHARE, "test"));

    expect_errors errors;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_sep_cq_member_init(&other, m_md, m_md->dev.context, 2,
                                     m_md->dev.attr.orig_attr.max_cqe / 2 + 1,
                                     "test"));
    EXPECT_EQ(1u, errors.count(UCS_LOG_LEVEL_ERROR, "UCX_SEP_CQ_SHARING"));
}

} // namespace
