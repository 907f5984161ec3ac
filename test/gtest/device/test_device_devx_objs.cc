/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Queues made and moved by firmware commands: they work as those of verbs, and
 * what is wrong comes back as an error or a status.
 */

#include <common/seed.h>
#include <device/device_devx.h>

#include <memory>
#include <random>

#include <fcntl.h>
#include <poll.h>

#include <sys/mman.h>
#include <unistd.h>

using namespace device;

namespace {

const auto omit_data = MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA;

class test_device_devx_objs : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
        set_env("MLX5SIM_LOG", "error");
    }
};

/* Writes and messages, several times round all queues */
void exchange(devx_loop &l, unsigned count)
{
    const size_t target = 1 << 15;

    for (unsigned i = 0; i < count; ++i) {
        memset(l.mem.data, i + 1, 100);
        l.write(l.mem.sge(0, 100), l.mem.sge(target, 100));
        REQUIRE_EQ(MLX5_CQE_REQ, l.next());
        REQUIRE_EQ(0, memcmp(l.mem.data, l.mem.data + target, 100));

        l.recv(l.mem.sge(target + 4096 + i * 128, 128));
        l.send(l.mem.sge(0, 100));
        unsigned first = l.next(), second = l.next();
        REQUIRE((first == MLX5_CQE_REQ) != (second == MLX5_CQE_REQ));
        REQUIRE_EQ(MLX5_CQE_REQ + MLX5_CQE_RESP_SEND, first + second);
        REQUIRE_EQ(0, memcmp(l.mem.data, l.mem.data + target + 4096 + i * 128,
                             100));
    }
}

} // namespace


TEST_F(test_device_devx_objs, data_moves)
{
    for (const char *link : {"ib", "roce"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + link);
        set_env("MLX5SIM_LINK", link);
        run(1, [](rank&) {
            devx_loop l;

            l.connect();
            exchange(l, 40);
        });
    }
}

TEST_F(test_device_devx_objs, data_moves_in_deferred_execution)
{
    for (const char *seed : {"1", "2", "3"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + seed);
        set_env("MLX5SIM_EXEC", "deferred");
        set_env("MLX5SIM_SEED", seed);
        run(1, [](rank&) {
            devx_loop l;

            l.connect();
            exchange(l, 40);
        });
    }
}

TEST_F(test_device_devx_objs, queries_tell_what_was_asked_for)
{
    run(1, [](rank&) {
        devx_loop l;
        unsigned status;
        bytes q = l.a.query(fw_query_qp, 272);

        REQUIRE_EQ(0, get(q, qpc_bit, 4)); /* RESET */
        l.connect();
        exchange(l, 3);
        q = l.a.query(fw_query_qp, 272);
        REQUIRE_EQ(3, get(q, qpc_bit, 4)); /* RTS */
        REQUIRE_EQ(0, get(q, qpc_bit + 8, 8)); /* RC */
        REQUIRE_EQ(l.pd, get(q, qpc_bit + 40, 24));
        REQUIRE_EQ(ring_log, get(q, qpc_bit + 81, 4));
        REQUIRE_EQ(l.page.v->page_id, get(q, qpc_bit + 104, 24));
        REQUIRE_EQ(0x123456, get(q, qpc_bit + 136, 24));
        REQUIRE_EQ(l.b.number, get(q, qpc_bit + 168, 24));
        REQUIRE_EQ(l.c.lid, get(q, qpc_bit + 240, 16));
        REQUIRE_EQ(1, get(q, qpc_bit + 488, 8));
        REQUIRE_EQ(l.cq.number, get(q, qpc_bit + 1000, 24));
        REQUIRE_EQ(7, get(q, qpc_bit + 1168, 3)); /* RRE, RWE, RAE */
        REQUIRE_EQ(1, get(q, qpc_bit + 1381, 3));
        REQUIRE_EQ(l.rmp.number, get(q, qpc_bit + 1384, 24));

        bytes cqc = l.cq.query(fw_query_cq, 80);
        REQUIRE_EQ(ring_log, get(cqc, 128 + 99, 5));
        REQUIRE_EQ(9, get(cqc, 128 + 360, 24)); /* producer */

        bytes rmpc = l.rmp.query(fw_query_rmp, 272);
        REQUIRE_EQ(1, get(rmpc, 256 + 384, 4)); /* cyclic */
        REQUIRE_EQ(3, get(rmpc, 256 + 384 + 192, 32)); /* taken */

        REQUIRE_EQ(0, l.a.modify(command(fw_2err, 16, l.a.number), &status));
        REQUIRE_EQ(6, get(l.a.query(fw_query_qp, 272), qpc_bit, 4));
        REQUIRE_EQ(0, l.a.modify(command(fw_2rst, 16, l.a.number), &status));
        REQUIRE_EQ(0, get(l.a.query(fw_query_qp, 272), qpc_bit, 4));
    });
}

/* UCX has completion queues by verbs, if it is told so, and all of 1.13.1 */
TEST_F(test_device_devx_objs, a_command_gives_the_udp_source_port)
{
    set_env("MLX5SIM_LINK", "roce");
    run(1, [](rank&) {
        devx_loop l;
        unsigned status;
        union ibv_gid v2;

        REQUIRE_EQ(0, ibv_query_gid(l.c.ctx, 1, 3, &v2));
        command rtr = init2rtr_command(l.c, l.a.number, l.b.number);
        rtr.set(qpc_bit + 464, 16, 0x1234); /* on RoCE v1: there is none */
        REQUIRE_EQ(0, l.a.modify(rst2init_command(l.a.number), &status));
        REQUIRE_EQ(0, l.a.modify(rtr, &status));
        bytes q = l.a.query(fw_query_qp, fw_queue_size);
        REQUIRE_EQ(0, get(q, qpc_bit + 464, 16));

        REQUIRE_EQ(0, l.a.modify(command(fw_2rst, 16, l.a.number), &status));
        REQUIRE_EQ(0, l.a.modify(rst2init_command(l.a.number), &status));
        rtr.set(qpc_bit + 264, 8, 3);
        memcpy(&rtr.in[qpc_bit / 8 + 40], v2.raw, sizeof(v2));
        REQUIRE_EQ(0, l.a.modify(rtr, &status));
        q = l.a.query(fw_query_qp, fw_queue_size);
        REQUIRE_EQ(0x1234, get(q, qpc_bit + 464, 16));
    });
}

