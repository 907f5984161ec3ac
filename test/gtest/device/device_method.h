/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_METHOD_H_
#define MLX5SIM_TEST_DEVICE_METHOD_H_

/*
 * Methods of the kernel's, without libibverbs.
 */

#include <device/device.h>

#include <cerrno>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>

namespace device {

/** A method with up to 12 attributes. @return 0 or errno */
struct method {
    method(const method&) = delete;

    method(uint16_t object, uint16_t id) :
        room(), hdr(*reinterpret_cast<ib_uverbs_ioctl_hdr*>(room)),
        attrs(reinterpret_cast<ib_uverbs_attr*>(room + sizeof(hdr)))
    {
        hdr.object_id = object;
        hdr.method_id = id;
    }

    method &add(uint16_t id, uint16_t length, uint64_t data)
    {
        ib_uverbs_attr &attr = attrs[hdr.num_attrs++];

        attr         = {};
        attr.attr_id = id;
        attr.len     = length;
        attr.data    = data;
        return *this;
    }

    template<typename T> method &out(uint16_t id, T &value)
    {
        return add(id, sizeof(value), (uintptr_t)&value);
    }

    int call(context &c)
    {
        hdr.length = sizeof(hdr) + hdr.num_attrs * sizeof(attrs[0]);
        return (ioctl(c.ctx->cmd_fd, RDMA_VERBS_IOCTL, &hdr) == 0) ? 0 : errno;
    }

    alignas(8) char     room[sizeof(ib_uverbs_ioctl_hdr) +
                             12 * sizeof(ib_uverbs_attr)];
    ib_uverbs_ioctl_hdr &hdr;
    ib_uverbs_attr      *attrs;
};

} // namespace device

#endif
