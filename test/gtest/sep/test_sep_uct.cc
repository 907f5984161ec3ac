/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <stdlib.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <mutex>
#include <stdexcept>

namespace sep_uct_test {

const settings impatient = {
    {"TIMEOUT", "10ms"},
    {"RETRY_COUNT", "1"}
};

const settings hasty = {
    {"TIMEOUT", "10ms"},
    {"RETRY_COUNT", "1"},
    {"CM_TIMEOUT", "40ms"},
    {"CM_RETRY_COUNT", "3"}
};

static double now()
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

std::vector<uct_sep_category_row_t> categories()
{
    return {uct_sep_category_rows,
            uct_sep_category_rows + UCT_SEP_CATEGORY_AUTO};
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

bool find_md(uct_component_h *component_p, std::string *md_name)
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

std::unique_ptr<entity>
entity::create(const settings &config, const settings &md_config)
{
    std::unique_ptr<entity> self(new entity);

    return (self->open(config, nullptr, md_config) == UCS_OK) ?
           std::move(self) : nullptr;
}

std::unique_ptr<entity> entity::create(entity &other, const settings &config,
                                       const editor &edit, bool is_progressed)
{
    std::unique_ptr<entity> self(new entity);

    return (self->open(config, other.m_md, settings(), edit, is_progressed) ==
            UCS_OK) ?
           std::move(self) : nullptr;
}

ucs_status_t
modify(void *config, const std::string &name, const std::string &value)
{
    ucs_status_t status = uct_config_modify(config, name.c_str(),
                                            value.c_str());

    return (status != UCS_ERR_NO_ELEM) ?
           status :
           uct_config_modify(config, ("SEP_" + name).c_str(), value.c_str());
}

static ucs_status_t modify(void *config, const settings &values)
{
    for (auto &value : values) {
        ucs_status_t status = modify(config, value.first, value.second);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

ucs_status_t entity::open_md(const settings &config)
{
    uct_md_config_t *md_config;
    std::string md_name;
    ucs_status_t status;

    if (!find_md(&m_component, &md_name)) {
        return UCS_ERR_NO_DEVICE;
    }

    status = uct_md_config_read(m_component, NULL, NULL, &md_config);
    if (status != UCS_OK) {
        return status;
    }

    status = modify(md_config, config);
    if (status == UCS_OK) {
        status    = uct_md_open(m_component, md_name.c_str(), md_config, &m_md);
        m_owns_md = (status == UCS_OK);
    }
    uct_config_release(md_config);
    return status;
}

ucs_status_t entity::open(const settings &config, uct_md_h md,
                          const settings &md_config, const editor &edit,
                          bool is_progressed)
{
    uct_iface_params_t params;
    uct_iface_config_t *iface_config;
    std::string md_name, dev_name;
    ucs_status_t status;

    if (!find_md(&m_component, &md_name)) {
        return UCS_ERR_NO_DEVICE;
    }
    dev_name = md_name + ":1";

    m_md   = md;
    status = (md == nullptr) ? open_md(md_config) : UCS_OK;
    if (status != UCS_OK) {
        return status;
    }

    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &m_async);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_worker_create(m_async, UCS_THREAD_MODE_SINGLE, &m_worker);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_md_iface_config_read(m_md, "sep_mlx5", NULL, NULL,
                                      &iface_config);
    if (status != UCS_OK) {
        return status;
    }
    status = modify(iface_config, config);
    if (status != UCS_OK) {
        uct_config_release(iface_config);
        return status;
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
    if (edit) {
        edit(params);
    }
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

    if (is_progressed) {
        uct_iface_progress_enable(m_iface,
                                  UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    }
    return uct_iface_query(m_iface, &m_attr);
}

entity::~entity()
{
    release_descs();
    while (!m_eps.empty()) {
        destroy(m_eps.back());
    }
    close_iface();
    if (m_owns_md) {
        uct_md_close(m_md);
    }
    if (m_worker != nullptr) {
        uct_worker_destroy(m_worker);
    }
    if (m_async != nullptr) {
        ucs_async_context_destroy(m_async);
    }
}

void entity::close_iface()
{
    if (m_iface != nullptr) {
        uct_iface_close(m_iface);
        m_iface = nullptr;
    }
}

bool entity::wait(const std::function<bool()> &condition)
{
    double deadline = now() + patience::seconds();

    while (!condition()) {
        if (progress() != 0) {
            continue;
        }
        if (now() > deadline) {
            ADD_FAILURE() << "waited for " << patience::seconds() << " s";
            return false;
        }
        patience::pause();
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

ucs_status_t
entity::try_connect(const address &remote, uct_ep_h *ep_p, unsigned path)
{
    uct_ep_params_t params;
    ucs_status_t status;

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                        UCT_EP_PARAM_FIELD_DEV_ADDR |
                        UCT_EP_PARAM_FIELD_IFACE_ADDR |
                        UCT_EP_PARAM_FIELD_PATH_INDEX;
    params.iface      = m_iface;
    params.path_index = path;
    params.dev_addr   = (const uct_device_addr_t*)remote.dev.data();
    params.iface_addr = (const uct_iface_addr_t*)remote.iface.data();
    status            = uct_ep_create(&params, ep_p);
    if (status == UCS_OK) {
        m_eps.push_back(*ep_p);
    }
    return status;
}

uct_ep_h entity::connect(const address &remote, unsigned path)
{
    uct_ep_h ep = nullptr;

    EXPECT_EQ(UCS_OK, try_connect(remote, &ep, path));
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
                                            (uint8_t*)data + length),
                              (flags & UCT_CB_PARAM_FLAG_DESC) != 0});
    if (self->on_message) {
        self->on_message();
    }
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
    if (self->on_failure) {
        self->on_failure();
    }
    return UCS_OK;
}

/* A field that changes in the async context of its worker */
static unsigned read_count(uct_sep_iface_t *iface, const unsigned &field)
{
    ucs_async_context_t *async = iface->super.worker->async;
    unsigned count;

    UCS_ASYNC_BLOCK(async);
    count = field;
    UCS_ASYNC_UNBLOCK(async);
    ucs_async_check_miss(async);
    return count;
}

unsigned entity::num_qps()
{
    return read_count(sep(), sep()->conn.num_qp);
}

unsigned entity::num_links()
{
    return read_count(sep(), sep()->conn.num_links);
}

uint64_t entity::num_by_ring()
{
    uct_sep_iface_t *iface = sep();
    uint64_t count         = iface->eager.stats.ring_received;

    for (unsigned i = 0; (iface->eager.rings != NULL) &&
                         (i < iface->config.eager.poll_set); ++i) {
        if (iface->eager.rings[i].txwq != NULL) {
            count += uct_sep_ring_rx_count(&iface->eager.rings[i].rx) -
                     iface->eager.rings[i].counted;
        }
    }
    return count;
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
    m_peer.reset(new peer(num_ifaces, all_settings(config)));
    m_local = entity::create(all_settings(config));
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

settings test_sep_uct::all_settings(const settings &config) const
{
    settings result = m_common;

    result.insert(result.end(), config.begin(), config.end());
    return result;
}

std::vector<mode> api_modes()
{
    return {{"dv", {}}, {"verbs", {{"API", "verbs"}}}, {"wr", {{"API", "wr"}}}};
}

std::vector<mode> post_modes()
{
    return {{"bf", {{"TX_POST", "bf"}}},
            {"db", {{"TX_POST", "db"}}},
            {"list", {{"TX_POSTLIST", "8"}}},
            {"verbs", {{"API", "verbs"}}},
            {"wr", {{"API", "wr"}}}};
}

test_sep_uct_mode::test_sep_uct_mode()
{
    m_common = GetParam().config;
}

/* Other threads may log as well */
static expect_errors *innermost = nullptr;
static std::mutex innermost_lock;

static ucs_log_func_rc_t
hide_errors(const char *file, unsigned line, const char *function,
            ucs_log_level_t level, const ucs_log_component_config_t *comp_conf,
            const char *message, va_list ap)
{
    char text[1024];

    std::lock_guard<std::mutex> guard(innermost_lock);
    if ((innermost == nullptr) || (level > innermost->last)) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }

    vsnprintf(text, sizeof(text), message, ap);
    innermost->messages.push_back({level, text});
    return UCS_LOG_FUNC_RC_STOP;
}

expect_errors::expect_errors(ucs_log_level_t last) :
    last(last), m_outer(innermost),
    m_outer_level(ucs_global_opts.log_component.log_level)
{
    innermost = this;
    ucs_log_push_handler(hide_errors);
    /* Not written unless it changes: other threads read it */
    if (last > m_outer_level) {
        ucs_global_opts.log_component.log_level = last;
    }
}

expect_errors::~expect_errors()
{
    if (last > m_outer_level) {
        ucs_global_opts.log_component.log_level = m_outer_level;
    }
    ucs_log_pop_handler();
    std::lock_guard<std::mutex> guard(innermost_lock);
    innermost = m_outer;
}

unsigned
expect_errors::count(ucs_log_level_t level, const std::string &part) const
{
    unsigned result = 0;

    std::lock_guard<std::mutex> guard(innermost_lock);
    for (const auto &item : messages) {
        result += (item.level == level) &&
                  (item.text.find(part) != std::string::npos);
    }
    return result;
}

void expect_refused(const settings &config,
                    const std::vector<std::string> &parts,
                    const settings &md_config, entity *other)
{
    std::string what, said;
    expect_errors errors;

    for (const auto *values : {&config, &md_config}) {
        for (const auto &value : *values) {
            what += value.first + "=" + value.second + " ";
        }
    }

    EXPECT_TRUE(((other == nullptr) ? entity::create(config, md_config) :
                                      entity::create(*other, config)) ==
                nullptr) << what;
    for (const auto &message : errors.messages) {
        said += message.text + "\n";
    }
    ASSERT_FALSE(parts.empty());
    for (const auto &part : parts) {
        EXPECT_LE(1u, errors.count(UCS_LOG_LEVEL_ERROR, part))
                << what << "without \"" << part << "\": " << said;
    }
}

} // namespace sep_uct_test
