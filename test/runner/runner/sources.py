# SPDX-License-Identifier: BSD-3-Clause
"""Which program a test may be in, as its sources tell: for a single test, the
others need not be built."""

import os
import re

from .parts import PROGRAMS


def may_have(top, program, patterns):
    """Whether one of the patterns may mean a test of this program."""
    here = _texts(top, PROGRAMS[program]) + _texts(top, "common")
    elsewhere = [text for directory in set(PROGRAMS.values())
                 for text in _texts(top, directory)]
    for pattern in patterns:
        named = [each for each in PROGRAMS
                 if re.search(rf"\b{each}\b", pattern)]
        if named and program not in named:
            continue
        word = _longest_word(pattern)
        if not word or any(word in text for text in here) or \
                not any(word in text for text in elsewhere):
            return True
    return False


def tests(top, program):
    """Names of a program's tests, SUITE.TEST, without their instances."""
    return [f"{suite}.{name}" for text in _texts(top, PROGRAMS[program])
            for suite, name in re.findall(
                r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", text, re.MULTILINE)]


def _longest_word(pattern):
    """Part of the name of a suite or test that stands in the sources."""
    return max(re.findall(r"\w+", pattern), key=len, default="")


def _texts(top, directory):
    texts = []
    for where, _, names in os.walk(os.path.join(top, "test", "gtest",
                                                directory)):
        for name in names:
            if name.endswith((".cc", ".h")):
                with open(os.path.join(where, name), encoding="utf-8",
                          errors="replace") as file:
                    texts.append(file.read())
    return texts
