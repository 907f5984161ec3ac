/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MLX5SIM_PCAP: the packets of a process in a file. Wireshark's
 * dissector (tshark) is the witness: it has to find in each packet what the
 * test did. It does not check ICRCs, so that is done here.
 */

#include <device/device_capture.h>

using namespace device;
using namespace device::pcap;

namespace {

/* Directly and in deferred execution */
class test_device_capture_net :
        public test_device_capture,
        public ::testing::WithParamInterface<
                std::tuple<network, const char*>> {
protected:
    void SetUp() override
    {
        test_device_capture::SetUp();
        set_env("MLX5SIM_LINK", net().link);
        set_env("MLX5SIM_EXEC", std::get<1>(GetParam()));
    }

    static const network &net()
    {
        return std::get<0>(GetParam());
    }
};

const uint64_t credits = 0x1f; /* AETH: ACK without a credit count */
const uint32_t sq_psn  = 0xfffffe;

} // namespace

TEST_P(test_device_capture_net, tshark_finds_what_was_done)
{
    const network net = this->net();

    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    run(1, [=](rank &r) {
        qp_options options, bad;
        context c;

        options.mtu    = IBV_MTU_1024;
        options.sq_psn = options.rq_psn = sq_psn; /* they go round */
        link_pair l(c, options, net, 65536);
        uint64_t *value = (uint64_t*)l.peer_mem.data;

        r.word(0) = l.a.v->qp_num;
        r.word(1) = l.b.v->qp_num;
        r.word(2) = l.to_b.addr;
        r.word(3) = l.to_b.rkey;

        l.b.recv(1, l.peer_mem.sge(4096, 64));
        send_wr msg(IBV_WR_SEND, 1, {l.mem.sge(0, 5)},
                    IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
        l.a.send(msg);
        l.scq.good();

        l.b.recv(1, l.peer_mem.sge(4096, 64));
        send_wr write(IBV_WR_RDMA_WRITE_WITH_IMM, 1, {l.mem.sge(0, 2501)});
        write.imm_data = htobe32(0xaabbccdd);
        l.a.send(write.to(l.to_b, 8192));
        l.scq.good();

        send_wr read(IBV_WR_RDMA_READ, 1, {l.mem.sge(8192, 3000)});
        l.a.send(read.to(l.to_b, 64));
        l.scq.good();

        *value = 1000;
        send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, {l.mem.sge(0, 8)});
        l.a.send(add.atomic(l.to_b, 0, 7));
        l.scq.good();
        send_wr swap(IBV_WR_ATOMIC_CMP_AND_SWP, 1, {l.mem.sge(0, 8)});
        l.a.send(swap.atomic(l.to_b, 0, 1007, 5));
        l.scq.good();

        send_wr wrong(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 4)});
        wrong.to(l.to_b);
        wrong.wr.rdma.rkey ^= 1;
        l.a.send(wrong);
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.scq.next().status);
    });

    uint64_t a = word(0), b = word(1), va = word(2), key = word(3);
    std::vector<fields_t> expected = {
        basic(0x04, 0xfffffe, b, {{"ack", 1}, {"se", 1}, {"pad", 3}}),
        basic(0x11, 0xfffffe, a, {{"syn", credits}, {"msn", 1}}),
        basic(0x06, 0xffffff, b,
              {{"va", va + 8192}, {"key", key}, {"len", 2501}}),
        basic(0x07, 0, b, {}),
        basic(0x09, 1, b, {{"imm", 0xaabbccdd}, {"ack", 1}, {"pad", 3}}),
        basic(0x11, 1, a, {{"syn", credits}, {"msn", 2}}),
        basic(0x0c, 2, b,
              {{"va", va + 64}, {"key", key}, {"len", 3000}, {"ack", 1}}),
        basic(0x0d, 2, a, {{"syn", credits}, {"msn", 3}}),
        basic(0x0e, 3, a, {}),
        basic(0x0f, 4, a, {{"syn", credits}, {"msn", 3}}),
        basic(0x14, 5, b,
              {{"va", va}, {"key", key}, {"swap", 7}, {"cmp", 0}, {"ack", 1}}),
        basic(0x12, 5, a, {{"syn", credits}, {"msn", 4}, {"old", 1000}}),
        basic(0x13, 6, b, {{"va", va}, {"key", key}, {"swap", 5},
                           {"cmp", 1007}, {"ack", 1}}),
        basic(0x12, 6, a, {{"syn", credits}, {"msn", 5}, {"old", 1007}}),
        basic(0x0a, 7, b,
              {{"va", va}, {"key", key ^ 1}, {"len", 4}, {"ack", 1}}),
        basic(0x11, 7, a, {{"syn", 0x62}, {"msn", 5}})
    };
    std::vector<fields_t> found = packets(net);

    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(expected[i], found[i]) << "packet " << i;
    }
}

