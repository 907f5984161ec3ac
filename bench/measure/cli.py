# SPDX-License-Identifier: BSD-3-Clause
"""Command line of bench/run: a row, and its options."""

import os
import sys

from . import drivers, options, rows
from .job import Failed, Job

_HELP = """\
Measure one of the following, and print it; build what it takes before.

  bench/run NAME [OPTION...]
  bench/run NAME --help
"""


def help_of(row):
    path = os.path.join(os.path.dirname(__file__), "help", f"{row.name}.txt")
    with open(path, encoding="utf-8") as file:
        return file.read()


def _show_help(row):
    print(help_of(row), end="", flush=True)
    return drivers.drive(row.driver, ["--help"]) if row.has_help else 0


def main(arguments=None):
    name, *words = (sys.argv[1:] if arguments is None else arguments) or [""]
    row = rows.BY_NAME.get(name)
    if row is None:
        is_help = name in ("", "--help", "-h", "--list")
        print(_HELP if is_help else f"bench/run: there is no '{name}'\n",
              *(f"  {each.name:10} {each.about}" for each in rows.ROWS),
              sep="\n", file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 2
    try:
        return _measure(row, words)
    except BrokenPipeError:
        # Who read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _measure(row, words):
    try:
        given = options.parse(row.options, words, bool(row.driver),
                              row.operands)
    except options.UnknownOption as error:
        print(f"{row.script}: {error}; see --help\n" if row.brief else
              help_of(row), end="", file=sys.stderr)
        return 2
    except options.WrongOption as error:
        print(f"{row.script}: {error}; see --help", file=sys.stderr)
        return 2 if row.brief else 1
    if given.last(*options.HELP):
        return _show_help(row)
    try:
        return row.measure(Job(row, given))
    except Failed as error:
        if str(error):
            print(f"{row.script}: error: {error}", file=sys.stderr)
        return 1
