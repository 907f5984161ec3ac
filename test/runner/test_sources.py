# SPDX-License-Identifier: BSD-3-Clause
"""A single test does not need all programs."""

import os
import tempfile
import unittest

from runner import sources


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


if __name__ == "__main__":
    unittest.main()
