/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The dynamically connected transport by firmware commands: targets, which come
 * to be ready, and initiators, which are queue pairs.
 */

#include <common/seed.h>
#include <device/device_devx.h>

#include <random>
#include <set>

#include <unistd.h>

using namespace device;

namespace {

const uint64_t key = 0x1122334455667788ul;

/* CREATE_QP of an initiator */
command dci_command(const umem &mem, size_t offset, size_t record,
                    const uar &u, uint32_t pd, uint32_t cqn)
{
    return qp_command(mem, offset, record, u, pd, cqn, 0)
            .set(qpc_bit + 8, 8, 5);
}

/* From RESET to RTS, as UCX does */
void connect_dci(object &dci, unsigned timeout = 18, unsigned retries = 7)
{
    unsigned status;
    command rtr(fw_init2rtr, fw_queue_size, dci.number);

    rtr.set(128, 32, 1 << 2).set(qpc_bit + 64, 3, IBV_MTU_1024);
    rtr.set(qpc_bit + 67, 5, 30).set(qpc_bit + 1164, 4, 3);
    rtr.set(qpc_bit + 1170, 1, 1);
    REQUIRE_EQ(0, dci.modify(command(fw_rst2init, fw_queue_size, dci.number)
                             .set(qpc_bit + 488, 8, 1), &status));
    REQUIRE_EQ(0, dci.modify(rtr, &status));
    REQUIRE_EQ(0, dci.modify(rtr2rts_command(dci.number)
                             .set(qpc_bit + 256, 5, timeout)
                             .set(qpc_bit + 909, 3, retries), &status));
}

/* An initiator and a target on queues of commands */
struct dc_loop : public devx_loop {
    static const size_t dci_offset = 10240;
    static const size_t dci_record = records + 256;

    explicit dc_loop(unsigned log_streams = 0, unsigned log_errored = 0) :
        dct(c.ctx, dct_command(c, pd, cq.number, rmp.number, key)),
        dci(c.ctx, dci_command(queues, dci_offset, dci_record, page, pd,
                               cq.number)
                   .set(qpc_bit + 995, 5, log_streams)
                   .set(qpc_bit + 1027, 5, log_errored))
    {
    }

    /* Post a request to a target: behind the address, its operation and data */
    void post_dc(unsigned opcode, const void *rest, size_t size,
                 uint32_t dctn, uint64_t dc_key = key, uint16_t stream = 0)
    {
        volatile uint32_t *record = (uint32_t*)(queues.data + dci_record);
        uint8_t wqe[128]          = {};
        auto *ctrl                = (mlx5_wqe_ctrl_seg*)wqe;
        auto *av                  = (mlx5_wqe_av*)(wqe + 16);

        ctrl->opmod_idx_opcode = htobe32(((uint32_t)dci_pi << 8) | opcode);
        ctrl->qpn_ds           = htobe32((dci.number << 8) | (4 + size / 16));
        ctrl->fm_ce_se         = MLX5_WQE_CTRL_CQ_UPDATE;
        ctrl->dci_stream_channel_id = htobe16(stream);
        av->key.dc_key         = htobe64(dc_key);
        av->dqp_dct            = htobe32(dctn | 0x80000000u);
        if (c.is_roce) {
            av->hop_limit  = 64;
            av->grh_gid_fl = htobe32(1u << 30);
            memcpy(av->rgid, c.gid.raw, 16);
        } else {
            av->rlid = htobe16(c.lid);
        }
        memcpy(wqe + 64, rest, size);
        for (unsigned i = 0; i < 2; ++i) {
            memcpy(queues.data + dci_offset +
                   ((dci_pi + i) % (1u << ring_log)) * 64, wqe + i * 64, 64);
        }
        dci_pi += 2;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        record[MLX5_SND_DBR] = htobe32(dci_pi);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        uint64_t first;
        memcpy(&first, wqe, sizeof(first));
        *(volatile uint64_t*)page.v->reg_addr = first;
    }

