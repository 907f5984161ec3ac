/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_procs.h>

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is registered, as libibverbs is asked for it */
static std::mutex registered_lock;
static std::map<struct ibv_mr*, std::pair<char*, size_t>> registered;
static unsigned registrations;

/* What happens while memory of an address is given back, once */
static std::function<void()> while_given_back;
static char *given_back;

static struct ibv_mr *note(struct ibv_mr *mr, void *address, size_t length)
{
    if (mr != nullptr) {
        std::lock_guard<std::mutex> guard(registered_lock);
        registered[mr] = {static_cast<char*>(address), length};
        ++registrations;
    }
    return mr;
}

extern "C" {

__attribute__((visibility("default"))) struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                 unsigned access)
{
    static auto real = (decltype(&ibv_reg_mr_iova2))dlsym(RTLD_NEXT,
                                                          "ibv_reg_mr_iova2");

    return note(real(pd, addr, length, iova, access), addr, length);
}

#undef ibv_reg_mr
__attribute__((visibility("default"))) struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    static auto real = (decltype(&ibv_reg_mr))dlsym(RTLD_NEXT, "ibv_reg_mr");

    return note(real(pd, addr, length, access), addr, length);
}

__attribute__((visibility("default"))) int ibv_dereg_mr(struct ibv_mr *mr)
{
    static auto real = (decltype(&ibv_dereg_mr))dlsym(RTLD_NEXT,
                                                      "ibv_dereg_mr");

    std::function<void()> what;

    {
        std::lock_guard<std::mutex> guard(registered_lock);
        const auto found = registered.find(mr);
        if (while_given_back && (found != registered.end()) &&
            (found->second.first <= given_back) &&
            (given_back < found->second.first + found->second.second)) {
            what.swap(while_given_back);
        }
        registered.erase(mr);
    }
    if (what) {
        what();
    }
    return real(mr);
}
}

#if UCP_API_VERSION >= UCP_VERSION(1, 18)
/* What UCP's cache was asked for last: a registration, which begins with the
 * bounds of its memory */
static uintptr_t *last_region;

extern "C" __attribute__((visibility("default"))) ucs_status_t
ucs_rcache_get(void *rcache, void *address, size_t length, size_t alignment,
               int prot, void *arg, uintptr_t **region_p)
{
    static auto real = (decltype(&ucs_rcache_get))dlsym(RTLD_NEXT,
                                                        "ucs_rcache_get");
    ucs_status_t status = real(rcache, address, length, alignment, prot, arg,
                               region_p);

    if (status == UCS_OK) {
        last_region = *region_p;
    }
    return status;
}
#endif

/** Memory of its own pages. */
class Mapping {
public:
    static constexpr size_t SIZE = 16384;

