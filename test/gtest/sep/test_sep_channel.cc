/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <common/sanitizer.h>
#include <common/seed.h>

#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/category/sep_channel.h>
#include <uct/ib/sep/category/sep_sharing.h>

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

using namespace sep_uct_test;

namespace {

/* Channels of several workers on one memory domain */
class test_sep_channel : public ::testing::Test {
protected:
    struct worker {
        uct_sep_category_t category;
        uct_sep_channel_t  channel;
        struct ibv_qp      *qp = nullptr;
        uct_sep_bf_t       *bf;

        uintptr_t page() const { return (uintptr_t)bf->reg / 4096; }

        const uct_sep_category_row_t &row() const
        {
            return uct_sep_category_rows[category];
        }
    };

    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        m_entity = entity::create({{"CATEGORY", "dynamic"}});
        ASSERT_TRUE(m_entity != nullptr);
        m_md = ucs_derived_of(m_entity->md(), uct_sep_md_t);
        m_cq = ibv_create_cq(m_md->dev.context, 16, NULL, NULL, 0);
        ASSERT_TRUE(m_cq != NULL);
    }

    void TearDown() override
    {
        if (m_cq != nullptr) {
            EXPECT_EQ(0, ibv_destroy_cq(m_cq));
        }
    }

    void open_qp(struct ibv_pd *pd, uct_sep_uuar_use_t use,
                 struct ibv_qp **qp_p, uct_sep_bf_t **bf_p)
    {
        struct ibv_qp_init_attr_ex attr = {};
        struct mlx5dv_qp dv_qp          = {};
        struct mlx5dv_obj dv            = {};

        uct_sep_uuars_enter(&m_md->uuars, use);
        attr.qp_type          = IBV_QPT_RC;
        attr.send_cq          = m_cq;
        attr.recv_cq          = m_cq;
        attr.cap.max_send_wr  = 4;
        attr.cap.max_send_sge = 1;
        attr.comp_mask        = IBV_QP_INIT_ATTR_PD;
        attr.pd               = pd;
        *qp_p = ibv_create_qp_ex(m_md->dev.context, &attr);
        ASSERT_TRUE(*qp_p != NULL);
        dv_qp.comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET;
        dv.qp.in        = *qp_p;
        dv.qp.out       = &dv_qp;
        ASSERT_EQ(0, mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP));
        ASSERT_EQ(UCS_OK, uct_sep_uuars_get(&m_md->uuars, &dv_qp, use, bf_p));
        uct_sep_uuars_leave(&m_md->uuars, use);
    }

    void close_qp(struct ibv_qp *qp, uct_sep_bf_t *bf)
    {
        ASSERT_EQ(0, ibv_destroy_qp(qp));
        uct_sep_uuars_put(&m_md->uuars, bf);
    }

    void open(worker &w, uct_sep_category_t category)
    {
        w.category = category;
        ASSERT_EQ(UCS_OK, uct_sep_channel_init(&w.channel, m_md, category,
                                               "test"));
        EXPECT_EQ(category, w.channel.category);
        open_qp(w.channel.pd, w.channel.use, &w.qp, &w.bf);
    }

    void close(worker &w)
    {
        close_qp(w.qp, w.bf);
        w.qp = nullptr;
        uct_sep_channel_cleanup(&w.channel, m_md);
    }

    /* Each worker has what its category promises, with what the others have */
    void check(const std::vector<worker> &workers, const char *what)
    {
        std::map<uintptr_t, unsigned> pages;
        std::set<void*> regs;

        for (auto &w : workers) {
            if ((w.qp != nullptr) &&
                (w.channel.use == UCT_SEP_UUAR_EXCLUSIVE)) {
                EXPECT_TRUE(regs.insert(w.bf->reg).second) << what;
                EXPECT_EQ(UCT_SEP_BF_SINGLE, w.bf->sharing) << what;
                ++pages[w.page()];
            }
        }
        for (auto &w : workers) {
            if (w.qp == nullptr) {
                continue;
            }
            if (w.row().tds >= 2) {
                EXPECT_EQ(1u, pages[w.page()]) << what;
            } else if (w.row().tds == 1) {
                EXPECT_GE(2u, pages[w.page()]) << what;
            }
        }
    }

    /* Whether both halves of a shared pair are on one page */
    void check_pairs(const std::vector<worker> &workers)
    {
        std::map<const uct_sep_td_pair_t*, uintptr_t> pages;

        for (auto &w : workers) {
            if ((w.qp != nullptr) && (w.row().tds == 1)) {
                auto it = pages.emplace(w.channel.pair[0], w.page()).first;
                EXPECT_EQ(it->second, w.page());
            }
        }
    }

    std::unique_ptr<entity> m_entity;
    uct_sep_md_t            *m_md = nullptr;
    struct ibv_cq           *m_cq = nullptr;
};

