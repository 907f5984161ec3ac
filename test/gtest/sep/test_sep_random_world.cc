/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The life of a world: interfaces, endpoints, time, and what happens by itself.
 */

#include <sep/test_sep_random_chance.h>
#include <sep/test_sep_random_world.h>
#include <common/step.h>

#include <uct/ib/sep/conn/sep_cm_int.h>
#include <uct/ib/sep/hub/sep_hub.h>

#include <poll.h>

#include <algorithm>
#include <cstring>

namespace sep_random {

/* When an interface is closed, it waits for events of the device */
static void step_and_poll_events()
{
    step::make();
    ucs_async_poll(NULL);
}

/* ... and its connection manager for its last packets, by the real time */
static uct_sep_cm_t *closing;
static int (*poll_cq)(struct ibv_cq*, int, struct ibv_wc*);

static int step_and_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
    if (closing != nullptr) {
        step::make();
        closing->closing = (closing->closing == 0) ? 0 : UINT64_MAX;
    }
    return poll_cq(cq, num, wc);
}

/* Loses and repeats packets of connections */
static unsigned filter_packet(void *arg, const uct_sep_conn_msg_t*)
{
    unsigned loss = *(unsigned*)arg & 0xff;
    uint8_t dice  = chance::draw(2, *(unsigned*)arg >> 8);

    *(unsigned*)arg += 0x100;
    return (dice < loss) ? 0 : (dice < 2 * loss) ? 2 : 1;
}

/* As entity has it */
static const size_t headroom = 24;

static uint64_t sum(const void *data, size_t length)
{
    uint64_t result = length;

    for (size_t i = 0; i < length; ++i) {
        result = (result ^ ((const uint8_t*)data)[i]) * 0x100000001b3ull;
    }
    return result;
}

outstanding::outstanding(world &self, link &owner) : self(self), owner(owner)
{
    comp.func   = done;
    comp.count  = 1;
    comp.status = UCS_OK;
}

void outstanding::done(uct_completion_t *comp)
{
    outstanding *op = ucs_container_of(comp, outstanding, comp);
    link &l         = op->owner;

    ++op->calls;
    op->self.note(l.id, op->is_used, op->calls, comp->status);
    if ((comp->status != UCS_OK) && (l.ep != nullptr) &&
        !op->self.may_fail(l)) {
        op->self.expect(l, std::string("an operation ended with ") +
                           ucs_status_string(comp->status));
    }
    if (op->func) {
        op->func(comp->status);
    }
    op->self.act(l.src, &l);
}

world::world()
{
    chance::fix(0, step_and_poll_events);
    m_base = entity::create({{"RX_QUEUE_LEN", "16"}});
    /* Without queue pairs, their numbers are the same for each schedule */
    m_base->close_iface();
    m_local.reset(new memory(m_base->md(), max_buffers * model::data_size));
    m_nodes.resize(max_ifaces);
    for (auto &n : m_nodes) {
        n.mem.reset(new memory(m_base->md(), max_places * model::place_size +
                                             sizeof(uint64_t)));
        EXPECT_EQ(UCS_OK, uct_rkey_unpack(m_base->component(),
                                          n.mem->packed_rkey().data(),
                                          &n.rkey));
    }
}

world::~world()
{
    for (auto &n : m_nodes) {
        uct_rkey_release(m_base->component(), &n.rkey);
    }
}

std::string world::run(const schedule &plan)
{
    m_plan = &plan;
    begin(plan);
    for (auto &op : plan.ops) {
        if (m_wrong.empty()) {
            execute(op);
            advance(op);
        }
    }
    if (m_wrong.empty()) {
        settle();
    }
    if (m_wrong.empty()) {
        check_all();
    }
    end();
    return m_wrong;
}

void world::begin(const schedule &plan)
{
    m_wrong.clear();
    m_trace        = 0;
    m_num_stirs    = 0;
    m_num_acts     = 0;
    m_sleepers     = plan.sleepers;
    m_num_packets  = plan.cm_loss;
    m_buffers_used = 0;
    chance::fix(plan.seed, step_and_poll_events);
    step::restart(plan.seed);
    for (unsigned i = 0; i < plan.ifaces.size(); ++i) {
        node &n       = m_nodes[i];
        n.incarnation = 0;
        n.next_place  = 0;
        n.added       = 0;
        memset(n.mem->ptr(), 0, n.mem->size());
        if (!open(i)) {
            return;
        }
    }
}

