/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/base/sep_account.h>

#include <dirent.h>

#include <atomic>
#include <cstring>
#include <stdexcept>

using namespace sep_uct_test;

namespace {

/*
 * Every command that makes something on the device fails once, and from then
 * on, in each place in which it is used: the transport says so, ends what was
 * begun, and gives back all it had.
 */

std::atomic<unsigned> num_errors;

ucs_log_func_rc_t
count_errors(const char *file, unsigned line, const char *function,
             ucs_log_level_t level, const ucs_log_component_config_t *comp_conf,
             const char *message, va_list ap)
{
    if (level == UCS_LOG_LEVEL_ERROR) {
        ++num_errors;
    }
    return (level <= UCS_LOG_LEVEL_DIAG) ? UCS_LOG_FUNC_RC_STOP :
                                           UCS_LOG_FUNC_RC_CONTINUE;
}

unsigned num_fds()
{
    unsigned count = 0;
    DIR *dir       = opendir("/proc/self/fd");

    while (readdir(dir) != NULL) {
        ++count;
    }
    closedir(dir);
    return count;
}

class test_sep_uct_exhaust :
    public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        if (getenv("MLX5SIM_DIR") == NULL) {
            GTEST_SKIP() << "only the software device can be asked to fail";
        }

        int num_devices;
        struct ibv_device **devices = ibv_get_device_list(&num_devices);
        m_context = ibv_open_device(devices[0]);
        ibv_free_device_list(devices);
        ASSERT_TRUE(m_context != NULL);
        ucs_log_push_handler(count_errors);
        m_config = impatient;
        m_config.push_back({"RX_QUEUE_LEN", "64"});
        m_config.push_back({"TX_QUEUE_LEN", "32"});
        m_config.push_back({"CATEGORY", category()});
        /* Threads and files that come once and stay */
        ASSERT_EQ("", scenario());
        m_fds    = num_fds();
        m_before = account();
    }

    void TearDown() override
    {
        if (m_context != NULL) {
            unsetenv("MLX5SIM_FAIL");
            ucs_log_pop_handler();
            ibv_close_device(m_context);
        }
    }

    static std::string category() { return std::get<0>(GetParam()); }
    static std::string object() { return std::get<1>(GetParam()); }

    std::vector<unsigned long> account()
    {
        std::vector<unsigned long> values;

        for (int i = 0; i < UCT_SEP_ACCOUNT_LAST; ++i) {
            values.push_back(uct_sep_account_get(m_context,
                                                 (uct_sep_account_item_t)i));
        }
        return values;
    }

    unsigned long num_qps()
    {
        return uct_sep_account_get(m_context, UCT_SEP_ACCOUNT_QP);
    }

    /* Two workers talk; what went wrong, or nothing */
    std::string scenario()
    {
        auto a = entity::create(m_config);
        if (a == nullptr) {
            return "first open";
        }
        auto b = entity::create(*a, m_config);
        if (b == nullptr) {
            return "second open";
        }

        try {
            return talk(*a, *b);
        } catch (const std::runtime_error &e) {
            return e.what();
        }
    }

    std::string talk(entity &a, entity &b)
    {
        memory remote(b.md(), 4096), local(a.md(), 4096);
        uct_iov_t iov = {local.ptr(), 4096, local.memh(), 0, 1};
        uct_rkey_bundle_t rkey;
        completion comp;
        uct_ep_h ep, back;

        bytes packed = remote.packed_rkey();
        if ((uct_rkey_unpack(a.component(), packed.data(), &rkey) != UCS_OK) ||
            (a.try_connect(b.addr(), &ep) != UCS_OK) ||
            (b.try_connect(a.addr(), &back) != UCS_OK)) {
            return "endpoint";
        }

        memset(local.ptr(), 0x5a, 4096);
        std::string error;
        if (!post(a, b, [&]() {
                return uct_ep_put_zcopy(ep, &iov, 1, remote.va(), rkey.rkey,
                                        &comp.comp);
            })) {
            error = "put";
        } else if (!post(a, b, [&]() {
                       return uct_ep_am_short(ep, 1, 7, NULL, 0);
                   })) {
            error = "message";
        } else if (!post(b, a, [&]() {
                       return uct_ep_am_short(back, 1, 8, NULL, 0);
                   })) {
            error = "answer";
        } else if (!until(a, b, [&]() {
                       return (a.messages.size() == 1) &&
                              (b.messages.size() == 1) && (comp.calls == 1);
                   })) {
            error = "completion";
        } else {
            EXPECT_EQ(0, memcmp(remote.ptr(), local.ptr(), 4096));
        }

        a.destroy(ep);
        b.destroy(back);
        if (comp.calls == 0) {
            EXPECT_EQ("put", error);
        } else {
            EXPECT_EQ(1u, comp.calls);
        }
        uct_rkey_release(a.component(), &rkey);
        return error;
    }

    /* Whether it came true before something failed */
    static bool until(entity &a, entity &b, const std::function<bool()> &done)
    {
        bool is_done = false;

        a.wait([&]() {
            b.progress();
            is_done = done();
            return is_done || !a.failures.empty() || !b.failures.empty();
        });
        return is_done;
    }

    static bool
    post(entity &a, entity &b, const std::function<ucs_status_t()> &op)
    {
        ucs_status_t status = UCS_ERR_NO_RESOURCE;

        until(a, b, [&]() {
            status = op();
            return status != UCS_ERR_NO_RESOURCE;
        });
        return !UCS_STATUS_IS_ERR(status);
    }

    struct ibv_context         *m_context = NULL;
    settings                   m_config;
    unsigned                   m_fds = 0;
    std::vector<unsigned long> m_before;
};

