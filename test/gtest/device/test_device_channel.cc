/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion channels and asynchronous events: whoever sleeps is woken up, once
 * per reason.
 */

#include <device/device.h>

#include <cerrno>
#include <map>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

using namespace device;

namespace {

class test_device_channel : public device::test {
};

class channel {
public:
    explicit channel(context &c)
    {
        v = ibv_create_comp_channel(c.ctx);
        REQUIRE(v != nullptr);
        REQUIRE_EQ(0, fcntl(v->fd, F_SETFL, O_NONBLOCK));
    }

    ~channel()
    {
        REQUIRE_EQ(0, ibv_destroy_comp_channel(v));
    }

    bool has_event(int timeout_ms = 0)
    {
        pollfd p = {v->fd, POLLIN, 0};
        int ret;

        do {
            ret = poll(&p, 1, timeout_ms);
        } while ((ret < 0) && (errno == EINTR));
        REQUIRE(ret >= 0);
        REQUIRE(!(p.revents & (POLLERR | POLLHUP | POLLNVAL)));
        return ret == 1;
    }

    /* Sleep until an event; acknowledge it. @return CQ it is of */
    ibv_cq *wait()
    {
        void *context;
        ibv_cq *cq;

        if (!has_event(patience_ms)) {
            fail(__FILE__, __LINE__, "lost wakeup");
        }
        REQUIRE_EQ(0, ibv_get_cq_event(v, &cq, &context));
        ibv_ack_cq_events(cq, 1);
        return cq;
    }

    void none()
    {
        void *context;
        ibv_cq *cq;

        REQUIRE(!has_event());
        REQUIRE(ibv_get_cq_event(v, &cq, &context) != 0);
        REQUIRE_EQ(EAGAIN, errno);
    }

    ibv_comp_channel *v;
};

void arm(cq &q, int solicited = 0)
{
    REQUIRE_EQ(0, ibv_req_notify_cq(q.v, solicited));
}

void send_one(qp &q, cq &scq, const ibv_sge &sge, unsigned flags = 0)
{
    send_wr wr(IBV_WR_SEND, 1, {sge}, IBV_SEND_SIGNALED | flags);

    q.send(wr);
    scq.good();
}

/* One queue pair that sends to another, whose completions raise events */
struct channel_loop {
    channel_loop(context &c, memory &mem, channel &ch, int num_recv) :
        scq(c, 16), rcq(c, 64, ch.v), mem(mem), a(c, scq, scq), b(c, scq, rcq)
    {
        a.connect(b.addr());
        b.connect(a.addr());
        for (int i = 0; i < num_recv; ++i) {
            recv(i);
        }
    }

    void recv(uint64_t id)
    {
        b.recv(id, mem.sge(0, 8));
    }

    void send(unsigned flags = 0)
    {
        send_one(a, scq, mem.sge(8, 8), flags);
    }

    cq     scq, rcq;
    memory &mem;
    qp     a, b;
};

ibv_event_type next_event(context &c, void **element_p)
{
    pollfd p = {c.ctx->async_fd, POLLIN, 0};
    ibv_async_event event;

    REQUIRE_EQ(1, poll(&p, 1, patience_ms));
    REQUIRE_EQ(0, ibv_get_async_event(c.ctx, &event));
    ibv_ack_async_event(&event);
    *element_p = event.element.qp;
    return event.event_type;
}

void no_event(context &c)
{
    pollfd p = {c.ctx->async_fd, POLLIN, 0};

    REQUIRE_EQ(0, poll(&p, 1, 0));
}

} // namespace


