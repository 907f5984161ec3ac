# SPDX-License-Identifier: BSD-3-Clause
"""Command line of bench/run eager."""

from . import bench_cli, eager
from .bench import BenchError
from .bench_cli import show


def parse_arguments(argv):
    parser = bench_cli.parser(
        "eager", "Measure the eager channel beside send/receive", "polling",
        "jobs", "lengths")
    parser.add_argument("--only", action="append", metavar="ROW",
                        choices=eager.row_names())
    parser.add_argument("--count", type=int, default=256, metavar="N")
    parser.add_argument("--repeat", type=int, metavar="N")
    options = parser.parse_args(argv)
    options.repeat = options.repeat or (3 if options.quick else 7)
    return options


def format_number(value):
    if value is None:
        return "n/a"
    return f"{value:.2f}" if abs(value) < 20 else f"{value:.1f}"


def print_rows(bench, options):
    text = "{:22}" + 4 * "{:>14}" + "  {}"
    if not options.tsv:
        show(options, text, "", eager.SEND_RECEIVE, eager.RING, "ratio",
             eager.PEER, "")
    columns = eager.COLUMNS[:2] if options.tsv else eager.COLUMNS
    for row in bench.job_rows(columns) if options.jobs else \
            rows(bench, options, columns):
        first, second, peer = [format_number(row.values.get(column))
                               for column in eager.COLUMNS]
        show(options, text, row.name, first, second, format_number(row.ratio),
             *(() if options.tsv else (peer, row.unit)))


def rows(bench, options, columns):
    """Measure row after row, in groups that share a run."""
    names = options.only or eager.row_names()
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
    text = "{:>8}{:>14}{:>10}{:>12}"
    if not options.tsv:
        show(options, text, "rings", "instructions", "ns", "ns / idle")
    for number in (0, *numbers):
        show(options, text, number, f"{instructions[number]:.1f}",
             f"{nanoseconds[number]:.1f}",
             f"{nanoseconds[number] / nanoseconds[0]:.1f}")


def print_lengths(bench, options):
    """Shares of the messages that found a slot, by the length of rings."""
    slots = eager.QUICK_LENGTHS if options.quick else eager.LENGTHS
    text = "{:22}" + len(slots) * "{:>8}"
    show(options, text, "program" if options.tsv else "", *slots)
    for name, found in bench.lengths(slots):
        cells = []
        for number in slots:
            counters = found[number][0]
            all_sent = counters["ring_sent"] + counters["ring_full"]
            cells.append(f"{100 * counters['ring_sent'] / all_sent:.1f}"
                         if all_sent else "n/a")
        show(options, text, name, *cells)


def measure(options):
    bench = eager.Bench(options.build_dir, bench_cli.TOP, options.ucx,
                        options.count, options.repeat, options.log_dir)
    if options.polling:
        print_polling(bench, options)
    elif options.lengths:
        print_lengths(bench, options)
    else:
        print_rows(bench, options)


def main(argv=None):
    return bench_cli.run("eager", measure, parse_arguments(argv), BenchError)
