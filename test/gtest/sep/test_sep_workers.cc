/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_pack.h>

#include <common/seed.h>

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

using namespace sep_uct_test;

namespace {

/* What the workers of a memory domain share */
struct sharing {
    const char *name;
    settings   config;
};

void PrintTo(const sharing &value, std::ostream *os)
{
    *os << value.name;
}

/* First 8 bytes of a message between workers of this process */
struct tag {
    uint16_t from, to;
    uint32_t seq;
};

/* A worker in a thread of its own. Whatever arrives must do so in the thread,
 * and exactly once. */
class worker {
public:
    /* Per pair of workers */
    static const size_t slot_size = 64;

    /* An operation that the worker waits for */
    struct request {
        uct_completion_t comp;
        worker           *self;
        unsigned         calls;
        bytes            expected;
        bytes            buffer;
        uint64_t         result;
    };

    worker(unsigned index, std::unique_ptr<entity> e, unsigned num_workers) :
        m_index(index),
        m_entity(std::move(e)),
        m_sent(num_workers, 0),
        m_put(num_workers, 0),
        m_memory(new memory(m_entity->md(), (num_workers + 2) * slot_size))
    {
        memset(m_memory->ptr(), 0, m_memory->size());
        m_scratch.reset(new memory(m_entity->md(), 4096));
    }

    entity &e() { return *m_entity; }
    memory &mem() { return *m_memory; }
    uint64_t counter()
    {
        return *(volatile uint64_t*)m_memory->ptr();
    }
    uint32_t sent(unsigned to) const { return m_sent[to]; }
    uint32_t slot(unsigned from)
    {
        uint32_t value;

        memcpy(&value, m_memory->ptr() + (from + 2) * slot_size, sizeof(value));
        return value;
    }
    uint32_t put(unsigned to) const { return m_put[to]; }
    uint64_t added(unsigned to) const { return m_added[to]; }

    void connect(std::vector<std::unique_ptr<worker>> &all)
    {
        for (auto &other : all) {
            uct_rkey_bundle_t rkey;

            m_eps.push_back(m_entity->connect(other->e().addr()));
            ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_entity->component(),
                                              other->mem().packed_rkey().data(),
                                              &rkey));
            m_remotes.push_back({other->mem().va(), rkey});
        }
        m_added.resize(all.size(), 0);
    }

    void disconnect()
    {
        for (auto &remote : m_remotes) {
            uct_rkey_release(m_entity->component(), &remote.rkey);
        }
        m_remotes.clear();
        while (!m_eps.empty()) {
            m_entity->destroy(m_eps.back());
            m_eps.pop_back();
        }
    }

    /* Any operations to anyone */
    void run(unsigned count, uint64_t seed)
    {
        std::mt19937 random(seed + m_index);

        m_thread = pthread_self();
        for (unsigned i = 0; i < count; ++i) {
            unsigned to = random() % m_eps.size();

            switch (random() % 8) {
            case 0:
            case 1:
                am_short(to, random() % 100);
                break;
            case 2:
                am_bcopy(to, 8 + random() % 2000);
                break;
            case 3:
                am_zcopy(to, random() % 1000);
                break;
            case 4:
                put_and_get(to);
                break;
            case 5:
                fetch_add(to);
                break;
            case 6:
                add(to);
                break;
            default:
                flush(to);
                break;
            }
            m_entity->progress();
        }
        EXPECT_TRUE(m_entity->flush());
        EXPECT_TRUE(m_entity->wait([this]() { return m_outstanding == 0; }));
        for (auto &req : m_requests) {
            EXPECT_EQ(1u, req->calls);
        }
    }

    /* Messages of other workers in this process come in order, all of them */
    void expect_messages(const std::vector<std::unique_ptr<worker>> &all)
    {
        std::vector<uint32_t> next(all.size(), 0);
        unsigned expected = 0;

        for (auto &other : all) {
            expected += other->sent(m_index);
        }
        m_entity->wait([&]() {
            return (m_entity->messages.size() + m_entity->descs.size()) >=
                   expected;
        });
        /* ... and nothing comes after */
        for (unsigned i = 0; i < 100; ++i) {
            m_entity->progress();
        }

        EXPECT_EQ(expected, m_entity->messages.size());
        for (auto &msg : m_entity->messages) {
            tag t;

            ASSERT_GE(msg.data.size(), sizeof(t));
            memcpy(&t, msg.data.data(), sizeof(t));
            ASSERT_EQ(m_index, t.to);
            ASSERT_LT(t.from, all.size());
            ASSERT_EQ(next[t.from]++, t.seq);
            bytes rest(msg.data.begin() + sizeof(t), msg.data.end());
            ASSERT_EQ(pattern(rest.size(), t.seq), rest);
        }
        m_entity->messages.clear();
    }

