/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * General objects of the firmware: blocks of reserved numbers of queue pairs,
 * and elements of the send scheduler, by hand and as libmlx5 asks for them. And
 * the table of rates for packet pacing, which the kernel has.
 */

#include <common/seed.h>
#include <device/device_devx.h>

#include <array>
#include <memory>
#include <random>
#include <set>

#include <signal.h>
#include <unistd.h>

using namespace device;

namespace {

enum {
    fw_create_general = 0xa00,
    fw_modify_general = 0xa01,
    fw_query_general  = 0xa02,
    type_sched        = 0x26,
    type_reserved_qpn = 0x2c
};

const unsigned log_block = 8;         /* numbers of a block */
const uint32_t block     = 1u << log_block;
const uint32_t multicast = 0xffffff;  /* number that no block may have */

class test_device_devx_general : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
        set_env("MLX5SIM_LOG", "error");
    }
};

command general_command(unsigned opcode, unsigned type, size_t size,
                        uint32_t number = 0)
{
    return command(opcode, size).set(48, 16, type).set(64, 32, number);
}

command reserve_command(unsigned log = log_block)
{
    return general_command(fw_create_general, type_reserved_qpn, 32)
            .set(99, 5, log);
}

const size_t   sched_size = 144;
const unsigned node = 0, leaf = 4; /* types of elements */
const unsigned share_flag = 1, max_flag = 2;

/* An element of the scheduler, or a change of it */
command sched_command(unsigned opcode, unsigned element, uint32_t parent,
                      uint32_t share = 0, uint32_t max = 0,
                      uint32_t number = 0)
{
    return general_command(opcode, type_sched, sched_size, number)
            .set(192, 8, 3).set(384, 8, element).set(448, 32, parent)
            .set(544, 32, share).set(576, 32, max);
}

command element_command(unsigned element, uint32_t parent, uint32_t share = 0,
                        uint32_t max = 0)
{
    return sched_command(fw_create_general, element, parent, share, max);
}

/* A queue pair is to belong to leaves */
command bind_command(unsigned opcode, uint32_t qpn, uint32_t request,
                     uint32_t answer)
{
    return command(opcode, fw_extended_size, qpn).set(64, 1, 1)
            .set(2112, 64, 2).set(2208, 32, request).set(2240, 32, answer);
}

int bind(ibv_qp *v, const command &c, unsigned *status_p)
{
    bytes out(16);
    int ret = mlx5dv_devx_qp_modify(v, c.in.data(), c.in.size(), out.data(),
                                    out.size());

    *status_p = out[0];
    return ret;
}

bytes query_element(const object &o)
{
    command q = general_command(fw_query_general, type_sched, 16, o.number);
    bytes out(sched_size);

    REQUIRE_EQ(0, mlx5dv_devx_obj_query(o.v, q.in.data(), q.in.size(),
                                        out.data(), out.size()));
    REQUIRE_EQ(0, out[0]);
    REQUIRE_EQ(3, get(out, 192, 8));
    return out;
}

bytes caps(ibv_context *ctx, unsigned group)
{
    command q(0x100);
    bytes out(16 + 4096);

    q.set(48, 16, (group << 1) | 1);
    REQUIRE_EQ(0, mlx5dv_devx_general_cmd(ctx, q.in.data(), q.in.size(),
                                          out.data(), out.size()));
    return out;
}

} // namespace


TEST_F(test_device_devx_general, capabilities_tell_of_types)
{
    run(1, [](rank&) {
        context c;
        bytes out = caps(c.ctx, 0);

        REQUIRE_EQ(1, get(out, 128 + 32, 1)); /* more groups */
        REQUIRE(get(out, 128 + 1024, 64) & (1ull << type_reserved_qpn));
        out = caps(c.ctx, 0x20);
        REQUIRE_EQ(log_block, get(out, 128 + 147, 5));

        command q(0x100);
        q.set(48, 16, (0x20 << 1) | 1);
        out.assign(16 + 19, 0);
        REQUIRE_EQ(EREMOTEIO,
                   mlx5dv_devx_general_cmd(c.ctx, q.in.data(), q.in.size(),
                                           out.data(), out.size()));
        REQUIRE_EQ(0x51, out[0]);
    });
}

