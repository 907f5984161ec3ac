# SPDX-License-Identifier: BSD-3-Clause
"""Every test of a program gets a result, whatever the program does."""

import os
import shutil
import tempfile
import time
import unittest

from runner import gtest, process
from runner.result import FAILED, PASSED, SKIPPED

FAKE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "fake_gtest")


class Base(unittest.TestCase):

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.starts = 0
        self.environment = dict(os.environ)

    def start(self, options, log):
        self.starts += 1
        return process.Process([FAKE, *options], log, self.environment)

    def run_tests(self, *names, limit=60, **policy):
        with open(os.path.join(self.dir, "log"), "wb") as log:
            report = gtest.run(self.start, names, gtest.Policy(limit, **policy),
                               self.dir, log)
        self.assertEqual(set(names), set(report.outcomes))
        return report


class List(Base):

    def test_disabled_tests_are_left_out(self):
        names = gtest.list_tests(self.start, self.dir)
        self.assertIn("good.passes", names)
        self.assertIn("i/many.test/4", names)
        self.assertEqual([], [name for name in names if "DISABLED" in name])

    def test_program_that_is_not_there(self):
        def start(options, log):
            return process.Process(["false", *options], log)
        with self.assertRaises(gtest.ListError):
            gtest.list_tests(start, self.dir)

    def test_filter_is_that_of_googletest(self):
        for pattern, name, wanted in (
                ("*", "a.b", True), ("a.*", "a.b", True), ("a.*", "ba.b", False),
                ("a.?:c.*", "c.d/1", True), ("*:-a.*", "a.b", False),
                ("-a.*", "c.b", True), ("a.*:-*.b:*.c", "a.c", False),
                ("a.*:-*.b", "a.d", True)):
            self.assertEqual(wanted, gtest.selected(pattern, name),
                             (pattern, name))


    def test_patterns_without_effect_are_found(self):
        names = ["a.b", "a.c", "i/d.e/dv"]
        for pattern, dead in (
                ("*", []), ("a.*:*d.*/dv", []), ("a.*:-a.b", []),
                ("a.*:*d.*/bf", ["*d.*/bf"]), ("*:-x.*", ["-x.*"]),
                # It excludes what nobody has selected
                ("a.*:-*d.*", ["-*d.*"]), ("-x:a.b", ["-x"]),
                ("x:y:-a.b", ["x", "y", "-a.b"])):
            self.assertEqual(dead, gtest.dead_patterns(pattern, names), pattern)


class Chunks(unittest.TestCase):

    def test_short_suites_stay_together(self):
        names = ["a.1", "a.2", "b.1", "b.2", "c.1"]
        self.assertEqual([["a.1", "a.2"], ["b.1", "b.2", "c.1"]],
                         gtest.chunks(names, 3))

    def test_suites_may_stay_alone(self):
        names = ["a.1", "b.1", "c.1", "c.2", "d.1"]
        self.assertEqual([["a.1"], ["b.1"], ["c.1", "c.2", "d.1"]],
                         gtest.chunks(names, 3, "b"))

    def test_long_suite_is_cut_evenly(self):
        names = [f"a.{i}" for i in range(10)]
        self.assertEqual([4, 4, 2], [len(c) for c in gtest.chunks(names, 4)])
        self.assertEqual(names, sum(gtest.chunks(names, 4), []))


class Run(Base):

    def test_results_are_those_of_the_report(self):
        report = self.run_tests("good.passes", "good.fails", "good.skips")
        self.assertEqual([PASSED, FAILED, SKIPPED],
                         [each.status for each in report.outcomes.values()])
        self.assertEqual(0.25, report.outcomes["good.passes"].seconds)
        self.assertEqual("x.cc:1 Expected more",
                         report.outcomes["good.fails"].reason)
        self.assertEqual("x.cc:1 no device",
                         report.outcomes["good.skips"].reason)
        self.assertEqual("", report.complaint)

    def test_crash_costs_one_test(self):
        report = self.run_tests("good.passes", "good.skips", "bad.crashes",
                                "bad.behind")
        self.assertEqual([PASSED, SKIPPED, FAILED, PASSED],
                         [report.outcomes[name].status for name in (
                             "good.passes", "good.skips", "bad.crashes",
                             "bad.behind")])
        self.assertEqual("killed by SIGSEGV in this test; two lines",
                         report.outcomes["bad.crashes"].reason)
        self.assertTrue(report.died)
        self.assertEqual(2, self.starts)

    def test_failure_before_a_crash_is_not_forgotten(self):
        report = self.run_tests("good.fails", "bad.crashes")
        self.assertEqual(FAILED, report.outcomes["good.fails"].status)

    def test_hang_costs_one_test(self):
        report = self.run_tests("good.passes", "bad.hangs", "bad.behind",
                                limit=10)
        self.assertEqual([PASSED, FAILED, PASSED],
                         [each.status for _, each in
                          sorted(report.outcomes.items(), reverse=True)])
        self.assertEqual("killed after 10 s in this test",
                         report.outcomes["bad.hangs"].reason)

    def test_rest_is_given_up_in_the_end(self):
        crashing = [f"bad{i}.crashes" for i in range(4)]
        report = self.run_tests(*crashing, deaths=2)
        self.assertEqual(2, self.starts)
        self.assertIn("died", report.outcomes[crashing[-1]].reason)
        self.assertEqual({FAILED}, {each.status for each in
                                    report.outcomes.values()})

    def test_program_that_does_not_start(self):
        def start(options, log):
            return process.Process(["sh", "-c", "exit 3"], log)
        self.start = start
        report = self.run_tests("a.first", "a.second")
        self.assertEqual("exit status 3 before any test",
                         report.outcomes["a.first"].reason)
        self.assertEqual(FAILED, report.outcomes["a.second"].status)

    def test_each_test_may_have_its_time(self):
        report = self.run_tests("slow.sleeps/1", "slow.sleeps/2",
                                "slow.sleeps/3", limit=8, each_test=True)
        self.assertEqual({PASSED}, {each.status for each in
                                    report.outcomes.values()})
        report = self.run_tests("slow.sleeps/1", "slow.sleeps/2",
                                "slow.sleeps/3", limit=8)
        self.assertIn(FAILED, {each.status for each in
                               report.outcomes.values()})

    def test_skipped_is_not_passed_where_that_is_not_told(self):
        report = self.run_tests("good.skips_tacitly", "bad.crashes",
                                certain=False)
        self.assertEqual((SKIPPED, "why"), (
            report.outcomes["good.skips_tacitly"].status,
            report.outcomes["good.skips_tacitly"].reason))
        self.assertEqual("crashed", report.outcomes["bad.crashes"].fatal)

    def test_leak_at_the_end_is_told(self):
        self.environment["FAKE_LEAK"] = "1"
        report = self.run_tests("good.passes")
        self.assertEqual(PASSED, report.outcomes["good.passes"].status)
        self.assertEqual("exit status 23 after its tests", report.complaint)

    def test_what_a_program_leaves_behind_is_ended(self):
        self.environment["FAKE_ORPHAN"] = "1"
        self.run_tests("good.passes")
        mine = process._session_members(os.getsid(0))
        self.assertIn(os.getpid(), mine)
        # A process that was killed is gone when it has run for the last time
        deadline = time.monotonic() + 60
        while self.orphans() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual([], self.orphans())

    @staticmethod
    def orphans():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if b"FAKE_ORPHAN=1" in file.read():
                        found.append(pid)
            except OSError:
                pass
        return found


if __name__ == "__main__":
    unittest.main()
