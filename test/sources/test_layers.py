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
import check_owners  # noqa: E402

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

    def test_a_variable_that_another_header_declares(self):
        check_layers.DECLARED_BY_NAME, kept = "src/house", \
            check_layers.DECLARED_BY_NAME
        self.addCleanup(setattr, check_layers, "DECLARED_BY_NAME", kept)
        files = {"hall__door_h": "#include <house/cellar/coal.h>\n"
                                 "extern const struct key keys[LAST];\n"}
        self.assertEqual(self.check(
            hall__door_c="const struct key keys[LAST] = {\n};\n",
            **files), [])
        os.remove(os.path.join(self.top, "src/house/hall/door.c"))
        self.assert_says(self.check(
            attic__box_c="const struct key keys[LAST] = {\n};\n", **files),
            "src/house/attic/box.c", "keys is declared in",
            "src/house/hall/door.h")

    def test_a_document_without_the_law(self):
        self.assert_says(self.check(law="# Nothing\n"), "no table")


class Owners(unittest.TestCase):
    """Who may write what, in a house whose object is uct_sep_door."""

    HEADERS = {
        "attic/state/key.h": "typedef struct uct_sep_key {\n    int turns;\n"
                             "} uct_sep_key_t;\n",
        "attic/lamp.h": "typedef struct uct_sep_lamp {\n    int on;\n"
                        "} uct_sep_lamp_t;\n",
        "cellar/coal.h": "struct uct_sep_coal {\n    unsigned left;\n};\n",
        "hall/door.h": "typedef struct uct_sep_door {\n"
                       "    int is_open; /* not \"{\" */\n"
                       "    struct {\n        int rung;\n"
                       "        ucs_list_link_t guests;\n    } bell;\n"
                       "    uct_sep_key_t key;\n"
                       "    struct uct_sep_coal coal;\n"
                       "    struct uct_sep_lamp *lamp;\n"
                       "} uct_sep_door_t;\n"
                       "uct_sep_door_t *uct_sep_door_of(int guest);\n",
    }

    def check(self, room, statement, exceptions=(), kind="uct_sep_door_t"):
        """Complaints about a function with a statement."""
        with tempfile.TemporaryDirectory() as top:
            files = dict(self.HEADERS)
            files[f"{room}/code.c"] = \
                f"void code({kind} *door, int i)\n{{\n    {statement};\n}}\n"
            for name, text in files.items():
                path = os.path.join(top, "src/house", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return check_owners.check(top, "src/house", ("uct_sep_door",),
                                      dict(exceptions))

    def refused(self, room, statement, field):
        problems = self.check(room, statement)
        self.assertEqual(len(problems), 1, (statement, problems))
        self.assertIn(f"src/house/{room}/code.c:3: writes {field},",
                      problems[0])

    def allowed(self, room, statement):
        self.assertEqual(self.check(room, statement), [], statement)

    def test_a_room_writes_what_it_declares(self):
        self.allowed("hall", "door->is_open = 1")
        self.allowed("hall", "++door->bell.rung")
        self.allowed("cellar", "door->coal.left -= 1")

    def test_others_do_not(self):
        for statement in ("door->is_open = 1", "door->is_open |= 1",
                          "++door->is_open", "door->is_open--",
                          "memset(&door->is_open, 0, 4)",
                          "uct_sep_door_of(i)->is_open = 1"):
            self.refused("attic", statement, "uct_sep_door.is_open")
        self.refused("attic", "ucs_list_add_tail(&door->bell.guests, &x)",
                     "uct_sep_door.bell.guests")
        self.refused("attic", "ucs_list_add_tail(&x, &door->bell.guests)",
                     "uct_sep_door.bell.guests")
        self.refused("hall", "door->coal.left--", "uct_sep_coal.left")

    def test_all_may_read(self):
        for statement in ("i = door->is_open", "return door->is_open == 1",
                          "code(&door->coal)", "/* door->is_open = 1 */",
                          "ucs_list_is_empty(&door->bell.guests)",
                          'log("door->is_open = %d", door->is_open)'):
            self.allowed("attic", statement)

    def test_state_belongs_to_the_room_around_it(self):
        self.allowed("attic", "door->key.turns = 1")
        self.refused("hall", "door->key.turns = 1", "uct_sep_key.turns")

    def test_the_owner_makes_the_whole(self):
        self.allowed("attic", "memset(&door->key, 0, sizeof(door->key))")
        self.allowed("attic", "door->lamp = NULL")
        self.allowed("hall", "door->lamp = NULL")
        self.refused("cellar", "door->lamp = NULL", "uct_sep_door.lamp")

    def test_a_variable_of_that_name_may_be_something_else(self):
        self.assertEqual(self.check("attic", "door->is_open = 1",
                                    kind="uct_sep_lamp_t"), [])

    def test_an_exception_needs_a_use(self):
        rule = {("attic", "uct_sep_door.is_open"): "to air"}
        self.assertEqual(self.check("attic", "door->is_open = 1", rule), [])
        problems = self.check("attic", "i = door->is_open", rule)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("attic may write uct_sep_door.is_open and does not",
                      problems[0])


class Project(unittest.TestCase):

    def test_writes_are_found(self):
        """The check does not agree because it sees nothing."""
        sources = check_owners.Sources(TOP)
        self.assertLess({"uct_sep_iface", "uct_sep_txwq", "uct_sep_md",
                         "uct_sep_ep_state", "uct_sep_cq"}, sources.shared)
        writes = {f"{struct.name}.{field}" for path in sources.texts
                  for _, struct, field, _ in sources.writes(path)}
        self.assertGreater(len(writes), 250)
        self.assertLess({"uct_sep_txwq.credits", "uct_sep_iface.tx.cq_credits",
                         "uct_sep_ep_state.sched"}, writes)

    def test_the_tables_are_read(self):
        with open(os.path.join(TOP, check_layers.LAW), encoding="utf-8") as doc:
            tables = check_layers.read_tables(doc.read())
        roots = {table.root: table for table in tables}
        self.assertEqual({"", "src/uct/ib/sep", "src/sim", "src/tools"},
                         set(roots))
        for table in tables:
            self.assertGreater(len(table.rights), 3, table.root)


if __name__ == "__main__":
    unittest.main()
