/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_procs.h>

#include <common/patience.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Endpoints that are connected when they are used for the first time. */
class UcpOndemand : public UcpPair {
public:
    void SetUp() override
    {
        env.set("UCX_OPT_ONDEMAND", "y");
        UcpPair::SetUp();
        before = qps();
    }

    /* QPs that there are on the device, of everyone. */
    static unsigned qps()
    {
        const char *build = getenv("SEP_BUILD_DIR");
        EXPECT_NE(nullptr, build) << "needed for mlx5sim-stat";
        if (build == nullptr) {
            return 0;
        }

        const std::string command = std::string(build) +
                                    "/bin/mlx5sim-stat --json";
        FILE *output = popen(command.c_str(), "r");
        EXPECT_NE(nullptr, output);
        std::string text;
        char part[4096];
        for (size_t got; (got = fread(part, 1, sizeof(part), output)) > 0;) {
            text.append(part, got);
        }
        EXPECT_EQ(0, pclose(output));

        /* The totals come last. */
        const char *key = "\"qps\":";
        size_t at       = text.rfind(key);
        EXPECT_NE(std::string::npos, at) << text;
        return (at == std::string::npos) ? 0 :
               std::stoul(text.substr(at + strlen(key)));
    }

    /* Whether lanes are connected endpoint to endpoint, with UD's help. */
    static bool is_p2p()
    {
        const char *tls = getenv("UCX_TLS");
        return (tls != nullptr) && (strstr(tls, "rc") != nullptr);
    }

    /* Put a number that is different each time, and see that it has arrived. */
    void use(UcpWorker &from, ucp_ep_h ep, ucp_rkey_h rkey, UcpWorker &to)
    {
        uint64_t value = ++number, there;
        ASSERT_EQ(UCS_OK, wait(put(ep, rkey, to, &value, sizeof(value))));
        ASSERT_EQ(UCS_OK, flush(ep));
        memcpy(&there, to.memory, sizeof(there));
        EXPECT_EQ(value, there);
    }

    static const ucp_request_param_t no_param;

    UcpEnv env;
    unsigned before = 0;
    uint64_t number = 0;
};

const ucp_request_param_t UcpOndemand::no_param = {};


/* Endpoints of two workers to each other. */
class UcpOndemandBoth : public UcpOndemand {
public:
    void SetUp() override
    {
        UcpOndemand::SetUp();
        there    = connect(*sender, *receiver);
        back     = connect(*receiver, *sender);
        key      = unpack(there, *receiver);
        back_key = unpack(back, *sender);
    }

    void TearDown() override
    {
        if (is_p2p()) {
            EXPECT_EQ(before + 2, qps());
        }

        ucp_rkey_destroy(key);
        ucp_rkey_destroy(back_key);
        close(*sender, there);
        close(*receiver, back);
        UcpOndemand::TearDown();
    }

    ucp_ep_h there, back;
    ucp_rkey_h key, back_key;
};


TEST_F(UcpOndemand, OfManyEndpointsThoseInUseHaveQps)
{
    constexpr unsigned COUNT = 32, USED = 3;
    std::array<ucp_ep_h, COUNT> eps;
    std::array<ucp_rkey_h, COUNT> rkeys;

    for (unsigned i = 0; i < COUNT; ++i) {
        eps[i]   = connect(*sender, *receiver);
        rkeys[i] = unpack(eps[i], *receiver);
    }
    for (int i = 0; i < 1000; ++i) {
        progress();
    }
    EXPECT_EQ(before, qps());

    for (unsigned i = 0; i < USED; ++i) {
        use(*sender, eps[7 * i], rkeys[7 * i], *receiver);
    }
    if (is_p2p()) {
        /* one at each end */
        EXPECT_EQ(before + (2 * USED), qps());
    }

    for (unsigned i = 0; i < COUNT; ++i) {
        ucp_rkey_destroy(rkeys[i]);
        close(*sender, eps[i]);
    }
}

