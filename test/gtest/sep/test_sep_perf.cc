/* SPDX-License-Identifier: BSD-3-Clause */

#include <tools/plan/plan_sharing.h>
#include <tools/perf/sep_perf_layout.h>
#include <tools/perf/sep_perf_options.h>
#include <tools/perf/sep_perf_result.h>
#include <tools/perf/sep_perf_run.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

/* What of sep_perf needs no device: who shares what, the command line, and how
 * results are printed. */

class test_sep_perf : public ::testing::Test {
protected:
    /* @return What is wrong, "" if nothing is */
    std::string parse(const std::string &text)
    {
        m_message[0] = '\0';
        return (sep_perf_sharing_parse(text.c_str(), &m_sharing, m_message) ==
                0) ? "" : m_message;
    }

    std::string check(const std::string &text, unsigned threads)
    {
        EXPECT_EQ("", parse(text));
        m_message[0] = '\0';
        return (sep_perf_sharing_check(&m_sharing, threads, m_message) == 0) ?
               "" : m_message;
    }

    /* ctx/pd/mr/cq/qp/buf and the thread domains */
    std::string counts(const std::string &text, unsigned threads)
    {
        static const sep_perf_resource_t order[] = {
            SEP_PERF_CTX, SEP_PERF_PD, SEP_PERF_MR, SEP_PERF_CQ, SEP_PERF_QP,
            SEP_PERF_BUF
        };
        std::ostringstream out;

        EXPECT_EQ("", check(text, threads)) << text;
        for (auto resource : order) {
            out << sep_perf_count(&m_sharing, resource, threads) << "/";
        }
        out << sep_perf_td_names[m_sharing.td];
        return out.str();
    }

    std::string policy(const std::string &text, unsigned threads)
    {
        char name[SEP_PERF_NAME_MAX];

        EXPECT_EQ("", parse(text));
        sep_perf_policy(&m_sharing, threads, name);
        return name;
    }

    /* @return As sep_perf_parse(); what it says goes to standard error */
    int options(const std::vector<std::string> &args)
    {
        std::vector<char*> argv;
        static char name[] = "sep_perf";
        FILE *null         = fopen("/dev/null", "w");
        int ret;

        m_args = args;
        argv.push_back(name);
        for (auto &arg : m_args) {
            argv.push_back(&arg[0]);
        }
        argv.push_back(nullptr);
        ret = sep_perf_parse(argv.size() - 1, argv.data(), null, &m_options);
        fclose(null);
        return ret;
    }

    /* @return What is wrong with the first row, "" if nothing is */
    std::string row(const std::vector<std::string> &args)
    {
        m_message[0] = '\0';
        EXPECT_EQ(0, options(args));
        return (sep_perf_row_make(&m_options, &m_options.sharing[0],
                                  m_options.features[0], m_options.threads[0],
                                  &m_row, m_message) == 0) ? "" : m_message;
    }

    std::string print(sep_perf_result_t result)
    {
        sep_perf_out_t out;
        size_t size = 0;
        char *text  = nullptr;
        FILE *stream = open_memstream(&text, &size);
        std::string all;

        sep_perf_out_begin(&out, stream, &m_options, nullptr);
        sep_perf_out_row(&out, &m_row, &result);
        sep_perf_out_row(&out, &m_row, &result);
        sep_perf_out_end(&out);
        fclose(stream);
        all = text;
        free(text);
        return all;
    }

    /* Second line of a table by the names in the first */
    std::map<std::string, std::string> fields(const std::string &table)
    {
        std::istringstream lines(table);
        std::map<std::string, std::string> result;
        std::string head, line, name, value;

        std::getline(lines, head);
        std::getline(lines, line);
        std::istringstream names(head), values(line);
        while (std::getline(names, name, '\t')) {
            EXPECT_TRUE(!!std::getline(values, value, '\t')) << name;
            result[name] = value;
        }
        EXPECT_FALSE(std::getline(values, value, '\t'));
        return result;
    }

    sep_perf_sharing_t       m_sharing;
    sep_perf_options_t       m_options;
    sep_perf_row_t           m_row;
    std::vector<std::string> m_args;
    char                     m_message[SEP_MODEL_MESSAGE_MAX];
};

