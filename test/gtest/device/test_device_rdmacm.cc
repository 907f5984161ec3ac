/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The connection manager: /dev/infiniband/rdma_cm.
 */

#include <device/device.h>
#include <device/device_cm.h>

#include <common/seed.h>

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

const char *const local = "127.0.0.1";
/* of nobody: documentation, RFC 5737 */
const char *const elsewhere = "192.0.2.1";

/* private data that the messages of a connection bring, include/rdma/ib_cm.h */
const unsigned req_data = 56, rep_data = 196, rej_data = 148;

enum {
    UID_LISTENER = 0x1111, UID_CLIENT = 0x2222, UID_SERVER = 0x3333
};

std::string text(const rdma_ucm_event_resp &event)
{
    return std::string((const char*)event.param.conn.private_data);
}

bool is_readable(const cm &c)
{
    pollfd pfd = {c.fd, POLLIN, 0};

    return poll(&pfd, 1, 0) == 1;
}

/* Both ends of a connection in one process, without queue pairs */
struct ends {
    ends() : listener(server.listener(UID_LISTENER, local, 0))
    {
        active = client.to(UID_CLIENT, local, server.port(listener));
    }

    void request()
    {
        REQUIRE_EQ(0, client.connect(active, 100, "hello"));
        passive = server.expect(CM_CONNECT_REQUEST, UID_LISTENER).id;
    }

    void establish()
    {
        request();
        REQUIRE_EQ(0, server.accept(passive, UID_SERVER, 200));
        client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(0, client.establish(active));
        server.expect(CM_ESTABLISHED, UID_SERVER);
    }

    cm       server, client;
    uint32_t listener;
    uint32_t active;
    uint32_t passive = 0;
};

/* Listen at a port, which word 0 is then, and be connected */
void serve_one(rank &r, cm &m)
{
    uint32_t listener = m.listener(UID_LISTENER, local, 0), id;

    r.word(0) = m.port(listener);
    id        = m.expect(CM_CONNECT_REQUEST, UID_LISTENER).id;
    REQUIRE_EQ(0, m.accept(id, UID_SERVER));
    m.expect(CM_ESTABLISHED, UID_SERVER);
}

} // namespace


class test_device_rdmacm : public device::test {
};


/* Rank 0 listens, rank 1 connects; the QPs are set up with what the connection
 * manager says, and carry a message each way */
static void connect_and_send(rank &r, const std::string &ip)
{
    context c;
    memory mem(c, 4096);
    cq scq(c, 16), rcq(c, 16);
    qp q(c, scq, rcq);
    cm m;
    uint32_t id, listener = 0;
    rdma_ucm_event_resp event;

    if (r.index == 0) {
        listener  = m.listener(UID_LISTENER, ip, 0);
        r.word(0) = m.port(listener);
        event     = m.expect(CM_CONNECT_REQUEST, UID_LISTENER);
        id        = event.id;
        REQUIRE_EQ(r.word(1), event.param.conn.qp_num);
        REQUIRE_EQ(req_data, event.param.conn.private_data_len);
        REQUIRE(text(event) == "from the client");
        /* what the client said, the other way round */
        REQUIRE_EQ(5, event.param.conn.responder_resources);
        REQUIRE_EQ(3, event.param.conn.initiator_depth);
    } else {
        r.wait_word(0, 1);
        r.word(1) = q.v->qp_num;
        id        = m.to(UID_CLIENT, ip, r.word(0));
        REQUIRE_EQ(0, m.connect(id, q.v->qp_num, "from the client"));
        event = m.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(rep_data, event.param.conn.private_data_len);
        REQUIRE(text(event) == "from the server");
    }

    cm_modify(m, id, q, IBV_QPS_INIT);
    q.recv(1, mem.sge(0, 64));
    cm_modify(m, id, q, IBV_QPS_RTR);
    cm_modify(m, id, q, IBV_QPS_RTS);
    if (r.index == 0) {
        REQUIRE_EQ(0, m.accept(id, UID_SERVER, q.v->qp_num,
                               "from the server"));
        m.expect(CM_ESTABLISHED, UID_SERVER);
    } else {
        REQUIRE_EQ(0, m.establish(id));
    }

    snprintf((char*)mem.data + 64, 64, "rank %d", r.index);
    send_wr wr(IBV_WR_SEND, 2, {mem.sge(64, 64)});
    q.send(wr);
    scq.good();
    rcq.good();
    REQUIRE(std::string((char*)mem.data) ==
            "rank " + std::to_string(1 - r.index));

    r.barrier();
    if (r.index == 1) {
        REQUIRE_EQ(0, m.disconnect(id));
        m.expect(CM_DISCONNECTED, UID_CLIENT);
        m.expect(CM_TIMEWAIT_EXIT, UID_CLIENT);
        /* address, route, response, and these two */
        REQUIRE_EQ(5, m.destroy(id));
    } else {
        m.expect(CM_DISCONNECTED, UID_SERVER);
        REQUIRE_EQ(0, m.disconnect(id));
        m.expect(CM_TIMEWAIT_EXIT, UID_SERVER);
        REQUIRE_EQ(3, m.destroy(id));
        REQUIRE_EQ(1, m.destroy(listener));
    }
}

TEST_F(test_device_rdmacm, two_processes_connect_and_send)
{
    run(2, [](rank &r) { connect_and_send(r, local); });
}

TEST_F(test_device_rdmacm, two_processes_connect_and_send_on_roce)
{
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_DEVICES", "2");
    run(2, [](rank &r) { connect_and_send(r, "198.18.0.1"); });
}

TEST_F(test_device_rdmacm, the_device_is_a_character_device)
{
    run(1, [](rank &) {
        cm m;
        struct stat by_path, by_fd;
        struct statx by_statx;
        char abi[8] = "";
        int fd;

        REQUIRE_EQ(0, ::stat("/dev/infiniband/rdma_cm", &by_path));
        REQUIRE_EQ(0, fstat(m.fd, &by_fd));
        REQUIRE(S_ISCHR(by_path.st_mode) && S_ISCHR(by_fd.st_mode));
        REQUIRE_EQ(10, major(by_fd.st_rdev));
        REQUIRE_EQ(by_path.st_rdev, by_fd.st_rdev);
        REQUIRE_EQ(0, statx(AT_FDCWD, "/dev/infiniband/rdma_cm", 0,
                            STATX_BASIC_STATS, &by_statx));
        REQUIRE_EQ(by_path.st_rdev, makedev(by_statx.stx_rdev_major,
                                            by_statx.stx_rdev_minor));
        fd = open("/sys/class/misc/rdma_cm/abi_version", O_RDONLY);
        REQUIRE(fd >= 0);
        REQUIRE_EQ(2, read(fd, abi, sizeof(abi)));
        REQUIRE_EQ('4', abi[0]);
        close(fd);
    });
}