TEST_F(UcpOndemand, WithoutItAllHaveQps)
{
    if (!is_p2p()) {
        GTEST_SKIP() << "the transport connects on demand itself";
    }

    env.set("UCX_OPT_ONDEMAND", "n");
    UcpWorker other;
    before = qps();
    std::array<ucp_ep_h, 8> eps;
    for (ucp_ep_h &ep : eps) {
        ep = connect(other, *receiver);
    }
    EXPECT_TRUE(progress_until([&] {
        ucp_worker_progress(other.worker);
        return qps() >= before + (2 * eps.size());
    }));
    for (ucp_ep_h ep : eps) {
        ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &no_param);
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        if (UCS_PTR_IS_PTR(request)) {
            EXPECT_TRUE(progress_until([&] {
                ucp_worker_progress(other.worker);
                return ucp_request_check_status(request) != UCS_INPROGRESS;
            }));
            ucp_request_free(request);
        }
    }
}

TEST_F(UcpOndemandBoth, EndpointsOfBothSidesShareAConnection)
{
    EXPECT_EQ(before, qps());
    use(*sender, there, key, *receiver);
    use(*receiver, back, back_key, *sender);
}

TEST_F(UcpOndemandBoth, BothSidesMayUseItAtOnce)
{
    uint64_t one = 1, two = 2;

    ucs_status_ptr_t first  = put(there, key, *receiver, &one, sizeof(one));
    ucs_status_ptr_t second = put(back, back_key, *sender, &two, sizeof(two));
    EXPECT_EQ(UCS_OK, wait(first));
    EXPECT_EQ(UCS_OK, wait(second));
    EXPECT_EQ(UCS_OK, flush(there));
    EXPECT_EQ(UCS_OK, flush(back));
    EXPECT_EQ(1u, *reinterpret_cast<uint64_t*>(receiver->memory));
    EXPECT_EQ(2u, *reinterpret_cast<uint64_t*>(sender->memory));
}

TEST_F(UcpOndemand, FlushOfWhatWasNeverUsedHasNothingToDo)
{
    ucp_ep_h ep = connect(*sender, *receiver);

    EXPECT_EQ(nullptr, ucp_ep_flush_nbx(ep, &no_param));
    EXPECT_EQ(UCS_OK, wait(ucp_worker_flush_nbx(sender->worker, &no_param)));
    EXPECT_EQ(before, qps());
    close(*sender, ep);
    EXPECT_EQ(before, qps());
}

TEST_F(UcpOndemand, UnusedEndpointsCanBeLookedAtAndClosed)
{
    ucp_ep_h closed = connect(*sender, *receiver);
    ucp_ep_h left   = connect(*sender, *receiver);
    ucp_ep_h used   = connect(*sender, *receiver);

    char *text  = nullptr;
    size_t size = 0;
    FILE *file  = open_memstream(&text, &size);
    ucp_ep_print_info(left, file);
    fclose(file);
    EXPECT_NE(nullptr, strstr(text, "endpoint")) << text;
    free(text);

    ucp_ep_attr_t attr = {};
    attr.field_mask    = UCP_EP_ATTR_FIELD_NAME;
    EXPECT_EQ(UCS_OK, ucp_ep_query(left, &attr));

    close(*sender, closed);
    /* It was counted, and the next finds its peer nevertheless. */
    ucp_rkey_h rkey = unpack(used, *receiver);
    use(*sender, used, rkey, *receiver);
    ucp_rkey_destroy(rkey);
    close(*sender, used);
    /* "left" goes with its worker. */
}

