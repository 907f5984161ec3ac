# SPDX-License-Identifier: BSD-3-Clause
"""Command line of bench/run eager."""

import argparse
import os
import sys

from . import eager, process
from .bench import BenchError

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__)))))


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="eager", description="Measure the eager channel beside "
        "send/receive; see contrib/bench-eager.sh.")
    parser.add_argument("--build-dir", default=".", metavar="DIR")
    parser.add_argument("--ucx", metavar="PREFIX", type=os.path.abspath,
                        help="the UCX of the build, if not the installed one")
    parser.add_argument("--tsv", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="ROW",
                        choices=eager.row_names())
    parser.add_argument("--polling", action="store_true")
    parser.add_argument("--jobs", action="store_true")
    parser.add_argument("--lengths", action="store_true")
    parser.add_argument("--count", type=int, default=256, metavar="N")
    parser.add_argument("--repeat", type=int, metavar="N")
    parser.add_argument("--log-dir", metavar="DIR")
    options = parser.parse_args(argv)
    options.repeat = options.repeat or (3 if options.quick else 7)
    return options


def format_number(value):
    if value is None:
        return "n/a"
    return f"{value:.2f}" if abs(value) < 20 else f"{value:.1f}"


def print_row(options, row):
    cells = [row.values.get(column) for column in eager.COLUMNS]
    if options.tsv:
        print(row.name, *map(format_number, [*cells[:2], row.ratio]), sep="\t",
              flush=True)
        return
    print(f"{row.name:22}" + "".join(f"{format_number(cell):>14}" for cell in
                                     [*cells[:2], row.ratio, cells[2]]) +
          f"  {row.unit}", flush=True)


def rows(bench, options):
    """Measure row after row, in groups that share a run."""
    names = options.only or eager.row_names()
    columns = eager.COLUMNS[:2] if options.tsv else eager.COLUMNS
    wanted = [name for name in eager.INSTRUCTIONS if name in names]
    if wanted:
        yield from bench.instruction_rows(wanted, columns)
    kinds = [kind for kind in eager.MESSAGES if
             any(f"{kind}_{work}" in names for work in eager.WORK)]
    if kinds:
        for row in bench.device_work(kinds, columns):
            if row.name in names:
                yield row
    if eager.POLL in names:
        yield bench.poll_row(eager.QUICK_RINGS if options.quick else
                             eager.RINGS)
    yield from bench.times([name for name in eager.TIMES if name in names],
                           columns)


def print_polling(bench, options):
    """Idle progress by the number of rings."""
    numbers = eager.QUICK_RINGS if options.quick else eager.RINGS
    instructions = bench.polling(numbers)
    nanoseconds = bench.polling_time(numbers)
    if not options.tsv:
        print(f"{'rings':>8}{'instructions':>14}{'ns':>10}{'ns / idle':>12}")
    for number in (0, *numbers):
        cells = (number, f"{instructions[number]:.1f}",
                 f"{nanoseconds[number]:.1f}",
                 f"{nanoseconds[number] / nanoseconds[0]:.1f}")
        if options.tsv:
            print(*cells, sep="\t")
        else:
            print("{:8}{:>14}{:>10}{:>12}".format(*cells))


def print_lengths(bench, options):
    """Shares of the messages that found a slot, by the length of rings."""
    slots = eager.QUICK_LENGTHS if options.quick else eager.LENGTHS
    print("program" if options.tsv else f"{'':22}",
          *[number if options.tsv else f"{number:>8}" for number in slots],
          sep="\t" if options.tsv else "")
    for name, found in bench.lengths(slots):
        cells = []
        for number in slots:
            counters = found[number][0]
            all_sent = counters["ring_sent"] + counters["ring_full"]
            cells.append(f"{100 * counters['ring_sent'] / all_sent:.1f}"
                         if all_sent else "n/a")
        if options.tsv:
            print(name, *cells, sep="\t", flush=True)
        else:
            print(f"{name:22}" + "".join(f"{cell:>8}" for cell in cells),
                  flush=True)


def main(argv=None):
    options = parse_arguments(argv)
    process.end_with_cleanup()
    bench = eager.Bench(options.build_dir, TOP, options.ucx, options.count,
                        options.repeat, options.log_dir)
    try:
        if options.polling:
            print_polling(bench, options)
            return 0
        if options.lengths:
            print_lengths(bench, options)
            return 0
        if not options.tsv:
            print(f"{'':22}" + "".join(f"{head:>14}" for head in (
                eager.SEND_RECEIVE, eager.RING, "ratio", eager.PEER)))
        for row in bench.job_rows(eager.COLUMNS[:2] if options.tsv else
                                  eager.COLUMNS) if options.jobs else \
                rows(bench, options):
            print_row(options, row)
    except (BenchError, OSError, ValueError) as error:
        print(f"eager: {error}", file=sys.stderr)
        return 1
    return 0
