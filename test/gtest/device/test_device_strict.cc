/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Strict checks: what software does wrong is reported, with the name of the
 * check and a dump of the work request, the process lives on, and the queue
 * pair ends as that of an adapter would. One test per check and more.
 */

#include <device/device_wqe.h>

#include <sys/mman.h>

using namespace device;

namespace {

/* What becomes of a work request with a mistake in it */
enum outcome {
    EXECUTED,       /* hardware does not see this mistake */
    FAILED_QP_OP,
    FAILED_LENGTH
};

class test_device_strict : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        catch_errors();
    }

    /* One process that does something wrong */
    void provoke(const std::string &name, const std::function<void()> &body,
                 bool has_dump = true)
    {
        run(1, [&](rank&) {
            body();
        });
        expect(name, has_dump);
    }

    void expect(const std::string &name, bool has_dump)
    {
        std::vector<std::string> lines = take_violations();
        std::string text               = errors();

        ASSERT_FALSE(lines.empty()) << "not reported: " << name;
        for (const auto &line : lines) {
            EXPECT_EQ(name, line.substr(0, line.find(' '))) << line;
        }
        EXPECT_NE(std::string::npos,
                  text.find("strict check '" + name + "' failed")) << text;
        if (has_dump) {
            EXPECT_NE(std::string::npos, text.find(" opmod ")) << text;
            EXPECT_NE(std::string::npos, text.find("\n  00000: ")) << text;
        }
    }

    /* A WQE with a mistake on an RC queue pair, and a good one behind it */
    void provoke_wqe(const std::string &name, outcome out,
                     const std::function<void(raw_wqe&, loop&)> &body,
                     unsigned opcode = MLX5_OPCODE_SEND, unsigned opmod = 0)
    {
        provoke(name, [&]() {
            loop l;
            raw_sq sq(l.a.v);
            raw_wqe bad(sq, opcode, opmod), nop(sq, MLX5_OPCODE_NOP);

            l.b.recv(1, l.peer_mem.sge(0, 4096));
            bad.length = 16;
            body(bad, l);
            bad.write();
            sq.record(sq.pi);
            /* the doorbell itself is in order */
            sq.doorbell(htobe64(((uint64_t)((uint16_t)(sq.pi - bad.num_bb()) <<
                                            8 | opcode) << 32) |
                                (l.a.v->qp_num << 8) | (bad.length / 16)));

            ibv_wc wc = l.scq.next();
            switch (out) {
            case EXECUTED:
                REQUIRE_EQ(IBV_WC_SUCCESS, wc.status);
                REQUIRE_EQ(IBV_QPS_RTS, l.a.state());
                break;
            case FAILED_QP_OP:
                REQUIRE_EQ(IBV_WC_LOC_QP_OP_ERR, wc.status);
                REQUIRE_EQ(IBV_QPS_ERR, l.a.state());
                break;
            case FAILED_LENGTH:
                REQUIRE_EQ(IBV_WC_LOC_LEN_ERR, wc.status);
                REQUIRE_EQ(IBV_QPS_ERR, l.a.state());
                break;
            }

            /* what follows is executed or flushed */
            raw_wqe next(sq, MLX5_OPCODE_NOP);
            next.post();
            REQUIRE_EQ((out == EXECUTED) ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR,
                       l.scq.next().status);
            l.scq.empty();
        });
    }
};

} // namespace


TEST_F(test_device_strict, raw_requests_that_are_right_are_not_reported)
{
    run(1, [](rank&) {
        loop l;
        raw_sq sq(l.a.v);

        /* several laps, doorbell and BlueFlame, one to four blocks */
        for (unsigned i = 0; i < 500; ++i) {
            uint8_t data[200];
            unsigned size = (i * 7) % 200;

            pattern::fill(data, size, i);
            raw_wqe w(sq, MLX5_OPCODE_RDMA_WRITE);
            w.raddr(l.to_b.addr + 8 * i, l.to_b.rkey).inl(data, size);
            w.post(i & 1);
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
            REQUIRE_EQ(size, pattern::check(l.peer_mem.data + 8 * i, size, i));
        }
        l.scq.empty();
    });
}

