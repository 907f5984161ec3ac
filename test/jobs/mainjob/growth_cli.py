# SPDX-License-Identifier: BSD-3-Clause
"""Command line of bench/run growth."""

import argparse
import os
import sys

from . import cli, growth, process

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__)))))


def number_between(low, high):
    def parse(text):
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {low} "
                                             f"to {high}")
        return value
    return parse


def numbers_between(low, high):
    def parse(text):
        return [number_between(low, high)(word) for word in text.split(",")]
    return parse


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="growth", description="Measure what grows with the number of peers "
        "and of processes; see contrib/bench-growth.sh.")
    parser.add_argument("--build-dir", default=".", metavar="DIR")
    parser.add_argument("--ucx", metavar="PREFIX", type=os.path.abspath,
                        help="the UCX of the build, if not the installed one")
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("peers", "init", "heap"):
        what.add_argument(f"--{name}", action="store_const", dest="what",
                          const=name)
    parser.add_argument("--ucp", action="store_true", default=None)
    parser.add_argument("--tsv", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="TRANSPORT",
                        choices=list(growth.TRANSPORTS))
    parser.add_argument("--count", metavar="N",
                        type=number_between(1, growth.MOST_PEERS))
    parser.add_argument("--ranks", metavar="LIST",
                        type=numbers_between(2, 200))
    parser.add_argument("--library", type=cli.name_list(growth.LIBRARIES),
                        metavar="LIST")
    parser.add_argument("--repeat", type=number_between(1, 100), metavar="N")
    parser.add_argument("--patience", type=number_between(1, 100), default=1,
                        metavar="N")
    parser.add_argument("--log-dir", metavar="DIR")
    options = parser.parse_args(argv)
    check_what_goes_together(parser, options)
    quick = options.quick
    options.count = options.count or (growth.QUICK_PEERS if quick else
                                      growth.PEERS)
    options.ranks = options.ranks or (growth.QUICK_RANKS if quick else
                                      growth.RANKS)
    options.library = options.library or (
        growth.LIBRARIES[:1] if quick or options.what == "heap" else
        growth.LIBRARIES)
    options.repeat = options.repeat or (1 if quick else 9)
    names = list(growth.TRANSPORTS)
    if options.what == "init":
        names = ["sep_mlx5", "rc_mlx5"]
    if options.only:
        names = [name for name in growth.TRANSPORTS if name in options.only]
    options.transports = names
    return options


def check_what_goes_together(parser, options):
    """An option that would not have any effect is a mistake."""
    for name, modes in (("count", ("peers",)), ("ucp", ("peers",)),
                        ("ranks", ("init", "heap")),
                        ("library", ("init", "heap")), ("repeat", ("init",))):
        if getattr(options, name) is not None and options.what not in modes:
            parser.error(f"--{name} is of no use with --{options.what}")


class Printer:
    """Rows with tabs, or below each other."""

    def __init__(self, options, columns):
        self.tsv = options.tsv
        self.widths = [max(len(name) + 2, 11) for name in columns]
        self.widths[columns.index("transport")] = 16
        self.print_row(columns)

    def print_row(self, row):
        if self.tsv:
            print(*row, sep="\t", flush=True)
        else:
            print("".join(str(cell).ljust(width) for cell, width in
                          zip(row, self.widths)).rstrip(), flush=True)


def print_peers(bench, options):
    printer = Printer(options, growth.PEER_COLUMNS)
    for transport in options.transports:
        for row in bench.peer_rows(transport, options.count,
                                   bool(options.ucp)):
            printer.print_row(row)


def print_init(bench, options):
    printer = Printer(options, growth.INIT_COLUMNS)
    for library in options.library:
        for ranks in options.ranks:
            for row in bench.init_rows(library, ranks, options.transports):
                printer.print_row(row)


def print_heap(bench, options):
    printer = Printer(options, growth.HEAP_COLUMNS)
    for library in options.library:
        for ranks in options.ranks:
            for transport in options.transports:
                for row in bench.heap_rows(library, ranks, transport):
                    printer.print_row(row)


def main(argv=None):
    options = parse_arguments(argv)
    process.end_with_cleanup()
    bench = growth.Bench(options.build_dir, TOP, options.ucx, options.log_dir,
                         options.repeat, options.patience)
    try:
        {"peers": print_peers, "init": print_init,
         "heap": print_heap}[options.what](bench, options)
    except (growth.GrowthError, growth.endpoints.EndpointsError, OSError,
            ValueError) as error:
        print(f"growth: {error}", file=sys.stderr)
        return 1
    return 0
