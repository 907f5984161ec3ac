# SPDX-License-Identifier: BSD-3-Clause
"""A hung or crashed job is ended with all of its processes and reported."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from mainjob import process


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def run_until(argv, lines):
    """Run a program that prints so many lines and hangs, and give it up then."""
    job = process.Process(argv)
    # Not by job.stdout_file: the program writes where that one reads
    path = f"/proc/self/fd/{job.stdout_file.fileno()}"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with open(path, encoding="utf-8") as file:
            if file.read().count("\n") >= lines:
                break
        time.sleep(0.01)
    return job.wait(0)


class Run(unittest.TestCase):

    def test_output_and_status(self):
        result = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"],
                             300)
        self.assertEqual((result.stdout, result.stderr, result.returncode),
                         ("out\n", "err\n", 3))
        self.assertFalse(result.ok)
        self.assertEqual(result.why(), "sh: exit status 3")

    def test_crash_is_named(self):
        result = process.run(["sh", "-c", "kill -SEGV $$"], 300)
        self.assertEqual(result.why(), "sh: killed by SIGSEGV")

    def test_hang_is_killed_and_what_it_said_is_kept(self):
        result = run_until(["sh", "-c", "echo here; sleep 1000"], 1)
        self.assertTrue(result.timed_out)
        self.assertFalse(result.ok)
        self.assertEqual(result.stdout, "here\n")
        self.assertIn("hung, killed after", result.why())

    def test_hang_that_ignores_signals_is_killed(self):
        code = ("import signal, time\n"
                "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "print('ready', flush=True)\n"
                "time.sleep(1000)\n")
        result = run_until([sys.executable, "-c", code], 1)
        self.assertTrue(result.timed_out)
        self.assertEqual(result.returncode, -9)

    def test_children_in_sessions_of_their_own_are_killed(self):
        # As MPI launchers start their processes
        result = run_until(["sh", "-c", "setsid sleep 1000 & echo $!; "
                            "setsid setsid sleep 1001 & echo $!; wait"], 2)
        pids = [int(word) for word in result.stdout.split()]
        self.assertEqual(len(pids), 2)
        for pid in pids:
            self.assertFalse(alive(pid))

    def test_child_left_behind_by_a_job_that_ended_well_is_killed(self):
        result = process.run(["sh", "-c", "setsid sleep 1000 & echo $!"], 300)
        self.assertTrue(result.ok)
        self.assertFalse(alive(int(result.stdout)))

    def test_child_that_is_just_being_started_is_killed(self):
        # Between fork and exec a child has its parent's environment, during
        # exec it has none
        for _ in range(20):
            result = process.run(["sh", "-c", "sleep 1000 & echo $!"], 300)
            self.assertFalse(alive(int(result.stdout)))

    def test_processes_without_an_environment_are_passed_over(self):
        with subprocess.Popen(["sleep", "1000"], env={}) as other:
            try:
                # Popen waits for the exec to begin, not for its end
                deadline = time.monotonic() + 300
                is_between = True
                while is_between and time.monotonic() < deadline:
                    _, environment, is_between = process.read_process(other.pid)
                    self.assertEqual(environment, b"")
                self.assertFalse(is_between)
                # And not waited for. Others may be between two images
                with mock.patch.object(process.os, "listdir",
                                       return_value=[str(other.pid)]), \
                        mock.patch.object(process.time, "sleep") as sleep:
                    self.assertEqual(process.marked_processes("no such mark"),
                                     [])
                sleep.assert_not_called()
            finally:
                other.kill()

    def test_who_has_no_address_space_may_be_in_exec(self):
        # Nobody can be stopped there; who has exited has none either
        with subprocess.Popen(["true"]) as other:
            os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
            state, environment, is_between = process.read_process(other.pid)
            self.assertEqual((state, environment), (b"Z", b""))
            self.assertTrue(is_between)

    def test_other_jobs_are_left_alone(self):
        other = process.Process(["sleep", "1000"])
        try:
            process.run(["sleep", "1000"], 0.1)
            self.assertTrue(alive(other.pid))
        finally:
            other.finish()
        self.assertFalse(alive(other.pid))

    def test_nothing_stays_when_the_driver_is_ended(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                "from mainjob import process\n"
                "process.end_with_cleanup()\n"
                "process.run(['sh', '-c', 'setsid sleep 1000 & echo $! > ' +\n"
                "             sys.argv[2] + '; wait'], 1000)\n")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "pid")
            driver = subprocess.Popen(
                [sys.executable, "-B", "-c", code,
                 os.path.dirname(os.path.realpath(__file__)), path])
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline and not (
                    os.path.exists(path) and os.path.getsize(path)):
                time.sleep(0.05)
            with open(path, encoding="ascii") as file:
                pid = int(file.read())
            self.assertTrue(alive(pid))
            driver.send_signal(signal.SIGTERM)
            self.assertEqual(driver.wait(timeout=300), 128 + signal.SIGTERM)
            self.assertFalse(alive(pid))

    def test_nothing_stays_when_the_driver_is_ended_before_it_waits(self):
        code = ("import os, signal, sys; sys.path.insert(0, sys.argv[1])\n"
                "from mainjob import process\n"
                "process.end_with_cleanup()\n"
                "job = process.Process(['sleep', '1000'])\n"
                "print(job.pid, flush=True)\n"
                "os.kill(os.getpid(), signal.SIGTERM)\n")
        driver = subprocess.run(
            [sys.executable, "-B", "-c", code,
             os.path.dirname(os.path.realpath(__file__))],
            stdout=subprocess.PIPE, check=False, timeout=300)
        self.assertEqual(driver.returncode, 128 + signal.SIGTERM)
        self.assertFalse(alive(int(driver.stdout)))

    def test_processor_is_pinned(self):
        cpu = sorted(os.sched_getaffinity(0))[-1]
        code = "import os; print(os.sched_getaffinity(0))"
        result = process.Process([sys.executable, "-c", code],
                                 cpu=cpu).wait(300)
        self.assertEqual(result.stdout.strip(), f"{{{cpu}}}")

    def test_input_is_a_terminal_only_if_asked_for(self):
        for terminal in (False, True):
            result = process.Process(["test", "-t", "0"],
                                     terminal=terminal).wait(300)
            self.assertEqual(result.ok, terminal)


if __name__ == "__main__":
    unittest.main()
