/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_sep_uct.h"

#include <stdlib.h>
#include <ucs/debug/log.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <stdexcept>

extern char **environ;

namespace sep_uct_test {

/* No test waits that long for anything that happens */
static const double patience = 60.0;

static const char *env_peer_fd     = "SEP_TEST_PEER_FD";
static const char *env_peer_ifaces = "SEP_TEST_PEER_IFACES";
static const char *env_peer_config = "SEP_TEST_PEER_CONFIG";

static double now()
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

bytes pattern(size_t length, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
    bytes result(length);

    for (auto &byte : result) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        byte   = state >> 32;
    }
    return result;
}

/*
 * memory
 */

memory::memory(uct_md_h md, size_t length) : m_md(md), m_buffer(length)
{
    ucs_status_t status;

    status = uct_md_mem_reg(m_md, m_buffer.data(), length,
                            UCT_MD_MEM_ACCESS_ALL, &m_memh);
    if (status != UCS_OK) {
        throw std::runtime_error("uct_md_mem_reg failed");
    }
}

memory::~memory()
{
    uct_md_mem_dereg(m_md, m_memh);
}

bytes memory::packed_rkey()
{
    uct_md_attr_t attr;

    EXPECT_EQ(UCS_OK, uct_md_query(m_md, &attr));
    bytes packed(attr.rkey_packed_size);
    EXPECT_EQ(UCS_OK, uct_md_mkey_pack(m_md, m_memh, packed.data()));
    return packed;
}

/*
 * entity
 */

/* Component and first memory domain of the transport */
static bool find_md(uct_component_h *component_p, std::string *md_name)
{
    uct_component_h *components;
    unsigned num_components;
    bool found = false;

    if (uct_query_components(&components, &num_components) != UCS_OK) {
        return false;
    }

    for (unsigned i = 0; (i < num_components) && !found; ++i) {
        uct_component_attr_t attr;

        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                          UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        if ((uct_component_query(components[i], &attr) != UCS_OK) ||
            (strcmp(attr.name, "sep") != 0) || (attr.md_resource_count == 0)) {
            continue;
        }

        std::vector<uct_md_resource_desc_t> mds(attr.md_resource_count);
        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds.data();
        if (uct_component_query(components[i], &attr) == UCS_OK) {
            *component_p = components[i];
            *md_name     = mds[0].md_name;
            found        = true;
        }
    }

    uct_release_component_list(components);
    return found;
}

bool entity::has_device()
{
    uct_component_h component;
    std::string md_name;

    if (find_md(&component, &md_name)) {
        return true;
    }

    /* where there has to be a device, not finding the transport is no reason
     * to skip what tests it */
    EXPECT_TRUE(getenv("SEP_TEST_NEED_DEVICE") == NULL)
            << "SEP_TEST_NEED_DEVICE is set and there is no sep_mlx5";
    return false;
}

std::unique_ptr<entity> entity::create(const settings &config)
{
    std::unique_ptr<entity> self(new entity);

    return (self->open(config) == UCS_OK) ? std::move(self) : nullptr;
}