TEST_F(test_device_strict, wqe_index)
{
    provoke_wqe("wqe_index", EXECUTED, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 10));
        w.ctrl()->opmod_idx_opcode = htobe32((5 << 8) | MLX5_OPCODE_SEND);
    });
}

TEST_F(test_device_strict, wqe_qpn)
{
    provoke_wqe("wqe_qpn", EXECUTED, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 10));
        w.ctrl()->qpn_ds = htobe32((l.b.v->qp_num << 8) | 2);
    });
}

TEST_F(test_device_strict, wqe_ds_of_zero)
{
    provoke_wqe("wqe_ds", FAILED_QP_OP, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 10));
        w.ctrl()->qpn_ds = htobe32(l.a.v->qp_num << 8);
    });
}

TEST_F(test_device_strict, wqe_ds_beyond_what_is_posted)
{
    provoke_wqe("wqe_ds", FAILED_QP_OP, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 10));
        w.ctrl()->qpn_ds = htobe32((l.a.v->qp_num << 8) | 20);
    });
}

TEST_F(test_device_strict, wqe_ds_without_remote_address)
{
    provoke_wqe("wqe_ds", FAILED_QP_OP, [](raw_wqe&, loop&) {
    }, MLX5_OPCODE_RDMA_WRITE);
}

TEST_F(test_device_strict, wqe_opcode_unknown)
{
    provoke_wqe("wqe_opcode", FAILED_QP_OP, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 10));
    }, 0x3f);
}

TEST_F(test_device_strict, wqe_opmod)
{
    provoke_wqe("wqe_opmod", FAILED_QP_OP, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 10));
    }, MLX5_OPCODE_SEND, 1);
}

TEST_F(test_device_strict, wqe_reserved)
{
    provoke_wqe("wqe_reserved", EXECUTED, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 10));
        w.ctrl()->fm_ce_se |= 0x10;
    });
}

TEST_F(test_device_strict, wqe_ce)
{
    provoke_wqe("wqe_ce", EXECUTED, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 10));
        w.ctrl()->fm_ce_se = 3 << 2;
    });
}

TEST_F(test_device_strict, wqe_inline)
{
    provoke_wqe("wqe_inline", FAILED_QP_OP, [](raw_wqe &w, loop&) {
        uint32_t count = htobe32(100 | MLX5_INLINE_SEG);
        w.raw(&count, 4);
    });
}

TEST_F(test_device_strict, wqe_segment)
{
    provoke_wqe("wqe_segment", FAILED_QP_OP, [](raw_wqe &w, loop &l) {
        uint8_t nothing[16] = {};
        w.data(l.mem.sge(0, 10)).raw(nothing, 16);
    });
}

TEST_F(test_device_strict, wqe_atomic)
{
    provoke_wqe("wqe_atomic", FAILED_QP_OP, [](raw_wqe &w, loop &l) {
        uint64_t operands[2] = {htobe64(1), 0};
        w.raddr(l.to_b.addr, l.to_b.rkey).raw(operands, 16);
        w.data(l.mem.sge(0, 4));
    }, MLX5_OPCODE_ATOMIC_FA);
}

TEST_F(test_device_strict, wqe_length)
{
    provoke_wqe("wqe_length", FAILED_LENGTH, [](raw_wqe &w, loop &l) {
        w.data(l.mem.sge(0, 0x7fffffff)).data(l.mem.sge(0, 0x7fffffff));
    });
}

TEST_F(test_device_strict, wqe_av)
{
    provoke("wqe_av", []() {
        loop l({.type = IBV_QPT_UD});
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_SEND);

        w.av(l.to_b, default_qkey).data(l.mem.sge(0, 10));
        ((mlx5_wqe_av*)(w.bytes + 16))->dqp_dct |= htobe32(0x40000000);
        w.post();
        REQUIRE_EQ(IBV_WC_LOC_QP_OP_ERR, l.scq.next().status);
        REQUIRE_EQ(IBV_QPS_SQE, l.a.state());
    });
}

