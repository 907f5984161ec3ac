# SPDX-License-Identifier: BSD-3-Clause
"""UCX's own unit tests, with the driver of test/conformance.

A test that is run on both transports counts once. It fails if sep_mlx5 is worse
than rc_mlx5 and has passed if it did so on sep_mlx5; what fails on both, or is
skipped, does not count. What passed on sep_mlx5 is not run on rc_mlx5, unless the
device is what is tested: then rc_mlx5 must not fail either. A test that passed at the second try is named at the end; what the
device complained about is a failure, whatever comes of another try.
"""

import os
import sys
import threading
import time

from . import gtest
from .result import FAILED, PASSED, SKIPPED, Result
from .schedule import Task


def _driver():
    """The driver's modules, which use this package themselves."""
    path = os.path.realpath(os.path.join(os.path.dirname(__file__),
                                         "../../conformance"))
    if path not in sys.path:
        sys.path.append(path)
    from conformance import cli
    return cli


class Run:
    """One row of a part."""

    def __init__(self, session, part, row):
        self.session = session
        self.part = part
        self.row = row
        self.results = {}           # by full name
        self._lock = threading.Lock()
        self._program = self._options = None
        self._tests = self._selected = self._witnesses = ()

    def plan(self):
        build = self.row.build
        obstacle = self.session.builds.obstacle(build)
        if obstacle:
            if self.session.wanted(self.part, self.row.run, ""):
                self.session.leave_out(f"{self.part} {self.row.run}", obstacle)
            return
        self.session.task(self.part, self.row.run, f"{self.row.run}: list",
                          self._list, [self.session.builds.script(build)],
                          urgent=True)

    def _list(self):
        driver = _driver()
        build = os.path.join(self.session.top, "build", self.row.build.name)
        self._options = driver.parse([
            "--quick", "--gtest", f"{build}/build/test/gtest/gtest",
            "--limit", str(self.session.options.conformance_limit),
            "--sep-build", f"{build}-sep", *self.row.options])
        directory = self.session.directory(self.part, self.row.run)
        self._program = driver.make_program(self._options, directory)
        try:
            self._tests = self._program.list()
        except gtest.ListError as error:
            self.session.fail(self.part, self.row.run, self.row.run,
                              str(error))
            return
        chosen = driver.select(self._tests, self._options)
        if not chosen:
            self.session.fail(self.part, self.row.run, self.row.run,
                              "selects no test")
        for pattern in self._dead_patterns(driver):
            self.session.fail(self.part, self.row.run, f"pattern {pattern}",
                              "matches none of UCX's tests")
        self._selected = [
            test for test in chosen if
            self.session.wanted(self.part, self.row.run,
                                f"{test.suite}.{test.name}")]
        if self.session.options.list:
            names = dict.fromkeys(f"{test.suite}.{test.name}"
                                  for test in self._selected)
            self.session.note(f"{self.part}/{self.row.run} {name}"
                              for name in names)
        elif self._selected:
            first = self._selected
            if not self.row.strict:
                first, self._witnesses = driver.without_witnesses(first)
            shards = [self._add(driver, shard)
                      for shard in driver.shards(first)]
            self.session.task(self.part, self.row.run,
                              f"{self.row.run}: compare",
                              lambda: self._compare(driver), shards)

    def _dead_patterns(self, driver):
        """What the row, or the lists for this UCX, name and is not there."""
        dead = driver.dead_options(self._tests, self._options)
        if self.row.lists_of in ("any", self.session.builds.ucx_version()):
            dead += driver.dead_entries(
                self.row.lists, self._tests, os.path.join(
                    self.session.top, "build", self.row.build.name, "source"))
        return dead

    def _add(self, driver, shard):
        name = f"{self.part} {self.row.run} {shard[0].instance}/" \
            f"{shard[0].suite}"

        def action():
            began = time.monotonic()
            results = driver.run_shard(self._program, shard, self._options)
            witnesses = driver.witnesses_needed(self._witnesses, shard, results)
            if witnesses:
                results.update(driver.run_shard(self._program, witnesses,
                                                self._options))
            with self._lock:
                self.results.update(results)
            elapsed = time.monotonic() - began
            self.session.add_time(self.part, self.row.run, elapsed, 0.0)
            self.session.console.say(f"{name:<58} {driver.in_words(results)} "
                                     f"{elapsed:8.1f} s")

        return self.session.schedule.add(Task(name, action,
                                              aside=self.row.waits))

    def _compare(self, driver):
        rows = driver.rows_of(self._tests, self._selected, self.results)
        results = [self._result(row) for row in rows]
        self.session.add(results, f"{self.part} {self.row.run}", 0.0,
                         self._program.cpu)

    def _result(self, row):
        driver = _driver()
        status, reason = SKIPPED, row.ours.reason
        if row.verdict == "worse":
            status = FAILED
            reason = f"{row.ours.status}, rc_mlx5 {row.theirs.status}: {reason}"
        elif row.ours.violates:
            status = FAILED
        elif self.row.strict and row.theirs.status not in ("ok", "skipped") \
                and not driver.is_known(f"{row.suite}.{row.test}",
                                           self.session.builds.ucx_version()):
            status = FAILED
            reason = f"rc_mlx5 {row.theirs.status}: {row.theirs.reason}"
        elif row.ours.status == "ok":
            status = PASSED
        return Result(self.part, self.row.run, f"{row.suite}.{row.test}",
                      status, row.ours.seconds, reason,
                      self._program.log_dir if status == FAILED else "",
                      driver.first_tries(row))
