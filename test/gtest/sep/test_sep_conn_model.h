/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_CONN_MODEL_H
#define TEST_SEP_CONN_MODEL_H

#include <ostream>
#include <uct/ib/sep/port/sep_addr.h>
#include <uct/ib/sep/conn/sep_conn.h>
#include <uct/ib/sep/conn/sep_conn_msg.h>

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

/*
 * A world for the state machines of sep_conn.h: interfaces, queue pairs, users,
 * and a wire that loses, repeats, and reorders. What happens next is chosen,
 * from a seed or one after the other.
 */
namespace sep_conn_model {

/* Where a run has a choice, it asks one of these */
class chooser {
public:
    virtual ~chooser() = default;
    /* One of 0..n-1 */
    virtual unsigned pick(size_t n) = 0;
};

class random_chooser : public chooser {
public:
    explicit random_chooser(uint64_t seed) : m_rng(seed) {}

    unsigned pick(size_t n) override
    {
        return m_rng() % n;
    }

private:
    std::mt19937_64 m_rng;
};

/* Walks through all sequences of choices, one per run: a run replays the prefix
 * and takes the first alternative from there on */
class exhaustive_chooser : public chooser {
public:
    unsigned pick(size_t n) override
    {
        if (m_pos == m_path.size()) {
            m_path.push_back({0, n});
        }
        EXPECT_EQ(m_path[m_pos].second, n) << "run is not reproducible";
        return m_path[m_pos++].first;
    }

    /* To the next sequence; false if there is none */
    bool next()
    {
        m_path.resize(m_pos);
        m_pos = 0;
        while (!m_path.empty() &&
               (m_path.back().first + 1 == m_path.back().second)) {
            m_path.pop_back();
        }
        if (m_path.empty()) {
            return false;
        }
        ++m_path.back().first;
        return true;
    }

private:
    std::vector<std::pair<size_t, size_t>> m_path;
    size_t                                 m_pos = 0;
};


/* A queue pair, and what ever happened to it */
struct model_qp {
    uint32_t node         = 0;
    bool     alive        = true;
    uint32_t remote       = 0; /* QP it was connected to, also if destroyed */
    bool     in_use       = false; /* Reported established */
    bool     is_error     = false; /* Does not receive or send any more */
    bool     is_responder = false; /* Never sends; the other one of its pair
                                      never receives */
    std::vector<uint64_t> under_way; /* Messages that were sent on it */
};

/* Which sides have a device context of their own to send from. If one has, both
 * have two QPs for the connection: one that sends and one that receives. */
struct split {
    const char *name;
    bool       first, second;
};

/* Not its bytes, some of which are padding */
inline void PrintTo(const split &value, std::ostream *os)
{
    *os << value.name;
}

/* How many of each may happen in a run */
struct faults {
    unsigned drops   = 0;
    unsigned dups    = 0;
    unsigned hurries = 0; /* Timeouts with packets under way */
    unsigned errors  = 0; /* QP errors, of either QP of a pair */
    unsigned kills   = 0; /* Processes that go, and come back as another */
    unsigned forged  = 0; /* Packets of an impostor, see world::forge() */
    unsigned closes  = 0; /* Processes that go, but close before */
    /* What users may do: */
    unsigned quits   = 0; /* Give up connections that they don't refer to */
    unsigned evicts  = 0; /* ... or that they do, to connect again later */
    unsigned sends   = 0; /* Send on those that they refer to */
};

class world;

struct model_conn {
    uct_sep_conn_t super;
    class node     *owner;
    uint32_t       qpn          = 0; /* Current QP that sends, or 0 */
    uint32_t       responder    = 0; /* The one that receives if that is
                                        another, or 0 */
    bool           must_reset   = false; /* The user was told to let go */
    bool           wanted       = false; /* The user has asked for it */
    bool           quiet        = false; /* The user has put down the QP */
    bool           asked        = false; /* The user has to say whether */
    bool           waits        = false; /* There was no room */
    unsigned       to_send      = 0;     /* As soon as it is connected */
    unsigned       established  = 0;
    unsigned       failed       = 0;
    ucs_status_t   last_failure = UCS_OK;
    uct_sep_conn_qp_info_t remote = {}; /* What its QP was connected to */
};

/* An interface: what sep_cm does around the machines, without a device */
class node {
public:
    node(world &w, uint32_t ud_qpn, uint64_t id, unsigned max_retries,
         bool is_split);

