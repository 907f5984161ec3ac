/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Several devices and ports, and what tells the paths between them apart.
 */

#include <device/device.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <endian.h>
#include <sys/stat.h>

using namespace device;

namespace {

class test_device_port : public device::test {
};

/* One QP with all it needs on a port */
struct end {
    end(unsigned device, unsigned port, const qp_options &options) :
        c(device, port), mem(c, 65536), scq(c, 64), rcq(c, 64),
        q(c, scq, rcq, options)
    {
    }

    context c;
    memory  mem;
    cq      scq;
    cq      rcq;
    qp      q;
};

/* Send and read between the ends */
void exchange(end &a, end &b)
{
    address to_b = b.q.addr(&b.mem);

    memset(a.mem.data, 0x5a, 5000);
    b.q.recv(1, b.mem.sge(8192, 8192));
    send_wr message(IBV_WR_SEND, 1, {a.mem.sge(0, 5000)});
    a.q.send(message);
    a.scq.good();
    REQUIRE_EQ(5000, b.rcq.good().byte_len);
    REQUIRE(memcmp(a.mem.data, b.mem.data + 8192, 5000) == 0);

    memset(b.mem.data, 0x77, 3000);
    send_wr get(IBV_WR_RDMA_READ, 2, {a.mem.sge(0, 3000)});
    a.q.send(get.to(to_b));
    a.scq.good();
    REQUIRE_EQ(0x77, a.mem.data[2999]);
}

} // namespace


TEST_F(test_device_port, all_ports_of_all_devices_reach_each_other)
{
    set_env("MLX5SIM_DEVICES", "2");
    set_env("MLX5SIM_PORTS", "2");
    for (const char *link : {"ib", "roce"}) {
        std::string dir = this->dir() + "/" + link;

        ASSERT_EQ(0, mkdir(dir.c_str(), 0700));
        set_env("MLX5SIM_LINK", link);
        run(1, [&](rank&) {
            setenv("MLX5SIM_DIR", dir.c_str(), 1);
            for (unsigned from = 0; from < 4; ++from) {
                for (unsigned to = 0; to < 4; ++to) {
                    qp_options options;
                    end a(from / 2, 1 + from % 2, options);
                    end b(to / 2, 1 + to % 2, options);

                    a.q.connect(b.q.addr());
                    b.q.connect(a.q.addr());
                    exchange(a, b);
                    exchange(b, a);
                }
            }
        });
    }
}

/* A representor, or a function where RoCE is switched off (GIDLESS), or whose
 * network interface has gone (EMPTY_GIDS): its link is up, and there is no GID
 * to send from. The other port is as usual. */
class test_device_port_gids :
    public test_device_port,
    public ::testing::WithParamInterface<const char*> {
};