TEST_F(test_device_devx_objs, queue_pairs_take_queues_of_verbs)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        cq done(c, 16);
        srq receives(c, 16);
        umem queues(c.ctx, 8192);
        uar page(c.ctx);
        mlx5dv_cq dcq   = {};
        mlx5dv_srq dsrq = {};
        mlx5dv_obj obj  = {};
        unsigned status;

        dsrq.comp_mask = MLX5DV_SRQ_MASK_SRQN;
        obj.cq.in      = done.v;
        obj.cq.out     = &dcq;
        obj.srq.in     = receives.v;
        obj.srq.out    = &dsrq;
        REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ));
        object q(c.ctx, qp_command(queues, 0, 4096, page, pd_number(c.pd),
                                   dcq.cqn, dsrq.srqn));

        REQUIRE_EQ(0, q.modify(rst2init_command(q.number), &status));
        REQUIRE_EQ(0, q.modify(init2rtr_command(c, q.number, q.number),
                               &status));
        REQUIRE_EQ(0, q.modify(rtr2rts_command(q.number), &status));
        bytes qpc = q.query(fw_query_qp, 272);
        REQUIRE_EQ(dcq.cqn, get(qpc, qpc_bit + 1256, 24));
        REQUIRE_EQ(dsrq.srqn, get(qpc, qpc_bit + 1384, 24));

        /* Memory and queues that are in use stay */
        REQUIRE_EQ(EBUSY, ibv_destroy_srq(receives.v));
        REQUIRE(mlx5dv_devx_umem_dereg(queues.v) != 0);
        REQUIRE_EQ(EBUSY, errno);
    });
}

/* A CQ of one place has the last completion, and nobody says which are read.
 * Its WQE counter tells how far the queue is, as in UCX's rc_gda. */
TEST_F(test_device_devx_objs, a_queue_of_one_place_has_the_last_completion)
{
    run(1, [](rank&) {
        const unsigned cqc = 128;
        devx_loop l(0, 0);
        command c = cq_command(l.queues, l.records, l.page, l.eqn, 0);

        REQUIRE_EQ(bad_param, refused(l.c.ctx, command(c).set(cqc + 14, 1, 0)));
        REQUIRE_EQ(bad_param, refused(l.c.ctx, command(c).set(640, 64, 32)));
        REQUIRE_EQ(0x12u, get(l.cq.query(fw_query_cq, 80), cqc + 8, 8));

        l.connect();
        volatile uint32_t *last = (uint32_t*)l.queues.data + 15;
        for (unsigned i = 0; i < 40; ++i) {
            l.write(l.mem.sge(0, 8), l.mem.sge(64, 8));
            for (uint64_t start = now_ms();
                 be32toh(*last) != ((i << 16) | (i & 1)); patience::pause()) {
                REQUIRE(now_ms() - start < patience_ms);
            }
            REQUIRE_EQ((MLX5_CQE_INVALID << 4) | 1, l.queues.data[127]);
        }
    });
}

/* What GPUs make: as long as the send queue, and all completions go to the
 * first place. Owner bits are those of a ring of that length. */
TEST_F(test_device_devx_objs, a_collapsed_queue_has_the_last_completion)
{
    for (const char *exec : {"sync", "deferred"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + exec);
        set_env("MLX5SIM_EXEC", exec);
        run(1, [](rank&) {
            const unsigned cqc = 128, places = 1 << ring_log;
            devx_loop l(0, ring_log, false, true);
            bytes context = l.cq.query(fw_query_cq, 80);

            REQUIRE_EQ(0x12u, get(context, cqc + 8, 8)); /* cc, oi */
            REQUIRE_EQ(ring_log, get(context, cqc + 99, 5));

            l.connect();
            volatile uint32_t *last = (uint32_t*)l.queues.data + 15;
            for (unsigned i = 0; i < 3 * places; i += 4) {
                /* some at once, of which nobody sees the first */
                for (unsigned j = 0; j < 4; ++j) {
                    l.write(l.mem.sge(0, 8), l.mem.sge(64, 8));
                }
                for (uint64_t start = now_ms();
                     be32toh(*last) != (((i + 3) << 16) |
                                        ((i / places) & 1));
                     patience::pause()) {
                    REQUIRE(now_ms() - start < patience_ms);
                }
                for (unsigned j = 1; j < places; ++j) {
                    REQUIRE_EQ((MLX5_CQE_INVALID << 4) | 1,
                               l.queues.data[j * 64 + 63]);
                }
            }
            REQUIRE_EQ(3u * places, get(l.cq.query(fw_query_cq, 80), cqc + 360,
                                        24));

            /* an error has a number, too */
            l.write(l.mem.sge(0, 8), {8, 8, 0});
            for (uint64_t start = now_ms();
                 be32toh(*last) != ((3 * places << 16) | 0xd1);
                 patience::pause()) {
                REQUIRE(now_ms() - start < patience_ms);
            }
        });
    }
}

/* UCX does not clear it, and rings when it has posted anew */
TEST_F(test_device_devx_objs, record_from_before_a_reset_counts_for_nothing)
{
    run(1, [](rank&) {
        devx_loop l;
        unsigned status;

        l.connect();
        exchange(l, 3);
        for (object *q : {&l.a, &l.b}) {
            REQUIRE_EQ(0, q->modify(command(fw_2rst, 16, q->number), &status));
        }
        l.pi = 0;

        /* in error there is nothing to be flushed */
        REQUIRE_EQ(0, l.b.modify(rst2init_command(l.b.number), &status));
        REQUIRE_EQ(0, l.a.modify(rst2init_command(l.a.number), &status));
        REQUIRE_EQ(0, l.a.modify(command(fw_2err, 16, l.a.number), &status));
        for (object *q : {&l.a, &l.b}) {
            REQUIRE_EQ(0, q->modify(command(fw_2rst, 16, q->number), &status));
        }

        l.connect();
        usleep(20000);
        exchange(l, 20);
    });

    /* resetting queue pairs that receive is against the rules */
    for (const auto &line : take_violations()) {
        EXPECT_EQ("srq_leak", line.substr(0, line.find(' '))) << line;
    }
}

