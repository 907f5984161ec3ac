/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_side.h>

#include <ucp/api/ucp.h>
#include <uct/api/v2/uct_v2.h>

#include <fnmatch.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

/*
 * What UCP reads of a transport, of sep_mlx5 beside rc_mlx5 on the same device.
 * Each difference has a reason, in the table at the end of this file and in
 * docs/capabilities.md: one that has none is an oversight.
 */

using namespace sep_uct_test;

namespace {

/* Names and values */
class attributes {
public:
    template<typename T> void add(const std::string &name, const T &value)
    {
        std::ostringstream text;

        text << value;
        m_values[name] = text.str();
    }

    void add(const std::string &name, const ucs_linear_func_t &func)
    {
        add(name + ".c", func.c);
        add(name + ".m", func.m);
    }

    void add(const std::string &name, const uct_ppn_bandwidth_t &bandwidth)
    {
        add(name + ".shared", bandwidth.shared);
        add(name + ".dedicated", bandwidth.dedicated);
    }

    /* A name for each bit */
    void add_bits(const std::string &name, uint64_t bits,
                  const std::map<unsigned, std::string> &bit_names)
    {
        for (unsigned i = 0; i < 64; ++i) {
            auto found       = bit_names.find(i);
            std::string what = (found == bit_names.end()) ?
                               std::to_string(i) : found->second;
            add(name + "." + what, (bits >> i) & 1);
        }
    }

    const std::map<std::string, std::string> &values() const
    {
        return m_values;
    }

private:
    std::map<std::string, std::string> m_values;
};

/* Adds a member of a structure where the version of UCX has it */
#define HAS_VALUE(_member, _value) \
    template<typename T> auto add_##_member(attributes *to, \
                                             const std::string &prefix, \
                                             const T &attr, int) \
            -> decltype((void)attr._member) \
    { \
        to->add(prefix + #_member, _value); \
    } \
    template<typename T> void add_##_member(attributes*, const std::string&, \
                                             const T&, ...) \
    { \
    }

#define HAS_MEMBER(_member) HAS_VALUE(_member, attr._member)
#define HAS_NUMBER(_member) HAS_VALUE(_member, (unsigned long)attr._member)

HAS_MEMBER(max_alloc)
HAS_MEMBER(max_reg)
HAS_MEMBER(reg_mem_types)
HAS_MEMBER(reg_nonblock_mem_types)
HAS_MEMBER(cache_mem_types)
HAS_MEMBER(gva_mem_types)
HAS_MEMBER(detect_mem_types)
HAS_MEMBER(alloc_mem_types)
HAS_MEMBER(access_mem_types)
HAS_MEMBER(dmabuf_mem_types)
HAS_MEMBER(exported_mkey_packed_size)
HAS_MEMBER(reg_alignment)
HAS_MEMBER(device_mem_element_size)
HAS_MEMBER(max_put_sgl_zcopy_count)

HAS_NUMBER(required_mem_flags)
HAS_NUMBER(ctl_device)
HAS_NUMBER(flags)
HAS_MEMBER(path_bandwidth)

const std::map<unsigned, std::string> iface_flags = {
    {0, "AM_SHORT"}, {1, "AM_BCOPY"}, {2, "AM_ZCOPY"}, {3, "PENDING"},
    {4, "PUT_SHORT"}, {5, "PUT_BCOPY"}, {6, "PUT_ZCOPY"}, {8, "GET_SHORT"},
    {9, "GET_BCOPY"}, {10, "GET_ZCOPY"}, {30, "ATOMIC_CPU"},
    {31, "ATOMIC_DEVICE"}, {32, "ERRHANDLE_SHORT_BUF"},
    {33, "ERRHANDLE_BCOPY_BUF"}, {34, "ERRHANDLE_ZCOPY_BUF"},
    {35, "ERRHANDLE_AM_ID"}, {36, "ERRHANDLE_REMOTE_MEM"},
    {37, "ERRHANDLE_BCOPY_LEN"}, {38, "ERRHANDLE_PEER_FAILURE"},
    {39, "EP_CHECK"}, {40, "CONNECT_TO_IFACE"}, {41, "CONNECT_TO_EP"},
    {42, "CONNECT_TO_SOCKADDR"}, {43, "AM_DUP"}, {44, "CB_SYNC"},
    {45, "CB_ASYNC"}, {46, "EP_KEEPALIVE"}, {47, "PUT_AM_ORDER"},
    {50, "TAG_EAGER_SHORT"}, {51, "TAG_EAGER_BCOPY"}, {52, "TAG_EAGER_ZCOPY"},
    {53, "TAG_RNDV_ZCOPY"}, {54, "INTER_NODE"}, {55, "DEVICE_EP"},
    {56, "DEVICE_LKEY"}
};