TEST_P(test_device_port_gids, a_port_without_gids_is_up_and_connects_nobody)
{
    bool has_table = (strcmp(GetParam(), "MLX5SIM_EMPTY_GIDS") == 0);

    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_PORTS", "2");
    set_env(GetParam(), "mlx5_0:1");
    run(1, [has_table](rank&) {
        qp_options options;
        end a(0, 2, options), b(0, 2, options);
        ibv_ah_attr path = {};
        ibv_port_attr attr;
        ibv_qp_attr rtr = {};
        ibv_qp_attr init = {};
        union ibv_gid gid;

        for (int port : {1, 2}) {
            REQUIRE_EQ(0, ibv_query_port(a.c.ctx, port, &attr));
            REQUIRE_EQ(IBV_PORT_ACTIVE, attr.state);
            bool has_gids = has_table || (port == 2);
            REQUIRE_EQ(has_gids, attr.gid_tbl_len > 0);
            REQUIRE_EQ(has_gids ? 0x00010000 : 0, attr.port_cap_flags);
            REQUIRE_EQ(has_gids, ibv_query_gid(a.c.ctx, port, 0, &gid) == 0);
            if (has_gids) {
                REQUIRE_EQ(port == 1, (gid.global.subnet_prefix == 0) &&
                                      (gid.global.interface_id == 0));
            }

            path.is_global     = 1;
            path.port_num      = port;
            path.grh.hop_limit = 64;
            path.grh.dgid      = b.c.gid;
            ibv_ah *ah         = ibv_create_ah(a.c.pd, &path);
            REQUIRE_EQ(port == 1, ah == nullptr);
            if (ah != nullptr) {
                REQUIRE_EQ(0, ibv_destroy_ah(ah));
            } else if (has_table) {
                REQUIRE_EQ(ENODATA, errno);
            }
        }

        qp c(a.c, a.scq, a.rcq, options);
        init.qp_state = IBV_QPS_INIT;
        init.port_num = 1;
        REQUIRE_EQ(0, ibv_modify_qp(c.v, &init,
                                    IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
        rtr.qp_state           = IBV_QPS_RTR;
        rtr.path_mtu           = IBV_MTU_1024;
        rtr.dest_qp_num        = b.q.v->qp_num;
        rtr.max_dest_rd_atomic = 1;
        rtr.ah_attr            = path;
        rtr.ah_attr.port_num   = 1;
        REQUIRE_EQ(EINVAL, ibv_modify_qp(c.v, &rtr,
                                         IBV_QP_STATE | IBV_QP_AV |
                                         IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                         IBV_QP_RQ_PSN |
                                         IBV_QP_MAX_DEST_RD_ATOMIC |
                                         IBV_QP_MIN_RNR_TIMER));

        a.q.connect(b.q.addr());
        b.q.connect(a.q.addr());
        exchange(a, b);
    });
}

INSTANTIATE_TEST_SUITE_P(settings, test_device_port_gids,
                         ::testing::Values("MLX5SIM_GIDLESS",
                                           "MLX5SIM_EMPTY_GIDS"),
                         [](const ::testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });

/* The loopback interface is one that every machine has */
TEST_F(test_device_port, a_port_is_what_its_network_interface_is)
{
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_WIRE", "lo");
    run(1, [](rank&) {
        static const uint8_t local[16] = {0, 0, 0, 0, 0, 0, 0,   0,
                                          0, 0, 0xff, 0xff, 127, 0, 0, 1};
        ibv_device_attr device;
        ibv_port_attr attr;
        qp_options options;
        union ibv_gid gid;

        options.path.grh.sgid_index = 3;
        end a(0, 1, options), b(0, 1, options);
        REQUIRE_EQ(0, ibv_query_port(a.c.ctx, 1, &attr));
        REQUIRE_EQ(IBV_MTU_4096, attr.active_mtu);
        REQUIRE_EQ(0, ibv_query_gid(a.c.ctx, 1, 3, &gid));
        REQUIRE(memcmp(&gid, local, sizeof(local)) == 0);
        REQUIRE_EQ(0, ibv_query_device(a.c.ctx, &device));
        REQUIRE_EQ(be64toh(0x02007f0300000001ul), device.node_guid);

        address to_a = a.q.addr(), to_b = b.q.addr();
        to_a.gid = to_b.gid = gid;
        a.q.connect(to_b);
        b.q.connect(to_a);
        exchange(a, b);
        exchange(b, a);
    });
}

/* Without an embedded switch Linux says of a port only that it is one */
TEST_F(test_device_port, no_port_is_one_of_a_switch)
{
    set_env("MLX5SIM_PORTS", "2");
    run(1, [](rank&) {
        context c;

        for (unsigned port = 0; port < 4; ++port) {
            mlx5dv_port info;
            int ret;

            memset(&info, 0xff, sizeof(info));
            ret = mlx5dv_query_port(c.ctx, port, &info);
            if ((port == 1) || (port == 2)) {
                REQUIRE_EQ(0, ret);
                REQUIRE_EQ(0, info.flags);
            } else {
                REQUIRE_EQ(EINVAL, ret);
            }
        }
    });
}

TEST_F(test_device_port, stat_shows_the_path_of_a_qp)
{
    set_env("MLX5SIM_PORTS", "2");
    set_env("MLX5SIM_LMC", "3");
    run(1, [this](rank&) {
        qp_options options = {.timeout = 17, .retry_cnt = 5, .rnr_retry = 6,
                              .mtu = IBV_MTU_512};

        options.path.sl                 = 4;
        options.path.src_path_bits      = 6;
        options.path.is_global          = 1;
        options.path.grh.sgid_index     = 0;
        options.path.grh.hop_limit      = 33;
        options.path.grh.traffic_class  = 106;
        options.path.grh.flow_label     = 0x12345;
        end a(0, 2, options);
        address self            = a.q.addr();
        a.q.options.path.grh.dgid = self.gid;
        a.q.connect(self);

        std::string json = stat_json();
        auto has = [&](const char *key, const char *value) {
            if (stat_qps(json, key)[0] != value) {
                fail(__FILE__, __LINE__, "%s is %s, not %s", key,
                     stat_qps(json, key)[0].c_str(), value);
            }
        };
        has("port", "2");
        has("path_mtu", "512");
        has("timeout", "17");
        has("retry_cnt", "5");
        has("rnr_retry", "6");
        has("sl", "4");
        has("path_bits", "6");
        has("is_global", "true");
        has("gid_index", "0");
        has("hop_limit", "33");
        has("traffic_class", "106");
        has("flow_label", "74565");
        /* 16 is the first LID, and each port has 8 */
        has("lid", "24");
        has("dlid", "24");
    });
}

TEST_F(test_device_port, a_port_answers_to_all_its_lids)
{
    set_env("MLX5SIM_PORTS", "2");
    set_env("MLX5SIM_LMC", "2");
    set_env("MLX5SIM_LID_BASE", "17");
    run(1, [](rank&) {
        ibv_port_attr attr;

        qp_options options = {.timeout = 8, .retry_cnt = 1};
        {
            context c;
            REQUIRE_EQ(0, ibv_query_port(c.ctx, 1, &attr));
            REQUIRE_EQ(2, attr.lmc);
            REQUIRE_EQ(20, attr.lid);
        }

        for (unsigned bits = 0; bits < 6; ++bits) {
            end a(0, 1, options), b(0, 1, options);
            address to_b = b.q.addr();

            to_b.lid += bits;
            a.q.connect(to_b);
            b.q.connect(a.q.addr());
            if (bits < 4) {
                exchange(a, b);
                continue;
            }

            /* the other port's */
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {a.mem.sge(0, 8)});
            a.q.send(wr.to(b.q.addr(&b.mem)));
            REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, a.scq.next().status);
        }
    });
}