ucs_status_t entity::open(const settings &config)
{
    uct_iface_params_t params;
    uct_md_config_t *md_config;
    uct_iface_config_t *iface_config;
    std::string md_name, dev_name;
    ucs_status_t status;

    if (!find_md(&m_component, &md_name)) {
        return UCS_ERR_NO_DEVICE;
    }
    dev_name = md_name + ":1";

    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &m_async);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_worker_create(m_async, UCS_THREAD_MODE_SINGLE, &m_worker);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_md_config_read(m_component, NULL, NULL, &md_config);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_md_open(m_component, md_name.c_str(), md_config, &m_md);
    uct_config_release(md_config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_md_iface_config_read(m_md, "sep_mlx5", NULL, NULL,
                                      &iface_config);
    if (status != UCS_OK) {
        return status;
    }
    for (auto &setting : config) {
        status = uct_config_modify(iface_config, setting.first.c_str(),
                                   setting.second.c_str());
        if (status != UCS_OK) {
            uct_config_release(iface_config);
            return status;
        }
    }

    params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                  UCT_IFACE_PARAM_FIELD_DEVICE |
                                  UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                                  UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                  UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                                  UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = "sep_mlx5";
    params.mode.device.dev_name = dev_name.c_str();
    params.rx_headroom          = 24;
    params.err_handler          = err_handler;
    params.err_handler_arg      = this;
    params.err_handler_flags    = 0;
    status = uct_iface_open(m_md, m_worker, &params, iface_config, &m_iface);
    uct_config_release(iface_config);
    if (status != UCS_OK) {
        return status;
    }

    for (unsigned id = 0; id < UCT_AM_ID_MAX; ++id) {
        m_am_args[id].self = this;
        m_am_args[id].id   = id;
        status = uct_iface_set_am_handler(m_iface, id, am_handler,
                                          &m_am_args[id], 0);
        if (status != UCS_OK) {
            return status;
        }
    }

    uct_iface_progress_enable(m_iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return uct_iface_query(m_iface, &m_attr);
}

entity::~entity()
{
    release_descs();
    while (!m_eps.empty()) {
        destroy(m_eps.back());
    }
    if (m_iface != nullptr) {
        uct_iface_close(m_iface);
    }
    if (m_md != nullptr) {
        uct_md_close(m_md);
    }
    if (m_worker != nullptr) {
        uct_worker_destroy(m_worker);
    }
    if (m_async != nullptr) {
        ucs_async_context_destroy(m_async);
    }
}

bool entity::wait(const std::function<bool()> &condition)
{
    double deadline = now() + patience;

    while (!condition()) {
        if ((progress() == 0) && (now() > deadline)) {
            ADD_FAILURE() << "waited for " << patience << " s";
            return false;
        }
    }
    return true;
}

address entity::addr()
{
    address result;

    result.dev.resize(m_attr.device_addr_len);
    result.iface.resize(m_attr.iface_addr_len);
    EXPECT_EQ(UCS_OK,
              uct_iface_get_device_address(m_iface,
                                           (uct_device_addr_t*)
                                           result.dev.data()));
    EXPECT_EQ(UCS_OK, uct_iface_get_address(m_iface, (uct_iface_addr_t*)
                                                     result.iface.data()));
    return result;
}

ucs_status_t entity::try_connect(const address &remote, uct_ep_h *ep_p)
{
    uct_ep_params_t params;
    ucs_status_t status;

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                        UCT_EP_PARAM_FIELD_DEV_ADDR |
                        UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface      = m_iface;
    params.dev_addr   = (const uct_device_addr_t*)remote.dev.data();
    params.iface_addr = (const uct_iface_addr_t*)remote.iface.data();
    status            = uct_ep_create(&params, ep_p);
    if (status == UCS_OK) {
        m_eps.push_back(*ep_p);
    }
    return status;
}

uct_ep_h entity::connect(const address &remote)
{
    uct_ep_h ep = nullptr;

    EXPECT_EQ(UCS_OK, try_connect(remote, &ep));
    return ep;
}

void entity::destroy(uct_ep_h ep)
{
    for (auto it = m_eps.begin(); it != m_eps.end(); ++it) {
        if (*it == ep) {
            m_eps.erase(it);
            uct_ep_destroy(ep);
            return;
        }
    }
}

bool entity::flush()
{
    return wait([this]() {
        return uct_iface_flush(m_iface, 0, NULL) == UCS_OK;
    });
}

ucs_status_t entity::am_handler(void *arg, void *data, size_t length,
                                unsigned flags)
{
    am_arg *am   = (am_arg*)arg;
    entity *self = am->self;

    if ((am->id >= 8) && (flags & UCT_CB_PARAM_FLAG_DESC)) {
        /* The headroom in front is ours to write to */
        memset((char*)data - 24, 0xee, 24);
        self->descs.emplace_back((char*)data - 24, length);
        return UCS_INPROGRESS;
    }

    self->messages.push_back({am->id, bytes((uint8_t*)data,
                                            (uint8_t*)data + length)});
    return UCS_OK;
}

void entity::release_descs()
{
    for (auto &desc : descs) {
        uct_iface_release_desc(desc.first);
    }
    descs.clear();
}

ucs_status_t
entity::err_handler(void *arg, uct_ep_h ep, ucs_status_t status)
{
    entity *self = (entity*)arg;

    self->failures.push_back({ep, status});
    if (self->destroy_failed) {
        self->destroy(ep);
    }
    return UCS_OK;
}

/*
 * The other process. A request is a header and a payload, and so is the reply.
 */

enum {
    OP_ADDR,
    OP_EXPOSE,
    OP_READ,
    OP_SEND,
    OP_NUM_RECEIVED,
    OP_RECEIVED,
    OP_RELEASE,
    OP_FREEZE,
    OP_NUM_QPS,
    OP_NUM_FAILURES
};

struct header {
    uint32_t op;
    uint32_t length;
    uint64_t a, b, c;
};

static void write_all(int fd, const void *data, size_t length)
{
    while (length > 0) {
        ssize_t ret = send(fd, data, length, MSG_NOSIGNAL);
        if (ret <= 0) {
            throw std::runtime_error("the other process has gone");
        }
        data    = (const char*)data + ret;
        length -= ret;
    }
}

static void read_all(int fd, void *data, size_t length)
{
    while (length > 0) {
        ssize_t ret = recv(fd, data, length, 0);
        if (ret <= 0) {
            throw std::runtime_error("the other process has gone");
        }
        data    = (char*)data + ret;
        length -= ret;
    }
}

/* Two addresses as one string of bytes */
static bytes pack_addr(const address &addr)
{
    bytes result(1, addr.dev.size());

    result.insert(result.end(), addr.dev.begin(), addr.dev.end());
    result.insert(result.end(), addr.iface.begin(), addr.iface.end());
    return result;
}

static address unpack_addr(const bytes &packed)
{
    return {bytes(packed.begin() + 1, packed.begin() + 1 + packed[0]),
            bytes(packed.begin() + 1 + packed[0], packed.end())};
}

static size_t pack_bytes(void *dest, void *arg)
{
    const bytes *data = (const bytes*)arg;

    std::copy(data->begin(), data->end(), (uint8_t*)dest);
    return data->size();
}

/* Payload of message number seq */
static bytes sequence_message(uint64_t seq, size_t length)
{
    bytes data = pattern(length, seq);

    memcpy(data.data(), &seq, std::min(length, sizeof(seq)));
    return data;
}

/* Body of the other process */
class server {
public:
    server(int fd, unsigned num_ifaces, const settings &config) : m_fd(fd)
    {
        for (unsigned i = 0; i < num_ifaces; ++i) {
            m_ifaces.push_back(entity::create(config));
            if (m_ifaces.back() == nullptr) {
                throw std::runtime_error("no device");
            }
        }
    }

    void run()
    {
        unsigned idle = 0;

        for (;;) {
            struct pollfd pfd = {m_fd, POLLIN, 0};
            unsigned count    = m_frozen ? 0 : work();
            int timeout       = 0;

            idle = (count > 0) ? 0 : (idle + 1);
            if (m_frozen) {
                timeout = -1;
            } else if (idle > 1000) {
                timeout = 1; /* Leave the processor to those who need it */
            }

            if ((poll(&pfd, 1, timeout) > 0) && !serve()) {
                return;
            }
        }
    }

private:
    struct job {
        uct_ep_h ep;
        uint64_t next, count, length;
        uint8_t  id;
    };

    unsigned work()
    {
        unsigned count = 0;

        for (auto &iface : m_ifaces) {
            count += iface->progress();
        }

        while (!m_jobs.empty()) {
            job &first = m_jobs.front();
            bytes data = sequence_message(first.next, first.length);
            ssize_t ret;

            ret = uct_ep_am_bcopy(first.ep, first.id, pack_bytes, &data, 0);
            if (ret < 0) {
                break;
            }
            ++count;
            if (++first.next == first.count) {
                m_jobs.pop_front();
            }
        }

        return count;
    }

    /* One request; false if the other side has gone */
    bool serve()
    {
        header request, reply;
        bytes in, out;

        if (recv(m_fd, &request, 1, MSG_PEEK) <= 0) {
            return false;
        }

        read_all(m_fd, &request, sizeof(request));
        in.resize(request.length);
        read_all(m_fd, in.data(), in.size());

        m_frozen = false;
        memset(&reply, 0, sizeof(reply));
        handle(request, in, &reply.a, &out);
        reply.op     = request.op;
        reply.length = out.size();
        write_all(m_fd, &reply, sizeof(reply));
        write_all(m_fd, out.data(), out.size());
        return true;
    }

    void handle(const header &request, const bytes &in, uint64_t *result,
                bytes *out)
    {
        entity &iface = *m_ifaces.at((request.op == OP_SEND) ? 0 : request.c);
        bytes init;

        switch (request.op) {
        case OP_ADDR:
            *out = pack_addr(iface.addr());
            break;
        case OP_EXPOSE:
            m_memory.emplace_back(new memory(iface.md(), request.a));
            init = pattern(request.a, request.b);
            memcpy(m_memory.back()->ptr(), init.data(), init.size());
            *result = m_memory.back()->va();
            *out    = m_memory.back()->packed_rkey();
            break;
        case OP_READ:
            out->assign(m_memory.back()->ptr() + request.a,
                        m_memory.back()->ptr() + request.a + request.b);
            break;
        case OP_SEND:
            m_jobs.push_back({connect(in), 0, request.a, request.b,
                              (uint8_t)request.c});
            break;
        case OP_NUM_RECEIVED:
            *result = iface.messages.size() + iface.descs.size();
            break;
        case OP_RECEIVED:
            *result = iface.messages.at(request.a).id;
            *out    = iface.messages.at(request.a).data;
            break;
        case OP_RELEASE:
            *result = release(iface);
            break;
        case OP_FREEZE:
            m_frozen = true;
            break;
        case OP_NUM_QPS:
            *result = iface.sep()->conn.num_qp;
            break;
        case OP_NUM_FAILURES:
            *result = iface.failures.size();
            break;
        }
    }

    uct_ep_h connect(const bytes &packed)
    {
        auto it = m_eps.find(packed);

        if (it == m_eps.end()) {
            it = m_eps.emplace(packed, m_ifaces[0]->connect(
                                               unpack_addr(packed))).first;
        }
        return it->second;
    }

    /* Kept descriptors hold messages made of their own sequence number */
    static uint64_t release(entity &iface)
    {
        uint64_t intact = 0;

        for (auto &desc : iface.descs) {
            uint8_t *data = (uint8_t*)desc.first + 24;
            uint64_t seq;

            memcpy(&seq, data, sizeof(seq));
            intact += (bytes(data, data + desc.second) ==
                       sequence_message(seq, desc.second));
        }
        iface.release_descs();
        iface.messages.clear();
        return intact;
    }

    int                                  m_fd;
    bool                                 m_frozen = false;
    std::vector<std::unique_ptr<memory>> m_memory;
    std::deque<job>                      m_jobs;
    std::map<bytes, uct_ep_h>            m_eps;
    std::vector<std::unique_ptr<entity>> m_ifaces;

public:
    ~server()
    {
        m_memory.clear(); /* Before the memory domains */
    }
};

static std::string pack_settings(const settings &config)
{
    std::string result;

    for (auto &setting : config) {
        result += setting.first + "=" + setting.second + ";";
    }
    return result;
}

static settings unpack_settings(const std::string &packed)
{
    settings result;
    size_t pos = 0, end;

    while ((end = packed.find(';', pos)) != std::string::npos) {
        size_t equal = packed.find('=', pos);
        result.emplace_back(packed.substr(pos, equal - pos),
                            packed.substr(equal + 1, end - equal - 1));
        pos = end + 1;
    }
    return result;
}

/* Not a test: what the other process runs */
TEST(DISABLED_test_sep_uct_peer, run)
{
    const char *fd = getenv(env_peer_fd);

    if (fd == NULL) {
        GTEST_SKIP() << "only for a process that another test has started";
    }

    server(atoi(fd), atoi(getenv(env_peer_ifaces)),
           unpack_settings(getenv(env_peer_config))).run();
}

peer::peer(unsigned num_ifaces, const settings &config)
{
    std::vector<std::string> env;
    std::vector<char*> envp;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        throw std::runtime_error("socketpair failed");
    }

    for (char **e = environ; *e != NULL; ++e) {
        env.push_back(*e);
    }
    env.push_back(std::string(env_peer_fd) + "=" + std::to_string(fds[1]));
    env.push_back(std::string(env_peer_ifaces) + "=" +
                  std::to_string(num_ifaces));
    env.push_back(std::string(env_peer_config) + "=" + pack_settings(config));
    for (auto &e : env) {
        envp.push_back(&e[0]);
    }
    envp.push_back(NULL);

    char exe[] = "/proc/self/exe";
    char filter[] = "--gtest_filter=DISABLED_test_sep_uct_peer.run";
    char disabled[] = "--gtest_also_run_disabled_tests";
    char brief[] = "--gtest_brief=1";
    char output[] = "--gtest_output=";
    char *argv[] = {exe, filter, disabled, brief, output, NULL};
    posix_spawn_file_actions_t actions;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                     O_WRONLY, 0); /* Errors are on stderr */
    int ret = posix_spawn(&m_pid, exe, &actions, NULL, argv, envp.data());
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    m_fd = fds[0];
    if (ret != 0) {
        m_pid = -1;
        throw std::runtime_error("could not start the other process");
    }
}

