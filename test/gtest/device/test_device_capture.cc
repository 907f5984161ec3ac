/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MLX5SIM_PCAP: the packets of a process in a file. Wireshark's
 * dissector (tshark) is the witness: it has to find in each packet what the
 * test did. It does not check ICRCs, so that is done here, by the rule and bit
 * by bit.
 */

#include <device/device.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace device;

namespace {

typedef std::vector<uint8_t> bytes_t;

/* What tshark says of a packet: fields with numbers in them */
typedef std::map<std::string, uint64_t> fields_t;

/* Names of fields, and those of tshark 4.0 */
const std::pair<const char*, const char*> field_names[] = {
    {"op", "infiniband.bth.opcode"},      {"psn", "infiniband.bth.psn"},
    {"qp", "infiniband.bth.destqp"},      {"ack", "infiniband.bth.a"},
    {"se", "infiniband.bth.se"},          {"pad", "infiniband.bth.padcnt"},
    {"va", "infiniband.reth.va"},         {"key", "infiniband.reth.r_key"},
    {"len", "infiniband.reth.dmalen"},    {"syn", "infiniband.aeth.syndrome"},
    {"msn", "infiniband.aeth.msn"},       {"imm", "infiniband.immdt"},
    {"swap", "infiniband.atomiceth.swapdt"},
    {"cmp", "infiniband.atomiceth.cmpdt"},
    {"old", "infiniband.atomicacketh.origremdt"},
    {"qkey", "infiniband.deth.q_key"},    {"from", "infiniband.deth.srcqp"}
};

/* One of the link layers and address formats */
struct network {
    const char *name;
    const char *link;
    int        gid_index;   /* -1: no GRH */
    const char *source;     /* tshark's field of the sender's address */
    const char *address;    /* and what has to be in it */
};

const network networks[] = {
    {"ipv4", "roce", 3, "ip.src", "198.18.0.1"},
    {"ipv6", "roce", 1, "ipv6.src", "fe80::248a:703:a5:0"},
    {"roce_v1", "roce", 0, "infiniband.grh.sgid", "fe80::248a:703:a5:0"},
    {"ib", "ib", -1, "infiniband.lrh.slid", "16"},
    {"ib_grh", "ib", 0, "infiniband.grh.sgid", "fe80::248a:703:a5:0"}
};

/* Output of a command; it has to succeed */
std::string output_of(const std::string &command)
{
    std::string text;
    char buf[4096];
    size_t length;
    FILE *pipe = popen(command.c_str(), "r");

    if (pipe == nullptr) {
        return "";
    }
    while ((length = fread(buf, 1, sizeof(buf), pipe)) > 0) {
        text.append(buf, length);
    }
    EXPECT_EQ(0, pclose(pipe)) << command << "\n" << text;
    return text;
}

bool has_tshark()
{
    return system("tshark --version > /dev/null 2>&1") == 0;
}

/* A value of tshark: bytes, a number, or, of later versions, a word */
uint64_t number(const std::string &value, bool is_bytes)
{
    return (value == "True") ? 1 : (value == "False") ? 0 :
           strtoull(value.c_str(), nullptr, is_bytes ? 16 : 0);
}

uint32_t word(const bytes_t &bytes, size_t at)
{
    uint32_t value;

    memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
}

/* A file of frames; an incomplete last one is left out */
struct capture {
    explicit capture(const std::string &path)
    {
        std::ifstream file(path, std::ios::binary);
        bytes_t all((std::istreambuf_iterator<char>(file)),
                    std::istreambuf_iterator<char>());
        size_t at = 24;

        if ((all.size() < at) || (word(all, 0) != 0xa1b23c4d)) {
            ADD_FAILURE() << path << " is no capture";
            return;
        }

        link = word(all, 20);
        while ((at + 16 <= all.size()) &&
               (at + 16 + word(all, at + 8) <= all.size())) {
            size_t end = at + 16 + word(all, at + 8);

            frames.push_back(bytes_t(all.begin() + at + 16, all.begin() + end));
            at = end;
        }
        is_cut = at != all.size();
    }

