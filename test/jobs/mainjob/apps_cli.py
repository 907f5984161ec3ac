# SPDX-License-Identifier: BSD-3-Clause
"""Command line of bench/run apps."""

import argparse
import os
import sys

from . import apps, process
from .applications import WrongResult
from .bench import BenchError

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__)))))

NAMES = (*apps.OPERATIONS, *apps.NETPIPE, *apps.APPLICATIONS)


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="apps", description="Measure direct verbs and verbs under MPI "
        "programs; see contrib/bench-apps.sh.")
    parser.add_argument("--build-dir", default=".", metavar="DIR")
    parser.add_argument("--ucx", metavar="PREFIX", type=os.path.abspath,
                        help="the UCX of the build, if not the installed one")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--netpipe", action="store_true")
    parser.add_argument("--applications", action="store_true")
    parser.add_argument("--tsv", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME",
                        choices=NAMES)
    parser.add_argument("--library", choices=tuple(apps.NETPIPE),
                        default="mpich")
    parser.add_argument("--count", type=int, metavar="N")
    parser.add_argument("--repeat", type=int, metavar="N")
    parser.add_argument("--log-dir", metavar="DIR")
    options = parser.parse_args(argv)
    options.count = options.count or (16 if options.quick else 64)
    options.repeat = options.repeat or (1 if options.quick else 5)
    if not (options.counts or options.times):
        options.counts = options.times = True
    if not (options.netpipe or options.applications):
        options.sweep = True
    return options


def rows(bench, options):
    """Measure row after row."""
    def is_wanted(name):
        return not options.only or name in options.only

    if options.sweep and options.counts:
        yield from bench.counts(apps.sizes_of(apps.COUNTED_SIZES, options.only,
                                              options.quick))
    if options.sweep and options.times:
        yield from bench.times(apps.sizes_of(apps.TIMED_SIZES, options.only,
                                             options.quick))
    if options.netpipe:
        for library in filter(is_wanted, apps.NETPIPE):
            yield from bench.netpipe(library)
    if options.applications:
        for name in filter(is_wanted, apps.APPLICATIONS):
            for ranks in (2,) if options.quick else (2, 4):
                yield from bench.application(name, ranks)


def format_number(value):
    if value is None:
        return "n/a"
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def cells_of(row):
    ratios = [row.ratio(name) for name in apps.RATIOS]
    return [row.name, row.unit,
            *(format_number(row.values.get(column)) for column in
              apps.COLUMNS),
            *("n/a" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]


def print_cells(options, cells):
    if options.tsv:
        print(*cells, sep="\t", flush=True)
        return
    name, unit, *others = cells
    print(f"{name:34}{unit:14}" + "".join(f"{cell:>17}" for cell in others),
          flush=True)


def main(argv=None):
    options = parse_arguments(argv)
    process.end_with_cleanup()
    bench = apps.Bench(options.build_dir, TOP, options.ucx, options.log_dir,
                       library=options.library, count=options.count,
                       repeat=options.repeat, quick=options.quick)
    try:
        print_cells(options, ["row", "unit", *apps.COLUMNS, *apps.RATIOS])
        for row in rows(bench, options):
            print_cells(options, cells_of(row))
    except (BenchError, WrongResult, OSError, ValueError) as error:
        print(f"apps: {error}", file=sys.stderr)
        return 1
    return 0