TEST_F(test_device_devx_objs, domains_are_made)
{
    run(1, [](rank&) {
        context c;
        umem queues(c.ctx, 8192);
        object pd(c.ctx, command(fw_alloc_pd));
        object rmp(c.ctx, rmp_command(queues, 0, 4096, pd.number));

        REQUIRE_EQ(pd.number, get(rmp.query(fw_query_rmp, 272),
                                  256 + 384 + 72, 24));
        REQUIRE(mlx5dv_devx_obj_destroy(pd.v) != 0); /* in use */
        REQUIRE_EQ(EBUSY, errno);
    });
}

/* Completions and the last WQE of a queue pair, as cookies */
TEST_F(test_device_devx_objs, events_arrive)
{
    run(1, [](rank&) {
        devx_loop l;
        uint16_t comp = 0, last = 0x13, port = 9;
        uint64_t cookie = 0;
        unsigned status;
        mlx5dv_devx_event_channel *channel =
                mlx5dv_devx_create_event_channel(l.c.ctx, omit_data);

        REQUIRE(channel != nullptr);
        REQUIRE_EQ(0, fcntl(channel->fd, F_SETFL, O_NONBLOCK));
        REQUIRE_EQ(0, mlx5dv_devx_subscribe_devx_event(channel, l.cq.v, 2,
                                                       &comp, 0x1122));
        REQUIRE_EQ(0, mlx5dv_devx_subscribe_devx_event(channel, l.a.v, 2,
                                                       &last, 0x3344));
        REQUIRE(mlx5dv_devx_subscribe_devx_event(channel, l.b.v, 2, &port, 5) !=
                0);
        l.connect();

        auto *hdr = (mlx5dv_devx_async_event_hdr*)&cookie;
        REQUIRE(mlx5dv_devx_get_event(channel, hdr, sizeof(cookie)) < 0);
        REQUIRE_EQ(EAGAIN, errno);

        /* arm: record, then the doorbell */
        volatile uint32_t *record = (uint32_t*)(l.queues.data +
                                                devx_loop::records);
        record[1] = htobe32(l.ci);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        *(volatile uint64_t*)((char*)l.page.v->base_addr + 0x20) =
                htobe64(((uint64_t)l.ci << 32) | l.cq.number);
        l.write(l.mem.sge(0, 8), l.mem.sge(64, 8));
        pollfd fd = {channel->fd, POLLIN, 0};
        REQUIRE_EQ(1, poll(&fd, 1, patience_ms));
        REQUIRE_EQ(8, mlx5dv_devx_get_event(channel, hdr, sizeof(cookie)));
        REQUIRE_EQ(0x1122, cookie);

        REQUIRE_EQ(0, l.a.modify(command(fw_2err, 16, l.a.number), &status));
        REQUIRE_EQ(1, poll(&fd, 1, patience_ms));
        REQUIRE_EQ(8, mlx5dv_devx_get_event(channel, hdr, sizeof(cookie)));
        REQUIRE_EQ(0x3344, cookie);

        /* a channel may go first */
        mlx5dv_devx_destroy_event_channel(channel);
        REQUIRE_EQ(0, l.b.modify(command(fw_2err, 16, l.b.number), &status));
    });
}

TEST_F(test_device_devx_objs, wrong_fields_are_refused)
{
    run(1, [](rank&) {
        context c;
        umem mem(c.ctx, 16384), readonly(c.ctx, 4096, 0);
        uar page(c.ctx);
        uint32_t pd = pd_number(c.pd), eqn;

        REQUIRE_EQ(0, mlx5dv_devx_query_eqn(c.ctx, 0, &eqn));
        REQUIRE(mlx5dv_devx_query_eqn(c.ctx, 4, &eqn) != 0);

        command cqc = cq_command(mem, 8192, page, eqn);
        REQUIRE_EQ(bad_res, refused(c.ctx, command(cqc).set(704, 32, 0xffff)));
        REQUIRE_EQ(bad_res, refused(c.ctx, command(cqc).set(160, 32, 0xffff)));
        REQUIRE_EQ(bad_res, refused(c.ctx, command(cqc).set(232, 24, 0xffff)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(227, 5, 20)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(227, 5, 0)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(640, 64, 16384)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(640, 64, ~0ul)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(576, 64, 16380)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(576, 64, 4)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(312, 8, 0)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(312, 8, 200)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(145, 1, 1)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(cqc).set(704, 32,
                                                   readonly.v->umem_id)));

        object q(c.ctx, cqc);
        command rmpc = rmp_command(mem, 0, 8192, pd);
        REQUIRE_EQ(bad_res, refused(c.ctx, command(rmpc).set(712, 24, 0)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(rmpc).set(640, 4, 2)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(rmpc).set(264, 4, 0)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(rmpc).set(908, 4, 4)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(rmpc).set(923, 5, 16)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(rmpc).set(923, 5, 0)));

        command qpc = qp_command(mem, 4096, 8200, page, pd, q.number, 0);
        const unsigned f = qpc_bit;
        REQUIRE_EQ(bad_param, refused(c.ctx, command(qpc).set(f + 8, 8, 5)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(qpc).set(f + 128, 2, 1)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(qpc).set(f + 1381, 3, 2)));
        REQUIRE_EQ(bad_param, refused(c.ctx, command(qpc).set(f + 81, 4, 15)));
        REQUIRE_EQ(bad_res, refused(c.ctx, command(qpc).set(f + 40, 24, 0)));
        REQUIRE_EQ(bad_res, refused(c.ctx, command(qpc).set(f + 1000, 24, 0)));
        REQUIRE_EQ(bad_res, refused(c.ctx, command(qpc).set(f + 104, 24, 0)));
        REQUIRE_EQ(bad_res, refused(c.ctx, command(qpc).set(f + 1381, 3, 1)));

        /* lengths, and what the kernel does not let pass */
        command cut = qpc;
        cut.in.resize(268);
        REQUIRE_EQ(bad_in_len, refused(c.ctx, cut));
        cut.in.resize(12);
        refused(c.ctx, cut, 16, EINVAL);
        refused(c.ctx, qpc, 12, EINVAL);
        refused(c.ctx, command(0x501), 16, EINVAL);
        REQUIRE_EQ(bad_op, refused(c.ctx, command(0x710, 256))); /* DCT */

        object a(c.ctx, qpc);
        unsigned status;
        REQUIRE_EQ(EREMOTEIO, a.modify(rtr2rts_command(a.number), &status));
        REQUIRE_EQ(bad_qp_state, status);
        REQUIRE_EQ(EREMOTEIO, a.modify(rst2init_command(a.number)
                                       .set(f + 488, 8, 3), &status));
        REQUIRE_EQ(bad_param, status);
        REQUIRE_EQ(EREMOTEIO, a.modify(rst2init_command(a.number)
                                       .set(128, 32, 1 << 12), &status));
        REQUIRE_EQ(bad_param, status);
        REQUIRE_EQ(EINVAL, a.modify(rst2init_command(a.number + 1), &status));
        REQUIRE_EQ(EINVAL, a.modify(command(fw_2rst, 16, q.number), &status));
        command query(fw_query_qp, 16, a.number);
        bytes out(255);
        REQUIRE(mlx5dv_devx_obj_query(a.v, query.in.data(), 16, out.data(),
                                      out.size()) != 0);
        REQUIRE_EQ(bad_out_len, out[0]);
        REQUIRE(mlx5dv_devx_umem_reg(c.ctx, mem.data, 0, 0) == nullptr);
        REQUIRE(mlx5dv_devx_umem_reg(c.ctx, (void*)4096, 4096, 0) == nullptr);
    });
}

