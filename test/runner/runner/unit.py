# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the project's own GoogleTest programs."""

import os
import secrets
import time

from . import gtest, parts, report, sources
from .process import Process
from .result import FAILED, Result
from .schedule import Task


class Run:
    """One row of a part: a program, run in one way."""

    def __init__(self, session, part, row):
        self.session = session
        self.part = part
        self.row = row
        self.build = session.builds.directory(row.build)
        self.seed = secrets.randbelow(2 ** 31) \
            if row.random_seed and session.seed is None else None

    def plan(self):
        """Add the task that builds the program, and one that adds the rest
        when its tests are known."""
        patterns = self.session.options.one
        if patterns and not sources.may_have(self.session.top,
                                             self.row.program, patterns):
            return
        target = self.session.builds.target
        needs = [] if self.row.sanitizers == "tsan" else \
            [target(self.row.build, parts.NEEDS.get(self.row.program, "all"))]
        needs.append(target(self.row.build, f"test/gtest/{self.row.program}"))
        needs += [self.session.builds.script(need) if hasattr(need, "command")
                  else target(need, "all") for need in self.row.needs]
        self.session.task(self.part, self.row.run, f"{self.row.run}: list",
                          self._list, needs, urgent=True)

    def _list(self):
        directory = self.session.directory(self.part, self.row.run)
        try:
            names = gtest.list_tests(self._start_plainly, directory)
        except gtest.ListError as error:
            self.session.fail(self.part, self.row.run, self.row.run,
                              str(error))
            return
        # Patterns of random tests are a rule for names, not a list: not every
        # program has tests for each
        dead = () if self.row.random_seed else \
            gtest.dead_patterns(self.row.tests, names)
        for pattern in dead:
            self.session.fail(self.part, self.row.run,
                              f"pattern {pattern}", "matches no test")
        names = [name for name in names
                 if gtest.selected(self.row.tests, name)]
        if not names:
            self.session.fail(self.part, self.row.run, self.row.run,
                              "contains no test")
        names = [name for name in names if
                 self.session.wanted(self.part, self.row.run, name)]
        if self.session.options.list:
            self.session.note(f"{self.part}/{self.row.run} {name}"
                              for name in names)
            return
        if self.seed is not None:
            self.session.console.say(f"{self.row.run}: "
                                     f"SEP_TEST_SEED={self.seed}")
        pieces = gtest.chunks(names, self.row.chunk, self.row.apart)
        for turn in range(self.session.options.repeat):
            for number, piece in enumerate(pieces, 1):
                self._add(piece, turn, number, len(pieces))

    def _add(self, names, turn, number, count):
        title = f"{self.part} {self.row.run} {number}/{count}"
        label = f"{number}"
        if self.session.options.repeat > 1:
            title += f" turn {turn + 1}"
            label += f"-turn{turn + 1}"
        self.session.schedule.add(Task(
            title, lambda: self._run(title, label, names, turn),
            aside=self.row.waits))

    def _run(self, title, label, names, turn):
        directory = self.session.directory(self.part, self.row.run, label)
        log_path = os.path.join(directory, "log")
        policy = gtest.Policy(self._limit(), each_test=True)
        began = time.monotonic()
        with open(log_path, "wb") as log:
            done = gtest.run(self._start, names, policy, directory, log)
        suffix = f" (turn {turn + 1})" if turn else ""
        results = [Result(self.part, self.row.run, name + suffix,
                          outcome.status, outcome.seconds, outcome.reason,
                          log_path if outcome.status == FAILED else "")
                   for name, outcome in done.outcomes.items()]
        if done.complaint:
            results.append(Result(self.part, self.row.run,
                                  f"end of group {label}", FAILED, 0.0,
                                  done.complaint, log_path))
        self.session.add(results, title, time.monotonic() - began, done.cpu)
        if done.complaint or done.died:
            self.session.console.say(f"end of {log_path}:",
                                     report.tail(log_path))

    def _limit(self):
        """Seconds for a test."""
        return self.session.options.unit_limit * self.row.patience

    def _start_plainly(self, options, log):
        """For listing: without a device."""
        return Process([f"test/gtest/{self.row.program}", *options], log,
                       self._environment(), self.build)

    def _start(self, options, log):
        session = self.session
        return Process(
            [os.path.join(session.top, "config", "run-test"),
             f"test/gtest/{self.row.program}", *options], log,
            self._environment(), self.build)

    def _environment(self):
        device = self.build
        if self.row.tool == "tsan":
            # As hardware, the device is not seen by the sanitizer
            device = self.session.builds.directory(self.row.needs[0])
        extra = [] if self.seed is None else [f"SEP_TEST_SEED={self.seed}"]
        return self.session.environment(self.row.environment + (
            "SEP_TEST_TIMEOUT=0",
            f"SEP_TEST_PATIENCE={max(int(self._limit() / 2), 1)}",
            f"SEP_BUILD_DIR={self.build}",
            f"SEP_SANITIZERS={self.row.sanitizers}",
            f"SEP_TEST_TOOL={self.row.tool}",
            f"SEP_DEVICE_DIR={device}", *extra))
