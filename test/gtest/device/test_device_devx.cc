/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DEVX contexts: queue pairs are queried and bound to ports of a LAG by
 * firmware commands, as libmlx5 does for ibv_query_qp_data_in_order() and
 * mlx5dv_modify_qp_lag_port().
 */

#include <device/device.h>

#include <cerrno>
#include <cstring>
#include <vector>

using namespace device;

namespace {

/* Commands of the PRM, and the places of fields in them (kernel and rdma-core,
 * mlx5_ifc.h), in bytes */
enum {
    cmd_query_hca_cap = 0x100,
    cmd_rts2rts_qp    = 0x505,
    cmd_query_qp      = 0x50b,
    cmd_init2init_qp  = 0x50e,
    cmd_create_xrq    = 0x717,
    cmd_query_roce    = 0x760,
    cmd_query_vport   = 0x762,
    cmd_alloc_uar     = 0x802,
    cmd_allow_access  = 0xb16,
    cmd_query_lag     = 0x842
};

const size_t qpc_offset     = 24;
const size_t query_qp_size  = 272;
const size_t modify_qp_size = 272;
const uint8_t opt_lag       = 0x80; /* bit 15 of opt_param_mask */

typedef std::vector<uint8_t> bytes;

bytes command(size_t size, unsigned opcode, uint32_t qpn = 0)
{
    bytes in(size);

    in[0]  = opcode >> 8;
    in[1]  = opcode & 0xff;
    in[9]  = qpn >> 16;
    in[10] = qpn >> 8;
    in[11] = qpn & 0xff;
    return in;
}

int general(ibv_context *ctx, const bytes &in, bytes &out)
{
    return mlx5dv_devx_general_cmd(ctx, in.data(), in.size(), out.data(),
                                   out.size());
}

bytes query_qp(const qp &q)
{
    bytes in = command(16, cmd_query_qp, q.v->qp_num), out(query_qp_size);

    REQUIRE_EQ(0, mlx5dv_devx_qp_query(q.v, in.data(), in.size(), out.data(),
                                       out.size()));
    REQUIRE_EQ(0, out[0]);
    return bytes(out.begin() + qpc_offset, out.end());
}

unsigned state(const bytes &qpc)
{
    return qpc[0] >> 4;
}

unsigned lag_port(const bytes &qpc)
{
    return qpc[0] & 0xf;
}

bool in_order(const bytes &qpc)
{
    return qpc[11] & 0x20;
}

/* @return errno, and the status in *status_p */
int set_lag_port(const qp &q, unsigned opcode, unsigned port,
                 unsigned *status_p)
{
    bytes in = command(modify_qp_size, opcode, q.v->qp_num), out(16);
    int ret;

    in[18]         = opt_lag;
    in[qpc_offset] = port;
    ret            = mlx5dv_devx_qp_modify(q.v, in.data(), in.size(),
                                           out.data(), out.size());
    *status_p      = out[0];
    return ret;
}

qp_options on_sl(uint8_t sl)
{
    qp_options options;

    options.path.sl = sl;
    return options;
}

class test_device_devx : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
        set_env("MLX5SIM_LOG", "error");
    }
};

} // namespace


TEST_F(test_device_devx, off_by_default)
{
    set_env("MLX5SIM_DEVX", "n");
    run(1, [](rank&) {
        loop l;
        bytes in = command(16, cmd_query_qp, l.a.v->qp_num);
        bytes out(query_qp_size);

        REQUIRE(mlx5dv_devx_qp_query(l.a.v, in.data(), in.size(), out.data(),
                                     out.size()) != 0);
        REQUIRE_EQ(0, ibv_query_qp_data_in_order(l.a.v, IBV_WR_RDMA_WRITE, 0));
    });
}

