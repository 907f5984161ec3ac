# SPDX-License-Identifier: BSD-3-Clause
"""Tests of jobs with different versions of UCX."""

import os
import tempfile
import unittest

from mainjob import mixed, process


def result(stdout, stderr="", status=0):
    return process.Result(["exchange"], status, stdout, stderr, 1.0, False)


GOOD = "traffic 7 1000\nPASS exchange: UCX 1.13.1: 7 messages\n"


class Judge(unittest.TestCase):
    def judge(self, *results):
        return mixed.judge(results)

    def test_both_must_have_passed(self):
        self.assertEqual("pass", self.judge(result(GOOD), result(GOOD))[0])
        self.assertEqual("fail", self.judge(result(GOOD), result(""))[0])
        self.assertEqual("fail", self.judge(result(""), result(GOOD))[0])
        self.assertEqual("fail", self.judge(result(GOOD),
                                            result(GOOD, status=1))[0])

    def test_both_say_what_was_wrong(self):
        status, detail = self.judge(
            result("", "FAIL exchange: put: byte 7 of 8 is wrong", 1),
            result("", "sep-run: error: no module for UCX 1.15", 2))
        self.assertEqual("fail", status)
        self.assertIn("rank 0: exchange: put: byte 7 of 8 is wrong", detail)
        self.assertIn("no module for UCX 1.15", detail)


class Programs(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.prefix = temporary.name
        self.runner = mixed.Runner("/build", "/build/exchange")

    def argv(self, ucx, transport):
        return self.runner.argv(mixed.Setting(ucx, ucx, transport, ("put",)),
                                ucx, 1, "/where")

    def test_each_gets_the_transport_that_its_ucx_lacks(self):
        with_ours = ["/build/bin/mlx5sim-run", "/build/bin/sep-run", "--only",
                     "/build/exchange", "/where", "1", "put"]
        without = with_ours[:1] + with_ours[3:]
        other = mixed.Ucx(self.prefix, "/build")
        for ucx in other, mixed.Ucx("system", "/build"):
            self.assertEqual(with_ours, self.argv(ucx, "sep_mlx5"))
            self.assertEqual(without, self.argv(ucx, "rc_mlx5"))
        os.makedirs(f"{self.prefix}/lib/ucx")
        with open(f"{self.prefix}/lib/ucx/libuct_sep.so", "wb"):
            pass
        self.assertEqual(without, self.argv(other, "sep_mlx5"))

    def test_each_loads_its_own_ucx(self):
        other = mixed.Ucx(self.prefix, "/build")
        self.assertEqual({"LD_LIBRARY_PATH": f"{self.prefix}/lib"},
                         other.environment({}))
        self.assertEqual({}, mixed.Ucx("system", "/build").environment({}))

    def test_versions_are_read(self):
        for text in ("# Version 1.13.1\n", "# Library version: 1.22.0\n"):
            self.assertEqual(text.split()[-1], mixed.read_version(text))
        self.assertEqual("unknown", mixed.read_version("# Git branch ''"))

    def test_each_may_have_a_build_of_its_own(self):
        self.assertEqual(mixed.Ucx("system", "/build"),
                         mixed.read_ucx("system", "/build"))
        self.assertEqual(mixed.Ucx("/ucx", "/other"),
                         mixed.read_ucx("/ucx,/other", "/build"))


if __name__ == "__main__":
    unittest.main()
