/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_procs.h>

#include <common/patience.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>


UcpEnv::~UcpEnv()
{
    for (const auto &var : before) {
        if (var.second.first) {
            setenv(var.first.c_str(), var.second.second.c_str(), 1);
        } else {
            unsetenv(var.first.c_str());
        }
    }
}

void UcpEnv::set(const std::string &name, const std::string &value)
{
    const char *old = getenv(name.c_str());
    before.insert({name, {old != nullptr, (old != nullptr) ? old : ""}});
    setenv(name.c_str(), value.c_str(), 1);
}

void UcpProcs::run(const std::vector<body_t> &bodies)
{
    void *memory = mmap(nullptr, sizeof(UcpBoard), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, memory);
    UcpBoard &board = *new (memory) UcpBoard();

    fflush(nullptr);
    std::vector<pid_t> pids;
    for (const body_t &body : bodies) {
        pid_t pid = fork();
        ASSERT_NE(-1, pid) << strerror(errno);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            body(board);
            fflush(nullptr);
            _exit(testing::Test::HasFailure() ? 1 : 0);
        }
        pids.push_back(pid);
    }

    for (size_t rank = 0; rank < pids.size(); ++rank) {
        int status = -1;
        EXPECT_EQ(pids[rank], waitpid(pids[rank], &status, 0));
        EXPECT_EQ(0, status) << "process " << rank;
    }
    munmap(memory, sizeof(UcpBoard));
}

void UcpProcs::publish(UcpBoard &board, int rank, const UcpWorker &worker)
{
    auto &self                      = board.ranks[rank];
    const std::vector<char> address = worker.address();
    const std::vector<char> rkey    = worker.packed_rkey();
    ASSERT_LE(address.size(), sizeof(self.address));
    ASSERT_LE(rkey.size(), sizeof(self.rkey));
    memcpy(self.address, address.data(), address.size());
    memcpy(self.rkey, rkey.data(), rkey.size());
    self.address_length = address.size();
    self.rkey_length    = rkey.size();
    self.memory         = reinterpret_cast<uintptr_t>(worker.memory);
    self.is_published   = true;
}

ucp_ep_h UcpProcs::connect(UcpBoard &board, int rank, UcpWorker &from,
                           ucp_rkey_h *rkey_p)
{
    auto &peer   = board.ranks[rank];
    ucp_ep_h ep  = nullptr;
    bool is_peer = wait_for([&] { return peer.is_published.load(); });
    EXPECT_TRUE(is_peer);
    if (!is_peer) {
        return nullptr;
    }

    ucp_ep_params_t params = {};
    params.field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address         = reinterpret_cast<ucp_address_t*>(peer.address);
    EXPECT_EQ(UCS_OK, ucp_ep_create(from.worker, &params, &ep));
    EXPECT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep, peer.rkey, rkey_p));
    return ep;
}

bool UcpProcs::wait_for(const std::function<bool()> &condition,
                        const std::function<void()> &work)
{
    using clock         = std::chrono::steady_clock;
    const auto deadline = clock::now() +
                          std::chrono::seconds(patience::seconds());
    while (!condition()) {
        if (clock::now() > deadline) {
            return false;
        }
        work();
    }
    return true;
}
