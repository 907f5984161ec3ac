/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/queue/batch.h>
#include <sim/objs/store.h>
#include <sim/queue/cq.h>

/* CQs of a thread in which completions are held back; further ones do without
 * compression */
#define MLX5SIM_BATCH_MAX 16

typedef struct mlx5sim_batch {
    int      is_open;
    unsigned num;
    struct {
        uint32_t index;
        unsigned calls;  /* of mlx5sim_batch_settle() */
    } cqs[MLX5SIM_BATCH_MAX];
} mlx5sim_batch_t;

static __thread mlx5sim_batch_t mlx5sim_batch;


static int mlx5sim_batch_is_other(uint32_t index, unsigned calls, void *arg)
{
    const mlx5sim_cq_t *cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, index);

    (void)calls;
    (void)arg;
    return atomic_load(&cq->o.owner) != mlx5sim_self_tag;
}

void mlx5sim_batch_open(void)
{
    mlx5sim_batch.is_open = 1;
}

void mlx5sim_batch_close(void)
{
    mlx5sim_batch_settle(NULL, NULL);
    mlx5sim_batch.is_open = 0;
}

int mlx5sim_batch_join(const mlx5sim_cq_t *cq)
{
    mlx5sim_batch_t *batch = &mlx5sim_batch;
    uint32_t index         = mlx5sim_obj_index(MLX5SIM_OBJ_CQ, cq);
    unsigned i;

    if (!batch->is_open) {
        return 0;
    }

    for (i = 0; i < batch->num; ++i) {
        if (batch->cqs[i].index == index) {
            return 1;
        }
    }

    if (batch->num == MLX5SIM_BATCH_MAX) {
        return 0;
    }

    batch->cqs[batch->num].index = index;
    batch->cqs[batch->num].calls = 0;
    ++batch->num;
    return 1;
}

void mlx5sim_batch_settle(mlx5sim_batch_due_t due, void *arg)
{
    mlx5sim_batch_t *batch = &mlx5sim_batch;
    unsigned i             = 0;
    uint32_t index;

    while (i < batch->num) {
        index = batch->cqs[i].index;
        if ((due != NULL) && !due(index, batch->cqs[i].calls++, arg)) {
            ++i;
            continue;
        }

        batch->cqs[i] = batch->cqs[--batch->num];
        mlx5sim_cq_settle(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, index));
    }
}

void mlx5sim_batch_settle_others(void)
{
    if (mlx5sim_batch.num > 0) {
        mlx5sim_batch_settle(mlx5sim_batch_is_other, NULL);
    }
}
