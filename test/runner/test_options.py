# SPDX-License-Identifier: BSD-3-Clause
"""Patterns mean the tests they shall mean."""

import contextlib
import io
import unittest

from runner import options, parts


class Patterns(unittest.TestCase):

    def means(self, pattern, name):
        part, run, test = name.split("|")
        return options.matcher([pattern])(part, run, test)

    def test_globs_match_whole_names(self):
        name = "sanitized|sep_gtest-sanitized|i/test_fc.grant/dv"
        for pattern in ("*test_fc.*", "i/test_fc.grant/d?", "sanitized/i/*",
                        "sep_gtest-sanitized/*.grant/*",
                        "sanitized/sep_gtest-sanitized/*"):
            self.assertTrue(self.means(pattern, name), pattern)
        for pattern in ("test_fc.*", "unit/*", "*.grant"):
            self.assertFalse(self.means(pattern, name), pattern)

    def test_text_is_looked_for(self):
        name = "jobs|job|sep_mlx5 UCP tag_lat 8 B"
        self.assertTrue(self.means("tag_lat", name))
        self.assertTrue(self.means("jobs/job", name))
        self.assertTrue(self.means("jobs/sep_mlx5 UCP", name))
        self.assertFalse(self.means("tag_bw", name))

    def names(self, *arguments):
        return [[part.name for part in some] for some in
                options.chosen_parts(options.parse(arguments))]

    def test_parts(self):
        every = [part.name for part in parts.PARTS]
        by_name = [part.name for part in parts.PARTS if part.by_name]
        self.assertTrue(by_name)
        self.assertEqual([[name for name in every if name not in by_name]],
                         self.names())
        self.assertEqual([by_name], self.names(*by_name))
        self.assertEqual([["unit", "ucp"]], self.names("ucp", "unit"))
        self.assertEqual([["modes"]], self.names("--one", "modes/x*"))
        self.assertEqual([["jobs"]], self.names("jobs", "--one", "x"))
        self.assertEqual([[name] for name in every], self.names("--one", "x"))

    def test_some_patterns_name_a_part(self):
        self.assertEqual([["sources", "unit"], ["sources", "sanitized"]],
                         self.names("--one", "sources/x", "--one", "y")[:2])

    def test_unknown_part(self):
        with contextlib.redirect_stderr(io.StringIO()) as text, \
                self.assertRaises(SystemExit):
            options.parse(["unti"])
        self.assertIn("unknown part 'unti'", text.getvalue())


class Parts(unittest.TestCase):

    def test_names_of_runs_are_used_once(self):
        runs = [row.run for part in parts.PARTS for row in part.rows]
        self.assertEqual(len(runs), len(set(runs)))


if __name__ == "__main__":
    unittest.main()