    explicit Mapping(void *at = nullptr)
    {
        /* UCX takes MAP_FIXED for unmapping what was there */
        data = static_cast<char*>(mmap(at, SIZE, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        EXPECT_NE(MAP_FAILED, data);
        if (at != nullptr) {
            EXPECT_EQ(at, data);
        }
    }

    ~Mapping()
    {
        unmap();
    }

    void unmap()
    {
        if (data != nullptr) {
            munmap(data, SIZE);
        }
        data = nullptr;
    }

    /** How many registrations of memory there are. */
    static size_t registered_at(const char *address)
    {
        std::lock_guard<std::mutex> guard(registered_lock);
        size_t count = 0;

        for (const auto &each : registered) {
            count += (address >= each.second.first) &&
                     (address < each.second.first + each.second.second);
        }
        return count;
    }

    char *data;
};

/* Buffers that are registered when they are used, and remembered by workers
 * (UCX_OPT_MEM). */
class UcpMem : public UcpPair {
public:
    void SetUp() override
    {
        if (!is_ucx_since(18)) {
            GTEST_SKIP() << "this UCX has no UCX_OPT_MEM";
        }
        env.set("UCX_ZCOPY_THRESH", "1");
        UcpPair::SetUp();
        to   = connect(*sender, *receiver);
        rkey = unpack(to, *receiver);
    }

    void TearDown() override
    {
        if (sender) {
            ucp_rkey_destroy(rkey);
            close(*sender, to);
        }
        UcpPair::TearDown();
    }

    /* Begin anew with a setting of the registration cache */
    void set_up_with(const char *name, const char *value)
    {
        TearDown();
        env.set(name, value);
        SetUp();
    }

    /* Put a page of this value from a buffer, and see that it arrives */
    void put_page(char *buffer, char value)
    {
        memset(buffer, value, PAGE);
        EXPECT_EQ(UCS_OK, wait(put(to, rkey, *receiver, buffer, PAGE)));
        EXPECT_EQ(UCS_OK, flush(to));
        EXPECT_EQ(std::string(PAGE, value), std::string(receiver->memory,
                                                        PAGE));
    }

    /* The same by a rendezvous: the peer reads what is in the buffer */
    void send_page(char *buffer, char value)
    {
        const ucp_request_param_t param = {};
        memset(buffer, value, PAGE);
        ucs_status_ptr_t receive = ucp_tag_recv_nbx(
                receiver->worker, receiver->memory, PAGE, 0, 0, &param);
        EXPECT_EQ(UCS_OK, wait(ucp_tag_send_nbx(to, buffer, PAGE, 0, &param)));
        EXPECT_EQ(UCS_OK, wait(receive));
        EXPECT_EQ(std::string(PAGE, value), std::string(receiver->memory,
                                                        PAGE));
    }

    static constexpr size_t PAGE = 4096;

    UcpEnv env;
    ucp_ep_h to     = nullptr;
    ucp_rkey_h rkey = nullptr;
};

TEST_F(UcpMem, ABufferIsRegisteredOnce)
{
    Mapping memory;

    /* Twice, so that what UCX registers for itself is there */
    put_page(Mapping().data, 'a');
    const unsigned none = registrations;
    put_page(memory.data, 'a');
    EXPECT_LT(0u, Mapping::registered_at(memory.data));

    const unsigned before = registrations;
    for (char value = 'b'; value <= 'z'; ++value) {
        put_page(memory.data + ((value % 2) ? 0 : PAGE), value);
    }
    /* The second page may be another one, if that is not larger. A domain may
     * ask libibverbs more than once */
    EXPECT_GE(before + (before - none), registrations);
}

TEST_F(UcpMem, OtherMemoryAtTheSameAddressIsRegisteredAgain)
{
    Mapping memory;
    put_page(memory.data, 'a');

    for (char value = 'b'; value <= 'f'; ++value) {
        char *address = memory.data;
        memory.unmap();
        if (value % 2) {
            /* Have UCX look at what was unmapped; there are new pages so that
             * there is something to register */
            Mapping between;
            put_page(between.data, value);
        }
        Mapping other(address);
        const unsigned before = registrations;
        put_page(other.data, value);
        EXPECT_LT(before, registrations) << value;
        memory.data = other.data;
        other.data  = nullptr;
    }
}

TEST_F(UcpMem, MemoryThatIsUnmappedIsGivenBackWithTheNextRegistration)
{
    Mapping kept, gone[4];

    for (const Mapping &each : gone) {
        put_page(each.data, 'a');
        EXPECT_LT(0u, Mapping::registered_at(each.data));
    }

    std::vector<char*> addresses;
    for (Mapping &each : gone) {
        addresses.push_back(each.data);
        each.unmap();
    }

    put_page(kept.data, 'b');
    for (const char *address : addresses) {
        EXPECT_EQ(0u, Mapping::registered_at(address));
    }
}

TEST_F(UcpMem, ABufferOfARendezvousIsRegisteredOnceAndGivenBack)
{
    set_up_with("UCX_RNDV_THRESH", "0");
    Mapping memory, other;

    send_page(memory.data, 'a');
    EXPECT_LT(0u, Mapping::registered_at(memory.data));
    const unsigned before = registrations;
    for (char value = 'b'; value <= 'z'; ++value) {
        send_page(memory.data, value);
    }
    EXPECT_EQ(before, registrations);

    char *address = memory.data;
    memory.unmap();
    send_page(other.data, 'b');
    EXPECT_EQ(0u, Mapping::registered_at(address));
    Mapping again(address);
    send_page(again.data, 'c');
}

/* These take no protocol, and look at what was found last first */
TEST_F(UcpMem, MessagesSeeOtherMemoryAtTheSameAddress)
{
    if (has_shared_memory()) {
        GTEST_SKIP() << "shared memory registers no message";
    }

    set_up_with("UCX_RNDV_THRESH", "inf");
    Mapping memory, second;

    /* The second page may be another registration */
    for (char value = 'a'; value <= 'c'; ++value) {
        send_page(memory.data, value);
        send_page(memory.data + PAGE, value);
    }
    unsigned before = registrations;
    for (char value = 'd'; value <= 'f'; ++value) {
        send_page(memory.data + PAGE, value);
        send_page(memory.data, value);
    }
    EXPECT_EQ(before, registrations);

    for (char value = 'g'; value <= 'k'; ++value) {
        char *address = memory.data;
        memory.unmap();
        if (value % 2) {
            send_page(second.data, value);
        }
        Mapping other(address);
        before = registrations;
        send_page(other.data, value);
        EXPECT_LT(before, registrations) << value;
        before = registrations;
        send_page(other.data, 'z');
        EXPECT_EQ(before, registrations) << value;
        memory.data = other.data;
        other.data  = nullptr;
    }
}

TEST_F(UcpMem, AMessageUnderWayGivesBackWhatIsUnmapped)
{
    if (has_shared_memory()) {
        GTEST_SKIP() << "shared memory registers no message";
    }

    set_up_with("UCX_RNDV_THRESH", "inf");
    const ucp_request_param_t param = {};
    Mapping memory, other;

    send_page(other.data, 'a');
    EXPECT_EQ(UCS_OK, wait(put(to, rkey, *receiver, memory.data,
                               Mapping::SIZE)));
    EXPECT_EQ(UCS_OK, flush(to));
    char *buffer             = memory.data + PAGE;
    ucs_status_ptr_t receive = ucp_tag_recv_nbx(
            receiver->worker, receiver->memory, PAGE, 0, 0, &param);
    memset(buffer, 'c', PAGE);
    ucs_status_ptr_t request = ucp_tag_send_nbx(to, buffer, PAGE, 0, &param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    munmap(memory.data, PAGE);
    Mapping third;
    ucs_status_ptr_t put_other = put(to, rkey, *receiver, third.data, PAGE,
                                     PAGE);
    EXPECT_LT(0u, Mapping::registered_at(buffer));

    EXPECT_EQ(UCS_OK, wait(request));
    EXPECT_EQ(UCS_OK, wait(receive));
    EXPECT_EQ(UCS_OK, wait(put_other));
    EXPECT_EQ(UCS_OK, flush(to));
    EXPECT_EQ(std::string(PAGE, 'c'), std::string(receiver->memory, PAGE));
    EXPECT_EQ(0u, Mapping::registered_at(buffer));
}

/* What is unmapped beside a buffer takes its registration, too */
TEST_F(UcpMem, ARegistrationInUseIsGivenBackAfterwards)
{
    Mapping memory, other;
    memset(memory.data, 'a', Mapping::SIZE);
    EXPECT_EQ(UCS_OK, wait(put(to, rkey, *receiver, memory.data,
                               Mapping::SIZE)));
    EXPECT_EQ(UCS_OK, flush(to));

    char *buffer = memory.data + PAGE;
    memset(buffer, 'b', PAGE);
    ucs_status_ptr_t request = put(to, rkey, *receiver, buffer, PAGE);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    munmap(memory.data, PAGE);
    ucs_status_ptr_t second = put(to, rkey, *receiver, other.data, PAGE, PAGE);
    EXPECT_LT(0u, Mapping::registered_at(buffer));

    EXPECT_EQ(UCS_OK, wait(request));
    EXPECT_EQ(UCS_OK, wait(second));
    EXPECT_EQ(UCS_OK, flush(to));
    EXPECT_EQ(std::string(PAGE, 'b'), std::string(receiver->memory, PAGE));
    EXPECT_EQ(0u, Mapping::registered_at(buffer));
}

#if UCP_API_VERSION >= UCP_VERSION(1, 18)
/** With a second worker in the sender's context. */
class UcpMemInvalidate : public UcpMem {
public:
    void SetUp() override
    {
        UcpMem::SetUp();
        if (!sender) {
            return;
        }
        ucp_worker_params_t params = {};
        ASSERT_EQ(UCS_OK, ucp_worker_create(sender->context, &params, &second));
        const std::vector<char> address = receiver->address();
        ucp_ep_params_t ep_params       = {};
        ep_params.field_mask            = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        ep_params.address =
                reinterpret_cast<const ucp_address_t*>(address.data());
        ASSERT_EQ(UCS_OK, ucp_ep_create(second, &ep_params, &second_to));
        second_rkey = unpack(second_to, *receiver);
    }

    void TearDown() override
    {
        if (sender) {
            ucp_rkey_destroy(second_rkey);
            const ucp_request_param_t param = {};
            EXPECT_EQ(UCS_OK, wait_second(ucp_ep_close_nbx(second_to, &param)));
            ucp_worker_destroy(second);
        }
        UcpMem::TearDown();
    }

    ucs_status_t wait_second(ucs_status_ptr_t request)
    {
        if (!UCS_PTR_IS_PTR(request)) {
            return UCS_PTR_STATUS(request);
        }
        EXPECT_TRUE(progress_until([&] {
            ucp_worker_progress(second);
            return ucp_request_check_status(request) != UCS_INPROGRESS;
        }));
        ucs_status_t status = ucp_request_check_status(request);
        ucp_request_free(request);
        return status;
    }

    /* Put a page by the second worker; behind that of the first one */
    ucs_status_ptr_t put_second(const char *buffer)
    {
        return put(second_to, second_rkey, *receiver, buffer, PAGE, PAGE);
    }

    /* As when a peer must not use a key any more */
    void invalidate(uintptr_t *region, bool &is_gone)
    {
        using function_t = void (*)(ucp_context_h, void*, void (*)(void*),
                                    void*, uint64_t);
        auto function = (function_t)dlsym(RTLD_DEFAULT, "ucp_memh_invalidate");
        ASSERT_NE(nullptr, function);
        function(sender->context, region,
                 [](void *arg) { *static_cast<bool*>(arg) = true; }, &is_gone,
                 0);
    }

    ucp_worker_h second    = nullptr;
    ucp_ep_h second_to     = nullptr;
    ucp_rkey_h second_rkey = nullptr;
};

TEST_F(UcpMemInvalidate, AllWorkersGiveBackWhatIsInvalidated)
{
    Mapping memory;
    bool is_gone = false;

    put_page(memory.data, 'a');
    uintptr_t *region = last_region;
    ASSERT_LE(region[0], (uintptr_t)memory.data);
    ASSERT_LE((uintptr_t)memory.data + PAGE, region[1]);
    EXPECT_EQ(UCS_OK, wait_second(put_second(memory.data)));

    invalidate(region, is_gone);
    EXPECT_TRUE(is_gone);
    EXPECT_EQ(0u, Mapping::registered_at(memory.data));

    put_page(memory.data, 'b');
    EXPECT_EQ(UCS_OK, wait_second(put_second(memory.data)));
    EXPECT_LT(0u, Mapping::registered_at(memory.data));
}

TEST_F(UcpMemInvalidate, WhoUsesItGivesItBackAfterwards)
{
    Mapping memory;
    bool is_gone = false;

    put_page(memory.data, 'a');
    uintptr_t *region = last_region;
    EXPECT_EQ(UCS_OK, wait_second(put_second(memory.data)));
    ucs_status_ptr_t request = put_second(memory.data);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));

    invalidate(region, is_gone);
    EXPECT_FALSE(is_gone);
    EXPECT_LT(0u, Mapping::registered_at(memory.data));

    /* Nobody finds it any more: the first worker has another one */
    put_page(memory.data, 'b');
    EXPECT_NE(region, last_region);
    EXPECT_FALSE(is_gone);

    EXPECT_EQ(UCS_OK, wait_second(request));
    EXPECT_TRUE(is_gone);
    EXPECT_LT(0u, Mapping::registered_at(memory.data));
    put_page(memory.data, 'c');
}
#endif

TEST_F(UcpMem, MoreBuffersThanAreRemembered)
{
    std::vector<std::unique_ptr<Mapping>> buffers;
    std::vector<ucs_status_ptr_t> requests;

    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned i = 0; i < UcpWorker::SIZE / PAGE; ++i) {
            if (round == 0) {
                buffers.push_back(std::make_unique<Mapping>());
            }
            memset(buffers[i]->data, 'a' + i + round, PAGE);
            requests.push_back(put(to, rkey, *receiver, buffers[i]->data, PAGE,
                                   i * PAGE));
        }
        EXPECT_EQ(UCS_OK, flush(to));
        for (ucs_status_ptr_t request : requests) {
            EXPECT_EQ(UCS_OK, wait(request));
        }
        requests.clear();
        for (unsigned i = 0; i < buffers.size(); ++i) {
            ASSERT_EQ(std::string(PAGE, 'a' + i + round),
                      std::string(receiver->memory + i * PAGE, PAGE)) << i;
        }
    }
}