TEST_F(test_device_channel, ping_pong_asleep_loses_no_wakeup)
{
    run(2, [](rank &r) {
        const int rounds = 5000;
        context c;
        memory mem(c, 4096);
        channel ch(c);
        {
            cq scq(c, 16), rcq(c, 64, ch.v);
            qp q(c, scq, rcq);

            r.publish(q.addr());
            q.connect(r.lookup<address>(1 - r.index));
            for (int i = 0; i < 8; ++i) {
                q.recv(i, mem.sge(0, 64));
            }
            arm(rcq);
            r.barrier();

            auto wait = [&](int i) {
                ibv_wc wc;

                /* the event may be that of a message that was polled already,
                 * as usual: poll, arm, poll again, sleep */
                while (!rcq.poll(&wc)) {
                    arm(rcq);
                    if (rcq.poll(&wc)) {
                        break;
                    }
                    REQUIRE(ch.wait() == rcq.v);
                }
                REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
                q.recv(i, mem.sge(0, 64));
            };

            for (int i = 0; i < rounds; ++i) {
                if (r.index == 0) {
                    send_one(q, scq, mem.sge(64, 8));
                    wait(i);
                } else {
                    wait(i);
                    send_one(q, scq, mem.sge(64, 8));
                }
            }
            r.barrier();
        }
    });
}

TEST_F(test_device_channel, one_way_stream_with_a_sleeping_receiver)
{
    run(3, [](rank &r) {
        /* two senders, two CQs, one channel */
        const int num = 2000;
        context c;
        memory mem(c, 4096);

        if (r.index == 0) {
            channel ch(c);
            {
                cq a(c, 64, ch.v), b(c, 64, ch.v), scq(c, 16);
                qp qa(c, scq, a), qb(c, scq, b);
                struct { address a[2]; } all = {{qa.addr(), qb.addr()}};
                std::map<ibv_cq*, int> got;

                r.publish(all);
                qa.connect(r.lookup<address>(1));
                qb.connect(r.lookup<address>(2));
                for (int i = 0; i < 32; ++i) {
                    qa.recv(i, mem.sge(0, 8));
                    qb.recv(i, mem.sge(0, 8));
                }
                arm(a);
                arm(b);
                r.barrier();

                while (got[a.v] + got[b.v] < 2 * num) {
                    ibv_cq *v = ch.wait();
                    cq &q     = (v == a.v) ? a : b;
                    ibv_wc wc;

                    REQUIRE((v == a.v) || (v == b.v));
                    arm(q);
                    while (q.poll(&wc)) {
                        REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
                        ++got[v];
                        ((v == a.v) ? qa : qb).recv(0, mem.sge(0, 8));
                    }
                }
                REQUIRE_EQ(num, got[a.v]);
                REQUIRE_EQ(num, got[b.v]);
                r.barrier();
            }
        } else {
            cq q(c, 64);
            qp mine(c, q, q);

            r.publish(mine.addr());
            struct { address a[2]; } all = r.lookup<decltype(all)>(0);
            mine.connect(all.a[r.index - 1]);
            r.barrier();
            for (int i = 0; i < num; ++i) {
                send_one(mine, q, mem.sge(0, 8));
            }
            r.barrier();
        }
    });
}

TEST_F(test_device_channel, one_event_per_arming)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        channel ch(c);
        {
            channel_loop l(c, mem, ch, 32);

            /* not armed: nothing */
            l.send();
            ch.none();
            l.rcq.good();

            /* armed: the first of three */
            arm(l.rcq);
            ch.none();
            for (int i = 0; i < 3; ++i) {
                l.send();
            }
            REQUIRE(ch.wait() == l.rcq.v);
            ch.none();

            /* armed with completions that are not polled: at once */
            arm(l.rcq);
            REQUIRE(ch.wait() == l.rcq.v);
            for (int i = 0; i < 3; ++i) {
                l.rcq.good();
            }

            /* all polled: nothing before the next one */
            arm(l.rcq);
            ch.none();
            l.send();
            REQUIRE(ch.wait() == l.rcq.v);
            l.rcq.good();
        }
    });
}

TEST_F(test_device_channel, solicited_only)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        channel ch(c);
        {
            channel_loop l(c, mem, ch, 32);

            arm(l.rcq, 1);
            l.send();
            l.send();
            ch.none();
            l.send(IBV_SEND_SOLICITED);
            REQUIRE(ch.wait() == l.rcq.v);
            for (int i = 0; i < 3; ++i) {
                l.rcq.good();
            }

            /* unsolicited ones that wait do not fire it, solicited ones do */
            l.send();
            arm(l.rcq, 1);
            ch.none();
            l.send(IBV_SEND_SOLICITED);
            REQUIRE(ch.wait() == l.rcq.v);
            arm(l.rcq, 1);
            REQUIRE(ch.wait() == l.rcq.v);
            l.rcq.good();
            l.rcq.good();

            /* armed for any after armed for solicited: any */
            arm(l.rcq, 1);
            arm(l.rcq, 0);
            l.send();
            REQUIRE(ch.wait() == l.rcq.v);
            l.rcq.good();

            /* and the other way round */
            arm(l.rcq, 0);
            arm(l.rcq, 1);
            l.send();
            REQUIRE(ch.wait() == l.rcq.v);
            l.rcq.good();

            /* errors always wake up */
            arm(l.rcq, 1);
            l.b.to_state(IBV_QPS_ERR);
            REQUIRE(ch.wait() == l.rcq.v);
        }
    });
}

