#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of contrib/bench-insn.sh, from what it measured.

usage: insn_table.py tsv|text|check DIRECTORY TRANSPORT PEER

DIRECTORY has a directory for each of the two transports, with the files insn,
lines and device: lines of an operation and its numbers, separated by tabs.
"tsv" prints all, "text" two tables for people. "check" prints where TRANSPORT
is worse than PEER, and fails if it is anywhere.
"""

import os
import sys

# What instructions do not show, in the order of the files lines and device
TOUCHES = ("lines", "code", "reads", "writes", "mmio")


def read(*path):
    """{operation: [number as text]}, in the file's order."""
    rows = {}
    with open(os.path.join(*path), encoding="utf-8") as lines:
        for line in lines:
            name, *numbers = line.rstrip("\n").split("\t")
            rows[name] = numbers
    return rows


def rows_of(directory, transports):
    """Header, then for each operation of the peer: operation, instructions of
    both, ratio, then each of TOUCHES of both."""
    header = ["op", *transports, "ratio"]
    for touch in TOUCHES:
        header += [f"{touch} {transport}" for transport in transports]
    yield header

    insn = [read(directory, name, "insn") for name in transports]
    touches = []
    for name in transports:
        lines = read(directory, name, "lines")
        device = read(directory, name, "device")
        touches.append({op: lines[op] + device[op] for op in lines
                        if op in device})

    unknown = ["n/a"] * len(TOUCHES)
    for op in insn[1]:
        row = [op] + [side.get(op, ["n/a"])[0] for side in insn]
        row.append("n/a" if "n/a" in row
                   else f"{float(row[1]) / float(row[2]):.2f}")
        for pair in zip(*[side.get(op, unknown) for side in touches]):
            row += pair
        yield row


def print_aligned(rows):
    for row in rows:
        print(f"{row[0]:16}" + "".join(f"{cell:>18}" for cell in row[1:]))


def print_text(rows, transports):
    print_aligned(row[:4] for row in rows)
    print(f"\nThe rest as {' / '.join(transports)}")
    print_aligned([["op", *TOUCHES]] +
                  [[row[0]] + [f"{mine} / {peer}" for mine, peer in
                               zip(row[4::2], row[5::2])]
                   for row in rows[1:]])


def worse(rows):
    """One sentence for each number that is larger than the peer's."""
    header = ["instructions", None] + [None] + list(rows[0][4:])
    for row in rows[1:]:
        cells = row[1:]
        for i in [0] + list(range(3, len(cells), 2)):
            mine, peer = cells[i], cells[i + 1]
            if "n/a" not in (mine, peer) and float(mine) > float(peer):
                yield f"{row[0]}, {header[i].split()[0]}: {mine}, not {peer}"


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in ("tsv", "text", "check"):
        sys.exit(__doc__.strip())
    mode, directory, *transports = sys.argv[1:]
    rows = list(rows_of(directory, transports))
    if mode == "tsv":
        for row in rows:
            print("\t".join(row))
    elif mode == "text":
        print_text(rows, transports)
    else:
        found = list(worse(rows))
        print("".join(line + "\n" for line in found), end="")
        sys.exit(1 if found else 0)


main()