/* Processes side by side: nobody has what another one has, and no queue pair
 * has it */
TEST_F(test_device_devx_general, reserved_numbers_are_nobody_elses)
{
    run(2, [](rank &r) {
        loop l;
        std::set<uint32_t> mine;
        uint32_t qpn;

        for (unsigned i = 0; i < 1000; ++i) {
            REQUIRE_EQ(0, mlx5dv_reserved_qpn_alloc(l.c.ctx, &qpn));
            REQUIRE(mine.insert(qpn).second);
            REQUIRE(qpn < multicast);
        }

        /* the first of each block */
        std::array<uint32_t, 4> firsts;
        unsigned num = 0;
        for (uint32_t n : mine) {
            if (n % block == 0) {
                REQUIRE(num < 4);
                firsts[num++] = n;
            }
        }
        REQUIRE_EQ(4, num);
        r.publish(firsts);
        for (uint32_t n : r.lookup<std::array<uint32_t, 4>>(1 - r.index)) {
            REQUIRE_EQ(0, mine.count(n));
        }

        for (unsigned i = 0; i < 300; ++i) {
            qp q(l.c, l.scq, l.rcq);
            REQUIRE_EQ(0, mine.count(q.v->qp_num));
            REQUIRE(q.v->qp_num < 0x800000);
        }

        for (uint32_t n : mine) {
            REQUIRE_EQ(0, mlx5dv_reserved_qpn_dealloc(l.c.ctx, n));
            REQUIRE_EQ(EINVAL, mlx5dv_reserved_qpn_dealloc(l.c.ctx, n));
        }
        r.barrier();
    });
}

TEST_F(test_device_devx_general, without_devx_nothing_is_reserved)
{
    set_env("MLX5SIM_DEVX", "n");
    run(1, [](rank&) {
        context c;
        uint32_t qpn;

        REQUIRE_EQ(EOPNOTSUPP, mlx5dv_reserved_qpn_alloc(c.ctx, &qpn));
    });
}

/* There is an end to them. They come back with the object, and with its
 * context. */
TEST_F(test_device_devx_general, reserved_numbers_come_back)
{
    run(1, [](rank&) {
        std::set<uint32_t> seen;
        bytes out(16);

        for (unsigned round = 0; round < 3; ++round) {
            context c;
            const command reserve = reserve_command();
            std::vector<mlx5dv_devx_obj*> all;
            mlx5dv_devx_obj *o;

            seen.clear();
            while ((o = mlx5dv_devx_obj_create(c.ctx, reserve.in.data(),
                                               reserve.in.size(), out.data(),
                                               out.size())) != nullptr) {
                uint32_t first = get(out, 64, 32);

                REQUIRE_EQ(0, first % block);
                REQUIRE(first >= 0x800000);
                REQUIRE(first + block <= multicast);
                REQUIRE(seen.insert(first).second);
                all.push_back(o);
            }
            REQUIRE_EQ(EREMOTEIO, errno);
            REQUIRE_EQ(no_res, out[0]);
            REQUIRE(all.size() > 30000);

            /* the one that comes back is the one that is had next */
            o = all.back();
            all.pop_back();
            REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(o));
            object again(c.ctx, reserve);
            if (round == 0) {
                for (mlx5dv_devx_obj *each : all) {
                    REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(each));
                }
            } else {
                again.v = nullptr; /* as the others, with the context */
            }
        }
    });
}