bool world::open(unsigned iface)
{
    /* Packets of connections come again when the schedule says so */
    settings config = {{"CM_TIMEOUT", "1000s"}, {"CM_RETRY_COUNT", "40"}};
    node &n         = m_nodes[iface];

    config.insert(config.end(), m_plan->ifaces[iface].begin(),
                  m_plan->ifaces[iface].end());
    n.e = entity::create(*m_base, config);
    if (n.e == nullptr) {
        wrong("interface " + std::to_string(iface) + " can't be opened");
        return false;
    }

    ++n.incarnation;
    n.addr          = n.e->addr();
    n.is_asleep     = false;
    if (uct_iface_event_fd_get(n.e->iface(), &n.event_fd) != UCS_OK) {
        wrong("there is nothing to wait for events with");
        return false;
    }
    n.e->on_failure = [this, iface]() { on_failure(iface); };
    for (uint8_t id : {0, 1}) {
        m_handlers[iface][id] = {this, iface, id};
        uct_iface_set_am_handler(n.e->iface(), id,
                                 [](void *arg, void *data, size_t length,
                                    unsigned flags) {
            handler *h = (handler*)arg;
            bool keeps = (h->id == 1) && (flags & UCT_CB_PARAM_FLAG_DESC);

            std::vector<uint8_t> copy((uint8_t*)data,
                                      (uint8_t*)data + length);
            h->self->on_message(h->iface, h->id, data, length);
            if (memcmp(copy.data(), data, length) != 0) {
                h->self->wrong("a message changed while it was handled");
            }
            if (keeps) {
                h->self->m_nodes[h->iface].kept.push_back(
                        {(uint8_t*)data, length, sum(data, length)});
                /* The headroom in front is ours to write to */
                memset((uint8_t*)data - headroom, 0xee, headroom);
            }
            return keeps ? UCS_INPROGRESS : UCS_OK;
        }, &m_handlers[iface][id], 0);
    }

    /* Connections are not kept for any time: it would be another one each time
     * that the schedule is run */
    n.e->sep()->conn.budget.connect_time = 1;

    uct_sep_cm_t *cm = n.e->sep()->conn.cm;
    cm->tx_filter     = (m_plan->cm_loss > 0) ? filter_packet : NULL;
    cm->tx_filter_arg = &m_num_packets;
    auto &ops = cm->cq->context->ops;
    if (ops.poll_cq != step_and_poll_cq) {
        poll_cq     = ops.poll_cq;
        ops.poll_cq = step_and_poll_cq;
    }
    return true;
}

void world::close(unsigned iface)
{
    node &n = m_nodes[iface];

    if (n.e == nullptr) {
        return;
    }
    for (auto &l : m_links) {
        if ((l.src == iface) && (l.ep != nullptr)) {
            destroy(l);
        }
    }
    release(iface);
    closing = n.e->sep()->conn.cm;
    n.e.reset();
    closing = nullptr;
}

void world::release(unsigned iface)
{
    for (auto &desc : m_nodes[iface].kept) {
        if (sum(desc.data, desc.length) != desc.sum) {
            wrong("a message that was kept has changed");
        }
        uct_iface_release_desc(desc.data - headroom);
    }
    m_nodes[iface].kept.clear();
}

bool world::is_hub(unsigned iface) const
{
    const node &n = m_nodes[iface];

    return (n.e != nullptr) && n.e->is_on_hub();
}

/* An interface does what it does by itself */
bool world::drive(unsigned iface)
{
    node &n = m_nodes[iface];

    if (n.e == nullptr) {
        return false;
    }
    ucs_async_poll(n.e->sep()->super.worker->async);
    if (n.is_asleep) {
        struct pollfd pfd = {n.event_fd, POLLIN, 0};

        if (poll(&pfd, 1, 0) == 0) {
            return false;
        }
        n.is_asleep = false;
    }
    bool is_moving = n.e->progress() > 0;
    expect_share(iface);
    if (is_moving) {
        return true;
    }
    if (!(m_sleepers & (1 << iface))) {
        return false;
    }
    /* What others may have done meanwhile must not be lost */
    ucs_async_poll(n.e->sep()->super.worker->async);
    n.is_asleep = uct_iface_event_arm(n.e->iface(), UCT_EVENT_RECV |
                                      (is_waiting(iface) ? UCT_EVENT_SEND_COMP :
                                                           0)) == UCS_OK;
    return false;
}

/* Nobody has more queue pairs than a share of the budget, which is another one
 * when others close and open */