/* An indirect key gives another address to memory, as long as the key that it
 * leads to lives, and no more than that */
TEST_F(test_device_devx_objs, keys_lead_to_keys)
{
    run(1, [](rank&) {
        const size_t size = 1 << 15, shift = 0x7b8;
        const unsigned mkc = 128;
        devx_loop l;
        std::unique_ptr<memory> target(new memory(l.c, size));
        command c(fw_create_mkey, fw_queue_size + 2 * 16);

        c.set(mkc + 17, 4, 0xf).set(mkc + 22, 2, 3).set(mkc + 56, 8, 0x5a);
        c.set(mkc + 104, 24, l.pd).set(mkc + 475, 5, 14);
        c.set(mkc + 128, 64, target->addr() + shift);
        c.set(mkc + 192, 64, size).set(mkc + 416, 32, 2).set(768, 32, 2);
        for (unsigned i = 0; i < 2; ++i) {
            c.set(2176 + i * 128 + 32, 32, target->mr->lkey);
            c.set(2176 + i * 128 + 64, 64, target->addr() + i * size / 2);
        }

        REQUIRE_EQ(bad_param, refused(l.c.ctx, command(c).set(mkc + 22, 2, 1)));
        REQUIRE_EQ(bad_param, refused(l.c.ctx, command(c).set(768, 32, 0)));
        REQUIRE_EQ(bad_param, refused(l.c.ctx, command(c).set(768, 32, 1)));
        REQUIRE_EQ(bad_in_len, refused(l.c.ctx, command(c).set(768, 32, 3)));
        REQUIRE_EQ(bad_in_len, refused(l.c.ctx, command(c).set(768, 32, ~0u)));
        REQUIRE_EQ(bad_res, refused(l.c.ctx, command(c).set(mkc + 104, 24, 0)));
        REQUIRE_EQ(bad_res, refused(l.c.ctx, command(c).set(2208, 32, 0x77)
                                                       .set(2336, 32, 0x77)));

        object key(l.c.ctx, c);
        uint32_t rkey = (key.number << 8) | 0x5a;
        ibv_sge to    = {target->addr(100) + shift, 8, rkey};

        REQUIRE_EQ(bad_param, refused(l.c.ctx, command(c).set(2208, 32, rkey)
                                                         .set(2336, 32, rkey)));
        l.connect();
        memset(l.mem.data, 0x77, 8);
        l.write(l.mem.sge(0, 8), to);
        REQUIRE_EQ(MLX5_CQE_REQ, l.next());
        REQUIRE_EQ(0, memcmp(target->data + 100, l.mem.data, 8));

        to.addr = target->addr(size - 4) + shift;
        l.write(l.mem.sge(0, 8), to);
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
    });
}

/* A command that makes an indirect key, which leads to a page of memory */
command key_to(const devx_loop &l, const memory &target)
{
    const unsigned mkc = 128;
    command c(fw_create_mkey, fw_queue_size + 16);

    c.set(mkc + 17, 4, 0xf).set(mkc + 22, 2, 3).set(mkc + 104, 24, l.pd);
    c.set(mkc + 475, 5, 12).set(mkc + 192, 64, 4096).set(768, 32, 1);
    c.set(2208, 32, target.mr->lkey).set(2240, 64, target.addr());
    return c;
}

TEST_F(test_device_devx_objs, a_key_ends_with_the_one_that_it_leads_to)
{
    run(1, [](rank&) {
        devx_loop l;
        std::unique_ptr<memory> target(new memory(l.c, 4096));
        object key(l.c.ctx, key_to(l, *target));
        ibv_sge to = {8, 8, key.number << 8};

        l.connect();
        l.write(l.mem.sge(0, 8), to);
        REQUIRE_EQ(MLX5_CQE_REQ, l.next());
        target.reset();
        l.write(l.mem.sge(0, 8), to);
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
    });
}

/* Memory that is not pinned is not by another key, either. A key that was made
 * by a command has no pages of its own to be fetched. */