/* libmlx5 asks queue pairs in RTS only; who waits in RTR asks for the QPC */
TEST_F(test_device_devx, data_in_order_is_told)
{
    static const struct {
        const char *value;
        bool       in_order;
    } cases[] = {{"y", true}, {"n", false}, {"unknown", false}};

    for (const auto &c : cases) {
        set_env("MLX5SIM_DIR", dir() + "/" + c.value);
        set_env("MLX5SIM_DATA_IN_ORDER", c.value);
        run(1, [&](rank&) {
            context ctx;
            cq done(ctx, 16);
            qp a(ctx, done, done), b(ctx, done, done);

            REQUIRE_EQ(0, state(query_qp(a)));
            a.to_init();
            b.to_init();
            REQUIRE_EQ(1, state(query_qp(a)));
            a.to_rtr(b.addr());
            b.to_rtr(a.addr());
            REQUIRE_EQ(2, state(query_qp(a)));
            REQUIRE_EQ(c.in_order, in_order(query_qp(a)));
            REQUIRE_EQ(0, ibv_query_qp_data_in_order(a.v, IBV_WR_RDMA_WRITE,
                                                     0));
            a.to_rts();
            REQUIRE_EQ(3, state(query_qp(a)));
            REQUIRE_EQ(c.in_order,
                       ibv_query_qp_data_in_order(a.v, IBV_WR_RDMA_WRITE, 0));
            b.to_state(IBV_QPS_ERR);
            REQUIRE_EQ(6, state(query_qp(b)));
        });
    }
}

TEST_F(test_device_devx, service_levels_out_of_order_are_told)
{
    set_env("MLX5SIM_OOO_SL_MASK", "0x8012");
    run(1, [](rank&) {
        loop sl0(on_sl(0)), sl1(on_sl(1));
        bytes in = command(16, cmd_query_vport), out(16 + 508);

        in[9] = 1; /* port */
        REQUIRE_EQ(0, general(sl0.c.ctx, in, out));
        REQUIRE_EQ(0x80, out[16 + 82]);
        REQUIRE_EQ(0x12, out[16 + 83]);

        bytes cap_in = command(16, cmd_query_hca_cap), cap(16 + 4096);
        cap_in[7] = 1; /* current values of the general capabilities */
        REQUIRE_EQ(0, general(sl0.c.ctx, cap_in, cap));
        REQUIRE(cap[16 + 39] & 0x80); /* ooo_sl_mask */
        REQUIRE(cap[16 + 12] & 0x20); /* qp_data_in_order */

        REQUIRE_EQ(1, ibv_query_qp_data_in_order(sl0.a.v, IBV_WR_RDMA_WRITE,
                                                 0));
        REQUIRE_EQ(0, ibv_query_qp_data_in_order(sl1.a.v, IBV_WR_RDMA_WRITE,
                                                 0));
    });
}

/* Who has no verbs for it asks for a port's LID like that */
TEST_F(test_device_devx, ports_are_told)
{
    set_env("MLX5SIM_DEVICES", "2");
    set_env("MLX5SIM_PORTS", "2");
    set_env("MLX5SIM_LMC", "2");
    run(1, [](rank&) {
        context c(1, 2);
        bytes first = command(16, cmd_query_vport), too_short(16 + 101);

        REQUIRE_EQ(EREMOTEIO, general(c.ctx, first, too_short));
        for (unsigned port = 0; port < 4; ++port) {
            bytes in = command(16, cmd_query_vport), out(16 + 508);

            in[9] = port;
            if (port > 2) {
                REQUIRE_EQ(EREMOTEIO, general(c.ctx, in, out));
                continue;
            }

            ibv_port_attr attr;
            ibv_device_attr dev;
            ibv_gid gid;
            REQUIRE_EQ(0, general(c.ctx, in, out));
            REQUIRE_EQ(0, ibv_query_port(c.ctx, port ? port : 1, &attr));
            REQUIRE_EQ(0, ibv_query_device(c.ctx, &dev));
            REQUIRE_EQ(0, ibv_query_gid(c.ctx, port ? port : 1, 0, &gid));
            REQUIRE_EQ(attr.lid, (out[16 + 96] << 8) | out[16 + 97]);
            REQUIRE_EQ(2, out[16 + 99] >> 5);
            REQUIRE_EQ(attr.sm_lid, (out[16 + 100] << 8) | out[16 + 101]);
            REQUIRE_EQ(0, memcmp(&dev.sys_image_guid, &out[16 + 40], 8));
            REQUIRE_EQ(0, memcmp(&gid.raw[8], &out[16 + 48], 8));
            REQUIRE_EQ(0, memcmp(&dev.node_guid, &out[16 + 56], 8));
        }
    });
}

