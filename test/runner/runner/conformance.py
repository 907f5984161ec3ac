# SPDX-License-Identifier: BSD-3-Clause
"""UCX's own unit tests, by contrib/ucx-gtest.sh.

A test that was run on both transports counts once; it fails if sep_mlx5 is
worse than rc_mlx5.
"""

import json
import os

from .result import FAILED, PASSED, Result
from .parts import UCX_GTEST


class Run:
    """One row of a part."""

    def __init__(self, session, part, row):
        self.session = session
        self.part = part
        self.row = row

    def plan(self):
        self.session.task(self.part, self.row.run, self.row.run, self._run,
                          [self.session.builds.script(UCX_GTEST)], alone=True)

    def _run(self):
        directory = self.session.directory(self.part, self.row.run)
        path = os.path.join(directory, "results.json")
        if os.path.exists(path):
            os.unlink(path)
        log = os.path.join(directory, "log")
        limit = self.session.options.conformance_limit
        child, elapsed = self.session.command(
            ["contrib/ucx-gtest.sh", "--quick", "--json", path,
             *self.row.options], log, limit)
        results = self._results(path) if os.path.exists(path) else []
        if child.killed or not results or child.status != 0 and all(
                each.status != FAILED for each in results):
            reason = f"killed after {limit:.0f} s" if child.killed else \
                f"{child.why()}, {len(results)} passed"
            results.append(Result(self.part, self.row.run, self.row.run,
                                  FAILED, 0.0, reason, log))
        self.session.add(results, f"{self.part} {self.row.run}", elapsed,
                         child.cpu)

    def _results(self, path):
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        results = []
        for row in rows:
            ours, theirs = row["ours"], row["theirs"]
            name = f"{row['suite']}.{row['test']}"
            if row["verdict"] == "worse":
                results.append(Result(
                    self.part, self.row.run, name, FAILED, ours["seconds"],
                    f"{ours['status']}, rc_mlx5 {theirs['status']}: "
                    f"{ours['reason']}"))
            elif ours["status"] == "ok":
                results.append(Result(self.part, self.row.run, name, PASSED,
                                      ours["seconds"]))
        return results
