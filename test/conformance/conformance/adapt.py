# SPDX-License-Identifier: BSD-3-Clause
"""Put the transport into a copy of UCX's tests.

Every edit must match as often as it says, so that another version of UCX is
noticed and does not silently test less. UCX's tests are known in several shapes;
which one a source has is seen from what the edits find in it, all of them.
"""

import dataclasses
import glob
import os
import re


@dataclasses.dataclass(frozen=True)
class Edit:
    path: str           # below test/gtest; may be a pattern for glob
    pattern: str        # regular expression, for whole lines or parts
    replacement: str
    count: int | dict   # how often it matches: in all shapes, or from each of
                        # these on, and before the first not at all
    why: str

    def counts(self):
        if isinstance(self.count, int):
            return (self.count,) * len(SHAPES)
        assert set(self.count) <= set(SHAPES), self.count
        counts = []
        for shape in SHAPES:
            counts.append(self.count.get(shape, counts[-1] if counts else 0))
        return tuple(counts)


# The releases of UCX where the shapes were met. One that is not here and has one
# of the shapes will do.
SHAPES = ("1.13.1", "1.14.1", "1.15.0", "1.16.0", "1.17.0", "1.18.1", "1.19.1",
          "1.20.1", "1.21.0", "1.22.0")


_TLS = "UCP_INSTANTIATE_TEST_CASE_TLS"

