# SPDX-License-Identifier: BSD-3-Clause
"""A single test does not need all programs."""

import os
import tempfile
import unittest

from runner import gtest, parts, sources

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")


class MayHave(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = temporary.name
        for name, text in (("sim/a.cc", "TEST(test_lock, is_free)"),
                           ("sep/deep/b.cc", "TEST(test_fc, grant)")):
            path = os.path.join(self.top, "test", "gtest", name)
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def programs(self, *patterns):
        return [program for program in ("sim_gtest", "sep_gtest")
                if sources.may_have(self.top, program, patterns)]

    def test_word_is_in_one(self):
        self.assertEqual(["sep_gtest"], self.programs("*test_fc.grant*"))
        self.assertEqual(["sim_gtest"], self.programs("unit/test_lock.*"))

    def test_word_is_in_none_or_there_is_none(self):
        both = ["sim_gtest", "sep_gtest"]
        self.assertEqual(both, self.programs("sanitized/*"))
        self.assertEqual(both, self.programs("*"))

    def test_program_is_named(self):
        self.assertEqual(["sep_gtest"], self.programs("sanitized/sep_gtest*"))
        self.assertEqual(["sim_gtest"], self.programs("unit/sim_gtest/*"))
        self.assertEqual([], self.programs("unit/device_gtest/*"))

    def test_each_pattern_counts(self):
        self.assertEqual(["sim_gtest", "sep_gtest"],
                         self.programs("test_fc.*", "test_lock.*"))


class Patterns(unittest.TestCase):
    """What a row's own run can't see: others may have what it names."""

    def setUp(self):
        self.rows = [row for part in parts.PARTS for row in part.rows
                     if isinstance(row, parts.Gtest)]

    def test_suites_with_a_process_of_their_own_are_there(self):
        rows = [row for row in self.rows if row.apart]
        self.assertTrue(rows)
        for row in rows:
            suites = {name.partition(".")[0]
                      for name in sources.tests(TOP, row.program)}
            self.assertEqual([], gtest.dead_patterns(row.apart, suites))

    def test_rules_for_random_tests_mean_some(self):
        rows = [row for row in self.rows if row.random_seed]
        names = [name for row in rows
                 for name in sources.tests(TOP, row.program)]
        for row in rows:
            self.assertEqual([], gtest.dead_patterns(row.tests, names))
            self.assertTrue(any(gtest.selected(row.tests, name) for name in
                                sources.tests(TOP, row.program)), row.run)


if __name__ == "__main__":
    unittest.main()
