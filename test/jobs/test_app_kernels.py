# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the driver of kernels of applications."""

import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest

from mainjob import app_kernels, app_kernels_cli, endpoints

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", "."))
PROGRAM = os.path.join(BUILD, "test/ucp/app_kernels")


def setting(kernel="dgemm", api="ucp", sided=1, shape="1.16",
            category="dynamic", regime="legacy"):
    return app_kernels.Setting(kernel, api, sided,
                               app_kernels.read_shape(shape), category, regime)


def outcome(of, **what):
    """Of a job whose processes are alike."""
    taken = dict.fromkeys([name for name, _ in endpoints.RESOURCES], 0)
    taken.update(what)
    found = [endpoints.Endpoints(taken) for _ in range(of.shape.ranks)]
    return app_kernels.Outcome(of, "pass", found=found)


class Shapes(unittest.TestCase):
    def test_processes_are_those_of_two_nodes(self):
        shape = app_kernels.read_shape("4.8")
        self.assertEqual((8, 8, "4.8"), (shape.ranks, shape.threads,
                                         str(shape)))

    def test_others_are_refused(self):
        for text in ("4", "4.", "a.1", "0.1", "1.0", "33.1", "1.65", "1.2.3",
                     "-1.2"):
            with self.assertRaises(ValueError, msg=text):
                app_kernels.read_shape(text)


class Settings(unittest.TestCase):
    def test_peers_of_the_stencil_are_two_at_most(self):
        self.assertEqual(1, setting("stencil", shape="1.16").peers())
        self.assertEqual(2, setting("stencil", shape="2.8").peers())
        self.assertEqual(2, setting("stencil", shape="16.1").peers())
        self.assertEqual(3, setting("dgemm", shape="2.8").peers())

    def test_windows_of_mpich_connect_a_worker_to_itself(self):
        self.assertEqual(2, setting("stencil", "mpich").peers())
        self.assertEqual(1, setting("stencil", "mpich", 2).peers())

    def test_mpich_is_told_to_have_an_interface_per_thread(self):
        of = setting(api="mpich", shape="1.4")
        self.assertEqual("4", of.environment(True)["MPIR_CVAR_CH4_NUM_VCIS"])
        self.assertIn("--need-interfaces", of.arguments(True))
        self.assertNotIn("MPIR_CVAR_CH4_NUM_VCIS", of.environment())
        self.assertNotIn("--need-interfaces", of.arguments())
        self.assertNotIn("--need-interfaces",
                         setting(api="openmpi").arguments(True))

    def test_openshmem_has_one_side(self):
        self.assertIn("one-sided", setting(api="oshmem", sided=2).impossible())
        self.assertEqual("", setting(api="oshmem").impossible())

    def test_paper_has_sixteen_threads(self):
        self.assertEqual((1, 24, 48, 94), setting().paper())
        self.assertEqual((None,) * 4, setting(shape="1.4").paper())
        self.assertEqual((None, None, None, 106),
                         setting("stencil", shape="16.1").paper())
        self.assertEqual((16, 128, 256, None), setting(
            "stencil", shape="4.4", category="mpi_everywhere").paper())

    def test_paper_is_of_resources_as_designed(self):
        """A category needs no more than the one before it."""
        rows = list(app_kernels.PAPER.values())
        for before, behind in zip(rows, rows[1:]):
            self.assertTrue(all(a >= b for a, b in
                                zip(before[:3], behind[:3])))


class Paper(unittest.TestCase):
    def complain(self, of, uuars, plan="equal", **taken):
        found = outcome(of, **taken)
        found.uuars = uuars
        found.plan = plan
        return app_kernels_cli.complain_of_paper(found)

    def test_what_differs_from_the_paper_is_said(self):
        self.assertEqual([], self.complain(setting(), 96, contexts=1, uars=24))
        self.assertEqual(["UAR pages: 25 instead of the paper's 24"],
                         self.complain(setting(), 96, contexts=1, uars=25))

    def test_other_kernels_of_linux_and_libraries_are_not_the_papers(self):
        self.assertEqual([], self.complain(setting(regime="dynamic"), 1))
        self.assertEqual([], self.complain(setting(api="openmpi"), 1, "-"))


