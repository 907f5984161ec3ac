/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A completion queue that two threads share: whoever has its lock hands entries
 * out. Without the lock they look at the hint, the owner bit and the number of
 * entries in the inbox; whatever they see there, nothing but time depends on
 * it. Mutants 1 and 2 as of litmus_cq.cc. Mutant 3: what is seen without the
 * lock is believed, and the inbox is taken without it.
 */
#include "litmus_cqe.h"

/* A lock of Relacy's for each address */
#include <uct/ib/sep/base/sep_lock.h>
#undef UCT_SEP_SPINLOCK_DEFINE
#define UCT_SEP_SPINLOCK_DEFINE(_name) \
    typedef struct { \
        rl::mutex *impl; \
    } _name##_t; \
    static void _name##_lock(_name##_t *lock) \
    { \
        lock->impl->lock($); \
    } \
    static int _name##_trylock(_name##_t *lock) \
    { \
        return lock->impl->try_lock($); \
    } \
    static void _name##_unlock(_name##_t *lock) \
    { \
        lock->impl->unlock($); \
    } \
    static ucs_status_t _name##_init(_name##_t *lock) \
    { \
        return UCS_OK; \
    } \
    static void _name##_destroy(_name##_t *lock) \
    { \
    }

#include "category/sep_cq_group.c"

/* What else the group calls; queue pair n belongs to member n - 1 */
ucs_status_t
uct_sep_cq_init(uct_sep_cq_t *cq, struct ibv_context *context, unsigned length,
                unsigned stride, uct_sep_cq_create_func_t create,
                const char *name)
{
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t uct_sep_cq_create_dv(uct_sep_cq_t *cq, struct ibv_context *context,
                                  unsigned length, const char *name)
{
    return UCS_ERR_UNSUPPORTED;
}

void uct_sep_cq_cleanup(uct_sep_cq_t *cq)
{
}

void uct_sep_cq_arm(uct_sep_cq_t *cq, int solicited)
{
}

ucs_status_t uct_sep_cq_read_events(uct_sep_cq_t *cq, unsigned *count_p)
{
    *count_p = 0;
    return UCS_OK;
}

struct litmus_group : rl::test_suite<litmus_group, 3> {
    enum {
        MEMBERS = 2,
        EACH    = 2
    };

    litmus_memory       memory;
    litmus_cq_world     world;
    rl::mutex           lock;
    uct_sep_cq_group_t  group;
    uct_sep_cq_member_t members[MEMBERS];
    uct_sep_txwq_t      txwqs[MEMBERS];
    mlx5_cqe64          entries[2 * MEMBERS][EACH];

    void before()
    {
        memset((void*)&group, 0, sizeof(group));
        memset((void*)members, 0, sizeof(members));
        memset((void*)txwqs, 0, sizeof(txwqs));
        world.init(&group.cq);
        group.lock.impl = &lock;
        group.share     = EACH;
        uct_sep_cq_group_set_hint(&group);
        RL_ASSERT(uct_sep_qp_table_init(&group.qps) == UCS_OK);
        for (unsigned i = 0; i < MEMBERS; ++i) {
            members[i].group   = &group;
            members[i].batch   = entries[2 * i];
            members[i].inbox   = entries[2 * i + 1];
            txwqs[i].cq_member = &members[i];
            __atomic_store_n(&members[i].inbox_count, 0, __ATOMIC_RELAXED);
            RL_ASSERT(uct_sep_qp_table_add(&group.qps, 1 + i, &txwqs[i]) ==
                      UCS_OK);
        }
    }

    void after()
    {
        for (unsigned i = 0; i < MEMBERS; ++i) {
            uct_sep_qp_table_remove(&group.qps, 1 + i);
        }
        uct_sep_qp_table_cleanup(&group.qps);
    }

    static int fetch(uct_sep_cq_member_t *member)
    {
        unsigned count = (litmus_mutant != 3) ? 0 :
                         __atomic_load_n(&member->inbox_count,
                                         __ATOMIC_RELAXED);
        if (count > 0) {
            std::swap(member->batch, member->inbox);
            member->batch_head  = 0;
            member->batch_count = count;
            __atomic_store_n(&member->inbox_count, 0, __ATOMIC_RELAXED);
            return 1;
        }
        return uct_sep_cq_member_fetch(member);
    }

    void thread(unsigned index)
    {
        if (index == MEMBERS) {
            world.device(MEMBERS * EACH, MEMBERS);
            return;
        }

        uct_sep_cq_member_t *member = &members[index];
        for (unsigned count = 0; count < EACH;) {
            if (!uct_sep_cq_member_has_news(member) || !fetch(member)) {
                litmus_wait();
                continue;
            }

            while (member->batch_head < member->batch_count) {
                const mlx5_cqe64 *cqe = &member->batch[member->batch_head++];
                RL_ASSERT(be32toh(cqe->sop_drop_qpn) == 1 + index);
                RL_ASSERT(cqe->byte_cnt == index + MEMBERS * count);
                ++count;
            }
        }
    }
};

int main(int argc, char **argv)
{
    return litmus_run<litmus_group>(argc, argv, "group", 20000, false);
}
