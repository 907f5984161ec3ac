/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/queue/recv_wqe.h>
#include <sim/objs/mem.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>

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

int mlx5sim_recv_wqe_next(const mlx5sim_proc_t *proc,
                          mlx5sim_recv_ahead_t *ahead, uint64_t db,
                          uint64_t buf, uint32_t num_wqes, unsigned shift,
                          uint32_t slot, uint16_t consumed, uint32_t *db_p,
                          void *wqe_p)
{
    size_t stride = 1ul << shift;
    uint32_t num  = MLX5SIM_RECV_AHEAD >> shift;
    int is_mine   = proc == mlx5sim_proc_self();

    if (!is_mine && mlx5sim_proc_is_gone(proc)) {
        return -1;
    }

    if (is_mine || (num < 2)) {
        ahead->num = 0;
        return mlx5sim_recv_wqe_read(proc, is_mine, db,
                                     buf + ((uint64_t)slot << shift), stride,
                                     db_p, wqe_p);
    }

    if ((ahead->db == consumed) || (slot < ahead->first) ||
        (slot - ahead->first >= ahead->num)) {
        /* whoever is killed meanwhile leaves none */
        if (num > num_wqes - slot) {
            num = num_wqes - slot;
        }
        ahead->num = 0;
        atomic_thread_fence(memory_order_release);
        if (mlx5sim_recv_wqe_read(proc, 0, db, buf + ((uint64_t)slot << shift),
                                  num * stride, db_p, ahead->wqes) != 0) {
            return -1;
        }
        ahead->first = slot;
        ahead->db    = *db_p;
        atomic_thread_fence(memory_order_release);
        ahead->num   = num;
    }

    *db_p = ahead->db;
    memcpy(wqe_p, ahead->wqes + ((slot - ahead->first) << shift), stride);
    return 0;
}
