#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hold the include directives of the sources against docs/architecture.md.

The tables there whose columns are "Directory", "What" and "May use" are the
law: a file may include files of its own directory and of those which its row
names. A table's directories are relative to the one that the heading above it
names last. Checked are

- every include between two directories of a table, which its row must allow,
- the tables: each directory exists, each with files has a row, no right goes
  unused, and the rights have no circle,
- files that include each other in a circle: none across directories of a table,
  and none of more than four files. A source and its header are one file here,
- in the transport, where functions and variables are declared: in a header of
  their source's directory and name, or of the first part of its name, perhaps
  with "_int",
- in the transport, who writes what: check_owners.py.

With --summary, print the numbers and nothing else.
"""

import collections
import os
import re
import sys

import check_owners
import checks

LAW = "docs/architecture.md"
SOURCES = (".c", ".h", ".inl", ".cc")
DECLARED_BY_NAME = "src/uct/ib/sep"
MAX_CIRCLE = 4
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
# An include that a macro names: compiled into a template
MACRO_INCLUDE = re.compile(r'^\s*#\s*define\s+\w+\s+[<"]([^>"]+\.\w+)[>"]',
                           re.M)


# Functions with linkage: the conventions put the name after a type at the start
# of a line, and the brace at the start of another one
DEFINITION = re.compile(r"^(?!static\b|typedef\b|extern\b|#|/|\*|UCS_)"
                        r"[A-Za-z_][\w\s*]*?\b(\w+)\s*\([^;{}]*\)\s*\n\{",
                        re.M)
DECLARATION = re.compile(r"\b(\w+)\s*\([^;{}]*\)\s*;")
# Variables with linkage, and their declarations
VARIABLE = re.compile(r"^(?!static\b|typedef\b|extern\b|UCS_)"
                      r"[A-Za-z_][\w\s*]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)?=",
                      re.M)
DECLARED = re.compile(r"^extern\s[\w\s*]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)?;",
                      re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


class Table:
    """One table of the law: rights of directories below a root."""

    def __init__(self, root):
        self.root = root
        self.prefix = root + "/" if root else ""
        self.rights = {}  # directory -> set of directories, from the top

    def place(self, path):
        """The directory with a row that holds a file, or None."""
        rows = [row for row in self.rights if path.startswith(row + "/")]
        return max(rows, key=len, default=None)


def cell_names(cell):
    return [name.rstrip("/") for name in re.findall(r"`([^`]+)`", cell)]


def read_tables(text):
    """Tables of a document in Markdown."""
    tables = []
    root = ""
    table = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("#"):
            names = cell_names(line)
            root = names[-1] if names else ""
            table = None
        elif cells == ["Directory", "What", "May use"]:
            table = Table(root)
            tables.append(table)
        elif not line.startswith("|"):
            table = None
        elif table is not None and not set(line) <= set("|-: "):
            if len(cells) != 3:
                raise ValueError(f"not three cells: {line}")
            for name in cell_names(cells[0]):
                table.rights[os.path.normpath(os.path.join(root, name))] = {
                    os.path.normpath(os.path.join(root, other))
                    for other in cell_names(cells[2])}
    return tables


def project_files(top):
    """Paths of the sources, relative to the top; nothing that was built."""
    found = []
    for place in ("src", "bench", "test"):
        for folder, names, files in os.walk(os.path.join(top, place)):
            names[:] = [name for name in names if not name.startswith(".")]
            found += [os.path.relpath(os.path.join(folder, name), top)
                      for name in files if name.endswith(SOURCES)]
    return sorted(found)


class Includes:
    """Who includes whom, as far as it is of the project."""

    def __init__(self, top, files):
        self.files = set(files)
        self.edges = collections.defaultdict(set)
        for path in files:
            with open(os.path.join(top, path), encoding="utf-8") as file:
                text = file.read()
            for name in INCLUDE.findall(text) + MACRO_INCLUDE.findall(text):
                target = self.resolve(path, name)
                if target is not None and target != path:
                    self.edges[path].add(target)

    def resolve(self, path, name):
        """What a directive means: the directories are those of Makefile.am."""
        for folder in (os.path.dirname(path), "src", "test/gtest", "test", ""):
            target = os.path.normpath(os.path.join(folder, name))
            if target in self.files:
                return target
        return None

    def units(self):
        """Who includes whom, with a source and the header of its name as one."""
        merged = collections.defaultdict(set)
        for path, targets in self.edges.items():
            unit = os.path.splitext(path)[0]
            merged[unit] |= {os.path.splitext(target)[0]
                             for target in targets} - {unit}
        return merged


def circles(edges):
    """Sets of nodes that can all reach each other (Tarjan's algorithm)."""
    order, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges.get(node, ())):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            members = set()
            while node not in members:
                members.add(stack.pop())
            on_stack.difference_update(members)
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return found