TEST_F(test_sep_channel, dynamic_workers_have_a_uar_page_each)
{
    std::vector<worker> workers(6);

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(open(w, UCT_SEP_CATEGORY_DYNAMIC));
    }

    /* Also after others have come and gone */
    for (unsigned round = 0; round < 4; ++round) {
        check(workers, "dynamic");
        for (unsigned i = round % 2; i < workers.size(); i += 2) {
            ASSERT_NO_FATAL_FAILURE(close(workers[i]));
        }
        for (unsigned i = round % 2; i < workers.size(); i += 2) {
            ASSERT_NO_FATAL_FAILURE(open(workers[i], UCT_SEP_CATEGORY_DYNAMIC));
        }
    }

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(close(w));
    }
}

/* The connection manager has a uUAR of its own: on the worker's page, or on the
 * idle one in front of it, which is nobody else's */
TEST_F(test_sep_channel, connection_managers_ring_where_no_worker_does)
{
    struct manager {
        struct ibv_qp *qp;
        uct_sep_bf_t  *bf;

        uintptr_t page() const { return (uintptr_t)bf->reg / 4096; }
    };

    for (int category = 0; category < UCT_SEP_CATEGORY_AUTO; ++category) {
        const uct_sep_category_row_t &row = uct_sep_category_rows[category];
        std::vector<worker> workers(3);
        std::vector<manager> managers(workers.size());
        std::set<uintptr_t> pages;

        if (row.tds < 2) {
            continue;
        }
        for (size_t i = 0; i < workers.size(); ++i) {
            ASSERT_NO_FATAL_FAILURE(open(workers[i],
                                         (uct_sep_category_t)category));
            ASSERT_NO_FATAL_FAILURE(open_qp(workers[i].channel.cm_pd,
                                            workers[i].channel.cm_use,
                                            &managers[i].qp, &managers[i].bf));
        }
        check(workers, row.name);
        for (size_t i = 0; i < workers.size(); ++i) {
            EXPECT_NE(workers[i].bf, managers[i].bf) << row.name;
            EXPECT_NE(workers[i].bf->reg, managers[i].bf->reg) << row.name;
            EXPECT_EQ(UCT_SEP_BF_SINGLE, managers[i].bf->sharing) << row.name;
            EXPECT_EQ(row.tds == 2, workers[i].page() == managers[i].page())
                    << row.name;
            pages.insert(workers[i].page());
            pages.insert(managers[i].page());
        }
        EXPECT_EQ(workers.size() * row.tds / 2, pages.size()) << row.name;
        for (size_t i = 0; i < workers.size(); ++i) {
            close_qp(managers[i].qp, managers[i].bf);
            ASSERT_NO_FATAL_FAILURE(close(workers[i]));
        }
    }
}

TEST_F(test_sep_channel, shared_dynamic_workers_come_in_pairs_on_one_page)
{
    std::vector<worker> workers(8);
    std::set<uintptr_t> pages;

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(open(w, UCT_SEP_CATEGORY_SHARED_DYNAMIC));
        pages.insert(w.page());
    }
    EXPECT_EQ(4u, pages.size());
    check(workers, "shared_dynamic");
    check_pairs(workers);

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(close(w));
    }
}

TEST_F(test_sep_channel, a_worker_who_is_left_alone_gets_a_new_partner)
{
    std::vector<worker> workers(4);
    uintptr_t page;

    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(open(w, UCT_SEP_CATEGORY_SHARED_DYNAMIC));
    }
    page = workers[1].page();
    ASSERT_NO_FATAL_FAILURE(close(workers[0]));
    EXPECT_FALSE(ucs_list_is_empty(&m_md->sharing->half_pairs));
    ASSERT_NO_FATAL_FAILURE(open(workers[0], UCT_SEP_CATEGORY_SHARED_DYNAMIC));
    EXPECT_EQ(page, workers[0].page());
    EXPECT_TRUE(ucs_list_is_empty(&m_md->sharing->half_pairs));
    for (auto &w : workers) {
        ASSERT_NO_FATAL_FAILURE(close(w));
    }
    EXPECT_EQ(0u, m_md->sharing->common_refcount);
}

