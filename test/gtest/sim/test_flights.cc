/* SPDX-License-Identifier: BSD-3-Clause */

/* What requesters have under way, beside a model of it, and a responder on a
 * network that loses, repeats and reorders. */

#include <common/seed.h>
#include <gtest/gtest.h>

extern "C" {
#include <sim/engine/mlx5_def.h>
#include <sim/sched/flights.h>
}

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace {

const unsigned MTU     = 256;
const uint32_t CHUNK   = 4;
const uint64_t TIMEOUT = 4096ull << 3; /* of the queue pair's timeout, ns */

mlx5sim_qp_t make_qp()
{
    mlx5sim_qp_t qp  = {};
    qp.type          = MLX5SIM_QPT_RC;
    qp.path_mtu      = 1;
    qp.max_rd_atomic = 2;
    qp.retry_cnt     = 3;
    qp.rnr_retry     = 2;
    qp.timeout       = 3;
    return qp;
}

mlx5sim_wqe_t make_wqe(unsigned opcode, unsigned packets, bool fence = false)
{
    mlx5sim_wqe_t wqe = {};
    wqe.opcode        = opcode;
    wqe.length        = packets * MTU;
    wqe.num_bb        = 1;
    wqe.signaled      = 1;
    wqe.fence         = fence;
    return wqe;
}

/* Packets one by one, and all that is asked is looked for among them */
class reference {
public:
    struct request {
        size_t   first;
        size_t   count;
        bool     is_request;
        bool     fence;
        unsigned syndrome;
    };

    explicit reference(const mlx5sim_qp_t &qp) : m_qp(qp)
    {
    }

    void add(unsigned packets, bool is_request, bool fence, unsigned syndrome)
    {
        requests.push_back({owners.size(), packets, is_request, fence, 0});
        owners.insert(owners.end(), packets, requests.size() - 1);
        if (syndrome != 0) {
            fail(requests.size() - 1, syndrome);
        }
    }

    void fail(size_t number, unsigned syndrome)
    {
        if ((number < requests.size()) && (number < failing)) {
            failing                   = number;
            requests[number].syndrome = syndrome;
        }
    }

    /* First work request with a packet that is not acknowledged */
    size_t oldest() const
    {
        size_t i = complete;
        while ((i < requests.size()) &&
               (requests[i].first + requests[i].count <= una)) {
            ++i;
        }
        return i;
    }

    size_t depth() const
    {
        std::set<std::pair<size_t, size_t>> waiting;
        for (size_t i = una; i < next; ++i) {
            const request &owner = requests[owners[i]];
            if (owner.is_request) {
                waiting.insert({owners[i], (i - owner.first) / CHUNK});
            }
        }
        return waiting.size();
    }

    bool can_send() const
    {
        if ((next == owners.size()) || (owners[next] == failing)) {
            return false;
        }

        const request &owner = requests[owners[next]];
        size_t limit         = std::max<size_t>(m_qp.max_rd_atomic, 1);
        return !(owner.fence && (next == owner.first) && (depth() > 0)) &&
               !(owner.is_request && (depth() >= limit));
    }

    size_t packets() const
    {
        const request &owner = requests[owners[next]];
        size_t i             = next;
        do {
            ++i;
        } while (owner.is_request && (i < owner.first + owner.count) &&
                 (((i - owner.first) % CHUNK) != 0));
        return i - next;
    }

    void sent()
    {
        next += packets();
        seen  = std::max(seen, next);
    }

    void acked(size_t number)
    {
        if (number > una) {
            una     = number;
            tries   = 0;
            pauses  = 0;
            next    = std::max(next, una);
        }
    }

    bool hear(size_t number)
    {
        for (size_t i = una; i < number; ++i) {
            if (requests[owners[i]].is_request) {
                acked(i);
                return false;
            }
        }
        acked(number);
        return true;
    }

    void resume()
    {
        una = next = (complete < requests.size()) ? requests[complete].first :
                                                    owners.size();
        failing    = SIZE_MAX;
        missed     = SIZE_MAX;
        tries      = 0;
        pauses     = 0;
    }

    void retry()
    {
        if (tries >= m_qp.retry_cnt) {
            fail(oldest(), MLX5SIM_SYNDROME_TRANSPORT_RETRY);
        } else {
            next = una;
        }
        tries += 1;
    }

    void missing()
    {
        if (missed != una) {
            missed = una;
            retry();
        }
    }

    bool rnr()
    {
        if ((m_qp.rnr_retry != 7) && (pauses >= m_qp.rnr_retry)) {
            fail(oldest(), MLX5SIM_SYNDROME_RNR_RETRY);
            return false;
        }
        pauses += 1;
        next    = una;
        return true;
    }

    std::vector<request> requests;
    std::vector<size_t>  owners;             /* of packets */
    size_t               complete = 0;       /* work requests */
    size_t               failing  = SIZE_MAX;
    size_t               una      = 0;
    size_t               next     = 0;
    size_t               seen     = 0;
    size_t               missed   = SIZE_MAX; /* una then */
    unsigned             tries    = 0;
    unsigned             pauses   = 0;

private:
    const mlx5sim_qp_t &m_qp;
};

enum kind { ACK, DATA, GAP, RNR, REFUSED };

struct packet {
    uint32_t psn;
    size_t   number; /* what the PSN stands for, which nobody looks at */
    size_t   count;
    bool     is_request;
};

struct answer {
    kind     what;
    uint32_t psn;
};

/* One queue pair, and its peer */
class connection {
public:
    explicit connection(uint64_t seed) :
        m_random(seed), m_qp(make_qp()), m_model(m_qp),
        m_flights(new mlx5sim_flights_t())
    {
        m_qp.retry_cnt     = pick(8);
        m_qp.rnr_retry     = pick(8);
        m_qp.max_rd_atomic = pick(4);
        m_qp.timeout       = (pick(8) == 0) ? 0 : 3;
        m_sq_psn           = MLX5SIM_PSN_MASK - pick(200);
        m_loss             = pick(80);
        m_rnr              = (pick(2) == 0) ? 0 : pick(100);
        m_refuse           = (pick(4) == 0) ? 1 : 0;
        m_kill             = (pick(2) == 0) ? 5 : 0;
        mlx5sim_flights_begin(m_flights.get(), 0, CHUNK);
    }

    void run(unsigned steps)
    {
        for (unsigned i = 0; (i < steps) && goes_on(); ++i) {
            step(pick(8));
            compare();
        }

        /* from now on the network does what it should, and all completes */
        m_loss = m_rnr = m_refuse = m_kill = 0;
        m_qp.timeout = 3;
        set_timer();
        for (unsigned i = 0; (i < 100000) && !is_done(); ++i) {
            step(1 + (i % 7));
            compare();
        }
        EXPECT_TRUE(is_done());
        if (m_model.failing == SIZE_MAX) {
            EXPECT_EQ(m_model.owners.size(), m_taken);
        }
    }

    bool has_failed() const
    {
        return m_model.failing != SIZE_MAX;
    }

    bool has_wrapped() const
    {
        return m_sq_psn + m_model.una > MLX5SIM_PSN_MASK;
    }

private:
    unsigned pick(unsigned count)
    {
        return m_random() % count;
    }

    bool happens(unsigned of_1000)
    {
        return pick(1000) < of_1000;
    }

    /* Unless the queue pair is in the error state */
    bool goes_on() const
    {
        return !testing::Test::HasFailure() &&
               ((m_model.failing == SIZE_MAX) ||
                (m_model.complete <= m_model.failing));
    }

    bool is_done() const
    {
        return !goes_on() || (m_model.complete == m_model.requests.size());
    }

    void step(unsigned what)
    {
        if (happens(m_kill)) {
            resume();
        }

        switch (what) {
        case 0:
            post();
            break;
        case 1:
        case 2:
            send();
            break;
        case 3:
            arrive();
            break;
        case 4:
            hear();
            break;
        case 5:
            complete();
            break;
        case 6:
            m_now += pick(TIMEOUT);
            expire();
            break;
        default:
            arrive();
            hear();
            break;
        }
    }

    void post()
    {
        static const unsigned opcodes[] = {
            MLX5SIM_OPCODE_SEND, MLX5SIM_OPCODE_RDMA_WRITE,
            MLX5SIM_OPCODE_RDMA_READ, MLX5SIM_OPCODE_ATOMIC_FA,
            MLX5SIM_OPCODE_NOP
        };
        unsigned opcode   = opcodes[pick(5)];
        bool is_nop       = opcode == MLX5SIM_OPCODE_NOP;
        bool is_atomic    = opcode == MLX5SIM_OPCODE_ATOMIC_FA;
        bool is_request   = is_atomic || (opcode == MLX5SIM_OPCODE_RDMA_READ);
        unsigned packets  = is_atomic ? 1 : (1 + pick(12));
        unsigned syndrome = happens(5) ? MLX5SIM_SYNDROME_LOCAL_PROT : 0;
        bool fence        = pick(4) == 0;
        mlx5sim_wqe_t wqe = make_wqe(opcode, packets, fence);

        if (mlx5sim_flights_have_room(m_flights.get())) {
            mlx5sim_flights_add(m_flights.get(), &m_qp, &wqe, syndrome);
            m_posted.push_back({wqe, syndrome});
            m_model.add((is_nop || (syndrome != 0)) ? 0 : packets, is_request,
                        fence, syndrome);
        }
    }

    /* Another requester goes on: it knows what is complete, and what was sent
     * at most */
    void resume()
    {
        mlx5sim_flights_t *flights = m_flights.get();

        m_begin = m_model.complete;
        m_timer = 0;
        m_model.resume();
        mlx5sim_flights_begin(flights, 0, CHUNK);
        mlx5sim_flights_resume(flights, m_model.una, m_model.seen);
        for (size_t i = m_begin; i < m_posted.size(); ++i) {
            mlx5sim_flights_add(flights, &m_qp, &m_posted[i].first,
                                m_posted[i].second);
            if (m_posted[i].second != 0) {
                m_model.fail(i, m_posted[i].second);
            }
        }
    }

    void send()
    {
        mlx5sim_flights_t *flights = m_flights.get();

        ASSERT_EQ(m_model.can_send(),
                  !!mlx5sim_flights_can_send(flights, &m_qp));
        if (!m_model.can_send() || (m_now < m_pause) ||
            (m_model.next - m_model.una > 100)) {
            return;
        }

        packet sent = {mlx5sim_psn_add(m_sq_psn, m_model.next), m_model.next,
                       m_model.packets(),
                       m_model.requests[m_model.owners[m_model.next]]
                               .is_request};
        ASSERT_EQ(sent.count, mlx5sim_flights_next(flights));
        mlx5sim_flights_sent(flights, &m_qp, sent.count);
        m_model.sent();
        if (flights->una + sent.count == flights->snd) {
            set_timer();
        }
        put(m_packets, sent);
    }

    /* Onto a network */
    template<typename T> void put(std::vector<T> &wire, const T &each)
    {
        if (!happens(m_loss)) {
            wire.push_back(each);
        }
        if (happens(m_loss)) {
            wire.insert(wire.begin() + pick(wire.size() + 1), each);
        }
    }

    template<typename T> T take(std::vector<T> &wire)
    {
        size_t i = (happens(m_loss) && (wire.size() > 1)) ? 1 : 0;
        T each   = wire[i];
        wire.erase(wire.begin() + i);
        return each;
    }

    void say(kind what, size_t number)
    {
        put(m_answers, answer{what, mlx5sim_psn_add(m_sq_psn, number)});
    }

    /* The responder takes a packet */
    void arrive()
    {
        if (m_packets.empty()) {
            return;
        }

        packet came = take(m_packets);
        if (came.number > m_taken) {
            if (!m_has_told) {
                m_has_told = true;
                say(GAP, m_taken);
            }
            return;
        }

        if (came.number == m_taken) {
            if (m_is_error) {
                return;
            }
            if (happens(m_rnr) && !came.is_request) {
                say(RNR, m_taken);
                return;
            }
            if (happens(m_refuse)) {
                m_is_error = true;
                say(REFUSED, m_taken);
                return;
            }
            m_has_told = false;
            m_taken   += came.count;
        }

        if (came.is_request) {
            for (size_t i = 0; i < came.count; ++i) {
                say(DATA, came.number + i);
            }
        } else if (pick(3) != 0) {
            say(ACK, m_taken - 1);
        }
    }

    void set_timer()
    {
        m_timer = ((m_model.una < m_model.next) && (m_qp.timeout != 0)) ?
                  (m_now + TIMEOUT) : 0;
        mlx5sim_flights_set_timer(m_flights.get(), &m_qp, m_now);
    }

    void expire()
    {
        mlx5sim_flights_expire(m_flights.get(), &m_qp, m_now);
        if ((m_timer != 0) && (m_now >= m_timer)) {
            m_model.missed = SIZE_MAX;
            m_model.retry();
            m_timer = ((m_model.una < m_model.next) && (m_qp.timeout != 0)) ?
                      (m_now + TIMEOUT) : 0;
        }
    }

    void after(uint64_t una)
    {
        if (m_flights->una != una) {
            mlx5sim_flights_skip(m_flights.get());
            set_timer();
        }
    }

    bool implies(size_t number)
    {
        uint64_t una    = m_flights->una;
        bool is_useful  = m_model.hear(number);
        EXPECT_EQ(is_useful, !!mlx5sim_flights_hear(m_flights.get(), number));
        after(una);
        if (!is_useful) {
            mlx5sim_flights_close_gap(m_flights.get(), &m_qp);
            m_model.missing();
        }
        return is_useful;
    }

    /* The requester hears an answer */
    void hear()
    {
        if (m_answers.empty()) {
            return;
        }

        answer came    = take(m_answers);
        uint64_t una   = m_flights->una;
        size_t number  = una + mlx5sim_flights_ahead(m_flights.get(), m_sq_psn,
                                                     came.psn);
        if (!mlx5sim_flights_has_sent(m_flights.get(), number)) {
            return;
        }

        if (!implies(number + (came.what == ACK)) || (came.what == ACK)) {
            return;
        }

        una = m_flights->una;
        if (number != una) {
            return; /* late */
        }

        switch (came.what) {
        case DATA:
            if (m_model.requests[m_model.owners[number]].is_request &&
                (m_model.owners[number] != m_model.failing)) {
                m_model.acked(number + 1);
                mlx5sim_flights_acked(m_flights.get(), number + 1);
                after(una);
            }
            break;
        case GAP:
            m_model.missing();
            mlx5sim_flights_close_gap(m_flights.get(), &m_qp);
            break;
        case RNR:
            if (m_model.rnr()) {
                m_pause = m_now + pick(1000);
                m_timer = 0;
            }
            mlx5sim_flights_rnr(m_flights.get(), &m_qp);
            break;
        default:
            m_model.fail(m_model.oldest(), MLX5SIM_SYNDROME_REMOTE_ACCESS);
            mlx5sim_flights_fail(m_flights.get(),
                                 mlx5sim_flights_oldest(m_flights.get()),
                                 MLX5SIM_SYNDROME_REMOTE_ACCESS);
            break;
        }
    }

    void complete()
    {
        mlx5sim_flights_t *flights = m_flights.get();
        mlx5sim_plan_t plan;

        while (!is_done()) {
            bool is_stop = m_model.complete == m_model.failing;
            bool can     = (m_model.complete < m_model.oldest()) || is_stop;
            ASSERT_EQ(can, !!mlx5sim_flights_can_complete(flights));
            if (!can) {
                break;
            }

            const auto &request = m_model.requests[m_model.complete];
            mlx5sim_flights_complete(flights, &m_qp, &plan);
            ASSERT_EQ(is_stop, !!plan.req_error);
            if (is_stop) {
                ASSERT_EQ(request.syndrome, plan.req_cqe.syndrome);
            } else {
                /* nobody is told before it is so */
                ASSERT_LE(request.first + request.count, m_taken);
            }
            ++m_model.complete;
        }
    }

    void compare() const
    {
        const mlx5sim_flights_t *flights = m_flights.get();

        if (!goes_on()) {
            return;
        }

        ASSERT_EQ(m_model.una, flights->una);
        ASSERT_EQ(m_model.next, flights->snd);
        ASSERT_EQ(m_model.seen, flights->max_snd);
        ASSERT_EQ(m_model.owners.size(), flights->end);
        ASSERT_EQ(m_timer, flights->timer);
        ASSERT_EQ(m_model.complete, m_begin + flights->head);
        ASSERT_EQ(m_model.requests.size(), m_begin + flights->tail);
        ASSERT_EQ(m_model.oldest(), m_begin + mlx5sim_flights_oldest(flights));
        ASSERT_EQ(m_model.depth(), mlx5sim_flights_depth(flights));
        ASSERT_EQ(m_model.failing != SIZE_MAX, !!flights->has_stop);
        if (flights->has_stop) {
            ASSERT_EQ(m_model.failing, m_begin + flights->stop);
        } else {
            ASSERT_EQ(m_model.can_send(),
                      !!mlx5sim_flights_can_send(flights, &m_qp));
        }
    }

    std::mt19937                       m_random;
    mlx5sim_qp_t                       m_qp;
    reference                          m_model;
    std::unique_ptr<mlx5sim_flights_t> m_flights;
    uint32_t                           m_sq_psn;
    unsigned                           m_loss;     /* of 1000, as the next */
    unsigned                           m_rnr;
    unsigned                           m_refuse;
    unsigned                           m_kill;
    std::vector<std::pair<mlx5sim_wqe_t, unsigned>> m_posted;
    std::vector<packet>                m_packets;  /* under way */
    std::vector<answer>                m_answers;
    size_t                             m_begin    = 0; /* of flights */
    size_t                             m_taken    = 0; /* by the responder */
    bool                               m_has_told = false;
    bool                               m_is_error = false;
    uint64_t                           m_now      = 1000;
    uint64_t                           m_timer    = 0;
    uint64_t                           m_pause    = 0;
};

class test_flights : public testing::Test {
protected:
    test_flights()
    {
        mlx5sim_flights_begin(&m_flights, 7, CHUNK);
    }

    void add(unsigned opcode, unsigned packets, bool fence = false)
    {
        mlx5sim_wqe_t wqe = make_wqe(opcode, packets, fence);
        mlx5sim_flights_add(&m_flights, &m_qp, &wqe, 0);
    }

    /* All that can be sent. @return PSNs of it */
    unsigned send()
    {
        uint64_t snd = m_flights.snd;
        while (mlx5sim_flights_can_send(&m_flights, &m_qp)) {
            mlx5sim_flights_sent(&m_flights, &m_qp,
                                 mlx5sim_flights_next(&m_flights));
        }
        return m_flights.snd - snd;
    }

    mlx5sim_qp_t      m_qp      = make_qp();
    mlx5sim_flights_t m_flights = {};
};

} // namespace


