/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_ATTR_H_
#define MLX5SIM_ATTR_H_

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdint.h>
#include <stddef.h>

/*
 * Attributes of a uverbs ioctl (rdma/rdma_user_ioctl_cmds.h).
 */

/** Attribute @a id, NULL if the caller did not give it. */
static inline const struct ib_uverbs_attr *
mlx5sim_attr_find(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
    unsigned i;

    for (i = 0; i < hdr->num_attrs; ++i) {
        if (hdr->attrs[i].attr_id == id) {
            return &hdr->attrs[i];
        }
    }

    return NULL;
}

/** Attribute @a id if it has that length. @return 0 or -EINVAL */
static inline int
mlx5sim_attr_find_sized(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id,
                        size_t length, const struct ib_uverbs_attr **attr_p)
{
    *attr_p = mlx5sim_attr_find(hdr, id);
    return ((*attr_p != NULL) && ((*attr_p)->len == length)) ? 0 : -EINVAL;
}

/** The same of an output attribute, which leads to memory.
 *  @return 0 or -errno */
static inline int
mlx5sim_attr_find_out(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id,
                      size_t length, const struct ib_uverbs_attr **attr_p)
{
    int ret = mlx5sim_attr_find_sized(hdr, id, length, attr_p);

    return ((ret == 0) && ((*attr_p)->data == 0)) ? -EFAULT : ret;
}

/** Flags of 32 bits, which may come in 64, or not at all. @return 0 or
 *  -EINVAL */
static inline int mlx5sim_attr_flags(struct ib_uverbs_ioctl_hdr *hdr,
                                     uint16_t id, uint32_t *flags_p)
{
    const struct ib_uverbs_attr *flags = mlx5sim_attr_find(hdr, id);

    *flags_p = 0;
    if (flags == NULL) {
        return 0;
    }

    if ((flags->len != sizeof(uint32_t)) &&
        ((flags->len != sizeof(uint64_t)) || (flags->data >> 32))) {
        return -EINVAL;
    }

    *flags_p = flags->data;
    return 0;
}

/** What an input attribute holds: up to 8 bytes are in the attribute itself. */
static inline const void *mlx5sim_attr_in(const struct ib_uverbs_attr *attr)
{
    return (attr->len <= sizeof(attr->data)) ? (const void*)&attr->data :
                                               (const void*)(uintptr_t)
                                                       attr->data;
}

/** Where an output attribute is written to; sets the flag by which libibverbs
 *  tells valgrind that it was. */
static inline void *mlx5sim_attr_out(const struct ib_uverbs_attr *attr)
{
    ((struct ib_uverbs_attr*)attr)->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return (void*)(uintptr_t)attr->data;
}

/** Tell the handle of a new object. */
static inline void
mlx5sim_attr_set_handle(const struct ib_uverbs_attr *attr, uint64_t handle)
{
    ((struct ib_uverbs_attr*)attr)->data   = handle;
    ((struct ib_uverbs_attr*)attr)->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
}

#endif