TEST_F(test_device_devx_general, wrong_fields_are_refused)
{
    run(1, [](rank&) {
        context c;
        command reserve = reserve_command();
        object o(c.ctx, reserve);
        unsigned status;
        bytes out(64);

        for (unsigned log : {0u, log_block - 1, log_block + 1, 31u}) {
            REQUIRE_EQ(bad_param, refused(c.ctx, reserve_command(log)));
        }
        reserve.in.resize(31);
        REQUIRE_EQ(bad_in_len, refused(c.ctx, reserve));
        reserve = reserve_command();
        for (unsigned type : {0, 0xc, 0x3a, 0x2d, 0xffff}) {
            reserve.set(48, 16, type);
            REQUIRE_EQ(bad_op, refused(c.ctx, reserve));
        }

        /* it can neither be changed nor asked; the kernel looks whether it is
         * the one that is named */
        command q = general_command(fw_query_general, type_reserved_qpn, 16,
                                    o.number);
        command m = general_command(fw_modify_general, type_reserved_qpn, 32,
                                    o.number);
        REQUIRE_EQ(EREMOTEIO, o.modify(m, &status));
        REQUIRE_EQ(bad_op, status);
        REQUIRE_EQ(EREMOTEIO, mlx5dv_devx_obj_query(o.v, q.in.data(),
                                                    q.in.size(), out.data(),
                                                    out.size()));
        REQUIRE_EQ(bad_op, out[0]);
        m.set(64, 32, o.number + 1);
        REQUIRE_EQ(EINVAL, o.modify(m, &status));
        m.set(64, 32, o.number | (1u << 24));
        REQUIRE_EQ(EINVAL, o.modify(m, &status));
        m.set(64, 32, o.number).set(48, 16, 0x26);
        REQUIRE_EQ(EINVAL, o.modify(m, &status));
        REQUIRE_EQ(EINVAL, o.modify(command(fw_query_qp, 16, o.number),
                                    &status));
    });
}

TEST_F(test_device_devx_general, capabilities_tell_of_the_scheduler)
{
    run(1, [](rank&) {
        context c;
        bytes out = caps(c.ctx, 0);

        REQUIRE_EQ(1, get(out, 128 + 539, 1)); /* quality of service */
        REQUIRE_EQ(1, get(out, 128 + 290, 1)); /* extended QPC */
        REQUIRE(get(out, 128 + 1024, 64) & (1ull << type_sched));
        out = caps(c.ctx, 0xc);
        REQUIRE_EQ(7, get(out, 128 + 8, 3));   /* of SQs, shares, limits */
        REQUIRE_EQ(1, get(out, 128 + 33, 1));  /* of queue pairs */
        REQUIRE_EQ(10, get(out, 128 + 43, 5));
        REQUIRE_EQ(100, get(out, 128 + 224, 32));
        REQUIRE_EQ(0x11, get(out, 128 + 256, 16));
        REQUIRE_EQ(0x01, get(out, 128 + 272, 16));
    });
}

/* By libmlx5: a tree, changes, and messages of a queue pair that belongs to a
 * leaf, which can't go meanwhile */
