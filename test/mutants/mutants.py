# SPDX-License-Identifier: BSD-3-Clause
"""Small mistakes, as people make them: read the list, put one into a tree.

The list is the files *.txt beside this one, of blocks that empty lines
separate:

    mutant: post-no-fence             a name of its own
    file: src/uct/ib/sep/post/sep_post.inl
    see: MLX5SIM_EXEC=deferred sep_gtest test_sep_uct_wc.*
    note: why it matters, if that is not plain
     a line that stays
    -    a line that goes
    +    a line that comes

As in a patch, but without numbers: what stays and goes has to be in the file
exactly once. "see" says which tests should notice: variables if needed, the
program and a filter of GoogleTest; more lines of it are more runs. A mutant
that no test can see has "equivalent: why" in place of "see". A line that
begins with # is a comment. Warnings of the compiler are errors: what they see
is no mutant.
"""

import dataclasses
import fnmatch
import glob
import os
import re

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))

PROGRAMS = ("sim_gtest", "device_gtest", "sep_gtest", "model_gtest",
            "scale_gtest")


class Wrong(Exception):
    """The list, or a mutant, is not what it should be."""


@dataclasses.dataclass(frozen=True)
class See:
    """Tests that should notice."""
    environment: tuple          # NAME=VALUE
    program: str
    filter: str

    def __str__(self):
        return " ".join((*self.environment, self.program, self.filter))


@dataclasses.dataclass
class Mutant:
    """One mistake."""
    name: str
    area: str                   # name of the file of the list, without .txt
    file: str = ""              # in the tree
    see: list = dataclasses.field(default_factory=list)
    note: str = ""
    equivalent: str = ""
    old: str = ""               # whole lines
    new: str = ""

    def apply(self, text):
        """The text of the file with the mistake in it."""
        places = [match.start() for match in
                  re.finditer("^" + re.escape(self.old), text, re.MULTILINE)]
        if len(places) != 1:
            raise Wrong(f"{self.name}: its lines are {len(places)} times in "
                        f"{self.file}, should be there once")
        return (text[:places[0]] + self.new +
                text[places[0] + len(self.old):])


def _parse_see(where, words):
    environment = tuple(word for word in words[:-2])
    if (len(words) < 2 or words[-2] not in PROGRAMS or
            not all("=" in word for word in environment)):
        raise Wrong(f"{where}: see: should be [NAME=VALUE...] PROGRAM FILTER, "
                    f"with one of {', '.join(PROGRAMS)}")
    return See(environment, words[-2], words[-1])


def _parse_block(area, where, lines):
    mutant = Mutant("", area)
    for line in lines:
        mark, rest = line[:1], line[1:] + "\n"
        if mark in " -+":
            if mark != "+":
                mutant.old += rest
            if mark != "-":
                mutant.new += rest
            continue
        key, _, value = line.partition(": ")
        value = value.strip()
        if key == "see":
            mutant.see.append(_parse_see(where, value.split()))
        elif key == "mutant":
            mutant.name = value
        elif key in ("file", "note", "equivalent"):
            setattr(mutant, key, value)
        else:
            raise Wrong(f"{where}: unknown line: {line}")

    if not mutant.name or not mutant.file or not mutant.old:
        raise Wrong(f"{where}: needs a name, a file, and lines of it")
    if mutant.old == mutant.new:
        raise Wrong(f"{where}: {mutant.name} changes nothing")
    if bool(mutant.see) == bool(mutant.equivalent):
        raise Wrong(f"{where}: {mutant.name} needs \"see\" or \"equivalent\", "
                    "and not both")
    return mutant


def parse(area, text):
    """Mutants of one file of the list."""
    mutants, block = [], []
    for number, line in enumerate(text.split("\n") + [""], 1):
        if line.startswith("#"):
            continue
        if line:
            block.append(line)
        elif block:
            where = f"{area}.txt:{number - len(block)}"
            mutants.append(_parse_block(area, where, block))
            block = []
    return mutants


def load(directory=HERE):
    """The whole list."""
    mutants = []
    for path in sorted(glob.glob(os.path.join(directory, "*.txt"))):
        with open(path, encoding="utf-8") as file:
            mutants += parse(os.path.basename(path)[:-len(".txt")],
                             file.read())
    seen = set()
    for mutant in mutants:
        if mutant.name in seen:
            raise Wrong(f"{mutant.name}: there are two of this name")
        seen.add(mutant.name)
    return mutants


def select(mutants, patterns):
    """Those whose name or area matches any of the patterns; none: all."""
    return [mutant for mutant in mutants if not patterns or
            any(fnmatch.fnmatchcase(mutant.name, pattern) or
                mutant.area == pattern for pattern in patterns)]


def check(mutants, top=TOP):
    """Complaints about mutants that can't be put into a tree any more."""
    problems = []
    for mutant in mutants:
        try:
            with open(os.path.join(top, mutant.file), encoding="utf-8") as file:
                mutant.apply(file.read())
        except FileNotFoundError:
            problems.append(f"{mutant.name}: there is no {mutant.file}")
        except Wrong as error:
            problems.append(str(error))
    return problems
