# SPDX-License-Identifier: BSD-3-Clause
"""What rows of UCX's tests count as, and that they must select some."""

import types
import unittest
from unittest import mock

from runner import conformance, parts
from runner.result import FAILED, PASSED, SKIPPED

_driver = conformance._driver()     # also makes its modules known

from conformance import compare, gtest  # noqa: E402


class Session:
    """What a row needs of it."""

    def __init__(self, wanted=True):
        self.failures = []
        self.tasks = []
        self.top = "/top"
        self.options = types.SimpleNamespace(list=False, conformance_limit=300)
        self.builds = mock.Mock()
        self.builds.ucx_version.return_value = "1.13.1"
        self.wanted = lambda part, run, test: wanted

    def directory(self, *_names):
        return "/top"

    def fail(self, _part, _run, test, reason):
        self.failures.append((test, reason))

    def task(self, *_what):
        self.tasks.append(_what)


def listed(row, tests=("sep_mlx5/uct_flush_test.put/0",), **how):
    """Plan a row for a program with these tests."""
    session = Session(**how)
    run = conformance.Run(session, "conformance", row)
    program = mock.Mock()
    program.list.return_value = gtest.of_instances(
        [(test, "") for test in tests])
    with mock.patch.object(_driver, "make_program", lambda *_: program), \
            mock.patch.object(run, "_add", lambda *_: None):
        run._list()
    return session


class Selection(unittest.TestCase):

    def test_a_row_that_selects_nothing_fails(self):
        session = listed(parts.Conformance("x:", ("--tests", "^uct_x")))
        self.assertIn(("x:", "selects no test"), session.failures)
        self.assertEqual([], session.tasks)

    def test_patterns_without_a_test_fail(self):
        session = listed(parts.Conformance("x:", ("--tests",
                                                  "^uct_flush|^uct_x")))
        self.assertEqual([("pattern ^uct_x", "matches none of UCX's tests")],
                         session.failures)
        self.assertEqual(1, len(session.tasks))

    def test_nothing_wanted_is_no_failure(self):
        session = listed(parts.Conformance("x:"), wanted=False)
        self.assertEqual(([], []), (session.failures, session.tasks))

    def test_lists_are_looked_at_with_the_ucx_that_they_are_for(self):
        for version, failures in (("1.13.1", True), ("1.18.1", False)):
            session = listed(parts.Conformance("x:", lists=("EXCLUDED",),
                                               lists_of=version))
            self.assertEqual(failures, bool(session.failures), version)


class Witnesses(unittest.TestCase):
    """Which tests are run on rc_mlx5."""

    BOTH = [f"{instance}/uct_flush_test.{test}"
            for instance in ("sep_mlx5", "rc_mlx5")
            for test in ("passes/0", "skips/0", "fails/0")]

    def run_on(self, row, tests):
        """Names of what is run; it does what its name says on either."""
        ran = []

        def run_shard(_program, shard, _options):
            ran.extend(test.full_name for test in shard)
            return {test.full_name: gtest.Result(
                gtest.OK if "passes" in test.name else
                gtest.SKIPPED if "skips" in test.name else gtest.FAILED,
                0.0, "") for test in shard}

        session = Session()
        session.schedule = mock.Mock()
        session.schedule.add.side_effect = lambda task: task.action()
        session.console = mock.Mock()
        session.add_time = mock.Mock()
        program = mock.Mock()
        program.list.return_value = gtest.of_instances(
            [(test, "") for test in tests])
        with mock.patch.object(_driver, "make_program", lambda *_: program), \
                mock.patch.object(_driver, "run_shard", run_shard):
            conformance.Run(session, "conformance", row)._list()
        return sorted(ran)

    def test_what_passes_on_sep_mlx5_needs_none(self):
        expected = [test for test in self.BOTH if test !=
                    "rc_mlx5/uct_flush_test.passes/0"]
        self.assertEqual(sorted(expected),
                         self.run_on(parts.Conformance("x:"), self.BOTH))

    def test_what_sep_mlx5_does_not_have_is_run(self):
        self.assertEqual(self.BOTH[3:4], self.run_on(
            parts.Conformance("x:"), self.BOTH[3:4]))

    def test_a_strict_row_runs_all(self):
        self.assertEqual(sorted(self.BOTH), self.run_on(
            parts.Conformance("x:", strict=True), self.BOTH))


class Status(unittest.TestCase):

    def result(self, ours, theirs):
        run = conformance.Run(Session(), "conformance",
                              parts.Conformance("x:"))
        run._program = mock.Mock(log_dir="/log")
        return run._result(compare.Row("uct", "uct_x", "put/0", ours, theirs))

    def test_a_second_try_is_told(self):
        good = gtest.Result(gtest.OK)
        again = gtest.Result(gtest.OK, 0.0, "first: hung: killed", 2)
        result = self.result(again, good)
        self.assertEqual((PASSED, "sep_mlx5 first: hung: killed"),
                         (result.status, result.before))
        self.assertEqual("", self.result(good, good).before)
        self.assertIn("rc_mlx5", self.result(good, again).before)

    def test_a_violation_is_a_failure_whatever_rc_mlx5_does(self):
        bad = gtest.Result(gtest.FAILED, 0.0, "device: cq_overrun", 1, True)
        for theirs in (gtest.OK, gtest.SKIPPED, gtest.FAILED):
            result = self.result(bad, gtest.Result(theirs))
            self.assertEqual(FAILED, result.status, theirs)
            self.assertIn("cq_overrun", result.reason)
        both = gtest.Result(gtest.FAILED)
        self.assertEqual(SKIPPED, self.result(both, both).status)


if __name__ == "__main__":
    unittest.main()