private:
    uint64_t next_tag(unsigned to)
    {
        tag t = {(uint16_t)m_index, (uint16_t)to, m_sent[to]};
        uint64_t value;

        memcpy(&value, &t, sizeof(value));
        return value;
    }

    /* Until there are resources, by progress or in a pending request */
    void retry(unsigned to, const std::function<ucs_status_t()> &op)
    {
        struct pending {
            uct_pending_req_t req;
            const std::function<ucs_status_t()> *op;
            pthread_t thread;
            bool done;
        } p;
        ucs_status_t status;

        for (;;) {
            status = op();
            if (status != UCS_ERR_NO_RESOURCE) {
                ASSERT_TRUE((status == UCS_OK) || (status == UCS_INPROGRESS))
                        << ucs_status_string(status);
                return;
            }

            p.op       = &op;
            p.done     = false;
            p.thread   = m_thread;
            p.req.func = [](uct_pending_req_t *req) {
                pending *self       = ucs_container_of(req, pending, req);
                ucs_status_t result = (*self->op)();

                EXPECT_EQ(self->thread, pthread_self());
                if (result == UCS_ERR_NO_RESOURCE) {
                    return result;
                }
                EXPECT_GE(result, 0);
                self->done = true;
                return UCS_OK;
            };
            status = uct_ep_pending_add(m_eps[to], &p.req, 0);
            if (status == UCS_OK) {
                EXPECT_TRUE(m_entity->wait([&]() { return p.done; }));
                return;
            }
            ASSERT_EQ(UCS_ERR_BUSY, status);
            m_entity->progress();
        }
    }

    request *new_request()
    {
        request *req = new request;

        req->comp.func   = completed;
        req->comp.count  = 1;
        req->comp.status = UCS_OK;
        req->self        = this;
        req->calls       = 0;
        ++m_outstanding;
        m_requests.emplace_back(req);
        return req;
    }

    static void completed(uct_completion_t *comp)
    {
        request *req = ucs_container_of(comp, request, comp);

        EXPECT_EQ(UCS_OK, comp->status);
        EXPECT_EQ(req->self->m_thread, pthread_self());
        EXPECT_EQ(req->expected, req->buffer);
        ++req->calls;
        --req->self->m_outstanding;
    }

    void am_short(unsigned to, size_t length)
    {
        uint64_t header = next_tag(to);
        bytes payload   = pattern(length, m_sent[to]);

        retry(to, [&]() {
            return uct_ep_am_short(m_eps[to], 1, header, payload.data(),
                                   payload.size());
        });
        ++m_sent[to];
    }

    void am_bcopy(unsigned to, size_t length)
    {
        uint64_t header = next_tag(to);
        bytes data      = pattern(length, m_sent[to]);

        data.insert(data.begin(), (uint8_t*)&header, (uint8_t*)(&header + 1));
        retry(to, [&]() {
            ssize_t ret = uct_ep_am_bcopy(m_eps[to], 2, pack, &data, 0);
            if (ret >= 0) {
                EXPECT_EQ(data.size(), (size_t)ret);
                return UCS_OK;
            }
            return (ucs_status_t)ret;
        });
        ++m_sent[to];
    }

    void am_zcopy(unsigned to, size_t length)
    {
        uint64_t header = next_tag(to);
        bytes payload   = pattern(length, m_sent[to]);
        request *req    = new_request();
        uct_iov_t iov   = {m_scratch->ptr(), length, m_scratch->memh(), 0, 1};

        /* One buffer, so one at a time */
        EXPECT_TRUE(m_entity->wait([&]() { return m_outstanding == 1; }));
        std::copy(payload.begin(), payload.end(), m_scratch->ptr());
        retry(to, [&]() {
            return uct_ep_am_zcopy(m_eps[to], 3, &header, sizeof(header), &iov,
                                   1, 0, &req->comp);
        });
        ++m_sent[to];
        EXPECT_TRUE(m_entity->wait([&]() { return m_outstanding == 0; }));
    }

    static void unpack(void *arg, const void *data, size_t length)
    {
        request *req = (request*)arg;

        EXPECT_EQ(req->self->m_thread, pthread_self());
        req->buffer.assign((const uint8_t*)data, (const uint8_t*)data + length);
    }

    /* A put is seen by a get that is posted after it */
    void put_and_get(unsigned to)
    {
        uint64_t slot  = m_remotes[to].va + (m_index + 2) * slot_size;
        uint32_t value = ++m_put[to];
        bytes data((uint8_t*)&value, (uint8_t*)(&value + 1));
        request *req;

        retry(to, [&]() {
            return uct_ep_put_short(m_eps[to], &value, sizeof(value), slot,
                                    m_remotes[to].rkey.rkey);
        });
        if (value % 2) {
            retry(to, [&]() {
                ssize_t ret = uct_ep_put_bcopy(m_eps[to], pack, &data, slot,
                                               m_remotes[to].rkey.rkey);
                return (ret >= 0) ? UCS_OK : (ucs_status_t)ret;
            });
        }
        req           = new_request();
        req->expected = data;
        retry(to, [&]() {
            return uct_ep_get_bcopy(m_eps[to], unpack, req, sizeof(value), slot,
                                    m_remotes[to].rkey.rkey, &req->comp);
        });
        /* Before the next put changes it */
        EXPECT_TRUE(m_entity->wait([&]() { return req->calls > 0; }));
    }

    void fetch_add(unsigned to)
    {
        request *req = new_request();

        retry(to, [&]() {
            return uct_ep_atomic64_fetch(m_eps[to], UCT_ATOMIC_OP_ADD, 1,
                                         &req->result, m_remotes[to].va,
                                         m_remotes[to].rkey.rkey, &req->comp);
        });
        ++m_added[to];
    }

    void add(unsigned to)
    {
        retry(to, [&]() {
            return uct_ep_atomic64_post(m_eps[to], UCT_ATOMIC_OP_ADD, 1,
                                        m_remotes[to].va,
                                        m_remotes[to].rkey.rkey);
        });
        ++m_added[to];
    }

    void flush(unsigned to)
    {
        request *req        = new_request();
        ucs_status_t status = UCS_OK;

        EXPECT_TRUE(m_entity->wait([&]() {
            status = uct_ep_flush(m_eps[to], 0, &req->comp);
            return status != UCS_ERR_NO_RESOURCE;
        }));
        if (status == UCS_OK) {
            completed(&req->comp);
        }
        EXPECT_GE(status, 0);
    }

    unsigned                              m_index;
    std::unique_ptr<entity>               m_entity;
    pthread_t                             m_thread;
    std::vector<uct_ep_h>                 m_eps;
    std::vector<remote_memory>            m_remotes;
    std::vector<uint32_t>                 m_sent, m_put;
    std::vector<uint64_t>                 m_added;
    std::unique_ptr<memory>               m_memory, m_scratch;
    std::vector<std::unique_ptr<request>> m_requests;
    unsigned                              m_outstanding = 0;
};


