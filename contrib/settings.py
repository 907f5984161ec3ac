#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/settings.md from the transport's configuration tables: what each
variable means and takes is as UCX prints it, defaults are as the tables have
them (UCX rounds times).

  contrib/settings.py BUILD >docs/settings.md
"""

import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TABLES = ("iface/sep_config.c", "md/sep_md_config.c")

# Which release had a variable first; the others came with 0.3.0
FIRST = {"0.1.0": """
    CATEGORY SEG_SIZE TX_QUEUE_LEN TX_MIN_INLINE TX_CQ_MODERATION TX_CQ_LEN
    TX_POST RX_QUEUE_LEN RX_MAX_POLL MAX_RD_ATOMIC MAX_GET_ZCOPY TIMEOUT
    RETRY_COUNT RNR_TIMEOUT RNR_RETRY_COUNT PATH_MTU IS_GLOBAL SL
    TRAFFIC_CLASS HOP_LIMIT GID_INDEX PKEY LID_PATH_BITS CM_TIMEOUT
    CM_RETRY_COUNT CM_RX_QUEUE_LEN RCACHE FORK_INIT MEM_REG_OVERHEAD""".split()}

# Headings, and what the names of their variables begin with; the first that fits
GROUPS = (
    ("Resources of a worker", r"CATEGORY|CQ_SHARING|API|MAX_QPS"),
    ("Sends", r"TX_|SEG_SIZE|FENCE|MAX_RD_ATOMIC|MAX_GET_ZCOPY"),
    ("Receives", r"RX_"),
    ("Flow control", r"FC_"),
    ("Eager channel", r"EAGER"),
    ("Connections", r"CM_"),
    ("Reliability", r"TIMEOUT|RETRY|RNR"),
    ("Network", r"PATH|IS_GLOBAL|SL$|AR_|TRAFFIC|HOP|GID|PKEY|NUM_PATHS|LID|"
                r"ROCE|SUBNET|ETH"),
    ("Memory", r"REG_METHODS|RCACHE|FORK|PCI_RELAXED"),
    ("What UCP is told, and events", r""))

# Where there is more to say
MORE = {
    "CATEGORY": "categories.md",
    "SEG_SIZE": "tuning.md#fragments-and-derived-datatypes",
    "MAX_QPS": "architecture.md#a-bounded-number-of-queue-pairs",
    "MAX_QPS_NODE": "architecture.md#the-node",
    "RX_MAX_POLL": "tuning.md#messages-per-progress-call",
    "TX_THROTTLE": "tuning.md#too-many-outstanding",
    "EAGER": "eager.md"}

HEAD = """\
# Settings

<!-- contrib/settings.py writes this page -->

All variables of the transport. They are UCX's: the environment sets them, or
`ucx.conf`, and `sep-run ucx_info -cf` lists them with their values. All have the
prefix `UCX_SEP_`. Those of the software device are in
[its manual](software-device.md).

UCX gives every transport the variables `ALLOC`, `FAILURE` and `MAX_NUM_EPS`, and those
with a registration cache `RCACHE_*`; those of memory pools (`TX_MAX_BUFS`,
`TX_BUFS_GROW`, and the same for `RX_`) are as in rc_mlx5."""


def defaults():
    """{name: default} of the variables that the transport's tables have."""
    found = {}
    for table in TABLES:
        path = os.path.join(TOP, "src/uct/ib/sep", table)
        with open(path, encoding="utf-8") as file:
            found.update(re.findall(r'^    \{"([A-Z][A-Z_]+)", "(.*?)",$',
                                    file.read(), re.M))
    return found


def printed(build):
    """[(name, text, syntax)] as UCX prints them."""
    output = subprocess.run(
        [f"{build}/bin/mlx5sim-run", f"{build}/bin/sep-run", "ucx_info", "-caf"],
        check=True, capture_output=True, text=True, timeout=300).stdout
    for comment, name in re.findall(
            r"^#\n((?:#.*\n)+)UCX_SEP_([A-Z_]+)=", output, re.M):
        lines = [line[2:] for line in comment.splitlines()]
        syntax = next(line for line in lines if line.startswith("syntax:"))
        yield (name, lines[:lines.index(syntax)],
               syntax.removeprefix("syntax:").strip())


VALUE = re.compile(r"  (\S+) +- (.*)")


def one_line(lines):
    """The text of a variable, with the list of its values in the same line."""
    text = ""
    listed = False
    for line in lines:
        value = VALUE.match(line)
        if value:
            text = text.rstrip(".") + ("; " if listed else ". ") + \
                f"`{value[1]}`: {value[2]}"
        else:
            end = "." if listed and not line.startswith(" ") else ""
            text += f"{end} {line.strip()}"
        listed = listed and line.startswith(" ") or bool(value)
    return escaped(text.strip().rstrip(".") + ".")


def escaped(text):
    """What does not end a cell, nor begin a tag."""
    return re.sub(r"<(?![^`]*`)", r"\<", text.replace("|", "\\|"))


def kind(lines, syntax):
    """What a variable takes, in a word or two."""
    values = [value[1] for value in map(VALUE.match, lines) if value]
    if not values and syntax[0] in "[<":
        values = syntax[1:-1].split("|")
    if values:
        text = ", ".join(each.strip("<>") if each.startswith("<") else f"`{each}`"
                         for each in values)
        return f"list of {text}" if syntax.startswith("comma") else text
    for begin, word in (("time", "time"), ("memory", "size"),
                        ("unsigned long", "number, `inf`, `auto`"),
                        ("unsigned", "number"), ("floating", "fraction"),
                        ("hex", "number, `auto`"),
                        ("comma-separated list of: numbers",
                         "list of numbers and ranges"),
                        ("comma-separated list of: device", "list")):
        if syntax.startswith(begin):
            return word
    return escaped(syntax)


def row(name, default, text, syntax):
    since = next((release for release, names in FIRST.items()
                  if name in names), "0.3.0")
    more = f" [More]({MORE[name]})" if name in MORE else ""
    shown = f"`{default}`" if default else ""
    return f"| `{name}` | {kind(text, syntax)} | {shown} | {since} | " \
           f"{one_line(text)}{more} |"


def page(build):
    values = defaults()
    rows = {heading: [] for heading, _ in GROUPS}
    for name, text, syntax in printed(build):
        if name in values:
            heading = next(heading for heading, names in GROUPS
                           if re.match(names, name))
            rows[heading].append(row(name, values[name], text, syntax))
    missing = len(values) - sum(map(len, rows.values()))
    if missing:
        sys.exit(f"ucx_info shows {missing} variables less than the tables have")
    parts = [HEAD]
    for heading, lines in rows.items():
        parts += ["", f"## {heading}", "",
                  "| UCX_SEP_... | Takes | Default | Since | |",
                  "|---|---|---|---|---|"] + lines
    return "\n".join(parts)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(page(sys.argv[1]))