    void write_dc(const ibv_sge &from, const ibv_sge &to, uint32_t dctn,
                  uint64_t dc_key = key, uint16_t stream = 0)
    {
        struct {
            mlx5_wqe_raddr_seg raddr;
            mlx5_wqe_data_seg  data;
        } rest = {};

        rest.raddr.raddr     = htobe64(to.addr);
        rest.raddr.rkey      = htobe32(to.lkey);
        rest.data.byte_count = htobe32(from.length);
        rest.data.lkey       = htobe32(from.lkey);
        rest.data.addr       = htobe64(from.addr);
        post_dc(MLX5_OPCODE_RDMA_WRITE, &rest, sizeof(rest), dctn, dc_key,
                stream);
    }

    void send_dc(const ibv_sge &from, uint32_t dctn)
    {
        mlx5_wqe_data_seg data = {};

        data.byte_count = htobe32(from.length);
        data.lkey       = htobe32(from.lkey);
        data.addr       = htobe64(from.addr);
        post_dc(MLX5_OPCODE_SEND, &data, sizeof(data), dctn);
    }

    /* Several times round all queues */
    void exchange(unsigned count)
    {
        const size_t to = 1 << 15;

        for (unsigned i = 0; i < count; ++i) {
            memset(mem.data, i + 1, 100);
            write_dc(mem.sge(0, 100), mem.sge(to, 100), dct.number);
            REQUIRE_EQ(MLX5_CQE_REQ, next());
            REQUIRE_EQ(0, memcmp(mem.data, mem.data + to, 100));

            recv(mem.sge(to + 4096 + i * 128, 128));
            send_dc(mem.sge(0, 100), dct.number);
            REQUIRE_EQ(MLX5_CQE_REQ + MLX5_CQE_RESP_SEND, next() + next());
            REQUIRE_EQ(0, memcmp(mem.data, mem.data + to + 4096 + i * 128,
                                 100));
        }
    }

    object   dct, dci;
    uint16_t dci_pi = 0;
};

class test_device_devx_dc : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
        set_env("MLX5SIM_DC", "y");
        set_env("MLX5SIM_LOG", "error");
    }
};

} // namespace


TEST_F(test_device_devx_dc, data_moves)
{
    for (const char *link : {"ib", "roce"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + link);
        set_env("MLX5SIM_LINK", link);
        run(1, [](rank&) {
            dc_loop l;

            connect_dci(l.dci);
            l.exchange(40);
        });
    }
}

TEST_F(test_device_devx_dc, data_moves_in_deferred_execution)
{
    for (const char *seed : {"1", "2", "3"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + seed);
        set_env("MLX5SIM_EXEC", "deferred");
        set_env("MLX5SIM_SEED", seed);
        set_env("MLX5SIM_LOSS", "200");
        run(1, [](rank&) {
            dc_loop l;

            connect_dci(l.dci);
            l.exchange(40);
        });
    }
}

TEST_F(test_device_devx_dc, capabilities_tell_of_it)
{
    for (const char *dc : {"n", "y"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + dc);
        set_env("MLX5SIM_DC", dc);
        run(1, [=](rank&) {
            context c;
            command q(0x100);
            bytes out(16 + 4096);
            unsigned has = *dc == 'y';

            q.set(48, 16, 1);
            REQUIRE_EQ(0, mlx5dv_devx_general_cmd(c.ctx, q.in.data(),
                                                  q.in.size(), out.data(),
                                                  out.size()));
            REQUIRE_EQ(has, get(out, 128 + 538, 1));
            REQUIRE_EQ(4 * has, get(out, 128 + 298, 6));
            /* the extended QPC is for the send scheduler, too */
            REQUIRE_EQ(1, get(out, 128 + 290, 1));
            REQUIRE_EQ(8 * has, get(out, 128 + 1419, 5)); /* streams, */
            REQUIRE_EQ(4 * has, get(out, 128 + 1427, 5)); /* in error */
            REQUIRE_EQ((unsigned)bad_res + (has ? 0 : bad_op - bad_res),
                       refused(c.ctx, command(fw_create_dct, fw_dct_size)));
        });
    }
}

