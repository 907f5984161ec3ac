# SPDX-License-Identifier: BSD-3-Clause
"""What configure decides to build."""

import os
import subprocess
import tempfile
import unittest

from mainjob import jobs

BUILD = os.environ.get("SEP_BUILD_DIR", "")
TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
CONFIGURE = os.path.join(TOP, "configure")


@unittest.skipUnless(os.access(CONFIGURE, os.X_OK), "there is no configure")
@unittest.skipIf(os.path.exists(os.path.join(TOP, "config.status")),
                 "the source tree is configured itself")
class WithoutTheTransport(unittest.TestCase):
    """Where no mirror has the source of UCX."""

    def test_the_main_job_has_all_its_programs(self):
        with tempfile.TemporaryDirectory() as build:
            done = subprocess.run(
                [CONFIGURE, "--disable-gtest", "--without-ucx-source"],
                cwd=build, capture_output=True, text=True, timeout=300,
                check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertIn("not built (--without-ucx-source)", done.stdout)
            names = subprocess.run(
                ["make", "-n", "job-programs"], cwd=build, text=True,
                capture_output=True, timeout=300, check=True).stdout.split()
        for job in jobs.jobs(True, list(jobs.LIBRARIES)):
            self.assertIn(job.binary("").lstrip("/"), names)


@unittest.skipUnless(os.path.exists(os.path.join(BUILD, "Makefile")),
                     "no Makefile")
class Uninstall(unittest.TestCase):

    def test_of_what_is_gone_already(self):
        with tempfile.TemporaryDirectory() as top:
            for _ in range(2):
                done = subprocess.run(
                    ["make", "-C", BUILD, "-s", "uninstall", f"DESTDIR={top}"],
                    capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual(0, done.returncode, done.stderr)
            left = [path for path, _, files in os.walk(top)
                    if files or os.path.basename(path) == "sep"]
        self.assertEqual([], left)


if __name__ == "__main__":
    unittest.main()