class test_sep_workers : public test_sep_uct,
                         public ::testing::WithParamInterface<sharing> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        start(GetParam().config, 2);
    }

    /* Workers on the memory domain of m_local */
    void open(unsigned count, const settings &more = settings())
    {
        settings config = GetParam().config;

        config.insert(config.end(), more.begin(), more.end());
        for (unsigned i = 0; i < count; ++i) {
            std::unique_ptr<entity> e = entity::create(*m_local, config);
            ASSERT_TRUE(e != nullptr);
            m_workers.emplace_back(new worker(i, std::move(e), count));
        }
    }

    void TearDown() override
    {
        m_workers.clear();
        test_sep_uct::TearDown();
    }

    void in_threads(const std::function<void(unsigned)> &func)
    {
        std::vector<std::thread> threads;

        for (unsigned i = 0; i < m_workers.size(); ++i) {
            threads.emplace_back(func, i);
        }
        for (auto &thread : threads) {
            thread.join();
        }
    }

    std::vector<std::unique_ptr<worker>> m_workers;
};


TEST_P(test_sep_workers, random_operations_arrive_once_at_the_right_worker)
{
    open(5);
    std::atomic<unsigned> connected{0}, sent{0};
    uint64_t random = seed::get();

    in_threads([&](unsigned i) {
        m_workers[i]->connect(m_workers);
        ++connected;
        m_workers[i]->e().wait([&]() {
            return connected == m_workers.size();
        });

        m_workers[i]->run(300, random);
        ++sent;
        m_workers[i]->e().wait([&]() { return sent == m_workers.size(); });
        m_workers[i]->expect_messages(m_workers);
    });

    for (unsigned to = 0; to < m_workers.size(); ++to) {
        uint64_t added = 0;

        for (unsigned from = 0; from < m_workers.size(); ++from) {
            added += m_workers[from]->added(to);
            EXPECT_EQ(m_workers[from]->put(to), m_workers[to]->slot(from));
        }
        EXPECT_EQ(added, m_workers[to]->counter());
    }
    in_threads([&](unsigned i) { m_workers[i]->disconnect(); });
}