peer::~peer()
{
    int status = 0;

    close(m_fd);
    if (m_pid > 0) {
        EXPECT_EQ(m_pid, waitpid(m_pid, &status, 0));
        EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0))
                << "the other process ended with status " << status;
    }
}

void peer::kill()
{
    int status;

    ::kill(m_pid, SIGKILL);
    EXPECT_EQ(m_pid, waitpid(m_pid, &status, 0));
    m_pid = -1;
}

uint64_t peer::call(uint32_t op, uint64_t a, uint64_t b, uint64_t c,
                    const bytes &in, bytes *out)
{
    header request = {op, (uint32_t)in.size(), a, b, c};
    header reply;
    bytes payload;

    write_all(m_fd, &request, sizeof(request));
    write_all(m_fd, in.data(), in.size());
    read_all(m_fd, &reply, sizeof(reply));
    payload.resize(reply.length);
    read_all(m_fd, payload.data(), payload.size());
    if (out != nullptr) {
        *out = payload;
    }
    return reply.a;
}

address peer::addr(unsigned iface)
{
    bytes packed;

    call(OP_ADDR, 0, 0, iface, bytes(), &packed);
    return unpack_addr(packed);
}

remote_memory peer::expose(size_t length, uint64_t seed)
{
    uct_component_h component;
    std::string md_name;
    remote_memory result;
    bytes packed;

    EXPECT_TRUE(find_md(&component, &md_name));
    result.va = call(OP_EXPOSE, length, seed, 0, bytes(), &packed);
    EXPECT_EQ(UCS_OK, uct_rkey_unpack(component, packed.data(), &result.rkey));
    return result;
}