TEST_F(test_device_port, datagrams_tell_the_path_bits_of_both_sides)
{
    set_env("MLX5SIM_LMC", "4");
    run(1, [](rank&) {
        end a(0, 1, {.type = IBV_QPT_UD}), b(0, 1, {.type = IBV_QPT_UD});
        ibv_ah_attr attr = {};
        ibv_ah *ah;
        ibv_wc wc;

        a.q.connect(b.q.addr());
        b.q.connect(a.q.addr());
        attr.port_num      = 1;
        attr.dlid          = b.c.lid + 9;
        attr.src_path_bits = 3;
        attr.sl            = 5;
        ah                 = ibv_create_ah(a.c.pd, &attr);
        REQUIRE(ah != nullptr);

        b.q.recv(1, b.mem.sge(0, 256));
        send_wr wr(IBV_WR_SEND, 1, {a.mem.sge(0, 8)});
        wr.wr.ud.ah          = ah;
        wr.wr.ud.remote_qpn  = b.q.v->qp_num;
        wr.wr.ud.remote_qkey = default_qkey;
        a.q.send(wr);
        a.scq.good();
        wc = b.rcq.good();
        REQUIRE_EQ(a.c.lid + 3, wc.slid);
        REQUIRE_EQ(9, wc.dlid_path_bits);
        REQUIRE_EQ(5, wc.sl);
        REQUIRE_EQ(0, ibv_destroy_ah(ah));
    });
}