TEST_P(test_sep_workers, threads_of_two_processes_exchange_messages)
{
    static const unsigned count = 200;
    address to[2]               = {m_peer->addr(0), m_peer->addr(1)};
    std::vector<address> own;

    open(4);
    for (auto &w : m_workers) {
        own.push_back(w->e().addr());
    }
    for (auto &addr : own) {
        m_peer->send(addr, count, 100);
    }

    in_threads([&](unsigned i) {
        entity &e = m_workers[i]->e();
        uct_ep_h eps[2];

        for (unsigned p = 0; p < 2; ++p) {
            eps[p] = e.connect(to[p]);
        }
        for (uint64_t seq = 0; seq < count; ++seq) {
            for (unsigned p = 0; p < 2; ++p) {
                e.wait([&]() {
                    return uct_ep_am_short(eps[p], 1, (p * 100 + i) * count +
                                           seq, NULL, 0) == UCS_OK;
                });
            }
        }
        EXPECT_TRUE(e.flush());
        e.wait([&]() { return e.messages.size() == count; });
        for (uint64_t seq = 0; seq < e.messages.size(); ++seq) {
            uint64_t value;

            memcpy(&value, e.messages[seq].data.data(), sizeof(value));
            EXPECT_EQ(seq, value);
        }
    });

    for (unsigned p = 0; p < 2; ++p) {
        std::vector<uint64_t> next(m_workers.size(), 0);

        m_local->wait([&]() {
            return m_peer->num_received(p) >= m_workers.size() * count;
        });
        ASSERT_EQ(m_workers.size() * count, m_peer->num_received(p));
        for (unsigned i = 0; i < m_workers.size() * count; ++i) {
            message msg = m_peer->received(i, p);
            uint64_t value;

            memcpy(&value, msg.data.data(), sizeof(value));
            uint64_t from = value / count;
            ASSERT_EQ(p, from / 100);
            ASSERT_LT(from % 100, m_workers.size());
            ASSERT_EQ(next[from % 100]++, value % count);
        }
    }
}

