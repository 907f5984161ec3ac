/* SPDX-License-Identifier: BSD-3-Clause */

#include <device/device_cm.h>

#include <device/device.h>

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace device {

cm::cm(int flags) :
    fd(open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC | flags))
{
    REQUIRE(fd >= 0);
}

cm::~cm()
{
    close(fd);
}

int cm::command(uint32_t number, const void *in, size_t in_size,
                size_t out_size)
{
    std::vector<uint8_t> message(sizeof(rdma_ucm_cmd_hdr) + in_size);
    rdma_ucm_cmd_hdr header = {};

    header.cmd = number;
    header.in  = in_size;
    header.out = out_size;
    memcpy(message.data(), &header, sizeof(header));
    if (in_size > 0) {
        memcpy(message.data() + sizeof(header), in, in_size);
    }

    ssize_t written = write(fd, message.data(), message.size());
    if (written < 0) {
        return errno;
    }
    REQUIRE_EQ(message.size(), written);
    return 0;
}

uint32_t cm::try_create(uint64_t uid, unsigned ps)
{
    rdma_ucm_create_id_resp out = {};
    rdma_ucm_create_id in       = {};

    in.uid      = uid;
    in.response = (uintptr_t)&out;
    in.ps       = ps;
    in.qp_type  = IBV_QPT_RC;
    errno       = command(RDMA_USER_CM_CMD_CREATE_ID, in, sizeof(out));
    return (errno == 0) ? out.id : 0;
}

uint32_t cm::create(uint64_t uid, unsigned ps)
{
    uint32_t id = try_create(uid, ps);

    REQUIRE(id != 0);
    return id;
}

unsigned cm::destroy(uint32_t id)
{
    rdma_ucm_destroy_id_resp out = {};
    rdma_ucm_destroy_id in       = {};

    in.response = (uintptr_t)&out;
    in.id       = id;
    REQUIRE_EQ(0, command(RDMA_USER_CM_CMD_DESTROY_ID, in, sizeof(out)));
    return out.events_reported;
}

static uint16_t to_sockaddr(const std::string &ip, uint16_t port,
                            __kernel_sockaddr_storage *addr_p)
{
    sockaddr_in *in   = (sockaddr_in*)addr_p;
    sockaddr_in6 *in6 = (sockaddr_in6*)addr_p;

    memset(addr_p, 0, sizeof(*addr_p));
    if (ip.find(':') == std::string::npos) {
        in->sin_family = AF_INET;
        in->sin_port   = htons(port);
        REQUIRE_EQ(1, inet_pton(AF_INET, ip.c_str(), &in->sin_addr));
        return sizeof(*in);
    }

    in6->sin6_family = AF_INET6;
    in6->sin6_port   = htons(port);
    REQUIRE_EQ(1, inet_pton(AF_INET6, ip.c_str(), &in6->sin6_addr));
    return sizeof(*in6);
}

int cm::bind(uint32_t id, const std::string &ip, uint16_t port)
{
    rdma_ucm_bind in = {};

    in.id        = id;
    in.addr_size = to_sockaddr(ip, port, &in.addr);
    return command(RDMA_USER_CM_CMD_BIND, in);
}

int cm::resolve(uint32_t id, const std::string &ip, uint16_t port)
{
    rdma_ucm_resolve_addr in = {};

    in.id         = id;
    in.timeout_ms = 1000;
    in.dst_size   = to_sockaddr(ip, port, &in.dst_addr);
    return command(RDMA_USER_CM_CMD_RESOLVE_ADDR, in);
}

int cm::route(uint32_t id)
{
    rdma_ucm_resolve_route in = {};

    in.id         = id;
    in.timeout_ms = 1000;
    return command(RDMA_USER_CM_CMD_RESOLVE_ROUTE, in);
}

int cm::listen(uint32_t id, unsigned backlog)
{
    rdma_ucm_listen in = {};

    in.id      = id;
    in.backlog = backlog;
    return command(RDMA_USER_CM_CMD_LISTEN, in);
}

static void fill_param(rdma_ucm_conn_param *param_p, uint32_t qpn,
                       const std::string &data)
{
    param_p->qp_num              = qpn;
    param_p->responder_resources = 3;
    param_p->initiator_depth     = 5;
    param_p->retry_count         = 6;
    param_p->rnr_retry_count     = 7;
    param_p->valid               = 1;
    param_p->private_data_len    = data.size();
    memcpy(param_p->private_data, data.data(), data.size());
}

int cm::connect(uint32_t id, uint32_t qpn, const std::string &data)
{
    rdma_ucm_connect in = {};

    in.id = id;
    fill_param(&in.conn_param, qpn, data);
    return command(RDMA_USER_CM_CMD_CONNECT, in);
}

int cm::accept(uint32_t id, uint64_t uid, uint32_t qpn, const std::string &data)
{
    rdma_ucm_accept in = {};

    in.id  = id;
    in.uid = uid;
    fill_param(&in.conn_param, qpn, data);
    return command(RDMA_USER_CM_CMD_ACCEPT, in);
}

int cm::establish(uint32_t id)
{
    rdma_ucm_accept in = {};

    in.id = id;
    return command(RDMA_USER_CM_CMD_ACCEPT, in);
}