TEST_F(test_device_rdmacm, nobody_listens)
{
    run(1, [](rank &) {
        cm m;
        uint32_t id       = m.to(UID_CLIENT, local, 7471);
        uint32_t datagram = m.to(UID_CLIENT, local, 7471, RDMA_PS_UDP);

        REQUIRE_EQ(0, m.connect(id));
        /* IB_CM_REJ_INVALID_SERVICE_ID */
        REQUIRE_EQ(8, m.expect(CM_REJECTED, UID_CLIENT).status);
        REQUIRE_EQ(EINVAL, m.connect(id));
        REQUIRE_EQ(0, m.connect(datagram));
        /* IB_SIDR_UNSUPPORTED */
        REQUIRE_EQ(1, m.expect(CM_UNREACHABLE, UID_CLIENT).status);
    });
}

TEST_F(test_device_rdmacm, a_request_is_rejected)
{
    run(1, [](rank &) {
        ends e;
        rdma_ucm_event_resp event;

        e.request();
        REQUIRE_EQ(EINVAL, e.server.reject(e.passive, "no", 77));
        REQUIRE_EQ(EINVAL, e.server.reject(e.passive, std::string(149, 'x')));
        REQUIRE_EQ(0, e.server.reject(e.passive, "no"));
        event = e.client.expect(CM_REJECTED, UID_CLIENT);
        /* IB_CM_REJ_CONSUMER_DEFINED */
        REQUIRE_EQ(28, event.status);
        REQUIRE_EQ(rej_data, event.param.conn.private_data_len);
        REQUIRE(text(event) == "no");
        REQUIRE_EQ(EINVAL, e.server.accept(e.passive, UID_SERVER));
    });
}

/* How often to send again is what the request says, for both sides: REP does
 * not have it, cma_set_rep_event_data() */
TEST_F(test_device_rdmacm, an_answer_does_not_say_how_often_to_try)
{
    run(1, [](rank &) {
        rdma_ucm_event_resp event;
        ends e;

        REQUIRE_EQ(0, e.client.connect(e.active));
        event = e.server.expect(CM_CONNECT_REQUEST, UID_LISTENER);
        REQUIRE_EQ(6, event.param.conn.retry_count);
        REQUIRE_EQ(7, event.param.conn.rnr_retry_count);
        REQUIRE_EQ(0, e.server.accept(event.id, UID_SERVER));
        event = e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(0, event.param.conn.retry_count);
        REQUIRE_EQ(7, event.param.conn.rnr_retry_count);
        REQUIRE_EQ(0, e.client.establish(e.active));
        event = e.server.expect(CM_ESTABLISHED, UID_SERVER);
        REQUIRE_EQ(0, event.param.conn.rnr_retry_count);
    });
}

TEST_F(test_device_rdmacm, an_answer_is_rejected)
{
    run(1, [](rank &) {
        ends e;

        e.request();
        REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER));
        e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(0, e.client.reject(e.active, "not you"));
        REQUIRE_EQ(28, e.server.expect(CM_REJECTED, UID_SERVER).status);
    });
}

/* Who has accepted may think better of it until the other side is ready */
TEST_F(test_device_rdmacm, an_acceptance_is_taken_back)
{
    run(1, [](rank &) {
        ends e, connected;
        rdma_ucm_event_resp event;

        e.request();
        REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER));
        e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(0, e.server.reject(e.passive, "no"));
        event = e.client.expect(CM_REJECTED, UID_CLIENT);
        REQUIRE_EQ(28, event.status);
        REQUIRE(text(event) == "no");
        REQUIRE_EQ(EINVAL, e.client.establish(e.active));
        REQUIRE_EQ(EINVAL, e.server.reject(e.passive));
        REQUIRE(!is_readable(e.server));

        connected.establish();
        REQUIRE_EQ(EINVAL, connected.server.reject(connected.passive));
    });
}

/* Who can't accept rejects: rdma_accept() */
TEST_F(test_device_rdmacm, what_can_not_be_accepted_is_rejected)
{
    run(1, [](rank &) {
        ends twice, not_asked, connected;

        twice.request();
        REQUIRE_EQ(0, twice.server.accept(twice.passive, UID_SERVER));
        twice.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(EINVAL, twice.server.accept(twice.passive, UID_SERVER));
        REQUIRE_EQ(28, twice.client.expect(CM_REJECTED, UID_CLIENT).status);
        REQUIRE_EQ(EINVAL, twice.client.establish(twice.active));

        /* who is asked has no answer to take */
        not_asked.request();
        REQUIRE_EQ(EINVAL, not_asked.server.establish(not_asked.passive));
        REQUIRE_EQ(28, not_asked.client.expect(CM_REJECTED,
                                               UID_CLIENT).status);
        REQUIRE_EQ(EINVAL, not_asked.server.accept(not_asked.passive,
                                                   UID_SERVER));

        /* a connection that is there stays */
        connected.establish();
        REQUIRE_EQ(EINVAL, connected.server.accept(connected.passive,
                                                   UID_SERVER));
        REQUIRE_EQ(EINVAL, connected.client.accept(connected.active,
                                                   UID_CLIENT));
        REQUIRE_EQ(EINVAL, connected.client.establish(connected.active));
        REQUIRE(!is_readable(connected.server));
        REQUIRE(!is_readable(connected.client));
        REQUIRE_EQ(0, connected.client.disconnect(connected.active));
        connected.server.expect(CM_DISCONNECTED, UID_SERVER);
    });
}

/* ib_send_cm_rej(): who has asked may reject as well, which nobody hears */
TEST_F(test_device_rdmacm, a_request_is_taken_back)
{
    run(1, [](rank &) {
        ends e;

        e.request();
        REQUIRE_EQ(0, e.client.reject(e.active));
        REQUIRE_EQ(EINVAL, e.client.reject(e.active));
        REQUIRE(!is_readable(e.server));
        REQUIRE_EQ(EINVAL, e.server.accept(e.passive, UID_SERVER));
        REQUIRE(!is_readable(e.client));
    });
}

