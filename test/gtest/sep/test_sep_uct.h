/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_UCT_H
#define TEST_SEP_UCT_H

#include <common/patience.h>

#include <uct/ib/sep/ep/sep_ep.h>
#include <uct/ib/sep/hub/sep_hub_ep.h>
#include <uct/ib/sep/iface/sep_config.h>
#include <uct/ib/sep/verbs/sep_verbs.h>

#include <uct/api/uct.h>
#include <ucs/async/async.h>

#include <gtest/gtest.h>

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/*
 * Transport operations through the UCT API between two processes. The peer is
 * this program started again; it does what it is asked over a socket, and
 * progresses its interfaces in between.
 */
namespace sep_uct_test {

/* Settings of an interface, names without UCX_SEP_ */
typedef std::vector<std::pair<std::string, std::string>> settings;

typedef std::vector<uint8_t> bytes;


/* The device gives up soon on a peer that has gone */
extern const settings impatient;

/* The connection manager as well, on one that does not answer. On a slow
 * machine it may give up on any, so this is for tests in which nobody answers,
 * or in which it does not matter. */
extern const settings hasty;


/* Rows of all sharing categories */
std::vector<uct_sep_category_row_t> categories();


/* Bytes that differ from those of any other seed */
bytes pattern(size_t length, uint64_t seed);


/* Component and first memory domain of the transport */
bool find_md(uct_component_h *component_p, std::string *md_name);

/* uct_config_modify(), name without UCX_SEP_: later versions of UCX want the
 * second part of it */
ucs_status_t
modify(void *config, const std::string &name, const std::string &value);


/* One received active message */
struct message {
    uint8_t id;
    bytes   data;
    bool    has_desc = false; /* It could have been kept */
};


/* An error that was reported */
struct failure {
    uct_ep_h     ep;
    ucs_status_t status;
};


/* Addresses of an interface */
struct address {
    bytes dev;
    bytes iface;
};


/* Registered memory, of which a remote key can be packed */
class memory {
public:
    memory(uct_md_h md, size_t length);
    ~memory();

    uint8_t *ptr() { return m_buffer.data(); }
    uint64_t va() { return (uintptr_t)m_buffer.data(); }
    size_t size() const { return m_buffer.size(); }
    uct_mem_h memh() { return m_memh; }
    bytes packed_rkey();

    memory(const memory&) = delete;

private:
    uct_md_h  m_md;
    bytes     m_buffer;
    uct_mem_h m_memh;
};


/* Memory domain, worker and interface */
class entity {
public:
    /* NULL if there is no device */
    static std::unique_ptr<entity>
    create(const settings &config = settings(),
           const settings &md_config = settings());

    /* Changes what an interface is opened with */
    typedef std::function<void(uct_iface_params_t&)> editor;

    /* Another worker on the memory domain of one that lives longer. Its
     * progress() does nothing unless it is progressed. */
    static std::unique_ptr<entity> create(entity &other,
                                          const settings &config = settings(),
                                          const editor &edit = editor(),
                                          bool is_progressed = true);

    /* Whether there is a device to test on */
    static bool has_device();

    ~entity();

    uct_iface_h iface() { return m_iface; }
    uct_component_h component() { return m_component; }
    uct_md_h md() { return m_md; }
    uct_worker_h worker() { return m_worker; }
    /* What has the queues: the hub's core if there is one */
    bool is_on_hub() const
    {
        return m_attr.iface_addr_len == sizeof(uct_sep_hub_addr_t);
    }
    uct_sep_iface_t *sep()
    {
        if (!is_on_hub()) {
            return ucs_derived_of(m_iface, uct_sep_iface_t);
        }
        return ucs_derived_of(m_iface, uct_sep_hub_iface_t)->hub->core;
    }
    /* Whether libibverbs posts, and polls */
    bool is_verbs() { return sep()->api->ops_mode & UCT_SEP_OPS_VERBS; }
    /* Messages that the interface has taken out of rings */
    uint64_t num_by_ring();
    /* Connections, in use and in all: UCX's async thread accepts some */
    unsigned num_qps();
    unsigned num_links();
    uct_sep_ep_t *sep_ep(uct_ep_h ep)
    {
        return is_on_hub() ? ucs_derived_of(ep, uct_sep_hub_ep_t)->peer->ep
                           : ucs_derived_of(ep, uct_sep_ep_t);
    }
    const uct_iface_attr_t &attr() const { return m_attr; }