void world::expect_share(unsigned iface)
{
    const uct_sep_ep_budget_t &budget = m_nodes[iface].e->sep()->conn.budget;
    unsigned num_shares               = 0;

    for (unsigned i = 0; i < m_plan->ifaces.size(); ++i) {
        const node &n = m_nodes[i];

        if ((n.incarnation != 1) || (n.e == nullptr) || is_hub(i)) {
            return;
        }
        num_shares += n.e->sep()->conn.budget.shared != NULL;
    }
    if ((budget.shared != NULL) &&
        (m_nodes[iface].e->num_qps() >
         budget.max / num_shares + budget.num_exceeded)) {
        wrong("interface " + std::to_string(iface) + " exceeds its share");
    }
}

/* Whether anything of an interface is to complete */
bool world::is_waiting(unsigned iface) const
{
    return std::any_of(m_waiting.begin(), m_waiting.end(),
                       [=](const waiting &w) {
        return (w.owner->src == iface) && !w.is_done && !w.owner->is_failed;
    }) || std::any_of(m_outstanding.begin(), m_outstanding.end(),
                      [=](const outstanding &op) {
        return (op.owner.src == iface) && op.is_used && (op.calls == 0);
    });
}

/* Nobody sleeps from here on. Returns whether anybody did. */
bool world::wake_all()
{
    bool was_asleep = m_sleepers != 0;

    m_sleepers = 0;
    for (auto &n : m_nodes) {
        n.is_asleep = false;
    }
    return was_asleep;
}

/* In a callback of an interface, about an endpoint's operation if there is one
 */
void world::act(unsigned iface, link *l)
{
    const node &n = m_nodes[iface];
    unsigned dice = chance::draw(3, ++m_num_acts) % 64;

    if ((m_depth == max_depth) || (n.e == nullptr)) {
        return;
    }

    ++m_depth;
    if ((l != nullptr) && (l->ep != nullptr) && !l->is_cut && !l->is_failed) {
        if ((m_plan->acts & ACT_CANCEL) && (dice == 0)) {
            fault(*l, CANCEL);
        } else if ((m_plan->acts & ACT_DESTROY) && (dice == 1)) {
            destroy(*l);
        }
    }
    for (unsigned i = 0; (m_plan->acts & ACT_PROGRESS) && (i < dice % 4); ++i) {
        step::make();
        n.e->progress();
    }
    --m_depth;
}

void world::advance(const operation &op)
{
    for (unsigned i = 0; i < op.rounds; ++i) {
        step::make();
    }
    for (unsigned i = 0; i < m_plan->ifaces.size(); ++i) {
        if (op.progress & (1 << i)) {
            drive(i);
        }
    }
    if (op.progress & 0x80) {
        ucs_async_poll(NULL);
    }
}

/* Deadlines of connections that are being made are now */
void world::expire(unsigned iface)
{
    uct_sep_conn_t *conn;

    if (m_nodes[iface].e == nullptr) {
        return;
    }
    ucs_list_for_each(conn, &m_nodes[iface].e->sep()->conn.cm->timers,
                      timer_link) {
        conn->deadline = 1;
    }
}

void world::find_unused(unsigned iface)
{
    if (m_nodes[iface].e != nullptr) {
        uct_sep_cm_t *cm = m_nodes[iface].e->sep()->conn.cm;

        cm->keepalive_from = 0;
        ucs_async_poll(cm->async);
        cm->keepalive_from = UCS_TIME_INFINITY;
    }
}

link *world::get_link(unsigned iface, unsigned position)
{
    node &n     = m_nodes[iface];
    link *&slot = n.links[position];

    if ((slot != nullptr) && (slot->ep != nullptr) && !slot->is_failed) {
        return slot;
    }
    if ((slot != nullptr) && (slot->ep != nullptr)) {
        destroy(*slot);
    }
    slot = nullptr;

    if ((n.e == nullptr) && !open(iface)) {
        return nullptr;
    }

    unsigned dst = (iface + 1 + position) % m_plan->ifaces.size();
    node &to     = m_nodes[dst];
    if (to.next_place == max_places) {
        return nullptr;
    }

    size_t offset = to.next_place++ * model::place_size;
    m_links.emplace_back(m_by_id.size(), iface, dst, to.incarnation,
                         to.mem->ptr() + offset);
    link &l  = m_links.back();
    l.remote = to.mem->va() + offset;
    m_by_id.push_back(&l);
    if (to.e == nullptr) {
        cut(iface, dst);
    }

    ucs_status_t status = n.e->try_connect(to.addr, &l.ep);
    if (status != UCS_OK) {
        l.ep = nullptr;
        if (!may_fail(l)) {
            wrong("an endpoint can't be created: " +
                  std::string(ucs_status_string(status)));
        }
        return nullptr;
    }
    return slot = &l;
}