TEST_F(UcpOndemand, AnyOperationConnects)
{
    /* get, atomic, long put, tagged messages, short and long */
    for (int kind = 0; kind < 6; ++kind) {
        ucp_ep_h ep     = connect(*sender, *receiver);
        ucp_rkey_h rkey = unpack(ep, *receiver);
        const uint64_t remote = reinterpret_cast<uintptr_t>(receiver->memory);
        std::vector<char> data(UcpWorker::SIZE, static_cast<char>('a' + kind));
        std::vector<char> received(UcpWorker::SIZE);
        ucs_status_ptr_t request = nullptr, receive = nullptr;

        memset(receiver->memory, 'x', 8);
        switch (kind) {
        case 0:
            request = ucp_get_nbx(ep, data.data(), 8, remote, rkey, &no_param);
            break;
        case 1: {
            uint64_t add              = 1;
            uint64_t result           = 0;
            ucp_request_param_t param = {};
            param.op_attr_mask        = UCP_OP_ATTR_FIELD_DATATYPE |
                                        UCP_OP_ATTR_FIELD_REPLY_BUFFER;
            param.datatype            = ucp_dt_make_contig(8);
            param.reply_buffer        = &result;
            EXPECT_EQ(UCS_OK, wait(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD,
                                                     &add, 1, remote, rkey,
                                                     &param)));
            EXPECT_EQ(0, memcmp(&result, "xxxxxxxx", 8));
            break;
        }
        case 2:
            request = put(ep, rkey, *receiver, data.data(), data.size());
            break;
        default: {
            const size_t length = (kind == 3) ? 8 : (kind == 4) ? 2000 :
                                  data.size();
            receive = ucp_tag_recv_nbx(receiver->worker, received.data(),
                                       length, 1, -1, &no_param);
            request = ucp_tag_send_nbx(ep, data.data(), length, 1, &no_param);
            EXPECT_EQ(UCS_OK, wait(receive)) << kind;
            EXPECT_EQ(0, memcmp(data.data(), received.data(), length)) << kind;
            break;
        }
        }
        EXPECT_EQ(UCS_OK, wait(request)) << kind;
        EXPECT_EQ(UCS_OK, flush(ep)) << kind;
        if (kind == 0) {
            EXPECT_EQ(0, memcmp(data.data(), "xxxxxxxx", 8));
        } else if (kind == 2) {
            EXPECT_EQ(0, memcmp(data.data(), receiver->memory, data.size()));
        }
        ucp_rkey_destroy(rkey);
        close(*sender, ep);
    }
}

TEST_F(UcpOndemand, EndpointsThatHandleFailuresAreConnectedAtOnce)
{
    if (!is_p2p()) {
        GTEST_SKIP() << "the transport connects on demand itself";
    }

    ucp_ep_h ep = connect(*sender, *receiver, UCP_ERR_HANDLING_MODE_PEER);
    EXPECT_TRUE(progress_until([&] { return qps() == before + 2; }));
    close(*sender, ep);
}

TEST_F(UcpOndemand, AWorkerCanUseItsOwnEndpoints)
{
    ucp_ep_h ep     = connect(*sender, *sender);
    ucp_rkey_h rkey = unpack(ep, *sender);
    use(*sender, ep, rkey, *sender);
    ucp_rkey_destroy(rkey);
    close(*sender, ep);
}

TEST_F(UcpOndemand, AutoIsForJobsThatExpectManyEndpoints)
{
    if (!is_p2p()) {
        GTEST_SKIP() << "the transport connects on demand itself";
    }

    env.set("UCX_OPT_ONDEMAND", "auto");
    for (unsigned expected : {0, 63, 64}) {
        if (expected > 0) {
            env.set("UCX_NUM_EPS", std::to_string(expected));
        }
        sender = std::make_unique<UcpWorker>();
        before = qps();
        ucp_ep_h ep     = connect(*sender, *receiver);
        ucp_rkey_h rkey = unpack(ep, *receiver);
        if (expected < 64) {
            EXPECT_TRUE(progress_until([&] { return qps() == before + 2; }))
                    << expected;
        } else {
            for (int i = 0; i < 1000; ++i) {
                progress();
            }
            EXPECT_EQ(before, qps());
        }
        use(*sender, ep, rkey, *receiver);
        EXPECT_EQ(before + 2, qps()) << expected;
        ucp_rkey_destroy(rkey);
        close(*sender, ep);
    }
}

/* What the device refuses when an endpoint is used for the first time. */
class UcpOndemandFails : public UcpOndemand,
                         public testing::WithParamInterface<const char*> {
};