TEST_F(test_device_strict, wqe_ud_length)
{
    provoke("wqe_ud_length", []() {
        loop l({.type = IBV_QPT_UD});
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_SEND);

        w.av(l.to_b, default_qkey).data(l.mem.sge(0, 4097));
        w.post();
        REQUIRE_EQ(IBV_WC_LOC_LEN_ERR, l.scq.next().status);
    });
}

TEST_F(test_device_strict, recv_wqe)
{
    provoke("recv_wqe", []() {
        loop l;
        raw_sq b(l.b.v);

        l.b.recv(1, l.peer_mem.sge(0, 10));
        ((mlx5_wqe_data_seg*)b.dv.rq.buf)->byte_count =
                htobe32(10 | MLX5_INLINE_SEG);
        send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 10)});
        l.a.send(wr);
        REQUIRE_EQ(IBV_WC_REM_OP_ERR, l.scq.next().status);
        REQUIRE_EQ(IBV_QPS_ERR, l.a.state());
        REQUIRE_EQ(IBV_QPS_ERR, l.b.state());
    }, false);
}

TEST_F(test_device_strict, sq_overrun)
{
    provoke("sq_overrun", []() {
        loop l;
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_NOP);
        uint16_t ahead = sq.dv.sq.wqe_cnt + 1;

        /* a WQE whose index matches the record that is too far */
        w.ctrl()->opmod_idx_opcode = htobe32((ahead - 1) << 8);
        w.write();
        sq.record(ahead);
        sq.doorbell(w.head());
        REQUIRE_EQ(IBV_QPS_ERR, l.a.state());
    });
}

TEST_F(test_device_strict, rq_overrun)
{
    provoke("rq_overrun", []() {
        loop l;
        raw_sq b(l.b.v);

        ((volatile uint32_t*)b.dv.dbrec)[MLX5_RCV_DBR] =
                htobe32(b.dv.rq.wqe_cnt + 1);
        send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 10)});
        l.a.send(wr);
        REQUIRE_EQ(IBV_WC_REM_OP_ERR, l.scq.next().status);
        REQUIRE_EQ(IBV_QPS_ERR, l.b.state());
    }, false);
}

TEST_F(test_device_strict, a_full_receive_queue_is_no_overrun)
{
    run(1, [](rank&) {
        loop l;
        raw_sq b(l.b.v);

        for (unsigned i = 0; i < b.dv.rq.wqe_cnt; ++i) {
            l.b.recv(i, l.peer_mem.sge(0, 64));
        }
        send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 10)});
        l.a.send(wr);
        l.scq.good();
        l.peer_cq.good();
    });
}

TEST_F(test_device_strict, srq_overrun_and_broken_list)
{
    for (bool list : {false, true}) {
        provoke(list ? "srq_list" : "rq_overrun", [=]() {
            context c;
            memory mem(c, 4096);
            srq shared(c, 15);
            cq q(c, 64);
            qp a(c, q, q), b(c, q, q, {.srq = shared.v});
            mlx5dv_srq dv = {};
            mlx5dv_obj obj = {};

            a.connect(b.addr());
            b.connect(a.addr());
            shared.recv(1, mem.sge(0, 100));
            obj.srq.in  = shared.v;
            obj.srq.out = &dv;
            REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ));
            if (list) {
                ((mlx5_wqe_srq_next_seg*)dv.buf)
                        ->next_wqe_index = htobe16(0x4000);
            } else {
                /* one more than there are: with half of them, libmlx5 has
                 * others wait */
                *(volatile uint32_t*)dv.dbrec = htobe32(2 * dv.tail + 3);
            }
            send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, 10)});
            a.send(wr);
            REQUIRE_EQ(IBV_WC_REM_OP_ERR, q.next().status);
            REQUIRE_EQ(IBV_QPS_ERR, b.state());
        }, false);
    }
}