TEST_F(test_sep_perf, categories_share_what_their_workers_do)
{
    EXPECT_EQ("16/16/16/16/16/16/none", counts("mpi_everywhere", 16));
    EXPECT_EQ("1/1/16/16/16/16/spaced", counts("2xdynamic", 16));
    EXPECT_EQ("1/1/16/16/16/16/own", counts("dynamic", 16));
    EXPECT_EQ("1/1/16/16/16/16/pair", counts("shared_dynamic", 16));
    EXPECT_EQ("1/1/16/16/16/16/none", counts("static", 16));
    EXPECT_EQ("1/1/16/1/1/16/none", counts("mpi_threads", 16));
    EXPECT_EQ("16/16/16/16/16/16/pair", counts("naive", 16));
}

TEST_F(test_sep_perf, what_a_list_does_not_name_is_not_shared)
{
    EXPECT_EQ("16/16/16/16/16/16/own", counts("buf=1", 16));
    EXPECT_EQ("16/16/16/16/16/4/own", counts("buf=4", 16));
    EXPECT_EQ("2/16/16/16/16/16/own", counts("ctx=8", 16));
    EXPECT_EQ("1/4/8/2/4/16/none", counts("ctx=all,pd=4,mr=2,cq=8,qp=4", 16));
    EXPECT_EQ("1/1/1/1/1/1/none",
              counts("buf=all,ctx=all,pd=all,mr=all,cq=all,qp=all", 16));
    EXPECT_EQ("1/16/16/16/16/16/pair", counts("ctx=16,td=pair", 16));
}

TEST_F(test_sep_perf, more_than_there_are_threads_is_all_of_them)
{
    EXPECT_EQ("1/3/3/3/3/3/own", counts("ctx=16", 3));
    EXPECT_EQ("2/5/5/5/5/5/own", counts("ctx=4", 5)); /* 4 and 1 */
}

TEST_F(test_sep_perf, what_an_object_belongs_to_is_shared_by_as_many)
{
    EXPECT_NE(std::string::npos, check("pd=4", 16).find("a pd for 4"));
    EXPECT_NE(std::string::npos, check("ctx=4,cq=8", 16).find("ctx"));
    EXPECT_NE(std::string::npos, check("ctx=all,mr=2", 16).find("pd"));
    EXPECT_NE(std::string::npos, check("ctx=all,pd=all,qp=4", 16).find("cq"));
    EXPECT_NE(std::string::npos,
              check("ctx=6,pd=4", 16).find("for as many or a multiple"));
    EXPECT_EQ("", check("ctx=all,pd=3", 16));
}

TEST_F(test_sep_perf, a_shared_queue_pair_has_no_thread_domain)
{
    EXPECT_NE(std::string::npos,
              check("ctx=all,pd=all,cq=all,qp=2,td=own", 16)
                      .find("for one thread"));
    /* One thread shares with nobody */
    EXPECT_EQ("", check("ctx=all,pd=all,cq=all,qp=2,td=own", 1));
}

TEST_F(test_sep_perf, nonsense_is_named)
{
    for (auto text : {"", "ctx", "ctx=", "ctx=0", "ctx=-1", "ctx=x", "ctx=4x",
                      "ctx=99999", "uar=2", "td=two", "ctx=2,,pd=2", "Static",
                      "ctx=2 ", "ctx= 2"}) {
        EXPECT_NE("", parse(text)) << text;
    }
    EXPECT_NE("", parse(std::string(200, 'x')));
}

TEST_F(test_sep_perf, sep_info_knows_the_names_of_policies)
{
    EXPECT_EQ("2xdynamic", policy("2xdynamic", 16));
    EXPECT_EQ("per-qp", policy("ctx=all,td=none", 16));
    EXPECT_EQ("shared-qp", policy("ctx=all,pd=all,cq=all,qp=all", 16));
    EXPECT_EQ("mul-2", policy("ctx=all,pd=all,cq=2,qp=2", 16));
    EXPECT_EQ("-", policy("ctx=all,pd=all,cq=4,qp=2", 16));
    EXPECT_EQ("-", policy("ctx=4", 16));

    char name[SEP_PERF_NAME_MAX];
    sep_perf_sharing_unknown(&m_sharing);
    sep_perf_policy(&m_sharing, 1, name);
    EXPECT_STREQ("-", name);
}

