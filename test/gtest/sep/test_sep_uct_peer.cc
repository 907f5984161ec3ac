/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/process.h>
#include <sep/test_sep_uct.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>

namespace sep_uct_test {

static const char *env_peer_fd     = "SEP_TEST_PEER_FD";
static const char *env_peer_ifaces = "SEP_TEST_PEER_IFACES";
static const char *env_peer_config = "SEP_TEST_PEER_CONFIG";

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
    OP_NUM_FAILURES,
    OP_REACHES
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
            m_ifaces.push_back((i == 0) ? entity::create(config) :
                               entity::create(*m_ifaces[0], config));
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

    /* As much of a job as there are resources for */
    static unsigned run(job &todo)
    {
        unsigned count = 0;

        while (todo.next < todo.count) {
            bytes data = sequence_message(todo.next, todo.length);

            if (uct_ep_am_bcopy(todo.ep, todo.id, pack_bytes, &data, 0) < 0) {
                break;
            }
            ++todo.next;
            ++count;
        }
        return count;
    }

    unsigned work()
    {
        unsigned count = 0;

        for (auto &iface : m_ifaces) {
            count += iface->progress();
        }

        /* Jobs of an endpoint in order, and none waits for another
         * endpoint's */
        std::set<uct_ep_h> busy;
        for (auto it = m_jobs.begin(); it != m_jobs.end();) {
            if (busy.count(it->ep) == 0) {
                count += run(*it);
            }
            if (it->next == it->count) {
                it = m_jobs.erase(it);
            } else {
                busy.insert(it->ep);
                ++it;
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
            *result = iface.num_qps();
            break;
        case OP_NUM_FAILURES:
            *result = iface.failures.size();
            break;
        case OP_REACHES:
            *result = reaches(iface, unpack_addr(in), out);
            break;
        }
    }

    static bool reaches(entity &iface, const address &to, bytes *said)
    {
        expect_errors hide;
        uct_ep_h ep = NULL;
        bool result = uct_iface_is_reachable(
                iface.iface(), (uct_device_addr_t*)to.dev.data(),
                (uct_iface_addr_t*)to.iface.data());

        /* Who has not asked is refused as well */
        result |= (iface.try_connect(to, &ep) == UCS_OK);
        for (auto &message : hide.messages) {
            said->insert(said->end(), message.text.begin(), message.text.end());
            said->push_back('\n');
        }
        return result;
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
        m_memory.clear(); /* Before the memory domain */
        while (m_ifaces.size() > 0) {
            m_ifaces.pop_back(); /* The first one owns the memory domain */
        }
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
    process::changes what;
    int fds[2], null;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        throw std::runtime_error("socketpair failed");
    }

    what.set = {std::string(env_peer_fd) + "=" + std::to_string(fds[1]),
                std::string(env_peer_ifaces) + "=" +
                        std::to_string(num_ifaces),
                std::string(env_peer_config) + "=" + pack_settings(config)};

    /* Our end is not for other peers: they would keep it open. Errors are on
     * stderr. */
    null     = open("/dev/null", O_WRONLY | O_CLOEXEC);
    what.fds = {{fds[1], fds[1]}, {null, STDOUT_FILENO}};
    m_pid    = process::start_test("DISABLED_test_sep_uct_peer.run", what);
    m_fd     = fds[0];
    close(null);
    close(fds[1]);
    if (m_pid < 0) {
        throw std::runtime_error("could not start the other process");
    }
}

peer::~peer()
{
    close(m_fd);
    if (m_pid > 0) {
        int status = process::wait(m_pid);

        EXPECT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == 0))
                << "the other process ended with status " << status;
    }
}

void peer::kill()
{
    ::kill(m_pid, SIGKILL);
    EXPECT_EQ(SIGKILL, process::wait(m_pid));
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

bool peer::reaches(const address &to, std::string *said)
{
    bytes text;
    bool result = call(OP_REACHES, 0, 0, 0, pack_addr(to), &text);

    said->assign(text.begin(), text.end());
    return result;
}

} // namespace sep_uct_test