TEST_P(test_device_capture_net, tshark_finds_datagrams)
{
    const network net = this->net();

    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    run(1, [=](rank &r) {
        context c;

        qp_options options = {.type = IBV_QPT_UD, .sq_psn = 77};
        link_pair l(c, options, net, 65536);
        ibv_ah_attr path = l.a.options.path;

        path.port_num = 1;
        path.dlid     = c.lid;
        if (c.is_roce) {
            path.grh.hop_limit = 64;
        }
        ibv_ah *ah = ibv_create_ah(c.pd, &path);
        REQUIRE(ah != nullptr);
        l.b.recv(1, l.peer_mem.sge(0, 128));
        send_wr msg(IBV_WR_SEND_WITH_IMM, 1, {l.mem.sge(0, 6)});
        msg.imm_data          = htobe32(0x01020304);
        msg.wr.ud.ah          = ah;
        msg.wr.ud.remote_qpn  = l.b.v->qp_num;
        msg.wr.ud.remote_qkey = default_qkey;
        l.a.send(msg);
        l.scq.good();
        l.rcq.good();
        REQUIRE_EQ(0, ibv_destroy_ah(ah));
        r.word(0) = l.a.v->qp_num;
        r.word(1) = l.b.v->qp_num;
    });

    std::vector<fields_t> expected = {
        basic(0x65, 77, word(1), {{"imm", 0x01020304}, {"pad", 2},
                                  {"qkey", default_qkey}, {"from", word(0)}})
    };
    EXPECT_EQ(expected, packets(net));
}

TEST_P(test_device_capture_net, a_receiver_that_is_not_ready_is_seen)
{
    const network net = this->net();

    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    run(1, [=](rank &r) {
        qp_options options;
        context c;

        options.rnr_timer = 14; /* 1 ms */
        options.rnr_retry = 2;
        link_pair l(c, options, net, 65536);
        send_wr msg(IBV_WR_SEND, 1, {l.mem.sge(0, 8)});

        l.a.send(msg);
        REQUIRE_EQ(IBV_WC_RNR_RETRY_EXC_ERR, l.scq.next().status);
        r.word(0) = l.a.v->qp_num;
        r.word(1) = l.b.v->qp_num;
    });

    std::vector<fields_t> expected;
    for (unsigned i = 0; i < 3; ++i) {
        expected.push_back(basic(0x04, 0, word(1), {{"ack", 1}}));
        expected.push_back(basic(0x11, 0, word(0), {{"syn", 0x20 | 14},
                                                    {"msn", 0}}));
    }
    EXPECT_EQ(expected, packets(net));
}

/* Two processes, each with a capture of what it sent and of the answers */
/* What the requester finds itself, nobody sends; UC has no answers */
TEST_P(test_device_capture_net, what_is_not_sent_is_not_there)
{
    const network net = this->net();

    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    run(1, [=](rank &r) {
        qp_options options = {.type = IBV_QPT_UC};
        context c;
        link_pair l(c, options, net, 65536);
        send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});

        l.a.send(write.to(l.to_b, 8));
        l.scq.good();
        write.elements[0].lkey ^= 0x100;
        l.a.send(write);
        REQUIRE_EQ(IBV_WC_LOC_PROT_ERR, l.scq.next().status);
        r.word(0) = l.b.v->qp_num;
        r.word(1) = l.to_b.addr;
        r.word(2) = l.to_b.rkey;
    });

    std::vector<fields_t> expected = {
        basic(0x2a, 0, word(0),
              {{"va", word(1) + 8}, {"key", word(2)}, {"len", 8}})
    };
    EXPECT_EQ(expected, packets(net));
}

/* Those of the kernel's choice, until they are changed: of what a queue pair
 * sends, and of what it answers */
TEST_P(test_device_capture_net, source_ports_of_queue_pairs_are_seen)
{
    const network net = this->net();
    const bool is_v2  = (net.gid_index == 1) || (net.gid_index == 3);
    const size_t udp  = 14 + ((net.gid_index == 1) ? 40 : 20);

    set_env("MLX5SIM_DEVX", "y");
    run(1, [=](rank &r) {
        qp_options options;
        context c;
        link_pair l(c, options, net, 65536);

        for (unsigned i = 0; i < 3; ++i) {
            if (i > 0) {
                int ret = mlx5dv_modify_qp_udp_sport((i == 1) ? l.a.v : l.b.v,
                                                     50000 + i);
                REQUIRE_EQ(is_v2, ret == 0);
            }
            l.b.recv(1, l.peer_mem.sge(0, 128));
            send_wr msg(IBV_WR_SEND, 1, {l.mem.sge(0, 8)});
            l.a.send(msg);
            l.scq.good();
            l.rcq.good();
        }
        r.word(0) = l.a.v->qp_num;
        r.word(1) = l.b.v->qp_num;
    });

    if (!is_v2) {
        return;
    }

    ASSERT_EQ(1u, files().size());
    capture c(files()[0]);
    std::vector<unsigned> ports;
    for (const bytes_t &frame : c.frames) {
        packet p(c.link, frame);

        EXPECT_EQ(p.icrc(), p.sent_icrc());
        EXPECT_EQ(4791, (frame[udp + 2] << 8) | frame[udp + 3]);
        ports.push_back((frame[udp] << 8) | frame[udp + 1]);
    }

    /* kernel, rdma_calc_flow_label(), rdma_flow_label_to_udp_sport() */
    uint64_t label = word(0) * word(1);
    label         ^= label >> 20;
    label         ^= label >> 40;
    label         &= 0xfffff;
    unsigned chosen = (label & 0x3fff) ^ (label >> 14);
    chosen         |= 0xc000;
    EXPECT_EQ((std::vector<unsigned>{chosen, chosen, 50001, chosen, 50001,
                                     50002}), ports);
}

