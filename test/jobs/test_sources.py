# SPDX-License-Identifier: BSD-3-Clause
"""The checks of the sources find what they look for."""

import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))


class Editorconfig(unittest.TestCase):

    CONFIG = ("root = true\n[*]\nend_of_line = lf\n"
              "insert_final_newline = true\ntrim_trailing_whitespace = true\n"
              "indent_style = space\n[{Makefile.am,*.{am,mk}}]\n"
              "indent_style = tab\n[src/**.c]\nmax_line_length = 20\n"
              "[*.patch]\ntrim_trailing_whitespace = unset\n")

    def problems(self, name, data):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(os.path.join(top, ".editorconfig"), "w",
                      encoding="utf-8") as file:
                file.write(self.CONFIG)
            with open(path, "wb") as file:
                file.write(data)
            done = subprocess.run(
                [sys.executable,
                 os.path.join(TOP, "contrib/check_editorconfig.py"),
                 "--top", top], input=name + "\n", capture_output=True,
                text=True, timeout=60)
            self.assertEqual(done.returncode, 1 if done.stderr else 0)
            return done.stderr

    def test_a_good_file_is_good(self):
        self.assertEqual("", self.problems("a.c", b"int a;\n\n    int b;\n"))

    def test_an_empty_file_needs_no_newline(self):
        self.assertEqual("", self.problems("a.py", b""))

    def test_missing_newline_is_found(self):
        self.assertIn("a.c: no newline", self.problems("a.c", b"int a;"))

    def test_space_at_the_end_is_found_with_its_line(self):
        self.assertIn("a.c:2: white space",
                      self.problems("a.c", b"int a;\nint b; \n"))

    def test_carriage_returns_are_found(self):
        self.assertIn("CR LF", self.problems("a.c", b"int a;\r\n"))

    def test_tabs_are_found_but_where_they_belong(self):
        self.assertIn("a.c:1: indented", self.problems("a.c", b"\tint a;\n"))
        for name in ("Makefile.am", "src/x.am", "rules.mk"):
            self.assertEqual("", self.problems(name, b"\tcc\n"))

    def test_a_later_section_takes_a_rule_back(self):
        self.assertEqual("", self.problems("a.patch", b" \n"))

    def test_a_pattern_with_a_slash_is_a_path(self):
        line = b"int a_name_that_is_long;\n"
        self.assertIn("src/x/a.c:1: 24 columns",
                      self.problems("src/x/a.c", line))
        self.assertEqual("", self.problems("test/a.c", line))

    def test_bytes_that_are_no_text_are_found(self):
        self.assertIn("utf-8", self.problems("a.c", b"/* \xff */\n"))


if __name__ == "__main__":
    unittest.main()