TEST_F(test_device_devx_general, queue_pairs_belong_to_leaves)
{
    run(1, [](rank&) {
        loop l;
        mlx5dv_sched_attr attr = {};
        mlx5dv_sched_node *root, *below;
        mlx5dv_sched_leaf *first, *second;

        root = mlx5dv_sched_node_create(l.c.ctx, &attr);
        REQUIRE(root != nullptr);
        attr.parent     = root;
        attr.flags      = share_flag | max_flag;
        attr.bw_share   = 7;
        attr.max_avg_bw = 4096;
        below           = mlx5dv_sched_node_create(l.c.ctx, &attr);
        REQUIRE(below != nullptr);
        attr.parent = below;
        first       = mlx5dv_sched_leaf_create(l.c.ctx, &attr);
        second      = mlx5dv_sched_leaf_create(l.c.ctx, &attr);
        REQUIRE(first != nullptr);
        REQUIRE(second != nullptr);
        attr.max_avg_bw = 1;
        REQUIRE_EQ(0, mlx5dv_sched_leaf_modify(first, &attr));
        attr.parent = root;
        REQUIRE_EQ(0, mlx5dv_sched_node_modify(below, &attr));

        auto message = [&] {
            l.b.recv(1, l.peer_mem.sge(0, 64));
            send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 64)});
            l.a.send(wr);
            l.scq.good();
            l.peer_cq.good();
        };

        REQUIRE_EQ(0, mlx5dv_modify_qp_sched_elem(l.a.v, first, second));
        message();
        REQUIRE_EQ(EBUSY, mlx5dv_sched_leaf_destroy(first));
        REQUIRE_EQ(EBUSY, mlx5dv_sched_leaf_destroy(second));
        REQUIRE_EQ(EBUSY, mlx5dv_sched_node_destroy(below));
        REQUIRE_EQ(0, mlx5dv_modify_qp_sched_elem(l.a.v, first, nullptr));
        REQUIRE_EQ(0, mlx5dv_sched_leaf_destroy(second));
        REQUIRE_EQ(EBUSY, mlx5dv_sched_leaf_destroy(first));
        REQUIRE_EQ(0, mlx5dv_modify_qp_sched_elem(l.a.v, first, first));
        message();
        REQUIRE_EQ(0, mlx5dv_modify_qp_sched_elem(l.a.v, nullptr, nullptr));
        message();
        REQUIRE_EQ(0, mlx5dv_sched_leaf_destroy(first));
        REQUIRE_EQ(EBUSY, mlx5dv_sched_node_destroy(root));
        REQUIRE_EQ(0, mlx5dv_sched_node_destroy(below));
        REQUIRE_EQ(0, mlx5dv_sched_node_destroy(root));
    });
}

/* From INIT on. A queue pair that is reset, or goes, belongs to none. */
TEST_F(test_device_devx_general, leaves_are_left)
{
    run(1, [](rank&) {
        context c;
        cq scq(c, 16), rcq(c, 16);
        object root(c.ctx, element_command(node, 0));
        object of(c.ctx, element_command(leaf, root.number));
        ibv_qp_attr attr = {};
        unsigned status;

        for (bool is_reset : {true, false}) {
            auto q = std::make_unique<qp>(c, scq, rcq, qp_options());
            command c2 = bind_command(0x50e, q->v->qp_num, of.number,
                                      of.number);

            REQUIRE_EQ(EREMOTEIO, bind(q->v, c2, &status));
            REQUIRE_EQ(bad_qp_state, status);
            q->to_init();
            REQUIRE_EQ(0, bind(q->v, c2, &status));
            REQUIRE_EQ(EBUSY, mlx5dv_devx_obj_destroy(of.v));
            if (is_reset) {
                attr.qp_state = IBV_QPS_RESET;
                REQUIRE_EQ(0, ibv_modify_qp(q->v, &attr, IBV_QP_STATE));
                of.destroy();
                of.v = mlx5dv_devx_obj_create(
                        c.ctx, element_command(leaf, root.number).in.data(),
                        sched_size, of.out.data(), of.out.size());
                REQUIRE(of.v != nullptr);
                of.number = get(of.out, 72, 24);
            }
        }
        of.destroy();
    });
}