TEST_P(test_sep_uct_exhaust, every_failure_is_reported_and_nothing_remains)
{
    unsigned survived = 0, failed = 0;

    for (const char *plus : {"", "+"}) {
        survived = 0;
        for (unsigned nth = 1; (nth < 40) && (survived < 3); ++nth) {
            std::string spec = object() + ":" + std::to_string(nth) + plus;

            SCOPED_TRACE(category() + " " + spec);
            num_errors = 0;
            ASSERT_EQ(0, setenv("MLX5SIM_FAIL", spec.c_str(), 1));
            std::string error = scenario();
            unsetenv("MLX5SIM_FAIL");

            if (error.empty()) {
                ++survived; /* Beyond the last, or done without it */
            } else {
                ++failed;
                if ((object() == "context") && (error == "first open")) {
                    /* A device that can't be opened is not offered, as is
                     * usual for those that belong to somebody else */
                    num_errors = 1;
                }
                EXPECT_GT(num_errors, 0u) << error << " without a message";
            }
            EXPECT_EQ(m_fds, num_fds()) << error;
            EXPECT_EQ(m_before, account()) << error;
        }
    }
    EXPECT_GT(failed, 0u);
    EXPECT_EQ("", scenario());
}

/* A queue pair that could not be connected has taken no receives: nobody waits
 * for it to give them back, neither now nor when the worker is closed. Commands
 * fail from the first transition to RTR on, so the error state, in which it
 * would be said that none are left, is out of reach. */
class test_sep_uct_exhaust_rtr : public test_sep_uct_exhaust {
};

TEST_P(test_sep_uct_exhaust_rtr, who_was_not_connected_is_not_waited_for)
{
    auto a = entity::create(m_config);
    auto b = entity::create(*a, m_config);
    unsigned long before = num_qps();

    ucs_log_pop_handler();
    {
        expect_errors hide;
        ASSERT_EQ(0, setenv("MLX5SIM_FAIL", object().c_str(), 1));
        EXPECT_NE("", talk(*a, *b));
        unsetenv("MLX5SIM_FAIL");
        a->wait([&]() {
            b->progress();
            return num_qps() == before;
        });
        EXPECT_EQ(before, num_qps());
        b.reset();
        a.reset();
        EXPECT_EQ(0u, hide.count(UCS_LOG_LEVEL_WARN, "has not flushed"));
    }
    ucs_log_push_handler(count_errors);
}

INSTANTIATE_TEST_SUITE_P(
        categories, test_sep_uct_exhaust_rtr,
        ::testing::Values(std::make_tuple("dynamic", "modify_qp:3+"),
                          std::make_tuple("mpi_everywhere", "modify_qp:5+")));

INSTANTIATE_TEST_SUITE_P(
        categories, test_sep_uct_exhaust,
        ::testing::Combine(::testing::Values("dynamic", "static"),
                           ::testing::Values("context", "pd", "mr", "channel",
                                             "cq", "srq", "qp", "uar",
                                             "modify_qp_init", "modify_qp_rtr",
                                             "modify_qp_rts")));

} // namespace