bytes peer::read(size_t offset, size_t length)
{
    bytes result;

    call(OP_READ, offset, length, 0, bytes(), &result);
    return result;
}

void peer::send(const address &to, unsigned count, size_t length, uint8_t id)
{
    call(OP_SEND, count, length, id, pack_addr(to));
}

uint64_t peer::num_received(unsigned iface)
{
    return call(OP_NUM_RECEIVED, 0, 0, iface);
}

message peer::received(uint64_t index, unsigned iface)
{
    message result;

    result.id = call(OP_RECEIVED, index, 0, iface, bytes(), &result.data);
    return result;
}

uint64_t peer::release(unsigned iface)
{
    return call(OP_RELEASE, 0, 0, iface);
}

void peer::freeze()
{
    call(OP_FREEZE);
}

uint64_t peer::num_qps(unsigned iface)
{
    return call(OP_NUM_QPS, 0, 0, iface);
}

uint64_t peer::num_failures(unsigned iface)
{
    return call(OP_NUM_FAILURES, 0, 0, iface);
}

/*
 * completion
 */

static void completion_func(uct_completion_t *comp)
{
    completion *self = ucs_container_of(comp, completion, comp);

    self->status = comp->status;
    ++self->calls;
}

completion::completion()
{
    comp.func   = completion_func;
    comp.count  = 1;
    comp.status = UCS_OK;
}

