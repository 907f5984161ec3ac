/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Commands that fail on request (MLX5SIM_FAIL), and devices that have few
 * objects.
 */

#include <device/device.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace device;

namespace {

class test_device_fault : public device::test {
};

/* One attempt at something. @return 0, or the errno it fails with */
typedef std::function<int(context&)> attempt_t;

template<typename T> int made(T *object, int (*destroy)(T*))
{
    if (object == nullptr) {
        return errno;
    }
    REQUIRE_EQ(0, destroy(object));
    return 0;
}

int open_device()
{
    ibv_device **list = ibv_get_device_list(nullptr);
    ibv_context *ctx  = ibv_open_device(list[0]);
    int error         = errno;

    ibv_free_device_list(list);
    errno = error;
    return made(ctx, ibv_close_device);
}

int create_qp(context &c)
{
    cq q(c, 16);
    ibv_qp_init_attr attr = {};

    attr.send_cq          = q.v;
    attr.recv_cq          = q.v;
    attr.qp_type          = IBV_QPT_RC;
    attr.cap.max_send_wr  = 1;
    attr.cap.max_send_sge = 1;
    return made(ibv_create_qp(c.pd, &attr), ibv_destroy_qp);
}

int create_ah(context &c)
{
    ibv_ah_attr attr = {};

    attr.port_num      = 1;
    attr.is_global     = 1;
    attr.grh.dgid      = c.gid;
    attr.grh.hop_limit = 1;
    return made(ibv_create_ah(c.pd, &attr), ibv_destroy_ah);
}

int create_srq(context &c)
{
    ibv_srq_init_attr attr = {};

    attr.attr.max_wr  = 4;
    attr.attr.max_sge = 1;
    return made(ibv_create_srq(c.pd, &attr), ibv_destroy_srq);
}

/* Connect a QP to itself up to a state. @return of the last step */
int modify_to(context &c, ibv_qp_state state)
{
    cq q(c, 16);
    qp self(c, q, q);
    ibv_qp_attr attr = {};

    attr.qp_state        = IBV_QPS_INIT;
    attr.port_num        = 1;
    attr.qp_access_flags = all_access;
    if (state == IBV_QPS_INIT) {
        return ibv_modify_qp(self.v, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                             IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    }

    self.to_init();
    if (state == IBV_QPS_RTR) {
        attr.qp_state           = IBV_QPS_RTR;
        attr.path_mtu           = IBV_MTU_1024;
        attr.dest_qp_num        = self.v->qp_num;
        attr.max_dest_rd_atomic = 1;
        attr.min_rnr_timer      = 1;
        attr.ah_attr.dlid       = c.lid;
        attr.ah_attr.port_num   = 1;
        return ibv_modify_qp(self.v, &attr, IBV_QP_STATE | IBV_QP_AV |
                             IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                             IBV_QP_MIN_RNR_TIMER);
    }

    self.to_rtr(self.addr());
    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = 14;
    attr.retry_cnt     = 7;
    attr.rnr_retry     = 7;
    attr.max_rd_atomic = 1;
    return ibv_modify_qp(self.v, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
                         IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC);
}

struct fault_case {
    const char *object;
    attempt_t  attempt;
};

std::vector<fault_case> cases()
{
    return {
        {"context", [](context&) { return open_device(); }},
        {"pd", [](context &c) {
             return made(ibv_alloc_pd(c.ctx), ibv_dealloc_pd);
         }},
        {"mr", [](context &c) {
             static char buf[4096];
             return made(ibv_reg_mr(c.pd, buf, sizeof(buf),
                                    IBV_ACCESS_LOCAL_WRITE), ibv_dereg_mr);
         }},
        {"channel", [](context &c) {
             return made(ibv_create_comp_channel(c.ctx),
                         ibv_destroy_comp_channel);
         }},
        {"cq", [](context &c) {
             return made(ibv_create_cq(c.ctx, 8, nullptr, nullptr, 0),
                         ibv_destroy_cq);
         }},
        {"srq", create_srq},
        {"qp", create_qp},
        {"modify_srq", [](context &c) {
             srq s(c, 16);
             ibv_srq_attr attr = {};
             attr.srq_limit    = 2;
             return ibv_modify_srq(s.v, &attr, IBV_SRQ_LIMIT);
         }},
        {"modify_qp", [](context &c) { return modify_to(c, IBV_QPS_INIT); }},
        {"modify_qp_init", [](context &c) {
             return modify_to(c, IBV_QPS_INIT);
         }},
        {"modify_qp_rtr", [](context &c) { return modify_to(c, IBV_QPS_RTR); }},
        {"modify_qp_rts", [](context &c) { return modify_to(c, IBV_QPS_RTS); }},
        {"query_qp", [](context &c) {
             cq q(c, 16);
             qp self(c, q, q);
             ibv_qp_attr attr;
             ibv_qp_init_attr init;
             return ibv_query_qp(self.v, &attr, IBV_QP_STATE, &init);
         }},
        {"query_port", [](context &c) {
             ibv_port_attr attr;
             return ibv_query_port(c.ctx, 1, &attr);
         }},
        {"query_device", [](context &c) {
             ibv_device_attr attr;
             return ibv_query_device(c.ctx, &attr);
         }},
    };
}

} // namespace


TEST_F(test_device_fault, the_command_asked_for_fails_and_no_other)
{
    run(1, [](rank&) {
        context c;

        for (const fault_case &f : cases()) {
            std::string object = f.object;

            REQUIRE_EQ(0, f.attempt(c));
            setenv("MLX5SIM_FAIL", (object + ":2").c_str(), 1);
            int first  = f.attempt(c);
            int second = f.attempt(c);
            int third  = f.attempt(c);

            if ((first != 0) || (second != ENOMEM) || (third != 0)) {
                fail(__FILE__, __LINE__, "%s:2 says %d %d %d", f.object, first,
                     second, third);
            }

            setenv("MLX5SIM_FAIL", (object + ":1+:EAGAIN").c_str(), 1);
            first  = f.attempt(c);
            second = f.attempt(c);
            if ((first != EAGAIN) || (second != EAGAIN)) {
                fail(__FILE__, __LINE__, "%s:1+:EAGAIN says %d %d", f.object,
                     first, second);
            }
            unsetenv("MLX5SIM_FAIL");
        }
    });
}

TEST_F(test_device_fault, an_open_that_fails_creates_no_context)
{
    run(1, [this](rank&) {
        context c;

        REQUIRE_EQ(1, stat_total("contexts_created"));
        setenv("MLX5SIM_FAIL", "context", 1);
        REQUIRE_EQ(ENOMEM, open_device());
        REQUIRE_EQ(1, stat_total("contexts_created"));
        REQUIRE_EQ(0, open_device());
        REQUIRE_EQ(2, stat_total("contexts_created"));
    });
}

TEST_F(test_device_fault, address_handles)
{
    /* only RoCE asks the kernel for them */
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_FAIL", "ah:1:ETIMEDOUT");
    run(1, [](rank&) {
        context c;

        REQUIRE_EQ(ETIMEDOUT, create_ah(c));
        REQUIRE_EQ(0, create_ah(c));
    });
}

TEST_F(test_device_fault, uars_in_both_regimes)
{
    SKIP_WITHOUT_MMAP_HOOK();
    for (const char *mode : {"dynamic", "legacy"}) {
        std::string dir = this->dir() + "/" + mode;

        ASSERT_EQ(0, mkdir(dir.c_str(), 0700));
        set_env("MLX5SIM_UAR_MODE", mode);
        run(1, [&](rank&) {
            setenv("MLX5SIM_DIR", dir.c_str(), 1);
            context c;

            setenv("MLX5SIM_FAIL", "uar:1:ENOSPC", 1);
            errno = 0;
            REQUIRE(c.new_domain() == nullptr);
            REQUIRE_EQ(ENOSPC, errno);
            ibv_td *td = c.new_domain();
            REQUIRE(td != nullptr);
            REQUIRE_EQ(0, ibv_dealloc_td(td));

            /* static pages come with the context, without them there is none;
             * libmlx5 tries again when it has not got what it asked for, and
             * has contexts without a page for CQs */
            setenv("MLX5SIM_FAIL", "uar:1+", 1);
            if (!strcmp(mode, "legacy")) {
                REQUIRE_EQ(ENOMEM, open_device());
            } else {
                REQUIRE_EQ(0, open_device());
            }
        });
    }
}

TEST_F(test_device_fault, a_bad_list_is_reported)
{
    catch_errors();
    run(1, [](rank&) {
        context c;

        setenv("MLX5SIM_FAIL", "qp:two", 1);
        REQUIRE_EQ(0, create_qp(c));
    });
    EXPECT_NE(std::string::npos, errors().find("MLX5SIM_FAIL=qp:two"));
}

TEST_F(test_device_fault, a_device_has_as_many_objects_as_it_says)
{
    set_env("MLX5SIM_MAX_PD", "4");
    set_env("MLX5SIM_MAX_MR", "3");
    set_env("MLX5SIM_MAX_CQ", "2");
    set_env("MLX5SIM_MAX_SRQ", "1");
    set_env("MLX5SIM_MAX_QP", "5");
    run(1, [](rank&) {
        context c;
        ibv_device_attr attr;

        REQUIRE_EQ(0, ibv_query_device(c.ctx, &attr));
        REQUIRE_EQ(4, attr.max_pd);
        REQUIRE_EQ(3, attr.max_mr);
        REQUIRE_EQ(2, attr.max_cq);
        REQUIRE_EQ(1, attr.max_srq);
        REQUIRE_EQ(5, attr.max_qp);

        {
            std::vector<std::unique_ptr<memory>> mrs;
            cq a(c, 8), b(c, 8);
            srq s(c, 8);
            std::vector<std::unique_ptr<qp>> qps;

            for (int i = 0; i < 3; ++i) {
                mrs.emplace_back(new memory(c, 4096));
            }
            for (int i = 0; i < 5; ++i) {
                qps.emplace_back(new qp(c, a, b));
            }

            REQUIRE(ibv_create_cq(c.ctx, 8, nullptr, nullptr, 0) == nullptr);
            REQUIRE_EQ(ENOMEM, errno);
            REQUIRE_EQ(ENOMEM, create_srq(c));
            REQUIRE(ibv_reg_mr(c.pd, mrs[0]->data, 4096, 0) == nullptr);
            REQUIRE_EQ(ENOMEM, errno);
            qps.pop_back();
            qps.emplace_back(new qp(c, b, a));
            ibv_qp_init_attr init = {};
            init.send_cq          = a.v;
            init.recv_cq          = a.v;
            init.qp_type          = IBV_QPT_RC;
            REQUIRE(ibv_create_qp(c.pd, &init) == nullptr);
            REQUIRE_EQ(ENOMEM, errno);
        }
        REQUIRE_EQ(0, create_srq(c));
        REQUIRE_EQ(0, create_qp(c));
    });
}

TEST_F(test_device_fault, objects_of_the_dead_are_no_longer_counted)
{
    set_env("MLX5SIM_MAX_CQ", "2");
    start(0, 2, [](rank &r) {
        context c;
        cq a(c, 8), b(c, 8);

        r.word(0) = 1;
        r.wait_word(1, 1); /* never */
    });
    start(1, 2, [](rank &r) {
        context c;

        r.wait_word(0, 1);
        REQUIRE(ibv_create_cq(c.ctx, 8, nullptr, nullptr, 0) == nullptr);
        r.word(2) = 1;
        r.wait_word(3, 1);
        cq a(c, 8), b(c, 8);
    });
    ASSERT_TRUE(patience::until([&]() { return word(2) != 0; }));
    kill(0);
    EXPECT_EQ(SIGKILL, finish(0));
    word(3) = 1;
    finish_all();
}
