/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_conn_model.h>

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace sep_conn_model {

const uct_sep_conn_env_ops_t node::ops = {
    node::qp_create, node::qp_connect, node::qp_destroy
};

node::node(world &w, uint32_t ud_qpn, uint64_t id, unsigned max_retries,
           bool is_split) :
    ud_qpn(ud_qpn), m_world(w)
{
    memset(&self, 0, sizeof(self));
    self.dev.lid  = htons(7);
    self.dev.pkey = htons(0xffff);
    uct_sep_iface_addr_pack(ud_qpn, id,
                            is_split ? UCT_SEP_IFACE_ADDR_FLAG_SPLIT : 0,
                            &self.iface);

    memset(&env, 0, sizeof(env));
    env.ops         = &ops;
    env.arg         = this;
    env.timeout     = 100;
    env.max_timeout = 1000;
    env.max_retries = max_retries;
    env.seed        = id;
    env.key         = {{id, ~id}};
    env.max_half_open = UINT32_MAX;
}

std::string node::key(const uct_sep_peer_addr_t &addr)
{
    return std::string(reinterpret_cast<const char*>(&addr), sizeof(addr));
}

model_conn *node::find(const uct_sep_peer_addr_t &peer)
{
    auto iter = conns.find(key(peer));
    return (iter == conns.end()) ? nullptr : iter->second.get();
}

model_conn &node::conn(const uct_sep_peer_addr_t &peer)
{
    auto &slot = conns[key(peer)];

    if (!slot) {
        slot        = std::make_unique<model_conn>();
        slot->owner = this;
        uct_sep_conn_init(&slot->super, &peer,
                          memcmp(&peer, &self, sizeof(peer)) == 0);
    }
    return *slot;
}

ucs_status_t node::qp_create(void *arg, uct_sep_conn_t *conn,
                             uct_sep_conn_qp_info_t *local_p)
{
    node *self_node = static_cast<node*>(arg);
    model_conn *c   = reinterpret_cast<model_conn*>(conn);
    world &w        = self_node->m_world;
    bool is_split   = (uct_sep_iface_addr_flags(&self_node->self.iface) |
                       uct_sep_iface_addr_flags(&conn->peer.iface)) &
                      UCT_SEP_IFACE_ADDR_FLAG_SPLIT;

    EXPECT_EQ(0u, c->qpn) << "second QP for one connection";
    EXPECT_EQ(0u, c->responder);
    bool is_wanted = conn->flags & UCT_SEP_CONN_FLAG_WANTED;
    if (w.alive_qps(*self_node) + is_wanted >= self_node->max_qps) {
        ++w.num_full;
        c->waits = true;
        return UCS_ERR_NO_RESOURCE;
    }
    if (self_node->create_failures > 0) {
        --self_node->create_failures;
        return UCS_ERR_NO_MEMORY;
    }

    uint32_t qpn    = ++w.last_qpn;
    w.qps[qpn].node = self_node->ud_qpn;
    if (is_split) {
        if (self_node->responder_create_failures > 0) {
            --self_node->responder_create_failures;
            w.qps[qpn].alive = false;
            return UCS_ERR_NO_MEMORY;
        }

        c->responder                     = ++w.last_qpn;
        w.qps[c->responder].node         = self_node->ud_qpn;
        w.qps[c->responder].is_responder = true;
    }

    c->qpn                      = qpn;
    local_p->qpn                = c->qpn;
    local_p->psn                = c->qpn * 3;
    local_p->path_mtu           = 3;
    local_p->max_rd_atomic      = 4;
    local_p->max_dest_rd_atomic = 8;
    local_p->responder_qpn      = c->responder;
    return UCS_OK;
}

ucs_status_t node::qp_connect(void *arg, uct_sep_conn_t *conn,
                              const uct_sep_conn_qp_info_t *remote)
{
    node *self_node = static_cast<node*>(arg);
    model_conn *c   = reinterpret_cast<model_conn*>(conn);
    world &w        = self_node->m_world;

    EXPECT_NE(0u, c->qpn);
    EXPECT_EQ(0u, w.qps[c->qpn].remote) << "QP connected twice";
    EXPECT_EQ(remote->psn, remote->qpn * 3);
    EXPECT_EQ(c->responder != 0, remote->responder_qpn != 0)
            << "one QP on one side and two on the other";
    c->remote = *remote;
    if (self_node->connect_failures > 0) {
        --self_node->connect_failures;
        return UCS_ERR_IO_ERROR;
    }

    if (c->responder == 0) {
        w.qps[c->qpn].remote = remote->qpn;
        return UCS_OK;
    }

    /* Crosswise, and the one that receives first */
    EXPECT_EQ(0u, w.qps[c->responder].remote) << "QP connected twice";
    w.qps[c->responder].remote = remote->qpn;
    if (self_node->initiator_connect_failures > 0) {
        --self_node->initiator_connect_failures;
        return UCS_ERR_IO_ERROR;
    }

    w.qps[c->qpn].remote = remote->responder_qpn;
    return UCS_OK;
}

void node::qp_destroy(void *arg, uct_sep_conn_t *conn)
{
    node *self_node = static_cast<node*>(arg);
    model_conn *c   = reinterpret_cast<model_conn*>(conn);
    world &w        = self_node->m_world;

    EXPECT_NE(0u, c->qpn);
    for (uint32_t qpn : {c->qpn, c->responder}) {
        if (qpn != 0) {
            model_qp &qp = w.qps[qpn];

            EXPECT_TRUE(qp.alive);
            EXPECT_TRUE(!qp.in_use || self_node->user_has_control)
                    << "QP taken away from its user";
            qp.alive = false;
            EXPECT_TRUE(qp.under_way.empty() || !w.forgets)
                    << "messages are lost";
        }
    }
    c->quiet     = false;
    c->asked     = false;
    c->qpn       = 0;
    c->responder = 0;
}

void node::send(const uct_sep_peer_addr_t &dst, const uct_sep_conn_msg_t &msg)
{
    uct_sep_conn_packet_t packet;
    const uint8_t *bytes = reinterpret_cast<const uint8_t*>(&packet);

    if (msg.type == UCT_SEP_CONN_MSG_DREQ) {
        auto question = std::make_pair(msg.src_nonce,
                                       msg.token & UCT_SEP_CONN_TOKEN_MASK);

        EXPECT_EQ(m_world.urgent.at(question),
                  !!(msg.token & UCT_SEP_CONN_TOKEN_URGENT));
    }

    uct_sep_conn_msg_pack(&msg, &packet);
    m_world.wire.push_back({uct_sep_iface_addr_qpn(&dst.iface),
                            {bytes, bytes + sizeof(packet)}});
}

void node::perform(model_conn &c, const uct_sep_conn_out_t &out)
{
    static const std::pair<unsigned, uct_sep_conn_msg_type_t> sends[] = {
        {UCT_SEP_CONN_ACTION_SEND_REJ,  UCT_SEP_CONN_MSG_REJ},
        {UCT_SEP_CONN_ACTION_SEND_DREP, UCT_SEP_CONN_MSG_DREP},
        {UCT_SEP_CONN_ACTION_SEND_REQ,  UCT_SEP_CONN_MSG_REQ},
        {UCT_SEP_CONN_ACTION_SEND_REP,  UCT_SEP_CONN_MSG_REP},
        {UCT_SEP_CONN_ACTION_SEND_RTU,  UCT_SEP_CONN_MSG_RTU},
        {UCT_SEP_CONN_ACTION_SEND_DREQ, UCT_SEP_CONN_MSG_DREQ}
    };

    for (const auto &s : sends) {
        if (out.actions & s.first) {
            uct_sep_conn_msg_t msg;
            uct_sep_conn_msg_fill(&env, &c.super, s.second, &out, &self, &msg);
            send(c.super.peer, msg);
        }
    }

    if (out.actions & UCT_SEP_CONN_ACTION_ESTABLISHED) {
        ASSERT_NE(0u, c.qpn);
        model_qp &qp = m_world.qps[c.qpn];
        EXPECT_EQ(c.quiet, qp.in_use) << "established twice";
        /* The one thing the exchange is for: the other QP can receive (or has
         * been able to, and is gone again) */
        ASSERT_NE(0u, qp.remote);
        if (m_world.is_peer_real) {
            EXPECT_EQ(c.qpn, m_world.qps[qp.remote].remote)
                    << "may send before the peer may receive";
            EXPECT_EQ(c.responder != 0, m_world.qps[qp.remote].is_responder);
        }
        c.quiet   = false;
        qp.in_use = true;
        if (c.responder != 0) {
            model_qp &responder = m_world.qps[c.responder];
            ASSERT_NE(0u, responder.remote);
            EXPECT_FALSE(m_world.is_peer_real &&
                         m_world.qps[responder.remote].is_responder)
                    << "both ends of it wait for the other to send";
            responder.in_use = true;
        }
        ++c.established;
        for (; c.to_send > 0; --c.to_send) {
            send_message(c);
        }
    }

    if (out.actions & UCT_SEP_CONN_ACTION_FAILED) {
        ++c.failed;
        c.last_failure = out.status;
        c.wanted       = false;
        if (out.status == UCS_ERR_CONNECTION_RESET) {
            EXPECT_NE(0u, c.qpn) << "nothing to let go of";
            c.must_reset = true;
        } else {
            EXPECT_EQ(0u, c.qpn) << "QP left behind by a failure";
        }
    }

    if (out.actions & UCT_SEP_CONN_ACTION_ASKED) {
        ASSERT_EQ(UCT_SEP_CONN_STATE_CONNECTED, c.super.state);
        ASSERT_GT(c.super.refcount, 0u);
        c.asked = true;
        check_urgent(c);
        if (!m_world.sleeps) {
            answer_asked(c, false);
        }
    }

    forget(c);
}

/* c may be gone after this */
void node::forget(model_conn &c)
{
    /* Who waits for room has a reference of the transport's */
    if (m_world.forgets && (c.super.refcount == 0) && !c.waits &&
        (c.super.state == UCT_SEP_CONN_STATE_IDLE)) {
        conns.erase(key(c.super.peer));
    }
}

void node::leave(model_conn &c)
{
    uct_sep_conn_out_t out;

    ASSERT_EQ(1u, c.super.refcount);
    uct_sep_conn_unused(&c.super, &out);
    c.super.refcount = 0;
    perform(c, out);
    m_world.check();
}

/* Who is asked knows as long as he has not answered whether it is urgent to who
 * asks */
void node::check_urgent(const model_conn &c) const
{
    auto question = m_world.urgent.find({c.super.remote_nonce,
                                         c.super.declined});

    ASSERT_NE(m_world.urgent.end(), question) << "nobody has asked";
    EXPECT_EQ(question->second,
              !!(c.super.flags & UCT_SEP_CONN_FLAG_URGENT));
}

void node::quit(model_conn &c, bool is_urgent)
{
    uct_sep_conn_out_t out;

    ASSERT_TRUE(m_world.qps[c.qpn].under_way.empty());
    c.quiet = true;
    if (!(c.super.flags & UCT_SEP_CONN_FLAG_ASKED)) {
        /* Tokens come again after 16 */
        m_world.urgent[{nonce(c.super.local_epoch),
                        (c.super.token + 1) & UCT_SEP_CONN_TOKEN_MASK}] =
                is_urgent;
    }
    uct_sep_conn_disconnect(&env, &c.super, is_urgent, m_world.now, &out);
    perform(c, out);
    m_world.check();
}

void node::answer_asked(model_conn &c, bool agrees)
{
    uct_sep_conn_out_t out;

    ASSERT_TRUE(!agrees || m_world.qps[c.qpn].under_way.empty());
    if (c.super.flags & UCT_SEP_CONN_FLAG_ASKED) {
        check_urgent(c);
    }
    c.asked = false;
    if (uct_sep_conn_answer_asked(&c.super, agrees, &out)) {
        c.quiet = true;
        ++m_world.num_slept;
    }
    perform(c, out);
    m_world.check();
}

void node::send_message(model_conn &c)
{
    ASSERT_FALSE(c.quiet);
    ASSERT_EQ(UCT_SEP_CONN_STATE_CONNECTED, c.super.state);
    m_world.qps[c.qpn].under_way.push_back(
            ++sent[uct_sep_iface_addr_id(&c.super.peer.iface)]);
}

void node::farewell()
{
    uct_sep_conn_out_t out;
    uct_sep_conn_msg_t msg;

    for (auto &entry : conns) {
        const uct_sep_conn_t &sm = entry.second->super;

        uct_sep_conn_farewell(&sm, &out);
        if (out.actions & UCT_SEP_CONN_ACTION_SEND_DREP) {
            uct_sep_conn_msg_fill(&env, &sm, UCT_SEP_CONN_MSG_DREP, &out,
                                  &self, &msg);
            send(sm.peer, msg);
        }
    }
}

void node::start(model_conn &c)
{
    uct_sep_conn_out_t out;
    ucs_status_t status;

    status = uct_sep_conn_start(&env, &c.super, m_world.now, &out);
    if (status == UCS_OK) {
        EXPECT_EQ(UCT_SEP_CONN_STATE_CONNECTED, c.super.state);
    } else if (status != UCS_INPROGRESS) {
        EXPECT_EQ(UCT_SEP_CONN_STATE_IDLE, c.super.state);
    }
    c.wanted         = !UCS_STATUS_IS_ERR(status);
    c.super.refcount = 1;
    perform(c, out);
    m_world.check();
}

/* One is left to those who connect to us */
bool node::has_room() const
{
    return m_world.alive_qps(*this) + 1 < max_qps;
}

void node::want(model_conn &c)
{
    c.super.refcount = 1;
    ++c.to_send;
    if ((c.super.state == UCT_SEP_CONN_STATE_CONNECTED) && !c.quiet) {
        --c.to_send;
        send_message(c);
    } else if ((c.super.state != UCT_SEP_CONN_STATE_IDLE) || has_room()) {
        start(c);
    } else {
        c.waits = true;
    }
}

void node::reset(model_conn &c)
{
    uct_sep_conn_out_t out;

    user_has_control = true;
    uct_sep_conn_reset(&env, &c.super, m_world.now, &out);
    user_has_control = false;
    c.must_reset     = false;
    perform(c, out);
    m_world.check();
}

void node::timeout(model_conn &c)
{
    uct_sep_conn_out_t out;

    uct_sep_conn_timeout(&env, &c.super, m_world.now, &out);
    perform(c, out);
    m_world.check();
}

void node::reject(const uct_sep_conn_msg_t &msg, uct_sep_conn_rej_t reason)
{
    uct_sep_conn_msg_t rej = {};

    if ((msg.type != UCT_SEP_CONN_MSG_REQ) &&
        (msg.type != UCT_SEP_CONN_MSG_REP) &&
        (msg.type != UCT_SEP_CONN_MSG_DREQ)) {
        return;
    }

    rej.type      = UCT_SEP_CONN_MSG_REJ;
    rej.reason    = reason;
    rej.dst_id    = uct_sep_iface_addr_id(&msg.src.iface);
    rej.src       = self;
    rej.dst_epoch = msg.src_epoch;
    rej.dst_nonce = msg.src_nonce;
    uct_sep_iface_addr_pack(ud_qpn, msg.dst_id,
                            uct_sep_iface_addr_flags(&self.iface),
                            &rej.src.iface);
    send(msg.src, rej);
}

void node::reply_gone(const uct_sep_conn_msg_t &msg)
{
    uct_sep_conn_msg_t drep = {};

    drep.type      = UCT_SEP_CONN_MSG_DREP;
    drep.dst_id    = uct_sep_iface_addr_id(&msg.src.iface);
    drep.src       = self;
    drep.src_epoch = msg.dst_epoch;
    drep.src_nonce = nonce(msg.dst_epoch);
    drep.dst_epoch = msg.src_epoch;
    drep.dst_nonce = msg.src_nonce;
    if (drep.src_nonce == msg.dst_nonce) {
        send(msg.src, drep);
    }
}

void node::receive(const std::vector<uint8_t> &bytes)
{
    uct_sep_conn_msg_t msg;
    uct_sep_conn_out_t out;

    if (uct_sep_conn_msg_parse(bytes.data(), bytes.size(), &msg) !=
        UCT_SEP_CONN_PARSE_OK) {
        return;
    }

    if (msg.dst_id != uct_sep_iface_addr_id(&self.iface)) {
        reject(msg, UCT_SEP_CONN_REJ_STALE_IFACE);
        return;
    }

    if ((find(msg.src) == nullptr) && (msg.type == UCT_SEP_CONN_MSG_DREQ)) {
        reply_gone(msg);
        return;
    }

    if ((find(msg.src) == nullptr) && (msg.type != UCT_SEP_CONN_MSG_REQ)) {
        reject(msg, UCT_SEP_CONN_REJ_STALE_EPOCH);
        return;
    }

    model_conn &c = conn(msg.src);
    uct_sep_conn_recv(&env, &c.super, &msg, m_world.now, &out);
    perform(c, out);
    m_world.check();
}

void node::hear(uint32_t qpn)
{
    uct_sep_conn_out_t out;

    for (auto &entry : conns) {
        model_conn &c = *entry.second;

        if (uct_sep_conn_heard(&env, &c.super, qpn, &out)) {
            perform(c, out);
            break;
        }
    }

    /* If it has waited for anything, that was it */
    for (auto &entry : conns) {
        const model_conn &c = *entry.second;

        EXPECT_FALSE((qpn == ((c.responder != 0) ? c.responder : c.qpn)) &&
                     (c.super.state == UCT_SEP_CONN_STATE_REP_SENT));
    }
    m_world.check();
}

uct_sep_conn_msg_t node::message_to(const node &to,
                                    uct_sep_conn_msg_type_t type,
                                    uint32_t qpn) const
{
    uct_sep_conn_msg_t msg = {};

    msg.type        = type;
    msg.src         = self;
    msg.dst_id      = uct_sep_iface_addr_id(&to.self.iface);
    msg.qp.qpn      = qpn;
    msg.qp.psn      = qpn * 3;
    msg.qp.path_mtu = 3;
    return msg;
}

void node::close()
{
    user_has_control = true;
    for (auto &entry : conns) {
        uct_sep_conn_close(&env, &entry.second->super);
    }
    user_has_control = false;
}

size_t world::alive_qps(const node &n) const
{
    return std::count_if(qps.begin(), qps.end(), [&](const auto &entry) {
        return (entry.second.node == n.ud_qpn) && entry.second.alive &&
               !entry.second.is_responder;
    });
}

size_t world::num_made() const
{
    return std::count_if(qps.begin(), qps.end(), [](const auto &entry) {
        return !entry.second.is_responder;
    });
}

/* Whether what is sent on a QP arrives */
bool world::is_usable(uint32_t qpn) const
{
    const model_qp &qp = qps.at(qpn);
    auto remote        = qps.find(qp.remote);

    return !qp.is_error && (remote != qps.end()) && remote->second.alive &&
           !remote->second.is_error && (remote->second.remote == qpn);
}

node *world::find_node(uint32_t ud_qpn) const
{
    for (auto &n : nodes) {
        if (n->ud_qpn == ud_qpn) {
            return n.get();
        }
    }
    return nullptr;
}

void world::deliver(uint32_t qpn)
{
    model_qp &qp      = qps.at(qpn);
    uint64_t number   = qp.under_way.front();
    model_qp &remote  = qps.at(qp.remote);
    node *to          = find_node(remote.node);
    uint64_t from     = uct_sep_iface_addr_id(
                                &find_node(qp.node)->self.iface);

    qp.under_way.erase(qp.under_way.begin());
    EXPECT_TRUE(remote.alive && !remote.is_error && (remote.remote != 0))
            << "message " << number << " is lost";
    EXPECT_EQ(to->received[from] + 1, number) << "out of order";
    to->received[from] = number;
    to->hear(qp.remote);
}

/* A QP goes into the error state. Its user gets to know if it is one that
 * sends; if not, the one that sends to it, when it does. */
void world::lose(uint32_t qpn)
{
    uint32_t user = qps[qpn].is_responder ? qps[qpn].remote : qpn;

    qps[qpn].is_error = true;
    for (auto &n : nodes) {
        for (auto &entry : n->conns) {
            model_conn &c = *entry.second;

            if ((c.qpn == user) && (user != 0) &&
                (c.super.state == UCT_SEP_CONN_STATE_CONNECTED)) {
                n->reset(c);
                n->start(c);
                return;
            }
        }
    }
}

/* What holds at all times */
void world::check() const
{
    for (const auto &n : nodes) {
        size_t expected = 0, responders = 0;

        if (!n) {
            continue;
        }

        for (const auto &entry : n->conns) {
            const model_conn &c      = *entry.second;
            const uct_sep_conn_t &sm = c.super;
            bool has_qp              = (sm.state != UCT_SEP_CONN_STATE_IDLE);
            bool is_waiting          =
                    (sm.state == UCT_SEP_CONN_STATE_REQ_SENT) ||
                    (sm.state == UCT_SEP_CONN_STATE_REP_SENT) ||
                    /* For a while */
                    ((sm.state == UCT_SEP_CONN_STATE_DISCONNECTING) &&
                     (sm.deadline != 0));

            EXPECT_EQ(has_qp, c.qpn != 0);
            EXPECT_EQ(has_qp, sm.local_epoch != 0);
            EXPECT_EQ(is_waiting, sm.deadline != 0) << "timer armed for "
                    << uct_sep_conn_state_name(sm.state);
            EXPECT_EQ(c.must_reset,
                      sm.state == UCT_SEP_CONN_STATE_RESETTING);
            expected   += has_qp;
            responders += (c.responder != 0);
            EXPECT_TRUE(has_qp || (c.responder == 0));

            if (has_qp) {
                const model_qp &qp = qps.at(c.qpn);
                EXPECT_TRUE(qp.alive);
                EXPECT_EQ(qp.remote == 0,
                          sm.state == UCT_SEP_CONN_STATE_REQ_SENT);
                EXPECT_EQ(qp.in_use,
                          (sm.state == UCT_SEP_CONN_STATE_CONNECTED) ||
                          (sm.state == UCT_SEP_CONN_STATE_DISCONNECTING) ||
                          (sm.state == UCT_SEP_CONN_STATE_RESETTING));
            }
            if (c.responder != 0) {
                const model_qp &responder = qps.at(c.responder);

                EXPECT_TRUE(responder.alive);
                EXPECT_EQ(qps.at(c.qpn).in_use, responder.in_use);
                EXPECT_EQ(qps.at(c.qpn).remote == 0, responder.remote == 0);
            }
        }
        EXPECT_EQ(expected, alive_qps(*n)) << "QPs leaked";
        EXPECT_EQ(n->env.num_half_open,
                  (size_t)std::count_if(n->conns.begin(), n->conns.end(),
                                        [](const auto &entry) {
            return entry.second->super.state == UCT_SEP_CONN_STATE_REP_SENT;
        }));
        EXPECT_EQ(responders,
                  (size_t)std::count_if(qps.begin(), qps.end(),
                                        [&](const auto &entry) {
            return (entry.second.node == n->ud_qpn) && entry.second.alive &&
                   entry.second.is_responder;
        })) << "QPs leaked";
    }
}

std::vector<world::packet> world::forge() const
{
    const uint32_t LAST_EPOCH = UINT32_MAX, NO_QP = 0xbad000;
    std::vector<packet> packets;

    for (size_t i = 0; i < 2; ++i) {
        const node &claimed = *nodes[i];
        node &victim        = *nodes[1 - i];
        model_conn *c       = victim.find(claimed.self);
        uint32_t ours       = c ? c->super.local_epoch : 0;
        uint32_t theirs     = c ? c->super.remote_epoch : 0;

        auto add = [&](uct_sep_conn_msg_type_t type, uint32_t src_epoch,
                       uint32_t dst_epoch, uct_sep_conn_rej_t reason) {
            auto msg = claimed.message_to(victim, type, NO_QP);
            uct_sep_conn_packet_t bytes;

            if (is_split(0) || is_split(1)) {
                msg.qp.responder_qpn = NO_QP + 1;
            }
            msg.src_epoch = src_epoch;
            msg.dst_epoch = dst_epoch;
            msg.src_nonce = 0xbad;
            msg.dst_nonce = (type == UCT_SEP_CONN_MSG_REQ) ? 0 : 0xbad;
            msg.reason    = reason;
            uct_sep_conn_msg_pack(&msg, &bytes);
            packets.push_back({victim.ud_qpn,
                               {(uint8_t*)&bytes, (uint8_t*)(&bytes + 1)}});
        };

        for (uint32_t epoch : {theirs + 1, LAST_EPOCH}) {
            add(UCT_SEP_CONN_MSG_REQ, epoch, 0, UCT_SEP_CONN_REJ_NONE);
        }
        if (ours == 0) {
            continue; /* The others are answers */
        }
        for (uint32_t epoch : {std::max(theirs, 1u), LAST_EPOCH}) {
            add(UCT_SEP_CONN_MSG_REP, epoch, ours, UCT_SEP_CONN_REJ_NONE);
        }
        add(UCT_SEP_CONN_MSG_RTU, std::max(theirs, 1u), ours,
            UCT_SEP_CONN_REJ_NONE);
        for (auto reason : {UCT_SEP_CONN_REJ_NO_RESOURCES,
                            UCT_SEP_CONN_REJ_STALE_EPOCH}) {
            add(UCT_SEP_CONN_MSG_REJ, 0, ours, reason);
        }
        for (auto type : {UCT_SEP_CONN_MSG_DREQ, UCT_SEP_CONN_MSG_DREP}) {
            add(type, std::max(theirs, 1u), ours, UCT_SEP_CONN_REJ_NONE);
        }
    }
    return packets;
}

/* What users of established connections may do */
void world::add_uses(std::vector<std::function<void()>> &events,
                     chooser &choose, faults &left)
{
    for (auto &n : nodes) {
        for (auto &entry : n->conns) {
            node *owner   = n.get();
            model_conn *c = entry.second.get();

            if (c->super.state != UCT_SEP_CONN_STATE_CONNECTED) {
                continue;
            }
            if ((left.sends > 0) && (c->super.refcount > 0)) {
                events.push_back([=, &left]() {
                    --left.sends;
                    owner->send_message(*c);
                });
            }
            if ((left.quits > 0) && (c->super.refcount == 0) &&
                qps[c->qpn].under_way.empty()) {
                events.push_back([=, &choose, &left]() {
                    --left.quits;
                    owner->quit(*c, choose.pick(2));
                });
            }
            if ((left.evicts > 0) && (c->super.refcount > 0) &&
                qps[c->qpn].under_way.empty()) {
                events.push_back([=, &choose, &left]() {
                    --left.evicts;
                    owner->quit(*c, choose.pick(2));
                });
            }
        }
    }
}

/* What users say who were asked */
void world::add_answers(std::vector<std::function<void()>> &events)
{
    for (auto &n : nodes) {
        for (auto &entry : n->conns) {
            node *owner   = n.get();
            model_conn *c = entry.second.get();

            if (!c->asked) {
                continue;
            }
            events.push_back([=]() { owner->answer_asked(*c, false); });
            if ((c->super.state != UCT_SEP_CONN_STATE_CONNECTED) ||
                qps[c->qpn].under_way.empty()) {
                events.push_back([=]() { owner->answer_asked(*c, true); });
            }
        }
    }
}

/* Who waits for room starts when there is some; until then others are asked for
 * theirs */
void world::add_evictions(std::vector<std::function<void()>> &events,
                          chooser &choose)
{
    for (auto &n : nodes) {
        node *owner     = n.get();
        bool is_waiting = false;

        for (auto &entry : n->conns) {
            model_conn *c = entry.second.get();

            bool is_idle = c->super.state == UCT_SEP_CONN_STATE_IDLE;

            /* Who was only called by the peer is served when he comes back */
            c->waits    = c->waits && (is_idle || (c->to_send > 0));
            is_waiting |= c->waits && is_idle;
            if (c->waits && (!is_idle || n->has_room())) {
                events.push_back([=]() {
                    c->waits = false;
                    owner->start(*c);
                });
            }
        }
        for (auto &entry : n->conns) {
            model_conn *c = entry.second.get();

            if (is_waiting && !n->has_room() &&
                (c->super.state == UCT_SEP_CONN_STATE_CONNECTED) &&
                qps[c->qpn].under_way.empty()) {
                events.push_back([=, &choose]() {
                    owner->quit(*c, choose.pick(2));
                });
            }
        }
    }
}

/* One thing happens, of all that can. False if nothing can. */
bool world::step(chooser &choose, faults &left, bool allow_user)
{
    std::vector<std::function<void()>> events;
    /* Timeouts are long: before one, packets arrive and users wake up */
    bool is_quiet = wire.empty();

    for (auto &n : nodes) {
        for (auto &entry : n->conns) {
            is_quiet = is_quiet && !entry.second->must_reset &&
                       !entry.second->asked;
        }
    }

    for (auto &entry : qps) {
        uint32_t qpn = entry.first;

        if (!entry.second.under_way.empty()) {
            is_quiet = false;
            events.push_back([=]() { deliver(qpn); });
        }
    }

    for (size_t i = 0; i < wire.size(); ++i) {
        auto take = [this, i]() {
            packet p = wire[i];
            wire.erase(wire.begin() + i);
            return p;
        };
        auto deliver = [this](const packet &p) {
            for (auto &n : nodes) {
                if (n && (n->ud_qpn == p.dst_ud_qpn)) {
                    n->receive(p.bytes);
                    return;
                }
            }
        };

        events.push_back([=]() { deliver(take()); });
        if (left.drops > 0) {
            events.push_back([=, &left]() { --left.drops; take(); });
        }
        if (left.dups > 0) {
            events.push_back([=, &left]() {
                packet p = wire[i];
                --left.dups;
                deliver(p);
            });
        }
    }

    for (auto &n : nodes) {
        for (auto &entry : n->conns) {
            node *owner   = n.get();
            model_conn *c = entry.second.get();

            if ((c->super.deadline != 0) && (is_quiet || left.hurries)) {
                bool is_hurry = !is_quiet;
                events.push_back([=, &left]() {
                    left.hurries -= is_hurry;
                    now           = std::max(now, c->super.deadline);
                    owner->timeout(*c);
                });
            }
            bool is_idle = (c->qpn == 0) || qps[c->qpn].under_way.empty();

            if (c->must_reset) {
                /* Who agrees waits for what is under way */
                if (is_idle || !(c->super.flags & UCT_SEP_CONN_FLAG_AGREED)) {
                    bool is_user = !forgets || (c->super.refcount > 0);
                    events.push_back([=]() {
                        /* Of a connection without a use nothing is left */
                        c->waits |= is_tight && (c->to_send > 0);
                        owner->reset(*c);
                        if (!is_tight && is_user && !sleeps) {
                            owner->start(*c);
                        }
                    });
                }
            } else if (allow_user && (left.errors > 0) &&
                       (c->super.state == UCT_SEP_CONN_STATE_CONNECTED)) {
                for (uint32_t qpn : {c->qpn, c->responder}) {
                    if ((qpn != 0) && !qps[qpn].is_error) {
                        events.push_back([=, &left]() {
                            --left.errors;
                            lose(qpn);
                        });
                    }
                }
            }
        }
    }

    if (left.forged > 0) {
        for (const packet &p : forge()) {
            events.push_back([=, &left]() {
                --left.forged;
                for (auto &n : nodes) {
                    if (n->ud_qpn == p.dst_ud_qpn) {
                        n->receive(p.bytes);
                    }
                }
            });
        }
    }

    add_uses(events, choose, left);
    add_answers(events);
    if (is_tight) {
        add_evictions(events, choose);
    }

    if (left.closes > 0) {
        events.push_back([=, &left]() {
            --left.closes;
            starts.clear();
            leaves.clear();
            nodes[1]->farewell();
            restart(1);
        });
    }

    if (left.kills > 0) {
        events.push_back([=, &left]() {
            --left.kills;
            starts.clear();
            restart(1);
            starts = {{1, 0}};
        });
    }

    for (size_t i = 0; i < starts.size(); ++i) {
        events.push_back([=]() {
            auto s = starts[i];
            starts.erase(starts.begin() + i);
            model_conn &c = nodes[s.first]->conn(nodes[s.second]->self);
            if (is_tight) {
                nodes[s.first]->want(c);
            } else {
                nodes[s.first]->start(c);
            }
        });
    }

    for (size_t i = 0; i < leaves.size(); ++i) {
        node *n       = nodes[leaves[i].first].get();
        model_conn *c = n->find(nodes[leaves[i].second]->self);

        if ((c != nullptr) && (c->super.refcount > 0)) {
            events.push_back([=]() {
                leaves.erase(leaves.begin() + i);
                n->leave(*c);
            });
        }
    }

    if (events.empty()) {
        return false;
    }

    events[choose.pick(events.size())]();
    return true;
}

void world::settle(chooser &choose, faults left)
{
    unsigned steps = 0;

    while (step(choose, left)) {
        ASSERT_LT(++steps, 20000u) << "does not come to rest";
    }
}

void world::expect_connected(size_t i, size_t j) const
{
    model_conn *ci = nodes[i]->find(nodes[j]->self);
    model_conn *cj = nodes[j]->find(nodes[i]->self);

    ASSERT_NE(nullptr, ci);
    ASSERT_NE(nullptr, cj);
    EXPECT_EQ(UCT_SEP_CONN_STATE_CONNECTED, ci->super.state);
    EXPECT_EQ(UCT_SEP_CONN_STATE_CONNECTED, cj->super.state);
    ASSERT_NE(0u, ci->qpn);
    ASSERT_NE(0u, cj->qpn);
    EXPECT_EQ(is_split(i) || is_split(j), ci->responder != 0);
    EXPECT_EQ(ci->responder != 0, cj->responder != 0);
    /* Each to where the other receives */
    EXPECT_EQ(cj->responder ? cj->responder : cj->qpn, qps.at(ci->qpn).remote);
    EXPECT_EQ(ci->responder ? ci->responder : ci->qpn, qps.at(cj->qpn).remote);
    EXPECT_TRUE(is_usable(ci->qpn));
    EXPECT_TRUE(is_usable(cj->qpn));
    EXPECT_EQ(0u, ci->super.deadline);
    EXPECT_EQ(0u, cj->super.deadline);
}

} // namespace sep_conn_model
