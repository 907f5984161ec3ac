# SPDX-License-Identifier: BSD-3-Clause
"""How the main job ends, beside what became of its rows."""

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


if __name__ == "__main__":
    unittest.main()