TEST_F(test_device_strict, cq_overrun)
{
    provoke("cq_overrun", []() {
        qp_options options;
        context c;
        memory mem(c, 4096);
        cq small(c, 3), q(c, 64);
        qp a(c, small, q), b(c, q, q);
        ibv_async_event event;

        a.connect(b.addr());
        b.connect(a.addr(&mem));
        for (int i = 0; i < 8; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {mem.sge(0, 8)});
            a.send(wr.to(b.addr(&mem), 0));
        }
        REQUIRE_EQ(IBV_QPS_ERR, a.state());
        REQUIRE_EQ(0, ibv_get_async_event(c.ctx, &event));
        REQUIRE_EQ(IBV_EVENT_CQ_ERR, event.event_type);
        REQUIRE(event.element.cq == small.v);
        ibv_ack_async_event(&event);
        /* what fitted is there */
        for (int i = 0; i < 4; ++i) {
            REQUIRE_EQ(i, small.good().wr_id);
        }
    }, false);
}

TEST_F(test_device_strict, cq_overrun_that_was_asked_for)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        cq small(c, 3, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN), q(c, 64);
        qp a(c, small, q), b(c, q, q);

        a.connect(b.addr());
        b.connect(a.addr(&mem));
        for (int i = 0; i < 12; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {mem.sge(0, 8)});
            a.send(wr.to(b.addr(&mem), 0));
        }
        REQUIRE_EQ(IBV_QPS_RTS, a.state());
        /* the last four have taken the places of the others */
        for (int i = 8; i < 12; ++i) {
            REQUIRE_EQ(i, small.good().wr_id);
        }
    });
    EXPECT_TRUE(take_violations().empty());
}

TEST_F(test_device_strict, cq_ci)
{
    provoke("cq_ci", []() {
        context c;
        memory mem(c, 4096);
        cq small(c, 3), q(c, 64);
        qp a(c, small, q), b(c, q, q);
        mlx5dv_cq dv = small.direct();

        a.connect(b.addr());
        b.connect(a.addr());
        for (int i = 0; i < 5; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {mem.sge(0, 8)});
            if (i == 4) {
                *(volatile uint32_t*)dv.dbrec = htobe32(100);
            }
            a.send(wr.to(b.addr(&mem), 0));
        }
    }, false);
}

TEST_F(test_device_strict, db_uncovered)
{
    provoke("db_uncovered", []() {
        loop l;
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_NOP);

        w.write();
        sq.doorbell(w.head());
        l.scq.empty();
        /* the record comes late, but it comes */
        sq.record(sq.pi);
        raw_wqe next(sq, MLX5_OPCODE_NOP);
        next.post();
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
    });
}

TEST_F(test_device_strict, db_qpn_of_nobody_and_of_another_process)
{
    provoke("db_qpn", []() {
        loop l;
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_NOP);

        w.ctrl()->qpn_ds = htobe32(0xfffe01);
        w.write();
        sq.record(sq.pi);
        sq.doorbell(w.head());
        l.scq.empty();
    }, false);

    run(2, [](rank &r) {
        loop l;

        r.publish(l.a.v->qp_num);
        r.barrier();
        if (r.index == 0) {
            raw_sq sq(l.a.v);
            raw_wqe w(sq, MLX5_OPCODE_NOP);

            w.ctrl()->qpn_ds = htobe32((r.lookup<uint32_t>(1) << 8) | 1);
            w.write();
            sq.record(sq.pi);
            sq.doorbell(w.head());
        }
        r.barrier();
        REQUIRE_EQ(IBV_QPS_RTS, l.a.state());
    });
    expect("db_qpn", false);
}

TEST_F(test_device_strict, db_value_of_an_older_request)
{
    provoke("db_value", []() {
        loop l;
        raw_sq sq(l.a.v);
        raw_wqe first(sq, MLX5_OPCODE_NOP);

        first.write();
        raw_wqe second(sq, MLX5_OPCODE_NOP);
        second.write();
        sq.record(sq.pi);
        sq.doorbell(first.head());
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
    });
}

/* Without a size it is the number of the next request, as GPUs write it; how
 * they do it right is in test_device_warps */
TEST_F(test_device_strict, db_value_of_no_size_and_far_ahead_of_the_record)
{
    provoke("db_value", []() {
        loop l;
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_NOP);

        w.write();
        sq.record(sq.pi);
        sq.doorbell(htobe32(0x7000 << 8) | ((uint64_t)htobe32(sq.qpn << 8)
                                            << 32));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
    });
}