    unsigned progress() { return uct_worker_progress(m_worker); }

    /* Progress until it is true. Fails the test after a time that is far beyond
     * anything that works. */
    bool wait(const std::function<bool()> &condition);

    address addr();

    /* The endpoint is destroyed with the entity, if not before */
    uct_ep_h connect(const address &remote, unsigned path = 0);
    ucs_status_t try_connect(const address &remote, uct_ep_h *ep_p,
                             unsigned path = 0);
    void destroy(uct_ep_h ep);

    bool flush();

    /* Keep only the memory domain, for others */
    void close_iface();

    /* Active messages of ids below 8 are recorded; of ids 8 and up their
     * descriptors are kept */
    std::vector<message> messages;
    std::vector<std::pair<void*, size_t>> descs;
    std::vector<failure> failures;
    void release_descs();

    /* Destroy endpoints from the callback that reports their failure */
    bool destroy_failed = false;

    /* Called from the handlers, after what they do otherwise */
    std::function<void()> on_message;
    std::function<void()> on_failure;

    entity(const entity&) = delete;

private:
    entity() = default;
    ucs_status_t open_md(const settings &config);
    ucs_status_t open(const settings &config, uct_md_h md = nullptr,
                      const settings &md_config = settings(),
                      const editor &edit = editor(), bool is_progressed = true);
    static ucs_status_t am_handler(void *arg, void *data, size_t length,
                                   unsigned flags);
    static ucs_status_t err_handler(void *arg, uct_ep_h ep,
                                    ucs_status_t status);

    struct am_arg {
        entity  *self;
        uint8_t id;
    };

    uct_component_h     m_component = nullptr;
    ucs_async_context_t *m_async    = nullptr;
    uct_worker_h        m_worker    = nullptr;
    uct_md_h            m_md        = nullptr;
    bool                m_owns_md   = false;
    uct_iface_h         m_iface     = nullptr;
    uct_iface_attr_t    m_attr;
    am_arg              m_am_args[UCT_AM_ID_MAX];
    std::vector<uct_ep_h> m_eps;
};


/* Remote memory as the local side sees it */
struct remote_memory {
    uint64_t   va;
    uct_rkey_bundle_t rkey;
};


/* The other process */
class peer {
public:
    explicit peer(unsigned num_ifaces = 1, const settings &config = settings());
    ~peer();

    pid_t pid() const { return m_pid; }

    /* SIGKILL, and wait for its end */
    void kill();

    address addr(unsigned iface = 0);

    /* Register memory which holds pattern(length, seed) */
    remote_memory expose(size_t length, uint64_t seed);

    /* What is in the last exposed memory */
    bytes read(size_t offset, size_t length);

    /* Connect to a local interface, and send it messages of id 1: sequence
     * number, then a pattern of the sequence number. Returns at once. */
    void send(const address &to, unsigned count, size_t length, uint8_t id = 1);

    /* Number of messages received, and one of them */
    uint64_t num_received(unsigned iface = 0);
    message received(uint64_t index, unsigned iface = 0);

    /* Forget the messages, and give back kept descriptors after having checked
     * that they are intact. Returns how many were intact. */
    uint64_t release(unsigned iface = 0);

    /* Do not progress until the next request */
    void freeze();

    /* Number of queue pairs of an interface */
    uint64_t num_qps(unsigned iface = 0);

    uint64_t num_failures(unsigned iface = 0);