const std::map<unsigned, std::string> event_flags = {
    {0, "SEND_COMP"}, {1, "RECV"}, {2, "RECV_SIG"}, {3, "FD"},
    {4, "ASYNC_CB"}
};

const std::map<unsigned, std::string> md_flags = {
    {0, "ALLOC"}, {1, "REG"}, {2, "NEED_MEMH"}, {3, "NEED_RKEY"},
    {4, "ADVISE"}, {5, "FIXED"}, {6, "RKEY_PTR"}, {7, "SOCKADDR"},
    {8, "INVALIDATE"}, {9, "EXPORTED_MKEY"}, {10, "REG_DMABUF"},
    {11, "INVALIDATE_RMA"}, {12, "INVALIDATE_AMO"}, {13, "MEMTYPE_COPY"}
};

/* Attributes of a memory domain, from either version of the structure */
template<typename T> void add_md(attributes *to, const T &attr)
{
    add_max_alloc(to, "md.", attr, 0);
    add_max_reg(to, "md.", attr, 0);
    add_reg_mem_types(to, "md.", attr, 0);
    add_reg_nonblock_mem_types(to, "md.", attr, 0);
    add_cache_mem_types(to, "md.", attr, 0);
    add_gva_mem_types(to, "md.", attr, 0);
    add_detect_mem_types(to, "md.", attr, 0);
    add_alloc_mem_types(to, "md.", attr, 0);
    add_access_mem_types(to, "md.", attr, 0);
    add_dmabuf_mem_types(to, "md.", attr, 0);
    add_exported_mkey_packed_size(to, "md.", attr, 0);
    add_reg_alignment(to, "md.", attr, 0);
    add_required_mem_flags(to, "md.", attr, 0);
    to->add_bits("md.flags", attr.flags, md_flags);
}

void add_md(attributes *to, uct_md_h md)
{
    ucs_sys_cpuset_t local_cpus;
#ifdef SEP_UCX_MD_ATTR_V2
    uct_md_attr_v2_t attr = {};

    attr.field_mask = UINT64_MAX;
    ASSERT_EQ(UCS_OK, uct_md_query_v2(md, &attr));
    add_md(to, attr);
#else
    uct_md_attr_t attr = {};

    ASSERT_EQ(UCS_OK, uct_md_query(md, &attr));
    add_md(to, attr.cap);
#endif
    to->add("md.reg_cost", attr.reg_cost);
    to->add("md.rkey_packed_size", attr.rkey_packed_size);
#ifdef SEP_UCX_MD_ATTR_GLOBAL_ID
    /* Different of different components, and the same in all processes */
    to->add("md.has_global_id", attr.global_id[0] != '\0');
#endif
    memcpy(&local_cpus, &attr.local_cpus, sizeof(local_cpus));
    to->add("md.local_cpus", CPU_COUNT(&local_cpus));
}

void add_component(attributes *to, uct_component_h component)
{
    uct_component_attr_t attr;

    /* Names and resources aside, this is what there is */
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_FLAGS;
    ASSERT_EQ(UCS_OK, uct_component_query(component, &attr));
    to->add_bits("component.flags", attr.flags, {});
}