TEST_F(UcpMem, NothingIsLeftOfAWorker)
{
    Mapping memory[3];

    for (const Mapping &each : memory) {
        put_page(each.data, 'a');
    }
    ucp_rkey_destroy(rkey);
    close(*sender, to);
    sender.reset();
    for (const Mapping &each : memory) {
        EXPECT_EQ(0u, Mapping::registered_at(each.data));
    }
}

/* UCX's own thread looks for what was unmapped if that is much, and no worker
 * registers anything */
TEST_F(UcpMem, WhatIsUnmappedIsForgottenWithoutAnotherRegistration)
{
    set_up_with("UCX_RCACHE_MAX_UNRELEASED", "1");
    std::vector<std::unique_ptr<Mapping>> buffers;
    std::vector<char*> addresses;
    for (unsigned i = 0; i < 10; ++i) {
        buffers.push_back(std::make_unique<Mapping>());
        addresses.push_back(buffers[i]->data);
        put_page(addresses[i], 'a');
    }

    /* The first is not remembered any more. The thread is woken by the next
     * memory that is unmapped when there is enough */
    while (!buffers.empty()) {
        buffers.pop_back();
    }
    unsigned turns = 0;
    ASSERT_TRUE(progress_until([&] {
        if ((++turns % 4096) == 0) {
            Mapping wakes;
        }
        return Mapping::registered_at(addresses[0]) == 0;
    }));

    Mapping other(addresses.back());
    const unsigned before = registrations;
    put_page(other.data, 'b');
    EXPECT_LT(before, registrations);
}