TEST_P(UcpOndemandFails, OperationsAreToldAndOtherEndpointsWork)
{
    if (!is_p2p()) {
        GTEST_SKIP() << "the transport connects on demand itself";
    }

    ucp_ep_h ep     = connect(*sender, *receiver);
    ucp_ep_h other  = connect(*sender, *receiver);
    ucp_rkey_h rkey = unpack(ep, *receiver);
    ucp_rkey_h other_rkey = unpack(other, *receiver);
    uint64_t value        = 1;

    setenv("MLX5SIM_FAIL", GetParam(), 1);
    ucs_status_ptr_t first  = put(ep, rkey, *receiver, &value, sizeof(value));
    ucs_status_ptr_t second = put(ep, rkey, *receiver, &value, sizeof(value));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait(first)));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait(second)));
    unsetenv("MLX5SIM_FAIL");

    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait(put(ep, rkey, *receiver, &value,
                                           sizeof(value)))));
    EXPECT_EQ(before, qps());
    use(*sender, other, other_rkey, *receiver);
    EXPECT_EQ(before + 2, qps());

    ucp_rkey_destroy(rkey);
    ucp_rkey_destroy(other_rkey);
    close(*sender, ep, UCP_EP_CLOSE_MODE_FORCE);
    /* Not the worker: rc_verbs of stock UCX leaves an endpoint whose QP it
     * could not set up in the interface's list, and flushes it for ever. */
    EXPECT_EQ(UCS_OK, flush(other));
    close(*sender, other);
}

INSTANTIATE_TEST_SUITE_P(, UcpOndemandFails,
                         testing::Values("qp:1", "modify_qp_init:1"),
                         [](const auto &info) {
                             std::string name = info.param;
                             return name.substr(0, name.find(':'));
                         });

/* With processes: the peer's endpoint was never used, or there is none. */
class UcpOndemandProcs : public UcpProcs {
};

TEST_F(UcpOndemandProcs, APeerThatComputesIsReachedByTheFirstPut)
{
    env.set("UCX_OPT_ONDEMAND", "y");
    run({[&](UcpBoard &board) {
             UcpWorker self;
             publish(board, 0, self);
             ucp_rkey_h rkey;
             ucp_ep_h ep = connect(board, 1, self, &rkey);
             ASSERT_NE(nullptr, ep);
             board.stage = 1;
             EXPECT_TRUE(wait_for([&] { return board.stage == 2; }));
             EXPECT_EQ(5u, *reinterpret_cast<uint64_t*>(self.memory));
             ucp_rkey_destroy(rkey);
         },
         [&](UcpBoard &board) {
             UcpWorker self;
             publish(board, 1, self);
             ucp_rkey_h rkey;
             ucp_ep_h ep = connect(board, 0, self, &rkey);
             ASSERT_NE(nullptr, ep);
             EXPECT_TRUE(wait_for([&] { return board.stage == 1; }));
             const uint64_t value            = 5;
             const ucp_request_param_t param = {};
             ucs_status_ptr_t request        = ucp_put_nbx(
                     ep, &value, sizeof(value), board.ranks[0].memory, rkey,
                     &param);
             ucs_status_ptr_t flushed = ucp_ep_flush_nbx(ep, &param);
             for (ucs_status_ptr_t each : {request, flushed}) {
                 ASSERT_FALSE(UCS_PTR_IS_ERR(each));
                 if (UCS_PTR_IS_PTR(each)) {
                     EXPECT_TRUE(wait_for(
                             [&] {
                                 return ucp_request_check_status(each) !=
                                        UCS_INPROGRESS;
                             },
                             [&] { ucp_worker_progress(self.worker); }));
                     EXPECT_EQ(UCS_OK, ucp_request_check_status(each));
                     ucp_request_free(each);
                 }
             }
             ucp_rkey_destroy(rkey);
             board.stage = 2;
         }});
}

/* The peer is killed before or while it is used for the first time. If its
 * endpoint does not handle failures, UCX aborts the process then; 1.22 has
 * operations fail instead. It must do the same whether the endpoint was
 * connected before or not. */
class UcpOndemandKill : public UcpOndemandProcs {
public:
    static constexpr int OPERATION_FAILED = 2; /* exit status */

    /* Run in a process of its own. @return its status. */
    static int run_alone(const std::function<void()> &body)
    {
        pid_t pid  = start(body);
        int status = 0;
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        return status;
    }

