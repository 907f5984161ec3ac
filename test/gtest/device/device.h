/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_H_
#define MLX5SIM_TEST_DEVICE_H_

/*
 * Tests of the whole software device with real processes on plain verbs.
 *
 * The test program itself never opens the device. A test forks its processes
 * ("ranks"), which do, and which talk to each other through a board in shared
 * memory. Every test has an instance directory of its own, which must hold no
 * violation and no leaked object at its end.
 */

#include <common/patience.h>
#include <common/sanitizer.h>
#include <device/device_verbs.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace device {

/** Shared by the processes of a test; zero at its start. */
struct board {
    static const unsigned max_ranks = 80;
    static const unsigned max_words = 8192;

    std::atomic<uint32_t> abort;      /* a rank failed: all others end */
    std::atomic<uint32_t> arrived;
    std::atomic<uint32_t> phase;
    std::atomic<uint64_t> words[max_words];   /* for the test */
    std::atomic<uint32_t> posted[max_ranks];
    uint8_t               mail[max_ranks][8192];
};


/** A process of a test. */
class rank {
public:
    rank(board *shared, int index, int count);

    /** Wait until all @ref count processes are here. */
    void barrier();

    /** Show @a value to the others. Once per barrier() at most. */
    template<typename T> void publish(const T &value)
    {
        publish(&value, sizeof(value));
    }

    /** What rank @a from published; waits for it. */
    template<typename T> T lookup(int from)
    {
        T value;

        lookup(from, &value, sizeof(value));
        return value;
    }

    std::atomic<uint64_t> &word(unsigned i)
    {
        return m_board->words[i];
    }

    /** Wait until word @a i is at least @a value. */
    void wait_word(unsigned i, uint64_t value);

    const int index;
    const int count;

private:
    void publish(const void *value, size_t size);
    void lookup(int from, void *value, size_t size);

    board *m_board;
};


/** One side of a connection between ranks 0 and 1, with all it needs. */
struct side {
    explicit side(rank &r, const qp_options &options = qp_options(),
                  size_t mem_size = 1 << 20, int cq_size = 256);

    context c;
    memory  mem;
    cq      scq;
    cq      rcq;
    qp      q;
    address peer;
};


typedef std::function<void(rank&)> body_t;


/** Base of the tests. */
class test : public ::testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    /** Run @a count processes to their ends; all have to succeed. */
    void run(int count, const body_t &body);

    /** Start one process of @a count. */
    void start(int index, int count, const body_t &body);

    /** Wait for the end of process @a index. @return status as of waitpid(). */
    int finish(int index);

    /** Wait for all processes; each has to succeed. */
    void finish_all();

    /** End process @a index at once, as kill -9 does. */
    void kill(int index);

    /** This test provokes violations. @return those that were reported. */
    std::vector<std::string> take_violations();

    /** What the processes wrote to standard error so far. */
    std::string errors() const;

    /** Catch standard error of the processes in a file. */
    void catch_errors();

    /** Set an environment variable in the processes of the test. */
    void set_env(const char *name, const std::string &value);

    /** Run mlx5sim-stat on the instance, behind the command @a prefix.
     *  @return exit status. */
    int stat(const std::string &options, std::string *output_p,
             const std::string &prefix = "");

    /** What "mlx5sim-stat --json --detail" prints, as one line. */
    std::string stat_json();

    /** A number of its totals. */
    long stat_total(const std::string &key);

    const std::string &dir() const
    {
        return m_dir;
    }

    std::atomic<uint64_t> &word(unsigned i)
    {
        return m_board->words[i];
    }

    pid_t pid(int index) const
    {
        return m_pids.at(index);
    }

private:
    void check_violations();

    std::string          m_dir;
    std::string          m_errors;
    board                *m_board = nullptr;
    std::map<int, pid_t> m_pids;
    std::map<std::string, std::string> m_env;
};


/** Values of @a key in all QPs of test::stat_json(). */
std::vector<std::string> stat_qps(const std::string &json,
                                  const std::string &key);

/** Where the build put @a name ("bin/mlx5sim-stat"). */
std::string build_file(const std::string &name);

/** End this process with a message about a failure. */
[[noreturn]] void fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** End this process if another one of the test failed. */
void check_abort();

/** Milliseconds of CLOCK_MONOTONIC. */
uint64_t now_ms();

/** Nothing in a test takes this long unless it hangs. */
const uint64_t patience_ms = 1000ul * patience::seconds();

} // namespace device


/** As ASSERT_TRUE, in a process of the test. */
#define REQUIRE(_cond) \
    do { \
        if (!(_cond)) { \
            device::fail(__FILE__, __LINE__, "%s (errno %d)", #_cond, errno); \
        } \
    } while (0)

/** As ASSERT_EQ for integers, in a process of the test. */
#define REQUIRE_EQ(_expected, _actual) \
    do { \
        long long _e = (long long)(_expected), _a = (long long)(_actual); \
        if (_e != _a) { \
            device::fail(__FILE__, __LINE__, "%s is %lld (0x%llx), not %s = " \
                         "%lld (0x%llx)", #_actual, _a, _a, #_expected, _e, \
                         _e); \
        } \
    } while (0)

#endif
