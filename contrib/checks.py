# SPDX-License-Identifier: BSD-3-Clause
"""Command lines of the checks in this directory."""

import argparse
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def parser(about):
    """For a program with these words about it."""
    return argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawTextHelpFormatter)


def report(problems):
    """Complain. Returns the exit status."""
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def main(about, check, flag, show):
    """Of a check of a tree, or with a flag what shows more of it. Returns the
    exit status."""
    arguments = parser(about)
    arguments.add_argument("--top", default=TOP, help="another tree")
    arguments.add_argument(flag, dest="shows", action="store_true")
    options = arguments.parse_args()
    if options.shows:
        show(options.top)
        return 0
    return report(check(options.top))
