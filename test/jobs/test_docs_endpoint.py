# SPDX-License-Identifier: BSD-3-Clause
"""docs/endpoint-per-thread.md: its program is compiled and run as it is written,
and what the page says UCX prints is printed."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from mainjob import lanes
from test_docs import read

PAGE = "docs/endpoint-per-thread.md"
BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", "."))
SEP_RUN = os.path.join(BUILD, "bin/sep-run")
START = [os.path.join(BUILD, "bin/mlx5sim-run"), "--private", "--",
         "mpirun.mpich", "-n", "2"]
THREADS = 4


def has_interfaces():
    """Debian 12's MPICH 4.0 has one, and ends if it is asked for more."""
    text = subprocess.run(["mpichversion"], capture_output=True, text=True,
                          timeout=300, check=False).stdout
    match = re.search(r"MPICH Version:\s*(\d+)\.(\d+)", text)
    return match is not None and \
        tuple(int(each) for each in match.groups()) >= (4, 1)


@unittest.skipUnless(os.access(SEP_RUN, os.X_OK) and
                     shutil.which("mpicc.mpich") and
                     shutil.which("mpirun.mpich") and
                     not os.environ.get("SEP_SANITIZERS"),
                     "needs the transport, MPICH, and no sanitizer")
class Program(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        # pylint: disable-next=consider-using-with
        cls.directory = tempfile.TemporaryDirectory(prefix="sep-docs.")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.program = f"{cls.directory.name}/program"
        source = re.search(r"```c\n(#include.*?)```", read(PAGE), re.S).group(1)
        with open(f"{cls.program}.c", "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run(["mpicc.mpich", "-Wall", "-Werror", "-fopenmp", "-o",
                        cls.program, f"{cls.program}.c"], check=True,
                       timeout=300)

    def run_it(self, *front, **env):
        """What is printed, by the program and by UCX."""
        environ = {name: value for name, value in os.environ.items()
                   if not name.startswith(("UCX_", "MPIR_"))}
        if has_interfaces():
            environ["MPIR_CVAR_CH4_NUM_VCIS"] = str(THREADS)
        done = subprocess.run([*START, *front, self.program], timeout=300,
                              capture_output=True, text=True, check=False,
                              env={**environ, "UCX_LOG_LEVEL": "info", **env})
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr

    @staticmethod
    def transports(text):
        return {lane.partition("/")[0] for lane in lanes.parse(text)}

    def test_it_runs_and_ucx_says_on_what(self):
        text = self.run_it(SEP_RUN, "--only")
        self.assertEqual({"sep_mlx5"}, self.transports(text))
        text = self.run_it(SEP_RUN)
        self.assertIn("sep_mlx5", self.transports(text))
        self.assertIn("UCX_TLS=sep_mlx5,sm,self", text)

    def test_without_the_launcher_it_is_another_transport(self):
        self.assertNotIn("sep_mlx5", self.transports(self.run_it()))
        text = self.run_it(UCX_TLS="sep_mlx5,sm,self")
        self.assertIn("transport 'sep_mlx5' is not available", read(PAGE))
        self.assertIn("transport 'sep_mlx5' is not available", text)
        self.assertNotIn("sep_mlx5", self.transports(text))

    def test_lines_of_the_page_are_understood(self):
        for line in read(PAGE).splitlines():
            if "cfg" in line and "tag(" in line:
                self.assertEqual({"sep_mlx5"}, self.transports(line))


if __name__ == "__main__":
    unittest.main()