TEST_F(test_device_devx_objs, a_key_leads_to_memory_on_demand)
{
    set_env("MLX5SIM_ODP", "y");
    run(1, [](rank&) {
        devx_loop l;
        memory target(l.c, 4096, all_access | IBV_ACCESS_ON_DEMAND);
        object key(l.c.ctx, key_to(l, target));
        ibv_sge to = {8, 8, key.number << 8};

        REQUIRE_EQ(ENOENT, ibv_advise_mr(l.c.pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
                                         IBV_ADVISE_MR_FLAG_FLUSH, &to, 1));
        l.connect();
        l.write(l.mem.sge(0, 8), to);
        REQUIRE_EQ(MLX5_CQE_REQ, l.next());
        REQUIRE_EQ(0, mprotect(target.data, target.size, PROT_READ));
        l.write(l.mem.sge(0, 8), to);
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
        REQUIRE_EQ(0, mprotect(target.data, target.size,
                               PROT_READ | PROT_WRITE));
    });
}

/* The device has a copy of its translation in the indirect key, and refuses
 * what would leave that behind */
TEST_F(test_device_devx_objs, a_region_is_not_registered_again_under_a_key)
{
    run(1, [](rank&) {
        devx_loop l;
        memory target(l.c, 4096), other(l.c, 4096);
        {
            object key(l.c.ctx, key_to(l, target));
            ibv_sge to = {8, 8, key.number << 8};

            REQUIRE_EQ(IBV_REREG_MR_ERR_CMD,
                       ibv_rereg_mr(target.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                    nullptr, other.data, 4096, 0));
            REQUIRE_EQ(EOPNOTSUPP, errno);
            l.connect();
            l.write(l.mem.sge(0, 8), to);
            REQUIRE_EQ(MLX5_CQE_REQ, l.next());
        }
        REQUIRE_EQ(0, ibv_rereg_mr(target.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                   nullptr, other.data, 4096, 0));
    });
}

/* Verbs took what commands had made for objects of their own, and destroyed
 * it: all numbers that are not theirs are nobody's */
TEST_F(test_device_devx_objs, no_object_of_commands_is_one_of_verbs)
{
    run(1, [](rank&) {
        devx_loop l;
        command alloc(fw_alloc_pd);
        object pd(l.c.ctx, alloc);
        object key(l.c.ctx, key_to(l, l.mem));
        ibv_pd *own_pd = ibv_alloc_pd(l.c.ctx);
        cq own_cq(l.c, 16);
        srq own_srq(l.c, 16);
        qp own_qp(l.c, own_cq, own_cq);

        auto nobody = [](uint32_t &handle, const std::function<int()> &destroy,
                         uint32_t other) {
            const uint32_t own = handle;

            for (handle = 0; handle < 64; ++handle) {
                if ((handle != own) && (handle != other)) {
                    REQUIRE_EQ(ENOENT, destroy());
                }
            }
            handle = own;
        };
        const uint32_t none = UINT32_MAX;

        nobody(own_pd->handle, [&]() { return ibv_dealloc_pd(own_pd); },
               l.c.pd->handle);
        nobody(own_cq.v->handle, [&]() { return ibv_destroy_cq(own_cq.v); },
               none);
        nobody(own_srq.v->handle, [&]() { return ibv_destroy_srq(own_srq.v); },
               none);
        nobody(own_qp.v->handle, [&]() { return ibv_destroy_qp(own_qp.v); },
               none);
        nobody(l.mem.mr->handle, [&]() { return ibv_dereg_mr(l.mem.mr); },
               none);

        /* nor can it be named */
        ibv_qp_init_attr attr = {};
        attr.send_cq = attr.recv_cq = own_cq.v;
        attr.qp_type = IBV_QPT_RC;
        attr.cap     = {1, 1, 1, 1, 0};
        const uint32_t own[] = {own_pd->handle, own_cq.v->handle};
        own_pd->handle       = pd.number;
        REQUIRE(ibv_create_qp(own_pd, &attr) == nullptr);
        own_pd->handle       = own[0];
        own_cq.v->handle     = l.cq.number;
        REQUIRE(ibv_create_qp(own_pd, &attr) == nullptr);
        REQUIRE(ibv_resize_cq(own_cq.v, 32) != 0);
        own_cq.v->handle     = own[1];
        REQUIRE_EQ(0, ibv_dealloc_pd(own_pd));
    });
}

/* A key tells what it was asked to be, even where its memory is less */
TEST_F(test_device_devx_objs, keys_tell_what_was_asked_for)
{
    run(1, [](rank&) {
        const unsigned mkc = 128;
        devx_loop l;
        command c = key_to(l, l.mem);
        bytes out;

        c.set(mkc + 17, 4, 0x6).set(mkc + 32, 24, 0xffffff);
        c.set(mkc + 56, 8, 0x5a).set(mkc + 128, 64, 0x123456789000);
        c.set(mkc + 192, 64, 4000).set(mkc + 416, 32, 2);
        object key(l.c.ctx, c);
        out = key.query(fw_query_mkey, 304);
        for (unsigned bit : {0, 1, 16, 103, 475}) {
            REQUIRE_EQ(get(c.in, mkc + bit, 1), get(out, mkc + bit, 1));
        }
        REQUIRE(bytes(&c.in[18], &c.in[64]) == bytes(&out[18], &out[64]));
        REQUIRE_EQ(2, get(out, mkc + 416, 32));
        REQUIRE_EQ(12, get(out, mkc + 475, 5));

        /* one for work requests is free until one has come */
        command u(fw_create_mkey, fw_queue_size);
        u.set(mkc + 1, 1, 1).set(mkc + 16, 1, 1).set(mkc + 22, 2, 2);
        u.set(mkc + 32, 24, 0xffffff).set(mkc + 104, 24, l.pd);
        u.set(mkc + 416, 32, 4);
        object umr(l.c.ctx, u);
        out = umr.query(fw_query_mkey, 80);
        REQUIRE(bytes(&u.in[16], &u.in[80]) == bytes(&out[16], &out[80]));

        /* too short a reply; another's number, or a command for others */
        command query(fw_query_mkey, 16, key.number);
        out.resize(79);
        REQUIRE_EQ(EREMOTEIO,
                   mlx5dv_devx_obj_query(key.v, query.in.data(), 16, out.data(),
                                         out.size()));
        REQUIRE_EQ(bad_out_len, out[0]);
        REQUIRE_EQ(EINVAL,
                   mlx5dv_devx_obj_query(umr.v, query.in.data(), 16, out.data(),
                                         out.size()));
        REQUIRE_EQ(EINVAL,
                   mlx5dv_devx_obj_query(l.cq.v, query.in.data(), 16,
                                         out.data(), out.size()));
    });
}