TEST_F(test_sep_perf, the_model_is_told_the_same_as_for_categories)
{
    /* By sep_plan_sharing(), which test_sep_rates holds to the paper */
    for (int i = 0; i <= SEP_PLAN_NUM_CATEGORIES; ++i) {
        auto category   = static_cast<sep_plan_category_t>(i);
        const char *name = sep_plan_category_name(category);
        sep_model_sharing_t ours, plan;
        sep_plan_config_t config;

        for (int regime = 0; regime < SEP_PLAN_REGIME_LAST; ++regime) {
            sep_plan_config_init(&config);
            config.category = category;
            config.regime   = static_cast<sep_plan_regime_t>(regime);
            sep_plan_sharing(&config, 1, &plan);
            ASSERT_EQ("", parse(name));
            sep_perf_model_sharing(&m_sharing, 16, &config, 1, &ours);
            if (plan.threads_per_qp == SEP_MODEL_ALL) {
                plan.threads_per_qp = 16;
                plan.threads_per_cq = 16;
            }
            EXPECT_EQ(plan.threads_per_qp, ours.threads_per_qp) << name;
            EXPECT_EQ(plan.threads_per_cq, ours.threads_per_cq) << name;
            EXPECT_EQ(plan.qp_lock, ours.qp_lock) << name;
            EXPECT_EQ(plan.pages_adjacent, ours.pages_adjacent) << name;
            if (plan.threads_per_qp == 1) { /* A single one has all there is */
                EXPECT_EQ(plan.uuars_dedicated, ours.uuars_dedicated) << name;
                EXPECT_EQ(plan.uuars_shared, ours.uuars_shared) << name;
                EXPECT_EQ(plan.uuars_per_page, ours.uuars_per_page) << name;
            }
        }
    }
}

TEST_F(test_sep_perf, memory_is_that_of_the_papers_objects)
{
    /* 16 x (256 K + 144 + 144 + 80 K + 9 K) */
    ASSERT_EQ("", parse("naive"));
    EXPECT_EQ(16ul * (345 * 1024 + 288), sep_perf_paper_bytes(&m_sharing, 16));
    ASSERT_EQ("", parse("mpi_threads"));
    EXPECT_EQ(345ul * 1024 + 144 + 16 * 144,
              sep_perf_paper_bytes(&m_sharing, 16));
}

TEST_F(test_sep_perf, defaults_are_the_papers)
{
    ASSERT_EQ("", row({}));
    EXPECT_EQ(16u, m_row.threads);
    EXPECT_EQ(128u, m_row.depth);
    EXPECT_EQ(32u, m_row.postlist);
    EXPECT_EQ(64u, m_row.signal);
    EXPECT_EQ(2u, m_options.bytes);
    EXPECT_EQ(SEP_MODEL_WRITE, m_options.op);
    EXPECT_TRUE(m_row.is_inline);
    EXPECT_TRUE(m_options.aligned);
    EXPECT_EQ(6u, m_options.num_sharing); /* The categories */
}

TEST_F(test_sep_perf, each_feature_can_be_switched_off)
{
    const char *names[] = {"all", "no-postlist", "no-unsignaled", "no-inline",
                           "no-blueflame"};
    char name[SEP_PERF_NAME_MAX];

    ASSERT_EQ(0, options({"--features", "each"}));
    ASSERT_EQ(5u, m_options.num_features);
    for (unsigned i = 0; i < 5; ++i) {
        EXPECT_STREQ(names[i], sep_perf_features_name(m_options.features[i],
                                                      name));
    }

    ASSERT_EQ("", row({"--features", "no-postlist+unsignaled"}));
    EXPECT_EQ(1u, m_row.postlist);
    EXPECT_EQ(1u, m_row.signal);
    EXPECT_TRUE(m_row.is_inline);
    EXPECT_STREQ("no-postlist+unsignaled",
                 sep_perf_features_name(m_row.features, name));
    ASSERT_EQ("", row({"--features", "no-inline"}));
    EXPECT_FALSE(m_row.is_inline);
}

TEST_F(test_sep_perf, only_short_data_that_is_sent_is_inline)
{
    ASSERT_EQ("", row({"-b", "60"}));
    EXPECT_TRUE(m_row.is_inline);
    ASSERT_EQ("", row({"-b", "61"}));
    EXPECT_FALSE(m_row.is_inline);
    ASSERT_EQ("", row({"-o", "read"}));
    EXPECT_FALSE(m_row.is_inline);
    ASSERT_EQ("", row({"-o", "atomic"}));
    EXPECT_FALSE(m_row.is_inline);
    EXPECT_EQ(8u, m_options.bytes);
}

