/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion queues change their length while completions are in them and while
 * others come: none is lost, and their order stays.
 */

#include <device/device.h>

#include <common/patience.h>
#include <common/seed.h>

#include <algorithm>
#include <cerrno>

#include <poll.h>

using namespace device;

namespace {

class test_device_resize : public device::test {
};

/* Writes of one byte whose completions are counted */
class stream {
public:
    explicit stream(int cq_size) : l(qp_options(), 4096, cq_size)
    {
    }

    void post()
    {
        send_wr wr(IBV_WR_RDMA_WRITE, m_posted++, {l.mem.sge(0, 1)});

        l.a.send(wr.to(l.to_b, 0));
    }

    void poll()
    {
        REQUIRE_EQ(m_polled++, l.scq.good().wr_id);
    }

    void poll_all()
    {
        while (m_polled < m_posted) {
            poll();
        }
        l.scq.empty();
    }

    /* Wait until all that was posted has completed, and leave it unread: in
     * deferred execution that is later. The ring has gone round nowhere. */
    void wait_all() const
    {
        mlx5dv_cq dv = l.scq.direct();
        mlx5_cqe64 *last;

        REQUIRE(m_posted <= dv.cqe_cnt);
        last = (mlx5_cqe64*)((char*)dv.buf + m_posted * dv.cqe_size) - 1;
        REQUIRE(patience::until([&]() {
            return (*(volatile uint8_t*)&last->op_own >> 4) != MLX5_CQE_INVALID;
        }));
    }

    unsigned unread() const
    {
        return m_posted - m_polled;
    }

    loop l;

private:
    uint64_t m_posted = 0;
    uint64_t m_polled = 0;
};

} // namespace


TEST_F(test_device_resize, what_was_not_polled_moves_to_a_longer_queue)
{
    run(1, [](rank&) {
        stream s(7);

        for (int i = 0; i < 5; ++i) {
            s.post();
        }
        s.poll();
        REQUIRE_EQ(0, ibv_resize_cq(s.l.scq.v, 40));
        REQUIRE(s.l.scq.v->cqe >= 40);
        /* more than the old one could hold */
        while (s.unread() < 40) {
            s.post();
        }
        s.poll_all();
    });
}

TEST_F(test_device_resize, a_shorter_queue_goes_round)
{
    run(1, [](rank&) {
        stream s(255);

        for (int i = 0; i < 300; ++i) {
            s.post();
            s.poll();
        }
        for (int i = 0; i < 6; ++i) {
            s.post();
        }
        REQUIRE_EQ(0, ibv_resize_cq(s.l.scq.v, 7));
        REQUIRE_EQ(7, s.l.scq.v->cqe);
        s.poll_all();
        for (int i = 0; i < 100; ++i) {
            s.post();
            s.post();
            s.poll();
            s.poll();
        }
    });
}

TEST_F(test_device_resize, a_queue_that_is_too_short_is_refused)
{
    run(1, [](rank&) {
        stream s(63);

        for (int i = 0; i < 20; ++i) {
            s.post();
        }
        s.wait_all();
        REQUIRE_EQ(EINVAL, ibv_resize_cq(s.l.scq.v, 15));
        REQUIRE_EQ(63, s.l.scq.v->cqe);
        s.poll_all();
        s.post();
        s.poll_all();
    });
}

TEST_F(test_device_resize, random_lengths_lose_nothing)
{
    uint64_t random = seed::get();

    run(1, [random](rank&) {
        pattern rnd(random);
        stream s(63);

        for (int i = 0; i < 500; ++i) {
            unsigned length = 1 + rnd.below(255);
            unsigned least  = std::min(s.unread(), length);

            while (s.unread() > least) {
                s.poll();
            }
            REQUIRE_EQ(0, ibv_resize_cq(s.l.scq.v, length));
            for (unsigned n = rnd.below(60);
                 (n > 0) && ((int)s.unread() < s.l.scq.v->cqe) &&
                 (s.unread() < 60); --n) {
                s.post();
            }
            for (unsigned n = rnd.below(60); (n > 0) && (s.unread() > 0); --n) {
                s.poll();
            }
        }
        s.poll_all();
    });
}

TEST_F(test_device_resize, while_another_process_sends)
{
    run(2, [](rank &r) {
        const int num = 3000, window = 32;
        context c;
        memory mem(c, 4096);
        cq scq(c, 63), rcq(c, 63);
        qp q(c, scq, rcq);

        r.publish(q.addr());
        q.connect(r.lookup<address>(1 - r.index));
        if (r.index == 0) {
            for (int i = 0; i < window; ++i) {
                q.recv(i, mem.sge(0, 8));
            }
        }
        r.barrier();
        for (int i = 0; i < num; ++i) {
            if (r.index == 1) {
                send_wr wr(IBV_WR_SEND, i, {mem.sge(0, 8)});
                q.send(wr);
                scq.good();
                continue;
            }
            REQUIRE_EQ((uint64_t)i, rcq.good().wr_id);
            q.recv(i + window, mem.sge(0, 8));
            if (i % 10 == 0) {
                REQUIRE_EQ(0, ibv_resize_cq(rcq.v, (i % 20) ? 500 : 63));
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_resize, an_armed_queue_stays_armed)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        ibv_comp_channel *channel = ibv_create_comp_channel(c.ctx);
        {
            cq q(c, 7, channel);
            qp self(c, q, q);
            ibv_cq *from;
            void *arg;

            self.connect(self.addr());
            REQUIRE_EQ(0, ibv_req_notify_cq(q.v, 0));
            REQUIRE_EQ(0, ibv_resize_cq(q.v, 100));

            pollfd p = {channel->fd, POLLIN, 0};
            REQUIRE_EQ(0, poll(&p, 1, 0));
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)});
            self.send(wr.to(self.addr(&mem), 64));
            REQUIRE_EQ(1, poll(&p, 1, patience_ms));
            REQUIRE_EQ(0, ibv_get_cq_event(channel, &from, &arg));
            REQUIRE(from == q.v);
            ibv_ack_cq_events(from, 1);
            q.good();
        }
        REQUIRE_EQ(0, ibv_destroy_comp_channel(channel));
    });
}
