# SPDX-License-Identifier: BSD-3-Clause
"""Command line of bench/run: a row, and its options."""

import os
import sys

from . import drivers, rows
from .job import Failed, Job
from .options import Parser

_HELP = """\
Measure one of the following, and print it; build what it takes before.

  bench/run NAME [OPTION...]
  bench/run NAME --help
"""


def help_of(row):
    path = os.path.join(os.path.dirname(__file__), "help", f"{row.name}.txt")
    with open(path, encoding="utf-8") as file:
        return file.read()


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
    if row.has_help and {"--help", "-h"} & set(words):
        print(help_of(row), end="", flush=True)
        return drivers.drive(row.driver, ["--help"])
    try:
        return row.measure(Job(row, *Parser(row, help_of(row)).read(words)))
    except Failed as error:
        if str(error):
            print(f"{row.script}: error: {error}", file=sys.stderr)
        return 1
