/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/gather.h>
#include <sim/doorbell/wc.h>
#include <sim/engine/mlx5_def.h>
#include <sim/uar/layout.h>

#include <string.h>

/* The byte of a control segment with ds, which is in network order */
#define MLX5SIM_GATHER_DS_BYTE \
    (offsetof(mlx5sim_ctrl_seg_t, qpn_ds) + sizeof(__be32) - 1)

/* What a signal has left of a register whose first bytes are still to come: one
 * that is written as two words, or from its end to its beginning */
static __thread mlx5sim_doorbell_t mlx5sim_gather_part;

/* Behind what the thread rang last; what is stored there is the rest of it */
static __thread struct {
    uintptr_t page;
    uint32_t  offset;
} mlx5sim_gather_rung;


/* Whether a register begins at an offset, so that it can't be in the middle of
 * another one */
static int mlx5sim_gather_starts(uint32_t offset)
{
    return MLX5SIM_UAR_IS_BUFFER(offset) ||
           (offset == MLX5SIM_UAR_OFFSET_CQ_ARM);
}

/* Whether there is enough to ring: offsets without a register ring, too, to be
 * reported */
static int mlx5sim_gather_is_complete(const mlx5sim_doorbell_t *db)
{
    return (db->length >= MLX5SIM_UAR_DOORBELL) &&
           ((db->offset < MLX5SIM_UAR_OFFSET_BF) ||
            MLX5SIM_UAR_IS_BUFFER(db->offset));
}

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

    if (!MLX5SIM_UAR_IS_BUFFER(db->offset)) {
        return sizeof(db->data) + 1;
    }

    length = (db->data[MLX5SIM_GATHER_DS_BYTE] & MLX5SIM_CTRL_DS_MASK) *
             MLX5SIM_WQE_UNIT;
    length = (length + MLX5SIM_WQEBB - 1) & ~(MLX5SIM_WQEBB - 1u);
    return (length > sizeof(db->data)) ? sizeof(db->data) : length;
}

/* Add bytes behind those of a register, or in front of them.
 * @return 0 if they belong to another one */
static int mlx5sim_gather_join(mlx5sim_doorbell_t *db, uint32_t offset,
                               const void *data, unsigned length)
{
    unsigned at = db->length;

    if (db->length + length > sizeof(db->data)) {
        return 0;
    }

    if ((offset + length == db->offset) &&
        !mlx5sim_gather_starts(db->offset)) {
        memmove(db->data + length, db->data, db->length);
        db->offset = offset;
        at         = 0;
    } else if ((offset != db->offset + db->length) ||
               mlx5sim_gather_starts(offset)) {
        return 0;
    }

    if (data != NULL) {
        memcpy(db->data + at, data, length);
    } else {
        db->known = 0;
    }
    db->length += length;
    return 1;
}

/* The last two may have become one: blocks in ascending order, each of them
 * written in descending order */
static void mlx5sim_gather_merge(mlx5sim_gather_t *gather)
{
    mlx5sim_doorbell_t *db = &gather->rings[gather->num - 1];

    if ((gather->num > 1) && db[-1].known && db->known &&
        (db->offset == db[-1].offset + db[-1].length) &&
        mlx5sim_gather_join(&db[-1], db->offset, db->data, db->length)) {
        --gather->num;
    }
}

/* Whether it is the rest of what was rung in an earlier signal */
static int mlx5sim_gather_is_rest(const mlx5sim_doorbell_t *db)
{
    return (db->page == mlx5sim_gather_rung.page) &&
           (db->offset == mlx5sim_gather_rung.offset) &&
           !mlx5sim_gather_starts(db->offset);
}

void mlx5sim_gather_begin(mlx5sim_gather_t *gather, uintptr_t page)
{
    mlx5sim_doorbell_t *part = &mlx5sim_gather_part;

    gather->page = page;
    gather->num  = 0;
    if ((part->length != 0) && (part->page == page)) {
        gather->rings[gather->num++] = *part;
        part->length                 = 0;
    }
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

    if ((db == NULL) || !mlx5sim_gather_join(db, offset, data, length)) {
        db         = &gather->rings[gather->num++];
        db->page   = gather->page;
        db->offset = offset;
        db->length = length;
        db->known  = (data != NULL);
        if (data != NULL) {
            memcpy(db->data, data, length);
        }
    }

    mlx5sim_gather_merge(gather);
    db = &gather->rings[gather->num - 1];
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
    const mlx5sim_doorbell_t *db;
    uint32_t end;
    unsigned i;

    for (i = 0; i < gather->num; ++i) {
        db  = &gather->rings[i];
        end = db->offset + db->length;
        if (!db->known || mlx5sim_gather_is_complete(db)) {
            mlx5sim_wc_store(uar, db);
        } else if (!mlx5sim_gather_is_rest(db)) {
            mlx5sim_gather_part = *db;
            continue;
        }
        mlx5sim_gather_rung.page   = db->page;
        mlx5sim_gather_rung.offset = end;
    }
}