TEST_F(test_device_devx_dc, queries_tell_what_was_asked_for)
{
    run(1, [](rank&) {
        const unsigned f = dctc_bit;
        dc_loop l;
        unsigned status;

        connect_dci(l.dci);
        bytes q = l.dct.query(fw_query_dct, fw_dct_size);
        REQUIRE_EQ(0u, get(q, f + 4, 4)); /* active */
        REQUIRE_EQ(0x654321u, get(q, f + 40, 24));
        REQUIRE_EQ(l.cq.number, get(q, f + 72, 24));
        REQUIRE_EQ(7u, get(q, f + 108, 3)); /* RRE, RWE, RAE */
        REQUIRE_EQ(1u, get(q, f + 147, 5));
        REQUIRE_EQ(l.rmp.number, get(q, f + 168, 24));
        REQUIRE_EQ(l.pd, get(q, f + 200, 24));
        REQUIRE_EQ(key, get(q, f + 256, 64));
        REQUIRE_EQ((unsigned)IBV_MTU_1024, get(q, f + 325, 3));
        REQUIRE_EQ(1u, get(q, f + 328, 8));

        q = l.dci.query(fw_query_qp, fw_queue_size);
        REQUIRE_EQ(3u, get(q, qpc_bit, 4)); /* RTS */
        REQUIRE_EQ(5u, get(q, qpc_bit + 8, 8)); /* DCI */
        REQUIRE_EQ(3u, get(q, qpc_bit + 1381, 3)); /* no receives */

        /* a target has its own commands, and no others are for it */
        command other(fw_query_qp, 16, l.dct.number);
        bytes out(fw_queue_size);
        REQUIRE_EQ(EINVAL, mlx5dv_devx_obj_query(l.dct.v, other.in.data(), 16,
                                                 out.data(), out.size()));
        REQUIRE_EQ(EINVAL, l.dct.modify(command(fw_2err, 16, l.dct.number),
                                        &status));
        REQUIRE_EQ(EINVAL, l.dci.modify(command(fw_drain_dct, 16,
                                                l.dci.number), &status));
        other = command(fw_query_dct, 16, l.dct.number);
        out.resize(fw_dct_size - 1);
        REQUIRE_EQ(EREMOTEIO, mlx5dv_devx_obj_query(l.dct.v, other.in.data(),
                                                    16, out.data(),
                                                    out.size()));
        REQUIRE_EQ(bad_out_len, out[0]);

        /* what it names stays as long as it does */
        REQUIRE(mlx5dv_devx_obj_destroy(l.rmp.v) != 0);
        REQUIRE_EQ(EBUSY, errno);
    });
}

