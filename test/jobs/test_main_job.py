# SPDX-License-Identifier: BSD-3-Clause
"""When a row of the main job passes, and when it must not."""

import contextlib
import io
import os
import stat
import tempfile
import unittest
from unittest import mock

from mainjob import cli, device, jobs, process, table

GOOD = """\
metric latency 8 3.210 us
traffic 200 4096
PASS p2p: 2 ranks, 200 messages, 4096 bytes, 99 checks
"""


def result(stdout="", stderr="", status=0, timed_out=False):
    return process.Result(["mpirun"], status, stdout, stderr, 1.0, timed_out)


class Judge(unittest.TestCase):

    job = jobs.Job("mpich", "p2p", 2)

    def test_good_run(self):
        status, _, report = jobs.judge(self.job, result(GOOD))
        self.assertEqual(status, "pass")
        self.assertEqual((report.messages, report.payload), (200, 4096))
        self.assertEqual(report.metrics, [("latency", 8, 3.21, "us")])

    def test_mismatch_is_what_is_reported(self):
        status, detail, _ = jobs.judge(self.job, result(
            GOOD, "noise\nFAIL p2p: rank 1: ping-pong: byte 3 is 0x00\n"
            "Abort(1)\n", 1))
        self.assertEqual(status, "fail")
        self.assertEqual(detail, "p2p: rank 1: ping-pong: byte 3 is 0x00")

    def test_bad_status_after_pass(self):
        status, detail, _ = jobs.judge(self.job, result(
            GOOD, "Caught signal 11 (Segmentation fault)", 139))
        self.assertEqual(status, "fail")
        self.assertIn("exit status 139: Caught signal 11", detail)

    def test_success_without_pass(self):
        status, detail, _ = jobs.judge(self.job, result("hello\n"))
        self.assertEqual((status, detail), ("fail", "p2p ended without PASS"))

    def test_pass_without_traffic(self):
        status, _, _ = jobs.judge(self.job, result("PASS p2p: nothing\n"))
        self.assertEqual(status, "fail")

    def test_hang(self):
        status, detail, _ = jobs.judge(self.job, result(GOOD, status=-9,
                                                        timed_out=True))
        self.assertEqual(status, "fail")
        self.assertIn("hung", detail)

    def test_skip_says_why(self):
        status, detail, _ = jobs.judge(self.job, result(
            "SKIP threads: the MPI library provides level 1\n",
            status=jobs.SKIP_STATUS))
        self.assertEqual((status, detail),
                         ("skip", "threads: the MPI library provides level 1"))

    def test_log_of_ucx_explains(self):
        _, detail, _ = jobs.judge(self.job, result(status=1),
                                  "UCX  INFO  x\nUCX  ERROR no route\n")
        self.assertIn("UCX  ERROR no route", detail)

    def test_ranks_that_have_processors_are_bound(self):
        cpus = len(os.sched_getaffinity(0))
        few = jobs.Job("mpich", "p2p", 1).argv("/b", False, str)
        many = jobs.Job("mpich", "p2p", cpus + 1).argv("/b", False, str)
        busy = jobs.Job("mpich", "threads", 1).argv("/b", False, str)
        self.assertIn(jobs.BIND_RANK, few)
        self.assertNotIn(jobs.BIND_RANK, many)
        self.assertNotIn(jobs.BIND_RANK, busy)

    def test_bind_rank_picks_the_processor_of_the_rank(self):
        cpus = sorted(os.sched_getaffinity(0))
        show = ["python3", "-c",
                "import os; print(sorted(os.sched_getaffinity(0)))"]
        for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK"):
            env = dict(os.environ)
            env[name] = str(len(cpus) - 1)
            result = process.run([jobs.BIND_RANK, ",".join(map(str, cpus))] +
                                 show, 300, env)
            self.assertEqual(result.stdout.strip(), str(cpus[-1:]))
        result = process.run([jobs.BIND_RANK, "0"] + show, 300)
        self.assertEqual(result.stdout.strip(), str(cpus))

    def test_jobs_cover_both_libraries_and_sizes(self):
        found = {(job.library, job.ranks) for job in
                 jobs.jobs(True, list(jobs.LAUNCHERS))}
        self.assertEqual(found, {(library, ranks) for library in jobs.LAUNCHERS
                                 for ranks in (2, 4)})

    def test_kernels_of_applications_run_on_all_libraries(self):
        found = [job for job in jobs.jobs(True, list(jobs.LIBRARIES)) if
                 job.program == "app_kernels"]
        self.assertEqual([job.library for job in found], list(jobs.LIBRARIES))

    def test_programs_on_ucp_alone_start_their_processes(self):
        argv = jobs.Job("ucp", "app_kernels", 2).argv("/b", True, str)
        self.assertEqual(argv, ["/b/test/ucp/app_kernels", "--ranks", 2,
                                "--quick"])

    def test_only_one_program_may_end_without_finalize(self):
        options, variables = jobs.ending("oshmem", "app_kernels")
        self.assertEqual(options, ["--no-finalize"])
        self.assertIn("--no-finalize", jobs.Job(
            "oshmem", "app_kernels", 2).argv("/b", True, str))
        # Open MPI 4 and 5
        self.assertEqual({name.split("_MCA_")[0] for name in variables},
                         {"OMPI", "PRTE"})
        for job in jobs.jobs(True, list(jobs.LIBRARIES)):
            if (job.library, job.program) != ("oshmem", "app_kernels"):
                self.assertEqual(jobs.ending(job.library, job.program),
                                 ([], {}))


