/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UAR pages: how many a device has, who has them, and what mlx5sim-stat says.
 */

#include "device.h"
#include "device_stat.h"

#include <cerrno>

#include <signal.h>

using namespace device;

namespace {

class test_device_uar : public device::test {
protected:
    std::string json()
    {
        std::string output;

        EXPECT_EQ(0, stat("--json --detail", &output)) << output;
        return output;
    }

    long total(const std::string &key)
    {
        std::string output;

        REQUIRE_EQ(0, stat("--json", &output));
        return json_total(output, key);
    }
};

ibv_td *new_domain(context &c)
{
    ibv_td_init_attr attr = {};

    return ibv_alloc_td(c.ctx, &attr);
}

} // namespace


TEST_F(test_device_uar, stat_tells_pages_and_registers)
{
    run(1, [this](rank&) {
        std::vector<ibv_td*> domains;
        context c;

        REQUIRE_EQ(1, total("contexts"));
        REQUIRE_EQ(1, total("uars"));
        REQUIRE_EQ(1, total("uars_nc"));
        REQUIRE_EQ(0, total("uuars"));

        /* two domains share a page */
        for (int i = 0; i < 3; ++i) {
            domains.push_back(new_domain(c));
            REQUIRE(domains[i] != nullptr);
            REQUIRE_EQ(1 + i / 2, total("uars_dynamic"));
        }
        REQUIRE_EQ(4, total("uuars"));
        REQUIRE_EQ(0, total("uars_static"));
        REQUIRE_EQ(0, total("uuars_used"));

        {
            cq q(c, 16);
            qp self(c, q, q);
            memory mem(c, 4096);

            self.connect(self.addr());
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)});
            self.send(wr.to(self.addr(&mem), 64));
            q.good();
            REQUIRE_EQ(3, total("uars_dynamic"));
            REQUIRE_EQ(1, total("uuars_used"));

            std::string text = json();
            REQUIRE_EQ(1, json_qps(text, "qpn").size());
            REQUIRE(json_qps(text, "state")[0] == "\"RTS\"");
            REQUIRE(json_qps(text, "uuar_class")[0] == "\"dynamic\"");
            REQUIRE(json_qps(text, "uuar_register")[0] == "0");
            REQUIRE(json_qps(text, "path_mtu")[0] == "4096");
        }

        for (ibv_td *domain : domains) {
            REQUIRE_EQ(0, ibv_dealloc_td(domain));
        }
    });
    EXPECT_EQ(0, total("uars"));
    EXPECT_EQ(0, total("uuars"));
    EXPECT_EQ(0, total("contexts"));
}

TEST_F(test_device_uar, a_device_without_pages_left_says_enomem)
{
    set_env("MLX5SIM_UARS", "3");
    run(1, [this](rank&) {
        std::vector<ibv_td*> domains;
        context c;

        for (int i = 0; i < 4; ++i) {
            domains.push_back(new_domain(c));
            REQUIRE(domains[i] != nullptr);
        }
        REQUIRE_EQ(3, total("uars"));

        errno = 0;
        REQUIRE(new_domain(c) == nullptr);
        REQUIRE_EQ(ENOMEM, errno);

        /* pages are the context's until it is closed, domains come back */
        REQUIRE_EQ(0, ibv_dealloc_td(domains[0]));
        domains[0] = new_domain(c);
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
            REQUIRE(new_domain(c) != nullptr);
        }
        r.word(0) = 1;
        r.wait_word(1, 1000000); /* killed here */
    });
    start(1, 2, [this](rank &r) {
        r.wait_word(0, 1);

        /* libmlx5 opens a context without a page, too */
        context c;
        REQUIRE(new_domain(c) == nullptr);
        ::kill(pid(0), SIGKILL);
        r.wait_word(2, 1);

        ibv_td *domain = new_domain(c);
        REQUIRE(domain != nullptr);
        REQUIRE_EQ(0, ibv_dealloc_td(domain));
    });
    EXPECT_EQ(SIGKILL, finish(0));
    word(2) = 1;
    finish_all();
}