TEST_F(test_device_devx_general, elements_tell_what_they_are)
{
    run(1, [](rank&) {
        context c;
        unsigned status;
        object root(c.ctx, element_command(node, 0));
        object below(c.ctx, element_command(node, root.number, 7, 4096));
        object at_end(c.ctx, element_command(leaf, below.number, 3));
        bytes q = query_element(root);

        REQUIRE_EQ(node, get(q, 384, 8));
        REQUIRE_EQ(0, get(q, 448, 32));
        REQUIRE_EQ(0, get(q, 544, 64));
        q = query_element(below);
        REQUIRE_EQ(node, get(q, 384, 8));
        REQUIRE_EQ(root.number, get(q, 448, 32));
        REQUIRE_EQ(7, get(q, 544, 32));
        REQUIRE_EQ(4096, get(q, 576, 32));
        q = query_element(at_end);
        REQUIRE_EQ(leaf, get(q, 384, 8));
        REQUIRE_EQ(below.number, get(q, 448, 32));
        REQUIRE_EQ(3, get(q, 544, 32));
        REQUIRE_EQ(0, get(q, 576, 32));

        /* only what is selected changes, and never the place */
        command m = sched_command(fw_modify_general, leaf, root.number, 50,
                                  9999, at_end.number);
        REQUIRE_EQ(0, at_end.modify(m, &status));
        REQUIRE(q == query_element(at_end));
        REQUIRE_EQ(0, at_end.modify(m.set(128, 64, max_flag), &status));
        q = query_element(at_end);
        REQUIRE_EQ(3, get(q, 544, 32));
        REQUIRE_EQ(9999, get(q, 576, 32));
        REQUIRE_EQ(0, at_end.modify(m.set(128, 64, share_flag), &status));
        q = query_element(at_end);
        REQUIRE_EQ(50, get(q, 544, 32));
        REQUIRE_EQ(below.number, get(q, 448, 32));
        at_end.destroy();
        below.destroy();
    });
}

TEST_F(test_device_devx_general, wrong_elements_are_refused)
{
    run(1, [](rank&) {
        context c, other;
        cq scq(c, 16), rcq(c, 16);
        unsigned status;
        object root(c.ctx, element_command(node, 0));
        object of(c.ctx, element_command(leaf, root.number));
        object block(c.ctx, reserve_command());
        object theirs(other.ctx, element_command(node, 0));
        object their_leaf(other.ctx, element_command(leaf, theirs.number));
        bytes out(sched_size);

        command e = element_command(leaf, root.number);
        e.in.resize(sched_size - 1);
        REQUIRE_EQ(bad_in_len, refused(c.ctx, e));
        e = element_command(leaf, root.number);
        REQUIRE_EQ(bad_param, refused(c.ctx, e.set(192, 8, 2))); /* E-Switch */
        REQUIRE_EQ(bad_param, refused(c.ctx, element_command(1, root.number)));
        REQUIRE_EQ(bad_param, refused(c.ctx, element_command(node, root.number)
                                                 .set(424, 8, 1)));
        /* too large a share; a root with a share or a limit; a leaf alone */
        REQUIRE_EQ(bad_param, refused(c.ctx, element_command(leaf, root.number,
                                                             101)));
        REQUIRE_EQ(bad_param, refused(c.ctx, element_command(node, 0, 1)));
        REQUIRE_EQ(bad_param, refused(c.ctx, element_command(node, 0, 0, 1)));
        REQUIRE_EQ(bad_param, refused(c.ctx, element_command(leaf, 0)));
        /* below a leaf, what is no element, what is another's, nothing */
        for (uint32_t parent : {of.number, block.number, theirs.number,
                                30000u, 0xffffffffu}) {
            REQUIRE_EQ(bad_res, refused(c.ctx, element_command(leaf, parent)));
        }

        command m = sched_command(fw_modify_general, node, 0, 1, 0,
                                  root.number).set(128, 64, share_flag);
        REQUIRE_EQ(EREMOTEIO, root.modify(m, &status));
        REQUIRE_EQ(bad_param, status);
        m = sched_command(fw_modify_general, leaf, root.number, 1, 0,
                          of.number).set(128, 64, 4);
        REQUIRE_EQ(EREMOTEIO, of.modify(m, &status));
        REQUIRE_EQ(bad_param, status);
        m.in.resize(sched_size - 1);
        REQUIRE_EQ(EREMOTEIO, of.modify(m, &status));
        REQUIRE_EQ(bad_in_len, status);
        command q = general_command(fw_query_general, type_sched, 16,
                                    of.number);
        REQUIRE_EQ(EREMOTEIO, mlx5dv_devx_obj_query(of.v, q.in.data(),
                                                    q.in.size(), out.data(),
                                                    out.size() - 1));
        REQUIRE_EQ(bad_out_len, out[0]);

        qp_options ud;
        ud.type = IBV_QPT_UD;
        qp rc(c, scq, rcq), datagrams(c, scq, rcq, ud);
        rc.to_init();
        datagrams.to_init();
        for (uint32_t id : {root.number, block.number, their_leaf.number,
                            30000u}) {
            REQUIRE_EQ(EREMOTEIO, bind(rc.v, bind_command(0x50e, rc.v->qp_num,
                                                          id, 0), &status));
            REQUIRE_EQ(bad_res, status);
            REQUIRE_EQ(EREMOTEIO, bind(rc.v, bind_command(0x50e, rc.v->qp_num,
                                                          of.number, id),
                                       &status));
            REQUIRE_EQ(bad_res, status);
        }
        REQUIRE_EQ(0, bind(datagrams.v, bind_command(0x50e,
                                                     datagrams.v->qp_num,
                                                     of.number, 0), &status));
        REQUIRE_EQ(EREMOTEIO, bind(datagrams.v,
                                   bind_command(0x50e, datagrams.v->qp_num,
                                                of.number, of.number),
                                   &status));
        REQUIRE_EQ(bad_param, status);
        /* without the extended context */
        REQUIRE_EQ(EREMOTEIO, bind(rc.v, bind_command(0x50e, rc.v->qp_num,
                                                      of.number, 0)
                                            .set(64, 1, 0), &status));
        REQUIRE_EQ(bad_param, status);
        REQUIRE_EQ(0, bind(datagrams.v, bind_command(0x50e,
                                                     datagrams.v->qp_num, 0,
                                                     0), &status));
        of.destroy();
        their_leaf.destroy();
    });
}

