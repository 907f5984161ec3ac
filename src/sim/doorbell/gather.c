/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/doorbell/gather.h"
#include "sim/doorbell/wc.h"
#include "sim/engine/mlx5_def.h"
#include "sim/uar/layout.h"

#include <string.h>

/* The byte of a control segment with ds, which is in network order */
#define MLX5SIM_GATHER_DS_BYTE \
    (offsetof(mlx5sim_ctrl_seg_t, qpn_ds) + sizeof(__be32) - 1)

/* First half of a doorbell that was written as two words in two signals */
static __thread mlx5sim_doorbell_t mlx5sim_gather_half;


/* Bytes of the WQE that BlueFlame will carry, as far as known by now. Whole
 * blocks are copied (PRM: WQEBB); longer WQEs come in parts. */
static unsigned mlx5sim_gather_expected(const mlx5sim_doorbell_t *db)
{
    unsigned length;

    if ((db->offset < MLX5SIM_UAR_OFFSET_BF) ||
        (db->length < MLX5SIM_UAR_DOORBELL)) {
        return MLX5SIM_UAR_DOORBELL;
    }

    if (!db->known) {
        return MLX5SIM_WQEBB;
    }

    length = (db->data[MLX5SIM_GATHER_DS_BYTE] & MLX5SIM_CTRL_DS_MASK) *
             MLX5SIM_WQE_UNIT;
    length = (length + MLX5SIM_WQEBB - 1) & ~(MLX5SIM_WQEBB - 1u);
    return (length > sizeof(db->data)) ? sizeof(db->data) : length;
}

/* Whether a store continues a register or begins another one */
static int mlx5sim_gather_continues(const mlx5sim_doorbell_t *db,
                                    uint32_t offset, unsigned length)
{
    return (offset == db->offset + db->length) &&
           (db->length + length <= sizeof(db->data)) &&
           !MLX5SIM_UAR_IS_BUFFER(offset);
}

mlx5sim_gather_next_t
mlx5sim_gather_add(mlx5sim_gather_t *gather, uintptr_t addr, const void *data,
                   unsigned length)
{
    uint32_t offset        = addr - gather->page;
    mlx5sim_doorbell_t *db = (gather->num > 0) ?
                             &gather->rings[gather->num - 1] : NULL;

    /* glibc's memcpy of 64 bytes stores all of them twice on some machines */
    if ((db != NULL) && (data != NULL) && (offset >= db->offset) &&
        (offset + length <= db->offset + db->length) &&
        (memcmp(db->data + (offset - db->offset), data, length) == 0)) {
        return MLX5SIM_GATHER_MORE;
    }

    if ((db == NULL) || !mlx5sim_gather_continues(db, offset, length)) {
        db         = &gather->rings[gather->num++];
        db->page   = gather->page;
        db->offset = offset;
        db->length = 0;
        db->known  = 1;
    }

    if (data != NULL) {
        memcpy(db->data + db->length, data, length);
    } else {
        db->known = 0;
    }
    db->length += length;

    if (gather->num == MLX5SIM_GATHER_MAX) {
        return MLX5SIM_GATHER_FULL;
    }

    return (((db->offset == MLX5SIM_UAR_OFFSET_CQ_ARM) &&
             (db->length >= MLX5SIM_UAR_DOORBELL)) ||
            ((db->length > MLX5SIM_UAR_DOORBELL) &&
             (db->length >= mlx5sim_gather_expected(db)))) ?
           MLX5SIM_GATHER_WHOLE : MLX5SIM_GATHER_MORE;
}

void mlx5sim_gather_ring(const mlx5sim_gather_t *gather, mlx5sim_uar_t *uar)
{
    mlx5sim_doorbell_t *half = &mlx5sim_gather_half;
    const mlx5sim_doorbell_t *db;
    unsigned i;

    for (i = 0; i < gather->num; ++i) {
        db = &gather->rings[i];
        if (!db->known) {
            mlx5sim_wc_store(uar, db);
        } else if ((half->length != 0) &&
                   (db->offset == half->offset + half->length)) {
            memcpy(half->data + half->length, db->data,
                   MLX5SIM_UAR_DOORBELL / 2);
            half->length = MLX5SIM_UAR_DOORBELL;
            mlx5sim_wc_store(uar, half);
            half->length = 0;
        } else if (db->length < MLX5SIM_UAR_DOORBELL) {
            *half = *db;
        } else if ((db->offset >= MLX5SIM_UAR_OFFSET_BF) &&
                   !MLX5SIM_UAR_IS_BUFFER(db->offset)) {
            /* rest of a BlueFlame copy whose start was rung already */
        } else {
            mlx5sim_wc_store(uar, db);
        }
    }
}
