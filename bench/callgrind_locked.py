#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which LOCKed instructions a program executed, by library and function.

usage: callgrind_locked.py CALLS FILE...

FILE was written by callgrind with --dump-instr=yes, for CALLS operations. Prints
"library<TAB>function<TAB>executed per operation" for each function that executed
any, and "library<TAB>*<TAB>instructions per operation" for each library. A
processor locks for the prefix, and for xchg with memory without one (Intel SDM,
volume 3, 9.1.2.2). The software device is left out: a real one would do its part
by itself.
"""

import collections
import os
import re
import subprocess
import sys

from callgrind_insn import counted, entries


def read(path):
    """{(object, function, address): executed} of one file."""
    counts = collections.Counter()
    address = 0

    for obj, fun, is_call, line in entries(path):
        if not re.match(r"^(0x|[+\-*])", line):
            continue
        words = line.split()
        # Positions may be relative to those of the line before
        if words[0].startswith("0x"):
            address = int(words[0], 16)
        elif words[0] != "*":
            address += int(words[0], 0)
        if not is_call and len(words) > 2:
            counts[obj, fun, address] += int(words[2])
    return counts


def locked_addresses(path):
    """Addresses of a library's instructions that lock."""
    found = set()
    if not os.path.exists(path):
        return found
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", path],
                          stdout=subprocess.PIPE, text=True) as objdump:
        for line in objdump.stdout:
            words = line.split(None, 2)
            if len(words) < 2 or not words[0].endswith(":"):
                continue
            rest = words[2] if len(words) > 2 else ""
            if words[1] == "lock" or (words[1].startswith("xchg") and
                                      "(" in rest):
                found.add(int(words[0][:-1], 16))
    return found


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    calls = int(sys.argv[1])
    counts = collections.Counter()
    for path in sys.argv[2:]:
        counts.update(read(path))

    libraries = collections.Counter()
    locked = collections.Counter()
    addresses = {}
    for (obj, fun, address), count in counts.items():
        if not counted(obj, fun):
            continue
        name = obj.rsplit("/", 1)[-1]
        libraries[name] += count
        if obj not in addresses:
            addresses[obj] = locked_addresses(obj)
        if address in addresses[obj]:
            locked[name, fun] += count

    for name, count in libraries.most_common():
        print(f"{name}\t*\t{count / calls:.1f}")
    for (name, fun), count in locked.most_common():
        print(f"{name}\t{fun}\t{count / calls:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
