# SPDX-License-Identifier: BSD-3-Clause
"""Which transports UCP chose, from UCX's own log."""

import glob
import os
import re


def parse(text):
    """All lanes of the endpoints in a UCX log of level info, as
    {"transport/device": {use, ...}}.

    UCP says for every endpoint configuration, depending on its version,
        ep_cfg[1]: tag(rc_mlx5/mlx5_0:1); rma(rc_mlx5/mlx5_0:1)
        ucp_context_0 intra-node cfg#1 tag(rc_mlx5/mlx5_0:1)
    """
    lanes = {}
    for line in text.splitlines():
        match = re.search(r"\b(?:ep_cfg\[\d+\]:|cfg#\d+) (.*)$", line)
        if not match:
            continue
        for use, inside in re.findall(r"(\w+)\(([^)]*)\)", match.group(1)):
            for lane in inside.split():
                lanes.setdefault(lane, set()).add(use)
    return lanes


def read_logs(directory):
    """All UCX logs of a directory, one behind the other."""
    text = ""
    for path in sorted(glob.glob(os.path.join(directory, "ucx.*"))):
        with open(path, encoding="utf-8", errors="replace") as file:
            text += file.read() + "\n"
    return text


def hosts(directory):
    """Names of the nodes on which processes wrote a log, UCX_LOG_FILE being
    ucx.%h.%p."""
    return sorted({os.path.basename(path).split(".", 1)[1].rpartition(".")[0]
                   for path in glob.glob(os.path.join(directory, "ucx.*"))})


def foreign(lanes, allowed):
    """Lanes that do not belong to one of the allowed transports."""
    return sorted(lane for lane in lanes if
                  lane.partition("/")[0] not in allowed)