def check_table(table, includes, top):
    """Complaints about one table and what it governs."""
    problems = []
    used = collections.defaultdict(set)
    for row in table.rights:
        if not os.path.isdir(os.path.join(top, row)):
            problems.append(f"{LAW}: there is no directory {row}")
        for other in table.rights[row] - set(table.rights):
            problems.append(f"{LAW}: {row} may use {other}, which has no row")
    for path in sorted(includes.files):
        if path.startswith(table.prefix) and table.place(path) is None:
            problems.append(f"{path}: its directory has no row in {LAW}")

    for path, targets in sorted(includes.edges.items()):
        row = table.place(path)
        for target in sorted(targets):
            other = table.place(target)
            if None in (row, other) or row == other:
                continue
            used[row].add(other)
            if other not in table.rights[row]:
                problems.append(f"{path}: includes {target}, but by {LAW} "
                                f"{row} may not use {other}")

    for row, rights in table.rights.items():
        for other in sorted(rights & set(table.rights) - used[row]):
            problems.append(f"{LAW}: {row} may use {other} and does not")
    for circle in circles(table.rights):
        problems.append(f"{LAW}: these may use each other: {' '.join(circle)}")
    return problems


def check_circles(tables, units):
    problems = []
    for circle in circles(units):
        spread = any(len({table.place(unit + ".") for unit in circle}) > 1
                     for table in tables)
        if spread or len(circle) > MAX_CIRCLE:
            problems.append("these include each other in a circle: " +
                            " ".join(circle))
    return problems


def check_declarations(top, files):
    """Whether functions and variables are declared where their source's name
    says."""
    headers = collections.defaultdict(set)
    sources = {}
    for path in files:
        if not path.startswith(DECLARED_BY_NAME + "/"):
            continue
        with open(os.path.join(top, path), encoding="utf-8") as file:
            text = COMMENT.sub("", file.read())
        if path.endswith(".h"):
            for name in DECLARATION.findall(text) + DECLARED.findall(text):
                headers[name].add(path)
        elif path.endswith(".c"):
            sources[path] = [name + "()" for name in DEFINITION.findall(text)]
            sources[path] += VARIABLE.findall(text)

    problems = []
    for path, names in sources.items():
        stem = os.path.splitext(path)[0]
        for name in names:
            declared = headers.get(name.removesuffix("()"))
            if declared and not any(
                    stem.startswith(os.path.splitext(header)[0]
                                    .removesuffix("_int"))
                    for header in declared):
                problems.append(f"{path}: {name} is declared in "
                                f"{' '.join(sorted(declared))}, which is not "
                                "this file's header")
    return problems


def check(top):
    with open(os.path.join(top, LAW), encoding="utf-8") as file:
        tables = read_tables(file.read())
    if not tables:
        return [f"{LAW}: has no table of directories"]
    files = project_files(top)
    includes = Includes(top, files)
    problems = check_declarations(top, files)
    for table in tables:
        problems += check_table(table, includes, top)
    problems += check_owners.check(top)
    return problems + check_circles(tables, includes.units())


def summary(top):
    """Rooms, arrows between them, circles: one line per table."""
    with open(os.path.join(top, LAW), encoding="utf-8") as file:
        tables = read_tables(file.read())
    includes = Includes(top, project_files(top))
    units = includes.units()
    for table in tables:
        arrows = set()
        count = collections.Counter()
        for path in includes.files:
            count[table.place(path)] += 1
        for path, targets in includes.edges.items():
            arrows |= {(table.place(path), table.place(target))
                       for target in targets}
        arrows = {arrow for arrow in arrows
                  if None not in arrow and arrow[0] != arrow[1]}
        mine = {unit: others for unit, others in units.items()
                if table.place(unit + ".") is not None}
        largest = max((len(circle) for circle in circles(mine)), default=1)
        rows = [count[row] for row in table.rights]
        print(f"{table.root or '.'}: {len(rows)} directories, "
              f"{sum(rows)} files, at most {max(rows)} in one; "
              f"{len(arrows)} arrows between them; "
              f"circles of files: {len(circles(mine))}, largest {largest}")


if __name__ == "__main__":
    sys.exit(checks.main(__doc__, check, "--summary", summary))
