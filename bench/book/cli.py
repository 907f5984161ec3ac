# SPDX-License-Identifier: BSD-3-Clause
"""Write the book, or check it: see contrib/book.sh."""

import argparse
import os
import sys
import time

from book import counts, figure, growth, jobs, layers, mpi, page
from book import rates, resources, sharing, warps
from book.chapter import EXACT, TOP, Bench, ChapterError
from book.table import Table, TableError

CHAPTERS = [resources.Categories(), rates.Categories(), resources.Growth(),
            sharing.Sharing(), sharing.Stencil(), rates.Adapter(),
            rates.Throttle(), counts.Instructions(), counts.Apis(),
            mpi.Sweep(), mpi.Applications(), counts.Ucp(), layers.Layers(),
            counts.Eager(), counts.Memory(), growth.Peers(), growth.Heap(),
            growth.Init(), jobs.Connect(), warps.Warps()]


def parse_arguments(argv):
    names = [chapter.name for chapter in CHAPTERS]
    parser = argparse.ArgumentParser(
        prog="book", description="Write docs/book.md, its tables and figures.")
    parser.add_argument("--build", default=os.path.join(TOP, "build/release"),
                        help="where sep_info was built")
    parser.add_argument("--out", default=os.path.join(TOP, "docs"),
                        help="write book.md and book/ there (default: docs)")
    parser.add_argument("--only", action="append", choices=names,
                        metavar="NAME", help="measure only this chapter; may "
                        "be repeated")
    parser.add_argument("--quick", action="store_true",
                        help="fewer rows where a chapter has many")
    parser.add_argument("--mpich", metavar="PREFIX",
                        help="an MPICH with several interfaces, as of "
                        "bench-endpoints.sh (default: built, if the installed "
                        "one has not got them)")
    parser.add_argument("--newer", metavar="SOURCE",
                        help="source of a newer UCX, as of bench-layers.sh")
    parser.add_argument("--draw", action="store_true",
                        help="measure nothing")
    parser.add_argument("--no-figures", action="store_true",
                        help="draw no figures")
    parser.add_argument("--check", action="store_true",
                        help="measure the exact chapters, or those of --only, "
                        "write nothing, and fail if numbers have changed")
    parser.add_argument("--list", action="store_true", help="chapters")
    return parser.parse_args(argv)


def tsv_path(out, chapter):
    return os.path.join(out, "book", chapter.name + ".tsv")


def svg_path(out, chapter):
    return os.path.join(out, "book", chapter.name + ".svg")


def chosen(options):
    """Chapters to be measured."""
    if options.only:
        return [chapter for chapter in CHAPTERS if chapter.name in options.only]
    if options.draw:
        return []
    if options.check:
        return [chapter for chapter in CHAPTERS if chapter.kind == EXACT]
    return CHAPTERS


def check(options, bench):
    """How many chapters differ from what is written."""
    bad = 0
    for chapter in chosen(options):
        before = Table.read(tsv_path(options.out, chapter))
        found = chapter.differences(before, chapter.measure(bench))
        for difference in found:
            print(f"{chapter.name}: {difference}")
        bad += bool(found)
        print(f"{chapter.name}: {'CHANGED' if found else 'as written'}",
              flush=True)
    return bad


def draw(options, chapters):
    """Figures of these; names of all that there are."""
    if not options.no_figures:
        for chapter, table in chapters:
            figure.write(chapter, table, svg_path(options.out, chapter))
    return {chapter.name for chapter in CHAPTERS
            if os.path.exists(svg_path(options.out, chapter))}


def write(options, bench):
    todo = chosen(options)
    for chapter in todo:
        start = time.monotonic()
        chapter.measure(bench).write(tsv_path(options.out, chapter))
        print(f"{chapter.name}: {time.monotonic() - start:.0f} s", flush=True)

    tables = [(chapter, Table.read(tsv_path(options.out, chapter)))
              for chapter in CHAPTERS
              if os.path.exists(tsv_path(options.out, chapter))]
    figures = draw(options, [(chapter, table) for chapter, table in tables
                             if options.draw or chapter in todo])
    with open(os.path.join(options.out, "book.md"), "w",
              encoding="utf-8") as file:
        file.write(page.text(tables, figures))


def main(argv=None):
    options = parse_arguments(argv)
    if options.list:
        for chapter in CHAPTERS:
            print(f"{chapter.name:13}{chapter.kind:9}{chapter.title}")
        return 0

    bench = Bench(options.build, options.quick, options.mpich,
                  options.newer)
    try:
        if options.check:
            return 1 if check(options, bench) else 0
        write(options, bench)
    except (ChapterError, TableError, figure.FigureError) as error:
        print(f"book: {error}", file=sys.stderr)
        return 1
    return 0
