/* SPDX-License-Identifier: BSD-3-Clause */

#include <scale/scale_shim.h>
#include <scale/scale_traffic.h>
#include <scale/scale_world.h>

#include <uct/ib/sep/base/sep_budget_node.h>
#include <uct/ib/sep/conn/sep_cm_int.h>
#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/ep/sep_ep.h>
#include <uct/ib/sep/ep/sep_evict.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/ep/sep_link_qp.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/iface/sep_event.h>

#include <ucs/config/types.h>
#include <ucs/sys/string.h>

#include <arpa/inet.h>
#include <cerrno>
#include <malloc.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <queue>
#include <random>
#include <unordered_map>

namespace scale {

namespace {

const uint16_t LID         = 7; /* Of all: the manager compares it */
const uint32_t FIRST_UD    = 2; /* Number of the first one's datagram QP */
const uint32_t FIRST_QP    = 0x10;
const unsigned SQ_LENGTH   = 128;
const unsigned RX_LENGTH   = 512; /* UCX_SEP_CM_RX_QUEUE_LEN */
const unsigned CQ_BATCH    = 16;  /* Completions of a call of progress */
const uint64_t RETRY_TIME  = 1000 * 1000 * 1000; /* A QP without a peer fails */
const uint64_t FLUSH_TIME  = 5000; /* A QP in error is flushed */
const uint64_t SLOWEST     = 5 * 1000 * 1000; /* A message takes at most */
const uint64_t VISIT_TIME  = 20;   /* To see whether one can be given up */

class world;
struct node;
world *the_world;

/* What a user does with an endpoint */
struct user_ep {
    uct_pending_req_t req; /* First */
    node              *owner;
    uct_sep_ep_t      *ep;
    uint32_t          to;
    uint32_t          next = 0; /* Message to be posted */
    uint32_t          end  = 0; /* Behind the last one that is there */
    bool              is_pending = false;
};

struct qp {
    uint32_t       owner;
    uint32_t       remote       = 0;
    uct_sep_txwq_t *txwq;
    uint64_t       messages     = 0; /* Sent */
    bool           is_alive     = true;
    bool           is_error     = false;
    bool           is_broken    = false; /* Its peer's adapter does not know it
                                            */
    uint64_t       last_arrival = 0;
};

struct cqe {
    enum { RECV, SENT, FLUSHED, ERROR } kind;
    uint32_t qpn;    /* RECV: sender */
    uint32_t number; /* RECV: of the message; SENT: index behind it */
    bool     is_empty;
};

struct packet {
    uint32_t              src_ud;
    uct_sep_conn_packet_t bytes;
};

struct timer {
    int                  id;
    ucs_time_t           interval;
    ucs_async_event_cb_t cb;
    void                 *arg;
};

struct callback {
    ucs_callback_t     func;
    void               *arg;
    uct_worker_cb_id_t *id_p;
};

struct node {
    uct_sep_iface_t               *iface;
    uint32_t                      index;
    ibv_qp                        ud  = {};
    std::deque<packet>            rx;
    std::deque<cqe>               cq;
    std::vector<timer>            timers;
    std::vector<callback>         callbacks;
    uint64_t                      busy_until = 0;
    uint64_t                      next_poll  = 0;
    bool                          is_polled  = false; /* It is due */
    long                          bytes      = 0;
    unsigned                      num_qps    = 0;
    unsigned                      max_qps    = 0;

    std::unordered_map<uint32_t, std::unique_ptr<user_ep>> eps;
    std::unordered_map<uint32_t, uint32_t>                 received;

    /* As a sender */
    bool                          is_sender = false;
    uint64_t                      made      = 0;
    uint64_t                      under_way = 0;
    uint64_t                      num_got   = 0;
};

struct event {
    enum type_t { PACKET, ARRIVE, SENT, FLUSHED, ERROR, TIMER, POLL, SEND };

    uint64_t time;
    uint64_t order;
    type_t   type;
    uint32_t where;  /* Node or queue pair */
    uint32_t what;   /* Packet, message, timer, or receiver */
    uint16_t end;    /* Index behind the work request */
    bool     is_empty;

    bool operator>(const event &other) const
    {
        return (time != other.time) ? (time > other.time) :
                                      (order > other.order);
    }
};

class world {
public:
    explicit world(const params &how);
    ~world();
    results run();

    uint64_t now() const
    {
        return m_now;
    }

    /* When the one who is doing something is through with it so far */
    uint64_t done() const
    {
        return std::max(m_now, m_current->busy_until);
    }