    model_conn &conn(const uct_sep_peer_addr_t &peer);
    model_conn *find(const uct_sep_peer_addr_t &peer);
    void start(model_conn &c);
    /* ... if there is room, to send a message */
    void want(model_conn &c);
    bool has_room() const;
    void reset(model_conn &c);
    void timeout(model_conn &c);
    /* The user drops his reference */
    void leave(model_conn &c);
    /* ... and gives up the connection */
    void quit(model_conn &c, bool is_urgent = false);
    /* ... or not, as his peer has asked for */
    void answer_asked(model_conn &c, bool agrees);
    void send_message(model_conn &c);
    /* Tell the peers, before close() */
    void farewell();
    void receive(const std::vector<uint8_t> &bytes);
    /* A message on a QP */
    void hear(uint32_t qpn);
    void close();
    /* Nonce of a QP; 0 if there is none */
    uint64_t nonce(uint32_t epoch) const
    {
        return epoch ? uct_sep_nonce(&env.key, epoch) : 0;
    }
    /* From here to another one, without epochs and nonces */
    uct_sep_conn_msg_t message_to(const node &to, uct_sep_conn_msg_type_t type,
                                  uint32_t qpn) const;

    uct_sep_peer_addr_t                                self;
    uint32_t                                           ud_qpn;
    uct_sep_conn_env_t                                 env;
    std::map<std::string, std::unique_ptr<model_conn>> conns;
    unsigned create_failures  = 0;
    size_t   max_qps          = SIZE_MAX; /* Pairs count once */
    unsigned connect_failures = 0;
    /* Of the second QP, when the first one is done */
    unsigned responder_create_failures  = 0;
    unsigned initiator_connect_failures = 0;
    bool     user_has_control           = false;
    /* Of messages to others, and from them; by id */
    std::map<uint64_t, uint64_t> sent, received;

private:
    static std::string key(const uct_sep_peer_addr_t &addr);
    static ucs_status_t qp_create(void *arg, uct_sep_conn_t *conn,
                                  uct_sep_conn_qp_info_t *local_p);
    static ucs_status_t qp_connect(void *arg, uct_sep_conn_t *conn,
                                   const uct_sep_conn_qp_info_t *remote);
    static void qp_destroy(void *arg, uct_sep_conn_t *conn);
    void perform(model_conn &c, const uct_sep_conn_out_t &out);
    void reject(const uct_sep_conn_msg_t &msg, uct_sep_conn_rej_t reason);
    void reply_gone(const uct_sep_conn_msg_t &msg);
    void forget(model_conn &c);
    void check_urgent(const model_conn &c) const;
    void send(const uct_sep_peer_addr_t &dst, const uct_sep_conn_msg_t &msg);

    static const uct_sep_conn_env_ops_t ops;
    world                               &m_world;
};

class world {
public:
    explicit world(const split &kind = {"", false, false}) : kind(kind) {}

    struct packet {
        uint32_t             dst_ud_qpn;
        std::vector<uint8_t> bytes;
    };

    node &add(unsigned max_retries = 1000)
    {
        uint32_t index = nodes.size() + 1;

        nodes.push_back(std::make_unique<node>(*this, 0x100 + index,
                                               0x1000 + index, max_retries,
                                               is_split(index - 1)));
        return *nodes.back();
    }

    /* The process is gone, another one gets its UD QP number */
    void restart(size_t index, unsigned max_retries = 1000)
    {
        uint32_t ud_qpn = nodes[index]->ud_qpn;

        nodes[index]->close();
        nodes[index].reset();
        nodes[index] = std::make_unique<node>(*this, ud_qpn, ++last_id,
                                              max_retries, is_split(index));
    }

    bool is_split(size_t index) const
    {
        return index ? kind.second : kind.first;
    }

    bool step(chooser &choose, faults &left, bool allow_user = true);
    void add_uses(std::vector<std::function<void()>> &events, chooser &choose,
                  faults &left);
    void add_answers(std::vector<std::function<void()>> &events);
    void add_evictions(std::vector<std::function<void()>> &events,
                       chooser &choose);
    void settle(chooser &choose, faults left = faults());
    void check() const;
    void expect_connected(size_t i, size_t j) const;
    /* Those that send: pairs count once */
    size_t alive_qps(const node &n) const;
    size_t num_made() const;
    void lose(uint32_t qpn);
    /* Packets from whoever sends in the name of one node to the other, knows
     * all about their connections, and has not seen a nonce */
    std::vector<packet> forge() const;
    /* The first message under way on a QP arrives */
    void deliver(uint32_t qpn);
    node *find_node(uint32_t ud_qpn) const;
    bool is_usable(uint32_t qpn) const;

