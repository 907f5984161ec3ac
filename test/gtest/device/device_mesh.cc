/* SPDX-License-Identifier: BSD-3-Clause */

#include <device/device_mesh.h>

#include <cerrno>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>

namespace device {

namespace {

typedef mesh_words words;

/* Head of a message */
struct message {
    uint32_t from;
    uint32_t life;
    uint64_t seq;
    uint64_t seed;
    uint32_t length;    /* all of it */
    uint32_t magic;
};

const uint32_t message_magic = 0x5e9a11ed;

/* An offer names both lives, so that none is taken for another's */
uint64_t offer(uint64_t life, uint64_t peer_life, uint32_t qpn)
{
    return (life << 44) | (peer_life << 24) | qpn;
}


class node {
public:
    node(rank &r, mesh_offers *offers, const mesh_options &options) :
        m_r(r), m_offers(offers), m_options(options),
        m_life(r.word(words::life(r.index))),
        m_channel(ibv_create_comp_channel(m_c.ctx)),
        m_recv_mem(m_c, options.num_recv * slot_size()),
        m_send_mem(m_c, (size_t)r.count * options.window * slot_size()),
        m_cq(m_c, r.count * options.window + options.num_recv + 16, m_channel),
        m_srq(m_c, options.num_recv), m_peers(r.count),
        m_rnd(options.seed + r.index * 1000 + m_life)
    {
        REQUIRE(m_channel != nullptr);
        REQUIRE_EQ(0, fcntl(m_channel->fd, F_SETFL, O_NONBLOCK));
        for (unsigned i = 0; i < options.num_recv; ++i) {
            post_recv(i);
        }
    }

    void run()
    {
        bool is_idle = false;

        while (m_r.word(words::leave) == 0) {
            bool active = false;

            for (int peer = 0; peer < m_r.count; ++peer) {
                if (peer != m_r.index) {
                    active |= advance(peer);
                }
            }
            active |= progress();
            check_abort();
            if (!is_idle && m_r.word(words::stop) && (m_outstanding == 0)) {
                is_idle = true;
                ++m_r.word(words::idle);
            }
            if (!active) {
                wait();
            }
        }
        m_peers.clear();
    }

    ~node()
    {
        m_peers.clear();
    }

private:
    struct peer {
        uint64_t            life = 0;   /* that we talk to */
        std::unique_ptr<qp> q;
        bool                connected = false;
        bool                failed    = false;
        uint64_t            sent = 0, completed = 0, received = 0;
    };

    size_t slot_size() const
    {
        return (m_options.max_message + sizeof(message) + 63) & ~63ul;
    }

    void post_recv(uint64_t i)
    {
        m_srq.recv(i, m_recv_mem.sge(i * slot_size(), slot_size()));
    }

    /* Nothing of the SRQ is left with a QP. Others may have failed before. */
    void wait_flushed(ibv_qp *q)
    {
        ibv_async_event event;

        while (m_flushed.erase(q) == 0) {
            REQUIRE_EQ(0, ibv_get_async_event(m_c.ctx, &event));
            REQUIRE_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
            m_flushed.insert(event.element.qp);
            ibv_ack_async_event(&event);
        }
    }

    void drop(peer &p)
    {
        ibv_wc wc;

        if (p.q == nullptr) {
            return;
        }

        /* its completions, before its number may come back */
        if (p.connected) {
            p.q->to_state(IBV_QPS_ERR);
            wait_flushed(p.q->v);
        }
        while (m_cq.poll(&wc)) {
            handle(wc);
        }
        while (p.completed < p.sent) {
            handle(m_cq.next());
        }
        m_by_qpn.erase(p.q->v->qp_num);
        p.q.reset();
        REQUIRE_EQ(p.sent, p.completed);
        p = peer();
    }

    /* Bring the connection to a peer forward, and send. @return if it did */
    bool advance(int index)
    {
        peer &p          = m_peers[index];
        uint64_t life    = m_r.word(words::life(index));
        uint64_t killed  = m_r.word(words::killed(index));
        qp_options options;

        if ((p.life != 0) && (p.life != life)) {
            drop(p);
        }

        if ((p.q == nullptr) && (life > killed)) {
            options.srq     = m_srq.v;
            options.send_wr = m_options.window;
            options.timeout = 18; /* a second, times 8 */
            p.life          = life;
            p.q.reset(new qp(m_c, m_cq, m_cq, options));
            m_by_qpn[p.q->v->qp_num] = index;
            m_offers->pair[m_r.index][index] = offer(m_life, life,
                                                     p.q->v->qp_num);
            return true;
        }

        if (p.failed || (p.q == nullptr)) {
            return false;
        }

        if (!p.connected) {
            uint64_t got = m_offers->pair[index][m_r.index];
            address to   = p.q->addr();

            if ((got >> 24) != (offer(p.life, m_life, 0) >> 24)) {
                return false;
            }

            to.qpn = got & 0xffffff;
            p.q->connect(to);
            p.connected = true;
        }

        bool sent = false;
        while (!p.failed && (p.sent - p.completed < m_options.window) &&
               !m_r.word(words::stop) &&
               ((m_options.messages == 0) || (p.sent < m_options.messages))) {
            send(index, p);
            sent = true;
        }
        return sent;
    }