/* The table of addresses is that of GIDs */
TEST_F(test_device_devx, addresses_of_roce_are_the_gids)
{
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_DEVICES", "2");
    set_env("MLX5SIM_PORTS", "2");
    set_env("MLX5SIM_EMPTY_GIDS", "mlx5_1:2");
    run(1, [](rank&) {
        for (unsigned dev = 0; dev < 2; ++dev) {
            context c(dev, 1);
            unsigned found = 0, expected = 0;
            ibv_port_attr attr;

            for (unsigned port = 1; port <= 2; ++port) {
                REQUIRE_EQ(0, ibv_query_port(c.ctx, port, &attr));
                for (int i = 0; i < attr.gid_tbl_len; ++i) {
                    bytes in = command(16, cmd_query_roce), out(48);
                    bytes zero(48);
                    ibv_gid_entry entry;

                    in[9]  = i;         /* roce_address_index, low byte */
                    in[11] = port;      /* vhca_port_num */
                    REQUIRE_EQ(0, general(c.ctx, in, out));
                    if (ibv_query_gid_ex(c.ctx, port, i, &entry, 0) != 0) {
                        REQUIRE(out == zero);
                        continue;
                    }

                    const uint8_t *raw = entry.gid.raw;
                    bool is_v4         = (raw[0] == 0) && (raw[10] == 0xff);
                    ++found;
                    REQUIRE_EQ(0, memcmp(raw, &out[16], 16));
                    REQUIRE_EQ(0, out[32]); /* no VLAN */
                    REQUIRE_EQ(!is_v4, out[42] & 0xf);
                    REQUIRE_EQ((entry.gid_type == IBV_GID_TYPE_ROCE_V2) ? 2 : 0,
                               out[43]);
                    if (raw[0] == 0xfe) { /* made of the MAC: RFC 4291 */
                        const uint8_t mac[] = {uint8_t(raw[8] ^ 2), raw[9],
                                               raw[10], raw[13], raw[14],
                                               raw[15]};
                        REQUIRE_EQ(0, memcmp(mac, &out[34], 6));
                    }
                }

                bytes in = command(16, cmd_query_roce), out(48);
                in[9]    = attr.gid_tbl_len;
                in[11]   = port;
                REQUIRE_EQ(EREMOTEIO, general(c.ctx, in, out));
                REQUIRE_EQ(3, out[0]); /* bad parameter */
                expected += (dev == 0) || (port == 1);
            }
            REQUIRE(found >= 2 * expected); /* of v1 and v2 */
        }
    });
}

TEST_F(test_device_devx, infiniband_has_no_addresses_of_roce)
{
    run(1, [](rank&) {
        context c;
        bytes in = command(16, cmd_query_roce), out(48);

        REQUIRE_EQ(EREMOTEIO, general(c.ctx, in, out));
        REQUIRE_EQ(3, out[0]);
    });
}