TEST_F(test_device_strict, db_state_of_a_queue_pair_that_is_not_ready)
{
    provoke("db_state", []() {
        context c;
        cq q(c, 16);
        qp a(c, q, q);
        raw_sq sq(a.v);
        raw_wqe w(sq, MLX5_OPCODE_NOP);

        a.to_init();
        w.post();
        q.empty();
    });
}

TEST_F(test_device_strict, db_offset)
{
    for (unsigned offset : {0u, 0x30u, 0x7f8u}) {
        provoke("db_offset", [=]() {
            loop l;
            raw_sq sq(l.a.v);
            raw_wqe w(sq, MLX5_OPCODE_NOP);
            uintptr_t page = (uintptr_t)sq.dv.bf.reg & ~4095ul;

            w.write();
            sq.record(sq.pi);
            *(volatile uint64_t*)(page + offset) = w.head();
            l.scq.empty();
        }, false);
    }
}

/* Two stores with nothing between them, which one signal takes */
__attribute__((no_sanitize("address", "thread", "undefined"), optimize("O2")))
static void store_in_turn(volatile uint64_t *to, uint64_t value)
{
    to[0] = value;
    to[1] = value;
}

/* Registers that follow each other are not one: the second rings */
TEST_F(test_device_strict, db_offset_in_front_of_a_register)
{
    provoke("db_offset", []() {
        loop l;
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_NOP);
        uintptr_t page = (uintptr_t)sq.dv.bf.reg & ~4095ul;

        w.write();
        sq.record(sq.pi);
        store_in_turn((volatile uint64_t*)(page + 0x7f8), w.head());
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
    }, false);
}

TEST_F(test_device_strict, bf_mismatch)
{
    for (unsigned place : {40u, 47u /* the last */}) {
        provoke("bf_mismatch", [=]() {
            loop l;
            raw_sq sq(l.a.v);
            raw_wqe w(sq, MLX5_OPCODE_RDMA_WRITE);
            uint64_t data = 5;

            w.raddr(l.to_b.addr, l.to_b.rkey).inl(&data, 8);
            w.write();
            sq.record(sq.pi);
            w.bytes[place] ^= 1;
            sq.blueflame(w.bytes, 1);
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        });
    }
}

TEST_F(test_device_strict, cq_arm)
{
    for (unsigned what : {0u, 1u, 2u}) {
        provoke("cq_arm", [=]() {
            context c;
            ibv_comp_channel *channel = ibv_create_comp_channel(c.ctx);
            {
                cq q(c, 16, channel);
                mlx5dv_cq dv   = {};
                mlx5dv_obj obj = {};
                uint32_t word  = 0, cqn;

                obj.cq.in  = q.v;
                obj.cq.out = &dv;
                REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
                cqn = dv.cqn;
                if (what == 0) {
                    cqn = 0xfff0;   /* no such CQ */
                } else if (what == 1) {
                    word = 50;      /* consumed more than there was */
                } else {
                    word = 1 << 28; /* not what the record says */
                }
                dv.dbrec[1] = htobe32((what == 2) ? 0 : word);
                *(volatile uint64_t*)((char*)dv.cq_uar + 0x20) =
                        htobe64(((uint64_t)word << 32) | cqn);
            }
            ibv_destroy_comp_channel(channel);
        }, false);
    }
}

/* As rc_mlx5 of UCX 1.14 and later does it without DevX: it reads the ring by
 * itself, and lets libmlx5 arm, which takes its own consumer index
 * (mlx5_arm_cq() in its cq.c). On an adapter, events are missed then (UCX issue
 * 11728) */