TEST_F(test_device_devx_dc, wrong_fields_are_refused)
{
    run(1, [](rank&) {
        const unsigned f = dctc_bit;
        dc_loop l;
        ibv_context *ctx = l.c.ctx;
        command d = dct_command(l.c, l.pd, l.cq.number, l.rmp.number, key);
        command q = dci_command(l.queues, dc_loop::dci_offset,
                                dc_loop::dci_record, l.page, l.pd,
                                l.cq.number);
        unsigned status;

        REQUIRE_EQ(bad_res, refused(ctx, command(d).set(f + 72, 24, 0xffff)));
        REQUIRE_EQ(bad_res, refused(ctx, command(d).set(f + 168, 24, 0xffff)));
        REQUIRE_EQ(bad_res, refused(ctx, command(d).set(f + 200, 24, 0xffff)));
        REQUIRE_EQ(bad_param, refused(ctx, command(d).set(f + 24, 4, 1)));
        REQUIRE_EQ(bad_param, refused(ctx, command(d).set(f + 325, 3, 0)));
        REQUIRE_EQ(bad_param, refused(ctx, command(d).set(f + 325, 3, 6)));
        REQUIRE_EQ(bad_param, refused(ctx, command(d).set(f + 328, 8, 0)));
        REQUIRE_EQ(bad_param, refused(ctx, command(d).set(f + 328, 8, 3)));
        REQUIRE_EQ(bad_param, refused(ctx, command(d).set(f + 336, 16, 999)));
        command cut = d;
        cut.in.resize(fw_dct_size - 1);
        REQUIRE_EQ(bad_in_len, refused(ctx, cut));

        /* an initiator takes nothing, and has only so many streams */
        REQUIRE_EQ(bad_param, refused(ctx, command(q).set(qpc_bit + 1381, 3,
                                                          0)));
        REQUIRE_EQ(bad_param, refused(ctx, command(q).set(qpc_bit + 995, 5,
                                                          9)));
        REQUIRE_EQ(bad_param, refused(ctx, command(q).set(qpc_bit + 1027, 5,
                                                          5)));
        REQUIRE_EQ(bad_param, refused(ctx, command(q).set(qpc_bit + 8, 8, 4)));
        REQUIRE_EQ(EREMOTEIO, l.dci.modify(rtr2rts_command(l.dci.number),
                                           &status));
        REQUIRE_EQ(bad_qp_state, status);
    });
}

/* What has a wrong key, or comes to a target that was drained, is not answered.
 * The initiator serves again when it was reset. */
TEST_F(test_device_devx_dc, who_does_not_answer_is_an_error)
{
    run(1, [](rank&) {
        dc_loop l;
        unsigned status;

        for (bool is_drained : {false, true}) {
            if (is_drained) {
                REQUIRE_EQ(0, l.dct.modify(command(fw_drain_dct, 16,
                                                   l.dct.number), &status));
                REQUIRE_EQ(2u, get(l.dct.query(fw_query_dct, fw_dct_size),
                                   dctc_bit + 4, 4));
            }
            connect_dci(l.dci, 8, 1);
            l.mem.data[64] = 0x77;
            l.write_dc(l.mem.sge(0, 8), l.mem.sge(64, 8), l.dct.number,
                       is_drained ? key : key + 1);
            l.write_dc(l.mem.sge(0, 8), l.mem.sge(64, 8), l.dct.number);
            REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
            REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
            REQUIRE_EQ(0x77, l.mem.data[64]);
            REQUIRE_EQ(6u, get(l.dci.query(fw_query_qp, fw_queue_size),
                               qpc_bit, 4));
            REQUIRE_EQ(0, l.dci.modify(command(fw_2rst, 16, l.dci.number),
                                       &status));
            l.dci_pi = 0;
            ((uint32_t*)(l.queues.data + dc_loop::dci_record))[1] = 0;
        }
    });
}

/* UCX resets an initiator that has failed, and does not clear its record */
TEST_F(test_device_devx_dc, record_from_before_a_reset_counts_for_nothing)
{
    run(1, [](rank&) {
        dc_loop l;
        unsigned status;

        for (unsigned i = 0; i < 3; ++i) {
            connect_dci(l.dci);
            usleep(20000);
            l.exchange(3);
            REQUIRE_EQ(0, l.dci.modify(command(fw_2rst, 16, l.dci.number),
                                       &status));
            l.dci_pi = 0;
        }
    });
}

/* Requests say which service level their answers are to have (UCX,
 * reverse_sl) */
TEST_F(test_device_devx_dc, service_level_of_answers_is_no_mistake)
{
    set_env("MLX5SIM_LINK", "ib");
    run(1, [](rank&) {
        dc_loop l;

        connect_dci(l.dci);
        l.write_dc(l.mem.sge(0, 8), l.mem.sge(64, 8),
                   l.dct.number | 0x0f000000);
        REQUIRE_EQ(MLX5_CQE_REQ, l.next());
    });
    EXPECT_TRUE(take_violations().empty());
    run(1, [](rank&) {
        dc_loop l;

        connect_dci(l.dci);
        l.write_dc(l.mem.sge(0, 8), l.mem.sge(64, 8),
                   l.dct.number | 0x10000000);
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
    });
    EXPECT_EQ(1u, take_violations().size());
}

