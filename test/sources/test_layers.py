# SPDX-License-Identifier: BSD-3-Clause
"""Tests of contrib/check_layers.py, each on a small tree of its own."""

import os
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(TOP, "contrib"))
import check_layers  # noqa: E402

HEAD = "## Rooms: `src/house`\n\n| Directory | What | May use |\n|---|---|---|\n"
LAW = HEAD + ("| `cellar/` | Ground | - |\n"
              "| `hall/` | Above it | `cellar/` |\n"
              "| `attic/` | On top | `cellar/`, `hall/` |\n")
GOOD = {
    "src/house/cellar/coal.h": "",
    "src/house/hall/door.h": "#include <house/cellar/coal.h>\n",
    "src/house/attic/roof.c": "#include <house/cellar/coal.h>\n"
                              "#include <house/hall/door.h>\n",
}


class Layers(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = folder.name

    def check(self, law=LAW, **changes):
        """Complaints about the good tree with other files in it."""
        files = dict(GOOD)
        for name, text in changes.items():
            files["src/house/" + name.replace("__", "/").replace("_", ".")] = \
                text
        files[check_layers.LAW] = law
        for name, text in files.items():
            path = os.path.join(self.top, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return check_layers.check(self.top)

    def assert_says(self, problems, *words):
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])

    def test_what_keeps_the_law_is_not_mentioned(self):
        self.assertEqual(self.check(), [])

    def test_an_include_against_the_law(self):
        problems = self.check(
            cellar__rat_h="#include <house/hall/floor.h>\n", hall__floor_h="")
        self.assert_says(problems, "src/house/cellar/rat.h",
                         "may not use src/house/hall")

    def test_an_include_relative_to_the_file(self):
        problems = self.check(
            cellar__rat_h='#include "../hall/floor.h"\n', hall__floor_h="")
        self.assert_says(problems, "includes src/house/hall/floor.h")

    def test_an_include_that_a_macro_names(self):
        problems = self.check(
            cellar__rat_h="#define HOLE <house/hall/floor.h>\n",
            hall__floor_h="")
        self.assert_says(problems, "includes src/house/hall/floor.h")

    def test_a_right_that_nobody_uses(self):
        problems = self.check(law=LAW + "| `shed/` | Apart | `cellar/` |\n",
                              shed__axe_c="")
        self.assert_says(problems, "src/house/shed may use src/house/cellar "
                                   "and does not")

    def test_a_directory_without_a_row(self):
        problems = self.check(shed__axe_c="")
        self.assert_says(problems, "src/house/shed/axe.c", "has no row")

    def test_a_row_without_a_directory(self):
        problems = self.check(law=LAW + "| `shed/` | Gone | - |\n")
        self.assert_says(problems, "there is no directory src/house/shed")

    def test_rights_in_a_circle(self):
        law = LAW.replace("| Ground | - |", "| Ground | `hall/` |")
        problems = self.check(
            law=law, cellar__rat_h="#include <house/hall/floor.h>\n",
            hall__floor_h="")
        self.assert_says(problems, "may use each other", "src/house/cellar")

    def test_a_circle_of_files_across_directories(self):
        problems = self.check(
            cellar__coal_c='#include "coal.h"\n'
                           "#include <house/hall/door.h>\n")
        self.assertEqual(len(problems), 2, problems)
        self.assertIn("in a circle", problems[1])

    def test_a_circle_of_five_files_in_one_directory(self):
        names = ("a", "b", "c", "d", "e")
        files = {f"cellar__{name}_h": f'#include "{after}.h"\n'
                 for name, after in zip(names, names[1:] + names[:1])}
        self.assert_says(self.check(**files), "in a circle",
                         "src/house/cellar/e")
        files["cellar__d_h"] = '#include "a.h"\n'
        self.assertEqual(self.check(**files), [])

    def test_a_function_that_another_header_declares(self):
        check_layers.DECLARED_BY_NAME, kept = "src/house", \
            check_layers.DECLARED_BY_NAME
        self.addCleanup(setattr, check_layers, "DECLARED_BY_NAME", kept)
        problems = self.check(
            hall__bell_c='#include "door.h"\n\nint door_open(int a,\n'
                         "              int b)\n{\n}\n\n"
                         "static int bell(void)\n{\n}\n",
            hall__door_h="#include <house/cellar/coal.h>\n"
                         "/* bell(); */\nint door_open(int a, int b);\n",
            hall__doorbell_c='#include "door.h"\n\nint ring(void)\n{\n}\n')
        self.assert_says(problems, "src/house/hall/bell.c", "door_open()",
                         "src/house/hall/door.h")

    def test_a_document_without_the_law(self):
        self.assert_says(self.check(law="# Nothing\n"), "no table")


class Project(unittest.TestCase):

    def test_the_tables_are_read(self):
        with open(os.path.join(TOP, check_layers.LAW), encoding="utf-8") as doc:
            tables = check_layers.read_tables(doc.read())
        roots = {table.root: table for table in tables}
        self.assertEqual({"", "src/uct/ib/sep", "src/sim"}, set(roots))
        for table in tables:
            self.assertGreater(len(table.rights), 5, table.root)


if __name__ == "__main__":
    unittest.main()