    uint32_t             link   = 0;
    bool                 is_cut = true;
    std::vector<bytes_t> frames;
};

/* One packet of a frame, by the tables of IBTA, annexes A16 and A17 */
struct packet {
    packet(uint32_t link, const bytes_t &frame)
    {
        size_t ether = 14, erf = 16, lrh = 8, grh = 40, ip = 20, udp = 8;
        size_t type, at;

        all = bytes_t(frame.begin() + ((link == 1) ? ether : erf), frame.end());
        masked.assign(lrh, 0xff);
        if (link == 1) {
            type = (frame[12] << 8) | frame[13];
            at   = 0;
        } else {
            type = ((all[1] & 3) == 3) ? 0x8915 : 0;
            at   = lrh;
            all.resize(all.size() - 2); /* VCRC */
            if (type == 0) {
                masked.assign(all.begin(), all.begin() + lrh);
                masked[0] |= 0xf0;
            }
        }

        masked.insert(masked.end(), all.begin() + at, all.end() - 4);
        if (type == 0x0800) {
            mask(lrh, {1, 8, 10, 11, ip + 6, ip + 7});
            at += ip + udp;
        } else if (type != 0) {
            masked[lrh] |= 0x0f;
            mask(lrh, {1, 2, 3, 7});
            at += grh;
            if (type == 0x86dd) {
                mask(lrh, {grh + 6, grh + 7});
                at += udp;
            }
        }

        bth = at;
        masked[masked.size() - (all.size() - 4 - bth) + 4] = 0xff;
    }

    /* As it would be sent: bits of bytes with the least significant one first,
     * and the result, inverted, likewise */
    uint32_t icrc() const
    {
        uint32_t rest = 0xffffffff;

        for (uint8_t byte : masked) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                bool feedback = ((rest >> 31) ^ (byte >> bit)) & 1;

                rest = (rest << 1) ^ (feedback ? 0x04c11db7 : 0);
            }
        }

        uint32_t reversed = 0;
        for (unsigned bit = 0; bit < 32; ++bit) {
            reversed |= ((~rest >> bit) & 1) << (31 - bit);
        }
        return reversed;
    }

    uint32_t sent_icrc() const
    {
        return word(all, all.size() - 4);
    }

    /* Payload, if there is no header behind BTH */
    bytes_t behind_bth() const
    {
        return bytes_t(all.begin() + bth + 12,
                       all.end() - 4 - ((all[bth + 1] >> 4) & 3));
    }

    void mask(size_t from, const std::vector<size_t> &offsets)
    {
        for (size_t offset : offsets) {
            masked[from + offset] = 0xff;
        }
    }

    bytes_t all;    /* from LRH or the network header to the ICRC */
    bytes_t masked; /* what the ICRC is of */
    size_t  bth;
};

/* Two connected QPs of one process */
struct link_pair {
    link_pair(context &c, qp_options options, const network &net,
              size_t mem_size) :
        mem(c, mem_size), peer_mem(c, mem_size), scq(c, 256), rcq(c, 256),
        a(c, scq, scq, with_path(c, options, net)),
        b(c, rcq, rcq, with_path(c, options, net)), to_b(b.addr(&peer_mem))
    {
        address to_a = a.addr(&mem);

        a.connect(to_b);
        b.connect(to_a);
    }

    static qp_options
    with_path(context &c, qp_options options, const network &net)
    {
        if (net.gid_index >= 0) {
            REQUIRE_EQ(0, ibv_query_gid(c.ctx, 1, net.gid_index, &c.gid));
            options.path.is_global      = 1;
            options.path.grh.dgid       = c.gid;
            options.path.grh.sgid_index = net.gid_index;
        }
        return options;
    }

    memory  mem, peer_mem;
    cq      scq, rcq;
    qp      a, b;
    address to_b;
};

class test_device_capture : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        m_path = dir() + ".pcap";
        set_env("MLX5SIM_EXEC", "deferred");
        set_env("MLX5SIM_PCAP", m_path);
    }

    void TearDown() override
    {
        for (const std::string &file : files()) {
            unlink(file.c_str());
        }
        device::test::TearDown();
    }

    /* Captures of all processes */
    std::vector<std::string> files() const
    {
        std::vector<std::string> paths;
        std::filesystem::path parent =
                std::filesystem::path(m_path).parent_path();

        for (const auto &entry : std::filesystem::directory_iterator(parent)) {
            if (entry.path().string().rfind(m_path + ".", 0) == 0) {
                paths.push_back(entry.path().string());
            }
        }
        return paths;
    }

    /* All packets of a file as tshark sees them, with good ICRCs and nothing
     * that it objects to */
    std::vector<fields_t> dissect(const std::string &file, const network &net);

    /* Those of the only process */
    std::vector<fields_t> packets(const network &net)
    {
        std::vector<std::string> paths = files();

        EXPECT_EQ(1u, paths.size());
        return paths.empty() ? std::vector<fields_t>() :
                               dissect(paths[0], net);
    }

    /* Opening the device fails. @return what is said about it */
    std::string refused();

    std::string m_path;
};