TEST_F(test_device_devx_general, there_is_an_end_to_leaves)
{
    run(1, [](rank&) {
        context c;
        object root(c.ctx, element_command(node, 0));
        std::vector<std::unique_ptr<object>> all;
        const command e = element_command(leaf, root.number);

        for (unsigned i = 0; i < 1024; ++i) {
            all.push_back(std::make_unique<object>(c.ctx, e));
        }
        REQUIRE_EQ(no_res, refused(c.ctx, e));
        object another(c.ctx, element_command(node, root.number));
        another.destroy();
        all.pop_back();
        all.push_back(std::make_unique<object>(c.ctx, e));
    });
}

TEST_F(test_device_devx_general, equal_rates_share_an_entry)
{
    run(2, [](rank &r) {
        context c;
        bytes out = caps(c.ctx, 0xc);
        /* packet pacing, bursts, typical sizes, for programs */
        REQUIRE_EQ(1, get(out, 128, 1));
        REQUIRE_EQ(3, get(out, 128 + 5, 2));
        REQUIRE_EQ(1, get(out, 128 + 11, 1));
        REQUIRE_EQ(100000000, get(out, 128 + 64, 32));
        REQUIRE_EQ(1, get(out, 128 + 96, 32));
        REQUIRE_EQ(128, get(out, 128 + 144, 16));

        auto alloc = [&](uint32_t rate, uint32_t flags = 0, size_t size = 48,
                         uint32_t burst = 0) {
            uint32_t limit[13] = {htobe32(rate), htobe32(burst)};

            errno = 0;
            return mlx5dv_pp_alloc(c.ctx, size, limit, flags);
        };

        mlx5dv_pp *a = alloc(100), *b = alloc(100, 0, 4), *d = alloc(200);
        mlx5dv_pp *own = alloc(100, MLX5DV_PP_ALLOC_FLAGS_DEDICATED_INDEX);
        mlx5dv_pp *burst = alloc(100, 0, 48, 1);
        REQUIRE(a && b && d && own && burst);
        REQUIRE_EQ(a->index, b->index);
        std::set<unsigned> all = {0, a->index, d->index, own->index,
                                  burst->index};
        REQUIRE_EQ(5, all.size());

        /* the same of another process */
        std::array<unsigned, 3> mine = {a->index, d->index, own->index};
        r.publish(mine);
        auto theirs = r.lookup<std::array<unsigned, 3>>(1 - r.index);
        REQUIRE_EQ(mine[0], theirs[0]);
        REQUIRE_EQ(mine[1], theirs[1]);
        REQUIRE_EQ(0, all.count(theirs[2]));
        r.barrier();

        if (r.index == 0) {
            /* all of the table, and the next one that is given back */
            std::vector<mlx5dv_pp*> rest;
            mlx5dv_pp *pp;

            while ((pp = alloc(7, MLX5DV_PP_ALLOC_FLAGS_DEDICATED_INDEX)) !=
                   nullptr) {
                REQUIRE(all.insert(pp->index).second);
                REQUIRE(pp->index <= 127);
                rest.push_back(pp);
            }
            REQUIRE_EQ(ENOSPC, errno);
            REQUIRE_EQ(127 - 5, rest.size());
            REQUIRE(alloc(8) == nullptr);
            REQUIRE_EQ(ENOSPC, errno);
            pp = alloc(200); /* it is there */
            REQUIRE(pp != nullptr);
            REQUIRE_EQ(d->index, pp->index);
            mlx5dv_pp_free(pp);
            unsigned index = rest.back()->index;
            mlx5dv_pp_free(rest.back());
            rest.back() = alloc(8);
            REQUIRE(rest.back() != nullptr);
            REQUIRE_EQ(index, rest.back()->index);
            for (mlx5dv_pp *each : rest) {
                mlx5dv_pp_free(each);
            }
        }
        r.barrier();

        for (uint32_t rate : {0u, 100000001u, 0xffffffffu}) {
            REQUIRE(alloc(rate) == nullptr);
            REQUIRE_EQ(EINVAL, errno);
        }
        for (size_t size : {0, 49, 52}) {
            REQUIRE(alloc(100, 0, size) == nullptr);
            REQUIRE_EQ(EINVAL, errno);
        }
        REQUIRE(alloc(100, 2) == nullptr); /* libmlx5 */
        REQUIRE_EQ(EOPNOTSUPP, errno);
        for (mlx5dv_pp *each : {a, b, d, own, burst}) {
            mlx5dv_pp_free(each);
        }
    });
}