/* rdma_listen(), rdma_accept(), rdma_reject() and rdma_disconnect() of cma.c */
TEST_F(test_device_rdmacm, commands_in_a_wrong_state)
{
    run(1, [](rank &) {
        cm m;
        uint32_t ids[] = {
            m.create(1), m.create(2), m.create(3), m.to(4, local, 1)
        };
        ends e;

        REQUIRE_EQ(0, m.bind(ids[1], local, 0));
        REQUIRE_EQ(0, m.resolve(ids[2], local, 1));
        m.expect(CM_ADDR_RESOLVED, 3);
        for (uint32_t id : ids) {
            REQUIRE_EQ(EINVAL, m.accept(id, 1));
            REQUIRE_EQ(EINVAL, m.establish(id));
            REQUIRE_EQ(EINVAL, m.reject(id));
            REQUIRE_EQ(EINVAL, m.disconnect(id));
            REQUIRE_EQ(EINVAL, m.notify(id, IBV_EVENT_COMM_EST));
        }
        REQUIRE_EQ(EINVAL, m.listen(ids[2]));
        REQUIRE_EQ(EINVAL, m.listen(ids[3]));
        REQUIRE_EQ(EINVAL, e.server.listen(e.listener));
        REQUIRE_EQ(EINVAL, e.server.accept(e.listener, 1));
        REQUIRE_EQ(EINVAL, e.server.reject(e.listener));
        REQUIRE_EQ(ENOENT, m.disconnect(1 << 20));
        REQUIRE_EQ(EINVAL, m.disconnect(e.active));

        /* neither can end what is not there yet, which nobody is told */
        e.request();
        REQUIRE_EQ(0, e.client.disconnect(e.active));
        REQUIRE_EQ(0, e.server.disconnect(e.passive));
        REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER));
        e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(EINVAL, e.client.listen(e.active));
        REQUIRE_EQ(EINVAL, e.client.connect(e.active));
        REQUIRE_EQ(0, e.client.establish(e.active));
        e.server.expect(CM_ESTABLISHED, UID_SERVER);

        /* nor what has been ended */
        REQUIRE_EQ(0, e.client.disconnect(e.active));
        REQUIRE_EQ(0, e.client.disconnect(e.active));
        REQUIRE_EQ(EINVAL, e.client.reject(e.active));
        e.server.expect(CM_DISCONNECTED, UID_SERVER);
        REQUIRE_EQ(EINVAL, e.server.reject(e.passive));
        REQUIRE_EQ(0, e.server.disconnect(e.passive));
        REQUIRE_EQ(0, e.server.disconnect(e.passive));
    });
}

TEST_F(test_device_rdmacm, private_data_has_a_limit)
{
    run(1, [](rank &) {
        ends e;

        REQUIRE_EQ(EINVAL, e.client.connect(e.active, 1,
                                            std::string(req_data + 1, 'x')));
        REQUIRE_EQ(0, e.client.connect(e.active, 1,
                                       std::string(req_data, 'x')));
        e.passive = e.server.expect(CM_CONNECT_REQUEST, UID_LISTENER).id;
        /* who can't accept rejects */
        REQUIRE_EQ(EINVAL, e.server.accept(e.passive, UID_SERVER, 1,
                                           std::string(rep_data + 1, 'x')));
        REQUIRE_EQ(28, e.client.expect(CM_REJECTED, UID_CLIENT).status);
    });
}

TEST_F(test_device_rdmacm, ids_that_are_destroyed_tell_the_other_side)
{
    run(1, [](rank &) {
        ends asked, answered, connected, listening;

        asked.request();
        asked.server.destroy(asked.passive);
        REQUIRE_EQ(28, asked.client.expect(CM_REJECTED, UID_CLIENT).status);

        answered.request();
        REQUIRE_EQ(0, answered.server.accept(answered.passive, UID_SERVER));
        answered.client.destroy(answered.active);
        REQUIRE_EQ(28, answered.server.expect(CM_REJECTED, UID_SERVER).status);

        connected.establish();
        connected.server.destroy(connected.passive);
        connected.client.expect(CM_DISCONNECTED, UID_CLIENT);

        /* with the request that it has not read */
        REQUIRE_EQ(0, listening.client.connect(listening.active));
        listening.server.destroy(listening.listener);
        REQUIRE_EQ(28, listening.client.expect(CM_REJECTED,
                                               UID_CLIENT).status);
        REQUIRE(!is_readable(listening.server));
    });
}

/* It is as it was sent, whoever has gone since */
TEST_F(test_device_rdmacm, a_request_is_read_after_its_sender_has_gone)
{
    run(1, [](rank &) {
        ends e;
        rdma_ucm_event_resp event;

        REQUIRE_EQ(0, e.client.connect(e.active, 100, "hello"));
        e.client.destroy(e.active);
        event = e.server.expect(CM_CONNECT_REQUEST, UID_LISTENER);
        REQUIRE_EQ(100, event.param.conn.qp_num);
        REQUIRE_EQ(req_data, event.param.conn.private_data_len);
        REQUIRE(text(event) == "hello");
        REQUIRE_EQ(EINVAL, e.server.accept(event.id, UID_SERVER));
    });
}

/* So is an answer, whatever was said after it */
TEST_F(test_device_rdmacm, an_answer_is_read_after_its_sender_has_gone)
{
    run(1, [](rank &) {
        ends e;
        rdma_ucm_event_resp event;

        e.request();
        REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER, 200, "welcome"));
        e.server.destroy(e.passive);
        event = e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(200, event.param.conn.qp_num);
        REQUIRE_EQ(rep_data, event.param.conn.private_data_len);
        REQUIRE(text(event) == "welcome");
        event = e.client.expect(CM_REJECTED, UID_CLIENT);
        REQUIRE_EQ(28, event.status);
        REQUIRE_EQ(rej_data, event.param.conn.private_data_len);
        REQUIRE(text(event) == "");
    });
}

/* Its number is the next descriptor's, and that is one of the device's own */
TEST_F(test_device_rdmacm, a_channel_that_is_closed_without_a_word)
{
    run(1, [](rank &) {
        ends e;

        REQUIRE(e.server.fd < e.client.fd);
        REQUIRE_EQ(0, syscall(SYS_close, e.server.fd));
        e.client.to(UID_CLIENT, local, 7471);
        e.server.fd = -1;
    });
}

TEST_F(test_device_rdmacm, a_closed_channel_ends_its_connections)
{
    run(1, [](rank &) {
        ends e;

        e.establish();
        close(e.server.fd);
        e.client.expect(CM_DISCONNECTED, UID_CLIENT);
        e.server.fd = -1;
    });
}

/* Not by close(): what is written there then is no command */
TEST_F(test_device_rdmacm, a_descriptor_that_becomes_another_file)
{
    run(1, [](rank &) {
        char text[8] = "";
        int pipe_fds[2];
        ends e;

        e.establish();
        REQUIRE_EQ(0, pipe(pipe_fds));
        REQUIRE_EQ(e.server.fd, dup2(pipe_fds[1], e.server.fd));
        REQUIRE_EQ(4, write(e.server.fd, "text", 4));
        REQUIRE_EQ(4, read(pipe_fds[0], text, sizeof(text)));
        REQUIRE(!strcmp(text, "text"));
        e.client.expect(CM_DISCONNECTED, UID_CLIENT);
    });
}

