# SPDX-License-Identifier: BSD-3-Clause
"""What the program lists and prints is understood; hanging and crashing tests
cost only themselves."""

import os
import shutil
import tempfile
import textwrap
import unittest

from conformance import gtest

LIST = """\
[     INFO ] dc_x is not available
test_arbiter.  # TypeParam =
  add_purge
sep_mlx5/uct_flush_test.  # TypeParam =
  put/0  # GetParam() = sep_mlx5/mlx5_0:1
  put/1  # GetParam() = sep_mlx5/mlx5_0:1/loopback
  DISABLED_old/0  # GetParam() = sep_mlx5/mlx5_0:1
sep/test_ucp_tag.
  send/0  # GetParam() = sep_mlx5/mt
"""

# Stands for mlx5sim-run, sep-run and gtest in one: runs what its filter names.
# A test's name says what it does.
PROGRAM = r"""
import os, sys, time
names = sys.argv[-1].partition("=")[2].split(":")
for name in names:
    print("[ RUN      ] %s <mlx5_0:1>" % name, flush=True)
    what = name.rpartition(".")[2]
    if what == "skips":
        print("[     SKIP ] (!check_caps(FLAG))")
    if what == "skips_silently":
        print("[     SKIP ] ")
    if what == "crashes":
        print("[vm:1:0:1] Caught signal 11 (Segmentation fault)", flush=True)
        os.abort()
    if what == "hangs":
        time.sleep(60)
    if what == "chatters":
        for i in range(600):
            print("still here", flush=True)
            time.sleep(0.1)
    if what == "violates":
        print("mlx5sim: strict check 'cq-overrun' failed on CQ 0x1 of pid 2:")
    if what == "fails":
        print("../../test/gtest/x.cc:1: Failure")
        print("Expected equality")
        print("[  FAILED  ] %s, where GetParam() = mlx5_0:1 (3 ms)" % name)
    else:
        print("[       OK ] %s (2 ms)" % name, flush=True)
print("[  PASSED  ] all")
if any(name.endswith("hangs_at_the_end") for name in names):
    sys.stdout.flush()
    time.sleep(60)
"""


class List(unittest.TestCase):

    def test_tests_of_instances_without_disabled_ones(self):
        tests = gtest.parse_list(LIST)
        self.assertEqual(["sep_mlx5/uct_flush_test.put/0",
                          "sep_mlx5/uct_flush_test.put/1",
                          "sep/test_ucp_tag.send/0"],
                         [test.full_name for test in tests])
        self.assertEqual("sep_mlx5/mlx5_0:1/loopback", tests[1].parameter)


class Run(unittest.TestCase):

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        os.makedirs(os.path.join(self.dir, "bin"))
        self.write("gtest", "#!/usr/bin/env python3\n" + PROGRAM)
        # Each drops its own options and runs the rest
        self.write("bin/mlx5sim-run", "#!/bin/sh\nshift 2\nexec \"$@\"\n")
        self.write("bin/sep-run", "#!/bin/sh\nshift\nexec \"$@\"\n")
        self.program = gtest.Program(os.path.join(self.dir, "gtest"), self.dir,
                                     {}, self.dir)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        os.chmod(path, 0o755)

    def run_tests(self, *names, limit=20):
        tests = [gtest.Test("i", "s", name, "") for name in names]
        results = self.program.run(tests, limit, "log")
        self.assertEqual({f"i/s.{name}" for name in names}, set(results))
        return [results[f"i/s.{name}"] for name in names]

    def test_results_and_reasons(self):
        passes, skips, silent, fails, violates = self.run_tests(
            "passes", "skips", "skips_silently", "fails", "violates")
        self.assertEqual((gtest.OK, ""), (passes.status, passes.reason))
        self.assertEqual((gtest.SKIPPED, "!check_caps(FLAG)"),
                         (skips.status, skips.reason))
        self.assertEqual((gtest.SKIPPED, "no reason given"),
                         (silent.status, silent.reason))
        self.assertEqual((gtest.FAILED, "Expected equality"),
                         (fails.status, fails.reason))
        self.assertEqual(gtest.FAILED, violates.status)
        self.assertIn("cq-overrun", violates.reason)

    def test_crash_costs_one_test(self):
        before, crash, behind = self.run_tests("before", "crashes", "behind")
        self.assertEqual([gtest.OK, gtest.CRASHED, gtest.OK],
                         [before.status, crash.status, behind.status])
        self.assertIn("Caught signal 11", crash.reason)

    def test_hang_costs_one_test(self):
        hang, behind = self.run_tests("hangs", "behind", limit=1)
        self.assertEqual([gtest.HUNG, gtest.OK], [hang.status, behind.status])

    def test_output_does_not_extend_the_time(self):
        result, = self.run_tests("chatters", limit=1)
        self.assertEqual(gtest.HUNG, result.status)

    def test_program_that_does_not_end_is_ended(self):
        result, = self.run_tests("hangs_at_the_end", limit=1)
        self.assertEqual(gtest.OK, result.status)

    def test_program_that_does_not_start_is_a_crash(self):
        self.write("gtest", "#!/bin/sh\nexit 1\n")
        first, second = self.run_tests("first", "second")
        self.assertEqual([gtest.CRASHED] * 2, [first.status, second.status])


if __name__ == "__main__":
    unittest.main()