TEST(test_flights_random, completes_in_order_what_has_arrived)
{
    unsigned cases  = seed::cases(300);
    unsigned failed = 0, wrapped = 0;

    for (unsigned i = 0; (i < cases) && !HasFailure(); ++i) {
        connection each(seed::get(i));
        each.run(1500);
        failed  += each.has_failed();
        wrapped += each.has_wrapped();
    }

    if (cases >= 300) {
        EXPECT_GT(failed, cases / 20);
        EXPECT_LT(failed, cases);
        EXPECT_GT(wrapped, cases / 20);
    }
}

TEST_F(test_flights, as_often_as_the_queue_pair_says)
{
    add(MLX5SIM_OPCODE_SEND, 2);
    EXPECT_EQ(2u, send());
    for (unsigned i = 0; i < m_qp.retry_cnt; ++i) {
        EXPECT_TRUE(mlx5sim_flights_retry(&m_flights, &m_qp));
        EXPECT_EQ(2u, send());
    }
    EXPECT_FALSE(mlx5sim_flights_retry(&m_flights, &m_qp));
    ASSERT_TRUE(mlx5sim_flights_is_stop(&m_flights, 0));
    EXPECT_EQ(MLX5SIM_SYNDROME_TRANSPORT_RETRY,
              mlx5sim_flights_at(&m_flights, 0)->syndrome);
}

