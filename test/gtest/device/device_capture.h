/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_CAPTURE_H_
#define MLX5SIM_TEST_DEVICE_CAPTURE_H_

/*
 * Captures of the device (MLX5SIM_PCAP), as tshark sees them, and ICRCs of
 * their packets, by the rule and bit by bit.
 */

#include <device/device.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <unistd.h>

namespace device {
namespace pcap {

typedef std::vector<uint8_t> bytes_t;

/** What tshark says of a packet: fields with numbers in them. */
typedef std::map<std::string, uint64_t> fields_t;

/** Names of fields, and those of tshark 4.0. */
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

/** One of the link layers and address formats. */
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

inline std::ostream &operator<<(std::ostream &out, const network &net)
{
    return out << net.name;
}

/** Output of a command; it has to succeed. */
inline std::string output_of(const std::string &command)
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

inline bool has_tshark()
{
    return system("tshark --version > /dev/null 2>&1") == 0;
}

/** A value of tshark: bytes, a number, or, of later versions, a word. */
inline uint64_t number(const std::string &value, bool is_bytes)
{
    return (value == "True") ? 1 : (value == "False") ? 0 :
           strtoull(value.c_str(), nullptr, is_bytes ? 16 : 0);
}

inline uint32_t word(const bytes_t &bytes, size_t at)
{
    uint32_t value;

    memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
}

/** A file of frames; an incomplete last one is left out. */
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

/** One packet of a frame, by the tables of IBTA, annexes A16 and A17. */
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

/** Two connected QPs of one process. */
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

inline std::vector<fields_t>
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

inline std::string test_device_capture::refused()
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

/** Fields of a request and of an answer that all have. */
inline fields_t basic(uint64_t op, uint64_t psn, uint64_t qpn, fields_t more)
{
    fields_t fields = {{"op", op}, {"psn", psn}, {"qp", qpn}, {"ack", 0},
                       {"se", 0}, {"pad", 0}};

    for (const auto &field : more) {
        fields[field.first] = field.second;
    }
    return fields;
}

} // namespace pcap
} // namespace device

#endif