TEST_F(test_sep_perf, defaults_fit_the_depth_and_wishes_must)
{
    ASSERT_EQ("", row({"-d", "8"}));
    EXPECT_EQ(8u, m_row.postlist);
    EXPECT_EQ(1u, m_row.signal);
    ASSERT_EQ("", row({"-d", "80"}));
    EXPECT_EQ(32u, m_row.postlist);
    EXPECT_EQ(49u, m_row.signal); /* 80 - 32 + 1 */
    ASSERT_EQ("", row({"-d", "80", "--turns"}));
    EXPECT_EQ(64u, m_row.signal);
    EXPECT_NE(std::string::npos,
              row({"-d", "8", "--postlist", "9"}).find("list of 9"));
    EXPECT_NE(std::string::npos,
              row({"-d", "8", "--postlist", "4", "--signal", "6"})
                      .find("one in 5"));
    EXPECT_EQ("", row({"-d", "8", "--postlist", "4", "--signal", "5"}));
}

TEST_F(test_sep_perf, figures_are_rows)
{
    ASSERT_EQ(0, options({"--figure", "11"}));
    ASSERT_EQ(5u, m_options.num_sharing);
    EXPECT_STREQ("ctx=all,pd=all,cq=1,qp=1", m_options.sharing[0].name);
    EXPECT_STREQ("ctx=all,pd=all,cq=16,qp=16", m_options.sharing[4].name);
    ASSERT_EQ(0, options({"--figure", "3"}));
    EXPECT_EQ(1u, m_options.num_sharing);
    EXPECT_EQ(5u, m_options.num_threads);

    for (unsigned i = 0; sep_perf_figure_at(i) != nullptr; ++i) {
        ASSERT_EQ(0, options({"--figure",
                              std::to_string(sep_perf_figure_at(i)->number)}));
        for (unsigned j = 0; j < m_options.num_sharing; ++j) {
            EXPECT_EQ(0, sep_perf_sharing_check(&m_options.sharing[j], 16,
                                                m_message)) << m_message;
        }
    }
}

TEST_F(test_sep_perf, wrong_arguments_are_refused)
{
    const std::vector<std::vector<std::string>> wrong = {
        {"-t", "0"}, {"-t", "1,x"}, {"-t", "1,"}, {"-t", "2000"}, {"-t", ""},
        {"-o", "put"}, {"-b", "0"}, {"-b", "-1"}, {"-b", "1e3"}, {"-d", "0"},
        {"-o", "atomic", "-b", "4"}, {"--level", "mpi"}, {"-s", "nothing"},
        {"--features", "none"}, {"--features", "no-"},
        {"--features", "no-colour"}, {"--figure", "4"}, {"--figure", "2"},
        {"--figure", "7", "-s", "static"}, {"--tsv", "--json"}, {"-n", "0"},
        {"--host", "there"}, {"--host", "a:1", "--listen", "1"},
        {"--tl", "rc_mlx5"}, {"--port", "0"}, {"something"},
        {"--level", "uct", "--tl", "rc_mlx5", "-s", "static"}
    };

    for (auto &args : wrong) {
        EXPECT_EQ(-1, options(args)) << args.back();
    }
    EXPECT_EQ(1, options({"-h"}));
    EXPECT_EQ(1, options({"-v"}));
    EXPECT_NE("", row({"--level", "uct", "-s", "ctx=4"}));
    EXPECT_NE("", row({"--level", "uct", "-s", "naive"}));
    EXPECT_EQ("", row({"--level", "uct", "-s", "static"}));
}

TEST_F(test_sep_perf, an_adapter_has_rates_and_the_device_predictions)
{
    sep_perf_result_t result = {};

    ASSERT_EQ("", row({"--tsv", "-s", "static", "-t", "4", "-d", "8",
                       "--features", "no-postlist+unsignaled"}));
    result.contexts   = 1;
    result.uars       = 8;
    result.uuars      = 16;
    result.messages   = 400;
    result.rate       = 2.5e6;
    result.latency[0] = 1.5e-6;
    result.latency[1] = 1.25e-6;
    result.latency[2] = 4e-6;
    result.cpus       = 4;
    snprintf(result.device, sizeof(result.device), "mlx5_0");

    auto row = fields(print(result));
    EXPECT_EQ("write", row["op"]);
    EXPECT_EQ("static", row["policy"]);
    EXPECT_EQ("4", row["threads"]);
    EXPECT_EQ("8", row["depth"]);
    EXPECT_EQ("2", row["bytes"]);
    EXPECT_EQ("2.5000", row["mops"]);
    EXPECT_EQ("1.500", row["latency_us"]);
    EXPECT_EQ("4.000", row["latency_p99_us"]);
    EXPECT_EQ("n", row["software_device"]);
    EXPECT_EQ("-", row["predicted_mops"]);
    EXPECT_EQ("-", row["doorbells"]);
    EXPECT_EQ("16", row["uuars"]);
    EXPECT_EQ("-", row["paper_memory"]);

    result.is_device    = 1;
    result.has_counters = 1;
    result.predicted    = 3e6;
    result.counters[SEP_PERF_BLUEFLAMES] = 1;
    snprintf(result.adapter, sizeof(result.adapter), "cx6");
    row = fields(print(result));
    EXPECT_EQ("-", row["mops"]);
    EXPECT_EQ("-", row["latency_us"]);
    EXPECT_EQ("y", row["software_device"]);
    EXPECT_EQ("3.0000", row["predicted_mops"]);
    EXPECT_EQ("1.0000", row["blueflames"]);
    EXPECT_EQ("cx6", row["adapter"]);
}

