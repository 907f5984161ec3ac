/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What is not emulated is refused by name, once per process.
 */

#include <device/device.h>

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

using namespace device;

namespace {

class test_device_refuse : public device::test {
protected:
    /** @a attempt fails each time with @a error, and is logged as @a name
     *  once. */
    void expect_refused(const std::string &name, int error,
                        const std::function<int(context&)> &attempt,
                        const char *log = "warn")
    {
        std::string text;
        size_t at;

        catch_errors();
        set_env("MLX5SIM_LOG", log);
        run(1, [&](rank &) {
            context c;

            for (int i = 0; i < 2; ++i) {
                REQUIRE_EQ(error, attempt(c));
            }
        });

        text = errors();
        at   = text.find("mlx5sim: not emulated: " + name);
        EXPECT_NE(std::string::npos, at) << name << ": " << text;
        EXPECT_EQ(std::string::npos, text.find("not emulated", at + 20))
                << name << ": " << text;
        EXPECT_EQ(std::string::npos, text.find("uverbs command")) << text;
        unlink((dir() + ".stderr").c_str());
    }

    /* Attempts: 0, or the errno they fail with */

    static int result(const void *made)
    {
        return (made == nullptr) ? errno : 0;
    }

    static int reg_mr(context &c, unsigned access)
    {
        static char buf[4096];

        return result(ibv_reg_mr(c.pd, buf, sizeof(buf), access));
    }

    static int create_qp(context &c, ibv_qp_type type)
    {
        cq q(c, 16);
        ibv_qp_init_attr attr = {};

        attr.send_cq         = q.v;
        attr.recv_cq         = q.v;
        attr.qp_type         = type;
        attr.cap.max_send_wr = 1;
        attr.cap.max_recv_wr = 1;
        return result(ibv_create_qp(c.pd, &attr));
    }
};

} // namespace

TEST_F(test_device_refuse, raw_packets)
{
    set_env("MLX5SIM_LINK", "roce");
    expect_refused("raw packets", EOPNOTSUPP, [](context &c) {
        return create_qp(c, IBV_QPT_RAW_PACKET);
    });
}

/* UCX tries them out whenever it starts: not a word about that by default */
TEST_F(test_device_refuse, dc_which_is_often_tried)
{
    auto attempt = [](context &c) -> int {
        cq q(c, 16);
        ibv_qp_init_attr_ex attr  = {};
        mlx5dv_qp_init_attr attr2 = {};

        attr.send_cq               = q.v;
        attr.recv_cq               = q.v;
        attr.qp_type               = IBV_QPT_DRIVER;
        attr.cap.max_send_wr       = 1;
        attr.comp_mask             = IBV_QP_INIT_ATTR_PD;
        attr.pd                    = c.pd;
        attr2.comp_mask            = MLX5DV_QP_INIT_ATTR_MASK_DC;
        attr2.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;
        return result(mlx5dv_create_qp(c.ctx, &attr, &attr2));
    };

    expect_refused("DC", EOPNOTSUPP, attempt, "info");

    run(1, [&](rank &) {
        context c;

        setenv("MLX5SIM_LOG", "warn", 1);
        REQUIRE_EQ(EOPNOTSUPP, attempt(c));
    });
}

TEST_F(test_device_refuse, access_flags)
{
    expect_refused("on-demand paging", EOPNOTSUPP, [](context &c) {
        return reg_mr(c, IBV_ACCESS_ON_DEMAND);
    });
    expect_refused("zero-based regions", EOPNOTSUPP, [](context &c) {
        return reg_mr(c, IBV_ACCESS_ZERO_BASED);
    });
}

TEST_F(test_device_refuse, import_of_a_descriptor_that_is_no_copy)
{
    expect_refused("imported devices", EOPNOTSUPP, [](context &c) {
        /* one that fails closes the descriptor, so the context can't be */
        ibv_context *victim = ibv_open_device(c.ctx->device);

        REQUIRE(victim != nullptr);
        return result(ibv_import_device(victim->cmd_fd));
    });
}