/* The table is for contexts that give firmware commands */
TEST_F(test_device_devx_general, without_devx_there_are_no_rates)
{
    set_env("MLX5SIM_DEVX", "n");
    run(1, [](rank&) {
        context c;
        uint32_t rate = htobe32(100);

        errno = 0;
        REQUIRE(mlx5dv_pp_alloc(c.ctx, sizeof(rate), &rate, 0) == nullptr);
        REQUIRE_EQ(EPROTONOSUPPORT, errno);
    });
}

/* All rates and leaves of a device, of a process that is killed */
TEST_F(test_device_devx_general, what_the_dead_had_comes_back)
{
    const unsigned rates = 127, leaves = 1024;

    start(1, 2, [](rank &r) {
        context c;
        object root(c.ctx, element_command(node, 0));
        const command e     = element_command(leaf, root.number);
        const uint32_t rate = htobe32(100);
        bytes out(16);

        for (unsigned i = 0; i < leaves; ++i) {
            REQUIRE(mlx5dv_devx_obj_create(c.ctx, e.in.data(), e.in.size(),
                                           out.data(), out.size()) != nullptr);
        }
        for (unsigned i = 0; i < rates; ++i) {
            REQUIRE(mlx5dv_pp_alloc(c.ctx, sizeof(rate), &rate,
                                    MLX5DV_PP_ALLOC_FLAGS_DEDICATED_INDEX) !=
                    nullptr);
        }
        r.word(0) = 1;
        pause();
    });
    start(0, 2, [](rank &r) {
        context c;
        object root(c.ctx, element_command(node, 0));
        const command e     = element_command(leaf, root.number);
        const uint32_t rate = htobe32(200);

        r.wait_word(0, 1);
        REQUIRE_EQ(no_res, refused(c.ctx, e));
        REQUIRE(mlx5dv_pp_alloc(c.ctx, sizeof(rate), &rate, 0) == nullptr);
        REQUIRE_EQ(ENOSPC, errno);
        r.word(1) = 1;
        r.wait_word(0, 2);
        object again(c.ctx, e);
        again.destroy();
        mlx5dv_pp *pp = mlx5dv_pp_alloc(c.ctx, sizeof(rate), &rate, 0);
        REQUIRE(pp != nullptr);
        mlx5dv_pp_free(pp);
    });
    while (word(1) == 0) {
        usleep(1000);
    }
    kill(1);
    EXPECT_EQ(SIGKILL, finish(1));
    word(0) = 2;
    EXPECT_EQ(0, finish(0));
}