/*
 * Fixtures
 */

void test_sep_uct::SetUp()
{
    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }
    start(settings());
}

void test_sep_uct::TearDown()
{
    m_eps.clear();
    m_local.reset();
    m_peer.reset();
}

void test_sep_uct::start(const settings &config, unsigned num_ifaces)
{
    TearDown();
    m_peer.reset(new peer(num_ifaces, config));
    m_local = entity::create(config);
    ASSERT_TRUE(m_local != nullptr);
    for (unsigned i = 0; i < num_ifaces; ++i) {
        m_eps.push_back(m_local->connect(m_peer->addr(i)));
    }
}

ucs_status_t test_sep_uct::retry(const std::function<ucs_status_t()> &op)
{
    ucs_status_t status = UCS_ERR_NO_RESOURCE;

    m_local->wait([&]() {
        status = op();
        return status != UCS_ERR_NO_RESOURCE;
    });
    return status;
}

ucs_status_t test_sep_uct::wait(completion &comp)
{
    m_local->wait([&]() { return comp.calls > 0; });
    EXPECT_EQ(1u, comp.calls);
    return comp.status;
}

void test_sep_uct_post::SetUp()
{
    if (!entity::has_device()) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }
    start({{"TX_POST", GetParam()}});
}

static ucs_log_func_rc_t
hide_errors(const char *file, unsigned line, const char *function,
            ucs_log_level_t level, const ucs_log_component_config_t *comp_conf,
            const char *message, va_list ap)
{
    return (level <= UCS_LOG_LEVEL_WARN) ? UCS_LOG_FUNC_RC_STOP :
                                           UCS_LOG_FUNC_RC_CONTINUE;
}

expect_errors::expect_errors()
{
    ucs_log_push_handler(hide_errors);
}

expect_errors::~expect_errors()
{
    ucs_log_pop_handler();
}

} // namespace sep_uct_test
