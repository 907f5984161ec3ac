#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hold files against .editorconfig.

Reads the names of the files, one a line, from standard input. Looked at are
insert_final_newline, trim_trailing_whitespace, end_of_line (lf), charset
(utf-8), max_line_length, and indent_style = space, which allows no tab in the
indentation. Of patterns, what .editorconfig of this project uses is known:
*, ** and {one,other}, also in each other. As in editors, a pattern without a
slash means the name and one with a slash the path; later sections win.
"""

import itertools
import os
import re
import sys

import checks


def alternatives(pattern):
    """A pattern with braces as several without."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    return list(itertools.chain.from_iterable(
        alternatives(pattern[:match.start()] + one + pattern[match.end():])
        for one in match[1].split(",")))


def expression(pattern):
    """A pattern without braces as a regular expression for paths."""
    parts = re.split(r"(\*\*|\*)", pattern.lstrip("/"))
    text = "".join({"**": ".*", "*": "[^/]*"}.get(part, re.escape(part))
                   for part in parts)
    return text if "/" in pattern else "(?:.*/)?" + text


def read_sections(text):
    """[(compiled pattern, {property: value})]"""
    sections = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            patterns = alternatives(line[1:line.rindex("]")])
            sections.append((re.compile("|".join(map(expression, patterns))),
                             {}))
        elif sections:
            name, value = (part.strip().lower() for part in line.split("=", 1))
            sections[-1][1][name] = value
    return sections


def properties(sections, path):
    merged = {}
    for pattern, values in sections:
        if pattern.fullmatch(path):
            merged.update(values)
    return merged


def check_line(wanted, line):
    """What is wrong with a line, one after the other."""
    if wanted.get("trim_trailing_whitespace") == "true" and \
            line != line.rstrip(" \t\r\f\v"):
        yield "white space at the end"
    indent = line[:len(line) - len(line.lstrip())]
    if wanted.get("indent_style") == "space" and "\t" in indent:
        yield "indented with a tab"
    limit = wanted.get("max_line_length", "off")
    if limit.isdigit() and len(line) > int(limit):
        yield f"{len(line)} columns, {limit} are allowed"


def check_file(wanted, path, data):
    """What is wrong with a file, one after the other."""
    if wanted.get("end_of_line") == "lf" and b"\r\n" in data:
        yield f"{path}: lines end with CR LF"
    if wanted.get("insert_final_newline") == "true" and data and \
            not data.endswith(b"\n"):
        yield f"{path}: no newline at the end"
    try:
        text = data.decode(wanted.get("charset", "utf-8"))
    except UnicodeDecodeError as error:
        yield f"{path}: {error}"
        return
    for number, line in enumerate(text.split("\n"), 1):
        for problem in check_line(wanted, line):
            yield f"{path}:{number}: {problem}"


def check(top, paths):
    with open(os.path.join(top, ".editorconfig"), encoding="utf-8") as file:
        sections = read_sections(file.read())
    for path in paths:
        with open(os.path.join(top, path), "rb") as file:
            data = file.read()
        if b"\0" not in data:
            yield from check_file(properties(sections, path), path, data)


def main():
    parser = checks.parser(__doc__)
    parser.add_argument("--top", default=".", help="the tree, default .")
    options = parser.parse_args()
    paths = [name for name in sys.stdin.read().splitlines()
             if os.path.isfile(os.path.join(options.top, name))]
    return checks.report(list(check(options.top, paths)))


if __name__ == "__main__":
    sys.exit(main())