TEST_F(test_sep_channel, promises_hold_whoever_comes_and_goes_at_random)
{
    std::vector<uct_sep_category_t> categories;
    std::vector<worker> workers(12);
    std::mt19937 random(seed::get());

    for (int category = 0; category < UCT_SEP_CATEGORY_AUTO; ++category) {
        const uct_sep_category_row_t &row = uct_sep_category_rows[category];

        if (!row.own_context && !row.is_hub) {
            categories.push_back((uct_sep_category_t)category);
        }
    }

    for (unsigned step = 0; step < 200; ++step) {
        worker &w = workers[random() % workers.size()];

        if (w.qp != nullptr) {
            ASSERT_NO_FATAL_FAILURE(close(w));
        } else {
            ASSERT_NO_FATAL_FAILURE(open(w, categories[random() %
                                                     categories.size()]));
        }
        check(workers, "mixed");
        check_pairs(workers);
        if (HasFailure()) {
            FAIL() << "step " << step;
        }
    }

    for (auto &w : workers) {
        if (w.qp != nullptr) {
            ASSERT_NO_FATAL_FAILURE(close(w));
        }
    }
    EXPECT_TRUE(ucs_list_is_empty(&m_md->sharing->half_pairs));
    EXPECT_EQ(0u, m_md->sharing->common_refcount);
}

/* "No page left" of the device, until the end of the block */
class no_pages {
public:
    no_pages() { setenv("MLX5SIM_FAIL", "uar:1+", 1); }
    ~no_pages() { unsetenv("MLX5SIM_FAIL"); }
};

/* The uUAR of a connection manager, which is rung with its lock held */
TEST_F(test_sep_channel, without_a_page_the_default_shares_one_with_another)
{
    struct ibv_qp *cm_qp, *qps[2];
    uct_sep_bf_t *cm_bf, *bfs[2];
    uct_sep_channel_t borrowers[2];
    worker lender;

    if (getenv("MLX5SIM_DIR") == NULL) {
        GTEST_SKIP() << "only the software device can be asked to fail";
    }

    ASSERT_NO_FATAL_FAILURE(open(lender, UCT_SEP_CATEGORY_DYNAMIC));
    ASSERT_NO_FATAL_FAILURE(open_qp(lender.channel.cm_pd, lender.channel.cm_use,
                                    &cm_qp, &cm_bf));
    EXPECT_EQ(UCT_SEP_BF_SINGLE, cm_bf->sharing);

    no_pages guard;
    expect_errors hide;
    for (auto &channel : borrowers) {
        ASSERT_EQ(UCS_OK, uct_sep_channel_init(&channel, m_md,
                                               UCT_SEP_CATEGORY_DEFAULT,
                                               "test"));
        EXPECT_EQ(UCT_SEP_CATEGORY_STATIC, channel.category);
        EXPECT_EQ(lender.channel.cm_pd, channel.cm_pd);
        EXPECT_EQ(lender.channel.cm_pd, channel.spare_pd);
    }
    EXPECT_GE(1u, hide.count(UCS_LOG_LEVEL_WARN, "(said once)"));
    EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_ERROR, ""));

    ASSERT_NO_FATAL_FAILURE(open_qp(borrowers[0].spare_pd, UCT_SEP_UUAR_SHARED,
                                    &qps[0], &bfs[0]));
    EXPECT_EQ(cm_bf, bfs[0]);
    EXPECT_EQ(UCT_SEP_BF_SHARED, bfs[0]->sharing);
    EXPECT_EQ(UCT_SEP_BF_SINGLE, lender.bf->sharing);

    /* The page outlives the worker that had it */
    close_qp(cm_qp, cm_bf);
    ASSERT_NO_FATAL_FAILURE(close(lender));
    uct_sep_channel_cleanup(&borrowers[0], m_md);
    ASSERT_NO_FATAL_FAILURE(open_qp(borrowers[1].spare_pd, UCT_SEP_UUAR_SHARED,
                                    &qps[1], &bfs[1]));
    EXPECT_EQ(bfs[0], bfs[1]);
    EXPECT_EQ(UCT_SEP_BF_SHARED, bfs[1]->sharing);
    close_qp(qps[0], bfs[0]);
    close_qp(qps[1], bfs[1]);
    uct_sep_channel_cleanup(&borrowers[1], m_md);
    EXPECT_EQ(0u, m_md->sharing->common_refcount);
    EXPECT_TRUE(m_md->sharing->common_pair == NULL);
}

