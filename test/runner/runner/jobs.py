# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the main job, test/jobs/main_job.

Its programs wait for each other by polling, one per core: nothing else runs
meanwhile.
"""

import json
import os
import re

from . import report
from .result import FAILED, PASSED, SKIPPED, Result

# How main_job ends if it skipped all rows, as with automake
_SKIP_STATUS = 77
_STATUS = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


# What rows may be skipped for on sep_mlx5: name, reason. What has no entry has to
# run: a row that becomes a skip tests nothing, and nobody would notice.
SKIPS = (
    # Where namespaces can't be made
    (r" 2 nodes ", r"^no second node: "),
    # Threads under an Open MPI whose UCX checks: mainjob/defects.py, of_job()
    (r"^(Open MPI|OpenSHMEM) 2 ranks app_kernels$",
     r"^Open MPI uses a worker that is another thread's"),
    (r"^Open MPI 2 ranks endpoints$",
     r"^Open MPI uses a worker that is another thread's"),
)


class Run:
    """The row of a part."""

    def __init__(self, session, part, row):
        self.session = session
        self.part = part
        self.row = row
        self.build = session.builds.directory(row.build)

    def plan(self):
        rows = self._labels()
        wanted = [label for label in rows if any(
            self.session.wanted(self.part, self.row.run, test)
            for test in self._tests(label))]
        if self.session.options.list:
            self.session.note(f"{self.part}/{self.row.run} {test}"
                              for label in wanted
                              for test in self._tests(label))
        elif wanted:
            targets = [self.session.builds.target(self.row.build, target)
                       for target in ("all", "job-programs")]
            self.session.task(
                self.part, self.row.run, self.row.run,
                lambda: self._run(None if wanted == rows and not self.row.rows
                                  else wanted),
                targets, alone=True)

    def _command(self, *options):
        quick = ["--quick"] if self.session.options.quick else []
        return [os.path.join(self.session.top, "test", "jobs", "main_job"),
                *quick, *options]

    def _labels(self):
        log = os.path.join(self.session.directory(self.part), "list")
        child, _ = self.session.command(
            self._command(*self.row.options, "--list"), log, 600)
        with open(log, encoding="utf-8") as file:
            lines = file.read().splitlines()
        if child.status != 0:
            raise SystemExit("\n".join(lines))
        missing = set(self.row.rows).difference(lines)
        if missing:
            raise SystemExit(f"{self.part}: main_job has no rows "
                             f"{', '.join(sorted(missing))}")
        return [line for line in lines
                if not self.row.rows or line in self.row.rows]

    @staticmethod
    def _tests(label):
        return [f"{transport} {label}" for transport in
                ("sep_mlx5", "rc_mlx5")]

    def _run(self, wanted):
        directory = self.session.directory(self.part)
        name = f"{self.row.run}-" if self.row.rows else ""
        path = os.path.join(directory, f"{name}results.json")
        if os.path.exists(path):
            os.unlink(path)
        log = os.path.join(directory, f"{name}log")
        only = [word for label in wanted or () for word in ("--row", label)]
        limit = self.session.options.jobs_limit
        child, elapsed = self.session.command(
            self._command(*self.row.options, "--build-dir", self.build,
                          "--json", path, "--log-dir",
                          os.path.join(directory, f"{name}logs"), *only),
            log, limit, self.row.environment)
        results = results_of(self.part, self.row.run, path)
        if child.killed:
            results.append(self._failure(f"killed after {limit:.0f} s", log))
        elif not results:
            results.append(self._failure(f"no job ran, {child.why()}", log))
        elif not explains(results, child.status):
            results.append(self._failure(
                f"{child.why()} although no job failed", log))
        self.session.add(results, f"{self.part} {self.row.run}", elapsed,
                         child.cpu)
        self.session.console.say(f"{self.session.console.path(log)}:",
                                 report.tail(log, 300))

    def _failure(self, reason, log):
        return Result(self.part, self.row.run, self.row.run, FAILED, 0.0,
                      reason, log)


def explains(results, status):
    """Whether main_job was bound to end like this if its rows did."""
    if any(each.status == FAILED for each in results):
        return True
    if all(each.status == SKIPPED for each in results):
        return status == _SKIP_STATUS
    return status == 0


def results_of(part, run, path):
    """From the file that main_job writes."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    return [_result(part, run, transport, row["name"], cell)
            for row in rows for transport, cell in row["cells"].items()]


def _result(part, run, transport, name, cell):
    status, reason = _STATUS[cell["status"]], cell["detail"]
    if status == SKIPPED and transport == "sep_mlx5" and \
            not may_be_skipped(name, reason):
        status = FAILED
        reason = f"skipped, and SKIPS does not say why it may be: {reason}"
    return Result(part, run, f"{transport} {name}", status, cell["seconds"],
                  reason, cell["log"])


def may_be_skipped(name, reason):
    """Whether a row may be skipped on sep_mlx5 for that reason."""
    return any(re.search(row, name) and re.search(why, reason)
               for row, why in SKIPS)