/* RTS2RTS_QP that resets a stream */
static command reset_command(uint32_t qpn, uint16_t stream)
{
    return command(fw_rts2rts, fw_extended_size, qpn)
            .set(64, 1, 1).set(2112, 64, 1).set(2192, 16, stream);
}

TEST_F(test_device_devx_dc, streams_are_reset_by_an_extended_context)
{
    run(1, [](rank&) {
        dc_loop l(8, 4);
        unsigned status;
        bytes q;

        connect_dci(l.dci);
        q = l.dci.query(fw_query_qp, fw_queue_size);
        REQUIRE_EQ(8u, get(q, qpc_bit + 995, 5));
        REQUIRE_EQ(4u, get(q, qpc_bit + 1027, 5));

        l.write_dc(l.mem.sge(0, 8), {0, 8, 0xff00}, l.dct.number, key, 300);
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());

        /* not another one, nor by a command that is too short, asks for more,
         * or is another transition */
        REQUIRE_EQ(EREMOTEIO, l.dci.modify(reset_command(l.dci.number, 301),
                                           &status));
        REQUIRE_EQ(bad_param, status);
        command c = reset_command(l.dci.number, 300);
        c.in.resize(fw_extended_size - 1);
        REQUIRE_EQ(EREMOTEIO, l.dci.modify(c, &status));
        REQUIRE_EQ(bad_in_len, status);
        c = reset_command(l.dci.number, 300).set(2112, 64, 3);
        REQUIRE_EQ(EREMOTEIO, l.dci.modify(c, &status));
        REQUIRE_EQ(bad_param, status);
        c = reset_command(l.dci.number, 300).set(0, 16, fw_rtr2rts);
        REQUIRE_EQ(EREMOTEIO, l.dci.modify(c, &status));
        REQUIRE_EQ(bad_qp_state, status);
        c = reset_command(l.dci.number, 300).set(2112, 64, 0);
        REQUIRE_EQ(0, l.dci.modify(c, &status)); /* asks for nothing */
        l.write_dc(l.mem.sge(0, 8), l.mem.sge(64, 8), l.dct.number, key, 300);
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());

        REQUIRE_EQ(0, l.dci.modify(reset_command(l.dci.number, 300), &status));
        l.write_dc(l.mem.sge(0, 8), l.mem.sge(64, 8), l.dct.number, key, 300);
        REQUIRE_EQ(MLX5_CQE_REQ, l.next());
    });
}

/* As UCX asks for them: the first error is one of the queue pair */
TEST_F(test_device_devx_dc, streams_without_those_in_error)
{
    run(1, [](rank&) {
        dc_loop l(8);

        connect_dci(l.dci);
        l.write_dc(l.mem.sge(0, 8), {0, 8, 0xff00}, l.dct.number, key, 1);
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
        REQUIRE_EQ(6u, get(l.dci.query(fw_query_qp, fw_queue_size), qpc_bit,
                           4));
    });
}

/* Its stream is not to be believed */
TEST_F(test_device_devx_dc, malformed_request_fails_all_streams)
{
    run(1, [](rank&) {
        mlx5_wqe_data_seg data = {};
        dc_loop l(8, 4);

        connect_dci(l.dci);
        l.post_dc(MLX5_OPCODE_TSO, &data, sizeof(data), l.dct.number, key, 1);
        REQUIRE_EQ(MLX5_CQE_REQ_ERR, l.next());
        REQUIRE_EQ(6u, get(l.dci.query(fw_query_qp, fw_queue_size), qpc_bit,
                           4));
    });
    EXPECT_FALSE(take_violations().empty());
}

