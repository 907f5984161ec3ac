# SPDX-License-Identifier: BSD-3-Clause
"""The list of mutants fits the tree, and is read as it is meant."""

import glob
import os
import re
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(TOP, "test", "mutants"))
import mutants  # noqa: E402

BLOCK = """\
# Comment
mutant: a-name
file: a/file.c
see: A=b sep_gtest test_x.*
     stays();
-    goes();
+    comes();
"""


def parse(text):
    return mutants.parse("area", text)


class TheList(unittest.TestCase):

    def test_each_can_be_put_into_the_tree(self):
        self.assertEqual([], mutants.check(mutants.load()))

    def test_each_suite_that_should_see_one_exists(self):
        text = ""
        for path in glob.glob(os.path.join(TOP, "test", "gtest", "*", "*.cc")):
            with open(path, encoding="utf-8") as file:
                text += file.read()
        words = set(re.findall(r"\w+", text))
        for mutant in mutants.load():
            for see in mutant.see:
                for word in re.findall(r"test_\w+(?=\.)", see.filter):
                    self.assertIn(word, words, f"{mutant.name}: {see}")


class Parse(unittest.TestCase):

    def assert_wrong(self, words, text):
        with self.assertRaisesRegex(mutants.Wrong, words):
            parse(text)

    def test_a_block(self):
        mutant, = parse(BLOCK)
        self.assertEqual(("a-name", "area", "a/file.c", "", ""),
                         (mutant.name, mutant.area, mutant.file, mutant.note,
                          mutant.equivalent))
        self.assertEqual(["A=b sep_gtest test_x.*"],
                         list(map(str, mutant.see)))
        self.assertEqual("    stays();\n    goes();\n", mutant.old)
        self.assertEqual("    stays();\n    comes();\n", mutant.new)

    def test_blocks_are_separated_by_empty_lines(self):
        self.assertEqual(2, len(parse(BLOCK + "\n\n" + BLOCK)))

    def test_what_is_wrong_is_named(self):
        self.assert_wrong("unknown line", BLOCK + "files: b\n")
        self.assert_wrong("area.txt:1: needs a name", "file: b\n- a\n")
        self.assert_wrong("one of", BLOCK.replace("sep_gtest", "gtest"))
        self.assert_wrong("one of", BLOCK.replace("A=b", "Ab"))
        self.assert_wrong("equivalent", BLOCK + "equivalent: no\n")
        self.assert_wrong("changes nothing", BLOCK.replace("comes", "goes"))


class Apply(unittest.TestCase):

    def apply(self, text):
        mutant, = parse(BLOCK)
        return mutant.apply(text)

    def test_lines_are_replaced(self):
        self.assertEqual("{\n    stays();\n    comes();\n}\n",
                         self.apply("{\n    stays();\n    goes();\n}\n"))

    def test_lines_are_whole(self):
        with self.assertRaisesRegex(mutants.Wrong, "0 times"):
            self.apply("{     stays();\n    goes();\n}\n")

    def test_twice_is_once_too_often(self):
        with self.assertRaisesRegex(mutants.Wrong, "2 times"):
            self.apply("    stays();\n    goes();\n" * 2)


if __name__ == "__main__":
    unittest.main()