TEST_F(test_sep_perf, what_numbers_do_not_say_is_said)
{
    sep_perf_result_t result = {};
    std::string text;

    ASSERT_EQ("", row({"-s", "static", "-t", "4"}));
    result.cpus = 4;
    result.rate = 1e6;
    text        = print(result);
    EXPECT_EQ(std::string::npos, text.find("software device"));
    EXPECT_EQ(std::string::npos, text.find("processors"));

    result.cpus      = 3;
    result.is_device = 1;
    result.predicted = 1e6;
    text             = print(result);
    EXPECT_NE(std::string::npos, text.find("times mean nothing"));
    EXPECT_NE(std::string::npos, text.find("more threads than the 3"));
    EXPECT_NE(std::string::npos, text.find("knows no lists"));
    EXPECT_NE(std::string::npos, text.find("~"));
    /* Once, and not per row */
    EXPECT_EQ(text.find("M msg/s"), text.rfind("M msg/s"));
}

/* The threads' loop, on queues that are none: what was posted completes when it
 * is polled for, a few at a time. */
class test_sep_perf_run : public test_sep_perf {
protected:
    struct queue {
        std::vector<unsigned> covered; /* Of those that ask for a completion */
        uint64_t              posted = 0;
        uint64_t              done   = 0;
        unsigned              calls  = 0;
        unsigned              most_outstanding = 0;
        unsigned              longest = 0;
        bool                  was_in_turns = true;
        int                   busy  = 0;  /* So often there is no room */
        bool                  fails = false;
        std::vector<unsigned> waiting;
    };

    static int post(sep_perf_thread_t *thread, unsigned count)
    {
        queue *q = static_cast<queue*>(thread->priv);

        if (q->fails) {
            return -1;
        }
        if (q->busy > 0) {
            --q->busy;
            return 1;
        }
        if ((q->posted != q->done) &&
            ((q->posted % thread->depth) == 0)) {
            q->was_in_turns = false;
        }
        ++q->calls;
        q->longest = std::max(q->longest, count);
        for (unsigned i = 0; i < count; ++i) {
            unsigned covered = sep_perf_thread_next(thread);

            ++q->posted;
            if (covered > 0) {
                q->covered.push_back(covered);
                q->waiting.push_back(covered);
            }
        }
        q->most_outstanding = std::max<unsigned>(q->most_outstanding,
                                                 q->posted - q->done);
        return 0;
    }

    static int poll(sep_perf_thread_t *thread)
    {
        queue *q = static_cast<queue*>(thread->priv);

        if (!q->waiting.empty()) {
            q->done += q->waiting.front();
            sep_perf_thread_done(thread, q->waiting.front());
            q->waiting.erase(q->waiting.begin());
        }
        return 0;
    }

    /* @return As sep_perf_group_run() */
    int run(const std::vector<std::string> &args, uint64_t messages,
            sep_perf_phase_t phase = SEP_PERF_RATE, bool is_shared = false)
    {
        static const sep_perf_api_t api = {post, poll};
        sep_perf_group_t group;
        int ret;

        EXPECT_EQ("", row(args));
        m_queues.resize(m_row.threads);
        EXPECT_EQ(0, sep_perf_group_init(&group, &api, &m_options, &m_row,
                                         is_shared));
        for (unsigned i = 0; i < m_row.threads; ++i) {
            group.threads[i].priv = &m_queues[i];
        }
        m_times = {};
        ret     = sep_perf_group_run(&group, messages, phase, &m_times);
        for (unsigned i = 0; (ret == 0) && (i < m_row.threads); ++i) {
            EXPECT_EQ(messages, m_queues[i].posted);
            EXPECT_EQ(messages, m_queues[i].done);
            EXPECT_EQ(messages, group.threads[i].done);
            if (i > 0) {
                m_in_turn = m_in_turn && (group.threads[i].begin >=
                                          group.threads[i - 1].end);
            }
        }
        sep_perf_group_cleanup(&group);
        return ret;
    }