/* Streams come, fail and are reset at random, beside a model of them */
TEST_F(test_device_devx_dc, fuzz_of_streams)
{
    run(1, [](rank&) {
        std::mt19937_64 random(seed::get());
        std::set<unsigned> errored;
        dc_loop l(8, 3);
        unsigned status;

        connect_dci(l.dci);
        for (unsigned i = 0; i < seed::cases(500); ++i) {
            unsigned stream = random() % 12;
            unsigned was    = errored.count(stream);

            if (random() % 4 == 0) {
                command c = reset_command(l.dci.number, stream);

                if (random() % 4 == 0) {
                    spoil(c, random);
                    c.in.resize(random() % 4 ? fw_extended_size :
                                               fw_extended_size - 8);
                    c.set(2112, 64, 2); /* it resets nothing */
                    (void)l.dci.modify(c, &status);
                    continue;
                }
                REQUIRE_EQ(was ? 0 : EREMOTEIO, l.dci.modify(c, &status));
                errored.erase(stream);
                continue;
            }

            int fails = random() % 4 == 0;
            l.write_dc(l.mem.sge(0, 8),
                       fails ? ibv_sge{0, 8, 0xff00} : l.mem.sge(64, 8),
                       l.dct.number, key, stream);
            REQUIRE_EQ((fails || was) ? MLX5_CQE_REQ_ERR : MLX5_CQE_REQ,
                       l.next());
            if (fails) {
                errored.insert(stream);
            }
            REQUIRE_EQ((errored.size() < 8) ? 3u : 6u,
                       get(l.dci.query(fw_query_qp, fw_queue_size), qpc_bit,
                           4));
            if (errored.size() == 8) {
                REQUIRE_EQ(0, l.dci.modify(command(fw_2rst, 16, l.dci.number),
                                           &status));
                connect_dci(l.dci);
                l.dci_pi = 0;
                *(uint64_t*)(l.queues.data + dc_loop::dci_record) = 0;
                errored.clear();
            }
        }
    });
}

TEST_F(test_device_devx_dc, fuzz_of_commands)
{
    run(1, [](rank&) {
        std::mt19937_64 random(seed::get());
        dc_loop l;

        for (unsigned i = 0; i < seed::cases(1000); ++i) {
            command all[] = {
                dct_command(l.c, l.pd, l.cq.number, l.rmp.number, key),
                dci_command(l.queues, dc_loop::dci_offset,
                            dc_loop::dci_record + 64, l.page, l.pd,
                            l.cq.number),
                command(fw_drain_dct, 16, l.dct.number),
                command(fw_query_dct, 16, l.dct.number),
                command(0x714, 16, l.dct.number)
            };
            command c = all[random() % (sizeof(all) / sizeof(all[0]))];
            bytes out(16 + random() % 300);

            spoil(c, random);
            c.in.reserve(64);
            auto *made = mlx5dv_devx_obj_create(l.c.ctx, c.in.data(),
                                                c.in.size(), out.data(),
                                                out.size());
            if (made != nullptr) {
                REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(made));
            } else if (random() % 16 == 0) {
                (void)mlx5dv_devx_obj_modify(l.dct.v, c.in.data(),
                                             c.in.size(), out.data(),
                                             out.size());
            } else {
                (void)mlx5dv_devx_obj_query(l.dct.v, c.in.data(), c.in.size(),
                                            out.data(), out.size());
            }
        }

        /* and what was there before still works, but for being drained */
        object other(l.c.ctx, dct_command(l.c, l.pd, l.cq.number, l.rmp.number,
                                          key));
        connect_dci(l.dci);
        l.mem.data[0] = 0x55;
        l.write_dc(l.mem.sge(0, 8), l.mem.sge(64, 8), other.number);
        REQUIRE_EQ(MLX5_CQE_REQ, l.next());
        REQUIRE_EQ(0x55, l.mem.data[64]);
    });
}
