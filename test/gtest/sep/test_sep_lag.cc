/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/port/sep_path.h>

#include <dlfcn.h>
#include <errno.h>

/*
 * RoCE ports that consist of several (LAG): through which of them queue pairs
 * send.
 */

using namespace sep_uct_test;

namespace {

/* What libmlx5 answers in place of binding a queue pair; 0: it does that */
int bind_error = 0;

} // namespace

extern "C" int mlx5dv_modify_qp_lag_port(struct ibv_qp *qp, uint8_t port_num)
{
    /* libibverbs has loaded it, not the linker */
    static auto next = (decltype(mlx5dv_modify_qp_lag_port)*)dlsym(
            dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD),
            "mlx5dv_modify_qp_lag_port");

    return (bind_error != 0) ? bind_error : next(qp, port_num);
}

namespace {

class test_sep_lag : public test_sep_uct {
protected:
    void SetUp() override
    {
    }

    void TearDown() override
    {
        bind_error = 0;
        test_sep_uct::TearDown();
    }

    /* Connect a path, and say by which port it sends; 0: there is no LAG */
    unsigned port_of(unsigned path)
    {
        uct_ep_h ep   = m_local->connect(m_peer->addr(), path);
        uint64_t data = path;

        EXPECT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep, 1, 0, &data, sizeof(data));
        }));
        flush();

        uint8_t port, active;
        if (mlx5dv_query_qp_lag_port(m_local->sep_ep(ep)->txwq->conn.qp, &port,
                                     &active) != 0) {
            return 0;
        }
        EXPECT_EQ(port, active);
        return port;
    }

    double path_ratio()
    {
        return uct_sep_path_ratio(&m_local->sep()->port);
    }
};

const device_settings lag_of_two = {
    {"MLX5SIM_LINK", "roce"}, {"MLX5SIM_DEVX", "y"}, {"MLX5SIM_LAG", "2"}
};

/* The kernel gives ports in turn, to queue pairs of all kinds, and knows no
 * paths */
TEST_F(test_sep_lag, each_path_sends_through_a_port_of_its_own)
{
    if (!on_device(lag_of_two)) {
        return;
    }

    start({{"NUM_PATHS", "auto"}});
    EXPECT_EQ(2u, m_local->attr().dev_num_paths);
    EXPECT_DOUBLE_EQ(0.5, path_ratio());
    EXPECT_EQ(1u, port_of(0));
    EXPECT_EQ(2u, port_of(1));
    EXPECT_DOUBLE_EQ(0.5, path_ratio());

    /* In whatever order they are connected; one of each pair was wrong if it
     * were left to the kernel */
    start({{"NUM_PATHS", "4"}});
    for (unsigned path : {3, 1, 2, 0}) {
        EXPECT_EQ(path % 2 + 1, port_of(path)) << "path " << path;
    }
    EXPECT_DOUBLE_EQ(0.25, path_ratio());
}

TEST_F(test_sep_lag, no_share_is_promised_if_paths_cannot_be_bound)
{
    if (!on_device(lag_of_two)) {
        return;
    }

    start({{"NUM_PATHS", "auto"}});
    EXPECT_EQ(2u, port_of(1));
    EXPECT_DOUBLE_EQ(0.5, path_ratio());

    expect_errors messages;
    auto sep   = m_local->sep();
    bind_error = EOPNOTSUPP;
    uct_sep_path_bind(&sep->port,
                      m_local->sep_ep(m_local->connect(m_peer->addr(), 1))
                              ->txwq->conn.qp, 1);
    EXPECT_EQ(0u, messages.messages.size());
    EXPECT_DOUBLE_EQ(1.0, path_ratio());
}

TEST_F(test_sep_lag, paths_of_one_port_share_it)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}, {"MLX5SIM_DEVX", "y"}})) {
        return;
    }

    start({{"NUM_PATHS", "2"}});
    EXPECT_EQ(0u, port_of(1));
    EXPECT_DOUBLE_EQ(1.0, path_ratio());
}

} // namespace