/* Two ways to ask, one device: what a model has by commands it has by verbs */
TEST_F(test_device_devx, capabilities_are_those_of_verbs_with_all_models)
{
    auto field = [](const bytes &out, unsigned bit, unsigned width) {
        uint64_t value = 0;

        for (unsigned i = 128 + bit; i < 128 + bit + width; ++i) {
            value = (value << 1) | ((out[i / 8] >> (7 - i % 8)) & 1);
        }
        return value;
    };
    auto log = [](uint64_t value) {
        return 63 - __builtin_clzll(value);
    };

    for (const char *model : {"cx4", "cx5", "cx5ex", "cx6", "cx6dx", "cx7"}) {
        for (const char *link : {"ib", "roce"}) {
            for (const char *all : {"y", "n"}) {
                set_env("MLX5SIM_DIR", dir() + "/" + model + link + all);
                set_env("MLX5SIM_MODEL", model);
                set_env("MLX5SIM_LINK", link);
                set_env("MLX5SIM_PORTS", (*all == 'y') ? "2" : "1");
                set_env("MLX5SIM_MAX_QP", (*all == 'y') ? "65472" : "1000");
                set_env("MLX5SIM_PCI_ATOMICS", (*all == 'y') ? "4_8" : "none");
                set_env("MLX5SIM_LAG", (*all == 'y') ? "2" : "0");
                for (const char *name : {"MLX5SIM_DC", "MLX5SIM_ODP",
                                         "MLX5SIM_DM"}) {
                    set_env(name, all);
                }

                run(1, [=](rank&) {
                    context c;
                    bytes in = command(16, cmd_query_hca_cap), out(16 + 4096);
                    bytes atomics(16 + 4096);
                    ibv_device_attr_ex ex = {};
                    ibv_port_attr port;
                    mlx5dv_context dv = {};
                    const ibv_device_attr &v = ex.orig_attr;

                    dv.comp_mask = MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS |
                                   MLX5DV_CONTEXT_MASK_DCI_STREAMS;
                    in[7] = 1;
                    REQUIRE_EQ(0, general(c.ctx, in, out));
                    in[7] = (3 << 1) | 1;
                    REQUIRE_EQ(0, general(c.ctx, in, atomics));
                    REQUIRE_EQ(0, ibv_query_device_ex(c.ctx, nullptr, &ex));
                    REQUIRE_EQ(0, ibv_query_port(c.ctx, 1, &port));
                    REQUIRE_EQ(0, mlx5dv_query_device(c.ctx, &dv));

                    REQUIRE_EQ(log(v.max_qp_wr), field(out, 136, 8));
                    REQUIRE_EQ(log(v.max_qp), field(out, 155, 5));
                    REQUIRE_EQ(log(v.max_srq), field(out, 171, 5));
                    REQUIRE_EQ(log(v.max_cqe + 1), field(out, 200, 8));
                    REQUIRE_EQ(log(v.max_cq), field(out, 219, 5));
                    REQUIRE_EQ(log(v.max_mr), field(out, 234, 6));
                    REQUIRE_EQ(log(v.max_qp_init_rd_atom), field(out, 330, 6));
                    REQUIRE_EQ(log(v.max_qp_rd_atom), field(out, 346, 6));
                    REQUIRE_EQ(ex.max_dm_size > 0, field(out, 424, 1));
                    REQUIRE_EQ(port.link_layer == IBV_LINK_LAYER_ETHERNET,
                               field(out, 438, 2));
                    REQUIRE_EQ(v.phys_port_cnt, field(out, 440, 8));
                    REQUIRE_EQ(log(port.max_msg_sz), field(out, 451, 5));
                    REQUIRE_EQ((dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1) != 0,
                               field(out, 508, 4));
                    REQUIRE_EQ(port.link_layer == IBV_LINK_LAYER_ETHERNET,
                               field(out, 541, 1));
                    REQUIRE_EQ(v.atomic_cap != IBV_ATOMIC_NONE,
                               field(out, 542, 1));
                    REQUIRE_EQ((ex.odp_caps.general_caps &
                                IBV_ODP_SUPPORT) != 0, field(out, 551, 1));
                    REQUIRE_EQ((dv.comp_mask &
                                MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS) ?
                               dv.num_lag_ports : 0, field(out, 636, 4));
                    REQUIRE_EQ(dv.dci_streams_caps.max_log_num_concurent,
                               field(out, 1419, 5));
                    REQUIRE_EQ(dv.dci_streams_caps.max_log_num_errored,
                               field(out, 1427, 5));
                    REQUIRE_EQ(*all == 'y', field(out, 538, 1)); /* dct */
                    REQUIRE_EQ(ex.pci_atomic_caps.fetch_add,
                               field(atomics, 640, 16));
                    REQUIRE_EQ(ex.pci_atomic_caps.swap,
                               field(atomics, 656, 16));
                    REQUIRE_EQ(ex.pci_atomic_caps.compare_swap,
                               field(atomics, 672, 16));
                });
            }
        }
    }
}

