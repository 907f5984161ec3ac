/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A completion queue that a thread polls: the adapter writes contents and then
 * the owner bit, and overwrites an entry when the doorbell record says that it
 * may. Mutant 1: no fence between owner bit and contents. Mutant 2: none before
 * the record.
 */
#include "litmus_cqe.h"

struct litmus_cq : rl::test_suite<litmus_cq, 2> {
    enum {
        COUNT = 5
    };

    litmus_memory   memory;
    litmus_cq_world world;
    uct_sep_cq_t    cq;

    void before()
    {
        world.init(&cq);
    }

    void thread(unsigned index)
    {
        if (index == 0) {
            world.device(COUNT, 1);
            return;
        }

        for (unsigned i = 0; i < COUNT;) {
            struct mlx5_cqe64 *cqe = uct_sep_cq_peek(&cq);
            if (cqe == NULL) {
                litmus_wait();
                continue;
            }

            RL_ASSERT(cqe->byte_cnt == i);
            uct_sep_cq_pop(&cq, cqe, UCT_SEP_CQ_STRIDE_64);
            uct_sep_cq_publish(&cq);
            ++i;
        }
    }
};

int main(int argc, char **argv)
{
    return litmus_run<litmus_cq>(argc, argv, "cq", 20000);
}
