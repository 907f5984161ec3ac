/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_CM_H_
#define MLX5SIM_TEST_DEVICE_CM_H_

/*
 * The connection manager as librdmacm uses it: commands that are written to
 * /dev/infiniband/rdma_cm. A failure that a test does not ask for ends the
 * process.
 */

#include <device/device_verbs.h>

#include <rdma/rdma_user_cm.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace device {

/** Events: enum rdma_cm_event_type of rdma/rdma_cma.h. */
enum {
    CM_ADDR_RESOLVED    = 0,
    CM_ADDR_ERROR       = 1,
    CM_ROUTE_RESOLVED   = 2,
    CM_CONNECT_REQUEST  = 4,
    CM_CONNECT_RESPONSE = 5,
    CM_UNREACHABLE      = 7,
    CM_REJECTED         = 8,
    CM_ESTABLISHED      = 9,
    CM_DISCONNECTED     = 10,
    CM_TIMEWAIT_EXIT    = 15
};


/** /dev/infiniband/rdma_cm, opened. */
class cm {
public:
    explicit cm(int flags = 0);
    ~cm();
    cm(const cm&) = delete;

    /** Any command. @return 0 or errno. */
    int command(uint32_t number, const void *in, size_t in_size,
                size_t out_size = 0);

    template<typename T> int command(uint32_t number, const T &in,
                                     size_t out_size = 0)
    {
        return command(number, &in, sizeof(in), out_size);
    }

    /** New id. @return 0 and errno if there are too many */
    uint32_t try_create(uint64_t uid, unsigned ps = RDMA_PS_TCP);
    uint32_t create(uint64_t uid, unsigned ps = RDMA_PS_TCP);

    /** @return How many events it had. */
    unsigned destroy(uint32_t id);

    /** Addresses in text, IPv4 or IPv6. @return 0 or errno */
    int bind(uint32_t id, const std::string &ip, uint16_t port);
    int resolve(uint32_t id, const std::string &ip, uint16_t port);
    int route(uint32_t id);
    int listen(uint32_t id, unsigned backlog = 0);
    int connect(uint32_t id, uint32_t qpn = 0, const std::string &data = "");
    int accept(uint32_t id, uint64_t uid, uint32_t qpn = 0,
               const std::string &data = "");
    /** The side that has asked is ready. */
    int establish(uint32_t id);
    int reject(uint32_t id, const std::string &data = "", uint8_t reason = 0);
    int disconnect(uint32_t id);
    int notify(uint32_t id, uint32_t event);
    int set_option(uint32_t id, uint32_t level, uint32_t name,
                   const void *value, uint32_t length);
    int qp_attr(uint32_t id, unsigned state, ib_uverbs_qp_attr *attr_p);
    rdma_ucm_query_addr_resp query(uint32_t id);

    /** Read an event; waits for it unless the descriptor does not. @return 0 or
     *  errno. */
    int try_event(rdma_ucm_event_resp *event_p);

    /** The next event has to be this one, of the id with @a uid. */
    rdma_ucm_event_resp expect(uint32_t event, uint64_t uid);

    /** Listen with an id of its own. @return its id */
    uint32_t listener(uint64_t uid, const std::string &ip, uint16_t port,
                      unsigned backlog = 0);

    /** An id whose route to an address is known. */
    uint32_t to(uint64_t uid, const std::string &ip, uint16_t port,
                unsigned ps = RDMA_PS_TCP);

    /** Port of an id's own address. */
    uint16_t port(uint32_t id);

    int fd;
};

/** Take a queue pair to a state with the attributes of an id. */
void cm_modify(cm &c, uint32_t id, qp &q, ibv_qp_state state);

} // namespace device

#endif
