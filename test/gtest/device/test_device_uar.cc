/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UAR pages: how many a device has, who has them, and what mlx5sim-stat says.
 */

#include <device/device.h>

#include <cerrno>

#include <signal.h>

using namespace device;

namespace {

class test_device_uar : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_UAR_MODE", "dynamic");
    }
};

} // namespace


TEST_F(test_device_uar, stat_tells_pages_and_registers)
{
    run(1, [this](rank&) {
        std::vector<ibv_td*> domains;
        context c;

        REQUIRE_EQ(1, stat_total("contexts"));
        REQUIRE_EQ(1, stat_total("uars"));
        REQUIRE_EQ(1, stat_total("uars_nc"));
        REQUIRE_EQ(0, stat_total("uuars"));

        /* two domains share a page */
        for (int i = 0; i < 3; ++i) {
            domains.push_back(c.new_domain());
            REQUIRE(domains[i] != nullptr);
            REQUIRE_EQ(1 + i / 2, stat_total("uars_dynamic"));
        }
        REQUIRE_EQ(4, stat_total("uuars"));
        REQUIRE_EQ(0, stat_total("uars_static"));
        REQUIRE_EQ(0, stat_total("uuars_used"));

        {
            cq q(c, 16);
            qp self(c, q, q);
            memory mem(c, 4096);

            self.connect(self.addr());
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)});
            self.send(wr.to(self.addr(&mem), 64));
            q.good();
            REQUIRE_EQ(3, stat_total("uars_dynamic"));
            REQUIRE_EQ(1, stat_total("uuars_used"));

            std::string text = stat_json();
            REQUIRE_EQ(1, stat_qps(text, "qpn").size());
            REQUIRE(stat_qps(text, "state")[0] == "\"RTS\"");
            REQUIRE(stat_qps(text, "uuar_class")[0] == "\"dynamic\"");
            REQUIRE(stat_qps(text, "uuar_register")[0] == "0");
            REQUIRE(stat_qps(text, "path_mtu")[0] == "4096");
        }

        for (ibv_td *domain : domains) {
            REQUIRE_EQ(0, ibv_dealloc_td(domain));
        }
    });
    EXPECT_EQ(0, stat_total("uars"));
    EXPECT_EQ(0, stat_total("uuars"));
    EXPECT_EQ(0, stat_total("contexts"));
}

TEST_F(test_device_uar, a_device_without_pages_left_says_enomem)
{
    set_env("MLX5SIM_UARS", "3");
    run(1, [this](rank&) {
        std::vector<ibv_td*> domains;
        context c;

        for (int i = 0; i < 4; ++i) {
            domains.push_back(c.new_domain());
            REQUIRE(domains[i] != nullptr);
        }
        REQUIRE_EQ(3, stat_total("uars"));

        errno = 0;
        REQUIRE(c.new_domain() == nullptr);
        REQUIRE_EQ(ENOMEM, errno);

        /* pages are the context's until it is closed, domains come back */
        REQUIRE_EQ(0, ibv_dealloc_td(domains[0]));
        domains[0] = c.new_domain();
        REQUIRE(domains[0] != nullptr);
        for (ibv_td *domain : domains) {
            REQUIRE_EQ(0, ibv_dealloc_td(domain));
        }
    });
}

TEST_F(test_device_uar, pages_of_the_dead_are_free)
{
    set_env("MLX5SIM_UARS", "4");
    start(0, 2, [](rank &r) {
        context c;

        for (int i = 0; i < 5; ++i) {
            REQUIRE(c.new_domain() != nullptr);
        }
        r.word(0) = 1;
        r.wait_word(1, 1000000); /* killed here */
    });
    start(1, 2, [this](rank &r) {
        r.wait_word(0, 1);

        /* libmlx5 opens a context without a page, too */
        context c;
        REQUIRE(c.new_domain() == nullptr);
        ::kill(pid(0), SIGKILL);
        r.wait_word(2, 1);

        ibv_td *domain = c.new_domain();
        REQUIRE(domain != nullptr);
        REQUIRE_EQ(0, ibv_dealloc_td(domain));
    });
    EXPECT_EQ(SIGKILL, finish(0));
    word(2) = 1;
    finish_all();
}

/* Where a queue pair rings, without BlueFlame */
static void *doorbell(qp &q)
{
    mlx5dv_qp dv   = {};
    mlx5dv_obj obj = {};

    obj.qp.in  = q.v;
    obj.qp.out = &dv;
    REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
    REQUIRE_EQ(0, dv.bf.size);
    return dv.bf.reg;
}

/* A kernel that has found no write combining: mlx5_ib, main.c, wc_support */
static void use_without_write_combining(int error)
{
    loop l;

    for (unsigned i = 0; i < 10; ++i) {
        send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 8)});

        l.a.send(wr.to(l.to_b, 0));
        l.scq.good();
    }

    void *common = doorbell(l.a);
    errno        = 0;
    ibv_td *td   = l.c.new_domain();
    if (td == nullptr) {
        /* libmlx5 of rdma-core 61 does not ask the kernel any more and, where
         * there is no such page, says nothing */
        REQUIRE((errno == error) || (errno == 0));
        return;
    }

    /* From rdma-core 61 on, domains are on the page that all ring on */
    REQUIRE_EQ(0, ibv_dealloc_td(td));
    domain d(l.c);
    qp q(l.c, l.scq, l.rcq, {.pd = d.pd});
    REQUIRE(doorbell(q) == common);
}

TEST_F(test_device_uar, without_write_combining_all_ring_on_one_page)
{
    set_env("MLX5SIM_BF", "n");
    run(1, [&](rank&) {
        use_without_write_combining(EOPNOTSUPP);
        REQUIRE_EQ(0, stat_total("blueflames"));
        /* as the shared one of static pages, which has no BlueFlame either */
        loop l;
        REQUIRE(stat_qps(stat_json(), "uuar_class")[0] == "\"high\"");
    });
}

TEST_F(test_device_uar, old_kernels_can_be_without_write_combining_as_well)
{
    SKIP_WITHOUT_MMAP_HOOK();
    set_env("MLX5SIM_BF", "n");
    set_env("MLX5SIM_UAR_MODE", "legacy");
    run(1, [&](rank&) {
        use_without_write_combining(EPERM);
        REQUIRE_EQ(0, stat_total("blueflames"));
    });
}

TEST_F(test_device_uar, commands_may_take_time)
{
    set_env("MLX5SIM_CMD_DELAY", "3000");
    set_env("MLX5SIM_SEED", "1");
    catch_errors();
    run(1, [](rank&) {
        loop l;
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});

        l.a.send(wr.to(l.to_b, 0));
        l.scq.good();
    });
    EXPECT_NE(std::string::npos, errors().find("MLX5SIM_SEED=1"));
}
