# SPDX-License-Identifier: BSD-3-Clause
"""What the program lists and prints is understood; hanging and crashing tests
cost only themselves."""

import contextlib
import io
import os
import shutil
import tempfile
import textwrap
import unittest
from unittest import mock

from conformance import cli, gtest

LISTED = [("test_arbiter.add_purge", ""),
          ("sep_mlx5/uct_flush_test.put/0", "sep_mlx5/mlx5_0:1"),
          ("sep_mlx5/uct_flush_test.put/1", "sep_mlx5/mlx5_0:1/loopback"),
          ("sep/test_ucp_tag.send/0", "sep_mlx5/mt")]

# Stands for mlx5sim-run, sep-run and gtest in one: runs what its filter names.
# A test's name says what it does.
PROGRAM = r"""
import json, os, socket, sys, time
options = dict(word[8:].split("=", 1) for word in sys.argv[1:]
               if word.startswith("--gtest_"))
names = options["filter"].split(":")
host, port = options["stream_result_to"].split(":")
stream = socket.create_connection((host, int(port)))
def tell(text):
    stream.sendall(text.encode() + b"\n")
tests = []
tell("event=TestCaseStart&name=i/s")
for full_name in names:
    what = full_name.rpartition(".")[2]
    tell("event=TestStart&name=" + what)
    test = {"name": what, "time": "0.1s", "result": "COMPLETED"}
    if what == "skips":
        test["skipped"] = "!check_caps(FLAG)"
    if what == "crashes":
        os.abort()
    if what == "hangs":
        time.sleep(60)
    if what == "chatters":
        for i in range(600):
            print("still here", flush=True)
            time.sleep(0.1)
    if what == "violates":
        with open(os.environ["DEVICE"] + "/violations", "w") as file:
            file.write("strict check 'cq-overrun' failed on CQ 0x1\n")
    if what == "violates_in_company" and len(names) > 1:
        with open(os.environ["DEVICE"] + "/violations", "w") as file:
            file.write("strict check 'sq-reused' failed on QP 0x1\n")
    if what == "fails":
        test["failures"] = [{"failure": "x.cc:1\nExpected equality"}]
    tests.append(test)
    tell("event=TestEnd&passed=%d" % (what != "fails"))
with open(options["output"].partition(":")[2], "w") as file:
    json.dump({"testsuites": [{"name": "i/s", "testsuite": tests}]}, file)
if any(name.endswith("hangs_at_the_end") for name in names):
    time.sleep(60)
"""


class List(unittest.TestCase):

    def test_tests_of_instances(self):
        tests = gtest.of_instances(LISTED)
        self.assertEqual([name for name, _ in LISTED[1:]],
                         [test.full_name for test in tests])
        self.assertEqual("sep_mlx5/mlx5_0:1/loopback", tests[1].parameter)