INSTANTIATE_TEST_SUITE_P(
        networks, test_device_capture_net,
        ::testing::Combine(::testing::ValuesIn(networks),
                           ::testing::Values("sync", "deferred")),
        [](const auto &info) {
            return std::string(std::get<0>(info.param).name) + "_" +
                   std::get<1>(info.param);
        });

TEST_F(test_device_capture, what_is_lost_and_repeated_is_seen)
{
    const unsigned count = 60, length = 3000, packets = 3;

    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_LOSS", "100");
    run(2, [=](rank &r) {
        qp_options options = {.mtu = IBV_MTU_1024};

        options.path.grh.sgid_index = 1;
        side s(r, options);

        pattern::fill(s.mem.data, length, r.index);
        r.word(r.index * 4 + 1) = s.q.v->qp_num;
        r.word(r.index * 4 + 2) = s.peer.addr;
        r.word(r.index * 4 + 3) = getpid();
        r.barrier();
        for (unsigned i = 0; i < count; ++i) {
            send_wr write(IBV_WR_RDMA_WRITE, 1, {s.mem.sge(0, length)}, 0);
            send_wr read(IBV_WR_RDMA_READ, 2, {s.mem.sge(8192, length)});

            write.next = &read.to(s.peer, 65536);
            s.q.send(write.to(s.peer, 65536));
            s.scq.good();
        }
        r.barrier();
    });

    for (unsigned index = 0; index < 2; ++index) {
        std::string file = m_path + "." +
                           std::to_string(word(index * 4 + 3).load());
        uint64_t self    = word(index * 4 + 1);
        uint64_t peer    = word((1 - index) * 4 + 1);
        uint64_t va      = word(index * 4 + 2) + 65536;
        unsigned requests[2] = {}, gaps = 0, again = 0, rests = 0;
        std::vector<unsigned> sent(count * packets * 2);
        std::vector<unsigned> answered(count * packets * 2);
        capture frames(file);
        size_t number = 0;
        bytes_t data(length);

        pattern::fill(data.data(), length, index);
        for (const fields_t &p : dissect(file, networks[1])) {
            uint64_t op     = p.at("op"), psn = p.at("psn");
            uint64_t within = psn % packets;
            packet raw(frames.link, frames.frames.at(number++));

            ASSERT_LT(psn, sent.size());
            if (p.at("qp") == peer) {
                again += ++sent[psn] > 1;
                ++requests[op == 0x0c];
                if (op == 0x0c) {
                    /* the rest of what it asked for at first */
                    rests += within != 0;
                    EXPECT_EQ(va + within * 1024, p.at("va"));
                    EXPECT_EQ(length - within * 1024, p.at("len"));
                } else {
                    EXPECT_EQ(6 + within, op);
                    if (within == 0) {
                        EXPECT_EQ(length, p.at("len"));
                        EXPECT_EQ(va, p.at("va"));
                    } else {
                        EXPECT_EQ(bytes_t(data.begin() + within * 1024,
                                          (within == 2) ? data.end() :
                                          data.begin() + 2048),
                                  raw.behind_bth());
                    }
                }
            } else {
                EXPECT_EQ(self, p.at("qp"));
                ++answered[psn];
                if (p.count("syn") && (p.at("syn") == 0x60)) {
                    ++gaps;
                } else if (op == 0x0e) {
                    EXPECT_EQ(bytes_t(data.begin() + within * 1024,
                                      data.begin() + (within + 1) * 1024),
                              raw.behind_bth());
                }
            }
        }

        /* All of it, a part several times; answers to reads are those that it
         * took, at least */
        for (unsigned psn = 0; psn < sent.size(); ++psn) {
            bool is_read = psn % (packets * 2) >= packets;

            EXPECT_TRUE((sent[psn] > 0) || (is_read && (psn % packets != 0)))
                    << psn;
            EXPECT_TRUE(!is_read || (answered[psn] > 0)) << psn;
        }
        EXPECT_GT(requests[0], count * packets);
        EXPECT_GT(requests[1], count);
        EXPECT_GT(again, 0u);
        EXPECT_GT(rests, 0u);
        EXPECT_GT(gaps, 0u);
    }
}