TEST_F(test_device_refuse, import_with_static_uars)
{
    set_env("MLX5SIM_UAR_MODE", "legacy");
    expect_refused("imported devices", EOPNOTSUPP, [](context &c) {
        return result(ibv_import_device(
                fcntl(c.ctx->cmd_fd, F_DUPFD_CLOEXEC, 0)));
    });
}

TEST_F(test_device_refuse, queue_pair_options)
{
    expect_refused("options of queue pairs", EOPNOTSUPP, [](context &c) {
        cq q(c, 16);
        ibv_qp_init_attr_ex attr = {};

        attr.send_cq         = q.v;
        attr.recv_cq         = q.v;
        attr.qp_type         = IBV_QPT_UD;
        attr.cap.max_send_wr = 1;
        attr.comp_mask       = IBV_QP_INIT_ATTR_PD |
                               IBV_QP_INIT_ATTR_CREATE_FLAGS;
        attr.pd              = c.pd;
        attr.create_flags    = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
        return result(ibv_create_qp_ex(c.ctx, &attr));
    });
}

TEST_F(test_device_refuse, resizing_with_compression)
{
    expect_refused("resizing with compression", EOPNOTSUPP, [](context &c) {
        mlx5dv_cq_init_attr dv = {};
        dv.comp_mask           = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
        dv.cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH;
        cq q(c, 16, dv);

        return ibv_resize_cq(q.v, 64);
    });
}

/* libmlx5 wants an extended queue for it, and some tags */
TEST_F(test_device_refuse, tag_matching)
{
    expect_refused("tag matching", EOPNOTSUPP, [](context &c) {
        ibv_cq_init_attr_ex cq_attr = {};
        ibv_srq_init_attr_ex attr   = {};
        int ret;

        cq_attr.cqe   = 16;
        ibv_cq_ex *cq = ibv_create_cq_ex(c.ctx, &cq_attr);
        REQUIRE(cq != nullptr);
        attr.attr.max_wr         = 16;
        attr.attr.max_sge        = 1;
        attr.comp_mask           = IBV_SRQ_INIT_ATTR_TYPE |
                                   IBV_SRQ_INIT_ATTR_PD |
                                   IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
        attr.srq_type            = IBV_SRQT_TM;
        attr.pd                  = c.pd;
        attr.cq                  = ibv_cq_ex_to_cq(cq);
        attr.tm_cap.max_num_tags = 16;
        attr.tm_cap.max_ops      = 16;
        ret = result(ibv_create_srq_ex(c.ctx, &attr));
        REQUIRE_EQ(0, ibv_destroy_cq(attr.cq));
        return ret;
    });
}

TEST_F(test_device_refuse, flows_of_verbs)
{
    expect_refused("flow steering", EOPNOTSUPP, [](context &c) {
        cq done(c, 16);
        qp q(c, done, done);
        ibv_flow_attr attr = {};

        attr.type = IBV_FLOW_ATTR_NORMAL;
        attr.size = sizeof(attr);
        attr.port = 1;
        return result(ibv_create_flow(q.v, &attr));
    });
}

/* Without one of these there is nothing for mlx5dv_create_flow(). Methods that
 * are not there end like that in the kernel. */
TEST_F(test_device_refuse, flow_matchers)
{
    expect_refused("flow steering", EPROTONOSUPPORT, [](context &c) {
        struct {
            size_t   match_sz;
            uint64_t match[8];
        } mask = {sizeof(mask.match), {}};
        mlx5dv_flow_matcher_attr attr = {};

        attr.type       = IBV_FLOW_ATTR_NORMAL;
        attr.match_mask = (mlx5dv_flow_match_parameters*)&mask;
        return result(mlx5dv_create_flow_matcher(c.ctx, &attr));
    });
}

TEST_F(test_device_refuse, flow_actions)
{
    expect_refused("flow steering", EPROTONOSUPPORT, [](context &c) {
        uint64_t action = 0;

        return result(mlx5dv_create_flow_action_modify_header(
                c.ctx, sizeof(action), &action,
                MLX5DV_FLOW_TABLE_TYPE_NIC_RX));
    });
}
