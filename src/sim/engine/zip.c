/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/zip.h>
#include <sim/engine/engine.h>
#include <sim/engine/mlx5_def.h>

#include <endian.h>
#include <string.h>


static int mlx5sim_zip_is_requester(const mlx5sim_cqe64_t *cqe)
{
    return (cqe->op_own >> MLX5SIM_CQE_OPCODE_SHIFT) == MLX5SIM_CQE_REQ;
}


/* Whether @a cqe, behind @a count others, is the title's but for what its mini
 * CQE tells, or what is counted. Of timestamps the first one has to do. */
static int mlx5sim_zip_is_alike(const mlx5sim_zip_t *zip, unsigned count,
                                const mlx5sim_cqe64_t *cqe)
{
    const mlx5sim_cqe64_t *title = (const mlx5sim_cqe64_t*)zip->title;
    mlx5sim_cqe64_t same         = *cqe;
    uint16_t expected            = be16toh(title->wqe_counter) + count;

    same.byte_cnt  = title->byte_cnt;
    same.timestamp = title->timestamp;
    if (mlx5sim_zip_is_requester(cqe)) {
        same.wqe_counter  = title->wqe_counter;
        same.sop_drop_qpn = (cqe->sop_drop_qpn & htobe32(MLX5SIM_QPN_MASK)) |
                            (title->sop_drop_qpn & ~htobe32(MLX5SIM_QPN_MASK));
    } else if (zip->has_index || (be16toh(cqe->wqe_counter) == expected)) {
        same.wqe_counter = title->wqe_counter;
    }

    return memcmp(&same, title, sizeof(same)) == 0;
}


static void mlx5sim_zip_mini(const mlx5sim_zip_t *zip,
                             const mlx5sim_cqe64_t *cqe,
                             mlx5sim_mini_cqe_t *mini_p)
{
    /* receives: no hash nor checksum is computed for what is not IP. The index
     * of a stride is the WQE counter of a striding receive queue's CQE:
     * mlx5e_decompress_cqe() of the kernel's en_rx.c */
    memset(mini_p, 0, sizeof(*mini_p));
    mini_p->byte_cnt = cqe->byte_cnt;
    if (mlx5sim_zip_is_requester(cqe)) {
        mini_p->tx.wqe_counter  = cqe->wqe_counter;
        mini_p->tx.s_wqe_opcode = be32toh(cqe->sop_drop_qpn) >> 24;
    } else if (zip->has_index) {
        mini_p->rx.stride_index = cqe->wqe_counter;
    }
}


int mlx5sim_zip_put(mlx5sim_zip_t *zip, unsigned count,
                    const mlx5sim_cqe_t *cqe)
{
    mlx5sim_mini_cqe_t mini;
    mlx5sim_cqe64_t bytes;

    if ((count >= MLX5SIM_ZIP_MAX) || (cqe->scattered > 0) ||
        (cqe->opcode > MLX5SIM_CQE_RESP_SEND_INV)) {
        return 0;
    }

    mlx5sim_cqe_build(cqe, sizeof(bytes), 0, &bytes);
    if (count == 0) {
        memcpy(zip->title, &bytes, sizeof(bytes));
    } else if (!mlx5sim_zip_is_alike(zip, count, &bytes)) {
        return 0;
    }

    mlx5sim_zip_mini(zip, &bytes, &mini);
    memcpy(zip->mini[count], &mini, sizeof(mini));
    return 1;
}


void mlx5sim_zip_title(const mlx5sim_zip_t *zip, unsigned count, unsigned owner,
                       uint8_t title_p[MLX5SIM_ZIP_CQE])
{
    mlx5sim_cqe64_t title;

    memcpy(&title, zip->title, sizeof(title));
    title.op_own |= owner & MLX5SIM_CQE_OWNER;
    if (count > 1) {
        title.op_own  |= MLX5SIM_CQE_COMPRESSED;
        title.byte_cnt = htobe32(count);
    }
    memcpy(title_p, &title, sizeof(title));
}


unsigned mlx5sim_zip_arrays(unsigned count)
{
    return (count > 1) ? (count + MLX5SIM_ZIP_ARRAY - 1) / MLX5SIM_ZIP_ARRAY :
                         0;
}


unsigned mlx5sim_zip_array(unsigned count, unsigned number, unsigned *bytes_p)
{
    unsigned first = number * MLX5SIM_ZIP_ARRAY;
    unsigned minis = count - first;

    *bytes_p = ((minis < MLX5SIM_ZIP_ARRAY) ? minis : MLX5SIM_ZIP_ARRAY) *
               MLX5SIM_ZIP_MINI;
    return (number == 0) ? 1 : first;
}


int mlx5sim_zip_is_solicited(const mlx5sim_zip_t *zip)
{
    return !!(((const mlx5sim_cqe64_t*)zip->title)->op_own & MLX5SIM_CQE_SE);
}
