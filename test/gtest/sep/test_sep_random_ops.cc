/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Operations of a world, each with what its model is told.
 */

#include <sep/test_sep_random_world.h>

#include <algorithm>
#include <cstring>

namespace sep_random {

/* In front of each message: whose it is. The rest is data of its number. */
struct header {
    uint16_t link;
    uint16_t is_echoed; /* The receiver answers with another one */
    uint32_t seq;
};

/* Data that a callback of UCT packs */
struct packed {
    uint32_t number;
    size_t   length;
    bool     has_header;
    header   head;
};

static size_t pack(void *dest, void *arg)
{
    const packed *p = (const packed*)arg;
    size_t skip     = p->has_header ? sizeof(p->head) : 0;

    memcpy(dest, &p->head, skip);
    fill_data(p->number, (uint8_t*)dest + skip, p->length);
    return skip + p->length;
}

/* Small ones more often, up to and with the largest */
static size_t choose_length(uint32_t value, size_t max)
{
    size_t length = value >> 8;

    switch (value % 8) {
    case 0:
        return max - length % std::min<size_t>(max + 1, 4);
    case 1:
    case 2:
        return length % (max + 1);
    case 3:
        return length % (std::min<size_t>(max, 8) + 1);
    default:
        return length % (std::min<size_t>(max, 64) + 1);
    }
}

/* A number that is not another operation's, and as random */
static uint32_t next_value(uint32_t value)
{
    return value * 1664525u + 1013904223u;
}

/* Pieces of a buffer, some of them empty */
static std::vector<uct_iov_t> split(uint32_t value, uint8_t *data,
                                    size_t length, uct_mem_h memh, size_t max)
{
    std::vector<uct_iov_t> iov;

    for (size_t left = (value >> 20) % max; left > 0; --left) {
        value        = next_value(value);
        size_t piece = (value & 0x10000) ? 0 : (value >> 17) % (length + 1);

        iov.push_back({data, piece, memh, 0, 1});
        data   += piece;
        length -= piece;
    }
    iov.push_back({data, length, memh, 0, 1});
    return iov;
}

int world::take_buffer()
{
    for (unsigned i = 0; i < max_buffers; ++i) {
        if (!(m_buffers_used & (1u << i))) {
            m_buffers_used |= 1u << i;
            return i;
        }
    }
    return -1;
}

uint8_t *world::buffer(int index)
{
    return m_local->ptr() + index * model::data_size;
}

/* An operation is complete: its buffer is the user's again, who writes to it.
 * Operations of an endpoint that was destroyed are reported as cancelled, and
 * are under way nevertheless. */
void world::return_buffer(const link &l, int index)
{
    if ((l.ep != nullptr) || l.is_failed) {
        memset(buffer(index), 0xdd, model::data_size);
        m_buffers_used &= ~(1u << index);
    }
}

outstanding &world::begin_op(link &l, bool has_buffer)
{
    m_outstanding.emplace_back(*this, l);
    outstanding &op = m_outstanding.back();
    if (has_buffer) {
        op.buffer = take_buffer();
    }
    return op;
}

/* It was posted, or will never complete */
ucs_status_t world::end_op(outstanding &op, ucs_status_t status)
{
    op.is_used = status == UCS_INPROGRESS;
    if (!op.is_used) {
        if (op.buffer >= 0) {
            m_buffers_used &= ~(1u << op.buffer);
        }
        m_outstanding.pop_back();
    }
    return status;
}

void world::execute(const operation &op)
{
    link *l;

    switch (op.what) {
    case RELEASE:
        release(op.iface);
        return;
    case EXPIRE:
        expire(op.iface);
        return;
    case IDLE:
        find_unused(op.iface);
        return;
    case CLOSE:
        for (unsigned i = 0; i < m_plan->ifaces.size(); ++i) {
            cut(op.iface, i);
        }
        close(op.iface);
        return;
    default:
        break;
    }

    l = get_link(op.iface, op.position);
    if (l == nullptr) {
        return;
    }
    m_nodes[op.iface].is_asleep = false;

    switch (op.what) {
    case IFACE_FLUSH:
        flush_iface(op.iface);
        break;
    case FENCE:
    case IFACE_FENCE:
        /* What is read before is not what is written behind it */
        if (op.value & 0x40) {
            post(*l, GET_BCOPY, op.value);
        }
        fence(*l, op.what);
        if (op.value & 0x40) {
            post(*l, PUT_SHORT, op.value);
        }
        break;
    case DESTROY:
        destroy(*l);
        break;
    case BREAK:
    case WRONG_KEY:
    case CANCEL:
        fault(*l, op.what);
        break;
    case BURST: {
        uint32_t value = op.value;

        for (unsigned i = 0; (i < 100) && (l->ep != nullptr) &&
                             (post(*l, (value & 0x100) ? AM_SHORT : AM_BCOPY,
                                   value & ~7) == UCS_OK); ++i) {
            value = next_value(value);
        }
        break;
    }
    default:
        wait(*l, op.what, op.value);
        break;
    }
}

bool world::has_waiting(const link &l) const
{
    return std::any_of(m_waiting.begin(), m_waiting.end(),
                       [&](const waiting &w) {
        return (w.owner == &l) && !w.is_done && (&w != m_called);
    });
}

/* It has resources, maybe */
ucs_status_t world::call(waiting &w)
{
    ucs_status_t status;

    if ((m_plan->acts & ACT_DESTROY) && (w.num == 3)) {
        unsigned depth = m_depth;

        /* What is cancelled here may not progress */
        m_depth   = max_depth;
        w.is_done = true;
        destroy(*w.owner);
        m_depth = depth;
        return UCS_OK;
    }

    m_called = &w;
    status   = w.func();
    m_called = nullptr;
    if (status == UCS_ERR_NO_RESOURCE) {
        return status;
    }
    for (auto &other : m_waiting) {
        if (&other == &w) {
            break;
        }
        if ((other.owner == w.owner) && !other.is_done) {
            expect(*w.owner, "a request was overtaken");
        }
    }
    w.is_done = UCS_STATUS_IS_ERR(status) || (--w.num == 0);
    return UCS_STATUS_IS_ERR(status) ? status :
           w.is_done                 ? UCS_OK :
                                       UCS_INPROGRESS;
}

/* Post it, or have it wait, or try that first */
void world::wait(link &l, kind what, uint32_t value)
{
    bool is_first = value & 0x40000000;

    for (unsigned i = 0; i < 3; ++i) {
        if (!is_first && (post(l, what, value) != UCS_ERR_NO_RESOURCE)) {
            return;
        }
        /* Given up in half of the cases */
        if ((value & 0x80000000) || (l.ep == nullptr)) {
            return;
        }
        is_first = false;

        m_waiting.emplace_back();
        waiting &w = m_waiting.back();
        w.self     = this;
        w.owner    = &l;
        w.num      = 1 + ((value & 0x30000000) == 0) +
                     ((value & 0x38000000) == 0);
        w.func     = [this, &l, what, value]() {
            return post(l, what, value);
        };
        w.req.func = [](uct_pending_req_t *req) {
            waiting *self = ucs_container_of(req, waiting, req);

            return self->self->call(*self);
        };
        ucs_status_t status = uct_ep_pending_add(l.ep, &w.req, 0);
        if (status == UCS_OK) {
            return;
        }
        m_waiting.pop_back();
    }
    if (!may_fail(l)) {
        expect(l, "an operation can neither be posted nor wait");
    }
}

ucs_status_t world::post(link &l, kind what, uint32_t value)
{
    ucs_status_t status;

    switch (what) {
    case PUT_SHORT:
    case PUT_BCOPY:
    case PUT_ZCOPY:
        status = post_put(l, what, value);
        break;
    case GET_BCOPY:
    case GET_ZCOPY:
        status = post_get(l, what, value);
        break;
    case ATOMIC_POST:
    case ATOMIC_FETCH:
        status = post_atomic(l, what, value);
        break;
    case FLUSH:
        status = post_flush(l);
        break;
    default:
        status = post_message(l, what, value);
        break;
    }

    note(l.id, what, value, status);
    if (UCS_STATUS_IS_ERR(status) && (status != UCS_ERR_NO_RESOURCE) &&
        !may_fail(l)) {
        expect(l, std::string("an operation returned ") +
                  ucs_status_string(status));
    }
    return status;
}

ucs_status_t world::post_put(link &l, kind what, uint32_t value)
{
    const uct_iface_attr_t &attr = m_nodes[l.src].e->attr();
    uct_rkey_t rkey              = m_nodes[l.dst].rkey.rkey;
    size_t max                   = (what == PUT_SHORT) ?
                                           attr.cap.put.max_short :
                                   (what == PUT_BCOPY) ?
                                           attr.cap.put.max_bcopy :
                                           model::data_size;
    size_t length, offset;
    ucs_status_t status;
    ssize_t result;

    length = std::max<size_t>(1, choose_length(value, std::min(max,
                                                       model::data_size)));
    offset = next_value(value) % (model::data_size - length + 1);
    /* In many cases at the same place as others */
    offset = (value & 0x40) ? 0 : offset;

    if (what == PUT_BCOPY) {
        packed data = {value, length, false, {}};

        result = uct_ep_put_bcopy(l.ep, pack, &data, l.remote + offset, rkey);
        status = (result >= 0) ? UCS_OK : (ucs_status_t)result;
    } else if (what == PUT_SHORT) {
        uint8_t data[256];

        length = std::min(length, sizeof(data));
        fill_data(value, data, length);
        status = uct_ep_put_short(l.ep, data, length, l.remote + offset, rkey);
    } else {
        outstanding &op = begin_op(l, true);
        if (op.buffer < 0) {
            return end_op(op, UCS_OK);
        }

        int index = op.buffer;
        auto iov  = split(value, buffer(index), length, m_local->memh(),
                          attr.cap.put.max_iov);

        fill_data(value, buffer(index), length);
        status = end_op(op, uct_ep_put_zcopy(l.ep, iov.data(), iov.size(),
                                             l.remote + offset, rkey,
                                             &op.comp));
        if (status == UCS_INPROGRESS) {
            l.truth.add_put(value, offset, length);
            snapshot after = l.truth.take(offset, length);
            op.func = [this, &l, index, after](ucs_status_t status) {
                if (status == UCS_OK) {
                    expect(l, l.truth.check(after));
                }
                return_buffer(l, index);
            };
        }
        return status;
    }

    if (status == UCS_OK) {
        l.truth.add_put(value, offset, length);
    }
    return status;
}

ucs_status_t world::post_get(link &l, kind what, uint32_t value)
{
    const uct_iface_attr_t &attr = m_nodes[l.src].e->attr();
    uct_rkey_t rkey              = m_nodes[l.dst].rkey.rkey;
    size_t max                   = std::min((what == GET_BCOPY) ?
                                                    attr.cap.get.max_bcopy :
                                                    attr.cap.get.max_zcopy,
                                            model::data_size);
    size_t length                = std::max(std::max<size_t>(
                                           1, attr.cap.get.min_zcopy),
                                           choose_length(value, max));
    size_t offset                = (value & 0x40) ? 0 : next_value(value) %
                                           (model::data_size - length + 1);
    outstanding &op              = begin_op(l, true);
    ucs_status_t status;

    if (op.buffer < 0) {
        return end_op(op, UCS_OK);
    }

    uint8_t *data = buffer(op.buffer);
    int index     = op.buffer;
    memset(data, 0xcc, length);
    if (what == GET_BCOPY) {
        status = uct_ep_get_bcopy(l.ep, [](void *arg, const void *data,
                                           size_t length) {
            memcpy(arg, data, length);
        }, data, length, l.remote + offset, rkey, &op.comp);
    } else {
        auto iov = split(value, data, length, m_local->memh(),
                         attr.cap.get.max_iov);

        status = uct_ep_get_zcopy(l.ep, iov.data(), iov.size(),
                                  l.remote + offset, rkey, &op.comp);
    }

    if (status == UCS_INPROGRESS) {
        size_t get = l.truth.begin_get(offset, length);

        op.func = [this, &l, get, data, length, index](ucs_status_t status) {
            if (status == UCS_OK) {
                expect(l, l.truth.end_get(get, data, length));
            }
            return_buffer(l, index);
        };
    }
    return end_op(op, status);
}

ucs_status_t world::post_message(link &l, kind what, uint32_t value)
{
    const uct_iface_attr_t &attr = m_nodes[l.src].e->attr();
    header head                  = {(uint16_t)l.id, (value & 0x10) != 0,
                                    (uint32_t)l.truth.num_sent()};
    uint8_t id                   = (value >> 24) & 1;
    uint8_t data[512];
    uint64_t first;
    ucs_status_t status;
    ssize_t result;
    size_t length;

    switch (what) {
    case AM_BCOPY: {
        length      = choose_length(value, attr.cap.am.max_bcopy -
                                           sizeof(head));
        packed what = {value, length, true, head};

        result = uct_ep_am_bcopy(l.ep, id, pack, &what, 0);
        status = (result >= 0) ? UCS_OK : (ucs_status_t)result;
        break;
    }
    case AM_ZCOPY: {
        length          = choose_length(value,
                                        std::min(attr.cap.am.max_zcopy -
                                                 sizeof(head),
                                                 model::data_size));
        outstanding &op = begin_op(l, true);
        if (op.buffer < 0) {
            return end_op(op, UCS_OK);
        }

        int index        = op.buffer;
        /* Some of the data are in the header */
        size_t in_header = (value & 0x20) ? value >> 26 : 0;
        in_header        = std::min(std::min(in_header, length),
                                    attr.cap.am.max_hdr - sizeof(head));
        auto iov = split(value, buffer(index) + in_header, length - in_header,
                         m_local->memh(), attr.cap.am.max_iov);

        fill_data(value, buffer(index), length);
        memcpy(data, &head, sizeof(head));
        memcpy(data + sizeof(head), buffer(index), in_header);
        op.func = [this, &l, index](ucs_status_t) {
            return_buffer(l, index);
        };
        status = end_op(op, uct_ep_am_zcopy(l.ep, id, data,
                                            sizeof(head) + in_header,
                                            iov.data(), iov.size(), 0,
                                            &op.comp));
        break;
    }
    default:
        length = choose_length(value, std::min(attr.cap.am.max_short,
                                               sizeof(data)) - sizeof(head));
        fill_data(value, data, length);
        memcpy(&first, &head, sizeof(first));
        if (what == AM_SHORT) {
            status = uct_ep_am_short(l.ep, id, first, data, length);
        } else {
            auto iov = split(value, data, length, UCT_MEM_HANDLE_NULL, 3);

            iov.insert(iov.begin(), {&head, sizeof(head), UCT_MEM_HANDLE_NULL,
                                     0, 1});
            status = uct_ep_am_short_iov(l.ep, id, iov.data(), iov.size());
        }
        break;
    }

    if (!UCS_STATUS_IS_ERR(status)) {
        l.truth.add_message(value, length);
    }
    return status;
}

void world::on_message(unsigned iface, uint8_t id, void *data, size_t length)
{
    header head;

    if (length < sizeof(head)) {
        wrong("a message of " + std::to_string(length) + " bytes came");
        return;
    }

    memcpy(&head, data, sizeof(head));
    if (head.link >= m_by_id.size()) {
        wrong("a message of nobody came");
        return;
    }

    link &l = *m_by_id[head.link];
    if ((l.dst != iface) || (l.incarnation != m_nodes[iface].incarnation)) {
        expect(l, "a message came to interface " + std::to_string(iface));
        return;
    }

    note(l.id, id, head.seq, length);
    expect(l, l.truth.receive(head.seq, (uint8_t*)data + sizeof(head),
                              length - sizeof(head)));
    if (head.is_echoed && m_wrong.empty()) {
        for (link *back : m_nodes[iface].links) {
            if ((back != nullptr) && (back->ep != nullptr) &&
                (back->dst == l.src) && !back->is_failed) {
                post(*back, AM_SHORT, head.seq << 8);
                break;
            }
        }
    }
    act(iface, nullptr);
}

ucs_status_t world::post_atomic(link &l, kind what, uint32_t value)
{
    const uct_iface_attr_t &attr = m_nodes[l.src].e->attr();
    uct_rkey_t rkey              = m_nodes[l.dst].rkey.rkey;
    uint64_t operand             = next_value(value) * 0x100000001ull;
    uint64_t remote              = l.remote + model::data_size;
    bool is_wide                 = value & 1;
    bool is_common               = what == ATOMIC_POST && (value & 0x80);
    /* Swap, and compare-and-swap behind it, only return what was there */
    unsigned code                = (value >> 1) %
                                   ((what == ATOMIC_POST) ? 4 : 6);
    words before                 = l.truth.current;
    words after                  = before;
    ucs_status_t status;

    static_assert((UCT_ATOMIC_OP_ADD == 0) && (UCT_ATOMIC_OP_AND == 1) &&
                  (UCT_ATOMIC_OP_OR == 2) && (UCT_ATOMIC_OP_XOR == 3) &&
                  (UCT_ATOMIC_OP_SWAP == 4) && (UCT_ATOMIC_OP_CSWAP == 5), "");
    if (is_common) {
        /* All endpoints add to it */
        is_wide = true;
        code    = UCT_ATOMIC_OP_ADD;
        remote  = m_nodes[l.dst].mem->va() + max_places * model::place_size;
    } else if (!is_wide) {
        remote += offsetof(words, narrow);
    }

    uint64_t flags = (what == ATOMIC_POST) ?
                             (is_wide ? attr.cap.atomic64.op_flags :
                                        attr.cap.atomic32.op_flags) :
                             (is_wide ? attr.cap.atomic64.fop_flags :
                                        attr.cap.atomic32.fop_flags);
    if (!(flags & UCS_BIT(code))) {
        return UCS_OK;
    }

    auto apply = [&](auto &target) {
        uint64_t old = target;

        target = (code == UCT_ATOMIC_OP_ADD) ? (old + operand) :
                 (code == UCT_ATOMIC_OP_AND) ? (old & operand) :
                 (code == UCT_ATOMIC_OP_OR)  ? (old | operand) :
                 (code == UCT_ATOMIC_OP_XOR) ? (old ^ operand) :
                 ((code == UCT_ATOMIC_OP_SWAP) || (value & 0x100)) ? operand :
                                                                     old;
    };
    if (!is_common) {
        is_wide ? apply(after.wide) : apply(after.narrow);
    }

    uct_atomic_op_t op = (uct_atomic_op_t)code;
    if (what == ATOMIC_POST) {
        status = is_wide ? uct_ep_atomic64_post(l.ep, op, operand, remote,
                                                rkey) :
                           uct_ep_atomic32_post(l.ep, op, operand, remote,
                                                rkey);
    } else {
        outstanding &o   = begin_op(l, false);
        uint64_t *result = &o.value;
        /* One that compares finds what it expects, or not */
        uint64_t wide    = before.wide + !(value & 0x100);
        uint32_t narrow  = before.narrow + !(value & 0x100);

        o.func = [this, &l, result, is_wide, before](ucs_status_t status) {
            uint64_t old = is_wide ? *result : *(uint32_t*)result;

            if ((status == UCS_OK) &&
                (old != (is_wide ? before.wide : before.narrow))) {
                expect(l, "an atomic has found " + std::to_string(old) +
                          " and not " + std::to_string(is_wide ?
                                                       before.wide :
                                                       before.narrow));
            }
        };
        if (op == UCT_ATOMIC_OP_CSWAP) {
            status = is_wide ? uct_ep_atomic_cswap64(l.ep, wide, operand,
                                                     remote, rkey, result,
                                                     &o.comp) :
                               uct_ep_atomic_cswap32(l.ep, narrow, operand,
                                                     remote, rkey,
                                                     (uint32_t*)result,
                                                     &o.comp);
        } else {
            status = is_wide ? uct_ep_atomic64_fetch(l.ep, op, operand, result,
                                                     remote, rkey, &o.comp) :
                               uct_ep_atomic32_fetch(l.ep, op, operand,
                                                     (uint32_t*)result, remote,
                                                     rkey, &o.comp);
        }
        end_op(o, status);
    }

    if (!UCS_STATUS_IS_ERR(status)) {
        if (is_common) {
            m_nodes[l.dst].added += operand;
        } else {
            l.truth.current = after;
            l.truth.history.push_back(after);
        }
    }
    return status;
}

ucs_status_t world::post_flush(link &l)
{
    snapshot before  = l.truth.take();
    outstanding &op  = begin_op(l, false);
    /* Only that of an endpoint that has failed passes them, and fails, too */
    bool is_passing  = (m_called == nullptr) && has_waiting(l);
    ucs_status_t status;

    op.func = [this, &l, before, is_passing](ucs_status_t status) {
        /* One that is overtaken by a cancel succeeds */
        if ((status == UCS_OK) && !l.is_cut) {
            if (is_passing) {
                expect(l, "a flush does not wait for requests");
            }
            expect(l, l.truth.check(before));
            l.truth.add_barrier(before);
        }
    };
    status = end_op(op, uct_ep_flush(l.ep, 0, &op.comp));
    if ((status == UCS_OK) && is_passing) {
        expect(l, "a flush does not wait for requests");
    }
    if ((status == UCS_OK) && !l.is_failed) {
        expect(l, l.truth.check(before));
        l.truth.add_barrier(before);
    }
    return status;
}

void world::fence(link &l, kind what)
{
    ucs_status_t status = (what == FENCE) ?
                                  uct_ep_fence(l.ep, 0) :
                                  uct_iface_fence(m_nodes[l.src].e->iface(), 0);

    for (auto &other : m_links) {
        if ((status == UCS_OK) &&
            ((what == FENCE) ? (&other == &l) : (other.src == l.src))) {
            other.truth.add_fence();
        }
    }
}

void world::flush_iface(unsigned iface)
{
    if (uct_iface_flush(m_nodes[iface].e->iface(), 0, NULL) != UCS_OK) {
        return;
    }
    for (auto &l : m_links) {
        if (l.src != iface) {
            continue;
        }
        if (has_waiting(l)) {
            expect(l, "a flush of the interface does not wait for requests");
        }
        if (!may_fail(l)) {
            snapshot now = l.truth.take();

            expect(l, l.truth.check(now));
            l.truth.add_barrier(now);
        }
    }
}

void world::fault(link &l, kind what)
{
    struct ibv_qp_attr attr;
    uint64_t data = 0;

    cut(l.src, l.dst);
    switch (what) {
    case BREAK: {
        uct_sep_txwq_t *txwq = m_nodes[l.src].e->sep_ep(l.ep)->txwq;

        attr.qp_state = IBV_QPS_ERR;
        if ((txwq != NULL) && (txwq->conn.qp != NULL)) {
            ibv_modify_qp(txwq->conn.qp, &attr, IBV_QP_STATE);
        }
        break;
    }
    case WRONG_KEY:
        uct_ep_put_short(l.ep, &data, sizeof(data), l.remote,
                         sep_uct_test::wrong_rkey(m_nodes[l.dst].rkey.rkey));
        break;
    default:
        purge(l);
        /* If there are other endpoints, it is a flush as any other */
        l.is_cut = true;
        if (uct_ep_flush(l.ep, UCT_FLUSH_FLAG_CANCEL, NULL) == UCS_OK) {
            if (l.ep != nullptr) {
                destroy(l);
            }
        } else {
            l.is_cut = false;
        }
        break;
    }
}

} // namespace sep_random
