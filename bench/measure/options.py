# SPDX-License-Identifier: BSD-3-Clause
"""Options of a row, as data for argparse."""

import argparse
import os
import sys


def _some(text):
    if not text:
        raise argparse.ArgumentTypeError("expected one argument")
    return text


def _directory(text):
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no directory {text}")
    return os.path.realpath(text)


def existing(text):
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"there is no {text}")
    return os.path.realpath(text)


FLAG = {"action": "store_true"}
VALUE = {"type": _some}
LIST = {"type": _some, "action": "append", "default": []}
DIRECTORY = {"type": _directory}
PLACE = {"type": os.path.realpath}      # made, if it is not there
SOURCE = {"type": existing}             # a tree or an archive


class Parser(argparse.ArgumentParser):
    """Of a row, whose help is a text."""

    def __init__(self, row, text):
        super().__init__(prog=row.script, add_help=False, allow_abbrev=False)
        self.row = row
        self.text = text
        self.add_argument("--help", "-h", action="help")
        for name, about in row.options.items():
            self.add_argument(name, **about)
        self.set_defaults(**{name: None for name in (
            "build", "logs", "mpich", "tsv", "ucx", "ucx_source")
            if self.get_default(name) is None})

    def format_help(self):
        return self.text

    def error(self, message):
        is_unknown = message.startswith("unrecognized")
        if is_unknown and not self.row.brief:
            sys.stderr.write(self.text)
        else:
            print(f"{self.prog}: {message}; see --help", file=sys.stderr)
        sys.exit(2 if is_unknown or self.row.brief else 1)

    def read(self, words):
        """What was given, and the rest, which is for a driver."""
        given, rest = self.parse_known_args(words)
        if rest and not self.row.driver:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return given, rest