/* The child may have none of the pages that are registered (MADV_DONTFORK), so
 * UCX's cache lets go of what is idle, and so must a worker */
TEST_F(UcpMem, NothingIdleIsRegisteredWhenTheProcessForks)
{
    Mapping memory[2];
    for (const Mapping &each : memory) {
        put_page(each.data, 'a');
        EXPECT_LT(0u, Mapping::registered_at(each.data));
    }

    const pid_t child = fork();
    ASSERT_LE(0, child);
    if (child == 0) {
        _exit(0);
    }
    for (const Mapping &each : memory) {
        EXPECT_EQ(0u, Mapping::registered_at(each.data));
    }
    EXPECT_EQ(child, waitpid(child, nullptr, 0));
    put_page(memory[0].data, 'b');
    put_page(memory[1].data, 'c');
}

/* Who limits what the cache keeps means all of it. */
TEST_F(UcpMem, LimitsHold)
{
    set_up_with("UCX_RCACHE_MAX_REGIONS", "2");
    Mapping memory[6];
    size_t left = 0;
    for (const Mapping &each : memory) {
        put_page(each.data, 'a');
    }
    for (const Mapping &each : memory) {
        left += Mapping::registered_at(each.data) > 0;
    }
    EXPECT_GE(3u, left);
}