void add_iface(attributes *to, uct_iface_h iface)
{
    uct_iface_attr_t attr;

    ASSERT_EQ(UCS_OK, uct_iface_query(iface, &attr));
    to->add_bits("flags", attr.cap.flags, iface_flags);
    to->add_bits("event_flags", attr.cap.event_flags, event_flags);
    to->add("put.max_short", attr.cap.put.max_short);
    to->add("put.max_bcopy", attr.cap.put.max_bcopy);
    to->add("put.min_zcopy", attr.cap.put.min_zcopy);
    to->add("put.max_zcopy", attr.cap.put.max_zcopy);
    to->add("put.opt_zcopy_align", attr.cap.put.opt_zcopy_align);
    to->add("put.align_mtu", attr.cap.put.align_mtu);
    to->add("put.max_iov", attr.cap.put.max_iov);
    to->add("get.max_short", attr.cap.get.max_short);
    to->add("get.max_bcopy", attr.cap.get.max_bcopy);
    to->add("get.min_zcopy", attr.cap.get.min_zcopy);
    to->add("get.max_zcopy", attr.cap.get.max_zcopy);
    to->add("get.opt_zcopy_align", attr.cap.get.opt_zcopy_align);
    to->add("get.align_mtu", attr.cap.get.align_mtu);
    to->add("get.max_iov", attr.cap.get.max_iov);
    to->add("am.max_short", attr.cap.am.max_short);
    to->add("am.max_bcopy", attr.cap.am.max_bcopy);
    to->add("am.min_zcopy", attr.cap.am.min_zcopy);
    to->add("am.max_zcopy", attr.cap.am.max_zcopy);
    to->add("am.opt_zcopy_align", attr.cap.am.opt_zcopy_align);
    to->add("am.align_mtu", attr.cap.am.align_mtu);
    to->add("am.max_hdr", attr.cap.am.max_hdr);
    to->add("am.max_iov", attr.cap.am.max_iov);
    to->add("atomic32.op_flags", attr.cap.atomic32.op_flags);
    to->add("atomic32.fop_flags", attr.cap.atomic32.fop_flags);
    to->add("atomic64.op_flags", attr.cap.atomic64.op_flags);
    to->add("atomic64.fop_flags", attr.cap.atomic64.fop_flags);
    to->add("device_addr_len", attr.device_addr_len);
    to->add("iface_addr_len", attr.iface_addr_len);
    to->add("ep_addr_len", attr.ep_addr_len);
    to->add("max_conn_priv", attr.max_conn_priv);
    to->add("overhead", attr.overhead);
    to->add("bandwidth", attr.bandwidth);
    to->add("latency", attr.latency);
    to->add("priority", (unsigned)attr.priority);
    to->add("max_num_eps", attr.max_num_eps);
    to->add("dev_num_paths", attr.dev_num_paths);
    add_ctl_device(to, "", attr, 0);
}

void add_iface_v2(attributes *to, uct_iface_h iface)
{
#ifdef SEP_UCX_IFACE_QUERY_V2
    uct_iface_attr_v2_t attr = {};

    /* The first field: of UCX 1.20, and of 1.22, which has not got that one */
    attr.field_mask  = UCS_BIT(0);
    to->add("v2.status", ucs_status_string(uct_iface_query_v2(iface, &attr)));
    add_device_mem_element_size(to, "v2.", attr, 0);
    add_max_put_sgl_zcopy_count(to, "v2.", attr, 0);
#  ifdef SEP_UCX_PUT_SGL
    attr.field_mask  = UCT_IFACE_ATTR_FIELD_CAP_FLAGS;
    attr.cap.flags   = 0;
    EXPECT_EQ(UCS_OK, uct_iface_query_v2(iface, &attr));
    to->add_bits("v2.flags", attr.cap.flags, {});
#  endif
#endif
}

