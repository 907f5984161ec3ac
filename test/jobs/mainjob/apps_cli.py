# SPDX-License-Identifier: BSD-3-Clause
"""Command line of bench/run apps."""

from . import apps, bench_cli
from .applications import WrongResult
from .bench import BenchError

NAMES = (*apps.OPERATIONS, *apps.NETPIPE, *apps.APPLICATIONS)


def parse_arguments(argv):
    parser = bench_cli.parser(
        "apps", "Measure direct verbs and verbs under MPI programs", "sweep",
        "counts", "times", "netpipe", "applications")
    parser.add_argument("--only", action="append", metavar="NAME",
                        choices=NAMES)
    parser.add_argument("--library", choices=tuple(apps.NETPIPE),
                        default="mpich")
    parser.add_argument("--count", type=int, metavar="N")
    parser.add_argument("--repeat", type=int, metavar="N")
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


def measure(options):
    bench = apps.Bench(options.build_dir, bench_cli.TOP, options.ucx,
                       options.log_dir, library=options.library,
                       count=options.count, repeat=options.repeat,
                       quick=options.quick)
    heads = (*apps.COLUMNS, *apps.RATIOS)
    text = "{:34}{:14}" + len(heads) * "{:>17}"
    bench_cli.show(options, text, "row", "unit", *heads)
    for row in rows(bench, options):
        bench_cli.show(options, text, *cells_of(row))


def main(argv=None):
    return bench_cli.run("apps", measure, parse_arguments(argv), BenchError,
                         WrongResult)