TEST_F(test_flights, an_acknowledgement_gives_all_retries_back)
{
    add(MLX5SIM_OPCODE_SEND, 20);
    EXPECT_EQ(20u, send());
    for (unsigned i = 1; i < 20; ++i) {
        EXPECT_TRUE(mlx5sim_flights_retry(&m_flights, &m_qp));
        EXPECT_TRUE(mlx5sim_flights_rnr(&m_flights, &m_qp));
        EXPECT_TRUE(mlx5sim_flights_hear(&m_flights, i));
    }
}

TEST_F(test_flights, rnr_7_is_for_ever)
{
    m_qp.rnr_retry = 7;
    add(MLX5SIM_OPCODE_SEND, 1);
    for (unsigned i = 0; i < 1000; ++i) {
        EXPECT_EQ(1u, send());
        EXPECT_TRUE(mlx5sim_flights_rnr(&m_flights, &m_qp));
    }
}

TEST_F(test_flights, an_answer_that_is_missing_is_asked_for_once)
{
    add(MLX5SIM_OPCODE_RDMA_READ, 3);
    add(MLX5SIM_OPCODE_SEND, 2);
    EXPECT_EQ(5u, send());
    EXPECT_FALSE(mlx5sim_flights_hear(&m_flights, 4));
    EXPECT_TRUE(mlx5sim_flights_close_gap(&m_flights, &m_qp));
    EXPECT_EQ(0u, m_flights.snd);
    EXPECT_EQ(5u, send());
    EXPECT_FALSE(mlx5sim_flights_hear(&m_flights, 5));
    EXPECT_TRUE(mlx5sim_flights_close_gap(&m_flights, &m_qp));
    EXPECT_EQ(5u, m_flights.snd);
}