void world::purge(link &l)
{
    uct_ep_pending_purge(l.ep, [](uct_pending_req_t *req, void *arg) {
        waiting *w = ucs_container_of(req, waiting, req);

        w->is_done = w->owner == arg;
    }, &l);
    if (has_waiting(l)) {
        expect(l, "a request was not purged");
    }
}

void world::destroy(link &l)
{
    uct_ep_h ep = l.ep;

    purge(l);
    /* A hub has accepted messages that it may not be able to send yet */
    l.is_cut |= is_hub(l.src);
    l.ep      = nullptr;
    m_nodes[l.src].e->destroy(ep);
    /* In a callback, what calls it may be about to end others */
    for (auto &op : m_outstanding) {
        if ((m_depth == 0) && (&op.owner == &l) && op.is_used &&
            (op.calls == 0)) {
            expect(l, "an operation outlives its endpoint");
        }
    }
}

void world::on_failure(unsigned iface)
{
    const sep_uct_test::failure last = m_nodes[iface].e->failures.back();

    for (auto &l : m_links) {
        if ((l.src == iface) && (l.ep == last.ep)) {
            l.is_failed = true;
            note(l.id, 0, 0, last.status);
            purge(l);
            if (m_plan->destroys) {
                destroy(l);
            }
            if (!may_fail(l)) {
                expect(l, std::string("the endpoint failed: ") +
                          ucs_status_string(last.status));
            } else if ((last.status != UCS_ERR_CONNECTION_RESET) &&
                       (last.status != UCS_ERR_ENDPOINT_TIMEOUT) &&
                       (last.status != UCS_ERR_UNREACHABLE)) {
                expect(l, std::string("the endpoint failed with ") +
                          ucs_status_string(last.status));
            }
            return;
        }
    }
    wrong("an endpoint failed that does not exist");
}

/* Something was done to the connection of two interfaces that may end it. What
 * is on a hub shares its connections. */
void world::cut(unsigned a, unsigned b)
{
    for (unsigned i = 0; i < m_plan->ifaces.size(); ++i) {
        for (unsigned j = 0; j < m_plan->ifaces.size(); ++j) {
            if (((i == a) || (is_hub(i) && is_hub(a))) &&
                ((j == b) || (is_hub(j) && is_hub(b)))) {
                m_cut.insert({i, j});
                m_cut.insert({j, i});
            }
        }
    }
}

bool world::may_fail(const link &l) const
{
    return l.is_cut || (m_cut.count({l.src, l.dst}) > 0);
}

void world::wrong(const std::string &what)
{
    if (m_wrong.empty()) {
        m_wrong = what;
    }
}

void world::note(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t what[] = {m_trace, a, b, c, d};

    m_trace = sum(what, sizeof(what));
}

void world::expect(const link &l, const std::string &what)
{
    if (!what.empty()) {
        wrong("endpoint " + std::to_string(l.id) + ", interface " +
              std::to_string(l.src) + " to " + std::to_string(l.dst) + ": " +
              what);
    }
}

/* Nothing goes on by itself any more: timers expire, and as UCP does now and
 * then, who waits for a peer looks whether it is there. A connection that waits
 * for room is patient for a second, five times as long as one that waits for
 * its peer. */
void world::stir()
{
    bool is_second = (++m_num_stirs % 5) == 0;

    for (unsigned i = 0; i < m_plan->ifaces.size(); ++i) {
        expire(i);
        if (is_second && (m_nodes[i].e != nullptr)) {
            m_nodes[i].e->sep()->conn.budget.deadline = 1;
        }
    }
    for (auto &l : m_links) {
        if (may_fail(l) && (l.ep != nullptr) && !l.is_failed) {
            uct_ep_check(l.ep, 0, NULL);
        }
    }
}

/* Nothing has come to an end for too long */
void world::describe_busy(bool is_moving)
{
    std::string what = "nothing comes to an end:";

    what += is_moving ? " there is something under way;" : "";
    for (unsigned i = 0; i < m_plan->ifaces.size(); ++i) {
        if ((m_nodes[i].e != nullptr) &&
            (uct_iface_flush(m_nodes[i].e->iface(), 0, NULL) != UCS_OK)) {
            what += " interface " + std::to_string(i) + " is not flushed;";
        }
    }
    for (auto &w : m_waiting) {
        if (!w.is_done && !w.owner->is_failed) {
            what += " endpoint " + std::to_string(w.owner->id) +
                    " has a pending request;";
        }
    }
    for (auto &op : m_outstanding) {
        if (op.is_used && (op.calls == 0) && (op.owner.ep != nullptr)) {
            what += " endpoint " + std::to_string(op.owner.id) +
                    " has an operation;";
        }
    }
    wrong(what);
}