    const split                        kind;
    std::vector<std::unique_ptr<node>> nodes;
    std::vector<packet>                wire;
    std::map<uint32_t, model_qp>       qps;
    /* A peer made of packets has no QPs that could be looked at */
    bool                               is_peer_real = true;
    /* Connections go when they have neither a QP nor a reference, as in sep_cm;
     * users without references don't connect again after a failure */
    bool                               forgets = false;
    /* Users have few QPs, and want() connections only to send */
    bool                               is_tight = false;
    /* Users may agree that connections fall asleep which they refer to */
    bool                               sleeps  = false;
    size_t                             num_slept = 0;
    /* Whether a question is urgent, by the nonce and the token of who asks */
    std::map<std::pair<uint64_t, unsigned>, bool> urgent;
    /* Times that there was no room */
    size_t                             num_full = 0;
    uint32_t                           last_qpn = 0x10;
    uint64_t                           last_id  = 0x2000;
    ucs_time_t                         now      = 1000;
    /* What a user may still do by himself, in step() */
    std::vector<std::pair<size_t, size_t>> starts;
    std::vector<std::pair<size_t, size_t>> leaves;
};

/* Two interfaces on a wire that loses nothing, and a's connection to b */
struct conn_pair {
    explicit conn_pair(const split &kind = {"", false, false}) :
        w(kind), a(w.add()), b(w.add()), ab(a.conn(b.self))
    {
    }

    /* b's side, from when it first hears of a */
    model_conn &ba()
    {
        return b.conn(a.self);
    }

    /* Until nothing is under way and no timer runs */
    void settle()
    {
        w.settle(choose);
    }

    void connect()
    {
        a.start(ab);
        settle();
    }

    /* The first packet on the wire */
    std::vector<uint8_t> take()
    {
        std::vector<uint8_t> bytes;

        EXPECT_FALSE(w.wire.empty());
        if (!w.wire.empty()) {
            bytes = w.wire[0].bytes;
            w.wire.erase(w.wire.begin());
        }
        return bytes;
    }

    world          w;
    random_chooser choose{1}; /* Always the same choices */
    node           &a, &b;
    model_conn     &ab;
};

class test_conn : public ::testing::Test {
protected:
    /* Both sides find out what is really true by sending, as a transport would:
     * a QP whose peer is not connected back runs into retry exceeded */
    static void use_all(world &w, chooser &choose)
    {
        for (unsigned round = 0; round < 4; ++round) {
            for (auto &n : w.nodes) {
                for (auto &entry : n->conns) {
                    model_conn &c = *entry.second;

                    if ((c.super.state == UCT_SEP_CONN_STATE_CONNECTED) &&
                        !w.is_usable(c.qpn)) {
                        n->reset(c);
                    }
                    n->start(c);
                }
            }
            w.settle(choose);
        }
    }

    /* With the nonces of both QPs, as by who has received packets of both; a
     * REQ does not need the other one's */
    static uct_sep_conn_msg_t message(const node &from, const node &to,
                                      uct_sep_conn_msg_type_t type,
                                      uint32_t src_epoch, uint32_t dst_epoch,
                                      uint32_t qpn = 0x77)
    {
        uct_sep_conn_msg_t msg = from.message_to(to, type, qpn);

        msg.src_epoch = src_epoch;
        msg.dst_epoch = dst_epoch;
        msg.src_nonce = from.nonce(src_epoch);
        msg.dst_nonce = to.nonce(dst_epoch);
        return msg;
    }

    /* Valid by form */
    static uct_sep_conn_msg_t any_message(const node &from, const node &to)
    {
        return message(from, to, UCT_SEP_CONN_MSG_REP, 5, 6);
    }

    static std::vector<uint8_t> to_bytes(const uct_sep_conn_msg_t &msg)
    {
        uct_sep_conn_packet_t packet;
        const uint8_t *bytes = reinterpret_cast<const uint8_t*>(&packet);

        uct_sep_conn_msg_pack(&msg, &packet);
        return {bytes, bytes + sizeof(packet)};
    }
};

} // namespace sep_conn_model

#endif
