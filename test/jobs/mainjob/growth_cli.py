# SPDX-License-Identifier: BSD-3-Clause
"""Command line of bench/run growth."""

import argparse
import itertools

from . import bench_cli, cli, growth


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
    parser = bench_cli.parser(
        "growth", "Measure what grows with the number of peers and of processes")
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("peers", "init", "start", "heap"):
        what.add_argument(f"--{name}", action="store_const", dest="what",
                          const=name)
    parser.add_argument("--ucp", action="store_true", default=None)
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
    options = parser.parse_args(argv)
    check_what_goes_together(parser, options)
    quick = options.quick
    options.count = options.count or (growth.QUICK_PEERS if quick else
                                      growth.PEERS)
    options.ranks = options.ranks or (growth.QUICK_RANKS if quick else
                                      growth.RANKS)
    options.library = options.library or (
        growth.LIBRARIES[:1] if quick or options.what in ("start", "heap") else
        growth.LIBRARIES)
    options.repeat = options.repeat or (1 if quick else 9)
    names = [name for name in growth.TRANSPORTS if name not in growth.BOUNDED]
    if options.what == "init":
        names = ["sep_mlx5", "rc_mlx5"]
    elif options.what == "start":
        names = ["sep_mlx5", *growth.BOUNDED, "rc_mlx5"]
    if options.only:
        names = [name for name in growth.TRANSPORTS if name in options.only]
    options.transports = names
    return options


def check_what_goes_together(parser, options):
    """An option that would not have any effect is a mistake."""
    for name, modes in (("count", ("peers",)), ("ucp", ("peers",)),
                        ("ranks", ("init", "start", "heap")),
                        ("library", ("init", "start", "heap")), ("repeat", ("init",))):
        if getattr(options, name) is not None and options.what not in modes:
            parser.error(f"--{name} is of no use with --{options.what}")


def rows(bench, options):
    """Measure row after row."""
    if options.what == "peers":
        for transport in options.transports:
            yield from bench.peer_rows(transport, options.count,
                                       bool(options.ucp))
        return
    for library, ranks in itertools.product(options.library, options.ranks):
        if options.what == "init":
            yield from bench.init_rows(library, ranks, options.transports)
            continue
        for transport in options.transports:
            if options.what == "start":
                yield bench.start_row(library, ranks, transport)
                continue
            yield from bench.heap_rows(library, ranks, transport)


def measure(options):
    bench = growth.Bench(options.build_dir, bench_cli.TOP, options.ucx,
                         options.log_dir, options.repeat, options.patience)
    columns = {"peers": growth.PEER_COLUMNS, "init": growth.INIT_COLUMNS,
               "start": growth.START_COLUMNS,
               "heap": growth.HEAP_COLUMNS}[options.what]
    widths = [16 if name == "transport" else max(len(name) + 2, 11)
              for name in columns]
    text = "".join(f"{{!s:{width}}}" for width in widths)
    bench_cli.show(options, text, *columns)
    for row in rows(bench, options):
        bench_cli.show(options, text, *row)


def main(argv=None):
    return bench_cli.run("growth", measure, parse_arguments(argv),
                         growth.GrowthError, growth.endpoints.EndpointsError)