TEST_F(test_device_channel, destroy_waits_for_acknowledged_events_only)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        channel ch(c);

        /* events that nobody read do not hold up ibv_destroy_cq() */
        for (int unread = 0; unread < 3; ++unread) {
            channel_loop l(c, mem, ch, 8);
            for (int i = 0; i < unread; ++i) {
                arm(l.rcq);
                l.send();
            }
            if (unread == 2) {
                REQUIRE(ch.wait() == l.rcq.v);
            }
        }
        ch.none();
    });
}

TEST_F(test_device_channel, armed_again_and_again_without_reading)
{
    /* an event per arming, far more than a pipe holds: none may be counted that
     * was not delivered, or ibv_destroy_cq() would wait for it */
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        channel ch(c);
        {
            cq other(c, 64, ch.v);
            channel_loop l(c, mem, ch, 1);
            l.send();
            for (int i = 0; i < 20000; ++i) {
                arm(l.rcq);
            }
            int events = 0;
            while (ch.has_event()) {
                REQUIRE(ch.wait() == l.rcq.v);
                ++events;
            }
            REQUIRE(events > 0);
            /* and it works as before */
            l.rcq.good();
            arm(l.rcq);
            l.recv(1);
            l.send();
            REQUIRE(ch.wait() == l.rcq.v);
            ch.none();
        }
    });
}

TEST_F(test_device_channel, send_completions_wake_up)
{
    run(2, [](rank &r) {
        /* the completion comes later, by the helper thread: the receiver is not
         * ready at first */
        context c;
        memory mem(c, 4096);
        channel ch(c);
        {
            cq scq(c, 16, ch.v), rcq(c, 16);
            qp q(c, scq, rcq);

            r.publish(q.addr());
            q.connect(r.lookup<address>(1 - r.index));
            r.barrier();
            if (r.index == 0) {
                arm(scq);
                send_wr wr(IBV_WR_SEND, 3, {mem.sge(0, 8)});
                q.send(wr);
                ch.none();
                r.barrier();
                REQUIRE(ch.wait() == scq.v);
                REQUIRE_EQ(3, scq.good().wr_id);
            } else {
                r.barrier();
                q.recv(1, mem.sge(0, 8));
                rcq.good();
            }
            r.barrier();
        }
    });
}

