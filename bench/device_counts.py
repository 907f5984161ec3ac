#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the software device did for each operation of bench/uct_insn.

usage: device_counts.py COUNTS PREFIX

COUNTS has a line "operation calls" for each operation. PREFIX.operation.before
and PREFIX.operation.after are what "mlx5sim-stat --json" printed then. Prints
"operation<TAB>DMA reads<TAB>DMA writes<TAB>MMIO writes" per call.
"""

import json
import sys

COUNTERS = ("dma_reads", "dma_writes", "mmio_writes")


def read(path):
    """The counters of one file."""
    try:
        with open(path, encoding="utf-8") as file:
            totals = json.load(file)["totals"]
        return [totals[name] for name in COUNTERS]
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"device_counts.py: no counters in {path}: {error!r}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    counts, prefix = sys.argv[1:]
    with open(counts, encoding="utf-8") as lines:
        for line in lines:
            name, number = line.split()
            before = read(f"{prefix}.{name}.before")
            after = read(f"{prefix}.{name}.after")
            print("\t".join([name] + [f"{(new - old) / int(number):.1f}"
                                      for old, new in zip(before, after)]))


main()