TEST_F(test_device_strict, cq_arm_with_the_index_of_who_does_not_poll)
{
    provoke("cq_arm", []() {
        context c;
        ibv_comp_channel *channel = ibv_create_comp_channel(c.ctx);
        {
            cq q(c, 16, channel);
            qp a(c, q, q);
            mlx5dv_cq dv   = {};
            mlx5dv_obj obj = {};

            obj.cq.in  = q.v;
            obj.cq.out = &dv;
            REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
            a.connect(a.addr());
            raw_sq sq(a.v);
            /* Twice round: at the end, libmlx5 sees an empty ring again */
            for (uint32_t i = 0; i < 2 * dv.cqe_cnt; ++i) {
                raw_wqe w(sq, MLX5_OPCODE_NOP);
                auto *cqe = (volatile mlx5_cqe64*)(
                        (char*)dv.buf + (i % dv.cqe_cnt) * dv.cqe_size);
                uint8_t lap = (i / dv.cqe_cnt) & 1;

                w.post();
                while (((cqe->op_own & 1) != lap) ||
                       ((cqe->op_own >> 4) == MLX5_CQE_INVALID)) {
                    patience::pause();
                }
                dv.dbrec[0] = htobe32(i + 1);
                if (i == 0) {
                    /* One behind is late but not wrong: it fires at once */
                    ibv_cq *from;
                    void *arg;

                    REQUIRE_EQ(0, ibv_req_notify_cq(q.v, 0));
                    REQUIRE_EQ(0, ibv_get_cq_event(channel, &from, &arg));
                    ibv_ack_cq_events(from, 1);
                }
            }
            REQUIRE_EQ(0, ibv_req_notify_cq(q.v, 0));
        }
        ibv_destroy_comp_channel(channel);
    }, false);
}

TEST_F(test_device_strict, uar_of_another_queue_pair)
{
    provoke("uar", []() {
        context c;
        cq q(c, 16);
        std::vector<ibv_td*> tds;
        std::vector<ibv_pd*> pds;
        std::vector<std::unique_ptr<qp>> qps;

        /* consecutive thread domains share a page in pairs */
        for (int i = 0; i < 3; ++i) {
            ibv_td_init_attr td_attr         = {};
            ibv_parent_domain_init_attr attr = {};

            tds.push_back(ibv_alloc_td(c.ctx, &td_attr));
            attr.pd = c.pd;
            attr.td = tds.back();
            pds.push_back(ibv_alloc_parent_domain(c.ctx, &attr));
            qps.emplace_back(new qp(c, q, q, {.pd = pds.back()}));
            qps[i]->connect(qps[i]->addr());
        }

        raw_sq sq0(qps[0]->v), sq2(qps[2]->v);
        raw_wqe w(sq0, MLX5_OPCODE_NOP);
        REQUIRE(((uintptr_t)sq0.dv.bf.reg >> 12) !=
                ((uintptr_t)sq2.dv.bf.reg >> 12));
        w.write();
        sq0.record(sq0.pi);
        sq2.doorbell(w.head());
        q.good();

        qps.clear();
        for (int i = 0; i < 3; ++i) {
            ibv_dealloc_pd(pds[i]);
            ibv_dealloc_td(tds[i]);
        }
    });
}

TEST_F(test_device_strict, qp_transition_and_attributes)
{
    provoke("qp_transition", []() {
        context c;
        cq q(c, 16);
        qp a(c, q, q);
        ibv_qp_attr attr = {};

        attr.qp_state = IBV_QPS_RTS;
        REQUIRE_EQ(EINVAL, ibv_modify_qp(a.v, &attr, IBV_QP_STATE |
                                                     IBV_QP_SQ_PSN));
        REQUIRE_EQ(IBV_QPS_RESET, a.state());
    }, false);

    provoke("qp_attr", []() {
        context c;
        cq q(c, 16);
        qp a(c, q, q);
        ibv_qp_attr attr = {};

        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        REQUIRE_EQ(EINVAL, ibv_modify_qp(a.v, &attr, IBV_QP_STATE |
                                                     IBV_QP_PORT));
        REQUIRE_EQ(EINVAL, ibv_modify_qp(a.v, &attr,
                                         IBV_QP_STATE | IBV_QP_PORT |
                                         IBV_QP_PKEY_INDEX |
                                         IBV_QP_ACCESS_FLAGS | IBV_QP_RQ_PSN));
        REQUIRE_EQ(IBV_QPS_RESET, a.state());
    }, false);
}