/* Commands with wrong fields and lengths, on elements that come and go: what
 * they have in use is counted right, so all can be given back */
TEST_F(test_device_devx_general, fuzz_of_commands)
{
    const uint64_t seed  = seed::get();
    const unsigned cases = seed::cases(3000);

    catch_errors();
    run(1, [=](rank&) {
        std::mt19937_64 random(seed);
        std::vector<std::pair<mlx5dv_devx_obj*, uint32_t>> made;
        loop l;
        object root(l.c.ctx, element_command(node, 0));

        auto any = [&]() -> uint32_t {
            return (made.empty() || (random() % 4 == 0)) ?
                   root.number : made[random() % made.size()].second;
        };

        for (unsigned i = 0; i < cases; ++i) {
            unsigned which = random() % 5;
            size_t at      = made.empty() ? 0 : random() % made.size();
            bytes out(16 + random() % 200);
            command c = reserve_command();

            switch (which) {
            case 0:
                c = element_command((random() % 2) ? node : leaf, any(),
                                    random() % 110, random() % 100);
                break;
            case 1:
                break;
            case 2:
                c = sched_command((random() % 2) ? fw_modify_general :
                                                   fw_query_general, leaf, 0,
                                  random() % 110, random(), any())
                            .set(128, 64, random() % 5);
                break;
            default:
                c = bind_command((random() % 2) ? fw_rts2rts : 0x50e,
                                 l.a.v->qp_num, (random() % 3) ? any() : 0,
                                 (random() % 3) ? any() : 0);
                break;
            }
            if (random() % 2 == 0) {
                spoil(c, random);
            }
            c.in.reserve(64);

            if (which < 2) {
                auto *obj = mlx5dv_devx_obj_create(l.c.ctx, c.in.data(),
                                                   c.in.size(), out.data(),
                                                   out.size());
                if (obj != nullptr) {
                    made.push_back({obj, get(out, 64, 32)});
                }
            } else if (which > 2) {
                (void)mlx5dv_devx_qp_modify(l.a.v, c.in.data(), c.in.size(),
                                            out.data(), out.size());
            } else if (!made.empty()) {
                (void)mlx5dv_devx_obj_modify(made[at].first, c.in.data(),
                                             c.in.size(), out.data(),
                                             out.size());
                (void)mlx5dv_devx_obj_query(made[at].first, c.in.data(),
                                            c.in.size(), out.data(),
                                            out.size());
            }

            if (!made.empty() && (random() % 3 == 0)) {
                int ret = mlx5dv_devx_obj_destroy(made[at].first);

                REQUIRE((ret == 0) || (ret == EBUSY));
                if (ret == 0) {
                    made.erase(made.begin() + at);
                }
            }
        }

        /* elements are made behind what is above them */
        unsigned status;
        REQUIRE_EQ(0, bind(l.a.v, bind_command(fw_rts2rts, l.a.v->qp_num, 0,
                                               0), &status));
        while (!made.empty()) {
            REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(made.back().first));
            made.pop_back();
        }
        root.destroy();

        l.b.recv(1, l.peer_mem.sge(0, 64));
        send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 64)});
        l.a.send(wr);
        l.scq.good();
        l.peer_cq.good();
    });
}