EDITS = [
    Edit("uct/uct_test.h", r"^#define UCT_TEST_IB_TLS \\$(?![^#]*\bsrd$)",
         "\\g<0>\n    sep_mlx5,           \\\\", {"1.13.1": 1, "1.20.1": 0},
         "UCT tests of InfiniBand transports"),
    # UCX's lists have no more room there. There is no adapter with srd, so it is
    # in none of our builds
    Edit("uct/uct_test.h", r"^(#define UCT_TEST_IB_TLS \\$[^#]*\b)srd$",
         r"\1sep_mlx5", {"1.20.1": 1}, "UCT tests of InfiniBand transports"),
    Edit("uct/test_md.cc", r"^( *)ib, \\$", r"\g<0>" + "\n" + r"\1sep, \\", 1,
         "tests of memory domains"),
    Edit("ucp/ucp_test.h", rf"^(#define UCP_INSTANTIATE_TEST_CASE"
         r"(?:_GPU_AWARE)?)\(_test_case\) \\$",
         "\\g<0>\n    " + _TLS + r'(_test_case, sep, "sep_mlx5") \\', 2,
         "UCP tests"),

    # Instances that UCX makes by name
    Edit("ucp/test_ucp_[cw]*.cc",
         rf'^{_TLS}\((test_\w+), rcx, *"rc_x"\)$',
         "\\g<0>\n" + _TLS + r'(\1, sep, "sep_mlx5")', 3,
         "UCP tests for rc_x alone"),
    Edit("ucp/test_ucp_[crw]*.cc",
         rf'^{_TLS}\((test_\w+), all, *"all"\)$',
         "\\g<0>\n" + _TLS + r'(\1, sep, "sep_mlx5")' + "\n" +
         _TLS + r'(\1, rcx, "rc_x")',
         {"1.13.1": 6, "1.15.0": 7, "1.18.1": 8, "1.19.1": 9, "1.21.0": 10,
          "1.22.0": 11},
         "UCP tests that UCX runs with all transports at once"),
    Edit("ucp/test_ucp_peer_failure.cc",
         rf'^{_TLS}\((test_\w+), rc_x, *"rc_x"\)$',
         "\\g<0>\n" + _TLS + r'(\1, sep, "sep_mlx5")' + "\n" +
         _TLS + r'(\1, rcx, "rc_x")', {"1.20.1": 1},
         "a UCP test for rc_x alone, which names it in another way"),

    # A skipped test counts as passed in GoogleTest's report
    Edit("common/test.cc", r'^( *)m_state = SKIPPED;\n( *skipped_tests)',
         r'\1m_state = SKIPPED;' + "\n" +
         r'\1::testing::Test::RecordProperty("skipped",' + "\n" +
         r'\1        reason.empty() ? "no reason given" : reason);' + "\n" +
         r"\2", 1, "why a test was skipped is in the report"),

    # UCX makes all workers for several threads. Optimisations for one are tested
    # with SEP_UCX_SINGLE=y, on another build as well
    Edit("ucp/ucp_test.cc",
         r"^( *)params\.thread_mode = UCS_THREAD_MODE_MULTI;$",
         r'\1params.thread_mode = (getenv("SEP_UCX_SINGLE") != NULL) &&' + "\n"
         r"\1                     (get_variant_thread_type() !=" + "\n"
         r"\1                      MULTI_THREAD_WORKER) ?" + "\n"
         r"\1                     UCS_THREAD_MODE_SINGLE :" + "\n"
         r"\1                     UCS_THREAD_MODE_MULTI;", 1,
         "workers of one thread where a test does not want several, if asked"),

    # Places where a test asks whether the transport is one that can RDMA
    Edit("ucp/test_ucp_[mt]*.cc", r'has_transport\("rc_x"\)',
         r'(\g<0> || has_transport("sep_mlx5"))', 2,
         "what is checked for rc_x is checked for sep_mlx5"),
    Edit("ucp/test_ucp_peer_failure.cc", r'has_transport\("rc_x"\)',
         r'(\g<0> || has_transport("sep_mlx5"))', {"1.20.1": 1},
         "what is checked for rc_x is checked for sep_mlx5"),
    Edit("ucp/test_ucp_am.cc", r'"dc_x", "rc_v", "rc_x", "ud_v",',
         r'"sep_mlx5", \g<0>', 1,
         "what is checked for InfiniBand is checked for sep_mlx5"),
    Edit("uct/test_flush.cc", r'\(GetParam\(\)->tl_name != "rc_mlx5"\)',
         r'\g<0> &&' + "\n"
         r'            (GetParam()->tl_name != "sep_mlx5")',
         {"1.13.1": 1, "1.14.1": 2, "1.18.1": 1},
         "the lists of transports that can cancel, and flush remote memory"),

    Edit("uct/test_uct_ep.cc", r'^( *)!has_ib\(\) && !has_transport\("tcp"\)\)$',
         r'\1!has_ib() && !has_transport("tcp") &&' + "\n"
         r'\1!has_transport("sep_mlx5"))', {"1.16.0": 1, "1.18.1": 0},
         "the transports that say whether they are connected"),

    # Settings of UCX's ib module: a transport without them runs the test as it
    # is, instead of failing because it cannot be set up
    Edit("uct/test_amo_*.cc", r'"IB_(TX_INLINE_RESP)=(\d+)"',
         r'"IB_\1?=\2", "SEP_\1?=\2", "\1?=\2"', 15,
         "inline responses, and the same setting of sep_mlx5"),
    Edit("uct/ib/test_ib_xfer.cc",
         r'"(IB_TX_INLINE_RESP|(?:IB_)?MLX5_DEVX|REG_METHODS|'
         r'(?:\*|IB_)?REG_MT_\w+|(?:IB_)?INDIRECT_ATOMIC)=', r'"\1?=',
         {"1.13.1": 18, "1.15.0": 16, "1.16.0": 13, "1.17.0": 11},
         "inline responses, ways of registration"),
    # rc_mlx5 has none on the software device, and runs these tests
    Edit("ucp/test_ucp_tag_mem_type.cc",
         r'has_any_transport\(\{"rc_x", "dc_x", "ib"\}\)',
         'has_any_transport({"rc_x", "dc_x", "ib", "sep_mlx5"})', {"1.14.1": 1},
         "tests that ask for tag offload, and do without"),
    # UCX skips whole suites since 1.19, as test_ucp_tag_xfer, for a defect of offload
    # in hardware
    Edit("ucp/test_ucp_tag.cc",
         r"^(void test_ucp_tag::enable_tag_mp_offload\(\)\n\{\n)"
         r" *if \(ucs::skip_hw_tm_offload\(\)\) \{\n *test_skip\(\);\n *\}\n",
         r"\1", {"1.19.1": 1}, "tests that ask for tag offload, and do without"),
    # UCX 1.13.1 knows it without the prefix
    Edit("uct/ib/test_ib_xfer.cc", r'"IB_(TX_INLINE_RESP\?=\d+)"',
         r'"IB_\1", "SEP_\1", "\1"', 5,
         "the same setting of sep_mlx5"),
    Edit("uct/ib/test_ib_xfer.cc",
         r'^( *)modify_config\("(?:\*|IB_)REG_MT_(?:THRESH|CHUNK)", '
         r'[^;]*(?=\);)',
         r'\g<0>,' + "\n" + r'\1              IGNORE_IF_NOT_EXIST', {"1.17.0": 2},
         "ways of registration"),
    Edit("uct/ib/test_ib_xfer.cc", r'"IB_(PCI_RELAXED_ORDERING)=try"',
         r'"IB_\1?=try", "SEP_\1?=try"', {"1.17.0": 1},
         "the same setting of sep_mlx5"),
    Edit("uct/ib/test_ib_xfer.cc",
         r"^( *)auto \*ib_md = ucs_derived_of\(sender\(\)\.md\(\)",
         r'\1if (strcmp(sender().md()->component->name, "ib") != 0) {' + "\n"
         r"\1    return false;" + "\n" r"\1}" + "\n" r"\g<0>", {"1.17.0": 1},
         "it looked into the memory domain as if it were always that of ib"),

    Edit("uct/test_event.cc", r'"RC_FC_ENABLE~=y"', '"RC_FC_ENABLE?=y"', 1,
         "flow control"),
    Edit("uct/ib/test_ib_xfer.cc",
         r'EXPECT_EQ\(((?:has_transport\("srd"\) \? 0u : )?1u,\s+sender\(\)'
         r"\.iface_attr\(\)\.cap\.get\.min_zcopy\))", r"EXPECT_GE(\1", 2,
         "sep_mlx5 also reads nothing, whatever the setting"),
    # From UCX 1.18 on, names of settings have the prefix of their table
    Edit("uct/test_p2p_am.cc",
         r'^( *)status_bufs *= (uct_config_modify\(m_iface_config, ")'
         r'(RX_MAX_BUFS[^;]*;)\n',
         r"\g<0>" + "\n" r"\1if (status_bufs != UCS_OK) {" + "\n"
         r"\1    status_bufs = \2SEP_\3" + "\n" r"\1}" + "\n", 1,
         "the same setting of sep_mlx5"),
    Edit("uct/test_p2p_am.cc",
         r"^( *)if \(\(status1 != UCS_OK\) \|\| \(status2 != UCS_OK\)\) \{$",
         r"\1if (status1 != UCS_OK) {" + "\n"
         r"\1    status1 = uct_config_modify(m_iface_config, "
         r'"SEP_TX_MAX_BUFS", "32");' + "\n"
         r"\1    status2 = uct_config_modify(m_iface_config, "
         r'"SEP_TX_BUFS_GROW", "32");' + "\n" r"\1}" + "\n" r"\g<0>", 1,
         "the same setting of sep_mlx5"),
    # UCP has a SEG_SIZE of its own, so this one can only be set from outside
    Edit("ucp/test_ucp_worker.cc",
         r'^( *)ucp_config_modify\(m_ucp_config, "IB_SEG_SIZE",\n'
         r'( *ucs::to_string\(m_seg_size\)\.c_str\(\)\);)$',
         r'\g<0>' + "\n"
         r'\1m_env_stack.push_back(new ucs::scoped_setenv("UCX_SEP_SEG_SIZE",'
         + "\n" + r'\1    ucs::to_string(m_seg_size).c_str()));', 1,
         "the same setting of sep_mlx5"),
    Edit("ucp/test_ucp_am.cc",
         r'^( *test_ucp_am_nbx_closed_ep\(\)\n *\{\n)( *)'
         r'(modify_config\("RESOLVE_REMOTE_EP_ID", "auto"\);)$',
         r'\1\2\3' + "\n" + r'\2modify_config("RX_MAX_POLL", "1", '
         r'IGNORE_IF_NOT_EXIST);', 1,
         "the message shall be half received after one progress, whatever the "
         "environment says"),

    # UCT says that an operation may be refused for lack of resources, and
    # sep_mlx5 refuses the first one on an endpoint while it connects. These
    # tests take that for an error, or do not look.
    Edit("uct/test_fence.cc",
         r"^( *)(\(test->\*m_send\)\([^;]*\));\n( *uct_ep_fence)",
         r"\1while (\2 == UCS_ERR_NO_RESOURCE) {\n\1    m_entity.progress();"
         r"\n\1}\n\3", 1, "wait for the connection"),
    Edit("uct/test_p2p_am.cc",
         r"^( *)ucs_status_t status = (\(this->\*send_f\)\(sender_ep\(\), "
         r"sendbuf, sendbuf\));\n( *ASSERT_UCS_OK_OR_INPROGRESS)",
         r"\1ucs_status_t status;\n\1while ((status = \2) == "
         r"UCS_ERR_NO_RESOURCE) {\n\1    progress();\n\1}\n\3", 1,
         "wait for the connection"),
    Edit("uct/test_pending.cc",
         r"^( *)ucs_status_t status = (uct_ep_am_zcopy\([^;]*&comp\.uct\));",
         r"\1ucs_status_t status;\n\1while ((status = \2) == "
         r"UCS_ERR_NO_RESOURCE) {\n\1    progress();\n\1}", 1,
         "wait for the connection"),
    Edit("uct/test_stats.cc",
         r"^( *)status = (uct_ep_atomic ?##_val##_(?:post|fetch)\([^;]*\)); \\$",
         r"\1UCT_TEST_CALL_AND_TRY_AGAIN( \\\n\1    \2, status); \\", 2,
         "wait for the connection"),

    # A packed key has as many bytes as the memory domain says, which for
    # sep_mlx5 are more with relaxed ordering
    Edit("uct/test_md.cc", r"^( *)uint64_t( *)key;$",
         r"\1uint64_t\2key_buffer[4];" + "\n"
         r"\1uint64_t\2&key = key_buffer[0];",
         {"1.13.1": 1, "1.16.0": 2, "1.17.0": 1},
         "room for the whole key, not only for 8 bytes of it"),

    # It makes addresses of random bytes; such a one looks like one of another
    # version, of which sep_mlx5 warns
    Edit("uct/test_uct_iface.cc", r"^( *)bool found_unreachable *= false;$",
         r"\g<0>" + "\n" r"\1scoped_log_handler hide(hide_warns_logger);",
         {"1.20.1": 1}, "warnings about addresses that are none"),

    # A put that was accepted has not arrived: its target may be released after
    # a flush only
    Edit("uct/ib/test_ib_xfer.cc",
         r"uct_ep_fence\(sender_ep\(\), 0\);\n\n *blocking_send\([^;]*\);\n"
         r"(?!\n *flush)",
         r"\g<0>\n    flush();\n", {"1.13.1": 1, "1.16.0": 0},
         "put into memory that exists until it has arrived"),
    # Nor is it acknowledged when it has arrived: UD may send it again
    Edit("uct/test_p2p_am.cc",
         r"^( *)blocking_send\([^;]*::am_zcopy\),\n[^;]*, false\);\n"
         r" *am_a?sync_finish\(am_count\);\n",
         r"\g<0>\1flush();\n", 2,
         "keep what is sent until it is acknowledged"),
]