/* A command on a queue of verbs. @return errno; status and reply in *out_p */
int query_srq(const srq &s, unsigned opcode, bytes *out_p)
{
    command c(opcode, 16, s.v->handle);

    return mlx5dv_devx_srq_query(s.v, c.in.data(), c.in.size(), out_p->data(),
                                 out_p->size());
}

int modify_srq(ibv_srq *s, const command &c, bytes *out_p)
{
    out_p->assign(16, 0);
    return mlx5dv_devx_srq_modify(s, c.in.data(), c.in.size(), out_p->data(),
                                  out_p->size());
}

command modify_rmp_command(uint32_t number, unsigned lwm)
{
    const unsigned rmpc = 256;
    command c(fw_modify_rmp, fw_queue_size, number);

    c.set(64, 4, 1).set(191, 1, 1).set(rmpc + 8, 4, 1);
    c.set(rmpc + 384 + 48, 16, lwm);
    return c;
}

/* Shared receive queues of verbs are RMPs, and their limit is the low watermark
 * of commands */
TEST_F(test_device_devx_objs, shared_queues_are_asked_and_armed)
{
    run(1, [](rank&) {
        const unsigned wq = 256 + 384;
        context c;
        srq s(c, 15);
        bytes out(272), done;
        ibv_srq_attr attr = {};
        ibv_async_event event;

        attr.srq_limit = 5;
        REQUIRE_EQ(0, query_srq(s, fw_query_rmp, &out));
        REQUIRE_EQ(0, get(out, wq + 48, 16));
        REQUIRE_EQ(pd_number(c.pd), get(out, wq + 72, 24));
        for (int i = 0; i < 8; ++i) {
            s.recv(i, {});
        }
        REQUIRE_EQ(0, ibv_modify_srq(s.v, &attr, IBV_SRQ_LIMIT));
        REQUIRE_EQ(0, query_srq(s, fw_query_rmp, &out));
        REQUIRE_EQ(5, get(out, wq + 48, 16));

        uint32_t number = s.v->handle;
        REQUIRE_EQ(0, modify_srq(s.v, modify_rmp_command(number, 7), &done));
        REQUIRE_EQ(0, ibv_query_srq(s.v, &attr));
        REQUIRE_EQ(7, attr.srq_limit);
        REQUIRE_EQ(0, modify_srq(s.v, modify_rmp_command(number, 3)
                                      .set(191, 1, 0), &done)); /* nothing */
        REQUIRE_EQ(0, ibv_query_srq(s.v, &attr));
        REQUIRE_EQ(7, attr.srq_limit);

        const command wrong[] = {
            modify_rmp_command(number, attr.max_wr + 1),
            modify_rmp_command(number, 3).set(64, 4, 3),
            modify_rmp_command(number, 3).set(256 + 8, 4, 3),
            modify_rmp_command(number, 3).set(190, 1, 1)
        };
        for (const command &w : wrong) {
            REQUIRE_EQ(EREMOTEIO, modify_srq(s.v, w, &done));
            REQUIRE_EQ(bad_param, done[0]);
        }
        command cut = modify_rmp_command(number, 3);
        cut.in.resize(271);
        REQUIRE_EQ(EREMOTEIO, modify_srq(s.v, cut, &done));
        REQUIRE_EQ(bad_in_len, done[0]);

        /* 8 are posted: that is too few at once */
        REQUIRE_EQ(0, modify_srq(s.v, modify_rmp_command(number, 9), &done));
        REQUIRE_EQ(0, ibv_get_async_event(c.ctx, &event));
        REQUIRE_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
        REQUIRE(event.element.srq == s.v);
        ibv_ack_async_event(&event);
        REQUIRE_EQ(0, ibv_query_srq(s.v, &attr));
        REQUIRE_EQ(0, attr.srq_limit);

        /* commands of other kinds of queues */
        for (unsigned opcode : {fw_query_srq, fw_query_xrc_srq}) {
            REQUIRE_EQ(EINVAL, query_srq(s, opcode, &out));
        }
        REQUIRE_EQ(EINVAL, modify_srq(s.v, command(fw_arm_xrc_srq, 16, number)
                                           .set(48, 16, 1), &done));
    });
}

/* The same for a queue that a command has made */
TEST_F(test_device_devx_objs, a_queue_of_a_command_tells_of_its_limit)
{
    run(1, [](rank&) {
        devx_loop l;
        uint16_t limit  = 0x14; /* MLX5_EVENT_TYPE_SRQ_RQ_LIMIT */
        uint64_t cookie = 0;
        unsigned status;
        mlx5dv_devx_event_channel *channel =
                mlx5dv_devx_create_event_channel(l.c.ctx, omit_data);

        REQUIRE(channel != nullptr);
        REQUIRE_EQ(0, mlx5dv_devx_subscribe_devx_event(channel, l.rmp.v, 2,
                                                       &limit, 0x5566));
        REQUIRE_EQ(0, l.rmp.modify(modify_rmp_command(l.rmp.number, 1),
                                   &status));
        pollfd fd = {channel->fd, POLLIN, 0};
        REQUIRE_EQ(1, poll(&fd, 1, patience_ms));
        auto *hdr = (mlx5dv_devx_async_event_hdr*)&cookie;
        REQUIRE_EQ(8, mlx5dv_devx_get_event(channel, hdr, sizeof(cookie)));
        REQUIRE_EQ(0x5566, cookie);
        REQUIRE_EQ(0, get(l.rmp.query(fw_query_rmp, 272), 256 + 384 + 48, 16));
        mlx5dv_devx_destroy_event_channel(channel);
    });
}