int cm::reject(uint32_t id, const std::string &data, uint8_t reason)
{
    rdma_ucm_reject in = {};

    in.id               = id;
    in.reason           = reason;
    in.private_data_len = data.size();
    memcpy(in.private_data, data.data(), data.size());
    return command(RDMA_USER_CM_CMD_REJECT, in);
}

int cm::disconnect(uint32_t id)
{
    rdma_ucm_disconnect in = {id};

    return command(RDMA_USER_CM_CMD_DISCONNECT, in);
}

int cm::notify(uint32_t id, uint32_t event)
{
    rdma_ucm_notify in = {id, event};

    return command(RDMA_USER_CM_CMD_NOTIFY, in);
}

int cm::set_option(uint32_t id, uint32_t level, uint32_t name,
                   const void *value, uint32_t length)
{
    rdma_ucm_set_option in = {};

    in.optval  = (uintptr_t)value;
    in.id      = id;
    in.level   = level;
    in.optname = name;
    in.optlen  = length;
    return command(RDMA_USER_CM_CMD_SET_OPTION, in);
}

int cm::qp_attr(uint32_t id, unsigned state, ib_uverbs_qp_attr *attr_p)
{
    rdma_ucm_init_qp_attr in = {};

    in.response = (uintptr_t)attr_p;
    in.id       = id;
    in.qp_state = state;
    return command(RDMA_USER_CM_CMD_INIT_QP_ATTR, in, sizeof(*attr_p));
}

rdma_ucm_query_addr_resp cm::query(uint32_t id)
{
    rdma_ucm_query_addr_resp out = {};
    rdma_ucm_query in            = {};

    in.response = (uintptr_t)&out;
    in.id       = id;
    in.option   = RDMA_USER_CM_QUERY_ADDR;
    REQUIRE_EQ(0, command(RDMA_USER_CM_CMD_QUERY, in, sizeof(out)));
    return out;
}

int cm::try_event(rdma_ucm_event_resp *event_p)
{
    rdma_ucm_get_event in = {};

    in.response = (uintptr_t)event_p;
    return command(RDMA_USER_CM_CMD_GET_EVENT, in, sizeof(*event_p));
}

rdma_ucm_event_resp cm::expect(uint32_t event, uint64_t uid)
{
    rdma_ucm_event_resp found = {};

    REQUIRE_EQ(0, try_event(&found));
    REQUIRE_EQ(event, found.event);
    REQUIRE_EQ(uid, found.uid);
    return found;
}

uint32_t cm::listener(uint64_t uid, const std::string &ip, uint16_t port,
                      unsigned backlog)
{
    uint32_t id = create(uid);

    REQUIRE_EQ(0, bind(id, ip, port));
    REQUIRE_EQ(0, listen(id, backlog));
    return id;
}

uint32_t cm::to(uint64_t uid, const std::string &ip, uint16_t port, unsigned ps)
{
    uint32_t id = create(uid, ps);

    REQUIRE_EQ(0, resolve(id, ip, port));
    expect(CM_ADDR_RESOLVED, uid);
    REQUIRE_EQ(0, route(id));
    expect(CM_ROUTE_RESOLVED, uid);
    return id;
}

uint16_t cm::port(uint32_t id)
{
    rdma_ucm_query_addr_resp addrs = query(id);

    return ntohs(((sockaddr_in*)&addrs.src_addr)->sin_port);
}

void cm_modify(cm &c, uint32_t id, qp &q, ibv_qp_state state)
{
    ib_uverbs_qp_attr from = {};
    ibv_qp_attr attr       = {};

    REQUIRE_EQ(0, c.qp_attr(id, state, &from));
    attr.qp_state                      = (ibv_qp_state)from.qp_state;
    attr.path_mtu                      = (ibv_mtu)from.path_mtu;
    attr.rq_psn                        = from.rq_psn;
    attr.sq_psn                        = from.sq_psn;
    attr.dest_qp_num                   = from.dest_qp_num;
    attr.qp_access_flags               = from.qp_access_flags;
    attr.pkey_index                    = from.pkey_index;
    attr.port_num                      = from.port_num;
    attr.max_rd_atomic                 = from.max_rd_atomic;
    attr.max_dest_rd_atomic            = from.max_dest_rd_atomic;
    attr.min_rnr_timer                 = from.min_rnr_timer;
    attr.timeout                       = from.timeout;
    attr.retry_cnt                     = from.retry_cnt;
    attr.rnr_retry                     = from.rnr_retry;
    attr.ah_attr.dlid                  = from.ah_attr.dlid;
    attr.ah_attr.port_num              = from.ah_attr.port_num;
    attr.ah_attr.is_global             = from.ah_attr.is_global;
    attr.ah_attr.grh.sgid_index        = from.ah_attr.grh.sgid_index;
    attr.ah_attr.grh.hop_limit         = from.ah_attr.grh.hop_limit;
    memcpy(attr.ah_attr.grh.dgid.raw, from.ah_attr.grh.dgid, 16);
    REQUIRE_EQ(0, ibv_modify_qp(q.v, &attr, from.qp_attr_mask));
}

} // namespace device
