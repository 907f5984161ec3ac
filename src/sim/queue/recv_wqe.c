/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/queue/recv_wqe.h>
#include <sim/objs/mem.h>

#include <endian.h>
#include <string.h>


int mlx5sim_recv_wqe_read(const mlx5sim_proc_t *proc, int is_mine, uint64_t db,
                          uint64_t wqe, size_t stride, uint32_t *db_p,
                          void *wqe_p)
{
    struct iovec local[2], remote[2];

    if (is_mine) {
        *db_p = be32toh(*(volatile uint32_t*)(uintptr_t)db);
        atomic_thread_fence(memory_order_acquire);
        memcpy(wqe_p, (void*)(uintptr_t)wqe, stride);
        return 0;
    }

    local[0]  = (struct iovec){db_p, sizeof(*db_p)};
    local[1]  = (struct iovec){wqe_p, stride};
    remote[0] = (struct iovec){(void*)(uintptr_t)db, sizeof(*db_p)};
    remote[1] = (struct iovec){(void*)(uintptr_t)wqe, stride};
    if (mlx5sim_mem_readv(proc, local, 2, remote, 2,
                          sizeof(*db_p) + stride) != 0) {
        return -1;
    }

    *db_p = be32toh(*db_p);
    return 0;
}