def adapt(source):
    """Edit the copy of UCX in directory source. Returns the shape of its tests;
    if it has none of them, nothing is written."""
    tests = os.path.join(source, "test", "gtest")
    texts = {}
    found = []
    for edit in EDITS:
        total = 0
        for path in sorted(glob.glob(os.path.join(tests, edit.path))):
            if path not in texts:
                with open(path, encoding="utf-8") as file:
                    texts[path] = file.read()
            texts[path], count = re.subn(edit.pattern, edit.replacement,
                                         texts[path], flags=re.MULTILINE)
            total += count
        found.append(total)

    shape = _shape(found, tests)
    for path, text in texts.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return shape


def _shape(found, tests):
    """The shape in which every edit matches as often as it did here."""
    nearest = None
    for index, shape in enumerate(SHAPES):
        wrong = [f"{tests}/{edit.path}: '{edit.pattern}' matches {total} "
                 f"times, not {edit.counts()[index]}"
                 for edit, total in zip(EDITS, found)
                 if total != edit.counts()[index]]
        if not wrong:
            return shape
        if nearest is None or len(wrong) < len(nearest[1]):
            nearest = shape, wrong
    raise SystemExit("\n".join(nearest[1]) + f"\nThese are not the tests of UCX "
                     f"{', '.join(SHAPES)}, unchanged; most like those of "
                     f"{nearest[0]}")