/* The other side is told then, and not when the number is used again */
TEST_F(test_device_rdmacm, a_channel_is_closed_in_other_ways)
{
    static int (*const ways[])(int fd, int other) = {
        [](int fd, int other) { return dup2(other, fd) - fd; },
        [](int fd, int other) { return dup3(other, fd, O_CLOEXEC) - fd; },
        [](int fd, int) { return close_range(fd, fd, 0); }
    };

    run(1, [](rank &) {
        int pipe_fds[2];
        struct stat st;

        REQUIRE_EQ(0, pipe(pipe_fds));
        for (auto way : ways) {
            ends e;

            e.establish();
            /* these leave it open */
            REQUIRE_EQ(e.server.fd, dup2(e.server.fd, e.server.fd));
            REQUIRE_EQ(-1, dup2(1 << 20, e.server.fd));
            REQUIRE_EQ(-1, dup3(e.server.fd, e.server.fd, 0));
            REQUIRE_EQ(-1, dup3(pipe_fds[1], e.server.fd, O_APPEND));
            REQUIRE_EQ(-1, close_range(e.server.fd, e.server.fd - 1, 0));
            REQUIRE_EQ(-1, close_range(e.server.fd, e.server.fd, 1 << 20));
            REQUIRE_EQ(0, close_range(e.server.fd, e.server.fd,
                                      CLOSE_RANGE_CLOEXEC));
            REQUIRE_EQ(0, fstat(e.server.fd, &st));
            REQUIRE(S_ISCHR(st.st_mode));
            REQUIRE(!is_readable(e.client));

            REQUIRE_EQ(0, way(e.server.fd, pipe_fds[1]));
            REQUIRE(is_readable(e.client));
            e.client.expect(CM_DISCONNECTED, UID_CLIENT);
        }

        /* with all that is open */
        ends e;
        uint16_t port = e.server.port(e.listener);

        closefrom(e.server.fd);
        e.server.fd = -1;
        e.client.fd = -1;
        cm m;
        m.listener(UID_LISTENER, local, port);
    });
}

/* A pipe that comes to the number of one that was closed unseen */
TEST_F(test_device_rdmacm, another_file_is_none_of_the_device)
{
    run(1, [](rank &) {
        int pipe_fds[2];
        struct stat st;
        cm m;

        REQUIRE_EQ(0, pipe(pipe_fds));
        REQUIRE_EQ(m.fd, syscall(SYS_dup2, pipe_fds[1], m.fd));
        REQUIRE_EQ(0, fstat(m.fd, &st));
        REQUIRE(S_ISFIFO(st.st_mode));
    });
}

/* It is there as before, and has nothing of the device any more */
TEST_F(test_device_rdmacm, a_process_that_becomes_another_program_disconnects)
{
    auto server = [](rank &r) {
        cm m;

        serve_one(r, m);
        /* not even with its descriptors */
        REQUIRE_EQ(0, fcntl(m.fd, F_SETFD, 0));
        execl("/bin/sleep", "sleep", "100", nullptr);
        REQUIRE(false);
    };
    auto client = [](rank &r) {
        cm m;
        uint32_t id;

        r.wait_word(0, 1);
        id = m.to(UID_CLIENT, local, r.word(0));
        REQUIRE_EQ(0, m.connect(id));
        m.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(0, m.establish(id));
        m.expect(CM_DISCONNECTED, UID_CLIENT);
    };

    start(0, 2, server);
    start(1, 2, client);
    EXPECT_EQ(0, finish(1));
    kill(0);
}

TEST_F(test_device_rdmacm, a_killed_process_disconnects)
{
    auto server = [](rank &r) {
        cm m;

        /* connected, and asked without an answer */
        serve_one(r, m);
        m.expect(CM_CONNECT_REQUEST, UID_LISTENER);
        r.word(1) = 1;
        r.wait_word(2, 1);
    };
    auto client = [](rank &r) {
        cm m;
        uint32_t first, second;

        r.wait_word(0, 1);
        first  = m.to(UID_CLIENT, local, r.word(0));
        second = m.to(UID_CLIENT + 1, local, r.word(0));
        REQUIRE_EQ(0, m.connect(first));
        m.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(0, m.establish(first));
        REQUIRE_EQ(0, m.connect(second));
        r.wait_word(1, 1);
        /* rank 0 is killed */
        m.expect(CM_DISCONNECTED, UID_CLIENT);
        m.expect(CM_REJECTED, UID_CLIENT + 1);
        REQUIRE_EQ(0, m.disconnect(first));
        m.expect(CM_TIMEWAIT_EXIT, UID_CLIENT);
        /* nor does it listen any more, and its port is free */
        second = m.to(UID_CLIENT + 2, local, r.word(0));
        REQUIRE_EQ(0, m.connect(second));
        m.expect(CM_REJECTED, UID_CLIENT + 2);
        m.listener(UID_LISTENER, local, r.word(0));
    };

    start(0, 2, server);
    start(1, 2, client);
    while (word(1) == 0) {
        usleep(1000);
    }
    kill(0);
    EXPECT_EQ(0, finish(1));
}

/* Who listens may be killed while it tells somebody something, or is told, and
 * anybody may reap it. Each who asks has an end, and nobody loses an id. A
 * process that was killed between a state and its event left the other side
 * waiting for ever. */
TEST_F(test_device_rdmacm, random_deaths_of_who_listens)
{
    enum {
        WORD_PORT, WORD_STOP, WORD_ENDS
    };
    const unsigned rounds = seed::cases(60);
    pattern random(seed::get());

    auto server = [](rank &r) {
        cm m;
        uint32_t listener = m.listener(UID_LISTENER, local, r.word(WORD_PORT));
        rdma_ucm_event_resp event;

        r.word(WORD_PORT) = m.port(listener);
        for (;;) {
            REQUIRE_EQ(0, m.try_event(&event));
            if (event.event == CM_CONNECT_REQUEST) {
                (void)m.accept(event.id, UID_SERVER);
            } else if (event.event == CM_DISCONNECTED) {
                REQUIRE_EQ(0, m.disconnect(event.id));
                m.destroy(event.id);
            }
        }
    };
    auto client = [](rank &r) {
        cm m;

        r.wait_word(WORD_PORT, 1);
        while (r.word(WORD_STOP) == 0) {
            uint32_t id    = m.to(UID_CLIENT, local, r.word(WORD_PORT));
            unsigned count = 2;
            rdma_ucm_event_resp event;

            REQUIRE_EQ(0, m.connect(id));
            do {
                REQUIRE_EQ(0, m.try_event(&event));
                REQUIRE_EQ(UID_CLIENT, event.uid);
                ++count;
                if ((event.event == CM_CONNECT_RESPONSE) &&
                    (m.establish(id) == 0)) {
                    REQUIRE_EQ(0, m.disconnect(id));
                }
            } while ((event.event != CM_REJECTED) &&
                     (event.event != CM_DISCONNECTED));
            REQUIRE_EQ(count, m.destroy(id));
            ++r.word(WORD_ENDS);
        }
    };

    for (int i = 1; i < 4; ++i) {
        start(i, 4, client);
    }
    for (unsigned i = 0; i < rounds; ++i) {
        start(0, 4, server);
        while (word(WORD_PORT) == 0) {
            usleep(100);
        }
        usleep(random.below(30000));
        kill(0);
        EXPECT_EQ(SIGKILL, finish(0));
    }
    word(WORD_STOP) = 1;
    for (int i = 1; i < 4; ++i) {
        EXPECT_EQ(0, finish(i));
    }
    EXPECT_LT(0u, word(WORD_ENDS));
}

