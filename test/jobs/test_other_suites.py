# SPDX-License-Identifier: BSD-3-Clause
"""docs/other-suites.md: what it says of MPICH is so without our transport."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from mainjob import process
from test_docs import TOP, read

PAGE = "docs/other-suites.md"
PROGRAM = "test/mpi/fragments.c"


class Mpich(unittest.TestCase):

    def test_the_page_names_the_program_and_how_to_start_it(self):
        self.assertIn(f"`{PROGRAM}`", read(PAGE))
        start = re.search(r"^ \*   (UCX_TLS=.*)$", read(PROGRAM), re.M).group(1)
        self.assertIn(start, read(PAGE))

    @unittest.skipUnless(shutil.which("mpicc.mpich") and
                         shutil.which("mpirun.mpich"), "MPICH is not installed")
    def test_it_loses_numbers_over_tcp_if_fragments_end_inside_of_them(self):
        """If it does not any more, the page and README's limits are wrong."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "fragments")
            subprocess.run(["mpicc.mpich", "-O1", os.path.join(TOP, PROGRAM),
                            "-o", program], check=True, timeout=300)
            for threshold, is_good in (("auto", True), ("inf", False)):
                env = {name: value for name, value in os.environ.items()
                       if not name.startswith(("UCX_", "MPIR_"))}
                env.update(UCX_TLS="tcp", UCX_RNDV_THRESH=threshold,
                           MPIR_CVAR_NOLOCAL="1")
                result = process.run(["mpirun.mpich", "-n", "2", program], 300,
                                     env)
                lost = re.search(r"(\d+) of 8192 numbers lost", result.stdout)
                self.assertIsNotNone(lost, result.stdout + result.stderr)
                self.assertEqual(is_good, int(lost.group(1)) == 0, threshold)
                # How MPICH ends over tcp afterwards is not what the page says
                if not is_good:
                    self.assertFalse(result.ok, threshold)


if __name__ == "__main__":
    unittest.main()