TEST_F(test_device_devx, device_memory_is_told)
{
    for (const char *dm : {"y", "n"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + dm);
        set_env("MLX5SIM_DM", dm);
        run(1, [=](rank&) {
            context c;
            bytes in = command(16, cmd_query_hca_cap), out(16 + 4096);

            in[7] = 1; /* current values of the general capabilities */
            REQUIRE_EQ(0, general(c.ctx, in, out));
            REQUIRE_EQ((*dm == 'y') ? 0x80 : 0, out[16 + 53] & 0x80);

            /* its own group is there without it, too, and that of flow tables,
             * of which there are none */
            in[7] = (0xf << 1) | 1;
            REQUIRE_EQ(0, general(c.ctx, in, out));
            REQUIRE_EQ((*dm == 'y') ? 0x80 : 0, out[16]);
            in[7] = (7 << 1) | 1;
            REQUIRE_EQ(0, general(c.ctx, in, out));
            REQUIRE(bytes(out.size()) == out);
        });
    }
}

/* UCX takes the sizes that RC and DC have in common for what RC has */
TEST_F(test_device_devx, atomics_have_the_same_sizes_with_any_transport)
{
    run(1, [](rank&) {
        context c;
        bytes in = command(16, cmd_query_hca_cap), out(16 + 4096);

        in[7] = (3 << 1) | 1; /* current values of atomics' capabilities */
        REQUIRE_EQ(0, general(c.ctx, in, out));
        REQUIRE_EQ(0x0c, out[16 + 23]); /* atomic_size_qp */
        REQUIRE_EQ(0x0c, out[16 + 27]); /* atomic_size_dc */
    });
}

/* The kernel spreads queue pairs over the ports; libmlx5 binds one to a port
 * once it is in RTS */
TEST_F(test_device_devx, queue_pairs_are_bound_to_ports_of_a_lag)
{
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_LAG", "2");
    run(1, [](rank&) {
        loop l;
        unsigned first = lag_port(query_qp(l.a)), status;
        mlx5dv_context attrs = {};
        uint8_t port, active;

        attrs.comp_mask = MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS;
        REQUIRE_EQ(0, mlx5dv_query_device(l.c.ctx, &attrs));
        REQUIRE(attrs.comp_mask & MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS);
        REQUIRE_EQ(2, attrs.num_lag_ports);

        REQUIRE((first == 1) || (first == 2));
        REQUIRE_EQ(3 - first, lag_port(query_qp(l.b)));

        for (unsigned wanted : {2, 1, 2}) {
            REQUIRE_EQ(0, mlx5dv_modify_qp_lag_port(l.a.v, wanted));
            REQUIRE_EQ(0, mlx5dv_query_qp_lag_port(l.a.v, &port, &active));
            REQUIRE_EQ(wanted, port);
            REQUIRE_EQ(wanted, active);
        }
        REQUIRE_EQ(EINVAL, mlx5dv_modify_qp_lag_port(l.a.v, 3));
        REQUIRE_EQ(2, lag_port(query_qp(l.a)));

        /* before RTS: by hand, and nothing in a state that it is not for */
        qp q(l.c, l.scq, l.rcq);
        q.to_init();
        REQUIRE_EQ(0, set_lag_port(q, cmd_init2init_qp, 1, &status));
        REQUIRE_EQ(1, lag_port(query_qp(q)));
        REQUIRE_EQ(EREMOTEIO, set_lag_port(q, cmd_rts2rts_qp, 2, &status));
        REQUIRE_EQ(0x10, status); /* bad state */
        REQUIRE_EQ(1, lag_port(query_qp(q)));
        REQUIRE_EQ(EREMOTEIO, set_lag_port(l.a, cmd_init2init_qp, 1, &status));
        REQUIRE_EQ(0x10, status);
    });
}