TEST_F(test_flights, packets_of_an_answer_are_asked_for_in_chunks)
{
    m_qp.max_rd_atomic = 1;
    add(MLX5SIM_OPCODE_RDMA_READ, 2 * CHUNK + 1);
    EXPECT_EQ(CHUNK, send());
    mlx5sim_flights_acked(&m_flights, CHUNK - 1);
    EXPECT_EQ(0u, send());
    mlx5sim_flights_acked(&m_flights, CHUNK);
    EXPECT_EQ(CHUNK, send());
    mlx5sim_flights_acked(&m_flights, 2 * CHUNK);
    EXPECT_EQ(1u, send());
}

TEST_F(test_flights, what_was_acknowledged_late_is_not_sent_again)
{
    add(MLX5SIM_OPCODE_SEND, 3);
    add(MLX5SIM_OPCODE_SEND, 3);
    EXPECT_EQ(6u, send());
    mlx5sim_flights_go_back(&m_flights);
    mlx5sim_flights_acked(&m_flights, 4);
    mlx5sim_flights_skip(&m_flights);
    EXPECT_EQ(1u, m_flights.cur);
    EXPECT_EQ(2u, send());
}

TEST_F(test_flights, nobody_tells_of_an_unreliable_connection)
{
    m_qp.type    = MLX5SIM_QPT_UC;
    m_qp.timeout = 3;
    add(MLX5SIM_OPCODE_SEND, 3);
    EXPECT_EQ(3u, send());
    mlx5sim_flights_set_timer(&m_flights, &m_qp, 1);
    EXPECT_EQ(0u, m_flights.timer);
    EXPECT_TRUE(mlx5sim_flights_can_complete(&m_flights));
}