/* "ulimit -v" is no shortage of UAR pages, although errno is the same */
TEST_F(test_sep_channel, a_lack_of_memory_is_not_called_a_lack_of_pages)
{
    uct_sep_channel_t channel;
    struct rlimit old, limit;
    unsigned long pages;

    SKIP_WITHOUT_MMAP_HOOK();
    expect_errors hide;
    ASSERT_EQ(0, getrlimit(RLIMIT_AS, &old));
    limit = old;
    std::ifstream("/proc/self/statm") >> pages;
    limit.rlim_cur = pages * sysconf(_SC_PAGESIZE);
    ASSERT_EQ(0, setrlimit(RLIMIT_AS, &limit));
    ucs_status_t status = uct_sep_channel_init(&channel, m_md,
                                               UCT_SEP_CATEGORY_DYNAMIC,
                                               "test");
    setrlimit(RLIMIT_AS, &old);
    EXPECT_EQ(UCS_ERR_NO_MEMORY, status);
    EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_ERROR, "UAR page"));
    EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, "see ulimit -v"));
}

/* libmlx5 makes parent domains without the kernel, so only a driver can be
 * short of them: this one makes so many, and then has an error */
class few_parent_domains {
public:
    few_parent_domains(struct ibv_context *context, unsigned number,
                       int error) :
        m_context(verbs_get_ctx(context)),
        m_alloc(m_context->alloc_parent_domain)
    {
        alloc                          = m_alloc;
        left                           = number;
        failure                        = error;
        m_context->alloc_parent_domain = alloc_few;
    }

    ~few_parent_domains()
    {
        m_context->alloc_parent_domain = m_alloc;
    }

private:
    typedef struct ibv_pd *
    (*alloc_t)(struct ibv_context*, struct ibv_parent_domain_init_attr*);

    static struct ibv_pd *
    alloc_few(struct ibv_context *context,
              struct ibv_parent_domain_init_attr *attr)
    {
        if (left > 0) {
            --left;
            return alloc(context, attr);
        }

        errno = failure;
        return NULL;
    }

    static alloc_t  alloc;
    static unsigned left;
    static int      failure;

    struct verbs_context *m_context;
    alloc_t              m_alloc;
};

few_parent_domains::alloc_t few_parent_domains::alloc;
unsigned few_parent_domains::left;
int few_parent_domains::failure;

/* The default gets along without, whichever of a pair there is not, and whether
 * the driver has none at all or no more */
TEST_F(test_sep_channel, without_parent_domains_the_default_is_static)
{
    struct ibv_context *context = m_md->dev.context;
    unsigned long num_tds       = uct_sep_account_get(context,
                                                      UCT_SEP_ACCOUNT_TD);
    uct_sep_channel_t channel;
    struct ibv_qp *qp;
    uct_sep_bf_t *bf;

    for (int error : {EOPNOTSUPP, EPERM, ENOMEM}) {
        for (unsigned number : {0, 1}) {
            SCOPED_TRACE(std::string(strerror(error)) + " after " +
                         std::to_string(number));
            expect_errors hide;
            {
                few_parent_domains few(context, number, error);
                ASSERT_EQ(UCS_OK,
                          uct_sep_channel_init(&channel, m_md,
                                               UCT_SEP_CATEGORY_DEFAULT,
                                               "test"));
            }
            EXPECT_EQ(UCT_SEP_CATEGORY_STATIC, channel.category);
            EXPECT_EQ(num_tds, uct_sep_account_get(context,
                                                   UCT_SEP_ACCOUNT_TD));
            ASSERT_NO_FATAL_FAILURE(open_qp(channel.pd, channel.use, &qp, &bf));
            close_qp(qp, bf);
            uct_sep_channel_cleanup(&channel, m_md);

            {
                few_parent_domains few(context, number, error);
                EXPECT_EQ(UCS_ERR_NO_RESOURCE,
                          uct_sep_channel_init(&channel, m_md,
                                               UCT_SEP_CATEGORY_DYNAMIC,
                                               "test"));
            }
            EXPECT_EQ(num_tds, uct_sep_account_get(context,
                                                   UCT_SEP_ACCOUNT_TD));
            EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR,
                                     (error == ENOMEM) ? "no UAR page left" :
                                                         "no thread domain"));
            EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR, ""));
            /* A domain that is in use could not be released */
            EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_WARN, "ibv_dealloc"));
        }
    }
}

