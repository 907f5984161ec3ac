/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_UCP_PAIR_H_
#define TEST_UCP_PAIR_H_

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <functional>
#include <memory>
#include <vector>

/** A worker with memory that others may write to, in a context of its own, so
 *  that it can be taken away without the others noticing. */
class UcpWorker {
public:
    static constexpr size_t SIZE = 1 << 16;

    explicit UcpWorker(ucs_thread_mode_t mode = UCS_THREAD_MODE_SINGLE,
                       uint64_t features      = 0);
    ~UcpWorker();
    UcpWorker(const UcpWorker&) = delete;

    std::vector<char> address() const;
    std::vector<char> packed_rkey() const;

    ucp_context_h context = nullptr;
    ucp_worker_h worker   = nullptr;
    char *memory          = nullptr;
    ucp_mem_h memh        = nullptr;
};

/** Whether messages between processes of a node, or within one, go by shared
 *  memory (UCX_TLS), which copies them at once and registers nothing. */
bool has_shared_memory();

/** Whether the UCX that runs, not the one of the headers, is 1.@a minor or
 *  newer. */
bool is_ucx_since(unsigned minor);

/** Two workers; endpoints lead from the first to the second. */
class UcpPair : public testing::Test {
public:
    void SetUp() override;
    void TearDown() override;

    ucp_ep_h connect(UcpWorker &from, UcpWorker &to,
                     ucp_err_handling_mode_t mode = UCP_ERR_HANDLING_MODE_NONE);
    ucp_rkey_h unpack(ucp_ep_h ep, UcpWorker &owner);
    void close(UcpWorker &worker, ucp_ep_h ep,
               unsigned mode = UCP_EP_CLOSE_MODE_FLUSH);

    void progress();
    /** Progress until it holds. @return false if that takes very long. */
    bool progress_until(const std::function<bool()> &condition);
    /** Wait for what an operation returned, and release it. */
    ucs_status_t wait(ucs_status_ptr_t request);

    ucs_status_ptr_t put(ucp_ep_h ep, ucp_rkey_h rkey, UcpWorker &target,
                         const void *data, size_t size, size_t offset = 0);
    ucs_status_t flush(ucp_ep_h ep);

    static void count_error(void *arg, ucp_ep_h ep, ucs_status_t status);

    std::unique_ptr<UcpWorker> sender, receiver;
    unsigned errors = 0;
};

#endif