/* primary_address_path.udp_sport of a QPC */
unsigned udp_sport(const bytes &qpc)
{
    return (qpc[58] << 8) | qpc[59];
}

TEST_F(test_device_devx, queue_pairs_get_another_udp_source_port)
{
    set_env("MLX5SIM_LINK", "roce");
    run(1, [](rank&) {
        context c;
        cq scq(c, 64), rcq(c, 64);
        qp_options v1, v2, ud;
        const std::pair<qp_options*, int> versions[] = {{&v1, 0}, {&v2, 3}};

        for (const auto &each : versions) {
            REQUIRE_EQ(0, ibv_query_gid(c.ctx, 1, each.second, &c.gid));
            each.first->path.is_global      = 1;
            each.first->path.grh.dgid       = c.gid;
            each.first->path.grh.sgid_index = each.second;
        }
        ud.type = IBV_QPT_UD;
        qp a(c, scq, rcq, v2), b(c, scq, rcq, v2), old(c, scq, rcq, v1);
        qp datagrams(c, scq, rcq, ud);
        REQUIRE_EQ(0, udp_sport(query_qp(a)));
        REQUIRE_EQ(EOPNOTSUPP, mlx5dv_modify_qp_udp_sport(a.v, 50000));
        a.connect(b.addr(nullptr));
        b.connect(a.addr(nullptr));
        old.connect(old.addr(nullptr));
        datagrams.to_init();

        unsigned chosen = udp_sport(query_qp(a));
        REQUIRE(chosen >= 0xc000);
        REQUIRE_EQ(chosen, udp_sport(query_qp(b))); /* numbers are multiplied */
        REQUIRE_EQ(0, udp_sport(query_qp(old)));
        REQUIRE_EQ(0, udp_sport(query_qp(datagrams)));
        REQUIRE_EQ(0, mlx5dv_modify_qp_udp_sport(a.v, 50000));
        REQUIRE_EQ(50000, udp_sport(query_qp(a)));
        REQUIRE_EQ(chosen, udp_sport(query_qp(b)));
        REQUIRE_EQ(EINVAL, mlx5dv_modify_qp_udp_sport(a.v, 0));
        REQUIRE_EQ(50000, udp_sport(query_qp(a)));
        REQUIRE_EQ(EINVAL, mlx5dv_modify_qp_udp_sport(old.v, 50000));
        REQUIRE_EQ(0, udp_sport(query_qp(old)));

        /* too short to say so; together with what nobody knows; and in a state
         * that it is not for */
        bytes in = command(modify_qp_size, cmd_rts2rts_qp, a.v->qp_num);
        bytes out(16);
        in[qpc_offset + 58] = 0x80;
        in[271]             = 4;
        in.resize(271);
        REQUIRE_EQ(0, mlx5dv_devx_qp_modify(a.v, in.data(), in.size(),
                                            out.data(), out.size()));
        REQUIRE_EQ(50000, udp_sport(query_qp(a)));
        in.resize(272);
        for (uint8_t mask : {5, 6, 12, 8}) {
            in[271] = mask;
            REQUIRE_EQ(EREMOTEIO, mlx5dv_devx_qp_modify(a.v, in.data(),
                                                        in.size(), out.data(),
                                                        out.size()));
            REQUIRE_EQ(3, out[0]);
        }
        REQUIRE_EQ(50000, udp_sport(query_qp(a)));
        in[271] = 4;
        REQUIRE_EQ(0, mlx5dv_devx_qp_modify(a.v, in.data(), in.size(),
                                            out.data(), out.size()));
        REQUIRE_EQ(0x8000, udp_sport(query_qp(a)));

        in      = command(modify_qp_size, cmd_init2init_qp,
                          datagrams.v->qp_num);
        in[271] = 4;
        in[qpc_offset + 58] = 0x80;
        REQUIRE_EQ(EREMOTEIO, mlx5dv_devx_qp_modify(datagrams.v, in.data(),
                                                    in.size(), out.data(),
                                                    out.size()));
        REQUIRE_EQ(3, out[0]);

        /* it is chosen again when there is another peer */
        ibv_qp_attr attr = {};
        attr.qp_state    = IBV_QPS_RESET;
        REQUIRE_EQ(0, ibv_modify_qp(a.v, &attr, IBV_QP_STATE));
        a.connect(b.addr(nullptr));
        REQUIRE_EQ(chosen, udp_sport(query_qp(a)));
    });
}

