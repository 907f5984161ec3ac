# SPDX-License-Identifier: BSD-3-Clause
"""Tables of instructions, from what insn.py has measured: a directory for each
column, with the files insn, lines and device, which are lines of an operation and
its numbers, separated by tabs."""

import os

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


def side_by_side(directory, columns):
    """Header, then operations of the first column, and what all have of them."""
    yield ["op", *columns]
    found = [read(directory, name, "insn") for name in columns]
    for op in found[0]:
        yield [op, *(side.get(op, ["n/a"])[0] for side in found)]


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


def for_people(rows, transports):
    """Two tables, and what is between."""
    yield [row[:4] for row in rows]
    yield [[f"\nThe rest as {' / '.join(transports)}"]]
    yield [["op", *TOUCHES]]
    yield [[row[0]] + [f"{mine} / {peer}" for mine, peer in
                       zip(row[4::2], row[5::2])] for row in rows[1:]]


def worse(rows):
    """One sentence for each number that is larger than the peer's."""
    header = ["instructions", None, None, *rows[0][4:]]
    for row in rows[1:]:
        cells = row[1:]
        for i in [0, *range(3, len(cells), 2)]:
            mine, peer = cells[i], cells[i + 1]
            if "n/a" not in (mine, peer) and float(mine) > float(peer):
                yield f"{row[0]}, {header[i].split()[0]}: {mine}, not {peer}"
