/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/process.h>
#include <sep/test_sep_uct.h>

#include <infiniband/verbs.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

/*
 * What a test leaves behind on the software device, which is asked, whatever
 * the transport thinks: when a context is closed, since nothing survives that,
 * and after each test.
 */

namespace {

std::string tool()
{
    std::string path = process::self();

    /* The device may be of another build, see config/run-test */
    for (const char *name : {"SEP_DEVICE_DIR", "SEP_BUILD_DIR"}) {
        const char *build = getenv(name);

        if (build != nullptr) {
            return std::string(build) + "/bin/mlx5sim-stat";
        }
    }
    return path.substr(0, path.rfind('/')) + "/../../bin/mlx5sim-stat";
}

/* What this process has on the device, by kind; false if that can't be had */
bool ask(std::map<std::string, long> *now_p)
{
    std::string key = "\"pid\": " + std::to_string(getpid()) + ",", text;

    if (getenv("MLX5SIM_DIR") == nullptr) {
        return false; /* A real one */
    }
    /* It needs nothing preloaded, and with ThreadSanitizer's library would not
     * start */
    if (process::run({tool(), "--json"}, {{}, {"LD_PRELOAD="}, {}}, &text) !=
        0) {
        ADD_FAILURE() << tool() << " can't be asked for leaks";
        return false;
    }

    size_t begin = text.find(key);
    if (begin == std::string::npos) {
        return true; /* It has not used the device, or has left it */
    }
    std::string mine = text.substr(begin, text.find('}', begin) - begin);
    for (const char *kind : {"contexts", "pds", "mrs", "cqs", "srqs", "qps",
                             "ahs", "uars_dynamic", "uars_nc"}) {
        std::string name = std::string("\"") + kind + "\": ";
        size_t at        = mine.find(name);

        if (at == std::string::npos) {
            ADD_FAILURE() << tool() << " does not tell about " << kind;
            return false;
        }
        (*now_p)[kind] = atol(&mine[at + name.size()]);
    }
    return true;
}

/* libmlx5 makes pages as queue pairs need them, and keeps them until the
 * context is closed */
bool is_uar(const std::string &kind)
{
    return kind.compare(0, 5, "uars_") == 0;
}

class leak_listener : public testing::EmptyTestEventListener {
public:
    void OnTestEnd(const testing::TestInfo &info) override
    {
        std::map<std::string, long> now;

        if (!ask(&now)) {
            return;
        }
        for (const auto &kind : now) {
            long before = std::max(m_before[kind.first], allowed(kind.first));

            /* A test that has failed need not have come to its end */
            if ((kind.second > before) && !is_uar(kind.first) &&
                !info.result()->Failed()) {
                ADD_FAILURE() << "the device has " << kind.second << " "
                              << kind.first << " of this process, and had "
                              << m_before[kind.first]
                              << " before the test";
            }
        }
        m_before = now;
    }

private:
    /* Kept until the process ends: the device of sep_cm_test has a context and
     * a protection domain */
    static long allowed(const std::string &kind)
    {
        return ((kind == "contexts") || (kind == "pds")) ? 1 : 0;
    }

    std::map<std::string, long> m_before;
};

/* main() is GoogleTest's */
const bool is_listening = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new leak_listener);
    return true;
}();

/* As pages are kept, one that is lost shows only when others come: in the
 * context of a memory domain that stays */
TEST(test_sep_leaks, no_uar_page_is_lost_however_many_workers_come_and_go)
{
    using namespace sep_uct_test;
    std::map<std::string, long> first, last;

    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }
    if (!ask(&first)) {
        GTEST_SKIP() << "a real device does not tell";
    }

    for (auto &row : categories()) {
        const settings config = {{"CATEGORY", row.name}};
        auto owner            = entity::create(config);
        ASSERT_TRUE(owner != nullptr);

        for (unsigned i = 0; i < 12; ++i) {
            {
                auto e  = entity::create(*owner, config);
                auto e2 = entity::create(*owner, config);
                ASSERT_TRUE((e != nullptr) && (e2 != nullptr));
                uct_ep_h ep = e->connect(e2->addr());
                EXPECT_TRUE(e->wait([&]() {
                    e2->progress();
                    return uct_ep_am_short(ep, 1, 0, NULL, 0) == UCS_OK;
                }));
                EXPECT_TRUE(e->flush());
            }
            ASSERT_TRUE(ask((i < 2) ? &first : &last));
        }
        for (const char *kind : {"uars_dynamic", "uars_nc"}) {
            EXPECT_EQ(first[kind], last[kind]) << row.name << ": " << kind;
        }
    }
}

} // namespace

extern "C" {

int __real_ibv_close_device(struct ibv_context *context);
int __wrap_ibv_close_device(struct ibv_context *context);

/* By the transport, or a test. If it is the only context, nothing else of the
 * process is to be there; of a device that has failed nothing can be
 * destroyed. */
int __wrap_ibv_close_device(struct ibv_context *context)
{
    std::map<std::string, long> now;
    struct ibv_device_attr attr;

    if ((testing::UnitTest::GetInstance()->current_test_info() != nullptr) &&
        (ibv_query_device(context, &attr) == 0) && ask(&now) &&
        (now["contexts"] == 1)) {
        for (const auto &kind : now) {
            if ((kind.first != "contexts") && !is_uar(kind.first) &&
                (kind.second > 0)) {
                ADD_FAILURE() << "a context is closed with " << kind.second
                              << " " << kind.first;
            }
        }
    }
    return __real_ibv_close_device(context);
}
}
