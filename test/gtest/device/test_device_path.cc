/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Data path: every operation between two processes, every byte checked.
 */

#include <device/device.h>

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <endian.h>

using namespace device;

namespace {

class test_device_path : public device::test {
};

} // namespace


TEST_F(test_device_path, send_gathers_and_receive_scatters)
{
    run(2, [](rank &r) {
        side s(r);

        /* pieces of odd sizes, also empty ones */
        const std::vector<size_t> from = {13, 0, 4096, 1};
        const std::vector<size_t> to   = {1, 4000, 100, 9};
        const size_t total             = 13 + 4096 + 1;

        if (r.index == 0) {
            std::vector<ibv_sge> list;
            std::vector<uint8_t> bytes(total);
            size_t offset = 100, done = 0;

            pattern::fill(bytes.data(), total, 1);
            for (size_t length : from) {
                memcpy(s.mem.data + offset, bytes.data() + done, length);
                if (length > 0) {
                    list.push_back(s.mem.sge(offset, length));
                }
                offset += length + 77;
                done   += length;
            }
            r.barrier();
            send_wr wr(IBV_WR_SEND, 1, list);
            s.q.send(wr);
            ibv_wc wc = s.scq.good();
            REQUIRE_EQ(1, wc.wr_id);
            REQUIRE_EQ(IBV_WC_SEND, wc.opcode);
        } else {
            std::vector<ibv_sge> list;
            std::vector<uint8_t> bytes;
            size_t offset = 5;

            for (size_t length : to) {
                list.push_back(s.mem.sge(offset, length));
                offset += length + 3;
            }
            s.q.recv(7, list.data(), list.size());
            r.barrier();
            ibv_wc wc = s.rcq.good();
            REQUIRE_EQ(7, wc.wr_id);
            REQUIRE_EQ(IBV_WC_RECV, wc.opcode);
            REQUIRE_EQ(total, wc.byte_len);
            REQUIRE_EQ(s.q.v->qp_num, wc.qp_num);
            offset = 5;
            for (size_t length : to) {
                bytes.insert(bytes.end(), s.mem.data + offset,
                             s.mem.data + offset + length);
                /* nothing between the pieces is touched */
                REQUIRE_EQ(0, s.mem.data[offset + length]);
                offset += length + 3;
            }
            REQUIRE_EQ(total, bytes.size());
            REQUIRE_EQ(total, pattern::check(bytes.data(), total, 1));
        }
        r.barrier();
        s.scq.empty();
        s.rcq.empty();
    });
}

/* As hardware does unless the QP is made without it: memory stays as it was
 * until libmlx5 polls the CQ and copies */
TEST_F(test_device_path, short_messages_are_received_into_completions)
{
    run(2, [](rank &r) {
        const unsigned lengths[] = {1, 31, 32, 33, 64};
        side s(r);

        if (r.index == 0) {
            r.barrier();
            for (unsigned length : lengths) {
                pattern::fill(s.mem.data, length, length);
                send_wr wr(IBV_WR_SEND, 1, {s.mem.sge(0, length)});
                s.q.send(wr);
                s.scq.good();
                r.barrier();
                r.barrier(); /* received */
            }
        } else {
            ibv_sge sge = s.mem.sge(0, 100);

            for (unsigned length : lengths) {
                s.q.recv(length, &sge, 1);
            }
            r.barrier();
            for (unsigned length : lengths) {
                bool is_there;

                r.barrier(); /* sent */
                is_there = (pattern::check(s.mem.data, length, length) ==
                            length);
                REQUIRE_EQ(length > 32, is_there);
                REQUIRE_EQ(length, s.rcq.good().byte_len);
                REQUIRE_EQ(length, pattern::check(s.mem.data, length, length));
                REQUIRE_EQ(0, s.mem.data[length]);
                memset(s.mem.data, 0, 100);
                r.barrier();
            }
        }
    });
}

