# SPDX-License-Identifier: BSD-3-Clause
"""How the main job ends, beside what became of its rows."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

JOBS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "jobs")
sys.path.append(JOBS)

from mainjob import defects  # noqa: E402
from mainjob.jobs import Job  # noqa: E402
from runner import jobs  # noqa: E402
from runner.result import FAILED, PASSED, SKIPPED, Result  # noqa: E402


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

    def test_what_the_main_job_knows_of_open_mpi_may_be_skipped(self):
        output = ("flush.c:453  Assertion `ucs_async_check_owner_thread("
                  "&(worker)->async)' failed\n")
        known = {Job(library, program, 2).label: defects.of_job(
                     Job(library, program, 2), output)
                 for library, programs in defects.THREADS.items()
                 for program in programs}
        rows = self.rows()
        for name, reason in known.items():
            self.assertIn(name, rows)
            result, = self.results("sep_mlx5", name, reason)
            self.assertEqual((SKIPPED, reason), (result.status, result.reason))
        for name in set(rows).difference(known):
            for reason in known.values():
                self.assertFalse(jobs.may_be_skipped(name, reason), name)

    @staticmethod
    def rows():
        return subprocess.run([os.path.join(JOBS, "main_job"), "--list"],
                              check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()

    def test_the_list_is_about_rows_that_there_are(self):
        rows = self.rows()
        for row, _ in jobs.SKIPS:
            self.assertTrue(any(re.search(row, each) for each in rows), row)


if __name__ == "__main__":
    unittest.main()