void add_perf(attributes *to, uct_iface_h iface)
{
    static const std::pair<const char*, uct_ep_operation_t> operations[] = {
        {"am_short", UCT_EP_OP_AM_SHORT}, {"am_bcopy", UCT_EP_OP_AM_BCOPY},
        {"am_zcopy", UCT_EP_OP_AM_ZCOPY}, {"put_short", UCT_EP_OP_PUT_SHORT},
        {"put_zcopy", UCT_EP_OP_PUT_ZCOPY}, {"get_bcopy", UCT_EP_OP_GET_BCOPY},
        {"get_zcopy", UCT_EP_OP_GET_ZCOPY}
    };

    for (auto &operation : operations) {
        std::string prefix   = std::string("perf.") + operation.first + ".";
        uct_perf_attr_t perf = {};

        perf.field_mask         = UINT64_MAX;
        perf.operation          = operation.second;
        perf.local_memory_type  = UCS_MEMORY_TYPE_HOST;
        perf.remote_memory_type = UCS_MEMORY_TYPE_HOST;
        perf.local_sys_device   = UCS_SYS_DEVICE_ID_UNKNOWN;
        perf.remote_sys_device  = UCS_SYS_DEVICE_ID_UNKNOWN;
        ASSERT_EQ(UCS_OK, uct_iface_estimate_perf(iface, &perf));
        to->add(prefix + "send_pre_overhead", perf.send_pre_overhead);
        to->add(prefix + "send_post_overhead", perf.send_post_overhead);
        to->add(prefix + "recv_overhead", perf.recv_overhead);
        to->add(prefix + "bandwidth", perf.bandwidth);
        to->add(prefix + "latency", perf.latency);
        to->add(prefix + "max_inflight_eps", perf.max_inflight_eps);
        add_flags(to, prefix, perf, 0);
        add_path_bandwidth(to, prefix, perf, 0);
    }
}

/* Ways to use the transport that UCP is told other things about */
enum {
    AS_IS       = 1 << 0,
    MPI_THREADS = 1 << 1,
    VERBS       = 1 << 2,
    EAGER       = 1 << 3,
    ANY         = AS_IS | MPI_THREADS | VERBS | EAGER
};

struct way {
    const char *name;
    unsigned   bit;
    settings   config;
};

/* GoogleTest would print its bytes */
std::ostream &operator<<(std::ostream &out, const way &value)
{
    return out << value.name;
}

/* Differences from rc_mlx5, and why they are right */
struct difference {
    const char *pattern; /* Of names, for fnmatch() */
    unsigned   from;     /* The first version of UCX that was tried and has
                            it, 100 * major + minor */
    unsigned   ways;     /* Those that have it */
    const char *row;     /* First column in docs/capabilities.md */
    const char *reason;
    unsigned   until = UINT_MAX; /* The last version that has it */
};

extern const std::vector<difference> differences;