/** Workers of threads of their own, which share a context, and so all that is
 *  registered. */
class UcpMemThreads : public testing::Test {
public:
    static constexpr unsigned THREADS = 4;
    static constexpr unsigned ROUNDS  = 200;
    static constexpr size_t   LENGTH  = 2048;

    void SetUp() override
    {
        if (!is_ucx_since(18)) {
            GTEST_SKIP() << "this UCX has no UCX_OPT_MEM";
        }
        env.set("UCX_ZCOPY_THRESH", "1");
        ucp_params_t params      = {};
        params.field_mask        = UCP_PARAM_FIELD_FEATURES |
                                   UCP_PARAM_FIELD_MT_WORKERS_SHARED;
        params.features          = UCP_FEATURE_TAG;
        params.mt_workers_shared = 1;
        ucp_config_t *config;
        ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
        ASSERT_EQ(UCS_OK, ucp_init(&params, config, &context));
        ucp_config_release(config);
    }

    void TearDown() override
    {
        if (context != nullptr) {
            ucp_cleanup(context);
        }
    }

    /* The worker sends to itself: it progresses both sides */
    static bool wait(ucp_worker_h worker, ucs_status_ptr_t request)
    {
        if (!UCS_PTR_IS_PTR(request)) {
            return UCS_PTR_STATUS(request) == UCS_OK;
        }

        ucs_status_t status;
        do {
            ucp_worker_progress(worker);
            status = ucp_request_check_status(request);
        } while (status == UCS_INPROGRESS);
        ucp_request_free(request);
        return status == UCS_OK;
    }

