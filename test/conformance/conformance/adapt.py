# SPDX-License-Identifier: BSD-3-Clause
"""Put the transport into a copy of UCX's tests.

Every edit must match as often as it says, so that another version of UCX is
noticed and does not silently test less.
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
    count: int          # how often it matches
    why: str


_TLS = "UCP_INSTANTIATE_TEST_CASE_TLS"

EDITS = [
    Edit("uct/uct_test.h", r"^#define UCT_TEST_IB_TLS \\$",
         "\\g<0>\n    sep_mlx5,           \\\\", 1,
         "UCT tests of InfiniBand transports"),
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
         _TLS + r'(\1, rcx, "rc_x")', 6,
         "UCP tests that UCX runs with all transports at once"),

    # A skipped test counts as passed in GoogleTest's report
    Edit("common/test.cc", r'^( *)m_state = SKIPPED;\n( *skipped_tests)',
         r'\1m_state = SKIPPED;' + "\n" +
         r'\1::testing::Test::RecordProperty("skipped",' + "\n" +
         r'\1        reason.empty() ? "no reason given" : reason);' + "\n" +
         r"\2", 1, "why a test was skipped is in the report"),

    # Places where a test asks whether the transport is one that can RDMA
    Edit("ucp/*.cc", r'has_transport\("rc_x"\)',
         r'(\g<0> || has_transport("sep_mlx5"))', 2,
         "what is checked for rc_x is checked for sep_mlx5"),
    Edit("ucp/test_ucp_am.cc", r'"dc_x", "rc_v", "rc_x", "ud_v",',
         r'"sep_mlx5", \g<0>', 1,
         "what is checked for InfiniBand is checked for sep_mlx5"),
    Edit("uct/test_flush.cc", r'\(GetParam\(\)->tl_name != "rc_mlx5"\)\) {$',
         r'(GetParam()->tl_name != "rc_mlx5") &&' + "\n"
         r'            (GetParam()->tl_name != "sep_mlx5")) {', 1,
         "the list of transports that can cancel"),

    # Settings of UCX's ib module: a transport without them runs the test as it
    # is, instead of failing because it cannot be set up
    Edit("uct/test_amo_*.cc", r'"(IB_TX_INLINE_RESP)=', r'"\1?=', 15,
         "inline responses"),
    Edit("uct/ib/test_ib_xfer.cc",
         r'"(IB_TX_INLINE_RESP|MLX5_DEVX|REG_METHODS|REG_MT_\w+|'
         r'INDIRECT_ATOMIC)=', r'"\1?=', 18,
         "inline responses, ways of registration"),

    Edit("uct/test_event.cc", r'"RC_FC_ENABLE~=y"', '"RC_FC_ENABLE?=y"', 1,
         "flow control"),
    Edit("uct/ib/test_ib_xfer.cc",
         r"EXPECT_EQ\(1u, sender\(\)\.iface_attr\(\)\.cap\.get\.min_zcopy\)",
         "EXPECT_GE(1u, sender().iface_attr().cap.get.min_zcopy)", 2,
         "sep_mlx5 also reads nothing, whatever the setting"),
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

    # A put that was accepted has not arrived: its target may be released after
    # a flush only
    Edit("uct/ib/test_ib_xfer.cc",
         r"uct_ep_fence\(sender_ep\(\), 0\);\n\n *blocking_send\([^;]*\);\n",
         r"\g<0>\n    flush();\n", 1,
         "put into memory that exists until it has arrived"),
]


def adapt(source):
    """Edit the copy of UCX in directory source."""
    for edit in EDITS:
        total = 0
        for path in sorted(glob.glob(
                os.path.join(source, "test", "gtest", edit.path))):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            text, count = re.subn(edit.pattern, edit.replacement, text,
                                  flags=re.MULTILINE)
            if count:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            total += count
        if total != edit.count:
            raise SystemExit(f"{source}/test/gtest/{edit.path}: "
                             f"'{edit.pattern}' matches {total} times, not "
                             f"{edit.count}: is this UCX 1.13.1, unchanged?")
