/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_CM_USER_H
#define TEST_SEP_CM_USER_H

#include <common/patience.h>

#include <uct/ib/sep/conn/sep_cm.h>

#include <ucs/async/async.h>

#include <infiniband/verbs.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

/*
 * The smallest user of the connection manager: real RC QPs of plain verbs, and
 * one 8-byte message each way to see that a connection carries data.
 */
namespace sep_cm_test {

/* First mlx5 device, opened once per process */
class device {
public:
    /* NULL if there is none */
    static device *get();
    ~device();

    struct ibv_context *context = nullptr;
    struct ibv_pd      *pd      = nullptr;
    uct_sep_port_t     port;
    enum ibv_mtu       mtu;
    std::string        name;

private:
    device() = default;
    static void find_gid(device &dev, unsigned count);
    device(const device&) = delete;
};


struct options {
    ucs_async_mode_t mode        = UCS_ASYNC_MODE_THREAD_SPINLOCK;
    double           timeout     = 0.2;
    unsigned         retry_count = 20;
    unsigned         rx_len      = 512;
    unsigned         loss        = 0; /* Percent of the packets */
    unsigned         duplicates  = 0;
    uint64_t         seed        = 1;
    unsigned         max_pending = 256;
    ucs_time_t       keepalive   = UCS_TIME_INFINITY;
};


class cm_user;

struct conn {
    uct_sep_conn_t super;
    cm_user          *owner;
    struct ibv_qp  *qp          = nullptr;
    struct ibv_mr  *mr          = nullptr;
    uint64_t       rx           = 0;     /* Where the peer's message arrives */
    unsigned       qps_created  = 0;
    unsigned       established  = 0;
    unsigned       failed       = 0;
    unsigned       unused       = 0;
    bool           sleeps       = false; /* Agrees, if the peer asks */
    ucs_status_t   status       = UCS_OK;
    uct_sep_conn_qp_info_t remote = {};
};


class cm_user {
public:
    explicit cm_user(const options &opts = options());
    ~cm_user();

    /* Connection to another interface, with a reference */
    conn *get(const uct_sep_peer_addr_t &peer, unsigned path = 0);
    void put(conn *c);
    ucs_status_t start(conn *c);
    void error(conn *c);

    /* Event handlers run by themselves, except in poll mode */
    void progress();
    /* Until the predicate is true, false if it takes unreasonably long. The
     * predicate is called with the async context blocked. */
    bool wait(const std::function<bool()> &done,
              unsigned seconds = patience::seconds());
    bool wait_established(conn *c, unsigned times = 1);
    bool wait_failed(conn *c);

    /* Post the message, number of this interface, wait for the completion */
    bool send(conn *c, uint64_t value);
    /* Wait for the peer's */
    bool receive(conn *c, uint64_t value);

    unsigned live_qps();
    unsigned live_conns();
    uct_sep_cm_stats_t stats();
    void destroy_cm();

    uct_sep_peer_addr_t     addr;
    uct_sep_cm_t            *cm = nullptr;
    ucs_async_context_t     *async = nullptr;
    std::atomic<unsigned>   alloc_failures{0};
    std::atomic<unsigned>   create_failures{0};
    std::atomic<unsigned>   connect_failures{0};
    bool                    lets_go = false; /* Of what has no references */
    std::function<void(conn*)> on_failed;
    std::function<void()>      on_send;

private:
    static ucs_status_t conn_alloc(void *arg, uct_sep_conn_t **conn_p);
    static void conn_free(void *arg, uct_sep_conn_t *conn);
    static ucs_status_t qp_create(void *arg, uct_sep_conn_t *conn,
                                  uct_sep_conn_qp_info_t *local_p);
    static ucs_status_t qp_connect(void *arg, uct_sep_conn_t *conn,
                                   const uct_sep_conn_qp_info_t *remote,
                                   const struct ibv_ah_attr *ah_attr);
    static void qp_destroy(void *arg, uct_sep_conn_t *conn);
    static void established(void *arg, uct_sep_conn_t *conn);
    static void failed(void *arg, uct_sep_conn_t *conn, ucs_status_t status);
    static int let_go(void *arg, uct_sep_conn_t *conn);
    static void unused(void *arg, uct_sep_conn_t *conn);
    static void asked(void *arg, uct_sep_conn_t *conn);
    static unsigned tx_filter(void *arg, const uct_sep_conn_msg_t *msg);
    void poll();

    static const uct_sep_cm_ops_t ops;

    device                 &m_dev;
    options                m_opts;
    struct ibv_cq          *m_cq = nullptr;
    std::mt19937_64        m_rng;
    unsigned               m_live_qps   = 0;
    unsigned               m_live_conns = 0;
    unsigned               m_sent       = 0;
    unsigned               m_errors     = 0;
    std::map<uint32_t, conn*> m_received; /* By QP number */
};

} // namespace sep_cm_test

#endif