/* Queues of XRC have commands of their own */
TEST_F(test_device_devx_objs, shared_queues_of_xrc_are_asked_and_armed)
{
    run(1, [](rank&) {
        context c;
        cq q(c, 16);
        ibv_xrcd_init_attr domain = {};
        ibv_srq_init_attr_ex init = {};
        ibv_srq_attr attr         = {};
        bytes out(80), done;

        domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        domain.fd        = -1;
        domain.oflags    = O_CREAT;
        init.attr        = {15, 1, 0};
        init.comp_mask   = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
                           IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
        init.srq_type    = IBV_SRQT_XRC;
        init.xrcd        = ibv_open_xrcd(c.ctx, &domain);
        init.cq          = q.v;
        init.pd          = c.pd;
        REQUIRE(init.xrcd != nullptr);
        ibv_srq *s = ibv_create_srq_ex(c.ctx, &init);
        REQUIRE(s != nullptr);

        auto query = [&](unsigned opcode) {
            command k(opcode, 16, s->handle);

            return mlx5dv_devx_srq_query(s, k.in.data(), 16, out.data(),
                                         out.size());
        };
        command arm = command(fw_arm_xrc_srq, 16, s->handle)
                      .set(48, 16, 1).set(112, 16, 6);
        mlx5dv_cq dcq  = {};
        mlx5dv_obj obj = {};

        obj.cq.in  = q.v;
        obj.cq.out = &dcq;
        REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
        REQUIRE_EQ(0, query(fw_query_xrc_srq));
        REQUIRE_EQ(0, ibv_query_srq(s, &attr));
        REQUIRE_EQ(attr.max_wr + 1, 1u << get(out, 128 + 4, 4));
        REQUIRE_EQ(1, get(out, 128 + 37, 3));   /* of 32 bytes */
        REQUIRE_EQ(dcq.cqn, get(out, 128 + 72, 24));
        REQUIRE_EQ(pd_number(c.pd), get(out, 128 + 200, 24));
        REQUIRE_EQ(0, get(out, 128 + 224, 16));

        /* the event is at once, as nothing is posted */
        REQUIRE_EQ(EREMOTEIO, modify_srq(s, command(arm).set(48, 16, 0),
                                         &done));
        REQUIRE_EQ(bad_param, done[0]);
        REQUIRE_EQ(EREMOTEIO, modify_srq(s, command(arm)
                                            .set(112, 16, attr.max_wr + 1),
                                         &done));
        REQUIRE_EQ(bad_param, done[0]);
        REQUIRE_EQ(0, modify_srq(s, arm, &done));
        ibv_async_event event;
        REQUIRE_EQ(0, ibv_get_async_event(c.ctx, &event));
        REQUIRE_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
        ibv_ack_async_event(&event);
        REQUIRE_EQ(0, ibv_query_srq(s, &attr));
        REQUIRE_EQ(0, attr.srq_limit);

        REQUIRE_EQ(EINVAL, query(fw_query_rmp));
        REQUIRE_EQ(EINVAL, modify_srq(s, modify_rmp_command(s->handle, 1),
                                      &done));
        REQUIRE_EQ(0, ibv_destroy_srq(s));
        REQUIRE_EQ(0, ibv_close_xrcd(init.xrcd));
    });
}

/* Memory registered in pieces, of which the first begins and the last ends
 * within its entry, and an entry behind them, as UCX has it */
class pieces {
public:
    pieces(devx_loop &l, unsigned last_access) :
        c(fw_create_mkey, fw_queue_size + num * 16), m_target(l.c, 3 * entry)
    {
        const unsigned mkc = 128;

        c.set(mkc + 17, 4, 0xf).set(mkc + 22, 2, 3).set(mkc + 104, 24, l.pd);
        c.set(mkc + 475, 5, 12).set(mkc + 128, 64, shift);
        c.set(mkc + 192, 64, 3 * entry - gap).set(768, 32, num);
        for (unsigned i = 0; i < 3; ++i) {
            v[i] = ibv_reg_mr(l.c.pd, data(i * entry + (i == 0 ? gap : 0)),
                              entry - (i == 1 ? 0 : gap),
                              (i == 2) ? last_access : all_access);
            REQUIRE(v[i] != nullptr);
            set_entry(c, i, i);
        }
        set_entry(c, 3, 2);
        c.set(2176 + 3 * 128 + 64, 64, m_target.addr(3 * entry));
    }

    ~pieces()
    {
        for (auto *mr : v) {
            REQUIRE(mr == nullptr || ibv_dereg_mr(mr) == 0);
        }
    }

    /** Entry @a i leads to piece @a piece. */
    command &set_entry(command &to, unsigned i, unsigned piece)
    {
        return to.set(2176 + i * 128 + 32, 32, v[piece]->lkey)
                 .set(2176 + i * 128 + 64, 64, m_target.addr(piece * entry));
    }

    uint8_t *data(size_t offset)
    {
        return m_target.data + offset;
    }

    static const size_t   entry = 4096, gap = 96, shift = 1 << 20;
    static const unsigned num   = 4;

    command c;
    ibv_mr  *v[3];

private:
    memory m_target;
};

TEST_F(test_device_devx_objs, a_key_leads_to_pieces_of_memory)
{
    run(1, [](rank&) {
        devx_loop l;
        pieces p(l, all_access);
        object key(l.c.ctx, p.c);
        uint32_t rkey = key.number << 8;

        l.connect();
        for (size_t offset : {p.gap, p.entry - 50, 2 * p.entry - 1}) {
            memset(l.mem.data, 1 + offset % 100, 200);
            l.write(l.mem.sge(0, 200), {p.shift + offset, 200, rkey});
            REQUIRE_EQ(MLX5_CQE_REQ, l.next());
            REQUIRE_EQ(0, memcmp(l.mem.data, p.data(offset), 200));
        }

        REQUIRE_EQ(0, ibv_dereg_mr(p.v[1]));
        p.v[1] = nullptr;
        l.write(l.mem.sge(0, 8), {p.shift + p.gap, 8, rkey});
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
    });
}

