# SPDX-License-Identifier: BSD-3-Clause
"""The checks of the sources find what they look for."""

import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(TOP, "contrib"))
sys.dont_write_bytecode = True

import check_format  # noqa: E402


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
                text=True, timeout=300)
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


class Format(unittest.TestCase):
    """Only what check_format.py does with what clang-format says."""

    GOOD = "int a(int *b)\n{\n    if (b) {\n        c(*b);\n    }\n}\n"

    def problems(self, ours, wanted=GOOD, is_cpp=False):
        return [text for _, text in
                check_format.compare(ours, wanted, is_cpp)]

    def test_nothing_is_found_in_the_same(self):
        self.assertEqual([], self.problems(self.GOOD))

    def test_a_wrong_indentation_is_found_with_its_line(self):
        self.assertEqual([(4, "indentation of 8 is wanted for c")],
                         check_format.compare(
                             self.GOOD.replace("    c(", "   c("), self.GOOD))

    def test_missing_and_superfluous_spaces_are_found(self):
        self.assertEqual(["a space is wanted in front of ("],
                         self.problems(self.GOOD.replace("if (", "if(")))
        self.assertEqual(["no space is wanted in front of ("],
                         self.problems(self.GOOD.replace("c(", "c (")))

    def test_braces_have_their_places(self):
        self.assertEqual(["1 line breaks are wanted in front of {"],
                         self.problems(self.GOOD.replace(")\n{", ") {")))
        self.assertEqual(["0 line breaks are wanted in front of {"],
                         self.problems(self.GOOD.replace("(b) {",
                                                         "(b)\n    {")))

    def test_two_statements_on_a_line_are_found(self):
        self.assertEqual(["1 line breaks are wanted in front of b"],
                         self.problems("void f()\n{\n    a(); b();\n}\n",
                                       "void f()\n{\n    a();\n    b();\n}\n"))

    def test_how_a_long_statement_is_broken_is_free(self):
        self.assertEqual([], self.problems("int a = f(b,\n          c);\n",
                                           "int a =\n    f(b, c);\n"))
        self.assertEqual([], self.problems("int a[] = {\n    1,\n};\n",
                                           "int a[] = {1,};\n"))

    def test_columns_are_free(self):
        self.assertEqual([], self.problems("struct {\n    char  a;\n};\n",
                                           "struct {\n    char a;\n};\n"))

    def test_asterisks_of_types_without_a_name_are_free(self):
        self.assertEqual([], self.problems("a = (char*)b;\n",
                                           "a = (char *)b;\n"))
        self.assertEqual(2, len(self.problems("char* b;\n", "char *b;\n")))

    def test_short_functions_are_free_in_cpp_only(self):
        ours, wanted = ("int f() { return 1; }\n",
                        "int f()\n{\n    return 1;\n}\n")
        self.assertEqual([], self.problems(ours, wanted, True))
        self.assertEqual(3, len(self.problems(ours, wanted)))

    def test_macros_are_free(self):
        self.assertEqual([], self.problems("#define A(b) \\\n  c(b)\nint d;\n",
                                           "#define A(b) c( b )\nint d;\n"))

    def test_what_is_more_than_white_space_is_an_error(self):
        self.assertEqual(["clang-format changes more than white space"],
                         self.problems("int a;\n", "int b;\n"))


if __name__ == "__main__":
    unittest.main()