class FakeDevice(device.NoDevice):
    """A device whose counters move by a set amount per row."""

    counts = True

    def __init__(self, leak="", **moved):
        self.samples = [dict.fromkeys(device.COUNTERS, 5),
                        dict.fromkeys(device.COUNTERS, 5)]
        for name, value in moved.items():
            self.samples[1][name] += value
        self.leak = leak

    def counters(self):
        return self.samples.pop(0)

    def leaks(self):
        return self.leak


class Row(unittest.TestCase):

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        options = cli.parse_arguments(["--build-dir", self.directory.name,
                                       "--log-dir", self.directory.name])
        self.main = cli.MainJob(options)
        self.transport = cli.TRANSPORTS["sep_mlx5"]

    def run_row(self, instance, cell, lane=None, ucp=False):
        def body(_command, env):
            if lane:
                path = env["UCX_LOG_FILE"].replace("%h.%p", "vm.1")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"UCX INFO ep_cfg[0]: tag({lane})\n")
            return cell, [result(GOOD)]
        self.main.instance = lambda transport: instance
        return self.main.run_cell("row", self.transport, body, ucp)

    @staticmethod
    def passed():
        return cli.Cell("pass", messages=100, payload=800)

    def test_traffic_on_the_device_passes(self):
        cell = self.run_row(FakeDevice(wqes=100, bytes=800, cqes=2),
                            self.passed(), "sep_mlx5/mlx5_0:1")
        self.assertEqual(cell.status, "pass", cell.detail)
        self.assertEqual(cell.lanes, {"sep_mlx5/mlx5_0:1": ["tag"]})

    def test_device_that_did_not_move_fails_the_row(self):
        cell = self.run_row(FakeDevice(), self.passed(), "sep_mlx5/mlx5_0:1")
        self.assertEqual(cell.status, "fail")
        self.assertIn("0 WQEs for at least 100 messages", cell.detail)

    def test_lane_of_another_transport_fails_the_row(self):
        cell = self.run_row(FakeDevice(wqes=100, bytes=800, cqes=2),
                            self.passed(), "posix/memory")
        self.assertEqual(cell.status, "fail")
        self.assertIn("posix/memory", cell.detail)

    def test_no_lane_at_all_fails_a_row_of_ucp(self):
        moved = {"wqes": 100, "bytes": 800, "cqes": 2}
        cell = self.run_row(FakeDevice(**moved), self.passed(), ucp=True)
        self.assertEqual(cell.status, "fail")
        self.assertIn("names no transport", cell.detail)
        cell = self.run_row(FakeDevice(**moved), self.passed())
        self.assertEqual(cell.status, "pass", cell.detail)

    def test_leak_fails_the_row(self):
        cell = self.run_row(FakeDevice("2 QPs leaked", wqes=100, bytes=800,
                                       cqes=2), self.passed())
        self.assertEqual((cell.status, cell.detail), ("fail", "2 QPs leaked"))

    def test_violation_fails_the_row(self):
        cell = self.run_row(FakeDevice(wqes=100, bytes=800, cqes=2,
                                       violations=1), self.passed())
        self.assertEqual(cell.status, "fail")

    def test_failure_is_not_hidden_by_good_traffic(self):
        cell = self.run_row(FakeDevice(wqes=100, bytes=800, cqes=2),
                            cli.Cell("fail", "byte 3", messages=100))
        self.assertEqual((cell.status, cell.detail), ("fail", "byte 3"))

    def test_environment_selects_one_transport_only(self):
        env = self.main.environment(self.transport, device.NoDevice(), "/x")
        self.assertEqual(env["UCX_TLS"], "sep_mlx5")
        self.assertNotIn("LD_PRELOAD", env)

    def test_another_ucx_has_the_transport_as_its_module(self):
        options = cli.parse_arguments(["--ucx", self.directory.name,
                                       "--log-dir", self.directory.name])
        main = cli.MainJob(options)
        transport = main.transports[0]
        env = main.environment(transport, device.NoDevice(), "/x")
        self.assertEqual(env["LD_LIBRARY_PATH"],
                         os.path.join(self.directory.name, "lib"))
        self.assertEqual(env["UCX_TLS"], "sep")
        self.assertEqual(main.command(transport, device.NoDevice()), [])

    def test_programs_of_another_ucx_come_first(self):
        folder = os.path.join(self.directory.name, "bin")
        os.mkdir(folder)
        path = os.path.join(folder, "ucx_info")
        with open(path, "w", encoding="utf-8"):
            os.chmod(path, 0o755)
        options = cli.parse_arguments(["--ucx", self.directory.name,
                                       "--log-dir", self.directory.name])
        self.assertEqual(cli.MainJob(options).find("ucx_info"), path)