    /* Whether it takes an interface for one that it can talk to, and what it
     * says if not */
    bool reaches(const address &to, std::string *said);

    peer(const peer&) = delete;

private:
    uint64_t call(uint32_t op, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                  const bytes &in = bytes(), bytes *out = nullptr);

    pid_t m_pid = -1;
    int   m_fd  = -1;
};


/* A remote key that is nobody's, whichever of its two keys is used */
inline uct_rkey_t wrong_rkey(uct_rkey_t rkey)
{
    return rkey ^ 0x0000550000005500;
}


/* A completion and what it was called with */
struct completion {
    completion();

    uct_completion_t comp;
    ucs_status_t     status = UCS_INPROGRESS;
    unsigned         calls  = 0;

    completion(const completion&) = delete;
};


/* A request that waits for resources */
struct pending_req {
    uct_pending_req_t             req;
    std::function<ucs_status_t()> func;

    pending_req() { req.func = call; }
    pending_req(const pending_req&) = delete;

    static ucs_status_t call(uct_pending_req_t *req)
    {
        return ucs_container_of(req, pending_req, req)->func();
    }
};


/* Two processes, connected on first use */
class test_sep_uct : public ::testing::Test {
protected:
    void SetUp() override;
    void TearDown() override;

    /* Start over with other settings, on both sides */
    void start(const settings &config, unsigned num_ifaces = 1);

    /* Settings, and those that all interfaces of the test have */
    settings all_settings(const settings &config = settings()) const;

    /* Repeat until there are resources */
    ucs_status_t retry(const std::function<ucs_status_t()> &op);

    /* Wait for a completion; its status */
    ucs_status_t wait(completion &comp);

    uct_ep_h ep() { return m_eps[0]; }
    uct_ep_h ep(unsigned i) { return m_eps[i]; }
    void flush() { EXPECT_TRUE(m_local->flush()); }

    std::unique_ptr<entity> m_local;
    std::unique_ptr<peer>   m_peer;
    std::vector<uct_ep_h>   m_eps;
    settings                m_common;
};


/* Settings of the software device, whole names */
typedef std::vector<std::pair<std::string, std::string>> device_settings;

/* For tests that need another device than the one the program runs on: starts
 * the program again, on a device of its own with these settings, to run just
 * the test that calls this, and checks that it has passed without a violation.
 * Returns true in that process, which goes on with the test, and false in the
 * first one. */
bool on_device(const device_settings &config);


/* A way to use the device, for tests that are run with each of them */
struct mode {
    const char *name;
    settings   config;
};

/* Names of tests */
inline std::string mode_name(const ::testing::TestParamInfo<mode> &info)
{
    return info.param.name;
}

/* Both APIs, and all ways to post */
std::vector<mode> api_modes();
std::vector<mode> post_modes();


/* Two processes that use the device in the same way */
class test_sep_uct_mode : public test_sep_uct,
                          public ::testing::WithParamInterface<mode> {
protected:
    test_sep_uct_mode();
};


/* Catch errors and warnings while it exists, and messages up to another level
 */
class expect_errors {
public:
    explicit expect_errors(ucs_log_level_t last = UCS_LOG_LEVEL_WARN);
    ~expect_errors();

    struct message {
        ucs_log_level_t level;
        std::string     text;
    };

    /* How many of them have this in their text */
    unsigned count(ucs_log_level_t level, const std::string &part) const;

    expect_errors(const expect_errors&) = delete;
    std::vector<message> messages;

    const ucs_log_level_t last;

private:
    expect_errors         *m_outer;
    const ucs_log_level_t m_outer_level;
};


/* An interface is not opened with these settings, on the memory domain of
 * another if there is one, and errors say each of these. Without the latter, an
 * unknown setting would do as well. */
void expect_refused(const settings &config,
                    const std::vector<std::string> &parts,
                    const settings &md_config = settings(),
                    entity *other = nullptr);

} // namespace sep_uct_test

#endif
