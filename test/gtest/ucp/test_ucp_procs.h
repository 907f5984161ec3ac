/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_UCP_PROCS_H_
#define TEST_UCP_PROCS_H_

#include <ucp/test_ucp_pair.h>

#include <atomic>
#include <map>
#include <string>

/** Environment variables of a test; set back at its end. */
class UcpEnv {
public:
    ~UcpEnv();
    void set(const std::string &name, const std::string &value);

private:
    std::map<std::string, std::pair<bool, std::string>> before;
};

/** What processes of a test share. */
struct UcpBoard {
    static constexpr int MAX_RANKS = 4;

    struct {
        std::atomic<bool> is_published;
        size_t            address_length, rkey_length;
        char              address[4096], rkey[4096];
        uint64_t          memory;
    } ranks[MAX_RANKS];
    std::atomic<unsigned> stage;
};

/** Tests with several processes, each of which has a worker. */
class UcpProcs : public testing::Test {
public:
    using body_t = std::function<void(UcpBoard &board)>;

    /** Run each body in a process of its own until all have returned. What
     *  fails there is a failure of the test. */
    void run(const std::vector<body_t> &bodies);

    /** Tell the others how to reach a worker. */
    static void publish(UcpBoard &board, int rank, const UcpWorker &worker);
    /** An endpoint to another's worker, and a key of its memory. */
    static ucp_ep_h connect(UcpBoard &board, int rank, UcpWorker &from,
                            ucp_rkey_h *rkey_p);

    /** Wait, calling @a work all the time. @return false if in vain. */
    static bool wait_for(const std::function<bool()> &condition,
                         const std::function<void()> &work = [] {});

    UcpEnv env;
};

#endif