TEST_F(test_device_strict, reports_are_limited_and_can_be_switched_off)
{
    run(1, [](rank&) {
        loop l;
        raw_sq sq(l.a.v);

        for (int i = 0; i < 1000; ++i) {
            raw_wqe w(sq, MLX5_OPCODE_NOP);
            w.ctrl()->fm_ce_se |= 0x10;
            w.post();
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        }
    });
    EXPECT_EQ(100u, take_violations().size());

    set_env("MLX5SIM_STRICT", "n");
    run(1, [](rank&) {
        loop l;
        raw_sq sq(l.a.v);
        raw_wqe w(sq, MLX5_OPCODE_NOP);

        w.ctrl()->fm_ce_se |= 0x10;
        w.post();
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
    });
    EXPECT_TRUE(take_violations().empty());
}

/*
 * Atomics that plain verbs do not have, as UCX posts them
 */

class test_device_atomic : public device::test {
};

TEST_F(test_device_atomic, extended_atomics_of_4_and_8_bytes)
{
    run(1, [](rank&) {
        loop l;
        raw_sq sq(l.a.v);
        uint32_t *word  = (uint32_t*)l.peer_mem.data;
        uint64_t *dword = (uint64_t*)(l.peer_mem.data + 64);
        uint32_t *old32 = (uint32_t*)l.mem.data;
        uint64_t *old64 = (uint64_t*)(l.mem.data + 8);
        const unsigned size4 = 8, size8 = 8 | 1;

        auto finish = [&](raw_wqe &w, unsigned size) {
            w.data(l.mem.sge((size == 4) ? 0 : 8, size));
            w.post(true);
            REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        };

        /* 4-byte fetch and add: neighbours stay */
        word[0] = 0x11111111;
        word[1] = 0xfffffffe;
        word[2] = 0x22222222;
        uint32_t fa32[4] = {htobe32(3), 0, 0, 0};
        raw_wqe w1(sq, MLX5_OPCODE_ATOMIC_MASKED_FA, size4);
        w1.raddr(l.to_b.addr + 4, l.to_b.rkey).raw(fa32, 16);
        finish(w1, 4);
        REQUIRE_EQ(1, word[1]);
        REQUIRE_EQ(0x11111111, word[0]);
        REQUIRE_EQ(0x22222222, word[2]);
        REQUIRE_EQ(0xfffffffe, be32toh(*old32)); /* as hardware returns it */

        /* 4-byte swap: compare mask 0 */
        uint32_t cs32[4] = {htobe32(0xabcd), 0, 0xffffffff, 0};
        raw_wqe w2(sq, MLX5_OPCODE_ATOMIC_MASKED_CS, size4);
        w2.raddr(l.to_b.addr + 4, l.to_b.rkey).raw(cs32, 16);
        finish(w2, 4);
        REQUIRE_EQ(0xabcd, word[1]);
        REQUIRE_EQ(1, be32toh(*old32));

        /* 8-byte masked compare and swap: only some bits count and change */
        *dword = 0x1234567890abcdeful;
        uint64_t cs64[4] = {htobe64(0xff), htobe64(0x1200000000000000ul),
                            htobe64(0xff), htobe64(0xff00000000000000ul)};
        raw_wqe w3(sq, MLX5_OPCODE_ATOMIC_MASKED_CS, size8);
        w3.raddr(l.to_b.addr + 64, l.to_b.rkey).raw(cs64, 32);
        finish(w3, 8);
        REQUIRE_EQ(0x1234567890abcdfful, *dword);
        REQUIRE_EQ(0x1234567890abcdeful, *old64);

        /* 8-byte add with a field boundary: no carry out of the low half */
        *dword = 0x00000001fffffffful;
        uint64_t fa64[2] = {htobe64(1), htobe64(0x80000000ul)};
        raw_wqe w4(sq, MLX5_OPCODE_ATOMIC_MASKED_FA, size8);
        w4.raddr(l.to_b.addr + 64, l.to_b.rkey).raw(fa64, 16);
        finish(w4, 8);
        REQUIRE_EQ(0x0000000100000000ul, *dword);

        /* plain ones through raw requests: host order */
        *dword = 41;
        uint64_t plain[2] = {htobe64(1), 0};
        raw_wqe w5(sq, MLX5_OPCODE_ATOMIC_FA);
        w5.raddr(l.to_b.addr + 64, l.to_b.rkey).raw(plain, 16);
        finish(w5, 8);
        REQUIRE_EQ(42, *dword);
    });
}