TEST_F(test_device_rdmacm, addresses)
{
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_DEVICES", "2");
    run(1, [](rank &) {
        cm m;
        uint32_t a = m.create(1), b = m.create(2), c = m.create(3);
        uint16_t port;
        int on = 1;

        REQUIRE_EQ(EADDRNOTAVAIL, m.bind(a, elsewhere, 0));
        REQUIRE_EQ(EADDRNOTAVAIL, m.bind(a, "2001:db8::1", 0));
        REQUIRE_EQ(0, m.bind(a, local, 0));
        port = m.port(a);
        REQUIRE(port >= 32768);
        REQUIRE_EQ(EINVAL, m.bind(a, local, 0));
        REQUIRE_EQ(EADDRINUSE, m.bind(b, local, port));
        REQUIRE_EQ(EADDRNOTAVAIL, m.bind(b, "0.0.0.0", port));
        REQUIRE_EQ(0, m.bind(b, "198.18.1.1", port));
        REQUIRE(m.query(b).node_guid != m.query(a).node_guid);

        /* shared by those who do not listen */
        REQUIRE_EQ(0, m.set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
                                   &on, sizeof(on)));
        REQUIRE_EQ(EADDRINUSE, m.bind(c, local, port));
        REQUIRE_EQ(0, m.set_option(c, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
                                   &on, sizeof(on)));
        REQUIRE_EQ(0, m.bind(c, local, port));
        REQUIRE_EQ(EADDRINUSE, m.listen(c));
        m.destroy(a);
        REQUIRE_EQ(0, m.listen(c));
        /* with one who listens it is shared no more, and can't be again */
        REQUIRE_EQ(EINVAL, m.set_option(c, RDMA_OPTION_ID,
                                        RDMA_OPTION_ID_REUSEADDR, &on,
                                        sizeof(on)));
        a = m.create(7);
        REQUIRE_EQ(0, m.set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
                                   &on, sizeof(on)));
        REQUIRE_EQ(EADDRINUSE, m.bind(a, local, port));

        /* another port space, another port */
        REQUIRE_EQ(0, m.bind(m.create(4, RDMA_PS_UDP), local, port));

        a = m.create(5);
        REQUIRE_EQ(0, m.resolve(a, elsewhere, 1));
        REQUIRE_EQ(-ENODEV, (int)m.expect(CM_ADDR_ERROR, 5).status);
        REQUIRE_EQ(EINVAL, m.route(a));
        REQUIRE_EQ(0, m.resolve(a, "198.18.1.1", 1));
        m.expect(CM_ADDR_RESOLVED, 5);
        REQUIRE_EQ(m.query(b).node_guid, m.query(a).node_guid);
        REQUIRE_EQ(EINVAL, m.resolve(a, local, 1));
        REQUIRE_EQ(EINVAL, m.connect(a));
        m.to(6, "::1", 1);
    });
}

/* ucma_set_ib_path(): the first of the paths that is for all */
TEST_F(test_device_rdmacm, a_path_may_be_set)
{
    run(1, [](rank &) {
        const uint32_t all = IB_PATH_GMP | IB_PATH_PRIMARY |
                             IB_PATH_BIDIRECTIONAL;
        ib_path_rec_data paths[3] = {};
        cm m;
        uint32_t id = m.create(1);

        auto set = [&](size_t length, uint32_t name = RDMA_OPTION_IB_PATH) {
            return m.set_option(id, RDMA_OPTION_IB, name, paths, length);
        };

        paths[0].flags = all;
        REQUIRE_EQ(EINVAL, set(sizeof(paths[0])));
        REQUIRE_EQ(0, m.resolve(id, local, 1));
        m.expect(CM_ADDR_RESOLVED, 1);
        REQUIRE_EQ(EINVAL, set(0));
        REQUIRE_EQ(EINVAL, set(sizeof(paths[0]) - 1));
        REQUIRE_EQ(EINVAL, set(sizeof(paths[0]) + 1));
        REQUIRE_EQ(ENOSYS, set(sizeof(paths[0]), RDMA_OPTION_IB_PATH + 1));
        REQUIRE_EQ(EFAULT, m.set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
                                        (void*)64, sizeof(paths[0])));
        for (uint32_t flags : {uint32_t(IB_PATH_PRIMARY),
                               uint32_t(IB_PATH_GMP | IB_PATH_PRIMARY |
                                        IB_PATH_OUTBOUND),
                               all | IB_PATH_INBOUND}) {
            paths[0].flags = flags;
            REQUIRE_EQ(EINVAL, set(sizeof(paths[0])));
            REQUIRE_EQ(EINVAL, set(sizeof(paths)));
        }

        paths[2].flags = all;
        REQUIRE_EQ(EINVAL, set(2 * sizeof(paths[0])));
        REQUIRE_EQ(0, set(sizeof(paths)));
        m.expect(CM_ROUTE_RESOLVED, 1);
        REQUIRE_EQ(EINVAL, set(sizeof(paths)));
        REQUIRE_EQ(EINVAL, m.route(id));
        REQUIRE_EQ(0, m.connect(id));
        m.expect(CM_REJECTED, 1);
    });
}

TEST_F(test_device_rdmacm, attributes_follow_the_state)
{
    run(1, [](rank &) {
        const unsigned init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                              IBV_QP_ACCESS_FLAGS;
        const unsigned rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                             IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        const unsigned rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                             IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC;
        ib_uverbs_qp_attr attr, other;
        const uint8_t timeout = 9;
        ends e;

        REQUIRE_EQ(EINVAL, e.server.qp_attr(e.server.create(1), IBV_QPS_INIT,
                                            &attr));
        REQUIRE_EQ(0, e.client.qp_attr(e.active, IBV_QPS_INIT, &attr));
        REQUIRE_EQ(init, attr.qp_attr_mask);
        REQUIRE_EQ(0, attr.qp_access_flags);
        REQUIRE_EQ(1, attr.port_num);
        REQUIRE_EQ(0, e.client.set_option(e.active, RDMA_OPTION_ID,
                                          RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                                          sizeof(timeout)));
        e.request();
        REQUIRE_EQ(EINVAL, e.client.qp_attr(e.active, IBV_QPS_RTR, &attr));
        REQUIRE_EQ(0, e.server.qp_attr(e.passive, IBV_QPS_INIT, &attr));
        REQUIRE_EQ(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                   IBV_ACCESS_REMOTE_ATOMIC, attr.qp_access_flags);

        REQUIRE_EQ(0, e.server.qp_attr(e.passive, IBV_QPS_RTR, &attr));
        REQUIRE_EQ(rtr, attr.qp_attr_mask);
        REQUIRE_EQ(100, attr.dest_qp_num);
        REQUIRE_EQ(5, attr.max_dest_rd_atomic);
        REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER, 200));
        REQUIRE_EQ(0, e.server.qp_attr(e.passive, IBV_QPS_RTS, &other));
        REQUIRE_EQ(rts, other.qp_attr_mask);
        REQUIRE_EQ(5, other.max_rd_atomic);
        REQUIRE_EQ(6, other.retry_cnt);

        /* each sends with the number that the other one expects */
        e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(0, e.client.qp_attr(e.active, IBV_QPS_RTS, &attr));
        REQUIRE_EQ(9, attr.timeout);
        REQUIRE_EQ(0, e.server.qp_attr(e.passive, IBV_QPS_RTR, &other));
        REQUIRE_EQ(other.rq_psn, attr.sq_psn);
        REQUIRE_EQ(0, e.client.qp_attr(e.active, IBV_QPS_RTR, &attr));
        REQUIRE_EQ(200, attr.dest_qp_num);
    });
}

