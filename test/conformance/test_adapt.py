# SPDX-License-Identifier: BSD-3-Clause
"""Which shape of UCX's tests a source has, and that others are refused."""

import os
import re
import tempfile
import unittest
from unittest import mock

from conformance import adapt

_EDITS = [
    adapt.Edit("uct/list.h", r"^rc,$", r"\g<0>" + "\nsep,", 1, "the point"),
    adapt.Edit("uct/test_*.cc", r'"X=', '"X?=', {"old": 3, "new": 1},
               "a setting"),
    adapt.Edit("uct/test_new.cc", r"^new$", "newer", {"new": 1}, "only there"),
]


class Adapt(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.source = directory.name
        os.makedirs(os.path.join(self.source, "test", "gtest", "uct"))
        for name, value in (("EDITS", _EDITS), ("SHAPES", ("old", "new"))):
            patch = mock.patch.object(adapt, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def path(self, name):
        return os.path.join(self.source, "test", "gtest", "uct", name)

    def write(self, **files):
        for name, text in files.items():
            with open(self.path(name.replace("__", ".")), "w",
                      encoding="utf-8") as file:
                file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_a_shape_is_known_by_all_of_its_edits(self):
        self.write(list__h="rc,\nud\n", test_a__cc='"X=1" "X=2"\n',
                   test_b__cc='"X=3"\n')
        self.assertEqual("old", adapt.adapt(self.source))
        self.assertEqual("rc,\nsep,\nud\n", self.read("list.h"))
        self.assertEqual('"X?=1" "X?=2"\n', self.read("test_a.cc"))
        self.assertEqual('"X?=3"\n', self.read("test_b.cc"))

    def test_another_shape_has_other_edits(self):
        self.write(list__h="rc,\n", test_new__cc='new\n"X=1"\n')
        self.assertEqual("new", adapt.adapt(self.source))
        self.assertEqual('newer\n"X?=1"\n', self.read("test_new.cc"))

    def test_half_of_each_shape_is_refused_and_left_alone(self):
        self.write(list__h="rc,\n", test_a__cc='"X=1" "X=2" "X=3"\n',
                   test_new__cc="new\n")
        with self.assertRaisesRegex(SystemExit, "test_new.cc.*1 times, not 0"):
            adapt.adapt(self.source)
        self.assertEqual("rc,\n", self.read("list.h"))

    def test_an_edit_that_finds_nothing_is_named(self):
        self.write(list__h="tcp\n", test_a__cc='"X=1" "X=2" "X=3"\n')
        with self.assertRaisesRegex(SystemExit, r"list\.h.*0 times, not 1"):
            adapt.adapt(self.source)

    def test_what_was_edited_already_is_refused(self):
        self.write(list__h="rc,\nud\n", test_a__cc='"X=1" "X=2" "X=3"\n')
        adapt.adapt(self.source)
        with self.assertRaises(SystemExit):
            adapt.adapt(self.source)


class Edits(unittest.TestCase):

    def test_inline_responses_of_atomics_are_set_on_sep_mlx5(self):
        edit, = [edit for edit in adapt.EDITS if "test_amo" in edit.path]
        self.assertEqual(
            '"IB_TX_INLINE_RESP?=32", "SEP_TX_INLINE_RESP?=32", '
            '"TX_INLINE_RESP?=32") {',
            re.sub(edit.pattern, edit.replacement, '"IB_TX_INLINE_RESP=32") {'))

    def test_each_edit_knows_each_shape_and_its_reason(self):
        for edit in adapt.EDITS:
            self.assertEqual(len(adapt.SHAPES), len(edit.counts()), edit.why)
            self.assertTrue(any(edit.counts()) and edit.why)


if __name__ == "__main__":
    unittest.main()