TEST_F(test_device_devx_objs, a_key_ends_before_and_behind_its_pieces)
{
    run(1, [](rank&) {
        for (size_t offset : {pieces::gap - 1, 3 * pieces::entry -
                                               pieces::gap - 7}) {
            devx_loop l;
            pieces p(l, all_access);
            object key(l.c.ctx, p.c);

            l.connect();
            l.write(l.mem.sge(0, 8),
                    {p.shift + offset, 8, key.number << 8});
            REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
        }
    });
}

TEST_F(test_device_devx_objs, a_key_allows_what_all_of_its_pieces_do)
{
    run(1, [](rank&) {
        devx_loop l;
        pieces p(l, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
        object key(l.c.ctx, p.c);

        l.connect();
        l.write(l.mem.sge(0, 8), {p.shift + p.gap, 8, key.number << 8});
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
    });
}

/* As soon as one piece was pinned, all of them were taken to be; then none was,
 * if the region of another one was around it */
TEST_F(test_device_devx_objs, pieces_on_demand_are_not_pinned)
{
    set_env("MLX5SIM_ODP", "y");
    run(1, [](rank&) {
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned access = all_access | IBV_ACCESS_ON_DEMAND;
            unsigned piece        = (i % 2) * 2;
            devx_loop l;
            pieces p(l, access);
            size_t offset = piece * p.entry + p.gap;

            if (i >= 2) {
                REQUIRE_EQ(0, ibv_dereg_mr(p.v[2]));
                p.v[2] = ibv_reg_mr(l.c.pd, p.data(0), 3 * p.entry, access);
                REQUIRE(p.v[2] != nullptr);
                p.set_entry(p.c, 2, 2).set(2176 + 3 * 128 + 32, 32,
                                           p.v[2]->lkey);
            }
            object key(l.c.ctx, p.c);

            /* an adapter has the page of what is pinned */
            l.connect();
            REQUIRE_EQ(0, mprotect(p.data(piece * p.entry), p.entry,
                                   PROT_NONE));
            l.write(l.mem.sge(0, 8), {p.shift + offset, 8, key.number << 8});
            REQUIRE_EQ((piece == 0) ? MLX5_CQE_REQ : MLX5_CQE_REQ_ERR,
                       l.next());
            REQUIRE_EQ(0, mprotect(p.data(piece * p.entry), p.entry,
                                   PROT_READ | PROT_WRITE));
        }
    });
}

/* Any opcode, length and contents: an error or a status comes back, or an
 * object that works as far as it goes, and the device lives on */
TEST_F(test_device_devx_objs, fuzz_of_commands)
{
    const uint64_t seed  = seed::get();
    const unsigned cases = seed::cases(3000);

    catch_errors();
    run(1, [=](rank&) {
        std::mt19937_64 random(seed);
        devx_loop l;
        std::vector<mlx5dv_devx_obj*> made;

        l.connect();
        for (unsigned i = 0; i < cases; ++i) {
            command all[] = {
                cq_command(l.queues, devx_loop::records + 256, l.page, l.eqn),
                rmp_command(l.queues, devx_loop::rmp_offset,
                            devx_loop::records + 256, l.pd),
                qp_command(l.queues, devx_loop::sq_offset,
                           devx_loop::records + 256, l.page, l.pd, l.cq.number,
                           l.rmp.number),
                command(fw_alloc_pd),
                command(fw_create_mkey, fw_queue_size + 32)
                        .set(150, 2, 3).set(768, 32, 1)
                        .set(232, 24, l.pd).set(2208, 32, l.mem.mr->lkey),
                rst2init_command(l.b.number),
                init2rtr_command(l.c, l.b.number, l.a.number),
                rtr2rts_command(l.b.number), command(fw_2err, 16, l.b.number),
                command(fw_2rst, 16, l.b.number),
                command(fw_query_qp, 16, l.b.number), command(0x100),
                command(0x760), command(0x762), command(0x842),
                command(random() & 0xfff, 16 + random() % 400)
            };
            command c = all[random() % (sizeof(all) / sizeof(all[0]))];
            bytes out(16 + random() % 700);

            spoil(c, random);
            if (random() % 8 == 0) {
                out.resize(random() % 16);
            }
            c.in.reserve(64);
            out.reserve(64);

            switch (random() % 4) {
            case 0:
                (void)mlx5dv_devx_general_cmd(l.c.ctx, c.in.data(),
                                              c.in.size(), out.data(),
                                              out.size());
                break;
            case 1:
                (void)mlx5dv_devx_obj_modify(l.b.v, c.in.data(), c.in.size(),
                                             out.data(), out.size());
                break;
            case 2:
                (void)mlx5dv_devx_obj_query(l.b.v, c.in.data(), c.in.size(),
                                            out.data(), out.size());
                break;
            default:
                auto *obj = mlx5dv_devx_obj_create(l.c.ctx, c.in.data(),
                                                   c.in.size(), out.data(),
                                                   out.size());
                if (obj != nullptr) {
                    made.push_back(obj);
                }
                break;
            }
        }

        while (!made.empty()) {
            REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(made.back()));
            made.pop_back();
        }

        /* and what was there before still works */
        unsigned status;
        for (object *q : {&l.a, &l.b}) {
            (void)q->modify(command(fw_2rst, 16, q->number), &status);
        }
        l.pi = 0;
        ((uint32_t*)(l.queues.data + devx_loop::records + 128))[1] = 0;
        l.connect();
        exchange(l, 20);
    });

    /* resetting queue pairs that receive is against the rules */
    for (const auto &line : take_violations()) {
        EXPECT_EQ("srq_leak", line.substr(0, line.find(' '))) << line;
    }
}
