# SPDX-License-Identifier: BSD-3-Clause
"""Checks: commands that succeed or do not, or say that they can't be run on this
machine. What they skip of their tests they say in lines "SKIPPED test: why"."""

import os
import subprocess

from . import report
from .parts import Check
from .result import FAILED, PASSED, SKIPPED, Result

_CANNOT = 77                    # the last line says why


class Run:
    """One row of a part."""

    def __init__(self, session, part, row):
        self.session = session
        self.part = part
        self.row = row

    def plan(self):
        if not self.session.wanted(self.part, self.row.run, self.row.run):
            return
        if self.session.options.list:
            self.session.note([f"{self.part}/{self.row.run}"])
            return
        needs = []
        if self.row.build:
            needs += [self.session.builds.target(self.row.build, target)
                      for target in ("all", *self.row.targets)]
        needs += [self.session.builds.script(need) for need in self.row.needs]
        self.session.task(self.part, self.row.run, self.row.run, self._run,
                          needs, aside=self.row.waits)

    def _run(self):
        log = os.path.join(self.session.directory(self.part, self.row.run),
                           "log")
        environment = []
        if self.row.build:
            directory = self.session.builds.directory(self.row.build)
            environment = [f"SEP_BUILD_DIR={directory}"]
        child, elapsed = self.session.command(
            self.row.command, log, self.row.limit, environment, make=True)
        good = child.status == 0 and not child.killed
        status = PASSED if good else FAILED
        reason = f"killed after {self.row.limit} s" if child.killed else \
            child.why()
        if child.status == _CANNOT and not child.killed:
            status = SKIPPED
            reason = " ".join(report.tail(log, 1))
            self.session.leave_out(f"{self.part} {self.row.run}", reason)
        skipped = skipped_within(self.part, self.row.run, log)
        self.session.add(
            [Result(self.part, self.row.run, self.row.run, status, elapsed,
                    "" if good else reason, "" if good else log), *skipped],
            f"{self.part} {self.row.run}", elapsed, child.cpu)
        if skipped:
            self.session.console.say(
                f"{len(skipped)} tests within {self.row.run} were skipped:",
                report.skips_by_reason(skipped))
        if status == FAILED:
            self.session.console.say(f"end of {log}:", report.tail(log))


def skipped_within(part, run, log):
    """Tests of a program of ours that it says it has skipped."""
    results = []
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("SKIPPED "):
                test, _, reason = line.removeprefix("SKIPPED ").partition(": ")
                results.append(Result(part, run, test, SKIPPED, 0.0,
                                      reason.strip()))
    return results


class Each:
    """A row that stands for several."""

    def __init__(self, session, part, row):
        self._runs = []
        command = os.path.join(session.top, row.command[0])
        words = subprocess.run([command, *row.command[1:], "--list"],
                               stdin=subprocess.DEVNULL, check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        for word in words.split():
            self._runs.append(Run(session, part, Check(
                f"{row.run} {word}", row.command + (word,), row.limit)))

    def plan(self):
        for run in self._runs:
            run.plan()