/* Who is asked has the path that the request says, whatever the listener's
 * options are */
TEST_F(test_device_rdmacm, a_request_says_what_its_path_is)
{
    set_env("MLX5SIM_LINK", "roce");
    run(1, [](rank &) {
        static const struct {
            uint8_t own, others;
        } timeouts[] = {{0, 18}, {9, 16}, {16, 17}, {20, 20}, {31, 31}};
        const uint8_t other = 7;
        ib_uverbs_qp_attr attr;
        uint8_t tos = 0x20;

        for (const auto &timeout : timeouts) {
            ends e;

            tos += 4;
            for (unsigned name : {RDMA_OPTION_ID_TOS,
                                  RDMA_OPTION_ID_ACK_TIMEOUT}) {
                REQUIRE_EQ(0, e.server.set_option(e.listener, RDMA_OPTION_ID,
                                                  name, &other, 1));
                REQUIRE_EQ(0, e.client.set_option(e.active, RDMA_OPTION_ID,
                                                  name,
                                                  (name == RDMA_OPTION_ID_TOS) ?
                                                  &tos : &timeout.own, 1));
            }
            e.request();
            REQUIRE_EQ(0, e.server.qp_attr(e.passive, IBV_QPS_RTR, &attr));
            REQUIRE_EQ(tos, attr.ah_attr.grh.traffic_class);
            REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER));
            REQUIRE_EQ(0, e.server.qp_attr(e.passive, IBV_QPS_RTS, &attr));
            REQUIRE_EQ(timeout.others, attr.timeout);

            /* until it says something else of itself */
            REQUIRE_EQ(0, e.server.set_option(e.passive, RDMA_OPTION_ID,
                                              RDMA_OPTION_ID_ACK_TIMEOUT,
                                              &other, 1));
            REQUIRE_EQ(0, e.server.qp_attr(e.passive, IBV_QPS_RTS, &attr));
            REQUIRE_EQ(other, attr.timeout);
            e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
            REQUIRE_EQ(0, e.client.qp_attr(e.active, IBV_QPS_RTS, &attr));
            REQUIRE_EQ(timeout.own, attr.timeout);
        }
    });
}

TEST_F(test_device_rdmacm, datagrams_are_told_where_to_go)
{
    run(1, [](rank &) {
        rdma_ucm_event_resp event;
        ib_uverbs_qp_attr attr;
        cm server, client;
        uint32_t listener, active, passive;

        listener = server.create(UID_LISTENER, RDMA_PS_UDP);
        REQUIRE_EQ(0, server.bind(listener, local, 0));
        REQUIRE_EQ(0, server.listen(listener));
        active = client.to(UID_CLIENT, local, server.port(listener),
                           RDMA_PS_UDP);
        REQUIRE_EQ(0, client.qp_attr(active, IBV_QPS_INIT, &attr));
        REQUIRE_EQ(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
                   attr.qp_attr_mask);
        REQUIRE_EQ(0, client.connect(active, 0, "who"));
        event   = server.expect(CM_CONNECT_REQUEST, UID_LISTENER);
        passive = event.id;
        REQUIRE(!strcmp((char*)event.param.ud.private_data, "who"));
        REQUIRE_EQ(0, server.accept(passive, UID_SERVER, 77, "me"));
        event = client.expect(CM_ESTABLISHED, UID_CLIENT);
        REQUIRE_EQ(77, event.param.ud.qp_num);
        REQUIRE_EQ(attr.qkey, event.param.ud.qkey);
        REQUIRE_EQ(1, event.param.ud.ah_attr.port_num);
        REQUIRE(!strcmp((char*)event.param.ud.private_data, "me"));
    });
}

/* An address of IP has no key of its own: ucma_copy_conn_param(),
 * cma_send_sidr_rep() */
TEST_F(test_device_rdmacm, datagrams_of_ip_addresses_have_one_key)
{
    run(1, [](rank &) {
        const uint32_t udp_qkey = 0x01234567; /* RDMA_UDP_QKEY */
        rdma_ucm_accept in      = {};
        ib_uverbs_qp_attr attr;
        cm server, client;
        uint32_t listener, active;

        listener = server.create(UID_LISTENER, RDMA_PS_UDP);
        REQUIRE_EQ(0, server.bind(listener, local, 0));
        REQUIRE_EQ(0, server.listen(listener));
        active = client.to(UID_CLIENT, local, server.port(listener),
                           RDMA_PS_UDP);
        REQUIRE_EQ(0, client.connect(active));
        in.uid              = UID_SERVER;
        in.id               = server.expect(CM_CONNECT_REQUEST,
                                            UID_LISTENER).id;
        in.conn_param.valid = 1;
        in.conn_param.qkey  = 0x11111111;
        REQUIRE_EQ(0, server.command(RDMA_USER_CM_CMD_ACCEPT, in));
        REQUIRE_EQ(udp_qkey, client.expect(CM_ESTABLISHED,
                                           UID_CLIENT).param.ud.qkey);
        const std::pair<cm*, uint32_t> both[] = {{&server, in.id},
                                                 {&client, active}};
        for (const auto &end : both) {
            REQUIRE_EQ(0, end.first->qp_attr(end.second, IBV_QPS_INIT, &attr));
            REQUIRE_EQ(udp_qkey, attr.qkey);
        }
    });
}

TEST_F(test_device_rdmacm, events_can_be_waited_for)
{
    run(1, [](rank &) {
        rdma_ucm_event_resp event;
        ends e;

        fcntl(e.client.fd, F_SETFL, O_NONBLOCK);
        REQUIRE(!is_readable(e.client));
        REQUIRE_EQ(EAGAIN, e.client.try_event(&event));
        e.request();
        REQUIRE_EQ(0, e.server.reject(e.passive));
        REQUIRE(is_readable(e.client));
        /* memory that is none takes no event */
        REQUIRE_EQ(EFAULT, e.client.try_event((rdma_ucm_event_resp*)64));
        REQUIRE(is_readable(e.client));
        REQUIRE_EQ(0, e.client.try_event(&event));
        REQUIRE_EQ(CM_REJECTED, event.event);
        REQUIRE_EQ(EAGAIN, e.client.try_event(&event));

        /* those of an id go with it */
        e.client.to(1, local, 1);
        e.active = e.client.to(2, local, 1);
        REQUIRE_EQ(0, e.client.connect(e.active));
        REQUIRE(is_readable(e.client));
        REQUIRE_EQ(2, e.client.destroy(e.active));
        REQUIRE(!is_readable(e.client));
    });
}