TEST_F(test_flights, a_queue_pair_that_begins_anew_has_sent_nothing)
{
    add(MLX5SIM_OPCODE_SEND, 3);
    EXPECT_EQ(3u, send());
    mlx5sim_flights_begin(&m_flights, 9, CHUNK);
    EXPECT_EQ(0u, m_flights.max_snd);
    EXPECT_EQ(0u, m_flights.end);
    EXPECT_EQ(9u, m_flights.fetched);
    EXPECT_EQ(m_flights.head, m_flights.tail);
}

TEST_F(test_flights, another_requester_hears_of_what_was_sent_before)
{
    mlx5sim_flights_resume(&m_flights, 5, 8);
    EXPECT_FALSE(mlx5sim_flights_has_sent(&m_flights, 6));
    add(MLX5SIM_OPCODE_SEND, 4);
    EXPECT_TRUE(mlx5sim_flights_has_sent(&m_flights, 7));
    EXPECT_FALSE(mlx5sim_flights_has_sent(&m_flights, 8));
    EXPECT_TRUE(mlx5sim_flights_hear(&m_flights, 8));
    mlx5sim_flights_skip(&m_flights);
    EXPECT_EQ(1u, send());
}

TEST_F(test_flights, an_error_forgets_work_requests_and_not_psns)
{
    add(MLX5SIM_OPCODE_SEND, 3);
    EXPECT_EQ(3u, send());
    mlx5sim_flights_fail(&m_flights, 0, MLX5SIM_SYNDROME_LOCAL_PROT);
    mlx5sim_flights_clear(&m_flights, 11);
    EXPECT_TRUE(mlx5sim_flights_have_room(&m_flights));
    EXPECT_EQ(3u, m_flights.una);
    EXPECT_EQ(3u, m_flights.snd);
    EXPECT_EQ(11u, m_flights.fetched);
}