TEST_F(test_device_devx, infiniband_has_no_udp_source_port)
{
    run(1, [](rank&) {
        loop l;

        REQUIRE_EQ(0, udp_sport(query_qp(l.a)));
        REQUIRE_EQ(EOPNOTSUPP, mlx5dv_modify_qp_udp_sport(l.a.v, 50000));
    });
}

TEST_F(test_device_devx, without_a_lag_there_is_nothing_to_be_bound_to)
{
    for (const char *link : {"ib", "roce"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + link);
        set_env("MLX5SIM_LINK", link);
        /* InfiniBand has none, whatever is asked for */
        set_env("MLX5SIM_LAG", (link[0] == 'i') ? "2" : "0");
        run(1, [](rank&) {
            loop l;
            uint8_t port, active;

            REQUIRE_EQ(0, lag_port(query_qp(l.a)));
            REQUIRE_EQ(EOPNOTSUPP, mlx5dv_modify_qp_lag_port(l.a.v, 1));
            REQUIRE_EQ(EOPNOTSUPP, mlx5dv_query_qp_lag_port(l.a.v, &port,
                                                            &active));
        });
    }
}

/* The kernel refuses what is not for the object, the firmware what it does not
 * know */
TEST_F(test_device_devx, other_commands_are_refused)
{
    run(1, [](rank&) {
        loop l;
        bytes out(query_qp_size), in = command(16, cmd_query_qp);
        bytes create = command(64, cmd_create_xrq), created(16);

        in[11] = 1; /* another's number */
        REQUIRE_EQ(EINVAL,
                   mlx5dv_devx_qp_query(l.a.v, in.data(), in.size(),
                                        out.data(), out.size()));
        in = command(16, cmd_query_lag, l.a.v->qp_num);
        REQUIRE_EQ(EINVAL,
                   mlx5dv_devx_qp_query(l.a.v, in.data(), in.size(),
                                        out.data(), out.size()));
        in = command(16, cmd_query_qp, l.a.v->qp_num);
        out.resize(64);
        REQUIRE_EQ(EREMOTEIO,
                   mlx5dv_devx_qp_query(l.a.v, in.data(), in.size(),
                                        out.data(), out.size()));
        REQUIRE_EQ(0x51, out[0]); /* bad length of the output */

        in = command(16, cmd_alloc_uar);
        REQUIRE_EQ(EINVAL, general(l.c.ctx, in, created));
        in = command(16, cmd_allow_access);
        REQUIRE_EQ(EREMOTEIO, general(l.c.ctx, in, created));
        REQUIRE_EQ(2, created[0]); /* bad operation */

        created.assign(16, 0);
        REQUIRE(mlx5dv_devx_obj_create(l.c.ctx, create.data(), create.size(),
                                       created.data(), created.size()) ==
                nullptr);
        REQUIRE_EQ(2, created[0]);
    });
}