class test_sep_caps : public test_sep_uct,
                      public ::testing::WithParamInterface<way> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }

        /* What is best depends on the processor */
        setenv("UCX_SEP_PCI_RELAXED_ORDERING", "off", 1);
        setenv("UCX_IB_PCI_RELAXED_ORDERING", "off", 1);
    }

    void TearDown() override
    {
        unsetenv("UCX_SEP_PCI_RELAXED_ORDERING");
        unsetenv("UCX_IB_PCI_RELAXED_ORDERING");
    }

    static attributes query(const char *tl, const settings &config)
    {
        side opened(tl, config, UCS_THREAD_MODE_SINGLE);
        attributes found;

        add_component(&found, opened.component());
        add_md(&found, opened.md());
        add_iface(&found, opened.iface());
        add_iface_v2(&found, opened.iface());
        add_perf(&found, opened.iface());
        return found;
    }

    /* Whether a row is for this version of UCX, and this way */
    static bool applies(const difference &row)
    {
        unsigned major, minor, release;

        ucp_get_version(&major, &minor, &release);

        unsigned version = major * 100 + minor;
        return (version >= row.from) && (version <= row.until) &&
               (row.ways & GetParam().bit);
    }

    /* The row that is about an attribute */
    static const difference *find_row(const std::string &name)
    {
        for (auto &row : differences) {
            if (applies(row) &&
                (fnmatch(row.pattern, name.c_str(), 0) == 0)) {
                return &row;
            }
        }
        return nullptr;
    }

    /* Compare sep_mlx5 and rc_mlx5 on the device that is there */
    static void compare()
    {
        auto ours   = query("sep_mlx5", GetParam().config).values();
        auto theirs = query("rc_mlx5", {}).values();
        std::set<const difference*> found;

        ASSERT_EQ(ours.size(), theirs.size());
        for (auto &each : ours) {
            const difference *row = find_row(each.first);

            if (each.second == theirs[each.first]) {
                continue;
            }

            if (row == nullptr) {
                ADD_FAILURE() << each.first << " is " << each.second
                              << ", with rc_mlx5 " << theirs[each.first]
                              << ": add a reason to the table, and to "
                                 "docs/capabilities.md, or mend it";
            } else {
                found.insert(row);
            }
        }

        for (auto &row : differences) {
            if (applies(row) && (found.count(&row) == 0)) {
                ADD_FAILURE() << row.pattern << " does not differ from rc_mlx5 "
                                 "any more: remove it from the table, and from "
                                 "docs/capabilities.md";
            }
        }
    }
};

TEST_P(test_sep_caps, each_difference_from_rc_mlx5_has_a_reason)
{
    compare();
}

TEST_P(test_sep_caps, each_difference_on_roce_has_a_reason)
{
    if (!on_device({{"MLX5SIM_LINK", "roce"}})) {
        return;
    }

    compare();
}

/* Each row of one table is in the other */
TEST(test_sep_caps_docs, has_the_same_differences)
{
    std::ifstream file(SEP_TEST_TOP "/docs/capabilities.md");
    std::set<std::string> documented, expected;

    for (std::string line; std::getline(file, line);) {
        if ((line.rfind("| ", 0) == 0) &&
            (line.find("(not in the test") == std::string::npos)) {
            documented.insert(line.substr(2, line.find(" | ") - 2));
        }
    }
    documented.erase("What");
    for (auto &row : differences) {
        expected.insert(row.row);
    }
    EXPECT_EQ(expected, documented);
}

const char *const seg_size_reason =
        "UCX_SEP_SEG_SIZE is 8273, so that fragments end between numbers; what "
        "is packed needs no more (docs/tuning.md)";
const char *const header_reason =
        "the header of a message is one byte shorter, for want of hardware tag "
        "matching";
const char *const connect_reason =
        "the interface connects by itself, on demand, and to interfaces: an "
        "endpoint has no address, and the interface's has what a peer needs";
const char *const atomics_reason =
        "UCX knows masked atomics and those of 4 bytes only where there is "
        "DEVX; libmlx5 tells of them without";
const char *const cost_reason =
        "an operation takes less than half of the instructions "
        "(contrib/bench-insn.sh)";
const char *const verbs_reason =
        "a request has room for the segments of an atomic, which libmlx5 "
        "reserves in all";
const char *const on_demand_reason =
        "an endpoint costs nothing before it is used, so the number of them "
        "neither slows down nor limits the transport";

const char *const seg_size_row = "`am.max_bcopy`, `am.max_zcopy`, "
                                 "`put.max_bcopy`, `get.max_bcopy`";
const char *const header_row   = "`am.max_short`, `am.max_hdr`";
const char *const length_row   = "lengths of addresses";
const char *const connect_row  = "`CONNECT_TO_IFACE`, `CONNECT_TO_EP`";
const char *const atomics_row  = "atomics of 4 bytes, masked ones";
const char *const cost_row     = "overheads";
const char *const verbs_row    = "`put.max_short`, `put.max_iov`, "
                                 "`get.max_iov` "
                                 "with `UCX_SEP_API=verbs`";
