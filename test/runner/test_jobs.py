# SPDX-License-Identifier: BSD-3-Clause
"""How the main job ends, beside what became of its rows."""

import json
import os
import re
import subprocess
import tempfile
import unittest

from runner import jobs
from runner.result import FAILED, PASSED, SKIPPED, Result


def explains(status, *outcomes):
    return jobs.explains([Result("jobs", "job", f"row {i}", outcome)
                          for i, outcome in enumerate(outcomes)], status)


class End(unittest.TestCase):

    def test_end_that_the_rows_explain(self):
        self.assertTrue(explains(0, PASSED))
        self.assertTrue(explains(0, PASSED, SKIPPED))
        self.assertTrue(explains(1, PASSED, FAILED, SKIPPED))
        self.assertTrue(explains(77, SKIPPED, SKIPPED))

    def test_end_that_needs_another_reason(self):
        self.assertFalse(explains(1, PASSED, SKIPPED))
        self.assertFalse(explains(1, SKIPPED))
        self.assertFalse(explains(77, PASSED, SKIPPED))
        self.assertFalse(explains(-11, PASSED))


class Skips(unittest.TestCase):

    def results(self, transport, name, reason):
        cell = {"status": "skip", "detail": reason, "seconds": 0.0, "log": ""}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"rows": [{"name": name, "cells": {transport: cell}}]},
                      file)
            file.flush()
            return jobs.results_of("jobs", "job", file.name)

    def test_a_row_that_is_skipped_on_sep_mlx5_has_failed(self):
        result, = self.results("sep_mlx5", "UCP tag_lat 8 B", "no such thing")
        self.assertEqual(FAILED, result.status)
        self.assertIn("no such thing", result.reason)

    def test_but_for_a_reason_that_is_listed(self):
        for transport, name, reason in (
                ("sep_mlx5", "MPICH 2 ranks, 2 nodes p2p",
                 "no second node: no ip"),
                ("rc_mlx5", "UCP tag_lat 8 B", "no such thing")):
            result, = self.results(transport, name, reason)
            self.assertEqual((SKIPPED, reason), (result.status, result.reason))
        # The reason is for these rows only
        result, = self.results("sep_mlx5", "MPICH 2 ranks p2p",
                               "no second node: no ip")
        self.assertEqual(FAILED, result.status)

    def test_the_list_is_about_rows_that_there_are(self):
        main_job = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                "..", "jobs", "main_job")
        rows = subprocess.run([main_job, "--list"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()
        for row, _ in jobs.SKIPS:
            self.assertTrue(any(re.search(row, each) for each in rows), row)


if __name__ == "__main__":
    unittest.main()