/* A worker with an operation that does not come to its end while the peer is
 * frozen, which has few buffers: so it sleeps, whatever the machine does. */
class sleeper {
public:
    static settings config()
    {
        return {{"RX_QUEUE_LEN", "16"}, {"FC_ENABLE", "n"}, {"EAGER", "n"}};
    }

    sleeper(entity &e, const address &to) :
        m_entity(e), m_ep(e.connect(to)), m_memory(e.md(), 64)
    {
        EXPECT_EQ(UCS_OK, uct_iface_event_fd_get(e.iface(), &m_pfd.fd));
        send();
        EXPECT_TRUE(e.flush());
    }

    void post()
    {
        uct_iov_t iov       = {m_memory.ptr(), 64, m_memory.memh(), 0, 1};
        ucs_status_t status = UCS_OK;
        char header         = 0;

        m_done.reset(new completion);
        for (unsigned i = 0; i < 40; ++i) {
            send();
        }
        m_entity.wait([&]() {
            status = uct_ep_am_zcopy(m_ep, 1, &header, 1, &iov, 1, 0,
                                     &m_done->comp);
            return status != UCS_ERR_NO_RESOURCE;
        });
        EXPECT_EQ(UCS_INPROGRESS, status);
    }

    void fall_asleep()
    {
        m_entity.wait([&]() { return arm(); });
        EXPECT_EQ(0u, m_done->calls);
    }

    void sleep()
    {
        for (;;) {
            ASSERT_EQ(1, poll(&m_pfd, 1, 1000 * patience::seconds()))
                    << "lost wake-up";
            while (m_entity.progress() > 0);
            m_entity.wait([&]() { return (m_done->calls > 0) || arm(); });
            if (m_done->calls > 0) {
                break;
            }
        }
        EXPECT_EQ(UCS_OK, m_done->status);
    }

private:
    bool arm()
    {
        return uct_iface_event_arm(m_entity.iface(), UCT_EVENT_SEND_COMP |
                                   UCT_EVENT_RECV) == UCS_OK;
    }

    void send()
    {
        m_entity.wait([&]() {
            return uct_ep_am_short(m_ep, 1, 0, NULL, 0) == UCS_OK;
        });
    }

    entity                      &m_entity;
    uct_ep_h                    m_ep;
    memory                      m_memory;
    struct pollfd               m_pfd = {-1, POLLIN, 0};
    std::unique_ptr<completion> m_done;
};

/* Completions of one worker are taken by another one, which never sleeps */
TEST_P(test_sep_workers, a_worker_sleeps_until_others_have_taken_its_completion)
{
    settings config = GetParam().config;
    std::atomic<bool> stop{false};

    for (auto &setting : sleeper::config()) {
        config.push_back(setting);
    }
    start(config, 1);
    open(2, sleeper::config());
    in_threads([&](unsigned i) {
        entity &e = m_workers[i]->e();

        if (i == 1) {
            while (!stop) {
                e.progress();
            }
            return;
        }

        sleeper self(e, m_peer->addr());
        for (unsigned n = 0; (n < 20) && !HasFailure(); ++n) {
            m_peer->freeze();
            self.post();
            self.fall_asleep();
            (void)m_peer->num_received();
            self.sleep();
        }
        stop = true;
    });
}

