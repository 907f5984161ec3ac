# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the book: files with a column per tab."""

import os


class TableError(Exception):
    """A table that is not what it should be."""


class Table:
    """Columns by name; each row starts with its name."""

    def __init__(self, columns, rows):
        self.columns = list(columns)
        self.rows = [[str(cell) for cell in row] for row in rows]
        for row in self.rows:
            if len(row) != len(self.columns):
                raise TableError(f"{len(row)} cells for the columns "
                                 f"{', '.join(self.columns)}: {row}")

    @classmethod
    def parse(cls, text, columns=None):
        """Lines of a program, without remarks; the first one names the columns
        unless they are given."""
        lines = [line.split("\t") for line in text.splitlines()
                 if line and not line.startswith("#")]
        if not lines:
            raise TableError("nothing was printed")
        if columns is None:
            columns, lines = lines[0], lines[1:]
        return cls(columns, lines)

    @classmethod
    def read(cls, path):
        try:
            with open(path, encoding="utf-8") as file:
                return cls.parse(file.read())
        except OSError as error:
            raise TableError(f"{path}: {error.strerror}") from error
        except TableError as error:
            raise TableError(f"{path}: {error}") from error

    def text(self):
        return "".join("\t".join(row) + "\n"
                       for row in [self.columns, *self.rows])

    def write(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text())

    def column(self, name):
        """Its cells."""
        if name not in self.columns:
            raise TableError(f"there is no column {name}")
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def numbers(self, name):
        """Its cells as numbers, None where there is none."""
        return [number(cell) for cell in self.column(name)]

    def records(self):
        """Rows as dictionaries."""
        return [dict(zip(self.columns, row)) for row in self.rows]

    def select(self, columns):
        """All rows, with some of the columns."""
        return Table(columns, zip(*(self.column(name) for name in columns)))

    def markdown(self):
        lines = ["| " + " | ".join(cells) + " |"
                 for cells in [self.columns, *self.rows]]
        return "\n".join([lines[0], "|" + "---|" * len(self.columns),
                          *lines[1:]]) + "\n"


def number(cell):
    """A cell's number, or None."""
    try:
        return float(cell)
    except ValueError:
        return None


def differences(before, after, tolerance=0.0):
    """What of two tables differs, in words: numbers by more than a part of the
    first, all else by anything."""
    if before.columns != after.columns:
        return [f"columns {before.columns} and {after.columns}"]

    found = []
    names = [row[0] for row in before.rows]
    if names != [row[0] for row in after.rows]:
        return [f"rows {names} and {[row[0] for row in after.rows]}"]

    for row, other in zip(before.rows, after.rows):
        for name, cell, now in zip(before.columns, row, other):
            first, second = number(cell), number(now)
            if first is None or second is None:
                same = cell == now
            else:
                same = abs(second - first) <= tolerance * abs(first)
            if not same:
                found.append(f"{row[0]}, {name}: {cell} was, {now} is")
    return found
