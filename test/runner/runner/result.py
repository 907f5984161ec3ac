# SPDX-License-Identifier: BSD-3-Clause
"""What became of a test."""

import dataclasses

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"


@dataclasses.dataclass
class Result:
    """One test in one run of its program."""
    part: str
    run: str                # program, and how it was run: sep_gtest-sanitized
    test: str               # suite.name, or what it is called otherwise
    status: str
    seconds: float = 0.0
    reason: str = ""
    log: str = ""
    before: str = ""        # why an earlier try failed, of one that passed

    @property
    def name(self):
        """The run in front, unless a run is a single check."""
        return self.test if self.test == self.run else f"{self.run} {self.test}"


def count(results):
    """How many passed, failed and were skipped."""
    statuses = [each.status for each in results]
    return tuple(statuses.count(each) for each in (PASSED, FAILED, SKIPPED))