std::vector<fields_t>
test_device_capture::dissect(const std::string &file, const network &net)
{
    /* Adapters send 0 as checksum of UDP on IPv6, too. Payload is only payload:
     * tshark takes zeros for RPC. */
    std::string command = "tshark -n -r '" + file + "' -o "
                          "udp.ignore_ipv6_zero_checksum:TRUE "
                          "--disable-protocol rpcordma -T fields "
                          "-E occurrence=f -e _ws.expert.severity "
                          "-e _ws.malformed -e " + std::string(net.source);
    std::vector<fields_t> packets;
    capture c(file);
    std::string line;

    for (const auto &name : field_names) {
        command += std::string(" -e ") + name.second;
    }

    EXPECT_FALSE(c.is_cut);
    EXPECT_EQ(strcmp(net.link, "ib") ? 1u : 197u, c.link);
    for (const bytes_t &frame : c.frames) {
        packet p(c.link, frame);

        EXPECT_EQ(p.icrc(), p.sent_icrc()) << "packet " << packets.size();
    }

    std::istringstream lines(output_of(command + " 2> /dev/null"));
    while (std::getline(lines, line)) {
        std::istringstream columns(line + "\t");
        std::string value;
        fields_t fields;

        std::getline(columns, value, '\t');
        EXPECT_EQ("", value) << "objection to " << line;
        std::getline(columns, value, '\t');
        EXPECT_EQ("", value) << "malformed: " << line;
        std::getline(columns, value, '\t');
        EXPECT_EQ(net.address, value) << line;
        for (const auto &name : field_names) {
            std::getline(columns, value, '\t');
            if (!value.empty()) {
                fields[name.first] = number(value, !strcmp(name.first, "imm"));
            }
        }
        packets.push_back(fields);
    }

    EXPECT_EQ(c.frames.size(), packets.size());
    return packets;
}

std::string test_device_capture::refused()
{
    catch_errors();
    run(1, [](rank&) {
        int count         = 0;
        ibv_device **list = ibv_get_device_list(&count);

        /* a value that is none hides the devices, others refuse to open */
        REQUIRE((count == 0) || (ibv_open_device(list[0]) == nullptr));
        if (list != nullptr) {
            ibv_free_device_list(list);
        }
    });
    return errors();
}

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

/* Fields of a request and of an answer that all have */
fields_t basic(uint64_t op, uint64_t psn, uint64_t qpn, fields_t more)
{
    fields_t fields = {{"op", op}, {"psn", psn}, {"qp", qpn}, {"ack", 0},
                       {"se", 0}, {"pad", 0}};

    for (const auto &field : more) {
        fields[field.first] = field.second;
    }
    return fields;
}

std::ostream &operator<<(std::ostream &out, const network &net)
{
    return out << net.name;
}

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

TEST_F(test_device_capture, a_killed_process_leaves_whole_packets)
{
    for (unsigned i = 0; i < 5; ++i) {
        start(0, 1, [](rank &r) {
            loop l;

            r.word(0) = getpid();
            for (;;) {
                send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 20000)});
                l.a.send(wr.to(l.to_b));
                l.scq.good();
                ++r.word(1);
            }
        });
        uint64_t before = word(1);
        REQUIRE(patience::until([&]() { return word(1) > before + 3 + i; }));
        kill(0);
        EXPECT_EQ(SIGKILL, finish(0));

        capture c(m_path + "." + std::to_string(word(0).load()));
        EXPECT_GT(c.frames.size(), 3 * 5u);
        for (const bytes_t &frame : c.frames) {
            packet p(c.link, frame);

            ASSERT_EQ(p.icrc(), p.sent_icrc());
        }
    }
}

/* Nobody knows at which packet, and so it is the first */
TEST_F(test_device_capture, a_long_message_is_refused)
{
    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    set_env("MLX5SIM_LINK", networks[0].link);
    set_env("MLX5SIM_EXEC", "sync");
    run(1, [](rank &r) {
        context c;
        link_pair l(c, {.mtu = IBV_MTU_1024}, networks[0], 65536);
        send_wr wrong(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 3000)});

        wrong.to(l.to_b);
        wrong.wr.rdma.rkey ^= 1;
        l.a.send(wrong);
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.scq.next().status);
        r.word(0) = l.a.v->qp_num;
        r.word(1) = l.b.v->qp_num;
        r.word(2) = l.to_b.addr;
        r.word(3) = l.to_b.rkey;
    });

    std::vector<fields_t> expected = {
        basic(0x06, 0, word(1),
              {{"va", word(2)}, {"key", word(3) ^ 1}, {"len", 3000}}),
        basic(0x11, 0, word(0), {{"syn", 0x62}, {"msn", 0}})
    };
    EXPECT_EQ(expected, packets(networks[0]));
}