/* Whoever wakes up first takes what the other one sleeps for */
TEST_P(test_sep_workers, two_workers_sleep_and_both_are_woken)
{
    settings config = GetParam().config;
    std::vector<std::unique_ptr<sleeper>> sleepers;

    for (auto &setting : sleeper::config()) {
        config.push_back(setting);
    }
    start(config, 1);
    open(2, sleeper::config());
    for (auto &w : m_workers) {
        sleepers.emplace_back(new sleeper(w->e(), m_peer->addr()));
    }
    for (unsigned n = 0; (n < 6) && !HasFailure(); ++n) {
        m_peer->freeze();
        for (auto &each : sleepers) {
            each->post();
        }
        for (auto &each : sleepers) {
            each->fall_asleep();
        }
        (void)m_peer->num_received();
        sleepers[n % 2]->sleep();
        sleepers[1 - n % 2]->sleep();
    }
}

TEST_P(test_sep_workers, a_worker_that_sleeps_is_woken_by_a_message)
{
    std::atomic<bool> stop{false};

    open(2);
    in_threads([&](unsigned i) {
        entity &e = m_workers[i]->e();

        if (i == 1) {
            while (!stop) {
                e.progress();
            }
            return;
        }

        struct pollfd pfd;

        pfd.events = POLLIN;
        EXPECT_EQ(UCS_OK, uct_iface_event_fd_get(e.iface(), &pfd.fd));
        for (unsigned n = 1; (n <= 20) && !HasFailure(); ++n) {
            /* It sleeps before anything is sent */
            e.wait([&]() {
                return uct_iface_event_arm(e.iface(), UCT_EVENT_RECV) == UCS_OK;
            });
            m_peer->send(e.addr(), 5, 64);
            EXPECT_EQ(1, poll(&pfd, 1, 1000 * patience::seconds()))
                    << "lost wake-up " << n;
            e.wait([&]() { return e.messages.size() == 5 * n; });
        }
        stop = true;
    });
}

TEST_P(test_sep_workers, workers_come_and_go_while_others_go_on)
{
    std::atomic<unsigned> busy{1};
    address to[2] = {m_peer->addr(0), m_peer->addr(1)};

    open(4);
    in_threads([&](unsigned i) {
        if (i == 0) {
            /* Always there */
            uct_ep_h ep = m_workers[0]->e().connect(to[0]);

            while (busy < 4) {
                m_workers[0]->e().wait([&]() {
                    return uct_ep_am_short(ep, 1, 0, NULL, 0) == UCS_OK;
                });
            }
            EXPECT_TRUE(m_workers[0]->e().flush());
            return;
        }

        for (unsigned n = 0; n < 8; ++n) {
            std::unique_ptr<entity> e = entity::create(*m_local,
                                                       GetParam().config);
            ASSERT_TRUE(e != nullptr);
            uct_ep_h ep = e->connect(to[1]);

            for (unsigned k = 0; k < 40; ++k) {
                e->wait([&]() {
                    return uct_ep_am_short(ep, 1, i, NULL, 0) == UCS_OK;
                });
            }
            if (n % 2) {
                EXPECT_TRUE(e->flush());
            } /* otherwise with operations outstanding */
        }
        ++busy;
    });
    EXPECT_EQ(0u, m_workers[0]->e().failures.size());
}

