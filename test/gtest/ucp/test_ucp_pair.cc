/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_pair.h>

#include <common/patience.h>

#include <chrono>
#include <cstdlib>
#include <cstring>


static const ucp_request_param_t no_param = {};

/* Setting up cannot be checked with ASSERT in a constructor. */
static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        throw std::runtime_error(std::string(what) + ": " +
                                 ucs_status_string(status));
    }
}

bool has_shared_memory()
{
    const char *tls = getenv("UCX_TLS");

    return (tls != nullptr) && (strstr(tls, "shm") != nullptr);
}

bool is_ucx_since(unsigned minor)
{
    unsigned major, its_minor, release;

    ucp_get_version(&major, &its_minor, &release);
    return (major > 1) || (its_minor >= minor);
}

UcpWorker::UcpWorker(ucs_thread_mode_t mode, uint64_t features)
{
    ucp_params_t params = {};
    params.field_mask   = UCP_PARAM_FIELD_FEATURES;
    params.features     = UCP_FEATURE_RMA | UCP_FEATURE_AMO32 |
                          UCP_FEATURE_AMO64 | UCP_FEATURE_TAG | features;
    ucp_config_t *config;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucs_status_t status = ucp_init(&params, config, &context);
    ucp_config_release(config);
    check(status, "ucp_init");

    ucp_worker_params_t worker_params = {};
    worker_params.field_mask          = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode         = mode;
    check(ucp_worker_create(context, &worker_params, &worker),
          "ucp_worker_create");

    ucp_mem_map_params_t mem_params = {};
    mem_params.field_mask           = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                      UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    mem_params.length               = SIZE;
    mem_params.flags                = UCP_MEM_MAP_ALLOCATE;
    check(ucp_mem_map(context, &mem_params, &memh), "ucp_mem_map");

    ucp_mem_attr_t attr = {};
    attr.field_mask     = UCP_MEM_ATTR_FIELD_ADDRESS;
    check(ucp_mem_query(memh, &attr), "ucp_mem_query");
    memory = static_cast<char*>(attr.address);
    memset(memory, 0, SIZE);
}

UcpWorker::~UcpWorker()
{
    ucp_mem_unmap(context, memh);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

std::vector<char> UcpWorker::address() const
{
    ucp_address_t *address;
    size_t length;
    check(ucp_worker_get_address(worker, &address, &length), "address");
    const char *bytes = reinterpret_cast<const char*>(address);
    std::vector<char> copy(bytes, bytes + length);
    ucp_worker_release_address(worker, address);
    return copy;
}

std::vector<char> UcpWorker::packed_rkey() const
{
    void *buffer;
    size_t length;
    check(ucp_rkey_pack(context, memh, &buffer, &length), "ucp_rkey_pack");
    const char *bytes = static_cast<const char*>(buffer);
    std::vector<char> copy(bytes, bytes + length);
    ucp_rkey_buffer_release(buffer);
    return copy;
}

void UcpPair::SetUp()
{
    sender   = std::make_unique<UcpWorker>();
    receiver = std::make_unique<UcpWorker>();
}

void UcpPair::TearDown()
{
    sender.reset();
    receiver.reset();
}

void UcpPair::count_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ++static_cast<UcpPair*>(arg)->errors;
}

ucp_ep_h UcpPair::connect(UcpWorker &from, UcpWorker &to,
                          ucp_err_handling_mode_t mode)
{
    const std::vector<char> address = to.address();
    ucp_ep_params_t params          = {};
    params.field_mask               = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode                 = mode;
    params.err_handler.cb           = count_error;
    params.err_handler.arg          = this;
    ucp_ep_h ep                     = nullptr;
    EXPECT_EQ(UCS_OK, ucp_ep_create(from.worker, &params, &ep));
    return ep;
}

ucp_rkey_h UcpPair::unpack(ucp_ep_h ep, UcpWorker &owner)
{
    ucp_rkey_h rkey = nullptr;
    EXPECT_EQ(UCS_OK,
              ucp_ep_rkey_unpack(ep, owner.packed_rkey().data(), &rkey));
    return rkey;
}

void UcpPair::close(UcpWorker &worker, ucp_ep_h ep, unsigned mode)
{
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags               = (mode == UCP_EP_CLOSE_MODE_FORCE) ?
                                UCP_EP_CLOSE_FLAG_FORCE : 0;
    wait(ucp_ep_close_nbx(ep, &param));
}

void UcpPair::progress()
{
    if (sender) {
        ucp_worker_progress(sender->worker);
    }
    if (receiver) {
        ucp_worker_progress(receiver->worker);
    }
}

bool UcpPair::progress_until(const std::function<bool()> &condition)
{
    using clock         = std::chrono::steady_clock;
    const auto deadline = clock::now() +
                          std::chrono::seconds(patience::seconds());
    while (!condition()) {
        progress();
        if (clock::now() > deadline) {
            return false;
        }
    }
    return true;
}

ucs_status_t UcpPair::wait(ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }

    ucs_status_t status = UCS_INPROGRESS;
    EXPECT_TRUE(progress_until([&] {
        status = ucp_request_check_status(request);
        return status != UCS_INPROGRESS;
    })) << "the request is never completed";
    ucp_request_free(request);
    return status;
}

ucs_status_ptr_t UcpPair::put(ucp_ep_h ep, ucp_rkey_h rkey, UcpWorker &target,
                              const void *data, size_t size, size_t offset)
{
    return ucp_put_nbx(ep, data, size,
                       reinterpret_cast<uintptr_t>(target.memory) + offset,
                       rkey, &no_param);
}

ucs_status_t UcpPair::flush(ucp_ep_h ep)
{
    return wait(ucp_ep_flush_nbx(ep, &no_param));
}