    node &current()
    {
        return *m_current;
    }

    node *find_current()
    {
        return m_current;
    }

    node &of(const uct_sep_iface_t *iface)
    {
        return *m_nodes[iface->port.pkey_index];
    }

    void take_time(uint64_t cost)
    {
        m_current->busy_until = done() + cost;
    }

    void send_packet(uint32_t to_ud, const uct_sep_conn_packet_t &bytes);
    unsigned drain(uct_sep_cm_t *cm);
    void random(void *buf, size_t length);
    qp &qp_open(uct_sep_txwq_t *txwq);
    void qp_connect(uint32_t qpn, uint32_t remote);
    void qp_error(uint32_t qpn);
    void qp_close(uint32_t qpn);
    void post(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, uint32_t number,
              bool is_empty);
    int next_timer_id()
    {
        return ++m_last_timer;
    }
    void add(uint64_t time, event::type_t type, uint32_t where,
             uint32_t what = 0, uint16_t end = 0, bool is_empty = false);
    /* Send what there is, as far as it goes; whether that is all */
    bool flush(user_ep &user);

    results res;

private:
    struct use {
        use(world &w, node &n) : m_world(w), m_last(w.m_current)
        {
            w.m_current = &n;
        }

        ~use()
        {
            m_world.m_current = m_last;
        }

        world &m_world;
        node  *m_last;
    };

    bool is_alone() const
    {
        return m_how.senders == 1;
    }

    uint32_t num_nodes() const
    {
        return is_alone() ? (m_how.peers + 1) : m_how.senders;
    }

    uint32_t node_of_peer(uint32_t sender, uint32_t peer) const
    {
        return (sender + 1 + peer) % num_nodes();
    }

    void address(uint32_t index, uct_sep_device_addr_t *dev_p,
                 uct_sep_iface_addr_t *iface_p) const;
    void open(node &n);
    void close(node &n);
    user_ep &connect(node &n, uint32_t to);
    void send(node &n, uint32_t to);
    void try_send(user_ep &user);
    void generate(node &n);
    bool may_begin(const node &n) const;
    void poll(node &n);
    void handle(node &n, const cqe &c);
    void arrive(const event &e);
    void wake(node &n);
    bool has_work(const node &n) const;
    void perform(const event &e);
    uint64_t delay()
    {
        return m_how.latency + (m_rng() % (m_how.jitter + 1));
    }

    void open_account();
    void close_account();

    const params                                    m_how;
    const uint32_t                                  m_num_peers;
    generator                                       m_traffic;
    std::mt19937_64                                 m_rng;
    uint64_t                                        m_now      = 0;
    uint64_t                                        m_order    = 0;
    int                                             m_last_timer = 0;
    node                                            *m_current = nullptr;
    bool                                            m_is_closing = false;
    uint64_t                                        m_num_made = 0;
    uint64_t                                        m_num_connects = 0;
    size_t                                          m_txwq_bytes = 0;
    unsigned                                        m_node_qps = 0;
    std::string                                     m_account;
    const char                                      *m_real_accounts;
    uct_sep_md_t                                    *m_md;
    uct_sep_api_t                                   m_api = {};
    uct_sep_ops_t                                   *m_ops;
    uct_priv_worker_t                               *m_worker;
    ucs_async_context_t                             *m_async;
    std::string                                     m_name;
    std::vector<std::unique_ptr<node>>              m_nodes;
    std::vector<qp>                                 m_qps;
    std::vector<packet>                             m_packets;
    std::vector<uint32_t>                           m_free_packets;
    std::priority_queue<event, std::vector<event>, std::greater<event>>
                                                    m_events;
    std::vector<uint8_t>                            m_sq;