TEST_F(test_device_path, inline_of_every_size_wraps_around_the_queue)
{
    run(2, [](rank &r) {
        const unsigned num = 600, max = 204;

        /* a queue of few blocks, so that all sizes meet its end */
        side s(r, {.send_wr = 4, .recv_wr = 16, .inline_len = max});

        if (r.index == 1) {
            for (unsigned i = 0; i < 16; ++i) {
                s.q.recv(i, s.mem.sge(i * 1024, 1024));
            }
            r.barrier();
            for (unsigned i = 0; i < num; ++i) {
                ibv_wc wc = s.rcq.good();
                size_t length = i % (max + 1);

                REQUIRE_EQ(i % 16, wc.wr_id);
                REQUIRE_EQ(length, wc.byte_len);
                REQUIRE_EQ(length, pattern::check(s.mem.data + (i % 16) * 1024,
                                                  length, i));
                s.q.recv(i % 16, s.mem.sge((i % 16) * 1024, 1024));
            }
        } else {
            r.barrier();
            for (unsigned i = 0; i < num; ++i) {
                std::vector<ibv_sge> list;
                std::vector<uint8_t> bytes(max + 8);
                size_t length = i % (max + 1), first = length / 3;

                pattern::fill(bytes.data(), length, i);
                /* of unregistered memory, in two pieces */
                list.push_back({(uintptr_t)bytes.data(), (uint32_t)first, 0});
                list.push_back({(uintptr_t)bytes.data() + first,
                                (uint32_t)(length - first), 0});
                send_wr wr(IBV_WR_SEND, i, list, IBV_SEND_INLINE |
                                                 IBV_SEND_SIGNALED);
                s.q.send(wr);
                memset(bytes.data(), 0xff, bytes.size());
                REQUIRE_EQ(i, s.scq.good().wr_id);
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_path, write_and_read_move_what_they_say)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 8 << 20);

        if (r.index == 0) {
            for (size_t length : {1ul, 7ul, 8ul, 64ul, 4096ul, 65537ul,
                                  1048576ul, 3000001ul}) {
                memset(s.mem.data, 0, s.mem.size);
                pattern::fill(s.mem.data + 3, length, length);
                send_wr w(IBV_WR_RDMA_WRITE, 1, {s.mem.sge(3, length)});
                w.to(s.peer, 11);
                s.q.send(w);
                REQUIRE_EQ(IBV_WC_RDMA_WRITE, s.scq.good().opcode);

                send_wr rd(IBV_WR_RDMA_READ, 2,
                           {s.mem.sge((4 << 20) + 1, length / 2),
                            s.mem.sge((6 << 20) + 9, length - length / 2)});
                rd.to(s.peer, 11);
                s.q.send(rd);
                ibv_wc wc = s.scq.good();
                REQUIRE_EQ(IBV_WC_RDMA_READ, wc.opcode);
                REQUIRE_EQ(length, wc.byte_len);

                std::vector<uint8_t> got(s.mem.data + (4 << 20) + 1,
                                         s.mem.data + (4 << 20) + 1 +
                                         length / 2);
                got.insert(got.end(), s.mem.data + (6 << 20) + 9,
                           s.mem.data + (6 << 20) + 9 + length - length / 2);
                REQUIRE_EQ(length, pattern::check(got.data(), length, length));
            }
        }
        r.barrier();
        if (r.index == 1) {
            REQUIRE_EQ(3000001, pattern::check(s.mem.data + 11, 3000001,
                                               3000001));
            REQUIRE_EQ(0, s.mem.data[10]);
            REQUIRE_EQ(0, s.mem.data[11 + 3000001]);
            s.rcq.empty(); /* nothing told the target */
        }
        r.barrier();
    });
}