/* Until all that was begun is over */
void world::settle()
{
    unsigned num_ifaces = m_plan->ifaces.size();
    unsigned quiet      = 0;
    unsigned stuck      = 0;

    for (unsigned round = 0; (quiet < 3) && m_wrong.empty(); ++round) {
        bool is_busy   = false;
        bool is_moving = step::make() != 0;

        ucs_async_poll(NULL);

        for (unsigned i = 0; i < num_ifaces; ++i) {
            is_moving |= drive(i);
            is_busy   |= is_waiting(i);
            /* It may post something, and so keep the device from skipping the
             * time that others wait */
            is_busy |= (!is_moving || (round % 64 == 0)) &&
                       (m_nodes[i].e != nullptr) && !m_nodes[i].is_asleep &&
                       (uct_iface_flush(m_nodes[i].e->iface(), 0, NULL) !=
                        UCS_OK);
        }
        for (auto &l : m_links) {
            is_busy |= (m_sleepers != 0) && !may_fail(l) &&
                       (l.truth.num_sent() != l.truth.num_received());
        }
        quiet = (is_busy || is_moving || ((quiet == 2) && wake_all())) ?
                        0 : (quiet + 1);
        stuck = (is_busy && !is_moving) ? (stuck + 1) : 0;
        if (stuck == 100) {
            stir();
            stuck = 0;
        }
        if (round == patience) {
            describe_busy(is_moving);
        }
    }
}

void world::check_all()
{
    std::vector<bool> is_whole(max_ifaces, true);

    for (auto &l : m_links) {
        bool is_lost = l.is_failed || l.is_cut ||
                       (may_fail(l) && (l.ep == nullptr)) ||
                       (l.incarnation != m_nodes[l.dst].incarnation) ||
                       (m_nodes[l.dst].e == nullptr);

        expect(l, is_lost ? l.truth.check_lost() : l.truth.check_all());
        is_whole[l.dst] = is_whole[l.dst] && !is_lost;
    }
    for (auto &op : m_outstanding) {
        if (op.calls != (unsigned)op.is_used) {
            expect(op.owner, "a completion was called " +
                             std::to_string(op.calls) + " times");
        }
    }
    /* Hubs may have sent grants that nobody waits for */
    for (auto &l : m_links) {
        if ((l.ep != nullptr) && !l.is_failed && !is_hub(l.src)) {
            const uct_sep_txwq_t *txwq = m_nodes[l.src].e->sep_ep(l.ep)->txwq;

            if ((txwq != NULL) && (txwq->conn.qp != NULL) &&
                (uct_sep_txwq_credits(txwq) != txwq->bb_max)) {
                expect(l, "credits are lost");
            }
        }
    }
    for (unsigned i = 0; i < m_plan->ifaces.size(); ++i) {
        uint64_t sum;

        if ((m_nodes[i].e != nullptr) && !is_hub(i)) {
            const uct_sep_iface_t *sep = m_nodes[i].e->sep();
            int credits = sep->tx.cq_credits +
                          ((sep->throttle.dev == NULL) ? 0 :
                                                         sep->throttle.held);

            if (credits != (int)sep->config.cq_len) {
                wrong("interface " + std::to_string(i) + " has " +
                      std::to_string(credits) + " of " +
                      std::to_string(sep->config.cq_len) + " credits");
            }
        }

        memcpy(&sum, m_nodes[i].mem->ptr() + max_places * model::place_size,
               sizeof(sum));
        if (is_whole[i] && (sum != m_nodes[i].added)) {
            wrong("interface " + std::to_string(i) + " has a sum of " +
                  std::to_string(sum) + ", not " +
                  std::to_string(m_nodes[i].added));
        }
    }
}

void world::end()
{
    for (unsigned i = 0; i < m_plan->ifaces.size(); ++i) {
        close(i);
        std::fill_n(m_nodes[i].links, max_positions, nullptr);
    }
    while (step::make() == 1) {
    }
    m_links.clear();
    m_by_id.clear();
    m_outstanding.clear();
    m_waiting.clear();
    m_cut.clear();
}

} // namespace sep_random