    void send(int index, peer &p)
    {
        size_t slot   = ((size_t)index * m_options.window +
                         p.sent % m_options.window) * slot_size();
        message *m    = (message*)(m_send_mem.data + slot);
        size_t length = m_rnd.below(m_options.max_message);

        m->from   = m_r.index;
        m->life   = m_life;
        m->seq    = p.sent;
        m->seed   = m_rnd.next();
        m->length = sizeof(*m) + length;
        m->magic  = message_magic;
        pattern::fill(m + 1, length, m->seed);
        send_wr wr(IBV_WR_SEND, index | (1ul << 32),
                   {m_send_mem.sge(slot, m->length)});
        ++p.sent;
        ++m_outstanding;
        p.q->send(wr);
    }

    /* @return if there was a completion */
    bool progress()
    {
        bool any = false;
        ibv_wc wc;

        while (m_cq.poll(&wc)) {
            handle(wc);
            any = true;
        }
        return any;
    }

    void handle(const ibv_wc &wc)
    {
        if (wc.wr_id >> 32) {
            handle_send(wc);
        } else {
            handle_recv(wc);
        }
    }

    void handle_send(const ibv_wc &wc)
    {
        int index = wc.wr_id & 0xffff;
        peer &p   = m_peers[index];

        ++p.completed;
        --m_outstanding;
        if (wc.status == IBV_WC_SUCCESS) {
            return;
        }

        /* nobody is reported dead who lives */
        if (m_r.word(words::killed(index)) < p.life) {
            fail(__FILE__, __LINE__, "send %lu to life %lu of rank %d: %s",
                 (unsigned long)p.completed, (unsigned long)p.life, index,
                 ibv_wc_status_str(wc.status));
        }
        REQUIRE((wc.status == IBV_WC_RETRY_EXC_ERR) ||
                (wc.status == IBV_WC_WR_FLUSH_ERR));
        p.failed = true;
    }

    void handle_recv(const ibv_wc &wc)
    {
        message *m = (message*)(m_recv_mem.data + wc.wr_id * slot_size());

        if (wc.status == IBV_WC_WR_FLUSH_ERR) {
            post_recv(wc.wr_id); /* of a message that did not end */
            return;
        }

        REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
        REQUIRE(m_by_qpn.count(wc.qp_num) != 0);
        int index = m_by_qpn[wc.qp_num];
        peer &p   = m_peers[index];

        REQUIRE_EQ(message_magic, m->magic);
        REQUIRE_EQ(index, m->from);
        REQUIRE_EQ(p.life, m->life);
        REQUIRE_EQ(p.received, m->seq);
        REQUIRE_EQ(wc.byte_len, m->length);
        REQUIRE_EQ(m->length - sizeof(*m),
                   pattern::check(m + 1, m->length - sizeof(*m), m->seed));
        ++p.received;
        m_r.word(words::received(index, m_r.index)) = (p.life << 40) |
                                                      p.received;
        post_recv(wc.wr_id);
    }

    /* Nothing to do at present */
    void wait()
    {
        void *context;
        ibv_cq *v;

        if (!m_options.sleeps) {
            patience::pause();
            return;
        }

        REQUIRE_EQ(0, ibv_req_notify_cq(m_cq.v, 0));
        if (progress()) {
            return;
        }
        /* what is not told by an event is looked for now and then */
        pollfd fd = {m_channel->fd, POLLIN, 0};
        if (poll(&fd, 1, 5) == 1) {
            REQUIRE_EQ(0, ibv_get_cq_event(m_channel, &v, &context));
            ibv_ack_cq_events(v, 1);
        }
    }

    /* destroyed after all that uses it */
    struct channel_guard {
        ibv_comp_channel *v = nullptr;

        ~channel_guard()
        {
            if (v != nullptr) {
                REQUIRE_EQ(0, ibv_destroy_comp_channel(v));
            }
        }
    };

    rank                        &m_r;
    mesh_offers                 *m_offers;
    const mesh_options          m_options;
    uint64_t                    m_life;
    context                     m_c;
    ibv_comp_channel            *m_channel;
    channel_guard               m_guard{m_channel};
    memory                      m_recv_mem;
    memory                      m_send_mem;
    cq                          m_cq;
    srq                         m_srq;
    std::set<ibv_qp*>           m_flushed;
    std::vector<peer>           m_peers;
    std::map<uint32_t, int>     m_by_qpn;
    uint64_t                    m_outstanding = 0;
    pattern                     m_rnd;
};

} // namespace


void mesh_node(rank &r, mesh_offers *offers, const mesh_options &options)
{
    node n(r, offers, options);

    n.run();
}

} // namespace device