    static pid_t start(const std::function<void()> &body)
    {
        pid_t pid = fork();
        EXPECT_NE(-1, pid);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(patience::seconds());
            body();
            _exit(0);
        }
        return pid;
    }

    /* Put until the process ends by UCX's hand, or an operation fails. */
    static void use_until_failure(UcpBoard &board)
    {
        UcpWorker self;
        ucp_rkey_h rkey;
        ucp_ep_h ep = connect(board, 1, self, &rkey);
        board.stage = 1;
        while (board.stage != 2) {
            ucp_worker_progress(self.worker);
        }

        const uint64_t value            = 5;
        const ucp_request_param_t param = {};
        for (board.stage = 3;;) {
            ucs_status_ptr_t put = ucp_put_nbx(ep, &value, sizeof(value),
                                               board.ranks[1].memory, rkey,
                                               &param);
            ucs_status_ptr_t flushed = ucp_ep_flush_nbx(ep, &param);
            for (ucs_status_ptr_t each : {put, flushed}) {
                while (UCS_PTR_IS_PTR(each) &&
                       (ucp_request_check_status(each) == UCS_INPROGRESS)) {
                    ucp_worker_progress(self.worker);
                }
                if (UCS_PTR_IS_ERR(each) ||
                    (UCS_PTR_IS_PTR(each) &&
                     (ucp_request_check_status(each) != UCS_OK))) {
                    _exit(OPERATION_FAILED);
                }
                if (UCS_PTR_IS_PTR(each)) {
                    ucp_request_free(each);
                }
            }
        }
    }

    static std::string describe(int status)
    {
        if (WIFSIGNALED(status)) {
            return strsignal(WTERMSIG(status));
        }
        return (WEXITSTATUS(status) == OPERATION_FAILED) ?
               "operation failed" :
               "exit status " + std::to_string(WEXITSTATUS(status));
    }

    /* Be there until the other has come so far, and then be gone. */
    static void be_killed(UcpBoard &board, int delay)
    {
        pid_t pid = start([&] {
            UcpWorker self;
            publish(board, 1, self);
            for (;;) {
                ucp_worker_progress(self.worker);
            }
        });
        EXPECT_TRUE(wait_for([&] { return board.stage == 1; }));
        if (delay >= 0) {
            board.stage = 2;
            EXPECT_TRUE(wait_for([&] { return board.stage == 3; }));
            usleep(delay);
        }
        EXPECT_EQ(0, kill(pid, SIGKILL));
        EXPECT_EQ(pid, waitpid(pid, nullptr, 0));
        if (delay < 0) {
            board.stage = 2;
        }
    }
};

TEST_F(UcpOndemandKill, UsingAPeerThatIsGoneEndsAsItDoesWhenConnectedBefore)
{
    if (!UcpOndemand::is_p2p()) {
        GTEST_SKIP() << "the transport connects on demand itself";
    }

    env.set("UCX_UD_TIMEOUT", "1s");
    env.set("UCX_RC_TIMEOUT", "10ms");
    env.set("UCX_RC_RETRY_COUNT", "3");
    env.set("UCX_HANDLE_ERRORS", "none");
    env.set("UCX_LOG_LEVEL", "fatal");
    int *end = static_cast<int*>(mmap(nullptr, sizeof(*end),
                                      PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(MAP_FAILED, end);
    /* microseconds after the first use, or before it */
    for (int delay : {-1, 0, 1000}) {
        int end_connected = 0;
        for (const char *setting : {"n", "y"}) {
            env.set("UCX_OPT_ONDEMAND", setting);
            run({[&](UcpBoard &board) {
                     *end = run_alone([&] { use_until_failure(board); });
                 },
                 [&](UcpBoard &board) { be_killed(board, delay); }});
            if (*setting == 'n') {
                end_connected = *end;
                EXPECT_TRUE((WIFSIGNALED(*end) &&
                             (WTERMSIG(*end) == SIGABRT)) ||
                            (WIFEXITED(*end) &&
                             (WEXITSTATUS(*end) == OPERATION_FAILED)))
                        << describe(*end) << ", " << delay;
            } else {
                EXPECT_EQ(describe(end_connected), describe(*end)) << delay;
            }
        }
    }
    munmap(end, sizeof(*end));
}
