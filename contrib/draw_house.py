#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draw the tables of docs/architecture.md that say which directory may use
which, as a picture for graphviz on standard output.

Dark arrows make the floors; light ones are allowed as well, and lead where dark
ones lead in several steps. With --check FILE, fail if the file is another
picture than this.
"""

import html
import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True
import check_layers  # noqa: E402
import checks  # noqa: E402

# Directories of the first table that are drawn as houses of their own
HOUSES = ("src/uct/ib/sep", "src/sim")
WIDTH = 26
HEAD = """\
// SPDX-License-Identifier: BSD-3-Clause
// Written by contrib/draw_house.py from the tables of docs/architecture.md.
digraph house {
    graph [fontname="Helvetica", fontsize=15, rankdir=TB, ranksep=0.45,
           nodesep=0.2, compound=true, newrank=true];
    node [shape=box, style="rounded,filled", fillcolor="#f5f5f5",
          color="#606060", fontname="Helvetica", fontsize=11,
          margin="0.1,0.06"];
    edge [color="#303030", arrowsize=0.7];
"""


def purposes(text):
    """What each directory is for: the first words of its row."""
    found = {}
    root = ""
    for line in text.splitlines():
        if line.startswith("#"):
            names = check_layers.cell_names(line)
            root = names[-1] if names else ""
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("`"):
            for name in check_layers.cell_names(cells[0]):
                path = os.path.normpath(os.path.join(root, name))
                found[path] = re.split(r"[.:;(]|, and ", cells[1])[0].strip()
    return found


def reachable(rights, start):
    """All that a directory's rights lead to, over others."""
    seen = set()
    todo = list(rights[start])
    while todo:
        other = todo.pop()
        if other not in seen:
            seen.add(other)
            todo += rights.get(other, ())
    return seen


def node(path, name, purpose):
    lines = textwrap.wrap(purpose.replace("`", ""), WIDTH)
    label = "<br/>".join([f"<b>{name}</b>"] + list(map(html.escape, lines)))
    return f'"{path}" [label=<{label}>];'


def arrows(rights):
    """Lines for the rights of a table; what follows from others is light."""
    for row in rights:
        over = set().union(*(reachable(rights, other)
                             for other in rights[row]))
        for other in sorted(rights[row]):
            light = ' [color="#d4d4d4", arrowsize=0.5, weight=0]'
            yield f'"{row}" -> "{other}"{light if other in over else ""};'


def cluster(table, what):
    yield f'    subgraph "cluster_{table.root}" {{'
    yield f'        label="{table.root}"; style="rounded"; color="#909090";'
    for path in table.rights:
        name = os.path.relpath(path, table.root) + "/"
        yield "        " + node(path, name, what[path])
    for line in arrows(table.rights):
        yield "        " + line
    yield "    }"


def picture(text, root):
    """The picture of one table."""
    tables = {table.root: table for table in check_layers.read_tables(text)}
    what = purposes(text)
    lines = HEAD.splitlines()
    lines += cluster(tables[root], what)
    return "\n".join(lines + ["}", ""])


def main():
    parser = checks.parser(__doc__)
    parser.add_argument("root", choices=HOUSES, help="whose table")
    parser.add_argument("--check", metavar="FILE")
    options = parser.parse_args()
    with open(os.path.join(checks.TOP, check_layers.LAW),
              encoding="utf-8") as file:
        text = picture(file.read(), options.root)
    if options.check is None:
        sys.stdout.write(text)
        return 0
    with open(options.check, encoding="utf-8") as file:
        if file.read() == text:
            return 0
    print(f"{options.check} is not what docs/architecture.md says: run "
          "contrib/draw-docs.sh", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