    friend int ::scale_memalign(void **ptr_p, size_t alignment, size_t size);
};

template<typename T>
T *zeroed()
{
    return static_cast<T*>(calloc(1, sizeof(T)));
}

void txwq_check(uct_sep_iface_t*, const uct_sep_txwq_t*)
{
}

uint32_t cq_end(const uct_sep_iface_t*)
{
    return 0;
}

int cq_has_passed(uct_sep_iface_t *iface, uint32_t)
{
    return the_world->of(iface).cq.empty();
}

int cq_may_have(const uct_sep_iface_t *iface, uint32_t)
{
    return !the_world->of(const_cast<uct_sep_iface_t*>(iface)).cq.empty();
}

void post_empty(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, int, uint8_t)
{
    the_world->post(iface, txwq, 0, true);
}

ucs_status_t send_pending(uct_pending_req_t *req)
{
    user_ep *user = reinterpret_cast<user_ep*>(req);

    user->is_pending = !the_world->flush(*user);
    return user->is_pending ? UCS_ERR_NO_RESOURCE : UCS_OK;
}

void drop_pending(uct_pending_req_t*, void*)
{
}

world::world(const params &how) :
    m_how(how), m_num_peers(num_nodes() - 1), m_traffic(how, m_num_peers),
    m_rng(mixed(how.seed + 1)), m_md(zeroed<uct_sep_md_t>()),
    m_ops(zeroed<uct_sep_ops_t>()), m_worker(zeroed<uct_priv_worker_t>()),
    m_async(zeroed<ucs_async_context_t>()), m_nodes(num_nodes()),
    m_sq(SQ_LENGTH * UCT_SEP_BB_SIZE)
{
    the_world = this;
    m_async->mode       = UCS_ASYNC_MODE_POLL;
    m_worker->async     = m_async;
    ucs_callbackq_init(&m_worker->super.progress_q);
    m_api.txwq_check    = txwq_check;
    m_api.cq_end        = cq_end;
    m_api.cq_has_passed = cq_has_passed;
    m_api.cq_may_have   = cq_may_have;
    m_ops->post_empty   = post_empty;
    ucs_list_head_init(&m_md->async.users);
    uct_sep_async_mutex_init(&m_md->async.lock, NULL);
    open_account();
    for (uint32_t i = 0; i < num_nodes(); ++i) {
        m_nodes[i]        = std::make_unique<node>();
        m_nodes[i]->index = i;
        open(*m_nodes[i]);
    }
}

world::~world()
{
    m_is_closing = true;
    /* Time stands still from here on: what was being flushed is flushed */
    for (auto &q : m_qps) {
        if (q.is_alive && q.is_error) {
            q.txwq->conn.flush.is_flushed = 1;
        }
    }
    for (auto &n : m_nodes) {
        close(*n);
    }
    close_account();
    uct_sep_async_mutex_destroy(&m_md->async.lock);
    ucs_callbackq_cleanup(&m_worker->super.progress_q);
    free(m_async);
    free(m_worker);
    free(m_ops);
    free(m_md);
    the_world = nullptr;
}

/* The node's is a file, in a directory of its own */
void world::open_account()
{
    char dir[] = "/tmp/scale.XXXXXX";

    m_real_accounts = uct_sep_budget_node_dir;
    if (m_how.node > 0) {
        if (mkdtemp(dir) == nullptr) {
            perror("a directory for the node's account");
            abort();
        }
        m_account               = dir;
        uct_sep_budget_node_dir = m_account.c_str();
    }
}

void world::close_account()
{
    uct_sep_budget_node_dir = m_real_accounts;
    if (m_how.node > 0) {
        rmdir(m_account.c_str());
    }
}

void world::add(uint64_t time, event::type_t type, uint32_t where,
                uint32_t what, uint16_t end, bool is_empty)
{
    m_events.push({time, ++m_order, type, where, what, end, is_empty});
}

/* Identity, key of the nonces, and key of the datagrams of an interface */
void world::random(void *buf, size_t length)
{
    uint8_t *bytes = static_cast<uint8_t*>(buf);

    for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
        uint64_t value = mixed(mixed(m_how.seed + i) + m_current->index);

        memcpy(bytes + i, &value, std::min(sizeof(value), length - i));
    }
}

void world::address(uint32_t index, uct_sep_device_addr_t *dev_p,
                    uct_sep_iface_addr_t *iface_p) const
{
    const uct_sep_cm_t *cm = m_nodes[index]->iface->conn.cm;

    *dev_p   = cm->self.dev;
    *iface_p = cm->self.iface;
}

void world::open(node &n)
{
    use by(*this, n);
    uct_sep_cm_params_t params = {};
    uct_sep_iface_t *iface     = zeroed<uct_sep_iface_t>();

    n.iface                = iface;
    n.is_sender            = (n.index < m_how.senders);
    m_name                 = "scale" + std::to_string(n.index);
    m_md->dev.name         = m_name.c_str();
    iface->super.md        = &m_md->super;
    iface->super.worker    = m_worker;
    iface->api             = &m_api;
    iface->tx.ops          = m_ops;
    iface->tx.cq_credits   = INT32_MAX / 2;
    iface->port.pkey_index = n.index; /* Used for nothing else here */
    iface->super.config.failure_level = UCS_LOG_LEVEL_WARN;
    iface->config.max_qps_node     = (n.is_sender && (m_how.node > 0)) ?
                                     m_how.node : UCS_ULUNITS_INF;
    iface->config.max_qps          = (n.is_sender && (m_how.budget > 0)) ?
                                     m_how.budget : UCS_ULUNITS_INF;
    iface->config.path_mtu         = IBV_MTU_4096;
    iface->config.max_rd_atomic    = 16;
    iface->config.max_dest_rd_atomic = 16;
    iface->port.num_lag            = 1;
    iface->config.eager.mode       = UCS_NO;
    iface->config.fc.window        = INT32_MAX / 2;
    iface->config.fc.soft          = 0;
    iface->config.fc.hard          = 0;
    ucs_list_head_init(&iface->tx.unrung);
    ucs_list_head_init(&iface->tx.fc_due);
    ucs_list_head_init(&iface->eager.due);
    uct_sep_txwq_init_idle(&iface->tx.idle);
    uct_sep_event_init(iface);
    uct_sep_qp_table_init(&iface->qps);
    uct_sep_link_init(iface);

    params.port.port_num  = 1;
    params.port.lid       = LID;
    params.port.pkey      = 0xffff;
    params.port.num_paths = 1;
    params.async          = m_async;
    params.ops            = &uct_sep_link_cm_ops;
    params.arg            = iface;
    params.timeout        = 0.2; /* These are the defaults */
    params.retry_count    = 20;
    params.rx_queue_len   = RX_LENGTH;
    params.max_half_open  = 256;
    params.keepalive      = ucs_time_from_sec(60);
    params.name           = m_name.c_str();
    if (uct_sep_link_open(iface, &params) != UCS_OK) {
        fprintf(stderr, "an interface could not be opened\n");
        abort();
    }
}

void world::close(node &n)
{
    use by(*this, n);

    for (auto &entry : n.eps) {
        uct_ep_h ep = &entry.second->ep->super.super;

        uct_sep_ep_pending_purge(ep, drop_pending, NULL);
        uct_sep_ep_destroy(ep);
    }
    uct_sep_link_close(n.iface);
    uct_sep_qp_table_cleanup(&n.iface->qps);
    free(n.iface);
}

/* Datagrams */

void world::send_packet(uint32_t to_ud, const uct_sep_conn_packet_t &bytes)
{
    uint32_t index;

    ++res.packets;
    if (m_is_closing ||
        (std::uniform_real_distribution<>()(m_rng) < m_how.loss)) {
        ++res.lost_packets;
        return;
    }

    if (m_free_packets.empty()) {
        index = m_packets.size();
        m_packets.emplace_back();
    } else {
        index = m_free_packets.back();
        m_free_packets.pop_back();
    }
    m_packets[index] = {m_current->ud.qp_num, bytes};
    add(done() + delay(), event::PACKET, to_ud - FIRST_UD, index);
}

unsigned world::drain(uct_sep_cm_t *cm)
{
    uct_sep_cm_rx_source_t source = {};
    node &n                       = *m_current;
    unsigned count                = 0;
    packet p;

    source.slid = LID;
    for (; !n.rx.empty() && !cm->is_draining; ++count) {
        p = n.rx.front();
        n.rx.pop_front();
        source.qpn      = p.src_ud;
        cm->is_draining = 1;
        uct_sep_cm_rx(cm, &p.bytes, sizeof(p.bytes), NULL, &source);
        cm->is_draining = 0;
    }
    return count;
}

/* Queue pairs */

qp &world::qp_open(uct_sep_txwq_t *txwq)
{
    uct_sep_txwq_mem_t mem = {};

    mem.sq         = m_sq.data();
    mem.bb_count   = SQ_LENGTH;
    mem.qpn        = FIRST_QP + m_qps.size();
    mem.moderation = 1;
    uct_sep_txwq_init(txwq, &mem);
    take_time(m_how.qp_cost / 2);

    qp q    = {};
    q.owner = m_current->index;
    q.txwq  = txwq;
    m_qps.push_back(q);
    ++m_current->num_qps;
    m_current->max_qps = std::max(m_current->max_qps, m_current->num_qps);
    m_node_qps        += m_current->is_sender;
    res.max_node       = std::max(res.max_node, m_node_qps);
    return m_qps.back();
}

void world::qp_connect(uint32_t qpn, uint32_t remote)
{
    m_qps[qpn - FIRST_QP].remote = remote;
    ++m_num_connects;
    take_time(m_how.qp_cost / 2);
}

void world::qp_error(uint32_t qpn)
{
    qp &q = m_qps[qpn - FIRST_QP];

    q.is_error = true;
    if (m_is_closing) {
        q.txwq->conn.flush.is_flushed = 1;
    } else {
        add(done() + FLUSH_TIME, event::FLUSHED, qpn);
    }
}

void world::qp_close(uint32_t qpn)
{
    qp &q = m_qps[qpn - FIRST_QP];

    q.is_alive = false;
    q.txwq     = nullptr;
    --m_nodes[q.owner]->num_qps;
    m_node_qps -= m_nodes[q.owner]->is_sender;
}

void world::post(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, uint32_t number,
                 bool is_empty)
{
    qp &q = m_qps[txwq->qpn - FIRST_QP];

    q.messages += !is_empty;
    uct_sep_txwq_advance(txwq, txwq->sw_pi, 1);
    uct_sep_txwq_count_signaled(txwq);
    uct_sep_iface_add_cq_credits(iface, -1);
    if ((m_how.slow > 0) &&
        (std::uniform_real_distribution<>()(m_rng) < m_how.slow)) {
        q.last_arrival = std::max(q.last_arrival, done()) +
                         std::uniform_int_distribution<uint64_t>(0, SLOWEST)(
                                 m_rng);
    }
    q.last_arrival = std::max(q.last_arrival + 1, done() + m_how.latency);
    add(q.last_arrival, event::ARRIVE, txwq->qpn, number, txwq->sw_pi,
        is_empty);
}

/* At the adapter of the receiver, which need not know what its process does */
void world::arrive(const event &e)
{
    qp &from         = m_qps[e.where - FIRST_QP];
    const qp *to     = (from.remote >= FIRST_QP) ?
                       &m_qps[from.remote - FIRST_QP] : nullptr;
    bool is_received = (to != nullptr) && to->is_alive && !to->is_error &&
                       (to->remote == e.where) && from.is_alive &&
                       !from.is_error && !from.is_broken;

    if (!is_received) {
        res.lost += !e.is_empty;
        if (from.is_alive && !from.is_error && !from.is_broken) {
            from.is_broken = true;
            add(m_now + RETRY_TIME, event::ERROR, e.where);
        }
        return;
    }

    if (!e.is_empty) {
        m_nodes[to->owner]->cq.push_back({cqe::RECV, from.owner, e.what,
                                          false});
        wake(*m_nodes[to->owner]);
    }
    add(m_now + m_how.latency, event::SENT, e.where, 0, e.end, e.is_empty);
}

/* Users */

user_ep &world::connect(node &n, uint32_t to)
{
    auto &slot            = n.eps[to];
    uct_ep_params_t params = {};
    uct_sep_device_addr_t dev;
    uct_sep_iface_addr_t iface;
    uct_ep_h ep;

    if (slot == nullptr) {
        address(to, &dev, &iface);
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                            UCT_EP_PARAM_FIELD_DEV_ADDR |
                            UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.iface      = &n.iface->super.super;
        params.dev_addr   = reinterpret_cast<uct_device_addr_t*>(&dev);
        params.iface_addr = reinterpret_cast<uct_iface_addr_t*>(&iface);
        if (uct_sep_ep_create(&params, &ep) != UCS_OK) {
            fprintf(stderr, "an endpoint could not be made\n");
            abort();
        }

        slot           = std::make_unique<user_ep>();
        slot->req.func = send_pending;
        slot->owner    = &n;
        slot->ep       = ucs_derived_of(ep, uct_sep_ep_t);
        slot->to       = to;
    }
    return *slot;
}

bool world::flush(user_ep &user)
{
    while ((user.next < user.end) && uct_sep_ep_can_send(user.ep)) {
        post(user.owner->iface, user.ep->txwq, user.next++, false);
    }
    return user.next == user.end;
}

void world::try_send(user_ep &user)
{
    ucs_status_t status;

    while (!user.is_pending && !flush(user)) {
        status = uct_sep_ep_no_am_credits(user.ep);
        if (status == UCS_ERR_NO_RESOURCE) {
            status = uct_sep_ep_pending_add(&user.ep->super.super, &user.req,
                                            0);
            user.is_pending = (status == UCS_OK);
        } else if (status != UCS_OK) {
            ++res.failures;
            return;
        }
    }
}

void world::send(node &n, uint32_t to)
{
    user_ep &user = connect(n, to);

    ++user.end;
    try_send(user);
}

/* Whether a sender is to go on */
bool world::may_begin(const node &n) const
{
    uint64_t step = m_traffic.step();

    if (n.made == m_how.messages) {
        return false;
    } else if (step == 0) {
        return n.under_way < m_how.window;
    } else if ((n.made % step) != 0) {
        return true;
    } else if (is_alone()) {
        return n.under_way == 0;
    } else if (m_how.kind == traffic::stencil) {
        return n.num_got >= n.made;
    }
    return res.messages >= (n.made * m_how.senders);
}

void world::generate(node &n)
{
    uint32_t to;

    while (may_begin(n)) {
        to = node_of_peer(n.index, m_traffic.peer(n.index, n.made));
        ++n.made;
        ++n.under_way;
        ++m_num_made;
        send(n, to);
        if (is_alone()) {
            /* It has one for us as well */
            ++n.under_way;
            ++m_num_made;
            add(done() + delay(), event::SEND, to, n.index);
        }
    }
}

void world::handle(node &n, const cqe &c)
{
    uct_sep_iface_t *iface = n.iface;
    uct_sep_txwq_t *txwq, *tmp;

    if (c.kind == cqe::RECV) {
        ++res.messages;
        ++n.num_got;
        res.disordered += (n.received[c.qpn]++ != c.number);
        res.time        = m_now;
        if (is_alone() && n.is_sender) {
            --n.under_way;
        } else if (m_traffic.step() && !is_alone() &&
                   ((res.messages % (m_traffic.step() * m_how.senders)) == 0)) {
            for (auto &other : m_nodes) {
                wake(*other); /* The barrier */
            }
        }
        return;
    }

    qp &q = m_qps[c.qpn - FIRST_QP];
    if (!q.is_alive) {
        return;
    }

    txwq = q.txwq;
    switch (c.kind) {
    case cqe::SENT:
        if ((int16_t)(c.number - txwq->hw_ci) > 0) {
            uct_sep_iface_add_cq_credits(iface,
                                         uct_sep_txwq_complete(txwq,
                                                               c.number));
        }
        n.under_way -= n.is_sender && !c.is_empty;
        if (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED) {
            uct_sep_link_reap_txwq(iface, txwq);
        } else if (txwq->flags & UCT_SEP_TXWQ_FLAG_WAITING) {
            uct_sep_dispatch_wake(iface, txwq);
        }
        break;
    case cqe::FLUSHED:
        uct_sep_txwq_complete(txwq, txwq->sw_pi);
        txwq->conn.flush.is_flushed = 1;
        ucs_list_for_each_safe(txwq, tmp, &iface->conn.retired, conn.list) {
            uct_sep_link_reap_txwq(iface, txwq);
        }
        break;
    case cqe::ERROR:
        if (!q.is_error) {
            uct_sep_link_fail(iface, txwq, UCS_ERR_ENDPOINT_TIMEOUT);
        }
        break;
    default:
        break;
    }
}

/* Time */

bool world::has_work(const node &n) const
{
    return !n.rx.empty() || !n.cq.empty() ||
           std::any_of(n.callbacks.begin(), n.callbacks.end(),
                       [&](const callback &c) {
                           /* It looks for packets, which wake us up */
                           return c.id_p != &n.iface->conn.connect_id;
                       });
}

void world::wake(node &n)
{
    if (!n.is_polled) {
        n.is_polled = true;
        add(std::max({m_now, n.busy_until, n.next_poll}), event::POLL, n.index);
    }
}

void world::poll(node &n)
{
    n.is_polled = false;
    n.next_poll = m_now + m_how.poll + (uct_sep_evict_is_waiting(n.iface) ?
                                        (n.num_qps * VISIT_TIME) : 0);
    if (!n.rx.empty()) {
        uct_sep_cm_event(-1, UCS_EVENT_SET_EVREAD, n.iface->conn.cm);
    }
    for (unsigned i = 0; (i < CQ_BATCH) && !n.cq.empty(); ++i) {
        cqe c = n.cq.front();

        n.cq.pop_front();
        handle(n, c);
    }
    for (const callback &each : std::vector<callback>(n.callbacks)) {
        if (*each.id_p != UCS_CALLBACKQ_ID_NULL) {
            each.func(each.arg);
        }
    }
    if (n.is_sender) {
        generate(n);
    }
}

void world::perform(const event &e)
{
    m_now = e.time;

    switch (e.type) {
    case event::PACKET:
        if (m_nodes[e.where]->rx.size() < RX_LENGTH) {
            m_nodes[e.where]->rx.push_back(m_packets[e.what]);
            wake(*m_nodes[e.where]);
        } else {
            ++res.lost_packets;
        }
        m_free_packets.push_back(e.what);
        return;
    case event::ARRIVE:
        arrive(e);
        return;
    case event::SENT:
    case event::FLUSHED:
    case event::ERROR:
        if (qp &q = m_qps[e.where - FIRST_QP];
            q.is_alive && (!q.is_error || (e.type == event::FLUSHED))) {
            m_nodes[q.owner]->cq.push_back(
                    {(e.type == event::SENT)    ? cqe::SENT :
                     (e.type == event::FLUSHED) ? cqe::FLUSHED : cqe::ERROR,
                     e.where, e.end, e.is_empty});
            wake(*m_nodes[q.owner]);
        }
        return;
    default:
        break;
    }

    /* By the process, when it has time */
    node &n = *m_nodes[e.where];
    if (m_now < n.busy_until) {
        event later = e;

        later.time = n.busy_until;
        m_events.push(later);
        return;
    }

    use by(*this, n);
    if (e.type == event::POLL) {
        poll(n);
    } else if (e.type == event::SEND) {
        send(n, e.what);
    } else {
        auto find = [&]() {
            return std::find_if(n.timers.begin(), n.timers.end(),
                                [&](const timer &t) {
                                    return t.id == static_cast<int>(e.what);
                                });
        };
        auto found = find();

        if (found != n.timers.end()) {
            timer t = *found;

            t.cb(t.id, UCS_EVENT_SET_EVREAD, t.arg);
            if (find() != n.timers.end()) {
                add(m_now + t.interval, event::TIMER, n.index, e.what);
            }
        }
    }
    if (has_work(n)) {
        wake(n);
    }
}

results world::run()
{
    uint64_t total = m_how.messages * m_how.senders * (is_alone() ? 2 : 1);
    long before, unused;

    node &first = *m_nodes[0];
    before      = first.bytes;
    {
        use by(*this, first);
        for (uint32_t i = 1; i < num_nodes(); ++i) {
            connect(first, i);
        }
    }
    unused     = first.bytes - before;
    res.unused = static_cast<double>(unused) / m_num_peers;

    for (uint32_t i = 0; i < m_how.senders; ++i) {
        wake(*m_nodes[i]);
    }
    while ((res.messages < total) && !m_events.empty() &&
           (m_now < m_how.limit) && !res.is_wrong()) {
        event e = m_events.top();

        m_events.pop();
        perform(e);
    }

    res.is_done  = (res.messages == total);
    res.connects = m_num_connects / 2;
    res.evicted  = static_cast<double>(
            first.bytes - before -
            static_cast<long>(first.num_qps * m_txwq_bytes)) / m_num_peers;
    for (size_t i = 0; i < m_qps.size(); ++i) {
        size_t to = m_qps[i].remote - FIRST_QP; /* Large if there is none */

        if ((to < i) && (m_qps[to].remote == FIRST_QP + i)) {
            ++res.lives[m_qps[i].messages + m_qps[to].messages];
        }
    }
    for (uint32_t i = 0; i < m_how.senders; ++i) {
        const uct_sep_ep_budget_t &budget = m_nodes[i]->iface->conn.budget;

        res.max_qps   = std::max(res.max_qps, m_nodes[i]->max_qps);
        res.asked    += budget.num_asked;
        res.waits    += budget.num_waits;
        res.exceeded += budget.num_exceeded;
    }
    return res;
}

} // namespace