TEST_F(test_device_channel, async_events_name_their_object)
{
    run(2, [](rank &r) {
        context c;
        memory mem(c, 4096);
        cq q(c, 64);
        void *element;

        /* remote access error: the target's QP */
        {
            qp a(c, q, q);
            r.publish(a.addr(&mem));
            address peer = r.lookup<address>(1 - r.index);
            a.connect(peer);
            r.barrier();
            if (r.index == 0) {
                send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)});
                wr.to(peer, 0);
                wr.wr.rdma.rkey += 1;
                a.send(wr);
                REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, q.next().status);
            } else {
                REQUIRE_EQ(IBV_EVENT_QP_ACCESS_ERR, next_event(c, &element));
                REQUIRE(element == a.v);
                REQUIRE_EQ(IBV_QPS_ERR, a.state());
            }
            r.barrier();
            no_event(c);
        }
    });

    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        cq q(c, 64);
        void *element;

        /* a request the target does not allow at all */
        qp a(c, q, q), b(c, q, q, {.access = 0});
        a.connect(b.addr());
        b.connect(a.addr());
        send_wr wr(IBV_WR_RDMA_READ, 1, {mem.sge(0, 8)});
        a.send(wr.to(b.addr(&mem), 0));
        REQUIRE_EQ(IBV_WC_REM_INV_REQ_ERR, q.next().status);
        REQUIRE_EQ(IBV_EVENT_QP_REQ_ERR, next_event(c, &element));
        REQUIRE(element == b.v);

        /* SRQ limit, once per arming; last WQE of a QP that fails */
        srq shared(c, 32);
        qp_options with_srq = {.srq = shared.v};
        qp d(c, q, q), e(c, q, q, with_srq);
        d.connect(e.addr());
        e.connect(d.addr());
        for (int i = 0; i < 8; ++i) {
            shared.recv(i, mem.sge(0, 8));
        }
        ibv_srq_attr attr = {};
        attr.srq_limit = 6;
        REQUIRE_EQ(0, ibv_modify_srq(shared.v, &attr, IBV_SRQ_LIMIT));
        for (int i = 0; i < 2; ++i) {
            send_one(d, q, mem.sge(8, 8));
            no_event(c);
            q.good();
        }
        send_one(d, q, mem.sge(8, 8));
        REQUIRE_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, next_event(c, &element));
        REQUIRE(element == shared.v);
        q.good();
        send_one(d, q, mem.sge(8, 8));
        no_event(c);
        q.good();
        REQUIRE_EQ(0, ibv_query_srq(shared.v, &attr));
        REQUIRE_EQ(0, attr.srq_limit);

        e.to_state(IBV_QPS_ERR);
        REQUIRE_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, next_event(c, &element));
        REQUIRE(element == e.v);
        no_event(c);
        /* what was not used stays in the SRQ */
        qp f(c, q, q), g(c, q, q, with_srq);
        f.connect(g.addr());
        g.connect(f.addr());
        for (int i = 0; i < 4; ++i) {
            send_wr more(IBV_WR_SEND, 100, {mem.sge(8, 8)}, 0);
            f.send(more);
            REQUIRE_EQ(IBV_WC_RECV, q.good().opcode);
        }
    });
}

TEST_F(test_device_channel, an_srq_limit_above_what_is_posted_fires_at_once)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        srq shared(c, 32);
        ibv_srq_attr attr = {};
        void *element;

        shared.recv(1, mem.sge(0, 8));
        attr.srq_limit = 5;
        REQUIRE_EQ(0, ibv_modify_srq(shared.v, &attr, IBV_SRQ_LIMIT));
        REQUIRE_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, next_event(c, &element));
        REQUIRE(element == shared.v);
    });
}

/* Another process reads receives ahead, before there is a limit */
TEST_F(test_device_channel, an_srq_limit_fires_when_receives_were_read_ahead)
{
    run(2, [](rank &r) {
        context c;
        memory mem(c, 65536);
        srq shared(c, 63);
        cq scq(c, 64), rcq(c, 64);
        qp q(c, scq, rcq, {.srq = shared.v});
        ibv_srq_attr attr = {};
        void *element;

        r.publish(q.addr());
        q.connect(r.lookup<address>(1 - r.index));
        if (r.index == 1) {
            for (unsigned i = 0; i < 20; ++i) {
                shared.recv(i, mem.sge(i * 200, 200));
            }
        }
        for (unsigned i = 0; i < 18; ++i) {
            r.barrier();
            if (r.index == 0) {
                send_wr wr(IBV_WR_SEND, i, {mem.sge(0, 200)});
                q.send(wr);
                scq.good();
            }
            r.barrier();
            if (r.index == 0) {
                continue;
            }
            rcq.good();
            if (i == 3) {
                attr.srq_limit = 5;
                REQUIRE_EQ(0, ibv_modify_srq(shared.v, &attr, IBV_SRQ_LIMIT));
            }
            if (i == 15) {
                REQUIRE_EQ(IBV_EVENT_SRQ_LIMIT_REACHED,
                           next_event(c, &element));
                REQUIRE(element == shared.v);
            } else {
                no_event(c);
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_channel, unread_async_events_do_not_hold_up_destroy)
{
    run(1, [](rank&) {
        loop l;

        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        wr.to(l.to_b, 0);
        wr.wr.rdma.rkey += 1;
        l.a.send(wr);
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.scq.next().status);
        /* the event about l.b is never read */
    });
}
