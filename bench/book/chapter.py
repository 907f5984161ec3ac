# SPDX-License-Identifier: BSD-3-Clause
"""What a chapter of the book is, and what it is made with."""

import csv
import io
import json
import os
import subprocess

from book.table import Table, differences
from measure import rows

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))

# How sure the numbers of a chapter are, and so how they are checked
EXACT = "exact"          # The same everywhere: checked to the last digit
COUNTED = "counted"      # By callgrind or by the device; compilers differ

# By how much numbers may differ from one processor and compiler to another
TOLERANCE = {EXACT: 0.0, COUNTED: 0.1}


class ChapterError(Exception):
    """Something could not be measured."""


class Bench:
    """Programs that measure."""

    def __init__(self, build, quick=False, mpich=None, newer=None,
                 patience=3600):
        self.build = build
        self.mpich = mpich
        self.newer = newer
        self.quick = quick
        self.patience = patience

    def run(self, *command, **environment):
        """Standard output of a program."""
        program, *arguments = map(str, command)
        try:
            result = subprocess.run(
                [program, *arguments], stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=self.patience,
                check=False, env={**os.environ, **environment})
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ChapterError(f"{program}: {error}") from error
        if result.returncode != 0:
            raise ChapterError(f"{program} {' '.join(arguments)}: exit status "
                               f"{result.returncode}\n{result.stderr}")
        return result.stdout

    def sep_info(self, *arguments, **environment):
        return self.run(os.path.join(self.build, "bin/sep_info"), *arguments,
                        **environment)

    def plans(self, *arguments, **environment):
        """Plans of sep_info, as JSON."""
        return json.loads(self.sep_info("-p", "--json", *arguments,
                                        **environment))["plans"]

    def predict(self, path, adapter):
        """Rows of a file of rates, and what the model says of them."""
        text = self.sep_info("--predict", path, "--adapter", adapter)
        return list(csv.DictReader(io.StringIO(text)))

    def tsv(self, *command, columns=None, **environment):
        """Table that a program prints."""
        return Table.parse(self.run(*command, **environment), columns)

    def row(self, name, *options):
        """Table of a row of what can be measured."""
        row = rows.BY_NAME[name]
        return Table.parse(
            self.run(os.path.join(TOP, "bench/run"), name, *options),
            None if row.headed else row.columns)


class Chapter:
    """One figure: theirs, ours, and whether they agree."""

    name = None      # Of its files
    title = None
    source = None    # The paper, and which figure or table of it
    kind = None
    command = None   # What anybody can run to have the numbers

    def measure(self, bench):
        """Run what it takes: a Table."""
        raise NotImplementedError

    def theirs(self, table):
        """What the paper has, in words."""
        raise NotImplementedError

    def verdict(self, table):
        """Same or not, and why. Reads the numbers from the table."""
        raise NotImplementedError

    def shown(self, table):
        """What of the table is on the page."""
        return table

    def draw(self, table, plot):
        """Draw it on a figure (matplotlib), if there is something to see."""
        raise NotImplementedError

    def differences(self, before, after):
        """What has changed since the book was written."""
        return differences(before, after, TOLERANCE[self.kind])


class Counted(Chapter):
    """The table, or what is made of it, of a row of what can be measured."""

    kind = COUNTED
    row = None       # Its name and options, for bench/run
    quick = ("--quick",)    # Options for fewer rows

    @property
    def command(self):
        name, options = self.row.split(" ", 1)
        return f"contrib/{rows.BY_NAME[name].script} {options}"

    def measure(self, bench):
        return self.counted(bench)

    def counted(self, bench, *more):
        """The row's own table."""
        return bench.row(*self.row.split(), *more,
                         *(self.quick if bench.quick else ()))
