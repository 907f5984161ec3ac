/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/engine.h>
#include <sim/engine/mlx5_def.h>

#include <endian.h>


mlx5sim_chk_t mlx5sim_recv_decode(const void *wqe, unsigned stride, int is_srq,
                                  mlx5sim_recv_wqe_t *recv_p)
{
    const mlx5sim_data_seg_t *data = wqe;
    const mlx5sim_data_seg_t *end  = data + (stride / sizeof(*data));
    uint64_t total                 = 0;
    unsigned count                 = 0;
    uint32_t length, lkey;

    recv_p->num_segs = 0;
    recv_p->length   = 0;
    if (is_srq) {
        data += sizeof(mlx5sim_srq_next_seg_t) / sizeof(*data);
    }

    if (data >= end) {
        return MLX5SIM_CHK_RECV_WQE;
    }

    for (; data < end; ++data) {
        length = be32toh(data->byte_count);
        lkey   = be32toh(data->lkey);
        if (lkey == MLX5SIM_LKEY_INVALID) {
            break;
        }

        if (length & MLX5SIM_INLINE_FLAG) {
            return MLX5SIM_CHK_RECV_WQE;
        }

        /* Unlike in a send WQE, 0 is not 2^31 bytes here: libmlx5 puts empty
         * entries of the caller's list into an SRQ as they are. */
        if (length == 0) {
            continue;
        }

        if (count == MLX5SIM_MAX_SGE) {
            return MLX5SIM_CHK_RECV_WQE;
        }

        recv_p->segs[count].addr   = be64toh(data->addr);
        recv_p->segs[count].length = length;
        recv_p->segs[count].lkey   = lkey;
        recv_p->segs[count].inl    = NULL;
        recv_p->segs[count].has_layout = 0;
        total                     += length;
        ++count;
    }

    recv_p->num_segs = count;
    recv_p->length   = (total < UINT32_MAX) ? total : UINT32_MAX;
    return MLX5SIM_CHK_OK;
}