TEST_F(test_device_rdmacm, an_id_moves_with_its_events)
{
    run(1, [](rank &) {
        rdma_ucm_migrate_resp out = {};
        rdma_ucm_migrate_id in    = {};
        ends e;
        cm other;

        REQUIRE_EQ(0, e.client.connect(e.active));
        in.response = (uintptr_t)&out;
        in.id       = e.listener;
        in.fd       = e.client.fd;
        REQUIRE_EQ(EINVAL, other.command(RDMA_USER_CM_CMD_MIGRATE_ID, in,
                                         sizeof(out)));
        in.fd = e.server.fd;
        REQUIRE_EQ(0, other.command(RDMA_USER_CM_CMD_MIGRATE_ID, in,
                                    sizeof(out)));
        REQUIRE(!is_readable(e.server));
        e.passive = other.expect(CM_CONNECT_REQUEST, UID_LISTENER).id;
        REQUIRE_EQ(EINVAL, e.server.accept(e.passive, UID_SERVER));
        REQUIRE_EQ(0, other.accept(e.passive, UID_SERVER));
        e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
    });
}

/* ucma_migrate_id(): the descriptor is looked at before the id */
TEST_F(test_device_rdmacm, an_id_moves_from_no_other_file)
{
    run(1, [](rank &) {
        rdma_ucm_migrate_resp out = {};
        rdma_ucm_migrate_id in    = {};
        int pipe_fds[2];
        ends e;
        cm other;

        auto migrate = [&](int fd, uint32_t id) {
            in.response = (uintptr_t)&out;
            in.id       = id;
            in.fd       = fd;
            return other.command(RDMA_USER_CM_CMD_MIGRATE_ID, in, sizeof(out));
        };

        REQUIRE_EQ(0, pipe(pipe_fds));
        REQUIRE_EQ(ENOENT, migrate(-1, e.active));
        REQUIRE_EQ(ENOENT, migrate(1 << 20, e.active));
        REQUIRE_EQ(EINVAL, migrate(pipe_fds[0], e.active));
        REQUIRE_EQ(EINVAL, migrate(pipe_fds[0], 1 << 20));
        REQUIRE_EQ(ENOENT, migrate(e.client.fd, 1 << 20));
        REQUIRE_EQ(EINVAL, migrate(other.fd, e.active));
        REQUIRE_EQ(0, migrate(e.client.fd, e.active));
        REQUIRE_EQ(2, out.events_reported);

        /* to where it is */
        out = {};
        REQUIRE_EQ(0, migrate(other.fd, e.active));
        REQUIRE_EQ(2, out.events_reported);
        REQUIRE_EQ(2, other.destroy(e.active));

        /* nor from what has come to the number */
        REQUIRE_EQ(0, syscall(SYS_close, e.server.fd));
        REQUIRE_EQ(ENOENT, migrate(e.server.fd, e.listener));
        REQUIRE_EQ(e.server.fd, syscall(SYS_dup2, pipe_fds[0], e.server.fd));
        REQUIRE_EQ(EINVAL, migrate(e.server.fd, e.listener));
    });
}

TEST_F(test_device_rdmacm, data_may_come_before_the_last_message)
{
    run(1, [](rank &) {
        ends e;

        e.request();
        REQUIRE_EQ(EINVAL, e.server.notify(e.passive, IBV_EVENT_COMM_EST));
        REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER));
        REQUIRE_EQ(EINVAL, e.server.notify(e.passive, IBV_EVENT_PATH_MIG));
        REQUIRE_EQ(0, e.server.notify(e.passive, IBV_EVENT_COMM_EST));
        e.server.expect(CM_ESTABLISHED, UID_SERVER);
        e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE_EQ(0, e.client.establish(e.active));
        REQUIRE(!is_readable(e.server));
        REQUIRE_EQ(EISCONN, e.server.notify(e.passive, IBV_EVENT_COMM_EST));
        REQUIRE_EQ(EISCONN, e.client.notify(e.active, IBV_EVENT_COMM_EST));
    });
}

/* Who has accepted may end the connection as soon as it has data. The other
 * side hears of that when it is ready. */
TEST_F(test_device_rdmacm, the_end_may_come_before_the_last_message)
{
    run(1, [](rank &) {
        ends e;

        e.request();
        REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER));
        REQUIRE_EQ(0, e.server.notify(e.passive, IBV_EVENT_COMM_EST));
        e.server.expect(CM_ESTABLISHED, UID_SERVER);
        REQUIRE_EQ(0, e.server.disconnect(e.passive));
        e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
        REQUIRE(!is_readable(e.client));
        REQUIRE_EQ(0, e.client.establish(e.active));
        e.client.expect(CM_DISCONNECTED, UID_CLIENT);
        REQUIRE_EQ(0, e.client.disconnect(e.active));
        e.client.expect(CM_TIMEWAIT_EXIT, UID_CLIENT);
        e.server.expect(CM_DISCONNECTED, UID_SERVER);
        e.server.expect(CM_TIMEWAIT_EXIT, UID_SERVER);
    });
}

/* Ten thousand requests to one who does not read them: some are shown to it,
 * the others wait for room, and others are not disturbed */
TEST_F(test_device_rdmacm, a_flood_of_requests_waits)
{
    const unsigned backlog = 8;
    const unsigned count   = has_asan() ? 2000 : 10000;

    auto server = [=](rank &r) {
        cm m;
        uint32_t listener = m.listener(UID_LISTENER, local, 0, backlog);
        rdma_ucm_event_resp event;
        unsigned seen;

        r.word(0) = m.port(listener);
        r.wait_word(1, 1);
        fcntl(m.fd, F_SETFL, O_NONBLOCK);
        /* one more comes for each that is read */
        for (seen = 0; seen < 3 * backlog; ++seen) {
            m.expect(CM_CONNECT_REQUEST, UID_LISTENER);
        }
        m.destroy(listener);
        REQUIRE_EQ(EAGAIN, m.try_event(&event));
        r.word(2) = 1;
    };
    auto client = [=](rank &r) {
        rdma_ucm_event_resp event;
        std::vector<uint32_t> ids;
        unsigned i, rejected;
        cm m;

        r.wait_word(0, 1);
        for (i = 0; i < count; ++i) {
            ids.push_back(m.to(i, local, r.word(0)));
            REQUIRE_EQ(0, m.connect(ids.back()));
        }
        /* another one is served as before */
        ends e;
        e.establish();
        r.word(1) = 1;
        r.wait_word(2, 1);
        /* all are told that nobody listens, those that were read as well */
        for (rejected = 0; rejected < count; ++rejected) {
            REQUIRE_EQ(0, m.try_event(&event));
            REQUIRE_EQ(CM_REJECTED, event.event);
        }
        for (uint32_t id : ids) {
            m.destroy(id);
        }
    };

    start(0, 2, server);
    start(1, 2, client);
    finish_all();
}