class Reading(unittest.TestCase):
    def test_lines_of_processes(self):
        found = app_kernels.read_kernel_lines(
            "NOTE x\nkernel name=dgemm messages=3 bytes=24\n"
            "kernel name=dgemm messages=4 bytes=32\nkernelx a=1\n")
        self.assertEqual([("3", "24"), ("4", "32")],
                         [(each["messages"], each["bytes"]) for each in found])

    def test_a_prediction_of_the_regime_is_needed(self):
        text = json.dumps({"plans": [{
            "regime": "legacy",
            "predicted": {"read": {"requests_per_second": 5}}}]})
        self.assertEqual(5, app_kernels.read_prediction(text, "legacy", "read"))
        with self.assertRaises(app_kernels.KernelError):
            app_kernels.read_prediction(text, "dynamic", "read")


class Judging(unittest.TestCase):
    def judge(self, lines, wqes, qps=4):
        """Two processes, between two looks at a device."""
        with tempfile.TemporaryDirectory() as build:
            runner = app_kernels.Runner(build)
            runner.plan = lambda _: PLAN
            each = {"name": "app_kernels", "live": True, "wqes": 0, "uuars": 4,
                    **PLAN, "uuars_used": 2, "qps": qps, "qp_list": []}
            texts = [json.dumps({"totals": {"wqes": 10}, "processes": []}),
                     json.dumps({"totals": {"wqes": 10 + wqes},
                                 "processes": [each, each]})]
            found = app_kernels.Outcome(setting(shape="1.2"), "pass")
            runner.judge(found, texts, lines)
        return found

    lines = [{"messages": "10", "bytes": "80"}] * 2

    def test_work_is_that_between_two_looks(self):
        found = self.judge(self.lines, 30)
        self.assertEqual(("pass", "equal", 20, 160),
                         (found.status, found.plan, found.messages,
                          found.payload))
        self.assertEqual(1.5, found.per_message("wqes"))

    def test_too_little_work_is_a_failure(self):
        self.assertIn("19 WQEs for 20", self.judge(self.lines, 19).detail)

    def test_a_process_that_says_nothing_is_a_failure(self):
        self.assertIn("1 processes said", self.judge(self.lines[:1], 30).detail)

    def test_other_resources_than_planned_are_a_failure(self):
        found = self.judge(self.lines, 30, qps=5)
        self.assertEqual(("fail", "differs"), (found.status, found.plan))
        self.assertIn("qps: 5 instead of 4", found.detail)


PLAN = {"contexts": 1, "uars": 2, "uuars_in_use": 2, "qps": 4, "cqs": 4,
        "srqs": 2}


class CommandLine(unittest.TestCase):
    def refuse(self, *options):
        said = io.StringIO()
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(said):
            app_kernels_cli.parse_arguments(options)
        return said.getvalue()

    def test_nonsense_is_refused_with_the_reason(self):
        self.assertIn("is no shape", self.refuse("--shape", "16"))
        self.assertIn("unknown name 'lu'", self.refuse("--kernel", "lu"))
        self.assertIn("unknown name '3'", self.refuse("--sided", "3"))
        self.assertIn("--programs", self.refuse("--mpich", "/x"))

    def test_each_column_has_a_cell(self):
        failed = app_kernels.Outcome(setting(), "fail")
        self.assertEqual(len(app_kernels_cli.COLUMNS),
                         len(app_kernels_cli.cells(None, failed)))


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), "job-programs are not built")
class Program(unittest.TestCase):
    """What it refuses, before it looks for a device."""

    def refuse(self, *words):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual(1, done.returncode, done.stdout)
        return done.stderr

    def test_sizes_that_do_not_divide(self):
        self.assertIn("--size 20 is no multiple of --tile 8",
                      self.refuse("dgemm", "--size", "20"))
        self.assertIn("can't be dealt evenly to 2 processes of 3 threads",
                      self.refuse("dgemm", "--size", "16", "--threads", "3"))
        self.assertIn("--rows 7 can't be dealt evenly to 2 processes",
                      self.refuse("stencil", "--rows", "7"))
        self.assertIn("--cols 7 can't be dealt evenly to 2 threads",
                      self.refuse("stencil", "--cols", "7"))

    def test_nonsense(self):
        self.assertIn("--threads 0: from 1 to 64",
                      self.refuse("--threads", "0"))
        self.assertIn("--steps x: from 1", self.refuse("--steps", "x"))
        self.assertIn("--ranks : from 1 to 64", self.refuse("--ranks"))
        self.assertIn("unknown argument 'lu'", self.refuse("lu"))
        self.assertIn("at least 2 processes",
                      self.refuse("stencil", "--ranks", "1"))


if __name__ == "__main__":
    unittest.main()
