# SPDX-License-Identifier: BSD-3-Clause
"""Which of UCX's tests are run, which are not, and where a difference between
the transports is right. Each exception has its reason."""

import re

# Instances of the test suites: ours, the one to compare with, and the group.
UCT = ("sep_mlx5", "rc_mlx5", "uct")
MD = ("sep", "ib", "md")
UCP = ("sep", "rcx", "ucp")
# Transports alone, only if asked for: UCX's others for InfiniBand, as witnesses of
# what the device does, and those below UCP that our changes to it concern.
ALONE = [("ud_mlx5", None, "ud"), ("dc_mlx5", None, "dc"),
         ("rc_verbs", None, "rc-verbs"), ("ud_verbs", None, "ud-verbs")]
UNDER_UCP = [("udx", None, "ucp-ud"), ("dcx", None, "ucp-dc"),
             ("rc", None, "ucp-rc-verbs"), ("ud", None, "ucp-ud-verbs"),
             ("self", None, "ucp-self"), ("tcp", None, "ucp-tcp"),
             ("shm_ib", None, "ucp-shm")]
# What looks into rc_mlx5, and is no comparison with anything
RC = ("rc_mlx5", None, "rc")
PAIRS = [RC, UCT, MD, UCP, *ALONE, *UNDER_UCP]
BY_DEFAULT = tuple(pair[2] for pair in (UCT, MD, UCP))

_MD_SUITES = re.compile(r"^test_md")
_RC_SUITES = re.compile(
    r"^test_rc|^test_uct_ib_|^test_uct_event_ib$|^test_uct_cq_moderation$|"
    r"^test_uct_query_ib$|^test_cqe_zipping$|^test_devx|^uct_p2p_test_event|"
    r"^uct_qp_test_event")
# UCT has instances of these names as well
_UCP_SUITES = re.compile(r"^test_(?:ucp|proto|reconfig)_")

# Suites and tests that are not run, on either of the transports that are compared.
EXCLUDED = [
    (r"^test_ucp_sockaddr",
     "needs a connection manager (rdma_cm or TCP) besides the transport"),
    (r"^test_uct_ib_|^test_uct_event_ib\.|^test_uct_cq_moderation\.|"
     r"^uct_p2p_test_event|^uct_qp_test_event",
     "reads uct_ib_iface_t or changes configuration of UCX's ib module"),
    (r"^test_tag\b|^test_tag_|^test_ucp_tag_offload",
     "hardware tag matching, which sep_mlx5 does not offer"),
    (r"^test_rc_|^test_rc\b", "internals of rc_mlx5"),
]

# Suites and tests of later versions than UCX 1.13.1 that are not run.
EXCLUDED_LATER = [
    (r"^test_uct_query_ib\.", "changes configuration of UCX's ib module"),
]

# On transports alone only these are not run.
EXCLUDED_ALONE = [
    (r"^test_tag\b|^test_tag_|^test_ucp_tag_offload",
     "hardware tag matching, which the software device has not"),
]

# Differences that are right: test, reason.
NOTES = [
    (r"^test_ucp_am_nbx\.rx_am_mpools/",
     "random, up to 31 bytes and headers of 9: sep_mlx5 finds up to 32 in "
     "completions by default, rc_mlx5 up to 64; the test is about these"),
]

# What rc_mlx5 of UCX 1.16 and later fails at on a device without DevX, as the
# software device is: 64-bit atomics, and flushing remote memory, each with a key
# that only DevX makes (docs/conformance.md).
RC_MLX5_DEFECTS = [
    r"^uct_amo_\w+\.\w*64", r"^uct_fence_test\.add64",
    r"^uct_p2p_mix_test\.mix1000_last_byte_offset/",
    r"^uct_flush_test\.\w+_flush_ep_remote/"]

# The representative part: "group suite.test". All of UCT except what moves
# gigabytes or waits on purpose; of UCP, what uses each part of the transport.
QUICK = [
    r"^(?:uct|ud|rc|dc|rc-verbs|ud-verbs) (?!uct_p2p_rma_test\w*\.(?:(?:put|get)_zcopy|xfer_reg)|"
    r"test_uct_perf|test_uct_loopback|test_uct_pending\.pending_fairness|"
    r"test_uct_peer_failure_multiple|test_zcopy_comp|"
    r"test_uct_ep\.destroy_entity)",
    r"^md ",
    r"^ucp(?:-(?:ud|dc)|-..-verbs)? test_ucp_(?:atomic\d\d|fence\d\d|peer_failure\w*|wakeup\w*|ep|"
    r"am|am_nbx|am_nbx_rndv|stream\w*|wireup_errh_peer|wireup_amo|"
    r"wireup_keepalive|tag_match|tag_probe|worker\w*|context)\.",
    r"^ucp(?:-(?:ud|dc)|-..-verbs)? test_ucp_wireup_[12]sided\.(?!stress|multi_wireup).*/[0-3]$",
    r"^ucp(?:-(?:ud|dc)|-..-verbs)? test_ucp_rma\.\w+/0$",
]


def group_of(test):
    """The pair of instances that a test belongs to, or None."""
    for pair in PAIRS:
        if test.instance in pair[:2] and \
                (pair is MD) == bool(_MD_SUITES.match(test.suite)) and \
                (pair is not RC or _RC_SUITES.match(test.suite)) and \
                (pair not in UNDER_UCP or _UCP_SUITES.match(test.suite)):
            return pair
    return None


def excluded(suite_and_test, group="uct"):
    """Why a test is not run in a group, or None."""
    for pattern, reason in EXCLUDED + EXCLUDED_LATER \
            if group in BY_DEFAULT else EXCLUDED_ALONE:
        if re.search(pattern, suite_and_test):
            return reason
    return None


def note(suite_and_test):
    """Why a difference in this test is right, or None."""
    for pattern, reason in NOTES:
        if re.search(pattern, suite_and_test):
            return reason
    return None


def is_rc_mlx5_defect(suite_and_test, ucx_version):
    """Whether rc_mlx5 of that UCX fails at a test for which no device is to
    blame."""
    numbers = [int(number) for number in re.findall(r"\d+", ucx_version)[:2]]
    return numbers >= [1, 16] and any(re.search(pattern, suite_and_test)
                                      for pattern in RC_MLX5_DEFECTS)


def alternatives(pattern):
    """What an expression joins by | outside of all brackets."""
    depth, parts = 0, [""]
    for character in pattern:
        depth += (character in "([") - (character in ")]")
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def dead_patterns(patterns, names):
    """Alternatives that are found in none of the names."""
    return [each for pattern in patterns for each in alternatives(pattern)
            if not any(re.search(each, name) for name in names)]


def dead_entries(lists, tests, unbuilt=()):
    """What the lists of these names say about tests that are not there. What is
    excluded need not be built: unbuilt are the names of all in the source."""
    names = {f"{test.suite}.{test.name}" for test in tests}
    with_group = {f"{group_of(test)[2]} {test.suite}.{test.name}"
                  for test in tests if group_of(test)}
    dead = []
    for each in lists:
        entries = globals()[each]
        patterns = [entry if isinstance(entry, str) else entry[0]
                    for entry in entries]
        known = with_group if entries is QUICK else names
        if entries in (EXCLUDED, EXCLUDED_LATER):
            known = names.union(unbuilt)
        dead += [f"{each} {pattern}"
                 for pattern in dead_patterns(patterns, known)]
    return dead


def quick(suite_and_test):
    return any(re.search(pattern, suite_and_test) for pattern in QUICK)