class CommandLine(unittest.TestCase):

    def main(self, *argv):
        """Run the program; returns status, standard output and error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = cli.main(argv)
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    def test_unknown_transport_is_named(self):
        status, _, err = self.main("--transport", "sep_mlx5,carrier_pigeon")
        self.assertEqual(status, 2)
        self.assertIn("carrier_pigeon", err)

    def test_missing_build_is_explained(self):
        with tempfile.TemporaryDirectory() as directory:
            status, _, err = self.main("--build-dir", directory)
        self.assertEqual(status, 2)
        self.assertIn("mlx5sim-run (run make", err)

    def test_end_to_end_with_a_transport_that_fails(self):
        # A launcher that starts nothing: no row may pass
        with tempfile.TemporaryDirectory() as directory:
            for name in ("bin/mlx5sim-run", "bin/mlx5sim-stat", "bin/sep-run"):
                self.script(os.path.join(directory, name), "exit 7")
            status, out, _ = self.run_only(directory)
        self.assertEqual(status, 1)
        self.assertIn("FAIL sep_mlx5", out)
        self.assertRegex(out, r"\n0 passed, \d+ failed")

    def test_the_end_tells_skipped_from_failed(self):
        # Nothing but skipped rows is neither a success nor a failure
        for cells, expected, last in (
                (("skip",), jobs.SKIP_STATUS, "0 passed, 0 failed, 1 skipped"),
                (("skip", "pass"), 0, "1 passed, 0 failed, 1 skipped"),
                (("skip", "fail"), 1, "0 passed, 1 failed, 1 skipped"),
                (("pass",), 0, "1 passed, 0 failed"),
                ((), 1, "0 passed, 0 failed")):
            rows = [mock.Mock(label=f"row {i}") for i in range(len(cells))]
            with tempfile.TemporaryDirectory() as directory, \
                    mock.patch.object(cli.perftest, "tests",
                                      lambda _quick, rows=rows: rows), \
                    mock.patch.object(cli.MainJob, "perftest_row",
                                      side_effect=[cli.Cell(each) for each
                                                   in cells]):
                status, out, _ = self.run_only(directory, "row")
            self.assertEqual((status, out.splitlines()[-1]), (expected, last))

    def run_only(self, directory, text="ucx_info"):
        with mock.patch.object(cli, "missing_parts", lambda options: []):
            return self.main("--build-dir", directory, "--transport",
                             "sep_mlx5", "--only", text, "--log-dir",
                             os.path.join(directory, "log"))

    @staticmethod
    def script(path, body):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{body}\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


class Table(unittest.TestCase):

    def test_ratio_needs_both(self):
        self.assertEqual(table.format_ratio(3.0, 2.0), "1.50")
        self.assertEqual(table.format_ratio(None, 2.0), "")
        self.assertEqual(table.format_ratio(3.0, 0), "")

    def test_values_keep_three_digits(self):
        self.assertEqual(table.format_value(2.345, "us"), "2.35 us")
        self.assertEqual(table.format_value(234.5, "us"), "234.5 us")
        self.assertEqual(table.format_value(23456.7, "MB/s"), "23457 MB/s")


if __name__ == "__main__":
    unittest.main()