    void connect_to_itself(ucp_worker_h &worker, ucp_ep_h &ep)
    {
        ucp_worker_params_t worker_params = {};
        worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
        ASSERT_EQ(UCS_OK, ucp_worker_create(context, &worker_params, &worker));

        ucp_address_t *address;
        size_t length;
        ASSERT_EQ(UCS_OK, ucp_worker_get_address(worker, &address, &length));
        ucp_ep_params_t ep_params = {};
        ep_params.field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        ep_params.address         = address;
        ASSERT_EQ(UCS_OK, ucp_ep_create(worker, &ep_params, &ep));
        ucp_worker_release_address(worker, address);
    }

    static void send_to_itself(ucp_worker_h worker, ucp_ep_h ep,
                               const char *from)
    {
        const ucp_request_param_t param = {};
        char to[LENGTH];
        ucs_status_ptr_t receive = ucp_tag_recv_nbx(worker, to, LENGTH, 0, 0,
                                                    &param);
        ASSERT_TRUE(wait(worker, ucp_tag_send_nbx(ep, from, LENGTH, 0,
                                                  &param)));
        ASSERT_TRUE(wait(worker, receive));
        ASSERT_EQ(0, memcmp(from, to, LENGTH));
    }

    static void close_worker(ucp_worker_h worker, ucp_ep_h ep)
    {
        ucp_request_param_t close = {};
        ASSERT_TRUE(wait(worker, ucp_ep_close_nbx(ep, &close)));
        ucp_worker_destroy(worker);
    }

