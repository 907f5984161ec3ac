/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <atomic>
#include <cstring>
#include <thread>

using namespace sep_uct_test;

namespace {

constexpr unsigned max_threads = 24;

/* How the workers of the crowd share what */
struct crowd {
    mode how;
    bool own_domains; /* Each thread opens a memory domain */
};

void PrintTo(const crowd &value, std::ostream *os)
{
    *os << value.how.name;
}


/*
 * Many workers, each in a thread of its own, and all at once: they open,
 * connect to each other, send, write, count and close. Nothing keeps the
 * threads apart but what the transport does itself, which is what
 * ThreadSanitizer looks at.
 */
class test_sep_uct_threads : public ::testing::TestWithParam<crowd> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }

        m_config = GetParam().how.config;
        m_config.push_back({"RX_QUEUE_LEN", "256"});
        m_config.push_back({"TX_QUEUE_LEN", "64"});
        m_owner = entity::create(m_config);
        ASSERT_TRUE(m_owner != nullptr);
    }

    /* What a thread has, and what it tells the others before they look */
    struct member {
        std::unique_ptr<entity> e;
        std::unique_ptr<memory> counter;
        address                 addr;
        bytes                   rkey;
        std::vector<uct_ep_h>   eps;
        std::vector<uct_rkey_bundle_t> rkeys;
    };

    void open(member &self)
    {
        self.e = GetParam().own_domains ? entity::create(m_config) :
                                          entity::create(*m_owner, m_config);
        ASSERT_TRUE(self.e != nullptr);
        self.addr = self.e->addr();
        self.counter.reset(new memory(self.e->md(), 2 * sizeof(uint64_t)));
        memset(self.counter->ptr(), 0, self.counter->size());
        self.rkey = self.counter->packed_rkey();
    }

    void connect(member &self)
    {
        for (unsigned i = 0; i < m_threads; ++i) {
            member &other = m_members[i];
            uct_rkey_bundle_t rkey;

            self.eps.push_back(self.e->connect(other.addr));
            ASSERT_EQ(UCS_OK, uct_rkey_unpack(self.e->component(),
                                              other.rkey.data(), &rkey));
            self.rkeys.push_back(rkey);
        }
    }

    static void retry(member &self, const std::function<ucs_status_t()> &op)
    {
        ucs_status_t status = UCS_ERR_NO_RESOURCE;

        self.e->wait([&]() {
            status = op();
            return status != UCS_ERR_NO_RESOURCE;
        });
        ASSERT_EQ(UCS_OK, status);
    }

    /* A message that says which it is, a count, and a write of the same value
     * as all others write */
    void send(unsigned from, unsigned to, uint64_t round)
    {
        member &self      = m_members[from];
        uint64_t va       = m_members[to].counter->va();
        uct_rkey_t rkey   = self.rkeys[to].rkey;
        uct_ep_h ep       = self.eps[to];
        uint64_t constant = 0x5e9;

        retry(self, [&]() {
            return uct_ep_am_short(ep, 1, (from * m_count) + round, NULL, 0);
        });
        retry(self, [&]() {
            return uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, va, rkey);
        });
        retry(self, [&]() {
            return uct_ep_put_short(ep, &constant, sizeof(constant),
                                    va + sizeof(uint64_t), rkey);
        });
    }

    /* Once, and in order from each of them */
    void expect_all(member &self)
    {
        std::vector<uint64_t> next(m_threads, 0);

        ASSERT_EQ(m_threads * m_count, self.e->messages.size());
        for (auto &message : self.e->messages) {
            uint64_t seq;
            memcpy(&seq, message.data.data(), sizeof(seq));
            ASSERT_EQ(next[seq / m_count]++, seq % m_count);
        }
        EXPECT_TRUE(self.e->failures.empty());

        volatile uint64_t *counter = (volatile uint64_t*)self.counter->ptr();
        EXPECT_EQ(m_threads * m_count, counter[0]);
        EXPECT_EQ(0x5e9u, counter[1]);
    }

    void close(member &self)
    {
        for (auto &rkey : self.rkeys) {
            uct_rkey_release(self.e->component(), &rkey);
        }
        self.counter.reset();
        self.e.reset();
    }

    /* Everybody has come so far */
    void meet(member &self)
    {
        unsigned goal = (m_arrived++ / m_threads + 1) * m_threads;

        self.e->wait([&]() { return m_arrived >= goal; });
    }

    void run(unsigned index)
    {
        member &self = m_members[index];

        open(self);
        ASSERT_FALSE(HasFatalFailure());
        meet(self);
        connect(self);
        for (uint64_t round = 0; round < m_count; ++round) {
            for (unsigned i = 0; i < m_threads; ++i) {
                send(index, (index + i) % m_threads, round);
            }
        }
        EXPECT_TRUE(self.e->flush());
        self.e->wait([&]() {
            return self.e->messages.size() == m_threads * m_count;
        });
        meet(self);
        expect_all(self);
        m_num_by_ring += self.e->num_by_ring();
        meet(self);
        close(self);
        ++m_done;
    }

    void run_all()
    {
        std::vector<std::thread> threads;

        for (unsigned i = 0; i < m_threads; ++i) {
            threads.emplace_back([this, i]() { run(i); });
        }
        for (auto &thread : threads) {
            thread.join();
        }
        EXPECT_EQ(m_threads, m_done);
    }

    settings                m_config;
    std::unique_ptr<entity> m_owner;
    member                  m_members[max_threads];
    unsigned                m_threads = max_threads;
    unsigned                m_count   = 4; /* Rounds, to each worker */
    std::atomic<unsigned>   m_arrived{0}, m_done{0};
    std::atomic<uint64_t>   m_num_by_ring{0};
};

TEST_P(test_sep_uct_threads, twenty_four_workers_talk_to_each_other)
{
    run_all();
}

/* By the time they are offered rings, all of them are sending */
TEST_P(test_sep_uct_threads, workers_write_into_each_others_rings)
{
    m_config.push_back({"EAGER", "y"});
    m_owner.reset();
    m_owner = entity::create(m_config);
    ASSERT_TRUE(m_owner != nullptr);
    m_threads = 4;
    m_count   = 400;
    run_all();
    EXPECT_GT(m_num_by_ring, m_count);
}

std::vector<crowd> crowds()
{
    std::vector<crowd> result = {
        {{"own_domains", {}}, true},
        {{"cq_by_2", {{"CATEGORY", "dynamic"}, {"CQ_SHARING", "2"}}}, false},
        {{"throttle", {{"CATEGORY", "dynamic"}, {"TX_THROTTLE", "y"},
                       {"TX_CQ_LEN", "64"}}}, false},
        {{"throttle_by_24", {{"CATEGORY", "dynamic"}, {"TX_THROTTLE", "200"}}},
         false},
        {{"verbs", {{"CATEGORY", "dynamic"}, {"API", "verbs"}}}, false}
    };

    for (auto &row : categories()) {
        result.push_back({{row.name, {{"CATEGORY", row.name}}}, false});
    }
    return result;
}

INSTANTIATE_TEST_SUITE_P(
        , test_sep_uct_threads, ::testing::ValuesIn(crowds()),
        [](const ::testing::TestParamInfo<crowd> &info) {
            return info.param.how.name;
        });

} // namespace