TEST_F(test_device_path, immediate_data_arrives)
{
    run(2, [](rank &r) {
        side s(r);

        if (r.index == 1) {
            s.q.recv(1, s.mem.sge(0, 0));
            s.q.recv(2, s.mem.sge(4096, 100));
            s.q.recv(3, nullptr, 0);
            r.barrier();
            ibv_wc wc = s.rcq.good();
            REQUIRE_EQ(1, wc.wr_id);
            REQUIRE_EQ(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
            REQUIRE_EQ(IBV_WC_WITH_IMM, wc.wc_flags & IBV_WC_WITH_IMM);
            REQUIRE_EQ(htonl(0xdeadbeef), wc.imm_data);
            REQUIRE_EQ(1000, wc.byte_len);
            REQUIRE_EQ(1000, pattern::check(s.mem.data + 64, 1000, 3));
            wc = s.rcq.good();
            REQUIRE_EQ(2, wc.wr_id);
            REQUIRE_EQ(IBV_WC_RECV, wc.opcode);
            REQUIRE_EQ(htonl(0x01020304), wc.imm_data);
            REQUIRE_EQ(50, wc.byte_len);
            REQUIRE_EQ(50, pattern::check(s.mem.data + 4096, 50, 3));
            wc = s.rcq.good();
            REQUIRE_EQ(3, wc.wr_id);
            REQUIRE_EQ(0, wc.byte_len);
            REQUIRE_EQ(htonl(5), wc.imm_data);
        } else {
            r.barrier();
            pattern::fill(s.mem.data, 1000, 3);
            send_wr w(IBV_WR_RDMA_WRITE_WITH_IMM, 1, {s.mem.sge(0, 1000)});
            w.imm_data = htonl(0xdeadbeef);
            s.q.send(w.to(s.peer, 64));
            send_wr m(IBV_WR_SEND_WITH_IMM, 2, {s.mem.sge(0, 50)});
            m.imm_data = htonl(0x01020304);
            s.q.send(m);
            send_wr e(IBV_WR_RDMA_WRITE_WITH_IMM, 3, {});
            e.imm_data = htonl(5);
            s.q.send(e.to(s.peer, 0));
            for (unsigned i = 1; i <= 3; ++i) {
                REQUIRE_EQ(i, s.scq.good().wr_id);
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_path, atomics_of_many_processes_lose_nothing)
{
    const int num = 4, loops = 300;

    run(num, [=](rank &r) {
        context c;
        memory mem(c, 4096);
        cq q(c, 256);
        std::vector<std::unique_ptr<qp>> qps;
        address addrs[num + 1] = {};

        /* rank 0 owns the memory */
        if (r.index == 0) {
            for (int i = 1; i < num; ++i) {
                qps.emplace_back(new qp(c, q, q));
                addrs[i] = qps.back()->addr(&mem);
            }
            r.publish(addrs);
            for (int i = 1; i < num; ++i) {
                qps[i - 1]->connect(r.lookup<address>(i));
            }
            r.barrier();
            r.barrier();
            uint64_t *words = (uint64_t*)mem.data;
            REQUIRE_EQ((num - 1) * loops, words[1]);
            REQUIRE_EQ((num - 1) * loops, words[2]);
            return;
        }

        qp mine(c, q, q);
        r.publish(mine.addr());
        struct { address a[num + 1]; } all = r.lookup<decltype(all)>(0);
        mine.connect(all.a[r.index]);
        r.barrier();

        uint64_t *result = (uint64_t*)mem.data, seen = 0;
        for (int i = 0; i < loops; ++i) {
            send_wr fa(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, {mem.sge(0, 8)});
            fa.atomic(all.a[r.index], 8, 1);
            mine.send(fa);
            ibv_wc wc = q.good();
            REQUIRE_EQ(IBV_WC_FETCH_ADD, wc.opcode);
            REQUIRE_EQ(8, wc.byte_len);
            REQUIRE(result[0] >= seen);
            seen = result[0] + 1;

            /* add one by compare and swap */
            for (uint64_t old = 0;;) {
                send_wr cs(IBV_WR_ATOMIC_CMP_AND_SWP, 2, {mem.sge(8, 8)});
                cs.atomic(all.a[r.index], 16, old, old + 1);
                mine.send(cs);
                REQUIRE_EQ(IBV_WC_COMP_SWAP, q.good().opcode);
                if (result[1] == old) {
                    break;
                }
                old = result[1];
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_path, unsignaled_work_is_done_and_reported_by_the_next)
{
    run(2, [](rank &r) {
        side s(r);

        if (r.index == 0) {
            for (unsigned i = 0; i < 256; ++i) {
                s.mem.data[i] = i;
                send_wr w(IBV_WR_RDMA_WRITE, i, {s.mem.sge(i, 1)},
                          ((i % 32) == 31) ? IBV_SEND_SIGNALED : 0);
                s.q.send(w.to(s.peer, i));
                if ((i % 32) == 31) {
                    REQUIRE_EQ(i, s.scq.good().wr_id);
                    s.scq.empty();
                }
            }
        }
        r.barrier();
        if (r.index == 1) {
            for (unsigned i = 0; i < 256; ++i) {
                REQUIRE_EQ(i, s.mem.data[i]);
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_path, post_lists_are_executed_in_order)
{
    run(2, [](rank &r) {
        side s(r);

        if (r.index == 0) {
            std::vector<send_wr> list;

            for (unsigned i = 0; i < 32; ++i) {
                list.emplace_back(IBV_WR_RDMA_WRITE, i,
                                  std::vector<ibv_sge>{s.mem.sge(i * 64, 64)});
                memset(s.mem.data + i * 64, i + 1, 64);
                list.back().to(s.peer, 0);
            }
            for (unsigned i = 0; i + 1 < list.size(); ++i) {
                list[i].next = &list[i + 1];
            }
            s.q.send(list[0]);
            for (unsigned i = 0; i < 32; ++i) {
                REQUIRE_EQ(i, s.scq.good().wr_id);
            }
        }
        r.barrier();
        if (r.index == 1) {
            REQUIRE_EQ(32, s.mem.data[0]);
            REQUIRE_EQ(32, s.mem.data[63]);
        }
        r.barrier();
    });
}

TEST_F(test_device_path, datagrams_with_and_without_grh)
{
    run(2, [](rank &r) {
        side s(r, {.type = IBV_QPT_UD});

        if (r.index == 1) {
            for (unsigned i = 0; i < 4; ++i) {
                memset(s.mem.data + i * 8192, 0xee, 8192);
                s.q.recv(i, s.mem.sge(i * 8192, 4096 + 40));
            }
            r.barrier();
            for (unsigned i = 0; i < 4; ++i) {
                size_t length = (i < 2) ? 100 : 4096;
                ibv_wc wc     = s.rcq.good();
                uint8_t *grh  = s.mem.data + i * 8192;

                REQUIRE_EQ(i, wc.wr_id);
                REQUIRE_EQ(length + 40, wc.byte_len);
                REQUIRE_EQ(s.peer.qpn, wc.src_qp);
                REQUIRE_EQ(s.peer.lid, wc.slid);
                REQUIRE_EQ(length, pattern::check(grh + 40, length, i));
                if (i & 1) {
                    REQUIRE(wc.wc_flags & IBV_WC_GRH);
                    REQUIRE(memcmp(grh + 8, &s.peer.gid, 16) == 0);
                    REQUIRE(memcmp(grh + 24, &s.c.gid, 16) == 0);
                    REQUIRE_EQ(htonl(77), wc.imm_data);
                } else {
                    REQUIRE(!(wc.wc_flags & IBV_WC_GRH));
                    REQUIRE_EQ(0xee, grh[0]);
                    REQUIRE_EQ(0xee, grh[39]);
                }
            }
        } else {
            ibv_ah_attr attr = {};
            ibv_ah *ahs[2];

            r.barrier();
            attr.dlid     = s.peer.lid;
            attr.port_num = 1;
            ahs[0]        = ibv_create_ah(s.c.pd, &attr);
            attr.is_global     = 1;
            attr.grh.dgid      = s.peer.gid;
            attr.grh.hop_limit = 3;
            ahs[1]             = ibv_create_ah(s.c.pd, &attr);
            REQUIRE((ahs[0] != nullptr) && (ahs[1] != nullptr));
            for (unsigned i = 0; i < 4; ++i) {
                size_t length = (i < 2) ? 100 : 4096;

                pattern::fill(s.mem.data, length, i);
                send_wr wr((i & 1) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, i,
                           {s.mem.sge(0, length)});
                wr.imm_data          = htonl(77);
                wr.wr.ud.ah          = ahs[i & 1];
                wr.wr.ud.remote_qpn  = s.peer.qpn;
                wr.wr.ud.remote_qkey = default_qkey;
                s.q.send(wr);
                REQUIRE_EQ(i, s.scq.good().wr_id);
            }

            /* a wrong key, no such QP, no receive: lost without a sign */
            for (unsigned i = 0; i < 3; ++i) {
                send_wr wr(IBV_WR_SEND, 10 + i, {s.mem.sge(0, 10)});
                wr.wr.ud.ah          = ahs[0];
                wr.wr.ud.remote_qpn  = s.peer.qpn ^ ((i == 1) ? 0x8000 : 0);
                wr.wr.ud.remote_qkey = default_qkey + ((i == 0) ? 1 : 0);
                s.q.send(wr);
                REQUIRE_EQ(10 + i, s.scq.good().wr_id);
            }
            ibv_destroy_ah(ahs[0]);
            ibv_destroy_ah(ahs[1]);
        }
        r.barrier();
        s.rcq.empty();
        REQUIRE_EQ(IBV_QPS_RTS, s.q.state());
    });
}

/* The header has the GID that the sender's address handle names, and its type
 * decides what kind of header it is: even ones are of v1, 2 and 3 are IPv4 */
TEST_F(test_device_path, datagrams_come_from_the_gid_of_their_address_handle)
{
    set_env("MLX5SIM_LINK", "roce");
    run(2, [](rank &r) {
        side s(r, {.type = IBV_QPT_UD});

        if (r.index == 1) {
            for (unsigned i = 0; i < 4; ++i) {
                s.q.recv(i, s.mem.sge(i * 256, 140));
            }
            r.barrier();
            for (unsigned i = 0; i < 4; ++i) {
                ibv_wc wc    = s.rcq.good();
                uint8_t *grh = s.mem.data + wc.wr_id * 256;
                ibv_gid gid;

                /* Both use the same port */
                REQUIRE_EQ(0, ibv_query_gid(s.c.ctx, 1, i, &gid));
                REQUIRE(wc.wc_flags & IBV_WC_GRH);
                if (i == 3) {
                    REQUIRE_EQ(0x45, grh[20]);
                    REQUIRE(memcmp(grh + 32, gid.raw + 12, 4) == 0);
                } else {
                    REQUIRE_EQ(0x60, grh[0] & 0xf0);
                    REQUIRE_EQ((i & 1) ? 17 : 0x1b, grh[6]);
                    REQUIRE(memcmp(grh + 8, gid.raw, 16) == 0);
                }
            }
        } else {
            r.barrier();
            for (int i = 0; i < 4; ++i) {
                ibv_ah_attr attr = {};

                attr.port_num       = 1;
                attr.is_global      = 1;
                attr.grh.sgid_index = i;
                attr.grh.hop_limit  = 3;
                REQUIRE_EQ(0, ibv_query_gid(s.c.ctx, 1, i, &attr.grh.dgid));
                ibv_ah *ah = ibv_create_ah(s.c.pd, &attr);
                REQUIRE(ah != nullptr);
                send_wr wr(IBV_WR_SEND, i, {s.mem.sge(0, 100)});
                wr.wr.ud.ah          = ah;
                wr.wr.ud.remote_qpn  = s.peer.qpn;
                wr.wr.ud.remote_qkey = default_qkey;
                s.q.send(wr);
                REQUIRE_EQ(i, (int)s.scq.good().wr_id);
                ibv_destroy_ah(ah);
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_path, roce_ports_carry_rc_and_ud)
{
    set_env("MLX5SIM_LINK", "roce");
    run(2, [](rank &r) {
        side s(r);
        REQUIRE(s.c.is_roce);
        if (r.index == 0) {
            pattern::fill(s.mem.data, 5000, 1);
            send_wr w(IBV_WR_RDMA_WRITE, 1, {s.mem.sge(0, 5000)});
            s.q.send(w.to(s.peer, 0));
            s.scq.good();
        }
        r.barrier();
        if (r.index == 1) {
            REQUIRE_EQ(5000, pattern::check(s.mem.data, 5000, 1));
        }

        qp_options ud = {.type = IBV_QPT_UD};
        qp u(s.c, s.scq, s.rcq, ud);
        u.to_init();
        u.to_rtr(address());
        u.to_rts();
        r.publish(u.addr());
        if (r.index == 1) {
            u.recv(5, s.mem.sge(8192, 1064));
        }
        r.barrier();
        if (r.index == 0) {
            address peer     = r.lookup<address>(1);
            ibv_ah_attr attr = {};

            attr.is_global     = 1;
            attr.grh.dgid      = peer.gid;
            attr.grh.hop_limit = 64;
            attr.port_num      = 1;
            ibv_ah *ah = ibv_create_ah(s.c.pd, &attr);
            REQUIRE(ah != nullptr);
            send_wr wr(IBV_WR_SEND, 1, {s.mem.sge(0, 1024)});
            wr.wr.ud.ah          = ah;
            wr.wr.ud.remote_qpn  = peer.qpn;
            wr.wr.ud.remote_qkey = default_qkey;
            u.send(wr);
            s.scq.good();
            ibv_destroy_ah(ah);
        } else {
            ibv_wc wc = s.rcq.good();
            REQUIRE_EQ(5, wc.wr_id);
            REQUIRE_EQ(1064, wc.byte_len);
            REQUIRE(wc.wc_flags & IBV_WC_GRH);
            REQUIRE_EQ(1024, pattern::check(s.mem.data + 8192 + 40, 1024, 1));
        }
        r.barrier();
    });
}

TEST_F(test_device_path, unreliable_connection_sends_and_writes)
{
    run(2, [](rank &r) {
        side s(r, {.type = IBV_QPT_UC});

        if (r.index == 0) {
            r.barrier();
            pattern::fill(s.mem.data, 20000, 9);
            send_wr w(IBV_WR_RDMA_WRITE, 1, {s.mem.sge(0, 20000)});
            s.q.send(w.to(s.peer, 0));
            send_wr m(IBV_WR_SEND_WITH_IMM, 2, {s.mem.sge(0, 300)});
            s.q.send(m);
            /* nobody receives this one: it is dropped, not an error */
            send_wr lost(IBV_WR_SEND, 3, {s.mem.sge(0, 300)});
            s.q.send(lost);
            for (unsigned i = 1; i <= 3; ++i) {
                REQUIRE_EQ(i, s.scq.good().wr_id);
            }
        } else {
            s.q.recv(4, s.mem.sge(100000, 300));
            r.barrier();
            REQUIRE_EQ(4, s.rcq.good().wr_id);
            REQUIRE_EQ(300, pattern::check(s.mem.data + 100000, 300, 9));
            REQUIRE_EQ(20000, pattern::check(s.mem.data, 20000, 9));
        }
        r.barrier();
        s.rcq.empty();
        REQUIRE_EQ(IBV_QPS_RTS, s.q.state());
    });
}

TEST_F(test_device_path, shared_receive_queue_serves_many_connections)
{
    const int senders = 3, each = 400, slots = 16;

    run(senders + 1, [=](rank &r) {
        context c;
        memory mem(c, 1 << 16);
        cq q(c, 256);

        if (r.index == 0) {
            srq shared(c, slots);
            std::vector<std::unique_ptr<qp>> qps;
            struct { address a[senders]; } all;
            std::map<uint32_t, int> from;
            int next[senders] = {};

            for (int i = 0; i < senders; ++i) {
                qps.emplace_back(new qp(c, q, q, {.srq = shared.v}));
                all.a[i] = qps[i]->addr();
                from[all.a[i].qpn] = i;
            }
            r.publish(all);
            for (int i = 0; i < senders; ++i) {
                qps[i]->connect(r.lookup<address>(i + 1));
            }
            for (int i = 0; i < slots; ++i) {
                shared.recv(i, mem.sge(i * 1024, 1024));
            }
            r.barrier();
            for (int i = 0; i < senders * each; ++i) {
                ibv_wc wc = q.good();
                int who   = from.at(wc.qp_num);

                /* in order per connection, whole messages */
                REQUIRE_EQ(1 + (next[who] % 1000), wc.byte_len);
                REQUIRE_EQ(wc.byte_len,
                           pattern::check(mem.data + wc.wr_id * 1024,
                                          wc.byte_len,
                                          who * 1000000 + next[who]));
                ++next[who];
                shared.recv(wc.wr_id, mem.sge(wc.wr_id * 1024, 1024));
            }
            r.barrier();
            q.empty();
            return;
        }

        qp mine(c, q, q);
        int who = r.index - 1;
        r.publish(mine.addr());
        struct { address a[senders]; } all = r.lookup<decltype(all)>(0);
        mine.connect(all.a[who]);
        r.barrier();
        for (int i = 0; i < each; ++i) {
            size_t length = 1 + (i % 1000), slot = (i % 32) * 1024;

            pattern::fill(mem.data + slot, length, who * 1000000 + i);
            send_wr wr(IBV_WR_SEND, i, {mem.sge(slot, length)});
            mine.send(wr);
            if (i >= 31) {
                REQUIRE_EQ(i - 31, q.good().wr_id);
            }
        }
        for (int i = each - 31; i < each; ++i) {
            REQUIRE_EQ(i, q.good().wr_id);
        }
        r.barrier();
    });
}

/* The sender may have read what is posted ahead: a few, many, and what another
 * life of the queue pair had */
TEST_F(test_device_path, receives_are_those_of_today)
{
    run(2, [](rank &r) {
        side s(r, {.recv_wr = 16}, 1 << 16);
        pattern random(7);
        uint64_t sent = 0, posted = 0;

        for (int life = 0; life < 4; ++life) {
            for (int round = 0; round < 50; ++round) {
                unsigned more = 1 + random.below(8);
                unsigned used = 1 + random.below(more);

                if (r.index == 1) {
                    for (unsigned i = 0; i < more; ++i, ++posted) {
                        s.q.recv(posted,
                                 s.mem.sge((posted % 64) * 1024, 1024));
                    }
                }
                r.barrier();
                /* all of them, but for some at the end of a life */
                used = (round < 49) ? more : used;
                for (unsigned i = 0; i < used; ++i, ++sent) {
                    if (r.index == 0) {
                        send_wr wr(IBV_WR_SEND, sent, {s.mem.sge(0, 500)});

                        pattern::fill(s.mem.data, 500, sent);
                        s.q.send(wr);
                        s.scq.good();
                    } else {
                        REQUIRE_EQ(sent, s.rcq.good().wr_id);
                        REQUIRE_EQ(500,
                                   pattern::check(s.mem.data +
                                                  (sent % 64) * 1024, 500,
                                                  sent));
                    }
                }
                r.barrier();
            }
            sent = posted = (life + 1) * 100000;
            s.q.to_state(IBV_QPS_RESET);
            r.barrier();
            s.q.connect(s.peer);
            r.barrier();
        }
    });
}

TEST_F(test_device_path, receive_queue_memory_belongs_to_the_srq_domain)
{
    /* the SRQ checks keys against its own protection domain, not the QP's */
    run(1, [](rank &r) {
        context c;
        ibv_pd *other = ibv_alloc_pd(c.ctx);
        {
            memory mem(c, 4096), srq_mem(c, 4096, all_access, other);
            srq shared(c, 16, 1, other);
            cq q(c, 64);
            qp a(c, q, q), b(c, q, q, {.srq = shared.v});
            a.connect(b.addr());
            b.connect(a.addr());

            shared.recv(1, srq_mem.sge(0, 100));
            memcpy(mem.data, "hello", 5);
            send_wr wr(IBV_WR_SEND, 2, {mem.sge(0, 5)});
            a.send(wr);
            for (int i = 0; i < 2; ++i) {
                q.good();
            }
            REQUIRE(memcmp(srq_mem.data, "hello", 5) == 0);
        }
        ibv_dealloc_pd(other);
    });
}

TEST_F(test_device_path, completions_of_128_bytes)
{
    run(2, [](rank &r) {
        context c;
        memory mem(c, 65536);
        cq scq(c, 8, 128u), rcq(c, 8, 64u);
        qp q(c, scq, rcq);

        REQUIRE_EQ(128, scq.direct().cqe_size);

        r.publish(q.addr(&mem));
        address peer = r.lookup<address>(1 - r.index);
        q.connect(peer);
        if (r.index == 1) {
            for (int i = 0; i < 4; ++i) {
                q.recv(i, mem.sge(0, 64));
            }
        }
        r.barrier();
        /* several times round the small rings */
        for (int i = 0; i < 100; ++i) {
            if (r.index == 0) {
                send_wr wr(IBV_WR_SEND, i, {mem.sge(0, 1 + (i % 64))});
                q.send(wr);
                REQUIRE_EQ(i, scq.good().wr_id);
            } else {
                ibv_wc wc = rcq.good();
                REQUIRE_EQ(1 + (i % 64), wc.byte_len);
                q.recv(i + 4, mem.sge(0, 64));
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_path, thread_and_parent_domains)
{
    run(2, [](rank &r) {
        context c;
        memory mem(c, 65536);
        cq q(c, 64);
        ibv_td_init_attr td_attr = {};
        std::vector<ibv_td*> tds;
        std::vector<ibv_pd*> pds;
        std::vector<std::unique_ptr<qp>> qps;
        struct { address a[6]; } mine, peer;

        for (int i = 0; i < 6; ++i) {
            ibv_parent_domain_init_attr attr = {};

            tds.push_back(ibv_alloc_td(c.ctx, &td_attr));
            REQUIRE(tds.back() != nullptr);
            attr.pd = c.pd;
            attr.td = tds.back();
            pds.push_back(ibv_alloc_parent_domain(c.ctx, &attr));
            REQUIRE(pds.back() != nullptr);
            qps.emplace_back(new qp(c, q, q, {.pd = pds.back()}));
            mine.a[i] = qps.back()->addr(&mem);
        }
        r.publish(mine);
        peer = r.lookup<decltype(peer)>(1 - r.index);
        for (int i = 0; i < 6; ++i) {
            qps[i]->connect(peer.a[i]);
        }
        r.barrier();
        for (int i = 0; i < 60; ++i) {
            memset(mem.data + 4096, i, 16);
            send_wr wr(IBV_WR_RDMA_WRITE, i, {mem.sge(4096, 16)},
                       IBV_SEND_INLINE | IBV_SEND_SIGNALED);
            qps[i % 6]->send(wr.to(peer.a[i % 6], i * 16));
            REQUIRE_EQ(i, q.good().wr_id);
        }
        r.barrier();
        for (int i = 0; i < 60; ++i) {
            REQUIRE_EQ(i, mem.data[i * 16]);
            REQUIRE_EQ(i, mem.data[i * 16 + 15]);
        }
        r.barrier();
        qps.clear();
        for (int i = 0; i < 6; ++i) {
            REQUIRE_EQ(0, ibv_dealloc_pd(pds[i]));
            REQUIRE_EQ(0, ibv_dealloc_td(tds[i]));
        }
    });
}

TEST_F(test_device_path, extended_work_request_interface)
{
    run(2, [](rank &r) {
        context c;
        memory mem(c, 65536);
        cq q(c, 64);
        ibv_qp_init_attr_ex attr = {};

        attr.qp_type             = IBV_QPT_RC;
        attr.send_cq             = q.v;
        attr.recv_cq             = q.v;
        attr.pd                  = c.pd;
        attr.comp_mask           = IBV_QP_INIT_ATTR_PD |
                                   IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.send_ops_flags      = IBV_QP_EX_WITH_RDMA_WRITE |
                                   IBV_QP_EX_WITH_SEND |
                                   IBV_QP_EX_WITH_RDMA_READ |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
        attr.cap                 = {32, 32, 2, 2, 128};
        ibv_qp *v                = ibv_create_qp_ex(c.ctx, &attr);
        REQUIRE(v != nullptr);
        ibv_qp_ex *ex            = ibv_qp_to_qp_ex(v);

        /* the plain class does the rest */
        qp helper(c, q, q);
        std::swap(helper.v, v);
        r.publish(helper.addr(&mem));
        address peer = r.lookup<address>(1 - r.index);
        helper.connect(peer);
        if (r.index == 1) {
            helper.recv(4, mem.sge(8192, 100));
        }
        r.barrier();

        if (r.index == 0) {
            pattern::fill(mem.data, 4096, 1);
            ibv_wr_start(ex);
            ex->wr_id    = 1;
            ex->wr_flags = 0;
            ibv_wr_rdma_write(ex, peer.rkey, peer.addr);
            ibv_wr_set_sge(ex, mem.mr->lkey, mem.addr(), 4096);
            ex->wr_id    = 2;
            ibv_wr_send(ex);
            ibv_wr_set_inline_data(ex, mem.data, 100);
            ex->wr_id    = 3;
            ibv_wr_rdma_read(ex, peer.rkey, peer.addr);
            ibv_wr_set_sge(ex, mem.mr->lkey, mem.addr(16384), 4096);
            ex->wr_id    = 4;
            ex->wr_flags = IBV_SEND_SIGNALED;
            ibv_wr_atomic_fetch_add(ex, peer.rkey, peer.addr + 32768, 5);
            ibv_wr_set_sge(ex, mem.mr->lkey, mem.addr(32768), 8);
            REQUIRE_EQ(0, ibv_wr_complete(ex));
            REQUIRE_EQ(4, q.good().wr_id);
            REQUIRE_EQ(4096, pattern::check(mem.data + 16384, 4096, 1));
        } else {
            REQUIRE_EQ(4, q.good().wr_id);
            REQUIRE_EQ(100, pattern::check(mem.data + 8192, 100, 1));
        }
        r.barrier();
        if (r.index == 1) {
            REQUIRE_EQ(5, *(uint64_t*)(mem.data + 32768));
        }
        ibv_destroy_qp(v);
    });
}

TEST_F(test_device_path, connected_to_itself)
{
    run(1, [](rank &r) {
        context c;
        memory mem(c, 65536);
        cq q(c, 64);
        qp self(c, q, q);

        self.connect(self.addr());
        self.recv(1, mem.sge(1000, 100));
        memset(mem.data, 0x5a, 100);
        send_wr m(IBV_WR_SEND, 2, {mem.sge(0, 100)});
        self.send(m);
        for (int i = 0; i < 2; ++i) {
            q.good();
        }
        REQUIRE_EQ(0x5a, mem.data[1099]);

        send_wr w(IBV_WR_RDMA_WRITE, 3, {mem.sge(0, 100)});
        address to = self.addr(&mem);
        self.send(w.to(to, 2000));
        REQUIRE_EQ(3, q.good().wr_id);
        REQUIRE_EQ(0x5a, mem.data[2099]);

        /* receiver not ready, then ready: by the hand of the same process */
        send_wr late(IBV_WR_SEND, 4, {mem.sge(0, 1)});
        self.send(late);
        q.empty();
        self.recv(5, mem.sge(3000, 1));
        q.good();
        q.good();

        self.to_state(IBV_QPS_ERR);
        send_wr flushed(IBV_WR_SEND, 6, {mem.sge(0, 1)});
        self.send(flushed);
        REQUIRE_EQ(IBV_WC_WR_FLUSH_ERR, q.next().status);
    });
}