/* That is not for the default to decide */
TEST_F(test_sep_channel, other_failures_of_parent_domains_are_errors)
{
    struct ibv_context *context = m_md->dev.context;
    unsigned long num_tds       = uct_sep_account_get(context,
                                                      UCT_SEP_ACCOUNT_TD);
    uct_sep_channel_t channel;

    for (unsigned number : {0, 1}) {
        few_parent_domains few(context, number, EINVAL);
        expect_errors hide;

        EXPECT_EQ(UCS_ERR_IO_ERROR,
                  uct_sep_channel_init(&channel, m_md, UCT_SEP_CATEGORY_DEFAULT,
                                       "test"));
        EXPECT_EQ(1u, hide.count(UCS_LOG_LEVEL_ERROR,
                                 "ibv_alloc_parent_domain() failed"));
        EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_WARN, ""));
        EXPECT_EQ(num_tds, uct_sep_account_get(context, UCT_SEP_ACCOUNT_TD));
    }
}

/* The driver's policy, for queue pairs without a thread domain: low latency
 * uUARs are for one each; the others are shared, and known to be */
TEST_F(test_sep_channel, static_queue_pairs_know_whether_they_share_a_uuar)
{
    static const unsigned num_qps = 40;
    std::vector<struct ibv_qp*> qps(num_qps);
    std::vector<uct_sep_bf_t*> bfs(num_qps);
    std::map<uct_sep_bf_t*, unsigned> count;
    std::set<uintptr_t> pages;
    uct_sep_channel_t channel;

    ASSERT_EQ(UCS_OK, uct_sep_channel_init(&channel, m_md,
                                           UCT_SEP_CATEGORY_STATIC, "test"));
    for (unsigned i = 0; i < num_qps; ++i) {
        ASSERT_NO_FATAL_FAILURE(open_qp(channel.pd, channel.use, &qps[i],
                                        &bfs[i]));
        ++count[bfs[i]];
        pages.insert((uintptr_t)bfs[i]->reg / 4096);
    }

    unsigned num_dedicated = 0;
    for (auto &c : count) {
        EXPECT_EQ(c.second,
                  ucs_container_of(c.first, uct_sep_uuar_t, bf)->num_qps);
        if (c.first->sharing == UCT_SEP_BF_SHARED) {
            EXPECT_LT(1u, c.second);
        } else {
            EXPECT_EQ(1u, c.second);
            ++num_dedicated;
        }
    }
    EXPECT_EQ(m_md->uuars.num_low_lat, num_dedicated);
    EXPECT_GE(m_md->uuars.num_total, count.size());
    EXPECT_GE(m_md->uuars.num_total / 2, pages.size());

    /* A dedicated one that is given back goes to the next queue pair */
    for (unsigned i = 0; i < num_qps; ++i) {
        if (bfs[i]->sharing == UCT_SEP_BF_SINGLE) {
            uct_sep_bf_t *bf = bfs[i];

            ASSERT_NO_FATAL_FAILURE(close_qp(qps[i], bfs[i]));
            ASSERT_NO_FATAL_FAILURE(open_qp(channel.pd, channel.use, &qps[i],
                                            &bfs[i]));
            EXPECT_EQ(bf, bfs[i]);
            EXPECT_EQ(UCT_SEP_BF_SINGLE, bf->sharing);
        }
    }

    for (unsigned i = 0; i < num_qps; ++i) {
        ASSERT_NO_FATAL_FAILURE(close_qp(qps[i], bfs[i]));
    }
    uct_sep_channel_cleanup(&channel, m_md);
}

TEST_F(test_sep_channel, auto_gives_less_to_each_the_more_workers_there_are)
{
    std::vector<uct_sep_channel_t> channels(
            UCT_SEP_CATEGORY_AUTO_SHARED_DYNAMIC + 2);
    unsigned at_start = m_md->sharing->num_channels;
    int last          = UCT_SEP_CATEGORY_MPI_EVERYWHERE;
    std::set<int> seen;

    for (auto &channel : channels) {
        ASSERT_EQ(UCS_OK, uct_sep_channel_init(&channel, m_md,
                                               UCT_SEP_CATEGORY_AUTO, "test"));
        EXPECT_LE(last, (int)channel.category);
        last = channel.category;
        seen.insert(last);
    }
    /* The fixture's own worker is the first one */
    EXPECT_EQ(UCT_SEP_CATEGORY_STATIC, last);
    EXPECT_EQ(4u, seen.size());
    for (auto &channel : channels) {
        uct_sep_channel_cleanup(&channel, m_md);
    }
    EXPECT_EQ(at_start, m_md->sharing->num_channels);
}

TEST_F(test_sep_channel, a_category_that_does_not_exist_is_refused)
{
    uct_sep_channel_t channel;
    expect_errors hide;

    for (int category : {UCT_SEP_CATEGORY_LAST}) {
        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  uct_sep_channel_init(&channel, m_md,
                                       (uct_sep_category_t)category, "test"));
    }
}

} // namespace