    std::vector<queue> m_queues;
    sep_perf_times_t   m_times;
    bool               m_in_turn = true;
};

TEST_F(test_sep_perf_run, fills_the_depth_with_lists_and_asks_now_and_then)
{
    ASSERT_EQ(0, run({"-t", "2", "-s", "static"}, 1000));
    for (auto &q : m_queues) {
        EXPECT_EQ(128u, q.most_outstanding);
        EXPECT_EQ(32u, q.longest);
        EXPECT_EQ(32u, q.calls); /* 31 lists, and 8 */
        ASSERT_EQ(16u, q.covered.size());
        for (unsigned i = 0; i < 15; ++i) {
            EXPECT_EQ(64u, q.covered[i]);
        }
        EXPECT_EQ(40u, q.covered[15]); /* The last one, whatever it is */
    }
    EXPECT_GT(m_times.rate, 0);
}

TEST_F(test_sep_perf_run, no_combination_waits_for_ever)
{
    for (unsigned depth : {1u, 2u, 3u, 7u, 33u, 64u, 100u}) {
        for (auto features : {"all", "no-postlist", "no-unsignaled"}) {
            for (bool turns : {false, true}) {
                std::vector<std::string> args = {
                    "-t", "1", "-s", "static", "-d", std::to_string(depth),
                    "--features", features
                };

                if (turns) {
                    args.push_back("--turns");
                }
                m_queues.clear();
                ASSERT_EQ(0, run(args, 301)) << depth << features;
                EXPECT_LE(m_queues[0].most_outstanding, depth);
            }
        }
    }
}

TEST_F(test_sep_perf_run, turns_wait_for_all)
{
    ASSERT_EQ(0, run({"-t", "1", "-s", "static", "-d", "8", "--turns",
                      "--features", "no-postlist"}, 100));
    EXPECT_TRUE(m_queues[0].was_in_turns);
    EXPECT_EQ(13u, m_queues[0].covered.size()); /* One per turn */
    EXPECT_EQ(4u, m_queues[0].covered.back());

    m_queues.clear();
    ASSERT_EQ(0, run({"-t", "1", "-s", "static", "-d", "8", "--features",
                      "no-postlist+unsignaled"}, 100));
    EXPECT_FALSE(m_queues[0].was_in_turns);
}

TEST_F(test_sep_perf_run, latency_is_of_one_at_a_time)
{
    ASSERT_EQ(0, run({"-t", "3", "-s", "static"}, 200, SEP_PERF_LATENCY));
    for (auto &q : m_queues) {
        EXPECT_EQ(1u, q.most_outstanding);
        EXPECT_EQ(200u, q.covered.size());
    }
    EXPECT_GT(m_times.median, 0);
    EXPECT_GE(m_times.p99, m_times.median);
    EXPECT_GE(m_times.mean * 600, m_times.p99);
}

TEST_F(test_sep_perf_run, tries_again_if_there_is_no_room)
{
    for (auto phase : {SEP_PERF_WARM, SEP_PERF_RATE, SEP_PERF_LATENCY}) {
        m_queues.assign(1, queue());
        m_queues[0].busy = 50;
        ASSERT_EQ(0, run({"-t", "1", "-s", "static"}, 100, phase));
        EXPECT_EQ(0, m_queues[0].busy);
    }
}

TEST_F(test_sep_perf_run, all_end_if_one_fails)
{
    m_queues.resize(3);
    m_queues[1].fails = true;
    /* The others have more to do than they ever will */
    EXPECT_EQ(-1, run({"-t", "3", "-s", "static"}, 1ull << 40));
}

TEST_F(test_sep_perf_run, threads_can_run_one_after_the_other)
{
    ASSERT_EQ(0, run({"-t", "4", "-s", "static", "--serial"}, 500,
                     SEP_PERF_RATE, true));
    EXPECT_TRUE(m_in_turn);
}
