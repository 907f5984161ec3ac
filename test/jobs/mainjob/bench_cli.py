# SPDX-License-Identifier: BSD-3-Clause
"""What the command lines of bench/run eager, apps and growth have in common."""

import argparse
import os
import sys

from . import process

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__)))))


def parser(name, about, *flags):
    """With the options of all, and flags."""
    made = argparse.ArgumentParser(
        prog=name, description=f"{about}; see contrib/bench-{name}.sh.")
    made.add_argument("--build-dir", default=".", metavar="DIR")
    made.add_argument("--ucx", metavar="PREFIX", type=os.path.abspath,
                      help="the UCX of the build, if not the installed one")
    made.add_argument("--log-dir", metavar="DIR")
    for flag in ("tsv", "quick", *flags):
        made.add_argument(f"--{flag}", action="store_true")
    return made


def show(options, text, *cells):
    """A row, with tabs or by the format of a text."""
    print("\t".join(map(str, cells)) if options.tsv else
          text.format(*cells).rstrip(), flush=True)


def run(name, measure, options, *errors):
    """The exit status of measuring; errors: what to expect."""
    process.end_with_cleanup()
    try:
        measure(options)
    except (*errors, OSError, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0
