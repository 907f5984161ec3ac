/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <infiniband/mlx5dv.h>

#include <dlfcn.h>

using namespace sep_uct_test;

namespace {

/* uUARs of the interface that is closed, and for each of its queue pairs how
 * many there are on its uUAR when it is destroyed */
uct_sep_uuars_t *watched;
std::vector<unsigned> left_behind;

void watch_destroy(struct ibv_qp *qp)
{
    struct mlx5dv_qp dv_qp = {};
    struct mlx5dv_obj dv   = {};
    uct_sep_uuar_t *uuar;

    dv.qp.in  = qp;
    dv.qp.out = &dv_qp;
    if (mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP) != 0) {
        return;
    }
    ucs_list_for_each(uuar, &watched->list, list) {
        if (uuar->bf.reg == dv_qp.bf.reg) {
            left_behind.push_back(uuar->num_qps);
        }
    }
}

class test_sep_uuar : public test_sep_uct {
protected:
    void SetUp() override
    {
    }
};

} // namespace

/* In front of that of libibverbs */
extern "C" int ibv_destroy_qp(struct ibv_qp *qp)
{
    typedef int (*func_t)(struct ibv_qp*);
    static func_t real = (func_t)dlsym(RTLD_NEXT, "ibv_destroy_qp");

    if (watched != nullptr) {
        watch_destroy(qp);
    }
    return real(qp);
}

/* Another thread's queue pair may get a uUAR as soon as the one that had it is
 * destroyed. If that was still known as its user, the uUAR counted as shared:
 * "there is no data path" for a worker with its own context, or an assertion */
TEST_F(test_sep_uuar, is_left_before_the_queue_pair_is_destroyed)
{
    uint64_t data = 1;

    start({{"CATEGORY", "mpi_everywhere"}});
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(UCS_OK, retry([&]() {
        return uct_ep_am_short(ep(), 1, 0, &data, sizeof(data));
    }));
    flush();

    /* The driver gives each of the first its own */
    watched = ucs_derived_of(m_local->iface(), uct_sep_iface_t)->channel.uuars;
    m_local.reset();
    watched = nullptr;

    ASSERT_LE(2u, left_behind.size()) << "connection manager's, endpoint's";
    for (unsigned num_qps : left_behind) {
        EXPECT_EQ(0u, num_qps);
    }
}