const char *const eps_row      = "`max_num_eps`, `max_inflight_eps`, growth of "
                                 "latency with endpoints";

const std::vector<difference> differences = {
    {"am.max_[bz]copy", 0, ANY, seg_size_row, seg_size_reason},
    {"[pg][ue]t.max_bcopy", 0, ANY, seg_size_row, seg_size_reason},
    {"am.max_short", 0, ANY, header_row, header_reason},
    {"am.max_hdr", 0, ANY, header_row, header_reason},
    {"flags.CONNECT_TO_*", 0, ANY, connect_row, connect_reason},
    {"*_addr_len", 0, ANY, length_row, connect_reason},
    {"atomic*_flags", 0, ANY & ~VERBS, atomics_row, atomics_reason},
    {"get.min_zcopy", 0, ANY, "`get.min_zcopy`",
     "results of up to 32 bytes come with their completion "
     "(UCX_SEP_TX_INLINE_RESP), 64 with rc_mlx5, whose completions take twice "
     "the memory for that"},
    {"*latency.m", 0, ANY, eps_row, on_demand_reason},
    {"max_num_eps", 0, ANY, eps_row, on_demand_reason},
    {"*.max_inflight_eps", 0, ANY, eps_row, on_demand_reason},
    {"priority", 0, ANY, "`priority`",
     "it decides between transports that are equal otherwise, and who loads "
     "sep_mlx5 wants it"},
    {"overhead", 0, ANY, cost_row, cost_reason},
    {"perf.*_overhead", 0, ANY, cost_row, cost_reason},
    {"md.flags.REG_DMABUF", 116, ANY, "`UCT_MD_FLAG_REG_DMABUF` (UCX 1.16)",
     "memory of accelerators is not registered"},
    {"md.cache_mem_types", 116, ANY, "`cache_mem_types` (UCX 1.16)",
     "memory of accelerators is not registered"},
    {"md.exported_mkey_packed_size", 116, ANY,
     "`exported_mkey_packed_size` (UCX 1.16)",
     "keys are not exported to other devices"},
    {"md.reg_alignment", 116, ANY, "`reg_alignment` (UCX 1.16 alone)",
     "UCP takes the greater one of it and 16 (ucp_memh_reg_align), so 1 is no "
     "demand, as 0 is; UCX's own say 1 later on", 116},
    {"perf.*_[bz]copy.latency.c", 116, ANY,
     "`estimate_perf`, latency of buffered and zero-copy operations (UCX 1.16)",
     "UCX adds a time for reading what is not in the request, of its own "
     "transports alone"},
    {"ctl_device", 122, ANY, "`ctl_device` (UCX 1.22)",
     "the processor controls it, so no device does; UCX's own leave it zero"},
    {"[pg][ue]t.max_iov", 0, VERBS, verbs_row, verbs_reason},
    {"put.max_short", 0, VERBS, verbs_row, verbs_reason},
    {"flags.PUT_AM_ORDER", 122, EAGER,
     "`PUT_AM_ORDER` (UCX 1.22) with `UCX_SEP_EAGER`",
     "a message can be a write itself, and no write waits for another one on a "
     "fabric that places packets out of order"},
    {"md.flags.INVALIDATE*", 0, ANY, "`UCT_MD_FLAG_INVALIDATE`",
     "memory that is deregistered can't be accessed any more; rc_mlx5 has keys "
     "that can be invalidated alone, which only DEVX makes"},
};

INSTANTIATE_TEST_SUITE_P(
        way, test_sep_caps,
        ::testing::Values(way{"as_is", AS_IS, {}},
                          way{"mpi_threads", MPI_THREADS,
                              {{"CATEGORY", "mpi_threads"}}},
                          way{"verbs", VERBS, {{"API", "verbs"}}},
                          way{"eager", EAGER, {{"EAGER", "y"}}}),
        [](const ::testing::TestParamInfo<way> &info) {
            return std::string(info.param.name);
        });

} // namespace