    /* Each sends to itself out of memory that all have registered, and now and
     * then out of memory that it maps for that */
    void body(unsigned index, const Mapping &common)
    {
        ucp_worker_h worker;
        ucp_ep_h ep = nullptr;
        ASSERT_NO_FATAL_FAILURE(connect_to_itself(worker, ep));

        for (unsigned i = 0; i < ROUNDS; ++i) {
            Mapping own;
            const char *from = ((i % 4) == 0) ? own.data :
                               common.data + index * LENGTH;
            memset(own.data, 'a' + (i % 26), LENGTH);
            ASSERT_NO_FATAL_FAILURE(send_to_itself(worker, ep, from)) << i;
        }

        close_worker(worker, ep);
    }

    UcpEnv env;
    ucp_context_h context = nullptr;
};

/* What they send is read by the peer, if it says so */
class UcpMemThreadsBoth : public UcpMemThreads,
                          public testing::WithParamInterface<const char*> {
public:
    void SetUp() override
    {
        env.set("UCX_RNDV_THRESH", GetParam());
        UcpMemThreads::SetUp();
    }
};

INSTANTIATE_TEST_SUITE_P(Rendezvous, UcpMemThreadsBoth,
                         testing::Values("inf", "0"));

TEST_P(UcpMemThreadsBoth, EachRemembersWhatAllUse)
{
    Mapping common;
    for (size_t i = 0; i < Mapping::SIZE; ++i) {
        common.data[i] = static_cast<char>(i % 251);
    }

    std::vector<std::thread> threads;
    for (unsigned i = 0; i < THREADS; ++i) {
        threads.emplace_back([&, i] { body(i, common); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

/* One thread registers memory, for which UCX's cache lets go of two buffers
 * that were unmapped at once. While it has only come to the first, another
 * thread sends from new memory where the second was. */
TEST_P(UcpMemThreadsBoth, WhatIsJustBeingForgottenIsNotSent)
{
    if (has_shared_memory()) {
        GTEST_SKIP() << "shared memory registers no message";
    }

    static constexpr size_t PAGE = 4096;
    Mapping memory, third;
    char *second = memory.data + 2 * PAGE;
    std::atomic<bool> is_time{false}, is_sent{false};

    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                        UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = memory.data;
    params.length     = PAGE;
    ucp_mem_h memh;
    ASSERT_EQ(UCS_OK, ucp_mem_map(context, &params, &memh));
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(context, memh));
    ASSERT_LT(0u, Mapping::registered_at(memory.data));

    std::atomic<bool> is_remembered{false};
    std::thread sender([&] {
        ucp_worker_h worker;
        ucp_ep_h ep = nullptr;
        connect_to_itself(worker, ep);
        /* The first messages connect, and have the endpoint ready */
        for (unsigned i = 0; i < 4; ++i) {
            send_to_itself(worker, ep, second);
        }
        is_remembered = true;
        while (!is_time) {
            std::this_thread::yield();
        }
        send_to_itself(worker, ep, second);
        is_sent = true;
        close_worker(worker, ep);
    });
    while (!is_remembered) {
        std::this_thread::yield();
    }
    EXPECT_LT(0u, Mapping::registered_at(second));

    char *address = memory.data;
    memory.unmap();
    Mapping other(address);
    {
        std::lock_guard<std::mutex> guard(registered_lock);
        given_back       = address;
        while_given_back = [&] {
            is_time = true;
            /* If it waits for this thread, as it should, it will not be sent */
            for (unsigned i = 0; (i < 500) && !is_sent; ++i) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            EXPECT_FALSE(is_sent);
        };
    }
    params.address = third.data;
    EXPECT_EQ(UCS_OK, ucp_mem_map(context, &params, &memh));
    EXPECT_TRUE(is_time);
    is_time = true;
    sender.join();
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(context, memh));
}