results run(const params &how)
{
    return world(how).run();
}

} // namespace scale

using scale::the_world;

extern "C" {

double scale_clocks_per_sec()
{
    return 1e9;
}

ucs_time_t scale_time()
{
    return (the_world->find_current() != nullptr) ? the_world->done() :
                                                    the_world->now();
}

ucs_status_t scale_set_event_handler()
{
    return UCS_OK;
}

ucs_status_t scale_add_timer(ucs_time_t interval, ucs_async_event_cb_t cb,
                             void *arg, int *timer_id_p)
{
    scale::node &n = the_world->current();

    *timer_id_p = the_world->next_timer_id();
    n.timers.push_back({*timer_id_p, interval, cb, arg});
    the_world->add(the_world->done() + interval, scale::event::TIMER, n.index,
                   *timer_id_p);
    return UCS_OK;
}

ucs_status_t scale_remove_handler(int id)
{
    auto &timers = the_world->current().timers;

    timers.erase(std::remove_if(timers.begin(), timers.end(),
                                [&](const scale::timer &t) {
                                    return t.id == id;
                                }), timers.end());
    return UCS_OK;
}

void scale_progress_register(ucs_callback_t func, void *arg,
                             uct_worker_cb_id_t *id_p)
{
    if (*id_p == UCS_CALLBACKQ_ID_NULL) {
        *id_p = 0;
        the_world->current().callbacks.push_back({func, arg, id_p});
    }
}

void scale_progress_unregister(uct_worker_cb_id_t *id_p)
{
    auto &callbacks = the_world->current().callbacks;

    if (*id_p != UCS_CALLBACKQ_ID_NULL) {
        *id_p = UCS_CALLBACKQ_ID_NULL;
        callbacks.erase(std::remove_if(callbacks.begin(), callbacks.end(),
                                       [&](const scale::callback &c) {
                                           return c.id_p == id_p;
                                       }), callbacks.end());
    }
}

ssize_t scale_random(void *buf, size_t length)
{
    the_world->random(buf, length);
    return length;
}

ucs_status_t scale_endpoint_failed(ucs_status_t)
{
    ++the_world->res.failures;
    return UCS_OK;
}

/* With what the heap adds to each block */
static void *counted(void *ptr, long sign)
{
    scale::node *n = (the_world == nullptr) ? nullptr :
                                              the_world->find_current();

    if ((ptr != nullptr) && (n != nullptr)) {
        n->bytes += sign * static_cast<long>(malloc_usable_size(ptr) +
                                             sizeof(size_t));
    }
    return ptr;
}

void *scale_calloc(size_t count, size_t size)
{
    return counted(calloc(count, size), 1);
}

void *scale_realloc(void *ptr, size_t size)
{
    counted(ptr, -1);
    return counted(realloc(ptr, size), 1);
}

int scale_memalign(void **ptr_p, size_t alignment, size_t size)
{
    int ret = posix_memalign(ptr_p, alignment, size);

    if (ret == 0) {
        counted(*ptr_p, 1);
        the_world->m_txwq_bytes = malloc_usable_size(*ptr_p) + sizeof(size_t);
    }
    return ret;
}

void scale_free(void *ptr)
{
    counted(ptr, -1);
    free(ptr);
}

/*
 * conn/sep_cm_ud.c
 */

ucs_status_t uct_sep_cm_ud_open(uct_sep_cm_t *cm, const uct_sep_cm_params_t*)
{
    static ibv_comp_channel channel;
    scale::node &n = the_world->current();

    channel.fd   = -1;
    n.ud.qp_num  = scale::FIRST_UD + n.index;
    cm->ud_qp    = &n.ud;
    cm->channel  = &channel;
    return UCS_OK;
}

void uct_sep_cm_ud_close(uct_sep_cm_t*)
{
}

int uct_sep_cm_ud_post_send(uct_sep_cm_t*, const uct_sep_peer_addr_t *peer,
                            const uct_sep_conn_packet_t *packet)
{
    the_world->send_packet(uct_sep_iface_addr_qpn(&peer->iface), *packet);
    return 0;
}

void uct_sep_cm_ud_begin_close(uct_sep_cm_t*)
{
}

void uct_sep_cm_ud_flush_sends(uct_sep_cm_t*)
{
}

unsigned uct_sep_cm_ud_get_events(uct_sep_cm_t*)
{
    return 1;
}

void uct_sep_cm_ud_arm(uct_sep_cm_t*)
{
}

int uct_sep_cm_ud_drain(uct_sep_cm_t *cm)
{
    the_world->drain(cm);
    return 1;
}

void uct_sep_cm_ud_flush(uct_sep_cm_t*)
{
}

/*
 * ep/sep_link_qp.c
 */

ucs_status_t
uct_sep_link_txwq_open(uct_sep_iface_t*, int, uct_sep_txwq_t *txwq)
{
    the_world->qp_open(txwq);
    return UCS_OK;
}

void uct_sep_link_txwq_close(uct_sep_iface_t*, uct_sep_txwq_t *txwq, int)
{
    the_world->qp_close(txwq->qpn);
}

ucs_status_t
uct_sep_link_txwq_connect(uct_sep_iface_t*, uct_sep_txwq_t *txwq, uint32_t,
                          const uct_sep_conn_qp_info_t *remote,
                          const struct ibv_ah_attr*)
{
    uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_CONNECTED);
    the_world->qp_connect(txwq->qpn, remote->qpn);
    return UCS_OK;
}

void uct_sep_link_qp_to_error(uct_sep_iface_t*, uct_sep_txwq_t *txwq)
{
    the_world->qp_error(txwq->qpn);
}

} // extern "C"