/* Each rings, and so executes, by itself */
TEST_F(test_device_capture, threads_share_a_file)
{
    const unsigned num_threads = 4, count = 400, length = 3000, packets = 3;

    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    set_env("MLX5SIM_LINK", networks[0].link);
    set_env("MLX5SIM_EXEC", "sync");
    run(1, [=](rank &r) {
        std::vector<std::thread> threads;
        std::atomic<unsigned> ready(0);
        context c;

        for (unsigned i = 0; i < num_threads; ++i) {
            threads.emplace_back([&, i]() {
                link_pair l(c, {.mtu = IBV_MTU_1024}, networks[0], 65536);

                ++ready;
                while (ready < num_threads) {
                    std::this_thread::yield();
                }
                r.word(2 * i)     = l.a.v->qp_num;
                r.word(2 * i + 1) = l.b.v->qp_num;
                for (unsigned k = 0; k < count; ++k) {
                    send_wr write(IBV_WR_RDMA_WRITE, 1,
                                  {l.mem.sge(0, length)});

                    l.a.send(write.to(l.to_b, 8192));
                    l.scq.good();
                }
            });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    });

    std::map<uint64_t, unsigned> sent, answered;
    for (fields_t &fields : this->packets(networks[0])) {
        unsigned &number = (fields["op"] == 0x11) ? answered[fields["qp"]] :
                                                    sent[fields["qp"]];

        ++number;
        if (fields["op"] == 0x11) {
            EXPECT_EQ(number, fields["msn"]);
            EXPECT_EQ(number * packets - 1, fields["psn"]);
        } else {
            EXPECT_EQ(number - 1, fields["psn"]);
        }
    }

    EXPECT_EQ(num_threads, sent.size());
    EXPECT_EQ(num_threads, answered.size());
    for (unsigned i = 0; i < num_threads; ++i) {
        EXPECT_EQ(count, answered[word(2 * i)]);
        EXPECT_EQ(count * packets, sent[word(2 * i + 1)]);
    }
}

TEST_F(test_device_capture, children_have_their_own)
{
    run(1, [](rank &r) {
        loop l;
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        pid_t child;
        int status;

        l.a.send(wr.to(l.to_b));
        l.scq.good();
        child = fork();
        if (child == 0) {
            context c;

            _exit(0);
        }
        REQUIRE_EQ(child, waitpid(child, &status, 0));
        REQUIRE_EQ(0, status);
        send_wr again(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(again.to(l.to_b));
        l.scq.good();
        r.word(0) = getpid();
        r.word(1) = child;
    });
    EXPECT_EQ(4u, capture(m_path + "." + std::to_string(word(0).load()))
                      .frames.size());
    EXPECT_EQ(0u, capture(m_path + "." + std::to_string(word(1).load()))
                      .frames.size());
}

/* The number of a descriptor that the program closes may be that of a file of
 * its own a moment later */
TEST_F(test_device_capture, files_of_the_program_are_left_alone)
{
    catch_errors();
    run(1, [this](rank&) {
        std::string own = dir() + ".own";
        loop l;

        for (int fd = 3; fd < 256; ++fd) {
            char path[4096] = "";
            std::string link = "/proc/self/fd/" + std::to_string(fd);

            if ((readlink(link.c_str(), path, sizeof(path) - 1) > 0) &&
                (strncmp(path, m_path.c_str(), m_path.length()) == 0)) {
                FILE *file = fopen(own.c_str(), "w");

                REQUIRE(file != nullptr);
                REQUIRE_EQ(fd, dup2(fileno(file), fd));
                fclose(file);
            }
        }
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(wr.to(l.to_b));
        l.scq.good();
        REQUIRE_EQ(0, std::filesystem::file_size(own));
        unlink(own.c_str());
    });
    EXPECT_NE(std::string::npos, errors().find("the capture ends")) << errors();
}

TEST_F(test_device_capture, paths_that_do_not_do_are_refused)
{
    set_env("MLX5SIM_PCAP", "here");
    EXPECT_NE(std::string::npos, refused().find("an absolute path"))
            << errors();

    set_env("MLX5SIM_PCAP", m_path + ".not_there/file");
    EXPECT_NE(std::string::npos, refused().find("No such file")) << errors();
}

TEST_F(test_device_capture, nothing_is_overwritten_and_no_link_followed)
{
    std::string target = dir() + ".target";

    for (bool is_link : {false, true}) {
        catch_errors();
        run(1, [=](rank&) {
            std::string own   = m_path + "." + std::to_string(getpid());
            ibv_device **list = ibv_get_device_list(nullptr);

            if (is_link) {
                REQUIRE_EQ(0, symlink(target.c_str(), own.c_str()));
            } else {
                std::ofstream(own) << "mine";
            }
            REQUIRE((list != nullptr) && (list[0] != nullptr));
            REQUIRE(ibv_open_device(list[0]) == nullptr);
            ibv_free_device_list(list);
            if (!is_link) {
                REQUIRE_EQ(4, std::filesystem::file_size(own));
            }
        });
        EXPECT_NE(std::string::npos,
                  errors().find(is_link ? "symbolic link" : "not overwritten"))
                << errors();
    }
    EXPECT_NE(0, access(target.c_str(), F_OK));
}