/* The listener can't be told without one. The request has gone then, and comes
 * again: others may have its place meanwhile. */
TEST_F(test_device_rdmacm, a_request_waits_for_a_descriptor)
{
    catch_errors();
    run(1, [](rank &) {
        rlimit all, none;
        ends e, f;

        REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &all));
        none          = all;
        none.rlim_cur = 0;
        REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
        REQUIRE_EQ(0, e.client.connect(e.active, 100, "hello"));
        for (unsigned i = 0; i < 100; ++i) {
            f.server.destroy(f.server.create(i));
        }
        REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &all));
        e.passive = e.server.expect(CM_CONNECT_REQUEST, UID_LISTENER).id;
        REQUIRE_EQ(0, e.server.accept(e.passive, UID_SERVER));
        e.client.expect(CM_CONNECT_RESPONSE, UID_CLIENT);
    });
    EXPECT_NE(std::string::npos, errors().find("no more descriptors"));
}

TEST_F(test_device_rdmacm, who_has_no_answer_gives_up)
{
    set_env("MLX5SIM_CM_TIMEOUT", "1");
    run(1, [](rank &) {
        ends e, f;

        REQUIRE_EQ(0, e.client.connect(e.active));
        REQUIRE_EQ(-ETIMEDOUT, (int)e.client.expect(CM_UNREACHABLE,
                                                    UID_CLIENT).status);
        /* the request was there, and is of no use */
        e.passive = e.server.expect(CM_CONNECT_REQUEST, UID_LISTENER).id;
        REQUIRE_EQ(EINVAL, e.server.accept(e.passive, UID_SERVER));
    });
}

TEST_F(test_device_rdmacm, ids_have_a_limit)
{
    catch_errors();
    run(1, [](rank &) {
        cm m;
        unsigned count = 0;

        while (m.try_create(count) != 0) {
            ++count;
        }
        REQUIRE_EQ(ENOMEM, errno);
        REQUIRE_EQ((1 << 14) - 1, count);
    });
    EXPECT_NE(std::string::npos, errors().find("16383 ids of the connection "
                                               "manager"));
}

TEST_F(test_device_rdmacm, multicast_is_refused)
{
    catch_errors();
    run(1, [](rank &) {
        rdma_ucm_create_id_resp out = {};
        rdma_ucm_join_mcast in      = {};
        rdma_ucm_destroy_id leave   = {};
        cm m;

        in.response    = (uintptr_t)&out;
        in.id          = m.create(1);
        leave.response = (uintptr_t)&out;
        REQUIRE_EQ(EOPNOTSUPP, m.command(RDMA_USER_CM_CMD_JOIN_MCAST, in,
                                         sizeof(out)));
        REQUIRE_EQ(ENOENT, m.command(RDMA_USER_CM_CMD_LEAVE_MCAST, leave,
                                     sizeof(out)));
    });
    EXPECT_NE(std::string::npos, errors().find("not emulated: multicast"));
}

/* Who joins a group resolves its address before, and stops there */
TEST_F(test_device_rdmacm, addresses_of_groups_are_refused)
{
    set_env("MLX5SIM_LINK", "roce");
    for (const char *group : {"239.1.1.1", "ff0e::1"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + group[0]);
        catch_errors();
        run(1, [group](rank &) {
            cm m;
            uint32_t id = m.create(1, RDMA_PS_UDP);

            REQUIRE_EQ(0, m.resolve(id, group, 1));
            REQUIRE_EQ(-ENODEV, (int)m.expect(CM_ADDR_ERROR, 1).status);
        });
        EXPECT_NE(std::string::npos, errors().find("not emulated: multicast"))
                << group;
    }
}

TEST_F(test_device_rdmacm, a_child_can_not_use_the_descriptor)
{
    run(1, [](rank &) {
        ends e;
        pid_t child;
        int status;

        e.establish();
        child = fork();
        if (child == 0) {
            rdma_ucm_event_resp event;
            int ret = e.client.try_event(&event);

            close(e.client.fd);
            _exit(ret);
        }
        REQUIRE_EQ(child, waitpid(child, &status, 0));
        REQUIRE(WIFEXITED(status));
        REQUIRE_EQ(EIO, WEXITSTATUS(status));
        /* what it closes is still there */
        REQUIRE_EQ(0, e.server.disconnect(e.passive));
        e.client.expect(CM_DISCONNECTED, UID_CLIENT);
    });
}

TEST_F(test_device_rdmacm, fuzzed_commands_of_any_length)
{
    run(1, [](rank &) {
        const uint32_t num_commands = RDMA_USER_CM_CMD_JOIN_MCAST + 1;
        pattern random(seed::get());
        uint8_t in[600], out[600];
        void *none = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
        ends e;
        uint64_t *words = (uint64_t*)in;
        unsigned i, number;
        size_t length;

        e.establish();
        /* what is too short for what it is */
        for (number = 0; number < num_commands; ++number) {
            int ret = e.client.command(number, in, 0, sizeof(out));

            REQUIRE_EQ((number == RDMA_USER_CM_CMD_GET_OPTION) ? ENOSYS :
                                                                 EINVAL, ret);
        }
        REQUIRE_EQ(EINVAL, e.client.command(num_commands, in, sizeof(in)));
        REQUIRE(write(e.client.fd, in, 7) < 0);
        REQUIRE_EQ(EINVAL, errno);
        REQUIRE(write(e.client.fd, none, 64) < 0);
        REQUIRE_EQ(EFAULT, errno);
        memset(in, 0xff, sizeof(in)); /* the header says more than there is */
        ((rdma_ucm_cmd_hdr*)in)->cmd = RDMA_USER_CM_CMD_LISTEN;
        REQUIRE(write(e.client.fd, in, 64) < 0);
        REQUIRE_EQ(EINVAL, errno);

        /* anything else */
        fcntl(e.client.fd, F_SETFL, O_NONBLOCK);
        for (i = 0; i < 20000; ++i) {
            number = random.below(num_commands);
            length = random.below(sizeof(in));
            for (size_t j = 0; j < sizeof(in) / 8; ++j) {
                switch (random.below(4)) {
                case 0:
                    words[j] = random.next();
                    break;
                case 1:
                    words[j] = (uintptr_t)out;
                    break;
                case 2:
                    words[j] = random.below(40) | random.below(40) << 32;
                    break;
                default:
                    words[j] = 0;
                    break;
                }
            }
            (void)e.client.command(number, in, length,
                                   random.below(sizeof(out)));
        }

        /* it goes on */
        ends f;
        f.establish();
    });
}