TEST_P(test_sep_workers, an_error_reaches_the_worker_that_made_it)
{
    address to[2] = {m_peer->addr(0), m_peer->addr(1)};
    expect_errors hidden;

    open(3);
    remote_memory rmem = m_peer->expose(4096, 5);
    in_threads([&](unsigned i) {
        entity &e   = m_workers[i]->e();
        uct_ep_h ep = e.connect(to[i % 2]);
        completion done;
        memory local(e.md(), 64);
        uct_iov_t iov = {local.ptr(), 64, local.memh(), 0, 1};
        ucs_status_t status = UCS_OK;

        e.wait([&]() {
            status = uct_ep_put_short(ep, "x", 1, rmem.va, rmem.rkey.rkey);
            return status != UCS_ERR_NO_RESOURCE;
        });
        e.flush();
        if (i > 0) {
            return;
        }

        status = uct_ep_put_zcopy(ep, &iov, 1, rmem.va + (1ul << 40),
                                  rmem.rkey.rkey, &done.comp);
        ASSERT_EQ(UCS_INPROGRESS, status);
        e.wait([&]() { return (done.calls > 0) && !e.failures.empty(); });
        EXPECT_EQ(1u, done.calls);
        EXPECT_NE(UCS_OK, done.status);
        ASSERT_EQ(1u, e.failures.size());
        EXPECT_EQ(ep, e.failures[0].ep);
        EXPECT_NE(UCS_OK, uct_ep_put_short(ep, "x", 1, rmem.va,
                                           rmem.rkey.rkey));
    });
}

class test_sep_cq_sharing : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        m_owner = entity::create({{"CQ_SHARING", "1"}});
        ASSERT_TRUE(m_owner != nullptr);
    }

    std::unique_ptr<entity> open(unsigned sharing)
    {
        return entity::create(*m_owner,
                              {{"CATEGORY", "dynamic"},
                               {"CQ_SHARING", std::to_string(sharing)}});
    }

    uct_sep_cq_group_t *group(const std::unique_ptr<entity> &e)
    {
        return e->sep()->cq_member.group;
    }

    std::unique_ptr<entity> m_owner;
};

TEST_F(test_sep_cq_sharing, as_many_workers_as_set_share_a_queue)
{
    std::vector<std::unique_ptr<entity>> e;

    EXPECT_EQ(nullptr, group(m_owner));
    for (unsigned i = 0; i < 5; ++i) {
        e.push_back(open(2));
        ASSERT_TRUE(e[i] != nullptr);
    }
    EXPECT_EQ(group(e[0]), group(e[1]));
    EXPECT_EQ(group(e[2]), group(e[3]));
    EXPECT_NE(group(e[0]), group(e[2]));
    EXPECT_NE(group(e[2]), group(e[4]));
    EXPECT_NE(group(e[0]), group(open(3)));

    /* The place of one that has gone is taken again */
    uct_sep_cq_group_t *first = group(e[0]);
    e[0].reset();
    e[0] = open(2);
    EXPECT_EQ(first, group(e[0]));
}

TEST_F(test_sep_cq_sharing, contexts_of_their_own_share_no_queue)
{
    expect_refused({{"CATEGORY", "mpi_everywhere"}, {"CQ_SHARING", "2"}},
                   {"UCX_SEP_CQ_SHARING=2, but with UCX_SEP_CATEGORY="
                    "mpi_everywhere"}, {}, m_owner.get());
    expect_refused({{"CQ_SHARING", "0"}}, {"UCX_SEP_CQ_SHARING=0"}, {},
                   m_owner.get());
}

std::vector<sharing> sharings()
{
    std::vector<sharing> result = {
        {"nothing", {}},
        {"cq_by_2", {{"CATEGORY", "dynamic"}, {"CQ_SHARING", "2"}}},
        {"cq_by_8", {{"CATEGORY", "static"}, {"CQ_SHARING", "8"}}},
        {"mpi_everywhere_verbs",
         {{"CATEGORY", "mpi_everywhere"}, {"API", "verbs"}}},
        {"static_verbs", {{"CATEGORY", "static"}, {"API", "verbs"}}}
    };

    /* "nothing" is the default, dynamic */
    for (auto &row : categories()) {
        if (row.name != std::string("dynamic")) {
            result.push_back({row.name, {{"CATEGORY", row.name}}});
        }
    }
    return result;
}

INSTANTIATE_TEST_SUITE_P(
        , test_sep_workers, ::testing::ValuesIn(sharings()),
        [](const ::testing::TestParamInfo<sharing> &info) {
            return std::string(info.param.name);
        });

} // namespace