class Run(unittest.TestCase):

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        os.makedirs(os.path.join(self.dir, "bin"))
        self.write("gtest", "#!/usr/bin/env python3\n" + PROGRAM)
        # Each drops its own options and runs the rest
        self.write("bin/mlx5sim-run", "#!/bin/sh\n"
                   "export DEVICE=$2\nshift 2\nexec \"$@\"\n")
        self.write("bin/sep-run", "#!/bin/sh\nshift\nexec \"$@\"\n")
        self.program = gtest.Program(os.path.join(self.dir, "gtest"), self.dir,
                                     {}, self.dir)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        os.chmod(path, 0o755)

    def run_tests(self, *names, limit=60):
        tests = [gtest.Test("i", "s", name, "") for name in names]
        results = self.program.run(tests, limit, "log")
        self.assertEqual({f"i/s.{name}" for name in names}, set(results))
        return [results[f"i/s.{name}"] for name in names]

    def test_results_and_reasons(self):
        passes, skips, fails = self.run_tests("passes", "skips", "fails")
        self.assertEqual((gtest.OK, ""), (passes.status, passes.reason))
        self.assertEqual((gtest.SKIPPED, "!check_caps(FLAG)"),
                         (skips.status, skips.reason))
        self.assertEqual((gtest.FAILED, "x.cc:1 Expected equality"),
                         (fails.status, fails.reason))

    def test_module_is_chosen_by_what_the_program_is_linked_with(self):
        """As for users: by a path of plug-ins where UCX has that."""
        self.write("bin/sep-run", "#!/bin/sh\nshift\n"
                   "[ \"$1\" = " + self.dir + "/gtest ] &&"
                   " [ -z \"$SEP_MODULE$LD_PRELOAD\" ] && exec \"$@\"\n")
        passes, = self.run_tests("passes")
        self.assertEqual(gtest.OK, passes.status)

    def test_device_s_complaint_is_of_the_test_that_caused_it(self):
        passes, violates, skips = self.run_tests("passes", "violates", "skips")
        self.assertEqual([gtest.OK, gtest.FAILED, gtest.SKIPPED],
                         [passes.status, violates.status, skips.status])
        self.assertIn("cq-overrun", violates.reason)

    def test_a_complaint_that_does_not_come_again_is_kept(self):
        _, violates, last = self.run_tests("passes", "violates_in_company",
                                           "last")
        self.assertEqual([gtest.OK, gtest.FAILED],
                         [violates.status, last.status])
        self.assertIn("sq-reused", last.reason)
        self.assertTrue(last.violates)
        _, fails, _ = self.run_tests("violates_in_company", "fails", "last")
        self.assertEqual(gtest.FAILED, fails.status)
        self.assertIn("sq-reused", fails.reason)
        for status in self.run_tests("violates_in_company", "skips"):
            self.assertTrue(status.status == gtest.SKIPPED or status.violates)

    def test_no_other_try_excuses_a_complaint(self):
        options = cli.parse(["--limit", "60"])
        shard = [gtest.Test("i", "s", name, "") for name in
                 ("passes", "violates_in_company", "last")]
        results = cli.run_shard(self.program, shard, options)
        self.assertEqual((gtest.FAILED, 1), (results["i/s.last"].status,
                                             results["i/s.last"].tries))

    def test_tests_of_a_source_are_known_whether_they_are_built_or_not(self):
        self.write("test/gtest/uct/ib/test_rc.cc", textwrap.dedent("""
            UCS_TEST_SKIP_COND_P(test_rc, flush_fc,
                                 !check_caps(FLAG)) {
            UCS_TEST_P(test_rc_srq, reorder_list)
            UCT_INSTANTIATE_RC_TEST_CASE(test_rc_other)
            """))
        self.write("test/gtest/ucp/test_ucp_am.h", "UCS_MT_TEST_P(a, b, 2)\n")
        self.write("test/gtest/ucs/test_list.cc", "UCS_TEST_F(c, d) {\n")
        self.assertEqual({"test_rc.flush_fc", "test_rc_srq.reorder_list",
                          "a.b"}, gtest.of_source(self.dir))

    def test_a_run_of_all_fails_for_exclusions_of_nothing(self):
        known = {"x.y", *(f"{name}.x" for name in (
            "test_ucp_sockaddr", "test_uct_ib_x", "test_uct_event_ib",
            "test_uct_cq_moderation", "uct_p2p_test_event",
            "uct_qp_test_event", "test_tag", "test_tag_x",
            "test_ucp_tag_offload", "test_rc_x", "test_rc"))}
        for more, names, status in (
                ([], known, 0), ([], known - {"test_rc.x"}, 1),
                (["--quick"], known - {"test_rc.x"}, 0)):
            program = mock.Mock(cpu=0.0)
            program.list.return_value = gtest.of_instances(LISTED)
            program.run.side_effect = lambda tests, *_: {
                test.full_name: gtest.Result(gtest.OK) for test in tests}
            options = ["--gtest", "g", "--sep-build", "s", "--source", "u",
                       "--only", "sep", "--results", self.dir, *more]
            with mock.patch.object(cli, "make_program", lambda *_: program), \
                    mock.patch.object(gtest, "of_source", lambda _: names), \
                    mock.patch.object(cli.process, "end_with_cleanup"), \
                    mock.patch("sys.argv", ["ucx_gtest", *options]), \
                    contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(status, cli.main(), (more, names))

    def test_crash_costs_one_test(self):
        before, crash, behind = self.run_tests("before", "crashes", "behind")
        self.assertEqual([gtest.OK, gtest.CRASHED, gtest.OK],
                         [before.status, crash.status, behind.status])
        self.assertIn("SIGABRT", crash.reason)

    def test_hang_costs_one_test(self):
        hang, behind = self.run_tests("hangs", "behind", limit=10)
        self.assertEqual([gtest.HUNG, gtest.OK], [hang.status, behind.status])

    def test_output_does_not_extend_the_time(self):
        result, = self.run_tests("chatters", limit=10)
        self.assertEqual(gtest.HUNG, result.status)

    def test_program_that_does_not_end_is_ended(self):
        result, = self.run_tests("hangs_at_the_end", limit=10)
        self.assertEqual(gtest.OK, result.status)

    def test_program_that_does_not_start_is_a_crash(self):
        self.write("gtest", "#!/bin/sh\nexit 1\n")
        first, second = self.run_tests("first", "second")
        self.assertEqual([gtest.CRASHED] * 2, [first.status, second.status])


if __name__ == "__main__":
    unittest.main()
