#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write a compilation database from what "make --dry-run V=1" prints.

usage: compile-commands.py BUILD_DIRECTORY SOURCE_DIRECTORY < dry-run > json

Automake wraps compilers in shell and libtool: a compilation is any command
with "-c -o OBJECT" and a source file. The test jobs are compiled and linked in
one step, "-o PROGRAM FILE.c".
"""

import json
import os
import re
import shlex
import sys


def source_of(words):
    """The source file of a compiler command line, or None."""
    for word in reversed(words):
        # Automake writes `test -f 'file.c' || echo '../src/'`file.c
        word = re.sub(r"^.*`", "", word)
        if word.endswith((".c", ".cc")):
            return word
    return None


def commands(text):
    """The simple commands of the dry run, continuation lines joined."""
    text = text.replace("\\\n", " ")
    for line in text.split("\n"):
        # VPATH lookups hide the source directory in backquotes.
        line = re.sub(r"`test -f '([^']*)' \|\| echo '([^']*)'`\S+",
                      lambda m: m.group(2) + m.group(1), line)
        for part in re.split(r"\s*(?:&&|;)\s*", line):
            yield part


def without_dependency_tracking(words):
    """The same command, not writing .deps files."""
    kept = []
    words = iter(words)
    for word in words:
        if word in ("-MT", "-MF"):
            next(words, None)
        elif word not in ("-MD", "-MP"):
            kept.append(word)
    return kept


def main():
    build, top = sys.argv[1:3]
    entries = {}

    for command in commands(sys.stdin.read()):
        try:
            words = shlex.split(command)
        except ValueError:
            continue
        if "--mode=compile" in words:
            words = words[words.index("--mode=compile") + 1:]
        if "-o" not in words or not words[0:1]:
            continue
        compiler = os.path.basename(words[0])
        if not re.match(r"(gcc|g\+\+|cc|c\+\+|clang|mpicc|oshcc)", compiler):
            continue
        source = source_of(words)
        if source is None:
            continue
        path = os.path.normpath(os.path.join(build, source))
        if not os.path.exists(path):
            path = os.path.normpath(os.path.join(top, source))
        entries.setdefault(path, {
            "directory": build,
            "file": path,
            "arguments": [path if word.endswith(source) else word for word in
                          without_dependency_tracking(words)],
        })

    json.dump(list(entries.values()), sys.stdout, indent=1)
    sys.stdout.write("\n")


main()
